/*
 * The one call that a producer repeats. Commands are not queued: what a producer is to
 * do follows from the state of its trace and of its part in it, so a repeated or lost
 * answer does no harm, and a restarted service gives the same commands again.
 *
 *   trace       member      commands
 *   prepared    waiting     prepare
 *   recording   waiting     prepare, start
 *               armed       start
 *   stopping    armed, recording, flushing   stop
 *   (ended while it took part)               cancel
 */
#include <stdio.h>

#include "base/err.h"
#include "core/counts.h"
#include "core/filter.h"
#include "engine/life.h"
#include "engine/matching.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/problem.h"
#include "engine/producers.h"
#include "engine/refusals.h"
#include "engine/steps.h"
#include "engine/streams.h"
#include "engine/sync.h"
#include "engine/tell.h"

#define BIT(command) (1u << TP_COMMAND_##command)
#define DRIFT_DIVISOR 10000 /* clocks part by at most 100 ppm */

/* Nobody is told more often than that; a number fits into JSON's. */
#define NS_PER_SEQ 1000

/* How far from the life of its trace a start may seem to be: what a host may take to
 * read a clock, and what is known of the clock's error, within reason. */
#define STARTED_OFF_NS UINT64_C(1000000000)
#define CLOCK_OFF_NS UINT64_C(60000000000)

const char *tp_command_name(enum tp_command_kind kind)
{
    static const char *const names[TP_COMMANDS] = {
        [TP_COMMAND_PREPARE] = "prepare",
        [TP_COMMAND_START] = "start",
        [TP_COMMAND_STOP] = "stop",
        [TP_COMMAND_CANCEL] = "cancel",
    };

    return (unsigned)kind < TP_COMMANDS ? names[kind] : "unknown";
}

/* Which commands are due, as bits; cancel is kept apart. */
static unsigned wanted(const struct tp_producer *p)
{
    const struct tp_member *m = p->member;
    int state = m == NULL ? -1 : m->trace->session.state;

    if (state == TP_SESSION_PREPARED && m->state == TP_MEMBER_WAITING)
        return BIT(PREPARE);
    if (state == TP_SESSION_RECORDING && m->state == TP_MEMBER_WAITING)
        return BIT(PREPARE) | BIT(START);
    if (state == TP_SESSION_RECORDING && m->state == TP_MEMBER_ARMED)
        return BIT(START);
    if (state == TP_SESSION_STOPPING && tp_life_is_awaited(m))
        return BIT(STOP);
    return 0;
}

bool tp_engine_sync_ready(struct tp_engine *e, struct tp_str id)
{
    struct tp_producer *p;
    bool is_ready;

    tp_lock_take(&e->lock);
    p = tp_producer_find(e, id);
    is_ready = p == NULL || (p->cancel_id[0] != '\0' && !p->cancel_was_sent) ||
               (wanted(p) & ~p->given) != 0;
    tp_lock_give(&e->lock);
    return is_ready;
}

/* Keep the best of the exchanges; an old one gets worse as the clocks drift. */
static void take_clock(struct tp_producer *p, const struct tp_sync_request *r,
                       struct tp_now now)
{
    int64_t there = (int64_t)(r->t_server_received_ns - r->t_sent_ns);
    int64_t back = (int64_t)(r->t_server_sent_ns - r->t_received_ns);
    /* While the answer was held the clocks may have parted, in either direction. */
    int64_t parted = (int64_t)(r->t_server_sent_ns - r->t_server_received_ns) /
                     DRIFT_DIVISOR;
    int64_t round = there - back + parted;
    uint64_t error = (uint64_t)round / 2 + (uint64_t)parted / 2 + 1; /* now */
    uint64_t age = now.mono_ns > p->clock_mono_ns ? now.mono_ns - p->clock_mono_ns : 0;
    uint64_t worn = p->clock_error_ns + age / DRIFT_DIVISOR;

