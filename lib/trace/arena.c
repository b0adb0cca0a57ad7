/*
 * arena.c - a list of chunks, filled from the front.
 */
#include "trace/arena.h"

#include <stdlib.h>

#include "base/err.h"

#define CHUNK_BYTES 16384

struct tp_arena_chunk {
    struct tp_arena_chunk *next;
    size_t size_bytes;
    char data[];
};

void tp_arena_fini(struct tp_arena *a)
{
    if (a == NULL)
        return;
    while (a->chunks != NULL) {
        struct tp_arena_chunk *next = a->chunks->next;

        free(a->chunks);
        a->chunks = next;
    }
    a->used_bytes = 0;
    a->total_bytes = 0;
}

void tp_arena_reset(struct tp_arena *a)
{
    struct tp_arena_chunk *kept = a->chunks;

    if (kept != NULL) {
        a->chunks = kept->next;
        kept->next = NULL;
        tp_arena_fini(a);
        a->chunks = kept;
    }
    a->used_bytes = 0;
    a->total_bytes = 0;
}

/* Put a chunk with room for n bytes in front. */
static int add_chunk(struct tp_arena *a, size_t n, struct tp_err *err)
{
    size_t size = n > CHUNK_BYTES / 4 ? n : CHUNK_BYTES;
    struct tp_arena_chunk *chunk = malloc(sizeof(*chunk) + size);

    if (chunk == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu bytes of text", n);
    chunk->next = a->chunks;
    chunk->size_bytes = size;
    a->chunks = chunk;
    a->used_bytes = 0;
    return TP_OK;
}

int tp_arena_dup(struct tp_arena *a, struct tp_str s, struct tp_str *out,
                 struct tp_err *err)
{
    char *copy;

    if (a->chunks == NULL || s.len > a->chunks->size_bytes - a->used_bytes) {
        int rc = add_chunk(a, s.len, err);

        if (rc != TP_OK)
            return rc;
    }
    copy = a->chunks->data + a->used_bytes;
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    a->used_bytes += s.len;
    a->total_bytes += s.len;
    *out = (struct tp_str){copy, s.len};
    return TP_OK;
}
