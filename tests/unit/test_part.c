/* The part that a producer takes in a trace, with a real recorder and no service. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <string.h>
#include <traceplane/traceplane.h>
#include <cmocka.h>

#include "base/err.h"
#include "producer/part.h"
#include "producer/recorder.h"
#include "support/fault.h"

#define MS 1000000u

struct rig {
    struct tp_recorder *recorder;
    struct tp_client *client;
    unsigned type;
    struct tp_part part;
    struct tp_typeset types;
    struct tp_clock_offset offset;
};

static void rig_init_with(struct rig *rig, const struct tp_recorder_opts *opts)
{
    memset(rig, 0, sizeof(*rig));
    rig->type = TP_TYPE_NONE;
    assert_int_equal(tp_recorder_new(opts, &rig->recorder, NULL), TP_OK);
    rig->client = tp_recorder_client(rig->recorder);
    assert_int_equal(tp_register_type(rig->client, "p", "A", TP_KIND_SLICE, NULL,
                                      &rig->type, NULL),
                     TP_OK);
    tp_typeset_add(&rig->types, rig->type);
    tp_part_init(&rig->part, rig->recorder, 1 << 20);
}

static void rig_init(struct rig *rig)
{
    rig_init_with(rig, NULL);
}

static void rig_fini(struct rig *rig)
{
    tp_part_fini(&rig->part);
    tp_recorder_free(rig->recorder);
}

static void obey(struct rig *rig, enum tp_order_kind kind, const char *trace,
                 const struct tp_order *more)
{
    struct tp_order order = {0};

    if (more != NULL)
        order = *more;
    order.kind = kind;
    memcpy(order.trace_id, trace, strlen(trace) + 1);
    if (kind == TP_ORDER_PREPARE && more == NULL)
        order.stream_no = 1;
    tp_part_obey(&rig->part, &order, &rig->types, &rig->offset, tp_now());
}

static void record(struct rig *rig, int n)
{
    for (int i = 0; i < n; i++) {
        TP_BEGIN(rig->client, rig->type, "slice");
        TP_END(rig->client, rig->type);
    }
}

/* The acks that wait, as "prepare t; start t", and none afterwards. */
static void assert_acks(struct rig *rig, const char *want)
{
    char text[256] = "";

    for (size_t i = 0; i < rig->part.n_acks; i++) {
        const struct tp_ack *a = &rig->part.acks[i];
        size_t n = strlen(text);

        snprintf(text + n, sizeof(text) - n, "%s%s%s %s", i == 0 ? "" : "; ",
                 a->is_refused ? "no " : "", tp_order_name(a->kind), a->trace_id);
    }
    assert_string_equal(text, want);
    tp_part_acked(&rig->part, rig->part.n_acks);
}

static void start(struct rig *rig, const char *trace, const struct tp_order *more)
{
    obey(rig, TP_ORDER_PREPARE, trace, NULL);
    obey(rig, TP_ORDER_START, trace, more);
    tp_part_advance(&rig->part, tp_now());
    assert_int_equal(rig->part.state, TP_PART_RECORDING);
    tp_part_acked(&rig->part, rig->part.n_acks);
}

static void drain(struct rig *rig)
{
    do
        assert_int_equal(tp_part_drain(&rig->part, &rig->offset, NULL), TP_OK);
    while (rig->part.has_events);
}

