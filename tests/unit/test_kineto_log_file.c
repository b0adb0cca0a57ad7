/*
 * test_kineto_log_file.c - which paths a client of dynolog's may name, and what becomes
 * of them for each process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "kineto/log_file.h"

static char *const dirs[] = {"/data/traces", "//tmp/./a/", "/data"};

/* A copy of exactly that size, so that reading too far is seen. */
static int find(const char *path, struct tp_kineto_log_file *out, struct tp_err *err)
{
    size_t n = strlen(path);
    char *copy = malloc(n + (n == 0));
    int rc;

    assert_non_null(copy);
    memcpy(copy, path, n);
    rc = tp_kineto_log_file_find((struct tp_str){copy, n}, dirs, 3, out, err);
    free(copy);
    return rc;
}

static void test_a_path_below_a_directory_is_found_there(void **state)
{
    static const struct {
        const char *path, *below;
        size_t dir;
    } cases[] = {{"/data/traces/x.json", "x.json", 0},
                 {"//data/.//traces/./a//b/x.json", "a/b/x.json", 0},
                 {"/tmp/a/x", "x", 1},
                 {"/data/x.json", "x.json", 2},
                 {"/data/traces.json", "traces.json", 2},
                 {"/data/traces", "traces", 2},
                 {"/data/..x/...", "..x/...", 2}};
    struct tp_kineto_log_file f;
    struct tp_err err;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (find(cases[i].path, &f, &err) != TP_OK)
            fail_msg("%s: %s", cases[i].path, err.message);
        if (f.dir != cases[i].dir || strcmp(f.below, cases[i].below) != 0)
            fail_msg("%s: %s in %zu", cases[i].path, f.below, f.dir);
    }
}

static void test_any_other_path_is_refused_and_leaves_nothing(void **state)
{
    static const struct {
        const char *path;
        int code;
    } cases[] = {{"", TP_EINVAL},
                 {"x.json", TP_EINVAL},
                 {"./data/x.json", TP_EINVAL},
                 {"/data/../etc/x.json", TP_EINVAL},
                 {"/data/traces/..", TP_EINVAL},
                 {"/data/traces/", TP_EINVAL},
                 {"/data/traces/x/.", TP_EINVAL},
                 {"/", TP_EINVAL},
                 {"/data/a\nb.json", TP_EINVAL},
                 {"/data/a\x7f.json", TP_EINVAL},
                 {"/data", TP_EDENIED},
                 {"/datax/x.json", TP_EDENIED},
                 {"/etc/x.json", TP_EDENIED},
                 {"/tmp/ab/x.json", TP_EDENIED}};
    struct tp_err err;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_kineto_log_file f = {.dir = 77};

        if (find(cases[i].path, &f, &err) != cases[i].code)
            fail_msg("%s: %s", cases[i].path, err.message);
        assert_int_equal(f.dir, 77);
    }
}

static void test_names_have_room_for_their_number(void **state)
{
    struct tp_kineto_log_file f;
    char path[1200] = "/data/", out[TP_KINETO_LOG_FILE_BYTES];
    struct tp_err err;

    (void)state;
    memset(path + 6, 'a', 207);
    assert_int_equal(find(path, &f, &err), TP_OK);
    assert_int_equal(tp_kineto_log_file_name(tp_str_of(path),
                                             "kineto-c2147483647-18446744073709551615",
                                             out, &err),
                     TP_OK);
    assert_true(strlen(out) - 6 <= 255);
    path[213] = 'a';
    assert_int_equal(find(path, &f, &err), TP_EINVAL);
    for (size_t i = 6; i < sizeof(path) - 1; i++)
        path[i] = (char)(i % 100 == 0 ? '/' : 'a');
    assert_int_equal(find(path, &f, &err), TP_EINVAL);
    assert_int_equal(tp_kineto_log_file_name(tp_str_of(path), "1", out, &err),
                     TP_EINVAL);
    path[901] = '\0';
    assert_int_equal(find(path, &f, &err), TP_EINVAL); /* it ends in a directory */
    path[900] = '\0';
    assert_int_equal(find(path, &f, &err), TP_OK);
}

static void test_each_process_has_a_name_as_libkineto_makes_it(void **state)
{
    static const struct {
        const char *path, *producer, *name;
    } cases[] = {{"/a/x.json", "kineto-12", "/a/x_12.json"},
                 {"/a/x.pt.trace.json", "kineto-12", "/a/x_12.pt.trace.json"},
                 {"/a/x.json.gz", "kineto-12", "/a/x_12.json.gz"},
                 {"/a.json/x", "kineto-12", "/a.json/x_12"},
                 {"/a.json/x.json", "kineto-c1-5", "/a.json/x_c1-5.json"},
                 {"/a/.json", "7", "/a/_7.json"},
                 {"/a/x", "kineto-12", "/a/x_12"}};
    char out[TP_KINETO_LOG_FILE_BYTES];
    struct tp_err err;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(tp_kineto_log_file_name(tp_str_of(cases[i].path),
                                                 cases[i].producer, out, &err),
                         TP_OK);
        assert_string_equal(out, cases[i].name);
    }
    assert_int_equal(tp_kineto_log_file_name(tp_str_of("/a/x"), "kineto-../b", out,
                                             &err),
                     TP_EINVAL);
    assert_string_equal(out, "/a/x_12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_path_below_a_directory_is_found_there),
        cmocka_unit_test(test_any_other_path_is_refused_and_leaves_nothing),
        cmocka_unit_test(test_names_have_room_for_their_number),
        cmocka_unit_test(test_each_process_has_a_name_as_libkineto_makes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
