/*
 * test_json_scan.c - values are checked, skipped, copied repaired, and their end found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_scan.h"

#define REPLACED "\xef\xbf\xbd"

static const struct {
    const char *text;
    const char *copy;
    unsigned oddities;
    bool is_repaired;
} good[] = {
    {"0", "0", 0, false},
    {"-1.5e3", "-1.5e3", 0, false},
    {"true", "true", 0, false},
    {"false", "false", 0, false},
    {"null", "null", 0, false},
    {"\"\"", "\"\"", 0, false},
    {"\"\\u00e9\"", "\"\\u00e9\"", 0, false},
    {"[]", "[]", 0, false},
    {"{}", "{}", 0, false},
    {"[ ]", "[]", 0, false},
    {"[[1,20],[],[[0]]]", "[[1,20],[],[[0]]]", 0, false},
    {"[1 , 2 ]", "[1,2]", 0, false},
    {"[10,1.5,-1]", "[10,1.5,-1]", 0, false},
    {"[[64, 64], []]", "[[64,64],[]]", 0, false},
    {"{\"a\" : 1 , \"b\":[true,{\"c\":null}]}", "{\"a\":1,\"b\":[true,{\"c\":null}]}",
     0, false},
    {"[1,\n2]", "[1,2]", TP_JSON_SPREAD, false},
    {"{\t\"a\":\r1}", "{\"a\":1}", TP_JSON_SPREAD, false},
    {"[1,]", "[1]", TP_JSON_UNSOUND, false},
    {"{\"a\":1 , }", "{\"a\":1}", TP_JSON_UNSOUND, false},
    {"NaN", "\"NaN\"", TP_JSON_UNSOUND, true},
    {"[-nan,Infinity,-Infinity,inf,-INF,nan]",
     "[\"NaN\",\"Infinity\",\"-Infinity\",\"Infinity\",\"-Infinity\",\"NaN\"]",
     TP_JSON_UNSOUND, true},
    {"\"a\nb\"", "\"a\\nb\"", TP_JSON_UNSOUND, true},
    {"\"\x01\x02\x03\x04\x05\x06\x07\"",
     "\"\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\"", TP_JSON_UNSOUND, true},
    {"{\"\xff\":\"\\ud800\\q\"}", "{\"" REPLACED "\":\"" REPLACED "\\\\q\"}",
     TP_JSON_UNSOUND, true},
};

static void test_values_are_skipped_and_copied(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        const size_t len = strlen(good[i].text);
        char *block = malloc(len + 1);
        char *out = malloc(TP_JSON_COPY_BYTES(len));
        struct tp_json c;
        unsigned oddities = 0;
        bool repaired = false;
        size_t n;

        assert_true(block != NULL && out != NULL);
        memcpy(block, good[i].text, len);
        block[len] = ',';
        c = (struct tp_json){.p = block, .end = block + len + 1};
        if (tp_json_skip(&c, 8, &oddities) != TP_OK || c.p != block + len ||
            oddities != good[i].oddities)
            fail_msg("%s: oddities %u, %s", good[i].text, oddities, c.why);
        n = tp_json_copy((struct tp_str){block, len}, out, &repaired);
        if (n != strlen(good[i].copy) || memcmp(out, good[i].copy, n) != 0 ||
            repaired != good[i].is_repaired)
            fail_msg("%s becomes %.*s", good[i].text, (int)n, out);
        free(block);
        free(out);
    }
}

static void test_cut_values_are_incomplete(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        for (size_t n = 0; n < strlen(good[i].text); n++) {
            char *block = malloc(n + 1);
            unsigned oddities = 0;
            struct tp_json c;

            assert_non_null(block);
            memcpy(block, good[i].text, n);
            c = (struct tp_json){.p = block, .end = block + n};
            if (tp_json_skip(&c, 8, &oddities) != TP_EAGAIN)
                fail_msg("%zu bytes of %s", n, good[i].text);
            free(block);
        }
}

static void test_faults_are_named_at_their_byte(void **state)
{
    static const struct {
        const char *text;
        size_t at;
    } bad[] = {
        {"x ", 0},          {"tru,", 0},      {"nulls ", 0}, {"[1 2]", 3},
        {"[1}", 2},         {"{\"a\" 1}", 5}, {"{a:1}", 1},  {"{\"a\":1]", 6},
        {"{\"a\":}", 5},    {"[,1]", 1},      {"{,}", 1},    {"[1,,2]", 3},
        {"{\"a\":1,,}", 7}, {"]", 0},         {"}", 0},      {"[01]", 2},
        {"[1[", 2},         {"[1,00]", 4},    {"nanx ", 0},  {"-x ", 1},
        {"+inf ", 0},       {"[True]", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tp_json c = {.p = bad[i].text, .end = bad[i].text + strlen(bad[i].text)};
        unsigned oddities = 0;

        if (tp_json_skip(&c, 8, &oddities) != TP_EINVAL ||
            c.p != bad[i].text + bad[i].at || c.why == NULL)
            fail_msg("%s: stopped at %zu", bad[i].text, (size_t)(c.p - bad[i].text));
    }
}

static void test_depth_is_limited(void **state)
{
    static const char text[] = "[[{\"a\":[1]}]] ";
    struct tp_json c = {.p = text, .end = text + sizeof(text) - 1};
    unsigned oddities = 0;

    (void)state;
    assert_int_equal(tp_json_skip(&c, 4, &oddities), TP_OK);
    c.p = text;
    assert_int_equal(tp_json_skip(&c, 3, &oddities), TP_EQUOTA);
    assert_ptr_equal(c.p, text + 7);
    c.p = text;
    assert_int_equal(tp_json_skip(&c, 0, &oddities), TP_EQUOTA);
}

static void test_depth_reaches_its_maximum_and_no_further(void **state)
{
    char text[2 * TP_JSON_DEPTH_MAX + 4];
    struct tp_json c;
    unsigned oddities = 0;

    (void)state;
    for (size_t depth = TP_JSON_DEPTH_MAX; depth <= TP_JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = ' ';
        c = (struct tp_json){.p = text, .end = text + 2 * depth + 1};
        assert_int_equal(tp_json_skip(&c, 100000, &oddities),
                         depth == TP_JSON_DEPTH_MAX ? TP_OK : TP_EQUOTA);
    }
}

static void test_words_end_where_they_end(void **state)
{
    static const char text[] = "-Infinity]";
    struct tp_json c = {.p = text, .end = text + sizeof(text) - 1};
    struct tp_str json;

    (void)state;
    assert_int_equal(tp_json_literal(&c, &json), TP_OK);
    assert_true(tp_str_is(json, "\"-Infinity\""));
    assert_ptr_equal(c.p, text + 9);
    for (size_t n = 0; n <= 9; n++) {
        c = (struct tp_json){.p = text, .end = text + n};
        assert_int_equal(tp_json_literal(&c, &json), TP_EAGAIN);
        assert_ptr_equal(c.p, text);
    }
}

/* The edge finds the end that skipping finds, in pieces of any size. */
static void test_edges_agree_with_skipping(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        for (size_t piece = 1; piece < 40; piece++) {
            const size_t len = strlen(good[i].text);
            char text[100];
            struct tp_json_edge e = {0};
            size_t done = 0;
            bool is_done = false;

            memcpy(text, good[i].text, len);
            memcpy(text + len, ",\"]}", 4);
            while (!is_done) {
                const size_t n = piece < len + 4 - done ? piece : len + 4 - done;
                size_t used;

                assert_true(n > 0);
                is_done = tp_json_edge_feed(&e, text + done, n, &used);
                done += used;
            }
            if (done != len)
                fail_msg("%s in pieces of %zu ends at %zu", good[i].text, piece, done);
        }
}

