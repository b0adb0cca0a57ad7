/*
 * Seals. What is written while no lock is held, and in which order things become true:
 *
 *   run    <no>.pftrace and <no>.index are written, each replaced when it is there
 *   done   the row says "sealed", with the counts that the seal has corrected
 *          the log is removed
 *
 * A kill before the row leaves a log, which is sealed again; a kill behind it leaves a
 * log that the next start removes. That goes for a trace that is complete already, too:
 * until the row says "sealed", what it has is the log.
 */
#include "engine/seal_work.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/activity.h"
#include "engine/life.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/settle.h"
#include "engine/source_rank.h"
#include "engine/stream_blobs.h"
#include "engine/window.h"
#include "trace/seal.h"

#define TRIES 3
#define TRIES_FULL 11 /* on a full disk: in nearly a minute it may get room */
#define TRIES_MAX 60  /* from here on once in so many times TP_RETRY_NS */

struct tp_work {
    struct tp_engine *e;
    struct tp_trace *trace; /* referred to */
    struct tp_stream *stream;
    uint64_t min_duration_ns;
    struct tp_seal_window window;
    char names[TP_BLOB_KINDS][TP_BLOB_NAME_BYTES];
    bool has_no_batch; /* all that was sent was refused: there may be no log */
    bool was_run;
    int rc;
    struct tp_err err;
    struct tp_seal_result result;
    uint64_t index_bytes;
};

/* The next stream of a trace that wants its seal now, or NULL. It is looked for where
 * the last was found: there may be thousands, and each is asked for. */
static struct tp_stream *next_stream(struct tp_trace *t, struct tp_now now)
{
    bool is_waited_for = t->session.state == TP_SESSION_STOPPING && t->is_sealing;

    if (!is_waited_for && !t->is_unsealed)
        return NULL;
    for (size_t n = 0; n < t->n_streams; n++) {
        size_t i = (t->seals_from + n) % t->n_streams;
        struct tp_stream *s = t->streams[i];

        if (s->state == TP_STREAM_SEALING && !s->is_working &&
            s->retry_ns <= now.mono_ns && !(is_waited_for && s->is_settled)) {
            t->seals_from = i;
            return s;
        }
    }
    return NULL;
}

/* One of the older trace, when there are two. */
static struct tp_stream *older(struct tp_stream *a, struct tp_stream *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    return strcmp(a->trace->id, b->trace->id) < 0 ? a : b;
}

/* Of the oldest trace first, and of one that is complete last. The lock is held. */
static struct tp_stream *find_stream(struct tp_engine *e, struct tp_now now)
{
    struct tp_stream *found = NULL;
    struct tp_trace *t;
    size_t cursor = 0;

    while ((t = tp_trace_next_active(e, &cursor)) != NULL)
        found = older(found, next_stream(t, now));
    if (found != NULL)
        return found;
    for (t = e->unsealed; t != NULL; t = t->next_unsealed)
        found = older(found, next_stream(t, now));
    return found;
}

bool tp_engine_has_work(struct tp_engine *e)
{
    bool has_work;

    tp_lock_take(&e->lock);
    has_work = find_stream(e, e->seen) != NULL;
    tp_lock_give(&e->lock);
    return has_work;
}

/* Hand out the seal of a stream. The lock is held. */
static void take(struct tp_work *w, struct tp_stream *s, struct tp_now now)
{
    w->e = s->trace->engine;
    w->stream = s;
    w->trace = s->trace;
    w->min_duration_ns = s->trace->spec.min_duration_ns;
    w->window = tp_window_of(s, now);
    w->has_no_batch = s->batches == 0;
    for (int i = 0; i < TP_BLOB_KINDS; i++)
        tp_stream_blob_name(s->trace->id, s->no, (enum tp_blob_kind)i, w->names[i]);
    tp_trace_ref(s->trace);
    s->trace->n_working++;
    s->is_working = true;
    tp_stream_blobs_close(s);
}

