/*
 * test_download.c - traces as files: whole, merged, sliced, packed, skipped, damaged.
 *
 * Two ranks with equal pids, tids and flow ids, sealed by support/sealed.h. The Chrome
 * files are compared with tests/golden/download-*.json.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l.h>
#include <json-c/json.h>
#include <zstd.h>
#include <cmocka.h>

#include "base/blob.h"
#include "base/buf.h"
#include "core/type.h"
#include "core/typemap.h"
#include "support/blob_mem.h"
#include "support/fault.h"
#include "support/sealed.h"
#include "trace/download.h"
#include "trace/frame.h"
#include "trace/pf_reader.h"

#define BASE_NS INT64_C(1790857026000000000)
#define NUM(n)                              \
    {                                       \
        .kind = TP_ID_NUMBER, .number = (n) \
    }
#define STR(t)             \
    {                      \
        (t), sizeof(t) - 1 \
    }
#define NAME(t)               \
    {                         \
        (t), sizeof(t) - 1, 0 \
    }
#define MOST ((size_t)1 << 20)

static const struct tp_type kernel_type = {.id = 154,
                                           .hash = 123456,
                                           .kind = TP_TYPE_SLICE,
                                           .plugin = "ascend",
                                           .plugin_bytes = 6,
                                           .name = "ascend.KERNEL",
                                           .name_bytes = 13,
                                           .type_name = kernel_type.name + 7,
                                           .unit = "",
                                           .description = "runs on the \"NPU\""};
static const struct tp_type *const types[] = {&kernel_type};

/* A job of two ranks. */
struct job {
    struct tp_blobs *blobs;
    struct sealed ranks[2];
    struct tp_producer_info producers[2];
    struct tp_trace_info info;
    struct tp_download_stream streams[2];
    struct tp_typemap *typemap;
};

static void add_slice(struct sealed *s, const struct tp_track *track, const char *cat,
                      const char *name, int64_t ts_ns, int64_t dur_ns)
{
    const struct tp_arg args[] = {
        {.key = NAME("External id"), .kind = TP_ARG_INT, .i = ts_ns},
        {.key = NAME("Input Dims"), .kind = TP_ARG_JSON, .s = STR("[[64, 64], []]")},
        {.key = NAME("d"), .kind = TP_ARG_DOUBLE, .d = 68}};
    const struct tp_event ev = {.kind = TP_EVENT_SLICE,
                                .ts_ns = BASE_NS + ts_ns,
                                .dur_ns = dur_ns,
                                .name = {name, (uint32_t)strlen(name), 0},
                                .cat = {cat, (uint32_t)strlen(cat), 0},
                                .track = track,
                                .args = args,
                                .n_args = 3};

    sealed_add(s, &ev);
}

static void add_flow(struct sealed *s, const struct tp_track *track,
                     enum tp_event_kind kind, int64_t ts_ns)
{
    const struct tp_event ev = {.kind = kind,
                                .ts_ns = BASE_NS + ts_ns,
                                .name = NAME("ac2g"),
                                .cat = NAME("ac2g"),
                                .track = track,
                                .id = NUM(42),
                                .binds_enclosing = kind == TP_EVENT_FLOW_END};

    sealed_add(s, &ev);
}

static void add_others(struct sealed *s, const struct tp_track *cpu)
{
    const struct tp_arg series[] = {
        {.key = NAME("read"), .kind = TP_ARG_INT, .i = 1},
        {.key = NAME("write"), .kind = TP_ARG_DOUBLE, .d = 2.5}};
    struct tp_event ev = {.kind = TP_EVENT_COUNTER,
                          .ts_ns = BASE_NS + 20000,
                          .name = NAME("HBM"),
                          .cat = NAME("ascend.KERNEL"),
                          .track = cpu,
                          .args = series,
                          .n_args = 2};

    sealed_add(s, &ev);
    ev = (struct tp_event){.kind = TP_EVENT_INSTANT,
                           .scope = 'g',
                           .ts_ns = BASE_NS + 21000,
                           .name = NAME("barrier \"1\""),
                           .track = sealed_track_text(s, "Traces", "")};
    sealed_add(s, &ev);
    ev = (struct tp_event){.kind = TP_EVENT_BEGIN,
                           .is_unfinished = true,
                           .ts_ns = BASE_NS + 22000,
                           .name = NAME("never ends"),
                           .cat = NAME("user_annotation"),
                           .track = cpu};
    sealed_add(s, &ev);
}

