/*
 * test_server_kineto_folder.c - what others cannot do to the files of a process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "server/kineto_folder.h"
#include "support/tmpdir.h"

struct place {
    char *dir, *home;
    int home_fd, fd;
};

static int set_up(void **state)
{
    struct place *p = test_calloc(1, sizeof(*p));

    p->dir = tmpdir_new();
    p->home = tmpdir_path(p->dir, "home");
    assert_int_equal(tp_kineto_home_open(p->home, &p->home_fd, NULL), TP_OK);
    assert_int_equal(tp_kineto_folder_make(p->home_fd, "one", getuid(), getgid(),
                                           &p->fd, NULL),
                     TP_OK);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    while (tp_kineto_folder_empty(p->fd))
        continue;
    tp_kineto_folder_remove(p->home_fd, "one");
    close(p->fd);
    close(p->home_fd);
    tmpdir_remove(p->dir);
    free(p->home);
    test_free(p);
    return 0;
}

static void write_file(int fd, const char *name, const char *text)
{
    int f = openat(fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(f >= 0);
    assert_int_equal(write(f, text, strlen(text)), strlen(text));
    close(f);
}

static void test_nobody_else_may_write_into_the_home(void **state)
{
    struct place *p = *state;
    struct stat st;
    int fd;

    assert_int_equal(fstat(p->home_fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0711);
    assert_int_equal(fchmod(p->home_fd, 0777), 0);
    assert_int_equal(tp_kineto_home_open(p->home, &fd, NULL), TP_OK);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0711);
    close(fd);
    assert_int_equal(fstat(p->fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void test_a_home_that_is_a_link_is_refused(void **state)
{
    struct place *p = *state;
    char *link = tmpdir_path(p->dir, "link");
    struct tp_err err = {0};
    int fd = -7;

    assert_int_equal(symlink(p->home, link), 0);
    assert_int_equal(tp_kineto_home_open(link, &fd, &err), TP_EDENIED);
    assert_int_equal(fd, -7);
    assert_int_equal(tp_kineto_home_open("relative", &fd, &err), TP_EIO);
    free(link);
}

/* Who owns what is above, one level or several, could put another folder, or a link, in
 * the place of ours. */
static void refuse_in_bad_folders(struct place *p, const char *below)
{
    static const struct {
        mode_t mode;
        bool is_strange, is_good;
    } cases[] = {{0711, false, true},  {01777, false, true}, {01770, false, true},
                 {0777, false, false}, {0770, false, false}, {0755, true, false},
                 {01777, true, false}};
    char *above = tmpdir_path(p->dir, "above");
    char *parent = tmpdir_path(above, below);
    char *home = tmpdir_path(parent, "home");

    assert_int_equal(mkdir(above, 0700), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_err err = {0};
        int fd = -1, rc;

        assert_int_equal(chown(above, cases[i].is_strange ? 65534 : 0, 0), 0);
        assert_int_equal(chmod(above, cases[i].mode), 0);
        rc = tp_kineto_home_open(home, &fd, &err);
        if (rc != (cases[i].is_good ? TP_OK : TP_EDENIED))
            fail_msg("case %zu below '%s': %d, %s", i, below, rc, err.message);
        if (rc != TP_OK && !cases[i].is_strange)
            assert_non_null(strstr(err.message, "(chmod g-w,o-w it, or +t)"));
        if (rc == TP_OK)
            close(fd);
        rmdir(home);
        rmdir(parent);
    }
    rmdir(above);
    free(home);
    free(parent);
    free(above);
}

static void test_a_home_in_somebody_elses_folder_is_refused(void **state)
{
    struct place *p = *state;

    if (geteuid() != 0)
        skip(); /* nobody else can be given a folder */
    refuse_in_bad_folders(p, ".");
    refuse_in_bad_folders(p, "ours");
}

static void expect_link(const char *link, const char *to, bool is_strange, int code)
{
    char *home = tmpdir_path(link, "home");
    struct tp_err err = {0};
    int fd = -1, rc;

    unlink(link);
    assert_int_equal(symlink(to, link), 0);
    if (is_strange)
        assert_int_equal(lchown(link, 65534, 65534), 0);
    rc = tp_kineto_home_open(home, &fd, &err);
    if (rc != code)
        fail_msg("to '%s': %d, %s", to, rc, err.message);
    if (rc == TP_OK)
        close(fd);
    free(home);
}

