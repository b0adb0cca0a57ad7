/*
 * test_id2.c - ids of asynchronous operations of several streams, told apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "support/fault.h"
#include "trace/id2.h"

static struct tp_event begin(const char *extra)
{
    return (struct tp_event){.kind = TP_EVENT_ASYNC_BEGIN, .extra = tp_str_of(extra)};
}

static void test_a_global_id_gets_the_stream_and_all_else_stays(void **state)
{
    static const struct {
        const char *extra, *want; /* NULL: unchanged */
    } cases[] = {
        {"\"id2\":{\"global\":\"0x5\"}", "\"id2\":{\"global\":\"7:0x5\"}"},
        {"\"a\":[1,{}],\"id2\": {\"x\":1, \"global\" : \"\" },\"b\":\"id2\"",
         "\"a\":[1,{}],\"id2\": {\"x\":1, \"global\" : \"7:\" },\"b\":\"id2\""},
        {"\"id2\":{\"global\":-12}", "\"id2\":{\"global\":\"7:-12\"}"},
        {"\"id2\":{\"global\":\"q\\\"\"}", "\"id2\":{\"global\":\"7:q\\\"\"}"},
        {"\"id2\":{\"local\":\"0x5\"}", NULL},
        {"\"id2\":{\"local\":\"0x5\",\"global\":\"0x5\"}", NULL},
        {"\"id2\":{\"global\":[1]}", NULL},
        {"\"id2\":{\"global\":null}", NULL},
        {"\"id2\":{}", NULL},
        {"\"id2\":\"0x5\"", NULL},
        {"\"global\":\"0x5\"", NULL},
        {"", NULL},
    };
    struct tp_buf out = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_event ev = begin(cases[i].extra);
        bool is_changed = cases[i].want == NULL;
        struct tp_err err;

        assert_int_equal(tp_id2_separate(&ev, 7, &out, &is_changed, &err), TP_OK);
        if (is_changed != (cases[i].want != NULL) ||
            (is_changed && (out.len != strlen(cases[i].want) ||
                            memcmp(out.data, cases[i].want, out.len) != 0)))
            fail_msg("of %s came %.*s", cases[i].extra, (int)out.len, out.data);
    }
    tp_buf_fini(&out);
}

static void test_events_that_are_not_asynchronous_or_have_an_id_are_left(void **state)
{
    struct tp_event ev = begin("\"id2\":{\"global\":\"0x5\"}");
    struct tp_buf out = {0};
    bool is_changed = true;
    struct tp_err err;

    (void)state;
    ev.id = (struct tp_id){.kind = TP_ID_NUMBER, .number = 1};
    assert_int_equal(tp_id2_separate(&ev, 7, &out, &is_changed, &err), TP_OK);
    assert_false(is_changed);
    ev.id.kind = TP_ID_NONE;
    ev.kind = TP_EVENT_SLICE;
    is_changed = true;
    assert_int_equal(tp_id2_separate(&ev, 7, &out, &is_changed, &err), TP_OK);
    assert_false(is_changed);
    assert_null(out.data);
}

static void test_each_allocation_may_fail(void **state)
{
    struct tp_event ev = begin("\"id2\":{\"global\":\"0x5\"}");

    (void)state;
    for (int n = 0;; n++) {
        struct tp_buf out = {0};
        bool is_changed;
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_id2_separate(&ev, 7, &out, &is_changed, &err);
        tp_buf_fini(&out);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_true(n > 0);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_global_id_gets_the_stream_and_all_else_stays),
        cmocka_unit_test(test_events_that_are_not_asynchronous_or_have_an_id_are_left),
        cmocka_unit_test(test_each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
