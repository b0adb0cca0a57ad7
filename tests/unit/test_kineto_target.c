/*
 * test_kineto_target.c - the life of a process is as drawn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "kineto/target.h"

static void test_every_pair_of_states_follows_the_drawing(void **state)
{
    static const char *const allowed[TP_KINETO_STATES] = {[TP_KINETO_IDLE] = "iablg",
                                                          [TP_KINETO_ARMED] = "ibg",
                                                          [TP_KINETO_BUSY] = "iblg",
                                                          [TP_KINETO_LAGGING] = "iblg",
                                                          [TP_KINETO_GONE] = ""};

    (void)state;
    for (int from = 0; from < TP_KINETO_STATES; from++) {
        for (int to = 0; to < TP_KINETO_STATES; to++) {
            char letter = tp_kineto_state_name(to)[0];

            if (tp_kineto_state_allows(from, to) !=
                (strchr(allowed[from], letter) != NULL))
                fail_msg("%s to %s", tp_kineto_state_name(from),
                         tp_kineto_state_name(to));
        }
    }
}

static void test_a_refused_move_changes_nothing(void **state)
{
    struct tp_err err = {0};
    int s = TP_KINETO_GONE;

    (void)state;
    assert_int_equal(tp_kineto_state_move(&s, TP_KINETO_IDLE, &err), TP_ESTATE);
    assert_int_equal(s, TP_KINETO_GONE);
    assert_non_null(strstr(err.message, "gone"));
    s = TP_KINETO_ARMED;
    assert_int_equal(tp_kineto_state_move(&s, TP_KINETO_BUSY, &err), TP_OK);
    assert_int_equal(s, TP_KINETO_BUSY);
    assert_string_equal(tp_kineto_state_name(99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair_of_states_follows_the_drawing),
        cmocka_unit_test(test_a_refused_move_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
