/*
 * A tally says beforehand what the seal finds, or nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/limits.h"
#include "core/typemap.h"
#include "support/blob_mem.h"
#include "support/fault.h"
#include "support/native_rig.h"
#include "support/stream_rig.h"

#define NOW INT64_C(1790000000000000000)

/* A stream with a tally. */
static struct stream_rig new_stream(const struct tp_limits *limits)
{
    struct stream_rig s = {.opts = {.form = TP_INGEST_PERFETTO,
                                    .encoding = TP_INGEST_IDENTITY,
                                    .types = native_rig_types,
                                    .limits = limits},
                           .seal_opts = {.limits = limits}};
    struct tp_limits defaults = tp_limits_default();
    struct tp_err err;

    assert_int_equal(tp_native_tally_new(limits == NULL ? &defaults : limits, &s.tally,
                                         &err),
                     TP_OK);
    return s;
}

static void end_stream(struct stream_rig *s)
{
    tp_native_tally_free(s->tally);
    stream_rig_fini(s);
}

static void post(struct stream_rig *s, struct native_rig *batch)
{
    struct tp_err err = {0};

    native_rig_end(batch);
    if (stream_rig_post(s, batch->bytes.data, batch->bytes.len, &err) != TP_OK)
        fail_msg("%s", err.message);
}

static struct tp_event event(enum tp_event_kind kind, char phase, int64_t ts_ns)
{
    static const struct tp_track track = {.index = 1,
                                          .pid = {.kind = TP_ID_NUMBER, .number = 42},
                                          .tid = {.kind = TP_ID_NUMBER, .number = 1}};

    return (struct tp_event){.kind = kind,
                             .phase = phase,
                             .ts_ns = ts_ns,
                             .name = {"it", 2, 0},
                             .cat = {"cpu_op", 6, 0},
                             .track = &track};
}

static uint32_t any(uint32_t *random, uint32_t below)
{
    *random = *random * 1664525u + 1013904223u;
    return (*random >> 8) % below;
}

/* One of all the kinds that need no pairing. */
static void add_any(struct native_rig *batch, uint32_t *random, int64_t at)
{
    static const char *const cats[] = {"kernel", "cpu_op", "no type of ours"};
    const struct tp_arg value = {.key = {"bytes", 5, 0}, .kind = TP_ARG_INT, .i = 7};
    const struct tp_arg name = {.key = {"name", 4, 0},
                                .kind = TP_ARG_STRING,
                                .s = {"main \"x\"", 8}};
    struct tp_event ev = event(TP_EVENT_INSTANT, 'i', at);

    switch (any(random, 10)) {
    case 0:
        ev.scope = 't';
        native_rig_event(batch, &ev);
        return;
    case 1:
        ev = event(TP_EVENT_COUNTER, 'C', at);
        ev.args = &value;
        ev.n_args = 1;
        native_rig_event(batch, &ev);
        return;
    case 2:
        ev = event(TP_EVENT_FLOW_START, 's', at);
        ev.id = (struct tp_id){.kind = TP_ID_NUMBER, .number = any(random, 5)};
        native_rig_event(batch, &ev);
        return;
    case 3:
        ev = event(TP_EVENT_ASYNC_BEGIN, 'b', at);
        ev.id = (struct tp_id){.kind = TP_ID_NUMBER, .number = 3};
        native_rig_event(batch, &ev);
        return;
    case 4:
        ev = event(TP_EVENT_BEGIN, 'B', at);
        ev.is_unfinished = true;
        native_rig_event(batch, &ev);
        return;
    case 5:
        ev = event(TP_EVENT_META, 'M', 0);
        ev.name = (struct tp_name){"thread_name", 11, 0};
        ev.args = &name;
        ev.n_args = 1;
        native_rig_event(batch, &ev);
        return;
    default:
        native_rig_slice(batch, cats[any(random, 3)], "op", any(random, 4), at,
                         any(random, 100000));
    }
}

/* What the seal counted of a type. */
static uint64_t sealed_of(const struct stream_rig *s, int id)
{
    const struct tp_stream_index *ix = &s->sealed.index;
    uint64_t n = 0;

    for (size_t i = 0; i < ix->n_types; i++) {
        if (tp_typemap_find(native_rig_types, ix->types[i].cat.ptr,
                            ix->types[i].cat.len) == id)
            n += ix->types[i].count;
    }
    return n;
}

