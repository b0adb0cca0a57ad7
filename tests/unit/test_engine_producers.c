/*
 * Producers that take commands: who is asked, who answers, who is late.
 */
#include "support/engine_test.h"

#include <stdio.h>

#include "base/err.h"
#include "core/activity.h"
#include "core/limits.h"
#include "core/type_counts.h"

/* A trace that asks who takes part waits for what they say. */
static void create_for_all(struct rig *r, const char *include, char *id)
{
    struct tp_str name = rig_str(include);
    struct tp_trace_request request = {.job = rig_str("j"), .require = TP_REQUIRE_ALL};

    if (include != NULL) {
        request.filter.lists[TP_FILTER_INCLUDE].items = &name;
        request.filter.lists[TP_FILTER_INCLUDE].n = 1;
    }
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
}

static void test_all_are_armed_then_started_together_then_stopped(void **state)
{
    struct rig *r = *state;
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply[2];
    char *body = rig_events("kernel", 3, 1);
    struct tp_trace_view *view;

    rig_join(r, "p0", 0, p[0]);
    rig_join(r, "p1", 1, p[1]);
    create_for_all(r, "kernel", id);
    rig_expect_state(r, id, "prepared");
    assert_true(tp_engine_sync_ready(r->engine, rig_str(p[0])));
    for (int i = 0; i < 2; i++) {
        reply[i] = rig_sync(r, p[i], NULL);
        assert_int_equal(reply[i].n_commands, 1);
        assert_int_equal(reply[i].commands[0].kind, TP_COMMAND_PREPARE);
        assert_string_equal(reply[i].commands[0].trace_id, id);
        assert_int_equal(reply[i].commands[0].stream_no, i + 1);
        assert_int_equal(tp_typeset_count(&reply[i].commands[0].types), 1);
        assert_false(tp_engine_sync_ready(r->engine, rig_str(p[i])));
    }
    reply[0] = rig_sync(r, p[0], &reply[0]);
    assert_int_equal(reply[0].n_commands, 0);
    rig_expect_state(r, id, "prepared");
    reply[1] = rig_sync(r, p[1], &reply[1]);
    rig_expect_state(r, id, "recording");
    reply[0] = rig_sync(r, p[0], NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(reply[i].n_commands, 1);
        assert_int_equal(reply[i].commands[0].kind, TP_COMMAND_START);
        assert_true(reply[i].commands[0].start_wall_ns > r->now.wall_ns);
        assert_true(reply[i].commands[0].start_wall_ns ==
                    reply[0].commands[0].start_wall_ns);
        rig_sync(r, p[i], &reply[i]);
        assert_int_equal(rig_post(r, id, i == 0 ? "p0" : "p1", i, 1, body, NULL),
                         TP_OK);
    }
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_state(r, id, "stopping");
    for (int i = 0; i < 2; i++) {
        reply[i] = rig_sync(r, p[i], NULL);
        assert_int_equal(reply[i].commands[0].kind, TP_COMMAND_STOP);
        rig_sync(r, p[i], &reply[i]);
    }
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    view = rig_view(r, id);
    assert_int_equal(view->n_streams, 2);
    assert_int_equal(view->n_matched, 2);
    assert_string_equal(view->members[0].state, "done");
    assert_true(view->has_skew);
    assert_int_equal(view->skew_ns, 0);
    tp_trace_view_free(view);
    free(body);
}

