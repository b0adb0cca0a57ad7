#include "server/kineto_side.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/engine.h"
#include "server/app.h"
#include "server/kineto_collector.h"
#include "server/kineto_node.h"
#include "server/kineto_process.h"
#include "server/kineto_socket.h"
#include "server/listener_kineto.h"
#include "server/waiters.h"

#define DIR_BYTES 900 /* what is behind it must fit into a path of libkineto */

/* A socket that is wanted, and whether it is had. */
struct door {
    const char *name, *dir;
    char why[TP_ERR_MESSAGE_BYTES]; /* not; "" = it is */
};

struct tp_kineto_side {
    struct tp_app *app;
    struct tp_kineto_opts opts;
    char root[DIR_BYTES];
    char trace_dir[DIR_BYTES + 32];
    struct tp_kineto_misfit misfits[TP_KINETO_SOCKETS_MAX];
    struct door doors[TP_KINETO_SOCKETS_MAX];
    size_t n_doors;
    struct door *heard[TP_KINETO_SOCKETS_MAX]; /* the listener's, by number */
    struct tp_kineto_listener *listener;
    struct tp_kineto_collector *collector;
};

/* Two services of one user share the folder above; the data directory is locked by one
 * service, so its name tells them apart. */
static uint64_t instance_of(const char *data_dir)
{
    char *real = realpath(data_dir, NULL);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (const char *p = real != NULL ? real : data_dir; *p != '\0'; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    free(real);
    return hash;
}

static int set_dirs(struct tp_kineto_side *k, const struct tp_config *config,
                    struct tp_err *err)
{
    const char *dir = config->kineto_trace_dir;

    if (*dir == '\0')
        snprintf(k->root, sizeof(k->root), "/tmp/traceplane-%u", (unsigned)geteuid());
    else
        snprintf(k->root, sizeof(k->root), "%s", dir);
    if (k->root[0] != '/' || strlen(dir) >= 256 ||
        strspn(k->root, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                        "._-/") != strlen(k->root) ||
        strstr(k->root, "..") != NULL || strstr(k->root, ".json") != NULL)
        return tp_fail(err, TP_EINVAL,
                       "'kineto-trace-dir' must be an absolute path of [A-Za-z0-9._-/] "
                       "without '..' and '.json', not '%.200s'",
                       dir);
    snprintf(k->trace_dir, sizeof(k->trace_dir), "%s/%016llx", k->root,
             (unsigned long long)instance_of(config->data_dir));
    k->opts.trace_dir = k->trace_dir;
    k->opts.root_dir = strncmp(k->root, "/tmp/", 5) == 0 ? "/tmp" : k->root;
    return TP_OK;
}

static int set_uids(struct tp_kineto_side *k, const struct tp_config_list *list,
                    struct tp_err *err)
{
    k->opts.uids[k->opts.n_uids++] = (uint32_t)geteuid();
    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->items[i];
        char *end;
        unsigned long long uid;

        if (strcmp(text, "any") == 0) {
            k->opts.any_uid = true;
            continue;
        }
        errno = 0;
        uid = strtoull(text, &end, 10);
        if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 ||
            uid > UINT32_MAX - 1)
            return tp_fail(err, TP_EINVAL,
                           "'kineto-allow-uid' must be the number of a user or any, "
                           "not '%.64s'",
                           text);
        k->opts.uids[k->opts.n_uids++] = (uint32_t)uid;
    }
    return TP_OK;
}

static int check_log_dirs(const struct tp_config_list *list, struct tp_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i][0] != '/' || strstr(list->items[i], "/..") != NULL)
            return tp_fail(err, TP_EINVAL,
                           "'dynolog-log-dir' must be an absolute path without '..', "
                           "not '%.200s'",
                           list->items[i]);
    }
    return TP_OK;
}

