/*
 * native_ends.c - one pass over a batch, in its own memory.
 *
 *     [ packets .............. ]
 *     [ gap for all ends ][ packets .............. ]     moved to the back
 *     [ packet, end, packet, end . ][ .. packets . ]     written from the front
 *
 * The gap is as large as all ends could be and SLACK more, so what is written stays at
 * least SLACK bytes before what is still to be read, and may be written in whole words.
 * A slice in the fast form of docs/stream-format.md is known by the bytes that it
 * begins with, and by names and arguments alone behind them; any other packet is read
 * field by field. Both find the slices that tp_pf_reader finds, for its events are
 * what was counted.
 */
#include "trace/native_ends.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/pb_read.h"
#include "trace/pf_encode.h"
#include "trace/pf_fields.h"

#define END_BYTES 40   /* the most that an end takes */
#define SLACK 64       /* more than what is written behind an end or a piece */
#define WORD 16        /* bytes that are copied at once */
#define QUICK_BYTES 96 /* more than the fast form has up to its track */

/* What an end needs to know of its slice. */
struct slice {
    uint64_t track_uuid;
    uint64_t ts_ns, dur_ns;
    bool has_ts, has_dur, is_begin;
    bool is_synthetic; /* it was added for other readers: none of the events */
    bool has_value; /* of a counter: it may be one of a series, which stay together */
    bool has_clock; /* its time is of a clock of its own */
};

/* A batch on its way. */
struct walk {
    const char *p; /* the next packet */
    const char *stop;
    uint32_t stream_no;
    char lead[TP_PB_TAG_MAX + TP_PB_SLACK]; /* in a slice between time and event */
    size_t lead_bytes;
};

static void begin_walk(struct walk *w, const char *p, size_t n, uint32_t stream_no)
{
    char *lead = tp_pb_put_u64(w->lead, TP_PF_PACKET_SEQUENCE_ID, stream_no);

    w->p = p;
    w->stop = p + n;
    w->stream_no = stream_no;
    *lead++ = (char)TP_PB_TAG(TP_PF_PACKET_SEQUENCE_FLAGS, TP_PB_VARINT);
    *lead++ = TP_PF_SEQUENCE_NEEDS;
    *lead++ = (char)TP_PB_TAG(TP_PF_PACKET_TRACK_EVENT, TP_PB_BYTES);
    w->lead_bytes = (size_t)(lead - w->lead);
}

/* Whether all from p on are names and short arguments: nothing that an end needs to
 * know, of which the last one would count. */
static inline bool is_rest(const char *p, const char *end)
{
    while (p < end) {
        if (*p == (char)TP_PB_TAG(TP_PF_EVENT_ARGS, TP_PB_BYTES)) {
            if (end - p < 2 || (p[1] & 0x80) != 0)
                return false;
            p += 2 + p[1];
        } else if (*p == (char)TP_PB_TAG(TP_PF_EVENT_CATEGORY_IIDS, TP_PB_VARINT) ||
                   *p == (char)TP_PB_TAG(TP_PF_EVENT_NAME_IID, TP_PB_VARINT)) {
            do
                p++;
            while (p < end && (*p & 0x80) != 0);
            p++;
        } else {
            return false;
        }
    }
    return p == end;
}

/*
 * Read a slice in the fast form: 0a LEN 40 ts, the lead, LEN, 48 01 e0 ea 04 dur
 * 58 uuid, and names and arguments. Returns its end; NULL: it is none.
 */
static inline const char *quick_slice(const struct walk *w, struct slice *s)
{
    static const char kind[] = {0x48, 0x01, (char)0xe0, (char)0xea, 0x04};
    const char *p = w->p;
    const char *stop = w->stop;
    const char *end;
    uint64_t n;

    if (stop - p < QUICK_BYTES ||
        *p != (char)TP_PB_TAG(TP_PF_TRACE_PACKET, TP_PB_BYTES) ||
        (p = tp_pb_varint(p + 1, stop, &n)) == NULL || n > (size_t)(stop - p))
        return NULL;
    end = p + n;
    if (*p != (char)TP_PB_TAG(TP_PF_PACKET_TIMESTAMP, TP_PB_VARINT) ||
        (p = tp_pb_varint(p + 1, stop, &s->ts_ns)) == NULL ||
        memcmp(p, w->lead, w->lead_bytes) != 0 ||
        (p = tp_pb_varint(p + w->lead_bytes, stop, &n)) == NULL ||
        n != (size_t)(end - p) || memcmp(p, kind, sizeof(kind)) != 0 ||
        (p = tp_pb_varint(p + sizeof(kind), stop, &s->dur_ns)) == NULL ||
        *p != (char)TP_PB_TAG(TP_PF_EVENT_TRACK_UUID, TP_PB_VARINT) ||
        (p = tp_pb_varint(p + 1, stop, &s->track_uuid)) == NULL || s->track_uuid == 0 ||
        !is_rest(p, end))
        return NULL;
    return end;
}

