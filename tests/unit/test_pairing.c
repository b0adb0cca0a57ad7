/*
 * test_pairing.c - begins and ends become slices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/pairing.h"

/* A line for each event that comes out: "X outer 1+3 a=1 b=2; ". */
struct log {
    char text[2048];
    size_t n;
    int answer; /* of the callback */
};

static struct tp_track tracks[32];

static const struct tp_track *track_of(uint32_t index, void *arg)
{
    (void)arg;
    tracks[index].index = index;
    return &tracks[index];
}

static int on_event(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    struct log *log = arg;

    log->n += (size_t)snprintf(log->text + log->n, sizeof(log->text) - log->n,
                               "%c%u %.*s %lld+%lld%s", "XBEIC"[ev->kind],
                               ev -> track -> index, (int)ev -> name.len, ev->name.ptr,
                               (long long)ev->ts_ns, (long long)ev->dur_ns,
                               ev->is_unfinished ? "?" : "");
    for (uint32_t i = 0; i < ev->n_args; i++)
        log->n += (size_t)snprintf(log->text + log->n, sizeof(log->text) - log->n,
                                   " %.*s=%lld", (int)ev->args[i].key.len,
                                   ev->args[i].key.ptr, (long long)ev->args[i].i);
    log->n += (size_t)snprintf(log->text + log->n, sizeof(log->text) - log->n, "; ");
    return log->answer == 0 ? TP_OK : tp_fail(err, log->answer, "the sink is full");
}

struct fixture {
    struct tp_rec_names names;
    struct log log;
    struct tp_pairing *p;
};

static int set_up(struct fixture *f, uint64_t open_max, size_t open_bytes,
                  struct tp_err *err)
{
    struct tp_pairing_opts opts = {.tracks_max = 32,
                                   .open_max = open_max,
                                   .open_bytes = open_bytes,
                                   .args_max = 3,
                                   .names = &f->names,
                                   .track_of = track_of,
                                   .on_event = on_event,
                                   .arg = &f->log};

    *f = (struct fixture){.names = {.bytes_max = 1000, .names_max = 100}};
    return tp_pairing_new(&opts, &f->p, err);
}

static void tear_down(struct fixture *f)
{
    tp_pairing_free(f->p);
    tp_rec_names_fini(&f->names);
}

/* Feed an event: kind B, G (ghost) or E, with an argument when key is not NULL. */
static int feed(struct fixture *f, char kind, uint32_t track, const char *name,
                int64_t ts, const char *key, struct tp_err *err)
{
    struct tp_arg args[2] = {{.kind = TP_ARG_INT}, {.kind = TP_ARG_INT}};
    struct tp_event ev = {.kind = kind == 'E' ? TP_EVENT_END : TP_EVENT_BEGIN,
                          .phase = kind == 'E' ? 'E' : 'B',
                          .ts_ns = ts,
                          .track = track_of(track, NULL),
                          .args = args};

    if (name != NULL)
        ev.name = (struct tp_name){name, (uint32_t)strlen(name), 0};
    for (; key != NULL && key[ev.n_args] != '\0'; ev.n_args++) {
        args[ev.n_args].key = (struct tp_name){key + ev.n_args, 1, 0};
        args[ev.n_args].i = ts;
    }
    if (kind == 'G')
        return tp_pairing_ghost(f->p, &ev, err);
    if (kind == 'B')
        return tp_pairing_begin(f->p, &ev, err);
    return tp_pairing_end(f->p, &ev, err);
}

static void must(int rc)
{
    assert_int_equal(rc, TP_OK);
}

