/*
 * size_cache.c - a small table, searched from end to end.
 */
#include "server/size_cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define ENTRIES 128
#define KEY_BYTES 96

struct entry {
    char key[KEY_BYTES];
    uint64_t size_bytes;
    uint64_t used; /* the clock of the cache when it was last used; 0 = free */
};

struct tp_size_cache {
    pthread_mutex_t lock; /* guards all below; a leaf */
    uint64_t clock;
    struct entry entries[ENTRIES];
};

int tp_size_cache_new(struct tp_size_cache **out, struct tp_err *err)
{
    struct tp_size_cache *cache = calloc(1, sizeof(*cache));

    if (cache == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the cache of sizes");
    pthread_mutex_init(&cache->lock, NULL);
    *out = cache;
    return TP_OK;
}

void tp_size_cache_free(struct tp_size_cache *cache)
{
    if (cache == NULL)
        return;
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* The entry of a key, or the one that has to make room; the lock is held. */
static struct entry *find(struct tp_size_cache *cache, const char *key)
{
    struct entry *oldest = &cache->entries[0];

    for (size_t i = 0; i < ENTRIES; i++) {
        struct entry *e = &cache->entries[i];

        if (e->used != 0 && strcmp(e->key, key) == 0)
            return e;
        if (e->used < oldest->used)
            oldest = e;
    }
    return oldest;
}

bool tp_size_cache_get(struct tp_size_cache *cache, const char *key,
                       uint64_t *size_bytes)
{
    struct entry *e;
    bool is_there;

    pthread_mutex_lock(&cache->lock);
    e = find(cache, key);
    is_there = e->used != 0 && strcmp(e->key, key) == 0;
    if (is_there) {
        e->used = ++cache->clock;
        *size_bytes = e->size_bytes;
    }
    pthread_mutex_unlock(&cache->lock);
    return is_there;
}

void tp_size_cache_put(struct tp_size_cache *cache, const char *key,
                       uint64_t size_bytes)
{
    struct entry *e;

    if (strlen(key) >= KEY_BYTES)
        return;
    pthread_mutex_lock(&cache->lock);
    e = find(cache, key);
    snprintf(e->key, sizeof(e->key), "%s", key);
    e->size_bytes = size_bytes;
    e->used = ++cache->clock;
    pthread_mutex_unlock(&cache->lock);
}
