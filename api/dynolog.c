/*
 * dynolog.c - a request of dynolog's becomes a trace request, and the trace an answer.
 *
 *   config text --> struct tp_kineto_wish --+
 *   job_id      --> job --> producers       +--> tp_engine_trace_create() --> answer
 *   pids, limit ----------> those selected -+
 *
 * Its answer has what dynolog's has, in the same words: pids of those that matched and
 * were triggered, and how many were busy. "trace_id" and the sentences are ours; its
 * clients print the whole answer.
 */
#include "api/dynolog.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/json_in.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/json_doc.h"
#include "core/limits.h"
#include "engine/engine.h"
#include "engine/problem.h"
#include "kineto/config_read.h"
#include "kineto/log_file.h"

#define LIMIT_DEFAULT 1000
#define TYPES_MAX 64
#define TYPE_BYTES 32

/* A process that is asked for. */
struct chosen {
    char id[TP_TRACE_ID_BYTES];
    int64_t pid;
};

/* One setKinetOnDemandRequest on its way. */
struct call {
    struct tp_service *service;
    struct tp_now now;
    struct tp_json_in in;
    struct tp_kineto_wish wish;
    char type_texts[TYPES_MAX][TYPE_BYTES];
    struct tp_str types[TYPES_MAX];
    size_t n_types;
    char job[24];
    int64_t *pids; /* empty = all */
    size_t n_pids;
    uint64_t limit;
    struct chosen *chosen; /* all that match */
    size_t n_chosen;
    struct tp_trace_view *view; /* NULL: no trace was made */
    struct tp_err err;
    int code;               /* why not, TP_OK = nobody matched */
    bool puts_files;        /* where the client expects them */
    struct tp_err no_files; /* why not */
};

static bool is_asked_for(const struct call *c, int64_t pid)
{
    for (size_t i = 0; i < c->n_pids; i++) {
        if (c->pids[i] == pid)
            return true;
    }
    return c->n_pids == 0;
}

/* Read the pids; none, or 0, stands for all of the job. */
static void read_pids(struct call *c)
{
    size_t n = 0;
    struct json_object *list =
        tp_json_in_array(&c->in, c->in.root, "", "pids", TP_DYNOLOG_PIDS_MAX, &n);

    if (list == NULL)
        return;
    c->pids = calloc(n + 1, sizeof(*c->pids));
    if (c->pids == NULL) {
        c->in.code = tp_fail(&c->in.err, TP_ENOMEM, "no memory for the pids");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct json_object *v = json_object_array_get_idx(list, i);

        if (!json_object_is_type(v, json_type_int)) {
            tp_json_in_fail(&c->in, TP_FAULT_INVALID_FIELD, "", "pids",
                            "pids[%zu] is no number", i);
            return;
        }
        c->pids[i] = json_object_get_int64(v);
        c->n_pids = i + 1;
    }
    if (n == 1 && c->pids[0] == 0)
        c->n_pids = 0;
}

/* Split the list of types, which libkineto takes in any case: at most TYPES_MAX are
 * written down, and all are counted. What is too long is no type, and becomes one that
 * is refused by name. */
static void split_types(struct call *c)
{
    struct tp_str list = c->wish.types;

    for (; list.len > 0; c->n_types++) {
        const char *comma = memchr(list.ptr, ',', list.len);
        size_t len = comma == NULL ? list.len : (size_t)(comma - list.ptr);
        char *text = c->type_texts[c->n_types % TYPES_MAX];
        size_t at = 0;

        for (size_t i = 0; i < len && at < TYPE_BYTES; i++) {
            if (list.ptr[i] != ' ' && list.ptr[i] != '\t')
                text[at++] = (char)tolower((unsigned char)list.ptr[i]);
        }
        c->types[c->n_types % TYPES_MAX] = (struct tp_str){text, at};
        list.ptr += comma == NULL ? len : len + 1;
        list.len -= comma == NULL ? len : len + 1;
    }
}

static void read_request(struct call *c)
{
    struct tp_json_in *in = &c->in;
    struct tp_str config = tp_json_in_str(in, in->root, "", "config");
    int64_t job = tp_json_in_i64(in, in->root, "", "job_id", 0);

    c->limit =
        tp_json_in_u64(in, in->root, "", "process_limit", 1, INT32_MAX, LIMIT_DEFAULT);
    read_pids(c);
    if (in->code == TP_OK &&
        (!tp_json_in_has(in->root, "config") || !tp_json_in_has(in->root, "pids")))
        tp_json_in_fail(in, TP_FAULT_INVALID_REQUEST, "", "config",
                        "'config' and 'pids' are needed");
    if (in->code == TP_OK && job < 0)
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "", "job_id",
                        "'job_id' is negative");
    if (in->code == TP_OK && tp_kineto_config_read(config, &c->wish, &c->err) != TP_OK)
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "", "config", "%s", c->err.message);
    if (in->code == TP_OK)
        split_types(c);
    if (in->code == TP_OK && c->n_types > TYPES_MAX)
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "", "config",
                        "ACTIVITY_TYPES names %zu types, and %d are the most",
                        c->n_types, TYPES_MAX);
    if (job > 0)
        snprintf(c->job, sizeof(c->job), "%lld", (long long)job);
    else
        snprintf(c->job, sizeof(c->job), "default");
}

