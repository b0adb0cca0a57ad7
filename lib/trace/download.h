/*
 * download.h - a trace as one file, made while it is read.
 *
 * A plan goes in (which streams, which format, which slice), bytes come out, in pieces
 * of any size and in bounded memory: less than 16 MiB besides the indexes, whatever the
 * trace. The same plan gives the same bytes each time, so a range can be served by
 * making the file again from its start. It reads blobs with pread and does nothing
 * else. One thread at a time; several downloads may share streams and infos.
 */
#ifndef TP_TRACE_DOWNLOAD_H
#define TP_TRACE_DOWNLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/compress.h"
#include "trace/trace_info.h"

struct tp_blob;
struct tp_download;
struct tp_err;
struct tp_stream_index;
struct tp_typemap;

enum tp_download_format {
    TP_DOWNLOAD_CHROME,   /* Chrome trace JSON */
    TP_DOWNLOAD_PERFETTO, /* Perfetto protobuf */
    TP_DOWNLOAD_FORMATS
};

/* One sealed stream; all borrowed. */
struct tp_download_stream {
    struct tp_blob *blob; /* open for reading */
    const struct tp_stream_index *index;
    const struct tp_producer_info *producer; /* one of info->producers */
};

/* The plan. All borrowed until tp_download_free(), except the struct itself. */
struct tp_download_opts {
    enum tp_download_format format;
    enum tp_compression compress;
    struct tp_trace_slice slice;    /* types and times are applied; ranks are told */
    const struct tp_typemap *types; /* not NULL if slice.types is not */
    const struct tp_trace_info *info;
    const struct tp_download_stream
        *streams; /* by rank; stream_no differ; may be none */
    size_t n_streams;
};

/*
 * Open a download; nothing of the streams is read yet.
 *
 * out  set only on success; release it with tp_download_free().
 *
 * TP_ENOMEM  nothing was opened.
 */
int tp_download_open(const struct tp_download_opts *opts, struct tp_download **out,
                     struct tp_err *err);

/* Release a download at any point. NULL is allowed. */
void tp_download_free(struct tp_download *d);

/*
 * Read the next bytes.
 *
 * p, n  room, n at least 1.
 * got   1 to n; 0 at the end, and only there.
 *
 * TP_EIO    a stream could not be read, or is damaged. What was given so far must not
 *           look complete to whoever gets it. TP_ENOMEM, TP_EQUOTA  likewise. All
 *           are final: further calls give the same code.
 */
int tp_download_read(struct tp_download *d, char *p, size_t n, size_t *got,
                     struct tp_err *err);

/*
 * Go n bytes forward, as if they had been read.
 *
 * skipped  n, or less when the end is there; may be NULL.
 *
 * Errors as tp_download_read().
 */
int tp_download_skip(struct tp_download *d, uint64_t n, uint64_t *skipped,
                     struct tp_err *err);

/* Whether the size of the whole file is known before it is read; then it is in *bytes.
 * It is for a Perfetto file that is neither sliced nor compressed. */
bool tp_download_size(const struct tp_download *d, uint64_t *bytes);

#endif