static void make_rank(struct sealed *s, uint32_t stream_no)
{
    const struct tp_track *cpu;
    const struct tp_track *gpu;
    const struct tp_track *lane;

    sealed_init(s, stream_no);
    cpu = sealed_track(s, 4037, 4037, 0);
    gpu = sealed_track(s, 0, 7, 0);
    lane = sealed_track(s, 0, 7, 1);
    sealed_meta(s, "process_name", cpu, "{\"name\": \"python\"}");
    sealed_meta(s, "process_labels", gpu, "{\"labels\": \"GPU 0\"}");
    sealed_meta(s, "thread_name", gpu, "{\"name\": \"stream 7 \"}");
    sealed_member(s, "schemaVersion", "1");
    sealed_member(s, "trace_id", "\"of the source\"");
    sealed_member(s, "deviceProperties", "[\n  {\"id\": 0}\n]");
    sealed_member(s, "distributedInfo",
                  "{\"backend\": \"nccl\", \"rank\": 9, \"world_size\": 8, "
                  "\"pg_count\": 1}");
    sealed_block(s, BASE_NS);
    add_slice(s, cpu, "cpu_op", "aten::mul", 1000, 5000);
    add_flow(s, cpu, TP_EVENT_FLOW_START, 1000);
    add_slice(s, gpu, "ascend.KERNEL", "gemm", 5000, 4000);
    add_flow(s, gpu, TP_EVENT_FLOW_END, 5000);
    add_slice(s, lane, "ascend.KERNEL", "gemm", 7000, 9000);
    add_slice(s, cpu, "cpu_op", "aten::add", 12000, 0);
    sealed_block(s, BASE_NS + 20000);
    add_others(s, cpu);
    s->index.has_base = true;
    s->index.base_ns = BASE_NS;
}

static void job_open(struct job *j)
{
    struct tp_err err;

    memset(j, 0, sizeof(*j));
    j->blobs = blob_mem_new();
    for (uint32_t i = 0; i < 2; i++) {
        make_rank(&j->ranks[i], i + 1);
        sealed_close_writer(&j->ranks[i], j->blobs, i == 0 ? "a" : "b");
        j->producers[i] = (struct tp_producer_info){
            .id = i == 0 ? (struct tp_str)STR("p-0") : (struct tp_str)STR("p-1"),
            .name = STR("worker"),
            .kind = STR("http"),
            .has_rank = true,
            .rank = i,
            .world_size = 2,
            .host = STR("node1"),
            .pid = 4037,
            .counts = {.emitted = 12, .stored = 10, .filtered = 1, .dropped = {1}},
            .has_clock = i == 1,
            .clock_offset_ns = -1500,
            .clock_error_ns = 20,
            .state = STR("done")};
        j->streams[i] = (struct tp_download_stream){j->ranks[i].blob,
                                                    &j->ranks[i].index,
                                                    &j->producers[i]};
    }
    j->info = (struct tp_trace_info){.service = STR("traceplane test"),
                                     .trace_id = STR("01TRACE"),
                                     .job = STR("llama"),
                                     .label = STR("a \"slow\" step"),
                                     .metadata_json = STR("{\"rank\": 77}"),
                                     .state = STR("complete"),
                                     .outcome = STR("lossy"),
                                     .reason = STR("2 events were dropped"),
                                     .filter_json = STR("{\"include\":[\"cpu_op\"]}"),
                                     .started_ns = BASE_NS,
                                     .stopped_ns = BASE_NS + 1000000000,
                                     .producers = j->producers,
                                     .n_producers = 2,
                                     .types = types,
                                     .n_types = 1};
    assert_int_equal(tp_typemap_new(NULL, &j->typemap, &err), TP_OK);
}

