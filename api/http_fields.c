/*
 * http_fields.c - small parsers of header fields.
 *
 * Several ranges in one request are answered with the whole, which RFC 9110 14.2
 * allows: no client of traces needs multipart/byteranges, and servers have been hurt by
 * it.
 */
#include "api/http_fields.h"

#include <string.h>
#include <strings.h>

static struct tp_str trim(struct tp_str s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* Take what stands before the next separator off s. */
static struct tp_str take(struct tp_str *s, char separator)
{
    const char *at = s->len == 0 ? NULL : memchr(s->ptr, separator, s->len);
    struct tp_str part = {s->ptr, at == NULL ? s->len : (size_t)(at - s->ptr)};
    size_t step = at == NULL ? s->len : part.len + 1;

    s->ptr += step;
    s->len -= step;
    return trim(part);
}

static bool is_word(struct tp_str s, const char *word)
{
    return s.len == strlen(word) && strncasecmp(s.ptr, word, s.len) == 0;
}

/* Digits, all of s; a number beyond 64 bits is as good as the largest. */
static bool digits(struct tp_str s, uint64_t *out)
{
    uint64_t v = 0;

    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.ptr[i] - '0'), &v))
            v = UINT64_MAX;
        if (v == UINT64_MAX)
            s.len = i + 1;
    }
    *out = v;
    return true;
}

bool tp_range_is_single(struct tp_str header)
{
    struct tp_str rest = header;
    struct tp_str unit;

    if (header.len == 0 || memchr(header.ptr, '=', header.len) == NULL)
        return false;
    unit = take(&rest, '=');
    return is_word(unit, "bytes") && rest.len > 0 &&
           memchr(rest.ptr, ',', rest.len) == NULL &&
           memchr(rest.ptr, '-', rest.len) != NULL;
}

/* "-n": the last n bytes. */
static enum tp_range_kind suffix(struct tp_str text, uint64_t size, uint64_t *first,
                                 uint64_t *last)
{
    uint64_t n;

    if (!digits(text, &n))
        return TP_RANGE_NONE;
    if (n == 0 || size == 0)
        return TP_RANGE_UNSATISFIABLE;
    *first = n >= size ? 0 : size - n;
    *last = size - 1;
    return TP_RANGE_ONE;
}

enum tp_range_kind tp_range_parse(struct tp_str header, uint64_t size_bytes,
                                  uint64_t *first, uint64_t *last)
{
    struct tp_str rest = header;
    struct tp_str from;
    uint64_t a;
    uint64_t b = UINT64_MAX;

    if (!tp_range_is_single(header))
        return TP_RANGE_NONE;
    take(&rest, '=');
    from = take(&rest, '-');
    rest = trim(rest);
    if (from.len == 0)
        return suffix(rest, size_bytes, first, last);
    if (!digits(from, &a) || (rest.len > 0 && !digits(rest, &b)) || b < a)
        return TP_RANGE_NONE;
    if (a >= size_bytes)
        return TP_RANGE_UNSATISFIABLE;
    *first = a;
    *last = b >= size_bytes ? size_bytes - 1 : b;
    return TP_RANGE_ONE;
}

bool tp_etag_is_listed(struct tp_str header, struct tp_str etag)
{
    while (header.len > 0) {
        struct tp_str one = take(&header, ',');

        if (one.len >= 2 && one.ptr[0] == 'W' && one.ptr[1] == '/') {
            one.ptr += 2;
            one.len -= 2;
        }
        if (tp_str_is(one, "*") || (etag.len > 0 && tp_str_equal(one, etag)))
            return true;
    }
    return false;
}

bool tp_etag_allows_range(struct tp_str header, struct tp_str etag)
{
    return header.ptr == NULL || (etag.len > 0 && tp_str_equal(trim(header), etag));
}

/* The q value of the parameters behind a coding, in thousandths; 0 for a broken one. */
static unsigned q_value(struct tp_str params)
{
    while (params.len > 0) {
        struct tp_str one = take(&params, ';');
        unsigned v = 0;
        size_t i = 2;

        if (one.len < 3 || (one.ptr[0] != 'q' && one.ptr[0] != 'Q') ||
            one.ptr[1] != '=')
            continue;
        if (one.ptr[i] != '0' && one.ptr[i] != '1')
            return 0;
        v = (unsigned)(one.ptr[i++] - '0') * 1000;
        if (i < one.len && one.ptr[i] == '.')
            i++;
        for (unsigned place = 100; i < one.len && place > 0; i++, place /= 10) {
            if (one.ptr[i] < '0' || one.ptr[i] > '9')
                return 0;
            v += (unsigned)(one.ptr[i] - '0') * place;
        }
        return v > 1000 ? 1000 : v;
    }
    return 1000;
}

#define NOT_SAID UINT32_MAX

enum tp_accept tp_accept_coding(struct tp_str header)
{
    static const char *const names[] = {"gzip", "zstd", "identity"};
    unsigned q[3] = {NOT_SAID, NOT_SAID, NOT_SAID};
    unsigned any = NOT_SAID;
    enum tp_accept best = TP_ACCEPT_NOTHING;
    unsigned best_q = 0;

    if (header.ptr == NULL)
        return TP_ACCEPT_IDENTITY;
    while (header.len > 0) {
        struct tp_str params = take(&header, ',');
        struct tp_str name = take(&params, ';');
        unsigned value = q_value(params);

        if (is_word(name, "*"))
            any = value;
        if (is_word(name, "x-gzip"))
            q[TP_ACCEPT_GZIP] = value;
        for (int i = 0; i < 3; i++)
            if (is_word(name, names[i]))
                q[i] = value;
    }
    for (int i = 0; i < 3; i++) {
        unsigned v = q[i];

        if (v == NOT_SAID)
            v = any;
        /* Identity needs no invitation, but anything that was invited comes first. */
        if (v == NOT_SAID)
            v = i == TP_ACCEPT_IDENTITY ? 1 : 0;
        if (v > best_q) {
            best = (enum tp_accept)i;
            best_q = v;
        }
    }
    return best;
}
