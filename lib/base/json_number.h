/*
 * json_number.h - numbers of JSON text, exactly.
 *
 * A number is scanned once, into its digits as an integer and the place of the point;
 * what type it becomes is decided afterwards, without a detour over double: 2^53 + 1
 * stays what it is, and microseconds with decimals become nanoseconds exactly.
 * Pure functions, no locale; safe from any thread.
 */
#ifndef TP_BASE_JSON_NUMBER_H
#define TP_BASE_JSON_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#include "base/json_cursor.h"
#include "base/str.h"

/* A number as it is written; plain data, borrowed from the text. */
struct tp_json_number {
    const char *ptr;
    size_t len;
    uint64_t digits;     /* all digits as one integer; meaningless when is_long */
    uint32_t n_decimals; /* how many of them are behind the point */
    int32_t exponent;    /* behind the e; held within +-100000000 */
    bool is_negative;    /* it starts with a minus */
    bool is_integer;     /* neither point nor exponent */
    bool is_long;        /* more digits than 19 */
};

/*
 * Move over the number at the cursor, which is on a digit or a minus.
 *
 * out  undefined unless TP_OK.
 *
 * TP_EAGAIN  the text ends, so that the number may go on; when it is whole as it is,
 *            the cursor is at the end.
 * TP_EINVAL  not a number of RFC 8259, such as `01`, `1.` or `-`.
 */
int tp_json_number_scan(struct tp_json *c, struct tp_json_number *out);

/*
 * As tp_json_number_scan(), without a call for an integer of at most six digits, which
 * most numbers of a trace are.
 */
static inline int tp_json_number_scan_short(struct tp_json *c,
                                            struct tp_json_number *out)
{
    const char *p = c->p;
    uint32_t digits = 0;
    unsigned n = 0;

    if (c->end - p < 8)
        return tp_json_number_scan(c, out);
    for (; n < 7 && p[n] >= '0' && p[n] <= '9'; n++)
        digits = digits * 10 + (uint32_t)(p[n] - '0');
    if (n == 0 || n == 7 || (*p == '0' && n > 1) || (p[n] != ',' && p[n] != '}'))
        return tp_json_number_scan(c, out);
    out->ptr = p;
    out->len = n;
    out->digits = digits;
    out->n_decimals = 0;
    out->exponent = 0;
    out->is_negative = false;
    out->is_integer = true;
    out->is_long = false;
    c->p = p + n;
    return TP_OK;
}

/* As tp_json_number_scan(), for when only the place behind the number matters. */
int tp_json_number_skip(struct tp_json *c);

/* Read all of text as one number. Returns whether it is one; else out is untouched. */
bool tp_json_number_parse(struct tp_str text, struct tp_json_number *out);

/* The number as int64_t. Returns false, and leaves out, when it is not an integer or
 * out of range. */
bool tp_json_number_int64(const struct tp_json_number *n, int64_t *out);

/* As above for uint64_t. */
bool tp_json_number_uint64(const struct tp_json_number *n, uint64_t *out);

#define TP_JSON_DOUBLE_BYTES 1023 /* longest text that is made a double */

/* The nearest double. Returns false, and leaves out, when it would be infinite or the
 * text is longer than TP_JSON_DOUBLE_BYTES. */
bool tp_json_number_double(const struct tp_json_number *n, double *out);

/*
 * The number times 10^shift, rounded half away from zero.
 *
 * shift  0 to 18; 3 turns microseconds into nanoseconds.
 *
 * Returns false, and leaves out, when that is out of the range of int64_t.
 */
bool tp_json_number_scaled(const struct tp_json_number *n, int shift, int64_t *out);

#endif
