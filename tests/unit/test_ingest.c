/*
 * test_ingest.c - what bodies from the wild become, after the whole way to a sealed
 * stream and back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include <cmocka.h>

#include "core/filter.h"
#include "core/limits.h"
#include "core/registry.h"
#include "core/typemap.h"
#include "support/blob_mem.h"
#include "support/fault.h"
#include "support/stream_rig.h"

static struct tp_registry *registry;
static struct tp_typemap *types;

/* As the case list has it: these are registered. */
static int set_up_types(void **state)
{
    static const char *const names[] = {"KERNEL", "SYNC", "MEMCPY", "HW_COUNTER"};
    struct tp_err err;

    (void)state;
    if (tp_registry_new(NULL, &registry, &err) != TP_OK)
        return -1;
    for (int i = 0; i < 4; i++) {
        struct tp_type_spec spec = {.plugin = tp_str_of("ascend"),
                                    .type_name = tp_str_of(names[i])};

        struct tp_registration got;

        if (tp_registry_register(registry, &spec, &got, NULL, &err) != TP_OK)
            return -1;
    }
    return tp_typemap_new(registry, &types, &err);
}

static int tear_down_types(void **state)
{
    (void)state;
    tp_typemap_unref(types);
    tp_registry_free(registry);
    return 0;
}

static struct stream_rig new_rig(void)
{
    return (struct stream_rig){.opts = {.types = types}};
}

static void post(struct stream_rig *rig, const char *body, size_t n)
{
    struct tp_err err = {0};

    if (stream_rig_post(rig, body, n, &err) != TP_OK)
        fail_msg("%s: %.60s", err.message, body);
}

/* Seal and compare the lines of the sealed stream. */
static void expect(struct stream_rig *rig, const char *lines)
{
    struct tp_buf text = {0};
    struct tp_err err = {0};
    int rc = stream_rig_seal(rig, &err);

    if (rc == TP_OK)
        rc = stream_rig_text(rig, &text, &err);
    if (rc == TP_OK)
        rc = tp_buf_append(&text, "", 1, &err);
    if (rc != TP_OK)
        fail_msg("%s", err.message);
    assert_string_equal(text.data, lines);
    tp_buf_fini(&text);
}

#define X(name, ts, dur)                                       \
    "{\"ph\":\"X\",\"cat\":\"ascend.KERNEL\",\"name\":\"" name \
    "\",\"pid\":1,\"tid\":1,\"ts\":" ts ",\"dur\":" dur "}"

