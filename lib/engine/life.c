/*
 * What each state means for the world around a trace:
 *
 *   prepared    registry frozen, job taken, producers asked to arm
 *   recording   the same; producers record
 *   stopping    registry free; producers flush and uploads that are open may end; then
 *               is_sealing: no more data, streams that are not settled (settle.h) are
 *               sealed one by one
 *   final       job free; producers that still record are told to drop it
 *
 * A move changes the session first, is written, and is taken back when the write fails.
 */
#include "engine/life.h"

#include <assert.h>
#include <stdio.h>

#include "base/err.h"
#include "engine/kineto_model.h"
#include "engine/matching.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/refusals.h"
#include "engine/settle.h"
#include "engine/steps.h"
#include "engine/stream_blobs.h"
#include "engine/streams.h"
#include "engine/tell.h"

#define MORE_NEWS_NS UINT64_C(20000000) /* when there are more than go at once */

struct tp_session_time tp_session_now(struct tp_now now)
{
    return (struct tp_session_time){now.mono_ns, (int64_t)now.wall_ns};
}

void tp_life_touch(struct tp_trace *t)
{
    t->version++;
}

bool tp_life_is_awaited(const struct tp_member *m)
{
    return m->state == TP_MEMBER_ARMED || m->state == TP_MEMBER_RECORDING ||
           m->state == TP_MEMBER_FLUSHING ||
           (m->is_unsure && m->state == TP_MEMBER_WAITING);
}

bool tp_life_has_missed(const struct tp_member *m)
{
    return m->state == TP_MEMBER_DONE && !m->has_begun && m->reported.emitted == 0 &&
           !tp_member_has_posted(m) && !tp_kineto_is_member(m);
}

static uint64_t ms_to_ns(uint64_t ms)
{
    return ms > UINT64_MAX / 1000000 ? 0 : ms * 1000000;
}

void tp_life_init(struct tp_trace *t, struct tp_now now)
{
    const struct tp_limits *limits = &t->engine->limits;
    struct tp_session_options options = {
        .prepared_ns = ms_to_ns(limits->trace_prepared_ms),
        .recording_ns = ms_to_ns(t->spec.duration_ms),
        .stopping_ns = ms_to_ns(limits->trace_stopping_ms),
    };

    tp_session_init(&t->session, &options, tp_session_now(now), "created");
    tp_quota_init(&t->quota, "max-trace-bytes", "bytes", t->spec.max_bytes);
    t->version = 1;
}

/* The common start: when all have been told, a little beyond what the clocks may be
 * off. */
static void set_start_at(struct tp_trace *t, struct tp_now now)
{
    uint64_t margin = tp_tell_plan(t, now);

    if (t->start_at_ns == 0 && tp_kineto_waiting(t) > 0)
        tp_kineto_plan(t, now, &t->start_at_ns, NULL);
    if (!t->is_planned && t->start_at_ns < now.wall_ns + margin)
        t->start_at_ns = now.wall_ns + margin;
}

/* The duration counts from the start that everybody keeps, not from the move. */
static void delay_stop(struct tp_trace *t, uint64_t more_ns, struct tp_now now)
{
    uint64_t stop_ns = tp_session_deadline_ns(&t->session);
    struct tp_err ignored;

    if (stop_ns == TP_SESSION_NO_DEADLINE || more_ns == 0)
        return;
    tp_session_set_deadline(&t->session, stop_ns + more_ns, TP_SESSION_STOPPING,
                            "the duration limit was reached", &ignored);
    tp_persist_deadline(t, now);
}

int tp_life_start_new(struct tp_trace *t, struct tp_now now, struct tp_err *err)
{
    int rc;

    set_start_at(t, now); /* never earlier than now */
    rc = tp_session_move(&t->session, TP_SESSION_RECORDING, tp_session_now(now),
                         TP_CAUSE_AT_ONCE, err);
    if (rc == TP_OK)
        delay_stop(t, t->start_at_ns - now.wall_ns, now);
    return rc;
}

