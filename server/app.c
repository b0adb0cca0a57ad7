/*
 * app.c - the order in which the service comes up, and goes down.
 *
 *   data directory and its lock, store, engine (repairs what a crash left), workers,
 *   ticker, listeners
 *
 * Going down is the same backwards, with one addition: what is suspended is resumed
 * before the HTTP threads end, because the library aborts the process otherwise.
 */
#include "server/app.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "engine/engine.h"
#include "server/blob_fs.h"
#include "server/clock.h"
#include "server/embed.h"
#include "server/http.h"
#include "server/kineto_side.h"
#include "server/listener_dynolog.h"
#include "server/peers.h"
#include "server/size_cache.h"
#include "server/waiters.h"
#include "server/workers.h"
#include "store/store_sqlite.h"

#define GRACE_MS 5000
#define HOST_BYTES 256
#define PATH_BYTES 4096
#define LISTEN_LINE 1024

static void random_bytes(void *p, size_t n, void *arg)
{
    char *to = p;

    (void)arg;
    while (n > 0) {
        ssize_t got = getrandom(to, n, 0);

        if (got < 0 && errno != EINTR)
            abort(); /* the kernel has it since 3.17; nothing can be done without */
        if (got > 0) {
            to += got;
            n -= (size_t)got;
        }
    }
}

