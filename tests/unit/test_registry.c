/*
 * test_registry.c - types get the RFC's ids, once, and whatever cannot be is refused by
 * name.
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
#include "support/fault.h"

static struct tp_registry *new_registry(enum tp_collision_policy policy,
                                        size_t max_types)
{
    const struct tp_registry_options options = {policy, max_types};
    struct tp_registry *r = NULL;

    assert_int_equal(tp_registry_new(&options, &r, NULL), TP_OK);
    return r;
}

static struct tp_type_spec spec_of(const char *plugin, const char *type_name)
{
    return (struct tp_type_spec){.plugin = tp_str_of(plugin),
                                 .type_name = tp_str_of(type_name)};
}

static unsigned add(struct tp_registry *r, const char *plugin, const char *type_name)
{
    const struct tp_type_spec spec = spec_of(plugin, type_name);
    struct tp_registration reg;
    struct tp_err err = {0};

    if (tp_registry_register(r, &spec, &reg, NULL, &err) != TP_OK)
        fail_msg("%s.%s: %s", plugin, type_name, err.message);
    return reg.id;
}

static void test_registration_is_idempotent(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_REJECT, 0);
    const struct tp_type_spec spec = spec_of("ascend", "KERNEL");
    struct tp_registration first;
    struct tp_registration second;

    (void)state;
    assert_int_equal(tp_registry_register(r, &spec, &first, NULL, NULL), TP_OK);
    assert_int_equal(tp_registry_register(r, &spec, &second, NULL, NULL), TP_OK);
    assert_int_equal(first.id, 154);
    assert_int_equal(second.id, 154);
    assert_true(first.is_new);
    assert_false(second.is_new);
    assert_ptr_equal(first.type, second.type);
    assert_int_equal(tp_registry_len(r), 1);
    assert_string_equal(first.type->name, "ascend.KERNEL");
    assert_string_equal(first.type->type_name, "KERNEL");
    assert_int_equal(first.type->hash, 0x221b083c);
    assert_false(first.type->is_resolved);
    tp_registry_free(r);
}

static void test_attributes_are_kept_and_the_first_ones_win(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_REJECT, 0);
    struct tp_type_spec spec = spec_of("ascend", "HW_COUNTER");
    struct tp_registration reg;

    (void)state;
    spec.kind = TP_TYPE_COUNTER;
    spec.unit = tp_str_of("GB/s");
    spec.description = tp_str_of("read bandwidth");
    assert_int_equal(tp_registry_register(r, &spec, &reg, NULL, NULL), TP_OK);
    assert_int_equal(reg.type->kind, TP_TYPE_COUNTER);
    assert_string_equal(reg.type->unit, "GB/s");
    assert_string_equal(reg.type->description, "read bandwidth");
    spec.kind = TP_TYPE_SLICE;
    spec.unit = tp_str_of("MB/s");
    spec.description = tp_str_of("else");
    assert_int_equal(tp_registry_register(r, &spec, &reg, NULL, NULL), TP_OK);
    assert_true(reg.kind_differs && reg.unit_differs && reg.description_differs);
    assert_string_equal(reg.type->unit, "GB/s");
    spec = spec_of("ascend", "HW_COUNTER");
    assert_int_equal(tp_registry_register(r, &spec, &reg, NULL, NULL), TP_OK);
    assert_false(reg.kind_differs || reg.unit_differs || reg.description_differs);
    tp_registry_free(r);
}

static void test_a_collision_is_refused_naming_the_holder(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_REJECT, 0);
    const struct tp_type_spec spec = spec_of("ascend", "REDUCE_SCATTER");
    struct tp_registry_detail detail;
    struct tp_registration reg = {.id = 99};
    struct tp_err err = {0};

    (void)state;
    add(r, "ascend", "KERNEL");
    assert_int_equal(tp_registry_register(r, &spec, &reg, &detail, &err), TP_EEXIST);
    assert_int_equal(reg.id, 0);
    assert_null(reg.type);
    assert_int_equal(detail.reason, TP_REGISTRY_COLLISION);
    assert_int_equal(detail.holder_id, 154);
    assert_string_equal(detail.holder_name, "ascend.KERNEL");
    assert_string_equal(
        err.message, "'ascend.REDUCE_SCATTER' has id 154, which 'ascend.KERNEL' holds");
    assert_int_equal(tp_registry_len(r), 1);
    assert_null(tp_registry_find(r, spec.plugin, spec.type_name));
    tp_registry_free(r);
}

static void test_probing_resolves_collisions_until_every_id_is_taken(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_PROBE, 0);
    bool is_taken[TP_ACTIVITY_IDS] = {false};
    struct tp_registry_detail detail;
    struct tp_registration reg;
    struct tp_type_spec spec;
    unsigned n_resolved = 0;
    char name[32];

    (void)state;
    for (unsigned i = 0; i < TP_ACTIVITY_CUSTOM_COUNT; i++) {
        snprintf(name, sizeof(name), "T%u", i);
        spec = spec_of("acme", name);
        assert_int_equal(tp_registry_register(r, &spec, &reg, NULL, NULL), TP_OK);
        if (!tp_activity_is_custom(reg.id) || is_taken[reg.id])
            fail_msg("%s got id %u", name, reg.id);
        is_taken[reg.id] = true;
        assert_int_equal(reg.type->is_resolved,
                         reg.id != tp_activity_compute_id(spec.plugin, spec.type_name));
        n_resolved += reg.type->is_resolved;
        assert_ptr_equal(tp_registry_find(r, spec.plugin, spec.type_name), reg.type);
    }
    assert_true(n_resolved > 50);
    spec = spec_of("acme", "one_more");
    assert_int_equal(tp_registry_register(r, &spec, &reg, &detail, NULL), TP_EQUOTA);
    assert_int_equal(detail.reason, TP_REGISTRY_FULL);
    assert_int_equal(reg.id, 0);
    tp_registry_free(r);
}

/* All ids but one are taken: whatever the hash, probing finds the last. */
static void test_probing_reaches_every_id_from_every_hash(void **state)
{
    (void)state;
    for (unsigned trial = 0; trial < 100; trial++) {
        struct tp_registry *r = new_registry(TP_COLLISION_PROBE, 0);
        unsigned hole = TP_ACTIVITY_CUSTOM_BASE + trial * 2;
        char name[32];

        for (unsigned id = TP_ACTIVITY_CUSTOM_BASE; id < TP_ACTIVITY_CUSTOM_END; id++) {
            struct tp_type_spec spec;

            if (id == hole)
                continue;
            snprintf(name, sizeof(name), "at%u", id);
            spec = spec_of("fill", name);
            assert_int_equal(tp_registry_restore(r, &spec, id, NULL, NULL), TP_OK);
        }
        snprintf(name, sizeof(name), "last%u", trial);
        if (add(r, "acme", name) != hole)
            fail_msg("id %u was free", hole);
        tp_registry_free(r);
    }
}

