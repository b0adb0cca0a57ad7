/*
 * test_engine_kineto_follow.c - stories of PyTorch processes that were told, when the
 * service is killed meanwhile, and of those that say little.
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
#include "store/store.h"
#include "support/kineto_rig.h"

static void test_a_restart_goes_on_collecting(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    give_order(r, id, IDLE);
    wait(r, 1000 * RIG_MS);
    assert_int_equal(rig_restart(r), TP_OK);
    rig_expect_state(r, id, "prepared");
    ask_and_drive(r, 1, BUSY);
    wait(r, 1 * RIG_S);
    wait(r, 2 * RIG_S);
    rig_expect_state(r, id, "stopping");
    bring_file(r, id, 1);
    rig_expect_outcome(r, id, "complete", "");
}

/* Killed between the order and the row that says so: the process records, and only its
 * file tells. */
static void test_one_told_just_before_a_kill_is_followed(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    create(r, id);
    wait(r, 5 * RIG_S);
    assert_int_not_equal(ask(r, 1, IDLE)[0], '\0');
    assert_int_equal(rig_restart(r), TP_OK);
    drive(r);
    expect(r, id, 1, "waiting", "the service restarted: its start was moved");
    wait(r, 1 * RIG_S);
    report(r, id, 1, TP_KINETO_FILE_BEGUN, NULL);
    expect(r, id, 1, "armed", "");
    wait(r, 3 * RIG_S);
    ask_and_drive(r, 1, BUSY);
    report(r, id, 1, TP_KINETO_FILE_FOUND, NULL); /* and is kept until it records */
    wait(r, 15 * RIG_S);
    bring_file(r, id, 1);
    wait(r, 1 * RIG_S);
    rig_expect_outcome(r, id, "complete", "");
}

/* Likewise, with a start that it can keep: a process that has an order throws the
 * second away, and what it does by the first one counts. */
static void test_one_maybe_told_before_a_kill_is_told_again(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    uint64_t start_ms;

    ask_and_drive(r, 1, IDLE);
    create(r, id);
    wait(r, 5 * RIG_S);
    start_ms = number_in(ask(r, 1, IDLE), "PROFILE_START_TIME=");
    assert_int_equal(rig_restart(r), TP_OK);
    ask_and_drive(r, 1, IDLE);
    wait(r, 6100 * RIG_MS);
    assert_true(number_in(ask(r, 1, IDLE), "PROFILE_START_TIME=") > start_ms);
    drive(r);
    expect(r, id, 1, "armed", "");
    report(r, id, 1, TP_KINETO_FILE_BEGUN, NULL);
    wait(r, 4 * RIG_S);
    rig_expect_state(r, id, "prepared");
    report(r, id, 1, TP_KINETO_FILE_FOUND, NULL); /* and is kept until it records */
    wait(r, 9 * RIG_S);
    bring_file(r, id, 1);
    wait(r, 1 * RIG_S);
    rig_expect_outcome(r, id, "complete", "");
}

/* A process that asks for the first time s seconds after the restart, at most as long
 * after as one can, takes part. */
static void expect_a_new_start(struct rig *r, const char *id, uint64_t s)
{
    assert_int_equal(rig_restart(r), TP_OK);
    drive(r);
    expect(r, id, 1, "waiting", "the service restarted: its start was moved");
    wait(r, s * RIG_S);
    assert_string_equal(ask(r, 1, IDLE), "");
    drive(r);
    wait(r, 10 * RIG_S); /* as one that misses a request */
    assert_true(number_in(ask(r, 1, IDLE), "PROFILE_START_TIME=") >=
                (r->now.wall_ns + 2 * RIG_S) / RIG_MS);
    drive(r);
    expect(r, id, 1, "armed", "");
    rig_expect_state(r, id, "prepared");
    wait(r, 9 * RIG_S - s * RIG_S);
    expect(r, id, 1, "armed", "");
    report(r, id, 1, TP_KINETO_FILE_BEGUN, NULL);
    rig_expect_state(r, id, "recording");
    wait(r, 1 * RIG_S);
    bring_file(r, id, 1);
    wait(r, 1 * RIG_S);
    rig_expect_outcome(r, id, "complete", "");
}

static void test_one_not_told_before_a_kill_is_told_afterwards(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    for (uint64_t down_s = 0; down_s < 40; down_s += 13) {
        print_message("killed for %d s\n", (int)down_s);
        ask_and_drive(r, 1, IDLE);
        create(r, id);
        wait(r, 4 * RIG_S);
        r->now.mono_ns += down_s * RIG_S;
        r->now.wall_ns += down_s * RIG_S;
        expect_a_new_start(r, id, down_s % 2 == 0 ? 5 : 0);
        wait(r, 40 * RIG_S);
    }
}