static void job_close(struct job *j)
{
    tp_typemap_unref(j->typemap);
    sealed_fini(&j->ranks[0]);
    sealed_fini(&j->ranks[1]);
    assert_int_equal(blob_mem_open(j->blobs), 0);
    blob_mem_free(j->blobs);
}

static struct tp_download_opts plan(struct job *j, enum tp_download_format format,
                                    size_t n_streams)
{
    return (struct tp_download_opts){.format = format,
                                     .info = &j->info,
                                     .types = j->typemap,
                                     .streams = j->streams,
                                     .n_streams = n_streams};
}

/* Read a whole download in pieces of `step` bytes. */
static int read_all(const struct tp_download_opts *opts, size_t step,
                    struct tp_buf *out, struct tp_err *err)
{
    struct tp_download *d = NULL;
    size_t got = 0;
    int rc = tp_download_open(opts, &d, err);

    while (rc == TP_OK) {
        rc = tp_buf_reserve(out, step, err);
        if (rc == TP_OK)
            rc = tp_download_read(d, out->data + out->len, step, &got, err);
        if (rc != TP_OK || got == 0)
            break;
        out->len += got;
    }
    tp_download_free(d);
    return rc;
}

static struct tp_buf must_read(const struct tp_download_opts *opts, size_t step)
{
    struct tp_buf out = {0};
    struct tp_err err;

    if (read_all(opts, step, &out, &err) != TP_OK)
        fail_msg("%s", err.message);
    return out;
}

static void check_same(const struct tp_buf *a, const struct tp_buf *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}

static struct json_object *parse(const struct tp_buf *b)
{
    struct json_tokener *t = json_tokener_new();
    struct json_object *o;

    json_tokener_set_flags(t, JSON_TOKENER_STRICT);
    o = json_tokener_parse_ex(t, b->data, (int)b->len);
    if (o == NULL)
        fail_msg("not JSON near byte %zu", json_tokener_get_parse_end(t));
    json_tokener_free(t);
    return o;
}

/* Compare with a file of tests/golden, or write it when UPDATE_GOLDEN is set. */
static void check_golden(const struct tp_buf *b, const char *name)
{
    char path[256];
    char *want = malloc(MOST);
    size_t n;
    FILE *f;

    assert_non_null(want);
    snprintf(path, sizeof(path), "tests/golden/%s", name);
    if (getenv("UPDATE_GOLDEN") != NULL) {
        f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(b->data, 1, b->len, f), b->len);
        fclose(f);
    }
    f = fopen(path, "rb");
    if (f == NULL)
        fail_msg("no %s: run from the root of the tree", path);
    n = fread(want, 1, MOST, f);
    fclose(f);
    if (n != b->len || memcmp(want, b->data, n) != 0)
        fail_msg("%s differs from:\n%.*s", path, (int)b->len, b->data);
    free(want);
}

static size_t count_events(struct json_object *file, const char *ph)
{
    struct json_object *events = json_object_object_get(file, "traceEvents");
    size_t n = 0;

    for (size_t i = 0; i < json_object_array_length(events); i++) {
        struct json_object *e = json_object_array_get_idx(events, i);
        const char *p = json_object_get_string(json_object_object_get(e, "ph"));

        n += strcmp(p, ph) == 0;
    }
    return n;
}

static void test_one_rank_as_chrome_json_is_the_golden_file(void **state)
{
    struct job j;
    struct tp_download_opts opts;
    struct tp_buf b;

    (void)state;
    job_open(&j);
    opts = plan(&j, TP_DOWNLOAD_CHROME, 1);
    b = must_read(&opts, 65536);
    json_object_put(parse(&b));
    check_golden(&b, "download-one-rank.json");
    tp_buf_fini(&b);
    job_close(&j);
}

