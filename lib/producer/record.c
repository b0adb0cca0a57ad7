/*
 * record.c - the functions of record.h: what a recording thread runs.
 *
 * The common way through each of them is: the type's byte, the ring of the thread, its
 * session, room in it, the words of the record, and a store of head with release, which
 * gives them to the agent. On x86 none of the atomic accesses here costs more than a
 * plain one; what costs is the reading of the clock. All that is rare is out of line.
 *
 * The stack of open slices is read by the agent when a trace has stopped, while the
 * thread may go on. Words of a slice that is open do not change until it is taken off;
 * taking one off also changes the upper bits of n_open, so a reader that finds n_open
 * as before has read nothing that was reused meanwhile. For that, words of the stack
 * are stored with release: none of them is seen before the change of n_open that came
 * first.
 */
#include <string.h>
#include <traceplane/traceplane.h>

#include "producer/recorder_state.h"
#include "producer/ring.h"
#include "producer/ticks.h"

#define RARE(x) __builtin_expect((x) != 0, 0)
#define RARELY __attribute__((noinline, cold))
#define WAIT_NS 20000 /* between two looks at a full ring */
#define COPY_BYTES_MAX 1023u
#define FIELDS_TOO_LARGE UINT32_MAX
#define SMALL_MAX (UINT64_C(1) << (TP_RECORD_SMALL_BITS - 1))
#define AHEAD_WORDS 64u /* so far before head memory is fetched: eight lines */
#define OWN_TIME 256u   /* beside a type: the program says when the event was */

uint64_t tp_now(void)
{
    const struct tp_ticks_line *line = tp_ticks_line();

    return tp_ticks_ns(line, tp_ticks_now());
}

/* Count an event that is not kept, unless it is before the start of the trace or after
 * its stop. */
static RARELY void drop(struct tp_recorder *r, struct tp_ring *g, int cause,
                        unsigned type)
{
    uint64_t now = tp_ticks_now();

    if ((type & OWN_TIME) != 0 ||
        (now >= atomic_load_explicit(&r->start_ticks, memory_order_relaxed) &&
         now <= atomic_load_explicit(&r->stop_ticks, memory_order_relaxed)))
        tp_ring_count(g, cause, type & 255);
}

/* The ring of the thread for the session at hand. NULL: there is none, and the event
 * is counted as dropped. */
static RARELY struct tp_ring *enter(struct tp_recorder *r, unsigned type)
{
    uint64_t session = atomic_load_explicit(&r->session, memory_order_relaxed);
    struct tp_ring *g = tp_rings_of_thread(&r->owner);

    if (g != NULL &&
        (atomic_load_explicit(&g->session, memory_order_relaxed) == session ||
         tp_ring_enter(g, session))) {
        tp_ring_here = g;
        return g;
    }
    atomic_fetch_add_explicit(&r->lost[type], 1, memory_order_relaxed);
    tp_recorder_wake(r);
    return NULL;
}

/* For what only goes on with an open slice: the ring if the thread is in the session.
 *  */
static RARELY struct tp_ring *reenter(struct tp_recorder *r)
{
    uint64_t session = atomic_load_explicit(&r->session, memory_order_relaxed);
    struct tp_ring *g = tp_rings_held(&r->owner);

    if (g == NULL || atomic_load_explicit(&g->session, memory_order_relaxed) != session)
        return NULL;
    tp_ring_here = g;
    return g;
}

static inline struct tp_ring *entered(struct tp_recorder *r)
{
    struct tp_ring *g = tp_ring_here;

    if (RARE(atomic_load_explicit(&g->session, memory_order_relaxed) !=
             atomic_load_explicit(&r->session, memory_order_relaxed)))
        return reenter(r);
    return g;
}

static inline struct tp_ring *ring_of(struct tp_recorder *r, unsigned type)
{
    struct tp_ring *g = tp_ring_here;

    if (RARE(atomic_load_explicit(&g->session, memory_order_relaxed) !=
             atomic_load_explicit(&r->session, memory_order_relaxed)))
        return enter(r, type);
    return g;
}

/* Wait a moment for the agent. Returns false when the wait is over: it has lasted
 * block_ns, or the recording has stopped. */
