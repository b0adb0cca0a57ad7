/*
 * Events and files in: what is stored, what is refused, and that it adds up.
 */
#include "support/engine_test.h"

#include <stdio.h>

#include <zlib.h>

#include "base/err.h"
#include "core/limits.h"

static void test_posted_is_stored_and_filtered_and_dropped(void **state)
{
    struct rig *r = *state;
    struct tp_upload_reply reply;
    char id[TP_TRACE_ID_BYTES];
    static const char body[] =
        "[{\"ph\":\"X\",\"name\":\"a\",\"cat\":\"kernel\",\"ts\":1,\"dur\":1,\"pid\":1,"
        "\"tid\":1},"
        "{\"ph\":\"X\",\"name\":\"b\",\"cat\":\"cpu_op\",\"ts\":2,\"dur\":1,\"pid\":1,"
        "\"tid\":1},"
        "{\"ph\":\"X\",\"name\":\"no time\",\"cat\":\"kernel\"},"
        "{\"ph\":\"E\",\"name\":\"lone\",\"cat\":\"kernel\",\"ts\":9,\"pid\":1,"
        "\"tid\":1}]";
    struct tp_trace_view *view;

    assert_int_equal(rig_create(r, "j", "kernel", id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, &reply), TP_OK);
    assert_int_equal(reply.posted, 4);
    assert_int_equal(reply.filtered, 1);
    assert_int_equal(reply.rejected, 1);
    assert_int_equal(reply.accepted, 2);
    assert_string_not_equal(reply.first_reason, "");
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "lossy",
                       "2 events dropped (unmatched-end 1, malformed 1)");
    view = rig_view(r, id);
    assert_int_equal(view->totals.stored, 1);
    assert_int_equal(view->totals.emitted, 4);
    assert_int_equal(view->n_streams, 1);
    assert_true(view->streams[0].has_times);
    assert_int_equal(view->streams[0].first_ns, 1000);
    tp_trace_view_free(view);
}

static void test_everything_filtered_is_empty_and_says_so(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    char *body = rig_events("cpu_op", 120, 1);
    char *file;

    assert_int_equal(rig_create(r, "j", "kernel", id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "empty", "0 of 120 events passed the filter");
    file = rig_download(r, id, "chrome");
    assert_non_null(file);
    assert_non_null(strstr(file, "0 of 120 events passed the filter"));
    free(file);
    free(body);
}

static void test_a_damaged_batch_is_refused_whole_with_its_offset(void **state)
{
    struct rig *r = *state;
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(
        rig_post(r, id, "p", 0, 1,
                 "[{\"ph\":\"i\",\"name\":\"a\",\"ts\":1,\"pid\":1},{\"ph\":]", NULL),
        TP_EINVAL);
    assert_int_equal(r->problem.kind, TP_PROBLEM_DAMAGED_BODY);
    assert_true(r->problem.has_offset);
    assert_int_equal(r->problem.offset, 44);
    view = rig_view(r, id);
    assert_int_equal(view->n_streams, 0);
    assert_int_equal(view->totals.emitted, 0);
    tp_trace_view_free(view);
    assert_int_equal(blob_mem_names(r->blobs), 0);
}

static void test_repeats_are_stored_once_in_any_order(void **state)
{
    struct rig *r = *state;
    static const int order[] = {3, 1, 2, 3, 1, 5, 4, 5};
    char *body = rig_events("kernel", 10, 1);
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        assert_int_equal(rig_post(r, id, "p", 0, order[i], body, NULL), TP_OK);
    view = rig_view(r, id);
    assert_int_equal(view->totals.stored, 50);
    assert_int_equal(view->streams[0].batches, 5);
    assert_int_equal(view->streams[0].duplicate_batches, 3);
    tp_trace_view_free(view);
    /* Another producer has numbers of its own. */
    assert_int_equal(rig_post(r, id, "q", 0, 1, body, NULL), TP_OK);
    view = rig_view(r, id);
    assert_int_equal(view->n_streams, 2);
    assert_int_equal(view->totals.stored, 60);
    tp_trace_view_free(view);
    free(body);
}

static void test_producers_get_default_names_and_streams_of_their_own(void **state)
{
    struct rig *r = *state;
    struct tp_upload_reply reply;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "", -1, -1, "[]", &reply), TP_OK);
    assert_string_equal(reply.producer, "default");
    assert_int_equal(reply.stream_no, 1);
    assert_int_equal(rig_post(r, id, "", 7, -1, "[]", &reply), TP_OK);
    assert_string_equal(reply.producer, "rank-7");
    assert_int_equal(reply.rank, 7);
    assert_int_equal(reply.stream_no, 2);
    assert_int_equal(rig_post(r, id, "", -1, -1, "[]", &reply), TP_OK);
    assert_int_equal(reply.stream_no, 1);
}

