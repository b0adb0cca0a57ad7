/*
 * test_spare.c - memory for the next trace is there before, and given back after.
 */
#include "support/engine_test.h"

#include <stdio.h>

#include "base/err.h"
#include "engine/objects.h"

#define N 1000 /* their objects have more than a megabyte */

static void make_ready(struct rig *r)
{
    for (int i = 0; i < 4; i++)
        tp_engine_make_ready(r->engine, r->now);
}

static void join_many(struct rig *r, char p[][TP_TRACE_ID_BYTES], int n)
{
    for (int i = 0; i < n; i++) {
        char name[16];

        snprintf(name, sizeof(name), "p%d", i);
        rig_join(r, name, i, p[i]);
    }
}

static const struct tp_trace *trace_of(struct rig *r, const char *id)
{
    return tp_strmap_get(&r->engine->traces, id, strlen(id));
}

static void test_a_trace_of_many_gets_memory_that_was_made_ready(void **state)
{
    static char p[N][TP_TRACE_ID_BYTES];
    struct rig *r = *state;
    const struct tp_spare *spare = &r->engine->spare;
    struct tp_trace_request dry = {.job = rig_str("j"), .dry_run = true};
    struct tp_trace_view *view;
    char id[TP_TRACE_ID_BYTES];
    const char *bytes;

    make_ready(r);
    assert_null(spare->bulk.bytes); /* nobody is there */
    join_many(r, p, N);
    make_ready(r);
    bytes = spare->bulk.bytes;
    assert_non_null(bytes);
    assert_true(spare->ready_bytes >= spare->bulk.size);
    assert_int_equal(
        tp_engine_trace_create(r->engine, &dry, r->now, &view, NULL, &r->err), TP_OK);
    tp_trace_view_free(view);
    assert_ptr_equal(spare->bulk.bytes, bytes); /* which is not for a dry run */
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_ptr_equal(trace_of(r, id)->objects.bytes, bytes);
    assert_ptr_equal(trace_of(r, id)->members[0], bytes);
    assert_null(spare->bulk.bytes);
    make_ready(r);
    assert_null(spare->bulk.bytes); /* telling them comes first */
    for (int i = 0; i < N; i++)
        rig_sync(r, p[i], NULL);
    make_ready(r);
    assert_non_null(spare->bulk.bytes);
}

static void test_it_is_given_back_when_nobody_needs_so_much(void **state)
{
    static char p[N][TP_TRACE_ID_BYTES];
    struct rig *r = *state;

    join_many(r, p, N);
    make_ready(r);
    assert_non_null(r->engine->spare.bulk.bytes);
    for (int i = 0; i < N; i++)
        assert_int_equal(tp_engine_producer_delete(r->engine, rig_str(p[i]), r->now,
                                                   NULL, &r->err),
                         TP_OK);
    make_ready(r);
    assert_null(r->engine->spare.bulk.bytes);
}

/* It would keep it for as long as it is stored. */
static void test_a_small_trace_does_not_take_what_a_large_job_needs(void **state)
{
    static char p[N][TP_TRACE_ID_BYTES];
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES], name[16];
    const char *bytes;

    join_many(r, p, N);
    make_ready(r);
    bytes = r->engine->spare.bulk.bytes;
    assert_non_null(bytes);
    for (int i = 0; i < TP_SPARE_MANY; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        rig_producer(r, "small", name, i, p[i]);
    }
    assert_int_equal(rig_create(r, "small", NULL, id), TP_OK);
    assert_ptr_equal(r->engine->spare.bulk.bytes, bytes);
    assert_ptr_not_equal(trace_of(r, id)->objects.bytes, bytes);
}

static void test_a_refused_trace_does_not_take_it(void **state)
{
    static char p[N][TP_TRACE_ID_BYTES];
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];
    const char *bytes;

    join_many(r, p, N);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (int i = 0; i < N; i++)
        rig_sync(r, p[i], NULL);
    make_ready(r);
    bytes = r->engine->spare.bulk.bytes;
    assert_non_null(bytes);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_EEXIST);
    assert_ptr_equal(r->engine->spare.bulk.bytes, bytes);
}

static void test_few_need_none_and_more_than_there_is_take_their_own(void **state)
{
    static char p[N][TP_TRACE_ID_BYTES];
    struct rig *r = *state;
    char id[TP_TRACE_ID_BYTES];

    join_many(r, p, TP_SPARE_MANY - 1);
    make_ready(r);
    assert_null(r->engine->spare.bulk.bytes);
    join_many(r, p, N);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    assert_non_null(trace_of(r, id)->objects.bytes);
    for (int i = 0; i < N; i++)
        assert_string_equal(trace_of(r, id)->streams[i]->who.name,
                            tp_member_of_stream(trace_of(r, id), i + 1)->who.name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_a_trace_of_many_gets_memory_that_was_made_ready),
        engine_test(test_it_is_given_back_when_nobody_needs_so_much),
        engine_test(test_a_small_trace_does_not_take_what_a_large_job_needs),
        engine_test(test_a_refused_trace_does_not_take_it),
        engine_test(test_few_need_none_and_more_than_there_is_take_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
