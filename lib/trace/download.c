/*
 * download.c - stages that each append some text, and a buffer between them and the
 * reader.
 *
 *   Chrome:   HEAD -> METAS of stream 0, 1, ... -> EVENTS of stream 0, 1, ... -> TAIL
 *   Perfetto: HEAD -> METAS (descriptors)       -> EVENTS (copies of packets)
 *
 *   stage --> text --> compressor --> ready --> tp_download_read()
 *
 * A stage runs until the text has CHUNK_BYTES or it is done; then the text goes through
 * the compressor as one piece. So how the file is cut does not depend on how it is
 * read, and neither do the compressed bytes. A whole Perfetto stream passes by all of
 * that: it is read straight into the memory of the caller.
 */
#include "trace/download.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "base/buf.h"
#include "trace/chrome_head.h"
#include "trace/chrome_metas.h"
#include "trace/chrome_writer.h"
#include "trace/frame.h"
#include "trace/merge.h"
#include "trace/merge_join.h"
#include "trace/perfetto_header.h"
#include "trace/pf_slice.h"
#include "trace/slice_filter.h"
#include "trace/stream_index.h"
#include "trace/stream_source.h"

#define CHUNK_BYTES ((size_t)256 << 10)

enum stage { HEAD, METAS, EVENTS, TAIL, END };

struct tp_download {
    struct tp_download_opts opts;
    struct tp_download_stream *streams; /* the plan's, copied */
    struct tp_merge_stream *merge_streams;
    struct tp_merge *merge;
    int64_t base_ns;
    bool is_whole; /* no slice */

    enum stage stage;
    size_t stream;   /* that METAS or EVENTS are at */
    size_t meta;     /* next metadata event of the stream */
    uint64_t offset; /* in the stream, of a whole copy */
    uint64_t summed; /* bytes of the stream, from its start, that crc32c is of */
    uint32_t crc32c;
    struct tp_chrome_writer *writer;
    struct tp_stream_source *source; /* of the stream, while EVENTS are at it */
    struct tp_slice_filter *filter;
    struct tp_pf_slice *packets;

    struct tp_compressor *compressor;
    struct tp_buf text;    /* of the stages */
    struct tp_buf packed;  /* of the compressor */
    struct tp_buf *ready;  /* text or packed: what is read from */
    size_t taken;          /* bytes of it that were read */
    uint64_t header_bytes; /* of a whole Perfetto file */
    int failed;            /* the code of a failure; 0: none */
};

static bool is_perfetto(const struct tp_download *d)
{
    return d->opts.format == TP_DOWNLOAD_PERFETTO;
}

/* Whether streams go to the reader as they are, past all buffers. */
static bool is_copied(const struct tp_download *d)
{
    return is_perfetto(d) && d->is_whole && d->opts.compress == TP_COMPRESS_IDENTITY;
}

/* Copy the plan, so that the caller's struct and array of streams may go. */
static int copy_plan(struct tp_download *d, const struct tp_download_opts *opts,
                     struct tp_err *err)
{
    size_t n = opts->n_streams;

    d->opts = *opts;
    d->is_whole = tp_slice_filter_is_whole(&opts->slice);
    d->streams = calloc(n + 1, sizeof(*d->streams));
    d->merge_streams = calloc(n + 1, sizeof(*d->merge_streams));
    if (d->streams == NULL || d->merge_streams == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a download of %zu streams", n);
    for (size_t i = 0; i < n; i++) {
        d->streams[i] = opts->streams[i];
        d->merge_streams[i].index = opts->streams[i].index;
        d->merge_streams[i].producer = opts->streams[i].producer;
    }
    d->opts.streams = d->streams;
    d->base_ns = tp_merge_base_ns(d->merge_streams, n,
                                  opts->info == NULL ? 0 : opts->info->started_ns);
    return TP_OK;
}

/* Make the header once to know its size, keeping one stream's part at a time. */
static int measure_header(struct tp_download *d, struct tp_err *err)
{
    int rc = tp_perfetto_header_info(d->merge, d->opts.info, &d->opts.slice, d->base_ns,
                                     &d->text, err);

    d->header_bytes = d->text.len;
    for (size_t i = 0; rc == TP_OK && i < d->merge->n_streams; i++) {
        d->text.len = 0;
        rc = tp_perfetto_header_stream(d->merge, i, d->opts.info, &d->text, err);
        d->header_bytes += d->text.len;
    }
    d->text.len = 0;
    return rc;
}

int tp_download_open(const struct tp_download_opts *opts, struct tp_download **out,
                     struct tp_err *err)
{
    struct tp_download *d = calloc(1, sizeof(*d));
    int rc;

