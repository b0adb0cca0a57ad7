/*
 * test_filter.c - a filter asks for and lets through what the RFC says, and refuses by
 * name what it does not know.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "core/filter.h"
#include "core/limits.h"
#include "support/fault.h"

/* Makes a spec with one list from string constants. */
#define LIST(which, ...)                                                         \
    {                                                                            \
        .lists[which] = {                                                        \
            (const struct tp_str[]){__VA_ARGS__},                                \
            sizeof((const struct tp_str[]){__VA_ARGS__}) / sizeof(struct tp_str) \
        }                                                                        \
    }
#define S(text)                \
    {                          \
        text, sizeof(text) - 1 \
    }

/* ascend.KERNEL 154, ascend.SYNC 161, ascend.MEMCPY 126, habana.KERNEL 201 */
static struct tp_registry *some_registry(void)
{
    static const char *const names[][2] = {{"ascend", "KERNEL"},
                                           {"ascend", "SYNC"},
                                           {"ascend", "MEMCPY"},
                                           {"habana", "KERNEL"}};
    struct tp_registry *r = NULL;

    assert_int_equal(tp_registry_new(NULL, &r, NULL), TP_OK);
    for (size_t i = 0; i < 4; i++) {
        const struct tp_type_spec spec = {.plugin = tp_str_of(names[i][0]),
                                          .type_name = tp_str_of(names[i][1])};
        struct tp_registration reg;

        assert_int_equal(tp_registry_register(r, &spec, &reg, NULL, NULL), TP_OK);
    }
    return r;
}

static struct tp_filter *resolve(const struct tp_filter_spec *spec,
                                 struct tp_registry *r)
{
    struct tp_filter *f = NULL;
    struct tp_err err = {0};

    if (tp_filter_new(spec, r, NULL, &f, NULL, &err) != TP_OK)
        fail_msg("%s", err.message);
    return f;
}

static void expect_set(const struct tp_typeset *set, const unsigned *ids, size_t n)
{
    struct tp_typeset expected = {{0}};

    for (size_t i = 0; i < n; i++)
        tp_typeset_add(&expected, ids[i]);
    for (unsigned id = 0; id < 256; id++) {
        if (tp_typeset_has(set, id) != tp_typeset_has(&expected, id))
            fail_msg("id %u", id);
    }
}

static void test_no_filter_asks_for_defaults_and_customs_and_drops_nothing(void **state)
{
    struct tp_registry *r = some_registry();
    const struct tp_filter_spec spec = {0};
    struct tp_filter *f = resolve(&spec, r);

    (void)state;
    expect_set(tp_filter_requested(f),
               (const unsigned[]){0,  1,  2,  3,  4,  5,  6,  7,   8,   9,   10,
                                  11, 12, 13, 14, 15, 16, 17, 154, 161, 126, 201},
               22);
    assert_false(tp_filter_has_types(f));
    assert_true(tp_filter_is_open(f));
    assert_true(tp_filter_accepts_untyped(f));
    for (unsigned id = 0; id < 256; id++)
        assert_true(tp_filter_accepts_type(f, id));
    assert_true(tp_filter_name_matches(f, "anything", 8));
    tp_filter_unref(f);
    tp_registry_free(r);
}

static void test_include_is_exactly_what_it_names(void **state)
{
    struct tp_registry *r = some_registry();
    const struct tp_filter_spec spec = LIST(TP_FILTER_INCLUDE, S("kernel"),
                                            S("ascend.KERNEL"), S("SYNC"),
                                            S("GPU_MEMCPY"), S("xpu_sync"));
    struct tp_filter *f = resolve(&spec, r);
    const unsigned ids[] = {5, 154, 161, 3, 27};

    (void)state;
    expect_set(tp_filter_requested(f), ids, 5);
    expect_set(tp_filter_accepted(f), ids, 5);
    assert_true(tp_filter_has_types(f));
    assert_false(tp_filter_accepts_untyped(f));
    assert_false(tp_filter_accepts_type(f, 201));
    assert_false(tp_filter_accepts_type(f, 256));
    tp_filter_unref(f);
    tp_registry_free(r);
}

static void test_patterns_stand_for_every_type_that_matches(void **state)
{
    struct tp_registry *r = some_registry();
    struct tp_filter_spec spec = LIST(TP_FILTER_INCLUDE, S("ascend.*"), S("gpu_mem*"));
    struct tp_filter *f;

    (void)state;
    spec.lists[TP_FILTER_EXCLUDE].items = (const struct tp_str[]){S("*.SYNC")};
    spec.lists[TP_FILTER_EXCLUDE].n = 1;
    f = resolve(&spec, r);
    expect_set(tp_filter_requested(f), (const unsigned[]){154, 126, 3, 4}, 4);
    expect_set(tp_filter_accepted(f), (const unsigned[]){154, 126, 3, 4}, 4);
    tp_filter_unref(f);
    tp_registry_free(r);
}

