/* A client and signals: its thread takes none, and while it is open it changes none,
 * though libcurl would: it ignores SIGPIPE around what it does, unless it is told not
 * to, and a program that relies on its own handler then would not get it. */
#include <dirent.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <traceplane/traceplane.h>
#include <cmocka.h>

#include "support/fake_service.h"

#define WAIT_MS 10000
#define PREPARE                                                                \
    "{\"commands\":[{\"command\":\"prepare\",\"trace_id\":\"t\",\"stream\":1," \
    "\"types\":[120]},{\"command\":\"start\",\"trace_id\":\"t\"}]}"

#ifndef TP_SANITIZED /* their runtimes have a sigaction() of their own */

static atomic_int n_changes;

/* In place of the system's, for libcurl, too. */
int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    int (*real)(int, const struct sigaction *, struct sigaction *);

    *(void **)&real = dlsym(RTLD_NEXT, "sigaction");
    atomic_fetch_add(&n_changes, action != NULL);
    return real(number, action, before);
}

/* All that a client sends: types, itself, polls, reports, events. */
static void test_a_client_changes_no_signal_while_it_is_open(void **state)
{
    struct fake_service service;
    char url[128];
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .url = url,
                                 .flush_ms = 1000};
    struct tp_client *client = &tp_client_off;
    unsigned type = TP_TYPE_NONE;
    struct tp_stats stats;

    (void)state;
    fake_service_init(&service);
    fake_service_answer(&service, FAKE_SYNC, 200, PREPARE);
    fake_service_answer(&service, FAKE_SYNC, 200, NULL);
    snprintf(url, sizeof(url), "unix:%s", service.path);
    atomic_store(&n_changes, 0);
    assert_int_equal(tp_open(&options, &client, NULL), TP_OK);
    assert_int_equal(tp_register_type(client, "demo", "STEP", TP_KIND_SLICE, NULL,
                                      &type, NULL),
                     TP_OK);
    do {
        TP_INSTANT(client, type, "x");
        assert_int_equal(tp_flush(client, WAIT_MS, NULL), TP_OK);
        tp_get_stats(client, &stats, sizeof(stats));
    } while (stats.sent == 0);
    assert_int_equal(atomic_load(&n_changes), 0);
    tp_close(client);
    fake_service_fini(&service);
}

#else

static void test_a_client_changes_no_signal_while_it_is_open(void **state)
{
    (void)state;
    print_message("skipped: a sanitizer's runtime has a sigaction() of its own\n");
    skip();
}

#endif

/* The signals that the thread of that name blocks; 0 when there is none. */
static uint64_t blocked_by(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    uint64_t blocked = 0;

    assert_non_null(tasks);
    while ((task = readdir(tasks)) != NULL) {
        char path[64], line[128];
        bool is_it = false;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", task->d_name);
        f = fopen(path, "r");
        while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
            if (strncmp(line, "Name:\t", 6) == 0)
                is_it = strncmp(line + 6, name, strlen(name)) == 0;
            if (is_it && strncmp(line, "SigBlk:\t", 8) == 0)
                blocked = strtoull(line + 8, NULL, 16);
        }
        if (f != NULL)
            fclose(f);
    }
    closedir(tasks);
    return blocked;
}

/* The handlers of a training process run in its own threads. */
static void test_the_agent_takes_no_signal(void **state)
{
    static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGUSR1,
                                  SIGUSR2, SIGALRM, SIGCHLD, SIGPROF};
    struct tp_options options = {.options_bytes = sizeof(options), .flush_ms = 1000};
    struct tp_client *client = &tp_client_off;
    struct fake_service service;
    char url[128];
    uint64_t blocked;

    (void)state;
    fake_service_init(&service);
    snprintf(url, sizeof(url), "unix:%s", service.path);
    options.url = url;
    assert_int_equal(tp_open(&options, &client, NULL), TP_OK);
    fake_service_await(&service, FAKE_SYNC, 1);
    blocked = blocked_by("traceplane\n");
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        if ((blocked >> (signals[i] - 1) & 1) == 0)
            fail_msg("signal %d is not blocked: %llx", signals[i],
                     (unsigned long long)blocked);
    }
    tp_close(client);
    fake_service_fini(&service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_client_changes_no_signal_while_it_is_open),
        cmocka_unit_test(test_the_agent_takes_no_signal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
