/*
 * slices.c - slices of record.h: begin, add, end.
 *
 * The stack of open slices is read by the agent when a trace has stopped, while the
 * thread may go on. Words of a slice that is open do not change until it is taken off;
 * taking one off also changes the upper bits of n_open, so a reader that finds n_open
 * as before has read nothing that was reused meanwhile. For that, words of the stack
 * are stored with release: none of them is seen before the change of n_open that came
 * first.
 */
#include <traceplane/traceplane.h>

#include "producer/fields.h"
#include "producer/room.h"
#include "producer/ticks.h"

/* What is stored into the stack is seen in order; see the head of this file. */
static inline void put_open(uint64_t *to, uint64_t v)
{
    __atomic_store_n(to, v, __ATOMIC_RELEASE);
}

/* Out of line for its buffer, too, which would give all who begin a large frame. */
static TP_RARELY void put_open_copies(uint64_t *to, struct tp_fields fields, unsigned n)
{
    uint64_t words[TP_RECORD_WORDS_MAX];

    tp_fields_put_copies(words, fields);
    for (unsigned i = 0; i < n; i++)
        put_open(to + i, words[i]);
}

static inline void put_open_fields(uint64_t *to, struct tp_fields fields,
                                   bool has_copies, unsigned n)
{
    if (TP_RARE(has_copies)) {
        put_open_copies(to, fields, n);
        return;
    }
    for (size_t i = 0; i < fields.n; i++) {
        const struct tp_field_words w = tp_fields_of(&fields.items[i]);

        put_open(to, w.first);
        put_open(to + 1, w.second); /* likewise: behind the top is a spare word */
        to += w.n;
    }
}

/* A slice that the stack has no room for: its end is passed over. */
static TP_RARELY void begin_over(struct tp_recorder *r, struct tp_ring *g,
                                 unsigned type)
{
    g->n_over++;
    tp_room_drop(r, g, TP_RING_DROP_TOO_LARGE, type);
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

    if (!tp_enabled(client, type) || (g = tp_room_ring(r, type & 255)) == NULL)
        return;
    n = tp_fields_words(fields, &has_copies);
    n_open = atomic_load_explicit(&g->n_open, memory_order_relaxed);
    if (TP_RARE((n_open & 0xffff) == TP_RING_DEPTH_MAX || n == TP_FIELDS_TOO_LARGE ||
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

    if (!tp_enabled(client, type) || (g = tp_room_ring_held(r)) == NULL)
        return;
    depth = atomic_load_explicit(&g->n_open, memory_order_relaxed) & 0xffff;
    if (depth == 0 || g->n_over > 0)
        return;
    open = g->stack + g->starts[depth - 1];
    header = *open;
    n = tp_fields_words(fields, &has_copies);
    if (TP_RECORD_TYPE(header) != (type & 255) || n == TP_FIELDS_TOO_LARGE ||
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
    uint64_t *p = tp_room_reserve(r, g, n, TP_RECORD_TYPE(open[0]), &after);

    if (p != NULL) {
        p[0] = open[0];
        p[1] = open[1];
        p[2] = now - open[1];
        for (unsigned i = 3; i < n; i++)
            p[i] = open[i];
        tp_room_commit(g, after);
    }
    g->top = start;
    atomic_store_explicit(&g->n_open, n_open + (1 << 16) - 1, memory_order_release);
}

/* The topmost slice is of another type: ends were left out, or there was no begin. */
static TP_RARELY void end_below(struct tp_recorder *r, struct tp_ring *g, unsigned type,
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
    if ((g = tp_room_ring_held(r)) == NULL)
        return;
    if (TP_RARE(g->n_over)) {
        g->n_over--;
        return;
    }
    n_open = atomic_load_explicit(&g->n_open, memory_order_relaxed);
    if ((n_open & 0xffff) == 0)
        return;
    if (TP_RARE(TP_RECORD_TYPE(g->stack[g->starts[(n_open & 0xffff) - 1]]) !=
                (type & 255)))
        end_below(r, g, type & 255, now);
    else
        end_top(r, g, n_open, now);
}
