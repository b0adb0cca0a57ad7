/*
 * test_engine_kineto.c - stories of PyTorch processes, a virtual clock, and an engine:
 * who takes part, what each is told and when, and what becomes of those that do not do
 * as they were told. The driver of files is played by the test.
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
#include "engine/kineto_model.h"
#include "engine/kineto_options.h"
#include "support/fault.h"
#include "support/kineto_rig.h"

static void test_a_process_that_asks_is_a_producer(void **state)
{
    struct rig *r = *state;
    const struct tp_producer_query all = {0};
    struct tp_producer_list *list;

    ask_and_drive(r, 1, IDLE);
    assert_int_equal(
        tp_engine_producers_list(r->engine, &all, r->now, &list, NULL, NULL), TP_OK);
    assert_int_equal(list->n, 1);
    assert_string_equal(list->items[0].kind, "kineto");
    assert_string_equal(list->items[0].name, "kineto-101");
    assert_string_equal(list->items[0].state, "idle");
    assert_int_equal(list->items[0].rank, 1);
    assert_int_equal(list->items[0].world_size, 8);
    tp_producer_list_free(list);
}

static void test_all_start_at_the_time_that_the_slowest_can_keep(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES], first[8192];
    uint64_t start_ms;

    ask_and_drive(r, 1, IDLE);
    wait(r, 2 * RIG_S);
    ask_and_drive(r, 2, IDLE);
    wait(r, 1 * RIG_S);
    create(r, id);
    /* They ask in 2 and in 4 s; 1.6 s more keep away from their ticks. */
    wait(r, 2 * RIG_S);
    snprintf(first, sizeof(first), "%s", ask(r, 1, IDLE));
    start_ms = number_in(first, "PROFILE_START_TIME=");
    assert_int_equal(start_ms, (r->now.wall_ns + 3600 * RIG_MS) / RIG_MS);
    assert_int_equal(number_in(first, "ACTIVITIES_DURATION_MSECS="), 1000);
    assert_non_null(strstr(first, "REQUEST_TRACE_ID="));
    assert_non_null(strstr(first, "ACTIVITIES_LOG_FILE=/tmp/tp/"));
    drive(r);
    expect(r, id, 1, "armed", "");
    expect(r, id, 2, "waiting", "");
    wait(r, 2 * RIG_S);
    assert_int_equal(number_in(ask(r, 2, IDLE), "PROFILE_START_TIME="), start_ms);
    drive(r);
    rig_expect_state(r, id, "prepared");
    wait(r, 1600 * RIG_MS - 50 * RIG_MS);
    rig_expect_state(r, id, "recording");
}

static void test_a_trace_ends_with_its_files(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    give_order(r, id, IDLE);
    report(r, id, 1, TP_KINETO_FILE_BEGUN, NULL);
    wait(r, 2 * RIG_S + 100 * RIG_MS);
    expect(r, id, 1, "recording", "");
    wait(r, 1 * RIG_S);
    wait(r, 1 * RIG_S);
    rig_expect_state(r, id, "stopping");
    expect(r, id, 1, "flushing", "collecting");
    for (int i = 0; i < 40; i++) { /* a large one */
        wait(r, 5 * RIG_S);
        ask_and_drive(r, 1, BUSY);
    }
    rig_expect_state(r, id, "stopping");
    bring_file(r, id, 1);
    rig_expect_outcome(r, id, "complete", "");
    expect(r, id, 1, "done", "");
}

static void test_a_busy_process_is_not_matched_and_says_why(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, BUSY);
    create(r, id);
    expect(r, id, 1, "unmatched", "busy: the application is profiling itself");
}

static void test_a_process_of_another_user_is_refused(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_as(r, 1, 8, IDLE);
    drive(r);
    create(r, id);
    expect(r, id, 1, "unmatched",
           "not allowed: it belongs to user 8 (kineto-allow-uid)");
    wait(r, 5 * RIG_S);
    assert_string_equal(ask_as(r, 1, 8, IDLE), "");
}

/* Whether a trace that needs all can be had, of the processes of users 7 and 8. */
static int dry_run_of_all(struct rig *r)
{
    const struct tp_trace_request all = {.job = rig_str("default"),
                                         .require = TP_REQUIRE_ALL,
                                         .dry_run = true};
    struct tp_trace_view *v = NULL;
    int rc = tp_engine_trace_create(r->engine, &all, r->now, &v, NULL, &r->err);

    tp_trace_view_free(v);
    return rc;
}

static void test_a_stranger_does_not_count_for_all(void **state)
{
    struct rig *r = *state;

    ask_as(r, 2, 8, IDLE);
    drive(r);
    assert_int_equal(dry_run_of_all(r), TP_ESTATE); /* nobody is not all */
    ask_and_drive(r, 1, IDLE);
    assert_int_equal(dry_run_of_all(r), TP_OK);
    wait(r, 31 * RIG_S); /* both are silent: the one who may be traced is missed */
    ask_and_drive(r, 1, IDLE);
    assert_int_equal(dry_run_of_all(r), TP_OK);
}

