/* Refused batches of a stream, by themselves: numbers, sums, their text, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "engine/model.h"
#include "engine/refusals.h"
#include "support/fault.h"

#define NUMBERS_MAX 4096

/* A stream, as far as refusals are concerned. */
struct scene {
    struct tp_engine engine;
    struct tp_trace trace;
    struct tp_stream stream;
};

static int setup(void **state)
{
    struct scene *x = calloc(1, sizeof(*x));

    assert_non_null(x);
    x->trace.engine = &x->engine;
    x->stream.trace = &x->trace;
    *state = x;
    return 0;
}

static int teardown(void **state)
{
    struct scene *x = *state;

    tp_refusals_free(&x->stream);
    free(x);
    return 0;
}

static void refuse(struct tp_stream *s, int64_t seq, uint64_t n_events,
                   enum tp_drop_cause cause)
{
    const struct tp_refusal refusal = {seq >= 0, (uint64_t)seq, n_events, cause};

    tp_refusals_add(s, &refusal, "it is full");
}

static void expect(const struct tp_stream *s, uint64_t waiting, uint64_t over_limit,
                   uint64_t storage_failed)
{
    struct tp_waiting sum = {0};

    tp_refusals_sum(s, &sum);
    assert_int_equal(sum.events, waiting);
    assert_int_equal(sum.why != NULL, waiting > 0);
    assert_int_equal(s->counts.dropped[TP_DROP_OVER_LIMIT], over_limit);
    assert_int_equal(s->counts.dropped[TP_DROP_STORAGE_FAILED], storage_failed);
    assert_int_equal(tp_counts_check(&s->counts, NULL), TP_OK);
}

static void test_one_with_a_number_waits_and_others_are_dropped(void **state)
{
    struct tp_stream *s = &((struct scene *)*state)->stream;

    refuse(s, 1, 20, TP_DROP_STORAGE_FAILED);
    expect(s, 20, 0, 0);
    refuse(s, 1, 30, TP_DROP_STORAGE_FAILED); /* more of it was read this time */
    refuse(s, 1, 5, TP_DROP_STORAGE_FAILED);
    expect(s, 30, 0, 0);
    refuse(s, -1, 4, TP_DROP_STORAGE_FAILED);
    refuse(s, -1, 4, TP_DROP_STORAGE_FAILED);
    refuse(s, 2, 3, TP_DROP_OVER_LIMIT);
    refuse(s, 2, 3, TP_DROP_STORAGE_FAILED);
    expect(s, 30, 3, 8);
    assert_int_equal(tp_refusals_len(s), 2);
    assert_true(tp_refusals_take_back(s, 1));
    assert_true(tp_refusals_take_back(s, 2));
    assert_false(tp_refusals_take_back(s, 2));
    expect(s, 0, 0, 8);
}

static void test_one_that_waits_and_then_does_not_fit_is_dropped_once(void **state)
{
    struct tp_stream *s = &((struct scene *)*state)->stream;

    refuse(s, 1, 20, TP_DROP_STORAGE_FAILED);
    refuse(s, 1, 20, TP_DROP_OVER_LIMIT);
    refuse(s, 1, 20, TP_DROP_OVER_LIMIT);
    expect(s, 0, 20, 0);
    assert_false(tp_refusals_are_of_storage(s));
}

static void test_what_is_given_up_is_dropped_with_a_reason_and_can_come_still(
    void **state)
{
    struct scene *x = *state;
    struct tp_stream *s = &x->stream;

    tp_refusals_give_up(s);
    assert_false(x->trace.has_stream_news);
    refuse(s, 1, 20, TP_DROP_STORAGE_FAILED);
    refuse(s, 7, 1, TP_DROP_STORAGE_FAILED);
    assert_int_equal(x->engine.stats.events_dropped, 0);
    tp_refusals_give_up(s);
    tp_refusals_give_up(s);
    expect(s, 0, 0, 21);
    assert_true(s->is_dirty && x->trace.has_stream_news);
    assert_int_equal(x->engine.stats.events_dropped, 21);
    assert_string_equal(
        s->reason, "2 batches could not be stored and never came again: it is full");
    assert_true(tp_refusals_are_of_storage(s));
    assert_true(tp_refusals_take_back(s, 1));
    expect(s, 0, 0, 1);
}

