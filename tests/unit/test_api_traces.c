/*
 * The control of traces over the API, and watching one.
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

static void create_keyed(struct api_rig *a, const char *key, const char *body)
{
    api_call(a, &(struct api_request){.target = "/v1/traces",
                                      .body = body,
                                      .headers = {{TP_HEADER_IDEMPOTENCY_KEY, key}}});
}

static void test_a_trace_goes_from_manual_to_complete(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], location[64];

    api_make_trace(a, "{\"start\":{\"when\":\"manual\"},\"label\":\"l\"}", id);
    assert_string_equal(api_str(a, "state"), "prepared");
    assert_string_equal(api_str(a, "start.when"), "manual");
    snprintf(location, sizeof(location), "/v1/traces/%s", id);
    assert_string_equal(api_header(a, "Location"), location);
    assert_string_equal(api_str(a, "links.self"), location);
    assert_string_equal(a->call.subject, id);
    api_post(a, "{}", "/v1/traces/%s/start", id);
    api_expect_json(a, 202);
    assert_true(a->call.has_changed);
    rig_wait(&a->rig, a->rig.limits->trace_arming_ms * RIG_MS);
    api_get(a, "/v1/traces/%s", id);
    assert_string_equal(api_str(a, "state"), "recording");
    api_post(a, NULL, "/v1/traces/%s/stop", id);
    api_expect_json(a, 202);
    rig_work(&a->rig);
    api_get(a, "/v1/traces/%s", id);
    assert_string_equal(api_str(a, "state"), "complete");
    assert_string_equal(api_str(a, "outcome"), "empty");
    assert_true(api_len(a, "history") >= 4);
}

#define MANY 64 /* producers, of whom the last is `producer` */

/* Make a trace for many producers that take part, up to the wait for the last of them
 * to be told. */
static void make_for_many(struct api_rig *a, char *producer)
{
    char others[MANY][TP_TRACE_ID_BYTES];

    for (int i = 0; i < MANY; i++)
        rig_join(&a->rig, "w", i, i < MANY - 1 ? others[i] : producer);
    api_post(a, "{\"job\":\"j\"}", "/v1/traces");
    for (int i = 0; i < MANY - 1; i++)
        rig_sync(&a->rig, others[i], NULL);
    assert_int_equal(a->call.reply, TP_REPLY_WAIT);
    assert_true(a->call.has_changed);
    assert_false(a->call.wait.ready(&a->call));
}

