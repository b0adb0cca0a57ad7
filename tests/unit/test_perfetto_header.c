/*
 * test_perfetto_header.c - headers, as a reader of Perfetto and one of JSON see them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/pb_read.h"
#include "core/type.h"
#include "support/fault.h"
#include "trace/merge.h"
#include "trace/perfetto_header.h"
#include "trace/pf_fields.h"
#include "trace/pf_reader.h"
#include "trace/pf_writer.h"
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

static struct tp_index_track tracks[] = {
    {.uuid = 4, .pid = NUM(4037), .tid = NUM(7)},
    {.uuid = 8, .pid = NUM(4037), .tid = NUM(7), .lane = 1},
    {.uuid = 12, .pid = TEXT("Spans"), .tid = TEXT("PyTorch Profiler")},
    {.uuid = 16, .pid = NUM(0), .tid = NUM(0)}};
static struct tp_index_series series[] = {{.uuid = 5,
                                           .pid = NUM(4037),
                                           .tid = NUM(0),
                                           .counter = STR("HBM"),
                                           .cat = STR("ascend.BANDWIDTH"),
                                           .series = STR("read")}};
static struct tp_index_meta metas[] = {{.name = STR("process_name"),
                                        .pid = NUM(4037),
                                        .tid = NUM(0),
                                        .args_json = STR("{\"name\":\"python\"}")},
                                       {.name = STR("process_labels"),
                                        .pid = NUM(4037),
                                        .tid = NUM(0),
                                        .args_json = STR("{\"labels\":\"CPU\"}")}};
static const struct tp_stream_index ix = {.stream_no = 3,
                                          .n_events = 1,
                                          .first_ns = 500,
                                          .tracks = tracks,
                                          .n_tracks = 4,
                                          .series = series,
                                          .n_series = 1,
                                          .metas = metas,
                                          .n_metas = 2};
static const struct tp_producer_info producer = {
    .has_rank = true, .rank = 2, .has_clock = true, .clock_offset_ns = 100};
static const struct tp_merge_stream stream = {&ix, &producer};
static const struct tp_type power = {.plugin_bytes = 6,
                                     .name_bytes = 12,
                                     .name = "ascend.POWER",
                                     .type_name = power.name + 7,
                                     .unit = "W",
                                     .description = ""};
static const struct tp_type bandwidth = {.plugin_bytes = 6,
                                         .name_bytes = 16,
                                         .name = "ascend.BANDWIDTH",
                                         .type_name = bandwidth.name + 7,
                                         .unit = "GB/s",
                                         .description = ""};
static const struct tp_type *const types[] = {&power, &bandwidth};
static const struct tp_trace_info info = {.job = STR("llama"),
                                          .types = types,
                                          .n_types = 2};

static bool holds(const struct tp_buf *b, const char *text)
{
    return memmem(b->data, b->len, text, strlen(text)) != NULL;
}

/* The header of the one stream, which must be whole packets. */
static size_t write_stream(struct tp_buf *out)
{
    struct tp_merge *m;
    struct tp_err err;
    struct tp_pb c;
    struct tp_pb_field f;
    size_t n = 0;

    assert_int_equal(tp_merge_new(&stream, 1, &m, &err), TP_OK);
    assert_int_equal(tp_perfetto_header_stream(m, 0, &info, out, &err), TP_OK);
    tp_merge_free(m);
    c = (struct tp_pb){out->data, out->data + out->len};
    for (; c.p < c.end; n++) {
        assert_true(tp_pb_get_field(&c, &f));
        assert_int_equal(f.number, TP_PF_TRACE_PACKET);
    }
    return n;
}

static void test_all_tracks_are_introduced_by_name(void **state)
{
    struct tp_buf b = {0};

    (void)state;
    assert_int_equal(write_stream(&b),
                     1 + 3 + 4 + 1); /* clear, processes, tracks, ... */
    assert_true(holds(&b, "rank 2: python (CPU)"));
    assert_true(holds(&b, "rank 2: Spans"));
    assert_true(holds(&b, "rank 2: pid 0"));
    assert_true(holds(&b, "PyTorch Profiler"));
    assert_true(holds(&b, "tid 7 (lane 1)"));
    assert_true(holds(&b, "HBM read"));
    assert_true(holds(&b, "\x32\x04GB/s")); /* CounterDescriptor.unit_name */
    tp_buf_fini(&b);
}

static void test_the_description_is_json_in_a_private_packet(void **state)
{
    struct tp_merge *m;
    struct tp_buf b = {0};
    struct tp_err err;
    struct tp_pb c;
    struct tp_pb_field f;
    size_t n_found = 0;

    (void)state;
    assert_int_equal(tp_merge_new(&stream, 1, &m, &err), TP_OK);
    assert_int_equal(tp_perfetto_header_info(m, &info, NULL, 0, &b, &err), TP_OK);
    tp_merge_free(m);
    c = (struct tp_pb){b.data, b.data + b.len};
    while (c.p < c.end) {
        struct tp_pb packet;

        assert_true(tp_pb_get_field(&c, &f));
        packet = (struct tp_pb){f.bytes, f.bytes + f.value};
        while (packet.p < packet.end) {
            struct json_tokener *t;
            struct json_object *o;

            assert_true(tp_pb_get_field(&packet, &f));
            if (f.number != TP_PF_X_PACKET_INFO)
                continue;
            t = json_tokener_new();
            json_tokener_set_flags(t, JSON_TOKENER_STRICT);
            o = json_tokener_parse_ex(t, f.bytes, (int)f.value);
            assert_non_null(o);
            assert_non_null(json_object_object_get(o, "customActivityTypes"));
            json_object_put(o);
            json_tokener_free(t);
            n_found++;
        }
    }
    assert_int_equal(n_found, 1);
    assert_true(holds(&b, "traceplane-job"));
    assert_true(holds(&b, "llama"));
    tp_buf_fini(&b);
}

