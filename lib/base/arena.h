/*
 * arena.h - memory that is handed out piece by piece and taken back all at once.
 *
 * Pieces never move, so pointers into an arena stay valid until it is reset. There is
 * no way to give one piece back. Not thread-safe.
 */
#ifndef TP_BASE_ARENA_H
#define TP_BASE_ARENA_H

#include <stddef.h>

struct tp_err;
struct tp_arena_block; /* arena.c */

/* Embed it; the zero value is a valid empty arena. All fields are private. */
struct tp_arena {
    struct tp_arena_block *blocks; /* the one in use first, larger ones first */
    char *next;                    /* free bytes of the first block */
    size_t left_bytes;
};

/* Release everything. All-zero is allowed. */
void tp_arena_fini(struct tp_arena *a);

/*
 * Take all pieces back. The largest block is kept for reuse unless it is longer than
 * keep_bytes; the others are released.
 */
void tp_arena_reset(struct tp_arena *a, size_t keep_bytes);

/*
 * Make room for n bytes, which the caller may fill in before tp_arena_take().
 *
 * out  n bytes without alignment; set on success only. Until tp_arena_take() they
 *      are not taken, and the next call may give them again.
 *
 * TP_ENOMEM  nothing changed.
 */
int tp_arena_room(struct tp_arena *a, size_t n, char **out, struct tp_err *err);

/* Take n bytes of the room that the last tp_arena_room() gave; at most as many. */
void tp_arena_take(struct tp_arena *a, size_t n);

#endif
