/*
 * test_utf8.c - exactly the well-formed sequences are valid, and repair keeps them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "support/fault.h"

#define R "\xef\xbf\xbd" /* U+FFFD */

static size_t encode(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

static void test_every_code_point_is_valid_except_surrogates(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x120000; c++) {
        bool expected = c < 0x110000 && (c < 0xd800 || c > 0xdfff);
        uint32_t decoded = 0;
        char text[4];
        size_t n = encode(c, text);

        if (tp_utf8_is_valid(text, n) != expected)
            fail_msg("U+%04X", c);
        if (expected && (tp_utf8_decode(text, n, &decoded) != n || decoded != c))
            fail_msg("U+%04X decoded to U+%04X", c, decoded);
        if (n > 1 && tp_utf8_is_valid(text, n - 1))
            fail_msg("U+%04X without its last byte", c);
    }
}

static void test_overlong_forms_and_stray_bytes_are_invalid(void **state)
{
    static const char *const cases[] = {
        "\xc0\x80",
        "\xc1\xbf",
        "\xe0\x80\x80",
        "\xe0\x9f\xbf",
        "\x80",
        "\xbf",
        "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf",
        "\xff",
        "\xf8\x88\x80\x80",
        "\xf4\x90\x80\x80",
        "\xc3(",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (tp_utf8_is_valid(cases[i], strlen(cases[i])))
            fail_msg("case %zu", i);
    }
}

/* A bad byte is found at every place of a text longer than a few words. */
static void test_the_valid_prefix_ends_at_the_bad_byte(void **state)
{
    char text[40];

    (void)state;
    for (size_t at = 0; at < sizeof(text); at++) {
        memset(text, 'a', sizeof(text));
        text[at] = '\xff';
        assert_int_equal(tp_utf8_valid_prefix(text, sizeof(text)), at);
    }
    assert_int_equal(tp_utf8_valid_prefix(text, 39), 39);
    assert_true(tp_utf8_is_valid(NULL, 0));
    assert_true(tp_utf8_is_valid("a\0b", 3));
}

static void test_each_maximal_subpart_becomes_one_replacement(void **state)
{
    static const struct {
        const char *in;
        const char *out;
        size_t n_repairs;
    } cases[] = {
        {"plain", "plain", 0},
        {"\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac", 0},
        {"a\xff", "a" R, 1},
        {"\xe2\x82", R, 1},
        {"\xe2\x82z", R "z", 1},
        {"\xf0\x9f\x98", R, 1},
        {"\xc0\xaf", R R, 2},
        {"\xed\xa0\x80", R R R, 3},
        /* The example of the standard's table 3-8. */
        {"a\xf1\x80\x80\xe1\x80\xc2"
         "b\x80"
         "c\x80\xbf"
         "d",
         "a" R R R "b" R "c" R R "d", 6},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_buf out = {0};
        size_t n_repairs = 99;

        assert_int_equal(tp_buf_append_str(&out, "<", NULL), TP_OK);
        assert_int_equal(tp_utf8_repair(&out, cases[i].in, strlen(cases[i].in),
                                        &n_repairs, NULL),
                         TP_OK);
        if (n_repairs != cases[i].n_repairs || out.len != 1 + strlen(cases[i].out) ||
            memcmp(out.data + 1, cases[i].out, out.len - 1) != 0)
            fail_msg("case %zu: %.*s", i, (int)out.len, out.data);
        tp_buf_fini(&out);
    }
}

static void test_repair_that_fails_leaves_the_buffer(void **state)
{
    struct tp_buf out = {.limit_bytes = 6};
    size_t n_repairs = 7;

    (void)state;
    tp_buf_append_str(&out, "ab", NULL);
    assert_int_equal(tp_utf8_repair(&out, "c\xff\xff", 3, &n_repairs, NULL), TP_EQUOTA);
    assert_int_equal(out.len, 2);
    assert_int_equal(n_repairs, 7);
    tp_buf_fini(&out);
    for (int n = 0;; n++) {
        struct tp_buf b = {0};
        int rc;

        fault_arm(n);
        rc = tp_utf8_repair(&b, "x\xff", 2, NULL, NULL);
        tp_buf_fini(&b);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

static void test_a_cut_never_splits_a_character(void **state)
{
    const char *text = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};

    (void)state;
    for (size_t max = 0; max < sizeof(expected) / sizeof(expected[0]); max++) {
        struct tp_str s = tp_utf8_cut(tp_str_of(text), max);

        if (s.len != expected[max])
            fail_msg("cut at %zu gave %zu bytes", max, s.len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point_is_valid_except_surrogates),
        cmocka_unit_test(test_overlong_forms_and_stray_bytes_are_invalid),
        cmocka_unit_test(test_the_valid_prefix_ends_at_the_bad_byte),
        cmocka_unit_test(test_each_maximal_subpart_becomes_one_replacement),
        cmocka_unit_test(test_repair_that_fails_leaves_the_buffer),
        cmocka_unit_test(test_a_cut_never_splits_a_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
