#include "support/api_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_pointer.h>
#include <json-c/json_tokener.h>
#include <cmocka.h>

#include "api/rest.h"
#include "base/err.h"
#include "core/limits.h"
#include "support/blob_mem.h"

int api_setup(void **state)
{
    struct api_rig *a = calloc(1, sizeof(*a));

    assert_non_null(a);
    rig_init(&a->rig);
    assert_int_equal(rig_start(&a->rig), TP_OK);
    a->service = (struct tp_service){.engine = a->rig.engine,
                                     .limits = a->rig.limits,
                                     .version = "1.2.3",
                                     .build = "test build",
                                     .started_wall_ns = (int64_t)RIG_START_NS};
    tp_call_init(&a->call, &a->service);
    *state = a;
    return 0;
}

int api_teardown(void **state)
{
    struct api_rig *a = *state;

    tp_call_fini(&a->call);
    json_object_put(a->json);
    tp_buf_fini(&a->body);
    tp_engine_free(a->rig.engine);
    a->rig.engine = NULL;
    assert_int_equal(blob_mem_open(a->rig.blobs), 0);
    rig_fini(&a->rig);
    free(a);
    return 0;
}

static enum tp_method method_of(const struct api_request *request)
{
    static const char *const names[TP_METHOD_OTHER] = {"GET", "HEAD", "POST", "DELETE",
                                                       "OPTIONS"};

    if (request->method == NULL)
        return request->body == NULL ? TP_METHOD_GET : TP_METHOD_POST;
    for (int i = 0; i < TP_METHOD_OTHER; i++)
        if (strcmp(request->method, names[i]) == 0)
            return (enum tp_method)i;
    return TP_METHOD_OTHER;
}

static size_t body_size(const struct api_request *request)
{
    if (request->body == NULL || request->body_bytes > 0)
        return request->body_bytes;
    return strlen(request->body);
}

static void start_call(struct api_rig *a, const struct api_request *request)
{
    struct tp_call *call = &a->call;

    tp_call_fini(call);
    tp_call_init(call, &a->service);
    call->now = a->rig.now;
    call->method = method_of(request);
    call->target = tp_str_of(request->target);
    call->peer = tp_str_of("test");
    call->has_body = body_size(request) > 0;
    call->has_content_length = request->body != NULL && !request->is_chunked;
    call->content_length = call->has_content_length ? body_size(request) : 0;
    for (size_t i = 0; i < API_HEADERS_MAX && request->headers[i].value != NULL; i++)
        call->headers[request->headers[i].name] = tp_str_of(request->headers[i].value);
}

static void feed_body(struct api_rig *a, const struct api_request *request)
{
    size_t size = body_size(request);
    size_t step = request->piece_bytes > 0 ? request->piece_bytes : size;

    for (size_t at = 0; at < size; at += step) {
        size_t n = size - at < step ? size - at : step;

        if (!tp_rest_feed(&a->call, request->body + at, n))
            return;
    }
}

/* Read until the end, a failure, or until there is nothing for now. */
static void read_stream(struct api_rig *a)
{
    struct tp_call_stream *s = &a->call.stream;
    char piece[1000]; /* no divisor of anything */
    struct tp_err err = {0};
    size_t got;

    for (;;) {
        got = 0;
        a->stream_code = s->read(s->arg, a->rig.now, piece, sizeof(piece), &got, &err);
        if (a->stream_code != TP_OK || got == 0)
            return;
        assert_int_equal(tp_buf_append(&a->body, piece, got, &err), TP_OK);
    }
}

static void take_answer(struct api_rig *a)
{
    struct tp_call *call = &a->call;
    struct tp_err err = {0};

    a->body.len = 0;
    a->stream_code = TP_OK;
    json_object_put(a->json);
    a->json = NULL;
    if (call->reply == TP_REPLY_WAIT)
        return;
    if (call->reply == TP_REPLY_STREAM && call->method != TP_METHOD_HEAD)
        read_stream(a);
    else if (call->fixed.ptr != NULL)
        tp_buf_append(&a->body, call->fixed.ptr, call->fixed.len, &err);
    else
        tp_buf_append(&a->body, call->out.data, call->out.len, &err);
    assert_int_equal(tp_buf_append(&a->body, "", 1, &err), TP_OK);
    a->body.len--;
    if (call->content_type != NULL && strstr(call->content_type, "json") != NULL)
        a->json = json_tokener_parse(a->body.data);
}

void api_call(struct api_rig *a, const struct api_request *request)
{
    start_call(a, request);
    tp_rest_begin(&a->call);
    feed_body(a, request);
    tp_rest_finish(&a->call);
    take_answer(a);
}

void api_resume(struct api_rig *a)
{
    a->call.now = a->rig.now;
    tp_rest_resume(&a->call);
    take_answer(a);
}

static int call_v(struct api_rig *a, const char *method, const char *body,
                  const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));