static void test_max_types_is_kept(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_PROBE, 2);
    const struct tp_registry_options too_many = {TP_COLLISION_REJECT, 206};
    const struct tp_type_spec spec = spec_of("c", "C");
    struct tp_registry *none = NULL;
    struct tp_registration reg;
    struct tp_err err = {0};

    (void)state;
    add(r, "a", "A");
    add(r, "b", "B");
    assert_int_equal(tp_registry_register(r, &spec, &reg, NULL, &err), TP_EQUOTA);
    assert_non_null(strstr(err.message, "2"));
    tp_registry_free(r);
    assert_int_equal(tp_registry_new(&too_many, &none, NULL), TP_EINVAL);
    assert_null(none);
}

static void test_a_frozen_registry_takes_known_types_only(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_REJECT, 0);
    const struct tp_type_spec known = spec_of("ascend", "KERNEL");
    const struct tp_type_spec new_one = spec_of("ascend", "SYNC");
    struct tp_registry_detail detail;
    struct tp_registration reg = {.id = 7};

    (void)state;
    add(r, "ascend", "KERNEL");
    tp_registry_freeze(r);
    tp_registry_freeze(r);
    tp_registry_unfreeze(r);
    assert_true(tp_registry_is_frozen(r));
    assert_int_equal(tp_registry_register(r, &new_one, &reg, &detail, NULL), TP_ESTATE);
    assert_int_equal(reg.id, 0);
    assert_int_equal(detail.reason, TP_REGISTRY_FROZEN);
    assert_int_equal(tp_registry_register(r, &known, &reg, NULL, NULL), TP_OK);
    assert_int_equal(reg.id, 154);
    tp_registry_unfreeze(r);
    assert_false(tp_registry_is_frozen(r));
    assert_int_equal(tp_registry_register(r, &new_one, &reg, NULL, NULL), TP_OK);
    tp_registry_free(r);
}

