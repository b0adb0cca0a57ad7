/*
 * kineto_resume.c - the Kineto processes of a trace, when the service was killed.
 *
 * The rows know who takes part, when the start is, and, a second late, who was told. A
 * process that waits by its row may have been told just before. It is told again: one
 * that has a request throws a second one away, and its file is taken whichever it
 * follows.
 *
 * Nobody knows when the processes ask, only how often: each has to ask once to be
 * known, and then once more to be told, or twice when it is behind, as the restart may
 * have left it: a send that succeeds at its last retry counts as failed, and its answer
 * stays unread. When the start is too near for that it is moved for those who wait, and
 * for the trace, unless others have begun by then. Who has been told keeps to the old
 * one. The lost alternative, to wait for signs of who was told and then to plan anew,
 * starts no sooner, since the same requests have to come.
 */
#include <stdio.h>

#include "engine/kineto_model.h"
#include "engine/life.h"
#include "engine/objects.h"
#include "engine/persist.h"

/* To be known, to be left without an answer if it is behind, and to be told. */
#define REQUESTS 3
/* Beside them: libkineto asks up to 5.12 s after a service is back. */
#define SLACK_NS TP_KINETO_SECOND_NS

static bool is_told(const struct tp_member *m)
{
    return m->state != TP_MEMBER_WAITING && tp_life_is_awaited(m);
}

/* How often those ask who wait, the slowest of them; at least the usual. */
static uint64_t slowest_ns(const struct tp_trace *t)
{
    uint64_t ns = TP_KINETO_POLL_NS;

    for (size_t i = 0; i < t->n_members; i++) {
        const struct tp_member *m = t->members[i];

        if (tp_kineto_is_waiting(m) && m->interval_ns > ns)
            ns = m->interval_ns;
    }
    return ns;
}

/* Whether a process can have been told of that start, or is to be told very soon; one
 * that is behind is told the soonest. */
static bool is_near(const struct tp_trace *t, struct tp_now now)
{
    const struct tp_kineto_rhythm any = {.interval_ns = slowest_ns(t),
                                         .is_behind = true};

    return now.mono_ns >= tp_kineto_hold_until(&any,
                                               tp_kineto_to_mono(t->start_at_ns, now),
                                               tp_kineto_warmup_ns(t));
}

static bool has_told(const struct tp_trace *t)
{
    bool has = false;

    for (size_t i = 0; i < t->n_members; i++)
        has = has || is_told(t->members[i]);
    return has;
}

/* Whether the start is no use to anybody who waits, and moving it harms nobody. */
static bool is_to_be_moved(const struct tp_trace *t, struct tp_now now)
{
    uint64_t most_ns = t->engine->limits.trace_prepared_ms * TP_NS_PER_MS;

    return t->spec.kineto_options.iterations == 0 && tp_kineto_waiting(t) > 0 &&
           is_near(t, now) && (t->is_planned || !has_told(t)) &&
           t->session.state <= TP_SESSION_RECORDING &&
           now.wall_ns < t->start_at_ns + most_ns;
}

static void move_start(struct tp_trace *t, struct tp_now now)
{
    uint64_t answered_ns = now.mono_ns + REQUESTS * slowest_ns(t) + SLACK_NS;
    uint64_t start_ns = tp_kineto_safe_start(answered_ns, tp_kineto_warmup_ns(t));
    uint64_t start_wall_ns = tp_kineto_to_wall(start_ns, now);
    size_t n_warnings = t->spec.n_warnings;
    struct tp_err ignored;

    if (has_told(t) && start_wall_ns > t->start_at_ns)
        tp_spec_warn(&t->spec, &ignored,
                     "the service restarted: who had been told by then starts "
                     "%llu ms before the others",
                     (unsigned long long)((start_wall_ns - t->start_at_ns) /
                                          TP_NS_PER_MS));
    if (tp_life_plan(t, start_wall_ns, now, &ignored) != TP_OK) {
        t->spec.n_warnings = n_warnings;
        return;
    }
    tp_persist_deadline(t, now);
    tp_life_touch(t);
    for (size_t i = 0; i < t->n_members; i++) {
        struct tp_member *m = t->members[i];

        if (!tp_kineto_is_waiting(m))
            continue;
        snprintf(m->reason, sizeof(m->reason),
                 "the service restarted: its start was moved");
        tp_member_changed(m);
        t->news_ns = 0;
    }
}

static void resume_member(struct tp_member *m, bool may_be_told, struct tp_now now)
{
    m->kineto.needs_find = m->kineto.needs_task = true;
    m->trace->engine->kineto->has_tasks = true;
    m->kineto.gone_ns = now.mono_ns + TP_KINETO_SILENCE_S * TP_KINETO_SECOND_NS;
    if (m->state == TP_MEMBER_WAITING)
        m->is_unsure = may_be_told;
    else
        m->kineto.phase = m->state == TP_MEMBER_ARMED ? TP_KINETO_PHASE_SERVED
                                                      : TP_KINETO_PHASE_BEGUN;
}

void tp_kineto_resume(struct tp_trace *t, struct tp_now now)
{
    bool may_be_told;

    if (t->engine->kineto == NULL)
        return;
    t->is_planned = t->session.state == TP_SESSION_PREPARED && t->start_at_ns != 0;
    if (t->start_at_ns == 0)
        return;
    may_be_told = t->spec.kineto_options.iterations > 0 || is_near(t, now);
    for (size_t i = 0; i < t->n_members; i++) {
        if (tp_kineto_is_member(t->members[i]) && is_told(t->members[i]))
            tp_kineto_set_times(t->members[i], now); /* from the old start */
    }
    if (is_to_be_moved(t, now))
        move_start(t, now);
    tp_kineto_begin(t, now);
    for (size_t i = 0; i < t->n_members; i++) {
        struct tp_member *m = t->members[i];

        if (tp_kineto_is_waiting(m) || (tp_kineto_is_member(m) && is_told(m)))
            resume_member(m, may_be_told, now);
    }
}
