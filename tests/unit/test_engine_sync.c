/* Syncs of one producer that come in in another order than they were sent. */
#include "support/engine_test.h"

#include <stdio.h>

#include "base/err.h"

static struct tp_sync_reply sync_with(struct rig *r, const char *producer,
                                      const struct tp_sync_request *sync)
{
    struct tp_sync_reply reply;

    assert_int_equal(tp_engine_sync(r->engine, rig_str(producer), sync, r->now, &reply,
                                    &r->problem, &r->err),
                     TP_OK);
    return reply;
}

static uint64_t step_of(struct rig *r, const char *producer)
{
    struct tp_producer_list *list;
    uint64_t step;

    assert_int_equal(tp_engine_producer_get(r->engine, rig_str(producer), r->now, &list,
                                            &r->problem, &r->err),
                     TP_OK);
    step = list->items[0].step;
    tp_producer_list_free(list);
    return step;
}

/* It has begun with step 10 and says so before a sync that was held up on its way, from
 * step 8: it has not gone back, and is not done at 10. */
static void test_a_step_that_was_overtaken_is_no_going_back(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {
        .job = rig_str("j"), .start = TP_START_STEP, .start_step = 10, .stop_steps = 2};
    struct tp_sync_ack acks[2] = {{.command = TP_COMMAND_PREPARE},
                                  {.command = TP_COMMAND_START, .has_step = true}};
    struct tp_sync_request late = {
        .acks = acks, .n_acks = 1, .has_step = true, .step = 8, .seq = 2};
    struct tp_sync_request begun = {
        .acks = acks, .n_acks = 2, .has_step = true, .step = 10, .seq = 3};
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];

    acks[1].step = 10;
    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    acks[0].trace_id = acks[1].trace_id = rig_str(id);
    sync_with(r, p, &(struct tp_sync_request){.has_step = true, .step = 8, .seq = 1});
    sync_with(r, p, &begun);
    rig_expect_state(r, id, "recording");
    sync_with(r, p, &late);
    assert_int_equal(step_of(r, p), 10);
    begun.seq = 4;
    sync_with(r, p, &begun);
    rig_expect_state(r, id, "recording");
    begun.step = 12;
    begun.seq = 5;
    sync_with(r, p, &begun);
    rig_expect_state(r, id, "stopping");
}

/* Fewer counts that were overtaken are no lie, and what was promised last holds. */
static void test_counts_and_heartbeats_that_were_overtaken_are_passed_over(void **state)
{
    struct rig *r = *state;
    struct tp_sync_counts counts = {.emitted = 9};
    struct tp_sync_request sync = {
        .counts = &counts, .n_counts = 1, .heartbeat_ms = 10000, .seq = 2};
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;
    struct tp_sync_reply reply;

    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    reply = rig_sync(r, p, NULL);
    rig_sync(r, p, &reply);
    counts.trace_id = rig_str(id);
    sync_with(r, p, &sync);
    counts.emitted = 4;
    sync.heartbeat_ms = 60000;
    sync.seq = 1;
    sync_with(r, p, &sync);
    view = rig_view(r, id);
    assert_int_equal(view->members[0].reported.emitted, 9);
    assert_string_equal(view->members[0].reason, "");
    tp_trace_view_free(view);
    rig_wait(r, 10 * RIG_S);
    view = rig_view(r, id);
    assert_string_equal(view->members[0].state, "lost");
    tp_trace_view_free(view);
}

/* An ack holds whenever it comes; so who overtakes itself is not asked again. */
static void test_an_ack_that_was_overtaken_counts(void **state)
{
    struct rig *r = *state;
    struct tp_sync_ack ack = {.command = TP_COMMAND_PREPARE};
    struct tp_sync_request late = {.acks = &ack, .n_acks = 1, .seq = 1};
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;

    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    ack.trace_id = rig_str(id);
    reply = sync_with(r, p, &(struct tp_sync_request){.seq = 2});
    assert_int_equal(reply.commands[0].kind, TP_COMMAND_PREPARE);
    reply = sync_with(r, p, &late);
    assert_int_equal(reply.n_commands, 1);
    assert_int_equal(reply.commands[0].kind, TP_COMMAND_START);
}

/* Two producers of a trace: what the orders were answered with. */
static void take_part(struct rig *r, const char *const names[2],
                      char p[2][TP_TRACE_ID_BYTES], char *id)
{
    for (int i = 0; i < 2; i++)
        rig_join(r, names[i], i, p[i]);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rig_sync(r, p[i], NULL).n_commands, 2);
}

