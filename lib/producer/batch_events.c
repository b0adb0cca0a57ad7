/*
 * batch_events.c - records as packets.
 *
 * Slices and instants that batch_run.c has left, and slices of devices, are written
 * field by field in the order of docs/stream-format.md; the few others by the encoder
 * that the service uses.
 */
#include <math.h>
#include <traceplane/record.h>

#include "base/pb.h"
#include "producer/batch_state.h"
#include "producer/fields.h"
#include "producer/ring.h"
#include "trace/pf_encode.h"
#include "trace/pf_fields.h"

#define SHORT_PACKET 16000u /* lengths of up to this take two bytes */

/* Times since 1970 take nine bytes from 1972 to 2262. */
static inline char *put_time(char *p, uint64_t ns)
{
    uint64_t x = ns & 0x00ffffffffffffffULL;

    if (__builtin_expect(ns >> 56 == 0 || ns >> 63 != 0, 0))
        return tp_pb_put_varint(p, ns);
    x = (x & 0x000000000fffffffULL) | ((x & 0x00fffffff0000000ULL) << 4);
    x = (x & 0x00003fff00003fffULL) | ((x & 0x0fffc0000fffc000ULL) << 2);
    x = (x & 0x007f007f007f007fULL) | ((x & 0x3f803f803f803f80ULL) << 1);
    x |= 0x8080808080808080ULL;
    memcpy(p, &x, sizeof(x));
    p[8] = (char)(ns >> 56);
    return p + 9;
}

/* Room: eight bytes for each constant. */
#define PUT_BYTES(p, text)                   \
    do {                                     \
        memcpy((p), text, sizeof(text) - 1); \
        (p) += sizeof(text) - 1;             \
    } while (0)

/* What is written of a number that is not finite. */
static const char *text_of(double v)
{
    return isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity";
}

static char *put_double(char *p, double v)
{
    const char *text = text_of(v);

    if (isfinite(v))
        return tp_pb_put_double(p, TP_PF_ARG_DOUBLE, v);
    return tp_pb_put_bytes(p, TP_PF_ARG_STRING, text, strlen(text));
}

char *tp_batch_put_value(char *p, const uint64_t *w)
{
    struct tp_str text;
    double d;

    switch (TP_RECORD_FIELD_KIND(*w)) {
    case TP_RECORD_FIELD_SMALL:
        return tp_pb_put_u64(p, TP_PF_ARG_INT, (uint64_t)TP_RECORD_SMALL_VALUE(*w));
    case TP_FIELD_INT:
        return tp_pb_put_u64(p, TP_PF_ARG_INT, w[1]);
    case TP_FIELD_BOOL:
        return tp_pb_put_u64(p, TP_PF_ARG_BOOL, w[1] != 0);
    case TP_FIELD_DOUBLE:
        memcpy(&d, w + 1, sizeof(d));
        return put_double(p, d);
    case TP_FIELD_TEXT:
    case TP_FIELD_COPY:
        text = tp_fields_text(w, TP_BATCH_TEXT_MAX);
        return tp_pb_put_bytes(p, TP_PF_ARG_STRING, text.ptr, text.len);
    default: /* a kind that there is not: the field has no value */
        return p;
    }
}

static char *put_fields(const struct tp_batch_writer *b, char *p, const uint64_t *w,
                        unsigned n)
{
    for (unsigned i = 0; i < n; i++, w = tp_fields_next(w)) {
        unsigned width = tp_fields_is_text(w) &&
                                 tp_fields_text(w, TP_BATCH_TEXT_MAX).len >
                                     TP_BATCH_SHORT_TEXT_MAX
                             ? 2
                             : 1;
        char *at;

        *p++ = (char)TP_PB_TAG(TP_PF_EVENT_ARGS, TP_PB_BYTES);
        at = p;
        p = tp_pb_put_u64(p + width, TP_PF_ARG_NAME_IID,
                          b->said[tp_batch_known(b, TP_RECORD_FIELD_KEY(*w))].key_iid);
        p = tp_batch_put_value(p, w);
        tp_pb_put_length(at, width, (size_t)(p - at) - width);
    }
    return p;
}

/* With its form known where it is called from, a shape lives in registers: a slice is a
 * fifth cheaper. */

/* What is written of a slice or an instant. */
struct shape {
    enum { SHAPE_SLICE, SHAPE_OPEN, SHAPE_INSTANT } form;
    uint64_t ts_ns, dur_ns;
    struct tp_batch_snippet track;
    uint32_t name_iid, type_iid;
    const uint64_t *fields;
    unsigned n_fields;
    unsigned width; /* of the lengths, in bytes */
};

