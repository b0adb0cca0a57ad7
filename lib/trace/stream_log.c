/*
 * stream_log.c - append with an undo, and the memory of batch numbers.
 *
 * The highest TP_STREAM_LOG_SEQS numbers are remembered, each with the offset of its
 * frame, sorted. A sender repeats a batch when it got no answer, so a repeat is recent.
 * A number below all that are remembered cannot be told from a forgotten one and is
 * refused rather than stored twice.
 */
#include "trace/stream_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "trace/stream_log_recover.h"

/* A batch that is in the log. */
struct seq_entry {
    uint64_t seq;
    uint64_t offset; /* of its frame */
};

struct tp_stream_log {
    const struct tp_blobs *blobs;
    struct tp_blob *blob;
    uint64_t size; /* of all whole frames */
    struct tp_counts counts;
    struct seq_entry *seqs; /* ascending */
    uint32_t n_seqs, cap_seqs;
    bool has_forgotten; /* numbers below all of seqs */
};

/* The place of seq in seqs: of itself, or where it would be. */
static uint32_t place_of(const struct tp_stream_log *log, uint64_t seq)
{
    uint32_t low = 0;
    uint32_t high = log->n_seqs;

    if (high > 0 && log->seqs[high - 1].seq < seq)
        return high; /* the usual case: numbers go up */
    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (log->seqs[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Make room for one more number. */
static int reserve_seq(struct tp_stream_log *log, struct tp_err *err)
{
    uint32_t cap = log->cap_seqs == 0 ? 16 : log->cap_seqs * 2;
    struct seq_entry *seqs;

    if (log->n_seqs < log->cap_seqs)
        return TP_OK;
    seqs = realloc(log->seqs, cap * sizeof(*seqs));
    if (seqs == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the numbers of batches");
    log->seqs = seqs;
    log->cap_seqs = cap;
    return TP_OK;
}

/* Remember a number; there is room. The lowest goes when there are too many. */
static void remember_seq(struct tp_stream_log *log, uint64_t seq, uint64_t offset)
{
    uint32_t place = place_of(log, seq);

    if (place < log->n_seqs && log->seqs[place].seq == seq)
        return;
    if (place == 0 && log->has_forgotten)
        return; /* of a log that was written with another limit */
    memmove(log->seqs + place + 1, log->seqs + place,
            (log->n_seqs - place) * sizeof(*log->seqs));
    log->seqs[place] = (struct seq_entry){seq, offset};
    log->n_seqs++;
    if (log->n_seqs > TP_STREAM_LOG_SEQS) {
        log->n_seqs--;
        memmove(log->seqs, log->seqs + 1, log->n_seqs * sizeof(*log->seqs));
        log->has_forgotten = true;
    }
}

static int on_frame(const struct tp_frame *frame, uint64_t offset, struct tp_err *err,
                    void *arg)
{
    struct tp_stream_log *log = arg;
    int rc;

    if (!frame->has_seq)
        return TP_OK;
    rc = reserve_seq(log, err);
    if (rc == TP_OK)
        remember_seq(log, frame->seq, offset);
    return rc;
}

int tp_stream_log_open(const struct tp_blobs *blobs, const char *name,
                       struct tp_stream_log **out, struct tp_stream_log_report *report,
                       struct tp_err *err)
{
    struct tp_stream_log *log = calloc(1, sizeof(*log));
    struct tp_stream_log_report found;
    int rc;

    if (log == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the log of a stream");
    log->blobs = blobs;
    rc = blobs->open_append(blobs->ctx, name, &log->blob, err);
    if (rc != TP_OK)
        goto fail;
    rc = tp_stream_log_recover(log->blob, on_frame, log, &found, err);
    if (rc != TP_OK)
        goto fail;
    log->size = found.kept_bytes;
    log->counts = found.counts;
    if (report != NULL)
        *report = found;
    *out = log;
    return TP_OK;

fail:
    tp_stream_log_close(log);
    return rc;
}

void tp_stream_log_close(struct tp_stream_log *log)
{
    if (log == NULL)
        return;
    log->blobs->close(log->blobs->ctx, log->blob);
    free(log->seqs);
    free(log);
}

int tp_stream_log_find(struct tp_stream_log *log, uint64_t seq,
                       struct tp_counts *counts, struct tp_err *err)
{
    uint32_t place = place_of(log, seq);
    char bytes[TP_FRAME_BYTES];
    struct tp_frame frame;
    size_t got = 0;
    int rc;

    if (place == log->n_seqs || log->seqs[place].seq != seq) {
        if (place == 0 && log->has_forgotten)
            return tp_fail(
                err, TP_ESTATE,
                "batch %llu is older than the last %d and may be there already",
                (unsigned long long)seq, TP_STREAM_LOG_SEQS);
        return tp_fail(err, TP_ENOTFOUND, "there is no batch %llu",
                       (unsigned long long)seq);
    }
    rc = log->blob->home->pread(log->blob, log->seqs[place].offset, bytes,
                                sizeof(bytes), &got, err);
    if (rc != TP_OK)
        return rc;
    if (tp_frame_decode(bytes, got, &frame, err) != TP_OK)
        return tp_fail(err, TP_EIO, "the header of batch %llu cannot be read any more",
                       (unsigned long long)seq);
    *counts = frame.counts;
    return TP_OK;
}

/* Take back what an append that failed has left behind the last whole frame. */
static int undo(struct tp_stream_log *log, struct tp_err *err)
{
    if (log->blob->home->size(log->blob) == log->size)
        return TP_OK;
    return log->blob->home->truncate(log->blob, log->size, err);
}

/* Append header and payload; on failure a part may be there. */
static int append_parts(struct tp_stream_log *log, const struct tp_frame *frame,
                        const struct tp_stream_payload *payload, struct tp_err *err)
{
    const struct tp_blobs *home = log->blob->home;
    char bytes[TP_FRAME_BYTES];
    int rc;

    tp_frame_encode(frame, bytes);
    rc = home->append(log->blob, bytes, sizeof(bytes), err);
    if (rc == TP_OK && payload->spill_bytes > 0)
        rc = home->append_blob(log->blob, payload->spill, payload->spill_bytes, err);
    if (rc == TP_OK && payload->n > 0)
        rc = home->append(log->blob, payload->p, payload->n, err);
    return rc;
}

/* Whether the batch is there already. TP_ENOTFOUND: go on. */
static int check_seq(struct tp_stream_log *log, const struct tp_frame *frame,
                     struct tp_counts *counts, struct tp_err *err)
{
    int rc;

    if (!frame->has_seq)
        return TP_ENOTFOUND;
    rc = tp_stream_log_find(log, frame->seq, counts, err);
    if (rc != TP_ENOTFOUND)
        return rc;
    rc = reserve_seq(log, err);
    return rc == TP_OK ? TP_ENOTFOUND : rc;
}

int tp_stream_log_append(struct tp_stream_log *log, struct tp_frame *frame,
                         const struct tp_stream_payload *payload,
                         struct tp_counts *counts, bool *is_repeat, struct tp_err *err)
{
    struct tp_counts known;
    int rc = check_seq(log, frame, &known, err);

    if (rc == TP_OK) {
        *counts = known;
        *is_repeat = true;
        return TP_OK;
    }
    if (rc != TP_ENOTFOUND)
        return rc;
    rc = undo(log, err);
    if (rc != TP_OK)
        return rc;
    frame->payload_bytes = payload->spill_bytes + payload->n;
    frame->crc32c = tp_frame_crc(payload->spill_crc32c, payload->p, payload->n);
    frame->counts.bytes = TP_FRAME_BYTES + frame->payload_bytes;
    rc = append_parts(log, frame, payload, err);
    if (rc != TP_OK) {
        undo(log, NULL); /* a failure is tried again by the next append */
        return rc;
    }
    if (frame->has_seq)
        remember_seq(log, frame->seq, log->size);
    log->size += TP_FRAME_BYTES + frame->payload_bytes;
    tp_counts_add(&log->counts, &frame->counts);
    *counts = frame->counts;
    *is_repeat = false;
    return TP_OK;
}

int tp_stream_log_sync(struct tp_stream_log *log, struct tp_err *err)
{
    return log->blob->home->sync(log->blob, err);
}

uint64_t tp_stream_log_size(const struct tp_stream_log *log)
{
    return log->size;
}

const struct tp_counts *tp_stream_log_counts(const struct tp_stream_log *log)
{
    return &log->counts;
}

struct tp_blob *tp_stream_log_blob(const struct tp_stream_log *log)
{
    return log->blob;
}

int tp_stream_log_next(struct tp_blob *blob, uint64_t size_bytes, uint64_t *offset,
                       struct tp_frame *frame, uint64_t *payload_offset,
                       struct tp_err *err)
{
    char bytes[TP_FRAME_BYTES];
    struct tp_frame found;
    size_t got = 0;
    int rc;

    if (*offset >= size_bytes)
        return TP_ENOTFOUND;
    rc = blob->home->pread(blob, *offset, bytes, sizeof(bytes), &got, err);
    if (rc == TP_OK)
        rc = tp_frame_decode(bytes, got, &found, err);
    if (rc != TP_OK)
        return rc;
    if (size_bytes - *offset < TP_FRAME_BYTES ||
        found.payload_bytes > size_bytes - *offset - TP_FRAME_BYTES)
        return tp_fail(err, TP_EINVAL, "the frame at byte %llu is not all there",
                       (unsigned long long)*offset);
    *frame = found;
    *payload_offset = *offset + TP_FRAME_BYTES;
    *offset = *payload_offset + found.payload_bytes;
    return TP_OK;
}
