/*
 * test_pf_writer.c - what is written: whole events or nothing, small numbers, interned
 * strings, and packets that Perfetto's readers know. That it all comes back is
 * test_pf_reader.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/pb_read.h"
#include "support/events.h"
#include "support/fault.h"
#include "trace/pf_fields.h"
#include "trace/pf_reader.h"
#include "trace/pf_writer.h"

static const struct tp_track track = {.pid = {TP_ID_NUMBER, 4037, {NULL, 0}},
                                      .tid = {TP_ID_NUMBER, 7, {NULL, 0}}};

static struct tp_pf_writer *must_new(bool is_sealed)
{
    struct tp_pf_writer_opts opts = {.stream_no = 1, .is_sealed = is_sealed};
    struct tp_pf_writer *w = NULL;
    struct tp_err err;

    assert_int_equal(tp_pf_writer_new(&opts, &w, &err), TP_OK);
    return w;
}

static struct tp_event slice(const char *name)
{
    return (struct tp_event){.kind = TP_EVENT_SLICE,
                             .phase = 'X',
                             .ts_ns = 1795982590884123457LL,
                             .dur_ns = 12345,
                             .name = {name, (uint32_t)strlen(name), 0},
                             .cat = {"kernel", 6, 0},
                             .track = &track};
}

/* The nth field with this number in bytes; false: there are fewer. */
static bool find_field(struct tp_str bytes, uint32_t number, unsigned nth,
                       struct tp_pb_field *f)
{
    struct tp_pb c = {bytes.ptr, bytes.ptr + bytes.len};

    while (c.p < c.end) {
        assert_true(tp_pb_get_field(&c, f));
        if (f->number == number && nth-- == 0)
            return true;
    }
    return false;
}

static struct tp_str must_find(struct tp_str bytes, uint32_t number, unsigned nth)
{
    struct tp_pb_field f;

    if (!find_field(bytes, number, nth, &f) || f.wire != TP_PB_BYTES)
        fail_msg("field %u is not there", number);
    return (struct tp_str){f.bytes, f.value};
}

static uint64_t number_of(struct tp_str bytes, uint32_t number)
{
    struct tp_pb_field f;

    if (!find_field(bytes, number, 0, &f))
        fail_msg("field %u is not there", number);
    return f.value;
}

static unsigned count_fields(struct tp_str bytes, uint32_t number)
{
    struct tp_pb_field f;
    unsigned n = 0;

    while (find_field(bytes, number, n, &f))
        n++;
    return n;
}

static void must_write(struct tp_pf_writer *w, const struct tp_event *ev,
                       struct tp_buf *b)
{
    struct tp_err err;

    if (tp_pf_writer_event(w, ev, b, &err) != TP_OK)
        fail_msg("%s", err.message);
}

static void test_a_slice_is_a_begin_and_an_end_that_perfetto_knows(void **state)
{
    struct tp_pf_writer *w = must_new(true);
    struct tp_event ev = slice("aten::mm");
    struct tp_buf b = {0};
    struct tp_str all;
    struct tp_str begin;
    struct tp_str end;

    (void)state;
    must_write(w, &ev, &b);
    all = (struct tp_str){b.data, b.len};
    assert_int_equal(count_fields(all, TP_PF_TRACE_PACKET), 2);
    begin = must_find(all, TP_PF_TRACE_PACKET, 0);
    end = must_find(all, TP_PF_TRACE_PACKET, 1);
    assert_true(number_of(begin, TP_PF_PACKET_TIMESTAMP) == 1795982590884123457ULL);
    assert_true(number_of(end, TP_PF_PACKET_TIMESTAMP) ==
                1795982590884123457ULL + 12345);
    assert_int_equal(number_of(end, TP_PF_PACKET_SEQUENCE_ID), 1);
    begin = must_find(begin, TP_PF_PACKET_TRACK_EVENT, 0);
    end = must_find(end, TP_PF_PACKET_TRACK_EVENT, 0);
    assert_int_equal(number_of(begin, TP_PF_EVENT_TYPE), TP_PF_TYPE_BEGIN);
    assert_int_equal(number_of(begin, TP_PF_X_EVENT_DUR_NS), 12345);
    assert_int_equal(number_of(begin, TP_PF_EVENT_NAME_IID), 1);
    assert_int_equal(number_of(end, TP_PF_EVENT_TYPE), TP_PF_TYPE_END);
    assert_int_equal(number_of(end, TP_PF_EVENT_TRACK_UUID), tp_pf_track_uuid(1, 0, 0));
    tp_buf_fini(&b);
    tp_pf_writer_free(w);
}

