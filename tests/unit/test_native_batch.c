/*
 * The head of a native batch: one size, one form, and nothing else is taken for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trace/native_batch.h"
#include "trace/pf_reader.h"

static const struct tp_native_head heads[] = {
    {.stream_no = 1},
    {.stream_no = 127, .n_events = 1},
    {.stream_no = 65535,
     .n_events = UINT64_MAX,
     .has_clock = true,
     .clock = {TP_NATIVE_CLOCK_MAX - 1, TP_NATIVE_CLOCK_MAX - 1, UINT64_MAX}},
    {.stream_no = 300,
     .n_events = 70000,
     .has_clock = true,
     .clock = {UINT64_C(1790000000123456789), UINT64_C(1790003600123456789), 41000}},
    {.stream_no = 2, .has_clock = true},
};

#define N_HEADS (sizeof(heads) / sizeof(heads[0]))

static void test_head_reads_back_as_it_was_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_HEADS; i++) {
        char bytes[TP_NATIVE_HEAD_BYTES];
        struct tp_native_head back;

        tp_native_head_put(bytes, &heads[i]);
        if (!tp_native_head_get(bytes, sizeof(bytes), &back))
            fail_msg("head %zu is not taken for one", i);
        assert_int_equal(back.stream_no, heads[i].stream_no);
        assert_int_equal(back.n_events, heads[i].n_events);
        assert_int_equal(back.has_clock, heads[i].has_clock);
        assert_memory_equal(&back.clock, &heads[i].clock, sizeof(back.clock));
    }
}

/* Whatever is read must be written again as exactly these bytes. */
static void test_changed_byte_is_another_head_or_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_HEADS; i++) {
        char bytes[TP_NATIVE_HEAD_BYTES];
        char again[TP_NATIVE_HEAD_BYTES];
        struct tp_native_head back;

        tp_native_head_put(bytes, &heads[i]);
        for (size_t at = 0; at < sizeof(bytes) * 8; at++) {
            bytes[at / 8] = (char)(bytes[at / 8] ^ 1 << at % 8);
            if (tp_native_head_get(bytes, sizeof(bytes), &back)) {
                tp_native_head_put(again, &back);
                if (memcmp(again, bytes, sizeof(bytes)) != 0)
                    fail_msg("head %zu: bit %zu goes unnoticed", i, at);
            }
            bytes[at / 8] = (char)(bytes[at / 8] ^ 1 << at % 8);
        }
    }
}

static void test_head_that_is_cut_is_none(void **state)
{
    char bytes[TP_NATIVE_HEAD_BYTES];
    struct tp_native_head back = {.n_events = 77};

    (void)state;
    tp_native_head_put(bytes, &heads[3]);
    for (size_t n = 0; n < sizeof(bytes); n++)
        assert_false(tp_native_head_get(bytes, n, &back));
    assert_int_equal(back.n_events, 77);
}

/* Readers of packets pass over it: it is a valid packet without an event. */
static void test_head_is_a_packet_without_an_event(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_HEADS; i++) {
        struct tp_pf_reader_opts opts = {0};
        struct tp_pf_reader *reader = NULL;
        char bytes[TP_NATIVE_HEAD_BYTES];
        struct tp_pf_cursor cursor = {bytes, bytes + sizeof(bytes)};
        enum tp_pf_item item;
        struct tp_event ev;
        struct tp_err err;

        tp_native_head_put(bytes, &heads[i]);
        assert_int_equal(tp_pf_reader_new(&opts, &reader, &err), TP_OK);
        assert_int_equal(tp_pf_reader_next(reader, &cursor, &item, &ev, &err),
                         TP_EAGAIN);
        assert_ptr_equal(cursor.ptr, cursor.end);
        assert_int_equal(tp_pf_reader_skipped(reader).packets, 1);
        tp_pf_reader_free(reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head_reads_back_as_it_was_written),
        cmocka_unit_test(test_changed_byte_is_another_head_or_none),
        cmocka_unit_test(test_head_that_is_cut_is_none),
        cmocka_unit_test(test_head_is_a_packet_without_an_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
