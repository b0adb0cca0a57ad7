#include "producer/room.h"

#include <time.h>
#include <traceplane/traceplane.h>

#include "producer/no_cancel.h"
#include "producer/ticks.h"

#define WAIT_NS 20000       /* between two looks at a full ring */
#define REFUSED_NS 10000000 /* between two tries to have one */

/* What the thread was told when it last wanted a ring and there was none. */
static _Thread_local struct {
    uint64_t session;
    uint64_t until_ns; /* not to be tried again before, on the coarse clock */
    unsigned number;   /* from 1: of threads that were refused; 0 = it has none yet */
} refused __attribute__((tls_model("initial-exec")));

void tp_room_drop(struct tp_recorder *r, struct tp_ring *g, int cause, unsigned type,
                  uint64_t at)
{
    if ((type & TP_ROOM_OWN_TIME) != 0 ||
        (at >= atomic_load_explicit(&r->start_ticks, memory_order_relaxed) &&
         at <= atomic_load_explicit(&r->stop_ticks, memory_order_relaxed)))
        tp_ring_count(g, cause, type & 255);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Count an event of a thread that has no ring: many of them at a time do not write to
 * one place. */
static void lose(struct tp_recorder *r, unsigned type)
{
    static _Atomic unsigned last_number;

    if (refused.number == 0)
        refused.number = atomic_fetch_add(&last_number, 1) + 1;
    atomic_fetch_add_explicit(&r->lost[refused.number % TP_RECORDER_LOSERS][type], 1,
                              memory_order_relaxed);
}

/* A ring for the thread, which is in no session or in another one. A thread that gets
 * none records no slower for it than one that has its own, nor do others: it takes the
 * lock of the pool a hundred times a second. */
static struct tp_ring *find_ring(struct tp_recorder *r, uint64_t session)
{
    struct tp_ring *g = tp_rings_in_session(session);

    if (g != NULL || (refused.session == session &&
                      clock_ns(CLOCK_MONOTONIC_COARSE) < refused.until_ns))
        return g;
    g = tp_rings_of_thread(&r->owner);
    if (g == NULL) {
        refused.session = session;
        refused.until_ns = clock_ns(CLOCK_MONOTONIC_COARSE) + REFUSED_NS;
    }
    return g;
}

struct tp_ring *tp_room_enter(struct tp_recorder *r, unsigned type)
{
    uint64_t session = atomic_load_explicit(&r->session, memory_order_relaxed);
    struct tp_ring *g = find_ring(r, session);

    if (g != NULL &&
        (atomic_load_explicit(&g->session, memory_order_relaxed) == session ||
         tp_ring_enter(g, session))) {
        tp_ring_here = g;
        return g;
    }
    lose(r, type);
    if (g != NULL) /* it is full, of a trace before */
        tp_recorder_wake(r);
    return NULL;
}

struct tp_ring *tp_room_enter_again(struct tp_recorder *r)
{
    uint64_t session = atomic_load_explicit(&r->session, memory_order_relaxed);
    struct tp_ring *g = tp_rings_in_session(session);

    if (g != NULL)
        tp_ring_here = g;
    return g;
}

/* Wait a moment for the agent. Returns false when the wait is over: it has lasted
 * block_ns, or the recording has stopped. */
static bool wait_a_moment(const struct tp_recorder *r, unsigned type, uint64_t *begin)
{
    const struct timespec pause = {0, WAIT_NS};
    uint64_t now;
    int before;

    if (r->block_ns == 0 || !tp_enabled(&r->client, type))
        return false;
    now = clock_ns(CLOCK_MONOTONIC);
    if (*begin == 0)
        *begin = now;
    if (now - *begin >= r->block_ns)
        return false;
    before = tp_no_cancel_begin();
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    tp_no_cancel_end(before);
    return true;
}

bool tp_room_find(struct tp_recorder *r, struct tp_ring *g, uint64_t after,
                  unsigned type, uint64_t at)
{
    uint64_t capacity = g->mask + 1;
    uint64_t begin = 0;

    do {
        uint64_t tail = atomic_load_explicit(&g->tail, memory_order_acquire);

        if (after - tail <= capacity / 2) {
            tp_ring_set_limit(g, after, tail + capacity / 2);
            return true;
        }
        tp_recorder_wake(r);
        if (after - tail <= capacity) {
            tp_ring_set_limit(g, after, tail + capacity);
            return true;
        }
    } while (wait_a_moment(r, type, &begin));
    tp_room_drop(r, g, TP_RING_DROP_FULL, type, at);
    return false;
}
