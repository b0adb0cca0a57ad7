/*
 * Waiting connections, without connections: a waiter is three callbacks and a socket.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "server/waiters.h"
#include "support/fault.h"

/* One that waits, and what was done to it. */
struct patient {
    int ends[2]; /* a socket pair: ours, the client's */
    int n_suspended, n_resumed, n_stopped;
    bool is_ready, is_gone;
};

static void on_suspend(void *arg)
{
    struct patient *p = arg;

    p->n_suspended++;
}

static void on_resume(void *arg)
{
    struct patient *p = arg;

    p->n_resumed++;
}

static bool is_ready(void *arg, struct tp_now now)
{
    struct patient *p = arg;

    (void)now;
    return p->is_ready;
}

static void on_gone(void *arg)
{
    struct patient *p = arg;

    p->is_gone = true;
}

static void on_stop(void *arg)
{
    struct patient *p = arg;

    p->n_stopped++;
}

static void open_patient(struct patient *p)
{
    *p = (struct patient){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p->ends), 0);
}

static void close_patient(struct patient *p)
{
    close(p->ends[0]);
    close(p->ends[1]);
}

static int add(struct tp_waiters *w, struct patient *p)
{
    const struct tp_waiter waiter = {.fd = p->ends[0],
                                     .deadline_ns = UINT64_MAX,
                                     .suspend = on_suspend,
                                     .resume = on_resume,
                                     .ready = is_ready,
                                     .on_gone = on_gone,
                                     .on_stop = on_stop,
                                     .arg = p};
    struct tp_err err = {0};

    return tp_waiters_add(w, &waiter, &err);
}

static struct tp_waiters *new_waiters(void)
{
    struct tp_waiters *w = NULL;
    struct tp_err err = {0};

    assert_int_equal(tp_waiters_new(NULL, &w, &err), TP_OK);
    return w;
}

static void test_who_is_ready_already_is_resumed_at_once(void **state)
{
    struct tp_waiters *w = new_waiters();
    struct patient p;

    (void)state;
    open_patient(&p);
    p.is_ready = true;
    assert_int_equal(add(w, &p), TP_OK);
    assert_int_equal(p.n_suspended, 1);
    assert_int_equal(p.n_resumed, 1);
    assert_int_equal(tp_waiters_count(w), 0);
    close_patient(&p);
    tp_waiters_free(w);
}

static void test_draining_resumes_all_and_keeps_nobody_later(void **state)
{
    struct tp_waiters *w = new_waiters();
    struct patient before[100];
    struct patient after;

    (void)state;
    for (int i = 0; i < 100; i++) {
        open_patient(&before[i]);
        assert_int_equal(add(w, &before[i]), TP_OK);
    }
    assert_int_equal(tp_waiters_count(w), 100);
    tp_waiters_drain(w);
    assert_int_equal(tp_waiters_count(w), 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(before[i].n_resumed, 1);
        assert_int_equal(before[i].n_stopped, 1);
        assert_false(before[i].is_gone);
        close_patient(&before[i]);
    }
    open_patient(&after);
    assert_int_equal(add(w, &after), TP_OK);
    assert_int_equal(after.n_stopped, 1);
    assert_int_equal(after.n_resumed, 1);
    close_patient(&after);
    tp_waiters_free(w);
}

static void test_without_memory_nobody_is_suspended(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_waiters *w = NULL;
        struct tp_err err = {0};
        struct patient p;
        int rc;

        open_patient(&p);
        fault_arm(n);
        rc = tp_waiters_new(NULL, &w, &err);
        if (rc == TP_OK)
            rc = add(w, &p);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_waiters_drain(w);
        } else {
            assert_int_equal(rc, TP_ENOMEM);
            assert_int_equal(p.n_suspended, 0);
        }
        close_patient(&p);
        tp_waiters_free(w);
        if (rc == TP_OK)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_ready_already_is_resumed_at_once),
        cmocka_unit_test(test_draining_resumes_all_and_keeps_nobody_later),
        cmocka_unit_test(test_without_memory_nobody_is_suspended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
