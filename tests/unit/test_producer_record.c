/*
 * What a thread records comes out of the stream as it went in, is counted exactly when
 * it does not, and is nothing while nobody asks for it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "producer/ring.h"
#include "support/blob_mem.h"
#include "support/fault.h"
#include "support/recorder_rig.h"

#define SMALL_RING ((size_t)16 << 10) /* 2048 words */
#define FULL_INSTANTS 1022            /* fill it after its mark */

static const struct tp_fields none = {NULL, 0};

static void test_slices_nest_and_keep_their_arguments(void **state)
{
    struct recorder_rig rig = {0};

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    TP_BEGIN(rig.client, rig.kernel, "outer", TP_INT("a", -1), TP_TEXT("s", "x"));
    TP_BEGIN(rig.client, rig.copy, "inner");
    TP_ADD(rig.client, rig.copy, TP_DOUBLE("d", 0.5), TP_BOOL("b", 7));
    TP_END(rig.client, rig.copy);
    TP_ADD(rig.client, rig.kernel, TP_COPY("c", "copied"));
    TP_END(rig.client, rig.kernel);
    recorder_rig_expect(&rig,
                        "X ascend.KERNEL outer -/- 0+0 a=-1 s=\"x\" c=\"copied\"\n"
                        "X ascend.COPY inner -/- 0+0 d=0.5d b=true\n");
    recorder_rig_fini(&rig);
}

static void test_instants_and_counters_keep_their_values(void **state)
{
    struct recorder_rig rig = {0};
    uint32_t bytes = tp_intern("bytes");

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    TP_INSTANT(rig.client, rig.kernel, "mark");
    TP_INSTANT(rig.client, rig.copy, "mark", TP_INT("n", INT64_MIN));
    TP_COUNTER(rig.client, rig.kernel, "load", 0.25);
    tp_counter_int(rig.client, rig.copy, bytes, INT64_MAX);
    recorder_rig_expect(&rig, "i ascend.KERNEL mark -/- 0\n"
                              "i ascend.COPY mark -/- 0 n=-9223372036854775808\n"
                              "C ascend.KERNEL load -/- 0 value=0.25d\n"
                              "C ascend.COPY bytes -/- 0 value=9223372036854775807\n");
    recorder_rig_fini(&rig);
}

/* A loss that is NaN was counted as malformed, and the trace was lossy. */
static void test_counters_without_a_number_are_instants_that_say_so(void **state)
{
    struct recorder_rig rig = {0};
    uint64_t dropped;

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    TP_COUNTER(rig.client, rig.kernel, "loss", 0.5);
    TP_COUNTER(rig.client, rig.kernel, "loss", NAN);
    TP_COUNTER(rig.client, rig.kernel, "loss", INFINITY);
    recorder_rig_drain(&rig);
    TP_COUNTER(rig.client, rig.copy, "loss", -INFINITY);
    TP_COUNTER(rig.client, rig.kernel, "loss", 0.25);
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(dropped, 0);
    assert_int_equal(rig.drained[rig.kernel], 4);
    recorder_rig_expect(&rig, "C ascend.KERNEL loss -/- 0 value=0.5d\n"
                              "i ascend.KERNEL loss -/- 0 value=\"NaN\"\n"
                              "i ascend.KERNEL loss -/- 0 value=\"Infinity\"\n"
                              "i ascend.COPY loss -/- 0 value=\"-Infinity\"\n"
                              "C ascend.KERNEL loss -/- 0 value=0.25d\n");
    recorder_rig_fini(&rig);
}

static void test_device_tracks_are_told_by_device_and_stream(void **state)
{
    struct recorder_rig rig = {0};
    uint32_t first = tp_device_track(0, 7);
    struct tp_interval when = {.duration_ns = 10};

    (void)state;
    assert_int_equal(tp_device_track(0, 7), first);
    assert_int_not_equal(tp_device_track(1, 7), first);
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    when.start_ns = tp_now();
    when.track = first;
    TP_COMPLETE(rig.client, rig.kernel, "gemm", &when, TP_INT("n", 1));
    when.start_ns += 20;
    when.track = tp_device_track(1, 7);
    TP_COMPLETE(rig.client, rig.kernel, "gemm", &when);
    when.start_ns += 20;
    when.track = TP_TRACK_THREAD;
    TP_COMPLETE(rig.client, rig.copy, "h2d", &when);
    recorder_rig_expect(&rig, "X ascend.KERNEL gemm 0/7 0+0 n=1\n"
                              "X ascend.KERNEL gemm 1/7 0+0\n"
                              "X ascend.COPY h2d -/- 0+0\n");
    recorder_rig_fini(&rig);
}

