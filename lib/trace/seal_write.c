/*
 * seal_write.c - from sorted events to packets.
 *
 * A slice is two packets, one behind the other: begin at its start, end at its end.
 * Readers sort by time and keep the order of the file for equal times, which puts all
 * of these right but one: flows bind to a slice that is open, so a slice of no length
 * must still be open when the flows of its time come. Its end is therefore held back:
 *
 *     begin A (5) | begin Z (5) | flow (5) | end Z (5) | instant (5) | begin B (6)
 *
 * until the time is over, another slice begins on the same lane, or an event comes that
 * is neither slice nor flow. A flow that no slice is open for, or the second start of
 * one, would be an error to Perfetto's readers: it becomes a private packet, which only
 * we read.
 */
#include "trace/seal_write.h"

#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "trace/flow_starts.h"
#include "trace/frame.h"
#include "trace/lanes.h"
#include "trace/name_counts.h"
#include "trace/pf_writer.h"

#define WRITE_BYTES (512u * 1024)
#define BLOCK_BYTES (4u << 20)
#define HELD_MAX 1024
#define TOP_NAMES 1000

/* The end of a slice of no length that is held back. */
struct held_end {
    const struct tp_track *track;
    uint32_t lane;
};

struct tp_seal_writer {
    struct tp_seal_writer_opts opts;
    struct tp_pf_writer *pf;
    struct tp_lanes *lanes;
    struct tp_flow_starts flows;
    struct tp_name_counts *counts;
    bool *is_used; /* by track number: an event is on it */
    struct held_end held[HELD_MAX];
    size_t n_held;
    int64_t held_ts_ns; /* of all that is held */
    struct tp_buf out;
    uint64_t written_bytes; /* in the blob; out comes behind them */
    uint64_t block_offset;  /* where the last block begins */
    int64_t max_end_ns;     /* of all events so far */
};

enum tp_seal_rank tp_seal_rank(const struct tp_event *ev)
{
    switch (ev->kind) {
    case TP_EVENT_SLICE:
    case TP_EVENT_BEGIN:
        return TP_SEAL_SLICES;
    case TP_EVENT_FLOW_START:
        return TP_SEAL_FLOW_STARTS;
    case TP_EVENT_FLOW_STEP:
        return TP_SEAL_FLOW_STEPS;
    case TP_EVENT_FLOW_END:
        return TP_SEAL_FLOW_ENDS;
    default:
        return TP_SEAL_OTHERS;
    }
}

int tp_seal_writer_new(const struct tp_seal_writer_opts *opts,
                       struct tp_seal_writer **out, struct tp_err *err)
{
    struct tp_seal_writer *w = calloc(1, sizeof(*w));
    int rc;

    if (w == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for sealing a stream");
    w->opts = *opts;
    w->max_end_ns = INT64_MIN;
    w->is_used = calloc((size_t)opts->tracks->n_max + 1, sizeof(*w->is_used));
    w->pf = opts->pf;
    rc = w->is_used == NULL ? tp_fail(err, TP_ENOMEM, "no memory for sealing a stream")
                            : TP_OK;
    if (rc == TP_OK)
        rc = tp_lanes_new(opts->tracks->n_max, &w->lanes, err);
    if (rc == TP_OK)
        rc = tp_name_counts_new(NULL, &w->counts, err);
    if (rc == TP_OK)
        rc = tp_buf_reserve(&w->out, WRITE_BYTES + 64 * 1024, err);
    if (rc == TP_OK)
        rc = tp_pf_writer_names(w->pf, &w->out, err);
    if (rc != TP_OK) {
        tp_seal_writer_free(w);
        return rc;
    }
    opts->ix->names_bytes = w->out.len;
    *out = w;
    return TP_OK;
}

void tp_seal_writer_free(struct tp_seal_writer *w)
{
    if (w == NULL)
        return;
    tp_lanes_free(w->lanes);
    tp_flow_starts_fini(&w->flows);
    tp_name_counts_free(w->counts);
    free(w->is_used);
    tp_buf_fini(&w->out);
    free(w);
}

static int flush(struct tp_seal_writer *w, struct tp_err *err)
{
    const struct tp_blobs *blobs = w->opts.blobs;
    int rc = w->out.len == 0 ? TP_OK
                             : blobs->append(w->opts.out, w->out.data, w->out.len, err);

    if (rc != TP_OK)
        return rc;
    w->opts.ix->crc32c = tp_frame_crc(w->opts.ix->crc32c, w->out.data, w->out.len);
    w->written_bytes += w->out.len;
    w->out.len = 0;
    return TP_OK;
}

static int write_end(struct tp_seal_writer *w, const struct held_end *h,
                     struct tp_err *err)
{
    struct tp_track track = *h->track;
    struct tp_event ev = {.kind = TP_EVENT_SLICE,
                          .ts_ns = w->held_ts_ns,
                          .track = &track};