static void test_a_name_is_said_once(void **state)
{
    struct tp_pf_writer *w = must_new(true);
    struct tp_event ev = slice("a rather long name of a kernel");
    struct tp_buf b = {0};
    size_t first;

    (void)state;
    must_write(w, &ev, &b);
    first = b.len;
    must_write(w, &ev, &b);
    assert_true(b.len - first + ev.name.len + ev.cat.len < first);
    assert_null(memmem(b.data + first, b.len - first, ev.name.ptr, ev.name.len));
    tp_pf_writer_reset(w);
    first = b.len;
    must_write(w, &ev, &b);
    assert_non_null(memmem(b.data + first, b.len - first, ev.name.ptr, ev.name.len));
    tp_buf_fini(&b);
    tp_pf_writer_free(w);
}

static void test_a_payload_of_a_log_begins_with_state_cleared_and_its_tracks(
    void **state)
{
    struct tp_pf_writer *w = must_new(false);
    struct tp_event ev = slice("x");
    struct tp_buf b = {0};
    struct tp_str all;
    struct tp_str thread;

    (void)state;
    must_write(w, &ev, &b);
    all = (struct tp_str){b.data, b.len};
    assert_int_equal(number_of(must_find(all, TP_PF_TRACE_PACKET, 0),
                               TP_PF_PACKET_SEQUENCE_FLAGS),
                     TP_PF_SEQUENCE_CLEARED);
    thread = must_find(must_find(all, TP_PF_TRACE_PACKET, 2),
                       TP_PF_PACKET_TRACK_DESCRIPTOR, 0);
    thread = must_find(thread, TP_PF_TRACK_THREAD, 0);
    assert_int_equal(number_of(thread, TP_PF_THREAD_PID), 4037);
    assert_int_equal(number_of(thread, TP_PF_THREAD_TID), 7);
    tp_buf_fini(&b);
    tp_pf_writer_free(w);
}

static void test_a_track_has_the_same_uuid_in_every_batch_of_a_log(void **state)
{
    struct tp_pf_writer *w = must_new(false);
    struct tp_track other = track;
    struct tp_event ev = slice("x");
    struct tp_buf b = {0};
    uint64_t uuids[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tp_str packet;

        b.len = 0;
        other.index = (uint32_t)i * 5;
        ev.track = &other;
        must_write(w, &ev, &b);
        packet = must_find((struct tp_str){b.data, b.len}, TP_PF_TRACE_PACKET, 3);
        uuids[i] = number_of(must_find(packet, TP_PF_PACKET_TRACK_EVENT, 0),
                             TP_PF_EVENT_TRACK_UUID);
        tp_pf_writer_reset(w);
    }
    assert_true(uuids[0] == uuids[1]);
    tp_buf_fini(&b);
    tp_pf_writer_free(w);
}

static void test_uuids_of_a_sealed_stream_are_small_and_different(void **state)
{
    uint64_t a = tp_pf_track_uuid(1, 0, 0);

    (void)state;
    assert_true(tp_pb_varint_bytes(tp_pf_track_uuid(500, 7, 0)) <= 3);
    assert_true(tp_pb_varint_bytes(tp_pf_track_uuid(65535, 1023, 0)) <= 4);
    assert_true(
        tp_pf_track_uuid(65535, TP_PF_TRACKS_MAX - 1, TP_PF_LANES_MAX - 1) >> 58 == 0);
    assert_true(a != tp_pf_track_uuid(2, 0, 0) && a != tp_pf_track_uuid(1, 1, 0) &&
                a != tp_pf_track_uuid(1, 0, 1) && a != 0);
}

static void test_each_series_of_a_counter_is_a_packet(void **state)
{
    struct tp_pf_writer *w = must_new(true);
    struct tp_arg args[2] = {{.key = {"read", 4, 0}, .kind = TP_ARG_INT, .i = 1},
                             {.key = {"write", 5, 0}, .kind = TP_ARG_DOUBLE, .d = 2.5}};
    struct tp_event ev = {.kind = TP_EVENT_COUNTER,
                          .phase = 'C',
                          .name = {"HBM", 3, 0},
                          .track = &track,
                          .args = args,
                          .n_args = 2};
    struct tp_buf b = {0};
    size_t n;
    const struct tp_pf_series *series;

    (void)state;
    must_write(w, &ev, &b);
    must_write(w, &ev, &b);
    assert_int_equal(count_fields((struct tp_str){b.data, b.len}, TP_PF_TRACE_PACKET),
                     4);
    series = tp_pf_writer_series(w, &n);
    assert_int_equal(n, 2);
    assert_true(tp_str_is(series[1].counter, "HBM"));
    assert_true(tp_str_is(series[1].series, "write"));
    assert_int_equal(series[1].track->pid.number, 4037);
    tp_pf_writer_reset(w);
    assert_null(tp_pf_writer_series(w, &n));
    assert_int_equal(n, 0);
    tp_buf_fini(&b);
    tp_pf_writer_free(w);
}