/* In a container the program may be process 1, and have a device 1: in both formats the
 * device was a part of the program. */
static void test_a_device_is_no_process_that_has_its_number(void **state)
{
    struct recorder_rig rig = {0};
    struct tp_interval when = {.duration_ns = 10,
                               .track = tp_device_track((uint32_t)getpid(),
                                                        (uint32_t)gettid())};
    char want[200];

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    TP_BEGIN(rig.client, rig.copy, "host");
    when.start_ns = tp_now();
    TP_COMPLETE(rig.client, rig.kernel, "gemm", &when);
    TP_END(rig.client, rig.copy);
    snprintf(want, sizeof(want),
             "X ascend.COPY host -/- 0+0\nX ascend.KERNEL gemm %d/%d 0+0\n",
             0x40000000 + getpid(), gettid());
    recorder_rig_expect(&rig, want);
    recorder_rig_fini(&rig);
}

static void test_flows_and_asynchronous_events_keep_their_ids(void **state)
{
    struct recorder_rig rig = {0};
    struct tp_flow_point point = {.id = 42, .phase = TP_PHASE_START};
    struct tp_interval kernel = {.duration_ns = 1000, .track = tp_device_track(0, 7)};
    uint32_t name = tp_intern("launch");

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    TP_BEGIN(rig.client, rig.copy, "host");
    tp_flow(rig.client, rig.copy, name, &point);
    TP_END(rig.client, rig.copy);
    tp_async(rig.client, rig.kernel, name, TP_PHASE_START, 7);
    tp_async(rig.client, rig.kernel, name, TP_PHASE_STEP, 7);
    tp_async(rig.client, rig.kernel, name, TP_PHASE_END, 7);
    kernel.start_ns = tp_now();
    tp_complete(rig.client, rig.kernel, name, &kernel, none);
    point.phase = TP_PHASE_END;
    point.track = kernel.track;
    point.time_ns = kernel.start_ns + 1;
    tp_flow(rig.client, rig.copy, name, &point);
    recorder_rig_expect(&rig, "X ascend.COPY host -/- 0+0\n"
                              "s ascend.COPY launch -/- 0 id=42\n"
                              "b ascend.KERNEL launch -/- 0 id=7\n"
                              "n ascend.KERNEL launch -/- 0 id=7\n"
                              "e ascend.KERNEL launch -/- 0 id=7\n"
                              "X ascend.KERNEL launch 0/7 0+0\n"
                              "f ascend.COPY launch 0/7 0 id=42 bp\n");
    recorder_rig_fini(&rig);
}

