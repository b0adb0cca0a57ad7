/*
 * pf_plain.c - the one form of packet that is read by its place and not by its tags.
 *
 *     packet LEN: timestamp, sequence id, flags = needs
 *       track_event LEN: type = begin, dur_ns, track_uuid, [category], [name],
 *                        (argument LEN: key's number, value)...
 *
 * Each tag is compared with the one that pf_encode writes there; lengths must meet
 * exactly. So a byte that was changed on the disk either leaves a packet that the long
 * way reads the same, or makes the packet go the long way.
 */
#include "trace/pf_plain.h"

#include <string.h>

#include "trace/pf_fields.h"
#include "trace/pf_reader_state.h"

#define TAG(field, wire) ((unsigned char)TP_PB_TAG(field, wire))
#define EXPONENT UINT64_C(0x7ff0000000000000)

/* A number behind a tag of one byte: its end, or NULL. */
static inline const char *number(const char *p, const char *end, unsigned char tag,
                                 uint64_t *v)
{
    if (p >= end || (unsigned char)*p != tag)
        return NULL;
    return tp_pb_varint(p + 1, end, v);
}

/* The end of what a length measures, when all of it is there; else NULL. */
static inline const char *body(const char *p, const char *end, unsigned char tag,
                               const char **start)
{
    uint64_t len;

    p = number(p, end, tag, &len);
    if (p == NULL || len > (size_t)(end - p))
        return NULL;
    *start = p;
    return p + len;
}

/* The fields before the track event: sequence and time. */
static inline const char *head(const struct tp_pf_reader *r, const char *p,
                               const char *end, struct tp_event *ev)
{
    const struct tp_pf_sequence *q = r->sequences.last;
    uint64_t ts;
    uint64_t id;

    p = number(p, end, TAG(TP_PF_PACKET_TIMESTAMP, TP_PB_VARINT), &ts);
    if (p != NULL)
        p = number(p, end, TAG(TP_PF_PACKET_SEQUENCE_ID, TP_PB_VARINT), &id);
    if (p == NULL || end - p < 2 || q == NULL || q->id != id || !q->is_ours ||
        (unsigned char)p[0] != TAG(TP_PF_PACKET_SEQUENCE_FLAGS, TP_PB_VARINT) ||
        p[1] != TP_PF_SEQUENCE_NEEDS)
        return NULL;
    ev->ts_ns = (int64_t)ts;
    return p + 2;
}

/* Type, duration and track. */
static inline const char *slice(const struct tp_pf_reader *r, const char *p,
                                const char *end, struct tp_event *ev)
{
    static const char begin[] = {
        (char)TAG(TP_PF_EVENT_TYPE, TP_PB_VARINT), TP_PF_TYPE_BEGIN,
        (char)(TP_PB_TAG(TP_PF_X_EVENT_DUR_NS, TP_PB_VARINT) | 0x80),
        (char)(TP_PB_TAG(TP_PF_X_EVENT_DUR_NS, TP_PB_VARINT) >> 7 | 0x80),
        (char)(TP_PB_TAG(TP_PF_X_EVENT_DUR_NS, TP_PB_VARINT) >> 14)};
    const struct tp_pf_place *place;
    uint64_t dur;
    uint64_t uuid;

    if ((size_t)(end - p) < sizeof(begin) || memcmp(p, begin, sizeof(begin)) != 0)
        return NULL;
    p = tp_pb_varint(p + sizeof(begin), end, &dur);
    if (p != NULL)
        p = number(p, end, TAG(TP_PF_EVENT_TRACK_UUID, TP_PB_VARINT), &uuid);
    if (p == NULL || dur > INT64_MAX)
        return NULL;
    place = tp_pf_places_find(&r->places, uuid);
    if (place == NULL || place->track == NULL)
        return NULL;
    ev->dur_ns = (int64_t)dur;
    ev->track = place->track;
    return p;
}

/* A name by its number, when there is one. */
static inline const char *name(const struct tp_pf_sequence *q, enum tp_pf_index index,
                               const char *p, const char *end, unsigned char tag,
                               struct tp_name *out)
{
    uint64_t iid;

    if (p == end || (unsigned char)*p != tag)
        return p;
    p = tp_pb_varint(p + 1, end, &iid);
    if (p == NULL)
        return NULL;
    *out = tp_pf_sequence_text(q, index, iid);
    return out->ptr == NULL ? NULL : p;
}

/* Whether the bytes are one value as pf_encode writes it. The input goes on to limit:
 * numbers are read faster when not at an end. */
