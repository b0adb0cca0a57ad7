/*
 * Downloads and summaries over the API, read to their end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/limits.h"
#include "engine/traces.h"
#include "support/api_rig.h"

/* Download with one header; name TP_HEADERS: none. */
static void download(struct api_rig *a, const char *id, const char *query,
                     enum tp_header name, const char *value)
{
    char target[256];
    struct api_request request = {.target = target};

    snprintf(target, sizeof(target), "/v1/traces/%s/download%s", id, query);
    if (name != TP_HEADERS) {
        request.headers[0].name = name;
        request.headers[0].value = value;
    }
    api_call(a, &request);
}

static void test_a_finished_trace_comes_whole_with_its_headers(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_complete(a, id);
    download(a, id, "", TP_HEADERS, NULL);
    assert_int_equal(a->call.status, 200);
    assert_int_equal(a->call.reply, TP_REPLY_STREAM);
    assert_int_equal(a->stream_code, TP_OK);
    assert_string_equal(a->call.content_type, "application/json");
    assert_string_equal(api_str(a, "traceplane.trace"), id);
    assert_true(api_len(a, "traceEvents") >= 2);
    assert_string_equal(api_header(a, "Accept-Ranges"), "bytes");
    assert_string_equal(api_header(a, "Vary"), "Accept-Encoding");
    assert_string_equal(api_header(a, "Cache-Control"), "private, no-cache");
    assert_int_equal(api_header(a, "ETag")[0], '"');
    assert_non_null(strstr(api_header(a, "Content-Disposition"), ".json\""));
    assert_null(api_header(a, "Content-Encoding"));
}

static void test_a_head_tells_the_same_and_reads_nothing(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], target[96], etag[96];

    api_make_complete(a, id);
    download(a, id, "", TP_HEADERS, NULL);
    snprintf(etag, sizeof(etag), "%s", api_header(a, "ETag"));
    snprintf(target, sizeof(target), "/v1/traces/%s/download", id);
    api_call(a, &(struct api_request){.method = "HEAD", .target = target});
    assert_int_equal(a->call.status, 200);
    assert_int_equal(a->body.len, 0);
    assert_string_equal(api_header(a, "ETag"), etag);
}

static void test_each_format_and_coding_has_its_type_and_name(void **state)
{
    static const struct {
        const char *query, *accept, *type, *ending, *encoding;
        unsigned char first;
    } cases[] = {
        {"?format=chrome", NULL, "application/json", ".json\"", NULL, '{'},
        {"?format=perfetto", NULL, "application/x-perfetto-trace", "\"", NULL, 0x0a},
        {"?compress=gzip", NULL, "application/gzip", ".json.gz\"", NULL, 0x1f},
        {"?compress=zstd", NULL, "application/zstd", ".json.zst\"", NULL, 0x28},
        {"?compress=none", "gzip", "application/json", ".json\"", NULL, '{'},
        {"", "gzip", "application/json", ".json\"", "gzip", 0x1f},
        {"", "zstd, gzip;q=0.5", "application/json", ".json\"", "zstd", 0x28},
        {"", "identity", "application/json", ".json\"", NULL, '{'},
    };
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_complete(a, id);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *encoding;

        print_message("'%s' accepting %s\n", cases[i].query,
                      cases[i].accept == NULL ? "-" : cases[i].accept);
        download(a, id, cases[i].query,
                 cases[i].accept == NULL ? TP_HEADERS : TP_HEADER_ACCEPT_ENCODING,
                 cases[i].accept);
        assert_int_equal(a->call.status, 200);
        assert_int_equal(a->stream_code, TP_OK);
        assert_string_equal(a->call.content_type, cases[i].type);
        assert_non_null(strstr(api_header(a, "Content-Disposition"), cases[i].ending));
        assert_int_equal((unsigned char)a->body.data[0], cases[i].first);
        encoding = api_header(a, "Content-Encoding");
        assert_string_equal(encoding == NULL ? "none" : encoding,
                            cases[i].encoding == NULL ? "none" : cases[i].encoding);
    }
}

static void test_a_forbidden_coding_is_406(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_complete(a, id);
    download(a, id, "", TP_HEADER_ACCEPT_ENCODING, "*;q=0");
    api_expect_problem(a, 406, "not-acceptable");
}