/* Its orders were held up until the stop had come: it answers that it has nothing. The
 * trace was complete, with nothing of it. */
static void expect_missed(struct rig *r, bool is_restarted)
{
    struct tp_sync_ack acks[3] = {{.command = TP_COMMAND_PREPARE},
                                  {.command = TP_COMMAND_START},
                                  {.command = TP_COMMAND_STOP}};
    const struct tp_sync_request all = {.acks = acks, .n_acks = 3},
                                 stopped = {.acks = acks + 2, .n_acks = 1};
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    const char *why = is_restarted ? "whether it began is not known since a restart"
                                   : "the stop came before it began";
    struct tp_trace_view *view;
    char reason[128];

    take_part(r, (const char *[]){"p0", "p1"}, p, id);
    for (int i = 0; i < 3; i++)
        acks[i].trace_id = rig_str(id);
    assert_int_equal(rig_native(r, id, p[0], 0, 1, 1, 5), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    if (is_restarted)
        assert_int_equal(rig_restart(r), TP_OK);
    sync_with(r, p[0], &all);
    sync_with(r, p[1], &stopped);
    rig_work(r);
    snprintf(reason, sizeof(reason), "1 producer sent nothing: p1 (%s)", why);
    rig_expect_outcome(r, id, "partial", reason);
    view = rig_view(r, id);
    assert_string_equal(view->members[1].state, "done");
    assert_string_equal(view->members[1].reason, why);
    tp_trace_view_free(view);
}

static void test_who_never_began_is_missed(void **state)
{
    expect_missed(*state, false);
}

static void test_who_never_began_is_missed_after_a_restart(void **state)
{
    expect_missed(*state, true);
}

/* It says so behind the stop: the words were on two connections. */
static void test_who_began_and_had_nothing_to_record_is_not_missed(void **state)
{
    struct rig *r = *state;
    struct tp_sync_ack acks[3] = {{.command = TP_COMMAND_PREPARE},
                                  {.command = TP_COMMAND_START},
                                  {.command = TP_COMMAND_STOP}};
    const struct tp_sync_request all = {.acks = acks, .n_acks = 3};
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;

    take_part(r, (const char *[]){"p0", "p1"}, p, id);
    for (int i = 0; i < 3; i++)
        acks[i].trace_id = rig_str(id);
    acks[1].start_wall_ns = r->now.wall_ns;
    assert_int_equal(rig_native(r, id, p[0], 0, 1, 1, 5), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rig_sync(r, p[i], NULL).commands[0].kind, TP_COMMAND_STOP);
        sync_with(r, p[i], &all);
    }
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    view = rig_view(r, id);
    assert_string_equal(view->members[1].reason, "");
    tp_trace_view_free(view);
}

static void expect_reason(struct rig *r, const char *id, const char *want)
{
    struct tp_trace_view *view = rig_view(r, id);

    assert_string_equal(view->members[0].reason, want);
    tp_trace_view_free(view);
}

/* A restart forgets the numbers, and the row has more than a sync that was held up on
 * its way since before it: that was a lie, and a step back. */
static void test_what_was_overtaken_by_a_restart_is_passed_over(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {.job = rig_str("j"), .stop_steps = 2};
    struct tp_sync_counts counts = {.emitted = 9};
    struct tp_sync_ack ack = {.command = TP_COMMAND_START,
                              .has_step = true,
                              .step = 10};
    struct tp_sync_request begun = {.acks = &ack,
                                    .n_acks = 1,
                                    .counts = &counts,
                                    .n_counts = 1,
                                    .has_step = true,
                                    .step = 10,
                                    .seq = 3};
    struct tp_sync_request late = {
        .counts = &counts, .n_counts = 1, .has_step = true, .step = 8, .seq = 2};
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];

    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    counts.trace_id = ack.trace_id = rig_str(id);
    rig_sync(r, p, NULL);
    sync_with(r, p, &begun);
    for (int i = 0; i < 3; i++) /* until it is in its row */
        rig_wait(r, RIG_S);
    assert_int_equal(rig_restart(r), TP_OK);
    counts.emitted = 4;
    sync_with(r, p, &late);
    expect_reason(r, id, "");
    late.step = 10;
    late.seq = 4;
    sync_with(r, p, &late);
    rig_expect_state(r, id, "recording");
    late.t_server_sent_ns = r->now.wall_ns; /* it has heard of us */
    late.seq = 5;
    sync_with(r, p, &late);
    expect_reason(r, id,
                  "it counted 9 events and then 4: what it counted first is kept");
}

