/*
 * test_type.c - the rules for names are kept, and a refusal tells the member.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "core/type.h"

static char long_text[2000];

static int fill_long_text(void **state)
{
    (void)state;
    memset(long_text, 'a', sizeof(long_text));
    return 0;
}

static struct tp_type_spec good_spec(void)
{
    return (struct tp_type_spec){.plugin = tp_str_of("ascend"),
                                 .type_name = tp_str_of("KERNEL")};
}

static void test_ordinary_names_are_accepted(void **state)
{
    static const char *const plugins[] = {"a", "torch_npu", "x-1", "42"};
    static const char *const names[] = {"K",          "KERNEL", "HW counter", "a.b.c",
                                        "\"quoted\"", "9lives", "[x]*?"};

    (void)state;
    for (size_t i = 0; i < sizeof(plugins) / sizeof(plugins[0]); i++) {
        struct tp_type_spec spec = good_spec();

        spec.plugin = tp_str_of(plugins[i]);
        if (tp_type_check(&spec, NULL, NULL) != TP_OK)
            fail_msg("plugin '%s'", plugins[i]);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct tp_type_spec spec = good_spec();

        spec.type_name = tp_str_of(names[i]);
        if (tp_type_check(&spec, NULL, NULL) != TP_OK)
            fail_msg("type_name '%s'", names[i]);
    }
}

static void expect_refusal(const struct tp_type_spec *spec, const char *field)
{
    struct tp_err err = {0};
    const char *at_fault = "none";

    if (tp_type_check(spec, &at_fault, &err) != TP_EINVAL ||
        strcmp(at_fault, field) != 0 || strstr(err.message, field) == NULL)
        fail_msg("field %s, expected %s: %s", at_fault, field, err.message);
}

static void test_bad_plugins_are_refused(void **state)
{
    static const struct tp_str cases[] = {
        {NULL, 0},   {"", 0},         {"a.b", 3}, {"a b", 3},
        {"a\0b", 3}, {"\xc3\xa4", 2}, {"a/b", 3}, {long_text, 64},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_type_spec spec = good_spec();

        spec.plugin = cases[i];
        expect_refusal(&spec, "plugin");
    }
}

static void test_bad_type_names_are_refused(void **state)
{
    static const struct tp_str cases[] = {
        {NULL, 0},       {"a\0b", 3}, {"a\nb", 3}, {"\x7f", 1},
        {"\xc3\xa4", 2}, {"\xff", 1}, {"a,b", 3},  {" a", 2},
        {"a ", 2},       {"123", 3},  {"0", 1},    {long_text, 128},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_type_spec spec = good_spec();

        spec.type_name = cases[i];
        expect_refusal(&spec, "type_name");
    }
}

static void test_limits_are_reachable_and_one_byte_more_is_refused(void **state)
{
    struct tp_type_spec spec = {
        .plugin = {long_text, TP_TYPE_PLUGIN_MAX_BYTES},
        .type_name = {long_text, TP_TYPE_NAME_MAX_BYTES},
        .unit = {long_text, TP_TYPE_UNIT_MAX_BYTES},
        .description = {long_text, TP_TYPE_DESCRIPTION_MAX_BYTES},
    };

    (void)state;
    assert_int_equal(tp_type_check(&spec, NULL, NULL), TP_OK);
    spec.unit.len++;
    expect_refusal(&spec, "unit");
    spec.unit.len--;
    spec.description.len++;
    expect_refusal(&spec, "description");
    assert_true(TP_TYPE_PLUGIN_MAX_BYTES + 1 + TP_TYPE_NAME_MAX_BYTES <
                TP_ACTIVITY_STRING_BYTES);
}

static void test_text_must_be_utf8_without_nul(void **state)
{
    struct tp_type_spec spec = good_spec();

    (void)state;
    spec.unit = tp_str_of("\xc2\xb5s");
    spec.description = tp_str_of("f\xc3\xbcr alle");
    assert_int_equal(tp_type_check(&spec, NULL, NULL), TP_OK);
    spec.description = tp_str_of("\xff");
    expect_refusal(&spec, "description");
    spec.description = (struct tp_str){"a\0b", 3};
    expect_refusal(&spec, "description");
    spec.kind = (enum tp_type_kind)77;
    expect_refusal(&spec, "kind");
}

static void test_kinds_and_their_names_find_each_other(void **state)
{
    (void)state;
    for (int kind = TP_TYPE_SLICE; kind < TP_TYPE_KINDS; kind++) {
        const char *name = tp_type_kind_name((enum tp_type_kind)kind);

        assert_int_equal(tp_type_kind_find(tp_str_of(name)), kind);
    }
    assert_int_equal(tp_type_kind_find(tp_str_of("unset")), -1);
    assert_string_equal(tp_type_kind_name((enum tp_type_kind)9), "unset");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary_names_are_accepted),
        cmocka_unit_test(test_bad_plugins_are_refused),
        cmocka_unit_test(test_bad_type_names_are_refused),
        cmocka_unit_test(test_limits_are_reachable_and_one_byte_more_is_refused),
        cmocka_unit_test(test_text_must_be_utf8_without_nul),
        cmocka_unit_test(test_kinds_and_their_names_find_each_other),
    };

    return cmocka_run_group_tests(tests, fill_long_text, NULL);
}
