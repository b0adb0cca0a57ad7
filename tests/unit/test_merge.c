/*
 * test_merge.c - ids that stay apart when streams come together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/merge.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

#define NUM(n)                              \
    {                                       \
        .kind = TP_ID_NUMBER, .number = (n) \
    }
#define TEXT(t)                                           \
    {                                                     \
        .kind = TP_ID_TEXT, .text = {(t), sizeof(t) - 1 } \
    }
#define NO_ID              \
    {                      \
        .kind = TP_ID_NONE \
    }
#define STR(t)             \
    {                      \
        (t), sizeof(t) - 1 \
    }

/* A rank as PyTorch writes it: a process, GPU 0 with a stream of two lanes, spans. */
static struct tp_index_track tracks[] = {
    {.uuid = 4, .pid = NUM(4037), .tid = NUM(4037)},
    {.uuid = 8, .pid = NUM(0), .tid = NUM(7)},
    {.uuid = 12, .pid = NUM(0), .tid = NUM(7), .lane = 1},
    {.uuid = 16, .pid = NUM(0), .tid = NUM(1000007)},
    {.uuid = 20, .pid = TEXT("Spans"), .tid = TEXT("PyTorch Profiler")},
    {.uuid = 24, .pid = TEXT("Spans"), .tid = TEXT("PyTorch Profiler"), .lane = 1},
    {.uuid = 28, .pid = NO_ID, .tid = NO_ID},
    {.uuid = 32, .pid = NUM(-1), .tid = NUM(-5)},
};
static struct tp_index_series series[] = {
    {.uuid = 5,
     .pid = NUM(4037),
     .tid = NUM(0),
     .counter = STR("HBM"),
     .series = STR("r")},
};
static struct tp_index_meta metas[] = {
    {.name = STR("process_name"),
     .pid = NUM(4037),
     .tid = NUM(0),
     .args_json = STR("{\"name\":\"python\"}")},
    {.name = STR("process_labels"),
     .pid = NUM(0),
     .tid = NUM(0),
     .args_json = STR("{\"labels\":\"GPU \\u0030\"}")},
    {.name = STR("process_sort_index"),
     .pid = NUM(0),
     .tid = NUM(0),
     .args_json = STR("{\"sort_index\":5000000}")},
    {.name = STR("thread_name"),
     .pid = NUM(0),
     .tid = NUM(7),
     .args_json = STR("{\"name\":\"stream 7 \"}")},
    {.name = STR("thread_name"),
     .pid = NUM(0),
     .tid = NUM(99),
     .args_json = STR("{\"name\":\"no events\"}")},
    {.name = STR("process_name"),
     .pid = NUM(77),
     .tid = NUM(0),
     .args_json = STR("[]")},
};

static struct tp_stream_index index_of(uint32_t stream_no)
{
    return (struct tp_stream_index){.stream_no = stream_no,
                                    .n_events = 1,
                                    .tracks = tracks,
                                    .n_tracks = sizeof(tracks) / sizeof(*tracks),
                                    .series = series,
                                    .n_series = 1,
                                    .metas = metas,
                                    .n_metas = sizeof(metas) / sizeof(*metas)};
}

static const struct tp_merge_process *process_of(const struct tp_merge *m,
                                                 size_t stream, struct tp_id pid)
{
    const struct tp_merge_process *p = tp_merge_process(m, stream, &pid);

    assert_non_null(p);
    return p;
}

static void check_id(const struct tp_id *id, int64_t number, const char *text)
{
    if (text == NULL) {
        assert_int_equal(id->kind, TP_ID_NUMBER);
        assert_int_equal(id->number, number);
    } else {
        assert_int_equal(id->kind, TP_ID_TEXT);
        assert_int_equal(id->text.len, strlen(text));
        assert_memory_equal(id->text.ptr, text, strlen(text));
    }
}

static void check_thread(const struct tp_merge *m, size_t stream, struct tp_id pid,
                         struct tp_id tid, uint32_t lane, int64_t number,
                         const char *text)
{
    const struct tp_merge_thread *t =
        tp_merge_thread(m, process_of(m, stream, pid), &tid, lane);

    assert_non_null(t);
    check_id(&t->tid, number, text);
}

