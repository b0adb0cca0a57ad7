/*
 * Addresses and their sockets, on ports that the kernel picks and in directories of our
 * own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "server/listen.h"
#include "support/fault.h"
#include "support/tmpdir.h"

static bool has_v6(void)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&a, sizeof(a)) == 0;

    if (fd >= 0)
        close(fd);
    return has;
}

static unsigned port_of(const struct tp_listener *l)
{
    return (unsigned)strtoul(strrchr(l->text, ':') + 1, NULL, 10);
}

/* Whether a client gets a connection at 127.0.0.1. */
static bool can_connect(unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool can;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    can = connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0;
    close(fd);
    return can;
}

static void test_what_is_no_loopback_address_is_refused_with_a_reason(void **state)
{
    static const struct {
        const char *text;
        int rc;
    } cases[] = {
        {"", TP_EINVAL},
        {"8750", TP_EINVAL},
        {":8750", TP_EINVAL},
        {"127.0.0.1", TP_EINVAL},
        {"127.0.0.1:", TP_EINVAL},
        {"127.0.0.1:65536", TP_EINVAL},
        {"127.0.0.1:99999999999999999999", TP_EINVAL},
        {"127.0.0.1:-1", TP_EINVAL},
        {"127.0.0.1:+1", TP_EINVAL},
        {"127.0.0.1:80x", TP_EINVAL},
        {"127.0.0.1: 80", TP_EINVAL},
        {"127.0.0:80", TP_EINVAL},
        {"127.0.0.1.1:80", TP_EINVAL},
        {"example.org:80", TP_EINVAL},
        {"LOCALHOST.:80", TP_EINVAL},
        {"::1:80", TP_EINVAL},
        {"[::1]", TP_EINVAL},
        {"[]:80", TP_EINVAL},
        {"[::1:80", TP_EINVAL},
        {"[::1]x:80", TP_EINVAL},
        {"unix:", TP_EINVAL},
        {"0.0.0.0:0", TP_EDENIED},
        {"10.0.0.1:0", TP_EDENIED},
        {"[::]:0", TP_EDENIED},
        {"[fe80::1]:0", TP_EDENIED},
        {"[::ffff:10.0.0.1]:0", TP_EDENIED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_listeners set = {0};
        struct tp_err err = {0};
        int rc = tp_listen_add(&set, cases[i].text, 1, &err);

        if (rc != cases[i].rc || err.code != rc || err.message[0] == '\0' || set.n != 0)
            fail_msg("'%s': %d, '%s'", cases[i].text, rc, err.message);
        tp_listen_close(&set);
    }
}

static void test_loopback_sends_without_pacing(void **state)
{
    struct tp_listeners set = {0};
    struct tp_err err = {0};
    char name[16] = "";
    socklen_t n = sizeof(name);

    (void)state;
    assert_int_equal(tp_listen_add(&set, "127.0.0.1:0", 1, &err), TP_OK);
    assert_int_equal(
        getsockopt(set.items[0].fds[0], IPPROTO_TCP, TCP_CONGESTION, name, &n), 0);
    assert_string_equal(name, "reno");
    tp_listen_close(&set);
}

static void test_port_0_picks_one_that_all_sockets_share(void **state)
{
    struct tp_listeners set = {0};
    struct tp_err err = {0};

    (void)state;
    assert_int_equal(tp_listen_add(&set, "127.0.0.1:0", 3, &err), TP_OK);
    assert_int_equal(set.n, 1);
    assert_false(set.items[0].is_unix);
    assert_int_equal(set.items[0].n_fds, 3);
    assert_true(port_of(&set.items[0]) != 0);
    for (size_t i = 0; i < 3; i++) {
        struct sockaddr_in a;
        socklen_t n = sizeof(a);

        assert_int_equal(getsockname(set.items[0].fds[i], (struct sockaddr *)&a, &n),
                         0);
        assert_int_equal(ntohs(a.sin_port), port_of(&set.items[0]));
    }
    assert_true(can_connect(port_of(&set.items[0])));
    tp_listen_close(&set);
}

static void test_a_port_in_use_is_told_although_ports_are_shared(void **state)
{
    struct tp_listeners first = {0};
    struct tp_listeners second = {0};
    struct tp_err err = {0};

    (void)state;
    assert_int_equal(tp_listen_add(&first, "127.0.0.1:0", 2, &err), TP_OK);
    assert_int_equal(tp_listen_add(&second, first.items[0].text, 2, &err), TP_EEXIST);
    assert_non_null(strstr(err.message, first.items[0].text));
    assert_int_equal(second.n, 0);
    tp_listen_close(&second);
    assert_true(can_connect(port_of(&first.items[0])));
    tp_listen_close(&first);
}

static void test_localhost_is_both_families_on_one_port(void **state)
{
    struct tp_listeners set = {0};
    struct tp_err err = {0};

    (void)state;
    assert_int_equal(tp_listen_add(&set, "localhost:0", 1, &err), TP_OK);
    assert_int_equal(set.n, has_v6() ? 2 : 1);
    if (set.n == 2) {
        assert_int_equal(strncmp(set.items[1].text, "[::1]:", 6), 0);
        assert_int_equal(port_of(&set.items[0]), port_of(&set.items[1]));
    }
    tp_listen_close(&set);
}

static void test_localhost_is_refused_whole_when_one_family_is_taken(void **state)
{
    struct tp_listeners first = {0};
    struct tp_listeners set = {0};
    struct tp_err err = {0};
    char text[32];

    (void)state;
    if (!has_v6())
        skip();
    assert_int_equal(tp_listen_add(&first, "[::1]:0", 1, &err), TP_OK);
    snprintf(text, sizeof(text), "localhost:%u", port_of(&first.items[0]));
    assert_int_equal(tp_listen_add(&set, text, 1, &err), TP_EEXIST);
    assert_int_equal(set.n, 0);
    tp_listen_close(&set);
    tp_listen_close(&first);
}

static void test_v6_is_opened_and_named_with_brackets(void **state)
{
    struct tp_listeners set = {0};
    struct tp_err err = {0};

    (void)state;
    if (!has_v6())
        skip();
    assert_int_equal(tp_listen_add(&set, "[::1]:0", 1, &err), TP_OK);
    assert_int_equal(strncmp(set.items[0].text, "[::1]:", 6), 0);
    tp_listen_close(&set);
}

/* Listens at a path in dir; the text is the caller's to free. */
static char *unix_text(const char *dir, const char *name)
{
    char *path = tmpdir_path(dir, name);
    size_t n = strlen(path) + 6;
    char *text = malloc(n);

    assert_non_null(text);
    snprintf(text, n, "unix:%s", path);
    free(path);
    return text;
}

static int bind_unix(const char *text, int type)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type, 0);

    assert_true(fd >= 0);
    snprintf(a.sun_path, sizeof(a.sun_path), "%s", text + 5);
    assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static void test_a_unix_socket_is_for_the_same_user_and_goes_at_the_end(void **state)
{
    char *dir = tmpdir_new();
    char *text = unix_text(dir, "s");
    struct tp_listeners set = {0};
    struct tp_err err = {0};
    struct stat st;

    (void)state;
    assert_int_equal(tp_listen_add(&set, text, 4, &err), TP_OK);
    assert_string_equal(set.items[0].text, text);
    assert_true(set.items[0].is_unix);
    assert_int_equal(set.items[0].n_fds, 1);
    assert_int_equal(lstat(text + 5, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    tp_listen_close(&set);
    assert_int_not_equal(lstat(text + 5, &st), 0);
    free(text);
    tmpdir_remove(dir);
}

static void test_a_socket_file_that_a_crash_left_is_replaced(void **state)
{
    char *dir = tmpdir_new();
    char *text = unix_text(dir, "s");
    struct tp_listeners set = {0};
    struct tp_err err = {0};

    (void)state;
    close(bind_unix(text, SOCK_STREAM));
    assert_int_equal(tp_listen_add(&set, text, 1, &err), TP_OK);
    tp_listen_close(&set);
    free(text);
    tmpdir_remove(dir);
}

/* What is not ours at that path stays there, whatever it is. */
static void expect_left_alone(const char *what, const char *text)
{
    struct tp_listeners set = {0};
    struct tp_err err = {0};
    struct stat before;
    struct stat after;
    int rc;

    assert_int_equal(lstat(text + 5, &before), 0);
    rc = tp_listen_add(&set, text, 1, &err);
    if (rc != TP_EEXIST || lstat(text + 5, &after) != 0 ||
        after.st_ino != before.st_ino)
        fail_msg("%s: %d, '%s'", what, rc, err.message);
    assert_int_equal(set.n, 0);
    tp_listen_close(&set);
}

static void test_what_others_have_at_that_path_is_left_alone(void **state)
{
    char *dir = tmpdir_new();
    char *file = unix_text(dir, "file");
    char *stream = unix_text(dir, "stream");
    char *datagram = unix_text(dir, "datagram");
    int listening = bind_unix(stream, SOCK_STREAM);
    int bound = bind_unix(datagram, SOCK_DGRAM);

    (void)state;
    tmpdir_write(dir, "file", "text", 4);
    assert_int_equal(listen(listening, 1), 0);
    expect_left_alone("a file", file);
    expect_left_alone("a socket that is listened on", stream);
    expect_left_alone("a datagram socket in use", datagram);
    close(listening);
    close(bound);
    free(file);
    free(stream);
    free(datagram);
    tmpdir_remove(dir);
}

static void test_a_path_that_does_not_fit_is_refused(void **state)
{
    char text[300] = "unix:/tmp/";
    struct tp_listeners set = {0};
    struct tp_err err = {0};

    (void)state;
    memset(text + 10, 'x', sizeof(text) - 11);
    assert_int_equal(tp_listen_add(&set, text, 1, &err), TP_EINVAL);
    assert_int_equal(tp_listen_add(&set, "unix:/nonexistent/x/y", 1, &err), TP_EIO);
    assert_int_equal(set.n, 0);
    tp_listen_close(&set);
}

static void test_loopback_is_127_and_1_and_nothing_else(void **state)
{
    static const struct {
        const char *text;
        bool is;
    } cases[] = {
        {"127.0.0.1", true}, {"127.255.0.9", true}, {"128.0.0.1", false},
        {"0.0.0.0", false},  {"1.0.0.127", false},  {"::1", true},
        {"::", false},       {"::2", false},        {"::ffff:127.0.0.1", false}};
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sockaddr_in v4 = {.sin_family = AF_INET};
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
        const struct sockaddr *a = (const struct sockaddr *)&v4;

        if (inet_pton(AF_INET, cases[i].text, &v4.sin_addr) != 1) {
            assert_int_equal(inet_pton(AF_INET6, cases[i].text, &v6.sin6_addr), 1);
            a = (const struct sockaddr *)&v6;
        }
        if (tp_listen_is_loopback(a) != cases[i].is)
            fail_msg("%s is taken wrongly", cases[i].text);
    }
    assert_false(tp_listen_is_loopback((const struct sockaddr *)&un));
}

/* Open one address while the n-th allocation fails; what was open before stays. */
static bool open_with_fault(const char *text, int n)
{
    struct tp_listeners set = {0};
    struct tp_err err = {0};
    struct stat st;
    bool has_failed;
    int rc;

    assert_int_equal(tp_listen_add(&set, "127.0.0.1:0", 1, &err), TP_OK);
    fault_arm(n);
    rc = tp_listen_add(&set, text, 2, &err);
    has_failed = fault_disarm();
    if (has_failed && strncmp(text, "unix:", 5) == 0)
        assert_int_not_equal(lstat(text + 5, &st), 0);
    if (has_failed ? rc != TP_ENOMEM || set.n != 1 : rc != TP_OK || set.n < 2)
        fail_msg("%s, allocation %d: %d, '%s'", text, n, rc, err.message);
    assert_true(can_connect(port_of(&set.items[0])));
    tp_listen_close(&set);
    return has_failed;
}

static void test_without_memory_nothing_more_is_open(void **state)
{
    char *dir = tmpdir_new();
    char *text = unix_text(dir, "s");
    int n;

    (void)state;
    for (n = 0; open_with_fault(text, n); n++)
        ;
    assert_int_equal(n, 2);
    for (n = 0; open_with_fault("127.0.0.1:0", n); n++)
        ;
    assert_int_equal(n, 2);
    for (n = 0; open_with_fault("localhost:0", n); n++)
        ;
    assert_int_equal(n, has_v6() ? 4 : 2);
    free(text);
    tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_loopback_address_is_refused_with_a_reason),
        cmocka_unit_test(test_loopback_sends_without_pacing),
        cmocka_unit_test(test_port_0_picks_one_that_all_sockets_share),
        cmocka_unit_test(test_a_port_in_use_is_told_although_ports_are_shared),
        cmocka_unit_test(test_localhost_is_both_families_on_one_port),
        cmocka_unit_test(test_localhost_is_refused_whole_when_one_family_is_taken),
        cmocka_unit_test(test_v6_is_opened_and_named_with_brackets),
        cmocka_unit_test(test_a_unix_socket_is_for_the_same_user_and_goes_at_the_end),
        cmocka_unit_test(test_a_socket_file_that_a_crash_left_is_replaced),
        cmocka_unit_test(test_what_others_have_at_that_path_is_left_alone),
        cmocka_unit_test(test_a_path_that_does_not_fit_is_refused),
        cmocka_unit_test(test_loopback_is_127_and_1_and_nothing_else),
        cmocka_unit_test(test_without_memory_nothing_more_is_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
