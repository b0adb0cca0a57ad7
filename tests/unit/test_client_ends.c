/* How the life of a process ends for its clients, whatever its threads are doing at
 * that moment: exit() against tp_close() and tp_open(), pthread_cancel(), and fork().
 * Each case runs in a process of its own, which tells by its status how it went. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
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

#include "base/err.h"
#include "producer/agent_state.h"
#include "support/fake_service.h"
#include "support/tmpdir.h"

#define TRIES 6
#define TRIES_IN_TIME 3 /* the machine may stand still while a bound runs */
#define HUNG_S 120      /* a child that takes longer has got stuck */
#define N_CHILDREN 25
#define N_CALLS 5

#define PREPARE                                                                \
    "{\"commands\":[{\"command\":\"prepare\",\"trace_id\":\"t\",\"stream\":1," \
    "\"types\":[50,51,120,137]},{\"command\":\"start\",\"trace_id\":\"t\"}]}"

/* Run it in a child. Returns the status as of waitpid(). */
static int status_of(void (*run)(int), int arg)
{
    int status = -1;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        alarm(HUNG_S);
        run(arg);
        _exit(99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Exits. */

enum { CLOSE_FIRST, EXIT_FIRST, ORDERS };

static struct fake_service service;
static struct tp_client *client = &tp_client_off;
static atomic_bool is_closing, is_exiting;

static void *close_it(void *arg)
{
    if (*(const int *)arg == EXIT_FIRST)
        while (!atomic_load(&is_exiting))
            sched_yield();
    atomic_store(&is_closing, true);
    tp_close(client);
    return NULL;
}

/* Runs before the handler of the library, since it is registered after it. */
static void note_exit(void)
{
    atomic_store(&is_exiting, true);
}

/* What there is to say against it: 0 = nothing. */
static int fault_found(void)
{
    struct tp_client *late = &tp_client_off;

    if (!fake_service_has(&service, "EVENTS seq=1 200"))
        return 1;
    if (!fake_service_has(&service, "LEAVE"))
        return 2;
    if (tp_open(NULL, &late, NULL) != TP_ESTATE || late != &tp_client_off)
        return 3;
    return 0;
}

/* Runs after the handler of the library: by now all is sent, whoever has seen to it. */
static void judge(void)
{
    int found = fault_found();

    fake_service_fini(&service);
    _exit(found);
}

/* Open the client, for what is late_ms late, too, and record something. */
static void begin(uint32_t late_ms)
{
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .has_rank = true,
                                 .flush_ms = 60000,
                                 .late_ms = late_ms};
    unsigned type = TP_TYPE_NONE;
    char url[128];

    fake_service_answer(&service, FAKE_SYNC, 200, PREPARE);
    fake_service_answer(&service, FAKE_SYNC, 200, NULL);
    snprintf(url, sizeof(url), "unix:%s", service.path);
    options.url = url;
    if (tp_open(&options, &client, NULL) != TP_OK ||
        tp_register_type(client, "demo", "STEP", TP_KIND_SLICE, NULL, &type, NULL) !=
            TP_OK)
        _exit(4);
    while (!tp_enabled(client, type))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (int i = 0; i < 100; i++)
        TP_INSTANT(client, type, "x");
}

static void exit_and_close(int order)
{
    pthread_t thread;

    atexit(judge);
    fake_service_init(&service);
    for (int i = 0; i < 3; i++) /* the end takes a while */
        fake_service_answer(&service, FAKE_EVENTS, 503, NULL);
    fake_service_answer(&service, FAKE_EVENTS, 200, NULL);
    begin(0);
    atexit(note_exit);
    if (pthread_create(&thread, NULL, close_it, &order) != 0)
        _exit(5);
    pthread_detach(thread);
    while (order == CLOSE_FIRST && !atomic_load(&is_closing))
        sched_yield();
    exit(0);
}

static void test_an_exit_and_a_close_at_once_send_all_and_crash_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < TRIES; i++) {
        int status = status_of(exit_and_close, i % ORDERS);

        if (status != 0)
            fail_msg("try %d: %s %d", i, WIFSIGNALED(status) ? "signal" : "status",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}

/* Registered before the library's: all has ended. */
static void flush_after_all(void)
{
    struct tp_err err = {0};
    int rc = tp_flush(client, 1000 * HUNG_S, &err);

    fake_service_fini(&service);
    _exit(rc == TP_ESTATE && strstr(err.message, "has ended") != NULL ? 0 : 1);
}

static void exit_and_flush(int arg)
{
    (void)arg;
    atexit(flush_after_all);
    fake_service_init(&service);
    begin(0);
    exit(0);
}

static uint64_t ms_since(const struct timespec *from)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)((now.tv_sec - from->tv_sec) * 1000 +
                      (now.tv_nsec - from->tv_nsec) / 1000000);
}

