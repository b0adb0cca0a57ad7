/*
 * kineto_client.c - as libkineto's ConfigLoader: it asks at once and then at intervals.
 */
#include "support/kineto_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/kineto_bytes.h"
#include "support/kineto_parts.h"

int64_t kineto_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void kineto_say(struct kineto_client *c, const char *event, const char *more)
{
    char line[400];
    int n;

    if (c->o.is_quiet)
        return;
    n = snprintf(line, sizeof(line),
                 "{\"client\":%d,\"pid\":%d,\"ms\":%" PRId64 ",\"event\":\"%s\"%s}\n",
                 c->o.number, (int)getpid(), kineto_now_ms(), event, more);
    if (write(STDOUT_FILENO, line, (size_t)n) != n)
        c->o.is_quiet = true;
}

/* Its own pid and its ancestors', as /proc tells. */
static int32_t ancestors(int32_t *pids)
{
    int32_t n = 0;
    int pid = getpid();

    while (pid > 1 && n < 11) {
        char path[64], text[512] = "", *end;
        FILE *f;

        pids[n++] = pid;
        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        f = fopen(path, "re");
        if (f == NULL)
            break;
        if (fgets(text, sizeof(text), f) == NULL)
            text[0] = '\0';
        fclose(f);
        end = strrchr(text, ')');
        if (end == NULL || strlen(end) < 5) /* ") S 1234" */
            break;
        pid = (int)strtol(end + 4, NULL, 10);
    }
    return n;
}

static bool is_busy(struct kineto_client *c)
{
    bool busy;

    pthread_mutex_lock(&c->lock);
    busy = c->run != KINETO_WAIT || kineto_is_self_busy(c);
    pthread_mutex_unlock(&c->lock);
    return busy;
}

static void ask(struct kineto_client *c, const int32_t *pids, int32_t n_pids)
{
    int32_t type = c->o.is_mute ? 3 : (is_busy(c) ? 0 : 2) | (c->o.is_old ? 1 : 0);
    char bytes[KINETO_BYTES_MAX], text[KINETO_TEXT_BYTES], more[100];
    size_t n = kineto_request(bytes, type, c->o.job, pids, n_pids);
    bool is_behind = kineto_has_answer(c);
    struct timespec before, after;
    int got;

    clock_gettime(CLOCK_MONOTONIC, &before);
    if (!kineto_send(c, bytes, n))
        return;
    if (c->o.late_reads > 0) {
        c->o.late_reads--; /* its thread did not get the processor in time */
        kineto_say(c, "late", "");
        return;
    }
    got = kineto_receive(c, text, sizeof(text));
    clock_gettime(CLOCK_MONOTONIC, &after);
    snprintf(more, sizeof(more), ",\"type\":%d,\"bytes\":%d,\"us\":%lld,\"behind\":%s",
             type, got,
             (long long)(after.tv_sec - before.tv_sec) * 1000000 +
                 (after.tv_nsec - before.tv_nsec) / 1000,
             is_behind ? "true" : "false");
    kineto_say(c, "poll", more);
    if (got > 0)
        kineto_take(c, text);
}

static void swap_sockets(struct kineto_client *c)
{
    int fd = c->fd;

    c->fd = c->other_fd;
    c->other_fd = fd;
}

static void introduce(struct kineto_client *c)
{
    char bytes[KINETO_BYTES_MAX], answer[64], more[64];
    size_t n = kineto_context(bytes, c->o.number, getpid(), c->o.job);
    int32_t count = -1;

    if (kineto_send(c, bytes, n) && kineto_receive(c, answer, sizeof(answer)) == 4)
        memcpy(&count, answer, 4);
    snprintf(more, sizeof(more), ",\"count\":%d", count);
    kineto_say(c, "context", more);
}

static bool is_over(const struct kineto_client *c)
{
    return c->o.run_ms > 0 && kineto_now_ms() - c->started_ms >= c->o.run_ms;
}

int kineto_client_run(const struct kineto_client_options *options)
{
    struct kineto_client c = {.o = *options, .iteration = -1};
    unsigned interval_ms = c.o.interval_ms == 0 ? 5000 : c.o.interval_ms;
    int32_t pids[11], n_pids = ancestors(pids);

    c.o.name = c.o.name == NULL ? "dynolog" : c.o.name;
    c.o.trace_dir = c.o.trace_dir == NULL ? "/tmp" : c.o.trace_dir;
    c.iteration = c.o.step_ms > 0 ? 0 : -1;
    c.started_ms = kineto_now_ms();
    pthread_mutex_init(&c.lock, NULL);
    if (c.o.has_two_sockets) {
        if (!kineto_socket_open(&c))
            return 1;
        swap_sockets(&c);
    }
    if (!kineto_socket_open(&c))
        return 1;
    usleep(c.o.first_ms * 1000);
    if (c.o.sends_context)
        introduce(&c);
    for (int64_t next_ms = kineto_now_ms(); !is_over(&c); next_ms += interval_ms) {
        int64_t left_ms;

        ask(&c, pids, n_pids);
        if (c.o.has_two_sockets)
            swap_sockets(&c);
        while ((left_ms = next_ms + interval_ms - kineto_now_ms()) > 0 && !is_over(&c))
            usleep((unsigned)(left_ms < 100 ? left_ms : 100) * 1000);
    }
    c.is_over = true;
    if (c.has_thread)
        pthread_join(c.profiler, NULL);
    close(c.fd);
    return 0;
}