    track.lane = h->lane;
    return tp_pf_writer_slice_end(w->pf, &ev, &w->out, err);
}

/* Write all ends that are held back, the innermost first. */
static int release_ends(struct tp_seal_writer *w, struct tp_err *err)
{
    int rc = TP_OK;

    while (rc == TP_OK && w->n_held > 0)
        rc = write_end(w, &w->held[--w->n_held], err);
    return rc;
}

/* Write the end that is held back on a lane, if there is one. */
static int release_lane(struct tp_seal_writer *w, const struct tp_track *track,
                        uint32_t lane, struct tp_err *err)
{
    for (size_t i = w->n_held; i-- > 0;) {
        struct held_end h = w->held[i];

        if (h.track != track || h.lane != lane)
            continue;
        memmove(w->held + i, w->held + i + 1, (w->n_held - i - 1) * sizeof(h));
        w->n_held--;
        return write_end(w, &h, err);
    }
    return TP_OK;
}

static int hold_end(struct tp_seal_writer *w, const struct tp_track *track,
                    uint32_t lane, int64_t ts_ns, struct tp_err *err)
{
    int rc = w->n_held == HELD_MAX ? release_ends(w, err) : TP_OK;

    w->held[w->n_held++] = (struct held_end){track, lane};
    w->held_ts_ns = ts_ns;
    return rc;
}

/* A slice, or a begin without an end: track is the one that lanes are counted by. */
static int write_slice(struct tp_seal_writer *w, struct tp_event *ev,
                       struct tp_str wire_args, struct tp_err *err)
{
    const struct tp_track *track = ev->track;
    struct tp_track moved = *track;
    int64_t end = ev->kind == TP_EVENT_BEGIN ? INT64_MAX : ev->ts_ns + ev->dur_ns;
    int rc = tp_lanes_place(w->lanes, track->index, ev->ts_ns, end, &moved.lane, err);

    if (rc == TP_OK && w->n_held > 0)
        rc = release_lane(w, track, moved.lane, err);
    if (rc != TP_OK)
        return rc;
    if (moved.lane != 0)
        ev->track = &moved;
    if (ev->kind == TP_EVENT_BEGIN)
        rc = tp_pf_writer_event(w->pf, ev, &w->out, err);
    else if (ev->dur_ns > 0)
        rc = tp_pf_writer_slice(w->pf, ev, wire_args, &w->out, err);
    else
        rc = tp_pf_writer_slice_begin(w->pf, ev, wire_args, &w->out, err);
    if (rc == TP_OK && ev->kind == TP_EVENT_SLICE && ev->dur_ns == 0)
        rc = hold_end(w, track, moved.lane, ev->ts_ns, err);
    ev->track = track;
    return rc;
}

static int write_flow(struct tp_seal_writer *w, struct tp_event *ev, struct tp_err *err)
{
    const struct tp_track *track = ev->track;
    struct tp_track moved = *track;
    bool is_bound = tp_lanes_find(w->lanes, track->index, ev->ts_ns, &moved.lane);
    bool is_first = true;
    int rc = TP_OK;

    /* An end that does not bind to what encloses it waits for the next slice. */
    if (ev->kind == TP_EVENT_FLOW_END && !ev->binds_enclosing)
        is_bound = true;
    if (is_bound && ev->kind == TP_EVENT_FLOW_START)
        rc = tp_flow_starts_add(&w->flows, ev, &is_first, err);
    if (rc != TP_OK)
        return rc;
    w->opts.ix->unbound_flows += !is_bound;
    if (!is_bound || !is_first)
        return tp_pf_writer_private(w->pf, ev, &w->out, err);
    if (moved.lane != 0)
        ev->track = &moved;
    rc = tp_pf_writer_event(w->pf, ev, &w->out, err);
    ev->track = track;
    return rc;
}

static int write_by_rank(struct tp_seal_writer *w, struct tp_event *ev,
                         struct tp_str wire_args, struct tp_err *err)
{
    int rc = TP_OK;

