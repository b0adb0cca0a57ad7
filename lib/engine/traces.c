/*
 * The operations on traces besides their creation (create.c).
 */
#include "engine/traces.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/utf8.h"
#include "engine/idempotency.h"
#include "engine/life.h"
#include "engine/make_view.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/problem.h"
#include "engine/stream_blobs.h"
#include "store/store.h"

#define PAGE_DEFAULT 100

/* One of the three moves that a client asks for. The lock is held. */
typedef int (*move_fn)(struct tp_trace *t, const char *cause, struct tp_now now,
                       struct tp_problem *problem, struct tp_err *err);

static int start(struct tp_trace *t, const char *cause, struct tp_now now,
                 struct tp_problem *problem, struct tp_err *err)
{
    if (t->session.state == TP_SESSION_RECORDING)
        return TP_OK;
    if (t->session.state != TP_SESSION_PREPARED)
        return tp_problem_state(problem, t->id, tp_trace_state_name(t), "cannot start",
                                err);
    return tp_problem_storage(problem, tp_life_start(t, cause, now, err));
}

static int stop(struct tp_trace *t, const char *cause, struct tp_now now,
                struct tp_problem *problem, struct tp_err *err)
{
    if (t->session.state == TP_SESSION_STOPPING ||
        t->session.state == TP_SESSION_COMPLETE)
        return TP_OK;
    if (t->session.state != TP_SESSION_RECORDING)
        return tp_problem_state(problem, t->id, tp_trace_state_name(t), "cannot stop",
                                err);
    return tp_problem_storage(problem, tp_life_stop(t, cause, now, err));
}

static int cancel(struct tp_trace *t, const char *cause, struct tp_now now,
                  struct tp_problem *problem, struct tp_err *err)
{
    if (t->session.state == TP_SESSION_CANCELLED)
        return TP_OK;
    if (!tp_trace_is_active(t))
        return tp_problem_state(problem, t->id, tp_trace_state_name(t), "cannot cancel",
                                err);
    return tp_problem_storage(problem,
                              tp_life_end(t, TP_SESSION_CANCELLED, cause, now, err));
}

static int ask(struct tp_engine *e, struct tp_str id, struct tp_str cause,
               struct tp_now now, move_fn move, struct tp_trace_view **out,
               struct tp_problem *problem, struct tp_err *err)
{
    struct tp_str cut = tp_utf8_cut(cause, TP_SESSION_CAUSE_BYTES - 1);
    char text[TP_SESSION_CAUSE_BYTES] = "request";
    struct tp_trace *t;
    int rc;

    tp_problem_clear(problem);
    if (cut.len != 0)
        snprintf(text, sizeof(text), "%.*s", (int)cut.len, cut.ptr);
    tp_lock_take(&e->lock);
    rc = tp_trace_find(e, id, &t, problem, err);
    if (rc == TP_OK)
        rc = move(t, text, now, problem, err);
    if (rc == TP_OK && out != NULL)
        rc = tp_make_view(t, TP_VIEW_FULL, out, err);
    tp_lock_give(&e->lock);
    return rc;
}

int tp_engine_trace_start(struct tp_engine *e, struct tp_str id, struct tp_str cause,
                          struct tp_now now, struct tp_trace_view **out,
                          struct tp_problem *problem, struct tp_err *err)
{
    return ask(e, id, cause, now, start, out, problem, err);
}

int tp_engine_trace_stop(struct tp_engine *e, struct tp_str id, struct tp_str cause,
                         struct tp_now now, struct tp_trace_view **out,
                         struct tp_problem *problem, struct tp_err *err)
{
    return ask(e, id, cause, now, stop, out, problem, err);
}

int tp_engine_trace_cancel(struct tp_engine *e, struct tp_str id, struct tp_str cause,
                           struct tp_now now, struct tp_trace_view **out,
                           struct tp_problem *problem, struct tp_err *err)
{
    return ask(e, id, cause, now, cancel, out, problem, err);
}

static int delete (struct tp_engine *e, struct tp_trace *t, struct tp_problem *problem,
                   struct tp_err *err)
{
    int rc;

    if (tp_trace_is_active(t))
        return tp_problem_state(problem, t->id, tp_trace_state_name(t), "cannot delete",
                                err);
    rc = e->opts.store->ops->remove_trace(e->opts.store, tp_str_of(t->id), err);
    if (rc != TP_OK) {
        e->stats.store_failures++;
        return tp_problem_storage(problem, rc);
    }
    /* An upload may be appending to a log: it purges when it is done. Blobs that stay
     * behind belong to no row: the next start removes them. */
    if (t->n_committing > 0)
        t->is_purging = true;
    else
        tp_stream_blobs_remove(t);
    tp_key_drop_trace(e, t->id);
    e->stats.traces_deleted++;
    tp_trace_unlink(t);
    return TP_OK;
}

int tp_engine_trace_delete(struct tp_engine *e, struct tp_str id, struct tp_now now,
                           struct tp_problem *problem, struct tp_err *err)
{
    struct tp_trace *t;
    int rc;

    (void)now;
    tp_problem_clear(problem);
    tp_lock_take(&e->lock);
    rc = tp_trace_find(e, id, &t, problem, err);
    if (rc == TP_OK)
        rc = delete (e, t, problem, err);
    tp_lock_give(&e->lock);
    return rc;
}

