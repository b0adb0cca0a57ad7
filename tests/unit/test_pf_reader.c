/*
 * test_pf_reader.c - our own streams come back exactly, and damage is found where it
 * is. Traces of others are in test_pf_event.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/pb.h"
#include "base/pb_read.h"
#include "support/events.h"
#include "support/fault.h"
#include "support/pf_message.h"
#include "support/pf_reading.h"
#include "trace/frame.h"
#include "trace/pf_fields.h"
#include "trace/pf_reader.h"
#include "trace/pf_writer.h"

/* Our own streams. */

static void teach(struct tp_pf_reader *r, const struct tp_pf_writer *w,
                  const struct events *g, size_t *n_series)
{
    const struct tp_pf_series *s;
    size_t n;

    for (uint32_t i = 0; *n_series == 0 && i < EVENTS_TRACKS; i++)
        assert_int_equal(tp_pf_reader_add_track(r, tp_pf_track_uuid(5, i, 0), 0,
                                                &g->tracks[i].pid, &g->tracks[i].tid,
                                                NULL),
                         TP_OK);
    s = tp_pf_writer_series(w, &n);
    for (; *n_series < n; ++*n_series)
        assert_int_equal(
            tp_pf_reader_add_series(r, s[*n_series].uuid, &s[*n_series].track->pid,
                                    &s[*n_series].track->tid, s[*n_series].counter,
                                    s[*n_series].series, NULL),
            TP_OK);
}

static void round_trip(bool is_sealed, bool is_trusted, unsigned n_events)
{
    struct events *g = malloc(sizeof(*g));
    struct tp_pf_writer_opts opts = {.stream_no = 5, .is_sealed = is_sealed};
    struct tp_pf_writer *w = NULL;
    struct tp_pf_reader *r = must_new(is_trusted);
    struct tp_buf b = {0};
    size_t n_series = 0;

    assert_non_null(g);
    assert_int_equal(tp_pf_writer_new(&opts, &w, NULL), TP_OK);
    events_init(g, 42);
    for (unsigned i = 0; i < n_events; i++) {
        struct tp_event ev;
        struct tp_event got;
        struct tp_pf_cursor c;
        const char *why;
        char *copy;

        b.len = 0;
        events_next(g, &ev);
        assert_int_equal(tp_pf_writer_event(w, &ev, &b, NULL), TP_OK);
        if (is_sealed)
            teach(r, w, g, &n_series);
        copy = malloc(b.len); /* of the exact size, for ASan */
        assert_non_null(copy);
        memcpy(copy, b.data, b.len);
        c = (struct tp_pf_cursor){copy, copy + b.len};
        got = must_next(r, &c);
        if (!events_equal(&ev, &got, &why))
            fail_msg("sealed %d event %u: %s differs", is_sealed, i, why);
        assert_end(r, &c);
        free(copy);
        if (!is_sealed && i % 50 == 49)
            tp_pf_writer_reset(w); /* a new batch */
    }
    assert_int_equal(tp_pf_reader_skipped(r).events, 0);
    assert_int_equal(tp_pf_reader_skipped(r).repaired, 0);
    tp_pf_reader_free(r);
    tp_pf_writer_free(w);
    tp_buf_fini(&b);
    free(g);
}

static void test_every_event_comes_back_from_a_log(void **state)
{
    (void)state;
    round_trip(false, false, 5000);
    round_trip(false, true, 1000);
}