/* The inputs of the case list whose right answer is what comes out. */
static const struct {
    const char *name;
    const char *body;
    const char *lines;
    unsigned repaired;
} cases[] = {
    {"quotes-in-name",
     "{\"traceEvents\":[" X("{\\\"device\\\": \\\"cpu\\\"} C:\\\\tmp\\nline2", "1000.0",
                            "10.0") "]}",
     "X ascend.KERNEL {\"device\": \"cpu\"} C:\\tmp\nline2 1/1 1000000+10000\n", 0},
    {"utf8-name", "{\"traceEvents\":[" X("\u9fc7 \u00e9 \U0001f680", "1", "2") "]}",
     "X ascend.KERNEL \u9fc7 \u00e9 \U0001f680 1/1 1000+2000\n", 0},
    {"control-chars",
     "{\"traceEvents\":[" X("esc\\u001b[0m tab\\t bell\\u0007", "1", "2") "]}",
     "X ascend.KERNEL esc\033[0m tab\t bell\a 1/1 1000+2000\n", 0},
    {"invalid-utf8-name", "{\"traceEvents\":[" X("bad\xff\xfe name", "1", "2") "]}",
     "X ascend.KERNEL bad\ufffd\ufffd name 1/1 1000+2000\n", 1},
    {"negative-dur", "{\"traceEvents\":[" X("k", "1000.0", "-5") "]}",
     "X ascend.KERNEL k 1/1 1000000+0\n", 1},
    {"epoch-us-with-ns",
     "{\"traceEvents\":[" X("k", "1795982590884123.457", "0.001") "]}",
     "X ascend.KERNEL k 1/1 1795982590884123457+1\n", 0},
    {"string-numbers",
     "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"ascend.KERNEL\",\"name\":\"k\",\"pid\":"
     "\"Spans\",\"tid\":\"PyTorch Profiler\",\"ts\":\"12.5\",\"dur\":\"3\"}]}",
     "X ascend.KERNEL k \"Spans\"/\"PyTorch Profiler\" 12500+3000\n", 0},
    {"args-all-kinds",
     "[{\"ph\":\"X\",\"cat\":\"ascend.KERNEL\",\"name\":\"k\",\"pid\":1,\"tid\":1,"
     "\"ts\":"
     "1000.0,\"dur\":10.0,\"args\":{\"big\":9007199254740993,\"neg\":-1,\"f\":1.5e-07,"
     "\"t\":true,\"n\":null,\"s\":\"x\",\"list\":[1,[2,3],{\"a\":\"b\"}],"
     "\"Input Dims\":[[64,64],[]],\"obj\":{\"k\":{\"k\":1}}}}]",
     "X ascend.KERNEL k 1/1 1000000+10000 big=9007199254740993 neg=-1 "
     "f=1.4999999999999999e-07d t=true n=null s=\"x\" list=[1,[2,3],{\"a\":\"b\"}] "
     "Input Dims=[[64,64],[]] obj={\"k\":{\"k\":1}}\n",
     0},
    {"overlap-same-lane",
     "[" X("a", "0", "10") "," X("b", "5", "10") "," X("c", "7", "1") "]",
     "X ascend.KERNEL a 1/1 0+10000\nX ascend.KERNEL b 1/1@1 5000+10000\n"
     "X ascend.KERNEL c 1/1 7000+1000\n",
     0},
    {"flows",
     "{\"traceEvents\":[" X("launch", "1",
                            "2") ",{\"ph\":\"X\",\"cat\":\"ascend.KERNEL\","
                                 "\"name\":\"kernel\",\"pid\":0,\"tid\":7,\"ts\":5,"
                                 "\"dur\":4},{\"ph\":\"s\",\"id\":42,"
                                 "\"pid\":1,\"tid\":1,\"ts\":1,\"cat\":\"ac2g\","
                                 "\"name\":\"ac2g\"},{\"ph\":\"f\","
                                 "\"id\":42,\"pid\":0,\"tid\":7,\"ts\":5,\"cat\":"
                                 "\"ac2g\",\"name\":\"ac2g\",\"bp\":"
                                 "\"e\"}]}",
     "X ascend.KERNEL launch 1/1 1000+2000\ns ac2g ac2g 1/1 1000 id=42\n"
     "X ascend.KERNEL kernel 0/7 5000+4000\nf ac2g ac2g 0/7 5000 id=42 bp\n",
     0},
    {"counters-instants",
     "[{\"ph\":\"C\",\"cat\":\"ascend.HW_COUNTER\",\"name\":\"HBM\",\"pid\":1,\"tid\":"
     "0,"
     "\"ts\":1,\"args\":{\"read\":1,\"write\":2.5}},{\"ph\":\"i\",\"s\":\"g\",\"cat\":"
     "\"ascend.SYNC\",\"name\":\"barrier\",\"pid\":1,\"tid\":1,\"ts\":2},{\"ph\":\"I\","
     "\"s\":\"t\",\"cat\":\"ascend.SYNC\",\"name\":\"old style\",\"pid\":1,\"tid\":1,"
     "\"ts\":3}]",
     "C ascend.HW_COUNTER HBM 1/0 1000 read=1 write=2.5d\n"
     "i ascend.SYNC barrier 1/1 2000 scope=g\ni ascend.SYNC old style 1/1 3000 "
     "scope=t\n",
     0},
    {"async",
     "[{\"ph\":\"b\",\"cat\":\"ascend.MEMCPY\",\"name\":\"copy\",\"id\":\"0x1f\","
     "\"pid\":1,"
     "\"tid\":1,\"ts\":1},{\"ph\":\"b\",\"cat\":\"ascend.MEMCPY\",\"name\":\"copy\","
     "\"id\":\"0x20\",\"pid\":1,\"tid\":1,\"ts\":2},{\"ph\":\"e\",\"cat\":"
     "\"ascend.MEMCPY\",\"name\":\"copy\",\"id\":\"0x1f\",\"pid\":1,\"tid\":1,\"ts\":9}"
     ","
     "{\"ph\":\"e\",\"cat\":\"ascend.MEMCPY\",\"name\":\"copy\",\"id\":\"0x20\","
     "\"pid\":1,"
     "\"tid\":1,\"ts\":12}]",
     "b ascend.MEMCPY copy 1/1 1000 id=\"0x1f\"\nb ascend.MEMCPY copy 1/1 2000 "
     "id=\"0x20\"\ne ascend.MEMCPY copy 1/1 9000 id=\"0x1f\"\n"
     "e ascend.MEMCPY copy 1/1 12000 id=\"0x20\"\n",
     0},
    {"nan-in-args",
     "[{\"ph\":\"X\",\"cat\":\"ascend.KERNEL\",\"name\":\"loss\",\"pid\":1,\"tid\":1,"
     "\"ts\":1,\"dur\":2,\"args\":{\"loss\":NaN,\"lr\":Infinity}}]",
     "X ascend.KERNEL loss 1/1 1000+2000 loss=\"NaN\" lr=\"Infinity\"\n", 1},
    {"array-no-end", "[\n" X("a", "1", "2") ",\n" X("b", "4", "2") ",\n",
     "X ascend.KERNEL a 1/1 1000+2000\nX ascend.KERNEL b 1/1 4000+2000\n", 0},
};

