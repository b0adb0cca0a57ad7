/*
 * Events and files over the API, fed in pieces as a connection brings them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <cmocka.h>

#include "api/rest.h"
#include "base/err.h"
#include "core/limits.h"
#include "engine/traces.h"
#include "support/api_rig.h"

#define ONE_EVENT                                                                    \
    "[{\"ph\":\"X\",\"name\":\"a\",\"cat\":\"kernel\",\"ts\":1,\"dur\":1,\"pid\":1," \
    "\"tid\":1}]"

/* A trace that records. */
static void start_trace(struct api_rig *a, char *id)
{
    api_make_trace(a, "{\"job\":\"j\"}", id);
    rig_wait(&a->rig, a->rig.limits->trace_arming_ms * RIG_MS);
}

static void test_pieces_of_any_size_give_the_same_answer(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], target[128];
    char *body = rig_events("kernel", 20, 1);

    start_trace(a, id);
    for (size_t piece = 1; piece < 200; piece += 33) {
        print_message("pieces of %zu\n", piece);
        snprintf(target, sizeof(target), "/v1/traces/%s/events?producer=p%zu&rank=%zu",
                 id, piece, piece);
        api_call(a, &(struct api_request){.target = target,
                                          .body = body,
                                          .piece_bytes = piece,
                                          .is_chunked = true});
        api_expect_json(a, 200);
        assert_int_equal(api_int(a, "posted"), 20);
        assert_int_equal(api_int(a, "accepted"), 20);
        assert_int_equal(api_int(a, "dropped"), 0);
        assert_int_equal(api_int(a, "rank"), (int64_t)piece);
        assert_false(json_object_get_boolean(api_at(a, "duplicate")));
    }
    free(body);
}

static void test_the_same_seq_again_is_a_duplicate_that_adds_nothing(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    start_trace(a, id);
    for (int i = 0; i < 2; i++) {
        api_post(a, ONE_EVENT, "/v1/traces/%s/events?producer=p&rank=0&seq=4", id);
        api_expect_json(a, 200);
        assert_int_equal(json_object_get_boolean(api_at(a, "duplicate")), i);
    }
    api_get(a, "/v1/traces/%s", id);
    assert_int_equal(api_int(a, "counts.emitted"), 1);
}

static void test_a_file_sent_again_is_known_by_seq_sender_and_name(void **state)
{
    static const struct {
        const char *query;
        int stream;
        bool is_duplicate;
    } cases[] = {
        {"producer=p&rank=0&seq=4&name=x/a.json", 1, false},
        {"producer=p&rank=0&seq=4&name=x/a.json", 1, true},
        {"producer=p&seq=4&name=a.json", 1, true}, /* the rank was not said again */
        {"producer=p&rank=1&seq=4&name=a.json", 2, false},
        {"producer=q&rank=0&seq=4&name=a.json", 3, false},
        {"producer=p&rank=0&seq=5&name=a.json", 4, false},
        {"producer=p&rank=0&seq=4&name=b.json", 5, false},
        {"producer=p&rank=0&name=a.json", 6, false},
        {"producer=p&rank=0&name=a.json", 7, false},
        {"producer=p&rank=1&seq=4&name=a.json", 2, true},
    };
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    start_trace(a, id);
    api_post(a, ONE_EVENT, "/v1/traces/%s/events?producer=p&rank=0&seq=4", id);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        api_post(a, ONE_EVENT, "/v1/traces/%s/files?%s", id, cases[i].query);
        api_expect_json(a, 201);
        if (api_int(a, "stream") != cases[i].stream + 1 ||
            json_object_get_boolean(api_at(a, "duplicate")) != cases[i].is_duplicate)
            fail_msg("%s: stream %d", cases[i].query, (int)api_int(a, "stream"));
    }
    api_get(a, "/v1/traces/%s", id);
    assert_int_equal(api_int(a, "counts.emitted"), 8);
}

