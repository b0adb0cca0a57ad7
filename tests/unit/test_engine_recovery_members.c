/*
 * What a killed service knows of the producers of a trace: who they are, which streams
 * they write to, and who has left.
 */
#include "support/engine_test.h"

#include "base/err.h"

#define MANY 300 /* members: more than are written at once, so they begin as a list */

/* A trace of all but the last, who is told what to do; until something fails. */
static bool live_of_many(struct rig *r, char p[][TP_TRACE_ID_BYTES], char *id)
{
    static uint32_t ranks[MANY - 1];
    struct tp_trace_request request = {.job = rig_str("j"),
                                       .ranks = ranks,
                                       .n_ranks = MANY - 1};

    for (uint32_t i = 0; i < MANY - 1; i++)
        ranks[i] = i;
    if (rig_create_from(r, &request, id) != TP_OK)
        return false;
    rig_wait(r, 100 * RIG_MS);
    for (int i = 0; i < MANY - 1; i++) {
        struct tp_sync_reply reply = rig_sync(r, p[i], NULL);

        rig_sync(r, p[i], &reply);
    }
    for (int i = 0; i < 5; i++)
        rig_wait(r, 500 * RIG_MS);
    return true;
}

/* All members are there with their streams, with rows of their own or without. */
static void expect_many(struct rig *r, const char *id, int n)
{
    struct tp_trace_view *view = rig_view(r, id);
    bool seen[MANY] = {false};

    assert_int_equal(view->n_members, MANY);
    assert_int_equal(view->n_matched, MANY - 1);
    for (size_t i = 0; i < MANY; i++) {
        const struct tp_member_view *m = &view->members[i];

        if (m->who.rank == MANY - 1) {
            assert_false(m->is_matched);
            assert_string_equal(m->reason, "not selected: rank 299");
            continue;
        }
        if (!m->is_matched || m->stream_no < 1 || m->stream_no >= MANY ||
            seen[m->stream_no])
            fail_msg("kill at %d: %s has stream %u", n, m->who.name, m->stream_no);
        seen[m->stream_no] = true;
    }
    tp_trace_view_free(view);
}

