/*
 * test_bulk.c - objects come from one piece while it has room.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/bulk.h"
#include "support/fault.h"

static void test_objects_are_zeroed_and_apart_with_and_without_room(void **state)
{
    static const size_t rooms[] = {0, 1, 64, 1000, 3u << 20};

    (void)state;
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        struct tp_bulk b = {0};
        unsigned char *objects[20];

        tp_bulk_reserve(&b, rooms[i]);
        for (size_t k = 0; k < 20; k++) {
            objects[k] = tp_bulk_take(&b, 33);
            assert_non_null(objects[k]);
            assert_int_equal((uintptr_t)objects[k] % 16, 0);
            for (size_t at = 0; at < 33; at++)
                assert_int_equal(objects[k][at], 0);
            memset(objects[k], (int)k + 1, 33);
        }
        for (size_t k = 0; k < 20; k++) {
            assert_int_equal(objects[k][0], k + 1);
            assert_int_equal(objects[k][32], k + 1);
            tp_bulk_give(&b, objects[k]);
        }
        tp_bulk_give(&b, NULL);
        tp_bulk_fini(&b);
        tp_bulk_fini(&b);
    }
}

static void test_without_memory_for_the_piece_objects_come_one_by_one(void **state)
{
    struct tp_bulk b = {0};
    void *object;

    (void)state;
    fault_arm(0);
    tp_bulk_reserve(&b, 1000);
    assert_true(fault_disarm());
    object = tp_bulk_take(&b, 100);
    assert_non_null(object);
    tp_bulk_give(&b, object);
    fault_arm(0);
    assert_null(tp_bulk_take(&b, 100));
    assert_true(fault_disarm());
    tp_bulk_fini(&b);
}

static void test_room_is_part_of_the_piece_or_there_is_none(void **state)
{
    struct tp_bulk b = {0};
    char *p;

    (void)state;
    assert_null(tp_bulk_room(&b, 1));
    tp_bulk_reserve(&b, 100);
    p = tp_bulk_room(&b, 90);
    assert_ptr_equal(p, b.bytes);
    memset(p, 1, 90);
    assert_null(tp_bulk_room(&b, 10)); /* 96 are used */
    tp_bulk_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_are_zeroed_and_apart_with_and_without_room),
        cmocka_unit_test(test_room_is_part_of_the_piece_or_there_is_none),
        cmocka_unit_test(test_without_memory_for_the_piece_objects_come_one_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