static void test_two_files_of_one_name_are_two_streams(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 3, 1);
    struct tp_upload_reply reply;
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (unsigned i = 1; i <= 2; i++) {
        assert_int_equal(rig_file(r, id, "trace.json", 4, body, &reply), TP_OK);
        assert_int_equal(reply.stream_no, i);
    }
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    view = rig_view(r, id);
    assert_int_equal(view->n_streams, 2);
    assert_string_equal(view->streams[1].file_name, "trace.json");
    assert_int_equal(view->totals.stored, 6);
    tp_trace_view_free(view);
    free(body);
}

static void test_a_damaged_file_keeps_what_can_be_read(void **state)
{
    struct rig *r = *state;
    struct tp_upload_reply reply;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(
        rig_file(r, id, "t.json", 0,
                 "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,"
                 "\"pid\":1,\"tid\":1},{\"ph\":\"X\",\"na",
                 &reply),
        TP_OK);
    assert_int_equal(reply.accepted, 1);
    assert_true(reply.is_truncated);
    assert_string_not_equal(reply.damage, "");
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "partial", NULL);
}

/* What was in it nobody knows, and nothing else is said. */
static void test_a_file_without_a_whole_event_is_damaged_and_no_more(void **state)
{
    struct rig *r = *state;
    struct tp_upload_reply reply;
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_file(r, id, "t.json", 0, "{\"traceEvents\":[{\"ph\":", &reply),
                     TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    view = rig_view(r, id);
    assert_non_null(strstr(view->reason, "is damaged"));
    assert_null(strstr(view->reason, "recorded nothing"));
    tp_trace_view_free(view);
}

static void test_members_over_a_limit_are_told(void **state)
{
    struct rig *r = *state;
    struct tp_upload_reply reply;
    char id[TP_TRACE_ID_BYTES];

    r->limits->stream_metadata_bytes = 16;
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_file(r, id, "t.json", 0,
                              "{\"long\":\"0123456789abcdef\",\"traceEvents\":[{"
                              "\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1}]}",
                              &reply),
                     TP_OK);
    assert_int_equal(reply.accepted, 1);
    assert_string_equal(reply.damage, "1 top-level member over a limit left out");
}

