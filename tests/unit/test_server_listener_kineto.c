/*
 * test_server_listener_kineto.c - the thread that answers: everybody who asks by the
 * book, nobody who does not, and others while one floods. The clock is the real one;
 * names are of this process alone.
 */
#include "server/listener_kineto.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/clock.h"
#include "server/kineto_socket.h"
#include "support/engine_test.h"
#include "support/fault.h"
#include "support/kineto_bytes.h"

static const struct tp_kineto_opts opts = {
    .trace_dir = "/tmp/tp", .root_dir = "/tmp", .uids = {7}, .n_uids = 1};

struct place {
    struct rig rig;
    char name[40];
    struct tp_kineto_listener *listener;
    _Atomic unsigned n_news;
};

static void count_news(void *arg)
{
    struct place *p = arg;

    p->n_news++;
}

static int start(struct place *p)
{
    struct tp_kineto_socket s;

    assert_int_equal(tp_kineto_socket_open(p->name, "", 0, &s, NULL), TP_OK);
    return tp_kineto_listener_start(p->rig.engine, &s, 1,
                                    &(struct tp_kineto_calls){.on_news = count_news,
                                                              .arg = p},
                                    &p->listener, &p->rig.err);
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    rig_init(&p->rig);
    p->rig.kineto = &opts;
    p->rig.now = tp_clock_now();
    assert_int_equal(rig_start(&p->rig), TP_OK);
    snprintf(p->name, sizeof(p->name), "tp-unit-l-%d", (int)getpid());
    assert_int_equal(start(p), TP_OK);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    tp_kineto_listener_stop(p->listener);
    rig_fini(&p->rig);
    free(p);
    return 0;
}

static socklen_t address(const char *name, struct sockaddr_un *out)
{
    int n;

    memset(out, 0, sizeof(*out));
    out->sun_family = AF_UNIX;
    n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 2);
}

static int open_client(const char *tag)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a;
    char name[80];

    snprintf(name, sizeof(name), "dynoconfigclient-%s-%d", tag, (int)getpid());
    if (bind(fd, (struct sockaddr *)&a, address(name, &a)) != 0)
        _exit(9);
    return fd;
}

/* Waits while the queue is full. */
static void say(const struct place *p, int fd, const void *bytes, size_t n)
{
    struct sockaddr_un a;

    if (sendto(fd, bytes, n, 0, (struct sockaddr *)&a, address(p->name, &a)) != (long)n)
        _exit(8);
}

static void ask(const struct place *p, int fd)
{
    const int32_t pids[] = {42, 1};
    char bytes[KINETO_BYTES_MAX];

    say(p, fd, bytes, kineto_request(bytes, 2, 0, pids, 2));
}

static void expect_answer(int fd)
{
    char bytes[100];

    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 40);
}

static void test_who_asks_is_answered_and_known(void **state)
{
    struct place *p = *state;
    struct tp_kineto_stats stats;
    int fd = open_client("a");

    for (int i = 0; i < 3; i++) {
        ask(p, fd);
        expect_answer(fd);
    }
    tp_engine_kineto_stats(p->rig.engine, &stats);
    assert_int_equal(stats.n_targets, 1);
    assert_int_equal(stats.answers[TP_KINETO_ANSWER_EMPTY], 3);
    assert_int_equal(stats.repairs, 0);
    close(fd);
}

static void test_what_is_none_is_counted_and_not_answered(void **state)
{
    struct place *p = *state;
    struct tp_kineto_stats stats;
    int fd = open_client("b"), nobody = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char bytes[500] = {0};

    say(p, fd, bytes, 0);
    say(p, fd, bytes, 39);
    say(p, fd, bytes, sizeof(bytes));
    ask(p, nobody); /* there is no address to answer to */
    ask(p, fd);
    expect_answer(fd);
    assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), -1);
    tp_engine_kineto_stats(p->rig.engine, &stats);
    assert_int_equal(stats.answers[TP_KINETO_ANSWER_NONE_BAD], 4);
    close(fd);
    close(nobody);
}

