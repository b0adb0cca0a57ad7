/*
 * kineto.c - datagrams in, and processes that become producers.
 *
 * The socket's thread waits for nobody: it takes `lock`, which is held for a look-up,
 * and leaves news in the table. tp_engine_kineto_run() takes the news out under the
 * control lock, one at a time, so that the socket never waits for a store.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "engine/check.h"
#include "engine/kineto_model.h"
#include "engine/life.h"
#include "engine/matching.h"
#include "engine/objects.h"
#include "store/store.h"

#define TIDY_NS (10 * TP_KINETO_SECOND_NS)
#define FORGET_NS (60 * TP_KINETO_SECOND_NS) /* a process that is gone */

bool tp_kineto_is(const struct tp_producer *p)
{
    return strcmp(p->who.kind, "kineto") == 0;
}

bool tp_kineto_is_member(const struct tp_member *m)
{
    return strcmp(m->who.kind, "kineto") == 0;
}

/* Whether the process at the other end may have what the member is given: after a
 * restart another user's process can be there under its number. */
static bool is_of_its_user(const struct tp_member *m)
{
    uint32_t uid = m->producer->kineto->seen.peer.uid;

    return tp_kineto_is_allowed(&m->trace->engine->kineto->opts, uid) &&
           (!m->has_uid || m->uid == uid);
}

struct tp_producer *tp_kineto_producer(const struct tp_member *m)
{
    return m->producer != NULL && m->producer->kineto != NULL && is_of_its_user(m)
               ? m->producer
               : NULL;
}

int tp_kineto_open(struct tp_engine *e, const struct tp_kineto_opts *opts,
                   struct tp_err *err)
{
    struct tp_kineto *k;
    int rc;

    if (opts == NULL)
        return TP_OK;
    k = calloc(1, sizeof(*k));
    if (k == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the engine");
    rc = tp_kineto_table_new(&k->table, err);
    if (rc != TP_OK) {
        free(k);
        return rc;
    }
    tp_lock_init(&k->lock);
    k->opts = *opts;
    k->has_tasks = true; /* what a restart left */
    e->kineto = k;
    return TP_OK;
}

void tp_kineto_close(struct tp_engine *e)
{
    size_t cursor = 0;
    void *link;

    if (e->kineto == NULL)
        return;
    while (tp_strmap_next(&e->kineto->links, &cursor, NULL, &link))
        free(link);
    tp_strmap_fini(&e->kineto->links);
    tp_kineto_table_free(e->kineto->table);
    tp_lock_fini(&e->kineto->lock);
    free(e->kineto);
    e->kineto = NULL;
}

struct tp_kineto_reply tp_engine_kineto_receive(struct tp_engine *e,
                                                const struct tp_kineto_peer *peer,
                                                const void *p, size_t n,
                                                uint64_t unread_bytes,
                                                struct tp_now now)
{
    struct tp_kineto_reply reply = {0};