static void test_an_event_over_a_limit_is_refused_whole(void **state)
{
    struct tp_pf_writer *w = must_new(true);
    struct tp_event ev = slice("x");
    struct tp_track far = track;
    struct tp_buf b = {0};
    struct tp_err err;
    size_t before;
    char *big = malloc(TP_PF_EVENT_MAX);

    (void)state;
    assert_non_null(big);
    memset(big, 'a', TP_PF_EVENT_MAX);
    must_write(w, &ev, &b);
    before = b.len;
    ev.extra = (struct tp_str){big, TP_PF_EVENT_MAX};
    assert_int_equal(tp_pf_writer_event(w, &ev, &b, &err), TP_EQUOTA);
    ev.extra.len = 0;
    far.index = TP_PF_TRACKS_MAX;
    ev.track = &far;
    assert_int_equal(tp_pf_writer_event(w, &ev, &b, &err), TP_EQUOTA);
    far.index = 0;
    far.lane = TP_PF_LANES_MAX;
    assert_int_equal(tp_pf_writer_event(w, &ev, &b, &err), TP_EQUOTA);
    b.limit_bytes = b.len + 10;
    ev.track = &track;
    assert_int_equal(tp_pf_writer_event(w, &ev, &b, &err), TP_EQUOTA);
    assert_int_equal(b.len, before);
    free(big);
    tp_buf_fini(&b);
    tp_pf_writer_free(w);
}

static void test_names_beyond_the_caps_are_written_inline(void **state)
{
    struct tp_pf_writer_opts opts = {.stream_no = 1,
                                     .is_sealed = true,
                                     .intern_max = 2};
    struct tp_pf_writer *w = NULL;
    struct tp_buf b = {0};
    static const char *const names[] = {"one", "two", "three", "three"};

    (void)state;
    assert_int_equal(tp_pf_writer_new(&opts, &w, NULL), TP_OK);
    for (int i = 0; i < 4; i++) {
        struct tp_event ev = slice(names[i]);
        struct tp_str event;
        struct tp_pb_field f;

        b.len = 0;
        must_write(w, &ev, &b);
        event =
            must_find(must_find((struct tp_str){b.data, b.len}, TP_PF_TRACE_PACKET, 0),
                      TP_PF_PACKET_TRACK_EVENT, 0);
        assert_int_equal(find_field(event, TP_PF_EVENT_NAME, 0, &f), i >= 2);
    }
    tp_buf_fini(&b);
    tp_pf_writer_free(w);
}

/* A string that was numbered by an event that failed is still said by the next one. */
static void test_a_failed_event_leaves_no_string_unsaid(void **state)
{
    struct tp_pf_writer *w = must_new(true);
    struct tp_event ev = slice("needle");
    struct tp_buf b = {.limit_bytes = 20};

    (void)state;
    assert_int_equal(tp_pf_writer_event(w, &ev, &b, NULL), TP_EQUOTA);
    assert_int_equal(b.len, 0);
    b.limit_bytes = 0;
    must_write(w, &ev, &b);
    assert_non_null(memmem(b.data, b.len, "needle", 6));
    tp_buf_fini(&b);
    tp_pf_writer_free(w);
}

static void test_numbers_of_one_reader_save_a_look_up_and_change_nothing(void **state)
{
    struct tp_pf_writer_opts opts = {.stream_no = 1, .is_sealed = true};
    struct tp_buf out[2] = {{0}, {0}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tp_pf_writer *w = NULL;

        opts.has_one_reader = i == 1;
        assert_int_equal(tp_pf_writer_new(&opts, &w, NULL), TP_OK);
        for (unsigned k = 0; k < 600; k++) {
            char name[16];
            struct tp_event ev;

            snprintf(name, sizeof(name), "name %u", k % 300);
            ev = slice(name);
            ev.name.iid = i == 1 ? k % 300 + 1 : 0;
            ev.cat.iid = i == 1 ? 1000 : 0;
            must_write(w, &ev, &out[i]);
        }
        tp_pf_writer_free(w);
    }
    assert_int_equal(out[0].len, out[1].len);
    assert_memory_equal(out[0].data, out[1].data, out[0].len);
    tp_buf_fini(&out[0]);
    tp_buf_fini(&out[1]);
}

