/*
 * seal.c - reads a log, sorts it and has it written.
 *
 *     log -> packet_feed -> pairing -> sorter -> seal_write -> sealed stream
 *                      \--> metas (M events, members, damage) -> index
 *
 * Two passes over the data and none over the log: the sorter holds it, in memory or in
 * anonymous blobs. Times become absolute on the way in, by the base of their frame.
 */
#include "trace/seal.h"

#include <assert.h>
#include <stdlib.h>

#include "core/limits.h"
#include "trace/clock_line.h"
#include "trace/frame.h"
#include "trace/metas.h"
#include "trace/packet_feed.h"
#include "trace/pairing.h"
#include "trace/pf_plain.h"
#include "trace/pf_writer.h"
#include "trace/seal_write.h"
#include "trace/sorter.h"
#include "trace/stream_log.h"
#include "trace/track_pages.h"

#define READ_BYTES (256u << 10) /* what is read stays in the cache of a core */
#define PROGRESS_EVENTS 65536
#define RELATIVE_NS (INT64_C(1) << 53) /* 104 days: times from here on are absolute */
#define KEYS_MAX 65536 /* of the reader's numbers, those from here on are not mapped */

struct seal {
    const struct tp_seal_opts *opts;
    struct tp_limits limits;
    struct tp_blob *log;
    uint64_t log_bytes;
    struct tp_seal_result result;
    struct tp_packet_feed *feed;
    struct tp_pairing *pairing;
    struct tp_sorter *sorter;
    struct tp_pf_writer *pf;
    struct tp_seal_writer *writer;
    struct tp_metas metas;
    struct tp_rec_names names;
    struct tp_track_pages tracks;
    struct tp_rec_args args; /* of the record that is being written */
    char *buffer;            /* READ_BYTES of the log */
    uint8_t *keys;  /* by the reader's number of an argument's name: the one in the
                      sealed stream, or 0: to be asked for */
    int64_t add_ns; /* to each time of the frame at hand */
    bool has_clock; /* of the frame at hand: it says what its times count from */
    bool is_moved;  /* of the frame at hand: its times are a producer's clock's */
    struct tp_clock_line clock; /* of the producer */
    bool is_frame_lost;         /* its header is damaged */
    uint64_t n_promised;        /* events that the frames say they hold */
    uint64_t n_read;            /* events that were read of them */
};

/* Move a time into what a sealed stream can hold. */
static int64_t clamp_time(struct seal *s, int64_t ts_ns, int64_t add_ns)
{
    int64_t sum;

    if (__builtin_add_overflow(ts_ns, add_ns, &sum))
        sum = ts_ns < 0 ? 0 : INT64_MAX;
    else if (sum >= 0)
        return sum;
    s->result.index.clamped++;
    return sum < 0 ? 0 : sum;
}

/* Move an event of a producer onto the service's clock, both its ends, so that what
 * encloses another one still does. */
static void move_event(struct seal *s, struct tp_event *ev)
{
    int64_t start = tp_clock_line_map(&s->clock, ev->ts_ns);
    int64_t end;

    if (ev->dur_ns > 0 && !__builtin_add_overflow(ev->ts_ns, ev->dur_ns, &end)) {
        end = tp_clock_line_map(&s->clock, end);
        if (__builtin_sub_overflow(end, start, &ev->dur_ns))
            ev->dur_ns = INT64_MAX;
    }
    ev->ts_ns = start;
}

/* Leave out an event, of n in the log, that is of another time than the stream. */
static bool is_of_another_time(struct seal *s, const struct tp_event *ev, uint64_t n)
{
    const struct tp_seal_window *w = &s->opts->window;
    int64_t end = ev->kind == TP_EVENT_BEGIN ? ev->ts_ns : ev->ts_ns + ev->dur_ns;

    if (__builtin_expect(w->to_ns == 0 || (ev->ts_ns >= w->from_ns && end <= w->to_ns),
                         1))
        return false;
    s->result.adjust.dropped[ev->ts_ns < w->from_ns ? TP_DROP_BEFORE_START
                                                    : TP_DROP_AFTER_STOP] += n;
    return true;
}

