/*
 * rest_watch.c - what a watch has told its client already, and what it tells next.
 *
 * A watch asks for the version of the trace, which is cheap, and looks at the trace
 * only when that has grown, at most every LOOK_NS. A move is told then; other changes
 * wait until PROGRESS_NS have passed since the last message, so that a trace under load
 * costs two messages a second.
 */
#include "api/rest_watch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "api/problem.h"
#include "api/service.h"
#include "api/trace_json.h"
#include "core/limits.h"
#include "core/session.h"
#include "engine/problem.h"
#include "engine/trace_views.h"

#define LOOK_NS 50000000u
#define PROGRESS_NS 500000000u
#define KEEP_ALIVE_NS 15000000000u

struct watch {
    const struct tp_service *service;
    char id[TP_TRACE_ID_BYTES];
    char state[24];          /* the last one that was told */
    uint64_t version;        /* the last one that was told */
    uint64_t told_ns;        /* monotonic time of the last message */
    uint64_t looked_ns;      /* ... and of the last look at the trace */
    bool is_over;            /* nothing comes after what is in text */
    _Atomic bool is_stopped; /* the service stops; set by another thread */
    struct tp_buf text;      /* messages on their way */
    size_t sent;             /* bytes of it that were read */
};

static void watch_close(void *arg)
{
    struct watch *w = arg;

    if (w->service->watch_count != NULL)
        w->service->watch_count(w->service->arg, -1);
    tp_buf_fini(&w->text);
    free(w);
}

static struct tp_str id_of(const struct watch *w)
{
    return tp_str_of(w->id);
}

static int put_message(struct watch *w, const char *event,
                       const struct tp_trace_view *view, struct tp_err *err)
{
    struct tp_json_out o;
    int rc;

    w->text.len = w->sent = 0;
    rc = tp_buf_printf(&w->text, err, "event: %s\nid: %llu\ndata: ", event,
                       (unsigned long long)view->version);
    if (rc != TP_OK)
        return rc;
    tp_json_out_init(&o, &w->text);
    tp_json_out_object(&o, NULL);
    if (strcmp(event, "state") == 0)
        tp_trace_json(&o, view);
    else
        tp_trace_json_progress(&o, view);
    tp_json_out_close_object(&o);
    rc = tp_json_out_end(&o, err);
    return rc == TP_OK ? tp_buf_append_str(&w->text, "\n\n", err) : rc;
}

static int put_gone(struct watch *w, struct tp_err *err)
{
    w->is_over = true;
    w->text.len = w->sent = 0;
    return tp_buf_printf(&w->text, err, "event: gone\ndata: {\"id\":\"%s\"}\n\n",
                         w->id);
}

/* Put the next message for a version that is new into w->text. TP_EAGAIN: not yet. */
static int look(struct watch *w, struct tp_now now, struct tp_err *err)
{
    struct tp_trace_view *view = NULL;
    bool has_moved;
    int rc = tp_engine_trace_get(w->service->engine, id_of(w), now, &view, NULL, err);

    if (rc == TP_ENOTFOUND)
        return put_gone(w, err);
    if (rc != TP_OK)
        return rc;
    w->looked_ns = now.mono_ns;
    has_moved = strcmp(w->state, view->state) != 0;
    if (has_moved || now.mono_ns - w->told_ns >= PROGRESS_NS)
        rc = put_message(w, has_moved ? "state" : "progress", view, err);
    else
        rc = TP_EAGAIN;
    if (rc == TP_OK) {
        snprintf(w->state, sizeof(w->state), "%s", view->state);
        w->version = view->version;
        w->told_ns = now.mono_ns;
        w->is_over =
            tp_session_state_is_final(tp_session_state_find(tp_str_of(view->state)));
    }
    tp_trace_view_free(view);
    return rc;
}

/* Whether something changed that may have to be told now. */
static bool has_news(const struct watch *w, struct tp_now now)
{
    uint64_t version = 0;
    int rc =
        tp_engine_trace_version(w->service->engine, id_of(w), &version, NULL, NULL);

    if (rc == TP_ENOTFOUND)
        return true;
    if (rc != TP_OK || version == w->version)
        return false;
    return now.mono_ns - w->looked_ns >= LOOK_NS;
}

static bool watch_ready(void *arg, struct tp_now now)
{
    const struct watch *w = arg;

    return w->sent < w->text.len || w->is_over || w->is_stopped || has_news(w, now) ||
           now.mono_ns - w->told_ns >= KEEP_ALIVE_NS;
}

static int watch_read(void *arg, struct tp_now now, char *p, size_t n, size_t *got,
                      struct tp_err *err)
{
    struct watch *w = arg;
    int rc = TP_OK;

    if (w->sent == w->text.len && !w->is_over && !w->is_stopped) {
        w->sent = w->text.len = 0;
        if (has_news(w, now))
            rc = look(w, now, err);
        else if (now.mono_ns - w->told_ns >= KEEP_ALIVE_NS) {
            w->told_ns = now.mono_ns;
            rc = tp_buf_append_str(&w->text, ": keep-alive\n\n", err);
        } else {
            return TP_EAGAIN;
        }
    }
    if (rc != TP_OK)
        return rc;
    *got = w->text.len - w->sent < n ? w->text.len - w->sent : n;
    memcpy(p, w->text.data + w->sent, *got);
    w->sent += *got;
    return TP_OK;
}

static void watch_stop(void *arg)
{
    struct watch *w = arg;

    w->is_stopped = true;
}

static bool take_place(struct tp_call *call)
{
    if (call->service->watch_count == NULL ||
        call->service->watch_count(call->service->arg, 1))
        return true;
    tp_problem_limit_answer(call, TP_FAULT_LIMIT_EXCEEDED, "max-watchers",
                            call->service->limits->watchers,
                            "too many watches are open");
    tp_call_header(call, "Retry-After", "5");
    return false;
}

void tp_rest_watch_trace(struct tp_call *call)
{
    struct tp_trace_view *view = NULL;
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    struct watch *w = NULL;
    int rc = tp_engine_trace_get(call->service->engine, call->args[0], call->now, &view,
                                 &problem, &err);

    if (rc != TP_OK) {
        tp_problem_engine(call, rc, &problem, &err);
        return;
    }
    if (!take_place(call))
        goto out;
    w = calloc(1, sizeof(*w));
    if (w == NULL) {
        tp_problem_answer(call, TP_FAULT_OUT_OF_MEMORY, "no memory for a watch");
        if (call->service->watch_count != NULL)
            call->service->watch_count(call->service->arg, -1);
        goto out;
    }
    w->service = call->service;
    snprintf(w->id, sizeof(w->id), "%s", view->id);
    rc = put_message(w, "state", view, &err);
    if (rc != TP_OK) {
        tp_problem_engine(call, rc, NULL, &err);
        watch_close(w);
        goto out;
    }
    snprintf(w->state, sizeof(w->state), "%s", view->state);
    w->version = view->version;
    w->told_ns = w->looked_ns = call->now.mono_ns;
    w->is_over = !view->is_active;
    call->status = 200;
    call->content_type = "text/event-stream";
    call->reply = TP_REPLY_STREAM;
    call->stream = (struct tp_call_stream){.arg = w,
                                           .read = watch_read,
                                           .ready = watch_ready,
                                           .stop = watch_stop,
                                           .close = watch_close};

out:
    tp_trace_view_free(view);
}