static void test_a_batch_is_registered_whole_or_not_at_all(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_REJECT, 0);
    struct tp_type_spec specs[4] = {spec_of("ascend", "KERNEL"),
                                    spec_of("ascend", "SYNC"),
                                    spec_of("ascend", "KERNEL"),
                                    spec_of("ascend", "REDUCE_SCATTER")};
    struct tp_registration regs[4];
    struct tp_registry_detail detail;

    (void)state;
    assert_int_equal(tp_registry_register_many(r, specs, 4, regs, &detail, NULL),
                     TP_EEXIST);
    assert_int_equal(detail.index, 3);
    assert_string_equal(detail.holder_name, "ascend.KERNEL");
    assert_int_equal(tp_registry_len(r), 0);
    for (size_t i = 0; i < 4; i++)
        assert_true(regs[i].id == 0 && regs[i].type == NULL);
    specs[3] = spec_of("bad.plugin", "X");
    assert_int_equal(tp_registry_register_many(r, specs, 4, regs, &detail, NULL),
                     TP_EINVAL);
    assert_int_equal(detail.index, 3);
    assert_string_equal(detail.field, "plugin");
    assert_int_equal(tp_registry_register_many(r, specs, 3, regs, &detail, NULL),
                     TP_OK);
    assert_int_equal(tp_registry_len(r), 2);
    assert_ptr_equal(regs[0].type, regs[2].type);
    assert_true(regs[0].is_new && !regs[2].is_new);
    assert_int_equal(tp_registry_register_many(r, NULL, 0, NULL, NULL, NULL), TP_OK);
    tp_registry_free(r);
}

static void test_full_names_split_at_the_first_dot(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_PROBE, 0);
    const struct tp_type *t = NULL;

    (void)state;
    add(r, "a", "b.c");
    assert_int_equal(tp_registry_lookup(r, tp_str_of("a.b.c"), &t, NULL, NULL), TP_OK);
    assert_string_equal(t->plugin, "a");
    assert_string_equal(t->type_name, "b.c");
    t = NULL;
    assert_int_equal(tp_registry_lookup(r, tp_str_of("b.c"), &t, NULL, NULL), TP_OK);
    assert_string_equal(t->name, "a.b.c");
    add(r, "b", "c");
    assert_int_equal(tp_registry_lookup(r, tp_str_of("b.c"), &t, NULL, NULL), TP_OK);
    assert_string_equal(t->plugin, "b");
    tp_registry_free(r);
}

