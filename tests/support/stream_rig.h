/*
 * stream_rig.h - a body's whole way for tests: ingest, log, seal, and back as text.
 *
 * The blobs are those of blob_mem.h. Failures of what is under test are returned, so
 * that fault loops can use the rig. One thread at a time.
 */
#ifndef TP_SUPPORT_STREAM_RIG_H
#define TP_SUPPORT_STREAM_RIG_H

#include "base/buf.h"
#include "core/counts.h"
#include "trace/ingest.h"
#include "trace/native_tally.h"
#include "trace/seal.h"

/* Embed it, zero but for what opts and seal_opts are to say. */
struct stream_rig {
    struct tp_blobs *blobs;        /* made by stream_rig_post() when NULL */
    struct tp_ingest_opts opts;    /* of the next post; stream_no 0 is taken as 1 */
    struct tp_seal_opts seal_opts; /* blobs, log_name and stream_no are set */
    struct tp_native_tally *tally; /* NULL, or the caller's: is told of each batch */
    bool is_tallied;               /* what it said to the last one */
    size_t piece_bytes;            /* bodies are fed in pieces of this; 0: whole */
    struct tp_counts counts;       /* summed up; after the seal, adjusted */
    uint64_t damages;              /* of the last post */
    bool is_truncated;
    bool is_native;     /* the last post was a native batch */
    bool is_as_it_came; /* its payload is the body, but for ends of slices */
    struct tp_seal_result sealed;
};

/* Release all. All-zero is allowed. */
void stream_rig_fini(struct stream_rig *rig);

/* Ingest a body and append it as a frame to the blob "log". */
int stream_rig_post(struct stream_rig *rig, const void *p, size_t n,
                    struct tp_err *err);

/* Seal "log" into rig->sealed. */
int stream_rig_seal(struct stream_rig *rig, struct tp_err *err);

/*
 * Append a line for each event of the sealed stream to out, such as
 *
 *     X ascend.KERNEL outer 1/1@1 1000+3000 id=42 bp a=1 s="x" {"tts":5}
 *
 * with pid/tid, and the lane behind @ unless it is 0.
 */
int stream_rig_text(struct stream_rig *rig, struct tp_buf *out, struct tp_err *err);

/* The line of one event, as above, with its newline. */
int stream_rig_line(const struct tp_event *ev, struct tp_buf *out, struct tp_err *err);

/* Hand each event of the sealed stream to fn. */
int stream_rig_each(struct stream_rig *rig,
                    int (*fn)(const struct tp_event *ev, struct tp_err *err, void *arg),
                    void *arg, struct tp_err *err);

#endif
