/*
 * Producers and their sync over the API.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/limits.h"
#include "engine/traces.h"
#include "support/api_rig.h"
#include "support/fault.h"

static void test_a_producer_is_201_and_the_same_again_200_with_its_id(void **state)
{
    static const char body[] = "{\"job\":\"j\",\"name\":\"w\",\"rank\":3,\"pid\":9,"
                               "\"host\":\"n1\",\"world_size\":8,"
                               "\"capabilities\":{\"a\":[1,2]}}";
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_post(a, body, "/v1/producers");
    api_expect_json(a, 201);
    snprintf(id, sizeof(id), "%s", api_str(a, "id"));
    assert_int_equal(api_int(a, "rank"), 3);
    assert_int_equal(api_int(a, "capabilities.a[1]"), 2);
    assert_true(a->call.has_changed);
    api_post(a, body, "/v1/producers");
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "id"), id);
    assert_false(json_object_get_boolean(api_at(a, "created")));
    api_get(a, "/v1/producers/%s", id);
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "host"), "n1");
    assert_null(api_at(a, "created"));
}

static void test_wrong_fields_of_a_producer_are_named(void **state)
{
    static const struct {
        const char *body, *type, *field;
    } cases[] = {
        {"{\"name\":[]}", "invalid-field", "name"},
        {"{\"id\":7}", "invalid-field", "id"},
        {"{\"id\":\"01m8pwgezv8xjyd24jtcnp309\"}", "invalid-field", "id"},
        {"{\"id\":\"01m8pwgezv8xjyd24jtcnp309u\"}", "invalid-field", "id"},
        {"{\"id\":\"81m8pwgezv8xjyd24jtcnp309p\"}", "invalid-field", "id"},
        {"{\"id\":\"01M8PWGEZV8XJYD24JTCNP309P\"}", "invalid-field", "id"},
        {"{\"name\":\"w\",\"rank\":-1}", "invalid-field", "rank"},
        {"{\"name\":\"w\",\"rank\":2147483648}", "invalid-field", "rank"},
        {"{\"name\":\"w\",\"rank\":1.5}", "invalid-field", "rank"},
        {"{\"name\":\"w\",\"pid\":99999999999999999999999}", "invalid-field", "pid"},
        {"{\"name\":\"w\",\"world_size\":0}", "invalid-field", "world_size"},
        {"{\"name\":\"w\",\"capabilities\":[]}", "invalid-field", "capabilities"},
        {"{\"name\":\"w\",\"kind\":\"odd\"}", "invalid-field", "kind"},
        {"{\"name\":\"w\",\"ranks\":1}", "unknown-field", "ranks"},
    };
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("body %s\n", cases[i].body);
        api_post(a, cases[i].body, "/v1/producers");
        api_expect_problem(a, 400, cases[i].type);
        assert_string_equal(api_str(a, "field"), cases[i].field);
        assert_false(a->call.has_changed);
    }
}

static void test_capabilities_over_the_limit_name_it(void **state)
{
    struct api_rig *a = *state;

    a->rig.limits->metadata_bytes = 8;
    api_post(a, "{\"name\":\"w\",\"capabilities\":{\"a\":\"0123456789\"}}",
             "/v1/producers");
    api_expect_problem(a, 400, "invalid-field");
    assert_string_equal(api_str(a, "field"), "capabilities");
    assert_string_equal(api_str(a, "limit"), "max-metadata-bytes");
    assert_int_equal(api_int(a, "max"), 8);
}

static void test_pages_of_producers_hold_each_once(void **state)
{
    struct api_rig *a = *state;
    char id[3][TP_TRACE_ID_BYTES];
    char cursor[64];

    for (int i = 0; i < 3; i++)
        api_make_producer(a, i < 2 ? "j" : "k", "w", i, id[i]);
    api_get(a, "/v1/producers?job=j");
    api_expect_json(a, 200);
    assert_int_equal(api_len(a, "items"), 2);
    api_get(a, "/v1/producers?limit=2");
    assert_int_equal(api_len(a, "items"), 2);
    snprintf(cursor, sizeof(cursor), "%s", api_str(a, "next_cursor"));
    api_get(a, "/v1/producers?limit=2&cursor=%s", cursor);
    assert_int_equal(api_len(a, "items"), 1);
    assert_null(api_at(a, "next_cursor"));
}

static void test_a_forgotten_producer_is_404_everywhere(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_producer(a, "j", "w", 0, id);
    assert_int_equal(api_delete(a, "/v1/producers/%s", id), 204);
    assert_null(a->call.content_type);
    assert_int_equal(a->body.len, 0);
    for (int i = 0; i < 3; i++) {
        if (i == 0)
            api_get(a, "/v1/producers/%s", id);
        else if (i == 1)
            api_delete(a, "/v1/producers/%s", id);
        else
            api_post(a, "{\"wait_ms\":0}", "/v1/producers/%s/sync", id);
        api_expect_problem(a, 404, "not-found");
        assert_string_equal(api_str(a, "subject"), "producer");
        assert_string_equal(api_str(a, "name"), id);
    }
}

static void test_a_sync_without_a_wait_answers_at_once(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_producer(a, "j", "w", 0, id);
    api_post(a, "{\"wait_ms\":0,\"step\":7}", "/v1/producers/%s/sync", id);
    api_expect_json(a, 200);
    assert_int_equal(api_len(a, "commands"), 0);
    assert_false(a->call.has_changed);
    assert_string_equal(api_str(a, "server_received_at"), api_str(a, "server_sent_at"));
    api_get(a, "/v1/producers/%s", id);
    assert_int_equal(api_int(a, "step"), 7);
}

static void test_a_sync_that_was_overtaken_says_no_step(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];
    int seq;

    api_make_producer(a, "j", "w", 0, id);
    api_post(a, "{\"wait_ms\":0,\"seq\":2,\"step\":7}", "/v1/producers/%s/sync", id);
    api_expect_json(a, 200);
    seq = (int)api_int(a, "seq");
    api_post(a, "{\"wait_ms\":0,\"seq\":1,\"step\":3}", "/v1/producers/%s/sync", id);
    api_expect_json(a, 200);
    assert_true(api_int(a, "seq") > seq);
    api_get(a, "/v1/producers/%s", id);
    assert_int_equal(api_int(a, "step"), 7);
    api_post(a, "{\"seq\":-1}", "/v1/producers/%s/sync", id);
    api_expect_problem(a, 400, "invalid-field");
}

static void test_only_the_ack_that_moves_the_trace_wakes_others(void **state)
{
    struct api_rig *a = *state;
    char id[3][TP_TRACE_ID_BYTES], trace[TP_TRACE_ID_BYTES];

    for (int i = 0; i < 3; i++) {
        api_make_producer(a, "j", "w", i, id[i]);
        api_post(a, "{\"wait_ms\":0}", "/v1/producers/%s/sync", id[i]);
    }
    api_make_trace(
        a, "{\"job\":\"j\",\"require\":\"all\",\"stop\":{\"duration_ms\":5000}}",
        trace);
    for (int i = 0; i < 3; i++) {
        char ack[128];

        snprintf(
            ack, sizeof(ack),
            "{\"wait_ms\":0,\"acks\":[{\"trace_id\":\"%s\",\"command\":\"prepare\"}]}",
            trace);
        api_post(a, ack, "/v1/producers/%s/sync", id[i]);
        api_expect_json(a, 200);
        if (a->call.has_changed != (i == 2))
            fail_msg("the ack of producer %d: has_changed %d", i, a->call.has_changed);
    }
    assert_string_equal(api_str(a, "commands[0].command"), "start");
    assert_int_equal(api_int(a, "commands[0].duration_ms"), 5000);
}

static void test_a_held_sync_is_ready_when_there_is_a_command(void **state)
{
    struct api_rig *a = *state;
    struct tp_call held;
    char id[TP_TRACE_ID_BYTES], trace[TP_TRACE_ID_BYTES];

    api_make_producer(a, "j", "w", 0, id);
    api_post(a, "{\"wait_ms\":5000}", "/v1/producers/%s/sync", id);
    assert_int_equal(a->call.reply, TP_REPLY_WAIT);
    assert_int_equal(a->call.wait.deadline_ns, a->rig.now.mono_ns + 5 * RIG_S);
    assert_false(a->call.wait.ready(&a->call));
    held = a->call; /* another call comes in between */
    tp_call_init(&a->call, &a->service);
    rig_wait(&a->rig, RIG_S);
    api_make_trace(a, "{\"job\":\"j\"}", trace);
    tp_call_fini(&a->call);
    a->call = held;
    assert_true(a->call.wait.ready(&a->call));
    api_resume(a);
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "commands[0].command"), "prepare");
    assert_string_equal(api_str(a, "commands[0].trace_id"), trace);
    /* Of a trace that names none it is the service's cap. */
    assert_true(api_int(a, "commands[0].duration_ms") > 0);
    assert_true(strcmp(api_str(a, "server_received_at"), api_str(a, "server_sent_at")) <
                0);
}