static void test_an_end_ends_the_innermost_begin_of_its_track(void **state)
{
    struct fixture f;
    struct tp_err err;

    (void)state;
    must(set_up(&f, 0, 0, &err));
    must(feed(&f, 'B', 1, "outer", 1, NULL, &err));
    must(feed(&f, 'B', 2, "other", 2, NULL, &err));
    must(feed(&f, 'B', 1, "inner", 3, NULL, &err));
    must(feed(&f, 'E', 1, NULL, 4, NULL, &err));
    must(feed(&f, 'E', 1, NULL, 5, NULL, &err));
    must(feed(&f, 'E', 2, NULL, 9, NULL, &err));
    assert_string_equal(f.log.text, "X1 inner 3+1; X1 outer 1+4; X2 other 2+7; ");
    assert_int_equal(tp_pairing_stats(f.p).pairs, 3);
    tear_down(&f);
}

static void test_arguments_of_the_end_follow_those_of_the_begin(void **state)
{
    struct fixture f;
    struct tp_err err;

    (void)state;
    must(set_up(&f, 0, 0, &err));
    must(feed(&f, 'B', 1, "k", 1, "ab", &err));
    must(feed(&f, 'E', 1, NULL, 4, "cd", &err));
    assert_string_equal(f.log.text, "X1 k 1+3 a=1 b=1 c=4; ");
    assert_int_equal(tp_pairing_stats(f.p).args_dropped, 1); /* over args_max */
    tear_down(&f);
}

static void test_a_lone_end_is_counted(void **state)
{
    struct fixture f;
    struct tp_err err;

    (void)state;
    must(set_up(&f, 0, 0, &err));
    must(feed(&f, 'E', 31, NULL, 4, NULL, &err));
    must(feed(&f, 'B', 0, "k", 5, NULL, &err));
    must(feed(&f, 'E', 0, NULL, 6, NULL, &err));
    must(feed(&f, 'E', 0, NULL, 7, NULL, &err));
    assert_int_equal(tp_pairing_stats(f.p).unmatched_ends, 2);
    assert_string_equal(f.log.text, "X0 k 5+1; ");
    tear_down(&f);
}

static void test_a_begin_without_an_end_is_kept_and_marked(void **state)
{
    struct fixture f;
    struct tp_err err;

    (void)state;
    must(set_up(&f, 0, 0, &err));
    must(feed(&f, 'B', 1, "first", 1, NULL, &err));
    must(feed(&f, 'B', 0, "second", 2, "a", &err));
    must(tp_pairing_finish(f.p, &err));
    assert_string_equal(f.log.text, "B1 first 1+0?; B0 second 2+0? a=2; ");
    assert_int_equal(tp_pairing_stats(f.p).unfinished, 2);
    tear_down(&f);
}

static void test_a_ghost_takes_its_end_with_it(void **state)
{
    struct fixture f;
    struct tp_err err;

    (void)state;
    must(set_up(&f, 0, 0, &err));
    must(feed(&f, 'B', 1, "kept", 1, NULL, &err));
    must(feed(&f, 'G', 1, NULL, 2, NULL, &err));
    must(feed(&f, 'E', 1, NULL, 3, NULL, &err));
    must(feed(&f, 'E', 1, NULL, 4, NULL, &err));
    must(feed(&f, 'G', 1, NULL, 5, NULL, &err));
    must(tp_pairing_finish(f.p, &err));
    assert_string_equal(f.log.text, "X1 kept 1+3; ");
    assert_int_equal(tp_pairing_stats(f.p).ghost_ends, 1);
    assert_int_equal(tp_pairing_stats(f.p).unfinished, 0);
    tear_down(&f);
}

static void test_an_end_before_its_begin_makes_no_negative_slice(void **state)
{
    struct fixture f;
    struct tp_err err;

    (void)state;
    must(set_up(&f, 0, 0, &err));
    must(feed(&f, 'B', 1, "k", 10, NULL, &err));
    must(feed(&f, 'E', 1, NULL, 4, NULL, &err));
    must(feed(&f, 'B', 1, "l", INT64_MIN, NULL, &err));
    must(feed(&f, 'E', 1, NULL, INT64_MAX, NULL, &err));
    assert_string_equal(f.log.text,
                        "X1 k 10+0; X1 l -9223372036854775808+9223372036854775807; ");
    assert_int_equal(tp_pairing_stats(f.p).negative, 1);
    tear_down(&f);
}

