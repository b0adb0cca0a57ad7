/*
 * Registrations. The registry cannot forget a type, so new ones are planned, written to
 * the store, and only then shown. The control lock is held all the way: nobody else
 * registers in between.
 */
#include "engine/types.h"

#include <stdlib.h>

#include "base/err.h"
#include "engine/check.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/problem.h"
#include "engine/type_problem.h"

void tp_type_list_free(struct tp_type_list *list)
{
    free(list);
}

/* A list with room for n views and the job's name behind them. */
static struct tp_type_list *new_list(size_t n, struct tp_str job, const char **name,
                                     struct tp_err *err)
{
    size_t size = sizeof(struct tp_type_list) + n * sizeof(struct tp_type_view);
    struct tp_type_list *list = calloc(1, size + job.len + 1);

    if (list == NULL) {
        tp_fail(err, TP_ENOMEM, "no memory for %zu activity types", n);
        return NULL;
    }
    if (job.len != 0)
        memcpy((char *)list + size, job.ptr, job.len);
    *name = (char *)list + size;
    return list;
}

static struct tp_type_view view_custom(const struct tp_type *t, const char *job)
{
    return (struct tp_type_view){
        .id = t->id,
        .is_custom = true,
        .is_resolved = t->is_resolved,
        .hash = t->hash,
        .job = job,
        .plugin = t->plugin,
        .type_name = t->type_name,
        .name = t->name,
        .enum_name = "",
        .description = t->description,
        .unit = t->unit,
        .kind = t->kind,
        .device_type = tp_activity_device_type(t->id),
    };
}

static struct tp_type_view view_static(unsigned id)
{
    return (struct tp_type_view){
        .id = id,
        .job = "",
        .plugin = "",
        .type_name = tp_activity_cat(id),
        .name = tp_activity_cat(id),
        .enum_name = tp_activity_enum_name(id),
        .description = "",
        .unit = "",
        .kind = TP_TYPE_SLICE,
        .device_type = tp_activity_device_type(id),
    };
}

static void count_refusal(struct tp_engine *e, enum tp_registry_reason reason)
{
    if (reason == TP_REGISTRY_COLLISION)
        e->stats.types_refused_collision++;
    if (reason == TP_REGISTRY_FROZEN)
        e->stats.types_refused_frozen++;
}

/* Write the types of a plan, and the job when it is new. */
static int store_types(struct tp_engine *e, struct tp_job *job,
                       const struct tp_registry_plan *plan, uint64_t wall_ns,
                       struct tp_err *err)
{
    int rc;

    if (job->is_stored && plan->n == 0)
        return TP_OK;
    rc = tp_persist_begin(e, err);
    if (rc != TP_OK)
        return rc;
    rc = tp_persist_job(e, job, err);
    if (rc == TP_OK)
        rc = tp_persist_types(e, job, plan, wall_ns, err);
    rc = tp_persist_end(e, rc, err);
    if (rc != TP_OK)
        return rc;
    job->is_stored = true;
    e->stats.types_registered += plan->n;
    return TP_OK;
}

/* Say why the registry takes no such types. */
static int refuse(struct tp_engine *e, const struct tp_job *job, size_t n, int rc,
                  const struct tp_registry_detail *detail, struct tp_problem *problem)
{
    count_refusal(e, detail->reason);
    tp_problem_from_registry(problem, detail, job->name, n > 1, (struct tp_str){0}, rc);
    if (problem != NULL && rc == TP_ESTATE && job->active != NULL)
        memcpy(problem->trace_id, job->active->id, TP_TRACE_ID_BYTES);
    if (problem != NULL && problem->kind == TP_PROBLEM_LIMIT_EXCEEDED) {
        problem->limit_max = e->limits.types_per_job;
        problem->limit_value = tp_registry_len(job->registry) + 1;
    }
    return rc;
}

/* Register in a job that may be new. The control lock is held. */
static int register_in(struct tp_engine *e, struct tp_job *job,
                       const struct tp_type_spec *specs, size_t n, uint64_t wall_ns,
                       struct tp_registration *out, struct tp_problem *problem,
                       struct tp_err *err)
{
    struct tp_registry_detail detail = {0};
    struct tp_registry_plan plan = {.n = 0};
    int rc = tp_registry_plan(job->registry, specs, n, out, &plan, &detail, err);

    if (rc != TP_OK)
        return refuse(e, job, n, rc, &detail, problem);
    rc = store_types(e, job, &plan, wall_ns, err);
    if (rc == TP_OK)
        tp_registry_publish(job->registry, &plan);
    tp_registry_drop(&plan);
    return rc == TP_OK ? TP_OK : tp_problem_storage(problem, rc);
}

int tp_engine_types_register(struct tp_engine *e, struct tp_str job_name,
                             const struct tp_type_spec *specs, size_t n,
                             struct tp_now now, struct tp_type_list **out,
                             struct tp_problem *problem, struct tp_err *err)
{
    struct tp_registration *made = NULL;
    struct tp_type_list *list = NULL;
    struct tp_job *job = NULL;
    const char *name = "";
    int rc;

