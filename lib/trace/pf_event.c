/*
 * pf_event.c - what the fields of a track event mean.
 *
 * The kind comes from, in this order: our private field, the type, the phase of
 * legacy_event. The usual phase of the kind is filled in where the source has
 * none, so that every event has one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "trace/id2.h"
#include "trace/pf_encode.h"
#include "trace/pf_fields.h"
#include "trace/pf_reader_state.h"

/* The kind of a phase of Chrome's format; S, T, p and F are the older async events. */
static enum tp_event_kind kind_of_phase(uint8_t phase)
{
    static const enum tp_event_kind kinds[128] = {
        ['X'] = TP_EVENT_SLICE + 1,         ['B'] = TP_EVENT_BEGIN + 1,
        ['E'] = TP_EVENT_END + 1,           ['i'] = TP_EVENT_INSTANT + 1,
        ['I'] = TP_EVENT_INSTANT + 1,       ['R'] = TP_EVENT_INSTANT + 1,
        ['s'] = TP_EVENT_FLOW_START + 1,    ['t'] = TP_EVENT_FLOW_STEP + 1,
        ['f'] = TP_EVENT_FLOW_END + 1,      ['b'] = TP_EVENT_ASYNC_BEGIN + 1,
        ['n'] = TP_EVENT_ASYNC_INSTANT + 1, ['e'] = TP_EVENT_ASYNC_END + 1,
        ['S'] = TP_EVENT_ASYNC_BEGIN + 1,   ['T'] = TP_EVENT_ASYNC_INSTANT + 1,
        ['p'] = TP_EVENT_ASYNC_INSTANT + 1, ['F'] = TP_EVENT_ASYNC_END + 1,
        ['M'] = TP_EVENT_META + 1,
    };

    if (phase >= 128 || kinds[phase] == 0)
        return TP_EVENT_OTHER;
    return kinds[phase] - 1;
}

/* Kind and phase from type and legacy_event. False: it says neither. */
static bool find_kind(const struct tp_pf_raw *raw, struct tp_event *ev)
{
    switch (raw->type) {
    case TP_PF_TYPE_BEGIN:
        ev->kind = raw->has_dur ? TP_EVENT_SLICE : TP_EVENT_BEGIN;
        break;
    case TP_PF_TYPE_END:
        ev->kind = TP_EVENT_END;
        break;
    case TP_PF_TYPE_INSTANT:
        ev->kind = TP_EVENT_INSTANT;
        break;
    case TP_PF_TYPE_COUNTER:
        ev->kind = TP_EVENT_COUNTER;
        break;
    default:
        if (raw->legacy_phase == 0)
            return false;
        ev->kind = kind_of_phase(raw->legacy_phase);
        ev->phase = (char)raw->legacy_phase;
        return true;
    }
    ev->phase = tp_pf_usual_phase[ev->kind];
    return true;
}

static int find_track(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                      const struct tp_pf_raw *raw, struct tp_event *ev,
                      struct tp_err *err)
{
    uint64_t uuid = raw->track_uuid;
    const struct tp_pf_place *place;

    if (raw->own_track != 0)
        uuid = raw->own_track;
    else if (!raw->has_track && q->has_default_track)
        uuid = q->default_track;
    place = tp_pf_places_find(&r->places, uuid);
    if (place != NULL && place->track != NULL && !raw->has_legacy_tid) {
        ev->track = place->track;
        return TP_OK;
    }
    if (raw->has_legacy_tid) {
        struct tp_id pid = {raw->has_legacy_pid ? TP_ID_NUMBER : TP_ID_NONE,
                            raw->legacy_pid,
                            {NULL, 0}};
        struct tp_id tid = {TP_ID_NUMBER, raw->legacy_tid, {NULL, 0}};

        return tp_pf_places_track(&r->places, &pid, &tid, 0, &ev->track, err);
    }
    return tp_pf_places_resolve(&r->places, uuid, &ev->track, err);
}

/* The value of a counter packet as an argument without its key. */
static void counter_value(struct tp_pf_reader *r, const struct tp_pf_raw *raw,
                          struct tp_pf_place *place, struct tp_arg *arg)
{
    double factor = place != NULL && place->multiplier != 0 ? (double)place->multiplier
                                                            : 1;
    bool is_plain = place == NULL || (place->multiplier == 0 && !place->is_incremental);
    double d = raw->counter_double;

    if (!raw->has_counter_double && is_plain) {
        arg->kind = TP_ARG_INT;
        arg->i = (int64_t)raw->counter_int;
        return;
    }
    if (!raw->has_counter_double)
        d = (double)(int64_t)raw->counter_int;
    d *= factor;
    if (place != NULL && place->is_incremental)
        d = place->last += d;
    arg->kind = TP_ARG_DOUBLE;
    arg->d = d;
    if (d - d != 0) { /* not finite */
        arg->kind = TP_ARG_STRING;
        arg->s = tp_str_of(d != d ? "NaN" : d > 0 ? "Infinity" : "-Infinity");
        r->skipped.repaired++;
    }
}

