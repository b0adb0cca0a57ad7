/*
 * pf_decode.c - the fields of a track event, as they are.
 *
 * One loop over the fields with a switch on the whole tag for those that are in nearly
 * every event; all others go through slower functions. A field with another wire type
 * than it should have is skipped, as protobuf readers do.
 */
#include <stdlib.h>

#include "trace/pf_fields.h"
#include "trace/pf_reader_state.h"

#define VARINT_TAG(field) TP_PB_TAG(field, TP_PB_VARINT)
#define BYTES_TAG(field) TP_PB_TAG(field, TP_PB_BYTES)

int tp_pf_reader_reserve_args(struct tp_pf_reader *r, uint32_t n, struct tp_err *err)
{
    uint32_t cap = r->cap_args == 0 ? 32 : r->cap_args;
    struct tp_arg *args;

    if (n <= r->cap_args)
        return TP_OK;
    if (n > TP_PF_ARGS_MAX)
        return tp_fail(err, TP_EQUOTA, "an event has more than %u arguments",
                       TP_PF_ARGS_MAX);
    while (cap < n)
        cap *= 2;
    args = realloc(r->args, cap * sizeof(*args));
    if (args == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %u arguments", cap);
    r->args = args;
    r->cap_args = cap;
    return TP_OK;
}

static int add_flow(struct tp_pf_reader *r, struct tp_pf_raw *raw, uint64_t id,
                    bool is_terminating, struct tp_err *err)
{
    struct tp_pf_flow *flows;

    if (raw->n_flows == TP_PF_FLOWS_MAX) {
        r->skipped.events++;
        return TP_OK;
    }
    if (raw->n_flows == r->cap_flows) {
        uint32_t cap = r->cap_flows == 0 ? 16 : r->cap_flows * 2;

        flows = realloc(r->flows, cap * sizeof(*flows));
        if (flows == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for %u flows", cap);
        r->flows = flows;
        r->cap_flows = cap;
    }
    r->flows[raw->n_flows++] = (struct tp_pf_flow){id, is_terminating};
    return TP_OK;
}

/* A number of which nothing is known above a byte: then 0, which says nothing. */
static inline uint8_t byte_of(uint64_t v)
{
    return v > UINT8_MAX ? 0 : (uint8_t)v;
}

/* legacy_event: what Chrome's format says of events that Perfetto models otherwise. */
static bool read_legacy(struct tp_str bytes, struct tp_pf_raw *raw, struct tp_event *ev)
{
    struct tp_pb c = {bytes.ptr, bytes.ptr + bytes.len};
    struct tp_pb_field f;

    while (c.p < c.end) {
        if (!tp_pb_get_field(&c, &f))
            return false;
        switch (f.number) {
        case TP_PF_LEGACY_PHASE:
            raw->legacy_phase = byte_of(f.value);
            break;
        case TP_PF_LEGACY_DURATION_US:
            raw->duration_us = (int64_t)f.value;
            break;
        case TP_PF_LEGACY_UNSCOPED_ID:
        case TP_PF_LEGACY_LOCAL_ID:
        case TP_PF_LEGACY_GLOBAL_ID:
            raw->unscoped_id = f.value;
            raw->has_id = true;
            break;
        case TP_PF_LEGACY_BIND_TO_ENCLOSING:
            ev->binds_enclosing = f.value != 0;
            break;
        case TP_PF_LEGACY_INSTANT_SCOPE:
            ev->scope = f.value == 1   ? 'g'
                        : f.value == 2 ? 'p'
                        : f.value == 3 ? 't'
                                       : '\0';
            break;
        case TP_PF_LEGACY_PID:
            raw->legacy_pid = (int64_t)f.value;
            raw->has_legacy_pid = true;
            break;
        case TP_PF_LEGACY_TID:
            raw->legacy_tid = (int64_t)f.value;
            raw->has_legacy_tid = true;
            break;
        default:
            break;
        }
    }
    return true;
}

/* Our private fields. */
static int take_private(struct tp_pf_reader *r, const struct tp_pb_field *f,
                        struct tp_pf_raw *raw, struct tp_event *ev, struct tp_err *err)
{
    struct tp_str text = {f->bytes, f->bytes == NULL ? 0 : f->value};

    switch (f->number) {
    case TP_PF_X_EVENT_SYNTHETIC:
        raw->is_synthetic = f->value != 0;
        return TP_OK;
    case TP_PF_X_EVENT_UNFINISHED:
        ev->is_unfinished = f->value != 0;
        return TP_OK;
    case TP_PF_X_EVENT_EXTRA:
        return f->bytes == NULL ? TP_OK : tp_pf_reader_fix(r, text, &ev->extra, err);
    case TP_PF_X_EVENT_ID_NUMBER:
        ev->id.kind = TP_ID_NUMBER;
        ev->id.number = tp_pb_unzigzag(f->value);
        return TP_OK;
    case TP_PF_X_EVENT_ID_TEXT:
        if (f->bytes == NULL)
            return TP_OK;
        ev->id.kind = TP_ID_TEXT;
        return tp_pf_reader_fix(r, text, &ev->id.text, err);
    case TP_PF_X_EVENT_PHASE:
        raw->phase = byte_of(f->value);
        raw->has_phase = true;
        return TP_OK;
    case TP_PF_X_EVENT_SERIES:
        raw->n_series = f->value > UINT32_MAX ? UINT32_MAX : (uint32_t)f->value;
        return TP_OK;
    case TP_PF_X_EVENT_SCOPE:
        raw->scope = byte_of(f->value);
        return TP_OK;
    case TP_PF_X_EVENT_BINDS:
        ev->binds_enclosing = f->value != 0;
        return TP_OK;
    case TP_PF_X_EVENT_TRACK:
        raw->own_track = f->value;
        return TP_OK;
    case TP_PF_X_EVENT_KIND:
        raw->kind = f->value < TP_EVENT_KINDS ? (uint32_t)f->value : TP_EVENT_OTHER;
        raw->has_kind = true;
        return TP_OK;
    case TP_PF_X_EVENT_TS_NS:
        ev->ts_ns = tp_pb_unzigzag(f->value);
        return TP_OK;
    case TP_PF_X_EVENT_GHOST:
        raw->is_ghost = f->value != 0;
        return TP_OK;
    default:
        return TP_OK;
    }
}

/* One category more; several are joined by commas, as Chrome writes them. */
static int take_category(struct tp_pf_reader *r, struct tp_name cat,
                         struct tp_pf_raw *raw, struct tp_event *ev, struct tp_err *err)
{
    struct tp_str joined;
    int rc;

    if (raw->n_cats++ == 0) {
        ev->cat = cat;
        return TP_OK;
    }
    r->text.len = 0;
    r->text.limit_bytes = r->packet_bytes;
    rc = tp_buf_append(&r->text, ev->cat.ptr, ev->cat.len, err);
    if (rc == TP_OK)
        rc = tp_buf_append(&r->text, ",", 1, err);
    if (rc == TP_OK)
        rc = tp_buf_append(&r->text, cat.ptr, cat.len, err);
    if (rc == TP_OK)
        rc = tp_pf_reader_keep(r, (struct tp_str){r->text.data, r->text.len}, &joined,
                               err);
    if (rc == TP_OK)
        ev->cat = (struct tp_name){joined.ptr, (uint32_t)joined.len, 0};
    return rc;
}

/* A name that is written out. */
static int inline_name(struct tp_pf_reader *r, const struct tp_pb_field *f,
                       struct tp_name *out, struct tp_err *err)
{
    struct tp_str text;
    int rc = tp_pf_reader_fix(r, (struct tp_str){f->bytes, f->value}, &text, err);

    if (rc == TP_OK)
        *out = (struct tp_name){text.ptr, (uint32_t)text.len, 0};
    return rc;
}

/* Counter values, timestamps and flows: the less common public fields of a number. */
static int take_number(struct tp_pf_reader *r, const struct tp_pb_field *f,
                       struct tp_pf_raw *raw, struct tp_err *err)
{
    switch (f->number) {
    case TP_PF_EVENT_COUNTER:
        raw->counter_int = f->value;
        raw->has_counter = true;
        return TP_OK;
    case TP_PF_EVENT_COUNTER_DOUBLE:
        raw->counter_double = tp_pb_double(f->value);
        raw->has_counter_double = f->wire == TP_PB_FIXED64;
        return TP_OK;
    case TP_PF_EVENT_ABSOLUTE_US:
        raw->absolute_us = (int64_t)f->value;
        raw->has_absolute = true;
        return TP_OK;
    case TP_PF_EVENT_DELTA_US:
        raw->has_delta = true;
        return TP_OK;
    case TP_PF_EVENT_FLOWS:
    case TP_PF_EVENT_FLOWS_OLD:
        return add_flow(r, raw, f->value, false, err);
    case TP_PF_EVENT_END_FLOWS:
    case TP_PF_EVENT_END_FLOWS_OLD:
        return add_flow(r, raw, f->value, true, err);
    default:
        return TP_OK;
    }
}

/* Any field that the loop below does not know by its tag. */
static int take_rare(struct tp_pf_reader *r, const struct tp_pb_field *f,
                     struct tp_pf_raw *raw, struct tp_event *ev, struct tp_err *err)
{
    struct tp_name cat;
    int rc;

    if (f->number >= TP_PF_X_EVENT_DUR_NS)
        return take_private(r, f, raw, ev, err);
    if (f->wire != TP_PB_BYTES)
        return take_number(r, f, raw, err);
    switch (f->number) {
    case TP_PF_EVENT_NAME:
        return inline_name(r, f, &ev->name, err);
    case TP_PF_EVENT_CATEGORIES:
        rc = inline_name(r, f, &cat, err);
        return rc == TP_OK ? take_category(r, cat, raw, ev, err) : rc;
    case TP_PF_EVENT_LEGACY:
        return read_legacy((struct tp_str){f->bytes, f->value}, raw, ev) ? TP_OK
                                                                         : TP_EINVAL;
    default:
        return TP_OK;
    }
}

static inline int take_arg(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                           const struct tp_pb_field *f, struct tp_pf_raw *raw,
                           struct tp_event *ev, struct tp_err *err)
{
    int rc = tp_pf_reader_reserve_args(r, ev->n_args + 1, err);

    if (rc == TP_OK)
        rc = tp_pf_reader_arg(r, q, (struct tp_str){f->bytes, f->value},
                              &r->args[ev->n_args], err);
    if (rc == TP_OK)
        ev->n_args++;
    if (rc != TP_ENOTFOUND)
        return rc;
    raw->is_broken = true;
    return TP_OK;
}

int tp_pf_reader_decode(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                        struct tp_str bytes, struct tp_pf_raw *raw, struct tp_event *ev,
                        struct tp_err *err)
{
    const char *p = bytes.ptr;
    const char *end = bytes.ptr + bytes.len;
    struct tp_pb_field f;
    int rc = TP_OK;

    while (p < end && rc == TP_OK) {
        p = tp_pb_next_field(p, end, &f);
        if (p == NULL)
            return TP_EINVAL;
        switch (f.tag) {
        case VARINT_TAG(TP_PF_EVENT_TYPE):
            raw->type = byte_of(f.value);
            break;
        case VARINT_TAG(TP_PF_EVENT_TRACK_UUID):
            raw->track_uuid = f.value;
            raw->has_track = true;
            break;
        case VARINT_TAG(TP_PF_EVENT_NAME_IID):
            ev->name = tp_pf_sequence_text(q, TP_PF_INDEX_NAME, f.value);
            raw->is_broken |= ev->name.ptr == NULL;
            break;
        case VARINT_TAG(TP_PF_EVENT_CATEGORY_IIDS): {
            struct tp_name cat = tp_pf_sequence_text(q, TP_PF_INDEX_CATEGORY, f.value);

            raw->is_broken |= cat.ptr == NULL;
            rc = take_category(r, cat, raw, ev, err);
            break;
        }
        case BYTES_TAG(TP_PF_EVENT_ARGS):
            rc = take_arg(r, q, &f, raw, ev, err);
            break;
        case VARINT_TAG(TP_PF_X_EVENT_DUR_NS):
            raw->has_dur = true;
            ev->dur_ns = (int64_t)f.value;
            break;
        default:
            rc = take_rare(r, &f, raw, ev, err);
            break;
        }
    }
    ev->args = r->args;
    return rc;
}