/* Put an event into the sorter. Its time is absolute. */
static int sort_event(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    struct seal *s = arg;
    struct tp_event in = *ev;
    int rc;

    if (in.kind == TP_EVENT_BEGIN)
        in.dur_ns = INT64_MAX; /* it encloses what comes at the same time */
    rc = tp_pf_writer_number(s->pf, ev, err);
    if (rc == TP_OK)
        rc = tp_rec_encode(&s->names, &in, tp_sorter_room(s->sorter), err);
    return rc == TP_OK ? tp_sorter_commit(s->sorter, tp_seal_rank(ev), err) : rc;
}

/* Take a pair or an unfinished begin out of the pairing. */
static int on_paired(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    struct seal *s = arg;
    struct tp_event slice = *ev;

    if (slice.kind == TP_EVENT_SLICE && slice.dur_ns > INT64_MAX - slice.ts_ns)
        slice.dur_ns = INT64_MAX - slice.ts_ns;
    if (slice.kind == TP_EVENT_SLICE &&
        (uint64_t)slice.dur_ns < s->opts->min_duration_ns) {
        s->result.index.filtered_pairs++;
        return TP_OK;
    }
    if (is_of_another_time(s, &slice, slice.kind == TP_EVENT_SLICE ? 2 : 1))
        return TP_OK;
    return sort_event(&slice, err, s);
}

static const struct tp_track *track_of(uint32_t index, void *arg)
{
    const struct seal *s = arg;

    return tp_track_pages_find(&s->tracks, index);
}

/* What is to be added to a time of the frame at hand. A batch that names no base counts
 * from the one that its stream has named, unless the time is an absolute one. */
static inline int64_t base_of(const struct seal *s, int64_t ts_ns)
{
    if (__builtin_expect(s->has_clock || !s->result.index.has_base, 1))
        return s->add_ns;
    return ts_ns < RELATIVE_NS ? s->result.index.base_ns : 0;
}

static int take_meta(struct seal *s, const struct tp_event *ev, struct tp_err *err)
{
    bool has_ts = ev->ts_ns != 0;
    int64_t read_ns = s->is_moved && has_ts ? tp_clock_line_map(&s->clock, ev->ts_ns)
                                            : ev->ts_ns;
    int64_t ts_ns = has_ts ? clamp_time(s, read_ns, base_of(s, read_ns)) : 0;
    bool is_note = false;
    bool is_kept = true;
    int rc = tp_metas_add(&s->metas, ev, ts_ns, has_ts, &is_note, &is_kept, err);

    if (rc != TP_OK)
        return rc;
    s->n_read += !is_note;
    s->result.adjust.dropped[TP_DROP_OVER_LIMIT] += !is_kept;
    return TP_OK;
}

/* Give an event the track that outlives the reading, and its time in the trace. */
static int place_event(struct seal *s, const struct tp_track *track,
                       struct tp_event *ev, struct tp_err *err)
{
    int rc = tp_track_pages_get(&s->tracks, track, 0, &ev->track, err);

    if (rc != TP_OK)
        return rc;
    if (s->is_moved)
        move_event(s, ev);
    ev->ts_ns = clamp_time(s, ev->ts_ns, base_of(s, ev->ts_ns));
    if (ev->dur_ns > INT64_MAX - ev->ts_ns) {
        ev->dur_ns = INT64_MAX - ev->ts_ns;
        s->result.index.clamped++;
    }
    return TP_OK;
}

static int on_event(const struct tp_event *read, struct tp_err *err, void *arg)
{
    struct seal *s = arg;
    struct tp_event ev = *read;
    int rc;

    if (s->is_frame_lost)
        return TP_OK;
    if (ev.kind == TP_EVENT_META)
        return take_meta(s, &ev, err);
    s->n_read++;
    rc = place_event(s, read->track, &ev, err);
    if (rc != TP_OK)
        return rc;
    if (ev.kind == TP_EVENT_BEGIN && !ev.is_unfinished)
        return tp_pairing_begin(s->pairing, &ev, err);
    if (ev.kind == TP_EVENT_END)
        return tp_pairing_end(s->pairing, &ev, err);
    if (is_of_another_time(s, &ev, 1))
        return TP_OK;
    if (ev.kind == TP_EVENT_BEGIN)
        s->result.index.unfinished++;
    return sort_event(&ev, err, s);
}

/* The number of an argument's name in the sealed stream; 0: none of one byte. */
static inline int map_key(struct seal *s, const struct tp_name *key, uint8_t *out,
                          struct tp_err *err)
{
    uint32_t number = 0;
    int rc;