int tp_engine_trace_get(struct tp_engine *e, struct tp_str id, struct tp_now now,
                        struct tp_trace_view **out, struct tp_problem *problem,
                        struct tp_err *err)
{
    struct tp_trace *t;
    int rc;

    (void)now;
    tp_problem_clear(problem);
    tp_lock_take(&e->lock);
    rc = tp_trace_find(e, id, &t, problem, err);
    if (rc == TP_OK)
        rc = tp_make_view(t, TP_VIEW_FULL, out, err);
    tp_lock_give(&e->lock);
    return rc;
}

int tp_engine_trace_version(struct tp_engine *e, struct tp_str id, uint64_t *out,
                            struct tp_problem *problem, struct tp_err *err)
{
    struct tp_trace *t;
    int rc;

    tp_problem_clear(problem);
    tp_lock_take(&e->lock);
    rc = tp_trace_find(e, id, &t, problem, err);
    if (rc == TP_OK)
        *out = t->version;
    tp_lock_give(&e->lock);
    return rc;
}

#define MANY 64 /* producers; to tell fewer takes no time to speak of */

bool tp_engine_trace_is_told(struct tp_engine *e, struct tp_str id)
{
    const struct tp_trace *t;
    bool is_told;

    tp_lock_take(&e->lock);
    t = tp_strmap_get(&e->traces, id.ptr, id.len);
    is_told = t == NULL || !tp_trace_is_active(t) || t->telling.n_due < MANY ||
              t->telling.n_told >= t->telling.n_due;
    tp_lock_give(&e->lock);
    return is_told;
}

/* What a query says about states: one state, or those that are active, or all. */
struct wanted {
    int state; /* -1 = not one */
    bool is_active;
};

static int read_state(struct tp_str state, struct wanted *out,
                      struct tp_problem *problem, struct tp_err *err)
{
    out->state = state.len == 0 ? -1 : tp_session_state_find(state);
    out->is_active = tp_str_is(state, "active");
    if (state.len == 0 || out->is_active || out->state >= 0)
        return TP_OK;
    return tp_problem_invalid(problem, "state",
                              tp_fail(err, TP_EINVAL, "there is no state '%.*s'",
                                      (int)(state.len > 64 ? 64 : state.len),
                                      state.ptr));
}

static bool is_wanted(const struct tp_trace *t, const struct tp_trace_query *q,
                      const struct wanted *w)
{
    if (q->job.len != 0 && !tp_str_is(q->job, t->job->name))
        return false;
    if (w->is_active)
        return tp_trace_is_active(t);
    return w->state < 0 || t->session.state == w->state;
}

/* The newest trace that is older than the cursor, which may have been deleted. */
static struct tp_trace *behind(struct tp_engine *e, struct tp_str after)
{
    struct tp_trace *t = e->newest;

    if (after.len == 0)
        return t;
    while (t != NULL && memcmp(t->id, after.ptr, TP_TRACE_ID_BYTES - 1) >= 0)
        t = t->older;
    return t;
}

/* The lock is held. */
static int fill_list(struct tp_engine *e, const struct tp_trace_query *q,
                     const struct wanted *w, size_t limit, struct tp_trace_list *list,
                     struct tp_err *err)
{
    struct tp_trace *t = behind(e, q->after);
    int rc = TP_OK;

    for (; t != NULL && rc == TP_OK; t = t->older) {
        if (!is_wanted(t, q, w))
            continue;
        if (list->n == limit) {
            list->has_more = true;
            break;
        }
        rc = tp_make_view(t, TP_VIEW_BRIEF, &list->items[list->n], err);
        list->n += rc == TP_OK;
    }
    return rc;
}

int tp_engine_traces_list(struct tp_engine *e, const struct tp_trace_query *query,
                          struct tp_now now, struct tp_trace_list **out,
                          struct tp_problem *problem, struct tp_err *err)
{
    size_t limit = query->limit == 0 ? PAGE_DEFAULT : query->limit;
    struct tp_trace_list *list = NULL;
    struct wanted wanted;
    int rc;

    (void)now;
    tp_problem_clear(problem);
    rc = read_state(query->state, &wanted, problem, err);
    if (rc != TP_OK)
        return rc;
    if (query->after.len != 0 && query->after.len != TP_TRACE_ID_BYTES - 1)
        return tp_problem_invalid(problem, "cursor",
                                  tp_fail(err, TP_EINVAL,
                                          "the cursor is not one of ours"));
    if (limit > e->limits.list_items)
        limit = e->limits.list_items;
    list = calloc(1, sizeof(*list));
    if (list != NULL)
        list->items = calloc(limit, sizeof(list->items[0]));
    if (list == NULL || list->items == NULL) {
        tp_trace_list_free(list);
        return tp_fail(err, TP_ENOMEM, "no memory for a list of traces");
    }
    tp_lock_take(&e->lock);
    rc = fill_list(e, query, &wanted, limit, list, err);
    tp_lock_give(&e->lock);
    if (rc != TP_OK) {
        tp_trace_list_free(list);
        return rc;
    }
    *out = list;
    return TP_OK;
}