    if (r->t_sent_ns == 0 || r->t_received_ns == 0 || r->t_server_received_ns == 0 ||
        r->t_server_sent_ns < r->t_server_received_ns || round < 0)
        return;
    if (p->has_clock && error > worn + 1)
        return;
    p->has_clock = true;
    p->clock_offset_ns = there / 2 + back / 2;
    p->clock_error_ns = error;
    p->clock_mono_ns = now.mono_ns;
    if (p->member != NULL) {
        p->member->has_clock = true;
        p->member->clock_offset_ns = p->clock_offset_ns;
        p->member->clock_error_ns = p->clock_error_ns;
        tp_member_changed(p->member);
    }
}

/*
 * Whether an ack tells of something that can be: who was not told to start has not
 * started. After a restart nobody knows what it was told.
 */
static bool is_out_of_turn(const struct tp_member *m, enum tp_command_kind command)
{
    return m->trace->session.state == TP_SESSION_PREPARED && !m->is_unsure &&
           (command == TP_COMMAND_STOP ||
            (command == TP_COMMAND_START &&
             (m->state != TP_MEMBER_ARMED || m->trace->spec.start != TP_START_STEP)));
}

/* When a producer began, by the clock of the service; not at a time at which it cannot
 * have begun. */
static void take_started(struct tp_member *m, uint64_t started_ns, struct tp_now now)
{
    const struct tp_trace *t = m->trace;
    uint64_t off_ns = STARTED_OFF_NS + (m->clock_error_ns < CLOCK_OFF_NS
                                            ? m->clock_error_ns
                                            : CLOCK_OFF_NS);
    uint64_t last_ns = t->start_at_ns > now.wall_ns ? t->start_at_ns : now.wall_ns;

    if (started_ns + off_ns >= t->created_ns && started_ns <= last_ns + off_ns)
        m->started_ns = started_ns;
}

/* It records, or did so before it was told to stop. Said again, it is no news. */
static void begin(struct tp_member *m, const struct tp_sync_ack *ack, struct tp_now now)
{
    const bool is_over = m->state == TP_MEMBER_FLUSHING;
    const struct tp_producer *p = m->producer;

    if ((is_over && m->has_begun) || (m->state == TP_MEMBER_RECORDING && !m->is_unsure))
        return;
    m->has_begun = true;
    if (ack->start_wall_ns != 0)
        take_started(m, ack->start_wall_ns + (uint64_t)p->clock_offset_ns, now);
    if (is_over)
        return;
    m->state = TP_MEMBER_RECORDING;
    tp_steps_begin(m, ack->has_step ? ack->step : p->step, now);
}

/* It has nothing more to send: what waits to come again of it does not come. */
static void end(struct tp_member *m)
{
    struct tp_stream *s = tp_member_stream(m);

    m->state = TP_MEMBER_DONE;
    if (s != NULL)
        tp_refusals_give_up(s);
    if (tp_life_has_missed(m))
        snprintf(m->reason, sizeof(m->reason), "%s",
                 m->may_have_begun ? "whether it began is not known since a restart"
                                   : "the stop came before it began");
}

static void take_ack(struct tp_producer *p, const struct tp_sync_ack *ack,
                     struct tp_now now)
{
    struct tp_member *m = p->member;

    if (ack->command == TP_COMMAND_CANCEL && tp_str_is(ack->trace_id, p->cancel_id))
        p->cancel_id[0] = '\0';
    if (m == NULL || !tp_str_is(ack->trace_id, m->trace->id) ||
        m->state == TP_MEMBER_DONE)
        return;
    if (!ack->is_refused && is_out_of_turn(m, ack->command))
        return;
    if (ack->is_refused) {
        m->state = TP_MEMBER_REFUSED;
        snprintf(m->reason, sizeof(m->reason), "%.*s",
                 (int)(ack->reason.len > 100 ? 100 : ack->reason.len),
                 ack->reason.len == 0 ? "no reason given" : ack->reason.ptr);
    } else if (ack->command == TP_COMMAND_PREPARE && m->state == TP_MEMBER_WAITING) {
        m->state = TP_MEMBER_ARMED;
    } else if (ack->command == TP_COMMAND_START) {
        begin(m, ack, now);
    } else if (ack->command == TP_COMMAND_STOP) {
        end(m);
    } else {
        return;
    }
    m->is_unsure = false;
    tp_member_changed(m);
    tp_life_touch(m->trace);
}

