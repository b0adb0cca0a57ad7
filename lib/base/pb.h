/*
 * pb.h - the protobuf wire format: tags, varints, fixed numbers, lengths.
 *
 * Writers append at a pointer and return the next one: the caller has reserved the
 * room before (TP_PB_..._MAX says how much a thing can take). Readers move a cursor
 * and are total: any bytes give a value or false. It knows no message. Pure functions
 * on the caller's memory; safe from any thread.
 */
#ifndef TP_BASE_PB_H
#define TP_BASE_PB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "pb.h writes fixed numbers as they lie in memory: little-endian machines only"
#endif

/* Wire types (protobuf encoding, "message structure"). 3 and 4, groups, are refused. */
enum tp_pb_wire {
    TP_PB_VARINT = 0,
    TP_PB_FIXED64 = 1,
    TP_PB_BYTES = 2,
    TP_PB_FIXED32 = 5
};

#define TP_PB_TAG(field, wire) (((uint32_t)(field) << 3) | (uint32_t)(wire))

#define TP_PB_VARINT_MAX 10 /* most bytes of a varint */
#define TP_PB_TAG_MAX 5     /* most bytes of a tag */
#define TP_PB_SLACK 16      /* a writer may touch this many bytes behind what it adds */

/* How many bytes v takes as a varint, 1 to 10. */
static inline unsigned tp_pb_varint_bytes(uint64_t v)
{
    return ((unsigned)(63 - __builtin_clzll(v | 1)) * 9 + 73) / 64;
}

/* Write v in 1 to 10 bytes. Room: TP_PB_SLACK bytes at p. */
static inline char *tp_pb_put_varint(char *p, uint64_t v)
{
    unsigned n;
    uint64_t x;

    if (v < 0x80) {
        *p = (char)v;
        return p + 1;
    }
    n = tp_pb_varint_bytes(v);
    /* Spread the low 56 bits, 7 to a byte, in three steps of doubling. */
    x = v & 0x00ffffffffffffffULL;
    x = (x & 0x000000000fffffffULL) | ((x & 0x00fffffff0000000ULL) << 4);
    x = (x & 0x00003fff00003fffULL) | ((x & 0x0fffc0000fffc000ULL) << 2);
    x = (x & 0x007f007f007f007fULL) | ((x & 0x3f803f803f803f80ULL) << 1);
    if (n <= 8) {
        x |= 0x8080808080808080ULL & ((1ULL << (8 * n - 8)) - 1);
        memcpy(p, &x, 8);
        return p + n;
    }
    x |= 0x8080808080808080ULL;
    memcpy(p, &x, 8);
    p[8] = (char)((v >> 56) & 0x7f);
    if (n == 10) {
        p[8] = (char)(p[8] | 0x80);
        p[9] = 1; /* bit 63 */
    }
    return p + n;
}

/* Signed numbers near 0 as small unsigned ones (sint64). */
static inline uint64_t tp_pb_zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

/* The inverse of tp_pb_zigzag(). */
static inline int64_t tp_pb_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* Write a tag. With constant arguments this is a store or two. */
static inline char *tp_pb_put_tag(char *p, uint32_t field, enum tp_pb_wire wire)
{
    uint32_t tag = TP_PB_TAG(field, wire);

    while (tag >= 0x80) {
        *p++ = (char)(tag | 0x80);
        tag >>= 7;
    }
    *p++ = (char)tag;
    return p;
}

/* Write a varint field: tag and number. */
static inline char *tp_pb_put_u64(char *p, uint32_t field, uint64_t v)
{
    return tp_pb_put_varint(tp_pb_put_tag(p, field, TP_PB_VARINT), v);
}

/* Write a fixed64 field. */
static inline char *tp_pb_put_fixed64(char *p, uint32_t field, uint64_t v)
{
    p = tp_pb_put_tag(p, field, TP_PB_FIXED64);
    memcpy(p, &v, sizeof(v));
    return p + sizeof(v);
}

/* Write a fixed32 field. */
static inline char *tp_pb_put_fixed32(char *p, uint32_t field, uint32_t v)
{
    p = tp_pb_put_tag(p, field, TP_PB_FIXED32);
    memcpy(p, &v, sizeof(v));
    return p + sizeof(v);
}

/* Write a double field. */
static inline char *tp_pb_put_double(char *p, uint32_t field, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return tp_pb_put_fixed64(p, field, bits);
}

/* Write a string or bytes field; n bytes from s. s may be NULL when n is 0. */
static inline char *tp_pb_put_bytes(char *p, uint32_t field, const char *s, size_t n)
{
    p = tp_pb_put_tag(p, field, TP_PB_BYTES);
    p = tp_pb_put_varint(p, n);
    if (n > 0)
        memcpy(p, s, n);
    return p + n;
}

/* The room that tp_pb_put_bytes() needs for n bytes. */
static inline size_t tp_pb_bytes_room(size_t n)
{
    return TP_PB_TAG_MAX + TP_PB_VARINT_MAX + n;
}

/*
 * Write a length into `width` bytes that were left free for it: 1 byte up to 127, 2 up
 * to 16383, 4 up to 2^28 - 1. Padded varints are valid, and Perfetto's own writers use
 * them for the same reason: the length is not known when its place is passed.
 */
static inline void tp_pb_put_length(char *p, unsigned width, size_t n)
{
    for (unsigned i = 0; i + 1 < width; i++) {
        p[i] = (char)(n | 0x80);
        n >>= 7;
    }
    p[width - 1] = (char)n;
}

/* The smallest width of tp_pb_put_length() for a length of at most n; 0 if none. */
static inline unsigned tp_pb_length_width(size_t n)
{
    return n < 1u << 7 ? 1 : n < 1u << 14 ? 2 : n < 1u << 28 ? 4 : 0;
}

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
