/*
 * pf_quick.c - the events that our writer writes most, read field by expected field.
 *
 *   packet  0a len | 40 ts | 50 sequence | 68 02 | 5a len | event
 *   event   48 01, e0ea04 dur  or  48 03, 32 02 70 scope  or  32 len, 10 phase, 30 id
 *           58 track | 18 cat | 50 name | 22 len {08 key, value} ... | 80eb04 id
 *
 * Where a byte is not the expected one, whether it is a rare field, another writer's
 * order or damage, the answer is NULL and pf_reader reads the packet field by field: so
 * this file knows nothing of what else there may be, and must read what it does
 * accept to the same event. pf_writer's order of fields matters for the speed only.
 *
 * Bounds: a packet is looked at when SLACK bytes follow it in the window. Between two
 * comparisons with the end no more than that is read, so a varint needs no look at the
 * end of its own.
 */
#include <math.h>

#include "base/utf8.h"
#include "trace/pf_fields.h"
#include "trace/pf_reader_state.h"

#define SLACK 64

#define VARINT_BYTE(field) ((char)TP_PB_TAG(field, TP_PB_VARINT))
#define BYTES_BYTE(field) ((char)TP_PB_TAG(field, TP_PB_BYTES))
#define FIXED64_BYTE(field) ((char)TP_PB_TAG(field, TP_PB_FIXED64))

/* What is found, in registers as far as they go. */
struct quick {
    int64_t ts_ns, dur_ns;
    int64_t id;
    const struct tp_track *track;
    struct tp_name name, cat;
    uint32_t n_args;
    enum tp_event_kind kind;
    char phase, scope;
    bool binds_enclosing, has_id;
};

/* A varint at p, where as many bytes as it may have can be read. NULL: it has more.
 * Most have some bytes and not always as many, so there is no branch on it. */
static inline __attribute__((always_inline)) const char *number(const char *p,
                                                                uint64_t *v)
{
    uint64_t x;
    uint64_t stops;
    unsigned n;

    memcpy(&x, p, 8);
    stops = ~x & 0x8080808080808080ULL;
    if (__builtin_expect(stops == 0, 0)) {
        *v = 0; /* callers look at it before they look at the pointer */
        return tp_pb_varint(p, p + TP_PB_VARINT_MAX, v);
    }
    n = (unsigned)__builtin_ctzll(stops) + 1;
    if ((uint32_t)stops != 0) { /* as below, with constants that fit in instructions */
        uint32_t y = (uint32_t)x & ((uint32_t)stops ^ ((uint32_t)stops - 1));

        y = (y & 0x007f007fU) | ((y & 0x7f007f00U) >> 1);
        *v = (y & 0x3fffU) | ((y & 0x3fff0000U) >> 2);
        return p + n / 8;
    }
    x &= (stops ^ (stops - 1)) & 0x7f7f7f7f7f7f7f7fULL;
    x = (x & 0x007f007f007f007fULL) | ((x & 0x7f007f007f007f00ULL) >> 1);
    x = (x & 0x00003fff00003fffULL) | ((x & 0x3fff00003fff0000ULL) >> 2);
    *v = (x & 0x000000000fffffffULL) | ((x & 0x0fffffff00000000ULL) >> 4);
    return p + n / 8;
}

/* Likewise where nearly all have one byte. */
static inline const char *small(const char *p, uint64_t *v)
{
    if (__builtin_expect((*p & 0x80) == 0, 1)) {
        *v = (unsigned char)*p;
        return p + 1;
    }
    return number(p, v);
}

/* From the packet's tag to the body of its event. */
static inline const char *open_packet(const struct tp_pf_reader *r, const char *p,
                                      const char *end, struct quick *e,
                                      const char **stop)
{
    uint64_t len;
    uint64_t ts;
    uint64_t sequence;

    if (end - p < 2 * SLACK || p[0] != BYTES_BYTE(TP_PF_TRACE_PACKET))
        return NULL;
    p = number(p + 1, &len);
    if (p == NULL || len > r->packet_bytes || len + SLACK > (size_t)(end - p))
        return NULL;
    *stop = p + len;
    if (p[0] != VARINT_BYTE(TP_PF_PACKET_TIMESTAMP))
        return NULL;
    p = tp_pb_varint(p + 1, p + 1 + TP_PB_VARINT_MAX, &ts);
    if (p == NULL || p[0] != VARINT_BYTE(TP_PF_PACKET_SEQUENCE_ID))
        return NULL;
    p = small(p + 1, &sequence);
    if (p == NULL || sequence != r->sequences.last->id ||
        p[0] != VARINT_BYTE(TP_PF_PACKET_SEQUENCE_FLAGS) ||
        p[1] != TP_PF_SEQUENCE_NEEDS || p[2] != BYTES_BYTE(TP_PF_PACKET_TRACK_EVENT))
        return NULL;
    p = number(p + 3, &len);
    if (p == NULL || p > *stop || len != (size_t)(*stop - p))
        return NULL;
    e->ts_ns = (int64_t)ts;
    return p;
}