static void test_every_kind_of_input_comes_back_right(void **state)
{
    static const size_t pieces[] = {0, 1, 7};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (int p = 0; p < 3; p++) {
            struct stream_rig rig = new_rig();

            rig.piece_bytes = pieces[p];
            post(&rig, cases[i].body, strlen(cases[i].body));
            expect(&rig, cases[i].lines);
            if (rig.counts.repaired != cases[i].repaired || rig.counts.untyped != 0)
                fail_msg("%s: counts are wrong", cases[i].name);
            stream_rig_fini(&rig);
        }
    }
}

static void test_begins_and_ends_are_counted_as_posted(void **state)
{
    static const char body[] =
        "[{\"ph\":\"B\",\"cat\":\"ascend.KERNEL\",\"name\":\"outer\",\"pid\":1,\"tid\":"
        "1,"
        "\"ts\":1},{\"ph\":\"B\",\"cat\":\"ascend.SYNC\",\"name\":\"inner\",\"pid\":1,"
        "\"tid\":1,\"ts\":2},{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3},{\"ph\":\"E\","
        "\"pid\":1,\"tid\":1,\"ts\":4},{\"ph\":\"B\",\"cat\":\"ascend.KERNEL\","
        "\"name\":"
        "\"never "
        "ends\",\"pid\":1,\"tid\":1,\"ts\":5},{\"ph\":\"E\",\"pid\":1,\"tid\":2,"
        "\"ts\":6}]";
    struct stream_rig rig = new_rig();

    (void)state;
    post(&rig, body, sizeof(body) - 1);
    expect(&rig,
           "X ascend.KERNEL outer 1/1 1000+3000\nX ascend.SYNC inner 1/1 2000+1000\n"
           "B? ascend.KERNEL never ends 1/1 5000\n");
    assert_int_equal(rig.counts.emitted, 6);
    assert_int_equal(rig.counts.stored, 5);
    assert_int_equal(rig.counts.dropped[TP_DROP_UNMATCHED_END], 1);
    assert_int_equal(rig.counts.untyped, 0);
    stream_rig_fini(&rig);
}

static const char truncated[] = "{\"schemaVersion\":1,\"traceEvents\":[" X(
    "kept", "1", "2") ",{\"ph\":\"X\",\"cat\":"
                      "\"ascend.KERNEL\",\"name\":\"cut o";
static const char log_line[] = "{\"schemaVersion\":1,\"traceEvents\":[\n" X(
    "kept", "1", "2") ",\nINFO:2026-11-29 "
                      "10:00:00 77:77 Profiler.cpp:12] flushing\n" X("after", "4",
                                                                     "2") "\n]}\n";

static void test_damage_refuses_events_and_stores_nothing(void **state)
{
    static const char *const bodies[] = {truncated, log_line, "", "{", "nonsense"};

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
        struct stream_rig rig = new_rig();
        struct tp_err err = {0};

        if (stream_rig_post(&rig, bodies[i], strlen(bodies[i]), &err) != TP_EINVAL)
            fail_msg("accepted: %s", bodies[i]);
        assert_int_equal(blob_mem_names(rig.blobs), 0);
        if (strstr(err.message, "byte") == NULL && bodies[i][0] != '\0')
            fail_msg("no offset: %s", err.message);
        stream_rig_fini(&rig);
    }
}

