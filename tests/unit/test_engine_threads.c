/*
 * Eight threads post to one trace while others look, download, seal and control: what
 * was acknowledged is there, exactly. Worth most under ThreadSanitizer.
 */
#include "support/engine_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/err.h"

#define POSTERS 8
#define BATCHES 40
#define EVENTS 5

struct shared {
    struct rig *rig;
    char id[TP_TRACE_ID_BYTES];
    _Atomic int is_over;
    _Atomic uint64_t accepted;
    _Atomic uint64_t refused;
};

struct poster {
    struct shared *shared;
    int no;
    pthread_t thread;
};

/* As rig_post(), with nothing of the rig written to. */
static int post(struct shared *s, const char *producer, uint64_t seq, const char *body,
                struct tp_upload_reply *reply)
{
    struct tp_upload_request request = {.producer = rig_str(producer),
                                        .rank = 0,
                                        .pid = -1,
                                        .has_seq = true,
                                        .seq = seq};
    struct tp_problem problem;
    struct tp_upload *u;
    struct tp_err err;
    int rc = tp_engine_upload_begin(s->rig->engine, rig_str(s->id), &request,
                                    s->rig->now, &u, &problem, &err);

    if (rc != TP_OK)
        return rc;
    rc = tp_upload_feed(u, body, strlen(body), &problem, &err);
    if (rc == TP_OK)
        rc = tp_upload_commit(u, s->rig->now, reply, &problem, &err);
    tp_upload_free(u);
    return rc;
}

static void *run_poster(void *arg)
{
    struct poster *p = arg;
    char *body = rig_events("kernel", EVENTS, 1);

    for (int i = 0; i < BATCHES; i++) {
        struct tp_upload_reply reply;
        /* Half of them share a producer, each with numbers of its own. */
        uint64_t seq = (uint64_t)(i * POSTERS + p->no);
        int rc = post(p->shared, p->no < 4 ? "shared" : (p->no % 2 ? "a" : "b"), seq,
                      body, &reply);

        if (rc == TP_OK)
            atomic_fetch_add(&p->shared->accepted, reply.accepted);
        else
            atomic_fetch_add(&p->shared->refused, 1);
    }
    free(body);
    return NULL;
}

static void *run_watcher(void *arg)
{
    struct shared *s = arg;

    while (!atomic_load(&s->is_over)) {
        struct tp_trace_view *view;
        struct tp_engine_stats stats;
        struct tp_work *work;

        if (tp_engine_trace_get(s->rig->engine, rig_str(s->id), s->rig->now, &view,
                                NULL, NULL) == TP_OK)
            tp_trace_view_free(view);
        tp_engine_stats(s->rig->engine, &stats);
        tp_engine_tick(s->rig->engine, s->rig->now);
        work = tp_engine_next_work(s->rig->engine, s->rig->now);
        if (work != NULL) {
            tp_work_run(work);
            tp_engine_work_done(s->rig->engine, work, s->rig->now);
        }
    }
    return NULL;
}

static void *run_downloader(void *arg)
{
    struct shared *s = arg;

    while (!atomic_load(&s->is_over)) {
        struct tp_engine_download_request request = {0};
        struct tp_engine_download *d;
        struct tp_type_spec spec = {.plugin = rig_str("p"), .type_name = rig_str("T")};
        struct tp_type_list *list;

        if (tp_engine_download_open(s->rig->engine, rig_str(s->id), &request,
                                    s->rig->now, &d, NULL, NULL) == TP_OK)
            tp_engine_download_close(d);
        if (tp_engine_types_register(s->rig->engine, rig_str("k"), &spec, 1,
                                     s->rig->now, &list, NULL, NULL) == TP_OK)
            tp_type_list_free(list);
    }
    return NULL;
}

/* Run posters and the others; stop the trace meanwhile when stops_early. */
static void run_all(struct shared *s, bool stops_early)
{
    struct poster posters[POSTERS];
    pthread_t watcher, downloader;

    assert_int_equal(rig_create(s->rig, "j", NULL, s->id), TP_OK);
    pthread_create(&watcher, NULL, run_watcher, s);
    pthread_create(&downloader, NULL, run_downloader, s);
    for (int i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){.shared = s, .no = i};
        pthread_create(&posters[i].thread, NULL, run_poster, &posters[i]);
    }
    while (stops_early && atomic_load(&s->accepted) < POSTERS * BATCHES * EVENTS / 3)
        ;
    if (stops_early)
        assert_int_equal(rig_stop(s->rig, s->id), TP_OK);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(posters[i].thread, NULL);
    atomic_store(&s->is_over, 1);
    pthread_join(watcher, NULL);
    pthread_join(downloader, NULL);
    assert_int_equal(rig_stop(s->rig, s->id), TP_OK);
    rig_work(s->rig);
}

