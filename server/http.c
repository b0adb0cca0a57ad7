/*
 * http.c - daemons, connections, and the watch over slow headers.
 *
 * A pool of threads behind one socket is unbalanced: a burst of connections often lands
 * on one thread. So each thread is a daemon with a listening socket of its own on the
 * same port, and the kernel spreads connections. A unix socket cannot be shared that
 * way and has one daemon.
 *
 * The list of connections is looked through a few times a second for what the library
 * does not notice:
 *
 * - A client that sends a byte of a header now and then never is silent, which is the
 * only
 *   timeout that there is. A connection that has been without a request for longer than
 *   silence may last is shut.
 * - Events are edge-triggered, and a short read counts as "nothing left": the end of a
 *   body that came together with the end of the connection is missed. A connection that
 *   owes us a body and is at its end is shut.
 * - A connection that broke off is taken out of the lists when its thread wakes up the
 *   next time, which on a quiet service may be never. To "resume" a connection that is
 *   not suspended wakes the thread up and does nothing else.
 */
#include "server/http.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/limits.h"
#include "server/app.h"
#include "server/clock.h"
#include "server/http_conn.h"
#include "server/peers.h"

#define HEADER_GRACE_S 10
#define SWEEP_NS 250000000
#define CONNECTION_SLACK 64 /* of the hard limit, so that we can answer 503 ourselves */

struct daemon_slot {
    struct tp_http *http;
    struct MHD_Daemon *daemon;
    bool is_unix;
};

struct tp_http {
    struct tp_app *app;
    struct daemon_slot *daemons;
    size_t n_daemons;
    pthread_t sweeper;
    bool has_sweeper;

    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t wake;
    struct tp_conn *first;
    bool is_stopping;
};

size_t tp_http_threads(const struct tp_app *app)
{
    long n = (long)app->config->http_threads;

    if (n == 0)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 64 ? 64 : (size_t)n;
}

static void name_peer(const struct tp_conn *c, char *out, size_t n)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *addr = info == NULL ? NULL : info->client_addr;
    struct ucred cred;
    socklen_t len = sizeof(cred);

    snprintf(out, n, "unknown");
    if (c->is_unix) {
        if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
            snprintf(out, n, "uid %u", cred.uid);
    } else if (addr != NULL && addr->sa_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)addr)->sin_addr,
                  out, (socklen_t)n);
    } else if (addr != NULL && addr->sa_family == AF_INET6) {
        inet_ntop(AF_INET6,
                  &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr, out,
                  (socklen_t)n);
    }
}

static void link_conn(struct tp_http *http, struct tp_conn *c)
{
    pthread_mutex_lock(&http->lock);
    c->next = http->first;
    if (c->next != NULL)
        c->next->prev = c;
    http->first = c;
    pthread_mutex_unlock(&http->lock);
}

static void unlink_conn(struct tp_http *http, struct tp_conn *c)
{
    pthread_mutex_lock(&http->lock);
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        http->first = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    pthread_mutex_unlock(&http->lock);
}

static struct tp_conn *open_conn(struct daemon_slot *slot, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct tp_app *app = slot->http->app;
    struct tp_conn *c = calloc(1, sizeof(*c));
    char name[TP_PEER_NAME_BYTES];
    bool may_stay = false;

    if (c == NULL)
        return NULL;
    c->app = app;
    c->mhd = mhd;
    c->is_unix = slot->is_unix;
    c->fd = info == NULL ? -1 : info->connect_fd;
    c->idle_since_ns = tp_clock_ns(CLOCK_MONOTONIC);
    name_peer(c, name, sizeof(name));
    c->peer = tp_peers_enter(app->peers, name, &may_stay, &c->is_over_peer_limit);
    c->is_over_limit = !may_stay;
    if (!may_stay)
        atomic_fetch_add(&app->metrics.refused, 1);
    atomic_fetch_add(&app->metrics.connections, 1);
    link_conn(slot->http, c);
    return c;
}

