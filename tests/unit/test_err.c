/*
 * test_err.c - messages say what they were told and never end inside a character.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/utf8.h"

static void test_fail_records_code_and_message(void **state)
{
    struct tp_err err = {0};

    (void)state;
    assert_int_equal(tp_fail(&err, TP_EQUOTA, "%d of %s", 3, "these"), TP_EQUOTA);
    assert_int_equal(err.code, TP_EQUOTA);
    assert_string_equal(err.message, "3 of these");
}

static void test_fail_without_a_place_still_returns_the_code(void **state)
{
    (void)state;
    assert_int_equal(tp_fail(NULL, TP_EIO, "nobody reads this"), TP_EIO);
    assert_int_equal(tp_fail_prefix(NULL, "nor this"), TP_EIO);
}

static void test_prefix_goes_before_the_message_and_keeps_the_code(void **state)
{
    struct tp_err err = {0};

    (void)state;
    tp_fail(&err, TP_ENOTFOUND, "no type '%s'", "x");
    assert_int_equal(tp_fail_prefix(&err, "filter.include[%d]", 2), TP_ENOTFOUND);
    assert_string_equal(err.message, "filter.include[2]: no type 'x'");
}

/* Whatever the number of bytes before them, characters of each length stay whole. */
static void test_long_messages_are_cut_between_characters(void **state)
{
    static const char *const characters[] = {"x", "\xc3\xa4", "\xe2\x82\xac",
                                             "\xf0\x9f\x98\x80"};
    char text[1024];
    struct tp_err err = {0};

    (void)state;
    for (size_t c = 0; c < sizeof(characters) / sizeof(characters[0]); c++) {
        for (size_t shift = 0; shift < 4; shift++) {
            size_t n = strlen(characters[c]);
            size_t at = shift;

            memset(text, 'a', sizeof(text));
            for (; at + n < sizeof(text); at += n)
                memcpy(text + at, characters[c], n);
            text[at] = '\0';
            tp_fail(&err, TP_EINVAL, "%s", text);
            if (!tp_utf8_is_valid(err.message, strlen(err.message)) ||
                strlen(err.message) < TP_ERR_MESSAGE_BYTES - 4)
                fail_msg("character %zu shifted by %zu", c, shift);
            tp_fail_prefix(&err, "%s", "before");
            if (!tp_utf8_is_valid(err.message, strlen(err.message)))
                fail_msg("prefix, character %zu shifted by %zu", c, shift);
        }
    }
}

static void test_every_code_has_its_own_name(void **state)
{
    (void)state;
    for (int code = TP_OK; code >= TP_EUNSUPPORTED; code--) {
        if (strcmp(tp_code_name(code), "unknown") == 0)
            fail_msg("code %d has no name", code);
        for (int other = code - 1; other >= TP_EUNSUPPORTED; other--) {
            if (strcmp(tp_code_name(code), tp_code_name(other)) == 0)
                fail_msg("codes %d and %d share a name", code, other);
        }
    }
    assert_string_equal(tp_code_name(1), "unknown");
    assert_string_equal(tp_code_name(TP_EUNSUPPORTED - 1), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_records_code_and_message),
        cmocka_unit_test(test_fail_without_a_place_still_returns_the_code),
        cmocka_unit_test(test_prefix_goes_before_the_message_and_keeps_the_code),
        cmocka_unit_test(test_long_messages_are_cut_between_characters),
        cmocka_unit_test(test_every_code_has_its_own_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
