/*
 * test_metas.c - what an index keeps of metadata, and how much.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/metas.h"
#include "trace/notes.h"

static struct tp_track track = {.pid = {.kind = TP_ID_NUMBER, .number = 7},
                                .tid = {.kind = TP_ID_TEXT, .text = {"t", 1}}};

static int add(struct tp_metas *m, const char *name, const char *value, bool *is_kept,
               struct tp_err *err)
{
    struct tp_arg arg = {.key = {"name", 4, 0}, .kind = TP_ARG_STRING};
    struct tp_event ev = {.kind = TP_EVENT_META,
                          .name = {name, (uint32_t)strlen(name), 0},
                          .track = &track,
                          .args = &arg,
                          .n_args = 1};
    bool is_note = true;
    int rc;

    arg.s = tp_str_of(value);
    rc = tp_metas_add(m, &ev, 9, true, &is_note, is_kept, err);
    if (rc == TP_OK)
        assert_false(is_note);
    return rc;
}

static int add_member(struct tp_metas *m, const char *key, const char *json,
                      struct tp_err *err)
{
    struct tp_note note = {.kind = TP_NOTE_MEMBER,
                           .key = tp_str_of(key),
                           .json = tp_str_of(json)};
    struct tp_note_event event = {0};
    bool is_note = false;
    bool is_kept;
    int rc = tp_note_write(&note, &track, &event, err);

    if (rc == TP_OK)
        rc = tp_metas_add(m, &event.ev, 0, false, &is_note, &is_kept, err);
    tp_buf_fini(&event.text);
    return rc;
}

static void test_members_that_metadata_does_not_need_are_kept(void **state)
{
    static const struct tp_track own = {.pid = {.kind = TP_ID_NUMBER, .number = 7}};
    struct tp_event ev = {.kind = TP_EVENT_META,
                          .name = {"process_name", 12, 0},
                          .cat = {"__meta\"data", 11, 0},
                          .id = {.kind = TP_ID_TEXT, .text = {"0x5", 3}},
                          .scope = 'g',
                          .binds_enclosing = true,
                          .extra = {"\"tts\":3", 7},
                          .track = &own};
    static const char *const want[] = {
        "\"cat\":\"__meta\\\"data\",\"id\":\"0x5\",\"s\":\"g\",\"bp\":\"e\",\"tts\":3",
        "\"id\":-1,\"tts\":3", "\"tts\":3", ""};
    struct tp_stream_index ix = {0};
    struct tp_metas m = {.index = &ix, .metas_max = 9, .bytes_max = 10000};
    bool is_note;
    bool is_kept;
    struct tp_err err;

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        assert_int_equal(tp_metas_add(&m, &ev, 0, false, &is_note, &is_kept, &err),
                         TP_OK);
        print_message("%s\n", want[i]);
        assert_true(tp_str_is(ix.metas[i].extra, want[i]));
        if (i == 0)
            ev.cat = (struct tp_name){NULL, 0, 0};
        ev.scope = 0;
        ev.binds_enclosing = false;
        ev.id =
            (struct tp_id){.kind = i == 0 ? TP_ID_NUMBER : TP_ID_NONE, .number = -1};
        if (i == 2)
            ev.extra = (struct tp_str){NULL, 0};
    }
    tp_metas_fini(&m);
    tp_stream_index_fini(&ix);
}

static void test_over_the_limit_the_last_of_a_kind_stays(void **state)
{
    struct tp_stream_index ix = {0};
    struct tp_metas m = {.index = &ix, .metas_max = 2, .bytes_max = 10000};
    struct tp_err err;
    bool is_kept;

    (void)state;
    assert_int_equal(add(&m, "process_name", "a", &is_kept, &err), TP_OK);
    assert_int_equal(add(&m, "thread_name", "b", &is_kept, &err), TP_OK);
    assert_true(is_kept);
    assert_int_equal(add(&m, "thread_name", "c", &is_kept, &err), TP_OK);
    assert_false(is_kept);
    assert_int_equal(add(&m, "labels", "d", &is_kept, &err), TP_OK);
    assert_false(is_kept);
    assert_int_equal(ix.n_metas, 2);
    assert_int_equal(ix.metas_left_out, 2);
    assert_true(tp_str_is(ix.metas[0].args_json, "{\"name\":\"a\"}"));
    assert_true(tp_str_is(ix.metas[1].args_json, "{\"name\":\"c\"}"));
    assert_int_equal(ix.metas[1].pid.number, 7);
    assert_true(tp_str_is(ix.metas[1].tid.text, "t"));
    tp_metas_fini(&m);
    tp_stream_index_fini(&ix);
}

static void test_the_last_member_of_a_key_stays(void **state)
{
    struct tp_stream_index ix = {0};
    struct tp_metas m = {.index = &ix, .metas_max = 2, .bytes_max = 40};
    struct tp_err err;

    (void)state;
    for (int i = 0; i < 100; i++) /* the same again costs nothing */
        assert_int_equal(add_member(&m, "a", "1", &err), TP_OK);
    assert_int_equal(add_member(&m, "b", "[1]", &err), TP_OK);
    assert_int_equal(add_member(&m, "a", "2", &err), TP_OK);
    assert_int_equal(ix.n_members, 2);
    assert_true(tp_str_is(ix.members[0].json, "2"));
    assert_int_equal(
        add_member(&m, "long", "\"more than is left of forty bytes\"", &err), TP_OK);
    assert_int_equal(ix.n_members, 2);
    assert_int_equal(ix.members_left_out, 1);
    tp_metas_fini(&m);
    tp_stream_index_fini(&ix);
}

