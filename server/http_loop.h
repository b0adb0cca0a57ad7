/*
 * http_loop.h - one thread that serves one listening socket.
 *
 * The thread belongs to us and the daemon of libmicrohttpd in it runs when we say so;
 * all callbacks of its connections come from that thread. It accepts, reads and writes;
 * what a request means is http_conn.h's business. For the thread that starts and stops
 * the service, but for tp_http_loop_wake().
 */
#ifndef TP_SERVER_HTTP_LOOP_H
#define TP_SERVER_HTTP_LOOP_H

#include <stdbool.h>

struct tp_app;
struct tp_err;
struct tp_http_loop;

/*
 * Start a thread that serves the connections of a listening socket.
 *
 * app  outlives the loop.
 * fd   a listening socket that does not block; the loop's on success.
 *
 * TP_EIO, TP_ENOMEM  nothing runs; fd is still the caller's.
 */
int tp_http_loop_start(struct tp_app *app, int fd, bool is_unix,
                       struct tp_http_loop **out, struct tp_err *err);

/* Let the library look at what changed, after MHD_resume_connection(). From any thread;
 * cheap. */
void tp_http_loop_wake(struct tp_http_loop *loop);

/* Accept no more connections; those that are open go on. Once. */
void tp_http_loop_quiesce(struct tp_http_loop *loop);

/* Whether, some milliseconds ago, no request was running. Meant for after quiesce. */
bool tp_http_loop_is_idle(struct tp_http_loop *loop);

/* Close what is open and end the thread. All held calls must have been resumed. NULL is
 * allowed. */
void tp_http_loop_stop(struct tp_http_loop *loop);

#endif
