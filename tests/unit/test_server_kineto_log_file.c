/*
 * test_server_kineto_log_file.c - a file is put where a client may have it, whole, with
 * the rights of the process's user, and nowhere else. Parts need root, and are left out
 * without.
 */
#include "server/kineto_log_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "kineto/log_file.h"
#include "support/tmpdir.h"

#define SOMEBODY 54321
#define THEIR_GROUP 54322

struct place {
    char *dir, *into; /* a directory, and the one in it that files may go to */
    int from_fd;
    struct tp_kineto_owner owner;
    struct tp_err err;
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    char *from;

    assert_non_null(p);
    p->dir = tmpdir_new_short(); /* where others may go, too */
    p->into = tmpdir_path(p->dir, "into");
    assert_int_equal(chmod(p->dir, 0755), 0);
    assert_int_equal(mkdir(p->into, 0755), 0);
    tmpdir_write(p->dir, "from", "the trace", 9);
    from = tmpdir_path(p->dir, "from");
    p->from_fd = open(from, O_RDONLY | O_CLOEXEC);
    assert_true(p->from_fd >= 0);
    free(from);
    p->owner = (struct tp_kineto_owner){.uid = getuid(), .gid = getgid()};
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    close(p->from_fd);
    free(p->into);
    tmpdir_remove(p->dir);
    free(p);
    return 0;
}

static int put(struct place *p, const char *below)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", p->into, below);
    return tp_kineto_log_file_put(&p->into, 1, path, &p->owner, p->from_fd, &p->err);
}

static struct stat look(const struct place *p, const char *below)
{
    struct stat st = {0};
    char *path = tmpdir_path(p->into, below);

    lstat(path, &st);
    free(path);
    return st;
}

static void expect_text(const struct place *p, const char *below, const char *text)
{
    char *found = tmpdir_read(p->into, below, NULL);

    assert_string_equal(found, text);
    free(found);
}

/* Nothing but what the test has made is in the directory: `n` names. */
static void expect_names(const struct place *p, int n)
{
    DIR *dir = opendir(p->into);
    const struct dirent *entry;
    int found = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        found += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    assert_int_equal(found, n);
}

static void test_a_file_is_whole_and_replaces_what_was_there(void **state)
{
    struct place *p = *state;
    char byte;

    assert_int_equal(put(p, "x.json"), TP_OK);
    expect_text(p, "x.json", "the trace");
    assert_int_equal(look(p, "x.json").st_mode & 07777, 0644);
    tmpdir_write(p->into, "x.json", "something else that is longer", 29);
    assert_int_equal(put(p, "x.json"), TP_OK);
    expect_text(p, "x.json", "the trace");
    expect_names(p, 1);
    assert_int_equal(read(p->from_fd, &byte, 1), 1); /* its position has stayed */
    assert_int_equal(byte, 't');
}

static void test_what_lies_on_the_way_is_no_way_out(void **state)
{
    struct place *p = *state;
    char *link = tmpdir_path(p->into, "link"), *name = tmpdir_path(p->into, "x.json");
    char *victim = tmpdir_path(p->dir, "victim");

    assert_int_equal(symlink(p->dir, link), 0);
    assert_int_equal(put(p, "link/x.json"), TP_EDENIED);
    assert_int_equal(put(p, "missing/x.json"), TP_EIO);
    assert_int_equal(put(p, "../x.json"), TP_EINVAL);
    tmpdir_write(p->dir, "victim", "theirs", 6);
    assert_int_equal(symlink(victim, name), 0); /* it is replaced, not followed */
    assert_int_equal(put(p, "x.json"), TP_OK);
    assert_true(S_ISREG(look(p, "x.json").st_mode));
    expect_text(p, "../victim", "theirs");
    expect_names(p, 2);
    free(link);
    free(name);
    free(victim);
}

static void test_a_failure_leaves_no_part_of_it(void **state)
{
    struct place *p = *state;
    char *name = tmpdir_path(p->into, "x.json");
    int closed = open("/", O_PATH | O_CLOEXEC);

    assert_int_equal(mkdir(name, 0755), 0);
    assert_int_equal(put(p, "x.json"), TP_EIO); /* a directory has the name */
    assert_non_null(strstr(p->err.message, "cannot give it its name"));
    close(p->from_fd);
    p->from_fd = closed; /* it cannot be read */
    assert_int_equal(put(p, "y.json"), TP_EIO);
    assert_non_null(strstr(p->err.message, "cannot write it"));
    expect_names(p, 1);
    free(name);
}

