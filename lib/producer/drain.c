/*
 * drain.c - from the rings to a batch.
 *
 * Rings are taken in turns, beginning with the one at which the last batch ended, so
 * that a busy thread does not keep the others waiting. A record goes into the batch as
 * a whole or stays in its ring; what is counted is what has been decided about.
 */
#include "producer/drain.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/pb.h"
#include "producer/batch.h"
#include "producer/batch_run.h"
#include "producer/recorder_state.h"

#define BATCH_BYTES_DEFAULT ((size_t)1 << 20)
#define GIVE_BACK_WORDS 8192u /* that much is read before a blocked thread may go on */
#define TRIES 8               /* of reading a stack that is in use */

/* One batch in the making. */
struct drain {
    struct tp_recorder *r;
    uint64_t session;
    uint64_t start_ns, stop_ns; /* the window */
    uint64_t now_ns;            /* not later than now */
    struct tp_batch_run run;    /* has it in ticks; the batch and its counts */
    struct tp_err *err;
    int rc; /* TP_ENOMEM ended it */
    bool is_full;
};

/* Whether the time of an event is what the program said, in nanoseconds, and not when
 * it was recorded. */
static inline bool has_own_time(const uint64_t *record)
{
    unsigned kind = TP_RECORD_KIND(record[0]);

    return kind == TP_RECORD_COMPLETE ||
           (kind == TP_RECORD_FLOW && record[3] >> 63 != 0);
}

/* Whether a time is not after the stop. While no stop is known, what has not begun yet
 * may be after it, and is in a batch before that can be told. */
static bool is_before_stop(struct drain *d, uint64_t ns)
{
    if (d->stop_ns != UINT64_MAX)
        return ns <= d->stop_ns;
    if (ns > d->now_ns)
        d->now_ns = tp_now();
    return ns <= d->now_ns;
}

/* Whether an event began in the window. */
static inline bool is_inside(struct drain *d, const uint64_t *record)
{
    if (has_own_time(record))
        return record[1] >= d->start_ns && is_before_stop(d, record[1]);
    return record[1] >= d->run.start_ticks && record[1] <= d->run.stop_ticks;
}

static inline bool is_short(const struct drain *d, const uint64_t *record)
{
    unsigned kind = TP_RECORD_KIND(record[0]);

    return (kind == TP_RECORD_SLICE && record[2] < d->run.min_ticks) ||
           (kind == TP_RECORD_COMPLETE && record[2] < d->r->min_duration_ns);
}

static void note_first(struct tp_recorder *r, const uint64_t *record)
{
    uint64_t ns = has_own_time(record) ? record[1] : tp_ticks_ns(&r->line, record[1]);

    if (r->first_ns == 0 || ns < r->first_ns)
        r->first_ns = ns;
}

/* One that was recorded before the start or after the stop is none of this trace. One
 * that came in time and is of another time was left out, and that is counted. */
static void leave_out(struct tp_recorder *r, const uint64_t *record)
{
    unsigned type = TP_RECORD_TYPE(record[0]);

    r->emitted[type] += has_own_time(record);
    r->filtered[type] += has_own_time(record);
}

/* Decide about a record. Returns false when it must stay where it is. */
static bool take_record(struct drain *d, const uint64_t *record)
{
    struct tp_recorder *r = d->r;
    unsigned type = TP_RECORD_TYPE(record[0]);
    size_t room;

    if (!is_inside(d, record)) {
        leave_out(r, record);
        return true;
    }
    if (is_short(d, record)) {
        r->emitted[type]++;
        r->filtered[type]++;
        return true;
    }
    d->rc = tp_batch_prepare(r->batch, record, &room, d->err);
    if (d->rc != TP_OK)
        return false;
    d->is_full = room > (size_t)(d->run.end - d->run.p);
    if (d->is_full)
        return false;
    d->run.p = tp_batch_put(r->batch, d->run.p, record);
    if (d->run.n_events == 0)
        note_first(r, record);
    d->run.n_events++;
    d->run.by_type[type]++;
    return true;
}

/* From here on the records of a ring are of another thread or session. */
static void take_mark(struct drain *d, struct tp_ring *g, const uint64_t *record)
{
    const struct tp_batch_thread thread = {record[2], g->told_name, &g->is_named};

    if (g->told_session != record[1])
        g->n_open_told = 0;
    if (g->told_session != record[1] || g->told_tid != record[2])
        g->is_named = false;
    g->told_session = record[1];
    g->told_tid = record[2];
    memcpy(g->told_name, record + 3, sizeof(g->told_name) - 1);
    if (g->told_session == d->session)
        tp_batch_set_thread(d->r->batch, &thread);
}

