/*
 * uploads.h - events and files on their way into a trace.
 *
 *   begin --> feed, feed, ... --> commit --> free
 *
 * Bytes go in as they arrive; nothing of them is in the trace before commit succeeded,
 * and all of it is from then on, also after a kill. An upload belongs to one thread at
 * a time; different uploads, also to one trace, go on side by side. feed takes no lock
 * of the engine.
 */
#ifndef TP_ENGINE_UPLOADS_H
#define TP_ENGINE_UPLOADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/counts.h"
#include "engine/now.h"

struct tp_engine;
struct tp_err;
struct tp_problem;
struct tp_upload;

enum tp_upload_kind {
    TP_UPLOAD_EVENTS, /* one batch: all of it or nothing; damage refuses it */
    TP_UPLOAD_FILE /* a whole file as a stream of its own; what can be read is kept */
};

enum tp_upload_form {
    TP_FORM_JSON,     /* a Chrome trace object or array */
    TP_FORM_NDJSON,   /* an event a line */
    TP_FORM_PERFETTO, /* Perfetto protobuf */
    TP_FORM_SNIFF     /* by the first bytes */
};

enum tp_upload_encoding {
    TP_ENCODING_IDENTITY,
    TP_ENCODING_GZIP, /* one or more members */
    TP_ENCODING_SNIFF /* gzip when the first bytes say so, else identity */
};

/* What is said about an upload. Zero and empty mean "not said", rank and pid -1 do.
 * Strings are borrowed for the call. */
struct tp_upload_request {
    enum tp_upload_kind kind;
    enum tp_upload_form form;
    enum tp_upload_encoding encoding;
    struct tp_str producer; /* name, 1 to 127 bytes of UTF-8 without control characters;
                               default "rank-N", "default", or for a file its name */
    int64_t rank;           /* 0 to 2^31 - 1, or -1 */
    uint32_t world_size;
    struct tp_str host;
    int64_t pid;
    bool has_seq;            /* makes repeats harmless */
    uint64_t seq;            /* each batch of one producer has a number of its own; each
                                file has one among those of its producer and name */
    struct tp_str file_name; /* up to 255 bytes; for show, and to know a repeat */
    const char *leave_out;   /* a top-level member that is not kept; NULL = none; it
                                outlives the upload */
};

/* What came of an upload. Plain data. accepted + filtered + rejected + dropped = posted
 * */
struct tp_upload_reply {
    uint64_t posted;   /* events seen in the body */
    uint64_t accepted; /* in the trace now */
    uint64_t filtered; /* left out because the filter says so */
    uint64_t rejected; /* not usable as events (malformed or too large); first_reason */
    uint64_t repaired; /* of the accepted */
    uint64_t untyped;  /* of the accepted: `cat` is no known type */
    uint64_t dropped[TP_DROP_CAUSES]; /* by cause, the rejected ones included */
    char first_reason[128];           /* why the first one was rejected; "" */
    bool is_duplicate;                /* this seq was there before: nothing was added */
    uint32_t stream_no;
    char producer[128]; /* of the stream */
    int64_t rank;       /* of the stream; -1 = none */
    char damage[160];   /* of a file: what was skipped; "" = nothing */
    char note[80];      /* what is odd about a body that was taken; "" = nothing */
    bool is_truncated;  /* of a file: it ends in the middle */
};

/*
 * Begin an upload.
 *
 * out  set only on success; release with tp_upload_free().
 *
 * TP_ENOTFOUND  no such trace. TP_ESTATE  it does not take data (ILLEGAL_STATE): not
 * started yet, sealing, or ended; counted there as a late batch. TP_EINVAL  a field.
 * TP_EQUOTA  too many streams or open uploads. TP_ENOMEM.
 */
int tp_engine_upload_begin(struct tp_engine *e, struct tp_str trace_id,
                           const struct tp_upload_request *request, struct tp_now now,
                           struct tp_upload **out, struct tp_problem *problem,
                           struct tp_err *err);

/*
 * Take n more bytes of the body. After a failure further calls give the same answer,
 * and commit refuses.
 *
 * TP_EINVAL  damaged (DAMAGED_BODY with the offset where it is known). TP_EQUOTA  over
 * a limit (LIMIT_EXCEEDED), or the medium is full (STORAGE). TP_EIO, TP_ENOMEM. A batch
 * with a seq that the medium refuses waits to come again: refusals.h.
 */
int tp_upload_feed(struct tp_upload *u, const void *p, size_t n,
                   struct tp_problem *problem, struct tp_err *err);

/*
 * The body is complete: put it into the trace.
 *
 * reply  filled in on success.
 *
 * TP_EINVAL  damaged, incomplete, or a seq that is too old to tell. TP_ESTATE  the
 * trace ended meanwhile (counted as late). TP_EQUOTA  the trace is full, which stops
 * it; or too many streams. TP_EIO, TP_ENOMEM. Nothing was stored; u can only be freed.
 */
int tp_upload_commit(struct tp_upload *u, struct tp_now now,
                     struct tp_upload_reply *reply, struct tp_problem *problem,
                     struct tp_err *err);

/* Release an upload; one that was not committed leaves nothing behind. NULL is fine. */
void tp_upload_free(struct tp_upload *u);

#endif
