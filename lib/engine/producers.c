/*
 * Producers come and go by name; who takes part in what is matching.c, what they say to
 * each other is sync.c.
 */
#include "engine/producers.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/ulid.h"
#include "engine/check.h"
#include "engine/join.h"
#include "engine/kineto_model.h"
#include "engine/life.h"
#include "engine/matching.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/pool.h"
#include "engine/problem.h"
#include "store/store.h"

#define PAGE_DEFAULT 100
#define NAME_MAX_BYTES 127

void tp_producer_list_free(struct tp_producer_list *list)
{
    if (list == NULL)
        return;
    tp_pool_free(list->pool);
    free(list);
}

static const char *state_of(const struct tp_producer *p, struct tp_now now)
{
    if (tp_match_is_live_kind(p) && tp_match_silent_ns(p, now) >= p->silence_ns)
        return "stale";
    if (p->member == NULL && p->kineto != NULL && p->kineto->seen.is_busy)
        return "busy";
    if (p->member == NULL)
        return "idle";
    return tp_member_state_name(p->member->state);
}

static void view_producer(const struct tp_producer *p, struct tp_now now,
                          struct tp_pool *pool, struct tp_producer_view *out)
{
    struct tp_identity_view who = tp_identity_view(&p->who, pool);

    out->id = who.id;
    out->job = tp_pool_text(pool, p->job->name);
    out->name = who.name;
    out->kind = who.kind;
    out->host = who.host;
    out->backend = who.backend;
    out->device = who.device;
    out->capabilities_json = tp_pool_text(pool, p->capabilities);
    out->state = state_of(p, now);
    out->trace_id = p->member == NULL ? "" : tp_pool_text(pool, p->member->trace->id);
    out->rank = who.rank;
    out->pid = who.pid;
    out->said_pid = p->kineto == NULL ? 0 : p->kineto->seen.claimed_pid;
    out->world_size = who.world_size;
    out->registered_wall_ns = p->registered_ns;
    out->seen_wall_ns = p->seen_wall_ns;
    out->step = p->step;
    out->is_stranger = p->is_stranger;
    out->has_clock = p->has_clock;
    out->clock_offset_ns = p->clock_offset_ns;
    out->clock_error_ns = p->clock_error_ns;
}

static struct tp_producer_list *new_list(size_t n)
{
    struct tp_producer_list *list = calloc(1, sizeof(*list));

    if (list == NULL)
        return NULL;
    list->pool = tp_pool_new();
    list->items = tp_pool_array(list->pool, n, sizeof(list->items[0]));
    return list;
}

/* Give the list out when all of it could be had. */
static int hand_out(struct tp_producer_list *list, struct tp_producer_list **out,
                    struct tp_err *err)
{
    if (list == NULL || tp_pool_has_failed(list->pool)) {
        tp_producer_list_free(list);
        return tp_fail(err, TP_ENOMEM, "no memory for a list of producers");
    }
    *out = list;
    return TP_OK;
}

static int check_kind(struct tp_str kind, struct tp_problem *problem,
                      struct tp_err *err)
{
    if (kind.len == 0 || tp_str_is(kind, "http") || tp_str_is(kind, "native"))
        return TP_OK;
    return tp_problem_invalid(problem, "kind",
                              tp_fail(err, TP_EINVAL,
                                      "kind '%.*s' is neither http nor native",
                                      (int)(kind.len > 64 ? 64 : kind.len), kind.ptr));
}

static int check_id(struct tp_str id, struct tp_problem *problem, struct tp_err *err)
{
    uint8_t binary[TP_ULID_BINARY];

    if (id.len == 0 || tp_ulid_read(id, binary))
        return TP_OK;
    return tp_problem_invalid(
        problem, "id",
        tp_fail(err, TP_EINVAL,
                "the id is not %d of the digits 0123456789abcdefghjkmnpqrstvwxyz, "
                "below 8 in front (a ULID in lower case)",
                TP_ULID_BYTES - 1));
}

