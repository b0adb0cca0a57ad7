/*
 * What became of events, by type.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/type_counts.h"
#include "support/fault.h"

static struct tp_type_count *get(struct tp_type_counts *c, unsigned id)
{
    struct tp_type_count *t = NULL;

    assert_int_equal(tp_type_counts_get(c, id, &t, NULL), TP_OK);
    return t;
}

/* Two types, 15 emitted in all. */
static void fill(struct tp_type_counts *c)
{
    struct tp_type_count *t = get(c, 57);

    t->emitted = 10;
    t->stored = 6;
    t->filtered = 1;
    t->dropped[TP_DROP_RING_FULL] = 2;
    t = get(c, 4);
    t->emitted = 5;
    t->stored = 5;
}

static void test_types_are_in_order_and_there_once(void **state)
{
    struct tp_type_counts c = {0};
    struct tp_type_count *t;

    (void)state;
    for (unsigned i = 0; i < 512; i++)
        get(&c, (i * 37) & 255)->emitted++;
    assert_int_equal(c.n, 256);
    for (unsigned i = 0; i < 256; i++) {
        assert_int_equal(c.items[i].id, i);
        assert_int_equal(c.items[i].emitted, 2);
    }
    assert_int_equal(tp_type_counts_get(&c, 256, &t, NULL), TP_EINVAL);
    tp_type_counts_fini(&c);
}

static void test_text_reads_back_as_it_was(void **state)
{
    struct tp_type_counts c = {0}, back = {0};
    struct tp_buf text = {0};

    (void)state;
    fill(&c);
    get(&c, 255)->emitted = UINT64_MAX;
    assert_int_equal(tp_type_counts_write(&c, &text, NULL), TP_OK);
    assert_int_equal(
        tp_type_counts_read((struct tp_str){text.data, text.len}, &back, NULL), TP_OK);
    assert_int_equal(back.n, 3);
    assert_memory_equal(back.items, c.items, 3 * sizeof(*c.items));
    tp_type_counts_fini(&c);
    tp_type_counts_fini(&back);
    tp_buf_fini(&text);
}

static void test_text_of_fewer_causes_is_read_and_other_text_is_not(void **state)
{
    static const char *const wrong[] = {"4 1 1\n",
                                        "4 1 1 0",
                                        "256 1 1 0\n",
                                        "x\n",
                                        "4 1 1 0 \n",
                                        "4  1 1 0\n",
                                        "-4 1 1 0\n",
                                        "4 1 1 99999999999999999999\n",
                                        "4 1 1 0 1 2 3 4 5 6 7 8 9 10 11 12 13\n",
                                        "\n"};
    struct tp_type_counts c = {0};

    (void)state;
    assert_int_equal(tp_type_counts_read(tp_str_of("4 9 7 1 1\n5 1 1 0\n"), &c, NULL),
                     TP_OK);
    assert_int_equal(c.n, 2);
    assert_int_equal(c.items[0].dropped[0], 1);
    tp_type_counts_fini(&c);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (tp_type_counts_read(tp_str_of(wrong[i]), &c, NULL) != TP_EINVAL)
            fail_msg("'%s' was read", wrong[i]);
        assert_null(c.items);
    }
}

static void test_check_finds_what_does_not_add_up(void **state)
{
    struct tp_type_counts c = {0};
    struct tp_counts all = {.emitted = 15, .filtered = 1};
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_type_counts_check(&c, &all, &err), TP_OK);
    fill(&c);
    all.dropped[TP_DROP_RING_FULL] = 2;
    assert_int_equal(tp_type_counts_check(&c, &all, &err), TP_OK);
    all.emitted = 16;
    assert_int_equal(tp_type_counts_check(&c, &all, &err), TP_EINVAL);
    assert_string_equal(err.message, "emitted: 16 in all, but 15 by type");
    all.emitted = 15;
    all.filtered = 2;
    assert_int_equal(tp_type_counts_check(&c, &all, &err), TP_EINVAL);
    all.filtered = 1;
    all.dropped[TP_DROP_LOST] = 1;
    assert_int_equal(tp_type_counts_check(&c, &all, &err), TP_EINVAL);
    all.dropped[TP_DROP_LOST] = 0;
    get(&c, 4)->filtered = 6;
    assert_int_equal(tp_type_counts_check(&c, &all, &err), TP_EINVAL);
    assert_string_equal(err.message,
                        "type 4: 5 emitted are fewer than 6 filtered and 0 dropped");
    tp_type_counts_fini(&c);
}

