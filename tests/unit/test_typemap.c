/*
 * test_typemap.c - the event path finds exactly the names that mean a type.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "core/registry.h"
#include "core/typemap.h"
#include "support/fault.h"

static struct tp_registry *full_registry(void)
{
    const struct tp_registry_options options = {.on_collision = TP_COLLISION_PROBE};
    struct tp_registry *r = NULL;
    struct tp_registration reg;
    char name[TP_TYPE_NAME_MAX_BYTES + 1];

    assert_int_equal(tp_registry_new(&options, &r, NULL), TP_OK);
    for (unsigned i = 0; i < TP_ACTIVITY_CUSTOM_COUNT; i++) {
        struct tp_type_spec spec = {.plugin = tp_str_of("a")};

        /* Lengths of 5 to 127 bytes whose first and last bytes are often the same. */
        memset(name, 'x', sizeof(name));
        memcpy(name,
               (char[]){'T', (char)('0' + i / 100), (char)('0' + i / 10 % 10),
                        (char)('0' + i % 10)},
               4);
        spec.type_name = (struct tp_str){name, 5 + i % (TP_TYPE_NAME_MAX_BYTES - 4)};
        assert_int_equal(tp_registry_register(r, &spec, &reg, NULL, NULL), TP_OK);
    }
    return r;
}

static void test_every_name_is_found_and_given_back(void **state)
{
    struct tp_registry *r = full_registry();
    const struct tp_type *types[TP_ACTIVITY_CUSTOM_COUNT];
    struct tp_typemap *m = NULL;
    size_t n = tp_registry_entries(r, types);

    (void)state;
    assert_int_equal(n, TP_ACTIVITY_CUSTOM_COUNT);
    assert_int_equal(tp_typemap_new(r, &m, NULL), TP_OK);
    for (size_t i = 0; i < n; i++) {
        struct tp_str full = tp_type_full_name(types[i]);
        struct tp_str bare = tp_type_bare_name(types[i]);

        if (tp_typemap_find(m, full.ptr, full.len) != (int)types[i]->id ||
            !tp_str_equal(tp_typemap_name(m, types[i]->id), full))
            fail_msg("%s", full.ptr);
        assert_int_equal(tp_typemap_find(m, bare.ptr, bare.len), -1);
        assert_int_equal(tp_typemap_find(m, full.ptr, full.len - 1), -1);
    }
    for (unsigned id = 0; id < TP_ACTIVITY_STATIC_COUNT; id++) {
        const char *cat = tp_activity_cat(id);

        assert_int_equal(tp_typemap_find(m, cat, strlen(cat)), id);
        assert_true(tp_str_is(tp_typemap_name(m, id), cat));
    }
    tp_registry_free(r);
    assert_int_equal(tp_typemap_find(m, "kernel", 6), 5); /* outlives the registry */
    tp_typemap_unref(m);
}

static void test_other_categories_are_no_types(void **state)
{
    static const char *const cases[] = {"",       "CONCURRENT_KERNEL", "5",   "154",
                                        "Kernel", "kernel ",           "ac2g"};
    struct tp_typemap *m = NULL;

    (void)state;
    assert_int_equal(tp_typemap_new(NULL, &m, NULL), TP_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (tp_typemap_find(m, cases[i], strlen(cases[i])) != -1)
            fail_msg("'%s'", cases[i]);
    }
    tp_typemap_unref(m);
}

static void test_ids_without_a_name_are_written_as_numbers(void **state)
{
    struct tp_typemap *m = NULL;
    char text[8];

    (void)state;
    assert_int_equal(tp_typemap_new(NULL, &m, NULL), TP_OK);
    for (unsigned id = TP_ACTIVITY_STATIC_COUNT; id < TP_ACTIVITY_IDS; id++) {
        snprintf(text, sizeof(text), "%u", id);
        if (!tp_str_is(tp_typemap_name(m, id), text))
            fail_msg("id %u", id);
    }
    assert_int_equal(tp_typemap_name(m, 256).len, 0);
    tp_typemap_unref(tp_typemap_ref(m));
    assert_int_equal(tp_typemap_find(m, "cpu_op", 6), 0);
    tp_typemap_unref(m);
    tp_typemap_unref(NULL);
}

static void test_new_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_typemap *m = NULL;
        int rc;

        fault_arm(n);
        rc = tp_typemap_new(NULL, &m, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(n, 1);
            tp_typemap_unref(m);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_name_is_found_and_given_back),
        cmocka_unit_test(test_other_categories_are_no_types),
        cmocka_unit_test(test_ids_without_a_name_are_written_as_numbers),
        cmocka_unit_test(test_new_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
