/*
 * The rules that hold for all routes, and the routes about the service itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/problem.h"
#include "api/rest.h"
#include "base/err.h"
#include "core/limits.h"
#include "engine/traces.h"
#include "support/api_rig.h"

static void test_a_wrong_method_is_405_with_those_that_are_there(void **state)
{
    static const struct {
        const char *method, *target, *allow;
    } cases[] = {
        {"DELETE", "/v1/types", "GET, HEAD, POST, OPTIONS"},
        {"POST", "/v1/types/kernel", "GET, HEAD, OPTIONS"},
        {"PUT", "/v1/traces/x", "GET, HEAD, DELETE, OPTIONS"},
        {"GET", "/v1/traces/x/stop", "POST, OPTIONS"},
        {"HEAD", "/v1/traces/x/events", "POST, OPTIONS"},
        {"POST", "/healthz", "GET, HEAD, OPTIONS"},
        {"PATCH", "/", "GET, HEAD, OPTIONS"},
    };
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("%s %s\n", cases[i].method, cases[i].target);
        api_call(a, &(struct api_request){.method = cases[i].method,
                                          .target = cases[i].target});
        api_expect_problem(a, 405, "method-not-allowed");
        assert_string_equal(api_header(a, "Allow"), cases[i].allow);
        api_call(a,
                 &(struct api_request){.method = "OPTIONS", .target = cases[i].target});
        assert_int_equal(a->call.status, 204);
        assert_int_equal(a->body.len, 0);
        assert_string_equal(api_header(a, "Allow"), cases[i].allow);
    }
}

static void test_a_path_that_is_not_there_is_404(void **state)
{
    static const char *const targets[] = {
        "/v2/types", "/v1/type",       "/v1/types/", "/v1/types/a/b", "/v1//types",
        "/V1/types", "/v1/traces/a/b", "/v1x",       "/../etc/passwd"};
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        print_message("%s\n", targets[i]);
        api_get(a, "%s", targets[i]);
        api_expect_problem(a, 404, "not-found");
    }
}

static void test_an_address_that_cannot_be_read_is_400(void **state)
{
    static const char *const targets[] = {"/v1/types/%",   "/v1/types/%4",
                                          "/v1/types/%zz", "/v1/types/a%00b",
                                          "/v1/types/%ff", "/v1/types?job=%0",
                                          "types",         "*"};
    struct api_rig *a = *state;
    char many[512] = "/v1/types?";

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        print_message("%s\n", targets[i]);
        api_get(a, "%s", targets[i]);
        api_expect_problem(a, 400, "invalid-request");
    }
    for (int i = 0; i <= TP_CALL_PARAMS_MAX; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many), "p%d=1&", i);
    api_get(a, "%s", many);
    api_expect_problem(a, 400, "invalid-request");
}

static void test_what_was_refused_before_its_route_is_identified(void **state)
{
    static const struct {
        enum tp_method method;
        const char *target, *operation, *subject;
    } cases[] = {
        {TP_METHOD_POST, "/v1/traces/t%31/stop?x=1", "stopTrace", "t1"},
        {TP_METHOD_DELETE, "/traces/a%20b", "deleteTrace", "a b"},
        {TP_METHOD_POST, "/types", "registerTypes", ""},
        {TP_METHOD_OTHER, "/types", "", ""},
        {TP_METHOD_POST, "/nowhere", "", ""},
        {TP_METHOD_POST, "/types/%zz", "", ""},
        {TP_METHOD_DELETE, "/traces/%zz", "deleteTrace", ""},
        {TP_METHOD_POST, "types", "", ""},
    };
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_call call = {0};

        print_message("%s\n", cases[i].target);
        tp_call_init(&call, &a->service);
        call.method = cases[i].method;
        call.target = tp_str_of(cases[i].target);
        tp_problem_answer(&call, TP_FAULT_UNTRUSTED_ORIGIN, "a page");
        tp_rest_identify(&call);
        tp_rest_identify(&call);
        assert_string_equal(call.route == NULL ? "" : call.route->operation,
                            cases[i].operation);
        assert_string_equal(call.subject, cases[i].subject);
        assert_int_equal(call.fault, TP_FAULT_UNTRUSTED_ORIGIN);
        assert_int_equal(call.status, 403);
        tp_call_fini(&call);
    }
}

static void test_every_path_works_with_and_without_the_version(void **state)
{
    static const char *const paths[] = {"/types", "/jobs",    "/traces", "/producers",
                                        "/",      "/healthz", "/version"};
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        print_message("%s\n", paths[i]);
        assert_int_equal(api_get(a, "%s", paths[i]), 200);
        assert_int_equal(api_get(a, "/v1%s", paths[i]), 200);
    }
}

static void test_an_address_with_its_host_is_the_path_on_that_host(void **state)
{
    static const struct {
        const char *target, *host;
        int status;
    } cases[] = {
        {"http://localhost:8750/v1/types?job=x", "localhost:8750", 200},
        {"HTTP://LocalHost:8750/types", "localhost:8750", 200},
        {"http://localhost:8750", "localhost:8750", 200},
        {"http://localhost:8750?x", "localhost:8750", 400}, /* no such parameter */
        {"http://localhost:8750x/types", "localhost:8750", 400},
        {"http://elsewhere/types", "localhost:8750", 400},
        {"http:///types", "", 400},
        {"https://localhost:8750/types", "localhost:8750", 400},
    };
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct api_request request = {.method = "GET", .target = cases[i].target};

        print_message("%s\n", cases[i].target);
        request.headers[0].name = TP_HEADER_HOST;
        request.headers[0].value = cases[i].host;
        api_call(a, &request);
        assert_int_equal(a->call.status, cases[i].status);
    }
}

