/* What a client does when it is told to end: all that was recorded goes first, what
 * cannot go is told, and the service is left with nobody who is not there. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <traceplane/traceplane.h>
#include <cmocka.h>

#include "producer/agent_state.h"
#include "support/fake_service.h"
#include "support/fault.h"

#define LONG_MS 60000 /* more than anything here takes */
#define SHORT_MS 2000
#define TRIES 3 /* the machine may stand still while a bound runs */
#define BATCH_BYTES (1u << 20)

#define PREPARE                                                                \
    "{\"commands\":[{\"command\":\"prepare\",\"trace_id\":\"t\",\"stream\":1," \
    "\"types\":[50,51,120,137]},{\"command\":\"start\",\"trace_id\":\"t\"}]}"

struct rig {
    struct fake_service service;
    struct tp_client *client;
    struct tp_agent *agent;
    unsigned type;
    pthread_t closer;
};

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void rig_init(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    fake_service_init(&rig->service);
    rig->client = &tp_client_off;
    rig->type = TP_TYPE_NONE;
}

static void rig_open(struct rig *rig, uint32_t flush_ms)
{
    char url[128];
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .url = url,
                                 .has_rank = true,
                                 .flush_ms = flush_ms};

    snprintf(url, sizeof(url), "unix:%s", rig->service.path);
    assert_int_equal(tp_open(&options, &rig->client, NULL), TP_OK);
    rig->agent = tp_recorder_agent(tp_recorder_of(rig->client));
}

/* Whether the last sync with acks had this one. */
static bool has_acked(struct rig *rig, const char *command)
{
    bool has;

    pthread_mutex_lock(&rig->service.lock);
    has = strstr(rig->service.last_sync, command) != NULL;
    pthread_mutex_unlock(&rig->service.lock);
    return has;
}

/* Open it and wait until the service knows that it records. */
static void rig_record(struct rig *rig, uint32_t flush_ms)
{
    rig_init(rig);
    fake_service_answer(&rig->service, FAKE_SYNC, 200, PREPARE);
    fake_service_answer(&rig->service, FAKE_SYNC, 200, NULL);
    rig_open(rig, flush_ms);
    assert_int_equal(tp_register_type(rig->client, "demo", "STEP", TP_KIND_SLICE, NULL,
                                      &rig->type, NULL),
                     TP_OK);
    /* Its type is recorded when the service has answered for it, perhaps later. */
    while (!has_acked(rig, "\"start\"") || !tp_enabled(rig->client, rig->type))
        pause_ms(1);
}

static void record(struct rig *rig, int n)
{
    for (int i = 0; i < n; i++)
        TP_INSTANT(rig->client, rig->type, "x");
}

/* Its thread is told to end, and has not ended. */
static void await_ending(struct rig *rig)
{
    bool is_ending = false;

    while (!is_ending) {
        pthread_mutex_lock(&rig->agent->lock);
        is_ending = rig->agent->is_ending;
        pthread_mutex_unlock(&rig->agent->lock);
        sched_yield();
    }
}

static void *close_it(void *arg)
{
    struct rig *rig = arg;

    tp_close(rig->client);
    return NULL;
}

static void rig_begin_close(struct rig *rig)
{
    assert_int_equal(pthread_create(&rig->closer, NULL, close_it, rig), 0);
}

/* In the middle of a drain. */
struct stop {
    struct rig *rig;
    atomic_bool is_reached;
    bool is_recording; /* although it is told to end */
};

static void end_meanwhile(void *arg)
{
    struct stop *stop = arg;

    atomic_store(&stop->is_reached, true);
    await_ending(stop->rig);
    stop->is_recording = tp_enabled(stop->rig->client, stop->rig->type);
    fake_service_keep(&stop->rig->service, FAKE_EVENTS, false);
}

/* The first batch is not answered, so the next one needs memory, if that has not. */
static void test_an_end_in_the_middle_of_a_drain_loses_nothing(void **state)
{
    struct rig rig;
    struct stop stop = {.rig = &rig};
    const char *leave;

    (void)state;
    rig_record(&rig, LONG_MS);
    fake_service_keep(&rig.service, FAKE_EVENTS, true);
    fault_call_at(BATCH_BYTES, end_meanwhile, &stop);
    while (!atomic_load(&stop.is_reached)) {
        record(&rig, 10);
        pause_ms(1);
    }
    record(&rig, 100);
    tp_close(rig.client);
    leave = strstr(rig.service.log, "LEAVE");
    assert_false(stop.is_recording);
    assert_true(has_acked(&rig, "\"stop\""));
    assert_non_null(leave);
    assert_null(strstr(leave, "EVENTS"));
    fake_service_fini(&rig.service);
}

/* The answer itself, after which the next poll would carry the acks, does not come. */
static void test_what_was_told_ahead_is_acknowledged_before_the_farewell(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    fake_service_say_ahead(&rig.service, "Traceplane-Sync: " PREPARE);
    fake_service_answer(&rig.service, FAKE_SYNC, 200, PREPARE);
    fake_service_answer(&rig.service, FAKE_SYNC, 200, NULL);
    rig_open(&rig, LONG_MS);
    assert_int_equal(tp_register_type(rig.client, "demo", "STEP", TP_KIND_SLICE, NULL,
                                      &rig.type, NULL),
                     TP_OK);
    while (!tp_enabled(rig.client, rig.type))
        pause_ms(1);
    record(&rig, 100);
    tp_close(rig.client);
    assert_true(has_acked(&rig, "\"stop\""));
    assert_true(fake_service_has(&rig.service, "EVENTS seq=1 200\nLEAVE - 200\n"));
    fake_service_go_on(&rig.service);
    fake_service_fini(&rig.service);
}