/* The unscoped id that the only packet's legacy_event has; 0: it is not public. */
static uint64_t shown_id(const struct tp_event *ev, uint32_t stream_no)
{
    struct tp_pf_writer_opts opts = {.stream_no = stream_no, .is_sealed = true};
    struct tp_pf_writer *w = NULL;
    struct tp_pf_reader *r = must_new(false);
    struct tp_buf b = {0};
    struct tp_pf_cursor c;
    struct tp_pb at;
    struct tp_pb_field f;
    uint32_t path[] = {TP_PF_TRACE_PACKET, TP_PF_PACKET_TRACK_EVENT, TP_PF_EVENT_LEGACY,
                       TP_PF_LEGACY_UNSCOPED_ID};
    struct tp_event got;
    const char *why;
    size_t depth = 0;
    uint64_t id = 0;

    assert_int_equal(tp_pf_writer_new(&opts, &w, NULL), TP_OK);
    assert_int_equal(tp_pf_writer_event(w, ev, &b, NULL), TP_OK);
    assert_int_equal(tp_pf_reader_add_track(r, tp_pf_track_uuid(stream_no, 0, 0), 0,
                                            &ev->track->pid, &ev->track->tid, NULL),
                     TP_OK);
    c = (struct tp_pf_cursor){b.data, b.data + b.len};
    got = must_next(r, &c);
    if (!events_equal(ev, &got, &why))
        fail_msg("%.*s: %s differs", (int)ev->extra.len, ev->extra.ptr, why);
    at = (struct tp_pb){b.data, b.data + b.len};
    while (depth < 4 && at.p < at.end && tp_pb_get_field(&at, &f)) {
        if (f.number != path[depth])
            continue;
        if (++depth == 4)
            id = f.value;
        else
            at = (struct tp_pb){f.bytes, f.bytes + f.value};
    }
    tp_pf_reader_free(r);
    tp_pf_writer_free(w);
    tp_buf_fini(&b);
    return id;
}

static void test_an_id2_joins_operations_and_comes_back_as_it_was(void **state)
{
    static const char local[] = "\"a\":[1],\"id2\":{\"local\":\"0x5\"}";
    static const char global[] = "\"id2\":{\"global\":\"0x5\"},\"b\":{}";
    struct tp_track tracks[] = {
        {.pid = {.kind = TP_ID_NUMBER, .number = 1}, .tid = {.kind = TP_ID_NUMBER}},
        {.pid = {.kind = TP_ID_NUMBER, .number = 2}, .tid = {.kind = TP_ID_NUMBER}}};
    struct tp_event begin = {.kind = TP_EVENT_ASYNC_BEGIN,
                             .phase = 'b',
                             .ts_ns = 5,
                             .name = {"n", 1, 0},
                             .cat = {"c", 1, 0},
                             .track = &tracks[0],
                             .extra = tp_str_of(local)};
    struct tp_event end = begin;
    struct tp_event other = begin;

    (void)state;
    end.kind = TP_EVENT_ASYNC_END;
    end.phase = 'e';
    other.track = &tracks[1];
    assert_int_not_equal(shown_id(&begin, 3), 0);
    assert_int_equal(shown_id(&begin, 3), shown_id(&end, 3));
    assert_int_not_equal(shown_id(&begin, 3), shown_id(&other, 3));
    assert_int_not_equal(shown_id(&begin, 3), shown_id(&begin, 4));
    begin.extra = other.extra = tp_str_of(global);
    assert_int_equal(shown_id(&begin, 3), shown_id(&other, 3));
    assert_int_not_equal(shown_id(&begin, 3), shown_id(&begin, 4));
    begin.extra = tp_str_of("\"id3\":7");
    assert_int_equal(shown_id(&begin, 3), 0);
}

static void test_every_event_comes_back_from_a_sealed_stream(void **state)
{
    (void)state;
    round_trip(true, false, 5000);
    round_trip(true, true, 1000);
}