static int check_request(struct tp_engine *e, const struct tp_producer_request *r,
                         struct tp_problem *problem, struct tp_err *err)
{
    const struct {
        const char *field;
        struct tp_str text;
    } labels[] = {{"host", r->host},
                  {"backend", r->backend},
                  {"device", r->device},
                  {"process", r->process}};
    int rc =
        tp_check_text("name", r->name, "producer name", NAME_MAX_BYTES, problem, err);

    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]) && rc == TP_OK; i++)
        rc = tp_check_text(labels[i].field, labels[i].text, "max-label-bytes",
                           e->limits.label_bytes, problem, err);
    if (rc == TP_OK)
        rc = check_id(r->id, problem, err);
    if (rc == TP_OK)
        rc = check_kind(r->kind, problem, err);
    if (rc == TP_OK)
        rc = tp_check_rank(r->rank, problem, err);
    if (rc == TP_OK && r->capabilities_json.len > e->limits.metadata_bytes)
        rc = tp_problem_limit(problem, "max-metadata-bytes", "bytes",
                              e->limits.metadata_bytes, r->capabilities_json.len, err);
    return rc;
}

static int store_producer(struct tp_engine *e, struct tp_job *job,
                          const struct tp_producer *p, struct tp_err *err)
{
    int rc = tp_persist_begin(e, err);

    if (rc != TP_OK)
        return rc;
    rc = tp_persist_job(e, job, err);
    if (rc == TP_OK)
        rc = tp_persist_producer(e, p, err);
    rc = tp_persist_end(e, rc, err);
    if (rc == TP_OK)
        job->is_stored = true;
    return rc;
}

/*
 * Whether a producer may have an id, asked for or made: nobody else has it, be it as a
 * producer or in a trace that is on, of whatever job. One that was forgotten, and comes
 * back to a trace under its id, goes on where it was; until then its batches are known
 * by the id alone, and so is who it is after a restart.
 */
static bool is_free(struct tp_engine *e, const struct tp_job *job, struct tp_str id,
                    const struct tp_row_identity *who)
{
    char text[TP_TRACE_ID_BYTES];
    const struct tp_trace *t;
    size_t cursor = 0;

    if (tp_producer_find(e, id) != NULL)
        return false;
    snprintf(text, sizeof(text), "%.*s", (int)id.len, id.ptr);
    while ((t = tp_trace_next_active(e, &cursor)) != NULL) {
        const struct tp_member *m = tp_member_find(t, text);

        if (m != NULL && (t->job != job || !tp_identity_is_same(&m->who, who)))
            return false;
    }
    return true;
}

/* An id that nobody has: of those before a restart only the ones of traces are known to
 * tp_new_id(), and a producer may have asked for the next. */
static void make_id(struct tp_engine *e, const struct tp_job *job,
                    const struct tp_row_identity *who, struct tp_now now, char *out)
{
    do
        tp_new_id(e, now, out);
    while (!is_free(e, job, tp_str_of(out), who));
}

static int add_new(struct tp_engine *e, struct tp_job *job, struct tp_row_identity *who,
                   struct tp_str capabilities, struct tp_now now,
                   struct tp_producer **out, struct tp_problem *problem,
                   struct tp_err *err)
{
    const bool has_id = who->producer_id.len != 0;
    char id[TP_TRACE_ID_BYTES];
    struct tp_producer *p;
    int rc;

    if (job->n_producers >= e->limits.producers_per_job)
        return tp_problem_limit(problem, "max-producers-per-job", "producers",
                                e->limits.producers_per_job, job->n_producers + 1, err);
    if (!has_id) {
        make_id(e, job, who, now, id);
        who->producer_id = tp_str_of(id);
    }
    rc = tp_producer_add(job, e, who, capabilities, !has_id, &p, err);
    if (rc != TP_OK)
        return rc;
    p->registered_ns = p->seen_wall_ns = now.wall_ns;
    p->seen_mono_ns = now.mono_ns;
    rc = store_producer(e, job, p, err);
    if (rc != TP_OK) {
        tp_producer_drop(e, p);
        return tp_problem_storage(problem, rc);
    }
    *out = p;
    return TP_OK;
}