static void test_what_cannot_be_sent_in_time_is_told_and_left_behind(void **state)
{
    struct rig rig;
    bool is_told = false, has_left = false;

    (void)state;
    for (int i = 0; i < TRIES && !(is_told && has_left); i++) {
        rig_record(&rig, SHORT_MS);
        fake_service_keep(&rig.service, FAKE_EVENTS, true);
        record(&rig, 1000);
        tp_close(rig.client);
        is_told = strstr(rig.service.last_counts, "\"emitted\": 100") != NULL;
        has_left = fake_service_has(&rig.service, "LEAVE");
        assert_false(has_acked(&rig, "\"stop\""));
        fake_service_fini(&rig.service);
    }
    assert_true(is_told);
    assert_true(has_left);
}

/* The next sync, whichever it is, is answered by one who does not know the producer. */
static void close_and_forget(struct rig *rig)
{
    struct fake_service *s = &rig->service;
    int *n = &s->n_answers[FAKE_SYNC];

    pthread_mutex_lock(&s->lock); /* nothing is answered meanwhile */
    rig_begin_close(rig);
    await_ending(rig);
    s->answers[FAKE_SYNC][(*n)++] = (struct fake_answer){.status = 404};
    s->answers[FAKE_SYNC][(*n)++] = (struct fake_answer){.status = 200};
    pthread_mutex_unlock(&s->lock);
}

static void test_one_that_is_forgotten_registers_again_to_send_the_rest(void **state)
{
    struct rig rig;

    (void)state;
    rig_record(&rig, LONG_MS);
    fake_service_keep(&rig.service, FAKE_EVENTS, true);
    fake_service_answer(&rig.service, FAKE_EVENTS, 503, NULL);
    fake_service_answer(&rig.service, FAKE_EVENTS, 200, NULL);
    record(&rig, 100);
    fake_service_await(&rig.service, FAKE_EVENTS, 1);
    close_and_forget(&rig);
    fake_service_await(&rig.service, FAKE_PRODUCERS, 2);
    fake_service_keep(&rig.service, FAKE_EVENTS, false);
    pthread_join(rig.closer, NULL);
    assert_true(has_acked(&rig, "\"stop\""));
    assert_true(fake_service_has(&rig.service, "EVENTS seq=1 200\nLEAVE - 200\n"));
    fake_service_fini(&rig.service);
}

/* Open it and close it while its registration is on its way. */
static void close_while_registering(struct rig *rig)
{
    fake_service_keep(&rig->service, FAKE_PRODUCERS, true);
    rig_open(rig, LONG_MS);
    fake_service_await(&rig->service, FAKE_PRODUCERS, 1);
    rig_begin_close(rig);
    await_ending(rig);
    fake_service_keep(&rig->service, FAKE_PRODUCERS, false);
    pthread_join(rig->closer, NULL);
}

static void test_a_registration_on_its_way_is_awaited_and_taken_back(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    close_while_registering(&rig);
    assert_true(fake_service_has(&rig.service, "PRODUCERS - 200\nLEAVE - 200\n"));
    assert_int_equal(rig.service.n_asked[FAKE_SYNC], 0);
    fake_service_fini(&rig.service);
}

/* The service may have made a producer, by the id that was asked for. */
static void test_a_registration_whose_answer_is_lost_is_taken_back(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    fake_service_answer(&rig.service, FAKE_PRODUCERS, FAKE_CUT, NULL);
    close_while_registering(&rig);
    assert_true(fake_service_has(&rig.service, "PRODUCERS - -1\nLEAVE - 200\n"));
    fake_service_fini(&rig.service);
}

static void test_a_farewell_that_is_not_taken_is_said_again(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    fake_service_answer(&rig.service, FAKE_LEAVE, 503, NULL);
    fake_service_answer(&rig.service, FAKE_LEAVE, 200, NULL);
    rig_open(&rig, LONG_MS);
    fake_service_await(&rig.service, FAKE_SYNC, 1);
    tp_close(rig.client);
    assert_true(fake_service_has(&rig.service, "LEAVE - 503\nLEAVE - 200\n"));
    fake_service_fini(&rig.service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_end_in_the_middle_of_a_drain_loses_nothing),
        cmocka_unit_test(test_what_was_told_ahead_is_acknowledged_before_the_farewell),
        cmocka_unit_test(test_what_cannot_be_sent_in_time_is_told_and_left_behind),
        cmocka_unit_test(test_one_that_is_forgotten_registers_again_to_send_the_rest),
        cmocka_unit_test(test_a_registration_on_its_way_is_awaited_and_taken_back),
        cmocka_unit_test(test_a_registration_whose_answer_is_lost_is_taken_back),
        cmocka_unit_test(test_a_farewell_that_is_not_taken_is_said_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
