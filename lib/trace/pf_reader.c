/*
 * pf_reader.c - from packet to packet.
 *
 * Packets are read in two steps: first all fields of the packet, because their order is
 * free, then what they say, in the order that it must be taken in: state cleared,
 * defaults, interned strings, clocks, descriptor, event. Whatever fails leaves the
 * cursor before the packet; taking the same packet in again does no harm.
 *
 * The end that our writer adds to a slice is known by its first bytes and passed
 * over without reading it: it is every second packet of a stream.
 */
#include "trace/pf_reader.h"

#include <stdlib.h>
#include <string.h>

#include "trace/pf_fields.h"
#include "trace/pf_reader_state.h"

#define PACKET_BYTES_DEFAULT ((size_t)16 << 20)
#define INTERN_BYTES_DEFAULT ((size_t)16 << 20)
#define TRACKS_MAX_DEFAULT 1048576
#define SEQUENCES_MAX_DEFAULT 65536
#define KEEP_BYTES ((size_t)64 << 10)

#define PACKET_TAG ((char)TP_PB_TAG(TP_PF_TRACE_PACKET, TP_PB_BYTES))

int tp_pf_reader_new(const struct tp_pf_reader_opts *opts, struct tp_pf_reader **out,
                     struct tp_err *err)
{
    struct tp_pf_reader *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a stream reader");
    r->packet_bytes = opts->packet_bytes != 0 ? opts->packet_bytes
                                              : PACKET_BYTES_DEFAULT;
    r->is_trusted = opts->is_trusted;
    r->sequences.bytes_max = opts->intern_bytes != 0 ? opts->intern_bytes
                                                     : INTERN_BYTES_DEFAULT;
    r->sequences.sequences_max = opts->sequences_max != 0 ? opts->sequences_max
                                                          : SEQUENCES_MAX_DEFAULT;
    r->places.tracks_max = opts->tracks_max != 0 ? opts->tracks_max
                                                 : TRACKS_MAX_DEFAULT;
    r->places.text_bytes_max = r->sequences.bytes_max;
    r->primary_clock = TP_PF_CLOCK_BOOTTIME;
    *out = r;
    return TP_OK;
}

void tp_pf_reader_free(struct tp_pf_reader *r)
{
    if (r == NULL)
        return;
    tp_pf_sequences_fini(&r->sequences);
    tp_pf_places_fini(&r->places);
    tp_buf_fini(&r->text);
    tp_arena_fini(&r->fixed);
    free(r->args);
    free(r->flows);
    free(r->begun);
    free(r);
}

struct tp_str tp_pf_reader_frame(const struct tp_pf_reader *r)
{
    return r->frame;
}

bool tp_pf_reader_is_skipping(const struct tp_pf_reader *r)
{
    return r->skip_bytes > 0;
}

bool tp_pf_reader_is_of(const struct tp_pf_reader *r, uint32_t sequence_id)
{
    const struct tp_pf_sequences *s = &r->sequences;

    return s->n_items == 0 || (s->n_items == 1 && s->items[0]->id == sequence_id);
}

struct tp_pf_skipped tp_pf_reader_skipped(const struct tp_pf_reader *r)
{
    return r->skipped;
}

static void take_bytes(const struct tp_pb_field *f, struct tp_str *out)
{
    if (f->wire == TP_PB_BYTES)
        *out = (struct tp_str){f->bytes, f->value};
}