/* A device tells of its kernels in buffers, some of them after the stop. */
static void test_what_is_reported_late_is_of_the_trace_if_it_began_in_it(void **state)
{
    const struct tp_recorder_opts opts = {.takes_late = true};
    struct tp_interval when = {.duration_ns = 5};
    struct tp_recorder_totals totals;
    struct rig rig;
    uint64_t end_ns;

    (void)state;
    rig_init_with(&rig, &opts);
    rig.part.late_ns = 3600000 * (uint64_t)MS;
    start(&rig, "t", NULL);
    when.start_ns = tp_now();
    obey(&rig, TP_ORDER_STOP, "t", NULL);
    assert_false(tp_recorder_is_recording(rig.recorder));
    drain(&rig);
    assert_acks(&rig, ""); /* more may come */
    end_ns = tp_part_advance(&rig.part, tp_now());
    assert_true(end_ns > tp_now() && end_ns != UINT64_MAX);
    TP_COMPLETE(rig.client, rig.type, "kernel", &when);
    when.start_ns = end_ns;
    TP_COMPLETE(rig.client, rig.type, "kernel after the stop", &when);
    record(&rig, 1); /* this, too, but it is not the program who says so */
    assert_int_equal(tp_part_advance(&rig.part, end_ns), UINT64_MAX);
    assert_false(tp_enabled(rig.client, rig.type));
    drain(&rig);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.emitted[rig.type], 2);
    assert_int_equal(totals.filtered[rig.type], 1);
    tp_part_sent(&rig.part);
    assert_acks(&rig, "stop t");
    assert_int_equal(rig.part.state, TP_PART_DONE);
    rig_fini(&rig);
}

/* A cancel, or a service that takes no more, does not wait for what is late. */
static void test_what_is_late_for_a_trace_that_is_given_up_is_not_waited_for(
    void **state)
{
    const struct tp_recorder_opts opts = {.takes_late = true};
    struct rig rig;

    (void)state;
    for (int i = 0; i < 2; i++) {
        rig_init_with(&rig, &opts);
        rig.part.late_ns = 3600000 * (uint64_t)MS;
        start(&rig, "t", NULL);
        obey(&rig, TP_ORDER_STOP, "t", NULL);
        if (i == 0)
            obey(&rig, TP_ORDER_CANCEL, "t", NULL);
        else
            tp_part_give_up(&rig.part);
        if (tp_enabled(rig.client, rig.type) || rig.part.state != TP_PART_DONE ||
            tp_part_advance(&rig.part, tp_now()) != UINT64_MAX)
            fail_msg("%s", i == 0 ? "cancel" : "give up");
        start(&rig, "u", NULL); /* the next one is as new */
        rig_fini(&rig);
    }
}

static void test_a_trace_goes_from_prepare_to_done(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    obey(&rig, TP_ORDER_PREPARE, "t", NULL);
    assert_acks(&rig, "prepare t");
    assert_false(tp_enabled(rig.client, rig.type));
    obey(&rig, TP_ORDER_START, "t", NULL);
    assert_acks(&rig, "");
    tp_part_advance(&rig.part, tp_now());
    assert_acks(&rig, "start t");
    record(&rig, 10);
    drain(&rig);
    assert_non_null(rig.part.backlog.first);
    obey(&rig, TP_ORDER_STOP, "t", NULL);
    record(&rig, 10);
    drain(&rig);
    assert_acks(&rig, ""); /* not before the service has the batch */
    while (rig.part.backlog.first != NULL)
        tp_part_sent(&rig.part);
    assert_acks(&rig, "stop t");
    assert_int_equal(rig.part.state, TP_PART_DONE);
    rig_fini(&rig);
}

static void test_orders_that_come_again_are_acknowledged_and_not_done_again(
    void **state)
{
    struct rig rig;
    uint64_t n;

    (void)state;
    rig_init(&rig);
    start(&rig, "t", NULL);
    record(&rig, 5);
    drain(&rig);
    n = rig.part.backlog.n_events;
    obey(&rig, TP_ORDER_PREPARE, "t", NULL);
    obey(&rig, TP_ORDER_START, "t", NULL);
    assert_acks(&rig, "prepare t; start t");
    assert_int_equal(rig.part.backlog.n_events, n);
    record(&rig, 5);
    drain(&rig);
    assert_true(rig.part.backlog.n_events >= n + 5);
    obey(&rig, TP_ORDER_STOP, "t", NULL);
    obey(&rig, TP_ORDER_STOP, "t", NULL);
    drain(&rig);
    while (rig.part.backlog.first != NULL)
        tp_part_sent(&rig.part);
    assert_acks(&rig, "stop t");
    obey(&rig, TP_ORDER_STOP, "t", NULL);
    assert_acks(&rig, "stop t");
    obey(&rig, TP_ORDER_PREPARE, "t", NULL);
    assert_acks(&rig, "no prepare t");
    rig_fini(&rig);
}