static void test_a_damaged_file_is_kept_as_far_as_it_can_be_read(void **state)
{
    struct stream_rig rig = new_rig();

    (void)state;
    rig.opts.salvage = true;
    post(&rig, truncated, sizeof(truncated) - 1);
    assert_true(rig.is_truncated);
    expect(&rig, "X ascend.KERNEL kept 1/1 1000+2000\n");
    assert_true(rig.sealed.index.is_truncated);
    assert_true(tp_str_is(rig.sealed.index.members[0].key, "schemaVersion"));
    stream_rig_fini(&rig);

    rig = new_rig();
    rig.opts.salvage = true;
    post(&rig, log_line, sizeof(log_line) - 1);
    expect(&rig,
           "X ascend.KERNEL kept 1/1 1000+2000\nX ascend.KERNEL after 1/1 4000+2000\n");
    assert_int_equal(rig.sealed.index.damages, 1);
    assert_int_equal(rig.sealed.index.n_damage_offsets, 1);
    assert_in_range(rig.sealed.index.damage_offsets[0], 30, 130);
    stream_rig_fini(&rig);
}

static const char untyped[] =
    "[{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler "
    "(0)\",\"pid\":\"Spans\","
    "\"tid\":\"PyTorch Profiler\",\"ts\":1000.0,\"dur\":10.0},{\"ph\":\"X\",\"cat\":"
    "\"never.REGISTERED\",\"name\":\"x\",\"pid\":1,\"tid\":1,\"ts\":1000.0,\"dur\":10."
    "0},"
    "{\"ph\":\"X\",\"name\":\"no cat\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1},"
    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"p\"}}]";

static struct tp_filter *new_filter(const char *include, const char *names,
                                    uint64_t min_duration_ns)
{
    struct tp_str lists[2] = {tp_str_of(include), tp_str_of(names)};
    struct tp_filter_spec spec = {.min_duration_ns = min_duration_ns};
    struct tp_filter *filter;
    struct tp_err err;

    spec.lists[TP_FILTER_INCLUDE].items = &lists[0];
    spec.lists[TP_FILTER_INCLUDE].n = include != NULL;
    spec.lists[TP_FILTER_NAMES_INCLUDE].items = &lists[1];
    spec.lists[TP_FILTER_NAMES_INCLUDE].n = names != NULL;
    if (tp_filter_new(&spec, registry, NULL, &filter, NULL, &err) != TP_OK)
        fail_msg("%s", err.message);
    return filter;
}

static void test_unknown_types_are_kept_and_counted_without_a_filter(void **state)
{
    struct stream_rig rig = new_rig();

    (void)state;
    post(&rig, untyped, sizeof(untyped) - 1);
    expect(&rig, "X  no cat 1/1 1000+1000\nX Trace PyTorch Profiler (0) \"Spans\"/"
                 "\"PyTorch Profiler\" 1000000+10000\nX never.REGISTERED x 1/1 "
                 "1000000+10000\n");
    assert_int_equal(rig.counts.untyped, 3);
    assert_int_equal(rig.counts.stored, 4);
    stream_rig_fini(&rig);
}

static void test_unknown_types_are_filtered_when_types_are_named(void **state)
{
    struct tp_filter *filter = new_filter("ascend.KERNEL", NULL, 0);
    struct stream_rig rig = new_rig();

    (void)state;
    rig.opts.filter = filter;
    post(&rig, untyped, sizeof(untyped) - 1);
    assert_int_equal(rig.counts.emitted, 4);
    assert_int_equal(rig.counts.filtered, 3);
    assert_int_equal(rig.counts.stored, 1); /* metadata is no type */
    expect(&rig, "");
    assert_int_equal(rig.sealed.index.n_metas, 1);
    stream_rig_fini(&rig);
    tp_filter_unref(filter);
}

