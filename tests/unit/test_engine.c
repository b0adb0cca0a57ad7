/*
 * The engine as a whole: a trace as a user lives it, a thousand of them, and health.
 */
#include "support/engine_test.h"

#include "support/fault.h"

/* ThreadSanitizer is slow, and there is one thread here. */
#ifdef __SANITIZE_THREAD__
#define CYCLES 50
#else
#define CYCLES 1000
#endif

static void test_register_trace_post_stop_download_gives_names(void **state)
{
    struct rig *r = *state;
    struct tp_upload_reply reply;
    char id[TP_TRACE_ID_BYTES];
    unsigned type = 0;
    char *body = rig_events("ascend.KERNEL", 3, 100);
    char *file;

    assert_int_equal(rig_type(r, "", "ascend", "KERNEL", &type), TP_OK);
    assert_int_equal(type, 154);
    assert_int_equal(rig_create(r, "", "ascend.KERNEL", id), TP_OK);
    rig_expect_state(r, id, "recording");
    assert_int_equal(rig_post(r, id, "", -1, -1, body, &reply), TP_OK);
    assert_int_equal(reply.accepted, 3);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    file = rig_download(r, id, "chrome");
    assert_non_null(file);
    assert_non_null(strstr(file, "ascend.KERNEL"));
    assert_non_null(strstr(file, "customActivityTypes"));
    free(file);
    file = rig_download(r, id, "perfetto");
    assert_non_null(file);
    free(file);
    free(body);
}

/* One whole cycle; the trace is deleted again. */
static void cycle(struct rig *r, const char *body)
{
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    assert_int_equal(tp_engine_trace_delete(r->engine, rig_str(id), r->now, &r->problem,
                                            &r->err),
                     TP_OK);
    rig_wait(r, RIG_MS);
}

static void test_a_thousand_cycles_leave_nothing_behind(void **state)
{
    struct rig *r = *state;
    struct tp_engine_stats stats;
    char *body = rig_events("kernel", 2, 1);

    for (int i = 0; i < CYCLES; i++)
        cycle(r, body);
    tp_engine_stats(r->engine, &stats);
    assert_int_equal(stats.traces, 0);
    assert_int_equal(stats.active_traces, 0);
    assert_int_equal(stats.streams, 0);
    assert_int_equal(stats.traces_complete, CYCLES);
    assert_int_equal(stats.events_stored, 2 * CYCLES);
    assert_int_equal(blob_mem_names(r->blobs), 0);
    assert_int_equal(blob_mem_open(r->blobs), 0);
    free(body);
}

static void test_readiness_fails_with_the_store_and_with_the_disk(void **state)
{
    struct rig *r = *state;
    struct tp_err err;

    assert_int_equal(tp_engine_ready(r->engine, r->now, &err), TP_OK);
    store_faulty_fail_after(r->store, 0);
    assert_int_equal(tp_engine_ready(r->engine, r->now, &err), TP_EIO);
    store_faulty_disarm(r->store);
    blob_mem_fail_after(r->blobs, 0);
    assert_int_equal(tp_engine_ready(r->engine, r->now, &err), TP_EIO);
    blob_mem_disarm(r->blobs);
    blob_mem_limit(r->blobs, 1);
    assert_int_equal(tp_engine_ready(r->engine, r->now, &err), TP_EQUOTA);
    blob_mem_limit(r->blobs, 0);
    assert_int_equal(tp_engine_ready(r->engine, r->now, &err), TP_OK);
}

static void test_a_tick_tells_when_the_next_thing_is_due(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.stop_duration_ms = 250};
    char id[TP_TRACE_ID_BYTES];

    assert_true(tp_engine_tick(r->engine, r->now) == UINT64_MAX);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    assert_true(tp_engine_tick(r->engine, r->now) == r->now.mono_ns + 250 * RIG_MS);
}

/* Fail the 1st, 2nd, ... allocation of a whole life: each step fails cleanly or works,
 * and a second try of the same step works. */
static void test_new_survives_every_allocation_failure(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    unsigned type;
    char *body = rig_events("kernel", 2, 1);

    assert_int_equal(rig_type(r, "j", "a", "B", &type), TP_OK);
    assert_int_equal(rig_create(r, "j", "a.*", id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    free(body);
    for (int n = 0;; n++) {
        int rc;

        fault_arm(n);
        rc = rig_restart(r);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        if (rc == TP_OK)
            continue; /* a failure that was made up for */
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(r->engine);
    }
    rig_expect_state(r, id, "recording");
}

static void test_create_survives_every_allocation_failure(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    struct tp_engine_stats stats;

    for (int n = 0;; n++) {
        int rc;

        fault_arm(n);
        rc = rig_create(r, "j", "kernel", id);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
        tp_engine_stats(r->engine, &stats);
        assert_int_equal(stats.traces, 0);
    }
    rig_expect_state(r, id, "recording");
}

static void test_post_survives_every_allocation_failure(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    char *body = rig_events("kernel", 2, 1);
    struct tp_trace_view *view;
    int n = 0;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (;; n++) {
        int rc;

        fault_arm(n);
        rc = rig_post(r, id, "p", 0, 7, body, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        if (rc != TP_OK)
            assert_int_equal(rc, TP_ENOMEM);
    }
    assert_true(n > 3);
    view = rig_view(r, id);
    assert_int_equal(view->totals.stored, 2);
    tp_trace_view_free(view);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_register_trace_post_stop_download_gives_names),
        engine_test(test_a_thousand_cycles_leave_nothing_behind),
        engine_test(test_readiness_fails_with_the_store_and_with_the_disk),
        engine_test(test_a_tick_tells_when_the_next_thing_is_due),
        engine_test(test_new_survives_every_allocation_failure),
        engine_test(test_create_survives_every_allocation_failure),
        engine_test(test_post_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