static void test_whole_numbers_of_every_size_are_kept_exactly(void **state)
{
    static const int64_t edges[] = {0,
                                    -1,
                                    4095,
                                    4096,
                                    -4097,
                                    (INT64_C(1) << 35) - 1,
                                    INT64_C(1) << 35,
                                    -(INT64_C(1) << 35),
                                    -(INT64_C(1) << 35) - 1,
                                    INT64_MAX,
                                    INT64_MIN};

    (void)state;
    for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++) {
        const long long n = (long long)edges[i];
        struct recorder_rig rig = {0};
        char lines[512];

        recorder_rig_init(&rig, NULL);
        recorder_rig_start(&rig);
        TP_INSTANT(rig.client, rig.kernel, "copied", TP_INT("n", n), TP_TEXT("s", "x"),
                   TP_INT("m", n), TP_COPY("t", "y"), TP_INT("z", n));
        TP_INSTANT(rig.client, rig.kernel, "plain", TP_INT("n", n), TP_TEXT("s", "x"),
                   TP_INT("m", n));
        TP_BEGIN(rig.client, rig.kernel, "slice", TP_INT("n", n), TP_DOUBLE("d", 0.5));
        TP_ADD(rig.client, rig.kernel, TP_INT("m", n));
        TP_ADD(rig.client, rig.kernel, TP_COPY("t", "y"), TP_INT("z", n));
        TP_END(rig.client, rig.kernel);
        TP_BEGIN(rig.client, rig.kernel, "one", TP_INT("n", n));
        TP_END(rig.client, rig.kernel);
        TP_BEGIN(rig.client, rig.kernel, "two", TP_INT("n", n), TP_INT("m", n));
        TP_END(rig.client, rig.kernel);
        tp_recorder_stop(rig.recorder, 0);
        snprintf(lines, sizeof(lines),
                 "i ascend.KERNEL copied -/- 0 n=%lld s=\"x\" m=%lld t=\"y\" z=%lld\n"
                 "i ascend.KERNEL plain -/- 0 n=%lld s=\"x\" m=%lld\n"
                 "X ascend.KERNEL slice -/- 0+0 n=%lld d=0.5d m=%lld t=\"y\" z=%lld\n"
                 "X ascend.KERNEL one -/- 0+0 n=%lld\n"
                 "X ascend.KERNEL two -/- 0+0 n=%lld m=%lld\n",
                 n, n, n, n, n, n, n, n, n, n, n);
        recorder_rig_expect(&rig, lines);
        recorder_rig_fini(&rig);
    }
}

/* Mistakes of a program: the event and its other arguments are there. */
static void test_kinds_and_keys_that_there_are_not_spoil_no_event(void **state)
{
    static const uint32_t kinds[] = {5, 0x7f, 0x80, 0x84, 0x100, 0x104, UINT32_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        const struct tp_field wrong[] = {
            {tp_intern("a"), kinds[i], {.i = (int64_t)0x0123456789abcdef}},
            {0xfff00000u | tp_intern("b"), TP_FIELD_INT, {.i = 7}},
            {tp_intern("c"), TP_FIELD_INT, {.i = -1}}};
        struct recorder_rig rig = {0};
        uint64_t dropped;

        recorder_rig_init(&rig, NULL);
        recorder_rig_start(&rig);
        for (size_t n = 0; n < 2; n++) {
            tp_instant(rig.client, rig.kernel, tp_intern("mark"),
                       (struct tp_fields){wrong + n, 3 - n});
            tp_begin(rig.client, rig.kernel, tp_intern("op"),
                     (struct tp_fields){wrong + n, 3 - n});
            tp_end(rig.client, rig.kernel);
        }
        TP_INSTANT(rig.client, rig.kernel, "last");
        recorder_rig_conserved(&rig, &dropped);
        if (rig.n_drained != 5 || dropped != 0)
            fail_msg("kind %u: %llu drained, %llu dropped", kinds[i],
                     (unsigned long long)rig.n_drained, (unsigned long long)dropped);
        recorder_rig_fini(&rig);
    }
}

static void test_a_key_that_there_is_not_is_that_of_no_text(void **state)
{
    const struct tp_field wrong[] = {
        {0xfff00000u | tp_intern("b"), TP_FIELD_INT, {.i = 7}},
        {tp_intern("c"), TP_FIELD_INT, {.i = -1}},
        {1u << 20 | tp_intern("b"), TP_FIELD_BOOL, {.i = 1}},
        {tp_intern("d"), TP_FIELD_INT, {.i = INT64_MAX}}};
    struct recorder_rig rig = {0};

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    tp_instant(rig.client, rig.kernel, tp_intern("mark"), (struct tp_fields){wrong, 4});
    tp_begin(rig.client, rig.kernel, tp_intern("op"), (struct tp_fields){wrong, 4});
    tp_end(rig.client, rig.kernel);
    recorder_rig_expect(
        &rig, "i ascend.KERNEL mark -/- 0 =7 c=-1 =true d=9223372036854775807\n"
              "X ascend.KERNEL op -/- 0+0 =7 c=-1 =true d=9223372036854775807\n");
    recorder_rig_fini(&rig);
}

