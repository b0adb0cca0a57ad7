/*
 * How a trace comes into being: the request is checked and resolved into an object that
 * nobody sees, its rows go into the store in one transaction, and only then it takes
 * its place in the engine. Whatever fails before that leaves nothing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "core/filter.h"
#include "engine/check.h"
#include "engine/idempotency.h"
#include "engine/kineto_model.h"
#include "engine/life.h"
#include "engine/make_view.h"
#include "engine/matching.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/problem.h"
#include "engine/streams.h"
#include "engine/type_problem.h"

/* One creation on its way. */
struct creation {
    struct tp_engine *e;
    const struct tp_trace_request *request;
    struct tp_str job_name;
    struct tp_now now;
    struct tp_job *job;
    struct tp_trace *trace;
    size_t n_matched;
    bool is_established; /* the trace is the engine's */
    char fingerprint[TP_FINGERPRINT_BYTES];
    struct tp_problem *problem;
    struct tp_err *err;
};

static int refuse_active(struct creation *c, const struct tp_trace *active)
{
    struct tp_problem *p = c->problem;

    if (p != NULL) {
        tp_problem_clear(p);
        p->kind = TP_PROBLEM_TRACE_ACTIVE;
        snprintf(p->job, sizeof(p->job), "%s", active->job->name);
        memcpy(p->trace_id, active->id, TP_TRACE_ID_BYTES);
        snprintf(p->state, sizeof(p->state), "%s", tp_trace_state_name(active));
    }
    return tp_fail(c->err, TP_EEXIST, "job %s has an active trace: %s is %s",
                   active->job->name, active->id, tp_trace_state_name(active));
}

/* What must hold before a trace may be made at all; a dry run is told so too. */
static int check_room(struct creation *c)
{
    struct tp_engine *e = c->e;

    if (c->job->active != NULL)
        return refuse_active(c, c->job->active);
    if (e->n_active >= e->limits.active_traces)
        return tp_problem_limit(c->problem, "max-active-traces", "traces",
                                e->limits.active_traces, e->n_active + 1, c->err);
    if (tp_strmap_len(&e->traces) >= e->limits.stored_traces)
        return tp_problem_limit(c->problem, "max-stored-traces", "traces",
                                e->limits.stored_traces, tp_strmap_len(&e->traces) + 1,
                                c->err);
    return c->request->idempotency_key.len == 0 ? TP_OK
                                                : tp_key_room(e, c->problem, c->err);
}

static int resolve_filter(struct creation *c)
{
    struct tp_filter_detail detail = {0};
    struct tp_trace *t = c->trace;
    struct tp_filter_spec spec = tp_spec_filter(&t->spec);
    int rc = tp_filter_new(&spec, c->job->registry, &c->e->limits, &t->filter, &detail,
                           c->err);

    if (rc != TP_OK)
        return tp_problem_from_filter(c->problem, &detail, c->job->name, rc);
    t->n_types = (uint32_t)tp_registry_len(c->job->registry);
    return tp_typemap_new(c->job->registry, &t->types, c->err);
}

static int check_required(struct creation *c)
{
    const struct tp_trace *t = c->trace;
    size_t wanted = 0;

    if (t->spec.require == TP_REQUIRE_COUNT)
        wanted = t->spec.require_count;
    else if (t->spec.require == TP_REQUIRE_ALL)
        wanted = t->n_members - tp_kineto_uncounted(t);
    /* "all" of a job without producers is not fulfilled by nobody. */
    if (t->spec.require == TP_REQUIRE_ALL && wanted == 0)
        wanted = 1;
    if (c->n_matched >= wanted)
        return TP_OK;
    if (c->problem != NULL) {
        tp_problem_clear(c->problem);
        c->problem->kind = TP_PROBLEM_NOT_ENOUGH_PRODUCERS;
        c->problem->required = (uint32_t)wanted;
        c->problem->available = (uint32_t)c->n_matched;
        snprintf(c->problem->job, sizeof(c->problem->job), "%s", c->job->name);
    }
    return tp_fail(c->err, TP_ESTATE, "%zu producers are required and %zu are matched",
                   wanted, c->n_matched);
}

