/*
 * Seals. What is written while no lock is held, and in which order things become true:
 *
 *   run    <no>.pftrace and <no>.index are written, each replaced when it is there
 *   done   the row says "sealed", with the counts that the seal has corrected
 *          the log is removed
 *
 * A kill before the row leaves a log, which is sealed again; a kill behind it leaves a
 * log that the next start removes.
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
#include "engine/source_rank.h"
#include "engine/stream_blobs.h"
#include "trace/seal.h"

#define TRIES 3
#define TRIES_FULL 11 /* on a full disk: in nearly a minute it may get room */

struct tp_work {
    struct tp_engine *e;
    struct tp_trace *trace; /* referred to */
    struct tp_stream *stream;
    uint64_t min_duration_ns;
    char names[TP_BLOB_KINDS][TP_BLOB_NAME_BYTES];
    bool has_no_batch; /* all that was sent was refused: there may be no log */
    bool was_run;
    int rc;
    struct tp_err err;
    struct tp_seal_result result;
    uint64_t index_bytes;
};

/* The next stream of a trace that wants its seal now, or NULL. */
static struct tp_stream *next_stream(const struct tp_trace *t, struct tp_now now)
{
    if (t->session.state != TP_SESSION_STOPPING || !t->is_sealing)
        return NULL;
    for (size_t i = 0; i < t->n_streams; i++) {
        struct tp_stream *s = t->streams[i];

        if (s->state == TP_STREAM_SEALING && !s->is_working &&
            s->retry_ns <= now.mono_ns)
            return s;
    }
    return NULL;
}

/* Of the oldest trace first. The lock is held. */
static struct tp_stream *find_stream(struct tp_engine *e, struct tp_now now)
{
    struct tp_stream *found = NULL;
    struct tp_trace *t;
    size_t cursor = 0;

    while ((t = tp_trace_next_active(e, &cursor)) != NULL) {
        struct tp_stream *s = next_stream(t, now);

        if (s != NULL && (found == NULL || strcmp(t->id, found->trace->id) < 0))
            found = s;
    }
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

struct tp_work *tp_engine_next_work(struct tp_engine *e, struct tp_now now)
{
    struct tp_work *w = calloc(1, sizeof(*w));
    struct tp_stream *s;

    if (w == NULL)
        return NULL;
    tp_lock_take(&e->lock);
    s = find_stream(e, now);
    if (s != NULL) {
        w->e = e;
        w->stream = s;
        w->trace = s->trace;
        w->min_duration_ns = s->trace->spec.min_duration_ns;
        w->has_no_batch = s->batches == 0;
        for (int i = 0; i < TP_BLOB_KINDS; i++)
            tp_stream_blob_name(s->trace->id, s->no, (enum tp_blob_kind)i, w->names[i]);
        tp_trace_ref(s->trace);
        s->trace->n_working++;
        s->is_working = true;
        tp_stream_blobs_close(s);
    }
    tp_lock_give(&e->lock);
    if (s == NULL) {
        free(w);
        return NULL;
    }
    return w;
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

/* Add to what is stored of a type. Without memory the type lacks its number, and its
 * events count as lost. */
static void add_stored(struct tp_member *m, unsigned id, uint64_t n)
{
    struct tp_type_count *count;
    struct tp_err ignored;

    if (n > 0 && tp_type_counts_get(&m->types, id, &count, &ignored) == TP_OK)
        count->stored += n;
}

/* What its producer reports by type gets what is stored: of each type, and of none, as
 * are the names of its process and threads. The lock is held. */
static void take_types(struct tp_work *w)
{
    const struct tp_stream_index *ix = &w->result.index;
    struct tp_member *m = tp_member_of_stream(w->trace, w->stream->no);
    uint64_t rest = w->stream->counts.stored;

    if (m == NULL || m->types.n == 0 || w->trace->types == NULL)
        return;
    for (size_t i = 0; i < m->types.n; i++)
        m->types.items[i].stored = 0;
    for (size_t i = 0; i < ix->n_types; i++) {
        const uint64_t n = ix->types[i].count < rest ? ix->types[i].count : rest;
        int id = tp_typemap_find(w->trace->types, ix->types[i].cat.ptr,
                                 ix->types[i].cat.len);

        if (id < 0)
            continue;
        add_stored(m, (unsigned)id, n);
        rest -= n;
    }
    add_stored(m, TP_ACTIVITY_UNTYPED, rest);
    m->is_dirty = true;
}

/* The row first, then the log. The lock is held. */
static int accept_result(struct tp_work *w, struct tp_err *err)
{
    struct tp_stream *s = w->stream;
    struct tp_counts before = s->counts;
    int rc;

    take_result(w);
    s->state = TP_STREAM_SEALED;
    rc = tp_persist_stream(w->e, s, err);
    if (rc != TP_OK) {
        s->counts = before;
        s->state = TP_STREAM_SEALING;
        return rc;
    }
    take_types(w);
    w->e->stats.seals++;
    w->e->stats.sealed_events += w->result.index.n_events;
    return TP_OK;
}

/* Try again later, or give the stream up: its log stays, its events are not readable.
 * */
static void refuse_result(struct tp_work *w, struct tp_now now)
{
    const unsigned most = w->rc == TP_EQUOTA ? TRIES_FULL : TRIES;
    struct tp_stream *s = w->stream;
    struct tp_err ignored;

    w->e->stats.seal_failures++;
    s->n_tries++;
    s->retry_ns = now.mono_ns + s->n_tries * TP_RETRY_NS;
    if (s->n_tries < most && w->rc != TP_EINVAL)
        return;
    s->state = TP_STREAM_FAILED;
    snprintf(s->reason, sizeof(s->reason), "%.150s", w->err.message);
    s->counts.dropped[TP_DROP_DAMAGED] += s->counts.stored;
    s->counts.stored = s->counts.repaired = s->counts.untyped = 0;
    tp_persist_stream(w->e, s, &ignored);
}

void tp_engine_work_done(struct tp_engine *e, struct tp_work *w, struct tp_now now)
{
    struct tp_stream *s = w->stream;
    struct tp_trace *t = w->trace;

    tp_lock_take(&e->lock);
    s->is_working = false;
    t->n_working--;
    if (w->was_run && t->session.state == TP_SESSION_STOPPING) {
        if (w->rc == TP_OK)
            w->rc = accept_result(w, &w->err);
        if (w->rc != TP_OK)
            refuse_result(w, now);
        else if (!tp_stream_blobs_drop_log(s))
            e->stats.blob_failures++;
        tp_life_touch(t);
    }
    tp_life_advance(t, now);
    tp_trace_unref(t);
    tp_lock_give(&e->lock);
    tp_seal_result_fini(&w->result);
    free(w);
}