struct tp_work *tp_engine_next_work(struct tp_engine *e, struct tp_now now)
{
    struct tp_work *w = calloc(1, sizeof(*w));
    struct tp_stream *s;

    if (w == NULL)
        return NULL;
    tp_lock_take(&e->lock);
    s = find_stream(e, now);
    if (s != NULL)
        take(w, s, now);
    tp_lock_give(&e->lock);
    if (s == NULL) {
        free(w);
        return NULL;
    }
    return w;
}

/* Take the next seal of a complete trace; wait while all that is left of it is with
 * others. Returns false when there is none. */
static bool take_next_of(struct tp_engine *e, const char *trace_id, struct tp_work *w,
                         struct tp_now *now)
{
    struct tp_stream *s = NULL;
    struct tp_trace *t;

    tp_lock_take(&e->lock);
    while ((t = tp_strmap_get(&e->traces, trace_id, strlen(trace_id))) != NULL &&
           t->is_unsealed) {
        s = next_stream(t, e->seen);
        if (s != NULL || t->n_working == 0)
            break;
        tp_lock_wait(&e->lock, &e->sealed);
    }
    *now = e->seen;
    if (s != NULL)
        take(w, s, *now);
    tp_lock_give(&e->lock);
    return s != NULL;
}

void tp_work_finish_trace(struct tp_engine *e, const char *trace_id)
{
    for (;;) {
        struct tp_work *w = calloc(1, sizeof(*w));
        struct tp_now now;

        if (w == NULL || !take_next_of(e, trace_id, w, &now)) {
            free(w);
            return;
        }
        tp_work_run(w);
        tp_engine_work_done(e, w, now);
    }
}

/* Write the index as a new blob. */
static int write_index(struct tp_work *w)
{
    const struct tp_blobs *blobs = w->e->opts.blobs;
    const char *name = w->names[TP_BLOB_INDEX];
    struct tp_blob *blob = NULL;
    struct tp_buf text = {0};
    int rc = tp_stream_index_write(&w->result.index, &text, &w->err);

    if (rc == TP_OK)
        rc = blobs->remove(blobs->ctx, name, &w->err);
    if (rc == TP_OK)
        rc = blobs->open_append(blobs->ctx, name, &blob, &w->err);
    if (rc == TP_OK)
        rc = blobs->append(blob, text.data, text.len, &w->err);
    if (rc == TP_OK && w->e->opts.sync_events)
        rc = blobs->sync(blob, &w->err);
    w->index_bytes = text.len;
    blobs->close(blobs->ctx, blob);
    tp_buf_fini(&text);
    return rc;
}

/* An empty log is sealed like any other. */
static int make_log(struct tp_work *w)
{
    const struct tp_blobs *blobs = w->e->opts.blobs;
    struct tp_blob *blob = NULL;
    int rc = blobs->open_append(blobs->ctx, w->names[TP_BLOB_LOG], &blob, &w->err);

    blobs->close(blobs->ctx, blob);
    return rc;
}

void tp_work_run(struct tp_work *w)
{
    struct tp_seal_opts opts = {
        .blobs = w->e->opts.blobs,
        .log_name = w->names[TP_BLOB_LOG],
        .out_name = w->names[TP_BLOB_SEALED],
        .stream_no = w->stream->no,
        .min_duration_ns = w->min_duration_ns,
        .window = w->window,
        .limits = &w->e->limits,
    };

    w->was_run = true;
    w->rc = w->has_no_batch ? make_log(w) : TP_OK;
    if (w->rc == TP_OK)
        w->rc = tp_seal_run(&opts, &w->result, &w->err);
    if (w->rc == TP_OK && w->e->opts.sync_events)
        w->rc = w->e->opts.blobs->sync(w->result.blob, &w->err);
    if (w->rc == TP_OK)
        w->rc = write_index(w);
}

