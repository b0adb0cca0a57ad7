/*
 * Kill the engine at every moment: whatever the store or the blobs were doing, the next
 * one comes up with a truth, and nothing stays stuck.
 */
#include "support/engine_test.h"

#include <stdio.h>

#include "base/err.h"
#include "store/store.h"

/* How far a life got before it was killed. */
struct progress {
    char id[TP_TRACE_ID_BYTES];
    bool was_created;
    unsigned acknowledged; /* events */
    bool was_stopped;
};

/* The data of linked producers only: the trace is complete before it is sealed. */
static bool post_native(struct rig *r, struct progress *p)
{
    for (int i = 0; i < 4; i++) {
        if (rig_native(r, p->id, i % 2 == 0 ? "p" : "q", 0, i, 1 + i % 2, 4) != TP_OK)
            return false;
        p->acknowledged += 4;
    }
    return true;
}

static bool post_json(struct rig *r, struct progress *p, const char *body)
{
    for (int i = 0; i < 3; i++) {
        if (rig_post(r, p->id, i == 2 ? "q" : "p", 0, i, body, NULL) != TP_OK)
            return false;
        p->acknowledged += 4;
    }
    if (rig_file(r, p->id, "f.json", 1, body, NULL) != TP_OK)
        return false;
    p->acknowledged += 4;
    return true;
}

/* A whole life, until something fails. body NULL: of linked producers. */
static void live(struct rig *r, struct progress *p, const char *body)
{
    unsigned type;

    memset(p, 0, sizeof(*p));
    if (rig_type(r, "j", "a", "B", &type) != TP_OK ||
        rig_create(r, "j", NULL, p->id) != TP_OK)
        return;
    p->was_created = true;
    if (body == NULL ? !post_native(r, p) : !post_json(r, p, body))
        return;
    if (rig_stop(r, p->id) != TP_OK)
        return;
    p->was_stopped = true;
    rig_work(r);
}

/* After the restart: the trace is there and ends, with all that was acknowledged. */
static void expect_truth(struct rig *r, const struct progress *p, int n)
{
    struct tp_trace_list *list;
    struct tp_trace_query query = {0};
    struct tp_trace_view *view;
    char note[64];

    assert_int_equal(tp_engine_traces_list(r->engine, &query, r->now, &list,
                                           &r->problem, &r->err),
                     TP_OK);
    assert_true(list->n <= 1);
    if (p->was_created)
        assert_int_equal(list->n, 1);
    if (list->n == 1) {
        char id[TP_TRACE_ID_BYTES];

        memcpy(id, list->items[0]->id, sizeof(id));
        if (list->items[0]->is_active)
            rig_stop(r, id);
        for (int i = 0; i < 10; i++) {
            rig_wait(r, 10 * RIG_S);
            rig_work(r);
        }
        view = rig_view(r, id);
        snprintf(note, sizeof(note), "kill at %d: %s", n, view->state);
        if (view->is_active)
            fail_msg("%s", note);
        if (strcmp(view->state, "complete") != 0 ||
            view->totals.stored < p->acknowledged)
            fail_msg("%s (%s), stored %llu of %u", note, view->reason,
                     (unsigned long long)view->totals.stored, p->acknowledged);
        assert_int_equal(tp_counts_check(&view->totals, &r->err), TP_OK);
        tp_trace_view_free(view);
        free(rig_download(r, id, "chrome"));
        assert_int_equal(tp_engine_trace_delete(r->engine, rig_str(id), r->now,
                                                &r->problem, &r->err),
                         TP_OK);
    }
    tp_trace_list_free(list);
    assert_int_equal(blob_mem_names(r->blobs), 0);
}

typedef void (*break_fn)(struct rig *r, int n);

static void break_store(struct rig *r, int n)
{
    store_faulty_break_after(r->store, n);
}

static void break_blobs(struct rig *r, int n)
{
    blob_mem_break_after(r->blobs, n);
}

