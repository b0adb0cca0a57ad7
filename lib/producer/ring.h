/*
 * ring.h - the memory that one thread records into: a ring of finished events and a
 * stack of slices that are still open.
 *
 *      tail                      head
 *       v                         v
 *    ...[ record ][ record ][ rec ]............| slack |   | open | open |....
 *       <- the agent takes        <- the thread adds        bottom     top
 *
 * One thread writes, one (the agent) reads. head and tail count words since the ring
 * was made; their low bits are places. A record never wraps: one that begins in the
 * ring ends in the slack behind it, and the next begins at place 0. A slice is on the
 * stack until it ends and only then becomes a record, so that it is kept or dropped as
 * a whole, and nobody has to pair ends with begins.
 *
 * Rings belong to the process, never to a client, and are never unmapped: a thread may
 * look at its ring after the client is gone. When a thread ends, another takes its ring
 * over, with what is in it; a record says from where on whose events these are.
 *
 * Private to the library. "Thread" functions are for the ring's thread, "agent" ones
 * for the agent of its recorder.
 */
#ifndef TP_PRODUCER_RING_H
#define TP_PRODUCER_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "producer/ticks.h"

/* For what a recording thread seldom meets, and for the functions that it runs then. */
#define TP_RARE(x) __builtin_expect((x) != 0, 0)
#define TP_RARELY __attribute__((noinline, cold))

/* For what each event runs: a part of its caller, or kept apart from it, so that the
 * caller need not save registers for it. */
#define TP_ALWAYS inline __attribute__((always_inline))
#define TP_APART __attribute__((noinline))

/*
 * A record is words of 64 bits:
 *
 *     kind 8 | type 8 | fields 8 | words 16 | name 24        (kind lowest)
 *     then by kind, then the fields: two words each, or one for a number that is small,
 *     or more when the text is copied
 */
enum tp_record_kind {
    TP_RECORD_MARK,        /* session; tid; name of the thread, 2 words */
    TP_RECORD_SLICE,       /* start, duration, in ticks */
    TP_RECORD_OPEN,        /* start; the word of the duration has no meaning */
    TP_RECORD_INSTANT,     /* ticks */
    TP_RECORD_COUNTER,     /* ticks, double */
    TP_RECORD_COUNTER_INT, /* ticks, int64 */
    TP_RECORD_COMPLETE,    /* start and duration in nanoseconds, track */
    TP_RECORD_FLOW,        /* ticks, or nanoseconds when track has bit 63; id; track */
    TP_RECORD_ASYNC        /* ticks, id */
    /* FLOW and ASYNC have their enum tp_phase in place of the number of fields. */
};

#define TP_RECORD_HEADER(kind, type, fields, words, name)                         \
    ((uint64_t)(kind) | (uint64_t)((type)&0xff) << 8 | (uint64_t)(fields) << 16 | \
     (uint64_t)(words) << 24 | (uint64_t)(name) << 40)
#define TP_RECORD_KIND(h) ((unsigned)((h)&0xff))
#define TP_RECORD_TYPE(h) ((unsigned)((h) >> 8 & 0xff))
#define TP_RECORD_FIELDS(h) ((unsigned)((h) >> 16 & 0xff))
#define TP_RECORD_WORDS(h) ((unsigned)((h) >> 24 & 0xffff))
#define TP_RECORD_NAME(h) ((uint32_t)((h) >> 40))

/*
 * The first word of a field: key 20 | kind 8 | words of the text that follow 16. A
 * whole number of up to 36 bits has no second word: it is where the words would be.
 * Fields are most of what a busy thread writes to memory, and that is what they cost.
 */
#define TP_RECORD_FIELD(key, kind, words) \
    ((uint64_t)(key) | (uint64_t)(kind) << 20 | (uint64_t)(words) << 28)
#define TP_RECORD_FIELD_KEY(w) ((uint32_t)((w)&0xfffff))
#define TP_RECORD_FIELD_KIND(w) ((unsigned)((w) >> 20 & 0xff))
#define TP_RECORD_FIELD_WORDS(w) ((unsigned)((w) >> 28 & 0xffff))
#define TP_RECORD_FIELD_SMALL 0x80u /* such a number; all others are tp_field_kind */
#define TP_RECORD_FIELD_NONE 0x7fu  /* which is none of them */
#define TP_RECORD_SMALL_VALUE(w) ((int64_t)(w) >> 28)

#define TP_RECORD_WORDS_MAX 256u /* 2 KiB: of an event */
#define TP_RECORD_MARK_WORDS 5u
#define TP_RING_DEPTH_MAX 128u /* slices open at a time */
#define TP_RING_STACK_WORDS 2048u
#define TP_RING_BYTES_MIN ((size_t)16 << 10)
#define TP_RING_BYTES_MAX ((size_t)1 << 30)