/* Nor is anything left of it that would, before and after it asks again. */
static void test_a_stranger_does_not_count_for_all_after_a_restart(void **state)
{
    struct rig *r = *state;

    ask_and_drive(r, 1, IDLE);
    ask_as(r, 2, 8, IDLE);
    drive(r);
    assert_int_equal(rig_restart(r), TP_OK);
    ask_and_drive(r, 1, IDLE);
    assert_int_equal(dry_run_of_all(r), TP_OK);
    ask_as(r, 2, 8, IDLE);
    drive(r);
    assert_int_equal(dry_run_of_all(r), TP_OK);
}

/* Too many of them are not even listed, and one who may be traced always is. */
static void test_strangers_take_no_place_of_others(void **state)
{
    const struct tp_producer_query all = {.limit = 1000};
    struct rig *r = *state;
    struct tp_producer_list *list;

    for (unsigned n = 2; n < 300; n++) {
        ask_as(r, n, 8, IDLE);
        drive(r);
    }
    ask_and_drive(r, 1, IDLE);
    assert_int_equal(
        tp_engine_producers_list(r->engine, &all, r->now, &list, NULL, NULL), TP_OK);
    assert_int_equal(list->n, TP_KINETO_STRANGERS_MAX + 1);
    tp_producer_list_free(list);
    assert_int_equal(dry_run_of_all(r), TP_OK);
}

static void test_one_that_asks_too_late_is_left_out(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    create(r, id);
    wait(r, 6 * RIG_S);
    assert_string_equal(ask(r, 1, IDLE), "");
    drive(r);
    expect(r, id, 1, "refused", "it asked too late to start with the others");
}

static void test_one_that_is_idle_after_its_end_has_no_file(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    give_order(r, id, IDLE);
    wait(r, 5 * RIG_S);
    ask_and_drive(r, 1, IDLE);
    expect(r, id, 1, "armed", "");
    wait(r, 4 * RIG_S);
    expect(r, id, 1, "lost", "no file: the process dropped the request");
    rig_expect_outcome(r, id, "empty", NULL);
}

static void test_one_that_ends_is_lost(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    give_order(r, id, IDLE);
    report(r, id, 1, TP_KINETO_PROCESS_ENDED, NULL);
    expect(r, id, 1, "lost", "process ended");
}

static void test_what_the_driver_cannot_do_is_told(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    struct tp_kineto_task task;
    const struct tp_trace_request request = {.stop_duration_ms = 1000};

    ask_and_drive(r, 1, IDLE);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    assert_true(tp_engine_kineto_next_task(r->engine, &task));
    assert_int_equal(task.kind, TP_KINETO_TASK_FOLDER);
    assert_int_equal(task.uid, 7);
    assert_true(tp_engine_kineto_is_wanted(r->engine, id, task.producer_id));
    tp_engine_kineto_report(r->engine, id, task.producer_id, TP_KINETO_FOLDER_FAILED,
                            "no file: the disk is full", r->now);
    expect(r, id, 1, "refused", "no file: the disk is full");
    assert_false(tp_engine_kineto_is_wanted(r->engine, id, task.producer_id));
    wait(r, 5 * RIG_S);
    assert_string_equal(ask(r, 1, IDLE), "");
}

static void test_a_cancelled_trace_is_not_delivered(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    create(r, id);
    assert_int_equal(tp_engine_trace_cancel(r->engine, rig_str(id), rig_str(""), r->now,
                                            NULL, NULL, NULL),
                     TP_OK);
    wait(r, 5 * RIG_S);
    assert_string_equal(ask(r, 1, IDLE), "");
}

/* The next task to make a folder says where its file goes, too. */
static void expect_log_file(struct rig *r, const char *path)
{
    struct tp_kineto_task task;

    do {
        tp_engine_kineto_run(r->engine, r->now);
        assert_true(tp_engine_kineto_next_task(r->engine, &task));
        if (task.kind == TP_KINETO_TASK_DESCRIBE)
            tp_engine_kineto_describe(r->engine, task.target,
                                      &(struct tp_kineto_description){.rank = -1},
                                      r->now, NULL);
    } while (task.kind != TP_KINETO_TASK_FOLDER);
    assert_string_equal(task.log_file, path);
}

static void test_a_restart_knows_where_files_go_too(void **state)
{
    const struct tp_trace_request request = {.job = rig_str("default"),
                                             .log_file = rig_str("/x/t.json")};
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    expect_log_file(r, "/x/t_101.json");
    assert_int_equal(rig_restart(r), TP_OK);
    ask(r, 1, IDLE);
    expect_log_file(r, "/x/t_101.json");
}

/* The key makes the process one, also in the rows of a trace that has ended; its rank
 * lets it be selected. */
