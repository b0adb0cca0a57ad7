/*
 * str.h - a borrowed run of bytes: pointer and length, no NUL needed.
 */
#ifndef TP_BASE_STR_H
#define TP_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Plain data. ptr may be NULL when len is 0. The bytes belong to somebody else. */
struct tp_str {
    const char *ptr;
    size_t len; /* bytes */
};

/* A tp_str over a C string, which must outlive it; NULL gives the empty one. */
static inline struct tp_str tp_str_of(const char *s)
{
    return (struct tp_str){s, s == NULL ? 0 : strlen(s)};
}

/* Whether the bytes of a and b are the same. */
static inline bool tp_str_equal(struct tp_str a, struct tp_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Whether the bytes of a are those of the C string s. */
static inline bool tp_str_is(struct tp_str a, const char *s)
{
    return tp_str_equal(a, tp_str_of(s));
}

#endif