static void test_an_escape_that_was_not_needed_changes_nothing(void **state)
{
    static const struct {
        const char *target;
        int status;
    } cases[] = {
        {"/%74ypes", 200},
        {"/v%31/types", 200},
        {"/t%79%70%65s", 200},
        {"/%2Ftypes", 404},
        {"/types%2F", 404},
        {"/typ%65", 404},
        {"/%7", 404},
        {"/%", 404},
        {"/types/%6bernel", 200},
        {"/types/k%65rne%6C?job=%61", 200},
        {"/types/a%2Fb", 404},
        {"/types/kernel%00", 400},
        {"/types/%zz", 400},
        {"/types/kerne%6", 400},
        {"/types/%ff", 400},
        {"/types/%256bernel", 404},
    };
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("%s\n", cases[i].target);
        assert_int_equal(api_get(a, "%s", cases[i].target), cases[i].status);
    }
}

static void test_an_empty_job_is_refused_and_names_itself(void **state)
{
    static const char *const posts[][2] = {
        {"/v1/traces", "{\"job\":\"\"}"},
        {"/v1/producers", "{\"name\":\"w\",\"job\":\"\"}"},
        {"/v1/types", "{\"plugin\":\"a\",\"type_name\":\"B\",\"job\":\"\"}"},
        {"/v1/types", "{\"types\":[{\"plugin\":\"a\",\"type_name\":\"B\","
                      "\"job\":\"\"}]}"},
        {"/v1/types", "{\"job\":\"\",\"types\":[]}"}};
    static const char *const gets[] = {"/types", "/types/kernel", "/traces",
                                       "/producers"};
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(posts) / sizeof(posts[0]); i++) {
        print_message("%s %s\n", posts[i][0], posts[i][1]);
        api_post(a, posts[i][1], "%s", posts[i][0]);
        api_expect_problem(a, 400, "invalid-field");
        assert_non_null(strstr(api_str(a, "field"), "job"));
    }
    for (size_t i = 0; i < sizeof(gets) / sizeof(gets[0]); i++) {
        print_message("%s\n", gets[i]);
        api_get(a, "%s?job=", gets[i]);
        api_expect_problem(a, 400, "invalid-parameter");
    }
}

static void test_a_body_where_none_belongs_is_400(void **state)
{
    struct api_rig *a = *state;

    api_call(
        a, &(struct api_request){.method = "GET", .target = "/v1/types", .body = "{}"});
    api_expect_problem(a, 400, "invalid-request");
}