    if (d == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a download");
    rc = copy_plan(d, opts, err);
    if (rc == TP_OK)
        rc = tp_merge_new(d->merge_streams, opts->n_streams, &d->merge, err);
    if (rc == TP_OK && opts->format == TP_DOWNLOAD_CHROME)
        rc = tp_chrome_writer_new(d->merge, d->base_ns, &d->writer, err);
    if (rc == TP_OK && opts->compress != TP_COMPRESS_IDENTITY)
        rc = tp_compressor_new(opts->compress, &d->compressor, err);
    if (rc == TP_OK && is_copied(d))
        rc = measure_header(d, err);
    if (rc != TP_OK) {
        tp_download_free(d);
        return rc;
    }
    d->ready = d->compressor == NULL ? &d->text : &d->packed;
    *out = d;
    return TP_OK;
}

/* Leave the present stream. */
static void close_stream(struct tp_download *d)
{
    tp_stream_source_close(d->source);
    tp_slice_filter_free(d->filter);
    tp_pf_slice_free(d->packets);
    d->source = NULL;
    d->filter = NULL;
    d->packets = NULL;
}

void tp_download_free(struct tp_download *d)
{
    if (d == NULL)
        return;
    close_stream(d);
    tp_chrome_writer_free(d->writer);
    tp_compressor_free(d->compressor);
    tp_merge_free(d->merge);
    tp_buf_fini(&d->text);
    tp_buf_fini(&d->packed);
    free(d->streams);
    free(d->merge_streams);
    free(d);
}

static int run_head(struct tp_download *d, struct tp_err *err)
{
    d->stage = METAS;
    if (is_perfetto(d))
        return tp_perfetto_header_info(d->merge, d->opts.info, &d->opts.slice,
                                       d->base_ns, &d->text, err);
    return tp_chrome_head_write(d->merge, d->opts.info, &d->opts.slice, d->base_ns,
                                &d->text, err);
}

/* Go to the next stream, or to the next stage behind the last one. */
static void next_stream(struct tp_download *d, enum stage next)
{
    d->stream++;
    d->meta = 0;
    d->offset = 0;
    d->summed = 0;
    d->crc32c = 0;
    if (d->stream < d->merge->n_streams) {
        if (d->writer != NULL)
            tp_chrome_writer_stream(d->writer, d->stream);
        return;
    }
    d->stream = 0;
    d->stage = next;
    if (d->writer != NULL)
        tp_chrome_writer_stream(d->writer, 0);
}

/* The metadata events of a stream, or its descriptors. */
static int run_metas(struct tp_download *d, struct tp_err *err)
{
    const struct tp_stream_index *ix;
    int rc = TP_OK;

    if (d->merge->n_streams == 0) {
        d->stage = TAIL;
        return TP_OK;
    }
    ix = d->streams[d->stream].index;
    if (is_perfetto(d)) {
        rc =
            tp_perfetto_header_stream(d->merge, d->stream, d->opts.info, &d->text, err);
    } else {
        while (rc == TP_OK && d->meta < ix->n_metas && d->text.len < CHUNK_BYTES) {
            const struct tp_index_meta *meta = &ix->metas[d->meta++];

            if (!tp_merge_hides_meta(d->merge, d->stream, meta))
                rc = tp_chrome_writer_meta(d->writer, meta, 0, &d->text, err);
        }
        if (rc != TP_OK || d->meta < ix->n_metas)
            return rc;
        rc = tp_chrome_metas_write(d->merge, d->stream, d->writer, &d->text, err);
    }
    next_stream(d, EVENTS);
    return rc;
}

static int open_stream(struct tp_download *d, struct tp_err *err)
{
    const struct tp_download_stream *s = &d->streams[d->stream];
    int rc = tp_stream_source_open(s->blob, s->index, &d->opts.slice, &d->source, err);

    if (rc == TP_OK && !d->is_whole)
        rc = tp_slice_filter_new(&d->opts.slice, d->opts.types, &d->filter, err);
    if (rc == TP_OK && is_perfetto(d))
        rc = tp_pf_slice_new(s->index->n_tracks, &d->packets, err);
    return rc;
}

/* Write one event, or the packets up to and with it. */
static int take_event(struct tp_download *d, const struct tp_event *ev, bool has_event,
                      struct tp_str packets, struct tp_err *err)
{
    bool passes = has_event;
    int rc = TP_OK;