static void fail_store(struct rig *r, int n)
{
    store_faulty_fail_after(r->store, n);
}

static void fail_blobs(struct rig *r, int n)
{
    blob_mem_fail_after(r->blobs, n);
}

/* The crash matrix: break at the n-th operation, kill, start, look. */
static void run_lives(break_fn arm, const char *body)
{
    for (int n = 0;; n++) {
        struct progress p;
        struct rig r;
        bool was_hit;

        rig_init(&r);
        assert_int_equal(rig_start(&r), TP_OK);
        arm(&r, n);
        live(&r, &p, body);
        was_hit = store_faulty_disarm(r.store);
        was_hit = blob_mem_disarm(r.blobs) || was_hit;
        assert_int_equal(rig_restart(&r), TP_OK);
        expect_truth(&r, &p, n);
        rig_fini(&r);
        if (!was_hit) {
            assert_true(n > 20);
            break;
        }
    }
}

static void run_matrix(break_fn arm)
{
    char *body = rig_events("a.B", 4, 10);

    run_lives(arm, body);
    run_lives(arm, NULL);
    free(body);
}

static void test_a_kill_while_the_store_works_ends_in_a_truth(void **state)
{
    (void)state;
    run_matrix(break_store);
}

static void test_a_kill_while_the_blobs_work_ends_in_a_truth(void **state)
{
    (void)state;
    run_matrix(break_blobs);
}

static void test_one_failure_of_the_store_is_survived(void **state)
{
    (void)state;
    run_matrix(fail_store);
}

static void test_one_failure_of_the_blobs_is_survived(void **state)
{
    (void)state;
    run_matrix(fail_blobs);
}

/* The start itself may be hit, and the next one finds the same. */
static void test_a_kill_while_starting_changes_nothing(void **state)
{
    char *body = rig_events("a.B", 4, 10);

    (void)state;
    for (int n = 0;; n++) {
        struct progress p;
        struct rig r;
        bool was_hit;
        int rc;

        rig_init(&r);
        assert_int_equal(rig_start(&r), TP_OK);
        assert_int_equal(rig_create(&r, "j", NULL, p.id), TP_OK);
        assert_int_equal(rig_post(&r, p.id, "p", 0, 1, body, NULL), TP_OK);
        p.was_created = true;
        p.acknowledged = 4;
        if (n % 2 == 0)
            store_faulty_break_after(r.store, n / 2);
        else
            blob_mem_break_after(r.blobs, n / 2);
        rc = rig_restart(&r);
        was_hit = store_faulty_disarm(r.store);
        was_hit = blob_mem_disarm(r.blobs) || was_hit;
        if (rc != TP_OK)
            assert_int_equal(rc, TP_EIO);
        assert_int_equal(rig_restart(&r), TP_OK);
        expect_truth(&r, &p, n);
        rig_fini(&r);
        if (!was_hit && n > 60)
            break;
    }
    free(body);
}

static void test_a_recording_trace_goes_on_after_a_restart(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 4, 10);
    struct tp_upload_reply reply;
    char id[TP_TRACE_ID_BYTES], other[TP_TRACE_ID_BYTES];
    unsigned type;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(r->recovery.resumed, 1);
    rig_expect_state(r, id, "recording");
    /* Still the one of its job, and still holding the registry. */
    assert_int_equal(rig_create(r, "j", NULL, other), TP_EEXIST);
    assert_int_equal(rig_type(r, "j", "a", "B", &type), TP_ESTATE);
    /* A repeat of what was acknowledged is a repeat; new data is new. */
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, &reply), TP_OK);
    assert_true(reply.is_duplicate);
    assert_int_equal(reply.accepted, 4);
    assert_int_equal(rig_post(r, id, "p", 0, 2, body, &reply), TP_OK);
    assert_false(reply.is_duplicate);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    free(body);
}

