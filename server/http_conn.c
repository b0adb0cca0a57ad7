/*
 * http_conn.c - the steps of a request.
 *
 *   IDLE --target--> HEADERS --first call--> BODY --end of body--> ANSWERED --> IDLE
 *                        |                    |  \--> SLOW ----\      ^
 *                        |                    \-----> WAITING --+-----+
 *                        \--refused early-----------------------------/
 *
 * Two traps of the library shape this: an answer (or a suspension) in the first call of
 * a request closes the connection afterwards, so that is done only where closing is
 * meant; and during the body no answer can be queued at all, so a refusal waits for the
 * end of the body, which is read and thrown away.
 */
#include "server/http_conn.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "api/problem.h"
#include "api/rest.h"
#include "core/limits.h"
#include "server/app.h"
#include "server/clock.h"
#include "server/http_loop.h"
#include "server/peers.h"
#include "server/waiters.h"
#include "server/workers.h"

/* A refused body up to this length is read to its end before the answer. */
#define POLITE_BYTES (64u << 20)

void tp_conn_target(struct tp_conn *c, const char *target)
{
    tp_call_init(&c->call, &c->app->service);
    c->target.len = 0;
    c->step = TP_CONN_HEADERS;
    c->is_gone = false;
    c->is_broken_off = false;
    c->is_whole = false;
    c->sent_bytes = 0;
    c->begun_ns = tp_clock_ns(CLOCK_MONOTONIC);
    c->idle_since_ns = 0;
    if (tp_buf_append_str(&c->target, target, NULL) != TP_OK)
        c->target.len = 0; /* refused as an empty address */
    c->call.target = (struct tp_str){c->target.data, c->target.len};
    c->call.peer = tp_str_of(c->peer == NULL ? "unknown" : c->peer->name);
    c->call.peer_pid = c->peer_pid;
}

static enum tp_method method_of(const char *method)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "DELETE", "OPTIONS"};

    for (int i = 0; i < TP_METHOD_OTHER; i++)
        if (strcmp(method, names[i]) == 0)
            return (enum tp_method)i;
    return TP_METHOD_OTHER;
}

static bool is_token(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char ch = (unsigned char)s[i];

        if (ch <= 0x20 || ch >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", ch) != NULL)
            return false;
    }
    return n > 0;
}

static bool is_field_value(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] < 0x20 && s[i] != '\t') || s[i] == 0x7f)
            return false;
    return true;
}

/* The request line and headers together are limited; the library's memory is more. */
static bool check_headers(struct tp_conn *c)
{
    uint64_t most = c->app->config->limits.header_bytes;

    if (c->header_bytes + c->target.len <= most)
        return true;
    tp_problem_limit_answer(&c->call, TP_FAULT_HEADERS_TOO_LARGE, "max-header-bytes",
                            most,
                            "the request line and headers have more than %llu bytes",
                            (unsigned long long)most);
    c->call.is_refused = true;
    c->call.must_close = true;
    return false;
}

static enum MHD_Result see_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                  size_t key_size, const char *value, size_t value_size)
{
    struct tp_conn *c = cls;
    int i = tp_header_find((struct tp_str){key, key_size});

    (void)kind;
    c->header_bytes += key_size + value_size + 4; /* ": " and the line's end */
    if (!is_token(key, key_size))
        c->seen.has_odd_name = true;
    if (value != NULL && !is_field_value(value, value_size))
        c->seen.has_odd_value = true;
    /* A value that goes on in the next line: the library then copies the name, and
     * drops the rest of the value. Otherwise the value comes after its name. */
    if (value != NULL && (uintptr_t)value < (uintptr_t)key)
        c->seen.has_odd_value = true;
    if (i >= 0) {
        if (c->seen.count[i] < UINT8_MAX)
            c->seen.count[i]++;
        c->call.headers[i] =
            (struct tp_str){value == NULL ? "" : value, value == NULL ? 0 : value_size};
    }
    return MHD_YES;
}

static void read_length(struct tp_call *call)
{
    struct tp_str s = call->headers[TP_HEADER_CONTENT_LENGTH];
    uint64_t v = 0;

    call->has_content_length = s.len > 0;
    for (size_t i = 0; i < s.len; i++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.ptr[i] - '0'), &v))
            v = UINT64_MAX;
    call->content_length = v;
    call->has_body = v > 0 || call->headers[TP_HEADER_TRANSFER_ENCODING].len > 0;
}

