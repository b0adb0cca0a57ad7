/*
 * test_chrome_doc.c - trace documents in every form, and the way back after damage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/chrome_reading.h"

/* --- documents -------------------------------------------------------------------- */

static void test_object_and_array_give_their_events(void **state)
{
    (void)state;
    chrome_expect("{\"traceEvents\":[" CHROME_A "," CHROME_B "]}",
                  CHROME_A_OUT CHROME_B_OUT);
    chrome_expect("[" CHROME_A "," CHROME_B "]", CHROME_A_OUT CHROME_B_OUT);
    chrome_expect(" \r\n\t[ " CHROME_A " ,\n" CHROME_B "\t] \n",
                  CHROME_A_OUT CHROME_B_OUT);
    chrome_expect("[]", "");
    chrome_expect("{}", "");
    chrome_expect("{\"traceEvents\":[]}", "");
    chrome_expect("{\"traceEvents\":null}", "");
}

static void test_sloppy_arrays_are_taken(void **state)
{
    (void)state;
    chrome_expect("[" CHROME_A "," CHROME_B ",", CHROME_A_OUT CHROME_B_OUT);
    chrome_expect("[" CHROME_A "," CHROME_B, CHROME_A_OUT CHROME_B_OUT);
    chrome_expect("[", "");
    chrome_expect("[" CHROME_A ",]", CHROME_A_OUT);
    chrome_expect("[," CHROME_A ",," CHROME_B "]", CHROME_A_OUT CHROME_B_OUT);
    chrome_expect("{,\"traceEvents\":[" CHROME_A ",],}", CHROME_A_OUT);
    chrome_expect("\xef\xbb\xbf[" CHROME_A "]", CHROME_A_OUT);
    chrome_expect("\xef\xbb\xbf {\"traceEvents\":[" CHROME_A "]}", CHROME_A_OUT);
}

static void test_members_around_the_events_are_handed_over(void **state)
{
    (void)state;
    chrome_expect(
        "{\"schemaVersion\":1,\"d\":{\"rank\": 0},\"traceEvents\":[" CHROME_A "],"
        "\"s\":\"x\\n\",\"t\":true,\"z\":null,\"f\":1.50,\"traceName\":\"q\"}",
        "# \"schemaVersion\": 1\n# \"d\": {\"rank\": 0}\n" CHROME_A_OUT
        "# \"s\": \"x\\n\"\n# \"t\": true\n# \"z\": null\n# \"f\": 1.50\n"
        "# \"traceName\": \"q\"\n");
    chrome_expect("{\"a\\u0062\\n\":[\n1,\t{\"k\" : [ ] }\n,NaN,]}",
                  "# \"ab\\n\": [1,{\"k\":[]},\"NaN\"]\n");
    chrome_expect(
        "{\"x\":-Infinity,\"y\":\"\xff\",\"w\":nan }",
        "# \"x\": \"-Infinity\"\n# \"y\": \"\xef\xbf\xbd\"\n# \"w\": \"NaN\"\n");
}

static void test_events_are_only_those_of_the_top_level(void **state)
{
    (void)state;
    chrome_expect("{\"metadata\":{\"traceEvents\":[" CHROME_A
                  "]},\"traceEvents\":[" CHROME_B "]}",
                  "# \"metadata\": {\"traceEvents\":[" CHROME_A "]}\n" CHROME_B_OUT);
    chrome_expect("{\"traceEvent\\u0073\":[" CHROME_A "]}", CHROME_A_OUT);
}

static void test_a_lone_event_object_is_one_event(void **state)
{
    (void)state;
    chrome_expect(CHROME_A, CHROME_A_OUT);
    chrome_expect(
        " { \"name\":\"a\" , \"tid\":2,\"pid\":1,\"dur\":2,\"ts\":1,\"ph\":\"X\"}\n",
        CHROME_A_OUT);
    /* A trace whose metadata starts like an event is a trace. */
    chrome_expect("{\"name\":\"n\",\"traceEvents\":[" CHROME_A "]}",
                  "# \"name\": \"n\"\n" CHROME_A_OUT);
    chrome_expect("{\"name\":\"n\",\"id\":7}", "# \"name\": \"n\"\n# \"id\": 7\n");
    chrome_expect("{\"args\":{\"k\":[1,2]},\"x\":1}",
                  "# \"args\": {\"k\":[1,2]}\n# \"x\": 1\n");
    chrome_refuse("{\"name\":\"n\",\"ph\":\"X\"",
                  "byte 20: the input ends inside a value that "
                  "starts at byte 20",
                  "# \"name\": \"n\"\n# \"ph\": \"X\"\n");
}

