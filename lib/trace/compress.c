/*
 * compress.c - isa-l for gzip, libzstd for zstd.
 *
 * Measured on the 35 MB of JSON of a real GPU trace, one core: isa-l level 1 packs
 * 1.0 GB/s by 13.0, level 3 a quarter of that by 13.1; zlib's level 1 0.2 GB/s. zstd
 * level 1 packs 0.8 GB/s by 21.6 and its higher levels no better. So level 1 both
 * times.
 *
 * Both libraries are given the whole room of the output buffer and called until they
 * want no more, so that how much room there was has no influence on what they write.
 */
#include "trace/compress.h"

#include <assert.h>
#include <isa-l.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/buf.h"
#include "base/err.h"

#define ROOM_BYTES ((size_t)64 << 10) /* least room that a library is called with */
#define IN_BYTES ((size_t)1 << 30)    /* isa-l counts in 32 bits */
#define ZSTD_LEVEL 1

struct tp_compressor {
    enum tp_compression kind;
    ZSTD_CCtx *zstd;
    struct isal_zstream gzip;
    uint8_t level_buf[ISAL_DEF_LVL1_DEFAULT];
};

const char *tp_compression_name(enum tp_compression kind)
{
    static const char *const names[TP_COMPRESSIONS] = {
        [TP_COMPRESS_IDENTITY] = "identity",
        [TP_COMPRESS_GZIP] = "gzip",
        [TP_COMPRESS_ZSTD] = "zstd",
    };

    return (unsigned)kind < TP_COMPRESSIONS ? names[kind] : "identity";
}

static void init_gzip(struct tp_compressor *c)
{
    isal_deflate_init(&c->gzip);
    c->gzip.level = 1;
    c->gzip.level_buf = c->level_buf;
    c->gzip.level_buf_size = sizeof(c->level_buf);
    c->gzip.gzip_flag = IGZIP_GZIP;
}

static int init_zstd(struct tp_compressor *c, struct tp_err *err)
{
    c->zstd = ZSTD_createCCtx();
    if (c->zstd == NULL ||
        ZSTD_isError(
            ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1)))
        return tp_fail(err, TP_ENOMEM, "no memory for a zstd compressor");
    return TP_OK;
}

int tp_compressor_new(enum tp_compression kind, struct tp_compressor **out,
                      struct tp_err *err)
{
    struct tp_compressor *c;
    int rc = TP_OK;

    assert((unsigned)kind < TP_COMPRESSIONS);
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a compressor");
    c->kind = kind;
    if (kind == TP_COMPRESS_GZIP)
        init_gzip(c);
    else if (kind == TP_COMPRESS_ZSTD)
        rc = init_zstd(c, err);
    if (rc != TP_OK) {
        tp_compressor_free(c);
        return rc;
    }
    *out = c;
    return TP_OK;
}

void tp_compressor_free(struct tp_compressor *c)
{
    if (c == NULL)
        return;
    ZSTD_freeCCtx(c->zstd);
    free(c);
}

/* Compress all of the input; with is_end also what the library still holds back. */
static int run_gzip(struct tp_compressor *c, const char *p, size_t n, bool is_end,
                    struct tp_buf *out, struct tp_err *err)
{
    struct isal_zstream *s = &c->gzip;

    s->next_in = (uint8_t *)(uintptr_t)p; /* isa-l does not write there */
    s->avail_in = (uint32_t)n;
    s->end_of_stream = is_end;
    for (;;) {
        size_t room;
        int rc = tp_buf_reserve(out, ROOM_BYTES, err);

        if (rc != TP_OK)
            return rc;
        room = out->cap - out->len;
        room = room < IN_BYTES ? room : IN_BYTES;
        s->next_out = (uint8_t *)out->data + out->len;
        s->avail_out = (uint32_t)room;
        rc = isal_deflate(s);
        if (rc != COMP_OK)
            return tp_fail(err, TP_EIO, "isa-l failed with %d", rc);
        out->len += room - s->avail_out;
        if (s->avail_in == 0 && s->avail_out > 0)
            return TP_OK;
    }
}

static int run_zstd(struct tp_compressor *c, const char *p, size_t n, bool is_end,
                    struct tp_buf *out, struct tp_err *err)
{
    ZSTD_inBuffer in = {p, n, 0};

    for (;;) {
        ZSTD_outBuffer to;
        size_t left;
        int rc = tp_buf_reserve(out, ROOM_BYTES, err);

        if (rc != TP_OK)
            return rc;
        to = (ZSTD_outBuffer){out->data + out->len, out->cap - out->len, 0};
        left = ZSTD_compressStream2(c->zstd, &to, &in,
                                    is_end ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return tp_fail(err,
                           ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation
                               ? TP_ENOMEM
                               : TP_EIO,
                           "zstd failed: %s", ZSTD_getErrorName(left));
        out->len += to.pos;
        if (is_end ? left == 0 : in.pos == n && to.pos < to.size)
            return TP_OK;
    }
}

static int run(struct tp_compressor *c, const char *p, size_t n, bool is_end,
               struct tp_buf *out, struct tp_err *err)
{
    if (c->kind == TP_COMPRESS_GZIP)
        return run_gzip(c, p, n, is_end, out, err);
    if (c->kind == TP_COMPRESS_ZSTD)
        return run_zstd(c, p, n, is_end, out, err);
    return tp_buf_append(out, p, n, err);
}

int tp_compressor_add(struct tp_compressor *c, const char *p, size_t n,
                      struct tp_buf *out, struct tp_err *err)
{
    while (n > 0) {
        size_t part = n < IN_BYTES ? n : IN_BYTES;
        int rc = run(c, p, part, false, out, err);

        if (rc != TP_OK)
            return rc;
        p += part;
        n -= part;
    }
    return TP_OK;
}

int tp_compressor_finish(struct tp_compressor *c, struct tp_buf *out,
                         struct tp_err *err)
{
    return run(c, NULL, 0, true, out, err);
}