/* Two services on one directory would spoil each other's data. */
static int lock_data_dir(struct tp_app *app, struct tp_err *err)
{
    char path[PATH_BYTES];
    int rc = tp_blob_fs_make_dir(app->config->data_dir, err);

    if (rc != TP_OK)
        return rc;
    if (snprintf(path, sizeof(path), "%s/lock", app->config->data_dir) >= PATH_BYTES)
        return tp_fail(err, TP_EINVAL, "the path of the data directory is too long");
    app->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (app->lock_fd < 0)
        return tp_fail(err, TP_EIO, "cannot open '%s': %m", path);
    if (flock(app->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return tp_fail(err, TP_EEXIST,
                       "another traceplaned uses the data directory '%s'",
                       app->config->data_dir);
    return TP_OK;
}

static int open_store(struct tp_app *app, bool is_durable, struct tp_err *err)
{
    const char *url = app->config->store;
    char path[PATH_BYTES];
    int rc;

    if (strncmp(url, "sqlite:", 7) == 0)
        snprintf(path, sizeof(path), "%s", url + 7);
    else if (*url == '\0')
        snprintf(path, sizeof(path), "%s/traceplane.db", app->config->data_dir);
    else
        return tp_fail(err, TP_EINVAL,
                       "the store '%.64s' is not of a kind that is known: "
                       "use sqlite:PATH",
                       url);
    rc = tp_store_sqlite_open(path, is_durable, &app->store, err);
    return rc == TP_OK ? TP_OK : tp_fail_prefix(err, "%s", path);
}

static void log_recovery(struct tp_app *app, const struct tp_engine_recovery *r)
{
    char traces[24];
    char resumed[24];
    char failed[24];
    char cut[24];
    char orphans[24];

    if (r->jobs == 0 && r->traces == 0 && r->orphan_blobs == 0)
        return;
    snprintf(traces, sizeof(traces), "%llu", (unsigned long long)r->traces);
    snprintf(resumed, sizeof(resumed), "%llu", (unsigned long long)r->resumed);
    snprintf(failed, sizeof(failed), "%llu", (unsigned long long)r->failed);
    snprintf(cut, sizeof(cut), "%llu", (unsigned long long)r->cut_bytes);
    snprintf(orphans, sizeof(orphans), "%llu", (unsigned long long)r->orphan_blobs);
    tp_log(&app->log, TP_LOG_INFO, "recovered", "traces", traces, "resumed", resumed,
           "failed", failed, "cut_bytes", cut, "orphans_removed", orphans, NULL);
}

static int open_engine(struct tp_app *app, struct tp_err *err)
{
    bool is_durable = strcmp(app->config->durability, "disk") == 0;
    struct tp_engine_recovery recovery = {0};
    char host[HOST_BYTES] = "";
    char streams[PATH_BYTES];
    struct tp_engine_opts opts = {.limits = &app->config->limits,
                                  .sync_events = is_durable,
                                  .random = random_bytes,
                                  .version = TP_VERSION,
                                  .host = host};
    int rc;

    if (gethostname(host, sizeof(host) - 1) != 0)
        host[0] = '\0';
    if (strcmp(app->config->on_collision, "probe") == 0)
        opts.on_collision = TP_COLLISION_PROBE;
    snprintf(streams, sizeof(streams), "%s/data", app->config->data_dir);
    rc = tp_blob_fs_open(streams, is_durable, &app->blobs, err);
    if (rc == TP_OK)
        rc = open_store(app, is_durable, err);
    if (rc != TP_OK)
        return rc;
    opts.blobs = app->blobs;
    opts.store = app->store;
    rc = tp_kineto_side_new(app, &app->kineto, &opts.kineto, err);
    if (rc != TP_OK)
        return rc;
    rc = tp_engine_new(&opts, tp_clock_now(), &app->engine, &recovery, err);
    if (rc == TP_OK)
        log_recovery(app, &recovery);
    return rc;
}

static int write_metrics(void *arg, struct tp_buf *out, struct tp_err *err)
{
    struct tp_app *app = arg;

    app->metrics.waiting = (int64_t)tp_waiters_count(app->waiters);
    return tp_metrics_write(&app->metrics, app->engine, TP_VERSION, out, err);
}

static int is_ready(void *arg, struct tp_err *err)
{
    const struct tp_app *app = arg;

    return app->is_stopping ? tp_fail(err, TP_EAGAIN, "the service stops") : TP_OK;
}

static bool size_get(void *arg, const char *etag, uint64_t *size_bytes)
{
    struct tp_app *app = arg;

    return tp_size_cache_get(app->sizes, etag, size_bytes);
}

static void size_put(void *arg, const char *etag, uint64_t size_bytes)
{
    struct tp_app *app = arg;

    tp_size_cache_put(app->sizes, etag, size_bytes);
}

static bool watch_count(void *arg, int change)
{
    struct tp_app *app = arg;
    int64_t n = atomic_fetch_add(&app->metrics.watches, change) + change;

    if (change < 0 || n <= (int64_t)app->config->limits.watchers)
        return true;
    atomic_fetch_sub(&app->metrics.watches, change);
    return false;
}

static void changed(void *arg)
{
    struct tp_app *app = arg;

    tp_waiters_poke(app->waiters);
}

static void fill_service(struct tp_app *app)
{
    app->service = (struct tp_service){
        .engine = app->engine,
        .limits = &app->config->limits,
        .version = TP_VERSION,
        .build = "C11, compiler " __VERSION__,
        .started_wall_ns = (int64_t)tp_clock_ns(CLOCK_REALTIME),
        .openapi = tp_embed_openapi(),
        .log_dirs = app->config->dynolog_log_dirs.items,
        .n_log_dirs = app->config->dynolog_log_dirs.n,
        .arg = app,
        .metrics = write_metrics,
        .ready = is_ready,
        .size_get = size_get,
        .size_put = size_put,
        .watch_count = watch_count,
        .changed = changed,
    };
}

static int start_threads(struct tp_app *app, struct tp_err *err)
{
    const struct tp_limits *limits = &app->config->limits;
    size_t sealers = (size_t)app->config->seal_threads;
    int rc = tp_waiters_new(app->engine, &app->waiters, err);

    if (sealers == 0)
        sealers = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    if (sealers > 64)
        sealers = 64;
    if (rc == TP_OK)
        rc = tp_size_cache_new(&app->sizes, err);
    if (rc == TP_OK)
        rc = tp_peers_new(limits->connections, limits->connections_per_peer,
                          limits->requests_per_s, &app->peers, err);
    if (rc == TP_OK)
        rc = tp_workers_start(app->engine, sealers, changed, app, &app->workers, err);
    if (rc == TP_OK)
        rc = tp_waiters_start(app->waiters, app->workers, err);
    return rc;
}

static int open_listeners(struct tp_app *app, struct tp_err *err)
{
    const struct tp_config_list *list = &app->config->listen;
    size_t n_fds = tp_http_threads(app);
    int rc = TP_OK;

    if (list->n == 0)
        return tp_listen_add_default(&app->listeners, n_fds, err);
    for (size_t i = 0; i < list->n && rc == TP_OK; i++)
        rc = tp_listen_add(&app->listeners, list->items[i], n_fds, err);
    return rc;
}

static int write_ready_file(struct tp_app *app, struct tp_err *err)
{
    const char *path = app->config->ready_file;
    char temporary[PATH_BYTES];
    FILE *f;
    bool is_good;

    if (*path == '\0')
        return TP_OK;
    if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= PATH_BYTES)
        return tp_fail(err, TP_EINVAL, "the path of the ready file is too long");
    f = fopen(temporary, "we");
    if (f == NULL)
        return tp_fail(err, TP_EIO, "cannot write '%s': %m", temporary);
    for (size_t i = 0; i < app->listeners.n; i++)
        fprintf(f, "%s\n", app->listeners.items[i].text);
    is_good = !ferror(f);
    if (fclose(f) != 0 || !is_good || rename(temporary, path) != 0)
        return tp_fail(err, TP_EIO, "cannot write '%s': %m", path);
    app->has_ready_file = true;
    return TP_OK;
}

static void log_listening(struct tp_app *app)
{
    char line[LISTEN_LINE] = "";
    size_t len = 0;

    for (size_t i = 0; i < app->listeners.n && len < sizeof(line); i++) {
        const char *text = app->listeners.items[i].text;
        bool is_unix = strncmp(text, "unix:", 5) == 0;

        len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%s%s",
                                i == 0 ? "" : ",", is_unix ? "" : "http://", text);
    }
    tp_log(&app->log, TP_LOG_INFO, "listening", "on", line, "data_dir",
           app->config->data_dir, "version", TP_VERSION, NULL);
}

