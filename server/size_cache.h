/*
 * size_cache.h - the sizes of generated files that were counted before.
 *
 * The least recently used entry makes room. Any function from any thread, except new
 * and free.
 */
#ifndef TP_SERVER_SIZE_CACHE_H
#define TP_SERVER_SIZE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct tp_err;
struct tp_size_cache;

/* Create an empty cache. TP_ENOMEM. */
int tp_size_cache_new(struct tp_size_cache **out, struct tp_err *err);

/* Release it. NULL is allowed. */
void tp_size_cache_free(struct tp_size_cache *cache);

/* The size kept for a key, usually an ETag. False: none is. */
bool tp_size_cache_get(struct tp_size_cache *cache, const char *key,
                       uint64_t *size_bytes);

/* Keep a size. A key that is too long is not kept. */
void tp_size_cache_put(struct tp_size_cache *cache, const char *key,
                       uint64_t size_bytes);

#endif
