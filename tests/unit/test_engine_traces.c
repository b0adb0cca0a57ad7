/*
 * Creating, starting, stopping, cancelling, deleting and listing traces.
 */
#include "support/engine_test.h"

#include <stdio.h>

#include "base/err.h"
#include "core/filter.h"
#include "core/limits.h"

static void test_a_job_has_one_active_trace(void **state)
{
    struct rig *r = *state;
    char a[TP_TRACE_ID_BYTES], b[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, a), TP_OK);
    assert_int_equal(rig_create(r, "j", NULL, b), TP_EEXIST);
    assert_int_equal(r->problem.kind, TP_PROBLEM_TRACE_ACTIVE);
    assert_string_equal(r->problem.trace_id, a);
    assert_string_equal(r->problem.state, "recording");
    assert_int_equal(rig_create(r, "k", NULL, b), TP_OK);
    assert_int_equal(rig_stop(r, a), TP_OK);
    rig_work(r);
    assert_int_equal(rig_create(r, "j", NULL, b), TP_OK);
}

static void test_an_unknown_type_in_a_filter_names_its_field(void **state)
{
    struct rig *r = *state;
    struct tp_engine_stats stats;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", "kernal", id), TP_EINVAL);
    assert_int_equal(r->problem.kind, TP_PROBLEM_UNKNOWN_TYPE);
    assert_string_equal(r->problem.field, "filter.include[0]");
    assert_string_equal(r->problem.name, "kernal");
    assert_string_equal(r->problem.type.names[0], "kernel");
    tp_engine_stats(r->engine, &stats);
    assert_int_equal(stats.jobs, 0);
}

static void test_a_dry_run_says_all_and_makes_nothing(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.job = rig_str("j"), .dry_run = true};
    struct tp_trace_view *view;
    struct tp_engine_stats stats;

    assert_int_equal(tp_engine_trace_create(r->engine, &request, r->now, &view,
                                            &r->problem, &r->err),
                     TP_OK);
    assert_true(view->is_dry_run);
    assert_string_equal(view->id, "");
    assert_int_equal(view->n_warnings, 1);
    assert_int_equal(view->n_types, 18);
    tp_trace_view_free(view);
    tp_engine_stats(r->engine, &stats);
    assert_int_equal(stats.jobs, 0);
    assert_int_equal(stats.traces, 0);
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(r->recovery.traces, 0);
}

static void test_caps_are_applied_and_echoed(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.stop_duration_ms = UINT64_MAX,
                                       .stop_max_bytes = 1000};
    struct tp_trace_view *view;

    assert_int_equal(tp_engine_trace_create(r->engine, &request, r->now, &view,
                                            &r->problem, &r->err),
                     TP_OK);
    assert_true(view->duration_is_capped);
    assert_int_equal(view->duration_ms, r->limits->trace_duration_ms);
    assert_false(view->max_bytes_is_capped);
    assert_int_equal(view->max_bytes, 1000);
    assert_string_equal(view->deadline_what, "stop");
    assert_int_equal(view->deadline_wall_ns,
                     r->now.wall_ns + view->duration_ms * RIG_MS);
    assert_int_equal(view->n_warnings, 2);
    tp_trace_view_free(view);
}

/* What a client wrote comes back after a restart, too. */
static void expect_request(struct rig *r, const char *id)
{
    struct tp_trace_view *view = rig_view(r, id);
    size_t n;

    assert_string_equal(view->label, "a \"label\"");
    assert_string_equal(view->metadata_json, "{\"a\": [1, 2]}");
    assert_string_equal(view->kineto_json, "{\"with_stack\":true}");
    assert_int_equal(view->n_ranks, 2);
    assert_int_equal(view->ranks[1], 5);
    assert_int_equal(view->n_hosts, 1);
    assert_string_equal(view->hosts[0], "node1");
    assert_int_equal(view->start, TP_START_STEP);
    assert_int_equal(view->start_step, 100);
    assert_int_equal(view->steps, 3);
    assert_int_equal(view->require_count, 0);
    assert_int_equal(tp_filter_min_duration_ns(view->filter), 1000);
    assert_true(
        tp_str_is(tp_filter_items(view->filter, TP_FILTER_INCLUDE, &n)[0], "p.*"));
    assert_int_equal(view->n_types, 1);
    assert_string_equal(view->types[0].name, "p.A");
    tp_trace_view_free(view);
}

