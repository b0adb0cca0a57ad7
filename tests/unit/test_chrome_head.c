/*
 * test_chrome_head.c - the members before the events, of one source and of several.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>
#include <cmocka.h>

#include "base/buf.h"
#include "support/fault.h"
#include "trace/chrome_head.h"
#include "trace/merge.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

#define STR(t)             \
    {                      \
        (t), sizeof(t) - 1 \
    }

static struct tp_index_member members[] = {
    {STR("traceplane"), STR("{\"trace\": \"older\"}")},
    {STR("distributedInfo"), STR("{\"pg\\\"x\": [1], \"rank\": 5, \"world_size\": 8}")},
    {STR("a \"key\""), STR("[1,\n2]")},
    {STR("displayTimeUnit"), STR("\"ns\"")}};
static struct tp_stream_index indexes[] = {
    {.stream_no = 1, .members = members, .n_members = 4},
    {.stream_no = 2, .members = members, .n_members = 4}};

/* Write the members of n streams and parse them strictly. */
static struct json_object *head_of(const struct tp_producer_info *producers, size_t n)
{
    const struct tp_trace_info info = {.producers = producers, .n_producers = n};
    struct tp_merge_stream streams[2] = {{&indexes[0], &producers[0]},
                                         {&indexes[1], &producers[n > 1 ? 1 : 0]}};
    struct json_tokener *t = json_tokener_new();
    struct json_object *o;
    struct tp_buf b = {0};
    struct tp_merge *m;
    struct tp_err err;

    assert_int_equal(tp_merge_new(streams, n, &m, &err), TP_OK);
    assert_int_equal(tp_chrome_head_write(m, &info, NULL, 7, &b, &err), TP_OK);
    assert_int_equal(tp_chrome_head_write_end(&b, &err), TP_OK);
    tp_merge_free(m);
    json_tokener_set_flags(t, JSON_TOKENER_STRICT);
    o = json_tokener_parse_ex(t, b.data, (int)b.len);
    if (o == NULL)
        fail_msg("not JSON: %.*s", (int)b.len, b.data);
    json_tokener_free(t);
    tp_buf_fini(&b);
    return o;
}

static struct json_object *get(struct json_object *o, const char *key)
{
    struct json_object *value = NULL;

    if (!json_object_object_get_ex(o, key, &value))
        fail_msg("no member %s", key);
    return value;
}

static int number(struct json_object *o, const char *key)
{
    return json_object_get_int(get(o, key));
}

static void test_one_source_keeps_its_members(void **state)
{
    const struct tp_producer_info p = {.id = STR("p")};
    struct json_object *o = head_of(&p, 1);
    struct json_object *source;

    (void)state;
    assert_int_equal(number(o, "schemaVersion"), 1);
    assert_int_equal(number(o, "baseTimeNanoseconds"), 7);
    assert_int_equal(json_object_array_length(get(o, "a \"key\"")), 2);
    assert_string_equal(json_object_get_string(get(o, "displayTimeUnit")), "ns");
    assert_int_equal(number(get(o, "distributedInfo"), "rank"), 5);
    assert_int_equal(number(get(o, "distributedInfo"), "world_size"), 8);
    assert_int_equal(json_object_array_length(get(get(o, "distributedInfo"), "pg\"x")),
                     1);
    /* What we wrote into it once is kept apart from what we write now. */
    source = get(json_object_array_get_idx(get(get(o, "traceplane"), "producers"), 0),
                 "source");
    assert_non_null(get(get(source, "traceplane"), "trace"));
    json_object_put(o);
}

static void test_the_rank_of_the_producer_counts(void **state)
{
    const struct tp_producer_info p = {.has_rank = true, .rank = 6, .world_size = 9};
    struct json_object *o = head_of(&p, 1);

    (void)state;
    assert_int_equal(number(get(o, "distributedInfo"), "rank"), 6);
    assert_int_equal(number(get(o, "distributedInfo"), "world_size"), 9);
    json_object_put(o);
}

static void test_several_sources_stand_at_their_producers(void **state)
{
    const struct tp_producer_info p[] = {{.has_rank = true, .rank = 1},
                                         {.has_rank = true, .rank = 4}};
    struct json_object *o = head_of(p, 2);
    struct json_object *producers = get(get(o, "traceplane"), "producers");

    (void)state;
    assert_null(json_object_object_get(o, "a \"key\""));
    assert_int_equal(number(get(o, "distributedInfo"), "rank"), 1);
    assert_int_equal(json_object_array_length(get(get(o, "distributedInfo"), "ranks")),
                     2);
    for (size_t i = 0; i < 2; i++)
        assert_non_null(
            get(get(json_object_array_get_idx(producers, i), "source"), "a \"key\""));
    json_object_put(o);
}