/* A link of ours leads on, one of somebody else can lead anywhere tomorrow. */
static void test_links_on_the_way_to_a_home_are_ours(void **state)
{
    struct place *p = *state;
    char *link = tmpdir_path(p->dir, "link"), *inner = tmpdir_path(p->dir, "inner");

    assert_int_equal(mkdir(inner, 0700), 0);
    expect_link(link, p->dir, false, TP_OK);
    expect_link(link, "./inner/../", false, TP_OK);
    expect_link(link, "link", false, TP_EDENIED); /* and so on */
    if (geteuid() == 0) {
        expect_link(link, p->dir, true, TP_EDENIED);
        assert_int_equal(chown(inner, 65534, 65534), 0);
        expect_link(link, "./inner/../", false, TP_EDENIED);
    }
    free(inner);
    free(link);
}

static void test_a_look_tells_begun_from_complete(void **state)
{
    struct place *p = *state;
    struct tp_kineto_found found;

    assert_int_equal(tp_kineto_folder_look(p->fd, getuid(), &found, NULL), TP_OK);
    assert_false(found.has_begun);
    assert_string_equal(found.name, "");
    write_file(p->fd, "h_1.pt.trace.json.tmp", "");
    assert_int_equal(tp_kineto_folder_look(p->fd, getuid(), &found, NULL), TP_OK);
    assert_true(found.has_begun);
    assert_string_equal(found.name, "");
    assert_int_equal(
        renameat(p->fd, "h_1.pt.trace.json.tmp", p->fd, "h_1.pt.trace.json"), 0);
    assert_int_equal(tp_kineto_folder_look(p->fd, getuid(), &found, NULL), TP_OK);
    assert_string_equal(found.name, "h_1.pt.trace.json");
}

/* Whoever plants a file neither stops the process's order nor ends its part. */
static void test_what_somebody_else_puts_there_is_not_seen(void **state)
{
    static const char *const names[] = {"h_1.pt.trace.json.tmp", "h_1.pt.trace.json"};
    struct place *p = *state;
    struct tp_kineto_found found;

    if (getuid() != 0) {
        print_message("skipped: needs root, to make files of two others\n");
        skip();
    }
    for (int i = 0; i < 2; i++) {
        write_file(p->fd, names[i], "x");
        assert_int_equal(fchownat(p->fd, names[i], 7, 7, 0), 0);
        assert_true(tp_kineto_file_is_of(p->fd, names[i], 7));
        assert_false(tp_kineto_file_is_of(p->fd, names[i], 8));
        assert_int_equal(tp_kineto_folder_look(p->fd, 8, &found, NULL), TP_OK);
        assert_false(found.has_begun);
        assert_string_equal(found.name, "");
    }
    assert_false(tp_kineto_file_is_of(p->fd, "nothing", 7));
    assert_int_equal(tp_kineto_folder_look(p->fd, 7, &found, NULL), TP_OK);
    assert_true(found.has_begun);
    assert_string_equal(found.name, names[1]);
}

static void refuse(const struct place *p, const char *name, uint32_t uid, int code,
                   const char *why)
{
    struct tp_err err = {0};
    uint64_t bytes;
    int fd;

    if (tp_kineto_file_open(p->fd, name, uid, &fd, &bytes, &err) != code ||
        strstr(err.message, why) == NULL)
        fail_msg("%s: %s", name, err.message);
}