static void test_what_was_asked_for_is_kept(void **state)
{
    struct rig *r = *state;
    const uint32_t ranks[] = {0, 5};
    struct tp_str host = rig_str("node1"), include = rig_str("p.*");
    struct tp_trace_request request = {
        .job = rig_str("j"),
        .ranks = ranks,
        .n_ranks = 2,
        .hosts = &host,
        .n_hosts = 1,
        .start = TP_START_STEP,
        .start_step = 100,
        .stop_steps = 3,
        .label = rig_str("a \"label\""),
        .metadata_json = rig_str("{\"a\": [1, 2]}"),
        .kineto_json = rig_str("{\"with_stack\":true}"),
        .filter = {.min_duration_ns = 1000},
    };
    char id[TP_TRACE_ID_BYTES];
    unsigned type;

    request.filter.lists[TP_FILTER_INCLUDE].items = &include;
    request.filter.lists[TP_FILTER_INCLUDE].n = 1;
    assert_int_equal(rig_type(r, "j", "p", "A", &type), TP_OK);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    expect_request(r, id);
    assert_int_equal(rig_restart(r), TP_OK);
    expect_request(r, id);
    /* What registers after the end is not in the filter of before. */
    assert_int_equal(tp_engine_trace_cancel(r->engine, rig_str(id), rig_str(""), r->now,
                                            NULL, NULL, &r->err),
                     TP_OK);
    assert_int_equal(rig_type(r, "j", "p", "B", &type), TP_OK);
    assert_int_equal(rig_restart(r), TP_OK);
    expect_request(r, id);
}

static void test_manual_waits_for_its_start(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.start = TP_START_MANUAL};
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    rig_expect_state(r, id, "prepared");
    assert_int_equal(rig_post(r, id, "p", 0, 1, "[]", NULL), TP_ESTATE);
    assert_string_equal(r->problem.state, "prepared");
    assert_int_equal(rig_stop(r, id), TP_ESTATE);
    rig_wait(r, RIG_S);
    assert_int_equal(tp_engine_trace_start(r->engine, rig_str(id), rig_str("bob"),
                                           r->now, &view, &r->problem, &r->err),
                     TP_OK);
    assert_string_equal(view->state, "recording");
    assert_string_equal(view->moves[1].cause, "bob");
    assert_int_equal(view->started_wall_ns, r->now.wall_ns);
    tp_trace_view_free(view);
    assert_int_equal(tp_engine_trace_start(r->engine, rig_str(id), rig_str("bob"),
                                           r->now, NULL, &r->problem, &r->err),
                     TP_OK);
}

static void test_a_prepared_trace_does_not_wait_for_ever(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.start = TP_START_MANUAL};
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    rig_wait(r, r->limits->trace_prepared_ms * RIG_MS);
    view = rig_view(r, id);
    assert_string_equal(view->state, "failed");
    assert_string_equal(view->reason, "not started in time");
    tp_trace_view_free(view);
}

static void test_start_at_starts_then(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.start = TP_START_AT,
                                       .start_wall_ns = RIG_START_NS + 2 * RIG_S,
                                       .stop_duration_ms = 500};
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    rig_wait(r, 2 * RIG_S - 1);
    rig_expect_state(r, id, "prepared");
    rig_wait(r, 1);
    rig_expect_state(r, id, "recording");
    rig_wait(r, 500 * RIG_MS);
    rig_expect_outcome(r, id, "empty", "no producer took part and nothing was posted");
}

/* Its job would wait for it, and times that count from it might be none. */
static void test_a_start_that_is_too_far_away_is_refused(void **state)
{
    struct rig *r = *state;
    uint64_t most_ns = r->limits->trace_prepared_ms * RIG_MS;
    struct tp_trace_request request = {.start = TP_START_AT};
    char id[TP_TRACE_ID_BYTES];

    request.start_wall_ns = RIG_START_NS + most_ns + RIG_MS;
    assert_int_equal(rig_create_from(r, &request, id), TP_EQUOTA);
    assert_string_equal(r->problem.limit_name, "max-trace-prepared-ms");
    request.start_wall_ns = INT64_MAX;
    assert_int_equal(rig_create_from(r, &request, id), TP_EQUOTA);
    request.start_wall_ns = RIG_START_NS + most_ns;
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
}

static void test_stop_and_cancel_may_be_repeated_but_not_mixed(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    char *body = rig_events("kernel", 2, 1);

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_expect_state(r, id, "stopping");
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    assert_int_equal(rig_stop(r, id), TP_OK);
    assert_int_equal(tp_engine_trace_cancel(r->engine, rig_str(id), rig_str(""), r->now,
                                            NULL, &r->problem, &r->err),
                     TP_ESTATE);
    assert_int_equal(r->problem.kind, TP_PROBLEM_ILLEGAL_STATE);
    assert_string_equal(r->problem.state, "complete");
    free(body);
}

