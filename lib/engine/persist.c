#include "engine/persist.h"

#include "base/buf.h"
#include "base/err.h"
#include "engine/objects.h"
#include "engine/refusals.h"
#include "store/store.h"

#define LISTED_MIN 64                  /* members; fewer have rows in no time */
#define LISTED_NS UINT64_C(1000000000) /* until they get them: about to begin before */

static const char *const member_states[TP_MEMBER_STATES] = {
    [TP_MEMBER_UNMATCHED] = "unmatched", [TP_MEMBER_WAITING] = "waiting",
    [TP_MEMBER_ARMED] = "armed",         [TP_MEMBER_RECORDING] = "recording",
    [TP_MEMBER_FLUSHING] = "flushing",   [TP_MEMBER_DONE] = "done",
    [TP_MEMBER_REFUSED] = "refused",     [TP_MEMBER_LOST] = "lost",
};

static const char *const stream_states[TP_STREAM_STATES] = {
    [TP_STREAM_HIDDEN] = "hidden",   [TP_STREAM_OPEN] = "open",
    [TP_STREAM_SEALING] = "sealing", [TP_STREAM_SEALED] = "sealed",
    [TP_STREAM_FAILED] = "failed",
};

const char *tp_member_state_name(enum tp_member_state state)
{
    return member_states[state];
}

const char *tp_stream_state_name(enum tp_stream_state state)
{
    return stream_states[state];
}

static int find(const char *const *names, int n, struct tp_str name)
{
    for (int i = 0; i < n; i++) {
        if (tp_str_is(name, names[i]))
            return i;
    }
    return -1;
}

int tp_member_state_find(struct tp_str name)
{
    return find(member_states, TP_MEMBER_STATES, name);
}

int tp_stream_state_find(struct tp_str name)
{
    return find(stream_states, TP_STREAM_STATES, name);
}

/* Count what the store refuses. */
static int noted(struct tp_engine *e, int rc)
{
    if (rc != TP_OK)
        e->stats.store_failures++;
    return rc;
}

int tp_persist_begin(struct tp_engine *e, struct tp_err *err)
{
    return noted(e, e->opts.store->ops->begin(e->opts.store, err));
}

int tp_persist_end(struct tp_engine *e, int rc, struct tp_err *err)
{
    if (rc == TP_OK)
        rc = noted(e, e->opts.store->ops->commit(e->opts.store, err));
    if (rc != TP_OK)
        e->opts.store->ops->rollback(e->opts.store);
    return rc;
}

int tp_persist_job(struct tp_engine *e, struct tp_job *job, struct tp_err *err)
{
    struct tp_row_job row = {.name = tp_str_of(job->name),
                             .created_ns = job->created_ns};

    if (job->is_stored)
        return TP_OK;
    return noted(e, e->opts.store->ops->put_job(e->opts.store, &row, err));
}

int tp_persist_types(struct tp_engine *e, const struct tp_job *job,
                     const struct tp_registry_plan *plan, uint64_t wall_ns,
                     struct tp_err *err)
{
    struct tp_type *const *types = plan->types;
    int rc = TP_OK;

    for (size_t i = 0; i < plan->n && rc == TP_OK; i++) {
        struct tp_row_type row = {
            .job = tp_str_of(job->name),
            .id = types[i]->id,
            .plugin = tp_str_of(types[i]->plugin),
            .type_name = tp_str_of(types[i]->type_name),
            .description = tp_str_of(types[i]->description),
            .unit = tp_str_of(types[i]->unit),
            .kind = tp_str_of(tp_type_kind_name(types[i]->kind)),
            .created_ns = wall_ns,
        };

        rc = noted(e, e->opts.store->ops->put_type(e->opts.store, &row, err));
    }
    return rc;
}

/* A monotonic deadline as wall time; 0 for none. */
static uint64_t to_wall(uint64_t mono_ns, struct tp_now now)
{
    if (mono_ns == TP_SESSION_NO_DEADLINE)
        return 0;
    return mono_ns > now.mono_ns ? now.wall_ns + (mono_ns - now.mono_ns) : now.wall_ns;
}

static int put_trace(struct tp_engine *e, const struct tp_trace *t, struct tp_err *err)
{
    struct tp_buf spec = {0};
    struct tp_row_trace row = {
        .id = tp_str_of(t->id),
        .job = tp_str_of(t->job->name),
        .state = tp_str_of(tp_trace_state_name(t)),
        .n_types = t->n_types,
        .version = t->version,
        .created_ns = t->created_ns,
        .start_at_ns = t->start_at_ns,
        .deadline_ns = t->deadline_wall_ns,
        .outcome = tp_str_of(t->outcome),
        .reason = tp_str_of(t->reason),
        .late_batches = t->late_batches,
        .late_events = t->late_events,
    };
    int rc = tp_spec_encode(&t->spec, &spec, err);

    row.spec = (struct tp_str){spec.data, spec.len};
    if (rc == TP_OK)
        rc = noted(e, e->opts.store->ops->put_trace(e->opts.store, &row, err));
    tp_buf_fini(&spec);
    return rc;
}

