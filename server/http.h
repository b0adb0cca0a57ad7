/*
 * http.h - the HTTP listeners: one thread for each listening socket.
 *
 * It moves bytes between sockets and struct tp_call; what a request means is api/'s
 * business. Not thread-safe; for the thread that starts and stops the service.
 */
#ifndef TP_SERVER_HTTP_H
#define TP_SERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>

struct tp_app;
struct tp_err;
struct tp_http;

/* How many threads a configuration asks for: one a core unless it says otherwise. */
size_t tp_http_threads(const struct tp_app *app);

/*
 * Start serving the listeners of app, whose sockets become the daemons'.
 *
 * TP_EIO, TP_ENOMEM  nothing is served.
 */
int tp_http_start(struct tp_app *app, struct tp_http **out, struct tp_err *err);

/* Accept no more connections; those that are open go on. */
void tp_http_quiesce(struct tp_http *http);

/* Whether no connection had a request in progress some milliseconds ago. Meant for
 * after tp_http_quiesce(). */
bool tp_http_is_idle(struct tp_http *http);

/* Close what is open and end the threads. All held calls must have been resumed. NULL
 * is allowed. */
void tp_http_stop(struct tp_http *http);

#endif
