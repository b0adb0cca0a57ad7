/*
 * The way of a batch:
 *
 *   begin    control lock: which trace, which stream (its number goes into the packets)
 *   feed     no lock: inflate, read, filter, encode (trace/ingest.h); quota
 *   commit   control lock: may it still go in?   -> n_committing
 *            quota, for the rest
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
#include "engine/problem.h"
#include "engine/refusals.h"
#include "engine/streams.h"
#include "engine/upload_form.h"
#include "engine/upload_state.h"
#include "engine/window.h"

#define NAME_BYTES 127

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
        rc = tp_check_text("name", r->file_name, "file name", TP_FILE_NAME_BYTES,
                           problem, err);
    return rc;
}

bool tp_upload_is_welcome(const struct tp_trace *t)
{
    int state = t->session.state;

    return (state == TP_SESSION_RECORDING || state == TP_SESSION_STOPPING) &&
           !t->is_sealing;
}

int tp_upload_refuse(struct tp_trace *t, uint64_t n_events, struct tp_problem *problem,
                     struct tp_err *err)
{
    t->engine->stats.refused_batches++;
    if (t->session.state != TP_SESSION_PREPARED) {
        t->late_batches++;
        t->late_events += n_events;
        t->has_late_news = t->engine->has_late_news = true;
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

    if (who.name.len == 0 && r->kind == TP_UPLOAD_FILE && r->rank < 0) {
        who.name.ptr = name;
        who.name.len = tp_check_file_name(r->file_name, name);
        who.name = tp_utf8_cut(who.name, NAME_BYTES);
    }
    if (who.name.len == 0)
        who.name = tp_default_producer_name(r->rank, name, size);
    return who;
}

/* A file has a stream of its own, but for one that is sent again. */
static int attach_file(struct tp_upload *u, struct tp_trace *t,
                       const struct tp_row_identity *who, struct tp_str file_name,
                       struct tp_problem *problem, struct tp_err *err)
{
    int rc;

    if (u->has_seq)
        u->stream = tp_streams_find_file(t, who, file_name, u->seq);
    if (u->stream != NULL)
        return TP_OK;
    rc = tp_streams_for_file(t, who, file_name, &u->stream, problem, err);
    if (rc == TP_OK) {
        u->stream->has_seq = u->has_seq;
        u->stream->seq = u->seq;
    }
    return rc;
}

/* The member that the producer of an id is, or was when it was told its stream: that it
 * is forgotten at the moment does not make its events another's. NULL: none. */
static struct tp_member *find_member(struct tp_engine *e, const struct tp_trace *t,
                                     struct tp_str id)
{
    const struct tp_producer *p = tp_producer_find(e, id);
    char text[TP_TRACE_ID_BYTES];
    struct tp_member *m;

    if (p != NULL && p->member != NULL && p->member->trace == t)
        return p->member;
    if (id.len >= sizeof(text))
        return NULL;
    snprintf(text, sizeof(text), "%.*s", (int)id.len, id.ptr);
    m = tp_member_find(t, text);
    return m == NULL || m->stream_no == 0 ? NULL : m;
}

/* The stream of a producer that takes part and is named by its id; *out is NULL when it
 * is not so. */
static int find_member_stream(struct tp_engine *e, const struct tp_trace *t,
                              struct tp_str id, struct tp_stream **out,
                              struct tp_problem *problem, struct tp_err *err)
{
    struct tp_member *m = find_member(e, t, id);
    int rc;

    *out = NULL;
    if (m == NULL)
        return TP_OK;
    rc = tp_streams_for_member(m, problem, err);
    if (rc == TP_OK)
        *out = t->streams[m->stream_no - 1];
    return rc;
}

static int attach_events(struct tp_upload *u, struct tp_trace *t,
                         struct tp_row_identity *who, struct tp_problem *problem,
                         struct tp_err *err)
{
    int rc = find_member_stream(u->e, t, who->name, &u->stream, problem, err);

    if (rc != TP_OK || u->stream != NULL)
        return rc;
    if (tp_stream_find(t, who->name, who->rank) == NULL)
        tp_streams_identify(t->job, u->e, who);
    return tp_streams_for_events(t, who, &u->stream, problem, err);
}

/* Tie an upload to its trace and stream. The control lock is held. */
static int attach(struct tp_upload *u, struct tp_str trace_id,
                  const struct tp_upload_request *r, struct tp_problem *problem,
                  struct tp_err *err)
{
    char name[TP_FILE_NAME_BYTES + 1];
    struct tp_row_identity who = sender(r, name, sizeof(name));
    struct tp_trace *t;
    int rc = tp_trace_find(u->e, trace_id, &t, problem, err);

