/*
 * test_chrome_writer.c - events as lines of Chrome JSON.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "support/fault.h"
#include "trace/chrome_metas.h"
#include "trace/chrome_writer.h"
#include "trace/merge.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

#define NUM(n)                              \
    {                                       \
        .kind = TP_ID_NUMBER, .number = (n) \
    }
#define TEXT(t)                                           \
    {                                                     \
        .kind = TP_ID_TEXT, .text = {(t), sizeof(t) - 1 } \
    }
#define STR(t)             \
    {                      \
        (t), sizeof(t) - 1 \
    }
#define NAME(t)               \
    {                         \
        (t), sizeof(t) - 1, 0 \
    }

static struct tp_index_track tracks[] = {
    {.pid = NUM(1), .tid = NUM(7)},
    {.pid = NUM(1), .tid = NUM(7), .lane = 1},
};
static struct tp_index_meta metas[] = {
    {.name = STR("thread_name"),
     .pid = NUM(1),
     .tid = NUM(7),
     .has_ts = true,
     .ts_ns = 1500,
     .args_json = STR("{\"name\": \"stream \\\"7\\\"\"}"),
     .extra = STR("\"x\":1")},
};

/* A plan of one or two equal streams. */
struct plan {
    struct tp_stream_index indexes[2];
    struct tp_producer_info producers[2];
    struct tp_merge_stream streams[2];
    struct tp_merge *merge;
    struct tp_chrome_writer *w;
    struct tp_buf out;
};

static void plan_open(struct plan *p, size_t n, bool has_metas)
{
    struct tp_err err;

    memset(p, 0, sizeof(*p));
    for (uint32_t i = 0; i < 2; i++) {
        p->indexes[i] = (struct tp_stream_index){.stream_no = i + 1,
                                                 .tracks = tracks,
                                                 .n_tracks = 2,
                                                 .metas = metas,
                                                 .n_metas = has_metas ? 1 : 0};
        p->producers[i] = (struct tp_producer_info){.has_rank = true, .rank = i};
        p->streams[i] = (struct tp_merge_stream){&p->indexes[i], &p->producers[i]};
    }
    assert_int_equal(tp_merge_new(p->streams, n, &p->merge, &err), TP_OK);
    assert_int_equal(tp_chrome_writer_new(p->merge, 1000, &p->w, &err), TP_OK);
}

static void plan_close(struct plan *p)
{
    tp_chrome_writer_free(p->w);
    tp_merge_free(p->merge);
    tp_buf_fini(&p->out);
}

static void check_out(struct plan *p, const char *want)
{
    if (p->out.len != strlen(want) || memcmp(p->out.data, want, p->out.len) != 0)
        fail_msg("got %.*s\nwant %s", (int)p->out.len, p->out.data, want);
    p->out.len = 0;
}

static void write_event(struct plan *p, const struct tp_event *ev)
{
    struct tp_err err;

    assert_int_equal(tp_chrome_writer_event(p->w, ev, &p->out, &err), TP_OK);
}

static const struct tp_track track = {.index = 0, .pid = NUM(1), .tid = NUM(7)};
static const struct tp_track lane = {
    .index = 1, .lane = 1, .pid = NUM(1), .tid = NUM(7)};

static void test_a_slice_has_all_its_members(void **state)
{
    const struct tp_arg args[] = {
        {.key = NAME("i"), .kind = TP_ARG_INT, .i = -1},
        {.key = NAME("big \"key\""), .kind = TP_ARG_UINT, .u = UINT64_MAX},
        {.key = NAME("d"), .kind = TP_ARG_DOUBLE, .d = 68},
        {.key = NAME("b"), .kind = TP_ARG_BOOL, .b = true},
        {.key = NAME("s"), .kind = TP_ARG_STRING, .s = STR("x\n")},
        {.key = NAME("j"), .kind = TP_ARG_JSON, .s = STR("[[64, 64], null]")},
    };
    const struct tp_event ev = {.kind = TP_EVENT_SLICE,
                                .phase = 'X',
                                .ts_ns = 13500,
                                .dur_ns = 1,
                                .name = NAME("gemm"),
                                .cat = NAME("ascend.KERNEL"),
                                .track = &track,
                                .args = args,
                                .n_args = 6,
                                .extra = STR("\"tts\":5,\"cname\":\"good\"")};
    struct plan p;

    (void)state;
    plan_open(&p, 1, false);
    write_event(&p, &ev);
    check_out(&p,
              "\n{\"ph\":\"X\",\"cat\":\"ascend.KERNEL\",\"name\":\"gemm\",\"pid\":1,"
              "\"tid\":7,\"ts\":12.500,\"dur\":0.001,\"args\":{\"i\":-1,"
              "\"big \\\"key\\\"\":18446744073709551615,\"d\":68.0,\"b\":true,"
              "\"s\":\"x\\n\",\"j\":[[64, 64], null]},\"tts\":5,\"cname\":\"good\"}");
    plan_close(&p);
}

