/*
 * The row of a stream has them as
 *
 *     50 0 7=20w 9=50l\nwhy
 *
 * the events in its counts that are over the limit, those that the storage has refused,
 * then each number with its events and where it stands: w waiting, l and s dropped for
 * the one cause or the other. A row is written behind the log, so a batch may be in
 * both: tp_refusals_restore() asks the log.
 */
#include "engine/refusals.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "engine/model.h"
#include "engine/objects.h"
#include "trace/stream_log.h"

#define NUMBERS_MAX 4096 /* of refused batches that a stream remembers */
#define WHY_BYTES 128

struct number {
    uint64_t seq, n_events;
    char state; /* as in the row */
};

struct tp_refusals {
    struct number *items;
    size_t n;
    uint64_t over_limit, storage_failed; /* events in the counts of the stream */
    char why[WHY_BYTES];
};

static uint64_t *dropped_of(struct tp_refusals *r, enum tp_drop_cause cause)
{
    return cause == TP_DROP_OVER_LIMIT ? &r->over_limit : &r->storage_failed;
}

static enum tp_drop_cause cause_of(char state)
{
    return state == 'l' ? TP_DROP_OVER_LIMIT : TP_DROP_STORAGE_FAILED;
}

static struct tp_refusals *get(struct tp_stream *s)
{
    if (s->refusals == NULL)
        s->refusals = calloc(1, sizeof(*s->refusals));
    return s->refusals;
}

static struct number *find(const struct tp_stream *s, uint64_t seq)
{
    struct tp_refusals *r = s->refusals;

    for (size_t i = 0; r != NULL && i < r->n; i++) {
        if (r->items[i].seq == seq)
            return &r->items[i];
    }
    return NULL;
}

/* NULL: no memory, or too many. */
static struct number *add_number(struct tp_stream *s, struct number number)
{
    struct tp_refusals *r = get(s);
    struct number *more;

    if (r == NULL || r->n == NUMBERS_MAX)
        return NULL;
    more = realloc(r->items, (r->n + 1) * sizeof(*more));
    if (more == NULL)
        return NULL;
    r->items = more;
    more[r->n] = number;
    return &more[r->n++];
}

/* From now on these events are dropped. */
static void drop(struct tp_stream *s, enum tp_drop_cause cause, uint64_t n_events)
{
    struct tp_counts lost = {.emitted = n_events};
    struct tp_engine_stats *stats = &s->trace->engine->stats;
    struct tp_refusals *r = get(s);

    lost.dropped[cause] = n_events;
    tp_counts_add(&s->counts, &lost);
    if (r != NULL)
        *dropped_of(r, cause) += n_events;
    stats->events_posted += n_events;
    stats->events_dropped += n_events;
}

/* One that waits is refused again. */
static void refuse_again(struct tp_stream *s, struct number *x,
                         const struct tp_refusal *refusal)
{
    if (refusal->n_events > x->n_events)
        x->n_events = refusal->n_events;
    if (refusal->cause != TP_DROP_OVER_LIMIT)
        return;
    x->state = 'l';
    drop(s, TP_DROP_OVER_LIMIT, x->n_events);
}

static void add_new(struct tp_stream *s, const struct tp_refusal *refusal)
{
    const bool is_over_limit = refusal->cause == TP_DROP_OVER_LIMIT;
    const struct number number = {refusal->seq, refusal->n_events,
                                  is_over_limit ? 'l' : 'w'};
    bool is_known = refusal->has_seq && add_number(s, number) != NULL;

    if (is_over_limit || !is_known)
        drop(s, refusal->cause, refusal->n_events);
}

void tp_refusals_add(struct tp_stream *s, const struct tp_refusal *refusal,
                     const char *why)
{
    struct number *x = refusal->has_seq ? find(s, refusal->seq) : NULL;

    if (x == NULL)
        add_new(s, refusal);
    else if (x->state == 'w')
        refuse_again(s, x, refusal);
    if (s->refusals != NULL && refusal->cause == TP_DROP_STORAGE_FAILED)
        snprintf(s->refusals->why, WHY_BYTES, "%s", why);
}

bool tp_refusals_take_back(struct tp_stream *s, uint64_t seq)
{
    struct tp_refusals *r = s->refusals;
    struct number *x = find(s, seq);

    if (x == NULL)
        return false;
    if (x->state != 'w') {
        s->counts.emitted -= x->n_events;
        s->counts.dropped[cause_of(x->state)] -= x->n_events;
        *dropped_of(r, cause_of(x->state)) -= x->n_events;
    }
    *x = r->items[--r->n];
    return true;
}

/* Why so much is missing, where nothing else is to be said of the stream. */
static void say_given_up(struct tp_stream *s, const struct tp_waiting *w)
{
    if (s->reason[0] == '\0')
        snprintf(s->reason, sizeof(s->reason),
                 "%llu batch%s could not be stored and never came again: %s",
                 (unsigned long long)w->batches, w->batches == 1 ? "" : "es", w->why);
}