/* Counts only grow: what was lost once is not found again by counting anew. */
static bool is_less(const struct tp_counts *now, const struct tp_counts *before)
{
    return now->emitted < before->emitted || now->filtered < before->filtered ||
           tp_counts_dropped(now) < tp_counts_dropped(before);
}

/*
 * Whether a sync may be older than what the row of its member tells: it was under way
 * when the service was restarted, which knows no more which numbers it had heard. Until
 * the producer shows that it has heard of us since.
 */
static bool may_be_overtaken(const struct tp_producer *p)
{
    return p->restored_wall_ns != 0 && p->heard_seq != 0;
}

static void keep_counts(struct tp_member *m, const struct tp_counts *less)
{
    snprintf(m->reason, sizeof(m->reason),
             "it counted %llu events and then %llu%s: what it counted first is kept",
             (unsigned long long)m->reported.emitted, (unsigned long long)less->emitted,
             less->emitted < m->reported.emitted ? "" : ", fewer of them dropped");
    tp_member_changed(m);
    tp_life_touch(m->trace);
}

/*
 * It is still at a trace that is over: the order to drop that was lost, and has made
 * way for the one to drop a later trace. Where it has its part of the trace behind it
 * the order does nothing.
 */
static void drop_again(struct tp_engine *e, struct tp_producer *p,
                       struct tp_str trace_id)
{
    struct tp_trace *t;

    if (tp_str_is(trace_id, p->cancel_id) ||
        tp_trace_find(e, trace_id, &t, NULL, NULL) != TP_OK || t->job != p->job ||
        tp_trace_is_active(t))
        return;
    memcpy(p->cancel_id, t->id, sizeof(p->cancel_id));
    p->cancel_was_sent = false;
}

static int take_counts(struct tp_engine *e, struct tp_producer *p,
                       const struct tp_sync_counts *c, struct tp_problem *problem,
                       struct tp_err *err)
{
    struct tp_member *m = p->member;
    struct tp_counts counts = {.emitted = c->emitted, .filtered = c->filtered};
    uint64_t dropped;

    memcpy(counts.dropped, c->dropped, sizeof(counts.dropped));
    dropped = tp_counts_dropped(&counts);
    if (c->filtered > c->emitted || dropped > c->emitted - c->filtered)
        return tp_problem_invalid(
            problem, "counts",
            tp_fail(err, TP_EINVAL,
                    "%llu emitted are fewer than %llu filtered and %llu dropped",
                    (unsigned long long)c->emitted, (unsigned long long)c->filtered,
                    (unsigned long long)dropped));
    if (c->types != NULL) {
        int rc = tp_type_counts_check(c->types, &counts, err);

        if (rc != TP_OK)
            return tp_problem_invalid(problem, "counts.types", rc);
    }
    if (m == NULL || !tp_str_is(c->trace_id, m->trace->id)) {
        drop_again(e, p, c->trace_id);
        return TP_OK;
    }
    if (is_less(&counts, &m->reported)) {
        if (!may_be_overtaken(p))
            keep_counts(m, &counts);
        return TP_OK;
    }
    if (c->types != NULL && tp_type_counts_take(&m->types, c->types, err) != TP_OK)
        return TP_ENOMEM;
    m->reported = counts;
    tp_member_changed(m);
    tp_life_touch(m->trace);
    return TP_OK;
}

static void put_command(const struct tp_member *m, enum tp_command_kind kind,
                        struct tp_sync_reply *reply)
{
    const struct tp_trace *t = m->trace;
    struct tp_command *c = &reply->commands[reply->n_commands++];

