/*
 * batch_run.c - runs of records as packets.
 *
 *     0a LEN 40 time 50 stream 68 02 5a LEN 48 01 e0 ea 04 dur 58 uuid 18 type 50 name
 *     |-8 bytes--|------------- opening ------------------|   |-8 ---|-8 bytes--|
 *
 * A packet differs little from the one before it. The opening is the same for all that
 * begin in the same quarter of a second, for the upper five bytes of the time are part
 * of it. What is left to be encoded is the lower four, the duration, the numbers of
 * type and name, and the arguments. What is short is copied as a word of eight bytes:
 * the next write begins where it ends, over what was too much.
 *
 * The general way asks what a record needs, says it and writes it, one after the other,
 * and takes more than twice the time.
 */
#include "producer/batch_run.h"

#include <traceplane/record.h>

#include "base/pb.h"
#include "producer/batch_state.h"
#include "producer/fields.h"
#include "producer/ring.h"
#include "trace/pf_fields.h"

/* The tag of a field, as the byte of a word at a place. */
#define TAG(field, wire, at) ((uint64_t)TP_PB_TAG(field, wire) << 8 * (at))

/* Of a time the low 28 bits are four bytes, and the upper ones five. */
#define LOW_NS_MAX ((UINT64_C(1) << 28) - 1)
#define LOW_BYTES 4
#define HIGH_BYTES 5

_Static_assert(TP_BATCH_RUN_ROOM >=
                   128 + TP_FIELDS_MAX * (TP_BATCH_SHORT_TEXT_MAX + 16),
               "the longest record of a run has room");

/* Write n bytes, all eight of which may be touched. */
static TP_ALWAYS char *put_word(char *p, uint64_t bytes, unsigned n)
{
    memcpy(p, &bytes, sizeof(bytes));
    return p + n;
}

/* The first four bytes of a varint that is longer. */
static TP_ALWAYS uint32_t low_bytes(uint32_t low)
{
    uint32_t x = (low & 0x3fff) | ((low & 0xfffc000) << 2);

    return (x & 0x007f007f) | ((x & 0x3f803f80) << 1) | 0x80808080;
}

static void set_opening(struct tp_batch_opening *o, const struct tp_batch_writer *b,
                        const char *time, bool is_slice)
{
    char *p = o->bytes;

    memcpy(p, time + LOW_BYTES, HIGH_BYTES);
    p = tp_batch_put_snippet(p + HIGH_BYTES, &b->lead);
    p += 2;
    o->at_event = (unsigned)(p - o->bytes);
    p = tp_pb_put_u64(p, TP_PF_EVENT_TYPE,
                      is_slice ? TP_PF_TYPE_BEGIN : TP_PF_TYPE_INSTANT);
    if (is_slice)
        p = tp_pb_put_tag(p, TP_PF_X_EVENT_DUR_NS, TP_PB_VARINT);
    o->n = (unsigned)(p - o->bytes);
}

bool tp_batch_open_at(struct tp_batch_writer *b, uint64_t ns)
{
    char time[TP_PB_SLACK];

    if (tp_pb_varint_bytes(ns) != LOW_BYTES + HIGH_BYTES)
        return false;
    tp_pb_put_varint(time, ns);
    set_opening(&b->openings[0], b, time, false);
    set_opening(&b->openings[1], b, time, true);
    b->opening_ns = ns & ~LOW_NS_MAX;
    return true;
}

/* A field that is not a small number under a key of one byte, without its length. NULL:
 * its text is long. */
static char *put_other_field(char *p, const uint64_t *w, uint32_t key_iid)
{
    if (tp_fields_is_text(w) &&
        tp_fields_text(w, TP_BATCH_TEXT_MAX).len > TP_BATCH_SHORT_TEXT_MAX)
        return NULL;
    *p = (char)TP_PB_TAG(TP_PF_EVENT_ARGS, TP_PB_BYTES);
    p = tp_pb_put_u64(p + 2, TP_PF_ARG_NAME_IID, key_iid);
    return tp_batch_put_value(p, w);
}

/* The arguments. NULL: one of them is not for the fast lane. */
static TP_ALWAYS char *put_fields(const struct tp_batch_writer *b, char *p,
                                  const uint64_t *w, unsigned n)
{
    for (; n > 0; n--) {
        const uint64_t first = *w;
        const uint32_t key = TP_RECORD_FIELD_KEY(first);
        char *content = p + 2;
        uint64_t iid;

        if (TP_RARE(key >= b->n_said || b->said[key].key_batch != b->number))
            return NULL;
        iid = b->said[key].key_iid;
        if (TP_RECORD_FIELD_KIND(first) == TP_RECORD_FIELD_SMALL && iid < 0x80) {
            p = put_word(p,
                         TAG(TP_PF_EVENT_ARGS, TP_PB_BYTES, 0) |
                             TAG(TP_PF_ARG_NAME_IID, TP_PB_VARINT, 2) | iid << 24 |
                             TAG(TP_PF_ARG_INT, TP_PB_VARINT, 4),
                         5);
            p = tp_pb_put_varint(p, (uint64_t)TP_RECORD_SMALL_VALUE(first));
            w++;
        } else {
            p = put_other_field(p, w, (uint32_t)iid);
            w = tp_fields_next(w);
            if (p == NULL)
                return NULL;
        }
        content[-1] = (char)(p - content);
    }
    return p;
}

