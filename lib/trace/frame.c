/*
 * frame.c - the layout of a frame header:
 *
 *     0a LL LL              trace.packet, length in two bytes
 *       f2 ea 04 LL LL      packet field 9902, length in two bytes
 *         1  fixed64        payload_bytes
 *         2  fixed32        crc32c of the payload
 *         3  fixed32        flags: 1 has_seq, 2 has_base, 4 is_native
 *         4  fixed64        seq
 *         5  fixed64        base_ns
 *         6..10 fixed64     emitted, stored, filtered, repaired, untyped
 *         11 fixed64        bytes
 *         16..31 fixed64    dropped, by cause
 *         15 fixed32        crc32c of all bytes of the header before this field
 *
 * All numbers have a fixed size, so that a header can be found, checked and written
 * over at a known place. The check sum of the header itself tells a damaged header from
 * a damaged payload; without it a wrong length would lead the scan astray.
 */
#include "trace/frame.h"

#include <assert.h>
#include <isa-l/crc.h>
#include <string.h>

#include "base/err.h"
#include "base/pb_read.h"
#include "trace/pf_fields.h"

enum {
    FIELD_PAYLOAD_BYTES = 1,
    FIELD_CRC = 2,
    FIELD_FLAGS = 3,
    FIELD_SEQ = 4,
    FIELD_BASE = 5,
    FIELD_EMITTED = 6,
    FIELD_STORED = 7,
    FIELD_FILTERED = 8,
    FIELD_REPAIRED = 9,
    FIELD_UNTYPED = 10,
    FIELD_BYTES = 11,
    FIELD_HEADER_CRC = 15,
    FIELD_DROPPED = 16
};

#define FLAG_SEQ 1u
#define FLAG_BASE 2u
#define FLAG_NATIVE 4u
#define PREFIX_BYTES 8 /* tags and lengths of packet and header message */
#define CRC_BYTES 5    /* the last field, tag and number */
#define CONTENT_BYTES (TP_FRAME_BYTES - PREFIX_BYTES)
#define CRC_CHUNK ((size_t)1 << 30) /* isa-l takes an int */

_Static_assert(TP_DROP_CAUSES <= TP_FRAME_CAUSES,
               "a header has no room for the causes");

uint32_t tp_frame_crc(uint32_t crc, const void *p, size_t n)
{
    const unsigned char *at = p;

    crc = ~crc;
    while (n > 0) {
        size_t step = n < CRC_CHUNK ? n : CRC_CHUNK;

        /* isa-l does not write to the buffer; its prototype lacks the const. */
        crc = crc32_iscsi((unsigned char *)(uintptr_t)at, (int)step, crc);
        at += step;
        n -= step;
    }
    return ~crc;
}

static char *put_prefix(char *p)
{
    p = tp_pb_put_tag(p, TP_PF_TRACE_PACKET, TP_PB_BYTES);
    tp_pb_put_length(p, 2, TP_FRAME_BYTES - 3);
    p = tp_pb_put_tag(p + 2, TP_PF_X_PACKET_FRAME, TP_PB_BYTES);
    tp_pb_put_length(p, 2, CONTENT_BYTES);
    return p + 2;
}

void tp_frame_encode(const struct tp_frame *f, char *out)
{
    const struct tp_counts *c = &f->counts;
    char *p = put_prefix(out);

    p = tp_pb_put_fixed64(p, FIELD_PAYLOAD_BYTES, f->payload_bytes);
    p = tp_pb_put_fixed32(p, FIELD_CRC, f->crc32c);
    p = tp_pb_put_fixed32(p, FIELD_FLAGS,
                          (f->has_seq ? FLAG_SEQ : 0) | (f->has_base ? FLAG_BASE : 0) |
                              (f->is_native ? FLAG_NATIVE : 0));
    p = tp_pb_put_fixed64(p, FIELD_SEQ, f->seq);
    p = tp_pb_put_fixed64(p, FIELD_BASE, (uint64_t)f->base_ns);
    p = tp_pb_put_fixed64(p, FIELD_EMITTED, c->emitted);
    p = tp_pb_put_fixed64(p, FIELD_STORED, c->stored);
    p = tp_pb_put_fixed64(p, FIELD_FILTERED, c->filtered);
    p = tp_pb_put_fixed64(p, FIELD_REPAIRED, c->repaired);
    p = tp_pb_put_fixed64(p, FIELD_UNTYPED, c->untyped);
    p = tp_pb_put_fixed64(p, FIELD_BYTES, c->bytes);
    for (uint32_t i = 0; i < TP_FRAME_CAUSES; i++)
        p = tp_pb_put_fixed64(p, FIELD_DROPPED + i,
                              i < TP_DROP_CAUSES ? c->dropped[i] : 0);
    p = tp_pb_put_fixed32(p, FIELD_HEADER_CRC, tp_frame_crc(0, out, (size_t)(p - out)));
    assert(p == out + TP_FRAME_BYTES);
}