#define SIDE_BY_SIDE 4
#define BOUND_MS 3000

static char *folder;

/* Clients whose first request is heard and never answered. */
static void exit_with_several(int arg)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .flush_ms = BOUND_MS};
    struct tp_client *all[SIDE_BY_SIDE];
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    char url[128], byte;

    (void)arg;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", folder);
    snprintf(url, sizeof(url), "unix:%s", address.sun_path);
    options.url = url;
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, SIDE_BY_SIDE) != 0)
        _exit(3);
    for (int i = 0; i < SIDE_BY_SIDE; i++) {
        int heard;

        if (tp_open(&options, &all[i], NULL) != TP_OK)
            _exit(4);
        heard = accept(listener, NULL, NULL);
        if (heard < 0 || read(heard, &byte, 1) != 1)
            _exit(5);
    }
    exit(0);
}

/* One after the other they would take four times the bound of each. */
static void test_an_exit_takes_as_long_as_one_client(void **state)
{
    bool is_quick = false;

    (void)state;
    for (int i = 0; i < TRIES_IN_TIME && !is_quick; i++) {
        struct timespec from;

        folder = tmpdir_new_short();
        clock_gettime(CLOCK_MONOTONIC, &from);
        assert_int_equal(status_of(exit_with_several, 0), 0);
        is_quick = ms_since(&from) < (SIDE_BY_SIDE - 1) * BOUND_MS;
        tmpdir_remove(folder);
    }
    assert_true(is_quick);
}

#define LATE_MS 300
#define LATE_MOST_MS 5000
#define TOO_LATE 2

static struct timespec exit_began;

static void judge_wait(void)
{
    uint64_t ms = ms_since(&exit_began);

    fake_service_fini(&service);
    _exit(ms >= LATE_MS ? 0 : 1);
}

/* Somebody may report until then: the client is open. */
static void exit_while_recording(int unused)
{
    (void)unused;
    atexit(judge_wait);
    fake_service_init(&service);
    begin(LATE_MS);
    clock_gettime(CLOCK_MONOTONIC, &exit_began);
    exit(0);
}

static void close_while_recording(int unused)
{
    struct timespec from;
    uint64_t ms;
    bool is_sent;

    (void)unused;
    fake_service_init(&service);
    begin(LATE_MOST_MS);
    clock_gettime(CLOCK_MONOTONIC, &from);
    tp_close(client);
    ms = ms_since(&from);
    is_sent = fake_service_has(&service, "EVENTS seq=1 200");
    fake_service_fini(&service);
    _exit(is_sent ? (ms < LATE_MOST_MS ? 0 : TOO_LATE) : 1);
}

static void test_an_exit_waits_for_what_is_late_and_a_close_does_not(void **state)
{
    int close = TOO_LATE;

    (void)state;
    assert_int_equal(status_of(exit_while_recording, 0), 0);
    for (int i = 0; i < TRIES_IN_TIME && close == TOO_LATE; i++) {
        int status = status_of(close_while_recording, 0);

        assert_true(WIFEXITED(status));
        close = WEXITSTATUS(status);
    }
    assert_int_equal(close, 0);
}

static void test_a_flush_after_the_end_says_so_at_once(void **state)
{
    (void)state;
    assert_int_equal(status_of(exit_and_flush, 0), 0);
}

/* Cancels. */

enum { IN_FLUSH, IN_CLOSE, PLACES };

static atomic_bool has_returned;

static void *wait_in(void *arg)
{
    if (*(const int *)arg == IN_FLUSH)
        tp_flush(client, 1000 * HUNG_S, NULL);
    else
        tp_close(client);
    atomic_store(&has_returned, true);
    pthread_testcancel();
    return NULL;
}

/* The call is under way: it waits for what the service keeps back. */
static void await_call(struct tp_agent *agent, int place)
{
    bool is_waiting = false;

    while (!is_waiting) {
        pthread_mutex_lock(&agent->lock);
        is_waiting = place == IN_FLUSH ? agent->n_flushes_wanted > 0 : agent->is_ending;
        pthread_mutex_unlock(&agent->lock);
        sched_yield();
    }
}