    if (e->kineto == NULL)
        return reply;
    tp_lock_take(&e->kineto->lock);
    reply = tp_kineto_table_receive(e->kineto->table, peer, p, n, unread_bytes,
                                    now.mono_ns);
    tp_lock_give(&e->kineto->lock);
    return reply;
}

bool tp_engine_kineto_unread(struct tp_engine *e, uint64_t target,
                             uint64_t unread_bytes, struct tp_now looked)
{
    bool has_news;

    if (e->kineto == NULL)
        return false;
    tp_lock_take(&e->kineto->lock);
    has_news =
        tp_kineto_table_unread(e->kineto->table, target, unread_bytes, looked.mono_ns);
    tp_lock_give(&e->kineto->lock);
    return has_news;
}

void tp_engine_kineto_unsent(struct tp_engine *e, const struct tp_kineto_reply *reply,
                             bool is_gone)
{
    if (e->kineto == NULL)
        return;
    tp_lock_take(&e->kineto->lock);
    tp_kineto_table_unsent(e->kineto->table, reply, is_gone);
    tp_lock_give(&e->kineto->lock);
}

void tp_engine_kineto_flooded(struct tp_engine *e, uint64_t n)
{
    if (e->kineto == NULL)
        return;
    tp_lock_take(&e->kineto->lock);
    tp_kineto_table_flooded(e->kineto->table, n);
    tp_lock_give(&e->kineto->lock);
}

void tp_engine_kineto_stats(struct tp_engine *e, struct tp_kineto_stats *out)
{
    memset(out, 0, sizeof(*out));
    if (e->kineto == NULL)
        return;
    tp_lock_take(&e->kineto->lock);
    tp_kineto_table_stats(e->kineto->table, out);
    tp_lock_give(&e->kineto->lock);
}

void tp_kineto_unlink(struct tp_producer *p)
{
    if (p->kineto == NULL)
        return;
    tp_kineto_disarm(p);
    p->kineto->producer = NULL;
    p->kineto->is_described = false;
    p->kineto = NULL;
}

bool tp_kineto_has_ended(const struct tp_engine *e, const struct tp_producer *p)
{
    const struct tp_kineto_opts *o = &e->kineto->opts;
    int64_t pid = p->kineto != NULL ? p->kineto->seen.peer.pid : p->who.pid;

    return o->is_there != NULL && pid > 0 && pid <= INT32_MAX &&
           !o->is_there((int32_t)pid);
}

size_t tp_kineto_uncounted(const struct tp_trace *t)
{
    struct tp_engine *e = t->engine;
    size_t n = 0;

    if (e->kineto == NULL)
        return 0;
    for (size_t i = 0; i < t->n_members; i++) {
        const struct tp_producer *p = tp_member_producer(t->members[i]);

        n += p != NULL &&
             (p->is_stranger ||
              (tp_kineto_is(p) && t->members[i]->state == TP_MEMBER_UNMATCHED &&
               tp_kineto_has_ended(e, p)));
    }
    return n;
}

/*
 * Whoever may not be traced is shown, so that somebody can see why, but a few only, and
 * in no row: after a restart nobody would know any more whose process it was.
 */
static void note_user(struct tp_engine *e, struct tp_producer *p, uint32_t uid)
{
    struct tp_kineto *k = e->kineto;
    bool is_stranger = !tp_kineto_is_allowed(&k->opts, uid);
    struct tp_err ignored;

    if (is_stranger != p->is_stranger)
        k->n_strangers += is_stranger ? 1 : (size_t)-1;
    p->is_stranger = is_stranger;
    if (is_stranger)
        (void)e->opts.store->ops->remove_producer(e->opts.store, tp_str_of(p->who.id),
                                                  &ignored);
}

/* Whether a process may become a producer. */
static bool may_be_listed(const struct tp_kineto *k, const struct tp_kineto_target *t)
{
    return k->n_strangers < TP_KINETO_STRANGERS_MAX ||
           tp_kineto_is_allowed(&k->opts, t->peer.uid);
}

static struct tp_kineto_link *link_of(struct tp_kineto *k, uint64_t target)
{
    return tp_strmap_get(&k->links, (const char *)&target, sizeof(target));
}

static struct tp_kineto_link *link_new(struct tp_kineto *k, uint64_t target)
{
    struct tp_kineto_link *link = calloc(1, sizeof(*link));

    if (link == NULL || tp_strmap_put(&k->links, (const char *)&target, sizeof(target),
                                      link, NULL) != TP_OK) {
        free(link);
        return NULL;
    }
    return link;
}

static void end_link(struct tp_kineto *k, struct tp_kineto_link *link)
{
    if (link->producer != NULL)
        link->producer->kineto = NULL;
    tp_strmap_remove(&k->links, (const char *)&link->seen.id, sizeof(link->seen.id));
    free(link);
}

static void take_news(struct tp_engine *e, const struct tp_kineto_target *news,
                      struct tp_now now)
{
    struct tp_kineto *k = e->kineto;
    bool is_gone = news->state == TP_KINETO_GONE;
    struct tp_kineto_link *link = link_of(k, news->id);
    struct tp_producer *p;

