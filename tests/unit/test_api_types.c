/*
 * Activity types and jobs over the API.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/limits.h"
#include "engine/traces.h"
#include "support/api_rig.h"

#define KERNEL "{\"plugin\":\"ascend\",\"type_name\":\"KERNEL\"}"

static void test_a_new_type_is_201_and_the_same_again_200_with_its_id(void **state)
{
    struct api_rig *a = *state;
    int64_t id;

    api_post(a, KERNEL, "/v1/types");
    api_expect_json(a, 201);
    id = api_int(a, "id");
    assert_in_range(id, 50, 255);
    assert_string_equal(api_str(a, "name"), "ascend.KERNEL");
    assert_string_equal(api_str(a, "scope"), "custom");
    assert_string_equal(api_str(a, "job"), "default");
    assert_true(json_object_get_boolean(api_at(a, "created")));
    api_post(a, KERNEL, "/types");
    api_expect_json(a, 200);
    assert_int_equal(api_int(a, "id"), id);
    assert_false(json_object_get_boolean(api_at(a, "created")));
    assert_null(api_at(a, "warnings"));
}

static void test_other_attributes_of_a_known_type_are_warned_of(void **state)
{
    struct api_rig *a = *state;

    api_post(a, KERNEL, "/v1/types");
    api_post(a,
             "{\"plugin\":\"ascend\",\"type_name\":\"KERNEL\",\"kind\":\"counter\","
             "\"unit\":\"W\"}",
             "/v1/types");
    api_expect_json(a, 200);
    assert_true(api_len(a, "warnings") > 0);
}

static void test_a_batch_is_registered_whole_or_not_at_all(void **state)
{
    struct api_rig *a = *state;

    api_post(a,
             "{\"job\":\"k\",\"types\":[" KERNEL
             ",{\"plugin\":\"ascend\",\"type_name\":\"\"}]}",
             "/v1/types");
    api_expect_problem(a, 400, "invalid-field");
    assert_string_equal(api_str(a, "field"), "types[1].type_name");
    api_get(a, "/v1/types?job=k&scope=custom");
    if (a->call.status == 200)
        assert_int_equal(api_len(a, "items"), 0);
    api_post(a,
             "{\"job\":\"k\",\"types\":[" KERNEL
             ",{\"plugin\":\"ascend\",\"type_name\":\"SYNC\"}]}",
             "/v1/types");
    api_expect_json(a, 201);
    assert_int_equal(api_len(a, "types"), 2);
    assert_string_equal(api_str(a, "types[1].name"), "ascend.SYNC");
}

static void test_wrong_fields_are_named(void **state)
{
    static const struct {
        const char *body, *type, *field;
    } cases[] = {
        {"{}", "invalid-field", "plugin"},
        {"{\"plugin\":1,\"type_name\":\"A\"}", "invalid-field", "plugin"},
        {"{\"plugin\":\"a\"}", "invalid-field", "type_name"},
        {"{\"plugin\":\"a\",\"type_name\":null}", "invalid-field", "type_name"},
        {"{\"plugin\":\"a\",\"type_name\":\"B\\u0000C\"}", "invalid-field",
         "type_name"},
        {"{\"plugin\":\"a\",\"type_name\":\"B\",\"kind\":\"dot\"}", "invalid-field",
         "kind"},
        {"{\"plugin\":\"a\",\"type_nam\":\"B\"}", "unknown-field", "type_nam"},
        {"{\"types\":[]}", "invalid-field", "types"},
        {"{\"types\":{}}", "invalid-field", "types"},
        {"{\"types\":[3]}", "invalid-field", "types[0]"},
        {"{\"types\":[{\"plug\":\"a\"}]}", "unknown-field", "types[0].plug"},
        {"{\"types\":[{\"plugin\":\"a\",\"type_name\":\"B\",\"job\":\"x\"},"
         "{\"plugin\":\"a\",\"type_name\":\"C\",\"job\":\"y\"}]}",
         "invalid-field", "types[1].job"},
    };
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("body %s\n", cases[i].body);
        api_post(a, cases[i].body, "/v1/types");
        api_expect_problem(a, 400, cases[i].type);
        assert_string_equal(api_str(a, "field"), cases[i].field);
    }
    api_post(a, "{\"plugin\":\"a\",\"type_nam\":\"B\"}", "/v1/types");
    assert_non_null(strstr(api_str(a, "detail"), "did you mean 'type_name'"));
}

static void test_too_many_types_of_a_request_name_the_limit(void **state)
{
    struct api_rig *a = *state;

    a->rig.limits->types_per_request = 1;
    api_post(a, "{\"types\":[" KERNEL "," KERNEL "]}", "/v1/types");
    api_expect_problem(a, 400, "invalid-field");
    assert_string_equal(api_str(a, "field"), "types");
    assert_string_equal(api_str(a, "limit"), "max-types-per-request");
    assert_string_equal(api_str(a, "unit"), "types");
    assert_int_equal(api_int(a, "max"), 1);
}

static void test_a_collision_names_the_holder(void **state)
{
    struct api_rig *a = *state;
    char body[128];
    int64_t id = 0;
    int i;

    for (i = 0; i < 400; i++) {
        snprintf(body, sizeof(body), "{\"plugin\":\"p\",\"type_name\":\"T%d\"}", i);
        if (api_post(a, body, "/v1/types") != 201)
            break;
    }
    api_expect_problem(a, 409, "id-collision");
    id = api_int(a, "id");
    assert_int_equal(api_int(a, "holder.id"), id);
    assert_non_null(strstr(api_str(a, "holder.name"), "p.T"));
    assert_string_equal(api_str(a, "job"), "default");
}

static void test_no_new_type_while_a_trace_is_active(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_make_trace(a, "{}", id);
    api_post(a, KERNEL, "/v1/types");
    api_expect_problem(a, 409, "registry-frozen");
    assert_int_equal(api_int(a, "id"), 0);
    assert_string_equal(api_str(a, "job"), "default");
    assert_string_equal(api_str(a, "trace_id"), id);
}

static void test_a_type_is_found_by_id_and_by_each_of_its_names(void **state)
{
    struct api_rig *a = *state;
    int64_t id;

    api_post(a, KERNEL, "/v1/types");
    id = api_int(a, "id");
    api_get(a, "/v1/types/%d", (int)id);
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "name"), "ascend.KERNEL");
    for (int i = 0; i < 2; i++) {
        api_get(a, "/v1/types/%s", i == 0 ? "ascend.KERNEL" : "%4bERNEL");
        api_expect_json(a, 200);
        assert_int_equal(api_int(a, "id"), id);
    }
    api_get(a, "/v1/types/CONCURRENT_KERNEL");
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "scope"), "static");
}

static void test_a_missing_type_is_404_with_the_nearest_names(void **state)
{
    struct api_rig *a = *state;

    api_post(a, KERNEL, "/v1/types");
    api_get(a, "/v1/types/ascend.KERNLE");
    api_expect_problem(a, 404, "not-found");
    assert_string_equal(api_str(a, "name"), "ascend.KERNLE");
    assert_string_equal(api_str(a, "nearest[0]"), "ascend.KERNEL");
}

static void test_a_bare_name_of_two_plugins_is_ambiguous(void **state)
{
    struct api_rig *a = *state;

    api_post(a, KERNEL, "/v1/types");
    api_post(a, "{\"plugin\":\"musa\",\"type_name\":\"KERNEL\"}", "/v1/types");
    api_get(a, "/v1/types/KERNEL");
    api_expect_problem(a, 409, "ambiguous-name");
    assert_int_equal(api_len(a, "candidates"), 2);
}

static void test_pages_of_types_hold_each_type_once(void **state)
{
    struct api_rig *a = *state;
    size_t all, seen = 0;
    char cursor[32] = "";

    api_post(a, KERNEL, "/v1/types");
    api_get(a, "/v1/types");
    api_expect_json(a, 200);
    all = api_len(a, "items");
    assert_null(api_at(a, "next_cursor"));
    do {
        api_get(a, "/v1/types?limit=7%s%s", cursor[0] ? "&cursor=" : "", cursor);
        api_expect_json(a, 200);
        seen += api_len(a, "items");
        cursor[0] = '\0';
        if (api_at(a, "next_cursor") != NULL)
            snprintf(cursor, sizeof(cursor), "%s", api_str(a, "next_cursor"));
    } while (cursor[0] != '\0' && seen <= all);
    assert_int_equal(seen, all);
    api_get(a, "/v1/types?scope=custom");
    assert_int_equal(api_len(a, "items"), 1);
}

static void test_wrong_parameters_of_lists_are_named(void **state)
{
    static const struct {
        const char *query, *type, *parameter;
    } cases[] = {
        {"types?scope=some", "invalid-parameter", "scope"},
        {"types?limit=0", "invalid-parameter", "limit"},
        {"types?limit=1001", "invalid-parameter", "limit"},
        {"types?limit=1e2", "invalid-parameter", "limit"},
        {"types?cursor=x", "invalid-parameter", "cursor"},
        {"types?job=a%01b", "invalid-parameter", "job"},
        {"types?scoep=all", "unknown-parameter", "scoep"},
        {"types?job=a&job=b", "invalid-parameter", "job"},
        {"jobs?limit=", "invalid-parameter", "limit"},
        {"jobs?job=j", "unknown-parameter", "job"},
    };
    struct api_rig *a = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("query %s\n", cases[i].query);
        api_get(a, "/v1/%s", cases[i].query);
        api_expect_problem(a, 400, cases[i].type);
        assert_string_equal(api_str(a, "parameter"), cases[i].parameter);
    }
}

static void test_jobs_are_listed_by_name_with_what_they_hold(void **state)
{
    struct api_rig *a = *state;
    char id[TP_TRACE_ID_BYTES];

    api_post(a, "{\"job\":\"b\",\"plugin\":\"p\",\"type_name\":\"T\"}", "/v1/types");
    api_make_trace(a, "{\"job\":\"a\"}", id);
    api_get(a, "/v1/jobs?limit=1");
    api_expect_json(a, 200);
    assert_string_equal(api_str(a, "items[0].name"), "a");
    assert_string_equal(api_str(a, "items[0].active_trace"), id);
    assert_string_equal(api_str(a, "next_cursor"), "a");
    api_get(a, "/v1/jobs?cursor=a");
    assert_string_equal(api_str(a, "items[0].name"), "b");
    assert_int_equal(api_int(a, "items[0].types"), 1);
    assert_null(api_at(a, "items[0].active_trace"));
}

#define api_test(name) cmocka_unit_test_setup_teardown(name, api_setup, api_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(test_a_new_type_is_201_and_the_same_again_200_with_its_id),
        api_test(test_other_attributes_of_a_known_type_are_warned_of),
        api_test(test_a_batch_is_registered_whole_or_not_at_all),
        api_test(test_wrong_fields_are_named),
        api_test(test_too_many_types_of_a_request_name_the_limit),
        api_test(test_a_collision_names_the_holder),
        api_test(test_no_new_type_while_a_trace_is_active),
        api_test(test_a_type_is_found_by_id_and_by_each_of_its_names),
        api_test(test_a_missing_type_is_404_with_the_nearest_names),
        api_test(test_a_bare_name_of_two_plugins_is_ambiguous),
        api_test(test_pages_of_types_hold_each_type_once),
        api_test(test_wrong_parameters_of_lists_are_named),
        api_test(test_jobs_are_listed_by_name_with_what_they_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
