/*
 * Traces of linked producers are complete before they are sealed, and nothing that is
 * told of them changes when they are.
 */
#include "support/engine_test.h"

#include <pthread.h>
#include <stdio.h>

#include "base/err.h"
#include "core/activity.h"
#include "engine/downloads.h"
#include "trace/download.h"
#include "trace/summary.h"

#define EVENTS 50

/* A trace that has stopped, with so many native streams of two batches each. */
static void stopped(struct rig *r, unsigned n_streams, char *id)
{
    char name[16];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (unsigned i = 0; i < n_streams; i++) {
        snprintf(name, sizeof(name), "p%u", i);
        assert_int_equal(rig_post(r, id, name, i, 0, "[]", NULL), TP_OK);
        assert_int_equal(rig_native(r, id, name, i, 1, i + 1, EVENTS), TP_OK);
        assert_int_equal(rig_native(r, id, name, i, 2, i + 1, EVENTS), TP_OK);
    }
    assert_int_equal(rig_stop(r, id), TP_OK);
}

/* A blob of a stream; NULL: it is not there. */
static char *blob_of(struct rig *r, const char *id, unsigned no, const char *ending,
                     size_t *n)
{
    char name[80];

    snprintf(name, sizeof(name), "traces/%s/%u.%s", id, no, ending);
    return blob_mem_data(r->blobs, name, n);
}

static void expect_streams(struct rig *r, const char *id, const char *state)
{
    struct tp_trace_view *view = rig_view(r, id);

    for (size_t i = 0; i < view->n_streams; i++)
        assert_string_equal(view->streams[i].state, state);
    tp_trace_view_free(view);
}

static void expect_same_counts(const struct tp_counts *a, const struct tp_counts *b)
{
    assert_int_equal(a->emitted, b->emitted);
    assert_int_equal(a->stored, b->stored);
    assert_int_equal(a->filtered, b->filtered);
    assert_int_equal(a->repaired, b->repaired);
    assert_int_equal(a->untyped, b->untyped);
    assert_memory_equal(a->dropped, b->dropped, sizeof(a->dropped));
}

static void test_a_native_trace_is_complete_at_its_stop(void **state)
{
    struct rig *r = *state;
    struct tp_trace_view *before, *after;
    char id[TP_TRACE_ID_BYTES], next[TP_TRACE_ID_BYTES];

    stopped(r, 3, id);
    rig_expect_outcome(r, id, "complete", "");
    expect_streams(r, id, "sealing");
    before = rig_view(r, id);
    assert_string_equal(before->moves[before->n_moves - 1].cause, "all data is in");
    /* Its job is free. */
    assert_int_equal(rig_create(r, "j", NULL, next), TP_OK);
    rig_work(r);
    expect_streams(r, id, "sealed");
    rig_expect_outcome(r, id, "complete", "");
    after = rig_view(r, id);
    expect_same_counts(&before->totals, &after->totals);
    for (size_t i = 0; i < 3; i++) {
        const struct tp_stream_view *a = &before->streams[i], *b = &after->streams[i];

        expect_same_counts(&a->counts, &b->counts);
        assert_int_equal(a->counts.stored, 2 * EVENTS);
        assert_true(a->has_times && b->has_times);
        assert_int_equal(a->first_ns, b->first_ns);
        assert_int_equal(a->last_ns, b->last_ns);
        assert_null(blob_of(r, id, (unsigned)i + 1, "log", NULL));
    }
    assert_true(after->version > before->version);
    assert_int_equal(after->finished_wall_ns, before->finished_wall_ns);
    tp_trace_view_free(before);
    tp_trace_view_free(after);
}