static TP_ALWAYS char *put_shape(const struct tp_batch_writer *b, char *p,
                                 const struct shape *s)
{
    char *packet;
    char *body;

    *p++ = (char)TP_PB_TAG(TP_PF_TRACE_PACKET, TP_PB_BYTES);
    packet = p;
    p += s->width;
    *p++ = (char)TP_PB_TAG(TP_PF_PACKET_TIMESTAMP, TP_PB_VARINT);
    p = put_time(p, s->ts_ns);
    p = tp_batch_put_snippet(p, &b->lead);
    body = p;
    p += s->width;
    if (s->form == SHAPE_SLICE) {
        PUT_BYTES(p, "\x48\x01\xe0\xea\x04");
        p = tp_pb_put_varint(p, s->dur_ns);
    } else if (s->form == SHAPE_OPEN) {
        PUT_BYTES(p, "\x48\x01");
    } else {
        PUT_BYTES(p, "\x48\x03");
    }
    p = tp_batch_put_snippet(p, &s->track);
    p = tp_pb_put_u64(p, TP_PF_EVENT_CATEGORY_IIDS, s->type_iid);
    p = tp_pb_put_u64(p, TP_PF_EVENT_NAME_IID, s->name_iid);
    if (s->n_fields != 0)
        p = put_fields(b, p, s->fields, s->n_fields);
    if (s->form == SHAPE_OPEN)
        p = tp_pb_put_u64(p, TP_PF_X_EVENT_UNFINISHED, 1);
    tp_pb_put_length(body, s->width, (size_t)(p - body) - s->width);
    tp_pb_put_length(packet, s->width, (size_t)(p - packet) - s->width);
    return p;
}

/* Say what a slice or an instant needs and write it. */
static TP_ALWAYS char *put_event(struct tp_batch_writer *b, char *p,
                                 const uint64_t *record, struct shape *s)
{
    uint64_t header = record[0];
    size_t room = 0;

    s->fields = record + tp_fields_at(TP_RECORD_KIND(header));
    s->n_fields = TP_RECORD_FIELDS(header);
    s->width = 2;
    if (__builtin_expect(s->n_fields != 0, 0)) {
        const uint64_t *w = s->fields;

        for (unsigned i = 0; i < s->n_fields; i++, w = tp_fields_next(w)) {
            tp_batch_say_key(b, &p, TP_RECORD_FIELD_KEY(*w));
            room += 64;
            if (tp_fields_is_text(w))
                room += tp_fields_text(w, TP_BATCH_TEXT_MAX).len;
        }
        s->width = room > SHORT_PACKET - 256 ? 4 : 2;
    }
    s->type_iid = tp_batch_say_type(b, &p, TP_RECORD_TYPE(header));
    s->name_iid = tp_batch_say_name(b, &p, TP_RECORD_NAME(header));
    return put_shape(b, p, s);
}

/* Counters, flows and asynchronous events, which are few: by way of the encoder that
 * the service uses. */
static char *put_other(struct tp_batch_writer *b, char *p, const uint64_t *record,
                       struct tp_event *ev, struct tp_pf_plan *plan)
{
    static const struct tp_track track;

    plan->form = TP_PF_FORM_PUBLIC;
    plan->sequence_id = b->stream_no;
    plan->stream_no = b->stream_no;
    plan->cat_iid = tp_batch_say_type(b, &p, TP_RECORD_TYPE(record[0]));
    plan->name_iid = tp_batch_say_name(b, &p, TP_RECORD_NAME(record[0]));
    ev->phase = tp_pf_usual_phase[ev->kind];
    ev->track = &track;
    return tp_pf_put_event(p, tp_pf_event_room(ev), ev, plan, NULL);
}

/* A counter that is no finite number: viewers draw none, or a line through 0. So it is
 * an instant that says what it was, and the line goes on with the next number. */
static char *put_odd_counter(struct tp_batch_writer *b, char *p, const uint64_t *record,
                             double v)
{
    struct tp_arg value = {.key = {"value", 5, 0},
                           .kind = TP_ARG_STRING,
                           .s = tp_str_of(text_of(v))};
    struct tp_event ev = {.kind = TP_EVENT_INSTANT, .args = &value, .n_args = 1};
    uint32_t key = tp_batch_say_key(b, &p, b->value);
    struct tp_pf_plan plan = {.has_args = true, .key_iids = &key};

    ev.ts_ns = (int64_t)tp_ticks_ns(&b->line, record[1]);
    p = tp_batch_say_track(b, p, 0, &plan.track_uuid);
    return put_other(b, p, record, &ev, &plan);
}