static int put_moves(struct tp_engine *e, const struct tp_trace *t, struct tp_err *err)
{
    size_t n;
    const struct tp_session_move *moves = tp_session_history(&t->session, &n);
    int rc = TP_OK;

    for (size_t i = t->n_moves_stored; i < n && rc == TP_OK; i++) {
        struct tp_row_move row = {
            .trace = tp_str_of(t->id),
            .no = (uint32_t)i,
            .state = tp_str_of(tp_session_state_name((int)moves[i].to)),
            .wall_ns = moves[i].wall_ns,
            .cause = tp_str_of(moves[i].cause),
        };

        rc = noted(e, e->opts.store->ops->put_move(e->opts.store, &row, err));
    }
    return rc;
}

/* All but its counts by type. */
static struct tp_row_member member_row(const struct tp_member *m)
{
    return (struct tp_row_member){
        .trace = tp_str_of(m->trace->id),
        .who = tp_identity_row(&m->who),
        .is_matched = m->state != TP_MEMBER_UNMATCHED,
        .state = tp_str_of(tp_member_state_name(m->state)),
        .reason = tp_str_of(m->reason),
        .stream_no = m->stream_no,
        /* A restart counts on from where it began; the present one is told anew. */
        .step = tp_trace_is_active(m->trace) ? m->base_step : m->step,
        .started_ns = m->started_ns,
        .reported = m->reported,
        .has_clock = m->has_clock,
        .clock_offset_ns = m->clock_offset_ns,
        .clock_error_ns = m->clock_error_ns,
        .uid = m->has_uid ? (int64_t)m->uid : -1,
        .folder_key = tp_str_of(m->folder_key),
        .interval_ns = m->interval_ns,
    };
}

static int put_member(struct tp_engine *e, const struct tp_member *m,
                      struct tp_err *err)
{
    struct tp_buf types = {0};
    struct tp_row_member row = member_row(m);
    int rc = tp_type_counts_write(&m->types, &types, err);

    row.type_counts = (struct tp_str){types.data, types.len};
    if (rc == TP_OK)
        rc = noted(e, e->opts.store->ops->put_member(e->opts.store, &row, err));
    tp_buf_fini(&types);
    return rc;
}

/* The store has all that is to be known of a member. */
static void note_written(struct tp_member *m)
{
    m->is_dirty = m->is_only_listed = m->has_new_stream = false;
}

void tp_persist_deadline(struct tp_trace *t, struct tp_now now)
{
    t->deadline_wall_ns = to_wall(tp_session_deadline_ns(&t->session), now);
}

/* The trace itself and its new moves. */
static int put_move_rows(struct tp_engine *e, struct tp_trace *t, struct tp_now now,
                         struct tp_err *err)
{
    int rc;

    tp_persist_deadline(t, now);
    rc = put_trace(e, t, err);
    return rc == TP_OK ? put_moves(e, t, err) : rc;
}

static int drop_list(struct tp_engine *e, const struct tp_trace *t, struct tp_err *err)
{
    if (!t->is_listed)
        return TP_OK;
    return noted(e, e->opts.store->ops->drop_member_list(e->opts.store,
                                                         tp_str_of(t->id), err));
}

int tp_persist_trace_rows(struct tp_engine *e, struct tp_trace *t, struct tp_now now,
                          struct tp_err *err)
{
    int rc = put_move_rows(e, t, now, err);

    for (size_t i = 0; i < t->n_members && rc == TP_OK; i++) {
        if (t->members[i]->is_dirty || t->members[i]->is_only_listed)
            rc = put_member(e, t->members[i], err);
    }
    return rc == TP_OK ? drop_list(e, t, err) : rc;
}

/* Nothing was counted yet. */
static int nth_new_row(void *trace, size_t i, struct tp_row_member *out,
                       struct tp_err *err)
{
    (void)err;
    *out = member_row(((const struct tp_trace *)trace)->members[i]);
    return TP_OK;
}

int tp_persist_new_trace_rows(struct tp_engine *e, struct tp_trace *t,
                              struct tp_now now, struct tp_err *err)
{
    int rc;

    if (t->n_members < LISTED_MIN)
        return tp_persist_trace_rows(e, t, now, err);
    rc = put_move_rows(e, t, now, err);
    if (rc != TP_OK)
        return rc;
    return noted(e, e->opts.store->ops->put_member_list(e->opts.store, tp_str_of(t->id),
                                                        t->n_members, nth_new_row, t,
                                                        err));
}

