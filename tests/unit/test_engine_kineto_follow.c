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
    expect(r, id, 1, "waiting", "");
    wait(r, 1 * RIG_S);
    expect(r, id, 1, "waiting", "");
    report(r, id, 1, TP_KINETO_FILE_BEGUN, NULL);
    expect(r, id, 1, "armed", "");
    wait(r, 1 * RIG_S);
    expect(r, id, 1, "recording", "");
    wait(r, 1 * RIG_S);
    ask_and_drive(r, 1, BUSY);
    bring_file(r, id, 1);
    rig_expect_outcome(r, id, "complete", "");
}

/* Likewise, while there is time: a process that has an order throws the second away. */
static void test_one_maybe_told_before_a_kill_is_told_again(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES], first[8192];

    ask_and_drive(r, 1, IDLE);
    create(r, id);
    wait(r, 5 * RIG_S);
    snprintf(first, sizeof(first), "%s", ask(r, 1, IDLE));
    assert_int_equal(rig_restart(r), TP_OK);
    ask_and_drive(r, 1, IDLE);
    wait(r, 100 * RIG_MS);
    assert_string_equal(ask(r, 1, IDLE), first);
    drive(r);
    expect(r, id, 1, "armed", "");
}

static void test_one_not_told_before_a_kill_is_given_up(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    ask_and_drive(r, 1, IDLE);
    create(r, id);
    wait(r, 4 * RIG_S);
    assert_int_equal(rig_restart(r), TP_OK);
    wait(r, 5 * RIG_S);
    ask_and_drive(r, 1, IDLE);
    wait(r, 5 * RIG_S);
    ask_and_drive(r, 1, IDLE);
    wait(r, 3 * RIG_S);
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
    wait(r, 1 * RIG_S);
    bring_file(r, id, 1);
    wait(r, 2 * RIG_S);
    rig_expect_outcome(r, id, "complete", "");
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
        TEST(test_one_not_told_before_a_kill_is_given_up),
        TEST(test_a_file_of_a_process_that_ended_meanwhile_is_found),
        TEST(test_one_that_ended_meanwhile_without_a_file_is_lost),
        TEST(test_one_that_never_asks_again_is_lost),
        TEST(test_one_that_never_says_busy_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