static void test_each_form_of_events_is_taken_by_its_content_type(void **state)
{
    static const struct {
        const char *type, *body;
    } cases[] = {
        {"application/json", ONE_EVENT},
        {"Application/JSON; charset=utf-8", "{\"traceEvents\":" ONE_EVENT "}"},
        {"application/x-www-form-urlencoded", ONE_EVENT},
        {"application/x-ndjson", "{\"ph\":\"X\",\"name\":\"a\",\"cat\":\"kernel\","
                                 "\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1}\n"},
    };
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], target[64];

    start_trace(a, id);
    snprintf(target, sizeof(target), "/v1/traces/%s/events", id);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("type %s\n", cases[i].type);
        api_call(a, &(struct api_request){.target = target,
                                          .body = cases[i].body,
                                          .headers = {{TP_HEADER_CONTENT_TYPE,
                                                       cases[i].type}}});
        api_expect_json(a, 200);
        assert_int_equal(api_int(a, "accepted"), 1);
    }
}

static void test_other_content_types_are_415_with_those_that_are_taken(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], target[64];

    start_trace(a, id);
    for (int i = 0; i < 2; i++) {
        snprintf(target, sizeof(target), "/v1/traces/%s/%s", id,
                 i == 0 ? "events" : "files");
        api_call(a, &(struct api_request){.target = target,
                                          .body = ONE_EVENT,
                                          .headers = {
                                              {TP_HEADER_CONTENT_TYPE, "image/png"}}});
        api_expect_problem(a, 415, "unsupported-media-type");
        assert_non_null(
            strstr(api_header(a, "Accept-Post"), "application/x-perfetto-trace"));
        api_call(a, &(struct api_request){.target = target,
                                          .body = ONE_EVENT,
                                          .headers = {
                                              {TP_HEADER_CONTENT_ENCODING, "br"}}});
        api_expect_problem(a, 415, "unsupported-encoding");
        assert_string_equal(api_header(a, "Accept-Encoding"), "gzip, identity");
    }
}

static size_t gzipped(const char *text, char *out, size_t n)
{
    z_stream z = {0};

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    z.next_in = (Bytef *)text;
    z.avail_in = (uInt)strlen(text);
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)n;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

static void test_gzipped_events_and_files_are_inflated_on_the_way(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], target[96], packed[512];
    size_t n = gzipped(ONE_EVENT, packed, sizeof(packed));
    struct api_request request = {
        .target = target, .body = packed, .body_bytes = n, .piece_bytes = 5};

    start_trace(a, id);
    snprintf(target, sizeof(target), "/v1/traces/%s/files?name=t.json.gz", id);
    api_call(a, &request); /* a file tells by its first bytes */
    api_expect_json(a, 201);
    assert_int_equal(api_int(a, "accepted"), 1);
    assert_false(json_object_get_boolean(api_at(a, "truncated")));
    snprintf(target, sizeof(target), "/v1/traces/%s/events", id);
    request.headers[0].name = TP_HEADER_CONTENT_ENCODING;
    request.headers[0].value = "gzip";
    api_call(a, &request);
    api_expect_json(a, 200);
    assert_int_equal(api_int(a, "accepted"), 1);
    request.body_bytes = n - 4;
    api_call(a, &request);
    api_expect_problem(a, 400, "damaged-body");
}

static void test_a_damaged_batch_is_refused_whole_with_the_offset(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    start_trace(a, id);
    api_post(a, "[{\"ph\":\"X\",", "/v1/traces/%s/events", id);
    api_expect_problem(a, 400, "damaged-body");
    assert_in_range(api_int(a, "offset"), 1, 12);
    api_post(a, "not json at all", "/v1/traces/%s/events", id);
    api_expect_problem(a, 400, "damaged-body");
    api_get(a, "/v1/traces/%s", id);
    assert_int_equal(api_int(a, "counts.stored"), 0);
}

static void test_what_can_be_read_of_a_damaged_file_is_kept(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];
    char *body = rig_events("kernel", 3, 1);

    start_trace(a, id);
    body[strlen(body) - 10] = '\0';
    api_post(a, body, "/v1/traces/%s/files?rank=0&name=t.json", id);
    free(body);
    api_expect_json(a, 201);
    assert_int_equal(api_int(a, "accepted"), 2);
    assert_true(json_object_get_boolean(api_at(a, "truncated")));
    assert_true(strlen(api_str(a, "damage")) > 0);
}

