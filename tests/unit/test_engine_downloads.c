/*
 * What leaves: downloads of traces that run, ended, are empty, are deleted meanwhile.
 */
#include "support/engine_test.h"

#include <stdio.h>

#include "base/err.h"
#include "support/fault.h"
#include "trace/download.h"
#include "trace/summary.h"

/* A finished trace of two ranks. */
static void finished(struct rig *r, char *id)
{
    char *body = rig_events("kernel", 50, 1);

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_post(r, id, "", 1, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    free(body);
}

static struct tp_engine_download *open_download(
    struct rig *r, const char *id, const struct tp_engine_download_request *request)
{
    struct tp_engine_download *d;

    assert_int_equal(tp_engine_download_open(r->engine, rig_str(id), request, r->now,
                                             &d, &r->problem, &r->err),
                     TP_OK);
    return d;
}

/* The ETag of a request; "" while there is none. */
static void etag_of(struct rig *r, const char *id,
                    const struct tp_engine_download_request *request, char *out,
                    size_t size)
{
    struct tp_engine_download *d = open_download(r, id, request);

    snprintf(out, size, "%s", tp_engine_download_info(d)->etag);
    tp_engine_download_close(d);
}

static void test_an_etag_is_of_the_bytes(void **state)
{
    struct rig *r = *state;
    const uint32_t rank = 1;
    struct tp_str type = rig_str("kernel");
    struct tp_engine_download_request requests[] = {
        {.n_types = 0},
        {.format = rig_str("perfetto")},
        {.compress = rig_str("gzip")},
        {.ranks = &rank, .n_ranks = 1},
        {.types = &type, .n_types = 1},
        {.has_from = true, .from_ns = 5},
    };
    char tags[6][80], again[80], id[TP_TRACE_ID_BYTES];

    finished(r, id);
    for (int i = 0; i < 6; i++) {
        etag_of(r, id, &requests[i], tags[i], sizeof(tags[i]));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(tags[i], tags[k]);
    }
    /* Late batches and restarts do not change what is sent. */
    assert_int_equal(rig_post(r, id, "", 0, 2, "[]", NULL), TP_ESTATE);
    assert_int_equal(rig_restart(r), TP_OK);
    etag_of(r, id, &requests[0], again, sizeof(again));
    assert_string_equal(again, tags[0]);
}

static void test_names_and_types_of_a_download_are_safe(void **state)
{
    struct rig *r = *state;
    const uint32_t rank = 1;
    struct tp_engine_download_request request = {.format = rig_str("perfetto"),
                                                 .ranks = &rank,
                                                 .n_ranks = 1};
    const struct tp_engine_download_info *info;
    struct tp_engine_download *d;
    char id[TP_TRACE_ID_BYTES], expected[80];

    finished(r, id);
    d = open_download(r, id, &request);
    info = tp_engine_download_info(d);
    snprintf(expected, sizeof(expected), "j-%s-rank1.pftrace", id);
    assert_string_equal(info->file_name, expected);
    assert_true(info->is_final);
    assert_true(info->has_size);
    tp_engine_download_close(d);
}

static void test_a_delete_does_not_disturb_a_download(void **state)
{
    struct rig *r = *state;
    struct tp_engine_download_request request = {0};
    struct tp_engine_download *d;
    char id[TP_TRACE_ID_BYTES];
    char part[512];
    size_t got, total = 0;
    char *whole;

    finished(r, id);
    whole = rig_download(r, id, "");
    d = open_download(r, id, &request);
    assert_int_equal(tp_engine_trace_delete(r->engine, rig_str(id), r->now, NULL, NULL),
                     TP_OK);
    do {
        assert_int_equal(tp_download_read(tp_engine_download_data(d), part,
                                          sizeof(part), &got, &r->err),
                         TP_OK);
        assert_memory_equal(part, whole + total, got);
        total += got;
    } while (got > 0);
    assert_int_equal(total, strlen(whole));
    tp_engine_download_close(d);
    free(whole);
    assert_null(rig_download(r, id, ""));
    assert_int_equal(r->err.code, TP_ENOTFOUND);
}

static void test_an_active_trace_is_sent_as_far_as_it_is(void **state)
{
    struct rig *r = *state;
    struct tp_engine_download_request request = {0};
    struct tp_engine_download *d;
    char *body = rig_events("kernel", 50, 1);
    char id[TP_TRACE_ID_BYTES];
    char *file;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(rig_post(r, id, "", 0, i, body, NULL), TP_OK);
        d = open_download(r, id, &request);
        assert_false(tp_engine_download_info(d)->is_final);
        assert_string_equal(tp_engine_download_info(d)->etag, "");
        tp_engine_download_close(d);
        file = rig_download(r, id, "");
        assert_non_null(file);
        assert_non_null(strstr(file, "\"recording\""));
        free(file);
    }
    /* The snapshot has taken nothing away. */
    assert_int_equal(rig_stop(r, id), TP_OK);
    file = rig_download(r, id, "");
    assert_non_null(file);
    free(file);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    free(body);
}

static void test_a_trace_without_streams_says_why(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    char *file;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_expect_outcome(r, id, "empty", NULL);
    file = rig_download(r, id, "chrome");
    assert_non_null(file);
    assert_non_null(strstr(file, "no producer took part and nothing was posted"));
    free(file);
    file = rig_download(r, id, "perfetto");
    assert_non_null(file);
    free(file);
}