static int warn(struct creation *c)
{
    struct tp_spec *s = &c->trace->spec;
    const struct tp_trace_request *r = c->request;
    int rc = TP_OK;

    if (c->trace->n_members == 0)
        rc = tp_spec_warn(
            s, c->err, "job %s has no producers: the trace holds what is posted to it",
            c->job->name);
    else if (c->n_matched == 0)
        rc = tp_spec_warn(
            s, c->err,
            "none of the %zu producers is matched: the trace holds what is "
            "posted to it",
            c->trace->n_members);
    if (rc == TP_OK && r->stop_duration_ms != 0 && s->duration_is_capped)
        rc = tp_spec_warn(s, c->err, "stop.duration_ms is capped at %llu ms",
                          (unsigned long long)s->duration_ms);
    if (rc == TP_OK && r->stop_max_bytes != 0 && s->max_bytes_is_capped)
        rc = tp_spec_warn(s, c->err, "stop.max_bytes is capped at %llu bytes",
                          (unsigned long long)s->max_bytes);
    return rc;
}

/* Whether it starts when producers have said that they are armed: only where it is
 * asked who takes part. Else they are told to arm and when to start at once. */
static bool has_to_arm(const struct tp_trace *t)
{
    if (t->spec.require == TP_REQUIRE_ANY)
        return false;
    for (size_t i = 0; i < t->n_members; i++) {
        const struct tp_member *m = t->members[i];
        const struct tp_producer *p = tp_member_producer(m);

        if (m->state == TP_MEMBER_WAITING && p != NULL && p->has_synced)
            return true;
    }
    return false;
}

/* Kineto processes record for a time that they are told beforehand, so a trace in which
 * they take part has an end, even when nobody said one. */
static int set_kineto_duration(struct creation *c)
{
    struct tp_spec *s = &c->trace->spec;

    if (tp_kineto_waiting(c->trace) == 0 || c->request->stop_duration_ms != 0 ||
        c->request->stop_steps != 0 || s->kineto_options.iterations != 0)
        return TP_OK;
    s->duration_ms = s->kineto_duration_ms;
    s->duration_is_capped = false;
    return tp_spec_warn(s, c->err,
                        "stop.duration_ms is not given: Kineto processes record "
                        "%llu ms, and the trace ends with them",
                        (unsigned long long)s->duration_ms);
}

/* What is asked for and does not reach Kineto processes, or not as it reads. */
static int warn_of_kineto(struct creation *c)
{
    const struct tp_trace_request *r = c->request;
    struct tp_spec *s = &c->trace->spec;
    bool has_others = c->n_matched > tp_kineto_waiting(c->trace);
    int rc = TP_OK;

    if (tp_kineto_waiting(c->trace) == 0)
        return TP_OK;
    if (r->stop_steps != 0)
        rc = tp_spec_warn(s, c->err,
                          "stop.steps is not for Kineto processes: they record %s%s",
                          s->kineto_options.iterations != 0
                              ? "their iterations"
                              : "stop.duration_ms, or 500 ms",
                          has_others ? "" : ", and the trace ends with them");
    if (rc == TP_OK && s->start == TP_START_STEP && !has_others)
        rc = tp_spec_warn(s, c->err,
                          "start.step is not for Kineto processes, which report no "
                          "steps: the trace waits for one who does, or POST .../start");
    if (rc == TP_OK && s->kineto_options.iterations != 0 && r->stop_duration_ms != 0)
        rc = tp_spec_warn(s, c->err,
                          "stop.duration_ms ends the trace even when Kineto processes, "
                          "which are told when they next ask, have not done their "
                          "iterations");
    if (rc == TP_OK && r->stop_max_bytes != 0)
        rc = tp_spec_warn(s, c->err,
                          "stop.max_bytes: the file of a Kineto process is taken as a "
                          "whole or, when it has more, not at all");
    return rc;
}

/* A start that was asked for is kept, or it is told when it is instead.
 * plan_ns  when the slowest Kineto process can start; 0 = nobody is waited for */
static int warn_of_start(struct creation *c, uint64_t plan_ns)
{
    struct tp_spec *s = &c->trace->spec;
    bool has_passed = s->start_wall_ns <= c->now.wall_ns;

    if (s->start != TP_START_AT || (!has_passed && s->start_wall_ns >= plan_ns))
        return TP_OK;
    if (plan_ns == 0)
        return tp_spec_warn(s, c->err, "start.at has passed: the trace starts at once");
    if (has_passed)
        return tp_spec_warn(
            s, c->err,
            "start.at has passed: the trace starts when its Kineto processes can, in "
            "%llu ms",
            (unsigned long long)((plan_ns - c->now.wall_ns) / TP_NS_PER_MS));
    return tp_spec_warn(s, c->err,
                        "start.at is too early for the Kineto processes: the trace "
                        "starts %llu ms later",
                        (unsigned long long)((plan_ns - s->start_wall_ns) /
                                             TP_NS_PER_MS));
}