/* Nor is it armed when its number is taken by a process of somebody else. */
static void test_after_a_kill_another_users_process_is_given_nothing(void **state)
{
    static const uint32_t uids[] = {9, 8}; /* may not be traced; may, and is not it */
    static const struct tp_kineto_opts both = {
        .trace_dir = "/tmp/tp", .root_dir = "/tmp", .uids = {7, 8}, .n_uids = 2};
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    for (size_t c = 0; c < 2; c++) {
        ask_and_drive(r, 1, IDLE);
        create(r, id);
        r->kineto = &both;
        assert_int_equal(rig_restart(r), TP_OK);
        for (int i = 0; i < 12; i++) {
            if (ask_as(r, 1, uids[c], IDLE)[0] != '\0')
                fail_msg("user %u is given an order", (unsigned)uids[c]);
            drive(r);
            wait(r, 5 * RIG_S);
        }
        rig_expect_outcome(r, id, "empty", NULL);
        wait(r, 120 * RIG_S);
    }
}

/* Twice, too: the second service plans from its own restart. */
static void test_a_second_kill_moves_the_start_again(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    create(r, id);
    wait(r, 4 * RIG_S);
    assert_int_equal(rig_restart(r), TP_OK);
    wait(r, 8 * RIG_S);
    expect_a_new_start(r, id, 5);
}

static void expect_warning(struct rig *r, const char *id, const char *text)
{
    struct tp_trace_view *v = rig_view(r, id);
    bool is_there = false;

    for (size_t i = 0; i < v->n_warnings; i++)
        is_there = is_there || strstr(v->warnings[i], text) != NULL;
    if (!is_there)
        fail_msg("none of %zu warnings has '%s'", v->n_warnings, text);
    tp_trace_view_free(v);
}

/* Who was told keeps to what it was told, and the others begin as soon as they can. */
static void test_only_who_waits_is_told_a_new_start(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    wait(r, 2 * RIG_S);
    ask_and_drive(r, 2, IDLE);
    create(r, id);
    wait(r, 3 * RIG_S);
    ask_and_drive(r, 1, IDLE);
    wait(r, 1100 * RIG_MS);
    assert_int_equal(rig_restart(r), TP_OK);
    drive(r);
    expect(r, id, 1, "armed", "");
    expect(r, id, 2, "waiting", "the service restarted: its start was moved");
    ask_and_drive(r, 2, IDLE);
    wait(r, 6 * RIG_S);
    assert_int_not_equal(ask(r, 2, IDLE)[0], '\0');
    drive(r);
    expect(r, id, 2, "armed", "");
    report(r, id, 1, TP_KINETO_FILE_BEGUN, NULL);
    expect(r, id, 1, "flushing", "collecting");
    wait(r, 13 * RIG_S);
    rig_expect_state(r, id, "recording");
    report(r, id, 2, TP_KINETO_FILE_BEGUN, NULL);
    bring_file(r, id, 1);
    wait(r, 1 * RIG_S);
    bring_file(r, id, 2);
    wait(r, 1 * RIG_S);
    rig_expect_outcome(r, id, "complete", "");
    expect_warning(r, id, "who had been told by then starts ");
    assert_int_equal(rig_restart(r), TP_OK); /* and that stays */
    expect_warning(r, id, "ms before the others");
}

/* A start by hand: the trace records before its processes do. */
static void test_a_start_by_hand_is_moved_with_its_end(void **state)
{
    const struct tp_trace_request request = {.start = TP_START_MANUAL,
                                             .stop_duration_ms = 1000,
                                             .kineto_json =
                                                 rig_str("{\"warmup_ms\":0}")};
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    assert_int_equal(tp_engine_trace_start(r->engine, rig_str(id), rig_str("by hand"),
                                           r->now, NULL, NULL, &r->err),
                     TP_OK);
    drive(r);
    rig_expect_state(r, id, "recording");
    wait(r, 4 * RIG_S);
    assert_int_equal(rig_restart(r), TP_OK);
    drive(r);
    ask_and_drive(r, 1, IDLE);
    wait(r, 6 * RIG_S);
    assert_int_not_equal(ask(r, 1, IDLE)[0], '\0');
    drive(r);
    wait(r, 12 * RIG_S + 100 * RIG_MS);
    rig_expect_state(r, id, "recording");
    report(r, id, 1, TP_KINETO_FILE_BEGUN, NULL);
    expect(r, id, 1, "recording", "");
    wait(r, 1 * RIG_S);
    bring_file(r, id, 1);
    wait(r, 1 * RIG_S);
    rig_expect_outcome(r, id, "complete", "");
}

