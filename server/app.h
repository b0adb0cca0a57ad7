/*
 * app.h - the running service: everything that its threads share.
 *
 * Plain data, put together by app.c before threads start, constant from then on except
 * for what is atomic or has a lock of its own.
 */
#ifndef TP_SERVER_APP_H
#define TP_SERVER_APP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "api/service.h"
#include "server/config.h"
#include "server/listen.h"
#include "server/log.h"
#include "server/metrics.h"

struct tp_app {
    const struct tp_config *config;
    struct tp_log log;
    struct tp_service service;
    struct tp_metrics metrics;
    struct tp_listeners listeners;
    struct tp_blobs *blobs;
    struct tp_store *store;
    struct tp_engine *engine;
    struct tp_peers *peers;
    struct tp_waiters *waiters;
    struct tp_workers *workers;
    struct tp_http *http;
    struct tp_size_cache *sizes;
    struct tp_kineto_side *kineto;
    struct tp_dynolog *dynolog; /* NULL: the settings want none */
    int lock_fd;                /* of the data directory; -1 = none */
    bool has_ready_file;
    _Atomic bool is_stopping;
};

/*
 * Put everything together and start: data directory, store, engine, threads, listeners.
 *
 * config  must outlive the app. out  all zero before; stop it with tp_app_stop() in
 *         either case.
 *
 * Any code, with a message that is fit for a user.
 */
int tp_app_start(struct tp_app *app, const struct tp_config *config,
                 struct tp_err *err);

/* End it: no new connections, watches end, running requests get some seconds. */
void tp_app_stop(struct tp_app *app);

#endif
