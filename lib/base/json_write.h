/*
 * json_write.h - the pieces of JSON text: strings, integers and doubles.
 *
 * Two forms: tp_json_write_*() append to a buffer; tp_json_put_*() write to memory that
 * the caller has made large enough, for the event path. Commas, braces and the
 * order of members are the caller's. Nothing depends on a locale. Pure functions; safe
 * from any thread.
 */
#ifndef TP_BASE_JSON_WRITE_H
#define TP_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_buf;
struct tp_err;

/* The most bytes that a put function writes. */
#define TP_JSON_U64_BYTES 20
#define TP_JSON_I64_BYTES 20
#define TP_JSON_DOUBLE_BYTES 32
#define TP_JSON_US_BYTES 24
/* ... and for a string of n bytes, quotes included: each may become \u00xx. */
#define TP_JSON_STRING_BYTES(n) (6 * (size_t)(n) + 2)

/*
 * Write the bytes of s between quotes: `"`, `\` and control characters escaped as
 * RFC 8259 wants, other valid UTF-8 as it is, each maximal invalid subpart as U+FFFD.
 *
 * out  room for TP_JSON_STRING_BYTES(s.len).
 *
 * Returns the end of what was written, as all put functions do.
 */
char *tp_json_put_string(char *out, struct tp_str s);

/* Write v in decimal. out has room for TP_JSON_U64_BYTES. */
char *tp_json_put_u64(char *out, uint64_t v);

/* Write v in decimal. out has room for TP_JSON_I64_BYTES. */
char *tp_json_put_i64(char *out, int64_t v);

/* Write ns as microseconds with exactly three decimals: -1500 is "-1.500". out has room
 * for TP_JSON_US_BYTES. */
char *tp_json_put_us(char *out, int64_t ns);

/*
 * Write d so that it reads back as the same double, with a point or an exponent in it:
 * 68 is "68.0". As short as it can be, as far as that is cheap. NaN and the infinities,
 * which JSON has no word for, are the strings "NaN", "Infinity" and "-Infinity". out
 * has room for TP_JSON_DOUBLE_BYTES.
 */
char *tp_json_put_double(char *out, double d);

/*
 * Append a string with its quotes, as tp_json_put_string().
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); nothing was appended. So for all below.
 */
int tp_json_write_string(struct tp_buf *b, struct tp_str s, struct tp_err *err);

/* Append a string, or null when s is NULL. */
int tp_json_write_cstr(struct tp_buf *b, const char *s, struct tp_err *err);

/* Append an integer. */
int tp_json_write_u64(struct tp_buf *b, uint64_t v, struct tp_err *err);

/* Append an integer. */
int tp_json_write_i64(struct tp_buf *b, int64_t v, struct tp_err *err);

/* Append a double, as tp_json_put_double(). */
int tp_json_write_double(struct tp_buf *b, double d, struct tp_err *err);

/* Append true or false. */
int tp_json_write_bool(struct tp_buf *b, bool v, struct tp_err *err);

#endif
