/* What the answers of a service do to an agent that has no thread: they are given to it
 * one by one, and it says nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <traceplane/traceplane.h>
#include <cmocka.h>

#include "base/err.h"
#include "producer/agent_state.h"

#define MS TP_AGENT_NS_PER_MS
#define S (1000 * MS)

struct rig {
    struct tp_recorder *recorder;
    struct tp_agent *agent;
};

static const char *no_variable(const char *name, void *arg)
{
    (void)name;
    (void)arg;
    return NULL;
}

static int set_up(void **state)
{
    static struct rig rig;
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .url = "http://127.0.0.1:1"};
    struct tp_settings settings;

    assert_int_equal(tp_settings_load(&options, no_variable, NULL, &settings, NULL),
                     TP_OK);
    assert_int_equal(tp_recorder_new(NULL, &rig.recorder, NULL), TP_OK);
    assert_int_equal(tp_agent_new(&settings, &rig.agent, NULL), TP_OK);
    rig.agent->recorder = rig.recorder;
    tp_part_init(&rig.agent->part, rig.recorder, 1 << 20);
    *state = &rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    tp_agent_free(rig->agent);
    tp_recorder_free(rig->recorder);
    return 0;
}

/* Give an answer with one command: to what was sent at sent_ns, and come at now_ns. */
static void answer(struct rig *rig, enum tp_link_channel channel, uint64_t sent_ns,
                   uint64_t now_ns, uint64_t seq, const char *command,
                   const char *trace)
{
    struct tp_agent *a = rig->agent;
    char body[256];
    struct tp_link_reply reply = {.status = 200};

    (channel == TP_LINK_POLL ? &a->poll : &a->report)->sent_ns = (int64_t)sent_ns;
    snprintf(body, sizeof(body),
             "{\"commands\":[{\"command\":\"%s\",\"trace_id\":\"%s\",\"stream\":1,"
             "\"types\":[]}],\"seq\":%llu}",
             command, trace, (unsigned long long)seq);
    reply.body = tp_str_of(body);
    tp_agent_synced(a, channel, &reply, now_ns);
}

/* The trace at hand and what is acknowledged, as "t2: prepare t1, prepare t2". */
static void expect(struct rig *rig, const char *want)
{
    const struct tp_part *p = &rig->agent->part;
    char got[256];
    int n = snprintf(got, sizeof(got), "%s:", p->trace_id);

    for (size_t i = 0; i < p->n_acks; i++)
        n += snprintf(got + n, sizeof(got) - (size_t)n, "%s %s %s", i == 0 ? "" : ",",
                      tp_order_name(p->acks[i].kind), p->acks[i].trace_id);
    assert_string_equal(got, want);
}

static void test_an_order_that_was_overtaken_is_not_obeyed(void **state)
{
    struct rig *rig = *state;

    answer(rig, TP_LINK_POLL, 10, 20, 1, "prepare", "t1");
    /* Both of these were under way when t1 was given up for t2. */
    answer(rig, TP_LINK_POLL, 30, 50, 3, "cancel", "t1");
    answer(rig, TP_LINK_POLL, 51, 60, 4, "prepare", "t2");
    answer(rig, TP_LINK_REPORT, 40, 70, 2, "prepare", "t1");
    expect(rig, "t2: prepare t1, cancel t1, prepare t2");
}

static void test_in_the_order_of_the_service_all_are_obeyed(void **state)
{
    struct rig *rig = *state;

    answer(rig, TP_LINK_POLL, 10, 50, 3, "prepare", "t1");
    answer(rig, TP_LINK_REPORT, 20, 60, 4, "cancel", "t1");
    answer(rig, TP_LINK_POLL, 61, 70, 5, "prepare", "t2");
    expect(rig, "t2: prepare t1, cancel t1, prepare t2");
}

/* It counts from 1 again, and nothing that it says is old. */
static void test_a_service_that_started_anew_is_obeyed(void **state)
{
    struct rig *rig = *state;

    answer(rig, TP_LINK_POLL, 10, 20, 70, "prepare", "t1");
    answer(rig, TP_LINK_POLL, 21, 30, 1, "cancel", "t1");
    answer(rig, TP_LINK_POLL, 31, 40, 2, "prepare", "t2");
    expect(rig, "t2: prepare t1, cancel t1, prepare t2");
}

static void test_a_service_that_does_not_count_is_obeyed(void **state)
{
    struct rig *rig = *state;

    answer(rig, TP_LINK_POLL, 10, 20, 5, "prepare", "t1");
    answer(rig, TP_LINK_REPORT, 10, 30, 0, "cancel", "t1");
    expect(rig, "t1: prepare t1, cancel t1");
}

static void test_what_is_said_ahead_counts(void **state)
{
    struct rig *rig = *state;
    static const char ahead[] =
        "{\"commands\":[{\"command\":\"prepare\",\"trace_id\":\"t2\",\"stream\":2,"
        "\"types\":[]}],\"seq\":8}";

    rig->agent->poll.sent_ns = 10;
    tp_agent_heard_ahead(rig->agent, tp_str_of(ahead), 20);
    answer(rig, TP_LINK_REPORT, 15, 30, 7, "prepare", "t1");
    expect(rig, "t2: prepare t2");
    tp_agent_heard_ahead(rig->agent, tp_str_of(ahead), 40); /* the same again */
    answer(rig, TP_LINK_POLL, 10, 50, 9, "cancel", "t2");
    expect(rig, "t2: prepare t2, cancel t2");
}

