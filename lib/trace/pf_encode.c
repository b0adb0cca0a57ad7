/*
 * pf_encode.c - the packets of an event, front to back in one pass.
 *
 *     trace.packet  LEN                     field 1, length in 2 or 4 bytes
 *       timestamp, sequence id, flags
 *       interned_data LEN ...               only with new strings
 *       track_event   LEN                   (private event: field 9901)
 *         type, track_uuid, category, name, arguments, legacy_event, private fields
 *
 * Lengths come before what they measure, so each gets a width that its upper bound
 * fits into and is filled in afterwards. Tags are constants that the compiler turns
 * into stores.
 */
#include "trace/pf_encode.h"

#include <string.h>

#include "base/json_members.h"
#include "base/pb.h"
#include "trace/pf_fields.h"

#define EVENT_FIXED_ROOM 256 /* all tags and numbers of a packet without its strings */
#define ARG_FIXED_ROOM 40    /* likewise of an argument */
#define STRING_FIXED_ROOM 32 /* likewise of an interned string */

const char tp_pf_usual_phase[TP_EVENT_KINDS] = {
    [TP_EVENT_SLICE] = 'X',       [TP_EVENT_BEGIN] = 'B',
    [TP_EVENT_END] = 'E',         [TP_EVENT_INSTANT] = 'i',
    [TP_EVENT_COUNTER] = 'C',     [TP_EVENT_FLOW_START] = 's',
    [TP_EVENT_FLOW_STEP] = 't',   [TP_EVENT_FLOW_END] = 'f',
    [TP_EVENT_ASYNC_BEGIN] = 'b', [TP_EVENT_ASYNC_INSTANT] = 'n',
    [TP_EVENT_ASYNC_END] = 'e',   [TP_EVENT_META] = 'M',
    [TP_EVENT_OTHER] = '\0',
};

static const uint32_t interned_field[TP_PF_STRING_KINDS] = {
    [TP_PF_CATEGORY] = TP_PF_INTERNED_CATEGORIES,
    [TP_PF_NAME] = TP_PF_INTERNED_NAMES,
    [TP_PF_ARG_KEY] = TP_PF_INTERNED_ARG_NAMES,
};

size_t tp_pf_new_strings_room(const struct tp_pf_new_strings *s)
{
    size_t room = STRING_FIXED_ROOM;

    for (int kind = 0; kind < TP_PF_STRING_KINDS; kind++) {
        for (uint32_t iid = s->first[kind]; iid <= s->last[kind]; iid++)
            room += STRING_FIXED_ROOM + tp_intern_text(s->tables[kind], iid).len;
    }
    return room;
}

size_t tp_pf_event_room(const struct tp_event *ev)
{
    size_t room = EVENT_FIXED_ROOM + ev->name.len + ev->cat.len + ev->extra.len;

    if (ev->id.kind == TP_ID_TEXT)
        room += ev->id.text.len;
    for (uint32_t i = 0; i < ev->n_args; i++) {
        const struct tp_arg *a = &ev->args[i];

        room += ARG_FIXED_ROOM + a->key.len;
        if (a->kind == TP_ARG_STRING || a->kind == TP_ARG_JSON)
            room += a->s.len;
    }
    return room;
}

static char *put_interned_string(char *p, uint32_t field, uint32_t iid, struct tp_str s)
{
    size_t body = 1 + tp_pb_varint_bytes(iid) + 1 + tp_pb_varint_bytes(s.len) + s.len;

    p = tp_pb_put_tag(p, field, TP_PB_BYTES);
    p = tp_pb_put_varint(p, body);
    p = tp_pb_put_u64(p, TP_PF_INTERNED_IID, iid);
    return tp_pb_put_bytes(p, TP_PF_INTERNED_TEXT, s.ptr, s.len);
}

static char *put_new_strings(char *p, unsigned width, const struct tp_pf_new_strings *s)
{
    char *at;

    p = tp_pb_put_tag(p, TP_PF_PACKET_INTERNED_DATA, TP_PB_BYTES);
    at = p;
    p += width;
    for (int kind = 0; kind < TP_PF_STRING_KINDS; kind++) {
        for (uint32_t iid = s->first[kind]; iid <= s->last[kind]; iid++)
            p = put_interned_string(p, interned_field[kind], iid,
                                    tp_intern_text(s->tables[kind], iid));
    }
    tp_pb_put_length(at, width, (size_t)(p - at) - width);
    return p;
}

