/*
 * bulk.h - objects of one owner in one piece of memory, when it is known that they will
 * be many.
 *
 * What has no room in the piece is allocated by itself. One thread at a time.
 */
#ifndef TP_ENGINE_BULK_H
#define TP_ENGINE_BULK_H

#include <stddef.h>

/* Embed it; all-zero is a valid empty one. */
struct tp_bulk {
    char *bytes;
    size_t size, used;
};

/* Make room for n bytes of objects to come, once; without memory each is allocated by
 * itself. */
void tp_bulk_reserve(struct tp_bulk *b, size_t n);

/* n zeroed bytes of the piece, aligned for anything; NULL when it has no such room.
 * They need not be given back. */
void *tp_bulk_room(struct tp_bulk *b, size_t n);

/* A zeroed object of n bytes, aligned for anything; NULL without memory. */
void *tp_bulk_take(struct tp_bulk *b, size_t n);

/* Release an object. NULL is allowed. Room in the piece is free with the piece only. */
void tp_bulk_give(const struct tp_bulk *b, void *object);

/* Release the piece, and with it all objects in it. */
void tp_bulk_fini(struct tp_bulk *b);

#endif
