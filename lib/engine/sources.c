/*
 * A copy of what is to be read is made under the lock; the blobs are opened after it.
 * When one is gone by then (the log of a stream that was sealed meanwhile, or all of a
 * deleted trace), a fresh copy tells what is there now.
 */
#include "engine/sources.h"

#include <stdlib.h>

#include "base/err.h"
#include "engine/make_view.h"
#include "engine/objects.h"
#include "engine/problem.h"
#include "engine/seal_work.h"
#include "engine/stream_blobs.h"
#include "engine/window.h"

#define TRIES 5
#define SNAPSHOT_BYTES ((uint64_t)16 << 20) /* a download has less memory than a seal */
#define INDEX_BYTES_MAX ((uint64_t)1 << 30)

static int by_rank(const void *a, const void *b)
{
    const struct tp_stream_view *x = ((const struct tp_source *)a)->view;
    const struct tp_stream_view *y = ((const struct tp_source *)b)->view;
    /* Without a rank behind those with one. */
    uint64_t rx = (uint64_t)x->who.rank, ry = (uint64_t)y->who.rank;

    if (rx != ry)
        return rx < ry ? -1 : 1;
    return x->no < y->no ? -1 : x->no > y->no;
}

/* Which of the streams have something to read, with the lock held. */
static int copy_streams(const struct tp_trace *t, struct tp_sources *out,
                        struct tp_err *err)
{
    out->items = calloc(out->view->n_streams + 1, sizeof(*out->items));
    if (out->items == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the streams of trace %s", t->id);
    for (size_t i = 0; i < out->view->n_streams; i++) {
        const struct tp_stream_view *v = &out->view->streams[i];
        const struct tp_stream *s = t->streams[v->no - 1];
        struct tp_source *item = &out->items[out->n_items];

        item->view = v;
        item->is_sealed = s->state == TP_STREAM_SEALED;
        item->log_bytes = s->log_bytes;
        item->window = tp_window_of(s, t->engine->seen);
        if (item->is_sealed || (s->state != TP_STREAM_FAILED && s->log_bytes > 0))
            out->n_items++;
    }
    qsort(out->items, out->n_items, sizeof(*out->items), by_rank);
    return TP_OK;
}

static int check_state(const struct tp_trace *t, struct tp_problem *problem,
                       struct tp_err *err)
{
    if (t->session.state == TP_SESSION_CANCELLED)
        return tp_problem_state(problem, t->id, tp_trace_state_name(t),
                                "there is nothing to download", err);
    for (size_t i = 0; i < t->n_streams; i++) {
        if (t->streams[i]->state != TP_STREAM_HIDDEN &&
            t->streams[i]->state != TP_STREAM_FAILED)
            return TP_OK;
    }
    if (t->session.state == TP_SESSION_FAILED)
        return tp_problem_state(problem, t->id, tp_trace_state_name(t),
                                "there is nothing to download", err);
    return TP_OK;
}

static int copy_trace(struct tp_engine *e, struct tp_str id, struct tp_sources *out,
                      struct tp_problem *problem, struct tp_err *err)
{
    struct tp_trace *t;
    int rc;

    tp_lock_take(&e->lock);
    rc = tp_trace_find(e, id, &t, problem, err);
    if (rc == TP_OK)
        rc = check_state(t, problem, err);
    if (rc == TP_OK)
        rc = tp_make_view(t, TP_VIEW_FULL, &out->view, err);
    if (rc == TP_OK)
        rc = copy_streams(t, out, err);
    if (rc == TP_OK) {
        out->registry = t->job->registry;
        out->n_types = tp_registry_entries(t->job->registry, out->types);
        /* What registered later is not of this trace. */
        if (out->n_types > t->n_types)
            out->n_types = t->n_types;
    }
    tp_lock_give(&e->lock);
    return rc;
}

static int read_index(struct tp_engine *e, const char *name,
                      struct tp_stream_index *out, struct tp_err *err)
{
    const struct tp_blobs *blobs = e->opts.blobs;
    struct tp_blob *blob = NULL;
    char *text = NULL;
    size_t got = 0;
    uint64_t size;
    int rc = blobs->open_read(blobs->ctx, name, &blob, err);

    if (rc != TP_OK)
        return rc;
    size = blobs->size(blob);
    if (size > INDEX_BYTES_MAX)
        rc = tp_fail(err, TP_EIO, "the index %s is too long", name);
    if (rc == TP_OK) {
        text = malloc((size_t)size + 1);
        rc = text == NULL ? tp_fail(err, TP_ENOMEM, "no memory for the index %s", name)
                          : blobs->pread(blob, 0, text, (size_t)size, &got, err);
    }
    if (rc == TP_OK)
        rc = tp_stream_index_read(text, got, out, err);
    if (rc == TP_EINVAL)
        rc = tp_fail(err, TP_EIO, "the index %s is damaged", name);
    blobs->close(blobs->ctx, blob);
    free(text);
    return rc;
}

static int open_sealed(struct tp_engine *e, const char *id, struct tp_source *s,
                       struct tp_err *err)
{
    const struct tp_blobs *blobs = e->opts.blobs;
    char name[TP_BLOB_NAME_BYTES];
    int rc;

