/*
 * backlog.h - batches that the service has not taken yet, in order, up to a limit.
 *
 * A batch gets its number when it is taken in, so numbers have no gaps, and keeps it
 * until the service has it: sent twice it is stored once. Memory of some batches that
 * are done is used for the next ones: fresh pages cost more than encoding does.
 *
 * The limit is one of memory: a batch that waits behind another holds at most a third
 * more than it is charged for, and what is kept for the next ones counts too. Beside
 * the limit there may be the oldest batch, one that is being filled and one that is
 * kept. Agent thread only.
 */
#ifndef TP_PRODUCER_BACKLOG_H
#define TP_PRODUCER_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "producer/drain.h"

/* Plain data. */
struct tp_batch {
    struct tp_batch *next;
    struct tp_buf payload;
    struct tp_drain_result events;
    uint64_t seq; /* from 1; while in the backlog */
};

/* Plain data; the zero value with a limit is ready. */
struct tp_backlog {
    size_t limit_bytes;
    struct tp_batch *first, *last; /* the oldest is sent next */
    struct tp_batch *spares;       /* empty and ready */
    size_t n_spares;
    size_t spare_bytes; /* of their buffers */
    size_t bytes;       /* what batches are charged for: all payloads and structs */
    uint64_t n_events;
    uint64_t last_seq;
};

/*
 * An empty batch with room for n_bytes; it belongs to the caller until it is pushed or
 * returned.
 *
 * TP_ENOMEM  there is none.
 */
int tp_backlog_get(struct tp_backlog *b, size_t n_bytes, struct tp_batch **out,
                   struct tp_err *err);

/* Whether a batch with a payload of n bytes has room: as the only one it always has. */
bool tp_backlog_has_room(const struct tp_backlog *b, size_t n);

/* Take a batch in as the newest; it is b's, and may have moved. */
void tp_backlog_push(struct tp_backlog *b, struct tp_batch *batch);

/* Give a batch back that is not needed after all. */
void tp_backlog_return(struct tp_backlog *b, struct tp_batch *batch);

/* How many times longer than usual to gather events for the next batch: 1 while none
 * waits behind the oldest one, twice as much for each that does, 16 at most. */
unsigned tp_backlog_slowdown(const struct tp_backlog *b);

/* The oldest one is done with; there must be one. */
void tp_backlog_pop(struct tp_backlog *b);

/* Release the memory that is kept for the next batches. */
void tp_backlog_trim(struct tp_backlog *b);

/* Release all batches, and number those that follow from 1 on. */
void tp_backlog_clear(struct tp_backlog *b);

#endif
