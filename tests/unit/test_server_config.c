/*
 * Settings: which source wins, what is refused and in which words, and that the two
 * tables and the texts made from them agree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <ctype.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "server/config.h"
#include "support/fault.h"
#include "support/tmpdir.h"

#define MOST_ARGS 64

/* Load from flags and variables, both ended by NULL; the first flag is argv[1]. */
static int load(const char *const *flags, const char *const *variables,
                struct tp_config *c, struct tp_err *err)
{
    char *argv[MOST_ARGS] = {(char *)(uintptr_t) "traceplaned"};
    int argc = 1;

    for (; flags != NULL && flags[argc - 1] != NULL; argc++) {
        assert_true(argc < MOST_ARGS - 1);
        argv[argc] = (char *)(uintptr_t)flags[argc - 1];
    }
    return tp_config_load(argc, argv, (char **)(uintptr_t)variables, c, err);
}

#define FLAGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void expect_loaded(const char *const *flags, const char *const *variables,
                          struct tp_config *c)
{
    struct tp_err err = {0};

    *c = (struct tp_config){0};
    if (load(flags, variables, c, &err) != TP_OK)
        fail_msg("%s", err.message);
}

/* Refused with that code and with words in the message; nothing is in out. */
static void expect_refused(const char *const *flags, const char *const *variables,
                           int code, const char *words)
{
    struct tp_config c = {0};
    const struct tp_config untouched = {0};
    struct tp_err err = {0};
    int rc = load(flags, variables, &c, &err);

    if (rc != code || strstr(err.message, words) == NULL)
        fail_msg("%s: %d, '%s'", words, rc, err.message);
    assert_memory_equal(&c, &untouched, sizeof(c));
}

static void test_without_anything_the_defaults_hold(void **state)
{
    const struct tp_limits limits = tp_limits_default();
    struct tp_config c;

    (void)state;
    expect_loaded(NULL, NULL, &c);
    assert_int_equal(c.listen.n, 0);
    assert_int_equal(c.allow_host.n, 0);
    assert_string_equal(c.store, "");
    assert_string_equal(c.on_collision, "reject");
    assert_string_equal(c.durability, "process");
    assert_string_equal(c.log_level, "info");
    assert_int_equal(c.idle_timeout_s, 60);
    assert_true(c.data_dir[0] == '/');
    assert_memory_equal(&c.limits, &limits, sizeof(limits));
    assert_false(c.wants_help || c.wants_version || c.wants_print);
    tp_config_fini(&c);
}

static void test_a_flag_wins_over_the_environment_that_over_the_file(void **state)
{
    static const char text[] =
        "# a comment\n\n  data-dir = /file  \n"
        "log-level=error\ndurability = disk\n"
        "max-jobs = 11\nmax-watchers = 11\nmax-streams-per-trace "
        "= 11\n";
    char *dir = tmpdir_new();
    char *path = tmpdir_path(dir, "conf");
    const char *const variables[] = {"TRACEPLANE_LOG_LEVEL=debug",
                                     "TRACEPLANE_DATA_DIR=/environment",
                                     "TRACEPLANE_MAX_JOBS=22",
                                     "TRACEPLANE_MAX_WATCHERS=22", NULL};
    struct tp_config c;

    (void)state;
    tmpdir_write(dir, "conf", text, sizeof(text) - 1);
    expect_loaded(FLAGS("--data-dir=/flag", "--config", path, "--max-jobs", "33"),
                  variables, &c);
    assert_string_equal(c.data_dir, "/flag");
    assert_string_equal(c.log_level, "debug");
    assert_string_equal(c.durability, "disk");
    assert_int_equal(c.limits.jobs, 33);
    assert_int_equal(c.limits.watchers, 22);
    assert_int_equal(c.limits.streams_per_trace, 11);
    tp_config_fini(&c);
    free(path);
    tmpdir_remove(dir);
}

static void test_the_environment_may_name_the_file(void **state)
{
    char *dir = tmpdir_new();
    char *path = tmpdir_path(dir, "conf");
    char variable[4200];
    const char *const variables[] = {variable, NULL};
    struct tp_config c;

    (void)state;
    snprintf(variable, sizeof(variable), "TRACEPLANE_CONFIG=%s", path);
    tmpdir_write(dir, "conf", "store = sqlite:/x", 17);
    expect_loaded(NULL, variables, &c);
    assert_string_equal(c.store, "sqlite:/x");
    tp_config_fini(&c);
    free(path);
    tmpdir_remove(dir);
}