static void test_cancel_throws_the_data_away(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    char *body = rig_events("kernel", 2, 1);

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tp_engine_trace_cancel(r->engine, rig_str(id), rig_str(""),
                                                r->now, NULL, &r->problem, &r->err),
                         TP_OK);
    rig_expect_state(r, id, "cancelled");
    assert_int_equal(blob_mem_names(r->blobs), 0);
    assert_null(rig_download(r, id, "chrome"));
    assert_int_equal(r->err.code, TP_ESTATE);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    free(body);
}

static void test_delete_refuses_active_traces_and_removes_finished_ones(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    char *body = rig_events("kernel", 2, 1);

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(tp_engine_trace_delete(r->engine, rig_str(id), r->now, &r->problem,
                                            &r->err),
                     TP_ESTATE);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    store_faulty_fail_after(r->store, 0);
    assert_int_equal(tp_engine_trace_delete(r->engine, rig_str(id), r->now, &r->problem,
                                            &r->err),
                     TP_EIO);
    rig_expect_state(r, id, "complete");
    assert_int_equal(tp_engine_trace_delete(r->engine, rig_str(id), r->now, &r->problem,
                                            &r->err),
                     TP_OK);
    assert_int_equal(rig_stop(r, id), TP_ENOTFOUND);
    assert_string_equal(r->problem.subject, "trace");
    assert_int_equal(blob_mem_names(r->blobs), 0);
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(r->recovery.traces, 0);
    free(body);
}

static void test_an_idempotency_key_gives_the_first_answer_again(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.job = rig_str("j"),
                                       .idempotency_key = rig_str("k1"),
                                       .body = rig_str("{\"job\":\"j\"}")};
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES], other[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tp_engine_trace_create(r->engine, &request, r->now, &view,
                                                &r->problem, &r->err),
                         TP_OK);
        assert_true(view->is_replay);
        assert_string_equal(view->id, id);
        assert_string_equal(view->state, "recording");
        assert_int_equal(view->n_moves, 2);
        tp_trace_view_free(view);
        assert_int_equal(rig_restart(r), TP_OK);
    }
    request.body = rig_str("{\"job\":\"j\",\"label\":\"x\"}");
    assert_int_equal(rig_create_from(r, &request, other), TP_EEXIST);
    assert_int_equal(r->problem.kind, TP_PROBLEM_IDEMPOTENCY_MISMATCH);
    assert_string_equal(r->problem.trace_id, id);
    /* A day later the key is free. */
    rig_wait(r, 86401 * RIG_S);
    assert_int_equal(rig_create_from(r, &request, other), TP_OK);
    assert_string_not_equal(id, other);
}

static void test_required_producers_are_counted(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.job = rig_str("j"),
                                       .require = TP_REQUIRE_COUNT,
                                       .require_count = 2};
    char id[TP_TRACE_ID_BYTES], p[TP_TRACE_ID_BYTES];

    rig_producer(r, "j", "p0", 0, p);
    assert_int_equal(rig_create_from(r, &request, id), TP_ESTATE);
    assert_int_equal(r->problem.kind, TP_PROBLEM_NOT_ENOUGH_PRODUCERS);
    assert_int_equal(r->problem.required, 2);
    assert_int_equal(r->problem.available, 1);
    rig_producer(r, "j", "p1", 1, p);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    request.job = rig_str("nobody");
    request.require = TP_REQUIRE_ALL;
    assert_int_equal(rig_create_from(r, &request, id), TP_ESTATE);
}