/* A stream that must be paired is waited for, and only that. */
static void test_other_streams_are_waited_for(void **state)
{
    struct rig *r = *state;
    const char *body = "{\"baseTimeNanoseconds\":1790000000000000000,\"traceEvents\":["
                       "{\"ph\":\"i\",\"name\":\"a\",\"ts\":1}]}";
    struct tp_work *work;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "json", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_native(r, id, "linked", 1, 1, 2, EVENTS), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_expect_state(r, id, "stopping");
    work = tp_engine_next_work(r->engine, r->now);
    assert_non_null(work);
    /* The other one is nobody's business now. */
    assert_null(tp_engine_next_work(r->engine, r->now));
    tp_work_run(work);
    tp_engine_work_done(r->engine, work, r->now);
    rig_expect_outcome(r, id, "complete", "");
    assert_null(blob_of(r, id, 1, "log", NULL));
    assert_non_null(blob_of(r, id, 2, "log", NULL));
    assert_true(tp_engine_has_work(r->engine));
    rig_work(r);
    assert_false(tp_engine_has_work(r->engine));
    expect_streams(r, id, "sealed");
}

/* Traces that somebody waits for come first. */
static void test_a_trace_that_stops_is_sealed_before_one_that_is_complete(void **state)
{
    struct rig *r = *state;
    char *body = rig_events("kernel", 4, 10);
    char first[TP_TRACE_ID_BYTES], second[TP_TRACE_ID_BYTES];
    struct tp_work *work;

    stopped(r, 1, first);
    assert_int_equal(rig_create(r, "j", NULL, second), TP_OK);
    assert_int_equal(rig_post(r, second, "json", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, second), TP_OK);
    work = tp_engine_next_work(r->engine, r->now);
    tp_work_run(work);
    tp_engine_work_done(r->engine, work, r->now);
    rig_expect_state(r, second, "complete");
    expect_streams(r, first, "sealing");
    rig_work(r);
    expect_streams(r, first, "sealed");
    free(body);
}

static void etag_of(struct rig *r, const char *id, char *out, size_t size)
{
    struct tp_engine_download_request request = {0};
    struct tp_engine_download *d;

    assert_int_equal(tp_engine_download_open(r->engine, rig_str(id), &request, r->now,
                                             &d, &r->problem, &r->err),
                     TP_OK);
    snprintf(out, size, "%s", tp_engine_download_info(d)->etag);
    assert_int_equal(tp_engine_download_info(d)->is_final, out[0] != '\0');
    tp_engine_download_close(d);
}

/* The first download seals what is left, so it is the same as all later ones. */
static void test_a_download_seals_first(void **state)
{
    struct rig *r = *state;
    char tag[80], again[80], id[TP_TRACE_ID_BYTES];
    char *first, *second;

    stopped(r, 2, id);
    first = rig_download(r, id, "chrome");
    assert_non_null(first);
    expect_streams(r, id, "sealed");
    assert_false(tp_engine_has_work(r->engine));
    etag_of(r, id, tag, sizeof(tag));
    assert_string_not_equal(tag, "");
    assert_int_equal(rig_restart(r), TP_OK);
    rig_work(r);
    second = rig_download(r, id, "chrome");
    assert_string_equal(first, second);
    etag_of(r, id, again, sizeof(again));
    assert_string_equal(tag, again);
    free(first);
    free(second);
}

static void test_a_summary_seals_first(void **state)
{
    struct rig *r = *state;
    struct tp_summary *summary;
    char id[TP_TRACE_ID_BYTES];

    stopped(r, 2, id);
    assert_int_equal(tp_engine_summary(r->engine, rig_str(id), r->now, &summary,
                                       &r->problem, &r->err),
                     TP_OK);
    tp_summary_free(summary);
    expect_streams(r, id, "sealed");
}