static void test_large_lone_object_is_a_trace(void **state)
{
    const struct tp_chrome_reader_opts opts = {.event_bytes = 200};

    (void)state;
    chrome_expect_with(
        &opts,
        "{\"name\":\"n\",\"traceEvents\":[" CHROME_A "," CHROME_A "," CHROME_A
        "," CHROME_A "]}",
        strlen("{\"name\":\"n\",\"traceEvents\":[" CHROME_A "," CHROME_A "," CHROME_A
               "," CHROME_A "]}"),
        "# \"name\": \"n\"\n" CHROME_A_OUT CHROME_A_OUT CHROME_A_OUT CHROME_A_OUT);
}

static void test_base_before_the_events_is_added(void **state)
{
    struct chrome_reading got;

    (void)state;
    got =
        chrome_expect("{\"baseTimeNanoseconds\":1790857026000000000,\"traceEvents\":[{"
                      "\"ph\":\"i\",\"ts\":5125564901937.794},{\"ph\":\"M\"}]}",
                      "# \"baseTimeNanoseconds\": 1790857026000000000\n"
                      "i 1795982590901937794 -/-\nM 0 -/-\n");
    assert_true(got.stats.has_base && got.stats.base_was_added);
    assert_int_equal(got.stats.base_ns, 1790857026000000000);
    got = chrome_expect(
        "{\"baseTimeNanoseconds\":\"17e1\",\"traceEvents\":[{\"ph\":\"i\","
        "\"ts\":-1}]}",
        "# \"baseTimeNanoseconds\": \"17e1\"\ni -830 -/-\n");
    assert_int_equal(got.stats.base_ns, 170);
}

static void test_base_behind_events_is_only_reported(void **state)
{
    struct chrome_reading got;

    (void)state;
    got = chrome_expect(
        "{\"traceEvents\":[{\"ph\":\"i\",\"ts\":1}],\"baseTimeNanoseconds\":7}",
        "i 1000 -/-\n# \"baseTimeNanoseconds\": 7\n");
    assert_true(got.stats.has_base);
    assert_false(got.stats.base_was_added);
    assert_int_equal(got.stats.base_ns, 7);
    /* Also when more events follow: one input is on one clock. */
    got = chrome_expect(
        "{\"traceEvents\":[{\"ph\":\"i\",\"ts\":1}],\"baseTimeNanoseconds\":7,"
        "\"traceEvents\":[{\"ph\":\"i\",\"ts\":2}]}",
        "i 1000 -/-\n# \"baseTimeNanoseconds\": 7\ni 2000 -/-\n");
    assert_false(got.stats.base_was_added);
}

static void test_base_that_cannot_be_used_is_damage(void **state)
{
    static const char *const bases[] = {"\"soon\"", "1e30", "99999999999999999999",
                                        "1.5",      "true", "15e-1"};
    static const char *const whole[] = {"7.0", "70e-1", "0.7e1", "\"7\""};
    struct chrome_reading got;
    char text[128];
    char expected[128];

    (void)state;
    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        snprintf(
            text, sizeof(text),
            "{\"baseTimeNanoseconds\":%s,\"traceEvents\":[{\"ph\":\"i\",\"ts\":1}]}",
            bases[i]);
        print_message("base %s\n", bases[i]);
        chrome_refuse(text,
                      "byte 23: baseTimeNanoseconds is no whole number of 64 bits", "");
        snprintf(expected, sizeof(expected),
                 "# \"baseTimeNanoseconds\": %s\ni 1000 -/-\n", bases[i]);
        got = chrome_expect_salvaged(text, expected);
        assert_false(got.stats.has_base);
        assert_int_equal(got.stats.damages, 1);
        assert_int_equal(got.stats.damage_offset[0], 23);
    }
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        snprintf(text, sizeof(text), "{\"baseTimeNanoseconds\":%s,\"traceEvents\":[]}",
                 whole[i]);
        snprintf(expected, sizeof(expected), "# \"baseTimeNanoseconds\": %s\n",
                 whole[i]);
        got = chrome_expect(text, expected);
        assert_int_equal(got.stats.base_ns, 7);
    }
    got = chrome_expect("{\"baseTimeNanoseconds\":null,\"traceEvents\":[]}",
                        "# \"baseTimeNanoseconds\": null\n");
    assert_false(got.stats.has_base);
}