static void test_a_deadline_that_passed_while_down_is_kept(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.stop_duration_ms = 1000};
    char id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;

    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    r->now.wall_ns += 5 * RIG_S;
    r->now.mono_ns = 7; /* another boot */
    assert_int_equal(rig_restart(r), TP_OK);
    rig_work(r);
    view = rig_view(r, id);
    assert_string_equal(view->state, "complete");
    assert_string_equal(view->moves[2].cause, "the duration limit was reached");
    tp_trace_view_free(view);
}

static void test_a_deadline_ahead_is_kept(void **state)
{
    struct rig *r = *state;
    struct tp_trace_request request = {.stop_duration_ms = 1000};
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    rig_wait(r, 400 * RIG_MS);
    r->now.mono_ns = 7;
    assert_int_equal(rig_restart(r), TP_OK);
    assert_true(tp_engine_tick(r->engine, r->now) == 7 + 600 * RIG_MS);
    rig_wait(r, 599 * RIG_MS);
    rig_expect_state(r, id, "recording");
    rig_wait(r, RIG_MS);
    rig_work(r);
    rig_expect_state(r, id, "complete");
}

static void test_finished_traces_keep_their_files_and_orphans_go(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 4, 10);
    char id[TP_TRACE_ID_BYTES];
    char *before, *after;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    before = rig_download(r, id, "chrome");
    blob_mem_put(r->blobs, "traces/00000000000000000000000000/1.log", "x", 1);
    blob_mem_put(r->blobs, "traces/rubbish", "x", 1);
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(r->recovery.orphan_blobs, 2);
    after = rig_download(r, id, "chrome");
    assert_non_null(before);
    assert_string_equal(before, after);
    free(before);
    free(after);
    free(body);
}

static void test_a_torn_tail_is_cut_and_the_rest_is_kept(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 4, 10);
    char id[TP_TRACE_ID_BYTES], name[80];
    struct tp_trace_view *view;
    size_t size;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 2, body, NULL), TP_OK);
    tp_engine_free(r->engine);
    r->engine = NULL;
    snprintf(name, sizeof(name), "traces/%s/1.log", id);
    assert_non_null(blob_mem_data(r->blobs, name, &size));
    {
        char *copy = malloc(size);

        assert_non_null(copy);
        memcpy(copy, blob_mem_data(r->blobs, name, NULL), size);
        blob_mem_put(r->blobs, name, copy, size - 7);
        free(copy);
    }
    assert_int_equal(rig_start(r), TP_OK);
    assert_true(r->recovery.cut_bytes > 0);
    /* Nobody was told of the torn batch, so nothing is lost; it is only said. */
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    view = rig_view(r, id);
    assert_non_null(strstr(view->streams[0].reason, "the service was killed: "));
    assert_string_equal(view->streams[0].damage, "");
    tp_trace_view_free(view);
    free(body);
}

/* Change the log of stream 1 while no engine runs. keep: bytes of it. */
static void spoil_log(struct rig *r, const char *id, size_t keep_percent)
{
    char name[80], *copy;
    size_t size;

    tp_engine_free(r->engine);
    r->engine = NULL;
    snprintf(name, sizeof(name), "traces/%s/1.log", id);
    assert_non_null(blob_mem_data(r->blobs, name, &size));
    copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, blob_mem_data(r->blobs, name, NULL), size);
    copy[size - 7] ^= 1;
    blob_mem_put(r->blobs, name, copy, size * keep_percent / 100);
    free(copy);
}

