/*
 * pf_run.c - slices in the fast form of docs/stream-format.md, byte by expected byte.
 *
 *   packet  0a L 40 ts LEAD L | 48 01 e0ea04 dur | 58 uuid | 18 cat | 50 name | args
 *   LEAD    10 sequence 68 02 5a
 *   args    22 L 08 key, whole number ...
 *
 * Slices of one thread come one after the other, so the last track and `cat` are known
 * by their bytes. Bounds: a packet is looked at when ROOM bytes follow its start, more
 * than a packet that is taken and what is read behind it can be.
 */
#include "trace/pf_run.h"

#include <stdbool.h>
#include <string.h>

#include "trace/pf_fields.h"
#include "trace/pf_reader_state.h"

#define ROOM 256
#define LEAD_MAX (TP_PB_TAG_MAX + TP_PB_SLACK)
#define UUID_MAX 16

#define VARINT_BYTE(field) ((char)TP_PB_TAG(field, TP_PB_VARINT))
#define BYTES_BYTE(field) ((char)TP_PB_TAG(field, TP_PB_BYTES))

struct run {
    const struct tp_pf_reader *r;
    const struct tp_pf_sequence *q;
    const struct tp_pf_run_opts *opts;
    char lead[LEAD_MAX];
    size_t lead_bytes;
    char uuid[UUID_MAX]; /* of the last track that is known, with its tag */
    size_t uuid_bytes;   /* 0: none is */
    char cat_byte;       /* the last one that is known, and its number in events */
    bool has_cat;
    uint32_t cat;
};

/* Whether the next packet may be read without its event: times of our own sequences are
 * those of the trace, and nothing is left of the packet before. */
static bool can_begin(const struct tp_pf_reader *r)
{
    const struct tp_pf_sequence *q = r->sequences.last;

    return q != NULL && q->is_ours && r->skip_bytes == 0 && r->next_flow == r->n_flows;
}

static void begin(struct run *run, const struct tp_pf_reader *r,
                  const struct tp_pf_run_opts *opts)
{
    char *p = run->lead;

    run->r = r;
    run->q = r->sequences.last;
    run->opts = opts;
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_ID, run->q->id);
    *p++ = VARINT_BYTE(TP_PF_PACKET_SEQUENCE_FLAGS);
    *p++ = TP_PF_SEQUENCE_NEEDS;
    *p++ = BYTES_BYTE(TP_PF_PACKET_TRACK_EVENT);
    run->lead_bytes = (size_t)(p - run->lead);
    run->uuid_bytes = 0;
    run->has_cat = false;
}

/* A track that an event had before. p is at its tag. NULL: it is none. */
static const char *take_track(struct run *run, const char *p)
{
    const struct tp_pf_place *place;
    const char *end;
    uint64_t uuid;

    if (run->uuid_bytes != 0 && memcmp(p, run->uuid, run->uuid_bytes) == 0)
        return p + run->uuid_bytes;
    if (*p != VARINT_BYTE(TP_PF_EVENT_TRACK_UUID) ||
        (end = tp_pb_varint(p + 1, p + 1 + TP_PB_VARINT_MAX, &uuid)) == NULL)
        return NULL;
    place = tp_pf_places_find(&run->r->places, uuid);
    if (place == NULL || place->track == NULL)
        return NULL;
    run->uuid_bytes = (size_t)(end - p);
    memcpy(run->uuid, p, run->uuid_bytes);
    return end;
}

/* A `cat` that the run may have. p is at its tag. */
static const char *take_cat(struct run *run, const char *p)
{
    struct tp_name cat;

    if (p[0] != VARINT_BYTE(TP_PF_EVENT_CATEGORY_IIDS) || (p[1] & 0x80) != 0)
        return NULL;
    if (run->has_cat && p[1] == run->cat_byte)
        return p + 2;
    cat = tp_pf_sequence_text(run->q, TP_PF_INDEX_CATEGORY, (uint8_t)p[1]);
    if (cat.ptr == NULL || cat.iid >= TP_PF_RUN_CATS || !run->opts->takes[cat.iid])
        return NULL;
    run->has_cat = true;
    run->cat_byte = p[1];
    run->cat = cat.iid;
    return p + 2;
}

