#include "engine/pool.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bigmem.h"

#define BLOCK_BYTES 4096 /* of the first block; the next is twice as long, */
#define BLOCK_MOST_BYTES ((size_t)4 << 20) /* up to this */

struct block {
    struct block *next;
    size_t size;
    max_align_t data[];
};

struct tp_pool {
    struct block *blocks; /* the one in use first */
    size_t used;          /* bytes of it */
    size_t size;          /* bytes that it has */
    bool has_failed;
};

struct tp_pool *tp_pool_new(void)
{
    return calloc(1, sizeof(struct tp_pool));
}

void tp_pool_free(struct tp_pool *pool)
{
    if (pool == NULL)
        return;
    while (pool->blocks != NULL) {
        struct block *next = pool->blocks->next;

        tp_bigmem_free(pool->blocks, sizeof(struct block) + pool->blocks->size);
        pool->blocks = next;
    }
    free(pool);
}

/* n bytes, not zeroed. */
static void *take(struct tp_pool *pool, size_t n)
{
    const size_t align = alignof(max_align_t);
    char *p;

    if (pool == NULL || pool->has_failed || n > SIZE_MAX / 2)
        goto fail;
    n = (n + align - 1) & ~(align - 1);
    if (pool->size - pool->used < n) {
        size_t size = pool->size == 0 ? BLOCK_BYTES : 2 * pool->size;
        struct block *b;

        size = size < BLOCK_MOST_BYTES ? size : BLOCK_MOST_BYTES;
        size = size > n ? size : n;
        b = tp_bigmem_new(sizeof(*b) + size);
        if (b == NULL)
            goto fail;
        b->size = size;
        b->next = pool->blocks;
        pool->blocks = b;
        pool->used = 0;
        pool->size = size;
    }
    p = (char *)pool->blocks->data + pool->used;
    pool->used += n;
    return p;

fail:
    if (pool != NULL)
        pool->has_failed = true;
    return NULL;
}

void *tp_pool_array(struct tp_pool *pool, size_t n, size_t size)
{
    void *p;

    if (n == 0)
        return NULL;
    p = take(pool, size > SIZE_MAX / n ? SIZE_MAX : n * size);
    if (p != NULL)
        memset(p, 0, n * size);
    return p;
}

const char *tp_pool_str(struct tp_pool *pool, struct tp_str s)
{
    char *p;

    if (s.len == 0)
        return "";
    p = take(pool, s.len == SIZE_MAX ? s.len : s.len + 1);
    if (p == NULL)
        return "";
    memcpy(p, s.ptr, s.len);
    p[s.len] = '\0';
    return p;
}

const char *tp_pool_text(struct tp_pool *pool, const char *s)
{
    return tp_pool_str(pool, tp_str_of(s));
}

bool tp_pool_has_failed(const struct tp_pool *pool)
{
    return pool == NULL || pool->has_failed;
}