static bool wait_a_moment(const struct tp_recorder *r, unsigned type, uint64_t *begin)
{
    const struct timespec pause = {0, WAIT_NS};
    struct timespec t;
    uint64_t now;

    if (r->block_ns == 0 || !tp_enabled(&r->client, type))
        return false;
    clock_gettime(CLOCK_MONOTONIC, &t);
    now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    if (*begin == 0)
        *begin = now;
    if (now - *begin >= r->block_ns)
        return false;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    return true;
}

/* Head is past the limit: look where tail is, wake the agent, and wait if that is asked
 * for. Returns whether there is room up to `after` and for the word behind it, which
 * put_fields() may write. */
static RARELY bool find_room(struct tp_recorder *r, struct tp_ring *g, uint64_t after,
                             unsigned type)
{
    uint64_t capacity = g->mask + 1;
    uint64_t begin = 0;

    do {
        uint64_t tail = atomic_load_explicit(&g->tail, memory_order_acquire);

        if (after - tail <= capacity / 2) {
            g->limit = tail + capacity / 2;
            return true;
        }
        tp_recorder_wake(r);
        if (after - tail < capacity) {
            g->limit = tail + capacity - 1;
            return true;
        }
    } while (wait_a_moment(r, type, &begin));
    drop(r, g, TP_RING_DROP_FULL, type);
    return false;
}

/* Room for a record of n words. NULL: there is none, and it is counted. */
static inline uint64_t *reserve(struct tp_recorder *r, struct tp_ring *g, unsigned n,
                                unsigned type, uint64_t *after)
{
    uint64_t head = atomic_load_explicit(&g->head, memory_order_relaxed);

    *after = tp_ring_after(g, head, n);
    if (RARE(*after > g->limit) && !find_room(r, g, *after, type))
        return NULL;
    tp_ring_fetch(g, head + AHEAD_WORDS);
    return g->words + (head & g->mask);
}

/* Give the record to the agent. */
static inline void commit(struct tp_ring *g, uint64_t after)
{
    atomic_store_explicit(&g->head, after, memory_order_release);
}

static inline bool is_copied(const struct tp_field *f)
{
    return f->kind == TP_FIELD_COPY;
}

static uint32_t copied_bytes(const struct tp_field *f)
{
    return f->value.s == NULL ? 0 : (uint32_t)strnlen(f->value.s, COPY_BYTES_MAX);
}

/* Whether a field is a whole number that takes one word: see ring.h. */
static inline unsigned is_small(const struct tp_field *f)
{
    return (unsigned)(f->kind == TP_FIELD_INT) &
           (unsigned)((uint64_t)f->value.i + SMALL_MAX < 2 * SMALL_MAX);
}

/* The words that fields take, or FIELDS_TOO_LARGE. */
static RARELY unsigned words_with_copies(struct tp_fields fields)
{
    unsigned n = 0;

    if (fields.n > TP_FIELDS_MAX)
        return FIELDS_TOO_LARGE;
    for (size_t i = 0; i < fields.n; i++)
        n += is_copied(&fields.items[i]) ? 2 + copied_bytes(&fields.items[i]) / 8
                                         : 2 - is_small(&fields.items[i]);
    return n <= TP_RECORD_WORDS_MAX - 4 ? n : FIELDS_TOO_LARGE;
}

static inline unsigned words_of(struct tp_fields fields, bool *has_copies)
{
    bool any = fields.n > TP_FIELDS_MAX;
    unsigned n = (unsigned)fields.n * 2;

    for (size_t i = 0; i < fields.n && !any; i++) {
        any = is_copied(&fields.items[i]);
        n -= is_small(&fields.items[i]);
    }
    *has_copies = any;
    return RARE(any) ? words_with_copies(fields) : n;
}

/* A number that tp_intern() never gives is as good as that of "". */
static inline uint64_t key_of(const struct tp_field *f)
{
    return f->key <= TP_RECORD_FIELD_KEY(UINT32_MAX) ? f->key : 0;
}

/* The words of a field that is not copied: {key | kind << 32, value}, or one word. */
struct field_words {
    uint64_t first, second;
    unsigned n;
};