static void test_orders_of_other_traces_are_answered_and_harm_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    start(&rig, "t", NULL);
    obey(&rig, TP_ORDER_START, "x", NULL);
    obey(&rig, TP_ORDER_STOP, "x", NULL);
    obey(&rig, TP_ORDER_CANCEL, "y", NULL);
    assert_acks(&rig, "stop x; cancel y");
    assert_int_equal(rig.part.state, TP_PART_RECORDING);
    obey(&rig, TP_ORDER_PREPARE, "next", NULL); /* the service knows of no "t" */
    assert_acks(&rig, "prepare next");
    assert_int_equal(rig.part.state, TP_PART_ARMED);
    assert_false(tp_enabled(rig.client, rig.type));
    rig_fini(&rig);
}

/* A service that forgot us, and does not give us the id that we had. */
static void test_another_stream_of_the_trace_begins_anew(void **state)
{
    const struct tp_order other = {.stream_no = 2};
    struct rig rig;

    (void)state;
    rig_init(&rig);
    start(&rig, "t", NULL);
    record(&rig, 5);
    drain(&rig);
    obey(&rig, TP_ORDER_PREPARE, "t", &other);
    assert_acks(&rig, "prepare t");
    assert_int_equal(rig.part.state, TP_PART_ARMED);
    assert_int_equal(rig.part.stream_no, 2);
    assert_null(rig.part.backlog.first);
    obey(&rig, TP_ORDER_PREPARE, "t", &other);
    assert_acks(&rig, "prepare t");
    obey(&rig, TP_ORDER_START, "t", NULL);
    tp_part_advance(&rig.part, tp_now());
    record(&rig, 3);
    drain(&rig);
    assert_int_equal(rig.part.backlog.first->seq, 1);
    rig_fini(&rig);
}

static void test_a_prepare_without_a_stream_is_refused(void **state)
{
    struct tp_order none = {0};
    struct rig rig;

    (void)state;
    rig_init(&rig);
    obey(&rig, TP_ORDER_PREPARE, "t", &none);
    assert_acks(&rig, "no prepare t");
    assert_int_equal(rig.part.state, TP_PART_IDLE);
    rig_fini(&rig);
}

static void test_the_start_is_met_by_time_on_our_clock(void **state)
{
    uint64_t now_ns = tp_now();
    struct tp_order order = {.start_at_ns = (int64_t)now_ns + 3600000000000 + 50 * MS};
    struct rig rig;

    (void)state;
    rig_init(&rig);
    rig.offset = (struct tp_clock_offset){.is_known = true, .offset_ns = 3600000000000};
    obey(&rig, TP_ORDER_PREPARE, "t", NULL);
    obey(&rig, TP_ORDER_START, "t", &order);
    assert_in_range(tp_part_advance(&rig.part, now_ns), now_ns + 40 * MS,
                    now_ns + 50 * MS);
    assert_false(tp_enabled(rig.client, rig.type));
    assert_int_equal(tp_part_advance(&rig.part, now_ns + 49 * MS), now_ns + 50 * MS);
    assert_true(tp_enabled(rig.client, rig.type));
    record(&rig, 3); /* before its time */
    tp_part_acked(&rig.part, rig.part.n_acks);
    tp_part_advance(&rig.part, now_ns + 50 * MS);
    assert_int_equal(rig.part.acks[0].started_at_ns, now_ns + 50 * MS);
    drain(&rig);
    assert_null(rig.part.backlog.first);
    rig_fini(&rig);
}

static void test_steps_end_the_recording_where_the_step_began(void **state)
{
    struct tp_order order = {.steps = 2};
    struct tp_recorder_totals totals;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    tp_step(rig.client);
    start(&rig, "t", &order);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tp_part_advance(&rig.part, tp_now()), UINT64_MAX);
        assert_int_equal(rig.part.state, TP_PART_RECORDING);
        record(&rig, 1);
        tp_step(rig.client);
        assert_true(tp_part_has_step_news(&rig.part));
        tp_part_told_step(&rig.part, 2 + (uint64_t)i);
        assert_false(tp_part_has_step_news(&rig.part));
    }
    record(&rig, 7); /* of the third step, before the agent runs */
    tp_part_advance(&rig.part, tp_now());
    assert_int_equal(rig.part.state, TP_PART_FLUSHING);
    drain(&rig);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.emitted[rig.type], 2);
    assert_acks(&rig, ""); /* nobody said stop */
    rig_fini(&rig);
}

