/*
 * Many threads, short ones and lasting ones, fork, and traces that come and go while
 * they record: nothing is lost uncounted and nothing grows.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "producer/ring.h"
#include "support/recorder_rig.h"

#define RING_BYTES ((size_t)64 << 10)
#ifdef TP_SANITIZED
#define SHORT_THREADS 800 /* a thread costs milliseconds there */
#define TRACES 30
#else
#define SHORT_THREADS 10000
#define TRACES 200
#endif
#define AT_A_TIME 8
#define EACH 5 /* events of a short thread */

static struct recorder_rig rig;
static atomic_bool is_over;
static atomic_uint n_done;

static void make(uint64_t block_ns)
{
    struct tp_recorder_opts opts = {.ring_bytes = RING_BYTES, .block_ns = block_ns};

    memset(&rig, 0, sizeof(rig));
    recorder_rig_init(&rig, &opts);
    atomic_store(&is_over, false);
    atomic_store(&n_done, 0);
}

static void *record_a_little(void *arg)
{
    (void)arg;
    for (int i = 0; i < EACH - 1; i++)
        TP_INSTANT(rig.client, rig.kernel, "x", TP_INT("i", i));
    TP_BEGIN(rig.client, rig.copy, "never ends");
    return NULL;
}

static void run_short_threads(int n)
{
    pthread_t threads[AT_A_TIME];

    for (int i = 0; i < n; i += AT_A_TIME) {
        for (int k = 0; k < AT_A_TIME; k++)
            assert_int_equal(pthread_create(&threads[k], NULL, record_a_little, NULL),
                             0);
        for (int k = 0; k < AT_A_TIME; k++)
            pthread_join(threads[k], NULL);
        if (i % 400 == 0)
            recorder_rig_drain(&rig);
    }
}

static void test_short_threads_share_a_few_rings_and_lose_nothing(void **state)
{
    size_t n_rings;
    size_t bytes;
    uint64_t dropped;

    (void)state;
    make(0);
    recorder_rig_start(&rig);
    run_short_threads(SHORT_THREADS);
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(rig.drained[rig.kernel] + rig.drained[rig.copy] + dropped,
                     SHORT_THREADS * EACH);
    assert_int_equal(dropped, 0);
    bytes = tp_rings_bytes(&n_rings);
    assert_in_range(n_rings, 1, AT_A_TIME);
    assert_int_equal(bytes, n_rings * RING_BYTES);
    recorder_rig_fini(&rig);
}

static void test_rings_of_a_closed_client_serve_the_next(void **state)
{
    size_t n_rings;

    (void)state;
    for (int i = 0; i < 20; i++) {
        make(0);
        recorder_rig_start(&rig);
        run_short_threads(AT_A_TIME);
        TP_INSTANT(rig.client, rig.kernel, "of the main thread");
        recorder_rig_conserved(&rig, NULL);
        assert_int_equal(rig.n_drained, AT_A_TIME * EACH + 1);
        recorder_rig_fini(&rig);
    }
    tp_rings_bytes(&n_rings);
    assert_in_range(n_rings, 1, AT_A_TIME + 1);
}

/* Two libraries in one process, each with a client of its own, on one thread. */
static void test_clients_in_turns_need_no_lock(void **state)
{
    struct tp_recorder_opts opts = {.ring_bytes = RING_BYTES};
    struct recorder_rig other = {0};

    (void)state;
    make(0);
    recorder_rig_init(&other, &opts);
    recorder_rig_start(&rig);
    recorder_rig_start(&other);
    for (int i = 0; i < 100; i++) {
        TP_BEGIN(rig.client, rig.kernel, "outer");
        TP_BEGIN(other.client, other.kernel, "inner");
        TP_END(rig.client, rig.kernel);
        TP_END(other.client, other.kernel);
        TP_INSTANT(other.client, other.copy, "x");
        if (i == 0) { /* each has its ring from here on: else this hangs, and ends */
            alarm(60);
            tp_rings_lock();
        }
    }
    tp_rings_unlock();
    alarm(0);
    recorder_rig_conserved(&rig, NULL);
    recorder_rig_conserved(&other, NULL);
    assert_int_equal(rig.n_drained, 100);
    assert_int_equal(other.n_drained, 200);
    recorder_rig_fini(&other);
    recorder_rig_fini(&rig);
}

static pthread_barrier_t turn;

static atomic_uint n_woken;

static void count_wake(void *arg)
{
    (void)arg;
    atomic_fetch_add(&n_woken, 1);
}

