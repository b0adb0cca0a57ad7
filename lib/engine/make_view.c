#include "engine/make_view.h"

#include <stdlib.h>

#include "base/err.h"
#include "core/filter.h"
#include "engine/join.h"
#include "engine/life.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/pool.h"
#include "engine/refusals.h"

/* How many moves the first answer showed: the creation, and the start when that was
 * part of it. */
static size_t first_moves(const struct tp_trace *t)
{
    size_t n;
    const struct tp_session_move *moves = tp_session_history(&t->session, &n);

    return n > 1 && strcmp(moves[1].cause, TP_CAUSE_AT_ONCE) == 0 ? 2 : 1;
}

static void view_moves(const struct tp_trace *t, enum tp_view_mode mode,
                       struct tp_trace_view *v)
{
    size_t n;
    const struct tp_session_move *moves = tp_session_history(&t->session, &n);
    struct tp_move_view *out;

    if (mode == TP_VIEW_AS_CREATED)
        n = first_moves(t);
    out = tp_pool_array(v->pool, n, sizeof(*out));
    for (size_t i = 0; i < n && out != NULL; i++) {
        out[i].state = tp_session_state_name((int)moves[i].to);
        out[i].wall_ns = (uint64_t)moves[i].wall_ns;
        out[i].cause = tp_pool_text(v->pool, moves[i].cause);
    }
    v->moves = out;
    v->n_moves = out == NULL ? 0 : n;
    if (n > 0)
        v->state = tp_session_state_name((int)moves[n - 1].to);
}

static uint64_t entered(const struct tp_trace *t, enum tp_session_state state)
{
    int64_t wall_ns = 0;

    return tp_session_entered_at(&t->session, state, &wall_ns) ? (uint64_t)wall_ns : 0;
}

static void view_times(const struct tp_trace *t, struct tp_trace_view *v)
{
    static const enum tp_session_state ends[] = {TP_SESSION_COMPLETE, TP_SESSION_FAILED,
                                                 TP_SESSION_CANCELLED};

    v->created_wall_ns = t->created_ns;
    v->started_wall_ns = entered(t, TP_SESSION_RECORDING);
    v->stopped_wall_ns = entered(t, TP_SESSION_STOPPING);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (v->finished_wall_ns == 0)
            v->finished_wall_ns = entered(t, ends[i]);
    }
    v->start_at_wall_ns = t->start_at_ns;
}

/* The deadline as the wall clock would show it, from the time that the state lasts. */
static void view_deadline(const struct tp_trace *t, struct tp_trace_view *v)
{
    v->deadline_what = "";
    if (t->deadline_wall_ns == 0 || !tp_trace_is_active(t))
        return;
    v->deadline_wall_ns = t->deadline_wall_ns;
    if (t->session.state == TP_SESSION_RECORDING)
        v->deadline_what = "stop";
    else if (t->session.state == TP_SESSION_STOPPING)
        v->deadline_what = "flush";
    else if (t->session.due == TP_SESSION_RECORDING)
        v->deadline_what = t->spec.start == TP_START_AT ? "start" : "arm";
    else
        v->deadline_what = "expiry";
}

static void view_skew(const struct tp_trace *t, struct tp_trace_view *v)
{
    uint64_t first = UINT64_MAX, last = 0;
    unsigned n = 0;

    for (size_t i = 0; i < t->n_members; i++) {
        uint64_t at = t->members[i]->started_ns;

        if (at == 0)
            continue;
        first = at < first ? at : first;
        last = at > last ? at : last;
        n++;
    }
    v->has_skew = n > 1;
    v->skew_ns = n > 1 ? last - first : 0;
}

static void view_types(const struct tp_trace *t, struct tp_trace_view *v)
{
    unsigned n = tp_typeset_count(&v->requested);
    struct tp_filter_type_view *out = tp_pool_array(v->pool, n, sizeof(*out));
    char name[TP_ACTIVITY_STRING_BYTES];
    size_t at = 0;

    for (unsigned id = tp_typeset_next(&v->requested, 0); id < 256 && out != NULL;
         id = tp_typeset_next(&v->requested, id + 1)) {
        size_t len = tp_activity_to_string(t->job->registry, id, name);

        out[at].id = id;
        out[at++].name = tp_pool_str(v->pool, (struct tp_str){name, len});
    }
    v->types = out;
    v->n_types = at;
}

