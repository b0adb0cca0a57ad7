/*
 * test_pf_reader.c - our own streams come back exactly; traces of others as far as an
 * event can say it; and damage is found where it is.
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
#include "support/events.h"
#include "support/fault.h"
#include "trace/frame.h"
#include "trace/pf_fields.h"
#include "trace/pf_reader.h"
#include "trace/pf_writer.h"

/* Packets of others, put together by hand. */

/* A message under construction. */
struct message {
    char bytes[2048];
    size_t n;
};

static void number(struct message *m, uint32_t field, uint64_t v)
{
    m->n = (size_t)(tp_pb_put_u64(m->bytes + m->n, field, v) - m->bytes);
}

static void text(struct message *m, uint32_t field, const char *s)
{
    m->n = (size_t)(tp_pb_put_bytes(m->bytes + m->n, field, s, strlen(s)) - m->bytes);
}

static void real(struct message *m, uint32_t field, double d)
{
    m->n = (size_t)(tp_pb_put_double(m->bytes + m->n, field, d) - m->bytes);
}

static void nest(struct message *m, uint32_t field, const struct message *inner)
{
    m->n = (size_t)(tp_pb_put_bytes(m->bytes + m->n, field, inner->bytes, inner->n) -
                    m->bytes);
}

/* Append a packet of sequence 1 with a track event at ts. */
static void put_event(struct message *trace, uint64_t ts, const struct message *event)
{
    struct message packet = {.n = 0};

    number(&packet, TP_PF_PACKET_TIMESTAMP, ts);
    number(&packet, TP_PF_PACKET_SEQUENCE_ID, 1);
    nest(&packet, TP_PF_PACKET_TRACK_EVENT, event);
    nest(trace, TP_PF_TRACE_PACKET, &packet);
}

static void put_packet(struct message *trace, uint32_t field,
                       const struct message *inner)
{
    struct message packet = {.n = 0};

    number(&packet, TP_PF_PACKET_SEQUENCE_ID, 1);
    nest(&packet, field, inner);
    nest(trace, TP_PF_TRACE_PACKET, &packet);
}

static struct tp_pf_reader *must_new(bool is_trusted)
{
    struct tp_pf_reader_opts opts = {.is_trusted = is_trusted};
    struct tp_pf_reader *r = NULL;

    assert_int_equal(tp_pf_reader_new(&opts, &r, NULL), TP_OK);
    return r;
}

/* The next event of a trace, which must be there. */
static struct tp_event must_next(struct tp_pf_reader *r, struct tp_pf_cursor *c)
{
    struct tp_event ev;
    enum tp_pf_item item;
    struct tp_err err = {.message = "no more events"};

