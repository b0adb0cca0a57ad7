/* A whole client against a service that answers badly: nothing is lost without being
 * counted, nothing is sent twice under two numbers, nothing hangs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <traceplane/traceplane.h>
#include <cmocka.h>

#include "producer/agent.h"
#include "producer/settings.h"
#include "support/fake_service.h"
#include "support/fault.h"

#define WAIT_MS 60000
#define TRIES 3 /* the machine may stand still while a bound runs */
#define FDS_MAX 1024

#define PREPARE                                                                  \
    "{\"commands\":[{\"command\":\"prepare\",\"trace_id\":\"t\",\"stream\":1,"   \
    "\"types\":[50,51,52,53,54,55,56,57,58,59,120,137]},{\"command\":\"start\"," \
    "\"trace_id\":\"t\"}]}"
#define ONE_STEP                                                                 \
    "{\"commands\":[{\"command\":\"prepare\",\"trace_id\":\"t\",\"stream\":1,"   \
    "\"types\":[50,51,52,53,54,55,56,57,58,59,120,137]},{\"command\":\"start\"," \
    "\"trace_id\":\"t\",\"steps\":1}]}"
#define STOP "{\"commands\":[{\"command\":\"stop\",\"trace_id\":\"t\"}]}"
#define PROBLEM(name) "{\"type\":\"urn:traceplane:problem:" name "\"}"

struct rig {
    struct fake_service service;
    struct tp_client *client;
    unsigned type;
    char url[128];
};

static struct tp_stats stats_of(struct rig *rig)
{
    struct tp_stats s;

    tp_get_stats(rig->client, &s, sizeof(s));
    return s;
}

static void rig_open(struct rig *rig)
{
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .url = rig->url,
                                 .has_rank = true,
                                 .flush_ms = 1000};

    snprintf(rig->url, sizeof(rig->url), "unix:%s", rig->service.path);
    rig->client = &tp_client_off;
    rig->type = TP_TYPE_NONE;
    assert_int_equal(tp_open(&options, &rig->client, NULL), TP_OK);
    /* Its id, 120, is among those that PREPARE asks for. */
    assert_int_equal(tp_register_type(rig->client, "demo", "STEP", TP_KIND_SLICE, NULL,
                                      &rig->type, NULL),
                     TP_OK);
    assert_int_equal(rig->type, 120);
}

static void rig_close(struct rig *rig)
{
    tp_close(rig->client);
    fake_service_fini(&rig->service);
}

static void record(struct rig *rig, int n)
{
    for (int i = 0; i < n; i++) {
        TP_BEGIN(rig->client, rig->type, "slice");
        TP_END(rig->client, rig->type);
    }
}

