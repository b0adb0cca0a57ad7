/*
 * Native batches: stored as they came when nothing is wrong with them, event by event
 * when something is, and not at all when they are somebody else's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/pb.h"
#include "core/filter.h"
#include "support/blob_mem.h"
#include "support/fault.h"
#include "support/native_form.h"
#include "support/native_rig.h"
#include "support/stream_rig.h"
#include "trace/frame.h"
#include "trace/native_check.h"
#include "trace/pf_descriptor.h"
#include "trace/pf_fields.h"

#define STREAM 5
#define LARGE_TEXT 15000 /* bytes */

static struct stream_rig new_stream(void)
{
    return (struct stream_rig){.opts = {.form = TP_INGEST_PERFETTO,
                                        .encoding = TP_INGEST_IDENTITY,
                                        .stream_no = STREAM,
                                        .types = native_rig_types}};
}

/* Three slices and an instant on two threads. */
static void begin_batch(struct native_rig *rig)
{
    struct tp_track track = {.index = 2,
                             .pid = {.kind = TP_ID_NUMBER, .number = 42},
                             .tid = {.kind = TP_ID_TEXT, .text = {"stream 7", 8}}};

    native_rig_begin(rig, STREAM, NULL);
    native_rig_slice(rig, "kernel", "gemm", 0, 1000, 500);
    native_rig_slice(rig, "cpu_op", "aten::mm", 1, 900, 10);
    native_rig_instant(rig, &track, 5000);
    native_rig_slice(rig, "kernel", "gemm", 0, 2000, 500);
}

static void make_batch(struct native_rig *rig)
{
    begin_batch(rig);
    native_rig_end(rig);
}

#define ALL_LINES                                                          \
    "X cpu_op aten::mm 42/1 900+10 n=4\nX kernel gemm 42/0 1000+500 n=6\n" \
    "X kernel gemm 42/0 2000+500 n=5\ni kernel tick 42/\"stream 7\" 5000 scope=t\n"

static int post(struct stream_rig *stream, const struct native_rig *batch,
                struct tp_err *err)
{
    return stream_rig_post(stream, batch->bytes.data, batch->bytes.len, err);
}

/* Seal and compare. */
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

static void test_batch_in_order_is_stored_as_it_came(void **state)
{
    struct stream_rig stream = new_stream();
    struct native_rig batch = {0};
    struct tp_err err = {0};

    (void)state;
    make_batch(&batch);
    assert_int_equal(post(&stream, &batch, &err), TP_OK);
    assert_true(stream.is_native);
    assert_true(stream.is_as_it_came);
    assert_int_equal(stream.counts.emitted, 4);
    assert_int_equal(stream.counts.stored, 4);
    assert_int_equal(stream.counts.untyped, 0);
    expect(&stream, ALL_LINES);
    assert_int_equal(stream.counts.stored, 4);
    native_rig_fini(&batch);
    stream_rig_fini(&stream);
}

/* Older producers post the ends of slices, which are added when they do not come. */
static void test_batch_is_the_same_on_disk_with_and_without_ends(void **state)
{
    struct stream_rig streams[2] = {new_stream(), new_stream()};
    char *logs[2];
    size_t sizes[2];
    size_t posted[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct native_rig batch = {0};
        struct tp_err err = {0};

        begin_batch(&batch);
        batch.keeps_ends = i == 1;
        native_rig_end(&batch);
        posted[i] = batch.bytes.len;
        assert_int_equal(post(&streams[i], &batch, &err), TP_OK);
        assert_true(streams[i].is_as_it_came);
        logs[i] = blob_mem_data(streams[i].blobs, "log", &sizes[i]);
        native_rig_fini(&batch);
    }
    assert_true(posted[0] < posted[1]);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(logs[0], logs[1], sizes[0]);
    for (int i = 0; i < 2; i++)
        stream_rig_fini(&streams[i]);
}

/* Whichever of the ends of its slices a batch brings: each slice is one event. */
static void test_batches_with_some_of_their_ends_lose_and_double_nothing(void **state)
{
    struct stream_rig stream = new_stream();
    struct native_rig batch = {0};
    struct tp_err err = {0};

    (void)state;
    for (size_t n_ends = 0; n_ends <= 3; n_ends++) {
        begin_batch(&batch);
        batch.keeps_ends = true;
        native_rig_end(&batch);
        native_form_leave_out_ends(&batch.bytes, n_ends);
        assert_int_equal(post(&stream, &batch, &err), TP_OK);
        assert_true(stream.is_as_it_came);
        assert_int_equal(stream.counts.stored, 4 * (n_ends + 1));
    }
    assert_int_equal(stream_rig_seal(&stream, &err), TP_OK);
    assert_int_equal(stream.counts.emitted, 16);
    assert_int_equal(stream.counts.stored, 16);
    assert_int_equal(tp_counts_dropped(&stream.counts), 0);
    native_rig_fini(&batch);
    stream_rig_fini(&stream);
}

