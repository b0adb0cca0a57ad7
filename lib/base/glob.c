/*
 * glob.c - a matcher that remembers only the last `*`.
 *
 * After a mismatch it is enough to give the last star one character more: what an
 * earlier star could still take, the last one can take as well. So the time is bounded
 * by the product of the lengths, where a recursive matcher is exponential in the
 * stars, and patterns come from clients.
 */
#include "base/glob.h"

#include <stdint.h>

#include "base/err.h"
#include "base/utf8.h"

/* One element of a pattern. */
struct element {
    enum { ELEMENT_CHARACTER, ELEMENT_ANY, ELEMENT_STAR, ELEMENT_SET } kind;
    uint32_t character;
    struct tp_str set;     /* what is between the brackets, without `!` */
    bool is_negated;       /* of the set */
    const char *complaint; /* NULL when well formed */
    size_t bytes;          /* of the pattern; 0 only at its end */
};

/* Take one member of a set, which is a character or an escaped one. */
static size_t next_member(struct tp_str set, size_t at, uint32_t *out)
{
    size_t start = at;

    if (set.ptr[at] == '\\' && at + 1 < set.len)
        at++;
    return at - start + tp_utf8_decode(set.ptr + at, set.len - at, out);
}

/* The length of the set that starts after `[` (and `!`), or SIZE_MAX if unclosed. */
static size_t set_length(const char *p, size_t n)
{
    /* A `]` in the first place is a member, as POSIX has it. */
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\\')
            i++;
        else if (p[i] == ']' && i > 0)
            return i;
    }
    return SIZE_MAX;
}

static struct element parse_set(struct tp_str pattern, size_t at)
{
    struct element e = {.kind = ELEMENT_SET};
    size_t start = at + 1;
    size_t len;

    if (start < pattern.len &&
        (pattern.ptr[start] == '!' || pattern.ptr[start] == '^')) {
        e.is_negated = true;
        start++;
    }
    len = set_length(pattern.ptr + start, pattern.len - start);
    if (len == SIZE_MAX) {
        e = (struct element){.kind = ELEMENT_CHARACTER, .character = '[', .bytes = 1};
        e.complaint = "an unclosed '['";
        return e;
    }
    e.set = (struct tp_str){pattern.ptr + start, len};
    e.bytes = start + len + 1 - at;
    return e;
}

/* The element at byte `at` of the pattern, which is not its end. */
static struct element parse_element(struct tp_str pattern, size_t at)
{
    struct element e = {.kind = ELEMENT_CHARACTER, .bytes = 1};

    switch (pattern.ptr[at]) {
    case '*':
        e.kind = ELEMENT_STAR;
        return e;
    case '?':
        e.kind = ELEMENT_ANY;
        return e;
    case '[':
        return parse_set(pattern, at);
    case '\\':
        if (at + 1 == pattern.len) {
            e.character = '\\';
            e.complaint = "a '\\' at the end";
            return e;
        }
        e.bytes = 1 + tp_utf8_decode(pattern.ptr + at + 1, pattern.len - at - 1,
                                     &e.character);
        return e;
    default:
        e.bytes = tp_utf8_decode(pattern.ptr + at, pattern.len - at, &e.character);
        return e;
    }
}

/* Take a member or a range of the set; low > high for a reversed range. */
static size_t next_range(struct tp_str set, size_t at, uint32_t *low, uint32_t *high)
{
    size_t start = at;

    at += next_member(set, at, low);
    *high = *low;
    if (at + 1 < set.len &&
        set.ptr[at] == '-') /* a `-` in the last place is a member */
        at += 1 + next_member(set, at + 1, high);
    return at - start;
}

static bool set_has(const struct element *e, uint32_t c)
{
    bool is_in = false;
    uint32_t low;
    uint32_t high;

    for (size_t at = 0; at < e->set.len && !is_in;) {
        at += next_range(e->set, at, &low, &high);
        is_in = c >= low && c <= high;
    }
    return is_in != e->is_negated;
}

static bool element_takes(const struct element *e, uint32_t c)
{
    switch (e->kind) {
    case ELEMENT_ANY:
        return true;
    case ELEMENT_SET:
        return set_has(e, c);
    default:
        return e->character == c;
    }
}

bool tp_glob_is_pattern(struct tp_str pattern)
{
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.ptr[i];

        if (c == '*' || c == '?' || c == '[' || c == '\\')
            return true;
    }
    return false;
}

int tp_glob_check(struct tp_str pattern, struct tp_err *err)
{
    for (size_t at = 0; at < pattern.len;) {
        struct element e = parse_element(pattern, at);
        uint32_t low;
        uint32_t high;

        if (e.complaint != NULL)
            return tp_fail(err, TP_EINVAL, "pattern '%.*s' has %s", (int)pattern.len,
                           pattern.ptr, e.complaint);
        for (size_t i = 0; i < e.set.len;) {
            i += next_range(e.set, i, &low, &high);
            if (low > high)
                return tp_fail(err, TP_EINVAL, "pattern '%.*s' has a reversed range",
                               (int)pattern.len, pattern.ptr);
        }
        at += e.bytes;
    }
    return TP_OK;
}

bool tp_glob_matches(struct tp_str pattern, struct tp_str text)
{
    size_t p = 0;
    size_t t = 0;
    size_t star_p = SIZE_MAX; /* just after the last star */
    size_t star_t = 0;        /* what it has not taken yet */
    uint32_t c;

    while (t < text.len || p < pattern.len) {
        if (p < pattern.len) {
            struct element e = parse_element(pattern, p);

            if (e.kind == ELEMENT_STAR) {
                p += e.bytes;
                star_p = p;
                star_t = t;
                continue;
            }
            if (t < text.len) {
                size_t len = tp_utf8_decode(text.ptr + t, text.len - t, &c);

                if (element_takes(&e, c)) {
                    p += e.bytes;
                    t += len;
                    continue;
                }
            }
        }
        if (star_p == SIZE_MAX || star_t >= text.len)
            return false;
        star_t += tp_utf8_decode(text.ptr + star_t, text.len - star_t, &c);
        p = star_p;
        t = star_t;
    }
    return true;
}