int tp_app_start(struct tp_app *app, const struct tp_config *config, struct tp_err *err)
{
    int rc;

    app->config = config;
    app->lock_fd = -1;
    app->log.fd = STDERR_FILENO;
    app->log.level = (enum tp_log_level)tp_log_level_find(config->log_level);
    /* The address first: a second start by mistake must not touch the data. */
    rc = open_listeners(app, err);
    if (rc == TP_OK)
        rc = lock_data_dir(app, err);
    if (rc == TP_OK)
        rc = open_engine(app, err);
    if (rc == TP_OK)
        rc = start_threads(app, err);
    if (rc != TP_OK)
        return rc;
    fill_service(app);
    tp_kineto_side_start(app->kineto);
    rc = tp_dynolog_start(app, &app->dynolog, err);
    if (rc == TP_OK)
        rc = tp_http_start(app, &app->http, err);
    if (rc == TP_OK)
        rc = write_ready_file(app, err);
    if (rc == TP_OK)
        log_listening(app);
    return rc;
}

/* Give requests that run some time to end. */
static void wait_for_requests(struct tp_app *app)
{
    const struct timespec pause = {.tv_nsec = 10000000};

    for (int i = 0; i < GRACE_MS / 10; i++) {
        if (tp_http_is_idle(app->http))
            return;
        nanosleep(&pause, NULL);
    }
}

void tp_app_stop(struct tp_app *app)
{
    atomic_store(&app->is_stopping, true);
    if (app->http != NULL) {
        tp_http_quiesce(app->http);
        tp_waiters_drain(app->waiters);
        wait_for_requests(app);
    }
    tp_dynolog_stop(app->dynolog);
    tp_kineto_side_stop(app->kineto);
    /* Slow calls are suspended connections: all of them must end first. */
    tp_workers_stop(app->workers);
    tp_http_stop(app->http);
    tp_waiters_stop(app->waiters);
    tp_waiters_free(app->waiters);
    tp_workers_free(app->workers);
    tp_kineto_side_free(app->kineto);
    tp_listen_close(&app->listeners);
    tp_engine_free(app->engine);
    tp_store_close(app->store);
    tp_blob_fs_close(app->blobs);
    tp_peers_free(app->peers);
    tp_size_cache_free(app->sizes);
    if (app->has_ready_file) /* else it may be that of a service that runs */
        unlink(app->config->ready_file);
    if (app->lock_fd >= 0)
        close(app->lock_fd);
}