    *out = 0;
    if (key->iid == 0 || key->iid >= KEYS_MAX)
        return TP_OK;
    *out = s->keys[key->iid];
    if (*out != 0)
        return TP_OK;
    rc = tp_pf_writer_key(s->pf, key, &number, err);
    if (rc == TP_OK && number <= TP_PF_PLAIN_KEY_MAX)
        *out = s->keys[key->iid] = (uint8_t)number;
    return rc;
}

/* Put a slice into the sorter whose arguments need no more than new numbers. */
static int sort_plain(struct seal *s, const struct tp_event *ev,
                      const struct tp_pf_plain *plain, const uint8_t *keys,
                      struct tp_err *err)
{
    char *wire;
    int rc = tp_pf_writer_number(s->pf, ev, err);

    if (rc == TP_OK)
        rc = tp_rec_encode_wire(&s->names, ev, plain->wire, tp_sorter_room(s->sorter),
                                &wire, err);
    if (rc != TP_OK)
        return rc;
    for (uint32_t i = 0; i < plain->n_args; i++)
        wire[plain->key_at[i]] = (char)keys[i];
    return tp_sorter_commit(s->sorter, TP_SEAL_SLICES, err);
}

static int on_plain(const struct tp_pf_plain *plain, bool *is_taken, struct tp_err *err,
                    void *arg)
{
    struct seal *s = arg;
    struct tp_event ev = plain->ev;
    uint8_t keys[TP_PF_PLAIN_ARGS_MAX];
    int rc;

    if (s->is_frame_lost)
        return TP_OK;
    for (uint32_t i = 0; i < plain->n_args; i++) {
        rc = map_key(s, plain->keys[i], &keys[i], err);
        *is_taken = keys[i] != 0;
        if (rc != TP_OK || !*is_taken)
            return rc;
    }
    s->n_read++;
    rc = place_event(s, plain->ev.track, &ev, err);
    if (rc == TP_OK && is_of_another_time(s, &ev, 1))
        return TP_OK;
    return rc == TP_OK ? sort_plain(s, &ev, plain, keys, err) : rc;
}

static int on_ghost(const struct tp_event *read, struct tp_err *err, void *arg)
{
    struct seal *s = arg;
    struct tp_event ev = *read;
    int rc;

    if (s->is_frame_lost)
        return TP_OK;
    rc = tp_track_pages_get(&s->tracks, read->track, 0, &ev.track, err);
    return rc == TP_OK ? tp_pairing_ghost(s->pairing, &ev, err) : rc;
}

static int on_frame(struct tp_str bytes, struct tp_err *err, void *arg)
{
    struct seal *s = arg;
    struct tp_frame frame;

    /* Without its header a batch has no base: its events have no place in time. */
    s->is_frame_lost = tp_frame_decode_content(bytes, &frame, err) != TP_OK;
    if (s->is_frame_lost) {
        s->result.index.damages++;
        return TP_OK;
    }
    s->add_ns = frame.base_ns;
    s->has_clock = frame.has_base || frame.is_native;
    s->is_moved = frame.is_native && s->clock.n > 0;
    s->n_promised += frame.counts.stored;
    return TP_OK;
}

static int open_blobs(struct seal *s, struct tp_err *err)
{
    const struct tp_blobs *blobs = s->opts->blobs;
    uint64_t size;
    int rc = TP_OK;

    s->log = s->opts->log;
    if (s->log == NULL)
        rc = blobs->open_read(blobs->ctx, s->opts->log_name, &s->log, err);
    if (rc != TP_OK)
        return rc;
    size = blobs->size(s->log);
    s->log_bytes = s->opts->log_bytes;
    if (s->log_bytes == 0 || s->log_bytes > size)
        s->log_bytes = size;
    if (s->opts->out_name != NULL)
        rc = blobs->remove(blobs->ctx, s->opts->out_name, err);
    if (rc == TP_OK)
        rc = blobs->open_append(blobs->ctx, s->opts->out_name, &s->result.blob, err);
    return rc;
}

