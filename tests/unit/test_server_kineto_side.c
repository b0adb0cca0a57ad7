/*
 * test_server_kineto_side.c - settings are read or refused by name, and a socket that
 * cannot be had is a line in the log.
 */
#include "server/kineto_side.h"

#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "server/app.h"
#include "server/clock.h"
#include "server/kineto_socket.h"
#include "support/engine_test.h"
#include "support/fault.h"
#include "support/tmpdir.h"

static uid_t our_uid; /* the service is run by */

/* In place of the library's. */
uid_t geteuid(void)
{
    return our_uid;
}

static bool is_nfs; /* all directories */

/* Likewise. */
int statfs(const char *path, struct statfs *out)
{
    if (access(path, F_OK) != 0)
        return -1;
    memset(out, 0, sizeof(*out));
    out->f_type = is_nfs ? 0x6969 : 0x01021994;
    return 0;
}

struct place {
    char *dir;
    char name[40];
    struct tp_config config;
    struct tp_app app;
    FILE *log;
    struct tp_kineto_side *side;
    const struct tp_kineto_opts *opts;
    struct tp_err err;
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    our_uid = getuid();
    is_nfs = false;
    p->dir = tmpdir_new();
    snprintf(p->name, sizeof(p->name), "tp-unit-s-%d", (int)getpid());
    p->config.kineto_socket = p->name;
    p->config.kineto_trace_dir = p->dir;
    p->config.data_dir = p->dir;
    p->log = tmpfile();
    assert_non_null(p->log);
    p->app.config = &p->config;
    p->app.log = (struct tp_log){.fd = fileno(p->log), .level = TP_LOG_INFO};
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    tp_kineto_side_free(p->side);
    fclose(p->log);
    tmpdir_remove(p->dir);
    free(p);
    return 0;
}

static int make(struct place *p)
{
    return tp_kineto_side_new(&p->app, &p->side, &p->opts, &p->err);
}

static void test_without_a_name_and_directories_there_is_none(void **state)
{
    struct place *p = *state;

    p->config.kineto_socket = "";
    assert_int_equal(make(p), TP_OK);
    assert_null(p->side);
    assert_null(p->opts);
    tp_kineto_side_start(NULL);
    tp_kineto_side_stop(NULL);
}

static void test_the_settings_are_what_the_engine_gets(void **state)
{
    struct place *p = *state;
    char wanted[64];

    p->config.kineto_trace_dir = "";
    p->config.kineto_uids.items[0] = "4711";
    p->config.kineto_uids.n = 1;
    assert_int_equal(make(p), TP_OK);
    snprintf(wanted, sizeof(wanted), "/tmp/traceplane-%u/", (unsigned)geteuid());
    assert_memory_equal(p->opts->trace_dir, wanted, strlen(wanted));
    assert_string_equal(p->opts->root_dir, "/tmp");
    assert_int_equal(p->opts->n_uids, 2);
    assert_int_equal(p->opts->uids[0], geteuid());
    assert_int_equal(p->opts->uids[1], 4711);
    assert_false(p->opts->any_uid);
}

static void test_any_user_only_when_that_is_said(void **state)
{
    struct place *p = *state;

    p->config.kineto_uids.items[0] = "any";
    p->config.kineto_uids.n = 1;
    assert_int_equal(make(p), TP_OK);
    assert_true(p->opts->any_uid);
    assert_int_equal(p->opts->n_uids, 1);
}

static void test_two_services_of_a_user_have_folders_of_their_own(void **state)
{
    struct place *p = *state;
    struct tp_kineto_side *other;
    const struct tp_kineto_opts *opts;

    assert_int_equal(make(p), TP_OK);
    p->config.data_dir = "/somewhere/else";
    assert_int_equal(tp_kineto_side_new(&p->app, &other, &opts, &p->err), TP_OK);
    assert_string_not_equal(p->opts->trace_dir, opts->trace_dir);
    tp_kineto_side_free(other);
}

static void test_settings_that_cannot_be_are_refused_by_name(void **state)
{
    static char long_dir[400];
    const struct {
        char *dir, *uid, *name;
    } cases[] = {{"relative", NULL, "kineto-trace-dir"},
                 {"/a b", NULL, "kineto-trace-dir"},
                 {"/a=b", NULL, "kineto-trace-dir"},
                 {"/a#b", NULL, "kineto-trace-dir"},
                 {"/a/../b", NULL, "kineto-trace-dir"},
                 {"/a.json", NULL, "kineto-trace-dir"},
                 {long_dir, NULL, "kineto-trace-dir"},
                 {"/tmp", "", "kineto-allow-uid"},
                 {"/tmp", "-1", "kineto-allow-uid"},
                 {"/tmp", "nobody", "kineto-allow-uid"},
                 {"/tmp", "1x", "kineto-allow-uid"},
                 {"/tmp", "4294967295", "kineto-allow-uid"},
                 {"/tmp", "99999999999999999999", "kineto-allow-uid"}};
    struct place *p = *state;

    memset(long_dir, 'a', sizeof(long_dir) - 1);
    long_dir[0] = '/';
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        p->config.kineto_trace_dir = cases[i].dir;
        p->config.kineto_uids.items[0] = cases[i].uid;
        p->config.kineto_uids.n = cases[i].uid != NULL;
        p->err.message[0] = '\0';
        if (make(p) != TP_EINVAL || p->side != NULL ||
            strstr(p->err.message, cases[i].name) == NULL)
            fail_msg("%s, %s: %s", cases[i].dir, cases[i].uid, p->err.message);
    }
}

