/*
 * test_stream_index.c - an index is written and read back whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/stream_index.h"

#define STR(s) ((struct tp_str){s, sizeof(s) - 1})

static const struct tp_id number = {.kind = TP_ID_NUMBER, .number = INT64_MIN};
static const struct tp_id text = {.kind = TP_ID_TEXT, .text = STR("a \"b\"\n\0c")};

static int add_lists(struct tp_stream_index *ix, struct tp_err *err)
{
    struct tp_id pid;
    struct tp_str s = {NULL, 0};
    int rc = tp_stream_index_dup_id(ix, &text, &pid, err);

    if (rc == TP_OK)
        rc = tp_stream_index_dup(ix, STR("{\"x\":[1.50,\"\\u00e9\"]}"), &s, err);
    for (uint32_t i = 0; rc == TP_OK && i < 20; i++) {
        rc = tp_stream_index_grow(&ix->tracks, i, sizeof(*ix->tracks), err);
        if (rc == TP_OK)
            ix->tracks[ix->n_tracks++] = (struct tp_index_track){
                .uuid = UINT64_MAX - i, .lane = UINT32_MAX, .pid = pid, .tid = number};
    }
    if (rc == TP_OK)
        rc = tp_stream_index_grow(&ix->series, 0, sizeof(*ix->series), err);
    if (rc == TP_OK)
        ix->series[ix->n_series++] = (struct tp_index_series){
            .uuid = 5, .pid = number, .counter = s, .cat = s, .series = s};
    if (rc == TP_OK)
        rc = tp_stream_index_grow(&ix->metas, 0, sizeof(*ix->metas), err);
    if (rc == TP_OK)
        ix->metas[ix->n_metas++] = (struct tp_index_meta){.name = s,
                                                          .pid = pid,
                                                          .tid = number,
                                                          .ts_ns = -7,
                                                          .has_ts = true,
                                                          .args_json = s,
                                                          .extra = s};
    if (rc == TP_OK)
        rc = tp_stream_index_grow(&ix->members, 0, sizeof(*ix->members), err);
    if (rc == TP_OK)
        ix->members[ix->n_members++] = (struct tp_index_member){s, s};
    return rc;
}

static int add_summary(struct tp_stream_index *ix, struct tp_err *err)
{
    struct tp_str s;
    int rc = tp_stream_index_dup(ix, STR("ascend.KERNEL"), &s, err);

    if (rc == TP_OK)
        rc = tp_stream_index_grow(&ix->types, 0, sizeof(*ix->types), err);
    if (rc == TP_OK)
        ix->types[ix->n_types++] =
            (struct tp_index_type){s, UINT64_MAX, 2, INT64_MIN, INT64_MAX};
    if (rc == TP_OK)
        rc = tp_stream_index_grow(&ix->names, 0, sizeof(*ix->names), err);
    if (rc == TP_OK)
        ix->names[ix->n_names++] = (struct tp_index_name){s, s, 1, 2, 3, UINT64_MAX};
    if (rc == TP_OK)
        rc = tp_stream_index_grow(&ix->blocks, 0, sizeof(*ix->blocks), err);
    if (rc == TP_OK)
        ix->blocks[ix->n_blocks++] = (struct tp_index_block){1ull << 40, 3, INT64_MIN};
    if (rc == TP_OK)
        rc = tp_stream_index_grow(&ix->damage_offsets, 0, sizeof(uint64_t), err);
    if (rc == TP_OK)
        ix->damage_offsets[ix->n_damage_offsets++] = 77;
    return rc;
}

static int build(struct tp_stream_index *ix, struct tp_err *err)
{
    int rc;

    *ix = (struct tp_stream_index){.version = 1,
                                   .stream_no = 65535,
                                   .size_bytes = 1ull << 50,
                                   .names_bytes = 9,
                                   .has_crc32c = true,
                                   .crc32c = UINT32_MAX,
                                   .n_events = 12,
                                   .first_ns = -5,
                                   .last_ns = INT64_MAX,
                                   .has_base = true,
                                   .base_ns = INT64_MIN,
                                   .unmatched_ends = 1,
                                   .unfinished = 2,
                                   .filtered_pairs = 3,
                                   .lanes_added = 4,
                                   .overlaps = 5,
                                   .unbound_flows = 6,
                                   .crossings = 7,
                                   .clamped = 8,
                                   .metas_left_out = 9,
                                   .members_left_out = 10,
                                   .is_truncated = true,
                                   .damages = 11,
                                   .names_are_complete = true};
    rc = add_lists(ix, err);
    return rc == TP_OK ? add_summary(ix, err) : rc;
}

static void test_what_is_written_is_read_back(void **state)
{
    struct tp_stream_index ix;
    struct tp_stream_index back;
    struct tp_buf once = {0};
    struct tp_buf twice = {0};
    struct tp_err err;

    (void)state;
    assert_int_equal(build(&ix, &err), TP_OK);
    assert_int_equal(tp_stream_index_write(&ix, &once, &err), TP_OK);
    if (tp_stream_index_read(once.data, once.len, &back, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(back.crc32c, UINT32_MAX);
    assert_int_equal(back.n_tracks, 20);
    assert_int_equal(back.tracks[3].uuid, UINT64_MAX - 3);
    assert_true(tp_str_equal(back.tracks[3].pid.text, text.text));
    assert_int_equal(back.tracks[3].tid.number, INT64_MIN);
    assert_int_equal(back.series[0].tid.kind, TP_ID_NONE);
    assert_true(tp_str_equal(back.series[0].cat, ix.series[0].cat));
    assert_true(tp_str_equal(back.metas[0].args_json, ix.metas[0].args_json));
    assert_int_equal(back.types[0].last_ns, INT64_MAX);
    assert_int_equal(back.blocks[0].max_end_ns, INT64_MIN);
    assert_int_equal(tp_stream_index_write(&back, &twice, &err), TP_OK);
    assert_int_equal(once.len, twice.len);
    assert_memory_equal(once.data, twice.data, once.len);
    tp_buf_fini(&once);
    tp_buf_fini(&twice);
    tp_stream_index_fini(&ix);
    tp_stream_index_fini(&back);
}

static void test_an_empty_index_is_read_back(void **state)
{
    struct tp_stream_index ix = {.version = 1};
    struct tp_stream_index back;
    struct tp_buf out = {0};
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_stream_index_write(&ix, &out, &err), TP_OK);
    assert_int_equal(tp_stream_index_read(out.data, out.len, &back, &err), TP_OK);
    assert_int_equal(back.n_tracks, 0);
    tp_stream_index_fini(&back);
    tp_buf_fini(&out);
}

static void test_damaged_documents_are_refused(void **state)
{
    static const char *const docs[] = {
        "",
        "{",
        "[]",
        "7",
        "{}",
        "{\"version\":2}",
        "{\"version\":\"1\"}",
        "{\"version\":1,\"stream_no\":-1}",
        "{\"version\":1,\"stream_no\":4294967296}",
        "{\"version\":1,\"has_base\":1}",
        "{\"version\":1,\"tracks\":5}",
        "{\"version\":1,\"tracks\":[5]}",
        "{\"version\":1,\"tracks\":[[1]]}",
        "{\"version\":1,\"tracks\":[[1,2,true,4]]}",
        "{\"version\":1,\"tracks\":[[1,4294967296,3,4]]}",
        "{\"version\":1,\"series\":[[5,1,null,\"HBM\",\"read\",7]]}",
        "{\"version\":1,\"members\":[[\"k\",7]]}",
        "{\"version\":1,\"types\":[[\"k\",1,2,3,18446744073709551615]]}",
        "{\"version\":1,\"damage_offsets\":[-1]}",
        "{\"version\":1,\"damage_offsets\":1}",
        "{\"version\":1,\"blocks\":[[1,2,3]"};

    (void)state;
    for (size_t i = 0; i < sizeof(docs) / sizeof(*docs); i++) {
        struct tp_stream_index back = {.version = 99};
        struct tp_err err = {0};

        if (tp_stream_index_read(docs[i], strlen(docs[i]), &back, &err) != TP_EINVAL)
            fail_msg("accepted: %s", docs[i]);
        if (back.version != 99 || err.message[0] == '\0')
            fail_msg("output or message wrong: %s", docs[i]);
    }
}

static void test_unknown_members_are_passed_over(void **state)
{
    static const char doc[] = "{\"version\":1,\"later\":[1],\"n_events\":5}";
    struct tp_stream_index back;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_stream_index_read(doc, sizeof(doc) - 1, &back, &err), TP_OK);
    assert_int_equal(back.n_events, 5);
    tp_stream_index_fini(&back);
}

/* A series that an older writer described has no category. */
static void test_an_older_index_is_read(void **state)
{
    static const char doc[] =
        "{\"version\":1,\"series\":[[5,1,null,\"HBM\",\"read\"]]}";
    struct tp_stream_index back;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_stream_index_read(doc, sizeof(doc) - 1, &back, &err), TP_OK);
    assert_true(tp_str_is(back.series[0].series, "read"));
    assert_int_equal(back.series[0].cat.len, 0);
    tp_stream_index_fini(&back);
}

static void test_every_allocation_may_fail(void **state)
{
    struct tp_buf doc = {0};
    struct tp_stream_index ix;
    struct tp_err err;

    (void)state;
    assert_int_equal(build(&ix, &err), TP_OK);
    assert_int_equal(tp_stream_index_write(&ix, &doc, &err), TP_OK);
    tp_stream_index_fini(&ix);
    for (int n = 0;; n++) {
        struct tp_stream_index back = {0};
        struct tp_buf out = {0};
        int rc;

        fault_arm(n);
        rc = build(&ix, &err);
        if (rc == TP_OK)
            rc = tp_stream_index_write(&ix, &out, &err);
        if (rc == TP_OK)
            rc = tp_stream_index_read(doc.data, doc.len, &back, &err);
        tp_stream_index_fini(&ix);
        tp_stream_index_fini(&back);
        tp_buf_fini(&out);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
    tp_buf_fini(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read_back),
        cmocka_unit_test(test_an_empty_index_is_read_back),
        cmocka_unit_test(test_damaged_documents_are_refused),
        cmocka_unit_test(test_unknown_members_are_passed_over),
        cmocka_unit_test(test_an_older_index_is_read),
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
