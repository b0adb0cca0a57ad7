/*
 * test_kineto_start.c - the promise about the time from a request to its start, for
 * every moment at which processes may ask and look, and with what libkineto does then:
 *
 *   start <= the next request of the slowest + warm-up + 2 s,  and everyone keeps it
 *
 * Processes are simulated: no clock is read, and nothing is left to chance.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kineto/schedule.h"

#define S TP_KINETO_SECOND_NS
#define MS (S / 1000)
#define NOW (1000 * S)
#define LEAD (150 * MS) /* the engine's: until then nobody can be told */
#define MOST 16

static const uint64_t warmups[] = {0, S, 5 * S, 30 * S};

#define N_WARMUPS (sizeof(warmups) / sizeof(warmups[0]))

/* The first tick of a process after it was told; then one comes each second. */
static uint64_t first_tick(const struct tp_kineto_rhythm *r, uint64_t told_ns)
{
    uint64_t phase_ns = r->tick_ns != 0 ? r->tick_ns % S : told_ns % S;
    uint64_t at_ns = told_ns - told_ns % S + phase_ns;

    return at_ns > told_ns ? at_ns : at_ns + S;
}

/* What libkineto does: at the first tick from which the next one would come too late it
 * begins, if the warm-up still fits; else it drops the request. */
static bool keeps(const struct tp_kineto_rhythm *r, uint64_t told_ns, uint64_t start_ns,
                  uint64_t warmup_ns, uint64_t late_ns)
{
    for (uint64_t at_ns = first_tick(r, told_ns) + late_ns;; at_ns += S) {
        if (at_ns + S >= start_ns - warmup_ns)
            return start_ns >= at_ns + warmup_ns;
    }
}

/* The start of all; fails when it is later than promised, or one cannot keep it though
 * its ticks are late_ns late. */
static uint64_t expect_start(const struct tp_kineto_rhythm *r, size_t n,
                             uint64_t warmup_ns, uint64_t late_ns)
{
    uint64_t start_ns = tp_kineto_common_start(r, n, NOW + LEAD, warmup_ns);
    uint64_t slowest_ns = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t told_ns = tp_kineto_next_poll(&r[i], NOW + LEAD);

        slowest_ns = told_ns > slowest_ns ? told_ns : slowest_ns;
        if (told_ns > tp_kineto_serve_until(start_ns, warmup_ns))
            fail_msg("%zu of %zu is told too late for its start", i, n);
        if (!keeps(&r[i], told_ns, start_ns, warmup_ns, late_ns))
            fail_msg("%zu of %zu, asks at %llu ms, ticks at %llu ms: drops a start at "
                     "%llu ms with a warm-up of %llu ms",
                     i, n, (unsigned long long)(told_ns / MS),
                     (unsigned long long)(r[i].tick_ns / MS),
                     (unsigned long long)(start_ns / MS),
                     (unsigned long long)(warmup_ns / MS));
    }
    if (start_ns > slowest_ns + warmup_ns + 2 * S)
        fail_msg("%zu processes start %llu ms after the slowest has asked", n,
                 (unsigned long long)((start_ns - slowest_ns) / MS));
    return start_ns;
}

static void test_one_process_keeps_it_whenever_it_asks_and_ticks(void **state)
{
    (void)state;
    for (uint64_t ago = 0; ago < 5 * S; ago += 10 * MS) {
        for (uint64_t tick = 0; tick <= S; tick += 20 * MS) {
            const struct tp_kineto_rhythm r = {.last_ns = NOW - ago,
                                               .interval_ns = 5 * S,
                                               .tick_ns =
                                                   tick == 0 ? 0 : NOW - 7 * S + tick};

            for (size_t w = 0; w < N_WARMUPS; w++)
                expect_start(&r, 1, warmups[w], 0);
        }
    }
}

static void test_one_process_keeps_it_with_ticks_that_are_late(void **state)
{
    (void)state;
    for (uint64_t ago = 0; ago < 5 * S; ago += 10 * MS) {
        for (uint64_t late = 0; late <= 150 * MS; late += 50 * MS) {
            const struct tp_kineto_rhythm r = {.last_ns = NOW - ago,
                                               .interval_ns = 5 * S};

            expect_start(&r, 1, 0, late);
        }
    }
}

/* 5 s until it asks, 2 s, and the folder that has to be made before. */
static void test_one_without_warmup_starts_within_eight_seconds(void **state)
{
    uint64_t worst_ns = 0;

    (void)state;
    for (uint64_t ago = 0; ago < 5 * S; ago += MS) {
        const struct tp_kineto_rhythm r = {.last_ns = NOW - ago, .interval_ns = 5 * S};
        uint64_t ns = expect_start(&r, 1, 0, 0) - NOW;

        worst_ns = ns > worst_ns ? ns : worst_ns;
    }
    if (worst_ns > 8 * S)
        fail_msg("%llu ms", (unsigned long long)(worst_ns / MS));
    assert_true(worst_ns > 6 * S); /* so the loop has seen the worst */
}

/* Any set of processes; the numbers are those of a fixed sequence. */
static void test_many_keep_it_together(void **state)
{
    uint64_t random = 12345;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct tp_kineto_rhythm r[MOST];
        size_t n = 1 + (size_t)round % MOST;

        for (size_t i = 0; i < n; i++) {
            uint64_t ago, tick;

            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            ago = (random >> 33) % 5000;
            tick = (random >> 20) % 1000;
            r[i] = (struct tp_kineto_rhythm){.last_ns = NOW - ago * MS,
                                             .interval_ns = 5 * S,
                                             .tick_ns = NOW - 9 * S + tick * MS};
        }
        expect_start(r, n, warmups[(size_t)round % N_WARMUPS], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_process_keeps_it_whenever_it_asks_and_ticks),
        cmocka_unit_test(test_one_process_keeps_it_with_ticks_that_are_late),
        cmocka_unit_test(test_one_without_warmup_starts_within_eight_seconds),
        cmocka_unit_test(test_many_keep_it_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