/* What other readers of a raw log need: type 2, and not ours alone. */
static void test_each_slice_has_its_end_in_the_log(void **state)
{
    static const char begin[] = {0x48, 0x01, (char)0xe0, (char)0xea, 0x04};
    static const char end[] = {(char)0xe8, (char)0xea, 0x04, 0x01, 0x48, 0x02};
    struct tp_interval kernel = {.duration_ns = 1000, .track = tp_device_track(0, 7)};
    struct recorder_rig rig = {0};
    int n_begins = 0, n_ends = 0;
    const char *log;
    size_t n;

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    for (int i = 0; i < 20; i++) {
        TP_BEGIN(rig.client, rig.kernel, "outer", TP_INT("i", i));
        TP_INSTANT(rig.client, rig.kernel, "mark");
        TP_BEGIN(rig.client, rig.copy, "inner");
        TP_END(rig.client, rig.copy);
        TP_END(rig.client, rig.kernel);
        kernel.start_ns = tp_now();
        tp_complete(rig.client, rig.kernel, tp_intern("launch"), &kernel, none);
    }
    TP_BEGIN(rig.client, rig.kernel, "unfinished");
    recorder_rig_conserved(&rig, NULL);
    log = blob_mem_data(rig.stream.blobs, "log", &n);
    for (size_t i = 0; i + sizeof(end) <= n; i++) {
        n_begins += memcmp(log + i, begin, sizeof(begin)) == 0;
        n_ends += memcmp(log + i, end, sizeof(end)) == 0;
    }
    assert_int_equal(n_begins, 60);
    assert_int_equal(n_ends, 60);
    recorder_rig_fini(&rig);
}

static int n_evaluated;

static int64_t evaluate(void)
{
    return ++n_evaluated;
}

static void test_nothing_is_evaluated_or_recorded_while_off(void **state)
{
    struct recorder_rig rig = {0};

    (void)state;
    recorder_rig_init(&rig, NULL);
    n_evaluated = 0;
    TP_BEGIN(rig.client, rig.kernel, "off", TP_INT("n", evaluate()));
    TP_INSTANT(&tp_client_off, rig.kernel, "off", TP_INT("n", evaluate()));
    TP_END(rig.client, rig.kernel);
    assert_int_equal(n_evaluated, 0);
    assert_false(tp_enabled(rig.client, rig.kernel));
    recorder_rig_start(&rig);
    assert_true(tp_enabled(rig.client, rig.kernel));
    assert_false(tp_enabled(rig.client, 1));
    assert_false(tp_enabled(rig.client, TP_TYPE_NONE));
    tp_instant(rig.client, 1, tp_intern("of no wanted type"), none);
    TP_INSTANT(rig.client, rig.kernel, "on", TP_INT("n", evaluate()));
    tp_recorder_stop(rig.recorder, 0);
    TP_INSTANT(rig.client, rig.kernel, "late", TP_INT("n", evaluate()));
    recorder_rig_expect(&rig, "i ascend.KERNEL on -/- 0 n=1\n");
    recorder_rig_fini(&rig);
}

static void test_an_end_closes_what_was_left_open_above(void **state)
{
    struct recorder_rig rig = {0};
    uint64_t dropped;

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    tp_end(rig.client, rig.copy); /* of nothing */
    TP_BEGIN(rig.client, rig.kernel, "outer");
    TP_BEGIN(rig.client, rig.copy, "forgotten");
    tp_add(rig.client, rig.kernel, none); /* not the innermost: passed over */
    TP_END(rig.client, rig.kernel);
    recorder_rig_drain(&rig);
    assert_int_equal(rig.n_drained, 2);
    TP_END(rig.client, rig.copy); /* of nothing again */
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(dropped, 0);
    assert_int_equal(rig.n_drained, 2);
    recorder_rig_expect(&rig, "X ascend.KERNEL outer -/- 0+0\n"
                              "X ascend.COPY forgotten -/- 0+0\n");
    recorder_rig_fini(&rig);
}