static void test_an_end_goes_with_its_begin_through_a_filter(void **state)
{
    static const char first[] =
        "[{\"ph\":\"B\",\"cat\":\"ascend.KERNEL\",\"name\":\"outer\",\"pid\":1,\"tid\":"
        "1,"
        "\"ts\":1},{\"ph\":\"B\",\"cat\":\"ascend.SYNC\",\"name\":\"inner\",\"pid\":1,"
        "\"tid\":1,\"ts\":2},{\"ph\":\"s\",\"id\":1,\"cat\":\"ac2g\",\"name\":\"a\","
        "\"pid\":1,\"tid\":1,\"ts\":2}]";
    static const char second[] = "[{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3},{\"ph\":"
                                 "\"E\",\"pid\":1,\"tid\":1,"
                                 "\"ts\":4}]";
    struct tp_filter *filter = new_filter("ascend.KERNEL", NULL, 0);
    struct stream_rig rig = new_rig();

    (void)state;
    rig.opts.filter = filter;
    post(&rig, first, sizeof(first) - 1);
    post(&rig, second, sizeof(second) - 1);
    expect(&rig, "X ascend.KERNEL outer 1/1 1000+3000\ns ac2g a 1/1 2000 id=1\n");
    assert_int_equal(rig.counts.emitted, 5);
    assert_int_equal(rig.counts.stored, 3);
    assert_int_equal(rig.counts.filtered, 2);
    stream_rig_fini(&rig);
    tp_filter_unref(filter);
}

static void test_names_and_durations_filter(void **state)
{
    static const char body[] = "[" X("gemm_1", "1", "2") "," X(
        "gemm_2", "4", "0.5") "," X("relu", "6", "2") "," X("gemm_1", "9", "2") "]";
    struct tp_filter *filter = new_filter(NULL, "gemm*", 1000);
    struct stream_rig rig = new_rig();

    (void)state;
    rig.opts.filter = filter;
    post(&rig, body, sizeof(body) - 1);
    expect(
        &rig,
        "X ascend.KERNEL gemm_1 1/1 1000+2000\nX ascend.KERNEL gemm_1 1/1 9000+2000\n");
    assert_int_equal(rig.counts.filtered, 2);
    stream_rig_fini(&rig);
    tp_filter_unref(filter);
}

static void test_the_number_of_a_registered_type_becomes_its_name(void **state)
{
    char body[256];
    char lines[256];
    int id = tp_typemap_find(types, "ascend.KERNEL", 13);
    int free_id = 50;
    struct stream_rig rig = new_rig();

    (void)state;
    while (tp_typemap_name(types, (unsigned)free_id).len > 3)
        free_id++;
    snprintf(
        body, sizeof(body),
        "[{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"%d\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
        "\"ts\":1},{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"%d\",\"name\":\"a\",\"pid\":1,"
        "\"tid\":1,\"ts\":2},{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"5\",\"name\":\"a\","
        "\"pid\":1,\"tid\":1,\"ts\":3}]",
        id, free_id);
    snprintf(lines, sizeof(lines),
             "i ascend.KERNEL a 1/1 1000 scope=t\ni %d a 1/1 2000 scope=t\n"
             "i 5 a 1/1 3000 scope=t\n",
             free_id);
    post(&rig, body, strlen(body));
    expect(&rig, lines);
    assert_int_equal(rig.counts.untyped, 2);
    stream_rig_fini(&rig);
}

static void test_rejected_events_are_counted_with_a_reason(void **state)
{
    static const char body[] =
        "[" X("a", "1", "2") ",{\"ph\":\"X\",\"name\":\"no ts\"},7]";
    struct tp_ingest_opts opts = {.stream_no = 1, .types = types};
    const struct tp_ingest_result *r;
    struct tp_ingest *g;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_ingest_new(&opts, &g, &err), TP_OK);
    assert_int_equal(tp_ingest_feed(g, body, sizeof(body) - 1, &err), TP_OK);
    assert_int_equal(tp_ingest_finish(g, &r, &err), TP_OK);
    assert_int_equal(r->counts.emitted, 3);
    assert_int_equal(r->counts.stored, 1);
    assert_int_equal(r->counts.dropped[TP_DROP_MALFORMED], 2);
    assert_true(r->first_rejection[0] != '\0');
    assert_int_equal(tp_counts_check(&r->counts, &err), TP_OK);
    tp_ingest_free(g);
}

/* A body of 40 slices on as many threads, of `first` and those that follow. */
static void post_threads(struct stream_rig *rig, int first)
{
    struct tp_buf body = {0};
    struct tp_err err;

    for (int i = 0; i < 40; i++)
        assert_int_equal(tp_buf_printf(&body, &err,
                                       "%s{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,"
                                       "\"tid\":%d,\"ts\":%d,\"dur\":1}",
                                       i == 0 ? "[" : ",", first + i, i),
                         TP_OK);
    assert_int_equal(tp_buf_append_str(&body, "]", &err), TP_OK);
    assert_int_equal(stream_rig_post(rig, body.data, body.len, &err), TP_OK);
    tp_buf_fini(&body);
}

