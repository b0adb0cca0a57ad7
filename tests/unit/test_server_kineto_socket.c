/*
 * test_server_kineto_socket.c - names that clients find, and answers that cannot end
 * the process that gets them. Abstract names are of this process alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "server/kineto_socket.h"
#include "support/tmpdir.h"

/* What others do to the path right after it was made; NULL = nothing. */
static void (*after_bind)(const char *path);

/* In place of the library's. */
int bind(int fd, const struct sockaddr *a, socklen_t len)
{
    int rc = (int)syscall(SYS_bind, fd, a, len);

    if (after_bind != NULL)
        after_bind(((const struct sockaddr_un *)(const void *)a)->sun_path);
    return rc;
}

static uint32_t fs_type = 0x01021994; /* of all directories: tmpfs */

/* In place of the library's. */
int statfs(const char *path, struct statfs *out)
{
    if (access(path, F_OK) != 0)
        return -1;
    memset(out, 0, sizeof(*out));
    memcpy(&out->f_type, &fs_type, sizeof(fs_type)); /* it is signed, maybe */
    return 0;
}

struct place {
    char *dir;
    char name[40];
    struct tp_kineto_socket named, in_dir;
};

static int set_up(void **state)
{
    struct place *p = test_calloc(1, sizeof(*p));

    p->dir = tmpdir_new_short();
    snprintf(p->name, sizeof(p->name), "tp-unit-%d", (int)getpid());
    assert_int_equal(tp_kineto_socket_open(p->name, "", 0, &p->named, NULL), TP_OK);
    assert_int_equal(tp_kineto_socket_open(p->name, p->dir, 1, &p->in_dir, NULL),
                     TP_OK);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    fs_type = 0x01021994;
    tp_kineto_socket_close(&p->named);
    tp_kineto_socket_close(&p->in_dir);
    tmpdir_remove(p->dir);
    test_free(p);
    return 0;
}

/* As libkineto writes an address: the NUL at the end counts. */
static socklen_t address(const char *dir, const char *name, struct sockaddr_un *out)
{
    size_t n;

    memset(out, 0, sizeof(*out));
    out->sun_family = AF_UNIX;
    n = (size_t)snprintf(out->sun_path + (*dir == '\0'), sizeof(out->sun_path) - 1,
                         "%s%s%s", dir, *dir == '\0' ? "" : "/", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1 + (*dir == '\0'));
}

/* A client, and how the service sees it. */
static int open_client(const char *dir, const char *name, struct tp_kineto_peer *peer)
{
    struct sockaddr_un a;
    socklen_t len = address(dir, name, &a);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    memset(peer, 0, sizeof(*peer));
    peer->listener = *dir != '\0';
    peer->uid = geteuid();
    peer->address_bytes =
        (uint8_t)(len - (socklen_t)offsetof(struct sockaddr_un, sun_path));
    memcpy(peer->address, a.sun_path, peer->address_bytes);
    return fd;
}

static void test_clients_find_the_name_and_the_path(void **state)
{
    struct place *p = *state;
    const char *dirs[] = {"", p->dir};

    for (int i = 0; i < 2; i++) {
        struct sockaddr_un a;
        socklen_t len = address(dirs[i], p->name, &a);
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&a, len) != 1)
            fail_msg("in '%s': %s", dirs[i], strerror(errno));
        close(fd);
    }
}

static void test_what_cannot_be_a_name_or_a_directory_is_refused(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"a/b", ""},
        {"a b", ""},
        {"0123456789012345678901234567890123456789012345678", ""},
        {"a", "relative"},
        {"a", "/"},
        {"a", "/ends/"},
        {"a", "/1234567890123456789012345678901234567890123456789012345"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_kineto_socket s = {.fd = 4711};
        struct tp_err err = {0};
        int rc = tp_kineto_socket_open(cases[i][0], cases[i][1], 0, &s, &err);

        if (rc != TP_EINVAL || s.fd != 4711 || err.message[0] == '\0')
            fail_msg("'%s' in '%s': %d", cases[i][0], cases[i][1], rc);
    }
}