/* 300 traces with four threads that post: memory of the process does not grow in the
 * second half, when all that is kept of a trace has found its size. */
#define SOAK_TRACES 300
#define SOAK_POSTERS 4
#define SOAK_GROWTH_PAGES 512

struct soak {
    struct shared shared;
    pthread_barrier_t begin, end;
};

struct soaker {
    struct soak *soak;
    int no;
    pthread_t thread;
};

static void *run_soaker(void *arg)
{
    struct soaker *me = arg;
    char *body = rig_events("kernel", EVENTS, 1);
    char name[16];

    snprintf(name, sizeof(name), "p%d", me->no);
    for (int i = 0; i < SOAK_TRACES; i++) {
        pthread_barrier_wait(&me->soak->begin);
        for (uint64_t seq = 0; seq < 3; seq++) {
            struct tp_upload_reply reply;

            if (post(&me->soak->shared, name, seq, body, &reply) == TP_OK)
                atomic_fetch_add(&me->soak->shared.accepted, reply.accepted);
        }
        pthread_barrier_wait(&me->soak->end);
    }
    free(body);
    return NULL;
}

/* The second number of /proc/self/statm; -1 when it cannot be read. */
static long resident_pages(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    char line[128], *second = NULL;
    long pages = -1;

    if (f != NULL && fgets(line, sizeof(line), f) != NULL)
        second = strchr(line, ' ');
    if (second != NULL)
        pages = strtol(second, NULL, 10);
    if (f != NULL)
        fclose(f);
    return pages;
}

static void test_memory_does_not_grow_with_traces_that_come_and_go(void **state)
{
    struct rig *r = *state;
    struct soak soak = {.shared = {.rig = r}};
    struct soaker soakers[SOAK_POSTERS];
    long half = 0, last;

    pthread_barrier_init(&soak.begin, NULL, SOAK_POSTERS + 1);
    pthread_barrier_init(&soak.end, NULL, SOAK_POSTERS + 1);
    for (int i = 0; i < SOAK_POSTERS; i++) {
        soakers[i] = (struct soaker){.soak = &soak, .no = i};
        pthread_create(&soakers[i].thread, NULL, run_soaker, &soakers[i]);
    }
    for (int i = 0; i < SOAK_TRACES; i++) {
        assert_int_equal(rig_create(r, "j", NULL, soak.shared.id), TP_OK);
        pthread_barrier_wait(&soak.begin);
        pthread_barrier_wait(&soak.end);
        assert_int_equal(rig_stop(r, soak.shared.id), TP_OK);
        rig_work(r);
        rig_expect_outcome(r, soak.shared.id, "complete", "");
        assert_int_equal(tp_engine_trace_delete(r->engine, rig_str(soak.shared.id),
                                                r->now, NULL, NULL),
                         TP_OK);
        if (i == SOAK_TRACES / 2)
            half = resident_pages();
    }
    last = resident_pages();
    for (int i = 0; i < SOAK_POSTERS; i++)
        pthread_join(soakers[i].thread, NULL);
    pthread_barrier_destroy(&soak.begin);
    pthread_barrier_destroy(&soak.end);
    assert_int_equal(soak.shared.accepted, SOAK_TRACES * SOAK_POSTERS * 3 * EVENTS);
    assert_int_equal(blob_mem_names(r->blobs), 0);
    print_message("pages: %ld at half, %ld at the end\n", half, last);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    assert_true(half > 0 && last - half < SOAK_GROWTH_PAGES);
#endif
}

static void test_posts_from_eight_threads_add_up(void **state)
{
    struct shared s = {.rig = *state};
    struct tp_trace_view *view;

    run_all(&s, false);
    rig_expect_outcome(s.rig, s.id, "complete", "");
    view = rig_view(s.rig, s.id);
    assert_int_equal(s.refused, 0);
    assert_int_equal(s.accepted, POSTERS * BATCHES * EVENTS);
    assert_int_equal(view->totals.stored, s.accepted);
    assert_int_equal(view->n_streams, 3);
    tp_trace_view_free(view);
}

static void test_a_stop_among_posts_keeps_what_was_acknowledged(void **state)
{
    struct shared s = {.rig = *state};
    struct tp_trace_view *view;

    run_all(&s, true);
    /* Some may have been refused before the seal was done: then it says so. */
    rig_expect_state(s.rig, s.id, "complete");
    view = rig_view(s.rig, s.id);
    assert_int_equal(view->totals.stored, s.accepted);
    assert_int_equal(s.accepted / EVENTS + s.refused, POSTERS * BATCHES);
    assert_int_equal(view->late_batches, s.refused);
    tp_trace_view_free(view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_memory_does_not_grow_with_traces_that_come_and_go),
        engine_test(test_posts_from_eight_threads_add_up),
        engine_test(test_a_stop_among_posts_keeps_what_was_acknowledged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
