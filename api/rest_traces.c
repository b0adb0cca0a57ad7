/*
 * rest_traces.c - the control of traces.
 */
#include "api/rest_traces.h"

#include <stdio.h>

#include "api/answer.h"
#include "api/json_in.h"
#include "api/problem.h"
#include "api/service.h"
#include "api/trace_json.h"
#include "api/trace_request.h"
#include "core/limits.h"
#include "engine/jobs.h"
#include "engine/problem.h"
#include "engine/trace_views.h"

static void answer_trace(struct tp_call *call, int status,
                         const struct tp_trace_view *view)
{
    struct tp_json_out o;

    tp_answer_open(call, status, &o);
    tp_trace_json(&o, view);
    tp_answer_close(call, &o);
}

#define TELL_MOST_NS UINT64_C(1000000000) /* the answer waits for it */

static void answer_created(struct tp_call *call, const struct tp_trace_view *view)
{
    answer_trace(call, view->is_dry_run ? 200 : 201, view);
    if (call->fault != TP_FAULT_NONE)
        return;
    if (view->is_replay)
        tp_call_header(call, "Idempotency-Replayed", "true");
    if (!view->is_dry_run)
        tp_call_header_printf(call, "Location", "/v1/traces/%s", view->id);
    snprintf(call->subject, sizeof(call->subject), "%s", view->id);
}

/* All of what was made, when everybody has been told. */
static void answer_made(struct tp_call *call)
{
    struct tp_trace_view *view = NULL;
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc = tp_engine_trace_get(call->service->engine, tp_str_of(call->subject),
                                 call->now, &view, &problem, &err);

    if (rc == TP_OK) {
        answer_created(call, view);
    } else {
        tp_fail_prefix(&err, "the trace was made");
        tp_problem_engine(call, rc, &problem, &err);
        tp_call_header_printf(call, "Location", "/v1/traces/%s", call->subject);
    }
    tp_trace_view_free(view);
}

static bool is_told(struct tp_call *call)
{
    return tp_engine_trace_is_told(call->service->engine, tp_str_of(call->subject));
}

/*
 * A trace was made. The description of thousands of producers, and JSON of it, take as
 * long as telling them, and on a machine with few cores the one waits for the other, so
 * the answer comes second: at the latest when the trace starts.
 */
static void tell_and_answer(struct tp_call *call, const struct tp_trace_view *brief)
{
    uint64_t start_ns = brief->start_at_wall_ns;
    uint64_t most_ns = start_ns > call->now.wall_ns ? start_ns - call->now.wall_ns : 0;

    tp_call_changed(call);
    snprintf(call->subject, sizeof(call->subject), "%s", brief->id);
    if (most_ns == 0 || is_told(call)) {
        answer_made(call);
        return;
    }
    call->reply = TP_REPLY_WAIT;
    call->wait.is_brief = true;
    call->wait.deadline_ns = call->now.mono_ns +
                             (most_ns < TELL_MOST_NS ? most_ns : TELL_MOST_NS);
    call->wait.ready = is_told;
    call->wait.resume = answer_made;
}

/* The key must be short and printable; an empty header is a mistake, not "none". */
static bool read_key(struct tp_call *call, struct tp_str *key)
{
    struct tp_str s = call->headers[TP_HEADER_IDEMPOTENCY_KEY];
    bool is_good = s.len <= TP_IDEMPOTENCY_KEY_MAX_BYTES;

    *key = (struct tp_str){"", 0};
    if (s.ptr == NULL)
        return true;
    for (size_t i = 0; i < s.len && is_good; i++)
        is_good = s.ptr[i] > 0x20 && s.ptr[i] < 0x7f;
    if (!is_good || s.len == 0) {
        tp_problem_answer(call, TP_FAULT_INVALID_REQUEST,
                          "Idempotency-Key must have 1 to %d printable characters",
                          TP_IDEMPOTENCY_KEY_MAX_BYTES);
        return false;
    }
    *key = s;
    return true;
}

