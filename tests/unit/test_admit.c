/*
 * test_admit.c - which kinds of events a filter judges, and by what.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/filter.h"
#include "core/typemap.h"
#include "support/fault.h"
#include "trace/admit.h"

static struct tp_name name(const char *s, uint32_t iid)
{
    return (struct tp_name){s, s == NULL ? 0 : (uint32_t)strlen(s), iid};
}

/* Include type "kernel", names "a*", slices of 5 ns and more. */
static struct tp_filter *new_filter(void)
{
    static struct tp_str types[] = {{"kernel", 6}};
    static struct tp_str names[] = {{"a*", 2}};
    struct tp_filter_spec spec = {.min_duration_ns = 5};
    struct tp_filter *filter;
    struct tp_err err;

    spec.lists[TP_FILTER_INCLUDE].items = types;
    spec.lists[TP_FILTER_INCLUDE].n = 1;
    spec.lists[TP_FILTER_NAMES_INCLUDE].items = names;
    spec.lists[TP_FILTER_NAMES_INCLUDE].n = 1;
    assert_int_equal(tp_filter_new(&spec, NULL, NULL, &filter, NULL, &err), TP_OK);
    return filter;
}

static const struct {
    enum tp_event_kind kind;
    const char *cat, *name;
    int64_t dur;
    enum tp_admission want;
    bool is_untyped;
} cases[] = {
    {TP_EVENT_SLICE, "kernel", "ab", 5, TP_ADMIT_STORE, false},
    {TP_EVENT_SLICE, "kernel", "ab", 4, TP_ADMIT_REFUSE, false},
    {TP_EVENT_SLICE, "kernel", "b", 5, TP_ADMIT_REFUSE, false},
    {TP_EVENT_SLICE, "cpu_op", "ab", 5, TP_ADMIT_REFUSE, false},
    {TP_EVENT_SLICE, "nobody.KNOWS", "ab", 5, TP_ADMIT_REFUSE, true},
    {TP_EVENT_SLICE, NULL, "ab", 5, TP_ADMIT_REFUSE, true},
    {TP_EVENT_BEGIN, "kernel", "ab", 0, TP_ADMIT_STORE, false},
    {TP_EVENT_BEGIN, "cpu_op", "ab", 0, TP_ADMIT_GHOST, false},
    {TP_EVENT_BEGIN, "kernel", "b", 0, TP_ADMIT_GHOST, false},
    {TP_EVENT_END, "cpu_op", "b", 0, TP_ADMIT_STORE, false},
    {TP_EVENT_META, "cpu_op", "b", 0, TP_ADMIT_STORE, false},
    {TP_EVENT_FLOW_START, "ac2g", "b", 0, TP_ADMIT_STORE, false},
    {TP_EVENT_FLOW_END, "ac2g", "b", 0, TP_ADMIT_STORE, false},
    {TP_EVENT_INSTANT, "kernel", "ab", 0, TP_ADMIT_STORE, false},
    {TP_EVENT_COUNTER, "kernel", "b", 0, TP_ADMIT_REFUSE, false},
    {TP_EVENT_ASYNC_BEGIN, "kernel", "ab", 0, TP_ADMIT_STORE, false},
    {TP_EVENT_ASYNC_END, "kernel", NULL, 0, TP_ADMIT_STORE, false},
    {TP_EVENT_ASYNC_END, "cpu_op", NULL, 0, TP_ADMIT_REFUSE, false},
};

static void test_each_kind_is_judged_by_what_it_has(void **state)
{
    struct tp_filter *filter = new_filter();
    struct tp_typemap *types;
    struct tp_admit *a;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_typemap_new(NULL, &types, &err), TP_OK);
    assert_int_equal(tp_admit_new(filter, types, &a, &err), TP_OK);
    /* Thrice: not numbered, numbered, and remembered. */
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
            uint32_t iid = round == 0 ? 0 : 1000 * i + 1;
            struct tp_event ev = {.kind = cases[i].kind,
                                  .cat = name(cases[i].cat, iid),
                                  .name = name(cases[i].name, iid),
                                  .dur_ns = cases[i].dur};
            enum tp_admission got;
            bool is_untyped;

            assert_int_equal(tp_admit_judge(a, &ev, &got, &is_untyped, &err), TP_OK);
            if (got != cases[i].want || is_untyped != cases[i].is_untyped)
                fail_msg("case %u, round %u: %d", i, round, (int)got);
        }
    tp_admit_free(a);
    tp_typemap_unref(types);
    tp_filter_unref(filter);
}

static void test_without_filter_or_types_all_is_let_in_untyped(void **state)
{
    struct tp_event ev = {.kind = TP_EVENT_SLICE, .cat = name("kernel", 1)};
    enum tp_admission got;
    struct tp_admit *a;
    struct tp_err err;
    bool is_untyped;

    (void)state;
    assert_int_equal(tp_admit_new(NULL, NULL, &a, &err), TP_OK);
    assert_int_equal(tp_admit_judge(a, &ev, &got, &is_untyped, &err), TP_OK);
    assert_int_equal(got, TP_ADMIT_STORE);
    assert_true(is_untyped);
    tp_admit_free(a);
}

static void test_judging_survives_every_allocation_failure(void **state)
{
    struct tp_filter *filter = new_filter();

    (void)state;
    for (int n = 0;; n++) {
        struct tp_admit *a = NULL;
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_admit_new(filter, NULL, &a, &err);
        for (uint32_t i = 1; rc == TP_OK && i < 5000; i += 999) {
            struct tp_event ev = {.kind = TP_EVENT_INSTANT,
                                  .cat = name("kernel", i),
                                  .name = name("b", i)};
            enum tp_admission got;
            bool is_untyped;

            rc = tp_admit_judge(a, &ev, &got, &is_untyped, &err);
        }
        tp_admit_free(a);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
    tp_filter_unref(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_is_judged_by_what_it_has),
        cmocka_unit_test(test_without_filter_or_types_all_is_let_in_untyped),
        cmocka_unit_test(test_judging_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