static void test_a_list_is_replaced_not_mixed(void **state)
{
    const char *const variables[] = {"TRACEPLANE_LISTEN=127.0.0.1:1",
                                     "TRACEPLANE_ALLOW_HOST=gpu-box", NULL};
    const char *const none[] = {"TRACEPLANE_LISTEN=127.0.0.1:1", NULL};
    struct tp_config c;

    (void)state;
    expect_loaded(FLAGS("--listen", "unix:/a", "--listen", "unix:/b"), variables, &c);
    assert_int_equal(c.listen.n, 2);
    assert_string_equal(c.listen.items[0], "unix:/a");
    assert_string_equal(c.listen.items[1], "unix:/b");
    assert_int_equal(c.allow_host.n, 1);
    assert_string_equal(c.allow_host.items[0], "gpu-box");
    tp_config_fini(&c);
    expect_loaded(FLAGS("--listen="), none, &c);
    assert_int_equal(c.listen.n, 0);
    tp_config_fini(&c);
}

static void test_variables_of_other_programs_do_not_disturb(void **state)
{
    const char *const variables[] = {"TRACEPLANE_URL=http://x",
                                     "TRACEPLANE_=1",
                                     "TRACEPLANE_JOB",
                                     "LISTEN=7",
                                     "=",
                                     NULL};
    struct tp_config c;

    (void)state;
    expect_loaded(NULL, variables, &c);
    tp_config_fini(&c);
}

