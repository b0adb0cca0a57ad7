/*
 * stream_log_recover.c - what to do with each kind of damage:
 *
 *     whole | whole | torn                       cut: it was never acknowledged
 *     whole | bad header ...                     cut: there is no way to find the next
 *     whole | bad payload | valid header ...     blank the payload, keep what follows
 *
 * To blank a payload is to overwrite the first bytes of every stretch of it, so that
 * each stretch is one packet with an unknown field, which every reader skips; then the
 * header gets the new check sum and counts as dropped what it had stored. So a blanked
 * log is as sound as any, and no reader needs to know about it. A crash in between
 * leaves the old header, and the next recovery does the same again.
 */
#include "trace/stream_log_recover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/pb.h"
#include "trace/pf_fields.h"

#define READ_BYTES ((size_t)256 << 10)
#define STRETCH_BYTES ((uint64_t)1 << 20)
#define BLANK_MIN 32 /* shortest payload that can be blanked, and shortest stretch */

/* A recovery under way. */
struct recovery {
    struct tp_blob *blob;
    char *bytes; /* READ_BYTES of them */
    uint64_t size;
    tp_stream_log_frame_fn on_frame;
    void *arg;
    struct tp_stream_log_report *report;
};

/* The check sum of n bytes of the blob, which are there. */
static int checksum(struct recovery *r, uint64_t offset, uint64_t n, uint32_t *crc,
                    struct tp_err *err)
{
    *crc = 0;
    while (n > 0) {
        size_t want = n < READ_BYTES ? (size_t)n : READ_BYTES;
        size_t got = 0;
        int rc = r->blob->home->pread(r->blob, offset, r->bytes, want, &got, err);

        if (rc != TP_OK)
            return rc;
        if (got == 0)
            return tp_fail(err, TP_EIO, "a log is shorter than it says");
        *crc = tp_frame_crc(*crc, r->bytes, got);
        offset += got;
        n -= got;
    }
    return TP_OK;
}

/* Read the header at offset. TP_EINVAL: there is none, or not all of the frame. */
static int read_header(struct recovery *r, uint64_t offset, struct tp_frame *frame,
                       struct tp_err *err)
{
    char bytes[TP_FRAME_BYTES];
    size_t got = 0;
    int rc = r->blob->home->pread(r->blob, offset, bytes, sizeof(bytes), &got, err);

    return rc == TP_OK ? tp_frame_decode(bytes, got, frame, err) : rc;
}

/* Cut the log at offset, and count what the headers behind it say was there. */
static int cut(struct recovery *r, uint64_t offset, const char *why, struct tp_err *err)
{
    struct tp_frame frame;
    uint64_t at = offset;
    int rc = TP_OK;

    while (at < r->size && rc == TP_OK) {
        rc = read_header(r, at, &frame, err);
        if (rc != TP_OK)
            break;
        tp_counts_add(&r->report->lost, &frame.counts);
        at += TP_FRAME_BYTES + frame.payload_bytes;
    }
    if (rc != TP_OK && rc != TP_EINVAL)
        return rc;
    rc = r->blob->home->truncate(r->blob, offset, err);
    if (rc != TP_OK)
        return rc;
    r->report->cut_bytes = r->size - offset;
    snprintf(r->report->why_cut, sizeof(r->report->why_cut), "%s at byte %llu", why,
             (unsigned long long)offset);
    r->size = offset;
    return TP_OK;
}

/* The same for a frame whose end was never written. */
static int cut_torn(struct recovery *r, uint64_t offset, const char *why,
                    struct tp_err *err)
{
    int rc = cut(r, offset, why, err);

    r->report->is_torn = rc == TP_OK;
    return rc;
}

/* Make n bytes at offset one packet that everybody skips. */
static int blank_stretch(struct recovery *r, uint64_t offset, uint64_t n,
                         struct tp_err *err)
{
    char bytes[BLANK_MIN];
    char *p = bytes;
    char *packet;
    char *field;

    p = tp_pb_put_tag(p, TP_PF_TRACE_PACKET, TP_PB_BYTES);
    packet = p;
    p = tp_pb_put_tag(p + 4, TP_PF_X_PACKET_BLANK, TP_PB_BYTES);
    field = p;
    p += 4;
    tp_pb_put_length(packet, 4, (size_t)n - (size_t)(packet + 4 - bytes));
    tp_pb_put_length(field, 4, (size_t)n - (size_t)(p - bytes));
    return r->blob->home->pwrite(r->blob, offset, bytes, (size_t)(p - bytes), err);
}