void tp_life_postpone(struct tp_trace *t, uint64_t start_at_ns, struct tp_now now)
{
    uint64_t more_ns = start_at_ns - t->start_at_ns;

    t->start_at_ns = start_at_ns;
    if (t->session.state == TP_SESSION_RECORDING)
        delay_stop(t, more_ns, now);
    tp_life_touch(t);
}

int tp_life_plan(struct tp_trace *t, uint64_t start_at_ns, struct tp_now now,
                 struct tp_err *err)
{
    uint64_t start_ns = now.mono_ns;
    int rc = TP_OK;

    if (start_at_ns > now.wall_ns)
        start_ns += start_at_ns - now.wall_ns;
    if (t->session.state == TP_SESSION_PREPARED)
        rc = tp_session_set_deadline(
            &t->session, start_ns > TP_START_LEAD_NS ? start_ns - TP_START_LEAD_NS : 0,
            TP_SESSION_RECORDING, "the start of the Kineto processes has come", err);
    else if (t->session.state != TP_SESSION_RECORDING)
        rc = tp_fail(err, TP_ESTATE, "the trace starts no more");
    else if (t->spec.duration_ms != 0)
        rc = tp_session_set_deadline(&t->session,
                                     start_ns + ms_to_ns(t->spec.duration_ms),
                                     TP_SESSION_STOPPING,
                                     "the duration limit was reached", err);
    if (rc != TP_OK)
        return rc;
    t->start_at_ns = start_at_ns;
    t->is_planned = t->is_planned || t->session.state == TP_SESSION_PREPARED;
    return TP_OK;
}

void tp_life_hold(struct tp_trace *t)
{
    t->job->active = t;
    t->engine->n_active++;
    if (t->session.state != TP_SESSION_STOPPING) {
        tp_registry_freeze(t->job->registry);
        t->has_frozen = true;
    }
}

static void let_registry_go(struct tp_trace *t)
{
    if (t->has_frozen)
        tp_registry_unfreeze(t->job->registry);
    t->has_frozen = false;
}

/* Tell a producer that may still record to drop the trace, and let it go. */
static void let_producers_go(struct tp_trace *t)
{
    for (size_t i = 0; i < t->n_members; i++) {
        struct tp_member *m = t->members[i];
        struct tp_producer *p = m->producer;

        if (p == NULL)
            continue;
        tp_kineto_disarm(p);
        if (tp_kineto_is(p))
            m->kineto.phase = TP_KINETO_PHASE_SETTLED;
        else if (tp_life_is_awaited(m) || m->state == TP_MEMBER_LOST ||
                 (p->has_synced && m->state == TP_MEMBER_WAITING && p->given != 0)) {
            memcpy(p->cancel_id, t->id, sizeof(p->cancel_id));
            p->cancel_was_sent = false;
        }
        tp_member_detach(m);
    }
}

static void count_end(struct tp_trace *t)
{
    struct tp_engine_stats *stats = &t->engine->stats;

    if (t->session.state == TP_SESSION_FAILED)
        stats->traces_failed++;
    else if (t->session.state == TP_SESSION_CANCELLED)
        stats->traces_cancelled++;
    else if (strcmp(t->outcome, "complete") == 0)
        stats->traces_complete++;
    else if (strcmp(t->outcome, "lossy") == 0)
        stats->traces_lossy++;
    else if (strcmp(t->outcome, "partial") == 0)
        stats->traces_partial++;
    else
        stats->traces_empty++;
}

/* What follows from a move that is in the store. */
static void follow(struct tp_trace *t)
{
    int state = t->session.state;

    if (state == TP_SESSION_PREPARED || state == TP_SESSION_RECORDING)
        return;
    let_registry_go(t);
    if (state == TP_SESSION_STOPPING)
        return;
    let_producers_go(t);
    tp_refusals_give_up_trace(t);
    if (t->job->active == t)
        t->job->active = NULL;
    t->engine->n_active--;
    tp_typemap_unref(t->types);
    t->types = NULL;
    t->is_purging = state == TP_SESSION_CANCELLED;
    t->engine->has_purges = t->engine->has_purges || t->is_purging;
    count_end(t);
}

