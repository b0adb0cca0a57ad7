/*
 * micro_download.c - how fast a sealed stream leaves, by format and packing.
 *
 * A stream of a million events as Kineto writes them, in memory, so that no disk is
 * measured; it is sealed by pf_writer as the service's seal does it. Prints, a line
 * each, GB/s of what is sent before packing, the packed ratio, the time to the first
 * byte and the most heap that the download had. Medians of three. More than HEAP_MAX of
 * heap ends the program with an error: 240 MB of JSON take no more of it than a few.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/blob.h"
#include "base/buf.h"
#include "trace/download.h"
#include "trace/frame.h"
#include "trace/pf_writer.h"
#include "trace/stream_index.h"

#define N_EVENTS 1000000
#define N_ROUNDS 3
#define N_NAMES 200
#define N_TRACKS 8
#define READ_BYTES 262144
#define HEAP_MAX ((size_t)16 << 20)

/* A blob that reads from a buffer; nothing else of the interface is called. */
struct memory {
    struct tp_blob blob;
    const struct tp_buf *bytes;
};

static int memory_pread(struct tp_blob *blob, uint64_t offset, void *p, size_t n,
                        size_t *got, struct tp_err *err)
{
    const struct tp_buf *b = ((struct memory *)(void *)blob)->bytes;
    size_t left = offset < b->len ? b->len - (size_t)offset : 0;

    (void)err;
    *got = n < left ? n : left;
    if (*got > 0)
        memcpy(p, b->data + offset, *got);
    return TP_OK;
}

static const struct tp_blobs memory_home = {.pread = memory_pread};

struct stream {
    struct tp_buf bytes;
    struct tp_track tracks[N_TRACKS];
    struct tp_index_track index_tracks[N_TRACKS];
    struct tp_stream_index index;
    char names[N_NAMES][32];
};

