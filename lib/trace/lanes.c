/*
 * lanes.c - a stack of open slices for each lane of each track.
 *
 *     lane 0:  [outer 0..10 [inner 2..4]]    stack at 3: 0..10, 2..4
 *     lane 1:          [other 5..15]         crosses outer
 *
 * Since slices come by start, longest first, a slice fits on a lane when, after those
 * that ended by its start are popped, the innermost one left ends no earlier than it
 * does. First fit keeps a track's usual lane at 0 and uses the fewest lanes of all
 * orders that look at one slice at a time.
 */
#include "trace/lanes.h"

#include <stdlib.h>
#include <string.h>

struct open_slice {
    int64_t start_ns, end_ns;
};

struct lane {
    struct open_slice *open; /* outermost first */
    uint16_t n, cap;
};

struct track {
    struct lane *lanes;
    uint32_t n, cap;
};

struct tp_lanes {
    struct track *tracks;
    uint32_t n_tracks, tracks_max;
    struct tp_lanes_stats stats;
};

int tp_lanes_new(uint32_t tracks_max, struct tp_lanes **out, struct tp_err *err)
{
    struct tp_lanes *l = calloc(1, sizeof(*l));

    if (l == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for lanes");
    l->tracks_max = tracks_max;
    *out = l;
    return TP_OK;
}

void tp_lanes_free(struct tp_lanes *l)
{
    if (l == NULL)
        return;
    for (uint32_t t = 0; t < l->n_tracks; t++) {
        for (uint32_t i = 0; i < l->tracks[t].n; i++)
            free(l->tracks[t].lanes[i].open);
        free(l->tracks[t].lanes);
    }
    free(l->tracks);
    free(l);
}

static int reach_track(struct tp_lanes *l, uint32_t number, struct tp_err *err)
{
    uint32_t n = l->n_tracks == 0 ? 16 : l->n_tracks;
    struct track *tracks;

    if (number < l->n_tracks)
        return TP_OK;
    if (number >= l->tracks_max)
        return tp_fail(err, TP_EQUOTA, "track %u is over the limit of %u tracks",
                       number, l->tracks_max);
    while (n <= number)
        n = n > l->tracks_max / 2 ? l->tracks_max : n * 2;
    tracks = realloc(l->tracks, n * sizeof(*tracks));
    if (tracks == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %u tracks", n);
    memset(tracks + l->n_tracks, 0, (n - l->n_tracks) * sizeof(*tracks));
    l->tracks = tracks;
    l->n_tracks = n;
    return TP_OK;
}

static void pop_ended(struct lane *lane, int64_t ts_ns)
{
    while (lane->n > 0 && lane->open[lane->n - 1].end_ns <= ts_ns)
        lane->n--;
}

static int push_open(struct lane *lane, struct open_slice s, struct tp_err *err)
{
    if (lane->n == lane->cap) {
        uint16_t cap = lane->cap == 0 ? 8 : (uint16_t)(lane->cap * 2);
        struct open_slice *open = realloc(lane->open, cap * sizeof(*open));

        if (open == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for %u open slices", cap);
        lane->open = open;
        lane->cap = cap;
    }
    lane->open[lane->n++] = s;
    return TP_OK;
}

/* A lane more; its number is the old t->n. */
static int add_lane(struct tp_lanes *l, struct track *t, struct tp_err *err)
{
    if (t->n == t->cap) {
        uint32_t cap = t->cap == 0 ? 1 : t->cap * 2;
        struct lane *lanes = realloc(t->lanes, cap * sizeof(*lanes));

        if (lanes == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for %u lanes", cap);
        t->lanes = lanes;
        t->cap = cap;
    }
    t->lanes[t->n] = (struct lane){0};
    t->n++;
    l->stats.lanes_added += t->n > 1;
    return TP_OK;
}

static bool fits(struct lane *lane, int64_t start_ns, int64_t end_ns)
{
    pop_ended(lane, start_ns);
    if (lane->n == 0)
        return true;
    return lane->n < TP_LANES_DEPTH_MAX && end_ns <= lane->open[lane->n - 1].end_ns;
}

int tp_lanes_place(struct tp_lanes *l, uint32_t track, int64_t start_ns, int64_t end_ns,
                   uint32_t *lane, struct tp_err *err)
{
    int rc = reach_track(l, track, err);
    struct track *t;
    uint32_t i = 0;

    if (rc != TP_OK)
        return rc;
    t = &l->tracks[track];
    while (i < t->n && !fits(&t->lanes[i], start_ns, end_ns))
        i++;
    if (i == TP_LANES_MAX) {
        /* Nowhere to go: it is kept, on a lane where a viewer draws it wrong. */
        l->stats.crossings++;
        l->stats.overlaps++;
        *lane = TP_LANES_MAX - 1;
        return TP_OK;
    }
    if (i == t->n)
        rc = add_lane(l, t, err);
    if (rc == TP_OK)
        rc = push_open(&t->lanes[i], (struct open_slice){start_ns, end_ns}, err);
    if (rc != TP_OK)
        return rc;
    l->stats.overlaps += i > 0;
    *lane = i;
    return TP_OK;
}

/* The innermost slice of a lane that is open at a time, or NULL. */
static const struct open_slice *open_at(struct lane *lane, int64_t ts_ns)
{
    const struct open_slice *s;

    /* What ended right then is popped, unless it began right then as well. */
    while (lane->n > 0) {
        s = &lane->open[lane->n - 1];
        if (s->end_ns > ts_ns || (s->end_ns == ts_ns && s->start_ns == ts_ns))
            return s;
        lane->n--;
    }
    return NULL;
}

bool tp_lanes_find(struct tp_lanes *l, uint32_t track, int64_t ts_ns, uint32_t *lane)
{
    const struct open_slice *best = NULL;

    if (track >= l->n_tracks)
        return false;
    for (uint32_t i = 0; i < l->tracks[track].n; i++) {
        const struct open_slice *s = open_at(&l->tracks[track].lanes[i], ts_ns);

        if (s == NULL)
            continue;
        if (best == NULL || s->start_ns > best->start_ns) {
            best = s;
            *lane = i;
        }
    }
    return best != NULL;
}

uint32_t tp_lanes_count(const struct tp_lanes *l, uint32_t track)
{
    return track < l->n_tracks ? l->tracks[track].n : 0;
}

struct tp_lanes_stats tp_lanes_stats(const struct tp_lanes *l)
{
    return l->stats;
}