/* Give a counter event its series. Ours carry name and count themselves; a counter of
 * others is named by its track. */
static int complete_counter(struct tp_pf_reader *r, struct tp_pf_raw *raw,
                            struct tp_event *ev, bool *is_event, struct tp_err *err)
{
    struct tp_pf_place *place = tp_pf_places_find(&r->places, raw->track_uuid);
    struct tp_arg *arg;
    int rc;

    if (!raw->has_counter && !raw->has_counter_double) {
        *is_event = false;
        return TP_OK;
    }
    raw->keeps_args = raw->n_series > 0 && ev->n_args > 0;
    if (raw->keeps_args)
        return TP_OK;
    rc = tp_pf_reader_reserve_args(r, 1, err);
    if (rc != TP_OK)
        return rc;
    arg = &r->args[0];
    arg->key = (struct tp_name){"value", 5, 0};
    if (place != NULL && place->is_ours)
        arg->key = place->name;
    else if (place != NULL && ev->name.ptr == NULL)
        ev->name = place->name;
    counter_value(r, raw, place, arg);
    ev->args = r->args;
    ev->n_args = 1;
    return TP_OK;
}

/* Whether text is members of an object without the braces; nothing needs no check. */
static bool are_members(struct tp_pf_reader *r, struct tp_str text)
{
    if (text.len == 0)
        return true;
    r->text.len = 0;
    r->text.limit_bytes = 0;
    if (tp_buf_append(&r->text, "{", 1, NULL) != TP_OK ||
        tp_buf_append(&r->text, text.ptr, text.len, NULL) != TP_OK ||
        tp_buf_append(&r->text, "}", 1, NULL) != TP_OK)
        return false;
    return tp_pf_reader_is_json((struct tp_str){r->text.data, r->text.len});
}

/* Mend what private fields of a foreign hand may say and an event may not. */
static void mend(struct tp_pf_reader *r, struct tp_event *ev)
{
    if (!are_members(r, ev->extra)) {
        ev->extra = (struct tp_str){NULL, 0};
        r->skipped.repaired++;
    }
    if (ev->phase != '\0' && (ev->phase < '!' || ev->phase > '~')) {
        ev->phase = tp_pf_usual_phase[ev->kind];
        r->skipped.mended++;
    }
    if (ev->scope != '\0' && (ev->scope < '!' || ev->scope > '~')) {
        ev->scope = '\0';
        r->skipped.mended++;
    }
}

static void complete(struct tp_pf_reader *r, const struct tp_pf_raw *raw,
                     struct tp_event *ev)
{
    struct tp_str id2;
    bool is_local;

    if (raw->has_phase)
        ev->phase = (char)raw->phase;
    if (raw->scope != 0)
        ev->scope = (char)raw->scope;
    if (ev->id.kind == TP_ID_NONE && raw->has_id && !tp_pf_id2(ev, &id2, &is_local)) {
        ev->id.kind = TP_ID_NUMBER;
        ev->id.number = (int64_t)raw->unscoped_id;
    }
    if (ev->kind == TP_EVENT_SLICE && !raw->has_dur)
        ev->dur_ns = raw->duration_us > INT64_MAX / 1000 ? INT64_MAX
                                                         : raw->duration_us * 1000;
    if (ev->kind != TP_EVENT_SLICE)
        ev->dur_ns = 0;
    if (ev->dur_ns < 0) {
        ev->dur_ns = 0;
        r->skipped.repaired++;
    }
    if (!r->is_trusted)
        mend(r, ev);
}

/* The time of a public event. */
static bool find_time(struct tp_pf_reader *r, struct tp_pf_sequence *q,
                      const struct tp_pf_packet *packet, const struct tp_pf_raw *raw,
                      struct tp_event *ev)
{
    if (packet->has_ts)
        return tp_pf_reader_time(r, q, packet, &ev->ts_ns);
    if (!raw->has_absolute)
        return false; /* steps from a thread descriptor: before Perfetto had tracks */
    ev->ts_ns = raw->absolute_us > INT64_MAX / 1000 ||
                        raw->absolute_us < INT64_MIN / 1000
                    ? 0
                    : raw->absolute_us * 1000;
    return true;
}

static int separate_id2(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                        struct tp_event *ev, struct tp_err *err)
{
    bool is_changed;
    int rc;

    r->text.limit_bytes = 0;
    rc = tp_id2_separate(ev, q->id, &r->text, &is_changed, err);
    if (rc != TP_OK || !is_changed)
        return rc;
    return tp_pf_reader_keep(r, (struct tp_str){r->text.data, r->text.len}, &ev->extra,
                             err);
}

