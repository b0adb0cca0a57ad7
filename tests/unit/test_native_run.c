/*
 * A batch is found to be the same with and without runs of slices: what a check finds
 * in one go, and what it finds event by event under a filter that lets all names in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/filter.h"
#include "support/native_rig.h"
#include "trace/native_check.h"
#include "trace/pf_reader.h"
#include "trace/pf_run.h"

#define BEGIN_NS INT64_C(1795982590884123457)
#define STREAM 5
#define TRACKS 3
#ifdef TP_SANITIZED
#define ROUNDS 3000
#else
#define ROUNDS 30000
#endif

static uint64_t random_state = 1;

static unsigned random_below(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((random_state >> 33) % n);
}

/* One of few names, types and tracks; now and then something that is not for a run. */
static void add_event(struct native_rig *batch)
{
    static const char *const cats[] = {"kernel", "cpu_op", "no such type", "kernel"};
    static const char *const texts[] = {"a", "gemm_bf16_128x128", "\xc3\xbc"};
    static struct tp_track tracks[TRACKS];
    uint32_t i = random_below(TRACKS);
    const char *cat = cats[random_below(4)];
    char name[16];
    struct tp_arg args[] = {
        {.key = {"n", 1, 0}, .kind = TP_ARG_INT, .i = -(int64_t)random_below(3)},
        {.key = {"bytes", 5, 0}, .kind = TP_ARG_INT, .i = random_below(1u << 31)},
        {.key = {"text", 4, 0}, .kind = TP_ARG_STRING, .s = {texts[0], 1}}};
    struct tp_event ev = {.kind = TP_EVENT_SLICE,
                          .phase = 'X',
                          .ts_ns = BEGIN_NS + random_below(1u << 31),
                          .dur_ns = random_below(random_below(2) ? 100 : 1u << 31),
                          .track = &tracks[i],
                          .args = args};

    tracks[i] = (struct tp_track){.index = i,
                                  .pid = {TP_ID_NUMBER, 4711, {NULL, 0}},
                                  .tid = {TP_ID_NUMBER, i, {NULL, 0}}};
    snprintf(name, sizeof(name), "op %u", random_below(200));
    ev.name = (struct tp_name){name, (uint32_t)strlen(name), 0};
    ev.cat = (struct tp_name){cat, (uint32_t)strlen(cat), 0};
    ev.n_args = random_below(20) == 0 ? 3 : random_below(3);
    args[2].s.ptr = texts[random_below(3)];
    args[2].s.len = strlen(args[2].s.ptr);
    if (random_below(30) == 0) {
        ev.kind = TP_EVENT_INSTANT;
        ev.phase = 'i';
        ev.scope = 't';
        ev.dur_ns = 0;
    }
    native_rig_event(batch, &ev);
}

static void make_batch(struct native_rig *batch, unsigned n)
{
    native_rig_begin(batch, STREAM, NULL);
    for (unsigned i = 0; i < n; i++)
        add_event(batch);
    native_rig_end(batch);
}

/* What a check says. */
struct said {
    int rc;
    enum tp_native_verdict verdict;
    struct tp_native_found found;
};

/* piece  bytes that come at a time. */
static struct said judge(const struct native_rig *batch, const struct tp_filter *filter,
                         size_t piece)
{
    const struct tp_native_check_opts opts = {.stream_no = STREAM,
                                              .types = native_rig_types,
                                              .filter = filter,
                                              .life = {BEGIN_NS, BEGIN_NS + (1 << 25)}};
    struct tp_native_check *check = NULL;
    struct said said = {.verdict = TP_NATIVE_UNKNOWN};
    const size_t len = batch->bytes.len;

    assert_int_equal(tp_native_check_new(&opts, &check, NULL), TP_OK);
    for (size_t n = 0; said.rc == TP_OK && n < len;) {
        n = len - n < piece ? len : n + piece;
        said.rc =
            tp_native_check_feed(check, batch->bytes.data, n, &said.verdict, NULL);
    }
    if (said.rc == TP_OK)
        said.rc = tp_native_check_finish(check, len, &said.verdict, NULL);
    if (said.rc == TP_OK && said.verdict == TP_NATIVE_GOOD)
        said.found = *tp_native_check_found(check);
    tp_native_check_free(check);
    return said;
}

