/*
 * A recorder is armed, started and stopped by the agent or by steps, keeps to its
 * limits and forgets one trace before the next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/registry.h"
#include "support/fault.h"
#include "support/recorder_rig.h"

static int n_wakes;

static void count_wake(void *arg)
{
    assert_ptr_equal(arg, &n_wakes);
    n_wakes++;
}

static const struct tp_recorder_opts waking = {.wake = count_wake,
                                               .wake_arg = &n_wakes};

static void test_sizes_out_of_range_are_refused(void **state)
{
    static const struct {
        size_t ring, all;
    } cases[] = {{1000, 0},
                 {8192, 0},
                 {(size_t)3 << 20, 0},
                 {(size_t)2 << 30, 0},
                 {1 << 20, 4096}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct tp_recorder_opts opts = {.ring_bytes = cases[i].ring,
                                        .rings_bytes_max = cases[i].all};
        struct tp_recorder *r = NULL;
        struct tp_err err = {0};

        if (tp_recorder_new(&opts, &r, &err) != TP_EINVAL || r != NULL ||
            err.message[0] == '\0')
            fail_msg("ring %zu, all %zu", cases[i].ring, cases[i].all);
    }
}

static void test_new_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_recorder *r = NULL;
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_recorder_new(NULL, &r, &err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_recorder_free(r);
            assert_true(n >= 3); /* the recorder, its registry and its batches */
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(r);
    }
}

static void test_types_have_the_ids_of_the_hash(void **state)
{
    struct recorder_rig rig = {0};
    struct tp_err err = {0};
    unsigned type = TP_TYPE_NONE;

    (void)state;
    n_wakes = 0;
    recorder_rig_init(&rig, &waking);
    assert_int_equal(n_wakes, 2); /* the agent is told of both */
    assert_int_equal(rig.kernel,
                     tp_activity_compute_id(tp_str_of("ascend"), tp_str_of("KERNEL")));
    assert_int_equal(tp_register_type(rig.client, "ascend", "KERNEL", TP_KIND_SLICE,
                                      NULL, &type, &err),
                     TP_OK);
    assert_int_equal(type, rig.kernel);
    assert_int_equal(n_wakes, 2);
    assert_int_equal(tp_find_type(rig.client, "ascend.COPY", &type, &err), TP_OK);
    assert_int_equal(type, rig.copy);
    assert_int_equal(tp_find_type(&tp_client_off, "kernel", &type, &err), TP_OK);
    assert_int_equal(type, TP_ACTIVITY_CONCURRENT_KERNEL);
    recorder_rig_fini(&rig);
}

static void test_types_that_cannot_be_leave_none(void **state)
{
    struct recorder_rig rig = {0};
    struct tp_err err = {0};
    unsigned type = TP_TYPE_NONE;

    (void)state;
    recorder_rig_init(&rig, NULL);
    assert_int_equal(tp_register_type(rig.client, "a.b", "X", TP_KIND_SLICE, NULL,
                                      &type, &err),
                     TP_EINVAL);
    assert_int_equal(tp_register_type(rig.client, NULL, NULL, TP_KIND_SLICE, NULL,
                                      &type, &err),
                     TP_EINVAL);
    assert_int_equal(tp_register_type(rig.client, "a", "X", (enum tp_kind)9, NULL,
                                      &type, &err),
                     TP_EINVAL);
    assert_int_equal(tp_register_type(&tp_client_off, "a", "X", TP_KIND_SLICE, NULL,
                                      &type, &err),
                     TP_ESTATE);
    assert_int_equal(tp_find_type(rig.client, "nobody.KNOWS", &type, &err),
                     TP_ENOTFOUND);
    assert_int_equal(type, TP_TYPE_NONE);
    recorder_rig_fini(&rig);
}

static void test_the_client_that_is_off_is_no_recorder(void **state)
{
    (void)state;
    assert_null(tp_recorder_of(&tp_client_off));
    assert_null(tp_recorder_of(NULL));
    assert_int_equal(tp_step(&tp_client_off), 0);
    assert_int_equal(tp_step(NULL), 0);
}

static void test_a_start_without_an_arm_does_nothing(void **state)
{
    struct recorder_rig rig = {0};

    (void)state;
    recorder_rig_init(&rig, NULL);
    tp_recorder_start(rig.recorder, tp_now());
    assert_false(tp_recorder_is_recording(rig.recorder));
    recorder_rig_start(&rig);
    assert_true(tp_recorder_is_recording(rig.recorder));
    tp_recorder_stop(rig.recorder, 0);
    tp_recorder_start(rig.recorder, tp_now());
    assert_false(tp_recorder_is_recording(rig.recorder));
    assert_false(tp_enabled(rig.client, rig.kernel));
    recorder_rig_fini(&rig);
}