/* A limit of one ring. */
static void make_narrow(struct recorder_rig *r, size_t ring_bytes)
{
    struct tp_recorder_opts opts = {.ring_bytes = ring_bytes,
                                    .rings_bytes_max = ring_bytes,
                                    .wake = count_wake};

    atomic_store(&n_woken, 0);

    memset(r, 0, sizeof(*r));
    recorder_rig_init(r, &opts);
    recorder_rig_start(r);
}

static void *hold_a_ring(void *arg)
{
    (void)arg;
    TP_INSTANT(rig.client, rig.kernel, "x");
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    return NULL;
}

/* Nor do they take the lock that others need for each event, nor wake the agent. */
static void test_threads_over_the_limit_are_counted_as_dropped(void **state)
{
    pthread_t thread;
    uint64_t dropped;

    (void)state;
    make_narrow(&rig, (size_t)128 << 10);
    pthread_barrier_init(&turn, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, hold_a_ring, NULL), 0);
    pthread_barrier_wait(&turn);
    recorder_rig_drain(&rig);
    assert_int_equal(rig.n_drained, 1);
    atomic_store(&n_woken, 0);
    TP_BEGIN(rig.client, rig.kernel, "x");
    TP_END(rig.client, rig.kernel);
    for (int i = 0; i < 100; i++)
        TP_INSTANT(rig.client, rig.kernel, "x");
    assert_int_equal(n_woken, 0);
    pthread_barrier_wait(&turn);
    pthread_join(thread, NULL);
    usleep(30000); /* at most so long it is not tried again */
    TP_INSTANT(rig.client, rig.kernel, "has the ring now");
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(dropped, 101);
    assert_int_equal(rig.n_drained, 2);
    recorder_rig_fini(&rig);
    pthread_barrier_destroy(&turn);
}

static void *record_one(void *arg)
{
    struct recorder_rig *r = arg;

    TP_INSTANT(r->client, r->kernel, "x");
    return NULL;
}

/* The limit is for what is in use at a time, whoever has used it before. */
static void test_free_rings_of_one_client_make_room_for_another(void **state)
{
    static struct recorder_rig other;
    pthread_t thread;
    size_t n_rings;

    (void)state;
    make_narrow(&rig, (size_t)256 << 10);
    assert_int_equal(pthread_create(&thread, NULL, record_one, &rig), 0);
    pthread_join(thread, NULL);
    make_narrow(&other, (size_t)256 << 10);
    assert_int_equal(pthread_create(&thread, NULL, record_one, &other), 0);
    pthread_join(thread, NULL);
    recorder_rig_drain(&other);
    assert_int_equal(other.n_drained, 0); /* the ring of the first is not drained yet */
    recorder_rig_drain(&rig);
    for (int i = 1; i <= 3; i++) { /* in turns, with what is in them */
        assert_int_equal(pthread_create(&thread, NULL, record_one, &other), 0);
        pthread_join(thread, NULL);
        recorder_rig_drain(&other);
        assert_int_equal(other.n_drained, i);
        assert_int_equal(tp_rings_bytes(&n_rings), (size_t)256 << 10);
        assert_int_equal(pthread_create(&thread, NULL, record_one, &rig), 0);
        pthread_join(thread, NULL);
        recorder_rig_drain(&rig);
        assert_int_equal(rig.n_drained, i + 1);
    }
    recorder_rig_conserved(&rig, NULL);
    recorder_rig_conserved(&other, NULL);
    recorder_rig_fini(&other);
    recorder_rig_fini(&rig);
    assert_int_equal(tp_rings_bytes(&n_rings), 0);
    /* Nor does it matter of which size those were that nobody has any more. */
    make_narrow(&rig, (size_t)64 << 10);
    TP_INSTANT(rig.client, rig.kernel, "x");
    recorder_rig_drain(&rig);
    assert_int_equal(rig.n_drained, 1);
    recorder_rig_fini(&rig);
}

static void *leave_open(void *arg)
{
    (void)arg;
    TP_BEGIN(rig.client, rig.kernel, "outer");
    TP_BEGIN(rig.client, rig.copy, "inner");
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    return NULL;
}

