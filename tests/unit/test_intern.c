/*
 * test_intern.c - strings and their numbers, within the limits of the table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "support/fault.h"
#include "trace/intern.h"

#define MANY 5000

static struct tp_str name(unsigned i, char text[32])
{
    return (struct tp_str){text, (size_t)snprintf(text, 32, "aten::op_%u", i)};
}

static uint32_t add(struct tp_intern *t, struct tp_str s)
{
    uint32_t iid = UINT32_MAX;

    assert_int_equal(tp_intern_add(t, s, &iid, NULL), TP_OK);
    return iid;
}

static void test_numbers_go_by_first_appearance_and_stay(void **state)
{
    struct tp_intern t = {.n_max = MANY, .bytes_max = 1 << 20};
    char text[32];

    (void)state;
    assert_int_equal(tp_intern_find(&t, name(1, text)), 0);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 1; i <= MANY; i++)
            assert_int_equal(add(&t, name(i, text)), i);
    assert_int_equal(t.n, MANY);
    for (unsigned i = 1; i <= MANY; i++) {
        struct tp_str s = name(i, text);

        assert_int_equal(tp_intern_find(&t, s), i);
        assert_true(tp_intern_is(&t, i, s));
        assert_false(tp_intern_is(&t, i % MANY + 1, s));
        assert_true(tp_intern_text(&t, i).ptr != text); /* a copy */
    }
    assert_false(tp_intern_is(&t, 0, name(1, text)));
    assert_false(tp_intern_is(&t, MANY + 1, name(1, text)));
    tp_intern_fini(&t);
}

static void test_any_bytes_are_a_string_and_the_empty_one_is_too(void **state)
{
    static const struct tp_str all[] = {
        {"", 0}, {"\0", 1}, {"\0\0", 2}, {"a", 1}, {"a\0", 2}, {"\xff\xfe", 2},
    };
    struct tp_intern t = {.n_max = 100, .bytes_max = 100};

    (void)state;
    for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        assert_int_equal(add(&t, all[i]), i + 1);
    for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        assert_int_equal(tp_intern_find(&t, all[i]), i + 1);
    assert_int_equal(tp_intern_find(&t, (struct tp_str){NULL, 0}), 1);
    tp_intern_fini(&t);
}

/* One byte that differs is seen, wherever it is. */
static void test_same_bytes_looks_at_each_byte(void **state)
{
    char a[64], b[64];

    (void)state;
    memset(a, 'x', sizeof(a));
    for (size_t n = 0; n <= 40; n++) {
        memset(b, 'y', sizeof(b));
        memcpy(b, a, n);
        assert_true(tp_intern_same_bytes(a, b, n));
        for (size_t i = 0; i < n; i++) {
            b[i] ^= 1;
            if (tp_intern_same_bytes(a, b, n))
                fail_msg("byte %zu of %zu was not looked at", i, n);
            b[i] ^= 1;
        }
    }
}

static void test_a_full_table_gives_zero_and_keeps_what_it_has(void **state)
{
    struct tp_intern by_number = {.n_max = 2, .bytes_max = 100};
    struct tp_intern by_bytes = {.n_max = 100, .bytes_max = 5};

    (void)state;
    assert_int_equal(add(&by_number, tp_str_of("one")), 1);
    assert_int_equal(add(&by_number, tp_str_of("two")), 2);
    assert_int_equal(add(&by_number, tp_str_of("three")), 0);
    assert_int_equal(add(&by_number, tp_str_of("two")), 2);
    assert_int_equal(add(&by_bytes, tp_str_of("one")), 1);
    assert_int_equal(add(&by_bytes, tp_str_of("two")), 0);
    assert_int_equal(add(&by_bytes, tp_str_of("to")), 2); /* the last two bytes */
    assert_int_equal(add(&by_bytes, tp_str_of("x")), 0);
    assert_int_equal(add(&by_bytes, tp_str_of("one")), 1);
    tp_intern_fini(&by_number);
    tp_intern_fini(&by_bytes);
}

static void test_a_reset_forgets_all_and_numbers_anew(void **state)
{
    struct tp_intern t = {.n_max = 100, .bytes_max = 8};

    (void)state;
    for (int round = 0; round < 3; round++) {
        assert_int_equal(add(&t, tp_str_of("four")), 1);
        assert_int_equal(add(&t, tp_str_of("for")), 2);
        assert_int_equal(add(&t, tp_str_of("fo")), 0);
        tp_intern_reset(&t);
        assert_int_equal(t.n, 0);
        assert_int_equal(tp_intern_find(&t, tp_str_of("four")), 0);
    }
    tp_intern_fini(&t);
    assert_int_equal(add(&t, tp_str_of("for")), 1); /* the limits stay */
    tp_intern_fini(&t);
    tp_intern_fini(NULL);
}

static void test_each_failed_allocation_changes_nothing(void **state)
{
    char text[32];

    (void)state;
    for (int n = 0;; n++) {
        struct tp_intern t = {.n_max = MANY, .bytes_max = 1 << 20};
        uint32_t last = 0;
        bool has_failed;

        fault_arm(n);
        for (unsigned i = 1; i <= 200; i++) { /* two times the table doubles */
            uint32_t iid = 0;

            if (tp_intern_add(&t, name(i, text), &iid, NULL) != TP_OK)
                break;
            last = iid;
        }
        has_failed = fault_disarm();
        assert_int_equal(last == 200, !has_failed);
        assert_int_equal(t.n, last);
        for (unsigned i = 1; i <= 200; i++) /* and it goes on */
            assert_int_equal(add(&t, name(i, text)), i);
        tp_intern_fini(&t);
        if (!has_failed)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_go_by_first_appearance_and_stay),
        cmocka_unit_test(test_any_bytes_are_a_string_and_the_empty_one_is_too),
        cmocka_unit_test(test_same_bytes_looks_at_each_byte),
        cmocka_unit_test(test_a_full_table_gives_zero_and_keeps_what_it_has),
        cmocka_unit_test(test_a_reset_forgets_all_and_numbers_anew),
        cmocka_unit_test(test_each_failed_allocation_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