enum { TP_RING_DROP_FULL, TP_RING_DROP_TOO_LARGE, TP_RING_DROPS };

struct tp_ring {
    /* Of the thread; what is atomic is read by the agent. */
    _Atomic uint64_t session; /* of the recorder that it was last entered for */
    uint64_t *words;
    uint64_t mask;  /* words - 1 */
    uint64_t limit; /* head may go up to here without a look at tail, nor wraps */
    _Atomic uint64_t head;
    uint64_t *stack;
    uint64_t top; /* words of the stack in use | slices opened on top of a full one <<
                     32: one look tells that both are small */
    _Atomic uint64_t n_open; /* slices on the stack | slices ever taken off << 16 */
    uint16_t starts[TP_RING_DEPTH_MAX]; /* where each slice begins in the stack */
    struct tp_ring *next_of_thread;
    uint64_t tid;
    char thread_name[16];
    _Atomic uint64_t counted_session;             /* which `dropped` is about */
    _Atomic uint64_t dropped[TP_RING_DROPS][256]; /* by type, in that session */

    /* Of the agent. */
    _Alignas(64) _Atomic uint64_t tail;
    uint64_t told_session; /* of the last mark that it read */
    uint64_t told_tid;
    char told_name[17];
    bool is_named;        /* the trace has the thread's name */
    unsigned n_open_told; /* slices of the stack that it has taken as unfinished */

    /* Of the pool; its lock guards them. */
    uint64_t recorder_id; /* 0: free for any */
    bool is_held;         /* by a living thread */
    bool is_idle;         /* has no memory but that of this struct: see ring.c */
    struct tp_ring *next_of_pool;
    _Atomic(struct tp_ring *) next_of_recorder; /* set once, before it is published */
};

/* What the pool takes to be known of a recorder. */
struct tp_ring_owner {
    uint64_t recorder_id;            /* not 0; never given twice */
    size_t ring_bytes;               /* a power of two between the limits above */
    size_t all_bytes_max;            /* in use by all rings of the process */
    _Atomic(struct tp_ring *) rings; /* of this recorder: only ever gets longer */
};

/*
 * Thread: a ring of the calling thread for the owner, found or taken.
 *
 * Returns NULL when the process has reached the limit, or there is no memory.
 */
struct tp_ring *tp_rings_of_thread(struct tp_ring_owner *owner);

/* Thread: the ring of the calling thread that is in a session, which is one of an owner
 * that lives; NULL: none is. No lock, so threads that use several clients in turns do
 * not wait for each other. */
struct tp_ring *tp_rings_in_session(uint64_t session);

/* Give all rings of an owner back. No thread may be recording into them. */
void tp_rings_release(struct tp_ring_owner *owner);

/* The ring that the calling thread used last; never NULL, at first one of session 0. */
extern _Thread_local struct tp_ring *tp_ring_here
    __attribute__((tls_model("initial-exec")));

/* Thread: write a mark: the records that follow are of this thread and session. Returns
 * whether there was room for it. */
bool tp_ring_mark(struct tp_ring *g, uint64_t session);

/* Thread: begin a session: the stack and the counts of drops are emptied and a mark is
 * written. Returns whether there was room for it; if not, nothing has changed. */
bool tp_ring_enter(struct tp_ring *g, uint64_t session);

/* Thread: count an event as dropped. */
static inline void tp_ring_count(struct tp_ring *g, int cause, unsigned type)
{
    _Atomic uint64_t *n = &g->dropped[cause][type];

    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* Thread: let head go on from where it is (or is about to be) to a limit that tail
 * allows, but not past the end of the ring: who stays below need not ask whether a
 * record wraps. */
static inline void tp_ring_set_limit(struct tp_ring *g, uint64_t head, uint64_t limit)
{
    uint64_t end = (head | g->mask) + 1;

    g->limit = limit < end ? limit : end;
}

/* Where the record after one of n words at a position begins. */
static inline uint64_t tp_ring_after(const struct tp_ring *g, uint64_t at, unsigned n)
{
    return (at & g->mask) + n > g->mask ? (at | g->mask) + 1 : at + n;
}

/* Memory in bytes that all rings use, and how many there are, for tests. */
size_t tp_rings_bytes(size_t *n_rings);

/* For fork(): nobody may take or give a ring meanwhile. In the child all rings but
 * those of the calling thread are free, and all are empty. */
void tp_rings_lock(void);
void tp_rings_unlock(void);
void tp_rings_forked(void);

#endif