static void test_producers_are_told_before_the_maker_of_a_trace_is(void **state)
{
    struct api_rig *a = *state;
    char producer[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;

    make_for_many(a, producer);
    reply = rig_sync(&a->rig, producer, NULL);
    assert_int_equal(reply.n_commands, 2);
    assert_true(a->call.wait.ready(&a->call));
    api_resume(a);
    api_expect_json(a, 201);
    assert_string_equal(api_str(a, "id"), reply.commands[1].trace_id);
    assert_string_equal(api_str(a, "id"), a->call.subject);
    assert_int_equal(api_len(a, "matched"), MANY);
    assert_string_equal(api_str(a, "matched[63].id"), producer);
    assert_non_null(api_header(a, "Location"));
}

static void test_for_a_few_producers_the_answer_does_not_wait(void **state)
{
    struct api_rig *a = *state;
    char producer[TP_TRACE_ID_BYTES];

    for (int i = 0; i < MANY - 1; i++)
        rig_join(&a->rig, "w", i, producer);
    api_post(a, "{\"job\":\"j\"}", "/v1/traces");
    api_expect_json(a, 201);
    assert_string_equal(api_str(a, "matched[62].state"), "waiting");
}

static void test_the_answer_waits_for_the_start_at_the_longest(void **state)
{
    struct api_rig *a = *state;
    char producer[TP_TRACE_ID_BYTES];
    uint64_t most_ns;

    make_for_many(a, producer);
    most_ns = a->call.wait.deadline_ns - a->rig.now.mono_ns;
    assert_in_range(most_ns, 1, RIG_S);
    rig_wait(&a->rig, most_ns);
    api_resume(a);
    api_expect_json(a, 201);
    assert_string_equal(api_str(a, "state"), "recording");
    assert_string_equal(api_str(a, "matched[63].state"), "waiting");
}

static void test_a_trace_that_is_gone_before_the_answer_is_named_in_it(void **state)
{
    struct api_rig *a = *state;
    char producer[TP_TRACE_ID_BYTES], location[96];
    struct tp_str id;

    make_for_many(a, producer);
    id = rig_str(a->call.subject);
    snprintf(location, sizeof(location), "/v1/traces/%s", a->call.subject);
    assert_int_equal(tp_engine_trace_cancel(a->rig.engine, id, rig_str(""), a->rig.now,
                                            NULL, NULL, NULL),
                     TP_OK);
    assert_int_equal(tp_engine_trace_delete(a->rig.engine, id, a->rig.now, NULL, NULL),
                     TP_OK);
    assert_true(a->call.wait.ready(&a->call));
    api_resume(a);
    api_expect_problem(a, 404, "not-found");
    assert_non_null(strstr(api_str(a, "detail"), "the trace was made"));
    assert_string_equal(api_header(a, "Location"), location);
}

static void test_a_body_of_nothing_is_a_trace_with_defaults(void **state)
{
    struct api_rig *a = *state;

    api_post(a, NULL, "/v1/traces");
    api_expect_json(a, 201);
    assert_string_equal(api_str(a, "job"), "default");
    assert_string_equal(api_str(a, "require"), "any");
    assert_string_equal(api_str(a, "start.when"), "now");
}

static void test_what_was_asked_for_is_told_again(void **state)
{
    struct api_rig *a = *state;

    api_post(
        a,
        "{\"job\":\"j\",\"filter\":{\"include\":[\"kernel\"],\"names\":{"
        "\"exclude\":[\"op*\"]},\"min_duration_ns\":5},\"select\":{\"ranks\":[1,2],"
        "\"hosts\":[\"n\"]},\"start\":{\"step\":9},\"stop\":{\"steps\":2},"
        "\"metadata\":{\"a\":{\"b\":[1]}}}",
        "/v1/traces");
    api_expect_json(a, 201);
    assert_string_equal(api_str(a, "filter.include[0]"), "kernel");
    assert_string_equal(api_str(a, "filter.names.exclude[0]"), "op*");
    assert_int_equal(api_int(a, "filter.min_duration_ns"), 5);
    assert_int_equal(api_int(a, "select.ranks[1]"), 2);
    assert_string_equal(api_str(a, "select.hosts[0]"), "n");
    assert_int_equal(api_int(a, "start.step"), 9);
    assert_int_equal(api_int(a, "stop.steps"), 2);
    assert_int_equal(api_int(a, "metadata.a.b[0]"), 1);
}

static void test_a_dry_run_makes_nothing(void **state)
{
    struct api_rig *a = *state;

    api_post(a, "{\"dry_run\":true,\"filter\":{\"include\":[\"kernel\"]}}",
             "/v1/traces");
    api_expect_json(a, 200);
    assert_true(json_object_get_boolean(api_at(a, "dry_run")));
    assert_null(api_at(a, "id"));
    assert_null(api_header(a, "Location"));
    assert_false(a->call.has_changed);
    api_get(a, "/v1/traces");
    assert_int_equal(api_len(a, "items"), 0);
}

static void test_the_same_key_and_body_get_the_first_trace_again(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    create_keyed(a, "k1", "{\"label\":\"a\"}");
    api_expect_json(a, 201);
    assert_null(api_header(a, "Idempotency-Replayed"));
    snprintf(id, sizeof(id), "%s", api_str(a, "id"));
    create_keyed(a, "k1", "{\"label\":\"a\"}");
    api_expect_json(a, 201);
    assert_string_equal(api_str(a, "id"), id);
    assert_string_equal(api_header(a, "Idempotency-Replayed"), "true");
    assert_false(a->call.has_changed);
    create_keyed(a, "k1", "{\"label\":\"b\"}");
    api_expect_problem(a, 409, "idempotency-mismatch");
    assert_string_equal(api_str(a, "trace_id"), id);
}

static void test_a_key_that_cannot_be_one_is_refused(void **state)
{
    static const char *const keys[] = {"", "a b", "\x7f", "a\tb"};
    struct api_rig *a = *state;
    char longest[258];

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        print_message("key '%s'\n", keys[i]);
        create_keyed(a, keys[i], "{}");
        api_expect_problem(a, 400, "invalid-request");
    }
    memset(longest, 'k', sizeof(longest));
    longest[256] = '\0';
    create_keyed(a, longest, "{}");
    api_expect_problem(a, 400, "invalid-request");
    longest[255] = '\0';
    create_keyed(a, longest, "{}");
    api_expect_json(a, 201);
}

