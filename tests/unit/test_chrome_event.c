/*
 * test_chrome_event.c - what the members of an event become, repaired or rejected.
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

/* One event of an array that is rejected for this reason. */
static void reject(const char *event, const char *why)
{
    const struct tp_chrome_reader_opts opts = {0};
    char text[1024];
    struct chrome_reading got;

    snprintf(text, sizeof(text), "[%s]", event);
    got = chrome_read(&opts, text, strlen(text));
    assert_int_equal(got.rc, TP_OK);
    assert_string_equal(got.text.data, "");
    if (strcmp(got.stats.last_rejection, why) != 0)
        fail_msg("%s is rejected because '%s'", event, got.stats.last_rejection);
    assert_int_equal(got.stats.events, 1);
    assert_int_equal(got.stats.rejected, 1);
    assert_int_equal(got.stats.rejected_by[TP_CHROME_MALFORMED], 1);
    tp_buf_fini(&got.text);
}

/* --- members of events ------------------------------------------------------------ */

static void test_times_are_exact_nanoseconds(void **state)
{
    static const struct {
        const char *ts;
        const char *ns;
    } cases[] = {
        {"0", "0"},
        {"-0", "0"},
        {"1795982590884123.457", "1795982590884123457"},
        {"9223372036854775.807", "9223372036854775807"},
        {"-9223372036854775.808", "-9223372036854775808"},
        {"0.0004", "0"},
        {"0.0005", "1"},
        {"-0.0005", "-1"},
        {"-0.00049999999999999999999999", "0"},
        {"1.2345678901234567890123456789", "1235"},
        {"12.5e3", "12500000"},
        {"12.5E+3", "12500000"},
        {"125e-1", "12500"},
        {"5e-4", "1"},
        {"4e-4", "0"},
        {"1e-999999999", "0"},
        {"0e999999999", "0"},
        {"0.000000000000000000000001e24", "1000"},
        {"123456789012345678901234567890e-18", "123456789012346"},
        {"\"12.5\"", "12500"},
        {"\" 7 \"", "7000"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[200];
        char out[200];

        snprintf(text, sizeof(text), "[{\"ph\":\"i\",\"ts\":%s}]", cases[i].ts);
        snprintf(out, sizeof(out), "i %s -/-\n", cases[i].ns);
        chrome_expect(text, out);
    }
}

static void test_unusable_times_reject_the_event(void **state)
{
    (void)state;
    reject("{\"ph\":\"X\"}", "byte 1: ts is missing");
    reject("{\"ph\":\"X\",\"ts\":null}", "byte 1: ts is missing");
    reject("{\"ph\":\"X\",\"ts\":true}", "byte 1: ts is not a number");
    reject("{\"ph\":\"X\",\"ts\":NaN}", "byte 1: ts is not a number");
    reject("{\"ph\":\"X\",\"ts\":[1]}", "byte 1: ts is not a number");
    reject("{\"ph\":\"X\",\"ts\":\"1.\"}", "byte 1: ts is not a number");
    reject("{\"ph\":\"X\",\"ts\":\"\"}", "byte 1: ts is not a number");
    reject("{\"ph\":\"X\",\"ts\":1e16}",
           "byte 1: ts does not fit 64 bits of nanoseconds");
    reject("{\"ph\":\"X\",\"ts\":9223372036854775.808}",
           "byte 1: ts does not fit 64 bits of nanoseconds");
    reject("{\"ph\":\"X\",\"ts\":99999999999999999999999}",
           "byte 1: ts does not fit 64 bits of nanoseconds");
    reject("{\"ph\":\"X\",\"ts\":1,\"dur\":1e16}",
           "byte 1: dur does not fit 64 bits of nanoseconds");
    reject("{\"ph\":\"X\",\"ts\":9223372036854775,\"dur\":1}",
           "byte 1: ts and dur together do not fit 64 bits of nanoseconds");
}

static void test_durations_that_are_none_become_zero(void **state)
{
    struct chrome_reading got;

    (void)state;
    got = chrome_expect("[{\"ph\":\"X\",\"ts\":1,\"dur\":-5},{\"ph\":\"X\",\"ts\":1},"
                        "{\"ph\":\"X\",\"ts\":1,\"dur\":null},{\"ph\":\"X\",\"ts\":1,"
                        "\"dur\":NaN},{\"ph\":\"X\",\"ts\":1,\"dur\":\"-1e99\"}]",
                        "X 1000+0 -/-\nX 1000+0 -/-\nX 1000+0 -/-\nX 1000+0 -/-\n"
                        "X 1000+0 -/-\n");
    assert_int_equal(got.stats.repaired, 5);
    got = chrome_expect("[{\"ph\":\"X\",\"ts\":1,\"dur\":-0.0},{\"ph\":\"X\",\"ts\":1,"
                        "\"dur\":\"3\"}]",
                        "X 1000+0 -/-\nX 1000+3000 -/-\n");
    assert_int_equal(got.stats.repaired, 0);
}

static void test_phases_have_their_kinds(void **state)
{
    (void)state;
    chrome_expect(
        "[{\"ph\":\"B\",\"ts\":1},{\"ph\":\"E\",\"ts\":1},{\"ph\":\"I\",\"ts\":1},"
        "{\"ph\":\"C\",\"ts\":1},{\"ph\":\"\\u0050\",\"ts\":1},{\"ph\":\"(\","
        "\"ts\":1}]",
        "B 1000 -/-\nE 1000 -/-\nI 1000 -/-\nC 1000 -/-\nP? 1000 -/-\n"
        "(? 1000 -/-\n");
    reject("{\"ts\":1}", "byte 1: ph is missing");
    reject("{}", "byte 1: ph is missing");
    reject("{\"ph\":\"XX\",\"ts\":1}", "byte 1: ph is not one character");
    reject("{\"ph\":\"\",\"ts\":1}", "byte 1: ph is not one character");
    reject("{\"ph\":88,\"ts\":1}", "byte 1: ph is not one character");
    reject("{\"ph\":\"\\u0007\",\"ts\":1}", "byte 1: ph is not one character");
    reject("{\"ph\":\"\xc3\xa9\",\"ts\":1}", "byte 1: ph is not one character");
}

static void test_values_that_are_no_objects_are_rejected(void **state)
{
    (void)state;
    reject("1", "byte 1: not an object");
    reject("\"x\"", "byte 1: not an object");
    reject("null", "byte 1: not an object");
    reject("[" CHROME_A "]", "byte 1: not an object");
    reject("-1.5e3", "byte 1: not an object");
}

static void test_ids_come_in_all_forms(void **state)
{
    (void)state;
    chrome_expect(
        "[{\"ph\":\"i\",\"ts\":0,\"pid\":\"Spans\",\"tid\":\"PyTorch \\\"P\\\"\"},"
        "{\"ph\":\"i\",\"ts\":0,\"pid\":-1,\"tid\":12.0},"
        "{\"ph\":\"i\",\"ts\":0,\"pid\":12.5,\"tid\":18446744073709551615},"
        "{\"ph\":\"i\",\"ts\":0,\"pid\":null,\"tid\":true},"
        "{\"ph\":\"i\",\"ts\":0,\"pid\":\"\",\"tid\":[1, 2]},"
        "{\"ph\":\"i\",\"ts\":0,\"pid\":-9223372036854775808,\"tid\":NaN},"
        "{\"ph\":\"i\",\"ts\":0,\"pid\":1e3,\"tid\":1e300}]",
        "i 0 \"Spans\"/\"PyTorch \\\"P\\\"\"\ni 0 -1/12\n"
        "i 0 \"12.5\"/\"18446744073709551615\"\ni 0 -/\"true\"\ni 0 \"\"/\"[1, 2]\"\n"
        "i 0 -9223372036854775808/\"NaN\"\ni 0 1000/\"1e300\"\n");
}

static void test_names_that_are_no_strings_become_text(void **state)
{
    (void)state;
    chrome_expect(
        "[{\"ph\":\"i\",\"ts\":0,\"name\":5,\"cat\":1.50},{\"ph\":\"i\",\"ts\":0,"
        "\"name\":null,\"cat\":\"\"},{\"ph\":\"i\",\"ts\":0,\"name\":true,"
        "\"cat\":[\"a\",1]}]",
        "i 0 -/- name=\"5\" cat=\"1.50\"\ni 0 -/- cat=\"\"\n"
        "i 0 -/- name=\"true\" cat=\"[\\\"a\\\",1]\"\n");
}

static void test_strings_come_back_byte_for_byte(void **state)
{
    struct chrome_reading got;

    (void)state;
    got = chrome_expect(
        "[{\"ph\":\"i\",\"ts\":0,\"name\":\"\\u0000a\\u001b[0m\\\"\\\\\\/\\b\\f"
        "\\n\\r\\t\\ud83d\\ude80\\u00e9\\u20AC\"}]",
        "i 0 -/- name=\"\\u0000a\\u001b[0m\\\"\\\\/\\b\\f\\n\\r\\t"
        "\xf0\x9f\x9a\x80\xc3\xa9\xe2\x82\xac\"\n");
    assert_int_equal(got.stats.repaired, 0);
    got = chrome_expect(
        "[{\"ph\":\"i\",\"ts\":0,\"name\":\"\xe6\x98\x87\xe8\x85\xbe \xf0\x9f"
        "\x9a\x80\",\"\\u0070id\":3}]",
        "i 0 3/- name=\"\xe6\x98\x87\xe8\x85\xbe \xf0\x9f\x9a\x80\"\n");
    assert_int_equal(got.stats.repaired, 0);
}

static void test_bad_strings_are_repaired_and_counted(void **state)
{
    struct chrome_reading got;

    (void)state;
    got = chrome_expect(
        "[{\"ph\":\"i\",\"ts\":0,\"name\":\"bad\xff\xfe name\"},"
        "{\"ph\":\"i\",\"ts\":0,\"name\":\"\\ud83d.\\ude80\\ud800\\ud800\"},"
        "{\"ph\":\"i\",\"ts\":0,\"name\":\"C:\\q \\u12G4\"},"
        "{\"ph\":\"i\",\"ts\":0,\"name\":\"a\tb\nc\x01\"}]",
        "i 0 -/- name=\"bad\xef\xbf\xbd\xef\xbf\xbd name\"\n"
        "i 0 -/- name=\"\xef\xbf\xbd.\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n"
        "i 0 -/- name=\"C:\\\\q \\\\u12G4\"\n"
        "i 0 -/- name=\"a\\tb\\nc\\u0001\"\n");
    assert_int_equal(got.stats.repaired, 4);
}

static void test_args_keep_value_and_type(void **state)
{
    (void)state;
    chrome_expect(
        "[{\"ph\":\"C\",\"ts\":0,\"args\":{\"i\":9007199254740993,\"n\":-1,"
        "\"min\":-9223372036854775808,\"u\":18446744073709551615,"
        "\"big\":18446744073709551616,\"f\":1.5e-07,\"one\":1.0,\"huge\":1e999,"
        "\"t\":true,\"no\":false,\"z\":null,\"s\":\"x\",\"\":\"\","
        "\"a\":[[64, 64], []],\"o\":{\"k\":\n{\"k\":1}}}}]",
        "C 0 -/- \"i\"=i9007199254740993,\"n\"=i-1,\"min\"=i-9223372036854775808,"
        "\"u\"=u18446744073709551615,\"big\"=j18446744073709551616,"
        "\"f\"=d1.4999999999999999e-07,\"one\"=d1,\"huge\"=j1e999,\"t\"=true,"
        "\"no\"=false,\"z\"=jnull,\"s\"=s\"x\",\"\"=s\"\",\"a\"=j[[64, 64], []],"
        "\"o\"=j{\"k\":{\"k\":1}}\n");
}

static void test_numbers_that_json_lacks_become_strings(void **state)
{
    struct chrome_reading got;

    (void)state;
    got = chrome_expect(
        "[{\"ph\":\"C\",\"ts\":0,\"args\":{\"a\":NaN,\"b\":Infinity,"
        "\"c\":-Infinity,\"d\":-nan,\"e\":inf,\"f\":-inf,\"g\":[nan,{\"h\":"
        "Infinity}]}}]",
        "C 0 -/- \"a\"=s\"NaN\",\"b\"=s\"Infinity\",\"c\"=s\"-Infinity\","
        "\"d\"=s\"NaN\",\"e\"=s\"Infinity\",\"f\"=s\"-Infinity\","
        "\"g\"=j[\"NaN\",{\"h\":\"Infinity\"}]\n");
    assert_int_equal(got.stats.repaired, 1);
}

static void test_nested_values_are_repaired(void **state)
{
    struct chrome_reading got;

    (void)state;
    got = chrome_expect(
        "[{\"ph\":\"C\",\"ts\":0,\"args\":{\"g\":[\"\xff\",{\"\\ud800\":"
        "\"a\\u00e9\x01\"},]}}]",
        "C 0 -/- \"g\"=j[\"\xef\xbf\xbd\",{\"\xef\xbf\xbd\":\"a\xc3\xa9\\u0001\""
        "}]\n");
    assert_int_equal(got.stats.repaired, 1);
}

static void test_of_equal_keys_the_last_one_counts(void **state)
{
    (void)state;
    chrome_expect(
        "[{\"ph\":\"B\",\"ph\":\"i\",\"ts\":5,\"ts\":1,\"name\":\"a\",\"name\":\"b\","
        "\"args\":{\"x\":1},\"args\":{\"k\":1,\"l\":2,\"k\":\"three\"}}]",
        "i 1000 -/- name=\"b\" \"k\"=s\"three\",\"l\"=i2\n");
    chrome_expect(
        "[{\"ph\":\"i\",\"ts\":1,\"u\":1,\"v\":2,\"\\u0075\":3,\"w\":4,\"w\":[5]}]",
        "i 1000 -/- extra=\"v\":2,\"u\":3,\"w\":[5]\n");
    chrome_expect("[{\"ph\":\"i\",\"ts\":1,\"args\":[1],\"args\":{\"k\":1}},"
                  "{\"ph\":\"i\",\"ts\":1,\"args\":{\"k\":1},\"args\":[1]}]",
                  "i 1000 -/- \"k\"=i1\ni 1000 -/- extra=\"args\":[1]\n");
}

static void test_further_members_are_kept(void **state)
{
    (void)state;
    chrome_expect(
        "[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"tts\":5,\"cname\":\"go\\u006fd\","
        "\"stack\":[\n1],\"v\":null,\"k\\n\":-1.50,\"w\":NaN}]",
        "X 1000+1000 -/- extra=\"tts\":5,\"cname\":\"go\\u006fd\",\"stack\":[1],"
        "\"v\":null,\"k\\n\":-1.50,\"w\":\"NaN\"\n");
    chrome_expect("[{\"ph\":\"i\",\"ts\":1,\"args\":\"text\"},{\"ph\":\"i\",\"ts\":1,"
                  "\"args\":null},{\"ph\":\"i\",\"ts\":1,\"args\":{}}]",
                  "i 1000 -/- extra=\"args\":\"text\"\ni 1000 -/- extra=\"args\":null\n"
                  "i 1000 -/-\n");
}

static void test_members_of_other_kinds_are_kept_as_they_are(void **state)
{
    (void)state;
    chrome_expect(
        "[{\"ph\":\"i\",\"ts\":1,\"s\":\"g\"},{\"ph\":\"i\",\"ts\":1,\"s\":\"gp\"},"
        "{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"s\":\"g\",\"id\":4},{\"ph\":\"i\",\"ts\":1,"
        "\"dur\":5},{\"ph\":\"f\",\"ts\":1,\"id\":42,\"bp\":\"e\"},{\"ph\":\"f\","
        "\"ts\":1,\"id\":\"0x1f\",\"bp\":\"x\"},{\"ph\":\"b\",\"ts\":1,\"id\":1.0},"
        "{\"ph\":\"s\",\"ts\":1,\"bp\":\"e\",\"id\":18446744073709551615}]",
        "i 1000 -/- scope=g\ni 1000 -/- extra=\"s\":\"gp\"\n"
        "X 1000+1000 -/- extra=\"id\":4,\"s\":\"g\"\ni 1000 -/- extra=\"dur\":5\n"
        "f 1000 -/- id=42 bp\nf 1000 -/- id=\"0x1f\" extra=\"bp\":\"x\"\n"
        "b 1000 -/- id=1\ns 1000 -/- id=\"18446744073709551615\" extra=\"bp\":\"e\"\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_are_exact_nanoseconds),
        cmocka_unit_test(test_unusable_times_reject_the_event),
        cmocka_unit_test(test_durations_that_are_none_become_zero),
        cmocka_unit_test(test_phases_have_their_kinds),
        cmocka_unit_test(test_values_that_are_no_objects_are_rejected),
        cmocka_unit_test(test_ids_come_in_all_forms),
        cmocka_unit_test(test_names_that_are_no_strings_become_text),
        cmocka_unit_test(test_strings_come_back_byte_for_byte),
        cmocka_unit_test(test_bad_strings_are_repaired_and_counted),
        cmocka_unit_test(test_args_keep_value_and_type),
        cmocka_unit_test(test_numbers_that_json_lacks_become_strings),
        cmocka_unit_test(test_nested_values_are_repaired),
        cmocka_unit_test(test_of_equal_keys_the_last_one_counts),
        cmocka_unit_test(test_further_members_are_kept),
        cmocka_unit_test(test_members_of_other_kinds_are_kept_as_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