    if (tp_pf_reader_next(r, c, &item, &ev, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(item, TP_PF_EVENT);
    return ev;
}

static void assert_end(struct tp_pf_reader *r, struct tp_pf_cursor *c)
{
    struct tp_event ev;
    enum tp_pf_item item;

    assert_int_equal(tp_pf_reader_next(r, c, &item, &ev, NULL), TP_EAGAIN);
    assert_ptr_equal(c->ptr, c->end);
}

static struct tp_pf_cursor over(const struct message *m)
{
    return (struct tp_pf_cursor){m->bytes, m->bytes + m->n};
}

static void assert_name(const struct tp_name *name, const char *expected)
{
    if (!tp_str_is((struct tp_str){name->ptr, name->len}, expected))
        fail_msg("name is '%.*s', not '%s'", (int)name->len, name->ptr, expected);
}

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
    assert_int_equal(tp_pf_writer_slice_begin(w, &ev, &b, NULL), TP_OK);
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

/* Traces of others. */

/* Thread 7 of process 4 as track 11, process 4 as 10, a named track 12 in it. */
static void put_tracks(struct message *trace)
{
    struct message process = {.n = 0};
    struct message thread = {.n = 0};
    struct message d10 = {.n = 0};
    struct message d11 = {.n = 0};
    struct message d12 = {.n = 0};

    number(&process, TP_PF_PROCESS_PID, 4);
    text(&process, TP_PF_PROCESS_NAME, "python");
    number(&d10, TP_PF_TRACK_UUID, 10);
    nest(&d10, TP_PF_TRACK_PROCESS, &process);
    number(&thread, TP_PF_THREAD_PID, 4);
    number(&thread, TP_PF_THREAD_TID, 7);
    text(&thread, TP_PF_THREAD_NAME, "main");
    number(&d11, TP_PF_TRACK_UUID, 11);
    nest(&d11, TP_PF_TRACK_THREAD, &thread);
    number(&d12, TP_PF_TRACK_UUID, 12);
    number(&d12, TP_PF_TRACK_PARENT, 10);
    text(&d12, TP_PF_TRACK_NAME, "queue 3");
    put_packet(trace, TP_PF_PACKET_TRACK_DESCRIPTOR, &d12); /* before its parent */
    put_packet(trace, TP_PF_PACKET_TRACK_DESCRIPTOR, &d10);
    put_packet(trace, TP_PF_PACKET_TRACK_DESCRIPTOR, &d11);
}

static void put_simple(struct message *trace, uint64_t ts, uint64_t type, uint64_t uuid,
                       const char *name)
{
    struct message event = {.n = 0};

    number(&event, TP_PF_EVENT_TYPE, type);
    number(&event, TP_PF_EVENT_TRACK_UUID, uuid);
    if (name != NULL)
        text(&event, TP_PF_EVENT_NAME, name);
    put_event(trace, ts, &event);
}

static void test_tracks_of_others_are_threads_processes_and_named_tracks(void **state)
{
    struct message trace = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    put_tracks(&trace);
    put_tracks(&trace); /* repeated after each "state cleared" by the SDK */
    put_simple(&trace, 1, TP_PF_TYPE_BEGIN, 11, "a");
    put_simple(&trace, 2, TP_PF_TYPE_END, 11, NULL);
    put_simple(&trace, 3, TP_PF_TYPE_INSTANT, 12, "b");
    put_simple(&trace, 4, TP_PF_TYPE_INSTANT, 10, "c");
    put_simple(&trace, 5, TP_PF_TYPE_INSTANT, 0, "d");
    put_simple(&trace, 6, TP_PF_TYPE_INSTANT, 999, "e");
    c = over(&trace);

    ev = must_next(r, &c);
    assert_int_equal(ev.kind, TP_EVENT_META);
    assert_name(&ev.name, "process_name");
    assert_true(tp_str_is(ev.args[0].s, "python"));
    ev = must_next(r, &c);
    assert_name(&ev.name, "thread_name");
    assert_int_equal(ev.track->tid.number, 7);

    ev = must_next(r, &c);
    assert_int_equal(ev.kind, TP_EVENT_BEGIN);
    assert_int_equal(ev.ts_ns, 1);
    assert_int_equal(ev.track->pid.number, 4);
    assert_int_equal(ev.track->tid.number, 7);
    assert_int_equal(must_next(r, &c).kind, TP_EVENT_END);
    ev = must_next(r, &c);
    assert_int_equal(ev.track->pid.number, 4);
    assert_true(tp_str_is(ev.track->tid.text, "queue 3"));
    ev = must_next(r, &c);
    assert_int_equal(ev.track->pid.number, 4);
    assert_int_equal(ev.track->tid.kind, TP_ID_NONE);
    assert_int_equal(must_next(r, &c).track->pid.kind, TP_ID_NONE);
    assert_true(tp_str_is(must_next(r, &c).track->tid.text, "track 999"));
    assert_end(r, &c);
    tp_pf_reader_free(r);
}

static void test_flow_ids_become_flows_behind_their_slice(void **state)
{
    struct message trace = {.n = 0};
    struct message event = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_BEGIN);
    event.n = (size_t)(tp_pb_put_fixed64(event.bytes + event.n, TP_PF_EVENT_FLOWS, 77) -
                       event.bytes);
    put_event(&trace, 1, &event);
    put_event(&trace, 2, &event);
    event.n = 0;
    number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_BEGIN);
    number(&event, TP_PF_EVENT_END_FLOWS_OLD, 77);
    put_event(&trace, 3, &event);
    c = over(&trace);

    assert_int_equal(must_next(r, &c).kind, TP_EVENT_BEGIN);
    ev = must_next(r, &c);
    assert_int_equal(ev.kind, TP_EVENT_FLOW_START);
    assert_int_equal(ev.id.number, 77);
    assert_int_equal(ev.ts_ns, 1);
    must_next(r, &c);
    assert_int_equal(must_next(r, &c).kind, TP_EVENT_FLOW_STEP);
    must_next(r, &c);
    ev = must_next(r, &c);
    assert_int_equal(ev.kind, TP_EVENT_FLOW_END);
    assert_true(ev.binds_enclosing);
    assert_end(r, &c);
    tp_pf_reader_free(r);
}

