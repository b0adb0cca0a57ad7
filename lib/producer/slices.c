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

/* Of the stack, so that a word may be read behind each slice. */
#define STACK_WORDS (TP_RING_STACK_WORDS - 1)

/* g->top is the words in use while no slice was opened on top of a full stack. */
#define ONE_OVER (UINT64_C(1) << 32)

/* With so many words, or fewer, in use the stack has room for any slice that is not
 * copied: each slice has three words and over. */
#define TOP_AT_HAND (3 * (TP_RING_DEPTH_MAX - 1))
_Static_assert(TOP_AT_HAND + 3 + 2 * TP_FIELDS_MAX < TP_RING_STACK_WORDS,
               "a slice that begins there fits");

/* What is stored into the stack is seen in order; see the head of this file. */
static inline void put_open(uint64_t *to, uint64_t v)
{
    tp_fields_store(to, v, true);
}

/* Fields of all kinds, which take n words. */
static TP_RARELY void put_open_fields(uint64_t *to, struct tp_fields fields, unsigned n)
{
    uint64_t words[TP_RECORD_WORDS_MAX];

    tp_fields_put(words, fields);
    for (unsigned i = 0; i < n; i++)
        put_open(to + i, words[i]);
}

/* A slice that the stack has no room for: its end is passed over. */
static TP_RARELY void begin_over(struct tp_recorder *r, struct tp_ring *g,
                                 unsigned type)
{
    g->top += ONE_OVER;
    tp_room_drop(r, g, TP_RING_DROP_TOO_LARGE, type, tp_ticks_now());
}

/* The slice of n words at `open`, the top of the stack, whose fields are there, is open
 * from now on. */
static TP_ALWAYS void push(struct tp_ring *g, uint64_t *open, uint64_t header,
                           unsigned n, uint64_t now)
{
    uint64_t n_open = atomic_load_explicit(&g->n_open, memory_order_relaxed);
    uint64_t top = g->top;

    g->top = top + n;
    g->starts[n_open & 0xffff] = (uint16_t)top;
    put_open(open, header);
    put_open(open + 1, now);
    atomic_store_explicit(&g->n_open, n_open + 1, memory_order_release);
}

static TP_RARELY void begin_whole(struct tp_client *client, uint64_t header,
                                  struct tp_fields fields)
{
    struct tp_recorder *r = (struct tp_recorder *)client;
    struct tp_ring *g = tp_room_ring(r, TP_RECORD_TYPE(header));
    unsigned n = tp_fields_words(fields);
    uint64_t *open;

    if (g == NULL)
        return;
    open = g->stack + (uint32_t)g->top;
    if ((atomic_load_explicit(&g->n_open, memory_order_relaxed) & 0xffff) ==
            TP_RING_DEPTH_MAX ||
        n == TP_FIELDS_TOO_LARGE || g->top + n + 3 > STACK_WORDS) {
        begin_over(r, g, TP_RECORD_TYPE(header));
        return;
    }
    put_open_fields(open + 3, fields, n);
    push(g, open, header | TP_RECORD_HEADER(0, 0, fields.n, n + 3, 0), n + 3,
         tp_ticks_now());
}

static TP_ALWAYS void begin(struct tp_client *client, uint64_t header,
                            struct tp_fields fields)
{
    struct tp_ring *g = tp_ring_here;
    uint64_t *open;
    uint64_t *end;
    unsigned n;

    if (!tp_room_is_here(g, (struct tp_recorder *)client) ||
        TP_RARE(fields.n > TP_FIELDS_MAX || g->top > TOP_AT_HAND) ||
        !tp_ticks_are_at_hand())
        goto whole;
    open = g->stack + g->top;
    end = tp_fields_put_plain(open + 3, fields, true);
    if (TP_RARE(end == NULL))
        goto whole;
    n = (unsigned)(end - open);
    push(g, open, header | TP_RECORD_HEADER(0, 0, fields.n, n, 0), n,
         tp_ticks_at_hand());
    return;
whole:
    begin_whole(client, header, fields);
}

/* Of one field nothing is to be remembered while it is written. */
static TP_APART void begin_with_one(struct tp_client *client, uint64_t header,
                                    const struct tp_field *field)
{
    begin(client, header, (struct tp_fields){field, 1});
}

static TP_APART void begin_with_fields(struct tp_client *client, uint64_t header,
                                       struct tp_fields fields)
{
    begin(client, header, fields);
}

void tp_begin(struct tp_client *client, unsigned type, uint32_t name,
              struct tp_fields fields)
{
    const uint64_t header = TP_RECORD_HEADER(TP_RECORD_SLICE, type, 0, 0, name);
    const struct tp_fields none = {NULL, 0};

    if (!tp_enabled(client, type))
        return;
    if (fields.n == 0)
        begin(client, header, none);
    else if (fields.n == 1)
        begin_with_one(client, header, fields.items);
    else
        begin_with_fields(client, header, fields);
}