void tp_refusals_give_up(struct tp_stream *s)
{
    struct tp_waiting waiting = {0};
    struct tp_refusals *r = s->refusals;

    tp_refusals_sum(s, &waiting);
    if (waiting.batches == 0)
        return;
    for (size_t i = 0; i < r->n; i++) {
        if (r->items[i].state == 'w')
            r->items[i].state = 's';
    }
    drop(s, TP_DROP_STORAGE_FAILED, waiting.events);
    say_given_up(s, &waiting);
    tp_stream_changed(s);
}

void tp_refusals_give_up_trace(struct tp_trace *t)
{
    for (size_t i = 0; i < t->n_streams; i++)
        tp_refusals_give_up(t->streams[i]);
}

bool tp_refusals_are_of_storage(const struct tp_stream *s)
{
    const struct tp_refusals *r = s->refusals;

    for (size_t i = 0; r != NULL && i < r->n; i++) {
        if (r->items[i].state != 'l')
            return true;
    }
    return false;
}

uint64_t tp_refusals_len(const struct tp_stream *s)
{
    return s->refusals == NULL ? 0 : s->refusals->n;
}

void tp_refusals_sum(const struct tp_stream *s, struct tp_waiting *sum)
{
    const struct tp_refusals *r = s->refusals;

    for (size_t i = 0; r != NULL && i < r->n; i++) {
        if (r->items[i].state != 'w')
            continue;
        sum->batches++;
        sum->events += r->items[i].n_events;
        sum->why = r->why;
    }
}

int tp_refusals_write(const struct tp_stream *s, struct tp_buf *out, struct tp_err *err)
{
    const struct tp_refusals *r = s->refusals;
    int rc;

    if (r == NULL || (r->n == 0 && r->over_limit == 0 && r->storage_failed == 0))
        return TP_OK;
    rc = tp_buf_printf(out, err, "%llu %llu", (unsigned long long)r->over_limit,
                       (unsigned long long)r->storage_failed);
    for (size_t i = 0; i < r->n && rc == TP_OK; i++)
        rc = tp_buf_printf(out, err, " %llu=%llu%c",
                           (unsigned long long)r->items[i].seq,
                           (unsigned long long)r->items[i].n_events, r->items[i].state);
    return rc == TP_OK ? tp_buf_printf(out, err, "\n%s", r->why) : rc;
}

/* The numbers behind the sums. Returns false without memory. */
static bool read_numbers(struct tp_stream *s, char *p)
{
    while (*p == ' ') {
        struct number x = {.seq = strtoull(p, &p, 10)};

        if (*p != '=')
            return true;
        x.n_events = strtoull(p + 1, &p, 10);
        x.state = *p;
        if (x.state != 'w' && x.state != 'l' && x.state != 's')
            return true;
        if (add_number(s, x) == NULL)
            return false;
        p++;
    }
    return true;
}

int tp_refusals_read(struct tp_stream *s, struct tp_str text, struct tp_err *err)
{
    char *copy, *p, *why;
    bool is_read = false;

    if (text.len == 0)
        return TP_OK;
    copy = strndup(text.ptr, text.len);
    if (copy != NULL && get(s) != NULL) {
        why = copy + strcspn(copy, "\n");
        snprintf(s->refusals->why, WHY_BYTES, "%s", *why == '\0' ? "" : why + 1);
        *why = '\0';
        s->refusals->over_limit = strtoull(copy, &p, 10);
        s->refusals->storage_failed = strtoull(p, &p, 10);
        is_read = read_numbers(s, p);
    }
    free(copy);
    return is_read ? TP_OK
                   : tp_fail(err, TP_ENOMEM,
                             "no memory for the refused batches of a stream");
}

void tp_refusals_restore(struct tp_stream *s)
{
    const struct tp_refusals *r = s->refusals;
    struct tp_counts lost = {0}, ignored;

    if (r == NULL)
        return;
    lost.dropped[TP_DROP_OVER_LIMIT] = r->over_limit;
    lost.dropped[TP_DROP_STORAGE_FAILED] = r->storage_failed;
    lost.emitted = tp_counts_dropped(&lost);
    tp_counts_add(&s->counts, &lost);
    for (size_t i = r->n; i > 0; i--) { /* the last takes the place of one that goes */
        if (tp_stream_log_find(s->log, r->items[i - 1].seq, &ignored, NULL) == TP_OK)
            tp_refusals_take_back(s, r->items[i - 1].seq);
    }
}

void tp_refusals_free(struct tp_stream *s)
{
    if (s->refusals != NULL)
        free(s->refusals->items);
    free(s->refusals);
    s->refusals = NULL;
}
