/*
 * test_kineto_config_text.c - the text is what libkineto reads, and nothing that it
 * would drop or that would hurt the process can be written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/activity.h"
#include "kineto/config_text.h"
#include "support/fault.h"

static struct tp_kineto_config sound(void)
{
    return (struct tp_kineto_config){
        .folder = tp_str_of("/tmp"),
        .log_file = tp_str_of("/tmp/traceplane/t-1/node-7_r3.pt.trace.json"),
        .start_wall_ms = 1790857026123,
        .duration_ms = 500,
        .warmup_s = 5,
        .trace_id = tp_str_of("01abc-2_X"),
    };
}

static void expect_text(const struct tp_kineto_config *c, const char *text)
{
    struct tp_buf out = {0};

    assert_int_equal(tp_kineto_config_write(c, &out, NULL), TP_OK);
    assert_int_equal(tp_buf_append(&out, "", 1, NULL), TP_OK);
    assert_string_equal(out.data, text);
    tp_buf_fini(&out);
}

static void test_by_time(void **state)
{
    struct tp_kineto_config c = sound();

    (void)state;
    expect_text(&c, "ACTIVITIES_LOG_FILE=/tmp/traceplane/t-1/node-7_r3.pt.trace.json\n"
                    "ACTIVITIES_WARMUP_PERIOD_SECS=5\n"
                    "PROFILE_START_TIME=1790857026123\n"
                    "ACTIVITIES_DURATION_MSECS=500\n"
                    "PROFILE_REPORT_INPUT_SHAPES=false\n"
                    "PROFILE_PROFILE_MEMORY=false\n"
                    "PROFILE_WITH_STACK=false\n"
                    "PROFILE_WITH_FLOPS=false\n"
                    "PROFILE_WITH_MODULES=false\n"
                    "REQUEST_TRACE_ID=01abc-2_X\n");
}

static void test_by_iterations_with_types_and_flags(void **state)
{
    struct tp_kineto_config c = sound();

    (void)state;
    c.start_wall_ms = c.duration_ms = c.warmup_s = 0;
    c.iterations = 4;
    c.iteration_roundup = 100;
    c.has_types = true;
    tp_typeset_add(&c.types, TP_ACTIVITY_CPU_OP);
    tp_typeset_add(&c.types, TP_ACTIVITY_CONCURRENT_KERNEL);
    tp_typeset_add(&c.types, TP_ACTIVITY_HARDWARE_COUNTERS);
    c.record_shapes = c.with_stack = c.with_modules = true;
    c.profile_memory = c.with_flops = true;
    expect_text(&c, "ACTIVITIES_LOG_FILE=/tmp/traceplane/t-1/node-7_r3.pt.trace.json\n"
                    "ACTIVITIES_WARMUP_PERIOD_SECS=0\n"
                    "PROFILE_START_ITERATION=0\n"
                    "PROFILE_START_ITERATION_ROUNDUP=100\n"
                    "ACTIVITIES_ITERATIONS=4\n"
                    "ACTIVITY_TYPES=cpu_op,kernel,hardware_counters\n"
                    "PROFILE_REPORT_INPUT_SHAPES=true\n"
                    "PROFILE_PROFILE_MEMORY=true\n"
                    "PROFILE_WITH_STACK=true\n"
                    "PROFILE_WITH_FLOPS=true\n"
                    "PROFILE_WITH_MODULES=true\n"
                    "REQUEST_TRACE_ID=01abc-2_X\n");
}

static void refuse(const struct tp_kineto_config *c, const char *why)
{
    struct tp_buf out = {0};
    struct tp_err err = {0};

    assert_int_equal(tp_buf_append_str(&out, "before", NULL), TP_OK);
    if (tp_kineto_config_write(c, &out, &err) != TP_EINVAL)
        fail_msg("taken: %s", why);
    if (strstr(err.message, why) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, why);
    assert_int_equal(out.len, 6);
    tp_buf_fini(&out);
}

static void test_paths_that_libkineto_misreads_are_refused(void **state)
{
    static const struct {
        const char *path, *why;
    } cases[] = {
        {"", "not an absolute path"},
        {"tmp/x.pt.trace.json", "not an absolute path"},
        {"/tmp/a b.pt.trace.json", "a character other than"},
        {"/tmp/a=b.pt.trace.json", "a character other than"},
        {"/tmp/a#b.pt.trace.json", "a character other than"},
        {"/tmp/a\nPROFILE_MEMORY=true.pt.trace.json", "a character other than"},
        {"/tmp/a\r.pt.trace.json", "a character other than"},
        {"/tmp/\xc3\xa4.pt.trace.json", "a character other than"},
        {"/tmp/x.json", "at its end and nowhere else"},
        {"/tmp/x.pt.trace.json.gz", "at its end and nowhere else"},
        {"/tmp/.pt.trace.json", "at its end and nowhere else"},
        {"/tmp/a.json.d/x.pt.trace.json", "at its end and nowhere else"},
        {"/tmp/a.pt.trace.json/x.pt.trace.json", "at its end and nowhere else"},
        {"/tmp/../x.pt.trace.json", "has '..' in it"},
        {"/tmp/a..b.pt.trace.json", "has '..' in it"},
        {"/var/x.pt.trace.json", "is not in '/tmp'"},
        {"/tmpx/x.pt.trace.json", "is not in '/tmp'"},
    };
    struct tp_kineto_config c = sound();
    static char longest[TP_KINETO_PATH_MAX_BYTES + 40] = "/tmp/";

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        c.log_file = tp_str_of(cases[i].path);
        refuse(&c, cases[i].why);
    }
    memset(longest + 5, 'x', TP_KINETO_PATH_MAX_BYTES);
    memcpy(longest + TP_KINETO_PATH_MAX_BYTES - 13, TP_KINETO_SUFFIX, 15);
    c.log_file = tp_str_of(longest);
    refuse(&c, "not an absolute path");
    c.log_file.ptr++;
    c.log_file.len--;
    c.folder = (struct tp_str){0};
    refuse(&c, "not an absolute path"); /* it begins with t now */
    c = sound();
    c.folder = (struct tp_str){0};
    refuse(&c, "is not in");
}

