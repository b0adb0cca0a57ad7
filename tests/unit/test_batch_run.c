/*
 * test_batch_run.c - the fast lane of a batch writes what the general way writes, of
 * all records that it is for, and leaves the others alone.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <traceplane/traceplane.h>

#include <cmocka.h>

#include "base/err.h"
#include "producer/batch.h"
#include "producer/batch_run.h"
#include "producer/ring.h"

#define YEAR_2026_NS UINT64_C(1767225600000000000)
#define MULT_OF_2_7_GHZ UINT64_C(1590728629)
#define N_TEXTS 300u
#define BATCHES 40
#define RECORDS 1500 /* of a batch */
#define FIELDS 6u    /* at most, of a record at random */
#define LONG_TEXT 5000u
#define MANY_TEXTS 16500u /* their numbers take three bytes */

struct record {
    uint64_t w[TP_RECORD_WORDS_MAX];
    unsigned n;
    bool is_for_run;
};

struct rig {
    struct tp_batch_writer *b;
    struct tp_ticks_line line;
    bool is_told;
    uint64_t random;
    uint32_t by_type[256];
    struct tp_batch_run run;
    uint32_t texts[N_TEXTS];
    char long_text[LONG_TEXT + 1];
    char expected[TP_BATCH_EVENT_ROOM_MAX];
    char bytes[TP_BATCH_EVENT_ROOM_MAX];
};

static struct rig rig;

static int set_up(void **state)
{
    (void)state;
    memset(&rig, 0, sizeof(rig));
    rig.random = 88172645463325252;
    rig.line = (struct tp_ticks_line){1000000, YEAR_2026_NS, MULT_OF_2_7_GHZ};
    memset(rig.long_text, 'x', LONG_TEXT);
    for (unsigned i = 0; i < N_TEXTS; i++) {
        char text[16];

        snprintf(text, sizeof(text), "text %u", i);
        rig.texts[i] = tp_intern(text);
    }
    if (tp_batch_new(&rig.b, NULL) != TP_OK)
        return -1;
    tp_batch_begin_trace(rig.b);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tp_batch_free(rig.b);
    return 0;
}

/* xorshift64: the same records in every run. */
static uint64_t next_random(void)
{
    rig.random ^= rig.random << 13;
    rig.random ^= rig.random >> 7;
    rig.random ^= rig.random << 17;
    return rig.random;
}

static uint64_t below(uint64_t n)
{
    return (next_random() >> 16) % n;
}

/* A number of any length. */
static uint64_t any_number(void)
{
    uint64_t v = next_random() >> below(64);

    return below(4) == 0 ? (uint64_t) - (int64_t)v : v;
}

static void begin(uint32_t stream_no, uint64_t tid)
{
    const struct tp_batch_thread thread = {tid, "worker", &rig.is_told};

    tp_batch_begin(rig.b, NULL, &rig.line, stream_no);
    tp_batch_set_thread(rig.b, &thread);
    memset(rig.by_type, 0, sizeof(rig.by_type));
    rig.run = (struct tp_batch_run){.stop_ticks = UINT64_MAX,
                                    .p = rig.bytes,
                                    .end = rig.bytes + sizeof(rig.bytes),
                                    .by_type = rig.by_type};
}

/* The general way. Returns how many bytes there are at `to`. */
static size_t put_general(const struct record *r, char *to)
{
    size_t room;

    assert_int_equal(tp_batch_prepare(rig.b, r->w, &room, NULL), TP_OK);
    return (size_t)(tp_batch_put(rig.b, to, r->w) - to);
}

/* What a record is when all that it needs has been said. */
static size_t put_expected(const struct record *r)
{
    put_general(r, rig.expected);
    return put_general(r, rig.expected);
}

/* Put one record into a run. Returns whether it was taken. */
static bool put_run(const struct record *r)
{
    const uint64_t *next;

    rig.run.p = rig.bytes;
    rig.run.n_events = 0;
    next = tp_batch_put_run(rig.b, &rig.run, r->w, r->w + r->n);
    assert_true(next == r->w || next == r->w + r->n);
    assert_int_equal(rig.run.n_events, next != r->w);
    assert_int_equal(rig.run.p == rig.bytes, next == r->w);
    return next != r->w;
}

static uint64_t small(uint64_t key, uint64_t v)
{
    return TP_RECORD_FIELD(key, TP_RECORD_FIELD_SMALL, v);
}

static void add_word(struct record *r, uint64_t w)
{
    r->w[r->n++] = w;
}

static void add_double(struct record *r, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    add_word(r, bits);
}

