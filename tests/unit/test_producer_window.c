/*
 * Which events are of a trace by their times: what began between its start and its
 * stop, and is long enough.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/recorder_rig.h"

/* What a program says the time of is counted when it is left out; what it recorded too
 * early is as good as not recorded. */
static void test_only_what_begins_in_the_window_is_kept(void **state)
{
    struct recorder_rig rig = {0};
    struct tp_typeset types = {0};
    struct tp_interval when = {.duration_ns = 5};
    struct tp_flow_point point = {.id = 1};
    struct tp_recorder_totals totals;
    uint64_t begin = tp_now() + 1000000000; /* one that does not come */

    (void)state;
    recorder_rig_init(&rig, NULL);
    tp_typeset_add(&types, rig.kernel);
    tp_recorder_arm(rig.recorder, &types, 0);
    tp_recorder_start(rig.recorder, begin);
    TP_INSTANT(rig.client, rig.kernel, "early");
    for (int i = -1; i <= 2; i++) {
        when.start_ns = begin + (uint64_t)(int64_t)(i * 100);
        TP_COMPLETE(rig.client, rig.kernel, "at", &when, TP_INT("i", i));
    }
    when.start_ns = 12345; /* of another clock */
    TP_COMPLETE(rig.client, rig.kernel, "long ago", &when);
    tp_flow(rig.client, rig.kernel, TP_NAME("now, too early"), &point);
    point.time_ns = 12345;
    tp_flow(rig.client, rig.kernel, TP_NAME("long ago"), &point);
    tp_recorder_stop(rig.recorder, begin + 100);
    rig.drain.is_last = true;
    recorder_rig_drain(&rig);
    assert_int_equal(rig.n_drained, 2);
    recorder_rig_conserved(&rig, NULL);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.emitted[rig.kernel], 6);
    assert_int_equal(totals.filtered[rig.kernel], 4);
    assert_int_equal(tp_recorder_first_ns(rig.recorder), begin);
    recorder_rig_expect(&rig, "X ascend.KERNEL at -/- 0+0 i=0\n"
                              "X ascend.KERNEL at -/- 0+0 i=1\n");
    recorder_rig_fini(&rig);
}

/* No stop was known when it was taken, and the stop came before its time. */
static void test_what_has_not_begun_is_left_out_before_the_stop(void **state)
{
    static const uint64_t ahead_ns[] = {600000000000, 3 * UINT64_C(86400000000000), 0};
    struct recorder_rig rig = {0};
    struct tp_interval when = {.duration_ns = 5};
    struct tp_flow_point point = {.id = 1};
    struct tp_recorder_totals totals;

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    for (int i = 0; i < 3; i++) {
        when.start_ns = ahead_ns[i] == 0 ? UINT64_MAX : tp_now() + ahead_ns[i];
        TP_COMPLETE(rig.client, rig.kernel, "to come", &when);
        point.time_ns = when.start_ns & INT64_MAX;
        tp_flow(rig.client, rig.kernel, TP_NAME("to come"), &point);
    }
    when.start_ns = tp_now();
    when.duration_ns = 600000000000;
    TP_COMPLETE(rig.client, rig.kernel, "has begun", &when);
    recorder_rig_drain(&rig);
    assert_int_equal(rig.n_drained, 1);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.emitted[rig.kernel], 7);
    assert_int_equal(totals.filtered[rig.kernel], 6);
    recorder_rig_conserved(&rig, NULL);
    recorder_rig_expect(&rig, "X ascend.KERNEL has begun -/- 0+0\n");
    recorder_rig_fini(&rig);
}

static void test_short_slices_are_filtered_and_counted(void **state)
{
    struct recorder_rig rig = {0};
    struct tp_typeset types = {0};
    struct tp_interval when = {.duration_ns = 999};
    struct tp_recorder_totals totals;

    (void)state;
    recorder_rig_init(&rig, NULL);
    tp_typeset_add(&types, rig.kernel);
    tp_recorder_arm(rig.recorder, &types, 1000);
    tp_recorder_start(rig.recorder, tp_now());
    when.start_ns = tp_now();
    TP_COMPLETE(rig.client, rig.kernel, "short", &when);
    when.duration_ns = 1000;
    TP_COMPLETE(rig.client, rig.kernel, "long", &when);
    TP_INSTANT(rig.client, rig.kernel, "has no duration");
    recorder_rig_conserved(&rig, NULL);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.emitted[rig.kernel], 3);
    assert_int_equal(totals.filtered[rig.kernel], 1);
    recorder_rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_begins_in_the_window_is_kept),
        cmocka_unit_test(test_what_has_not_begun_is_left_out_before_the_stop),
        cmocka_unit_test(test_short_slices_are_filtered_and_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
