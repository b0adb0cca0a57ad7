/* Producers that say what cannot be: each spoils at most its own part. */
#include <stdio.h>

#include "support/engine_test.h"

#include "base/err.h"
#include "support/native_rig.h"

#define HUGE_COUNT ((uint64_t)INT64_MAX)

static int say(struct rig *r, const char *p, const struct tp_sync_request *sync)
{
    struct tp_sync_reply reply;

    return tp_engine_sync(r->engine, rig_str(p), sync, r->now, &reply, &r->problem,
                          &r->err);
}

/* One sync with a step. */
static void step(struct rig *r, const char *p, uint64_t step)
{
    struct tp_sync_request sync = {.has_step = true, .step = step};

    assert_int_equal(say(r, p, &sync), TP_OK);
}

/* One sync with an ack; step 0 = none. */
static void ack(struct rig *r, const char *p, const char *trace,
                enum tp_command_kind command, uint64_t step, uint64_t started_ns)
{
    struct tp_sync_ack ack = {.trace_id = rig_str(trace),
                              .command = command,
                              .has_step = step != 0,
                              .step = step,
                              .start_wall_ns = started_ns};
    struct tp_sync_request sync = {.acks = &ack, .n_acks = 1};

    assert_int_equal(say(r, p, &sync), TP_OK);
}

static int count(struct rig *r, const char *p, const char *trace, uint64_t emitted,
                 uint64_t ring_full)
{
    struct tp_sync_counts counts = {.trace_id = rig_str(trace),
                                    .emitted = emitted,
                                    .dropped[TP_DROP_RING_FULL] = ring_full};
    struct tp_sync_request sync = {.counts = &counts, .n_counts = 1};

    return say(r, p, &sync);
}

/* n producers p0, p1, ... that are armed in a trace as asked. */
static void arm(struct rig *r, const struct tp_trace_request *request, int n,
                char p[][TP_TRACE_ID_BYTES], char *id)
{
    static const char *const names[] = {"p0", "p1", "p2", "p3"};

    for (int i = 0; i < n; i++)
        rig_join(r, names[i], i, p[i]);
    assert_int_equal(rig_create_from(r, request, id), TP_OK);
    for (int i = 0; i < n; i++) {
        struct tp_sync_reply reply = rig_sync(r, p[i], NULL);

        rig_sync(r, p[i], &reply);
    }
}

/* Tell both to stop, and have it sealed. */
static void finish(struct rig *r, int n, char p[][TP_TRACE_ID_BYTES], const char *id)
{
    assert_int_equal(rig_stop(r, id), TP_OK);
    for (int i = 0; i < n; i++) {
        struct tp_sync_reply reply = rig_sync(r, p[i], NULL);

        rig_sync(r, p[i], &reply);
    }
    rig_work(r);
}

static const struct tp_trace_request by_step = {
    .job = {"j", 1}, .start = TP_START_STEP, .start_step = 1000, .stop_steps = 5};

/* Nobody knows whether it ever came by, and another is on its way. */
static void test_a_step_out_of_nowhere_starts_nothing_while_others_come(void **state)
{
    struct rig *r = *state;
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];

    arm(r, &by_step, 2, p, id);
    step(r, p[1], 3);
    step(r, p[0], UINT64_C(1000000000000000000));
    rig_expect_state(r, id, "prepared");
    ack(r, p[0], id, TP_COMMAND_START, UINT64_C(1000000000000000005), 0);
    rig_expect_state(r, id, "prepared");
    step(r, p[1], 1000);
    rig_expect_state(r, id, "recording");
}

/* One that is alone, or whose fellows stand still, is past it: a job that resumed. */
static void test_a_job_that_is_past_the_step_starts(void **state)
{
    struct rig *r = *state;
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];

    arm(r, &by_step, 2, p, id);
    step(r, p[1], 3);
    step(r, p[0], 5000);
    rig_expect_state(r, id, "prepared");
    for (int i = 0; i < 4; i++) {
        rig_wait(r, 31 * RIG_S);
        step(r, p[1], 3);
        step(r, p[0], 5001 + (uint64_t)i);
    }
    rig_expect_state(r, id, "recording");
}

