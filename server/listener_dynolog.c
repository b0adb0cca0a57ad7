/*
 * listener_dynolog.c - an int32 of the machine's byte order says how long a message is,
 * in both directions; then it comes. One message a connection.
 *
 *   accept --> read 4 bytes --> read the message --> answer --> write --> close
 *
 * All of it without blocking but the answer, which takes a lock and a write to the
 * store: dynolog itself answers one at a time, too. Places are few and connections that
 * take too long lose theirs, so that nobody can keep others out for long.
 */
#include "server/listener_dynolog.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "api/dynolog.h"
#include "base/buf.h"
#include "base/err.h"
#include "server/app.h"
#include "server/clock.h"
#include "server/listen.h"
#include "server/waiters.h"

#define HEAD_BYTES sizeof(int32_t)
#define EVENTS 16
#define WAIT_NS (UINT64_C(1000000000) * TP_DYNOLOG_SECONDS)
#define PEER_BYTES 64

/* A connection; fd -1 = a free place. */
struct place {
    int fd;
    uint64_t deadline_ns;
    char head[HEAD_BYTES];
    char *message;        /* of `size` bytes once the head is there */
    size_t size, got;     /* got counts the head, too */
    struct tp_buf answer; /* with its head */
    size_t sent;
    char peer[PEER_BYTES];
};

struct tp_dynolog {
    struct tp_app *app;
    struct tp_listeners listeners;
    int epoll_fd, wake_fd;
    pthread_t thread;
    bool has_thread;
    _Atomic bool is_stopping;
    struct place places[TP_DYNOLOG_CONNECTIONS_MAX];
};

static void close_place(struct place *p)
{
    if (p->fd >= 0)
        close(p->fd);
    free(p->message);
    tp_buf_fini(&p->answer);
    memset(p, 0, sizeof(*p));
    p->fd = -1;
}

static void audit(struct tp_dynolog *d, const struct place *p,
                  const struct tp_dynolog_outcome *o)
{
    struct tp_log *log = &d->app->log;
    bool is_fault = o->fault != TP_FAULT_NONE;
    char status[16];

    if (o->action == NULL || log->level < TP_LOG_INFO ||
        (is_fault && !tp_log_may_repeat(log)))
        return;
    snprintf(status, sizeof(status), "%d",
             is_fault                 ? tp_status_http(o->fault)
             : o->trace_id[0] != '\0' ? 201
                                      : 200);
    tp_log(log, TP_LOG_INFO, "audit", "peer", p->peer, "action", o->action, "subject",
           o->trace_id[0] == '\0' ? NULL : o->trace_id, "status", status, "problem",
           is_fault ? tp_status_name(o->fault) : NULL, NULL);
}

/* Make the answer. Returns whether there is one to send. */
static bool answer(struct tp_dynolog *d, struct place *p)
{
    struct tp_dynolog_outcome outcome;
    int32_t head = 0;
    struct tp_err err;
    int rc = tp_buf_append(&p->answer, &head, HEAD_BYTES, &err);

    if (rc != TP_OK)
        return false;
    rc = tp_dynolog_answer(&d->app->service, tp_clock_now(),
                           (struct tp_str){p->message, p->size}, &p->answer, &outcome,
                           &err);
    audit(d, p, &outcome);
    if (outcome.trace_id[0] != '\0')
        tp_waiters_poke(d->app->waiters);
    if (rc != TP_OK || p->answer.len == HEAD_BYTES || p->answer.len > INT32_MAX)
        return false;
    head = (int32_t)(p->answer.len - HEAD_BYTES);
    memcpy(p->answer.data, &head, HEAD_BYTES);
    p->deadline_ns = tp_clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
    return true;
}

/* The head is there: make room for what it announces, if that is allowed. */
static bool begin_message(struct place *p)
{
    int32_t size;

    memcpy(&size, p->head, HEAD_BYTES);
    if (size <= 0 || size > TP_DYNOLOG_MESSAGE_MAX_BYTES)
        return false;
    p->size = (size_t)size;
    p->message = malloc(p->size);
    return p->message != NULL;
}

/* Read what is there. Returns false when the connection is to be closed. */
static bool read_some(struct place *p)
{
    while (p->message == NULL || p->got < HEAD_BYTES + p->size) {
        bool is_head = p->got < HEAD_BYTES;
        char *to = is_head ? p->head + p->got : p->message + (p->got - HEAD_BYTES);
        size_t left = (is_head ? HEAD_BYTES : HEAD_BYTES + p->size) - p->got;
        ssize_t n = recv(p->fd, to, left, MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 && errno == EAGAIN;
        p->got += (size_t)n;
        if (is_head && p->got == HEAD_BYTES && !begin_message(p))
            return false;
    }
    return true;
}

/* Write what can be. Returns false when the connection is to be closed: all of it is
 * written, or it cannot be. */
static bool write_some(struct tp_dynolog *d, struct place *p)
{
    struct epoll_event ev = {.events = EPOLLOUT, .data.u32 = (uint32_t)(p - d->places)};

    while (p->sent < p->answer.len) {
        ssize_t n = send(p->fd, p->answer.data + p->sent, p->answer.len - p->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return epoll_ctl(d->epoll_fd, EPOLL_CTL_MOD, p->fd, &ev) == 0;
        if (n < 0)
            return false;
        p->sent += (size_t)n;
    }
    shutdown(p->fd, SHUT_WR);
    return false;
}

static void serve(struct tp_dynolog *d, struct place *p)
{
    bool stays;

    if (p->fd < 0)
        return; /* closed by an event before this one */
    if (p->answer.len == 0) {
        stays = read_some(p);
        if (stays && p->message != NULL && p->got == HEAD_BYTES + p->size)
            stays = answer(d, p) && write_some(d, p);
    } else {
        stays = write_some(d, p);
    }
    if (!stays)
        close_place(p);
}

static void name_peer(const struct sockaddr_storage *from, char *out)
{
    const void *addr = from;

    snprintf(out, PEER_BYTES, "unknown");
    if (from->ss_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)addr)->sin_addr, out,
                  PEER_BYTES);
    else if (from->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)addr)->sin6_addr, out,
                  PEER_BYTES);
}

