/*
 * kineto_follow.c - what becomes of the processes that were told to record.
 *
 * Nobody acknowledges anything. What is known comes from how a process asks (it says
 * whether its profiler is busy), from its file (made when it takes the order, renamed
 * when it is complete), and from the clock:
 *
 *   FOLDER --> READY --> ORDERED --> SERVED --> BEGUN --> (settled)
 *
 *   waiting: up to ORDERED    armed: SERVED    recording, flushing: BEGUN, by the clock
 *
 * A process that is idle after its end, or gone, and whose file does not come within
 * GRACE_NS has none. There are clients that never say that they are busy: one whose
 * file is begun is waited for as long as the trace waits for files.
 *
 * A member that is unsure may have been told by a service that was killed before it
 * wrote so down. It is told again while there is time, since a process that has an
 * order throws the second one away; later it counts as told until its file does not
 * come.
 */
#include <stdio.h>

#include "base/err.h"
#include "engine/kineto_model.h"
#include "engine/life.h"
#include "engine/objects.h"

#define GRACE_NS (3 * TP_KINETO_SECOND_NS)
#define POLLS_TO_LEARN 3 /* schedule.h believes a longer interval when it comes twice */
#define LAGGING \
    "lagging: it reads its answers a request late, and is told when it is in step"

static void change(struct tp_member *m)
{
    tp_member_changed(m);
    m->trace->news_ns = 0; /* the next tick writes it */
    tp_life_touch(m->trace);
}

void tp_kineto_settle(struct tp_member *m, enum tp_member_state state,
                      const char *reason)
{
    struct tp_producer *p = tp_kineto_producer(m);

    if (p != NULL)
        tp_kineto_disarm(p);
    m->kineto.phase = TP_KINETO_PHASE_SETTLED;
    m->kineto.needs_task = m->kineto.needs_find = false;
    m->is_unsure = false;
    m->state = state;
    snprintf(m->reason, sizeof(m->reason), "%.120s", reason);
    change(m);
}

bool tp_kineto_is_collecting(const struct tp_trace *t)
{
    for (size_t i = 0; i < t->n_members; i++) {
        if (tp_kineto_is_member(t->members[i]) && tp_life_is_awaited(t->members[i]))
            return true;
    }
    return false;
}

static uint64_t start_ns(const struct tp_member *m, struct tp_now now)
{
    int64_t left = (int64_t)(m->kineto.start_wall_ns - now.wall_ns);

    return (uint64_t)((int64_t)now.mono_ns + left);
}

/* UINT64_MAX when it records by iterations. */
static uint64_t end_ns(const struct tp_member *m, struct tp_now now)
{
    if (m->trace->spec.kineto_options.iterations > 0)
        return UINT64_MAX;
    return start_ns(m, now) + m->kineto.duration_ms * TP_NS_PER_MS;
}

static void note_served(struct tp_member *m)
{
    if (m->kineto.phase != TP_KINETO_PHASE_ORDERED)
        return;
    m->kineto.phase = TP_KINETO_PHASE_SERVED;
    m->state = TP_MEMBER_ARMED;
    m->is_unsure = false;
    m->reason[0] = '\0';
    change(m);
}

void tp_kineto_note_interval(struct tp_member *m, const struct tp_kineto_target *seen)
{
    uint64_t ns = seen->rhythm.interval_ns;

    /* What is not learnt yet is the usual one. */
    if (m->state != TP_MEMBER_WAITING || m->interval_ns == ns ||
        (m->interval_ns != 0 && seen->polls < POLLS_TO_LEARN))
        return;
    m->interval_ns = ns;
    change(m);
}

void tp_kineto_note_step(struct tp_member *m, const struct tp_kineto_target *seen)
{
    bool is_lagging = seen->state == TP_KINETO_LAGGING;

    if (m->state != TP_MEMBER_WAITING || m->kineto.is_lagging == is_lagging)
        return;
    m->kineto.is_lagging = is_lagging;
    m->kineto.has_lagged = true;
    snprintf(m->reason, sizeof(m->reason), "%s", is_lagging ? LAGGING : "");
    change(m);
}

void tp_kineto_taken(struct tp_member *m)
{
    struct tp_producer *p = tp_kineto_producer(m);

    if (m->kineto.phase >= TP_KINETO_PHASE_BEGUN)
        return;
    if (p != NULL)
        tp_kineto_disarm(p); /* it does not need it any more */
    m->kineto.phase = TP_KINETO_PHASE_BEGUN;
    m->is_unsure = false;
    if (m->state == TP_MEMBER_WAITING) {
        m->state = TP_MEMBER_ARMED;
        m->reason[0] = '\0';
        change(m);
    }
}

static void note_begun(struct tp_member *m)
{
    if (m->kineto.phase == TP_KINETO_PHASE_SERVED)
        m->kineto.phase = TP_KINETO_PHASE_BEGUN;
}

