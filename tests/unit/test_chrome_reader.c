/*
 * test_chrome_reader.c - lines, limits, callbacks, memory and reuse of a reader.
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
#include "support/fault.h"

/* --- NDJSON ----------------------------------------------------------------------- */

static void test_lines_are_events(void **state)
{
    struct chrome_reading got;

    (void)state;
    chrome_expect_lines(CHROME_A "\n" CHROME_B "\n", CHROME_A_OUT CHROME_B_OUT);
    chrome_expect_lines(CHROME_A "\r\n\r\n \t\n" CHROME_B, CHROME_A_OUT CHROME_B_OUT);
    chrome_expect_lines("\xef\xbb\xbf" CHROME_A "\n", CHROME_A_OUT);
    chrome_expect_lines("\n\n", "");
    got = chrome_expect_lines("12\n" CHROME_A "\n[1]\n", CHROME_A_OUT);
    assert_int_equal(got.stats.events, 3);
    assert_int_equal(got.stats.rejected, 2);
    assert_string_equal(got.stats.last_rejection, "byte 0: not an object");
}

static void test_bad_lines_are_named(void **state)
{
    const struct tp_chrome_reader_opts opts = {.form = TP_CHROME_NDJSON};

    (void)state;
    chrome_refuse_with(&opts, "\n" CHROME_A "\n{\"ph\":}\n" CHROME_B "\n",
                       "line 3, byte 60: a value was expected", CHROME_A_OUT);
    chrome_refuse_with(&opts, CHROME_A "\n" CHROME_A CHROME_A "\n",
                       "line 2, byte 105: more than one value in a line", CHROME_A_OUT);
    chrome_refuse_with(&opts, CHROME_A "\n{\"ph\":\"X\",\n\"ts\":1}\n",
                       "line 2, byte 64: the line ends inside a value", CHROME_A_OUT);
    chrome_refuse_with(&opts, CHROME_A "\n{\"ph\":\"X",
                       "line 2, byte 59: the line ends inside a value", CHROME_A_OUT);
    chrome_refuse_with(&opts, "", "the input is empty", "");
}

static void test_salvaged_lines_lose_only_the_bad_ones(void **state)
{
    const struct tp_chrome_reader_opts opts = {.form = TP_CHROME_NDJSON,
                                               .salvage = true};
    static const char text[] = "INFO log\n" CHROME_A "\n{\"ph\":\n" CHROME_B "\n{\"ph";
    struct chrome_reading got =
        chrome_expect_with(&opts, text, strlen(text), CHROME_A_OUT CHROME_B_OUT);

    (void)state;
    assert_int_equal(got.stats.damages, 3);
    assert_int_equal(got.stats.damage_offset[0], 0);
}

/* --- limits ----------------------------------------------------------------------- */