static void test_who_does_not_arm_in_time_is_not_waited_for(void **state)
{
    struct rig *r = *state;
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;
    char *body = rig_events("kernel", 3, 1);

    rig_join(r, "p0", 0, p[0]);
    rig_join(r, "p1", 1, p[1]);
    create_for_all(r, NULL, id);
    reply = rig_sync(r, p[0], NULL);
    rig_sync(r, p[0], &reply);
    rig_wait(r, 1999 * RIG_MS);
    rig_expect_state(r, id, "prepared");
    rig_wait(r, RIG_MS);
    rig_expect_state(r, id, "recording");
    assert_int_equal(rig_post(r, id, "p0", 0, 1, body, NULL), TP_OK);
    reply = rig_sync(r, p[0], NULL);
    rig_sync(r, p[0], &reply);
    assert_int_equal(rig_stop(r, id), TP_OK);
    reply = rig_sync(r, p[0], NULL);
    rig_sync(r, p[0], &reply);
    rig_work(r);
    rig_expect_outcome(r, id, "partial", "1 producer sent nothing: p1");
    free(body);
}

static void test_who_does_not_flush_is_late_and_told_to_drop_it(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;
    char *body = rig_events("kernel", 3, 1);

    rig_join(r, "p0", 0, p);
    create_for_all(r, NULL, id);
    for (int i = 0; i < 3; i++) {
        reply = rig_sync(r, p, i == 0 ? NULL : &reply);
        rig_expect_state(r, id, i == 0 ? "prepared" : "recording");
    }
    assert_int_equal(rig_post(r, id, "p0", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_wait(r, r->limits->trace_stopping_ms * RIG_MS / 2);
    rig_sync(r, p, NULL);
    rig_wait(r, r->limits->trace_stopping_ms * RIG_MS / 2);
    rig_work(r);
    rig_expect_outcome(r, id, "partial", "1 producer not done in time: p0");
    assert_true(tp_engine_sync_ready(r->engine, rig_str(p)));
    reply = rig_sync(r, p, NULL);
    assert_int_equal(reply.n_commands, 1);
    assert_int_equal(reply.commands[0].kind, TP_COMMAND_CANCEL);
    assert_string_equal(reply.commands[0].trace_id, id);
    reply = rig_sync(r, p, &reply);
    assert_int_equal(reply.n_commands, 0);
    free(body);
}

/* What a producer promises counts from the sync that says it, up to the limit. */
static void test_a_producer_is_lost_after_the_heartbeat_that_it_promised(void **state)
{
    static const struct {
        uint64_t heartbeat_ms, seconds;
    } rows[] = {{10000, 10}, {0, 60}, {24 * 3600 * 1000, 60}};
    struct rig *r = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tp_sync_request sync = {.heartbeat_ms = rows[i].heartbeat_ms};
        char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES], job[] = "h0";
        struct tp_sync_reply reply;
        struct tp_trace_view *view;

        job[1] = (char)('0' + i);
        rig_producer(r, job, "p", 0, p);
        rig_sync(r, p, NULL);
        assert_int_equal(rig_create(r, job, NULL, id), TP_OK);
        reply = rig_sync(r, p, NULL);
        rig_sync(r, p, &reply);
        assert_int_equal(tp_engine_sync(r->engine, rig_str(p), &sync, r->now, &reply,
                                        &r->problem, &r->err),
                         TP_OK);
        rig_wait(r, rows[i].seconds * RIG_S - RIG_S);
        view = rig_view(r, id);
        if (strcmp(view->members[0].state, "lost") == 0)
            fail_msg("row %zu: lost too early", i);
        tp_trace_view_free(view);
        rig_wait(r, RIG_S);
        view = rig_view(r, id);
        if (strcmp(view->members[0].state, "lost") != 0)
            fail_msg("row %zu: %s after %llu s", i, view->members[0].state,
                     (unsigned long long)rows[i].seconds);
        tp_trace_view_free(view);
    }
}

