/*
 * test_engine_kineto_arm.c - stories of what PyTorch processes are told, when, and what
 * is said of requests that they cannot fulfil.
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
#include "support/kineto_rig.h"

/* What it was told it keeps: until shortly before its start it is told nothing. */
static void test_a_start_that_is_far_away_is_told_late(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.start = TP_START_AT,
                                       .start_wall_ns = r->now.wall_ns + 600 * RIG_S,
                                       .stop_duration_ms = 1000,
                                       .kineto_json = rig_str("{\"warmup_ms\":1000}")};
    char id[TP_TRACE_ID_BYTES];
    unsigned at_s = 0;

    ask_and_drive(r, 1, IDLE);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    drive(r);
    for (; at_s < 585; at_s += 5) {
        if (ask(r, 1, IDLE)[0] != '\0')
            fail_msg("told %u s after the request", at_s);
        wait(r, 5 * RIG_S);
    }
    expect(r, id, 1, "waiting", "");
    wait(r, 5 * RIG_S); /* 13 s before the start it may be told, and asks */
    assert_int_equal(number_in(ask(r, 1, IDLE), "PROFILE_START_TIME=") / 1000,
                     (request.start_wall_ns - RIG_S) / RIG_S);
    drive(r);
    expect(r, id, 1, "armed", "");
}

/* A start that was asked for is kept. One whose ticks are at it begins sooner, with all
 * that was asked for; one that is away from them begins then. */
static void test_a_start_that_was_asked_for_is_away_from_ticks(void **state)
{
    struct rig *r = *state;
    uint64_t start_ns = (r->now.wall_ns / RIG_S + 60) * RIG_S;
    const struct tp_trace_request request = {.start = TP_START_AT,
                                             .start_wall_ns = start_ns,
                                             .stop_duration_ms = 1000,
                                             .kineto_json =
                                                 rig_str("{\"warmup_ms\":1000}")};
    char id[TP_TRACE_ID_BYTES], text[8192];
    struct tp_trace_view *v;
    const char *told;

    ask_and_drive(r, 1, IDLE);
    wait(r, 500 * RIG_MS);
    ask_and_drive(r, 2, IDLE);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    drive(r);
    wait(r, 4500 * RIG_MS);
    for (int i = 0; i < 9; i++) {
        ask(r, 1, IDLE);
        wait(r, 500 * RIG_MS);
        ask(r, 2, IDLE);
        wait(r, 4500 * RIG_MS);
    }
    snprintf(text, sizeof(text), "%s", ask(r, 1, IDLE));
    assert_int_equal(number_in(text, "PROFILE_START_TIME="), start_ns / RIG_MS - 200);
    assert_int_equal(number_in(text, "ACTIVITIES_DURATION_MSECS="), 1200);
    wait(r, 500 * RIG_MS);
    told = ask(r, 2, IDLE);
    assert_int_equal(number_in(told, "PROFILE_START_TIME="), start_ns / RIG_MS);
    assert_int_equal(number_in(told, "ACTIVITIES_DURATION_MSECS="), 1000);
    v = rig_view(r, id);
    assert_int_equal(v->start_at_wall_ns, start_ns);
    tp_trace_view_free(v);
}

/* Process 1, which asks 5 s after this and begins its ticks 410 ms later. */
static void give_ticks(struct rig *r)
{
    char id[TP_TRACE_ID_BYTES];

    give_order(r, id, IDLE);
    report(r, id, 1, TP_KINETO_FILE_REFUSED, "no file: so that its ticks stay");
    wait(r, 2 * RIG_S);
    wait(r, 1 * RIG_S);
    rig_expect_outcome(r, id, "empty", NULL);
    wait(r, 2 * RIG_S);
    ask_and_drive(r, 1, BUSY);
    wait(r, 4340 * RIG_MS);
    ask_and_drive(r, 2, IDLE);
    wait(r, 200 * RIG_MS);
    ask_and_drive(r, 3, IDLE);
    wait(r, 50 * RIG_MS);
    ask_and_drive(r, 1, IDLE);
}

/* The ticks of three leave no good start, and the one that was asked for is as near as
 * can be: who has a tick at it is still told at its next request, a moment late. */
