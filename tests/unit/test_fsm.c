/*
 * test_fsm.c - a table decides; a refused move changes nothing and says why.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/fsm.h"

enum { OPEN, BUSY, SHUT, N_STATES };

static const struct tp_fsm_state table[N_STATES] = {
    [OPEN] = {"open", 1u << BUSY | 1u << SHUT},
    [BUSY] = {"busy", 1u << BUSY | 1u << OPEN},
    [SHUT] = {"shut", 0},
};

static void test_every_pair_of_states_follows_the_table(void **state)
{
    static const bool allowed[N_STATES][N_STATES] = {{false, true, true},
                                                     {true, true, false},
                                                     {false, false, false}};

    (void)state;
    for (int from = 0; from < N_STATES; from++) {
        for (int to = 0; to < N_STATES; to++) {
            int now = from;
            int rc = tp_fsm_move(table, N_STATES, &now, to, NULL);

            if (rc != (allowed[from][to] ? TP_OK : TP_ESTATE) ||
                now != (allowed[from][to] ? to : from) ||
                tp_fsm_allows(table, N_STATES, from, to) != allowed[from][to])
                fail_msg("from %s to %s", table[from].name, table[to].name);
        }
    }
}

static void test_refused_move_says_why_and_changes_nothing(void **state)
{
    struct tp_err err = {0};
    int now = SHUT;

    (void)state;
    assert_int_equal(tp_fsm_move(table, N_STATES, &now, OPEN, &err), TP_ESTATE);
    assert_string_equal(err.message, "no move leads from 'shut' to 'open'");
    assert_int_equal(now, SHUT);
}

static void test_values_that_are_no_state_are_refused(void **state)
{
    int now = OPEN;

    (void)state;
    assert_int_equal(tp_fsm_move(table, N_STATES, &now, N_STATES, NULL), TP_EINVAL);
    assert_int_equal(tp_fsm_move(table, N_STATES, &now, -1, NULL), TP_EINVAL);
    assert_int_equal(now, OPEN);
    assert_false(tp_fsm_allows(table, N_STATES, -1, OPEN));
    assert_false(tp_fsm_allows(table, N_STATES, OPEN, 40));
    assert_false(tp_fsm_is_final(table, N_STATES, 3));
}

static void test_names_and_states_find_each_other(void **state)
{
    (void)state;
    for (int i = 0; i < N_STATES; i++) {
        const char *name = tp_fsm_name(table, N_STATES, i);

        assert_int_equal(tp_fsm_find(table, N_STATES, name, strlen(name)), i);
        assert_int_equal(tp_fsm_is_final(table, N_STATES, i), i == SHUT);
    }
    assert_string_equal(tp_fsm_name(table, N_STATES, 9), "unknown");
    assert_int_equal(tp_fsm_find(table, N_STATES, "ope", 3), -1);
    assert_int_equal(tp_fsm_find(table, N_STATES, "", 0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair_of_states_follows_the_table),
        cmocka_unit_test(test_refused_move_says_why_and_changes_nothing),
        cmocka_unit_test(test_values_that_are_no_state_are_refused),
        cmocka_unit_test(test_names_and_states_find_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