static void test_each_kind_has_its_phase_and_members(void **state)
{
    static const struct {
        struct tp_event ev;
        const char *want;
    } cases[] = {
        {{.kind = TP_EVENT_BEGIN, .is_unfinished = true},
         "{\"ph\":\"B\",\"pid\":1,\"tid\":7,\"ts\":0.000,\"args\":{\"unfinished\":true}"
         "}"},
        {{.kind = TP_EVENT_SLICE, .phase = 'B', .dur_ns = 5},
         "{\"ph\":\"X\",\"pid\":1,\"tid\":7,\"ts\":0.000,\"dur\":0.005}"},
        {{.kind = TP_EVENT_INSTANT, .phase = 'I', .scope = 'g'},
         "{\"ph\":\"I\",\"pid\":1,\"tid\":7,\"ts\":0.000,\"s\":\"g\"}"},
        {{.kind = TP_EVENT_INSTANT}, "{\"ph\":\"i\",\"pid\":1,\"tid\":7,\"ts\":0.000}"},
        {{.kind = TP_EVENT_FLOW_END, .id = NUM(42), .binds_enclosing = true},
         "{\"ph\":\"f\",\"pid\":1,\"tid\":7,\"ts\":0.000,\"id\":42,\"bp\":\"e\"}"},
        {{.kind = TP_EVENT_ASYNC_BEGIN, .id = TEXT("0x1f")},
         "{\"ph\":\"b\",\"pid\":1,\"tid\":7,\"ts\":0.000,\"id\":\"0x1f\"}"},
        {{.kind = TP_EVENT_OTHER, .phase = 'P', .extra = STR("\"sf\":3")},
         "{\"ph\":\"P\",\"pid\":1,\"tid\":7,\"ts\":0.000,\"sf\":3}"},
        {{.kind = TP_EVENT_OTHER, .phase = '"'},
         "{\"ph\":\"\\\"\",\"pid\":1,\"tid\":7,\"ts\":0.000}"},
    };
    struct plan p;

    (void)state;
    plan_open(&p, 1, false);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct tp_event ev = cases[i].ev;
        char want[256];

        ev.ts_ns = 1000;
        ev.track = &track;
        write_event(&p, &ev);
        snprintf(want, sizeof(want), "%s\n%s", i == 0 ? "" : ",", cases[i].want);
        check_out(&p, want);
    }
    plan_close(&p);
}

static void test_lanes_and_absent_ids_are_written(void **state)
{
    static const struct tp_track nowhere = {.index = 2};
    struct tp_event ev = {.kind = TP_EVENT_INSTANT, .ts_ns = 1000, .track = &lane};
    struct plan p;

    (void)state;
    plan_open(&p, 1, false);
    write_event(&p, &ev);
    check_out(&p, "\n{\"ph\":\"i\",\"pid\":1,\"tid\":1000007,\"ts\":0.000}");
    ev.track = &nowhere;
    write_event(&p, &ev);
    check_out(&p, ",\n{\"ph\":\"i\",\"ts\":0.000}");
    plan_close(&p);
}

static void test_a_merge_maps_pids_and_ids(void **state)
{
    struct tp_event ev = {
        .kind = TP_EVENT_FLOW_START, .ts_ns = 1000, .track = &track, .id = NUM(42)};
    struct plan p;

    (void)state;
    plan_open(&p, 2, false);
    write_event(&p, &ev);
    check_out(&p, "\n{\"ph\":\"s\",\"pid\":1,\"tid\":7,\"ts\":0.000,"
                  "\"id\":1099511627818}");
    tp_chrome_writer_stream(p.w, 1);
    write_event(&p, &ev);
    check_out(&p, ",\n{\"ph\":\"s\",\"pid\":10000001,\"tid\":7,\"ts\":0.000,"
                  "\"id\":2199023255594}");
    ev.id = (struct tp_id)NUM(-1);
    write_event(&p, &ev);
    check_out(&p, ",\n{\"ph\":\"s\",\"pid\":10000001,\"tid\":7,\"ts\":0.000,"
                  "\"id\":\"2:-1\"}");
    ev.id = (struct tp_id)TEXT("0x\"f");
    write_event(&p, &ev);
    check_out(&p, ",\n{\"ph\":\"s\",\"pid\":10000001,\"tid\":7,\"ts\":0.000,"
                  "\"id\":\"2:0x\\\"f\"}");
    ev = (struct tp_event){.kind = TP_EVENT_ASYNC_END,
                           .ts_ns = 1000,
                           .track = &track,
                           .extra = STR("\"id2\":{\"global\":\"0x5\"},\"x\":1")};
    write_event(&p, &ev);
    check_out(&p, ",\n{\"ph\":\"e\",\"pid\":10000001,\"tid\":7,\"ts\":0.000,"
                  "\"id2\":{\"global\":\"2:0x5\"},\"x\":1}");
    ev.extra = (struct tp_str)STR("\"id2\":{\"local\":\"0x5\"}");
    write_event(&p, &ev);
    check_out(&p, ",\n{\"ph\":\"e\",\"pid\":10000001,\"tid\":7,\"ts\":0.000,"
                  "\"id2\":{\"local\":\"0x5\"}}");
    plan_close(&p);
}