void tp_persist_new_trace_done(struct tp_trace *t, struct tp_now now)
{
    if (t->n_members < LISTED_MIN) {
        tp_persist_trace_done(t);
        return;
    }
    tp_persist_trace_done(t);
    for (size_t i = 0; i < t->n_members; i++)
        t->members[i]->is_only_listed = true;
    t->is_listed = t->has_member_news = true;
    t->news_ns = now.mono_ns + LISTED_NS;
}

void tp_persist_trace_done(struct tp_trace *t)
{
    t->is_listed = false;
    tp_session_history(&t->session, &t->n_moves_stored);
    for (size_t i = 0; i < t->n_members; i++)
        note_written(t->members[i]);
    t->has_member_news = false;
}

int tp_persist_move(struct tp_engine *e, struct tp_trace *t, struct tp_now now,
                    struct tp_err *err)
{
    int rc = tp_persist_begin(e, err);

    if (rc != TP_OK)
        return rc;
    rc = tp_persist_end(e, put_move_rows(e, t, now, err), err);
    if (rc == TP_OK)
        tp_session_history(&t->session, &t->n_moves_stored);
    return rc;
}

int tp_persist_member(struct tp_engine *e, struct tp_member *m, struct tp_err *err)
{
    int rc = put_member(e, m, err);

    if (rc == TP_OK)
        note_written(m);
    return rc;
}

/* Members on their way to rows of their own. */
struct part {
    struct tp_member *members[TP_PERSIST_MEMBERS_MAX];
    size_t n;
    bool is_all; /* no other has to be written */
};

/* Put those who differ from their rows, or those who have none; as many as fit. */
static int put_part(struct tp_engine *e, const struct tp_trace *t, bool is_news,
                    struct part *part, struct tp_err *err)
{
    int rc = TP_OK;

    for (size_t i = 0; i < t->n_members && rc == TP_OK && part->is_all; i++) {
        struct tp_member *m = t->members[i];

        if (is_news ? !m->is_dirty : m->is_dirty || !m->is_only_listed)
            continue;
        part->is_all = part->n < TP_PERSIST_MEMBERS_MAX;
        if (part->is_all)
            rc = put_member(e, part->members[part->n++] = m, err);
    }
    return rc;
}

int tp_persist_members(struct tp_engine *e, struct tp_trace *t, struct tp_err *err)
{
    struct part part = {.is_all = true};
    int rc = tp_persist_begin(e, err);

    if (rc != TP_OK)
        return rc;
    rc = put_part(e, t, true, &part, err);
    if (rc == TP_OK)
        rc = put_part(e, t, false, &part, err);
    if (rc == TP_OK && part.is_all)
        rc = drop_list(e, t, err);
    rc = tp_persist_end(e, rc, err);
    if (rc != TP_OK)
        return rc;
    t->is_listed = t->is_listed && !part.is_all;
    while (part.n > 0)
        note_written(part.members[--part.n]);
    t->has_member_news = !part.is_all;
    return TP_OK;
}

int tp_persist_trace(struct tp_engine *e, struct tp_trace *t, struct tp_now now,
                     struct tp_err *err)
{
    int rc = tp_persist_begin(e, err);

    if (rc != TP_OK)
        return rc;
    rc = tp_persist_end(e, tp_persist_trace_rows(e, t, now, err), err);
    if (rc == TP_OK)
        tp_persist_trace_done(t);
    return rc;
}

int tp_persist_stream(struct tp_engine *e, struct tp_stream *s, struct tp_err *err)
{
    struct tp_buf refusals = {0};
    int rc = tp_refusals_write(s, &refusals, err);
    struct tp_row_stream row = {
        .trace = tp_str_of(s->trace->id),
        .no = s->no,
        .who = tp_identity_row(&s->who),
        .is_file = s->is_file,
        .file_name = tp_str_of(s->file_name),
        .state = tp_str_of(tp_stream_state_name(s->state)),
        .reason = tp_str_of(s->reason),
        .damage = tp_str_of(s->damage),
        .counts = s->counts,
        .batches = s->batches,
        .duplicates = s->duplicates,
        .has_times = s->has_times,
        .first_ns = s->first_ns,
        .last_ns = s->last_ns,
        .refusals = {refusals.data, refusals.len},
    };

    if (rc == TP_OK)
        rc = noted(e, e->opts.store->ops->put_stream(e->opts.store, &row, err));
    tp_buf_fini(&refusals);
    s->is_dirty = s->is_dirty && rc != TP_OK;
    return rc;
}

int tp_persist_producer(struct tp_engine *e, const struct tp_producer *p,
                        struct tp_err *err)
{
    struct tp_row_producer row = {
        .who = tp_identity_row(&p->who),
        .job = tp_str_of(p->job->name),
        .capabilities = tp_str_of(p->capabilities),
        .registered_ns = p->registered_ns,
        .seen_ns = p->seen_wall_ns,
    };

    return noted(e, e->opts.store->ops->put_producer(e->opts.store, &row, err));
}
