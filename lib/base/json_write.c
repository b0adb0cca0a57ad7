/*
 * json_write.c - numbers by tables instead of printf, strings eight bytes at a time.
 *
 * A double is first tried as an integer over a power of ten: d = m / 10^p with m below
 * 2^53 and p at most 22. Both are exact doubles then and their quotient is rounded
 * once, so the decimal text "m over 10^p" reads back as exactly d; the first p that
 * works gives the fewest digits. What is left (very large, very small, 17 digits) goes
 * through printf, whose decimal point follows the locale and is put right. Ryu would do
 * all of it in one way and 40 KB of tables; such values are rare in traces.
 */
#include "base/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "json_write.c writes digits as they lie in a word: little-endian machines only"
#endif

#define FIXED_DIGITS_MAX 17
#define DOUBLE_EXACT 9007199254740992.0 /* 2^53 */

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

static const char hex[] = "0123456789abcdef";

/*
 * The 8 digits of v, which is below 10^8, as numbers in the bytes of a word, the first
 * in the lowest: halves, then fours into pairs, then pairs into digits, all at once.
 * The divisions by 100 and by 10 are products that are exact in that range.
 */
static inline uint64_t split_digits(uint32_t v)
{
    uint64_t x = v / 10000 | (uint64_t)(v % 10000) << 32;
    uint64_t high = (x * 10486 >> 20) & 0x0000007f0000007fULL;

    x = high | (x - high * 100) << 16;
    high = (x * 103 >> 10) & 0x000f000f000f000fULL;
    return high | (x - high * 10) << 8;
}

#define ASCII_DIGITS 0x3030303030303030ULL

/* Write v, which has at most 8 digits, with exactly 8 of them. */
static inline char *put_8_digits(char *out, uint32_t v)
{
    const uint64_t text = split_digits(v) | ASCII_DIGITS;

    memcpy(out, &text, sizeof(text));
    return out + sizeof(text);
}

/* Write v, which is below 10^8, without leading zeros; 8 bytes are touched. */
static inline char *put_small(char *out, uint32_t v)
{
    uint64_t digits;
    unsigned skip;

    if (v < 10) {
        *out = (char)('0' + v);
        return out + 1;
    }
    digits = split_digits(v);
    skip = (unsigned)__builtin_ctzll(digits) & ~7U;
    digits = (digits | ASCII_DIGITS) >> skip;
    memcpy(out, &digits, sizeof(digits));
    return out + 8 - skip / 8;
}

char *tp_json_put_u64(char *out, uint64_t v)
{
    const uint64_t unit = 100000000;

    if (v < unit)
        return put_small(out, (uint32_t)v);
    if (v < unit * unit)
        return put_8_digits(put_small(out, (uint32_t)(v / unit)), (uint32_t)(v % unit));
    out = put_small(out, (uint32_t)(v / unit / unit));
    v %= unit * unit;
    return put_8_digits(put_8_digits(out, (uint32_t)(v / unit)), (uint32_t)(v % unit));
}

/* The distance of v from zero; right for INT64_MIN too. */
static uint64_t magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

char *tp_json_put_i64(char *out, int64_t v)
{
    if (v < 0)
        *out++ = '-';
    return tp_json_put_u64(out, magnitude(v));
}

char *tp_json_put_us(char *out, int64_t ns)
{
    uint64_t n = magnitude(ns);
    uint32_t rest = (uint32_t)(n % 1000);

    if (ns < 0)
        *out++ = '-';
    out = tp_json_put_u64(out, n / 1000);
    *out++ = '.';
    *out++ = (char)('0' + rest / 100);
    memcpy(out, pairs + (size_t)2 * (rest % 100), 2);
    return out + 2;
}

/* Write m / 10^p with a point in it. */
static char *put_decimal(char *out, uint64_t m, int p)
{
    char digits[TP_JSON_U64_BYTES];
    int n = (int)(tp_json_put_u64(digits, m) - digits);
    int whole = n - p; /* digits before the point; may be negative */

    if (whole <= 0) {
        *out++ = '0';
        *out++ = '.';
        memset(out, '0', (size_t)-whole);
        out += -whole;
        memcpy(out, digits, (size_t)n);
        return out + n;
    }
    memcpy(out, digits, (size_t)whole);
    out += whole;
    *out++ = '.';
    if (p == 0)
        *out++ = '0';
    memcpy(out, digits + whole, (size_t)p);
    return out + p;
}

/* Write d > 0 as a decimal fraction if one of few digits is exactly it; else NULL. */
static char *put_fixed(char *out, double d)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,
                                    1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17};

    for (int p = 0; p <= FIXED_DIGITS_MAX; p++) {
        double scaled = d * powers[p];

        if (scaled >= DOUBLE_EXACT)
            return NULL;
        /* Rounding may have lost a bit in the product: try the nearest integer, and
         * let the division, which is exact in the sense above, decide. */
        scaled = nearbyint(scaled);
        if (scaled != 0 && scaled / powers[p] == d)
            return put_decimal(out, (uint64_t)scaled, p);
    }
    return NULL;
}

