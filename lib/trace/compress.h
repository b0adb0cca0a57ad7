/*
 * compress.h - a stream of bytes as gzip, zstd or unchanged.
 *
 * Push style: bytes go in, compressed bytes are appended to a buffer of the caller.
 * The output depends on the bytes and on how they were cut into calls, and on nothing
 * else: the same calls give the same output, which is what ETags and ranges of a
 * regenerated download need. It holds less than 4 MiB. One thread at a time.
 */
#ifndef TP_TRACE_COMPRESS_H
#define TP_TRACE_COMPRESS_H

#include <stddef.h>

struct tp_buf;
struct tp_compressor;
struct tp_err;

enum tp_compression {
    TP_COMPRESS_IDENTITY,
    TP_COMPRESS_GZIP, /* one member, no name, no time */
    TP_COMPRESS_ZSTD, /* one frame, with a checksum */
    TP_COMPRESSIONS
};

/* The name as in Content-Encoding: "identity", "gzip", "zstd"; never NULL. */
const char *tp_compression_name(enum tp_compression kind);

/*
 * Create a compressor.
 *
 * out  set only on success; release it with tp_compressor_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_compressor_new(enum tp_compression kind, struct tp_compressor **out,
                      struct tp_err *err);

/* Release a compressor at any point. NULL is allowed. */
void tp_compressor_free(struct tp_compressor *c);

/*
 * Compress n more bytes; what is ready is appended to out.
 *
 * TP_ENOMEM, TP_EQUOTA, TP_EIO  the stream is broken off and only
 *     tp_compressor_free() is allowed; out holds a useless beginning.
 */
int tp_compressor_add(struct tp_compressor *c, const char *p, size_t n,
                      struct tp_buf *out, struct tp_err *err);

/*
 * Append the end of the stream. No other call may follow but tp_compressor_free().
 * Errors as tp_compressor_add().
 */
int tp_compressor_finish(struct tp_compressor *c, struct tp_buf *out,
                         struct tp_err *err);

#endif
