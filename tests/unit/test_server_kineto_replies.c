/*
 * test_server_kineto_replies.c - who is known has a socket of its own; a stranger is
 * answered and costs none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "kineto/table.h"
#include "server/kineto_replies.h"
#include "server/kineto_socket.h"
#include "support/fault.h"
#include "support/tmpdir.h"

#define MOST 2

struct place {
    char *dir;
    struct tp_kineto_socket sockets[2]; /* a name, and a directory */
    struct tp_kineto_replies *replies;
    unsigned n_clients;
    bool has_slash; /* clients write the directory with one at its end */
};

static int set_up(void **state)
{
    struct place *p = test_calloc(1, sizeof(*p));
    char name[40];

    p->dir = tmpdir_new_short();
    snprintf(name, sizeof(name), "tp-unit-r-%d", (int)getpid());
    assert_int_equal(tp_kineto_socket_open(name, "", 0, &p->sockets[0], NULL), TP_OK);
    assert_int_equal(tp_kineto_socket_open(name, p->dir, 1, &p->sockets[1], NULL),
                     TP_OK);
    assert_int_equal(tp_kineto_replies_new(p->sockets, MOST, &p->replies, NULL), TP_OK);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    tp_kineto_replies_free(p->replies);
    tp_kineto_socket_close(&p->sockets[0]);
    tp_kineto_socket_close(&p->sockets[1]);
    tmpdir_remove(p->dir);
    test_free(p);
    return 0;
}

static int open_client(struct place *p, uint32_t listener, struct tp_kineto_peer *peer)
{
    const size_t head = offsetof(struct sockaddr_un, sun_path);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int n = snprintf(a.sun_path + (listener == 0), sizeof(a.sun_path) - 1,
                     "%s%s/dynoconfigclient-%d-%u", listener == 0 ? "" : p->dir,
                     p->has_slash ? "/" : "", (int)getpid(), ++p->n_clients);

    n += listener == 0 ? 2 : 1;
    assert_int_equal(bind(fd, (struct sockaddr *)&a, (socklen_t)head + (socklen_t)n),
                     0);
    *peer = (struct tp_kineto_peer){.listener = listener,
                                    .address_bytes = (uint8_t)n,
                                    .uid = geteuid()};
    memcpy(peer->address, a.sun_path, (size_t)n);
    return fd;
}

static enum tp_kineto_sent say(struct place *p, const struct tp_kineto_peer *peer,
                               bool is_known, uint64_t now_ns)
{
    return tp_kineto_replies_send(p->replies, peer, (struct tp_str){"abc", 3},
                                  is_known ? 7 : 0, now_ns);
}

static void expect_read(int client)
{
    char bytes[8];

    assert_int_equal(recv(client, bytes, sizeof(bytes), 0), 3);
}

/* It has a sender, of the right kind, even if that is closed by now: libkineto aborts
 * the process that gets another. */
static void expect_read_from(int client, const struct tp_kineto_socket *s)
{
    struct sockaddr_un from = {0};
    socklen_t len = sizeof(from);
    char bytes[8];

    assert_int_equal(
        recvfrom(client, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &len), 3);
    assert_true(len > offsetof(struct sockaddr_un, sun_path) + 2);
    assert_int_equal(((const char *)&from)[len - 1], '\0');
    if (s->dir[0] == '\0')
        assert_int_equal(from.sun_path[0], '\0');
    else
        assert_memory_equal(from.sun_path, s->dir, strlen(s->dir));
}

static void test_one_that_is_known_keeps_its_socket(void **state)
{
    struct place *p = *state;

    for (uint32_t listener = 0; listener < 2; listener++) {
        struct tp_kineto_peer peer;
        int client = open_client(p, listener, &peer);

        assert_int_equal(say(p, &peer, true, 1), TP_KINETO_SENT);
        assert_true(tp_kineto_replies_unread(p->replies, &peer, 1) > 0);
        expect_read(client);
        assert_int_equal(tp_kineto_replies_unread(p->replies, &peer, 1), 0);
        assert_int_equal(say(p, &peer, true, 1), TP_KINETO_SENT);
        expect_read(client);
        assert_int_equal(tp_kineto_replies_count(p->replies), listener + 1);
        close(client);
    }
}