static void test_the_etag_at_hand_is_304_without_a_body(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], etag[96], list[256];

    api_make_complete(a, id);
    download(a, id, "", TP_HEADERS, NULL);
    snprintf(etag, sizeof(etag), "%s", api_header(a, "ETag"));
    snprintf(list, sizeof(list), "\"other\", W/%s", etag);
    download(a, id, "", TP_HEADER_IF_NONE_MATCH, list);
    assert_int_equal(a->call.status, 304);
    assert_int_equal(a->call.reply, TP_REPLY_BODY);
    assert_null(a->call.content_type);
    assert_int_equal(a->body.len, 0);
    assert_string_equal(api_header(a, "ETag"), etag);
    assert_string_equal(api_header(a, "Vary"), "Accept-Encoding");
    download(a, id, "", TP_HEADER_IF_NONE_MATCH, "\"other\"");
    assert_int_equal(a->call.status, 200);
    download(a, id, "?format=perfetto", TP_HEADER_IF_NONE_MATCH, etag);
    assert_int_equal(a->call.status, 200);
}

/* Where size_get finds what size_put left. */
struct sizes {
    char etag[128];
    uint64_t size_bytes;
    unsigned puts;
};

static void put_size(void *arg, const char *etag, uint64_t size_bytes)
{
    struct sizes *s = arg;

    snprintf(s->etag, sizeof(s->etag), "%s", etag);
    s->size_bytes = size_bytes;
    s->puts++;
}

static bool get_size(void *arg, const char *etag, uint64_t *size_bytes)
{
    struct sizes *s = arg;

    if (strcmp(s->etag, etag) != 0)
        return false;
    *size_bytes = s->size_bytes;
    return true;
}

static void test_each_range_is_that_part_of_the_whole(void **state)
{
    static const struct {
        const char *range;
        long first, last; /* negative: from the end */
    } cases[] = {
        {"bytes=0-0", 0, 0},         {"bytes=1-9", 1, 9},
        {"bytes=-1", -1, -1},        {"bytes=-10", -10, -1},
        {"bytes=5-", 5, -1},         {"bytes=100-999999999", 100, -1},
        {"bytes=-999999999", 0, -1},
    };
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], expected[96];
    struct tp_buf whole;

    api_make_complete(a, id);
    download(a, id, "", TP_HEADERS, NULL);
    whole = a->body;
    a->body = (struct tp_buf){0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        long size = (long)whole.len;
        long first = cases[i].first < 0 ? size + cases[i].first : cases[i].first;
        long last = cases[i].last < 0 ? size + cases[i].last : cases[i].last;

        print_message("range %s\n", cases[i].range);
        download(a, id, "", TP_HEADER_RANGE, cases[i].range);
        assert_int_equal(a->call.status, 206);
        snprintf(expected, sizeof(expected), "bytes %ld-%ld/%ld", first, last, size);
        assert_string_equal(api_header(a, "Content-Range"), expected);
        assert_true(a->call.stream.has_size);
        assert_int_equal(a->call.stream.size_bytes, a->body.len);
        assert_int_equal(a->body.len, last - first + 1);
        assert_memory_equal(a->body.data, whole.data + first, a->body.len);
    }
    tp_buf_fini(&whole);
}

static void test_a_range_outside_is_416_with_the_size(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], expected[64];

    api_make_complete(a, id);
    download(a, id, "", TP_HEADERS, NULL);
    snprintf(expected, sizeof(expected), "bytes */%zu", a->body.len);
    download(a, id, "", TP_HEADER_RANGE, "bytes=999999999-");
    api_expect_problem(a, 416, "range-not-satisfiable");
    assert_string_equal(api_header(a, "Content-Range"), expected);
}

static void test_ranges_that_do_not_apply_give_the_whole(void **state)
{
    static const char *const ranges[] = {"bytes=0-1,3-4", "lines=1-2", "bytes=9-1"};
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], target[96];

    api_make_complete(a, id);
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        print_message("range %s\n", ranges[i]);
        download(a, id, "", TP_HEADER_RANGE, ranges[i]);
        assert_int_equal(a->call.status, 200);
        assert_non_null(a->json);
    }
    snprintf(target, sizeof(target), "/v1/traces/%s/download", id);
    api_call(a, &(struct api_request){.target = target,
                                      .headers = {{TP_HEADER_RANGE, "bytes=0-1"},
                                                  {TP_HEADER_IF_RANGE, "\"old\""}}});
    assert_int_equal(a->call.status, 200);
    assert_non_null(a->json);
}

static void test_the_size_of_a_whole_file_is_learned_and_told_next(void **state)
{
    struct api_rig *a = *state;
    struct sizes sizes = {0};
    char id[TP_TRACE_ID_BYTES];

    a->service.size_put = put_size;
    a->service.size_get = get_size;
    a->service.arg = &sizes;
    api_make_complete(a, id);
    download(a, id, "", TP_HEADERS, NULL);
    assert_false(a->call.stream.has_size);
    assert_int_equal(sizes.puts, 1);
    assert_int_equal(sizes.size_bytes, a->body.len);
    assert_string_equal(sizes.etag, api_header(a, "ETag"));
    download(a, id, "", TP_HEADERS, NULL);
    assert_true(a->call.stream.has_size);
    assert_int_equal(a->body.len, sizes.size_bytes);
    assert_int_equal(sizes.puts, 1);
}

