/*
 * ingest.h - one request's body, or one file, made into the payload of one log frame.
 *
 * Bytes go in as they arrive; they are inflated, read as events, filtered, counted and
 * written as Perfetto packets, or kept when they are that already. It takes no lock,
 * shares nothing and appends to no log: many run side by side, and only the finished
 * payload meets the stream. Memory is bounded: a large payload goes to an anonymous
 * blob. One thread at a time.
 */
#ifndef TP_TRACE_INGEST_H
#define TP_TRACE_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/counts.h"
#include "trace/native_batch.h"
#include "trace/seal.h"

struct tp_filter;
struct tp_ingest;
struct tp_limits;
struct tp_native_check;
struct tp_typemap;

enum tp_ingest_form {
    TP_INGEST_CHROME,  /* a Chrome trace: an object or an array */
    TP_INGEST_NDJSON,  /* an event a line */
    TP_INGEST_PERFETTO /* packets */
};

enum tp_ingest_encoding {
    TP_INGEST_AUTO, /* gzip when it begins as gzip does */
    TP_INGEST_IDENTITY,
    TP_INGEST_GZIP
};

/* Takes a top-level member of a source that is kept: its name and value as JSON text,
 * borrowed for the call. */
typedef void (*tp_ingest_member_fn)(struct tp_str key, struct tp_str json, void *arg);

/* Which limit of its own an ingest ended at. */
enum tp_ingest_limit {
    TP_INGEST_LIMIT_NONE,  /* none, or one of a reader or the medium */
    TP_INGEST_LIMIT_BYTES, /* inflated_bytes */
    TP_INGEST_LIMIT_RATIO  /* the inflate_ratio of the limits */
};

/* Zero means the default, where one is named. Pointers must outlive the ingest. */
struct tp_ingest_opts {
    enum tp_ingest_form form;
    enum tp_ingest_encoding encoding;
    bool salvage; /* false: damage refuses the whole body; true: what can be read is
                     kept and the damage is reported (whole files) */
    uint32_t stream_no;             /* 1 to 65535 */
    const struct tp_filter *filter; /* NULL: nothing is filtered */
    const struct tp_typemap *types; /* NULL: no `cat` is a known type */
    const struct tp_limits *limits; /* NULL: the defaults of core/limits.h */
    const struct tp_blobs *blobs;   /* for large payloads; NULL: all stays in memory */
    size_t spill_bytes;             /* payload kept in memory; default 1 MiB */
    uint64_t inflated_bytes; /* most bytes after inflating; 0: file_inflated_bytes when
                                salvaging, else events_body_bytes of the limits */
    struct tp_seal_window life; /* of the trace: whether an event begins in it is told;
                                   all-zero: it is not asked */
    const char *leave_out; /* the top-level member of this name is not kept, and that
                              is no loss; NULL: all are */
    tp_ingest_member_fn on_member; /* NULL: nobody is told */
    void *member_arg;
};

#define TP_INGEST_DAMAGES_MAX 16

/* What came of it; valid until tp_ingest_free(). Plain data. */
struct tp_ingest_result {
    struct tp_counts counts; /* emitted = those posted; bytes = payload_bytes */
    const char *payload;     /* payload_bytes bytes, or NULL when they are in spill */
    struct tp_blob *spill;   /* NULL, or a blob that holds the payload and no more */
    uint64_t payload_bytes;
    uint32_t crc32c; /* of the payload */
    int64_t add_ns;  /* to add to each time in the payload */
    bool has_clock;  /* its times mean something by themselves: the source named a
                        base, or is Perfetto */
    bool has_base;   /* the source named a base, base_ns */
    int64_t base_ns;
    bool has_times;            /* of events that were taken one by one: */
    int64_t first_ns, last_ns; /* their earliest and latest time, before add_ns */
    bool is_in_life; /* with add_ns, and by the clock in its head, an event begins in
                        opts.life. A base that came behind the events was not known
                        when each was looked at: only the first and the last are then */
    bool is_native;  /* of a linked producer, by whose clock its times are */
    struct tp_native_head native;        /* what such a batch says of itself */
    const struct tp_native_check *as_is; /* the payload is what came, with the ends of
                                            slices, and this is what is known of it;
                                            else NULL */
    uint64_t members;                    /* top-level members kept */
    uint64_t members_left_out;           /* over a limit */
    uint64_t damages;                    /* places that could not be read */
    uint64_t damage_offset[TP_INGEST_DAMAGES_MAX]; /* the first, in inflated bytes */
    bool is_truncated;                             /* the input ended inside a value */
    bool lacks_events; /* JSON: an object that is no event and has no traceEvents */
    char first_rejection[128]; /* why, for the first event dropped; "" when none */
};

/*
 * Begin an ingest; opts is copied.
 *
 * out  set only on success; release it with tp_ingest_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_ingest_new(const struct tp_ingest_opts *opts, struct tp_ingest **out,
                  struct tp_err *err);

/* Release it with its payload and blob. NULL is allowed. */
void tp_ingest_free(struct tp_ingest *g);

/*
 * Take n more bytes of the body.
 *
 * TP_EINVAL  the body is damaged; the message has the byte offset. TP_EQUOTA  it is
 *            over a limit. TP_ENOMEM, TP_EIO (the blob). All are final: there is no
 *            payload, and further calls give the same answer. What the blob refuses of
 *            a batch is told by tp_ingest_finish() only, so that all is counted.
 */
int tp_ingest_feed(struct tp_ingest *g, const void *p, size_t n, struct tp_err *err);

/* The bytes that the payload has so far. */
uint64_t tp_ingest_payload_bytes(const struct tp_ingest *g);

/* The events that were read so far, without those that the reader itself refused. */
uint64_t tp_ingest_events(const struct tp_ingest *g);

/* After a TP_EQUOTA: which limit it was. When it is none of ours, is_medium says
 * whether the blob for the payload refused more. */
enum tp_ingest_limit tp_ingest_limit_hit(const struct tp_ingest *g, bool *is_medium);

/*
 * Say that the body is complete. Errors as tp_ingest_feed(); a body that ends too early
 * is TP_EINVAL unless salvaging.
 *
 * out  points into g; counts hold emitted = stored + filtered + dropped.
 */
int tp_ingest_finish(struct tp_ingest *g, const struct tp_ingest_result **out,
                     struct tp_err *err);

#endif