static void test_a_shared_bare_name_is_ambiguous_and_lists_both(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_REJECT, 0);
    struct tp_registry_detail detail;
    const struct tp_type *t = NULL;
    struct tp_err err = {0};

    (void)state;
    add(r, "ascend", "KERNEL");
    assert_int_equal(tp_registry_lookup(r, tp_str_of("KERNEL"), &t, NULL, NULL), TP_OK);
    assert_int_equal(t->id, 154);
    add(r, "habana", "KERNEL");
    t = NULL;
    assert_int_equal(tp_registry_lookup(r, tp_str_of("KERNEL"), &t, &detail, &err),
                     TP_EAMBIGUOUS);
    assert_null(t);
    assert_int_equal(detail.n_names, 2);
    assert_string_equal(detail.names[0], "ascend.KERNEL");
    assert_string_equal(detail.names[1], "habana.KERNEL");
    assert_int_equal(tp_registry_lookup(r, tp_str_of("habana.KERNEL"), &t, NULL, NULL),
                     TP_OK);
    assert_int_equal(tp_registry_lookup(r, tp_str_of("ascend."), &t, NULL, NULL),
                     TP_ENOTFOUND);
    assert_int_equal(tp_registry_lookup(NULL, tp_str_of("x"), &t, NULL, NULL),
                     TP_ENOTFOUND);
    tp_registry_free(r);
}

static void test_restored_types_have_their_old_ids(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_REJECT, 0);
    struct tp_type_spec spec = spec_of("ascend", "REDUCE_SCATTER");
    struct tp_registry_detail detail;
    const struct tp_type *t;

    (void)state;
    tp_registry_freeze(r);
    assert_int_equal(tp_registry_restore(r, &spec, 200, NULL, NULL), TP_OK);
    assert_int_equal(tp_registry_restore(r, &spec, 200, NULL, NULL), TP_OK);
    t = tp_registry_find(r, spec.plugin, spec.type_name);
    assert_non_null(t);
    assert_int_equal(t->id, 200);
    assert_true(t->is_resolved);
    assert_int_equal(tp_registry_restore(r, &spec, 201, &detail, NULL), TP_EEXIST);
    spec = spec_of("ascend", "KERNEL");
    assert_int_equal(tp_registry_restore(r, &spec, 200, &detail, NULL), TP_EEXIST);
    assert_string_equal(detail.holder_name, "ascend.REDUCE_SCATTER");
    assert_int_equal(tp_registry_restore(r, &spec, 49, &detail, NULL), TP_EINVAL);
    assert_string_equal(detail.field, "id");
    assert_int_equal(tp_registry_restore(r, &spec, 255, NULL, NULL), TP_EINVAL);
    assert_int_equal(tp_registry_len(r), 1);
    tp_registry_free(r);
}

static void test_entries_are_in_order_of_registration(void **state)
{
    struct tp_registry *r = new_registry(TP_COLLISION_REJECT, 0);
    const struct tp_type *entries[TP_ACTIVITY_CUSTOM_COUNT];

    (void)state;
    add(r, "z", "Z");
    add(r, "a", "A");
    assert_int_equal(tp_registry_entries(r, entries), 2);
    assert_string_equal(entries[0]->name, "z.Z");
    assert_string_equal(entries[1]->name, "a.A");
    assert_ptr_equal(tp_registry_at(r, entries[1]->id), entries[1]);
    assert_null(tp_registry_at(r, 5));
    assert_string_equal(tp_registry_cat(r, entries[0]->id), "z.Z");
    assert_null(tp_registry_cat(r, 5));
    assert_null(tp_registry_at(r, 1000));
    tp_registry_free(r);
    tp_registry_free(NULL);
}

static void test_new_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_registry *r = NULL;
        int rc;

        fault_arm(n);
        rc = tp_registry_new(NULL, &r, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_registry_free(r);
            assert_int_equal(n, 1);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(r);
    }
}

