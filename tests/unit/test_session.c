/*
 * test_session.c - the life cycle is the one that is drawn, and nothing stays stuck.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/utf8.h"
#include "core/session.h"

static const struct tp_session_options limits = {.prepared_ns = 100,
                                                 .recording_ns = 1000,
                                                 .stopping_ns = 50};

static struct tp_session_time at(uint64_t ns)
{
    return (struct tp_session_time){ns, (int64_t)ns + 1000000};
}

/* A session in the given state, by the shortest way. */
static struct tp_session session_in(enum tp_session_state state)
{
    static const enum tp_session_state chain[] = {TP_SESSION_RECORDING,
                                                  TP_SESSION_STOPPING,
                                                  TP_SESSION_COMPLETE};
    struct tp_session s;

    tp_session_init(&s, &limits, at(0), "requested");
    if (state == TP_SESSION_FAILED || state == TP_SESSION_CANCELLED)
        assert_int_equal(tp_session_move(&s, state, at(0), "on the way", NULL), TP_OK);
    for (int i = 0; s.state != (int)state; i++)
        assert_int_equal(tp_session_move(&s, chain[i], at(0), "on the way", NULL),
                         TP_OK);
    return s;
}

static void test_all_pairs_of_states_follow_the_drawing(void **state)
{
    static const char *const drawn[TP_SESSION_STATES] = {
        [TP_SESSION_PREPARED] = ".R..FX", [TP_SESSION_RECORDING] = "..S.FX",
        [TP_SESSION_STOPPING] = "...CFX", [TP_SESSION_COMPLETE] = "......",
        [TP_SESSION_FAILED] = "......",   [TP_SESSION_CANCELLED] = "......",
    };

    (void)state;
    for (int from = 0; from < TP_SESSION_STATES; from++) {
        for (int to = 0; to < TP_SESSION_STATES; to++) {
            struct tp_session s = session_in((enum tp_session_state)from);
            bool is_allowed = drawn[from][to] != '.';
            size_t n_before = s.n_moves;
            int rc =
                tp_session_move(&s, (enum tp_session_state)to, at(5), "tried", NULL);

            if (rc != (is_allowed ? TP_OK : TP_ESTATE) ||
                s.state != (is_allowed ? to : from) ||
                s.n_moves != n_before + is_allowed)
                fail_msg("%s to %s", tp_session_state_name(from),
                         tp_session_state_name(to));
        }
    }
}

static void test_refused_move_says_why_and_changes_nothing(void **state)
{
    struct tp_session s = session_in(TP_SESSION_COMPLETE);
    struct tp_session before = s;
    struct tp_err err = {0};

    (void)state;
    assert_int_equal(tp_session_move(&s, TP_SESSION_RECORDING, at(9), "x", &err),
                     TP_ESTATE);
    assert_string_equal(err.message, "no move leads from 'complete' to 'recording'");
    assert_memory_equal(&s, &before, sizeof(s));
    assert_int_equal(tp_session_move(&s, (enum tp_session_state)17, at(9), "x", &err),
                     TP_EINVAL);
}

static void test_names_and_finality(void **state)
{
    (void)state;
    for (int i = 0; i < TP_SESSION_STATES; i++) {
        assert_int_equal(tp_session_state_find(tp_str_of(tp_session_state_name(i))), i);
        assert_int_equal(tp_session_state_is_final(i), i >= TP_SESSION_COMPLETE);
    }
    assert_int_equal(tp_session_state_find(tp_str_of("Recording")), -1);
    assert_string_equal(tp_session_state_name(6), "unknown");
}

static void test_the_history_tells_when_and_why(void **state)
{
    struct tp_session s;
    const struct tp_session_move *moves;
    int64_t wall_ns = 0;
    size_t n;

    (void)state;
    tp_session_init(&s, NULL, at(1), "requested by ci");
    tp_session_move(&s, TP_SESSION_RECORDING, at(2), "all producers are ready", NULL);
    tp_session_move(&s, TP_SESSION_STOPPING, at(3), "stopped by ci", NULL);
    tp_session_move(&s, TP_SESSION_COMPLETE, at(4), "all data is here", NULL);
    moves = tp_session_history(&s, &n);
    assert_int_equal(n, TP_SESSION_MAX_MOVES);
    assert_string_equal(moves[0].cause, "requested by ci");
    assert_int_equal(moves[2].to, TP_SESSION_STOPPING);
    assert_int_equal(moves[3].wall_ns, 1000004);
    assert_true(tp_session_entered_at(&s, TP_SESSION_RECORDING, &wall_ns));
    assert_int_equal(wall_ns, 1000002);
    assert_false(tp_session_entered_at(&s, TP_SESSION_FAILED, &wall_ns));
}

static void test_long_causes_are_cut_between_characters(void **state)
{
    struct tp_session s;
    char cause[400];

    (void)state;
    for (size_t i = 0; i + 2 < sizeof(cause); i += 2)
        memcpy(cause + i, "\xc3\xa4", 3);
    tp_session_init(&s, NULL, at(0), cause);
    assert_int_equal(strlen(s.moves[0].cause), TP_SESSION_CAUSE_BYTES - 2);
    assert_true(tp_utf8_is_valid(s.moves[0].cause, strlen(s.moves[0].cause)));
}

