/*
 * test_detail.c - what a refusal carries fits, and the rest is at least counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "core/detail.h"
#include "core/registry.h"

static void test_candidates_beyond_the_room_are_counted(void **state)
{
    struct tp_registry_detail detail;
    char name[300];

    (void)state;
    memset(name, 'n', sizeof(name));
    tp_detail_init(&detail, TP_REGISTRY_AMBIGUOUS);
    for (int i = 0; i < 20; i++)
        tp_detail_add(&detail, (struct tp_str){name, sizeof(name)});
    assert_int_equal(detail.reason, TP_REGISTRY_AMBIGUOUS);
    assert_int_equal(detail.n_names, TP_REGISTRY_DETAIL_NAMES);
    assert_int_equal(detail.n_found, 20);
    assert_int_equal(strlen(detail.names[7]), TP_ACTIVITY_STRING_BYTES - 1);
    assert_string_equal(detail.field, "");
}

static void test_nobody_need_ask_for_a_detail(void **state)
{
    (void)state;
    tp_detail_init(NULL, TP_REGISTRY_FULL);
    tp_detail_add(NULL, tp_str_of("x"));
    tp_detail_suggest(NULL, NULL, tp_str_of("x"));
}

static void test_suggestions_come_from_static_and_custom_types(void **state)
{
    const struct tp_type_spec spec = {.plugin = tp_str_of("acme"),
                                      .type_name = tp_str_of("KERNEL")};
    struct tp_registry_detail detail;
    struct tp_registration reg;
    struct tp_registry *r = NULL;

    (void)state;
    assert_int_equal(tp_registry_new(NULL, &r, NULL), TP_OK);
    assert_int_equal(tp_registry_register(r, &spec, &reg, NULL, NULL), TP_OK);
    tp_detail_suggest(&detail, r, tp_str_of("kernal"));
    assert_int_equal(detail.reason, TP_REGISTRY_UNKNOWN);
    assert_int_equal(detail.n_names, 1);
    assert_string_equal(detail.names[0], "kernel");
    tp_detail_suggest(&detail, r, tp_str_of("acme.KERNL"));
    assert_string_equal(detail.names[0], "acme.KERNEL");
    tp_registry_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_candidates_beyond_the_room_are_counted),
        cmocka_unit_test(test_nobody_need_ask_for_a_detail),
        cmocka_unit_test(test_suggestions_come_from_static_and_custom_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