static void test_events_of_no_known_type_can_be_asked_for(void **state)
{
    struct rig *r = *state;
    const struct tp_str types[] = {rig_str("untyped"), rig_str("kernel")};
    char id[TP_TRACE_ID_BYTES], out[8192], tags[3][80];
    unsigned type;

    assert_int_equal(rig_type(r, "j", "a", "B", &type), TP_OK);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(
        rig_post(r, id, "p", 0, -1,
                 "[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"none\"},"
                 "{\"ph\":\"X\",\"ts\":2,\"dur\":1,\"name\":\"odd\",\"cat\":\"weird\"},"
                 "{\"ph\":\"X\",\"ts\":3,\"dur\":1,\"name\":\"k\",\"cat\":\"kernel\"},"
                 "{\"ph\":\"X\",\"ts\":4,\"dur\":1,\"name\":\"ab\",\"cat\":\"a.B\"}]",
                 NULL),
        TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    for (size_t n = 0; n <= 2; n++) {
        const struct tp_engine_download_request request = {.types = types,
                                                           .n_types = n};
        struct tp_engine_download *d = open_download(r, id, &request);
        size_t len = 0, got = 1;

        while (got > 0 && len < sizeof(out) - 1) {
            assert_int_equal(tp_download_read(tp_engine_download_data(d), out + len,
                                              sizeof(out) - 1 - len, &got, &r->err),
                             TP_OK);
            len += got;
        }
        out[len] = '\0';
        snprintf(tags[n], sizeof(tags[n]), "%s", tp_engine_download_info(d)->etag);
        tp_engine_download_close(d);
        assert_non_null(strstr(out, "\"none\""));
        assert_non_null(strstr(out, "\"odd\""));
        assert_int_equal(strstr(out, "\"name\":\"k\"") != NULL, n != 1);
        assert_int_equal(strstr(out, "\"name\":\"ab\"") != NULL, n == 0);
        assert_int_equal(strstr(out, "\"untyped\"]") != NULL, n > 0);
    }
    assert_string_not_equal(tags[0], tags[1]);
    assert_string_not_equal(tags[1], tags[2]);
}

static void test_bad_requests_are_refused_by_field(void **state)
{
    struct rig *r = *state;
    const uint32_t rank = 9;
    struct tp_str type = rig_str("kernal");
    const struct {
        const char *field;
        struct tp_engine_download_request request;
    } cases[] = {
        {"format", {.format = rig_str("otf2")}},
        {"compress", {.compress = rig_str("lzma")}},
        {"ranks", {.ranks = &rank, .n_ranks = 1}},
        {"types", {.types = &type, .n_types = 1}},
        {"from", {.has_from = true, .has_to = true, .from_ns = 2, .to_ns = 1}},
    };
    struct tp_engine_download *d;
    char id[TP_TRACE_ID_BYTES];

    finished(r, id);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (tp_engine_download_open(r->engine, rig_str(id), &cases[i].request, r->now,
                                    &d, &r->problem, &r->err) != TP_EINVAL)
            fail_msg("a bad %s was taken", cases[i].field);
        assert_string_equal(r->problem.field, cases[i].field);
        assert_int_equal(r->err.code, TP_EINVAL);
    }
}

static void test_a_summary_counts_ranks_and_types(void **state)
{
    struct rig *r = *state;
    struct tp_summary *summary;
    char id[TP_TRACE_ID_BYTES];

    finished(r, id);
    assert_int_equal(tp_engine_summary(r->engine, rig_str(id), r->now, &summary,
                                       &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(summary->n_ranks, 2);
    assert_int_equal(summary->ranks[1].rank, 1);
    assert_int_equal(summary->ranks[0].count, 50);
    tp_summary_free(summary);
}

/* Fail the 1st, 2nd, ... allocation, blob operation: refused or right, nothing left. */
static void test_downloads_survive_every_failure(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    struct tp_engine_download_request request = {0};
    struct tp_engine_download *d;

    finished(r, id);
    for (int n = 0;; n++) {
        int rc;

        fault_arm(n);
        rc = tp_engine_download_open(r->engine, rig_str(id), &request, r->now, &d,
                                     &r->problem, &r->err);
        if (rc == TP_OK)
            tp_engine_download_close(d);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        assert_true(rc == TP_OK || rc == TP_ENOMEM);
    }
    for (int n = 0;; n++) {
        int rc;

        blob_mem_fail_after(r->blobs, n);
        rc = tp_engine_download_open(r->engine, rig_str(id), &request, r->now, &d,
                                     &r->problem, &r->err);
        if (rc == TP_OK)
            tp_engine_download_close(d);
        if (!blob_mem_disarm(r->blobs))
            break;
        assert_int_equal(rc, TP_EIO);
        assert_int_equal(r->problem.kind, TP_PROBLEM_STORAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_an_etag_is_of_the_bytes),
        engine_test(test_events_of_no_known_type_can_be_asked_for),
        engine_test(test_names_and_types_of_a_download_are_safe),
        engine_test(test_a_delete_does_not_disturb_a_download),
        engine_test(test_an_active_trace_is_sent_as_far_as_it_is),
        engine_test(test_a_trace_without_streams_says_why),
        engine_test(test_bad_requests_are_refused_by_field),
        engine_test(test_a_summary_counts_ranks_and_types),
        engine_test(test_downloads_survive_every_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