static void test_a_single_stream_keeps_its_ids(void **state)
{
    struct tp_stream_index ix = index_of(1);
    struct tp_producer_info producer = {.has_rank = true, .rank = 3};
    struct tp_merge_stream stream = {&ix, &producer};
    struct tp_merge *m;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_merge_new(&stream, 1, &m, &err), TP_OK);
    assert_false(m->is_merged);
    assert_int_equal(m->n_processes, 6);
    for (size_t i = 0; i < sizeof(tracks) / sizeof(*tracks); i++) {
        const struct tp_merge_process *p = process_of(m, 0, tracks[i].pid);
        const struct tp_merge_thread *t =
            tp_merge_thread(m, p, &tracks[i].tid, tracks[i].lane);

        assert_int_equal(tp_merge_compare_ids(&p->pid, &tracks[i].pid), 0);
        assert_non_null(t);
        assert_int_equal(t->uuid, tracks[i].uuid);
        if (tracks[i].lane == 0)
            assert_int_equal(tp_merge_compare_ids(&t->tid, &tracks[i].tid), 0);
    }
    /* 7 + 1000000 is a thread of its own, so the lane goes one step further. */
    check_thread(m, 0, (struct tp_id)NUM(0), (struct tp_id)NUM(7), 1, 2000007, NULL);
    check_thread(m, 0, (struct tp_id)TEXT("Spans"),
                 (struct tp_id)TEXT("PyTorch Profiler"), 1, 0,
                 "PyTorch Profiler (lane 1)");
    tp_merge_free(m);
}

static void test_names_come_from_the_metadata(void **state)
{
    struct tp_stream_index ix = index_of(1);
    struct tp_producer_info producer = {0};
    struct tp_merge_stream stream = {&ix, &producer};
    const struct tp_merge_process *gpu;
    struct tp_id seven = NUM(7);
    struct tp_merge *m;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_merge_new(&stream, 1, &m, &err), TP_OK);
    assert_string_equal(process_of(m, 0, (struct tp_id)NUM(4037))->name, "python");
    gpu = process_of(m, 0, (struct tp_id)NUM(0));
    assert_null(gpu->name);
    assert_string_equal(gpu->labels, "GPU 0");
    assert_true(gpu->has_sort);
    assert_int_equal(gpu->sort, 5000000);
    assert_string_equal(tp_merge_thread(m, gpu, &seven, 0)->name, "stream 7 ");
    assert_true(process_of(m, 0, (struct tp_id)NUM(77))->has_metadata);
    assert_null(process_of(m, 0, (struct tp_id)NUM(77))->name);
    assert_string_equal(m->labels[0], "stream 1");
    tp_merge_free(m);
}

static void test_equal_pids_of_two_ranks_stay_apart(void **state)
{
    struct tp_stream_index a = index_of(1);
    struct tp_stream_index b = index_of(2);
    struct tp_producer_info ranks[] = {{.has_rank = true, .rank = 0},
                                       {.has_rank = true, .rank = 1}};
    struct tp_merge_stream streams[] = {{&a, &ranks[0]}, {&b, &ranks[1]}};
    struct tp_merge *m;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_merge_new(streams, 2, &m, &err), TP_OK);
    check_id(&process_of(m, 0, (struct tp_id)NUM(4037))->pid, 4037, NULL);
    check_id(&process_of(m, 1, (struct tp_id)NUM(4037))->pid, 10004037, NULL);
    check_id(&process_of(m, 0, (struct tp_id)NUM(0))->pid, 0, NULL);
    check_id(&process_of(m, 1, (struct tp_id)NUM(0))->pid, 10000000, NULL);
    check_id(&process_of(m, 1, (struct tp_id)TEXT("Spans"))->pid, 0, "Spans (rank 1)");
    check_id(&process_of(m, 0, (struct tp_id)NO_ID)->pid, 0, "(rank 0)");
    check_thread(m, 1, (struct tp_id)NUM(0), (struct tp_id)NUM(7), 0, 7, NULL);
    for (size_t i = 0; i < m->n_processes; i++)
        for (size_t k = 0; k < i; k++) {
            const struct tp_merge_process *p = &m->processes[i];
            const struct tp_merge_process *q = &m->processes[k];

            if (tp_merge_compare_ids(&p->pid, &q->pid) == 0 || p->number == q->number)
                fail_msg("processes %zu and %zu have one id", k, i);
        }
    tp_merge_free(m);
}

