/*
 * test_server_listener_dynolog.c - the port of dynolog's RPC, over real connections on
 * loopback: messages in any pieces, what is none, places that run out, and memory that
 * does. What is answered is the matter of test_api_dynolog.c.
 */
#include "server/listener_dynolog.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/dynolog.h"
#include "server/app.h"
#include "server/waiters.h"
#include "support/engine_test.h"
#include "support/fault.h"

#define STATUS "{\"fn\":\"getStatus\"}"
#define STATUS_ANSWER "{\"status\":1}"
#define REQUEST                                                                \
    "{\"fn\":\"setKinetOnDemandRequest\",\"config\":\"ACTIVITIES_DURATION_MSE" \
    "CS=200\",\"job_id\":0,\"pids\":[0]}"
#define LOG_BYTES 16384

struct place {
    struct rig rig;
    struct tp_config config;
    struct tp_app app;
    FILE *log;
    struct tp_dynolog *dynolog;
    struct tp_err err;
};

static char address[] = "127.0.0.1:0";

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    rig_init(&p->rig);
    assert_int_equal(rig_start(&p->rig), TP_OK);
    p->log = tmpfile();
    assert_non_null(p->log);
    p->config.dynolog_listen = address;
    p->app.config = &p->config;
    p->app.log = (struct tp_log){.fd = fileno(p->log), .level = TP_LOG_INFO};
    p->app.engine = p->rig.engine;
    p->app.service = (struct tp_service){.engine = p->rig.engine,
                                         .limits = p->rig.limits,
                                         .version = "1.2.3"};
    assert_int_equal(tp_waiters_new(p->rig.engine, &p->app.waiters, &p->err), TP_OK);
    assert_int_equal(tp_dynolog_start(&p->app, &p->dynolog, &p->err), TP_OK);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    tp_dynolog_stop(p->dynolog);
    tp_waiters_free(p->app.waiters);
    fclose(p->log);
    rig_fini(&p->rig);
    free(p);
    return 0;
}

/* What was logged so far; ended by a NUL. */
static const char *logged(struct place *p, char *out)
{
    ssize_t n = pread(fileno(p->log), out, LOG_BYTES - 1, 0);

    assert_true(n >= 0);
    out[n] = '\0';
    return out;
}

/* The port that the log tells last. */
static uint16_t port_of(struct place *p)
{
    char text[LOG_BYTES];
    const char *at = NULL;

    for (const char *next = logged(p, text);
         (next = strstr(next, "on=127.0.0.1:")) != NULL; next++)
        at = next;
    assert_non_null(at);
    return (uint16_t)strtoul(at + strlen("on=127.0.0.1:"), NULL, 10);
}

static int dial(struct place *p)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port_of(p))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* Bytes to a side that may have closed by now. */
static void say(int fd, const void *bytes, size_t n)
{
    (void)!send(fd, bytes, n, MSG_NOSIGNAL);
}

static void say_size(int fd, int32_t size)
{
    say(fd, &size, sizeof(size));
}

/* Everything until the other side closes, without its head; "" = it said nothing. */
static const char *hear(int fd, char *out, size_t size)
{
    size_t n = 0;
    ssize_t got;
    int32_t head;

    while (n < size && (got = recv(fd, out + n, size - n, 0)) > 0)
        n += (size_t)got;
    close(fd);
    if (n == 0)
        return "";
    assert_in_range(n, sizeof(head), size - 1);
    memcpy(&head, out, sizeof(head));
    assert_int_equal(head, n - sizeof(head));
    out[n] = '\0';
    return out + sizeof(head);
}

static const char *call(struct place *p, const char *message, char *out, size_t size)
{
    int fd = dial(p);

    say_size(fd, (int32_t)strlen(message));
    say(fd, message, strlen(message));
    return hear(fd, out, size);
}