static void test_threads_over_the_limit_of_a_stream_are_counted_as_such(void **state)
{
    struct tp_limits limits = tp_limits_default();
    struct stream_rig rig = {.opts.limits = &limits, .seal_opts.limits = &limits};
    struct tp_err err;

    (void)state;
    limits.stream_tracks = 16;
    post_threads(&rig, 0);
    assert_int_equal(rig.counts.dropped[TP_DROP_OVER_LIMIT], 24);
    post_threads(&rig, 10); /* 10 to 15 are known, each batch may bring 10 more */
    assert_int_equal(rig.counts.dropped[TP_DROP_OVER_LIMIT], 48);
    assert_int_equal(stream_rig_seal(&rig, &err), TP_OK);
    assert_int_equal(rig.counts.stored, 22);
    assert_int_equal(rig.counts.dropped[TP_DROP_OVER_LIMIT], 58);
    assert_int_equal(tp_counts_dropped(&rig.counts), 58);
    stream_rig_fini(&rig);
}

static void test_events_over_their_limits_are_counted_as_too_large(void **state)
{
    static const char body[] =
        "[{\"ph\":\"X\",\"ts\":1,\"name\":\"0123456789\"},7,"
        "{\"ph\":\"i\",\"ts\":2,\"name\":\"a\"},"
        "{\"ph\":\"i\",\"ts\":3,\"args\":{\"a\":1,\"b\":2,\"c\":3}}]";
    struct tp_limits limits = tp_limits_default();
    struct stream_rig rig = {.opts.limits = &limits};
    struct tp_err err;

    (void)state;
    limits.name_bytes = 9;
    limits.args_per_event = 2;
    assert_int_equal(stream_rig_post(&rig, body, sizeof(body) - 1, &err), TP_OK);
    assert_int_equal(rig.counts.stored, 1);
    assert_int_equal(rig.counts.dropped[TP_DROP_EVENT_TOO_LARGE], 2);
    assert_int_equal(rig.counts.dropped[TP_DROP_MALFORMED], 1);
    stream_rig_fini(&rig);
}

static size_t gzip_of(const char *body, size_t n, char *out, size_t room)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)body,
                  .avail_in = (uInt)n,
                  .next_out = (Bytef *)out,
                  .avail_out = (uInt)room};

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, 0), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static void test_gzip_is_known_by_its_first_bytes(void **state)
{
    static const char body[] = "[" X("a", "1", "2") "]";
    char packed[512];
    size_t n = gzip_of(body, sizeof(body) - 1, packed, sizeof(packed));
    struct stream_rig rig = new_rig();
    struct tp_err err;

    (void)state;
    rig.piece_bytes = 1;
    post(&rig, packed, n);
    rig.opts.encoding = TP_INGEST_GZIP;
    post(&rig, packed, n);
    assert_int_equal(stream_rig_post(&rig, packed, n - 9, &err), TP_EINVAL);
    assert_int_equal(stream_rig_post(&rig, body, sizeof(body) - 1, &err), TP_EINVAL);
    rig.opts.encoding = TP_INGEST_IDENTITY;
    assert_int_equal(stream_rig_post(&rig, packed, n, &err), TP_EINVAL);
    assert_int_equal(rig.counts.stored, 2);
    rig.opts.encoding = TP_INGEST_AUTO;
    rig.opts.salvage = true;
    post(&rig, packed, n - 9);
    assert_true(rig.is_truncated);
    stream_rig_fini(&rig);
}

static void test_a_body_longer_than_allowed_is_refused(void **state)
{
    static const char body[] = "[" X("a", "1", "2") "]";
    struct stream_rig rig = new_rig();
    struct tp_err err;

    (void)state;
    rig.opts.inflated_bytes = sizeof(body) - 1;
    post(&rig, body, sizeof(body) - 1);
    rig.opts.inflated_bytes = sizeof(body) - 2;
    assert_int_equal(stream_rig_post(&rig, body, sizeof(body) - 1, &err), TP_EQUOTA);
    stream_rig_fini(&rig);
}