/* The fields that few packets have. */
static void take_rare(const struct tp_pb_field *f, struct tp_pf_packet *packet)
{
    switch (f->number) {
    case TP_PF_PACKET_CLOCK_SNAPSHOT:
        take_bytes(f, &packet->snapshot);
        break;
    case TP_PF_PACKET_INTERNED_DATA:
        take_bytes(f, &packet->interned);
        break;
    case TP_PF_PACKET_INCREMENTAL_STATE_CLEARED:
        packet->flags |= f->value != 0 ? TP_PF_SEQUENCE_CLEARED : 0;
        break;
    case TP_PF_PACKET_TIMESTAMP_CLOCK_ID:
        packet->clock_id = (uint32_t)f->value;
        break;
    case TP_PF_PACKET_DEFAULTS:
        take_bytes(f, &packet->defaults);
        break;
    case TP_PF_PACKET_TRACK_DESCRIPTOR:
        take_bytes(f, &packet->descriptor);
        break;
    case TP_PF_X_PACKET_PRIVATE:
        take_bytes(f, &packet->private_event);
        break;
    case TP_PF_X_PACKET_FRAME:
        take_bytes(f, &packet->frame);
        break;
    case TP_PF_X_PACKET_VERSION:
        packet->has_version = true;
        break;
    case TP_PF_X_PACKET_MERGED:
        packet->is_merged = f->value != 0;
        break;
    default:
        break;
    }
}

static inline bool read_packet(struct tp_str bytes, struct tp_pf_packet *packet)
{
    const char *p = bytes.ptr;
    const char *end = bytes.ptr + bytes.len;
    struct tp_pb_field f;

    memset(packet, 0, sizeof(*packet));
    while (p < end) {
        p = tp_pb_next_field(p, end, &f);
        if (p == NULL)
            return false;
        switch (f.tag) {
        case TP_PB_TAG(TP_PF_PACKET_TIMESTAMP, TP_PB_VARINT):
            packet->ts = f.value;
            packet->has_ts = true;
            break;
        case TP_PB_TAG(TP_PF_PACKET_SEQUENCE_ID, TP_PB_VARINT):
            packet->sequence_id = (uint32_t)f.value;
            break;
        case TP_PB_TAG(TP_PF_PACKET_SEQUENCE_FLAGS, TP_PB_VARINT):
            packet->flags |= (uint32_t)f.value;
            break;
        case TP_PB_TAG(TP_PF_PACKET_TRACK_EVENT, TP_PB_BYTES):
            packet->event.ptr = f.bytes;
            packet->event.len = f.value;
            break;
        default:
            take_rare(&f, packet);
            break;
        }
    }
    return true;
}

static int index_of(uint32_t field)
{
    switch (field) {
    case TP_PF_INTERNED_CATEGORIES:
        return TP_PF_INDEX_CATEGORY;
    case TP_PF_INTERNED_NAMES:
        return TP_PF_INDEX_NAME;
    case TP_PF_INTERNED_ARG_NAMES:
        return TP_PF_INDEX_ARG_NAME;
    case TP_PF_INTERNED_ARG_STRINGS:
        return TP_PF_INDEX_ARG_STRING;
    default:
        return -1;
    }
}

/* One entry of interned data. */
static int take_interned(struct tp_pf_reader *r, struct tp_pf_sequence *q, int index,
                         struct tp_str bytes, struct tp_err *err)
{
    struct tp_pb c = {bytes.ptr, bytes.ptr + bytes.len};
    struct tp_pb_field f;
    uint64_t iid = 0;
    struct tp_str text = {"", 0};
    int rc;

    while (c.p < c.end) {
        if (!tp_pb_get_field(&c, &f))
            return tp_fail(err, TP_EINVAL, "an interned string is damaged");
        if (f.number == TP_PF_INTERNED_IID)
            iid = f.value;
        if (f.number == TP_PF_INTERNED_TEXT)
            take_bytes(&f, &text);
    }
    rc = tp_pf_reader_fix(r, text, &text, err);
    return rc == TP_OK ? tp_pf_sequence_intern(&r->sequences, q,
                                               (enum tp_pf_index)index, iid, text, err)
                       : rc;
}

static int take_interned_data(struct tp_pf_reader *r, struct tp_pf_sequence *q,
                              struct tp_str bytes, struct tp_err *err)
{
    struct tp_pb c = {bytes.ptr, bytes.ptr + bytes.len};
    struct tp_pb_field f;
    int rc = TP_OK;

    while (rc == TP_OK && c.p < c.end) {
        if (!tp_pb_get_field(&c, &f))
            return tp_fail(err, TP_EINVAL, "interned data is damaged");
        if (f.wire == TP_PB_BYTES && index_of(f.number) >= 0)
            rc = take_interned(r, q, index_of(f.number),
                               (struct tp_str){f.bytes, f.value}, err);
    }
    return rc;
}

