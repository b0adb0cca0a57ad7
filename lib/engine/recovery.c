/*
 * Rows first. A trace's filter is resolved again as it was the first time: types are
 * never removed and traces come in the order of their making, so each job's types are
 * put back one by one and stop where the trace at hand had found them (n_types).
 */
#include "engine/recovery.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "core/filter.h"
#include "engine/idempotency.h"
#include "engine/kineto_model.h"
#include "engine/life.h"
#include "engine/matching.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/pool.h"
#include "engine/refusals.h"
#include "engine/streams.h"
#include "engine/window.h"
#include "store/store.h"

/* A type that waits for its turn. */
struct waiting_type {
    struct waiting_type *next;
    struct tp_type_spec spec;
    unsigned id;
    struct tp_job *job;
};

struct loading {
    struct tp_engine *e;
    struct tp_now now;
    struct tp_pool *pool; /* of the types */
    struct waiting_type *types, **last_type;
    struct tp_engine_recovery *found;
};

static int load_job(const struct tp_row_job *row, struct tp_err *err, void *arg)
{
    struct loading *l = arg;
    uint64_t most = l->e->limits.jobs;
    struct tp_job *job;
    int rc;

    /* A limit that is lower than before refuses new jobs, not the old ones. */
    l->e->limits.jobs = UINT64_MAX;
    rc = tp_job_get(l->e, row->name, row->created_ns, &job, NULL, err);
    l->e->limits.jobs = most;
    if (rc != TP_OK)
        return rc;
    job->is_stored = true;
    l->found->jobs++;
    return TP_OK;
}

static struct tp_str keep(struct loading *l, struct tp_str s)
{
    return (struct tp_str){tp_pool_str(l->pool, s), s.len};
}

