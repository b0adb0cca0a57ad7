/*
 * http_conn.h - one connection and the request on it, between libmicrohttpd and api/.
 *
 * One connection has one request at a time, so its state is part of the connection and
 * costs no allocation a request. A connection belongs to the thread of its daemon,
 * except while it is suspended: then to whoever will resume it.
 */
#ifndef TP_SERVER_HTTP_CONN_H
#define TP_SERVER_HTTP_CONN_H

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "api/call.h"
#include "server/http_guard.h"

struct tp_app;
struct tp_http_loop;
struct tp_peer;

/* Where a request stands. */
enum tp_conn_step {
    TP_CONN_IDLE,     /* no request */
    TP_CONN_HEADERS,  /* the request line came */
    TP_CONN_BODY,     /* headers were checked; the body comes, if there is one */
    TP_CONN_SLOW,     /* suspended: a worker runs the handler */
    TP_CONN_WAITING,  /* suspended: the call is held */
    TP_CONN_ANSWERED, /* the answer is queued */
    TP_CONN_STEPS
};

/* Fields are for http*.c. Only is_gone is touched by two threads at once. */
struct tp_conn {
    struct tp_app *app;
    struct MHD_Connection *mhd;
    struct tp_http_loop *loop;
    struct tp_peer *peer;
    bool is_unix;
    int32_t peer_pid;        /* who connected to the unix socket; 0 = not known */
    bool is_over_limit;      /* its first request is answered by 503, because of */
    bool is_over_peer_limit; /* ... this limit, or that of all connections */
    int fd;
    struct tp_conn *next, *prev; /* of the list of http_loop.c */
    uint64_t idle_since_ns;      /* monotonic; 0 while a request runs */

    /* The request. */
    enum tp_conn_step step;
    _Atomic bool is_gone; /* its client went away while it was suspended */
    struct tp_http_seen seen;
    size_t header_bytes; /* of its headers */
    struct tp_call call;
    struct tp_buf target; /* a copy of the request line's address */
    uint64_t begun_ns;    /* monotonic */
    uint64_t sent_bytes;
    bool is_broken_off; /* by us */
    bool is_whole;      /* the end of the connection is that of the answer */

    /* The last small answer, kept because clients of a kept-alive connection often get
     * the same one again: making a response costs more than sending it. */
    struct MHD_Response *kept;
    struct tp_buf kept_body;
    int kept_status;
    const char *kept_type;
};

/* The address of a request as it was sent: the first thing that is known of it. */
void tp_conn_target(struct tp_conn *c, const char *target);

/* The handler that libmicrohttpd calls for each step of a request. */
enum MHD_Result tp_conn_step(struct tp_conn *c, const char *method, const char *version,
                             const char *data, size_t *data_bytes);

/* The request has ended, well or not: count it, log it, get ready for the next. */
void tp_conn_ended(struct tp_conn *c, enum MHD_RequestTerminationCode how);

/* Suspend a connection, from its handler or reader. */
void tp_conn_suspend(void *conn);

/* Whether its client has closed its side and everything that it sent was read. */
bool tp_conn_is_at_end(const struct tp_conn *c);

/* Let a suspended connection go on. From any thread; conn may be gone afterwards. */
void tp_conn_resume(void *conn);

/* Queue the answer of c->call. In http_reply.c. */
enum MHD_Result tp_conn_reply(struct tp_conn *c);

/* Release the answer that is kept. In http_reply.c. */
void tp_conn_forget_reply(struct tp_conn *c);

#endif