static int take_defaults(struct tp_pf_sequence *q, struct tp_str bytes,
                         struct tp_err *err)
{
    struct tp_pb c = {bytes.ptr, bytes.ptr + bytes.len};
    struct tp_pb_field f;

    while (c.p < c.end) {
        struct tp_pb inner;
        struct tp_pb_field g;

        if (!tp_pb_get_field(&c, &f))
            return tp_fail(err, TP_EINVAL, "the defaults of a sequence are damaged");
        if (f.number == TP_PF_DEFAULTS_CLOCK_ID)
            q->default_clock = (uint32_t)f.value;
        if (f.number != TP_PF_DEFAULTS_TRACK_EVENT || f.wire != TP_PB_BYTES)
            continue;
        inner = (struct tp_pb){f.bytes, f.bytes + f.value};
        while (inner.p < inner.end && tp_pb_get_field(&inner, &g)) {
            if (g.number == TP_PF_EVENT_TRACK_UUID) {
                q->default_track = g.value;
                q->has_default_track = true;
            }
        }
    }
    return TP_OK;
}

/* Take in what a packet says of its sequence. */
static int take_state(struct tp_pf_reader *r, struct tp_pf_sequence *q,
                      const struct tp_pf_packet *packet, struct tp_err *err)
{
    int rc = TP_OK;

    if ((packet->flags & TP_PF_SEQUENCE_CLEARED) != 0)
        tp_pf_sequence_clear(&r->sequences, q);
    if (packet->has_version)
        q->is_ours = true;
    if (packet->is_merged)
        q->is_merged = true;
    if (packet->defaults.ptr != NULL)
        rc = take_defaults(q, packet->defaults, err);
    if (rc == TP_OK && packet->interned.ptr != NULL)
        rc = take_interned_data(r, q, packet->interned, err);
    if (rc == TP_OK && packet->snapshot.ptr != NULL)
        rc = tp_pf_reader_snapshot(r, q, packet->snapshot, err);
    return rc;
}

/* Say where the input is damaged, unless a better message is there. */
static int damaged(const struct tp_pf_reader *r, struct tp_err *err)
{
    return tp_fail(err, TP_EINVAL, "the packet at byte %llu is damaged",
                   (unsigned long long)r->offset);
}

/* Say that a varint at p did not end: more may come, or it never ends. */
static int unended(const struct tp_pf_reader *r, const char *p, const char *end,
                   struct tp_err *err)
{
    return end - p < TP_PB_VARINT_MAX ? TP_EAGAIN : damaged(r, err);
}

/* Move *p over a field of the trace that is no packet. */
static int skip_field(struct tp_pf_reader *r, const char **p, const char *end,
                      struct tp_err *err)
{
    struct tp_pb at = {*p, end};
    struct tp_pb_field f;
    uint64_t tag;
    uint64_t len;

    if (tp_pb_get_field(&at, &f)) {
        *p = at.p;
        return TP_OK;
    }
    if (!tp_pb_get_varint(&at, &tag))
        return unended(r, at.p, end, err);
    switch (tag > UINT32_MAX || tag < 8 ? 7 : tag & 7) {
    case TP_PB_VARINT:
        return unended(r, at.p, end, err);
    case TP_PB_FIXED64:
    case TP_PB_FIXED32:
        return TP_EAGAIN;
    case TP_PB_BYTES:
        if (!tp_pb_get_varint(&at, &len))
            return unended(r, at.p, end, err);
        return len <= r->packet_bytes ? TP_EAGAIN : damaged(r, err);
    default:
        return damaged(r, err);
    }
}

/*
 * Find the packet at the cursor. TP_OK: *packet is its content, *next behind it.
 * TP_EAGAIN: not all of it is there. TP_EINVAL: no packet. TP_EQUOTA: over the limit;
 * its tag and length are used up. A field of the trace that is no packet is given as an
 * empty packet.
 */
