/*
 * test_seal.c - a log becomes a stream in order, and its index says the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/blob_mem.h"
#include "support/fault.h"
#include "support/stream_rig.h"

/* Post all bodies, seal, and compare the sealed stream with lines. */
static void check(struct stream_rig *rig, const char *const *bodies, const char *lines)
{
    struct tp_buf text = {0};
    struct tp_err err = {0};
    int rc = TP_OK;

    for (; rc == TP_OK && *bodies != NULL; bodies++)
        rc = stream_rig_post(rig, *bodies, strlen(*bodies), &err);
    if (rc == TP_OK)
        rc = stream_rig_seal(rig, &err);
    if (rc == TP_OK)
        rc = stream_rig_text(rig, &text, &err);
    if (rc == TP_OK)
        rc = tp_buf_append(&text, "", 1, &err);
    if (rc != TP_OK)
        fail_msg("%s", err.message);
    assert_string_equal(text.data, lines);
    tp_buf_fini(&text);
}

#define BODIES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_events_come_out_by_time_across_batches(void **state)
{
    struct stream_rig rig = {0};

    (void)state;
    check(
        &rig,
        BODIES(
            "[{\"ph\":\"X\",\"name\":\"c\",\"pid\":1,\"tid\":1,\"ts\":30,\"dur\":1},"
            "{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":10,\"dur\":1}]",
            "[{\"ph\":\"X\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":20,\"dur\":1}]"),
        "X  a 1/1 10000+1000\nX  b 1/1 20000+1000\nX  c 1/1 30000+1000\n");
    assert_int_equal(rig.sealed.index.n_events, 3);
    assert_int_equal(rig.sealed.index.first_ns, 10000);
    assert_int_equal(rig.sealed.index.last_ns, 31000);
    assert_int_equal(rig.counts.stored, 3);
    assert_int_equal(rig.counts.untyped, 3);
    stream_rig_fini(&rig);
}

static void test_begins_and_ends_pair_across_batches(void **state)
{
    struct stream_rig rig = {0};

    (void)state;
    check(&rig,
          BODIES(
              "[{\"ph\":\"B\",\"cat\":\"k\",\"name\":\"outer\",\"pid\":1,\"tid\":1,"
              "\"ts\":1,\"args\":{\"a\":1}},"
              "{\"ph\":\"B\",\"cat\":\"k\",\"name\":\"inner\",\"pid\":1,\"tid\":1,"
              "\"ts\":2}]",
              "[{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3},"
              "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":4,\"args\":{\"b\":2}},"
              "{\"ph\":\"B\",\"cat\":\"k\",\"name\":\"never ends\",\"pid\":1,\"tid\":1,"
              "\"ts\":5},{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":6}]"),
          "X k outer 1/1 1000+3000 a=1 b=2\nX k inner 1/1 2000+1000\n"
          "B? k never ends 1/1 5000\n");
    assert_int_equal(rig.sealed.index.unfinished, 1);
    assert_int_equal(rig.sealed.index.unmatched_ends, 1);
    assert_int_equal(rig.counts.emitted, 6);
    assert_int_equal(rig.counts.stored, 5);
    assert_int_equal(rig.counts.dropped[TP_DROP_UNMATCHED_END], 1);
    stream_rig_fini(&rig);
}

static void test_slices_that_cross_are_on_lanes(void **state)
{
    struct stream_rig rig = {0};

    (void)state;
    check(&rig,
          BODIES(
              "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":10},"
              "{\"ph\":\"X\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":10},"
              "{\"ph\":\"X\",\"name\":\"c\",\"pid\":1,\"tid\":1,\"ts\":7,\"dur\":1},"
              "{\"ph\":\"s\",\"id\":1,\"name\":\"f\",\"cat\":\"f\",\"pid\":1,"
              "\"tid\":1,\"ts\":12}]"),
          "X  a 1/1 0+10000\nX  b 1/1@1 5000+10000\nX  c 1/1 7000+1000\n"
          "s f f 1/1@1 12000 id=1\n");
    assert_int_equal(rig.sealed.index.n_tracks, 2);
    assert_int_equal(rig.sealed.index.tracks[1].lane, 1);
    assert_int_equal(rig.sealed.index.overlaps, 1);
    assert_int_equal(rig.sealed.index.lanes_added, 1);
    stream_rig_fini(&rig);
}