static int move(struct tp_trace *t, enum tp_session_state to, const char *cause,
                struct tp_now now, struct tp_err *err)
{
    struct tp_session before = t->session;
    uint64_t version = t->version;
    int rc = tp_session_move(&t->session, to, tp_session_now(now), cause, err);

    if (rc != TP_OK)
        return rc;
    tp_life_touch(t);
    rc = tp_trace_is_active(t) ? tp_persist_move(t->engine, t, now, err)
                               : tp_persist_trace(t->engine, t, now, err);
    if (rc != TP_OK) {
        t->session = before;
        t->version = version;
        return rc;
    }
    follow(t);
    return TP_OK;
}

int tp_life_start(struct tp_trace *t, const char *cause, struct tp_now now,
                  struct tp_err *err)
{
    uint64_t before = t->start_at_ns;
    int rc;

    set_start_at(t, now);
    rc = move(t, TP_SESSION_RECORDING, cause, now, err);
    if (rc != TP_OK) {
        t->start_at_ns = before;
        return rc;
    }
    if (t->start_at_ns > now.wall_ns)
        delay_stop(t, t->start_at_ns - now.wall_ns, now);
    tp_kineto_begin(t, now);
    return TP_OK;
}

/* A Kineto process works on a large recording for minutes, and how it does is known by
 * other means than a deadline. */
static void await_files(struct tp_trace *t, struct tp_now now)
{
    struct tp_err ignored;

    if (tp_session_deadline_ns(&t->session) >= now.mono_ns + TP_KINETO_COLLECT_NS)
        return;
    tp_session_set_deadline(&t->session, now.mono_ns + TP_KINETO_COLLECT_NS,
                            TP_SESSION_COMPLETE, "the time to collect files was over",
                            &ignored);
    tp_persist_deadline(t, now);
}

int tp_life_stop(struct tp_trace *t, const char *cause, struct tp_now now,
                 struct tp_err *err)
{
    int rc = move(t, TP_SESSION_STOPPING, cause, now, err);

    if (rc == TP_OK)
        tp_kineto_stop(t);
    if (rc == TP_OK && tp_kineto_is_collecting(t))
        await_files(t, now);
    if (rc == TP_OK)
        tp_life_advance(t, now);
    return rc;
}

int tp_life_end(struct tp_trace *t, enum tp_session_state to, const char *cause,
                struct tp_now now, struct tp_err *err)
{
    int rc;

    snprintf(t->reason, sizeof(t->reason), "%s", cause);
    rc = move(t, to, cause, now, err);
    if (rc != TP_OK) {
        t->reason[0] = '\0';
        return rc;
    }
    tp_life_advance(t, now);
    return TP_OK;
}

enum tp_drop_cause tp_life_lost_cause(const struct tp_member *m)
{
    const struct tp_stream *s = tp_member_stream(m);

    return s != NULL && tp_refusals_are_of_storage(s) ? TP_DROP_STORAGE_FAILED
                                                      : TP_DROP_LOST;
}

static void add_unsent(const struct tp_trace *t, const struct tp_member *m,
                       struct tp_counts *out)
{
    const struct tp_stream *s = tp_member_stream(m);
    const struct tp_counts *r = &m->reported;
    struct tp_counts more = {.filtered = r->filtered};
    uint64_t told = tp_counts_dropped(r) + r->filtered, lost = 0,
             posted = s == NULL ? 0 : s->counts.emitted;

    /* While it records, what was not posted yet is on its way and not lost. */
    if ((m->state == TP_MEMBER_DONE || !tp_trace_is_active(t)) && r->emitted > told &&
        r->emitted - told > posted)
        lost = r->emitted - told - posted;
    more.emitted = told + lost;
    memcpy(more.dropped, r->dropped, sizeof(more.dropped));
    more.dropped[tp_life_lost_cause(m)] += lost;
    tp_counts_add(out, &more);
}

