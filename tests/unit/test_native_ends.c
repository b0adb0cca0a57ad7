/*
 * Ends of slices that a sender left out: each slice gets one, with its track and time,
 * and nothing else of the batch changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/pb.h"
#include "support/fault.h"
#include "support/native_form.h"
#include "support/native_rig.h"
#include "trace/native_ends.h"
#include "trace/pf_encode.h"
#include "trace/pf_fields.h"

#define STREAM 5
#define SLICES 40
#define LONG_TEXT 17000 /* bytes of a packet whose lengths do not fit into two */

static const struct tp_track track = {.index = 2,
                                      .pid = {.kind = TP_ID_NUMBER, .number = 42},
                                      .tid = {.kind = TP_ID_NUMBER, .number = 42}};

/* A batch of n slices on four threads, as older producers send it. */
static void make_batch(struct native_rig *rig, uint32_t stream_no, int n)
{
    native_rig_begin(rig, stream_no, NULL);
    rig->keeps_ends = true;
    for (int i = 0; i < n; i++)
        native_rig_slice(rig, "kernel", i % 3 == 0 ? "gemm" : "relu", i % 4,
                         1000000000 + i * 1000, i * 70);
    native_rig_end(rig);
}

static void copy(const struct tp_buf *from, struct tp_buf *to)
{
    to->len = 0;
    assert_int_equal(tp_buf_append(to, from->data, from->len, NULL), TP_OK);
}

static void expect_same(const struct tp_buf *a, const struct tp_buf *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}

/* A batch without its ends becomes what it was with them. */
static void expect_restored(const struct tp_buf *whole, uint32_t stream_no, uint64_t n)
{
    struct tp_buf bytes = {0};

    copy(whole, &bytes);
    native_form_leave_out_ends(&bytes, 0);
    if (bytes.len >= whole->len)
        fail_msg("%llu slices had no ends", (unsigned long long)n);
    assert_int_equal(tp_native_ends_add(&bytes, n, stream_no, NULL), TP_OK);
    expect_same(&bytes, whole);
    tp_buf_fini(&bytes);
}

/* Nothing is added to a batch. */
static void expect_kept(const struct tp_buf *batch, uint64_t n)
{
    struct tp_buf bytes = {0};

    copy(batch, &bytes);
    assert_int_equal(tp_native_ends_add(&bytes, n, STREAM, NULL), TP_OK);
    expect_same(&bytes, batch);
    tp_buf_fini(&bytes);
}

static void test_ends_that_were_left_out_come_back_byte_for_byte(void **state)
{
    (void)state;
    for (int n = 1; n <= SLICES; n++) {
        struct native_rig whole = {0};

        make_batch(&whole, STREAM, n);
        expect_restored(&whole.bytes, STREAM, (uint64_t)n);
        native_rig_fini(&whole);
    }
}

static void test_streams_of_every_number_are_served(void **state)
{
    static const uint32_t numbers[] = {1, 127, 128, 16384, 65535};

    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        struct native_rig whole = {0};

        make_batch(&whole, numbers[i], SLICES);
        expect_restored(&whole.bytes, numbers[i], SLICES);
        native_rig_fini(&whole);
    }
}

/* Texts make a packet long, and times of all sizes; other kinds of events get none. */
static void test_slices_of_every_shape_get_their_end(void **state)
{
    static const int64_t times[] = {0, 127, 128, 1 << 28, 1795982590884123457};
    static char text[LONG_TEXT];
    struct tp_arg arg = {.key = {"s", 1, 0}, .kind = TP_ARG_STRING};
    struct native_rig whole = {0};

    (void)state;
    memset(text, 'x', sizeof(text));
    native_rig_begin(&whole, STREAM, NULL);
    whole.keeps_ends = true;
    for (size_t i = 0; i < 25; i++) {
        struct tp_event ev = {.kind = i % 4 == 3   ? TP_EVENT_INSTANT
                                      : i % 4 == 2 ? TP_EVENT_BEGIN
                                                   : TP_EVENT_SLICE,
                              .ts_ns = times[i % 5],
                              .name = {"op", 2, 0},
                              .cat = {"kernel", 6, 0},
                              .track = &track,
                              .args = &arg,
                              .n_args = i % 4 == 0};

        ev.phase = "XBEi"[ev.kind];
        ev.is_unfinished = ev.kind == TP_EVENT_BEGIN;
        ev.dur_ns = ev.kind == TP_EVENT_SLICE ? times[i / 5] : 0;
        arg.s = (struct tp_str){text, i % 8 == 0 ? LONG_TEXT : 5};
        native_rig_event(&whole, &ev);
    }
    native_rig_end(&whole);
    expect_restored(&whole.bytes, STREAM, 25);
    native_rig_fini(&whole);
}

