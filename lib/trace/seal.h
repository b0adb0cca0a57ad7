/*
 * seal.h - turns a stream's log into its sealed form and its index.
 *
 * The log has events in the order of arrival; a sealed stream has them by time, begins
 * and ends made slices, overlapping slices on lanes, and names numbered once. Memory is
 * bounded whatever the size of the log. The log is only read: whoever calls renames the
 * result and then removes the log, so that a crash at any point loses nothing. One
 * thread a seal; seals of different streams may run side by side.
 */
#ifndef TP_TRACE_SEAL_H
#define TP_TRACE_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "core/counts.h"
#include "trace/stream_index.h"

struct tp_limits;

/*
 * Told from time to time how far a seal is. A non-zero answer ends it and is returned.
 *
 * done, of  some measure of work, only good for a ratio.
 */
typedef int (*tp_seal_progress_fn)(uint64_t done, uint64_t of, struct tp_err *err,
                                   void *arg);

/* Times that the events of a stream can have, both ends included, in ns. */
struct tp_seal_window {
    int64_t from_ns;
    int64_t to_ns; /* 0: any time */
};

/* Zero means the default, where one is named. Pointers must outlive the call. */
struct tp_seal_opts {
    const struct tp_blobs *blobs; /* not NULL */
    const char *log_name;         /* the log; or NULL when `log` is given */
    struct tp_blob *log;          /* an open log of `blobs`, which stays the caller's */
    uint64_t log_bytes; /* read this much, a frame boundary; default: all there is */
    uint32_t stream_no; /* 1 to 65535 */
    uint64_t min_duration_ns; /* pairs of begin and end that are shorter are left out */
    struct tp_seal_window window; /* what does not begin and end in it is left out, and
                                     counted as before-start or after-stop */
    size_t memory_bytes;          /* for sorting; default: spill_bytes of the limits */
    const struct tp_limits *limits; /* NULL: the defaults of core/limits.h */
    const char *out_name; /* of the sealed stream, replaced when it is there; NULL: an
                             anonymous blob */
    tp_seal_progress_fn progress; /* may be NULL */
    void *arg;                    /* for progress */
};

/* Plain data; release it with tp_seal_result_fini(). */
struct tp_seal_result {
    const struct tp_blobs *blobs;
    struct tp_blob *blob; /* the sealed stream, open */
    struct tp_stream_index index;
    struct tp_counts adjust; /* filtered and dropped: events that ingest counted as
                                stored and are not in the stream; stored: their sum */
    uint64_t spill_bytes;    /* written to anonymous blobs for sorting */
};

/*
 * Seal a log.
 *
 * out  set only on success.
 *
 * TP_ENOTFOUND  no such log. TP_EIO, TP_EQUOTA (no room), TP_ENOMEM, or what progress
 * answered: no out_name is there, and the log is untouched.
 */
int tp_seal_run(const struct tp_seal_opts *opts, struct tp_seal_result *out,
                struct tp_err *err);

/* Close the blob, keeping it if it has a name, and release the index. All-zero is
 * allowed. */
void tp_seal_result_fini(struct tp_seal_result *r);

/* Correct the counts that ingest made by what the seal found: see `adjust`. */
void tp_seal_adjust(struct tp_counts *counts, const struct tp_seal_result *r);

#endif