static void test_a_start_that_is_near_is_not_moved_out_of_reach(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.start = TP_START_AT,
                                       .stop_duration_ms = 1000,
                                       .kineto_json = rig_str("{\"warmup_ms\":0}")};
    char id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *v;

    give_ticks(r);
    request.start_wall_ns = r->now.wall_ns + 6603 * RIG_MS;
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    v = rig_view(r, id);
    assert_int_equal(v->start_at_wall_ns, request.start_wall_ns);
    tp_trace_view_free(v);
    drive(r);
    wait(r, 5020 * RIG_MS);
    assert_int_equal(number_in(ask(r, 1, IDLE), "PROFILE_START_TIME="),
                     request.start_wall_ns / RIG_MS);
    drive(r);
    expect(r, id, 1, "armed", "");
}

static void test_one_whose_start_was_far_away_and_cancelled_is_free(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {
        .start = TP_START_AT, .start_wall_ns = r->now.wall_ns + 600 * RIG_S};
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    drive(r);
    wait(r, 5 * RIG_S);
    ask_and_drive(r, 1, IDLE);
    assert_int_equal(tp_engine_trace_cancel(r->engine, rig_str(id), rig_str(""), r->now,
                                            NULL, NULL, NULL),
                     TP_OK);
    create(r, id);
    expect(r, id, 1, "waiting", "");
    wait(r, 5 * RIG_S);
    assert_int_not_equal(ask(r, 1, IDLE)[0], '\0');
}

/* A look at process 1, the first that asked, some time after its request. */
static void look(struct rig *r, uint64_t unread_bytes)
{
    wait(r, 300 * RIG_MS);
    tp_engine_kineto_unread(r->engine, 1, unread_bytes, r->now);
    drive(r);
}

/* Process 1 asks, and it is put back in step by no answer. */
static void ask_unanswered(struct rig *r)
{
    struct tp_kineto_peer peer = {.pid = 101, .uid = 7, .address_bytes = 3};
    const int32_t pids[] = {1};
    char bytes[KINETO_BYTES_MAX];
    size_t len = kineto_request(bytes, IDLE, 0, pids, 1);

    memcpy(peer.address + 1, "c1", 2);
    assert_int_equal(
        tp_engine_kineto_receive(r->engine, &peer, bytes, len, 0, r->now).bytes.len, 0);
    drive(r);
}

#define LAGGING \
    "lagging: it reads its answers a request late, and is told when it is in step"

static void test_one_that_lags_is_planned_for_and_told_a_request_later(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    uint64_t asked_ns = r->now.wall_ns;
    struct tp_trace_view *v;

    ask_and_drive(r, 1, IDLE);
    look(r, 768);
    create(r, id);
    expect(r, id, 1, "waiting", LAGGING);
    v = rig_view(r, id);
    assert_true(v->start_at_wall_ns > asked_ns + 11 * RIG_S &&
                v->start_at_wall_ns <= asked_ns + 12 * RIG_S + RIG_MS);
    wait(r, 4700 * RIG_MS);
    ask_unanswered(r);
    expect(r, id, 1, "waiting", LAGGING);
    look(r, 0);
    expect(r, id, 1, "waiting", "");
    wait(r, 4700 * RIG_MS);
    assert_int_equal(number_in(ask(r, 1, IDLE), "PROFILE_START_TIME="),
                     v->start_at_wall_ns / RIG_MS);
    tp_trace_view_free(v);
    drive(r);
    expect(r, id, 1, "armed", "");
    wait(r, 2 * RIG_S);
    bring_file(r, id, 1);
    wait(r, 1 * RIG_S);
    rig_expect_outcome(r, id, "complete", "");
}

static void test_one_that_falls_behind_after_the_plan_says_that_it_lagged(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    create(r, id);
    look(r, 768);
    expect(r, id, 1, "waiting", LAGGING);
    wait(r, 4700 * RIG_MS);
    ask_unanswered(r);
    look(r, 0);
    wait(r, 2 * RIG_S);
    expect(r, id, 1, "refused",
           "it lagged and was in step too late to start with the others");
}

/* As a process is that waited for the service until its last retry: it asks for the
 * first time 5.1 s after the restart, reads that answer with its second request, and
 * takes its order with the third. */