static void test_a_control_body_is_json_by_any_of_its_content_types(void **state)
{
    static const char *const good[] = {"application/json",
                                       "APPLICATION/JSON;x=y",
                                       "application/x-www-form-urlencoded",
                                       "application/json; charset=UTF-8",
                                       "application/json;x=y ;charset=\"utf-8\"",
                                       "application/json;"};
    static const char *const bad[] = {"text/plain",
                                      "application/jsonx",
                                      "json",
                                      ";",
                                      "application/json; charset=latin1",
                                      "application/json;x=y;charset=utf-16",
                                      "application/json;charset="};
    struct api_rig *a = *state;
    struct api_request request = {.target = "/v1/producers",
                                  .body = "{\"name\":\"w\"}"};

    request.headers[0].name = TP_HEADER_CONTENT_TYPE;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        print_message("%s\n", good[i]);
        request.headers[0].value = good[i];
        api_call(a, &request);
        api_expect_json(a, i == 0 ? 201 : 200);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        print_message("%s\n", bad[i]);
        request.headers[0].value = bad[i];
        api_call(a, &request);
        api_expect_problem(a, 415, "unsupported-media-type");
    }
}

static void test_a_body_that_is_not_json_is_400_and_says_where(void **state)
{
    static const struct {
        const char *body;
        size_t n;
        const char *said;
    } cases[] = {
        {"{\"name\":\"\xff\"}", 0, "UTF-8 at byte 9"},
        {"{\"name\":\"a\0b\"}", 14, "control character"},
        {"{}\0", 3, "byte 2"},
        {"{\"name\":1,\"name\":2}", 0, "twice"},
        {"{\"rank\":NaN}", 0, "byte 8"},
        {"{\"rank\":1", 0, "byte 9"},
        {"[]", 0, "must be a JSON object"},
        {"null", 0, "must be a JSON object"},
        {"\"{}\"", 0, "must be a JSON object"},
    };
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("case %zu: %s\n", i, cases[i].said);
        api_call(a, &(struct api_request){.target = "/v1/producers",
                                          .body = cases[i].body,
                                          .body_bytes = cases[i].n});
        api_expect_problem(a, 400, "invalid-json");
        assert_non_null(strstr(api_str(a, "detail"), cases[i].said));
    }
}

static void test_a_body_may_be_as_deep_as_the_limit_and_not_deeper(void **state)
{
    struct api_rig *a = *state;
    char body[512];

    a->rig.limits->json_depth = 20;
    for (int extra = 0; extra < 2; extra++) {
        int n = 18 + extra; /* the object and its metadata are two levels */
        char arrays[64], ends[64];

        memset(arrays, '[', sizeof(arrays));
        memset(ends, ']', sizeof(ends));
        snprintf(body, sizeof(body), "{\"dry_run\":true,\"metadata\":{\"a\":%.*s%.*s}}",
                 n, arrays, n, ends);
        api_post(a, body, "/v1/traces");
        if (extra == 0) {
            api_expect_json(a, 200);
        } else {
            api_expect_problem(a, 400, "invalid-json");
            assert_non_null(strstr(api_str(a, "detail"), "deeper than 20"));
        }
    }
}

static void test_a_control_body_over_its_limit_is_413_with_the_limit(void **state)
{
    struct api_rig *a = *state;

    a->rig.limits->body_bytes = 10;
    for (int chunked = 0; chunked < 2; chunked++) {
        api_call(a, &(struct api_request){.target = "/v1/producers",
                                          .body = "{\"name\":\"w\"}",
                                          .piece_bytes = 3,
                                          .is_chunked = chunked == 1});
        api_expect_problem(a, 413, "body-too-large");
        assert_string_equal(api_str(a, "limit"), "max-body-bytes");
        assert_string_equal(api_str(a, "unit"), "bytes");
        assert_int_equal(api_int(a, "max"), 10);
        assert_true(a->call.must_close);
    }
}