static void test_slices_that_are_open_at_the_stop_are_unfinished(void **state)
{
    struct recorder_rig rig = {0};

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    TP_BEGIN(rig.client, rig.kernel, "hangs", TP_INT("n", 1));
    TP_BEGIN(rig.client, rig.copy, "deeper");
    recorder_rig_drain(&rig);
    assert_int_equal(rig.n_drained, 0);
    recorder_rig_conserved(&rig, NULL);
    assert_int_equal(rig.n_drained, 2);
    recorder_rig_expect(&rig, "B? ascend.KERNEL hangs -/- 0 n=1\n"
                              "B? ascend.COPY deeper -/- 0\n");
    recorder_rig_fini(&rig);
}

static void test_open_slices_of_a_trace_are_no_part_of_the_next(void **state)
{
    struct recorder_rig rig = {0};

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    TP_BEGIN(rig.client, rig.kernel, "old");
    TP_INSTANT(rig.client, rig.kernel, "old too");
    recorder_rig_start(&rig); /* undrained, as after a cancel */
    TP_END(rig.client, rig.kernel);
    TP_BEGIN(rig.client, rig.kernel, "new");
    TP_END(rig.client, rig.kernel);
    recorder_rig_conserved(&rig, NULL);
    recorder_rig_expect(&rig, "X ascend.KERNEL new -/- 0+0\n");
    recorder_rig_fini(&rig);
}

static void test_full_ring_drops_by_type_and_goes_on_after_a_drain(void **state)
{
    struct tp_recorder_opts opts = {.ring_bytes = SMALL_RING};
    struct recorder_rig rig = {0};
    uint64_t dropped;

    (void)state;
    recorder_rig_init(&rig, &opts);
    recorder_rig_start(&rig);
    for (int i = 0; i < 1500; i++)
        TP_INSTANT(rig.client, i % 3 == 0 ? rig.copy : rig.kernel, "x");
    recorder_rig_drain(&rig);
    for (int i = 0; i < 10; i++)
        TP_INSTANT(rig.client, rig.copy, "y");
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(rig.n_drained + dropped, 1510);
    /* 2048 words hold a mark of 5 and instants of 2. */
    assert_int_equal(rig.n_drained, FULL_INSTANTS + 10);
    recorder_rig_fini(&rig);
}

/* What is written beside a record is not what waits to be drained. */
static void test_ring_that_is_full_to_its_last_words_keeps_its_oldest(void **state)
{
    struct tp_recorder_opts opts = {.ring_bytes = SMALL_RING};

    (void)state;
    for (int n = 0; n < 18; n++) {
        struct recorder_rig rig = {0};
        uint64_t dropped;

        recorder_rig_init(&rig, &opts);
        recorder_rig_start(&rig);
        /* The oldest is amid the ring, not behind its end. */
        for (int i = 0; i < 100 + n % 6; i++)
            TP_INSTANT(rig.client, rig.copy, "x");
        recorder_rig_drain(&rig);
        for (int i = 0; i < 1000; i++) {
            if (n < 6) {
                TP_INSTANT(rig.client, rig.kernel, "x", TP_INT("i", -1));
            } else if (n < 12) {
                TP_BEGIN(rig.client, rig.kernel, "x");
                TP_END(rig.client, rig.kernel);
            } else {
                TP_BEGIN(rig.client, rig.kernel, "x", TP_INT("i", -1));
                TP_END(rig.client, rig.kernel);
            }
        }
        recorder_rig_conserved(&rig, &dropped);
        if (rig.n_drained + dropped != 1100 + (uint64_t)(n % 6) || rig.n_drained < 600)
            fail_msg("%d: %llu drained, %llu dropped", n,
                     (unsigned long long)rig.n_drained, (unsigned long long)dropped);
        recorder_rig_fini(&rig);
    }
}

