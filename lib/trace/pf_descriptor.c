/*
 * pf_descriptor.c - the layout of the packets without events.
 *
 * Each length is computed after its bytes are there and put into four bytes that were
 * left free: descriptors are rare, so their size does not matter.
 */
#include "trace/pf_descriptor.h"

#include "base/pb.h"
#include "trace/pf_fields.h"

#define LENGTH_WIDTH 4
#define FIXED_ROOM 160 /* all tags, lengths and numbers of a descriptor */

static size_t id_text_bytes(const struct tp_id *id)
{
    return id != NULL && id->kind == TP_ID_TEXT ? id->text.len : 0;
}

size_t tp_pf_descriptor_room(const struct tp_pf_descriptor *d)
{
    return FIXED_ROOM + tp_pb_bytes_room(d->name.len) +
           tp_pb_bytes_room(d->process_name.len) +
           tp_pb_bytes_room(d->thread_name.len) + tp_pb_bytes_room(d->series.len) +
           tp_pb_bytes_room(d->unit.len) + tp_pb_bytes_room(id_text_bytes(d->pid)) +
           tp_pb_bytes_room(id_text_bytes(d->tid)) + tp_pb_bytes_room(d->own_name.len) +
           TP_PB_SLACK;
}

/* Begin a message: its tag and room for the length, whose place goes to *at. */
static char *open_message(char *p, uint32_t field, char **at)
{
    p = tp_pb_put_tag(p, field, TP_PB_BYTES);
    *at = p;
    return p + LENGTH_WIDTH;
}

static void close_message(char *p, char *at)
{
    tp_pb_put_length(at, LENGTH_WIDTH, (size_t)(p - at) - LENGTH_WIDTH);
}

static char *put_id(char *p, const struct tp_id *id, uint32_t number_field,
                    uint32_t text_field)
{
    if (id == NULL)
        return p;
    if (id->kind == TP_ID_NUMBER)
        p = tp_pb_put_u64(p, number_field, tp_pb_zigzag(id->number));
    else if (id->kind == TP_ID_TEXT)
        p = tp_pb_put_bytes(p, text_field, id->text.ptr, id->text.len);
    return p;
}

/* The body of a CounterDescriptor. Older viewers know only units that have numbers. */
static char *put_unit(char *p, struct tp_str unit)
{
    static const char *const numbered[] = {"ns", "count", "bytes"};

    for (unsigned i = 0; i < sizeof(numbered) / sizeof(*numbered); i++)
        if (tp_str_is(unit, numbered[i]))
            p = tp_pb_put_u64(p, TP_PF_COUNTER_UNIT, i + 1);
    return tp_pb_put_bytes(p, TP_PF_COUNTER_UNIT_NAME, unit.ptr, unit.len);
}

/* What viewers read. int32 fields are sign-extended to 64 bits on the wire. */
static char *put_public(char *p, const struct tp_pf_descriptor *d)
{
    char *at;

    p = tp_pb_put_u64(p, TP_PF_TRACK_UUID, d->uuid);
    if (d->parent_uuid != 0)
        p = tp_pb_put_u64(p, TP_PF_TRACK_PARENT, d->parent_uuid);
    if (d->name.len > 0)
        p = tp_pb_put_bytes(p, TP_PF_TRACK_NAME, d->name.ptr, d->name.len);
    if (d->has_process) {
        p = open_message(p, TP_PF_TRACK_PROCESS, &at);
        p = tp_pb_put_u64(p, TP_PF_PROCESS_PID, (uint64_t)(int64_t)d->shown_pid);
        if (d->process_name.len > 0)
            p = tp_pb_put_bytes(p, TP_PF_PROCESS_NAME, d->process_name.ptr,
                                d->process_name.len);
        close_message(p, at);
    }
    if (d->has_thread) {
        p = open_message(p, TP_PF_TRACK_THREAD, &at);
        p = tp_pb_put_u64(p, TP_PF_THREAD_PID, (uint64_t)(int64_t)d->shown_pid);
        p = tp_pb_put_u64(p, TP_PF_THREAD_TID, (uint64_t)(int64_t)d->shown_tid);
        if (d->thread_name.len > 0)
            p = tp_pb_put_bytes(p, TP_PF_THREAD_NAME, d->thread_name.ptr,
                                d->thread_name.len);
        close_message(p, at);
    }
    if (d->kind == TP_PF_KIND_SERIES) {
        p = open_message(p, TP_PF_TRACK_COUNTER, &at);
        if (d->unit.len > 0)
            p = put_unit(p, d->unit);
        close_message(p, at);
    }
    return p;
}

