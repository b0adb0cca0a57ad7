/*
 * When producers are told to start, and how long before. The clock is the test's.
 */
#include "support/engine_test.h"

#include <stdio.h>

#include "base/err.h"
#include "engine/sync.h"

/* End a trace that all of them were told to start. */
static void end_with(struct rig *r, const char *id, char p[][TP_TRACE_ID_BYTES], int n)
{
    assert_int_equal(rig_stop(r, id), TP_OK);
    for (int i = 0; i < n; i++) {
        struct tp_sync_reply reply = rig_sync(r, p[i], NULL);

        rig_sync(r, p[i], &reply);
    }
    rig_work(r);
    rig_expect_state(r, id, "complete");
}

static void test_who_takes_part_is_told_to_arm_and_when_to_start_in_one_answer(
    void **state)
{
    struct rig *r = *state;
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply[2];
    struct tp_trace_view *view;

    rig_join(r, "p0", 0, p[0]);
    rig_join(r, "p1", 1, p[1]);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    rig_expect_state(r, id, "recording");
    for (int i = 0; i < 2; i++) {
        assert_true(tp_engine_sync_ready(r->engine, rig_str(p[i])));
        reply[i] = rig_sync(r, p[i], NULL);
        assert_int_equal(reply[i].n_commands, 2);
        assert_int_equal(reply[i].commands[0].kind, TP_COMMAND_PREPARE);
        assert_int_equal(reply[i].commands[1].kind, TP_COMMAND_START);
        assert_true(reply[i].commands[1].start_wall_ns > r->now.wall_ns);
        assert_true(reply[i].commands[1].start_wall_ns ==
                    reply[0].commands[1].start_wall_ns);
        assert_false(tp_engine_sync_ready(r->engine, rig_str(p[i])));
    }
    /* The answer was lost: the same again. One is late, and it shows. */
    reply[1] = rig_sync(r, p[1], NULL);
    assert_int_equal(reply[1].n_commands, 2);
    assert_true(reply[1].commands[1].start_wall_ns ==
                reply[0].commands[1].start_wall_ns);
    reply[1].commands[1].start_wall_ns += 7 * RIG_MS;
    for (int i = 0; i < 2; i++)
        assert_int_equal(rig_sync(r, p[i], &reply[i]).n_commands, 0);
    view = rig_view(r, id);
    assert_string_equal(view->members[0].state, "recording");
    assert_true(view->has_skew);
    assert_int_equal(view->skew_ns, 7 * RIG_MS);
    tp_trace_view_free(view);
    end_with(r, id, p, 2);
}

static void test_who_was_told_to_start_is_told_to_stop_before_it_answers(void **state)
{
    struct rig *r = *state;
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    char *body = rig_events("kernel", 3, 1);
    struct tp_sync_reply reply;

    rig_join(r, "p0", 0, p[0]);
    rig_join(r, "p1", 1, p[1]);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    rig_sync(r, p[0], NULL);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_state(r, id, "stopping");
    reply = rig_sync(r, p[0], NULL);
    assert_int_equal(reply.n_commands, 1);
    assert_int_equal(reply.commands[0].kind, TP_COMMAND_STOP);
    assert_int_equal(rig_post(r, id, "p0", 0, 1, body, NULL), TP_OK);
    rig_sync(r, p[0], &reply);
    rig_work(r);
    /* The other was not told at all. */
    rig_expect_outcome(r, id, "partial", "1 producer sent nothing: p1");
    assert_int_equal(rig_sync(r, p[1], NULL).n_commands, 0);
    free(body);
}

static void test_the_start_gives_the_time_that_telling_all_took_before(void **state)
{
    enum { N = 100 };
    /* What it took until the first was told, and from one to the next; and when it
     * starts by what was known before. */
    static const struct {
        uint64_t first_us, next_us, start_us;
    } cases[] = {
        {0, 0, 800 + 4000 + 1575 + 1200},      /* nothing is known */
        {1000, 100, 600 + 4000 + 1181 + 1200}, /* a quarter of what is faster */
        {0, 0, 1000 + 4000 + 2362 + 1200},     /* what is slower, and twice at most */
        {500000, 0, 750 + 4000 + 1771 + 1200}, /* it is put off */
        {0, 0, 1500 + 4000 + 1328 + 1200},
    };
    struct rig *r = *state;
    char p[N][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];

    for (int i = 0; i < N; i++)
        rig_join(r, "p", i, p[i]);
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        uint64_t created_ns = r->now.wall_ns, told_ns, start_ns = 0;
        struct tp_trace_view *view;

        assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
        view = rig_view(r, id);
        start_ns = view->start_at_wall_ns - created_ns;
        if (start_ns / 100000 != cases[c].start_us / 100)
            fail_msg("case %zu: starts after %llu ns", c, (unsigned long long)start_ns);
        tp_trace_view_free(view);
        rig_wait(r, cases[c].first_us * RIG_MS / 1000);
        told_ns = r->now.wall_ns;
        for (int i = 0; i < N; i++) {
            struct tp_sync_reply reply = rig_sync(r, p[i], NULL);

            if (i == 0)
                start_ns = reply.commands[1].start_wall_ns;
            assert_true(reply.commands[1].start_wall_ns == start_ns);
            rig_wait(r, cases[c].next_us * RIG_MS / 1000);
        }
        if (start_ns < told_ns + 4 * RIG_MS)
            fail_msg("case %zu: starts %llu ns after the first is told", c,
                     (unsigned long long)(start_ns - told_ns));
        end_with(r, id, p, N);
    }
}

