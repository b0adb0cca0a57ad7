/* What a client takes over of the process around it and what not: its proxies, how the
 * thread that opens it is scheduled. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <traceplane/traceplane.h>
#include <cmocka.h>

#define WAIT_MS 60000
#define NOBODY 65534

/* Proxies. */

/* A socket on a port of 127.0.0.1 that somebody may connect to. */
static int listen_on(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* The first bytes that a client sends to the service or, in its place, to the proxy.
 * Returns whether it was the service. */
static bool hear_first(int service, int proxy, char *text, size_t n)
{
    struct pollfd listeners[] = {{.fd = service, .events = POLLIN},
                                 {.fd = proxy, .events = POLLIN}};
    bool is_service;
    ssize_t got;
    int fd;

    assert_true(poll(listeners, 2, WAIT_MS) > 0);
    is_service = (listeners[1].revents & POLLIN) == 0;
    fd = accept(is_service ? service : proxy, NULL, NULL);
    assert_true(fd >= 0);
    got = read(fd, text, n - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return is_service;
}

static void test_the_service_is_reached_directly_whatever_proxies_there_are(
    void **state)
{
    static const struct {
        const char *variable, *proxy, *service, *says;
    } cases[] = {
        {"http_proxy", "http", "http", "POST /v1/"},
        {"all_proxy", "http", "http", "POST /v1/"},
        {"ALL_PROXY", "socks5h", "http", "POST /v1/"},
        {"https_proxy", "http", "https", "\x16\x03"}, /* a handshake of TLS */
        {"HTTPS_PROXY", "http", "https", "\x16\x03"},
    };

    (void)state;
    unsetenv("no_proxy");
    unsetenv("NO_PROXY");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_client *client = &tp_client_off;
        unsigned service_port, proxy_port;
        int service = listen_on(&service_port), proxy = listen_on(&proxy_port);
        char url[64], proxy_url[64], text[64];
        struct tp_options options = {.options_bytes = sizeof(options),
                                     .url = url,
                                     .token = "of-the-service",
                                     .flush_ms = 1};
        bool is_direct;

        snprintf(url, sizeof(url), "%s://127.0.0.1:%u", cases[i].service, service_port);
        snprintf(proxy_url, sizeof(proxy_url), "%s://127.0.0.1:%u", cases[i].proxy,
                 proxy_port);
        assert_int_equal(setenv(cases[i].variable, proxy_url, 1), 0);
        assert_int_equal(tp_open(&options, &client, NULL), TP_OK);
        is_direct = hear_first(service, proxy, text, sizeof(text));
        tp_close(client);
        unsetenv(cases[i].variable);
        close(service);
        close(proxy);
        if (!is_direct || strncmp(text, cases[i].says, strlen(cases[i].says)) != 0)
            fail_msg("%s: the %s hears '%.20s'", cases[i].variable,
                     is_direct ? "service" : "proxy", text);
    }
}

/* Scheduling. */

/* The thread of the library; 0 when there is none. */
static pid_t find_agent(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    pid_t found = 0;

    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        char path[64], name[32] = "";
        FILE *f;

        snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", task->d_name);
        f = fopen(path, "r");
        if (f == NULL)
            continue;
        if (fgets(name, sizeof(name), f) != NULL && strcmp(name, "traceplane\n") == 0)
            found = (pid_t)strtol(task->d_name, NULL, 10);
        fclose(f);
    }
    if (tasks != NULL)
        closedir(tasks);
    return found;
}

struct scheduling {
    int policy;         /* of the thread that opens the client */
    int error;          /* errno when it cannot be set; 0 = set */
    int rc;             /* of tp_open() */
    int of_agent;       /* the policy of the agent */
    int agent_priority; /* for its real-time policies */
};

/* Become of that policy, open a client and look at its thread. */
static void *open_as(void *arg)
{
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .url = "http://127.0.0.1:1",
                                 .flush_ms = 1};
    struct tp_client *client = &tp_client_off;
    struct scheduling *s = arg;
    struct sched_param param = {.sched_priority = sched_get_priority_min(s->policy)};
    pid_t agent;

    if (sched_setscheduler(0, s->policy, &param) != 0) {
        s->error = errno;
        return NULL;
    }
    s->rc = tp_open(&options, &client, NULL);
    agent = find_agent();
    s->of_agent = agent == 0 ? -1 : sched_getscheduler(agent);
    if (agent != 0 && sched_getparam(agent, &param) == 0)
        s->agent_priority = param.sched_priority;
    tp_close(client);
    return NULL;
}

/* Ranks that spin as SCHED_FIFO would starve it, and it would hold them up. */
static void test_the_agent_of_a_realtime_thread_is_an_ordinary_one(void **state)
{
    static const int policies[] = {SCHED_BATCH, SCHED_FIFO, SCHED_RR};

    (void)state;
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        struct scheduling s = {.policy = policies[i]};
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, open_as, &s), 0);
        pthread_join(thread, NULL);
        if (s.error != 0) {
            print_message("skipped: no thread may be of policy %d here: %s\n", s.policy,
                          strerror(s.error));
            skip();
        }
        if (s.rc != TP_OK || s.of_agent != SCHED_OTHER || s.agent_priority != 0)
            fail_msg("opened as %d: %d, and the agent is of %d with priority %d",
                     s.policy, s.rc, s.of_agent, s.agent_priority);
    }
}

/* The kernel lets no one leave SCHED_IDLE who may not raise a nice value. */
static void test_where_it_cannot_be_an_ordinary_one_there_is_an_agent_still(
    void **state)
{
    int status = -1;
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        struct scheduling s = {.policy = SCHED_IDLE};

        if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0)
            _exit(77);
        open_as(&s);
        _exit(s.error != 0                ? 77
              : s.rc != TP_OK             ? 1
              : s.of_agent == SCHED_OTHER ? 77 /* it may do so after all */
              : s.of_agent == SCHED_IDLE  ? 0
                                          : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("skipped: SCHED_IDLE keeps nobody here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_the_service_is_reached_directly_whatever_proxies_there_are),
        cmocka_unit_test(test_the_agent_of_a_realtime_thread_is_an_ordinary_one),
        cmocka_unit_test(
            test_where_it_cannot_be_an_ordinary_one_there_is_an_agent_still),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
