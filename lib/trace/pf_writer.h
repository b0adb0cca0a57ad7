/*
 * pf_writer.h - events as Perfetto protobuf packets of one sequence.
 *
 * Appends to a buffer of the caller; it opens nothing and knows no file. It
 * interns names, categories and argument names as it meets them. One thread at
 * a time. docs/stream-format.md has the wire layout with our private fields.
 */
#ifndef TP_TRACE_PF_WRITER_H
#define TP_TRACE_PF_WRITER_H

#include "base/buf.h"
#include "trace/event.h"

struct tp_pf_writer;

/* Zero means the default, where one is named. */
struct tp_pf_writer_opts {
    uint32_t stream_no;  /* 1 to 65535; the sequence id, and in every track uuid */
    bool is_sealed;      /* false: self-contained payload of a log (descriptors and
                             "state cleared" inline); true: a sealed stream, whose
                             descriptors and clearing packet are in the header */
    bool has_one_reader; /* all events until the next reset come from one reader, so
                             equal iid means equal bytes and saves a look-up */
    uint32_t intern_max; /* most interned strings a kind; default 65536 */
    size_t intern_bytes; /* most bytes of interned strings a kind; default 8 MiB */
};

#define TP_PF_INLINE_BYTES 1024     /* longer names are never interned */
#define TP_PF_EVENT_MAX (15u << 20) /* longest packet written, in bytes */
#define TP_PF_TRACKS_MAX (1u << 22) /* largest track->index + 1 */
#define TP_PF_LANES_MAX (1u << 16)  /* largest track->lane + 1 */
#define TP_PF_SERIES_MAX 65536u     /* most counter series of a stream */

/*
 * Create a writer.
 *
 * out  set only on success; release it with tp_pf_writer_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_pf_writer_new(const struct tp_pf_writer_opts *opts, struct tp_pf_writer **out,
                     struct tp_err *err);

/* Release a writer. NULL is allowed. */
void tp_pf_writer_free(struct tp_pf_writer *w);

/* Forget all interned strings and tracks, as if new; memory is kept for reuse. */
void tp_pf_writer_reset(struct tp_pf_writer *w);

/*
 * Append the packets of one event: a SLICE becomes a BEGIN that carries its
 * duration and a synthetic END. ev->track->index and lane select the track.
 *
 * ev  ts_ns and ts_ns + dur_ns must not be negative in a sealed stream.
 *
 * TP_EQUOTA  it is longer than TP_PF_EVENT_MAX, on a track over TP_PF_TRACKS_MAX or
 *            TP_PF_LANES_MAX, or over the limit of out; nothing of it is in out.
 * TP_ENOMEM  nothing of the event is in out.
 */
int tp_pf_writer_event(struct tp_pf_writer *w, const struct tp_event *ev,
                       struct tp_buf *out, struct tp_err *err);

/*
 * Give the strings of an event numbers, as writing it would, and write nothing.
 *
 * TP_ENOMEM  some have none yet.
 */
int tp_pf_writer_number(struct tp_pf_writer *w, const struct tp_event *ev,
                        struct tp_err *err);

/*
 * Append packets with all strings that have numbers and are not in the output. From
 * then on, until a reset, no string gets a number: others are written out each time.
 *
 * TP_EQUOTA, TP_ENOMEM  of out; some may be there.
 */
int tp_pf_writer_names(struct tp_pf_writer *w, struct tp_buf *out, struct tp_err *err);

/*
 * The number of an argument's name in this writer's output, for those who put arguments
 * together themselves.
 *
 * number  0: it has none and would be written out.
 *
 * TP_ENOMEM  nothing changed.
 */
int tp_pf_writer_key(struct tp_pf_writer *w, const struct tp_name *key,
                     uint32_t *number, struct tp_err *err);

/*
 * As tp_pf_writer_event() for a SLICE.
 *
 * wire_args  arguments besides those of ev, as they are in a packet, with the numbers
 *            of tp_pf_writer_key(); may be empty.
 */
int tp_pf_writer_slice(struct tp_pf_writer *w, const struct tp_event *ev,
                       struct tp_str wire_args, struct tp_buf *out, struct tp_err *err);

/* As tp_pf_writer_slice(), in two halves, for a seal that must put flows between
 * them. */
int tp_pf_writer_slice_begin(struct tp_pf_writer *w, const struct tp_event *ev,
                             struct tp_str wire_args, struct tp_buf *out,
                             struct tp_err *err);

/* The synthetic end of a slice whose begin was written; see above. */
int tp_pf_writer_slice_end(struct tp_pf_writer *w, const struct tp_event *ev,
                           struct tp_buf *out, struct tp_err *err);

/*
 * Append the event as a private packet, which Perfetto's readers skip and
 * tp_pf_reader gives back whole: for META and OTHER (tp_pf_writer_event() does
 * that by itself) and for flows that bind to no slice.
 */
int tp_pf_writer_private(struct tp_pf_writer *w, const struct tp_event *ev,
                         struct tp_buf *out, struct tp_err *err);

/*
 * Append a ghost: a BEGIN that a filter refused, of which only track and time
 * are kept so that its END can be taken away too.
 */
int tp_pf_writer_ghost(struct tp_pf_writer *w, const struct tp_event *ev,
                       struct tp_buf *out, struct tp_err *err);

/*
 * The uuid that a sealed stream uses for a track, below 2^58:
 *
 *     lane (16 bits) | index (22 bits) | stream_no (16 bits) | 0 (2 bits: kind)
 *
 * Small numbers come lowest, so that most take three or four bytes. Counter series
 * have kind 1 and their number in place of the index. Kinds 2 and 3 are free
 * for the writer of the header, see tp_pf_uuid() in pf_descriptor.h.
 */
uint64_t tp_pf_track_uuid(uint32_t stream_no, uint32_t index, uint32_t lane);

/* One counter series that the writer met: what a header needs to describe it. */
struct tp_pf_series {
    uint64_t uuid;
    const struct tp_track *track; /* whose pid it belongs to: that of the first event */
    struct tp_str counter;        /* the event's name, with its id when it has one */
    struct tp_str cat;            /* of the first event; len 0: it has none */
    struct tp_str series;         /* the argument's name */
};

/* The counter series met since the last reset: an array that lives until the next call,
 * as do the tracks and texts in it; *n is its length. NULL when there are none. */
const struct tp_pf_series *tp_pf_writer_series(const struct tp_pf_writer *w, size_t *n);

#endif