static void test_wrong_fields_are_named(void **state)
{
    static const struct {
        const char *body, *type, *field;
    } cases[] = {
        {"{\"job\":7}", "invalid-field", "job"},
        {"{\"job\":\"a b\"}", "invalid-field", "job"},
        {"{\"filtre\":{}}", "unknown-field", "filtre"},
        {"{\"filter\":[]}", "invalid-field", "filter"},
        {"{\"filter\":{\"includes\":[]}}", "unknown-field", "filter.includes"},
        {"{\"filter\":{\"include\":\"kernel\"}}", "invalid-field", "filter.include"},
        {"{\"filter\":{\"include\":[\"kernel\",1]}}", "invalid-field",
         "filter.include[1]"},
        {"{\"filter\":{\"include\":[\"kernle\"]}}", "unknown-type",
         "filter.include[0]"},
        {"{\"filter\":{\"names\":{\"only\":[]}}}", "unknown-field",
         "filter.names.only"},
        {"{\"filter\":{\"min_duration_ns\":-1}}", "invalid-field",
         "filter.min_duration_ns"},
        {"{\"select\":{\"ranks\":[0,-1]}}", "invalid-field", "select.ranks[1]"},
        {"{\"select\":{\"rank\":[0]}}", "unknown-field", "select.rank"},
        {"{\"start\":{}}", "invalid-field", "start"},
        {"{\"start\":{\"when\":\"now\",\"step\":1}}", "invalid-field", "start"},
        {"{\"start\":{\"when\":\"soon\"}}", "invalid-field", "start.when"},
        {"{\"start\":{\"at\":\"soon\"}}", "invalid-field", "start.at"},
        {"{\"start\":{\"at\":\"1969-12-31T00:00:00Z\"}}", "invalid-field", "start.at"},
        {"{\"start\":{\"step\":-1}}", "invalid-field", "start.step"},
        {"{\"stop\":{\"duration_ms\":0}}", "invalid-field", "stop.duration_ms"},
        {"{\"stop\":{\"duration\":5}}", "unknown-field", "stop.duration"},
        {"{\"require\":\"some\"}", "invalid-field", "require"},
        {"{\"require\":[]}", "invalid-field", "require"},
        {"{\"require\":-1}", "invalid-field", "require"},
        {"{\"metadata\":[]}", "invalid-field", "metadata"},
        {"{\"dry_run\":1}", "invalid-field", "dry_run"},
    };
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("body %s\n", cases[i].body);
        api_post(a, cases[i].body, "/v1/traces");
        api_expect_problem(a, 400, cases[i].type);
        assert_string_equal(api_str(a, "field"), cases[i].field);
        assert_false(a->call.has_changed);
    }
}

static void test_lists_and_metadata_over_their_limit_name_it(void **state)
{
    static const struct {
        const char *body, *limit, *field;
    } cases[] = {
        {"{\"filter\":{\"include\":[\"a\",\"b\"]}}", "max-filter-entries",
         "filter.include"},
        {"{\"select\":{\"hosts\":[\"a\",\"b\",\"c\"]}}", "max-select-entries",
         "select.hosts"},
        {"{\"select\":{\"ranks\":[1,2,3]}}", "max-select-entries", "select.ranks"},
        {"{\"metadata\":{\"a\":12345}}", "max-metadata-bytes", "metadata"},
    };
    struct api_rig *a = *state;

    a->rig.limits->filter_entries = 1;
    a->rig.limits->select_entries = 2;
    a->rig.limits->metadata_bytes = 8;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("body %s\n", cases[i].body);
        api_post(a, cases[i].body, "/v1/traces");
        api_expect_problem(a, 400, "invalid-field");
        assert_string_equal(api_str(a, "field"), cases[i].field);
        assert_string_equal(api_str(a, "limit"), cases[i].limit);
        assert_true(strlen(api_str(a, "unit")) > 0);
        assert_true(api_int(a, "max") > 0);
    }
}

static void test_an_unknown_type_comes_with_the_nearest(void **state)
{
    struct api_rig *a = *state;

    api_post(a, "{\"plugin\":\"ascend\",\"type_name\":\"KERNEL\"}", "/v1/types");
    api_post(a, "{\"filter\":{\"include\":[\"ascend.KERNLE\"]}}", "/v1/traces");
    api_expect_problem(a, 400, "unknown-type");
    assert_string_equal(api_str(a, "name"), "ascend.KERNLE");
    assert_string_equal(api_str(a, "nearest[0]"), "ascend.KERNEL");
}

static void test_a_second_trace_of_a_job_names_the_active_one(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_trace(a, "{\"job\":\"j\"}", id);
    api_post(a, "{\"job\":\"j\"}", "/v1/traces");
    api_expect_problem(a, 409, "trace-active");
    assert_string_equal(api_str(a, "job"), "j");
    assert_string_equal(api_str(a, "trace_id"), id);
    assert_true(strlen(api_str(a, "state")) > 0);
}

