/*
 * arena.c - a list of blocks, each at least twice as long as the one before.
 */
#include "base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"

#define FIRST_BLOCK_BYTES 4096

struct tp_arena_block {
    struct tp_arena_block *rest;
    size_t size_bytes;
    char bytes[];
};

static void free_blocks(struct tp_arena_block *b)
{
    while (b != NULL) {
        struct tp_arena_block *rest = b->rest;

        free(b);
        b = rest;
    }
}

void tp_arena_fini(struct tp_arena *a)
{
    if (a == NULL)
        return;
    free_blocks(a->blocks);
    *a = (struct tp_arena){0};
}

void tp_arena_reset(struct tp_arena *a, size_t keep_bytes)
{
    struct tp_arena_block *b = a->blocks;

    if (b == NULL)
        return;
    free_blocks(b->rest);
    b->rest = NULL;
    if (b->size_bytes > keep_bytes) {
        tp_arena_fini(a);
        return;
    }
    a->next = b->bytes;
    a->left_bytes = b->size_bytes;
}

int tp_arena_room(struct tp_arena *a, size_t n, char **out, struct tp_err *err)
{
    struct tp_arena_block *b;
    size_t size;

    if (n <= a->left_bytes) {
        *out = a->next;
        return TP_OK;
    }
    size = a->blocks == NULL ? FIRST_BLOCK_BYTES : a->blocks->size_bytes;
    size = size > SIZE_MAX / 4 ? SIZE_MAX / 2 : size * 2;
    if (size < n)
        size = n;
    if (size > SIZE_MAX - sizeof(*b))
        return tp_fail(err, TP_ENOMEM, "no memory for %zu bytes", n);
    b = malloc(sizeof(*b) + size);
    if (b == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu bytes", n);
    b->size_bytes = size;
    b->rest = a->blocks;
    a->blocks = b;
    a->next = b->bytes;
    a->left_bytes = size;
    *out = a->next;
    return TP_OK;
}

void tp_arena_take(struct tp_arena *a, size_t n)
{
    assert(n <= a->left_bytes);
    if (n == 0)
        return;
    a->next += n;
    a->left_bytes -= n;
}