static void test_perfetto_numbers_are_positive_and_unique(void **state)
{
    struct tp_stream_index ix = index_of(1);
    struct tp_producer_info producer = {0};
    struct tp_merge_stream stream = {&ix, &producer};
    struct tp_merge *m;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_merge_new(&stream, 1, &m, &err), TP_OK);
    assert_int_equal(process_of(m, 0, (struct tp_id)NUM(4037))->number, 4037);
    for (size_t i = 0; i < m->n_processes; i++)
        assert_true(m->processes[i].number > 0);
    for (size_t i = 0; i < m->n_threads; i++) {
        const struct tp_merge_thread *t = &m->threads[i];

        assert_true(t->number > 0);
        for (size_t k = 0; k < i; k++)
            if (t->lane == 0 && m->threads[k].lane == 0 &&
                m->threads[k].process == t->process)
                assert_int_not_equal(m->threads[k].number, t->number);
    }
    tp_merge_free(m);
}

static void test_processes_are_ordered_by_stream_and_source(void **state)
{
    struct tp_stream_index a = index_of(1);
    struct tp_stream_index b = index_of(2);
    struct tp_producer_info ranks[] = {{.has_rank = true, .rank = 0},
                                       {.has_rank = true, .rank = 1}};
    struct tp_merge_stream streams[] = {{&a, &ranks[0]}, {&b, &ranks[1]}};
    struct tp_merge *m;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_merge_new(streams, 2, &m, &err), TP_OK);
    /* The process 4037 before GPU 0, whose own index is 5000000; rank 0 first. */
    assert_true(process_of(m, 0, (struct tp_id)NUM(4037))->sort_index <
                process_of(m, 0, (struct tp_id)NUM(0))->sort_index);
    assert_true(process_of(m, 0, (struct tp_id)NUM(0))->sort_index <
                process_of(m, 1, (struct tp_id)NUM(-1))->sort_index);
    tp_merge_free(m);
}

static void test_streams_of_one_rank_have_different_markers(void **state)
{
    struct tp_stream_index a = index_of(1);
    struct tp_stream_index b = index_of(2);
    struct tp_stream_index c = index_of(9);
    struct tp_producer_info producers[] = {{.has_rank = true, .rank = 5},
                                           {.has_rank = true, .rank = 5},
                                           {.name = STR("nic")}};
    struct tp_merge_stream streams[] = {{&a, &producers[0]},
                                        {&b, &producers[1]},
                                        {&c, &producers[2]}};
    struct tp_merge *m;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_merge_new(streams, 3, &m, &err), TP_OK);
    assert_string_equal(m->labels[1], "rank 5");
    assert_string_equal(m->markers[0], "rank 5, stream 1");
    assert_string_equal(m->markers[1], "rank 5, stream 2");
    assert_string_equal(m->markers[2], "nic");
    tp_merge_free(m);
}

/* 300 ranks with one pid: more than the readable numbers reach. */
static void test_many_ranks_get_pids_below_two_to_the_31(void **state)
{
    static struct tp_stream_index indexes[300];
    static struct tp_producer_info producers[300];
    static struct tp_merge_stream streams[300];
    struct tp_merge *m;
    struct tp_err err;

    (void)state;
    for (uint32_t i = 0; i < 300; i++) {
        indexes[i] = index_of(i + 1);
        producers[i] = (struct tp_producer_info){.has_rank = true, .rank = i};
        streams[i] = (struct tp_merge_stream){&indexes[i], &producers[i]};
    }
    assert_int_equal(tp_merge_new(streams, 300, &m, &err), TP_OK);
    for (size_t i = 0; i < 300; i++) {
        const struct tp_merge_process *p = process_of(m, i, (struct tp_id)NUM(4037));

        assert_true(p->pid.number > 0 && p->pid.number <= INT32_MAX);
        if (i > 0)
            assert_int_not_equal(
                process_of(m, i - 1, (struct tp_id)NUM(4037))->pid.number,
                p->pid.number);
    }
    tp_merge_free(m);
}