/* The kind of a flow or async event by its phase. */
static inline bool kind_of(uint64_t phase, enum tp_event_kind *kind)
{
    static const char phases[] = "stfbne";
    static const enum tp_event_kind kinds[] = {
        TP_EVENT_FLOW_START,  TP_EVENT_FLOW_STEP,     TP_EVENT_FLOW_END,
        TP_EVENT_ASYNC_BEGIN, TP_EVENT_ASYNC_INSTANT, TP_EVENT_ASYNC_END};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (phase == (unsigned char)phases[i]) {
            *kind = kinds[i];
            return true;
        }
    }
    return false;
}

/* The legacy_event of a flow or async event; its own id comes at the end of the event.
 * p is behind the tag. */
static const char *take_flow(const char *p, struct quick *e)
{
    uint64_t hash;
    const char *body = p + 1;
    ptrdiff_t len = p[0];

    if (p[1] != VARINT_BYTE(TP_PF_LEGACY_PHASE) || !kind_of((uint8_t)p[2], &e->kind) ||
        p[3] != VARINT_BYTE(TP_PF_LEGACY_UNSCOPED_ID))
        return NULL;
    e->phase = p[2];
    e->has_id = true;
    p = tp_pb_varint(p + 4, p + 4 + TP_PB_VARINT_MAX, &hash);
    if (p != NULL && p - body < len &&
        p[0] == VARINT_BYTE(TP_PF_LEGACY_BIND_TO_ENCLOSING) && p[1] == 1) {
        e->binds_enclosing = true;
        p += 2;
    }
    return p != NULL && p - body == len ? p : NULL;
}

/* An instant and its scope. p is behind the type. */
static const char *take_instant(const char *p, struct quick *e)
{
    e->kind = TP_EVENT_INSTANT;
    e->phase = 'i';
    if (p[0] != BYTES_BYTE(TP_PF_EVENT_LEGACY))
        return p;
    if (p[1] != 2 || p[2] != VARINT_BYTE(TP_PF_LEGACY_INSTANT_SCOPE) || p[3] < 1 ||
        p[3] > 3)
        return NULL;
    e->scope = "gpt"[p[3] - 1];
    return p + 4;
}

/* What kind of event it is. */
static inline const char *take_kind(const char *p, struct quick *e)
{
    static const char dur[] = {(char)0xe0, (char)0xea, 0x04};
    uint64_t v;

    if (p[0] == BYTES_BYTE(TP_PF_EVENT_LEGACY))
        return take_flow(p + 1, e);
    if (p[0] != VARINT_BYTE(TP_PF_EVENT_TYPE))
        return NULL;
    if (p[1] == TP_PF_TYPE_INSTANT)
        return take_instant(p + 2, e);
    if (p[1] != TP_PF_TYPE_BEGIN || memcmp(p + 2, dur, sizeof(dur)) != 0)
        return NULL;
    p = number(p + 5, &v);
    e->kind = TP_EVENT_SLICE;
    e->phase = 'X';
    e->dur_ns = (int64_t)v;
    return e->dur_ns >= 0 ? p : NULL;
}

/* Where it was, and what it is called. */
static inline const char *take_names(const struct tp_pf_reader *r, const char *p,
                                     struct quick *e)
{
    const struct tp_pf_sequence *q = r->sequences.last;
    const struct tp_pf_place *place;
    uint64_t v;

    if (p[0] != VARINT_BYTE(TP_PF_EVENT_TRACK_UUID) || (p = number(p + 1, &v)) == NULL)
        return NULL;
    place = tp_pf_places_find(&r->places, v);
    if (place == NULL || place->track == NULL)
        return NULL;
    e->track = place->track;
    if (p[0] == VARINT_BYTE(TP_PF_EVENT_CATEGORY_IIDS)) {
        p = small(p + 1, &v);
        e->cat = tp_pf_sequence_text(q, TP_PF_INDEX_CATEGORY, v);
        if (p == NULL || e->cat.ptr == NULL)
            return NULL;
    }
    if (p[0] == VARINT_BYTE(TP_PF_EVENT_NAME_IID)) {
        p = number(p + 1, &v);
        e->name = tp_pf_sequence_text(q, TP_PF_INDEX_NAME, v);
        if (p == NULL || e->name.ptr == NULL)
            return NULL;
    }
    return p;
}

