/*
 * http.c - one loop a listening socket.
 *
 * A pool of threads behind one socket is unbalanced: a burst of connections often lands
 * on one thread. So each thread has a listening socket of its own on the same port, and
 * the kernel spreads connections. A unix socket cannot be shared that way and has one
 * thread.
 */
#include "server/http.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "server/app.h"
#include "server/http_loop.h"

#define MAX_THREADS 64

struct tp_http {
    struct tp_http_loop **loops;
    size_t n;
};

size_t tp_http_threads(const struct tp_app *app)
{
    long n = (long)app->config->http_threads;

    if (n == 0)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (size_t)n;
}

static int start_loops(struct tp_http *http, struct tp_app *app, struct tp_err *err)
{
    struct tp_listeners *set = &app->listeners;

    for (size_t i = 0; i < set->n; i++) {
        struct tp_listener *l = &set->items[i];

        for (size_t k = 0; k < l->n_fds; k++) {
            int rc = tp_http_loop_start(app, l->fds[k], l->is_unix,
                                        &http->loops[http->n], err);

            if (rc != TP_OK)
                return rc;
            http->n++;
            l->fds[k] = -1; /* the loop closes it */
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
    for (size_t i = 0; i < app->listeners.n; i++)
        n += app->listeners.items[i].n_fds;
    http->loops = calloc(n, sizeof(struct tp_http_loop *));
    if (http->loops == NULL)
        rc = tp_fail(err, TP_ENOMEM, "no memory for the HTTP threads");
    else
        rc = start_loops(http, app, err);
    if (rc != TP_OK) {
        tp_http_stop(http);
        return rc;
    }
    *out = http;
    return TP_OK;
}

void tp_http_quiesce(struct tp_http *http)
{
    for (size_t i = 0; i < http->n; i++)
        tp_http_loop_quiesce(http->loops[i]);
}

bool tp_http_is_idle(struct tp_http *http)
{
    for (size_t i = 0; i < http->n; i++)
        if (!tp_http_loop_is_idle(http->loops[i]))
            return false;
    return true;
}

void tp_http_stop(struct tp_http *http)
{
    if (http == NULL)
        return;
    for (size_t i = 0; i < http->n; i++)
        tp_http_loop_stop(http->loops[i]);
    free(http->loops);
    free(http);
}
