/*
 * test_quota.c - the limit holds, from one thread and from many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "core/quota.h"

static void test_charges_up_to_the_limit_pass(void **state)
{
    struct tp_quota q;
    struct tp_err err = {0};

    (void)state;
    tp_quota_init(&q, "max-trace-bytes", "bytes", 100);
    assert_int_equal(tp_quota_charge(&q, 60, &err), TP_OK);
    assert_int_equal(tp_quota_charge(&q, 41, &err), TP_EQUOTA);
    assert_string_equal(err.message,
                        "max-trace-bytes is 100 bytes, and 60 are in use, so "
                        "there is no room for 41 more");
    assert_int_equal(tp_quota_charge(&q, UINT64_MAX, NULL), TP_EQUOTA);
    assert_int_equal(tp_quota_charge(&q, 40, &err), TP_OK);
    assert_int_equal(tp_quota_charge(&q, 0, &err), TP_OK);
    assert_int_equal(tp_quota_used(&q), 100);
    tp_quota_release(&q, 100);
    assert_int_equal(tp_quota_used(&q), 0);
}

static void test_a_limit_of_zero_refuses_everything(void **state)
{
    struct tp_quota q;

    (void)state;
    tp_quota_init(&q, "max-jobs", "jobs", 0);
    assert_int_equal(tp_quota_charge(&q, 1, NULL), TP_EQUOTA);
}

/* Takes one unit and gives it back again and again, and notes how full it got. */
static void *charge_and_release(void *arg)
{
    struct tp_quota *q = arg;
    intptr_t n_over = 0;

    for (int i = 0; i < 20000; i++) {
        if (tp_quota_charge(q, 1, NULL) != TP_OK)
            continue;
        n_over += tp_quota_used(q) > q->limit;
        tp_quota_release(q, 1);
    }
    return (void *)n_over;
}

static void test_threads_together_never_pass_the_limit(void **state)
{
    struct tp_quota q;
    pthread_t threads[4];

    (void)state;
    tp_quota_init(&q, "max-watchers", "watchers", 2);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, charge_and_release, &q), 0);
    for (int i = 0; i < 4; i++) {
        void *n_over;

        pthread_join(threads[i], &n_over);
        assert_null(n_over);
    }
    assert_int_equal(tp_quota_used(&q), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_charges_up_to_the_limit_pass),
        cmocka_unit_test(test_a_limit_of_zero_refuses_everything),
        cmocka_unit_test(test_threads_together_never_pass_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