/* The clock of a native batch is in its head, as far as that can be read. */
static int read_head(struct seal *s, uint64_t offset, struct tp_err *err)
{
    char bytes[TP_NATIVE_HEAD_BYTES];
    struct tp_native_head head;
    size_t got = 0;
    int rc = s->opts->blobs->pread(s->log, offset, bytes, sizeof(bytes), &got, err);

    if (rc == TP_OK && tp_native_head_get(bytes, got, &head) && head.has_clock)
        rc = tp_clock_line_add(&s->clock, &head.clock, err);
    return rc;
}

/* Before all else: what is known of the producer's clock, also late, goes for all of
 * its events. What is behind a damaged header is not known. */
static int read_clocks(struct seal *s, struct tp_err *err)
{
    struct tp_frame frame;
    uint64_t at = 0, payload;
    int rc;

    while ((rc = tp_stream_log_next(s->log, s->log_bytes, &at, &frame, &payload,
                                    err)) == TP_OK) {
        rc = frame.is_native ? read_head(s, payload, err) : TP_OK;
        if (rc != TP_OK)
            return rc;
    }
    tp_clock_line_finish(&s->clock);
    return rc == TP_ENOTFOUND || rc == TP_EINVAL ? TP_OK : rc;
}

/* About what the producer's clock showed then: good enough to tell how far from the
 * readings it was. */
static int64_t back_to_producer(const struct seal *s, int64_t server_ns)
{
    const struct tp_native_clock *p = &s->clock.points[0];
    int64_t offset = (int64_t)p->server_ns - (int64_t)p->producer_ns;
    int64_t there;

    if (__builtin_sub_overflow(server_ns, offset, &there))
        return offset < 0 ? INT64_MAX : INT64_MIN;
    return there;
}

/* Keep in the index what the times were moved by. */
static int note_clocks(struct seal *s, struct tp_err *err)
{
    struct tp_stream_index *ix = &s->result.index;
    const struct tp_native_clock *p = s->clock.points;
    const struct tp_native_clock *end = p + s->clock.n;

    ix->clocks_left_out = s->clock.n_left_out;
    for (; p < end; p++) {
        int rc =
            tp_stream_index_grow(&ix->clocks, ix->n_clocks, sizeof(*ix->clocks), err);

        if (rc != TP_OK)
            return rc;
        ix->clocks[ix->n_clocks++] =
            (struct tp_index_clock){p->producer_ns, p->server_ns, p->error_ns};
    }
    if (s->clock.n > 0)
        ix->clock_error_ns = tp_clock_line_error(&s->clock,
                                                 back_to_producer(s, ix->first_ns),
                                                 back_to_producer(s, ix->last_ns));
    return TP_OK;
}

static int make_parts(struct seal *s, struct tp_err *err)
{
    const struct tp_limits *l = &s->limits;
    /* The notes of a batch have a track of their own. */
    const uint32_t tracks_max = (uint32_t)l->stream_tracks + 1;
    struct tp_packet_feed_opts feed = {.salvage = true,
                                       .is_trusted = true,
                                       .tracks_max = tracks_max,
                                       .on_event = on_event,
                                       .on_ghost = on_ghost,
                                       .on_plain = on_plain,
                                       .on_frame = on_frame,
                                       .arg = s};
    struct tp_pairing_opts pairing = {.tracks_max = tracks_max,
                                      .open_max = l->open_slices,
                                      .args_max = 2 * (uint32_t)l->args_per_event,
                                      .names = &s->names,
                                      .track_of = track_of,
                                      .on_event = on_paired,
                                      .arg = s};
    struct tp_pf_writer_opts pf = {.stream_no = s->opts->stream_no,
                                   .is_sealed = true,
                                   .has_one_reader = true,
                                   .intern_max = (uint32_t)l->stream_names,
                                   .intern_bytes = (size_t)l->stream_names_bytes};
    size_t memory = s->opts->memory_bytes != 0 ? s->opts->memory_bytes
                                               : (size_t)l->spill_bytes;
    int rc;

    s->names.bytes_max = (size_t)l->stream_names_bytes;
    s->names.names_max = (uint32_t)l->stream_names;
    s->metas.index = &s->result.index;
    s->metas.metas_max = l->stream_metadata_events;
    s->metas.bytes_max = (size_t)l->stream_metadata_bytes;
    s->buffer = malloc(READ_BYTES);
    s->keys = calloc(KEYS_MAX, sizeof(*s->keys));
    rc = s->buffer == NULL || s->keys == NULL
             ? tp_fail(err, TP_ENOMEM, "no memory for sealing a stream")
             : tp_packet_feed_new(&feed, &s->feed, err);
    if (rc == TP_OK)
        rc = tp_pf_writer_new(&pf, &s->pf, err);
    if (rc == TP_OK)
        rc = tp_pairing_new(&pairing, &s->pairing, err);
    return rc == TP_OK ? tp_sorter_new(s->opts->blobs, memory, &s->sorter, err) : rc;
}

