/*
 * json_number.c - one pass over the digits, then exact conversions.
 *
 * Up to 19 digits fit a uint64_t; eight at a time are found and converted with three
 * multiplications. Longer numbers keep their text, and the conversions walk it again:
 * scaling needs only to know which digit ends the integer, and the next one rounds.
 */
#include "base/json_number.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 19
#define EXPONENT_MAX 100000000

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

const uint32_t tp_json_tens[9] = {1,      10,      100,      1000,     10000,
                                  100000, 1000000, 10000000, 100000000};

/* Move over digits, adding them to *value, which may wrap around. */
static inline const char *scan_digits(const char *p, const char *end, uint64_t *value)
{
    uint64_t v = *value;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (end - p >= 8) {
        const unsigned n = tp_json_take_digits(p, &v);

        p += n;
        if (n < 8) {
            *value = v;
            return p;
        }
    }
#endif
    for (; p < end && is_digit(*p); p++)
        v = v * 10 + (uint64_t)(*p - '0');
    *value = v;
    return p;
}

/* Move over `e`, a sign and digits, with the cursor on the e. */
static int scan_exponent(struct tp_json *c, int32_t *out)
{
    bool is_negative = false;
    int32_t value = 0;

    c->p++;
    if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
        is_negative = *c->p++ == '-';
    if (c->p == c->end)
        return TP_EAGAIN;
    if (!is_digit(*c->p))
        return tp_json_bad(c, "a digit must follow the exponent sign");
    for (; c->p < c->end && is_digit(*c->p); c->p++)
        if (value < EXPONENT_MAX)
            value = value * 10 + (*c->p - '0');
    if (value > EXPONENT_MAX)
        value = EXPONENT_MAX;
    *out = is_negative ? -value : value;
    return TP_OK;
}

/* What follows the integer digits: point and exponent. Rare enough to be apart. */
static int scan_fraction(struct tp_json *c, struct tp_json_number *n)
{
    if (c->p < c->end && *c->p == '.') {
        const char *start = ++c->p;

        n->is_integer = false;
        c->p = scan_digits(start, c->end, &n->digits);
        if (c->p == start)
            return c->p == c->end ? TP_EAGAIN
                                  : tp_json_bad(c, "a digit must follow the point");
        n->n_decimals = (uint32_t)(c->p - start);
    }
    if (c->p < c->end && (*c->p == 'e' || *c->p == 'E')) {
        n->is_integer = false;
        return scan_exponent(c, &n->exponent);
    }
    return TP_OK;
}

/* As tp_json_number_scan(), but says TP_OK for a number that ends with the text. */
static inline int scan_number(struct tp_json *c, struct tp_json_number *out)
{
    const char *const first = c->p;
    const char *start;
    const char *p;
    uint64_t digits = 0;
    uint32_t n_digits;

    /* Field by field: a struct built aside and copied would be read back in larger
     * pieces than it was written in, which stalls the pipeline. */
    out->is_negative = *first == '-';
    start = first + out->is_negative;
    p = scan_digits(start, c->end, &digits);
    n_digits = (uint32_t)(p - start);
    c->p = p;
    if (n_digits == 0)
        return p == c->end ? TP_EAGAIN : tp_json_bad(c, "a digit is missing");
    if (n_digits > 1 && *start == '0') {
        c->p = start + 1;
        return tp_json_bad(c, "a number must not start with 0");
    }
    out->ptr = first;
    out->digits = digits;
    out->n_decimals = 0;
    out->exponent = 0;
    out->is_integer = true;
    if (p < c->end && (*p == '.' || *p == 'e' || *p == 'E')) {
        int rc = scan_fraction(c, out);

        if (rc != TP_OK)
            return rc;
        n_digits += out->n_decimals;
    }
    out->len = (size_t)(c->p - first);
    out->is_long = n_digits > DIGITS_MAX;
    return TP_OK;
}

int tp_json_number_scan(struct tp_json *c, struct tp_json_number *out)
{
    int rc = scan_number(c, out);

    return rc == TP_OK && c->p == c->end ? TP_EAGAIN : rc;
}

int tp_json_number_skip(struct tp_json *c)
{
    const char *p = c->p;
    struct tp_json_number n;

    /* Up to four digits, as in nearly all nested values. */
    for (int i = 0; i < 5 && p < c->end && is_digit(*p); i++)
        p++;
    if (p < c->end && p - c->p < 5 && (p - c->p == 1 || (p > c->p && *c->p != '0')) &&
        (*p == ',' || *p == ']')) {
        c->p = p;
        return TP_OK;
    }
    return tp_json_number_scan(c, &n);
}