/* A text of the program, or none at all. */
static void add_text(struct record *r, const char *s)
{
    add_word(r, (uint64_t)(uintptr_t)s);
    r->is_for_run = r->is_for_run && (s == NULL || strlen(s) < 100);
}

static void add_copy(struct record *r, uint64_t key, const char *s)
{
    const size_t n_words = strlen(s) / 8 + 1;

    add_word(r, TP_RECORD_FIELD(key, TP_FIELD_COPY, n_words));
    memset(r->w + r->n, 0, n_words * 8);
    memcpy(r->w + r->n, s, strlen(s));
    r->n += (unsigned)n_words;
    r->is_for_run = r->is_for_run && strlen(s) < 100;
}

static void add_field(struct record *r)
{
    static const double doubles[] = {0, -1.5, 1e300, INFINITY, -INFINITY, NAN};
    static const size_t lengths[] = {0, 1, 7, 8, 98, 99, 100, 101};
    const uint64_t key = rig.texts[below(N_TEXTS)];
    const char *text = rig.long_text + LONG_TEXT - lengths[below(8)];

    switch (below(12)) {
    case 0:
        add_word(r, TP_RECORD_FIELD(key, TP_FIELD_INT, 0));
        add_word(r, any_number());
        break;
    case 1:
        add_word(r, TP_RECORD_FIELD(key, TP_FIELD_BOOL, 0));
        add_word(r, below(3));
        break;
    case 2:
        add_word(r, TP_RECORD_FIELD(key, TP_FIELD_DOUBLE, 0));
        add_double(r, doubles[below(6)]);
        break;
    case 3:
        add_word(r, TP_RECORD_FIELD(key, TP_FIELD_TEXT, 0));
        add_text(r, below(8) == 0 ? NULL : below(16) == 0 ? rig.long_text : text);
        break;
    case 4:
        add_copy(r, key, text);
        break;
    case 5:
        add_word(r, TP_RECORD_FIELD(key, TP_RECORD_FIELD_NONE, 0));
        add_word(r, any_number());
        break;
    default:
        add_word(r, small(key, any_number()));
    }
}

/* A slice or an instant with all that such records can have. */
static void make_record(struct record *r, uint64_t ticks)
{
    const bool is_slice = below(3) != 0;
    const unsigned n_fields = (unsigned)below(FIELDS + 1);

    r->n = 1;
    r->is_for_run = true;
    add_word(r, ticks);
    if (is_slice)
        add_word(r, next_random() >> (32 + below(32)));
    for (unsigned i = 0; i < n_fields; i++)
        add_field(r);
    r->w[0] = TP_RECORD_HEADER(is_slice ? TP_RECORD_SLICE : TP_RECORD_INSTANT,
                               below(256), n_fields, r->n, rig.texts[below(N_TEXTS)]);
}

static void make_instant(struct record *r, unsigned type, uint64_t ticks, uint32_t name)
{
    *r = (struct record){
        .w = {TP_RECORD_HEADER(TP_RECORD_INSTANT, type, 0, 2, name), ticks}, .n = 2};
}

static void expect_same(const struct record *r, size_t n, const char *what, int i)
{
    if (!put_run(r))
        fail_msg("%s %d: it was left", what, i);
    if ((size_t)(rig.run.p - rig.bytes) != n || memcmp(rig.bytes, rig.expected, n) != 0)
        fail_msg("%s %d: %zu bytes, not these %zu", what, i,
                 (size_t)(rig.run.p - rig.bytes), n);
}

static void test_records_have_the_bytes_of_the_general_way(void **state)
{
    int n_runs = 0;
    int n_left = 0;

    (void)state;
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t ticks = rig.line.ticks + (next_random() >> (8 + below(24)));

        begin(1 + (uint32_t)below(65535), 1 + (next_random() >> (32 + below(32))));
        for (int i = 0; i < RECORDS; i++) {
            struct record r;
            size_t n;

            ticks += next_random() >> (32 + below(32)); /* to several quarters */
            make_record(&r, ticks);
            n = put_expected(&r);
            if (r.is_for_run)
                expect_same(&r, n, "record", batch * RECORDS + i);
            else if (put_run(&r))
                fail_msg("record %d: its text is long", batch * RECORDS + i);
            n_runs += r.is_for_run;
            n_left += !r.is_for_run;
        }
    }
    assert_true(n_runs > 4 * n_left && n_left > 1000);
}

