/*
 * stream_source.c - a window that slides over the blob.
 *
 *   window  |....used....|....packets....|...rest...|      (tp_buf)
 *                        ^ start of this call        ^ read so far
 *
 * With all names in front (index->names_bytes) there are two sections: the names, then
 * from a block on. The window is refilled only when the reader wants more, so what an
 * event points to stays where it is until the next call.
 *
 * A stream that is read from its first byte to its last is compared with the check sum
 * and the number of events of the index. Only then its bytes are trusted while they are
 * read: what was wrong in them is found out at the end, which is what counts.
 */
#include "trace/stream_source.h"

#include <stdlib.h>

#include "base/blob.h"
#include "base/buf.h"
#include "trace/frame.h"
#include "trace/pf_reader.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

#define PIECE_BYTES ((size_t)256 << 10)

struct tp_stream_source {
    struct tp_blob *blob;
    const struct tp_stream_index *index;
    const struct tp_trace_slice *slice;
    struct tp_pf_reader *reader;
    struct tp_buf window;
    size_t used;        /* bytes of the window that the reader is done with */
    uint64_t offset;    /* in the blob, behind the window */
    uint64_t end;       /* of the present section */
    uint64_t next_from; /* where the next section starts; 0 = this is the last */
    uint64_t n_events;  /* given so far */
    uint32_t crc32c;    /* of the bytes read so far */
    bool is_whole;      /* nothing of the stream is passed over */
    bool is_done;
};

/* The offset of the block to start at for a slice: see stream_source.h. */
static uint64_t start_offset(const struct tp_stream_index *ix,
                             const struct tp_trace_slice *slice)
{
    uint64_t offset = 0;

    if (slice == NULL || !slice->has_from || ix->names_bytes == 0)
        return 0;
    for (size_t i = 0; i < ix->n_blocks && ix->blocks[i].max_end_ns < slice->from_ns;
         i++)
        offset = ix->blocks[i].offset;
    return offset > ix->names_bytes ? offset : 0;
}

static int add_tracks(struct tp_stream_source *s, struct tp_err *err)
{
    const struct tp_stream_index *ix = s->index;
    int rc = TP_OK;

    for (size_t i = 0; rc == TP_OK && i < ix->n_tracks; i++)
        rc = tp_pf_reader_add_track(s->reader, ix->tracks[i].uuid, ix->tracks[i].lane,
                                    &ix->tracks[i].pid, &ix->tracks[i].tid, err);
    for (size_t i = 0; rc == TP_OK && i < ix->n_series; i++)
        rc = tp_pf_reader_add_series(s->reader, ix->series[i].uuid, &ix->series[i].pid,
                                     &ix->series[i].tid, ix->series[i].counter,
                                     ix->series[i].series, err);
    return rc;
}

int tp_stream_source_open(struct tp_blob *blob, const struct tp_stream_index *index,
                          const struct tp_trace_slice *slice,
                          struct tp_stream_source **out, struct tp_err *err)
{
    struct tp_pf_reader_opts opts = {0};
    struct tp_stream_source *s = calloc(1, sizeof(*s));
    int rc;