static inline int frame_packet(struct tp_pf_reader *r, struct tp_pf_cursor *cursor,
                               struct tp_str *packet, const char **next,
                               struct tp_err *err)
{
    const char *p = cursor->ptr;
    const char *end = cursor->end;
    uint64_t len = 0;

    if (p == end)
        return TP_EAGAIN;
    if (*p != PACKET_TAG) {
        int rc = skip_field(r, &p, end, err);

        if (rc != TP_OK)
            return rc;
    } else {
        p = tp_pb_varint(p + 1, end, &len);
        if (p == NULL)
            return unended(r, cursor->ptr + 1, end, err);
    }
    if (len > r->packet_bytes) {
        r->skip_bytes = len;
        r->offset += (uint64_t)(p - cursor->ptr);
        cursor->ptr = p;
        return tp_fail(err, TP_EQUOTA,
                       "a packet of %llu bytes is over the limit of %zu",
                       (unsigned long long)len, r->packet_bytes);
    }
    if (len > (size_t)(end - p))
        return TP_EAGAIN;
    *packet = (struct tp_str){p, len};
    *next = p + len;
    return TP_OK;
}

/* Whether the packet is a synthetic end: a track event that begins with its mark. */
static inline bool is_marked_end(struct tp_str packet)
{
    static const char mark[] = {(char)0xe8, (char)0xea, 0x04, 0x01};

    return packet.len > 6 &&
           packet.ptr[0] == (char)TP_PB_TAG(TP_PF_PACKET_TRACK_EVENT, TP_PB_BYTES) &&
           memcmp(packet.ptr + 2, mark, sizeof(mark)) == 0;
}

/* What came of a packet. */
struct result {
    bool is_item;
    enum tp_pf_item item;
    uint32_t n_series; /* more than 1: packets of a counter event follow, ... */
    bool keeps_args;   /* ... which have nothing to add to its arguments */
};

/* Collect the other series of a counter event of ours into its arguments. */
static int take_series(struct tp_pf_reader *r, struct tp_pf_cursor *cursor,
                       const char **next, const struct result *first,
                       struct tp_event *ev, struct tp_err *err)
{
    struct tp_pf_cursor at = {*next, cursor->end};
    uint64_t skip_bytes = r->skip_bytes;
    uint64_t offset = r->offset;
    int rc = tp_pf_reader_reserve_args(r, first->n_series, err);

    for (uint32_t i = 1; rc == TP_OK && i < first->n_series; i++) {
        struct tp_str packet;
        struct tp_arg arg;

        rc = frame_packet(r, &at, &packet, &at.ptr, err);
        if (rc != TP_OK) {
            r->skip_bytes = skip_bytes;
            r->offset = offset;
            return rc == TP_EQUOTA ? damaged(r, err) : rc;
        }
        if (!tp_pf_reader_series(r, packet, &arg))
            break; /* not one of ours after all: leave it to the next call */
        *next = at.ptr;
        if (!first->keeps_args)
            r->args[ev->n_args++] = arg;
    }
    ev->args = r->args;
    return rc;
}

static void queue_flows(struct tp_pf_reader *r, const struct tp_pf_raw *raw,
                        const struct tp_event *ev)
{
    r->n_flows = raw->n_flows;
    r->next_flow = 0;
    r->flow_ts_ns = ev->ts_ns;
    r->flow_track = ev->track;
}

/* Whether a flow with this id has begun before; from now on it has. When the set is
 * full, flows are taken for new ones. */
static bool has_begun(struct tp_pf_reader *r, uint64_t id)
{
    const uint32_t mask = 2 * TP_PF_FLOW_SET - 1;
    uint32_t i = (uint32_t)((id * 0x9e3779b97f4a7c15ULL) >> 32) & mask;

    if (r->begun == NULL)
        r->begun = calloc((size_t)mask + 1, sizeof(*r->begun));
    if (r->begun == NULL || id == 0)
        return false;
    for (; r->begun[i] != 0; i = (i + 1) & mask) {
        if (r->begun[i] == id)
            return true;
    }
    if (r->n_begun < TP_PF_FLOW_SET) {
        r->begun[i] = id;
        r->n_begun++;
    }
    return false;
}