static void test_a_slice_that_finds_no_room_is_dropped_as_a_whole(void **state)
{
    struct tp_recorder_opts opts = {.ring_bytes = SMALL_RING};
    struct recorder_rig rig = {0};
    uint64_t dropped;

    (void)state;
    recorder_rig_init(&rig, &opts);
    recorder_rig_start(&rig);
    TP_BEGIN(rig.client, rig.kernel, "outer");
    for (int i = 0; i < 2000; i++)
        TP_INSTANT(rig.client, rig.copy, "x");
    TP_END(rig.client, rig.kernel);
    recorder_rig_drain(&rig);
    TP_BEGIN(rig.client, rig.kernel, "kept");
    TP_END(rig.client, rig.kernel);
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(rig.drained[rig.kernel], 1);
    assert_int_equal(rig.n_drained + dropped, 2002);
    recorder_rig_fini(&rig);
}

/* It began in the trace: that it ends behind the stop makes it no other's. */
static void test_a_slice_that_finds_no_room_after_the_stop_is_counted(void **state)
{
    struct tp_recorder_opts opts = {.ring_bytes = SMALL_RING, .takes_late = true};
    static struct tp_recorder_totals totals;
    struct recorder_rig rig = {0};

    (void)state;
    recorder_rig_init(&rig, &opts);
    recorder_rig_start(&rig);
    TP_BEGIN(rig.client, rig.kernel, "outer");
    for (int i = 0; i < 2000; i++)
        TP_INSTANT(rig.client, rig.copy, "x");
    tp_recorder_stop(rig.recorder, 0);
    TP_INSTANT(rig.client, rig.kernel, "of no trace");
    TP_END(rig.client, rig.kernel);
    tp_recorder_end_late(rig.recorder);
    recorder_rig_conserved(&rig, NULL);
    tp_recorder_totals(rig.recorder, &totals);
    assert_int_equal(totals.emitted[rig.kernel], 1);
    assert_int_equal(totals.dropped[TP_DROP_RING_FULL][rig.kernel], 1);
    recorder_rig_fini(&rig);
}

static void test_records_wrap_at_every_place(void **state)
{
    struct tp_recorder_opts opts = {.ring_bytes = SMALL_RING};
    struct recorder_rig rig = {0};
    uint64_t dropped;

    (void)state;
    recorder_rig_init(&rig, &opts);
    recorder_rig_start(&rig);
    for (int i = 0; i < 3000; i++) {
        if (i % 2 == 0)
            TP_INSTANT(rig.client, rig.kernel, "x", TP_INT("i", i));
        else
            TP_INSTANT(rig.client, rig.kernel, "x", TP_COPY("s", "123456789"));
        if (i % 7 == 0)
            TP_COUNTER(rig.client, rig.copy, "n", (double)i);
        if (i % 100 == 0)
            recorder_rig_drain(&rig);
    }
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(dropped, 0);
    assert_int_equal(rig.n_drained, 3000 + 429);
    recorder_rig_fini(&rig);
}

/* Behind the ring lies what an earlier lap left there, which may look like a record. */
static void test_nothing_is_taken_from_behind_the_ring(void **state)
{
    struct tp_recorder_opts opts = {.ring_bytes = SMALL_RING};
    struct recorder_rig rig = {0};
    const struct tp_ring *g;
    uint64_t n = 2;

    (void)state;
    recorder_rig_init(&rig, &opts);
    recorder_rig_start(&rig);
    TP_INSTANT(rig.client, rig.kernel, "x", TP_INT("i", 1));
    TP_INSTANT(rig.client, rig.kernel, "x");
    g = tp_ring_here;
    memcpy(g->words + g->mask + 1, g->words + ((g->head - 2) & g->mask), 16);
    if (g->head % 2 != 0) { /* so that a record ends where the ring does */
        TP_INSTANT(rig.client, rig.kernel, "x", TP_INT("i", 1));
        n++;
    }
    for (; n < 1200; n++) {
        TP_INSTANT(rig.client, rig.kernel, "x");
        if (n == 600)
            recorder_rig_drain(&rig);
    }
    recorder_rig_conserved(&rig, NULL);
    assert_int_equal(rig.n_drained, n);
    recorder_rig_fini(&rig);
}

static int n_wakes;

static void count_wake(void *arg)
{
    (void)arg;
    n_wakes++;
}