/*
 * Take the records at `tail` that are for the fast lane. Returns the tail behind them.
 *
 * The first event of a batch goes the general way, and records of other kinds are
 * spared the attempt. A run ends where the ring does, and where a blocked thread is to
 * be given room.
 */
static uint64_t take_run(struct drain *d, const struct tp_ring *g, uint64_t tail,
                         uint64_t head)
{
    const uint64_t *from = g->words + (tail & g->mask);
    unsigned kind = TP_RECORD_KIND(*from);
    uint64_t n = g->mask + 1 - (tail & g->mask);
    const uint64_t *next;

    if ((kind != TP_RECORD_SLICE && kind != TP_RECORD_INSTANT) ||
        g->told_session != d->session || d->run.n_events == 0)
        return tail;
    if (n > head - tail)
        n = head - tail;
    if (n > GIVE_BACK_WORDS)
        n = GIVE_BACK_WORDS;
    next = tp_batch_put_run(d->r->batch, &d->run, from, from + n);
    return tp_ring_after(g, tail, (unsigned)(next - from));
}

/* Take the record at *tail, whatever it is. Returns false when it must stay. */
static bool take_one(struct drain *d, struct tp_ring *g, uint64_t *tail)
{
    const uint64_t *record = g->words + (*tail & g->mask);

    if (TP_RECORD_KIND(record[0]) == TP_RECORD_MARK)
        take_mark(d, g, record);
    else if (TP_RECORD_KIND(record[0]) == TP_RECORD_OPEN && g->n_open_told > 0)
        g->n_open_told--; /* a thread that ends has put it here since */
    else if (g->told_session == d->session && !take_record(d, record))
        return false;
    *tail = tp_ring_after(g, *tail, TP_RECORD_WORDS(record[0]));
    return true;
}

/* Take what is in a ring. Returns whether that was all. */
static bool take_ring(struct drain *d, struct tp_ring *g)
{
    const struct tp_batch_thread thread = {g->told_tid, g->told_name, &g->is_named};
    uint64_t tail = atomic_load_explicit(&g->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&g->head, memory_order_acquire);
    uint64_t given = tail;

    tp_batch_set_thread(d->r->batch, &thread);
    while (tail != head) {
        tail = take_run(d, g, tail, head);
        if (tail != head && !take_one(d, g, &tail))
            break;
        if (tail - given > GIVE_BACK_WORDS) {
            atomic_store_explicit(&g->tail, tail, memory_order_release);
            given = tail;
        }
    }
    atomic_store_explicit(&g->tail, tail, memory_order_release);
    return tail == head;
}