static inline char *put_arg_value(char *p, const struct tp_arg *a)
{
    switch (a->kind) {
    case TP_ARG_INT:
        return tp_pb_put_u64(p, TP_PF_ARG_INT, (uint64_t)a->i);
    case TP_ARG_UINT:
        return tp_pb_put_u64(p, TP_PF_ARG_UINT, a->u);
    case TP_ARG_DOUBLE:
        return tp_pb_put_double(p, TP_PF_ARG_DOUBLE, a->d);
    case TP_ARG_BOOL:
        return tp_pb_put_u64(p, TP_PF_ARG_BOOL, a->b);
    case TP_ARG_STRING:
        return tp_pb_put_bytes(p, TP_PF_ARG_STRING, a->s.ptr, a->s.len);
    case TP_ARG_JSON:
        return tp_pb_put_bytes(p, TP_PF_ARG_JSON, a->s.ptr, a->s.len);
    }
    return p;
}

/* An integer whose key has a number of one byte: all but its value is known. */
static inline char *put_small_int(char *p, const struct tp_arg *a, uint32_t key_iid)
{
    char *end;

    p[0] = TP_PB_TAG(TP_PF_EVENT_ARGS, TP_PB_BYTES);
    p[2] = TP_PB_TAG(TP_PF_ARG_NAME_IID, TP_PB_VARINT);
    p[3] = (char)key_iid;
    p[4] = TP_PB_TAG(TP_PF_ARG_INT, TP_PB_VARINT);
    end = tp_pb_put_varint(p + 5, (uint64_t)a->i);
    p[1] = (char)(end - p - 2);
    return end;
}

static inline char *put_arg(char *p, const struct tp_arg *a, uint32_t key_iid)
{
    size_t room = ARG_FIXED_ROOM;
    unsigned width = 1;
    char *at;

    if (a->kind == TP_ARG_INT && key_iid - 1 < 127)
        return put_small_int(p, a, key_iid);
    if (key_iid == 0)
        room += a->key.len;
    if (a->kind == TP_ARG_STRING || a->kind == TP_ARG_JSON)
        room += a->s.len;
    if (room > 127)
        width = tp_pb_length_width(room);
    p = tp_pb_put_tag(p, TP_PF_EVENT_ARGS, TP_PB_BYTES);
    at = p;
    p += width;
    if (key_iid != 0)
        p = tp_pb_put_u64(p, TP_PF_ARG_NAME_IID, key_iid);
    else
        p = tp_pb_put_bytes(p, TP_PF_ARG_NAME, a->key.ptr, a->key.len);
    p = put_arg_value(p, a);
    tp_pb_put_length(at, width, (size_t)(p - at) - width);
    return p;
}

static char *put_counter_value(char *p, const struct tp_arg *a)
{
    if (a->kind == TP_ARG_INT)
        return tp_pb_put_u64(p, TP_PF_EVENT_COUNTER, (uint64_t)a->i);
    return tp_pb_put_double(p, TP_PF_EVENT_COUNTER_DOUBLE,
                            a->kind == TP_ARG_DOUBLE ? a->d : (double)a->u);
}

bool tp_pf_id2(const struct tp_event *ev, struct tp_str *id2, bool *is_local)
{
    struct tp_json members;
    struct tp_str key;
    struct tp_str value;
    struct tp_str local;

    if (ev->kind < TP_EVENT_ASYNC_BEGIN || ev->kind > TP_EVENT_ASYNC_END ||
        ev->id.kind != TP_ID_NONE || ev->extra.len == 0)
        return false;
    members =
        (struct tp_json){.p = ev->extra.ptr, .end = ev->extra.ptr + ev->extra.len};
    while (tp_json_members_next(&members, &key, &value)) {
        if (!tp_str_is(key, "id2"))
            continue;
        *id2 = value;
        *is_local = tp_json_members_find(value, "local", &local);
        return true;
    }
    return false;
}

static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3ULL;
    return h;
}