static void test_each_limit_costs_one_event(void **state)
{
    static const struct {
        struct tp_chrome_reader_opts opts;
        const char *event; /* over the limit */
        const char *why;
    } cases[] = {
        {{.depth_max = 3},
         "{\"ph\":\"i\",\"ts\":1,\"args\":{\"k\":[[1]]}}",
         "byte 1: more than 3 arrays and objects inside each other"},
        {{.depth_max = 1},
         "{\"ph\":\"i\",\"ts\":1,\"args\":{}}",
         "byte 1: args are deeper than 1"},
        {{.args_max = 2},
         "{\"ph\":\"i\",\"ts\":1,\"args\":{\"k\":1,\"l\":2,\"m\":3}}",
         "byte 1: more than 2 arguments"},
        {{.args_max = 2},
         "{\"ph\":\"i\",\"ts\":1,\"k\":1,\"l\":2,\"m\":3}",
         "byte 1: more than 2 further members"},
        {{.name_bytes = 4},
         "{\"ph\":\"i\",\"ts\":1,\"name\":\"abcde\"}",
         "byte 1: name is longer than 4 bytes"},
        {{.name_bytes = 4},
         "{\"ph\":\"i\",\"ts\":1,\"cat\":\"abcde\"}",
         "byte 1: cat is longer than 4 bytes"},
        {{.name_bytes = 4},
         "{\"ph\":\"i\",\"ts\":1,\"pid\":\"abcde\"}",
         "byte 1: pid is longer than 4 bytes"},
        {{.name_bytes = 4},
         "{\"ph\":\"s\",\"ts\":1,\"id\":\"abcde\"}",
         "byte 1: id is longer than 4 bytes"},
        {{.name_bytes = 4},
         "{\"ph\":\"i\",\"ts\":1,\"args\":{\"abcde\":1}}",
         "byte 1: a key is longer than 4 bytes"},
        {{.event_bytes = 60},
         "{\"ph\":\"i\",\"ts\":1,\"args\":{\"k\":\"0123456789012345678901234567\"}}",
         "byte 1: longer than 60 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        struct chrome_reading got;

        snprintf(text, sizeof(text), "[%s,{\"ph\":\"i\",\"ts\":2}]", cases[i].event);
        got = chrome_limited(cases[i].opts, text, "i 2000 -/-\n");
        assert_string_equal(got.stats.last_rejection, cases[i].why);
        assert_int_equal(got.stats.rejected, 1);
        assert_int_equal(got.stats.rejected_by[TP_CHROME_TOO_LARGE], 1);
        assert_int_equal(got.stats.events, 2);
    }
}

static void test_limits_hold_for_lines(void **state)
{
    const struct tp_chrome_reader_opts opts = {.form = TP_CHROME_NDJSON,
                                               .event_bytes = 40,
                                               .depth_max = 3};
    struct chrome_reading got;

    (void)state;
    got = chrome_limited(opts,
                         "{\"ph\":\"i\",\"ts\":1,\"name\":\"0123456789012345\"}\n"
                         "{\"ph\":\"i\",\"ts\":1,\"args\":{\"k\":[[1]]}}\n"
                         "{\"ph\":\"i\",\"ts\":2}\n",
                         "i 2000 -/-\n");
    assert_int_equal(got.stats.rejected, 2);
    assert_int_equal(got.stats.rejected_by[TP_CHROME_TOO_LARGE], 2);
    assert_string_equal(got.stats.last_rejection, "byte 0: longer than 40 bytes");
}

static void test_tracks_are_limited(void **state)
{
    const struct tp_chrome_reader_opts opts = {.tracks_max = 2};
    struct chrome_reading got;

    (void)state;
    got = chrome_limited(
        opts,
        "[{\"ph\":\"i\",\"ts\":1,\"tid\":1},{\"ph\":\"i\",\"ts\":1,\"tid\":2},"
        "{\"ph\":\"i\",\"ts\":1,\"tid\":3},{\"ph\":\"i\",\"ts\":1,\"tid\":1}]",
        "i 1000 -/1\ni 1000 -/2\ni 1000 -/1\n");
    assert_int_equal(got.stats.rejected, 1);
    assert_int_equal(got.stats.rejected_by[TP_CHROME_OVER_TRACKS], 1);
    assert_string_equal(got.stats.last_rejection,
                        "byte 53: more than 2 pairs of pid and tid");
}

static void test_members_over_a_limit_are_left_out(void **state)
{
    struct chrome_reading got;

    (void)state;
    got = chrome_limited(
        (struct tp_chrome_reader_opts){.member_bytes = 10},
        "{\"a\":\"0123456789\",\"b\":1,\"c\":[1,2,3,4,5,6],\"traceEvents\":[" CHROME_A
        "]}",
        "# \"b\": 1\n" CHROME_A_OUT);
    assert_int_equal(got.stats.members_left_out, 2);
    got = chrome_limited((struct tp_chrome_reader_opts){.members_bytes = 10},
                         "{\"a\":\"012\",\"b\":\"012345\",\"c\":12}",
                         "# \"a\": \"012\"\n# \"c\": 12\n");
    assert_int_equal(got.stats.members_left_out, 1);
    got = chrome_limited(
        (struct tp_chrome_reader_opts){.name_bytes = 4},
        "{\"abcde\":1,\"abcdefghijklmnopqrstuvwxyz0123456789\":2,\"c\":3}",
        "# \"c\": 3\n");
    assert_int_equal(got.stats.members_left_out, 2);
    got = chrome_limited((struct tp_chrome_reader_opts){.depth_max = 2},
                         "{\"a\":[[1]],\"b\":[[[1]]],\"c\":3}",
                         "# \"a\": [[1]]\n# \"c\": 3\n");
    assert_int_equal(got.stats.members_left_out, 1);
}

static void test_damage_before_a_limit_is_found(void **state)
{
    const struct tp_chrome_reader_opts opts = {.event_bytes = 30};

    (void)state;
    chrome_refuse_with(&opts, "[{\"ph\":\"i\";\"ts\":1,\"name\":\"0123456789\"}]",
                       "byte 10: ',' or '}' was expected", "");
}

static void test_deep_nesting_costs_no_stack(void **state)
{
    const struct tp_chrome_reader_opts opts = {0};
    const size_t n = 1000000;
    char *text = malloc(n + 20);
    struct chrome_reading got;

    (void)state;
    assert_non_null(text);
    memcpy(text, "[{\"a\":", 6);
    memset(text + 6, '[', n);
    got = chrome_read_pieces(&opts, text, n + 6, n + 6, 1);
    assert_int_equal(got.rc, TP_EINVAL);
    assert_string_equal(got.err.message,
                        "byte 1000006: the input ends inside a value that "
                        "starts at byte 1");
    assert_int_equal(got.stats.rejected, 1);
    tp_buf_fini(&got.text);
    free(text);
}

/* An event of nearly a megabyte that comes a byte at a time: each byte is looked at a
 * bounded number of times. If the start were read again for each piece, this would take
 * hours. */
static void test_tiny_pieces_of_a_large_event_are_linear(void **state)
{
    const struct tp_chrome_reader_opts opts = {0};
    const size_t n = (1U << 20) - 100;
    char *text = malloc(n + 100);
    struct chrome_reading got;
    size_t len;

    (void)state;
    assert_non_null(text);
    len = (size_t)snprintf(text, 100, "[{\"ph\":\"i\",\"ts\":1,\"args\":{\"k\":\"");
    memset(text + len, 'x', n);
    memcpy(text + len + n, "\"}}]", 4);
    got = chrome_read_pieces(&opts, text, len + n + 4, 1, 1);
    assert_int_equal(got.rc, TP_OK);
    assert_int_equal(got.stats.events, 1);
    assert_int_equal(got.stats.rejected, 0);
    tp_buf_fini(&got.text);
    free(text);
}

/* --- callbacks, memory, reuse ----------------------------------------------------- */

static int stop_event(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    (void)ev;
    (void)arg;
    return tp_fail(err, TP_EAGAIN, "enough");
}

static int stop_member(struct tp_str key, struct tp_str json, struct tp_err *err,
                       void *arg)
{
    (void)key;
    (void)json;
    (void)arg;
    return tp_fail(err, TP_EQUOTA, "too much");
}

static void test_a_callback_stops_the_reader_for_good(void **state)
{
    const struct tp_chrome_reader_opts opts = {.on_event = stop_event,
                                               .on_member = stop_member};
    static const char *const texts[] = {"[" CHROME_A "," CHROME_B "]", "{\"k\":1}"};
    static const int codes[] = {TP_EAGAIN, TP_EQUOTA};

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (size_t piece = 1; piece < 100; piece += 98) {
            struct tp_chrome_reader *r;
            struct tp_err err = {0};
            int rc = TP_OK;

            assert_int_equal(tp_chrome_reader_new(&opts, &r, &err), TP_OK);
            for (size_t k = 0; k < strlen(texts[i]) && rc == TP_OK; k += piece)
                rc = chrome_feed_copy(
                    r, texts[i] + k,
                    piece < strlen(texts[i]) - k ? piece : strlen(texts[i]) - k, &err);
            assert_int_equal(rc, codes[i]);
            assert_string_equal(err.message, i == 0 ? "enough" : "too much");
            assert_int_equal(tp_chrome_reader_finish(r, &err), codes[i]);
            tp_chrome_reader_free(r);
        }
}

static void test_reset_starts_over(void **state)
{
    struct chrome_reading reading = {0};
    const struct tp_chrome_reader_opts opts = {.on_event = chrome_show_event,
                                               .arg = &reading,
                                               .tracks_max = 1};
    struct tp_chrome_reader *r;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_chrome_reader_new(&opts, &r, &err), TP_OK);
    assert_int_equal(tp_chrome_reader_feed(r, "[" CHROME_A ",{\"ph\"", 59, &err),
                     TP_OK);
    tp_chrome_reader_reset(r);
    assert_int_equal(tp_chrome_reader_stats(r)->events, 0);
    assert_int_equal(tp_chrome_reader_feed(r, "]", 1, &err), TP_EINVAL);
    tp_chrome_reader_reset(r);
    /* The one track that is allowed is free again as well. */
    assert_int_equal(tp_chrome_reader_feed(r, "[{\"ph\":\"i\",\"ts\":1,\"tid\":9}]", 27,
                                           &err),
                     TP_OK);
    assert_int_equal(tp_chrome_reader_finish(r, &err), TP_OK);
    assert_int_equal(tp_chrome_reader_stats(r)->rejected, 0);
    tp_chrome_reader_free(r);
    tp_buf_fini(&reading.text);
    tp_chrome_reader_free(NULL);
}