/* Blank a payload, all of it in stretches of at least BLANK_MIN bytes. */
static int blank_payload(struct recovery *r, uint64_t offset, uint64_t n,
                         struct tp_err *err)
{
    int rc = TP_OK;

    while (n > 0 && rc == TP_OK) {
        uint64_t step = n < STRETCH_BYTES + BLANK_MIN ? n : STRETCH_BYTES;

        rc = blank_stretch(r, offset, step, err);
        offset += step;
        n -= step;
    }
    return rc;
}

/* Blank the frame at offset: payload first, then the header that says so. */
static int blank(struct recovery *r, uint64_t offset, struct tp_frame *frame,
                 struct tp_err *err)
{
    char bytes[TP_FRAME_BYTES];
    struct tp_counts *c = &frame->counts;
    int rc = blank_payload(r, offset + TP_FRAME_BYTES, frame->payload_bytes, err);

    if (rc == TP_OK)
        rc = checksum(r, offset + TP_FRAME_BYTES, frame->payload_bytes, &frame->crc32c,
                      err);
    if (rc != TP_OK)
        return rc;
    c->dropped[TP_DROP_DAMAGED] += c->stored;
    c->stored = 0;
    c->repaired = 0;
    c->untyped = 0;
    tp_frame_encode(frame, bytes);
    rc = r->blob->home->pwrite(r->blob, offset, bytes, sizeof(bytes), err);
    if (rc == TP_OK)
        r->report->blanked_frames++;
    return rc;
}

static int keep(struct recovery *r, const struct tp_frame *frame, uint64_t offset,
                struct tp_err *err)
{
    struct tp_stream_log_report *report = r->report;

    report->frames++;
    tp_counts_add(&report->counts, &frame->counts);
    if (frame->has_seq && (!report->has_seq || frame->seq > report->last_seq)) {
        report->has_seq = true;
        report->last_seq = frame->seq;
    }
    return r->on_frame(frame, offset, err, r->arg);
}

/* A payload is damaged: blank it if a frame follows, else cut. */
static int mend(struct recovery *r, uint64_t offset, struct tp_frame *frame,
                struct tp_err *err)
{
    struct tp_frame next;
    uint64_t end = offset + TP_FRAME_BYTES + frame->payload_bytes;
    int rc = TP_EINVAL;

    if (end < r->size && frame->payload_bytes >= BLANK_MIN)
        rc = read_header(r, end, &next, err);
    if (rc == TP_EINVAL)
        return cut(r, offset, "a damaged payload", err);
    return rc == TP_OK ? blank(r, offset, frame, err) : rc;
}

/* Check the frame at *offset and move behind it; *offset == size ends it. */
static int check_frame(struct recovery *r, uint64_t *offset, struct tp_err *err)
{
    struct tp_frame frame;
    uint32_t crc = 0;
    int rc;

    if (r->size - *offset < TP_FRAME_BYTES)
        return cut_torn(r, *offset, "a torn header", err);
    rc = read_header(r, *offset, &frame, err);
    if (rc == TP_EINVAL)
        return cut(r, *offset, "a damaged header", err);
    if (rc != TP_OK)
        return rc;
    if (frame.payload_bytes > r->size - *offset - TP_FRAME_BYTES)
        return cut_torn(r, *offset, "a torn payload", err);
    rc = checksum(r, *offset + TP_FRAME_BYTES, frame.payload_bytes, &crc, err);
    if (rc == TP_OK && crc != frame.crc32c)
        rc = mend(r, *offset, &frame, err);
    if (rc != TP_OK || *offset == r->size)
        return rc;
    rc = keep(r, &frame, *offset, err);
    *offset += TP_FRAME_BYTES + frame.payload_bytes;
    return rc;
}

int tp_stream_log_recover(struct tp_blob *blob, tp_stream_log_frame_fn on_frame,
                          void *arg, struct tp_stream_log_report *report,
                          struct tp_err *err)
{
    struct recovery r = {.blob = blob,
                         .size = blob->home->size(blob),
                         .on_frame = on_frame,
                         .arg = arg,
                         .report = report};
    uint64_t offset = 0;
    int rc = TP_OK;

    *report = (struct tp_stream_log_report){0};
    r.bytes = malloc(READ_BYTES);
    if (r.bytes == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to recover a log");
    while (rc == TP_OK && offset < r.size)
        rc = check_frame(&r, &offset, err);
    report->kept_bytes = r.size;
    free(r.bytes);
    return rc;
}