/* Start when the slowest Kineto process can. */
static int set_out_planned(struct creation *c, uint64_t plan_ns)
{
    struct tp_trace *t = c->trace;
    const struct tp_spec *s = &t->spec;

    if (s->start == TP_START_AT && s->start_wall_ns > plan_ns)
        plan_ns = s->start_wall_ns;
    return tp_life_plan(t, plan_ns, c->now, c->err);
}

/* Decide how it begins. */
static int set_out(struct creation *c)
{
    struct tp_trace *t = c->trace;
    const struct tp_spec *s = &t->spec;
    uint64_t wait_ns;

    uint64_t plan_ns;
    int rc = tp_kineto_plan(t, c->now, &plan_ns, c->err);

    if (rc == TP_OK)
        rc = warn_of_start(c, plan_ns);
    if (rc != TP_OK)
        return rc;
    tp_life_init(t, c->now);
    if (plan_ns != 0 && (s->start == TP_START_NOW || s->start == TP_START_AT))
        return set_out_planned(c, plan_ns);
    if (s->start == TP_START_NOW && has_to_arm(t))
        return tp_session_set_deadline(
            &t->session, c->now.mono_ns + c->e->limits.trace_arming_ms * TP_NS_PER_MS,
            TP_SESSION_RECORDING, "not all producers were armed in time", c->err);
    if (s->start == TP_START_NOW)
        return tp_life_start_new(t, c->now, c->err);
    if (s->start != TP_START_AT)
        return TP_OK;
    wait_ns = s->start_wall_ns > c->now.wall_ns ? s->start_wall_ns - c->now.wall_ns : 0;
    return tp_session_set_deadline(&t->session, c->now.mono_ns + wait_ns,
                                   TP_SESSION_RECORDING, "the start time has come",
                                   c->err);
}

/* Give streams to those who will be asked to record: their numbers are stored with the
 * trace, so that a restart at any moment later gives the same ones. */
static int give_streams(struct creation *c)
{
    const struct tp_trace *t = c->trace;
    int rc = TP_OK;

    for (size_t i = 0; i < t->n_members && rc == TP_OK; i++) {
        struct tp_member *m = t->members[i];
        const struct tp_producer *p = tp_member_producer(m);

        if (m->state == TP_MEMBER_WAITING && p != NULL && tp_match_is_live_kind(p) &&
            !tp_kineto_is(p)) /* whose file gets one */
            rc = tp_streams_for_member(m, c->problem, c->err);
    }
    return rc;
}

/* A start that is too far away holds the job until then, and what counts from it must
 * be a time. */
static int check_start_at(struct creation *c)
{
    const struct tp_spec *s = &c->trace->spec;
    uint64_t most_ms = c->e->limits.trace_prepared_ms, ms;
    int rc;

    if (s->start != TP_START_AT || s->start_wall_ns <= c->now.wall_ns)
        return TP_OK;
    ms = (s->start_wall_ns - c->now.wall_ns) / TP_NS_PER_MS;
    if (ms <= most_ms)
        return TP_OK;
    rc = tp_problem_limit(c->problem, "max-trace-prepared-ms", "ms", most_ms, ms,
                          c->err);
    tp_fail_prefix(c->err, "start.at");
    return rc;
}

/* Make the object, as far as it needs no store. */
static int build(struct creation *c)
{
    struct tp_trace *t;
    int rc = tp_trace_new(c->e, c->job, &t, c->err);

    if (rc != TP_OK)
        return rc;
    c->trace = t;
    t->created_ns = c->now.wall_ns;
    rc = tp_spec_init(&t->spec, c->request, &c->e->limits, c->problem, c->err);
    if (rc == TP_OK)
        rc = check_start_at(c);
    if (rc == TP_OK)
        rc = resolve_filter(c);
    if (rc == TP_OK)
        rc = check_room(c);
    if (rc == TP_OK && !c->request->dry_run)
        tp_spare_take(c->e, tp_spare_wanted(c->job), &t->objects);
    if (rc == TP_OK)
        rc = tp_match_all(t, c->now, &c->n_matched, c->err);
    if (rc == TP_OK)
        rc = check_required(c);
    if (rc == TP_OK)
        rc = give_streams(c);
    if (rc == TP_OK)
        rc = warn(c);
    if (rc == TP_OK)
        rc = set_kineto_duration(c);
    if (rc == TP_OK)
        rc = warn_of_kineto(c);
    if (rc == TP_OK)
        rc = set_out(c);
    if (rc == TP_OK)
        tp_persist_deadline(t, c->now);
    return rc;
}

