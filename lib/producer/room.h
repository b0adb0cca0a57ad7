/*
 * room.h - the ring of a recording thread, and room in it for a record.
 *
 *     tp_room_ring --> tp_room_reserve --> the words of the record --> tp_room_commit
 *
 * On x86 none of the atomic accesses here costs more than a plain one. What is rare is
 * out of line. Private to the library; functions for the thread that records.
 */
#ifndef TP_PRODUCER_ROOM_H
#define TP_PRODUCER_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "producer/recorder_state.h"
#include "producer/ring.h"

#define TP_ROOM_OWN_TIME 256u   /* beside a type: the program says when the event was */
#define TP_ROOM_AHEAD_WORDS 64u /* before head memory is fetched: eight lines */

/*
 * Count an event that is not kept, unless it is before the start of the trace or after
 * its stop.
 *
 * type  may have TP_ROOM_OWN_TIME.
 * at    when it began, in ticks; not looked at with that.
 */
TP_RARELY void tp_room_drop(struct tp_recorder *r, struct tp_ring *g, int cause,
                            unsigned type, uint64_t at);

/* Whether the ring that the thread used last is in the session at hand, as nearly
 * always. */
static inline bool tp_room_is_here(const struct tp_ring *g, const struct tp_recorder *r)
{
    return __builtin_expect(atomic_load_explicit(&g->session, memory_order_relaxed) ==
                                atomic_load_explicit(&r->session, memory_order_relaxed),
                            1);
}

/* The rare ways of the next two. */
TP_RARELY struct tp_ring *tp_room_enter(struct tp_recorder *r, unsigned type);
TP_RARELY struct tp_ring *tp_room_enter_again(struct tp_recorder *r);

/* The ring of the thread for the session at hand. NULL: there is none, and the event,
 * of that type, is counted as dropped. */
static inline struct tp_ring *tp_room_ring(struct tp_recorder *r, unsigned type)
{
    struct tp_ring *g = tp_ring_here;

    if (!tp_room_is_here(g, r))
        return tp_room_enter(r, type);
    return g;
}

/* For what only goes on with an open slice: the ring if the thread is in the session,
 * or NULL. */
static inline struct tp_ring *tp_room_ring_held(struct tp_recorder *r)
{
    struct tp_ring *g = tp_ring_here;

    if (!tp_room_is_here(g, r))
        return tp_room_enter_again(r);
    return g;
}

/* Where the next record begins. */
static inline uint64_t tp_room_head(const struct tp_ring *g)
{
    return atomic_load_explicit(&g->head, memory_order_relaxed);
}

/*
 * The short way, which nearly all events go. Beside tp_room_is_here() this says whether
 * it can be gone: there is room for n words below the limit, so the record does not
 * wrap.
 */
static inline bool tp_room_is_at_hand(const struct tp_ring *g, uint64_t head,
                                      uint64_t n)
{
    return __builtin_expect(head + n <= g->limit, 1);
}

/*
 * Have memory that is soon to be written in this core's cache; the agent's core
 * has read it. A processor that does not know it does nothing, nor does memory that is
 * not there.
 */
static inline void tp_room_fetch(const uint64_t *at)
{
#if defined(__x86_64__)
    __asm__("prefetchw %0" : : "m"(*at));
#else
    __builtin_prefetch(at, 1);
#endif
}

/* Where the record is to be written then; head + n is given to tp_room_commit(). */
static inline uint64_t *tp_room_at_hand(const struct tp_ring *g, uint64_t head)
{
    uint64_t *p = g->words + (head & g->mask);

    tp_room_fetch(p + TP_ROOM_AHEAD_WORDS);
    return p;
}

/* `after` is past the limit: look where tail is, wake the agent, and wait if that is
 * asked for. Returns whether there is room up to `after`. */
TP_RARELY bool tp_room_find(struct tp_recorder *r, struct tp_ring *g, uint64_t after,
                            unsigned type, uint64_t at);

/*
 * Room for a record of n words.
 *
 * type   may have TP_ROOM_OWN_TIME.
 * at     as for tp_room_drop().
 * after  set: what to give to tp_room_commit().
 *
 * Returns NULL when there is none; then the event is counted as dropped.
 */
static inline uint64_t *tp_room_reserve(struct tp_recorder *r, struct tp_ring *g,
                                        unsigned n, unsigned type, uint64_t at,
                                        uint64_t *after)
{
    uint64_t head = tp_room_head(g);

    *after = tp_ring_after(g, head, n);
    if (TP_RARE(*after > g->limit) && !tp_room_find(r, g, *after, type, at))
        return NULL;
    return g->words + (head & g->mask);
}

/* Give the record to the agent. */
static inline void tp_room_commit(struct tp_ring *g, uint64_t after)
{
    atomic_store_explicit(&g->head, after, memory_order_release);
}

#endif