static void test_only_plain_files_of_the_process_are_opened(void **state)
{
    struct place *p = *state;
    uint64_t bytes;
    int fd;

    write_file(p->fd, "good", "{}");
    assert_int_equal(tp_kineto_file_open(p->fd, "good", getuid(), &fd, &bytes, NULL),
                     TP_OK);
    assert_int_equal(bytes, 2);
    close(fd);
    refuse(p, "good", getuid() + 1, TP_EDENIED, "belongs to user");
    refuse(p, "none", getuid(), TP_ENOTFOUND, "has been removed");
    write_file(p->fd, "empty", "");
    refuse(p, "empty", getuid(), TP_EINVAL, "is empty");
    assert_int_equal(symlinkat("/etc/passwd", p->fd, "link"), 0);
    refuse(p, "link", getuid(), TP_EDENIED, "is a link");
    assert_int_equal(linkat(p->fd, "good", p->fd, "second", 0), 0);
    refuse(p, "good", getuid(), TP_EDENIED, "one name");
    assert_int_equal(mkfifoat(p->fd, "fifo", 0600), 0); /* and it does not hang */
    refuse(p, "fifo", getuid(), TP_EDENIED, "no plain file");
}

/* A folder tells for whom it was made by its owner, unless everybody may write there:
 * then it has to be known, and is believed of our own folders only. */
static void test_whose_a_folder_is_can_be_told_after_a_restart(void **state)
{
    struct place *p = *state;
    const uint32_t made_for = 4711;
    uint32_t uid = 0, gid = 0;

    assert_true(tp_kineto_folder_owner(p->home_fd, "one", NULL, &uid, &gid));
    assert_int_equal(uid, getuid());
    assert_true(tp_kineto_folder_owner(p->home_fd, "one", &made_for, &uid, &gid));
    assert_int_equal(uid, getuid());
    assert_int_equal(fchmod(p->fd, 01733), 0);
    uid = 1;
    assert_false(tp_kineto_folder_owner(p->home_fd, "one", NULL, &uid, &gid));
    assert_int_equal(uid, 1);
    assert_true(tp_kineto_folder_owner(p->home_fd, "one", &made_for, &uid, &gid));
    assert_int_equal(uid, made_for);
    assert_false(tp_kineto_folder_owner(p->home_fd, "none", &made_for, &uid, &gid));
    if (geteuid() == 0) {
        assert_int_equal(fchown(p->fd, 4712, 0), 0);
        assert_int_equal(fchmod(p->fd, 01733), 0);
        assert_false(tp_kineto_folder_owner(p->home_fd, "one", &made_for, &uid, &gid));
        assert_int_equal(fchown(p->fd, 0, 0), 0);
    }
}

static bool wants_nothing(void *arg, const char *name)
{
    (void)arg;
    (void)name;
    return false;
}

static void test_what_a_crash_left_is_removed(void **state)
{
    struct place *p = *state;
    int fd;

    assert_int_equal(
        tp_kineto_folder_make(p->home_fd, "two", getuid(), getgid(), &fd, NULL), TP_OK);
    write_file(fd, "x.tmp", "1");
    close(fd);
    tp_kineto_home_tidy(p->home_fd, wants_nothing, NULL);
    assert_int_not_equal(faccessat(p->home_fd, "two", F_OK, 0), 0);
    assert_int_not_equal(faccessat(p->home_fd, "one", F_OK, 0), 0);
}