/* An annotation named key whose value is the last field. */
static struct message annotation(const char *key)
{
    struct message m = {.n = 0};

    if (key != NULL)
        text(&m, TP_PF_ARG_NAME, key);
    return m;
}

static void test_annotations_of_others_become_arguments(void **state)
{
    struct message trace = {.n = 0};
    struct message event = {.n = 0};
    struct message dict = annotation("dict");
    struct message array = annotation("list");
    struct message item = annotation(NULL);
    struct message a;
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT);
    number(&item, TP_PF_ARG_INT, 5);
    nest(&array, TP_PF_ARG_ARRAY, &item);
    item = annotation(NULL);
    text(&item, TP_PF_ARG_STRING, "a \"b\"");
    nest(&array, TP_PF_ARG_ARRAY, &item);
    nest(&dict, TP_PF_ARG_DICT, &array);
    item = annotation("x");
    number(&item, TP_PF_ARG_BOOL, 1);
    nest(&dict, TP_PF_ARG_DICT, &item);
    nest(&event, TP_PF_EVENT_ARGS, &dict);
    a = annotation("p");
    number(&a, TP_PF_ARG_POINTER, 255);
    nest(&event, TP_PF_EVENT_ARGS, &a);
    a = annotation("nan");
    real(&a, TP_PF_ARG_DOUBLE, __builtin_nan(""));
    nest(&event, TP_PF_EVENT_ARGS, &a);
    a = annotation("bad");
    text(&a, TP_PF_ARG_JSON, "{\"never\": ends");
    nest(&event, TP_PF_EVENT_ARGS, &a);
    a = annotation("u");
    number(&a, TP_PF_ARG_UINT, UINT64_MAX);
    nest(&event, TP_PF_EVENT_ARGS, &a);
    a = annotation("small");
    number(&a, TP_PF_ARG_UINT, 3);
    nest(&event, TP_PF_EVENT_ARGS, &a);
    put_event(&trace, 1, &event);
    c = over(&trace);

    ev = must_next(r, &c);
    assert_int_equal(ev.n_args, 6);
    assert_int_equal(ev.args[0].kind, TP_ARG_JSON);
    assert_true(tp_str_is(ev.args[0].s, "{\"list\":[5,\"a \\\"b\\\"\"],\"x\":true}"));
    assert_true(tp_str_is(ev.args[1].s, "0xff"));
    assert_true(tp_str_is(ev.args[2].s, "NaN"));
    assert_int_equal(ev.args[3].kind, TP_ARG_STRING);
    assert_int_equal(ev.args[4].kind, TP_ARG_UINT);
    assert_int_equal(ev.args[5].kind, TP_ARG_INT);
    tp_pf_reader_free(r);
}

static void test_legacy_phases_are_understood(void **state)
{
    struct message trace = {.n = 0};
    struct message event = {.n = 0};
    struct message legacy = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    number(&legacy, TP_PF_LEGACY_PHASE, 'X');
    number(&legacy, TP_PF_LEGACY_DURATION_US, 12);
    number(&legacy, TP_PF_LEGACY_PID, 3);
    number(&legacy, TP_PF_LEGACY_TID, 9);
    nest(&event, TP_PF_EVENT_LEGACY, &legacy);
    put_event(&trace, 1, &event);
    c = over(&trace);
    ev = must_next(r, &c);
    assert_int_equal(ev.kind, TP_EVENT_SLICE);
    assert_int_equal(ev.dur_ns, 12000);
    assert_int_equal(ev.track->pid.number, 3);
    assert_int_equal(ev.track->tid.number, 9);
    tp_pf_reader_free(r);
}

static void test_counters_of_others_carry_the_name_of_their_track(void **state)
{
    struct message trace = {.n = 0};
    struct message counter = {.n = 0};
    struct message d = {.n = 0};
    struct message event = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    number(&counter, TP_PF_COUNTER_MULTIPLIER, 1024);
    number(&counter, TP_PF_COUNTER_INCREMENTAL, 1);
    number(&d, TP_PF_TRACK_UUID, 20);
    text(&d, TP_PF_TRACK_NAME, "memory");
    nest(&d, TP_PF_TRACK_COUNTER, &counter);
    put_packet(&trace, TP_PF_PACKET_TRACK_DESCRIPTOR, &d);
    number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_COUNTER);
    number(&event, TP_PF_EVENT_TRACK_UUID, 20);
    number(&event, TP_PF_EVENT_COUNTER, 2);
    put_event(&trace, 1, &event);
    put_event(&trace, 2, &event);
    c = over(&trace);
    ev = must_next(r, &c);
    assert_name(&ev.name, "memory");
    assert_name(&ev.args[0].key, "value");
    assert_true(ev.args[0].d == 2048);
    assert_true(must_next(r, &c).args[0].d == 4096);
    tp_pf_reader_free(r);
}