static void test_a_stranger_is_answered_and_keeps_none(void **state)
{
    struct place *p = *state;

    for (uint32_t listener = 0; listener < 2; listener++) {
        struct tp_kineto_peer peer;
        int client = open_client(p, listener, &peer);

        assert_int_equal(say(p, &peer, false, 1), TP_KINETO_SENT);
        expect_read_from(client, &p->sockets[listener]);
        assert_int_equal(tp_kineto_replies_count(p->replies), 0);
        assert_int_equal(tp_kineto_replies_unread(p->replies, &peer, 1), 0);
        close(client);
    }
}

static void test_there_are_never_more_than_allowed(void **state)
{
    struct place *p = *state;

    for (unsigned i = 0; i < 6; i++) {
        struct tp_kineto_peer peer;
        int client = open_client(p, i % 2, &peer);

        if (say(p, &peer, true, 1) != TP_KINETO_SENT)
            fail_msg("client %u", i);
        expect_read(client);
        close(client);
    }
    assert_int_equal(tp_kineto_replies_count(p->replies), MOST);
}

/* One user has all; another one takes half of them, first those that were not used, and
 * not one more. */
static void test_a_user_has_no_more_than_others_leave(void **state)
{
    struct place *p = *state;
    struct tp_kineto_replies *r = NULL;
    struct tp_kineto_peer peers[10];
    int clients[10];

    assert_int_equal(tp_kineto_replies_new(p->sockets, 5, &r, NULL), TP_OK);
    for (unsigned i = 0; i < 10; i++) {
        clients[i] = open_client(p, 0, &peers[i]);
        peers[i].uid += i >= 5;
    }
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(tp_kineto_replies_send(r, &peers[i], (struct tp_str){"abc", 3},
                                                i + 1, 100 + i % 5),
                         TP_KINETO_SENT);
        expect_read(clients[i]);
        if (i == 4)
            tp_kineto_replies_unread(r, &peers[0], 110); /* it has asked again */
    }
    assert_int_equal(tp_kineto_replies_count(r), 5);
    for (unsigned i = 0; i < 10; i++) {
        bool has = i == 0 || i == 3 || i == 4 || i == 5 || i == 6;

        if (tp_kineto_replies_has(r, &peers[i]) != has)
            fail_msg("client %u", i);
    }
    for (unsigned i = 0; i < 10; i++) /* and nobody takes it back */
        tp_kineto_replies_send(r, &peers[i], (struct tp_str){"abc", 3}, i + 1, 120);
    assert_true(tp_kineto_replies_has(r, &peers[3]));
    assert_true(tp_kineto_replies_has(r, &peers[6]));
    assert_false(tp_kineto_replies_has(r, &peers[7]));
    tp_kineto_replies_free(r);
    for (unsigned i = 0; i < 10; i++)
        close(clients[i]);
}

static void test_one_that_does_not_read_keeps_nobody_waiting(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer peer;
    int client = open_client(p, 0, &peer);
    unsigned n = 0;

    while (n < 100000 && say(p, &peer, true, 1) == TP_KINETO_SENT)
        n++;
    assert_true(n < 100000);
    assert_int_equal(say(p, &peer, true, 1), TP_KINETO_SENT_NOT_NOW);
    assert_int_equal(tp_kineto_replies_count(p->replies), 1);
    close(client);
}