static bool is_in(int fd, const char *name)
{
    struct stat st;

    return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int make_dir(int fd, const char *name)
{
    int dir;

    assert_int_equal(mkdirat(fd, name, 0700), 0);
    dir = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    return dir;
}

/* Deeper than any stack of calls should go, with something at each level. */
static void make_depths(int fd, int depth)
{
    int at = make_dir(fd, "x.json");

    for (int i = 0; i < depth; i++) {
        int below = make_dir(at, "sub");

        write_file(at, "file", "1");
        assert_int_equal(symlinkat("/etc/passwd", at, "link"), 0);
        close(at);
        at = below;
    }
    close(at);
}

static void test_folders_and_links_in_a_folder_are_removed_too(void **state)
{
    struct place *p = *state;
    char *precious = tmpdir_path(p->dir, "precious");
    int fd;

    make_depths(p->fd, 40);
    fd = make_dir(p->home_fd, "two");
    make_depths(fd, 40);
    close(fd);
    assert_int_equal(mkdir(precious, 0700), 0);
    assert_int_equal(symlinkat(precious, p->fd, "dirlink"), 0);
    assert_int_equal(symlinkat(precious, p->home_fd, "three"), 0);
    while (tp_kineto_folder_empty(p->fd))
        continue;
    tp_kineto_folder_remove(p->home_fd, "one");
    assert_false(is_in(p->home_fd, "one"));
    tp_kineto_home_tidy(p->home_fd, wants_nothing, NULL);
    assert_false(is_in(p->home_fd, "two"));
    assert_false(is_in(p->home_fd, "three"));
    assert_int_equal(access(precious, F_OK), 0);
    free(precious);
}

static void test_a_link_in_place_of_a_folder_is_seen_and_removed(void **state)
{
    struct place *p = *state;

    assert_true(tp_kineto_folder_is_there(p->home_fd, "one", p->fd));
    assert_int_equal(unlinkat(p->home_fd, "one", AT_REMOVEDIR), 0);
    assert_false(tp_kineto_folder_is_there(p->home_fd, "one", p->fd));
    assert_int_equal(symlinkat(p->dir, p->home_fd, "one"), 0);
    assert_false(tp_kineto_folder_is_there(p->home_fd, "one", p->fd));
    tp_kineto_folder_remove(p->home_fd, "one");
    assert_false(is_in(p->home_fd, "one"));
    assert_int_equal(access(p->dir, F_OK), 0);
}

static void test_a_folder_with_too_many_names_is_not_read_to_its_end(void **state)
{
    struct place *p = *state;
    struct tp_kineto_found found;
    struct tp_err err = {0};
    char name[32];

    for (int i = 0; i < TP_KINETO_FOLDER_NAMES_MAX + 10; i++) {
        snprintf(name, sizeof(name), "%d.x", i);
        write_file(p->fd, name, "");
    }
    assert_int_equal(tp_kineto_folder_look(p->fd, getuid(), &found, &err), TP_EQUOTA);
    assert_non_null(strstr(err.message, "more than 256 names"));
    assert_true(tp_kineto_folder_empty(p->fd)); /* some at a time */
    assert_int_equal(tp_kineto_folder_look(p->fd, getuid(), &found, &err), TP_OK);
    while (tp_kineto_folder_empty(p->fd))
        continue;
    assert_false(is_in(p->fd, "0.x"));
}

/* The opposite needs a full disk: tests/e2e/129. What tells no sizes is not full. */
static void test_a_home_with_room_has_room(void **state)
{
    struct place *p = *state;
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(tp_kineto_home_has_room(p->home_fd, p->home, NULL), TP_OK);
    assert_int_equal(tp_kineto_home_has_room(proc, "/proc", NULL), TP_OK);
    assert_int_equal(tp_kineto_home_has_room(-1, "none", NULL), TP_OK);
    close(proc);
}

static void test_a_home_that_was_removed_is_no_longer_there(void **state)
{
    struct place *p = *state;
    int fd;

    assert_false(tp_kineto_home_is_there(-1, p->home));
    assert_true(tp_kineto_home_is_there(p->home_fd, p->home));
    tp_kineto_folder_remove(p->home_fd, "one");
    assert_int_equal(rmdir(p->home), 0);
    assert_false(tp_kineto_home_is_there(p->home_fd, p->home));
    assert_int_equal(tp_kineto_home_open(p->home, &fd, NULL), TP_OK);
    assert_false(tp_kineto_home_is_there(p->home_fd, p->home)); /* another one */
    assert_true(tp_kineto_home_is_there(fd, p->home));
    close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nobody_else_may_write_into_the_home),
        TEST(test_a_home_that_is_a_link_is_refused),
        TEST(test_a_home_in_somebody_elses_folder_is_refused),
        TEST(test_links_on_the_way_to_a_home_are_ours),
        TEST(test_a_look_tells_begun_from_complete),
        TEST(test_what_somebody_else_puts_there_is_not_seen),
        TEST(test_only_plain_files_of_the_process_are_opened),
        TEST(test_whose_a_folder_is_can_be_told_after_a_restart),
        TEST(test_what_a_crash_left_is_removed),
        TEST(test_folders_and_links_in_a_folder_are_removed_too),
        TEST(test_a_link_in_place_of_a_folder_is_seen_and_removed),
        TEST(test_a_folder_with_too_many_names_is_not_read_to_its_end),
        TEST(test_a_home_with_room_has_room),
        TEST(test_a_home_that_was_removed_is_no_longer_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