static void test_lists_are_newest_first_and_filtered(void **state)
{
    struct rig *r = *state;
    struct tp_trace_query query = {.job = rig_str("j"), .limit = 2};
    struct tp_trace_list *list;
    char ids[4][TP_TRACE_ID_BYTES];

    for (int i = 0; i < 4; i++) {
        assert_int_equal(rig_create(r, i == 1 ? "k" : "j", NULL, ids[i]), TP_OK);
        if (i < 3)
            assert_int_equal(rig_stop(r, ids[i]), TP_OK);
        if (i > 0)
            assert_true(strcmp(ids[i - 1], ids[i]) < 0);
    }
    assert_int_equal(tp_engine_traces_list(r->engine, &query, r->now, &list,
                                           &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(list->n, 2);
    assert_string_equal(list->items[0]->id, ids[3]);
    assert_string_equal(list->items[1]->id, ids[2]);
    assert_true(list->has_more);
    query.after = rig_str(ids[2]);
    tp_trace_list_free(list);
    assert_int_equal(tp_engine_traces_list(r->engine, &query, r->now, &list,
                                           &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(list->n, 1);
    assert_string_equal(list->items[0]->id, ids[0]);
    tp_trace_list_free(list);
    query = (struct tp_trace_query){.state = rig_str("active")};
    assert_int_equal(tp_engine_traces_list(r->engine, &query, r->now, &list,
                                           &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(list->n, 1);
    tp_trace_list_free(list);
    query.state = rig_str("sleeping");
    assert_int_equal(tp_engine_traces_list(r->engine, &query, r->now, &list,
                                           &r->problem, &r->err),
                     TP_EINVAL);
    assert_string_equal(r->problem.field, "state");
}

static void test_limits_of_traces_are_exceeded_by_name(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    r->limits->active_traces = 1;
    r->limits->stored_traces = 2;
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(rig_create(r, "a", NULL, id), TP_OK);
    assert_int_equal(rig_create(r, "b", NULL, id), TP_EQUOTA);
    assert_string_equal(r->problem.limit_name, "max-active-traces");
    assert_int_equal(rig_stop(r, id), TP_OK);
    assert_int_equal(rig_create(r, "a", NULL, id), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    assert_int_equal(rig_create(r, "a", NULL, id), TP_EQUOTA);
    assert_string_equal(r->problem.limit_name, "max-stored-traces");
}

static void test_watchers_see_each_change(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    uint64_t before, after;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(
        tp_engine_trace_version(r->engine, rig_str(id), &before, NULL, NULL), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, "[]", NULL), TP_OK);
    assert_int_equal(
        tp_engine_trace_version(r->engine, rig_str(id), &after, NULL, NULL), TP_OK);
    assert_true(after > before);
    assert_int_equal(rig_stop(r, id), TP_OK);
    assert_int_equal(
        tp_engine_trace_version(r->engine, rig_str(id), &before, NULL, NULL), TP_OK);
    assert_true(before > after);
}

/* Whatever codec a request comes through: the engine itself holds the limits. */
static void test_a_request_over_a_limit_is_refused_by_name(void **state)
{
    static const struct tp_str items[] = {{"kernel", 6}, {"cpu_op", 6}, {"a", 1}};
    static const uint32_t ranks[] = {1, 2, 3};
    struct tp_trace_request requests[] = {
        {.ranks = ranks, .n_ranks = 3},
        {.hosts = items, .n_hosts = 3},
        {.producers = items, .n_producers = 3},
        {.metadata_json = rig_str("{\"a\":123}")},
        {.kineto_json = rig_str("{\"a\":123}")},
        {.label = rig_str("123456789")},
        {.filter.lists[TP_FILTER_EXCLUDE] = {items, 3}},
        {.filter.lists[TP_FILTER_NAMES_INCLUDE] = {items, 1}},
    };
    static const char *const names[] = {"max-select-entries", "max-select-entries",
                                        "max-select-entries", "max-metadata-bytes",
                                        "max-metadata-bytes", "max-label-bytes",
                                        "max-filter-entries", "max-filter-entry-bytes"};
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    r->limits->select_entries = r->limits->filter_entries = 2;
    r->limits->metadata_bytes = r->limits->label_bytes = 8;
    r->limits->filter_entry_bytes = 5;
    assert_int_equal(rig_restart(r), TP_OK);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        int rc = rig_create_from(r, &requests[i], id);

        if (rc != TP_EQUOTA || r->problem.kind != TP_PROBLEM_LIMIT_EXCEEDED ||
            strcmp(r->problem.limit_name, names[i]) != 0)
            fail_msg("%s: %d, '%s' %s", names[i], rc, r->problem.limit_name,
                     r->err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_a_request_over_a_limit_is_refused_by_name),
        engine_test(test_a_job_has_one_active_trace),
        engine_test(test_an_unknown_type_in_a_filter_names_its_field),
        engine_test(test_a_dry_run_says_all_and_makes_nothing),
        engine_test(test_caps_are_applied_and_echoed),
        engine_test(test_what_was_asked_for_is_kept),
        engine_test(test_manual_waits_for_its_start),
        engine_test(test_a_prepared_trace_does_not_wait_for_ever),
        engine_test(test_start_at_starts_then),
        engine_test(test_a_start_that_is_too_far_away_is_refused),
        engine_test(test_stop_and_cancel_may_be_repeated_but_not_mixed),
        engine_test(test_cancel_throws_the_data_away),
        engine_test(test_delete_refuses_active_traces_and_removes_finished_ones),
        engine_test(test_an_idempotency_key_gives_the_first_answer_again),
        engine_test(test_required_producers_are_counted),
        engine_test(test_lists_are_newest_first_and_filtered),
        engine_test(test_limits_of_traces_are_exceeded_by_name),
        engine_test(test_watchers_see_each_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
