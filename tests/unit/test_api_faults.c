/*
 * Each allocation of whole calls fails in turn: the answer is the good one or a problem
 * of ours that has a status, and the same call works when there is memory again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/rest.h"
#include "base/err.h"
#include "core/limits.h"
#include "engine/traces.h"
#include "support/api_rig.h"
#include "support/fault.h"

/* One call up to its answer, with allocation n failing; a stream is read by hand into a
 * buffer that is there already. Returns whether the failure was delivered. */
static bool call_with_fault(struct api_rig *a, const struct api_request *request, int n,
                            int *stream_code)
{
    static char sink[1 << 16];
    struct tp_call *call = &a->call;
    struct tp_err err = {0};
    size_t got = 0;
    size_t size = request->body == NULL ? 0 : strlen(request->body);

    tp_call_fini(call);
    tp_call_init(call, &a->service);
    call->now = a->rig.now;
    call->method = size > 0 || (request->method != NULL && request->method[0] == 'P')
                       ? TP_METHOD_POST
                       : TP_METHOD_GET;
    call->target = tp_str_of(request->target);
    call->has_body = size > 0;
    *stream_code = TP_OK;
    fault_arm(n);
    tp_rest_begin(call);
    if (size > 0 && tp_rest_feed(call, request->body, size / 2))
        tp_rest_feed(call, request->body + size / 2, size - size / 2);
    tp_rest_finish(call);
    if (call->reply == TP_REPLY_WAIT)
        tp_rest_resume(call);
    while (call->reply == TP_REPLY_STREAM && *stream_code == TP_OK) {
        *stream_code = call->stream.read(call->stream.arg, a->rig.now, sink,
                                         sizeof(sink), &got, &err);
        if (got == 0)
            break;
        got = 0;
    }
    return fault_disarm();
}

static void expect_an_answer(const struct api_rig *a, int stream_code, const char *what,
                             int n)
{
    const struct tp_call *call = &a->call;

    if (call->fault == TP_FAULT_NONE && call->status >= 200 && call->status < 300 &&
        (stream_code == TP_OK || stream_code == TP_ENOMEM || stream_code == TP_EAGAIN))
        return;
    if (call->fault == TP_FAULT_OUT_OF_MEMORY && call->status == 503)
        return;
    fail_msg("%s, allocation %d: status %d, stream %d: %.*s", what, n, call->status,
             stream_code, (int)call->out.len, call->out.data);
}

static void run_out_of_memory(struct api_rig *a, const struct api_request *request,
                              int good)
{
    int n = 0;
    int code;

    while (call_with_fault(a, request, n, &code)) {
        expect_an_answer(a, code, request->target, n);
        n++;
    }
    print_message("%s: %d allocations\n", request->target, n);
    assert_true(n > 0);
    if (a->call.status != good && a->call.status != 200)
        fail_msg("%s is answered by %d at last", request->target, a->call.status);
}

static void test_calls_that_read_survive_each_allocation_failure(void **state)
{
    static const char *const formats[] = {
        "/v1/types",
        "/v1/types/kernel?job=j",
        "/v1/jobs",
        "/v1/traces",
        "/v1/traces/%s",
        "/v1/traces/%s/watch",
        "/v1/traces/%s/summary",
        "/v1/traces/%s/download?ranks=0&types=kernel",
        "/v1/traces/%s/download?format=perfetto&compress=gzip",
        "/v1/producers",
        "/version",
    };
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], producer[TP_TRACE_ID_BYTES], target[128];

    api_make_producer(a, "j", "w", 0, producer);
    assert_int_equal(api_delete(a, "/v1/producers/%s", producer), 204);
    api_make_complete(a, id);
    api_make_producer(a, "j", "w", 0, producer);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        const char *at = strstr(formats[i], "%s");

        if (at == NULL)
            snprintf(target, sizeof(target), "%s", formats[i]);
        else
            snprintf(target, sizeof(target), "%.*s%s%s", (int)(at - formats[i]),
                     formats[i], id, at + 2);
        run_out_of_memory(a, &(struct api_request){.target = target}, 200);
    }
}

static void test_calls_that_change_survive_each_allocation_failure(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], producer[TP_TRACE_ID_BYTES], target[128];
    char *events = rig_events("kernel", 5, 1);

    run_out_of_memory(
        a,
        &(struct api_request){.target = "/v1/types",
                              .body = "{\"job\":\"j\",\"types\":[{\"plugin\":\"p\","
                                      "\"type_name\":\"A\",\"description\":\"d\"},"
                                      "{\"plugin\":\"p\",\"type_name\":\"B\"}]}"},
        201);
    run_out_of_memory(
        a,
        &(struct api_request){.target = "/v1/producers",
                              .body = "{\"job\":\"j\",\"name\":\"w\",\"rank\":0,"
                                      "\"capabilities\":{\"a\":[1,{\"b\":\"c\"}]}}"},
        201);
    api_get(a, "/v1/producers");
    snprintf(producer, sizeof(producer), "%s", api_str(a, "items[0].id"));
    run_out_of_memory(
        a,
        &(struct api_request){
            .target = "/v1/traces",
            .body = "{\"dry_run\":true,\"job\":\"j\",\"filter\":{\"include\":"
                    "[\"kernel\"],\"names\":{\"include\":[\"a*\"]}},\"select\":{"
                    "\"ranks\":[0]},\"metadata\":{\"a\":\"b\"},\"label\":\"l\"}"},
        200);
    snprintf(target, sizeof(target), "/v1/producers/%s/sync", producer);
    run_out_of_memory(a,
                      &(struct api_request){.target = target,
                                            .body = "{\"step\":3,\"wait_ms\":5}"},
                      200);
    api_make_trace(a, "{\"job\":\"k\"}", id);
    rig_wait(&a->rig, a->rig.limits->trace_arming_ms * RIG_MS);
    snprintf(target, sizeof(target), "/v1/traces/%s/events?producer=p&rank=0", id);
    run_out_of_memory(a, &(struct api_request){.target = target, .body = events}, 200);
    snprintf(target, sizeof(target), "/v1/traces/%s/stop", id);
    run_out_of_memory(a, &(struct api_request){.method = "POST", .target = target},
                      202);
    rig_work(&a->rig);
    api_get(a, "/v1/traces/%s", id);
    assert_string_equal(api_str(a, "state"), "complete");
    free(events);
}

#define api_test(name) cmocka_unit_test_setup_teardown(name, api_setup, api_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(test_calls_that_read_survive_each_allocation_failure),
        api_test(test_calls_that_change_survive_each_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
