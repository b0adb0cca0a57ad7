/*
 * test_sorter.c - the order of records, in memory and through blobs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/blob_mem.h"
#include "support/fault.h"
#include "trace/sorter.h"
#include "trace/sorter_runs.h"

static const struct tp_track track = {.index = 5};

/* A record whose id is the number of its coming. */
static int put(struct tp_sorter *s, struct tp_rec_names *names, int64_t ts, int64_t dur,
               uint32_t rank, int64_t number, struct tp_err *err)
{
    struct tp_event ev = {.kind = TP_EVENT_SLICE,
                          .ts_ns = ts,
                          .dur_ns = dur,
                          .id = {.kind = TP_ID_NUMBER, .number = number},
                          .name = {"a name", 6, 0},
                          .track = &track};
    int rc = tp_rec_encode(names, &ev, tp_sorter_room(s), err);

    return rc != TP_OK ? rc : tp_sorter_commit(s, rank, err);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Sort n records with times below `range` and check every neighbour. Returns the first
 * failure, after which the sorter is only freed. */
static int sort_many(const struct tp_blobs *blobs, size_t memory, uint64_t n,
                     uint64_t range, struct tp_sorter_stats *stats)
{
    struct tp_rec_names names = {0};
    struct tp_sorter *s = NULL;
    struct tp_rec_head last = {.ts_ns = INT64_MIN};
    const struct tp_rec_head *rec = NULL;
    struct tp_err err;
    uint64_t seed = 88172645463325252u;
    uint64_t got = 0;
    int rc = tp_sorter_new(blobs, memory, &s, &err);

    for (uint64_t i = 0; rc == TP_OK && i < n; i++) {
        uint64_t r = next_random(&seed);
        int64_t ts = range == 0 ? (int64_t)r
                                : (int64_t)(r % range) - (int64_t)(range / 2);

        rc = put(s, &names, ts, (int64_t)(r >> 40 & 3), (uint32_t)(r >> 50 & 1),
                 (int64_t)i, &err);
    }
    if (rc == TP_OK)
        rc = tp_sorter_finish(s, &err);
    while (rc == TP_OK && (rc = tp_sorter_next(s, &rec, &err)) == TP_OK &&
           rec != NULL) {
        int order = got == 0 ? -1 : tp_runs_compare(&last, rec);

        if (order > 0 || (order == 0 && last.id > rec->id))
            fail_msg("record %llu is out of order", (unsigned long long)got);
        last = *rec;
        got++;
    }
    if (rc == TP_OK) {
        assert_int_equal(got, n);
        if (stats != NULL)
            *stats = tp_sorter_stats(s);
    }
    tp_sorter_free(s);
    tp_rec_names_fini(&names);
    return rc;
}

static void test_order_is_time_rank_longest_coming(void **state)
{
    static const uint64_t ranges[] = {0, 1, 7, 5000, 1ull << 40};
    static const uint64_t counts[] = {0, 1, 2, 511, 512, 5000};

    (void)state;
    for (size_t r = 0; r < 5; r++)
        for (size_t c = 0; c < 6; c++)
            if (sort_many(NULL, 64 << 20, counts[c], ranges[r], NULL) != TP_OK)
                fail_msg("%d records in range %d", (int)counts[c], (int)ranges[r]);
}

static void test_sorted_input_is_not_sorted_again(void **state)
{
    struct tp_rec_names names = {0};
    struct tp_sorter *s;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_sorter_new(NULL, 1 << 20, &s, &err), TP_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(put(s, &names, i / 3, -i % 3, 0, i, &err), TP_OK);
    assert_int_equal(tp_sorter_finish(s, &err), TP_OK);
    assert_true(tp_sorter_stats(s).was_sorted);
    assert_int_equal(tp_sorter_stats(s).records, 1000);
    tp_sorter_free(s);
    tp_rec_names_fini(&names);
}

static void test_what_does_not_fit_goes_through_blobs(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_sorter_stats stats;

    (void)state;
    assert_int_equal(sort_many(blobs, 64 << 10, 20000, 1000, &stats), TP_OK);
    assert_true(stats.runs > 10); /* more than may be merged at once */
    assert_true(stats.spill_bytes > 20000 * sizeof(struct tp_rec_head));
    assert_int_equal(blob_mem_open(blobs), 0);
    assert_int_equal(blob_mem_names(blobs), 0);
    blob_mem_free(blobs);
}

static void test_without_blobs_memory_is_the_limit(void **state)
{
    (void)state;
    assert_int_equal(sort_many(NULL, 64 << 10, 20000, 1000, NULL), TP_EQUOTA);
}

static void test_every_failing_operation_ends_the_sort_without_a_leak(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();

    (void)state;
    for (int n = 0;; n++) {
        int rc;

        blob_mem_fail_after(blobs, n);
        rc = sort_many(blobs, 64 << 10, 3000, 100, NULL);
        assert_int_equal(blob_mem_open(blobs), 0);
        if (!blob_mem_disarm(blobs)) {
            assert_int_equal(rc, TP_OK);
            assert_true(n > 5);
            break;
        }
        assert_int_equal(rc, TP_EIO);
    }
    blob_mem_free(blobs);
}

static void test_every_failing_allocation_ends_the_sort_without_a_leak(void **state)
{
    struct tp_blobs *blobs = blob_mem_new();

    (void)state;
    for (int n = 0;; n++) {
        int rc;

        fault_arm(n);
        rc = sort_many(blobs, 64 << 10, 3000, 100, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_int_equal(blob_mem_open(blobs), 0);
    }
    blob_mem_free(blobs);
}

static void test_a_record_larger_than_the_memory_passes(void **state)
{
    static char text[200000];
    struct tp_blobs *blobs = blob_mem_new();
    struct tp_rec_names names = {0};
    const struct tp_rec_head *rec;
    struct tp_rec_args args = {0};
    struct tp_sorter *s;
    struct tp_event ev = {.kind = TP_EVENT_OTHER, .track = &track};
    struct tp_event back;
    struct tp_err err;

    (void)state;
    memset(text, 'x', sizeof(text));
    assert_int_equal(tp_sorter_new(blobs, 64 << 10, &s, &err), TP_OK);
    for (int i = 0; i < 3; i++) {
        ev.ts_ns = -i;
        ev.extra = (struct tp_str){text, sizeof(text) - (size_t)i};
        assert_int_equal(tp_rec_encode(&names, &ev, tp_sorter_room(s), &err), TP_OK);
        assert_int_equal(tp_sorter_commit(s, 0, &err), TP_OK);
    }
    assert_int_equal(tp_sorter_finish(s, &err), TP_OK);
    for (int i = 2; i >= 0; i--) {
        assert_int_equal(tp_sorter_next(s, &rec, &err), TP_OK);
        assert_int_equal(tp_rec_decode(&names, rec, &args, &back, &err), TP_OK);
        assert_int_equal(back.ts_ns, -i);
        assert_int_equal(back.extra.len, sizeof(text) - (size_t)i);
        assert_memory_equal(back.extra.ptr, text, back.extra.len);
    }
    tp_rec_args_fini(&args);
    tp_sorter_free(s);
    tp_rec_names_fini(&names);
    blob_mem_free(blobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_is_time_rank_longest_coming),
        cmocka_unit_test(test_sorted_input_is_not_sorted_again),
        cmocka_unit_test(test_what_does_not_fit_goes_through_blobs),
        cmocka_unit_test(test_without_blobs_memory_is_the_limit),
        cmocka_unit_test(test_every_failing_operation_ends_the_sort_without_a_leak),
        cmocka_unit_test(test_every_failing_allocation_ends_the_sort_without_a_leak),
        cmocka_unit_test(test_a_record_larger_than_the_memory_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
