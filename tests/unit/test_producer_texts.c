/*
 * A text has one number for the whole process, whoever asks; what is no text has one
 * too, and nothing is remembered without end. Tracks of devices likewise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <traceplane/traceplane.h>

#include "base/utf8.h"
#include "producer/device_tracks.h"
#include "producer/texts.h"
#include "support/fault.h"

static void expect(uint32_t number, const char *text)
{
    struct tp_str s = tp_texts_get(number);

    if (!tp_str_is(s, text))
        fail_msg("%u is '%.*s' and not '%s'", number, (int)s.len, s.ptr, text);
}

static void test_equal_texts_have_one_number(void **state)
{
    char copy[] = "matmul";
    uint32_t number = tp_intern("matmul");

    (void)state;
    assert_int_not_equal(number, 0);
    assert_int_equal(tp_intern(copy), number);
    copy[0] = 'M';
    assert_int_not_equal(tp_intern(copy), number);
    expect(number, "matmul");
    assert_true(number <= tp_texts_count());
    assert_int_equal(TP_NAME("matmul"), number);
}

static void test_numbers_that_were_not_given_are_empty(void **state)
{
    (void)state;
    expect(0, "");
    expect(UINT32_MAX, "");
    expect(tp_texts_count() + 1, "");
    expect(tp_intern(NULL), "");
}

static void test_invalid_and_long_texts_are_made_valid(void **state)
{
    char text[3000];

    (void)state;
    expect(tp_intern("a\xff z"), "a\xef\xbf\xbd z");
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    memcpy(text + TP_TEXT_BYTES_MAX - 20, "\xc3\xa9", 2); /* is not cut in two */
    assert_int_equal(tp_texts_get(tp_intern(text)).len, TP_TEXT_BYTES_MAX - 1);
}

/* Names of kernels that are instances of one template. */
static void test_long_texts_that_begin_alike_stay_apart(void **state)
{
    static const char *const begins[] = {"a", "\xff"}; /* one grows when repaired */
    char text[2000];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        uint32_t one, other;
        struct tp_str s;

        memset(text, begins[i][0], sizeof(text));
        snprintf(text + 1500, sizeof(text) - 1500, "<float>");
        one = tp_intern(text);
        assert_int_equal(tp_intern(text), one);
        snprintf(text + 1500, sizeof(text) - 1500, "<double>");
        other = tp_intern(text);
        assert_int_not_equal(one, other);
        s = tp_texts_get(other);
        assert_in_range(s.len, TP_TEXT_BYTES_MAX - 3, TP_TEXT_BYTES_MAX);
        assert_true(tp_utf8_is_valid(s.ptr, s.len));
        assert_memory_equal(s.ptr + s.len - 19, "...", 3);
    }
    memset(text, 'a', sizeof(text));
    text[TP_TEXT_BYTES_MAX] = '\0';
    expect(tp_intern(text), text); /* as long as may be: as it is */
}

static void test_a_text_without_memory_is_number_0(void **state)
{
    (void)state;
    for (int n = 0; n < 10; n++) {
        char text[64];
        uint32_t number;

        snprintf(text, sizeof(text), "text with an \xff of round %d", n);
        fault_arm(n);
        number = tp_intern(text);
        if (!fault_disarm()) {
            assert_int_not_equal(number, 0);
            return;
        }
        assert_int_equal(number, 0);
    }
    fail_msg("more than ten allocations");
}

static void test_device_tracks_have_one_number_each(void **state)
{
    struct tp_device_track_info info;
    uint32_t a = tp_device_track(3, 1);
    uint32_t b = tp_device_track(3, 2);

    (void)state;
    assert_int_not_equal(a, TP_TRACK_THREAD);
    assert_int_not_equal(a, b);
    assert_int_equal(tp_device_track(3, 1), a);
    assert_true(tp_device_tracks_get(b, &info));
    assert_int_equal(info.device, 3);
    assert_int_equal(info.stream, 2);
    assert_int_equal(info.first, a);
    assert_false(tp_device_tracks_get(TP_TRACK_THREAD, &info));
    assert_false(tp_device_tracks_get(UINT32_MAX, &info));
}

static void test_device_tracks_end_at_their_limit(void **state)
{
    struct tp_device_track_info info;
    uint32_t last = 0;

    (void)state;
    for (uint32_t i = 0; i < TP_DEVICE_TRACKS_MAX + 10; i++) {
        uint32_t number = tp_device_track(100, i);

        if (number != TP_TRACK_THREAD)
            last = number;
    }
    assert_int_equal(last, 4095);
    assert_int_equal(tp_device_track(101, 0), TP_TRACK_THREAD);
    assert_true(tp_device_tracks_get(TP_DEVICE_TRACKS_MAX, &info));
}

/* Intern texts of a length until one gets no number, or there are that many. */
static void fill(int length, uint32_t most)
{
    char text[1024];

    for (uint32_t i = 0; i < most; i++) {
        snprintf(text, sizeof(text), "%0*u", length, i);
        if (tp_intern(text) == 0)
            return;
    }
}

/* The table is the process's, so it is filled in a child: by their number, or by
 * their bytes. Exit code 0 when it ends where it should. */
static int be_full(bool by_number)
{
    uint32_t known = tp_intern("known before");
    uint32_t n_1000 = (64u << 20) / 1000;
    char text[1024];

    if (by_number)
        fill(8, 1100000);
    else
        fill(1000, n_1000 + 10000);
    if (by_number && tp_texts_count() != 1048575)
        return 1;
    if (!by_number &&
        (tp_texts_count() < n_1000 - 100 || tp_texts_count() > n_1000 + 100))
        return 2;
    snprintf(text, sizeof(text), "%01000d", -1);
    if (tp_intern(text) != 0)
        return 3;
    return tp_intern("known before") == known && known != 0 ? 0 : 4;
}

static void test_texts_end_at_their_limits(void **state)
{
    (void)state;
    for (int by_number = 0; by_number < 2; by_number++) {
        int status = 0;
        pid_t child = fork();

        if (child == 0)
            _exit(be_full(by_number));
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0)
            fail_msg("by %s: status %#x", by_number ? "number" : "bytes",
                     (unsigned)status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_texts_have_one_number),
        cmocka_unit_test(test_numbers_that_were_not_given_are_empty),
        cmocka_unit_test(test_invalid_and_long_texts_are_made_valid),
        cmocka_unit_test(test_long_texts_that_begin_alike_stay_apart),
        cmocka_unit_test(test_a_text_without_memory_is_number_0),
        cmocka_unit_test(test_texts_end_at_their_limits),
        cmocka_unit_test(test_device_tracks_have_one_number_each),
        cmocka_unit_test(test_device_tracks_end_at_their_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