bool tp_json_number_parse(struct tp_str text, struct tp_json_number *out)
{
    struct tp_json c = {.p = text.ptr, .end = text.ptr + text.len};
    struct tp_json_number n = {.ptr = NULL};

    if (text.len == 0 || (*c.p != '-' && !is_digit(*c.p)))
        return false;
    if (scan_number(&c, &n) != TP_OK || c.p != c.end)
        return false;
    *out = n;
    return true;
}

bool tp_json_number_uint64(const struct tp_json_number *n, uint64_t *out)
{
    uint64_t value = 0;

    if (!n->is_integer || (n->is_negative && (n->is_long || n->digits != 0)))
        return false;
    if (!n->is_long) {
        *out = n->digits;
        return true;
    }
    if (n->len > DIGITS_MAX + 1)
        return false;
    for (size_t i = 0; i < n->len; i++)
        if (__builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, (uint64_t)(n->ptr[i] - '0'), &value))
            return false;
    *out = value;
    return true;
}

bool tp_json_number_int64(const struct tp_json_number *n, int64_t *out)
{
    const uint64_t limit = (uint64_t)INT64_MAX + (n->is_negative ? 1 : 0);

    if (!n->is_integer || n->is_long || n->digits > limit)
        return false;
    *out = n->is_negative ? (int64_t)(0 - n->digits) : (int64_t)n->digits;
    return true;
}

/* The nearest double of any text, by the C library in the C locale. */
static bool slow_double(const struct tp_json_number *n, double *out)
{
    char text[TP_JSON_DOUBLE_BYTES + 1];
    locale_t c_locale;
    double value;

    if (n->len > TP_JSON_DOUBLE_BYTES)
        return false;
    /* glibc answers "C" with a constant object: nothing to release, cannot fail. */
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0)
        return false;
    memcpy(text, n->ptr, n->len);
    text[n->len] = '\0';
    value = strtod_l(text, NULL, c_locale);
    freelocale(c_locale);
    if (!isfinite(value))
        return false;
    *out = value;
    return true;
}

bool tp_json_number_double(const struct tp_json_number *n, double *out)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int64_t exponent = (int64_t)n->exponent - (int64_t)n->n_decimals;
    double value;

    /* Both factors are exact then, so that one operation rounds once. */
    if (n->is_long || n->digits > (UINT64_C(1) << 53) || exponent > 22 ||
        exponent < -22)
        return slow_double(n, out);
    value = (double)n->digits;
    value = exponent < 0 ? value / tens[-exponent] : value * tens[exponent];
    *out = n->is_negative ? -value : value;
    return true;
}

/* Give a magnitude its sign; false when it does not fit. */
static bool with_sign(uint64_t magnitude, bool is_negative, int64_t *out)
{
    if (magnitude > (uint64_t)INT64_MAX + (is_negative ? 1 : 0))
        return false;
    *out = is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

/* The digit of the text at p, with the point passed over; '\0' behind the last. */
static char next_digit(const char **p, const char *end)
{
    if (*p < end && **p == '.')
        (*p)++;
    return *p < end && is_digit(**p) ? *(*p)++ : '\0';
}

/* Any number: take `n_whole` digits as the integer; the one behind rounds. */
static bool slow_scaled(const struct tp_json_number *n, int shift, int64_t *out)
{
    const char *p = n->ptr + n->is_negative;
    const char *end = n->ptr + n->len;
    const char *point = p;
    int64_t n_whole;
    uint64_t value = 0;
    char digit = '0';

    while (point < end && is_digit(*point))
        point++;
    n_whole = (int64_t)(point - p) + n->exponent + shift;
    if (n_whole < 0)
        return with_sign(0, false, out);
    for (; n_whole > 0; n_whole--) {
        digit = next_digit(&p, end);
        if (digit == '\0' && value == 0)
            break; /* nothing but zeros will follow */
        if (__builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, (uint64_t)(digit == '\0' ? 0 : digit - '0'),
                                   &value))
            return false;
    }
    if (n_whole == 0 && next_digit(&p, end) >= '5' && value++ == UINT64_MAX)
        return false;
    return with_sign(value, n->is_negative, out);
}

bool tp_json_number_scaled(const struct tp_json_number *n, int shift, int64_t *out)
{
    static const uint32_t tens[] = {1, 10, 100, 1000};
    const int64_t missing = shift - (int64_t)n->n_decimals;
    uint64_t value;

    if (n->is_long || n->exponent != 0 || missing < 0 || missing > 3)
        return slow_scaled(n, shift, out);
    if (__builtin_mul_overflow(n->digits, (uint64_t)tens[missing], &value))
        return false;
    return with_sign(value, n->is_negative, out);
}