static struct tp_filter *new_filter(enum tp_filter_list list, const char *item,
                                    uint64_t min_duration_ns)
{
    const struct tp_str text = {item, strlen(item)};
    struct tp_filter_spec spec = {.min_duration_ns = min_duration_ns};
    struct tp_filter *filter;

    spec.lists[list].items = &text;
    spec.lists[list].n = 1;
    assert_int_equal(tp_filter_new(&spec, NULL, NULL, &filter, NULL, NULL), TP_OK);
    return filter;
}

static bool is_same(const struct said *a, const struct said *b)
{
    return a->rc == b->rc && a->verdict == b->verdict &&
           memcmp(&a->found, &b->found, sizeof(a->found)) == 0;
}

static void test_batches_are_the_same_in_runs(void **state)
{
    struct tp_filter *all = new_filter(TP_FILTER_NAMES_INCLUDE, "*", 0);

    (void)state;
    for (int round = 0; round < ROUNDS / 30; round++) {
        struct native_rig batch = {0};
        struct said whole, in_pieces, by_event;

        make_batch(&batch, 1 + random_below(200));
        whole = judge(&batch, NULL, batch.bytes.len);
        in_pieces = judge(&batch, NULL, 1 + random_below(2000));
        by_event = judge(&batch, all, batch.bytes.len);
        assert_int_equal(by_event.rc, TP_OK);
        assert_int_equal(by_event.verdict, TP_NATIVE_GOOD);
        assert_int_equal(by_event.found.n_events, batch.head.n_events);
        if (!is_same(&whole, &by_event) || !is_same(&in_pieces, &by_event))
            fail_msg("round %d", round);
        native_rig_fini(&batch);
    }
    tp_filter_unref(all);
}

/* Whatever bytes are changed to, and wherever. */
static void test_changed_batches_are_the_same_in_runs(void **state)
{
    struct tp_filter *all = new_filter(TP_FILTER_NAMES_INCLUDE, "*", 0);
    struct native_rig batch = {0};
    unsigned n_good = 0;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned n = 1 + random_below(3);
        struct said in_runs, by_event;
        size_t at[3];
        char was[3];

        if (round % 100 == 0)
            make_batch(&batch, 60);
        for (unsigned i = 0; i < n; i++) {
            at[i] = TP_NATIVE_HEAD_BYTES +
                    random_below((unsigned)batch.bytes.len - TP_NATIVE_HEAD_BYTES);
            was[i] = batch.bytes.data[at[i]];
            batch.bytes.data[at[i]] = random_below(2) ? (char)random_below(256)
                                                      : was[i] ^ 1 << random_below(8);
        }
        in_runs = judge(&batch, NULL, batch.bytes.len);
        by_event = judge(&batch, all, batch.bytes.len);
        if (!is_same(&in_runs, &by_event))
            fail_msg("round %d: %d %d, %d %d", round, in_runs.rc, in_runs.verdict,
                     by_event.rc, by_event.verdict);
        n_good += in_runs.rc == TP_OK && in_runs.verdict == TP_NATIVE_GOOD;
        while (n-- > 0)
            batch.bytes.data[at[n]] = was[n];
    }
    assert_in_range(n_good, ROUNDS / 100, ROUNDS - ROUNDS / 100);
    native_rig_fini(&batch);
    tp_filter_unref(all);
}

/* A slice that is too short, or of another type, is found in a run, too. */
static void test_a_run_has_only_what_the_filter_lets_in(void **state)
{
    struct tp_filter *filters[] = {new_filter(TP_FILTER_INCLUDE, "kernel", 0),
                                   new_filter(TP_FILTER_EXCLUDE, "cpu_op", 50)};
    struct native_rig batch = {0};
    struct tp_filter *brief;

    (void)state;
    native_rig_begin(&batch, STREAM, NULL);
    for (int i = 0; i < 100; i++)
        native_rig_slice(&batch, "kernel", "gemm", 0, 1000 * i, 100);
    native_rig_end(&batch);
    brief = new_filter(TP_FILTER_INCLUDE, "kernel", 100);
    assert_int_equal(judge(&batch, brief, batch.bytes.len).verdict, TP_NATIVE_GOOD);
    tp_filter_unref(brief);
    brief = new_filter(TP_FILTER_INCLUDE, "kernel", 101);
    assert_int_equal(judge(&batch, brief, batch.bytes.len).verdict, TP_NATIVE_ODD);
    tp_filter_unref(brief);
    for (size_t i = 0; i < 2; i++) {
        native_rig_begin(&batch, STREAM, NULL);
        for (int k = 0; k < 100; k++)
            native_rig_slice(&batch, i == 0 && k == 50 ? "cpu_op" : "kernel", "gemm", 0,
                             1000 * k, k == 50 ? 10 : 100);
        native_rig_end(&batch);
        assert_int_equal(judge(&batch, filters[i], batch.bytes.len).verdict,
                         TP_NATIVE_ODD);
        tp_filter_unref(filters[i]);
    }
    native_rig_fini(&batch);
}