static void test_pieces_of_any_size_are_the_same_batch(void **state)
{
    struct native_rig batch = {0};
    struct tp_err err = {0};

    (void)state;
    make_batch(&batch);
    for (size_t piece = 1; piece <= batch.bytes.len; piece++) {
        struct stream_rig stream = new_stream();

        stream.piece_bytes = piece;
        if (post(&stream, &batch, &err) != TP_OK || !stream.is_as_it_came)
            fail_msg("pieces of %zu: %s", piece, err.message);
        stream_rig_fini(&stream);
    }
    native_rig_fini(&batch);
}

/* Make a packet of n bytes of content and add it to the batch. */
static void add_packet(struct native_rig *batch, const char *content, size_t n)
{
    char bytes[512];
    char *end = tp_pb_put_bytes(bytes, TP_PF_TRACE_PACKET, content, n);

    assert_int_equal(tp_buf_append(&batch->bytes, bytes, (size_t)(end - bytes), NULL),
                     TP_OK);
}

static void add_frame_header(struct native_rig *batch)
{
    struct tp_frame frame = {.has_base = true, .base_ns = 1000000};
    char bytes[TP_FRAME_BYTES];

    tp_frame_encode(&frame, bytes);
    assert_int_equal(tp_buf_append(&batch->bytes, bytes, sizeof(bytes), NULL), TP_OK);
}

static void add_other_sequence(struct native_rig *batch)
{
    char bytes[16];
    char *end = tp_pb_put_u64(bytes, TP_PF_PACKET_SEQUENCE_ID, STREAM + 1);

    add_packet(batch, bytes, (size_t)(end - bytes));
}

static void add_told_name(struct native_rig *batch)
{
    static const struct tp_id id = {.kind = TP_ID_NUMBER, .number = 42};
    struct tp_pf_descriptor d = {.kind = TP_PF_KIND_PROCESS,
                                 .uuid = 0x1002,
                                 .pid = &id,
                                 .own_name = {"python", 6}};

    batch->head.n_events++; /* it becomes a metadata event */
    assert_int_equal(tp_pf_write_descriptor(&batch->bytes, STREAM, &d, NULL), TP_OK);
}

static void add_invalid_text(struct native_rig *batch)
{
    batch->head.n_events = 0;
    native_rig_begin(batch, STREAM, NULL);
    native_rig_slice(batch, "cpu_op", "aten::mm", 1, 900, 10);
    native_rig_slice(batch, "kernel", "ge\xffm", 0, 1000, 500);
}

static void add_invalid_json(struct native_rig *batch)
{
    struct tp_arg arg = {.key = {"a", 1, 0}, .kind = TP_ARG_JSON, .s = {"[1,", 3}};
    struct tp_track track = {.index = 0,
                             .pid = {.kind = TP_ID_NUMBER, .number = 42},
                             .tid = {.kind = TP_ID_NUMBER, .number = 0}};
    struct tp_event ev = {.kind = TP_EVENT_SLICE,
                          .phase = 'X',
                          .ts_ns = 3000,
                          .dur_ns = 1,
                          .cat = {"kernel", 6, 0},
                          .name = {"j", 1, 0},
                          .track = &track,
                          .args = &arg,
                          .n_args = 1};

    native_rig_event(batch, &ev);
}

/* What sends a batch the long way, and what becomes of it there. */
static const struct {
    const char *what;
    void (*add)(struct native_rig *batch);
    const char *lines;
} oddities[] = {
    {"a frame header", add_frame_header, ALL_LINES},
    {"another sequence", add_other_sequence, ALL_LINES},
    {"a name in a descriptor", add_told_name, ALL_LINES},
    {"text that is not UTF-8", add_invalid_text,
     "X cpu_op aten::mm 42/1 900+10 n=4\nX kernel ge\ufffdm 42/0 1000+500 n=6\n"},
    {"JSON that is none", add_invalid_json,
     "X cpu_op aten::mm 42/1 900+10 n=4\nX kernel gemm 42/0 1000+500 n=6\n"
     "X kernel gemm 42/0 2000+500 n=5\nX kernel j 42/0 3000+1 a=\"[1,\"\n"
     "i kernel tick 42/\"stream 7\" 5000 scope=t\n"},
};

static void test_batch_with_something_odd_is_read_event_by_event(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(oddities) / sizeof(oddities[0]); i++) {
        struct stream_rig stream = new_stream();
        struct native_rig batch = {0};
        struct tp_err err = {0};

        make_batch(&batch);
        oddities[i].add(&batch);
        native_rig_end(&batch);
        if (post(&stream, &batch, &err) != TP_OK)
            fail_msg("%s: %s", oddities[i].what, err.message);
        if (stream.is_as_it_came || !stream.is_native)
            fail_msg("%s: was not noticed", oddities[i].what);
        expect(&stream, oddities[i].lines);
        native_rig_fini(&batch);
        stream_rig_fini(&stream);
    }
}

