/*
 * ingest.c - the way of a body into a payload.
 *
 *     bytes -> [gunzip] -> chrome_reader | pf_reader -> admit -> pf_writer -> payload
 *                      \-> native_check, native_ends: the bytes are the payload
 *
 * A body of packets is taken for a native batch until it is found to be none, or not in
 * order; then what is held of it goes the long way from its first byte.
 *
 * Tracks get numbers of our own: number 0 is for the notes (notes.h), which have no
 * track of the reader. Names keep the numbers that the reader gave them, so that the
 * filter and the writer need not look at the bytes of a name twice.
 */
#include "trace/ingest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/filter.h"
#include "core/limits.h"
#include "trace/admit.h"
#include "trace/chrome_reader.h"
#include "trace/frame.h"
#include "trace/gunzip.h"
#include "trace/life_span.h"
#include "trace/native_check.h"
#include "trace/native_ends.h"
#include "trace/notes.h"
#include "trace/packet_feed.h"
#include "trace/pf_writer.h"
#include "trace/track_pages.h"

#define SPILL_BYTES (1u << 20)

/* Room for most payloads from the start. What is not written to costs nothing, while
 * growing by doubling was a tenth of all the time that an event takes. */
#define PAYLOAD_BYTES (1u << 20)

struct tp_ingest {
    struct tp_ingest_opts opts;
    struct tp_limits limits;
    struct tp_chrome_reader *chrome; /* one of the two readers */
    struct tp_packet_feed *packets;
    struct tp_native_check *native; /* NULL: it goes the long way */
    struct tp_gunzip *gunzip;       /* NULL: the body is not compressed */
    char head[2];                   /* the first bytes, until the encoding is known */
    size_t n_head;
    bool knows_encoding;
    bool is_gzip_damaged; /* salvage: what comes behind is passed over */
    uint64_t fed_bytes;   /* to the reader */
    struct tp_admit *admit;
    struct tp_track_pages tracks;
    struct tp_pf_writer *writer;
    struct tp_buf payload;
    struct tp_note_event note;
    struct tp_life_span life; /* by the times of the events */
    uint64_t repaired_seen;   /* of the reader's count: taken over into ours */
    enum tp_ingest_limit limit_hit;
    bool is_medium_full;
    int unstored; /* TP_OK, or why the payload is thrown away: see spill() */
    struct tp_err unstored_why;
    int failed; /* TP_OK, or the code that ended it */
    struct tp_err failure;
    struct tp_ingest_result result;
};

static const struct tp_track notes_track = {.index = 0};

static int on_event(const struct tp_event *ev, struct tp_err *err, void *arg);
static int on_member(struct tp_str key, struct tp_str json, struct tp_err *err,
                     void *arg);

static int new_reader(struct tp_ingest *g, struct tp_err *err)
{
    const struct tp_limits *l = &g->limits;
    struct tp_chrome_reader_opts chrome = {
        .form = g->opts.form == TP_INGEST_NDJSON ? TP_CHROME_NDJSON : TP_CHROME_JSON,
        .salvage = g->opts.salvage,
        .depth_max = (uint32_t)l->json_depth,
        .args_max = (uint32_t)l->args_per_event,
        .name_bytes = (size_t)l->name_bytes,
        .event_bytes = (size_t)l->event_bytes,
        .member_bytes = (size_t)l->stream_metadata_bytes,
        .members_bytes = (size_t)l->stream_metadata_bytes,
        .tracks_max = (uint32_t)l->stream_tracks,
        .on_event = on_event,
        .on_member = on_member,
        .arg = g,
    };
    struct tp_packet_feed_opts packets = {
        .salvage = g->opts.salvage,
        .tracks_max = (uint32_t)l->stream_tracks,
        .on_event = on_event,
        .arg = g,
    };

    if (g->opts.form == TP_INGEST_PERFETTO)
        return tp_packet_feed_new(&packets, &g->packets, err);
    return tp_chrome_reader_new(&chrome, &g->chrome, err);
}

/* A batch of packets may be a native one. */
static int new_check(struct tp_ingest *g, struct tp_err *err)
{
    struct tp_native_check_opts opts = {.stream_no = g->opts.stream_no,
                                        .filter = g->opts.filter,
                                        .types = g->opts.types,
                                        .tracks_max = (uint32_t)g->limits.stream_tracks,
                                        .life = g->opts.life};

    if (g->packets == NULL || g->opts.salvage)
        return TP_OK;
    return tp_native_check_new(&opts, &g->native, err);
}

