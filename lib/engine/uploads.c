/*
 * The way of a batch:
 *
 *   begin    control lock: which trace, which stream (its number goes into the packets)
 *   feed     no lock: inflate, read, filter, encode (trace/ingest.h)
 *   commit   control lock: may it still go in?   -> n_committing
 *            quota
 *            stream's lock: append the frame
 *            control lock: first row of the stream, counts, limit of the trace
 *
 * A trace is not sealed while n_committing is above 0, so that what passed the first
 * check is in the log when the seal reads it. It waits for uploads that were begun,
 * too, but no longer than its deadline.
 */
#include "engine/uploads.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/utf8.h"
#include "engine/check.h"
#include "engine/life.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/problem.h"
#include "engine/stream_blobs.h"
#include "engine/streams.h"
#include "engine/upload_form.h"
#include "trace/frame.h"
#include "trace/ingest.h"

#define FILE_NAME_BYTES 255
#define NAME_BYTES 127

struct tp_upload {
    struct tp_engine *e;
    struct tp_trace *trace; /* referred to */
    struct tp_stream *stream;
    struct tp_filter *filter; /* referred to */
    struct tp_typemap *types; /* referred to */
    enum tp_upload_kind kind;
    enum tp_upload_form form;
    enum tp_upload_encoding encoding;
    bool has_seq;
    uint64_t seq;
    struct tp_ingest *ingest; /* made with the first bytes, which tell the form */
    const struct tp_ingest_result *result;
    uint64_t received_bytes;
    int failed; /* TP_OK, or what every further call answers */
    struct tp_err failure;
    struct tp_problem problem;
    struct tp_now begun;
    bool is_detached; /* no longer counted in n_uploads of the trace */
    bool is_over;     /* committed or refused: only to be freed */
};

static int check_request(struct tp_engine *e, const struct tp_upload_request *r,
                         struct tp_problem *problem, struct tp_err *err)
{
    int rc = tp_check_rank(r->rank, problem, err);

    if (rc == TP_OK)
        rc = tp_check_text("producer", r->producer, "producer name", NAME_BYTES,
                           problem, err);
    if (rc == TP_OK)
        rc = tp_check_text("host", r->host, "max-label-bytes", e->limits.label_bytes,
                           problem, err);
    if (rc == TP_OK)
        rc = tp_check_text("name", r->file_name, "file name", FILE_NAME_BYTES, problem,
                           err);
    return rc;
}

static bool takes_data(const struct tp_trace *t)
{
    int state = t->session.state;

    return (state == TP_SESSION_RECORDING || state == TP_SESSION_STOPPING) &&
           !t->is_sealing;
}

static int refuse(struct tp_trace *t, uint64_t n_events, struct tp_problem *problem,
                  struct tp_err *err)
{
    t->engine->stats.refused_batches++;
    if (t->session.state != TP_SESSION_PREPARED) {
        t->late_batches++;
        t->late_events += n_events;
        tp_life_touch(t);
    }
    return tp_problem_state(problem, t->id, tp_trace_state_name(t),
                            "the trace takes no data", err);
}

/* Who sends, as far as the request says; a file without any name is called as the file
 * is. */
static struct tp_row_identity sender(const struct tp_upload_request *r, char *name,
                                     size_t size)
{
    struct tp_row_identity who = {
        .name = r->producer,
        .kind = tp_str_of("http"),
        .host = r->host,
        .rank = r->rank,
        .pid = r->pid,
        .world_size = r->world_size,
    };

    if (who.name.len == 0 && r->kind == TP_UPLOAD_FILE && r->rank < 0)
        who.name = tp_utf8_cut(r->file_name, NAME_BYTES);
    if (who.name.len == 0)
        who.name = tp_default_producer_name(r->rank, name, size);
    return who;
}

