/*
 * test_pf_quick.c - reading the usual packets at once is reading them field by field.
 *
 * A packet that ends where the window ends is always read field by field, because the
 * quick way wants something behind it. So both ways can be had for the same bytes:
 * through a window over all of them, and packet by packet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "support/events.h"
#include "trace/pf_encode.h"
#include "trace/pf_reader.h"
#include "trace/pf_reader_state.h"
#include "trace/pf_writer.h"

#define N_EVENTS 400
#define TAIL_BYTES 512 /* of zeros, so that the last packet has something behind it */

/* A stream, and how it is read. */
struct stream {
    struct events *events;
    struct tp_pf_writer *writer;
    struct tp_buf bytes;
    bool is_sealed;
};

/* Make an event one of the usual: names that come again, nothing rare. */
static void make_usual(struct events *g, struct tp_event *ev)
{
    static const char names[] = "aten::addmm\"\n";
    struct tp_name name = {names, 1 + (uint32_t)events_random(g, sizeof(names) - 1), 0};

    if (events_random(g, 3) == 0)
        ev->kind = TP_EVENT_SLICE;
    ev->phase = tp_pf_usual_phase[ev->kind];
    ev->is_unfinished = false;
    ev->extra.len = 0;
    ev->name = name;
    ev->cat.ptr = events_random(g, 2) == 0 ? NULL : name.ptr;
    ev->cat.len = 3;
    for (uint32_t i = 0; i < ev->n_args; i++)
        g->args[i].key = (struct tp_name){names, 1 + i, 0};
    if (ev->id.kind != TP_ID_NONE)
        ev->id = (struct tp_id){.kind = TP_ID_NUMBER, .number = ev->ts_ns};
    if (ev->kind == TP_EVENT_SLICE) {
        ev->id.kind = TP_ID_NONE;
        ev->scope = '\0';
        ev->binds_enclosing = false;
        ev->dur_ns = (int64_t)events_random(g, 100000);
    } else {
        ev->dur_ns = 0;
    }
}

static void make(struct stream *s, bool is_sealed, uint64_t seed)
{
    struct tp_pf_writer_opts opts = {.stream_no = 5, .is_sealed = is_sealed};

    *s = (struct stream){.events = malloc(sizeof(*s->events)), .is_sealed = is_sealed};
    assert_non_null(s->events);
    events_init(s->events, seed);
    assert_int_equal(tp_pf_writer_new(&opts, &s->writer, NULL), TP_OK);
    for (int i = 0; i < N_EVENTS; i++) {
        struct tp_event ev;

        events_next(s->events, &ev);
        if (events_random(s->events, 4) != 0)
            make_usual(s->events, &ev);
        assert_int_equal(tp_pf_writer_event(s->writer, &ev, &s->bytes, NULL), TP_OK);
    }
}

static void fini(struct stream *s)
{
    tp_pf_writer_free(s->writer);
    tp_buf_fini(&s->bytes);
    free(s->events);
}

/* A reader that knows the tracks of a sealed stream. */
static struct tp_pf_reader *reader_of(const struct stream *s, bool is_trusted)
{
    struct tp_pf_reader_opts opts = {.is_trusted = is_trusted};
    struct tp_pf_reader *r = NULL;
    const struct tp_pf_series *series;
    size_t n;

    assert_int_equal(tp_pf_reader_new(&opts, &r, NULL), TP_OK);
    for (uint32_t i = 0; s->is_sealed && i < EVENTS_TRACKS; i++)
        assert_int_equal(tp_pf_reader_add_track(r, tp_pf_track_uuid(5, i, 0), 0,
                                                &s->events->tracks[i].pid,
                                                &s->events->tracks[i].tid, NULL),
                         TP_OK);
    series = tp_pf_writer_series(s->writer, &n);
    for (size_t i = 0; s->is_sealed && i < n; i++)
        assert_int_equal(
            tp_pf_reader_add_series(r, series[i].uuid, &series[i].track->pid,
                                    &series[i].track->tid, series[i].counter,
                                    series[i].series, NULL),
            TP_OK);
    return r;
}

/* As tp_pf_reader_next(), with windows that end where a packet ends. */
static int next_slowly(struct tp_pf_reader *r, struct tp_pf_cursor *c,
                       enum tp_pf_item *item, struct tp_event *ev)
{
    int rc = TP_EAGAIN;

