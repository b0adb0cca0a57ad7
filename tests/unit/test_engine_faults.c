/*
 * Each allocation of each operation fails in turn: the call says so or makes up for it,
 * and the same call works when there is memory again.
 */
#include "support/engine_test.h"

#include "base/err.h"
#include "core/limits.h"
#include "core/type_counts.h"
#include "support/fault.h"

struct scene {
    struct rig *rig;
    char producer[TP_TRACE_ID_BYTES];
    char trace[TP_TRACE_ID_BYTES];
    char second[TP_TRACE_ID_BYTES]; /* a trace that the producer takes part in */
};

/* A job with a type, a producer and a trace that has data and is over. */
static void set_scene(struct scene *s)
{
    struct rig *r = s->rig;
    char *body = rig_events("kernel", 2, 1);
    unsigned id;

    assert_int_equal(rig_type(r, "j", "a", "B", &id), TP_OK);
    rig_producer(r, "j", "rank-0", 0, s->producer);
    assert_int_equal(rig_create(r, "j", NULL, s->trace), TP_OK);
    rig_wait(r, r->limits->trace_arming_ms * RIG_MS);
    assert_int_equal(rig_post(r, s->trace, "rank-0", 0, 1, body, NULL), TP_OK);
    assert_int_equal(rig_stop(r, s->trace), TP_OK);
    rig_work(r);
    free(body);
}

static int register_type(struct scene *s)
{
    struct rig *r = s->rig;
    unsigned id;

    return rig_type(r, "k", "a", "C", &id);
}

static int list_types(struct scene *s)
{
    struct rig *r = s->rig;
    struct tp_type_list *list = NULL;
    int rc = tp_engine_types_list(r->engine, rig_str("j"), TP_TYPES_ALL, -1, 0, &list,
                                  &r->problem, &r->err);

    tp_type_list_free(list);
    return rc;
}

static int get_type(struct scene *s)
{
    struct rig *r = s->rig;
    struct tp_type_list *list = NULL;
    int rc = tp_engine_type_get(r->engine, rig_str("j"), rig_str("a.B"), &list,
                                &r->problem, &r->err);

    tp_type_list_free(list);
    return rc;
}

static int register_producer(struct scene *s)
{
    struct rig *r = s->rig;
    struct tp_producer_request request = {.job = rig_str("new"),
                                          .name = rig_str("rank-1"),
                                          .kind = rig_str("native"),
                                          .rank = 1,
                                          .pid = 7};
    struct tp_producer_list *list = NULL;
    int rc = tp_engine_producer_register(r->engine, &request, r->now, &list,
                                         &r->problem, &r->err);

    tp_producer_list_free(list);
    return rc;
}

static int list_producers(struct scene *s)
{
    struct rig *r = s->rig;
    struct tp_producer_query query = {.limit = 10};
    struct tp_producer_list *list = NULL;
    int rc = tp_engine_producers_list(r->engine, &query, r->now, &list, &r->problem,
                                      &r->err);

    tp_producer_list_free(list);
    return rc;
}

static int sync_producer(struct scene *s)
{
    struct rig *r = s->rig;
    struct tp_sync_request request = {.has_step = true, .step = 3};
    struct tp_sync_reply reply;

    return tp_engine_sync(r->engine, rig_str(s->producer), &request, r->now, &reply,
                          &r->problem, &r->err);
}

static int create_trace(struct scene *s)
{
    return rig_create(s->rig, "j", NULL, s->second);
}

static int take_commands(struct scene *s)
{
    struct rig *r = s->rig;
    struct tp_sync_request request = {0};
    struct tp_sync_reply reply;

    return tp_engine_sync(r->engine, rig_str(s->producer), &request, r->now, &reply,
                          &r->problem, &r->err);
}

static int report_counts(struct scene *s)
{
    struct rig *r = s->rig;
    struct tp_type_count item = {.id = 9, .emitted = 4, .filtered = 1};
    struct tp_type_counts types = {&item, 1};
    struct tp_sync_counts counts = {
        .trace_id = rig_str(s->second), .emitted = 4, .filtered = 1, .types = &types};
    struct tp_sync_request request = {.counts = &counts, .n_counts = 1};
    struct tp_sync_reply reply;

    return tp_engine_sync(r->engine, rig_str(s->producer), &request, r->now, &reply,
                          &r->problem, &r->err);
}

static int list_traces(struct scene *s)
{
    struct rig *r = s->rig;
    struct tp_trace_query query = {.limit = 10};
    struct tp_trace_list *list = NULL;
    int rc =
        tp_engine_traces_list(r->engine, &query, r->now, &list, &r->problem, &r->err);

    tp_trace_list_free(list);
    return rc;
}

static int get_trace(struct scene *s)
{
    struct rig *r = s->rig;
    struct tp_trace_view *view = NULL;
    int rc = tp_engine_trace_get(r->engine, rig_str(s->trace), r->now, &view,
                                 &r->problem, &r->err);

    tp_trace_view_free(view);
    return rc;
}

static int delete_trace(struct scene *s)
{
    struct rig *r = s->rig;

    return tp_engine_trace_delete(r->engine, rig_str(s->trace), r->now, &r->problem,
                                  &r->err);
}

static int delete_producer(struct scene *s)
{
    struct rig *r = s->rig;

    return tp_engine_producer_delete(r->engine, rig_str(s->producer), r->now,
                                     &r->problem, &r->err);
}

static void test_each_operation_survives_every_allocation_failure(void **state)
{
    static const struct {
        const char *name;
        int (*run)(struct scene *s);
    } cases[] = {
        {"register type", register_type},
        {"list types", list_types},
        {"get type", get_type},
        {"register producer", register_producer},
        {"list producers", list_producers},
        {"sync", sync_producer},
        {"create trace", create_trace},
        {"take commands", take_commands},
        {"report counts", report_counts},
        {"list traces", list_traces},
        {"get trace", get_trace},
        {"delete trace", delete_trace},
        {"delete producer", delete_producer},
    };
    struct scene s = {.rig = *state};

    set_scene(&s);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int n = 0;

        for (;; n++) {
            int rc;

            fault_arm(n);
            rc = cases[i].run(&s);
            if (!fault_disarm()) {
                print_message("%s: %d allocations\n", cases[i].name, n);
                assert_int_equal(rc, TP_OK);
                break;
            }
            if (rc == TP_OK)
                break; /* it was made up for, and done */
            assert_int_equal(rc, TP_ENOMEM);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_each_operation_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
