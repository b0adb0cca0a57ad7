/*
 * json_out.h - writes JSON text into a buffer, one value after the other.
 *
 * It puts the commas and escapes strings; it does not check that the caller balances
 * its objects. A failure sticks and is returned by tp_json_out_end(), so that callers
 * need not look at each call. One thread at a time.
 */
#ifndef TP_API_JSON_OUT_H
#define TP_API_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* Plain data; start with tp_json_out_init(). */
struct tp_json_out {
    struct tp_buf *buf; /* the caller's; text is appended */
    bool needs_comma;
    int code; /* TP_OK, or the first failure */
};

/* Start writing behind what buf holds. buf must outlive o. */
void tp_json_out_init(struct tp_json_out *o, struct tp_buf *buf);

/*
 * Finish.
 *
 * TP_ENOMEM, TP_EQUOTA  something is missing in the text, which is useless then.
 */
int tp_json_out_end(struct tp_json_out *o, struct tp_err *err);

/*
 * Each of the following writes one value. key is the member's name, or NULL inside an
 * array or at the top; it is written as it is and so must need no escaping.
 */

/* Start an object; end it with tp_json_out_close_object(). */
void tp_json_out_object(struct tp_json_out *o, const char *key);

/* End the innermost object. */
void tp_json_out_close_object(struct tp_json_out *o);

/* Start an array; end it with tp_json_out_close_array(). */
void tp_json_out_array(struct tp_json_out *o, const char *key);

/* End the innermost array. */
void tp_json_out_close_array(struct tp_json_out *o);

/* A string of any bytes; invalid UTF-8 becomes U+FFFD. */
void tp_json_out_str(struct tp_json_out *o, const char *key, struct tp_str s);

/* A string, or null for a NULL pointer. */
void tp_json_out_text(struct tp_json_out *o, const char *key, const char *s);

/* A string, and nothing at all when it is empty. */
void tp_json_out_str_if(struct tp_json_out *o, const char *key, struct tp_str s);

/* An unsigned number. */
void tp_json_out_u64(struct tp_json_out *o, const char *key, uint64_t v);

/* A signed number. */
void tp_json_out_i64(struct tp_json_out *o, const char *key, int64_t v);

/* true or false. */
void tp_json_out_bool(struct tp_json_out *o, const char *key, bool v);

/* null. */
void tp_json_out_null(struct tp_json_out *o, const char *key);

/* A time in nanoseconds since the epoch, as RFC 3339 text; null when it is 0. */
void tp_json_out_time(struct tp_json_out *o, const char *key, int64_t wall_ns);

/* JSON text that is valid already. */
void tp_json_out_raw(struct tp_json_out *o, const char *key, struct tp_str json);

/* A member whose name may need escaping: the name only; one value must follow. */
void tp_json_out_key(struct tp_json_out *o, struct tp_str key);

#endif
