/*
 * test_pf_event.c - traces of others as far as an event can say it: tracks, flows,
 * annotations, legacy events, counters, clocks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "support/pf_message.h"
#include "support/pf_reading.h"
#include "trace/pf_fields.h"
#include "trace/pf_reader.h"

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

static void test_tracks_of_others_are_threads_processes_and_named_tracks(void **state)
{
    struct pf_message trace = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    put_tracks(&trace);
    put_tracks(&trace); /* repeated after each "state cleared" by the SDK */
    pf_message_simple(&trace, 1, TP_PF_TYPE_BEGIN, 11, "a");
    pf_message_simple(&trace, 2, TP_PF_TYPE_END, 11, NULL);
    pf_message_simple(&trace, 3, TP_PF_TYPE_INSTANT, 12, "b");
    pf_message_simple(&trace, 4, TP_PF_TYPE_INSTANT, 10, "c");
    pf_message_simple(&trace, 5, TP_PF_TYPE_INSTANT, 0, "d");
    pf_message_simple(&trace, 6, TP_PF_TYPE_INSTANT, 999, "e");
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
    struct pf_message trace = {.n = 0};
    struct pf_message event = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    pf_message_number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_BEGIN);
    pf_message_fixed(&event, TP_PF_EVENT_FLOWS, 77);
    pf_message_event(&trace, 1, &event);
    pf_message_event(&trace, 2, &event);
    event.n = 0;
    pf_message_number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_BEGIN);
    pf_message_number(&event, TP_PF_EVENT_END_FLOWS_OLD, 77);
    pf_message_event(&trace, 3, &event);
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
static struct pf_message annotation(const char *key)
{
    struct pf_message m = {.n = 0};

    if (key != NULL)
        pf_message_text(&m, TP_PF_ARG_NAME, key);
    return m;
}

static void test_annotations_of_others_become_arguments(void **state)
{
    struct pf_message trace = {.n = 0};
    struct pf_message event = {.n = 0};
    struct pf_message dict = annotation("dict");
    struct pf_message array = annotation("list");
    struct pf_message item = annotation(NULL);
    struct pf_message a;
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    pf_message_number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT);
    pf_message_number(&item, TP_PF_ARG_INT, 5);
    pf_message_nest(&array, TP_PF_ARG_ARRAY, &item);
    item = annotation(NULL);
    pf_message_text(&item, TP_PF_ARG_STRING, "a \"b\"");
    pf_message_nest(&array, TP_PF_ARG_ARRAY, &item);
    pf_message_nest(&dict, TP_PF_ARG_DICT, &array);
    item = annotation("x");
    pf_message_number(&item, TP_PF_ARG_BOOL, 1);
    pf_message_nest(&dict, TP_PF_ARG_DICT, &item);
    pf_message_nest(&event, TP_PF_EVENT_ARGS, &dict);
    a = annotation("p");
    pf_message_number(&a, TP_PF_ARG_POINTER, 255);
    pf_message_nest(&event, TP_PF_EVENT_ARGS, &a);
    a = annotation("nan");
    pf_message_real(&a, TP_PF_ARG_DOUBLE, __builtin_nan(""));
    pf_message_nest(&event, TP_PF_EVENT_ARGS, &a);
    a = annotation("bad");
    pf_message_text(&a, TP_PF_ARG_JSON, "{\"never\": ends");
    pf_message_nest(&event, TP_PF_EVENT_ARGS, &a);
    a = annotation("u");
    pf_message_number(&a, TP_PF_ARG_UINT, UINT64_MAX);
    pf_message_nest(&event, TP_PF_EVENT_ARGS, &a);
    a = annotation("small");
    pf_message_number(&a, TP_PF_ARG_UINT, 3);
    pf_message_nest(&event, TP_PF_EVENT_ARGS, &a);
    pf_message_event(&trace, 1, &event);
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

/* Values whose wire type is not that of their field: a number for a text or for a
 * message, a text for a number. */
static void test_annotations_of_another_wire_type_have_no_value(void **state)
{
    static const uint32_t fields[] = {TP_PF_ARG_STRING, TP_PF_ARG_NESTED,
                                      TP_PF_ARG_JSON,   TP_PF_ARG_DICT,
                                      TP_PF_ARG_ARRAY,  TP_PF_ARG_DOUBLE};
    const size_t n = sizeof(fields) / sizeof(*fields);
    struct pf_message trace = {.n = 0};
    struct pf_message event = {.n = 0};
    struct pf_message a;
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    pf_message_number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT);
    for (size_t i = 0; i < n; i++) {
        a = annotation("a");
        pf_message_number(&a, fields[i], 7);
        pf_message_nest(&event, TP_PF_EVENT_ARGS, &a);
    }
    a = annotation("a");
    pf_message_text(&a, TP_PF_ARG_INT, "seven");
    pf_message_nest(&event, TP_PF_EVENT_ARGS, &a);
    pf_message_event(&trace, 1, &event);
    c = over(&trace);
    ev = must_next(r, &c);
    assert_int_equal(ev.n_args, n + 1);
    for (size_t i = 0; i < ev.n_args; i++) {
        if (ev.args[i].kind != TP_ARG_JSON || !tp_str_is(ev.args[i].s, "null"))
            fail_msg("argument %zu is of kind %d", i, ev.args[i].kind);
    }
    tp_pf_reader_free(r);
}