static void test_beyond_the_limit_of_numbers_a_batch_is_dropped_at_once(void **state)
{
    struct tp_stream *s = &((struct scene *)*state)->stream;

    for (int i = 0; i < NUMBERS_MAX + 1; i++)
        refuse(s, i, 1, TP_DROP_STORAGE_FAILED);
    expect(s, NUMBERS_MAX, 0, 1);
    assert_false(tp_refusals_take_back(s, NUMBERS_MAX));
}

static void test_the_text_brings_all_of_it_back(void **state)
{
    struct scene *x = *state;
    struct tp_stream again = {.trace = &x->trace};
    struct tp_buf text = {0}, second = {0};
    struct tp_waiting sum = {0};

    assert_int_equal(tp_refusals_write(&x->stream, &text, NULL), TP_OK);
    assert_int_equal(text.len, 0);
    refuse(&x->stream, 9, 50, TP_DROP_OVER_LIMIT);
    refuse(&x->stream, 8, 6, TP_DROP_STORAGE_FAILED);
    tp_refusals_give_up(&x->stream);
    refuse(&x->stream, -1, 4, TP_DROP_STORAGE_FAILED);
    refuse(&x->stream, 7, 20, TP_DROP_STORAGE_FAILED);
    assert_int_equal(tp_refusals_write(&x->stream, &text, NULL), TP_OK);
    assert_int_equal(tp_buf_append(&text, "", 1, NULL), TP_OK);
    assert_string_equal(text.data, "50 10 9=50l 8=6s 7=20w\nit is full");
    assert_int_equal(tp_refusals_read(&again, tp_str_of(text.data), NULL), TP_OK);
    assert_int_equal(tp_refusals_len(&again), 3);
    tp_refusals_sum(&again, &sum);
    assert_int_equal(sum.events, 20);
    assert_string_equal(sum.why, "it is full");
    assert_int_equal(tp_refusals_write(&again, &second, NULL), TP_OK);
    assert_memory_equal(second.data, text.data, second.len);
    assert_int_equal(second.len, text.len - 1);
    tp_buf_fini(&text);
    tp_buf_fini(&second);
    tp_refusals_free(&again);
}

static void test_text_that_cannot_be_read_is_left_out(void **state)
{
    static const char *const texts[] = {"x",         "5",      "5 ",
                                        "5 0 7",     "5 0 7=", "5 0 7=1x",
                                        "5 0  7=1w", "\n",     "5 0\n"};
    struct scene *x = *state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct tp_stream s = {.trace = &x->trace};

        print_message("'%s'\n", texts[i]);
        assert_int_equal(tp_refusals_read(&s, tp_str_of(texts[i]), NULL), TP_OK);
        assert_true(tp_refusals_len(&s) <= 1);
        tp_refusals_free(&s);
    }
}

/* Nothing is lost of the counts, whatever is remembered. */
static void test_without_memory_a_batch_is_dropped_for_good(void **state)
{
    struct scene *x = *state;

    for (int n = 0;; n++) {
        struct tp_stream s = {.trace = &x->trace};
        struct tp_waiting sum = {0};
        bool has_failed;

        fault_arm(n);
        refuse(&s, 1, 20, TP_DROP_STORAGE_FAILED);
        has_failed = fault_disarm();
        tp_refusals_sum(&s, &sum);
        assert_int_equal(sum.events + tp_counts_dropped(&s.counts), 20);
        assert_int_equal(sum.events, has_failed ? 0 : 20);
        tp_refusals_free(&s);
        if (!has_failed)
            return;
    }
}

static void test_without_memory_text_is_not_read(void **state)
{
    struct scene *x = *state;

    for (int n = 0;; n++) {
        struct tp_stream s = {.trace = &x->trace};
        int rc;

        fault_arm(n);
        rc = tp_refusals_read(&s, tp_str_of("5 0 7=1w 8=2w\nwhy"), NULL);
        tp_refusals_free(&s);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

#define refusals_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        refusals_test(test_one_with_a_number_waits_and_others_are_dropped),
        refusals_test(test_one_that_waits_and_then_does_not_fit_is_dropped_once),
        refusals_test(
            test_what_is_given_up_is_dropped_with_a_reason_and_can_come_still),
        refusals_test(test_beyond_the_limit_of_numbers_a_batch_is_dropped_at_once),
        refusals_test(test_the_text_brings_all_of_it_back),
        refusals_test(test_text_that_cannot_be_read_is_left_out),
        refusals_test(test_without_memory_a_batch_is_dropped_for_good),
        refusals_test(test_without_memory_text_is_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
