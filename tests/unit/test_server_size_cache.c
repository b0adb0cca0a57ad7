/*
 * The cache of sizes: what is kept, what makes room, what is not kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "server/size_cache.h"
#include "support/fault.h"

#define MANY 1000 /* more than there is room for */

static struct tp_size_cache *new_cache(void)
{
    struct tp_size_cache *cache = NULL;
    struct tp_err err = {0};

    assert_int_equal(tp_size_cache_new(&cache, &err), TP_OK);
    return cache;
}

static const char *key_of(unsigned i, char *key, size_t n)
{
    snprintf(key, n, "\"etag-%u\"", i);
    return key;
}

static void test_what_is_put_is_got_and_nothing_else(void **state)
{
    struct tp_size_cache *cache = new_cache();
    uint64_t size = 7;

    (void)state;
    assert_false(tp_size_cache_get(cache, "\"a\"", &size));
    assert_false(tp_size_cache_get(cache, "", &size));
    assert_int_equal(size, 7);
    tp_size_cache_put(cache, "\"a\"", UINT64_MAX);
    tp_size_cache_put(cache, "\"b\"", 0);
    assert_true(tp_size_cache_get(cache, "\"a\"", &size));
    assert_true(size == UINT64_MAX);
    assert_true(tp_size_cache_get(cache, "\"b\"", &size));
    assert_int_equal(size, 0);
    assert_false(tp_size_cache_get(cache, "\"a", &size));
    tp_size_cache_free(cache);
}

static void test_a_second_put_replaces_the_size(void **state)
{
    struct tp_size_cache *cache = new_cache();
    uint64_t size = 0;

    (void)state;
    tp_size_cache_put(cache, "key", 1);
    tp_size_cache_put(cache, "key", 2);
    assert_true(tp_size_cache_get(cache, "key", &size));
    assert_int_equal(size, 2);
    tp_size_cache_free(cache);
}

static void test_the_least_recently_used_makes_room(void **state)
{
    struct tp_size_cache *cache = new_cache();
    char key[32];
    uint64_t size = 0;

    (void)state;
    tp_size_cache_put(cache, "wanted", 1);
    tp_size_cache_put(cache, "left alone", 2);
    for (unsigned i = 0; i < MANY; i++) {
        tp_size_cache_put(cache, key_of(i, key, sizeof(key)), i);
        if (!tp_size_cache_get(cache, "wanted", &size) || size != 1)
            fail_msg("gone after %u more keys although it is in use", i + 1);
    }
    assert_false(tp_size_cache_get(cache, "left alone", &size));
    assert_true(tp_size_cache_get(cache, key_of(MANY - 1, key, sizeof(key)), &size));
    assert_int_equal(size, MANY - 1);
    tp_size_cache_free(cache);
}

static void test_a_key_that_is_too_long_is_not_kept_cut(void **state)
{
    struct tp_size_cache *cache = new_cache();
    char key[4096];
    uint64_t size = 0;

    (void)state;
    memset(key, 'k', sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    for (size_t n = sizeof(key) - 1; n > 0; n--) {
        bool is_kept;

        key[n] = '\0';
        tp_size_cache_put(cache, key, n);
        is_kept = tp_size_cache_get(cache, key, &size);
        if (is_kept && size != n)
            fail_msg("a key of %zu bytes found the size of another: %llu", n,
                     (unsigned long long)size);
        if (!is_kept && n < 90)
            fail_msg("a key of %zu bytes is not kept", n);
    }
    tp_size_cache_free(cache);
}

static void test_without_memory_there_is_no_cache(void **state)
{
    struct tp_size_cache *cache = NULL;
    struct tp_err err = {0};

    (void)state;
    fault_arm(0);
    assert_int_equal(tp_size_cache_new(&cache, &err), TP_ENOMEM);
    assert_true(fault_disarm());
    assert_null(cache);
    tp_size_cache_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_put_is_got_and_nothing_else),
        cmocka_unit_test(test_a_second_put_replaces_the_size),
        cmocka_unit_test(test_the_least_recently_used_makes_room),
        cmocka_unit_test(test_a_key_that_is_too_long_is_not_kept_cut),
        cmocka_unit_test(test_without_memory_there_is_no_cache),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