/* When a trace of all of them starts, after it was made; who is the last comes late, or
 * not at all. */
static uint64_t start_with_straggler(struct rig *r, char p[][TP_TRACE_ID_BYTES], int n,
                                     bool comes)
{
    uint64_t created_ns = r->now.wall_ns, start_ns;
    char id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    view = rig_view(r, id);
    start_ns = view->start_at_wall_ns - created_ns;
    tp_trace_view_free(view);
    assert_false(tp_engine_is_still_telling(r->engine, r->now));
    for (int i = 0; i < n - 1; i++) {
        rig_sync(r, p[i], NULL);
        assert_true(tp_engine_is_still_telling(r->engine, r->now));
    }
    rig_wait(r, RIG_MS); /* more than a microsecond for each of them */
    assert_false(tp_engine_is_still_telling(r->engine, r->now));
    rig_wait(r, 2 * RIG_S);
    if (comes)
        rig_sync(r, p[n - 1], NULL);
    assert_int_equal(tp_engine_trace_cancel(r->engine, rig_str(id), (struct tp_str){0},
                                            r->now, NULL, NULL, NULL),
                     TP_OK);
    for (int i = 0; i < n; i++) {
        struct tp_sync_reply reply = rig_sync(r, p[i], NULL);

        rig_sync(r, p[i], &reply);
    }
    return start_ns;
}

static void test_a_straggler_does_not_put_later_starts_off(void **state)
{
    enum { N = 100 };
    struct rig *r = *state;
    char p[N][TP_TRACE_ID_BYTES];
    uint64_t before_ns = UINT64_MAX;

    for (int i = 0; i < N; i++)
        rig_join(r, "p", i, p[i]);
    for (int n = 0; n < 8; n++) {
        uint64_t start_ns = start_with_straggler(r, p, N, n % 2 == 0);

        if (start_ns >= before_ns)
            fail_msg("trace %d starts after %llu ns", n, (unsigned long long)start_ns);
        before_ns = start_ns;
    }
}

/* A producer that lies about its clock, or was suspended during the exchange. */
static void test_who_does_not_know_the_time_does_not_put_the_start_off(void **state)
{
    struct rig *r = *state;
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_request request = {
        .t_sent_ns = r->now.wall_ns - 1200 * RIG_S,
        .t_server_received_ns = r->now.wall_ns,
        .t_server_sent_ns = r->now.wall_ns,
        .t_received_ns = r->now.wall_ns + 1200 * RIG_S,
    };
    struct tp_sync_reply reply;
    struct tp_trace_view *view;

    rig_join(r, "p0", 0, p[0]);
    rig_join(r, "p1", 1, p[1]);
    assert_int_equal(tp_engine_sync(r->engine, rig_str(p[0]), &request, r->now, &reply,
                                    NULL, NULL),
                     TP_OK);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    view = rig_view(r, id);
    assert_int_equal(view->members[0].clock_error_ns, 1200 * RIG_S + 1);
    assert_true(view->start_at_wall_ns < r->now.wall_ns + 200 * RIG_MS);
    tp_trace_view_free(view);
}

/* Who was there at the start has died; somebody new does not move what others keep. */
static void test_who_comes_long_after_does_not_put_the_start_off(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.job = rig_str("j"), .stop_duration_ms = 4000};
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;
    uint64_t created_ns;

    rig_join(r, "p0", 0, p[0]);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    created_ns = r->now.wall_ns;
    rig_wait(r, 3600 * RIG_MS);
    rig_producer(r, "j", "p1", 1, p[1]);
    reply = rig_sync(r, p[1], NULL);
    assert_int_equal(reply.n_commands, 2);
    assert_true(reply.commands[1].start_wall_ns < created_ns + 100 * RIG_MS);
    rig_sync(r, p[1], &reply);
    rig_wait(r, 500 * RIG_MS);
    rig_expect_state(r, id, "stopping");
}

static void test_a_start_that_is_put_off_puts_the_end_off(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.job = rig_str("j"), .stop_duration_ms = 1000};
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;

    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    rig_wait(r, 600 * RIG_MS);
    reply = rig_sync(r, p, NULL);
    assert_true(reply.commands[1].start_wall_ns > r->now.wall_ns);
    rig_sync(r, p, &reply);
    rig_wait(r, 1000 * RIG_MS);
    rig_expect_state(r, id, "recording");
    rig_wait(r, 5 * RIG_MS);
    rig_expect_state(r, id, "stopping");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_who_takes_part_is_told_to_arm_and_when_to_start_in_one_answer),
        engine_test(test_who_was_told_to_start_is_told_to_stop_before_it_answers),
        engine_test(test_the_start_gives_the_time_that_telling_all_took_before),
        engine_test(test_a_straggler_does_not_put_later_starts_off),
        engine_test(test_who_does_not_know_the_time_does_not_put_the_start_off),
        engine_test(test_who_comes_long_after_does_not_put_the_start_off),
        engine_test(test_a_start_that_is_put_off_puts_the_end_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