/* Its service has gone: it ends when the service would long have said so. */
static void test_a_recording_ends_by_itself_when_no_stop_comes(void **state)
{
    const struct tp_order order = {.duration_ms = 5000};
    struct tp_recorder_totals totals;
    uint64_t end_ns, start_ns;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    start(&rig, "t", &order);
    start_ns = rig.part.start_at_ns;
    end_ns = tp_part_advance(&rig.part, start_ns + 5000 * (uint64_t)MS);
    assert_int_equal(end_ns, start_ns + (5000 + 10000 + 5) * (uint64_t)MS);
    tp_part_advance(&rig.part, end_ns - 1);
    assert_int_equal(rig.part.state, TP_PART_RECORDING);
    record(&rig, 3);
    assert_int_equal(tp_part_advance(&rig.part, end_ns), UINT64_MAX);
    assert_int_equal(rig.part.state, TP_PART_FLUSHING);
    assert_false(tp_enabled(rig.client, rig.type));
    drain(&rig);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.emitted[rig.type], 3);
    assert_non_null(rig.part.backlog.first); /* for when it is back */
    assert_acks(&rig, "");
    tp_part_sent(&rig.part);
    obey(&rig, TP_ORDER_STOP, "t", NULL);
    assert_int_equal(rig.part.state, TP_PART_DONE);
    assert_acks(&rig, "stop t");
    rig_fini(&rig);
}

/* The stop of a step that the service knows nothing of yet. */
static void test_a_part_that_a_step_began_ends_by_itself_too(void **state)
{
    const struct tp_order order = {
        .stream_no = 1, .start_step = 2, .steps = 100, .duration_ms = 5000};
    uint64_t end_ns;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    tp_step(rig.client);
    obey(&rig, TP_ORDER_PREPARE, "t", &order);
    assert_int_equal(tp_part_advance(&rig.part, tp_now()), UINT64_MAX);
    tp_step(rig.client);
    end_ns = tp_part_advance(&rig.part, tp_now());
    assert_int_equal(rig.part.state, TP_PART_RECORDING);
    assert_in_range(end_ns, rig.part.start_at_ns + TP_PART_GRACE_NS,
                    rig.part.start_at_ns + 5010 * (uint64_t)MS + TP_PART_GRACE_NS);
    tp_part_advance(&rig.part, end_ns);
    assert_int_equal(rig.part.state, TP_PART_FLUSHING);
    rig_fini(&rig);
}

/* An older service says nothing, and a number that is none is no limit. */
static void test_without_a_duration_a_recording_waits_for_its_stop(void **state)
{
    static const uint64_t durations[] = {0, UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(durations) / sizeof(*durations); i++) {
        const struct tp_order order = {.duration_ms = durations[i]};
        struct rig rig;

        rig_init(&rig);
        start(&rig, "t", &order);
        assert_int_equal(tp_part_advance(&rig.part, UINT64_MAX - 1), UINT64_MAX);
        assert_int_equal(rig.part.state, TP_PART_RECORDING);
        rig_fini(&rig);
    }
}

/* The service has lost the trace: what was to begin does not, what records ends. */
static void test_a_trace_that_the_service_has_lost_is_ended(void **state)
{
    const struct tp_order order = {.stream_no = 1, .start_step = 9};
    struct rig rig;

    (void)state;
    rig_init(&rig);
    start(&rig, "t", NULL);
    tp_part_disown(&rig.part, tp_now());
    assert_false(tp_enabled(rig.client, rig.type));
    drain(&rig);
    assert_int_equal(rig.part.state, TP_PART_DONE);
    assert_acks(&rig, "stop t");
    tp_step(rig.client);
    obey(&rig, TP_ORDER_PREPARE, "u", &order);
    tp_part_disown(&rig.part, tp_now());
    assert_int_equal(rig.part.state, TP_PART_DONE);
    for (int i = 0; i < 10; i++)
        tp_step(rig.client);
    assert_false(tp_enabled(rig.client, rig.type));
    rig_fini(&rig);
}

