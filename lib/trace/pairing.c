/*
 * pairing.c - open begins as a stack for each track, threaded by one list of age.
 *
 *     track 0:  top -> inner -> outer            below
 *     track 1:  top -> other
 *     age:      outer <-> other <-> inner        older, younger
 *
 * The oldest of all is always the outermost of its track, so that evicting it takes
 * nothing out of the middle of a stack.
 */
#include "trace/pairing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define TRACKS_MAX 1048576
#define OPEN_MAX 65536
#define OPEN_BYTES (16u << 20)
#define ARGS_MAX 512

struct open_begin {
    struct open_begin *below, *above;   /* of the same track */
    struct open_begin *older, *younger; /* of all */
    uint32_t track;
    uint32_t size;  /* bytes of rec; 0 for a ghost */
    uint64_t rec[]; /* a record; its type aligns it */
};

struct tp_pairing {
    struct tp_pairing_opts opts;
    struct open_begin **tops; /* by track */
    uint32_t n_tops;
    struct open_begin *oldest, *youngest;
    uint64_t n_open;
    size_t bytes;
    struct tp_buf scratch; /* the record of a new begin */
    struct tp_rec_args decoded;
    struct tp_arg *joined; /* arguments of a pair */
    uint32_t joined_cap;
    struct tp_pairing_stats stats;
};

static void set_defaults(struct tp_pairing_opts *o)
{
    o->tracks_max = o->tracks_max == 0 ? TRACKS_MAX : o->tracks_max;
    o->open_max = o->open_max == 0 ? OPEN_MAX : o->open_max;
    o->open_bytes = o->open_bytes == 0 ? OPEN_BYTES : o->open_bytes;
    o->args_max = o->args_max == 0 ? ARGS_MAX : o->args_max;
}

int tp_pairing_new(const struct tp_pairing_opts *opts, struct tp_pairing **out,
                   struct tp_err *err)
{
    struct tp_pairing *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for pairing begins and ends");
    p->opts = *opts;
    set_defaults(&p->opts);
    *out = p;
    return TP_OK;
}

void tp_pairing_free(struct tp_pairing *p)
{
    if (p == NULL)
        return;
    while (p->oldest != NULL) {
        struct open_begin *next = p->oldest->younger;

        free(p->oldest);
        p->oldest = next;
    }
    free(p->tops);
    tp_buf_fini(&p->scratch);
    tp_rec_args_fini(&p->decoded);
    free(p->joined);
    free(p);
}