/* It is known: take over what it says about itself now. */
static int renew(struct tp_engine *e, struct tp_producer *p,
                 struct tp_row_identity *who, struct tp_str capabilities,
                 struct tp_now now, struct tp_problem *problem, struct tp_err *err)
{
    struct tp_producer fresh = *p;
    int rc;

    who->producer_id = tp_str_of(p->who.id);
    rc = tp_identity_init(&fresh.who, who, err);
    if (rc != TP_OK)
        return rc;
    fresh.capabilities = malloc(capabilities.len + 1);
    if (fresh.capabilities == NULL) {
        tp_identity_fini(&fresh.who);
        return tp_fail(err, TP_ENOMEM, "no memory for a producer");
    }
    if (capabilities.len != 0)
        memcpy(fresh.capabilities, capabilities.ptr, capabilities.len);
    fresh.capabilities[capabilities.len] = '\0';
    fresh.heard_seq = 0; /* it may be a new program that counts anew */
    fresh.seen_wall_ns = now.wall_ns;
    fresh.seen_mono_ns = now.mono_ns;
    rc = store_producer(e, p->job, &fresh, err);
    if (rc != TP_OK) {
        tp_identity_fini(&fresh.who);
        free(fresh.capabilities);
        return tp_problem_storage(problem, rc);
    }
    tp_join_untell_rank(p);
    tp_identity_fini(&p->who);
    free(p->capabilities);
    *p = fresh;
    tp_join_tell_rank(p);
    return TP_OK;
}

/*
 * The producer that a registration is about; *out is NULL when it is a new one, whose
 * id is then in *who, unless we are to make one.
 *
 * With an id of its own it is known by that alone: so two libraries in one process are
 * two producers, and one whose answer was lost is one. Without, the same rank, process,
 * host and name are the same producer.
 */
static int find_known(struct tp_engine *e, struct tp_job *job,
                      const struct tp_producer_request *r, struct tp_row_identity *who,
                      struct tp_producer **out, struct tp_err *err)
{
    struct tp_producer *p;

    *out = NULL;
    if (r->id.len == 0)
        return tp_producer_find_same(job, who, out, err);
    p = tp_producer_find(e, r->id);
    if (p != NULL && p->job == job && tp_identity_is_same(&p->who, who))
        *out = p;
    else if (is_free(e, job, r->id, who))
        who->producer_id = r->id;
    return TP_OK;
}

static int put_producer(struct tp_engine *e, struct tp_job *job,
                        const struct tp_producer_request *r,
                        struct tp_row_identity *who, struct tp_now now,
                        struct tp_producer **out, bool *is_new,
                        struct tp_problem *problem, struct tp_err *err)
{
    int rc = find_known(e, job, r, who, out, err);

    if (rc != TP_OK)
        return rc;
    *is_new = *out == NULL;
    return *is_new ? add_new(e, job, who, r->capabilities_json, now, out, problem, err)
                   : renew(e, *out, who, r->capabilities_json, now, problem, err);
}

static int register_in(struct tp_engine *e, struct tp_job *job,
                       const struct tp_producer_request *r, struct tp_row_identity *who,
                       struct tp_now now, struct tp_producer_list *list,
                       struct tp_problem *problem, struct tp_err *err)
{
    struct tp_producer *p;
    bool is_new;
    int rc = put_producer(e, job, r, who, now, &p, &is_new, problem, err);

    if (rc != TP_OK)
        return rc;
    /* A join that finds no memory is made up for by the next sync. */
    tp_match_join(p, now, NULL);
    if (list != NULL && list->items != NULL) {
        view_producer(p, now, list->pool, &list->items[0]);
        list->items[0].is_new = is_new;
        list->n = 1;
    }
    return TP_OK;
}

static struct tp_row_identity identity_of(const struct tp_producer_request *r)
{
    return (struct tp_row_identity){
        .name = r->name,
        .kind = r->kind.len == 0 ? tp_str_of("http") : r->kind,
        .host = r->host,
        .backend = r->backend,
        .device = r->device,
        .rank = r->rank,
        .pid = r->pid,
        .world_size = r->world_size,
        .process = r->process,
    };
}

