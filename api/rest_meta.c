/*
 * rest_meta.c - health, numbers, version, documents.
 */
#include "api/rest_meta.h"

#include <stdio.h>

#include "api/answer.h"
#include "api/problem.h"
#include "api/service.h"
#include "engine/engine.h"
#include "engine/kineto.h"

void tp_rest_health(struct tp_call *call)
{
    tp_answer_fixed(call, 200, "application/json", tp_str_of("{\"status\":\"ok\"}\n"));
}

/* What does not keep the service from its work, but somebody else from theirs. */
static void answer_ready(struct tp_call *call)
{
    struct tp_engine *e = call->service->engine;
    char sockets[TP_ERR_MESSAGE_BYTES], files[TP_ERR_MESSAGE_BYTES];
    char text[TP_ERR_MESSAGE_BYTES + 64];
    struct tp_json_out o;

    tp_engine_kineto_sockets(e, sockets, sizeof(sockets));
    tp_engine_kineto_files(e, files, sizeof(files));
    tp_answer_open(call, 200, &o);
    tp_json_out_text(&o, "status", "ready");
    if (*sockets != '\0' || *files != '\0')
        tp_json_out_array(&o, "degraded");
    if (*sockets != '\0') {
        snprintf(text, sizeof(text), "some Kineto processes are not heard: %s",
                 sockets);
        tp_json_out_text(&o, NULL, text);
    }
    if (*files != '\0') {
        snprintf(text, sizeof(text), "no Kineto process can be traced: %s", files);
        tp_json_out_text(&o, NULL, text);
    }
    if (*sockets != '\0' || *files != '\0')
        tp_json_out_close_array(&o);
    tp_answer_close(call, &o);
}

void tp_rest_readiness(struct tp_call *call)
{
    struct tp_err err = {0};
    int rc = TP_OK;

    if (call->service->ready != NULL)
        rc = call->service->ready(call->service->arg, &err);
    if (rc == TP_OK)
        rc = tp_engine_ready(call->service->engine, call->now, &err);
    if (rc == TP_OK)
        answer_ready(call);
    else
        tp_problem_answer(call, TP_FAULT_NOT_READY, "%s", err.message);
}

void tp_rest_metrics(struct tp_call *call)
{
    struct tp_err err = {0};
    int rc;

    if (call->service->metrics == NULL) {
        tp_problem_answer(call, TP_FAULT_NOT_FOUND, "this process keeps no metrics");
        return;
    }
    rc = call->service->metrics(call->service->arg, &call->out, &err);
    if (rc != TP_OK) {
        tp_problem_engine(call, rc, NULL, &err);
        return;
    }
    call->status = 200;
    call->content_type = "text/plain; version=0.0.4; charset=utf-8";
}

void tp_rest_version(struct tp_call *call)
{
    struct tp_json_out o;

    tp_answer_open(call, 200, &o);
    tp_json_out_text(&o, "name", "traceplaned");
    tp_json_out_text(&o, "version", call->service->version);
    tp_json_out_text(&o, "api", "v1");
    tp_json_out_text(&o, "build", call->service->build);
    tp_json_out_time(&o, "started_at", call->service->started_wall_ns);
    tp_answer_close(call, &o);
}

void tp_rest_openapi(struct tp_call *call)
{
    if (call->service->openapi.len == 0)
        tp_problem_answer(call, TP_FAULT_NOT_FOUND, "the document is not built in");
    else
        tp_answer_fixed(call, 200, "application/yaml", call->service->openapi);
}

static const char page[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<title>Traceplane</title></head><body><h1>Traceplane</h1>"
    "<p>The control plane for accelerator profiling. Everything here is a REST API: "
    "<a href=\"/openapi.yaml\">its description</a>.</p><ul>"
    "<li><a href=\"/v1/types\">activity types</a></li>"
    "<li><a href=\"/v1/traces\">traces</a></li>"
    "<li><a href=\"/v1/producers\">producers</a></li>"
    "<li><a href=\"/v1/jobs\">jobs</a></li>"
    "<li><a href=\"/metrics\">metrics</a></li>"
    "<li><a href=\"/healthz\">health</a>, <a href=\"/readyz\">readiness</a>, "
    "<a href=\"/version\">version</a></li>"
    "</ul></body></html>\n";

void tp_rest_index(struct tp_call *call)
{
    tp_answer_fixed(call, 200, "text/html; charset=utf-8",
                    (struct tp_str){page, sizeof(page) - 1});
}