/* Else thousands would answer while others have not heard of the start yet. */
static void test_only_a_start_that_is_near_is_worth_waiting_for(void **state)
{
    const uint64_t start_ns = tp_now() + 3600u * 1000u * MS;
    const struct tp_order at = {.start_at_ns = (int64_t)start_ns};
    struct rig rig;

    (void)state;
    rig_init(&rig);
    obey(&rig, TP_ORDER_PREPARE, "t", NULL);
    assert_false(tp_part_starts_soon(&rig.part, start_ns));
    obey(&rig, TP_ORDER_START, "t", &at);
    assert_false(tp_part_starts_soon(&rig.part, start_ns - 500 * MS));
    assert_true(tp_part_starts_soon(&rig.part, start_ns - 499 * MS));
    tp_part_advance(&rig.part, start_ns);
    assert_false(tp_part_starts_soon(&rig.part, start_ns));
    assert_acks(&rig, "prepare t; start t");
    rig_fini(&rig);
}

static void test_a_step_starts_the_part_at_its_moment(void **state)
{
    struct tp_order order = {.stream_no = 1, .start_step = 3, .steps = 2};
    struct tp_recorder_totals totals;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    tp_step(rig.client);
    obey(&rig, TP_ORDER_PREPARE, "t", &order);
    assert_acks(&rig, "prepare t");
    for (int step = 2; step < 8; step++) {
        tp_step(rig.client);
        record(&rig, 1); /* with no agent in between */
    }
    tp_part_advance(&rig.part, tp_now());
    assert_int_equal(rig.part.state, TP_PART_FLUSHING);
    assert_int_equal(rig.part.acks[0].step, 3);
    assert_true(rig.part.acks[0].started_at_ns > 0);
    drain(&rig);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.emitted[rig.type], 2);
    assert_int_equal(rig.part.backlog.n_events, 4);
    assert_false(tp_part_may_post(&rig.part)); /* the service knows of no start */
    tp_part_acked(&rig.part, 1);
    assert_true(tp_part_may_post(&rig.part));
    rig_fini(&rig);
}

static void test_a_start_elsewhere_starts_only_what_counts_no_steps(void **state)
{
    struct tp_order order = {.stream_no = 1, .start_step = 3};

    (void)state;
    for (int has_steps = 0; has_steps < 2; has_steps++) {
        struct rig rig;

        rig_init(&rig);
        if (has_steps)
            tp_step(rig.client);
        obey(&rig, TP_ORDER_PREPARE, "t", &order);
        assert_acks(&rig, "prepare t");
        obey(&rig, TP_ORDER_START, "t", NULL);
        tp_part_advance(&rig.part, tp_now() + MS);
        assert_int_equal(rig.part.state, has_steps ? TP_PART_ARMED : TP_PART_RECORDING);
        assert_acks(&rig, has_steps ? "" : "start t");
        rig_fini(&rig);
    }
}

/* A stop may come before this thread has seen the step. */
static void test_a_stop_after_an_unseen_start_loses_nothing(void **state)
{
    struct tp_order order = {.stream_no = 1, .start_step = 1};
    struct tp_recorder_totals totals;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    obey(&rig, TP_ORDER_PREPARE, "t", &order);
    tp_step(rig.client);
    record(&rig, 3);
    obey(&rig, TP_ORDER_STOP, "t", NULL);
    assert_acks(&rig, "prepare t; start t");
    assert_int_equal(rig.part.state, TP_PART_FLUSHING);
    drain(&rig);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.emitted[rig.type], 3);
    assert_non_null(rig.part.backlog.first);
    rig_fini(&rig);
}