    if (s == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to read a stream");
    s->blob = blob;
    s->index = index;
    s->slice = slice;
    s->end = index->size_bytes;
    s->next_from = start_offset(index, slice);
    if (s->next_from > 0)
        s->end = index->names_bytes;
    s->is_whole = s->next_from == 0 && (slice == NULL || !slice->has_to);
    opts.is_trusted = s->is_whole && index->has_crc32c;
    rc = tp_pf_reader_new(&opts, &s->reader, err);
    if (rc == TP_OK)
        rc = add_tracks(s, err);
    if (rc == TP_OK)
        rc = tp_buf_reserve(&s->window, 2 * PIECE_BYTES, err);
    if (rc != TP_OK) {
        tp_stream_source_close(s);
        return rc;
    }
    *out = s;
    return TP_OK;
}

void tp_stream_source_close(struct tp_stream_source *s)
{
    if (s == NULL)
        return;
    tp_pf_reader_free(s->reader);
    tp_buf_fini(&s->window);
    free(s);
}

static int damaged(const struct tp_stream_source *s, struct tp_err *err)
{
    return tp_fail(err, TP_EIO, "stream %u is damaged near byte %llu",
                   s->index->stream_no,
                   (unsigned long long)(s->offset - (s->window.len - s->used)));
}

/* Read the next piece of the section behind what is left in the window. */
static int refill(struct tp_stream_source *s, struct tp_err *err)
{
    size_t want = PIECE_BYTES;
    size_t got = 0;
    int rc;

    tp_buf_consume(&s->window, s->used);
    s->used = 0;
    if (want > s->end - s->offset)
        want = (size_t)(s->end - s->offset);
    rc = tp_buf_reserve(&s->window, want, err);
    if (rc == TP_OK)
        rc = s->blob->home->pread(s->blob, s->offset, s->window.data + s->window.len,
                                  want, &got, err);
    if (rc != TP_OK)
        return rc;
    if (got == 0)
        return tp_fail(err, TP_EIO, "stream %u ends at byte %llu of %llu",
                       s->index->stream_no, (unsigned long long)s->offset,
                       (unsigned long long)s->end);
    if (s->is_whole && s->index->has_crc32c)
        s->crc32c = tp_frame_crc(s->crc32c, s->window.data + s->window.len, got);
    s->window.len += got;
    s->offset += got;
    return TP_OK;
}

/* Whether all of the stream was there, when all of it was to be read. */
static int check_whole(const struct tp_stream_source *s, struct tp_err *err)
{
    const struct tp_stream_index *ix = s->index;

    if (!s->is_whole)
        return TP_OK;
    if (ix->has_crc32c && s->crc32c != ix->crc32c)
        return tp_fail(err, TP_EIO,
                       "stream %u is damaged: its check sum is %08x not %08x",
                       ix->stream_no, s->crc32c, ix->crc32c);
    if (s->n_events != ix->n_events)
        return tp_fail(err, TP_EIO, "stream %u is damaged: it has %llu events not %llu",
                       ix->stream_no, (unsigned long long)s->n_events,
                       (unsigned long long)ix->n_events);
    return TP_OK;
}

/* Go on when the reader wants more: the next piece, the next section, or the end. */
static int advance(struct tp_stream_source *s, struct tp_err *err)
{
    if (s->offset < s->end)
        return refill(s, err);
    if (s->used < s->window.len || tp_pf_reader_skipped(s->reader).events > 0)
        return damaged(s, err); /* half a packet, or events that mean nothing */
    if (s->next_from == 0) {
        s->is_done = true;
        return check_whole(s, err);
    }
    s->offset = s->next_from;
    s->end = s->index->size_bytes;
    s->next_from = 0;
    return TP_OK;
}

/* What the reader said about bytes of ours. */
static int reader_failed(const struct tp_stream_source *s, int rc, struct tp_err *err)
{
    if (rc == TP_ENOMEM)
        return rc;
    return damaged(s, err);
}

/* Whether the event is behind the time range; all that follow are, too. */
static bool is_behind(const struct tp_stream_source *s, const struct tp_event *ev)
{
    return s->slice != NULL && s->slice->has_to && ev->ts_ns >= s->slice->to_ns;
}

int tp_stream_source_next(struct tp_stream_source *s, struct tp_event *ev,
                          bool *has_event, struct tp_str *packets, struct tp_err *err)
{
    size_t start = s->used;

    while (!s->is_done) {
        struct tp_pf_cursor c = {s->window.data + s->used,
                                 s->window.data + s->window.len};
        enum tp_pf_item item;
        int rc = tp_pf_reader_next(s->reader, &c, &item, ev, err);

        s->used = (size_t)(c.ptr - s->window.data);
        if (rc == TP_OK && item != TP_PF_EVENT)
            continue; /* a sealed stream has neither ghosts nor frames */
        if (rc == TP_OK) {
            s->is_done = is_behind(s, ev);
            s->n_events++;
            *has_event = true;
            if (packets != NULL)
                *packets = (struct tp_str){s->window.data + start, s->used - start};
            return TP_OK;
        }
        if (rc != TP_EAGAIN)
            return reader_failed(s, rc, err);
        if (packets != NULL && s->used > start) {
            /* Hand these over before they leave the window. */
            *has_event = false;
            *packets = (struct tp_str){s->window.data + start, s->used - start};
            return TP_EAGAIN;
        }
        rc = advance(s, err);
        if (rc != TP_OK)
            return rc;
        start = s->used;
    }
    *has_event = false;
    if (packets != NULL)
        *packets = (struct tp_str){NULL, 0};
    return TP_OK;
}