static int load_type(const struct tp_row_type *row, struct tp_err *err, void *arg)
{
    struct loading *l = arg;
    struct waiting_type *w = tp_pool_array(l->pool, 1, sizeof(*w));
    int kind = tp_type_kind_find(row->kind);

    if (w == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the activity types");
    w->job = tp_job_find(l->e, row->job);
    w->id = row->id;
    w->spec.plugin = keep(l, row->plugin);
    w->spec.type_name = keep(l, row->type_name);
    w->spec.description = keep(l, row->description);
    w->spec.unit = keep(l, row->unit);
    w->spec.kind = kind < 0 ? TP_TYPE_SLICE : (enum tp_type_kind)kind;
    if (w->job == NULL)
        return tp_fail(err, TP_EINVAL, "the store has a type of the unknown job '%.*s'",
                       (int)row->job.len, row->job.ptr);
    *l->last_type = w;
    l->last_type = &w->next;
    l->found->types++;
    return tp_pool_has_failed(l->pool)
               ? tp_fail(err, TP_ENOMEM, "no memory for the activity types")
               : TP_OK;
}

/* Put types of a job back until it has n; SIZE_MAX for all of all jobs. */
static int restore_types(struct loading *l, const struct tp_job *job, size_t n,
                         struct tp_err *err)
{
    struct waiting_type **at = &l->types;
    int rc = TP_OK;

    while (*at != NULL && rc == TP_OK) {
        struct waiting_type *w = *at;

        if (job != NULL && tp_registry_len(job->registry) >= n)
            break;
        if (job != NULL && w->job != job) {
            at = &w->next;
            continue;
        }
        rc = tp_registry_restore(w->job->registry, &w->spec, w->id, NULL, err);
        *at = w->next;
    }
    return rc;
}

static void mark_broken(struct tp_trace *t, const struct tp_err *err)
{
    t->is_broken = true;
    snprintf(t->reason, sizeof(t->reason), "service restarted: %.250s", err->message);
}

/* Spec and filter; what cannot be read or resolved any more makes the trace broken, and
 * it gets an open filter so that it can be shown. */
static int load_request(struct tp_trace *t, struct tp_str spec_json, struct tp_err *err)
{
    struct tp_filter_spec spec, nothing = {0};
    struct tp_err why = {0};
    int rc = tp_spec_decode(spec_json, &t->spec, &why);

    if (rc == TP_OK) {
        spec = tp_spec_filter(&t->spec);
        rc = tp_filter_new(&spec, t->job->registry, &t->engine->limits, &t->filter,
                           NULL, &why);
    }
    if (rc == TP_OK)
        return TP_OK;
    if (rc == TP_ENOMEM)
        return tp_fail(err, rc, "%s", why.message);
    mark_broken(t, &why);
    return tp_filter_new(&nothing, NULL, NULL, &t->filter, NULL, err);
}

static void copy_row(struct tp_trace *t, const struct tp_row_trace *row)
{
    snprintf(t->id, sizeof(t->id), "%.*s", (int)row->id.len, row->id.ptr);
    t->n_types = row->n_types;
    t->version = row->version;
    t->created_ns = row->created_ns;
    t->start_at_ns = row->start_at_ns;
    t->deadline_wall_ns = row->deadline_ns;
    t->late_batches = row->late_batches;
    t->late_events = row->late_events;
    snprintf(t->outcome, sizeof(t->outcome), "%.*s", (int)row->outcome.len,
             row->outcome.ptr);
    snprintf(t->reason, sizeof(t->reason), "%.*s", (int)row->reason.len,
             row->reason.ptr);
}

static int load_trace(const struct tp_row_trace *row, struct tp_err *err, void *arg)
{
    struct loading *l = arg;
    struct tp_job *job = tp_job_find(l->e, row->job);
    struct tp_trace *t;
    int rc;

    if (job == NULL)
        return tp_fail(err, TP_EINVAL, "trace %.*s belongs to no job", (int)row->id.len,
                       row->id.ptr);
    rc = tp_trace_new(l->e, job, &t, err);
    if (rc != TP_OK)
        return rc;
    copy_row(t, row);
    tp_note_id(l->e, row->id);
    rc = restore_types(l, job, row->n_types, err);
    if (rc == TP_OK)
        rc = load_request(t, row->spec, err);
    if (rc == TP_OK)
        rc = tp_typemap_new(job->registry, &t->types, err);
    if (rc == TP_OK)
        rc = tp_trace_link(t, err);
    if (rc != TP_OK) {
        tp_trace_free(t);
        return rc;
    }
    tp_quota_init(&t->quota, "max-trace-bytes", "bytes", t->spec.max_bytes);
    l->found->traces++;
    return TP_OK;
}

static struct tp_trace *trace_of(struct loading *l, struct tp_str id)
{
    return tp_strmap_get(&l->e->traces, id.ptr, id.len);
}

/* Gathered in the session itself, which is brought to life by resume(). */
static int load_move(const struct tp_row_move *row, struct tp_err *err, void *arg)
{
    struct loading *l = arg;
    struct tp_trace *t = trace_of(l, row->trace);
    int state = tp_session_state_find(row->state);
    struct tp_session_move *move;

    if (t == NULL || t->session.n_moves == TP_SESSION_MAX_MOVES)
        return TP_OK;
    move = &t->session.moves[t->session.n_moves];
    if (state < 0)
        return tp_fail(err, TP_EINVAL, "trace %s was in the unknown state '%.*s'",
                       t->id, (int)row->state.len, row->state.ptr);
    move->to = (enum tp_session_state)state;
    move->wall_ns = row->wall_ns;
    snprintf(move->cause, sizeof(move->cause), "%.*s", (int)row->cause.len,
             row->cause.ptr);
    t->session.n_moves++;
    return TP_OK;
}

static int load_member(const struct tp_row_member *row, struct tp_err *err, void *arg)
{
    struct loading *l = arg;
    struct tp_trace *t = trace_of(l, row->trace);
    int state = tp_member_state_find(row->state);
    struct tp_member *m;
    int rc;

    if (t == NULL)
        return TP_OK;
    rc = tp_member_add(t, &row->who, &m, err);
    if (rc != TP_OK)
        return rc;
    m->state = state < 0 ? TP_MEMBER_UNMATCHED : (enum tp_member_state)state;
    snprintf(m->reason, sizeof(m->reason), "%.*s", (int)row->reason.len,
             row->reason.ptr);
    m->stream_no = row->stream_no;
    m->step = m->base_step = row->step;
    m->started_ns = row->started_ns;
    m->reported = row->reported;
    rc = tp_type_counts_read(row->type_counts, &m->types, err);
    if (rc != TP_OK)
        return rc;
    m->has_clock = row->has_clock;
    m->clock_offset_ns = row->clock_offset_ns;
    m->clock_error_ns = row->clock_error_ns;
    m->has_uid = row->uid >= 0 && row->uid < UINT32_MAX;
    m->uid = m->has_uid ? (uint32_t)row->uid : 0;
    snprintf(m->folder_key, sizeof(m->folder_key), "%.*s", (int)row->folder_key.len,
             row->folder_key.ptr);
    m->interval_ns = row->interval_ns;
    m->is_dirty = false;
    return TP_OK;
}

/* Numbers that no row has belong to streams that were never committed. */
static int fill_gap(struct tp_trace *t, uint32_t up_to, struct tp_err *err)
{
    struct tp_row_identity nobody = {.rank = -1, .pid = -1};
    int rc = TP_OK;

    while (t->n_streams < up_to && rc == TP_OK) {
        struct tp_stream *s;

        rc = tp_stream_add(t, &nobody, true, (struct tp_str){0}, &s, NULL, err);
    }
    return rc;
}

static int load_stream(const struct tp_row_stream *row, struct tp_err *err, void *arg)
{
    struct loading *l = arg;
    struct tp_trace *t = trace_of(l, row->trace);
    int state = tp_stream_state_find(row->state);
    uint64_t most = l->e->limits.streams_per_trace;
    struct tp_stream *s;
    int rc;

    if (t == NULL)
        return TP_OK;
    if (row->no == 0 || row->no > 65535 || state < 0)
        return tp_fail(err, TP_EINVAL, "trace %s has a stream that is unreadable",
                       t->id);
    l->e->limits.streams_per_trace = 65535;
    rc = fill_gap(t, row->no - 1, err);
    if (rc == TP_OK)
        rc = tp_stream_add(t, &row->who, row->is_file, row->file_name, &s, NULL, err);
    l->e->limits.streams_per_trace = most;
    if (rc == TP_OK && !row->is_file)
        rc = tp_stream_publish(s, err);
    if (rc != TP_OK)
        return rc;
    s->state = (enum tp_stream_state)state;
    snprintf(s->reason, sizeof(s->reason), "%.*s", (int)row->reason.len,
             row->reason.ptr);
    snprintf(s->damage, sizeof(s->damage), "%.*s", (int)row->damage.len,
             row->damage.ptr);
    s->counts = row->counts;
    s->batches = row->batches;
    s->duplicates = row->duplicates;
    s->has_times = row->has_times;
    s->first_ns = row->first_ns;
    s->last_ns = row->last_ns;
    return tp_refusals_read(s, row->refusals, err);
}

static int load_producer(const struct tp_row_producer *row, struct tp_err *err,
                         void *arg)
{
    struct loading *l = arg;
    struct tp_job *job = tp_job_find(l->e, row->job);
    struct tp_producer *p;
    int rc;

    if (job == NULL)
        return TP_OK;
    /* Native ones come back by their ids. */
    rc = tp_producer_add(job, l->e, &row->who, row->capabilities,
                         !tp_str_is(row->who.kind, "native"), &p, err);
    if (rc != TP_OK)
        return rc;
    p->registered_ns = row->registered_ns;
    p->seen_wall_ns = row->seen_ns;
    p->restored_wall_ns = l->now.wall_ns;
    p->has_synced = tp_match_is_live_kind(p) && !tp_kineto_is(p);
    /* Nobody could reach us while we were away: they get their time anew. */
    p->seen_mono_ns = l->now.mono_ns;
    l->found->producers++;
    return TP_OK;
}

static int load_key(const struct tp_row_key *row, struct tp_err *err, void *arg)
{
    struct loading *l = arg;

    return tp_key_put(l->e, row->key, row->fingerprint, row->trace, row->created_ns,
                      err);
}

static int load_rows(struct loading *l, struct tp_err *err)
{
    struct tp_store *s = l->e->opts.store;
    int rc = s->ops->each_job(s, load_job, l, err);

    if (rc == TP_OK)
        rc = s->ops->each_type(s, load_type, l, err);
    if (rc == TP_OK)
        rc = s->ops->each_trace(s, load_trace, l, err);
    if (rc == TP_OK)
        rc = restore_types(l, NULL, SIZE_MAX, err);
    if (rc == TP_OK)
        rc = s->ops->each_move(s, load_move, l, err);
    if (rc == TP_OK)
        rc = s->ops->each_member(s, load_member, l, err);
    if (rc == TP_OK)
        rc = s->ops->each_stream(s, load_stream, l, err);
    if (rc == TP_OK)
        rc = s->ops->each_producer(s, load_producer, l, err);
    if (rc == TP_OK)
        rc = s->ops->each_key(s, load_key, l, err);
    return rc;
}

/* The deadline of the present state, by wall time, where the state came from. */
static void set_deadline(struct tp_trace *t, uint64_t wall_ns, struct tp_now now)
{
    enum tp_session_state to = TP_SESSION_COMPLETE;
    const char *cause = "the time to collect data was over";
    uint64_t left = wall_ns > now.wall_ns ? wall_ns - now.wall_ns : 0;
    struct tp_err ignored;

    if (wall_ns == 0)
        return;
    if (t->session.state == TP_SESSION_RECORDING) {
        to = TP_SESSION_STOPPING;
        cause = "the duration limit was reached";
    } else if (t->session.state == TP_SESSION_PREPARED) {
        bool starts = t->spec.start == TP_START_NOW || t->spec.start == TP_START_AT;

        to = starts ? TP_SESSION_RECORDING : TP_SESSION_FAILED;
        cause = t->spec.start == TP_START_NOW  ? "not all producers were armed in time"
                : t->spec.start == TP_START_AT ? "the start time has come"
                                               : "not started in time";
    }
    tp_session_set_deadline(&t->session, now.mono_ns + left, to, cause, &ignored);
}

static void resume_session(struct tp_trace *t, struct tp_now now)
{
    struct tp_session_move moves[TP_SESSION_MAX_MOVES];
    size_t n = t->session.n_moves;
    uint64_t version = t->version, deadline = t->deadline_wall_ns;
    struct tp_err why = {0};

    memcpy(moves, t->session.moves, sizeof(moves));
    tp_life_init(t, now); /* for the options; the history is replaced */
    t->version = version;
    if (tp_session_restore(&t->session, &t->session.options, moves, n,
                           tp_session_now(now), &why) != TP_OK) {
        mark_broken(t, &why);
        t->n_moves_stored = 0;
        return;
    }
    t->n_moves_stored = n;
    if (tp_trace_is_active(t))
        set_deadline(t, deadline, now);
}

/* Nobody can be asked for what it still owes: its producer has removed itself. Kineto
 * processes come anew. */
static void lose_who_left(struct tp_member *m)
{
    if (m->has_uid || m->producer != NULL || m->state == TP_MEMBER_UNMATCHED ||
        m->state == TP_MEMBER_DONE || m->state == TP_MEMBER_REFUSED ||
        m->state == TP_MEMBER_LOST)
        return;
    m->state = TP_MEMBER_LOST;
    snprintf(m->reason, sizeof(m->reason), "it left");
    tp_member_changed(m);
}

/* A trace whose life goes on, or must end. */
static void resume(struct loading *l, struct tp_trace *t)
{
    bool was_broken = t->is_broken;

    resume_session(t, l->now);
    if (!tp_trace_is_active(t)) {
        t->is_purging = t->session.state == TP_SESSION_CANCELLED;
        l->e->has_purges = l->e->has_purges || t->is_purging;
        t->is_broken = false;
        tp_typemap_unref(t->types);
        t->types = NULL;
        tp_refusals_give_up_trace(t); /* it was cancelled, perhaps, while they waited */
        return;
    }
    tp_life_hold(t);
    tp_window_restore(t);
    tp_match_attach(t);
    for (size_t i = 0; i < t->n_members; i++) {
        struct tp_member *m = t->members[i];

        /* Its row may be older than its last ack. */
        m->is_unsure = m->producer != NULL && m->producer->has_synced;
        m->has_begun = m->state == TP_MEMBER_RECORDING || m->state == TP_MEMBER_DONE ||
                       m->started_ns != 0;
        m->may_have_begun = t->session.state != TP_SESSION_PREPARED;
        lose_who_left(m);
        /* Without memory it gets its stream when it is asked to prepare. */
        tp_streams_restore(m, NULL);
    }
    tp_kineto_resume(t, l->now);
    if (was_broken || t->is_broken)
        l->found->failed++;
    else
        l->found->resumed++;
}

int tp_recovery_run(struct tp_engine *e, struct tp_now now,
                    struct tp_engine_recovery *found, struct tp_err *err)
{
    struct loading l = {.e = e, .now = now, .found = found};
    int rc;

    l.last_type = &l.types;
    l.pool = tp_pool_new();
    if (l.pool == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the engine");
    rc = load_rows(&l, err);
    for (struct tp_trace *t = e->newest; t != NULL && rc == TP_OK; t = t->older)
        resume(&l, t);
    if (rc == TP_OK)
        rc = tp_recovery_blobs(e, now, found, err);
    tp_pool_free(l.pool);
    return rc;
}
