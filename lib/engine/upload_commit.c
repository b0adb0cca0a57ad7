/*
 * The second half of an upload: see uploads.c for the whole way.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "engine/life.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/problem.h"
#include "engine/refusals.h"
#include "engine/settle.h"
#include "engine/stream_blobs.h"
#include "engine/streams.h"
#include "engine/upload_form.h"
#include "engine/upload_state.h"
#include "engine/uploads.h"
#include "engine/window.h"
#include "trace/frame.h"

/* The first check: from here to end_commit() the trace is not sealed. */
static int begin_commit(struct tp_upload *u, struct tp_problem *problem,
                        struct tp_err *err)
{
    struct tp_trace *t = u->trace;
    int rc = TP_OK;

    tp_lock_take(&u->e->lock);
    if (tp_upload_is_welcome(t))
        t->n_committing++;
    else
        rc = tp_upload_refuse(t, u->result->counts.emitted, problem, err);
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
    if (r->damages > 0 || r->is_truncated || r->members_left_out > 0)
        tp_upload_damage(r, s->damage, sizeof(s->damage));
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
        tp_settle_add(s, u->result);
        tp_window_note(s, u->result);
        if (u->has_seq && (!s->has_seq || u->seq > s->seq))
            s->seq = u->seq;
        s->has_seq = s->has_seq || u->has_seq;
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

/* Note a batch that was not taken. The control lock is held. */
static void refuse_batch(struct tp_upload *u, enum tp_drop_cause cause,
                         uint64_t n_events, const char *why)
{
    const struct tp_refusal refusal = {u->has_seq, u->seq, n_events, cause};

    u->e->stats.refused_batches++;
    if (!tp_upload_is_welcome(u->trace))
        return;
    tp_refusals_add(u->stream, &refusal, why);
    tp_streams_write(u->stream);
    tp_life_touch(u->trace);
}

/* Count a batch that does not fit into the trace, and stop it: it is full. The control
 * lock is held. */
static void lose_and_stop(struct tp_upload *u, uint64_t n_events)
{
    struct tp_now now = u->e->seen.mono_ns > u->begun.mono_ns ? u->e->seen : u->begun;
    struct tp_err ignored;

    refuse_batch(u, TP_DROP_OVER_LIMIT, n_events, "");
    if (u->trace->session.state == TP_SESSION_RECORDING)
        tp_life_stop(u->trace, "max_bytes reached: the next batch does not fit", now,
                     &ignored);
}

/*
 * Look whether the stream has the batch, and note it: its answer was lost, and it comes
 * again. It was counted, whatever becomes of it now. The trace is not sealed while its
 * log is looked at. No lock is held.
 */
static bool look_for_repeat(struct tp_upload *u)
{
    struct tp_stream *s = u->stream;
    bool may_look;

    if (u->is_repeat || !u->has_seq || u->kind != TP_UPLOAD_EVENTS)
        return u->is_repeat;
    tp_lock_take(&u->e->lock);
    may_look = tp_upload_is_welcome(u->trace);
    u->trace->n_committing += may_look;
    tp_lock_give(&u->e->lock);
    if (!may_look)
        return false;
    tp_lock_take(&s->lock);
    u->is_repeat = tp_stream_blobs_has(s, u->seq);
    tp_lock_give(&s->lock);
    tp_lock_take(&u->e->lock);
    u->trace->n_committing--;
    tp_lock_give(&u->e->lock);
    return u->is_repeat;
}

int tp_upload_unstored(struct tp_upload *u, int rc, uint64_t n_events,
                       struct tp_err *err)
{
    struct tp_err why = {0};

    if (err != NULL)
        why = *err;
    if (u->kind == TP_UPLOAD_EVENTS && !look_for_repeat(u)) {
        tp_lock_take(&u->e->lock);
        refuse_batch(u, TP_DROP_STORAGE_FAILED, n_events, why.message);
        tp_lock_give(&u->e->lock);
    }
    return tp_fail(err, rc, "nothing was stored in stream %u of trace %s: %.160s",
                   u->stream->no, u->trace->id, why.message);
}

int tp_upload_charge(struct tp_upload *u, uint64_t bytes, uint64_t n_events,
                     struct tp_problem *problem, struct tp_err *err)
{
    struct tp_quota *quota = &u->trace->quota;
    uint64_t more = bytes > u->charged_bytes ? bytes - u->charged_bytes : 0;
    uint64_t used = tp_quota_used(quota);
    int rc;