    tp_stream_blob_name(id, s->view->no, TP_BLOB_INDEX, name);
    rc = read_index(e, name, &s->ix, err);
    if (rc != TP_OK)
        return rc;
    tp_stream_blob_name(id, s->view->no, TP_BLOB_SEALED, name);
    return blobs->open_read(blobs->ctx, name, &s->blob, err);
}

static int seal_snapshot(struct tp_sources *out, struct tp_source *s,
                         struct tp_err *err)
{
    char name[TP_BLOB_NAME_BYTES];
    struct tp_seal_opts opts = {
        .blobs = out->e->opts.blobs,
        .log_name = name,
        .log_bytes = s->log_bytes,
        .stream_no = s->view->no,
        .min_duration_ns = tp_filter_min_duration_ns(out->view->filter),
        .window = s->window,
        .limits = &out->e->limits,
        .memory_bytes = out->e->limits.spill_bytes < SNAPSHOT_BYTES
                            ? out->e->limits.spill_bytes
                            : SNAPSHOT_BYTES,
    };

    tp_stream_blob_name(out->view->id, s->view->no, TP_BLOB_LOG, name);
    return tp_seal_run(&opts, &s->result, err);
}

static int open_items(struct tp_sources *out, struct tp_err *err)
{
    int rc = TP_OK;

    for (size_t i = 0; i < out->n_items && rc == TP_OK; i++) {
        struct tp_source *s = &out->items[i];

        rc = s->is_sealed ? open_sealed(out->e, out->view->id, s, err)
                          : seal_snapshot(out, s, err);
    }
    return rc;
}

static bool has_snapshots(const struct tp_sources *s)
{
    for (size_t i = 0; i < s->n_items; i++) {
        if (!s->items[i].is_sealed)
            return true;
    }
    return false;
}

bool tp_sources_may_change(const struct tp_sources *s)
{
    return s->view->is_active ||
           (strcmp(s->view->state, tp_session_state_name(TP_SESSION_COMPLETE)) == 0 &&
            has_snapshots(s));
}

static int take_snapshot_place(struct tp_engine *e, struct tp_problem *problem,
                               struct tp_err *err)
{
    int rc = TP_OK;

    tp_lock_take(&e->lock);
    if (e->n_snapshots >= e->limits.live_downloads)
        rc = tp_problem_limit(problem, "max-live-downloads", "downloads",
                              e->limits.live_downloads, e->n_snapshots + 1, err);
    else
        e->n_snapshots++;
    tp_lock_give(&e->lock);
    return rc;
}

/* Copy a trace. One that is complete is sealed first, so that its downloads are the
 * same for ever; where that fails, its log is read as that of an active one. */
static int copy_sealed(struct tp_engine *e, struct tp_str id, struct tp_sources *out,
                       struct tp_problem *problem, struct tp_err *err)
{
    int rc = copy_trace(e, id, out, problem, err);

    if (rc != TP_OK || !tp_sources_may_change(out) || out->view->is_active)
        return rc;
    tp_work_finish_trace(e, out->view->id);
    tp_sources_fini(out);
    out->e = e;
    return copy_trace(e, id, out, problem, err);
}

/* Open what the copy names; snapshots of active traces are limited in number. */
static int open_copy(struct tp_sources *out, struct tp_problem *problem,
                     struct tp_err *err)
{
    bool takes_place = has_snapshots(out);
    int rc = takes_place ? take_snapshot_place(out->e, problem, err) : TP_OK;

    if (rc != TP_OK)
        return rc;
    rc = open_items(out, err);
    if (takes_place) {
        tp_lock_take(&out->e->lock);
        out->e->n_snapshots--;
        tp_lock_give(&out->e->lock);
    }
    return rc;
}

int tp_sources_open(struct tp_engine *e, struct tp_str trace_id, struct tp_sources *out,
                    struct tp_problem *problem, struct tp_err *err)
{
    int rc = TP_OK;

    for (int i = 0; i < TRIES; i++) {
        tp_sources_fini(out);
        out->e = e;
        rc = copy_sealed(e, trace_id, out, problem, err);
        if (rc != TP_OK)
            return rc;
        rc = open_copy(out, problem, err);
        if (rc != TP_ENOTFOUND)
            break;
    }
    if (rc == TP_ENOTFOUND)
        rc = tp_fail(err, TP_EIO, "the data of trace %s is not there", out->view->id);
    if (rc != TP_OK)
        return tp_problem_storage(problem, rc);
    return tp_sources_describe(out, err);
}

struct tp_blob *tp_source_blob(const struct tp_source *s)
{
    return s->is_sealed ? s->blob : s->result.blob;
}

const struct tp_stream_index *tp_source_index(const struct tp_source *s)
{
    return s->is_sealed ? &s->ix : &s->result.index;
}

void tp_sources_fini(struct tp_sources *s)
{
    for (size_t i = 0; i < s->n_items; i++) {
        struct tp_source *item = &s->items[i];

        s->e->opts.blobs->close(s->e->opts.blobs->ctx, item->blob);
        tp_stream_index_fini(&item->ix);
        tp_seal_result_fini(&item->result);
    }
    free(s->items);
    free(s->producers);
    free(s->filter_json);
    free(s->service);
    tp_trace_view_free(s->view);
    memset(s, 0, sizeof(*s));
}