static void test_types_outside_the_filter_are_filtered_and_the_rest_kept(void **state)
{
    struct stream_rig stream = new_stream();
    struct tp_str include = {"kernel", 6};
    struct tp_filter_spec spec = {0};
    struct native_rig batch = {0};
    struct tp_filter *filter;
    struct tp_err err = {0};

    (void)state;
    spec.lists[TP_FILTER_INCLUDE].items = &include;
    spec.lists[TP_FILTER_INCLUDE].n = 1;
    assert_int_equal(tp_filter_new(&spec, NULL, NULL, &filter, NULL, &err), TP_OK);
    stream.opts.filter = filter;
    make_batch(&batch);
    assert_int_equal(post(&stream, &batch, &err), TP_OK);
    assert_false(stream.is_as_it_came);
    assert_int_equal(stream.counts.emitted, 4);
    assert_int_equal(stream.counts.stored, 3);
    assert_int_equal(stream.counts.filtered, 1);
    native_rig_fini(&batch);
    stream_rig_fini(&stream);
    tp_filter_unref(filter);
}

/* Batches of others, with what is said about them. */
static void test_batch_for_another_stream_is_refused(void **state)
{
    struct stream_rig stream = new_stream();
    struct native_rig batch = {0};
    struct tp_err err = {0};

    (void)state;
    make_batch(&batch);
    stream.opts.stream_no = STREAM + 1;
    assert_int_equal(post(&stream, &batch, &err), TP_EINVAL);
    assert_string_equal(err.message,
                        "the batch is for stream 5, but its producer writes stream 6");
    native_rig_fini(&batch);
    stream_rig_fini(&stream);
}

static void test_batch_whose_head_counts_wrong_is_refused(void **state)
{
    (void)state;
    for (int is_odd = 0; is_odd < 2; is_odd++) {
        struct stream_rig stream = new_stream();
        struct native_rig batch = {0};
        struct tp_err err = {0};

        make_batch(&batch);
        if (is_odd)
            add_other_sequence(&batch);
        batch.head.n_events = 3;
        native_rig_end(&batch);
        if (post(&stream, &batch, &err) != TP_EINVAL)
            fail_msg("is_odd %d: was taken", is_odd);
        assert_string_equal(err.message, "the batch has 4 events, and its head says 3");
        native_rig_fini(&batch);
        stream_rig_fini(&stream);
    }
}

/* Wherever it is cut. */
static void test_batch_that_is_cut_is_refused(void **state)
{
    struct native_rig batch = {0};
    struct tp_err err = {0};
    size_t whole;

    (void)state;
    make_batch(&batch);
    whole = batch.bytes.len;
    for (size_t n = 1; n < whole; n++) {
        struct stream_rig stream = new_stream();

        batch.bytes.len = n;
        if (post(&stream, &batch, &err) != TP_EINVAL)
            fail_msg("%zu of %zu bytes were taken", n, whole);
        assert_int_equal(stream.counts.emitted, 0);
        stream_rig_fini(&stream);
    }
    batch.bytes.len = whole;
    native_rig_fini(&batch);
}

/* A bit of eight bytes in nine: a seal for each of all bits takes minutes. With a
 * sanitizer, of each 11th byte. */
#ifdef TP_SANITIZED
#define BITS 89
#else
#define BITS 9
#endif

/* Whatever a byte is changed to: what is stored as it came is sealed without a loss. */
static void test_changed_bytes_are_refused_or_sealed_without_loss(void **state)
{
    struct native_rig batch = {0};

    (void)state;
    make_batch(&batch);
    for (size_t bit = 0; bit < 8 * batch.bytes.len; bit += BITS) {
        struct stream_rig stream = new_stream();
        struct tp_err err = {0};

        batch.bytes.data[bit / 8] = (char)(batch.bytes.data[bit / 8] ^ 1 << bit % 8);
        if (post(&stream, &batch, &err) == TP_OK) {
            if (stream_rig_seal(&stream, &err) != TP_OK)
                fail_msg("bit %zu: %s", bit, err.message);
            if (stream.is_as_it_came && stream.counts.dropped[TP_DROP_DAMAGED] > 0)
                fail_msg("bit %zu: %llu events are lost", bit,
                         (unsigned long long)stream.counts.dropped[TP_DROP_DAMAGED]);
        }
        batch.bytes.data[bit / 8] = (char)(batch.bytes.data[bit / 8] ^ 1 << bit % 8);
        stream_rig_fini(&stream);
    }
    native_rig_fini(&batch);
}