static void test_too_few_producers_are_counted(void **state)
{
    struct api_rig *a = *state;

    api_post(a, "{\"require\":2}", "/v1/traces");
    api_expect_problem(a, 409, "not-enough-producers");
    assert_int_equal(api_int(a, "required"), 2);
    assert_int_equal(api_int(a, "available"), 0);
}

static void test_a_full_table_is_429_with_its_limit(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    rig_fini(&a->rig); /* the engine copies its limits */
    rig_init(&a->rig);
    a->rig.limits->active_traces = 1;
    assert_int_equal(rig_start(&a->rig), TP_OK);
    a->service.engine = a->rig.engine;
    a->service.limits = a->rig.limits;
    api_make_trace(a, "{\"job\":\"a\"}", id);
    api_post(a, "{\"job\":\"b\"}", "/v1/traces");
    api_expect_problem(a, 429, "limit-exceeded");
    assert_string_equal(api_str(a, "limit"), "max-active-traces");
    assert_string_equal(api_str(a, "unit"), "traces");
    assert_int_equal(api_int(a, "max"), 1);
    assert_string_equal(api_header(a, "Retry-After"), "1");
}

static void test_moves_that_do_not_fit_are_409_with_the_state(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_complete(a, id);
    for (int i = 0; i < 2; i++) {
        api_post(a, NULL, "/v1/traces/%s/%s", id, i == 0 ? "start" : "cancel");
        api_expect_problem(a, 409, "illegal-state");
        assert_string_equal(api_str(a, "state"), "complete");
        assert_string_equal(api_str(a, "trace_id"), id);
        assert_false(a->call.has_changed);
    }
    api_post(a, NULL, "/v1/traces/%s/stop", id);
    api_expect_json(a, 202);
    api_post(a, "{\"now\":true}", "/v1/traces/%s/stop", id);
    api_expect_problem(a, 400, "unknown-field");
    assert_string_equal(api_str(a, "field"), "now");
}

static void test_a_cancelled_trace_can_be_deleted_and_an_active_one_not(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_trace(a, "{\"start\":{\"when\":\"manual\"}}", id);
    api_delete(a, "/v1/traces/%s", id);
    api_expect_problem(a, 409, "illegal-state");
    api_post(a, NULL, "/v1/traces/%s/cancel", id);
    api_expect_json(a, 202);
    rig_work(&a->rig);
    api_get(a, "/v1/traces/%s", id);
    assert_string_equal(api_str(a, "state"), "cancelled");
    assert_int_equal(api_delete(a, "/v1/traces/%s", id), 204);
    assert_int_equal(a->body.len, 0);
    assert_true(a->call.has_changed);
}

static void test_a_trace_that_is_not_there_is_404_everywhere(void **state)
{
    static const struct {
        const char *method, *suffix;
    } cases[] = {
        {"GET", ""},         {"DELETE", ""},       {"POST", "/start"},
        {"POST", "/stop"},   {"POST", "/cancel"},  {"GET", "/watch"},
        {"GET", "/summary"}, {"GET", "/download"}, {"POST", "/events"},
        {"POST", "/files"},
    };
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char target[64];

        snprintf(target, sizeof(target), "/v1/traces/nowhere%s", cases[i].suffix);
        print_message("%s %s\n", cases[i].method, target);
        api_call(a, &(struct api_request){.method = cases[i].method, .target = target});
        api_expect_problem(a, 404, "not-found");
        assert_string_equal(api_str(a, "subject"), "trace");
        assert_string_equal(api_str(a, "name"), "nowhere");
    }
}

static void test_traces_are_listed_newest_first_by_job_and_state(void **state)
{
    struct api_rig *a = *state;
    char first[TP_TRACE_ID_BYTES], second[TP_TRACE_ID_BYTES];

    api_make_complete(a, first);
    rig_wait(&a->rig, RIG_S);
    api_make_trace(a, "{\"job\":\"k\"}", second);
    api_get(a, "/v1/traces?limit=1");
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "items[0].id"), second);
    api_get(a, "/v1/traces?limit=1&cursor=%s", second);
    assert_string_equal(api_str(a, "items[0].id"), first);
    assert_null(api_at(a, "next_cursor"));
    api_get(a, "/v1/traces?state=active");
    assert_int_equal(api_len(a, "items"), 1);
    api_get(a, "/v1/traces?job=j&state=complete");
    assert_string_equal(api_str(a, "items[0].id"), first);
    api_get(a, "/v1/traces?state=paused");
    assert_int_equal(a->call.status, 400);
}

