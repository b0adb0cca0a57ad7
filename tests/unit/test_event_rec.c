/*
 * test_event_rec.c - a record gives its event back whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/event_rec.h"

static const struct tp_track track = {.index = 12345};

static struct tp_name name(const char *s, uint32_t iid)
{
    return (struct tp_name){s, (uint32_t)strlen(s), iid};
}

/* An event with everything in it; args has room for 6. */
static struct tp_event full_event(struct tp_arg *args, uint32_t iid)
{
    args[0] = (struct tp_arg){.key = name("int", iid), .kind = TP_ARG_INT};
    args[0].i = INT64_MIN;
    args[1] = (struct tp_arg){.key = name("uint", iid * 2), .kind = TP_ARG_UINT};
    args[1].u = UINT64_MAX;
    args[2] = (struct tp_arg){.key = name("double", iid * 3), .kind = TP_ARG_DOUBLE};
    args[2].d = 1.5e-7;
    args[3] = (struct tp_arg){.key = name("bool", iid * 4), .kind = TP_ARG_BOOL};
    args[3].b = true;
    args[4] = (struct tp_arg){.key = name("string", iid * 5), .kind = TP_ARG_STRING};
    args[4].s = (struct tp_str){"", 0};
    args[5] = (struct tp_arg){.key = name("json", iid * 6), .kind = TP_ARG_JSON};
    args[5].s = (struct tp_str){"[1,{}]", 6};
    return (struct tp_event){.kind = TP_EVENT_FLOW_END,
                             .phase = 'f',
                             .scope = 'g',
                             .binds_enclosing = true,
                             .is_unfinished = true,
                             .ts_ns = -5,
                             .dur_ns = INT64_MAX,
                             .name = name("a name", iid),
                             .cat = name("ac2g", iid),
                             .id = {.kind = TP_ID_TEXT, .text = {"0x1f", 4}},
                             .track = &track,
                             .args = args,
                             .n_args = 6,
                             .extra = {"\"tts\":5", 7}};
}

static void same_name(struct tp_name a, struct tp_name b)
{
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.ptr, b.ptr, a.len);
}

static void same_event(const struct tp_event *a, const struct tp_event *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->phase, b->phase);
    assert_int_equal(a->scope, b->scope);
    assert_int_equal(a->binds_enclosing, b->binds_enclosing);
    assert_int_equal(a->is_unfinished, b->is_unfinished);
    assert_int_equal(a->ts_ns, b->ts_ns);
    assert_int_equal(a->dur_ns, b->dur_ns);
    same_name(a->name, b->name);
    same_name(a->cat, b->cat);
    assert_true(tp_str_equal(a->id.text, b->id.text));
    assert_true(tp_str_equal(a->extra, b->extra));
    assert_int_equal(a->n_args, b->n_args);
    for (uint32_t i = 0; i < a->n_args; i++) {
        same_name(a->args[i].key, b->args[i].key);
        assert_int_equal(a->args[i].kind, b->args[i].kind);
    }
    assert_int_equal(b->args[0].i, INT64_MIN);
    assert_int_equal(b->args[1].u, UINT64_MAX);
    assert_true(b->args[2].d == 1.5e-7);
    assert_true(b->args[3].b);
    assert_int_equal(b->args[4].s.len, 0);
    assert_true(tp_str_is(b->args[5].s, "[1,{}]"));
}

static void test_an_event_comes_back_whole(void **state)
{
    /* Without numbers, with them, and with numbers over the limit. */
    static const uint32_t iids[] = {0, 7, 300, 100000};

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct tp_rec_names names = {.bytes_max = 1000, .names_max = 5000};
        struct tp_rec_args args = {0};
        struct tp_buf out = {0};
        struct tp_arg room[6];
        struct tp_event ev = full_event(room, iids[i]);
        struct tp_event back;
        struct tp_err err;

        assert_int_equal(tp_rec_encode(&names, &ev, &out, &err), TP_OK);
        assert_int_equal(tp_rec_encode(&names, &ev, &out, &err), TP_OK);
        assert_int_equal(out.len % 8, 0);
        assert_int_equal(((struct tp_rec_head *)(void *)out.data)->size, out.len / 2);
        assert_int_equal(((struct tp_rec_head *)(void *)out.data)->track, 12345);
        for (int j = 0; j < 2; j++) {
            assert_int_equal(tp_rec_decode(&names, out.data + (size_t)j * out.len / 2,
                                           &args, &back, &err),
                             TP_OK);
            same_event(&ev, &back);
        }
        tp_rec_args_fini(&args);
        tp_rec_names_fini(&names);
        tp_buf_fini(&out);
    }
}

static void test_absent_names_and_number_ids_come_back(void **state)
{
    struct tp_rec_names names = {0};
    struct tp_rec_args args = {0};
    struct tp_buf out = {0};
    struct tp_event ev = {.kind = TP_EVENT_END,
                          .track = &track,
                          .cat = {"", 0, 0},
                          .id = {.kind = TP_ID_NUMBER, .number = -1}};
    struct tp_event back;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_rec_encode(&names, &ev, &out, &err), TP_OK);
    assert_int_equal(tp_rec_decode(&names, out.data, &args, &back, &err), TP_OK);
    assert_null(back.name.ptr);
    assert_non_null(back.cat.ptr);
    assert_int_equal(back.cat.len, 0);
    assert_int_equal(back.id.number, -1);
    assert_int_equal(back.n_args, 0);
    tp_rec_args_fini(&args);
    tp_buf_fini(&out);
}

static void test_strings_over_the_limit_are_stored_inline(void **state)
{
    struct tp_rec_names names = {.bytes_max = 3, .names_max = 100};
    struct tp_event ev = {.name = name("long", 1),
                          .cat = name("abc", 1),
                          .track = &track};
    struct tp_buf out = {0};
    struct tp_err err;
    const struct tp_rec_head *h;

    (void)state;
    assert_int_equal(tp_rec_encode(&names, &ev, &out, &err), TP_OK);
    h = (const void *)out.data;
    assert_int_equal(h->name_iid, 0);
    assert_int_equal(h->cat_iid, 1);
    tp_rec_names_fini(&names);
    tp_buf_fini(&out);
}

static void test_records_survive_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_rec_names names = {.bytes_max = 1000, .names_max = 5000};
        struct tp_rec_args args = {0};
        struct tp_buf out = {0};
        struct tp_arg room[6];
        struct tp_event ev = full_event(room, 400);
        struct tp_event back;
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_rec_encode(&names, &ev, &out, &err);
        if (rc != TP_OK)
            assert_int_equal(out.len, 0);
        if (rc == TP_OK)
            rc = tp_rec_decode(&names, out.data, &args, &back, &err);
        tp_rec_args_fini(&args);
        tp_rec_names_fini(&names);
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
        cmocka_unit_test(test_an_event_comes_back_whole),
        cmocka_unit_test(test_absent_names_and_number_ids_come_back),
        cmocka_unit_test(test_strings_over_the_limit_are_stored_inline),
        cmocka_unit_test(test_records_survive_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