static void test_flows_follow_the_slices_of_their_time(void **state)
{
    struct stream_rig rig = {0};

    (void)state;
    check(&rig,
          BODIES(
              "[{\"ph\":\"f\",\"bp\":\"e\",\"id\":7,\"name\":\"f\",\"cat\":\"c\","
              "\"pid\":1,\"tid\":1,\"ts\":5},"
              "{\"ph\":\"s\",\"id\":7,\"name\":\"f\",\"cat\":\"c\","
              "\"pid\":1,\"tid\":1,\"ts\":5},"
              "{\"ph\":\"i\",\"s\":\"t\",\"name\":\"i\",\"pid\":1,\"tid\":1,\"ts\":5},"
              "{\"ph\":\"X\",\"name\":\"z\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":0},"
              "{\"ph\":\"X\",\"name\":\"l\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":2},"
              "{\"ph\":\"s\",\"id\":8,\"name\":\"f\",\"cat\":\"c\","
              "\"pid\":1,\"tid\":1,\"ts\":50}]"),
          "X  l 1/1 5000+2000\nX  z 1/1 5000+0\ns c f 1/1 5000 id=7\n"
          "f c f 1/1 5000 id=7 bp\ni  i 1/1 5000 scope=t\ns c f 1/1 50000 id=8\n");
    assert_int_equal(rig.sealed.index.unbound_flows, 1);
    stream_rig_fini(&rig);
}

static void test_metadata_members_and_base_are_in_the_index(void **state)
{
    struct stream_rig rig = {0};
    const struct tp_stream_index *ix = &rig.sealed.index;

    (void)state;
    check(
        &rig,
        BODIES("{\"schemaVersion\":1,\"traceEvents\":[{\"ph\":\"M\",\"name\":"
               "\"process_name\",\"pid\":\"Spans\",\"args\":{\"name\":\"x\\ny\"}},"
               "{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}],"
               "\"deviceProperties\":[{\"id\": 0}],\"baseTimeNanoseconds\":5000}",
               "{\"schemaVersion\":1,\"traceEvents\":[]}"),
        "X  a 1/1 6000+1000\n");
    assert_int_equal(ix->n_metas, 1);
    assert_true(tp_str_is(ix->metas[0].name, "process_name"));
    assert_true(tp_str_is(ix->metas[0].pid.text, "Spans"));
    assert_true(tp_str_is(ix->metas[0].args_json, "{\"name\":\"x\\ny\"}"));
    assert_false(ix->metas[0].has_ts);
    assert_true(ix->has_base);
    assert_int_equal(ix->base_ns, 5000);
    assert_true(ix->n_members >= 2);
    assert_true(tp_str_is(ix->members[0].key, "schemaVersion"));
    assert_true(tp_str_is(ix->members[0].json, "1"));
    assert_true(tp_str_is(ix->members[1].key, "deviceProperties"));
    assert_int_equal(ix->n_events, 1);
    assert_int_equal(rig.counts.stored, 2);
    stream_rig_fini(&rig);
}

#define SLICE_AT(name, ts) \
    "{\"ph\":\"X\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" ts ",\"dur\":1}"

static void test_a_batch_without_a_base_counts_from_that_of_its_stream(void **state)
{
    static const char *const names[] = {
        /* the base in front of the events, and behind them */
        "{\"baseTimeNanoseconds\":1795982590000000000,"
        "\"traceEvents\":[" SLICE_AT("first", "5") "]}",
        "{\"traceEvents\":[" SLICE_AT(
            "first", "5") "],\"baseTimeNanoseconds\":1795982590000000000}"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct stream_rig rig = {0};

        check(&rig,
              BODIES("[" SLICE_AT("before", "7") "]", names[i],
                     "[" SLICE_AT("relative", "9") "]",
                     "[" SLICE_AT("absolute", "1795982590000011.5") "]"),
              "X  before 1/1 7000+1000\n"
              "X  first 1/1 1795982590000005000+1000\n"
              "X  relative 1/1 1795982590000009000+1000\n"
              "X  absolute 1/1 1795982590000011500+1000\n");
        assert_int_equal(rig.sealed.index.base_ns, 1795982590000000000);
        stream_rig_fini(&rig);
    }
}