/* Copy what printf wrote, with '.' as the decimal point; add ".0" if needed. */
static char *put_printed(char *out, const char *text)
{
    bool is_double = false;

    for (const char *p = text; *p != '\0'; p++) {
        bool is_point = strchr("0123456789+-e", *p) == NULL;

        if (is_point && is_double)
            continue; /* a point of several bytes */
        *out++ = is_point ? '.' : *p;
        is_double = is_double || is_point || *p == 'e';
    }
    if (!is_double) {
        memcpy(out, ".0", 2);
        out += 2;
    }
    return out;
}

char *tp_json_put_double(char *out, double d)
{
    char text[TP_JSON_DOUBLE_BYTES];
    char *end;

    if (!isfinite(d)) {
        const char *name = isnan(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity";

        return tp_json_put_string(out, tp_str_of(name));
    }
    if (signbit(d)) {
        *out++ = '-';
        d = -d;
    }
    if (d == 0) {
        memcpy(out, "0.0", 3);
        return out + 3;
    }
    end = put_fixed(out, d);
    for (int digits = 15; end == NULL && digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, d);
        if (digits == 17 || strtod(text, NULL) == d)
            end = put_printed(out, text);
    }
    return end;
}

/* How many bytes at p need no look: printable ASCII without `"` and `\`. */
static size_t plain_prefix(const char *p, size_t n)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = ones << 7;
    size_t i = 0;

    while (n - i >= 8) {
        uint64_t v;
        uint64_t quote;
        uint64_t slash;

        memcpy(&v, p + i, 8);
        quote = v ^ (ones * '"');
        slash = v ^ (ones * '\\');
        /* A top bit is set for each byte that is zero (after the exclusive or), below
         * 0x20 or above 0x7f; borrows may only add some behind a true one. */
        if ((((quote - ones) | (slash - ones) | (v - ones * 0x20) | v) & tops) != 0)
            break;
        i += 8;
    }
    while (i < n && p[i] >= 0x20 && p[i] != '"' && p[i] != '\\')
        i++; /* bytes from 0x80 on are negative, or checked below */
    return i;
}

static char *put_escape(char *out, unsigned char c)
{
    static const char shorts[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
        ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\'};

    *out++ = '\\';
    if (c < sizeof(shorts) && shorts[c] != 0) {
        *out++ = shorts[c];
        return out;
    }
    memcpy(out, "u00", 3);
    out[3] = hex[c >> 4];
    out[4] = hex[c & 15];
    return out + 5;
}

/* Write the character at p that is no plain ASCII; *used is how many bytes it had. */
static char *put_special(char *out, const char *p, size_t n, size_t *used)
{
    unsigned char c = (unsigned char)*p;
    uint32_t code;

    if (c < 0x80) {
        *used = 1;
        return put_escape(out, c);
    }
    *used = tp_utf8_decode(p, n, &code);
    if (code == 0xfffd) { /* invalid, or U+FFFD itself: the same bytes either way */
        memcpy(out, "\xef\xbf\xbd", 3);
        return out + 3;
    }
    memcpy(out, p, *used);
    return out + *used;
}

char *tp_json_put_string(char *out, struct tp_str s)
{
    const char *p = s.ptr;
    size_t n = s.len;

    *out++ = '"';
    while (n > 0) {
        size_t used = plain_prefix(p, n);

        memcpy(out, p, used);
        out += used;
        p += used;
        n -= used;
        if (n == 0)
            break;
        out = put_special(out, p, n, &used);
        p += used;
        n -= used;
    }
    *out++ = '"';
    return out;
}

int tp_json_write_string(struct tp_buf *b, struct tp_str s, struct tp_err *err)
{
    int rc;

    if (s.len > (SIZE_MAX - 2) / 6)
        return tp_fail(err, TP_ENOMEM, "no memory for a string of %zu bytes", s.len);
    rc = tp_buf_reserve(b, TP_JSON_STRING_BYTES(s.len), err);
    if (rc != TP_OK)
        return rc;
    b->len = (size_t)(tp_json_put_string(b->data + b->len, s) - b->data);
    return TP_OK;
}

int tp_json_write_cstr(struct tp_buf *b, const char *s, struct tp_err *err)
{
    if (s == NULL)
        return tp_buf_append(b, "null", 4, err);
    return tp_json_write_string(b, tp_str_of(s), err);
}

int tp_json_write_u64(struct tp_buf *b, uint64_t v, struct tp_err *err)
{
    char text[TP_JSON_U64_BYTES];

    return tp_buf_append(b, text, (size_t)(tp_json_put_u64(text, v) - text), err);
}

int tp_json_write_i64(struct tp_buf *b, int64_t v, struct tp_err *err)
{
    char text[TP_JSON_I64_BYTES];

    return tp_buf_append(b, text, (size_t)(tp_json_put_i64(text, v) - text), err);
}

int tp_json_write_double(struct tp_buf *b, double d, struct tp_err *err)
{
    char text[TP_JSON_DOUBLE_BYTES];

    return tp_buf_append(b, text, (size_t)(tp_json_put_double(text, d) - text), err);
}

int tp_json_write_bool(struct tp_buf *b, bool v, struct tp_err *err)
{
    return tp_buf_append_str(b, v ? "true" : "false", err);
}
