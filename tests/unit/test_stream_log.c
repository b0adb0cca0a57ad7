/*
 * test_stream_log.c - nothing acknowledged is lost, nothing is stored twice or by half,
 * whatever fails and wherever a crash cuts.
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
#include "base/pb.h"
#include "support/blob_mem.h"
#include "support/fault.h"
#include "trace/stream_log.h"

#define NAME "traces/t/1.log"

/* A payload of valid packets, different for each i, 34 to 133 bytes. */
static struct tp_stream_payload make_payload(char *bytes, unsigned i)
{
    char filler[128];
    char *p = bytes;

    memset(filler, 'a' + (int)(i % 26), sizeof(filler));
    p = tp_pb_put_tag(p, 1, TP_PB_BYTES);
    p = tp_pb_put_varint(p, 32 + i % 100);
    p = tp_pb_put_bytes(p, 900, filler, 32 + i % 100 - 3);
    return (struct tp_stream_payload){.p = bytes, .n = (size_t)(p - bytes)};
}

static int append(struct tp_stream_log *log, unsigned seq, bool *is_repeat,
                  struct tp_counts *counts)
{
    char bytes[256];
    struct tp_stream_payload payload = make_payload(bytes, seq);
    struct tp_frame frame = {
        .has_seq = true,
        .seq = seq,
        .counts = {.emitted = seq + 2, .stored = seq + 1, .filtered = 1}};
    struct tp_err err;

    return tp_stream_log_append(log, &frame, &payload, counts, is_repeat, &err);
}

static void must_append(struct tp_stream_log *log, unsigned seq)
{
    struct tp_counts counts;
    bool is_repeat = true;

    assert_int_equal(append(log, seq, &is_repeat, &counts), TP_OK);
    assert_false(is_repeat);
    assert_int_equal(counts.stored, seq + 1);
}

static struct tp_stream_log *must_open(struct tp_blobs *blobs,
                                       struct tp_stream_log_report *report)
{
    struct tp_stream_log *log = NULL;
    struct tp_err err;

    assert_int_equal(tp_stream_log_open(blobs, NAME, &log, report, &err), TP_OK);
    return log;
}

static void make_log(struct tp_blobs *blobs, unsigned n)
{
    struct tp_stream_log *log = must_open(blobs, NULL);

    for (unsigned i = 0; i < n; i++)
        must_append(log, i);
    tp_stream_log_close(log);
}

static size_t log_bytes(struct tp_blobs *blobs)
{
    size_t n = 0;

    assert_non_null(blob_mem_data(blobs, NAME, &n));
    return n;
}

static void test_a_new_log_is_empty(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_stream_log_report report;
    struct tp_stream_log *log = must_open(blobs, &report);

    (void)state;
    assert_int_equal(report.frames, 0);
    assert_int_equal(report.cut_bytes, 0);
    assert_false(report.has_seq);
    assert_int_equal(tp_stream_log_size(log), 0);
    tp_stream_log_close(log);
    blob_mem_free(blobs);
}

static void test_what_was_appended_is_found_again(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_stream_log_report report;
    struct tp_stream_log *log;
    uint64_t offset = 0;
    unsigned n = 0;
    struct tp_frame frame;
    uint64_t payload_offset;
    struct tp_err err;

    (void)state;
    make_log(blobs, 20);
    log = must_open(blobs, &report);
    assert_int_equal(report.frames, 20);
    assert_int_equal(report.last_seq, 19);
    assert_int_equal(report.counts.stored, 20 * 21 / 2);
    assert_int_equal(report.counts.filtered, 20);
    assert_int_equal(report.counts.bytes, report.kept_bytes);
    assert_int_equal(tp_stream_log_size(log), report.kept_bytes);
    while (tp_stream_log_next(tp_stream_log_blob(log), report.kept_bytes, &offset,
                              &frame, &payload_offset, &err) == TP_OK) {
        assert_int_equal(frame.seq, n);
        assert_int_equal(offset, payload_offset + frame.payload_bytes);
        n++;
    }
    assert_int_equal(n, 20);
    assert_int_equal(offset, report.kept_bytes);
    tp_stream_log_close(log);
    blob_mem_free(blobs);
}

static void test_a_repeat_is_answered_with_the_counts_of_the_first_time(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_stream_log *log;
    struct tp_counts counts;
    bool is_repeat = false;
    uint64_t size;

    (void)state;
    make_log(blobs, 5);
    log = must_open(blobs, NULL);
    size = tp_stream_log_size(log);
    for (unsigned seq = 0; seq < 5; seq++) {
        assert_int_equal(append(log, seq, &is_repeat, &counts), TP_OK);
        assert_true(is_repeat);
        assert_int_equal(counts.stored, seq + 1);
    }
    assert_int_equal(tp_stream_log_size(log), size);
    assert_int_equal(tp_stream_log_find(log, 77, &counts, NULL), TP_ENOTFOUND);
    tp_stream_log_close(log);
    blob_mem_free(blobs);
}