static void test_lanes_slices_in_halves_ghosts_and_private_flows_come_back(void **state)
{
    struct tp_pf_writer_opts opts = {.stream_no = 9, .is_sealed = true};
    struct tp_track t = {.index = 3,
                         .lane = 2,
                         .pid = {TP_ID_NUMBER, 1, {NULL, 0}},
                         .tid = {TP_ID_TEXT, 0, {"stream 7", 8}}};
    struct tp_event ev = {
        .kind = TP_EVENT_SLICE, .phase = 'X', .dur_ns = 7, .track = &t};
    struct tp_event flow = {.kind = TP_EVENT_FLOW_START,
                            .phase = 's',
                            .ts_ns = 99,
                            .id = {TP_ID_NUMBER, 42, {NULL, 0}},
                            .track = &t};
    struct tp_pf_writer *w = NULL;
    struct tp_pf_reader *r = must_new(true);
    struct tp_buf b = {0};
    struct tp_pf_cursor c;
    struct tp_event got;
    enum tp_pf_item item;
    const char *why;

    (void)state;
    assert_int_equal(tp_pf_writer_new(&opts, &w, NULL), TP_OK);
    assert_int_equal(
        tp_pf_writer_slice_begin(w, &ev, (struct tp_str){NULL, 0}, &b, NULL), TP_OK);
    assert_int_equal(tp_pf_writer_private(w, &flow, &b, NULL), TP_OK);
    assert_int_equal(tp_pf_writer_slice_end(w, &ev, &b, NULL), TP_OK);
    assert_int_equal(tp_pf_writer_ghost(w, &flow, &b, NULL), TP_OK);
    assert_int_equal(tp_pf_reader_add_track(r, tp_pf_track_uuid(9, 3, 2), 2, &t.pid,
                                            &t.tid, NULL),
                     TP_OK);
    c = (struct tp_pf_cursor){b.data, b.data + b.len};
    got = must_next(r, &c);
    if (!events_equal(&ev, &got, &why))
        fail_msg("slice: %s differs", why);
    got = must_next(r, &c);
    if (!events_equal(&flow, &got, &why))
        fail_msg("flow: %s differs", why);
    assert_int_equal(tp_pf_reader_next(r, &c, &item, &got, NULL), TP_OK);
    assert_int_equal(item, TP_PF_GHOST);
    assert_int_equal(got.kind, TP_EVENT_BEGIN);
    assert_int_equal(got.ts_ns, 99);
    assert_int_equal(got.track->lane, 2);
    assert_end(r, &c);
    tp_pf_reader_free(r);
    tp_pf_writer_free(w);
    tp_buf_fini(&b);
}

static void test_equal_numbers_mean_equal_names_across_batches(void **state)
{
    static const struct tp_track t = {.index = 0};
    struct tp_pf_writer_opts opts = {.stream_no = 1};
    struct tp_pf_writer *w = NULL;
    struct tp_pf_reader *r = must_new(false);
    static const char *const names[] = {"b", "a", "a", "c", "b"};
    uint32_t iids[5];
    struct tp_buf b = {0};
    struct tp_pf_cursor c;

    (void)state;
    assert_int_equal(tp_pf_writer_new(&opts, &w, NULL), TP_OK);
    for (int i = 0; i < 5; i++) {
        struct tp_event ev = {.kind = TP_EVENT_INSTANT, .phase = 'i', .track = &t};

        ev.name = (struct tp_name){names[i], 1, 0};
        assert_int_equal(tp_pf_writer_event(w, &ev, &b, NULL), TP_OK);
        tp_pf_writer_reset(w);
    }
    c = (struct tp_pf_cursor){b.data, b.data + b.len};
    for (int i = 0; i < 5; i++) {
        struct tp_event ev = must_next(r, &c);

        assert_name(&ev.name, names[i]);
        iids[i] = ev.name.iid;
    }
    assert_true(iids[1] == iids[2] && iids[0] == iids[4] && iids[0] != iids[1]);
    assert_true(iids[0] != 0 && iids[3] != iids[0] && iids[3] < 10);
    tp_pf_reader_free(r);
    tp_pf_writer_free(w);
    tp_buf_fini(&b);
}