static void test_exclude_alone_leaves_everything_else(void **state)
{
    struct tp_registry *r = some_registry();
    const struct tp_filter_spec spec =
        LIST(TP_FILTER_EXCLUDE, S("python_function"), S("habana.KERNEL"));
    struct tp_filter *f = resolve(&spec, r);

    (void)state;
    assert_int_equal(tp_typeset_count(tp_filter_requested(f)), 29 + 4 - 2);
    assert_int_equal(tp_typeset_count(tp_filter_accepted(f)), 254);
    assert_false(tp_filter_accepts_type(f, 10));
    assert_false(tp_filter_accepts_type(f, 201));
    assert_true(tp_filter_accepts_type(f, 77)); /* nobody registered it */
    assert_true(tp_filter_accepts_untyped(f));
    assert_true(tp_filter_has_types(f));
    tp_filter_unref(f);
    tp_registry_free(r);
}

static void test_names_are_matched_by_include_and_exclude(void **state)
{
    struct tp_filter_spec spec =
        LIST(TP_FILTER_NAMES_INCLUDE, S("aten::*"), S("step ?"));
    struct tp_filter *f;

    (void)state;
    spec.lists[TP_FILTER_NAMES_EXCLUDE].items =
        (const struct tp_str[]){S("*_backward")};
    spec.lists[TP_FILTER_NAMES_EXCLUDE].n = 1;
    f = resolve(&spec, NULL);
    assert_true(tp_filter_has_names(f));
    assert_false(tp_filter_has_types(f));
    assert_false(tp_filter_is_open(f));
    assert_true(tp_filter_name_matches(f, "aten::add", 9));
    assert_true(tp_filter_name_matches(f, "step 7", 6));
    assert_false(tp_filter_name_matches(f, "step 77", 7));
    assert_false(tp_filter_name_matches(f, "aten::add_backward", 18));
    assert_false(tp_filter_name_matches(f, "", 0));
    tp_filter_unref(f);
}

static void test_what_was_written_can_be_read_back(void **state)
{
    struct tp_filter_spec spec = LIST(TP_FILTER_INCLUDE, S("kernel"), S("cpu_*"));
    struct tp_filter *f;
    const struct tp_str *items;
    size_t n;

    (void)state;
    spec.min_duration_ns = 1500;
    f = resolve(&spec, NULL);
    items = tp_filter_items(f, TP_FILTER_INCLUDE, &n);
    assert_int_equal(n, 2);
    assert_true(tp_str_is(items[0], "kernel"));
    assert_true(tp_str_is(items[1], "cpu_*"));
    tp_filter_items(f, TP_FILTER_EXCLUDE, &n);
    assert_int_equal(n, 0);
    assert_int_equal(tp_filter_min_duration_ns(f), 1500);
    assert_false(tp_filter_is_open(f));
    assert_string_equal(tp_filter_list_name(TP_FILTER_NAMES_EXCLUDE),
                        "filter.names.exclude");
    tp_filter_unref(tp_filter_ref(f));
    assert_int_equal(tp_filter_min_duration_ns(f), 1500);
    tp_filter_unref(f);
    tp_filter_unref(NULL);
}

struct refusal {
    struct tp_filter_spec spec;
    const char *field;
    enum tp_registry_reason reason;
    const char *first_name; /* of the suggestions or candidates; NULL = there is none */
};