static void test_edges_know_escapes_that_are_cut(void **state)
{
    struct tp_json_edge e = {0};
    size_t used;

    (void)state;
    assert_false(tp_json_edge_feed(&e, "[\"]\\", 4, &used));
    assert_false(tp_json_edge_feed(&e, "\"]\\\\", 4, &used));
    assert_false(tp_json_edge_feed(&e, "", 0, &used));
    assert_true(tp_json_edge_feed(&e, "\"]x", 3, &used));
    assert_int_equal(used, 2);
}

/* The next number of a sequence that is the same each time. */
static unsigned next_random(uint64_t *x)
{
    *x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*x >> 33);
}

/* The text is skipped as it is and, a blank in front, by the general way: both say the
 * same and stop at the same byte. */
static void expect_same_skip(const char *text, size_t n, unsigned depth_max)
{
    char blank[80] = " ";
    struct tp_json quick = {.p = text, .end = text + n};
    struct tp_json walk = {.p = blank, .end = blank + n + 1};
    unsigned oddities[2] = {0, 0};
    int rc;

    memcpy(blank + 1, text, n);
    rc = tp_json_skip(&walk, depth_max, &oddities[0]);
    if (tp_json_skip(&quick, depth_max, &oddities[1]) != rc ||
        quick.p - text != walk.p - blank - 1 || oddities[0] != oddities[1])
        fail_msg("'%.*s' is %d at %d, then %d", (int)n, text, rc,
                 (int)(walk.p - blank - 1), (int)(quick.p - text));
}