static void expect_same(struct stream_rig *s, const struct tp_native_sum *sum,
                        unsigned seed)
{
    const struct tp_stream_index *ix = &s->sealed.index;
    struct tp_err err = {0};

    if (stream_rig_seal(s, &err) != TP_OK)
        fail_msg("seed %u: %s", seed, err.message);
    if (s->sealed.adjust.stored != 0 || s->sealed.adjust.repaired != 0)
        fail_msg("seed %u: the seal changed %llu events", seed,
                 (unsigned long long)s->sealed.adjust.stored);
    if (sum->has_times != (ix->n_events > 0) ||
        (sum->has_times &&
         (sum->first_ns != ix->first_ns || sum->last_ns != ix->last_ns)))
        fail_msg("seed %u: %lld to %lld became %lld to %lld", seed,
                 (long long)sum->first_ns, (long long)sum->last_ns,
                 (long long)ix->first_ns, (long long)ix->last_ns);
    for (int id = 0; id < (int)TP_ACTIVITY_IDS; id++) {
        if (sum->by_type[id] != sealed_of(s, id))
            fail_msg("seed %u: %llu of type %d became %llu", seed,
                     (unsigned long long)sum->by_type[id], id,
                     (unsigned long long)sealed_of(s, id));
    }
}

/* Streams of batches with clocks that drift, of all kinds of events, in any order. */
static void test_a_tally_says_what_the_seal_finds(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 200; seed++) {
        struct stream_rig s = new_stream(NULL);
        struct native_rig batch = {0};
        struct tp_native_sum sum;
        uint32_t random = seed;
        unsigned n = any(&random, 6);
        bool has_clock = any(&random, 3) > 0;

        s.piece_bytes = 1 + any(&random, 300);
        for (unsigned i = 0; i < n; i++) {
            int64_t at = NOW + (int64_t)any(&random, 1000000) * 1000;
            struct tp_native_clock clock = {
                .producer_ns = (uint64_t)(NOW + i * 2000000000LL),
                .server_ns = (uint64_t)(NOW + 3600000000000LL + i * 2000100000LL),
                .error_ns = 1000 + any(&random, 1000)};

            native_rig_begin(&batch, 1, has_clock ? &clock : NULL);
            for (uint32_t k = any(&random, 40); k > 0; k--)
                add_any(&batch, &random, at + any(&random, 1000000));
            post(&s, &batch);
            assert_true(s.is_tallied);
        }
        if (!tp_native_tally_finish(s.tally, n, &sum))
            fail_msg("seed %u: it says nothing", seed);
        if (n > 0)
            expect_same(&s, &sum, seed);
        native_rig_fini(&batch);
        end_stream(&s);
    }
}

/* Whether a stream with a plain slice and this event is still spoken for. */
static bool speaks_for(const struct tp_event *ev, const char *json)
{
    struct stream_rig s = new_stream(NULL);
    struct native_rig batch = {0};
    struct tp_native_sum sum;
    struct tp_err err;
    bool is_known;

    native_rig_begin(&batch, 1, NULL);
    native_rig_slice(&batch, "kernel", "op", 0, NOW, 10);
    if (ev != NULL)
        native_rig_event(&batch, ev);
    post(&s, &batch);
    if (json != NULL) {
        s.opts.form = TP_INGEST_CHROME;
        assert_int_equal(stream_rig_post(&s, json, strlen(json), &err), TP_OK);
    }
    is_known = tp_native_tally_finish(s.tally, json == NULL ? 1 : 2, &sum);
    assert_int_equal(is_known, s.is_tallied);
    native_rig_fini(&batch);
    end_stream(&s);
    return is_known;
}

static void test_what_the_seal_may_change_is_not_spoken_for(void **state)
{
    struct tp_event begin = event(TP_EVENT_BEGIN, 'B', NOW);
    struct tp_event end = event(TP_EVENT_END, 'E', NOW);
    struct tp_event meta = event(TP_EVENT_META, 'M', NOW);
    struct tp_event other = event(TP_EVENT_OTHER, 'N', NOW);
    struct tp_event instant = event(TP_EVENT_INSTANT, 'i', NOW);
    struct tp_event odd = instant;

    (void)state;
    odd.name = (struct tp_name){"no \xff text", 8, 0};
    assert_true(speaks_for(NULL, NULL));
    assert_true(speaks_for(&instant, NULL));
    assert_false(speaks_for(&begin, NULL));
    assert_false(speaks_for(&end, NULL));
    assert_false(speaks_for(&meta, NULL));
    assert_false(speaks_for(&other, NULL));
    assert_false(speaks_for(&odd, NULL));
    /* An empty batch of another kind is how some learn their stream. */
    assert_true(speaks_for(NULL, "[]"));
    assert_false(speaks_for(NULL, "[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"pid\":1}]"));
    assert_false(speaks_for(NULL, "{\"traceEvents\":[],\"schemaVersion\":1}"));
}

static void test_a_batch_that_was_not_seen_is_missed(void **state)
{
    struct stream_rig s = new_stream(NULL);
    struct tp_native_sum sum;

    (void)state;
    assert_true(tp_native_tally_finish(s.tally, 0, &sum));
    assert_false(sum.has_times);
    assert_false(tp_native_tally_finish(s.tally, 1, &sum));
    end_stream(&s);
}

