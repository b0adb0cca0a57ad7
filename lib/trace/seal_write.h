/*
 * seal_write.h - the second half of a seal: sorted events become the sealed stream.
 *
 * Assigns lanes, binds flows, writes packets and fills in what the index says about
 * them. Used by seal.c alone. One thread at a time.
 */
#ifndef TP_TRACE_SEAL_WRITE_H
#define TP_TRACE_SEAL_WRITE_H

#include <stdint.h>

#include "base/blob.h"
#include "trace/event.h"
#include "trace/stream_index.h"
#include "trace/track_pages.h"

struct tp_pf_writer;
struct tp_seal_writer;

/* The order of events at equal times. An unfinished begin is a slice. */
enum tp_seal_rank {
    TP_SEAL_SLICES, /* longest first: what encloses comes before */
    TP_SEAL_FLOW_STARTS,
    TP_SEAL_FLOW_STEPS,
    TP_SEAL_FLOW_ENDS,
    TP_SEAL_OTHERS
};

/* The rank of an event. */
enum tp_seal_rank tp_seal_rank(const struct tp_event *ev);

/* All pointers must outlive the writer. */
struct tp_seal_writer_opts {
    const struct tp_blobs *blobs;
    struct tp_blob *out;        /* appended to */
    struct tp_stream_index *ix; /* stream_no is set; tracks, series, types, names,
                                   blocks, times and counts are filled in */
    const struct tp_track_pages *tracks;
    struct tp_pf_writer *pf; /* of a sealed stream: it has numbered all strings */
};

/*
 * Create a writer; the strings are the first that it writes.
 *
 * out  set only on success; release it with tp_seal_writer_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_seal_writer_new(const struct tp_seal_writer_opts *opts,
                       struct tp_seal_writer **out, struct tp_err *err);

/* Release it. NULL is allowed. */
void tp_seal_writer_free(struct tp_seal_writer *w);

/*
 * Write the next event, in order. Its track is of opts.tracks.
 *
 * wire_args   of a SLICE: final arguments, see tp_pf_writer_slice(); else empty.
 * is_dropped  set to whether it is too large to be written.
 *
 * TP_ENOMEM, TP_EIO, TP_EQUOTA: the stream is not to be used.
 */
int tp_seal_writer_event(struct tp_seal_writer *w, struct tp_event *ev,
                         struct tp_str wire_args, bool *is_dropped, struct tp_err *err);

/* Write what is held back and complete the index. Errors as tp_seal_writer_event(). */
int tp_seal_writer_finish(struct tp_seal_writer *w, struct tp_err *err);

#endif