/* Longer and shorter than a block of the cache, many times and over many iids. */
static void test_cached_strings_are_the_same_as_others(void **state)
{
    struct plan p;
    char text[200];

    (void)state;
    memset(text, 'n', sizeof(text));
    plan_open(&p, 1, false);
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 1; i < 300; i++) {
            uint32_t len = i % 100;
            struct tp_name name = {text, len, i};
            struct tp_arg arg = {.key = name, .kind = TP_ARG_INT, .i = 1};
            struct tp_event ev = {.kind = TP_EVENT_INSTANT,
                                  .ts_ns = 1000,
                                  .name = name,
                                  .cat = name,
                                  .track = &track,
                                  .args = &arg,
                                  .n_args = 1};
            char want[512];

            write_event(&p, &ev);
            snprintf(want, sizeof(want),
                     "%s\n{\"ph\":\"i\",\"cat\":\"%.*s\",\"name\":\"%.*s\",\"pid\":1,"
                     "\"tid\":7,\"ts\":0.000,\"args\":{\"%.*s\":1}}",
                     round == 0 && i == 1 ? "" : ",", (int)len, text, (int)len, text,
                     (int)len, text);
            check_out(&p, want);
        }
    plan_close(&p);
}

/* More strings and tracks than the caches hold. */
static void test_full_caches_change_nothing(void **state)
{
    static char text[60000];
    struct plan p;

    (void)state;
    memset(text, 'n', sizeof(text));
    plan_open(&p, 1, false);
    for (uint32_t i = 1; i < 100; i++) {
        struct tp_track far = {.index = i * 1000, .pid = NUM(1), .tid = NUM(i)};
        struct tp_event ev = {.kind = TP_EVENT_INSTANT,
                              .ts_ns = 1000,
                              .name = {text, sizeof(text), i * 1000},
                              .track = &far};
        char end[64];

        write_event(&p, &ev);
        snprintf(end, sizeof(end), "n\",\"pid\":1,\"tid\":%u,\"ts\":0.000}", i);
        assert_true(p.out.len > sizeof(text));
        assert_memory_equal(p.out.data + p.out.len - strlen(end), end, strlen(end));
        p.out.len = 0;
    }
    plan_close(&p);
}

static void test_tracks_of_one_index_and_other_lanes_differ(void **state)
{
    const struct tp_track same = {.index = 0, .lane = 1, .pid = NUM(1), .tid = NUM(7)};
    struct tp_event ev = {.kind = TP_EVENT_INSTANT, .ts_ns = 1000, .track = &track};
    struct plan p;

    (void)state;
    plan_open(&p, 1, false);
    write_event(&p, &ev);
    ev.track = &same;
    write_event(&p, &ev);
    ev.track = &track;
    write_event(&p, &ev);
    check_out(&p, "\n{\"ph\":\"i\",\"pid\":1,\"tid\":7,\"ts\":0.000},"
                  "\n{\"ph\":\"i\",\"pid\":1,\"tid\":1000007,\"ts\":0.000},"
                  "\n{\"ph\":\"i\",\"pid\":1,\"tid\":7,\"ts\":0.000}");
    plan_close(&p);
}

static void test_times_out_of_range_are_held(void **state)
{
    struct tp_event ev = {.kind = TP_EVENT_INSTANT,
                          .ts_ns = INT64_MIN,
                          .track = &track};
    struct plan p;

    (void)state;
    plan_open(&p, 1, false);
    write_event(&p, &ev);
    check_out(&p, "\n{\"ph\":\"i\",\"pid\":1,\"tid\":7,\"ts\":-9223372036854775.808}");
    plan_close(&p);
}