static inline struct field_words field_words(const struct tp_field *f)
{
    /* A kind that there is not must not read as one that has another length. */
    uint64_t kind = f->kind < TP_RECORD_FIELD_SMALL ? f->kind : TP_RECORD_FIELD_NONE;
    struct field_words w = {.first = key_of(f) | kind << 32, .n = 2};

    memcpy(&w.second, &f->value, sizeof(w.second));
    if (is_small(f)) {
        w.first = TP_RECORD_SMALL(key_of(f), w.second);
        w.n = 1;
    }
    return w;
}

/* The words of all fields, of which one is copied. The last word of a text holds its
 * NUL: a text of n bytes takes n / 8 + 1 words. */
static RARELY void put_with_copies(uint64_t *p, struct tp_fields fields)
{
    for (size_t i = 0; i < fields.n; i++) {
        const struct tp_field *f = &fields.items[i];
        uint32_t bytes;

        if (!is_copied(f)) {
            const struct field_words w = field_words(f);

            p[0] = w.first;
            if (w.n == 2)
                p[1] = w.second;
            p += w.n;
            continue;
        }
        bytes = copied_bytes(f);
        *p++ = key_of(f) | (uint64_t)TP_FIELD_COPY << 32 |
               (uint64_t)(bytes / 8 + 1) << 40;
        p[bytes / 8] = 0;
        if (bytes > 0)
            memcpy(p, f->value.s, bytes);
        p += bytes / 8 + 1;
    }
}

static inline void put_fields(uint64_t *p, struct tp_fields fields, bool has_copies)
{
    if (RARE(has_copies)) {
        put_with_copies(p, fields);
        return;
    }
    for (size_t i = 0; i < fields.n; i++) {
        const struct field_words w = field_words(&fields.items[i]);

        /* Without a branch: what comes next may be written over the second word. Behind
         * the last field that is a word which reserve() has left free, or slack. */
        p[0] = w.first;
        p[1] = w.second;
        p += w.n;
    }
}

/* What is stored into the stack is seen in order; see the head of this file. */
static inline void put_open(uint64_t *to, uint64_t v)
{
    __atomic_store_n(to, v, __ATOMIC_RELEASE);
}

static inline void put_open_fields(uint64_t *to, struct tp_fields fields,
                                   bool has_copies, unsigned n)
{
    uint64_t words[TP_RECORD_WORDS_MAX];

    if (RARE(has_copies)) {
        put_with_copies(words, fields);
        for (unsigned i = 0; i < n; i++)
            put_open(to + i, words[i]);
        return;
    }
    for (size_t i = 0; i < fields.n; i++) {
        const struct field_words w = field_words(&fields.items[i]);

        put_open(to, w.first);
        put_open(to + 1, w.second); /* likewise: behind the top is a spare word */
        to += w.n;
    }
}

/* A slice that the stack has no room for: its end is passed over. */
static RARELY void begin_over(struct tp_recorder *r, struct tp_ring *g, unsigned type)
{
    g->n_over++;
    drop(r, g, TP_RING_DROP_TOO_LARGE, type);
}

void tp_begin(struct tp_client *client, unsigned type, uint32_t name,
              struct tp_fields fields)
{
    struct tp_recorder *r = (struct tp_recorder *)client;
    struct tp_ring *g;
    uint64_t n_open;
    uint64_t *open;
    bool has_copies;
    unsigned n;

    if (!tp_enabled(client, type) || (g = ring_of(r, type & 255)) == NULL)
        return;
    n = words_of(fields, &has_copies);
    n_open = atomic_load_explicit(&g->n_open, memory_order_relaxed);
    if (RARE((n_open & 0xffff) == TP_RING_DEPTH_MAX || n == FIELDS_TOO_LARGE ||
             g->top + n + 3 >= TP_RING_STACK_WORDS || g->n_over > 0)) {
        begin_over(r, g, type & 255);
        return;
    }
    open = g->stack + g->top;
    put_open(open, TP_RECORD_HEADER(TP_RECORD_SLICE, type, fields.n, n + 3, name));
    put_open_fields(open + 3, fields, has_copies, n);
    g->starts[n_open & 0xffff] = (uint16_t)g->top;
    g->top += n + 3;
    put_open(open + 1, tp_ticks_now());
    atomic_store_explicit(&g->n_open, n_open + 1, memory_order_release);
}