static void test_a_stream_may_come_byte_by_byte(void **state)
{
    struct events *g = malloc(sizeof(*g));
    struct tp_pf_writer_opts opts = {.stream_no = 5};
    struct tp_pf_writer *w = NULL;
    struct tp_pf_reader *r = must_new(false);
    struct tp_buf b = {0};
    struct tp_event ev;
    enum tp_pf_item item;
    unsigned n = 0;
    size_t start = 0;

    (void)state;
    assert_non_null(g);
    assert_int_equal(tp_pf_writer_new(&opts, &w, NULL), TP_OK);
    events_init(g, 8);
    for (int i = 0; i < 40; i++) {
        events_next(g, &ev);
        assert_int_equal(tp_pf_writer_event(w, &ev, &b, NULL), TP_OK);
    }
    for (size_t end = 0; end <= b.len; end++) {
        struct tp_pf_cursor c = {b.data + start, b.data + end};
        int rc;

        while ((rc = tp_pf_reader_next(r, &c, &item, &ev, NULL)) == TP_OK)
            n++;
        if (rc != TP_EAGAIN)
            fail_msg("code %d with %zu bytes", rc, end);
        start = (size_t)(c.ptr - b.data);
    }
    assert_int_equal(n, 40);
    assert_int_equal(start, b.len);
    tp_pf_reader_free(r);
    tp_pf_writer_free(w);
    tp_buf_fini(&b);
    free(g);
}

static void test_a_frame_header_is_an_item_of_its_own(void **state)
{
    struct tp_frame f = {.seq = 7, .has_seq = true};
    struct tp_frame got;
    char bytes[TP_FRAME_BYTES];
    struct tp_pf_cursor c = {bytes, bytes + sizeof(bytes)};
    struct tp_pf_reader *r = must_new(false);
    enum tp_pf_item item;
    struct tp_event ev;

    (void)state;
    tp_frame_encode(&f, bytes);
    assert_int_equal(tp_pf_reader_next(r, &c, &item, &ev, NULL), TP_OK);
    assert_int_equal(item, TP_PF_FRAME);
    assert_int_equal(tp_frame_decode_content(tp_pf_reader_frame(r), &got, NULL), TP_OK);
    assert_int_equal(got.seq, 7);
    assert_end(r, &c);
    tp_pf_reader_free(r);
}

/* Damage and limits. */

/* Thread 7 of process 4 as track 11, process 4 as 10, a named track 12 in it. */
static void put_tracks(struct pf_message *trace)
{
    struct pf_message process = {.n = 0};
    struct pf_message thread = {.n = 0};
    struct pf_message d10 = {.n = 0};
    struct pf_message d11 = {.n = 0};
    struct pf_message d12 = {.n = 0};

    pf_message_number(&process, TP_PF_PROCESS_PID, 4);
    pf_message_text(&process, TP_PF_PROCESS_NAME, "python");
    pf_message_number(&d10, TP_PF_TRACK_UUID, 10);
    pf_message_nest(&d10, TP_PF_TRACK_PROCESS, &process);
    pf_message_number(&thread, TP_PF_THREAD_PID, 4);
    pf_message_number(&thread, TP_PF_THREAD_TID, 7);
    pf_message_text(&thread, TP_PF_THREAD_NAME, "main");
    pf_message_number(&d11, TP_PF_TRACK_UUID, 11);
    pf_message_nest(&d11, TP_PF_TRACK_THREAD, &thread);
    pf_message_number(&d12, TP_PF_TRACK_UUID, 12);
    pf_message_number(&d12, TP_PF_TRACK_PARENT, 10);
    pf_message_text(&d12, TP_PF_TRACK_NAME, "queue 3");
    pf_message_packet(trace, TP_PF_PACKET_TRACK_DESCRIPTOR,
                      &d12); /* before its parent */
    pf_message_packet(trace, TP_PF_PACKET_TRACK_DESCRIPTOR, &d10);
    pf_message_packet(trace, TP_PF_PACKET_TRACK_DESCRIPTOR, &d11);
}