/* Arguments that are whole numbers. Returns their end; NULL: there are others. */
static const char *take_args(const struct run *run, const char *p, const char *stop)
{
    while (p < stop) {
        const char *end = p + 2 + (uint8_t)p[1];
        uint64_t ignored;

        if (p[0] != BYTES_BYTE(TP_PF_EVENT_ARGS) || (p[1] & 0x80) != 0 || end > stop ||
            p[2] != VARINT_BYTE(TP_PF_ARG_NAME_IID) || (p[3] & 0x80) != 0 ||
            tp_pf_sequence_text(run->q, TP_PF_INDEX_ARG_NAME, (uint8_t)p[3]).ptr ==
                NULL ||
            p[4] != VARINT_BYTE(TP_PF_ARG_INT) ||
            tp_pb_varint(p + 5, p + 5 + TP_PB_VARINT_MAX, &ignored) != end)
            return NULL;
        p = end;
    }
    return p;
}

/* A length of 127 at most, which may be padded to two bytes. NULL: it is none. */
static inline const char *take_length(const char *p, size_t *n)
{
    *n = (uint8_t)p[0] & 0x7f;
    if ((p[0] & 0x80) == 0)
        return p + 1;
    return p[1] == 0 ? p + 2 : NULL;
}

/* The slice at p, which ROOM bytes follow. Returns its end; NULL: there is none. */
static inline const char *take_slice(struct run *run, const char *p,
                                     struct tp_pf_run_slice *s)
{
    static const char kind[] = {0x48, 0x01, (char)0xe0, (char)0xea, 0x04};
    const char *stop;
    uint64_t ts, dur, name;
    size_t n;

    if (p[0] != BYTES_BYTE(TP_PF_TRACE_PACKET) || (p = take_length(p + 1, &n)) == NULL)
        return NULL;
    stop = p + n;
    if (p[0] != VARINT_BYTE(TP_PF_PACKET_TIMESTAMP) ||
        (p = tp_pb_varint(p + 1, p + 1 + TP_PB_VARINT_MAX, &ts)) == NULL ||
        memcmp(p, run->lead, run->lead_bytes) != 0 ||
        (p = take_length(p + run->lead_bytes, &n)) == NULL || p + n != stop ||
        memcmp(p, kind, sizeof(kind)) != 0)
        return NULL;
    p += sizeof(kind);
    p = tp_pb_varint(p, p + TP_PB_VARINT_MAX, &dur);
    if (p == NULL || dur > INT64_MAX || dur < run->opts->min_duration_ns ||
        __builtin_add_overflow((int64_t)ts, (int64_t)dur, &s->end_ns) ||
        (p = take_track(run, p)) == NULL || (p = take_cat(run, p)) == NULL ||
        p[0] != VARINT_BYTE(TP_PF_EVENT_NAME_IID) ||
        (p = tp_pb_varint(p + 1, p + 1 + TP_PB_VARINT_MAX, &name)) == NULL ||
        tp_pf_sequence_text(run->q, TP_PF_INDEX_NAME, name).ptr == NULL || p > stop)
        return NULL;
    s->ts_ns = (int64_t)ts;
    s->cat = run->cat;
    return take_args(run, p, stop) == stop ? stop : NULL;
}

size_t tp_pf_reader_run(struct tp_pf_reader *r, struct tp_pf_cursor *c,
                        const struct tp_pf_run_opts *opts, struct tp_pf_run_slice *out,
                        size_t n)
{
    const char *p = c->ptr;
    const char *next;
    struct run run;
    size_t n_taken = 0;

    if (c->end - p < ROOM || !can_begin(r))
        return 0;
    begin(&run, r, opts);
    while (n_taken < n && c->end - p >= ROOM &&
           (next = take_slice(&run, p, &out[n_taken])) != NULL) {
        p = next;
        n_taken++;
    }
    r->offset += (uint64_t)(p - c->ptr);
    c->ptr = p;
    return n_taken;
}