static void test_a_file_tells_its_rank(void **state)
{
    struct rig *r = *state;
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(
        rig_file(
            r, id, "t.json", -1,
            "{\"distributedInfo\":{\"rank\":5,\"world_size\":8},\"traceEvents\":["
            "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1}]}",
            NULL),
        TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    for (int i = 0; i < 2; i++) {
        view = rig_view(r, id);
        assert_int_equal(view->streams[0].who.rank, 5);
        assert_int_equal(view->streams[0].who.world_size, 8);
        tp_trace_view_free(view);
        assert_int_equal(rig_restart(r), TP_OK);
    }
}

static void test_max_bytes_stops_the_trace_and_counts_what_did_not_fit(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.job = rig_str("j"), .stop_max_bytes = 3000};
    char *body = rig_events("kernel", 20, 1);
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];
    unsigned stored = 0, posted = 0;
    int rc = TP_OK;

    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    while (rc == TP_OK) {
        rc = rig_post(r, id, "p", 0, -1, body, NULL);
        posted += 20;
        stored += rc == TP_OK ? 20 : 0;
    }
    assert_int_equal(rc, TP_EQUOTA);
    assert_int_equal(r->problem.kind, TP_PROBLEM_LIMIT_EXCEEDED);
    assert_int_equal(r->problem.limit_max, 3000);
    assert_true(stored > 0);
    rig_work(r);
    rig_expect_outcome(r, id, "lossy", "20 events dropped (over-limit)");
    view = rig_view(r, id);
    assert_non_null(strstr(view->moves[2].cause, "max_bytes reached"));
    assert_int_equal(view->totals.stored, stored);
    assert_int_equal(view->totals.emitted, posted);
    tp_trace_view_free(view);
    free(body);
}

static struct tp_upload *begin(struct rig *r, const char *id)
{
    struct tp_upload_request request = {.producer = rig_str("slow"),
                                        .rank = 1,
                                        .pid = -1};
    struct tp_upload *u;

    assert_int_equal(tp_engine_upload_begin(r->engine, rig_str(id), &request, r->now,
                                            &u, &r->problem, &r->err),
                     TP_OK);
    return u;
}

static void test_an_abandoned_upload_leaves_nothing(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 20, 1);
    char id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;
    struct tp_upload *u;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    u = begin(r, id);
    assert_int_equal(tp_upload_feed(u, body, strlen(body), NULL, NULL), TP_OK);
    tp_upload_free(u);
    view = rig_view(r, id);
    assert_int_equal(view->n_streams, 0);
    tp_trace_view_free(view);
    assert_int_equal(blob_mem_names(r->blobs), 0);
    assert_int_equal(blob_mem_open(r->blobs), 0);
    free(body);
}

static void test_a_stop_waits_for_an_upload_that_was_begun(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 20, 1);
    char id[TP_TRACE_ID_BYTES];
    struct tp_upload_reply reply;
    struct tp_upload *u;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    u = begin(r, id);
    assert_int_equal(tp_upload_feed(u, body, 100, NULL, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_state(r, id, "stopping");
    assert_int_equal(tp_upload_feed(u, body + 100, strlen(body) - 100, NULL, NULL),
                     TP_OK);
    assert_int_equal(tp_upload_commit(u, r->now, &reply, NULL, NULL), TP_OK);
    tp_upload_free(u);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    free(body);
}

static void test_an_upload_that_is_too_slow_is_late_and_counted(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 20, 1);
    char id[TP_TRACE_ID_BYTES];
    struct tp_upload_reply reply;
    struct tp_trace_view *view;
    struct tp_upload *u;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    u = begin(r, id);
    assert_int_equal(tp_upload_feed(u, body, strlen(body), NULL, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_wait(r, r->limits->trace_stopping_ms * RIG_MS);
    rig_work(r);
    rig_expect_state(r, id, "complete");
    assert_int_equal(tp_upload_commit(u, r->now, &reply, &r->problem, &r->err),
                     TP_ESTATE);
    assert_string_equal(r->problem.state, "complete");
    /* The trace may even be deleted meanwhile. */
    view = rig_view(r, id);
    assert_int_equal(view->late_batches, 1);
    assert_int_equal(view->late_events, 20);
    tp_trace_view_free(view);
    assert_int_equal(tp_engine_trace_delete(r->engine, rig_str(id), r->now, NULL, NULL),
                     TP_OK);
    tp_upload_free(u);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_ENOTFOUND);
    free(body);
}

static void test_the_limits_of_uploads_are_exceeded_by_name(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 200, 1);
    char id[TP_TRACE_ID_BYTES];

    r->limits->streams_per_trace = 2;
    r->limits->events_body_bytes = 1024;
    r->limits->file_bytes = 2048;
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_EQUOTA);
    assert_string_equal(r->problem.limit_name, "max-events-body-bytes");
    assert_int_equal(rig_file(r, id, "p", 0, body, NULL), TP_EQUOTA);
    assert_string_equal(r->problem.limit_name, "max-file-bytes");
    /* Refused uploads use up no stream. */
    assert_int_equal(rig_post(r, id, "a", 0, 1, "[]", NULL), TP_OK);
    assert_int_equal(rig_post(r, id, "b", 0, 1, "[]", NULL), TP_OK);
    assert_int_equal(rig_post(r, id, "c", 0, 1, "[]", NULL), TP_EQUOTA);
    assert_string_equal(r->problem.limit_name, "max-streams-per-trace");
    free(body);
}