void tp_life_member_counts(const struct tp_member *m, struct tp_counts *out)
{
    const struct tp_stream *s = tp_member_stream(m);

    memset(out, 0, sizeof(*out));
    if (s != NULL)
        *out = s->counts;
    add_unsent(m->trace, m, out);
}

void tp_life_totals(const struct tp_trace *t, struct tp_counts *out)
{
    memset(out, 0, sizeof(*out));
    /* One that is hidden has counts when its first batch was refused. */
    for (size_t i = 0; i < t->n_streams; i++)
        tp_counts_add(out, &t->streams[i]->counts);
    for (size_t i = 0; i < t->n_members; i++)
        add_unsent(t, t->members[i], out);
}

/*
 * Whether one of the members is one that the answer waits for. They are asked about
 * with each word of each of them, so the one that was waited for last is looked at
 * first: while it is silent, one look is enough.
 */
static bool waits_for_any(struct tp_trace *t, bool (*is_one)(const struct tp_member *))
{
    for (size_t n = 0; n < t->n_members; n++) {
        size_t i = t->waits_for + n;

        i = i < t->n_members ? i : i - t->n_members;
        if (is_one(t->members[i])) {
            t->waits_for = i;
            return true;
        }
    }
    t->waits_for = 0;
    return false;
}

static bool all_are_in(struct tp_trace *t)
{
    return t->n_uploads == 0 && !waits_for_any(t, tp_life_is_awaited);
}

/* Take no more data. What members still owe is late. */
static void begin_sealing(struct tp_trace *t, struct tp_now now)
{
    struct tp_err ignored;

    t->is_sealing = true;
    tp_refusals_give_up_trace(t);
    t->stream_news_ns = now.mono_ns;
    tp_streams_write_news(t, now);
    for (size_t i = 0; i < t->n_streams; i++) {
        if (t->streams[i]->state == TP_STREAM_OPEN)
            t->streams[i]->state = TP_STREAM_SEALING;
    }
    tp_settle_streams(t, now);
    /* The seal has its own bounds: no deadline from here on. */
    tp_session_set_deadline(&t->session, TP_SESSION_NO_DEADLINE, TP_SESSION_COMPLETE,
                            "", &ignored);
    tp_life_touch(t);
}

/* Whether nothing that is told of the data can change any more. */
static bool is_settled(const struct tp_trace *t)
{
    for (size_t i = 0; i < t->n_streams; i++) {
        const struct tp_stream *s = t->streams[i];

        if (s->state == TP_STREAM_SEALING && !s->is_settled)
            return false;
    }
    return t->n_working == 0;
}

/* All its streams are lost: there is nothing to be complete about. */
static const struct tp_stream *all_failed(const struct tp_trace *t)
{
    const struct tp_stream *last = NULL;

    for (size_t i = 0; i < t->n_streams; i++) {
        const struct tp_stream *s = t->streams[i];

        if (s->state == TP_STREAM_SEALED || s->state == TP_STREAM_SEALING)
            return NULL;
        if (s->state == TP_STREAM_FAILED)
            last = s;
    }
    return last;
}

static int finish(struct tp_trace *t, struct tp_now now, struct tp_err *err)
{
    const struct tp_stream *failed = all_failed(t);
    char cause[TP_SESSION_CAUSE_BYTES * 2];
    int rc;

    tp_life_judge(t);
    if (failed != NULL) {
        t->outcome[0] = '\0';
        snprintf(cause, sizeof(cause), "the data cannot be read: %s", failed->reason);
        return tp_life_end(t, TP_SESSION_FAILED, cause, now, err);
    }
    rc = move(t, TP_SESSION_COMPLETE,
              tp_settle_is_unsealed(t) ? "all data is in" : "all data is sealed", now,
              err);
    if (rc == TP_OK)
        tp_settle_later(t);
    else
        t->outcome[0] = t->reason[0] = '\0';
    return rc;
}

/* Whether a member was asked to arm and has not answered. */
static bool is_arming(const struct tp_member *m)
{
    return m->state == TP_MEMBER_WAITING && m->producer != NULL &&
           m->producer->has_synced;
}

