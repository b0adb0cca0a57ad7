/*
 * test_lanes.c - slices of a track nest on each lane.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/lanes.h"

static struct tp_lanes *new_lanes(void)
{
    struct tp_lanes *l;
    struct tp_err err;

    assert_int_equal(tp_lanes_new(1000, &l, &err), TP_OK);
    return l;
}

static uint32_t place(struct tp_lanes *l, uint32_t track, int64_t start, int64_t end)
{
    struct tp_err err;
    uint32_t lane = 99;

    assert_int_equal(tp_lanes_place(l, track, start, end, &lane, &err), TP_OK);
    return lane;
}

static void test_slices_that_nest_or_follow_share_a_lane(void **state)
{
    struct tp_lanes *l = new_lanes();

    (void)state;
    assert_int_equal(place(l, 3, 0, 10), 0);
    assert_int_equal(place(l, 3, 0, 10), 0); /* the same again lies inside */
    assert_int_equal(place(l, 3, 2, 4), 0);
    assert_int_equal(place(l, 3, 4, 4), 0);
    assert_int_equal(place(l, 3, 4, 10), 0);
    assert_int_equal(place(l, 3, 10, 10), 0);
    assert_int_equal(place(l, 3, 10, 12), 0);
    assert_int_equal(tp_lanes_stats(l).overlaps, 0);
    assert_int_equal(tp_lanes_count(l, 3), 1);
    assert_int_equal(tp_lanes_count(l, 2), 0);
    tp_lanes_free(l);
}

static void test_a_slice_that_crosses_goes_to_another_lane(void **state)
{
    struct tp_lanes *l = new_lanes();

    (void)state;
    assert_int_equal(place(l, 0, 0, 10), 0);
    assert_int_equal(place(l, 0, 5, 15), 1);
    assert_int_equal(place(l, 0, 7, 8), 0);
    assert_int_equal(place(l, 0, 9, 20), 2);
    assert_int_equal(place(l, 0, 16, 30), 0); /* lane 0 is free again */
    assert_int_equal(place(l, 1, 5, 15), 0);  /* another track */
    assert_int_equal(tp_lanes_stats(l).overlaps, 2);
    assert_int_equal(tp_lanes_stats(l).lanes_added, 2);
    tp_lanes_free(l);
}

static void test_a_slice_without_an_end_lies_in_no_other(void **state)
{
    struct tp_lanes *l = new_lanes();

    (void)state;
    assert_int_equal(place(l, 0, 0, 10), 0);
    assert_int_equal(place(l, 0, 1, INT64_MAX), 1);
    assert_int_equal(place(l, 0, 2, 30), 1);
    tp_lanes_free(l);
}

static void test_a_flow_finds_the_innermost_open_slice(void **state)
{
    static const struct {
        int64_t ts;
        int lane; /* -1: none */
    } cases[] = {{5, 1}, {6, 1}, {9, 1}, {10, 1}, {14, 1}, {15, -1}, {99, -1}};
    struct tp_lanes *l = new_lanes();

    (void)state;
    place(l, 0, 0, 10);
    place(l, 0, 5, 15);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint32_t lane = 77;
        bool found = tp_lanes_find(l, 0, cases[i].ts, &lane);

        if (found != (cases[i].lane >= 0) || (found && (int)lane != cases[i].lane))
            fail_msg("at %d: lane %u", (int)cases[i].ts, lane);
    }
    assert_false(tp_lanes_find(l, 500, 1, &(uint32_t){0}));
    tp_lanes_free(l);
}

static void test_a_slice_of_no_length_is_open_at_its_time_only(void **state)
{
    struct tp_lanes *l = new_lanes();
    uint32_t lane = 77;

    (void)state;
    place(l, 0, 5, 5);
    assert_true(tp_lanes_find(l, 0, 5, &lane));
    assert_int_equal(lane, 0);
    assert_false(tp_lanes_find(l, 0, 6, &lane));
    tp_lanes_free(l);
}

static void test_depth_and_lanes_are_bounded_and_nothing_is_refused(void **state)
{
    struct tp_lanes *l = new_lanes();

    (void)state;
    for (int i = 0; i < TP_LANES_DEPTH_MAX; i++)
        assert_int_equal(place(l, 0, i, 10000 - i), 0);
    assert_int_equal(place(l, 0, 300, 400), 1);
    for (int i = 0; i < TP_LANES_MAX + 5; i++)
        place(l, 1, i, 100000 + i);
    assert_int_equal(tp_lanes_count(l, 1), TP_LANES_MAX);
    assert_int_equal(tp_lanes_stats(l).crossings, 5);
    tp_lanes_free(l);
}

static void test_a_track_over_the_limit_is_refused(void **state)
{
    struct tp_lanes *l = new_lanes();
    struct tp_err err;
    uint32_t lane = 77;

    (void)state;
    assert_int_equal(tp_lanes_place(l, 1000, 0, 1, &lane, &err), TP_EQUOTA);
    assert_int_equal(lane, 77);
    assert_int_equal(place(l, 999, 0, 1), 0);
    tp_lanes_free(l);
}

static void test_placing_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_lanes *l = NULL;
        struct tp_err err;
        uint32_t lane;
        int rc;

        fault_arm(n);
        rc = tp_lanes_new(50, &l, &err);
        for (int i = 0; rc == TP_OK && i < 40; i++)
            rc = tp_lanes_place(l, (uint32_t)i, i, i + 10, &lane, &err);
        for (int i = 50; rc == TP_OK && i < 90; i++)
            rc = tp_lanes_place(l, 0, i, 1000 + i * (i & 1), &lane, &err);
        tp_lanes_free(l);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_that_nest_or_follow_share_a_lane),
        cmocka_unit_test(test_a_slice_that_crosses_goes_to_another_lane),
        cmocka_unit_test(test_a_slice_without_an_end_lies_in_no_other),
        cmocka_unit_test(test_a_flow_finds_the_innermost_open_slice),
        cmocka_unit_test(test_a_slice_of_no_length_is_open_at_its_time_only),
        cmocka_unit_test(test_depth_and_lanes_are_bounded_and_nothing_is_refused),
        cmocka_unit_test(test_a_track_over_the_limit_is_refused),
        cmocka_unit_test(test_placing_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