/* In a process of its own: what one process sends is counted together. */
static bool ask_from_another_process(const struct place *p)
{
    pid_t pid = fork();
    int status, fd;
    char bytes[100];

    if (pid == 0) {
        fd = open_client("other");
        ask(p, fd);
        _exit(recv(fd, bytes, sizeof(bytes), 0) == 40 ? 0 : 1);
    }
    return waitpid(pid, &status, 0) == pid && status == 0;
}

static void test_a_flood_is_thrown_away_and_others_are_answered(void **state)
{
    struct place *p = *state;
    struct tp_kineto_stats stats;
    int fd = open_client("flood");
    const unsigned n = 5000;

    for (unsigned i = 0; i < n; i++) {
        ask(p, fd);
        if (i % 1000 == 999 && !ask_from_another_process(p))
            fail_msg("the other one was not answered after %u", i);
    }
    tp_engine_kineto_stats(p->rig.engine, &stats);
    assert_true(stats.answers[TP_KINETO_ANSWER_EMPTY] >= 6); /* once, and the five */
    assert_true(stats.answers[TP_KINETO_ANSWER_NONE_FLOOD] > 0);
    assert_int_equal(stats.answers[TP_KINETO_ANSWER_NONE_BAD], 0);
    close(fd);
}

/* Wait until somebody was told of news more than n times. */
static unsigned wait_for_news(const struct place *p, unsigned n)
{
    for (int i = 0; i < 10000 && p->n_news <= n; i++)
        usleep(1000);
    assert_true(p->n_news > n);
    return p->n_news;
}

static uint64_t skipped(struct place *p)
{
    struct tp_kineto_stats stats;

    tp_engine_kineto_stats(p->rig.engine, &stats);
    return stats.answers[TP_KINETO_ANSWER_NONE_SKIPPED];
}

/* As on another processor: it has read the old answer when its request is looked at. */
static void test_one_that_is_behind_catches_up_whatever_it_has_read_by_then(
    void **state)
{
    struct place *p = *state;
    int fd = open_client("late");
    unsigned n_news, n_before;

    ask(p, fd);
    n_news = wait_for_news(p, 0);
    do { /* until a look finds that; and none comes between reading and asking */
        n_news = wait_for_news(p, n_news);
        n_before = p->n_news;
        expect_answer(fd);
        ask(p, fd);
    } while (n_before != n_news);
    for (int i = 0; i < 10000 && skipped(p) == 0; i++)
        usleep(1000);
    assert_int_equal(skipped(p), 1);
    ask(p, fd);
    expect_answer(fd);
    close(fd);
}

static void test_there_are_news_when_somebody_asked(void **state)
{
    struct place *p = *state;
    int fd = open_client("n");

    ask(p, fd);
    expect_answer(fd);
    tp_kineto_listener_stop(p->listener); /* it tells before it ends */
    p->listener = NULL;
    assert_true(p->n_news > 0);
    close(fd);
}

static void test_it_survives_every_allocation_failure_of_its_start(void **state)
{
    struct place *p = *state;

    for (int n = 0;; n++) {
        struct tp_kineto_socket s;
        int rc;

        tp_kineto_listener_stop(p->listener);
        p->listener = NULL;
        /* The name is free again, also after a failure. */
        assert_int_equal(tp_kineto_socket_open(p->name, "", 0, &s, NULL), TP_OK);
        fault_arm(n);
        rc = tp_kineto_listener_start(p->rig.engine, &s, 1,
                                      &(struct tp_kineto_calls){0}, &p->listener,
                                      &p->rig.err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(n, 2); /* itself, and the set of answering sockets */
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(p->listener);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        TEST(test_who_asks_is_answered_and_known),
        TEST(test_what_is_none_is_counted_and_not_answered),
        TEST(test_a_flood_is_thrown_away_and_others_are_answered),
        TEST(test_one_that_is_behind_catches_up_whatever_it_has_read_by_then),
        TEST(test_there_are_news_when_somebody_asked),
        TEST(test_it_survives_every_allocation_failure_of_its_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
