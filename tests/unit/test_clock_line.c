/*
 * From a producer's clock to the service's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "support/fault.h"
#include "trace/clock_line.h"

#define S UINT64_C(1000000000)
#define HOUR (3600 * S)
#define NOW (UINT64_C(1790000000) * S)

/* A clock that is off and drifts: what it shows when the service's shows `at`. */
static uint64_t shifted(uint64_t at, int64_t offset_ns, int64_t ppm)
{
    return at + (uint64_t)offset_ns +
           (uint64_t)((int64_t)(at - NOW) / 1000000 * ppm); /* at is in whole us */
}

/* The next of a sequence of numbers that look random. */
static uint64_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void add(struct tp_clock_line *line, uint64_t p, uint64_t s, uint64_t e)
{
    struct tp_native_clock c = {p, s, e};

    assert_int_equal(tp_clock_line_add(line, &c, NULL), TP_OK);
}

/* Whatever the clock, what is mapped is right within the bound that is told. */
static void test_times_come_out_within_the_bound(void **state)
{
    static const int64_t offsets[] = {0, 1000, -(int64_t)HOUR, (int64_t)HOUR};
    static const int64_t drifts[] = {0, 100, -100};

    (void)state;
    uint32_t random = 7;
    for (size_t k = 0; k < 12; k++) {
        int64_t offset = offsets[k / 3], ppm = drifts[k % 3];
        struct tp_clock_line line = {0};
        uint64_t bound;

        for (uint64_t t = 2; t <= 60; t += 7) {
            uint64_t error = 20000 + next(&random) % 100000;
            uint64_t wrong = next(&random) % error;
            uint64_t at = NOW + t * S;

            add(&line, shifted(at, offset, ppm), at + wrong - error / 2, error);
        }
        tp_clock_line_finish(&line);
        assert_int_equal(line.n_left_out, 0);
        bound = tp_clock_line_error(&line, (int64_t)shifted(NOW, offset, ppm),
                                    (int64_t)shifted(NOW + 70 * S, offset, ppm));
        assert_true(bound < 1000000);
        for (uint64_t at = NOW; at <= NOW + 70 * S; at += S / 10) {
            int64_t got = tp_clock_line_map(&line, (int64_t)shifted(at, offset, ppm));
            int64_t off = got - (int64_t)at;

            if ((uint64_t)llabs(off) > bound)
                fail_msg("case %zu, %llu: off by %lld, bound %llu", k,
                         (unsigned long long)(at - NOW), (long long)off,
                         (unsigned long long)bound);
        }
        tp_clock_line_fini(&line);
    }
}

static void test_order_is_kept(void **state)
{
    struct tp_clock_line line = {0};
    int64_t before = INT64_MIN;

    (void)state;
    for (uint64_t i = 0; i < 5; i++)
        add(&line, 1000 + 3 * S * i, 5000 + 3 * S * i + (i % 2) * 2500000, 4000000);
    tp_clock_line_finish(&line);
    assert_int_equal(line.n, 5);
    for (int64_t t = 0; t < (int64_t)(14 * S); t += 999983) {
        int64_t got = tp_clock_line_map(&line, t);

        assert_true(got >= before);
        before = got;
    }
    for (size_t i = 0; i < line.n; i++) {
        int64_t p = (int64_t)line.points[i].producer_ns;

        assert_int_equal(tp_clock_line_map(&line, p), line.points[i].server_ns);
        assert_true(tp_clock_line_map(&line, p - 1) <= tp_clock_line_map(&line, p));
        assert_true(tp_clock_line_map(&line, p + 1) >= tp_clock_line_map(&line, p));
    }
    tp_clock_line_fini(&line);
}

static void test_points_that_contradict_are_left_out(void **state)
{
    struct tp_clock_line line = {0};

    (void)state;
    add(&line, NOW, NOW + 5, 10);
    add(&line, NOW + 20 * S, NOW + 20 * S + 7, 10);
    add(&line, NOW + 10 * S, NOW + 11 * S, 10);     /* a second off */
    add(&line, NOW + 12 * S, NOW - 5 * S, 10);      /* back in time */
    add(&line, NOW + 10 * S, NOW + 10 * S + 6, 10); /* once more at the same moment */
    tp_clock_line_finish(&line);
    assert_int_equal(line.n, 3);
    assert_int_equal(line.n_left_out, 2);
    assert_int_equal(tp_clock_line_map(&line, (int64_t)(NOW + 10 * S)),
                     NOW + 10 * S + 6);
    tp_clock_line_fini(&line);
}