/* What was logged so far. */
static void read_log(struct place *p, char *out, size_t bytes)
{
    rewind(p->log);
    out[fread(out, 1, bytes - 1, p->log)] = '\0';
}

/* Start it and stop it again. why gets what it says of its sockets meanwhile. */
static void run_once(struct place *p, char *why, size_t bytes)
{
    struct rig *r = calloc(1, sizeof(*r));

    assert_non_null(r);
    rig_init(r);
    assert_int_equal(make(p), TP_OK);
    r->kineto = p->opts;
    r->now = tp_clock_now();
    assert_int_equal(rig_start(r), TP_OK);
    p->app.engine = r->engine;
    tp_kineto_side_start(p->side);
    assert_true(tp_engine_kineto_sockets(r->engine, why, bytes));
    tp_kineto_side_stop(p->side);
    tp_kineto_side_free(p->side);
    p->side = NULL;
    rig_fini(r);
    free(r);
}

static void test_a_name_that_is_taken_is_a_line_and_no_end(void **state)
{
    struct place *p = *state;
    struct tp_kineto_socket taken;
    char text[4096], why[300];

    assert_int_equal(tp_kineto_socket_open(p->name, "", 0, &taken, NULL), TP_OK);
    run_once(p, why, sizeof(why));
    assert_non_null(strstr(why, "a dynolog or another traceplaned runs"));
    tp_kineto_socket_close(&taken);
    read_log(p, text, sizeof(text));
    assert_non_null(strstr(text, "kineto-socket-unavailable"));
    assert_non_null(strstr(text, "a dynolog or another traceplaned runs"));
    assert_null(strstr(text, "kineto-listening"));
}

static void test_a_directory_that_other_nodes_see_is_told(void **state)
{
    struct place *p = *state;

    p->config.kineto_socket = "";
    p->config.kineto_dirs.items[0] = tmpdir_new_short();
    p->config.kineto_dirs.n = 1;
    for (int i = 0; i < 2; i++) {
        char text[4096], why[300];

        is_nfs = i == 1;
        run_once(p, why, sizeof(why));
        assert_string_equal(why, "");
        read_log(p, text, sizeof(text));
        assert_non_null(strstr(text, "kineto-listening"));
        assert_int_equal(strstr(text, "kineto-socket-dir-shared") != NULL, is_nfs);
    }
    tmpdir_remove(p->config.kineto_dirs.items[0]);
}

static void test_a_kernel_that_guards_no_folder_is_told(void **state)
{
    static const struct {
        uid_t uid;
        char *allow;
        const char *setting;
        bool is_told;
    } cases[] = {{1000, "any", "1\n", false},
                 {0, "any", "0\n", false}, /* it gives folders away */
                 {1000, NULL, "0\n", false},
                 {1000, "any", "0\n", true},
                 {1000, "4711", "0\n", true}};
    struct place *p = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[2048];
        bool is_told;

        our_uid = cases[i].uid;
        p->config.kineto_uids.items[0] = cases[i].allow;
        p->config.kineto_uids.n = cases[i].allow != NULL;
        tmpdir_write(p->dir, "protected_symlinks", cases[i].setting, 2);
        assert_int_equal(ftruncate(fileno(p->log), 0), 0);
        rewind(p->log);
        assert_int_equal(make(p), TP_OK);
        tp_kineto_side_check_node(p->side, p->dir);
        tp_kineto_side_free(p->side);
        p->side = NULL;
        read_log(p, text, sizeof(text));
        is_told = strstr(text, "kineto-folders-unprotected") != NULL &&
                  strstr(text, "fs.protected_symlinks=1") != NULL;
        if (is_told != cases[i].is_told || (!is_told && text[0] != '\0'))
            fail_msg("case %zu: %s", i, text);
    }
}

static void test_it_survives_every_allocation_failure(void **state)
{
    struct place *p = *state;

    for (int n = 0;; n++) {
        int rc;

        fault_arm(n);
        rc = make(p);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(n, 1);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(p->side);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        TEST(test_without_a_name_and_directories_there_is_none),
        TEST(test_the_settings_are_what_the_engine_gets),
        TEST(test_any_user_only_when_that_is_said),
        TEST(test_two_services_of_a_user_have_folders_of_their_own),
        TEST(test_settings_that_cannot_be_are_refused_by_name),
        TEST(test_a_name_that_is_taken_is_a_line_and_no_end),
        TEST(test_a_directory_that_other_nodes_see_is_told),
        TEST(test_a_kernel_that_guards_no_folder_is_told),
        TEST(test_it_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
