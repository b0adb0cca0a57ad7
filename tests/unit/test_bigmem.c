/*
 * test_bigmem.c - memory is zeroed and aligned, however much it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bigmem.h"
#include "support/fault.h"

static const size_t sizes[] = {1,        100,     (1u << 20) - 1,
                               1u << 20, 2 << 20, (2u << 20) + 1,
                               5u << 20};

static void test_memory_is_zeroed_aligned_and_writable_to_its_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int round = 0; round < 2; round++) {
            unsigned char *p = tp_bigmem_new(sizes[i]);

            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t k = 0; k < sizes[i]; k += 511)
                if (p[k] != 0)
                    fail_msg("byte %zu of %zu is %u", k, sizes[i], p[k]);
            assert_int_equal(p[sizes[i] - 1], 0);
            memset(p, 0xff, sizes[i]);
            tp_bigmem_free(p, sizes[i]);
        }
    }
    tp_bigmem_free(NULL, 1);
    tp_bigmem_free(NULL, 5u << 20);
}

static void test_what_cannot_be_had_is_null(void **state)
{
    (void)state;
    assert_null(tp_bigmem_new(SIZE_MAX));
    assert_null(tp_bigmem_new(SIZE_MAX / 4));
    fault_arm(0);
    assert_null(tp_bigmem_new(100));
    assert_true(fault_disarm());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_zeroed_aligned_and_writable_to_its_end),
        cmocka_unit_test(test_what_cannot_be_had_is_null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