/* Refuse what the limits of the peer do not allow. */
static bool check_peer(struct tp_conn *c)
{
    const struct tp_limits *limits = &c->app->config->limits;

    if (c->is_over_limit && c->is_over_peer_limit) {
        tp_problem_limit_answer(&c->call, TP_FAULT_BUSY, "max-connections-per-peer",
                                limits->connections_per_peer,
                                "too many connections from one place are open");
    } else if (c->is_over_limit) {
        tp_problem_limit_answer(&c->call, TP_FAULT_BUSY, "max-connections",
                                limits->connections, "too many connections are open");
    } else if (c->app->is_stopping) {
        tp_problem_answer(&c->call, TP_FAULT_NOT_READY, "the service stops");
    } else if (!tp_peers_request(c->app->peers, c->peer, c->begun_ns)) {
        tp_problem_limit_answer(&c->call, TP_FAULT_TOO_MANY_REQUESTS,
                                "max-requests-per-s", limits->requests_per_s,
                                "too many requests a second");
    } else {
        return true;
    }
    c->call.must_close = c->call.fault != TP_FAULT_TOO_MANY_REQUESTS;
    tp_call_header(&c->call, "Retry-After", "1");
    c->call.is_refused = true;
    return false;
}

static void see_request(struct tp_conn *c, const char *method, const char *version)
{
    memset(&c->seen, 0, sizeof(c->seen));
    c->header_bytes = 0;
    c->seen.is_http_1_1 = strcmp(version, "HTTP/1.0") != 0; /* or 1.2 and so on */
    c->seen.is_unix = c->is_unix;
    c->call.method = method_of(method);
    c->call.now = tp_clock_now();
    MHD_get_connection_values_n(c->mhd, MHD_HEADER_KIND, see_header, c);
}

/* The first call of a request: everything that the headers tell. */
static enum MHD_Result on_headers(struct tp_conn *c, const char *method,
                                  const char *version)
{
    struct tp_call *call = &c->call;

    see_request(c, method, version);
    c->step = TP_CONN_BODY;
    if (check_headers(c) && tp_http_guard(c->app->config, &c->seen, call)) {
        read_length(call);
        if (check_peer(c))
            tp_rest_begin(call);
    } else {
        return tp_conn_reply(c);
    }
    if (!call->is_refused || !call->has_body)
        return MHD_YES;
    /* Nobody should send a body that is refused: answer now where the client waits for
     * a word, or where there is too much of it. Both close the connection. */
    if (c->seen.count[TP_HEADER_EXPECT] > 0 ||
        (call->has_content_length && call->content_length > POLITE_BYTES)) {
        call->must_close = true;
        return tp_conn_reply(c);
    }
    return MHD_YES;
}

void tp_conn_suspend(void *conn)
{
    struct tp_conn *c = conn;

    MHD_suspend_connection(c->mhd);
}

void tp_conn_resume(void *conn)
{
    struct tp_conn *c = conn;
    struct tp_http_loop *loop = c->loop;

    MHD_resume_connection(c->mhd);
    tp_http_loop_wake(loop);
}

static bool call_is_ready(void *arg, struct tp_now now)
{
    struct tp_conn *c = arg;

    (void)now;
    return c->call.wait.ready(&c->call);
}

/*
 * Send an interim answer (RFC 9110, 15.2) on a connection that is suspended, so that
 * nobody else writes to it. Its client reads and has nothing unread, so the socket has
 * room; where it has not, the connection is of no use any more.
 */