/* Runs after the handler of the library, if that ends. */
static void end_service(void)
{
    fake_service_fini(&service);
}

static void cancel_in(int place)
{
    void *result = NULL;
    pthread_t thread;

    atexit(end_service);
    fake_service_init(&service);
    fake_service_keep(&service, FAKE_EVENTS, true);
    begin(0);
    if (pthread_create(&thread, NULL, wait_in, &place) != 0)
        _exit(5);
    await_call(tp_recorder_agent(tp_recorder_of(client)), place);
    pthread_cancel(thread);
    fake_service_keep(&service, FAKE_EVENTS, false);
    pthread_join(thread, &result);
    if (!atomic_load(&has_returned) || result != PTHREAD_CANCELED)
        _exit(1);
    exit(0); /* it would wait for a thread that is not there any more */
}

static void test_a_thread_that_is_cancelled_in_a_call_returns_from_it(void **state)
{
    static const char *const places[PLACES] = {"tp_flush", "tp_close"};

    (void)state;
    for (int i = 0; i < PLACES; i++)
        if (status_of(cancel_in, i) != 0)
            fail_msg("%s", places[i]);
}

/* Forks. */

static void use_types(unsigned i)
{
    char name[32];
    unsigned type;

    snprintf(name, sizeof(name), "T%u", i % 20);
    tp_register_type(client, "p", name, TP_KIND_SLICE, NULL, &type, NULL);
    tp_find_type(client, "p.T1", &type, NULL);
}

static void use_tracks(unsigned i)
{
    tp_device_track((uint32_t)getpid(), i);
}

static void use_texts(unsigned i)
{
    char text[32];

    snprintf(text, sizeof(text), "n%u", i % 5000);
    tp_intern(text);
}

static void use_clients(unsigned i)
{
    struct tp_options options = {.options_bytes = sizeof(options), .is_off = true};
    struct tp_client *other;

    (void)i;
    if (tp_open(&options, &other, NULL) == TP_OK)
        tp_close(other);
}

static void use_steps(unsigned i)
{
    struct tp_stats stats;

    (void)i;
    tp_step(client);
    tp_now();
    tp_get_stats(client, &stats, sizeof(stats));
}

static const struct {
    const char *name;
    void (*use)(unsigned i);
    bool is_before_open; /* there is no client yet, in the whole of the process */
} uses[] = {
    {"types", use_types, false},     {"tracks", use_tracks, false},
    {"texts", use_texts, false},     {"texts before tp_open()", use_texts, true},
    {"clients", use_clients, false}, {"steps", use_steps, false},
};

static void *use_on(void *arg)
{
    const int which = *(const int *)arg;

    for (unsigned i = 0;; i++)
        uses[which].use(i);
    return NULL;
}

static int look_at_child(int which)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        alarm(HUNG_S);
        for (unsigned i = 0; i < N_CALLS; i++)
            uses[which].use(1000000 + i);
        _exit(0);
    }
    return child < 0 || waitpid(child, &status, 0) != child ? 1 : status;
}

static void fork_among_threads(int which)
{
    struct tp_options options = {.options_bytes = sizeof(options), .is_off = true};
    pthread_t threads[2];

    if (!uses[which].is_before_open && tp_open(&options, &client, NULL) != TP_OK)
        _exit(4);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, use_on, &which) != 0)
            _exit(5);
    for (int i = 0; i < N_CHILDREN; i++) {
        alarm(HUNG_S); /* of this process: from now on */
        if (look_at_child(which) != 0)
            _exit(1);
    }
    _exit(0);
}

static void test_a_child_never_waits_for_a_thread_of_its_parent(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    print_message("skipped: AddressSanitizer's own locks are not free in a child\n");
    skip();
#endif
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
        if (status_of(fork_among_threads, (int)i) != 0)
            fail_msg("a child got stuck: %s", uses[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_exit_and_a_close_at_once_send_all_and_crash_nothing),
        cmocka_unit_test(test_an_exit_takes_as_long_as_one_client),
        cmocka_unit_test(test_an_exit_waits_for_what_is_late_and_a_close_does_not),
        cmocka_unit_test(test_a_flush_after_the_end_says_so_at_once),
        cmocka_unit_test(test_a_thread_that_is_cancelled_in_a_call_returns_from_it),
        cmocka_unit_test(test_a_child_never_waits_for_a_thread_of_its_parent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
