/*
 * client.c - opening and closing: a recorder, its agent, and what happens to both when
 * the process forks or exits.
 *
 * All clients are in one list under one lock. A fork takes the lock, so that the list
 * is whole in the child; there the clients are marked as left over: the recorder is
 * silent and the agent has no thread, so they are never touched again, only taken off
 * the list by tp_close(). Their memory is not released, since the thread that is not
 * there may have been in the middle of anything.
 *
 * An exit ends all clients while other threads may be in tp_open() or tp_close(). One
 * thread ends a client, whichever comes first; the exit waits until nobody is in one of
 * them, so that all is sent, and libcurl and its TLS library are out of use when their
 * own handlers run. From then on a tp_close() releases nothing and a tp_open() is
 * refused.
 *
 * Lock order: list, then what the recorders lock for a fork.
 */
#include <curl/curl.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <traceplane/traceplane.h>

#include "base/err.h"
#include "producer/agent.h"
#include "producer/no_cancel.h"
#include "producer/recorder.h"
#include "producer/settings.h"

/* One that is open. */
struct entry {
    struct entry *next;
    struct tp_recorder *recorder;
    struct tp_agent *agent; /* NULL: it is off */
    bool is_left_over;      /* from before a fork */
    bool is_ending;         /* a thread ends its agent, or has done so */
    bool is_ended;
};

static struct {
    pthread_mutex_t lock;   /* guards all but has_curl */
    pthread_cond_t changed; /* an agent has ended, or n_busy has become less */
    pthread_once_t once;
    struct entry *first;
    unsigned n_busy; /* threads in tp_open() or tp_close() */
    bool is_exiting; /* the process is */
    bool has_curl;
} clients = {.lock = PTHREAD_MUTEX_INITIALIZER,
             .changed = PTHREAD_COND_INITIALIZER,
             .once = PTHREAD_ONCE_INIT};

static void before_fork(void)
{
    pthread_mutex_lock(&clients.lock);
    tp_recorders_before_fork();
}

static void after_fork_parent(void)
{
    tp_recorders_after_fork_parent();
    pthread_mutex_unlock(&clients.lock);
}

static void after_fork_child(void)
{
    tp_recorders_after_fork_child();
    for (struct entry *e = clients.first; e != NULL; e = e->next) {
        if (!e->is_left_over && e->agent != NULL)
            tp_agent_forget_thread(e->agent);
        e->is_left_over = true;
    }
    /* The threads that were busy, waited, or called exit() are not here. */
    clients.n_busy = 0;
    clients.is_exiting = false;
    clients.changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pthread_mutex_unlock(&clients.lock);
}

/* When the library is loaded: tp_intern() may come before any tp_open(), in a thread,
 * and its lock is to be free in the child then, too. */
