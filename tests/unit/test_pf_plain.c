/*
 * test_pf_plain.c - the short way reads what the long way reads, or nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "trace/pf_plain.h"
#include "trace/pf_reader.h"
#include "trace/pf_writer.h"

static const struct tp_track track = {.index = 0,
                                      .pid = {TP_ID_NUMBER, 4, {NULL, 0}},
                                      .tid = {TP_ID_NUMBER, 7, {NULL, 0}}};

static struct tp_name name_of(const char *s)
{
    return (struct tp_name){s, (uint32_t)strlen(s), 0};
}

static struct tp_event slice_of(const struct tp_arg *args, uint32_t n)
{
    return (struct tp_event){.kind = TP_EVENT_SLICE,
                             .phase = 'X',
                             .ts_ns = 4000000000123,
                             .dur_ns = 4250,
                             .name = name_of("gemm"),
                             .cat = name_of("kernel"),
                             .track = &track,
                             .args = args,
                             .n_args = n};
}

/* A log with n events, each twice: the first brings the strings. */
static void write_log(const struct tp_event *events, size_t n, struct tp_buf *out)
{
    struct tp_pf_writer_opts opts = {.stream_no = 3};
    struct tp_pf_writer *w = NULL;

    assert_int_equal(tp_pf_writer_new(&opts, &w, NULL), TP_OK);
    for (size_t i = 0; i < 2 * n; i++)
        assert_int_equal(tp_pf_writer_event(w, &events[i / 2], out, NULL), TP_OK);
    tp_pf_writer_free(w);
}

static struct tp_pf_reader *new_reader(void)
{
    struct tp_pf_reader_opts opts = {.is_trusted = true};
    struct tp_pf_reader *r = NULL;

    assert_int_equal(tp_pf_reader_new(&opts, &r, NULL), TP_OK);
    return r;
}

static void check_same_name(const struct tp_name *a, const struct tp_name *b)
{
    assert_int_equal(a->len, b->len);
    assert_int_equal(a->iid, b->iid);
    assert_true((a->ptr == NULL) == (b->ptr == NULL));
    if (a->len > 0)
        assert_memory_equal(a->ptr, b->ptr, a->len);
}

static void check_same(const struct tp_pf_plain *plain, const struct tp_event *ev)
{
    assert_int_equal(ev->kind, TP_EVENT_SLICE);
    assert_int_equal(ev->phase, 'X');
    assert_int_equal(plain->ev.ts_ns, ev->ts_ns);
    assert_int_equal(plain->ev.dur_ns, ev->dur_ns);
    assert_ptr_equal(plain->ev.track, ev->track);
    assert_int_equal(ev->extra.len, 0);
    assert_int_equal(ev->id.kind, TP_ID_NONE);
    check_same_name(&plain->ev.name, &ev->name);
    check_same_name(&plain->ev.cat, &ev->cat);
    assert_int_equal(plain->n_args, ev->n_args);
    for (uint32_t i = 0; i < plain->n_args; i++) {
        check_same_name(plain->keys[i], &ev->args[i].key);
        assert_in_range(plain->key_at[i], 0, plain->wire.len - 1);
    }
}

/* Read a log both ways; returns how many slices were plain. */
static unsigned read_both(const char *p, size_t n)
{
    struct tp_pf_reader *r = new_reader();
    struct tp_pf_cursor c = {p, p + n};
    enum tp_pf_item item;
    unsigned n_plain = 0;
    int rc;

    do {
        struct tp_pf_plain plain;
        struct tp_event ev;
        bool is_plain = tp_pf_plain_look(r, &c, &plain);

        rc = tp_pf_reader_next(r, &c, &item, &ev, NULL);
        if (is_plain) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(item, TP_PF_EVENT);
            check_same(&plain, &ev);
            assert_ptr_equal(plain.next, c.ptr);
            n_plain++;
        }
    } while (rc == TP_OK || rc == TP_EQUOTA);
    tp_pf_reader_free(r);
    return n_plain;
}