/* A time that the seal would have to repair is counted by the seal. */
static void test_times_out_of_range_are_left_to_the_seal(void **state)
{
    static const struct {
        int64_t ts_ns, dur_ns, offset_ns;
        bool is_known;
    } cases[] = {
        {5000, 10, 0, true},
        {5000, 10, -5000, true},
        {5000, 10, -5001, false},
        {5000, INT64_MAX, 0, false},
        {5000, INT64_MAX - 5000, 0, false},
        {INT64_MAX - 20, 10, 5000, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_native_clock clock = {
            .producer_ns = 10000, .server_ns = (uint64_t)(10000 + cases[i].offset_ns)};
        struct stream_rig s = new_stream(NULL);
        struct native_rig batch = {0};
        struct tp_native_sum sum;

        native_rig_begin(&batch, 1, &clock);
        native_rig_slice(&batch, "kernel", "op", 0, cases[i].ts_ns, cases[i].dur_ns);
        post(&s, &batch);
        if (tp_native_tally_finish(s.tally, 1, &sum) != cases[i].is_known)
            fail_msg("case %zu", i);
        native_rig_fini(&batch);
        end_stream(&s);
    }
}

/* Post batches that each have their own threads and names; returns whether the tally
 * speaks for all of them. */
static bool speaks_for_many(const struct tp_limits *limits, int n_batches, int n_metas)
{
    struct stream_rig s = new_stream(limits);
    struct native_rig batch = {0};
    struct tp_native_sum sum;
    bool is_known;

    for (int i = 0; i < n_batches; i++) {
        const struct tp_track track = {.index = 0,
                                       .pid = {.kind = TP_ID_NUMBER, .number = 42},
                                       .tid = {.kind = TP_ID_NUMBER,
                                               .number = n_metas > 0 ? 0 : i}};
        struct tp_event ev = event(TP_EVENT_INSTANT, 'i', NOW);

        ev.track = &track;
        native_rig_begin(&batch, 1, NULL);
        native_rig_event(&batch, &ev);
        for (int k = 0; k < n_metas; k++) {
            ev = event(TP_EVENT_META, 'M', 0);
            ev.track = &track;
            native_rig_event(&batch, &ev);
        }
        post(&s, &batch);
    }
    is_known = tp_native_tally_finish(s.tally, (uint64_t)n_batches, &sum);
    native_rig_fini(&batch);
    end_stream(&s);
    return is_known;
}

static void test_limits_of_the_whole_stream_are_left_to_the_seal(void **state)
{
    struct tp_limits limits = tp_limits_default();

    (void)state;
    limits.stream_tracks = 20;
    limits.stream_metadata_events = 20;
    assert_true(speaks_for_many(&limits, 10, 0));
    assert_false(speaks_for_many(&limits, 30, 0));
    assert_true(speaks_for_many(&limits, 10, 2));
    assert_false(speaks_for_many(&limits, 10, 3));
    limits = tp_limits_default();
    limits.stream_metadata_bytes = 2000;
    assert_true(speaks_for_many(&limits, 1, 2));
    assert_false(speaks_for_many(&limits, 2, 2));
}

static void test_each_allocation_fails(void **state)
{
    struct tp_native_clock clock = {.producer_ns = 1000, .server_ns = 2000};
    struct tp_limits limits = tp_limits_default();
    struct native_rig batch = {0};

    (void)state;
    native_rig_begin(&batch, 1, &clock);
    native_rig_slice(&batch, "kernel", "op", 0, NOW, 10);
    native_rig_end(&batch);
    for (int n = 0;; n++) {
        struct stream_rig s = new_stream(NULL);
        struct tp_native_tally *fresh = NULL;
        struct tp_native_sum sum;
        struct tp_err err;
        bool was_hit;
        int made, posted;

        s.blobs = blob_mem_new();
        fault_arm(n);
        made = tp_native_tally_new(&limits, &fresh, &err);
        posted = stream_rig_post(&s, batch.bytes.data, batch.bytes.len, &err);
        was_hit = fault_disarm();
        /* What was stored and could not be summed up is not spoken for. */
        assert_int_equal(tp_native_tally_finish(s.tally, 1, &sum),
                         posted == TP_OK && s.is_tallied);
        if (!was_hit)
            assert_true(made == TP_OK && posted == TP_OK && s.is_tallied);
        else
            assert_true(made == TP_ENOMEM || posted == TP_ENOMEM || !s.is_tallied);
        tp_native_tally_free(fresh);
        end_stream(&s);
        if (!was_hit)
            break;
    }
    native_rig_fini(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tally_says_what_the_seal_finds),
        cmocka_unit_test(test_what_the_seal_may_change_is_not_spoken_for),
        cmocka_unit_test(test_a_batch_that_was_not_seen_is_missed),
        cmocka_unit_test(test_times_out_of_range_are_left_to_the_seal),
        cmocka_unit_test(test_limits_of_the_whole_stream_are_left_to_the_seal),
        cmocka_unit_test(test_each_allocation_fails),
    };

    return cmocka_run_group_tests(tests, native_rig_set_up, native_rig_tear_down);
}