/* Its second request after the restart comes 40 s later, not 10. */
static void test_a_start_is_moved_as_far_as_a_slow_process_needs(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    for (int i = 0; i < 4; i++) {
        ask_and_drive(r, 1, IDLE);
        wait(r, 20 * RIG_S);
    }
    ask_and_drive(r, 1, IDLE);
    create(r, id);
    wait(r, 4 * RIG_S);
    assert_int_equal(rig_restart(r), TP_OK);
    drive(r);
    expect(r, id, 1, "waiting", "the service restarted: its start was moved");
    wait(r, 16 * RIG_S);
    assert_string_equal(ask(r, 1, IDLE), "");
    drive(r);
    wait(r, 20 * RIG_S);
    assert_int_not_equal(ask(r, 1, IDLE)[0], '\0');
    drive(r);
    expect(r, id, 1, "armed", "");
    wait(r, 28 * RIG_S);
    report(r, id, 1, TP_KINETO_FILE_BEGUN, NULL);
    wait(r, 1 * RIG_S);
    bring_file(r, id, 1);
    wait(r, 1 * RIG_S);
    rig_expect_outcome(r, id, "complete", "");
}

/* A trace of yesterday does not begin today. */
static void test_a_start_that_passed_long_ago_is_not_moved(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    create(r, id);
    wait(r, 4 * RIG_S);
    r->now.mono_ns += 24 * 3600 * RIG_S;
    r->now.wall_ns += 24 * 3600 * RIG_S;
    assert_int_equal(rig_restart(r), TP_OK);
    for (int i = 0; i < 4; i++) {
        ask_and_drive(r, 1, IDLE);
        wait(r, 5 * RIG_S);
    }
    expect(r, id, 1, "lost",
           "no file: the service restarted, maybe before it was told");
    rig_expect_outcome(r, id, "empty", NULL);
}

/* A trace of one process that was told; then the service is killed, and the process
 * does not ask any more. Returns the task that is there for it. */
static struct tp_kineto_task kill_after_order(struct rig *r, char *id)
{
    struct tp_kineto_task task;

    ask_and_drive(r, 1, IDLE);
    create(r, id);
    wait(r, 5 * RIG_S);
    ask_and_drive(r, 1, IDLE);
    wait(r, 1100 * RIG_MS);
    assert_int_equal(rig_restart(r), TP_OK);
    tp_engine_kineto_run(r->engine, r->now);
    assert_true(tp_engine_kineto_next_task(r->engine, &task));
    assert_false(tp_engine_kineto_next_task(r->engine, &(struct tp_kineto_task){0}));
    return task;
}

static void test_a_file_of_a_process_that_ended_meanwhile_is_found(void **state)
{
    struct rig *r = *state;
    struct tp_kineto_task task;
    char id[TP_TRACE_ID_BYTES];

    task = kill_after_order(r, id);
    assert_int_equal(task.kind, TP_KINETO_TASK_FIND);
    assert_int_equal(task.pid, 101);
    assert_string_equal(task.trace_id, id);
    assert_true(strncmp(task.folder, id, strlen(id)) == 0);
    assert_true(task.has_uid); /* nobody can ask the process any more */
    assert_int_equal(task.uid, 7);
    wait(r, 1 * RIG_S);
    bring_file(r, id, 1);
    wait(r, 2 * RIG_S);
    rig_expect_outcome(r, id, "complete", "");
}

/* The folder in the path that process n is told now. */
static void read_folder(struct rig *r, unsigned n, char *out)
{
    const char *at = strstr(ask(r, n, IDLE), "/tmp/tp/");

    assert_non_null(at);
    snprintf(out, 256, "%.*s", (int)strcspn(at + 8, "/"), at + 8);
}

/* A trace is made, and process 1 is told. */
static void told_folder(struct rig *r, char *id, char *out)
{
    ask_and_drive(r, 1, IDLE);
    create(r, id);
    wait(r, 5 * RIG_S);
    read_folder(r, 1, out);
    drive(r);
}

/* Other users can go through the folder above, and maybe write into that of a process:
 * that they cannot find it is all that keeps them out. */
static void test_nobody_can_guess_where_a_file_is_written(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES], first[256], second[256];
    size_t key_at = 2 * (TP_TRACE_ID_BYTES - 1) + 2;

    ask_and_drive(r, 2, IDLE);
    told_folder(r, id, first);
    read_folder(r, 2, second);
    assert_int_equal(strlen(first), key_at + 32);
    assert_int_equal(strspn(first + key_at, "0123456789abcdef"), 32);
    assert_string_not_equal(first + key_at, second + key_at);
}