static void test_all_events_of_a_batch_are_counted_though_the_medium_is_full(
    void **state)
{
    static const char body[] = "[" X("a", "1", "2") "," X("b", "1", "2") "," X(
        "c", "1", "2") "," X("d", "1", "2") ",{\"ph\":1}]";
    struct tp_ingest_opts opts = {.types = types, .stream_no = 1, .spill_bytes = 1};
    const struct tp_ingest_result *result = NULL;
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_ingest *g = NULL;
    struct tp_err err = {0};
    bool is_medium = false;

    (void)state;
    opts.blobs = blobs;
    assert_int_equal(tp_ingest_new(&opts, &g, &err), TP_OK);
    blob_mem_limit(blobs, 10);
    assert_int_equal(tp_ingest_feed(g, body, sizeof(body) - 1, &err), TP_OK);
    assert_int_equal(tp_ingest_finish(g, &result, &err), TP_EQUOTA);
    assert_null(result);
    assert_int_equal(tp_ingest_events(g), 5);
    assert_int_equal(tp_ingest_limit_hit(g, &is_medium), TP_INGEST_LIMIT_NONE);
    assert_true(is_medium);
    tp_ingest_free(g);
    /* A file may go on for long, and is not counted: it ends at once. */
    opts.salvage = true;
    assert_int_equal(tp_ingest_new(&opts, &g, &err), TP_OK);
    assert_int_equal(tp_ingest_feed(g, body, sizeof(body) - 1, &err), TP_EQUOTA);
    tp_ingest_free(g);
    blob_mem_free(blobs);
}

static void test_a_sealed_stream_may_be_posted_again(void **state)
{
    struct stream_rig rig = new_rig();
    struct tp_err err;
    size_t n;
    char *log;

    (void)state;
    post(&rig, cases[0].body, strlen(cases[0].body));
    log = blob_mem_data(rig.blobs, "log", &n);
    rig.opts.form = TP_INGEST_PERFETTO;
    rig.piece_bytes = 5;
    post(&rig, log, n);
    assert_int_equal(rig.counts.stored, 2);
    log = blob_mem_data(rig.blobs, "log", &n);
    assert_int_equal(stream_rig_post(&rig, log, n - 3, &err), TP_EINVAL);
    rig.opts.salvage = true;
    post(&rig, log, n - 3);
    assert_true(rig.is_truncated);
    assert_int_equal(rig.damages, 1);
    stream_rig_fini(&rig);
}

static void test_a_body_has_a_clock_by_its_base_or_its_format(void **state)
{
    static const struct {
        enum tp_ingest_form form;
        const char *body;
        bool has_clock, has_base;
    } cases_of_clocks[] = {
        {TP_INGEST_CHROME, "[]", false, false},
        {TP_INGEST_CHROME, "{\"traceEvents\":[]}", false, false},
        {TP_INGEST_CHROME, "{\"baseTimeNanoseconds\":0}", true, true},
        {TP_INGEST_CHROME, "{\"traceEvents\":[],\"baseTimeNanoseconds\":5}", true,
         true},
        {TP_INGEST_NDJSON, X("a", "1", "2"), false, false},
        {TP_INGEST_PERFETTO, "", true, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases_of_clocks) / sizeof(cases_of_clocks[0]); i++) {
        struct tp_ingest_opts opts = {.form = cases_of_clocks[i].form, .stream_no = 1};
        const char *body = cases_of_clocks[i].body;
        const struct tp_ingest_result *result = NULL;
        struct tp_ingest *g = NULL;
        struct tp_err err;

        print_message("%s\n", body);
        assert_int_equal(tp_ingest_new(&opts, &g, &err), TP_OK);
        assert_int_equal(tp_ingest_feed(g, body, strlen(body), &err), TP_OK);
        assert_int_equal(tp_ingest_finish(g, &result, &err), TP_OK);
        assert_int_equal(result->has_clock, cases_of_clocks[i].has_clock);
        assert_int_equal(result->has_base, cases_of_clocks[i].has_base);
        tp_ingest_free(g);
    }
}