static void test_numbers_may_come_in_any_order(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_stream_log *log = must_open(blobs, NULL);
    static const unsigned order[] = {5, 1, 9, 3, 2, 100, 50, 4};
    struct tp_counts counts;
    bool is_repeat;

    (void)state;
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
        must_append(log, order[i]);
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
        assert_int_equal(append(log, order[i], &is_repeat, &counts), TP_OK);
        assert_true(is_repeat);
        assert_int_equal(counts.stored, order[i] + 1);
    }
    tp_stream_log_close(log);
    blob_mem_free(blobs);
}

static void test_a_number_below_the_remembered_ones_is_refused(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_stream_log *log = must_open(blobs, NULL);
    struct tp_counts counts;
    bool is_repeat;

    (void)state;
    for (unsigned i = 0; i < 1024 + 10; i++)
        must_append(log, 10 + i);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(append(log, 12, &is_repeat, &counts), TP_ESTATE);
        assert_int_equal(append(log, 19, &is_repeat, &counts), TP_ESTATE);
        assert_int_equal(append(log, 3, &is_repeat, &counts), TP_ESTATE);
        assert_int_equal(append(log, 20, &is_repeat, &counts), TP_OK);
        assert_true(is_repeat);
        tp_stream_log_close(log); /* and the same after a restart */
        log = must_open(blobs, NULL);
    }
    must_append(log, 5000);
    tp_stream_log_close(log);
    blob_mem_free(blobs);
}

static void test_batches_without_a_number_are_never_repeats(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_stream_log *log = must_open(blobs, NULL);
    char bytes[256];
    struct tp_stream_payload payload = make_payload(bytes, 1);
    struct tp_counts counts;
    bool is_repeat = true;
    struct tp_err err;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct tp_frame frame = {0};

        assert_int_equal(tp_stream_log_append(log, &frame, &payload, &counts,
                                              &is_repeat, &err),
                         TP_OK);
        assert_false(is_repeat);
    }
    assert_int_equal(tp_stream_log_size(log), 3 * (TP_FRAME_BYTES + payload.n));
    tp_stream_log_close(log);
    blob_mem_free(blobs);
}

static void test_a_crash_at_any_byte_costs_only_the_torn_batch(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    char *whole;
    size_t size;
    uint64_t ends[4] = {0};

    (void)state;
    make_log(blobs, 3);
    whole = malloc(4096);
    assert_non_null(whole);
    memcpy(whole, blob_mem_data(blobs, NAME, NULL), log_bytes(blobs));
    size = log_bytes(blobs);
    for (unsigned i = 0; i < 3; i++) {
        char bytes[256];

        ends[i + 1] = ends[i] + TP_FRAME_BYTES + make_payload(bytes, i).n;
    }
    assert_int_equal(ends[3], size);
    for (size_t cut = 0; cut <= size; cut++) {
        struct tp_stream_log_report report;
        struct tp_stream_log *log;
        unsigned kept = cut >= ends[3]   ? 3
                        : cut >= ends[2] ? 2
                        : cut >= ends[1] ? 1
                                         : 0;

        blob_mem_put(blobs, NAME, whole, cut);
        log = must_open(blobs, &report);
        if (report.frames != kept || report.kept_bytes != ends[kept] ||
            report.cut_bytes != cut - ends[kept])
            fail_msg("cut at %zu keeps %llu frames", cut,
                     (unsigned long long)report.frames);
        must_append(log, 10);
        tp_stream_log_close(log);
        log = must_open(blobs, &report);
        assert_int_equal(report.frames, kept + 1);
        assert_int_equal(report.cut_bytes, 0);
        tp_stream_log_close(log);
    }
    free(whole);
    blob_mem_free(blobs);
}