/* Ten times what a bad crystal has is believed, and what the errors explain. */
static void test_a_drift_over_1_in_1000_is_left_out(void **state)
{
    static const struct {
        int64_t off_ns;
        uint64_t error_ns;
        unsigned n_left_out;
    } of[] = {{9990000, 1000, 0},
              {-9990000, 1000, 0},
              {10010000, 1000, 1},
              {-10010000, 1000, 1},
              {10010000, 10000, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        struct tp_clock_line line = {0};

        add(&line, NOW, NOW, of[i].error_ns);
        add(&line, NOW + 10 * S, NOW + 10 * S + (uint64_t)of[i].off_ns, of[i].error_ns);
        tp_clock_line_finish(&line);
        if (line.n_left_out != of[i].n_left_out)
            fail_msg("%lld ns in 10 s, give or take %llu: %llu left out",
                     (long long)of[i].off_ns, (unsigned long long)of[i].error_ns,
                     (unsigned long long)line.n_left_out);
        tp_clock_line_fini(&line);
    }
}

static void test_outside_of_the_points_the_mean_slope_holds(void **state)
{
    struct tp_clock_line line = {0};

    (void)state;
    add(&line, NOW, NOW, 10);
    add(&line, NOW + 10 * S, NOW + 10 * S, 10);
    add(&line, NOW + 20 * S, NOW + 20 * S + 2000000, 10); /* 0 and 200 ppm */
    tp_clock_line_finish(&line);
    assert_in_range(tp_clock_line_map(&line, (int64_t)(NOW + 30 * S)),
                    NOW + 30 * S + 2999000, NOW + 30 * S + 3001000);
    assert_in_range(tp_clock_line_map(&line, (int64_t)(NOW - 10 * S)),
                    NOW - 10 * S - 1001000, NOW - 10 * S - 999000);
    tp_clock_line_fini(&line);
}

static void test_absurd_times_saturate(void **state)
{
    struct tp_clock_line line = {0};

    (void)state;
    add(&line, TP_NATIVE_CLOCK_MAX - 1, TP_NATIVE_CLOCK_MAX - 1, UINT64_MAX);
    tp_clock_line_finish(&line);
    assert_int_equal(tp_clock_line_map(&line, INT64_MAX), INT64_MAX);
    assert_true(tp_clock_line_map(&line, INT64_MIN) < 0);
    assert_int_equal(tp_clock_line_error(&line, INT64_MIN, INT64_MAX), UINT64_MAX);
    tp_clock_line_fini(&line);
    add(&line, 0, TP_NATIVE_CLOCK_MAX - 1, 0);
    tp_clock_line_finish(&line);
    assert_int_equal(tp_clock_line_map(&line, INT64_MAX), INT64_MAX);
    tp_clock_line_map(&line, INT64_MIN);
    tp_clock_line_fini(&line);
}

static void test_points_are_bounded_and_the_best_are_kept(void **state)
{
    struct tp_clock_line line = {0};

    (void)state;
    for (uint64_t i = 0; i < 20000; i++)
        add(&line, NOW + i * S / 2, NOW + i * S / 2, i % 2 == 0 ? 1000 : 50);
    tp_clock_line_finish(&line);
    assert_true(line.n > 1000 && line.n <= TP_CLOCK_POINTS_MAX);
    assert_int_equal(line.points[line.n / 2].error_ns, 50);
    tp_clock_line_fini(&line);
}

static void test_line_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_clock_line line = {0};
        int rc = TP_OK;

        fault_arm(n);
        for (uint64_t i = 0; i < 40 && rc == TP_OK; i++) {
            struct tp_native_clock c = {NOW + i * S, NOW + i * S, 5};

            rc = tp_clock_line_add(&line, &c, NULL);
        }
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_clock_line_fini(&line);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        tp_clock_line_finish(&line);
        tp_clock_line_fini(&line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_come_out_within_the_bound),
        cmocka_unit_test(test_order_is_kept),
        cmocka_unit_test(test_points_that_contradict_are_left_out),
        cmocka_unit_test(test_a_drift_over_1_in_1000_is_left_out),
        cmocka_unit_test(test_outside_of_the_points_the_mean_slope_holds),
        cmocka_unit_test(test_absurd_times_saturate),
        cmocka_unit_test(test_points_are_bounded_and_the_best_are_kept),
        cmocka_unit_test(test_line_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
