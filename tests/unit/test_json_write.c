/*
 * test_json_write.c - the pieces of JSON text.
 */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json_write.h"
#include "support/fault.h"
#include "support/tmpdir.h"

static void check_text(const char *got, const char *end, const char *want)
{
    if ((size_t)(end - got) != strlen(want) || memcmp(got, want, strlen(want)) != 0)
        fail_msg("got %.*s, want %s", (int)(end - got), got, want);
}

static void check_string(const char *in, size_t n, const char *want)
{
    char *out = malloc(TP_JSON_STRING_BYTES(n));

    assert_non_null(out);
    check_text(out, tp_json_put_string(out, (struct tp_str){in, n}), want);
    free(out);
}

static void test_strings_are_escaped_as_rfc_8259_wants(void **state)
{
    (void)state;
    check_string("", 0, "\"\"");
    check_string("plain words, longer than a word of the machine", 46,
                 "\"plain words, longer than a word of the machine\"");
    check_string("quo\"te \\ back", 13, "\"quo\\\"te \\\\ back\"");
    check_string("\b\t\n\f\r", 5, "\"\\b\\t\\n\\f\\r\"");
    check_string("esc\033[0m bell\007 nul\0.", 18,
                 "\"esc\\u001b[0m bell\\u0007 nul\\u0000\"");
    check_string("\x7f", 1, "\"\x7f\"");
    check_string("a/b", 3, "\"a/b\"");
}

static void test_valid_utf8_stays_and_invalid_is_replaced(void **state)
{
    (void)state;
    check_string("\xe6\x98\x87 \xc3\xa9 \xf0\x9f\x9a\x80", 11,
                 "\"\xe6\x98\x87 \xc3\xa9 \xf0\x9f\x9a\x80\"");
    check_string("bad\xff name", 9, "\"bad\xef\xbf\xbd name\"");
    check_string("cut \xf0\x9f", 6, "\"cut \xef\xbf\xbd\"");
    check_string("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    check_string("\xef\xbf\xbd", 3, "\"\xef\xbf\xbd\"");
}

static void test_each_byte_is_found_at_each_place(void **state)
{
    (void)state;
    for (int c = 0; c < 0x80; c++)
        for (size_t at = 0; at < 20; at++) {
            char in[20];
            char out[TP_JSON_STRING_BYTES(20)];
            size_t n;

            memset(in, 'x', sizeof(in));
            in[at] = (char)c;
            n = (size_t)(tp_json_put_string(out, (struct tp_str){in, 20}) - out);
            if ((n == 22) != (c >= 0x20 && c != '"' && c != '\\'))
                fail_msg("byte %d at %zu gave %.*s", c, at, (int)n, out);
        }
}

static void test_integers_are_exact(void **state)
{
    char out[TP_JSON_I64_BYTES];
    char want[32];
    uint64_t v = 1;

    (void)state;
    check_text(out, tp_json_put_i64(out, INT64_MIN), "-9223372036854775808");
    check_text(out, tp_json_put_u64(out, UINT64_MAX), "18446744073709551615");
    check_text(out, tp_json_put_u64(out, 0), "0");
    check_text(out, tp_json_put_i64(out, 9007199254740993), "9007199254740993");
    for (int i = 0; i < 64; i++, v *= 2)
        for (int d = -1; d <= 1; d++) {
            snprintf(want, sizeof(want), "%llu", (unsigned long long)(v + (uint64_t)d));
            check_text(out, tp_json_put_u64(out, v + (uint64_t)d), want);
        }
    v = 1;
    for (int i = 0; i < 20; i++, v *= 10)
        for (int d = -1; d <= 1; d++) {
            snprintf(want, sizeof(want), "%llu", (unsigned long long)(v + (uint64_t)d));
            check_text(out, tp_json_put_u64(out, v + (uint64_t)d), want);
        }
}

static void test_microseconds_have_three_decimals(void **state)
{
    char out[TP_JSON_US_BYTES];

    (void)state;
    check_text(out, tp_json_put_us(out, 0), "0.000");
    check_text(out, tp_json_put_us(out, 1), "0.001");
    check_text(out, tp_json_put_us(out, 12045), "12.045");
    check_text(out, tp_json_put_us(out, -1500), "-1.500");
    check_text(out, tp_json_put_us(out, 1795982590884123457), "1795982590884123.457");
    check_text(out, tp_json_put_us(out, INT64_MIN), "-9223372036854775.808");
}

