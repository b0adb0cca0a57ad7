/*
 * pf_descriptor.h - packets that introduce a sequence and its tracks.
 *
 * A log has them inline; for sealed streams the writer of a download's header makes
 * them with these functions. They keep no state and choose no ids. Safe from any
 * thread on memory of its own.
 */
#ifndef TP_TRACE_PF_DESCRIPTOR_H
#define TP_TRACE_PF_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "trace/event.h"

/* What a uuid of ours stands for: its lowest two bits. */
enum tp_pf_track_kind {
    TP_PF_KIND_TRACK = 0,   /* a (pid, tid) and lane */
    TP_PF_KIND_SERIES = 1,  /* a counter series */
    TP_PF_KIND_PROCESS = 2, /* a pid */
    TP_PF_KIND_OTHER = 3    /* free for headers; never used by streams */
};

/*
 * A uuid below 2^58: see tp_pf_track_uuid() in pf_writer.h.
 *
 * stream_no  1 to 65535. number, lane  below TP_PF_TRACKS_MAX, TP_PF_LANES_MAX.
 */
static inline uint64_t tp_pf_uuid(enum tp_pf_track_kind kind, uint32_t stream_no,
                                  uint32_t number, uint32_t lane)
{
    return (uint64_t)lane << 40 | (uint64_t)number << 18 | (uint64_t)stream_no << 2 |
           (uint64_t)kind;
}

/* What to say of a track. Plain data, all borrowed; zero means "do not say". */
struct tp_pf_descriptor {
    enum tp_pf_track_kind kind;
    uint64_t uuid;        /* not 0 */
    uint64_t parent_uuid; /* 0: none */
    struct tp_str name;   /* of a child track or counter */
    bool has_process;     /* this is the track of process shown_pid */
    bool has_thread;      /* this is the track of thread shown_tid in shown_pid */
    int32_t shown_pid, shown_tid; /* what viewers see: they know only numbers */
    struct tp_str process_name;   /* with has_process */
    struct tp_str thread_name;    /* with has_thread */
    /* What tp_pf_reader gives back: */
    const struct tp_id *pid, *tid; /* NULL: as an id of TP_ID_NONE */
    uint32_t lane;
    struct tp_str unit;     /* of KIND_SERIES: of its values, for viewers: "GB/s" */
    struct tp_str series;   /* of KIND_SERIES: the argument's name; ptr not NULL */
    struct tp_str own_name; /* becomes a metadata event when a download is read again */
};

/* The most bytes that tp_pf_put_descriptor() writes for d. */
size_t tp_pf_descriptor_room(const struct tp_pf_descriptor *d);

/* Write the packet at p, which has room for it; returns its end. */
char *tp_pf_put_descriptor(char *p, uint32_t sequence_id,
                           const struct tp_pf_descriptor *d);

/*
 * Append the packet of a descriptor.
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); nothing was appended.
 */
int tp_pf_write_descriptor(struct tp_buf *out, uint32_t sequence_id,
                           const struct tp_pf_descriptor *d, struct tp_err *err);

#define TP_PF_CLEAR_MAX 32 /* most bytes of tp_pf_put_clear() */

/* Write the packet that begins a sequence ("incremental state cleared") and says that
 * it is ours; TP_PF_CLEAR_MAX bytes of room at p. Returns its end. */
char *tp_pf_put_clear(char *p, uint32_t sequence_id);

/*
 * Append the packet of tp_pf_put_clear(): a header needs one for each stream.
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); nothing was appended.
 */
int tp_pf_write_clear(struct tp_buf *out, uint32_t sequence_id, struct tp_err *err);

/*
 * Append the name that viewers see for a counter series: "<counter> <series>", and
 * just "<counter>" when the series is called "value" or like the counter.
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); out is as before.
 */
int tp_pf_series_name(struct tp_buf *out, struct tp_str counter, struct tp_str series,
                      struct tp_err *err);

#endif
