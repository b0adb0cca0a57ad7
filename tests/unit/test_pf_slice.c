/*
 * test_pf_slice.c - parts of sealed streams.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/fault.h"
#include "support/sealed.h"
#include "trace/pf_slice.h"

static void make(struct sealed *s)
{
    const struct tp_event ev = {.kind = TP_EVENT_SLICE,
                                .ts_ns = 1000,
                                .dur_ns = 10,
                                .name = {"a name", 6, 0},
                                .track = NULL};
    struct tp_event one = ev;

    sealed_init(s, 1);
    one.track = sealed_track(s, 1, 1, 0);
    sealed_add(s, &one);
}

static struct tp_str all(const struct sealed *s)
{
    return (struct tp_str){s->bytes.data, s->bytes.len};
}

static void test_what_passes_is_copied(void **state)
{
    struct tp_pf_slice *p;
    struct tp_buf out = {0};
    struct sealed s;
    struct tp_err err;

    (void)state;
    make(&s);
    assert_int_equal(tp_pf_slice_new(1, &p, &err), TP_OK);
    assert_int_equal(tp_pf_slice_add(p, all(&s), true, &out, &err), TP_OK);
    assert_int_equal(out.len, s.bytes.len);
    assert_memory_equal(out.data, s.bytes.data, out.len);
    tp_pf_slice_free(p);
    tp_buf_fini(&out);
    sealed_fini(&s);
}

static void test_what_does_not_leaves_its_names(void **state)
{
    struct tp_pf_slice *p;
    struct tp_buf out = {0};
    struct sealed s;
    struct tp_err err;

    (void)state;
    make(&s);
    assert_int_equal(tp_pf_slice_new(1, &p, &err), TP_OK);
    assert_int_equal(tp_pf_slice_add(p, all(&s), false, &out, &err), TP_OK);
    assert_true(out.len > 0 && out.len < s.bytes.len);
    assert_non_null(memmem(out.data, out.len, "a name", 6));
    tp_pf_slice_free(p);
    tp_buf_fini(&out);
    sealed_fini(&s);
}

/* Any bytes give an answer: each byte changed, each length. */
static void test_damage_is_refused_or_copied_but_safe(void **state)
{
    struct sealed s;

    (void)state;
    make(&s);
    for (size_t i = 0; i < s.bytes.len; i++) {
        const struct tp_str cut = {s.bytes.data, i};
        struct tp_pf_slice *p;
        struct tp_buf out = {0};
        struct tp_err err;
        int rc;

        assert_int_equal(tp_pf_slice_new(1, &p, &err), TP_OK);
        rc = tp_pf_slice_add(p, cut, i % 2 == 0, &out, &err);
        assert_true(rc == TP_OK || rc == TP_EIO);
        s.bytes.data[i] = (char)(s.bytes.data[i] ^ 0x55);
        rc = tp_pf_slice_add(p, all(&s), i % 2 == 0, &out, &err);
        assert_true(rc == TP_OK || rc == TP_EIO);
        s.bytes.data[i] = (char)(s.bytes.data[i] ^ 0x55);
        tp_pf_slice_free(p);
        tp_buf_fini(&out);
    }
    sealed_fini(&s);
}

static void test_each_allocation_fails_cleanly(void **state)
{
    struct sealed s;

    (void)state;
    make(&s);
    for (int n = 0;; n++) {
        struct tp_pf_slice *p = NULL;
        struct tp_buf out = {0};
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_pf_slice_new(1, &p, &err);
        if (rc == TP_OK)
            rc = tp_pf_slice_add(p, all(&s), n % 2 == 0, &out, &err);
        tp_pf_slice_free(p);
        tp_buf_fini(&out);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
    sealed_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_passes_is_copied),
        cmocka_unit_test(test_what_does_not_leaves_its_names),
        cmocka_unit_test(test_damage_is_refused_or_copied_but_safe),
        cmocka_unit_test(test_each_allocation_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
