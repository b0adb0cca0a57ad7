/*
 * test_api_dynolog.c - messages of dynolog's clients, an engine, and what comes of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/dynolog.h"
#include "api/service.h"
#include "base/buf.h"
#include "support/engine_rig.h"
#include "support/fault.h"
#include "support/kineto_bytes.h"

#define REQUEST(more)                                                              \
    "{\"fn\":\"setKinetOnDemandRequest\",\"config\":\"ACTIVITIES_LOG_FILE=/t.json" \
    "\\nACTIVITIES_DURATION_MSECS=200\",\"job_id\":0," more "}"

static const struct tp_kineto_opts opts = {
    .trace_dir = "/tmp/tp", .root_dir = "/tmp", .uids = {7}, .n_uids = 1};

/* An engine with PyTorch processes of the pids 101, 102, ... */
struct scene {
    struct rig rig;
    struct tp_service service;
    struct tp_buf answer; /* of the last call; ended by a NUL */
    struct tp_dynolog_outcome outcome;
};

static int set_up(void **state)
{
    struct scene *s = test_calloc(1, sizeof(*s));

    rig_init(&s->rig);
    s->rig.kineto = &opts;
    *state = s;
    if (rig_start(&s->rig) != TP_OK)
        return -1;
    s->service = (struct tp_service){.engine = s->rig.engine,
                                     .limits = s->rig.limits,
                                     .version = "1.2.3"};
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    tp_buf_fini(&s->answer);
    rig_fini(&s->rig);
    test_free(s);
    return 0;
}

/* By their pids; 0 = one that cannot be seen, and calls itself 1. */
static void add(struct scene *s, const int *pids_of, int n)
{
    struct tp_kineto_task task;

    for (int i = 1; i <= n; i++) {
        struct tp_kineto_peer peer = {.pid = pids_of[i - 1], .uid = 7};
        const int32_t pids[] = {1};
        char bytes[KINETO_BYTES_MAX];
        size_t len = kineto_request(bytes, 2, 0, pids, 1);

        peer.address_bytes = (uint8_t)(1 + snprintf(peer.address + 1, 20, "c%d", i));
        tp_engine_kineto_receive(s->rig.engine, &peer, bytes, len, 0, s->rig.now);
    }
    tp_engine_kineto_run(s->rig.engine, s->rig.now);
    while (tp_engine_kineto_next_task(s->rig.engine, &task)) {
        struct tp_kineto_description d = {.rank = -1};

        assert_int_equal(tp_engine_kineto_describe(s->rig.engine, task.target, &d,
                                                   s->rig.now, NULL),
                         TP_OK);
    }
}

static void add_processes(struct scene *s, int n)
{
    static const int pids[] = {101, 102, 103};

    add(s, pids, n);
}

static int call(struct scene *s, const char *message)
{
    int rc;

    s->answer.len = 0;
    rc = tp_dynolog_answer(&s->service, s->rig.now, tp_str_of(message), &s->answer,
                           &s->outcome, &s->rig.err);
    if (rc == TP_OK)
        rc = tp_buf_append(&s->answer, "", 1, NULL);
    return rc;
}

static const char *answer(struct scene *s, const char *message)
{
    assert_int_equal(call(s, message), TP_OK);
    return s->answer.data;
}

/* The trace that the last call has made. */
static void cancel(struct scene *s)
{
    assert_int_equal(
        tp_engine_trace_cancel(s->rig.engine, tp_str_of(s->outcome.trace_id),
                               tp_str_of(""), s->rig.now, NULL, NULL, NULL),
        TP_OK);
}

static void expect_has(struct scene *s, const char *words)
{
    if (strstr(s->answer.data, words) == NULL)
        fail_msg("no %s in %s", words, s->answer.data);
}

static void test_small_calls_are_answered_in_dynologs_words(void **state)
{
    struct scene *s = *state;

    assert_string_equal(answer(s, "{\"fn\":\"getStatus\"}"), "{\"status\":1}");
    assert_string_equal(answer(s, "{\"fn\":\"getVersion\"}"),
                        "{\"version\": \"1.2.3\"}");
    assert_string_equal(answer(s, "{\"fn\":\"dcgmProfResume\"}"), "{\"status\":false}");
    assert_null(s->outcome.action);
}