static const char *const *view_texts(struct tp_pool *pool, const struct tp_str *items,
                                     size_t n)
{
    const char **out = tp_pool_array(pool, n, sizeof(*out));

    for (size_t i = 0; i < n && out != NULL; i++)
        out[i] = tp_pool_str(pool, items[i]);
    return out;
}

static void view_spec(const struct tp_spec *s, struct tp_trace_view *v)
{
    uint32_t *ranks = tp_pool_array(v->pool, s->n_ranks, sizeof(*ranks));
    const char **warnings = tp_pool_array(v->pool, s->n_warnings, sizeof(*warnings));

    v->label = tp_pool_text(v->pool, s->label);
    v->metadata_json = tp_pool_text(v->pool, s->metadata);
    v->kineto_json = tp_pool_text(v->pool, s->kineto);
    if (ranks != NULL)
        memcpy(ranks, s->ranks, s->n_ranks * sizeof(*ranks));
    v->ranks = ranks;
    v->n_ranks = s->n_ranks;
    v->hosts = view_texts(v->pool, s->hosts, s->n_hosts);
    v->n_hosts = s->n_hosts;
    v->producers = view_texts(v->pool, s->producers, s->n_producers);
    v->n_producers = s->n_producers;
    v->start = s->start;
    v->start_wall_ns = s->start_wall_ns;
    v->start_step = s->start_step;
    v->duration_ms = s->duration_ms;
    v->steps = s->steps;
    v->max_bytes = s->max_bytes;
    v->duration_is_capped = s->duration_is_capped;
    v->max_bytes_is_capped = s->max_bytes_is_capped;
    v->require = s->require;
    v->require_count = s->require_count;
    for (size_t i = 0; i < s->n_warnings && warnings != NULL; i++)
        warnings[i] = tp_pool_text(v->pool, s->warnings[i]);
    v->warnings = warnings;
    v->n_warnings = s->n_warnings;
}

/* A producer that takes no commands and posts is recording as far as anybody can see.
 * */
static const char *shown_state(const struct tp_trace *t, const struct tp_member *m)
{
    if (m->state != TP_MEMBER_WAITING || !tp_member_has_posted(m))
        return tp_member_state_name(m->state);
    return tp_member_state_name(tp_trace_is_active(t) ? TP_MEMBER_RECORDING
                                                      : TP_MEMBER_DONE);
}

static struct tp_waiting_view view_waiting(const struct tp_waiting *sum,
                                           struct tp_pool *pool)
{
    return (struct tp_waiting_view){sum->batches, sum->events,
                                    tp_pool_text(pool, sum->why)};
}

/* What waits of a stream; NULL: nothing. */
static struct tp_waiting_view view_stream_waiting(const struct tp_stream *s,
                                                  struct tp_pool *pool)
{
    struct tp_waiting sum = {0};

    if (s != NULL)
        tp_refusals_sum(s, &sum);
    return view_waiting(&sum, pool);
}

static void view_type_counts(const struct tp_member *m, struct tp_pool *pool,
                             struct tp_member_view *out)
{
    struct tp_type_count *types =
        tp_pool_array(pool, m->types.n, sizeof(struct tp_type_count));
    const enum tp_drop_cause cause = tp_life_lost_cause(m);

    if (types == NULL)
        return;
    /* What is stored of a type is known when the stream is sealed. */
    for (size_t i = 0; i < m->types.n; i++)
        types[i] = tp_type_count_told(&m->types.items[i], !tp_trace_is_active(m->trace),
                                      cause);
    out->types = types;
    out->n_types = m->types.n;
}

static void view_members(const struct tp_trace *t, enum tp_view_mode mode,
                         struct tp_trace_view *v)
{
    struct tp_member_view *out = tp_pool_array(v->pool, t->n_members, sizeof(*out));

    for (size_t i = 0; i < t->n_members && out != NULL; i++) {
        const struct tp_member *m = t->members[i];

        out[i].who = tp_identity_view(&m->who, v->pool);
        out[i].is_matched = m->state != TP_MEMBER_UNMATCHED;
        out[i].state = shown_state(t, m);
        out[i].reason = tp_pool_text(v->pool, m->reason);
        v->n_matched += out[i].is_matched;
        if (mode == TP_VIEW_AS_CREATED) {
            out[i].state = out[i].is_matched ? "waiting" : "unmatched";
            continue;
        }
        out[i].stream_no = m->stream_no;
        out[i].step = m->step;
        out[i].reported = m->reported;
        tp_life_member_counts(m, &out[i].counts);
        out[i].waiting = view_stream_waiting(tp_member_stream(m), v->pool);
        view_type_counts(m, v->pool, &out[i]);
        out[i].has_clock = m->has_clock;
        out[i].clock_offset_ns = m->clock_offset_ns;
        out[i].clock_error_ns = m->clock_error_ns;
    }
    v->members = out;
    v->n_members = out == NULL ? 0 : t->n_members;
}

