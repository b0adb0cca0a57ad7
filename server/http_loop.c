/*
 * http_loop.c - the thread, the callbacks of the library, and the look at connections.
 *
 * The library's epoll mode is edge-triggered, and a read that did not fill the buffer
 * counts as "nothing is left". When the last bytes of a client come together with its
 * end, the edge is spent on the bytes, and the end is never read: the connection stays
 * until the timeout. Level-triggered poll has no such gap but costs time for each open
 * connection at each wake-up (docs/decisions/003-event-loop.md). So the thread is ours:
 * it waits for the library's epoll set and for a wake-up of ours, lets the library run,
 * and looks through its connections every LOOK_MS:
 *
 * - One that owes us bytes while its client has closed and all was read is shut. That
 *   is an edge again (a hang-up), and the library closes it in the next turn.
 * - A client that sends a byte of a header now and then never is silent, which is the
 *   only timeout that the library has. A connection that has been without a request for
 *   longer than silence may last is shut as well.
 *
 * As the thread that runs the library is the one that looks, no lock is needed, and no
 * descriptor can change its meaning meanwhile. In this mode the library cannot wake up
 * anybody itself: whoever resumes a connection wakes the thread, by an eventfd.
 */
#include "server/http_loop.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "core/limits.h"
#include "server/app.h"
#include "server/clock.h"
#include "server/http_conn.h"
#include "server/peers.h"
#include "server/waiters.h"

#define HEADER_GRACE_S 10
#define LOOK_MS 250
#define ENDING_MS 10        /* once no more connections are accepted */
#define CONNECTION_SLACK 64 /* of the hard limit, so that we can answer 503 ourselves */

struct tp_http_loop {
    struct tp_app *app;
    struct MHD_Daemon *daemon;
    int epoll_fd; /* the library's */
    int wake_fd;
    bool is_unix;
    pthread_t thread;
    struct tp_conn *first; /* of the thread alone, like the next */
    uint64_t n_steps;      /* calls of the handler, to see whether a run did anything */

    _Atomic bool is_woken;         /* wake_fd is written */
    _Atomic bool is_closed_to_new; /* asked for by quiesce */
    _Atomic bool is_stopping;
    _Atomic bool is_idle; /* no request was running at the last look since then */
};

static void name_peer(struct tp_conn *c, char *out, size_t n)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *addr = info == NULL ? NULL : info->client_addr;
    struct ucred cred;
    socklen_t len = sizeof(cred);

    snprintf(out, n, "unknown");
    if (c->is_unix) {
        if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
            return;
        snprintf(out, n, "uid %u", cred.uid);
        c->peer_pid = cred.pid;
    } else if (addr != NULL && addr->sa_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)addr)->sin_addr,
                  out, (socklen_t)n);
    } else if (addr != NULL && addr->sa_family == AF_INET6) {
        inet_ntop(AF_INET6,
                  &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr, out,
                  (socklen_t)n);
    }
}

static void link_conn(struct tp_http_loop *loop, struct tp_conn *c)
{
    c->next = loop->first;
    if (c->next != NULL)
        c->next->prev = c;
    loop->first = c;
}

static void unlink_conn(struct tp_http_loop *loop, struct tp_conn *c)
{
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        loop->first = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
}

static struct tp_conn *open_conn(struct tp_http_loop *loop, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct tp_app *app = loop->app;
    struct tp_conn *c = calloc(1, sizeof(*c));
    char name[TP_PEER_NAME_BYTES];
    bool may_stay = false;

    if (c == NULL)
        return NULL;
    c->app = app;
    c->mhd = mhd;
    c->loop = loop;
    c->is_unix = loop->is_unix;
    c->fd = info == NULL ? -1 : info->connect_fd;
    c->idle_since_ns = tp_clock_ns(CLOCK_MONOTONIC);
    name_peer(c, name, sizeof(name));
    c->peer = tp_peers_enter(app->peers, name, &may_stay, &c->is_over_peer_limit);
    c->is_over_limit = !may_stay;
    if (!may_stay)
        atomic_fetch_add(&app->metrics.refused, 1);
    atomic_fetch_add(&app->metrics.connections, 1);
    link_conn(loop, c);
    return c;
}

static void close_conn(struct tp_http_loop *loop, struct tp_conn *c)
{
    if (c == NULL)
        return;
    unlink_conn(loop, c);
    tp_waiters_forget(c->app->waiters, c->fd);
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
    struct tp_http_loop *loop = cls;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = open_conn(loop, mhd);
    } else {
        close_conn(loop, *socket_context);
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
    struct tp_http_loop *loop = cls;

    (void)mhd;
    (void)url;
    loop->n_steps++;
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
__attribute__((format(printf, 2, 0))) static void on_library_log(void *cls,
                                                                 const char *format,
                                                                 va_list args)
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

/* Not strict: then it is http_guard.c that refuses a missing Host and spaces in the
 * address, with a problem and not with a page or a silent end. */
static int start_daemon(struct tp_http_loop *loop, int fd, struct tp_err *err)
{
    struct tp_app *app = loop->app;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;

    loop->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_step, loop, MHD_OPTION_EXTERNAL_LOGGER, on_library_log,
        app, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        loop, MHD_OPTION_NOTIFY_CONNECTION, on_connection, loop,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, loop, MHD_OPTION_UNESCAPE_CALLBACK,
        leave_escaped, NULL, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)app->config->limits.connections + CONNECTION_SLACK,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)app->config->idle_timeout_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, buffer_bytes(app->config),
        MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_END);
    if (loop->daemon == NULL)
        return tp_fail(err, TP_EIO, "cannot start an HTTP thread");
    loop->epoll_fd =
        MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    return TP_OK;
}

