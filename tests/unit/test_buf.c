/*
 * test_buf.c - a buffer keeps what it was given, and stops at its limit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "support/fault.h"

static void test_bytes_come_back_in_order_however_they_were_appended(void **state)
{
    struct tp_buf b = {0};
    const char *expected = "one, two\n300";

    (void)state;
    assert_int_equal(tp_buf_append(&b, "one, ", 5, NULL), TP_OK);
    assert_int_equal(tp_buf_append_str(&b, "two", NULL), TP_OK);
    assert_int_equal(tp_buf_append(&b, NULL, 0, NULL), TP_OK);
    assert_int_equal(tp_buf_printf(&b, NULL, "\n%d", 300), TP_OK);
    assert_int_equal(b.len, strlen(expected));
    assert_memory_equal(b.data, expected, b.len);
    tp_buf_fini(&b);
    assert_null(b.data);
    tp_buf_fini(&b);
    tp_buf_fini(NULL);
}

static void test_long_formatted_text_is_whole(void **state)
{
    struct tp_buf b = {0};

    (void)state;
    assert_int_equal(tp_buf_printf(&b, NULL, "%01000d", 7), TP_OK);
    assert_int_equal(b.len, 1000);
    assert_int_equal(b.data[999], '7');
    tp_buf_fini(&b);
}

static void test_the_limit_is_reachable_and_never_passed(void **state)
{
    struct tp_buf b = {.limit_bytes = 100};
    struct tp_err err = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(tp_buf_append(&b, "x", 1, &err), TP_OK);
    assert_int_equal(tp_buf_append(&b, "x", 1, &err), TP_EQUOTA);
    assert_non_null(strstr(err.message, "100"));
    assert_int_equal(b.len, 100);
    assert_int_equal(tp_buf_printf(&b, &err, "%s", "y"), TP_EQUOTA);
    assert_int_equal(tp_buf_reserve(&b, SIZE_MAX, &err), TP_ENOMEM);
    assert_true(b.cap <= 100);
    tp_buf_fini(&b);
    assert_int_equal(b.limit_bytes, 100);
}

static void test_consume_moves_the_rest_to_the_front(void **state)
{
    struct tp_buf b = {0};

    (void)state;
    tp_buf_append_str(&b, "abcdef", NULL);
    tp_buf_consume(&b, 0);
    tp_buf_consume(&b, 2);
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.data, "cdef", 4);
    tp_buf_consume(&b, 4);
    assert_int_equal(b.len, 0);
    tp_buf_fini(&b);
}

static void test_failed_allocations_leave_the_content(void **state)
{
    struct tp_buf b = {0};

    (void)state;
    tp_buf_append_str(&b, "kept", NULL);
    for (int n = 0;; n++) {
        int rc;

        fault_arm(n);
        rc = tp_buf_printf(&b, NULL, "%02000d", 1);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(n, 2); /* the text and the buffer */
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_int_equal(b.len, 4);
        assert_memory_equal(b.data, "kept", 4);
    }
    tp_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_come_back_in_order_however_they_were_appended),
        cmocka_unit_test(test_long_formatted_text_is_whole),
        cmocka_unit_test(test_the_limit_is_reachable_and_never_passed),
        cmocka_unit_test(test_consume_moves_the_rest_to_the_front),
        cmocka_unit_test(test_failed_allocations_leave_the_content),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
