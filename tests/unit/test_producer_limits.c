/*
 * Where record.h names a limit of what one event or one thread may hold, it is there,
 * and what is over it is left out as the header says.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include <cmocka.h>

#include "producer/texts.h"
#include "support/recorder_rig.h"

#define SMALL_RING ((size_t)16 << 10) /* 2048 words */
#define FULL_INSTANTS 1022            /* fill it after its mark */
#define FULL_COMPLETES 511            /* likewise */

/* Texts that stay as they are may be longer than those that are copied. */
static void test_texts_of_arguments_end_at_their_limits(void **state)
{
    static const int lengths[] = {4095, 4096, 1023, 1024};
    static char texts[4][5000], lines[16384];
    struct recorder_rig rig = {0};
    size_t n = 0;

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    for (int i = 0; i < 4; i++) {
        const struct tp_field f = tp_field_text(tp_intern("t"), texts[i], i > 1);

        memset(texts[i], 'x', (size_t)lengths[i]);
        tp_instant(rig.client, rig.kernel, tp_intern("i"), (struct tp_fields){&f, 1});
        n += (size_t)snprintf(lines + n, sizeof(lines) - n,
                              "i ascend.KERNEL i -/- 0 t=\"%.*s\"\n",
                              i > 1 ? 1023 : 4095, texts[i]);
    }
    recorder_rig_expect(&rig, lines);
    recorder_rig_fini(&rig);
}

/* The service would repair half a character, event by event. */
static void test_no_text_ends_within_a_character(void **state)
{
    static char text[5001], lines[8192];
    struct recorder_rig rig = {0};
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 2500; i++)
        memcpy(text + 2 * i, "\xc3\xa9", 3);
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    for (int copy = 0; copy < 2; copy++) {
        const struct tp_field f = tp_field_text(tp_intern("t"), text, copy);

        tp_instant(rig.client, rig.kernel, tp_intern("i"), (struct tp_fields){&f, 1});
        n += (size_t)snprintf(lines + n, sizeof(lines) - n,
                              "i ascend.KERNEL i -/- 0 t=\"%.*s\"\n",
                              copy != 0 ? 1022 : 4094, text);
    }
    recorder_rig_expect(&rig, lines);
    recorder_rig_fini(&rig);
}

/* All batches name the thread. The kernel keeps 15 bytes of seven characters and a
 * half. */
