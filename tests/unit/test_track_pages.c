/*
 * test_track_pages.c - copies of tracks are found by number and stay where they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/track_pages.h"

static void test_copies_stay_and_carry_the_shifted_number(void **state)
{
    struct tp_track_pages pages = {0};
    const struct tp_track *first;
    const struct tp_track *again;
    struct tp_err err;

    (void)state;
    for (uint32_t i = 0; i < 3000; i += 3) {
        struct tp_track t = {.index = i, .lane = 5, .pid = {.number = i}};
        const struct tp_track *copy;

        assert_int_equal(tp_track_pages_get(&pages, &t, 1, &copy, &err), TP_OK);
        if (i == 0)
            first = copy;
        assert_int_equal(copy->index, i + 1);
        assert_int_equal(copy->lane, 0);
        assert_int_equal(copy->pid.number, i);
    }
    assert_int_equal(tp_track_pages_get(&pages, &(struct tp_track){.index = 0}, 1,
                                        &again, &err),
                     TP_OK);
    assert_ptr_equal(first, again);
    assert_ptr_equal(tp_track_pages_find(&pages, 0), first);
    assert_null(tp_track_pages_find(&pages, 1));
    assert_null(tp_track_pages_find(&pages, 100000));
    assert_int_equal(pages.n_max, 2998);
    tp_track_pages_fini(&pages);
}

static void test_getting_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_track_pages pages = {0};
        struct tp_track t = {.index = 5000};
        const struct tp_track *copy;
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_track_pages_get(&pages, &t, 0, &copy, &err);
        if (rc != TP_OK)
            assert_null(tp_track_pages_find(&pages, 5000));
        tp_track_pages_fini(&pages);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_stay_and_carry_the_shifted_number),
        cmocka_unit_test(test_getting_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
