/*
 * test_json_doc.c - documents written front to back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "support/fault.h"

static int write_sample(struct tp_buf *b, struct tp_err *err)
{
    struct tp_json_doc d;

    tp_json_doc_init(&d, b, err);
    tp_json_doc_object(&d);
    tp_json_doc_line(&d, 2);
    tp_json_doc_member_u64(&d, "u", UINT64_MAX);
    tp_json_doc_line(&d, 2);
    tp_json_doc_member_i64(&d, "i", -1);
    tp_json_doc_member_bool(&d, "b", true);
    tp_json_doc_member_str(&d, "quo\"te", tp_str_of("x\ny"));
    tp_json_doc_member_raw(&d, "r", tp_str_of("[1]"));
    tp_json_doc_key(&d, "a");
    tp_json_doc_array(&d);
    tp_json_doc_array(&d);
    tp_json_doc_close(&d);
    tp_json_doc_object(&d);
    tp_json_doc_close(&d);
    tp_json_doc_u64(&d, 1);
    tp_json_doc_bool(&d, false);
    tp_json_doc_close(&d);
    tp_json_doc_line(&d, 0);
    tp_json_doc_key_str(&d, (struct tp_str){"last one", 4});
    tp_json_doc_i64(&d, 2);
    tp_json_doc_line(&d, 1);
    tp_json_doc_close(&d);
    return tp_json_doc_end(&d);
}

static const char want[] =
    "{\n  \"u\": 18446744073709551615,\n  \"i\": -1, \"b\": true, "
    "\"quo\\\"te\": \"x\\ny\", \"r\": [1], \"a\": [[], {}, 1, false],\n"
    "\"last\": 2\n }";

static void test_commas_are_between_and_never_behind(void **state)
{
    struct tp_buf b = {0};
    struct tp_err err;

    (void)state;
    assert_int_equal(write_sample(&b, &err), TP_OK);
    assert_int_equal(b.len, sizeof(want) - 1);
    assert_memory_equal(b.data, want, b.len);
    tp_buf_fini(&b);
}

static void test_the_first_failure_sticks(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_buf b = {0};
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = write_sample(&b, &err);
        tp_buf_fini(&b);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

static void test_a_limit_is_reported_at_the_end(void **state)
{
    (void)state;
    for (size_t limit = 1; limit < sizeof(want) - 1; limit++) {
        struct tp_buf b = {.limit_bytes = limit};
        struct tp_err err;

        assert_int_equal(write_sample(&b, &err), TP_EQUOTA);
        assert_true(b.len <= limit);
        tp_buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commas_are_between_and_never_behind),
        cmocka_unit_test(test_the_first_failure_sticks),
        cmocka_unit_test(test_a_limit_is_reported_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