/* It went on to record until the longest that a trace may last. */
static void test_who_says_a_step_and_stays_behind_it_does_not_keep_a_trace(void **state)
{
    struct rig *r = *state;
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];

    arm(r, &by_step, 2, p, id);
    step(r, p[1], 999);
    step(r, p[0], 999);
    ack(r, p[0], id, TP_COMMAND_START, UINT64_C(1000000000000000005), 0);
    step(r, p[1], 1000);
    rig_expect_state(r, id, "recording");
    ack(r, p[1], id, TP_COMMAND_START, 1000, 0);
    step(r, p[0], 5);
    for (uint64_t n = 1001; n <= 1006; n++)
        step(r, p[1], n);
    rig_expect_state(r, id, "recording"); /* the first may still come on */
    for (int i = 0; i < 5; i++) {
        rig_wait(r, 30 * RIG_S);
        ack(r, p[0], id, TP_COMMAND_START, UINT64_C(1000000000000000005), 0);
        step(r, p[1], 1007);
    }
    rig_expect_state(r, id, "stopping");
}

/* A count that began anew is counted from where it is. */
static void test_steps_that_go_back_are_counted_from_there(void **state)
{
    struct rig *r = *state;
    char p[1][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];

    arm(r, &by_step, 1, p, id);
    step(r, p[0], 1000);
    ack(r, p[0], id, TP_COMMAND_START, 1000, 0);
    step(r, p[0], 2);
    step(r, p[0], 6);
    rig_expect_state(r, id, "recording");
    step(r, p[0], 7);
    rig_expect_state(r, id, "stopping");
}

static void test_a_start_that_cannot_be_is_no_part_of_the_skew(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {.job = rig_str("j")};
    const uint64_t absurd[] = {1000000000, 1, UINT64_MAX, INT64_MAX,
                               RIG_START_NS + 4000 * RIG_S};
    char p[3][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];

    for (int i = 0; i < 3; i++)
        rig_join(r, (const char *[]){"p0", "p1", "p2"}[i], i, p[i]);
    for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
        struct tp_trace_view *view;

        assert_int_equal(rig_create_from(r, &request, id), TP_OK);
        for (int n = 0; n < 3; n++)
            ack(r, p[n], id, TP_COMMAND_PREPARE, 0, 0);
        ack(r, p[0], id, TP_COMMAND_START, 0, absurd[i]);
        ack(r, p[1], id, TP_COMMAND_START, 0, r->now.wall_ns);
        ack(r, p[2], id, TP_COMMAND_START, 0, r->now.wall_ns + 1000);
        view = rig_view(r, id);
        if (!view->has_skew || view->skew_ns != 1000)
            fail_msg("started at %llu: skew %llu", (unsigned long long)absurd[i],
                     (unsigned long long)view->skew_ns);
        tp_trace_view_free(view);
        finish(r, 3, p, id);
    }
}