static void test_one_that_a_restart_leaves_behind_is_told_in_time(void **state)
{
    /* Until the restart: the start is too near then for three requests, or even two. */
    static const uint64_t before_ns[] = {2 * RIG_S, 30 * RIG_S};
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    for (size_t i = 0; i < 2; i++) {
        struct tp_trace_request request = {.start = TP_START_AT,
                                           .start_wall_ns = r->now.wall_ns + 15 * RIG_S,
                                           .stop_duration_ms = 1000,
                                           .kineto_json = rig_str("{\"warmup_ms\":0}")};

        ask_and_drive(r, 1, IDLE);
        assert_int_equal(rig_create_from(r, &request, id), TP_OK);
        drive(r);
        r->now.mono_ns += before_ns[i];
        r->now.wall_ns += before_ns[i];
        assert_int_equal(rig_restart(r), TP_OK);
        drive(r);
        expect(r, id, 1, "waiting", "the service restarted: its start was moved");
        wait(r, 5120 * RIG_MS);
        ask_and_drive(r, 1, IDLE);
        look(r, 768);
        expect(r, id, 1, "waiting", LAGGING);
        wait(r, 4700 * RIG_MS);
        ask_unanswered(r);
        look(r, 0);
        wait(r, 4700 * RIG_MS);
        assert_true(number_in(ask(r, 1, IDLE), "PROFILE_START_TIME=") >=
                    (r->now.wall_ns + 1200 * RIG_MS) / RIG_MS);
        drive(r);
        expect(r, id, 1, "armed", "");
        wait(r, 3 * RIG_S);
        report(r, id, 1, TP_KINETO_FILE_BEGUN, NULL);
        wait(r, 1 * RIG_S);
        bring_file(r, id, 1);
        wait(r, 1 * RIG_S);
        rig_expect_outcome(r, id, "complete", "");
    }
}

/* Likewise, and it misses a request besides. Whether it was told before the kill is not
 * known; that it has no file is since it lagged. */
static void test_one_that_lags_from_a_restart_to_its_start_says_so(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    create(r, id);
    wait(r, 4 * RIG_S);
    assert_int_equal(rig_restart(r), TP_OK);
    drive(r);
    wait(r, 5120 * RIG_MS);
    ask_and_drive(r, 1, IDLE);
    look(r, 768);
    wait(r, 4700 * RIG_MS);
    ask_unanswered(r);
    look(r, 0);
    for (int i = 0; i < 2; i++) {
        wait(r, 9700 * RIG_MS);
        assert_string_equal(ask(r, 1, IDLE), "");
        drive(r);
    }
    wait(r, 4 * RIG_S);
    expect(r, id, 1, "lost",
           "no file: the service restarted, and it lagged and was in step too late to "
           "start");
    rig_expect_outcome(r, id, "empty", NULL);
}

/* It reads its order with its next request: in time for a start that is far enough. */
static void test_an_order_that_is_read_a_request_late_can_be_in_time(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.start = TP_START_AT,
                                       .start_wall_ns = r->now.wall_ns + 14 * RIG_S,
                                       .stop_duration_ms = 1000,
                                       .kineto_json = rig_str("{\"warmup_ms\":0}")};
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    drive(r);
    wait(r, 5 * RIG_S);
    assert_int_not_equal(ask(r, 1, IDLE)[0], '\0');
    look(r, 768);
    expect(r, id, 1, "armed", "");
    wait(r, 4700 * RIG_MS);
    ask_unanswered(r);
    look(r, 0);
    expect(r, id, 1, "armed", "");
    wait(r, 5 * RIG_S);
    bring_file(r, id, 1);
    wait(r, 1 * RIG_S);
    rig_expect_outcome(r, id, "complete", "");
}

static void test_an_order_that_is_read_a_request_late_can_be_too_late(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    give_order(r, id, IDLE);
    look(r, 768);
    expect(r, id, 1, "armed", "");
    wait(r, 4700 * RIG_MS);
    ask_unanswered(r);
    expect(r, id, 1, "refused", "it read its request too late to start in time");
}