/* What tp_pf_reader reads. */
static char *put_private(char *p, const struct tp_pf_descriptor *d)
{
    p = tp_pb_put_u64(p, TP_PF_X_TRACK_KIND, d->kind);
    p = put_id(p, d->pid, TP_PF_X_TRACK_PID_NUMBER, TP_PF_X_TRACK_PID_TEXT);
    p = put_id(p, d->tid, TP_PF_X_TRACK_TID_NUMBER, TP_PF_X_TRACK_TID_TEXT);
    if (d->lane != 0)
        p = tp_pb_put_u64(p, TP_PF_X_TRACK_LANE, d->lane);
    if (d->kind == TP_PF_KIND_SERIES)
        p = tp_pb_put_bytes(p, TP_PF_X_TRACK_SERIES, d->series.ptr, d->series.len);
    if (d->own_name.len > 0)
        p = tp_pb_put_bytes(p, TP_PF_X_TRACK_OWN_NAME, d->own_name.ptr,
                            d->own_name.len);
    return p;
}

char *tp_pf_put_descriptor(char *p, uint32_t sequence_id,
                           const struct tp_pf_descriptor *d)
{
    char *packet;
    char *track;

    p = open_message(p, TP_PF_TRACE_PACKET, &packet);
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_ID, sequence_id);
    p = open_message(p, TP_PF_PACKET_TRACK_DESCRIPTOR, &track);
    p = put_public(p, d);
    p = put_private(p, d);
    close_message(p, track);
    close_message(p, packet);
    return p;
}

int tp_pf_write_descriptor(struct tp_buf *out, uint32_t sequence_id,
                           const struct tp_pf_descriptor *d, struct tp_err *err)
{
    int rc = tp_buf_reserve(out, tp_pf_descriptor_room(d), err);
    char *p;

    if (rc != TP_OK)
        return rc;
    p = tp_pf_put_descriptor(out->data + out->len, sequence_id, d);
    out->len = (size_t)(p - out->data);
    return TP_OK;
}

char *tp_pf_put_clear(char *p, uint32_t sequence_id)
{
    char *at;

    p = tp_pb_put_tag(p, TP_PF_TRACE_PACKET, TP_PB_BYTES);
    at = p++;
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_ID, sequence_id);
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_FLAGS, TP_PF_SEQUENCE_CLEARED);
    p = tp_pb_put_u64(p, TP_PF_X_PACKET_VERSION, TP_PF_FORMAT_VERSION);
    tp_pb_put_length(at, 1, (size_t)(p - at) - 1);
    return p;
}

int tp_pf_write_clear(struct tp_buf *out, uint32_t sequence_id, struct tp_err *err)
{
    int rc = tp_buf_reserve(out, TP_PF_CLEAR_MAX, err);

    if (rc == TP_OK)
        out->len =
            (size_t)(tp_pf_put_clear(out->data + out->len, sequence_id) - out->data);
    return rc;
}

int tp_pf_series_name(struct tp_buf *out, struct tp_str counter, struct tp_str series,
                      struct tp_err *err)
{
    bool is_alone = series.len == 0 || tp_str_is(series, "value") ||
                    tp_str_equal(series, counter);
    size_t before = out->len;
    int rc = tp_buf_append(out, counter.ptr, counter.len, err);

    if (rc == TP_OK && !is_alone && counter.len > 0)
        rc = tp_buf_append(out, " ", 1, err);
    if (rc == TP_OK && !is_alone)
        rc = tp_buf_append(out, series.ptr, series.len, err);
    if (rc != TP_OK)
        out->len = before;
    return rc;
}
