/*
 * The engine as a whole: birth, clock, health. What it holds is in model.h, how it
 * comes back from the store in recovery.c.
 */
#include "engine/engine.h"

#include <stdlib.h>

#include "engine/idempotency.h"
#include "engine/kineto_model.h"
#include "engine/life.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/recovery.h"
#include "engine/refusals.h"
#include "store/store.h"

#define BACKLOG_MOST 10000 /* streams that wait for their seal */

static int copy_texts(struct tp_engine *e, const struct tp_engine_opts *opts,
                      struct tp_err *err)
{
    e->version = strdup(opts->version == NULL ? "unknown" : opts->version);
    e->host = strdup(opts->host == NULL ? "" : opts->host);
    if (e->version == NULL || e->host == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the engine");
    e->opts.version = e->version;
    e->opts.host = e->host;
    return TP_OK;
}

int tp_engine_new(const struct tp_engine_opts *opts, struct tp_now now,
                  struct tp_engine **out, struct tp_engine_recovery *recovery,
                  struct tp_err *err)
{
    struct tp_engine *e = calloc(1, sizeof(*e));
    struct tp_engine_recovery found = {0};
    int rc;

    if (e == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the engine");
    tp_lock_init(&e->lock);
    tp_lock_event_init(&e->sealed);
    e->opts = *opts;
    e->limits = opts->limits == NULL ? tp_limits_default() : *opts->limits;
    e->opts.limits = &e->limits;
    rc = copy_texts(e, opts, err);
    if (rc == TP_OK)
        rc = tp_kineto_open(e, opts->kineto, err);
    if (rc == TP_OK)
        rc = tp_recovery_run(e, now, &found, err);
    if (rc != TP_OK) {
        tp_engine_free(e);
        return rc;
    }
    tp_engine_tick(e, now);
    if (recovery != NULL)
        *recovery = found;
    *out = e;
    return TP_OK;
}

void tp_engine_free(struct tp_engine *e)
{
    size_t cursor = 0;
    void *p;

    if (e == NULL)
        return;
    while (e->newest != NULL)
        tp_trace_unlink(e->newest);
    while (tp_strmap_next(&e->producers, &cursor, NULL, &p))
        tp_producer_free(p);
    tp_kineto_close(e);
    for (cursor = 0; tp_strmap_next(&e->keys, &cursor, NULL, &p);)
        tp_key_free(p);
    for (cursor = 0; tp_strmap_next(&e->jobs, &cursor, NULL, &p);)
        tp_job_free(p);
    tp_strmap_fini(&e->traces);
    tp_strmap_fini(&e->producers);
    tp_strmap_fini(&e->keys);
    tp_strmap_fini(&e->jobs);
    tp_spare_fini(&e->spare);
    tp_lock_event_fini(&e->sealed);
    tp_lock_fini(&e->lock);
    free(e->version);
    free(e->host);
    free(e);
}

/* Cancelled traces whose blobs could not be removed yet. The lock is held. */
static uint64_t tick_purges(struct tp_engine *e, struct tp_now now)
{
    uint64_t next = UINT64_MAX;

    if (!e->has_purges)
        return next;
    e->has_purges = false;
    for (struct tp_trace *t = e->newest; t != NULL; t = t->older) {
        uint64_t at = t->is_purging ? tp_life_tick(t, now) : UINT64_MAX;

        e->has_purges = e->has_purges || t->is_purging;
        next = at < next ? at : next;
    }
    return next;
}

/* Write down which batches came too late: by the tick and not by the refusal, so that a
 * client that goes on posting costs no row each time. The lock is held. */
static uint64_t tick_late_news(struct tp_engine *e, struct tp_now now)
{
    struct tp_err ignored;

    if (!e->has_late_news)
        return UINT64_MAX;
    e->has_late_news = false;
    for (struct tp_trace *t = e->newest; t != NULL; t = t->older) {
        if (t->has_late_news)
            t->has_late_news = tp_persist_trace(e, t, now, &ignored) != TP_OK;
        e->has_late_news = e->has_late_news || t->has_late_news;
    }
    return e->has_late_news ? now.mono_ns + TP_RETRY_NS : UINT64_MAX;
}

uint64_t tp_engine_tick(struct tp_engine *e, struct tp_now now)
{
    uint64_t next, late;
    struct tp_trace *t;
    size_t cursor = 0;

    tp_lock_take(&e->lock);
    e->seen = now;
    next = tick_purges(e, now);
    while ((t = tp_trace_next_active(e, &cursor)) != NULL) {
        uint64_t at = tp_life_tick(t, now);

        next = at < next ? at : next;
    }
    for (t = e->unsealed; t != NULL; t = t->next_unsealed) {
        uint64_t at = tp_life_tick(t, now);

        next = at < next ? at : next;
    }
    late = tick_late_news(e, now);
    tp_key_sweep(e, now);
    tp_lock_give(&e->lock);
    return late < next ? late : next;
}

/* What is counted by looking rather than by keeping count. */
static void count_present(struct tp_engine *e, struct tp_engine_stats *out)
{
    size_t cursor = 0;
    void *job;

    out->jobs = tp_strmap_len(&e->jobs);
    out->producers = tp_strmap_len(&e->producers);
    out->traces = tp_strmap_len(&e->traces);
    out->active_traces = e->n_active;
    while (tp_strmap_next(&e->jobs, &cursor, NULL, &job))
        out->types += tp_registry_len(((struct tp_job *)job)->registry);
    for (const struct tp_trace *t = e->newest; t != NULL; t = t->older) {
        out->work_running += t->n_working;
        out->uploads_open += t->n_uploads;
        for (size_t i = 0; i < t->n_streams; i++) {
            const struct tp_stream *s = t->streams[i];
            struct tp_waiting waiting = {0};

            tp_refusals_sum(s, &waiting);
            out->events_waiting += waiting.events;
            out->streams += s->state != TP_STREAM_HIDDEN;
            out->work_waiting += s->state == TP_STREAM_SEALING && !s->is_working;
            out->stored_bytes += s->counts.bytes;
        }
    }
}

void tp_engine_stats(struct tp_engine *e, struct tp_engine_stats *out)
{
    tp_lock_take(&e->lock);
    *out = e->stats;
    count_present(e, out);
    tp_lock_give(&e->lock);
}

static int probe_blobs(struct tp_engine *e, struct tp_err *err)
{
    const struct tp_blobs *blobs = e->opts.blobs;
    struct tp_blob *blob = NULL;
    int rc = blobs->open_append(blobs->ctx, NULL, &blob, err);

    if (rc == TP_OK)
        rc = blobs->append(blob, "ready", 5, err);
    blobs->close(blobs->ctx, blob);
    return rc;
}

int tp_engine_ready(struct tp_engine *e, struct tp_now now, struct tp_err *err)
{
    struct tp_engine_stats stats;
    int rc;

    (void)now;
    tp_lock_take(&e->lock);
    rc = e->opts.store->ops->check(e->opts.store, err);
    e->stats.store_failures += rc != TP_OK;
    tp_lock_give(&e->lock);
    if (rc == TP_OK) {
        rc = probe_blobs(e, err);
        tp_lock_take(&e->lock);
        e->stats.blob_failures += rc != TP_OK;
        tp_lock_give(&e->lock);
    }
    if (rc != TP_OK)
        return rc;
    tp_engine_stats(e, &stats);
    if (stats.work_waiting <= BACKLOG_MOST)
        return TP_OK;
    return tp_fail(err, TP_EAGAIN, "%llu streams wait to be sealed",
                   (unsigned long long)stats.work_waiting);
}
