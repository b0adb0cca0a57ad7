/*
 * strmap.h - a hash map from byte strings to pointers or numbers.
 *
 * For control data; the event path has tables of its own. Keys are copied, values
 * are not looked at: the map never frees what a pointer points to. Iteration is in
 * order of insertion. Not thread-safe; the owner's lock guards a map.
 */
#ifndef TP_BASE_STRMAP_H
#define TP_BASE_STRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_err;
struct tp_strmap_entry; /* strmap.c */

/* Embed it; the zero value is a valid empty map. All fields are private. */
struct tp_strmap {
    struct tp_strmap_entry *entries; /* in order of insertion, removed ones included */
    uint32_t *index;                 /* n_index slots: entry number + 1; 0 = empty */
    size_t n_entries;                /* used places of entries */
    size_t n_live;                   /* those that are not removed */
    size_t n_index;                  /* 0 or a power of two */
    uint64_t key[2];                 /* SipHash key of this map */
};

/* Release keys and tables and make the map empty. NULL and all-zero are allowed. */
void tp_strmap_fini(struct tp_strmap *m);

/* Make room for n keys in all, so that as many can be put without growing in between.
 * TP_ENOMEM: the map is as before, and grows as ever. */
int tp_strmap_reserve(struct tp_strmap *m, size_t n, struct tp_err *err);

/*
 * Set the value of a key, new or present.
 *
 * key, n  any n bytes, NUL included; copied when new. n may be 0.
 * value   not NULL; stays the caller's.
 *
 * TP_ENOMEM  no memory, or 2^31 entries are there; the map is as before.
 */
int tp_strmap_put(struct tp_strmap *m, const char *key, size_t n, void *value,
                  struct tp_err *err);

/* As tp_strmap_put() for a number. Do not mix pointers and numbers in one map. */
int tp_strmap_put_u64(struct tp_strmap *m, const char *key, size_t n, uint64_t value,
                      struct tp_err *err);

/* The pointer stored under a key, or NULL. */
void *tp_strmap_get(const struct tp_strmap *m, const char *key, size_t n);

/* Whether the key is there; then *out is its number. out may be NULL. */
bool tp_strmap_get_u64(const struct tp_strmap *m, const char *key, size_t n,
                       uint64_t *out);

/* Remove a key and return its pointer for the caller to release, or NULL. */
void *tp_strmap_remove(struct tp_strmap *m, const char *key, size_t n);

/* Remove a key of a map of numbers. Returns whether it was there. */
bool tp_strmap_remove_u64(struct tp_strmap *m, const char *key, size_t n);

/* The number of keys. */
size_t tp_strmap_len(const struct tp_strmap *m);

/*
 * Step through the map in order of insertion; false at the end.
 *
 * cursor  0 before the first call; not for other use.
 * key     set to the map's own copy, valid until the key is removed; may be NULL.
 * value   set to the pointer; may be NULL.
 *
 * The present key may be removed while stepping; nothing may be put.
 */
bool tp_strmap_next(const struct tp_strmap *m, size_t *cursor, struct tp_str *key,
                    void **value);

/* As tp_strmap_next() for a map of numbers. */
bool tp_strmap_next_u64(const struct tp_strmap *m, size_t *cursor, struct tp_str *key,
                        uint64_t *value);

#endif