    if (rc != TP_OK)
        return rc;
    if (!tp_upload_is_welcome(t))
        return tp_upload_refuse(t, 0, problem, err);
    if (r->kind == TP_UPLOAD_FILE) {
        tp_streams_identify(t->job, u->e, &who);
        rc = attach_file(u, t, &who, r->file_name, problem, err);
    } else {
        rc = attach_events(u, t, &who, problem, err);
    }
    if (rc != TP_OK)
        return rc;
    u->trace = t;
    u->filter = tp_filter_ref(t->filter);
    u->types = tp_typemap_ref(t->types);
    u->life = tp_window_asked(u->stream, u->begun);
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
    tp_source_says_init(&u->says);
    u->kind = request->kind;
    u->form = request->form;
    u->leave_out = request->leave_out;
    u->encoding = request->encoding;
    u->has_seq = request->has_seq;
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

/* A batch of a linked producer that cannot be taken for one: what it held is lost,
 * which its counts will tell; why is kept with the producer. */
static void note_bad_batch(struct tp_upload *u, const struct tp_err *err)
{
    struct tp_member *m;

    tp_lock_take(&u->e->lock);
    m = u->stream->member;
    /* It does not wait any more, if it did. */
    if (u->has_seq && u->kind == TP_UPLOAD_EVENTS &&
        tp_refusals_take_back(u->stream, u->seq))
        tp_streams_write(u->stream);
    if (m != NULL && u->kind == TP_UPLOAD_EVENTS) {
        m->n_bad_batches++;
        if (m->state != TP_MEMBER_REFUSED && m->state != TP_MEMBER_LOST)
            snprintf(m->reason, sizeof(m->reason), "%llu batch%s refused: %.90s",
                     (unsigned long long)m->n_bad_batches,
                     m->n_bad_batches == 1 ? " was" : "es were", err->message);
        tp_member_changed(m);
        tp_life_touch(m->trace);
    }
    tp_lock_give(&u->e->lock);
}

/* Keep a failure for all further calls. */
static int fail(struct tp_upload *u, int rc, struct tp_problem *problem,
                struct tp_err *err)
{
    if (problem != NULL && problem->kind == TP_PROBLEM_STORAGE)
        rc = tp_upload_unstored(u, rc,
                                u->ingest == NULL ? 0 : tp_ingest_events(u->ingest),
                                err);
    if (rc == TP_EINVAL && err != NULL)
        note_bad_batch(u, err);
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

static void on_member(struct tp_str key, struct tp_str json, void *arg)
{
    struct tp_upload *u = arg;

    tp_source_says_member(&u->says, key, json);
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
        .life = u->life,
        .leave_out = u->leave_out,
        .on_member = on_member,
        .member_arg = u,
    };

    return tp_ingest_new(&opts, &u->ingest, err);
}

/* Which limit the ingest ended at. */
static void explain_limit(const struct tp_upload *u, struct tp_problem *problem)
{
    bool is_file = u->kind == TP_UPLOAD_FILE, is_medium = false;
    enum tp_ingest_limit hit = TP_INGEST_LIMIT_NONE;
    const struct tp_limits *limits = &u->e->limits;

    if (u->ingest != NULL)
        hit = tp_ingest_limit_hit(u->ingest, &is_medium);
    if (is_medium)
        return;
    problem->kind = TP_PROBLEM_LIMIT_EXCEEDED;
    if (hit == TP_INGEST_LIMIT_NONE)
        return;
    snprintf(problem->limit_name, sizeof(problem->limit_name), "%s",
             hit == TP_INGEST_LIMIT_RATIO ? "max-inflate-ratio"
             : is_file                    ? "max-file-inflated-bytes"
                                          : "max-events-body-bytes");
    snprintf(problem->limit_unit, sizeof(problem->limit_unit), "%s",
             hit == TP_INGEST_LIMIT_RATIO ? "times" : "bytes");
    problem->limit_max = hit == TP_INGEST_LIMIT_RATIO ? limits->inflate_ratio
                         : is_file                    ? limits->file_inflated_bytes
                                                      : limits->events_body_bytes;
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
        explain_limit(u, problem);
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
    if (rc != TP_OK)
        return fail(u, explain(u, rc, problem, err), problem, err);
    /* A body that goes on for hours must not fill the disk before it is judged. */
    rc = tp_upload_charge(u, tp_ingest_payload_bytes(u->ingest),
                          tp_ingest_events(u->ingest), problem, err);
    return rc == TP_OK ? TP_OK : fail(u, rc, problem, err);
}

int tp_upload_finish_body(struct tp_upload *u, struct tp_problem *problem,
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

void tp_upload_free(struct tp_upload *u)
{
    if (u == NULL)
        return;
    tp_ingest_free(u->ingest);
    tp_quota_release(&u->trace->quota, u->charged_bytes);
    tp_lock_take(&u->e->lock);
    u->stream->n_uploads--;
    u->trace->has_abandoned |= u->stream->state == TP_STREAM_HIDDEN;
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
