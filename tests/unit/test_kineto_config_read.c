/*
 * test_kineto_config_read.c - what clients of dynolog's send is understood, or refused
 * by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "kineto/config_read.h"

/* Read a copy of exactly that size, so that reading too far is seen. */
static int read_copy(const char *text, size_t n, struct tp_kineto_wish *out,
                     struct tp_err *err, char **copy)
{
    *copy = malloc(n + (n == 0));
    assert_non_null(*copy);
    memcpy(*copy, text, n);
    return tp_kineto_config_read((struct tp_str){*copy, n}, out, err);
}

static void test_what_dyno_sends_for_a_duration(void **state)
{
    static const char text[] =
        "ACTIVITIES_LOG_FILE=/tmp/t.json\nPROFILE_START_TIME=1790857026123\n"
        "ACTIVITIES_DURATION_MSECS=500\nPROFILE_REPORT_INPUT_SHAPES=true\n"
        "PROFILE_PROFILE_MEMORY=false\nPROFILE_WITH_STACK=1\nPROFILE_WITH_FLOPS=No\n"
        "PROFILE_WITH_MODULES=T";
    struct tp_kineto_wish w;
    struct tp_err err;
    char *copy;

    (void)state;
    assert_int_equal(read_copy(text, sizeof(text) - 1, &w, &err, &copy), TP_OK);
    assert_true(tp_str_is(w.log_file, "/tmp/t.json"));
    assert_int_equal(w.start_wall_ms, 1790857026123);
    assert_int_equal(w.duration_ms, 500);
    assert_true(w.record_shapes && w.with_stack && w.with_modules);
    assert_false(w.profile_memory || w.with_flops || w.has_warmup || w.wants_snapshot);
    assert_int_equal(w.types.len, 0);
    free(copy);
}

static void test_what_dyno_sends_for_iterations(void **state)
{
    static const char text[] =
        "  # a comment\n\n ACTIVITIES_LOG_FILE = /a.json # here\n"
        "PROFILE_START_ITERATION=0\n"
        "PROFILE_START_ITERATION_ROUNDUP=1000\n"
        "ACTIVITIES_ITERATIONS=4\nACTIVITIES_ITERATIONS=5\n"
        "ACTIVITIES_WARMUP_PERIOD_SECS=0\n"
        "ACTIVITY_TYPES=cpu_op,KERNEL\n"
        "PROFILE_MEMORY=true\nPROFILE_MEMORY_DURATION_MSECS=9\n"
        "REQUEST_TRACE_ID=theirs\n";
    struct tp_kineto_wish w;
    struct tp_err err;
    char *copy;

    (void)state;
    assert_int_equal(read_copy(text, sizeof(text) - 1, &w, &err, &copy), TP_OK);
    assert_true(tp_str_is(w.log_file, "/a.json"));
    assert_int_equal(w.iterations, 5); /* the later line counts */
    assert_int_equal(w.iteration_roundup, 1000);
    assert_true(w.has_warmup);
    assert_int_equal(w.warmup_s, 0);
    assert_true(tp_str_is(w.types, "cpu_op,KERNEL"));
    assert_true(w.wants_snapshot);
    free(copy);
}

static void test_nothing_is_nothing(void **state)
{
    struct tp_kineto_wish w;
    struct tp_err err;
    char *copy;

    (void)state;
    assert_int_equal(read_copy("", 0, &w, &err, &copy), TP_OK);
    assert_int_equal(w.duration_ms, 0);
    assert_int_equal(w.log_file.len, 0);
    free(copy);
}

static void test_a_bad_line_is_refused_by_number_and_name(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"hello", "line 1 of the config is no 'KEY=VALUE'"},
        {"\n\nMAX=1", "line 3 of the config: 'MAX' is not supported"},
        {"=1", "line 1 of the config: '' is not supported"},
        {"ACTIVITIES_DURATION_MSECS=", "ACTIVITIES_DURATION_MSECS cannot be ''"},
        {"ACTIVITIES_DURATION_MSECS=2147483648", "cannot be '2147483648'"},
        {"ACTIVITIES_DURATION_MSECS=-5", "cannot be '-5'"},
        {"PROFILE_START_TIME=99999999999999999999", "PROFILE_START_TIME cannot be"},
        {"PROFILE_START_ITERATION=7", "PROFILE_START_ITERATION cannot be '7' here"},
        {"PROFILE_WITH_STACK=perhaps", "PROFILE_WITH_STACK cannot be 'perhaps'"},
        {"ACTIVITIES_LOG_FILE=", "ACTIVITIES_LOG_FILE cannot be ''"},
        {"ACTIVITIES_WARMUP_PERIOD_SECS=99999999", "cannot be '99999999'"},
        {"PROFILE_WITH_STACK=true\r", "cannot be 'true\r'"},
        {"PROFILE_START_ITERATION_ROUNDUP=3", "needs ACTIVITIES_ITERATIONS"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_kineto_wish w = {.duration_ms = 77};
        struct tp_err err = {0};
        char *copy;
        int rc = read_copy(cases[i].text, strlen(cases[i].text), &w, &err, &copy);

        if (rc != TP_EINVAL || strstr(err.message, cases[i].want) == NULL ||
            w.duration_ms != 77)
            fail_msg("%s: %d %s", cases[i].text, rc, err.message);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_dyno_sends_for_a_duration),
        cmocka_unit_test(test_what_dyno_sends_for_iterations),
        cmocka_unit_test(test_nothing_is_nothing),
        cmocka_unit_test(test_a_bad_line_is_refused_by_number_and_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