static int count_event(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    (void)ev;
    (void)err;
    ++*(int *)arg;
    return TP_OK;
}

/* Reads something that makes every part of the reader allocate. */
static int read_all_parts(size_t piece, int *n_events, struct tp_err *err)
{
    static const char text[] =
        "{\"m\\n\":[\n1,NaN],\"b\":2,\"traceEvents\":[" CHROME_A
        ",{\"ph\":\"i\",\"ts\":1,\"pid\":\"text\",\"tid\":\"\",\"name\":\"\\u0041\","
        "\"args\":{\"k\":[\n1],\"s\":\"\\n\"},\"x\":{\"\xff\":1}},junk," CHROME_B "]}";
    const struct tp_chrome_reader_opts opts = {.on_event = count_event,
                                               .arg = n_events,
                                               .salvage = true};
    struct tp_chrome_reader *r = NULL;
    int rc = tp_chrome_reader_new(&opts, &r, err);

    for (size_t i = 0; i < strlen(text) && rc == TP_OK; i += piece)
        rc = tp_chrome_reader_feed(r, text + i,
                                   piece < strlen(text) - i ? piece : strlen(text) - i,
                                   err);
    if (rc == TP_OK)
        rc = tp_chrome_reader_finish(r, err);
    tp_chrome_reader_free(r);
    return rc;
}

