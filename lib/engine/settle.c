/*
 * Why this may be: docs/decisions/021.
 */
#include "engine/settle.h"

#include "base/err.h"
#include "core/activity.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/window.h"
#include "trace/native_tally.h"

static void drop_tally(struct tp_stream *s)
{
    tp_native_tally_free(s->tally);
    s->tally = NULL;
}

void tp_settle_add(struct tp_stream *s, const struct tp_ingest_result *batch)
{
    struct tp_err ignored;

    /* Without memory nothing is known, and the seal is waited for. */
    if (s->batches == 0 && s->tally == NULL && !s->is_file &&
        tp_native_tally_new(&s->trace->engine->limits, &s->tally, &ignored) != TP_OK)
        return;
    if (s->tally != NULL && !tp_native_tally_add(s->tally, batch))
        drop_tally(s);
}

/* Add to what is stored of a type. Without memory the type lacks its number, and its
 * events count as lost. */
static void add_stored(struct tp_member *m, unsigned id, uint64_t n)
{
    struct tp_type_count *count;
    struct tp_err ignored;

    if (n > 0 && tp_type_counts_get(&m->types, id, &count, &ignored) == TP_OK)
        count->stored += n;
}

void tp_settle_types(const struct tp_stream *s, const uint64_t *by_type)
{
    struct tp_member *m = tp_member_of_stream(s->trace, s->no);
    uint64_t rest = s->counts.stored;

    if (m == NULL || m->types.n == 0)
        return;
    for (size_t i = 0; i < m->types.n; i++)
        m->types.items[i].stored = 0;
    for (unsigned id = 0; id < TP_ACTIVITY_IDS; id++) {
        const uint64_t n = by_type[id] < rest ? by_type[id] : rest;

        add_stored(m, id, n);
        rest -= n;
    }
    add_stored(m, TP_ACTIVITY_UNTYPED, rest);
    m->is_dirty = true;
}

/* Take over what is known of a stream. Returns whether that is all of it. */
static bool settle(struct tp_stream *s, struct tp_now now)
{
    struct tp_native_sum sum;

    if (s->state != TP_STREAM_SEALING || s->tally == NULL || s->batches == 0 ||
        !tp_native_tally_finish(s->tally, s->batches, &sum) ||
        (sum.has_times && !tp_window_has(s, sum.first_ns, sum.last_ns, now)))
        return false;
    s->has_times = sum.has_times && (sum.first_ns != 0 || sum.last_ns != 0);
    s->first_ns = s->has_times ? sum.first_ns : 0;
    s->last_ns = s->has_times ? sum.last_ns : 0;
    tp_settle_types(s, sum.by_type);
    return true;
}

void tp_settle_streams(struct tp_trace *t, struct tp_now now)
{
    struct tp_err ignored;
    int rc = tp_persist_begin(t->engine, &ignored);
    bool has_begun = rc == TP_OK;

    for (size_t i = 0; i < t->n_streams && rc == TP_OK; i++) {
        struct tp_stream *s = t->streams[i];

        s->is_settled = settle(s, now);
        if (s->is_settled)
            rc = tp_persist_stream(t->engine, s, &ignored);
    }
    if (has_begun)
        rc = tp_persist_end(t->engine, rc, &ignored);
    for (size_t i = 0; i < t->n_streams; i++) {
        t->streams[i]->is_settled = t->streams[i]->is_settled && rc == TP_OK;
        drop_tally(t->streams[i]);
    }
}

bool tp_settle_is_unsealed(const struct tp_trace *t)
{
    for (size_t i = 0; i < t->n_streams; i++) {
        if (t->streams[i]->state == TP_STREAM_SEALING)
            return true;
    }
    return false;
}

void tp_settle_later(struct tp_trace *t)
{
    if (t->is_unsealed || !tp_settle_is_unsealed(t))
        return;
    t->is_unsealed = true;
    t->next_unsealed = t->engine->unsealed;
    t->engine->unsealed = t;
}

void tp_settle_forget(struct tp_trace *t)
{
    struct tp_trace **at = &t->engine->unsealed;

    if (!t->is_unsealed)
        return;
    while (*at != t)
        at = &(*at)->next_unsealed;
    *at = t->next_unsealed;
    t->is_unsealed = false;
}