static void test_what_is_no_packet_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *what;
        const char *bytes;
        size_t n;
    } cases[] = {
        {"JSON", "{\"traceEvents\":[]}", 18},
        {"a field number 0", "\x00\x01", 2},
        {"a packet of garbage", "\x0a\x02\xff\xff", 4},
        {"a track event cut short", "\x0a\x04\x5a\x02\x48\x80", 6},
        {"an event with a group", "\x0a\x03\x5a\x01\x0b", 5},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct pf_message trace = {.n = 0};
        struct tp_pf_reader *r = must_new(false);
        struct tp_pf_cursor c;
        struct tp_event ev;
        enum tp_pf_item item;
        struct tp_err err;
        char place[32];
        size_t good;

        pf_message_simple(&trace, 1, TP_PF_TYPE_INSTANT, 0, "good");
        good = trace.n;
        memcpy(trace.bytes + good, cases[i].bytes, cases[i].n);
        trace.n += cases[i].n;
        c = over(&trace);
        must_next(r, &c);
        if (tp_pf_reader_next(r, &c, &item, &ev, &err) != TP_EINVAL ||
            c.ptr != trace.bytes + good)
            fail_msg("%s is not refused", cases[i].what);
        snprintf(place, sizeof(place), "byte %zu ", good);
        assert_non_null(strstr(err.message, place));
        tp_pf_reader_free(r);
    }
}

static void test_a_packet_over_the_limit_is_passed_over(void **state)
{
    struct tp_pf_reader_opts opts = {.packet_bytes = 40};
    struct tp_pf_reader *r = NULL;
    struct pf_message trace = {.n = 0};
    struct tp_pf_cursor c;
    struct tp_event ev;
    enum tp_pf_item item;

    (void)state;
    assert_int_equal(tp_pf_reader_new(&opts, &r, NULL), TP_OK);
    pf_message_simple(&trace, 1, TP_PF_TYPE_INSTANT, 0,
                      "a name that makes the packet longer than the limit");
    pf_message_simple(&trace, 2, TP_PF_TYPE_INSTANT, 0, "good");
    c = over(&trace);
    assert_int_equal(tp_pf_reader_next(r, &c, &item, &ev, NULL), TP_EQUOTA);
    ev = must_next(r, &c);
    assert_name(&ev.name, "good");
    tp_pf_reader_free(r);
}

static void test_tracks_and_sequences_over_the_limits_are_refused(void **state)
{
    struct tp_pf_reader_opts opts = {.tracks_max = 3, .sequences_max = 1};
    struct tp_pf_reader *r = NULL;
    struct pf_message trace = {.n = 0};
    struct pf_message packet = {.n = 0};
    struct tp_pf_cursor c;
    struct tp_event ev;
    enum tp_pf_item item;

    (void)state;
    assert_int_equal(tp_pf_reader_new(&opts, &r, NULL), TP_OK);
    for (uint64_t i = 1; i <= 4; i++)
        pf_message_simple(&trace, i, TP_PF_TYPE_INSTANT, 100 + i, "x");
    pf_message_number(&packet, TP_PF_PACKET_SEQUENCE_ID, 2);
    pf_message_nest(&trace, TP_PF_TRACE_PACKET, &packet);
    c = over(&trace);
    for (int i = 0; i < 3; i++)
        must_next(r, &c);
    assert_int_equal(tp_pf_reader_next(r, &c, &item, &ev, NULL), TP_EQUOTA);
    assert_int_equal(tp_pf_reader_next(r, &c, &item, &ev, NULL), TP_EQUOTA);
    assert_end(r, &c);
    tp_pf_reader_free(r);
}