    memset(c, 0, sizeof(*c));
    c->kind = kind;
    memcpy(c->trace_id, t->id, sizeof(c->trace_id));
    c->stream_no = m->stream_no;
    c->types = *tp_filter_requested(t->filter);
    c->min_duration_ns = t->spec.min_duration_ns;
    c->start_wall_ns = kind == TP_COMMAND_START ? t->start_at_ns : 0;
    c->steps = t->spec.steps;
    c->duration_ms = t->spec.duration_ms;
    if (t->spec.start == TP_START_STEP)
        c->start_step = t->spec.start_step > 0 ? t->spec.start_step : 1;
}

/* Higher than any that it was told before, by the service before a restart, too. */
static uint64_t next_seq(struct tp_producer *p, struct tp_now now)
{
    const uint64_t by_time = now.wall_ns / NS_PER_SEQ;

    p->told_seq = p->told_seq < by_time ? by_time : p->told_seq + 1;
    return p->told_seq;
}

static int give_commands(struct tp_producer *p, struct tp_now now,
                         struct tp_sync_reply *reply, struct tp_err *err)
{
    unsigned bits = wanted(p);

    reply->n_commands = 0;
    reply->seq = next_seq(p, now);
    if ((bits & BIT(PREPARE)) != 0) {
        int rc = tp_streams_for_member(p->member, NULL, err);

        /* After a restart it must be the same: it is in all that the producer sends. */
        if (rc == TP_OK && p->member->has_new_stream)
            rc = tp_persist_member(p->member->trace->engine, p->member, err);
        if (rc != TP_OK)
            return rc;
    }
    if ((bits & ~p->given & BIT(START)) != 0)
        tp_tell_start(p->member, now);
    if (p->cancel_id[0] != '\0') {
        struct tp_command *c = &reply->commands[reply->n_commands++];

        memset(c, 0, sizeof(*c));
        c->kind = TP_COMMAND_CANCEL;
        memcpy(c->trace_id, p->cancel_id, sizeof(c->trace_id));
        p->cancel_was_sent = true;
    }
    for (int kind = 0; kind < TP_COMMANDS; kind++) {
        if ((bits & 1u << kind) != 0)
            put_command(p->member, kind, reply);
    }
    p->given |= bits;
    if ((bits & BIT(STOP)) != 0 && p->member->state != TP_MEMBER_FLUSHING) {
        p->member->state = TP_MEMBER_FLUSHING;
        tp_member_changed(p->member);
        tp_life_touch(p->member->trace);
    }
    return TP_OK;
}

/* A producer may promise to be heard of sooner than the service asks for. */
static void take_heartbeat(const struct tp_engine *e, struct tp_producer *p,
                           uint64_t ms)
{
    uint64_t most = e->limits.producer_silence_ms;

    if (ms != 0)
        p->silence_ns = (ms < most ? ms : most) * TP_NS_PER_MS;
}

/* How far a trace has come, as one number; 0 without one. */
static int stage_of(const struct tp_trace *t)
{
    return t == NULL ? 0 : 2 * (t->session.state + 1) + t->is_sealing;
}

/*
 * Note the number of a sync. Returns whether it is news, and not older than one that
 * was heard: a held sync and a report are on two connections, and which of them is read
 * first is not said. The step that an old one tells of would be taken for one that the
 * producer went back to, and a trace of some steps end before them.
 */
static bool note_seq(struct tp_producer *p, const struct tp_sync_request *r)
{
    if (r->t_server_sent_ns >= p->restored_wall_ns)
        p->restored_wall_ns = 0;
    if (r->seq != 0 && r->seq < p->heard_seq)
        return false;
    if (r->seq != 0)
        p->heard_seq = r->seq;
    return true;
}

static int take_all_counts(struct tp_engine *e, struct tp_producer *p,
                           const struct tp_sync_request *r, struct tp_problem *problem,
                           struct tp_err *err)
{
    int rc = TP_OK;

    for (size_t i = 0; i < r->n_counts && rc == TP_OK; i++)
        rc = take_counts(e, p, &r->counts[i], problem, err);
    return rc;
}