/* A trace that is on keeps new types out, and its end may be far. */
static void test_a_frozen_registry_is_asked_again_after_1_to_32_seconds(void **state)
{
    static const uint64_t waits_s[] = {1, 2, 4, 8, 16, 32, 32};
    struct tp_link_reply reply = {
        .status = 409,
        .body = tp_str_of("{\"type\":\"urn:traceplane:problem:registry-frozen\"}")};
    struct rig *rig = *state;
    uint64_t now_ns = 1000;
    unsigned type = TP_TYPE_NONE;

    assert_int_equal(tp_register_type(tp_recorder_client(rig->recorder), "demo", "LATE",
                                      TP_KIND_SLICE, NULL, &type, NULL),
                     TP_OK);
    for (size_t i = 0; i < sizeof(waits_s) / sizeof(*waits_s); i++) {
        rig->agent->call = TP_CALL_TYPES;
        rig->agent->n_types_asked = 1;
        tp_agent_registered(rig->agent, &reply, now_ns);
        if (rig->agent->types_retry_ns - now_ns != waits_s[i] * S)
            fail_msg("wait %zu is %llu ns", i,
                     (unsigned long long)(rig->agent->types_retry_ns - now_ns));
        now_ns = rig->agent->types_retry_ns;
    }
    assert_int_equal(rig->agent->n_types_known, 0);
}

/* A service without its data forgets once; one that never remembers is asked less. */
static void test_who_is_forgotten_within_ten_seconds_waits(void **state)
{
    struct rig *rig = *state;
    struct tp_agent *a = rig->agent;

    tp_agent_forget(a, 100 * S);
    assert_int_equal(a->again_ns, 0);
    a->known_ns = 101 * S;
    tp_agent_forget(a, 111 * S);
    assert_in_range(a->again_ns, 111 * S + 25 * MS, 111 * S + 50 * MS);
    a->known_ns = 112 * S;
    tp_agent_forget(a, 112 * S);
    assert_in_range(a->again_ns, 112 * S + 50 * MS, 112 * S + 100 * MS);
    a->known_ns = 113 * S;
    tp_agent_forget(a, 123 * S + 1);
    assert_int_equal(a->again_ns, 0);
}

/* Two libraries in a process may open theirs at one moment. */
static void test_two_clients_of_one_moment_ask_for_two_ids(void **state)
{
    char ids[20][TP_ULID_BYTES];

    (void)state;
    for (int i = 0; i < 20; i++) {
        void *one = NULL;

        set_up(&one);
        memcpy(ids[i], ((struct rig *)one)->agent->own_id, sizeof(ids[i]));
        tear_down(&one);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(ids[i], ids[k]);
    }
}

/* For the farewell a quarter of the bound is kept, and half a second at most. */
static void test_of_a_long_bound_nearly_all_is_for_what_is_unsent(void **state)
{
    static const struct {
        uint64_t bound_ms, farewell_ms;
    } of[] = {{0, 0}, {1000, 250}, {2000, 500}, {60000, 500}};

    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        struct rig *rig = *state;
        struct tp_agent *a = rig->agent;

        a->has_thread = true;
        a->is_ending = false;
        tp_agent_ask_to_end(a, of[i].bound_ms, false);
        a->has_thread = false;
        assert_int_equal(a->end_ns - a->cut_ns, of[i].farewell_ms * MS);
    }
}

/* A poll that is lost on its way without a word is like one that is held: the ack of a
 * stop was with the service when the poll was given up, after 45 s. */
static void test_acks_of_a_poll_that_is_not_answered_go_with_a_report(void **state)
{
    const uint64_t report_ns = UINT64_C(2000000000);
    struct rig *rig = *state;
    struct tp_agent *a = rig->agent;
    uint64_t sent_ns;

    snprintf(a->id, sizeof(a->id), "p");
    answer(rig, TP_LINK_POLL, 1, 2, 1, "stop", "t1");
    expect(rig, ": stop t1");
    tp_agent_sync(a, tp_now());
    assert_true(tp_link_is_busy(a->link, TP_LINK_POLL));
    sent_ns = (uint64_t)a->poll.sent_ns;
    assert_int_equal(tp_agent_acks_due(a, sent_ns), sent_ns + report_ns);
    tp_agent_sync(a, sent_ns + report_ns - 1);
    assert_false(tp_link_is_busy(a->link, TP_LINK_REPORT));
    tp_agent_sync(a, sent_ns + report_ns);
    assert_true(tp_link_is_busy(a->link, TP_LINK_REPORT));
    assert_int_equal(a->report.n_acks, 1);
    tp_link_drop(a->link, TP_LINK_REPORT);
    answer(rig, TP_LINK_REPORT, sent_ns + 1, sent_ns + 2, 2, "none", "");
    assert_int_equal(a->part.n_acks, 0);
    assert_true(tp_agent_acks_due(a, sent_ns) == TP_AGENT_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_order_that_was_overtaken_is_not_obeyed,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_in_the_order_of_the_service_all_are_obeyed,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_service_that_started_anew_is_obeyed,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_service_that_does_not_count_is_obeyed,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_said_ahead_counts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_frozen_registry_is_asked_again_after_1_to_32_seconds, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(test_who_is_forgotten_within_ten_seconds_waits,
                                        set_up, tear_down),
        cmocka_unit_test(test_two_clients_of_one_moment_ask_for_two_ids),
        cmocka_unit_test_setup_teardown(
            test_of_a_long_bound_nearly_all_is_for_what_is_unsent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_acks_of_a_poll_that_is_not_answered_go_with_a_report, set_up,
            tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