static struct message clock_reading(uint64_t id, uint64_t ts, uint64_t multiplier)
{
    struct message m = {.n = 0};

    number(&m, TP_PF_CLOCK_ID, id);
    number(&m, TP_PF_CLOCK_TIMESTAMP, ts);
    if (multiplier != 0) {
        number(&m, TP_PF_CLOCK_INCREMENTAL, 1);
        number(&m, TP_PF_CLOCK_MULTIPLIER_NS, multiplier);
    }
    return m;
}

static void test_clocks_are_brought_to_one_time_line(void **state)
{
    struct message trace = {.n = 0};
    struct message snapshot = {.n = 0};
    struct message defaults = {.n = 0};
    struct message reading;
    struct message packet = {.n = 0};
    struct message event = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;

    (void)state;
    reading = clock_reading(TP_PF_CLOCK_BOOTTIME, 5000000, 0);
    nest(&snapshot, TP_PF_SNAPSHOT_CLOCKS, &reading);
    reading = clock_reading(3, 1000000, 0); /* CLOCK_MONOTONIC */
    nest(&snapshot, TP_PF_SNAPSHOT_CLOCKS, &reading);
    reading = clock_reading(64, 100, 1000); /* in steps of microseconds */
    nest(&snapshot, TP_PF_SNAPSHOT_CLOCKS, &reading);
    put_packet(&trace, TP_PF_PACKET_CLOCK_SNAPSHOT, &snapshot);
    number(&defaults, TP_PF_DEFAULTS_CLOCK_ID, 64);
    put_packet(&trace, TP_PF_PACKET_DEFAULTS, &defaults);
    put_simple(&trace, 10, TP_PF_TYPE_BEGIN, 0, "a");
    put_simple(&trace, 5, TP_PF_TYPE_END, 0, NULL);
    number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT);
    number(&packet, TP_PF_PACKET_TIMESTAMP, 1000500);
    number(&packet, TP_PF_PACKET_SEQUENCE_ID, 1);
    number(&packet, TP_PF_PACKET_TIMESTAMP_CLOCK_ID, 3);
    nest(&packet, TP_PF_PACKET_TRACK_EVENT, &event);
    nest(&trace, TP_PF_TRACE_PACKET, &packet);
    packet.n = 0;
    number(&packet, TP_PF_PACKET_TIMESTAMP, 1);
    number(&packet, TP_PF_PACKET_TIMESTAMP_CLOCK_ID, 99); /* nobody knows this clock */
    nest(&packet, TP_PF_PACKET_TRACK_EVENT, &event);
    nest(&trace, TP_PF_TRACE_PACKET, &packet);
    c = over(&trace);
    assert_int_equal(must_next(r, &c).ts_ns, 5010000);
    assert_int_equal(must_next(r, &c).ts_ns, 5015000);
    assert_int_equal(must_next(r, &c).ts_ns, 5000500);
    assert_end(r, &c);
    assert_int_equal(tp_pf_reader_skipped(r).events, 1);
    tp_pf_reader_free(r);
}

static void test_several_categories_are_joined_and_bad_utf8_is_repaired(void **state)
{
    struct message trace = {.n = 0};
    struct message event = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT);
    text(&event, TP_PF_EVENT_CATEGORIES, "a");
    text(&event, TP_PF_EVENT_CATEGORIES, "b");
    text(&event, TP_PF_EVENT_NAME, "x\xff");
    put_event(&trace, 1, &event);
    c = over(&trace);
    ev = must_next(r, &c);
    assert_name(&ev.cat, "a,b");
    assert_name(&ev.name, "x\xef\xbf\xbd");
    assert_int_equal(tp_pf_reader_skipped(r).repaired, 1);
    tp_pf_reader_free(r);
}