/* An id2 of a process goes with its pid. */
static uint64_t hash_id2(uint64_t h, const struct tp_event *ev)
{
    const struct tp_id *pid = &ev->track->pid;
    struct tp_str id2 = {NULL, 0};
    bool is_local = false;

    tp_pf_id2(ev, &id2, &is_local);
    h = hash_bytes(h, id2.ptr, id2.len);
    if (is_local && pid->kind == TP_ID_TEXT)
        h = hash_bytes(h, pid->text.ptr, pid->text.len);
    else if (is_local && pid->kind == TP_ID_NUMBER)
        h = hash_bytes(h, &pid->number, sizeof(pid->number));
    return h;
}

/* The id that joins flows and async events in viewers. Small ids stay apart by stream
 * and readable; all others are hashed, above them. */
static uint64_t unscoped_id(const struct tp_event *ev, uint32_t stream_no)
{
    uint64_t h = 0xcbf29ce484222325ULL ^ stream_no;

    if (ev->id.kind == TP_ID_NUMBER) {
        if ((uint64_t)ev->id.number < 1ULL << 40)
            return (uint64_t)stream_no << 40 | (uint64_t)ev->id.number;
        h = (h ^ (uint64_t)ev->id.number) * 0x9e3779b97f4a7c15ULL;
    } else if (ev->id.kind == TP_ID_TEXT) {
        h = hash_bytes(h, ev->id.text.ptr, ev->id.text.len);
    } else {
        h = hash_id2(h, ev);
    }
    h ^= h >> 29;
    return h >> 2 | 1ULL << 62;
}

/* legacy_event of flows and async events: what viewers know them by. */
static char *put_legacy(char *p, const struct tp_event *ev, uint32_t stream_no)
{
    char *at;

    p = tp_pb_put_tag(p, TP_PF_EVENT_LEGACY, TP_PB_BYTES);
    at = p++;
    p = tp_pb_put_u64(p, TP_PF_LEGACY_PHASE,
                      (unsigned char)tp_pf_usual_phase[ev->kind]);
    p = tp_pb_put_u64(p, TP_PF_LEGACY_UNSCOPED_ID, unscoped_id(ev, stream_no));
    if (ev->binds_enclosing)
        p = tp_pb_put_u64(p, TP_PF_LEGACY_BIND_TO_ENCLOSING, 1);
    tp_pb_put_length(at, 1, (size_t)(p - at) - 1);
    return p;
}

/* Perfetto's number of a scope, or 0. */
static uint64_t scope_number(char scope)
{
    return scope == 'g' ? 1 : scope == 'p' ? 2 : scope == 't' ? 3 : 0;
}

static char *put_instant_scope(char *p, uint64_t scope)
{
    p = tp_pb_put_tag(p, TP_PF_EVENT_LEGACY, TP_PB_BYTES);
    *p++ = 2;
    return tp_pb_put_u64(p, TP_PF_LEGACY_INSTANT_SCOPE, scope);
}

/* The fields that few events have; each is there only when it says something. */
static char *put_rare(char *p, const struct tp_event *ev, bool has_legacy)
{
    bool scope_is_public = ev->kind == TP_EVENT_INSTANT && scope_number(ev->scope) != 0;

    if (ev->is_unfinished)
        p = tp_pb_put_u64(p, TP_PF_X_EVENT_UNFINISHED, 1);
    if (ev->extra.len > 0)
        p = tp_pb_put_bytes(p, TP_PF_X_EVENT_EXTRA, ev->extra.ptr, ev->extra.len);
    if (ev->id.kind == TP_ID_NUMBER)
        p = tp_pb_put_u64(p, TP_PF_X_EVENT_ID_NUMBER, tp_pb_zigzag(ev->id.number));
    if (ev->id.kind == TP_ID_TEXT)
        p = tp_pb_put_bytes(p, TP_PF_X_EVENT_ID_TEXT, ev->id.text.ptr, ev->id.text.len);
    if (ev->phase != tp_pf_usual_phase[ev->kind])
        p = tp_pb_put_u64(p, TP_PF_X_EVENT_PHASE, (unsigned char)ev->phase);
    if (ev->scope != '\0' && !(scope_is_public && has_legacy))
        p = tp_pb_put_u64(p, TP_PF_X_EVENT_SCOPE, (unsigned char)ev->scope);
    if (ev->binds_enclosing && !has_legacy)
        p = tp_pb_put_u64(p, TP_PF_X_EVENT_BINDS, 1);
    return p;
}