static void close_conn(struct daemon_slot *slot, struct tp_conn *c)
{
    if (c == NULL)
        return;
    unlink_conn(slot->http, c);
    atomic_fetch_sub(&c->app->metrics.connections, 1);
    tp_peers_leave(c->app->peers, c->peer);
    tp_call_fini(&c->call);
    tp_conn_forget_reply(c);
    tp_buf_fini(&c->target);
    free(c);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct daemon_slot *slot = cls;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = open_conn(slot, mhd);
    } else {
        close_conn(slot, *socket_context);
        *socket_context = NULL;
    }
}

static struct tp_conn *conn_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info == NULL ? NULL : info->socket_context;
}

static void *on_target(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct tp_conn *c = conn_of(mhd);

    (void)cls;
    if (c != NULL)
        tp_conn_target(c, uri);
    return c;
}

static enum MHD_Result on_step(void *cls, struct MHD_Connection *mhd, const char *url,
                               const char *method, const char *version,
                               const char *data, size_t *data_bytes, void **con_cls)
{
    (void)cls;
    (void)mhd;
    (void)url;
    if (*con_cls == NULL)
        return MHD_NO; /* there was no memory for the connection */
    return tp_conn_step(*con_cls, method, version, data, data_bytes);
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
                         enum MHD_RequestTerminationCode how)
{
    (void)cls;
    (void)mhd;
    if (*con_cls != NULL)
        tp_conn_ended(*con_cls, how);
    *con_cls = NULL;
}

/* The address is taken apart by api/call.c, which wants it as it was sent. */
static size_t leave_escaped(void *cls, struct MHD_Connection *mhd, char *s)
{
    (void)cls;
    (void)mhd;
    return strlen(s);
}

/* What the library has to say is about clients that misbehave: only on request. */
static void on_library_log(void *cls, const char *format, va_list args)
{
    struct tp_app *app = cls;
    char text[512];
    size_t n;

    if (app->log.level < TP_LOG_DEBUG || !tp_log_may_repeat(&app->log))
        return;
    vsnprintf(text, sizeof(text), format, args);
    n = strlen(text);
    if (n > 0 && text[n - 1] == '\n')
        text[n - 1] = '\0';
    tp_log(&app->log, TP_LOG_DEBUG, "http", "message", text, NULL);
}

/* Headers up to their limit must fit, so that it is we who refuse longer ones. */
static size_t buffer_bytes(const struct tp_config *config)
{
    uint64_t headers = config->limits.header_bytes;

    return (size_t)(config->http_buffer_bytes > headers ? config->http_buffer_bytes
                                                        : headers + 1024);
}

static int start_daemon(struct tp_http *http, int fd, bool is_unix, struct tp_err *err)
{
    struct tp_app *app = http->app;
    struct daemon_slot *slot = &http->daemons[http->n_daemons];
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_ERROR_LOG;

    slot->http = http;
    slot->is_unix = is_unix;
    slot->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_step, slot, MHD_OPTION_EXTERNAL_LOGGER, on_library_log,
        app, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        slot, MHD_OPTION_NOTIFY_CONNECTION, on_connection, slot,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, slot, MHD_OPTION_UNESCAPE_CALLBACK,
        leave_escaped, NULL, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)app->config->limits.connections + CONNECTION_SLACK,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)app->config->idle_timeout_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, buffer_bytes(app->config),
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1,
        MHD_OPTION_END);
    if (slot->daemon == NULL)
        return tp_fail(err, TP_EIO, "cannot start an HTTP thread");
    http->n_daemons++;
    return TP_OK;
}