/* Append a flow with id 7 on the first track of a stream. */
static void write_flow(uint32_t stream_no, struct tp_buf *out)
{
    const struct tp_pf_writer_opts opts = {.stream_no = stream_no, .is_sealed = true};
    const struct tp_track track = {.index = 0, .pid = NUM(4037), .tid = NUM(7)};
    const struct tp_event ev = {.kind = TP_EVENT_FLOW_START,
                                .phase = 's',
                                .ts_ns = 1000,
                                .name = {"f", 1, 0},
                                .cat = {"c", 1, 0},
                                .id = NUM(7),
                                .track = &track};
    struct tp_pf_writer *w;

    assert_int_equal(tp_pf_writer_new(&opts, &w, NULL), TP_OK);
    assert_int_equal(tp_pf_writer_event(w, &ev, out, NULL), TP_OK);
    tp_pf_writer_free(w);
}

/* A line for each event that a download of n streams, of one process if that has a
 * number, is when it is posted. */
static void read_back(size_t n, uint32_t process_no, char *lines, size_t room)
{
    struct tp_index_track own[] = {
        {.uuid = tp_pf_track_uuid(3, 0, 0), .pid = NUM(4037), .tid = NUM(7)},
        {.uuid = tp_pf_track_uuid(4, 0, 0), .pid = NUM(4037), .tid = NUM(7)}};
    struct tp_stream_index indexes[] = {ix, ix};
    struct tp_producer_info ranks[] = {producer, {.has_rank = true, .rank = 9}};
    const struct tp_merge_stream streams[] = {{&indexes[0], &ranks[0]},
                                              {&indexes[1], &ranks[1]}};
    const struct tp_pf_reader_opts opts = {0};
    struct tp_buf b = {0};
    struct tp_merge *m;
    struct tp_pf_reader *r;
    struct tp_pf_cursor c;
    struct tp_event ev;
    enum tp_pf_item item;
    size_t at = 0;

    for (size_t i = 0; i < 2; i++) {
        indexes[i].stream_no = 3 + (uint32_t)i;
        indexes[i].tracks = &own[i];
        indexes[i].n_tracks = 1;
        indexes[i].n_series = 0;
        ranks[i].process_no = process_no;
        ranks[i].process_pid = 4037;
    }
    assert_int_equal(tp_merge_new(streams, n, &m, NULL), TP_OK);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(tp_perfetto_header_stream(m, i, &info, &b, NULL), TP_OK);
        write_flow(indexes[i].stream_no, &b);
    }
    tp_merge_free(m);
    assert_int_equal(tp_pf_reader_new(&opts, &r, NULL), TP_OK);
    c = (struct tp_pf_cursor){b.data, b.data + b.len};
    while (tp_pf_reader_next(r, &c, &item, &ev, NULL) == TP_OK)
        at += (size_t)snprintf(lines + at, room - at, "%c %.*s %lld/%lld %.*s\n",
                               ev.phase, (int)ev.name.len, ev.name.ptr,
                               (long long)ev.track->pid.number,
                               ev.phase == 'M' ? 0 : (long long)ev.id.number,
                               ev.phase == 'M' ? (int)ev.args[0].s.len : 0,
                               ev.phase == 'M' ? ev.args[0].s.ptr : "");
    assert_ptr_equal(c.ptr, c.end);
    tp_pf_reader_free(r);
    tp_buf_fini(&b);
}

static void test_a_download_posted_back_has_the_names_of_its_source(void **state)
{
    char lines[512];

    (void)state;
    read_back(1, 0, lines, sizeof(lines));
    assert_string_equal(lines, "M process_name 4037/0 python\ns f 4037/7 \n");
}

static void test_the_ranks_of_a_merge_posted_back_stay_apart(void **state)
{
    char lines[512];

    (void)state;
    read_back(2, 0, lines, sizeof(lines));
    assert_string_equal(lines, "M process_name 4037/0 rank 2: python (CPU)\n"
                               "s f 4037/3298534883335 \n"
                               "M process_name 10004037/0 rank 9: python (CPU)\n"
                               "s f 10004037/4398046511111 \n");
}

static void test_streams_of_one_process_have_one_track_for_it(void **state)
{
    char lines[512];

    (void)state;
    read_back(2, 1, lines, sizeof(lines));
    assert_string_equal(lines, "M process_name 4037/0 rank 2: python (CPU)\n"
                               "s f 4037/3298534883335 \n"
                               "s f 4037/4398046511111 \n");
}

static void test_each_allocation_fails_cleanly(void **state)
{
    struct tp_merge *m;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_merge_new(&stream, 1, &m, &err), TP_OK);
    for (int n = 0;; n++) {
        struct tp_buf b = {0};
        int rc;

        fault_arm(n);
        rc = tp_perfetto_header_info(m, &info, NULL, 0, &b, &err);
        if (rc == TP_OK)
            rc = tp_perfetto_header_stream(m, 0, &info, &b, &err);
        tp_buf_fini(&b);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
    tp_merge_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_tracks_are_introduced_by_name),
        cmocka_unit_test(test_the_description_is_json_in_a_private_packet),
        cmocka_unit_test(test_a_download_posted_back_has_the_names_of_its_source),
        cmocka_unit_test(test_the_ranks_of_a_merge_posted_back_stay_apart),
        cmocka_unit_test(test_streams_of_one_process_have_one_track_for_it),
        cmocka_unit_test(test_each_allocation_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
