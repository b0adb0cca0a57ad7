/*
 * test_glob.c - patterns match what a shell user expects, in bounded time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fnmatch.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/glob.h"

static const struct {
    const char *pattern;
    const char *text;
    bool matches;
} cases[] = {
    {"", "", true},
    {"", "a", false},
    {"*", "", true},
    {"*", "any thing/at.all", true},
    {"ascend.*", "ascend.KERNEL", true},
    {"ascend.*", "ascend", false},
    {"*.KERNEL", "ascend.KERNEL", true},
    {"*.KERNEL", "ascend.KERNELS", false},
    {"a*b*c", "a1b2b3c", true},
    {"a*b*c", "a1c2b", false},
    {"?", "a", true},
    {"?", "", false},
    {"??", "a", false},
    {"[abc]x", "bx", true},
    {"[a-c]x", "dx", false},
    {"[!a-c]x", "dx", true},
    {"[!a-c]x", "ax", false},
    {"[]x]", "]", true},
    {"[x-]", "-", true},
    {"[\\]]", "]", true},
    {"\\*", "*", true},
    {"\\*", "a", false},
    {"a\\", "a\\", false},
    {"**a**", "xxaxx", true},
    {"KERNEL", "kernel", false},
    {"*aten::*", "aten::add", true},
};

static void test_cases_match_as_fnmatch_has_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_odd = strcmp(cases[i].pattern, "a\\") ==
                      0; /* fnmatch's own answer varies */
        bool matches =
            tp_glob_matches(tp_str_of(cases[i].pattern), tp_str_of(cases[i].text));

        if (!is_odd && (matches != cases[i].matches ||
                        matches != (fnmatch(cases[i].pattern, cases[i].text, 0) == 0)))
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].text);
    }
}

/* Every pattern of up to four of these characters with every text of up to three. */
static void test_small_patterns_agree_with_fnmatch(void **state)
{
    static const char alphabet[] = "ab*?";
    char pattern[5];
    char text[4];

    (void)state;
    for (unsigned p = 0; p < 5 * 5 * 5 * 5; p++) {
        size_t n = 0;

        for (unsigned rest = p; rest != 0; rest /= 5) {
            if (rest % 5 != 0)
                pattern[n++] = alphabet[rest % 5 - 1];
        }
        pattern[n] = '\0';
        for (unsigned t = 0; t < 3 * 3 * 3; t++) {
            size_t m = 0;

            for (unsigned rest = t; rest != 0; rest /= 3) {
                if (rest % 3 != 0)
                    text[m++] = alphabet[rest % 3 - 1];
            }
            text[m] = '\0';
            if (tp_glob_matches(tp_str_of(pattern), tp_str_of(text)) !=
                (fnmatch(pattern, text, 0) == 0))
                fail_msg("'%s' and '%s'", pattern, text);
        }
    }
}

static void test_a_question_mark_is_one_character_not_one_byte(void **state)
{
    (void)state;
    assert_true(tp_glob_matches(tp_str_of("a?c"), tp_str_of("a\xe2\x82\xac"
                                                            "c")));
    assert_true(
        tp_glob_matches(tp_str_of("[\xc3\xa4-\xc3\xbc]"), tp_str_of("\xc3\xb6")));
    assert_true(tp_glob_matches(tp_str_of("?"), tp_str_of("\xff")));
    assert_true(tp_glob_matches((struct tp_str){"a*", 2}, (struct tp_str){"a\0b", 3}));
}

static void test_broken_patterns_are_refused(void **state)
{
    static const struct {
        const char *pattern;
        const char *complaint;
    } broken[] = {
        {"a[", "unclosed"},  {"[", "unclosed"},     {"[]", "unclosed"},
        {"[!]", "unclosed"}, {"[z-a]", "reversed"}, {"x\\", "at the end"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct tp_err err = {0};

        if (tp_glob_check(tp_str_of(broken[i].pattern), &err) != TP_EINVAL ||
            strstr(err.message, broken[i].complaint) == NULL)
            fail_msg("'%s': %s", broken[i].pattern, err.message);
        tp_glob_matches(tp_str_of(broken[i].pattern), tp_str_of("text"));
    }
    assert_int_equal(tp_glob_check(tp_str_of("[a-z]*\\[?"), NULL), TP_OK);
    assert_false(tp_glob_is_pattern(tp_str_of("ascend.KERNEL")));
    assert_true(tp_glob_is_pattern(tp_str_of("a?")));
}

/* A recursive matcher would need longer than the age of the world for this one. */
static void test_many_stars_end_in_bounded_time(void **state)
{
    char text[4096];

    (void)state;
    memset(text, 'a', sizeof(text));
    assert_false(tp_glob_matches(tp_str_of("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"),
                                 (struct tp_str){text, sizeof(text)}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases_match_as_fnmatch_has_it),
        cmocka_unit_test(test_small_patterns_agree_with_fnmatch),
        cmocka_unit_test(test_a_question_mark_is_one_character_not_one_byte),
        cmocka_unit_test(test_broken_patterns_are_refused),
        cmocka_unit_test(test_many_stars_end_in_bounded_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
