#include "engine/jobs.h"

#include <stdlib.h>

#include "base/err.h"
#include "engine/objects.h"

void tp_job_list_free(struct tp_job_list *list)
{
    free(list);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tp_job_view *)a)->name,
                  ((const struct tp_job_view *)b)->name);
}

static void view_job(const struct tp_job *job, struct tp_job_view *out)
{
    memcpy(out->name, job->name, sizeof(out->name));
    out->created_wall_ns = job->created_ns;
    out->n_types = tp_registry_len(job->registry);
    out->n_producers = job->n_producers;
    out->n_traces = job->n_traces;
    if (job->active != NULL)
        memcpy(out->active_trace, job->active->id, TP_TRACE_ID_BYTES);
}

static bool is_behind(const struct tp_job *job, struct tp_str after)
{
    size_t n = strlen(job->name), common = n < after.len ? n : after.len;
    int order = common == 0 ? 0 : memcmp(job->name, after.ptr, common);

    return order > 0 || (order == 0 && n > after.len);
}

int tp_engine_jobs_list(struct tp_engine *e, struct tp_str after, size_t limit,
                        struct tp_job_list **out, struct tp_err *err)
{
    struct tp_job_list *list;
    size_t cursor = 0;
    void *job;

    tp_lock_take(&e->lock);
    list =
        calloc(1, sizeof(*list) + tp_strmap_len(&e->jobs) * sizeof(struct tp_job_view));
    while (list != NULL && tp_strmap_next(&e->jobs, &cursor, NULL, &job)) {
        if (is_behind(job, after))
            view_job(job, &list->items[list->n++]);
    }
    tp_lock_give(&e->lock);
    if (list == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a list of jobs");
    qsort(list->items, list->n, sizeof(list->items[0]), by_name);
    if (limit != 0 && list->n > limit) {
        list->n = limit;
        list->has_more = true;
    }
    *out = list;
    return TP_OK;
}
