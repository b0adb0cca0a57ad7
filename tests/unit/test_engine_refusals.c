/* Batches that the disk or the store refuses, from the first time to the end of the
 * trace. */
#include "support/engine_test.h"

#include "base/buf.h"
#include "base/err.h"
#include "core/activity.h"
#include "core/limits.h"

#define EVENTS 50

/* A trace whose stream has one batch, and a disk that is full. */
static void fill_disk(struct rig *r, char *id, const char *body)
{
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    blob_mem_limit(r->blobs, 10);
}

static void expect_refused(struct rig *r, const char *id, const char *producer,
                           int64_t seq, const char *body)
{
    int rc = rig_post(r, id, producer, 0, seq, body, NULL);

    assert_true(rc == TP_EQUOTA || rc == TP_EIO);
    assert_int_equal(r->problem.kind, TP_PROBLEM_STORAGE);
}

/* What is told now: it adds up, and so do stored, waiting and dropped. */
static void expect_told(struct rig *r, const char *id, uint64_t stored,
                        uint64_t waiting, uint64_t storage_failed)
{
    struct tp_trace_view *view = rig_view(r, id);
    struct tp_engine_stats stats;

    assert_int_equal(tp_counts_check(&view->totals, &r->err), TP_OK);
    assert_int_equal(view->totals.stored, stored);
    assert_int_equal(view->totals.dropped[TP_DROP_STORAGE_FAILED], storage_failed);
    assert_int_equal(tp_counts_dropped(&view->totals), storage_failed);
    assert_int_equal(view->waiting.events, waiting);
    assert_int_equal(view->waiting.reason[0] != '\0', waiting > 0);
    for (size_t i = 0; i < view->n_streams; i++)
        assert_int_equal(tp_counts_check(&view->streams[i].counts, &r->err), TP_OK);
    tp_engine_stats(r->engine, &stats);
    assert_int_equal(stats.events_waiting, waiting);
    tp_trace_view_free(view);
}

static void finish(struct rig *r, const char *id)
{
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
}

static void test_what_the_disk_refuses_waits_until_it_is_stored(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", EVENTS, 1);
    char id[TP_TRACE_ID_BYTES];
    struct tp_engine_stats stats;
    struct tp_trace_view *view;

    fill_disk(r, id, body);
    for (int i = 0; i < 3; i++)
        expect_refused(r, id, "p", 2, body);
    assert_non_null(strstr(r->err.message, "stream 1 of trace"));
    assert_non_null(strstr(r->err.message, id));
    expect_told(r, id, EVENTS, EVENTS, 0);
    view = rig_view(r, id);
    assert_int_equal(view->streams[0].waiting.batches, 1);
    assert_string_equal(view->streams[0].waiting.reason, view->waiting.reason);
    tp_trace_view_free(view);
    tp_engine_stats(r->engine, &stats);
    assert_int_equal(stats.refused_batches, 3);
    assert_int_equal(stats.events_posted, EVENTS);
    assert_int_equal(stats.events_dropped, 0);
    blob_mem_limit(r->blobs, 0);
    assert_int_equal(rig_post(r, id, "p", 0, 2, body, NULL), TP_OK);
    expect_told(r, id, 2 * EVENTS, 0, 0);
    finish(r, id);
    rig_expect_outcome(r, id, "complete", "");
    free(body);
}

static void test_what_never_comes_again_is_dropped_when_the_trace_ends(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", EVENTS, 1);
    char id[TP_TRACE_ID_BYTES];
    struct tp_engine_stats stats;
    struct tp_trace_view *view;

    fill_disk(r, id, body);
    expect_refused(r, id, "p", 2, body);
    expect_refused(r, id, "new", 1, body);
    expect_refused(r, id, "p", -1, body); /* it cannot be known again */
    expect_told(r, id, EVENTS, 2 * EVENTS, EVENTS);
    blob_mem_limit(r->blobs, 0);
    finish(r, id);
    rig_expect_outcome(r, id, "lossy", "150 events dropped (storage-failed)");
    tp_engine_stats(r->engine, &stats);
    assert_int_equal(stats.events_posted, 4 * EVENTS);
    assert_int_equal(stats.events_dropped, 3 * EVENTS);
    for (int i = 0; i < 2; i++) {
        expect_told(r, id, EVENTS, 0, 3 * EVENTS);
        view = rig_view(r, id);
        assert_non_null(strstr(view->streams[1].reason, "1 batch could not be stored"));
        tp_trace_view_free(view);
        assert_int_equal(rig_restart(r), TP_OK);
    }
    free(body);
}