/* Nor a stranger who does not read, in as many sockets as it likes, other strangers. */
static void test_strangers_that_do_not_read_keep_no_stranger_waiting(void **state)
{
    struct place *p = *state;
    int clients[600];
    size_t n_clients = sizeof(clients) / sizeof(clients[0]);

    for (uint32_t listener = 0; listener < 2; listener++) {
        struct tp_kineto_peer peer;
        int client;

        for (size_t i = 0; i < n_clients; i++) {
            clients[i] = open_client(p, listener, &peer);
            for (int k = 0; k < 5; k++)
                say(p, &peer, false, 1);
        }
        client = open_client(p, listener, &peer);
        if (say(p, &peer, false, 1) != TP_KINETO_SENT)
            fail_msg("listener %u", (unsigned)listener);
        expect_read_from(client, &p->sockets[listener]);
        close(client);
        for (size_t i = 0; i < n_clients; i++)
            close(clients[i]);
    }
}

/* Known or not, and with a slash behind the directory: there is always an answer. */
static void test_without_descriptors_all_are_answered(void **state)
{
    struct place *p = *state;
    struct rlimit before, none = {0};
    struct tp_kineto_peer peers[6];
    int clients[6];

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none.rlim_max = before.rlim_max;
    for (unsigned i = 0; i < 6; i++) {
        p->has_slash = i >= 4;
        clients[i] = open_client(p, i % 2 == 1 || i >= 4, &peers[i]);
    }
    p->has_slash = false;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (unsigned i = 0; i < 12; i++) {
        enum tp_kineto_sent sent = say(p, &peers[i % 6], i % 4 >= 2, 1);

        if (sent != TP_KINETO_SENT)
            fail_msg("client %u: %d", i % 6, (int)sent);
        expect_read_from(clients[i % 6], &p->sockets[peers[i % 6].listener]);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(tp_kineto_replies_count(p->replies), 0);
    for (unsigned i = 0; i < 6; i++) {
        close(clients[i]);
        assert_int_not_equal(say(p, &peers[i], false, 1), TP_KINETO_SENT);
    }
}

static void test_one_that_has_ended_is_gone_and_its_socket_too(void **state)
{
    struct place *p = *state;

    for (uint32_t listener = 0; listener < 2; listener++) {
        for (int is_known = 0; is_known < 2; is_known++) {
            struct tp_kineto_peer peer;
            int client = open_client(p, listener, &peer);

            if (is_known)
                assert_int_equal(say(p, &peer, true, 1), TP_KINETO_SENT);
            close(client);
            assert_int_equal(say(p, &peer, is_known, 2), TP_KINETO_SENT_GONE);
            assert_int_equal(tp_kineto_replies_count(p->replies), 0);
        }
    }
}

static void test_another_one_with_the_same_address_is_answered_at_once(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer peer, again;
    int client = open_client(p, 0, &peer);

    assert_int_equal(say(p, &peer, true, 1), TP_KINETO_SENT);
    close(client);
    p->n_clients--;
    client = open_client(p, 0, &again);
    assert_memory_equal(&peer, &again, sizeof(peer));
    assert_int_equal(say(p, &again, true, 2), TP_KINETO_SENT);
    expect_read(client);
    close(client);
}

/* Its socket is not used for another user who asks from the same path. */
static void test_the_socket_of_a_process_is_its_users(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer peer, other;
    int client = open_client(p, 1, &peer);

    assert_false(tp_kineto_replies_has(p->replies, &peer));
    assert_int_equal(say(p, &peer, true, 1), TP_KINETO_SENT);
    assert_true(tp_kineto_replies_has(p->replies, &peer));
    expect_read(client);
    other = peer;
    other.uid++;
    assert_false(tp_kineto_replies_has(p->replies, &other));
    for (int is_known = 0; is_known < 2; is_known++)
        assert_int_not_equal(say(p, &other, is_known, 1), TP_KINETO_SENT);
    assert_int_equal(recv(client, &(char){0}, 1, 0), -1);
    assert_true(tp_kineto_replies_has(p->replies, &peer));
    assert_int_equal(tp_kineto_replies_count(p->replies), 1);
    close(client);
}

#define MS UINT64_C(1000000)
#define LOOK (TP_KINETO_LOOK_NS + TP_KINETO_LOOK_STEP_NS) /* then it is surely due */

/* The next look must be at that target, and show whether anything is unread. */
static void expect_look(struct place *p, uint64_t now_ns, uint64_t target,
                        bool is_unread)
{
    struct tp_kineto_look got;

    if (!tp_kineto_replies_look(p->replies, now_ns, &got))
        fail_msg("no look is due at %llu ms", (unsigned long long)(now_ns / MS));
    assert_int_equal(got.target, target);
    assert_int_equal(got.unread_bytes > 0, is_unread);
}

static void expect_no_look(struct place *p, uint64_t now_ns)
{
    struct tp_kineto_look got;

    assert_false(tp_kineto_replies_look(p->replies, now_ns, &got));
}

static enum tp_kineto_sent tell(struct place *p, const struct tp_kineto_peer *peer,
                                uint64_t target, uint64_t now_ns)
{
    return tp_kineto_replies_send(p->replies, peer, (struct tp_str){"abc", 3}, target,
                                  now_ns);
}

static void test_each_request_is_followed_by_one_look(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer a, b;
    int one = open_client(p, 0, &a), two = open_client(p, 1, &b);

    expect_no_look(p, UINT64_MAX - 1);
    assert_true(tp_kineto_replies_look_ns(p->replies) == UINT64_MAX);
    tell(p, &a, 11, 1001 * MS);
    tell(p, &b, 12, 1010 * MS);
    expect_read(one);
    /* At the same time, and not before the window is over. */
    assert_true(tp_kineto_replies_look_ns(p->replies) >= 1010 * MS + TP_KINETO_LOOK_NS);
    expect_no_look(p, 1010 * MS + TP_KINETO_LOOK_NS - 1);
    expect_look(p, 1010 * MS + LOOK, 11, false);
    expect_look(p, 1010 * MS + LOOK, 12, true);
    expect_no_look(p, 1010 * MS + LOOK);
    /* What was read is looked at no more; what was not is. */
    expect_read(two);
    expect_look(p, 1010 * MS + 2 * LOOK, 12, false);
    assert_true(tp_kineto_replies_look_ns(p->replies) == UINT64_MAX);
    assert_int_equal(tp_kineto_replies_unread(p->replies, &b, 3000 * MS), 0);
    tell(p, &b, 12, 3000 * MS);
    assert_true(tp_kineto_replies_unread(p->replies, &b, 3000 * MS) > 0);
    close(one);
    close(two);
}

static void test_who_asks_again_is_looked_at_later(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer a, b;
    int one = open_client(p, 0, &a), two = open_client(p, 0, &b);

    tell(p, &a, 11, 1000 * MS);
    tell(p, &b, 12, 1000 * MS);
    tp_kineto_replies_skip(p->replies, &a, 11, 1200 * MS);
    expect_look(p, 1000 * MS + LOOK, 12, true);
    expect_no_look(p, 1000 * MS + LOOK);
    expect_look(p, 1200 * MS + LOOK, 11, true); /* also without an answer */
    close(one);
    close(two);
}

static void test_one_that_never_reads_is_looked_at_until_it_is_silent(void **state)
{
    struct place *p = *state;
    const uint64_t silence = TP_KINETO_SILENCE_S * TP_KINETO_SECOND_NS;
    struct tp_kineto_peer peer;
    int client = open_client(p, 0, &peer);
    uint64_t now_ns = 1000 * MS;
    unsigned n = 0;

    tell(p, &peer, 11, now_ns);
    while (tp_kineto_replies_look_ns(p->replies) != UINT64_MAX && n < 1000) {
        now_ns = tp_kineto_replies_look_ns(p->replies);
        expect_look(p, now_ns, 11, true);
        n++;
    }
    assert_true(n > 50 && n < 200);
    assert_true(now_ns >= 1000 * MS + silence && now_ns < 1000 * MS + silence + LOOK);
    close(client);
}

/* Whether the service closed it or the process has ended, or another one has its
 * address by now. */
static void test_a_look_is_at_who_has_the_address(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer peer, again;
    int client = open_client(p, 0, &peer);

    tell(p, &peer, 11, 1);
    tell(p, &peer, 12, 2); /* its credentials changed, so it is another process */
    expect_look(p, 2 + LOOK, 12, true);
    close(client);
    expect_look(p, 2 + 2 * LOOK, 12, false); /* and what was unread is gone */
    tell(p, &peer, 12, 1000 * MS);           /* it ended: its socket is closed */
    assert_true(tp_kineto_replies_look_ns(p->replies) == UINT64_MAX);

    p->n_clients--;
    client = open_client(p, 0, &again);
    tell(p, &again, 13, 2000 * MS);
    tp_kineto_replies_tidy(p->replies, 2000 * MS + TP_KINETO_REPLY_IDLE_NS);
    assert_true(tp_kineto_replies_look_ns(p->replies) == UINT64_MAX);
    tell(p, &again, 13, 99000 * MS); /* what it has not read is of both sockets */
    expect_read(client);
    expect_look(p, 99000 * MS + LOOK, 13, true);
    close(client);
}

static void test_strangers_are_not_looked_at(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer peer;
    int client = open_client(p, 0, &peer);

    tell(p, &peer, 0, 1);
    tp_kineto_replies_skip(p->replies, &peer, 0, 1);
    assert_true(tp_kineto_replies_look_ns(p->replies) == UINT64_MAX);
    close(client);
}

static void test_what_is_not_used_is_closed(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer a, b;
    int one = open_client(p, 0, &a), two = open_client(p, 1, &b);

    say(p, &a, true, 1);
    say(p, &b, true, 1);
    tp_kineto_replies_unread(p->replies, &b, 10); /* it has asked again */
    tp_kineto_replies_tidy(p->replies, TP_KINETO_REPLY_IDLE_NS + 5);
    assert_int_equal(tp_kineto_replies_count(p->replies), 1);
    assert_true(tp_kineto_replies_unread(p->replies, &b, 10) > 0);
    close(one);
    close(two);
}

static void test_an_answer_is_sent_whatever_allocation_fails(void **state)
{
    struct place *p = *state;
    struct tp_kineto_replies *r = NULL;

    fault_arm(0);
    assert_int_equal(tp_kineto_replies_new(p->sockets, MOST, &r, NULL), TP_ENOMEM);
    assert_true(fault_disarm());
    assert_null(r);
    for (int n = 0;; n++) {
        struct tp_kineto_peer peer;
        int client = open_client(p, 0, &peer);
        enum tp_kineto_sent sent;
        bool has_failed;

        fault_arm(n);
        sent = say(p, &peer, true, 1);
        has_failed = fault_disarm();
        if (sent != TP_KINETO_SENT)
            fail_msg("allocation %d: %d", n, (int)sent);
        expect_read(client);
        close(client);
        assert_int_equal(tp_kineto_replies_count(p->replies), !has_failed);
        if (!has_failed)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        TEST(test_one_that_is_known_keeps_its_socket),
        TEST(test_a_stranger_is_answered_and_keeps_none),
        TEST(test_there_are_never_more_than_allowed),
        TEST(test_a_user_has_no_more_than_others_leave),
        TEST(test_one_that_does_not_read_keeps_nobody_waiting),
        TEST(test_strangers_that_do_not_read_keep_no_stranger_waiting),
        TEST(test_without_descriptors_all_are_answered),
        TEST(test_one_that_has_ended_is_gone_and_its_socket_too),
        TEST(test_another_one_with_the_same_address_is_answered_at_once),
        TEST(test_the_socket_of_a_process_is_its_users),
        TEST(test_each_request_is_followed_by_one_look),
        TEST(test_who_asks_again_is_looked_at_later),
        TEST(test_one_that_never_reads_is_looked_at_until_it_is_silent),
        TEST(test_a_look_is_at_who_has_the_address),
        TEST(test_strangers_are_not_looked_at),
        TEST(test_what_is_not_used_is_closed),
        TEST(test_an_answer_is_sent_whatever_allocation_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
