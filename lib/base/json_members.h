/*
 * json_members.h - step through the members of one JSON object in memory.
 *
 * For small objects that are valid JSON already, such as the args of a metadata event
 * or a top-level member of a file: it looks for members, it does not validate what is
 * in them. Total: any bytes end the walk or are passed over. Pure functions; safe from
 * any thread.
 */
#ifndef TP_BASE_JSON_MEMBERS_H
#define TP_BASE_JSON_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json_cursor.h"
#include "base/str.h"

struct tp_buf;
struct tp_err;

/*
 * Start a walk over the members of an object.
 *
 * c  set to stand behind the opening brace; borrows text.
 *
 * Returns false when text is no object; then c stands at an end.
 */
bool tp_json_members_open(struct tp_str text, struct tp_json *c);

/*
 * Go to the next member.
 *
 * key    as it is written, between its quotes; may be NULL.
 * value  its text without blanks around; both borrowed from the text; may be NULL.
 *
 * Returns false at the end, or where the text stops being an object.
 */
bool tp_json_members_next(struct tp_json *c, struct tp_str *key, struct tp_str *value);

/*
 * Find a member by name.
 *
 * key    plain ASCII; compared with the keys as they are written. The last of several
 *        equal ones counts, as in JavaScript and Python.
 * value  set when found.
 */
bool tp_json_members_find(struct tp_str text, const char *key, struct tp_str *value);

/*
 * Append the characters that the string value stands for, as valid UTF-8. What is no
 * string is appended as it is written.
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); nothing was appended.
 */
int tp_json_members_text(struct tp_str value, struct tp_buf *out, struct tp_err *err);

/* Read an integer value. Returns false, and leaves out, when it is none of int64_t. */
bool tp_json_members_int(struct tp_str value, int64_t *out);

#endif
