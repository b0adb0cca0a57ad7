/* Traces that steps of the producers start and stop. */
#include "support/engine_test.h"

#include "base/err.h"
#include "core/limits.h"

static void test_steps_start_and_stop_a_trace(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {
        .job = rig_str("j"), .start = TP_START_STEP, .start_step = 10, .stop_steps = 2};
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_request sync = {.has_step = true, .step = 9};
    struct tp_sync_reply reply;

    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    reply = rig_sync(r, p, NULL);
    rig_sync(r, p, &reply);
    for (; sync.step <= 12; sync.step++) {
        rig_expect_state(r, id, sync.step <= 10 ? "prepared" : "recording");
        assert_int_equal(tp_engine_sync(r->engine, rig_str(p), &sync, r->now, &reply,
                                        &r->problem, &r->err),
                         TP_OK);
        if (sync.step == 10)
            rig_sync(r, p, &reply);
    }
    rig_expect_state(r, id, "stopping");
}

static void say_step(struct rig *r, const char *producer, const char *trace,
                     bool has_begun, uint64_t step)
{
    struct tp_sync_ack ack = {.trace_id = rig_str(trace),
                              .command = TP_COMMAND_START,
                              .has_step = true,
                              .step = 10};
    struct tp_sync_request sync = {
        .acks = &ack, .n_acks = has_begun, .has_step = true, .step = step};
    struct tp_sync_reply reply;

    assert_int_equal(tp_engine_sync(r->engine, rig_str(producer), &sync, r->now, &reply,
                                    &r->problem, &r->err),
                     TP_OK);
}

