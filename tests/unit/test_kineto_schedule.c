/*
 * test_kineto_schedule.c - the earliest start that everybody can keep, and not earlier.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kineto/schedule.h"

#define S TP_KINETO_SECOND_NS
#define MS (S / 1000)

static void test_the_next_request_keeps_the_rhythm(void **state)
{
    static const struct {
        uint64_t from, next;
    } cases[] = {{90 * S, 105 * S},  {100 * S, 105 * S},     {100 * S + 1, 105 * S},
                 {105 * S, 105 * S}, {105 * S + 1, 110 * S}, {117 * S, 120 * S}};
    struct tp_kineto_rhythm r = {100 * S, 5 * S, 0, 0, false};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (tp_kineto_next_poll(&r, cases[i].from) != cases[i].next)
            fail_msg("from %llu", (unsigned long long)cases[i].from);
    }
}

static void test_the_common_start_waits_for_the_slowest(void **state)
{
    const struct tp_kineto_rhythm r[] = {{100 * S, 5 * S, 0, 0, false},
                                         {101 * S, 5 * S, 0, 0, false},
                                         {97 * S, 5 * S, 0, 0, false}};

    (void)state;
    /* At 101.5: they ask at 105, 106 and 102, and their ticks are on the second. */
    assert_int_equal(tp_kineto_common_start(r, 3, 101 * S + 500 * MS, 5 * S),
                     112 * S + 600 * MS);
    assert_int_equal(tp_kineto_common_start(r, 1, 101 * S, 0), 106 * S + 600 * MS);
    assert_int_equal(tp_kineto_common_start(r + 2, 1, 101 * S, 5 * S),
                     108 * S + 600 * MS);
    assert_int_equal(tp_kineto_common_start(NULL, 0, 101 * S, 5 * S), 108 * S);
}

/* One tick in the second before "start less warm-up" must find both conditions of
 * libkineto to hold, with some time to spare on both sides. */
static void test_the_start_keeps_away_from_ticks(void **state)
{
    (void)state;
    for (uint64_t phase = 0; phase < S; phase += 10 * MS) {
        const struct tp_kineto_rhythm r = {100 * S, 5 * S, 50 * S + phase, 0, false};
        uint64_t at = tp_kineto_common_start(&r, 1, 101 * S, 5 * S) - 5 * S;
        uint64_t apart = (at - r.tick_ns) % S;

        if (apart < 190 * MS || apart > 810 * MS || at < 106 * S + 600 * MS ||
            at > 107 * S)
            fail_msg("phase %llu ms: %llu ms apart", (unsigned long long)(phase / MS),
                     (unsigned long long)(apart / MS));
    }
}

/* Whatever the phase: away from its ticks, and never later than was asked for. */
static void test_a_chosen_start_is_kept_or_a_little_sooner(void **state)
{
    (void)state;
    for (uint64_t tick = 0; tick < 1000; tick += 10) {
        const struct tp_kineto_rhythm known = {100 * S, 5 * S, 90 * S + tick * MS, 0,
                                               false};
        const struct tp_kineto_rhythm asks = {100 * S + tick * MS, 5 * S, 0, 0, false};
        uint64_t sooner = tp_kineto_sooner(&known, 101 * S, 160 * S, 5 * S);
        uint64_t apart = (60 * S - sooner + 10 * S - tick * MS) % S;

        if (sooner > TP_KINETO_CHOICE_NS || apart < 200 * MS || apart > 800 * MS)
            fail_msg("tick %d: %d ms sooner", (int)tick, (int)(sooner / MS));
        if (tp_kineto_sooner(&asks, 101 * S, 160 * S, 5 * S) != sooner)
            fail_msg("tick %d, of one that is not known", (int)tick);
    }
    assert_int_equal(tp_kineto_sooner(&(struct tp_kineto_rhythm){S, 5 * S, S, 0, false},
                                      S, 0, 0),
                     0);
}

/* Near its ticks or not: it has a fifth of a second beyond its next request, or all
 * that the chosen start leaves. */