    switch (tp_seal_rank(ev)) {
    case TP_SEAL_SLICES:
        return write_slice(w, ev, wire_args, err);
    case TP_SEAL_FLOW_STARTS:
    case TP_SEAL_FLOW_STEPS:
    case TP_SEAL_FLOW_ENDS:
        return write_flow(w, ev, err);
    case TP_SEAL_OTHERS:
        break;
    }
    if (w->n_held > 0)
        rc = release_ends(w, err);
    return rc == TP_OK ? tp_pf_writer_event(w->pf, ev, &w->out, err) : rc;
}

/* Begin a block of the index at this time when the last one is long enough. */
static int begin_block(struct tp_seal_writer *w, int64_t ts_ns, struct tp_err *err)
{
    struct tp_stream_index *ix = w->opts.ix;
    uint64_t at = w->written_bytes + w->out.len;
    int rc;

    if (ix->n_blocks > 0 && at - w->block_offset < BLOCK_BYTES)
        return TP_OK;
    rc = tp_stream_index_grow(&ix->blocks, ix->n_blocks, sizeof(*ix->blocks), err);
    if (rc != TP_OK)
        return rc;
    ix->blocks[ix->n_blocks++] = (struct tp_index_block){.offset = at,
                                                         .first_ns = ts_ns,
                                                         .max_end_ns = w->max_end_ns};
    w->block_offset = at;
    return TP_OK;
}

static void note_times(struct tp_seal_writer *w, const struct tp_event *ev)
{
    struct tp_stream_index *ix = w->opts.ix;
    int64_t end = ev->ts_ns + ev->dur_ns;

    if (ix->n_events == 0) {
        ix->first_ns = ev->ts_ns;
        ix->last_ns = end;
    }
    ix->n_events++;
    ix->last_ns = end > ix->last_ns ? end : ix->last_ns;
    end = ev->kind == TP_EVENT_BEGIN ? INT64_MAX : end;
    w->max_end_ns = end > w->max_end_ns ? end : w->max_end_ns;
}

int tp_seal_writer_event(struct tp_seal_writer *w, struct tp_event *ev,
                         struct tp_str wire_args, bool *is_dropped, struct tp_err *err)
{
    int rc = TP_OK;

    *is_dropped = false;
    if (w->n_held > 0 && ev->ts_ns != w->held_ts_ns)
        rc = release_ends(w, err);
    if (rc == TP_OK && w->n_held == 0)
        rc = begin_block(w, ev->ts_ns, err);
    if (rc == TP_OK)
        rc = write_by_rank(w, ev, wire_args, err);
    if (rc == TP_EQUOTA) {
        *is_dropped = true;
        return TP_OK;
    }
    if (rc != TP_OK)
        return rc;
    note_times(w, ev);
    w->is_used[ev->track->index] = true;
    rc = tp_name_counts_add(w->counts, ev, err);
    if (rc == TP_OK && w->out.len >= WRITE_BYTES)
        rc = flush(w, err);
    return rc;
}

static int add_track(struct tp_seal_writer *w, const struct tp_track *t, uint32_t lane,
                     struct tp_err *err)
{
    struct tp_stream_index *ix = w->opts.ix;
    struct tp_index_track track = {
        .uuid = tp_pf_track_uuid(ix->stream_no, t->index, lane), .lane = lane};
    int rc = tp_stream_index_grow(&ix->tracks, ix->n_tracks, sizeof(track), err);