static void test_interned_strings_over_the_limit_are_refused(void **state)
{
    struct tp_pf_reader_opts opts = {.intern_bytes = 8192};
    struct tp_pf_reader *r = NULL;
    struct tp_event ev;
    enum tp_pf_item item;
    int rc = TP_EAGAIN;

    (void)state;
    assert_int_equal(tp_pf_reader_new(&opts, &r, NULL), TP_OK);
    for (uint64_t iid = 1; iid < 2000 && rc == TP_EAGAIN; iid++) {
        struct pf_message trace = {.n = 0};
        struct pf_message data = {.n = 0};
        struct pf_message entry = {.n = 0};
        struct tp_pf_cursor c;
        char name[32];

        snprintf(name, sizeof(name), "name number %llu", (unsigned long long)iid);
        pf_message_number(&entry, TP_PF_INTERNED_IID, iid);
        pf_message_text(&entry, TP_PF_INTERNED_TEXT, name);
        pf_message_nest(&data, TP_PF_INTERNED_NAMES, &entry);
        pf_message_packet(&trace, TP_PF_PACKET_INTERNED_DATA, &data);
        c = over(&trace);
        rc = tp_pf_reader_next(r, &c, &item, &ev, NULL);
        assert_ptr_equal(c.ptr, c.end);
    }
    assert_int_equal(rc, TP_EQUOTA);
    tp_pf_reader_free(r);
}

static void test_each_allocation_may_fail_and_the_packet_can_be_read_again(void **state)
{
    struct events *g = malloc(sizeof(*g));
    struct tp_pf_writer_opts opts = {.stream_no = 5};
    struct tp_pf_writer *w = NULL;
    struct pf_message foreign = {.n = 0};
    struct tp_buf b = {0};
    struct tp_event ev;
    bool is_done = false;

    (void)state;
    assert_non_null(g);
    assert_int_equal(tp_pf_writer_new(&opts, &w, NULL), TP_OK);
    events_init(g, 12);
    for (int i = 0; i < 30; i++) {
        events_next(g, &ev);
        assert_int_equal(tp_pf_writer_event(w, &ev, &b, NULL), TP_OK);
    }
    put_tracks(&foreign);
    pf_message_simple(&foreign, 3, TP_PF_TYPE_INSTANT, 12, "bad \xff utf8");
    assert_int_equal(tp_buf_append(&b, foreign.bytes, foreign.n, NULL), TP_OK);
    for (int n = 0; !is_done; n++) {
        struct tp_pf_reader_opts reader_opts = {0};
        struct tp_pf_reader *r = NULL;
        struct tp_pf_cursor c = {b.data, b.data + b.len};
        enum tp_pf_item item;
        unsigned n_events = 0;
        unsigned n_failures = 0;
        int rc = TP_OK;

        fault_arm(n);
        if (tp_pf_reader_new(&reader_opts, &r, NULL) == TP_OK) {
            while (rc == TP_OK || rc == TP_ENOMEM) {
                rc = tp_pf_reader_next(r, &c, &item, &ev, NULL);
                n_events += rc == TP_OK;
                n_failures += rc == TP_ENOMEM;
            }
            assert_int_equal(rc, TP_EAGAIN);
            assert_int_equal(n_events, 33);
        }
        is_done = !fault_disarm();
        assert_true(n_failures <= 1);
        tp_pf_reader_free(r);
    }
    tp_pf_writer_free(w);
    tp_buf_fini(&b);
    free(g);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_event_comes_back_from_a_log),
        cmocka_unit_test(test_an_id2_joins_operations_and_comes_back_as_it_was),
        cmocka_unit_test(test_every_event_comes_back_from_a_sealed_stream),
        cmocka_unit_test(
            test_lanes_slices_in_halves_ghosts_and_private_flows_come_back),
        cmocka_unit_test(test_equal_numbers_mean_equal_names_across_batches),
        cmocka_unit_test(test_a_stream_may_come_byte_by_byte),
        cmocka_unit_test(test_a_frame_header_is_an_item_of_its_own),
        cmocka_unit_test(test_what_is_no_packet_is_refused_with_its_place),
        cmocka_unit_test(test_a_packet_over_the_limit_is_passed_over),
        cmocka_unit_test(test_tracks_and_sequences_over_the_limits_are_refused),
        cmocka_unit_test(test_interned_strings_over_the_limit_are_refused),
        cmocka_unit_test(
            test_each_allocation_may_fail_and_the_packet_can_be_read_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