/* Tie an upload to its trace and stream. The control lock is held. */
static int attach(struct tp_upload *u, struct tp_str trace_id,
                  const struct tp_upload_request *r, struct tp_problem *problem,
                  struct tp_err *err)
{
    char name[32];
    struct tp_row_identity who = sender(r, name, sizeof(name));
    struct tp_trace *t;
    int rc = tp_trace_find(u->e, trace_id, &t, problem, err);

    if (rc != TP_OK)
        return rc;
    if (!takes_data(t))
        return refuse(t, 0, problem, err);
    tp_streams_identify(t->job, u->e, &who);
    if (r->kind == TP_UPLOAD_FILE)
        rc = tp_streams_for_file(t, &who, r->file_name, &u->stream, problem, err);
    else
        rc = tp_streams_for_events(t, &who, &u->stream, problem, err);
    if (rc != TP_OK)
        return rc;
    u->trace = t;
    u->filter = tp_filter_ref(t->filter);
    u->types = tp_typemap_ref(t->types);
    tp_trace_ref(t);
    t->n_uploads++;
    u->stream->n_uploads++;
    return TP_OK;
}

int tp_engine_upload_begin(struct tp_engine *e, struct tp_str trace_id,
                           const struct tp_upload_request *request, struct tp_now now,
                           struct tp_upload **out, struct tp_problem *problem,
                           struct tp_err *err)
{
    struct tp_upload *u;
    int rc;

    tp_problem_clear(problem);
    rc = check_request(e, request, problem, err);
    if (rc != TP_OK)
        return rc;
    u = calloc(1, sizeof(*u));
    if (u == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for an upload");
    u->e = e;
    u->begun = now;
    u->kind = request->kind;
    u->form = request->form;
    u->encoding = request->encoding;
    u->has_seq = request->has_seq && request->kind == TP_UPLOAD_EVENTS;
    u->seq = request->seq;
    tp_lock_take(&e->lock);
    rc = attach(u, trace_id, request, problem, err);
    tp_lock_give(&e->lock);
    if (rc != TP_OK) {
        free(u);
        return rc;
    }
    *out = u;
    return TP_OK;
}

/* Keep a failure for all further calls. */
static int fail(struct tp_upload *u, int rc, struct tp_problem *problem,
                struct tp_err *err)
{
    u->failed = rc;
    if (err != NULL)
        u->failure = *err;
    if (problem != NULL)
        u->problem = *problem;
    return rc;
}

static int same_failure(const struct tp_upload *u, struct tp_problem *problem,
                        struct tp_err *err)
{
    if (err != NULL)
        *err = u->failure;
    if (problem != NULL)
        *problem = u->problem;
    return u->failed;
}

static int new_ingest(struct tp_upload *u, const void *p, size_t n, struct tp_err *err)
{
    static const enum tp_ingest_encoding encodings[] = {
        [TP_ENCODING_IDENTITY] = TP_INGEST_IDENTITY,
        [TP_ENCODING_GZIP] = TP_INGEST_GZIP,
        [TP_ENCODING_SNIFF] = TP_INGEST_AUTO,
    };
    struct tp_ingest_opts opts = {
        .form = tp_upload_ingest_form(u->form, u->stream->file_name, p, n),
        .encoding = encodings[u->encoding],
        .salvage = u->kind == TP_UPLOAD_FILE,
        .stream_no = u->stream->no,
        .filter = u->filter,
        .types = u->types,
        .limits = &u->e->limits,
        .blobs = u->e->opts.blobs,
    };

    return tp_ingest_new(&opts, &u->ingest, err);
}

/* The reader's failure as a problem: what is wrong with the body, or which limit. */
static int explain(struct tp_upload *u, int rc, struct tp_problem *problem,
                   const struct tp_err *err)
{
    if (problem == NULL)
        return rc;
    tp_problem_clear(problem);
    if (rc == TP_EINVAL) {
        problem->kind = TP_PROBLEM_DAMAGED_BODY;
        problem->has_offset = tp_upload_offset(err, &problem->offset);
    } else if (rc == TP_EQUOTA) {
        bool is_file = u->kind == TP_UPLOAD_FILE;

        problem->kind = TP_PROBLEM_LIMIT_EXCEEDED;
        snprintf(problem->limit_name, sizeof(problem->limit_name), "%s",
                 is_file ? "max-file-inflated-bytes" : "max-events-body-bytes");
        snprintf(problem->limit_unit, sizeof(problem->limit_unit), "bytes");
        problem->limit_max = is_file ? u->e->limits.file_inflated_bytes
                                     : u->e->limits.events_body_bytes;
    }
    return tp_problem_storage(problem, rc);
}

static int check_size(struct tp_upload *u, size_t n, struct tp_problem *problem,
                      struct tp_err *err)
{
    bool is_file = u->kind == TP_UPLOAD_FILE;
    uint64_t most = is_file ? u->e->limits.file_bytes : u->e->limits.events_body_bytes;

