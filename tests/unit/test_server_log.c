/*
 * Log lines, read back from a pipe.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/log.h"

struct pen {
    struct tp_log log;
    int read_fd;
    char text[8192]; /* what came last */
};

static int set_up(void **state)
{
    static struct pen pen;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pen =
        (struct pen){.log = {.fd = ends[1], .level = TP_LOG_INFO}, .read_fd = ends[0]};
    *state = &pen;
    return 0;
}

static int tear_down(void **state)
{
    struct pen *pen = *state;

    close(pen->log.fd);
    close(pen->read_fd);
    return 0;
}

/* One read is one line: each is written by one call. */
static const char *line(struct pen *pen)
{
    ssize_t n = read(pen->read_fd, pen->text, sizeof(pen->text) - 1);

    assert_true(n > 0);
    pen->text[n] = '\0';
    assert_int_equal(pen->text[n - 1], '\n');
    assert_ptr_equal(strchr(pen->text, '\n'), pen->text + n - 1);
    return pen->text;
}

static void check_written(struct pen *pen, const char *value, const char *written)
{
    char whole[128];

    tp_log(&pen->log, TP_LOG_INFO, "e", "k", value, NULL);
    snprintf(whole, sizeof(whole), " event=e k=%s\n", written);
    if (strstr(line(pen), whole) == NULL)
        fail_msg("'%s' is written as '%s'", value, pen->text);
}

static void test_a_line_is_time_level_event_and_pairs(void **state)
{
    struct pen *pen = *state;
    const char *text;

    tp_log(&pen->log, TP_LOG_WARNING, "some-event", "a", "1", "left-out", NULL, "b",
           "two words", NULL);
    text = line(pen);
    assert_int_equal(strncmp(text, "time=20", 7), 0);
    assert_non_null(
        strstr(text, "Z level=warning event=some-event a=1 b=\"two words\"\n"));
}

static void test_a_value_cannot_leave_its_line_or_its_pair(void **state)
{
    struct pen *pen = *state;

    check_written(pen, "plain-/:.", "plain-/:.");
    check_written(pen, "", "\"\"");
    check_written(pen, "a\nlevel=error", "\"a\\u000alevel=error\"");
    check_written(pen, "say \"hi\" \\", "\"say \\\"hi\\\" \\\\\"");
    check_written(pen, "\x1b[31m", "\"\\u001b[31m\"");
    check_written(pen, "\x7f", "\"\\u007f\"");
    check_written(pen, "a=b", "\"a=b\"");
    check_written(pen, "\xc3\xa4", "\xc3\xa4");
}

static void test_what_is_above_the_level_is_left_out(void **state)
{
    struct pen *pen = *state;

    tp_log(&pen->log, TP_LOG_DEBUG, "debug", NULL);
    tp_log(&pen->log, TP_LOG_ERROR, "error", NULL);
    assert_non_null(strstr(line(pen), "event=error\n"));
}

static void test_a_value_that_is_too_long_is_cut_and_the_line_ends(void **state)
{
    struct pen *pen = *state;
    char lengthy[5000];

    for (int spaces = 0; spaces < 2; spaces++) {
        memset(lengthy, 'x', sizeof(lengthy) - 1);
        lengthy[sizeof(lengthy) - 1] = '\0';
        lengthy[0] = spaces ? ' ' : 'x';
        tp_log(&pen->log, TP_LOG_INFO, "e", "k", lengthy, "after", "1", NULL);
        assert_true(strlen(line(pen)) <= 2048);
        assert_null(strstr(pen->text, "after"));
        assert_int_equal(pen->text[strlen(pen->text) - 2], spaces ? '"' : 'x');
    }
}

static void test_levels_are_found_by_name(void **state)
{
    (void)state;
    assert_int_equal(tp_log_level_find("error"), TP_LOG_ERROR);
    assert_int_equal(tp_log_level_find("debug"), TP_LOG_DEBUG);
    assert_int_equal(tp_log_level_find("Debug"), -1);
    assert_int_equal(tp_log_level_find(""), -1);
}

/* A second may end in the middle, so up to twice as many pass. */
static void test_repeated_lines_are_limited_and_those_left_out_are_told(void **state)
{
    struct pen *pen = *state;
    int passed = 0;

    for (int i = 0; i < 1000; i++)
        passed += tp_log_may_repeat(&pen->log);
    assert_true(passed >= 20 && passed <= 40);
    pen->log.window_s = 0; /* as when the second is over */
    assert_true(tp_log_may_repeat(&pen->log));
    assert_non_null(strstr(line(pen), "event=lines-left-out count=9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_line_is_time_level_event_and_pairs,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_value_cannot_leave_its_line_or_its_pair,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_above_the_level_is_left_out,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_value_that_is_too_long_is_cut_and_the_line_ends, set_up, tear_down),
        cmocka_unit_test(test_levels_are_found_by_name),
        cmocka_unit_test_setup_teardown(
            test_repeated_lines_are_limited_and_those_left_out_are_told, set_up,
            tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
