/*
 * test_outcome.c - the verdict on a trace is never better than its numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "core/outcome.h"

static const struct {
    const char *what;
    struct tp_outcome_facts facts;
    enum tp_outcome outcome;
    unsigned reasons;
} cases[] = {
    {"all well", {{.emitted = 5, .stored = 5}, 2, 0, 0, 0}, TP_OUTCOME_COMPLETE, 0},
    {"filtered is not lossy",
     {{.emitted = 9, .stored = 5, .filtered = 4}, 2, 0, 0, 0},
     TP_OUTCOME_COMPLETE,
     0},
    {"one dropped",
     {{.emitted = 6, .stored = 5, .dropped[TP_DROP_RING_FULL] = 1}, 2, 0, 0, 0},
     TP_OUTCOME_LOSSY,
     TP_REASON_DROPPED},
    {"one damaged",
     {{.emitted = 6, .stored = 5, .dropped[TP_DROP_DAMAGED] = 1}, 2, 0, 0, 0},
     TP_OUTCOME_PARTIAL,
     TP_REASON_DROPPED | TP_REASON_DAMAGED},
    {"one missing",
     {{.emitted = 5, .stored = 5}, 2, 1, 0, 0},
     TP_OUTCOME_PARTIAL,
     TP_REASON_MISSING},
    {"one late and drops",
     {{.emitted = 6, .stored = 5, .dropped[0] = 1}, 2, 0, 1, 0},
     TP_OUTCOME_PARTIAL,
     TP_REASON_LATE | TP_REASON_DROPPED},
    {"a damaged file",
     {{.emitted = 5, .stored = 5}, 2, 0, 0, 1},
     TP_OUTCOME_PARTIAL,
     TP_REASON_DAMAGED},
    {"nobody there", {{0}, 0, 0, 0, 0}, TP_OUTCOME_EMPTY, TP_REASON_NO_PRODUCERS},
    {"nothing happened",
     {{0}, 2, 0, 0, 0},
     TP_OUTCOME_EMPTY,
     TP_REASON_NOTHING_EMITTED},
    {"all missing", {{0}, 2, 2, 0, 0}, TP_OUTCOME_EMPTY, TP_REASON_MISSING},
    {"all filtered",
     {{.emitted = 5, .filtered = 5}, 1, 0, 0, 0},
     TP_OUTCOME_EMPTY,
     TP_REASON_FILTERED},
    {"all dropped",
     {{.emitted = 5, .dropped[TP_DROP_AFTER_STOP] = 5}, 1, 0, 0, 0},
     TP_OUTCOME_EMPTY,
     TP_REASON_DROPPED},
};

static void test_each_set_of_facts_has_its_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned reasons = 0;
        enum tp_outcome outcome = tp_outcome_judge(&cases[i].facts, &reasons);

        if (outcome != cases[i].outcome || reasons != cases[i].reasons ||
            tp_outcome_judge(&cases[i].facts, NULL) != outcome)
            fail_msg("%s: %s, reasons %#x", cases[i].what, tp_outcome_name(outcome),
                     reasons);
    }
}

static void test_outcomes_and_reasons_have_stable_names(void **state)
{
    static const char *const names[] = {"complete", "lossy", "partial", "empty"};

    (void)state;
    for (int i = 0; i < TP_OUTCOMES; i++) {
        assert_string_equal(tp_outcome_name((enum tp_outcome)i), names[i]);
        assert_int_equal(tp_outcome_find(tp_str_of(names[i])), i);
    }
    assert_string_equal(tp_outcome_name(TP_OUTCOMES), "unknown");
    assert_int_equal(tp_outcome_find(tp_str_of("fine")), -1);
    for (unsigned bit = TP_REASON_DROPPED; bit <= TP_REASON_NOTHING_EMITTED;
         bit <<= 1) {
        if (strcmp(tp_outcome_reason_name(bit), "unknown") == 0)
            fail_msg("reason %#x", bit);
    }
    assert_string_equal(tp_outcome_reason_name(3), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_set_of_facts_has_its_verdict),
        cmocka_unit_test(test_outcomes_and_reasons_have_stable_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