void tp_add(struct tp_client *client, unsigned type, struct tp_fields fields)
{
    struct tp_recorder *r = (struct tp_recorder *)client;
    struct tp_ring *g;
    uint64_t depth;
    uint64_t *open;
    uint64_t header;
    bool has_copies;
    unsigned n;

    if (!tp_enabled(client, type) || (g = entered(r)) == NULL)
        return;
    depth = atomic_load_explicit(&g->n_open, memory_order_relaxed) & 0xffff;
    if (depth == 0 || g->n_over > 0)
        return;
    open = g->stack + g->starts[depth - 1];
    header = *open;
    n = words_of(fields, &has_copies);
    if (TP_RECORD_TYPE(header) != (type & 255) || n == FIELDS_TOO_LARGE ||
        TP_RECORD_WORDS(header) + n > TP_RECORD_WORDS_MAX ||
        g->top + n >= TP_RING_STACK_WORDS ||
        TP_RECORD_FIELDS(header) + fields.n > TP_FIELDS_MAX)
        return;
    put_open_fields(g->stack + g->top, fields, has_copies, n);
    g->top += n;
    put_open(open, header + ((uint64_t)fields.n << 16) + ((uint64_t)n << 24));
}

/* Take the topmost slice off the stack and make it a record that ends at `now`. */
static inline void end_top(struct tp_recorder *r, struct tp_ring *g, uint64_t n_open,
                           uint64_t now)
{
    unsigned start = g->starts[(n_open & 0xffff) - 1];
    const uint64_t *open = g->stack + start;
    unsigned n = TP_RECORD_WORDS(open[0]);
    uint64_t after;
    uint64_t *p = reserve(r, g, n, TP_RECORD_TYPE(open[0]), &after);

    if (p != NULL) {
        p[0] = open[0];
        p[1] = open[1];
        p[2] = now - open[1];
        for (unsigned i = 3; i < n; i++)
            p[i] = open[i];
        commit(g, after);
    }
    g->top = start;
    atomic_store_explicit(&g->n_open, n_open + (1 << 16) - 1, memory_order_release);
}

/* The topmost slice is of another type: ends were left out, or there was no begin. */
static RARELY void end_below(struct tp_recorder *r, struct tp_ring *g, unsigned type,
                             uint64_t now)
{
    uint64_t n_open = atomic_load_explicit(&g->n_open, memory_order_relaxed);
    unsigned depth = (unsigned)(n_open & 0xffff);
    unsigned at = depth;

    while (at > 0 && TP_RECORD_TYPE(g->stack[g->starts[at - 1]]) != type)
        at--;
    for (; at > 0 && depth >= at; depth--) {
        end_top(r, g, n_open, now);
        n_open = atomic_load_explicit(&g->n_open, memory_order_relaxed);
    }
}

void tp_end(struct tp_client *client, unsigned type)
{
    struct tp_recorder *r = (struct tp_recorder *)client;
    struct tp_ring *g;
    uint64_t n_open;
    uint64_t now;

    if (!tp_enabled(client, type))
        return;
    now = tp_ticks_now();
    if ((g = entered(r)) == NULL)
        return;
    if (RARE(g->n_over)) {
        g->n_over--;
        return;
    }
    n_open = atomic_load_explicit(&g->n_open, memory_order_relaxed);
    if ((n_open & 0xffff) == 0)
        return;
    if (RARE(TP_RECORD_TYPE(g->stack[g->starts[(n_open & 0xffff) - 1]]) !=
             (type & 255)))
        end_below(r, g, type & 255, now);
    else
        end_top(r, g, n_open, now);
}

void tp_instant(struct tp_client *client, unsigned type, uint32_t name,
                struct tp_fields fields)
{
    struct tp_recorder *r = (struct tp_recorder *)client;
    struct tp_ring *g;
    uint64_t after;
    uint64_t *p;
    bool has_copies;
    unsigned n;