    u->received_bytes += n;
    if (u->received_bytes <= most)
        return TP_OK;
    return tp_problem_limit(problem,
                            is_file ? "max-file-bytes" : "max-events-body-bytes",
                            "bytes", most, u->received_bytes, err);
}

int tp_upload_feed(struct tp_upload *u, const void *p, size_t n,
                   struct tp_problem *problem, struct tp_err *err)
{
    struct tp_err local;
    int rc = TP_OK;

    err = err == NULL ? &local : err;
    if (u->failed != TP_OK)
        return same_failure(u, problem, err);
    tp_problem_clear(problem);
    rc = check_size(u, n, problem, err);
    if (rc != TP_OK)
        return fail(u, rc, problem, err);
    if (u->ingest == NULL)
        rc = new_ingest(u, p, n, err);
    if (rc == TP_OK)
        rc = tp_ingest_feed(u->ingest, p, n, err);
    if (rc == TP_OK)
        return TP_OK;
    return fail(u, explain(u, rc, problem, err), problem, err);
}

static int finish_body(struct tp_upload *u, struct tp_problem *problem,
                       struct tp_err *err)
{
    int rc = TP_OK;

    if (u->failed != TP_OK)
        return same_failure(u, problem, err);
    if (u->ingest == NULL)
        rc = new_ingest(u, NULL, 0, err);
    if (rc == TP_OK)
        rc = tp_ingest_finish(u->ingest, &u->result, err);
    if (rc == TP_OK)
        return TP_OK;
    return fail(u, explain(u, rc, problem, err), problem, err);
}

/* The first check: from here to end_commit() the trace is not sealed. */
static int begin_commit(struct tp_upload *u, struct tp_problem *problem,
                        struct tp_err *err)
{
    struct tp_trace *t = u->trace;
    int rc = TP_OK;

