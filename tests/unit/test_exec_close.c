/* What a program that is started inherits of a link: nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "producer/exec_close.h"
#include "producer/link.h"

#define FDS_MAX 1024
#define PAIRS 3

/* Which descriptors stay open on exec. */
static void list_inherited(bool *is_inherited)
{
    for (int fd = 0; fd < FDS_MAX; fd++) {
        const int flags = fcntl(fd, F_GETFD);

        is_inherited[fd] = flags >= 0 && (flags & FD_CLOEXEC) == 0;
    }
}

static void assert_same(const bool *before, const bool *after)
{
    for (int fd = 0; fd < FDS_MAX; fd++)
        if (before[fd] != after[fd])
            fail_msg("descriptor %d: inherited before %d, after %d", fd, before[fd],
                     after[fd]);
}

/* A server that takes connections and never answers. Returns its descriptor. */
static int listen_somewhere(char *url, size_t url_bytes)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    snprintf(url, url_bytes, "http://127.0.0.1:%d", ntohs(a.sin_port));
    return fd;
}

static void test_an_exec_closes_all_that_a_link_has_open(void **state)
{
    static bool before[FDS_MAX], after[FDS_MAX];
    const struct tp_link_request request = {
        .method = "POST", .path = "/producers", .body = {"{}", 2}, .timeout_ms = 10000};
    char url[64];
    const int listener = listen_somewhere(url, sizeof(url));
    struct pollfd connected = {.fd = listener, .events = POLLIN};
    struct tp_link *l = NULL;

    (void)state;
    list_inherited(before);
    assert_int_equal(tp_link_new(&(struct tp_link_opts){.url = url}, &l, NULL), TP_OK);
    list_inherited(after);
    assert_same(before, after);
    assert_int_equal(tp_link_begin(l, TP_LINK_REPORT, &request, NULL), TP_OK);
    while (poll(&connected, 1, 0) == 0)
        tp_link_wait(l, 1);
    list_inherited(after);
    assert_same(before, after);
    tp_link_free(l);
    close(listener);
}

static void test_sockets_of_others_stay_as_they_are(void **state)
{
    static bool before[FDS_MAX], after[FDS_MAX];
    struct tp_link *links[PAIRS] = {NULL};
    int pairs[PAIRS][2];
    char byte = 'x';

    (void)state;
    for (int i = 0; i < PAIRS; i++)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
    assert_int_equal(write(pairs[1][0], &byte, 1), 1);
    list_inherited(before);
    for (int i = 0; i < PAIRS; i++)
        assert_int_equal(tp_link_new(&(struct tp_link_opts){.url = "http://localhost"},
                                     &links[i], NULL),
                         TP_OK);
    list_inherited(after);
    assert_same(before, after);
    assert_int_equal(read(pairs[1][1], &byte, 1), 1);
    for (int i = 0; i < PAIRS; i++) {
        tp_link_free(links[i]);
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
}

/* Before the pair is found, and after: a wakeup is neither lost nor left behind. */
static void test_a_link_can_be_woken_afterwards(void **state)
{
    struct tp_link *l = NULL;

    (void)state;
    assert_int_equal(tp_link_new(&(struct tp_link_opts){.url = "http://localhost"}, &l,
                                 NULL),
                     TP_OK);
    tp_link_wake(l);
    tp_link_wait(l, 3600 * 1000); /* ends at once, or the runner ends it */
    tp_link_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_exec_closes_all_that_a_link_has_open),
        cmocka_unit_test(test_sockets_of_others_stay_as_they_are),
        cmocka_unit_test(test_a_link_can_be_woken_afterwards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
