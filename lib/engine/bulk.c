#include "engine/bulk.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bigmem.h"

void tp_bulk_reserve(struct tp_bulk *b, size_t n)
{
    if (b->bytes != NULL || n == 0)
        return;
    b->bytes = tp_bigmem_new(n);
    b->size = b->bytes == NULL ? 0 : n;
}

void *tp_bulk_room(struct tp_bulk *b, size_t n)
{
    const size_t align = alignof(max_align_t);
    size_t whole = (n + align - 1) & ~(align - 1);
    void *room = NULL;

    if (b->bytes != NULL && b->size - b->used >= whole) {
        room = b->bytes + b->used;
        b->used += whole;
    }
    return room;
}

void *tp_bulk_take(struct tp_bulk *b, size_t n)
{
    void *room = tp_bulk_room(b, n);

    return room != NULL ? room : calloc(1, n);
}

void tp_bulk_give(const struct tp_bulk *b, void *object)
{
    const char *p = object;

    if (b->bytes != NULL && p >= b->bytes && p < b->bytes + b->size)
        return;
    free(object);
}

void tp_bulk_fini(struct tp_bulk *b)
{
    tp_bigmem_free(b->bytes, b->size);
    *b = (struct tp_bulk){0};
}
