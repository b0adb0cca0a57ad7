/*
 * test_limits.c - every limit has a sane row, and text sets it only within its range.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "core/limits.h"

static void test_every_row_is_sane_and_has_its_own_field(void **state)
{
    size_t n;
    const struct tp_limit_info *table = tp_limits_table(&n);

    (void)state;
    assert_int_equal(n, sizeof(struct tp_limits) / sizeof(uint64_t));
    for (size_t i = 0; i < n; i++) {
        const struct tp_limit_info *row = &table[i];
        size_t help_bytes = strlen(row->help);

        if (strncmp(row->name, "max-", 4) != 0 || row->min > row->default_value ||
            row->default_value > row->max || row->unit[0] == '\0' ||
            row->help[help_bytes - 1] != '.')
            fail_msg("%s", row->name);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(table[k].name, row->name) == 0 || table[k].offset == row->offset)
                fail_msg("%s and %s", table[k].name, row->name);
        }
    }
}

static void test_defaults_are_those_of_the_table(void **state)
{
    struct tp_limits limits = tp_limits_default();
    size_t n;
    const struct tp_limit_info *table = tp_limits_table(&n);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        if (tp_limits_get(&limits, &table[i]) != table[i].default_value)
            fail_msg("%s", table[i].name);
    }
    assert_int_equal(limits.body_bytes, 1 << 20);
    assert_int_equal(limits.json_depth, 64);
    assert_int_equal(limits.types_per_job, 205);
}

/* The smallest and the largest value of each row pass, their neighbours do not. */
static void test_ranges_are_kept_at_both_ends(void **state)
{
    size_t n;
    const struct tp_limit_info *table = tp_limits_table(&n);
    char text[32];

    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct tp_limits limits = tp_limits_default();
        const uint64_t values[] = {table[i].min, table[i].max, table[i].min - 1,
                                   table[i].max + 1};

        for (int v = 0; v < 4; v++) {
            int rc;

            if (v == 2 && table[i].min == 0)
                continue;
            snprintf(text, sizeof(text), "%llu", (unsigned long long)values[v]);
            rc =
                tp_limits_set(&limits, tp_str_of(table[i].name), tp_str_of(text), NULL);
            if (rc != (v < 2 ? TP_OK : TP_EINVAL) ||
                (v < 2) != (tp_limits_get(&limits, &table[i]) == values[v]))
                fail_msg("%s = %s", table[i].name, text);
        }
    }
}

static void test_text_may_carry_a_unit(void **state)
{
    static const struct {
        const char *name;
        const char *text;
        uint64_t value;
    } cases[] = {
        {"max-body-bytes", "2048", 2048},
        {"body-bytes", "4K", 4096},
        {"max-body-bytes", "1MiB", 1 << 20},
        {"max-trace-bytes", "2T", UINT64_C(2) << 40},
        {"max-trace-duration-ms", "1500ms", 1500},
        {"max-trace-duration-ms", "90s", 90000},
        {"trace-duration-ms", "2h", 7200000},
        {"max-jobs", "7", 7},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_limits limits = tp_limits_default();
        struct tp_str name = tp_str_of(cases[i].name);
        int rc = tp_limits_set(&limits, name, tp_str_of(cases[i].text), NULL);

        if (rc != TP_OK ||
            tp_limits_get(&limits, tp_limits_find(name)) != cases[i].value)
            fail_msg("%s = %s", cases[i].name, cases[i].text);
    }
}

static void test_other_text_is_refused_and_changes_nothing(void **state)
{
    static const char *const cases[] = {
        "",
        "-1",
        "+5",
        " 9000",
        "9000 ",
        "0x1000",
        "1e6",
        "4k",
        "5 MiB",
        "5Q",
        "5s",
        "18446744073709551616",
        "99999999999999999999999",
        "18446744073709551615T",
    };
    struct tp_limits limits = tp_limits_default();
    struct tp_err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (tp_limits_set(&limits, tp_str_of("max-body-bytes"), tp_str_of(cases[i]),
                          &err) != TP_EINVAL ||
            limits.body_bytes != 1 << 20)
            fail_msg("'%s'", cases[i]);
    }
    assert_non_null(strstr(err.message, "max-body-bytes"));
    assert_int_equal(tp_limits_set(&limits, tp_str_of("max-jobs"), tp_str_of("1K"),
                                   NULL),
                     TP_EINVAL);
    assert_int_equal(tp_limits_set(&limits, tp_str_of("max-nothing"), tp_str_of("1"),
                                   &err),
                     TP_ENOTFOUND);
    assert_null(tp_limits_find(tp_str_of("")));
    assert_null(tp_limits_find(tp_str_of("max-")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_is_sane_and_has_its_own_field),
        cmocka_unit_test(test_defaults_are_those_of_the_table),
        cmocka_unit_test(test_ranges_are_kept_at_both_ends),
        cmocka_unit_test(test_text_may_carry_a_unit),
        cmocka_unit_test(test_other_text_is_refused_and_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
