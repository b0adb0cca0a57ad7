/*
 * Why a trace that waits for producers has started.
 */
#include "support/engine_test.h"

#include "base/err.h"

static void create_for_all(struct rig *r, char *id)
{
    struct tp_trace_request request = {.job = rig_str("j"), .require = TP_REQUIRE_ALL};

    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
}

static void expect_start_cause(struct rig *r, const char *id, const char *cause)
{
    struct tp_trace_view *view = rig_view(r, id);

    assert_int_equal(view->n_moves, 2);
    assert_string_equal(view->moves[1].state, "recording");
    assert_string_equal(view->moves[1].cause, cause);
    tp_trace_view_free(view);
}

static void test_a_start_says_who_is_not_armed(void **state)
{
    struct rig *r = *state;
    char p[4][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_ack ack = {.command = TP_COMMAND_PREPARE,
                              .is_refused = true,
                              .reason = rig_str("out of memory")};
    struct tp_sync_request refusal = {.acks = &ack, .n_acks = 1};
    struct tp_sync_reply reply;

    rig_producer(r, "j", "silent0", 0, p[0]);
    rig_producer(r, "j", "silent1", 1, p[1]);
    rig_join(r, "p2", 2, p[2]);
    rig_join(r, "p3", 3, p[3]);
    create_for_all(r, id);
    ack.trace_id = rig_str(id);
    reply = rig_sync(r, p[2], NULL);
    rig_sync(r, p[2], &reply);
    rig_expect_state(r, id, "prepared");
    assert_int_equal(tp_engine_sync(r->engine, rig_str(p[3]), &refusal, r->now, &reply,
                                    &r->problem, &r->err),
                     TP_OK);
    expect_start_cause(r, id,
                       "all producers that take part are armed; 2 yet to ask for "
                       "commands, 1 refused");
}

static void test_a_start_without_others_says_so(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;

    rig_join(r, "p0", 0, p);
    create_for_all(r, id);
    reply = rig_sync(r, p, NULL);
    rig_sync(r, p, &reply);
    expect_start_cause(r, id, "all producers are armed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_a_start_says_who_is_not_armed),
        engine_test(test_a_start_without_others_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
