/*
 * test_arena.c - pieces of an arena stay where they are until it is reset.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "support/fault.h"

static void test_pieces_never_move(void **state)
{
    struct tp_arena a = {0};
    char *pieces[200];

    (void)state;
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(tp_arena_room(&a, 1000, &pieces[i], NULL), TP_OK);
        memset(pieces[i], (int)i, 1000);
        tp_arena_take(&a, i * 5);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * 5; k++)
            assert_int_equal((unsigned char)pieces[i][k], i);
    tp_arena_fini(&a);
    tp_arena_fini(&a);
    tp_arena_fini(NULL);
}

static void test_room_that_is_not_taken_is_given_again(void **state)
{
    struct tp_arena a = {0};
    char *first;
    char *second;

    (void)state;
    assert_int_equal(tp_arena_room(&a, 100, &first, NULL), TP_OK);
    assert_int_equal(tp_arena_room(&a, 50, &second, NULL), TP_OK);
    assert_ptr_equal(first, second);
    tp_arena_take(&a, 50);
    assert_int_equal(tp_arena_room(&a, 50, &second, NULL), TP_OK);
    assert_ptr_equal(first + 50, second);
    tp_arena_fini(&a);
}

static void test_reset_keeps_one_block_within_the_limit(void **state)
{
    struct tp_arena a = {0};
    char *p;

    (void)state;
    tp_arena_reset(&a, 0);
    assert_int_equal(tp_arena_room(&a, 10, &p, NULL), TP_OK);
    tp_arena_take(&a, 10);
    tp_arena_reset(&a, 1U << 20);
    fault_arm(0);
    assert_int_equal(tp_arena_room(&a, 1000, &p, NULL), TP_OK);
    assert_false(fault_disarm());
    assert_int_equal(tp_arena_room(&a, 1U << 20, &p, NULL), TP_OK);
    tp_arena_reset(&a, 1000);
    assert_null(a.blocks);
    tp_arena_fini(&a);
}

static void test_room_survives_every_allocation_failure(void **state)
{
    struct tp_arena a = {0};
    struct tp_err err;
    char *p = NULL;

    (void)state;
    fault_arm(0);
    assert_int_equal(tp_arena_room(&a, 10, &p, &err), TP_ENOMEM);
    assert_true(fault_disarm());
    assert_null(p);
    assert_int_equal(tp_arena_room(&a, SIZE_MAX - 4, &p, &err), TP_ENOMEM);
    assert_int_equal(tp_arena_room(&a, 10, &p, &err), TP_OK);
    fault_arm(0);
    assert_int_equal(tp_arena_room(&a, 1U << 20, &p, &err), TP_ENOMEM);
    assert_true(fault_disarm());
    assert_int_equal(tp_arena_room(&a, 10, &p, &err), TP_OK);
    tp_arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_never_move),
        cmocka_unit_test(test_room_that_is_not_taken_is_given_again),
        cmocka_unit_test(test_reset_keeps_one_block_within_the_limit),
        cmocka_unit_test(test_room_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
