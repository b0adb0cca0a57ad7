/*
 * pairing.h - makes slices of begins and ends.
 *
 * Begins are held back until their end comes on the same track; the innermost is ended
 * first. It knows no file and no filter: a begin that a filter refused comes as a ghost
 * and takes its end with it. Memory is bounded; what is over the bound leaves as a
 * begin without an end, the oldest first. One thread at a time.
 */
#ifndef TP_TRACE_PAIRING_H
#define TP_TRACE_PAIRING_H

#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"
#include "trace/event_rec.h"

struct tp_pairing;

/* Takes an event that is complete: a SLICE, or a BEGIN marked as unfinished. A non-zero
 * answer ends the call and is returned by it. */
typedef int (*tp_pairing_fn)(const struct tp_event *ev, struct tp_err *err, void *arg);

/* Zero means the default, where one is named. */
struct tp_pairing_opts {
    uint32_t tracks_max; /* track numbers are below it; default 1048576 */
    uint64_t open_max;   /* begins held at once; default 65536 */
    size_t open_bytes;   /* their memory; default 16 MiB */
    uint32_t args_max;   /* of a slice: those of its end beyond it go; default 512 */
    struct tp_rec_names *names; /* not NULL; outlives the pairing */
    const struct tp_track *(*track_of)(uint32_t index, void *arg); /* not NULL */
    tp_pairing_fn on_event;                                        /* not NULL */
    void *arg;                                                     /* for both */
};

/* Plain data: numbers of posted events. */
struct tp_pairing_stats {
    uint64_t pairs;          /* slices made of a begin and an end */
    uint64_t unmatched_ends; /* ends that no begin was open for */
    uint64_t unfinished;     /* begins that left without an end */
    uint64_t evicted;        /* of these: because of the bounds */
    uint64_t ghost_ends;     /* ends that went with a refused begin */
    uint64_t negative;       /* pairs whose end was before the begin: made 0 long */
    uint64_t args_dropped;   /* arguments over args_max */
};

/*
 * Create an empty pairing; opts is copied.
 *
 * out  set only on success; release it with tp_pairing_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_pairing_new(const struct tp_pairing_opts *opts, struct tp_pairing **out,
                   struct tp_err *err);

/* Release it with all that is open. NULL is allowed. */
void tp_pairing_free(struct tp_pairing *p);

/*
 * Hold a BEGIN back. It is copied.
 *
 * TP_EQUOTA  its track is over the limit. TP_ENOMEM. It is not held. Else what the
 * callback said about one that had to leave.
 */
int tp_pairing_begin(struct tp_pairing *p, const struct tp_event *ev,
                     struct tp_err *err);

/* As above for a begin that a filter refused: only its track counts. */
int tp_pairing_ghost(struct tp_pairing *p, const struct tp_event *ev,
                     struct tp_err *err);

/*
 * End the innermost open begin of the track of an END. A pair is handed out as a SLICE
 * whose arguments are those of the begin and then those of the end; `extra` is the
 * begin's, or the end's when that has none.
 *
 * TP_ENOMEM, or what the callback said: the begin is gone.
 */
int tp_pairing_end(struct tp_pairing *p, const struct tp_event *ev, struct tp_err *err);

/* Hand out all that is still open, the oldest first. Errors as tp_pairing_end(). */
int tp_pairing_finish(struct tp_pairing *p, struct tp_err *err);

/* What was seen so far. */
struct tp_pairing_stats tp_pairing_stats(const struct tp_pairing *p);

#endif