int tp_producer_enroll(struct tp_engine *e, const struct tp_producer_request *request,
                       struct tp_now now, struct tp_producer **out, struct tp_err *err)
{
    struct tp_row_identity who = identity_of(request);
    struct tp_job *job = NULL;
    bool is_new;
    int rc = tp_job_get(e, request->job, now.wall_ns, &job, NULL, err);

    if (rc != TP_OK)
        return rc;
    rc = put_producer(e, job, request, &who, now, out, &is_new, NULL, err);
    if (rc != TP_OK && tp_registry_len(job->registry) == 0)
        tp_job_drop_new(e, job);
    return rc;
}

int tp_engine_producer_register(struct tp_engine *e,
                                const struct tp_producer_request *request,
                                struct tp_now now, struct tp_producer_list **out,
                                struct tp_problem *problem, struct tp_err *err)
{
    struct tp_row_identity who = identity_of(request);
    struct tp_str job_name = request->job;
    struct tp_producer_list *list = NULL;
    struct tp_job *job = NULL;
    char name[32];
    int rc;

    tp_problem_clear(problem);
    rc = tp_check_job(&job_name, problem, err);
    if (rc == TP_OK)
        rc = check_request(e, request, problem, err);
    if (rc != TP_OK)
        return rc;
    if (who.name.len == 0)
        who.name = tp_default_producer_name(who.rank, name, sizeof(name));
    list = new_list(1);
    tp_lock_take(&e->lock);
    rc = tp_job_get(e, job_name, now.wall_ns, &job, problem, err);
    if (rc == TP_OK)
        rc = register_in(e, job, request, &who, now, list, problem, err);
    if (rc != TP_OK && job != NULL && tp_registry_len(job->registry) == 0)
        tp_job_drop_new(e, job);
    tp_lock_give(&e->lock);
    if (rc != TP_OK) {
        tp_producer_list_free(list);
        return rc;
    }
    return hand_out(list, out, err);
}

static int by_id(const void *a, const void *b)
{
    const struct tp_producer *const *x = a, *const *y = b;

    return strcmp((*x)->who.id, (*y)->who.id);
}

/* Of n producers keep the first in order of id, `most` of them. Returns how many. */
static size_t keep_first(const struct tp_producer **all, size_t n, size_t most)
{
    qsort(all, n, sizeof(*all), by_id);
    return n < most ? n : most;
}

/* The first producers that a query is about from its cursor on, `most` of them, in
 * order of id, which is not the order in which they came: *n, in memory that is the
 * caller's. NULL without memory. */
static const struct tp_producer **find_listed(struct tp_engine *e,
                                              const struct tp_producer_query *q,
                                              size_t most, size_t *n)
{
    const struct tp_producer **all = malloc(2 * most * sizeof(*all));
    const struct tp_producer *last = NULL; /* none behind it is one of the first */
    size_t cursor = 0;
    void *found;

    *n = 0;
    while (all != NULL && tp_strmap_next(&e->producers, &cursor, NULL, &found)) {
        const struct tp_producer *p = found;

        if ((q->job.len != 0 && !tp_str_is(q->job, p->job->name)) ||
            (q->after.len != 0 && memcmp(p->who.id, q->after.ptr, q->after.len) <= 0) ||
            (last != NULL && strcmp(p->who.id, last->who.id) > 0))
            continue;
        all[(*n)++] = p;
        if (*n == 2 * most) {
            *n = keep_first(all, *n, most);
            last = all[most - 1];
        }
    }
    if (all != NULL)
        *n = keep_first(all, *n, most);
    return all;
}

int tp_engine_producers_list(struct tp_engine *e, const struct tp_producer_query *q,
                             struct tp_now now, struct tp_producer_list **out,
                             struct tp_problem *problem, struct tp_err *err)
{
    size_t limit = q->limit == 0 ? PAGE_DEFAULT : q->limit, n = 0;
    const struct tp_producer **all;
    struct tp_producer_list *list;