static void test_a_restart_before_the_seal_loses_nothing(void **state)
{
    struct rig *r = *state;
    struct tp_trace_view *before, *after;
    char id[TP_TRACE_ID_BYTES];
    char *text;

    stopped(r, 2, id);
    before = rig_view(r, id);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rig_restart(r), TP_OK);
        rig_expect_outcome(r, id, "complete", "");
        assert_int_equal(r->recovery.orphan_blobs, 0);
        after = rig_view(r, id);
        expect_same_counts(&before->totals, &after->totals);
        assert_int_equal(after->streams[1].first_ns, before->streams[1].first_ns);
        assert_int_equal(after->streams[1].last_ns, before->streams[1].last_ns);
        tp_trace_view_free(after);
    }
    assert_true(tp_engine_has_work(r->engine));
    rig_work(r);
    expect_streams(r, id, "sealed");
    rig_expect_outcome(r, id, "complete", "");
    text = rig_download(r, id, "chrome");
    assert_non_null(text);
    free(text);
    tp_trace_view_free(before);
}

static void test_a_delete_while_it_is_sealed_leaves_nothing(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    for (int when = 0; when < 3; when++) {
        struct tp_work *work[2];

        stopped(r, 2, id);
        work[0] = tp_engine_next_work(r->engine, r->now);
        work[1] = tp_engine_next_work(r->engine, r->now);
        assert_non_null(work[1]);
        if (when > 0)
            tp_work_run(work[0]);
        if (when > 1)
            tp_work_run(work[1]);
        assert_int_equal(tp_engine_trace_delete(r->engine, rig_str(id), r->now,
                                                &r->problem, &r->err),
                         TP_OK);
        if (when == 0)
            tp_work_run(work[0]);
        tp_engine_work_done(r->engine, work[0], r->now);
        tp_engine_work_done(r->engine, work[1], r->now);
        assert_int_equal(blob_mem_names(r->blobs), 0);
        assert_false(tp_engine_has_work(r->engine));
    }
}

static void test_a_delete_before_the_seal_takes_it_off_the_list(void **state)
{
    struct rig *r = *state;
    char ids[3][TP_TRACE_ID_BYTES];

    for (int i = 0; i < 3; i++)
        stopped(r, 1, ids[i]);
    assert_int_equal(tp_engine_trace_delete(r->engine, rig_str(ids[1]), r->now,
                                            &r->problem, &r->err),
                     TP_OK);
    rig_work(r);
    expect_streams(r, ids[0], "sealed");
    expect_streams(r, ids[2], "sealed");
    assert_int_equal(blob_mem_names(r->blobs), 4);
}

/* A full disk, or one that does not work, and what looks like it (no descriptor left):
 * the trace stays complete and readable from its log, is no final file, and is sealed
 * when it can be, however late. */
static void seal_late(struct rig *r, bool is_broken)
{
    char tag[80], id[TP_TRACE_ID_BYTES];
    struct tp_work *work;

    stopped(r, 1, id);
    for (int i = 0; i < 20; i++) {
        if (!is_broken)
            blob_mem_limit(r->blobs, 1);
        rig_wait(r, 100 * RIG_S);
        if (is_broken)
            blob_mem_break_after(r->blobs, 0);
        work = tp_engine_next_work(r->engine, r->now);
        assert_non_null(work);
        tp_work_run(work);
        tp_engine_work_done(r->engine, work, r->now);
        blob_mem_limit(r->blobs, 0);
        blob_mem_disarm(r->blobs);
        rig_expect_outcome(r, id, "complete", "");
        expect_streams(r, id, "sealing");
    }
    /* Its next try is not due, so this reads the log. */
    etag_of(r, id, tag, sizeof(tag));
    assert_string_equal(tag, "");
    expect_streams(r, id, "sealing");
    rig_wait(r, 100 * RIG_S);
    etag_of(r, id, tag, sizeof(tag));
    assert_string_not_equal(tag, "");
    expect_streams(r, id, "sealed");
}

static void test_a_seal_without_room_is_tried_until_there_is_some(void **state)
{
    seal_late(*state, false);
    seal_late(*state, true);
}