static void test_the_base_is_that_of_the_sources(void **state)
{
    const int64_t step = INT64_C(7889238) * 1000000000;
    struct tp_stream_index a = {.n_events = 1, .has_base = true, .base_ns = 2 * step};
    struct tp_stream_index b = {.n_events = 1, .has_base = true, .base_ns = 3 * step};
    struct tp_stream_index small = {.n_events = 1, .first_ns = 5, .last_ns = 100};
    struct tp_stream_index large = {.n_events = 1,
                                    .first_ns = 4 * step + 7,
                                    .last_ns = 4 * step + 9};
    struct tp_stream_index none = {.n_events = 0};
    const struct tp_producer_info p = {0};
    struct tp_stream_index far = {.n_events = 1,
                                  .has_base = true,
                                  .base_ns = 90 * step};
    const struct {
        struct tp_merge_stream streams[2];
        int64_t about;
        int64_t want;
    } cases[] = {
        {{{&a, &p}, {&a, &p}}, 0, 2 * step},
        {{{&b, &p}, {&a, &p}}, 0, 2 * step},
        {{{&small, &p}, {&small, &p}}, 0, 0},
        {{{&large, &p}, {&large, &p}}, 0, 4 * step},
        {{{&large, &p}, {&b, &p}}, 0, 3 * step},
        {{{&none, &p}, {&b, &p}}, 0, 3 * step},
        {{{&none, &p}, {&none, &p}}, 0, 0},
        /* Of another time than the trace: they count when all are. */
        {{{&small, &p}, {&far, &p}}, 0, 0},
        {{{&small, &p}, {&far, &p}}, 90 * step, 90 * step},
        {{{&far, &p}, {&small, &p}}, 90 * step, 90 * step},
        {{{&b, &p}, {&far, &p}}, 90 * step, 90 * step},
        {{{&a, &p}, {&far, &p}}, 3 * step, 2 * step},
        {{{&far, &p}, {&b, &p}}, 2 * step, 3 * step},
        {{{&b, &p}, {&a, &p}}, 90 * step, 2 * step},
        {{{&small, &p}, {&small, &p}}, 90 * step, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (tp_merge_base_ns(cases[i].streams, 2, cases[i].about) != cases[i].want)
            fail_msg("case %zu gave %lld", i,
                     (long long)tp_merge_base_ns(cases[i].streams, 2, cases[i].about));
}

static void test_each_allocation_fails_cleanly(void **state)
{
    struct tp_stream_index a = index_of(1);
    struct tp_stream_index b = index_of(2);
    struct tp_producer_info producer = {0};
    struct tp_merge_stream streams[] = {{&a, &producer}, {&b, &producer}};

    (void)state;
    for (int n = 0;; n++) {
        struct tp_merge *m = NULL;
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_merge_new(streams, 2, &m, &err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_merge_free(m);
            return;
        }
        /* Giving back spare room may fail without harm. */
        if (rc == TP_OK)
            tp_merge_free(m);
        else
            assert_int_equal(rc, TP_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_single_stream_keeps_its_ids),
        cmocka_unit_test(test_names_come_from_the_metadata),
        cmocka_unit_test(test_equal_pids_of_two_ranks_stay_apart),
        cmocka_unit_test(test_perfetto_numbers_are_positive_and_unique),
        cmocka_unit_test(test_processes_are_ordered_by_stream_and_source),
        cmocka_unit_test(test_streams_of_one_rank_have_different_markers),
        cmocka_unit_test(test_many_ranks_get_pids_below_two_to_the_31),
        cmocka_unit_test(test_the_base_is_that_of_the_sources),
        cmocka_unit_test(test_each_allocation_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