static void test_streams_of_one_process_are_one_source(void **state)
{
    const struct tp_producer_info p[] = {
        {.id = STR("n"), .has_rank = true, .rank = 1, .process_no = 7},
        {.id = STR("k"),
         .kind = STR("kineto"),
         .has_rank = true,
         .rank = 1,
         .world_size = 2,
         .backend = STR("pytorch"),
         .process_no = 7}};
    struct json_object *o, *info;

    (void)state;
    indexes[0].n_members = 0; /* a library's stream has none */
    o = head_of(p, 2);
    info = get(o, "distributedInfo");
    assert_non_null(get(o, "a \"key\""));
    assert_int_equal(number(info, "rank"), 1);
    assert_int_equal(number(info, "world_size"), 2); /* the other one knows it */
    assert_int_equal(json_object_array_length(get(info, "pg\"x")), 1);
    assert_null(json_object_object_get(info, "backend")); /* it is not of the job */
    json_object_put(o);
    indexes[0].n_members = 4;
}

static void test_a_disputed_rank_is_no_rank(void **state)
{
    const struct tp_producer_info p[] = {
        {.id = STR("n"), .has_rank = true, .rank = 3, .process_no = 7},
        {.id = STR("k"), .has_rank = true, .rank = 5, .process_no = 7}};
    struct json_object *o = head_of(p, 2);
    struct json_object *info = get(o, "distributedInfo");

    (void)state;
    assert_null(json_object_object_get(info, "rank"));
    assert_int_equal(json_object_array_length(get(info, "ranks")), 2);
    json_object_put(o);
}

static void test_a_rank_that_nobody_knows_is_not_invented(void **state)
{
    const struct tp_producer_info p = {.id = STR("p")};
    struct json_object *o;

    (void)state;
    indexes[0].n_members = 0;
    o = head_of(&p, 1);
    assert_null(json_object_object_get(o, "distributedInfo"));
    assert_string_equal(json_object_get_string(get(o, "displayTimeUnit")), "ms");
    json_object_put(o);
    indexes[0].n_members = 4;
}

static void test_large_members_of_a_merge_are_left_out_and_said_so(void **state)
{
    const struct tp_producer_info p[] = {{.id = STR("a")}, {.id = STR("b")}};
    char *large = malloc(TP_CHROME_HEAD_SOURCES_BYTES);
    const struct tp_str kept = members[2].json;
    struct json_object *o;
    struct json_object *source;

    (void)state;
    assert_non_null(large);
    memset(large, 'x', TP_CHROME_HEAD_SOURCES_BYTES);
    large[0] = large[TP_CHROME_HEAD_SOURCES_BYTES - 1] = '"';
    members[2].json = (struct tp_str){large, TP_CHROME_HEAD_SOURCES_BYTES};
    o = head_of(p, 2);
    source = get(json_object_array_get_idx(get(get(o, "traceplane"), "producers"), 1),
                 "source");
    assert_null(json_object_object_get(source, "a \"key\""));
    assert_true(json_object_get_boolean(get(source, "is_shortened")));
    json_object_put(o);
    members[2].json = kept;
    free(large);
}

static void test_each_allocation_fails_cleanly(void **state)
{
    const struct tp_producer_info p = {.id = STR("p")};
    const struct tp_trace_info info = {.producers = &p, .n_producers = 1};
    const struct tp_merge_stream stream = {&indexes[0], &p};
    struct tp_merge *m;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_merge_new(&stream, 1, &m, &err), TP_OK);
    for (int n = 0;; n++) {
        struct tp_buf b = {0};
        int rc;

        fault_arm(n);
        rc = tp_chrome_head_write_object(m, &info, NULL, 0, &b, &err);
        tp_buf_fini(&b);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
    tp_merge_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_source_keeps_its_members),
        cmocka_unit_test(test_the_rank_of_the_producer_counts),
        cmocka_unit_test(test_several_sources_stand_at_their_producers),
        cmocka_unit_test(test_streams_of_one_process_are_one_source),
        cmocka_unit_test(test_a_disputed_rank_is_no_rank),
        cmocka_unit_test(test_a_rank_that_nobody_knows_is_not_invented),
        cmocka_unit_test(test_large_members_of_a_merge_are_left_out_and_said_so),
        cmocka_unit_test(test_each_allocation_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