/* The numbers of type and name. */
static TP_ALWAYS char *put_names(char *p, uint64_t type_iid, uint32_t name_iid)
{
    if (type_iid < 0x80) {
        p = put_word(p,
                     TAG(TP_PF_EVENT_CATEGORY_IIDS, TP_PB_VARINT, 0) | type_iid << 8 |
                         TAG(TP_PF_EVENT_NAME_IID, TP_PB_VARINT, 2),
                     3);
    } else {
        p = tp_pb_put_tag(p, TP_PF_EVENT_CATEGORY_IIDS, TP_PB_VARINT);
        tp_pb_put_length(p, 2, type_iid);
        p = tp_pb_put_tag(p + 2, TP_PF_EVENT_NAME_IID, TP_PB_VARINT);
    }
    return tp_pb_put_varint(p, name_iid);
}

/* Whether a record is for the batch and all that it needs was said, its keys aside. */
static TP_ALWAYS bool is_for_run(const struct tp_batch_writer *b,
                                 const struct tp_batch_run *run, const uint64_t *w,
                                 bool is_slice)
{
    const uint64_t header = w[0];
    const uint64_t ticks = w[1];

    return TP_RECORD_NAME(header) < b->n_said &&
           b->said[TP_RECORD_NAME(header)].name_batch == b->number &&
           b->type_batch[TP_RECORD_TYPE(header)] == b->number &&
           TP_RECORD_FIELDS(header) <= TP_FIELDS_MAX && ticks >= run->start_ticks &&
           ticks <= run->stop_ticks && ticks >= b->line.ticks &&
           (!is_slice || (w[2] >= run->min_ticks && w[2] <= b->slice_ticks_max));
}

/* Write a record. NULL: it is not for the fast lane. */
static TP_ALWAYS char *put(struct tp_batch_writer *b, const struct tp_batch_run *run,
                           char *packet, const uint64_t *w, bool is_slice)
{
    const struct tp_batch_opening *opening = &b->openings[is_slice];
    char *event = packet + 8;
    char *p;
    unsigned __int128 past; /* since the line began, in 2^-32 ns */
    uint64_t low_ns;

    if (TP_RARE(!is_for_run(b, run, w, is_slice)))
        return NULL;
    past = (unsigned __int128)(w[1] - b->line.ticks) * b->line.mult;
    low_ns = b->line.ns + (uint64_t)(past >> 32) - b->opening_ns;
    if (TP_RARE(low_ns > LOW_NS_MAX)) {
        if (!tp_batch_open_at(b, b->opening_ns + low_ns))
            return NULL;
        low_ns &= LOW_NS_MAX;
    }
    put_word(packet,
             TAG(TP_PF_TRACE_PACKET, TP_PB_BYTES, 0) |
                 TAG(TP_PF_PACKET_TIMESTAMP, TP_PB_VARINT, 3) |
                 (uint64_t)low_bytes((uint32_t)low_ns) << 32,
             8);
    memcpy(event, opening->bytes, sizeof(opening->bytes));
    p = event + opening->n;
    event += opening->at_event;
    /* With the fraction of the start: the end less the start, both rounded down. */
    if (is_slice)
        p = tp_pb_put_varint(p, ((uint32_t)past + w[2] * b->line.mult) >> 32);
    p = tp_batch_put_snippet(p, &b->thread_track);
    p = put_names(p, TP_RECORD_TYPE(w[0]) + 1, b->said[TP_RECORD_NAME(w[0])].name_iid);
    p = put_fields(b, p, w + (is_slice ? 3 : 2), TP_RECORD_FIELDS(w[0]));
    if (TP_RARE(p == NULL))
        return NULL;
    tp_pb_put_length(event - 2, 2, (size_t)(p - event));
    tp_pb_put_length(packet + 1, 2, (size_t)(p - packet) - 3);
    return p;
}

const uint64_t *tp_batch_put_run(struct tp_batch_writer *b, struct tp_batch_run *run,
                                 const uint64_t *from, const uint64_t *to)
{
    const uint64_t *w = from;
    char *p = run->p;
    uint64_t n = 0;

    if (!b->is_thread_said)
        return from;
    for (; w < to && run->end - p >= (ptrdiff_t)TP_BATCH_RUN_ROOM; n++) {
        char *end = NULL;

        if (TP_RECORD_KIND(*w) == TP_RECORD_SLICE)
            end = put(b, run, p, w, true);
        else if (TP_RECORD_KIND(*w) == TP_RECORD_INSTANT)
            end = put(b, run, p, w, false);
        if (end == NULL)
            break;
        p = end;
        run->by_type[TP_RECORD_TYPE(*w)]++;
        w += TP_RECORD_WORDS(*w);
    }
    run->p = p;
    run->n_events += n;
    return w;
}