static void test_types_names_and_series_are_in_the_index(void **state)
{
    struct stream_rig rig = {0};
    const struct tp_stream_index *ix = &rig.sealed.index;

    (void)state;
    check(&rig,
          BODIES("[{\"ph\":\"C\",\"cat\":\"hw\",\"name\":\"HBM\",\"pid\":1,\"tid\":0,"
                 "\"ts\":1,\"args\":{\"read\":1,\"write\":2.5}},"
                 "{\"ph\":\"X\",\"cat\":\"k\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
                 "\"ts\":1,\"dur\":4},"
                 "{\"ph\":\"X\",\"cat\":\"k\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
                 "\"ts\":9,\"dur\":2}]"),
          "X k a 1/1 1000+4000\nC hw HBM 1/0 1000 read=1 write=2.5d\n"
          "X k a 1/1 9000+2000\n");
    assert_int_equal(ix->n_series, 2);
    assert_true(tp_str_is(ix->series[1].counter, "HBM"));
    assert_true(tp_str_is(ix->series[1].series, "write"));
    assert_true(tp_str_is(ix->series[1].cat, "hw"));
    assert_int_equal(ix->n_types, 2);
    assert_int_equal(ix->types[0].count, 2);
    assert_int_equal(ix->types[0].total_ns, 6000);
    assert_int_equal(ix->n_names, 2);
    assert_int_equal(ix->names[0].max_ns, 4000);
    assert_true(ix->names_are_complete);
    assert_int_equal(ix->n_blocks, 1);
    assert_true(ix->names_bytes > 0);
    assert_int_equal(ix->blocks[0].offset, ix->names_bytes);
    assert_true(ix->blocks[0].max_end_ns == INT64_MIN);
    stream_rig_fini(&rig);
}

static void test_pairs_that_are_too_short_are_filtered(void **state)
{
    struct stream_rig rig = {.seal_opts = {.min_duration_ns = 2000}};

    (void)state;
    check(&rig,
          BODIES("[{\"ph\":\"B\",\"name\":\"long\",\"pid\":1,\"tid\":1,\"ts\":1},"
                 "{\"ph\":\"B\",\"name\":\"short\",\"pid\":1,\"tid\":1,\"ts\":2},"
                 "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3},"
                 "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":4}]"),
          "X  long 1/1 1000+3000\n");
    assert_int_equal(rig.sealed.index.filtered_pairs, 1);
    assert_int_equal(rig.counts.stored, 2);
    assert_int_equal(rig.counts.filtered, 2);
    stream_rig_fini(&rig);
}

static void test_times_out_of_range_are_moved_into_it(void **state)
{
    struct stream_rig rig = {0};

    (void)state;
    check(&rig,
          BODIES("[{\"ph\":\"i\",\"s\":\"g\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":"
                 "-5}]"),
          "i  a 1/1 0 scope=g\n");
    assert_int_equal(rig.sealed.index.clamped, 1);
    assert_int_equal(rig.counts.repaired, 1);
    stream_rig_fini(&rig);
}

/* Bodies of n slices each at scattered times. */
static void post_many(struct stream_rig *rig, int n_bodies, int n)
{
    struct tp_buf body = {0};
    struct tp_err err = {0};
    uint32_t seed = 1;

    for (int b = 0; b < n_bodies; b++) {
        body.len = 0;
        tp_buf_append_str(&body, "[", &err);
        for (int i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            tp_buf_printf(
                &body, &err,
                "%s{\"ph\":\"X\",\"cat\":\"k\",\"name\":\"name %u\",\"pid\":1,"
                "\"tid\":%u,\"ts\":%u,\"dur\":%u,\"args\":{\"stream\":7}}",
                i == 0 ? "" : ",", seed % 50, seed >> 30, seed >> 8, seed >> 20);
        }
        tp_buf_append_str(&body, "]", &err);
        if (stream_rig_post(rig, body.data, body.len, &err) != TP_OK)
            fail_msg("%s", err.message);
    }
    tp_buf_fini(&body);
}

