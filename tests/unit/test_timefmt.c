/*
 * test_timefmt.c - RFC 3339 both ways, to the nanosecond, and nothing else accepted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/timefmt.h"

static void test_known_times_are_written_and_read_back(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000000000Z"},
        {-1, "1969-12-31T23:59:59.999999999Z"},
        {INT64_C(1795982590884123457), "2026-11-29T20:03:10.884123457Z"},
        {INT64_C(951782400000000000), "2000-02-29T00:00:00.000000000Z"},
        {INT64_C(1709251199999999999), "2024-02-29T23:59:59.999999999Z"},
        {INT64_C(4107542400000000000), "2100-03-01T00:00:00.000000000Z"},
        {INT64_C(-2208988800000000000), "1900-01-01T00:00:00.000000000Z"},
        {INT64_MAX, "2262-04-11T23:47:16.854775807Z"},
        {INT64_MIN, "1677-09-21T00:12:43.145224192Z"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[TP_TIMEFMT_BYTES];
        int64_t ns = 1;

        assert_string_equal(tp_timefmt_write(cases[i].ns, text), cases[i].text);
        assert_int_equal(tp_timefmt_parse(text, strlen(text), &ns, NULL), TP_OK);
        if (ns != cases[i].ns)
            fail_msg("%s came back as another time", text);
    }
}

/* Every day of 1900 to 2200 follows the day before. */
static void test_every_day_round_trips(void **state)
{
    const int64_t day_ns = INT64_C(86400000000000);

    (void)state;
    for (int64_t day = -25567; day < 84006; day++) {
        char text[TP_TIMEFMT_BYTES];
        int64_t ns = 0;

        tp_timefmt_write(day * day_ns + day, text);
        if (tp_timefmt_parse(text, strlen(text), &ns, NULL) != TP_OK ||
            ns != day * day_ns + day)
            fail_msg("%s", text);
    }
}

static void test_other_valid_forms_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"1970-01-01t00:00:01z", 1000000000},
        {"1970-01-01T00:00:00.5Z", 500000000},
        {"1970-01-01T01:00:00+01:00", 0},
        {"1969-12-31T16:00:00.000000001-08:00", 1},
        {"1970-01-01T00:00:00-00:00", 0},
        {"2016-12-31T23:59:60Z", INT64_C(1483228800000000000)},
        {"2017-01-01T00:59:60+01:00", INT64_C(1483228800000000000)},
        {"2017-01-01T05:29:60.25+05:30", INT64_C(1483228800250000000)},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t ns = -1;
        int rc = tp_timefmt_parse(cases[i].text, strlen(cases[i].text), &ns, NULL);

        if (rc != TP_OK || ns != cases[i].ns)
            fail_msg("%s gave %lld", cases[i].text, (long long)ns);
    }
}

static void test_everything_else_is_refused_with_its_offset(void **state)
{
    static const struct {
        const char *text;
        const char *where; /* what the message must hold */
    } cases[] = {
        {"", "byte 0"},
        {" 1970-01-01T00:00:00Z", "byte 0"},
        {"1970-1-01T00:00:00Z", "byte 6"},
        {"1970-13-01T00:00:00Z", "byte 5"},
        {"1970-00-01T00:00:00Z", "byte 5"},
        {"1970-04-31T00:00:00Z", "byte 8"},
        {"2100-02-29T00:00:00Z", "byte 8"},
        {"1970-01-01 00:00:00Z", "byte 10"},
        {"1970-01-01T24:00:00Z", "byte 11"},
        {"1970-01-01T00:60:00Z", "byte 14"},
        {"1970-01-01T00:00:61Z", "byte 17"},
        {"1970-01-01T12:59:60Z", "byte 17"},
        {"1970-01-01T00:00:00", "byte 19"},
        {"1970-01-01T00:00:00.Z", "byte 20"},
        {"1970-01-01T00:00:00.1234567890Z", "byte 29"},
        {"1970-01-01T00:00:00+24:00", "byte 20"},
        {"1970-01-01T00:00:00+0100", "byte 22"},
        {"1970-01-01T00:00:00Zulu", "byte 20"},
        {"2262-04-11T23:47:16.854775808Z", "2262"},
        {"1677-09-21T00:12:43.145224191Z", "1677"},
        {"0000-01-01T00:00:00Z", "1677"},
        {"9999-12-31T23:59:59Z", "2262"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_err err = {0};
        int64_t ns = 42;

        if (tp_timefmt_parse(cases[i].text, strlen(cases[i].text), &ns, &err) !=
                TP_EINVAL ||
            ns != 42 || strstr(err.message, cases[i].where) == NULL)
            fail_msg("'%s': %s", cases[i].text, err.message);
    }
}

/* No prefix of a valid text is valid, and none is read beyond its length. */
static void test_prefixes_are_refused(void **state)
{
    const char *text = "2026-11-29T20:23:10.884123457+01:00";

    (void)state;
    for (size_t n = 0; n < strlen(text); n++) {
        int64_t ns;

        if (tp_timefmt_parse(text, n, &ns, NULL) != TP_EINVAL)
            fail_msg("the first %zu bytes were accepted", n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_times_are_written_and_read_back),
        cmocka_unit_test(test_every_day_round_trips),
        cmocka_unit_test(test_other_valid_forms_are_read),
        cmocka_unit_test(test_everything_else_is_refused_with_its_offset),
        cmocka_unit_test(test_prefixes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