/* Where the engine cannot write that a stream is settled, the seal is waited for. */
static void test_a_store_that_refuses_settles_nothing(void **state)
{
    (void)state;
    for (int n = 0; n < 12; n++) {
        char id[TP_TRACE_ID_BYTES];
        struct rig r;

        rig_init(&r);
        assert_int_equal(rig_start(&r), TP_OK);
        assert_int_equal(rig_create(&r, "j", NULL, id), TP_OK);
        assert_int_equal(rig_native(&r, id, "p", 0, 1, 1, EVENTS), TP_OK);
        store_faulty_fail_after(r.store, n);
        rig_stop(&r, id);
        store_faulty_disarm(r.store);
        rig_stop(&r, id);
        for (int i = 0; i < 3; i++) {
            rig_wait(&r, 2 * RIG_S);
            rig_work(&r);
        }
        rig_expect_outcome(&r, id, "complete", "");
        expect_streams(&r, id, "sealed");
        rig_fini(&r);
    }
}

/* Damage the payload of the last frame of stream 1. */
static void spoil(struct rig *r, const char *id)
{
    size_t n;
    char *log = blob_of(r, id, 1, "log", &n);

    assert_non_null(log);
    memset(log + n - 2000, 0xff, 1000);
}

static void expect_partial(struct rig *r, const char *id)
{
    struct tp_trace_view *view = rig_view(r, id);

    assert_string_equal(view->state, "complete");
    assert_string_equal(view->outcome, "partial");
    assert_non_null(strstr(view->reason, "the data of p0 is damaged: "));
    assert_true(view->totals.stored < view->n_streams * 2 * EVENTS);
    assert_int_equal(tp_counts_check(&view->totals, &r->err), TP_OK);
    tp_trace_view_free(view);
}

/* What the disk has lost since is told by the seal, and stays told. */
static void test_damage_that_the_seal_finds_makes_it_partial(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    stopped(r, 1, id);
    spoil(r, id);
    rig_work(r);
    expect_partial(r, id);
    assert_int_equal(rig_restart(r), TP_OK);
    expect_partial(r, id);
}

/* And what a start finds. */
static void test_damage_that_a_start_finds_makes_it_partial(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    stopped(r, 1, id);
    spoil(r, id);
    assert_int_equal(rig_restart(r), TP_OK);
    expect_partial(r, id);
    rig_work(r);
    expect_partial(r, id);
    expect_streams(r, id, "sealed");
    assert_int_equal(rig_restart(r), TP_OK);
    expect_partial(r, id);
}

/* A log that cannot be read at all is given up, as of any trace. */
static void test_a_log_that_is_gone_is_told(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES], name[80];

    stopped(r, 1, id);
    snprintf(name, sizeof(name), "traces/%s/1.log", id);
    assert_int_equal(r->blobs->remove(r->blobs->ctx, name, &r->err), TP_OK);
    for (int i = 0; i < 5; i++) {
        rig_wait(r, 10 * RIG_S);
        rig_work(r);
    }
    expect_partial(r, id);
    expect_streams(r, id, "failed");
    assert_false(tp_engine_has_work(r->engine));
    assert_int_equal(rig_restart(r), TP_OK);
    expect_partial(r, id);
}

/* A stream that was recovered has not been seen whole: it is waited for. */
static void test_what_a_restart_has_interrupted_is_waited_for(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_native(r, id, "p", 0, 1, 1, EVENTS), TP_OK);
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(rig_native(r, id, "p", 0, 2, 1, EVENTS), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_expect_state(r, id, "stopping");
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
}

/* A repeat is no batch of its own. */
static void test_a_repeat_does_not_disturb(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_native(r, id, "p", 0, 1, 1, EVENTS), TP_OK);
    assert_int_equal(rig_native(r, id, "p", 0, 1, 1, EVENTS), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    rig_expect_outcome(r, id, "complete", "");
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
}