    if (!tp_enabled(client, type) || (g = ring_of(r, type & 255)) == NULL)
        return;
    n = words_of(fields, &has_copies);
    if (RARE(n == FIELDS_TOO_LARGE)) {
        drop(r, g, TP_RING_DROP_TOO_LARGE, type & 255);
        return;
    }
    p = reserve(r, g, n + 2, type & 255, &after);
    if (p == NULL)
        return;
    p[0] = TP_RECORD_HEADER(TP_RECORD_INSTANT, type, fields.n, n + 2, name);
    p[1] = tp_ticks_now();
    put_fields(p + 2, fields, has_copies);
    commit(g, after);
}

/* A record of a header and up to three words, without fields. The third has bit 63 when
 * the time is the program's, as the track of a flow. */
static inline void put_short(struct tp_client *client, unsigned type, uint64_t header,
                             uint64_t time, uint64_t second, uint64_t third)
{
    struct tp_recorder *r = (struct tp_recorder *)client;
    struct tp_ring *g = ring_of(r, type & 255);
    unsigned type_and_time = (type & 255) | (third >> 63 != 0 ? OWN_TIME : 0);
    unsigned n = TP_RECORD_WORDS(header);
    uint64_t after;
    uint64_t *p;

    if (g == NULL || (p = reserve(r, g, n, type_and_time, &after)) == NULL)
        return;
    p[0] = header;
    p[1] = time;
    p[2] = second;
    if (n > 3)
        p[3] = third;
    commit(g, after);
}

void tp_counter(struct tp_client *client, unsigned type, uint32_t name, double value)
{
    uint64_t bits;

    if (!tp_enabled(client, type))
        return;
    memcpy(&bits, &value, sizeof(bits));
    put_short(client, type, TP_RECORD_HEADER(TP_RECORD_COUNTER, type, 0, 3, name),
              tp_ticks_now(), bits, 0);
}

void tp_counter_int(struct tp_client *client, unsigned type, uint32_t name,
                    int64_t value)
{
    if (tp_enabled(client, type))
        put_short(client, type,
                  TP_RECORD_HEADER(TP_RECORD_COUNTER_INT, type, 0, 3, name),
                  tp_ticks_now(), (uint64_t)value, 0);
}

void tp_complete(struct tp_client *client, unsigned type, uint32_t name,
                 const struct tp_interval *when, struct tp_fields fields)
{
    struct tp_recorder *r = (struct tp_recorder *)client;
    struct tp_ring *g;
    uint64_t after;
    uint64_t *p;
    bool has_copies;
    unsigned n;

    if (!tp_enabled(client, type) || (g = ring_of(r, type & 255)) == NULL)
        return;
    n = words_of(fields, &has_copies);
    if (RARE(n == FIELDS_TOO_LARGE)) {
        drop(r, g, TP_RING_DROP_TOO_LARGE, (type & 255) | OWN_TIME);
        return;
    }
    p = reserve(r, g, n + 4, (type & 255) | OWN_TIME, &after);
    if (p == NULL)
        return;
    p[0] = TP_RECORD_HEADER(TP_RECORD_COMPLETE, type, fields.n, n + 4, name);
    p[1] = when->start_ns;
    p[2] = when->duration_ns;
    p[3] = when->track;
    put_fields(p + 4, fields, has_copies);
    commit(g, after);
}

void tp_flow(struct tp_client *client, unsigned type, uint32_t name,
             const struct tp_flow_point *point)
{
    bool is_now;

    if (!tp_enabled(client, type))
        return;
    is_now = point->time_ns == 0;
    put_short(client, type,
              TP_RECORD_HEADER(TP_RECORD_FLOW, type, point->phase & 3, 4, name),
              is_now ? tp_ticks_now() : point->time_ns, point->id,
              point->track | (is_now ? 0 : 1ULL << 63));
}

void tp_async(struct tp_client *client, unsigned type, uint32_t name,
              enum tp_phase phase, uint64_t id)
{
    if (tp_enabled(client, type))
        put_short(client, type,
                  TP_RECORD_HEADER(TP_RECORD_ASYNC, type, phase & 3, 3, name),
                  tp_ticks_now(), id, 0);
}
