/*
 * test_summary.c - numbers from indexes, and who is slow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "support/fault.h"
#include "trace/merge.h"
#include "trace/stream_index.h"
#include "trace/summary.h"
#include "trace/trace_info.h"

#define STR(t)             \
    {                      \
        (t), sizeof(t) - 1 \
    }
#define MS 1000000

static struct tp_index_type types_a[] = {{.cat = STR("cpu_op"),
                                          .count = 3,
                                          .total_ns = 10 * MS,
                                          .first_ns = 5,
                                          .last_ns = 90 * MS},
                                         {.cat = STR("kernel"),
                                          .count = 2,
                                          .total_ns = 30 * MS,
                                          .first_ns = 9,
                                          .last_ns = 80 * MS}};
static struct tp_index_type types_b[] = {{.cat = STR("kernel"),
                                          .count = 4,
                                          .total_ns = 40 * MS,
                                          .first_ns = 2,
                                          .last_ns = 85 * MS}};
static struct tp_index_name names_a[] = {{.cat = STR("kernel"),
                                          .name = STR("gemm"),
                                          .count = 1,
                                          .total_ns = 20,
                                          .min_ns = 20,
                                          .max_ns = 20},
                                         {.cat = STR("cpu_op"),
                                          .name = STR("mul"),
                                          .count = 2,
                                          .total_ns = 7,
                                          .min_ns = 3,
                                          .max_ns = 4},
                                         {.cat = STR("kernel"),
                                          .name = STR("copy"),
                                          .count = 1,
                                          .total_ns = 10,
                                          .min_ns = 10,
                                          .max_ns = 10}};
static struct tp_index_name names_b[] = {{.cat = STR("kernel"),
                                          .name = STR("copy"),
                                          .count = 4,
                                          .total_ns = 40,
                                          .min_ns = 1,
                                          .max_ns = 30}};
static const struct tp_stream_index a = {.types = types_a,
                                         .n_types = 2,
                                         .names = names_a,
                                         .n_names = 3,
                                         .names_are_complete = true};
static const struct tp_stream_index b = {.types = types_b,
                                         .n_types = 1,
                                         .names = names_b,
                                         .n_names = 1,
                                         .names_are_complete = true};
static const struct tp_stream_index none = {0};
static const struct tp_producer_info producers[] = {
    {.id = STR("p0"), .has_rank = true, .rank = 0, .host = STR("n1")},
    {.id = STR("p1"), .has_rank = true, .rank = 1},
    {.id = STR("p2"), .has_rank = true, .rank = 2},
    {.name = STR("nic")}};

static struct tp_summary *must(const struct tp_merge_stream *streams, size_t n,
                               size_t n_names)
{
    struct tp_summary *s;
    struct tp_err err;

    assert_int_equal(tp_summary_new(streams, n, n_names, &s, &err), TP_OK);
    return s;
}

static void test_streams_of_one_rank_are_added_up(void **state)
{
    const struct tp_merge_stream streams[] = {{&a, &producers[0]},
                                              {&b, &producers[0]},
                                              {&none, &producers[1]},
                                              {&b, &producers[3]}};
    struct tp_summary *s = must(streams, 4, 0);
    const struct tp_summary_type *kernel;

    (void)state;
    assert_int_equal(s->n_ranks, 3);
    assert_int_equal(s->ranks[0].count, 9);
    assert_int_equal(s->ranks[0].first_ns, 2);
    assert_int_equal(s->ranks[0].last_ns, 90 * MS);
    assert_int_equal(s->ranks[0].n_types, 2);
    kernel = &s->ranks[0].types[0]; /* 70 ms is more than 10 */
    assert_true(tp_str_is(kernel->cat, "kernel"));
    assert_int_equal(kernel->count, 6);
    assert_int_equal(kernel->total_ns, 70 * MS);
    assert_int_equal(kernel->n_names, 2);
    assert_true(kernel->names_are_complete);
    assert_true(tp_str_is(kernel->names[0].name, "copy"));
    assert_int_equal(kernel->names[0].count, 5);
    assert_int_equal(kernel->names[0].total_ns, 50);
    assert_int_equal(kernel->names[0].min_ns, 1);
    assert_int_equal(kernel->names[0].max_ns, 30);
    assert_int_equal(s->ranks[1].count, 0);
    assert_false(s->ranks[2].has_rank);
    assert_true(tp_str_is(s->ranks[2].producer, "nic"));
    tp_summary_free(s);
}