/* Whether the client may have its files where it expects them. */
static void read_log_file(struct call *c)
{
    struct tp_kineto_log_file ignored;
    struct tp_str path = c->wish.log_file;

    if (path.len == 0)
        return;
    if (c->service->n_log_dirs == 0)
        tp_fail(&c->no_files, TP_EDENIED, "the service has no dynolog-log-dir");
    else
        c->puts_files = tp_kineto_log_file_find(path, c->service->log_dirs,
                                                c->service->n_log_dirs, &ignored,
                                                &c->no_files) == TP_OK;
}

/* The pid by which a client knows a process. One that we cannot see, since it lives in
 * another pid namespace, is known by the pid that it has there, as with dynolog. */
static int64_t pid_of(const struct tp_producer_view *p)
{
    return p->pid >= 0 ? p->pid : p->said_pid;
}

static int choose(struct call *c, const struct tp_producer_view *p)
{
    int64_t pid = pid_of(p);
    struct chosen *more;

    if (strcmp(p->kind, "kineto") != 0 || strcmp(p->state, "stale") == 0 ||
        p->is_stranger || !is_asked_for(c, pid))
        return TP_OK;
    more = realloc(c->chosen, (c->n_chosen + 1) * sizeof(*more));
    if (more == NULL)
        return tp_fail(&c->err, TP_ENOMEM, "no memory for the processes");
    c->chosen = more;
    more[c->n_chosen].pid = pid;
    snprintf(more[c->n_chosen++].id, sizeof(more->id), "%s", p->id);
    return TP_OK;
}

/* All Kineto processes of the job that are asked for, page by page. */
static int choose_all(struct call *c)
{
    struct tp_producer_query query = {.job = tp_str_of(c->job), .limit = 1000};
    char after[TP_TRACE_ID_BYTES] = "";
    bool has_more = true;
    int rc = TP_OK;

    while (rc == TP_OK && has_more) {
        struct tp_producer_list *list = NULL;

        query.after = tp_str_of(after);
        rc = tp_engine_producers_list(c->service->engine, &query, c->now, &list, NULL,
                                      &c->err);
        for (size_t i = 0; rc == TP_OK && i < list->n; i++)
            rc = choose(c, &list->items[i]);
        has_more = rc == TP_OK && list->has_more && list->n > 0;
        if (has_more)
            snprintf(after, sizeof(after), "%s", list->items[list->n - 1].id);
        tp_producer_list_free(list);
    }
    return rc;
}

/* The member "kineto" of a trace request. */
static int write_options(const struct tp_kineto_wish *w, struct tp_buf *out,
                         struct tp_err *err)
{
    struct tp_json_doc d;

    tp_json_doc_init(&d, out, err);
    tp_json_doc_object(&d);
    tp_json_doc_member_bool(&d, "record_shapes", w->record_shapes);
    tp_json_doc_member_bool(&d, "profile_memory", w->profile_memory);
    tp_json_doc_member_bool(&d, "with_stack", w->with_stack);
    tp_json_doc_member_bool(&d, "with_flops", w->with_flops);
    tp_json_doc_member_bool(&d, "with_modules", w->with_modules);
    if (w->has_warmup)
        tp_json_doc_member_u64(&d, "warmup_ms", w->warmup_s * 1000);
    if (w->iterations > 0)
        tp_json_doc_member_u64(&d, "iterations", w->iterations);
    if (w->iteration_roundup > 0)
        tp_json_doc_member_u64(&d, "iteration_roundup", w->iteration_roundup);
    tp_json_doc_close(&d);
    return tp_json_doc_end(&d);
}

/* What the trace is called: the file that the client has in mind. */
static struct tp_str label_of(const struct tp_kineto_wish *w)
{
    struct tp_str s = w->log_file;

    if (s.len > TP_TRACE_LABEL_MAX_BYTES) {
        s.ptr += s.len - TP_TRACE_LABEL_MAX_BYTES;
        s.len = TP_TRACE_LABEL_MAX_BYTES;
    }
    return s;
}