    tp_problem_clear(problem);
    rc = tp_check_job(&job_name, problem, err);
    if (rc != TP_OK)
        return rc;
    if (n > e->limits.types_per_request)
        return tp_problem_limit(problem, "max-types-per-request", "types",
                                e->limits.types_per_request, n, err);
    made = calloc(n + 1, sizeof(*made));
    list = new_list(n, job_name, &name, err);
    if (made == NULL || list == NULL) {
        rc = tp_fail(err, TP_ENOMEM, "no memory to register %zu activity types", n);
        goto out;
    }
    tp_lock_take(&e->lock);
    rc = tp_job_get(e, job_name, now.wall_ns, &job, problem, err);
    if (rc == TP_OK)
        rc = register_in(e, job, specs, n, now.wall_ns, made, problem, err);
    if (rc != TP_OK && job != NULL)
        tp_job_drop_new(e, job);
    tp_lock_give(&e->lock);
    if (rc != TP_OK)
        goto out;
    for (size_t i = 0; i < n; i++) {
        list->items[i] = view_custom(made[i].type, name);
        list->items[i].is_new = made[i].is_new;
        list->items[i].kind_differs = made[i].kind_differs;
        list->items[i].unit_differs = made[i].unit_differs;
        list->items[i].description_differs = made[i].description_differs;
    }
    list->n = n;
    *out = list;
    list = NULL;

out:
    free(made);
    free(list);
    return rc;
}

/* The registry of a job, or NULL while nobody has used the job. It lives as long as the
 * engine once it is in the store, and readers need no lock. */
static const struct tp_registry *registry_of(struct tp_engine *e, struct tp_str name)
{
    const struct tp_registry *r;
    struct tp_job *job;

    tp_lock_take(&e->lock);
    job = tp_job_find(e, name);
    r = job == NULL ? NULL : job->registry;
    tp_lock_give(&e->lock);
    return r;
}

/* The next id above `after` that is in the scope and known, or 256. */
static unsigned next_id(const struct tp_registry *r, enum tp_type_scope scope,
                        int after)
{
    for (unsigned id = (unsigned)(after + 1); id < TP_ACTIVITY_IDS; id++) {
        if (id < TP_ACTIVITY_STATIC_COUNT && scope != TP_TYPES_CUSTOM)
            return id;
        if (r != NULL && scope != TP_TYPES_STATIC && tp_registry_at(r, id) != NULL)
            return id;
    }
    return TP_ACTIVITY_IDS;
}

int tp_engine_types_list(struct tp_engine *e, struct tp_str job,
                         enum tp_type_scope scope, int after, size_t limit,
                         struct tp_type_list **out, struct tp_problem *problem,
                         struct tp_err *err)
{
    const struct tp_registry *r;
    struct tp_type_list *list;
    const char *name = "";
    unsigned id;
    int rc;

    tp_problem_clear(problem);
    rc = tp_check_job(&job, problem, err);
    if (rc != TP_OK)
        return rc;
    r = registry_of(e, job);
    list = new_list(TP_ACTIVITY_IDS, job, &name, err);
    if (list == NULL)
        return TP_ENOMEM;
    limit = limit == 0 ? TP_ACTIVITY_IDS : limit;
    id = next_id(r, scope, after < -1 ? -1 : after);
    for (; id < TP_ACTIVITY_IDS && list->n < limit; id = next_id(r, scope, (int)id))
        list->items[list->n++] = id < TP_ACTIVITY_STATIC_COUNT
                                     ? view_static(id)
                                     : view_custom(tp_registry_at(r, id), name);
    list->has_more = id < TP_ACTIVITY_IDS;
    *out = list;
    return TP_OK;
}

/* An id in decimal: in a path it is an id, whatever types are called. */
static bool read_id(struct tp_str s, unsigned *id)
{
    unsigned v = 0;

    if (s.len == 0 || s.len > 3)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
        v = 10 * v + (unsigned)(s.ptr[i] - '0');
    }
    *id = v;
    return v < TP_ACTIVITY_IDS;
}

int tp_engine_type_get(struct tp_engine *e, struct tp_str job, struct tp_str id_or_name,
                       struct tp_type_list **out, struct tp_problem *problem,
                       struct tp_err *err)
{
    struct tp_registry_detail detail = {0};
    const struct tp_registry *r;
    struct tp_type_list *list;
    const char *name = "";
    unsigned id = 0;
    int rc;

    tp_problem_clear(problem);
    rc = tp_check_job(&job, problem, err);
    if (rc != TP_OK)
        return rc;
    r = registry_of(e, job);
    if (!read_id(id_or_name, &id))
        rc = tp_activity_from_string(r, id_or_name, &id, &detail, err);
    if (rc != TP_OK) {
        char shown[TP_JOB_NAME_MAX_BYTES + 1] = "";

        memcpy(shown, job.ptr, job.len);
        return tp_problem_from_registry(problem, &detail, shown, false, id_or_name, rc);
    }
    if (id >= TP_ACTIVITY_STATIC_COUNT && (r == NULL || tp_registry_at(r, id) == NULL))
        return tp_problem_not_found(problem, "type", id_or_name, err);
    list = new_list(1, job, &name, err);
    if (list == NULL)
        return TP_ENOMEM;
    list->items[0] = id < TP_ACTIVITY_STATIC_COUNT
                         ? view_static(id)
                         : view_custom(tp_registry_at(r, id), name);
    list->n = 1;
    *out = list;
    return TP_OK;
}