static const struct tp_arg all_kinds[] = {
    {.key = {"i", 1, 0}, .kind = TP_ARG_INT, .i = -1048576},
    {.key = {"u", 1, 0}, .kind = TP_ARG_UINT, .u = UINT64_MAX},
    {.key = {"d", 1, 0}, .kind = TP_ARG_DOUBLE, .d = 0.25},
    {.key = {"b", 1, 0}, .kind = TP_ARG_BOOL, .b = true},
    {.key = {"s", 1, 0}, .kind = TP_ARG_STRING, .s = {"text", 4}},
    {.key = {"j", 1, 0}, .kind = TP_ARG_JSON, .s = {"[1,2]", 5}},
};

static void test_slices_of_known_strings_are_plain(void **state)
{
    struct tp_event events[] = {slice_of(all_kinds, 6), slice_of(NULL, 0)};
    struct tp_buf log = {0};

    (void)state;
    events[1].cat = events[1].name = (struct tp_name){NULL, 0, 0};
    write_log(events, 2, &log);
    assert_int_equal(read_both(log.data, log.len), 3);
    tp_buf_fini(&log);
}

static void test_all_else_goes_the_long_way(void **state)
{
    struct tp_arg many[TP_PF_PLAIN_ARGS_MAX + 1];
    char key[TP_PF_INLINE_BYTES + 1];
    struct tp_arg inline_key = {.key = {key, sizeof(key), 0}, .kind = TP_ARG_INT};
    struct tp_event events[] = {slice_of(many, TP_PF_PLAIN_ARGS_MAX + 1),
                                slice_of(&inline_key, 1), slice_of(NULL, 0),
                                slice_of(NULL, 0), slice_of(NULL, 0)};
    struct tp_buf log = {0};

    (void)state;
    memset(key, 'k', sizeof(key));
    for (size_t i = 0; i < TP_PF_PLAIN_ARGS_MAX + 1; i++)
        many[i] = all_kinds[0];
    events[2].extra = (struct tp_str){"\"x\":1", 5};
    events[3].kind = TP_EVENT_BEGIN;
    events[3].phase = 'B';
    events[3].dur_ns = 0;
    events[4].id = (struct tp_id){TP_ID_NUMBER, 1, {NULL, 0}};
    write_log(events, 5, &log);
    assert_int_equal(read_both(log.data, log.len), 0);
    tp_buf_fini(&log);
}

static void test_a_changed_byte_reads_the_same_both_ways(void **state)
{
    static const unsigned char flips[] = {0x01, 0x02, 0x04, 0x08, 0x10,
                                          0x20, 0x40, 0x80, 0xff};
    struct tp_event ev = slice_of(all_kinds, 6);
    struct tp_buf log = {0};

    (void)state;
    write_log(&ev, 1, &log);
    for (size_t i = 0; i < log.len; i++) {
        for (size_t k = 0; k < sizeof(flips); k++) {
            log.data[i] = (char)(log.data[i] ^ flips[k]);
            (void)read_both(log.data, log.len);
            log.data[i] = (char)(log.data[i] ^ flips[k]);
        }
    }
    tp_buf_fini(&log);
}

static void test_a_cut_slice_is_not_plain(void **state)
{
    struct tp_event ev = slice_of(all_kinds, 6);
    struct tp_buf log = {0};

    (void)state;
    write_log(&ev, 1, &log);
    for (size_t n = 0; n < log.len; n++) {
        char *copy = test_malloc(n + 1); /* so that a sanitizer sees its end */

        memcpy(copy, log.data, n);
        assert_in_range(read_both(copy, n), 0, 1);
        test_free(copy);
    }
    tp_buf_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_of_known_strings_are_plain),
        cmocka_unit_test(test_all_else_goes_the_long_way),
        cmocka_unit_test(test_a_changed_byte_reads_the_same_both_ways),
        cmocka_unit_test(test_a_cut_slice_is_not_plain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
