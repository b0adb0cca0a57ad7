/*
 * packet_feed.h - Perfetto packets in, in pieces of any size, events out by callback.
 *
 * Puts a tp_pf_reader, which wants whole packets, behind bytes as they arrive. At most
 * one packet is held. Used for posted bodies and for logs on disk. One thread at a
 * time.
 */
#ifndef TP_TRACE_PACKET_FEED_H
#define TP_TRACE_PACKET_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "trace/event.h"

struct tp_packet_feed;
struct tp_pf_plain;

/* Takes an event; a non-zero answer ends the feeding and is returned by it. */
typedef int (*tp_packet_event_fn)(const struct tp_event *ev, struct tp_err *err,
                                  void *arg);

/* Takes a slice that need not be read further, see pf_plain.h; as above. *is_taken is
 * true; made false, the slice comes as an event after all. */
typedef int (*tp_packet_plain_fn)(const struct tp_pf_plain *plain, bool *is_taken,
                                  struct tp_err *err, void *arg);

/* Takes a frame header; as above. */
typedef int (*tp_packet_frame_fn)(struct tp_str frame, struct tp_err *err, void *arg);

/* Zero means the default, where one is named. */
struct tp_packet_feed_opts {
    bool salvage;    /* false: what is no packet is TP_EINVAL; true: it is noted, and
                            all behind it is passed over, as packets have no beginning
                            that can be found again */
    bool is_trusted; /* as in pf_reader.h */
    uint32_t tracks_max;         /* default: that of pf_reader.h */
    tp_packet_event_fn on_event; /* not NULL */
    tp_packet_event_fn on_ghost; /* NULL: ghosts are passed over */
    tp_packet_plain_fn on_plain; /* NULL: all slices are events; needs is_trusted */
    tp_packet_frame_fn on_frame; /* NULL: frame headers are passed over */
    void *arg;                   /* for all of them */
};

/* Plain data: what was found besides the events handed out. */
struct tp_packet_feed_stats {
    uint64_t bytes;         /* fed */
    uint64_t misread;       /* track events that could not be understood */
    uint64_t over_limit;    /* packets over a limit of the reader: passed over */
    uint64_t repaired;      /* strings that were repaired */
    bool is_damaged;        /* salvage: reading ended at damage_offset */
    bool is_truncated;      /* ... because the input ended inside a packet */
    uint64_t damage_offset; /* in bytes of what was fed */
};

/*
 * Create a feed; opts is copied.
 *
 * out  set only on success; release it with tp_packet_feed_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_packet_feed_new(const struct tp_packet_feed_opts *opts,
                       struct tp_packet_feed **out, struct tp_err *err);

/* Release it with all that its events pointed to. NULL is allowed. */
void tp_packet_feed_free(struct tp_packet_feed *f);

/*
 * Take n more bytes.
 *
 * TP_EINVAL  no packet; the message has the offset. TP_ENOMEM. Or what a callback
 * answered. Nothing may follow but tp_packet_feed_free().
 */
int tp_packet_feed(struct tp_packet_feed *f, const char *p, size_t n,
                   struct tp_err *err);

/* Say that the input is complete. TP_EINVAL: it ended inside a packet. */
int tp_packet_feed_finish(struct tp_packet_feed *f, struct tp_err *err);

/* What was found so far. */
struct tp_packet_feed_stats tp_packet_feed_stats(const struct tp_packet_feed *f);

/* Alone the number of repaired strings, which is asked for each event. */
uint64_t tp_packet_feed_repaired(const struct tp_packet_feed *f);

#endif