/* Whether the client has closed its side and everything that it sent was read. */
static bool is_at_end(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static bool is_too_slow(const struct tp_http *http, struct tp_conn *c, uint64_t now_ns)
{
    uint64_t idle_s = http->app->config->idle_timeout_s;
    uint64_t since = atomic_load_explicit(&c->idle_since_ns, memory_order_relaxed);

    return idle_s != 0 && since != 0 && now_ns > since &&
           now_ns - since > (idle_s + HEADER_GRACE_S) * 1000000000u;
}

/* See the file comment; the lock is held, so no connection is closed meanwhile. */
static void sweep(struct tp_http *http, uint64_t now_ns)
{
    for (struct tp_conn *c = http->first; c != NULL; c = c->next) {
        enum tp_conn_step step = c->step;
        bool owes_us = step == TP_CONN_HEADERS || step == TP_CONN_BODY ||
                       step == TP_CONN_IDLE;

        if (c->needs_kick)
            MHD_resume_connection(c->mhd);
        else if (is_too_slow(http, c, now_ns) || (owes_us && is_at_end(c->fd)))
            shutdown(c->fd, SHUT_RDWR);
    }
}

static void *run_sweeper(void *arg)
{
    struct tp_http *http = arg;

    pthread_mutex_lock(&http->lock);
    while (!http->is_stopping) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += SWEEP_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&http->wake, &http->lock, &until);
        sweep(http, tp_clock_ns(CLOCK_MONOTONIC));
    }
    pthread_mutex_unlock(&http->lock);
    return NULL;
}

static int start_daemons(struct tp_http *http, struct tp_err *err)
{
    struct tp_listeners *set = &http->app->listeners;

    for (size_t i = 0; i < set->n; i++) {
        for (size_t k = 0; k < set->items[i].n_fds; k++) {
            int rc =
                start_daemon(http, set->items[i].fds[k], set->items[i].is_unix, err);

            if (rc != TP_OK)
                return rc;
            set->items[i].fds[k] = -1; /* the daemon closes it */
        }
    }
    return TP_OK;
}

int tp_http_start(struct tp_app *app, struct tp_http **out, struct tp_err *err)
{
    struct tp_http *http = calloc(1, sizeof(*http));
    size_t n = 0;
    int rc;

    if (http == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the HTTP threads");
    http->app = app;
    pthread_mutex_init(&http->lock, NULL);
    pthread_cond_init(&http->wake, NULL);
    for (size_t i = 0; i < app->listeners.n; i++)
        n += app->listeners.items[i].n_fds;
    http->daemons = calloc(n, sizeof(*http->daemons));
    if (http->daemons == NULL)
        rc = tp_fail(err, TP_ENOMEM, "no memory for the HTTP threads");
    else
        rc = start_daemons(http, err);
    if (rc == TP_OK && pthread_create(&http->sweeper, NULL, run_sweeper, http) != 0)
        rc = tp_fail(err, TP_EIO, "cannot start the thread that watches connections");
    else if (rc == TP_OK)
        http->has_sweeper = true;
    if (rc != TP_OK) {
        tp_http_stop(http);
        return rc;
    }
    *out = http;
    return TP_OK;
}

void tp_http_quiesce(struct tp_http *http)
{
    for (size_t i = 0; i < http->n_daemons; i++) {
        MHD_socket fd = MHD_quiesce_daemon(http->daemons[i].daemon);

        if (fd != MHD_INVALID_SOCKET)
            close(fd);
    }
}

bool tp_http_is_idle(struct tp_http *http)
{
    bool is_idle = true;

    pthread_mutex_lock(&http->lock);
    for (struct tp_conn *c = http->first; c != NULL && is_idle; c = c->next)
        is_idle = atomic_load_explicit(&c->idle_since_ns, memory_order_relaxed) != 0;
    pthread_mutex_unlock(&http->lock);
    return is_idle;
}

void tp_http_stop(struct tp_http *http)
{
    if (http == NULL)
        return;
    if (http->has_sweeper) {
        pthread_mutex_lock(&http->lock);
        http->is_stopping = true;
        pthread_cond_signal(&http->wake);
        pthread_mutex_unlock(&http->lock);
        pthread_join(http->sweeper, NULL);
    }
    for (size_t i = 0; i < http->n_daemons; i++)
        MHD_stop_daemon(http->daemons[i].daemon);
    pthread_cond_destroy(&http->wake);
    pthread_mutex_destroy(&http->lock);
    free(http->daemons);
    free(http);
}