static void test_an_active_trace_has_no_etag_and_takes_no_range(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];
    char *events = rig_events("kernel", 3, 1);

    api_make_trace(a, "{\"job\":\"j\"}", id);
    rig_wait(&a->rig, a->rig.limits->trace_arming_ms * RIG_MS);
    api_post(a, events, "/v1/traces/%s/events?rank=0", id);
    free(events);
    download(a, id, "", TP_HEADER_RANGE, "bytes=0-1");
    assert_int_equal(a->call.status, 200);
    assert_int_equal(a->stream_code, TP_OK);
    assert_null(api_header(a, "ETag"));
    assert_null(api_header(a, "Accept-Ranges"));
    assert_true(api_len(a, "traceEvents") >= 3);
}

static void test_a_download_goes_on_after_its_trace_was_deleted(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];
    struct tp_call sending;
    struct tp_err err = {0};
    char first;
    size_t got;

    api_make_complete(a, id);
    download(a, id, "?compress=none", TP_HEADERS, NULL);
    sending = a->call;
    tp_call_init(&a->call, &a->service);
    assert_int_equal(api_delete(a, "/v1/traces/%s", id), 204);
    assert_int_equal(sending.stream.read(sending.stream.arg, a->rig.now, &first, 1,
                                         &got, &err),
                     TP_OK);
    tp_call_fini(&sending);
    download(a, id, "", TP_HEADERS, NULL);
    api_expect_problem(a, 404, "not-found");
}

static void test_lists_choose_ranks_and_types(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];
    size_t all;

    api_make_complete(a, id);
    download(a, id, "", TP_HEADERS, NULL);
    all = api_len(a, "traceEvents");
    download(a, id, "?ranks=0&types=kernel,cpu_op", TP_HEADERS, NULL);
    assert_int_equal(a->call.status, 200);
    assert_int_equal(api_len(a, "traceEvents"), all);
    download(a, id, "?types=cpu_op&types=gpu_memcpy", TP_HEADERS, NULL);
    assert_int_equal(a->call.status, 200);
    assert_true(api_len(a, "traceEvents") < all);
    download(a, id, "?ranks=0,5", TP_HEADERS, NULL);
    api_expect_problem(a, 400, "invalid-field");
    assert_string_equal(api_str(a, "field"), "ranks");
}

static void test_wrong_parameters_are_named(void **state)
{
    static const struct {
        const char *query, *type, *parameter;
    } cases[] = {
        {"?format=csv", "invalid-parameter", "format"},
        {"?compress=br", "invalid-parameter", "compress"},
        {"?ranks=x", "invalid-parameter", "ranks"},
        {"?ranks=1,,2", "invalid-parameter", "ranks"},
        {"?ranks=2147483648", "invalid-parameter", "ranks"},
        {"?ranks=1,2,3", "invalid-parameter", "ranks"},
        {"?from=yesterday", "invalid-parameter", "from"},
        {"?to=2026-13-01T00:00:00Z", "invalid-parameter", "to"},
        {"?fromat=chrome", "unknown-parameter", "fromat"},
    };
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_complete(a, id);
    a->rig.limits->select_entries = 2;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("query %s\n", cases[i].query);
        download(a, id, cases[i].query, TP_HEADERS, NULL);
        api_expect_problem(a, 400, cases[i].type);
        assert_string_equal(api_str(a, "parameter"), cases[i].parameter);
    }
}

static void test_a_summary_is_json_of_that_trace(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_complete(a, id);
    api_get(a, "/v1/traces/%s/summary", id);
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "trace_id"), id);
    assert_true(json_object_object_length(a->json) > 1);
    assert_int_equal(a->body.data[a->body.len - 1], '\n');
}

#define api_test(name) cmocka_unit_test_setup_teardown(name, api_setup, api_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(test_a_finished_trace_comes_whole_with_its_headers),
        api_test(test_a_head_tells_the_same_and_reads_nothing),
        api_test(test_each_format_and_coding_has_its_type_and_name),
        api_test(test_a_forbidden_coding_is_406),
        api_test(test_the_etag_at_hand_is_304_without_a_body),
        api_test(test_each_range_is_that_part_of_the_whole),
        api_test(test_a_range_outside_is_416_with_the_size),
        api_test(test_ranges_that_do_not_apply_give_the_whole),
        api_test(test_the_size_of_a_whole_file_is_learned_and_told_next),
        api_test(test_an_active_trace_has_no_etag_and_takes_no_range),
        api_test(test_a_download_goes_on_after_its_trace_was_deleted),
        api_test(test_lists_choose_ranks_and_types),
        api_test(test_wrong_parameters_are_named),
        api_test(test_a_summary_is_json_of_that_trace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