static void test_doubles_have_known_texts(void **state)
{
    static const struct {
        double d;
        const char *want;
    } cases[] = {
        {68, "68.0"},
        {0, "0.0"},
        {-0.0, "-0.0"},
        {2.5, "2.5"},
        {0.1, "0.1"},
        {1.5e-7, "0.00000015"},
        {1e21, "1e+21"},
        {1e16, "1e+16"},
        {-123.456, "-123.456"},
        {5e-324, "4.94065645841247e-324"},
        {9007199254740992.0, "9007199254740992.0"},
        {18014398509481984.0, "18014398509481984.0"},
        {0.3, "0.3"},
        {0.1 + 0.2, "0.30000000000000004"},
        {NAN, "\"NaN\""},
        {INFINITY, "\"Infinity\""},
        {-INFINITY, "\"-Infinity\""},
    };
    char out[TP_JSON_DOUBLE_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        check_text(out, tp_json_put_double(out, cases[i].d), cases[i].want);
}

/* xorshift64: the same doubles in every run. */
static uint64_t next_bits(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static void check_round_trip(double d)
{
    char out[TP_JSON_DOUBLE_BYTES + 1];
    char *end = tp_json_put_double(out, d);
    double back;

    *end = '\0';
    assert_true(end - out <= TP_JSON_DOUBLE_BYTES);
    back = strtod(out, NULL);
    if (memcmp(&back, &d, sizeof(d)) != 0)
        fail_msg("%.17g gave %s", d, out);
    if (strpbrk(out, ".e") == NULL)
        fail_msg("%s would be read as an integer", out);
}

static void test_every_double_reads_back_as_itself(void **state)
{
    uint64_t x = 88172645463325252;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = next_bits(&x);
        double d;

        memcpy(&d, &bits, sizeof(d));
        if (isfinite(d))
            check_round_trip(d);
        check_round_trip((double)(int64_t)bits / 1e6);
        check_round_trip((double)(bits % 1000000) / 1000);
        check_round_trip((double)(bits % 100000000) * 1e-12);
    }
}

/* A machine has few locales, so the test makes its own. */
static bool has_decimal_comma(const char *dir)
{
    char *path = tmpdir_path(dir, "de_DE.UTF-8");
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        execlp("localedef", "localedef", "-i", "de_DE", "-f", "UTF-8", "--no-archive",
               path, (char *)NULL);
        _exit(127);
    }
    free(path);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 &&
           setenv("LOCPATH", dir, 1) == 0 &&
           setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;
}

static void test_a_decimal_comma_of_the_locale_does_not_show(void **state)
{
    char *dir = tmpdir_new();
    char out[TP_JSON_DOUBLE_BYTES], by_libc[8];
    bool has_comma = has_decimal_comma(dir);

    (void)state;
    if (has_comma) {
        snprintf(by_libc, sizeof(by_libc), "%.1f", 0.5);
        assert_string_equal(by_libc, "0,5");
        check_text(out, tp_json_put_double(out, 0.1 + 0.2), "0.30000000000000004");
        setlocale(LC_NUMERIC, "C");
    }
    unsetenv("LOCPATH");
    tmpdir_remove(dir);
    if (!has_comma) {
        print_message("skipped: localedef (package locales) makes no de_DE here\n");
        skip();
    }
}

static int write_all(struct tp_buf *b, struct tp_err *err)
{
    int rc;

    if ((rc = tp_json_write_string(b, tp_str_of("a\n"), err)) != TP_OK ||
        (rc = tp_json_write_cstr(b, NULL, err)) != TP_OK ||
        (rc = tp_json_write_cstr(b, "b", err)) != TP_OK ||
        (rc = tp_json_write_u64(b, 7, err)) != TP_OK ||
        (rc = tp_json_write_i64(b, -7, err)) != TP_OK ||
        (rc = tp_json_write_double(b, 7, err)) != TP_OK)
        return rc;
    return tp_json_write_bool(b, true, err);
}

static void test_appending_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_buf b = {0};
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = write_all(&b, &err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            check_text(b.data, b.data + b.len, "\"a\\n\"null\"b\"7-77.0true");
            tp_buf_fini(&b);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        tp_buf_fini(&b);
    }
}

static void test_a_limit_of_the_buffer_holds(void **state)
{
    struct tp_buf b = {.limit_bytes = 3};
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_json_write_u64(&b, 123, &err), TP_OK);
    assert_int_equal(tp_json_write_bool(&b, false, &err), TP_EQUOTA);
    assert_int_equal(b.len, 3);
    tp_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings_are_escaped_as_rfc_8259_wants),
        cmocka_unit_test(test_valid_utf8_stays_and_invalid_is_replaced),
        cmocka_unit_test(test_each_byte_is_found_at_each_place),
        cmocka_unit_test(test_integers_are_exact),
        cmocka_unit_test(test_microseconds_have_three_decimals),
        cmocka_unit_test(test_doubles_have_known_texts),
        cmocka_unit_test(test_every_double_reads_back_as_itself),
        cmocka_unit_test(test_a_decimal_comma_of_the_locale_does_not_show),
        cmocka_unit_test(test_appending_survives_every_allocation_failure),
        cmocka_unit_test(test_a_limit_of_the_buffer_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