/* What was said of another trace says nothing of this one. */
static void test_an_ack_of_another_trace_lets_nothing_be_posted(void **state)
{
    struct tp_order order = {.stream_no = 1, .start_step = 5};
    struct rig rig;

    (void)state;
    rig_init(&rig);
    start(&rig, "t", NULL);
    tp_step(rig.client);
    obey(&rig, TP_ORDER_PREPARE, "t", NULL);
    obey(&rig, TP_ORDER_START, "t", NULL);
    assert_true(rig.part.n_acks > 1);
    obey(&rig, TP_ORDER_PREPARE, "u", &order);
    tp_part_acked(&rig.part, rig.part.n_acks);
    assert_false(tp_part_may_post(&rig.part));
    rig_fini(&rig);
}

/* After a restart the service asks again, of a part that its steps have ended. */
static void test_an_ended_part_says_again_when_it_began(void **state)
{
    struct tp_order order = {.stream_no = 1, .start_step = 1, .steps = 1};
    struct rig rig;

    (void)state;
    rig_init(&rig);
    obey(&rig, TP_ORDER_PREPARE, "t", &order);
    tp_step(rig.client);
    tp_step(rig.client);
    tp_part_advance(&rig.part, tp_now());
    assert_acks(&rig, "prepare t; start t");
    obey(&rig, TP_ORDER_PREPARE, "t", &order);
    obey(&rig, TP_ORDER_START, "t", NULL);
    assert_int_equal(rig.part.acks[1].step, 1);
    assert_acks(&rig, "prepare t; start t");
    assert_int_equal(rig.part.state, TP_PART_FLUSHING);
    rig_fini(&rig);
}

static void test_what_has_no_room_in_the_backlog_is_counted(void **state)
{
    struct tp_recorder_totals totals;
    struct rig rig;
    uint64_t kept;

    (void)state;
    rig_init(&rig);
    rig.part.backlog.limit_bytes = 1;
    start(&rig, "t", NULL);
    record(&rig, 10);
    drain(&rig);
    kept = rig.part.backlog.n_events; /* a first batch has always room */
    record(&rig, 20);
    drain(&rig);
    assert_int_equal(rig.part.backlog.n_events, kept);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.dropped[TP_DROP_BACKLOG_FULL][rig.type], 20);
    assert_int_equal(totals.emitted[rig.type], 30);
    tp_part_lose_batch(&rig.part, TP_DROP_MALFORMED);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.dropped[TP_DROP_MALFORMED][rig.type], 10);
    rig_fini(&rig);
}

static void test_giving_up_counts_what_is_left_and_goes_off(void **state)
{
    struct tp_recorder_totals totals;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    tp_part_give_up(&rig.part); /* without a trace: nothing */
    start(&rig, "t", NULL);
    record(&rig, 10);
    drain(&rig);
    record(&rig, 5);
    TP_BEGIN(rig.client, rig.type, "open");
    tp_part_give_up(&rig.part);
    assert_int_equal(rig.part.state, TP_PART_DONE);
    assert_false(tp_enabled(rig.client, rig.type));
    assert_null(rig.part.backlog.first);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.emitted[rig.type], 16);
    assert_int_equal(totals.dropped[TP_DROP_AFTER_STOP][rig.type], 16);
    start(&rig, "next", NULL);
    rig_fini(&rig);
}

static void test_a_cancel_leaves_nothing_from_any_state(void **state)
{
    (void)state;
    for (int depth = 0; depth < 4; depth++) {
        struct tp_recorder_totals totals;
        struct rig rig;

        rig_init(&rig);
        obey(&rig, TP_ORDER_PREPARE, "t", NULL);
        if (depth > 0)
            obey(&rig, TP_ORDER_START, "t", NULL);
        if (depth > 1) {
            tp_part_advance(&rig.part, tp_now());
            record(&rig, 3);
            drain(&rig);
            record(&rig, 2);
        }
        if (depth > 2)
            obey(&rig, TP_ORDER_STOP, "t", NULL);
        tp_part_acked(&rig.part, rig.part.n_acks);
        obey(&rig, TP_ORDER_CANCEL, "t", NULL);
        assert_acks(&rig, "cancel t");
        assert_int_equal(rig.part.state, TP_PART_DONE);
        assert_null(rig.part.backlog.first);
        assert_false(tp_enabled(rig.client, rig.type));
        tp_recorder_totals(rig.recorder, &totals);
        if (totals.emitted[rig.type] != (depth > 1 ? 5 : 0) ||
            totals.dropped[TP_DROP_AFTER_STOP][rig.type] != totals.emitted[rig.type])
            fail_msg("depth %d: %llu emitted, %llu dropped", depth,
                     (unsigned long long)totals.emitted[rig.type],
                     (unsigned long long)totals.dropped[TP_DROP_AFTER_STOP][rig.type]);
        rig_fini(&rig);
    }
}