static void test_a_start_that_is_near_stays_in_reach(void **state)
{
    (void)state;
    for (uint64_t ms = 1000; ms < 2000; ms += 7) {
        uint64_t start = 105 * S + ms * MS + 3 * S;

        for (uint64_t tick = 0; tick < 1000; tick += 10) {
            const struct tp_kineto_rhythm r = {100 * S, 5 * S, 90 * S + tick * MS, 0,
                                               false};
            uint64_t sooner = tp_kineto_sooner(&r, 101 * S, start, 3 * S);

            if (sooner > 0 &&
                tp_kineto_serve_until(start - sooner, 3 * S) < 105 * S + 200 * MS)
                fail_msg("%d ms, tick %d: %d ms sooner", (int)ms, (int)tick,
                         (int)(sooner / MS));
        }
    }
}

static void test_one_process_without_warmup_starts_within_eight_seconds(void **state)
{
    const struct tp_kineto_rhythm r = {100 * S, 5 * S, 0, 0, false};

    (void)state;
    for (uint64_t now = 100 * S; now < 105 * S; now += 10 * MS) {
        uint64_t start = tp_kineto_common_start(&r, 1, now, 0);

        if (start - now > 8 * S || start - now < 1600 * MS)
            fail_msg("%llu ms", (unsigned long long)((start - now) / MS));
    }
}

static void test_a_start_can_be_kept_when_it_is_served_in_time(void **state)
{
    (void)state;
    /* Kineto's tick comes within a second; then the warm-up must still fit. */
    assert_int_equal(tp_kineto_serve_until(100 * S, 5 * S), 93 * S + 800 * MS);
    assert_int_equal(tp_kineto_serve_until(100 * S, 0), 98 * S + 800 * MS);
    assert_int_equal(tp_kineto_serve_until(2 * S, 5 * S), 0);
    assert_true(tp_kineto_serve_until(tp_kineto_safe_start(50 * S, 5 * S), 5 * S) >=
                50 * S);
}

static void test_a_start_is_kept_with_a_margin_only(void **state)
{
    const struct tp_kineto_rhythm r = {100 * S, 5 * S, 0, 0, false};

    (void)state;
    assert_true(tp_kineto_can_keep(&r, 101 * S, 108 * S + 400 * MS, 2 * S));
    assert_false(tp_kineto_can_keep(&r, 101 * S, 108 * S + 399 * MS, 2 * S));
    for (uint64_t from = 100 * S; from < 105 * S; from += 10 * MS)
        assert_true(tp_kineto_can_keep(
            &r, from, tp_kineto_common_start(&r, 1, from, 2 * S), 2 * S));
}

static void test_an_interval_of_its_own_is_learnt(void **state)
{
    struct tp_kineto_rhythm r = {100 * S, 5 * S, 0, 0, false};

    (void)state;
    tp_kineto_rhythm_note(&r, 105 * S + 90 * MS); /* jitter */
    assert_int_equal(r.interval_ns, 5 * S);
    tp_kineto_rhythm_note(&r, 105 * S + 200 * MS); /* sent twice */
    assert_int_equal(r.interval_ns, 5 * S);
    assert_int_equal(r.last_ns, 105 * S + 200 * MS);
    tp_kineto_rhythm_note(&r, 107 * S + 200 * MS); /* once is no setting */
    assert_int_equal(r.interval_ns, 5 * S);
    tp_kineto_rhythm_note(&r, 109 * S + 200 * MS); /* another setting */
    assert_int_equal(r.interval_ns, 2 * S);
    tp_kineto_rhythm_note(&r, 300 * S); /* it was stopped */
    assert_int_equal(r.interval_ns, 2 * S);
    assert_int_equal(r.last_ns, 300 * S);
}

/* One request that is missed delays no start, and neither does a pause. */
static void test_a_longer_interval_is_learnt_when_it_comes_twice(void **state)
{
    struct tp_kineto_rhythm r = {100 * S, 5 * S, 0, 0, false};

    (void)state;
    tp_kineto_rhythm_note(&r, 118 * S);
    assert_int_equal(r.interval_ns, 5 * S);
    assert_true(tp_kineto_common_start(&r, 1, 119 * S, 0) <= 119 * S + 8 * S);
    tp_kineto_rhythm_note(&r, 123 * S);
    tp_kineto_rhythm_note(&r, 141 * S); /* a second one, but not in a row */
    assert_int_equal(r.interval_ns, 5 * S);
    tp_kineto_rhythm_note(&r, 160 * S);
    assert_int_equal(r.interval_ns, 19 * S);
    tp_kineto_rhythm_note(&r, 165 * S);
    tp_kineto_rhythm_note(&r, 170 * S);
    assert_int_equal(r.interval_ns, 5 * S);
}