    if (has_event && d->filter != NULL)
        rc = tp_slice_filter_event(d->filter, ev, &passes, err);
    if (rc != TP_OK)
        return rc;
    if (is_perfetto(d))
        return tp_pf_slice_add(d->packets, packets, passes, &d->text, err);
    return passes ? tp_chrome_writer_event(d->writer, ev, &d->text, err) : TP_OK;
}

/* Events of the stream, read one by one. */
static int run_events(struct tp_download *d, struct tp_err *err)
{
    struct tp_str packets = {NULL, 0};
    struct tp_str *wanted = is_perfetto(d) ? &packets : NULL;
    size_t n_seen = 0;
    int rc = TP_OK;

    if (d->source == NULL)
        rc = open_stream(d, err);
    while (rc == TP_OK && d->text.len < CHUNK_BYTES && n_seen++ < CHUNK_BYTES) {
        struct tp_event ev;
        bool has_event = false;

        rc = tp_stream_source_next(d->source, &ev, &has_event, wanted, err);
        if (rc != TP_OK && rc != TP_EAGAIN)
            return rc;
        if (rc == TP_OK && !has_event && packets.len == 0) {
            close_stream(d);
            next_stream(d, TAIL);
            return TP_OK;
        }
        rc = take_event(d, &ev, has_event, packets, err);
    }
    return rc;
}

/* Go on by a piece of the stream that was read to p. At its end, what was read all the
 * way must have the check sum of the index. */
static int pass_piece(struct tp_download *d, const char *p, size_t n,
                      struct tp_err *err)
{
    const struct tp_stream_index *ix = d->streams[d->stream].index;

    if (ix->has_crc32c && d->summed == d->offset) {
        d->crc32c = tp_frame_crc(d->crc32c, p, n);
        d->summed += n;
    }
    d->offset += n;
    if (d->offset < ix->size_bytes)
        return TP_OK;
    if (ix->has_crc32c && d->summed == ix->size_bytes && d->crc32c != ix->crc32c)
        return tp_fail(err, TP_EIO,
                       "stream %u is damaged: its check sum is %08x not %08x",
                       ix->stream_no, d->crc32c, ix->crc32c);
    next_stream(d, TAIL);
    return TP_OK;
}

/* A piece of the stream as it is, at p. */
static int copy_piece(struct tp_download *d, char *p, size_t n, size_t *got,
                      struct tp_err *err)
{
    const struct tp_download_stream *s = &d->streams[d->stream];
    uint64_t left = s->index->size_bytes - d->offset;
    int rc;

