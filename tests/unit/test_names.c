/*
 * test_names.c - the suggestion is the name that was meant.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/names.h"

static void test_distances_are_those_of_the_books(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        unsigned distance;
    } cases[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"kitten", "sitting", 3},
        {"kernel", "KERNEL", 0},
        {"kernle", "kernel", 1},
        {"ab", "ba", 1},
        {"flaw", "lawn", 2},
        {"gpu_memcopy", "gpu_memcpy", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_str a = tp_str_of(cases[i].a);
        struct tp_str b = tp_str_of(cases[i].b);

        if (tp_names_distance(a, b) != cases[i].distance ||
            tp_names_distance(b, a) != cases[i].distance)
            fail_msg("'%s' and '%s' gave %u", cases[i].a, cases[i].b,
                     tp_names_distance(a, b));
    }
}

static void test_the_nearest_three_are_kept_in_order(void **state)
{
    static const char *const offered[] = {"carrots", "cart", "car",
                                          "dog",     "cat",  "care"};
    struct tp_names_nearest near;

    (void)state;
    tp_names_init(&near, tp_str_of("car"));
    for (size_t i = 0; i < sizeof(offered) / sizeof(offered[0]); i++)
        tp_names_offer(&near, tp_str_of(offered[i]));
    assert_int_equal(near.n, 3);
    assert_true(tp_str_is(near.found[0].name, "car"));
    assert_true(tp_str_is(near.found[1].name, "cart"));
    assert_true(tp_str_is(near.found[2].name, "cat"));
}

static void test_a_forgotten_plugin_is_found(void **state)
{
    struct tp_names_nearest near;

    (void)state;
    tp_names_init(&near, tp_str_of("kernel"));
    tp_names_offer(&near, tp_str_of("very_long_plugin_name.KERNEL"));
    tp_names_offer(&near, tp_str_of("very_long_plugin_name.SUBKERNEL"));
    assert_int_equal(near.n, 1);
    assert_true(tp_str_is(near.found[0].name, "very_long_plugin_name.KERNEL"));
}

static void test_names_without_likeness_are_not_suggested(void **state)
{
    char text[300];
    struct tp_names_nearest near;

    (void)state;
    tp_names_init(&near, tp_str_of("zzzzzzzz"));
    tp_names_offer(&near, tp_str_of("cpu_op"));
    tp_names_offer(&near, tp_str_of(""));
    assert_int_equal(near.n, 0);
    memset(text, 'x', sizeof(text));
    tp_names_init(&near, (struct tp_str){text, sizeof(text)});
    tp_names_offer(&near, (struct tp_str){text, sizeof(text) - 1});
    assert_int_equal(near.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances_are_those_of_the_books),
        cmocka_unit_test(test_the_nearest_three_are_kept_in_order),
        cmocka_unit_test(test_a_forgotten_plugin_is_found),
        cmocka_unit_test(test_names_without_likeness_are_not_suggested),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