static void view_stream(const struct tp_stream *s, struct tp_pool *pool,
                        struct tp_stream_view *out)
{
    out->no = s->no;
    out->who = tp_identity_view(&s->who, pool);
    out->is_file = s->is_file;
    out->file_name = tp_pool_text(pool, s->file_name);
    out->state = tp_stream_state_name(s->state);
    out->reason = tp_pool_text(pool, s->reason);
    out->counts = s->counts;
    out->waiting = view_stream_waiting(s, pool);
    out->batches = s->batches;
    out->duplicate_batches = s->duplicates;
    out->bytes = s->counts.bytes;
    out->damage = tp_pool_text(pool, s->damage);
    out->has_times = s->has_times;
    out->first_ns = s->first_ns;
    out->last_ns = s->last_ns;
}

static void view_streams(const struct tp_trace *t, struct tp_trace_view *v)
{
    struct tp_stream_view *out;
    size_t n = 0;

    for (size_t i = 0; i < t->n_streams; i++)
        n += t->streams[i]->state != TP_STREAM_HIDDEN;
    out = tp_pool_array(v->pool, n, sizeof(*out));
    n = 0;
    for (size_t i = 0; i < t->n_streams && out != NULL; i++) {
        if (t->streams[i]->state != TP_STREAM_HIDDEN)
            view_stream(t->streams[i], v->pool, &out[n++]);
    }
    v->streams = out;
    v->n_streams = n;
}

static void view_ends(const struct tp_trace *t, struct tp_trace_view *v)
{
    struct tp_waiting waiting = {0};

    for (size_t i = 0; i < t->n_streams; i++)
        tp_refusals_sum(t->streams[i], &waiting);
    v->waiting = view_waiting(&waiting, v->pool);
    tp_life_totals(t, &v->totals);
    v->bytes = v->totals.bytes;
    v->outcome = tp_pool_text(v->pool, t->outcome);
    v->reason = tp_pool_text(v->pool, t->reason);
    v->late_batches = t->late_batches;
    v->late_events = t->late_events;
    v->version = t->version;
    v->is_active = tp_trace_is_active(t);
    view_times(t, v);
    view_deadline(t, v);
    view_skew(t, v);
}

int tp_make_view(const struct tp_trace *t, enum tp_view_mode mode,
                 struct tp_trace_view **out, struct tp_err *err)
{
    struct tp_trace_view *v = calloc(1, sizeof(*v));

    if (v == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a view of trace %s", t->id);
    v->pool = tp_pool_new();
    memcpy(v->id, t->id, sizeof(v->id));
    v->job = tp_pool_text(v->pool, t->job->name);
    v->filter = tp_filter_ref(t->filter);
    v->requested = *tp_filter_requested(t->filter);
    v->accepted = *tp_filter_accepted(t->filter);
    view_spec(&t->spec, v);
    view_types(t, v);
    view_moves(t, mode, v);
    if (mode != TP_VIEW_BRIEF)
        view_members(t, mode, v);
    if (mode == TP_VIEW_FULL)
        view_streams(t, v);
    if (mode == TP_VIEW_AS_CREATED) {
        v->outcome = v->reason = v->deadline_what = "";
        v->is_active = v->is_replay = true;
        v->created_wall_ns = t->created_ns;
        v->version = 1;
    } else {
        view_ends(t, v);
    }
    tp_join_view(v);
    if (tp_pool_has_failed(v->pool)) {
        tp_trace_view_free(v);
        return tp_fail(err, TP_ENOMEM, "no memory for a view of trace %s", t->id);
    }
    *out = v;
    return TP_OK;
}

void tp_trace_view_free(struct tp_trace_view *view)
{
    if (view == NULL)
        return;
    tp_filter_unref((struct tp_filter *)view->filter);
    tp_pool_free(view->pool);
    free(view);
}

void tp_trace_list_free(struct tp_trace_list *list)
{
    if (list == NULL)
        return;
    for (size_t i = 0; i < list->n; i++)
        tp_trace_view_free(list->items[i]);
    free(list->items);
    free(list);
}