static void test_a_name_that_is_taken_says_so(void **state)
{
    struct place *p = *state;
    struct tp_kineto_socket s;
    struct tp_err err = {0};

    assert_int_equal(tp_kineto_socket_open(p->name, "", 0, &s, &err), TP_EEXIST);
    assert_non_null(strstr(err.message, "a dynolog or another traceplaned"));
    assert_int_equal(tp_kineto_socket_open(p->name, p->dir, 0, &s, &err), TP_EEXIST);
}

static void test_a_path_of_one_that_was_killed_is_taken_over(void **state)
{
    struct place *p = *state;
    struct tp_kineto_socket s;
    struct stat st;
    char *path = tmpdir_path(p->dir, p->name);

    close(p->in_dir.fd); /* as a kill leaves it */
    assert_int_equal(tp_kineto_socket_open(p->name, p->dir, 1, &s, NULL), TP_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0666);
    tp_kineto_socket_close(&s);
    assert_int_equal(stat(path, &st), -1);
    p->in_dir.fd = -1;
    free(path);
}

static void replace_by_link(const char *path)
{
    char to[300];

    snprintf(to, sizeof(to), "%s-precious", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(to, path), 0);
}

static void replace_by_name(const char *path)
{
    char from[300];

    snprintf(from, sizeof(from), "%s-private", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(link(from, path), 0);
}

/* A file, and a socket, of ours that others may not use. */
static void test_only_the_socket_itself_is_opened_to_all(void **state)
{
    void (*const tricks[])(const char *) = {replace_by_link, replace_by_name};
    struct place *p = *state;
    char *file = tmpdir_path(p->dir, "n-precious");
    char *private = tmpdir_path(p->dir, "n-private"), *path = tmpdir_path(p->dir, "n");
    struct tp_kineto_peer peer;
    int other = open_client(p->dir, "n-private", &peer);

    tmpdir_write(p->dir, "n-precious", "x", 1);
    assert_int_equal(chmod(file, 0600), 0);
    assert_int_equal(chmod(private, 0600), 0);
    for (int i = 0; i < 2; i++) {
        struct tp_kineto_socket s;
        struct tp_err err = {0};
        struct stat st;
        int rc;

        after_bind = tricks[i];
        rc = tp_kineto_socket_open("n", p->dir, 2, &s, &err);
        after_bind = NULL;
        if (rc != TP_EIO || strstr(err.message, "replaced") == NULL)
            fail_msg("trick %d: %d, %s", i, rc, err.message);
        assert_int_equal(stat(i == 0 ? file : private, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        unlink(path);
    }
    close(other);
    free(path);
    free(private);
    free(file);
}

/* Whether somebody who sends to the path is heard by s. */
static bool is_heard(const struct place *p, const struct tp_kineto_socket *s)
{
    struct sockaddr_un a;
    socklen_t len = address(p->dir, p->name, &a);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_sent = sendto(fd, "x", 1, 0, (struct sockaddr *)&a, len) == 1;

    close(fd);
    return is_sent && recv(s->fd, &(char){0}, 1, MSG_DONTWAIT) == 1;
}

static void test_a_path_that_was_removed_is_bound_again(void **state)
{
    struct place *p = *state;
    char *path = tmpdir_path(p->dir, p->name);
    struct tp_kineto_socket other;
    struct tp_err err = {0};
    bool is_new = true;

    assert_int_equal(tp_kineto_socket_mend(&p->named, &is_new, NULL), TP_OK);
    assert_false(is_new);
    assert_int_equal(tp_kineto_socket_mend(&p->in_dir, &is_new, NULL), TP_OK);
    assert_false(is_new);
    assert_int_equal(unlink(path), 0);
    assert_false(is_heard(p, &p->in_dir));
    assert_int_equal(tp_kineto_socket_mend(&p->in_dir, &is_new, NULL), TP_OK);
    assert_true(is_new);
    assert_true(is_heard(p, &p->in_dir));
    /* Somebody else has it: his it stays, until he goes. */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tp_kineto_socket_open(p->name, p->dir, 3, &other, NULL), TP_OK);
    assert_int_equal(tp_kineto_socket_mend(&p->in_dir, &is_new, &err), TP_EEXIST);
    assert_int_equal(p->in_dir.fd, -1);
    assert_true(is_heard(p, &other));
    tp_kineto_socket_close(&other);
    assert_int_equal(tp_kineto_socket_mend(&p->in_dir, &is_new, NULL), TP_OK);
    assert_true(is_new);
    assert_true(is_heard(p, &p->in_dir));
    free(path);
}

static void test_a_directory_that_comes_later_has_a_socket_then(void **state)
{
    struct place *p = *state;
    char *dir = tmpdir_path(p->dir, "d");
    struct tp_kineto_socket s;
    struct tp_err err = {0};
    bool is_new = true;

    tp_kineto_socket_want("n", dir, 2, &s);
    assert_int_equal(tp_kineto_socket_mend(&s, &is_new, &err), TP_EIO);
    assert_false(is_new);
    assert_int_equal(s.fd, -1);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(tp_kineto_socket_mend(&s, &is_new, NULL), TP_OK);
    assert_true(is_new);
    assert_true(s.spares[0] >= 0);
    tp_kineto_socket_close(&s);
    free(dir);
}

/* They could not be made when there were no descriptors. */
static void test_sockets_that_answer_are_made_later(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer peer;
    int client = open_client(p->dir, "dynoconfigclient-y", &peer);
    bool is_new;

    for (int i = 0; i < TP_KINETO_SPARES; i++) {
        if (p->in_dir.spares[i] >= 0)
            tp_kineto_reply_close(&p->in_dir, p->in_dir.spares[i]);
        p->in_dir.spares[i] = -1;
    }
    assert_int_equal(tp_kineto_socket_send(&p->in_dir, &peer, "x", 1), -1);
    assert_int_equal(tp_kineto_socket_mend(&p->in_dir, &is_new, NULL), TP_OK);
    assert_false(is_new);
    assert_int_equal(tp_kineto_socket_send(&p->in_dir, &peer, "x", 1), 1);
    close(client);
}

static void test_only_peers_of_the_same_kind_are_answered(void **state)
{
    struct place *p = *state;
    char inside[200], deeper[200];
    const struct {
        const char *bytes;
        size_t n;
        bool fits_name, fits_dir;
    } cases[] = {{"", 0, false, false},
                 {"\0", 1, false, false},
                 {"\0client\0", 8, true, false},
                 {"/elsewhere/client", 18, false, false},
                 {inside, strlen(p->dir) + 8, false, true},
                 {inside, strlen(p->dir) + 7, false, false}, /* no NUL at its end */
                 {inside, strlen(p->dir) + 1, false, false},
                 {deeper, strlen(p->dir) + 10, false, false}};

    snprintf(inside, sizeof(inside), "%s/client", p->dir);
    snprintf(deeper, sizeof(deeper), "%s/a/client", p->dir);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_kineto_peer peer = {.address_bytes = (uint8_t)cases[i].n};

        memcpy(peer.address, cases[i].bytes, cases[i].n);
        if (tp_kineto_socket_fits(&p->named, &peer) != cases[i].fits_name ||
            tp_kineto_socket_fits(&p->in_dir, &peer) != cases[i].fits_dir)
            fail_msg("case %zu", i);
    }
}

/* From a bound socket of the same kind, in the same directory: libkineto aborts its
 * process over any other. */
static void test_an_answer_comes_from_a_bound_socket_of_the_kind(void **state)
{
    struct place *p = *state;
    struct tp_kineto_socket *sockets[] = {&p->named, &p->in_dir};
    const char *dirs[] = {"", p->dir};

    for (int i = 0; i < 2; i++) {
        struct tp_kineto_peer peer;
        int client = open_client(dirs[i], "dynoconfigclient-u", &peer);
        int fd = tp_kineto_reply_open(sockets[i], &peer);
        struct sockaddr_un from = {0};
        socklen_t len = sizeof(from);
        char bytes[8];

        assert_true(fd >= 0);
        assert_int_equal(tp_kineto_unread_bytes(fd), 0);
        assert_int_equal(send(fd, "abc", 3, 0), 3);
        assert_true(tp_kineto_unread_bytes(fd) > 0);
        assert_int_equal(recvfrom(client, bytes, 8, 0, (struct sockaddr *)&from, &len),
                         3);
        assert_int_equal(tp_kineto_unread_bytes(fd), 0);
        assert_true(len > offsetof(struct sockaddr_un, sun_path) + 1);
        assert_int_equal(((char *)&from)[len - 1], '\0');
        assert_memory_equal(from.sun_path, i == 0 ? "\0tp-unit" : p->dir,
                            i == 0 ? 8 : strlen(p->dir));
        tp_kineto_reply_close(sockets[i], fd);
        assert_int_equal(i == 1 && access(from.sun_path, F_OK) == 0, 0);
        close(client);
    }
}

/* They are left by a service that was killed, or taken by somebody on purpose. */
static void test_names_that_are_taken_keep_nobody_without_an_answer(void **state)
{
    enum { N = 40 };
    struct place *p = *state;
    const char *dirs[] = {"", p->dir};
    int taken[2][N];

    for (int d = 0; d < 2; d++) {
        struct tp_kineto_peer peer;
        int client = open_client(dirs[d], "dynoconfigclient-t", &peer);
        int fd;

        for (int i = 0; i < N; i++) {
            struct sockaddr_un own;
            char name[80];
            socklen_t len;

            snprintf(name, sizeof(name), "%s_reply_%d_%d", p->name, (int)getpid(), i);
            len = address(dirs[d], name, &own);
            taken[d][i] = socket(AF_UNIX, SOCK_DGRAM, 0);
            bind(taken[d][i], (struct sockaddr *)&own, len);
        }
        fd = tp_kineto_reply_open(d == 0 ? &p->named : &p->in_dir, &peer);
        if (fd < 0)
            fail_msg("'%s': no socket to answer: %s", dirs[d], strerror(errno));
        tp_kineto_reply_close(d == 0 ? &p->named : &p->in_dir, fd);
        for (int i = 0; i < N; i++)
            close(taken[d][i]);
        close(client);
    }
}

static void test_nobody_at_the_address_is_told_as_gone(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer peer;

    close(open_client("", "dynoconfigclient-v", &peer));
    assert_int_equal(tp_kineto_reply_open(&p->named, &peer), -1);
    assert_int_equal(errno, ECONNREFUSED);
    assert_int_equal(tp_kineto_socket_send(&p->named, &peer, "x", 1), -1);
    assert_int_equal(errno, ECONNREFUSED);
}

/* Others may write into the directory: a link must not lead answers elsewhere. */
static void test_a_path_that_leads_to_another_socket_is_not_answered(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer peer;
    char *from = tmpdir_path(p->dir, "dynoconfigclient-w");
    int client = open_client(p->dir, "dynoconfigclient-w", &peer);

    assert_int_equal(unlink(from), 0);
    assert_int_equal(symlink(p->name, from), 0); /* to a socket of somebody else */
    assert_int_equal(tp_kineto_reply_open(&p->in_dir, &peer), -1);
    assert_int_equal(errno, EADDRNOTAVAIL);
    assert_int_equal(tp_kineto_socket_send(&p->in_dir, &peer, "x", 1), -1);
    close(client);
    free(from);
}

static void test_a_name_of_something_else_is_not_taken(void **state)
{
    struct place *p = *state;
    char *file = tmpdir_path(p->dir, "file");
    struct tp_kineto_socket s;
    struct sockaddr_un a;
    socklen_t len = address(p->dir, "stream", &a);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct tp_err err = {0};

    tmpdir_write(p->dir, "file", "precious", 8);
    assert_int_equal(tp_kineto_socket_open("file", p->dir, 2, &s, &err), TP_EEXIST);
    assert_non_null(strstr(err.message, "is no socket"));
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(tp_kineto_socket_open("stream", p->dir, 2, &s, &err), TP_EEXIST);
    assert_non_null(strstr(err.message, "is taken"));
    assert_int_equal(access(a.sun_path, F_OK), 0);
    close(fd);
    /* Of that only the path is left. */
    assert_int_equal(tp_kineto_socket_open("stream", p->dir, 2, &s, &err), TP_OK);
    tp_kineto_socket_close(&s);
    free(file);
}

static void count_misfit(void *arg, const char *why, const char *dir,
                         const struct tp_kineto_peer *peer)
{
    unsigned *n = arg;

    assert_non_null(
        strstr(why, *dir == '\0' ? "from a path" : "no socket of its user"));
    assert_int_equal(peer->pid, 7);
    (*n)++;
}

static void test_who_is_not_answered_is_told_a_few_times(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer peer = {.pid = 7, .address_bytes = 3, .address = "/x"};
    unsigned n = 0;
    struct tp_kineto_misfit misfit = {.tell = count_misfit, .arg = &n};

    p->named.misfit = &misfit;
    for (int i = 0; i < TP_KINETO_MISFITS_MAX + 5; i++)
        assert_false(tp_kineto_socket_fits(&p->named, &peer));
    assert_int_equal(n, TP_KINETO_MISFITS_MAX);
}

/* In a mount namespace of its own a process can have any path, and here that leads to a
 * socket of somebody else. */
static void test_a_socket_of_another_user_is_not_answered(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer peer;
    int client = open_client(p->dir, "dynoconfigclient-x", &peer);
    unsigned n = 0;
    struct tp_kineto_misfit misfit = {.tell = count_misfit, .arg = &n};

    p->in_dir.misfit = &misfit;
    peer.pid = 7;
    assert_true(tp_kineto_socket_is_of(&p->in_dir, &peer));
    peer.uid++;
    assert_true(tp_kineto_socket_fits(&p->in_dir, &peer));
    assert_int_equal(n, 0);
    assert_false(tp_kineto_socket_is_of(&p->in_dir, &peer));
    assert_int_equal(n, 1);
    assert_int_equal(tp_kineto_reply_open(&p->in_dir, &peer), -1);
    assert_int_equal(errno, EADDRNOTAVAIL);
    assert_int_equal(tp_kineto_socket_send(&p->in_dir, &peer, "x", 1), -1);
    assert_int_equal(errno, EADDRNOTAVAIL);
    assert_int_equal(recv(client, &(char){0}, 1, MSG_DONTWAIT), -1);
    close(client);
}

/* libkineto compares the text of the directory, so that is what it gets back. */
static void test_a_directory_may_have_slashes_or_its_real_name(void **state)
{
    struct place *p = *state;
    char *link = tmpdir_path(p->dir, "l"), *real = tmpdir_path(p->dir, "r");
    char with_slash[100], twice[100];
    const char *dirs[] = {link, real, with_slash, twice};
    struct tp_kineto_socket s;

    assert_int_equal(mkdir(real, 0700), 0);
    assert_int_equal(symlink(real, link), 0);
    snprintf(with_slash, sizeof(with_slash), "%s/", link);
    snprintf(twice, sizeof(twice), "/%s", real);
    assert_int_equal(tp_kineto_socket_open("d", link, 2, &s, NULL), TP_OK);
    for (int i = 0; i < 4; i++) {
        struct tp_kineto_peer peer;
        struct sockaddr_un from = {0};
        socklen_t len = sizeof(from);
        char name[40], byte;
        int client, fd;

        snprintf(name, sizeof(name), "dynoconfigclient-%d", i);
        client = open_client(dirs[i], name, &peer);
        assert_true(tp_kineto_socket_fits(&s, &peer));
        fd = tp_kineto_reply_open(&s, &peer);
        assert_true(fd >= 0);
        assert_int_equal(send(fd, "a", 1, 0), 1);
        assert_int_equal(recvfrom(client, &byte, 1, 0, (struct sockaddr *)&from, &len),
                         1);
        if (strncmp(from.sun_path, dirs[i], strlen(dirs[i])) != 0 ||
            from.sun_path[strlen(dirs[i])] != '/')
            fail_msg("%s is answered by %s", dirs[i], from.sun_path);
        tp_kineto_reply_close(&s, fd);
        assert_int_not_equal(access(from.sun_path, F_OK), 0);
        close(client);
    }
    tp_kineto_socket_close(&s);
    free(link);
    free(real);
}

/* As if it had been made so long ago. */
static void make_old(const char *dir, const char *name)
{
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char *path = tmpdir_path(dir, name);

    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
    free(path);
}

static void expect_there(const char *dir, const char *name, bool is_there)
{
    char *path = tmpdir_path(dir, name);

    if ((access(path, F_OK) == 0) != is_there)
        fail_msg("%s", path);
    free(path);
}

static void test_litter_is_removed_in_small_steps_and_nothing_else(void **state)
{
    struct place *p = *state;
    struct tp_kineto_peer peer;
    int alive = open_client(p->dir, "dynoconfigclient-alive", &peer);
    unsigned steps = 1;

    for (int i = 0; i < 20; i++) {
        char name[40];

        snprintf(name, sizeof(name), "%s-%d", i < 19 ? "dynoconfigclient" : "other", i);
        close(open_client(p->dir, name, &peer));
        make_old(p->dir, name);
    }
    make_old(p->dir, "dynoconfigclient-alive");
    close(open_client(p->dir, "dynoconfigclient-new", &peer));
    tmpdir_write(p->dir, "dynoconfigclient-file", "x", 1);
    assert_false(tp_kineto_socket_tidy(&p->named, 5));
    while (tp_kineto_socket_tidy(&p->in_dir, 5))
        steps++;
    assert_true(steps > 3);
    expect_there(p->dir, "dynoconfigclient-0", false);
    expect_there(p->dir, "dynoconfigclient-18", false);
    expect_there(p->dir, "other-19", true);
    expect_there(p->dir, "dynoconfigclient-alive", true);
    expect_there(p->dir, "dynoconfigclient-new", true); /* it may be on its way */
    expect_there(p->dir, "dynoconfigclient-file", true);
    close(alive);
}

/* To this node, the socket of another looks like one that nobody has open. */
static void test_where_other_nodes_see_it_nothing_is_removed(void **state)
{
    struct place *p = *state;
    char *path = tmpdir_path(p->dir, p->name);
    struct tp_kineto_socket s;
    struct tp_kineto_peer peer;
    struct tp_err err = {0};
    bool is_new = true;

    close(open_client(p->dir, "dynoconfigclient-far", &peer));
    make_old(p->dir, "dynoconfigclient-far");
    fs_type = 0x6969;
    assert_false(tp_kineto_socket_tidy(&p->in_dir, 100));
    expect_there(p->dir, "dynoconfigclient-far", true);
    assert_int_equal(unlink(path), 0);
    close(open_client(p->dir, p->name, &peer));
    assert_int_equal(tp_kineto_socket_mend(&p->in_dir, &is_new, &err), TP_EEXIST);
    assert_non_null(strstr(err.message, "must be local to the node"));
    expect_there(p->dir, p->name, true);
    assert_int_equal(tp_kineto_socket_open(p->name, p->dir, 1, &s, NULL), TP_EEXIST);
    expect_there(p->dir, p->name, true);
    fs_type = 0x01021994;
    assert_int_equal(tp_kineto_socket_mend(&p->in_dir, &is_new, NULL), TP_OK);
    while (tp_kineto_socket_tidy(&p->in_dir, 100))
        continue;
    expect_there(p->dir, "dynoconfigclient-far", false);
    free(path);
}

static void test_a_path_that_another_has_by_now_stays_at_the_close(void **state)
{
    struct place *p = *state;
    char *path = tmpdir_path(p->dir, p->name);
    struct tp_kineto_socket other;

    assert_int_equal(unlink(path), 0);
    assert_int_equal(tp_kineto_socket_open(p->name, p->dir, 3, &other, NULL), TP_OK);
    tp_kineto_socket_close(&p->in_dir);
    assert_true(is_heard(p, &other));
    tp_kineto_socket_close(&other);
    expect_there(p->dir, p->name, false);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        TEST(test_clients_find_the_name_and_the_path),
        TEST(test_what_cannot_be_a_name_or_a_directory_is_refused),
        TEST(test_a_name_that_is_taken_says_so),
        TEST(test_a_path_of_one_that_was_killed_is_taken_over),
        TEST(test_a_path_that_was_removed_is_bound_again),
        TEST(test_a_directory_that_comes_later_has_a_socket_then),
        TEST(test_sockets_that_answer_are_made_later),
        TEST(test_only_the_socket_itself_is_opened_to_all),
        TEST(test_only_peers_of_the_same_kind_are_answered),
        TEST(test_an_answer_comes_from_a_bound_socket_of_the_kind),
        TEST(test_names_that_are_taken_keep_nobody_without_an_answer),
        TEST(test_nobody_at_the_address_is_told_as_gone),
        TEST(test_a_path_that_leads_to_another_socket_is_not_answered),
        TEST(test_a_name_of_something_else_is_not_taken),
        TEST(test_who_is_not_answered_is_told_a_few_times),
        TEST(test_a_socket_of_another_user_is_not_answered),
        TEST(test_a_directory_may_have_slashes_or_its_real_name),
        TEST(test_litter_is_removed_in_small_steps_and_nothing_else),
        TEST(test_where_other_nodes_see_it_nothing_is_removed),
        TEST(test_a_path_that_another_has_by_now_stays_at_the_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
