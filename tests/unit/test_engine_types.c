/*
 * Registering and finding activity types, and what is refused.
 */
#include "support/engine_test.h"

#include <stdio.h>

#include "base/err.h"
#include "core/limits.h"

static void test_a_new_type_is_new_once(void **state)
{
    struct rig *r = *state;
    struct tp_type_spec spec = {.plugin = rig_str("ascend"),
                                .type_name = rig_str("KERNEL"),
                                .unit = rig_str("GB/s"),
                                .kind = TP_TYPE_COUNTER};
    struct tp_type_list *list;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(tp_engine_types_register(r->engine, rig_str("j"), &spec, 1,
                                                  r->now, &list, &r->problem, &r->err),
                         TP_OK);
        assert_int_equal(list->n, 1);
        assert_int_equal(list->items[0].id, 154);
        assert_int_equal(list->items[0].is_new, i == 0);
        assert_string_equal(list->items[0].name, "ascend.KERNEL");
        assert_string_equal(list->items[0].job, "j");
        assert_string_equal(list->items[0].unit, "GB/s");
        assert_int_equal(list->items[0].device_type, TP_DEVICE_PRIVATEUSE1);
        tp_type_list_free(list);
        spec.kind = TP_TYPE_SLICE;
    }
}

/* Two names with one id, found by trying. */
static void find_collision(char *name, size_t size)
{
    unsigned id = tp_activity_compute_id(rig_str("p"), rig_str("A"));

    for (int i = 0;; i++) {
        snprintf(name, size, "B%d", i);
        if (tp_activity_compute_id(rig_str("p"), rig_str(name)) == id)
            return;
    }
}

static void test_a_collision_names_its_holder_and_registers_nothing(void **state)
{
    struct rig *r = *state;
    char name[16];
    unsigned id;
    struct tp_type_spec specs[2];
    struct tp_type_list *list;

    find_collision(name, sizeof(name));
    assert_int_equal(rig_type(r, "j", "p", "A", &id), TP_OK);
    memset(specs, 0, sizeof(specs));
    specs[0].plugin = specs[1].plugin = rig_str("p");
    specs[0].type_name = rig_str("fine");
    specs[1].type_name = rig_str(name);
    assert_int_equal(tp_engine_types_register(r->engine, rig_str("j"), specs, 2, r->now,
                                              &list, &r->problem, &r->err),
                     TP_EEXIST);
    assert_int_equal(r->problem.kind, TP_PROBLEM_ID_COLLISION);
    assert_string_equal(r->problem.field, "types[1]");
    assert_string_equal(r->problem.job, "j");
    assert_int_equal(r->problem.type.holder_id, id);
    assert_string_equal(r->problem.type.holder_name, "p.A");
    assert_int_equal(tp_engine_types_list(r->engine, rig_str("j"), TP_TYPES_CUSTOM, -1,
                                          0, &list, &r->problem, &r->err),
                     TP_OK);
    assert_int_equal(list->n, 1);
    tp_type_list_free(list);
    /* Another job has a registry of its own. */
    assert_int_equal(rig_type(r, "k", "p", name, &id), TP_OK);
}

static void test_probing_resolves_a_collision_and_survives_a_restart(void **state)
{
    struct rig *r = *state;
    struct tp_type_list *list;
    char name[16];
    unsigned a, b, again;

    r->on_collision = TP_COLLISION_PROBE;
    assert_int_equal(rig_restart(r), TP_OK);
    find_collision(name, sizeof(name));
    assert_int_equal(rig_type(r, "j", "p", "A", &a), TP_OK);
    assert_int_equal(rig_type(r, "j", "p", name, &b), TP_OK);
    assert_int_not_equal(a, b);
    r->on_collision = TP_COLLISION_REJECT;
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(rig_type(r, "j", "p", name, &again), TP_OK);
    assert_int_equal(b, again);
    assert_int_equal(tp_engine_type_get(r->engine, rig_str("j"), rig_str(name), &list,
                                        &r->problem, &r->err),
                     TP_OK);
    assert_true(list->items[0].is_resolved);
    tp_type_list_free(list);
}

