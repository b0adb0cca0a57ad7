/* A resolver that does not answer is waited for by nobody. The program's own
 * getaddrinfo() comes before libc's, for libcurl, too. */
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>
#include <traceplane/traceplane.h>
#include <cmocka.h>

#include "producer/link.h"

#define FLUSH_MS 100
#define PATIENCE_S 60 /* then the resolver answers, and it was waited for */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_asked, n_answered;
    bool is_released;
} resolver = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    struct timespec end;

    (void)name;
    (void)service;
    (void)hints;
    (void)out;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&resolver.lock);
    resolver.n_asked++;
    pthread_cond_broadcast(&resolver.changed);
    while (!resolver.is_released &&
           pthread_cond_timedwait(&resolver.changed, &resolver.lock, &end) == 0)
        continue;
    resolver.n_answered++;
    pthread_cond_broadcast(&resolver.changed);
    pthread_mutex_unlock(&resolver.lock);
    return EAI_AGAIN;
}

static void await_asked(int n)
{
    pthread_mutex_lock(&resolver.lock);
    while (resolver.n_asked < n)
        pthread_cond_wait(&resolver.changed, &resolver.lock);
    pthread_mutex_unlock(&resolver.lock);
}

/* How many were answered by now; from here on all are. */
static int release(void)
{
    int n;

    pthread_mutex_lock(&resolver.lock);
    n = resolver.n_answered;
    resolver.is_released = true;
    pthread_cond_broadcast(&resolver.changed);
    while (resolver.n_answered < resolver.n_asked)
        pthread_cond_wait(&resolver.changed, &resolver.lock);
    pthread_mutex_unlock(&resolver.lock);
    return n;
}

static int run_in_child(int (*run)(void))
{
    int status = -1;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(run());
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void open_client(struct tp_client **out)
{
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .url = "http://host.invalid:8750",
                                 .flush_ms = FLUSH_MS};

    assert_int_equal(tp_open(&options, out, NULL), TP_OK);
    await_asked(1);
}

static int close_while_it_looks_up(void)
{
    struct tp_client *client = &tp_client_off;

    open_client(&client);
    tp_close(client);
    return release();
}

/* Runs after the library's own. */
static void judge(void)
{
    _exit(release());
}

static int exit_while_it_looks_up(void)
{
    struct tp_client *client = &tp_client_off;

    atexit(judge);
    open_client(&client);
    exit(99);
}

/* The bound of a request, too, ends the wait. */
static int time_out_while_it_looks_up(void)
{
    const struct tp_link_opts opts = {.url = "http://host.invalid:8750",
                                      .connect_ms = FLUSH_MS};
    const struct tp_link_request request = {
        .method = "POST", .path = "/", .body = {"{}", 2}, .timeout_ms = FLUSH_MS};
    struct tp_link_reply reply;
    struct tp_link *l = NULL;

    assert_int_equal(tp_link_new(&opts, &l, NULL), TP_OK);
    assert_int_equal(tp_link_begin(l, TP_LINK_REPORT, &request, NULL), TP_OK);
    while (!tp_link_take(l, TP_LINK_REPORT, &reply))
        tp_link_wait(l, FLUSH_MS);
    assert_int_equal(reply.status, 0);
    assert_false(tp_link_has_sent(l, TP_LINK_REPORT));
    tp_link_free(l);
    await_asked(1);
    return release();
}

static void test_a_resolver_that_does_not_answer_holds_up_nobody(void **state)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {{"close", close_while_it_looks_up},
                 {"exit", exit_while_it_looks_up},
                 {"time out", time_out_while_it_looks_up}};

    (void)state;
    if (curl_version_info(CURLVERSION_NOW)->version_num < 0x075700) {
        print_message("skipped: libcurl before 7.87 waits for its own thread\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int status = run_in_child(cases[i].run);

        if (status != 0)
            fail_msg("%s: it has waited for the resolver, status %x", cases[i].name,
                     (unsigned)status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_resolver_that_does_not_answer_holds_up_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
