/*
 * utf8.h - validation and repair of UTF-8 (Unicode 15, 3.9, table 3-7).
 *
 * Overlong forms, surrogates and values over U+10FFFF are invalid; NUL is valid.
 * Nothing here depends on a locale. Pure functions; safe from any thread.
 */
#ifndef TP_BASE_UTF8_H
#define TP_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_buf;
struct tp_err;

/* The length in bytes of the longest valid start of p; n when all of it is valid. */
size_t tp_utf8_valid_prefix(const char *p, size_t n);

/* Whether all n bytes are valid. */
bool tp_utf8_is_valid(const char *p, size_t n);

/*
 * Append p to out with U+FFFD in place of each maximal subpart that is invalid
 * (Unicode 15, 3.9, "U+FFFD Substitution of Maximal Subparts": as browsers and
 * Python's errors="replace" do).
 *
 * n_repairs  set to the number of replacements, 0 when p was valid; may be NULL.
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); out is as before.
 */
int tp_utf8_repair(struct tp_buf *out, const char *p, size_t n, size_t *n_repairs,
                   struct tp_err *err);

/*
 * Decode one code point at p.
 *
 * n    bytes that are there, at least 1.
 * out  the code point, or U+FFFD for an invalid sequence.
 *
 * Returns how many bytes it took, 1 to 4; for an invalid sequence the length of its
 * maximal subpart, so that callers always get on.
 */
size_t tp_utf8_decode(const char *p, size_t n, uint32_t *out);

/* The longest start of s that has at most max_bytes bytes and cuts no character. */
struct tp_str tp_utf8_cut(struct tp_str s, size_t max_bytes);

#endif
