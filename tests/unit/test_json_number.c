/*
 * test_json_number.c - numbers keep their exact value, whatever they become.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_number.h"

static bool parse(const char *text, struct tp_json_number *n)
{
    return tp_json_number_parse((struct tp_str){text, strlen(text)}, n);
}

static struct tp_json_number number(const char *text)
{
    struct tp_json_number n;

    if (!parse(text, &n))
        fail_msg("%s is not a number", text);
    return n;
}

static void test_grammar_is_that_of_json(void **state)
{
    static const char *const good[] = {"0",
                                       "-0",
                                       "7",
                                       "-12",
                                       "1.5",
                                       "0.5",
                                       "1e5",
                                       "1E+05",
                                       "1.5e-7",
                                       "-0.0e0",
                                       "123456789012345678901234567890.5e-99999999999"};
    static const char *const bad[] = {"",   "-",  "+1",  "01",   "-01",  ".5",
                                      "1.", "1e", "1e+", "1.e5", "0x1",  "1 ",
                                      " 1", "1a", "nan", "1..2", "1e5.", "--1"};
    struct tp_json_number n;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!parse(good[i], &n) || n.len != strlen(good[i]))
            fail_msg("%s is refused", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (parse(bad[i], &n))
            fail_msg("%s is taken", bad[i]);
}

/* What scanning says at each cut: "may go on" or the end, as with all of it. */
static void test_scan_stops_behind_the_number(void **state)
{
    static const char *const texts[] = {"0", "-12", "12345678",
                                        "123456789012345.75e-3"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (size_t n_behind = 0; n_behind < 20; n_behind++) {
            const size_t len = strlen(texts[i]);
            char *block = malloc(len + n_behind);
            struct tp_json_number n;
            struct tp_json a;
            struct tp_json b;

            assert_non_null(block);
            memcpy(block, texts[i], len);
            memset(block + len, ',', n_behind);
            a = b = (struct tp_json){.p = block, .end = block + len + n_behind};
            assert_int_equal(tp_json_number_scan(&a, &n),
                             n_behind == 0 ? TP_EAGAIN : TP_OK);
            assert_int_equal(tp_json_number_skip(&b),
                             n_behind == 0 ? TP_EAGAIN : TP_OK);
            assert_ptr_equal(a.p, block + len);
            assert_ptr_equal(b.p, block + len);
            free(block);
        }
}

static void test_faults_are_named_at_their_byte(void **state)
{
    static const struct {
        const char *text;
        size_t at;
    } cases[] = {{"01,", 1}, {"-x", 1},   {"1.,", 2},
                 {"1e,", 2}, {"1e+,", 3}, {"007,", 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *text = cases[i].text;
        struct tp_json a = {.p = text, .end = text + strlen(text)};
        struct tp_json b = a;
        struct tp_json_number n;

        assert_int_equal(tp_json_number_scan(&a, &n), TP_EINVAL);
        assert_int_equal(tp_json_number_skip(&b), TP_EINVAL);
        assert_ptr_equal(a.p, text + cases[i].at);
        assert_ptr_equal(b.p, text + cases[i].at);
        assert_non_null(a.why);
    }
}

static void test_integers_are_exact_to_their_limits(void **state)
{
    struct tp_json_number n;
    int64_t i = 5;
    uint64_t u = 5;

    (void)state;
    n = number("9223372036854775807");
    assert_true(tp_json_number_int64(&n, &i) && i == INT64_MAX);
    n = number("-9223372036854775808");
    assert_true(tp_json_number_int64(&n, &i) && i == INT64_MIN);
    assert_false(tp_json_number_uint64(&n, &u));
    n = number("-0");
    assert_true(tp_json_number_int64(&n, &i) && i == 0);
    assert_true(tp_json_number_uint64(&n, &u) && u == 0);
    n = number("18446744073709551615");
    assert_true(tp_json_number_uint64(&n, &u) && u == UINT64_MAX);
    i = 5;
    u = 5;
    assert_false(tp_json_number_int64(&n, &i));
    for (const char *const *p =
             (const char *const[]){"9223372036854775808", "-9223372036854775809",
                                   "18446744073709551616", "99999999999999999999999",
                                   "1.0", "1e0", NULL};
         *p != NULL; p++) {
        n = number(*p);
        assert_false(tp_json_number_int64(&n, &i));
        if (strcmp(*p, "9223372036854775808") != 0)
            assert_false(tp_json_number_uint64(&n, &u));
    }
    assert_int_equal(i, 5);
    assert_int_equal(u, 5);
}

static void test_every_count_of_digits_is_read(void **state)
{
    uint64_t expected = 0;
    char text[32] = "";

    (void)state;
    for (int i = 1; i <= 19; i++) {
        struct tp_json_number n;
        uint64_t u = 0;

        snprintf(text + i - 1, sizeof(text) - (size_t)i, "%d", i % 10);
        expected = expected * 10 + (uint64_t)(i % 10);
        n = number(text);
        assert_true(tp_json_number_uint64(&n, &u));
        assert_int_equal(u, expected);
    }
}

static void test_doubles_are_the_nearest(void **state)
{
    static const char *const texts[] = {"0.1",
                                        "1.5e-07",
                                        "2.5",
                                        "123456.789",
                                        "1e22",
                                        "1e23",
                                        "-0.0",
                                        "5e-324",
                                        "1e-400",
                                        "1.7976931348623157e308",
                                        "9007199254740993.0",
                                        "0.30000000000000004",
                                        "3.14159265358979323846264338327950288",
                                        "1e-22"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct tp_json_number n = number(texts[i]);
        const double expected = strtod(texts[i], NULL);
        double d = 7;

        assert_true(tp_json_number_double(&n, &d));
        if (memcmp(&d, &expected, sizeof(d)) != 0)
            fail_msg("%s becomes %.17g", texts[i], d);
    }
}

static void test_doubles_that_are_infinite_or_too_long_are_none(void **state)
{
    char text[TP_JSON_DOUBLE_BYTES + 3];
    struct tp_json_number n = number("1e309");
    double d = 7;

    (void)state;
    assert_false(tp_json_number_double(&n, &d));
    memset(text, '1', sizeof(text));
    text[1] = '.';
    text[sizeof(text) - 1] = '\0';
    n = number(text);
    assert_false(tp_json_number_double(&n, &d));
    assert_true(d == 7);
    text[TP_JSON_DOUBLE_BYTES] = '\0';
    n = number(text);
    assert_true(tp_json_number_double(&n, &d));
}

static void test_scaled_numbers_round_half_away(void **state)
{
    static const struct {
        const char *text;
        int shift;
        int64_t value;
    } cases[] = {
        {"1", 3, 1000},
        {"1.5", 3, 1500},
        {"1.2345", 3, 1235},
        {"1.2344999", 3, 1234},
        {"-1.2345", 3, -1235},
        {"0.5", 0, 1},
        {"-0.5", 0, -1},
        {"0.49", 0, 0},
        {"5e-1", 0, 1},
        {"5e-2", 0, 0},
        {"1e3", 0, 1000},
        {"12.345e1", 3, 123450},
        {"1e18", 0, 1000000000000000000},
        {"0e99999", 3, 0},
        {"1", 18, 1000000000000000000},
        {"0.00000000000000000001", 0, 0},
        {"9223372036854775.8074", 3, INT64_MAX},
        {"-9223372036854775.8084", 3, INT64_MIN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct tp_json_number n = number(cases[i].text);
        int64_t value = 77;

        if (!tp_json_number_scaled(&n, cases[i].shift, &value) ||
            value != cases[i].value)
            fail_msg("%s becomes %lld", cases[i].text, (long long)value);
    }
}

static void test_scaled_numbers_out_of_range_are_none(void **state)
{
    static const char *const texts[] = {"9223372036854775.8075",
                                        "1e16",
                                        "1e999999999",
                                        "-9223372036854775.8085",
                                        "99999999999999999999",
                                        "18446744073709551.6155",
                                        "1.0e17"};
    int64_t value = 77;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct tp_json_number n = number(texts[i]);

        if (tp_json_number_scaled(&n, 3, &value))
            fail_msg("%s becomes %lld", texts[i], (long long)value);
    }
    assert_int_equal(value, 77);
}

/* What the quick way reads it reads as the general one does. */
static void test_the_quick_way_says_what_the_other_says(void **state)
{
    static const char alphabet[] = "0123456789012345678.-eE, ]}";
    uint64_t x = 1;
    int n_quick = 0;

    (void)state;
    for (int round = 0; round < 300000; round++) {
        char text[80];
        struct tp_json c = {.p = text, .end = text + sizeof(text)};
        struct tp_json_number quick;
        struct tp_json_number n = {.ptr = NULL};
        const char *end;

        memset(text, ' ', sizeof(text));
        for (int i = 0; i < 30; i++) {
            x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            text[i] = alphabet[(x >> 33) % (i % 8 == 5 ? 27 : 20)];
        }
        end = tp_json_number_quick(text, text + sizeof(text), &quick);
        if (end == NULL)
            continue;
        n_quick++;
        assert_int_equal(tp_json_number_scan(&c, &n), TP_OK);
        if (c.p != end || quick.digits != n.digits || quick.len != n.len ||
            quick.n_decimals != n.n_decimals || quick.exponent != n.exponent ||
            quick.is_integer != n.is_integer || quick.is_long != n.is_long ||
            quick.is_negative != n.is_negative || quick.ptr != n.ptr)
            fail_msg("'%.30s' is read in two ways", text);
    }
    assert_true(n_quick > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grammar_is_that_of_json),
        cmocka_unit_test(test_scan_stops_behind_the_number),
        cmocka_unit_test(test_faults_are_named_at_their_byte),
        cmocka_unit_test(test_integers_are_exact_to_their_limits),
        cmocka_unit_test(test_every_count_of_digits_is_read),
        cmocka_unit_test(test_the_quick_way_says_what_the_other_says),
        cmocka_unit_test(test_doubles_are_the_nearest),
        cmocka_unit_test(test_doubles_that_are_infinite_or_too_long_are_none),
        cmocka_unit_test(test_scaled_numbers_round_half_away),
        cmocka_unit_test(test_scaled_numbers_out_of_range_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