/* A start that is planned by it would be too early for the next request. */
static void test_one_early_request_plans_no_start_too_early(void **state)
{
    struct tp_kineto_rhythm r = {105 * S, 5 * S, 0, 0, false};

    (void)state;
    tp_kineto_rhythm_note(&r, 108 * S);
    tp_kineto_rhythm_note(&r, 110 * S);
    tp_kineto_rhythm_note(&r, 115 * S);
    assert_true(tp_kineto_common_start(&r, 1, 115 * S + 400 * MS, 0) >= 120 * S);
}

/* So that one request may be missed; a start as early as can be is held by nothing. */
static void test_an_order_is_held_for_two_requests_before_the_safe_time(void **state)
{
    const struct tp_kineto_rhythm r = {100 * S, 5 * S, 0, 0, false};

    (void)state;
    assert_int_equal(tp_kineto_hold_until(&r, 200 * S, 6 * S), 182 * S);
    assert_int_equal(tp_kineto_hold_until(&r, 17 * S, 5 * S), 0);
    for (uint64_t now = 100 * S; now < 105 * S; now += 100 * MS) {
        uint64_t start = tp_kineto_common_start(&r, 1, now, 5 * S);

        if (tp_kineto_hold_until(&r, start, 5 * S) > now)
            fail_msg("held at %llu ms", (unsigned long long)(now / MS));
    }
}

/* It reads the answer to its last request at the next one. */
static void test_one_that_is_behind_is_told_a_request_later(void **state)
{
    const struct tp_kineto_rhythm r = {100 * S, 5 * S, 0, 0, true};
    const struct tp_kineto_rhythm both[] = {{100 * S, 5 * S, 0, 0, true},
                                            {104 * S, 5 * S, 0, 0, false}};

    (void)state;
    assert_int_equal(tp_kineto_next_poll(&r, 101 * S), 105 * S);
    assert_int_equal(tp_kineto_next_answer(&r, 101 * S), 110 * S);
    assert_int_equal(tp_kineto_next_answer(&r, 107 * S), 110 * S);
    assert_int_equal(tp_kineto_next_answer(&r, 111 * S), 115 * S);
    assert_int_equal(tp_kineto_next_answer(&both[1], 105 * S), 109 * S);
    assert_int_equal(tp_kineto_common_start(&r, 1, 101 * S, 0), 111 * S + 600 * MS);
    assert_true(tp_kineto_common_start(both, 2, 105 * S, 0) >=
                110 * S + TP_KINETO_MARGIN_NS - TP_KINETO_CHOICE_NS);
    assert_int_equal(tp_kineto_hold_until(&r, 200 * S, 6 * S), 177 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_next_request_keeps_the_rhythm),
        cmocka_unit_test(test_the_common_start_waits_for_the_slowest),
        cmocka_unit_test(test_one_that_is_behind_is_told_a_request_later),
        cmocka_unit_test(test_the_start_keeps_away_from_ticks),
        cmocka_unit_test(test_a_chosen_start_is_kept_or_a_little_sooner),
        cmocka_unit_test(test_a_start_that_is_near_stays_in_reach),
        cmocka_unit_test(test_one_process_without_warmup_starts_within_eight_seconds),
        cmocka_unit_test(test_a_start_can_be_kept_when_it_is_served_in_time),
        cmocka_unit_test(test_a_start_is_kept_with_a_margin_only),
        cmocka_unit_test(test_an_interval_of_its_own_is_learnt),
        cmocka_unit_test(test_a_longer_interval_is_learnt_when_it_comes_twice),
        cmocka_unit_test(test_one_early_request_plans_no_start_too_early),
        cmocka_unit_test(test_an_order_is_held_for_two_requests_before_the_safe_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