/* It records for us no more, or never did: its file is there or will not be. */
static bool is_through(const struct tp_member *m, const struct tp_kineto_target *news,
                       struct tp_now now)
{
    uint64_t end = end_ns(m, now);

    if (m->kineto.has_begun_file && !news->tells_busy)
        return false;
    if ((news->news & TP_KINETO_NEWS_NEVER) != 0)
        return true;
    if ((news->news & TP_KINETO_NEWS_ENDED) != 0 && end == UINT64_MAX)
        return true;
    return end != UINT64_MAX && !news->is_busy && news->state != TP_KINETO_ARMED &&
           news->rhythm.last_ns > end + TP_KINETO_SECOND_NS;
}

static void follow_served(struct tp_member *m, const struct tp_kineto_target *news,
                          struct tp_now now)
{
    if ((news->news & TP_KINETO_NEWS_LATE) != 0 &&
        news->served_ns > m->kineto.serve_until_ns) {
        tp_kineto_settle(m, TP_MEMBER_REFUSED,
                         "it read its request too late to start in time");
        return;
    }
    if ((news->news & TP_KINETO_NEWS_BEGAN) != 0)
        note_begun(m);
    if (m->kineto.idle_ns == 0 && is_through(m, news, now))
        m->kineto.idle_ns = now.mono_ns;
}

void tp_kineto_news(struct tp_member *m, const struct tp_kineto_target *news,
                    struct tp_now now)
{
    if (m->kineto.phase == TP_KINETO_PHASE_SETTLED ||
        m->kineto.phase == TP_KINETO_PHASE_NONE)
        return;
    if (news->state == TP_KINETO_GONE) {
        m->kineto.gone_ns = now.mono_ns;
        return;
    }
    m->kineto.gone_ns = 0;
    tp_kineto_note_interval(m, news);
    tp_kineto_note_step(m, news);
    if ((news->news & TP_KINETO_NEWS_SERVED) != 0)
        note_served(m);
    if (m->kineto.phase == TP_KINETO_PHASE_ORDERED &&
        (news->news & TP_KINETO_NEWS_MISSED) != 0)
        m->kineto.phase = TP_KINETO_PHASE_READY; /* and too late: see below */
    if (m->kineto.phase >= TP_KINETO_PHASE_SERVED)
        follow_served(m, news, now);
    else if (now.mono_ns <= m->kineto.serve_until_ns || m->kineto.serve_until_ns == 0)
        tp_kineto_arm(m, now);
}

/* One that has not been told anything yet, and by now cannot start in time. */
static bool give_up_waiting(struct tp_member *m, struct tp_now now)
{
    const struct tp_producer *p = tp_kineto_producer(m);
    uint64_t until = m->kineto.serve_until_ns;

    if (m->trace->spec.kineto_options.iterations > 0)
        return false; /* it has as long as the trace */
    if (until == 0)
        until = start_ns(m, now);
    if (m->kineto.phase >= TP_KINETO_PHASE_SERVED || now.mono_ns <= until)
        return false;
    if (m->is_unsure) {
        m->kineto.phase = TP_KINETO_PHASE_SERVED;
        return false;
    }
    if (p == NULL)
        tp_kineto_settle(m, TP_MEMBER_LOST, "process ended");
    else if (p->kineto->seen.is_busy)
        tp_kineto_settle(m, TP_MEMBER_REFUSED,
                         "busy: the application is profiling itself");
    else if (m->kineto.has_lagged)
        tp_kineto_settle(m, TP_MEMBER_REFUSED,
                         "it lagged and was in step too late to start with the others");
    else
        tp_kineto_settle(m, TP_MEMBER_REFUSED,
                         "it asked too late to start with the others");
    return true;
}

/* One whose file is overdue. */
static bool give_up_file(struct tp_member *m, struct tp_now now)
{
    const struct tp_kineto_part *part = &m->kineto;

    if (part->has_file)
        return false;
    if (part->gone_ns != 0 && now.mono_ns >= part->gone_ns + GRACE_NS) {
        tp_kineto_settle(m, TP_MEMBER_LOST, "process ended");
        return true;
    }
    if (part->idle_ns == 0 || now.mono_ns - part->idle_ns < GRACE_NS)
        return false;
    if (part->has_begun_file)
        tp_kineto_settle(m, TP_MEMBER_LOST,
                         "no file: the recording was cut short in the process");
    else if (part->phase == TP_KINETO_PHASE_BEGUN)
        tp_kineto_settle(m, TP_MEMBER_LOST, "no file: the process wrote none");
    else if (m->is_unsure && m->kineto.has_lagged)
        tp_kineto_settle(m, TP_MEMBER_LOST,
                         "no file: the service restarted, and it lagged and was in "
                         "step too late to start");
    else if (m->is_unsure)
        tp_kineto_settle(m, TP_MEMBER_LOST,
                         "no file: the service restarted, maybe before it was told");
    else
        tp_kineto_settle(m, TP_MEMBER_LOST, "no file: the process dropped the request");
    return true;
}