    *got = 0;
    n = n < left ? n : (size_t)left;
    if (n > 0) {
        rc = s->blob->home->pread(s->blob, d->offset, p, n, got, err);
        if (rc != TP_OK)
            return rc;
        if (*got == 0)
            return tp_fail(err, TP_EIO, "stream %u ends at byte %llu of %llu",
                           s->index->stream_no, (unsigned long long)d->offset,
                           (unsigned long long)s->index->size_bytes);
    }
    return pass_piece(d, p, *got, err);
}

/* A piece of a whole Perfetto stream, into the text. */
static int run_copy(struct tp_download *d, struct tp_err *err)
{
    size_t got;
    int rc = tp_buf_reserve(&d->text, CHUNK_BYTES, err);

    if (rc != TP_OK)
        return rc;
    rc = copy_piece(d, d->text.data + d->text.len, CHUNK_BYTES, &got, err);
    if (rc == TP_OK)
        d->text.len += got;
    return rc;
}

static int run_stage(struct tp_download *d, struct tp_err *err)
{
    switch (d->stage) {
    case HEAD:
        return run_head(d, err);
    case METAS:
        return run_metas(d, err);
    case EVENTS:
        return is_perfetto(d) && d->is_whole ? run_copy(d, err) : run_events(d, err);
    case TAIL:
        d->stage = END;
        return is_perfetto(d) ? TP_OK : tp_chrome_head_write_end(&d->text, err);
    case END:
        break;
    }
    return TP_OK;
}

/* Make the next chunk ready, or nothing at the end. */
static int fill(struct tp_download *d, struct tp_err *err)
{
    int rc = TP_OK;

    d->text.len = 0;
    d->packed.len = 0;
    d->taken = 0;
    while (rc == TP_OK && d->ready->len == 0 && d->stage != END) {
        d->text.len = 0;
        while (rc == TP_OK && d->stage != END && d->text.len < CHUNK_BYTES &&
               !(is_copied(d) && d->stage == EVENTS))
            rc = run_stage(d, err);
        if (rc == TP_OK && d->compressor != NULL)
            rc = tp_compressor_add(d->compressor, d->text.data, d->text.len, &d->packed,
                                   err);
        if (rc == TP_OK && d->compressor != NULL && d->stage == END)
            rc = tp_compressor_finish(d->compressor, &d->packed, err);
        if (is_copied(d) && d->stage == EVENTS)
            break;
    }
    return rc;
}

/* Give bytes that are ready, or straight from the stream; *got stays 0 for "run on". */
static int give(struct tp_download *d, char *p, size_t n, size_t *got,
                struct tp_err *err)
{
    size_t left = d->ready->len - d->taken;

    *got = 0;
    if (left == 0 && is_copied(d) && d->stage == EVENTS)
        return copy_piece(d, p, n, got, err);
    if (left == 0)
        return fill(d, err);
    *got = n < left ? n : left;
    if (p != NULL)
        memcpy(p, d->ready->data + d->taken, *got);
    d->taken += *got;
    return TP_OK;
}

static bool is_at_end(const struct tp_download *d)
{
    return d->stage == END && d->taken == d->ready->len;
}

int tp_download_read(struct tp_download *d, char *p, size_t n, size_t *got,
                     struct tp_err *err)
{
    size_t part = 0;

    assert(n > 0);
    if (d->failed != TP_OK)
        return tp_fail(err, d->failed, "the download has failed before");
    while (part == 0 && !is_at_end(d)) {
        int rc = give(d, p, n, &part, err);

        if (rc != TP_OK) {
            d->failed = rc;
            return rc;
        }
    }
    *got = part;
    return TP_OK;
}

/* Skip inside a whole stream, which need not be read for it. */
static uint64_t skip_copy(struct tp_download *d, uint64_t n)
{
    uint64_t left = d->streams[d->stream].index->size_bytes - d->offset;

    n = n < left ? n : left;
    d->offset += n;
    if (n == left)
        next_stream(d, TAIL);
    return n;
}

int tp_download_skip(struct tp_download *d, uint64_t n, uint64_t *skipped,
                     struct tp_err *err)
{
    uint64_t done = 0;

    if (d->failed != TP_OK)
        return tp_fail(err, d->failed, "the download has failed before");
    while (done < n && !is_at_end(d)) {
        size_t want = n - done < CHUNK_BYTES ? (size_t)(n - done) : CHUNK_BYTES;
        size_t part = 0;
        int rc = TP_OK;

        if (d->taken == d->ready->len && is_copied(d) && d->stage == EVENTS)
            done += skip_copy(d, n - done);
        else
            rc = give(d, NULL, want, &part, err);
        if (rc != TP_OK) {
            d->failed = rc;
            return rc;
        }
        done += part;
    }
    if (skipped != NULL)
        *skipped = done;
    return TP_OK;
}

bool tp_download_size(const struct tp_download *d, uint64_t *bytes)
{
    uint64_t sum = d->header_bytes;

    if (!is_copied(d))
        return false;
    for (size_t i = 0; i < d->merge->n_streams; i++)
        sum += d->streams[i].index->size_bytes;
    *bytes = sum;
    return true;
}
