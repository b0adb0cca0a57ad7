/*
 * test_stream_source.c - sealed streams event by event, whole and from a block on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/blob.h"
#include "support/blob_mem.h"
#include "support/fault.h"
#include "support/sealed.h"
#include "trace/frame.h"
#include "trace/pf_slice.h"
#include "trace/stream_source.h"
#include "trace/trace_info.h"

#define N_EVENTS 5000

static void add(struct sealed *s, int64_t i)
{
    char name[32];
    const struct tp_event ev = {
        .kind = TP_EVENT_SLICE,
        .ts_ns = i * 1000,
        .dur_ns = 500,
        .name = {name,
                 (uint32_t)snprintf(name, sizeof(name), "event %d", (int)(i % 50)), 0},
        .track = sealed_track(s, 1, 1 + i % 3, 0)};

    sealed_add(s, &ev);
}

/* Two blocks of events; more than one piece of a window together. */
static void make(struct sealed *s, struct tp_blobs *blobs)
{
    sealed_init(s, 1);
    sealed_block(s, 0);
    for (int64_t i = 0; i < N_EVENTS; i++)
        add(s, i);
    sealed_block(s, N_EVENTS * 1000);
    for (int64_t i = N_EVENTS; i < 2 * N_EVENTS; i++)
        add(s, i);
    sealed_close_writer(s, blobs, "s");
}

/* Read all events: how many, and whether they come in order from first_ns on. */
static int read_all(struct sealed *s, const struct tp_trace_slice *slice, size_t *n,
                    int64_t *first_ns, struct tp_err *err)
{
    struct tp_stream_source *source = NULL;
    struct tp_event ev;
    bool has_event = true;
    int64_t last_ns = INT64_MIN;
    int rc = tp_stream_source_open(s->blob, &s->index, slice, &source, err);

    *n = 0;
    while (rc == TP_OK) {
        rc = tp_stream_source_next(source, &ev, &has_event, NULL, err);
        if (rc != TP_OK || !has_event)
            break;
        if (*n == 0)
            *first_ns = ev.ts_ns;
        assert_true(ev.ts_ns >= last_ns);
        last_ns = ev.ts_ns;
        *n += 1;
    }
    tp_stream_source_close(source);
    return rc;
}

static void test_all_events_come_in_order(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct sealed s;
    struct tp_err err;
    int64_t first_ns = -1;
    size_t n;

    (void)state;
    make(&s, blobs);
    assert_int_equal(read_all(&s, NULL, &n, &first_ns, &err), TP_OK);
    assert_int_equal(n, 2 * N_EVENTS);
    assert_int_equal(first_ns, 0);
    sealed_fini(&s);
    blob_mem_free(blobs);
}

static void test_the_packets_together_are_the_stream(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_stream_source *source;
    struct tp_buf all = {0};
    struct tp_str packets = {"", 1};
    bool has_event = true;
    struct tp_event ev;
    struct sealed s;
    struct tp_err err;

    (void)state;
    make(&s, blobs);
    assert_int_equal(tp_stream_source_open(s.blob, &s.index, NULL, &source, &err),
                     TP_OK);
    while (has_event || packets.len > 0) {
        int rc = tp_stream_source_next(source, &ev, &has_event, &packets, &err);

        assert_true(rc == TP_OK || (rc == TP_EAGAIN && packets.len > 0));
        assert_int_equal(tp_buf_append(&all, packets.ptr, packets.len, &err), TP_OK);
    }
    assert_int_equal(all.len, s.bytes.len);
    assert_memory_equal(all.data, s.bytes.data, all.len);
    tp_buf_fini(&all);
    tp_stream_source_close(source);
    sealed_fini(&s);
    blob_mem_free(blobs);
}

/* Put the names of the first block in front of the stream, as a seal may do. */
static void put_names_first(struct sealed *s, struct tp_blobs *blobs)
{
    const struct tp_str first = {s->bytes.data, (size_t)s->index.blocks[1].offset};
    struct tp_pf_slice *names;
    struct tp_buf bytes = {0};
    struct tp_err err;

    assert_int_equal(tp_pf_slice_new(s->index.n_tracks, &names, &err), TP_OK);
    assert_int_equal(tp_pf_slice_add(names, first, false, &bytes, &err), TP_OK);
    tp_pf_slice_free(names);
    s->index.names_bytes = bytes.len;
    assert_int_equal(tp_buf_append(&bytes, s->bytes.data, s->bytes.len, &err), TP_OK);
    for (size_t i = 0; i < s->index.n_blocks; i++)
        s->index.blocks[i].offset += s->index.names_bytes;
    s->index.size_bytes = bytes.len;
    blob_mem_put(blobs, "t", bytes.data, bytes.len);
    blobs->close(blobs->ctx, s->blob);
    assert_int_equal(blobs->open_read(blobs->ctx, "t", &s->blob, &err), TP_OK);
    tp_buf_fini(&bytes);
}