static void test_told_counts_always_add_up(void **state)
{
    struct tp_type_count c = {.id = 9, .emitted = 10, .stored = 6, .filtered = 1};
    struct tp_type_count told;

    (void)state;
    c.dropped[TP_DROP_RING_FULL] = 2;
    told = tp_type_count_told(&c, 1, TP_DROP_LOST);
    assert_int_equal(told.emitted, 10);
    assert_int_equal(told.dropped[TP_DROP_LOST], 1);
    told = tp_type_count_told(&c, 0, TP_DROP_LOST);
    assert_int_equal(told.emitted, 9);
    assert_int_equal(told.dropped[TP_DROP_LOST], 0);
    c.stored = 20;
    told = tp_type_count_told(&c, 1, TP_DROP_LOST);
    assert_int_equal(told.emitted, 23);
    assert_int_equal(told.dropped[TP_DROP_LOST], 0);
}

static void test_a_report_does_not_change_what_is_stored(void **state)
{
    struct tp_type_counts c = {0}, report = {0};
    struct tp_type_count *t;

    (void)state;
    assert_int_equal(tp_type_counts_get(&c, 7, &t, NULL), TP_OK);
    *t = (struct tp_type_count){.id = 7, .emitted = 9, .stored = 5};
    assert_int_equal(tp_type_counts_get(&c, 3, &t, NULL), TP_OK);
    *t = (struct tp_type_count){.id = 3, .emitted = 2};
    assert_int_equal(tp_type_counts_get(&c, 60, &t, NULL), TP_OK);
    *t = (struct tp_type_count){.id = 60, .stored = 4};
    assert_int_equal(tp_type_counts_get(&report, 7, &t, NULL), TP_OK);
    *t = (struct tp_type_count){.id = 7, .emitted = 11, .stored = 99, .filtered = 1};
    assert_int_equal(tp_type_counts_take(&c, &report, NULL), TP_OK);
    assert_int_equal(c.n, 2);
    assert_int_equal(c.items[0].id, 7);
    assert_int_equal(c.items[0].emitted, 11);
    assert_int_equal(c.items[0].filtered, 1);
    assert_int_equal(c.items[0].stored, 5);
    assert_int_equal(c.items[1].id, 60);
    assert_int_equal(c.items[1].stored, 4);
    tp_type_counts_fini(&c);
    tp_type_counts_fini(&report);
}

static void test_list_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_type_counts c = {0}, copy = {0};
        struct tp_type_count *t;
        struct tp_buf text = {0};
        int rc;

        fault_arm(n);
        rc = tp_type_counts_get(&c, 7, &t, NULL);
        if (rc == TP_OK)
            rc = tp_type_counts_take(&copy, &c, NULL);
        if (rc == TP_OK)
            rc = tp_type_counts_write(&copy, &text, NULL);
        tp_type_counts_fini(&copy);
        if (rc == TP_OK)
            rc = tp_type_counts_read((struct tp_str){text.data, text.len}, &copy, NULL);
        tp_type_counts_fini(&c);
        tp_type_counts_fini(&copy);
        tp_buf_fini(&text);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_are_in_order_and_there_once),
        cmocka_unit_test(test_text_reads_back_as_it_was),
        cmocka_unit_test(test_text_of_fewer_causes_is_read_and_other_text_is_not),
        cmocka_unit_test(test_check_finds_what_does_not_add_up),
        cmocka_unit_test(test_told_counts_always_add_up),
        cmocka_unit_test(test_a_report_does_not_change_what_is_stored),
        cmocka_unit_test(test_list_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