static void test_base_that_does_not_fit_rejects_the_event(void **state)
{
    struct chrome_reading got;

    (void)state;
    got =
        chrome_expect("{\"baseTimeNanoseconds\":9223372036854775807,\"traceEvents\":[{"
                      "\"ph\":\"i\",\"ts\":1},{\"ph\":\"i\",\"ts\":0}]}",
                      "# \"baseTimeNanoseconds\": 9223372036854775807\n"
                      "i 9223372036854775807 -/-\n");
    assert_int_equal(got.stats.rejected, 1);
    assert_string_equal(
        got.stats.last_rejection,
        "byte 58: ts and baseTimeNanoseconds together do not fit 64 bits "
        "of nanoseconds");
}

static void test_what_is_no_trace_is_refused(void **state)
{
    (void)state;
    chrome_refuse("", "the input is empty", "");
    chrome_refuse(" \n", "the input is empty", "");
    chrome_refuse("12", "byte 0: a JSON object or array was expected", "");
    chrome_refuse("\xef\xbb[]", "byte 2: a JSON object or array was expected", "");
    chrome_refuse("[" CHROME_A "] [" CHROME_A "]",
                  "byte 55: nothing was expected behind the trace", CHROME_A_OUT);
    chrome_refuse("{}x", "byte 2: nothing was expected behind the trace", "");
    chrome_refuse("[" CHROME_A CHROME_B "]", "byte 53: ',' or ']' was expected",
                  CHROME_A_OUT);
    chrome_refuse("{\"traceEvents\":{}}", "byte 15: traceEvents is not an array", "");
    chrome_refuse("{\"traceEvents\":[" CHROME_A "]",
                  "byte 69: the input ends inside a value that "
                  "starts at byte 69",
                  CHROME_A_OUT);
    chrome_refuse("{\"traceEvents\":[" CHROME_A ",",
                  "byte 69: the input ends inside a value that "
                  "starts at byte 69",
                  CHROME_A_OUT);
    chrome_refuse("{\"k\" 1}", "byte 5: ':' was expected", "");
    chrome_refuse("{k:1}", "byte 1: a key in quotes was expected", "");
    chrome_refuse("{\"k\":1 \"l\":2}", "byte 7: ',' or '}' was expected",
                  "# \"k\": 1\n");
    chrome_refuse("{\"k\":\"quo\"te\"}", "byte 10: ',' or '}' was expected",
                  "# \"k\": \"quo\"\n");
}

static void test_damaged_events_are_refused_with_the_offset(void **state)
{
    (void)state;
    chrome_refuse("[" CHROME_A ",{\"ph\":\"X\",\"ts\":01}]",
                  "byte 70: a number must not start with 0", CHROME_A_OUT);
    chrome_refuse("[{\"ph\":1.}]", "byte 9: a digit must follow the point", "");
    chrome_refuse("[{\"ph\":1e}]", "byte 9: a digit must follow the exponent sign", "");
    chrome_refuse("[{\"ph\":-}]", "byte 7: a value was expected", "");
    chrome_refuse("[{\"ph\":tru}]", "byte 7: a value was expected", "");
    chrome_refuse("[{\"ph\" \"X\"}]", "byte 7: ':' was expected", "");
    chrome_refuse("[{\"ph\":\"X\";}]", "byte 10: ',' or '}' was expected", "");
    chrome_refuse("[{ph:1}]", "byte 2: a key in quotes was expected", "");
    chrome_refuse("[{\"args\":{\"k\":[1}}]", "byte 16: ',' or ']' was expected", "");
    chrome_refuse("[{\"args\":{\"k\":{1}}}]", "byte 15: a key in quotes was expected",
                  "");
    chrome_refuse("[{\"args\":{\"k\":1]}]", "byte 15: ',' or '}' was expected", "");
    chrome_refuse("[nul]", "byte 1: a value was expected", "");
    chrome_refuse("[{\"ph\":\"X",
                  "byte 9: the input ends inside a value that starts at byte 1", "");
}

/* --- salvage ---------------------------------------------------------------------- */