int tp_kineto_side_new(struct tp_app *app, struct tp_kineto_side **out,
                       const struct tp_kineto_opts **opts, struct tp_err *err)
{
    const struct tp_config *config = app->config;
    struct tp_kineto_side *k;
    int rc;

    if (*config->kineto_socket == '\0' && config->kineto_dirs.n == 0) {
        *out = NULL;
        *opts = NULL;
        return TP_OK;
    }
    k = calloc(1, sizeof(*k));
    if (k == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the Kineto side");
    k->app = app;
    k->opts.is_there = tp_kineto_process_is_there;
    rc = set_dirs(k, config, err);
    if (rc == TP_OK)
        rc = set_uids(k, &config->kineto_uids, err);
    if (rc == TP_OK)
        rc = check_log_dirs(&config->dynolog_log_dirs, err);
    if (rc != TP_OK) {
        free(k);
        return rc;
    }
    *out = k;
    *opts = &k->opts;
    return TP_OK;
}

static void on_change(void *arg)
{
    struct tp_kineto_side *k = arg;

    tp_waiters_poke(k->app->waiters);
}

static void on_files(void *arg, const char *why)
{
    struct tp_kineto_side *k = arg;

    if (why != NULL)
        tp_log(&k->app->log, TP_LOG_WARNING, "kineto-files-unavailable", "trace_dir",
               k->trace_dir, "reason", why, NULL);
    else
        tp_log(&k->app->log, TP_LOG_INFO, "kineto-files-available", "trace_dir",
               k->trace_dir, NULL);
}

static void on_news(void *arg)
{
    struct tp_kineto_side *k = arg;

    tp_kineto_collector_poke(k->collector);
}

/* A process that asks and is not answered would be missed without a word. */
static void on_misfit(void *arg, const char *why, const char *dir,
                      const struct tp_kineto_peer *peer)
{
    struct tp_kineto_side *k = arg;
    char pid[16], uid[16], from[TP_KINETO_ADDRESS_BYTES + 1];

    snprintf(pid, sizeof(pid), "%d", peer->pid);
    snprintf(uid, sizeof(uid), "%u", peer->uid);
    snprintf(from, sizeof(from), "%.*s", (int)peer->address_bytes, peer->address);
    tp_log(&k->app->log, TP_LOG_WARNING, "kineto-not-answered", "reason", why, "dir",
           *dir == '\0' ? NULL : dir, "from", from[0] == '\0' ? NULL : from, "pid", pid,
           "uid", uid, NULL);
}

/* Tell whoever asks whether the service is ready. */
static void tell_doors(struct tp_kineto_side *k)
{
    char text[TP_ERR_MESSAGE_BYTES + 32] = "";
    size_t n = 0;

    for (size_t i = 0; i < k->n_doors; i++) {
        if (*k->doors[i].why != '\0' && n++ == 0)
            snprintf(text, sizeof(text), "%s", k->doors[i].why);
    }
    if (n > 1)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), ", and %zu more",
                 n - 1);
    tp_engine_kineto_set_sockets(k->app->engine, text);
}

static void log_listening(struct tp_kineto_side *k, const struct door *d)
{
    char why[8];
    bool has_files = tp_engine_kineto_files(k->app->engine, why, sizeof(why)) &&
                     *why == '\0';

    tp_log(&k->app->log, TP_LOG_INFO, "kineto-listening", "socket", d->name, "dir",
           *d->dir == '\0' ? NULL : d->dir, "trace_dir", k->trace_dir, "files",
           has_files ? "usable" : "unavailable", NULL);
    if (*d->dir != '\0' && tp_kineto_node_is_shared(d->dir))
        tp_log(&k->app->log, TP_LOG_WARNING, "kineto-socket-dir-shared", "dir", d->dir,
               "reason",
               "it is on a network file system and must be local to the node: no "
               "sockets are removed in it",
               NULL);
}

/* why: NULL = it is had. */
static void note_door(struct tp_kineto_side *k, struct door *d, const char *why)
{
    if (why != NULL && strcmp(d->why, why) == 0)
        return;
    if (why == NULL)
        log_listening(k, d);
    else
        tp_log(&k->app->log, TP_LOG_WARNING, "kineto-socket-unavailable", "reason", why,
               NULL);
    snprintf(d->why, sizeof(d->why), "%s", why == NULL ? "" : why);
    tell_doors(k);
}

static void on_socket(void *arg, uint32_t number, const char *why)
{
    struct tp_kineto_side *k = arg;

    note_door(k, k->heard[number], why);
}