static void test_the_folder_of_one_that_was_told_is_found_after_a_kill(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES], told[256], other[256];
    struct tp_kineto_task task;

    told_folder(r, id, told);
    assert_int_equal(rig_restart(r), TP_OK);
    assert_true(tp_engine_kineto_next_task(r->engine, &task));
    assert_int_equal(task.kind, TP_KINETO_TASK_FIND);
    assert_string_equal(task.folder, told);
    assert_true(tp_engine_kineto_wants_folder(r->engine, told));
    snprintf(other, sizeof(other), "%s", told);
    other[strlen(other) - 1] ^= 1;
    assert_false(tp_engine_kineto_wants_folder(r->engine, other));
    other[2 * (TP_TRACE_ID_BYTES - 1) + 1] = '\0';
    assert_false(tp_engine_kineto_wants_folder(r->engine, other));
    assert_true(tp_engine_kineto_wants_folder(r->engine, "of-somebody-else"));
}

static int forget_key(const struct tp_row_member *row, struct tp_err *err, void *arg)
{
    const struct rig *r = arg;
    struct tp_row_member old = *row;

    if (old.folder_key.len == 0)
        return TP_OK;
    old.folder_key = (struct tp_str){0};
    return r->store->ops->put_member(r->store, &old, err);
}

/* The service before this one knew of no key. Where there is a folder of its making it
 * is used; one that is made now has a key. */
static void test_a_row_without_a_key_has_the_name_without(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES], told[256];
    size_t n = 2 * (TP_TRACE_ID_BYTES - 1) + 1;
    struct tp_kineto_task task;

    told_folder(r, id, told);
    assert_int_equal(r->store->ops->each_member(r->store, forget_key, r, &r->err),
                     TP_OK);
    assert_int_equal(rig_restart(r), TP_OK);
    assert_true(tp_engine_kineto_next_task(r->engine, &task));
    assert_int_equal(task.kind, TP_KINETO_TASK_FIND);
    assert_int_equal(strlen(task.folder), n);
    assert_int_equal(strncmp(task.folder, told, n), 0);
    assert_true(tp_engine_kineto_wants_folder(r->engine, task.folder));
    ask(r, 1, IDLE);
    tp_engine_kineto_run(r->engine, r->now);
    assert_true(tp_engine_kineto_next_task(r->engine, &task));
    assert_int_equal(task.kind, TP_KINETO_TASK_DESCRIBE);
    tp_engine_kineto_describe(r->engine, task.target,
                              &(struct tp_kineto_description){.rank = 1}, r->now, NULL);
    assert_true(tp_engine_kineto_next_task(r->engine, &task));
    assert_int_equal(task.kind, TP_KINETO_TASK_FOLDER);
    assert_int_equal(strlen(task.folder), n + 33);
}

static void test_one_that_ended_meanwhile_without_a_file_is_lost(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    kill_after_order(r, id);
    report(r, id, 1, TP_KINETO_PROCESS_ENDED, NULL);
    expect(r, id, 1, "lost", "process ended");
}

/* Nobody sees whether it is there: its silence tells. */
static void test_one_that_never_asks_again_is_lost(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    kill_after_order(r, id);
    wait(r, 30 * RIG_S);
    expect(r, id, 1, "armed", "");
    wait(r, 4 * RIG_S);
    expect(r, id, 1, "lost", "process ended");
    rig_expect_outcome(r, id, "empty", NULL);
}

static void test_one_that_never_says_busy_is_waited_for(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    give_order(r, id, ALWAYS);
    report(r, id, 1, TP_KINETO_FILE_BEGUN, NULL);
    for (int i = 0; i < 20; i++) { /* a large one */
        wait(r, 5 * RIG_S);
        assert_string_equal(ask(r, 1, ALWAYS), "");
        drive(r);
    }
    expect(r, id, 1, "flushing", "collecting");
    bring_file(r, id, 1);
    rig_expect_outcome(r, id, "complete", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_restart_goes_on_collecting),
        TEST(test_one_told_just_before_a_kill_is_followed),
        TEST(test_one_maybe_told_before_a_kill_is_told_again),
        TEST(test_one_not_told_before_a_kill_is_told_afterwards),
        TEST(test_after_a_kill_another_users_process_is_given_nothing),
        TEST(test_a_second_kill_moves_the_start_again),
        TEST(test_only_who_waits_is_told_a_new_start),
        TEST(test_a_start_by_hand_is_moved_with_its_end),
        TEST(test_a_start_is_moved_as_far_as_a_slow_process_needs),
        TEST(test_a_start_that_passed_long_ago_is_not_moved),
        TEST(test_a_file_of_a_process_that_ended_meanwhile_is_found),
        TEST(test_nobody_can_guess_where_a_file_is_written),
        TEST(test_the_folder_of_one_that_was_told_is_found_after_a_kill),
        TEST(test_a_row_without_a_key_has_the_name_without),
        TEST(test_one_that_ended_meanwhile_without_a_file_is_lost),
        TEST(test_one_that_never_asks_again_is_lost),
        TEST(test_one_that_never_says_busy_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