static void test_a_frozen_registry_answers_id_0_and_names_the_trace(void **state)
{
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    unsigned type, again;

    assert_int_equal(rig_type(r, "j", "p", "A", &type), TP_OK);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_int_equal(rig_type(r, "j", "p", "NEW", &again), TP_ESTATE);
    assert_int_equal(r->problem.kind, TP_PROBLEM_REGISTRY_FROZEN);
    assert_int_equal(r->problem.type.id, 0);
    assert_string_equal(r->problem.trace_id, id);
    assert_int_equal(rig_type(r, "j", "p", "A", &again), TP_OK);
    assert_int_equal(type, again);
    assert_int_equal(rig_stop(r, id), TP_OK);
    assert_int_equal(rig_type(r, "j", "p", "NEW", &again), TP_OK);
}

static size_t count_types(struct rig *r, const char *job)
{
    struct tp_type_list *list = NULL;
    size_t n;

    assert_int_equal(tp_engine_types_list(r->engine, rig_str(job), TP_TYPES_CUSTOM, -1,
                                          0, &list, NULL, NULL),
                     TP_OK);
    n = list->n;
    tp_type_list_free(list);
    return n;
}

static void test_what_the_store_refused_is_nowhere(void **state)
{
    struct rig *r = *state;
    unsigned known, type;
    int n;

    assert_int_equal(rig_type(r, "j", "p", "KNOWN", &known), TP_OK);
    for (n = 0;; n++) {
        store_faulty_fail_after(r->store, n);
        if (rig_type(r, "j", "p", "A", &type) == TP_OK)
            break;
        assert_int_equal(r->problem.kind, TP_PROBLEM_STORAGE);
        assert_int_equal(count_types(r, "j"), 1);
        /* What is known needs no store. */
        store_faulty_break_after(r->store, 0);
        assert_int_equal(rig_type(r, "j", "p", "KNOWN", &type), TP_OK);
        assert_int_equal(type, known);
        store_faulty_disarm(r->store);
    }
    assert_true(n >= 3);
    store_faulty_disarm(r->store);
    assert_int_equal(count_types(r, "j"), 2);
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(r->recovery.types, 2);
}

static void test_an_unknown_name_suggests_the_nearest(void **state)
{
    struct rig *r = *state;
    struct tp_type_list *list;
    unsigned type;

    assert_int_equal(rig_type(r, "j", "ascend", "KERNEL", &type), TP_OK);
    assert_int_equal(tp_engine_type_get(r->engine, rig_str("j"),
                                        rig_str("ascend.KERNAL"), &list, &r->problem,
                                        &r->err),
                     TP_ENOTFOUND);
    assert_int_equal(r->problem.kind, TP_PROBLEM_UNKNOWN_TYPE);
    assert_string_equal(r->problem.type.names[0], "ascend.KERNEL");
    assert_int_equal(tp_engine_type_get(r->engine, rig_str("j"), rig_str("99"), &list,
                                        &r->problem, &r->err),
                     TP_ENOTFOUND);
    assert_int_equal(tp_engine_type_get(r->engine, rig_str("j"), rig_str("154"), &list,
                                        &r->problem, &r->err),
                     TP_OK);
    assert_string_equal(list->items[0].name, "ascend.KERNEL");
    tp_type_list_free(list);
    assert_int_equal(rig_type(r, "j", "other", "KERNEL", &type), TP_OK);
    assert_int_equal(tp_engine_type_get(r->engine, rig_str("j"), rig_str("KERNEL"),
                                        &list, &r->problem, &r->err),
                     TP_EAMBIGUOUS);
    assert_int_equal(r->problem.kind, TP_PROBLEM_AMBIGUOUS_NAME);
    assert_int_equal(r->problem.type.n_names, 2);
}

