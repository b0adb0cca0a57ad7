/*
 * test_json_members.c - walking over the members of an object.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json_members.h"
#include "support/fault.h"

static const char sample[] =
    " { \"a\" : 1 , \"b\":\"x\\\"},{\\u00e9\",\"c\": [1, {\"d\": \"]\"}, []] ,"
    "\"n\":null,\"o\":{},\"a\":-7}";

static void test_members_come_in_order_with_their_text(void **state)
{
    static const char *const want[] = {
        "a=1", "b=\"x\\\"},{\\u00e9\"", "c=[1, {\"d\": \"]\"}, []]", "n=null", "o={}",
        "a=-7"};
    struct tp_json c;
    struct tp_str key;
    struct tp_str value;
    size_t n = 0;

    (void)state;
    assert_true(tp_json_members_open(tp_str_of(sample), &c));
    while (tp_json_members_next(&c, &key, &value)) {
        assert_true(n < 6);
        assert_int_equal(key.len, 1);
        assert_memory_equal(key.ptr, want[n], 1);
        assert_true(tp_str_is(value, want[n] + 2));
        n++;
    }
    assert_int_equal(n, 6);
}

static void test_the_last_of_equal_keys_counts(void **state)
{
    struct tp_str value;
    int64_t v;

    (void)state;
    assert_true(tp_json_members_find(tp_str_of(sample), "a", &value));
    assert_true(tp_json_members_int(value, &v));
    assert_int_equal(v, -7);
    assert_false(tp_json_members_find(tp_str_of(sample), "d", &value));
    assert_false(tp_json_members_int(tp_str_of("1.5"), &v));
    assert_false(tp_json_members_int(tp_str_of("\"1\""), &v));
}

static void test_what_is_no_object_has_no_members(void **state)
{
    static const char *const cases[] = {"",          "[1]",       "1",        "{}",
                                        "{",         "{,}",       "{\"a",     "{\"a\"",
                                        "{\"a\":",   "{\"a\":}",  "{\"a\":]", "{1:2}",
                                        "{\"a\":[1", "{\"a\":\"x"};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct tp_json c;

        tp_json_members_open(tp_str_of(cases[i]), &c);
        if (tp_json_members_next(&c, NULL, NULL))
            fail_msg("'%s' has a member", cases[i]);
    }
}

/* Every beginning of the sample, in memory of exactly its size: ASan watches. */
static void test_text_may_end_anywhere(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(sample); n++) {
        char *text = malloc(n + 1);
        char *exact = realloc(text, n == 0 ? 1 : n);
        struct tp_json c;

        assert_non_null(exact);
        memcpy(exact, sample, n);
        tp_json_members_open((struct tp_str){exact, n}, &c);
        while (tp_json_members_next(&c, NULL, NULL))
            ;
        free(exact);
    }
}

static void test_texts_are_decoded(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_buf b = {0};
        struct tp_err err;
        struct tp_str value = {0};
        int rc;

        assert_true(tp_json_members_find(tp_str_of(sample), "b", &value));
        fault_arm(n);
        rc = tp_json_members_text(value, &b, &err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(b.len, 7);
            assert_memory_equal(b.data, "x\"},{\xc3\xa9", 7);
            tp_buf_fini(&b);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        tp_buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_come_in_order_with_their_text),
        cmocka_unit_test(test_the_last_of_equal_keys_counts),
        cmocka_unit_test(test_what_is_no_object_has_no_members),
        cmocka_unit_test(test_text_may_end_anywhere),
        cmocka_unit_test(test_texts_are_decoded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