static void test_two_ranks_as_chrome_json_are_the_golden_file(void **state)
{
    struct job j;
    struct tp_download_opts opts;
    struct tp_buf b;

    (void)state;
    job_open(&j);
    opts = plan(&j, TP_DOWNLOAD_CHROME, 2);
    b = must_read(&opts, 65536);
    json_object_put(parse(&b));
    check_golden(&b, "download-two-ranks.json");
    tp_buf_fini(&b);
    job_close(&j);
}

/* As HTA does: the first line that matches `"rank":\s+(\d+)`. */
static void test_the_first_rank_of_the_file_is_the_rank(void **state)
{
    struct job j;
    struct tp_download_opts opts;
    struct tp_buf b;
    struct tp_err err;
    const char *at;

    (void)state;
    job_open(&j);
    j.producers[0].rank = 31;
    opts = plan(&j, TP_DOWNLOAD_CHROME, 1);
    b = must_read(&opts, 65536);
    assert_int_equal(tp_buf_append(&b, "", 1, &err), TP_OK);
    at = strstr(b.data, "\"rank\": ");
    assert_non_null(at);
    assert_memory_equal(at - 3, "\n  \"rank\": 31,\n", 15);
    assert_true(at < strstr(b.data, "\"traceEvents\""));
    tp_buf_fini(&b);
    job_close(&j);
}

static void test_the_bytes_do_not_depend_on_how_they_are_read(void **state)
{
    struct job j;

    (void)state;
    job_open(&j);
    for (int format = 0; format < TP_DOWNLOAD_FORMATS; format++)
        for (int compress = 0; compress < TP_COMPRESSIONS; compress++) {
            struct tp_download_opts opts = plan(&j, format, 2);
            struct tp_buf a;
            struct tp_buf b;

            opts.compress = compress;
            a = must_read(&opts, 65536);
            b = must_read(&opts, 1);
            check_same(&a, &b);
            tp_buf_fini(&a);
            tp_buf_fini(&b);
        }
    job_close(&j);
}

static void test_packed_files_unpack_to_the_plain_one(void **state)
{
    struct job j;
    char *text = malloc(MOST);

    (void)state;
    job_open(&j);
    for (int format = 0; format < TP_DOWNLOAD_FORMATS; format++) {
        struct tp_download_opts opts = plan(&j, format, 2);
        struct tp_buf plain = must_read(&opts, 65536);
        struct tp_buf packed;
        struct inflate_state z;

        opts.compress = TP_COMPRESS_GZIP;
        packed = must_read(&opts, 65536);
        isal_inflate_init(&z);
        z.crc_flag = ISAL_GZIP;
        z.next_in = (uint8_t *)packed.data;
        z.avail_in = (uint32_t)packed.len;
        z.next_out = (uint8_t *)text;
        z.avail_out = MOST;
        assert_int_equal(isal_inflate(&z), ISAL_DECOMP_OK);
        assert_int_equal(z.total_out, plain.len);
        assert_memory_equal(text, plain.data, plain.len);
        tp_buf_fini(&packed);

        opts.compress = TP_COMPRESS_ZSTD;
        packed = must_read(&opts, 65536);
        assert_int_equal(ZSTD_decompress(text, MOST, packed.data, packed.len),
                         plain.len);
        assert_memory_equal(text, plain.data, plain.len);
        tp_buf_fini(&packed);
        tp_buf_fini(&plain);
    }
    free(text);
    job_close(&j);
}

static void test_a_whole_perfetto_file_ends_with_the_streams_as_they_are(void **state)
{
    struct job j;
    struct tp_download_opts opts;
    struct tp_download *d;
    struct tp_buf b;
    struct tp_err err;
    uint64_t bytes = 0;
    size_t streams;

    (void)state;
    job_open(&j);
    opts = plan(&j, TP_DOWNLOAD_PERFETTO, 2);
    b = must_read(&opts, 100);
    streams = j.ranks[0].bytes.len + j.ranks[1].bytes.len;
    assert_true(b.len > streams);
    assert_memory_equal(b.data + b.len - streams, j.ranks[0].bytes.data,
                        j.ranks[0].bytes.len);
    assert_memory_equal(b.data + b.len - j.ranks[1].bytes.len, j.ranks[1].bytes.data,
                        j.ranks[1].bytes.len);
    assert_int_equal(tp_download_open(&opts, &d, &err), TP_OK);
    assert_true(tp_download_size(d, &bytes));
    assert_int_equal(bytes, b.len);
    tp_download_free(d);
    opts.compress = TP_COMPRESS_GZIP;
    assert_int_equal(tp_download_open(&opts, &d, &err), TP_OK);
    assert_false(tp_download_size(d, &bytes));
    tp_download_free(d);
    tp_buf_fini(&b);
    job_close(&j);
}