static void test_numbers_of_names_and_keys_may_take_three_bytes(void **state)
{
    struct record r = {.n = 3};
    uint32_t text = 0;

    (void)state;
    begin(1, 77);
    for (unsigned i = 0; i < MANY_TEXTS; i++) {
        char name[16];

        snprintf(name, sizeof(name), "many %u", i);
        text = tp_intern(name);
        r.w[0] = TP_RECORD_HEADER(TP_RECORD_INSTANT, 3, 1, 3, text);
        r.w[1] = rig.line.ticks + i;
        r.w[2] = small(text, -5);
        put_general(&r, rig.expected);
    }
    expect_same(&r, put_expected(&r), "text", (int)text);
}

static void test_what_was_not_said_in_the_batch_is_left(void **state)
{
    struct record said, other;
    bool is_told = false;
    const struct tp_batch_thread thread = {78, "another", &is_told};

    (void)state;
    make_instant(&said, 1, rig.line.ticks, rig.texts[0]);
    begin(1, 77);
    assert_false(put_run(&said));
    put_general(&said, rig.expected);
    assert_true(put_run(&said));
    make_instant(&other, 1, rig.line.ticks, rig.texts[1]);
    assert_false(put_run(&other));
    make_instant(&other, 1, rig.line.ticks, 0xffffff); /* a text that there is not */
    put_general(&other, rig.expected);
    assert_false(put_run(&other));
    make_instant(&other, 2, rig.line.ticks, rig.texts[0]);
    assert_false(put_run(&other));
    other = said;
    other.w[0] = TP_RECORD_HEADER(TP_RECORD_INSTANT, 1, 1, 3, rig.texts[0]);
    other.w[2] = small(rig.texts[0], 1);
    other.n = 3;
    assert_false(put_run(&other));
    other.w[2] = small(0xfffff, 1); /* likewise */
    put_general(&other, rig.expected);
    assert_false(put_run(&other));
    tp_batch_set_thread(rig.b, &thread);
    assert_false(put_run(&said));
    put_general(&said, rig.expected);
    assert_true(put_run(&said));
    begin(1, 77);
    assert_false(put_run(&said));
}

static void test_only_slices_and_instants_are_taken(void **state)
{
    static const uint64_t kinds[] = {TP_RECORD_MARK,        TP_RECORD_OPEN,
                                     TP_RECORD_COUNTER,     TP_RECORD_COMPLETE,
                                     TP_RECORD_COUNTER_INT, TP_RECORD_FLOW,
                                     TP_RECORD_ASYNC,       0xff};
    struct record r;

    (void)state;
    begin(1, 77);
    make_instant(&r, 1, rig.line.ticks, rig.texts[0]);
    put_general(&r, rig.expected);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct record other = {
            .w = {TP_RECORD_HEADER(kinds[i], 1, 0, 4, rig.texts[0]), r.w[1]}, .n = 4};

        if (put_run(&other))
            fail_msg("kind %u was taken", (unsigned)kinds[i]);
    }
}

/* Of no clock that is right, but none of them may be written as another time. */
static void test_times_that_do_not_take_nine_bytes_are_left(void **state)
{
    static const struct {
        uint64_t ns, ticks;
        bool is_taken;
    } times[] = {{0, 0, false},
                 {0, 1, false},
                 {UINT64_C(1) << 56, 0, true},
                 {(UINT64_C(1) << 56) - 1, 0, false},
                 {(UINT64_C(1) << 56) - 1, 1, true},
                 {(UINT64_C(1) << 63) - 1, 0, true},
                 {(UINT64_C(1) << 63) - 1, 1, false},
                 {UINT64_MAX, 0, false},
                 {YEAR_2026_NS, 0, true},
                 {YEAR_2026_NS, UINT64_MAX, false}}; /* before the line begins */

    (void)state;
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        struct record r;
        size_t n;

        rig.line = (struct tp_ticks_line){1000, times[i].ns, UINT64_C(1) << 32};
        begin(1, 77);
        make_instant(&r, 1, 1000 + times[i].ticks, rig.texts[0]);
        n = put_expected(&r);
        if (times[i].is_taken)
            expect_same(&r, n, "time", (int)i);
        else if (put_run(&r))
            fail_msg("time %zu was taken", i);
    }
}

/* Also one whose end was read before its start, on a core that is a little behind. */
static void test_slices_too_long_for_64_bits_are_left(void **state)
{
    const uint64_t limit = (UINT64_MAX >> 1) / MULT_OF_2_7_GHZ;
    const struct {
        uint64_t ticks;
        bool is_taken;
    } slices[] = {{limit, true}, {limit + 1, false}, {(uint64_t)-5, false}};

    (void)state;
    begin(1, 77);
    for (size_t i = 0; i < sizeof(slices) / sizeof(*slices); i++) {
        const struct record r = {.w = {TP_RECORD_HEADER(TP_RECORD_SLICE, 1, 0, 3,
                                                        rig.texts[0]),
                                       rig.line.ticks + 12345, slices[i].ticks},
                                 .n = 3};
        const size_t n = put_expected(&r);

        if (slices[i].is_taken)
            expect_same(&r, n, "slice", (int)i);
        else if (put_run(&r))
            fail_msg("slice %zu was taken", i);
    }
}