static void test_arguments_of_every_kind_become_json(void **state)
{
    struct tp_arg args[6] = {
        {.key = {"i", 1, 0}, .kind = TP_ARG_INT, .i = -1},
        {.key = {"u", 1, 0}, .kind = TP_ARG_UINT, .u = UINT64_MAX},
        {.key = {"d", 1, 0}, .kind = TP_ARG_DOUBLE, .d = 2.5},
        {.key = {"b", 1, 0}, .kind = TP_ARG_BOOL, .b = true},
        {.key = {"s", 1, 0}, .kind = TP_ARG_STRING, .s = {"\"", 1}},
        {.key = {"j", 1, 0}, .kind = TP_ARG_JSON, .s = {"[1]", 3}}};
    struct tp_event ev = {
        .kind = TP_EVENT_META, .track = &track, .args = args, .n_args = 6};
    struct tp_stream_index ix = {0};
    struct tp_metas m = {.index = &ix, .metas_max = 2, .bytes_max = 10000};
    struct tp_err err;
    bool is_note;
    bool is_kept;

    (void)state;
    assert_int_equal(tp_metas_add(&m, &ev, 0, false, &is_note, &is_kept, &err), TP_OK);
    assert_true(tp_str_is(ix.metas[0].args_json,
                          "{\"i\":-1,\"u\":18446744073709551615,\"d\":2.5,\"b\":true,"
                          "\"s\":\"\\\"\",\"j\":[1]}"));
    tp_metas_fini(&m);
    tp_stream_index_fini(&ix);
}

static void test_adding_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_stream_index ix = {0};
        struct tp_metas m = {.index = &ix, .metas_max = 1, .bytes_max = 10000};
        struct tp_err err;
        bool is_kept;
        int rc;

        fault_arm(n);
        rc = add(&m, "process_name", "a", &is_kept, &err);
        if (rc == TP_OK)
            rc = add(&m, "process_name", "b", &is_kept, &err);
        if (rc == TP_OK)
            rc = add_member(&m, "key", "[1]", &err);
        tp_metas_fini(&m);
        tp_stream_index_fini(&ix);
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
        cmocka_unit_test(test_members_that_metadata_does_not_need_are_kept),
        cmocka_unit_test(test_over_the_limit_the_last_of_a_kind_stays),
        cmocka_unit_test(test_the_last_member_of_a_key_stays),
        cmocka_unit_test(test_arguments_of_every_kind_become_json),
        cmocka_unit_test(test_adding_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
