/*
 * test_json_string.c - strings are found, told apart, decoded and written.
 *
 * Each text is scanned at 32 different alignments to the end of its heap block, so that
 * the 16-byte loop and the byte loop both see each of its bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_string.h"

#define REPLACED "\xef\xbf\xbd"

/* Scan `text` (a string with its quotes) with n_behind more bytes behind it. */
static struct tp_json_string scan(const char *text, size_t len, size_t n_behind,
                                  char **block)
{
    struct tp_json_string s;
    struct tp_json c;

    *block = malloc(len + n_behind);
    assert_non_null(*block);
    memcpy(*block, text, len);
    memset(*block + len, '"', n_behind);
    c = (struct tp_json){.p = *block, .end = *block + len + n_behind};
    assert_int_equal(tp_json_string_scan(&c, &s), TP_OK);
    assert_ptr_equal(c.p, *block + len);
    assert_ptr_equal(s.ptr, *block + 1);
    assert_int_equal(s.len, len - 2);
    return s;
}

struct text_case {
    const char *text; /* with quotes */
    const char *decoded;
    size_t decoded_len;
    unsigned traits;
    bool is_sound;
};

#define CASE(text, decoded, traits, is_sound)                \
    {                                                        \
        text, decoded, sizeof(decoded) - 1, traits, is_sound \
    }

static const struct text_case cases[] = {
    CASE("\"\"", "", 0, true),
    CASE("\"plain\"", "plain", 0, true),
    CASE("\"a longer plain text of more than 32 bytes\"",
         "a longer plain text of more than 32 bytes", 0, true),
    CASE("\"\x7f{}[],:\"", "\x7f{}[],:", 0, true),
    CASE("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", TP_JSON_ESCAPED, true),
    CASE("\"a text of 14 b\\\\\"", "a text of 14 b\\", TP_JSON_ESCAPED, true),
    CASE("\"\\u0000\\u001b\\u00e9\\u20ac\"", "\0\x1b\xc3\xa9\xe2\x82\xac",
         TP_JSON_ESCAPED, true),
    CASE("\"\\ud83d\\uDE80\"", "\xf0\x9f\x9a\x80", TP_JSON_ESCAPED, true),
    CASE("\"\\ud800\"", REPLACED, TP_JSON_ESCAPED, false),
    CASE("\"\\udc00x\"", REPLACED "x", TP_JSON_ESCAPED, false),
    CASE("\"\\ud800\\u0041\"", REPLACED "A", TP_JSON_ESCAPED, false),
    CASE("\"\\ud800\\ud83d\\ude80\"", REPLACED "\xf0\x9f\x9a\x80", TP_JSON_ESCAPED,
         false),
    CASE("\"\\q\"", "\\q", TP_JSON_ESCAPED, false),
    CASE("\"\\u12\"", "\\u12", TP_JSON_ESCAPED, false),
    CASE("\"\\u12g4\"", "\\u12g4", TP_JSON_ESCAPED, false),
    CASE("\"\xc3\xa9\"", "\xc3\xa9", TP_JSON_NON_ASCII, true),
    CASE("\"0123456789012345\xc3\xa9\"", "0123456789012345\xc3\xa9", TP_JSON_NON_ASCII,
         true),
    CASE("\"\xff\"", REPLACED, TP_JSON_NON_ASCII, false),
    CASE("\"\xe2\x82\\n\"", REPLACED "\n", TP_JSON_NON_ASCII | TP_JSON_ESCAPED, false),
    CASE("\"\\\xc3\xa9\"", "\\\xc3\xa9", TP_JSON_NON_ASCII | TP_JSON_ESCAPED, false),
    CASE("\"a\tb\n\"", "a\tb\n", TP_JSON_CONTROL, false),
    CASE("\"0123456789012345\x01\"", "0123456789012345\x01", TP_JSON_CONTROL, false),
};

static void test_strings_are_scanned_and_decoded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t n_behind = 0; n_behind < 32; n_behind++) {
            const struct text_case *t = &cases[i];
            char out[200];
            char *block;
            struct tp_json_string s = scan(t->text, strlen(t->text), n_behind, &block);
            bool repaired = false;
            const size_t n = tp_json_string_decode(&s, out, &repaired);

            if (s.traits != t->traits || n != t->decoded_len ||
                memcmp(out, t->decoded, n) != 0 || repaired == t->is_sound ||
                tp_json_string_is_sound(&s) != t->is_sound)
                fail_msg("%s with %zu bytes behind it", t->text, n_behind);
            assert_int_equal(tp_json_string_is_plain(&s),
                             t->is_sound && (t->traits & TP_JSON_ESCAPED) == 0);
            free(block);
        }
}

static void test_cut_strings_are_incomplete(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t n = 1; n < strlen(cases[i].text); n++) {
            char *block = malloc(n);
            struct tp_json_string s;
            struct tp_json c;

            assert_non_null(block);
            memcpy(block, cases[i].text, n);
            c = (struct tp_json){.p = block, .end = block + n};
            if (tp_json_string_scan(&c, &s) != TP_EAGAIN || c.p != block)
                fail_msg("%s, %zu bytes of it", cases[i].text, n);
            free(block);
        }
}

static void test_what_was_written_is_read_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct tp_str text = {cases[i].decoded, cases[i].decoded_len};
        char written[300];
        char decoded[300];
        const size_t n = tp_json_string_write(text, written);
        char *block;
        struct tp_json_string s;
        bool repaired = false;

        assert_true(n <= TP_JSON_WRITE_BYTES(text.len));
        s = scan(written, n, 0, &block);
        assert_true(tp_json_string_is_sound(&s));
        assert_int_equal(tp_json_string_decode(&s, decoded, &repaired), text.len);
        assert_memory_equal(decoded, text.ptr, text.len);
        assert_false(repaired);
        free(block);
    }
}

static void test_writing_escapes_only_what_must_be(void **state)
{
    static const char text[] = "\"\\/\b\f\n\r\t\x01\x1f\x7f\xc3\xa9";
    char out[100];
    size_t n;

    (void)state;
    n = tp_json_string_write((struct tp_str){text, sizeof(text) - 1}, out);
    out[n] = '\0';
    assert_string_equal(out, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\xc3\xa9\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings_are_scanned_and_decoded),
        cmocka_unit_test(test_cut_strings_are_incomplete),
        cmocka_unit_test(test_what_was_written_is_read_back),
        cmocka_unit_test(test_writing_escapes_only_what_must_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