static void test_only_what_is_for_the_batch_is_taken(void **state)
{
    const uint64_t at = rig.line.ticks + 500;
    const struct {
        uint64_t start, stop, min;
        bool is_taken;
    } runs[] = {{at, at, 40, true},
                {at + 1, UINT64_MAX, 0, false},
                {0, at - 1, 0, false},
                {0, UINT64_MAX, 41, false}};
    const struct record r = {
        .w = {TP_RECORD_HEADER(TP_RECORD_SLICE, 1, 0, 3, rig.texts[0]), at, 40},
        .n = 3};

    (void)state;
    begin(1, 77);
    put_general(&r, rig.expected);
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
        rig.run.start_ticks = runs[i].start;
        rig.run.stop_ticks = runs[i].stop;
        rig.run.min_ticks = runs[i].min;
        if (put_run(&r) != runs[i].is_taken)
            fail_msg("run %zu is wrong", i);
    }
}

static void test_a_run_ends_before_what_it_leaves_and_is_counted(void **state)
{
    uint64_t words[14];
    struct record r;
    size_t n = 0;

    (void)state;
    begin(1, 77);
    for (uint64_t i = 0; i < 7; i++) {
        make_instant(&r, i == 1 ? 9 : 3, rig.line.ticks + i, rig.texts[i == 4]);
        memcpy(words + 2 * i, r.w, 16);
        if (i < 2)
            put_general(&r, rig.expected);
    }
    for (uint64_t i = 0; i < 4; i++) {
        memcpy(r.w, words + 2 * i, 16);
        n += put_general(&r, rig.expected + n);
    }
    rig.run.n_events = 100;
    assert_ptr_equal(tp_batch_put_run(rig.b, &rig.run, words, words + 14), words + 8);
    assert_int_equal(rig.run.n_events, 104);
    assert_int_equal(rig.by_type[3], 3);
    assert_int_equal(rig.by_type[9], 1);
    assert_int_equal(rig.run.p - rig.bytes, n);
    assert_memory_equal(rig.bytes, rig.expected, n);
    assert_ptr_equal(tp_batch_put_run(rig.b, &rig.run, words + 10, words + 12),
                     words + 12);
}

static void test_nothing_is_written_behind_the_room_for_a_batch(void **state)
{
    struct record r = {.n = 3, .is_for_run = true};
    size_t n;

    (void)state;
    begin(65535, UINT32_MAX);
    for (unsigned i = 0; i < TP_FIELDS_MAX; i++) {
        add_word(&r, TP_RECORD_FIELD(rig.texts[i], TP_FIELD_TEXT, 0));
        add_text(&r, rig.long_text + LONG_TEXT - 99);
    }
    r.w[0] = TP_RECORD_HEADER(TP_RECORD_SLICE, 255, TP_FIELDS_MAX, r.n, rig.texts[0]);
    r.w[1] = rig.line.ticks;
    r.w[2] = UINT32_MAX;
    n = put_expected(&r);
    expect_same(&r, n, "the largest, of words", (int)r.n);
    memset(rig.bytes, 'z', sizeof(rig.bytes));
    rig.run.end = rig.bytes + TP_BATCH_RUN_ROOM;
    assert_true(put_run(&r));
    assert_true(rig.bytes[n - 1] != 'z');
    for (size_t i = n + 16; i < sizeof(rig.bytes); i++)
        assert_int_equal(rig.bytes[i], 'z');
    rig.run.end--;
    assert_false(put_run(&r));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_records_have_the_bytes_of_the_general_way),
        TEST(test_numbers_of_names_and_keys_may_take_three_bytes),
        TEST(test_what_was_not_said_in_the_batch_is_left),
        TEST(test_only_slices_and_instants_are_taken),
        TEST(test_times_that_do_not_take_nine_bytes_are_left),
        TEST(test_slices_too_long_for_64_bits_are_left),
        TEST(test_only_what_is_for_the_batch_is_taken),
        TEST(test_a_run_ends_before_what_it_leaves_and_is_counted),
        TEST(test_nothing_is_written_behind_the_room_for_a_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