static void test_batch_with_ends_stays_as_it_is(void **state)
{
    struct native_rig whole = {0};

    (void)state;
    make_batch(&whole, STREAM, SLICES);
    expect_kept(&whole.bytes, SLICES);
    native_form_leave_out_ends(&whole.bytes, 1);
    expect_kept(&whole.bytes, SLICES); /* the first one speaks for all */
    native_rig_fini(&whole);
}

static void test_an_end_that_is_there_is_not_doubled(void **state)
{
    struct native_rig whole = {0};
    struct tp_buf bytes = {0};
    struct tp_pb_field f;
    const char *p;
    size_t n_ends = 0;

    (void)state;
    make_batch(&whole, STREAM, SLICES);
    /* All but the first one. */
    p = whole.bytes.data;
    for (const char *stop = p + whole.bytes.len, *next; p < stop; p = next) {
        next = tp_pb_next_field(p, stop, &f);
        assert_non_null(next);
        if (!native_form_is_end(&f) || n_ends++ > 0)
            assert_int_equal(tp_buf_append(&bytes, p, (size_t)(next - p), NULL), TP_OK);
    }
    assert_int_equal(n_ends, SLICES);
    assert_int_equal(tp_native_ends_add(&bytes, SLICES, STREAM, NULL), TP_OK);
    expect_same(&bytes, &whole.bytes);
    tp_buf_fini(&bytes);
    native_rig_fini(&whole);
}

static void test_batch_without_slices_stays_as_it_is(void **state)
{
    struct tp_buf nothing = {0};
    struct native_rig batch = {0};

    (void)state;
    native_rig_begin(&batch, STREAM, NULL);
    native_rig_instant(&batch, &track, 5000);
    native_rig_end(&batch);
    expect_kept(&batch.bytes, 1);
    native_rig_fini(&batch);
    assert_int_equal(tp_native_ends_add(&nothing, 0, STREAM, NULL), TP_OK);
    assert_int_equal(nothing.len, 0);
}

/* A slice whose fields are in another order, as others may write them. */
static size_t other_order(char *to, bool has_clock)
{
    char body[64];
    char packet[128];
    char *b = body;
    char *p = packet;

    b = tp_pb_put_u64(b, 11, 77);   /* track_uuid */
    b = tp_pb_put_u64(b, 9900, 40); /* dur_ns, of which the last one counts */
    b = tp_pb_put_u64(b, 9900, 50);
    b = tp_pb_put_u64(b, 9, 1); /* type: a begin */
    p = tp_pb_put_bytes(p, 11, body, (size_t)(b - body));
    if (has_clock)
        p = tp_pb_put_u64(p, 58, 64);
    p = tp_pb_put_u64(p, 10, STREAM);
    p = tp_pb_put_u64(p, 8, 1000);
    return (size_t)(tp_pb_put_bytes(to, 1, packet, (size_t)(p - packet)) - to);
}

static void test_fields_may_be_in_any_order(void **state)
{
    char whole[512];
    char *p = whole + other_order(whole, false);
    struct tp_buf bytes = {0};

    (void)state;
    assert_int_equal(tp_buf_append(&bytes, whole, (size_t)(p - whole), NULL), TP_OK);
    p = tp_pf_put_slice_end(p, STREAM, 77, 1050);
    assert_int_equal(tp_native_ends_add(&bytes, 1, STREAM, NULL), TP_OK);
    assert_int_equal(bytes.len, (size_t)(p - whole));
    assert_memory_equal(bytes.data, whole, bytes.len);
    tp_buf_fini(&bytes);
}

