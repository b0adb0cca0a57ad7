/*
 * waiters.h - connections that are suspended until something happens, and the thread
 * that lets time pass.
 *
 * The thread calls tp_engine_tick(), pokes the workers when there is work, looks which
 * waiters are ready, and notices clients that have gone away. A waiter is known by its
 * descriptor and a generation, never by a pointer, so that a late event of a closed
 * connection hits nobody. Any function from any thread, except new, start, stop and
 * free.
 */
#ifndef TP_SERVER_WAITERS_H
#define TP_SERVER_WAITERS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/now.h"

struct tp_buf;
struct tp_engine;
struct tp_err;
struct tp_waiters;
struct tp_workers;

/* What a waiter waits for. Called with the lock of the waiters held; it must be cheap.
 * */
typedef bool (*tp_ready_fn)(void *arg, struct tp_now now);

/* One that waits. Plain data; copied. */
struct tp_waiter {
    int fd; /* of the connection, >= 0, to notice that its client goes away */
    uint64_t deadline_ns;       /* monotonic; UINT64_MAX = none */
    bool is_brief;              /* waits on when its client goes away */
    bool is_watch;              /* asked every LOOK_NS; else when something changed */
    void (*suspend)(void *arg); /* when it starts to wait */
    void (*resume)(void *arg);  /* last; arg may be gone afterwards */
    tp_ready_fn ready;
    /* Something is being told that cannot wait until it is resumed: all whom it
     * concerns say it before the first is. out is room to write it in, empty. Returns
     * whether it is ready for that; else ready is asked. NULL: it never says anything.
     * Called as ready is. */
    bool (*speak)(void *arg, struct tp_now now, struct tp_buf *out);
    void (*on_gone)(void *arg); /* its client went away; before it is resumed */
    void (*on_stop)(void *arg); /* the service stops; before it is resumed */
    void *arg;
};

/* Create the set. TP_ENOMEM, TP_EIO. */
int tp_waiters_new(struct tp_engine *engine, struct tp_waiters **out,
                   struct tp_err *err);

/* Start the thread. workers may be NULL. TP_EIO. */
int tp_waiters_start(struct tp_waiters *w, struct tp_workers *workers,
                     struct tp_err *err);

/* Resume all that wait, and from then on each that is added at once. The engine goes on
 * being ticked. */
void tp_waiters_drain(struct tp_waiters *w);

/* End the thread. NULL is allowed. */
void tp_waiters_stop(struct tp_waiters *w);

/* Release the set; nobody waits any more. NULL is allowed. */
void tp_waiters_free(struct tp_waiters *w);

/*
 * Suspend a connection and wait. To be called from the handler or reader callback of
 * the connection. It may be resumed before this returns.
 *
 * TP_ENOMEM, TP_EIO  it is not suspended.
 */
int tp_waiters_add(struct tp_waiters *w, const struct tp_waiter *waiter,
                   struct tp_err *err);

/* The connection of a descriptor ends: to be called before it is closed, when it does
 * not wait. One that never waited is allowed. Cheap. */
void tp_waiters_forget(struct tp_waiters *w, int fd);

/* Say that something changed that others may wait for: they are asked within
 * milliseconds. Cheap. */
void tp_waiters_poke(struct tp_waiters *w);

/* How many wait. */
uint64_t tp_waiters_count(struct tp_waiters *w);

#endif