static void test_leaving_ends_a_recording_as_a_stop_does(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    tp_part_leave(&rig.part, tp_now());
    assert_int_equal(rig.part.state, TP_PART_IDLE);
    start(&rig, "t", NULL);
    record(&rig, 3);
    tp_part_leave(&rig.part, tp_now());
    drain(&rig);
    while (rig.part.backlog.first != NULL)
        tp_part_sent(&rig.part);
    assert_acks(&rig, "stop t");
    rig_fini(&rig);
}

static void test_a_drain_without_memory_loses_nothing(void **state)
{
    struct tp_recorder_totals totals;

    (void)state;
    for (int n = 0;; n++) {
        struct rig rig;
        bool failed;
        int rc;

        rig_init(&rig);
        start(&rig, "t", NULL);
        record(&rig, 10);
        fault_arm(n);
        rc = tp_part_drain(&rig.part, &rig.offset, NULL);
        failed = fault_disarm();
        assert_int_equal(rc, failed ? TP_ENOMEM : TP_OK);
        drain(&rig);
        tp_recorder_totals(rig.recorder, &totals);
        assert_int_equal(totals.emitted[rig.type], 10);
        assert_true(rig.part.backlog.n_events >= 10);
        rig_fini(&rig);
        if (!failed)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_reported_late_is_of_the_trace_if_it_began_in_it),
        cmocka_unit_test(
            test_what_is_late_for_a_trace_that_is_given_up_is_not_waited_for),
        cmocka_unit_test(test_a_trace_goes_from_prepare_to_done),
        cmocka_unit_test(
            test_orders_that_come_again_are_acknowledged_and_not_done_again),
        cmocka_unit_test(test_orders_of_other_traces_are_answered_and_harm_nothing),
        cmocka_unit_test(test_another_stream_of_the_trace_begins_anew),
        cmocka_unit_test(test_a_prepare_without_a_stream_is_refused),
        cmocka_unit_test(test_the_start_is_met_by_time_on_our_clock),
        cmocka_unit_test(test_steps_end_the_recording_where_the_step_began),
        cmocka_unit_test(test_a_recording_ends_by_itself_when_no_stop_comes),
        cmocka_unit_test(test_a_part_that_a_step_began_ends_by_itself_too),
        cmocka_unit_test(test_without_a_duration_a_recording_waits_for_its_stop),
        cmocka_unit_test(test_a_trace_that_the_service_has_lost_is_ended),
        cmocka_unit_test(test_only_a_start_that_is_near_is_worth_waiting_for),
        cmocka_unit_test(test_a_step_starts_the_part_at_its_moment),
        cmocka_unit_test(test_a_start_elsewhere_starts_only_what_counts_no_steps),
        cmocka_unit_test(test_a_stop_after_an_unseen_start_loses_nothing),
        cmocka_unit_test(test_an_ack_of_another_trace_lets_nothing_be_posted),
        cmocka_unit_test(test_an_ended_part_says_again_when_it_began),
        cmocka_unit_test(test_what_has_no_room_in_the_backlog_is_counted),
        cmocka_unit_test(test_giving_up_counts_what_is_left_and_goes_off),
        cmocka_unit_test(test_a_cancel_leaves_nothing_from_any_state),
        cmocka_unit_test(test_leaving_ends_a_recording_as_a_stop_does),
        cmocka_unit_test(test_a_drain_without_memory_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