/* Hold a sync, make a trace meanwhile, and leave the held call in a->call. */
static void hold_over(struct api_rig *a, const char *id, const char *sync,
                      const char *request, char *trace)
{
    struct tp_call held;

    api_post(a, sync, "/v1/producers/%s/sync", id);
    assert_int_equal(a->call.reply, TP_REPLY_WAIT);
    held = a->call;
    tp_call_init(&a->call, &a->service);
    api_make_trace(a, request, trace);
    tp_call_fini(&a->call);
    a->call = held;
    a->call.now = a->rig.now;
}

static void test_a_start_is_said_ahead_of_the_answer_to_who_asks_for_it(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], trace[TP_TRACE_ID_BYTES], start_at[64];
    struct tp_buf ahead = {0};

    api_make_producer(a, "j", "w", 0, id);
    hold_over(a, id, "{\"wait_ms\":5000,\"interim\":true}", "{\"job\":\"j\"}", trace);
    assert_true(a->call.wait.ready(&a->call));
    assert_true(a->call.wait.ahead(&a->call, &ahead));
    assert_int_equal(tp_buf_append(&ahead, "", 1, NULL), TP_OK);
    assert_non_null(strstr(ahead.data, "\"prepare\""));
    assert_non_null(strstr(ahead.data, "\"start\""));
    assert_non_null(strstr(ahead.data, trace));
    assert_non_null(strstr(ahead.data, "\"seq\":"));
    assert_null(strpbrk(ahead.data, "\r\n")); /* it is the value of a header */
    assert_false(a->call.wait.ahead(&a->call, &ahead)); /* it is known */
    api_resume(a);
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "commands[0].command"), "prepare");
    assert_string_equal(api_str(a, "commands[1].command"), "start");
    snprintf(start_at, sizeof(start_at), "%s", api_str(a, "commands[1].start_at"));
    assert_non_null(strstr(ahead.data, start_at));
    tp_buf_fini(&ahead);
}

