/*
 * test_merge_join.c - streams of one process have one pid and rows of their own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/merge.h"
#include "trace/merge_join.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

#define NUM(n) ((struct tp_id){.kind = TP_ID_NUMBER, .number = (n)})
#define TEXT(t) ((struct tp_id){.kind = TP_ID_TEXT, .text = {(t), sizeof(t) - 1}})
#define STR(t)             \
    {                      \
        (t), sizeof(t) - 1 \
    }
#define PID 4037

/* Three streams: of the library, of Kineto, and of Kineto in another process that has
 * the same pid in its own container. Each has the process, and device 0. */
struct plan {
    struct tp_index_track tracks[4];
    struct tp_index_meta metas[3][2];
    struct tp_stream_index indexes[3];
    struct tp_producer_info producers[3];
    struct tp_merge_stream streams[3];
};

static struct tp_index_meta name_meta(const char *name)
{
    return (struct tp_index_meta){.name = STR("process_name"),
                                  .pid = NUM(PID),
                                  .tid = NUM(0),
                                  .args_json = tp_str_of(name)};
}

static void make(struct plan *p)
{
    memset(p, 0, sizeof(*p));
    p->tracks[0] = (struct tp_index_track){.uuid = 4, .pid = NUM(0), .tid = NUM(7)};
    p->tracks[1] = (struct tp_index_track){.uuid = 8, .pid = NUM(PID), .tid = NUM(PID)};
    p->tracks[2] = (struct tp_index_track){
        .uuid = 12, .pid = NUM(PID), .tid = NUM(PID), .lane = 1};
    p->tracks[3] =
        (struct tp_index_track){.uuid = 16, .pid = NUM(PID), .tid = TEXT("copy")};
    for (uint32_t i = 0; i < 3; i++) {
        p->indexes[i] = (struct tp_stream_index){.stream_no = i + 1,
                                                 .n_events = 1,
                                                 .tracks = p->tracks,
                                                 .n_tracks = 4,
                                                 .metas = p->metas[i],
                                                 .n_metas = 1};
        p->metas[i][0] = name_meta("{\"name\":\"python\"}");
        p->producers[i] = (struct tp_producer_info){.has_rank = true,
                                                    .rank = i / 2,
                                                    .kind = STR("kineto"),
                                                    .process_no = i < 2 ? 5 : 0,
                                                    .process_pid = i < 2 ? PID : 0};
        p->streams[i] = (struct tp_merge_stream){&p->indexes[i], &p->producers[i]};
    }
    p->producers[0].kind = (struct tp_str)STR("native");
    p->metas[0][0] = name_meta("{\"name\":\"train\"}");
}

static struct tp_merge *merge(struct plan *p, size_t n)
{
    struct tp_merge *m;
    struct tp_err err;

    assert_int_equal(tp_merge_new(p->streams, n, &m, &err), TP_OK);
    return m;
}

static const struct tp_merge_process *process_of(const struct tp_merge *m,
                                                 size_t stream, int64_t number)
{
    const struct tp_id pid = NUM(number);

    return tp_merge_process(m, stream, &pid);
}

static int64_t tid_of(const struct tp_merge *m, size_t stream, uint32_t lane)
{
    const struct tp_id tid = NUM(PID);

    return tp_merge_thread(m, process_of(m, stream, PID), &tid, lane)->tid.number;
}

static void test_the_process_has_one_pid_and_the_name_of_kineto(void **state)
{
    struct plan p;
    struct tp_merge *m;

    (void)state;
    make(&p);
    m = merge(&p, 3);
    assert_int_equal(process_of(m, 0, PID)->pid.number, PID);
    assert_int_equal(process_of(m, 1, PID)->pid.number, PID);
    assert_int_equal(process_of(m, 0, PID)->number, process_of(m, 1, PID)->number);
    assert_ptr_equal(&m->processes[process_of(m, 0, PID)->owner],
                     process_of(m, 1, PID));
    /* The library's name for it would rename it in viewers. */
    assert_true(tp_merge_hides_meta(m, 0, &p.metas[0][0]));
    assert_false(tp_merge_hides_meta(m, 1, &p.metas[1][0]));
    tp_merge_free(m);
}