/* Times that are no times, and a clock that the sequence is said to have. */
static void test_odd_times_are_the_same_in_runs(void **state)
{
    static const int64_t odd[] = {-1, INT64_MIN, INT64_MAX, INT64_MAX - 1000};
    static const char clock[] = {0x0a, 0x08,       0x50, STREAM, (char)0xda, 0x03,
                                 0x03, (char)0xd0, 0x03, 0x41}; /* defaults: 65 */
    struct tp_filter *all = new_filter(TP_FILTER_NAMES_INCLUDE, "*", 0);

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(odd) / sizeof(odd[0]) + 1; i++) {
        const int64_t value = odd[i / 2 % 4];
        struct native_rig batch = {0};
        struct said in_runs, by_event;

        native_rig_begin(&batch, STREAM, NULL);
        for (int k = 0; k < 50; k++) {
            bool is_odd = k == 20 && i < 8;

            if (k == 20 && i == 8)
                assert_int_equal(
                    tp_buf_append(&batch.bytes, clock, sizeof(clock), NULL), TP_OK);
            native_rig_slice(&batch, "kernel", "gemm", 0,
                             is_odd && i % 2 == 0 ? value : 2000,
                             is_odd && i % 2 != 0 ? value : 100);
        }
        native_rig_end(&batch);
        in_runs = judge(&batch, NULL, batch.bytes.len);
        by_event = judge(&batch, all, batch.bytes.len);
        if (!is_same(&in_runs, &by_event))
            fail_msg("%zu: %d %d, %d %d", i, in_runs.rc, in_runs.verdict, by_event.rc,
                     by_event.verdict);
        assert_int_equal(in_runs.found.n_events,
                         in_runs.verdict == TP_NATIVE_GOOD ? 50 : 0);
        native_rig_fini(&batch);
    }
    tp_filter_unref(all);
}

/* Else all of the above would hold for nothing. */
static void test_a_run_takes_what_a_linked_producer_writes_most(void **state)
{
    const struct tp_pf_reader_opts reader_opts = {0};
    struct tp_pf_run_opts opts = {0};
    struct tp_pf_run_slice slices[40];
    struct native_rig batch = {0};
    struct tp_pf_reader *reader;
    struct tp_pf_cursor cursor;
    enum tp_pf_item item;
    struct tp_event ev;

    (void)state;
    memset(opts.takes, 1, sizeof(opts.takes));
    native_rig_begin(&batch, STREAM, NULL);
    for (int i = 0; i < 60; i++)
        native_rig_slice(&batch, "kernel", "gemm", i % 2, 1000 * i, 100 + i);
    native_rig_end(&batch);
    assert_int_equal(tp_pf_reader_new(&reader_opts, &reader, NULL), TP_OK);
    cursor =
        (struct tp_pf_cursor){batch.bytes.data, batch.bytes.data + batch.bytes.len};
    assert_int_equal(tp_pf_reader_run(reader, &cursor, &opts, slices, 40), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tp_pf_reader_next(reader, &cursor, &item, &ev, NULL), TP_OK);
    assert_int_equal(tp_pf_reader_run(reader, &cursor, &opts, slices, 40), 40);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(slices[i].ts_ns, 1000 * (i + 2));
        assert_int_equal(slices[i].end_ns, 1000 * (i + 2) + 102 + i);
        assert_int_equal(slices[i].cat, ev.cat.iid);
    }
    memset(opts.takes, 0, sizeof(opts.takes));
    assert_int_equal(tp_pf_reader_run(reader, &cursor, &opts, slices, 40), 0);
    assert_int_equal(tp_pf_reader_next(reader, &cursor, &item, &ev, NULL), TP_OK);
    assert_int_equal(ev.ts_ns, 42000);
    tp_pf_reader_free(reader);
    native_rig_fini(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_takes_what_a_linked_producer_writes_most),
        cmocka_unit_test(test_batches_are_the_same_in_runs),
        cmocka_unit_test(test_changed_batches_are_the_same_in_runs),
        cmocka_unit_test(test_odd_times_are_the_same_in_runs),
        cmocka_unit_test(test_a_run_has_only_what_the_filter_lets_in),
    };

    return cmocka_run_group_tests(tests, native_rig_set_up, native_rig_tear_down);
}