static void test_many_members_are_there_after_a_kill_at_any_moment(void **state)
{
    bool was_hit = true;

    (void)state;
    for (int n = 0; was_hit; n += n < 10 || (n > 250 && n < 275) ? 1 : 23) {
        char p[MANY][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
        bool was_created;
        struct rig r;

        rig_init(&r);
        assert_int_equal(rig_start(&r), TP_OK);
        for (int i = 0; i < MANY; i++)
            rig_join(&r, "p", i, p[i]);
        store_faulty_break_after(r.store, n);
        was_created = live_of_many(&r, p, id);
        was_hit = store_faulty_disarm(r.store);
        assert_true(was_created || was_hit);
        assert_int_equal(rig_restart(&r), TP_OK);
        if (was_created) {
            expect_many(&r, id, n);
            for (int i = 0; i < 5; i++)
                rig_wait(&r, 500 * RIG_MS);
            assert_int_equal(rig_restart(&r), TP_OK); /* now of rows */
            expect_many(&r, id, n);
        }
        rig_fini(&r);
    }
}

/* It is in all that a producer sends, also of one that came when the trace was made. */
static void test_who_joined_late_keeps_its_stream_after_a_kill(void **state)
{
    enum { N = 5 };
    struct rig *r = *state;
    char p[N][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    uint32_t stream_no[N];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (int i = 0; i < N; i++)
        rig_producer(r, "j", "p", i, p[i]);
    for (int i = N - 1; i >= 0; i--) { /* so that the order of rows is another */
        struct tp_sync_reply reply = rig_sync(r, p[i], NULL);

        assert_true(reply.n_commands > 0);
        stream_no[i] = reply.commands[0].stream_no;
        assert_int_equal(stream_no[i], N - i);
    }
    assert_int_equal(rig_restart(r), TP_OK);
    for (int i = 0; i < N; i++) {
        struct tp_sync_reply reply = rig_sync(r, p[i], NULL);

        assert_true(reply.n_commands > 0);
        assert_int_equal(reply.commands[0].stream_no, stream_no[i]);
    }
}

/* Without a row it is not told of its stream, and asks again. */
static void test_who_joins_is_not_told_while_the_store_fails(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_request request = {0};
    struct tp_sync_reply reply = {0};

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    rig_producer(r, "j", "p", 0, p);
    store_faulty_break_after(r->store, 0);
    assert_int_equal(tp_engine_sync(r->engine, rig_str(p), &request, r->now, &reply,
                                    &r->problem, &r->err),
                     TP_EIO);
    assert_int_equal(r->problem.kind, TP_PROBLEM_STORAGE);
    assert_true(store_faulty_disarm(r->store));
    reply = rig_sync(r, p, NULL);
    assert_true(reply.n_commands > 0);
    assert_int_equal(reply.commands[0].stream_no, 1);
}

static void expect_member(struct rig *r, const char *id, const char *state,
                          const char *reason)
{
    struct tp_trace_view *view = rig_view(r, id);

    assert_int_equal(view->n_members, 2);
    assert_string_equal(view->members[0].state, state);
    assert_string_equal(view->members[0].reason, reason);
    tp_trace_view_free(view);
}

/* A recording trace of two, of whom the first removes itself just before a kill: what
 * the service knew of it is still known, and nobody waits for it. */
static void leave_before_a_kill(struct rig *r, bool is_done, const char *state,
                                const char *reason, const char *outcome)
{
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;

    rig_join(r, "p0", 0, p[0]);
    rig_join(r, "p1", 1, p[1]);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (int i = 0; i < 2; i++) {
        reply = rig_sync(r, p[i], NULL);
        rig_sync(r, p[i], &reply);
    }
    rig_wait(r, 2 * RIG_S); /* the rows say that they record */
    if (is_done) {
        reply.n_commands = 1;
        reply.commands[0].kind = TP_COMMAND_STOP;
        rig_sync(r, p[0], &reply);
    }
    assert_int_equal(tp_engine_producer_delete(r->engine, rig_str(p[0]), r->now,
                                               &r->problem, &r->err),
                     TP_OK);
    expect_member(r, id, state, reason);
    assert_int_equal(rig_restart(r), TP_OK);
    expect_member(r, id, state, reason);
    assert_int_equal(rig_stop(r, id), TP_OK);
    reply = rig_sync(r, p[1], NULL);
    rig_sync(r, p[1], &reply);
    rig_work(r);
    rig_expect_outcome(r, id, outcome, NULL);
}

static void test_who_was_done_and_left_is_done_after_a_kill(void **state)
{
    leave_before_a_kill(*state, true, "done", "", "empty");
}

static void test_who_left_is_lost_after_a_kill(void **state)
{
    leave_before_a_kill(*state, false, "lost", "it left", "empty");
}

/* The removal failed, so it is there as before. */
static void test_who_cannot_leave_stays(void **state)
{
    struct rig *r = *state;
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];

    rig_join(r, "p0", 0, p[0]);
    rig_join(r, "p1", 1, p[1]);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (int n = 0; n < 4; n++) {
        store_faulty_break_after(r->store, n);
        assert_int_equal(tp_engine_producer_delete(r->engine, rig_str(p[0]), r->now,
                                                   &r->problem, &r->err),
                         TP_EIO);
        assert_int_equal(r->problem.kind, TP_PROBLEM_STORAGE);
        assert_true(store_faulty_disarm(r->store));
        expect_member(r, id, "waiting", "");
    }
    rig_wait(r, 2 * RIG_S);
    assert_int_equal(rig_restart(r), TP_OK);
    expect_member(r, id, "waiting", "");
    assert_true(rig_sync(r, p[0], NULL).n_commands > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_members_are_there_after_a_kill_at_any_moment),
        engine_test(test_who_joined_late_keeps_its_stream_after_a_kill),
        engine_test(test_who_joins_is_not_told_while_the_store_fails),
        engine_test(test_who_was_done_and_left_is_done_after_a_kill),
        engine_test(test_who_left_is_lost_after_a_kill),
        engine_test(test_who_cannot_leave_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
