/*
 * test_server_kineto_trace_id.c - the top-level "trace_id" of a file is found wherever
 * it is and however the file is cut into portions, and no other one.
 */
#include "server/kineto_trace_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum outcome { NONE, FOUND, WRONG };

static const struct {
    const char *text;
    enum outcome outcome;
} cases[] = {
    {"{\"trace_id\": \"mine\", \"traceEvents\": []}", FOUND},
    {"{\n\"schemaVersion\": 1,\n\"trace_id\"\n:\t\"mine\"", FOUND},
    {"{\"traceEvents\": [{\"name\": \"}]\\\"{[\"}], \"trace_id\": \"mine\"}", FOUND},
    {"{\"a\": \"\\\\\", \"b\": \"\\\\\\\"\", \"trace_id\": \"mine\"}", FOUND},
    {"{\"a\": {\"b\": [[], {}]}, \"trace_id\": \"mine\"}", FOUND},
    {"{\"trace_id\": \"mine\"", FOUND},
    {"{\"trace_id\":\"\"}", WRONG},
    {"{\"trace_id\":\"other\"}", WRONG},
    {"{\"trace_id\":\"mine2\"}", WRONG},
    {"{\"trace_id\":\"min\"}", WRONG},
    {"{\"trace_id\":\"mine\", \"traceEvents\": [], \"trace_id\":\"other\"}", WRONG},
    {"{\"traceEvents\": [{\"args\":{}}], \"trace_id\":\"other\"}", WRONG},
    {"{\"trace_id\":\"0123456789012345678901234567890123456789012345678901\"}", WRONG},
    {"{\"traceEvents\": [{\"args\":{\"trace_id\": \"other\"}}]}", NONE},
    {"{\"traceEvents\": [{\"trace_id\": \"mine\"}]}", NONE},
    {"{\"a\": \"trace_id\", \"b\": \"other\"}", NONE},
    {"{\"a\": [\"trace_id\", \"other\"]}", NONE},
    {"{\"a\": \"\\\"trace_id\\\": \\\"other\\\"\"}", NONE},
    {"[{\"trace_id\": \"other\"}]", NONE},
    {"{\"trace_id\": 5, \"a\": \"b\"}", NONE},
    {"{\"trace_id\": {\"a\": \"b\"}}", NONE},
    {"{\"trace_id2\": \"other\"}", NONE},
    {"{\"trace_id\": \"open", NONE},
    {"{\"trace_id\"", NONE},
    {"]]}}{", NONE},
    {"", NONE},
};

/* In portions of that many bytes. */
static enum outcome search(const char *text, size_t portion)
{
    struct tp_kineto_trace_id s = {.wanted = "mine"};
    bool is_fine = true;

    for (size_t n = strlen(text), i = 0; i < n && is_fine; i += portion)
        is_fine =
            tp_kineto_trace_id_feed(&s, text + i, n - i < portion ? n - i : portion);
    assert_true(is_fine == !s.is_wrong);
    return s.is_wrong ? WRONG : s.is_found ? FOUND : NONE;
}

static void test_the_id_is_found_in_any_portions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t portion = 1; portion <= strlen(cases[i].text) + 1; portion++) {
            enum outcome outcome = search(cases[i].text, portion);

            if (outcome != cases[i].outcome)
                fail_msg("%s, by %zu: %d", cases[i].text, portion, (int)outcome);
        }
    }
}

static void test_a_wrong_id_is_told_as_far_as_it_fits(void **state)
{
    static const char text[] =
        "{\"trace_id\":\"0123456789abcdef0123456789abcdef0123456789abcdef0123\"}";
    struct tp_kineto_trace_id s = {.wanted = "mine"};

    (void)state;
    assert_false(tp_kineto_trace_id_feed(&s, text, sizeof(text) - 1));
    assert_string_equal(s.text, "0123456789abcdef0123456789abcdef0123456789abcde");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_id_is_found_in_any_portions),
        cmocka_unit_test(test_a_wrong_id_is_told_as_far_as_it_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
