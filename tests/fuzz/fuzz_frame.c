/*
 * fuzz_frame.c - a log of any bytes is recovered into a sound one: a second recovery
 * finds nothing, and the counts that are kept are those of its frames.
 *
 * So that the fuzzer need not guess check sums, the input is a list of steps: each byte
 * says what to append, and what follows it is the matter.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "trace/stream_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BLOB_MAX ((size_t)1 << 16)

/* The one blob of a home. */
struct one_blob {
    struct tp_blob base;
    char bytes[BLOB_MAX];
    size_t len;
};

static struct one_blob blob;

static void check(bool holds)
{
    if (!holds)
        abort();
}

static int one_open(void *ctx, const char *name, struct tp_blob **out,
                    struct tp_err *err)
{
    (void)ctx;
    (void)name;
    (void)err;
    *out = &blob.base;
    return TP_OK;
}

static int one_append(struct tp_blob *b, const void *p, size_t n, struct tp_err *err)
{
    (void)b;
    if (n > BLOB_MAX - blob.len)
        return tp_fail(err, TP_EQUOTA, "full");
    memcpy(blob.bytes + blob.len, p, n);
    blob.len += n;
    return TP_OK;
}

static int one_pwrite(struct tp_blob *b, uint64_t offset, const void *p, size_t n,
                      struct tp_err *err)
{
    (void)b;
    (void)err;
    check(offset <= blob.len && n <= blob.len - offset);
    memcpy(blob.bytes + offset, p, n);
    return TP_OK;
}

static int one_pread(struct tp_blob *b, uint64_t offset, void *p, size_t n, size_t *got,
                     struct tp_err *err)
{
    size_t there = offset < blob.len ? blob.len - (size_t)offset : 0;

    (void)b;
    (void)err;
    *got = n < there ? n : there;
    memcpy(p, blob.bytes + (there > 0 ? offset : 0), *got);
    return TP_OK;
}

static int one_truncate(struct tp_blob *b, uint64_t size_bytes, struct tp_err *err)
{
    (void)b;
    (void)err;
    check(size_bytes <= blob.len);
    blob.len = (size_t)size_bytes;
    return TP_OK;
}

static uint64_t one_size(struct tp_blob *b)
{
    (void)b;
    return blob.len;
}

static void one_close(void *ctx, struct tp_blob *b)
{
    (void)ctx;
    (void)b;
}

static const struct tp_blobs home = {.open_append = one_open,
                                     .append = one_append,
                                     .pwrite = one_pwrite,
                                     .pread = one_pread,
                                     .truncate = one_truncate,
                                     .size = one_size,
                                     .close = one_close};

/* Append a frame by the book, raw bytes, or damage what is there. */
static size_t step(const uint8_t *data, size_t size)
{
    size_t n = size > 1 ? data[1] : 0;
    struct tp_frame frame = {.has_seq = (data[0] & 4) != 0, .seq = n};
    char header[TP_FRAME_BYTES];

    n = n < size - 1 ? n : size - 1;
    switch (data[0] & 3) {
    case 0:
        one_append(&blob.base, data + 1, n, NULL);
        break;
    case 1:
        if (blob.len > 0)
            blob.bytes[(data[0] >> 2) * 37 % blob.len] ^= (char)n;
        break;
    default:
        frame.payload_bytes = n;
        frame.crc32c = tp_frame_crc(0, data + 1, n);
        frame.counts.stored = n;
        tp_frame_encode(&frame, header);
        one_append(&blob.base, header, sizeof(header), NULL);
        one_append(&blob.base, data + 1, n, NULL);
        break;
    }
    return 1 + n;
}

/* Recover, and check the report against the frames. */
static struct tp_stream_log_report recover(void)
{
    struct tp_stream_log_report report;
    struct tp_stream_log *log;
    struct tp_frame frame;
    struct tp_counts sum = {0};
    uint64_t offset = 0;
    uint64_t payload_offset;
    uint64_t n = 0;

    check(tp_stream_log_open(&home, "x", &log, &report, NULL) == TP_OK);
    check(report.kept_bytes == blob.len && tp_stream_log_size(log) == blob.len);
    while (tp_stream_log_next(&blob.base, blob.len, &offset, &frame, &payload_offset,
                              NULL) == TP_OK) {
        tp_counts_add(&sum, &frame.counts);
        n++;
    }
    check(offset == blob.len && n == report.frames);
    check(memcmp(&sum, &report.counts, sizeof(sum)) == 0);
    tp_stream_log_close(log);
    return report;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tp_stream_log_report report;
    struct tp_frame frame;

    blob.base.home = &home;
    blob.len = 0;
    (void)tp_frame_decode((const char *)data, size, &frame, NULL);
    while (size > 0) {
        size_t used = step(data, size);

        data += used;
        size -= used;
    }
    recover();
    report = recover();
    check(report.cut_bytes == 0 && report.blanked_frames == 0);
    return 0;
}