static void test_metadata_of_the_source_comes_back(void **state)
{
    const struct tp_index_meta bare = {.name = STR("process_name"),
                                       .pid = NUM(1),
                                       .extra = STR("\"y\":2")};
    struct plan p;
    struct tp_err err;

    (void)state;
    plan_open(&p, 1, true);
    assert_int_equal(tp_chrome_writer_meta(p.w, &metas[0], 0, &p.out, &err), TP_OK);
    check_out(&p, "\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":7,"
                  "\"ts\":0.500,\"args\":{\"name\": \"stream \\\"7\\\"\"},\"x\":1}");
    assert_int_equal(tp_chrome_writer_meta(p.w, &bare, 0, &p.out, &err), TP_OK);
    check_out(&p, ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"y\":2}");
    plan_close(&p);
}

static void test_a_source_with_metadata_gets_only_names_of_lanes(void **state)
{
    struct plan p;
    struct tp_err err;

    (void)state;
    plan_open(&p, 1, true);
    assert_int_equal(tp_chrome_metas_write(p.merge, 0, p.w, &p.out, &err), TP_OK);
    check_out(&p, "\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1000007,"
                  "\"args\":{\"name\":\"stream \\\"7\\\" (lane 1)\"}}");
    plan_close(&p);
}

static void test_a_source_without_metadata_is_labelled_with_its_rank(void **state)
{
    struct plan p;
    struct tp_err err;

    (void)state;
    plan_open(&p, 1, false);
    assert_int_equal(tp_chrome_metas_write(p.merge, 0, p.w, &p.out, &err), TP_OK);
    check_out(&p, "\n{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":1,\"tid\":0,"
                  "\"args\":{\"labels\":\"rank 0\"}},"
                  "\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1000007,"
                  "\"args\":{\"name\":\"thread 7 (lane 1)\"}}");
    plan_close(&p);
}

static void test_a_merge_is_labelled_and_sorted_by_rank(void **state)
{
    struct plan p;
    struct tp_err err;

    (void)state;
    plan_open(&p, 2, true);
    tp_chrome_writer_stream(p.w, 1);
    assert_int_equal(tp_chrome_metas_write(p.merge, 1, p.w, &p.out, &err), TP_OK);
    check_out(&p,
              "\n{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":10000001,\"tid\":0,"
              "\"args\":{\"labels\":\"rank 1\"}},"
              "\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":10000001,"
              "\"tid\":0,\"args\":{\"sort_index\":100000}},"
              "\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":10000001,"
              "\"tid\":1000007,\"args\":{\"name\":\"stream \\\"7\\\" (lane 1)\"}}");
    plan_close(&p);
}

static int write_all(struct plan *p, struct tp_buf *out, struct tp_err *err)
{
    const struct tp_arg arg = {.key = {"k", 1, 1}, .kind = TP_ARG_INT};
    const struct tp_event ev = {.kind = TP_EVENT_INSTANT,
                                .name = {"n", 1, 1},
                                .cat = {"c", 1, 1},
                                .track = &lane,
                                .args = &arg,
                                .n_args = 1};
    struct tp_chrome_writer *w = NULL;
    int rc = tp_chrome_writer_new(p->merge, 0, &w, err);

    if (rc == TP_OK)
        rc = tp_chrome_writer_event(w, &ev, out, err);
    if (rc == TP_OK)
        rc = tp_chrome_writer_meta(w, &metas[0], 0, out, err);
    if (rc == TP_OK)
        rc = tp_chrome_metas_write(p->merge, 1, w, out, err);
    tp_chrome_writer_free(w);
    return rc;
}

static void test_each_allocation_fails_cleanly(void **state)
{
    struct plan p;

    (void)state;
    plan_open(&p, 2, true);
    for (int n = 0;; n++) {
        struct tp_buf out = {0};
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = write_all(&p, &out, &err);
        tp_buf_fini(&out);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
    plan_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_slice_has_all_its_members),
        cmocka_unit_test(test_each_kind_has_its_phase_and_members),
        cmocka_unit_test(test_lanes_and_absent_ids_are_written),
        cmocka_unit_test(test_a_merge_maps_pids_and_ids),
        cmocka_unit_test(test_cached_strings_are_the_same_as_others),
        cmocka_unit_test(test_full_caches_change_nothing),
        cmocka_unit_test(test_tracks_of_one_index_and_other_lanes_differ),
        cmocka_unit_test(test_times_out_of_range_are_held),
        cmocka_unit_test(test_metadata_of_the_source_comes_back),
        cmocka_unit_test(test_a_source_with_metadata_gets_only_names_of_lanes),
        cmocka_unit_test(test_a_source_without_metadata_is_labelled_with_its_rank),
        cmocka_unit_test(test_a_merge_is_labelled_and_sorted_by_rank),
        cmocka_unit_test(test_each_allocation_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
