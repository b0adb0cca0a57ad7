/*
 * test_slice_filter.c - which events a slice shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/typemap.h"
#include "support/fault.h"
#include "trace/slice_filter.h"
#include "trace/trace_info.h"

#define NAME(t)               \
    {                         \
        (t), sizeof(t) - 1, 0 \
    }
#define NUM(n)                              \
    {                                       \
        .kind = TP_ID_NUMBER, .number = (n) \
    }

static const struct tp_track track = {.index = 5};

static bool passes(struct tp_slice_filter *f, struct tp_event ev)
{
    struct tp_err err;
    bool yes = false;

    ev.track = &track;
    assert_int_equal(tp_slice_filter_event(f, &ev, &yes, &err), TP_OK);
    return yes;
}

static struct tp_slice_filter *new_filter(const struct tp_trace_slice *s,
                                          const struct tp_typemap *types)
{
    struct tp_slice_filter *f;
    struct tp_err err;

    assert_int_equal(tp_slice_filter_new(s, types, &f, &err), TP_OK);
    return f;
}

static void test_a_range_includes_its_start_and_not_its_end(void **state)
{
    const struct tp_trace_slice s = {
        .has_from = true, .has_to = true, .from_ns = 100, .to_ns = 200};
    static const struct {
        enum tp_event_kind kind;
        int64_t ts_ns, dur_ns;
        bool want;
    } cases[] = {
        {TP_EVENT_SLICE, 50, 50, false},    {TP_EVENT_SLICE, 50, 51, true},
        {TP_EVENT_SLICE, 100, 0, true},     {TP_EVENT_SLICE, 99, 0, false},
        {TP_EVENT_SLICE, 199, 900, true},   {TP_EVENT_SLICE, 200, 1, false},
        {TP_EVENT_SLICE, 0, 1000, true},    {TP_EVENT_SLICE, 50, INT64_MAX, true},
        {TP_EVENT_INSTANT, 99, 0, false},   {TP_EVENT_INSTANT, 100, 0, true},
        {TP_EVENT_BEGIN, 5, 0, true},       {TP_EVENT_BEGIN, 200, 0, false},
        {TP_EVENT_COUNTER, 200, 0, false},  {TP_EVENT_META, 5, 0, true},
        {TP_EVENT_FLOW_START, 5, 0, false}, {TP_EVENT_FLOW_START, 150, 0, true},
    };
    struct tp_slice_filter *f = new_filter(&s, NULL);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (passes(f, (struct tp_event){.kind = cases[i].kind,
                                        .ts_ns = cases[i].ts_ns,
                                        .dur_ns = cases[i].dur_ns}) != cases[i].want)
            fail_msg("case %zu", i);
    tp_slice_filter_free(f);
}

static void test_types_are_known_names_and_nothing_else(void **state)
{
    struct tp_typeset set = {{1}}; /* cpu_op */
    const struct tp_trace_slice s = {.types = &set};
    struct tp_slice_filter *f;
    struct tp_typemap *types;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_typemap_new(NULL, &types, &err), TP_OK);
    f = new_filter(&s, types);
    assert_true(passes(f, (struct tp_event){.cat = NAME("cpu_op")}));
    assert_false(passes(f, (struct tp_event){.cat = NAME("kernel")}));
    assert_false(passes(f, (struct tp_event){.cat = NAME("Trace")}));
    assert_false(passes(f, (struct tp_event){0}));
    tp_slice_filter_free(f);
    tp_typemap_unref(types);
}

static void test_a_flow_goes_with_the_slice_around_it(void **state)
{
    struct tp_typeset set = {{1}};
    const struct tp_trace_slice s = {.types = &set};
    const struct tp_event flow = {.kind = TP_EVENT_FLOW_START, .cat = NAME("ac2g")};
    struct tp_event at = flow;
    struct tp_slice_filter *f;
    struct tp_typemap *types;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_typemap_new(NULL, &types, &err), TP_OK);
    f = new_filter(&s, types);
    assert_false(passes(f, at));
    assert_true(
        passes(f, (struct tp_event){.ts_ns = 10, .dur_ns = 5, .cat = NAME("cpu_op")}));
    at.ts_ns = 10;
    assert_true(passes(f, at));
    at.ts_ns = 15;
    assert_false(passes(f, at));
    assert_false(
        passes(f, (struct tp_event){.ts_ns = 16, .dur_ns = 5, .cat = NAME("kernel")}));
    at.ts_ns = 17;
    assert_false(passes(f, at));
    assert_true(passes(f, (struct tp_event){.ts_ns = 20, .cat = NAME("cpu_op")}));
    at.ts_ns = 20;
    assert_true(passes(f, at));
    tp_slice_filter_free(f);
    tp_typemap_unref(types);
}