void tp_add(struct tp_client *client, unsigned type, struct tp_fields fields)
{
    struct tp_recorder *r = (struct tp_recorder *)client;
    struct tp_ring *g;
    uint64_t depth;
    uint64_t *open;
    uint64_t header;
    unsigned n;

    if (!tp_enabled(client, type) || (g = tp_room_ring_held(r)) == NULL)
        return;
    depth = atomic_load_explicit(&g->n_open, memory_order_relaxed) & 0xffff;
    if (depth == 0 || g->top >= ONE_OVER)
        return;
    open = g->stack + g->starts[depth - 1];
    header = *open;
    n = tp_fields_words(fields);
    if (TP_RECORD_TYPE(header) != (type & 255) || n == TP_FIELDS_TOO_LARGE ||
        TP_RECORD_WORDS(header) + n > TP_RECORD_WORDS_MAX || g->top + n > STACK_WORDS ||
        TP_RECORD_FIELDS(header) + fields.n > TP_FIELDS_MAX)
        return;
    put_open_fields(g->stack + g->top, fields, n);
    g->top += n;
    put_open(open, header + ((uint64_t)fields.n << 16) + ((uint64_t)n << 24));
}

/* The topmost slice is off the stack. */
static TP_ALWAYS void pop(struct tp_ring *g, uint64_t n_open, unsigned start)
{
    g->top = start;
    atomic_store_explicit(&g->n_open, n_open + (1 << 16) - 1, memory_order_release);
}

/* The slice at `open`, of n words and over, as a record at p. */
static TP_ALWAYS void put_slice(uint64_t *p, const uint64_t *open, unsigned n,
                                uint64_t now)
{
    p[0] = open[0];
    p[1] = open[1];
    p[2] = now - open[1];
    for (unsigned i = 3; i < n; i++)
        p[i] = open[i];
}

/* Take the topmost slice off the stack and make it a record that ends at `now`. */
static void end_top(struct tp_recorder *r, struct tp_ring *g, uint64_t now)
{
    uint64_t n_open = atomic_load_explicit(&g->n_open, memory_order_relaxed);
    unsigned start = g->starts[(n_open & 0xffff) - 1];
    const uint64_t *open = g->stack + start;
    unsigned n = TP_RECORD_WORDS(open[0]);
    uint64_t after;
    uint64_t *p = tp_room_reserve(r, g, n, TP_RECORD_TYPE(open[0]), open[1], &after);

    if (p != NULL) {
        put_slice(p, open, n, now);
        tp_room_commit(g, after);
    }
    pop(g, n_open, start);
}

/* In all cases: ends may have been left out, or there was no begin. */
static TP_RARELY void end_whole(struct tp_client *client, unsigned type)
{
    uint64_t now = tp_ticks_now();
    struct tp_recorder *r = (struct tp_recorder *)client;
    struct tp_ring *g = tp_room_ring_held(r);
    unsigned depth;
    unsigned at;

    if (g == NULL)
        return;
    if (g->top >= ONE_OVER) {
        g->top -= ONE_OVER;
        return;
    }
    depth = atomic_load_explicit(&g->n_open, memory_order_relaxed) & 0xffff;
    at = depth;
    while (at > 0 && TP_RECORD_TYPE(g->stack[g->starts[at - 1]]) != (type & 255))
        at--;
    for (; at > 0 && depth >= at; depth--)
        end_top(r, g, now);
}

/* A slice that is over: the topmost, of n words. */
struct over {
    struct tp_ring *ring;
    uint64_t n_open;
    uint64_t head;
    unsigned start;
    unsigned n;
};

/* Make it a record; n_put words are written, of which those behind it are nothing. */
static TP_ALWAYS void end(const struct over *over, unsigned n_put, uint64_t now)
{
    struct tp_ring *g = over->ring;

    put_slice(tp_room_at_hand(g, over->head), g->stack + over->start, n_put, now);
    tp_room_commit(g, over->head + over->n);
    pop(g, over->n_open, over->start);
}

static TP_APART void end_with_fields(struct tp_ring *g, unsigned n, uint64_t now)
{
    uint64_t n_open = atomic_load_explicit(&g->n_open, memory_order_relaxed);
    const struct over over = {g, n_open, tp_room_head(g),
                              g->starts[(n_open & 0xffff) - 1], n};

    end(&over, n, now);
}

void tp_end(struct tp_client *client, unsigned type)
{
    struct over over = {.ring = tp_ring_here};
    struct tp_ring *g = over.ring;
    uint64_t header;
    uint64_t now;

    if (!tp_enabled(client, type))
        return;
    /* Not with an empty stack, nor one with slices on top of it. */
    if (!tp_room_is_here(g, (struct tp_recorder *)client) ||
        TP_RARE(g->top - 1 >= ONE_OVER - 1) || !tp_ticks_are_at_hand())
        goto whole;
    now = tp_ticks_at_hand();
    over.n_open = atomic_load_explicit(&g->n_open, memory_order_relaxed);
    over.head = tp_room_head(g);
    over.start = g->starts[(over.n_open & 0xffff) - 1];
    header = g->stack[over.start];
    over.n = TP_RECORD_WORDS(header);
    if (TP_RARE(TP_RECORD_TYPE(header) != (type & 255)) ||
        !tp_room_is_at_hand(g, over.head, over.n + 1))
        goto whole;
    if (over.n <= 4) /* without a field, or with one that is small */
        end(&over, 4, now);
    else
        end_with_fields(g, over.n, now);
    return;
whole:
    end_whole(client, type);
}