static void test_steps_start_and_stop_at_their_moment(void **state)
{
    struct recorder_rig rig = {0};
    struct tp_typeset types = {0};
    uint64_t at_ns = 0;

    (void)state;
    recorder_rig_init(&rig, &waking);
    tp_typeset_add(&types, rig.kernel);
    tp_recorder_arm(rig.recorder, &types, 0);
    tp_recorder_set_steps(rig.recorder, 3, 2);
    n_wakes = 0;
    for (int i = 1; i <= 6; i++) {
        assert_int_equal(tp_step(rig.client), i);
        assert_int_equal(tp_recorder_is_recording(rig.recorder), i == 3 || i == 4);
        TP_INSTANT(rig.client, rig.kernel, "in", TP_INT("step", i));
    }
    assert_int_equal(n_wakes, 2);
    assert_int_equal(tp_recorder_step(rig.recorder, &at_ns), 6);
    assert_true(at_ns > 0 && at_ns <= tp_now());
    recorder_rig_expect(&rig, "i ascend.KERNEL in -/- 0 step=3\n"
                              "i ascend.KERNEL in -/- 0 step=4\n");
    recorder_rig_fini(&rig);
}

static void test_steps_count_from_a_start_by_time(void **state)
{
    struct recorder_rig rig = {0};

    (void)state;
    recorder_rig_init(&rig, NULL);
    tp_step(rig.client);
    recorder_rig_start(&rig);
    tp_recorder_set_steps(rig.recorder, 0, 1);
    assert_true(tp_recorder_is_recording(rig.recorder));
    tp_step(rig.client);
    assert_false(tp_recorder_is_recording(rig.recorder));
    recorder_rig_fini(&rig);
}

static void test_alarm_wakes_once_at_its_step(void **state)
{
    struct recorder_rig rig = {0};

    (void)state;
    recorder_rig_init(&rig, &waking);
    tp_recorder_set_alarm(rig.recorder, 2);
    n_wakes = 0;
    tp_step(rig.client);
    assert_int_equal(n_wakes, 0);
    tp_step(rig.client);
    tp_step(rig.client);
    assert_int_equal(n_wakes, 1);
    recorder_rig_fini(&rig);
}

static void test_charged_events_are_dropped_ones(void **state)
{
    struct recorder_rig rig = {0};
    struct tp_recorder_totals totals;
    uint32_t by_type[256] = {0};

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    TP_INSTANT(rig.client, rig.kernel, "x");
    recorder_rig_drain(&rig);
    by_type[rig.kernel] = 1;
    tp_recorder_charge(rig.recorder, TP_DROP_BACKLOG_FULL, by_type);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.emitted[rig.kernel], 1);
    assert_int_equal(totals.dropped[TP_DROP_BACKLOG_FULL][rig.kernel], 1);
    recorder_rig_start(&rig);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.emitted[rig.kernel], 0);
    assert_int_equal(totals.dropped[TP_DROP_BACKLOG_FULL][rig.kernel], 0);
    recorder_rig_fini(&rig);
}

static void test_discarded_events_are_counted_nowhere(void **state)
{
    struct recorder_rig rig = {0};
    uint64_t dropped;

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    TP_INSTANT(rig.client, rig.kernel, "x");
    tp_recorder_stop(rig.recorder, 0);
    tp_recorder_discard(rig.recorder);
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(rig.n_drained, 0);
    assert_int_equal(dropped, 0);
    recorder_rig_start(&rig);
    TP_INSTANT(rig.client, rig.kernel, "y");
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(rig.n_drained, 1);
    recorder_rig_fini(&rig);
}

static void test_two_recorders_share_a_thread(void **state)
{
    struct recorder_rig a = {0};
    struct recorder_rig b = {0};

    (void)state;
    recorder_rig_init(&a, NULL);
    recorder_rig_init(&b, NULL);
    recorder_rig_start(&a);
    recorder_rig_start(&b);
    TP_BEGIN(a.client, a.kernel, "of a");
    TP_BEGIN(b.client, b.kernel, "of b");
    TP_END(a.client, a.kernel);
    TP_END(b.client, b.kernel);
    recorder_rig_expect(&a, "X ascend.KERNEL of a -/- 0+0\n");
    recorder_rig_expect(&b, "X ascend.KERNEL of b -/- 0+0\n");
    recorder_rig_fini(&a);
    recorder_rig_fini(&b);
}

static void test_names_are_told_once_a_trace(void **state)
{
    struct recorder_rig rig = {0};

    (void)state;
    recorder_rig_init(&rig, NULL);
    for (int trace = 0; trace < 2; trace++) {
        recorder_rig_start(&rig);
        for (int i = 0; i < 3; i++) {
            TP_INSTANT(rig.client, rig.kernel, "x");
            recorder_rig_drain(&rig);
        }
        recorder_rig_conserved(&rig, NULL);
        assert_int_equal(rig.drained[TP_TYPE_NONE], 2); /* of process and thread */
    }
    recorder_rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_out_of_range_are_refused),
        cmocka_unit_test(test_new_survives_every_allocation_failure),
        cmocka_unit_test(test_types_have_the_ids_of_the_hash),
        cmocka_unit_test(test_types_that_cannot_be_leave_none),
        cmocka_unit_test(test_the_client_that_is_off_is_no_recorder),
        cmocka_unit_test(test_a_start_without_an_arm_does_nothing),
        cmocka_unit_test(test_steps_start_and_stop_at_their_moment),
        cmocka_unit_test(test_steps_count_from_a_start_by_time),
        cmocka_unit_test(test_alarm_wakes_once_at_its_step),
        cmocka_unit_test(test_charged_events_are_dropped_ones),
        cmocka_unit_test(test_discarded_events_are_counted_nowhere),
        cmocka_unit_test(test_two_recorders_share_a_thread),
        cmocka_unit_test(test_names_are_told_once_a_trace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
