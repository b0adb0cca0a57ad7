/*
 * test_api_trace_request.c - what a request for a trace keeps as it was sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "engine/traces.h"
#include "support/api_rig.h"

static void test_numbers_of_metadata_stay_as_they_were_sent(void **state)
{
    struct api_rig *a = *state;
    char id[64];

    api_post(a,
             "{ \"metadata\" : { \"b\" : 12345678901234567890123 ,\n"
             " \"c\":-12345678901234567890123, \"d\":1.50, \"e\":\"x\\u00e9 y\"},"
             "\"kineto\":{\"warmup_ms\":2000 }}",
             "/v1/traces");
    api_expect_json(a, 201);
    snprintf(id, sizeof(id), "%s", api_str(a, "id"));
    api_get(a, "/v1/traces/%s", id);
    assert_non_null(strstr(a->body.data, "{\"b\":12345678901234567890123,"
                                         "\"c\":-12345678901234567890123,\"d\":1.50,"
                                         "\"e\":\"x\\u00e9 y\"}"));
    assert_non_null(strstr(a->body.data, "{\"warmup_ms\":2000}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_numbers_of_metadata_stay_as_they_were_sent,
                                        api_setup, api_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