static void test_legacy_phases_are_understood(void **state)
{
    struct pf_message trace = {.n = 0};
    struct pf_message event = {.n = 0};
    struct pf_message legacy = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    pf_message_number(&legacy, TP_PF_LEGACY_PHASE, 'X');
    pf_message_number(&legacy, TP_PF_LEGACY_DURATION_US, 12);
    pf_message_number(&legacy, TP_PF_LEGACY_PID, 3);
    pf_message_number(&legacy, TP_PF_LEGACY_TID, 9);
    pf_message_nest(&event, TP_PF_EVENT_LEGACY, &legacy);
    pf_message_event(&trace, 1, &event);
    c = over(&trace);
    ev = must_next(r, &c);
    assert_int_equal(ev.kind, TP_EVENT_SLICE);
    assert_int_equal(ev.dur_ns, 12000);
    assert_int_equal(ev.track->pid.number, 3);
    assert_int_equal(ev.track->tid.number, 9);
    tp_pf_reader_free(r);
}

/* 257 is no begin and 344 no X, though their lowest bytes are. */
static void test_types_and_phases_beyond_a_byte_are_not_understood(void **state)
{
    struct pf_message trace = {.n = 0};
    struct pf_message event = {.n = 0};
    struct pf_message legacy = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;

    (void)state;
    pf_message_simple(&trace, 1, 256 + TP_PF_TYPE_BEGIN, 11, "a");
    pf_message_number(&legacy, TP_PF_LEGACY_PHASE, 256 + 'X');
    pf_message_nest(&event, TP_PF_EVENT_LEGACY, &legacy);
    pf_message_event(&trace, 1, &event);
    c = over(&trace);
    assert_end(r, &c);
    assert_int_equal(tp_pf_reader_skipped(r).events, 2);
    tp_pf_reader_free(r);
}

static void test_counters_of_others_carry_the_name_of_their_track(void **state)
{
    struct pf_message trace = {.n = 0};
    struct pf_message counter = {.n = 0};
    struct pf_message d = {.n = 0};
    struct pf_message event = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    pf_message_number(&counter, TP_PF_COUNTER_MULTIPLIER, 1024);
    pf_message_number(&counter, TP_PF_COUNTER_INCREMENTAL, 1);
    pf_message_number(&d, TP_PF_TRACK_UUID, 20);
    pf_message_text(&d, TP_PF_TRACK_NAME, "memory");
    pf_message_nest(&d, TP_PF_TRACK_COUNTER, &counter);
    pf_message_packet(&trace, TP_PF_PACKET_TRACK_DESCRIPTOR, &d);
    pf_message_number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_COUNTER);
    pf_message_number(&event, TP_PF_EVENT_TRACK_UUID, 20);
    pf_message_number(&event, TP_PF_EVENT_COUNTER, 2);
    pf_message_event(&trace, 1, &event);
    pf_message_event(&trace, 2, &event);
    c = over(&trace);
    ev = must_next(r, &c);
    assert_name(&ev.name, "memory");
    assert_name(&ev.args[0].key, "value");
    assert_true(ev.args[0].d == 2048);
    assert_true(must_next(r, &c).args[0].d == 4096);
    tp_pf_reader_free(r);
}

static struct pf_message clock_reading(uint64_t id, uint64_t ts, uint64_t multiplier)
{
    struct pf_message m = {.n = 0};

    pf_message_number(&m, TP_PF_CLOCK_ID, id);
    pf_message_number(&m, TP_PF_CLOCK_TIMESTAMP, ts);
    if (multiplier != 0) {
        pf_message_number(&m, TP_PF_CLOCK_INCREMENTAL, 1);
        pf_message_number(&m, TP_PF_CLOCK_MULTIPLIER_NS, multiplier);
    }
    return m;
}