static void test_the_end_of_an_operation_goes_with_its_begin(void **state)
{
    const struct tp_trace_slice s = {.has_from = true, .from_ns = 100};
    struct tp_event b = {
        .kind = TP_EVENT_ASYNC_BEGIN, .ts_ns = 50, .cat = NAME("c"), .id = NUM(1)};
    struct tp_event e = {
        .kind = TP_EVENT_ASYNC_END, .ts_ns = 150, .cat = NAME("c"), .id = NUM(1)};
    struct tp_slice_filter *f = new_filter(&s, NULL);

    (void)state;
    assert_false(passes(f, b));
    assert_false(passes(f, e));
    b.ts_ns = 160;
    assert_true(passes(f, b));
    assert_true(passes(f, b)); /* two at once with one id */
    e.kind = TP_EVENT_ASYNC_INSTANT;
    assert_true(passes(f, e));
    e.kind = TP_EVENT_ASYNC_END;
    assert_true(passes(f, e));
    assert_true(passes(f, e));
    assert_false(passes(f, e));
    tp_slice_filter_free(f);
}

static void test_the_end_of_a_flow_goes_with_its_start(void **state)
{
    const struct tp_trace_slice s = {.has_from = true, .from_ns = 100};
    const struct tp_event start = {
        .kind = TP_EVENT_FLOW_START, .ts_ns = 50, .cat = NAME("c"), .id = NUM(1)};
    struct tp_event late = start;
    struct tp_event step = {
        .kind = TP_EVENT_FLOW_STEP, .ts_ns = 150, .cat = NAME("c"), .id = NUM(1)};
    struct tp_event end = {
        .kind = TP_EVENT_FLOW_END, .ts_ns = 160, .cat = NAME("c"), .id = NUM(1)};
    struct tp_event async = {
        .kind = TP_EVENT_ASYNC_END, .ts_ns = 160, .cat = NAME("c"), .id = NUM(1)};
    struct tp_slice_filter *f = new_filter(&s, NULL);

    (void)state;
    assert_false(passes(f, start));
    assert_false(passes(f, step));
    assert_false(passes(f, end));
    late.ts_ns = 140;
    assert_true(passes(f, late));
    assert_true(passes(f, step));
    assert_false(passes(f, async)); /* its id is another's */
    end.id.number = 2;
    assert_false(passes(f, end));
    end.id.number = 1;
    assert_true(passes(f, end));
    assert_false(passes(f, end));
    tp_slice_filter_free(f);
}

static void test_whole_means_nothing_is_left_out(void **state)
{
    struct tp_typeset set = {{0}};
    const uint32_t rank = 0;

    (void)state;
    assert_true(tp_slice_filter_is_whole(NULL));
    assert_true(tp_slice_filter_is_whole(&(struct tp_trace_slice){0}));
    assert_true(tp_slice_filter_is_whole(
        &(struct tp_trace_slice){.ranks = &rank, .n_ranks = 1}));
    assert_false(tp_slice_filter_is_whole(&(struct tp_trace_slice){.types = &set}));
    assert_false(tp_slice_filter_is_whole(&(struct tp_trace_slice){.has_from = true}));
    assert_false(tp_slice_filter_is_whole(&(struct tp_trace_slice){.has_to = true}));
}

static void test_each_allocation_fails_cleanly(void **state)
{
    struct tp_typeset set = {{1}};
    const struct tp_trace_slice s = {.types = &set, .has_from = true};
    const struct tp_event events[] = {
        {.kind = TP_EVENT_SLICE, .cat = NAME("cpu_op"), .track = &track},
        {.kind = TP_EVENT_ASYNC_BEGIN, .cat = NAME("cpu_op"), .track = &track}};
    struct tp_typemap *types;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_typemap_new(NULL, &types, &err), TP_OK);
    for (int n = 0;; n++) {
        struct tp_slice_filter *f = NULL;
        bool yes;
        int rc;

        fault_arm(n);
        rc = tp_slice_filter_new(&s, types, &f, &err);
        for (int i = 0; rc == TP_OK && i < 2; i++)
            rc = tp_slice_filter_event(f, &events[i], &yes, &err);
        tp_slice_filter_free(f);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
    tp_typemap_unref(types);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_range_includes_its_start_and_not_its_end),
        cmocka_unit_test(test_types_are_known_names_and_nothing_else),
        cmocka_unit_test(test_a_flow_goes_with_the_slice_around_it),
        cmocka_unit_test(test_the_end_of_an_operation_goes_with_its_begin),
        cmocka_unit_test(test_the_end_of_a_flow_goes_with_its_start),
        cmocka_unit_test(test_whole_means_nothing_is_left_out),
        cmocka_unit_test(test_each_allocation_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