/* Keep the ids of the streams of a merged download apart, as one in Chrome's format
 * does. */
static int separate_id(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                       struct tp_event *ev, struct tp_err *err)
{
    struct tp_id *id = &ev->id;
    char number[48];
    int n;

    if (!q->is_merged)
        return TP_OK;
    if (id->kind == TP_ID_NONE)
        return separate_id2(r, q, ev, err);
    if (id->kind == TP_ID_NUMBER && (uint64_t)id->number < 1ULL << 40 && q->id < 8192) {
        id->number |= (int64_t)q->id << 40;
        return TP_OK;
    }
    if (id->kind == TP_ID_NUMBER) {
        n = snprintf(number, sizeof(number), "%u:%lld", q->id, (long long)id->number);
        *id = (struct tp_id){.kind = TP_ID_TEXT};
        return tp_pf_reader_keep(r, (struct tp_str){number, (size_t)n}, &id->text, err);
    }
    n = snprintf(number, sizeof(number), "%u:", q->id);
    r->text.len = 0;
    r->text.limit_bytes = 0;
    if (tp_buf_append(&r->text, number, (size_t)n, err) != TP_OK ||
        tp_buf_append(&r->text, id->text.ptr, id->text.len, err) != TP_OK)
        return TP_ENOMEM;
    return tp_pf_reader_keep(r, (struct tp_str){r->text.data, r->text.len}, &id->text,
                             err);
}

static int interpret_private(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                             const struct tp_pf_raw *raw, struct tp_event *ev,
                             bool *is_event, struct tp_err *err)
{
    int rc;

    if (raw->is_broken || (!raw->has_kind && !raw->is_ghost)) {
        r->skipped.events++;
        *is_event = false;
        return TP_OK;
    }
    ev->kind = raw->is_ghost ? TP_EVENT_BEGIN : (enum tp_event_kind)raw->kind;
    ev->phase = tp_pf_usual_phase[ev->kind];
    complete(r, raw, ev);
    rc = separate_id(r, q, ev, err);
    return rc == TP_OK ? find_track(r, q, raw, ev, err) : rc;
}

int tp_pf_reader_interpret(struct tp_pf_reader *r, struct tp_pf_sequence *q,
                           const struct tp_pf_packet *packet, bool is_private,
                           struct tp_pf_raw *raw, struct tp_event *ev, bool *is_event,
                           struct tp_err *err)
{
    int rc = TP_OK;

    *is_event = true;
    if (is_private)
        return interpret_private(r, q, raw, ev, is_event, err);
    if (raw->is_synthetic) {
        *is_event = false;
        return TP_OK;
    }
    *is_event = find_time(r, q, packet, raw, ev) && !raw->is_broken &&
                find_kind(raw, ev);
    if (*is_event && ev->kind == TP_EVENT_COUNTER)
        rc = complete_counter(r, raw, ev, is_event, err);
    if (rc != TP_OK)
        return rc;
    if (!*is_event) {
        r->skipped.events++;
        return TP_OK;
    }
    complete(r, raw, ev);
    rc = separate_id(r, q, ev, err);
    return rc == TP_OK ? find_track(r, q, raw, ev, err) : rc;
}

bool tp_pf_reader_series(struct tp_pf_reader *r, struct tp_str packet,
                         struct tp_arg *arg)
{
    struct tp_pb c = {packet.ptr, packet.ptr + packet.len};
    struct tp_pb_field f;
    struct tp_pf_raw raw = {0};
    struct tp_pf_place *place;
    bool has_event = false;

    while (!has_event && c.p < c.end && tp_pb_get_field(&c, &f))
        has_event = f.number == TP_PF_PACKET_TRACK_EVENT && f.wire == TP_PB_BYTES;
    if (!has_event)
        return false;
    c = (struct tp_pb){f.bytes, f.bytes + f.value};
    while (c.p < c.end && tp_pb_get_field(&c, &f)) {
        if (f.number == TP_PF_EVENT_TRACK_UUID)
            raw.track_uuid = f.value;
        raw.has_counter |= f.number == TP_PF_EVENT_COUNTER;
        raw.has_counter_double |= f.number == TP_PF_EVENT_COUNTER_DOUBLE;
        if (f.number == TP_PF_EVENT_COUNTER)
            raw.counter_int = f.value;
        if (f.number == TP_PF_EVENT_COUNTER_DOUBLE)
            raw.counter_double = tp_pb_double(f.value);
    }
    place = tp_pf_places_find(&r->places, raw.track_uuid);
    if (place == NULL || !place->is_ours ||
        !(raw.has_counter || raw.has_counter_double))
        return false;
    arg->key = place->name;
    counter_value(r, &raw, place, arg);
    return true;
}