/* Whether a connection has waited too long for a whole header. */
static bool is_too_slow(const struct tp_conn *c, uint64_t now_ns)
{
    uint64_t idle_s = c->app->config->idle_timeout_s;
    uint64_t since = c->idle_since_ns;

    return idle_s != 0 && since != 0 && now_ns > since &&
           now_ns - since > (idle_s + HEADER_GRACE_S) * 1000000000u;
}

/* See the file comment. */
static void look_through(struct tp_http_loop *loop, uint64_t now_ns)
{
    bool is_idle = true;

    for (struct tp_conn *c = loop->first; c != NULL; c = c->next) {
        bool owes_us = c->step == TP_CONN_HEADERS || c->step == TP_CONN_BODY ||
                       c->step == TP_CONN_IDLE;

        if (c->step != TP_CONN_IDLE)
            is_idle = false;
        if (owes_us && (is_too_slow(c, now_ns) || tp_conn_is_at_end(c)))
            shutdown(c->fd, SHUT_RDWR);
    }
    atomic_store(&loop->is_idle, is_idle);
}

/* Give the listening socket back from the library and close it. */
static void close_to_new(struct tp_http_loop *loop)
{
    MHD_socket fd = MHD_quiesce_daemon(loop->daemon);

    if (fd != MHD_INVALID_SOCKET)
        close(fd);
}

/* A signal would end the process where a write to a closed socket should only fail. */
static void block_sigpipe(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Sleep until something happens, at most so long. */
static void wait_for_events(struct tp_http_loop *loop, int most_ms)
{
    struct pollfd fds[2] = {{.fd = loop->epoll_fd, .events = POLLIN},
                            {.fd = loop->wake_fd, .events = POLLIN}};
    MHD_UNSIGNED_LONG_LONG wanted_ms;
    uint64_t ignored;

    if (MHD_get_timeout(loop->daemon, &wanted_ms) == MHD_YES &&
        wanted_ms < (unsigned)most_ms)
        most_ms = (int)wanted_ms;
    if (most_ms == 0 || poll(fds, 2, most_ms) <= 0 || fds[1].revents == 0)
        return;
    /* Read first: who wakes between the two needs no byte, as the library runs next. */
    if (read(loop->wake_fd, &ignored, sizeof(ignored)) == sizeof(ignored))
        atomic_store(&loop->is_woken, false);
}

static void *run(void *arg)
{
    struct tp_http_loop *loop = arg;
    uint64_t next_ns = 0;
    uint64_t n_steps = 0;
    bool is_ending = false;

    block_sigpipe();
    while (!atomic_load(&loop->is_stopping)) {
        uint64_t now_ns;

        /* After a run that did something the next one asks the library's epoll set
         * anyway: a poll before it would be a system call for nothing. */
        if (is_ending || n_steps == loop->n_steps)
            wait_for_events(loop, is_ending ? ENDING_MS : LOOK_MS);
        n_steps = loop->n_steps;
        if (!is_ending && atomic_load(&loop->is_closed_to_new)) {
            is_ending = true;
            close_to_new(loop);
        }
        MHD_run(loop->daemon);
        now_ns = tp_clock_ns(CLOCK_MONOTONIC);
        if (now_ns >= next_ns || is_ending) {
            look_through(loop, now_ns);
            next_ns = now_ns + LOOK_MS * UINT64_C(1000000);
        }
    }
    return NULL;
}

/* Undo what start did; the thread does not run, the daemon has no socket any more. */
static void free_loop(struct tp_http_loop *loop)
{
    if (loop->daemon != NULL)
        MHD_stop_daemon(loop->daemon);
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    free(loop);
}

int tp_http_loop_start(struct tp_app *app, int fd, bool is_unix,
                       struct tp_http_loop **out, struct tp_err *err)
{
    struct tp_http_loop *loop = calloc(1, sizeof(*loop));
    int rc;

    if (loop == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for an HTTP thread");
    loop->app = app;
    loop->is_unix = is_unix;
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0)
        rc = tp_fail(err, TP_EIO, "cannot make an eventfd: %m");
    else
        rc = start_daemon(loop, fd, err);
    if (rc == TP_OK && pthread_create(&loop->thread, NULL, run, loop) != 0) {
        MHD_quiesce_daemon(loop->daemon); /* the caller keeps the socket */
        rc = tp_fail(err, TP_EIO, "cannot start an HTTP thread");
    }
    if (rc != TP_OK) {
        free_loop(loop);
        return rc;
    }
    *out = loop;
    return TP_OK;
}

void tp_http_loop_wake(struct tp_http_loop *loop)
{
    const uint64_t one = 1;

    if (!atomic_exchange(&loop->is_woken, true) &&
        write(loop->wake_fd, &one, sizeof(one)) < 0)
        return; /* it is full, so the thread will wake up */
}

void tp_http_loop_quiesce(struct tp_http_loop *loop)
{
    atomic_store(&loop->is_closed_to_new, true);
    tp_http_loop_wake(loop);
}

bool tp_http_loop_is_idle(struct tp_http_loop *loop)
{
    return atomic_load(&loop->is_idle);
}

void tp_http_loop_stop(struct tp_http_loop *loop)
{
    if (loop == NULL)
        return;
    atomic_store(&loop->is_stopping, true);
    tp_http_loop_wake(loop);
    pthread_join(loop->thread, NULL);
    free_loop(loop);
}