/* Hand over the next flow of the event before. */
static void next_flow(struct tp_pf_reader *r, struct tp_event *ev)
{
    const struct tp_pf_flow *flow = &r->flows[r->next_flow++];
    bool is_known = has_begun(r, flow->id);

    memset(ev, 0, sizeof(*ev));
    ev->kind = flow->is_terminating ? TP_EVENT_FLOW_END
               : is_known           ? TP_EVENT_FLOW_STEP
                                    : TP_EVENT_FLOW_START;
    ev->phase = flow->is_terminating ? 'f' : is_known ? 't' : 's';
    ev->binds_enclosing = flow->is_terminating;
    ev->ts_ns = r->flow_ts_ns;
    ev->track = r->flow_track;
    ev->name = (struct tp_name){"flow", 4, 0};
    ev->cat = (struct tp_name){"flow", 4, 0};
    ev->id = (struct tp_id){.kind = TP_ID_NUMBER, .number = (int64_t)flow->id};
}

static int read_event(struct tp_pf_reader *r, struct tp_pf_sequence *q,
                      const struct tp_pf_packet *packet, struct tp_event *ev,
                      struct result *result, struct tp_err *err)
{
    bool is_private = packet->private_event.ptr != NULL;
    struct tp_pf_raw raw;
    int rc;

    memset(&raw, 0, sizeof(raw));
    rc = tp_pf_reader_decode(r, q, is_private ? packet->private_event : packet->event,
                             &raw, ev, err);
    if (rc == TP_EINVAL)
        return damaged(r, err);
    if (rc == TP_OK)
        rc = tp_pf_reader_interpret(r, q, packet, is_private, &raw, ev,
                                    &result->is_item, err);
    if (rc != TP_OK)
        return rc;
    result->item = raw.is_ghost ? TP_PF_GHOST : TP_PF_EVENT;
    if (result->is_item && ev->kind == TP_EVENT_COUNTER && !is_private) {
        result->n_series = raw.n_series;
        result->keeps_args = raw.keeps_args;
    }
    if (result->is_item && raw.n_flows > 0)
        queue_flows(r, &raw, ev);
    return TP_OK;
}

/* Take in one packet. */
static int take_packet(struct tp_pf_reader *r, struct tp_str bytes, struct tp_event *ev,
                       struct result *result, struct tp_err *err)
{
    struct tp_pf_packet packet;
    struct tp_pf_sequence *q = NULL;
    int rc;

    if (!read_packet(bytes, &packet))
        return damaged(r, err);
    rc = tp_pf_sequences_get(&r->sequences, packet.sequence_id, &q, err);
    if (rc == TP_OK)
        rc = take_state(r, q, &packet, err);
    if (rc != TP_OK)
        return rc;
    if (packet.event.ptr != NULL || packet.private_event.ptr != NULL) {
        memset(ev, 0, sizeof(*ev));
        return read_event(r, q, &packet, ev, result, err);
    }
    if (packet.descriptor.ptr != NULL) {
        struct tp_event meta = {0};

        rc = tp_pf_reader_describe(r, q, packet.descriptor, &meta, &result->is_item,
                                   err);
        if (rc == TP_OK && result->is_item)
            *ev = meta;
    } else if (packet.frame.ptr != NULL) {
        r->frame = packet.frame;
        *result = (struct result){.is_item = true, .item = TP_PF_FRAME};
    }
    if (rc == TP_OK && !result->is_item)
        r->skipped.packets++;
    return rc;
}

/* Use up what is there of a packet that was over the limit. */
static void skip_rest(struct tp_pf_reader *r, struct tp_pf_cursor *c)
{
    uint64_t there = (uint64_t)(c->end - c->ptr);
    uint64_t n = r->skip_bytes < there ? r->skip_bytes : there;

    c->ptr += n;
    r->offset += n;
    r->skip_bytes -= n;
}