static void test_a_late_range_reads_only_the_names_and_its_block(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_trace_slice slice = {.has_from = true};
    struct sealed s;
    struct tp_err err;
    int64_t first_ns = -1;
    size_t n;

    (void)state;
    make(&s, blobs);
    put_names_first(&s, blobs);
    /* Nothing may be read from the first block: it is damaged. */
    memset(blob_mem_data(blobs, "t", NULL) + s.index.names_bytes, 0x7f, 100000);
    slice.from_ns = (N_EVENTS + 10) * 1000;
    assert_int_equal(read_all(&s, &slice, &n, &first_ns, &err), TP_OK);
    assert_int_equal(n, N_EVENTS);
    assert_int_equal(first_ns, N_EVENTS * 1000);
    /* The last event of the first block reaches to here, so it must be read. */
    slice.from_ns = (N_EVENTS - 1) * 1000 + 500;
    assert_int_equal(read_all(&s, &slice, &n, &first_ns, &err), TP_EIO);
    sealed_fini(&s);
    blob_mem_free(blobs);
}

static void test_reading_stops_behind_the_range(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    const struct tp_trace_slice slice = {.has_to = true, .to_ns = 10000};
    struct sealed s;
    struct tp_err err;
    int64_t first_ns;
    size_t n;

    (void)state;
    make(&s, blobs);
    assert_int_equal(read_all(&s, &slice, &n, &first_ns, &err), TP_OK);
    assert_int_equal(n, 11); /* the one behind the range is the last */
    sealed_fini(&s);
    blob_mem_free(blobs);
}

static void test_a_cut_stream_is_an_error_at_every_length(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct sealed s;
    struct tp_err err;
    int64_t first_ns;
    size_t n;

    (void)state;
    sealed_init(&s, 1);
    for (int64_t i = 0; i < 4; i++)
        add(&s, i);
    sealed_close_writer(&s, blobs, "s");
    for (uint64_t cut = 1; cut < s.bytes.len; cut++) {
        s.index.size_bytes = s.bytes.len - cut;
        /* Without the end of the last slice, which says nothing new, all is there. */
        if (read_all(&s, NULL, &n, &first_ns, &err) == TP_OK)
            assert_true(n == 4 && cut < 40);
        else
            assert_int_equal(err.code, TP_EIO);
    }
    s.index.size_bytes = s.bytes.len + 1;
    assert_int_equal(read_all(&s, NULL, &n, &first_ns, &err), TP_EIO);
    sealed_fini(&s);
    blob_mem_free(blobs);
}

static void test_an_event_too_few_is_noticed(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct sealed s;
    struct tp_err err;
    int64_t first_ns;
    size_t n;

    (void)state;
    make(&s, blobs);
    s.index.n_events++;
    assert_int_equal(read_all(&s, NULL, &n, &first_ns, &err), TP_EIO);
    assert_int_equal(n, 2 * N_EVENTS);
    sealed_fini(&s);
    blob_mem_free(blobs);
}

static void test_any_changed_byte_is_noticed_by_the_check_sum(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct sealed s;
    struct tp_err err;
    int64_t first_ns;
    size_t n;
    char *data;

    (void)state;
    make(&s, blobs);
    data = blob_mem_data(blobs, "s", NULL);
    s.index.has_crc32c = true;
    s.index.crc32c = tp_frame_crc(0, data, s.bytes.len);
    assert_int_equal(read_all(&s, NULL, &n, &first_ns, &err), TP_OK);
    for (size_t i = 0; i < s.bytes.len; i += s.bytes.len / 37) {
        data[i] ^= 1;
        if (read_all(&s, NULL, &n, &first_ns, &err) != TP_EIO)
            fail_msg("byte %zu", i);
        data[i] ^= 1;
    }
    sealed_fini(&s);
    blob_mem_free(blobs);
}

static void test_each_failure_is_reported(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct sealed s;
    struct tp_err err;
    int64_t first_ns;
    size_t n_events;
    bool fired = true;

    (void)state;
    make(&s, blobs);
    for (int n = 0; fired; n++) {
        int rc;

        blob_mem_fail_after(blobs, n);
        rc = read_all(&s, NULL, &n_events, &first_ns, &err);
        fired = blob_mem_disarm(blobs);
        assert_int_equal(rc, fired ? TP_EIO : TP_OK);
    }
    fired = true;
    for (int n = 0; fired; n++) {
        int rc;

        fault_arm(n);
        rc = read_all(&s, NULL, &n_events, &first_ns, &err);
        fired = fault_disarm();
        assert_int_equal(rc, fired ? TP_ENOMEM : TP_OK);
    }
    sealed_fini(&s);
    blob_mem_free(blobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_events_come_in_order),
        cmocka_unit_test(test_the_packets_together_are_the_stream),
        cmocka_unit_test(test_a_late_range_reads_only_the_names_and_its_block),
        cmocka_unit_test(test_reading_stops_behind_the_range),
        cmocka_unit_test(test_a_cut_stream_is_an_error_at_every_length),
        cmocka_unit_test(test_an_event_too_few_is_noticed),
        cmocka_unit_test(test_any_changed_byte_is_noticed_by_the_check_sum),
        cmocka_unit_test(test_each_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