static void test_a_time_of_another_clock_is_left_alone(void **state)
{
    char packet[512];
    struct tp_buf bytes = {0};

    (void)state;
    assert_int_equal(tp_buf_append(&bytes, packet, other_order(packet, true), NULL),
                     TP_OK);
    expect_kept(&bytes, 1);
    tp_buf_fini(&bytes);
}

/* Numbers of a packet or of its event; field 0: no more. */
struct number {
    uint32_t field;
    uint64_t value;
};

static char *put_numbers(char *p, const struct number *numbers)
{
    for (; numbers->field != 0; numbers++)
        p = tp_pb_put_u64(p, numbers->field, numbers->value);
    return p;
}

/* Write a slice in the fast form: at 1000 for 40 on track 77, with these at the end of
 * its event and of its packet. Returns its end. */
static char *put_fast(char *to, const struct number *in_event,
                      const struct number *in_packet)
{
    const struct number head[] = {{TP_PF_PACKET_TIMESTAMP, 1000},
                                  {TP_PF_PACKET_SEQUENCE_ID, STREAM},
                                  {TP_PF_PACKET_SEQUENCE_FLAGS, TP_PF_SEQUENCE_NEEDS},
                                  {0, 0}};
    const struct number slice[] = {{TP_PF_EVENT_TYPE, TP_PF_TYPE_BEGIN},
                                   {TP_PF_X_EVENT_DUR_NS, 40},
                                   {TP_PF_EVENT_TRACK_UUID, 77},
                                   {TP_PF_EVENT_NAME_IID, 1},
                                   {0, 0}};
    char event[128], packet[256];
    char *e = put_numbers(put_numbers(event, slice), in_event);
    char *p = put_numbers(packet, head);

    p = tp_pb_put_bytes(p, TP_PF_PACKET_TRACK_EVENT, event, (size_t)(e - event));
    p = put_numbers(p, in_packet);
    return tp_pb_put_bytes(to, TP_PF_TRACE_PACKET, packet, (size_t)(p - packet));
}

/* Append a packet that says nothing and is longer than what is read at once. */
static void add_blank(struct tp_buf *batch)
{
    static const char zeros[200] = {0};
    char packet[256], bytes[300];
    char *p = tp_pb_put_bytes(packet, TP_PF_X_PACKET_BLANK, zeros, sizeof(zeros));
    char *end =
        tp_pb_put_bytes(bytes, TP_PF_TRACE_PACKET, packet, (size_t)(p - packet));

    assert_int_equal(tp_buf_append(batch, bytes, (size_t)(end - bytes), NULL), TP_OK);
}

/* What fields at the end of a slice make of it, as trace/pf_reader.h reads it. */
static const struct {
    const char *what;
    struct number in_event[3], in_packet[2];
    uint64_t uuid, end_ns; /* of its end; 0: it gets none */
} shapes[] = {
    {"nothing more", {{0}}, {{0}}, 77, 1040},
    {"a category and an unknown number",
     {{TP_PF_EVENT_CATEGORY_IIDS, 1}, {200, 9}},
     {{0}},
     77,
     1040},
    {"another duration", {{TP_PF_X_EVENT_DUR_NS, 500}}, {{0}}, 77, 1500},
    {"another track", {{TP_PF_EVENT_TRACK_UUID, 78}}, {{0}}, 78, 1040},
    {"another time", {{0}}, {{TP_PF_PACKET_TIMESTAMP, 9000}}, 77, 9040},
    {"another type", {{TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT}}, {{0}}, 0, 0},
    {"another type and back",
     {{TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT}, {TP_PF_EVENT_TYPE, TP_PF_TYPE_BEGIN}},
     {{0}},
     77,
     1040},
    {"a mark that it is synthetic", {{TP_PF_X_EVENT_SYNTHETIC, 1}}, {{0}}, 0, 0},
    {"a mark and its contrary",
     {{TP_PF_X_EVENT_SYNTHETIC, 1}, {TP_PF_X_EVENT_SYNTHETIC, 0}},
     {{0}},
     77,
     1040},
    {"a value, as each of a counter's series has",
     {{TP_PF_EVENT_COUNTER, 5}},
     {{0}},
     0,
     0},
    {"a clock", {{0}}, {{TP_PF_PACKET_TIMESTAMP_CLOCK_ID, 64}}, 0, 0},
    {"no clock", {{0}}, {{TP_PF_PACKET_TIMESTAMP_CLOCK_ID, 0}}, 77, 1040},
};