static void test_what_is_no_call_has_no_answer(void **state)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "{}",
                                      "{\"fn\":1}",
                                      "{\"fn\":\"stop\"}",
                                      "{\"fn\":\"getStatus\"} 1"};
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (answer(s, bad[i])[0] != '\0')
            fail_msg("%s: %s", bad[i], s->answer.data);
        assert_null(s->outcome.action);
    }
}

static void test_a_request_without_processes_makes_nothing(void **state)
{
    struct scene *s = *state;

    answer(s, REQUEST("\"pids\":[0]"));
    expect_has(s, "\"processesMatched\": [], \"eventProfilersTriggered\": [], "
                  "\"activityProfilersTriggered\": []");
    assert_string_equal(s->outcome.trace_id, "");
    assert_string_equal(s->outcome.action, "setKinetOnDemandRequest");
    assert_int_equal(s->outcome.fault, TP_FAULT_NONE);
}

static void test_the_limit_bounds_what_is_triggered_not_what_matches(void **state)
{
    struct scene *s = *state;
    struct tp_trace_view *v;

    add_processes(s, 3);
    answer(s, REQUEST("\"pids\":[0],\"process_limit\":2"));
    expect_has(s, "\"activityProfilersBusy\": 0");
    v = rig_view(&s->rig, s->outcome.trace_id);
    assert_int_equal(v->n_matched, 2);
    assert_int_equal(v->duration_ms, 200);
    assert_string_equal(v->label, "/t.json");
    tp_trace_view_free(v);
}

static void test_pids_select(void **state)
{
    struct scene *s = *state;
    struct tp_trace_view *v;

    add_processes(s, 3);
    answer(s, REQUEST("\"pids\":[102,999]"));
    expect_has(s, "\"processesMatched\": [102]");
    expect_has(s, "\"activityProfilersTriggered\": [102]");
    v = rig_view(&s->rig, s->outcome.trace_id);
    assert_int_equal(v->n_matched, 1);
    tp_trace_view_free(v);
}

static void test_one_that_cannot_be_seen_has_the_pid_that_it_says(void **state)
{
    static char *const dirs[] = {"/"};
    static const int pids[] = {0, 102, 0};
    struct scene *s = *state;

    s->service.log_dirs = dirs;
    s->service.n_log_dirs = 1;
    add(s, pids, 3);
    answer(s, REQUEST("\"pids\":[1]"));
    expect_has(s, "\"processesMatched\": [1, 1], ");
    expect_has(s, "\"files\": [\"/t_c1-1.json\", \"/t_c1-3.json\"]");
}

static void test_a_job_with_a_trace_is_busy(void **state)
{
    struct scene *s = *state;

    add_processes(s, 2);
    answer(s, REQUEST("\"pids\":[101]"));
    answer(s, REQUEST("\"pids\":[]"));
    expect_has(s, "\"activityProfilersTriggered\": []");
    expect_has(s, "\"activityProfilersBusy\": 2");
    assert_int_equal(s->outcome.fault, TP_FAULT_TRACE_ACTIVE);
    assert_string_equal(s->outcome.trace_id, "");
}

static void test_a_list_of_types_in_any_case_is_a_filter(void **state)
{
    struct scene *s = *state;
    struct tp_trace_view *v;

    add_processes(s, 1);
    answer(s, "{\"fn\":\"setKinetOnDemandRequest\",\"pids\":[],\"config\":"
              "\"ACTIVITY_TYPES=CPU_OP, kernel\"}");
    v = rig_view(&s->rig, s->outcome.trace_id);
    assert_int_equal(v->n_types, 2);
    tp_trace_view_free(v);
    answer(s, "{\"fn\":\"setKinetOnDemandRequest\",\"pids\":[],\"config\":"
              "\"ACTIVITY_TYPES=cpu_op,,a_type_of_a_name_that_is_much_too_long\"}");
    expect_has(s, "{\"status\": \"failed: ");
}

/* The answer to a request of `good` types that exist, and then one that does not. */
static void ask_for_types(struct scene *s, int good)
{
    char message[2048];
    int n = snprintf(message, sizeof(message),
                     "{\"fn\":\"setKinetOnDemandRequest\",\"pids\":[],\"config\":"
                     "\"ACTIVITY_TYPES=");

    for (int i = 0; i < good; i++)
        n += snprintf(message + n, sizeof(message) - (size_t)n, "cpu_op,");
    snprintf(message + n, sizeof(message) - (size_t)n, "bogus\"}");
    answer(s, message);
}

