/*
 * stream_index.h - what a sealed stream does not say itself: its tracks, metadata,
 * counts, time range, summary and where in it a time is.
 *
 * Written once by the seal as one JSON document, read by downloads and
 * summaries. Building and reading do no I/O. One thread at a time; a finished
 * index is immutable and may be read by many.
 */
#ifndef TP_TRACE_STREAM_INDEX_H
#define TP_TRACE_STREAM_INDEX_H

#include "base/buf.h"
#include "base/str.h"
#include "trace/event.h"

/* A (pid, tid) and lane of the stream. */
struct tp_index_track {
    uint64_t uuid;
    uint32_t lane;
    struct tp_id pid, tid; /* texts are owned by the index */
};

/* A counter series of the stream. */
struct tp_index_series {
    uint64_t uuid;
    struct tp_id pid, tid;
    struct tp_str counter, series;
    struct tp_str cat; /* of the first event; empty: none, or it is not known */
};

/* A metadata (M) event, kept whole. */
struct tp_index_meta {
    struct tp_str name; /* process_name, thread_name, ... */
    struct tp_id pid, tid;
    int64_t ts_ns;
    bool has_ts;
    struct tp_str args_json; /* the object's text, "{...}"; empty when absent */
    struct tp_str extra;     /* as tp_event.extra, and cat, id, s and bp as members */
};

/* A top-level member of the source file: key and JSON text. */
struct tp_index_member {
    struct tp_str key, json;
};

/* Counts of one cat, and of one (cat, name). Durations in ns. */
struct tp_index_type {
    struct tp_str cat; /* as in the events; empty for events without one */
    uint64_t count, total_ns;
    int64_t first_ns, last_ns; /* earliest start, latest end */
};
struct tp_index_name {
    struct tp_str cat, name;
    uint64_t count, total_ns, min_ns, max_ns;
};

/* A moment on the clock of the producer and on the service's, right within error_ns. */
struct tp_index_clock {
    uint64_t producer_ns, server_ns, error_ns;
};

/* From this offset on (a packet boundary), events start at first_ns or later. */
struct tp_index_block {
    uint64_t offset;
    int64_t first_ns;
    int64_t max_end_ns; /* latest end of all events before this offset; INT64_MAX when
                           one of them has no end; INT64_MIN in the first block */
};

/* Plain data; arrays and texts are owned by it (one arena). */
struct tp_stream_index {
    uint32_t version; /* of this document; 1 */
    uint32_t stream_no;
    uint64_t size_bytes;  /* of the sealed stream */
    uint64_t names_bytes; /* all interned data is before this offset, so that a reader
                             may go on at any block; 0: it is spread over the stream */
    bool has_crc32c;      /* false: of a seal that kept no check sum */
    uint32_t crc32c;      /* of the sealed stream, as tp_frame_crc() */
    uint64_t n_events;    /* as counted by users: a slice is one */
    int64_t first_ns, last_ns; /* 0, 0 when there are no timed events */
    bool has_base;             /* the source named a base */
    int64_t base_ns;
    uint64_t unmatched_ends, unfinished, filtered_pairs, lanes_added, overlaps,
        unbound_flows;
    uint64_t crossings; /* slices that cross another one: no lane was left */
    uint64_t clamped;   /* events whose time was out of range and was moved into it */
    uint64_t metas_left_out;   /* M events over a limit */
    uint64_t members_left_out; /* top-level members over a limit */
    bool is_truncated;         /* a source file ended inside a value */
    uint64_t damages;          /* places of source files that could not be read */
    uint64_t *damage_offsets;  /* the first of them, in bytes of the source */
    size_t n_damage_offsets;
    struct tp_index_track *tracks;
    size_t n_tracks;
    struct tp_index_series *series;
    size_t n_series;
    struct tp_index_meta *metas;
    size_t n_metas;
    struct tp_index_member *members;
    size_t n_members;
    struct tp_index_type *types;
    size_t n_types;
    struct tp_index_name *names; /* the top ones by total_ns, then count */
    size_t n_names;
    bool names_are_complete;  /* false: those of least time were left out */
    uint64_t clock_error_ns;  /* with clocks: the times of the events are the service's,
                                 right within this */
    uint64_t clocks_left_out; /* readings that contradict the others */
    struct tp_index_clock *clocks; /* what the times were moved by, in order; NULL: they
                                      are as the producer's clock had them */
    size_t n_clocks;
    struct tp_index_block *blocks;
    size_t n_blocks;
    struct tp_index_arena *arena; /* private */
};

/* Copy bytes into the index's arena. TP_ENOMEM: nothing changed. */
int tp_stream_index_dup(struct tp_stream_index *ix, struct tp_str s, struct tp_str *out,
                        struct tp_err *err);

/* Copy an id with its text into the arena; errors as above. in may be *out. */
int tp_stream_index_dup_id(struct tp_stream_index *ix, const struct tp_id *in,
                           struct tp_id *out, struct tp_err *err);

/*
 * Make room for one more item in an array of an index, such as &ix->tracks.
 *
 * array       the array's pointer; replaced on success.
 * n           its items, all of which were added this way.
 * item_bytes  size of one.
 *
 * TP_ENOMEM  nothing changed.
 */
int tp_stream_index_grow(void *array, size_t n, size_t item_bytes, struct tp_err *err);

/* Release what the index owns and zero it. All-zero is allowed. */
void tp_stream_index_fini(struct tp_stream_index *ix);

/* Append the index as JSON text. TP_ENOMEM, TP_EQUOTA: as tp_buf_append(). */
int tp_stream_index_write(const struct tp_stream_index *ix, struct tp_buf *out,
                          struct tp_err *err);

/*
 * Read an index.
 *
 * out  filled in on success; release with tp_stream_index_fini().
 *
 * TP_EINVAL  not such a document, or of a later version. TP_ENOMEM.
 */
int tp_stream_index_read(const char *p, size_t n, struct tp_stream_index *out,
                         struct tp_err *err);

#endif
