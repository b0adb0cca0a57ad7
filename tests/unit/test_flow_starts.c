/*
 * test_flow_starts.c - a flow begins once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/flow_starts.h"

static struct tp_event flow(int64_t id, const char *name)
{
    return (struct tp_event){.kind = TP_EVENT_FLOW_START,
                             .id = {.kind = TP_ID_NUMBER, .number = id},
                             .name = {name, (uint32_t)strlen(name), 0}};
}

static bool is_first(struct tp_flow_starts *s, struct tp_event ev)
{
    struct tp_err err;
    bool first = false;

    assert_int_equal(tp_flow_starts_add(s, &ev, &first, &err), TP_OK);
    return first;
}

static void test_id_name_and_type_make_a_flow(void **state)
{
    struct tp_flow_starts s = {0};
    struct tp_event text = flow(0, "a");

    (void)state;
    assert_true(is_first(&s, flow(1, "a")));
    assert_false(is_first(&s, flow(1, "a")));
    assert_true(is_first(&s, flow(2, "a")));
    assert_true(is_first(&s, flow(1, "b")));
    text.id = (struct tp_id){.kind = TP_ID_TEXT, .text = {"1", 1}};
    assert_true(is_first(&s, text));
    assert_false(is_first(&s, text));
    text.cat = (struct tp_name){"c", 1, 0};
    assert_true(is_first(&s, text));
    tp_flow_starts_fini(&s);
}

static void test_many_flows_are_told_apart_and_bounded(void **state)
{
    struct tp_flow_starts s = {0};

    (void)state;
    for (int64_t i = 0; i < TP_FLOW_STARTS_MAX + 10; i++)
        if (!is_first(&s, flow(i, "f")))
            fail_msg("flow %lld", (long long)i);
    assert_false(is_first(&s, flow(0, "f")));
    assert_true(is_first(&s, flow(TP_FLOW_STARTS_MAX + 5, "f"))); /* not remembered */
    tp_flow_starts_fini(&s);
}

static void test_adding_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_flow_starts s = {0};
        struct tp_err err;
        bool first;
        int rc = TP_OK;

        fault_arm(n);
        for (int64_t i = 0; rc == TP_OK && i < 2000; i++) {
            struct tp_event ev = flow(i, "f");

            rc = tp_flow_starts_add(&s, &ev, &first, &err);
        }
        tp_flow_starts_fini(&s);
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
        cmocka_unit_test(test_id_name_and_type_make_a_flow),
        cmocka_unit_test(test_many_flows_are_told_apart_and_bounded),
        cmocka_unit_test(test_adding_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