static void test_skipping_is_reading_and_forgetting(void **state)
{
    struct job j;

    (void)state;
    job_open(&j);
    for (int format = 0; format < TP_DOWNLOAD_FORMATS; format++) {
        struct tp_download_opts opts = plan(&j, format, 2);
        struct tp_buf whole = must_read(&opts, 65536);

        for (uint64_t n = 0; n < whole.len + 50; n += 37) {
            struct tp_download *d;
            struct tp_err err;
            char rest[64];
            uint64_t skipped;
            size_t got;

            assert_int_equal(tp_download_open(&opts, &d, &err), TP_OK);
            assert_int_equal(tp_download_skip(d, n, &skipped, &err), TP_OK);
            assert_int_equal(skipped, n < whole.len ? n : whole.len);
            assert_int_equal(tp_download_read(d, rest, sizeof(rest), &got, &err),
                             TP_OK);
            assert_true(got > 0 || n >= whole.len);
            assert_memory_equal(rest, whole.data + skipped, got);
            tp_download_free(d);
        }
        tp_buf_fini(&whole);
    }
    job_close(&j);
}

/* The events of a Perfetto file as a reader sees them, by the header in it; without the
 * metadata that the header tells. */
static size_t perfetto_events(const struct tp_buf *b, const char *name)
{
    const struct tp_pf_reader_opts opts = {0};
    struct tp_pf_cursor c = {b->data, b->data + b->len};
    struct tp_pf_reader *r;
    struct tp_event ev;
    enum tp_pf_item item;
    struct tp_err err;
    size_t n = 0;
    int rc;

    assert_int_equal(tp_pf_reader_new(&opts, &r, &err), TP_OK);
    while ((rc = tp_pf_reader_next(r, &c, &item, &ev, &err)) == TP_OK)
        n += item == TP_PF_EVENT && ev.kind != TP_EVENT_META &&
             (name == NULL ||
              tp_str_is((struct tp_str){ev.name.ptr, ev.name.len}, name));
    assert_int_equal(rc, TP_EAGAIN);
    assert_ptr_equal(c.ptr, c.end);
    assert_int_equal(tp_pf_reader_skipped(r).events, 0);
    tp_pf_reader_free(r);
    return n;
}

static void test_a_perfetto_file_reads_back_whole(void **state)
{
    struct job j;
    struct tp_download_opts opts;
    struct tp_buf b;

    (void)state;
    job_open(&j);
    opts = plan(&j, TP_DOWNLOAD_PERFETTO, 2);
    b = must_read(&opts, 65536);
    assert_int_equal(perfetto_events(&b, "gemm"), 4);
    assert_int_equal(perfetto_events(&b, "HBM"), 2);
    assert_int_equal(perfetto_events(&b, "never ends"), 2);
    tp_buf_fini(&b);
    job_close(&j);
}

static void check_slice(struct job *j, const struct tp_trace_slice *slice, size_t n_x,
                        size_t n_flows, size_t n_others)
{
    struct tp_download_opts opts = plan(j, TP_DOWNLOAD_CHROME, 1);
    struct json_object *file;
    struct tp_buf b;

    opts.slice = *slice;
    b = must_read(&opts, 65536);
    file = parse(&b);
    assert_int_equal(count_events(file, "X"), n_x);
    assert_int_equal(count_events(file, "s") + count_events(file, "f"), n_flows);
    assert_int_equal(count_events(file, "C") + count_events(file, "i") +
                         count_events(file, "B"),
                     n_others);
    assert_int_equal(count_events(file, "M"), 4);
    assert_non_null(
        json_object_object_get(json_object_object_get(file, "traceplane"), "slice"));
    json_object_put(file);
    tp_buf_fini(&b);

    opts.format = TP_DOWNLOAD_PERFETTO;
    b = must_read(&opts, 65536);
    assert_int_equal(perfetto_events(&b, NULL), n_x + n_flows + n_others);
    tp_buf_fini(&b);
}

