/*
 * test_counts.c - nothing that was emitted gets lost in the arithmetic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "core/counts.h"

static void test_every_cause_has_its_own_stable_name(void **state)
{
    (void)state;
    for (int i = 0; i < TP_DROP_CAUSES; i++) {
        const char *name = tp_drop_cause_name((enum tp_drop_cause)i);

        if (name == NULL || tp_drop_cause_find(tp_str_of(name)) != i)
            fail_msg("cause %d", i);
    }
    assert_string_equal(tp_drop_cause_name(TP_DROP_CAUSES), "unknown");
    assert_int_equal(tp_drop_cause_find(tp_str_of("unknown")), -1);
    assert_int_equal(tp_drop_cause_find(tp_str_of("unmatched-end")),
                     TP_DROP_UNMATCHED_END);
}

static void test_every_field_is_added(void **state)
{
    struct tp_counts a;
    struct tp_counts b;
    const uint64_t *words = (const uint64_t *)(const void *)&a;

    (void)state;
    for (size_t i = 0; i < sizeof(a) / sizeof(uint64_t); i++) {
        ((uint64_t *)(void *)&a)[i] = i;
        ((uint64_t *)(void *)&b)[i] = 100 * i;
    }
    tp_counts_add(&a, &b);
    for (size_t i = 0; i < sizeof(a) / sizeof(uint64_t); i++) {
        if (words[i] != 101 * i)
            fail_msg("field %zu", i);
    }
}

static void test_sums_stop_at_the_largest_number(void **state)
{
    struct tp_counts a = {.emitted = UINT64_MAX - 1, .dropped = {UINT64_MAX, 5}};
    const struct tp_counts b = {.emitted = 7};

    (void)state;
    tp_counts_add(&a, &b);
    assert_true(a.emitted == UINT64_MAX);
    assert_true(tp_counts_dropped(&a) == UINT64_MAX);
}

static void test_the_balance_holds_or_the_numbers_are_told(void **state)
{
    struct tp_counts c = {.emitted = 10, .stored = 6, .filtered = 3, .repaired = 6};
    struct tp_err err = {0};

    (void)state;
    c.dropped[TP_DROP_RING_FULL] = 1;
    assert_int_equal(tp_counts_check(&c, &err), TP_OK);
    c.emitted = 11;
    assert_int_equal(tp_counts_check(&c, &err), TP_EINVAL);
    assert_string_equal(err.message,
                        "11 events emitted, but 6 stored + 1 dropped + 3 filtered");
    c.emitted = 10;
    c.untyped = 7;
    assert_int_equal(tp_counts_check(&c, &err), TP_EINVAL);
    assert_non_null(strstr(err.message, "7 untyped"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cause_has_its_own_stable_name),
        cmocka_unit_test(test_every_field_is_added),
        cmocka_unit_test(test_sums_stop_at_the_largest_number),
        cmocka_unit_test(test_the_balance_holds_or_the_numbers_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