static int call_v(struct api_rig *a, const char *method, const char *body,
                  const char *format, va_list args)
{
    char target[2048];
    struct api_request request = {.method = method, .target = target, .body = body};
    int n = vsnprintf(target, sizeof(target), format, args);

    assert_true(n > 0 && (size_t)n < sizeof(target));
    api_call(a, &request);
    a->call.target = (struct tp_str){NULL, 0};
    return a->call.status;
}

int api_get(struct api_rig *a, const char *format, ...)
{
    va_list args;
    int status;

    va_start(args, format);
    status = call_v(a, "GET", NULL, format, args);
    va_end(args);
    return status;
}

int api_delete(struct api_rig *a, const char *format, ...)
{
    va_list args;
    int status;

    va_start(args, format);
    status = call_v(a, "DELETE", NULL, format, args);
    va_end(args);
    return status;
}

int api_post(struct api_rig *a, const char *body, const char *format, ...)
{
    va_list args;
    int status;

    va_start(args, format);
    status = call_v(a, "POST", body, format, args);
    va_end(args);
    return status;
}

const char *api_header(const struct api_rig *a, const char *name)
{
    for (size_t i = 0; i < a->call.n_out_headers; i++)
        if (strcmp(a->call.out_headers[i].name, name) == 0)
            return a->call.out_headers[i].value;
    return NULL;
}

struct json_object *api_at(const struct api_rig *a, const char *path)
{
    struct json_object *v = a->json;
    char pointer[256] = "/";
    size_t n = 1;

    for (; *path != '\0' && n + 1 < sizeof(pointer); path++)
        if (*path != ']')
            pointer[n++] = *path == '.' || *path == '[' ? '/' : *path;
    pointer[n] = '\0';
    return json_pointer_get(a->json, pointer, &v) == 0 ? v : NULL;
}

static struct json_object *typed(const struct api_rig *a, const char *path,
                                 enum json_type type)
{
    struct json_object *v = api_at(a, path);

    if (!json_object_is_type(v, type))
        fail_msg("'%s' is not there as it should be: %s", path, a->body.data);
    return v;
}

const char *api_str(const struct api_rig *a, const char *path)
{
    return json_object_get_string(typed(a, path, json_type_string));
}

int64_t api_int(const struct api_rig *a, const char *path)
{
    return json_object_get_int64(typed(a, path, json_type_int));
}

size_t api_len(const struct api_rig *a, const char *path)
{
    return json_object_array_length(typed(a, path, json_type_array));
}

void api_expect_json(const struct api_rig *a, int status)
{
    if (a->call.status != status)
        fail_msg("the status is %d, not %d: %s", a->call.status, status, a->body.data);
    assert_int_equal(a->call.fault, TP_FAULT_NONE);
    assert_string_equal(a->call.content_type, "application/json");
    assert_true(json_object_is_type(a->json, json_type_object));
}

void api_expect_problem(const struct api_rig *a, int status, const char *type)
{
    char urn[96];

    if (a->call.status != status)
        fail_msg("the status is %d, not %d: %s", a->call.status, status, a->body.data);
    assert_int_equal(a->call.reply, TP_REPLY_BODY);
    assert_int_not_equal(a->call.fault, TP_FAULT_NONE);
    assert_string_equal(a->call.content_type, "application/problem+json");
    snprintf(urn, sizeof(urn), "urn:traceplane:problem:%s", type);
    assert_string_equal(api_str(a, "type"), urn);
    assert_int_equal(api_int(a, "status"), status);
    assert_true(strlen(api_str(a, "title")) > 0);
    assert_true(strlen(api_str(a, "detail")) > 0);
}

void api_make_producer(struct api_rig *a, const char *job, const char *name, int rank,
                       char *id)
{
    char body[256];

    snprintf(body, sizeof(body),
             "{\"job\":\"%s\",\"name\":\"%s\",\"kind\":\"native\",\"rank\":%d}", job,
             name, rank);
    api_post(a, body, "/v1/producers");
    api_expect_json(a, 201);
    snprintf(id, TP_TRACE_ID_BYTES, "%s", api_str(a, "id"));
}

void api_make_trace(struct api_rig *a, const char *body, char *id)
{
    api_post(a, body, "/v1/traces");
    if (a->call.reply == TP_REPLY_WAIT) /* until producers have been told */
        api_resume(a);
    api_expect_json(a, 201);
    snprintf(id, TP_TRACE_ID_BYTES, "%s", api_str(a, "id"));
}

void api_make_complete(struct api_rig *a, char *id)
{
    char *events = rig_events("kernel", 2, 1);

    api_make_trace(a, "{\"job\":\"j\"}", id);
    rig_wait(&a->rig, a->rig.limits->trace_arming_ms * RIG_MS);
    api_post(a, events, "/v1/traces/%s/events?producer=p&rank=0", id);
    api_expect_json(a, 200);
    free(events);
    api_post(a, NULL, "/v1/traces/%s/stop", id);
    api_expect_json(a, 202);
    rig_work(&a->rig);
    api_get(a, "/v1/traces/%s", id);
    assert_string_equal(api_str(a, "state"), "complete");
}