static void test_a_slice_of_time_has_all_that_touches_it(void **state)
{
    struct tp_trace_slice s = {.has_from = true, .has_to = true};
    struct job j;

    (void)state;
    job_open(&j);
    /* mul 1000..6000, gemm 5000..9000, gemm 7000..16000, add at 12000 */
    s.from_ns = BASE_NS + 5500;
    s.to_ns = BASE_NS + 7000;
    check_slice(&j, &s, 2, 0, 0);
    s.from_ns = BASE_NS + 6000; /* mul ends there, so it is out */
    s.to_ns = BASE_NS + 12000;
    check_slice(&j, &s, 2, 0, 0);
    s.to_ns = BASE_NS + 12001; /* a moment is in where it is */
    check_slice(&j, &s, 3, 0, 0);
    s.from_ns = BASE_NS + 20000;
    s.has_to = false;
    check_slice(&j, &s, 0, 0, 3);
    s.from_ns = BASE_NS + 900000; /* what never ends is there */
    check_slice(&j, &s, 0, 0, 1);
    job_close(&j);
}

static void test_a_slice_of_types_has_them_and_their_flows(void **state)
{
    struct tp_typeset set = {{0}};
    const struct tp_trace_slice s = {.types = &set};
    struct job j;

    (void)state;
    job_open(&j);
    tp_typeset_add(&set, 0); /* cpu_op: its flow starts in one of them */
    check_slice(&j, &s, 2, 1, 0);
    tp_typeset_add(&set, 1);
    check_slice(&j, &s, 2, 1, 1);
    job_close(&j);
}

static void test_damage_is_an_error_and_stays_one(void **state)
{
    struct job j;

    (void)state;
    job_open(&j);
    for (int cut = 0; cut < 2; cut++) {
        struct tp_download_opts opts = plan(&j, TP_DOWNLOAD_CHROME, 2);
        struct tp_download *d;
        struct tp_err err;
        char p[512];
        size_t got = 1;
        int rc;

        if (cut == 0)
            blob_mem_data(j.blobs, "b", NULL)[0] = 0x7f; /* no field of a trace */
        else
            j.ranks[0].index.size_bytes++; /* the blob is shorter than it should be */
        assert_int_equal(tp_download_open(&opts, &d, &err), TP_OK);
        do
            rc = tp_download_read(d, p, sizeof(p), &got, &err);
        while (rc == TP_OK && got > 0);
        assert_int_equal(rc, TP_EIO);
        assert_int_equal(tp_download_read(d, p, sizeof(p), &got, &err), TP_EIO);
        assert_int_equal(tp_download_skip(d, 1, NULL, &err), TP_EIO);
        tp_download_free(d);
    }
    job_close(&j);
}

static void test_a_changed_byte_is_an_error_in_every_whole_file(void **state)
{
    struct job j;

    (void)state;
    job_open(&j);
    for (int i = 0; i < 2; i++) {
        struct tp_stream_index *ix = &j.ranks[i].index;

        ix->has_crc32c = true;
        ix->crc32c = tp_frame_crc(0, j.ranks[i].bytes.data, j.ranks[i].bytes.len);
    }
    for (int kind = 0; kind < 4; kind++) {
        struct tp_download_opts opts = plan(&j, kind / 2, 2);
        struct tp_buf out = {0};
        struct tp_err err;
        char *byte = blob_mem_data(j.blobs, "b", NULL) + j.ranks[1].bytes.len / 2;

        opts.compress = kind % 2 == 0 ? TP_COMPRESS_IDENTITY : TP_COMPRESS_GZIP;
        assert_int_equal(read_all(&opts, 100, &out, &err), TP_OK);
        *byte ^= 4;
        if (read_all(&opts, 100, &out, &err) != TP_EIO)
            fail_msg("kind %d", kind);
        *byte ^= 4;
        tp_buf_fini(&out);
    }
    job_close(&j);
}

