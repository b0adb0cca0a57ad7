/*
 * pf_reader_state.h - the insides of struct tp_pf_reader, for the files of pf_reader.
 *
 *     pf_reader.c    packets: framing, sequences, what comes next
 *     pf_quick.c     the most common packets of ours, at once
 *     pf_run.c       runs of the most common of these, without events
 *     pf_decode.c    the fields of a track event
 *     pf_event.c     what they mean as an event
 *     pf_args.c      debug annotations
 *     pf_describe.c  track descriptors
 *     pf_clock.c     clocks
 *
 * Private to pf_reader.
 */
#ifndef TP_TRACE_PF_READER_STATE_H
#define TP_TRACE_PF_READER_STATE_H

#include "base/buf.h"
#include "base/pb_read.h"
#include "trace/pf_places.h"
#include "trace/pf_reader.h"
#include "trace/pf_sequence.h"

#define TP_PF_ARGS_MAX 65536u     /* most arguments of an event */
#define TP_PF_FLOWS_MAX 1024u     /* most flow ids of an event */
#define TP_PF_FLOW_SET (1u << 20) /* flows that are known to have begun */
#define TP_PF_CLOCKS 64           /* clocks of a snapshot that are remembered */

/* A clock of the whole trace as the last snapshot had it. */
struct tp_pf_trace_clock {
    uint32_t id;
    uint64_t ts;
};

/* The fields of one packet. */
struct tp_pf_packet {
    uint64_t ts;
    uint32_t sequence_id;
    uint32_t flags;
    uint32_t clock_id; /* 0: not said */
    bool has_ts;
    bool has_version;
    bool is_merged;
    struct tp_str event; /* ptr NULL when absent; so are those below */
    struct tp_str private_event;
    struct tp_str interned;
    struct tp_str defaults;
    struct tp_str descriptor;
    struct tp_str snapshot;
    struct tp_str frame;
};

/* The fields of one track event besides those that go into struct tp_event. */
struct tp_pf_raw {
    uint64_t track_uuid;
    uint64_t own_track;
    uint64_t counter_int;
    double counter_double;
    uint64_t unscoped_id;
    int64_t duration_us;
    int64_t absolute_us;
    int64_t legacy_pid, legacy_tid;
    uint32_t n_series; /* of our counter events */
    uint32_t n_flows;  /* in r->flows */
    uint32_t n_cats;
    uint32_t kind; /* of private events */
    uint8_t type;
    uint8_t legacy_phase;
    uint8_t phase; /* private field */
    uint8_t scope; /* likewise */
    bool has_track, has_counter, has_counter_double, has_id, has_phase, has_kind,
        has_dur;
    bool is_synthetic, is_ghost, has_absolute, has_delta, has_legacy_pid,
        has_legacy_tid;
    bool keeps_args; /* of our counter events: the first packet has all arguments */
    bool is_broken;  /* refers to an interned string that is not there */
};

/* A flow of the event that was handed over last. */
struct tp_pf_flow {
    uint64_t id;
    bool is_terminating;
};

struct tp_pf_reader {
    size_t packet_bytes;
    bool is_trusted;
    struct tp_pf_sequences sequences;
    struct tp_pf_places places;
    struct tp_pf_skipped skipped;
    uint64_t offset;     /* of the next byte of input */
    uint64_t skip_bytes; /* of a packet over the limit, still to come */
    struct tp_str frame;

    /* Of the event at hand. */
    struct tp_arg *args;
    uint32_t cap_args;
    struct tp_buf text;    /* where JSON of a nested annotation is put together */
    struct tp_arena fixed; /* texts that are not in the input: repaired, put together */
    size_t fixed_bytes;    /* of it, for this event */

    /* Flows that follow it. */
    struct tp_pf_flow *flows;
    uint32_t cap_flows;
    uint32_t n_flows, next_flow;
    int64_t flow_ts_ns;
    const struct tp_track *flow_track;
    uint64_t *begun; /* hash set of flow ids; 0 = free */
    uint32_t n_begun;