static void test_what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *flag, *value, *words;
    } cases[] = {
        {"--data-dri", "x", "did you mean 'data-dir'"},
        {"--max-job", "1", "did you mean 'max-jobs'"},
        {"--jobs", "1", "there is no setting 'jobs'"},
        {"--zzzzzzzzzz=1", NULL, "there is no setting 'zzzzzzzzzz'"},
        {"data-dir", "x", "'data-dir' is not a flag"},
        {"-v", NULL, "is not a flag"},
        {"--", NULL, "is not a flag"},
        {"", NULL, "is not a flag"},
        {"--data-dir", NULL, "needs a value"},
        {"--max-jobs", NULL, "needs a value"},
        {"--config", NULL, "needs a value"},
        {"--log-level", "loud", "must be one of error|warning|info|debug, not 'loud'"},
        {"--log-level", "err", "must be one of"},
        {"--log-level", "", "must be one of"},
        {"--log-level", "error|warning", "must be one of"},
        {"--durability", "diskette", "must be one of process|disk"},
        {"--http-threads", "-1", "must be a number of 0 to"},
        {"--http-threads", " 1", "must be a number"},
        {"--http-threads", "1e3", "must be a number"},
        {"--http-threads", "", "must be a number"},
        {"--http-threads", "99999999999999999999", "must be a number"},
        {"--idle-timeout-s", "1073741825", "must be a number of 0 to 1073741824"},
        {"--max-jobs", "0", "from 1 to"},
        {"--max-jobs", "1x", "max-jobs '1x'"},
        {"--max-body-bytes", "1", "bytes from 1024 to"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_refused((const char *const[]){cases[i].flag, cases[i].value, NULL}, NULL,
                       TP_EINVAL, cases[i].words);
    expect_refused(NULL, FLAGS("TRACEPLANE_LOG_LEVEL=loud"), TP_EINVAL,
                   "environment: 'log-level'");
}

static void test_a_list_takes_16_entries_and_says_so(void **state)
{
    const char *flags[2 * (TP_CONFIG_LIST_MAX + 1) + 1] = {NULL};
    struct tp_config c;

    (void)state;
    for (size_t i = 0; i < TP_CONFIG_LIST_MAX; i++) {
        flags[2 * i] = "--listen";
        flags[2 * i + 1] = "127.0.0.1:0";
    }
    expect_loaded(flags, NULL, &c);
    assert_int_equal(c.listen.n, TP_CONFIG_LIST_MAX);
    tp_config_fini(&c);
    flags[2 * TP_CONFIG_LIST_MAX] = "--listen=x";
    expect_refused(flags, NULL, TP_EINVAL, "'listen' is given more than 16 times");
}

static void expect_file_refused(const char *text, size_t n, const char *words)
{
    char *dir = tmpdir_new();
    char *path = tmpdir_path(dir, "conf");

    tmpdir_write(dir, "conf", text, n);
    expect_refused(FLAGS("--config", path), NULL, TP_EINVAL, words);
    free(path);
    tmpdir_remove(dir);
}

static void test_a_broken_file_is_told_with_its_line(void **state)
{
    char longest[5000] = "data-dir = ";

    (void)state;
    memset(longest + 11, 'x', sizeof(longest) - 11);
    expect_file_refused("\n\nlisten\n", 9,
                        "conf line 3: a line must be 'name = value'");
    expect_file_refused("lisen = x\n", 10, "line 1: there is no setting 'lisen'");
    expect_file_refused("config = x\n", 11, "line 1: there is no setting 'config'");
    expect_file_refused("= x\n", 4, "line 1: there is no setting ''");
    expect_file_refused("max-jobs = \n", 12, "line 1: max-jobs ''");
    expect_file_refused(longest, sizeof(longest), "line 1: the line is too long");
    expect_file_refused("data-dir = /a\0b\n", 16, "line 1: the line holds a NUL");
}

static void test_a_file_that_cannot_be_read_is_no_empty_one(void **state)
{
    char *dir = tmpdir_new();
    char *path = tmpdir_path(dir, "missing");

    (void)state;
    expect_refused(FLAGS("--config", path), NULL, TP_EIO, "No such file");
    expect_refused(FLAGS("--config", dir), NULL, TP_EIO, "cannot read");
    free(path);
    tmpdir_remove(dir);
}

/* "max-jobs" as "TRACEPLANE_MAX_JOBS=value". */
static void variable_of(const char *name, const char *value, char *out, size_t n)
{
    size_t len = (size_t)snprintf(out, n, "TRACEPLANE_%s=%s", name, value);

    assert_true(len < n);
    for (char *p = out; *p != '='; p++)
        *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

static void test_each_limit_is_a_flag_a_variable_and_a_line(void **state)
{
    size_t n;
    const struct tp_limit_info *table = tp_limits_table(&n);
    char *dir = tmpdir_new();
    char *path = tmpdir_path(dir, "conf");

    (void)state;
    for (size_t i = 0; i < n; i++) {
        char value[24];
        char flag[128];
        char text[200];
        struct tp_config by_flag;
        struct tp_config by_variable;
        struct tp_config by_line;

        snprintf(value, sizeof(value), "%llu", (unsigned long long)table[i].min);
        snprintf(flag, sizeof(flag), "--%s=%s", table[i].name, value);
        expect_loaded(FLAGS(flag), NULL, &by_flag);
        variable_of(table[i].name, value, text, sizeof(text));
        expect_loaded(NULL, FLAGS(text), &by_variable);
        tmpdir_write(dir, "conf", flag + 2, strlen(flag + 2));
        expect_loaded(FLAGS("--config", path), NULL, &by_line);
        if (tp_limits_get(&by_flag.limits, &table[i]) != table[i].min ||
            tp_limits_get(&by_variable.limits, &table[i]) != table[i].min ||
            tp_limits_get(&by_line.limits, &table[i]) != table[i].min)
            fail_msg("%s is not set", table[i].name);
        tp_config_fini(&by_flag);
        tp_config_fini(&by_variable);
        tp_config_fini(&by_line);
    }
    free(path);
    tmpdir_remove(dir);
}

static char *printed(const struct tp_config *c, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);

    assert_non_null(f);
    if (c == NULL)
        tp_config_usage(f);
    else
        tp_config_print(c, f);
    fclose(f);
    return text;
}

static void test_what_is_printed_is_a_file_that_says_the_same(void **state)
{
    char *dir = tmpdir_new();
    char *path = tmpdir_path(dir, "conf");
    struct tp_config c;
    char *first;
    char *second;
    size_t n;

    (void)state;
    expect_loaded(FLAGS("--listen", "[::1]:0", "--listen", "unix:/a b", "--max-jobs=3",
                        "--data-dir", "/some where", "--on-collision=probe"),
                  NULL, &c);
    first = printed(&c, &n);
    tp_config_fini(&c);
    tmpdir_write(dir, "conf", first, n);
    expect_loaded(FLAGS("--config", path), NULL, &c);
    second = printed(&c, &n);
    tp_config_fini(&c);
    assert_string_equal(first, second);
    assert_non_null(strstr(first, "\nlisten = unix:/a b\n"));
    free(first);
    free(second);
    free(path);
    tmpdir_remove(dir);
}

static void test_the_usage_text_names_all_that_is_printed(void **state)
{
    struct tp_config c;
    char *usage;
    char *settings;
    char *rest;
    size_t n;

    (void)state;
    expect_loaded(FLAGS("--listen=x", "--allow-host=x", "--allow-origin=x"), NULL, &c);
    usage = printed(NULL, &n);
    settings = printed(&c, &n);
    tp_config_fini(&c);
    for (char *line = strtok_r(settings, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char flag[160];

        snprintf(flag, sizeof(flag), "\n  --%.*s ", (int)strcspn(line, " "), line);
        if (strstr(usage, flag) == NULL)
            fail_msg("the usage text does not name%s", flag + 2);
    }
    free(usage);
    free(settings);
}

static void test_word_flags_are_seen_wherever_they_stand(void **state)
{
    struct tp_config c;

    (void)state;
    expect_loaded(FLAGS("--max-jobs", "3", "--help", "--version", "--print-config"),
                  NULL, &c);
    assert_true(c.wants_help && c.wants_version && c.wants_print);
    tp_config_fini(&c);
}

/* Users who are not root keep their data below their home. */
static void test_the_data_directory_follows_the_user(void **state)
{
    bool is_root = geteuid() == 0;
    struct tp_config c;

    (void)state;
    if (is_root) {
        expect_loaded(NULL, NULL, &c);
        assert_string_equal(c.data_dir, "/var/lib/traceplane");
        tp_config_fini(&c);
        assert_int_equal(seteuid(65534), 0);
    }
    assert_int_equal(setenv("HOME", "/home/x", 1), 0);
    assert_int_equal(setenv("XDG_DATA_HOME", "/data", 1), 0);
    expect_loaded(NULL, NULL, &c);
    assert_string_equal(c.data_dir, "/data/traceplane");
    tp_config_fini(&c);
    assert_int_equal(setenv("XDG_DATA_HOME", "relative", 1), 0);
    expect_loaded(NULL, NULL, &c);
    assert_string_equal(c.data_dir, "/home/x/.local/share/traceplane");
    tp_config_fini(&c);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
}

static void test_without_memory_nothing_is_loaded(void **state)
{
    const char *const flags[] = {"--listen", "a",        "--listen",       "b",
                                 "--store",  "sqlite:x", "--ready-file=y", NULL};
    const char *const variables[] = {"TRACEPLANE_LISTEN=c", "TRACEPLANE_STORE=z", NULL};

    (void)state;
    for (int n = 0;; n++) {
        struct tp_config c = {0};
        struct tp_err err = {0};
        int rc;

        fault_arm(n);
        rc = load(flags, variables, &c, &err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_config_fini(&c);
            assert_true(n > 5);
            return;
        }
        if (rc != TP_ENOMEM || c.data_dir != NULL)
            fail_msg("allocation %d: %d, '%s'", n, rc, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_anything_the_defaults_hold),
        cmocka_unit_test(test_a_flag_wins_over_the_environment_that_over_the_file),
        cmocka_unit_test(test_the_environment_may_name_the_file),
        cmocka_unit_test(test_a_list_is_replaced_not_mixed),
        cmocka_unit_test(test_variables_of_other_programs_do_not_disturb),
        cmocka_unit_test(test_what_is_wrong_is_named),
        cmocka_unit_test(test_a_list_takes_16_entries_and_says_so),
        cmocka_unit_test(test_a_broken_file_is_told_with_its_line),
        cmocka_unit_test(test_a_file_that_cannot_be_read_is_no_empty_one),
        cmocka_unit_test(test_each_limit_is_a_flag_a_variable_and_a_line),
        cmocka_unit_test(test_what_is_printed_is_a_file_that_says_the_same),
        cmocka_unit_test(test_the_usage_text_names_all_that_is_printed),
        cmocka_unit_test(test_word_flags_are_seen_wherever_they_stand),
        cmocka_unit_test(test_the_data_directory_follows_the_user),
        cmocka_unit_test(test_without_memory_nothing_is_loaded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