/* Wait until the stats say that it records, or does not. */
static void await_recording(struct rig *rig, bool wanted)
{
    for (int ms = 0; ms < WAIT_MS; ms++) {
        if (stats_of(rig).is_recording == wanted)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail_msg("it %s", wanted ? "does not record" : "records on");
}

/* Wait until the type is recorded, which it is when the service has answered for it:
 * perhaps after the start, if the first answer is late. */
static void await_enabled(struct rig *rig)
{
    for (int ms = 0; ms < WAIT_MS; ms++) {
        if (tp_enabled(rig->client, rig->type))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail_msg("its type is not recorded");
}

/* Open it and wait until a trace is on, whatever it records. */
static void rig_begin(struct rig *rig)
{
    fake_service_answer(&rig->service, FAKE_SYNC, 200, PREPARE);
    fake_service_answer(&rig->service, FAKE_SYNC, 200, NULL);
    rig_open(rig);
    await_recording(rig, true);
}

static void rig_start(struct rig *rig)
{
    rig_begin(rig);
    await_enabled(rig);
}

/* Of 100 and 50 slices, each answered. */
static void record_two_batches(struct rig *rig)
{
    record(rig, 100);
    assert_int_equal(tp_flush(rig->client, WAIT_MS, NULL), TP_OK);
    record(rig, 50);
    assert_int_equal(tp_flush(rig->client, WAIT_MS, NULL), TP_OK);
}

static void test_a_batch_goes_again_under_its_number_until_it_is_taken(void **state)
{
    struct rig rig;

    (void)state;
    fake_service_init(&rig.service);
    fake_service_answer(&rig.service, FAKE_EVENTS, FAKE_CUT, NULL);
    fake_service_answer(&rig.service, FAKE_EVENTS, 500, NULL);
    fake_service_answer(&rig.service, FAKE_EVENTS, 503, "busy");
    fake_service_answer(&rig.service, FAKE_EVENTS, 429, PROBLEM("too-many-requests"));
    fake_service_answer(&rig.service, FAKE_EVENTS, 200, NULL);
    rig_start(&rig);
    record_two_batches(&rig);
    assert_true(fake_service_has(&rig.service, "EVENTS seq=1 -1\n"));
    assert_true(fake_service_has(&rig.service, "EVENTS seq=1 500\n"));
    assert_true(fake_service_has(&rig.service, "EVENTS seq=1 503\n"));
    assert_true(fake_service_has(&rig.service, "EVENTS seq=1 429\n"));
    assert_true(fake_service_has(&rig.service, "EVENTS seq=1 200\n"));
    assert_true(fake_service_has(&rig.service, "EVENTS seq=2 200\n"));
    assert_true(stats_of(&rig).sent >= 150);
    assert_int_equal(stats_of(&rig).emitted, stats_of(&rig).sent);
    rig_close(&rig);
}

/* One that does not know the key of a process refuses it, and is told nothing of it. */
static void test_an_older_service_takes_the_producer_without_its_key(void **state)
{
    struct rig rig;

    (void)state;
    fake_service_init(&rig.service);
    fake_service_answer(&rig.service, FAKE_PRODUCERS, 400, PROBLEM("unknown-field"));
    fake_service_answer(&rig.service, FAKE_PRODUCERS, 200, NULL);
    rig_start(&rig);
    assert_int_equal(rig.service.n_asked[FAKE_PRODUCERS], 2);
    rig_close(&rig);
}

static void test_a_refused_batch_is_counted_and_the_next_goes_on(void **state)
{
    struct tp_stats s;
    struct rig rig;

    (void)state;
    fake_service_init(&rig.service);
    fake_service_answer(&rig.service, FAKE_EVENTS, 400, PROBLEM("damaged-body"));
    fake_service_answer(&rig.service, FAKE_EVENTS, 200, NULL);
    rig_start(&rig);
    record_two_batches(&rig);
    s = stats_of(&rig);
    assert_true(s.dropped_refused >= 100);
    assert_int_equal(s.emitted, s.sent + s.dropped_refused);
    tp_get_stats(rig.client, &s, offsetof(struct tp_stats, dropped_after_stop));
    assert_int_equal(s.emitted, s.sent + s.dropped_backlog);
    assert_true(s.sent >= 50);
    rig_close(&rig);
}

/* The service counts what is over a limit of the trace; asking again gives the same. */
static void test_a_batch_over_a_limit_is_the_services_to_count(void **state)
{
    struct rig rig;

    (void)state;
    fake_service_init(&rig.service);
    fake_service_answer(&rig.service, FAKE_EVENTS, 429, PROBLEM("limit-exceeded"));
    fake_service_answer(&rig.service, FAKE_EVENTS, 200, NULL);
    rig_start(&rig);
    record_two_batches(&rig);
    assert_true(fake_service_has(&rig.service, "EVENTS seq=1 429\n"));
    assert_false(fake_service_has(&rig.service, "EVENTS seq=1 200\n"));
    assert_true(fake_service_has(&rig.service, "EVENTS seq=2 200\n"));
    assert_true(stats_of(&rig).sent >= 150);
    assert_int_equal(stats_of(&rig).emitted, stats_of(&rig).sent);
    rig_close(&rig);
}

static void test_what_waits_is_in_the_stats(void **state)
{
    struct tp_stats s;
    struct rig rig;

    (void)state;
    fake_service_init(&rig.service);
    fake_service_keep(&rig.service, FAKE_EVENTS, true);
    rig_start(&rig);
    record(&rig, 100);
    do
        assert_int_equal(tp_flush(rig.client, 1, NULL), TP_EAGAIN);
    while (stats_of(&rig).emitted < 100);
    s = stats_of(&rig);
    assert_int_equal(s.sent, 0);
    assert_int_equal(s.waiting, s.emitted);
    fake_service_keep(&rig.service, FAKE_EVENTS, false);
    assert_int_equal(tp_flush(rig.client, WAIT_MS, NULL), TP_OK);
    rig_close(&rig);
}

static void test_a_trace_that_takes_no_more_is_given_up(void **state)
{
    static const int statuses[] = {404, 409};

    (void)state;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct tp_stats s;
        struct rig rig;

        fake_service_init(&rig.service);
        fake_service_answer(&rig.service, FAKE_EVENTS, statuses[i], NULL);
        rig_start(&rig);
        record(&rig, 100);
        await_recording(&rig, false);
        for (int ms = 0; ms < WAIT_MS; ms++) { /* the counts come a moment later */
            s = stats_of(&rig);
            if (s.dropped_after_stop > 0)
                break;
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        if (s.emitted < 100 || s.dropped_after_stop != s.emitted || s.waiting != 0 ||
            tp_enabled(rig.client, rig.type))
            fail_msg("status %d: %llu emitted, %llu dropped", statuses[i],
                     (unsigned long long)s.emitted,
                     (unsigned long long)s.dropped_after_stop);
        rig_close(&rig);
    }
}

/* Wait until a body that the service keeps has a text in it. */
static void await_body(struct rig *rig, const char *body, const char *text)
{
    for (int ms = 0;; ms++) {
        bool has_text;

        pthread_mutex_lock(&rig->service.lock);
        has_text = strstr(body, text) != NULL;
        pthread_mutex_unlock(&rig->service.lock);
        if (has_text)
            return;
        if (ms == WAIT_MS)
            fail_msg("no %s in %s", text, body);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* After ten seconds without a word it is missed while it is recorded; idle, it says
 * something every 28. */
static void test_it_says_for_how_long_it_may_be_silent(void **state)
{
    struct rig rig;

    (void)state;
    fake_service_init(&rig.service);
    rig_open(&rig);
    await_body(&rig, rig.service.last_plain, "\"heartbeat_ms\": 70000");
    await_body(&rig, rig.service.last_plain, "\"wait_ms\": 28000");
    rig_close(&rig);
    fake_service_init(&rig.service);
    rig_start(&rig);
    await_body(&rig, rig.service.last_counts, "\"heartbeat_ms\": 10000");
    rig_close(&rig);
}

static void test_a_stop_is_acknowledged_when_all_is_sent(void **state)
{
    struct rig rig;

    (void)state;
    fake_service_init(&rig.service);
    rig_start(&rig);
    record(&rig, 100);
    fake_service_answer(&rig.service, FAKE_SYNC, 200, STOP);
    fake_service_answer(&rig.service, FAKE_SYNC, 200, NULL);
    await_recording(&rig, false);
    for (int ms = 0;; ms++) {
        bool is_acked;

        pthread_mutex_lock(&rig.service.lock);
        is_acked = strstr(rig.service.last_sync, "\"stop\"") != NULL;
        pthread_mutex_unlock(&rig.service.lock);
        if (is_acked)
            break;
        assert_true(ms < WAIT_MS);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_non_null(strstr(rig.service.last_sync, "\"emitted\": 10"));
    assert_true(fake_service_has(&rig.service, "EVENTS seq=1 200\n"));
    /* Its syncs are numbered; there are two connections, so one may not be read yet. */
    pthread_mutex_lock(&rig.service.lock);
    assert_in_range(rig.service.top_seq, rig.service.n_asked[FAKE_SYNC],
                    rig.service.n_asked[FAKE_SYNC] + 1);
    pthread_mutex_unlock(&rig.service.lock);
    rig_close(&rig);
}

static void test_answers_that_make_no_sense_are_survived(void **state)
{
    struct rig rig;

    (void)state;
    fake_service_init(&rig.service);
    fake_service_answer(&rig.service, FAKE_TYPES, 200, "[]");
    fake_service_answer(&rig.service, FAKE_PRODUCERS, FAKE_CUT, NULL);
    fake_service_answer(&rig.service, FAKE_PRODUCERS, 401, "who?");
    fake_service_answer(&rig.service, FAKE_PRODUCERS, 200, "<html>");
    fake_service_answer(&rig.service, FAKE_PRODUCERS, 200, "{\"id\":\"../../etc\"}");
    fake_service_answer(&rig.service, FAKE_PRODUCERS, 200, NULL);
    fake_service_answer(&rig.service, FAKE_SYNC, 200, "null");
    fake_service_answer(&rig.service, FAKE_SYNC, 200, "{\"commands\":[{}]}");
    fake_service_answer(&rig.service, FAKE_SYNC, FAKE_CUT, NULL);
    rig_begin(&rig);
    record(&rig, 10);
    assert_int_equal(tp_flush(rig.client, WAIT_MS, NULL), TP_OK);
    rig_close(&rig);
}

static int count_syncs(struct rig *rig)
{
    int n;

    pthread_mutex_lock(&rig->service.lock);
    n = rig->service.n_asked[FAKE_SYNC];
    pthread_mutex_unlock(&rig->service.lock);
    return n;
}

static void test_one_that_is_forgotten_registers_again_and_records_on(void **state)
{
    struct rig rig;
    int n;

    (void)state;
    fake_service_init(&rig.service);
    rig_start(&rig);
    pthread_mutex_lock(&rig.service.lock);
    n = rig.service.n_asked[FAKE_PRODUCERS];
    pthread_mutex_unlock(&rig.service.lock);
    fake_service_answer(&rig.service, FAKE_SYNC, 404, PROBLEM("not-found"));
    /* One may be for a sync that was under way before: it says the same again. */
    fake_service_answer(&rig.service, FAKE_SYNC, 200, PREPARE);
    fake_service_answer(&rig.service, FAKE_SYNC, 200, PREPARE);
    fake_service_answer(&rig.service, FAKE_SYNC, 200, PREPARE);
    fake_service_answer(&rig.service, FAKE_SYNC, 200, NULL);
    fake_service_await(&rig.service, FAKE_PRODUCERS, n + 1);
    fake_service_await(&rig.service, FAKE_SYNC,
                       count_syncs(&rig) + 6); /* past the first answers */
    assert_true(stats_of(&rig).is_recording);
    record(&rig, 10);
    assert_int_equal(tp_flush(rig.client, WAIT_MS, NULL), TP_OK);
    rig_close(&rig);
}

/* A service whose data is gone says nothing of the trace, of which nothing was recorded
 * yet that it could refuse. */
static void test_a_trace_that_is_forgotten_too_is_not_recorded_for_ever(void **state)
{
    struct rig rig;

    (void)state;
    fake_service_init(&rig.service);
    rig_start(&rig);
    fake_service_answer(&rig.service, FAKE_SYNC, 404, PROBLEM("not-found"));
    fake_service_answer(&rig.service, FAKE_SYNC, 200, NULL);
    await_recording(&rig, false);
    assert_false(tp_enabled(rig.client, rig.type));
    rig_close(&rig);
}

/* The stats do not wait for the agent to have looked around. */
static void test_a_stop_shows_in_the_stats_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct rig rig;

        fake_service_init(&rig.service);
        fake_service_answer(&rig.service, FAKE_SYNC, 200, ONE_STEP);
        fake_service_answer(&rig.service, FAKE_SYNC, 200, NULL);
        rig_open(&rig);
        await_recording(&rig, true);
        tp_step(rig.client);
        assert_false(tp_enabled(rig.client, rig.type));
        assert_false(stats_of(&rig).is_recording);
        rig_close(&rig);
    }
}

/* An interim answer starts it; the answer that repeats it, and its loss, change
 * nothing. */
static void test_a_start_that_is_told_ahead_is_not_waited_for(void **state)
{
    static const int statuses[] = {200, FAKE_CUT};

    (void)state;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
        struct tp_stats s;
        struct rig rig;

        fake_service_init(&rig.service);
        fake_service_say_ahead(&rig.service, "Traceplane-Sync: " PREPARE);
        fake_service_answer(&rig.service, FAKE_SYNC, statuses[i], PREPARE);
        fake_service_answer(&rig.service, FAKE_SYNC, 200, NULL);
        rig_open(&rig);
        await_recording(&rig, true); /* the answer itself is still held back */
        await_enabled(&rig);
        record(&rig, 100);
        fake_service_go_on(&rig.service);
        record(&rig, 50);
        assert_int_equal(tp_flush(rig.client, WAIT_MS, NULL), TP_OK);
        s = stats_of(&rig);
        if (s.sent < 150 || s.emitted != s.sent)
            fail_msg("case %zu: %llu emitted, %llu sent", i,
                     (unsigned long long)s.emitted, (unsigned long long)s.sent);
        rig_close(&rig);
    }
}

/* What is no order, and interim answers of others, are passed over. */
static void test_strange_interim_answers_are_passed_over(void **state)
{
    static const char *const heads[] = {"Traceplane-Sync: {\"commands\":[{}]}",
                                        "Traceplane-Sync: null", "Traceplane-Sync:",
                                        "Link: </style.css>; rel=preload",
                                        ("X-Traceplane-Sync: " STOP)};

    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        struct rig rig;

        fake_service_init(&rig.service);
        fake_service_say_ahead(&rig.service, heads[i]);
        fake_service_go_on(&rig.service);
        rig_start(&rig);
        record(&rig, 10);
        assert_int_equal(tp_flush(rig.client, WAIT_MS, NULL), TP_OK);
        rig_close(&rig);
    }
}

static void test_a_type_that_is_refused_does_not_keep_the_others_out(void **state)
{
    struct rig rig;
    unsigned other = TP_TYPE_NONE;

    (void)state;
    fake_service_init(&rig.service);
    fake_service_answer(&rig.service, FAKE_TYPES, 409, PROBLEM("registry-frozen"));
    fake_service_answer(&rig.service, FAKE_TYPES, 409, PROBLEM("id-collision"));
    fake_service_answer(&rig.service, FAKE_TYPES, 409, PROBLEM("id-collision"));
    fake_service_answer(&rig.service, FAKE_TYPES, 200, "{\"types\":[{\"id\":51}]}");
    rig_open(&rig);
    assert_int_equal(tp_register_type(rig.client, "demo", "B", TP_KIND_SLICE, NULL,
                                      &other, NULL),
                     TP_OK);
    fake_service_await(&rig.service, FAKE_TYPES, 4);
    rig_close(&rig);
}

static void await_refused(struct rig *rig, unsigned n)
{
    for (int ms = 0; ms < WAIT_MS && stats_of(rig).types_refused != n; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(stats_of(rig).types_refused, n);
}

/* Whose id it is there is asked for. */
static void test_a_type_that_is_refused_is_not_recorded_for_its_rival(void **state)
{
    struct rig rig;

    (void)state;
    fake_service_init(&rig.service);
    fake_service_answer(&rig.service, FAKE_TYPES, 409, PROBLEM("id-collision"));
    rig_begin(&rig);
    await_refused(&rig, 1);
    assert_false(tp_enabled(rig.client, rig.type));
    record(&rig, 10);
    assert_int_equal(tp_flush(rig.client, WAIT_MS, NULL), TP_OK);
    assert_int_equal(stats_of(&rig).emitted, 0);
    rig_close(&rig);
}

static void test_a_type_with_another_id_there_is_not_recorded_for_its_own(void **state)
{
    struct rig rig;

    (void)state;
    fake_service_init(&rig.service);
    fake_service_answer(&rig.service, FAKE_TYPES, 200, "{\"types\":[{\"id\":155}]}");
    rig_begin(&rig);
    fake_service_await(&rig.service, FAKE_TYPES, 1);
    assert_int_equal(tp_flush(rig.client, WAIT_MS, NULL), TP_OK);
    assert_false(tp_enabled(rig.client, rig.type));
    rig_close(&rig);
}

/* One that is registered when its id is recorded by number, for its rival. */
static void test_a_type_that_is_refused_during_a_trace_is_not_recorded(void **state)
{
    struct rig rig;
    unsigned late = TP_TYPE_NONE;

    (void)state;
    fake_service_init(&rig.service);
    fake_service_answer(&rig.service, FAKE_TYPES, 200, NULL);
    fake_service_answer(&rig.service, FAKE_TYPES, 409, PROBLEM("id-collision"));
    rig_start(&rig);
    fake_service_await(&rig.service, FAKE_TYPES, 1);
    assert_true(tp_enabled(rig.client, 137));
    assert_int_equal(tp_register_type(rig.client, "demo", "YJ", TP_KIND_SLICE, NULL,
                                      &late, NULL),
                     TP_OK);
    assert_int_equal(late, 137);
    assert_false(tp_enabled(rig.client, late));
    await_refused(&rig, 1);
    assert_false(tp_enabled(rig.client, late));
    rig_close(&rig);
}

/* As one that another process has registered. */
static void test_a_type_that_the_trace_asks_for_already_is_recorded_late(void **state)
{
    struct rig rig;
    unsigned late = TP_TYPE_NONE;

    (void)state;
    fake_service_init(&rig.service);
    fake_service_answer(&rig.service, FAKE_TYPES, 200, NULL);
    fake_service_answer(&rig.service, FAKE_TYPES, 200, "{\"types\":[{\"id\":51}]}");
    rig_start(&rig);
    fake_service_await(&rig.service, FAKE_TYPES, 1);
    assert_int_equal(tp_register_type(rig.client, "demo", "B", TP_KIND_SLICE, NULL,
                                      &late, NULL),
                     TP_OK);
    for (int ms = 0; ms < WAIT_MS && !tp_enabled(rig.client, late); ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_true(tp_enabled(rig.client, late));
    assert_int_equal(stats_of(&rig).types_refused, 0);
    rig_close(&rig);
}

/* It is on stderr when the log is on, once for each type. */
static void test_a_type_that_waits_for_the_end_of_a_trace_is_told_once(void **state)
{
    struct rig rig;
    char text[4096] = "";
    FILE *log = tmpfile();
    int before = dup(STDERR_FILENO);
    const char *first;

    (void)state;
    assert_non_null(log);
    fake_service_init(&rig.service);
    fake_service_answer(&rig.service, FAKE_TYPES, 409, PROBLEM("registry-frozen"));
    fake_service_answer(&rig.service, FAKE_TYPES, 409, PROBLEM("registry-frozen"));
    fake_service_answer(&rig.service, FAKE_TYPES, 200, "{\"types\":[{\"id\":120}]}");
    setenv("TRACEPLANE_LOG", "1", 1);
    assert_true(dup2(fileno(log), STDERR_FILENO) >= 0);
    rig_open(&rig);
    fake_service_await(&rig.service, FAKE_TYPES, 3);
    rig_close(&rig);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    unsetenv("TRACEPLANE_LOG");
    close(before);
    rewind(log);
    text[fread(text, 1, sizeof(text) - 1, log)] = '\0';
    fclose(log);
    first = strstr(text, "demo.STEP");
    if (first == NULL || strstr(first + 1, "demo.STEP") != NULL)
        fail_msg("the log is: %s", text);
}

static void test_closing_is_bounded_when_the_service_takes_nothing(void **state)
{
    uint64_t quickest_ms = UINT64_MAX;

    (void)state;
    for (int i = 0; i < TRIES && quickest_ms >= 3000; i++) {
        struct rig rig;
        uint64_t begin_ns, ms;

        fake_service_init(&rig.service);
        fake_service_answer(&rig.service, FAKE_EVENTS, 503, NULL);
        rig_start(&rig);
        record(&rig, 10);
        begin_ns = tp_now();
        assert_int_equal(tp_flush(rig.client, 50, NULL), TP_EAGAIN);
        tp_close(rig.client);
        ms = (tp_now() - begin_ns) / 1000000;
        quickest_ms = ms < quickest_ms ? ms : quickest_ms;
        fake_service_fini(&rig.service);
    }
    assert_true(quickest_ms < 3000);
}

static void test_in_a_child_clients_of_before_are_dead_and_harmless(void **state)
{
    struct rig rig;
    int status = 0;
    pid_t child;

    (void)state;
    fake_service_init(&rig.service);
    rig_start(&rig);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool is_good = !tp_enabled(rig.client, rig.type) &&
                       tp_flush(rig.client, 10, NULL) == TP_ESTATE &&
                       stats_of(&rig).emitted == 0;

        record(&rig, 10);
        tp_step(rig.client);
        tp_close(rig.client);
        _exit(is_good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    record(&rig, 10);
    assert_int_equal(tp_flush(rig.client, WAIT_MS, NULL), TP_OK);
    rig_close(&rig);
}

/* How many descriptors of this process are connected to a service. */
static int count_connections(const struct fake_service *service)
{
    int n = 0;

    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct sockaddr_un peer = {.sun_family = AF_UNSPEC};
        socklen_t bytes = sizeof(peer);

        n += getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 &&
             peer.sun_family == AF_UNIX && strcmp(peer.sun_path, service->path) == 0;
    }
    return n;
}

/* What the child holds open the service would take for the parent when that is gone. */
static void test_a_child_holds_no_connection_of_its_parent(void **state)
{
    struct rig rig;
    int status = 0;
    pid_t child;

    (void)state;
    fake_service_init(&rig.service);
    rig_start(&rig);
    assert_true(count_connections(&rig.service) > 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(count_connections(&rig.service));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(count_connections(&rig.service) > 0);
    rig_close(&rig);
}

static void test_one_that_is_off_contacts_nobody(void **state)
{
    struct tp_options options = {.options_bytes = sizeof(options), .is_off = true};
    struct tp_client *client = &tp_client_off;
    unsigned type = TP_TYPE_NONE;

    (void)state;
    assert_int_equal(tp_open(&options, &client, NULL), TP_OK);
    assert_int_equal(tp_register_type(client, "demo", "STEP", TP_KIND_SLICE, NULL,
                                      &type, NULL),
                     TP_OK);
    assert_int_equal(type, 120);
    assert_int_equal(tp_flush(client, 10, NULL), TP_ESTATE);
    tp_close(client);
    tp_close(NULL);
    tp_close(&tp_client_off);
}

/* The one who ran out of memory says so, and nobody speaks for it. */
static void test_open_survives_every_allocation_failure(void **state)
{
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .url = "http://127.0.0.1:1",
                                 .flush_ms = 10};
    bool was_link = false;

    (void)state;
    for (int n = 0;; n++) {
        struct tp_client *client = &tp_client_off;
        struct tp_err err = {0};
        int rc;

        fault_arm(n);
        rc = tp_open(&options, &client, &err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_close(client);
            assert_true(was_link);
            return;
        }
        was_link = was_link ||
                   strcmp(err.message, "no memory for a link to the service") == 0;
        assert_int_equal(rc, TP_ENOMEM);
        assert_ptr_equal(client, &tp_client_off);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_batch_goes_again_under_its_number_until_it_is_taken),
        cmocka_unit_test(test_an_older_service_takes_the_producer_without_its_key),
        cmocka_unit_test(test_a_start_that_is_told_ahead_is_not_waited_for),
        cmocka_unit_test(test_strange_interim_answers_are_passed_over),
        cmocka_unit_test(test_a_refused_batch_is_counted_and_the_next_goes_on),
        cmocka_unit_test(test_a_batch_over_a_limit_is_the_services_to_count),
        cmocka_unit_test(test_what_waits_is_in_the_stats),
        cmocka_unit_test(test_a_trace_that_takes_no_more_is_given_up),
        cmocka_unit_test(test_it_says_for_how_long_it_may_be_silent),
        cmocka_unit_test(test_a_stop_is_acknowledged_when_all_is_sent),
        cmocka_unit_test(test_answers_that_make_no_sense_are_survived),
        cmocka_unit_test(test_one_that_is_forgotten_registers_again_and_records_on),
        cmocka_unit_test(test_a_trace_that_is_forgotten_too_is_not_recorded_for_ever),
        cmocka_unit_test(test_a_stop_shows_in_the_stats_at_once),
        cmocka_unit_test(test_a_type_that_is_refused_does_not_keep_the_others_out),
        cmocka_unit_test(test_a_type_that_is_refused_is_not_recorded_for_its_rival),
        cmocka_unit_test(test_a_type_with_another_id_there_is_not_recorded_for_its_own),
        cmocka_unit_test(test_a_type_that_is_refused_during_a_trace_is_not_recorded),
        cmocka_unit_test(test_a_type_that_the_trace_asks_for_already_is_recorded_late),
        cmocka_unit_test(test_a_type_that_waits_for_the_end_of_a_trace_is_told_once),
        cmocka_unit_test(test_closing_is_bounded_when_the_service_takes_nothing),
        cmocka_unit_test(test_in_a_child_clients_of_before_are_dead_and_harmless),
        cmocka_unit_test(test_a_child_holds_no_connection_of_its_parent),
        cmocka_unit_test(test_one_that_is_off_contacts_nobody),
        cmocka_unit_test(test_open_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