/* The last drain of a trace may take several batches, and threads end meanwhile. */
static void test_a_slice_that_is_told_as_unfinished_is_told_once(void **state)
{
    pthread_t thread;

    (void)state;
    make(0);
    recorder_rig_start(&rig);
    pthread_barrier_init(&turn, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, leave_open, NULL), 0);
    pthread_barrier_wait(&turn);
    tp_recorder_stop(rig.recorder, 0);
    rig.drain.is_last = true;
    recorder_rig_drain(&rig);
    assert_int_equal(rig.n_drained, 2);
    pthread_barrier_wait(&turn);
    pthread_join(thread, NULL);
    recorder_rig_conserved(&rig, NULL);
    assert_int_equal(rig.n_drained, 2);
    pthread_barrier_destroy(&turn);
    recorder_rig_fini(&rig);
}

#define LASTING 4
#define LASTING_EVENTS 40000

static void *record_much(void *arg)
{
    (void)arg;
    for (int i = 0; i < LASTING_EVENTS / 2; i++) {
        TP_BEGIN(rig.client, rig.kernel, "outer", TP_COPY("s", "text"));
        TP_INSTANT(rig.client, rig.copy, "x");
        TP_ADD(rig.client, rig.kernel, TP_INT("i", i));
        TP_END(rig.client, rig.kernel);
    }
    atomic_fetch_add(&n_done, 1);
    return NULL;
}

static void test_of_several_rings_that_a_thread_has_left_it_uses_one(void **state)
{
    struct tp_recorder_opts opts = {.ring_bytes = RING_BYTES};
    struct recorder_rig other = {0};
    size_t n_rings;

    (void)state;
    make(0);
    recorder_rig_init(&other, &opts);
    recorder_rig_start(&rig);
    recorder_rig_start(&other);
    TP_INSTANT(rig.client, rig.kernel, "x");
    TP_INSTANT(other.client, other.kernel, "x");
    recorder_rig_fini(&other);
    recorder_rig_fini(&rig);
    assert_int_equal(tp_rings_bytes(&n_rings), 0);
    make(0);
    recorder_rig_start(&rig);
    TP_INSTANT(rig.client, rig.kernel, "x");
    assert_int_equal(tp_rings_bytes(&n_rings), RING_BYTES);
    recorder_rig_fini(&rig);
}

static void test_threads_that_may_block_lose_nothing_to_a_steady_drain(void **state)
{
    pthread_t threads[LASTING];
    uint64_t dropped;

    (void)state;
    make(60000000000u);
    recorder_rig_start(&rig);
    for (int i = 0; i < LASTING; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, record_much, NULL), 0);
    while (atomic_load(&n_done) < LASTING)
        recorder_rig_drain(&rig);
    for (int i = 0; i < LASTING; i++)
        pthread_join(threads[i], NULL);
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(dropped, 0);
    assert_int_equal(rig.n_drained, LASTING * LASTING_EVENTS);
    recorder_rig_fini(&rig);
}

static void *record_until_over(void *arg)
{
    (void)arg;
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        TP_BEGIN(rig.client, rig.kernel, "outer", TP_INT("i", 1));
        TP_BEGIN(rig.client, rig.copy, "inner");
        TP_ADD(rig.client, rig.copy, TP_TEXT("t", "u"));
        TP_END(rig.client, rig.copy);
        TP_COUNTER(rig.client, rig.copy, "n", 1.0);
        TP_END(rig.client, rig.kernel);
        tp_step(rig.client);
    }
    return NULL;
}

static void test_traces_come_and_go_while_threads_record(void **state)
{
    pthread_t threads[LASTING];
    uint64_t n = 0;

    (void)state;
    make(0);
    for (int i = 0; i < LASTING; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, record_until_over, NULL), 0);
    for (int i = 0; i < TRACES || n == 0; i++) {
        recorder_rig_start(&rig);
        if (i % 3 == 0)
            tp_recorder_set_steps(rig.recorder, 0, 5);
        for (int k = 0; k < i % 5; k++)
            recorder_rig_drain(&rig);
        if (i % 7 == 0) {
            tp_recorder_stop(rig.recorder, 0);
            tp_recorder_discard(rig.recorder);
        } else {
            recorder_rig_conserved(&rig, NULL);
            n += rig.n_drained;
        }
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < LASTING; i++)
        pthread_join(threads[i], NULL);
    recorder_rig_fini(&rig);
}