int tp_ingest_new(const struct tp_ingest_opts *opts, struct tp_ingest **out,
                  struct tp_err *err)
{
    struct tp_pf_writer_opts writer = {.stream_no = opts->stream_no,
                                       .has_one_reader = true};
    struct tp_ingest *g = calloc(1, sizeof(*g));
    int rc;

    if (g == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for reading events");
    g->opts = *opts;
    g->life = tp_life_span_of(&opts->life, 0);
    g->limits = opts->limits != NULL ? *opts->limits : tp_limits_default();
    if (g->opts.spill_bytes == 0)
        g->opts.spill_bytes = SPILL_BYTES;
    if (g->opts.inflated_bytes == 0)
        g->opts.inflated_bytes = opts->salvage ? g->limits.file_inflated_bytes
                                               : g->limits.events_body_bytes;
    g->knows_encoding = opts->encoding == TP_INGEST_IDENTITY;
    rc = new_reader(g, err);
    if (rc == TP_OK)
        rc = new_check(g, err);
    if (rc == TP_OK)
        rc = tp_admit_new(opts->filter, opts->types, &g->admit, err);
    if (rc == TP_OK)
        rc = tp_pf_writer_new(&writer, &g->writer, err);
    if (rc == TP_OK)
        rc = tp_buf_reserve(&g->payload, PAYLOAD_BYTES, err);
    if (rc != TP_OK) {
        tp_ingest_free(g);
        return rc;
    }
    *out = g;
    return TP_OK;
}

void tp_ingest_free(struct tp_ingest *g)
{
    if (g == NULL)
        return;
    tp_chrome_reader_free(g->chrome);
    tp_packet_feed_free(g->packets);
    tp_native_check_free(g->native);
    tp_gunzip_free(g->gunzip);
    tp_admit_free(g->admit);
    tp_track_pages_fini(&g->tracks);
    tp_pf_writer_free(g->writer);
    tp_buf_fini(&g->payload);
    tp_buf_fini(&g->note.text);
    if (g->result.spill != NULL)
        g->opts.blobs->close(g->opts.blobs->ctx, g->result.spill);
    free(g);
}

/*
 * The medium refuses the payload. A batch is read on to its end nevertheless, so that
 * all its events can be told as lost and not just those before this point. A file is
 * not: it may be long, and what is refused of it counts as never sent.
 */
static int give_up_payload(struct tp_ingest *g, int rc, const struct tp_err *err)
{
    g->is_medium_full = rc == TP_EQUOTA;
    if (g->opts.salvage || rc == TP_ENOMEM)
        return rc;
    g->unstored = rc;
    if (err != NULL)
        g->unstored_why = *err;
    g->payload.len = 0;
    return TP_OK;
}

/* Move what is in memory of the payload to the blob. */
static int spill(struct tp_ingest *g, struct tp_err *err)
{
    const struct tp_blobs *blobs = g->opts.blobs;
    int rc = TP_OK;

    if (g->unstored != TP_OK) {
        g->payload.len = 0;
        return TP_OK;
    }
    if (g->result.spill == NULL)
        rc = blobs->open_append(blobs->ctx, NULL, &g->result.spill, err);
    if (rc == TP_OK)
        rc = blobs->append(g->result.spill, g->payload.data, g->payload.len, err);
    if (rc != TP_OK)
        return give_up_payload(g, rc, err);
    g->result.crc32c = tp_frame_crc(g->result.crc32c, g->payload.data, g->payload.len);
    g->result.payload_bytes += g->payload.len;
    g->payload.len = 0;
    return TP_OK;
}

static int spill_if_large(struct tp_ingest *g, struct tp_err *err)
{
    if (g->payload.len < g->opts.spill_bytes || g->opts.blobs == NULL)
        return TP_OK;
    return spill(g, err);
}

/* Count an event that was read and cannot be stored. */
static void drop(struct tp_ingest *g, enum tp_drop_cause cause,
                 const struct tp_err *why)
{
    g->result.counts.dropped[cause]++;
    if (g->result.first_rejection[0] == '\0')
        snprintf(g->result.first_rejection, sizeof(g->result.first_rejection), "%.*s",
                 (int)sizeof(g->result.first_rejection) - 1, why->message);
}

/* Whether the reader has repaired the event at hand. */
static bool was_repaired(struct tp_ingest *g)
{
    uint64_t repaired = g->chrome != NULL ? tp_chrome_reader_stats(g->chrome)->repaired
                                          : tp_packet_feed_repaired(g->packets);
    bool is_more = repaired > g->repaired_seen;

    g->repaired_seen = repaired;
    return is_more;
}

static void note_time(struct tp_ingest *g, const struct tp_event *ev)
{
    struct tp_ingest_result *r = &g->result;

    if (ev->kind == TP_EVENT_META)
        return;
    r->is_in_life |= tp_life_span_has(&g->life, ev->ts_ns);
    if (!r->has_times || ev->ts_ns < r->first_ns)
        r->first_ns = ev->ts_ns;
    if (!r->has_times || ev->ts_ns > r->last_ns)
        r->last_ns = ev->ts_ns;
    r->has_times = true;
}

static int store(struct tp_ingest *g, const struct tp_event *ev, bool is_untyped,
                 bool is_repaired, struct tp_err *err)
{
    int rc = tp_pf_writer_event(g->writer, ev, &g->payload, err);

    if (rc == TP_EQUOTA) {
        drop(g, TP_DROP_EVENT_TOO_LARGE, err);
        return TP_OK;
    }
    if (rc != TP_OK)
        return rc;
    note_time(g, ev);
    g->result.counts.stored++;
    g->result.counts.untyped += is_untyped;
    g->result.counts.repaired += is_repaired;
    return spill_if_large(g, err);
}

static int on_event(const struct tp_event *read, struct tp_err *err, void *arg)
{
    struct tp_ingest *g = arg;
    struct tp_event ev = *read;
    bool is_repaired = was_repaired(g);
    enum tp_admission admission;
    bool is_untyped;
    int rc = tp_track_pages_get(&g->tracks, read->track, 1, &ev.track, err);

    if (rc == TP_OK)
        rc = tp_admit_judge(g->admit, &ev, &admission, &is_untyped, err);
    if (rc != TP_OK)
        return rc;
    if (admission == TP_ADMIT_STORE)
        return store(g, &ev, is_untyped, is_repaired, err);
    g->result.counts.filtered++;
    if (admission == TP_ADMIT_GHOST)
        rc = tp_pf_writer_ghost(g->writer, &ev, &g->payload, err);
    return rc == TP_OK ? spill_if_large(g, err) : rc;
}

static int write_note(struct tp_ingest *g, const struct tp_note *note,
                      struct tp_err *err)
{
    int rc = tp_note_write(note, &notes_track, &g->note, err);