    tp_lock_take(&u->e->lock);
    if (takes_data(t))
        t->n_committing++;
    else
        rc = refuse(t, u->result->counts.emitted, problem, err);
    tp_lock_give(&u->e->lock);
    return rc;
}

static void count_batch(struct tp_upload *u)
{
    struct tp_engine_stats *stats = &u->e->stats;
    const struct tp_counts *c = &u->result->counts;

    if (u->kind == TP_UPLOAD_FILE)
        stats->files++;
    else
        stats->batches++;
    stats->uploaded_bytes += u->received_bytes;
    stats->events_posted += c->emitted;
    stats->events_stored += c->stored;
    stats->events_filtered += c->filtered;
    stats->events_dropped += tp_counts_dropped(c);
    stats->events_repaired += c->repaired;
    stats->events_untyped += c->untyped;
}

static void note_damage(struct tp_stream *s, const struct tp_ingest_result *r)
{
    if (r->damages > 0 || r->is_truncated)
        tp_upload_damage(r, s->damage, sizeof(s->damage));
}

/* Make a stream known with its first batch: its row is there before the batch is
 * acknowledged. The control lock is held. */
static int reveal(struct tp_stream *s, struct tp_err *err)
{
    int rc;

    if (s->state != TP_STREAM_HIDDEN)
        return TP_OK;
    s->state = TP_STREAM_OPEN;
    rc = tp_persist_stream(s->trace->engine, s, err);
    if (rc != TP_OK)
        s->state = TP_STREAM_HIDDEN;
    else
        tp_streams_tie(s);
    return rc;
}

/* What is appended becomes part of the trace. The control lock is held. */
static void add_batch(struct tp_upload *u, bool is_duplicate)
{
    struct tp_stream *s = u->stream;
    struct tp_counts counts = u->result->counts;

    if (is_duplicate) {
        s->duplicates++;
        u->e->stats.duplicate_batches++;
    } else {
        counts.bytes = u->result->payload_bytes + TP_FRAME_BYTES;
        tp_counts_add(&s->counts, &counts);
        s->log_bytes = tp_stream_blobs_log_bytes(s);
        s->batches++;
        u->e->stats.log_bytes += counts.bytes;
        count_batch(u);
    }
    tp_life_touch(u->trace);
}

static void stop_when_full(struct tp_trace *t, struct tp_now now)
{
    char cause[TP_SESSION_CAUSE_BYTES];
    struct tp_err ignored;

    if (t->session.state != TP_SESSION_RECORDING ||
        tp_quota_used(&t->quota) < t->quota.limit)
        return;
    snprintf(cause, sizeof(cause), "max_bytes reached: %llu",
             (unsigned long long)t->quota.limit);
    /* When the store refuses, the next batch tries again; it will not fit either. */
    tp_life_stop(t, cause, now, &ignored);
}

/* Room for the batch in the trace. What does not fit is counted where it would have
 * been, and the trace stops: it is full. */
static int charge(struct tp_upload *u, struct tp_now now, struct tp_problem *problem,
                  struct tp_err *err)
{
    struct tp_trace *t = u->trace;
    uint64_t n = u->result->payload_bytes, used = tp_quota_used(&t->quota);
    struct tp_err ignored;
    int rc = tp_quota_charge(&t->quota, n, err);

    if (rc == TP_OK)
        return TP_OK;
    rc = tp_problem_limit(problem, t->quota.name, "bytes", t->quota.limit, used + n,
                          err);
    if (u->kind == TP_UPLOAD_FILE)
        return rc;
    tp_lock_take(&u->e->lock);
    if (reveal(u->stream, &ignored) == TP_OK) {
        struct tp_counts lost = {.emitted = u->result->counts.emitted};

        lost.dropped[TP_DROP_OVER_LIMIT] = lost.emitted;
        tp_counts_add(&u->stream->counts, &lost);
        u->e->stats.events_posted += lost.emitted;
        u->e->stats.events_dropped += lost.emitted;
        tp_persist_stream(u->e, u->stream, &ignored);
    }
    u->e->stats.refused_batches++;
    if (t->session.state == TP_SESSION_RECORDING)
        tp_life_stop(t, "max_bytes reached: the next batch does not fit", now,
                     &ignored);
    tp_lock_give(&u->e->lock);
    return rc;
}

static void fill_reply(const struct tp_upload *u, const struct tp_counts *c,
                       bool is_duplicate, struct tp_upload_reply *reply)
{
    const struct tp_ingest_result *r = u->result;

    memset(reply, 0, sizeof(*reply));
    reply->is_duplicate = is_duplicate;
    reply->stream_no = u->stream->no;
    snprintf(reply->producer, sizeof(reply->producer), "%s", u->stream->who.name);
    reply->rank = u->stream->who.rank;
    reply->posted = c->emitted;
    reply->accepted = c->stored;
    reply->filtered = c->filtered;
    reply->rejected = c->dropped[TP_DROP_MALFORMED] +
                      c->dropped[TP_DROP_EVENT_TOO_LARGE];
    reply->repaired = c->repaired;
    reply->untyped = c->untyped;
    memcpy(reply->dropped, c->dropped, sizeof(reply->dropped));
    snprintf(reply->first_reason, sizeof(reply->first_reason), "%s",
             r->first_rejection);
    reply->is_truncated = r->is_truncated;
    if (r->damages > 0 || r->is_truncated)
        tp_upload_damage(r, reply->damage, sizeof(reply->damage));
}

/* The appended batch, or what became of it, under the control lock. */
static int account(struct tp_upload *u, int rc, bool is_duplicate, struct tp_now now,
                   struct tp_err *err)
{
    struct tp_stream *s = u->stream;