static struct place *free_place(struct tp_dynolog *d)
{
    for (size_t i = 0; i < TP_DYNOLOG_CONNECTIONS_MAX; i++) {
        if (d->places[i].fd < 0)
            return &d->places[i];
    }
    return NULL;
}

/* Take one connection; without a place for it, it is closed. */
static void take(struct tp_dynolog *d, int listener)
{
    struct sockaddr_storage from = {0};
    socklen_t len = sizeof(from);
    int fd =
        accept4(listener, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct place *p = fd < 0 ? NULL : free_place(d);
    struct epoll_event ev = {.events = EPOLLIN};

    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); /* it stays there */
    if (fd < 0)
        return;
    if (p == NULL) {
        close(fd);
        return;
    }
    p->fd = fd;
    p->deadline_ns = tp_clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
    name_peer(&from, p->peer);
    ev.data.u32 = (uint32_t)(p - d->places);
    if (epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0)
        close_place(p);
}

/* Close what is late. Returns how long the next one has, in ms; -1 = there is none. */
static int sweep(struct tp_dynolog *d)
{
    uint64_t now_ns = tp_clock_ns(CLOCK_MONOTONIC), next_ns = UINT64_MAX;

    for (size_t i = 0; i < TP_DYNOLOG_CONNECTIONS_MAX; i++) {
        struct place *p = &d->places[i];

        if (p->fd >= 0 && p->deadline_ns <= now_ns)
            close_place(p);
        if (p->fd >= 0 && p->deadline_ns < next_ns)
            next_ns = p->deadline_ns;
    }
    return next_ns == UINT64_MAX ? -1 : (int)((next_ns - now_ns) / 1000000 + 1);
}

/* Listeners are known by numbers behind those of the places. */
static int listener_fd(const struct tp_dynolog *d, uint32_t number)
{
    size_t i = number - TP_DYNOLOG_CONNECTIONS_MAX;

    for (size_t k = 0; k < d->listeners.n; k++) {
        if (i < d->listeners.items[k].n_fds)
            return d->listeners.items[k].fds[i];
        i -= d->listeners.items[k].n_fds;
    }
    return -1;
}

static void *run(void *arg)
{
    struct tp_dynolog *d = arg;
    struct epoll_event events[EVENTS];

    while (!d->is_stopping) {
        int n = epoll_wait(d->epoll_fd, events, EVENTS, sweep(d));

        for (int i = 0; i < n && !d->is_stopping; i++) {
            uint32_t number = events[i].data.u32;

            if (number < TP_DYNOLOG_CONNECTIONS_MAX)
                serve(d, &d->places[number]);
            else if (number != UINT32_MAX)
                take(d, listener_fd(d, number));
        }
    }
    return NULL;
}

static int watch(struct tp_dynolog *d, int fd, uint32_t number)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = number};

    return epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

/* Make the set that the thread waits on. Returns 0, or -1 with errno. */
static int open_set(struct tp_dynolog *d)
{
    uint32_t number = TP_DYNOLOG_CONNECTIONS_MAX;

    d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->epoll_fd < 0 || d->wake_fd < 0 || watch(d, d->wake_fd, UINT32_MAX) != 0)
        return -1;
    for (int fd; (fd = listener_fd(d, number)) >= 0; number++) {
        if (watch(d, fd, number) != 0)
            return -1;
    }
    return 0;
}

int tp_dynolog_start(struct tp_app *app, struct tp_dynolog **out, struct tp_err *err)
{
    const char *address = app->config->dynolog_listen;
    struct tp_dynolog *d;
    int rc;

    *out = NULL;
    if (*address == '\0')
        return TP_OK;
    d = calloc(1, sizeof(*d));
    if (d == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the port of dynolog");
    d->app = app;
    d->epoll_fd = d->wake_fd = -1;
    for (size_t i = 0; i < TP_DYNOLOG_CONNECTIONS_MAX; i++)
        d->places[i].fd = -1;
    rc = tp_listen_add(&d->listeners, address, 1, err);
    if (rc == TP_OK &&
        (open_set(d) != 0 || (errno = pthread_create(&d->thread, NULL, run, d)) != 0))
        rc = tp_fail(err, TP_EIO, "cannot serve '%.100s': %m", address);
    if (rc != TP_OK) {
        tp_dynolog_stop(d);
        return tp_fail_prefix(err, "dynolog-listen");
    }
    d->has_thread = true;
    for (size_t i = 0; i < d->listeners.n; i++)
        tp_log(&app->log, TP_LOG_INFO, "dynolog-listening", "on",
               d->listeners.items[i].text, NULL);
    *out = d;
    return TP_OK;
}

void tp_dynolog_stop(struct tp_dynolog *d)
{
    if (d == NULL)
        return;
    d->is_stopping = true;
    if (d->has_thread) {
        /* The counter cannot be full: it is written once. */
        (void)!write(d->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
        pthread_join(d->thread, NULL);
    }
    for (size_t i = 0; i < TP_DYNOLOG_CONNECTIONS_MAX; i++)
        close_place(&d->places[i]);
    tp_listen_close(&d->listeners);
    if (d->epoll_fd >= 0)
        close(d->epoll_fd);
    if (d->wake_fd >= 0)
        close(d->wake_fd);
    free(d);
}