/* Send a file in pieces of 64 KiB until it is refused or over; returns the code and the
 * bytes that were taken. */
static int feed_file(struct rig *r, const char *id, enum tp_upload_kind kind,
                     const char *bytes, size_t n, size_t *taken)
{
    struct tp_upload_request request = {.kind = kind,
                                        .producer = rig_str("big"),
                                        .encoding = TP_ENCODING_SNIFF,
                                        .rank = 1,
                                        .pid = -1};
    struct tp_upload_reply reply;
    struct tp_upload *u;
    int rc = TP_OK;

    assert_int_equal(tp_engine_upload_begin(r->engine, rig_str(id), &request, r->now,
                                            &u, &r->problem, &r->err),
                     TP_OK);
    for (*taken = 0; *taken < n && rc == TP_OK;) {
        size_t some = n - *taken < 65536 ? n - *taken : 65536;

        rc = tp_upload_feed(u, bytes + *taken, some, &r->problem, &r->err);
        *taken += rc == TP_OK ? some : 0;
    }
    if (rc == TP_OK)
        rc = tp_upload_commit(u, r->now, &reply, &r->problem, &r->err);
    tp_upload_free(u);
    return rc;
}

/* A batch is stored, its answer is lost, and the trace is full when it comes again: it
 * was counted as stored and as dropped. */
static void test_a_batch_that_comes_again_is_not_over_the_limit(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {.job = rig_str("j"),
                                             .stop_max_bytes = 3000};
    char *body = rig_events("kernel", 20, 1);
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply orders;
    struct tp_upload_reply reply;
    int64_t seq = 0;

    rig_join(r, "p", 0, p);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    orders = rig_sync(r, p, NULL);
    rig_sync(r, p, &orders);
    while (rig_post(r, id, p, 0, ++seq, body, NULL) == TP_OK)
        continue;
    rig_expect_state(r, id, "stopping");
    assert_int_equal(rig_post(r, id, p, 0, seq - 1, body, &reply), TP_OK);
    assert_true(reply.is_duplicate);
    assert_int_equal(reply.accepted, 20);
    assert_int_equal(rig_post(r, id, p, 0, seq, body, NULL), TP_EQUOTA);
    orders = rig_sync(r, p, NULL);
    rig_sync(r, p, &orders);
    rig_work(r);
    rig_expect_outcome(r, id, "lossy", "20 events dropped (over-limit)");
    free(body);
}