/* By its number it is known: it was counted twice when it came again. */
static void test_a_kill_keeps_what_waits(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", EVENTS, 1);
    char id[TP_TRACE_ID_BYTES];

    fill_disk(r, id, body);
    expect_refused(r, id, "p", 2, body);
    expect_refused(r, id, "p", 3, body);
    expect_refused(r, id, "p", -1, body);
    for (int i = 0; i < 2; i++) {
        expect_told(r, id, EVENTS, 2 * EVENTS, EVENTS);
        blob_mem_limit(r->blobs, 0);
        assert_int_equal(rig_restart(r), TP_OK);
    }
    assert_int_equal(rig_post(r, id, "p", 0, 3, body, NULL), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 2, body, NULL), TP_OK);
    expect_told(r, id, 3 * EVENTS, 0, EVENTS);
    assert_int_equal(rig_restart(r), TP_OK);
    expect_told(r, id, 3 * EVENTS, 0, EVENTS);
    finish(r, id);
    rig_expect_outcome(r, id, "lossy", "50 events dropped (storage-failed)");
    free(body);
}

/* What a batch had over a limit is in the log, and what was refused is in the row. */
static void test_a_kill_adds_no_drops_of_batches_again(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", EVENTS, 1);
    struct tp_buf threads = {0};
    char id[TP_TRACE_ID_BYTES];

    for (int i = 0; i < 40; i++)
        assert_int_equal(tp_buf_printf(&threads, &r->err,
                                       "%s{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,"
                                       "\"tid\":%d,\"ts\":1,\"dur\":1}",
                                       i == 0 ? "[" : ",", i),
                         TP_OK);
    assert_int_equal(tp_buf_append(&threads, "]", 2, &r->err), TP_OK);
    r->limits->stream_tracks = 16;
    assert_int_equal(rig_restart(r), TP_OK);
    fill_disk(r, id, threads.data);
    expect_refused(r, id, "p", -1, body); /* its row has the counts of both */
    blob_mem_limit(r->blobs, 0);
    for (int i = 0; i < 2; i++) {
        struct tp_trace_view *view = rig_view(r, id);

        assert_int_equal(tp_counts_check(&view->totals, &r->err), TP_OK);
        assert_int_equal(view->totals.emitted, 40 + EVENTS);
        assert_int_equal(view->totals.dropped[TP_DROP_OVER_LIMIT], 24);
        assert_int_equal(view->totals.dropped[TP_DROP_STORAGE_FAILED], EVENTS);
        tp_trace_view_free(view);
        assert_int_equal(rig_restart(r), TP_OK);
    }
    tp_buf_fini(&threads);
    free(body);
}

/* The log has it, and the row says still that it waits. */
static void test_a_kill_behind_the_log_does_not_count_a_batch_twice(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", EVENTS, 1);
    char id[TP_TRACE_ID_BYTES];

    fill_disk(r, id, body);
    expect_refused(r, id, "p", 2, body);
    blob_mem_limit(r->blobs, 0);
    store_faulty_break_after(r->store, 0);
    assert_int_equal(rig_post(r, id, "p", 0, 2, body, NULL), TP_OK);
    assert_true(store_faulty_disarm(r->store));
    assert_int_equal(rig_restart(r), TP_OK);
    expect_told(r, id, 2 * EVENTS, 0, 0);
    finish(r, id);
    rig_expect_outcome(r, id, "complete", "");
    free(body);
}

/* The store is on the same disk. */
static void test_what_the_store_did_not_take_either_is_written_later(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", EVENTS, 1);
    char id[TP_TRACE_ID_BYTES];

    fill_disk(r, id, body);
    store_faulty_break_after(r->store, 0);
    expect_refused(r, id, "p", 2, body);
    expect_refused(r, id, "new", 1, body);
    rig_wait(r, 2 * RIG_S);
    expect_told(r, id, EVENTS, 2 * EVENTS, 0);
    assert_true(store_faulty_disarm(r->store));
    blob_mem_limit(r->blobs, 0);
    rig_wait(r, 2 * RIG_S);
    assert_int_equal(rig_restart(r), TP_OK);
    expect_told(r, id, EVENTS, 2 * EVENTS, 0);
    free(body);
}

/* A stream that nobody knows yet has a number that others may use, but not this one. */
static void test_a_stream_of_which_all_waits_is_not_given_to_another(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", EVENTS, 1);
    char id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    store_faulty_break_after(r->store, 0);
    expect_refused(r, id, "first", 1, body);
    store_faulty_disarm(r->store);
    assert_int_equal(rig_post(r, id, "second", 0, 1, body, NULL), TP_OK);
    expect_told(r, id, EVENTS, EVENTS, 0);
    assert_int_equal(rig_post(r, id, "first", 0, 1, body, NULL), TP_OK);
    expect_told(r, id, 2 * EVENTS, 0, 0);
    view = rig_view(r, id);
    assert_int_equal(view->n_streams, 2);
    assert_string_equal(view->streams[0].who.name, "first");
    tp_trace_view_free(view);
    free(body);
}