static void test_wrong_parameters_are_named(void **state)
{
    static const struct {
        const char *query, *type, *parameter;
    } cases[] = {
        {"rank=-1", "invalid-parameter", "rank"},
        {"rank=2147483648", "invalid-parameter", "rank"},
        {"rank=0&rank=1", "invalid-parameter", "rank"},
        {"seq=x", "invalid-parameter", "seq"},
        {"seq=9223372036854775808", "invalid-parameter", "seq"},
        {"pid=1.5", "invalid-parameter", "pid"},
        {"world_size=0", "invalid-parameter", "world_size"},
        {"producer=a%0ab", "invalid-parameter", "producer"},
        {"prodcuer=a", "unknown-parameter", "prodcuer"},
        {"name=a", "unknown-parameter", "name"},
    };
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    start_trace(a, id);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("query %s\n", cases[i].query);
        api_post(a, ONE_EVENT, "/v1/traces/%s/events?%s", id, cases[i].query);
        api_expect_problem(a, 400, cases[i].type);
        assert_string_equal(api_str(a, "parameter"), cases[i].parameter);
    }
}

static void test_a_body_over_its_limit_is_413_with_the_limit(void **state)
{
    static const struct {
        const char *suffix, *limit;
    } cases[] = {{"events", "max-events-body-bytes"}, {"files", "max-file-bytes"}};
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], target[64];

    start_trace(a, id);
    a->rig.limits->events_body_bytes = a->rig.limits->file_bytes = 20;
    for (size_t i = 0; i < 4; i++) {
        snprintf(target, sizeof(target), "/v1/traces/%s/%s", id, cases[i / 2].suffix);
        api_call(a, &(struct api_request){.target = target,
                                          .body = ONE_EVENT,
                                          .piece_bytes = 7,
                                          .is_chunked = i % 2 == 1});
        api_expect_problem(a, 413, "body-too-large");
        assert_string_equal(api_str(a, "limit"), cases[i / 2].limit);
        assert_string_equal(api_str(a, "unit"), "bytes");
        assert_int_equal(api_int(a, "max"), 20);
        assert_true(a->call.must_close);
    }
}

static void test_a_deleted_or_ended_trace_takes_no_events(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_complete(a, id);
    api_post(a, ONE_EVENT, "/v1/traces/%s/events?rank=1", id);
    api_expect_problem(a, 409, "illegal-state");
    assert_string_equal(api_str(a, "state"), "complete");
    api_delete(a, "/v1/traces/%s", id);
    api_post(a, ONE_EVENT, "/v1/traces/%s/files", id);
    api_expect_problem(a, 404, "not-found");
}

static void test_a_client_that_goes_away_leaves_nothing(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], target[64];

    start_trace(a, id);
    snprintf(target, sizeof(target), "/v1/traces/%s/events", id);
    tp_call_fini(&a->call);
    tp_call_init(&a->call, &a->service);
    a->call.now = a->rig.now;
    a->call.method = TP_METHOD_POST;
    a->call.target = rig_str(target);
    a->call.has_body = true;
    tp_rest_begin(&a->call);
    assert_false(a->call.is_refused);
    assert_true(tp_rest_feed(&a->call, ONE_EVENT, 20));
    tp_call_fini(&a->call);
    tp_call_init(&a->call, &a->service);
    api_get(a, "/v1/traces/%s", id);
    assert_int_equal(api_int(a, "counts.emitted"), 0);
}

#define api_test(name) cmocka_unit_test_setup_teardown(name, api_setup, api_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(test_pieces_of_any_size_give_the_same_answer),
        api_test(test_the_same_seq_again_is_a_duplicate_that_adds_nothing),
        api_test(test_a_file_sent_again_is_known_by_seq_sender_and_name),
        api_test(test_each_form_of_events_is_taken_by_its_content_type),
        api_test(test_other_content_types_are_415_with_those_that_are_taken),
        api_test(test_gzipped_events_and_files_are_inflated_on_the_way),
        api_test(test_a_damaged_batch_is_refused_whole_with_the_offset),
        api_test(test_what_can_be_read_of_a_damaged_file_is_kept),
        api_test(test_wrong_parameters_are_named),
        api_test(test_a_body_over_its_limit_is_413_with_the_limit),
        api_test(test_a_deleted_or_ended_trace_takes_no_events),
        api_test(test_a_client_that_goes_away_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