/* The totals wrapped, and told of fewer than one of them. */
static void test_counts_beyond_all_bounds_do_not_wrap(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {.job = rig_str("j")};
    char p[3][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;
    char *text;

    arm(r, &request, 3, p, id);
    for (int i = 0; i < 3; i++)
        assert_int_equal(count(r, p[i], id, HUGE_COUNT, i == 0 ? HUGE_COUNT : 0),
                         TP_OK);
    finish(r, 3, p, id);
    view = rig_view(r, id);
    assert_true(view->totals.emitted == UINT64_MAX);
    assert_true(tp_counts_dropped(&view->totals) == UINT64_MAX);
    assert_int_equal(tp_counts_check(&view->totals, &r->err), TP_OK);
    tp_trace_view_free(view);
    text = rig_download(r, id, "chrome");
    assert_non_null(strstr(text, "18446744073709551615"));
    free(text);
}

/* What it lost was forgotten with the next, smaller count. */
static void test_counts_that_shrink_do_not_undo_a_loss(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {.job = rig_str("j")};
    char p[1][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    char *body = rig_events("kernel", 10, 1);
    struct tp_trace_view *view;

    arm(r, &request, 1, p, id);
    assert_int_equal(count(r, p[0], id, 100, 90), TP_OK);
    assert_int_equal(rig_post(r, id, "p0", 0, 1, body, NULL), TP_OK);
    assert_int_equal(count(r, p[0], id, 3, 0), TP_OK);
    assert_int_equal(count(r, p[0], id, 100, 0), TP_OK);
    finish(r, 1, p, id);
    view = rig_view(r, id);
    assert_int_equal(view->totals.emitted, 100);
    assert_int_equal(view->totals.stored, 10);
    assert_int_equal(view->totals.dropped[TP_DROP_RING_FULL], 90);
    assert_string_equal(view->outcome, "lossy");
    assert_string_equal(view->members[0].reason,
                        "it counted 100 events and then 100, fewer of them dropped: "
                        "what it counted first is kept");
    tp_trace_view_free(view);
    free(body);
}

/* Who has not been told to start has not started, and is not done. */
/* Linked producers number their batches from 1; others as they like. */
static void test_a_batch_that_never_came_is_told(void **state)
{
    static const struct {
        uint64_t seqs[4];
        bool is_linked;
        const char *reason; /* NULL: nothing is missing */
    } cases[] = {
        {{1, 2, 3, 4}, true, NULL},
        {{4, 2, 1, 3}, true, NULL},
        {{1, 1, 2, 2}, true, NULL},
        {{1, 2, 4, 4}, true, "1 of the batches of p0 never came"},
        {{3, 9, 9, 9}, true, "7 of the batches of p0 never came"},
        {{1, 2, 4, 7}, false, NULL},
    };
    const struct tp_trace_request request = {.job = rig_str("j")};
    struct rig *r = *state;
    char p[1][TP_TRACE_ID_BYTES];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *body = rig_events("kernel", 3, 1);
        char id[TP_TRACE_ID_BYTES];
        const char *want = cases[i].reason;

        arm(r, &request, 1, p, id);
        for (int k = 0; k < 4; k++)
            assert_int_equal(rig_post(r, id, cases[i].is_linked ? "p0" : "poster",
                                      cases[i].is_linked ? 0 : -1, cases[i].seqs[k],
                                      body, NULL),
                             TP_OK);
        assert_int_equal(rig_stop(r, id), TP_OK);
        ack(r, p[0], id, TP_COMMAND_STOP, 0, 0);
        rig_work(r);
        if (want == NULL)
            rig_expect_outcome(r, id, "complete", "");
        else
            rig_expect_outcome(r, id, "partial", want);
        free(body);
    }
}

static void test_an_ack_out_of_turn_changes_nothing(void **state)
{
    struct rig *r = *state;
    const struct tp_trace_request request = {.job = rig_str("j"),
                                             .start = TP_START_MANUAL};
    const enum tp_command_kind out_of_turn[] = {TP_COMMAND_START, TP_COMMAND_STOP};
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;
    struct tp_sync_reply reply;

    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    for (int armed = 0; armed < 2; armed++) {
        for (int i = 0; i < 2; i++) {
            ack(r, p, id, out_of_turn[i], 0, 0);
            view = rig_view(r, id);
            if (strcmp(view->members[0].state, armed ? "armed" : "waiting") != 0)
                fail_msg("after an early %s: %s", tp_command_name(out_of_turn[i]),
                         view->members[0].state);
            tp_trace_view_free(view);
        }
        reply = rig_sync(r, p, NULL);
        rig_sync(r, p, &reply);
    }
}

/* An event of that time, in ns since 1970, about. */
static void post_at(struct rig *r, const char *id, const char *p, int64_t seq,
                    const char *ts_us)
{
    char body[200];

    snprintf(body, sizeof(body),
             "[{\"ph\":\"X\",\"name\":\"%s\",\"pid\":1,\"tid\":1,\"dur\":1,"
             "\"ts\":%s}]",
             p, ts_us);
    assert_int_equal(rig_post(r, id, p, -1, seq, body, NULL), TP_OK);
}

/* The base of all times went down to 1970 with one such event. */
static void test_events_of_another_age_are_left_out_and_told(void **state)
{
    struct rig *r = *state;
    const struct {
        const char *ts_us;
        enum tp_drop_cause cause;
    } cases[] = {{"5", TP_DROP_BEFORE_START},
                 {"-5", TP_DROP_BEFORE_START},
                 {"1789900000000000", TP_DROP_BEFORE_START},
                 {"1790100000000000", TP_DROP_AFTER_STOP},
                 {"4000000000000000", TP_DROP_AFTER_STOP}};
    const struct tp_trace_request request = {.job = rig_str("j")};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char id[TP_TRACE_ID_BYTES], want[100];
        struct tp_trace_view *view;
        char *live, *text;

        assert_int_equal(rig_create_from(r, &request, id), TP_OK);
        post_at(r, id, "liar", 1, cases[i].ts_us);
        post_at(r, id, "honest", 1, "1790000000000000");
        live = rig_download(r, id, "chrome");
        assert_int_equal(rig_stop(r, id), TP_OK);
        rig_work(r);
        view = rig_view(r, id);
        snprintf(want, sizeof(want), "1 event dropped (%s)",
                 tp_drop_cause_name(cases[i].cause));
        if (view->totals.dropped[cases[i].cause] != 1 || view->totals.stored != 1 ||
            strcmp(view->outcome, "lossy") != 0 || strcmp(view->reason, want) != 0)
            fail_msg("%s: %s, %s", cases[i].ts_us, view->outcome, view->reason);
        assert_int_equal(tp_counts_check(&view->totals, &r->err), TP_OK);
        tp_trace_view_free(view);
        text = rig_download(r, id, "chrome");
        if (strstr(text, "\"name\":\"honest\"") == NULL ||
            strstr(text, "\"name\":\"liar\"") != NULL ||
            strstr(live, "\"name\":\"liar\"") != NULL)
            fail_msg("%s: %s", cases[i].ts_us, text);
        if (strstr(text, "\"baseTimeNanoseconds\":1782") == NULL &&
            strstr(text, "\"baseTimeNanoseconds\": 1782") == NULL)
            fail_msg("%s: %s", cases[i].ts_us, text);
        free(text);
        free(live);
    }
}