static void test_a_watch_tells_each_state_and_ends_after_the_last(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];
    struct tp_call_stream *s = &a->call.stream;
    struct tp_err err = {0};
    char text[8192];
    size_t got;

    api_make_trace(a, "{\"start\":{\"when\":\"manual\"}}", id);
    api_get(a, "/v1/traces/%s/watch", id);
    assert_string_equal(a->call.content_type, "text/event-stream");
    assert_int_equal(a->stream_code, TP_EAGAIN);
    assert_non_null(strstr(a->body.data, "event: state\n"));
    assert_non_null(strstr(a->body.data, "\"state\":\"prepared\""));
    assert_false(s->ready(s->arg, a->rig.now));
    assert_int_equal(tp_engine_trace_cancel(a->rig.engine, rig_str(id), rig_str(""),
                                            a->rig.now, NULL, &a->rig.problem,
                                            &a->rig.err),
                     TP_OK);
    rig_work(&a->rig);
    rig_wait(&a->rig, RIG_S);
    assert_true(s->ready(s->arg, a->rig.now));
    assert_int_equal(s->read(s->arg, a->rig.now, text, sizeof(text) - 1, &got, &err),
                     TP_OK);
    text[got] = '\0';
    assert_non_null(strstr(text, "\"state\":\"cancelled\""));
    got = 1;
    assert_int_equal(s->read(s->arg, a->rig.now, text, sizeof(text), &got, &err),
                     TP_OK);
    assert_int_equal(got, 0);
}

static void test_a_quiet_watch_is_kept_alive_and_ends_when_stopped(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES], text[256];
    struct tp_call_stream *s = &a->call.stream;
    struct tp_err err = {0};
    size_t got = 0;

    api_make_trace(a, "{\"start\":{\"when\":\"manual\"}}", id);
    api_get(a, "/v1/traces/%s/watch", id);
    rig_wait(&a->rig, 15 * RIG_S);
    assert_true(s->ready(s->arg, a->rig.now));
    assert_int_equal(s->read(s->arg, a->rig.now, text, sizeof(text), &got, &err),
                     TP_OK);
    assert_memory_equal(text, ": keep-alive\n\n", got);
    s->stop(s->arg);
    assert_true(s->ready(s->arg, a->rig.now));
    assert_int_equal(s->read(s->arg, a->rig.now, text, sizeof(text), &got, &err),
                     TP_OK);
    assert_int_equal(got, 0);
}

static bool no_more_watches(void *arg, int change)
{
    *(int *)arg += change;
    return change < 0;
}

static void test_too_many_watches_are_429_with_their_limit(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];
    int count = 0;

    api_make_trace(a, "{\"start\":{\"when\":\"manual\"}}", id);
    a->service.watch_count = no_more_watches;
    a->service.arg = &count;
    api_get(a, "/v1/traces/%s/watch", id);
    api_expect_problem(a, 429, "limit-exceeded");
    assert_string_equal(api_str(a, "limit"), "max-watchers");
    assert_int_equal(count, 1);
}

#define api_test(name) cmocka_unit_test_setup_teardown(name, api_setup, api_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(test_a_trace_goes_from_manual_to_complete),
        api_test(test_producers_are_told_before_the_maker_of_a_trace_is),
        api_test(test_for_a_few_producers_the_answer_does_not_wait),
        api_test(test_the_answer_waits_for_the_start_at_the_longest),
        api_test(test_a_trace_that_is_gone_before_the_answer_is_named_in_it),
        api_test(test_a_body_of_nothing_is_a_trace_with_defaults),
        api_test(test_what_was_asked_for_is_told_again),
        api_test(test_a_dry_run_makes_nothing),
        api_test(test_the_same_key_and_body_get_the_first_trace_again),
        api_test(test_a_key_that_cannot_be_one_is_refused),
        api_test(test_wrong_fields_are_named),
        api_test(test_lists_and_metadata_over_their_limit_name_it),
        api_test(test_an_unknown_type_comes_with_the_nearest),
        api_test(test_a_second_trace_of_a_job_names_the_active_one),
        api_test(test_too_few_producers_are_counted),
        api_test(test_a_full_table_is_429_with_its_limit),
        api_test(test_moves_that_do_not_fit_are_409_with_the_state),
        api_test(test_a_cancelled_trace_can_be_deleted_and_an_active_one_not),
        api_test(test_a_trace_that_is_not_there_is_404_everywhere),
        api_test(test_traces_are_listed_newest_first_by_job_and_state),
        api_test(test_a_watch_tells_each_state_and_ends_after_the_last),
        api_test(test_a_quiet_watch_is_kept_alive_and_ends_when_stopped),
        api_test(test_too_many_watches_are_429_with_their_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
