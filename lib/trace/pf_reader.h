/*
 * pf_reader.h - Perfetto protobuf packets as events.
 *
 * Reads our own streams (logs and sealed) back to exactly the events that were
 * written, and traces of others (track events of the Perfetto SDK) as far as an
 * event can say it. Pull style over memory of the caller; it does no I/O. Total:
 * any bytes give events, TP_EAGAIN or TP_EINVAL. One thread at a time.
 */
#ifndef TP_TRACE_PF_READER_H
#define TP_TRACE_PF_READER_H

#include "base/err.h"
#include "trace/event.h"

struct tp_pf_reader;

/* Zero means the default, where one is named. */
struct tp_pf_reader_opts {
    size_t packet_bytes;    /* longest packet accepted; default 16 MiB */
    size_t intern_bytes;    /* most bytes of interned strings; default 16 MiB */
    uint32_t tracks_max;    /* most (pid, tid) pairs; default 1048576 */
    uint32_t sequences_max; /* most writer sequences; default 65536 */
    bool is_trusted;        /* the bytes are a stream of ours and undamaged: strings and
                              JSON text are valid and not looked at again */
};

/* A window on the input: the reader moves ptr forward, never past end. */
struct tp_pf_cursor {
    const char *ptr;
    const char *end;
};

/* Counts of what was passed over, for honest reports. Plain data. */
struct tp_pf_skipped {
    uint64_t packets;  /* whole packets that carry no track event */
    uint64_t events;   /* track events that could not be understood */
    uint64_t repaired; /* strings with invalid UTF-8 that were repaired */
    uint64_t mended;   /* other values that a trusted reader would have read as they
                          are: no JSON, no phase, no scope */
};

/*
 * Create a reader.
 *
 * out  set only on success; release it with tp_pf_reader_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_pf_reader_new(const struct tp_pf_reader_opts *opts, struct tp_pf_reader **out,
                     struct tp_err *err);

/* Release a reader and all that its events point to. NULL is allowed. */
void tp_pf_reader_free(struct tp_pf_reader *r);

/* What tp_pf_reader_next() found. */
enum tp_pf_item {
    TP_PF_EVENT, /* *ev is filled in */
    TP_PF_GHOST, /* *ev has only kind BEGIN, ts_ns and track */
    TP_PF_FRAME  /* a frame header of a log: see frame.h; ev is untouched and
                    tp_pf_reader_frame() has its bytes */
};

/*
 * Read until the next item.
 *
 * c     in: what is at hand; out: behind the packets that were used up. The
 *       memory must stay unchanged until the next call, because ev points into it.
 * item  what it is.
 *
 * TP_EAGAIN  what is left at c->ptr is less than a packet: call again with more
 *            behind it, or it is the end of the input.
 * TP_EINVAL  not protobuf at c->ptr, which stays there; the reader is usable on.
 * TP_EQUOTA  a limit of the options; c is behind the packet.
 * TP_ENOMEM  c is where it was.
 */
int tp_pf_reader_next(struct tp_pf_reader *r, struct tp_pf_cursor *c,
                      enum tp_pf_item *item, struct tp_event *ev, struct tp_err *err);

/* Whether all packets so far were of the sequence with this id. */
bool tp_pf_reader_is_of(const struct tp_pf_reader *r, uint32_t sequence_id);

/* The payload of the last TP_PF_FRAME item, until the next call. */
struct tp_str tp_pf_reader_frame(const struct tp_pf_reader *r);

/* Whether the input so far ends inside a packet that is passed over as too long. */
bool tp_pf_reader_is_skipping(const struct tp_pf_reader *r);

/* What has been passed over so far. */
struct tp_pf_skipped tp_pf_reader_skipped(const struct tp_pf_reader *r);

/*
 * Tell the reader of a sealed stream about its tracks, which are not in the
 * stream itself: the track with this uuid (and its lanes) is (pid, tid).
 *
 * pid, tid  texts are copied.
 *
 * TP_ENOMEM, TP_EQUOTA  the track is not known.
 */
int tp_pf_reader_add_track(struct tp_pf_reader *r, uint64_t uuid, uint32_t lane,
                           const struct tp_id *pid, const struct tp_id *tid,
                           struct tp_err *err);

/* As above for a counter series of a sealed stream. */
int tp_pf_reader_add_series(struct tp_pf_reader *r, uint64_t uuid,
                            const struct tp_id *pid, const struct tp_id *tid,
                            struct tp_str counter, struct tp_str series,
                            struct tp_err *err);

#endif