static void test_arrays_of_integers_are_skipped_as_any_others(void **state)
{
    static const char alphabet[] = "[],0 12,,[]1";
    uint64_t x = 1;

    (void)state;
    for (int round = 0; round < 300000; round++) {
        const unsigned n = 1 + next_random(&x) % 44;
        const unsigned kinds = round % 3 == 0 ? 12 : 8;
        char text[64];

        text[0] = '[';
        for (unsigned i = 1; i < n; i++)
            text[i] = alphabet[next_random(&x) % kinds];
        /* What is behind makes room for whole blocks. */
        memcpy(text + n, "]]]],,,,,,,,,,,,", 16);
        expect_same_skip(text, n, 3);
        expect_same_skip(text, n + 16, 3);
    }
}

static void test_good_arrays_of_integers_are_found_good(void **state)
{
    uint64_t x = 1;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct tp_json c;
        unsigned oddities = 0;
        char text[96] = "[";
        size_t n = 1;

        for (unsigned i = next_random(&x) % 8; i > 0; i--) {
            static const char *const parts[] = {"0", "64", "[]", "[1, 20]", "[[7],3]"};
            const char *part = parts[next_random(&x) % 5];

            memcpy(text + n, part, strlen(part));
            n += strlen(part);
            memcpy(text + n, ", ", 2);
            n += i > 1 ? 1 + next_random(&x) % 2 : 0;
        }
        memcpy(text + n, "],\"k\":1234567890}}", 18);
        c = (struct tp_json){.p = text, .end = text + n + 18};
        assert_int_equal(tp_json_skip(&c, 3, &oddities), TP_OK);
        assert_int_equal(c.p - text, n + 1);
        assert_int_equal(oddities, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_skipped_and_copied),
        cmocka_unit_test(test_cut_values_are_incomplete),
        cmocka_unit_test(test_faults_are_named_at_their_byte),
        cmocka_unit_test(test_depth_is_limited),
        cmocka_unit_test(test_depth_reaches_its_maximum_and_no_further),
        cmocka_unit_test(test_words_end_where_they_end),
        cmocka_unit_test(test_arrays_of_integers_are_skipped_as_any_others),
        cmocka_unit_test(test_good_arrays_of_integers_are_found_good),
        cmocka_unit_test(test_edges_agree_with_skipping),
        cmocka_unit_test(test_edges_know_escapes_that_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
