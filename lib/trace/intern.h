/*
 * intern.h - byte strings numbered from 1 in order of first appearance.
 *
 * The table is bounded: when it is full a new string gets number 0, "not interned",
 * which is no error. It is also bounded in time: a string that finds no place within a
 * few steps of its hash gets 0 as well, so that nobody can make look-ups slow by
 * choosing strings. Not thread-safe; a table has one owner.
 */
#ifndef TP_TRACE_INTERN_H
#define TP_TRACE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

struct tp_err;

/* One place of the hash table. */
struct tp_intern_slot {
    uint32_t hash;
    uint32_t iid; /* 0 = free */
};

/*
 * Embed it. The zero value with the two limits set is a valid empty table. All other
 * fields are private, except that `n` may be read.
 */
struct tp_intern {
    uint32_t n_max;       /* most strings */
    size_t bytes_max;     /* most bytes of strings */
    uint32_t n;           /* strings that have a number: 1 to n */
    struct tp_str *texts; /* texts[iid - 1] */
    size_t cap;           /* places of texts */
    struct tp_intern_slot *slots;
    size_t n_slots; /* 0 or a power of two */
    struct tp_arena arena;
    size_t used_bytes; /* of arena */
};

/*
 * Copy s into an arena.
 *
 * out  the copy, not NULL even when it is empty; lives as long as pieces of a do.
 *
 * TP_ENOMEM  nothing changed.
 */
int tp_intern_copy(struct tp_arena *a, struct tp_str s, struct tp_str *out,
                   struct tp_err *err);

/* Release all memory; the limits stay. All-zero is allowed. */
void tp_intern_fini(struct tp_intern *t);

/* Forget all strings and keep the memory for reuse. */
void tp_intern_reset(struct tp_intern *t);

/*
 * The number of a string, which is copied when it is new.
 *
 * s    any bytes; longer ones than INT32_MAX get 0.
 * iid  1 to t->n, or 0: not there and not added, because a limit is reached.
 *
 * TP_ENOMEM  nothing changed.
 */
int tp_intern_add(struct tp_intern *t, struct tp_str s, uint32_t *iid,
                  struct tp_err *err);

/* The number of a string, or 0: it is not there. */
uint32_t tp_intern_find(const struct tp_intern *t, struct tp_str s);

/* The string with a number from 1 to t->n; lives until reset or fini. */
static inline struct tp_str tp_intern_text(const struct tp_intern *t, uint32_t iid)
{
    return t->texts[iid - 1];
}

/* Whether the n bytes of a and b are the same; without a call up to 32 of them. */
static inline bool tp_intern_same_bytes(const char *a, const char *b, size_t n)
{
    uint64_t x, y, differs = 0;

    if (n < 8 || n > 32)
        return n == 0 || memcmp(a, b, n) == 0;
    for (size_t i = 0; i < n - 8; i += 8) {
        memcpy(&x, a + i, 8);
        memcpy(&y, b + i, 8);
        differs |= x ^ y;
    }
    memcpy(&x, a + n - 8, 8);
    memcpy(&y, b + n - 8, 8);
    return (differs | (x ^ y)) == 0;
}

/* Whether s is the string with this number; 0 and numbers over t->n are none. */
static inline bool tp_intern_is(const struct tp_intern *t, uint32_t iid,
                                struct tp_str s)
{
    return iid - 1 < t->n && t->texts[iid - 1].len == s.len &&
           tp_intern_same_bytes(t->texts[iid - 1].ptr, s.ptr, s.len);
}

#endif
