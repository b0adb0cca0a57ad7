/*
 * Giving memory back, against an engine that has worked and one that has not.
 */
#include "server/trim.h"

#include "support/engine_test.h"

#define SECOND_NS UINT64_C(1000000000)

static void test_an_engine_that_did_nothing_is_left_alone(void **state)
{
    struct rig *r = *state;
    struct tp_trim trim = {0};

    for (uint64_t s = 0; s < 10; s++)
        assert_false(tp_trim_look(&trim, r->engine, s * SECOND_NS));
}

static void test_memory_is_given_back_once_after_a_second_without_work(void **state)
{
    struct rig *r = *state;
    struct tp_trim trim = {0};
    struct tp_upload_reply reply;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "job", NULL, id), TP_OK);
    assert_int_equal(rig_post(r, id, "p", 0, -1, "[{\"ph\":\"X\",\"ts\":1,\"dur\":1}]",
                              &reply),
                     TP_OK);
    assert_false(tp_trim_look(&trim, r->engine, 10 * SECOND_NS));
    assert_false(tp_trim_look(&trim, r->engine, 11 * SECOND_NS - 1));
    assert_true(tp_trim_look(&trim, r->engine, 11 * SECOND_NS));
    assert_false(tp_trim_look(&trim, r->engine, 20 * SECOND_NS));
}

static void test_an_open_upload_is_work(void **state)
{
    struct rig *r = *state;
    struct tp_trim trim = {0};
    struct tp_upload_request request = {.rank = -1, .pid = -1};
    struct tp_upload *upload = NULL;
    char id[TP_TRACE_ID_BYTES];

    assert_int_equal(rig_create(r, "job", NULL, id), TP_OK);
    assert_int_equal(tp_engine_upload_begin(r->engine, rig_str(id), &request, r->now,
                                            &upload, &r->problem, &r->err),
                     TP_OK);
    for (uint64_t s = 1; s < 10; s++)
        assert_false(tp_trim_look(&trim, r->engine, s * SECOND_NS));
    tp_upload_free(upload);
    assert_false(tp_trim_look(&trim, r->engine, 10 * SECOND_NS - 1));
    assert_true(tp_trim_look(&trim, r->engine, 10 * SECOND_NS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_engine_that_did_nothing_is_left_alone,
                                        engine_setup, engine_teardown),
        cmocka_unit_test_setup_teardown(
            test_memory_is_given_back_once_after_a_second_without_work, engine_setup,
            engine_teardown),
        cmocka_unit_test_setup_teardown(test_an_open_upload_is_work, engine_setup,
                                        engine_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
