/*
 * lanes.h - puts the slices of a track on lanes, so that on each they nest.
 *
 * Viewers draw a track as a stack: of two slices that cross, one is lost. A slice goes
 * to the first lane on which it lies inside or outside of all others. Events must come
 * in the order of a sealed stream (by start, longest first). It tells too which slice a
 * flow would bind to. Memory is bounded: what ended is forgotten. One thread at a time.
 */
#ifndef TP_TRACE_LANES_H
#define TP_TRACE_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct tp_lanes;

/* Lanes of a track, and slices inside one another on a lane. Perfetto's readers lose
 * slices that are deeper than 255, so that such ones go to another lane as well. */
#define TP_LANES_MAX 512
#define TP_LANES_DEPTH_MAX 254

/* Plain data. */
struct tp_lanes_stats {
    uint64_t lanes_added; /* lanes besides the first of each track */
    uint64_t overlaps;    /* slices that are not on the first lane */
    uint64_t crossings;   /* slices that cross another: all lanes were in use */
};

/*
 * Create an empty set of tracks.
 *
 * tracks_max  track numbers are below it.
 * out         set only on success; release it with tp_lanes_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_lanes_new(uint32_t tracks_max, struct tp_lanes **out, struct tp_err *err);

/* Release it. NULL is allowed. */
void tp_lanes_free(struct tp_lanes *l);

/*
 * Place a slice.
 *
 * track     0 to tracks_max - 1.
 * start_ns  not less than that of any call before, of the same track.
 * end_ns    not less than start_ns; INT64_MAX for a slice without an end.
 * lane      0 and up.
 *
 * TP_EQUOTA  the track's number is over the limit. TP_ENOMEM  nothing was placed.
 */
int tp_lanes_place(struct tp_lanes *l, uint32_t track, int64_t start_ns, int64_t end_ns,
                   uint32_t *lane, struct tp_err *err);

/*
 * Find the innermost slice that is open at a time: it has begun and not ended, or
 * begins and ends right then.
 *
 * ts_ns  not less than the start of the last slice that was placed on the track.
 * lane   its lane; untouched when there is none.
 *
 * Returns whether there is one.
 */
bool tp_lanes_find(struct tp_lanes *l, uint32_t track, int64_t ts_ns, uint32_t *lane);

/* How many lanes a track has, 0 when nothing was placed on it. */
uint32_t tp_lanes_count(const struct tp_lanes *l, uint32_t track);

/* What was done so far. */
struct tp_lanes_stats tp_lanes_stats(const struct tp_lanes *l);

#endif