static void expect_status(struct place *p)
{
    char text[1000];

    assert_string_equal(call(p, STATUS, text, sizeof(text)), STATUS_ANSWER);
}

static void test_without_an_address_there_is_none(void **state)
{
    struct place *p = *state;
    struct tp_dynolog *none = p->dynolog;
    char nowhere[] = "";

    p->config.dynolog_listen = nowhere;
    assert_int_equal(tp_dynolog_start(&p->app, &none, &p->err), TP_OK);
    assert_null(none);
    tp_dynolog_stop(none);
}

static void test_what_cannot_be_listened_on_is_refused_by_name(void **state)
{
    static const struct {
        const char *address;
        int rc;
    } cases[] = {{"nonsense", TP_EINVAL},
                 {"0.0.0.0:0", TP_EDENIED},
                 {"192.0.2.1:1778", TP_EDENIED}};
    struct place *p = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_dynolog *none;
        char text[64];

        snprintf(text, sizeof(text), "%s", cases[i].address);
        p->config.dynolog_listen = text;
        if (tp_dynolog_start(&p->app, &none, &p->err) != cases[i].rc || none != NULL)
            fail_msg("%s: %s", text, p->err.message);
        assert_memory_equal(p->err.message, "dynolog-listen", 14);
    }
}

static void test_a_message_is_answered_in_whatever_pieces_it_comes(void **state)
{
    struct place *p = *state;
    char text[1000];

    for (size_t step = 1; step < 8; step++) {
        int32_t size = sizeof(STATUS) - 1;
        char bytes[sizeof(size) + sizeof(STATUS)];
        int fd = dial(p);

        memcpy(bytes, &size, sizeof(size));
        memcpy(bytes + sizeof(size), STATUS, sizeof(STATUS));
        for (size_t at = 0; at < sizeof(bytes) - 1; at += step)
            say(fd, bytes + at,
                at + step < sizeof(bytes) ? step : sizeof(bytes) - 1 - at);
        if (strcmp(hear(fd, text, sizeof(text)), STATUS_ANSWER) != 0)
            fail_msg("in pieces of %zu", step);
    }
}

static void test_what_changes_something_is_audited_and_the_rest_is_not(void **state)
{
    struct place *p = *state;
    char text[1000], log[LOG_BYTES];

    expect_status(p);
    assert_null(strstr(logged(p, log), "audit"));
    assert_non_null(strstr(call(p, REQUEST, text, sizeof(text)), "processesMatched"));
    assert_non_null(strstr(logged(p, log), "audit"));
    assert_non_null(strstr(log, "peer=127.0.0.1 action=setKinetOnDemandRequest"));
}

static void test_sizes_that_cannot_be_close_the_connection(void **state)
{
    static const int32_t sizes[] = {0, -1, INT32_MIN, INT32_MAX,
                                    TP_DYNOLOG_MESSAGE_MAX_BYTES + 1};
    struct place *p = *state;
    char text[100];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int fd = dial(p);

        say_size(fd, sizes[i]);
        if (hear(fd, text, sizeof(text))[0] != '\0')
            fail_msg("%d bytes are answered", sizes[i]);
    }
    expect_status(p);
}

static void test_one_that_goes_away_in_the_middle_harms_nobody(void **state)
{
    struct place *p = *state;

    for (size_t n = 0; n < sizeof(int32_t) + sizeof(STATUS) - 1; n++) {
        int32_t size = sizeof(STATUS) - 1;
        char bytes[sizeof(size) + sizeof(STATUS)];
        int fd = dial(p);

        memcpy(bytes, &size, sizeof(size));
        memcpy(bytes + sizeof(size), STATUS, sizeof(STATUS));
        say(fd, bytes, n);
        close(fd);
    }
    expect_status(p);
}

/* Whoever comes when all places are taken is closed at once; a place that is given back
 * is one again. The silent ones take the places in the order in which they come. */