static int create(struct call *c, const struct tp_str *ids, size_t n,
                  struct tp_str options, struct tp_problem *problem)
{
    const struct tp_kineto_wish *w = &c->wish;
    struct tp_trace_request request = {
        .job = tp_str_of(c->job),
        .producers = ids,
        .n_producers = n,
        .start = w->start_wall_ms == 0 ? TP_START_NOW : TP_START_AT,
        .start_wall_ns = w->start_wall_ms * UINT64_C(1000000),
        .stop_duration_ms = w->iterations > 0 ? 0 : w->duration_ms,
        .label = label_of(w),
        .log_file = c->puts_files ? w->log_file : (struct tp_str){"", 0},
        .kineto_json = options,
    };

    request.filter.lists[TP_FILTER_INCLUDE].items = c->types;
    request.filter.lists[TP_FILTER_INCLUDE].n = c->n_types;
    return tp_engine_trace_create(c->service->engine, &request, c->now, &c->view,
                                  problem, &c->err);
}

/* Make a trace of the first `limit` that match. */
static int trigger(struct call *c, struct tp_problem *problem)
{
    size_t n = c->n_chosen < c->limit ? c->n_chosen : (size_t)c->limit;
    struct tp_str *ids = calloc(n + 1, sizeof(*ids));
    struct tp_buf options = {0};
    int rc;

    if (ids == NULL)
        return tp_fail(&c->err, TP_ENOMEM, "no memory for the processes");
    for (size_t i = 0; i < n; i++)
        ids[i] = tp_str_of(c->chosen[i].id);
    rc = write_options(&c->wish, &options, &c->err);
    if (rc == TP_OK)
        rc = create(c, ids, n, (struct tp_str){options.data, options.len}, problem);
    tp_buf_fini(&options);
    free(ids);
    return rc;
}

/* Whether the trace has taken a process in. */
static bool is_triggered(const struct call *c, const struct chosen *x)
{
    for (size_t i = 0; c->view != NULL && i < c->view->n_members; i++) {
        const struct tp_member_view *m = &c->view->members[i];

        if (strcmp(m->who.id, x->id) == 0)
            return m->is_matched;
    }
    return false;
}

/* Write pids: of all that match, or of those that were triggered. Returns how many. */
static size_t write_pids(const struct call *c, struct tp_json_doc *d, const char *key,
                         bool is_all)
{
    size_t n = 0;

    tp_json_doc_key(d, key);
    tp_json_doc_array(d);
    for (size_t i = 0; i < c->n_chosen; i++) {
        if (!is_all && !is_triggered(c, &c->chosen[i]))
            continue;
        tp_json_doc_i64(d, c->chosen[i].pid);
        n++;
    }
    tp_json_doc_close(d);
    return n;
}

/* The files that will be there when the trace is complete. */
static void write_files(const struct call *c, struct tp_json_doc *d)
{
    char path[TP_KINETO_LOG_FILE_BYTES];

    tp_json_doc_key(d, "files");
    tp_json_doc_array(d);
    for (size_t i = 0; i < c->view->n_members; i++) {
        const struct tp_member_view *m = &c->view->members[i];

        if (m->is_matched &&
            tp_kineto_log_file_name(c->wish.log_file, m->who.name, path, NULL) == TP_OK)
            tp_json_doc_str(d, tp_str_of(path));
    }
    tp_json_doc_close(d);
}

static void warn_of_no_files(const struct call *c, struct tp_json_doc *d)
{
    char text[TP_ERR_MESSAGE_BYTES + 128];

    if (c->view == NULL || c->puts_files || c->wish.log_file.len == 0)
        return;
    snprintf(text, sizeof(text),
             "no file will be at '%.*s': %s; GET /traces/%s/download has all of them",
             (int)(c->wish.log_file.len > 64 ? 64 : c->wish.log_file.len),
             c->wish.log_file.ptr, c->no_files.message, c->view->id);
    tp_json_doc_str(d, tp_str_of(text));
}

static void write_warnings(const struct call *c, struct tp_json_doc *d)
{
    tp_json_doc_key(d, "warnings");
    tp_json_doc_array(d);
    for (size_t i = 0; c->view != NULL && i < c->view->n_warnings; i++)
        tp_json_doc_str(d, tp_str_of(c->view->warnings[i]));
    for (size_t i = 0; c->view != NULL && i < c->view->n_members; i++) {
        const struct tp_member_view *m = &c->view->members[i];
        char text[256];

        if (m->is_matched || strcmp(m->who.kind, "kineto") != 0 ||
            strncmp(m->reason, "not selected", 12) == 0)
            continue;
        snprintf(text, sizeof(text), "%.100s: %.140s", m->who.name, m->reason);
        tp_json_doc_str(d, tp_str_of(text));
    }
    warn_of_no_files(c, d);
    if (c->wish.wants_snapshot)
        tp_json_doc_str(d, tp_str_of("PROFILE_MEMORY is left out: it leaves a thread "
                                     "of the process spinning"));
    if (c->code != TP_OK)
        tp_json_doc_str(d, tp_str_of(c->err.message));
    tp_json_doc_close(d);
}