static inline bool is_value(const char *p, const char *end, const char *limit)
{
    const char *start;
    uint64_t v;

    if (p >= end)
        return false;
    switch ((unsigned char)*p) {
    case TAG(TP_PF_ARG_BOOL, TP_PB_VARINT):
    case TAG(TP_PF_ARG_INT, TP_PB_VARINT):
        return tp_pb_varint(p + 1, limit, &v) == end;
    case TAG(TP_PF_ARG_UINT, TP_PB_VARINT):
        return tp_pb_varint(p + 1, limit, &v) == end && v > INT64_MAX;
    case TAG(TP_PF_ARG_DOUBLE, TP_PB_FIXED64):
        if (end - p != 9)
            return false;
        memcpy(&v, p + 1, sizeof(v));
        return (v & EXPONENT) != EXPONENT;
    case TAG(TP_PF_ARG_STRING, TP_PB_BYTES):
    case TAG(TP_PF_ARG_JSON, TP_PB_BYTES):
        return body(p, end, (unsigned char)*p, &start) == end;
    default:
        return false;
    }
}

/* All arguments up to the end of the event. */
static inline bool arguments(const struct tp_pf_sequence *q, const char *p,
                             const char *end, const char *limit,
                             struct tp_pf_plain *out)
{
    const struct tp_name *keys = q->texts[TP_PF_INDEX_ARG_NAME];
    uint32_t n_keys = q->n_texts[TP_PF_INDEX_ARG_NAME];
    const char *wire = p;

    out->n_args = 0;
    if (end - p > UINT16_MAX)
        return false;
    while (p < end) {
        const char *start;
        unsigned key;

        p = body(p, end, TAG(TP_PF_EVENT_ARGS, TP_PB_BYTES), &start);
        if (p == NULL || p - start < 3 || out->n_args == TP_PF_PLAIN_ARGS_MAX ||
            (unsigned char)*start != TAG(TP_PF_ARG_NAME_IID, TP_PB_VARINT))
            return false;
        key = (unsigned char)start[1];
        if (key > TP_PF_PLAIN_KEY_MAX || key - 1 >= n_keys ||
            keys[key - 1].ptr == NULL || !is_value(start + 2, p, limit))
            return false;
        out->keys[out->n_args] = &keys[key - 1];
        out->key_at[out->n_args++] = (uint16_t)(start + 1 - wire);
    }
    out->wire = (struct tp_str){wire, (size_t)(end - wire)};
    return true;
}

/* Behind the end that our writer adds to a slice, if that is here. */
static inline const char *skip_end(const char *p, const char *end)
{
    /* A length, which is two bytes at most in front of it, and the mark. */
    static const char mark[] = {(char)0xe8, (char)0xea, 0x04, 0x01};
    const char *start;
    const char *next = body(p, end, TAG(TP_PF_TRACE_PACKET, TP_PB_BYTES), &start);

    if (next == NULL || next - start <= 6 ||
        (unsigned char)*start != TAG(TP_PF_PACKET_TRACK_EVENT, TP_PB_BYTES) ||
        memcmp(start + 2, mark, sizeof(mark)) != 0)
        return p;
    return next;
}

bool tp_pf_plain_look(const struct tp_pf_reader *r, const struct tp_pf_cursor *c,
                      struct tp_pf_plain *out)
{
    const struct tp_pf_sequence *q = r->sequences.last;
    struct tp_event *ev = &out->ev;
    const char *p = skip_end(c->ptr, c->end); /* of the slice before */
    const char *end = body(p, c->end, TAG(TP_PF_TRACE_PACKET, TP_PB_BYTES), &p);

    if (end == NULL || r->skip_bytes > 0 || r->next_flow < r->n_flows)
        return false;
    memset(ev, 0, sizeof(*ev));
    ev->kind = TP_EVENT_SLICE;
    ev->phase = 'X';
    p = head(r, p, end, ev);
    if (p == NULL ||
        body(p, end, TAG(TP_PF_PACKET_TRACK_EVENT, TP_PB_BYTES), &p) != end)
        return false;
    p = slice(r, p, end, ev);
    if (p != NULL)
        p = name(q, TP_PF_INDEX_CATEGORY, p, end,
                 TAG(TP_PF_EVENT_CATEGORY_IIDS, TP_PB_VARINT), &ev->cat);
    if (p != NULL)
        p = name(q, TP_PF_INDEX_NAME, p, end, TAG(TP_PF_EVENT_NAME_IID, TP_PB_VARINT),
                 &ev->name);
    if (p == NULL || !arguments(q, p, end, c->end, out))
        return false;
    out->next = end;
    return true;
}

void tp_pf_plain_take(struct tp_pf_reader *r, struct tp_pf_cursor *c,
                      const struct tp_pf_plain *plain)
{
    r->offset += (uint64_t)(plain->next - c->ptr);
    c->ptr = plain->next;
}
