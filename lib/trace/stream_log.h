/*
 * stream_log.h - the raw log of a stream: batches appended as checked frames.
 *
 *     frame | frame | frame | ...        frame = header (frame.h) + payload (packets)
 *
 * A batch is in the log with all its bytes or not at all; sent twice, it is there once.
 * Opening a log reads all of it: what a crash tore off is cut, what the disk spoiled is
 * blanked, and both are reported. It knows no event. One thread at a time (the stream's
 * lock), but reading the blob up to a known size may go on beside appends.
 */
#ifndef TP_TRACE_STREAM_LOG_H
#define TP_TRACE_STREAM_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/blob.h"
#include "core/counts.h"
#include "trace/frame.h"

struct tp_stream_log;

#define TP_STREAM_LOG_SEQS 1024 /* batch numbers that a log remembers */

/* What was found when a log was opened. Plain data. */
struct tp_stream_log_report {
    uint64_t frames;         /* kept, blanked ones included */
    uint64_t kept_bytes;     /* size of the log now */
    uint64_t cut_bytes;      /* torn or damaged, removed from its end */
    uint64_t blanked_frames; /* damaged in the middle; those behind them are kept */
    struct tp_counts counts; /* of all kept frames; what blanked ones had stored is in
                                 dropped[TP_DROP_DAMAGED] */
    struct tp_counts lost;   /* of cut frames whose header can be read: acknowledged
                                 before, or just being written when the crash came */
    bool has_seq;
    uint64_t last_seq; /* the highest; with has_seq */
    bool is_torn;      /* all that was cut is one frame that ends too early: what a kill
                          leaves of an append that nobody was told of yet */
    char why_cut[96];  /* one sentence when cut_bytes is not 0 */
};

/*
 * Open a log and recover it; an absent one is made.
 *
 * blobs   must outlive the log. name: of the blob.
 * out     set only on success; release it with tp_stream_log_close().
 * report  filled in on success; may be NULL.
 *
 * TP_EIO, TP_EQUOTA  the medium failed. The log may have been recovered in part: what
 *                    is in it is what a later call finds.
 * TP_ENOMEM  nothing changed.
 */
int tp_stream_log_open(const struct tp_blobs *blobs, const char *name,
                       struct tp_stream_log **out, struct tp_stream_log_report *report,
                       struct tp_err *err);

/* Close a log. NULL is allowed. */
void tp_stream_log_close(struct tp_stream_log *log);

/* A payload: the first bytes may be in an anonymous blob of the same home. */
struct tp_stream_payload {
    struct tp_blob *spill; /* NULL: none */
    uint64_t spill_bytes;  /* of it; 0 without */
    uint32_t spill_crc32c; /* tp_frame_crc() of them; 0 without */
    const char *p;         /* the rest; may be NULL when n is 0 */
    size_t n;
};

/*
 * Append a batch.
 *
 * frame      seq, base and counts of the batch; payload_bytes, crc32c and
 *            counts.bytes are set here.
 * payload    its packets.
 * counts     what is stored for this batch: frame->counts, or, for a repeat, those
 *            of the time before.
 * is_repeat  the log has this seq already: nothing was appended.
 *
 * TP_ESTATE  the seq is not known and lower than the lowest that is remembered (of
 *            the highest TP_STREAM_LOG_SEQS), so it may be a repeat; nothing changed.
 * TP_EIO, TP_EQUOTA, TP_ENOMEM  nothing is in the log. Should the medium even refuse to
 *            take back a part, the next call tries that first.
 */
int tp_stream_log_append(struct tp_stream_log *log, struct tp_frame *frame,
                         const struct tp_stream_payload *payload,
                         struct tp_counts *counts, bool *is_repeat, struct tp_err *err);

/*
 * Look a batch number up, before the work of reading the batch.
 *
 * counts  set on TP_OK.
 *
 * TP_ENOTFOUND  it is new. TP_ESTATE: as above. TP_EIO: its frame cannot be read.
 */
int tp_stream_log_find(struct tp_stream_log *log, uint64_t seq,
                       struct tp_counts *counts, struct tp_err *err);

/* Make all that was appended survive a loss of power. TP_EIO. */
int tp_stream_log_sync(struct tp_stream_log *log, struct tp_err *err);

/* The size in bytes of all whole frames. */
uint64_t tp_stream_log_size(const struct tp_stream_log *log);

/* The sums over all frames; points into the log. */
const struct tp_counts *tp_stream_log_counts(const struct tp_stream_log *log);

/* The blob behind it, for pread; it stays the log's. */
struct tp_blob *tp_stream_log_blob(const struct tp_stream_log *log);

/*
 * Step from frame to frame of a log.
 *
 * blob        any blob with frames, open for reading or appending.
 * size_bytes  where to stop: at most the size of the blob, and the end of a frame.
 * offset      in: of a frame, 0 for the first; out: of the next one.
 * frame       the header. payload_offset: where the payload begins.
 *
 * TP_ENOTFOUND  there is no further frame; nothing is set.
 * TP_EINVAL  there is no valid header at the offset, or its payload is longer than
 *            what is left. TP_EIO.
 */
int tp_stream_log_next(struct tp_blob *blob, uint64_t size_bytes, uint64_t *offset,
                       struct tp_frame *frame, uint64_t *payload_offset,
                       struct tp_err *err);

#endif