/* Whether a step is one from before that at which it began, said before a restart. */
static bool goes_back(const struct tp_producer *p, uint64_t step)
{
    return may_be_overtaken(p) && p->member != NULL && step < p->member->base_step;
}

static int sync_known(struct tp_engine *e, struct tp_producer *p,
                      const struct tp_sync_request *r, struct tp_now now,
                      struct tp_sync_reply *reply, struct tp_problem *problem,
                      struct tp_err *err)
{
    const bool is_news = note_seq(p, r);
    struct tp_trace *t;
    int stage;
    int rc;

    if (is_news)
        take_heartbeat(e, p, r->heartbeat_ms);
    p->has_synced = true;
    p->seen_wall_ns = now.wall_ns;
    p->seen_mono_ns = now.mono_ns;
    if (p->member != NULL && p->member->state == TP_MEMBER_LOST) {
        p->member->state = TP_MEMBER_WAITING;
        p->member->reason[0] = '\0';
        p->given = 0;
    }
    rc = tp_match_join(p, now, err);
    if (rc == TP_OK && is_news)
        rc = take_all_counts(e, p, r, problem, err);
    if (rc != TP_OK)
        return rc;
    t = p->member == NULL ? NULL : p->member->trace;
    stage = stage_of(t);
    take_clock(p, r, now);
    if (is_news && r->has_step && t == NULL)
        p->step = r->step;
    for (size_t i = 0; i < r->n_acks; i++)
        take_ack(p, &r->acks[i], now);
    if (is_news && r->has_step && t != NULL && !goes_back(p, r->step))
        tp_steps_take(p, r->step, now);
    if (t != NULL && r->n_acks > 0)
        tp_life_advance(t, now);
    reply->has_moved = stage_of(t) != stage;
    return tp_problem_storage(problem, give_commands(p, now, reply, err));
}

int tp_engine_sync(struct tp_engine *e, struct tp_str id,
                   const struct tp_sync_request *request, struct tp_now now,
                   struct tp_sync_reply *reply, struct tp_problem *problem,
                   struct tp_err *err)
{
    struct tp_producer *p;
    int rc;

    tp_problem_clear(problem);
    tp_lock_take(&e->lock);
    p = tp_producer_find(e, id);
    if (p == NULL) {
        rc = tp_problem_not_found(problem, "producer", id, err);
    } else {
        rc = sync_known(e, p, request, now, reply, problem, err);
    }
    if (rc == TP_OK) {
        e->stats.syncs++;
        e->stats.commands_sent += reply->n_commands;
    }
    tp_lock_give(&e->lock);
    return rc;
}

bool tp_engine_is_telling(struct tp_engine *e, struct tp_now now)
{
    bool is_telling;

    tp_lock_take(&e->lock);
    is_telling = now.mono_ns < e->telling_until_ns;
    tp_lock_give(&e->lock);
    return is_telling;
}

bool tp_engine_is_still_telling(struct tp_engine *e, struct tp_now now)
{
    const struct tp_trace *t;
    size_t cursor = 0;
    bool has_some = false;

    tp_lock_take(&e->lock);
    while (!has_some && (t = tp_trace_next_active(e, &cursor)) != NULL)
        has_some = tp_tell_is_going_on(t, now);
    tp_lock_give(&e->lock);
    return has_some;
}

int tp_engine_sync_ahead(struct tp_engine *e, struct tp_str id, struct tp_now now,
                         struct tp_sync_reply *reply, struct tp_err *err)
{
    struct tp_producer *p;
    int rc = TP_OK;

    reply->n_commands = 0;
    reply->has_moved = false;
    tp_lock_take(&e->lock);
    p = tp_producer_find(e, id);
    if (p == NULL)
        rc = tp_fail(err, TP_ENOTFOUND, "there is no producer %.*s", (int)id.len,
                     id.ptr);
    else if ((wanted(p) & ~p->given & BIT(START)) != 0)
        rc = give_commands(p, now, reply, err);
    tp_lock_give(&e->lock);
    return rc;
}