static void test_a_flipped_bit_anywhere_costs_at_most_its_batch(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    char whole[4096];
    size_t size;

    (void)state;
    make_log(blobs, 3);
    size = log_bytes(blobs);
    memcpy(whole, blob_mem_data(blobs, NAME, NULL), size);
    for (size_t at = 0; at < size; at++) {
        size_t first = TP_FRAME_BYTES + 34;
        bool is_first_payload = at >= TP_FRAME_BYTES && at < first;
        struct tp_stream_log_report report;

        whole[at] = (char)(whole[at] ^ 4);
        blob_mem_put(blobs, NAME, whole, size);
        whole[at] = (char)(whole[at] ^ 4);
        tp_stream_log_close(must_open(blobs, &report));
        if (is_first_payload &&
            (report.blanked_frames != 1 || report.frames != 3 ||
             report.cut_bytes != 0 || report.counts.dropped[TP_DROP_DAMAGED] != 1))
            fail_msg("byte %zu: the payload is not blanked", at);
        if (report.counts.stored + report.lost.stored +
                report.counts.dropped[TP_DROP_DAMAGED] >
            6)
            fail_msg("byte %zu: events are counted twice", at);
        tp_stream_log_close(must_open(blobs, &report));
        if (report.cut_bytes != 0 || report.blanked_frames != 0)
            fail_msg("byte %zu: the second recovery finds something", at);
    }
    blob_mem_free(blobs);
}

static void test_a_cut_says_why_and_what_was_there(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_stream_log_report report;
    size_t size;
    char *data;

    (void)state;
    make_log(blobs, 2);
    data = blob_mem_data(blobs, NAME, &size);
    data[size - 1] ^= 1;
    tp_stream_log_close(must_open(blobs, &report));
    assert_int_equal(report.frames, 1);
    assert_int_equal(report.lost.stored, 2);
    assert_non_null(strstr(report.why_cut, "a damaged payload at byte "));
    blob_mem_free(blobs);
}

static void test_a_spilled_payload_is_as_good_as_one_in_memory(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_stream_log *log = must_open(blobs, NULL);
    struct tp_stream_log_report report;
    char bytes[256];
    struct tp_stream_payload payload = make_payload(bytes, 50);
    struct tp_frame frame = {.has_seq = true, .seq = 1, .counts = {.stored = 3}};
    struct tp_counts counts;
    bool is_repeat;
    struct tp_err err;
    char *data;

    (void)state;
    assert_int_equal(blobs->open_append(blobs->ctx, NULL, &payload.spill, &err), TP_OK);
    assert_int_equal(blobs->append(payload.spill, bytes, 20, &err), TP_OK);
    payload.spill_bytes = 20;
    payload.spill_crc32c = tp_frame_crc(0, bytes, 20);
    payload.p += 20;
    payload.n -= 20;
    assert_int_equal(
        tp_stream_log_append(log, &frame, &payload, &counts, &is_repeat, &err), TP_OK);
    blobs->close(blobs->ctx, payload.spill);
    tp_stream_log_close(log);
    tp_stream_log_close(must_open(blobs, &report));
    assert_int_equal(report.frames, 1);
    assert_int_equal(report.cut_bytes, 0);
    data = blob_mem_data(blobs, NAME, NULL);
    assert_memory_equal(data + TP_FRAME_BYTES, bytes, 20 + payload.n);
    blob_mem_free(blobs);
}

/* Fail the 1st, 2nd, ... operation: an append that fails leaves nothing, and the next
 * one succeeds. */
static void test_a_failing_medium_leaves_whole_batches_only(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_blobs *blobs = blob_mem_new();
        struct tp_stream_log *log = must_open(blobs, NULL);
        struct tp_stream_log_report report;
        struct tp_counts counts;
        bool is_repeat;
        bool has_fired;
        int rc;

        must_append(log, 0);
        blob_mem_fail_after(blobs, n);
        rc = append(log, 1, &is_repeat, &counts);
        has_fired = blob_mem_disarm(blobs);
        assert_int_equal(rc, has_fired ? TP_EIO : TP_OK);
        must_append(log, 2);
        tp_stream_log_close(log);
        tp_stream_log_close(must_open(blobs, &report));
        assert_int_equal(report.frames, has_fired ? 2 : 3);
        assert_int_equal(report.cut_bytes, 0);
        blob_mem_free(blobs);
        if (!has_fired)
            return;
    }
}

static void test_a_part_that_cannot_be_taken_back_is_taken_back_later(void **state)
{
    (void)state;
    for (int n = 0; n < 4; n++) {
        struct tp_blobs *blobs = blob_mem_new();
        struct tp_stream_log *log = must_open(blobs, NULL);
        struct tp_stream_log_report report;
        struct tp_counts counts;
        bool is_repeat;
        int rc;

        must_append(log, 0);
        blob_mem_break_after(blobs, n);
        rc = append(log, 1, &is_repeat, &counts);
        if (blob_mem_disarm(blobs)) {
            assert_int_equal(rc, TP_EIO);
            must_append(log, 1);
        }
        tp_stream_log_close(log);
        tp_stream_log_close(must_open(blobs, &report));
        assert_int_equal(report.frames, 2);
        assert_int_equal(report.cut_bytes, 0);
        blob_mem_free(blobs);
    }
}

