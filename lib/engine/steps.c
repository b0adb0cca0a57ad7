/*
 * The producers of a job count the same steps, a little apart. So:
 *
 *   start   by the first that comes to the step; but one that was never heard of before
 *           it, and did not begin there either, is not believed while others are before
 *           it: nobody knows whether it ever came by
 *   stop    when all that count have done theirs, those included of whom we have not
 *           heard yet that they began: that word may be on its way for longer than the
 *           steps of another take. Who goes back counts from there. Once one is done,
 *           who has not moved for IDLE_NS is not waited for any more: it hangs, or it
 *           lies
 */
#include "engine/steps.h"

#include <stdio.h>

#include "engine/kineto_model.h"
#include "engine/life.h"
#include "engine/matching.h"
#include "engine/objects.h"

/* Steps of minutes are rare; steps of hours are not waited for. */
#define IDLE_NS UINT64_C(120000000000)

static bool waits_for_step(const struct tp_trace *t)
{
    return t->session.state == TP_SESSION_PREPARED && t->spec.start == TP_START_STEP;
}

/* When m is given up unless it moves. After a restart it has until then from now on. */
static uint64_t gives_up_ns(struct tp_member *m, struct tp_now now)
{
    if (m->step_mono_ns == 0)
        m->step_mono_ns = now.mono_ns;
    return m->step_mono_ns + IDLE_NS;
}

/* The last step that is known of m; 0: it counts none, as far as is known. */
static uint64_t step_of(const struct tp_member *m)
{
    return m->step == 0 && m->producer != NULL ? m->producer->step : m->step;
}

static bool is_before_start(const struct tp_member *m)
{
    return m->state == TP_MEMBER_ARMED || m->state == TP_MEMBER_WAITING;
}

/* It takes commands, and has said nothing since it was registered or the service was
 * started: it may count steps, and may have begun. */
static bool is_unheard(const struct tp_member *m)
{
    const struct tp_producer *p = m->producer;

    return p != NULL && tp_match_is_live_kind(p) && !tp_kineto_is(p) &&
           p->told_seq == 0;
}

/* A linked program says at once that it is armed, and with it what step is on: until
 * then it may count steps, and may have begun. Others may never say so. */
static bool is_to_answer(const struct tp_member *m)
{
    return m->state == TP_MEMBER_WAITING && m->producer != NULL &&
           tp_identity_is_native(&m->producer->who);
}

/* It has not said that it began, and will record, or does so, if it counts steps. */
static bool is_yet_to_begin(const struct tp_member *m)
{
    return is_before_start(m) && (step_of(m) > 0 || is_unheard(m) || is_to_answer(m));
}

/* Whether it counts steps, is before the first that is wanted, and goes on. */
static bool is_coming(struct tp_member *m, struct tp_now now)
{
    return is_before_start(m) && step_of(m) > 0 &&
           step_of(m) < m->trace->spec.start_step && gives_up_ns(m, now) > now.mono_ns;
}

/* Whether the step of m is a reason to start. before: the last that it had told. */
static bool may_start(const struct tp_member *m, uint64_t before, uint64_t step,
                      struct tp_now now)
{
    const struct tp_trace *t = m->trace;

    if (!waits_for_step(t) || step < t->spec.start_step)
        return false;
    if (before != 0 && before < t->spec.start_step)
        return true;
    for (size_t i = 0; i < t->n_members; i++) {
        if (t->members[i] != m && is_coming(t->members[i], now))
            return false;
    }
    return true;
}

static void start(struct tp_trace *t, uint64_t step, struct tp_now now)
{
    char cause[TP_SESSION_CAUSE_BYTES];

    snprintf(cause, sizeof(cause), "step %llu was reached", (unsigned long long)step);
    tp_life_start(t, cause, now, NULL);
}

/* What is known of the steps of a trace that records. */
struct progress {
    unsigned n_done;
    unsigned n_moving; /* not done, and waited for */
    uint64_t until_ns; /* when the next of these is given up, unless it moves */
};

static void look_at(struct tp_member *m, struct tp_now now, struct progress *p)
{
    const bool is_late = is_yet_to_begin(m);
    uint64_t until_ns, gone_ns;

    if (!is_late &&
        (m->state != TP_MEMBER_RECORDING || (m->step == 0 && m->base_step == 0)))
        return; /* one that counts no steps is not waited for */
    if (!is_late && m->step >= m->base_step &&
        m->step - m->base_step >= m->trace->spec.steps) {
        p->n_done++;
        return;
    }
    until_ns = gives_up_ns(m, now);
    gone_ns = m->producer == NULL ? 0 : tp_match_gone_at_ns(m->producer);
    if (is_late && until_ns > gone_ns)
        until_ns = gone_ns;
    if (until_ns <= now.mono_ns)
        return;
    p->n_moving++;
    p->until_ns = until_ns < p->until_ns ? until_ns : p->until_ns;
}

uint64_t tp_steps_tick(struct tp_trace *t, struct tp_now now)
{
    struct progress p = {.until_ns = UINT64_MAX};
    char cause[TP_SESSION_CAUSE_BYTES];

    if (t->session.state != TP_SESSION_RECORDING || t->spec.steps == 0)
        return UINT64_MAX;
    for (size_t i = 0; i < t->n_members; i++)
        look_at(t->members[i], now, &p);
    if (p.n_done == 0)
        return UINT64_MAX;
    if (p.n_moving > 0)
        return p.until_ns;
    snprintf(cause, sizeof(cause), "%llu steps are recorded",
             (unsigned long long)t->spec.steps);
    tp_life_stop(t, cause, now, NULL);
    return UINT64_MAX;
}

void tp_steps_take(struct tp_producer *p, uint64_t step, struct tp_now now)
{
    struct tp_member *m = p->member;
    uint64_t before = p->step;

    p->step = step;
    if (m == NULL)
        return;
    if (step != m->step)
        m->step_mono_ns = now.mono_ns;
    if (m->base_step > step)
        m->base_step = step;
    m->step = step;
    tp_member_changed(m);
    if (may_start(m, before, step, now))
        start(m->trace, step, now);
    else
        tp_steps_tick(m->trace, now);
}

void tp_steps_begin(struct tp_member *m, uint64_t step, struct tp_now now)
{
    const struct tp_trace *t = m->trace;
    uint64_t before = m->producer == NULL ? 0 : m->producer->step;

    m->base_step = step;
    m->step_mono_ns = now.mono_ns;
    if (!waits_for_step(t))
        return;
    if (step == t->spec.start_step || may_start(m, before, step, now))
        start(m->trace, t->spec.start_step, now);
}