static void test_reader_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= 1001; piece += 50)
        for (int n = 0;; n++) {
            struct tp_err err = {0};
            int n_events = 0;
            int rc;

            fault_arm(n);
            rc = read_all_parts(piece, &n_events, &err);
            if (!fault_disarm()) {
                assert_int_equal(rc, TP_OK);
                assert_int_equal(n_events, 3);
                break;
            }
            if (rc != TP_ENOMEM)
                fail_msg("pieces of %zu, failure %d: %d %s", piece, n, rc, err.message);
            assert_true(err.message[0] != '\0');
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_events),
        cmocka_unit_test(test_bad_lines_are_named),
        cmocka_unit_test(test_salvaged_lines_lose_only_the_bad_ones),
        cmocka_unit_test(test_each_limit_costs_one_event),
        cmocka_unit_test(test_limits_hold_for_lines),
        cmocka_unit_test(test_tracks_are_limited),
        cmocka_unit_test(test_members_over_a_limit_are_left_out),
        cmocka_unit_test(test_damage_before_a_limit_is_found),
        cmocka_unit_test(test_deep_nesting_costs_no_stack),
        cmocka_unit_test(test_tiny_pieces_of_a_large_event_are_linear),
        cmocka_unit_test(test_a_callback_stops_the_reader_for_good),
        cmocka_unit_test(test_reset_starts_over),
        cmocka_unit_test(test_reader_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