    if (u->is_repeat)
        return TP_OK;
    rc = more == 0 ? TP_OK : tp_quota_charge(quota, more, err);
    if (rc == TP_OK) {
        u->charged_bytes += more;
        return TP_OK;
    }
    rc =
        tp_problem_limit(problem, quota->name, "bytes", quota->limit, used + more, err);
    tp_quota_release(quota, u->charged_bytes);
    u->charged_bytes = 0;
    if (u->kind == TP_UPLOAD_FILE)
        return rc;
    if (look_for_repeat(u)) {
        tp_problem_clear(problem);
        return TP_OK;
    }
    tp_lock_take(&u->e->lock);
    lose_and_stop(u, n_events);
    tp_lock_give(&u->e->lock);
    return rc;
}

/* A file says in itself who it is from; whoever sent it need not have. The control lock
 * is held, and nobody but this upload knows the stream. */
static int learn_sender(struct tp_upload *u, struct tp_err *err)
{
    struct tp_stream *s = u->stream;

    if (u->kind != TP_UPLOAD_FILE || s->state != TP_STREAM_HIDDEN)
        return TP_OK;
    /* Who posts a file may know better than it; of a process of Kineto nobody does. */
    if (strcmp(s->who.kind, "kineto") == 0)
        tp_source_disagrees(&u->says, &s->who, s->reason, sizeof(s->reason));
    return tp_source_fill_in(&u->says, &s->who, err);
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
    if (r->lacks_events)
        snprintf(reply->note, sizeof(reply->note),
                 "no traceEvents in this object: all of it was taken as metadata");
    if (r->damages > 0 || r->is_truncated || r->members_left_out > 0)
        tp_upload_damage(r, reply->damage, sizeof(reply->damage));
}

/* The appended batch, or what became of it, under the control lock. */
static int account(struct tp_upload *u, int rc, bool is_duplicate, struct tp_now now,
                   struct tp_err *err)
{
    struct tp_stream *s = u->stream;

    tp_lock_take(&u->e->lock);
    u->is_orphaned = u->trace->is_deleted;
    if (u->is_orphaned) {
        tp_lock_give(&u->e->lock);
        return rc;
    }
    if (rc == TP_OK && !is_duplicate && u->kind == TP_UPLOAD_FILE)
        note_damage(s, u->result);
    if (rc == TP_OK) {
        rc = learn_sender(u, err);
        if (rc == TP_OK)
            rc = tp_streams_reveal(s, err);
        if (rc != TP_OK)
            tp_stream_blobs_drop_log(s);
    } else if (rc == TP_EIO || rc == TP_EQUOTA) {
        u->e->stats.blob_failures++;
    }
    if (rc == TP_OK && !is_duplicate)
        u->charged_bytes = 0; /* it is the trace's from here on */
    if (rc == TP_OK) {
        if (u->has_seq && tp_refusals_take_back(s, u->seq))
            tp_streams_write(s);
        add_batch(u, is_duplicate);
        if (!is_duplicate)
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
    int rc = tp_upload_charge(u, u->result->payload_bytes + TP_FRAME_BYTES,
                              u->result->counts.emitted, problem, err);

    if (rc != TP_OK)
        return rc;
    tp_lock_take(&s->lock);
    rc = tp_stream_blobs_append(s, u->result, u->has_seq, u->seq, counts, is_duplicate,
                                err);
    rc = account(u, rc, *is_duplicate, now, err);
    tp_lock_give(&s->lock);
    if (u->is_orphaned)
        return tp_problem_not_found(problem, "trace", tp_str_of(u->trace->id), err);
    if (rc == TP_EIO || rc == TP_EQUOTA)
        rc = tp_upload_unstored(u, rc, u->result->counts.emitted, err);
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
    u->begun = now;
    rc = tp_upload_finish_body(u, problem, err);
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