static void test_outside_of_the_directories_is_nothing(void **state)
{
    struct place *p = *state;
    char *path = tmpdir_path(p->dir, "x.json");

    assert_int_equal(tp_kineto_log_file_put(&p->into, 1, path, &p->owner, p->from_fd,
                                            &p->err),
                     TP_EDENIED);
    assert_int_equal(tp_kineto_log_file_put(NULL, 0, path, &p->owner, p->from_fd,
                                            &p->err),
                     TP_EDENIED);
    assert_int_not_equal(access(path, F_OK), 0);
    free(path);
}

/* Whose rights the calling thread has must be the same before and after. */
static void test_a_users_file_is_written_with_the_rights_of_that_user(void **state)
{
    struct place *p = *state;

    if (geteuid() != 0)
        skip();
    p->owner = (struct tp_kineto_owner){.uid = SOMEBODY, .gid = SOMEBODY};
    assert_int_equal(put(p, "x.json"), TP_EDENIED); /* root could */
    assert_non_null(strstr(p->err.message, "Permission denied"));
    assert_int_equal(chown(p->into, 0, THEIR_GROUP), 0);
    assert_int_equal(chmod(p->into, 0775), 0);
    assert_int_equal(put(p, "x.json"), TP_EDENIED);
    p->owner.groups[p->owner.n_groups++] = 54323;
    p->owner.groups[p->owner.n_groups++] = THEIR_GROUP;
    assert_int_equal(put(p, "x.json"), TP_OK);
    assert_int_equal(look(p, "x.json").st_uid, SOMEBODY);
    assert_int_equal(look(p, "x.json").st_gid, SOMEBODY);

    /* In a directory like /tmp it replaces its own, and nobody else's. */
    assert_int_equal(chmod(p->into, 01777), 0);
    p->owner.n_groups = 0;
    assert_int_equal(put(p, "x.json"), TP_OK);
    tmpdir_write(p->into, "y.json", "of root", 7);
    assert_int_equal(put(p, "y.json"), TP_EDENIED);
    expect_text(p, "y.json", "of root");
    expect_names(p, 2);
    assert_int_equal(geteuid(), 0);
    assert_int_equal(chmod(p->into, 0700), 0);
    p->owner.uid = p->owner.gid = 0;
    assert_int_equal(put(p, "z.json"), TP_OK);
}

static void test_the_groups_of_a_process_are_read(void **state)
{
    struct tp_kineto_owner o;
    gid_t groups[TP_KINETO_GROUPS_MAX];
    int n = getgroups(TP_KINETO_GROUPS_MAX, groups);

    (void)state;
    assert_true(n >= 0);
    tp_kineto_owner_read(getpid(), getuid(), getgid(), &o);
    assert_int_equal(o.uid, getuid());
    assert_int_equal(o.gid, getgid());
    assert_int_equal(o.n_groups, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(o.groups[i], groups[i]);
}

static void test_a_pid_of_another_user_or_of_nobody_has_none(void **state)
{
    const int32_t pids[] = {0, -5, INT32_MAX};
    struct tp_kineto_owner o;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        tp_kineto_owner_read(pids[i], getuid(), 3, &o);
        assert_int_equal(o.n_groups, 0);
        assert_int_equal(o.gid, 3);
    }
    tp_kineto_owner_read(getpid(), getuid() + 1, 3, &o);
    assert_int_equal(o.n_groups, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        TEST(test_a_file_is_whole_and_replaces_what_was_there),
        TEST(test_what_lies_on_the_way_is_no_way_out),
        TEST(test_a_failure_leaves_no_part_of_it),
        TEST(test_outside_of_the_directories_is_nothing),
        TEST(test_a_users_file_is_written_with_the_rights_of_that_user),
        cmocka_unit_test(test_the_groups_of_a_process_are_read),
        cmocka_unit_test(test_a_pid_of_another_user_or_of_nobody_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