static void test_each_type_counts_and_too_many_are_refused(void **state)
{
    struct scene *s = *state;

    add_processes(s, 1);
    ask_for_types(s, 63);
    expect_has(s, "{\"status\": \"failed: ");
    expect_has(s, "bogus");
    ask_for_types(s, 64);
    expect_has(s, "failed: ACTIVITY_TYPES names 65 types, and 64 are the most");
    assert_int_equal(s->outcome.fault, TP_FAULT_INVALID_FIELD);
    assert_string_equal(s->outcome.trace_id, "");
}

static void test_a_start_that_has_passed_is_told(void **state)
{
    struct scene *s = *state;

    add_processes(s, 1);
    answer(s, "{\"fn\":\"setKinetOnDemandRequest\",\"pids\":[],\"config\":"
              "\"PROFILE_START_TIME=1\"}");
    expect_has(s, "\"start.at has passed: the trace starts when its "
                  "Kineto processes can, in ");
    assert_null(strstr(s->answer.data, "ms later"));
    assert_null(strstr(s->answer.data, "at once"));
}

/* The files that the answer promises are those that each process's folder is told. */
static void test_files_are_promised_below_the_directories_only(void **state)
{
    static char *const dirs[] = {"/elsewhere", "/"};
    struct scene *s = *state;
    struct tp_kineto_task task;
    int n = 0;

    add_processes(s, 2);
    answer(s, REQUEST("\"pids\":[101]"));
    expect_has(s, "no file will be at '/t.json': the service has no dynolog-log-dir; "
                  "GET /traces/");
    assert_null(strstr(s->answer.data, "\"files\""));
    cancel(s);
    s->service.log_dirs = dirs;
    s->service.n_log_dirs = 1;
    answer(s, REQUEST("\"pids\":[101]"));
    expect_has(s, "'/t.json': the log file is not below a dynolog-log-dir; ");
    cancel(s);
    s->service.n_log_dirs = 2;
    answer(s, REQUEST("\"pids\":[101,102]"));
    expect_has(s, "\"files\": [\"/t_101.json\", \"/t_102.json\"], \"warnings\": []");
    while (tp_engine_kineto_next_task(s->rig.engine, &task)) {
        assert_int_equal(task.kind, TP_KINETO_TASK_FOLDER);
        n += strcmp(task.log_file, "/t_101.json") == 0;
        n += 2 * (strcmp(task.log_file, "/t_102.json") == 0);
    }
    assert_int_equal(n, 3);
}

static void test_each_allocation_failure_is_an_answer_or_an_error(void **state)
{
    static char *const dirs[] = {"/"};
    struct scene *s = *state;

    s->service.log_dirs = dirs;
    s->service.n_log_dirs = 1;
    add_processes(s, 2);
    for (int n = 0;; n++) {
        char id[TP_TRACE_ID_BYTES];
        bool has_failed;
        int rc;

        tp_buf_fini(&s->answer);
        fault_arm(n);
        rc = call(s, REQUEST("\"pids\":[101,102]"));
        has_failed = fault_disarm();
        memcpy(id, s->outcome.trace_id, sizeof(id));
        if (!has_failed) {
            assert_int_equal(rc, TP_OK);
            assert_string_not_equal(id, "");
            return;
        }
        if (rc == TP_OK && s->answer.data[0] != '\0' && id[0] == '\0')
            expect_has(s, "failed: ");
        if (id[0] != '\0') /* made, but not said: the next one must not find it */
            assert_int_equal(tp_engine_trace_cancel(s->rig.engine, tp_str_of(id),
                                                    tp_str_of(""), s->rig.now, NULL,
                                                    NULL, NULL),
                             TP_OK);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_small_calls_are_answered_in_dynologs_words),
        TEST(test_what_is_no_call_has_no_answer),
        TEST(test_a_request_without_processes_makes_nothing),
        TEST(test_the_limit_bounds_what_is_triggered_not_what_matches),
        TEST(test_pids_select),
        TEST(test_one_that_cannot_be_seen_has_the_pid_that_it_says),
        TEST(test_a_job_with_a_trace_is_busy),
        TEST(test_a_list_of_types_in_any_case_is_a_filter),
        TEST(test_each_type_counts_and_too_many_are_refused),
        TEST(test_a_start_that_has_passed_is_told),
        TEST(test_files_are_promised_below_the_directories_only),
        TEST(test_each_allocation_failure_is_an_answer_or_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
