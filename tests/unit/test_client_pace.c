/* A whole client against a service that answers at once and helps nobody: how often it
 * asks is bounded. The bounds are on what is asked in a time that has passed, which a
 * loaded machine only makes less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <traceplane/traceplane.h>
#include <cmocka.h>

#include "support/fake_service.h"

#define NS_PER_MS 1000000u
#define WATCHED_MS 500

struct rig {
    struct fake_service service;
    struct tp_client *client;
    uint64_t opened_ns;
};

static void rig_open(struct rig *rig)
{
    char url[128];
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .url = url,
                                 .flush_ms = 1000};

    snprintf(url, sizeof(url), "unix:%s", rig->service.path);
    rig->client = &tp_client_off;
    rig->opened_ns = tp_now();
    assert_int_equal(tp_open(&options, &rig->client, NULL), TP_OK);
}

static void rig_close(struct rig *rig)
{
    tp_close(rig->client);
    fake_service_fini(&rig->service);
}

static uint64_t passed_ms(const struct rig *rig)
{
    return (tp_now() - rig->opened_ns) / NS_PER_MS;
}

static int count(struct rig *rig, enum fake_kind kind)
{
    int n;

    pthread_mutex_lock(&rig->service.lock);
    n = rig->service.n_asked[kind];
    pthread_mutex_unlock(&rig->service.lock);
    return n;
}

/* How often a kind was asked in WATCHED_MS or a little more, in `ms` of them. */
static int watch(struct rig *rig, enum fake_kind kind, uint64_t *ms)
{
    nanosleep(&(struct timespec){.tv_nsec = WATCHED_MS * NS_PER_MS}, NULL);
    *ms = passed_ms(rig);
    return count(rig, kind);
}

/* Two services behind a balancer: each registers it, and the other does not know it. */
static void test_one_that_is_forgotten_again_and_again_waits_longer_each_time(
    void **state)
{
    struct rig rig;
    uint64_t ms;

    (void)state;
    fake_service_init(&rig.service);
    fake_service_answer(&rig.service, FAKE_SYNC, 404, NULL);
    rig_open(&rig);
    /* At once, and then after 25, 50, 100 ms at the least, and so on. */
    fake_service_await(&rig.service, FAKE_PRODUCERS, 5);
    ms = passed_ms(&rig);
    if (ms < 175)
        fail_msg("five registrations within %llu ms", (unsigned long long)ms);
    rig_close(&rig);
}

static void check_polls(const char *answer)
{
    struct rig rig;
    uint64_t ms;
    int n;

    fake_service_init(&rig.service);
    rig.service.is_quick = true;
    fake_service_answer(&rig.service, FAKE_SYNC, 200, answer);
    rig_open(&rig);
    n = watch(&rig, FAKE_SYNC, &ms);
    if ((uint64_t)n > 20 + ms / 200)
        fail_msg("%s: %d syncs in %llu ms", answer, n, (unsigned long long)ms);
    fake_service_await(&rig.service, FAKE_SYNC, n + 2); /* it goes on */
    rig_close(&rig);
}

static void test_polls_that_bring_nothing_are_paced(void **state)
{
    static const char *const answers[] = {
        "{\"commands\":[]}",
        "{\"commands\":[{\"command\":\"snapshot\",\"trace_id\":\"t\"}]}",
        "{\"commands\":[{\"command\":\"cancel\",\"trace_id\":\"t\"}]}",
        "{\"commands\":[{\"command\":\"prepare\",\"trace_id\":\"t\",\"stream\":1,"
        "\"types\":[50]}]}",
        "{\"commands\":[{\"command\":\"prepare\",\"trace_id\":\"t\",\"stream\":1,"
        "\"types\":[50]},{\"command\":\"start\",\"trace_id\":\"t\"}]}",
        "{\"commands\":[{\"command\":\"stop\",\"trace_id\":\"t\"}]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
        check_polls(answers[i]);
}

static void test_what_the_service_asks_to_wait_is_waited(void **state)
{
    struct rig rig;
    uint64_t ms;

    (void)state;
    fake_service_init(&rig.service);
    rig.service.retry_after_s = 1;
    fake_service_answer(&rig.service, FAKE_PRODUCERS, 503, NULL);
    fake_service_answer(&rig.service, FAKE_PRODUCERS, 200, NULL);
    rig_open(&rig);
    fake_service_await(&rig.service, FAKE_PRODUCERS, 2);
    ms = passed_ms(&rig);
    if (ms < 1000)
        fail_msg("asked again after %llu ms", (unsigned long long)ms);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_one_that_is_forgotten_again_and_again_waits_longer_each_time),
        cmocka_unit_test(test_polls_that_bring_nothing_are_paced),
        cmocka_unit_test(test_what_the_service_asks_to_wait_is_waited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