/* Whether a member was not asked to arm, since it has asked for nothing yet. */
static bool is_silent(const struct tp_member *m)
{
    return m->state == TP_MEMBER_WAITING && !is_arming(m) &&
           (m->producer == NULL || !tp_kineto_is(m->producer));
}

static size_t count_members(const struct tp_trace *t,
                            bool (*is_one)(const struct tp_member *))
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_members; i++)
        n += is_one(t->members[i]);
    return n;
}

static bool is_armed(const struct tp_member *m)
{
    return m->state == TP_MEMBER_ARMED;
}

static bool has_refused(const struct tp_member *m)
{
    return m->state == TP_MEMBER_REFUSED;
}

static bool is_lost(const struct tp_member *m)
{
    return m->state == TP_MEMBER_LOST;
}

/* Why it starts: whom it has waited for, and who is not armed all the same. */
static void say_armed(const struct tp_trace *t, char *out, size_t size)
{
    static const struct {
        bool (*is_one)(const struct tp_member *m);
        const char *what;
    } others[] = {{is_silent, "yet to ask for commands"},
                  {has_refused, "refused"},
                  {is_lost, "lost"}};
    bool has_armed = count_members(t, is_armed) > 0, has_others = false;
    size_t len = 0;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        size_t n = count_members(t, others[i].is_one);

        if (n == 0)
            continue;
        if (!has_others)
            len = (size_t)snprintf(out, size, "%s",
                                   has_armed ? "all producers that take part are armed"
                                             : "nobody to wait for");
        len += (size_t)snprintf(out + len, size - len, "%s %zu %s",
                                has_others ? "," : ";", n, others[i].what);
        has_others = true;
    }
    if (!has_others)
        snprintf(out, size, "%s",
                 has_armed ? "all producers are armed" : "nobody to wait for");
}

/* Start when every producer that was asked has answered. One that has never asked for
 * commands, such as one that only posts, may never do so: it is told when it does. */
static int start_when_armed(struct tp_trace *t, struct tp_now now, struct tp_err *err)
{
    char cause[TP_SESSION_CAUSE_BYTES];

    if (t->spec.start != TP_START_NOW || t->is_planned || waits_for_any(t, is_arming))
        return TP_OK;
    say_armed(t, cause, sizeof(cause));
    return tp_life_start(t, cause, now, err);
}

static int advance_stopping(struct tp_trace *t, struct tp_now now, struct tp_err *err)
{
    bool is_due = tp_session_due(&t->session, now.mono_ns, NULL, NULL);

    if (!t->is_sealing && t->n_committing == 0 && (is_due || all_are_in(t)))
        begin_sealing(t, now);
    if (t->is_sealing && is_settled(t))
        return finish(t, now, err);
    return TP_OK;
}

static void purge(struct tp_trace *t)
{
    if (t->n_committing > 0 || t->n_working > 0)
        return;
    t->is_purging = !tp_stream_blobs_remove(t);
}

void tp_life_advance(struct tp_trace *t, struct tp_now now)
{
    struct tp_err err;
    int rc = TP_OK;

    if (t->session.state == TP_SESSION_PREPARED)
        rc = start_when_armed(t, now, &err);
    else if (t->session.state == TP_SESSION_STOPPING)
        rc = advance_stopping(t, now, &err);
    if (t->is_purging)
        purge(t);
    t->retry_ns = rc == TP_OK && !t->is_purging ? 0 : now.mono_ns + TP_RETRY_NS;
}

/* Make the move that the session says is due. */
static int run_due(struct tp_trace *t, struct tp_now now, struct tp_err *err)
{
    enum tp_session_state to;
    const char *due;
    char cause[TP_SESSION_CAUSE_BYTES];

    if (t->session.state == TP_SESSION_STOPPING ||
        !tp_session_due(&t->session, now.mono_ns, &to, &due))
        return TP_OK;
    snprintf(cause, sizeof(cause), "%s", due);
    if (to == TP_SESSION_RECORDING)
        return tp_life_start(t, cause, now, err);
    if (to == TP_SESSION_STOPPING)
        return tp_life_stop(t, cause, now, err);
    return tp_life_end(t, to, cause, now, err);
}