static void test_over_the_bound_the_oldest_leaves(void **state)
{
    static const struct {
        uint64_t open_max;
        size_t open_bytes;
    } bounds[] = {{3, 0}, {0, 500}};

    (void)state;
    for (int b = 0; b < 2; b++) {
        struct fixture f;
        struct tp_err err;

        must(set_up(&f, bounds[b].open_max, bounds[b].open_bytes, &err));
        for (int i = 0; i < 100; i++)
            must(
                feed(&f, i % 3 == 0 ? 'G' : 'B', (uint32_t)i % 32, "k", i, NULL, &err));
        assert_memory_equal(f.log.text, "B1 k 1+0?; B2 k 2+0?; ", 22);
        assert_true(tp_pairing_stats(f.p).evicted > 50);
        assert_int_equal(tp_pairing_stats(f.p).evicted,
                         tp_pairing_stats(f.p).unfinished);
        must(feed(&f, 'E', 99 % 32, NULL, 200, NULL, &err));
        tear_down(&f);
    }
}

static void test_a_track_over_the_limit_is_refused(void **state)
{
    struct tp_track far = {.index = 32};
    struct tp_event ev = {.kind = TP_EVENT_BEGIN, .track = &far};
    struct fixture f;
    struct tp_err err;

    (void)state;
    must(set_up(&f, 0, 0, &err));
    assert_int_equal(tp_pairing_begin(f.p, &ev, &err), TP_EQUOTA);
    assert_int_equal(tp_pairing_ghost(f.p, &ev, &err), TP_EQUOTA);
    must(tp_pairing_end(f.p, &ev, &err));
    must(tp_pairing_finish(f.p, &err));
    assert_int_equal(f.log.n, 0);
    tear_down(&f);
}

static void test_what_the_sink_says_is_passed_on(void **state)
{
    struct fixture f;
    struct tp_err err;

    (void)state;
    must(set_up(&f, 0, 0, &err));
    f.log.answer = TP_EIO;
    must(feed(&f, 'B', 1, "k", 1, NULL, &err));
    assert_int_equal(feed(&f, 'E', 1, NULL, 2, NULL, &err), TP_EIO);
    must(feed(&f, 'B', 1, "l", 3, NULL, &err));
    assert_int_equal(tp_pairing_finish(f.p, &err), TP_EIO);
    assert_string_equal(err.message, "the sink is full");
    tear_down(&f);
}

static void test_pairing_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct fixture f;
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = set_up(&f, 0, 0, &err);
        for (uint32_t i = 0; rc == TP_OK && i < 30; i++)
            rc = feed(&f, "BG"[i & 1], i, "k", 1, "a", &err);
        for (uint32_t i = 0; rc == TP_OK && i < 29; i++)
            rc = feed(&f, 'E', i, NULL, 1, "b", &err);
        if (rc == TP_OK)
            rc = feed(&f, 'B', 1, "last", 1, "a", &err);
        if (rc == TP_OK)
            rc = tp_pairing_finish(f.p, &err);
        tear_down(&f);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_end_ends_the_innermost_begin_of_its_track),
        cmocka_unit_test(test_arguments_of_the_end_follow_those_of_the_begin),
        cmocka_unit_test(test_a_lone_end_is_counted),
        cmocka_unit_test(test_a_begin_without_an_end_is_kept_and_marked),
        cmocka_unit_test(test_a_ghost_takes_its_end_with_it),
        cmocka_unit_test(test_an_end_before_its_begin_makes_no_negative_slice),
        cmocka_unit_test(test_over_the_bound_the_oldest_leaves),
        cmocka_unit_test(test_a_track_over_the_limit_is_refused),
        cmocka_unit_test(test_what_the_sink_says_is_passed_on),
        cmocka_unit_test(test_pairing_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