#define DAY_NS INT64_C(86400000000000)

/* One linked producer's batch: slices of an hour of its trace by its own clock, which
 * is add_ns before the service's, and one at each odd time. */
static void post_linked(struct rig *r, const char *id, int64_t add_ns, bool is_as_came)
{
    const int64_t good_ns = (int64_t)r->now.wall_ns - add_ns;
    const int64_t odd_ns[] = {5, good_ns + 3 * DAY_NS, INT64_MAX - 1000};
    const struct tp_native_clock clock = {(uint64_t)good_ns, r->now.wall_ns, 1000};
    struct native_rig batch = {0};

    native_rig_begin(&batch, 1, add_ns == 0 ? NULL : &clock);
    native_rig_slice(&batch, "kernel", "odd", 0, odd_ns[0], 500);
    native_rig_slice(&batch, "kernel", "odd", 0, odd_ns[1], 500);
    native_rig_slice(&batch, "kernel", "good", 0, good_ns, 500);
    native_rig_slice(&batch, "kernel", "odd", 0, odd_ns[2], 500);
    if (!is_as_came)
        native_rig_slice(&batch, "cpu_op", "filtered", 0, good_ns, 500);
    native_rig_end(&batch);
    assert_int_equal(rig_native_batch(r, id, "linked", 0, 1, &batch), TP_OK);
    native_rig_fini(&batch);
}

static void post_among(struct rig *r, const char *id, int form)
{
    char body[500];
    const uint64_t us = r->now.wall_ns / 1000;

    if (form < 4) {
        post_linked(r, id, form % 2 == 0 ? 0 : 10 * DAY_NS, form / 2 == 0);
        return;
    }
    snprintf(body, sizeof(body),
             "[{\"ph\":\"i\",\"cat\":\"kernel\",\"name\":\"odd\",\"ts\":5},"
             "{\"ph\":\"i\",\"cat\":\"kernel\",\"name\":\"good\",\"ts\":%llu},"
             "{\"ph\":\"i\",\"cat\":\"kernel\",\"name\":\"odd\",\"ts\":%llu},"
             "{\"ph\":\"i\",\"cat\":\"kernel\",\"name\":\"odd\",\"ts\":9e15}]",
             (unsigned long long)us, (unsigned long long)us + 3 * 86400000000);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
}

/* A batch whose first and whose last time are both absurd was taken for one that counts
 * from nothing. The clocks of linked ones tell what their times are. */
static void test_one_event_of_its_day_is_enough(void **state)
{
    static const char *const forms[] = {"linked", "linked, ten days back",
                                        "linked and filtered",
                                        "linked and filtered, ten days back", "posted"};
    struct rig *r = *state;

    for (int i = 0; i < 5; i++) {
        struct tp_trace_view *view;
        char id[TP_TRACE_ID_BYTES];
        char *text;

        assert_int_equal(rig_create(r, "j", "kernel", id), TP_OK);
        post_among(r, id, i);
        assert_int_equal(rig_stop(r, id), TP_OK);
        rig_work(r);
        view = rig_view(r, id);
        text = rig_download(r, id, "chrome");
        if (view->totals.stored != 1 || strcmp(view->outcome, "lossy") != 0 ||
            view->totals.dropped[TP_DROP_BEFORE_START] != 1 ||
            view->totals.dropped[TP_DROP_AFTER_STOP] != 2 ||
            strstr(text, "\"name\":\"good\"") == NULL)
            fail_msg("%s: %s, %s: %s", forms[i], view->outcome, view->reason, text);
        tp_trace_view_free(view);
        free(text);
    }
}