static void test_batch_over_the_limit_goes_the_long_way(void **state)
{
    struct stream_rig stream = new_stream();
    struct native_rig batch = {0};
    struct tp_err err = {0};
    uint64_t n = 0;

    (void)state;
    native_rig_begin(&batch, STREAM, NULL);
    batch.keeps_ends = true;
    for (; batch.bytes.len <= TP_NATIVE_BYTES_MAX; n++)
        native_rig_slice(&batch, "kernel", "gemm", 0, (int64_t)n, 1);
    native_rig_end(&batch);
    assert_int_equal(post(&stream, &batch, &err), TP_OK);
    assert_true(stream.is_native);
    assert_false(stream.is_as_it_came);
    assert_int_equal(stream.counts.stored, n);
    native_rig_fini(&batch);
    stream_rig_fini(&stream);
}

static void test_check_survives_every_allocation_failure(void **state)
{
    struct native_rig batch = {0};

    (void)state;
    make_batch(&batch);
    for (int n = 0;; n++) {
        struct tp_native_check_opts opts = {.stream_no = STREAM,
                                            .types = native_rig_types};
        enum tp_native_verdict verdict = TP_NATIVE_UNKNOWN;
        struct tp_native_check *check = NULL;
        struct tp_err err = {0};
        int rc;

        fault_arm(n);
        rc = tp_native_check_new(&opts, &check, &err);
        if (rc == TP_OK)
            rc = tp_native_check_feed(check, batch.bytes.data, batch.bytes.len,
                                      &verdict, &err);
        if (rc == TP_OK)
            rc = tp_native_check_finish(check, batch.bytes.len, &verdict, &err);
        tp_native_check_free(check);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(verdict, TP_NATIVE_GOOD);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
    native_rig_fini(&batch);
}

/* A batch for whose ends the memory that is there from the start is too small. */
static void make_large(struct native_rig *batch)
{
    static char text[LARGE_TEXT];
    struct tp_track track = {.index = 0,
                             .pid = {.kind = TP_ID_NUMBER, .number = 42},
                             .tid = {.kind = TP_ID_NUMBER, .number = 0}};
    struct tp_arg arg = {.key = {"s", 1, 0},
                         .kind = TP_ARG_STRING,
                         .s = {text, sizeof(text)}};
    struct tp_event ev = {.kind = TP_EVENT_SLICE,
                          .phase = 'X',
                          .ts_ns = 1000,
                          .name = {"gemm", 4, 0},
                          .cat = {"kernel", 6, 0},
                          .track = &track,
                          .args = &arg,
                          .n_args = 1};

    memset(text, 'x', sizeof(text));
    native_rig_begin(batch, STREAM, NULL);
    while (batch->bytes.len < (1u << 20) - 2 * LARGE_TEXT)
        native_rig_event(batch, &ev);
    while (batch->bytes.len < (1u << 20) - 100)
        native_rig_slice(batch, "kernel", "gemm", 0, 1000, 1);
    native_rig_end(batch);
}

static void test_posting_survives_every_allocation_failure(void **state)
{
    struct native_rig batch = {0};
    bool was_hit = true;

    (void)state;
    make_large(&batch);
    for (int n = 0; was_hit; n++) {
        struct stream_rig stream = new_stream();
        struct tp_err err = {0};
        int rc;

        stream.blobs = blob_mem_new();
        fault_arm(n);
        rc = post(&stream, &batch, &err);
        was_hit = fault_disarm();
        assert_int_equal(rc, was_hit ? TP_ENOMEM : TP_OK);
        assert_int_equal(stream.counts.stored, was_hit ? 0 : batch.head.n_events);
        stream_rig_fini(&stream);
    }
    native_rig_fini(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_in_order_is_stored_as_it_came),
        cmocka_unit_test(test_batch_is_the_same_on_disk_with_and_without_ends),
        cmocka_unit_test(test_batches_with_some_of_their_ends_lose_and_double_nothing),
        cmocka_unit_test(test_pieces_of_any_size_are_the_same_batch),
        cmocka_unit_test(test_batch_with_something_odd_is_read_event_by_event),
        cmocka_unit_test(test_types_outside_the_filter_are_filtered_and_the_rest_kept),
        cmocka_unit_test(test_batch_for_another_stream_is_refused),
        cmocka_unit_test(test_batch_whose_head_counts_wrong_is_refused),
        cmocka_unit_test(test_batch_that_is_cut_is_refused),
        cmocka_unit_test(test_changed_bytes_are_refused_or_sealed_without_loss),
        cmocka_unit_test(test_batch_over_the_limit_goes_the_long_way),
        cmocka_unit_test(test_check_survives_every_allocation_failure),
        cmocka_unit_test(test_posting_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, native_rig_set_up, native_rig_tear_down);
}