/* The fields that only a track event has: its type and what viewers draw. */
static inline char *put_public_fields(char *p, const struct tp_event *ev,
                                      const struct tp_pf_plan *plan, bool *has_legacy)
{
    switch (ev->kind) {
    case TP_EVENT_SLICE:
        p = tp_pb_put_u64(p, TP_PF_EVENT_TYPE, TP_PF_TYPE_BEGIN);
        return tp_pb_put_u64(p, TP_PF_X_EVENT_DUR_NS, (uint64_t)ev->dur_ns);
    case TP_EVENT_BEGIN:
        return tp_pb_put_u64(p, TP_PF_EVENT_TYPE, TP_PF_TYPE_BEGIN);
    case TP_EVENT_END:
        return tp_pb_put_u64(p, TP_PF_EVENT_TYPE, TP_PF_TYPE_END);
    case TP_EVENT_INSTANT:
        p = tp_pb_put_u64(p, TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT);
        if (scope_number(ev->scope) != 0) {
            p = put_instant_scope(p, scope_number(ev->scope));
            *has_legacy = !ev->binds_enclosing;
        }
        return p;
    case TP_EVENT_COUNTER:
        p = tp_pb_put_u64(p, TP_PF_EVENT_TYPE, TP_PF_TYPE_COUNTER);
        p = tp_pb_put_u64(p, TP_PF_X_EVENT_SERIES, plan->n_series);
        if (plan->own_track != 0)
            p = tp_pb_put_u64(p, TP_PF_X_EVENT_TRACK, plan->own_track);
        return put_counter_value(p, plan->value);
    default:
        *has_legacy = true;
        return put_legacy(p, ev, plan->stream_no);
    }
}

/* What a private event has in their place. */
static char *put_private_fields(char *p, const struct tp_event *ev,
                                const struct tp_pf_plan *plan)
{
    p = tp_pb_put_u64(p, TP_PF_X_EVENT_TS_NS, tp_pb_zigzag(ev->ts_ns));
    if (plan->form == TP_PF_FORM_GHOST)
        return tp_pb_put_u64(p, TP_PF_X_EVENT_GHOST, 1);
    p = tp_pb_put_u64(p, TP_PF_X_EVENT_KIND, ev->kind);
    if (ev->kind == TP_EVENT_SLICE)
        p = tp_pb_put_u64(p, TP_PF_X_EVENT_DUR_NS, (uint64_t)ev->dur_ns);
    return p;
}

static inline char *put_names(char *p, const struct tp_event *ev,
                              const struct tp_pf_plan *plan)
{
    if (plan->cat_iid != 0)
        p = tp_pb_put_u64(p, TP_PF_EVENT_CATEGORY_IIDS, plan->cat_iid);
    else if (ev->cat.ptr != NULL)
        p = tp_pb_put_bytes(p, TP_PF_EVENT_CATEGORIES, ev->cat.ptr, ev->cat.len);
    if (plan->name_iid != 0)
        p = tp_pb_put_u64(p, TP_PF_EVENT_NAME_IID, plan->name_iid);
    else if (ev->name.ptr != NULL)
        p = tp_pb_put_bytes(p, TP_PF_EVENT_NAME, ev->name.ptr, ev->name.len);
    if (plan->has_args) {
        for (uint32_t i = 0; i < ev->n_args; i++)
            p = put_arg(p, &ev->args[i], plan->key_iids[i]);
    }
    if (plan->wire_args.len > 0)
        memcpy(p, plan->wire_args.ptr, plan->wire_args.len);
    return p + plan->wire_args.len;
}

/* The body of the track event or private event. */
static inline char *put_body(char *p, const struct tp_event *ev,
                             const struct tp_pf_plan *plan)
{
    bool has_legacy = false;

    if (plan->form == TP_PF_FORM_PUBLIC)
        p = put_public_fields(p, ev, plan, &has_legacy);
    else
        p = put_private_fields(p, ev, plan);
    p = tp_pb_put_u64(p, TP_PF_EVENT_TRACK_UUID, plan->track_uuid);
    if (plan->form == TP_PF_FORM_GHOST)
        return p;
    p = put_names(p, ev, plan);
    return put_rare(p, ev, has_legacy);
}