static void test_each_failing_read_is_an_error(void **state)
{
    struct job j;

    (void)state;
    job_open(&j);
    for (int kind = 0; kind < 4; kind++)
        for (int n = 0;; n++) {
            const struct tp_trace_slice slice = {.has_from = true};
            struct tp_download_opts opts = plan(&j, kind / 2, 2);
            struct tp_buf out = {0};
            struct tp_err err;
            int rc;

            if (kind % 2 == 1)
                opts.slice = slice;
            blob_mem_fail_after(j.blobs, n);
            rc = read_all(&opts, 65536, &out, &err);
            tp_buf_fini(&out);
            if (!blob_mem_disarm(j.blobs)) {
                assert_int_equal(rc, TP_OK);
                assert_true(n > 0);
                break;
            }
            assert_int_equal(rc, TP_EIO);
        }
    job_close(&j);
}

static void test_each_allocation_fails_cleanly(void **state)
{
    struct tp_typeset set = {{1}};
    struct job j;

    (void)state;
    job_open(&j);
    for (int kind = 0; kind < 8; kind++)
        for (int n = 0;; n++) {
            struct tp_download_opts opts = plan(&j, kind & 1, 2);
            struct tp_buf out = {0};
            struct tp_err err;
            int rc;

            opts.compress = kind & 2 ? TP_COMPRESS_GZIP : TP_COMPRESS_IDENTITY;
            if (kind & 4)
                opts.slice = (struct tp_trace_slice){.types = &set, .has_from = true};
            fault_arm(n);
            rc = read_all(&opts, 65536, &out, &err);
            tp_buf_fini(&out);
            if (!fault_disarm()) {
                assert_int_equal(rc, TP_OK);
                break;
            }
            if (rc != TP_OK) /* giving back spare room may fail without harm */
                assert_int_equal(rc, TP_ENOMEM);
        }
    job_close(&j);
}

static void test_a_trace_without_streams_is_a_file(void **state)
{
    struct job j;

    (void)state;
    job_open(&j);
    for (int format = 0; format < TP_DOWNLOAD_FORMATS; format++)
        for (int compress = 0; compress < TP_COMPRESSIONS; compress++) {
            struct tp_download_opts opts = plan(&j, format, 0);
            struct tp_buf b;

            opts.compress = compress;
            b = must_read(&opts, 65536);
            assert_true(b.len > 0);
            if (format == TP_DOWNLOAD_CHROME && compress == TP_COMPRESS_IDENTITY)
                json_object_put(parse(&b));
            tp_buf_fini(&b);
        }
    job_close(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank_as_chrome_json_is_the_golden_file),
        cmocka_unit_test(test_two_ranks_as_chrome_json_are_the_golden_file),
        cmocka_unit_test(test_the_first_rank_of_the_file_is_the_rank),
        cmocka_unit_test(test_the_bytes_do_not_depend_on_how_they_are_read),
        cmocka_unit_test(test_packed_files_unpack_to_the_plain_one),
        cmocka_unit_test(test_a_whole_perfetto_file_ends_with_the_streams_as_they_are),
        cmocka_unit_test(test_skipping_is_reading_and_forgetting),
        cmocka_unit_test(test_a_perfetto_file_reads_back_whole),
        cmocka_unit_test(test_a_slice_of_time_has_all_that_touches_it),
        cmocka_unit_test(test_a_slice_of_types_has_them_and_their_flows),
        cmocka_unit_test(test_damage_is_an_error_and_stays_one),
        cmocka_unit_test(test_a_changed_byte_is_an_error_in_every_whole_file),
        cmocka_unit_test(test_each_failing_read_is_an_error),
        cmocka_unit_test(test_each_allocation_fails_cleanly),
        cmocka_unit_test(test_a_trace_without_streams_is_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
