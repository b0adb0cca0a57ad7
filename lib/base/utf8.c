/*
 * utf8.c - one decoder by table 3-7 of the Unicode standard; validation and repair are
 * loops around it that step over ASCII eight bytes at a time, which is what names and
 * arguments of events consist of nearly always.
 */
#include "base/utf8.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"

#define HIGH_BITS UINT64_C(0x8080808080808080)
#define REPLACEMENT 0xfffd

static const char replacement_utf8[3] = {'\xef', '\xbf', '\xbd'};

/* The length of the ASCII start of p, found by words. */
static size_t ascii_prefix(const char *p, size_t n)
{
    size_t i = 0;

    while (i + 8 <= n) {
        uint64_t word;

        memcpy(&word, p + i, 8);
        if ((word & HIGH_BITS) != 0)
            break;
        i += 8;
    }
    while (i < n && (unsigned char)p[i] < 0x80)
        i++;
    return i;
}

/* What table 3-7 says of a first byte: how many follow, and the range of the second. */
struct lead {
    unsigned n_more; /* 0 = cannot start a sequence of several bytes */
    unsigned char low;
    unsigned char high;
    unsigned char bits; /* of the first byte that belong to the value */
};

static struct lead classify(unsigned char c)
{
    if (c >= 0xc2 && c <= 0xdf)
        return (struct lead){1, 0x80, 0xbf, c & 0x1f};
    if (c >= 0xe0 && c <= 0xef) {
        unsigned char low = c == 0xe0 ? 0xa0 : 0x80;  /* no overlong forms */
        unsigned char high = c == 0xed ? 0x9f : 0xbf; /* no surrogates */

        return (struct lead){2, low, high, c & 0x0f};
    }
    if (c >= 0xf0 && c <= 0xf4) {
        unsigned char low = c == 0xf0 ? 0x90 : 0x80;
        unsigned char high = c == 0xf4 ? 0x8f : 0xbf; /* up to U+10FFFF */

        return (struct lead){3, low, high, c & 0x07};
    }
    return (struct lead){0, 0, 0, 0};
}

/* Decode a sequence that does not start with ASCII; *is_valid tells how it went. */
static size_t decode_multi(const char *p, size_t n, uint32_t *out, bool *is_valid)
{
    struct lead lead = classify((unsigned char)p[0]);
    uint32_t value = lead.bits;
    size_t i;

    *is_valid = false;
    *out = REPLACEMENT;
    if (lead.n_more == 0)
        return 1;
    for (i = 1; i <= lead.n_more; i++) {
        unsigned char c = i < n ? (unsigned char)p[i] : 0;
        unsigned char low = i == 1 ? lead.low : 0x80;
        unsigned char high = i == 1 ? lead.high : 0xbf;

        if (c < low || c > high)
            return i; /* the maximal subpart ends before the byte that does not fit */
        value = value << 6 | (c & 0x3f);
    }
    *is_valid = true;
    *out = value;
    return i;
}

size_t tp_utf8_decode(const char *p, size_t n, uint32_t *out)
{
    bool is_valid;

    if ((unsigned char)p[0] < 0x80) {
        *out = (unsigned char)p[0];
        return 1;
    }
    return decode_multi(p, n, out, &is_valid);
}

size_t tp_utf8_valid_prefix(const char *p, size_t n)
{
    size_t i = 0;

    for (;;) {
        uint32_t value;
        bool is_valid;
        size_t len;

        i += ascii_prefix(p + i, n - i);
        if (i == n)
            return n;
        len = decode_multi(p + i, n - i, &value, &is_valid);
        if (!is_valid)
            return i;
        i += len;
    }
}

bool tp_utf8_is_valid(const char *p, size_t n)
{
    return n == 0 || tp_utf8_valid_prefix(p, n) == n;
}

int tp_utf8_repair(struct tp_buf *out, const char *p, size_t n, size_t *n_repairs,
                   struct tp_err *err)
{
    const size_t old_len = out->len;
    size_t repairs = 0;
    size_t i = 0;
    int rc = TP_OK;

    while (i < n && rc == TP_OK) {
        size_t good = tp_utf8_valid_prefix(p + i, n - i);
        uint32_t value;

        rc = tp_buf_append(out, p + i, good, err);
        i += good;
        if (rc != TP_OK || i == n)
            break;
        i += tp_utf8_decode(p + i, n - i, &value);
        rc = tp_buf_append(out, replacement_utf8, sizeof(replacement_utf8), err);
        repairs++;
    }
    if (rc != TP_OK) {
        out->len = old_len;
        return rc;
    }
    if (n_repairs != NULL)
        *n_repairs = repairs;
    return TP_OK;
}

struct tp_str tp_utf8_cut(struct tp_str s, size_t max_bytes)
{
    size_t len = max_bytes;

    if (s.len <= max_bytes)
        return s;
    /* Go back over at most three continuation bytes to the start of the character
     * that the cut would split. */
    while (len > 0 && max_bytes - len < 3 && ((unsigned char)s.ptr[len] & 0xc0) == 0x80)
        len--;
    if (((unsigned char)s.ptr[len] & 0xc0) == 0x80)
        len = max_bytes; /* not UTF-8 anyway */
    return (struct tp_str){s.ptr, len};
}