/* A batch of n_before plain slices, one with more fields, and a plain one. */
static void make_shape(struct tp_buf *batch, size_t shape, int n_before, bool has_end)
{
    static const struct number none[1] = {{0}};
    char bytes[512];

    batch->len = 0;
    for (int i = 0; i < n_before + 2; i++) {
        bool is_it = i == n_before;
        uint64_t uuid = is_it ? shapes[shape].uuid : 77;
        char *p = put_fast(bytes, is_it ? shapes[shape].in_event : none,
                           is_it ? shapes[shape].in_packet : none);

        if (has_end && uuid != 0)
            p = tp_pf_put_slice_end(p, STREAM, uuid,
                                    is_it ? shapes[shape].end_ns : 1040);
        assert_int_equal(tp_buf_append(batch, bytes, (size_t)(p - bytes), NULL), TP_OK);
    }
    add_blank(batch);
}

static void test_of_repeated_fields_the_last_one_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        for (int n_before = 0; n_before < 2; n_before++) {
            uint64_t n = (uint64_t)n_before + 1 + (shapes[i].uuid != 0);
            struct tp_buf bytes = {0}, whole = {0};

            make_shape(&bytes, i, n_before, false);
            make_shape(&whole, i, n_before, true);
            assert_int_equal(tp_native_ends_add(&bytes, n, STREAM, NULL), TP_OK);
            if (bytes.len != whole.len ||
                memcmp(bytes.data, whole.data, whole.len) != 0)
                fail_msg("%s, behind %d", shapes[i].what, n_before);
            tp_buf_fini(&bytes);
            tp_buf_fini(&whole);
        }
    }
}

/* A packet with a slice and another event: of two the last one counts, and a private
 * one before all. */
static void test_another_event_in_a_packet_is_what_counts(void **state)
{
    static const uint32_t fields[] = {TP_PF_PACKET_TRACK_EVENT, TP_PF_X_PACKET_PRIVATE};
    static const struct number none[1] = {{0}};

    (void)state;
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        char bytes[512], more[16];
        char *end = put_fast(bytes, none, none);
        char *p = tp_pb_put_u64(more, TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT);
        struct tp_buf batch = {0};

        end = tp_pb_put_bytes(end, fields[i], more, (size_t)(p - more));
        bytes[1] = (char)(end - bytes - 2); /* the packet has it, too */
        assert_int_equal(tp_buf_append(&batch, bytes, (size_t)(end - bytes), NULL),
                         TP_OK);
        add_blank(&batch);
        expect_kept(&batch, 1);
        tp_buf_fini(&batch);
    }
}

/* An end whose packet has a padded length, as its reader knows it. */
static void test_an_end_is_known_whatever_its_length_looks_like(void **state)
{
    static const struct number none[1] = {{0}};
    char bytes[512], end[64];
    char *p = put_fast(bytes, none, none);
    size_t n = (size_t)(tp_pf_put_slice_end(end, STREAM, 77, 1040) - end);
    struct tp_buf batch = {0};

    (void)state;
    *p++ = end[0];
    tp_pb_put_length(p, 2, n - 2);
    memcpy(p + 2, end + 2, n - 2);
    p += n;
    assert_int_equal(tp_buf_append(&batch, bytes, (size_t)(p - bytes), NULL), TP_OK);
    add_blank(&batch);
    expect_kept(&batch, 1);
    tp_buf_fini(&batch);
}

/* Whatever the bytes are, what was there stays there in its order. */
static void test_cut_batch_is_read_to_its_last_whole_packet(void **state)
{
    struct native_rig batch = {0};
    struct tp_buf cut = {0};
    struct tp_buf before = {0};

    (void)state;
    make_batch(&batch, STREAM, 4);
    native_form_leave_out_ends(&batch.bytes, 0);
    for (size_t n = 1; n < batch.bytes.len; n++) {
        cut.len = before.len = 0;
        assert_int_equal(tp_buf_append(&cut, batch.bytes.data, n, NULL), TP_OK);
        assert_int_equal(tp_buf_append(&before, batch.bytes.data, n, NULL), TP_OK);
        assert_int_equal(tp_native_ends_add(&cut, 4, STREAM, NULL), TP_OK);
        native_form_leave_out_ends(&cut, 0);
        if (cut.len != n || memcmp(cut.data, before.data, n) != 0)
            fail_msg("%zu of %zu bytes are left", cut.len, n);
    }
    tp_buf_fini(&cut);
    tp_buf_fini(&before);
    native_rig_fini(&batch);
}