/* A producer that begins by itself says so in an ack; who is behind is waited for. */
static void test_a_step_begins_in_the_producers(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {
        .job = rig_str("j"), .start = TP_START_STEP, .start_step = 10, .stop_steps = 2};
    char p[3][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;

    for (int i = 0; i < 3; i++)
        rig_join(r, (const char *[]){"p0", "p1", "p2"}[i], i, p[i]);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    for (int i = 0; i < 3; i++) {
        reply = rig_sync(r, p[i], NULL);
        assert_int_equal(reply.commands[0].start_step, 10);
        assert_int_equal(reply.commands[0].steps, 2);
        rig_sync(r, p[i], &reply);
    }
    say_step(r, p[1], id, false, 5);
    rig_expect_state(r, id, "prepared");
    say_step(r, p[0], id, true, 10);
    rig_expect_state(r, id, "recording");
    say_step(r, p[0], id, false, 40);
    rig_expect_state(r, id, "recording"); /* p1 is behind, p2 counts no steps */
    say_step(r, p[1], id, true, 11);
    rig_expect_state(r, id, "recording");
    say_step(r, p[1], id, false, 12);
    rig_expect_state(r, id, "stopping");
}

/* Three producers that count steps, in a trace of two steps that has started: the
 * first has begun with step 10, of the others that is not known. */
static void start_three(struct rig *r, char p[3][TP_TRACE_ID_BYTES], char *id)
{
    const struct tp_trace_request request = {.job = rig_str("j"), .stop_steps = 2};
    struct tp_sync_reply reply;

    for (int i = 0; i < 3; i++) {
        rig_join(r, (const char *[]){"p0", "p1", "p2"}[i], i, p[i]);
        say_step(r, p[i], "", false, 9);
    }
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    for (int i = 0; i < 2; i++) { /* the third does not even have the order */
        reply = rig_sync(r, p[i], NULL);
        assert_int_equal(reply.n_commands, 2);
    }
    say_step(r, p[0], id, true, 10);
    rig_expect_state(r, id, "recording");
}

/* The word that it began may take longer than all steps of another one: it was cut off
 * in the midst of its own, in a trace that was complete. */
static void test_who_is_yet_to_say_that_it_began_is_waited_for(void **state)
{
    struct rig *r = *state;
    char p[3][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];

    start_three(r, p, id);
    say_step(r, p[0], id, false, 12);
    rig_expect_state(r, id, "recording");
    say_step(r, p[1], id, true, 10);
    say_step(r, p[1], id, false, 12);
    rig_expect_state(r, id, "recording");
    say_step(r, p[2], id, true, 11);
    rig_expect_state(r, id, "recording");
    say_step(r, p[2], id, false, 12);
    rig_expect_state(r, id, "stopping");
}

/* The rows do not say how far they are. */
static void test_who_was_not_heard_of_since_a_restart_is_waited_for(void **state)
{
    struct rig *r = *state;
    char p[3][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;

    start_three(r, p, id);
    assert_int_equal(rig_restart(r), TP_OK);
    say_step(r, p[0], id, true, 10);
    say_step(r, p[0], id, false, 12);
    rig_expect_state(r, id, "recording");
    say_step(r, p[1], id, true, 12);
    rig_expect_state(r, id, "recording");
    reply = rig_sync(r, p[2], NULL);
    rig_expect_state(r, id, "recording");
    rig_sync(r, p[2], &reply); /* it counts none any more */
    rig_expect_state(r, id, "recording");
    say_step(r, p[1], id, false, 12);
    rig_expect_state(r, id, "stopping");
}

/* Neither has one that came by before the trace was made, and has not asked since the
 * service was started, or was registered only. */
static void test_who_has_not_asked_yet_is_waited_for(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {.job = rig_str("j"), .stop_steps = 2};
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];

    for (int i = 0; i < 2; i++)
        rig_join(r, (const char *[]){"p0", "p1"}[i], i, p[i]);
    assert_int_equal(rig_restart(r), TP_OK);
    say_step(r, p[0], "", false, 10);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    say_step(r, p[0], id, true, 10);
    say_step(r, p[0], id, false, 12);
    rig_expect_state(r, id, "recording");
    say_step(r, p[1], id, true, 10);
    rig_expect_state(r, id, "recording");
    say_step(r, p[1], id, false, 12);
    rig_expect_state(r, id, "stopping");
}

/* One that has told no step yet may have begun, too, when its word that it is armed is
 * on its way for long. That tells whether it counts steps. */
static void test_who_did_not_say_yet_that_it_is_armed_is_waited_for(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {
        .job = rig_str("j"), .start = TP_START_STEP, .start_step = 10, .stop_steps = 2};
    char p[3][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply[3];

    for (int i = 0; i < 3; i++)
        rig_join(r, (const char *[]){"p0", "p1", "p2"}[i], i, p[i]);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    for (int i = 0; i < 3; i++)
        reply[i] = rig_sync(r, p[i], NULL);
    rig_sync(r, p[0], &reply[0]);
    say_step(r, p[0], id, false, 9);
    say_step(r, p[0], id, true, 10);
    say_step(r, p[0], id, false, 12);
    rig_expect_state(r, id, "recording");
    rig_sync(r, p[2], &reply[2]); /* it counts none */
    rig_expect_state(r, id, "recording");
    say_step(r, p[1], id, true, 10);
    rig_expect_state(r, id, "recording");
    say_step(r, p[1], id, false, 12);
    rig_expect_state(r, id, "stopping");
}

static void test_who_falls_silent_before_it_begins_is_not_waited_for(void **state)
{
    struct rig *r = *state;
    char p[3][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];

    start_three(r, p, id);
    rig_wait(r, r->limits->producer_silence_ms * RIG_MS - 1);
    say_step(r, p[0], id, false, 12);
    rig_expect_state(r, id, "recording");
    rig_wait(r, 2);
    rig_expect_state(r, id, "stopping");
}

/* It lives, and its loop hangs, or it lies. Whoever is done waits for two minutes. */
static void test_one_that_hangs_is_not_waited_for_beyond_two_minutes(void **state)
{
    static const uint64_t waits_s[] = {30, 30, 30, 29};
    struct rig *r = *state;
    struct tp_trace_request request = {
        .job = rig_str("j"), .start = TP_START_STEP, .start_step = 10, .stop_steps = 2};
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;

    for (int i = 0; i < 2; i++)
        rig_join(r, (const char *[]){"p0", "p1"}[i], i, p[i]);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    for (int i = 0; i < 2; i++) {
        reply = rig_sync(r, p[i], NULL);
        rig_sync(r, p[i], &reply);
    }
    say_step(r, p[1], id, true, 10);
    say_step(r, p[0], id, true, 12); /* it is done */
    for (size_t i = 0; i < sizeof(waits_s) / sizeof(*waits_s); i++) {
        rig_wait(r, waits_s[i] * RIG_S);
        say_step(r, p[0], id, false, 12);
        say_step(r, p[1], id, false, 10);
        rig_expect_state(r, id, "recording");
    }
    rig_wait(r, 2 * RIG_S);
    rig_expect_state(r, id, "stopping");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_steps_start_and_stop_a_trace),
        engine_test(test_a_step_begins_in_the_producers),
        engine_test(test_one_that_hangs_is_not_waited_for_beyond_two_minutes),
        engine_test(test_who_is_yet_to_say_that_it_began_is_waited_for),
        engine_test(test_who_was_not_heard_of_since_a_restart_is_waited_for),
        engine_test(test_who_has_not_asked_yet_is_waited_for),
        engine_test(test_who_did_not_say_yet_that_it_is_armed_is_waited_for),
        engine_test(test_who_falls_silent_before_it_begins_is_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
