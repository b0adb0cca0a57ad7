/*
 * Header fields of downloads: ranges, entity tags and codings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/http_fields.h"

static void test_ranges_are_read_against_the_size(void **state)
{
    static const struct {
        const char *header;
        uint64_t size;
        enum tp_range_kind kind;
        uint64_t first, last;
    } cases[] = {
        {"bytes=0-9", 100, TP_RANGE_ONE, 0, 9},
        {"bytes=90-", 100, TP_RANGE_ONE, 90, 99},
        {"bytes=-10", 100, TP_RANGE_ONE, 90, 99},
        {"bytes=-1000", 100, TP_RANGE_ONE, 0, 99},
        {"bytes=50-1000", 100, TP_RANGE_ONE, 50, 99},
        {"Bytes = 1-2", 100, TP_RANGE_ONE, 1, 2},
        {"bytes=100-", 100, TP_RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=-0", 100, TP_RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=0-", 0, TP_RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=99999999999999999999-", 100, TP_RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=0-1,5-6", 100, TP_RANGE_NONE, 0, 0},
        {"bytes=9-1", 100, TP_RANGE_NONE, 0, 0},
        {"bytes=a-1", 100, TP_RANGE_NONE, 0, 0},
        {"lines=0-1", 100, TP_RANGE_NONE, 0, 0},
        {"bytes", 100, TP_RANGE_NONE, 0, 0},
        {"", 100, TP_RANGE_NONE, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t first = 0;
        uint64_t last = 0;

        print_message("case '%s'\n", cases[i].header);
        assert_int_equal(tp_range_parse(tp_str_of(cases[i].header), cases[i].size,
                                        &first, &last),
                         cases[i].kind);
        if (cases[i].kind == TP_RANGE_ONE) {
            assert_int_equal(first, cases[i].first);
            assert_int_equal(last, cases[i].last);
        }
    }
}

static void test_etags_match_as_lists_and_weakly(void **state)
{
    struct tp_str etag = tp_str_of("\"abc\"");
    struct tp_str absent = {NULL, 0};

    (void)state;
    assert_true(tp_etag_is_listed(tp_str_of("\"abc\""), etag));
    assert_true(tp_etag_is_listed(tp_str_of("\"x\", W/\"abc\""), etag));
    assert_true(tp_etag_is_listed(tp_str_of("*"), etag));
    assert_false(tp_etag_is_listed(tp_str_of("\"ab\""), etag));
    assert_false(tp_etag_is_listed(absent, etag));
    assert_true(tp_etag_allows_range(absent, etag));
    assert_true(tp_etag_allows_range(tp_str_of("\"abc\""), etag));
    assert_false(tp_etag_allows_range(tp_str_of("W/\"abc\""), etag));
    assert_false(
        tp_etag_allows_range(tp_str_of("Tue, 01 Dec 2026 00:00:00 GMT"), etag));
}

static void test_codings_are_chosen_by_q_values(void **state)
{
    static const struct {
        const char *header;
        enum tp_accept coding;
    } cases[] = {
        {"gzip", TP_ACCEPT_GZIP},
        {"gzip, deflate, br, zstd", TP_ACCEPT_GZIP},
        {"gzip;q=0.5, zstd;q=0.9", TP_ACCEPT_ZSTD},
        {"zstd", TP_ACCEPT_ZSTD},
        {"br", TP_ACCEPT_IDENTITY},
        {"", TP_ACCEPT_IDENTITY},
        {"gzip;q=0", TP_ACCEPT_IDENTITY},
        {"identity, gzip;q=0.5", TP_ACCEPT_IDENTITY},
        {"*", TP_ACCEPT_GZIP},
        {"*;q=0", TP_ACCEPT_NOTHING},
        {"identity;q=0", TP_ACCEPT_NOTHING},
        {"identity;q=0, zstd;q=0.001", TP_ACCEPT_ZSTD},
        {"gzip;q=nonsense", TP_ACCEPT_IDENTITY},
    };

    (void)state;
    assert_int_equal(tp_accept_coding((struct tp_str){NULL, 0}), TP_ACCEPT_IDENTITY);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("case '%s'\n", cases[i].header);
        assert_int_equal(tp_accept_coding(tp_str_of(cases[i].header)), cases[i].coding);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_are_read_against_the_size),
        cmocka_unit_test(test_etags_match_as_lists_and_weakly),
        cmocka_unit_test(test_codings_are_chosen_by_q_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
