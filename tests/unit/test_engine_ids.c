/* Ids of producers: who gets the one that it asks for, and what it is known by. */
#include "support/engine_test.h"

#include "base/err.h"
#include "base/ulid.h"
#include "store/store.h"

#define ID_A "01m8pwgezv8xjyd24jtcnp309p"
#define ID_B "7zzzzzzzzzzzzzzzzzzzzzzzzz" /* of a clock that is years ahead */

static void test_one_that_asks_for_an_id_is_known_by_it(void **state)
{
    struct rig *r = *state;
    char got[TP_TRACE_ID_BYTES], made[TP_TRACE_ID_BYTES];

    for (int i = 0; i < 2; i++) {
        rig_ask_for_id(r, "j", ID_A, 0, got);
        assert_string_equal(got, ID_A);
        rig_ask_for_id(r, "j", ID_B, 0, got); /* the same in all but the id */
        assert_string_equal(got, ID_B);
        assert_int_equal(rig_restart(r), TP_OK);
        assert_int_equal(r->recovery.producers, 2);
    }
    /* Who asks for none, and is the same in all else, is neither. */
    rig_ask_for_id(r, "j", "", 0, got);
    assert_string_not_equal(got, ID_A);
    assert_string_not_equal(got, ID_B);
    /* Somebody else's: another rank, another job. */
    rig_ask_for_id(r, "j", ID_A, 1, got);
    assert_string_not_equal(got, ID_A);
    rig_ask_for_id(r, "k", ID_A, 0, got);
    assert_string_not_equal(got, ID_A);
    /* Ids of producers' clocks are not what ours go by. */
    rig_producer(r, "j", "p0", 0, made);
    assert_true(strcmp(made, ID_B) < 0);
    assert_int_equal(tp_engine_producer_delete(r->engine, rig_str(ID_A), r->now,
                                               &r->problem, &r->err),
                     TP_OK);
    rig_ask_for_id(r, "j", ID_B, 0, got);
    assert_string_equal(got, ID_B);
}