/* The text of an argument, which ends where the argument does. */
static inline const char *take_text(const struct tp_pf_reader *r, const char *p,
                                    const char *stop, struct tp_arg *arg)
{
    uint64_t len;
    bool is_valid;

    p = small(p, &len);
    if (p == NULL || p > stop || len != (size_t)(stop - p))
        return NULL;
    arg->s = (struct tp_str){p, len};
    is_valid = r->is_trusted ||
               (arg->kind == TP_ARG_JSON ? tp_pf_reader_is_json(arg->s)
                                         : tp_utf8_is_valid(arg->s.ptr, arg->s.len));
    return is_valid ? stop : NULL;
}

/* The value of an argument, whose bytes are from p to stop. */
static inline const char *take_value(const struct tp_pf_reader *r, const char *p,
                                     const char *stop, struct tp_arg *arg)
{
    uint64_t v = 0;

    switch (*p++) {
    case VARINT_BYTE(TP_PF_ARG_INT):
        p = number(p, &v);
        arg->kind = TP_ARG_INT;
        arg->i = (int64_t)v;
        return p;
    case FIXED64_BYTE(TP_PF_ARG_DOUBLE):
        memcpy(&v, p, sizeof(v));
        arg->kind = TP_ARG_DOUBLE;
        arg->d = tp_pb_double(v);
        return isfinite(arg->d) ? p + sizeof(v) : NULL;
    case VARINT_BYTE(TP_PF_ARG_BOOL):
        p = small(p, &v);
        arg->kind = TP_ARG_BOOL;
        arg->b = v != 0;
        return p;
    case BYTES_BYTE(TP_PF_ARG_STRING):
        arg->kind = TP_ARG_STRING;
        return take_text(r, p, stop, arg);
    case BYTES_BYTE(TP_PF_ARG_JSON):
        arg->kind = TP_ARG_JSON;
        return take_text(r, p, stop, arg);
    default:
        return NULL;
    }
}

/* All arguments, into r->args. */
static inline const char *take_args(struct tp_pf_reader *r, const char *p,
                                    const char *end, struct quick *e)
{
    const struct tp_pf_sequence *q = r->sequences.last;
    uint32_t n = 0;

    while (p < end && p[0] == BYTES_BYTE(TP_PF_EVENT_ARGS)) {
        struct tp_arg *arg;
        const char *stop;
        uint64_t v;

        if (n == r->cap_args || (p = small(p + 1, &v)) == NULL || p > end ||
            v > (size_t)(end - p))
            return NULL;
        stop = p + v;
        arg = &r->args[n++];
        if (p[0] != VARINT_BYTE(TP_PF_ARG_NAME_IID))
            return NULL;
        p = small(p + 1, &v);
        arg->key = tp_pf_sequence_text(q, TP_PF_INDEX_ARG_NAME, v);
        if (p == NULL || arg->key.ptr == NULL || take_value(r, p, stop, arg) != stop)
            return NULL;
        p = stop;
    }
    e->n_args = n;
    return p;
}

/* The id of a flow or async event. */
static inline const char *take_id(const char *p, struct quick *e)
{
    static const char id[] = {(char)0x80, (char)0xeb, 0x04};
    uint64_t v;

    if (memcmp(p, id, sizeof(id)) != 0)
        return NULL;
    p = number(p + sizeof(id), &v);
    e->id = tp_pb_unzigzag(v);
    return p;
}

const char *tp_pf_reader_quick(struct tp_pf_reader *r, const char *p, const char *end,
                               struct tp_event *ev)
{
    const struct tp_pf_sequence *q = r->sequences.last;
    struct quick e = {0};
    const char *stop;

    if (q == NULL || q->default_clock != 0 ||
        (!q->is_ours && r->primary_clock != TP_PF_CLOCK_BOOTTIME))
        return NULL; /* its times are more than numbers */
    p = open_packet(r, p, end, &e, &stop);
    if (p == NULL || (p = take_kind(p, &e)) == NULL || p > stop ||
        (p = take_names(r, p, &e)) == NULL || (p = take_args(r, p, stop, &e)) == NULL ||
        p > stop)
        return NULL;
    if (e.has_id && (q->is_merged || (p = take_id(p, &e)) == NULL))
        return NULL;
    if (p != stop)
        return NULL;
    *ev = (struct tp_event){.kind = e.kind,
                            .phase = e.phase,
                            .scope = e.scope,
                            .binds_enclosing = e.binds_enclosing,
                            .ts_ns = e.ts_ns,
                            .dur_ns = e.dur_ns,
                            .name = e.name,
                            .cat = e.cat,
                            .id = {.kind = e.has_id ? TP_ID_NUMBER : TP_ID_NONE,
                                   .number = e.id},
                            .track = e.track,
                            .args = r->args,
                            .n_args = e.n_args};
    return p;
}