static void test_nothing_but_a_start_is_said_ahead(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], trace[TP_TRACE_ID_BYTES];
    struct tp_buf ahead = {0};

    api_make_producer(a, "j", "w", 0, id);
    api_post(a, "{\"wait_ms\":5000}", "/v1/producers/%s/sync", id);
    assert_null(a->call.wait.ahead); /* it was not asked for */
    tp_call_fini(&a->call);
    tp_call_init(&a->call, &a->service);
    hold_over(a, id, "{\"wait_ms\":5000,\"interim\":true}",
              "{\"job\":\"j\",\"start\":{\"when\":\"manual\"}}", trace);
    assert_true(a->call.wait.ready(&a->call));
    assert_false(a->call.wait.ahead(&a->call, &ahead));
    assert_int_equal(ahead.len, 0);
    api_resume(a);
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "commands[0].command"), "prepare");
    tp_buf_fini(&ahead);
}

static void test_without_memory_a_start_is_said_in_the_answer_alone(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], trace[TP_TRACE_ID_BYTES];
    struct tp_buf ahead = {0};

    api_make_producer(a, "j", "w", 0, id);
    hold_over(a, id, "{\"wait_ms\":5000,\"interim\":true}", "{\"job\":\"j\"}", trace);
    fault_arm(0);
    assert_true(a->call.wait.ahead(&a->call, &ahead)); /* it is to be answered */
    assert_true(fault_disarm());
    assert_int_equal(ahead.len, 0);
    api_resume(a);
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "commands[1].command"), "start");
    tp_buf_fini(&ahead);
}

static void test_a_held_sync_without_news_ends_empty(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_producer(a, "j", "w", 0, id);
    api_post(a, "{\"wait_ms\":10}", "/v1/producers/%s/sync", id);
    assert_int_equal(a->call.reply, TP_REPLY_WAIT);
    rig_wait(&a->rig, 10 * RIG_MS);
    api_resume(a);
    api_expect_json(a, 200);
    assert_int_equal(api_len(a, "commands"), 0);
}