static void test_a_batch_that_is_found_to_be_none_does_not_wait(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", EVENTS, 1);
    char id[TP_TRACE_ID_BYTES];

    fill_disk(r, id, body);
    expect_refused(r, id, "p", 2, body);
    expect_told(r, id, EVENTS, EVENTS, 0);
    assert_int_equal(rig_native(r, id, "p", 0, 2, 9, EVENTS), TP_EINVAL);
    expect_told(r, id, EVENTS, 0, 0);
    blob_mem_limit(r->blobs, 0);
    free(body);
}

static void test_a_cancelled_trace_waits_for_nothing(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", EVENTS, 1);
    char id[TP_TRACE_ID_BYTES];

    fill_disk(r, id, body);
    expect_refused(r, id, "p", 2, body);
    assert_int_equal(tp_engine_trace_cancel(r->engine, rig_str(id), rig_str(""), r->now,
                                            NULL, &r->problem, &r->err),
                     TP_OK);
    for (int i = 0; i < 2; i++) {
        struct tp_trace_view *view = rig_view(r, id);

        assert_int_equal(view->waiting.batches, 0);
        assert_int_equal(view->totals.dropped[TP_DROP_STORAGE_FAILED], EVENTS);
        tp_trace_view_free(view);
        blob_mem_limit(r->blobs, 0);
        assert_int_equal(rig_restart(r), TP_OK);
    }
    free(body);
}

/* One sync in which a producer says that it has emitted so many kernels. */
static void report(struct rig *r, const char *p, const char *id, uint64_t emitted)
{
    struct tp_type_counts types = {0};
    struct tp_sync_counts counts = {.trace_id = rig_str(id),
                                    .emitted = emitted,
                                    .types = &types};
    struct tp_sync_request sync = {.counts = &counts, .n_counts = 1};
    struct tp_sync_reply reply;
    struct tp_type_count *kernel;

    assert_int_equal(tp_type_counts_get(&types, TP_ACTIVITY_CONCURRENT_KERNEL, &kernel,
                                        NULL),
                     TP_OK);
    kernel->emitted = emitted;
    assert_int_equal(tp_engine_sync(r->engine, rig_str(p), &sync, r->now, &reply,
                                    &r->problem, &r->err),
                     TP_OK);
    tp_type_counts_fini(&types);
}

/* Of three batches one is stored, one waits, and one is behind it. */
static void test_what_is_behind_a_batch_that_waits_is_lost_for_the_same_cause(
    void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;

    rig_join(r, "p", 0, p);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    reply = rig_sync(r, p, NULL);
    reply = rig_sync(r, p, &reply);
    rig_sync(r, p, &reply);
    assert_int_equal(rig_native(r, id, p, -1, 1, 1, EVENTS), TP_OK);
    blob_mem_limit(r->blobs, 10);
    assert_int_equal(rig_native(r, id, p, -1, 2, 1, EVENTS), TP_EQUOTA);
    report(r, p, id, 3 * EVENTS);
    expect_told(r, id, EVENTS, EVENTS, 0);
    blob_mem_limit(r->blobs, 0);
    assert_int_equal(rig_stop(r, id), TP_OK);
    reply = rig_sync(r, p, NULL);
    expect_told(r, id, EVENTS, EVENTS, 0);
    rig_sync(r, p, &reply); /* it is done, and has sent nothing more */
    rig_work(r);
    rig_expect_outcome(r, id, "lossy", "100 events dropped (storage-failed)");
    for (int i = 0; i < 2; i++) {
        struct tp_trace_view *view = rig_view(r, id);
        const struct tp_member_view *m = &view->members[0];

        assert_int_equal(m->waiting.batches, 0);
        assert_int_equal(m->counts.emitted, 3 * EVENTS);
        assert_int_equal(m->counts.dropped[TP_DROP_STORAGE_FAILED], 2 * EVENTS);
        assert_int_equal(m->types[0].stored, EVENTS);
        assert_int_equal(m->types[0].dropped[TP_DROP_STORAGE_FAILED], 2 * EVENTS);
        tp_trace_view_free(view);
        expect_told(r, id, EVENTS, 0, 2 * EVENTS);
        assert_int_equal(rig_restart(r), TP_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_what_the_disk_refuses_waits_until_it_is_stored),
        engine_test(test_what_never_comes_again_is_dropped_when_the_trace_ends),
        engine_test(test_a_kill_keeps_what_waits),
        engine_test(test_a_kill_adds_no_drops_of_batches_again),
        engine_test(test_a_kill_behind_the_log_does_not_count_a_batch_twice),
        engine_test(test_what_the_store_did_not_take_either_is_written_later),
        engine_test(test_a_stream_of_which_all_waits_is_not_given_to_another),
        engine_test(test_a_batch_that_is_found_to_be_none_does_not_wait),
        engine_test(test_a_cancelled_trace_waits_for_nothing),
        engine_test(test_what_is_behind_a_batch_that_waits_is_lost_for_the_same_cause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