static void check(int rc, const struct tp_err *err)
{
    if (rc == TP_OK)
        return;
    fprintf(stderr, "micro_download: %s\n", err->message);
    exit(1);
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* per core */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

static void fill_args(struct tp_arg args[5], int64_t i)
{
    static const char *const keys[] = {"External id", "correlation", "stream",
                                       "Input Dims", "est. achieved occupancy %"};

    for (uint32_t k = 0; k < 5; k++) {
        args[k].key = (struct tp_name){keys[k], (uint32_t)strlen(keys[k]), 0};
        args[k].kind = TP_ARG_INT;
        args[k].i = i % (k == 2 ? 30 : 100000) + 7;
    }
    args[3].kind = TP_ARG_JSON;
    args[3].s = tp_str_of("[[64, 64], []]");
    args[4].kind = TP_ARG_DOUBLE;
    args[4].d = (double)(i % 101);
}

static void make_tracks(struct stream *s)
{
    for (uint32_t i = 0; i < N_TRACKS; i++) {
        s->tracks[i].index = i;
        s->tracks[i].pid = (struct tp_id){.kind = TP_ID_NUMBER, .number = 3113936};
        s->tracks[i].tid = (struct tp_id){.kind = TP_ID_NUMBER, .number = 3113936 + i};
        s->index_tracks[i].uuid = tp_pf_track_uuid(1, i, 0);
        s->index_tracks[i].pid = s->tracks[i].pid;
        s->index_tracks[i].tid = s->tracks[i].tid;
    }
}

static void make_stream(struct stream *s)
{
    const struct tp_pf_writer_opts opts = {.stream_no = 1, .is_sealed = true};
    struct tp_pf_writer *w = NULL;
    struct tp_arg args[5];
    struct tp_err err;

    make_tracks(s);
    for (int i = 0; i < N_NAMES; i++)
        snprintf(s->names[i], sizeof(s->names[i]), "aten::operator_number_%d", i);
    check(tp_pf_writer_new(&opts, &w, &err), &err);
    for (int64_t i = 0; i < N_EVENTS; i++) {
        char *name = s->names[i % N_NAMES];
        const struct tp_event ev = {.kind = TP_EVENT_SLICE,
                                    .phase = 'X',
                                    .ts_ns = 1790857026000000000 + i * 1713,
                                    .dur_ns = i % 1713,
                                    .name = {name, (uint32_t)strlen(name), 0},
                                    .cat = {"kernel", 6, 0},
                                    .track = &s->tracks[i % N_TRACKS],
                                    .args = args,
                                    .n_args = 5};

        fill_args(args, i);
        check(tp_pf_writer_event(w, &ev, &s->bytes, &err), &err);
    }
    tp_pf_writer_free(w);
    s->index =
        (struct tp_stream_index){.version = 1,
                                 .stream_no = 1,
                                 .size_bytes = s->bytes.len,
                                 .has_crc32c = true,
                                 .crc32c = tp_frame_crc(0, s->bytes.data, s->bytes.len),
                                 .n_events = N_EVENTS,
                                 .has_base = true,
                                 .base_ns = 1790857026000000000,
                                 .first_ns = 1790857026000000000,
                                 .tracks = s->index_tracks,
                                 .n_tracks = N_TRACKS};
}

/* What a download was like. */
struct figures {
    size_t bytes;
    double seconds;
    double first_s; /* to the first byte */
    size_t heap_bytes;
};

/* Read a download to its end. */
static struct figures run(const struct tp_download_opts *opts)
{
    static char p[READ_BYTES];
    struct figures f = {0};
    size_t heap_before = heap_bytes();
    struct tp_download *d = NULL;
    struct tp_err err;
    double start = now_s();
    size_t got = 1;

    check(tp_download_open(opts, &d, &err), &err);
    while (got > 0) {
        size_t heap;

        check(tp_download_read(d, p, sizeof(p), &got, &err), &err);
        if (f.bytes == 0)
            f.first_s = now_s() - start;
        f.bytes += got;
        heap = heap_bytes() - heap_before;
        f.heap_bytes = heap > f.heap_bytes ? heap : f.heap_bytes;
    }
    tp_download_free(d);
    f.seconds = now_s() - start;
    return f;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(const char *label, struct tp_download_opts opts)
{
    double seconds[N_ROUNDS];
    struct figures f = run(&opts);
    double median;
    size_t plain;

    for (int i = 0; i < N_ROUNDS; i++) {
        f = run(&opts);
        seconds[i] = f.seconds;
    }
    qsort(seconds, N_ROUNDS, sizeof(*seconds), compare);
    median = seconds[N_ROUNDS / 2];
    opts.compress = TP_COMPRESS_IDENTITY;
    plain = run(&opts).bytes;
    printf(
        "download %-15s %.2f GB/s, %.0f ns an event, ratio %.1f, first byte %.2f ms, "
        "heap %zu KiB\n",
        label, (double)plain / median / 1e9, median / N_EVENTS * 1e9,
        (double)plain / (double)f.bytes, f.first_s * 1e3, f.heap_bytes / 1024);
    if (f.heap_bytes > HEAP_MAX) {
        fprintf(stderr, "micro_download: more heap than %zu bytes\n", HEAP_MAX);
        exit(1);
    }
}

int main(void)
{
    static struct stream s;
    static const struct tp_producer_info producer = {.has_rank = true};
    const struct tp_trace_info info = {.producers = &producer, .n_producers = 1};
    struct memory memory = {{&memory_home}, &s.bytes};
    const struct tp_download_stream stream = {&memory.blob, &s.index, &producer};
    struct tp_download_opts opts = {.info = &info, .streams = &stream, .n_streams = 1};

    make_stream(&s);
    measure("chrome", opts);
    opts.compress = TP_COMPRESS_GZIP;
    measure("chrome gzip", opts);
    opts.compress = TP_COMPRESS_ZSTD;
    measure("chrome zstd", opts);
    opts.format = TP_DOWNLOAD_PERFETTO;
    opts.compress = TP_COMPRESS_IDENTITY;
    measure("perfetto", opts);
    opts.compress = TP_COMPRESS_GZIP;
    measure("perfetto gzip", opts);
    opts.compress = TP_COMPRESS_IDENTITY;
    opts.slice.has_from = true;
    measure("perfetto slice", opts);
    tp_buf_fini(&s.bytes);
    return 0;
}
