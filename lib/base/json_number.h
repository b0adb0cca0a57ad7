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
#include <string.h>

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

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* The value of eight digits 0 to 9, the first in the lowest byte: pairs, fours, all. */
static inline uint64_t tp_json_join_digits(uint64_t digits)
{
    digits = digits * 10 + (digits >> 8);
    return (((digits & 0x000000ff000000ffU) * 0x000f424000000064U) +
            (((digits >> 16) & 0x000000ff000000ffU) * 0x0000271000000001U)) >>
           32;
}

/* 10^n for each n that tp_json_take_digits() returns. */
extern const uint32_t tp_json_tens[9];

/*
 * Take up to eight digits at p, where eight bytes can be read, and add them to *value.
 * Returns how many there were. No branch depends on that number but for 0: in a trace
 * it is different each time, and a wrong guess costs more than the arithmetic.
 */
static inline unsigned tp_json_take_digits(const char *p, uint64_t *value)
{
    uint64_t bytes;
    uint64_t others;
    unsigned n;

    memcpy(&bytes, p, sizeof(bytes));
    bytes ^= 0x3030303030303030U;
    /* The top bit of each byte that is not 0 to 9 now. A carry can only spoil bytes
     * behind the first such one. */
    others = ((bytes + 0x7676767676767676U) | bytes) & 0x8080808080808080U;
    n = others == 0 ? 8 : (unsigned)__builtin_ctzll(others) / 8;
    if (n > 0)
        *value = *value * tp_json_tens[n] + tp_json_join_digits(bytes << (64 - 8 * n));
    return n;
}
#endif

#define TP_JSON_QUICK_BYTES 32 /* read by the quick way: 16 digits, point, 8 digits */

/*
 * Read at p what nearly all numbers of a trace are: at most 19 digits with or without a
 * point, neither sign nor exponent. Takes no cursor, so that the caller's can stay in
 * registers.
 *
 * end  behind the text.
 *
 * Returns the place behind the number; NULL when it is, or may be, anything else: then
 * tp_json_number_scan() tells what, and out is undefined.
 */
static inline const char *tp_json_number_quick(const char *p, const char *end,
                                               struct tp_json_number *out)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const char *start = p;
    uint64_t digits = 0;
    unsigned n_decimals = 0;
    bool is_integer;
    unsigned n;

    if (end - p < TP_JSON_QUICK_BYTES)
        return NULL;
    out->ptr = start;
    out->exponent = 0;
    out->is_negative = false;
    out->is_long = false;
    if (p[1] == ',' || p[1] == '}') { /* a digit, such as most pids and devices */
        if (*p < '0' || *p > '9')
            return NULL;
        out->len = 1;
        out->digits = (uint64_t)(*p - '0');
        out->n_decimals = 0;
        out->is_integer = true;
        return p + 1;
    }
    n = tp_json_take_digits(p, &digits);
    if ((p[n] == ',' || p[n] == '}') && n - 1 < 7 && *p != '0') {
        out->len = n;
        out->digits = digits;
        out->n_decimals = 0;
        out->is_integer = true;
        return p + n;
    }
    if (n == 8)
        n += tp_json_take_digits(p + 8, &digits);
    p += n;
    is_integer = *p != '.';
    if (!is_integer) {
        n_decimals = tp_json_take_digits(p + 1, &digits);
        p += 1 + n_decimals;
    }
    if (n == 0 || (n > 1 && *start == '0') || n + n_decimals > 19 ||
        is_integer != (n_decimals == 0) ||
        (*p != ',' && *p != '}' && !tp_json_is_space(*p)))
        return NULL;
    out->len = (size_t)(p - start);
    out->digits = digits;
    out->n_decimals = n_decimals;
    out->is_integer = is_integer;
    return p;
#else
    (void)p;
    (void)end;
    (void)out;
    return NULL;
#endif
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

/* Whether it is an integer from 0 to INT64_MAX that stands in digits. */
static inline bool tp_json_number_is_small(const struct tp_json_number *n)
{
    return n->is_integer && !n->is_long && !n->is_negative && n->digits <= INT64_MAX;
}

/*
 * The number times 10^shift, rounded half away from zero.
 *
 * shift  0 to 18; 3 turns microseconds into nanoseconds.
 *
 * Returns false, and leaves out, when that is out of the range of int64_t.
 */
bool tp_json_number_scaled(const struct tp_json_number *n, int shift, int64_t *out);

#endif