static int reach_track(struct tp_pairing *p, uint32_t track, struct tp_err *err)
{
    uint32_t n = p->n_tops == 0 ? 16 : p->n_tops;
    struct open_begin **tops;

    if (track < p->n_tops)
        return TP_OK;
    if (track >= p->opts.tracks_max)
        return tp_fail(err, TP_EQUOTA, "track %u is over the limit of %u tracks", track,
                       p->opts.tracks_max);
    while (n <= track)
        n = n > p->opts.tracks_max / 2 ? p->opts.tracks_max : n * 2;
    tops = realloc(p->tops, n * sizeof(struct open_begin *));
    if (tops == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %u tracks", n);
    memset(tops + p->n_tops, 0, (n - p->n_tops) * sizeof(struct open_begin *));
    p->tops = tops;
    p->n_tops = n;
    return TP_OK;
}

/* Take a begin out of both lists; it is the caller's then. */
static void detach(struct tp_pairing *p, struct open_begin *b)
{
    if (b->above != NULL)
        b->above->below = b->below;
    else
        p->tops[b->track] = b->below;
    if (b->below != NULL)
        b->below->above = b->above;
    if (b->older != NULL)
        b->older->younger = b->younger;
    else
        p->oldest = b->younger;
    if (b->younger != NULL)
        b->younger->older = b->older;
    else
        p->youngest = b->older;
    p->n_open--;
    p->bytes -= sizeof(*b) + b->size;
}

static void attach(struct tp_pairing *p, struct open_begin *b)
{
    b->below = p->tops[b->track];
    if (b->below != NULL)
        b->below->above = b;
    p->tops[b->track] = b;
    b->older = p->youngest;
    if (b->older != NULL)
        b->older->younger = b;
    else
        p->oldest = b;
    p->youngest = b;
    p->n_open++;
    p->bytes += sizeof(*b) + b->size;
}

static int decode(struct tp_pairing *p, const struct open_begin *b, struct tp_event *ev,
                  struct tp_err *err)
{
    int rc = tp_rec_decode(p->opts.names, b->rec, &p->decoded, ev, err);

    if (rc == TP_OK)
        ev->track = p->opts.track_of(b->track, p->opts.arg);
    return rc;
}

/* Hand the oldest begin out as one without an end. */
static int leave_oldest(struct tp_pairing *p, struct tp_err *err)
{
    struct open_begin *b = p->oldest;
    struct tp_event ev;
    int rc = TP_OK;

    detach(p, b);
    if (b->size > 0) {
        rc = decode(p, b, &ev, err);
        if (rc == TP_OK) {
            ev.is_unfinished = true;
            p->stats.unfinished++;
            rc = p->opts.on_event(&ev, err, p->opts.arg);
        }
    }
    free(b);
    return rc;
}

/* Open a begin with the record in scratch, which is empty for a ghost. */
static int open_one(struct tp_pairing *p, uint32_t track, struct tp_err *err)
{
    struct open_begin *b;
    int rc = reach_track(p, track, err);

    if (rc != TP_OK)
        return rc;
    b = calloc(1, sizeof(*b) + p->scratch.len);
    if (b == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for an open slice of %zu bytes",
                       p->scratch.len);
    b->track = track;
    b->size = (uint32_t)p->scratch.len;
    if (b->size > 0)
        memcpy(b->rec, p->scratch.data, b->size);
    attach(p, b);
    while (p->oldest != b &&
           (p->n_open > p->opts.open_max || p->bytes > p->opts.open_bytes)) {
        p->stats.evicted += p->oldest->size > 0;
        rc = leave_oldest(p, err);
        if (rc != TP_OK)
            return rc;
    }
    return TP_OK;
}

int tp_pairing_begin(struct tp_pairing *p, const struct tp_event *ev,
                     struct tp_err *err)
{
    int rc;

    p->scratch.len = 0;
    rc = tp_rec_encode(p->opts.names, ev, &p->scratch, err);
    return rc != TP_OK ? rc : open_one(p, ev->track->index, err);
}

int tp_pairing_ghost(struct tp_pairing *p, const struct tp_event *ev,
                     struct tp_err *err)
{
    p->scratch.len = 0;
    return open_one(p, ev->track->index, err);
}

static int join_args(struct tp_pairing *p, struct tp_event *slice,
                     const struct tp_event *end, struct tp_err *err)
{
    uint32_t room = slice->n_args < p->opts.args_max ? p->opts.args_max - slice->n_args
                                                     : 0;
    uint32_t extra = end->n_args < room ? end->n_args : room;
    uint32_t n = slice->n_args + extra;

    p->stats.args_dropped += end->n_args - extra;
    if (extra == 0)
        return TP_OK;
    if (n > p->joined_cap) {
        struct tp_arg *joined = realloc(p->joined, n * sizeof(*joined));

        if (joined == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for %u arguments", n);
        p->joined = joined;
        p->joined_cap = n;
    }
    if (slice->n_args > 0)
        memcpy(p->joined, slice->args, slice->n_args * sizeof(*p->joined));
    memcpy(p->joined + slice->n_args, end->args, extra * sizeof(*p->joined));
    slice->args = p->joined;
    slice->n_args = n;
    return TP_OK;
}

static int hand_out_pair(struct tp_pairing *p, const struct open_begin *b,
                         const struct tp_event *end, struct tp_err *err)
{
    struct tp_event slice;
    int rc = decode(p, b, &slice, err);

    if (rc != TP_OK)
        return rc;
    slice.kind = TP_EVENT_SLICE;
    slice.phase = slice.phase == 'B' ? 'X' : slice.phase;
    if (end->ts_ns < slice.ts_ns)
        p->stats.negative++;
    else if (__builtin_sub_overflow(end->ts_ns, slice.ts_ns, &slice.dur_ns))
        slice.dur_ns = INT64_MAX;
    if (slice.extra.len == 0)
        slice.extra = end->extra;
    p->stats.pairs++;
    rc = join_args(p, &slice, end, err);
    return rc != TP_OK ? rc : p->opts.on_event(&slice, err, p->opts.arg);
}

int tp_pairing_end(struct tp_pairing *p, const struct tp_event *ev, struct tp_err *err)
{
    uint32_t track = ev->track->index;
    struct open_begin *b = track < p->n_tops ? p->tops[track] : NULL;
    int rc = TP_OK;

    if (b == NULL) {
        p->stats.unmatched_ends++;
        return TP_OK;
    }
    detach(p, b);
    if (b->size == 0)
        p->stats.ghost_ends++;
    else
        rc = hand_out_pair(p, b, ev, err);
    free(b);
    return rc;
}

int tp_pairing_finish(struct tp_pairing *p, struct tp_err *err)
{
    int rc = TP_OK;

    while (rc == TP_OK && p->oldest != NULL)
        rc = leave_oldest(p, err);
    return rc;
}

struct tp_pairing_stats tp_pairing_stats(const struct tp_pairing *p)
{
    return p->stats;
}