static int tell(struct seal *s, uint64_t done, uint64_t of, struct tp_err *err)
{
    return s->opts->progress == NULL ? TP_OK
                                     : s->opts->progress(done, of, err, s->opts->arg);
}

/* The first pass: all of the log into sorter and metas. */
static int read_log(struct seal *s, struct tp_err *err)
{
    const struct tp_blobs *blobs = s->opts->blobs;
    uint64_t at = 0;
    int rc = TP_OK;

    while (rc == TP_OK && at < s->log_bytes) {
        uint64_t left = s->log_bytes - at;
        size_t got = 0;

        rc = blobs->pread(s->log, at, s->buffer,
                          left < READ_BYTES ? (size_t)left : READ_BYTES, &got, err);
        if (rc == TP_OK && got == 0)
            break;
        if (rc == TP_OK)
            rc = tp_packet_feed(s->feed, s->buffer, got, err);
        at += got;
        if (rc == TP_OK)
            rc = tell(s, at, s->log_bytes * 2, err);
    }
    if (rc == TP_OK)
        rc = tp_packet_feed_finish(s->feed, err);
    if (rc == TP_OK)
        rc = tp_pairing_finish(s->pairing, err);
    return rc == TP_OK ? tp_sorter_finish(s->sorter, err) : rc;
}

static int write_record(struct seal *s, const struct tp_rec_head *rec,
                        struct tp_err *err)
{
    struct tp_event ev;
    bool is_dropped = false;
    int rc = tp_rec_decode(&s->names, rec, &s->args, &ev, err);

    if (rc != TP_OK)
        return rc;
    ev.track = tp_track_pages_find(&s->tracks, rec->track);
    if (ev.kind == TP_EVENT_BEGIN)
        ev.dur_ns = 0;
    rc = tp_seal_writer_event(s->writer, &ev, s->args.wire, &is_dropped, err);
    s->result.adjust.dropped[TP_DROP_EVENT_TOO_LARGE] += is_dropped;
    return rc;
}

/* The second pass: out of the sorter into the sealed stream. */
static int write_stream(struct seal *s, struct tp_err *err)
{
    struct tp_seal_writer_opts opts = {.blobs = s->opts->blobs,
                                       .out = s->result.blob,
                                       .ix = &s->result.index,
                                       .tracks = &s->tracks,
                                       .pf = s->pf};
    uint64_t total = tp_sorter_stats(s->sorter).records;
    int rc = tp_seal_writer_new(&opts, &s->writer, err);

    for (uint64_t n = 0; rc == TP_OK; n++) {
        const struct tp_rec_head *rec = NULL;

        rc = tp_sorter_next(s->sorter, &rec, err);
        if (rc != TP_OK || rec == NULL)
            break;
        rc = write_record(s, rec, err);
        if (rc == TP_OK && n % PROGRESS_EVENTS == PROGRESS_EVENTS - 1)
            rc = tell(s, total + n, total * 2, err);
    }
    return rc == TP_OK ? tp_seal_writer_finish(s->writer, err) : rc;
}

/* What was promised and not read has been damaged since, but for what each batch kept
 * and is over a limit of the whole stream. */
static int note_losses(struct seal *s, struct tp_err *err)
{
    struct tp_packet_feed_stats feed = tp_packet_feed_stats(s->feed);
    struct tp_stream_index *ix = &s->result.index;
    uint64_t over_limit;
    uint64_t lost;
    int rc = TP_OK;

    lost = s->n_promised > s->n_read ? s->n_promised - s->n_read : 0;
    over_limit = feed.over_limit < lost ? feed.over_limit : lost;
    s->result.adjust.dropped[TP_DROP_OVER_LIMIT] += over_limit;
    s->result.adjust.dropped[TP_DROP_DAMAGED] += lost - over_limit;
    if (!feed.is_damaged)
        return TP_OK;
    ix->damages++;
    rc = tp_stream_index_grow(&ix->damage_offsets, ix->n_damage_offsets,
                              sizeof(*ix->damage_offsets), err);
    if (rc == TP_OK)
        ix->damage_offsets[ix->n_damage_offsets++] = feed.damage_offset;
    return rc;
}

