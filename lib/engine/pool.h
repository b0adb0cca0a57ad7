/*
 * pool.h - memory for one object of many parts, such as a view: taken piece by piece,
 * released all at once.
 *
 * The first failure sticks, and every later call gives NULL or "", so a builder is a
 * plain list with one look at tp_pool_has_failed() at its end. One thread at a time.
 */
#ifndef TP_ENGINE_POOL_H
#define TP_ENGINE_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct tp_pool;

/* An empty pool, or NULL when there is no memory. Release with tp_pool_free(). */
struct tp_pool *tp_pool_new(void);

/* Release a pool and all that was taken from it. NULL is allowed. */
void tp_pool_free(struct tp_pool *pool);

/* n zeroed places of size bytes, aligned for any type; NULL on failure, or when n is 0.
 * pool may be NULL: a failure. */
void *tp_pool_array(struct tp_pool *pool, size_t n, size_t size);

/* A NUL-terminated copy of s; "" on failure. A NUL inside ends it early for C. */
const char *tp_pool_str(struct tp_pool *pool, struct tp_str s);

/* As tp_pool_str() for a C string; NULL gives "". */
const char *tp_pool_text(struct tp_pool *pool, const char *s);

/* Whether anything could not be had. */
bool tp_pool_has_failed(const struct tp_pool *pool);

#endif