static void test_what_was_acknowledged_and_is_lost_makes_the_trace_partial(void **state)
{
    static const struct {
        size_t keep_percent;
        const char *damage;
    } cases[] = {
        {100,
         "bytes of it were cut, with at least 4 events (a damaged payload at byte "},
        {0, "its log was lost with all batches"},
    };
    struct rig *r = *state;
    char *body = rig_events("kernel", 4, 10);
    char id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;

    for (size_t i = 0; i < 2; i++) {
        print_message("%zu %%\n", cases[i].keep_percent);
        assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
        assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
        assert_int_equal(rig_post(r, id, "p", 0, 2, body, NULL), TP_OK);
        assert_int_equal(rig_post(r, id, "q", 1, 1, body, NULL), TP_OK);
        spoil_log(r, id, cases[i].keep_percent);
        assert_int_equal(rig_start(r), TP_OK);
        /* The log is sound again, and still known to have been spoiled. */
        assert_int_equal(rig_restart(r), TP_OK);
        assert_int_equal(rig_stop(r, id), TP_OK);
        rig_work(r);
        rig_expect_outcome(r, id, "partial", NULL);
        view = rig_view(r, id);
        assert_non_null(strstr(view->reason, "the data of p is damaged: "));
        assert_non_null(strstr(view->streams[0].damage, cases[i].damage));
        assert_string_equal(view->streams[1].damage, "");
        tp_trace_view_free(view);
    }
    free(body);
}

static void test_batches_that_came_too_late_are_not_forgotten(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 4, 10);
    char id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    for (int i = 0; i < 3; i++)
        assert_int_equal(rig_post(r, id, "p", 0, 2, body, NULL), TP_ESTATE);
    rig_wait(r, 0);
    assert_int_equal(rig_restart(r), TP_OK);
    view = rig_view(r, id);
    assert_int_equal(view->late_batches, 3);
    assert_string_equal(view->outcome, "complete");
    tp_trace_view_free(view);
    free(body);
}

static void test_what_came_too_late_for_the_seal_makes_the_trace_partial(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 4, 10);
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, 2, body, NULL), TP_ESTATE);
    rig_work(r);
    rig_expect_outcome(r, id, "partial", "1 batch came too late");
    free(body);
}

static void test_what_cannot_go_on_has_failed_and_says_why(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;
    unsigned type;
    struct tp_row_trace row = {0};

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    row.id = rig_str(id);
    row.job = rig_str("j");
    row.state = rig_str("recording");
    row.spec = rig_str("not json");
    row.version = 3;
    row.created_ns = r->now.wall_ns;
    assert_int_equal(r->store->ops->put_trace(r->store, &row, &r->err), TP_OK);
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(r->recovery.failed, 1);
    view = rig_view(r, id);
    assert_string_equal(view->state, "failed");
    assert_non_null(strstr(view->reason, "service restarted: "));
    tp_trace_view_free(view);
    assert_int_equal(rig_type(r, "j", "a", "B", &type), TP_OK);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
}