static void test_a_silent_producer_is_lost_and_one_that_was_silent_is_stale(
    void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES], other[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;
    struct tp_trace_view *view;

    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    reply = rig_sync(r, p, NULL);
    rig_sync(r, p, &reply);
    rig_wait(r, 60 * RIG_S);
    view = rig_view(r, id);
    assert_string_equal(view->members[0].state, "lost");
    assert_string_equal(view->members[0].reason, "not heard of for 60 s");
    tp_trace_view_free(view);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_state(r, id, "complete");
    rig_wait(r, 15 * RIG_S);
    assert_int_equal(rig_create(r, "j", NULL, other), TP_OK);
    view = rig_view(r, other);
    assert_false(view->members[0].is_matched);
    assert_string_equal(view->members[0].reason, "stale 75 s");
    assert_int_equal(view->n_matched, 0);
    assert_string_equal(view->state, "recording");
    tp_trace_view_free(view);
    /* It comes back: it is given the trace that runs. */
    reply = rig_sync(r, p, NULL);
    assert_int_equal(reply.commands[0].kind, TP_COMMAND_CANCEL);
    assert_int_equal(reply.commands[1].kind, TP_COMMAND_PREPARE);
    assert_int_equal(reply.commands[2].kind, TP_COMMAND_START);
}

static void test_a_late_producer_joins_a_running_trace(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    rig_expect_state(r, id, "recording");
    rig_producer(r, "j", "late", 0, p);
    assert_true(tp_engine_sync_ready(r->engine, rig_str(p)));
    reply = rig_sync(r, p, NULL);
    assert_int_equal(reply.n_commands, 2);
    assert_int_equal(reply.commands[1].kind, TP_COMMAND_START);
}

static void test_a_refusal_is_told_and_not_waited_for(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_ack ack = {.command = TP_COMMAND_PREPARE,
                              .is_refused = true,
                              .reason = rig_str("out of memory")};
    struct tp_sync_request request = {.acks = &ack, .n_acks = 1};
    struct tp_sync_reply reply;
    struct tp_trace_view *view;

    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    ack.trace_id = rig_str(id);
    assert_int_equal(tp_engine_sync(r->engine, rig_str(p), &request, r->now, &reply,
                                    &r->problem, &r->err),
                     TP_OK);
    view = rig_view(r, id);
    assert_string_equal(view->state, "recording");
    assert_string_equal(view->members[0].state, "refused");
    assert_string_equal(view->members[0].reason, "out of memory");
    tp_trace_view_free(view);
}

static void test_counts_that_do_not_add_up_are_refused_and_others_are_kept(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_counts counts = {.emitted = 10, .filtered = 4};
    struct tp_sync_request sync = {.counts = &counts, .n_counts = 1};
    struct tp_sync_reply reply;
    char *body = rig_events("kernel", 3, 1);
    struct tp_trace_view *view;

    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (int i = 0; i < 3; i++)
        reply = rig_sync(r, p, i == 0 ? NULL : &reply);
    assert_int_equal(rig_post(r, id, "p0", 0, 1, body, NULL), TP_OK);
    counts.trace_id = rig_str(id);
    counts.dropped[TP_DROP_RING_FULL] = 7;
    assert_int_equal(tp_engine_sync(r->engine, rig_str(p), &sync, r->now, &reply,
                                    &r->problem, &r->err),
                     TP_EINVAL);
    counts.dropped[TP_DROP_RING_FULL] = 2;
    assert_int_equal(tp_engine_sync(r->engine, rig_str(p), &sync, r->now, &reply,
                                    &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    reply = rig_sync(r, p, NULL);
    rig_sync(r, p, &reply);
    rig_work(r);
    view = rig_view(r, id);
    /* 10 = 3 stored + 4 filtered + 2 that its ring had no room for + 1 that never came.
     * */
    assert_int_equal(view->totals.emitted, 10);
    assert_int_equal(view->totals.dropped[TP_DROP_RING_FULL], 2);
    assert_int_equal(view->totals.dropped[TP_DROP_LOST], 1);
    assert_string_equal(view->outcome, "lossy");
    tp_trace_view_free(view);
    free(body);
}

static void test_the_best_clock_exchange_counts(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES];
    struct tp_sync_request sync = {.t_sent_ns = 1000,
                                   .t_server_received_ns = 500100,
                                   .t_server_sent_ns = 500200,
                                   .t_received_ns = 1300};
    struct tp_producer_list *list;
    struct tp_sync_reply reply;

    rig_join(r, "p0", 0, p);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tp_engine_sync(r->engine, rig_str(p), &sync, r->now, &reply,
                                        &r->problem, &r->err),
                         TP_OK);
        sync.t_received_ns = 9000; /* a worse one, which does not count */
    }
    assert_int_equal(tp_engine_producer_get(r->engine, rig_str(p), r->now, &list,
                                            &r->problem, &r->err),
                     TP_OK);
    assert_true(list->items[0].has_clock);
    assert_int_equal(list->items[0].clock_offset_ns, 499000);
    assert_int_equal(list->items[0].clock_error_ns, 101);
    tp_producer_list_free(list);
}

