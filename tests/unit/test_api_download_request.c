/*
 * test_api_download_request.c - what the parameters of a download may not be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"
#include "engine/traces.h"
#include "support/api_rig.h"

static void test_an_empty_list_is_refused_by_name(void **state)
{
    static const char *const keys[] = {"ranks", "types"};
    struct api_rig *a = *state;
    char id[64];

    api_post(a, "{}", "/v1/traces");
    api_expect_json(a, 201);
    snprintf(id, sizeof(id), "%s", api_str(a, "id"));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        print_message("%s\n", keys[i]);
        assert_int_equal(api_get(a, "/v1/traces/%s/download?%s=", id, keys[i]), 400);
        assert_string_equal(api_str(a, "parameter"), keys[i]);
    }
    assert_int_equal(api_get(a, "/v1/traces/%s/download?types=untyped", id), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_empty_list_is_refused_by_name,
                                        api_setup, api_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