static void test_a_held_sync_of_a_producer_that_is_gone_is_404(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_producer(a, "j", "w", 0, id);
    api_post(a, "{}", "/v1/producers/%s/sync", id);
    assert_int_equal(a->call.reply, TP_REPLY_WAIT);
    assert_int_equal(tp_engine_producer_delete(a->rig.engine, rig_str(id), a->rig.now,
                                               &a->rig.problem, &a->rig.err),
                     TP_OK);
    api_resume(a);
    api_expect_problem(a, 404, "not-found");
}

static void test_a_held_sync_may_be_given_up(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_producer(a, "j", "w", 0, id);
    api_post(a, NULL, "/v1/producers/%s/sync", id);
    assert_int_equal(a->call.reply, TP_REPLY_WAIT);
}

static void test_an_acknowledged_command_makes_room_for_the_next(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], trace[TP_TRACE_ID_BYTES], body[256];

    api_make_producer(a, "j", "w", 0, id);
    api_make_trace(a, "{\"job\":\"j\"}", trace);
    api_post(a, "{\"wait_ms\":0}", "/v1/producers/%s/sync", id);
    assert_string_equal(api_str(a, "commands[0].command"), "prepare");
    assert_true(api_len(a, "commands[0].types") > 0);
    snprintf(body, sizeof(body),
             "{\"wait_ms\":0,\"acks\":[{\"trace_id\":\"%s\",\"command\":\"prepare\"}]}",
             trace);
    api_post(a, body, "/v1/producers/%s/sync", id);
    api_expect_json(a, 200);
    assert_int_equal(api_len(a, "commands"), 1);
    assert_string_equal(api_str(a, "commands[0].command"), "start");
    assert_string_equal(api_str(a, "commands[0].trace_id"), trace);
}

static void test_wrong_fields_of_a_sync_are_named(void **state)
{
    static const struct {
        const char *body, *type, *field;
    } cases[] = {
        {"{\"wait_ms\":30001}", "invalid-field", "wait_ms"},
        {"{\"acks\":{}}", "invalid-field", "acks"},
        {"{\"acks\":[1]}", "invalid-field", "acks[0]"},
        {"{\"acks\":[{\"command\":\"go\"}]}", "invalid-field", "acks[0].command"},
        {"{\"acks\":[{\"comand\":\"stop\"}]}", "unknown-field", "acks[0].comand"},
        {"{\"acks\":[{\"command\":\"start\",\"started_at\":\"soon\"}]}",
         "invalid-field", "acks[0].started_at"},
        {"{\"counts\":[{\"emitted\":-1}]}", "invalid-field", "counts[0].emitted"},
        {"{\"counts\":[{\"dropped\":{\"whim\":1}}]}", "unknown-field",
         "counts[0].dropped.whim"},
        {"{\"clock\":{}}", "invalid-field", "clock.sent_at"},
        {"{\"clock\":{\"now\":1}}", "unknown-field", "clock.now"},
        {"{\"step\":\"7\"}", "invalid-field", "step"},
        {"{\"stpe\":7}", "unknown-field", "stpe"},
    };
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_producer(a, "j", "w", 0, id);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("body %s\n", cases[i].body);
        api_post(a, cases[i].body, "/v1/producers/%s/sync", id);
        api_expect_problem(a, 400, cases[i].type);
        assert_string_equal(api_str(a, "field"), cases[i].field);
    }
}

#define api_test(name) cmocka_unit_test_setup_teardown(name, api_setup, api_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(test_a_producer_is_201_and_the_same_again_200_with_its_id),
        api_test(test_wrong_fields_of_a_producer_are_named),
        api_test(test_capabilities_over_the_limit_name_it),
        api_test(test_pages_of_producers_hold_each_once),
        api_test(test_a_forgotten_producer_is_404_everywhere),
        api_test(test_a_sync_without_a_wait_answers_at_once),
        api_test(test_a_sync_that_was_overtaken_says_no_step),
        api_test(test_only_the_ack_that_moves_the_trace_wakes_others),
        api_test(test_a_held_sync_is_ready_when_there_is_a_command),
        api_test(test_a_held_sync_without_news_ends_empty),
        api_test(test_a_start_is_said_ahead_of_the_answer_to_who_asks_for_it),
        api_test(test_nothing_but_a_start_is_said_ahead),
        api_test(test_without_memory_a_start_is_said_in_the_answer_alone),
        api_test(test_a_held_sync_of_a_producer_that_is_gone_is_404),
        api_test(test_a_held_sync_may_be_given_up),
        api_test(test_an_acknowledged_command_makes_room_for_the_next),
        api_test(test_wrong_fields_of_a_sync_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