    if (rc == TP_OK)
        rc = tp_pf_writer_private(g->writer, &g->note.ev, &g->payload, err);
    return rc == TP_OK ? spill_if_large(g, err) : rc;
}

static int on_member(struct tp_str key, struct tp_str json, struct tp_err *err,
                     void *arg)
{
    struct tp_note note = {.kind = TP_NOTE_MEMBER, .key = key, .json = json};
    struct tp_ingest *g = arg;
    int rc;

    if (g->opts.leave_out != NULL && tp_str_is(key, g->opts.leave_out))
        return TP_OK;
    rc = write_note(g, &note, err);
    if (rc == TP_EQUOTA) {
        g->result.members_left_out++;
        return TP_OK;
    }
    g->result.members += rc == TP_OK;
    if (rc == TP_OK && g->opts.on_member != NULL)
        g->opts.on_member(key, json, g->opts.member_arg);
    return rc;
}

/* What was held as a native batch goes the long way. Its head, if it has one, stays in
 * front: there is the clock of its times. */
static int give_up_native(struct tp_ingest *g, struct tp_err *err)
{
    struct tp_buf held = g->payload;
    int rc = TP_OK;

    g->payload = (struct tp_buf){0};
    g->result.is_native = tp_native_check_found(g->native)->head.stream_no != 0;
    g->result.native = tp_native_check_found(g->native)->head;
    g->life = tp_life_span_of(&g->opts.life, tp_native_head_offset(&g->result.native));
    tp_native_check_free(g->native);
    g->native = NULL;
    if (g->result.is_native)
        rc = tp_buf_append(&g->payload, held.data, TP_NATIVE_HEAD_BYTES, err);
    if (rc == TP_OK)
        rc = tp_packet_feed(g->packets, held.data, held.len, err);
    tp_buf_fini(&held);
    return rc;
}

static int hold_native(struct tp_ingest *g, const char *p, size_t n, struct tp_err *err)
{
    enum tp_native_verdict verdict;
    int rc = tp_buf_append(&g->payload, p, n, err);

    if (rc == TP_OK)
        rc = tp_native_check_feed(g->native, g->payload.data, g->payload.len, &verdict,
                                  err);
    if (rc != TP_OK ||
        (verdict <= TP_NATIVE_GOOD && g->payload.len <= TP_NATIVE_BYTES_MAX))
        return rc;
    return give_up_native(g, err);
}

/* Hand inflated bytes to the reader. */
static int read_bytes(struct tp_ingest *g, const char *p, size_t n, struct tp_err *err)
{
    if (n > g->opts.inflated_bytes - g->fed_bytes) {
        g->limit_hit = TP_INGEST_LIMIT_BYTES;
        return tp_fail(err, TP_EQUOTA, "the body is longer than %llu bytes",
                       (unsigned long long)g->opts.inflated_bytes);
    }
    g->fed_bytes += n;
    if (g->chrome != NULL)
        return tp_chrome_reader_feed(g->chrome, p, n, err);
    if (g->native != NULL)
        return hold_native(g, p, n, err);
    return tp_packet_feed(g->packets, p, n, err);
}

static int on_inflated(const char *p, size_t n, struct tp_err *err, void *arg)
{
    return read_bytes(arg, p, n, err);
}

/* Compressed data that is damaged: an error, or noted when salvaging. While salvaging
 * the readers themselves never say TP_EINVAL before their end. */
static int gzip_damaged(struct tp_ingest *g, int rc)
{
    struct tp_ingest_result *r = &g->result;

    if (rc != TP_EINVAL || !g->opts.salvage)
        return rc;
    g->is_gzip_damaged = true;
    r->is_truncated = true;
    r->damage_offset[r->damages++] = g->fed_bytes;
    return TP_OK;
}

static int decode_bytes(struct tp_ingest *g, const char *p, size_t n,
                        struct tp_err *err)
{
    if (g->gunzip == NULL)
        return read_bytes(g, p, n, err);
    if (g->is_gzip_damaged)
        return TP_OK;
    return gzip_damaged(g, tp_gunzip_feed(g->gunzip, p, n, err));
}

static int start_gunzip(struct tp_ingest *g, struct tp_err *err)
{
    /* read_bytes() limits what comes out. */
    struct tp_gunzip_opts opts = {.out_bytes = UINT64_MAX,
                                  .ratio = (uint32_t)g->limits.inflate_ratio,
                                  .on_bytes = on_inflated,
                                  .arg = g};

    return tp_gunzip_new(&opts, &g->gunzip, err);
}

/* Look at the first two bytes, which are then decoded like all others. */
static int choose_encoding(struct tp_ingest *g, struct tp_err *err)
{
    bool is_gzip = g->opts.encoding == TP_INGEST_GZIP;
    int rc = TP_OK;

    if (g->opts.encoding == TP_INGEST_AUTO)
        is_gzip = tp_gunzip_is_gzip(g->head, g->n_head);
    g->knows_encoding = true;
    if (is_gzip)
        rc = start_gunzip(g, err);
    if (rc == TP_OK && g->n_head > 0)
        rc = decode_bytes(g, g->head, g->n_head, err);
    return rc;
}

/* Make a failure final. */
static int end_with(struct tp_ingest *g, int rc, struct tp_err *err)
{
    if (rc == TP_OK || g->failed != TP_OK)
        return rc;
    g->failed = rc;
    if (err != NULL)
        g->failure = *err;
    return rc;
}

/* Collect the first two bytes; *n_used of the n were taken for that. */
static int look_at_head(struct tp_ingest *g, const char *p, size_t n, size_t *n_used,
                        struct tp_err *err)
{
    *n_used = 0;
    while (g->n_head < sizeof(g->head) && *n_used < n)
        g->head[g->n_head++] = p[(*n_used)++];
    return g->n_head == sizeof(g->head) ? choose_encoding(g, err) : TP_OK;
}

static int feed(struct tp_ingest *g, const char *p, size_t n, struct tp_err *err)
{
    size_t n_used = 0;
    int rc = TP_OK;

    if (!g->knows_encoding)
        rc = look_at_head(g, p, n, &n_used, err);
    if (rc != TP_OK || n_used == n)
        return rc;
    return decode_bytes(g, p + n_used, n - n_used, err);
}

static int fail_again(const struct tp_ingest *g, struct tp_err *err)
{
    if (err != NULL)
        *err = g->failure;
    return g->failed;
}

uint64_t tp_ingest_payload_bytes(const struct tp_ingest *g)
{
    /* The last spill empties the buffer; without one the result is the buffer. */
    return g->result.spill != NULL ? g->result.payload_bytes + g->payload.len
                                   : g->payload.len;
}

uint64_t tp_ingest_events(const struct tp_ingest *g)
{
    const struct tp_counts *c = &g->result.counts;

    if (g->native != NULL)
        return tp_native_check_found(g->native)->n_events;
    return c->stored + c->filtered + tp_counts_dropped(c);
}

enum tp_ingest_limit tp_ingest_limit_hit(const struct tp_ingest *g, bool *is_medium)
{
    *is_medium = g->is_medium_full;
    if (g->gunzip != NULL && tp_gunzip_is_over_ratio(g->gunzip))
        return TP_INGEST_LIMIT_RATIO;
    return g->limit_hit;
}

int tp_ingest_feed(struct tp_ingest *g, const void *p, size_t n, struct tp_err *err)
{
    if (g->failed != TP_OK)
        return fail_again(g, err);
    return end_with(g, feed(g, p, n, err), err);
}

/* A native batch that is in order is the payload, with the ends of its slices. */
static int finish_native(struct tp_ingest *g, struct tp_err *err)
{
    const struct tp_native_found *found = tp_native_check_found(g->native);
    struct tp_counts *counts = &g->result.counts;
    enum tp_native_verdict verdict;
    int rc = tp_native_check_finish(g->native, g->payload.len, &verdict, err);

    if (rc != TP_OK)
        return rc;
    if (verdict != TP_NATIVE_GOOD)
        return give_up_native(g, err);
    rc = tp_native_ends_add(&g->payload, found->n_events, found->head.stream_no, err);
    if (rc != TP_OK)
        return rc;
    g->result.is_native = true;
    g->result.native = found->head;
    g->result.as_is = g->native;
    g->result.is_in_life = found->is_in_life;
    counts->emitted = counts->stored = found->n_events;
    counts->untyped = found->n_untyped;
    return TP_OK;
}

/* The end of the bytes: of the compressed form and of what it held. */
static int finish_reading(struct tp_ingest *g, struct tp_err *err)
{
    int rc = g->knows_encoding ? TP_OK : choose_encoding(g, err);

    if (rc == TP_OK && g->gunzip != NULL && !g->is_gzip_damaged)
        rc = gzip_damaged(g, tp_gunzip_finish(g->gunzip, err));
    if (rc == TP_OK && g->native != NULL)
        rc = finish_native(g, err);
    if (rc != TP_OK || g->native != NULL)
        return rc;
    return g->chrome != NULL ? tp_chrome_reader_finish(g->chrome, err)
                             : tp_packet_feed_finish(g->packets, err);
}

static void note_damage(struct tp_ingest_result *r, uint64_t offset)
{
    if (r->damages < TP_INGEST_DAMAGES_MAX)
        r->damage_offset[r->damages] = offset;
    r->damages++;
}

static void take_chrome_stats(struct tp_ingest *g)
{
    const struct tp_chrome_stats *s = tp_chrome_reader_stats(g->chrome);
    struct tp_ingest_result *r = &g->result;

    r->lacks_events = s->lacks_events;
    r->counts.emitted = s->events;
    r->counts.dropped[TP_DROP_MALFORMED] += s->rejected_by[TP_CHROME_MALFORMED];
    r->counts.dropped[TP_DROP_EVENT_TOO_LARGE] += s->rejected_by[TP_CHROME_TOO_LARGE];
    r->counts.dropped[TP_DROP_OVER_LIMIT] += s->rejected_by[TP_CHROME_OVER_TRACKS];
    if (s->rejected > 0 && r->first_rejection[0] == '\0')
        memcpy(r->first_rejection, s->last_rejection, sizeof(r->first_rejection));
    r->members_left_out += s->members_left_out;
    for (uint64_t i = 0; i < s->damages && i < TP_CHROME_DAMAGES_MAX; i++)
        note_damage(r, s->damage_offset[i]);
    if (s->damages > TP_CHROME_DAMAGES_MAX)
        r->damages += s->damages - TP_CHROME_DAMAGES_MAX;
    r->is_truncated = r->is_truncated || s->is_truncated;
    r->has_base = s->has_base;
    r->base_ns = s->base_ns;
    r->add_ns = s->has_base && !s->base_was_added ? s->base_ns : 0;
    if (r->add_ns != 0) {
        g->life = tp_life_span_of(&g->opts.life, r->add_ns);
        r->is_in_life = r->has_times && (tp_life_span_has(&g->life, r->first_ns) ||
                                         tp_life_span_has(&g->life, r->last_ns));
    }
}

static void take_packet_stats(struct tp_ingest *g)
{
    struct tp_packet_feed_stats s = tp_packet_feed_stats(g->packets);
    struct tp_ingest_result *r = &g->result;

    r->counts.dropped[TP_DROP_MALFORMED] += s.misread;
    r->counts.dropped[TP_DROP_EVENT_TOO_LARGE] += s.over_limit;
    r->counts.emitted = r->counts.stored + r->counts.filtered +
                        tp_counts_dropped(&r->counts);
    if (s.is_damaged)
        note_damage(r, s.damage_offset);
    r->is_truncated = r->is_truncated || s.is_truncated;
}

/* Put into the log what the index will want to know of the source. */
static int write_notes(struct tp_ingest *g, struct tp_err *err)
{
    const struct tp_ingest_result *r = &g->result;
    struct tp_note base = {.kind = TP_NOTE_BASE, .base_ns = r->base_ns};
    struct tp_note damage = {.kind = TP_NOTE_DAMAGE,
                             .damages = r->damages,
                             .is_truncated = r->is_truncated,
                             .members_left_out = r->members_left_out};
    int rc = r->has_base ? write_note(g, &base, err) : TP_OK;

    if (rc != TP_OK ||
        (r->damages == 0 && r->members_left_out == 0 && !r->is_truncated))
        return rc;
    while (damage.n_offsets < r->damages && damage.n_offsets < TP_NOTE_OFFSETS_MAX) {
        damage.offsets[damage.n_offsets] = r->damage_offset[damage.n_offsets];
        damage.n_offsets++;
    }
    return write_note(g, &damage, err);
}

static int finish(struct tp_ingest *g, struct tp_err *err)
{
    struct tp_ingest_result *r = &g->result;
    int rc = finish_reading(g, err);

    if (rc != TP_OK)
        return rc;
    if (g->chrome != NULL)
        take_chrome_stats(g);
    else if (g->native == NULL)
        take_packet_stats(g);
    r->has_clock = g->chrome == NULL || r->has_base;
    if (g->native == NULL && r->is_native)
        rc = tp_native_check_count(&r->native, r->counts.emitted, err);
    if (rc == TP_OK)
        rc = write_notes(g, err);
    if (rc == TP_OK && r->spill != NULL)
        rc = spill(g, err);
    if (rc == TP_OK && g->unstored != TP_OK)
        rc = tp_fail(err, g->unstored, "%s", g->unstored_why.message);
    if (rc != TP_OK)
        return rc;
    if (r->spill == NULL) {
        r->payload = g->payload.data;
        r->payload_bytes = g->payload.len;
        r->crc32c = tp_frame_crc(0, g->payload.data, g->payload.len);
    }
    r->counts.bytes = r->payload_bytes;
    return TP_OK;
}

int tp_ingest_finish(struct tp_ingest *g, const struct tp_ingest_result **out,
                     struct tp_err *err)
{
    int rc;

    if (g->failed != TP_OK)
        return fail_again(g, err);
    rc = end_with(g, finish(g, err), err);
    if (rc == TP_OK)
        *out = &g->result;
    return rc;
}
