/*
 * test_source_rank.c - what a file says of its rank, against what is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "engine/identity.h"
#include "engine/source_rank.h"
#include "support/fault.h"

static struct tp_source_says said(const char *json)
{
    struct tp_source_says says;

    tp_source_says_init(&says);
    tp_source_says_member(&says, tp_str_of("distributedInfo"), tp_str_of(json));
    return says;
}

static void test_only_two_known_values_can_disagree(void **state)
{
    static const struct {
        const char *json;
        int64_t rank;
        uint32_t world;
        const char *want; /* NULL: no disagreement */
    } cases[] = {
        {"{\"rank\": 7, \"world_size\": 8}", 7, 8, NULL},
        {"{\"rank\": 7}", -1, 0, NULL},
        {"{}", 5, 8, NULL},
        {"{\"rank\": 7}", 5, 8, "its file says rank 7, its process was started as 5"},
        {"{\"rank\": 5, \"world_size\": 4}", 5, 8,
         "its file says world size 4, its process was started with 8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct tp_source_says says = said(cases[i].json);
        const struct tp_identity who = {.rank = cases[i].rank,
                                        .world_size = cases[i].world};
        char text[160] = "";
        bool differs = tp_source_disagrees(&says, &who, text, sizeof(text));

        if (differs != (cases[i].want != NULL) ||
            strcmp(text, differs ? cases[i].want : "") != 0)
            fail_msg("case %zu: %s", i, text);
    }
}

static void test_what_is_not_known_is_filled_in_and_the_rest_stays(void **state)
{
    const struct tp_source_says says = said("{\"rank\": 7, \"world_size\": 8}");
    const struct tp_row_identity from = {.rank = 5,
                                         .pid = 1,
                                         .process = tp_str_of("key")};
    struct tp_identity who = {0};

    (void)state;
    assert_int_equal(tp_identity_init(&who, &from, NULL), TP_OK);
    fault_arm(0);
    assert_int_equal(tp_source_fill_in(&says, &who, NULL), TP_ENOMEM);
    assert_true(fault_disarm());
    assert_int_equal(who.world_size, 0);
    assert_int_equal(tp_source_fill_in(&says, &who, NULL), TP_OK);
    assert_int_equal(who.rank, 5);
    assert_int_equal(who.world_size, 8);
    assert_string_equal(who.process, "key");
    tp_identity_fini(&who);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_two_known_values_can_disagree),
        cmocka_unit_test(test_what_is_not_known_is_filled_in_and_the_rest_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