char *tp_pf_put_event(char *p, size_t room, const struct tp_event *ev,
                      const struct tp_pf_plan *plan,
                      const struct tp_pf_new_strings *news)
{
    unsigned width = room < 1u << 14 ? 2 : 4;
    char *packet;
    char *body;

    p = tp_pb_put_tag(p, TP_PF_TRACE_PACKET, TP_PB_BYTES);
    packet = p;
    p += width;
    if (plan->form == TP_PF_FORM_PUBLIC)
        p = tp_pb_put_u64(p, TP_PF_PACKET_TIMESTAMP, (uint64_t)ev->ts_ns);
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_ID, plan->sequence_id);
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_FLAGS, TP_PF_SEQUENCE_NEEDS);
    if (news != NULL)
        p = put_new_strings(p, width, news);
    if (plan->form == TP_PF_FORM_PUBLIC)
        p = tp_pb_put_tag(p, TP_PF_PACKET_TRACK_EVENT, TP_PB_BYTES);
    else
        p = tp_pb_put_tag(p, TP_PF_X_PACKET_PRIVATE, TP_PB_BYTES);
    body = p;
    p += width;
    p = put_body(p, ev, plan);
    tp_pb_put_length(body, width, (size_t)(p - body) - width);
    tp_pb_put_length(packet, width, (size_t)(p - packet) - width);
    return p;
}

char *tp_pf_put_names(char *p, size_t room, uint32_t sequence_id,
                      const struct tp_pf_new_strings *news)
{
    char *packet;

    p = tp_pb_put_tag(p, TP_PF_TRACE_PACKET, TP_PB_BYTES);
    packet = p;
    p += 4;
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_ID, sequence_id);
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_FLAGS, TP_PF_SEQUENCE_NEEDS);
    p = put_new_strings(p, room < 1u << 14 ? 2 : 4, news);
    tp_pb_put_length(packet, 4, (size_t)(p - packet) - 4);
    return p;
}

/* The mark comes first, so that our reader knows the packet by its first bytes. */
char *tp_pf_put_slice_end(char *p, uint32_t sequence_id, uint64_t track_uuid,
                          uint64_t ts_ns)
{
    char *packet;
    char *body;

    p = tp_pb_put_tag(p, TP_PF_TRACE_PACKET, TP_PB_BYTES);
    packet = p++;
    p = tp_pb_put_tag(p, TP_PF_PACKET_TRACK_EVENT, TP_PB_BYTES);
    body = p++;
    p = tp_pb_put_u64(p, TP_PF_X_EVENT_SYNTHETIC, 1);
    p = tp_pb_put_u64(p, TP_PF_EVENT_TYPE, TP_PF_TYPE_END);
    p = tp_pb_put_u64(p, TP_PF_EVENT_TRACK_UUID, track_uuid);
    tp_pb_put_length(body, 1, (size_t)(p - body) - 1);
    p = tp_pb_put_u64(p, TP_PF_PACKET_TIMESTAMP, ts_ns);
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_ID, sequence_id);
    tp_pb_put_length(packet, 1, (size_t)(p - packet) - 1);
    return p;
}

char *tp_pf_put_series(char *p, uint32_t sequence_id, uint64_t series_uuid,
                       uint64_t ts_ns, const struct tp_arg *value)
{
    char *packet;
    char *body;

    p = tp_pb_put_tag(p, TP_PF_TRACE_PACKET, TP_PB_BYTES);
    packet = p++;
    p = tp_pb_put_u64(p, TP_PF_PACKET_TIMESTAMP, ts_ns);
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_ID, sequence_id);
    p = tp_pb_put_tag(p, TP_PF_PACKET_TRACK_EVENT, TP_PB_BYTES);
    body = p++;
    p = tp_pb_put_u64(p, TP_PF_EVENT_TYPE, TP_PF_TYPE_COUNTER);
    p = tp_pb_put_u64(p, TP_PF_EVENT_TRACK_UUID, series_uuid);
    p = put_counter_value(p, value);
    tp_pb_put_length(body, 1, (size_t)(p - body) - 1);
    tp_pb_put_length(packet, 1, (size_t)(p - packet) - 1);
    return p;
}