static void test_a_refused_body_without_end_is_cut_off(void **state)
{
    struct api_rig *a = *state;
    struct tp_call *call = &a->call;
    char *piece = calloc(1, 1 << 20);
    int n = 0;

    assert_non_null(piece);
    api_get(a, "/v1/nothing");
    while (n < 1000 && tp_rest_feed(call, piece, 1 << 20))
        n++;
    assert_in_range(n, 1, 200);
    api_expect_problem(a, 404, "not-found");
    free(piece);
}

static void test_health_version_and_the_page_answer(void **state)
{
    struct api_rig *a = *state;

    api_get(a, "/healthz");
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "status"), "ok");
    api_get(a, "/version");
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "version"), "1.2.3");
    assert_string_equal(api_str(a, "build"), "test build");
    assert_string_equal(api_str(a, "api"), "v1");
    api_get(a, "/");
    assert_string_equal(a->call.content_type, "text/html; charset=utf-8");
    assert_non_null(strstr(a->body.data, "/openapi.yaml"));
    api_get(a, "/healthz?verbose=1");
    api_expect_problem(a, 400, "unknown-parameter");
}

static int not_ready(void *arg, struct tp_err *err)
{
    return tp_fail(err, TP_EAGAIN, "%s", (const char *)arg);
}

static void test_readiness_says_why_it_is_not_there(void **state)
{
    struct api_rig *a = *state;

    api_get(a, "/readyz");
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "status"), "ready");
    a->service.ready = not_ready;
    a->service.arg = "the service is stopping";
    api_get(a, "/readyz");
    api_expect_problem(a, 503, "not-ready");
    assert_string_equal(api_str(a, "detail"), "the service is stopping");
}

static int few_metrics(void *arg, struct tp_buf *out, struct tp_err *err)
{
    return arg == NULL ? tp_fail(err, TP_ENOMEM, "no memory")
                       : tp_buf_append_str(out, arg, err);
}

static void test_metrics_and_the_document_are_there_or_404(void **state)
{
    struct api_rig *a = *state;

    api_get(a, "/metrics");
    api_expect_problem(a, 404, "not-found");
    api_get(a, "/openapi.yaml");
    api_expect_problem(a, 404, "not-found");
    a->service.metrics = few_metrics;
    a->service.openapi = rig_str("openapi: 3.1.0\n");
    api_get(a, "/metrics");
    api_expect_problem(a, 503, "out-of-memory");
    a->service.arg = "a_total 1\n";
    api_get(a, "/metrics");
    assert_int_equal(a->call.status, 200);
    assert_string_equal(a->call.content_type,
                        "text/plain; version=0.0.4; charset=utf-8");
    assert_string_equal(a->body.data, "a_total 1\n");
    api_get(a, "/openapi.yaml");
    assert_string_equal(a->call.content_type, "application/yaml");
    assert_string_equal(a->body.data, "openapi: 3.1.0\n");
}

#define api_test(name) cmocka_unit_test_setup_teardown(name, api_setup, api_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(test_a_wrong_method_is_405_with_those_that_are_there),
        api_test(test_a_path_that_is_not_there_is_404),
        api_test(test_an_address_that_cannot_be_read_is_400),
        api_test(test_what_was_refused_before_its_route_is_identified),
        api_test(test_every_path_works_with_and_without_the_version),
        api_test(test_an_address_with_its_host_is_the_path_on_that_host),
        api_test(test_an_escape_that_was_not_needed_changes_nothing),
        api_test(test_an_empty_job_is_refused_and_names_itself),
        api_test(test_a_body_where_none_belongs_is_400),
        api_test(test_a_control_body_is_json_by_any_of_its_content_types),
        api_test(test_a_body_that_is_not_json_is_400_and_says_where),
        api_test(test_a_body_may_be_as_deep_as_the_limit_and_not_deeper),
        api_test(test_a_control_body_over_its_limit_is_413_with_the_limit),
        api_test(test_a_refused_body_without_end_is_cut_off),
        api_test(test_health_version_and_the_page_answer),
        api_test(test_readiness_says_why_it_is_not_there),
        api_test(test_metrics_and_the_document_are_there_or_404),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