    if (rc == TP_OK)
        rc = tp_stream_index_dup_id(ix, &t->pid, &track.pid, err);
    if (rc == TP_OK)
        rc = tp_stream_index_dup_id(ix, &t->tid, &track.tid, err);
    if (rc != TP_OK)
        return rc;
    ix->tracks[ix->n_tracks++] = track;
    return TP_OK;
}

static int index_tracks(struct tp_seal_writer *w, struct tp_err *err)
{
    for (uint32_t i = 0; i < w->opts.tracks->n_max; i++) {
        const struct tp_track *t = tp_track_pages_find(w->opts.tracks, i);
        uint32_t n_lanes = tp_lanes_count(w->lanes, i);

        if (t == NULL || !w->is_used[i])
            continue;
        n_lanes = n_lanes == 0 ? 1 : n_lanes;
        for (uint32_t lane = 0; lane < n_lanes; lane++) {
            int rc = add_track(w, t, lane, err);

            if (rc != TP_OK)
                return rc;
        }
    }
    return TP_OK;
}

static int index_series(struct tp_seal_writer *w, struct tp_err *err)
{
    struct tp_stream_index *ix = w->opts.ix;
    size_t n;
    const struct tp_pf_series *from = tp_pf_writer_series(w->pf, &n);

    for (size_t i = 0; i < n; i++) {
        struct tp_index_series s = {.uuid = from[i].uuid};
        int rc = tp_stream_index_grow(&ix->series, ix->n_series, sizeof(s), err);

        if (rc == TP_OK)
            rc = tp_stream_index_dup_id(ix, &from[i].track->pid, &s.pid, err);
        if (rc == TP_OK)
            rc = tp_stream_index_dup_id(ix, &from[i].track->tid, &s.tid, err);
        if (rc == TP_OK)
            rc = tp_stream_index_dup(ix, from[i].counter, &s.counter, err);
        if (rc == TP_OK)
            rc = tp_stream_index_dup(ix, from[i].series, &s.series, err);
        if (rc == TP_OK)
            rc = tp_stream_index_dup(ix, from[i].cat, &s.cat, err);
        if (rc != TP_OK)
            return rc;
        ix->series[ix->n_series++] = s;
    }
    return TP_OK;
}

static int index_types(struct tp_seal_writer *w, struct tp_err *err)
{
    struct tp_stream_index *ix = w->opts.ix;
    size_t n;
    const struct tp_index_type *types = tp_name_counts_types(w->counts, &n);

    for (size_t i = 0; i < n; i++) {
        struct tp_index_type t = types[i];
        int rc = tp_stream_index_grow(&ix->types, ix->n_types, sizeof(t), err);

        if (rc == TP_OK)
            rc = tp_stream_index_dup(ix, types[i].cat, &t.cat, err);
        if (rc != TP_OK)
            return rc;
        ix->types[ix->n_types++] = t;
    }
    return TP_OK;
}

static int index_names(struct tp_seal_writer *w, struct tp_err *err)
{
    struct tp_stream_index *ix = w->opts.ix;
    size_t n;
    const struct tp_index_name *names = tp_name_counts_top(w->counts, &n);

    ix->names_are_complete = tp_name_counts_is_complete(w->counts) && n <= TOP_NAMES;
    for (size_t i = 0; i < n && i < TOP_NAMES; i++) {
        struct tp_index_name name = names[i];
        int rc = tp_stream_index_grow(&ix->names, ix->n_names, sizeof(name), err);

        if (rc == TP_OK)
            rc = tp_stream_index_dup(ix, names[i].cat, &name.cat, err);
        if (rc == TP_OK)
            rc = tp_stream_index_dup(ix, names[i].name, &name.name, err);
        if (rc != TP_OK)
            return rc;
        ix->names[ix->n_names++] = name;
    }
    return TP_OK;
}

int tp_seal_writer_finish(struct tp_seal_writer *w, struct tp_err *err)
{
    struct tp_stream_index *ix = w->opts.ix;
    struct tp_lanes_stats lanes = tp_lanes_stats(w->lanes);
    int rc = release_ends(w, err);

    if (rc == TP_OK)
        rc = flush(w, err);
    if (rc == TP_OK)
        rc = index_tracks(w, err);
    if (rc == TP_OK)
        rc = index_series(w, err);
    if (rc == TP_OK)
        rc = index_types(w, err);
    if (rc == TP_OK)
        rc = index_names(w, err);
    ix->size_bytes = w->written_bytes;
    ix->has_crc32c = true;
    ix->lanes_added = lanes.lanes_added;
    ix->overlaps = lanes.overlaps;
    ix->crossings = lanes.crossings;
    return rc;
}