static void test_a_folder_may_end_in_a_slash(void **state)
{
    struct tp_kineto_config c = sound();
    struct tp_buf out = {0};

    (void)state;
    c.folder = tp_str_of("/tmp/");
    assert_int_equal(tp_kineto_config_write(&c, &out, NULL), TP_OK);
    tp_buf_fini(&out);
}

static void test_numbers_that_libkineto_cannot_read_are_refused(void **state)
{
    struct tp_kineto_config c = sound();

    (void)state;
    c.duration_ms = 0;
    refuse(&c, "duration_ms 0 is not 1 to 2147483647");
    c.duration_ms = UINT64_C(1) << 31;
    refuse(&c, "duration_ms 2147483648 is not");
    c = sound();
    c.warmup_s = 601;
    refuse(&c, "warmup_s 601 is not 0 to 600");
    c = sound();
    c.start_wall_ms = 0;
    refuse(&c, "start_wall_ms 0 is not");
    c.start_wall_ms = 1790857026; /* seconds */
    refuse(&c, "start_wall_ms 1790857026 is not");
    c = sound();
    c.iteration_roundup = 5;
    refuse(&c, "iteration_roundup 5 is not 0 to 0");
    c = sound();
    c.iterations = 3;
    refuse(&c, "duration_ms 500 is not 0 to 0");
    c.duration_ms = 0;
    refuse(&c, "start_wall_ms 1790857026123 is not 0 to 0");
    c.iterations = UINT64_C(1) << 31;
    refuse(&c, "iterations 2147483648 is not");
}

static void test_types_that_are_not_kinetos_are_refused(void **state)
{
    struct tp_kineto_config c = sound();

    (void)state;
    c.has_types = true;
    refuse(&c, "there is no type to record");
    tp_typeset_add(&c.types, TP_ACTIVITY_CPU_OP);
    tp_typeset_add(&c.types, 154);
    refuse(&c, "type 154 is none that Kineto can record");
}

static void test_ids_that_end_up_unescaped_in_json_are_refused(void **state)
{
    static const char *const ids[] = {"", "a\"b", "a b", "a\n", "a\\", "a.b"};
    struct tp_kineto_config c = sound();
    char longest[TP_KINETO_TRACE_ID_MAX_BYTES + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        c.trace_id = tp_str_of(ids[i]);
        refuse(&c, "the trace id is not 1 to 128 of [A-Za-z0-9_-]");
    }
    memset(longest, 'a', sizeof(longest));
    c.trace_id = (struct tp_str){longest, sizeof(longest)};
    refuse(&c, "the trace id is not");
}

static void test_an_old_release_is_not_sent_names_that_it_cannot_know(void **state)
{
    struct tp_typeset newest = tp_kineto_known_types(false);
    struct tp_typeset old = tp_kineto_known_types(true);

    (void)state;
    assert_int_equal(tp_typeset_count(&newest), TP_ACTIVITY_STATIC_COUNT - 1);
    assert_false(tp_typeset_has(&newest, TP_ACTIVITY_HARDWARE_COUNTERS));
    assert_int_equal(tp_typeset_count(&old), 25);
    assert_false(tp_typeset_has(&old, TP_ACTIVITY_HARDWARE_COUNTERS));
    assert_false(tp_typeset_has(&old, TP_ACTIVITY_MTIA_COUNTERS));
    assert_true(tp_typeset_has(&old, TP_ACTIVITY_PRIVATEUSE1_DRIVER));
}

static void test_writing_survives_every_allocation_failure(void **state)
{
    struct tp_kineto_config c = sound();

    (void)state;
    for (int n = 0;; n++) {
        struct tp_buf out = {0};
        int rc;

        fault_arm(n);
        rc = tp_kineto_config_write(&c, &out, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_buf_fini(&out);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_int_equal(out.len, 0);
        tp_buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_time),
        cmocka_unit_test(test_by_iterations_with_types_and_flags),
        cmocka_unit_test(test_paths_that_libkineto_misreads_are_refused),
        cmocka_unit_test(test_a_folder_may_end_in_a_slash),
        cmocka_unit_test(test_numbers_that_libkineto_cannot_read_are_refused),
        cmocka_unit_test(test_types_that_are_not_kinetos_are_refused),
        cmocka_unit_test(test_ids_that_end_up_unescaped_in_json_are_refused),
        cmocka_unit_test(test_an_old_release_is_not_sent_names_that_it_cannot_know),
        cmocka_unit_test(test_writing_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