void tp_rest_create_trace(struct tp_call *call)
{
    struct tp_trace_request_body body = {0};
    struct tp_trace_view *view = NULL;
    struct tp_problem problem = {0};
    struct tp_json_in in = {0};
    struct tp_err err = {0};
    struct tp_str key;
    int rc;

    if (!read_key(call, &key))
        return;
    tp_json_in_parse(&in, (struct tp_str){call->body.data, call->body.len},
                     (uint32_t)call->service->limits->json_depth);
    if (in.code == TP_OK)
        tp_trace_request_read(&in, call->service->limits, &body);
    if (in.code != TP_OK) {
        tp_problem_body(call, &in);
        goto out;
    }
    body.request.is_brief = true;
    body.request.idempotency_key = key;
    body.request.body = (struct tp_str){call->body.data, call->body.len};
    rc = tp_engine_trace_create(call->service->engine, &body.request, call->now, &view,
                                &problem, &err);
    if (rc != TP_OK)
        tp_problem_engine(call, rc, &problem, &err);
    else if (view->is_dry_run || view->is_replay)
        answer_created(call, view);
    else
        tell_and_answer(call, view);

out:
    tp_trace_view_free(view);
    tp_trace_request_fini(&body);
    tp_json_in_fini(&in);
}

/* The moves take no fields, but `{}` is what some clients send. */
static bool has_no_fields(struct tp_call *call)
{
    static const char *const none[] = {NULL};
    struct tp_json_in in = {0};
    bool is_good;

    tp_json_in_parse(&in, (struct tp_str){call->body.data, call->body.len}, 2);
    if (in.code == TP_OK)
        tp_json_in_known(&in, in.root, "", none);
    is_good = in.code == TP_OK;
    if (!is_good)
        tp_problem_body(call, &in);
    tp_json_in_fini(&in);
    return is_good;
}

typedef int (*move_fn)(struct tp_engine *e, struct tp_str id, struct tp_str cause,
                       struct tp_now now, struct tp_trace_view **out,
                       struct tp_problem *problem, struct tp_err *err);

static void move_trace(struct tp_call *call, move_fn move)
{
    struct tp_trace_view *view = NULL;
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc;

    if (!has_no_fields(call))
        return;
    rc = move(call->service->engine, call->args[0], (struct tp_str){"", 0}, call->now,
              &view, &problem, &err);
    if (rc != TP_OK) {
        tp_problem_engine(call, rc, &problem, &err);
    } else {
        tp_call_changed(call);
        answer_trace(call, 202, view);
    }
    tp_trace_view_free(view);
}

void tp_rest_start_trace(struct tp_call *call)
{
    move_trace(call, tp_engine_trace_start);
}

void tp_rest_stop_trace(struct tp_call *call)
{
    move_trace(call, tp_engine_trace_stop);
}

void tp_rest_cancel_trace(struct tp_call *call)
{
    move_trace(call, tp_engine_trace_cancel);
}

void tp_rest_get_trace(struct tp_call *call)
{
    struct tp_trace_view *view = NULL;
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc = tp_engine_trace_get(call->service->engine, call->args[0], call->now, &view,
                                 &problem, &err);

    if (rc != TP_OK)
        tp_problem_engine(call, rc, &problem, &err);
    else
        answer_trace(call, 200, view);
    tp_trace_view_free(view);
}

void tp_rest_delete_trace(struct tp_call *call)
{
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc = tp_engine_trace_delete(call->service->engine, call->args[0], call->now,
                                    &problem, &err);

    if (rc == TP_OK)
        tp_call_changed(call);
    if (rc != TP_OK)
        tp_problem_engine(call, rc, &problem, &err);
    else
        tp_answer_empty(call, 204);
}

static void answer_list(struct tp_call *call, const struct tp_trace_list *list)
{
    struct tp_json_out o;

    tp_answer_open(call, 200, &o);
    tp_json_out_array(&o, "items");
    for (size_t i = 0; i < list->n; i++) {
        tp_json_out_object(&o, NULL);
        tp_trace_json_item(&o, list->items[i]);
        tp_json_out_close_object(&o);
    }
    tp_json_out_close_array(&o);
    tp_json_out_text(&o, "next_cursor",
                     list->has_more && list->n > 0 ? list->items[list->n - 1]->id
                                                   : NULL);
    tp_answer_close(call, &o);
}

void tp_rest_list_traces(struct tp_call *call)
{
    struct tp_trace_list *list = NULL;
    struct tp_trace_query query = {0};
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc;

    if (!tp_param_job(call, &query.job) ||
        !tp_param_text(call, "state", 32, &query.state) ||
        !tp_param_text(call, "cursor", 64, &query.after) ||
        !tp_param_limit(call, &query.limit))
        return;
    rc = tp_engine_traces_list(call->service->engine, &query, call->now, &list,
                               &problem, &err);
    if (rc != TP_OK)
        tp_problem_engine(call, rc, &problem, &err);
    else
        answer_list(call, list);
    tp_trace_list_free(list);
}