static void cancel(struct rig *r, const char *id)
{
    struct tp_trace_view *view;

    assert_int_equal(tp_engine_trace_cancel(r->engine, rig_str(id), rig_str(""), r->now,
                                            &view, &r->problem, &r->err),
                     TP_OK);
    tp_trace_view_free(view);
}

/* The order to drop the first trace was on its way when the second one was given up,
 * too: it was never said again, and the producer recorded on for the first. */
static void test_who_is_at_a_trace_that_is_over_is_told_to_drop_it(void **state)
{
    struct rig *r = *state;
    struct tp_sync_counts counts = {.emitted = 9};
    const struct tp_sync_request report = {.counts = &counts, .n_counts = 1};
    struct tp_sync_ack ack = {.command = TP_COMMAND_CANCEL};
    char p[TP_TRACE_ID_BYTES], first[TP_TRACE_ID_BYTES], second[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;

    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create(r, "j", NULL, first), TP_OK);
    rig_sync(r, p, NULL);
    counts.trace_id = rig_str(first);
    assert_int_equal(sync_with(r, p, &report).n_commands, 2);
    cancel(r, first);
    assert_int_equal(rig_create(r, "j", NULL, second), TP_OK);
    assert_int_equal(rig_sync(r, p, NULL).n_commands, 3); /* its answer is lost */
    cancel(r, second);
    reply = sync_with(r, p, &report);
    assert_int_equal(reply.n_commands, 1);
    assert_int_equal(reply.commands[0].kind, TP_COMMAND_CANCEL);
    assert_string_equal(reply.commands[0].trace_id, first);
    ack.trace_id = rig_str(first);
    reply = sync_with(r, p, &(struct tp_sync_request){.acks = &ack, .n_acks = 1});
    assert_int_equal(reply.n_commands, 0);
}

/* One that was told by the service before a restart knows which answer is newer. */
static void test_answers_are_in_order_across_a_restart(void **state)
{
    struct rig *r = *state;
    const struct tp_sync_request nothing = {0};
    char p[TP_TRACE_ID_BYTES];
    uint64_t before = 0;

    rig_join(r, "p0", 0, p);
    for (int i = 0; i < 5; i++) {
        const uint64_t seq = sync_with(r, p, &nothing).seq;

        assert_true(seq > before);
        before = seq;
    }
    assert_int_equal(rig_restart(r), TP_OK);
    rig_wait(r, RIG_MS);
    assert_true(sync_with(r, p, &nothing).seq > before);
}

/* A program that was started anew counts anew; the service goes on. */
static void test_a_registration_begins_to_count_anew(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], again[TP_TRACE_ID_BYTES];
    struct tp_sync_reply first, second;

    rig_producer(r, "j", "p0", 0, p);
    first =
        sync_with(r, p,
                  &(struct tp_sync_request){.has_step = true, .step = 70, .seq = 9});
    rig_producer(r, "j", "p0", 0, again);
    assert_string_equal(again, p);
    second =
        sync_with(r, p,
                  &(struct tp_sync_request){.has_step = true, .step = 2, .seq = 1});
    assert_int_equal(step_of(r, p), 2);
    assert_true(second.seq > first.seq);
    assert_true(first.seq > 0);
}

static void test_who_does_not_count_its_syncs_may_go_back(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES];

    rig_producer(r, "j", "p0", 0, p);
    sync_with(r, p, &(struct tp_sync_request){.has_step = true, .step = 70});
    sync_with(r, p, &(struct tp_sync_request){.has_step = true, .step = 2});
    assert_int_equal(step_of(r, p), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_a_step_that_was_overtaken_is_no_going_back),
        engine_test(test_counts_and_heartbeats_that_were_overtaken_are_passed_over),
        engine_test(test_an_ack_that_was_overtaken_counts),
        engine_test(test_who_is_at_a_trace_that_is_over_is_told_to_drop_it),
        engine_test(test_answers_are_in_order_across_a_restart),
        engine_test(test_what_was_overtaken_by_a_restart_is_passed_over),
        engine_test(test_who_never_began_is_missed),
        engine_test(test_who_never_began_is_missed_after_a_restart),
        engine_test(test_who_began_and_had_nothing_to_record_is_not_missed),
        engine_test(test_a_registration_begins_to_count_anew),
        engine_test(test_who_does_not_count_its_syncs_may_go_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
