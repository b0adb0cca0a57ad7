/*
 * The strict check of control bodies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/json_check.h"
#include "base/err.h"

static void test_valid_json_passes(void **state)
{
    static const char *const cases[] = {
        "{}",
        "[]",
        " { \"a\" : [1, -2.5e+3, true, false, null, \"x\\n\\u00e9\"] } ",
        "0",
        "\"\\ud83d\\ude00\"",
        "{\"a\":{\"a\":1},\"b\":{\"a\":2}}",
        "-0.0",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_err err = {0};

        print_message("case %s\n", cases[i]);
        assert_int_equal(tp_json_check(cases[i], strlen(cases[i]), 8, &err), TP_OK);
    }
}

static void test_what_is_not_json_is_refused_with_its_offset(void **state)
{
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"", "empty"},
        {"{", "byte 1"},
        {"{\"a\":1,}", "byte 7"},
        {"{\"a\" 1}", "byte 5"},
        {"[1 2]", "byte 3"},
        {"01", "byte 1"},
        {"1.", "byte 2"},
        {"NaN", "byte 0"},
        {"'a'", "byte 0"},
        {"\"a", "inside a string"},
        {"\"\\x\"", "escape"},
        {"\"\\ud800\"", "surrogate"},
        {"\"\\u12g4\"", "hexadecimal"},
        {"{} {}", "byte 3"},
        {"\"\xff\"", "UTF-8 at byte 1"},
        {"\"a\tb\"", "control character"},
        {"{\"a\":1,\"a\":2}", "\"a\" at byte 7 is given twice"},
        {"/* no */ {}", "byte 0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_err err = {0};

        print_message("case %s\n", cases[i].text);
        assert_int_equal(tp_json_check(cases[i].text, strlen(cases[i].text), 8, &err),
                         TP_EINVAL);
        assert_non_null(strstr(err.message, cases[i].said));
    }
}

static void test_a_nul_is_no_end(void **state)
{
    struct tp_err err = {0};

    (void)state;
    assert_int_equal(tp_json_check("{}\0x", 4, 8, &err), TP_EINVAL);
    assert_int_equal(tp_json_check("\"a\0b\"", 5, 8, &err), TP_EINVAL);
}

static void test_depth_and_members_have_limits(void **state)
{
    static char text[16 * (TP_JSON_MEMBERS_MAX + 1) + 2];
    struct tp_err err = {0};
    size_t n = 1;

    (void)state;
    assert_int_equal(tp_json_check("[[[]]]", 6, 3, &err), TP_OK);
    assert_int_equal(tp_json_check("[[[[]]]]", 8, 3, &err), TP_EQUOTA);
    text[0] = '{';
    for (int i = 0; i <= TP_JSON_MEMBERS_MAX; i++)
        n +=
            (size_t)snprintf(text + n, sizeof(text) - n, "%s\"%d\":0", i ? "," : "", i);
    text[n++] = '}';
    assert_int_equal(tp_json_check(text, n, 3, &err), TP_EQUOTA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_json_passes),
        cmocka_unit_test(test_what_is_not_json_is_refused_with_its_offset),
        cmocka_unit_test(test_a_nul_is_no_end),
        cmocka_unit_test(test_depth_and_members_have_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