static void test_devices_and_other_processes_stay_apart(void **state)
{
    struct plan p;
    struct tp_merge *m;

    (void)state;
    make(&p);
    m = merge(&p, 3);
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(process_of(m, i, 0)->pid.number,
                                 process_of(m, k, 0)->pid.number);
            assert_int_not_equal(process_of(m, i, 0)->number,
                                 process_of(m, k, 0)->number);
        }
    }
    assert_int_not_equal(process_of(m, 2, PID)->pid.number, PID);
    assert_int_not_equal(process_of(m, 2, PID)->number, process_of(m, 0, PID)->number);
    tp_merge_free(m);
}

/* No two rows of the process have one tid in Chrome, or one number in Perfetto. */
static void test_threads_of_both_have_rows_of_their_own(void **state)
{
    struct plan p;
    struct tp_merge *m;

    (void)state;
    make(&p);
    m = merge(&p, 2);
    assert_int_equal(tid_of(m, 1, 0), PID);
    assert_int_equal(tid_of(m, 1, 1), PID + 1000000);
    assert_int_equal(tid_of(m, 0, 0), PID + 2000000);
    assert_int_equal(tid_of(m, 0, 1), PID + 3000000);
    for (size_t i = 0; i < m->n_threads; i++) {
        const struct tp_merge_thread *a = &m->threads[i];

        for (size_t k = 0; k < i; k++) {
            const struct tp_merge_thread *b = &m->threads[k];

            if (m->processes[a->process].owner != m->processes[b->process].owner)
                continue;
            assert_int_not_equal(tp_merge_compare_ids(&a->tid, &b->tid), 0);
            if (a->lane == 0 && b->lane == 0)
                assert_int_not_equal(a->number, b->number);
        }
    }
    tp_merge_free(m);
}

static void test_a_file_without_the_process_takes_nothing_over(void **state)
{
    struct plan p;
    struct tp_merge *m;

    (void)state;
    make(&p);
    p.indexes[1].n_tracks = 1; /* a GPU, no host */
    p.indexes[1].n_metas = 0;
    m = merge(&p, 2);
    assert_null(process_of(m, 1, PID));
    assert_int_equal(process_of(m, 0, PID)->pid.number, PID);
    assert_false(tp_merge_hides_meta(m, 0, &p.metas[0][0]));
    tp_merge_free(m);
}

static void test_a_process_without_a_name_has_that_of_the_other(void **state)
{
    struct plan p;
    struct tp_merge *m;

    (void)state;
    make(&p);
    p.indexes[1].n_metas = 0;
    m = merge(&p, 2);
    assert_string_equal(process_of(m, 1, PID)->name, "train");
    assert_false(tp_merge_hides_meta(m, 0, &p.metas[0][0]));
    tp_merge_free(m);
}

static void test_streams_of_one_process_are_one_source(void **state)
{
    static struct tp_index_member member = {STR("trace_id"), STR("\"t\"")};
    struct plan p;
    struct tp_merge *m;

    (void)state;
    make(&p);
    p.indexes[1].members = &member;
    p.indexes[1].n_members = 1;
    m = merge(&p, 2);
    assert_int_equal(tp_merge_only_source(m), 1);
    tp_merge_free(m);
    m = merge(&p, 3);
    assert_int_equal(tp_merge_only_source(m), SIZE_MAX);
    tp_merge_free(m);
    m = merge(&p, 1);
    assert_int_equal(tp_merge_only_source(m), 0);
    tp_merge_free(m);
}

static void test_each_allocation_fails_cleanly(void **state)
{
    struct plan p;

    (void)state;
    make(&p);
    for (int n = 0;; n++) {
        struct tp_merge *m = NULL;
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_merge_new(p.streams, 3, &m, &err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_merge_free(m);
            return;
        }
        if (rc == TP_OK)
            tp_merge_free(m); /* giving back spare room may fail without harm */
        else
            assert_int_equal(rc, TP_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_process_has_one_pid_and_the_name_of_kineto),
        cmocka_unit_test(test_devices_and_other_processes_stay_apart),
        cmocka_unit_test(test_threads_of_both_have_rows_of_their_own),
        cmocka_unit_test(test_a_file_without_the_process_takes_nothing_over),
        cmocka_unit_test(test_a_process_without_a_name_has_that_of_the_other),
        cmocka_unit_test(test_streams_of_one_process_are_one_source),
        cmocka_unit_test(test_each_allocation_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