/* Take over what the seal found. */
static void take_result(struct tp_work *w)
{
    const struct tp_stream_index *ix = &w->result.index;
    struct tp_stream *s = w->stream;
    struct tp_source_says says;
    struct tp_err ignored;

    tp_seal_adjust(&s->counts, &w->result);
    s->counts.bytes = ix->size_bytes + w->index_bytes;
    s->has_times = ix->first_ns != 0 || ix->last_ns != 0;
    s->first_ns = ix->first_ns;
    s->last_ns = ix->last_ns;
    tp_source_says_init(&says);
    tp_source_says_index(&says, ix);
    /* Without memory the stream stays as nameless as it was. */
    tp_source_fill_in(&says, &s->who, &ignored);
}

/* What its producer reports by type gets what is stored. The lock is held. */
static void take_types(struct tp_work *w, const struct tp_typemap *types)
{
    const struct tp_stream_index *ix = &w->result.index;
    uint64_t by_type[TP_ACTIVITY_IDS] = {0};

    if (types == NULL)
        return;
    for (size_t i = 0; i < ix->n_types; i++) {
        int id = tp_typemap_find(types, ix->types[i].cat.ptr, ix->types[i].cat.len);

        if (id >= 0)
            by_type[id] += ix->types[i].count;
    }
    tp_settle_types(w->stream, by_type);
}

/* A stream that is sealed is not read again: what it holds by type is written with it,
 * for those whose it is. */
static int write_sealed(struct tp_work *w, struct tp_err *err)
{
    struct tp_member *m = tp_member_of_stream(w->trace, w->stream->no);
    int rc = tp_persist_begin(w->e, err);

    if (rc != TP_OK)
        return rc;
    rc = tp_persist_stream(w->e, w->stream, err);
    if (rc == TP_OK && m != NULL)
        rc = tp_persist_member(w->e, m, err);
    rc = tp_persist_end(w->e, rc, err);
    if (rc != TP_OK && m != NULL)
        tp_member_changed(m);
    return rc;
}

/* The row first, then the log. The lock is held. */
static int accept_result(struct tp_work *w, struct tp_err *err)
{
    struct tp_stream *s = w->stream;
    struct tp_counts before = s->counts;
    int rc;

    take_result(w);
    take_types(w, w->trace->types);
    s->state = TP_STREAM_SEALED;
    rc = write_sealed(w, err);
    if (rc != TP_OK) {
        s->counts = before;
        s->state = TP_STREAM_SEALING;
        return rc;
    }
    w->e->stats.seals++;
    w->e->stats.sealed_events += w->result.index.n_events;
    return TP_OK;
}

/*
 * A complete trace has lost some of a stream, or all of it. It says so before the row
 * of the stream does: a kill in between leaves the log, and this is found again. The
 * lock is held.
 */
static int worsen(struct tp_work *w, struct tp_now now, struct tp_err *err)
{
    struct tp_trace *t = w->trace;
    char outcome[sizeof(t->outcome)], reason[sizeof(t->reason)];
    int rc;

    memcpy(outcome, t->outcome, sizeof(outcome));
    memcpy(reason, t->reason, sizeof(reason));
    tp_life_worsen(t, w->stream);
    rc = tp_persist_trace(w->e, t, now, err);
    if (rc != TP_OK) {
        memcpy(t->outcome, outcome, sizeof(outcome));
        memcpy(t->reason, reason, sizeof(reason));
    }
    return rc;
}

/* Count by type again what is left of a damaged stream. */
static void count_types(struct tp_work *w, struct tp_now now)
{
    struct tp_typemap *types = NULL;
    struct tp_err ignored;

    if (tp_typemap_new(w->trace->job->registry, &types, &ignored) == TP_OK)
        take_types(w, types);
    tp_typemap_unref(types);
    tp_persist_trace(w->e, w->trace, now, &ignored);
}