static void test_a_native_producer_lends_its_rank_by_key(void **state)
{
    struct rig *r = *state;
    const uint32_t ranks[] = {6};
    const struct tp_trace_request request = {.job = rig_str("default"),
                                             .ranks = ranks,
                                             .n_ranks = 1};
    const struct tp_producer_request native = {.job = rig_str("default"),
                                               .name = rig_str("n"),
                                               .kind = rig_str("native"),
                                               .rank = 6,
                                               .world_size = 7,
                                               .pid = 1,
                                               .process = rig_str("boot/1/1/5")};
    const struct tp_kineto_description d = {.rank = -1,
                                            .process = rig_str("boot/1/1/5")};
    struct tp_producer_list *list;
    struct tp_kineto_task task;
    struct tp_trace_view *v;
    char id[TP_TRACE_ID_BYTES];

    ask(r, 1, IDLE);
    tp_engine_kineto_run(r->engine, r->now);
    assert_true(tp_engine_kineto_next_task(r->engine, &task));
    assert_int_equal(
        tp_engine_kineto_describe(r->engine, task.target, &d, r->now, NULL), TP_OK);
    assert_int_equal(tp_engine_producer_register(r->engine, &native, r->now, &list,
                                                 NULL, NULL),
                     TP_OK);
    tp_producer_list_free(list);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    v = rig_view(r, id);
    assert_int_equal(v->n_matched, 2);
    tp_trace_view_free(v);
    assert_int_equal(rig_restart(r), TP_OK);
    v = rig_view(r, id);
    assert_int_equal(v->n_members, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(v->members[i].who.rank, 6);
        assert_int_equal(v->members[i].who.world_size, 7);
        assert_string_equal(v->members[i].who.joined_with, v->members[1 - i].who.id);
    }
    tp_trace_view_free(v);
}

static void test_processes_that_are_gone_are_forgotten(void **state)
{
    struct rig *r = *state;
    struct tp_engine_stats stats;

    ask_and_drive(r, 1, IDLE);
    wait(r, 31 * RIG_S);
    wait(r, 31 * RIG_S);
    tp_engine_stats(r->engine, &stats);
    assert_int_equal(stats.producers, 0);
}

static void test_options_are_refused_by_name(void **state)
{
    static const struct {
        const char *json, *field;
    } cases[] = {{"{\"stack\":true}", "kineto.stack"},
                 {"{\"with_stack\":1}", "kineto.with_stack"},
                 {"{\"warmup_ms\":-1}", "kineto.warmup_ms"},
                 {"{\"warmup_ms\":600001}", "kineto.warmup_ms"},
                 {"{\"iterations\":2147483648}", "kineto.iterations"},
                 {"{\"iteration_roundup\":2}", "kineto.iteration_roundup"},
                 {"[]", "kineto"}};
    struct tp_kineto_options o = {.warmup_ms = 1};
    struct tp_problem problem;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tp_problem_clear(&problem);
        if (tp_kineto_options_read(rig_str(cases[i].json), &o, &problem, NULL) !=
                TP_EINVAL ||
            strcmp(problem.field, cases[i].field) != 0)
            fail_msg("%s: %s", cases[i].json, problem.field);
    }
    assert_int_equal(o.warmup_ms, 1);
    assert_int_equal(tp_kineto_options_read(rig_str("{\"warmup_ms\":1001}"), &o,
                                            &problem, NULL),
                     TP_OK);
    assert_int_equal(o.warmup_ms, 2000);
    assert_int_equal(tp_kineto_options_read(rig_str(""), &o, &problem, NULL), TP_OK);
    assert_int_equal(o.warmup_ms, TP_KINETO_WARMUP_MS);
}

/* Whatever allocation fails, the process is answered, and with its next requests it is
 * traced. */
static void test_a_process_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        char id[TP_TRACE_ID_BYTES];
        struct rig *r;
        bool fired;

        set_up((void **)&r);
        fault_arm(n);
        ask_and_drive(r, 1, IDLE);
        fired = fault_disarm();
        wait(r, 5 * RIG_S);
        ask_and_drive(r, 1, IDLE);
        create(r, id);
        wait(r, 5 * RIG_S);
        if (ask(r, 1, IDLE)[0] == '\0')
            fail_msg("allocation %d", n);
        tear_down((void **)&r);
        if (!fired)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_process_that_asks_is_a_producer),
        TEST(test_all_start_at_the_time_that_the_slowest_can_keep),
        TEST(test_a_trace_ends_with_its_files),
        TEST(test_a_busy_process_is_not_matched_and_says_why),
        TEST(test_a_process_of_another_user_is_refused),
        TEST(test_a_stranger_does_not_count_for_all),
        TEST(test_a_stranger_does_not_count_for_all_after_a_restart),
        TEST(test_strangers_take_no_place_of_others),
        TEST(test_one_that_asks_too_late_is_left_out),
        TEST(test_one_that_is_idle_after_its_end_has_no_file),
        TEST(test_one_that_ends_is_lost),
        TEST(test_what_the_driver_cannot_do_is_told),
        TEST(test_a_cancelled_trace_is_not_delivered),
        TEST(test_a_restart_knows_where_files_go_too),
        TEST(test_a_native_producer_lends_its_rank_by_key),
        TEST(test_processes_that_are_gone_are_forgotten),
        cmocka_unit_test(test_options_are_refused_by_name),
        cmocka_unit_test(test_a_process_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