static void test_a_batch_survives_every_allocation_failure(void **state)
{
    const struct tp_type_spec specs[3] = {spec_of("a", "A"), spec_of("b", "B"),
                                          spec_of("c", "C")};

    (void)state;
    for (int n = 0;; n++) {
        struct tp_registry *r = new_registry(TP_COLLISION_REJECT, 0);
        struct tp_registration regs[3];
        int rc;

        fault_arm(n);
        rc = tp_registry_register_many(r, specs, 3, regs, NULL, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(n, 3);
            tp_registry_free(r);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_int_equal(tp_registry_len(r), 0);
        assert_int_equal(regs[0].id, 0);
        tp_registry_free(r);
    }
}

static void test_restore_survives_every_allocation_failure(void **state)
{
    const struct tp_type_spec spec = spec_of("a", "A");

    (void)state;
    for (int n = 0;; n++) {
        struct tp_registry *r = new_registry(TP_COLLISION_REJECT, 0);
        struct tp_registry_detail detail;
        int rc;

        fault_arm(n);
        rc = tp_registry_restore(r, &spec, 60, &detail, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(n, 1);
            tp_registry_free(r);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_int_equal(detail.reason, TP_REGISTRY_NO_REASON);
        assert_int_equal(tp_registry_len(r), 0);
        tp_registry_free(r);
    }
}

static void test_a_plan_is_seen_by_nobody_until_it_is_published(void **state)
{
    const struct tp_type_spec specs[] = {
        {.plugin = tp_str_of("p"), .type_name = tp_str_of("A")},
        {.plugin = tp_str_of("p"), .type_name = tp_str_of("B")},
        {.plugin = tp_str_of("p"), .type_name = tp_str_of("A")}};
    struct tp_registration out[3];
    struct tp_registry_plan plan = {.n = 0};
    struct tp_registry *r = NULL;
    struct tp_err err = {0};

    (void)state;
    assert_int_equal(tp_registry_new(NULL, &r, &err), TP_OK);
    for (int i = 0; i < 2; i++) {
        tp_registry_drop(&plan);
        assert_int_equal(tp_registry_plan(r, specs, 3, out, &plan, NULL, &err), TP_OK);
        assert_int_equal(plan.n, 2);
        assert_true(out[0].is_new && out[1].is_new && !out[2].is_new);
        assert_ptr_equal(out[0].type, out[2].type);
        assert_int_equal(tp_registry_len(r), 0);
        assert_null(tp_registry_at(r, out[0].id));
    }
    tp_registry_publish(r, &plan);
    assert_int_equal(plan.n, 0);
    assert_int_equal(tp_registry_len(r), 2);
    assert_ptr_equal(tp_registry_at(r, out[0].id), out[0].type);
    assert_int_equal(tp_registry_plan(r, specs, 3, out, &plan, NULL, &err), TP_OK);
    assert_int_equal(plan.n, 0);
    assert_false(out[0].is_new);
    tp_registry_publish(r, &plan);
    tp_registry_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plan_is_seen_by_nobody_until_it_is_published),
        cmocka_unit_test(test_registration_is_idempotent),
        cmocka_unit_test(test_attributes_are_kept_and_the_first_ones_win),
        cmocka_unit_test(test_a_collision_is_refused_naming_the_holder),
        cmocka_unit_test(test_probing_resolves_collisions_until_every_id_is_taken),
        cmocka_unit_test(test_probing_reaches_every_id_from_every_hash),
        cmocka_unit_test(test_max_types_is_kept),
        cmocka_unit_test(test_a_frozen_registry_takes_known_types_only),
        cmocka_unit_test(test_a_batch_is_registered_whole_or_not_at_all),
        cmocka_unit_test(test_full_names_split_at_the_first_dot),
        cmocka_unit_test(test_a_shared_bare_name_is_ambiguous_and_lists_both),
        cmocka_unit_test(test_restored_types_have_their_old_ids),
        cmocka_unit_test(test_entries_are_in_order_of_registration),
        cmocka_unit_test(test_new_survives_every_allocation_failure),
        cmocka_unit_test(test_restore_survives_every_allocation_failure),
        cmocka_unit_test(test_a_batch_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
