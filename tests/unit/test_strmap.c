/*
 * test_strmap.c - the map holds what was put, in order, through growth and removal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/strmap.h"
#include "support/fault.h"

static size_t make_key(char *out, size_t size, unsigned i)
{
    return (size_t)snprintf(out, size, "key-%u", i * 2654435761u);
}

static void test_the_empty_map_answers_without_memory(void **state)
{
    struct tp_strmap m = {0};
    size_t cursor = 0;

    (void)state;
    assert_null(tp_strmap_get(&m, "x", 1));
    assert_null(tp_strmap_remove(&m, "x", 1));
    assert_false(tp_strmap_next(&m, &cursor, NULL, NULL));
    assert_int_equal(tp_strmap_len(&m), 0);
    tp_strmap_fini(&m);
    tp_strmap_fini(NULL);
}

static void test_keys_are_bytes_and_are_copied(void **state)
{
    struct tp_strmap m = {0};
    char key[] = "a\0b";
    int one;
    int two;
    int none;

    (void)state;
    assert_int_equal(tp_strmap_put(&m, key, 3, &one, NULL), TP_OK);
    assert_int_equal(tp_strmap_put(&m, key, 1, &two, NULL), TP_OK);
    assert_int_equal(tp_strmap_put(&m, NULL, 0, &none, NULL), TP_OK);
    key[0] = 'z';
    assert_ptr_equal(tp_strmap_get(&m, "a\0b", 3), &one);
    assert_ptr_equal(tp_strmap_get(&m, "a", 1), &two);
    assert_ptr_equal(tp_strmap_get(&m, "", 0), &none);
    assert_null(tp_strmap_get(&m, key, 3));
    assert_int_equal(tp_strmap_len(&m), 3);
    tp_strmap_fini(&m);
}

static void test_a_second_put_replaces_the_value(void **state)
{
    struct tp_strmap m = {0};
    uint64_t value = 0;

    (void)state;
    assert_int_equal(tp_strmap_put_u64(&m, "k", 1, 1, NULL), TP_OK);
    assert_int_equal(tp_strmap_put_u64(&m, "k", 1, UINT64_MAX, NULL), TP_OK);
    assert_true(tp_strmap_get_u64(&m, "k", 1, &value));
    assert_true(value == UINT64_MAX);
    assert_int_equal(tp_strmap_len(&m), 1);
    tp_strmap_fini(&m);
}

/* Against a plain array as the model: 5,000 keys, with removals in between. */
static void test_many_keys_survive_growth_and_removal(void **state)
{
    enum { N = 5000 };
    static bool is_there[N];
    struct tp_strmap m = {0};
    char key[32];
    size_t n_live = 0;

    (void)state;
    for (unsigned i = 0; i < N; i++) {
        size_t n = make_key(key, sizeof(key), i);

        assert_int_equal(tp_strmap_put_u64(&m, key, n, i, NULL), TP_OK);
        is_there[i] = true;
        if (i % 3 == 2) {
            n = make_key(key, sizeof(key), i / 2);
            assert_int_equal(tp_strmap_remove_u64(&m, key, n), is_there[i / 2]);
            is_there[i / 2] = false;
        }
    }
    for (unsigned i = 0; i < N; i++) {
        uint64_t value = 0;
        size_t n = make_key(key, sizeof(key), i);

        if (tp_strmap_get_u64(&m, key, n, &value) != is_there[i] ||
            (is_there[i] && value != i))
            fail_msg("key %u", i);
        n_live += is_there[i];
    }
    assert_int_equal(tp_strmap_len(&m), n_live);
    tp_strmap_fini(&m);
}

static void test_iteration_keeps_the_order_and_allows_removal(void **state)
{
    struct tp_strmap m = {0};
    struct tp_str key;
    uint64_t value;
    uint64_t expected = 0;
    size_t cursor = 0;
    char text[32];

    (void)state;
    for (unsigned i = 0; i < 100; i++)
        tp_strmap_put_u64(&m, text, make_key(text, sizeof(text), i), i, NULL);
    while (tp_strmap_next_u64(&m, &cursor, &key, &value)) {
        assert_int_equal(value, expected++);
        if (value % 2 == 0) {
            memcpy(text, key.ptr, key.len);
            assert_true(tp_strmap_remove_u64(&m, text, key.len));
        }
    }
    assert_int_equal(expected, 100);
    assert_int_equal(tp_strmap_len(&m), 50);
    cursor = 0;
    expected = 1;
    for (; tp_strmap_next_u64(&m, &cursor, NULL, &value); expected += 2)
        assert_int_equal(value, expected);
    tp_strmap_fini(&m);
}

