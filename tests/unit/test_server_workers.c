/*
 * The worker threads: every task that was taken is run, seals are run when somebody
 * says that there are any, and one thread is kept free of them.
 */
#include "server/workers.h"

#include <pthread.h>
#include <stdatomic.h>

#include "server/clock.h"
#include "support/engine_test.h"
#include "support/fault.h"

/* What a test waits for: a number that threads count up. */
struct tally {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n;
};

static void tally_init(struct tally *t)
{
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    t->n = 0;
}

static void tally_fini(struct tally *t)
{
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
}

static void count(void *arg)
{
    struct tally *t = arg;

    pthread_mutex_lock(&t->lock);
    t->n++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void wait_for(struct tally *t, int n)
{
    pthread_mutex_lock(&t->lock);
    while (t->n < n)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static struct tp_workers *start(struct rig *r, size_t n_sealers, struct tally *sealed)
{
    struct tp_workers *w = NULL;

    assert_int_equal(tp_workers_start(r->engine, n_sealers,
                                      sealed == NULL ? NULL : count, sealed, &w,
                                      &r->err),
                     TP_OK);
    return w;
}

static void end(struct tp_workers *w)
{
    tp_workers_stop(w);
    tp_workers_free(w);
}

/* A trace whose only stream waits to be sealed. */
static void leave_a_seal(struct rig *r, const char *job)
{
    char id[TP_TRACE_ID_BYTES];
    char *events = rig_events("cpu_op", 10, 1);
    struct tp_upload_reply reply;

    assert_int_equal(rig_create(r, job, NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, -1, events, &reply), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    tp_engine_tick(r->engine, r->now);
    free(events);
}

static uint64_t seals_of(struct rig *r)
{
    struct tp_engine_stats stats = {0};

    tp_engine_stats(r->engine, &stats);
    return stats.seals;
}

static void test_every_task_that_was_taken_is_run(void **state)
{
    struct rig *r = *state;
    struct tp_workers *w = start(r, 3, NULL);
    struct tally done;

    tally_init(&done);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(tp_workers_post(w, count, &done, &r->err), TP_OK);
    wait_for(&done, 1000);
    end(w);
    assert_int_equal(done.n, 1000);
    tally_fini(&done);
}

/* Holds its thread until the test lets it go on. */
struct gate {
    struct tally entered;
    struct tally opened;
};

static void pass_gate(void *arg)
{
    struct gate *g = arg;

    count(&g->entered);
    wait_for(&g->opened, 1);
}

static void *stop_in_thread(void *arg)
{
    tp_workers_stop(arg);
    return NULL;
}

static void test_stop_runs_what_waits_and_refuses_what_comes_later(void **state)
{
    struct rig *r = *state;
    struct tp_workers *w = start(r, 0, NULL);
    struct gate gate;
    struct tally done;
    pthread_t stopper;
    int taken = 0;
    int rc;

    tally_init(&gate.entered);
    tally_init(&gate.opened);
    tally_init(&done);
    assert_int_equal(tp_workers_post(w, pass_gate, &gate, &r->err), TP_OK);
    wait_for(&gate.entered, 1);
    for (; taken < 10; taken++)
        assert_int_equal(tp_workers_post(w, count, &done, &r->err), TP_OK);
    assert_int_equal(pthread_create(&stopper, NULL, stop_in_thread, w), 0);
    /* Until the other thread has said stop, tasks are taken, and so must be run. */
    while ((rc = tp_workers_post(w, count, &done, &r->err)) == TP_OK)
        taken++;
    assert_int_equal(rc, TP_ESTATE);
    assert_int_equal(done.n, 0);
    count(&gate.opened);
    pthread_join(stopper, NULL);
    assert_int_equal(done.n, taken);
    assert_int_equal(tp_workers_post(w, count, &done, &r->err), TP_ESTATE);
    tp_workers_free(w);
    tally_fini(&done);
    tally_fini(&gate.opened);
    tally_fini(&gate.entered);
}

static void test_seals_that_are_there_at_the_start_are_run(void **state)
{
    struct rig *r = *state;
    struct tp_workers *w;
    struct tally sealed;

    tally_init(&sealed);
    leave_a_seal(r, "a");
    w = start(r, 1, &sealed);
    wait_for(&sealed, 1);
    end(w);
    assert_int_equal(seals_of(r), 1);
    tally_fini(&sealed);
}

static void test_a_poke_lets_all_that_waits_be_sealed(void **state)
{
    struct rig *r = *state;
    struct tp_workers *w;
    struct tally sealed;

    tally_init(&sealed);
    w = start(r, 2, &sealed);
    leave_a_seal(r, "a");
    leave_a_seal(r, "b");
    leave_a_seal(r, "c");
    tp_workers_poke(w);
    wait_for(&sealed, 3);
    end(w);
    assert_int_equal(seals_of(r), 3);
    tally_fini(&sealed);
}

/* The first thread is kept for tasks: alone it seals nothing. */
static void test_one_thread_is_kept_free_of_seals(void **state)
{
    struct rig *r = *state;
    struct tp_workers *w;
    struct tally done;

    tally_init(&done);
    leave_a_seal(r, "a");
    w = start(r, 0, NULL);
    tp_workers_poke(w);
    assert_int_equal(tp_workers_post(w, count, &done, &r->err), TP_OK);
    wait_for(&done, 1);
    end(w);
    assert_int_equal(seals_of(r), 0);
    tally_fini(&done);
}

static void test_without_memory_nothing_runs_and_nothing_is_taken(void **state)
{
    struct rig *r = *state;
    struct tally done;

    tally_init(&done);
    for (int n = 0;; n++) {
        struct tp_workers *w = NULL;
        int rc;

        fault_arm(n);
        rc = tp_workers_start(r->engine, 1, NULL, NULL, &w, &r->err);
        if (rc == TP_OK)
            rc = tp_workers_post(w, count, &done, &r->err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            end(w);
            assert_int_equal(done.n, 1);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
        end(w);
        assert_int_equal(done.n, 0);
    }
    tally_fini(&done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_every_task_that_was_taken_is_run),
        engine_test(test_stop_runs_what_waits_and_refuses_what_comes_later),
        engine_test(test_seals_that_are_there_at_the_start_are_run),
        engine_test(test_a_poke_lets_all_that_waits_be_sealed),
        engine_test(test_one_thread_is_kept_free_of_seals),
        engine_test(test_without_memory_nothing_runs_and_nothing_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