/* Sum up what the parts have counted. */
static int finish_result(struct seal *s, struct tp_err *err)
{
    struct tp_pairing_stats pairs = tp_pairing_stats(s->pairing);
    struct tp_seal_result *r = &s->result;
    int rc = note_losses(s, err);

    if (rc == TP_OK)
        rc = note_clocks(s, err);

    r->blobs = s->opts->blobs;
    r->index.version = 1;
    r->index.unmatched_ends = pairs.unmatched_ends;
    r->index.unfinished += pairs.unfinished;
    r->adjust.filtered = pairs.ghost_ends + 2 * r->index.filtered_pairs;
    r->adjust.dropped[TP_DROP_UNMATCHED_END] = pairs.unmatched_ends;
    r->adjust.stored = r->adjust.filtered + tp_counts_dropped(&r->adjust);
    r->adjust.repaired = r->index.clamped + pairs.negative;
    r->adjust.bytes = r->index.size_bytes;
    r->spill_bytes = tp_sorter_stats(s->sorter).spill_bytes;
    return rc;
}

static void release_parts(struct seal *s)
{
    const struct tp_blobs *blobs = s->opts->blobs;

    tp_seal_writer_free(s->writer);
    tp_pf_writer_free(s->pf);
    tp_sorter_free(s->sorter);
    tp_pairing_free(s->pairing);
    tp_packet_feed_free(s->feed);
    tp_metas_fini(&s->metas);
    tp_rec_names_fini(&s->names);
    tp_rec_args_fini(&s->args);
    tp_track_pages_fini(&s->tracks);
    tp_clock_line_fini(&s->clock);
    free(s->buffer);
    free(s->keys);
    if (s->opts->log == NULL)
        blobs->close(blobs->ctx, s->log);
}

int tp_seal_run(const struct tp_seal_opts *opts, struct tp_seal_result *out,
                struct tp_err *err)
{
    struct seal s = {.opts = opts};
    int rc;

    assert(opts->blobs != NULL && opts->stream_no >= 1 && opts->stream_no <= 65535);
    s.limits = opts->limits != NULL ? *opts->limits : tp_limits_default();
    s.result.index.stream_no = opts->stream_no;
    rc = open_blobs(&s, err);
    if (rc == TP_OK)
        rc = make_parts(&s, err);
    if (rc == TP_OK)
        rc = read_clocks(&s, err);
    if (rc == TP_OK)
        rc = read_log(&s, err);
    if (rc == TP_OK)
        rc = write_stream(&s, err);
    if (rc == TP_OK)
        rc = finish_result(&s, err);
    release_parts(&s);
    if (rc == TP_OK) {
        *out = s.result;
        return TP_OK;
    }
    s.result.blobs = opts->blobs;
    if (s.result.blob != NULL && opts->out_name != NULL)
        (void)opts->blobs->remove(opts->blobs->ctx, opts->out_name, NULL);
    tp_seal_result_fini(&s.result);
    return rc;
}

void tp_seal_result_fini(struct tp_seal_result *r)
{
    if (r->blobs != NULL)
        r->blobs->close(r->blobs->ctx, r->blob);
    tp_stream_index_fini(&r->index);
    *r = (struct tp_seal_result){0};
}

void tp_seal_adjust(struct tp_counts *counts, const struct tp_seal_result *r)
{
    uint64_t moved = r->adjust.stored;

    assert(moved <= counts->stored);
    counts->stored -= moved;
    counts->filtered += r->adjust.filtered;
    for (int i = 0; i < TP_DROP_CAUSES; i++)
        counts->dropped[i] += r->adjust.dropped[i];
    /* What left the stream may have been repaired or untyped: how many is not known. */
    counts->repaired += r->adjust.repaired;
    if (counts->repaired > counts->stored)
        counts->repaired = counts->stored;
    if (counts->untyped > counts->stored)
        counts->untyped = counts->stored;
    counts->bytes = r->adjust.bytes;
}
