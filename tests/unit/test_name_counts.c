/*
 * test_name_counts.c - sums by type and name, in bounded memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/name_counts.h"

static struct tp_name name(const char *s, uint32_t iid)
{
    return (struct tp_name){s, s == NULL ? 0 : (uint32_t)strlen(s), iid};
}

static int count(struct tp_name_counts *c, const char *cat, uint32_t cat_iid,
                 const char *text, uint32_t iid, int64_t ts, int64_t dur,
                 struct tp_err *err)
{
    struct tp_event ev = {.kind = TP_EVENT_SLICE,
                          .ts_ns = ts,
                          .dur_ns = dur,
                          .cat = name(cat, cat_iid),
                          .name = name(text, iid)};

    return tp_name_counts_add(c, &ev, err);
}

static struct tp_name_counts *new_counts(const struct tp_name_counts_opts *opts)
{
    struct tp_name_counts *c;
    struct tp_err err;

    assert_int_equal(tp_name_counts_new(opts, &c, &err), TP_OK);
    return c;
}

static void test_sums_are_by_type_and_by_name_within_it(void **state)
{
    struct tp_name_counts *c = new_counts(NULL);
    const struct tp_index_type *types;
    const struct tp_index_name *names;
    struct tp_err err;
    size_t n;

    (void)state;
    for (int round = 0; round < 2; round++) { /* the second is answered by the cache */
        count(c, "kernel", 1, "gemm", 1, 10, 5, &err);
        count(c, "kernel", 1, "relu", 2, 20, 1, &err);
        count(c, "op", 2, "gemm", 1, 5, 3, &err);
        count(c, NULL, 0, "gemm", 1, 7, 0, &err);
        count(c, "kernel", 0, "gemm", 0, 30, 7, &err); /* not numbered */
    }
    types = tp_name_counts_types(c, &n);
    assert_int_equal(n, 3);
    assert_true(tp_str_is(types[0].cat, "kernel"));
    assert_int_equal(types[0].count, 6);
    assert_int_equal(types[0].total_ns, 26);
    assert_int_equal(types[0].first_ns, 10);
    assert_int_equal(types[0].last_ns, 37);
    assert_int_equal(types[2].cat.len, 0);
    names = tp_name_counts_top(c, &n);
    assert_int_equal(n, 4);
    assert_true(tp_str_is(names[0].name, "gemm") && tp_str_is(names[0].cat, "kernel"));
    assert_int_equal(names[0].count, 4);
    assert_int_equal(names[0].total_ns, 24);
    assert_int_equal(names[0].min_ns, 5);
    assert_int_equal(names[0].max_ns, 7);
    assert_true(tp_str_is(names[1].cat, "op"));
    assert_true(tp_str_is(names[2].name, "relu"));
    assert_true(tp_name_counts_is_complete(c));
    tp_name_counts_free(c);
}

static void test_flows_count_by_type_only(void **state)
{
    struct tp_name_counts *c = new_counts(NULL);
    struct tp_event ev = {.kind = TP_EVENT_FLOW_END,
                          .cat = name("ac2g", 1),
                          .name = name("ac2g", 1)};
    struct tp_err err;
    size_t n;

    (void)state;
    assert_int_equal(tp_name_counts_add(c, &ev, &err), TP_OK);
    tp_name_counts_types(c, &n);
    assert_int_equal(n, 1);
    tp_name_counts_top(c, &n);
    assert_int_equal(n, 0);
    tp_name_counts_free(c);
}

static void test_a_full_table_keeps_the_names_of_most_time(void **state)
{
    struct tp_name_counts_opts opts = {.names_max = 100};
    struct tp_name_counts *c = new_counts(&opts);
    const struct tp_index_name *names;
    struct tp_err err;
    char text[32];
    size_t n;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof(text), "small %d", i);
        assert_int_equal(count(c, "op", 1, text, 0, i, 1, &err), TP_OK);
        assert_int_equal(count(c, "op", 1, "big", 7, i, 10, &err), TP_OK);
    }
    names = tp_name_counts_top(c, &n);
    assert_true(n <= 100);
    assert_true(tp_str_is(names[0].name, "big"));
    assert_int_equal(names[0].count, 5000);
    assert_false(tp_name_counts_is_complete(c));
    tp_name_counts_free(c);
}

static void test_types_and_bytes_over_the_limit_are_left_out(void **state)
{
    struct tp_name_counts_opts opts = {.types_max = 2, .bytes_max = 40};
    struct tp_name_counts *c = new_counts(&opts);
    struct tp_err err;
    size_t n;

    (void)state;
    count(c, "a", 1, "x", 1, 0, 1, &err);
    count(c, "b", 2, "x", 1, 0, 1, &err);
    assert_true(tp_name_counts_is_complete(c));
    assert_int_equal(count(c, "c", 3, "x", 1, 0, 1, &err), TP_OK);
    assert_false(tp_name_counts_is_complete(c));
    assert_int_equal(count(c, "a", 1, "a name that is longer than forty bytes are", 2,
                           0, 1, &err),
                     TP_OK);
    tp_name_counts_types(c, &n);
    assert_int_equal(n, 2);
    tp_name_counts_free(c);
}

static void test_counting_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_name_counts *c = NULL;
        struct tp_err err;
        char text[32];
        size_t n_names;
        int rc;

        fault_arm(n);
        rc = tp_name_counts_new(NULL, &c, &err);
        for (int i = 0; rc == TP_OK && i < 600; i++) {
            snprintf(text, sizeof(text), "%d", i % 300);
            rc = count(c, i < 50 ? text : "t", 0, text, 0, i, 1, &err);
        }
        if (rc == TP_OK)
            tp_name_counts_top(c, &n_names);
        tp_name_counts_free(c);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(n_names, 350);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_are_by_type_and_by_name_within_it),
        cmocka_unit_test(test_flows_count_by_type_only),
        cmocka_unit_test(test_a_full_table_keeps_the_names_of_most_time),
        cmocka_unit_test(test_types_and_bytes_over_the_limit_are_left_out),
        cmocka_unit_test(test_counting_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
