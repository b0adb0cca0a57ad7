/*
 * downloads.h - what leaves: a trace as a file, and its summary.
 *
 * A download holds all that it needs, so a DELETE, a stop or the end of the trace does
 * not disturb it. It belongs to one thread at a time; different ones go on side by side
 * and take no lock of the engine after open.
 */
#ifndef TP_ENGINE_DOWNLOADS_H
#define TP_ENGINE_DOWNLOADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "engine/now.h"

struct tp_download; /* trace/download.h: reading it */
struct tp_engine;
struct tp_engine_download;
struct tp_err;
struct tp_problem;
struct tp_summary; /* trace/summary.h */

/* What is asked for. The zero value is the whole trace as Chrome JSON. Borrowed. */
struct tp_engine_download_request {
    struct tp_str format;   /* "chrome" (default), "perfetto" */
    struct tp_str compress; /* "" or "identity", "gzip", "zstd" */
    const uint32_t *ranks;  /* only these ranks; none = all */
    size_t n_ranks;
    const struct tp_str *types; /* only these, by name, or "untyped"; none = all */
    size_t n_types;
    bool has_from, has_to; /* only what touches [from_ns, to_ns) */
    int64_t from_ns, to_ns;
};

/* What an open download is. Texts live as long as it. */
struct tp_engine_download_info {
    const char *file_name;        /* made by us, [A-Za-z0-9._-] only */
    const char *content_type;     /* "application/json", ... */
    const char *content_encoding; /* "" or "gzip", "zstd" */
    const char *etag;             /* strong, with its quotes; "" while not final */
    bool is_final;                /* the trace has ended: the bytes do not change */
    bool has_size;
    uint64_t size_bytes; /* of the body as sent, when known beforehand */
};

/*
 * Open a download. For an active trace, what is there so far is sealed into blobs of
 * the download's own; that takes as long as a stop would.
 *
 * out  set only on success; release with tp_engine_download_close().
 *
 * TP_ENOTFOUND  no such trace. TP_ESTATE  it failed or was cancelled before it had
 * data. TP_EINVAL  format, compress, a rank that no stream has, a type that is unknown,
 * or from after to. TP_EQUOTA  too many downloads of active traces. TP_EIO, TP_ENOMEM.
 */
int tp_engine_download_open(struct tp_engine *e, struct tp_str trace_id,
                            const struct tp_engine_download_request *request,
                            struct tp_now now, struct tp_engine_download **out,
                            struct tp_problem *problem, struct tp_err *err);

/* What it is. */
const struct tp_engine_download_info *tp_engine_download_info(
    const struct tp_engine_download *d);

/* Its bytes: read them with trace/download.h; it stays d's. */
struct tp_download *tp_engine_download_data(struct tp_engine_download *d);

/* Release a download. NULL is allowed. */
void tp_engine_download_close(struct tp_engine_download *d);

/*
 * Count and total per rank and type, top names, stragglers.
 *
 * out  see trace/summary.h for how to read and release it.
 *
 * Errors as tp_engine_download_open().
 */
int tp_engine_summary(struct tp_engine *e, struct tp_str trace_id, struct tp_now now,
                      struct tp_summary **out, struct tp_problem *problem,
                      struct tp_err *err);

#endif