static void test_a_full_medium_is_a_quota_and_leaves_nothing(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_stream_log *log = must_open(blobs, NULL);
    struct tp_counts counts;
    bool is_repeat;
    uint64_t size;

    (void)state;
    must_append(log, 0);
    size = tp_stream_log_size(log);
    blob_mem_limit(blobs, size + TP_FRAME_BYTES + 5);
    assert_int_equal(append(log, 1, &is_repeat, &counts), TP_EQUOTA);
    assert_int_equal(tp_stream_log_size(log), size);
    assert_int_equal(blobs->size(tp_stream_log_blob(log)), size);
    blob_mem_limit(blobs, 0);
    must_append(log, 1);
    tp_stream_log_close(log);
    blob_mem_free(blobs);
}

static void test_recovery_survives_a_medium_that_fails_at_any_operation(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    char whole[4096];
    size_t size;

    (void)state;
    make_log(blobs, 3);
    size = log_bytes(blobs);
    memcpy(whole, blob_mem_data(blobs, NAME, NULL), size);
    whole[TP_FRAME_BYTES + 20] ^= 1; /* one to blank */
    whole[size - 1] ^= 1;            /* and one to cut */
    for (int n = 0;; n++) {
        struct tp_stream_log_report report;
        struct tp_stream_log *log = NULL;
        struct tp_err err;
        int rc;

        blob_mem_put(blobs, NAME, whole, size);
        blob_mem_fail_after(blobs, n);
        rc = tp_stream_log_open(blobs, NAME, &log, NULL, &err);
        if (!blob_mem_disarm(blobs)) {
            assert_int_equal(rc, TP_OK);
            tp_stream_log_close(log);
            break;
        }
        assert_int_equal(rc, TP_EIO);
        assert_null(log);
        assert_int_equal(blob_mem_open(blobs), 0);
        tp_stream_log_close(must_open(blobs, &report));
        assert_int_equal(report.frames, 2);
    }
    blob_mem_free(blobs);
}

static void test_each_allocation_may_fail(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();

    (void)state;
    make_log(blobs, 40);
    for (int n = 0;; n++) {
        struct tp_stream_log *log = NULL;
        struct tp_counts counts;
        bool is_repeat;
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_stream_log_open(blobs, NAME, &log, NULL, &err);
        if (rc == TP_OK)
            rc = append(log, 1000 + (unsigned)n, &is_repeat, &counts);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_stream_log_close(log);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
        tp_stream_log_close(log);
        assert_int_equal(blob_mem_open(blobs), 0);
    }
    blob_mem_free(blobs);
}

static void test_stepping_says_where_a_log_is_no_log(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_blob *blob;
    struct tp_frame frame;
    uint64_t offset = 0;
    uint64_t payload_offset;
    struct tp_err err;

    (void)state;
    make_log(blobs, 1);
    assert_int_equal(blobs->open_read(blobs->ctx, NAME, &blob, &err), TP_OK);
    offset = 1;
    assert_int_equal(tp_stream_log_next(blob, blobs->size(blob), &offset, &frame,
                                        &payload_offset, &err),
                     TP_EINVAL);
    offset = 0;
    assert_int_equal(tp_stream_log_next(blob, blobs->size(blob) - 1, &offset, &frame,
                                        &payload_offset, &err),
                     TP_EINVAL);
    assert_int_equal(offset, 0);
    blobs->close(blobs->ctx, blob);
    blob_mem_free(blobs);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_log_is_empty),
        cmocka_unit_test(test_what_was_appended_is_found_again),
        cmocka_unit_test(test_a_repeat_is_answered_with_the_counts_of_the_first_time),
        cmocka_unit_test(test_numbers_may_come_in_any_order),
        cmocka_unit_test(test_a_number_below_the_remembered_ones_is_refused),
        cmocka_unit_test(test_batches_without_a_number_are_never_repeats),
        cmocka_unit_test(test_a_crash_at_any_byte_costs_only_the_torn_batch),
        cmocka_unit_test(test_a_flipped_bit_anywhere_costs_at_most_its_batch),
        cmocka_unit_test(test_a_cut_says_why_and_what_was_there),
        cmocka_unit_test(test_a_spilled_payload_is_as_good_as_one_in_memory),
        cmocka_unit_test(test_a_failing_medium_leaves_whole_batches_only),
        cmocka_unit_test(test_a_part_that_cannot_be_taken_back_is_taken_back_later),
        cmocka_unit_test(test_a_full_medium_is_a_quota_and_leaves_nothing),
        cmocka_unit_test(test_recovery_survives_a_medium_that_fails_at_any_operation),
        cmocka_unit_test(test_each_allocation_may_fail),
        cmocka_unit_test(test_stepping_says_where_a_log_is_no_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