static void test_the_top_names_are_those_of_most_time(void **state)
{
    const struct tp_merge_stream streams[] = {{&a, &producers[0]}};
    struct tp_summary *s = must(streams, 1, 1);

    (void)state;
    assert_int_equal(s->ranks[0].types[0].n_names, 1);
    assert_true(tp_str_is(s->ranks[0].types[0].names[0].name, "gemm"));
    assert_false(s->ranks[0].types[0].names_are_complete);
    assert_true(s->ranks[0].types[1].names_are_complete);
    tp_summary_free(s);
}

static void test_a_rank_far_over_the_median_is_a_straggler(void **state)
{
    struct tp_index_type slow[] = {types_b[0]};
    struct tp_stream_index c = {.types = slow, .n_types = 1};
    const struct tp_merge_stream streams[] = {{&b, &producers[0]},
                                              {&b, &producers[1]},
                                              {&c, &producers[2]}};
    struct tp_summary *s;

    (void)state;
    slow[0].total_ns = 48 * MS; /* 20 % is not over 20 % */
    s = must(streams, 3, 0);
    assert_int_equal(s->n_stragglers, 0);
    tp_summary_free(s);

    slow[0].total_ns = 60 * MS;
    slow[0].last_ns = 400 * MS;
    s = must(streams, 3, 0);
    assert_int_equal(s->n_stragglers, 2);
    assert_true(s->stragglers[0].is_span); /* 4.7 times the median */
    assert_int_equal(s->stragglers[0].rank, 2);
    assert_true(tp_str_is(s->stragglers[1].cat, "kernel"));
    assert_int_equal(s->stragglers[1].value_ns, 60 * MS);
    assert_int_equal(s->stragglers[1].median_ns, 40 * MS);
    assert_int_equal(s->stragglers[1].n_ranks, 3);
    tp_summary_free(s);
}

static void test_microseconds_make_no_straggler(void **state)
{
    struct tp_index_type fast[] = {{.cat = STR("k"), .count = 1, .total_ns = 1000}};
    struct tp_index_type slow[] = {{.cat = STR("k"), .count = 1, .total_ns = 900000}};
    const struct tp_stream_index x = {.types = fast, .n_types = 1};
    const struct tp_stream_index y = {.types = slow, .n_types = 1};
    const struct tp_merge_stream streams[] = {{&x, &producers[0]}, {&y, &producers[1]}};
    struct tp_summary *s = must(streams, 2, 0);

    (void)state;
    assert_int_equal(s->n_stragglers, 0);
    tp_summary_free(s);
}

static void test_the_json_has_all_of_it(void **state)
{
    const struct tp_merge_stream streams[] = {{&b, &producers[0]},
                                              {&none, &producers[3]}};
    static const char want[] =
        "{\"ranks\": [{\"rank\": 0, \"producer\": \"p0\", \"host\": \"n1\", \"count\": "
        "4, "
        "\"first\": \"1970-01-01T00:00:00.000000002Z\", "
        "\"last\": \"1970-01-01T00:00:00.085000000Z\", \"types\": [{\"type\": "
        "\"kernel\", "
        "\"count\": 4, \"total_ns\": 40000000, "
        "\"first\": \"1970-01-01T00:00:00.000000002Z\", "
        "\"last\": \"1970-01-01T00:00:00.085000000Z\", \"names_are_complete\": true, "
        "\"names\": [{\"name\": \"copy\", \"count\": 4, \"total_ns\": 40, \"min_ns\": "
        "1, "
        "\"max_ns\": 30}]}]}, {\"producer\": \"nic\", \"count\": 0, \"types\": []}], "
        "\"stragglers\": []}";
    struct tp_summary *s = must(streams, 2, 0);
    struct tp_buf out = {0};
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_summary_write(s, &out, &err), TP_OK);
    if (out.len != strlen(want) || memcmp(out.data, want, out.len) != 0)
        fail_msg("got %.*s", (int)out.len, out.data);
    tp_buf_fini(&out);
    tp_summary_free(s);
}

static void test_each_allocation_fails_cleanly(void **state)
{
    const struct tp_merge_stream streams[] = {{&a, &producers[0]}, {&b, &producers[1]}};

    (void)state;
    for (int n = 0;; n++) {
        struct tp_summary *s = NULL;
        struct tp_buf out = {0};
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_summary_new(streams, 2, 0, &s, &err);
        if (rc == TP_OK)
            rc = tp_summary_write(s, &out, &err);
        tp_summary_free(s);
        tp_buf_fini(&out);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_of_one_rank_are_added_up),
        cmocka_unit_test(test_the_top_names_are_those_of_most_time),
        cmocka_unit_test(test_a_rank_far_over_the_median_is_a_straggler),
        cmocka_unit_test(test_microseconds_make_no_straggler),
        cmocka_unit_test(test_the_json_has_all_of_it),
        cmocka_unit_test(test_each_allocation_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