static int write_rows(struct creation *c)
{
    struct tp_engine *e = c->e;
    struct tp_str key = c->request->idempotency_key;
    int rc = tp_persist_begin(e, c->err);

    if (rc != TP_OK)
        return rc;
    rc = tp_persist_job(e, c->job, c->err);
    if (rc == TP_OK)
        rc = tp_persist_new_trace_rows(e, c->trace, c->now, c->err);
    if (rc == TP_OK && key.len != 0)
        rc = tp_key_persist(e, key, c->fingerprint, c->trace, c->err);
    return tp_persist_end(e, rc, c->err);
}

/* Store it and put it in its place; on failure it is gone. All memory is taken before
 * the rows are written, so that nothing can fail after them. */
static int establish(struct creation *c)
{
    struct tp_str key = c->request->idempotency_key;
    struct tp_trace *t = c->trace;
    int rc;

    rc = tp_trace_link(t, c->err);
    if (rc != TP_OK)
        return rc;
    if (key.len != 0)
        rc = tp_key_put(c->e, key, tp_str_of(c->fingerprint), tp_str_of(t->id),
                        t->created_ns, c->err);
    if (rc == TP_OK)
        rc = write_rows(c);
    if (rc != TP_OK) {
        if (key.len != 0)
            tp_key_drop(c->e, key);
        c->trace = NULL;
        tp_trace_unlink(t);
        return tp_problem_storage(c->problem, rc);
    }
    c->is_established = true;
    c->job->is_stored = true;
    tp_persist_new_trace_done(t, c->now);
    tp_life_hold(t);
    tp_match_attach(t);
    if (t->start_at_ns != 0)
        tp_kineto_begin(t, c->now);
    c->e->stats.traces_created++;
    return TP_OK;
}

/* The whole of it, with the lock held. */
static int create(struct creation *c, struct tp_trace_view **out)
{
    struct tp_trace_view *view = NULL;
    struct tp_trace *before = NULL;
    int rc;

    tp_key_fingerprint(c->request->body, c->fingerprint);
    rc = tp_key_find(c->e, c->request->idempotency_key, c->fingerprint, c->now, &before,
                     c->problem, c->err);
    if (rc != TP_OK)
        return rc;
    if (before != NULL)
        return tp_make_view(before, TP_VIEW_AS_CREATED, out, c->err);
    rc = tp_job_get(c->e, c->job_name, c->now.wall_ns, &c->job, c->problem, c->err);
    if (rc != TP_OK)
        return rc;
    rc = build(c);
    if (rc != TP_OK)
        return rc;
    if (!c->request->dry_run)
        tp_new_id(c->e, c->now, c->trace->id);
    rc = tp_make_view(c->trace,
                      c->request->is_brief && !c->request->dry_run ? TP_VIEW_BRIEF
                                                                   : TP_VIEW_FULL,
                      &view, c->err);
    if (rc == TP_OK && !c->request->dry_run)
        rc = establish(c);
    if (rc != TP_OK) {
        tp_trace_view_free(view);
        return rc;
    }
    view->is_dry_run = c->request->dry_run;
    *out = view;
    return TP_OK;
}

int tp_engine_trace_create(struct tp_engine *e, const struct tp_trace_request *request,
                           struct tp_now now, struct tp_trace_view **out,
                           struct tp_problem *problem, struct tp_err *err)
{
    struct creation c = {.e = e,
                         .request = request,
                         .job_name = request->job,
                         .now = now,
                         .problem = problem,
                         .err = err};
    int rc;

    tp_problem_clear(problem);
    rc = tp_check_job(&c.job_name, problem, err);
    if (rc == TP_OK)
        rc = tp_check_key(request->idempotency_key, problem, err);
    if (rc != TP_OK)
        return rc;
    tp_lock_take(&e->lock);
    rc = create(&c, out);
    if (!c.is_established)
        tp_trace_free(c.trace);
    if (c.job != NULL && tp_registry_len(c.job->registry) == 0)
        tp_job_drop_new(e, c.job);
    tp_lock_give(&e->lock);
    return rc;
}