static void test_the_quota_of_a_trace_holds_while_a_body_comes_in(void **state)
{
    static const enum tp_upload_kind kinds[] = {TP_UPLOAD_FILE, TP_UPLOAD_EVENTS};
    struct rig *r = *state;
    char *body = rig_events("kernel", 100000, 1);
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];
    size_t taken;

    for (size_t i = 0; i < 2; i++) {
        struct tp_trace_request request = {.job = rig_str("j"),
                                           .stop_max_bytes = 20000};

        print_message("kind %d\n", (int)kinds[i]);
        assert_int_equal(rig_create_from(r, &request, id), TP_OK);
        assert_int_equal(feed_file(r, id, kinds[i], body, strlen(body), &taken),
                         TP_EQUOTA);
        assert_int_equal(r->problem.kind, TP_PROBLEM_LIMIT_EXCEEDED);
        assert_string_equal(r->problem.limit_name, "max-trace-bytes");
        assert_true(taken < 1 << 20);
        /* What was refused takes no room any more. */
        if (kinds[i] == TP_UPLOAD_FILE) {
            assert_int_equal(rig_file(r, id, "t.json", 1, "[]", NULL), TP_OK);
            assert_int_equal(rig_stop(r, id), TP_OK);
        }
        rig_work(r);
        view = rig_view(r, id);
        assert_string_equal(view->state, "complete");
        assert_string_equal(view->outcome, "empty");
        assert_true((strstr(view->reason, "dropped (over-limit)") != NULL) ==
                    (kinds[i] == TP_UPLOAD_EVENTS));
        assert_int_equal(view->totals.emitted,
                         view->totals.dropped[TP_DROP_OVER_LIMIT]);
        tp_trace_view_free(view);
    }
    free(body);
}

/* n blanks in an array, gzipped. */
static char *gzip_blanks(size_t n, size_t *size)
{
    z_stream z = {0};
    char *in = malloc(n), *out = malloc(n);

    assert_non_null(in);
    assert_non_null(out);
    memset(in, ' ', n);
    in[0] = '[';
    in[n - 1] = ']';
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)in;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)n;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *size = z.total_out;
    deflateEnd(&z);
    free(in);
    return out;
}

static void test_a_bomb_is_refused_by_the_limit_that_it_exceeds(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    size_t size, taken;
    char *bomb = gzip_blanks((size_t)20 << 20, &size);

    r->limits->inflate_ratio = 10;
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(feed_file(r, id, TP_UPLOAD_FILE, bomb, size, &taken), TP_EQUOTA);
    assert_string_equal(r->problem.limit_name, "max-inflate-ratio");
    assert_string_equal(r->problem.limit_unit, "times");
    assert_int_equal(r->problem.limit_max, 10);
    r->limits->inflate_ratio = 1100;
    r->limits->file_inflated_bytes = 1 << 20;
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(feed_file(r, id, TP_UPLOAD_FILE, bomb, size, &taken), TP_EQUOTA);
    assert_string_equal(r->problem.limit_name, "max-file-inflated-bytes");
    assert_int_equal(r->problem.limit_max, 1 << 20);
    free(bomb);
}

static void test_a_file_tells_who_it_is_from_at_once(void **state)
{
    struct rig *r = *state;
    struct tp_upload_reply reply;
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];
    char *file;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(
        rig_file(
            r, id, "t.json", -1,
            "{\"host_name\":\"node-3\",\"traceEvents\":["
            "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1}],"
            "\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":5,"
            "\"world_size\":8}}",
            &reply),
        TP_OK);
    assert_int_equal(reply.rank, 5);
    for (int i = 0; i < 2; i++) {
        view = rig_view(r, id);
        assert_int_equal(view->streams[0].who.rank, 5);
        assert_int_equal(view->streams[0].who.world_size, 8);
        assert_string_equal(view->streams[0].who.backend, "nccl");
        assert_string_equal(view->streams[0].who.host, "node-3");
        tp_trace_view_free(view);
        file = rig_download(r, id, "chrome");
        assert_non_null(file);
        assert_non_null(strstr(file, "\"rank\": 5"));
        free(file);
        assert_int_equal(rig_restart(r), TP_OK);
    }
    /* What the request says counts more. */
    assert_int_equal(rig_file(r, id, "t.json", 2,
                              "{\"distributedInfo\":{\"rank\":5},\"traceEvents\":[]}",
                              &reply),
                     TP_OK);
    assert_int_equal(reply.rank, 2);
}