static void test_clocks_are_brought_to_one_time_line(void **state)
{
    struct pf_message trace = {.n = 0};
    struct pf_message snapshot = {.n = 0};
    struct pf_message defaults = {.n = 0};
    struct pf_message reading;
    struct pf_message packet = {.n = 0};
    struct pf_message event = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;

    (void)state;
    reading = clock_reading(TP_PF_CLOCK_BOOTTIME, 5000000, 0);
    pf_message_nest(&snapshot, TP_PF_SNAPSHOT_CLOCKS, &reading);
    reading = clock_reading(3, 1000000, 0); /* CLOCK_MONOTONIC */
    pf_message_nest(&snapshot, TP_PF_SNAPSHOT_CLOCKS, &reading);
    reading = clock_reading(64, 100, 1000); /* in steps of microseconds */
    pf_message_nest(&snapshot, TP_PF_SNAPSHOT_CLOCKS, &reading);
    pf_message_packet(&trace, TP_PF_PACKET_CLOCK_SNAPSHOT, &snapshot);
    pf_message_number(&defaults, TP_PF_DEFAULTS_CLOCK_ID, 64);
    pf_message_packet(&trace, TP_PF_PACKET_DEFAULTS, &defaults);
    pf_message_simple(&trace, 10, TP_PF_TYPE_BEGIN, 0, "a");
    pf_message_simple(&trace, 5, TP_PF_TYPE_END, 0, NULL);
    pf_message_number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT);
    pf_message_number(&packet, TP_PF_PACKET_TIMESTAMP, 1000500);
    pf_message_number(&packet, TP_PF_PACKET_SEQUENCE_ID, 1);
    pf_message_number(&packet, TP_PF_PACKET_TIMESTAMP_CLOCK_ID, 3);
    pf_message_nest(&packet, TP_PF_PACKET_TRACK_EVENT, &event);
    pf_message_nest(&trace, TP_PF_TRACE_PACKET, &packet);
    packet.n = 0;
    pf_message_number(&packet, TP_PF_PACKET_TIMESTAMP, 1);
    pf_message_number(&packet, TP_PF_PACKET_TIMESTAMP_CLOCK_ID,
                      99); /* nobody knows this clock */
    pf_message_nest(&packet, TP_PF_PACKET_TRACK_EVENT, &event);
    pf_message_nest(&trace, TP_PF_TRACE_PACKET, &packet);
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
    struct pf_message trace = {.n = 0};
    struct pf_message event = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;
    struct tp_event ev;

    (void)state;
    pf_message_number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT);
    pf_message_text(&event, TP_PF_EVENT_CATEGORIES, "a");
    pf_message_text(&event, TP_PF_EVENT_CATEGORIES, "b");
    pf_message_text(&event, TP_PF_EVENT_NAME, "x\xff");
    pf_message_event(&trace, 1, &event);
    c = over(&trace);
    ev = must_next(r, &c);
    assert_name(&ev.cat, "a,b");
    assert_name(&ev.name, "x\xef\xbf\xbd");
    assert_int_equal(tp_pf_reader_skipped(r).repaired, 1);
    tp_pf_reader_free(r);
}

static void test_an_unknown_interned_name_is_counted_not_guessed(void **state)
{
    struct pf_message trace = {.n = 0};
    struct pf_message event = {.n = 0};
    struct pf_message unknown = {.n = 0};
    struct tp_pf_reader *r = must_new(false);
    struct tp_pf_cursor c;

    (void)state;
    pf_message_number(&event, TP_PF_EVENT_TYPE, TP_PF_TYPE_INSTANT);
    pf_message_number(&event, TP_PF_EVENT_NAME_IID, 5);
    pf_message_event(&trace, 1, &event);
    pf_message_text(&unknown, 900, "whatever");
    pf_message_nest(&trace, TP_PF_TRACE_PACKET, &unknown);
    pf_message_number(&trace, 77, 1); /* a field of the trace that is no packet */
    c = over(&trace);
    assert_end(r, &c);
    assert_int_equal(tp_pf_reader_skipped(r).events, 1);
    assert_true(tp_pf_reader_skipped(r).packets >= 1);
    tp_pf_reader_free(r);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tracks_of_others_are_threads_processes_and_named_tracks),
        cmocka_unit_test(test_flow_ids_become_flows_behind_their_slice),
        cmocka_unit_test(test_annotations_of_others_become_arguments),
        cmocka_unit_test(test_annotations_of_another_wire_type_have_no_value),
        cmocka_unit_test(test_legacy_phases_are_understood),
        cmocka_unit_test(test_types_and_phases_beyond_a_byte_are_not_understood),
        cmocka_unit_test(test_counters_of_others_carry_the_name_of_their_track),
        cmocka_unit_test(test_clocks_are_brought_to_one_time_line),
        cmocka_unit_test(test_several_categories_are_joined_and_bad_utf8_is_repaired),
        cmocka_unit_test(test_an_unknown_interned_name_is_counted_not_guessed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