static void look_at_event(const char *p, const char *stop, struct slice *s)
{
    struct tp_pb_field f;

    s->track_uuid = 0;
    s->has_dur = s->is_begin = s->is_synthetic = s->has_value = false;
    while (p < stop && (p = tp_pb_next_field(p, stop, &f)) != NULL) {
        if (f.tag == TP_PB_TAG(TP_PF_EVENT_TYPE, TP_PB_VARINT)) {
            s->is_begin = f.value == TP_PF_TYPE_BEGIN;
        } else if (f.tag == TP_PB_TAG(TP_PF_X_EVENT_DUR_NS, TP_PB_VARINT)) {
            s->has_dur = true;
            s->dur_ns = f.value;
        } else if (f.tag == TP_PB_TAG(TP_PF_EVENT_TRACK_UUID, TP_PB_VARINT)) {
            s->track_uuid = f.value;
        } else if (f.number == TP_PF_X_EVENT_SYNTHETIC) {
            s->is_synthetic = f.value != 0;
        } else if (f.number == TP_PF_EVENT_COUNTER ||
                   f.number == TP_PF_EVENT_COUNTER_DOUBLE) {
            s->has_value = true;
        }
    }
}

/* Whether the content of a packet is a complete slice. Of a field that is there more
 * than once the last one counts, and a private event counts before a public one. */
static bool read_slice(const char *p, const char *stop, struct slice *s)
{
    struct tp_pb_field f;

    *s = (struct slice){0};
    while (p < stop && (p = tp_pb_next_field(p, stop, &f)) != NULL) {
        if (f.tag == TP_PB_TAG(TP_PF_PACKET_TIMESTAMP, TP_PB_VARINT)) {
            s->has_ts = true;
            s->ts_ns = f.value;
        } else if (f.tag == TP_PB_TAG(TP_PF_PACKET_TRACK_EVENT, TP_PB_BYTES)) {
            look_at_event(f.bytes, f.bytes + f.value, s);
        } else if (f.number == TP_PF_PACKET_TIMESTAMP_CLOCK_ID) {
            s->has_clock = f.value != 0;
        } else if (f.tag == TP_PB_TAG(TP_PF_X_PACKET_PRIVATE, TP_PB_BYTES)) {
            return false;
        }
    }
    return p != NULL && s->has_ts && s->is_begin && s->has_dur && s->track_uuid != 0 &&
           !s->is_synthetic && !s->has_value && !s->has_clock;
}

/* Whether a marked end begins here: 0a LEN 5a LL e8 ea 04 01. */
static inline bool is_end(const char *p, const char *stop)
{
    static const char mark[] = {(char)0xe8, (char)0xea, 0x04, 0x01};
    uint64_t n;

    if (p >= stop || *p != (char)TP_PB_TAG(TP_PF_TRACE_PACKET, TP_PB_BYTES))
        return false;
    p = tp_pb_varint(p + 1, stop, &n);
    return p != NULL && n > 2 + sizeof(mark) && n <= (size_t)(stop - p) &&
           *p == (char)TP_PB_TAG(TP_PF_PACKET_TRACK_EVENT, TP_PB_BYTES) &&
           memcmp(p + 2, mark, sizeof(mark)) == 0;
}

/* Move to the next slice, which is *s and ends at w->p then. False: there is none. */
static inline bool next_slice(struct walk *w, struct slice *s)
{
    while (w->p < w->stop) {
        const char *end = quick_slice(w, s);
        bool is_slice = end != NULL;
        struct tp_pb_field f;

        if (!is_slice) {
            end = tp_pb_next_field(w->p, w->stop, &f);
            if (end == NULL)
                return false;
            is_slice = f.tag == TP_PB_TAG(TP_PF_TRACE_PACKET, TP_PB_BYTES) &&
                       read_slice(f.bytes, end, s);
        }
        w->p = end;
        if (is_slice)
            return true;
    }
    return false;
}

/* Copy from the back to the front. Up to WORD bytes more are written; see above. */
static inline char *copy_ahead(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i += WORD)
        memcpy(to + i, from + i, WORD);
    return to + n;
}

/* Write at `to` what is left of the walk, and the ends. Returns where that ends. */
static char *write_all(struct walk *w, char *to, uint64_t n_events)
{
    const char *from = w->p;
    struct slice s;

    for (; n_events > 0 && next_slice(w, &s); n_events--) {
        if (is_end(w->p, w->stop))
            continue;
        to = copy_ahead(to, from, (size_t)(w->p - from));
        to = tp_pf_put_slice_end(to, w->stream_no, s.track_uuid, s.ts_ns + s.dur_ns);
        from = w->p;
    }
    memmove(to, from, (size_t)(w->stop - from));
    return to + (w->stop - from);
}

/* Whether the first slice has no end. */
static bool lacks_ends(const struct tp_buf *batch, uint32_t stream_no)
{
    struct slice s;
    struct walk w;

    begin_walk(&w, batch->data, batch->len, stream_no);
    return next_slice(&w, &s) && !is_end(w.p, w.stop);
}

int tp_native_ends_add(struct tp_buf *batch, uint64_t n_events, uint32_t stream_no,
                       struct tp_err *err)
{
    const size_t n = batch->len;
    const size_t gap = (size_t)n_events * END_BYTES + SLACK;
    struct walk w;
    int rc;

    if (n == 0 || !lacks_ends(batch, stream_no))
        return TP_OK;
    rc = tp_buf_reserve(batch, gap + WORD, err);
    if (rc != TP_OK)
        return rc;
    memmove(batch->data + gap, batch->data, n);
    begin_walk(&w, batch->data + gap, n, stream_no);
    batch->len = (size_t)(write_all(&w, batch->data, n_events) - batch->data);
    return TP_OK;
}