/* What a producer says when it is done: how many kernels, and the ack of the stop. */
static void say_last(struct rig *r, const char *producer, const char *trace)
{
    struct tp_type_counts types = {0};
    struct tp_type_count *kernels;
    struct tp_sync_counts counts = {.trace_id = rig_str(trace),
                                    .emitted = EVENTS,
                                    .types = &types};
    struct tp_sync_ack ack = {.trace_id = rig_str(trace), .command = TP_COMMAND_STOP};
    const struct tp_sync_request last = {
        .acks = &ack, .n_acks = 1, .counts = &counts, .n_counts = 1};
    struct tp_sync_reply reply;

    assert_int_equal(tp_type_counts_get(&types, TP_ACTIVITY_CONCURRENT_KERNEL, &kernels,
                                        NULL),
                     TP_OK);
    kernels->emitted = EVENTS;
    assert_int_equal(tp_engine_sync(r->engine, rig_str(producer), &last, r->now, &reply,
                                    &r->problem, &r->err),
                     TP_OK);
    tp_type_counts_fini(&types);
}

/* What a producer has reported with the ack of the stop it says once more, since the
 * answer was lost, while the stream of another is sealed. */
static void test_a_report_said_again_while_others_are_sealed_changes_nothing(
    void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_sync_reply reply;
    struct tp_trace_view *view;
    char *body = rig_events("kernel", 1, 1);

    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    reply = rig_sync(r, p, NULL);
    reply = rig_sync(r, p, &reply);
    assert_int_equal(rig_native(r, id, p, 0, 1, 1, EVENTS), TP_OK);
    assert_int_equal(rig_post(r, id, "other", 1, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    for (int i = 0; i < 2; i++) {
        say_last(r, p, id);
        rig_expect_state(r, id, "stopping");
    }
    rig_work(r);
    rig_expect_state(r, id, "complete");
    view = rig_view(r, id);
    assert_int_equal(view->members[0].n_types, 1);
    assert_int_equal(view->members[0].types[0].stored, EVENTS);
    assert_int_equal(view->members[0].types[0].dropped[TP_DROP_LOST], 0);
    tp_trace_view_free(view);
    free(body);
}

/* One stream is sealed, another is not yet, and the service is killed: what the first
 * holds by type is not read of it again. */
static void test_a_kill_between_two_seals_loses_no_type(void **state)
{
    struct rig *r = *state;
    char p[TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    char *body = rig_events("kernel", EVENTS, 1);
    struct tp_sync_reply reply;
    struct tp_trace_view *view;
    struct tp_work *work;

    rig_join(r, "p0", 0, p);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    reply = rig_sync(r, p, NULL);
    rig_sync(r, p, &reply);
    assert_int_equal(rig_post(r, id, p, 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_post(r, id, "other", 1, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, id), TP_OK);
    say_last(r, p, id);
    rig_wait(r, 2 * RIG_S); /* that it is done is in its row */
    work = tp_engine_next_work(r->engine, r->now);
    assert_non_null(work);
    tp_work_run(work);
    tp_engine_work_done(r->engine, work, r->now);
    rig_expect_state(r, id, "stopping");
    assert_int_equal(rig_restart(r), TP_OK);
    rig_work(r);
    rig_expect_outcome(r, id, "complete", "");
    view = rig_view(r, id);
    assert_int_equal(view->members[0].n_types, 1);
    assert_int_equal(view->members[0].types[0].stored, EVENTS);
    tp_trace_view_free(view);
    free(body);
}

/* A start that is killed at each of its operations, and one after it. */
static void test_a_kill_while_starting_changes_nothing(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        bool is_spoilt = n % 4 > 1, was_hit;
        char id[TP_TRACE_ID_BYTES];
        struct rig r;

        rig_init(&r);
        assert_int_equal(rig_start(&r), TP_OK);
        stopped(&r, 2, id);
        if (is_spoilt)
            spoil(&r, id);
        if (n % 2 == 0)
            store_faulty_break_after(r.store, n / 4);
        else
            blob_mem_break_after(r.blobs, n / 4);
        rig_restart(&r);
        was_hit = store_faulty_disarm(r.store);
        was_hit = blob_mem_disarm(r.blobs) || was_hit;
        assert_int_equal(rig_restart(&r), TP_OK);
        if (is_spoilt)
            expect_partial(&r, id);
        else
            rig_expect_outcome(&r, id, "complete", "");
        rig_work(&r);
        expect_streams(&r, id, "sealed");
        rig_fini(&r);
        if (!was_hit && n > 100)
            return;
    }
}

/* A thread that downloads a trace or works for it, beside others. */
struct helper {
    pthread_t thread;
    struct rig *r;
    const char *id;
    uint64_t n_bytes;
};

static void *download(void *arg)
{
    struct helper *h = arg;
    struct tp_engine_download_request request = {0};
    struct tp_engine_download *d;
    char part[4096];
    size_t got;

    if (tp_engine_download_open(h->r->engine, rig_str(h->id), &request, h->r->now, &d,
                                NULL, NULL) != TP_OK)
        return NULL;
    while (tp_download_read(tp_engine_download_data(d), part, sizeof(part), &got,
                            NULL) == TP_OK &&
           got > 0)
        h->n_bytes += got;
    tp_engine_download_close(d);
    return NULL;
}

static void *work(void *arg)
{
    struct helper *h = arg;
    struct tp_work *w;

    while ((w = tp_engine_next_work(h->r->engine, h->r->now)) != NULL) {
        tp_work_run(w);
        tp_engine_work_done(h->r->engine, w, h->r->now);
    }
    return NULL;
}

/* Downloads seal what nobody seals and wait for what somebody does. */
static void test_downloads_and_workers_share_the_seals(void **state)
{
    struct rig *r = *state;

    for (int round = 0; round < 10; round++) {
        struct helper helpers[6] = {0};
        char id[TP_TRACE_ID_BYTES];
        uint64_t n_bytes;

        stopped(r, 6, id);
        for (int i = 0; i < 6; i++) {
            helpers[i].r = r;
            helpers[i].id = id;
            assert_int_equal(pthread_create(&helpers[i].thread, NULL,
                                            i < 4 ? download : work, &helpers[i]),
                             0);
        }
        for (int i = 0; i < 6; i++)
            pthread_join(helpers[i].thread, NULL);
        expect_streams(r, id, "sealed");
        n_bytes = helpers[0].n_bytes;
        assert_true(n_bytes > 6 * 2 * EVENTS * 50);
        for (int i = 1; i < 4; i++)
            assert_int_equal(helpers[i].n_bytes, n_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_a_native_trace_is_complete_at_its_stop),
        engine_test(test_other_streams_are_waited_for),
        engine_test(test_a_trace_that_stops_is_sealed_before_one_that_is_complete),
        engine_test(test_a_download_seals_first),
        engine_test(test_a_summary_seals_first),
        engine_test(test_a_restart_before_the_seal_loses_nothing),
        engine_test(test_a_delete_while_it_is_sealed_leaves_nothing),
        engine_test(test_a_delete_before_the_seal_takes_it_off_the_list),
        engine_test(test_a_seal_without_room_is_tried_until_there_is_some),
        cmocka_unit_test(test_a_store_that_refuses_settles_nothing),
        engine_test(test_damage_that_the_seal_finds_makes_it_partial),
        engine_test(test_damage_that_a_start_finds_makes_it_partial),
        engine_test(test_a_log_that_is_gone_is_told),
        cmocka_unit_test(test_a_kill_while_starting_changes_nothing),
        engine_test(test_downloads_and_workers_share_the_seals),
        engine_test(test_what_a_restart_has_interrupted_is_waited_for),
        engine_test(test_a_repeat_does_not_disturb),
        engine_test(test_a_kill_between_two_seals_loses_no_type),
        engine_test(test_a_report_said_again_while_others_are_sealed_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
