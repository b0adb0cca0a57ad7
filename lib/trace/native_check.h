/*
 * native_check.h - whether a native batch may be stored as it is.
 *
 * Reads a batch as it grows and judges each event by the trace's filter. It changes
 * nothing: either all of the batch is what a log may hold and the trace wants, or the
 * batch is left to the long way (ingest.h), which takes each event for itself. Ends of
 * slices may be left out (native_ends.h). One thread at a time.
 */
#ifndef TP_TRACE_NATIVE_CHECK_H
#define TP_TRACE_NATIVE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/activity.h"
#include "trace/native_batch.h"
#include "trace/seal.h"

struct tp_err;
struct tp_filter;
struct tp_native_check;
struct tp_typemap;

/* Pointers outlive the check. */
struct tp_native_check_opts {
    uint32_t stream_no;             /* of the stream that the batch is for */
    const struct tp_filter *filter; /* NULL: nothing is filtered */
    const struct tp_typemap *types; /* NULL: no `cat` is a known type */
    uint32_t tracks_max;            /* 0: the default of pf_reader.h */
    struct tp_seal_window life;     /* as in ingest.h */
};

/* What is known about a batch. */
enum tp_native_verdict {
    TP_NATIVE_UNKNOWN, /* fewer than TP_NATIVE_HEAD_BYTES are there */
    TP_NATIVE_GOOD,    /* so far, all of it may be stored as it is */
    TP_NATIVE_ODD,     /* it has a head, and something that must be read the long way */
    TP_NATIVE_FOREIGN  /* it has no head: it is no native batch */
};

/* Plain data; for TP_NATIVE_GOOD. */
struct tp_native_found {
    struct tp_native_head head; /* for TP_NATIVE_ODD, too */
    uint64_t n_events;
    uint64_t n_untyped; /* of them: `cat` is no known type */
    bool is_plain; /* the seal keeps every event as it is: nothing is to be paired, and
                      nothing is about more than itself. The rest is for these only. */
    uint64_t n_metas;    /* metadata events */
    uint64_t meta_bytes; /* that they take in an index, at most */
    bool has_times;      /* there are others, which give the next two */
    int64_t first_ns;    /* the first begin and the last end, by the producer's clock */
    int64_t last_ns;
    bool is_in_life; /* by the clock of the head, one of them begins in opts.life */
    uint64_t by_type[TP_ACTIVITY_IDS]; /* known after tp_native_check_finish() */
};

/*
 * Create one; opts is copied.
 *
 * out  set only on success; release it with tp_native_check_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_native_check_new(const struct tp_native_check_opts *opts,
                        struct tp_native_check **out, struct tp_err *err);

/* Release it. NULL is allowed. */
void tp_native_check_free(struct tp_native_check *c);

/*
 * Judge what has come of a batch.
 *
 * batch, n  all of it so far; it may have moved since the last call.
 * verdict   the last two are final.
 *
 * TP_EINVAL  it is for another stream, or no packets; the message says which and where.
 * TP_ENOMEM. Nothing may follow but tp_native_check_free().
 */
int tp_native_check_feed(struct tp_native_check *c, const char *batch, size_t n,
                         enum tp_native_verdict *verdict, struct tp_err *err);

/*
 * The batch of n bytes is complete. As tp_native_check_feed(), and
 *
 * TP_EINVAL  it ends inside a packet, or is GOOD but has not as many events as its head
 *            says.
 */
int tp_native_check_finish(struct tp_native_check *c, size_t n,
                           enum tp_native_verdict *verdict, struct tp_err *err);

/* What was found so far; lives as long as the check. */
const struct tp_native_found *tp_native_check_found(const struct tp_native_check *c);

/* How many tracks, processes and counter series the batch has described so far. */
uint32_t tp_native_check_tracks(const struct tp_native_check *c);

/* The uuid of one of them; i is below tp_native_check_tracks(). */
uint64_t tp_native_check_track(const struct tp_native_check *c, uint32_t i);

/*
 * Whether the number of events is what the head says, for a batch that was read
 * the long way. TP_EINVAL: it is not.
 */
int tp_native_check_count(const struct tp_native_head *head, uint64_t n_events,
                          struct tp_err *err);

#endif