/* armed, recording and flushing, as the clock has it. */
static void keep_time(struct tp_member *m, struct tp_now now)
{
    enum tp_member_state state = TP_MEMBER_ARMED;

    if (m->kineto.phase != TP_KINETO_PHASE_BEGUN)
        return;
    if (now.mono_ns >= start_ns(m, now))
        state = TP_MEMBER_RECORDING;
    if (m->kineto.has_file || now.mono_ns >= end_ns(m, now))
        state = TP_MEMBER_FLUSHING;
    if (state == m->state)
        return;
    m->state = state;
    snprintf(m->reason, sizeof(m->reason), "%s",
             state == TP_MEMBER_FLUSHING ? "collecting" : "");
    change(m);
}

/* The next moment at which one of the above has something to say. */
static uint64_t next_of(const struct tp_member *m, struct tp_now now)
{
    const struct tp_kineto_part *part = &m->kineto;
    const uint64_t times[] = {
        part->phase < TP_KINETO_PHASE_SERVED ? part->serve_until_ns + 1 : UINT64_MAX,
        part->hold_until_ns,
        start_ns(m, now),
        end_ns(m, now),
        part->idle_ns == 0 ? UINT64_MAX : part->idle_ns + GRACE_NS,
        part->gone_ns == 0 ? UINT64_MAX : part->gone_ns + GRACE_NS};
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (times[i] > now.mono_ns && times[i] < next)
            next = times[i];
    }
    return next;
}

/* Iterations have no end that is known beforehand, and steps of the trace none that a
 * Kineto process could tell: the trace ends with its files, in the second case when
 * nobody else takes part. */
static void stop_when_done(struct tp_trace *t, struct tp_now now)
{
    bool by_iterations = t->spec.kineto_options.iterations != 0;
    size_t n = 0, n_others = 0;

    if (t->session.state != TP_SESSION_RECORDING ||
        (!by_iterations && t->spec.steps == 0))
        return;
    for (size_t i = 0; i < t->n_members; i++) {
        const struct tp_member *m = t->members[i];

        if (m->state == TP_MEMBER_WAITING || tp_life_is_awaited(m))
            return;
        n += tp_kineto_is_member(m) && m->state != TP_MEMBER_UNMATCHED;
        n_others += !tp_kineto_is_member(m) && m->state != TP_MEMBER_UNMATCHED;
    }
    if (n > 0 && (by_iterations || n_others == 0))
        tp_life_stop(t, "all Kineto processes are done", now, NULL);
}

/* Whether a member has been told, which may not have come here as news. */
static bool was_told(const struct tp_member *m)
{
    const struct tp_producer *p = tp_kineto_producer(m);
    struct tp_kineto *k = m->trace->engine->kineto;
    struct tp_kineto_target seen = {0};

    if (p == NULL || m->kineto.phase != TP_KINETO_PHASE_ORDERED)
        return m->kineto.phase >= TP_KINETO_PHASE_SERVED;
    tp_lock_take(&k->lock);
    tp_kineto_table_get(k->table, p->kineto->seen.id, &seen);
    tp_lock_give(&k->lock);
    return seen.served_ns != 0;
}

void tp_kineto_stop(struct tp_trace *t)
{
    for (size_t i = 0; i < t->n_members; i++) {
        struct tp_member *m = t->members[i];

        if (!tp_kineto_is_member(m) || m->state != TP_MEMBER_WAITING || m->is_unsure)
            continue;
        if (t->engine->kineto != NULL && was_told(m))
            note_served(m);
        else
            tp_kineto_settle(m, TP_MEMBER_REFUSED,
                             "too late: the trace ended before it asked");
    }
}

uint64_t tp_kineto_follow(struct tp_trace *t, struct tp_now now)
{
    uint64_t next = UINT64_MAX, version = t->version;

    for (size_t i = 0; i < t->n_members; i++) {
        struct tp_member *m = t->members[i];
        uint64_t at;

        if (!tp_kineto_is_member(m) || m->kineto.phase == TP_KINETO_PHASE_NONE ||
            m->kineto.phase == TP_KINETO_PHASE_SETTLED || give_up_waiting(m, now) ||
            give_up_file(m, now))
            continue;
        if (m->kineto.hold_until_ns != 0 && now.mono_ns >= m->kineto.hold_until_ns)
            tp_kineto_arm(m, now);
        keep_time(m, now);
        at = next_of(m, now);
        next = at < next ? at : next;
    }
    if (version != t->version || t->has_kineto_news) {
        t->has_kineto_news = false;
        tp_life_advance(t, now);
    }
    stop_when_done(t, now);
    return next;
}