/* Only the passing of time, and the trace ends. */
static void test_deadlines_alone_lead_to_an_end_from_every_state(void **state)
{
    struct tp_session s = session_in(TP_SESSION_PREPARED);

    (void)state;
    assert_int_equal(tp_session_deadline_ns(&s), 100);
    assert_false(tp_session_tick(&s, at(99)));
    assert_true(tp_session_tick(&s, at(100)));
    assert_int_equal(s.state, TP_SESSION_FAILED);
    assert_string_equal(s.moves[1].cause, "not started in time");
    assert_false(tp_session_tick(&s, at(100000)));
    assert_true(tp_session_deadline_ns(&s) == TP_SESSION_NO_DEADLINE);

    s = session_in(TP_SESSION_RECORDING);
    assert_int_equal(tp_session_deadline_ns(&s), 1000);
    assert_true(tp_session_tick(&s, at(2000)));
    assert_int_equal(s.state, TP_SESSION_STOPPING);
    assert_int_equal(tp_session_deadline_ns(&s), 2050);
    assert_false(tp_session_tick(&s, at(2049)));
    assert_true(tp_session_tick(&s, at(2050)));
    assert_int_equal(s.state, TP_SESSION_COMPLETE);
    assert_string_equal(s.moves[3].cause, "the time to collect data was over");
}

static void test_a_deadline_can_be_replaced(void **state)
{
    struct tp_session s = session_in(TP_SESSION_PREPARED);
    enum tp_session_state to;
    const char *cause;

    (void)state;
    assert_int_equal(tp_session_set_deadline(&s, 40, TP_SESSION_RECORDING,
                                             "start time reached", NULL),
                     TP_OK);
    assert_false(tp_session_due(&s, 39, &to, &cause));
    assert_true(tp_session_due(&s, 40, &to, &cause));
    assert_int_equal(to, TP_SESSION_RECORDING);
    assert_string_equal(cause, "start time reached");
    assert_int_equal(s.state, TP_SESSION_PREPARED); /* asking moves nothing */
    assert_int_equal(tp_session_set_deadline(&s, 40, TP_SESSION_COMPLETE, "no", NULL),
                     TP_ESTATE);
    assert_true(tp_session_tick(&s, at(41)));
    assert_int_equal(s.state, TP_SESSION_RECORDING);
    assert_int_equal(tp_session_deadline_ns(&s), 1041);
    s = session_in(TP_SESSION_FAILED);
    assert_int_equal(tp_session_set_deadline(&s, 1, TP_SESSION_COMPLETE, "no", NULL),
                     TP_ESTATE);
}

static void test_no_limit_and_huge_limits_mean_no_deadline(void **state)
{
    const struct tp_session_options huge = {.prepared_ns = UINT64_MAX};
    struct tp_session s;

    (void)state;
    tp_session_init(&s, NULL, at(0), "x");
    assert_true(tp_session_deadline_ns(&s) == TP_SESSION_NO_DEADLINE);
    assert_false(tp_session_due(&s, UINT64_MAX, NULL, NULL));
    tp_session_init(&s, &huge, at(5), "x");
    assert_true(tp_session_deadline_ns(&s) == TP_SESSION_NO_DEADLINE);
}

static void test_a_stored_life_is_restored_in_every_state(void **state)
{
    (void)state;
    for (int i = 0; i < TP_SESSION_STATES; i++) {
        struct tp_session old = session_in((enum tp_session_state)i);
        struct tp_session s = {0};

        assert_int_equal(tp_session_restore(&s, &limits, old.moves, old.n_moves,
                                            at(5000), NULL),
                         TP_OK);
        if (s.state != i || s.n_moves != old.n_moves ||
            memcmp(s.moves, old.moves, sizeof(s.moves[0]) * s.n_moves) != 0)
            fail_msg("%s", tp_session_state_name(i));
        if (!tp_session_state_is_final(i))
            assert_true(tp_session_deadline_ns(&s) > 5000 &&
                        tp_session_deadline_ns(&s) <= 6000);
    }
}

static void test_impossible_lives_are_not_restored(void **state)
{
    struct tp_session_move moves[TP_SESSION_MAX_MOVES + 1] = {
        {TP_SESSION_PREPARED, 1, "a"}, {TP_SESSION_STOPPING, 2, "b"}};
    struct tp_session s = session_in(TP_SESSION_RECORDING);
    struct tp_session before = s;
    struct tp_err err = {0};

    (void)state;
    assert_int_equal(tp_session_restore(&s, NULL, moves, 2, at(0), &err), TP_EINVAL);
    assert_string_equal(err.message,
                        "stored move 1: no move leads from 'prepared' to 'stopping'");
    assert_int_equal(tp_session_restore(&s, NULL, moves, 0, at(0), &err), TP_EINVAL);
    assert_int_equal(tp_session_restore(&s, NULL, moves + 1, 1, at(0), &err),
                     TP_EINVAL);
    assert_int_equal(tp_session_restore(&s, NULL, moves, TP_SESSION_MAX_MOVES + 1,
                                        at(0), &err),
                     TP_EINVAL);
    assert_memory_equal(&s, &before, sizeof(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_pairs_of_states_follow_the_drawing),
        cmocka_unit_test(test_refused_move_says_why_and_changes_nothing),
        cmocka_unit_test(test_names_and_finality),
        cmocka_unit_test(test_the_history_tells_when_and_why),
        cmocka_unit_test(test_long_causes_are_cut_between_characters),
        cmocka_unit_test(test_deadlines_alone_lead_to_an_end_from_every_state),
        cmocka_unit_test(test_a_deadline_can_be_replaced),
        cmocka_unit_test(test_no_limit_and_huge_limits_mean_no_deadline),
        cmocka_unit_test(test_a_stored_life_is_restored_in_every_state),
        cmocka_unit_test(test_impossible_lives_are_not_restored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