/*
 * A name that somebody has is his until this service starts again: a dynolog that stops
 * for a moment would not get it back. What cannot be had for another reason, such as a
 * directory that is not there yet, the listener tries again.
 */
static void add_socket(struct tp_kineto_side *k, const char *name, const char *dir,
                       struct tp_kineto_socket *sockets, size_t *n)
{
    struct door *d = &k->doors[k->n_doors++];
    struct tp_err err = {0};
    int rc = tp_kineto_socket_open(name, dir, (uint32_t)*n, &sockets[*n], &err);

    *d = (struct door){name, dir, ""};
    note_door(k, d, rc == TP_OK ? NULL : err.message);
    if (rc == TP_EEXIST || rc == TP_EINVAL)
        return;
    if (rc != TP_OK)
        tp_kineto_socket_want(name, dir, (uint32_t)*n, &sockets[*n]);
    k->misfits[*n] = (struct tp_kineto_misfit){.tell = on_misfit, .arg = k};
    sockets[*n].misfit = &k->misfits[*n];
    k->heard[(*n)++] = d;
}

static size_t open_sockets(struct tp_kineto_side *k, struct tp_kineto_socket *sockets)
{
    const struct tp_config *config = k->app->config;
    const struct tp_config_list *dirs = &config->kineto_dirs;
    const char *name = config->kineto_socket;
    size_t n = 0;

    k->n_doors = 0;
    if (*name != '\0')
        add_socket(k, name, "", sockets, &n);
    /* Without an abstract one, those in directories have the usual name. */
    for (size_t i = 0; i < dirs->n; i++)
        add_socket(k, *name == '\0' ? "dynolog" : name, dirs->items[i], sockets, &n);
    return n;
}

void tp_kineto_side_check_node(struct tp_kineto_side *k, const char *settings)
{
    char set[128];

    /* Our own user is always one of them. */
    if (geteuid() == 0 || (!k->opts.any_uid && k->opts.n_uids == 1))
        return;
    tp_kineto_node_gaps(settings, set, sizeof(set));
    if (*set != '\0')
        tp_log(&k->app->log, TP_LOG_WARNING, "kineto-folders-unprotected", "reason",
               "who learns where a process of another user writes could have it write "
               "elsewhere",
               "sysctl", set, NULL);
}

void tp_kineto_side_start(struct tp_kineto_side *k)
{
    struct tp_kineto_socket sockets[TP_KINETO_SOCKETS_MAX];
    const struct tp_config_list *log_dirs;
    struct tp_kineto_collector_opts opts;
    const struct tp_kineto_calls calls = {on_news, on_socket, k};
    struct tp_err err = {0};
    size_t n;
    int rc;

    if (k == NULL)
        return;
    tp_kineto_side_check_node(k, TP_KINETO_NODE_SETTINGS);
    log_dirs = &k->app->config->dynolog_log_dirs;
    opts = (struct tp_kineto_collector_opts){.engine = k->app->engine,
                                             .workers = k->app->workers,
                                             .trace_dir = k->trace_dir,
                                             .log_dirs = log_dirs->items,
                                             .n_log_dirs = log_dirs->n,
                                             .on_change = on_change,
                                             .on_files = on_files,
                                             .arg = k};
    rc = tp_kineto_collector_start(&opts, &k->collector, &err);
    n = rc == TP_OK ? open_sockets(k, sockets) : 0;
    if (n > 0)
        rc = tp_kineto_listener_start(k->app->engine, sockets, n, &calls, &k->listener,
                                      &err);
    if (rc != TP_OK) {
        tp_engine_kineto_set_sockets(k->app->engine, err.message);
        tp_log(&k->app->log, TP_LOG_WARNING, "kineto-unavailable", "reason",
               err.message, NULL);
    }
}

void tp_kineto_side_stop(struct tp_kineto_side *k)
{
    if (k == NULL)
        return;
    tp_kineto_listener_stop(k->listener);
    k->listener = NULL;
    tp_kineto_collector_stop(k->collector);
}

void tp_kineto_side_free(struct tp_kineto_side *k)
{
    if (k == NULL)
        return;
    tp_kineto_collector_free(k->collector);
    free(k);
}