/* More slices than there are events: the count is what bounds the memory. */
static void test_no_more_ends_are_added_than_there_are_events(void **state)
{
    struct native_rig batch = {0};

    (void)state;
    make_batch(&batch, STREAM, SLICES);
    for (size_t n = 0; n <= SLICES; n++) {
        struct tp_buf bytes = {0};
        struct tp_buf some = {0};

        copy(&batch.bytes, &bytes);
        native_form_leave_out_ends(&bytes, 0);
        copy(&batch.bytes, &some);
        native_form_leave_out_ends(&some, n);
        assert_int_equal(tp_native_ends_add(&bytes, n, STREAM, NULL), TP_OK);
        if (bytes.len != some.len || memcmp(bytes.data, some.data, some.len) != 0)
            fail_msg("%zu events: %zu bytes and not %zu", n, bytes.len, some.len);
        tp_buf_fini(&bytes);
        tp_buf_fini(&some);
    }
    native_rig_fini(&batch);
}

static void test_a_limit_of_the_buffer_changes_nothing(void **state)
{
    struct native_rig batch = {0};
    struct tp_buf bytes = {0};
    struct tp_err err = {0};

    (void)state;
    make_batch(&batch, STREAM, SLICES);
    native_form_leave_out_ends(&batch.bytes, 0);
    copy(&batch.bytes, &bytes);
    bytes.limit_bytes = bytes.len + SLICES;
    assert_int_equal(tp_native_ends_add(&bytes, SLICES, STREAM, &err), TP_EQUOTA);
    expect_same(&bytes, &batch.bytes);
    tp_buf_fini(&bytes);
    native_rig_fini(&batch);
}

static void test_adding_survives_every_allocation_failure(void **state)
{
    struct native_rig whole = {0};
    struct tp_buf less = {0};
    int rc = TP_ENOMEM;

    (void)state;
    make_batch(&whole, STREAM, SLICES);
    copy(&whole.bytes, &less);
    native_form_leave_out_ends(&less, 0);
    for (int n = 0; rc != TP_OK; n++) {
        struct tp_buf bytes = {0};
        struct tp_err err = {0};

        copy(&less, &bytes);
        fault_arm(n);
        rc = tp_native_ends_add(&bytes, SLICES, STREAM, &err);
        if (fault_disarm())
            assert_int_equal(rc, TP_ENOMEM);
        expect_same(&bytes, rc == TP_OK ? &whole.bytes : &less);
        tp_buf_fini(&bytes);
    }
    tp_buf_fini(&less);
    native_rig_fini(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_that_were_left_out_come_back_byte_for_byte),
        cmocka_unit_test(test_streams_of_every_number_are_served),
        cmocka_unit_test(test_slices_of_every_shape_get_their_end),
        cmocka_unit_test(test_batch_with_ends_stays_as_it_is),
        cmocka_unit_test(test_an_end_that_is_there_is_not_doubled),
        cmocka_unit_test(test_batch_without_slices_stays_as_it_is),
        cmocka_unit_test(test_fields_may_be_in_any_order),
        cmocka_unit_test(test_a_time_of_another_clock_is_left_alone),
        cmocka_unit_test(test_of_repeated_fields_the_last_one_counts),
        cmocka_unit_test(test_another_event_in_a_packet_is_what_counts),
        cmocka_unit_test(test_an_end_is_known_whatever_its_length_looks_like),
        cmocka_unit_test(test_cut_batch_is_read_to_its_last_whole_packet),
        cmocka_unit_test(test_no_more_ends_are_added_than_there_are_events),
        cmocka_unit_test(test_a_limit_of_the_buffer_changes_nothing),
        cmocka_unit_test(test_adding_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