    if (link == NULL && !is_gone)
        link = link_new(k, news->id);
    if (link == NULL)
        return; /* gone before it was known, or no memory: its next request comes */
    link->seen = *news;
    p = link->producer;
    if (p == NULL && !is_gone && !link->is_described && may_be_listed(k, news))
        link->needs_describe = k->has_tasks = true;
    if (p != NULL) {
        p->seen_mono_ns = news->rhythm.last_ns;
        p->seen_wall_ns = now.wall_ns - (now.mono_ns - news->rhythm.last_ns);
        if (p->member == NULL && !is_gone)
            tp_match_join(p, now, NULL); /* made up for by its next request */
        if (p->member != NULL && tp_kineto_producer(p->member) != NULL)
            tp_kineto_news(p->member, news, now);
    }
    if (is_gone)
        end_link(k, link);
}

/* Processes end and are not missed: their rows would pile up. */
static void tidy(struct tp_engine *e, struct tp_now now)
{
    struct tp_err ignored;
    size_t cursor = 0;
    void *found;

    if (now.mono_ns - e->kineto->last_tidy_ns < TIDY_NS)
        return;
    e->kineto->last_tidy_ns = now.mono_ns;
    while (tp_strmap_next(&e->producers, &cursor, NULL, &found)) {
        struct tp_producer *p = found;

        if (!tp_kineto_is(p) || p->kineto != NULL || p->member != NULL ||
            now.mono_ns - p->seen_mono_ns < FORGET_NS)
            continue;
        if (e->opts.store->ops->remove_producer(e->opts.store, tp_str_of(p->who.id),
                                                &ignored) != TP_OK)
            return; /* the next time */
        tp_producer_drop(e, p);
    }
}

static bool next_news(struct tp_kineto *k, struct tp_kineto_target *out)
{
    bool has_news;

    tp_lock_take(&k->lock);
    has_news = tp_kineto_table_next_news(k->table, out);
    tp_lock_give(&k->lock);
    return has_news;
}

uint64_t tp_engine_kineto_run(struct tp_engine *e, struct tp_now now)
{
    struct tp_kineto_target news;
    uint64_t next = UINT64_MAX;
    struct tp_trace *t;
    size_t cursor = 0;

    if (e->kineto == NULL)
        return next;
    tp_lock_take(&e->lock);
    tp_lock_take(&e->kineto->lock);
    next = tp_kineto_table_sweep(e->kineto->table, now.mono_ns);
    tp_lock_give(&e->kineto->lock);
    while (next_news(e->kineto, &news))
        take_news(e, &news, now);
    while ((t = tp_trace_next_active(e, &cursor)) != NULL) {
        uint64_t at = tp_kineto_follow(t, now);

        next = at < next ? at : next;
    }
    tidy(e, now);
    tp_lock_give(&e->lock);
    return next;
}

/* The job that a process is of: as it was told, its Slurm job, or the default one. */
static struct tp_str job_of(const struct tp_kineto_link *link, struct tp_str said,
                            char *out, size_t size)
{
    struct tp_str job = said;

    if (said.len != 0 && tp_check_job(&job, NULL, NULL) == TP_OK)
        return job;
    if (link->seen.job <= 0)
        return tp_str_of(TP_JOB_DEFAULT);
    snprintf(out, size, "%lld", (long long)link->seen.job);
    return tp_str_of(out);
}

/* Whether another socket of the same process speaks for it: it is one producer, and is
 * told by one of them only. One that has been silent for two intervals does not. */
static bool has_other_socket(const struct tp_engine *e,
                             const struct tp_kineto_link *link, struct tp_str process,
                             struct tp_now now)
{
    size_t cursor = 0;
    void *found;

    while (link->seen.peer.pid > 0 &&
           tp_strmap_next(&e->kineto->links, &cursor, NULL, &found)) {
        const struct tp_kineto_link *other = found;
        const struct tp_kineto_rhythm *r = &other->seen.rhythm;

        if (other != link && other->producer != NULL &&
            other->seen.peer.pid == link->seen.peer.pid &&
            other->seen.peer.uid == link->seen.peer.uid &&
            now.mono_ns <= r->last_ns + r->interval_ns * 5 / 2 &&
            tp_str_is(process, other->producer->who.process))
            return true;
    }
    return false;
}

int tp_engine_kineto_describe(struct tp_engine *e, uint64_t target,
                              const struct tp_kineto_description *description,
                              struct tp_now now, struct tp_err *err)
{
    char job[24], name[48];
    struct tp_producer_request request = {.kind = tp_str_of("kineto"),
                                          .rank = description->rank,
                                          .world_size = description->world_size,
                                          .process = description->process};
    struct tp_kineto_link *link;
    struct tp_producer *p;
    int rc = TP_OK;

    tp_lock_take(&e->lock);
    link = e->kineto == NULL ? NULL : link_of(e->kineto, target);
    if (link == NULL) {
        tp_lock_give(&e->lock);
        return tp_fail(err, TP_ENOTFOUND, "the Kineto process is gone");
    }
    if (link->producer == NULL &&
        (has_other_socket(e, link, description->process, now) ||
         !may_be_listed(e->kineto, &link->seen))) {
        link->is_described = false; /* until it is the only one, or there is room */
        tp_lock_give(&e->lock);
        return TP_OK;
    }
    request.job = job_of(link, description->job, job, sizeof(job));
    request.host = tp_str_of(e->host);
    request.backend = tp_str_of("pytorch");
    request.pid = link->seen.peer.pid > 0 ? link->seen.peer.pid : -1;
    if (request.pid > 0)
        snprintf(name, sizeof(name), "kineto-%d", link->seen.peer.pid);
    else
        snprintf(name, sizeof(name), "kineto-c%d-%llu", link->seen.claimed_pid,
                 (unsigned long long)target);
    request.name = tp_str_of(name);
    rc = link->producer != NULL ? TP_OK : tp_producer_enroll(e, &request, now, &p, err);
    link->is_described = rc == TP_OK;
    if (rc == TP_OK && link->producer == NULL) {
        if (p->kineto != NULL) /* another socket of the same process */
            tp_kineto_unlink(p);
        note_user(e, p, link->seen.peer.uid);
        p->kineto = link;
        link->producer = p;
        tp_match_join(p, now, NULL);
        if (p->member != NULL) { /* since before a restart: its folder can be there */
            if (tp_kineto_producer(p->member) != NULL)
                p->member->kineto.gone_ns = 0;
            tp_kineto_arm(p->member, now);
        }
    }
    tp_lock_give(&e->lock);
    return rc;
}