static int write_answer(const struct call *c, struct tp_buf *out, struct tp_err *err)
{
    uint64_t asked = c->n_chosen < c->limit ? c->n_chosen : c->limit;
    struct tp_json_doc d;
    size_t n;

    tp_json_doc_init(&d, out, err);
    tp_json_doc_object(&d);
    write_pids(c, &d, "processesMatched", true);
    tp_json_doc_key(&d, "eventProfilersTriggered");
    tp_json_doc_array(&d);
    tp_json_doc_close(&d);
    n = write_pids(c, &d, "activityProfilersTriggered", false);
    tp_json_doc_member_u64(&d, "eventProfilersBusy", 0);
    tp_json_doc_member_u64(&d, "activityProfilersBusy", asked - n);
    if (c->view != NULL)
        tp_json_doc_member_str(&d, "trace_id", tp_str_of(c->view->id));
    if (c->view != NULL && c->puts_files)
        write_files(c, &d);
    write_warnings(c, &d);
    tp_json_doc_close(&d);
    return tp_json_doc_end(&d);
}

static int write_member(struct tp_buf *out, const char *key, struct tp_str value,
                        struct tp_err *err)
{
    struct tp_json_doc d;

    tp_json_doc_init(&d, out, err);
    tp_json_doc_object(&d);
    tp_json_doc_member_str(&d, key, value);
    tp_json_doc_close(&d);
    return tp_json_doc_end(&d);
}

static int write_failed(const char *why, struct tp_buf *out, struct tp_err *err)
{
    char text[TP_ERR_MESSAGE_BYTES + 16];

    snprintf(text, sizeof(text), "failed: %s", why);
    return write_member(out, "status", tp_str_of(text), err);
}

static void fini(struct call *c)
{
    tp_trace_view_free(c->view);
    free(c->pids);
    free(c->chosen);
}

/* A job whose trace runs has its processes busy, as dynolog calls it. */
static int request(struct call *c, struct tp_buf *out,
                   struct tp_dynolog_outcome *outcome, struct tp_err *err)
{
    struct tp_problem problem = {0};

    outcome->action = "setKinetOnDemandRequest";
    read_request(c);
    if (c->in.code != TP_OK) {
        outcome->fault = c->in.kind;
        return write_failed(c->in.err.message, out, err);
    }
    read_log_file(c);
    c->code = choose_all(c);
    if (c->code == TP_OK && c->n_chosen > 0)
        c->code = trigger(c, &problem);
    if (c->code != TP_OK)
        outcome->fault = tp_status_fault(c->code, &problem);
    if (c->view != NULL)
        memcpy(outcome->trace_id, c->view->id, sizeof(outcome->trace_id));
    if (c->code != TP_OK && outcome->fault != TP_FAULT_TRACE_ACTIVE)
        return write_failed(c->err.message, out, err);
    return write_answer(c, out, err);
}

int tp_dynolog_answer(struct tp_service *service, struct tp_now now,
                      struct tp_str message, struct tp_buf *out,
                      struct tp_dynolog_outcome *outcome, struct tp_err *err)
{
    struct call c = {.service = service, .now = now};
    struct tp_str fn;
    int rc = TP_OK;

    memset(outcome, 0, sizeof(*outcome));
    tp_json_in_parse(&c.in, message, TP_DYNOLOG_DEPTH_MAX);
    fn = c.in.code == TP_OK ? tp_json_in_str(&c.in, c.in.root, "", "fn")
                            : (struct tp_str){"", 0};
    if (tp_str_is(fn, "setKinetOnDemandRequest"))
        rc = request(&c, out, outcome, err);
    else if (tp_str_is(fn, "getStatus"))
        rc = tp_buf_append_str(out, "{\"status\":1}", err);
    else if (tp_str_is(fn, "getVersion"))
        rc = write_member(out, "version", tp_str_of(service->version), err);
    else if (tp_str_is(fn, "dcgmProfPause") || tp_str_is(fn, "dcgmProfResume"))
        rc = tp_buf_append_str(out, "{\"status\":false}", err); /* there is no DCGM */
    fini(&c);
    tp_json_in_fini(&c.in);
    return rc;
}
