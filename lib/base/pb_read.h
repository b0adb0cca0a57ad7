/*
 * pb_read.h - reading the protobuf wire format.
 *
 * Readers are total: any bytes give a value, or false or NULL, and never more than the
 * input is looked at. It knows no message. Pure functions on the caller's memory; safe
 * from any thread.
 */
#ifndef TP_BASE_PB_READ_H
#define TP_BASE_PB_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/pb.h"

/* A cursor over bytes: reads move p forward, never past end. */
struct tp_pb {
    const char *p;
    const char *end;
};

/* One field as it is on the wire. */
struct tp_pb_field {
    uint32_t tag;    /* TP_PB_TAG(number, wire): both in one comparison */
    uint32_t number; /* 1 to 2^29 - 1 */
    enum tp_pb_wire wire;
    uint64_t value;    /* the number, or the length of bytes */
    const char *bytes; /* of TP_PB_BYTES; points into the input */
};

/* The slow path of tp_pb_varint(): near the end of the input, byte by byte. */
const char *tp_pb_varint_slow(const char *p, const char *end, uint64_t *v);

/*
 * Read a varint of at most 10 bytes at p; bits above 64 are dropped, as protobuf does.
 * Returns its end, or NULL: it does not end.
 *
 * Pointers go by value here and in tp_pb_next_field(): a cursor in memory that is
 * written in halves and copied as a whole costs a stalled load each time.
 */
static inline const char *tp_pb_varint(const char *p, const char *end, uint64_t *v)
{
    const unsigned char *u = (const unsigned char *)p;
    uint64_t x;
    uint64_t stops;
    unsigned n;

    if (p < end && u[0] < 0x80) {
        *v = u[0];
        return p + 1;
    }
    if (end - p < TP_PB_VARINT_MAX)
        return tp_pb_varint_slow(p, end, v);
    memcpy(&x, p, 8);
    stops = ~x & 0x8080808080808080ULL;
    n = 8;
    if (stops != 0) {
        n = ((unsigned)__builtin_ctzll(stops) + 1) / 8;
        x &= ~0ULL >> (64 - 8 * n);
    }
    x &= 0x7f7f7f7f7f7f7f7fULL;
    x = (x & 0x007f007f007f007fULL) | ((x & 0x7f007f007f007f00ULL) >> 1);
    x = (x & 0x00003fff00003fffULL) | ((x & 0x3fff00003fff0000ULL) >> 2);
    x = (x & 0x000000000fffffffULL) | ((x & 0x0fffffff00000000ULL) >> 4);
    if (stops == 0) {
        x |= (uint64_t)(u[8] & 0x7f) << 56;
        n = 9;
        if (u[8] >= 0x80) {
            if (u[9] >= 0x80)
                return NULL;
            x |= (uint64_t)u[9] << 63;
            n = 10;
        }
    }
    *v = x;
    return p + n;
}

/* As tp_pb_varint() at a cursor, which stays on false. */
static inline bool tp_pb_get_varint(struct tp_pb *c, uint64_t *v)
{
    const char *p = tp_pb_varint(c->p, c->end, v);

    if (p == NULL)
        return false;
    c->p = p;
    return true;
}

/* Read the tag and value of the next field. False: it is damaged or at the end; the
 * cursor stays. A field number 0 and groups are damage. */
bool tp_pb_get_field(struct tp_pb *c, struct tp_pb_field *f);

/* As tp_pb_get_field(), with numbers and bytes inline, for the loops of the event path:
 * returns the end of the field, or NULL. */
static inline const char *tp_pb_next_field(const char *p, const char *end,
                                           struct tp_pb_field *f)
{
    uint64_t tag;
    struct tp_pb c = {p, end};

    p = tp_pb_varint(p, end, &tag);
    if (p == NULL || tag < 8 || tag > UINT32_MAX)
        return NULL;
    f->tag = (uint32_t)tag;
    f->number = (uint32_t)tag >> 3;
    f->bytes = NULL;
    if ((tag & 7) == TP_PB_VARINT) {
        f->wire = TP_PB_VARINT;
        return tp_pb_varint(p, end, &f->value);
    }
    if ((tag & 7) == TP_PB_BYTES) {
        f->wire = TP_PB_BYTES;
        p = tp_pb_varint(p, end, &f->value);
        if (p == NULL || f->value > (size_t)(end - p))
            return NULL;
        f->bytes = p;
        return p + f->value;
    }
    return tp_pb_get_field(&c, f) ? c.p : NULL;
}

/* The double of a TP_PB_FIXED64 field. */
static inline double tp_pb_double(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof(d));
    return d;
}

#endif