    struct tp_pf_trace_clock clocks[TP_PF_CLOCKS];
    uint32_t n_clocks;
    uint32_t primary_clock;
};

/*
 * Valid UTF-8 for the text s: itself, or a repaired copy for as long as the event.
 * TP_ENOMEM, TP_EQUOTA.
 */
int tp_pf_reader_fix(struct tp_pf_reader *r, struct tp_str s, struct tp_str *out,
                     struct tp_err *err);

/* Whether text is one valid JSON value and nothing else. */
bool tp_pf_reader_is_json(struct tp_str text);

/* Keep a text for as long as the event. TP_ENOMEM; TP_EQUOTA: more than a packet. */
int tp_pf_reader_keep(struct tp_pf_reader *r, struct tp_str s, struct tp_str *out,
                      struct tp_err *err);

/*
 * Decode a debug annotation of sequence q into *arg. Returns TP_OK; TP_EINVAL: it is
 * damaged; TP_ENOTFOUND: it refers to an interned string that is not there; TP_ENOMEM;
 * TP_EQUOTA: its text would be longer than a packet.
 */
int tp_pf_reader_arg(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                     struct tp_str bytes, struct tp_arg *arg, struct tp_err *err);

/*
 * Decode the fields of a track event into *raw, *ev and r->args. TP_EINVAL, TP_ENOMEM,
 * TP_EQUOTA.
 */
int tp_pf_reader_decode(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                        struct tp_str bytes, struct tp_pf_raw *raw, struct tp_event *ev,
                        struct tp_err *err);

/*
 * Complete *ev from *raw and the packet, and say what it is.
 *
 * is_event  false: it is none, and was counted as skipped where that is due.
 *
 * TP_ENOMEM, TP_EQUOTA.
 */
int tp_pf_reader_interpret(struct tp_pf_reader *r, struct tp_pf_sequence *q,
                           const struct tp_pf_packet *packet, bool is_private,
                           struct tp_pf_raw *raw, struct tp_event *ev, bool *is_event,
                           struct tp_err *err);

/*
 * Read the packet at p when it is one of the events that our writer writes most, and
 * there is more behind it. Returns its end, with *ev set; or NULL, with *ev as it was:
 * read it field by field. Reads the same events as that does.
 */
const char *tp_pf_reader_quick(struct tp_pf_reader *r, const char *p, const char *end,
                               struct tp_event *ev);

/* Read the value of a series packet of ours: *arg. False: it is no such packet. */
bool tp_pf_reader_series(struct tp_pf_reader *r, struct tp_str packet,
                         struct tp_arg *arg);

/*
 * Take in a track descriptor of sequence q. When it tells the name of a process or
 * thread for the first time, *ev becomes that metadata event and *is_event true.
 * Descriptors of ours tell one in the header of a download only. TP_EINVAL,
 * TP_ENOMEM, TP_EQUOTA.
 */
int tp_pf_reader_describe(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                          struct tp_str bytes, struct tp_event *ev, bool *is_event,
                          struct tp_err *err);

/* Take in a clock snapshot of a packet of sequence q. TP_EINVAL, TP_ENOMEM. */
int tp_pf_reader_snapshot(struct tp_pf_reader *r, struct tp_pf_sequence *q,
                          struct tp_str bytes, struct tp_err *err);

/* Turn the timestamp of a packet into the trace's time; false: its clock is unknown. */
bool tp_pf_reader_time(struct tp_pf_reader *r, struct tp_pf_sequence *q,
                       const struct tp_pf_packet *packet, int64_t *ts_ns);

/* Make room for at least n arguments. TP_ENOMEM; TP_EQUOTA: over TP_PF_ARGS_MAX. */
int tp_pf_reader_reserve_args(struct tp_pf_reader *r, uint32_t n, struct tp_err *err);

#endif