static void test_a_stream_is_the_same_however_little_memory_there_is(void **state)
{
    struct stream_rig large = {0};
    struct stream_rig small = {.seal_opts = {.memory_bytes = 64 << 10}};
    struct tp_buf a = {0};
    struct tp_buf b = {0};
    struct tp_err err;

    (void)state;
    post_many(&large, 20, 1000);
    post_many(&small, 20, 1000);
    assert_int_equal(stream_rig_seal(&large, &err), TP_OK);
    assert_int_equal(stream_rig_seal(&small, &err), TP_OK);
    assert_int_equal(large.sealed.spill_bytes, 0);
    assert_true(small.sealed.spill_bytes > 0);
    assert_int_equal(stream_rig_text(&large, &a, &err), TP_OK);
    assert_int_equal(stream_rig_text(&small, &b, &err), TP_OK);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    assert_int_equal(large.sealed.index.n_events, 20000);
    tp_buf_fini(&a);
    tp_buf_fini(&b);
    stream_rig_fini(&large);
    stream_rig_fini(&small);
}

static void test_blocks_say_where_to_begin(void **state)
{
    struct stream_rig rig = {0};
    const struct tp_stream_index *ix = &rig.sealed.index;
    struct tp_err err;

    (void)state;
    post_many(&rig, 30, 10000);
    assert_int_equal(stream_rig_seal(&rig, &err), TP_OK);
    assert_true(ix->n_blocks >= 2);
    for (size_t i = 1; i < ix->n_blocks; i++) {
        assert_true(ix->blocks[i].offset - ix->blocks[i - 1].offset >= 4u << 20);
        assert_true(ix->blocks[i].first_ns > ix->blocks[i - 1].first_ns);
        assert_true(ix->blocks[i].max_end_ns >= ix->blocks[i - 1].max_end_ns);
    }
    stream_rig_fini(&rig);
}

static int cancel(uint64_t done, uint64_t of, struct tp_err *err, void *arg)
{
    int *left = arg;

    assert_true(done <= of);
    return (*left)-- > 0 ? TP_OK : tp_fail(err, TP_ESTATE, "the trace is deleted");
}

static void test_a_cancelled_seal_leaves_only_the_log(void **state)
{
    int left = 0;
    struct stream_rig rig = {
        .seal_opts = {.progress = cancel, .arg = &left, .out_name = "out.tmp"}};
    struct tp_err err;

    (void)state;
    post_many(&rig, 1, 10);
    assert_int_equal(stream_rig_seal(&rig, &err), TP_ESTATE);
    assert_string_equal(err.message, "the trace is deleted");
    assert_int_equal(blob_mem_names(rig.blobs), 1);
    assert_int_equal(blob_mem_open(rig.blobs), 0);
    left = 100;
    assert_int_equal(stream_rig_seal(&rig, &err), TP_OK);
    assert_int_equal(blob_mem_names(rig.blobs), 2);
    stream_rig_fini(&rig);
}

static void test_an_absent_log_is_not_found(void **state)
{
    struct stream_rig rig = {.blobs = blob_mem_new()};
    struct tp_err err;

    (void)state;
    assert_int_equal(stream_rig_seal(&rig, &err), TP_ENOTFOUND);
    assert_int_equal(blob_mem_names(rig.blobs), 0);
    stream_rig_fini(&rig);
}

static void test_an_empty_log_is_an_empty_stream(void **state)
{
    struct stream_rig rig = {.blobs = blob_mem_new()};

    (void)state;
    blob_mem_put(rig.blobs, "log", "", 0);
    check(&rig, BODIES(NULL), "");
    assert_int_equal(rig.sealed.index.n_events, 0);
    assert_int_equal(rig.sealed.index.n_blocks, 0);
    stream_rig_fini(&rig);
}

static void test_what_of_a_log_is_damaged_is_counted_as_lost(void **state)
{
    struct stream_rig rig = {0};
    struct tp_err err;
    size_t size;
    char *log;

    (void)state;
    post_many(&rig, 1, 100);
    log = blob_mem_data(rig.blobs, "log", &size);
    log[size / 2] ^= 0xff; /* may break a packet, or one value in it */
    memset(log + size / 2, 0xff, 64);
    assert_int_equal(stream_rig_seal(&rig, &err), TP_OK);
    assert_true(rig.sealed.index.damages == 1);
    assert_true(rig.counts.dropped[TP_DROP_DAMAGED] > 0);
    assert_int_equal(rig.counts.stored, rig.sealed.index.n_events);
    stream_rig_fini(&rig);
}

