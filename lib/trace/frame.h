/*
 * frame.h - the header in front of each batch of a log, and its check sum.
 *
 * A log is frames one after the other: a header packet of constant size and a payload
 * of packets. The header is itself a valid Perfetto packet with one private field, so
 * the whole log loads in any viewer. Encoding and decoding only: no I/O. Pure functions
 * on the caller's memory; safe from any thread.
 */
#ifndef TP_TRACE_FRAME_H
#define TP_TRACE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/counts.h"

struct tp_err;

#define TP_FRAME_CAUSES 16                /* drop causes that a header has room for */
#define TP_FRAME_BYTES 264                /* of a header on disk, always */
#define TP_FRAME_PAYLOAD_MAX (1ULL << 40) /* longest payload, in bytes */

/* Plain data. */
struct tp_frame {
    uint64_t payload_bytes; /* at most TP_FRAME_PAYLOAD_MAX */
    uint32_t crc32c;        /* of the payload, see tp_frame_crc() */
    bool has_seq;           /* the batch was numbered by its sender */
    uint64_t seq;           /* with has_seq */
    bool has_base;   /* the batch says what its times count from: it named a base, or
                        its clock is its format's */
    int64_t base_ns; /* add to every timestamp of the payload; 0 without has_base, and
                        when that was done before */
    bool is_native;  /* its payload begins with a head of native_batch.h, by whose clock
                       its times are */
    struct tp_counts counts; /* of this batch */
};

/* Write the header of f: TP_FRAME_BYTES bytes at out. */
void tp_frame_encode(const struct tp_frame *f, char *out);

/*
 * Read a header, all of it: tag, length and content.
 *
 * p, n  n bytes; those behind TP_FRAME_BYTES are not looked at.
 * out   set on success only.
 *
 * TP_EINVAL  not such a header, or its own check sum is wrong.
 */
int tp_frame_decode(const char *p, size_t n, struct tp_frame *out, struct tp_err *err);

/*
 * Read the content of a header as tp_pf_reader_frame() gives it.
 *
 * TP_EINVAL  as above.
 */
int tp_frame_decode_content(struct tp_str content, struct tp_frame *out,
                            struct tp_err *err);

/* CRC-32C (Castagnoli) of n bytes at p that come behind bytes with check sum crc;
 * start with 0. */
uint32_t tp_frame_crc(uint32_t crc, const void *p, size_t n);

#endif