static char *put_counter(struct tp_batch_writer *b, char *p, const uint64_t *record)
{
    struct tp_arg value = {.key = {"value", 5, 0}, .kind = TP_ARG_INT};
    struct tp_event ev = {.kind = TP_EVENT_COUNTER, .args = &value, .n_args = 1};
    struct tp_pf_plan plan = {.n_series = 1, .value = &value};

    value.i = (int64_t)record[2];
    if (TP_RECORD_KIND(record[0]) == TP_RECORD_COUNTER) {
        value.kind = TP_ARG_DOUBLE;
        memcpy(&value.d, record + 2, sizeof(value.d));
        if (!isfinite(value.d))
            return put_odd_counter(b, p, record, value.d);
    }
    ev.ts_ns = (int64_t)tp_ticks_ns(&b->line, record[1]);
    p = tp_batch_say_track(b, p, 0, &plan.own_track);
    p = tp_batch_say_series(b, p, TP_RECORD_NAME(record[0]), &plan.track_uuid);
    return put_other(b, p, record, &ev, &plan);
}

static char *put_joined(struct tp_batch_writer *b, char *p, const uint64_t *record)
{
    static const enum tp_event_kind flows[4] = {TP_EVENT_FLOW_START, TP_EVENT_FLOW_STEP,
                                                TP_EVENT_FLOW_END, TP_EVENT_FLOW_END};
    static const enum tp_event_kind asyncs[4] = {TP_EVENT_ASYNC_BEGIN,
                                                 TP_EVENT_ASYNC_INSTANT,
                                                 TP_EVENT_ASYNC_END,
                                                 TP_EVENT_ASYNC_END};
    bool is_flow = TP_RECORD_KIND(record[0]) == TP_RECORD_FLOW;
    unsigned phase = TP_RECORD_FIELDS(record[0]) & 3;
    bool is_ns = is_flow && record[3] >> 63 != 0;
    struct tp_pf_plan plan = {0};
    struct tp_event ev = {.kind = is_flow ? flows[phase] : asyncs[phase],
                          .id = {.kind = TP_ID_NUMBER,
                                 .number = (int64_t)(record[2] & INT64_MAX)}};

    ev.ts_ns = (int64_t)(is_ns ? record[1] : tp_ticks_ns(&b->line, record[1]));
    ev.binds_enclosing = ev.kind == TP_EVENT_FLOW_END;
    p = tp_batch_say_track(b, p, is_flow ? record[3] & INT64_MAX : 0, &plan.track_uuid);
    return put_other(b, p, record, &ev, &plan);
}

static char *put_complete(struct tp_batch_writer *b, char *p, const uint64_t *record)
{
    struct shape s = {.form = SHAPE_SLICE, .ts_ns = record[1], .dur_ns = record[2]};
    uint64_t uuid;

    p = tp_batch_say_track(b, p, record[3], &uuid);
    s.track = tp_batch_track(uuid);
    return put_event(b, p, record, &s);
}

/* What happened on its thread: slices, done and undone, and instants. */
static TP_ALWAYS char *put_on_thread(struct tp_batch_writer *b, char *p,
                                     const uint64_t *record, int form)
{
    struct shape s;

    if (__builtin_expect(!b->is_thread_said, 0))
        p = tp_batch_say_thread(b, p);
    s.form = form;
    s.ts_ns = tp_ticks_ns(&b->line, record[1]);
    /* From two rounded times: so a slice that ends with its parent does so here too. */
    s.dur_ns = form == SHAPE_SLICE
                   ? tp_ticks_ns(&b->line, record[1] + record[2]) - s.ts_ns
                   : 0;
    s.track = b->thread_track;
    return put_event(b, p, record, &s);
}

char *tp_batch_put(struct tp_batch_writer *b, char *p, const uint64_t *record)
{
    switch (TP_RECORD_KIND(record[0])) {
    case TP_RECORD_SLICE:
        return put_on_thread(b, p, record, SHAPE_SLICE);
    case TP_RECORD_OPEN:
        return put_on_thread(b, p, record, SHAPE_OPEN);
    case TP_RECORD_INSTANT:
        return put_on_thread(b, p, record, SHAPE_INSTANT);
    case TP_RECORD_COUNTER:
    case TP_RECORD_COUNTER_INT:
        return put_counter(b, p, record);
    case TP_RECORD_COMPLETE:
        return put_complete(b, p, record);
    default:
        return put_joined(b, p, record);
    }
}
