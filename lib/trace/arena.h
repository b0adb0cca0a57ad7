/*
 * arena.h - memory for many small byte strings that are released together.
 *
 * What is handed out never moves. Not thread-safe; an arena has one owner.
 */
#ifndef TP_TRACE_ARENA_H
#define TP_TRACE_ARENA_H

#include <stddef.h>

#include "base/str.h"

struct tp_err;
struct tp_arena_chunk;

/* Embed it; the zero value is a valid empty arena. Fields are private. */
struct tp_arena {
    struct tp_arena_chunk *chunks; /* the newest first */
    size_t used_bytes;             /* of the newest chunk */
    size_t total_bytes;            /* handed out since the last reset */
};

/* Release all memory and make the arena empty. All-zero is allowed. */
void tp_arena_fini(struct tp_arena *a);

/* Forget everything; one chunk is kept for reuse. */
void tp_arena_reset(struct tp_arena *a);

/*
 * Copy s into the arena.
 *
 * out  the copy; lives until reset or fini. Of length 0 it is not NULL either.
 *
 * TP_ENOMEM  nothing changed.
 */
int tp_arena_dup(struct tp_arena *a, struct tp_str s, struct tp_str *out,
                 struct tp_err *err);

#endif