static void take_field(const struct tp_pb_field *f, struct tp_frame *out)
{
    struct tp_counts *c = &out->counts;
    uint64_t *const counts[] = {
        [FIELD_EMITTED] = &c->emitted,   [FIELD_STORED] = &c->stored,
        [FIELD_FILTERED] = &c->filtered, [FIELD_REPAIRED] = &c->repaired,
        [FIELD_UNTYPED] = &c->untyped,   [FIELD_BYTES] = &c->bytes,
    };

    if (f->number >= FIELD_EMITTED && f->number <= FIELD_BYTES)
        *counts[f->number] = f->value;
    else if (f->number >= FIELD_DROPPED && f->number < FIELD_DROPPED + TP_DROP_CAUSES)
        c->dropped[f->number - FIELD_DROPPED] = f->value;
    else if (f->number == FIELD_PAYLOAD_BYTES)
        out->payload_bytes = f->value;
    else if (f->number == FIELD_CRC)
        out->crc32c = (uint32_t)f->value;
    else if (f->number == FIELD_SEQ)
        out->seq = f->value;
    else if (f->number == FIELD_BASE)
        out->base_ns = (int64_t)f->value;
    if (f->number == FIELD_FLAGS) {
        out->has_seq = (f->value & FLAG_SEQ) != 0;
        out->has_base = (f->value & FLAG_BASE) != 0;
        out->is_native = (f->value & FLAG_NATIVE) != 0;
    }
}

int tp_frame_decode_content(struct tp_str content, struct tp_frame *out,
                            struct tp_err *err)
{
    char whole[TP_FRAME_BYTES];

    if (content.len != CONTENT_BYTES)
        return tp_fail(err, TP_EINVAL, "a frame header of %zu bytes is none",
                       content.len);
    memcpy(put_prefix(whole), content.ptr, content.len);
    return tp_frame_decode(whole, sizeof(whole), out, err);
}

int tp_frame_decode(const char *p, size_t n, struct tp_frame *out, struct tp_err *err)
{
    char prefix[PREFIX_BYTES];
    struct tp_pb c;
    struct tp_pb_field f;
    struct tp_frame frame = {0};

    put_prefix(prefix);
    if (n < TP_FRAME_BYTES || memcmp(p, prefix, PREFIX_BYTES) != 0)
        return tp_fail(err, TP_EINVAL, "there is no frame header");
    c = (struct tp_pb){p + TP_FRAME_BYTES - CRC_BYTES, p + TP_FRAME_BYTES};
    if (!tp_pb_get_field(&c, &f) || f.number != FIELD_HEADER_CRC || c.p != c.end ||
        f.value != tp_frame_crc(0, p, TP_FRAME_BYTES - CRC_BYTES))
        return tp_fail(err, TP_EINVAL, "a frame header is damaged");
    c = (struct tp_pb){p + PREFIX_BYTES, p + TP_FRAME_BYTES - CRC_BYTES};
    while (c.p < c.end) {
        if (!tp_pb_get_field(&c, &f))
            return tp_fail(err, TP_EINVAL, "a frame header is damaged");
        take_field(&f, &frame);
    }
    if (frame.payload_bytes > TP_FRAME_PAYLOAD_MAX)
        return tp_fail(err, TP_EINVAL, "a frame header claims %llu bytes",
                       (unsigned long long)frame.payload_bytes);
    *out = frame;
    return TP_OK;
}
