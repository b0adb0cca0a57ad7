/*
 * pb.h - writing the protobuf wire format: tags, varints, fixed numbers, lengths.
 *
 * Functions append at a pointer and return the next one: the caller has reserved the
 * room before (TP_PB_..._MAX says how much a thing can take). pb_read.h reads. It knows
 * no message. Pure functions on the caller's memory; safe from any thread.
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

/* As tp_pb_put_varint() for 2^28 and above. */
static inline char *tp_pb_put_long_varint(char *p, uint64_t v)
{
    unsigned n = tp_pb_varint_bytes(v);
    uint64_t x = v & 0x00ffffffffffffffULL;

    /* Spread the low 56 bits, 7 to a byte, in three steps of doubling. */
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

/* Write v in 1 to 10 bytes. Room: TP_PB_SLACK bytes at p. */
static inline __attribute__((always_inline)) char *tp_pb_put_varint(char *p, uint64_t v)
{
    unsigned n;
    uint32_t x;

    if (v < 0x80) {
        *p = (char)v;
        return p + 1;
    }
    if (v >= 1U << 28)
        return tp_pb_put_long_varint(p, v);
    n = tp_pb_varint_bytes(v);
    x = ((uint32_t)v & 0x3fffU) | (((uint32_t)v & 0xfffc000U) << 2);
    x = (x & 0x007f007fU) | ((x & 0x3f803f80U) << 1);
    x |= 0x00808080U & ((1U << (8 * n - 8)) - 1);
    memcpy(p, &x, 4);
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
static inline __attribute__((always_inline)) char *tp_pb_put_u64(char *p,
                                                                 uint32_t field,
                                                                 uint64_t v)
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

#endif
