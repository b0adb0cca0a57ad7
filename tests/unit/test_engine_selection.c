/*
 * Who of a job is matched by the selection of a trace, and why others are not.
 */
#include "support/engine_test.h"

#include "base/err.h"

static void test_the_selection_gives_a_reason_to_those_it_leaves_out(void **state)
{
    struct rig *r = *state;
    const uint32_t rank = 1;
    struct tp_trace_request request = {.job = rig_str("j"),
                                       .ranks = &rank,
                                       .n_ranks = 1};
    char p[2][TP_TRACE_ID_BYTES], id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;

    rig_producer(r, "j", "p0", 0, p[0]);
    rig_producer(r, "j", "p1", 1, p[1]);
    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    view = rig_view(r, id);
    assert_int_equal(view->n_members, 2);
    assert_string_equal(view->members[0].reason, "not selected: rank 0");
    assert_true(view->members[1].is_matched);
    tp_trace_view_free(view);
}

/* Register it, as often as it is called. */
static void register_one(struct rig *r, const char *name, int64_t rank,
                         const char *process, char *id)
{
    const struct tp_producer_request request = {.job = rig_str("j"),
                                                .name = rig_str(name),
                                                .kind = rig_str("native"),
                                                .rank = rank,
                                                .pid = 7,
                                                .process = rig_str(process)};

    rig_register(r, &request, id);
}

/* How many a trace of rank 6 matches. */
static size_t n_of_rank_6(struct rig *r)
{
    const uint32_t rank = 6;
    const struct tp_trace_request request = {
        .job = rig_str("j"), .ranks = &rank, .n_ranks = 1, .dry_run = true};
    struct tp_trace_view *view = NULL;
    size_t n;

    assert_int_equal(tp_engine_trace_create(r->engine, &request, r->now, &view,
                                            &r->problem, &r->err),
                     TP_OK);
    n = view->n_matched;
    tp_trace_view_free(view);
    return n;
}

static void test_a_rank_is_lent_for_as_long_as_its_owner_says_so(void **state)
{
    struct rig *r = *state;
    char knows[TP_TRACE_ID_BYTES], asks[TP_TRACE_ID_BYTES];

    register_one(r, "asks", -1, "b/1/7/9", asks);
    register_one(r, "knows", 6, "b/1/8/9", knows);
    assert_int_equal(n_of_rank_6(r), 1);
    register_one(r, "knows", 6, "b/1/7/9", knows);
    assert_int_equal(n_of_rank_6(r), 2);
    register_one(r, "knows", 6, "b/1/8/9", knows);
    assert_int_equal(n_of_rank_6(r), 1);
    register_one(r, "asks", -1, "b/1/8/9", asks);
    assert_int_equal(n_of_rank_6(r), 2);
    assert_int_equal(rig_restart(r), TP_OK);
    assert_int_equal(n_of_rank_6(r), 2);
    assert_int_equal(tp_engine_producer_delete(r->engine, rig_str(knows), r->now, NULL,
                                               NULL),
                     TP_OK);
    assert_int_equal(n_of_rank_6(r), 0);
    register_one(r, "other", 5, "b/1/8/9", knows);
    assert_int_equal(n_of_rank_6(r), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_the_selection_gives_a_reason_to_those_it_leaves_out),
        engine_test(test_a_rank_is_lent_for_as_long_as_its_owner_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