static void test_a_file_name_shows_no_path_and_nothing_dangerous(void **state)
{
    static const struct {
        const char *given, *shown;
    } cases[] = {
        {"../../../etc/passwd", "passwd"},
        {"C:\\traces\\rank 0.json", "rank 0.json"},
        {"/", ""},
        {"..", "__"},
        {".bashrc", "_bashrc"},
        {"<img src=x>.json", "_img src=x_.json"},
        {"a\"b'c`d$e|f&g;h*i?j:k.json", "a_b_c_d_e_f_g_h_i_j_k.json"},
        {"\xc3\xa4.json.gz", "\xc3\xa4.json.gz"},
    };
    struct rig *r = *state;
    struct tp_upload_reply reply;
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("%s\n", cases[i].given);
        assert_int_equal(rig_file(r, id, cases[i].given, -1, "[]", &reply), TP_OK);
        view = rig_view(r, id);
        assert_string_equal(view->streams[i].file_name, cases[i].shown);
        assert_null(strchr(view->streams[i].who.name, '/'));
        tp_trace_view_free(view);
    }
}

static void test_bad_fields_are_refused_by_name(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "a\nb", 0, 1, "[]", NULL), TP_EINVAL);
    assert_string_equal(r->problem.field, "producer");
    assert_int_equal(rig_post(r, id, "\xff", 0, 1, "[]", NULL), TP_EINVAL);
    assert_int_equal(rig_post(r, id, "p", INT64_C(1) << 31, 1, "[]", NULL), TP_EINVAL);
    assert_string_equal(r->problem.field, "rank");
}

static void test_a_full_disk_refuses_the_batch_and_keeps_the_trace(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 50, 1);
    char id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    blob_mem_limit(r->blobs, 10);
    assert_int_equal(rig_post(r, id, "p", 0, 2, body, NULL), TP_EQUOTA);
    assert_int_equal(r->problem.kind, TP_PROBLEM_STORAGE);
    blob_mem_limit(r->blobs, 0);
    assert_int_equal(rig_post(r, id, "p", 0, 2, body, NULL), TP_OK);
    view = rig_view(r, id);
    assert_int_equal(view->totals.stored, 100);
    assert_int_equal(view->totals.emitted, 100);
    tp_trace_view_free(view);
    free(body);
}

static void test_an_object_without_traceevents_gets_a_note(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    struct tp_upload_reply reply;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, -1, "{\"traceEvent\":[]}", &reply), TP_OK);
    assert_non_null(strstr(reply.note, "no traceEvents in this object"));
    assert_int_equal(rig_post(r, id, "p", 0, -1, "{\"traceEvents\":[]}", &reply),
                     TP_OK);
    assert_string_equal(reply.note, "");
}

struct removal {
    struct rig *rig;
    char id[TP_TRACE_ID_BYTES];
};

