/*
 * upload_state.h - an upload on its way, and the half of it that appends.
 *
 * For uploads.c (begin, feed, the body's end) and upload_commit.c (the rest).
 */
#ifndef TP_ENGINE_UPLOAD_STATE_H
#define TP_ENGINE_UPLOAD_STATE_H

#include "engine/model.h"
#include "engine/source_rank.h"
#include "trace/ingest.h"

struct tp_upload {
    struct tp_engine *e;
    struct tp_trace *trace; /* referred to */
    struct tp_stream *stream;
    struct tp_filter *filter; /* referred to */
    struct tp_typemap *types; /* referred to */
    enum tp_upload_kind kind;
    enum tp_upload_form form;
    enum tp_upload_encoding encoding;
    const char *leave_out; /* a member that is not kept; NULL = none */
    bool has_seq;
    uint64_t seq;
    bool is_repeat; /* known to be in the log already: it takes no more room */
    struct tp_ingest *ingest; /* made with the first bytes, which tell the form */
    const struct tp_ingest_result *result;
    uint64_t received_bytes;
    uint64_t charged_bytes; /* to the trace, for what is not part of it yet */
    struct tp_source_says says;
    int failed; /* TP_OK, or what every further call answers */
    struct tp_err failure;
    struct tp_problem problem;
    struct tp_now begun;        /* or its commit */
    struct tp_seal_window life; /* that is asked for: window.h */
    bool is_orphaned;           /* the trace was deleted while it was appended */
    bool is_detached;           /* no longer counted in n_uploads of the trace */
    bool is_over;               /* committed or refused: only to be freed */
};

/* Whether a trace takes data now. Control lock held. */
bool tp_upload_is_welcome(const struct tp_trace *t);

/* Count and refuse a batch that comes when the trace takes none: TP_ESTATE. Control
 * lock held. */
int tp_upload_refuse(struct tp_trace *t, uint64_t n_events, struct tp_problem *problem,
                     struct tp_err *err);

/*
 * Make room in the trace for a payload of so many bytes, less what was charged for it
 * before; a batch that the stream has already needs none. What does not fit is counted
 * as lost where it would have been, unless it is a file, and the trace stops: it is
 * full. No lock is held.
 *
 * n_events  how many were read of the body.
 *
 * TP_EQUOTA  it does not fit; nothing is charged any more.
 */
int tp_upload_charge(struct tp_upload *u, uint64_t bytes, uint64_t n_events,
                     struct tp_problem *problem, struct tp_err *err);

/*
 * The medium or the store refused what came: a batch waits to come again, as
 * refusals.h says. No lock is held, except the stream's own.
 *
 * n_events  how many were read of the body.
 * err       gets the trace and the stream in front of what it says.
 *
 * Returns rc.
 */
int tp_upload_unstored(struct tp_upload *u, int rc, uint64_t n_events,
                       struct tp_err *err);

/* Tell the reader that the body is complete: sets u->result. Errors as
 * tp_upload_commit(). */
int tp_upload_finish_body(struct tp_upload *u, struct tp_problem *problem,
                          struct tp_err *err);

#endif