/* The seal of a complete trace: what it has found lost since was counted as stored. The
 * lock is held. */
static int accept_late(struct tp_work *w, struct tp_now now, struct tp_err *err)
{
    unsigned long long lost = w->result.adjust.stored;
    struct tp_stream *s = w->stream;
    char before[sizeof(s->damage)];
    int rc = TP_OK;

    memcpy(before, s->damage, sizeof(before));
    if (lost > 0) {
        snprintf(s->damage, sizeof(s->damage),
                 "%llu events could not be read when it was sealed%s%.60s", lost,
                 before[0] == '\0' ? "" : "; ", before);
        rc = worsen(w, now, err);
    }
    if (rc == TP_OK)
        rc = accept_result(w, err);
    if (rc != TP_OK)
        memcpy(s->damage, before, sizeof(before));
    else if (s->damage[0] != '\0')
        count_types(w, now);
    return rc;
}

/* Whether to seal the log again later. That of a complete trace can be read as well,
 * and waits as long as what is missing (room, memory, descriptors, the medium, the
 * store) is not there; only a log that is damaged or gone makes its stream fail. */
static bool may_retry(const struct tp_work *w)
{
    const bool is_scarce = w->rc == TP_EQUOTA || w->rc == TP_ENOMEM;

    if (w->trace->is_unsealed && (is_scarce || w->rc == TP_EIO))
        return true;
    return w->stream->n_tries < (is_scarce ? TRIES_FULL : TRIES) && w->rc != TP_EINVAL;
}

/* Try again later, or give the stream up: its log stays, its events are not readable.
 * */
static void refuse_result(struct tp_work *w, struct tp_now now)
{
    struct tp_stream *s = w->stream;
    struct tp_err ignored;

    w->e->stats.seal_failures++;
    s->n_tries++;
    s->retry_ns = now.mono_ns +
                  (s->n_tries < TRIES_MAX ? s->n_tries : TRIES_MAX) * TP_RETRY_NS;
    if (may_retry(w))
        return;
    s->state = TP_STREAM_FAILED;
    snprintf(s->reason, sizeof(s->reason), "%.150s", w->err.message);
    s->counts.dropped[TP_DROP_DAMAGED] += s->counts.stored;
    s->counts.stored = s->counts.repaired = s->counts.untyped = 0;
    if (w->trace->is_unsealed) {
        memcpy(s->damage, s->reason, sizeof(s->damage));
        worsen(w, now, &ignored);
        count_types(w, now);
    }
    tp_persist_stream(w->e, s, &ignored);
}

/* What became of a seal that was run. The lock is held. */
static void take_back(struct tp_work *w, struct tp_now now)
{
    struct tp_trace *t = w->trace;

    if (w->rc == TP_OK)
        w->rc = t->is_unsealed ? accept_late(w, now, &w->err)
                               : accept_result(w, &w->err);
    if (w->rc != TP_OK)
        refuse_result(w, now);
    else if (!tp_stream_blobs_drop_log(w->stream))
        w->e->stats.blob_failures++;
    tp_life_touch(t);
    if (t->is_unsealed && !tp_settle_is_unsealed(t))
        tp_settle_forget(t);
}

void tp_engine_work_done(struct tp_engine *e, struct tp_work *w, struct tp_now now)
{
    struct tp_trace *t = w->trace;

    tp_lock_take(&e->lock);
    w->stream->is_working = false;
    t->n_working--;
    if (w->was_run && (t->session.state == TP_SESSION_STOPPING || t->is_unsealed))
        take_back(w, now);
    /* It was deleted while it was sealed: what was written since goes as well. */
    if (t->is_deleted && t->n_working == 0)
        tp_stream_blobs_remove(t);
    tp_life_advance(t, now);
    tp_trace_unref(t);
    tp_lock_tell(&e->sealed);
    tp_lock_give(&e->lock);
    tp_seal_result_fini(&w->result);
    free(w);
}