static void test_every_failing_operation_leaves_only_the_log(void **state)
{
    static const size_t memories[] = {64 << 10, 64 << 20};

    (void)state;
    for (int m = 0; m < 2; m++) {
        struct stream_rig rig = {
            .seal_opts = {.memory_bytes = memories[m], .out_name = "out.tmp"}};
        struct tp_err err;

        post_many(&rig, 2, 1000);
        for (int n = 0;; n++) {
            int rc;

            blob_mem_fail_after(rig.blobs, n);
            rc = stream_rig_seal(&rig, &err);
            if (!blob_mem_disarm(rig.blobs)) {
                assert_int_equal(rc, TP_OK);
                break;
            }
            if (rc != TP_EIO || blob_mem_open(rig.blobs) != 0 ||
                blob_mem_names(rig.blobs) != 1)
                fail_msg("operation %d: code %d", n, rc);
        }
        stream_rig_fini(&rig);
    }
}

static void test_every_failing_allocation_leaves_only_the_log(void **state)
{
    static const char body[] =
        "{\"a\":[1],\"traceEvents\":[{\"ph\":\"B\",\"name\":\"b\",\"pid\":1,\"tid\":1,"
        "\"ts\":1},{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3,\"args\":{\"x\":1}},"
        "{\"ph\":\"s\",\"id\":\"i\",\"name\":\"f\",\"cat\":\"f\",\"pid\":1,\"tid\":1,"
        "\"ts\":2},{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":\"p\",\"tid\":1,"
        "\"args\":{\"name\":\"n\"}},{\"ph\":\"C\",\"name\":\"c\",\"pid\":1,\"ts\":2,"
        "\"args\":{\"v\":1}},{\"ph\":\"B\",\"name\":\"u\",\"pid\":1,\"tid\":1,\"ts\":9}"
        "]}";
    struct stream_rig rig = {.seal_opts = {.out_name = "out.tmp"}};
    struct tp_err err;

    (void)state;
    assert_int_equal(stream_rig_post(&rig, body, sizeof(body) - 1, &err), TP_OK);
    for (int n = 0;; n++) {
        int rc;

        fault_arm(n);
        rc = stream_rig_seal(&rig, &err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        if (rc == TP_OK) { /* a failure that costs only time */
            tp_seal_result_fini(&rig.sealed);
            rig.blobs->remove(rig.blobs->ctx, "out.tmp", &err);
            continue;
        }
        if (rc != TP_ENOMEM || blob_mem_open(rig.blobs) != 0 ||
            blob_mem_names(rig.blobs) != 1)
            fail_msg("allocation %d: code %d", n, rc);
    }
    stream_rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_come_out_by_time_across_batches),
        cmocka_unit_test(test_begins_and_ends_pair_across_batches),
        cmocka_unit_test(test_slices_that_cross_are_on_lanes),
        cmocka_unit_test(test_flows_follow_the_slices_of_their_time),
        cmocka_unit_test(test_metadata_members_and_base_are_in_the_index),
        cmocka_unit_test(test_a_batch_without_a_base_counts_from_that_of_its_stream),
        cmocka_unit_test(test_types_names_and_series_are_in_the_index),
        cmocka_unit_test(test_pairs_that_are_too_short_are_filtered),
        cmocka_unit_test(test_times_out_of_range_are_moved_into_it),
        cmocka_unit_test(test_a_stream_is_the_same_however_little_memory_there_is),
        cmocka_unit_test(test_blocks_say_where_to_begin),
        cmocka_unit_test(test_a_cancelled_seal_leaves_only_the_log),
        cmocka_unit_test(test_an_absent_log_is_not_found),
        cmocka_unit_test(test_an_empty_log_is_an_empty_stream),
        cmocka_unit_test(test_what_of_a_log_is_damaged_is_counted_as_lost),
        cmocka_unit_test(test_every_failing_operation_leaves_only_the_log),
        cmocka_unit_test(test_every_failing_allocation_leaves_only_the_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