__attribute__((constructor)) static void on_load(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* Under the lock, which is left meanwhile. End the agent of an entry, or wait until the
 * thread that does so is done. The entry stays. takes_late  whether its client may be
 * used still. */
static void end_agent(struct entry *e, bool takes_late)
{
    uint64_t bound_ms;

    while (e->is_ending && !e->is_ended)
        pthread_cond_wait(&clients.changed, &clients.lock);
    if (e->is_ended || e->agent == NULL)
        return;
    e->is_ending = true;
    pthread_mutex_unlock(&clients.lock);
    bound_ms = tp_agent_settings(e->agent)->flush_ms;
    tp_agent_ask_to_end(e->agent, bound_ms, takes_late);
    tp_agent_stop(e->agent, bound_ms);
    pthread_mutex_lock(&clients.lock);
    e->is_ended = true;
    pthread_cond_broadcast(&clients.changed);
}

/* Under the lock: a client whose agent has not ended; NULL: none. */
static struct entry *find_running(void)
{
    struct entry *e = clients.first;

    while (e != NULL && (e->agent == NULL || e->is_left_over || e->is_ended))
        e = e->next;
    return e;
}

/* Under the lock: all clients that nobody ends yet begin to, so that an exit takes as
 * long as the slowest of them and not as all together. */
static void ask_all_to_end(void)
{
    for (struct entry *e = clients.first; e != NULL; e = e->next)
        if (e->agent != NULL && !e->is_left_over && !e->is_ending)
            tp_agent_ask_to_end(e->agent, tp_agent_settings(e->agent)->flush_ms, true);
}

/* Send what is left. The clients stay usable, since threads may still be recording. */
static void at_exit(void)
{
    int before = tp_no_cancel_begin();
    struct entry *e;

    pthread_mutex_lock(&clients.lock);
    clients.is_exiting = true;
    ask_all_to_end();
    while ((e = find_running()) != NULL || clients.n_busy > 0) {
        if (e != NULL)
            end_agent(e, true);
        else
            pthread_cond_wait(&clients.changed, &clients.lock);
    }
    pthread_mutex_unlock(&clients.lock);
    tp_no_cancel_end(before);
}

/* A thread comes into tp_open() or tp_close(), and is to leave(). Returns false when
 * the process exits: nobody waits for the thread then. */
static bool enter(void)
{
    bool is_exiting;

    pthread_mutex_lock(&clients.lock);
    is_exiting = clients.is_exiting;
    clients.n_busy += !is_exiting;
    pthread_mutex_unlock(&clients.lock);
    return !is_exiting;
}

static void leave(void)
{
    pthread_mutex_lock(&clients.lock);
    clients.n_busy--;
    pthread_cond_broadcast(&clients.changed);
    pthread_mutex_unlock(&clients.lock);
}

/*
 * Keep what this code is in from being unloaded: a plugin with the static library in it
 * may be, while its agent runs or a thread that recorded has yet to end. Nobody unloads
 * the program itself, which has no name here; where it fails, all is as without it.
 */
static void stay_loaded(void)
{
    struct link_map *object = NULL;
    void *handle = NULL;
    Dl_info unused;

    if (dladdr1(&clients, &unused, (void **)&object, RTLD_DL_LINKMAP) != 0 &&
        object != NULL && object->l_name[0] != '\0')
        handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    if (handle != NULL)
        dlclose(handle);
}

static void set_up(void)
{
    stay_loaded();
    clients.has_curl = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    /* After libcurl's TLS library has registered its own: ours must run first. */
    atexit(at_exit);
}

static const char *variable(const char *name, void *arg)
{
    (void)arg;
    return getenv(name);
}

static int start_agent(struct entry *e, struct tp_err *err)
{
    if (!clients.has_curl)
        return tp_fail(err, TP_EIO, "libcurl cannot be used");
    tp_recorder_set_agent(e->recorder, e->agent);
    return tp_agent_start(e->agent, e->recorder, err);
}

static void add_entry(struct entry *e)
{
    pthread_mutex_lock(&clients.lock);
    e->next = clients.first;
    clients.first = e;
    pthread_mutex_unlock(&clients.lock);
}

static int open_client(struct tp_settings *settings, struct tp_client **out,
                       struct tp_err *err)
{
    struct tp_recorder_opts opts = {
        .ring_bytes = settings->ring_bytes,
        .rings_bytes_max = settings->rings_bytes_max,
        .block_ns = settings->blocks_when_full ? settings->block_ns : 0,
        .takes_late = settings->late_ms != 0,
        .wake = tp_agent_wake,
    };
    bool is_off = settings->is_off;
    struct entry *e = calloc(1, sizeof(*e));
    int rc = TP_OK;

    if (e == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a client");
    if (!is_off)
        rc = tp_agent_new(settings, &e->agent, err);
    opts.wake_arg = e->agent;
    if (rc == TP_OK)
        rc = tp_recorder_new(&opts, &e->recorder, err);
    if (rc == TP_OK && !is_off)
        rc = start_agent(e, err);
    if (rc != TP_OK) {
        tp_recorder_free(e->recorder);
        tp_agent_free(e->agent);
        free(e);
        return rc;
    }
    add_entry(e);
    *out = tp_recorder_client(e->recorder);
    return TP_OK;
}

/* tp_open(), with settings that stay the caller's. */
static int open_entered(struct tp_settings *settings, struct tp_client **out,
                        struct tp_err *err)
{
    int rc;

    if (!enter())
        return tp_fail(err, TP_ESTATE, "the process is exiting");
    pthread_once(&clients.once, set_up);
    rc = open_client(settings, out, err);
    leave();
    return rc;
}

int tp_open(const struct tp_options *options, struct tp_client **out,
            struct tp_err *err)
{
    int before = tp_no_cancel_begin();
    struct tp_settings settings;
    int rc = tp_settings_load(options, variable, NULL, &settings, err);

    if (rc == TP_OK) {
        rc = open_entered(&settings, out, err);
        tp_settings_fini(&settings);
    }
    tp_no_cancel_end(before);
    return rc;
}

/* Under the lock: the entry of a client; NULL when there is none. */
static struct entry *find_entry(const struct tp_recorder *r)
{
    struct entry *e = clients.first;

    while (e != NULL && e->recorder != r)
        e = e->next;
    return e;
}

/* Under the lock. */
static void remove_entry(const struct entry *e)
{
    struct entry **at = &clients.first;

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
}

/* End a client and take it off the list. NULL: there is nothing to release. */
static struct entry *end_client(const struct tp_recorder *r)
{
    struct entry *e;

    pthread_mutex_lock(&clients.lock);
    e = find_entry(r);
    if (e != NULL && !e->is_left_over)
        end_agent(e, false);
    if (e != NULL && clients.is_exiting && !e->is_left_over)
        e = NULL; /* it stays on the list, where at_exit() may be looking at it */
    if (e != NULL)
        remove_entry(e);
    pthread_mutex_unlock(&clients.lock);
    return e;
}

/* tp_close(), of what is none of tp_client_off. */
static void close_client(const struct tp_recorder *r)
{
    bool is_awaited = enter();
    struct entry *e = end_client(r);

    if (e != NULL && !e->is_left_over) {
        tp_recorder_free(e->recorder);
        tp_agent_free(e->agent);
    }
    free(e);
    if (is_awaited)
        leave();
}

void tp_close(struct tp_client *client)
{
    const struct tp_recorder *r = tp_recorder_of(client);
    int before;

    if (r == NULL)
        return;
    before = tp_no_cancel_begin();
    close_client(r);
    tp_no_cancel_end(before);
}

/* The agent of a client of this process that is not off; else NULL. */
static struct tp_agent *agent_of(struct tp_client *client)
{
    const struct tp_recorder *r = tp_recorder_of(client);
    const struct entry *e;
    struct tp_agent *agent;

    if (r == NULL)
        return NULL;
    pthread_mutex_lock(&clients.lock);
    e = find_entry(r);
    agent = e == NULL || e->is_left_over ? NULL : e->agent;
    pthread_mutex_unlock(&clients.lock);
    return agent;
}

int tp_flush(struct tp_client *client, uint32_t timeout_ms, struct tp_err *err)
{
    struct tp_agent *agent = agent_of(client);
    int before, rc;

    if (agent == NULL)
        return tp_fail(err, TP_ESTATE, "the client is off");
    before = tp_no_cancel_begin();
    rc = tp_agent_flush(agent, timeout_ms, err);
    tp_no_cancel_end(before);
    return rc;
}

void tp_get_stats(struct tp_client *client, struct tp_stats *stats, size_t stats_bytes)
{
    struct tp_agent *agent = agent_of(client);
    struct tp_stats all = {0};

    if (agent != NULL)
        tp_agent_stats(agent, &all);
    if (stats_bytes < sizeof(all)) /* of a program that was built with fewer fields */
        all.dropped_backlog += all.dropped_after_stop + all.dropped_refused;
    memcpy(stats, &all, stats_bytes < sizeof(all) ? stats_bytes : sizeof(all));
}