static void test_log_lines_between_events_are_skipped(void **state)
{
    struct chrome_reading got;

    (void)state;
    got = chrome_expect_salvaged("{\"v\":1,\"traceEvents\":[\n" CHROME_A
                                 ",\nINFO: 12:00 P.cpp:12] "
                                 "flushing {x} \"y\n" CHROME_B "\n],\n\"rank\":1}\n",
                                 "# \"v\": 1\n" CHROME_A_OUT CHROME_B_OUT
                                 "# \"rank\": 1\n");
    assert_int_equal(got.stats.damages, 1);
    assert_int_equal(got.stats.damage_offset[0], 77);
    assert_false(got.stats.is_truncated);
    chrome_expect_salvaged("{\"traceEvents\":[" CHROME_A
                           ",\nINFO: x] y\n],\n\"rank\":1}\n",
                           CHROME_A_OUT "# \"rank\": 1\n");
    chrome_expect_salvaged("{\"traceEvents\":[" CHROME_A ",\nINFO: x] y\n]\n}\n",
                           CHROME_A_OUT);
}

static void test_log_lines_inside_an_event_cost_that_event(void **state)
{
    struct chrome_reading got;

    (void)state;
    got = chrome_expect_salvaged(
        "[" CHROME_A
        ",{\"ph\":\"X\",INFO: log\n\"ts\":1,\"args\":{\"k\":{}}},\n" CHROME_B "]",
        CHROME_A_OUT CHROME_B_OUT);
    assert_int_equal(got.stats.damages, 1);
    /* Inside a string the text goes on to some later quote: that of the next event. */
    got = chrome_expect_salvaged("[" CHROME_A
                                 ",{\"ph\":\"X\",\"name\":\"cut\nINFO: log\n" CHROME_B
                                 ",\n" CHROME_A "]",
                                 CHROME_A_OUT CHROME_B_OUT CHROME_A_OUT);
    assert_int_equal(got.stats.damages, 1);
}

static void test_damage_in_metadata_keeps_the_rest(void **state)
{
    struct chrome_reading got;

    (void)state;
    got = chrome_expect_salvaged(
        "{\"v\":1,\n\"id\": \"quo\"te\",\n\"baseTimeNanoseconds\":5,\n"
        "\"traceEvents\":[" CHROME_A "],\"z\":2}",
        "# \"v\": 1\n# \"id\": \"quo\"\n# \"baseTimeNanoseconds\": 5\n"
        "X 1005+2000 1/2 name=\"a\"\n# \"z\": 2\n");
    assert_int_equal(got.stats.damages, 1);
    got = chrome_expect_salvaged("{\"d\":[{\"n\":\"a\"b\"},\n{\"n\":2}],\n\"base\":5,"
                                 "\"traceEvents\":[" CHROME_A "]}",
                                 "# \"base\": 5\n" CHROME_A_OUT);
    assert_int_equal(got.stats.damages, 1);
}

static void test_text_in_front_of_the_trace_is_skipped(void **state)
{
    const struct tp_chrome_reader_opts opts = {.salvage = true};
    struct chrome_reading got;

    (void)state;
    got = chrome_expect_salvaged("INFO: starting\n{\"traceEvents\":[" CHROME_A "]}",
                                 CHROME_A_OUT);
    assert_int_equal(got.stats.damages, 1);
    chrome_refuse_with(&opts, "no trace\nat all\n",
                       "byte 0: no JSON object or array is in it", "");
    chrome_refuse_with(&opts, "", "the input is empty", "");
}

static void test_truncated_input_keeps_what_is_whole(void **state)
{
    static const char text[] = "{\"v\":1,\"traceEvents\":[" CHROME_A
                               ",{\"ph\":\"X\",\"name\":\"c";
    struct chrome_reading got =
        chrome_expect_salvaged(text, "# \"v\": 1\n" CHROME_A_OUT);

    (void)state;
    assert_true(got.stats.is_truncated);
    assert_int_equal(got.stats.damages, 1);
    assert_int_equal(got.stats.damage_offset[0], 75);
    got = chrome_expect_salvaged("{\"name\":\"n\",\"traceEvents\":[" CHROME_A,
                                 "# \"name\": \"n\"\n" CHROME_A_OUT);
    assert_true(got.stats.is_truncated);
}