/* A request of one process, from the socket of that number. */
static const char *ask_from(struct rig *r, unsigned socket)
{
    struct tp_kineto_peer peer = {.pid = 101, .uid = 7, .address_bytes = 3};
    const int32_t pids[] = {1};
    static char text[8192];
    char bytes[KINETO_BYTES_MAX];
    size_t len = kineto_request(bytes, IDLE, 0, pids, 1);
    struct tp_kineto_reply reply;

    memcpy(peer.address + 1, socket == 0 ? "s0" : "s1", 2);
    reply = tp_engine_kineto_receive(r->engine, &peer, bytes, len, 0, r->now);
    snprintf(text, sizeof(text), "%.*s", (int)reply.bytes.len - 40,
             reply.bytes.ptr + 40);
    drive(r);
    return text;
}

static void test_a_process_with_two_sockets_is_told_by_one(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    unsigned n_orders = 0;

    for (unsigned i = 0; i < 4; i++) {
        ask_from(r, i % 2);
        wait(r, 2500 * RIG_MS);
    }
    create(r, id);
    for (unsigned i = 0; i < 4 && n_orders == 0; i++) {
        n_orders += ask_from(r, i % 2)[0] != '\0';
        wait(r, 2500 * RIG_MS);
    }
    assert_int_equal(n_orders, 1);
    expect(r, id, 1, "armed", "");
}

/* The first is closed: after two intervals without a word the other one is told. */
static void test_the_second_socket_takes_over_from_one_that_is_silent(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_from(r, 0);
    for (unsigned i = 0; i < 4; i++) {
        wait(r, 5 * RIG_S);
        ask_from(r, 1);
    }
    create(r, id);
    wait(r, 5 * RIG_S);
    assert_int_not_equal(ask_from(r, 1)[0], '\0');
}

/* A trace whose filter has one entry, of a process that asks with that type; its text
 * goes to out. */
static void order_with(struct rig *r, enum tp_filter_list list, const char *entry,
                       int32_t type, char *out)
{
    const struct tp_str item = rig_str(entry);
    struct tp_trace_request request = {.stop_duration_ms = 1000,
                                       .kineto_json = rig_str("{\"warmup_ms\":0}")};
    char id[TP_TRACE_ID_BYTES];

    request.filter.lists[list].items = &item;
    request.filter.lists[list].n = 1;
    ask_and_drive(r, 1, type);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    drive(r);
    wait(r, 5 * RIG_S);
    snprintf(out, 8192, "%s", ask(r, 1, type));
}

/* And never more than it records by itself. */
static void test_what_is_excluded_is_taken_from_the_defaults(void **state)
{
    struct rig *r = *state;
    char text[8192];

    order_with(r, TP_FILTER_EXCLUDE, "cpu_op", IDLE, text);
    assert_non_null(
        strstr(text, "ACTIVITY_TYPES=user_annotation,gpu_user_annotation,"));
    assert_non_null(strstr(text, ",cuda_event,mtia_counters\n"));
}

static void test_a_type_that_not_all_know_is_sent_when_it_is_named(void **state)
{
    struct rig *r = *state;
    char text[8192];

    order_with(r, TP_FILTER_INCLUDE, "hardware_counters", IDLE, text);
    assert_non_null(strstr(text, "ACTIVITY_TYPES=hardware_counters\n"));
}

static void test_a_type_that_not_all_know_is_not_sent_for_a_pattern(void **state)
{
    struct rig *r = *state;
    char text[8192];

    order_with(r, TP_FILTER_INCLUDE, "[hx]*", IDLE, text);
    assert_non_null(
        strstr(text, "ACTIVITY_TYPES=hpu_op,xpu_runtime,xpu_driver,xpu_scope_profiler,"
                     "xpu_sync\n"));
}

/* Fail unless a warning of the trace begins so. */
static void expect_warning(struct rig *r, const char *id, const char *begin)
{
    struct tp_trace_view *v = rig_view(r, id);
    bool has_it = false;

    for (size_t i = 0; i < v->n_warnings; i++)
        has_it = has_it || strncmp(v->warnings[i], begin, strlen(begin)) == 0;
    tp_trace_view_free(v);
    if (!has_it)
        fail_msg("no warning '%s'", begin);
}

