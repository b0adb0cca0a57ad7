/*
 * test_trace_info.c - what a download says about itself, read by another parser.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <json-c/json.h>
#include <cmocka.h>

#include "base/buf.h"
#include "core/activity.h"
#include "core/type.h"
#include "support/fault.h"
#include "trace/trace_info.h"

#define STR(t)             \
    {                      \
        (t), sizeof(t) - 1 \
    }

static const struct tp_type type = {.id = 60,
                                    .hash = 7,
                                    .is_resolved = true,
                                    .kind = TP_TYPE_COUNTER,
                                    .plugin = "p",
                                    .plugin_bytes = 1,
                                    .name = "p.T",
                                    .name_bytes = 3,
                                    .type_name = type.name + 2,
                                    .unit = "GB/s",
                                    .description = "\"x\""};
static const struct tp_type *const types[] = {&type};
static const struct tp_str notes[] = {STR("damage at byte 5")};
static const struct tp_producer_info producers[] = {
    {.id = STR("a"),
     .has_rank = true,
     .counts = {.emitted = 3,
                .stored = 1,
                .filtered = 1,
                .dropped = {[TP_DROP_RING_FULL] = 1}},
     .has_clock = true,
     .clock_offset_ns = -5,
     .notes = notes,
     .n_notes = 1},
    {.id = STR("b")}};
static const struct tp_trace_info info = {.job = STR("j\n"),
                                          .producers = producers,
                                          .n_producers = 2,
                                          .types = types,
                                          .n_types = 1,
                                          .has_skew = true,
                                          .skew_ns = 9};

static struct json_object *parse(struct tp_buf *b)
{
    struct json_tokener *t = json_tokener_new();
    struct json_object *o;

    json_tokener_set_flags(t, JSON_TOKENER_STRICT);
    o = json_tokener_parse_ex(t, b->data, (int)b->len);
    if (o == NULL)
        fail_msg("not JSON: %.*s", (int)b->len, b->data);
    json_tokener_free(t);
    tp_buf_fini(b);
    return o;
}

static struct json_object *get(struct json_object *o, const char *key)
{
    struct json_object *value = NULL;

    if (!json_object_object_get_ex(o, key, &value))
        fail_msg("no member %s", key);
    return value;
}

static void test_known_things_are_said_and_unknown_left_out(void **state)
{
    const struct tp_source_members sources[] = {{1, STR("{\"k\": 1}")},
                                                {SIZE_MAX, STR("{}")}};
    struct json_object *o;
    struct json_object *a;
    struct json_object *b;
    struct tp_buf out = {0};
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_trace_info_write(&info, NULL, sources, 2, &out, &err), TP_OK);
    o = parse(&out);
    assert_string_equal(json_object_get_string(get(o, "job")), "j\n");
    assert_int_equal(json_object_get_int(get(o, "start_skew_ns")), 9);
    assert_null(json_object_object_get(o, "label"));
    assert_null(json_object_object_get(o, "started"));
    assert_null(json_object_object_get(o, "slice"));
    a = json_object_array_get_idx(get(o, "producers"), 0);
    b = json_object_array_get_idx(get(o, "producers"), 1);
    assert_int_equal(json_object_get_int(get(a, "rank")), 0);
    assert_null(json_object_object_get(b, "rank"));
    assert_int_equal(json_object_get_int(get(get(a, "counts"), "dropped")), 1);
    assert_int_equal(json_object_get_int(get(get(get(a, "counts"), "dropped_by_cause"),
                                             tp_drop_cause_name(TP_DROP_RING_FULL))),
                     1);
    assert_int_equal(json_object_get_int(get(get(a, "clock"), "offset_ns")), -5);
    assert_int_equal(json_object_array_length(get(a, "notes")), 1);
    assert_int_equal(json_object_get_int(get(get(b, "source"), "k")), 1);
    assert_null(json_object_object_get(a, "source"));
    json_object_put(o);
}

static void test_a_slice_is_told_by_names(void **state)
{
    struct tp_typeset set = {{0}};
    const uint32_t ranks[] = {3};
    const struct tp_trace_slice slice = {
        .types = &set, .has_from = true, .from_ns = 5, .ranks = ranks, .n_ranks = 1};
    struct json_object *o;
    struct json_object *names;
    struct tp_buf out = {0};
    struct tp_err err;

    (void)state;
    tp_typeset_add(&set, TP_ACTIVITY_CPU_OP);
    tp_typeset_add(&set, 60);
    tp_typeset_add(&set, 200);
    assert_int_equal(tp_trace_info_write(&info, &slice, NULL, 0, &out, &err), TP_OK);
    o = parse(&out);
    names = get(get(o, "slice"), "types");
    assert_string_equal(json_object_get_string(json_object_array_get_idx(names, 0)),
                        "cpu_op");
    assert_string_equal(json_object_get_string(json_object_array_get_idx(names, 1)),
                        "p.T");
    assert_string_equal(json_object_get_string(json_object_array_get_idx(names, 2)),
                        "200");
    assert_int_equal(json_object_get_int(get(get(o, "slice"), "from_ns")), 5);
    assert_null(json_object_object_get(get(o, "slice"), "to_ns"));
    json_object_put(o);
}

static void test_types_carry_all_that_is_registered(void **state)
{
    struct tp_typeset used = {{0}};
    struct json_object *o;
    struct json_object *t;
    struct tp_buf out = {0};
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_trace_info_write_custom(&info, &out, &err), TP_OK);
    o = parse(&out);
    t = json_object_array_get_idx(o, 0);
    assert_string_equal(json_object_get_string(get(t, "type_name")), "T");
    assert_string_equal(json_object_get_string(get(t, "cat")), "p.T");
    assert_string_equal(json_object_get_string(get(t, "unit")), "GB/s");
    assert_string_equal(json_object_get_string(get(t, "kind")), "counter");
    assert_true(json_object_get_boolean(get(t, "resolved")));
    json_object_put(o);
    tp_typeset_add(&used, TP_ACTIVITY_CONCURRENT_KERNEL);
    tp_typeset_add(&used, 60);
    assert_int_equal(tp_trace_info_write_static(&used, &out, &err), TP_OK);
    o = parse(&out);
    assert_int_equal(json_object_array_length(o), 1);
    assert_string_equal(
        json_object_get_string(get(json_object_array_get_idx(o, 0), "cat")), "kernel");
    json_object_put(o);
}

static void test_each_allocation_fails_cleanly(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_buf out = {0};
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_trace_info_write(&info, NULL, NULL, 0, &out, &err);
        if (rc == TP_OK)
            rc = tp_trace_info_write_counts(&info.counts, &out, &err);
        tp_buf_fini(&out);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_things_are_said_and_unknown_left_out),
        cmocka_unit_test(test_a_slice_is_told_by_names),
        cmocka_unit_test(test_types_carry_all_that_is_registered),
        cmocka_unit_test(test_each_allocation_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