/* Forget the texts that were made for the event before. */
static inline void forget_texts(struct tp_pf_reader *r)
{
    if (r->fixed_bytes == 0)
        return;
    tp_arena_reset(&r->fixed, KEEP_BYTES);
    r->fixed_bytes = 0;
}

/* Pass over ends and read an event, as far as both need no closer look. */
static inline bool read_quick(struct tp_pf_reader *r, struct tp_pf_cursor *c,
                              struct tp_event *ev)
{
    const char *p = c->ptr;
    const char *end = c->end;
    const char *next;

    while (end - p > 256 && p[0] == PACKET_TAG && p[1] > 0 &&
           is_marked_end((struct tp_str){p + 2, (size_t)p[1]}))
        p += 2 + p[1];
    next = tp_pf_reader_quick(r, p, end, ev);
    if (next != NULL)
        p = next;
    r->offset += (uint64_t)(p - c->ptr);
    c->ptr = p;
    return next != NULL;
}

int tp_pf_reader_next(struct tp_pf_reader *r, struct tp_pf_cursor *c,
                      enum tp_pf_item *item, struct tp_event *ev, struct tp_err *err)
{
    if (r->next_flow < r->n_flows) {
        next_flow(r, ev);
        *item = TP_PF_EVENT;
        return TP_OK;
    }
    for (;;) {
        struct result result = {0};
        struct tp_str packet = {NULL, 0};
        const char *next = c->ptr;
        int rc;

        if (r->skip_bytes > 0)
            skip_rest(r, c);
        forget_texts(r);
        if (r->skip_bytes == 0 && read_quick(r, c, ev)) {
            *item = TP_PF_EVENT;
            return TP_OK;
        }
        rc = frame_packet(r, c, &packet, &next, err);
        if (rc != TP_OK)
            return rc;
        if (!is_marked_end(packet)) {
            rc = take_packet(r, packet, ev, &result, err);
            if (rc == TP_OK && result.n_series > 1)
                rc = take_series(r, c, &next, &result, ev, err);
            if (rc == TP_EINVAL || rc == TP_ENOMEM || rc == TP_EAGAIN)
                return rc;
        }
        r->offset += (uint64_t)(next - c->ptr);
        c->ptr = next;
        if (rc != TP_OK)
            return rc; /* TP_EQUOTA: behind the packet */
        if (result.is_item) {
            *item = result.item;
            return TP_OK;
        }
    }
}

int tp_pf_reader_add_track(struct tp_pf_reader *r, uint64_t uuid, uint32_t lane,
                           const struct tp_id *pid, const struct tp_id *tid,
                           struct tp_err *err)
{
    const struct tp_track *track;
    struct tp_pf_place *place;
    int rc = tp_pf_places_track(&r->places, pid, tid, lane, &track, err);

    if (rc == TP_OK)
        rc = tp_pf_places_add(&r->places, uuid, &place, err);
    if (rc != TP_OK)
        return rc;
    *place = (struct tp_pf_place){
        .uuid = uuid, .track = track, .is_known = true, .is_ours = true};
    return TP_OK;
}

int tp_pf_reader_add_series(struct tp_pf_reader *r, uint64_t uuid,
                            const struct tp_id *pid, const struct tp_id *tid,
                            struct tp_str counter, struct tp_str series,
                            struct tp_err *err)
{
    struct tp_pf_place *place;
    struct tp_name name;
    struct tp_str copy = series;
    int rc = tp_pf_sequences_name(&r->sequences, series, &name, err);

    (void)counter; /* events carry it themselves */
    if (rc == TP_OK && name.iid == 0)
        rc = tp_pf_places_text(&r->places, series, &copy, err);
    if (rc == TP_OK)
        rc = tp_pf_reader_add_track(r, uuid, 0, pid, tid, err);
    if (rc != TP_OK)
        return rc;
    if (name.iid == 0)
        name.ptr = copy.ptr;
    place = tp_pf_places_find(&r->places, uuid);
    place->is_counter = true;
    place->name = name;
    return TP_OK;
}