static void cancel_and_delete(void *arg)
{
    struct removal *x = arg;
    struct rig *r = x->rig;

    assert_int_equal(tp_engine_trace_cancel(r->engine, rig_str(x->id), rig_str(""),
                                            r->now, NULL, &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(tp_engine_trace_delete(r->engine, rig_str(x->id), r->now,
                                            &r->problem, &r->err),
                     TP_OK);
}

/* The log is written to without the lock: it stays until that is over. */
static void test_a_delete_while_a_batch_is_written_waits_for_it(void **state)
{
    struct rig *r = *state;
    struct removal x = {.rig = r};
    char *body = rig_events("kernel", 5, 1);

    for (int n = 0; n < 2; n++) {
        assert_int_equal(rig_create(r, "j", NULL, x.id), TP_OK);
        if (n > 0)
            assert_int_equal(rig_post(r, x.id, "p", 0, 1, body, NULL), TP_OK);
        blob_mem_meanwhile(r->blobs, cancel_and_delete, &x);
        assert_int_equal(rig_post(r, x.id, "p", 0, 2, body, NULL), TP_ENOTFOUND);
        assert_string_equal(r->problem.subject, "trace");
        assert_int_equal(blob_mem_names(r->blobs), 0);
        assert_int_equal(blob_mem_open(r->blobs), 0);
    }
    free(body);
}

static void test_a_seal_that_fails_is_tried_again_and_then_given_up(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 50, 1);
    char id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    blob_mem_fail_after(r->blobs, 2);
    rig_work(r);
    rig_expect_state(r, id, "stopping");
    rig_wait(r, 5 * RIG_S);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    blob_mem_break_after(r->blobs, 0);
    for (int i = 0; i < 5; i++) {
        rig_work(r);
        rig_wait(r, 5 * RIG_S);
    }
    blob_mem_disarm(r->blobs);
    view = rig_view(r, id);
    assert_string_equal(view->state, "failed");
    assert_non_null(strstr(view->reason, "the data cannot be read"));
    assert_int_equal(view->totals.dropped[TP_DROP_DAMAGED], 50);
    assert_int_equal(tp_counts_check(&view->totals, &r->err), TP_OK);
    tp_trace_view_free(view);
    free(body);
}

static void test_a_seal_waits_for_room_on_a_full_disk_but_not_for_ever(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 50, 1);
    char id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    blob_mem_limit(r->blobs, 1);
    for (int i = 0; i < 40; i++) {
        rig_work(r);
        rig_expect_state(r, id, "stopping");
        rig_wait(r, RIG_S);
    }
    blob_mem_limit(r->blobs, 0);
    rig_wait(r, 11 * RIG_S);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    blob_mem_limit(r->blobs, 1);
    for (int i = 0; i < 60; i++) {
        rig_work(r);
        rig_wait(r, RIG_S);
    }
    blob_mem_limit(r->blobs, 0);
    view = rig_view(r, id);
    assert_string_equal(view->state, "failed");
    assert_int_equal(view->totals.dropped[TP_DROP_DAMAGED], 50);
    tp_trace_view_free(view);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_posted_is_stored_and_filtered_and_dropped),
        engine_test(test_a_seal_waits_for_room_on_a_full_disk_but_not_for_ever),
        engine_test(test_everything_filtered_is_empty_and_says_so),
        engine_test(test_a_damaged_batch_is_refused_whole_with_its_offset),
        engine_test(test_repeats_are_stored_once_in_any_order),
        engine_test(test_producers_get_default_names_and_streams_of_their_own),
        engine_test(test_two_files_of_one_name_are_two_streams),
        engine_test(test_a_damaged_file_keeps_what_can_be_read),
        engine_test(test_a_file_without_a_whole_event_is_damaged_and_no_more),
        engine_test(test_members_over_a_limit_are_told),
        engine_test(test_a_file_tells_its_rank),
        engine_test(test_the_quota_of_a_trace_holds_while_a_body_comes_in),
        engine_test(test_a_bomb_is_refused_by_the_limit_that_it_exceeds),
        engine_test(test_a_file_tells_who_it_is_from_at_once),
        engine_test(test_a_file_name_shows_no_path_and_nothing_dangerous),
        engine_test(test_max_bytes_stops_the_trace_and_counts_what_did_not_fit),
        engine_test(test_a_batch_that_comes_again_is_not_over_the_limit),
        engine_test(test_an_abandoned_upload_leaves_nothing),
        engine_test(test_a_stop_waits_for_an_upload_that_was_begun),
        engine_test(test_an_upload_that_is_too_slow_is_late_and_counted),
        engine_test(test_the_limits_of_uploads_are_exceeded_by_name),
        engine_test(test_bad_fields_are_refused_by_name),
        engine_test(test_a_full_disk_refuses_the_batch_and_keeps_the_trace),
        engine_test(test_an_object_without_traceevents_gets_a_note),
        engine_test(test_a_delete_while_a_batch_is_written_waits_for_it),
        engine_test(test_a_seal_that_fails_is_tried_again_and_then_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