static void lose_stale_members(struct tp_trace *t, struct tp_now now, uint64_t *next)
{
    for (size_t i = 0; i < t->n_members; i++) {
        struct tp_member *m = t->members[i];
        struct tp_producer *p = m->producer;

        if (p == NULL || !tp_life_is_awaited(m) || tp_kineto_is(p))
            continue;
        if (tp_match_silent_ns(p, now) < p->silence_ns) {
            if (tp_match_gone_at_ns(p) < *next)
                *next = tp_match_gone_at_ns(p);
            continue;
        }
        m->state = TP_MEMBER_LOST;
        tp_member_changed(m);
        snprintf(m->reason, sizeof(m->reason), "not heard of for %llu s",
                 (unsigned long long)(tp_match_silent_ns(p, now) / 1000000000));
        tp_life_touch(t);
    }
}

/*
 * What members said since goes into the store a little later and a part at a time: with
 * thousands of them each would wait for the rows of all before it. What a crash takes
 * of it they are asked for again. Returns when the next part is due.
 */
static uint64_t write_members(struct tp_trace *t, struct tp_now now)
{
    struct tp_err ignored;

    if (!t->has_member_news)
        return UINT64_MAX;
    if (now.mono_ns < t->news_ns)
        return t->news_ns;
    t->news_ns = now.mono_ns + TP_NEWS_NS;
    if (tp_persist_members(t->engine, t, &ignored) == TP_OK && t->has_member_news)
        t->news_ns = now.mono_ns + MORE_NEWS_NS;
    return t->has_member_news ? t->news_ns : UINT64_MAX;
}

/* When the seal of a stream is to be tried again. */
static uint64_t next_retry(const struct tp_trace *t, struct tp_now now)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; (t->is_sealing || t->is_unsealed) && i < t->n_streams; i++) {
        const struct tp_stream *s = t->streams[i];

        if (s->state == TP_STREAM_SEALING && !s->is_working &&
            s->retry_ns > now.mono_ns && s->retry_ns < next)
            next = s->retry_ns;
    }
    return next;
}

/* End a trace that a restart could not bring back. */
static uint64_t tick_broken(struct tp_trace *t, struct tp_now now)
{
    char cause[sizeof(t->reason)];
    struct tp_err err;

    memcpy(cause, t->reason, sizeof(cause));
    t->is_broken = tp_life_end(t, TP_SESSION_FAILED, cause, now, &err) != TP_OK;
    if (!t->is_broken)
        return UINT64_MAX;
    memcpy(t->reason, cause, sizeof(cause));
    t->retry_ns = now.mono_ns + TP_RETRY_NS;
    return t->retry_ns;
}

uint64_t tp_life_tick(struct tp_trace *t, struct tp_now now)
{
    uint64_t next = next_retry(t, now), deadline, news, steps;
    struct tp_err err;

    if (t->retry_ns > now.mono_ns)
        return t->retry_ns;
    if (!tp_trace_is_active(t) && !t->is_purging)
        return next;
    if (t->is_broken)
        return tick_broken(t, now);
    if (tp_trace_is_active(t))
        lose_stale_members(t, now, &next);
    steps = tp_steps_tick(t, now);
    next = steps < next ? steps : next;
    if (run_due(t, now, &err) != TP_OK)
        t->retry_ns = now.mono_ns + TP_RETRY_NS;
    else
        tp_life_advance(t, now);
    deadline = tp_trace_is_active(t) ? tp_session_deadline_ns(&t->session) : UINT64_MAX;
    news = tp_trace_is_active(t) ? write_members(t, now) : UINT64_MAX;
    next = news < next ? news : next;
    news = tp_trace_is_active(t) ? tp_streams_write_news(t, now) : UINT64_MAX;
    next = news < next ? news : next;
    if (t->retry_ns != 0 && t->retry_ns < next)
        return t->retry_ns;
    return deadline < next ? deadline : next;
}