static void send_interim(struct tp_conn *c, struct tp_str value)
{
    static const char head[] = "HTTP/1.1 103 Early Hints\r\nTraceplane-Sync: ";
    static const char end[] = "\r\n\r\n";
    struct iovec parts[] = {
        {.iov_base = (void *)(uintptr_t)head, .iov_len = sizeof(head) - 1},
        {.iov_base = (void *)(uintptr_t)value.ptr, .iov_len = value.len},
        {.iov_base = (void *)(uintptr_t)end, .iov_len = sizeof(end) - 1}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    ssize_t all = (ssize_t)(sizeof(head) - 1 + value.len + sizeof(end) - 1);
    ssize_t n = sendmsg(c->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n > 0 && n < all)
        shutdown(c->fd, SHUT_RDWR);
}

static bool speak(void *arg, struct tp_now now, struct tp_buf *out)
{
    struct tp_conn *c = arg;

    c->call.now = now;
    if (!c->call.wait.ahead(&c->call, out))
        return false;
    if (out->len > 0)
        send_interim(c, (struct tp_str){out->data, out->len});
    return true;
}

static void call_is_gone(void *arg)
{
    struct tp_conn *c = arg;

    c->is_gone = true;
}

bool tp_conn_is_at_end(const struct tp_conn *c)
{
    char byte;

    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Give the answer of a call that would have waited. */
static enum MHD_Result answer_now(struct tp_conn *c)
{
    tp_rest_resume(&c->call);
    return tp_conn_reply(c);
}

/* Hold a call until it is ready. The library gives up a connection that comes back to
 * it and whose client sends no more, though it may still read. */
static enum MHD_Result hold(struct tp_conn *c)
{
    bool can_speak = c->call.wait.ahead != NULL && c->seen.is_http_1_1;
    struct tp_waiter waiter = {.fd = c->fd,
                               .deadline_ns = c->call.wait.deadline_ns,
                               .is_brief = c->call.wait.is_brief,
                               .suspend = tp_conn_suspend,
                               .resume = tp_conn_resume,
                               .ready = call_is_ready,
                               .speak = can_speak ? speak : NULL,
                               .on_gone = call_is_gone,
                               .arg = c};
    struct tp_err err = {0};

    if (waiter.is_brief && tp_conn_is_at_end(c))
        return answer_now(c);
    c->step = TP_CONN_WAITING;
    if (tp_waiters_add(c->app->waiters, &waiter, &err) == TP_OK)
        return MHD_YES;
    if (waiter.is_brief)
        return answer_now(c);
    tp_problem_engine(&c->call, err.code, NULL, &err);
    return tp_conn_reply(c);
}

/* The handler has run: answer or wait. */
static enum MHD_Result after_handler(struct tp_conn *c)
{
    return c->call.reply == TP_REPLY_WAIT ? hold(c) : tp_conn_reply(c);
}

static void run_slow(void *arg)
{
    struct tp_conn *c = arg;

    c->call.now = tp_clock_now();
    tp_rest_finish(&c->call);
    tp_conn_resume(c);
}

static enum MHD_Result on_complete(struct tp_conn *c)
{
    struct tp_call *call = &c->call;

    call->now = tp_clock_now();
    if (call->is_refused || call->route == NULL || !call->route->is_slow) {
        tp_rest_finish(call);
        return after_handler(c);
    }
    c->step = TP_CONN_SLOW;
    tp_conn_suspend(c);
    if (tp_workers_post(c->app->workers, run_slow, c, NULL) != TP_OK) {
        tp_problem_answer(call, TP_FAULT_BUSY, "the service stops or has no memory");
        tp_conn_resume(c);
    }
    return MHD_YES;
}

static enum MHD_Result on_body(struct tp_conn *c, const char *data, size_t *data_bytes)
{
    size_t n = *data_bytes;

    if (n == 0)
        return on_complete(c);
    *data_bytes = 0;
    c->call.now = tp_clock_now();
    return tp_rest_feed(&c->call, data, n) ? MHD_YES : MHD_NO;
}

static enum MHD_Result on_resumed(struct tp_conn *c)
{
    if (c->is_gone)
        return MHD_NO;
    if (c->step == TP_CONN_WAITING) {
        c->call.now = tp_clock_now();
        tp_rest_resume(&c->call);
    }
    return after_handler(c);
}

enum MHD_Result tp_conn_step(struct tp_conn *c, const char *method, const char *version,
                             const char *data, size_t *data_bytes)
{
    switch (c->step) {
    case TP_CONN_HEADERS:
        return on_headers(c, method, version);
    case TP_CONN_BODY:
        return on_body(c, data, data_bytes);
    case TP_CONN_SLOW:
    case TP_CONN_WAITING:
        return on_resumed(c);
    case TP_CONN_ANSWERED: /* the rest of a body that was refused */
        *data_bytes = 0;
        return MHD_YES;
    default:
        return MHD_NO;
    }
}

/*
 * One line for each action that changes what is recorded, refused or not. What the
 * server refused before the routes were asked, such as a page of another origin, is
 * identified now: nobody else needs to know.
 */
static void audit(struct tp_conn *c)
{
    const struct tp_route *route;
    char status[16];

    if (c->app->log.level < TP_LOG_INFO || c->call.is_repeat)
        return;
    if (c->call.route == NULL)
        tp_rest_identify(&c->call);
    route = c->call.route;
    if (route == NULL || !route->is_audited)
        return;
    if (c->call.fault != TP_FAULT_NONE && !tp_log_may_repeat(&c->app->log))
        return;
    snprintf(status, sizeof(status), "%d", c->call.status);
    tp_log(&c->app->log, TP_LOG_INFO, "audit", "peer",
           c->peer == NULL ? "unknown" : c->peer->name, "action", route->operation,
           "subject", c->call.subject[0] == '\0' ? NULL : c->call.subject, "status",
           status, "problem",
           c->call.fault == TP_FAULT_NONE ? NULL : tp_status_name(c->call.fault), NULL);
}

void tp_conn_ended(struct tp_conn *c, enum MHD_RequestTerminationCode how)
{
    uint64_t now_ns = tp_clock_ns(CLOCK_MONOTONIC);

    if (how != MHD_REQUEST_TERMINATED_COMPLETED_OK ? !c->is_whole : c->is_broken_off)
        atomic_fetch_add_explicit(&c->app->metrics.broken_off, 1, memory_order_relaxed);
    if (c->step == TP_CONN_IDLE)
        return;
    /* What was done is noted, though nobody is there to hear of it. */
    if (c->step == TP_CONN_WAITING && c->call.wait.is_brief) {
        c->call.now = tp_clock_now();
        tp_rest_resume(&c->call);
        c->step = TP_CONN_ANSWERED;
    }
    if (c->step == TP_CONN_ANSWERED) {
        tp_metrics_request(&c->app->metrics, c->call.route, c->call.status,
                           now_ns - c->begun_ns, c->call.body_bytes, c->sent_bytes);
        audit(c);
    }
    tp_call_fini(&c->call);
    c->step = TP_CONN_IDLE;
    c->idle_since_ns = now_ns;
}