static void test_lists_go_by_id_and_by_page(void **state)
{
    struct rig *r = *state;
    struct tp_type_list *list;
    unsigned type;

    assert_int_equal(rig_type(r, "", "p", "A", &type), TP_OK);
    assert_int_equal(tp_engine_types_list(r->engine, rig_str(""), TP_TYPES_ALL, -1, 0,
                                          &list, NULL, NULL),
                     TP_OK);
    assert_int_equal(list->n, TP_ACTIVITY_STATIC_COUNT + 1);
    assert_string_equal(list->items[0].name, "cpu_op");
    tp_type_list_free(list);
    assert_int_equal(tp_engine_types_list(r->engine, rig_str("nobody"), TP_TYPES_ALL,
                                          26, 1, &list, NULL, NULL),
                     TP_OK);
    assert_int_equal(list->n, 1);
    assert_int_equal(list->items[0].id, 27);
    assert_true(list->has_more);
    tp_type_list_free(list);
    assert_int_equal(tp_engine_types_list(r->engine, rig_str(""), TP_TYPES_STATIC, 27,
                                          5, &list, NULL, NULL),
                     TP_OK);
    assert_int_equal(list->n, 1);
    assert_false(list->has_more);
    tp_type_list_free(list);
}

static void test_limits_and_bad_names_are_refused_by_name(void **state)
{
    struct rig *r = *state;
    static const char too_long[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    static const char *const bad_jobs[] = {".hidden", "a b", "a/b", "\xc3\xa4",
                                           too_long};
    unsigned type;

    for (size_t i = 0; i < sizeof(bad_jobs) / sizeof(bad_jobs[0]); i++) {
        if (rig_type(r, bad_jobs[i], "p", "A", &type) != TP_EINVAL)
            fail_msg("job '%s' was taken", bad_jobs[i]);
        assert_string_equal(r->problem.field, "job");
    }
    assert_int_equal(rig_type(r, "j", "p.q", "A", &type), TP_EINVAL);
    assert_int_equal(r->problem.kind, TP_PROBLEM_INVALID);
    assert_string_equal(r->problem.field, "plugin");
    r->limits->jobs = 1;
    r->limits->types_per_job = 1;
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(rig_type(r, "j", "p", "A", &type), TP_OK);
    assert_int_equal(rig_type(r, "j", "p", "B", &type), TP_EQUOTA);
    assert_string_equal(r->problem.limit_name, "max-types-per-job");
    assert_int_equal(r->problem.limit_max, 1);
    assert_int_equal(rig_type(r, "k", "p", "B", &type), TP_EQUOTA);
    assert_string_equal(r->problem.limit_name, "max-jobs");
}

static void test_jobs_are_listed_with_what_they_have(void **state)
{
    struct rig *r = *state;
    struct tp_job_list *list;
    char id[TP_TRACE_ID_BYTES];
    unsigned type;

    assert_int_equal(rig_type(r, "b", "p", "A", &type), TP_OK);
    assert_int_equal(rig_create(r, "a", NULL, id), TP_OK);
    assert_int_equal(tp_engine_jobs_list(r->engine, rig_str(""), 0, &list, &r->err),
                     TP_OK);
    assert_int_equal(list->n, 2);
    assert_string_equal(list->items[0].name, "a");
    assert_string_equal(list->items[0].active_trace, id);
    assert_int_equal(list->items[0].n_traces, 1);
    assert_int_equal(list->items[1].n_types, 1);
    tp_job_list_free(list);
    assert_int_equal(tp_engine_jobs_list(r->engine, rig_str("a"), 1, &list, &r->err),
                     TP_OK);
    assert_int_equal(list->n, 1);
    assert_string_equal(list->items[0].name, "b");
    tp_job_list_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_a_new_type_is_new_once),
        engine_test(test_a_collision_names_its_holder_and_registers_nothing),
        engine_test(test_probing_resolves_a_collision_and_survives_a_restart),
        engine_test(test_a_frozen_registry_answers_id_0_and_names_the_trace),
        engine_test(test_what_the_store_refused_is_nowhere),
        engine_test(test_an_unknown_name_suggests_the_nearest),
        engine_test(test_lists_go_by_id_and_by_page),
        engine_test(test_limits_and_bad_names_are_refused_by_name),
        engine_test(test_jobs_are_listed_with_what_they_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