    for (int n = 1; rc == TP_EAGAIN; n++) {
        struct tp_pf_cursor window = {c->ptr, c->ptr};

        for (int i = 0; i < n && window.end != NULL; i++) {
            struct tp_pb_field f;

            window.end = tp_pb_next_field(window.end, c->end, &f);
        }
        if (window.end == NULL)
            return tp_pf_reader_next(r, c, item, ev, NULL);
        rc = tp_pf_reader_next(r, &window, item, ev, NULL);
        n = window.ptr == c->ptr ? n : 0;
        c->ptr = window.ptr;
    }
    return rc;
}

/* Whether the next event is read at once; it may come after the end of a slice. */
static bool is_quick(struct tp_pf_reader *r, const char *p, const char *end)
{
    struct tp_event ev;

    if (tp_pf_reader_quick(r, p, end, &ev) != NULL)
        return true;
    return end - p > TAIL_BYTES && p[1] > 0 &&
           tp_pf_reader_quick(r, p + 2 + p[1], end, &ev) != NULL;
}

/* Read the same bytes in both ways; also count what was read at once. */
static unsigned check_same(const struct stream *s, bool is_trusted, const char *bytes,
                           size_t n, const char *what)
{
    struct tp_pf_reader *quick = reader_of(s, is_trusted);
    struct tp_pf_reader *slow = reader_of(s, is_trusted);
    struct tp_pf_cursor a = {bytes, bytes + n};
    struct tp_pf_cursor b = a;
    unsigned n_quick = 0;
    int rc = TP_OK;

    while (rc == TP_OK) {
        enum tp_pf_item item = TP_PF_FRAME;
        enum tp_pf_item other = TP_PF_FRAME;
        struct tp_event ev;
        struct tp_event same;
        const char *why = "";

        n_quick += is_quick(quick, a.ptr, a.end);
        rc = tp_pf_reader_next(quick, &a, &item, &ev, NULL);
        if (next_slowly(slow, &b, &other, &same) != rc ||
            (rc == TP_OK && item != other))
            fail_msg("%s: code %d only one way at byte %zd", what, rc, a.ptr - bytes);
        if (rc == TP_OK && item == TP_PF_EVENT && !events_equal(&ev, &same, &why))
            fail_msg("%s: %s differs before byte %zd", what, why, a.ptr - bytes);
        if (rc == TP_OK && a.ptr != b.ptr)
            fail_msg("%s: %zd bytes against %zd", what, a.ptr - bytes, b.ptr - bytes);
    }
    tp_pf_reader_free(quick);
    tp_pf_reader_free(slow);
    return n_quick;
}

static void test_events_are_the_same_in_both_ways(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct stream s;
        char *copy;
        unsigned n_quick;

        make(&s, kind % 2 == 1, (uint64_t)kind + 1);
        copy = calloc(1, s.bytes.len + TAIL_BYTES);
        assert_non_null(copy);
        memcpy(copy, s.bytes.data, s.bytes.len);
        n_quick = check_same(&s, kind / 2 == 1, copy, s.bytes.len + TAIL_BYTES, "all");
        if (n_quick < N_EVENTS / 8)
            fail_msg("kind %d: only %u events were read at once", kind, n_quick);
        free(copy);
        fini(&s);
    }
}

static void test_damaged_packets_are_the_same_in_both_ways(void **state)
{
    struct stream s;
    char *copy;

    (void)state;
    make(&s, true, 9);
    copy = malloc(s.bytes.len); /* of the exact size, for ASan */
    assert_non_null(copy);
    for (unsigned i = 0; i < 300; i++) {
        char what[64];

        memcpy(copy, s.bytes.data, s.bytes.len);
        for (uint64_t k = 0; k < 1 + i % 8; k++)
            copy[events_random(s.events, s.bytes.len)] =
                (char)events_random(s.events, 256);
        snprintf(what, sizeof(what), "mutation %u", i);
        check_same(&s, i % 2 == 1, copy, s.bytes.len, what);
    }
    free(copy);
    fini(&s);
}

static void test_a_cut_packet_is_never_read_beyond_its_end(void **state)
{
    struct stream s;

    (void)state;
    make(&s, false, 4);
    for (size_t n = 0; n < 2000 && n < s.bytes.len; n++) {
        char *copy = malloc(n + 1);

        assert_non_null(copy);
        memcpy(copy, s.bytes.data, n);
        check_same(&s, true, copy, n, "cut");
        free(copy);
    }
    fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_are_the_same_in_both_ways),
        cmocka_unit_test(test_damaged_packets_are_the_same_in_both_ways),
        cmocka_unit_test(test_a_cut_packet_is_never_read_beyond_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
