/*
 * Ticks are nanoseconds of CLOCK_MONOTONIC that began at the wall clock, never step and
 * come back from nanoseconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <traceplane/traceplane.h>

#include "producer/ticks.h"

static uint64_t read_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void test_now_is_about_the_wall_clock(void **state)
{
    uint64_t before = read_clock(CLOCK_REALTIME), now = tp_now();

    (void)state;
    assert_in_range(now, before - 1000000000, read_clock(CLOCK_REALTIME) + 1000000000);
}

/* A reading, and the monotonic clock before and after it: others may run in between. */
struct reading {
    uint64_t before, now, after;
};

static struct reading read_now(void)
{
    struct reading r;

    r.before = read_clock(CLOCK_MONOTONIC);
    r.now = tp_now();
    r.after = read_clock(CLOCK_MONOTONIC);
    return r;
}

static void test_now_advances_as_the_monotonic_clock(void **state)
{
    const struct timespec pause = {0, 20000000};
    struct reading first, last;

    (void)state;
    tp_ticks_init();
    nanosleep(&pause, NULL);
    tp_ticks_calibrate();
    first = read_now();
    nanosleep(&pause, NULL);
    last = read_now();
    assert_in_range(last.now - first.now, last.before - first.after - 5000000,
                    last.after - first.before + 5000000);
}

static void test_calibration_never_steps(void **state)
{
    uint64_t before = tp_now();

    (void)state;
    for (int i = 0; i < 10000; i++) {
        uint64_t now;

        if (i % 100 == 0)
            tp_ticks_calibrate();
        now = tp_now();
        assert_true(now >= before);
        before = now;
    }
}

/* The first measurement takes 0.1 ms and is as good as that; later ones are over all
 * the time since, as a trace that lasts for an hour needs it. */
static void test_the_rate_is_measured_again_when_that_makes_it_better(void **state)
{
    const struct timespec pause = {0, 20000000};
    const struct tp_ticks_line *first = tp_ticks_line(), *second;

    (void)state;
    nanosleep(&pause, NULL);
    tp_ticks_calibrate();
    second = tp_ticks_line();
    assert_ptr_not_equal(first, second);
    assert_true(second->ticks > first->ticks && second->ns > first->ns);
}

static void test_ticks_and_nanoseconds_are_inverse(void **state)
{
    static const struct tp_ticks_line lines[] = {
        {1000, 5000, 1ULL << 32},                           /* one to one */
        {123456789012345, 1795982590884123457, 2049000000}, /* 2.1 GHz */
        {UINT64_MAX - 5, 1795982590884123457, 10ULL << 32}, /* about to wrap, 0.1 GHz */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        for (int64_t s = -3600; s <= 3600; s += 900) {
            uint64_t ns = lines[i].ns + (uint64_t)(s * 1000000000);
            uint64_t back = tp_ticks_ns(&lines[i], tp_ticks_at(&lines[i], ns));

            if (back - (ns - 20) > 40)
                fail_msg("line %zu, %lld s: off by %lld ns", i, (long long)s,
                         (long long)(back - ns));
        }
    }
}

/* The choice is made once in a process, so another one makes the other. */
static void test_the_monotonic_clock_can_be_chosen(void **state)
{
    int status = 0;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        uint64_t before, now;

        setenv("TRACEPLANE_CLOCK", "monotonic", 1);
        before = read_clock(CLOCK_MONOTONIC);
        tp_ticks_init();
        now = tp_ticks_now();
        _exit(!tp_ticks_are_tsc && now >= before &&
                      now <= read_clock(CLOCK_MONOTONIC) &&
                      tp_ticks_line()->mult == 1ULL << 32 &&
                      tp_now() >= read_clock(CLOCK_REALTIME) - 1000000000
                  ? 0
                  : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, while this process has not chosen yet. */
        cmocka_unit_test(test_the_monotonic_clock_can_be_chosen),
        cmocka_unit_test(test_the_rate_is_measured_again_when_that_makes_it_better),
        cmocka_unit_test(test_now_is_about_the_wall_clock),
        cmocka_unit_test(test_now_advances_as_the_monotonic_clock),
        cmocka_unit_test(test_calibration_never_steps),
        cmocka_unit_test(test_ticks_and_nanoseconds_are_inverse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