/* What the child of a fork does: exit code 0 when all is as it should be. */
static int be_a_child(void)
{
    struct tp_drain_opts opts = {.stream_no = 1};
    struct tp_drain_result result;
    struct tp_buf out = {0};

    tp_recorders_after_fork_child();
    if (tp_recorder_is_recording(rig.recorder) || tp_enabled(rig.client, rig.kernel))
        return 1;
    TP_INSTANT(rig.client, rig.kernel, "of the child");
    if (tp_recorder_drain(rig.recorder, &opts, &out, &result, NULL) != TP_OK ||
        result.n_events != 0)
        return 2;
    recorder_rig_start(&rig);
    tp_instant(rig.client, rig.kernel, tp_intern("of the child"),
               (struct tp_fields){NULL, 0});
    if (tp_recorder_drain(rig.recorder, &opts, &out, &result, NULL) != TP_OK ||
        result.by_type[rig.kernel] != 1)
        return 3;
    tp_buf_fini(&out);
    return 0;
}

static void test_a_fork_leaves_the_parent_alone_and_the_child_silent(void **state)
{
    pthread_t thread;
    int status = 0;
    pid_t child;

    (void)state;
    make(0);
    recorder_rig_start(&rig);
    assert_int_equal(pthread_create(&thread, NULL, record_until_over, NULL), 0);
    TP_INSTANT(rig.client, rig.copy, "before");
    tp_recorders_before_fork();
    child = fork();
    if (child == 0)
        _exit(be_a_child());
    tp_recorders_after_fork_parent();
    assert_true(child > 0);
    TP_INSTANT(rig.client, rig.copy, "after");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    recorder_rig_conserved(&rig, NULL);
    assert_true(rig.drained[rig.copy] >= 2);
    recorder_rig_fini(&rig);
}

/* The thread that forks holds a ring of a client that was closed; that serves the
 * child's client, and is of another thread now. Exit code 0 when all is well. */
static int be_a_child_with_a_ring(void)
{
    tp_recorders_after_fork_child();
    make(0);
    recorder_rig_start(&rig);
    TP_INSTANT(rig.client, rig.kernel, "of the child");
    return tp_ring_here->tid == (uint64_t)getpid() ? 0 : 1;
}

static void test_a_child_records_as_itself_with_a_ring_of_before(void **state)
{
    int status = 0;
    pid_t child;

    (void)state;
    make(0);
    recorder_rig_start(&rig);
    TP_INSTANT(rig.client, rig.kernel, "of the parent");
    recorder_rig_fini(&rig);
    tp_recorders_before_fork();
    child = fork();
    if (child == 0)
        _exit(be_a_child_with_a_ring());
    tp_recorders_after_fork_parent();
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Whether the next batch has a text in it. */
static bool drains_text(const char *text)
{
    struct tp_drain_opts opts = {.stream_no = 1};
    struct tp_drain_result result;
    struct tp_buf out = {0};
    bool has_text;

    assert_int_equal(tp_recorder_drain(rig.recorder, &opts, &out, &result, NULL), 0);
    has_text = memmem(out.data, out.len, text, strlen(text)) != NULL;
    tp_buf_fini(&out);
    return has_text;
}

static void test_a_trace_has_the_name_that_a_thread_has_in_it(void **state)
{
    static const char *const names[] = {"called-first", "called-later"};

    (void)state;
    make(0);
    for (int i = 0; i < 2; i++) {
        pthread_setname_np(pthread_self(), names[i]);
        recorder_rig_start(&rig);
        TP_INSTANT(rig.client, rig.kernel, "x");
        if (!drains_text(names[i]))
            fail_msg("%s is not in its trace", names[i]);
        tp_recorder_stop(rig.recorder, 0);
    }
    recorder_rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_threads_share_a_few_rings_and_lose_nothing),
        cmocka_unit_test(test_rings_of_a_closed_client_serve_the_next),
        cmocka_unit_test(test_a_slice_that_is_told_as_unfinished_is_told_once),
        cmocka_unit_test(test_clients_in_turns_need_no_lock),
        cmocka_unit_test(test_threads_over_the_limit_are_counted_as_dropped),
        cmocka_unit_test(test_free_rings_of_one_client_make_room_for_another),
        cmocka_unit_test(test_of_several_rings_that_a_thread_has_left_it_uses_one),
        cmocka_unit_test(test_threads_that_may_block_lose_nothing_to_a_steady_drain),
        cmocka_unit_test(test_traces_come_and_go_while_threads_record),
        cmocka_unit_test(test_a_fork_leaves_the_parent_alone_and_the_child_silent),
        cmocka_unit_test(test_a_child_records_as_itself_with_a_ring_of_before),
        cmocka_unit_test(test_a_trace_has_the_name_that_a_thread_has_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