static void test_a_large_payload_goes_to_a_blob(void **state)
{
    struct stream_rig rig = new_rig();
    struct tp_buf body = {0};
    struct tp_err err = {0};

    (void)state;
    rig.opts.spill_bytes = 1000;
    tp_buf_append_str(&body, "[", &err);
    for (int i = 0; i < 500; i++)
        tp_buf_printf(&body, &err, "%s" X("k%d", "%d", "1"), i == 0 ? "" : ",", i, i);
    tp_buf_append_str(&body, "]", &err);
    post(&rig, body.data, body.len);
    assert_int_equal(blob_mem_open(rig.blobs), 0);
    assert_int_equal(stream_rig_seal(&rig, &err), TP_OK);
    assert_int_equal(rig.sealed.index.n_events, 500);
    tp_buf_fini(&body);
    stream_rig_fini(&rig);
}

static void test_every_failing_operation_refuses_the_body(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct stream_rig rig = new_rig();
        struct tp_err err;
        int rc;

        rig.blobs = blob_mem_new();
        rig.opts.spill_bytes = 10;
        blob_mem_fail_after(rig.blobs, n);
        rc = stream_rig_post(&rig, log_line, 0, &err);
        rc = stream_rig_post(&rig, cases[9].body, strlen(cases[9].body), &err);
        assert_int_equal(blob_mem_open(rig.blobs), 0);
        if (!blob_mem_disarm(rig.blobs)) {
            assert_int_equal(rc, TP_OK);
            stream_rig_fini(&rig);
            return;
        }
        assert_int_equal(rc, TP_EIO);
        stream_rig_fini(&rig);
    }
}

static void test_every_failing_allocation_refuses_the_body(void **state)
{
    static const char body[] = "{\"a\":[1],\"traceEvents\":[" X(
        "k", "1", "2") ",{\"ph\":\"C\",\"name\":\"c\","
                       "\"pid\":1,\"ts\":2,\"args\":{\"v\":1,\"s\":\"x\"}}]}";
    struct tp_filter *filter = new_filter(NULL, "*", 1);

    (void)state;
    for (int n = 0;; n++) {
        struct tp_ingest_opts opts = {.stream_no = 1, .types = types, .filter = filter};
        const struct tp_ingest_result *r;
        struct tp_ingest *g = NULL;
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_ingest_new(&opts, &g, &err);
        if (rc == TP_OK)
            rc = tp_ingest_feed(g, body, sizeof(body) - 1, &err);
        if (rc == TP_OK)
            rc = tp_ingest_finish(g, &r, &err);
        else if (g != NULL) /* a failure is final */
            assert_int_equal(tp_ingest_finish(g, &r, &err), TP_ENOMEM);
        tp_ingest_free(g);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        if (rc != TP_OK) /* some failures cost only time */
            assert_int_equal(rc, TP_ENOMEM);
    }
    tp_filter_unref(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_input_comes_back_right),
        cmocka_unit_test(test_begins_and_ends_are_counted_as_posted),
        cmocka_unit_test(test_damage_refuses_events_and_stores_nothing),
        cmocka_unit_test(test_a_damaged_file_is_kept_as_far_as_it_can_be_read),
        cmocka_unit_test(test_unknown_types_are_kept_and_counted_without_a_filter),
        cmocka_unit_test(test_unknown_types_are_filtered_when_types_are_named),
        cmocka_unit_test(test_an_end_goes_with_its_begin_through_a_filter),
        cmocka_unit_test(test_names_and_durations_filter),
        cmocka_unit_test(test_the_number_of_a_registered_type_becomes_its_name),
        cmocka_unit_test(test_rejected_events_are_counted_with_a_reason),
        cmocka_unit_test(test_threads_over_the_limit_of_a_stream_are_counted_as_such),
        cmocka_unit_test(test_events_over_their_limits_are_counted_as_too_large),
        cmocka_unit_test(test_gzip_is_known_by_its_first_bytes),
        cmocka_unit_test(test_a_body_longer_than_allowed_is_refused),
        cmocka_unit_test(
            test_all_events_of_a_batch_are_counted_though_the_medium_is_full),
        cmocka_unit_test(test_a_sealed_stream_may_be_posted_again),
        cmocka_unit_test(test_a_body_has_a_clock_by_its_base_or_its_format),
        cmocka_unit_test(test_a_large_payload_goes_to_a_blob),
        cmocka_unit_test(test_every_failing_operation_refuses_the_body),
        cmocka_unit_test(test_every_failing_allocation_refuses_the_body),
    };

    return cmocka_run_group_tests(tests, set_up_types, tear_down_types);
}