static void test_pointers_are_stepped_over_like_numbers(void **state)
{
    struct tp_strmap m = {0};
    struct tp_str key;
    void *value = NULL;
    size_t cursor = 0;
    int one;

    (void)state;
    assert_int_equal(tp_strmap_put(&m, "one", 3, &one, NULL), TP_OK);
    assert_true(tp_strmap_next(&m, &cursor, &key, &value));
    assert_true(tp_str_is(key, "one"));
    assert_ptr_equal(value, &one);
    assert_false(tp_strmap_next(&m, &cursor, &key, &value));
    assert_ptr_equal(tp_strmap_remove(&m, "one", 3), &one);
    assert_null(tp_strmap_remove(&m, "one", 3));
    tp_strmap_fini(&m);
}

/* Putting and removing one key again and again must not grow the tables. */
static void test_churn_does_not_grow_the_map(void **state)
{
    struct tp_strmap m = {0};
    char text[32];

    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        size_t n = make_key(text, sizeof(text), i);

        assert_int_equal(tp_strmap_put_u64(&m, text, n, i, NULL), TP_OK);
        assert_true(tp_strmap_remove_u64(&m, text, n));
    }
    assert_int_equal(tp_strmap_len(&m), 0);
    assert_true(m.n_index <= 16);
    tp_strmap_fini(&m);
}

static void test_put_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_strmap m = {0};
        int rc;

        fault_arm(n);
        rc = tp_strmap_put_u64(&m, "k", 1, 1, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(n, 3); /* both tables and the key */
            tp_strmap_fini(&m);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_int_equal(tp_strmap_len(&m), 0);
        assert_int_equal(tp_strmap_put_u64(&m, "k", 1, 1, NULL), TP_OK);
        tp_strmap_fini(&m);
    }
}

/* At the moment of growth, with keys in the map that must all stay. */
static void test_growth_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_strmap m = {0};
        char text[32];
        bool has_failed;
        int rc;

        for (unsigned i = 0; i < 12; i++)
            tp_strmap_put_u64(&m, text, make_key(text, sizeof(text), i), i, NULL);
        fault_arm(n);
        rc = tp_strmap_put_u64(&m, "k", 1, 1, NULL);
        has_failed = fault_disarm();
        assert_int_equal(rc, has_failed ? TP_ENOMEM : TP_OK);
        assert_int_equal(tp_strmap_len(&m), has_failed ? 12 : 13);
        for (unsigned i = 0; i < 12; i++) {
            if (!tp_strmap_get_u64(&m, text, make_key(text, sizeof(text), i), NULL))
                fail_msg("key %u is gone after failure %d", i, n);
        }
        tp_strmap_fini(&m);
        if (!has_failed)
            return;
    }
}

static void test_a_map_with_room_takes_that_many_keys_without_growing(void **state)
{
    enum { N = 1000 };
    struct tp_strmap m = {0};
    const void *entries;
    char text[32];

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        tp_strmap_put_u64(&m, text, make_key(text, sizeof(text), i), i, NULL);
    assert_int_equal(tp_strmap_reserve(&m, 0, NULL), TP_OK);
    assert_int_equal(tp_strmap_reserve(&m, N, NULL), TP_OK);
    entries = m.entries;
    for (unsigned i = 5; i < N; i++)
        tp_strmap_put_u64(&m, text, make_key(text, sizeof(text), i), i, NULL);
    assert_ptr_equal(m.entries, entries);
    assert_int_equal(tp_strmap_len(&m), N);
    for (unsigned i = 0; i < N; i++)
        assert_true(tp_strmap_get_u64(&m, text, make_key(text, sizeof(text), i), NULL));
    tp_strmap_fini(&m);
}

static void test_without_memory_for_room_the_map_is_as_before(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_strmap m = {0};
        bool has_failed;
        int rc;

        tp_strmap_put_u64(&m, "k", 1, 7, NULL);
        fault_arm(n);
        rc = tp_strmap_reserve(&m, 1000, NULL);
        has_failed = fault_disarm();
        assert_int_equal(rc, has_failed ? TP_ENOMEM : TP_OK);
        assert_true(tp_strmap_get_u64(&m, "k", 1, NULL));
        assert_int_equal(tp_strmap_put_u64(&m, "l", 1, 8, NULL), TP_OK);
        tp_strmap_fini(&m);
        if (!has_failed)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_empty_map_answers_without_memory),
        cmocka_unit_test(test_keys_are_bytes_and_are_copied),
        cmocka_unit_test(test_a_second_put_replaces_the_value),
        cmocka_unit_test(test_many_keys_survive_growth_and_removal),
        cmocka_unit_test(test_iteration_keeps_the_order_and_allows_removal),
        cmocka_unit_test(test_churn_does_not_grow_the_map),
        cmocka_unit_test(test_pointers_are_stepped_over_like_numbers),
        cmocka_unit_test(test_growth_survives_every_allocation_failure),
        cmocka_unit_test(test_put_survives_every_allocation_failure),
        cmocka_unit_test(test_a_map_with_room_takes_that_many_keys_without_growing),
        cmocka_unit_test(test_without_memory_for_room_the_map_is_as_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