static void test_refused_entries_are_named_with_their_field(void **state)
{
    const struct refusal cases[] = {
        {LIST(TP_FILTER_INCLUDE, S("kernel"), S("ascend.KERNAL")), "filter.include[1]",
         TP_REGISTRY_UNKNOWN, "ascend.KERNEL"},
        {LIST(TP_FILTER_EXCLUDE, S("gpu_memcopy")), "filter.exclude[0]",
         TP_REGISTRY_UNKNOWN, "gpu_memcpy"},
        {LIST(TP_FILTER_INCLUDE, S("KERNEL")), "filter.include[0]",
         TP_REGISTRY_AMBIGUOUS, "ascend.KERNEL"},
        {LIST(TP_FILTER_INCLUDE, S("nobody.*")), "filter.include[0]",
         TP_REGISTRY_UNKNOWN, NULL},
        {LIST(TP_FILTER_INCLUDE, S("77")), "filter.include[0]", TP_REGISTRY_UNKNOWN,
         NULL},
        {LIST(TP_FILTER_INCLUDE, S("")), "filter.include[0]", TP_REGISTRY_NO_REASON,
         NULL},
        {LIST(TP_FILTER_EXCLUDE, S("[a")), "filter.exclude[0]", TP_REGISTRY_NO_REASON,
         NULL},
        {LIST(TP_FILTER_NAMES_INCLUDE, S("ok"), S("\xff")), "filter.names.include[1]",
         TP_REGISTRY_NO_REASON, NULL},
        {LIST(TP_FILTER_NAMES_EXCLUDE, S("x\\")), "filter.names.exclude[0]",
         TP_REGISTRY_NO_REASON, NULL},
    };
    struct tp_registry *r = some_registry();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_filter_detail detail;
        struct tp_filter *f = NULL;
        struct tp_err err = {0};
        int rc = tp_filter_new(&cases[i].spec, r, NULL, &f, &detail, &err);

        if (rc != TP_EINVAL || err.code != TP_EINVAL || f != NULL ||
            strcmp(detail.field, cases[i].field) != 0 ||
            strstr(err.message, cases[i].field) == NULL ||
            detail.type.reason != cases[i].reason)
            fail_msg("case %zu: %s, field %s", i, err.message, detail.field);
        if (cases[i].first_name != NULL)
            assert_string_equal(detail.type.names[0], cases[i].first_name);
    }
    tp_registry_free(r);
}

static void test_excluding_all_that_is_included_is_refused(void **state)
{
    struct tp_filter_spec spec = LIST(TP_FILTER_INCLUDE, S("kernel"));
    struct tp_filter_detail detail;
    struct tp_filter *f = NULL;

    (void)state;
    spec.lists[TP_FILTER_EXCLUDE].items = (const struct tp_str[]){S("k*")};
    spec.lists[TP_FILTER_EXCLUDE].n = 1;
    assert_int_equal(tp_filter_new(&spec, NULL, NULL, &f, &detail, NULL), TP_EINVAL);
    assert_string_equal(detail.field, "filter.exclude[0]");
    assert_string_equal(detail.name, "k*");
}

static void test_limits_of_number_and_length_are_kept(void **state)
{
    struct tp_limits limits = tp_limits_default();
    struct tp_filter_spec spec =
        LIST(TP_FILTER_NAMES_INCLUDE, S("abcdefghijklmnopq"), S("b"));
    struct tp_filter_detail detail;
    struct tp_filter *f = NULL;
    struct tp_err err = {0};

    (void)state;
    limits.filter_entries = 2;
    limits.filter_entry_bytes = 17;
    assert_int_equal(tp_filter_new(&spec, NULL, &limits, &f, &detail, &err), TP_OK);
    tp_filter_unref(f);
    limits.filter_entry_bytes = 16;
    assert_int_equal(tp_filter_new(&spec, NULL, &limits, &f, &detail, &err), TP_EINVAL);
    assert_non_null(strstr(err.message, "max-filter-entry-bytes is 16"));
    limits.filter_entry_bytes = 17;
    limits.filter_entries = 1;
    assert_int_equal(tp_filter_new(&spec, NULL, &limits, &f, &detail, &err), TP_EINVAL);
    assert_non_null(strstr(err.message, "max-filter-entries is 1"));
    assert_string_equal(detail.field, "filter.names.include[1]");
}

static void test_new_survives_every_allocation_failure(void **state)
{
    struct tp_filter_spec spec = LIST(TP_FILTER_INCLUDE, S("kernel"));

    (void)state;
    spec.lists[TP_FILTER_NAMES_INCLUDE] = spec.lists[TP_FILTER_INCLUDE];
    for (int n = 0;; n++) {
        struct tp_filter *f = NULL;
        int rc;

        fault_arm(n);
        rc = tp_filter_new(&spec, NULL, NULL, &f, NULL, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(n, 4); /* the struct, the bytes and two lists */
            tp_filter_unref(f);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_no_filter_asks_for_defaults_and_customs_and_drops_nothing),
        cmocka_unit_test(test_include_is_exactly_what_it_names),
        cmocka_unit_test(test_patterns_stand_for_every_type_that_matches),
        cmocka_unit_test(test_exclude_alone_leaves_everything_else),
        cmocka_unit_test(test_names_are_matched_by_include_and_exclude),
        cmocka_unit_test(test_what_was_written_can_be_read_back),
        cmocka_unit_test(test_refused_entries_are_named_with_their_field),
        cmocka_unit_test(test_excluding_all_that_is_included_is_refused),
        cmocka_unit_test(test_limits_of_number_and_length_are_kept),
        cmocka_unit_test(test_new_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