/* An hour off, or a day's half, is a bad clock and no lie; and where all count from
 * nothing, nobody is of another age. A file may be of any day. */
static void test_times_that_can_be_are_kept(void **state)
{
    struct rig *r = *state;
    const struct {
        const char *live[2];
        const char *file;
    } cases[] = {{{"1790000000000000", "1790003600000000"}, NULL},
                 {{"1790000000000000", "1789950400000000"}, NULL},
                 {{"5", "7"}, NULL},
                 {{"5", "1690000000000000"}, NULL},
                 {{"1790000000000000", "1790000000000001"}, "5"},
                 {{"1790000000000000", "1790000000000001"}, "1690000000000000"}};
    const struct tp_trace_request request = {.job = rig_str("j")};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t want = cases[i].file == NULL ? 2 : 3;
        char id[TP_TRACE_ID_BYTES], body[100];
        struct tp_trace_view *view;

        assert_int_equal(rig_create_from(r, &request, id), TP_OK);
        post_at(r, id, "a", 1, cases[i].live[0]);
        post_at(r, id, "b", 1, cases[i].live[1]);
        snprintf(body, sizeof(body), "[{\"ph\":\"i\",\"name\":\"f\",\"ts\":%s}]",
                 cases[i].file == NULL ? "" : cases[i].file);
        if (cases[i].file != NULL)
            assert_int_equal(rig_file(r, id, "f", -1, body, NULL), TP_OK);
        assert_int_equal(rig_stop(r, id), TP_OK);
        rig_work(r);
        view = rig_view(r, id);
        if (view->totals.stored != want || strcmp(view->outcome, "complete") != 0)
            fail_msg("case %zu: %s, %s", i, view->outcome, view->reason);
        tp_trace_view_free(view);
    }
}

/* What the filter let through and was left out for its time, or could not be read, is
 * not laid to the filter. */
static void test_nothing_is_left_and_it_is_said_what_took_how_many(void **state)
{
    static const char *const cats[] = {"cpu_op", "cpu_op", "kernel", "kernel"};
    const double days[] = {0, 0, -365, 0}, lasts_days[] = {0, 0, 0, 3};
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES], body[1000];
    size_t n = 0;

    assert_int_equal(rig_create(r, "j", "kernel", id), TP_OK);
    for (size_t i = 0; i < 4; i++)
        n += (size_t)snprintf(
            body + n, sizeof(body) - n,
            "%c{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"a\",\"ts\":%.0f,\"dur\":%.0f}",
            i == 0 ? '[' : ',', cats[i],
            (double)r->now.wall_ns / 1000 + days[i] * 86400e6, lasts_days[i] * 86400e6);
    snprintf(body + n, sizeof(body) - n,
             ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"e\",\"ts\":\"x\"}]");
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "empty",
                       "0 of 5 events are left: 2 did not pass the filter; 3 events "
                       "dropped (before-start 1, after-stop 1, malformed 1)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_a_step_out_of_nowhere_starts_nothing_while_others_come),
        engine_test(test_a_job_that_is_past_the_step_starts),
        engine_test(test_who_says_a_step_and_stays_behind_it_does_not_keep_a_trace),
        engine_test(test_steps_that_go_back_are_counted_from_there),
        engine_test(test_a_start_that_cannot_be_is_no_part_of_the_skew),
        engine_test(test_counts_beyond_all_bounds_do_not_wrap),
        engine_test(test_counts_that_shrink_do_not_undo_a_loss),
        engine_test(test_a_batch_that_never_came_is_told),
        engine_test(test_an_ack_out_of_turn_changes_nothing),
        engine_test(test_events_of_another_age_are_left_out_and_told),
        engine_test(test_one_event_of_its_day_is_enough),
        engine_test(test_times_that_can_be_are_kept),
        engine_test(test_nothing_is_left_and_it_is_said_what_took_how_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