static void test_an_unknown_interned_name_is_counted_not_guessed(void **state)
{
    struct message trace = {.n = 0};
    struct message event = {.n = 0};
    struct message unknown = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;

    (void)state;
    number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT);
    number(&event, TP_PF_EVENT_NAME_IID, 5);
    put_event(&trace, 1, &event);
    text(&unknown, 900, "whatever");
    nest(&trace, TP_PF_TRACE_PACKET, &unknown);
    number(&trace, 77, 1); /* a field of the trace that is no packet */
    c = over(&trace);
    assert_end(r, &c);
    assert_int_equal(tp_pf_reader_skipped(r).events, 1);
    assert_true(tp_pf_reader_skipped(r).packets >= 1);
    tp_pf_reader_free(r);
}

/* Damage and limits. */

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
        struct message trace = {.n = 0};
        struct tp_pf_reader *r = must_new(false);
        struct tp_pf_cursor c;
        struct tp_event ev;
        enum tp_pf_item item;
        struct tp_err err;
        char place[32];
        size_t good;

        put_simple(&trace, 1, TP_PF_TYPE_INSTANT, 0, "good");
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
    struct message trace = {.n = 0};
    struct tp_pf_cursor c;
    struct tp_event ev;
    enum tp_pf_item item;

    (void)state;
    assert_int_equal(tp_pf_reader_new(&opts, &r, NULL), TP_OK);
    put_simple(&trace, 1, TP_PF_TYPE_INSTANT, 0,
               "a name that makes the packet longer than the limit");
    put_simple(&trace, 2, TP_PF_TYPE_INSTANT, 0, "good");
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
    struct message trace = {.n = 0};
    struct message packet = {.n = 0};
    struct tp_pf_cursor c;
    struct tp_event ev;
    enum tp_pf_item item;

    (void)state;
    assert_int_equal(tp_pf_reader_new(&opts, &r, NULL), TP_OK);
    for (uint64_t i = 1; i <= 4; i++)
        put_simple(&trace, i, TP_PF_TYPE_INSTANT, 100 + i, "x");
    number(&packet, TP_PF_PACKET_SEQUENCE_ID, 2);
    nest(&trace, TP_PF_TRACE_PACKET, &packet);
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
        struct message trace = {.n = 0};
        struct message data = {.n = 0};
        struct message entry = {.n = 0};
        struct tp_pf_cursor c;
        char name[32];

        snprintf(name, sizeof(name), "name number %llu", (unsigned long long)iid);
        number(&entry, TP_PF_INTERNED_IID, iid);
        text(&entry, TP_PF_INTERNED_TEXT, name);
        nest(&data, TP_PF_INTERNED_NAMES, &entry);
        put_packet(&trace, TP_PF_PACKET_INTERNED_DATA, &data);
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
    struct message foreign = {.n = 0};
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
    put_simple(&foreign, 3, TP_PF_TYPE_INSTANT, 12, "bad \xff utf8");
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
        cmocka_unit_test(test_every_event_comes_back_from_a_sealed_stream),
        cmocka_unit_test(
            test_lanes_slices_in_halves_ghosts_and_private_flows_come_back),
        cmocka_unit_test(test_equal_numbers_mean_equal_names_across_batches),
        cmocka_unit_test(test_a_stream_may_come_byte_by_byte),
        cmocka_unit_test(test_a_frame_header_is_an_item_of_its_own),
        cmocka_unit_test(test_tracks_of_others_are_threads_processes_and_named_tracks),
        cmocka_unit_test(test_flow_ids_become_flows_behind_their_slice),
        cmocka_unit_test(test_annotations_of_others_become_arguments),
        cmocka_unit_test(test_legacy_phases_are_understood),
        cmocka_unit_test(test_counters_of_others_carry_the_name_of_their_track),
        cmocka_unit_test(test_clocks_are_brought_to_one_time_line),
        cmocka_unit_test(test_several_categories_are_joined_and_bad_utf8_is_repaired),
        cmocka_unit_test(test_an_unknown_interned_name_is_counted_not_guessed),
        cmocka_unit_test(test_what_is_no_packet_is_refused_with_its_place),
        cmocka_unit_test(test_a_packet_over_the_limit_is_passed_over),
        cmocka_unit_test(test_tracks_and_sequences_over_the_limits_are_refused),
        cmocka_unit_test(test_interned_strings_over_the_limit_are_refused),
        cmocka_unit_test(
            test_each_allocation_may_fail_and_the_packet_can_be_read_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
