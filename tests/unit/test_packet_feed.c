/*
 * test_packet_feed.c - pieces of any size give the same events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/frame.h"
#include "trace/packet_feed.h"
#include "trace/pf_writer.h"

struct seen {
    unsigned events, ghosts, frames;
    int64_t last_ns;
    int answer;
};

static int on_event(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    struct seen *seen = arg;

    (void)err;
    seen->events++;
    seen->last_ns = ev->ts_ns;
    return seen->answer;
}

static int on_ghost(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    (void)ev;
    (void)err;
    ((struct seen *)arg)->ghosts++;
    return TP_OK;
}

static int on_frame(struct tp_str frame, struct tp_err *err, void *arg)
{
    (void)frame;
    (void)err;
    ((struct seen *)arg)->frames++;
    return TP_OK;
}

/* A frame header, 20 slices and a ghost. */
static void make_log(struct tp_buf *out)
{
    struct tp_pf_writer_opts opts = {.stream_no = 1};
    struct tp_frame frame = {.payload_bytes = 1};
    struct tp_track track = {.index = 0};
    struct tp_pf_writer *w;
    struct tp_err err;

    assert_int_equal(tp_pf_writer_new(&opts, &w, &err), TP_OK);
    assert_int_equal(tp_buf_reserve(out, TP_FRAME_BYTES, &err), TP_OK);
    tp_frame_encode(&frame, out->data);
    out->len = TP_FRAME_BYTES;
    for (int i = 0; i < 21; i++) {
        struct tp_event ev = {.kind = i == 20 ? TP_EVENT_BEGIN : TP_EVENT_SLICE,
                              .ts_ns = i,
                              .name = {"a name", 6, 0},
                              .track = &track};

        assert_int_equal((i == 20 ? tp_pf_writer_ghost : tp_pf_writer_event)(w, &ev,
                                                                             out, &err),
                         TP_OK);
    }
    tp_pf_writer_free(w);
}

static int feed(const char *p, size_t n, size_t piece, bool salvage, struct seen *seen,
                struct tp_packet_feed_stats *stats, struct tp_err *err)
{
    struct tp_packet_feed_opts opts = {.salvage = salvage,
                                       .on_event = on_event,
                                       .on_ghost = on_ghost,
                                       .on_frame = on_frame,
                                       .arg = seen};
    struct tp_packet_feed *f = NULL;
    int rc = tp_packet_feed_new(&opts, &f, err);

    for (size_t at = 0; rc == TP_OK && at < n; at += piece)
        rc = tp_packet_feed(f, p + at, n - at < piece ? n - at : piece, err);
    if (rc == TP_OK)
        rc = tp_packet_feed_finish(f, err);
    if (rc == TP_OK && stats != NULL)
        *stats = tp_packet_feed_stats(f);
    tp_packet_feed_free(f);
    return rc;
}

static void test_pieces_of_any_size_give_the_same(void **state)
{
    struct tp_buf log = {0};
    struct tp_err err;

    (void)state;
    make_log(&log);
    for (size_t piece = 1; piece <= log.len; piece++) {
        struct seen seen = {0};
        struct tp_packet_feed_stats stats;

        if (feed(log.data, log.len, piece, false, &seen, &stats, &err) != TP_OK)
            fail_msg("piece %zu: %s", piece, err.message);
        if (seen.events != 20 || seen.ghosts != 1 || seen.frames != 1 ||
            seen.last_ns != 19 || stats.bytes != log.len || stats.is_damaged)
            fail_msg("piece %zu", piece);
    }
    tp_buf_fini(&log);
}

static void test_half_a_packet_at_the_end_is_damage(void **state)
{
    struct tp_packet_feed_stats stats;
    struct seen seen = {0};
    struct tp_buf log = {0};
    struct tp_err err;

    (void)state;
    make_log(&log);
    assert_int_equal(feed(log.data, log.len - 1, 10, false, &seen, NULL, &err),
                     TP_EINVAL);
    seen = (struct seen){0};
    assert_int_equal(feed(log.data, log.len - 1, 10, true, &seen, &stats, &err), TP_OK);
    assert_int_equal(seen.events, 20);
    assert_int_equal(seen.ghosts, 0);
    assert_true(stats.is_damaged && stats.is_truncated);
    assert_in_range(stats.damage_offset, log.len - 60, log.len - 2);
    tp_buf_fini(&log);
}

static void test_what_is_no_packet_ends_the_reading(void **state)
{
    struct tp_packet_feed_stats stats;
    struct seen seen = {0};
    struct tp_buf log = {0};
    struct tp_err err = {0};
    char where[32];

    (void)state;
    make_log(&log);
    log.data[TP_FRAME_BYTES] = 0x0f; /* a wire type that there is not */
    assert_int_equal(feed(log.data, log.len, 1000, false, &seen, NULL, &err),
                     TP_EINVAL);
    snprintf(where, sizeof(where), "byte %d ", TP_FRAME_BYTES);
    if (strstr(err.message, where) == NULL)
        fail_msg("%s", err.message);
    assert_int_equal(feed(log.data, log.len, 1000, true, &seen, &stats, &err), TP_OK);
    assert_true(stats.is_damaged);
    assert_false(stats.is_truncated);
    assert_int_equal(stats.damage_offset, TP_FRAME_BYTES);
    assert_int_equal(seen.events, 0);
    tp_buf_fini(&log);
}

static void test_what_the_callback_says_ends_the_feed(void **state)
{
    struct seen seen = {.answer = TP_EDENIED};
    struct tp_buf log = {0};
    struct tp_err err;

    (void)state;
    make_log(&log);
    assert_int_equal(feed(log.data, log.len, 7, true, &seen, NULL, &err), TP_EDENIED);
    assert_int_equal(seen.events, 1);
    tp_buf_fini(&log);
}

static void test_feeding_survives_every_allocation_failure(void **state)
{
    struct tp_buf log = {0};

    (void)state;
    make_log(&log);
    for (int n = 0;; n++) {
        struct seen seen = {0};
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = feed(log.data, log.len, 50, false, &seen, NULL, &err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
    tp_buf_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_of_any_size_give_the_same),
        cmocka_unit_test(test_half_a_packet_at_the_end_is_damage),
        cmocka_unit_test(test_what_is_no_packet_ends_the_reading),
        cmocka_unit_test(test_what_the_callback_says_ends_the_feed),
        cmocka_unit_test(test_feeding_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