static void test_blocking_waits_no_longer_than_its_bound(void **state)
{
    struct tp_recorder_opts opts = {.ring_bytes = SMALL_RING,
                                    .block_ns = 2000000,
                                    .wake = count_wake};
    struct recorder_rig rig = {0};
    uint64_t begin;
    uint64_t dropped;

    (void)state;
    recorder_rig_init(&rig, &opts);
    recorder_rig_start(&rig);
    n_wakes = 0;
    for (int i = 0; i < FULL_INSTANTS; i++)
        TP_INSTANT(rig.client, rig.kernel, "x");
    assert_int_equal(n_wakes, 1); /* once, when it was half full */
    begin = tp_now();
    TP_INSTANT(rig.client, rig.kernel, "too many");
    assert_in_range(tp_now() - begin, 2000000, 2000000000);
    recorder_rig_conserved(&rig, &dropped);
    assert_in_range(dropped, 1, 2);
    recorder_rig_fini(&rig);
}

static void test_events_that_are_too_large_are_counted(void **state)
{
    struct recorder_rig rig = {0};
    struct tp_field items[TP_FIELDS_MAX + 1];
    char text[2000];
    uint64_t dropped;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i <= TP_FIELDS_MAX; i++)
        items[i] = tp_field_text(tp_intern("k"), text, 1);
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    tp_instant(rig.client, rig.kernel, 0, (struct tp_fields){items, 1}); /* cut: fits */
    tp_instant(rig.client, rig.kernel, 0, (struct tp_fields){items, 2});
    tp_begin(rig.client, rig.copy, 0, (struct tp_fields){items, 3});
    TP_BEGIN(rig.client, rig.copy, "within");
    TP_END(rig.client, rig.copy);
    tp_end(rig.client, rig.copy);
    for (int i = 0; i <= TP_FIELDS_MAX; i++)
        items[i] = tp_field_int(tp_intern("k"), i);
    tp_instant(rig.client, rig.kernel, 0, (struct tp_fields){items, TP_FIELDS_MAX + 1});
    tp_instant(rig.client, rig.kernel, 0, (struct tp_fields){items, TP_FIELDS_MAX});
    tp_begin(rig.client, rig.copy, 0, (struct tp_fields){items, TP_FIELDS_MAX + 1});
    tp_end(rig.client, rig.copy);
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(dropped, 5);
    assert_int_equal(rig.n_drained, 2);
    recorder_rig_fini(&rig);
}

static void test_slices_nested_too_deep_are_counted(void **state)
{
    struct recorder_rig rig = {0};
    uint64_t dropped;

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    for (int i = 0; i < 200; i++)
        TP_BEGIN(rig.client, rig.kernel, "deep", TP_INT("i", i));
    for (int i = 0; i < 200; i++) {
        /* The ends of those above end none of those that are there. */
        if (i == 200 - 128) {
            recorder_rig_drain(&rig);
            assert_int_equal(rig.n_drained, 0);
        }
        TP_END(rig.client, rig.kernel);
    }
    TP_BEGIN(rig.client, rig.kernel, "after");
    TP_END(rig.client, rig.kernel);
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(rig.n_drained, 128 + 1);
    assert_int_equal(dropped, 200 - 128);
    recorder_rig_fini(&rig);
}

static void test_odd_names_and_values_spoil_nothing(void **state)
{
    struct recorder_rig rig = {0};
    struct tp_field odd[4];
    uint64_t dropped;

    (void)state;
    odd[0] = tp_field_text(tp_intern("null"), NULL, 0);
    odd[1] = tp_field_text(0, NULL, 1);
    odd[2] = tp_field_double(tp_intern("nan"), 0.0 / 0.0);
    odd[3] = tp_field_double(0xfffffff, -1.0 / 0.0);
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    tp_instant(rig.client, rig.kernel, 0xffffff, (struct tp_fields){odd, 4});
    tp_counter(rig.client, rig.kernel, tp_intern("n"), 0.0 / 0.0);
    tp_instant(rig.client, rig.kernel, tp_intern(NULL), none);
    recorder_rig_conserved(&rig, &dropped);
    assert_int_equal(dropped, 0);
    recorder_rig_expect(
        &rig, "i ascend.KERNEL  -/- 0 null=\"\" =\"\" nan=\"NaN\" =\"-Infinity\"\n"
              "i ascend.KERNEL n -/- 0 value=\"NaN\"\n"
              "i ascend.KERNEL  -/- 0\n");
    recorder_rig_fini(&rig);
}