static void test_steps_of_kineto_processes_alone_end_with_their_files(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {
        .stop_steps = 3, .kineto_json = rig_str("{\"warmup_ms\":0}")};
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    drive(r);
    expect_warning(r, id, "stop.steps is not for Kineto processes");
    wait(r, 5 * RIG_S);
    assert_int_equal(number_in(ask(r, 1, IDLE), "ACTIVITIES_DURATION_MSECS="), 500);
    drive(r);
    wait(r, 3 * RIG_S);
    bring_file(r, id, 1);
    rig_expect_outcome(r, id, "complete", "");
}

static void test_what_a_trace_ends_before_is_said(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {.stop_duration_ms = 100,
                                             .stop_max_bytes = 100000,
                                             .kineto_json =
                                                 rig_str("{\"iterations\":2}")};
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    drive(r);
    expect_warning(r, id, "stop.duration_ms ends the trace even when");
    expect_warning(r, id, "stop.max_bytes: the file of a Kineto process");
    wait(r, 1 * RIG_S);
    expect(r, id, 1, "refused", "too late: the trace ended before it asked");
    wait(r, 4 * RIG_S);
    assert_string_equal(ask(r, 1, IDLE), "");
}

static void test_a_start_by_step_of_kineto_processes_alone_is_warned_of(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {.start = TP_START_STEP, .start_step = 4};
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    expect_warning(r, id, "start.step is not for Kineto processes");
}

static bool nobody_is_there(int32_t pid)
{
    assert_int_equal(pid, 101);
    return false;
}

static void test_one_that_has_ended_is_not_matched(void **state)
{
    struct rig *r = *state;
    struct tp_kineto_opts ended = opts;
    char id[TP_TRACE_ID_BYTES];

    ended.is_there = nobody_is_there;
    r->kineto = &ended;
    assert_int_equal(rig_restart(r), TP_OK);
    ask_and_drive(r, 1, IDLE);
    create(r, id);
    expect(r, id, 1, "unmatched", "lost: process ended");
}

static bool only_the_second_is_there(int32_t pid)
{
    return pid == 102;
}

/* One that has ended is no reason to refuse a trace of all the others. */
static void test_one_that_has_ended_is_not_required(void **state)
{
    const struct tp_trace_request request = {.require = TP_REQUIRE_ALL};
    struct rig *r = *state;
    struct tp_kineto_opts ended = opts;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    ask_and_drive(r, 2, IDLE);
    ended.is_there = only_the_second_is_there;
    r->kineto = &ended;
    assert_int_equal(rig_restart(r), TP_OK);
    ask_and_drive(r, 2, IDLE);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_start_that_is_far_away_is_told_late),
        TEST(test_a_start_that_was_asked_for_is_away_from_ticks),
        TEST(test_one_that_has_ended_is_not_required),
        TEST(test_a_start_that_is_near_is_not_moved_out_of_reach),
        TEST(test_one_whose_start_was_far_away_and_cancelled_is_free),
        TEST(test_one_that_lags_is_planned_for_and_told_a_request_later),
        TEST(test_one_that_falls_behind_after_the_plan_says_that_it_lagged),
        TEST(test_one_that_a_restart_leaves_behind_is_told_in_time),
        TEST(test_one_that_lags_from_a_restart_to_its_start_says_so),
        TEST(test_an_order_that_is_read_a_request_late_can_be_in_time),
        TEST(test_an_order_that_is_read_a_request_late_can_be_too_late),
        TEST(test_a_process_with_two_sockets_is_told_by_one),
        TEST(test_the_second_socket_takes_over_from_one_that_is_silent),
        TEST(test_what_is_excluded_is_taken_from_the_defaults),
        TEST(test_a_type_that_not_all_know_is_sent_when_it_is_named),
        TEST(test_a_type_that_not_all_know_is_not_sent_for_a_pattern),
        TEST(test_steps_of_kineto_processes_alone_end_with_their_files),
        TEST(test_what_a_trace_ends_before_is_said),
        TEST(test_a_start_by_step_of_kineto_processes_alone_is_warned_of),
        TEST(test_one_that_has_ended_is_not_matched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