static void test_the_name_of_a_thread_ends_with_a_character(void **state)
{
    struct recorder_rig rig = {0};
    char before[16];

    (void)state;
    prctl(PR_GET_NAME, before);
    prctl(PR_SET_NAME,
          "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    TP_INSTANT(rig.client, rig.kernel, "x");
    recorder_rig_expect(&rig, "i ascend.KERNEL x -/- 0\n");
    recorder_rig_fini(&rig);
    prctl(PR_SET_NAME, before);
}

static void test_what_tp_add_cannot_add_is_left_out_as_a_whole(void **state)
{
    struct recorder_rig rig = {0};
    struct tp_field items[TP_FIELDS_MAX + 1];
    char text[1000] = "", lines[8192];
    uint64_t dropped;
    int n;

    (void)state;
    for (int i = 0; i <= TP_FIELDS_MAX; i++)
        items[i] = tp_field_int(tp_intern("k"), i);
    memset(text, 'x', sizeof(text) - 1);
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    TP_ADD(rig.client, rig.kernel, TP_INT("no slice", 1));
    TP_BEGIN(rig.client, rig.kernel, "type");
    TP_ADD(rig.client, rig.copy, TP_INT("other", 1));
    TP_ADD(rig.client, rig.kernel, TP_INT("same", 1));
    TP_END(rig.client, rig.kernel);
    tp_begin(rig.client, rig.kernel, tp_intern("number"),
             (struct tp_fields){items, TP_FIELDS_MAX - 1});
    TP_ADD(rig.client, rig.kernel, TP_INT("over", 1), TP_INT("over", 2));
    TP_END(rig.client, rig.kernel);
    TP_BEGIN(rig.client, rig.kernel, "number");
    tp_add(rig.client, rig.kernel, (struct tp_fields){items, TP_FIELDS_MAX + 1});
    TP_END(rig.client, rig.kernel);
    TP_BEGIN(rig.client, rig.kernel, "bytes", TP_COPY("t", text));
    TP_ADD(rig.client, rig.kernel, TP_COPY("u", text), TP_INT("to the last", 1));
    TP_ADD(rig.client, rig.kernel, TP_COPY("over", text));
    TP_END(rig.client, rig.kernel);
    n = snprintf(lines, sizeof(lines),
                 "X ascend.KERNEL type -/- 0+0 same=1\n"
                 "X ascend.KERNEL number -/- 0+0");
    for (int i = 0; i < TP_FIELDS_MAX - 1; i++)
        n += snprintf(lines + n, sizeof(lines) - (size_t)n, " k=%d", i);
    snprintf(lines + n, sizeof(lines) - (size_t)n,
             "\nX ascend.KERNEL number -/- 0+0\n"
             "X ascend.KERNEL bytes -/- 0+0 t=\"%s\" u=\"%s\" to the last=1\n",
             text, text);
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(dropped, 0);
    assert_int_equal(rig.drained[rig.kernel], 4);
    recorder_rig_expect(&rig, lines);
    recorder_rig_fini(&rig);
}

/* When the program says when it was, that is counted like all else. */
static void test_a_slice_that_is_over_and_finds_no_room_is_counted(void **state)
{
    const struct tp_recorder_opts opts = {.ring_bytes = SMALL_RING};
    const struct tp_interval when = {tp_now(), 5, TP_TRACK_THREAD};
    struct tp_interval now;
    struct recorder_rig rig = {0};
    uint64_t dropped;

    (void)state;
    recorder_rig_init(&rig, &opts);
    recorder_rig_start(&rig);
    now = (struct tp_interval){tp_now(), 5, TP_TRACK_THREAD};
    for (int i = 0; i < 1000; i++) {
        TP_COMPLETE(rig.client, rig.kernel, "of before", &when);
        TP_COMPLETE(rig.client, rig.copy, "of now", &now);
    }
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(dropped, 2000 - FULL_COMPLETES);
    assert_int_equal(rig.drained[rig.kernel], 0);
    assert_int_equal(rig.drained[rig.copy], FULL_COMPLETES / 2);
    recorder_rig_fini(&rig);
}

static void test_open_slices_have_16_kib_with_their_arguments(void **state)
{
    const int each = 24 + 1024; /* a key with a length, and 1016 bytes */
    struct recorder_rig rig = {0};
    char text[1016] = "";
    uint64_t dropped;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    for (int i = 0; i < 20; i++)
        TP_BEGIN(rig.client, rig.kernel, "deep", TP_COPY("t", text));
    for (int i = 0; i < 20; i++)
        TP_END(rig.client, rig.kernel);
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(rig.n_drained, 16384 / each);
    assert_int_equal(dropped, 20 - 16384 / each);
    recorder_rig_fini(&rig);
}

static void *record_in_vain(void *arg)
{
    const struct recorder_rig *rig = arg;

    pthread_cancel(pthread_self());
    for (int i = 0; i < FULL_INSTANTS + 10; i++)
        TP_INSTANT(rig->client, rig->kernel, "x");
    tp_intern("it came here");
    pthread_testcancel();
    return NULL;
}

/* A wait for room is none of the points at which a thread that is cancelled ends. */
static void test_a_thread_that_is_cancelled_returns_from_a_wait(void **state)
{
    const struct tp_recorder_opts opts = {.ring_bytes = SMALL_RING,
                                          .block_ns = 1000000};
    struct recorder_rig rig = {0};
    uint32_t n_texts = tp_texts_count();
    uint64_t dropped;
    pthread_t thread;
    void *end = NULL;

    (void)state;
    recorder_rig_init(&rig, &opts);
    recorder_rig_start(&rig);
    assert_int_equal(pthread_create(&thread, NULL, record_in_vain, &rig), 0);
    pthread_join(thread, &end);
    assert_ptr_equal(end, PTHREAD_CANCELED);
    assert_true(tp_texts_count() > n_texts);
    recorder_rig_conserved(&rig, &dropped);
    assert_true(dropped >= 10);
    recorder_rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_of_arguments_end_at_their_limits),
        cmocka_unit_test(test_no_text_ends_within_a_character),
        cmocka_unit_test(test_the_name_of_a_thread_ends_with_a_character),
        cmocka_unit_test(test_what_tp_add_cannot_add_is_left_out_as_a_whole),
        cmocka_unit_test(test_a_slice_that_is_over_and_finds_no_room_is_counted),
        cmocka_unit_test(test_open_slices_have_16_kib_with_their_arguments),
        cmocka_unit_test(test_a_thread_that_is_cancelled_returns_from_a_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