    tp_lock_take(&u->e->lock);
    if (rc == TP_OK && !is_duplicate && u->kind == TP_UPLOAD_FILE)
        note_damage(s, u->result);
    if (rc == TP_OK) {
        rc = reveal(s, err);
        if (rc != TP_OK)
            tp_stream_blobs_drop_log(s);
    } else if (rc == TP_EIO || rc == TP_EQUOTA) {
        u->e->stats.blob_failures++;
    }
    if (rc != TP_OK || is_duplicate)
        tp_quota_release(&u->trace->quota, u->result->payload_bytes);
    if (rc == TP_OK) {
        add_batch(u, is_duplicate);
        stop_when_full(u->trace, now);
    }
    tp_lock_give(&u->e->lock);
    return rc;
}

/* Append and account; n_committing is held. */
static int store_batch(struct tp_upload *u, struct tp_now now, struct tp_counts *counts,
                       bool *is_duplicate, struct tp_problem *problem,
                       struct tp_err *err)
{
    struct tp_stream *s = u->stream;
    int rc = charge(u, now, problem, err);

    if (rc != TP_OK)
        return rc;
    tp_lock_take(&s->lock);
    rc = tp_stream_blobs_append(s, u->result, u->has_seq, u->seq, counts, is_duplicate,
                                err);
    rc = account(u, rc, *is_duplicate, now, err);
    tp_lock_give(&s->lock);
    /* A number that is too old to tell is the request's fault, not the trace's. */
    if (rc == TP_ESTATE && err != NULL)
        err->code = TP_EINVAL;
    if (rc == TP_ESTATE)
        return tp_problem_invalid(problem, "seq", TP_EINVAL);
    return tp_problem_storage(problem, rc);
}

int tp_upload_commit(struct tp_upload *u, struct tp_now now,
                     struct tp_upload_reply *reply, struct tp_problem *problem,
                     struct tp_err *err)
{
    struct tp_counts counts = {0};
    bool is_duplicate = false;
    struct tp_err local;
    int rc;

    err = err == NULL ? &local : err;
    tp_problem_clear(problem);
    if (u->is_over)
        return tp_fail(err, TP_ESTATE, "the upload is over");
    rc = finish_body(u, problem, err);
    u->is_over = true;
    if (rc == TP_OK)
        rc = begin_commit(u, problem, err);
    if (rc != TP_OK)
        return rc;
    rc = store_batch(u, now, &counts, &is_duplicate, problem, err);
    if (rc == TP_OK)
        fill_reply(u, &counts, is_duplicate, reply);
    tp_lock_take(&u->e->lock);
    u->trace->n_committing--;
    u->trace->n_uploads--;
    u->is_detached = true;
    tp_life_advance(u->trace, now);
    tp_lock_give(&u->e->lock);
    return rc;
}

void tp_upload_free(struct tp_upload *u)
{
    if (u == NULL)
        return;
    tp_ingest_free(u->ingest);
    tp_lock_take(&u->e->lock);
    u->stream->n_uploads--;
    if (!u->is_detached) {
        u->trace->n_uploads--;
        /* The trace may have waited for this one only. */
        tp_life_advance(u->trace, u->begun);
    }
    tp_filter_unref(u->filter);
    tp_typemap_unref(u->types);
    tp_trace_unref(u->trace);
    tp_lock_give(&u->e->lock);
    free(u);
}