static void test_types_and_jobs_and_producers_come_back(void **state)
{
    struct rig *r = *state;
    char producer[TP_TRACE_ID_BYTES];
    struct tp_producer_list *list;
    unsigned type, again;

    assert_int_equal(rig_type(r, "j", "ascend", "KERNEL", &type), TP_OK);
    rig_producer(r, "j", "p", 3, producer);
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(r->recovery.jobs, 1);
    assert_int_equal(r->recovery.types, 1);
    assert_int_equal(r->recovery.producers, 1);
    assert_int_equal(rig_type(r, "j", "ascend", "KERNEL", &again), TP_OK);
    assert_int_equal(type, again);
    assert_int_equal(tp_engine_producer_get(r->engine, rig_str(producer), r->now, &list,
                                            &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(list->items[0].rank, 3);
    tp_producer_list_free(list);
}

/* A complete trace with two streams of one batch each. */
static void complete_one(struct rig *r, char *id)
{
    char *body = rig_events("a.B", 4, 10);
    unsigned type;

    assert_int_equal(rig_type(r, "j", "a", "B", &type), TP_OK);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, -1, body, NULL), TP_OK);
    assert_int_equal(rig_post(r, id, "q", 1, -1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", NULL);
    free(body);
}

/* Leave only the first `kept` bytes of a blob; all of it goes with SIZE_MAX. */
static void spoil(struct rig *r, const char *id, const char *blob, size_t kept)
{
    char name[96], *copy;
    size_t n;

    snprintf(name, sizeof(name), "traces/%s/%s", id, blob);
    assert_non_null(blob_mem_data(r->blobs, name, &n));
    if (kept == SIZE_MAX) {
        assert_int_equal(r->blobs->remove(r->blobs->ctx, name, &r->err), TP_OK);
        return;
    }
    assert_true(kept < n);
    copy = malloc(n);
    assert_non_null(copy);
    memcpy(copy, blob_mem_data(r->blobs, name, NULL), kept);
    blob_mem_put(r->blobs, name, copy, kept);
    free(copy);
}

static void test_sealed_data_that_is_gone_makes_the_trace_partial(void **state)
{
    static const struct {
        const char *blob;
        size_t kept;
    } cases[] = {{"1.pftrace", SIZE_MAX},
                 {"1.pftrace", 9},
                 {"1.index", SIZE_MAX},
                 {"1.index", 9}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char id[TP_TRACE_ID_BYTES], reason[256];
        struct tp_trace_view *v;
        struct rig r;

        print_message("%s, kept %zu\n", cases[i].blob, cases[i].kept);
        rig_init(&r);
        assert_int_equal(rig_start(&r), TP_OK);
        complete_one(&r, id);
        spoil(&r, id, cases[i].blob, cases[i].kept);
        assert_int_equal(rig_restart(&r), TP_OK);
        v = rig_view(&r, id);
        assert_string_equal(v->outcome, "partial");
        assert_non_null(strstr(v->reason, "the data of p is damaged: of its "));
        assert_non_null(strstr(v->streams[0].damage, "are there"));
        assert_string_equal(v->streams[1].damage, "");
        snprintf(reason, sizeof(reason), "%s", v->reason);
        tp_trace_view_free(v);
        assert_null(rig_download(&r, id, "chrome"));
        assert_int_equal(r.err.code, TP_EIO);
        assert_int_equal(r.problem.kind, TP_PROBLEM_STORAGE);
        /* The next start says the same, once. */
        assert_int_equal(rig_restart(&r), TP_OK);
        rig_expect_outcome(&r, id, "partial", reason);
        rig_fini(&r);
    }
}

static void test_a_download_of_cut_data_is_refused_before_it_begins(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    complete_one(r, id);
    spoil(r, id, "2.pftrace", 9);
    assert_null(rig_download(r, id, "perfetto"));
    assert_int_equal(r->err.code, TP_EIO);
    assert_int_equal(r->problem.kind, TP_PROBLEM_STORAGE);
    assert_non_null(strstr(r->err.message, "stream 2 of trace"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_kill_while_the_store_works_ends_in_a_truth),
        cmocka_unit_test(test_a_kill_while_the_blobs_work_ends_in_a_truth),
        cmocka_unit_test(test_one_failure_of_the_store_is_survived),
        cmocka_unit_test(test_one_failure_of_the_blobs_is_survived),
        cmocka_unit_test(test_a_kill_while_starting_changes_nothing),
        engine_test(test_a_recording_trace_goes_on_after_a_restart),
        engine_test(test_a_deadline_that_passed_while_down_is_kept),
        engine_test(test_a_deadline_ahead_is_kept),
        engine_test(test_finished_traces_keep_their_files_and_orphans_go),
        engine_test(test_a_torn_tail_is_cut_and_the_rest_is_kept),
        engine_test(test_what_was_acknowledged_and_is_lost_makes_the_trace_partial),
        engine_test(test_batches_that_came_too_late_are_not_forgotten),
        engine_test(test_what_came_too_late_for_the_seal_makes_the_trace_partial),
        engine_test(test_what_cannot_go_on_has_failed_and_says_why),
        engine_test(test_types_and_jobs_and_producers_come_back),
        cmocka_unit_test(test_sealed_data_that_is_gone_makes_the_trace_partial),
        engine_test(test_a_download_of_cut_data_is_refused_before_it_begins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
