/*
 * test_typeset.c - a set of ids behaves as one at both ends of each of its words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/typeset.h"

static void test_each_id_is_in_alone(void **state)
{
    (void)state;
    for (unsigned id = 0; id < 256; id++) {
        struct tp_typeset s = {{0}};

        tp_typeset_add(&s, id);
        for (unsigned other = 0; other < 300; other++) {
            if (tp_typeset_has(&s, other) != (other == id))
                fail_msg("id %u in the set of %u", other, id);
        }
        assert_int_equal(tp_typeset_count(&s), 1);
        assert_int_equal(tp_typeset_next(&s, 0), id);
        assert_int_equal(tp_typeset_next(&s, id), id);
        assert_int_equal(tp_typeset_next(&s, id + 1), 256);
        tp_typeset_remove(&s, id);
        assert_true(tp_typeset_is_empty(&s));
    }
}

static void test_ids_above_255_are_ignored(void **state)
{
    struct tp_typeset s = {{0}};

    (void)state;
    tp_typeset_add(&s, 256);
    tp_typeset_add(&s, UINT32_MAX);
    tp_typeset_remove(&s, 256);
    assert_true(tp_typeset_is_empty(&s));
}

static void test_sets_add_and_subtract(void **state)
{
    struct tp_typeset full = tp_typeset_full();
    struct tp_typeset some = {{0}};
    struct tp_typeset rest = full;
    unsigned n = 0;

    (void)state;
    tp_typeset_add(&some, 5);
    tp_typeset_add(&some, 154);
    tp_typeset_remove_all(&rest, &some);
    assert_int_equal(tp_typeset_count(&rest), 254);
    assert_false(tp_typeset_has(&rest, 154));
    for (unsigned id = tp_typeset_next(&rest, 0); id < 256;
         id = tp_typeset_next(&rest, id + 1))
        n++;
    assert_int_equal(n, 254);
    tp_typeset_add_all(&rest, &some);
    assert_true(tp_typeset_equal(&rest, &full));
    assert_false(tp_typeset_equal(&rest, &some));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_id_is_in_alone),
        cmocka_unit_test(test_ids_above_255_are_ignored),
        cmocka_unit_test(test_sets_add_and_subtract),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