static void test_a_restart_gives_the_same_commands_again(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;

    rig_join(r, "p0", 0, p);
    create_for_all(r, NULL, id);
    reply = rig_sync(r, p, NULL);
    assert_int_equal(rig_restart(r), TP_OK);
    rig_expect_state(r, id, "prepared");
    reply = rig_sync(r, p, NULL);
    assert_int_equal(reply.commands[0].kind, TP_COMMAND_PREPARE);
    reply = rig_sync(r, p, &reply);
    rig_expect_state(r, id, "recording");
    assert_int_equal(reply.commands[0].kind, TP_COMMAND_START);
    rig_sync(r, p, &reply);
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_expect_state(r, id, "stopping");
    reply = rig_sync(r, p, NULL);
    assert_int_equal(reply.commands[0].kind, TP_COMMAND_STOP);
    rig_sync(r, p, &reply);
    rig_work(r);
    rig_expect_outcome(r, id, "empty",
                       "1 producer sent nothing: p0 (whether it began is not known "
                       "since a restart)"); /* which came within the second */
}

static void test_registering_again_is_the_same_producer(void **state)
{
    struct rig *r = *state;
    char a[TP_TRACE_ID_BYTES], b[TP_TRACE_ID_BYTES];

    rig_producer(r, "j", "p0", 0, a);
    rig_producer(r, "j", "p0", 0, b);
    assert_string_equal(a, b);
    rig_producer(r, "k", "p0", 0, b);
    assert_string_not_equal(a, b);
    assert_int_equal(tp_engine_producer_delete(r->engine, rig_str(a), r->now,
                                               &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(tp_engine_producer_delete(r->engine, rig_str(a), r->now,
                                               &r->problem, &r->err),
                     TP_ENOTFOUND);
    assert_true(tp_engine_sync_ready(r->engine, rig_str(a)));
    r->limits->producers_per_job = 1;
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(r->recovery.producers, 1);
}

static void test_lists_of_producers_go_by_page(void **state)
{
    struct rig *r = *state;
    struct tp_producer_query query = {.job = rig_str("j"), .limit = 2};
    struct tp_producer_list *list;
    char id[TP_TRACE_ID_BYTES], last[TP_TRACE_ID_BYTES] = "";
    size_t n = 0;
    bool has_more = true;

    rig_ask_for_id(r, "j", "7zzzzzzzzzzzzzzzzzzzzzzzzz", 0, id); /* in no order */
    rig_ask_for_id(r, "j", "00000000000000000000000010", 0, id);
    for (int i = 0; i < 5; i++)
        rig_producer(r, i == 2 ? "k" : "j", "p", i, id);
    rig_ask_for_id(r, "j", "01m8pwgezv8xjyd24jtcnp309p", 0, id);
    rig_ask_for_id(r, "j", "00000000000000000000000020", 0, id);
    while (has_more) {
        assert_int_equal(tp_engine_producers_list(r->engine, &query, r->now, &list,
                                                  &r->problem, &r->err),
                         TP_OK);
        for (size_t i = 0; i < list->n; i++) {
            assert_true(strcmp(last, list->items[i].id) < 0);
            memcpy(last, list->items[i].id, sizeof(last));
        }
        n += list->n;
        has_more = list->has_more;
        memcpy(id, list->items[list->n - 1].id, sizeof(id));
        query.after = rig_str(id);
        tp_producer_list_free(list);
    }
    assert_int_equal(n, 8);
}

static void test_what_is_posted_under_a_name_belongs_to_that_producer(void **state)
{
    struct rig *r = *state;
    struct tp_producer_request request = {.job = rig_str("j"),
                                          .name = rig_str("loader"),
                                          .rank = 3,
                                          .world_size = 8,
                                          .host = rig_str("node3"),
                                          .pid = 77};
    struct tp_producer_list *list;
    struct tp_upload_reply reply;
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(tp_engine_producer_register(r->engine, &request, r->now, &list,
                                                 &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    rig_expect_state(r, id, "recording");
    assert_int_equal(rig_post(r, id, "loader", -1, 1, "[]", &reply), TP_OK);
    assert_int_equal(reply.rank, 3);
    assert_int_equal(rig_post(r, id, list->items[0].id, -1, 2, "[]", &reply), TP_OK);
    assert_int_equal(reply.stream_no, 1);
    view = rig_view(r, id);
    assert_int_equal(view->n_streams, 1);
    assert_string_equal(view->streams[0].who.host, "node3");
    assert_int_equal(view->streams[0].who.world_size, 8);
    assert_int_equal(view->members[0].stream_no, 1);
    assert_string_equal(view->members[0].state, "recording");
    tp_trace_view_free(view);
    tp_producer_list_free(list);
}

/* One sync with what a producer says of its events in all and by type. */
static int report(struct rig *r, const char *p, const char *trace,
                  const struct tp_type_counts *types, const struct tp_counts *all)
{
    struct tp_sync_counts counts = {.trace_id = rig_str(trace),
                                    .emitted = all->emitted,
                                    .filtered = all->filtered,
                                    .types = types};
    struct tp_sync_request request = {.counts = &counts, .n_counts = 1};
    struct tp_sync_reply reply;

    memcpy(counts.dropped, all->dropped, sizeof(counts.dropped));
    return tp_engine_sync(r->engine, rig_str(p), &request, r->now, &reply, &r->problem,
                          &r->err);
}

/* Prepare and start, as one willing producer. */
static void record(struct rig *r, const char *p, char *id)
{
    struct tp_sync_reply reply;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    reply = rig_sync(r, p, NULL);
    reply = rig_sync(r, p, &reply);
    rig_sync(r, p, &reply);
    rig_expect_state(r, id, "recording");
}

static void finish(struct rig *r, const char *p, const char *id)
{
    struct tp_sync_reply reply;

    assert_int_equal(rig_stop(r, id), TP_OK);
    reply = rig_sync(r, p, NULL);
    rig_sync(r, p, &reply);
    rig_work(r);
}

/* Emitted = stored + filtered + dropped for each type, before and after a restart. */
static void test_counts_by_type_add_up_and_outlive_a_restart(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_type_counts types = {0};
    struct tp_counts all = {.emitted = 12, .filtered = 1};
    struct tp_type_count *kernel, *other;
    char *body = rig_events("kernel", 7, 1);

    rig_join(r, "p0", 0, p);
    record(r, p, id);
    assert_int_equal(tp_type_counts_get(&types, TP_ACTIVITY_CONCURRENT_KERNEL, &kernel,
                                        NULL),
                     TP_OK);
    kernel->emitted = 10;
    kernel->filtered = 1;
    kernel->dropped[TP_DROP_RING_FULL] = all.dropped[TP_DROP_RING_FULL] = 2;
    assert_int_equal(report(r, p, id, &types, &all), TP_EINVAL);
    assert_int_equal(tp_type_counts_get(&types, 200, &other, NULL), TP_OK);
    other->emitted = 2;
    assert_int_equal(report(r, p, id, &types, &all), TP_OK);
    assert_int_equal(rig_post(r, id, p, -1, 1, body, NULL), TP_OK);
    finish(r, p, id);
    rig_expect_outcome(r, id, "lossy",
                       "4 events dropped (producer-ring-full 2, producer-lost 2)");
    for (int restarted = 0; restarted < 2; restarted++) {
        struct tp_trace_view *view = rig_view(r, id);
        const struct tp_member_view *m = &view->members[0];

        assert_int_equal(m->counts.emitted, 12);
        assert_int_equal(m->counts.stored, 7);
        assert_int_equal(m->counts.filtered, 1);
        assert_int_equal(tp_counts_dropped(&m->counts), 4);
        assert_int_equal(m->n_types, 2);
        assert_int_equal(m->types[0].emitted, 10);
        assert_int_equal(m->types[0].stored, 7);
        assert_int_equal(m->types[0].filtered, 1);
        assert_int_equal(m->types[0].dropped[TP_DROP_RING_FULL], 2);
        assert_int_equal(m->types[0].dropped[TP_DROP_LOST], 0);
        assert_int_equal(m->types[1].stored, 0);
        assert_int_equal(m->types[1].dropped[TP_DROP_LOST], 2);
        tp_trace_view_free(view);
        if (!restarted)
            assert_int_equal(rig_restart(r), TP_OK);
    }
    tp_type_counts_fini(&types);
    free(body);
}

/* The names of a process and its threads are events of no type, and stored as such. */
static void test_events_without_a_type_are_stored_and_not_lost(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_type_counts types = {0};
    const struct tp_counts all = {.emitted = 5};
    struct tp_type_count *count;
    char *kernels = rig_events("kernel", 3, 1), *untyped = rig_events("", 2, 9);
    struct tp_trace_view *view;

    rig_join(r, "p0", 0, p);
    record(r, p, id);
    assert_int_equal(
        tp_type_counts_get(&types, TP_ACTIVITY_CONCURRENT_KERNEL, &count, NULL), TP_OK);
    count->emitted = 3;
    assert_int_equal(tp_type_counts_get(&types, TP_ACTIVITY_UNTYPED, &count, NULL),
                     TP_OK);
    count->emitted = 2;
    assert_int_equal(report(r, p, id, &types, &all), TP_OK);
    assert_int_equal(rig_post(r, id, p, -1, 1, kernels, NULL), TP_OK);
    assert_int_equal(rig_post(r, id, p, -1, 2, untyped, NULL), TP_OK);
    finish(r, p, id);
    view = rig_view(r, id);
    assert_int_equal(view->members[0].n_types, 2);
    for (int i = 0; i < 2; i++) {
        const struct tp_type_count *t = &view->members[0].types[i];

        assert_int_equal(t->stored, t->emitted);
        assert_int_equal(t->dropped[TP_DROP_LOST], 0);
    }
    tp_trace_view_free(view);
    tp_type_counts_fini(&types);
    free(kernels);
    free(untyped);
}

/* A process was killed and came again under its name and rank: its batches count from
 * one, and must not be taken for those of the dead one. */
static void test_two_processes_of_one_name_have_a_stream_each(void **state)
{
    struct rig *r = *state;
    struct tp_producer_request request = {.job = rig_str("j"),
                                          .name = rig_str("p0"),
                                          .kind = rig_str("native"),
                                          .rank = 0,
                                          .pid = 100};
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    char *body = rig_events("kernel", 3, 1);
    struct tp_trace_view *view;

    for (int i = 0; i < 2; i++) {
        struct tp_producer_list *list;

        request.pid++;
        assert_int_equal(tp_engine_producer_register(r->engine, &request, r->now, &list,
                                                     &r->problem, &r->err),
                         TP_OK);
        snprintf(p[i], sizeof(p[i]), "%s", list->items[0].id);
        tp_producer_list_free(list);
        if (i == 0)
            record(r, rig_sync(r, p[0], NULL).n_commands == 0 ? p[0] : "", id);
        else
            rig_sync(r, p[1], NULL);
        assert_int_equal(rig_post(r, id, p[i], -1, 1, body, NULL), TP_OK);
    }
    view = rig_view(r, id);
    assert_int_equal(view->n_streams, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(view->streams[i].counts.stored, 3);
        assert_int_equal(view->streams[i].duplicate_batches, 0);
        assert_int_equal(view->members[i].stream_no, i + 1);
    }
    tp_trace_view_free(view);
    free(body);
}

/* The number is in each batch of a linked producer: it must be the same after a restart
 * that came before the first batch. */
static void test_stream_numbers_are_kept_by_a_restart(void **state)
{
    struct rig *r = *state;
    char p[3][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;
    char *body = rig_events("kernel", 3, 1);
    struct tp_trace_view *view;

    for (int i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof(name), "p%d", i);
        rig_join(r, name, i, p[i]);
    }
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_restart(r), TP_OK);
    for (int i = 2; i >= 0; i--) {
        reply = rig_sync(r, p[i], NULL);
        assert_int_equal(reply.commands[0].stream_no, i + 1);
        rig_sync(r, p[i], &reply);
    }
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(rig_post(r, id, p[2], -1, 1, body, NULL), TP_OK);
    view = rig_view(r, id);
    assert_int_equal(view->n_streams, 1);
    assert_int_equal(view->streams[0].no, 3);
    assert_string_equal(view->streams[0].who.name, "p2");
    tp_trace_view_free(view);
    free(body);
}

/* Calls take the lock in another order than they took the time: a producer that was
 * heard of after a trace was asked for had been taken for one that is silent for ages.
 */
static void test_who_is_heard_of_a_moment_later_is_not_stale(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;
    struct tp_sync_reply reply;

    rig_producer(r, "j", "p0", 0, p);
    r->now.mono_ns += RIG_MS;
    rig_sync(r, p, NULL);
    r->now.mono_ns -= RIG_MS;
    create_for_all(r, NULL, id);
    view = rig_view(r, id);
    assert_int_equal(view->n_matched, 1);
    assert_string_equal(view->members[0].state, "waiting");
    tp_trace_view_free(view);
    reply = rig_sync(r, p, NULL);
    r->now.mono_ns += RIG_MS;
    rig_sync(r, p, &reply);
    r->now.mono_ns -= RIG_MS;
    rig_wait(r, 0);
    view = rig_view(r, id);
    assert_string_equal(view->members[0].state, "armed");
    tp_trace_view_free(view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_all_are_armed_then_started_together_then_stopped),
        engine_test(test_who_does_not_arm_in_time_is_not_waited_for),
        engine_test(test_who_does_not_flush_is_late_and_told_to_drop_it),
        engine_test(test_a_producer_is_lost_after_the_heartbeat_that_it_promised),
        engine_test(test_a_silent_producer_is_lost_and_one_that_was_silent_is_stale),
        engine_test(test_a_late_producer_joins_a_running_trace),
        engine_test(test_a_refusal_is_told_and_not_waited_for),
        engine_test(test_counts_that_do_not_add_up_are_refused_and_others_are_kept),
        engine_test(test_the_best_clock_exchange_counts),
        engine_test(test_a_restart_gives_the_same_commands_again),
        engine_test(test_registering_again_is_the_same_producer),
        engine_test(test_lists_of_producers_go_by_page),
        engine_test(test_what_is_posted_under_a_name_belongs_to_that_producer),
        engine_test(test_counts_by_type_add_up_and_outlive_a_restart),
        engine_test(test_events_without_a_type_are_stored_and_not_lost),
        engine_test(test_two_processes_of_one_name_have_a_stream_each),
        engine_test(test_stream_numbers_are_kept_by_a_restart),
        engine_test(test_who_is_heard_of_a_moment_later_is_not_stale),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