static void test_batches_are_as_long_as_asked_for_and_lose_nothing(void **state)
{
    struct tp_recorder_opts opts = {.ring_bytes = (size_t)4 << 20};
    struct recorder_rig rig = {0};

    (void)state;
    recorder_rig_init(&rig, &opts);
    rig.drain.max_bytes = TP_DRAIN_BYTES_MIN;
    recorder_rig_start(&rig);
    for (int i = 0; i < 20000; i++) {
        TP_BEGIN(rig.client, rig.kernel, "x", TP_INT("i", i));
        TP_END(rig.client, rig.kernel);
    }
    recorder_rig_conserved(&rig, NULL);
    assert_int_equal(rig.n_drained, 20000);
    assert_in_range(rig.n_batches, 4, 6);
    assert_int_equal(rig.stream.counts.stored, 20000 + 2); /* and two names */
    recorder_rig_fini(&rig);
}

static void test_a_drain_without_memory_takes_nothing(void **state)
{
    struct recorder_rig rig = {0};
    struct tp_drain_result result;
    struct tp_buf out = {0};
    struct tp_err err;

    (void)state;
    recorder_rig_init(&rig, NULL);
    recorder_rig_start(&rig);
    TP_INSTANT(rig.client, rig.kernel, "x", TP_INT("n", 1));
    for (int n = 0;; n++) {
        int rc;

        fault_arm(n);
        rc = tp_recorder_drain(rig.recorder, &rig.drain, &out, &result, &err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(result.by_type[rig.kernel], 1);
            assert_int_equal(n, 2); /* the buffer, and what was said in the batch */
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_int_equal(out.len, 0);
        tp_buf_fini(&out);
    }
    tp_buf_fini(&out);
    recorder_rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_nest_and_keep_their_arguments),
        cmocka_unit_test(test_instants_and_counters_keep_their_values),
        cmocka_unit_test(test_counters_without_a_number_are_instants_that_say_so),
        cmocka_unit_test(test_device_tracks_are_told_by_device_and_stream),
        cmocka_unit_test(test_a_device_is_no_process_that_has_its_number),
        cmocka_unit_test(test_flows_and_asynchronous_events_keep_their_ids),
        cmocka_unit_test(test_whole_numbers_of_every_size_are_kept_exactly),
        cmocka_unit_test(test_kinds_and_keys_that_there_are_not_spoil_no_event),
        cmocka_unit_test(test_a_key_that_there_is_not_is_that_of_no_text),
        cmocka_unit_test(test_each_slice_has_its_end_in_the_log),
        cmocka_unit_test(test_nothing_is_evaluated_or_recorded_while_off),
        cmocka_unit_test(test_an_end_closes_what_was_left_open_above),
        cmocka_unit_test(test_slices_that_are_open_at_the_stop_are_unfinished),
        cmocka_unit_test(test_open_slices_of_a_trace_are_no_part_of_the_next),
        cmocka_unit_test(test_full_ring_drops_by_type_and_goes_on_after_a_drain),
        cmocka_unit_test(test_ring_that_is_full_to_its_last_words_keeps_its_oldest),
        cmocka_unit_test(test_a_slice_that_finds_no_room_is_dropped_as_a_whole),
        cmocka_unit_test(test_a_slice_that_finds_no_room_after_the_stop_is_counted),
        cmocka_unit_test(test_records_wrap_at_every_place),
        cmocka_unit_test(test_nothing_is_taken_from_behind_the_ring),
        cmocka_unit_test(test_blocking_waits_no_longer_than_its_bound),
        cmocka_unit_test(test_events_that_are_too_large_are_counted),
        cmocka_unit_test(test_slices_nested_too_deep_are_counted),
        cmocka_unit_test(test_odd_names_and_values_spoil_nothing),
        cmocka_unit_test(test_batches_are_as_long_as_asked_for_and_lose_nothing),
        cmocka_unit_test(test_a_drain_without_memory_takes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