static inline uint64_t read_open(const uint64_t *from)
{
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

/*
 * Copy the open slice number `i` from the bottom, as a record that has no end.
 *
 * Returns whether there is one. See slices.c for why it is read as it was.
 */
static bool copy_open(const struct tp_ring *g, unsigned i, uint64_t *copy)
{
    for (int n = 0; n < TRIES; n++) {
        uint64_t before = atomic_load_explicit(&g->n_open, memory_order_acquire);
        unsigned at = 0;
        uint64_t header = read_open(g->stack);

        if (i >= (before & 0xffff))
            return false;
        for (unsigned k = 0; k < i; k++) {
            at += TP_RECORD_WORDS(header);
            header = read_open(g->stack + at % TP_RING_STACK_WORDS);
        }
        if (TP_RECORD_WORDS(header) > TP_RECORD_WORDS_MAX ||
            at + TP_RECORD_WORDS(header) > TP_RING_STACK_WORDS)
            continue;
        for (unsigned k = 1; k < TP_RECORD_WORDS(header); k++)
            copy[k] = read_open(g->stack + at + k);
        copy[0] = (header & ~0xffULL) | TP_RECORD_OPEN;
        if (atomic_load_explicit(&g->n_open, memory_order_acquire) >> 16 ==
            before >> 16)
            return true;
    }
    return false;
}

/* Take the slices of a thread that are open: they are unfinished. */
static bool take_open(struct drain *d, struct tp_ring *g)
{
    const struct tp_batch_thread thread = {g->told_tid, g->told_name, &g->is_named};
    uint64_t copy[TP_RECORD_WORDS_MAX];

    if (g->told_session != d->session ||
        atomic_load_explicit(&g->session, memory_order_acquire) != d->session)
        return true;
    tp_batch_set_thread(d->r->batch, &thread);
    while (copy_open(g, g->n_open_told, copy)) {
        if (!take_record(d, copy))
            return false;
        g->n_open_told++;
    }
    return true;
}

static bool take_all_of(struct drain *d, struct tp_ring *g, bool is_last)
{
    return take_ring(d, g) && (!is_last || take_open(d, g));
}

static struct tp_ring *next_ring(const struct tp_ring *g)
{
    return atomic_load_explicit(&g->next_of_recorder, memory_order_relaxed);
}

/* All rings once, from the one that was interrupted last. */
static void take_rings(struct drain *d, bool is_last)
{
    struct tp_ring *first =
        atomic_load_explicit(&d->r->owner.rings, memory_order_acquire);
    struct tp_ring *from = d->r->interrupted != NULL ? d->r->interrupted : first;

    d->r->interrupted = NULL;
    for (struct tp_ring *g = from; g != NULL; g = next_ring(g)) {
        if (!take_all_of(d, g, is_last)) {
            d->r->interrupted = g;
            return;
        }
    }
    for (struct tp_ring *g = first; g != from; g = next_ring(g)) {
        if (!take_all_of(d, g, is_last)) {
            d->r->interrupted = g;
            return;
        }
    }
}

/* The window of the trace in ticks and in nanoseconds. */
static void set_window(struct drain *d)
{
    struct tp_recorder *r = d->r;
    const struct tp_ticks_line *line = &r->line;

    d->start_ns = atomic_load_explicit(&r->start_ns, memory_order_relaxed);
    d->stop_ns = atomic_load_explicit(&r->stop_ns, memory_order_relaxed);
    d->run.start_ticks = d->start_ns == UINT64_MAX ? UINT64_MAX
                                                   : tp_ticks_at(line, d->start_ns);
    d->run.stop_ticks = d->stop_ns == UINT64_MAX ? UINT64_MAX
                                                 : tp_ticks_at(line, d->stop_ns);
    d->run.min_ticks = r->min_duration_ns == 0
                           ? 0
                           : tp_ticks_at(line, line->ns + r->min_duration_ns) -
                                 line->ticks;
}

/* Count what went into the batch. Names are events of no type. */
static void count(const struct drain *d, struct tp_drain_result *found)
{
    uint32_t n_names = tp_batch_names(d->r->batch);

    found->n_events = d->run.n_events + n_names;
    found->by_type[TP_TYPE_NONE] += n_names;
    for (unsigned type = 0; type < 256; type++)
        d->r->emitted[type] += found->by_type[type];
}

int tp_recorder_drain(struct tp_recorder *r, const struct tp_drain_opts *opts,
                      struct tp_buf *out, struct tp_drain_result *result,
                      struct tp_err *err)
{
    size_t max_bytes = opts->max_bytes != 0 ? opts->max_bytes : BATCH_BYTES_DEFAULT;
    struct tp_drain_result found = {0};
    struct drain d = {.r = r, .err = err, .run = {.by_type = found.by_type}};
    struct tp_native_head head = {.stream_no = opts->stream_no,
                                  .has_clock = opts->has_clock,
                                  .clock = opts->clock};
    int rc;

    assert(max_bytes >= TP_DRAIN_BYTES_MIN && max_bytes <= TP_NATIVE_BYTES_MAX);
    rc = tp_buf_reserve(out, max_bytes + TP_PB_SLACK, err);
    if (rc != TP_OK)
        return rc;
    d.session = atomic_load_explicit(&r->session, memory_order_relaxed);
    d.run.p = out->data + out->len + TP_NATIVE_HEAD_BYTES;
    d.run.end = out->data + out->len + max_bytes;
    set_window(&d);
    tp_batch_begin(r->batch, r->registry, &r->line, opts->stream_no);
    atomic_store_explicit(&r->is_woken, 0, memory_order_relaxed);
    take_rings(&d, opts->is_last);
    if (d.run.n_events == 0 && d.rc != TP_OK)
        return d.rc;
    count(&d, &found);
    found.has_more = d.is_full || d.rc != TP_OK;
    head.n_events = found.n_events;
    if (found.n_events != 0) {
        tp_native_head_put(out->data + out->len, &head);
        out->len = (size_t)(d.run.p - out->data);
    }
    *result = found;
    return TP_OK;
}

void tp_recorder_discard(struct tp_recorder *r)
{
    struct tp_ring *g = atomic_load_explicit(&r->owner.rings, memory_order_acquire);

    for (; g != NULL; g = next_ring(g)) {
        uint64_t head = atomic_load_explicit(&g->head, memory_order_acquire);

        g->told_session = 0;
        atomic_store_explicit(&g->tail, head, memory_order_release);
    }
    r->interrupted = NULL;
    atomic_store_explicit(&r->is_woken, 0, memory_order_relaxed);
}