static void test_no_more_than_its_places_are_taken(void **state)
{
    struct place *p = *state;
    int silent[TP_DYNOLOG_CONNECTIONS_MAX];
    char text[100];
    int fd;

    for (int i = 0; i < TP_DYNOLOG_CONNECTIONS_MAX; i++)
        silent[i] = dial(p);
    fd = dial(p);
    assert_string_equal(hear(fd, text, sizeof(text)), "");
    for (int i = 0; i < TP_DYNOLOG_CONNECTIONS_MAX; i++) {
        say_size(silent[i], -1);
        assert_string_equal(hear(silent[i], text, sizeof(text)), "");
    }
    expect_status(p);
}

static void test_it_ends_with_connections_open(void **state)
{
    struct place *p = *state;
    char text[100];
    int half = dial(p), silent = dial(p);

    say_size(half, 100);
    say(half, "{", 1);
    expect_status(p); /* so it has taken those that came before */
    tp_dynolog_stop(p->dynolog);
    p->dynolog = NULL;
    assert_string_equal(hear(half, text, sizeof(text)), "");
    assert_string_equal(hear(silent, text, sizeof(text)), "");
}

static void test_it_survives_every_allocation_failure_of_its_start(void **state)
{
    struct place *p = *state;

    tp_dynolog_stop(p->dynolog);
    for (int n = 0;; n++) {
        int rc;

        p->dynolog = NULL;
        fault_arm(n);
        rc = tp_dynolog_start(&p->app, &p->dynolog, &p->err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_true(n >= 2); /* itself, and the list of its sockets */
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(p->dynolog);
    }
}

/* The countdown of fault.h is the thread's own: a signal brings it there. */
static sem_t is_handled;
static _Atomic int fault_at; /* -1 = disarm */
static _Atomic bool has_fired;

static void on_signal(int number)
{
    (void)number;
    if (fault_at < 0)
        has_fired = fault_disarm();
    else
        fault_arm(fault_at);
    sem_post(&is_handled);
}

static void set_fault(pid_t thread, int n)
{
    fault_at = n;
    assert_int_equal(syscall(SYS_tgkill, getpid(), thread, SIGUSR1), 0);
    while (sem_wait(&is_handled) != 0)
        continue;
}

/* The thread that is not this one and was started last. */
static pid_t other_thread(void)
{
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry;
    pid_t found = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid != getpid() && pid > found)
            found = pid;
    }
    closedir(dir);
    assert_int_not_equal(found, 0);
    return found;
}

static void test_each_allocation_failure_is_an_answer_or_an_end(void **state)
{
    static const char *const messages[] = {STATUS, REQUEST, "{\"fn\":\"getVersion\"}"};
    struct sigaction action = {.sa_handler = on_signal};
    struct place *p = *state;
    pid_t thread = other_thread();
    char text[2000];

    assert_int_equal(sem_init(&is_handled, 0, 0), 0);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        int n = 0;

        do {
            set_fault(thread, n++);
            call(p, messages[i], text, sizeof(text));
            set_fault(thread, -1);
            expect_status(p);
        } while (has_fired);
        if (n < 3) /* the message, and its answer */
            fail_msg("%s: only %d allocations", messages[i], n - 1);
    }
    sem_destroy(&is_handled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        TEST(test_without_an_address_there_is_none),
        TEST(test_what_cannot_be_listened_on_is_refused_by_name),
        TEST(test_a_message_is_answered_in_whatever_pieces_it_comes),
        TEST(test_what_changes_something_is_audited_and_the_rest_is_not),
        TEST(test_sizes_that_cannot_be_close_the_connection),
        TEST(test_one_that_goes_away_in_the_middle_harms_nobody),
        TEST(test_no_more_than_its_places_are_taken),
        TEST(test_it_ends_with_connections_open),
        TEST(test_it_survives_every_allocation_failure_of_its_start),
        TEST(test_each_allocation_failure_is_an_answer_or_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