    tp_problem_clear(problem);
    if (q->after.len != 0 && q->after.len != TP_TRACE_ID_BYTES - 1)
        return tp_problem_invalid(problem, "cursor",
                                  tp_fail(err, TP_EINVAL,
                                          "the cursor is not one of ours"));
    limit = limit > e->limits.list_items ? e->limits.list_items : limit;
    list = new_list(limit);
    tp_lock_take(&e->lock);
    all = find_listed(e, q, limit + 1, &n); /* one more tells that there are more */
    for (; list != NULL && list->items != NULL && list->n < n && list->n < limit;
         list->n++)
        view_producer(all[list->n], now, list->pool, &list->items[list->n]);
    tp_lock_give(&e->lock);
    if (list != NULL)
        list->has_more = n > list->n;
    if (all == NULL) {
        tp_producer_list_free(list);
        list = NULL;
    }
    free(all);
    return hand_out(list, out, err);
}

int tp_engine_producer_get(struct tp_engine *e, struct tp_str id, struct tp_now now,
                           struct tp_producer_list **out, struct tp_problem *problem,
                           struct tp_err *err)
{
    struct tp_producer_list *list = new_list(1);
    struct tp_producer *p;

    tp_problem_clear(problem);
    tp_lock_take(&e->lock);
    p = tp_producer_find(e, id);
    if (p != NULL && list != NULL && list->items != NULL) {
        view_producer(p, now, list->pool, &list->items[0]);
        list->n = 1;
    }
    tp_lock_give(&e->lock);
    if (p == NULL) {
        tp_producer_list_free(list);
        return tp_problem_not_found(problem, "producer", id, err);
    }
    return hand_out(list, out, err);
}

/* Remove its row, and write that of its member as it is from now on: after a restart
 * nobody could ask the producer how far it was. */
static int remove_rows(struct tp_engine *e, const struct tp_producer *p,
                       struct tp_err *err)
{
    struct tp_member *m = p->member;
    int rc = tp_persist_begin(e, err);

    if (rc != TP_OK)
        return rc;
    rc = e->opts.store->ops->remove_producer(e->opts.store, tp_str_of(p->who.id), err);
    if (rc == TP_OK && m != NULL)
        rc = tp_persist_member(e, m, err);
    return tp_persist_end(e, rc, err);
}

/* Let a producer go that has removed itself; what it still owes its trace is lost. */
static int leave(struct tp_engine *e, struct tp_producer *p, struct tp_now now,
                 struct tp_err *err)
{
    struct tp_member *m = p->member;
    struct tp_member before;
    int rc;

    if (m != NULL) {
        before = *m;
        if (m->state != TP_MEMBER_DONE && m->state != TP_MEMBER_REFUSED) {
            m->state = TP_MEMBER_LOST;
            snprintf(m->reason, sizeof(m->reason), "it left");
        }
    }
    rc = remove_rows(e, p, err);
    if (m != NULL && rc != TP_OK) {
        *m = before;
        tp_member_changed(m); /* its row may be as it was, or not */
    }
    if (m == NULL || rc != TP_OK)
        return rc;
    tp_member_detach(m);
    tp_life_touch(m->trace);
    tp_life_advance(m->trace, now);
    return TP_OK;
}

int tp_engine_producer_delete(struct tp_engine *e, struct tp_str id, struct tp_now now,
                              struct tp_problem *problem, struct tp_err *err)
{
    struct tp_producer *p;
    int rc;

    tp_problem_clear(problem);
    tp_lock_take(&e->lock);
    p = tp_producer_find(e, id);
    if (p == NULL)
        rc = tp_problem_not_found(problem, "producer", id, err);
    else
        rc = tp_problem_storage(problem, leave(e, p, now, err));
    if (rc == TP_OK)
        tp_producer_drop(e, p);
    tp_lock_give(&e->lock);
    return rc;
}

struct tp_str tp_default_producer_name(int64_t rank, char *out, size_t size)
{
    if (rank < 0)
        return tp_str_of("default");
    snprintf(out, size, "rank-%lld", (long long)rank);
    return tp_str_of(out);
}
