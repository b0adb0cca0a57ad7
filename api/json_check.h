/*
 * json_check.h - strict grammar check of a control body before a parser sees it.
 *
 * json-c is lenient (it takes the last of two equal members, NaN, raw control
 * characters, a NUL as the end) and its depth limit is its own. What passes here is
 * RFC 8259 JSON in valid UTF-8, within the limits, with each member given once. Pure
 * function; safe from any thread.
 */
#ifndef TP_API_JSON_CHECK_H
#define TP_API_JSON_CHECK_H

#include <stddef.h>
#include <stdint.h>

struct tp_err;

#define TP_JSON_MEMBERS_MAX 512 /* members of one object, open objects together */
#define TP_JSON_DEPTH_MAX 64    /* the most that depth_max may be */

/*
 * Check n bytes.
 *
 * depth_max  nested arrays and objects, 1 to TP_JSON_DEPTH_MAX.
 *
 * TP_EINVAL  not valid; the message says what is wrong and at which byte offset.
 * TP_EQUOTA  valid so far, but deeper than depth_max or with too many members.
 */
int tp_json_check(const char *p, size_t n, uint32_t depth_max, struct tp_err *err);

#endif