static void test_more_damage_than_places_is_counted(void **state)
{
    struct chrome_reading got;

    (void)state;
    got = chrome_expect_salvaged(
        "[x" CHROME_A "x" CHROME_A "x" CHROME_A "x" CHROME_A "x" CHROME_A "x" CHROME_A
        "x" CHROME_A "x" CHROME_A "x" CHROME_A "x" CHROME_A "x" CHROME_A "x" CHROME_A
        "x" CHROME_A "x" CHROME_A "x" CHROME_A "x" CHROME_A "x" CHROME_A "x" CHROME_A
        "]",
        CHROME_A_OUT CHROME_A_OUT CHROME_A_OUT CHROME_A_OUT CHROME_A_OUT CHROME_A_OUT
            CHROME_A_OUT CHROME_A_OUT CHROME_A_OUT CHROME_A_OUT CHROME_A_OUT
                CHROME_A_OUT CHROME_A_OUT CHROME_A_OUT CHROME_A_OUT CHROME_A_OUT
                    CHROME_A_OUT CHROME_A_OUT);
    assert_int_equal(got.stats.damages, 18);
}

static void test_events_without_commas_are_a_file_but_no_batch(void **state)
{
    static const char lines[] = CHROME_A "\n" CHROME_B "\n" CHROME_A "\n";
    struct chrome_reading got;

    (void)state;
    got = chrome_expect_salvaged(lines, CHROME_A_OUT CHROME_B_OUT CHROME_A_OUT);
    assert_int_equal(got.stats.damages, 0);
    assert_false(got.stats.is_truncated);
    got = chrome_expect_salvaged(CHROME_A "\n" CHROME_B "\n{\"ph\":\"X\",\"na",
                                 CHROME_A_OUT CHROME_B_OUT);
    assert_true(got.stats.is_truncated);
    got = chrome_expect_salvaged(CHROME_A "\n{\"ph\":X}\n" CHROME_B "\n",
                                 CHROME_A_OUT CHROME_B_OUT);
    assert_int_equal(got.stats.damages, 1);
    got = chrome_read(&(struct tp_chrome_reader_opts){0}, lines, strlen(lines));
    assert_int_equal(got.rc, TP_EINVAL);
    assert_non_null(strstr(got.err.message, "application/x-ndjson"));
    tp_buf_fini(&got.text);
}

static void test_an_object_without_traceevents_is_told(void **state)
{
    (void)state;
    assert_true(chrome_expect("{}", "").stats.lacks_events);
    assert_true(chrome_expect("{\"traceEvent\":[]}", "# \"traceEvent\": []\n")
                    .stats.lacks_events);
    assert_false(chrome_expect("{\"traceEvents\":[]}", "").stats.lacks_events);
    assert_false(chrome_expect("{\"traceEvents\":null}", "").stats.lacks_events);
    assert_false(chrome_expect("[]", "").stats.lacks_events);
    assert_false(chrome_expect(CHROME_A, CHROME_A_OUT).stats.lacks_events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object_and_array_give_their_events),
        cmocka_unit_test(test_sloppy_arrays_are_taken),
        cmocka_unit_test(test_members_around_the_events_are_handed_over),
        cmocka_unit_test(test_events_are_only_those_of_the_top_level),
        cmocka_unit_test(test_a_lone_event_object_is_one_event),
        cmocka_unit_test(test_large_lone_object_is_a_trace),
        cmocka_unit_test(test_base_before_the_events_is_added),
        cmocka_unit_test(test_base_behind_events_is_only_reported),
        cmocka_unit_test(test_base_that_cannot_be_used_is_damage),
        cmocka_unit_test(test_base_that_does_not_fit_rejects_the_event),
        cmocka_unit_test(test_what_is_no_trace_is_refused),
        cmocka_unit_test(test_damaged_events_are_refused_with_the_offset),
        cmocka_unit_test(test_log_lines_between_events_are_skipped),
        cmocka_unit_test(test_log_lines_inside_an_event_cost_that_event),
        cmocka_unit_test(test_damage_in_metadata_keeps_the_rest),
        cmocka_unit_test(test_text_in_front_of_the_trace_is_skipped),
        cmocka_unit_test(test_truncated_input_keeps_what_is_whole),
        cmocka_unit_test(test_events_without_commas_are_a_file_but_no_batch),
        cmocka_unit_test(test_an_object_without_traceevents_is_told),
        cmocka_unit_test(test_more_damage_than_places_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