/* Write events with each allocation failing in turn; then read what is there. */
static void test_each_allocation_may_fail_and_whole_events_stay(void **state)
{
    struct events *g = malloc(sizeof(*g));
    bool is_done = false;

    (void)state;
    assert_non_null(g);
    for (int n = 0; !is_done; n++) {
        struct tp_pf_writer_opts opts = {.stream_no = 1};
        struct tp_pf_reader_opts reader_opts = {0};
        struct tp_pf_writer *w = NULL;
        struct tp_pf_reader *r = NULL;
        struct tp_buf b = {0};
        unsigned written = 0;
        unsigned read = 0;
        struct tp_pf_cursor c;
        enum tp_pf_item item;
        struct tp_event ev;

        events_init(g, 3);
        fault_arm(n);
        if (tp_pf_writer_new(&opts, &w, NULL) == TP_OK) {
            for (int k = 0; k < 30; k++) {
                size_t before = b.len;
                int rc;

                events_next(g, &ev);
                rc = tp_pf_writer_event(w, &ev, &b, NULL);
                assert_true(rc == TP_OK || (rc == TP_ENOMEM && b.len == before));
                written += rc == TP_OK;
            }
        }
        is_done = !fault_disarm();
        assert_int_equal(tp_pf_reader_new(&reader_opts, &r, NULL), TP_OK);
        c = (struct tp_pf_cursor){b.data, b.data + b.len};
        while (b.len > 0 && tp_pf_reader_next(r, &c, &item, &ev, NULL) == TP_OK)
            read++;
        if (read != written || c.ptr != c.end)
            fail_msg("allocation %d: %u events written, %u read", n, written, read);
        tp_pf_reader_free(r);
        tp_pf_writer_free(w);
        tp_buf_fini(&b);
    }
    free(g);
}

/* How many packets of b bring strings. */
static unsigned count_strings_packets(const struct tp_buf *b)
{
    struct tp_pb c = {b->data, b->data + b->len};
    struct tp_pb_field f;
    unsigned n = 0;

    while (c.p < c.end) {
        assert_true(tp_pb_get_field(&c, &f));
        n += count_fields((struct tp_str){f.bytes, f.value},
                          TP_PF_PACKET_INTERNED_DATA) > 0;
    }
    return n;
}

static void test_names_come_first_and_later_ones_get_no_number(void **state)
{
    struct tp_pf_writer *w = must_new(true);
    struct tp_event late = slice("late");
    struct tp_buf b = {0};
    char name[TP_PF_INLINE_BYTES];
    unsigned n_packets;

    (void)state;
    memset(name, 'n', sizeof(name));
    for (unsigned i = 0; i < 600; i++) { /* more than one packet should have */
        struct tp_event ev = slice("");

        memcpy(name, &i, sizeof(i));
        ev.name.ptr = name;
        ev.name.len = sizeof(name);
        assert_int_equal(tp_pf_writer_number(w, &ev, NULL), TP_OK);
    }
    assert_int_equal(b.len, 0);
    assert_int_equal(tp_pf_writer_names(w, &b, NULL), TP_OK);
    n_packets = count_strings_packets(&b);
    assert_in_range(n_packets, 3, 5);
    assert_int_equal(tp_pf_writer_names(w, &b, NULL), TP_OK);
    must_write(w, &late, &b);
    assert_int_equal(count_strings_packets(&b), n_packets);
    tp_pf_writer_reset(w);
    must_write(w, &late, &b);
    assert_int_equal(count_strings_packets(&b), n_packets + 1);
    tp_pf_writer_free(w);
    tp_buf_fini(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_slice_is_a_begin_and_an_end_that_perfetto_knows),
        cmocka_unit_test(test_a_name_is_said_once),
        cmocka_unit_test(
            test_a_payload_of_a_log_begins_with_state_cleared_and_its_tracks),
        cmocka_unit_test(test_a_track_has_the_same_uuid_in_every_batch_of_a_log),
        cmocka_unit_test(test_uuids_of_a_sealed_stream_are_small_and_different),
        cmocka_unit_test(test_each_series_of_a_counter_is_a_packet),
        cmocka_unit_test(test_an_event_over_a_limit_is_refused_whole),
        cmocka_unit_test(test_names_beyond_the_caps_are_written_inline),
        cmocka_unit_test(test_names_come_first_and_later_ones_get_no_number),
        cmocka_unit_test(test_a_failed_event_leaves_no_string_unsaid),
        cmocka_unit_test(test_numbers_of_one_reader_save_a_look_up_and_change_nothing),
        cmocka_unit_test(test_each_allocation_may_fail_and_whole_events_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