/* A batch that was on its way meanwhile is its own still. */
static void test_one_that_was_forgotten_goes_on_in_its_trace(void **state)
{
    char *body = rig_events("kernel", 3, 1);
    struct rig *r = *state;
    char got[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;
    struct tp_trace_view *view;

    rig_ask_for_id(r, "j", ID_A, 0, got);
    rig_sync(r, ID_A, NULL);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    reply = rig_sync(r, ID_A, NULL);
    assert_int_equal(reply.commands[0].stream_no, 1);
    rig_sync(r, ID_A, &reply);
    assert_int_equal(tp_engine_producer_delete(r->engine, rig_str(ID_A), r->now,
                                               &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(rig_post(r, id, ID_A, -1, 1, body, NULL), TP_OK);
    /* Nobody else takes its place. */
    rig_ask_for_id(r, "j", ID_A, 5, got);
    assert_string_not_equal(got, ID_A);
    rig_ask_for_id(r, "j", ID_A, 0, got);
    assert_string_equal(got, ID_A);
    reply = rig_sync(r, ID_A, NULL);
    assert_int_equal(reply.commands[0].kind, TP_COMMAND_PREPARE);
    assert_int_equal(reply.commands[0].stream_no, 1);
    rig_sync(r, ID_A, &reply);
    view = rig_view(r, id);
    assert_int_equal(view->n_members, 2);
    assert_string_equal(view->members[0].state, "recording");
    assert_string_equal(view->members[0].reason, "");
    assert_int_equal(view->n_streams, 1);
    assert_int_equal(view->streams[0].no, 1);
    assert_int_equal(view->streams[0].counts.stored, 3);
    tp_trace_view_free(view);
    free(body);
}

/* The trace that is on knows it by its id alone: its batches, and who it is after a
 * restart. */
static void test_the_id_of_a_member_is_not_given_to_another_job(void **state)
{
    char *body = rig_events("kernel", 3, 1);
    struct rig *r = *state;
    char got[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES], other[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;
    struct tp_trace_view *view;

    rig_ask_for_id(r, "j", ID_A, 0, got);
    rig_sync(r, ID_A, NULL);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    reply = rig_sync(r, ID_A, NULL);
    rig_sync(r, ID_A, &reply);
    assert_int_equal(tp_engine_producer_delete(r->engine, rig_str(ID_A), r->now,
                                               &r->problem, &r->err),
                     TP_OK);
    for (int i = 0; i < 2; i++) {
        rig_ask_for_id(r, "k", ID_A, 0, got); /* the same in all but the job */
        assert_string_not_equal(got, ID_A);
        assert_int_equal(rig_restart(r), TP_OK);
    }
    assert_int_equal(rig_create(r, "k", NULL, other), TP_OK);
    assert_int_equal(rig_post(r, id, ID_A, -1, 1, body, NULL), TP_OK);
    rig_ask_for_id(r, "j", ID_A, 0, got);
    assert_string_equal(got, ID_A);
    reply = rig_sync(r, ID_A, NULL);
    assert_string_equal(reply.commands[0].trace_id, id);
    assert_int_equal(reply.commands[0].stream_no, 1);
    view = rig_view(r, id);
    assert_int_equal(view->n_members, 1);
    assert_int_equal(view->streams[0].counts.stored, 3);
    tp_trace_view_free(view);
    /* When the trace has ended nothing goes by it any more. */
    assert_int_equal(tp_engine_trace_cancel(r->engine, rig_str(id), rig_str(""), r->now,
                                            NULL, &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(tp_engine_producer_delete(r->engine, rig_str(ID_A), r->now,
                                               &r->problem, &r->err),
                     TP_OK);
    rig_ask_for_id(r, "k", ID_A, 0, got);
    assert_string_equal(got, ID_A);
    free(body);
}

/* A store in which it has come to that all the same: an older service gave the id. */
static void test_a_restart_takes_no_producer_into_the_trace_of_another_job(void **state)
{
    struct rig *r = *state;
    char got[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES], other[TP_TRACE_ID_BYTES];
    struct tp_row_producer row = {.who = {.producer_id = rig_str(ID_A),
                                          .name = rig_str("rank-0"),
                                          .kind = rig_str("native"),
                                          .pid = 7},
                                  .job = rig_str("k"),
                                  .capabilities = rig_str("{}")};
    struct tp_sync_reply reply;
    struct tp_trace_view *view;

    rig_ask_for_id(r, "j", ID_A, 0, got);
    rig_sync(r, ID_A, NULL);
    rig_ask_for_id(r, "k", ID_B, 1, got);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    reply = rig_sync(r, ID_A, NULL);
    rig_sync(r, ID_A, &reply);
    assert_int_equal(tp_engine_producer_delete(r->engine, rig_str(ID_A), r->now,
                                               &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(r->store->ops->put_producer(r->store, &row, &r->err), TP_OK);
    assert_int_equal(rig_restart(r), TP_OK);
    view = rig_view(r, id);
    assert_string_equal(view->members[0].state, "lost");
    tp_trace_view_free(view);
    reply = rig_sync(r, ID_A, NULL);
    assert_int_equal(reply.n_commands, 0);
    /* It takes part where it belongs. */
    assert_int_equal(rig_create(r, "k", NULL, other), TP_OK);
    reply = rig_sync(r, ID_A, NULL);
    assert_string_equal(reply.commands[0].trace_id, other);
}

/* At the same moment, or with a clock that was set back, the next id is one more than
 * the last that is known: of a trace, after a restart. */
static void test_an_id_that_is_made_is_nobody_elses(void **state)
{
    struct rig *r = *state;
    char made[3][TP_TRACE_ID_BYTES], next[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_producer_query query = {.job = rig_str("k")};
    struct tp_producer_list *list;
    uint8_t binary[TP_ULID_BINARY];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    rig_producer(r, "k", "before", 0, made[0]);
    assert_int_equal(rig_restart(r), TP_OK);
    rig_producer(r, "k", "behind", 1, made[1]);
    assert_string_not_equal(made[0], made[1]);
    assert_true(tp_ulid_read(tp_str_of(made[1]), binary));
    binary[TP_ULID_BINARY - 1]++;
    tp_ulid_write(binary, next);
    rig_ask_for_id(r, "k", next, 2, id);
    assert_string_equal(id, next);
    rig_producer(r, "k", "last", 3, made[2]);
    assert_string_not_equal(made[2], next);
    assert_int_equal(tp_engine_producers_list(r->engine, &query, r->now, &list,
                                              &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(list->n, 4);
    tp_producer_list_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_one_that_asks_for_an_id_is_known_by_it),
        engine_test(test_one_that_was_forgotten_goes_on_in_its_trace),
        engine_test(test_the_id_of_a_member_is_not_given_to_another_job),
        engine_test(test_a_restart_takes_no_producer_into_the_trace_of_another_job),
        engine_test(test_an_id_that_is_made_is_nobody_elses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
