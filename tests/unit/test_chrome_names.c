/*
 * test_chrome_names.c - what was read before never changes what is read now.
 *
 * The reader expects keys and arrays where they stood in events before, and the writer
 * uses the numbers of their keys again. So events are read together and each by a
 * reader of its own, which expects nothing; and written together and read back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/chrome_reading.h"
#include "support/fault.h"
#include "trace/chrome_names.h"
#include "trace/packet_feed.h"
#include "trace/pf_writer.h"

#define N_EVENTS 400

static uint32_t next(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525U + 1013904223U;
    return (*seed >> 8) % n;
}

/* One argument: of few keys and values, so that most were there before. */
static void put_argument(struct tp_buf *b, uint32_t *seed)
{
    static const char *const keys[] = {"\"External id\":",
                                       "\"External id\" :",
                                       "\"External id\": ",
                                       "\"correlation\":",
                                       "\"External\\u0020id\":",
                                       "\"a key of more than twenty-nine bytes\":",
                                       "\"Input Dims\":",
                                       "\"\":",
                                       "\"k\\n\":",
                                       "\"\xc3\xa4\":"};
    static const char *const values[] = {"1",
                                         "-7",
                                         "\"text\"",
                                         "[[64,64],[]]",
                                         "[[64,65],[]]",
                                         "[ [64, 64],\n[] ]",
                                         "[[1,2,3,4,5,6,7],[1,2,3,4,5,6,7],[],[],[1]]",
                                         "[NaN]",
                                         "{\"a\":[1]}",
                                         "null",
                                         "[]"};

    assert_int_equal(tp_buf_append_str(b, keys[next(seed, 10)], NULL), TP_OK);
    assert_int_equal(tp_buf_append_str(b, values[next(seed, 11)], NULL), TP_OK);
}

static void put_event(struct tp_buf *b, uint32_t *seed)
{
    static const char *const cats[] = {"kernel", "cpu_op", "kernem"};
    uint32_t n_args = next(seed, 10) == 0 ? 20 : next(seed, 4);
    bool is_counter = next(seed, 8) == 0;

    if (is_counter)
        tp_buf_printf(b, NULL,
                      "{\"ph\":\"C\",\"name\":\"c%u\",\"pid\":%u,\"tid\":1,\"ts\":%u,"
                      "\"args\":{\"x\":%u,\"y\":2,\"z\":3}}",
                      next(seed, 3), next(seed, 40), next(seed, 100), next(seed, 9));
    if (is_counter)
        return;
    tp_buf_printf(b, NULL, "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%u,\"dur\":1,",
                  next(seed, 40), next(seed, 3), next(seed, 1000));
    if (next(seed, 5) != 0)
        tp_buf_printf(b, NULL, "\"cat\":\"%s\",\"name\":\"n%u\",", cats[next(seed, 3)],
                      next(seed, 5));
    tp_buf_append_str(b, "\"args\":{", NULL);
    for (uint32_t i = 0; i < n_args; i++) {
        if (i > 0)
            tp_buf_append_str(b, ",", NULL);
        put_argument(b, seed);
    }
    assert_int_equal(tp_buf_append_str(b, "}}", NULL), TP_OK);
}

/* N_EVENTS events as one array; lines gets what each gives alone. */
static void make(uint32_t seed, struct tp_buf *array, struct tp_buf *lines)
{
    const struct tp_chrome_reader_opts opts = {0};

    for (int i = 0; i < N_EVENTS; i++) {
        struct tp_buf alone = {0};
        struct chrome_reading one;

        tp_buf_append_str(&alone, "[", NULL);
        put_event(&alone, &seed);
        tp_buf_append_str(array, i == 0 ? "[" : ",", NULL);
        tp_buf_append(array, alone.data + 1, alone.len - 1, NULL);
        tp_buf_append_str(&alone, "]", NULL);
        one = chrome_read_pieces(&opts, alone.data, alone.len, alone.len, 1);
        assert_int_equal(one.rc, TP_OK);
        tp_buf_append_str(lines, one.text.data, NULL);
        tp_buf_fini(&one.text);
        tp_buf_fini(&alone);
    }
    tp_buf_append_str(array, "]", NULL);
    assert_int_equal(tp_buf_append(lines, "", 1, NULL), TP_OK);
}

static void test_events_read_the_same_alone_and_behind_others(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        const struct tp_chrome_reader_opts opts = {0};
        struct tp_buf array = {0};
        struct tp_buf lines = {0};
        struct chrome_reading all;

        make(seed, &array, &lines);
        all = chrome_read(&opts, array.data, array.len);
        assert_int_equal(all.rc, TP_OK);
        if (strcmp(all.text.data, lines.data) != 0)
            fail_msg("seed %u: %.*s", seed, (int)array.len, array.data);
        tp_buf_fini(&all.text);
        tp_buf_fini(&array);
        tp_buf_fini(&lines);
    }
}

struct written {
    struct tp_pf_writer *writer;
    struct tp_buf packets;
};

static int write_event(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    struct written *w = arg;
    struct tp_event copy = *ev;
    struct tp_track track = *ev->track;

    track.index++; /* 0 is not for events */
    copy.track = &track;
    return tp_pf_writer_event(w->writer, &copy, &w->packets, err);
}

static int show_packet(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    return chrome_show_event(ev, err, arg);
}

static void write_all(const struct tp_buf *array, struct written *w)
{
    struct tp_pf_writer_opts opts = {.stream_no = 1, .has_one_reader = true};
    struct tp_chrome_reader_opts reading = {.on_event = write_event, .arg = w};
    struct tp_chrome_reader *r;

    assert_int_equal(tp_pf_writer_new(&opts, &w->writer, NULL), TP_OK);
    assert_int_equal(tp_chrome_reader_new(&reading, &r, NULL), TP_OK);
    assert_int_equal(tp_chrome_reader_feed(r, array->data, array->len, NULL), TP_OK);
    assert_int_equal(tp_chrome_reader_finish(r, NULL), TP_OK);
    tp_chrome_reader_free(r);
    tp_pf_writer_free(w->writer);
}

/* Write the events of an array, read them back and compare. */
static void check_written(const struct tp_buf *array, const char *lines)
{
    struct chrome_reading back = {0};
    struct tp_packet_feed_opts opts = {.is_trusted = true,
                                       .on_event = show_packet,
                                       .arg = &back};
    struct tp_packet_feed *feed;
    struct written w = {0};

    write_all(array, &w);
    assert_int_equal(tp_packet_feed_new(&opts, &feed, NULL), TP_OK);
    assert_int_equal(tp_packet_feed(feed, w.packets.data, w.packets.len, NULL), TP_OK);
    assert_int_equal(tp_packet_feed_finish(feed, NULL), TP_OK);
    assert_int_equal(tp_buf_append(&back.text, "", 1, NULL), TP_OK);
    if (strcmp(back.text.data, lines) != 0)
        fail_msg("%.*s\ncame back as\n%s", (int)array->len, array->data,
                 back.text.data);
    tp_packet_feed_free(feed);
    tp_buf_fini(&back.text);
    tp_buf_fini(&w.packets);
}

static void test_events_are_written_with_their_own_keys(void **state)
{
    (void)state;
    for (uint32_t seed = 101; seed <= 120; seed++) {
        struct tp_buf array = {0};
        struct tp_buf lines = {0};

        make(seed, &array, &lines);
        check_written(&array, lines.data);
        tp_buf_fini(&array);
        tp_buf_fini(&lines);
    }
}

static void test_a_counter_between_does_not_change_keys(void **state)
{
    static const char slice[] = "{\"ph\":\"X\",\"cat\":\"k\",\"pid\":1,\"tid\":1,"
                                "\"ts\":1,\"dur\":1,"
                                "\"args\":{\"a\":1,\"b\":2,\"c\":3}}";
    static const char counter[] = "{\"ph\":\"C\",\"name\":\"n\",\"pid\":1,\"tid\":1,"
                                  "\"ts\":1,\"args\":{\"v\":1}}";
    static const char slice_line[] =
        "X 1000+1000 1/1 cat=\"k\" \"a\"=i1,\"b\"=i2,\"c\"=i3\n";
    static const char counter_line[] = "C 1000 1/1 name=\"n\" \"v\"=i1\n";
    struct tp_buf array = {0};
    struct tp_buf lines = {0};

    (void)state;
    /* The blanks: near the end of the text nothing is expected. */
    tp_buf_printf(&array, NULL, "[%s,%s,%s,%s,%s%40s]", slice, slice, slice, counter,
                  slice, "");
    tp_buf_printf(&lines, NULL, "%s%s%s%s%s", slice_line, slice_line, slice_line,
                  counter_line, slice_line);
    assert_int_equal(tp_buf_append(&lines, "", 1, NULL), TP_OK);
    check_written(&array, lines.data);
    tp_buf_fini(&array);
    tp_buf_fini(&lines);
}

static struct tp_name name_of(const char *text)
{
    return (struct tp_name){text, (uint32_t)strlen(text), 0};
}

static void test_equal_names_have_equal_numbers_and_long_ones_none(void **state)
{
    static struct tp_chrome_names n;
    struct tp_name a = name_of("gemm"), b = name_of("softmax"), c = name_of("gemm");
    struct tp_name absent = {0};
    char text[300];
    struct tp_name longer = {text, sizeof(text), 0};

    (void)state;
    memset(text, 'x', sizeof(text));
    tp_chrome_names_init(&n);
    assert_int_equal(tp_chrome_names_name(&n, &a, NULL), TP_OK);
    assert_int_equal(tp_chrome_names_name(&n, &b, NULL), TP_OK);
    assert_int_equal(tp_chrome_names_name(&n, &c, NULL), TP_OK);
    assert_int_equal(tp_chrome_names_name(&n, &longer, NULL), TP_OK);
    assert_int_equal(tp_chrome_names_name(&n, &absent, NULL), TP_OK);
    assert_int_not_equal(a.iid, 0);
    assert_int_not_equal(a.iid, b.iid);
    assert_int_equal(a.iid, c.iid);
    assert_int_equal(longer.iid, 0);
    assert_int_equal(absent.iid, 0);
    tp_chrome_names_reset(&n);
    c.iid = 0;
    assert_int_equal(tp_chrome_names_name(&n, &c, NULL), TP_OK);
    assert_int_equal(c.iid, 1);
    tp_chrome_names_fini(&n);
    tp_chrome_names_fini(NULL);
}

static void test_a_shape_has_a_number_while_its_keys_are_the_expected_ones(void **state)
{
    static struct tp_chrome_names n;
    struct tp_chrome_shape *shape;
    uint32_t first;

    (void)state;
    tp_chrome_names_init(&n);
    shape = tp_chrome_names_shape(&n, tp_str_of("kernel"));
    assert_ptr_equal(tp_chrome_names_shape(&n, tp_str_of("kernel")), shape);
    assert_int_equal(tp_chrome_names_number(&n, shape, false, 3), 0);
    first = tp_chrome_names_number(&n, shape, true, 3);
    assert_int_not_equal(first, 0);
    assert_int_equal(tp_chrome_names_number(&n, shape, true, 3), first);
    assert_int_not_equal(tp_chrome_names_number(&n, shape, true, 2), first);
    assert_int_equal(tp_chrome_names_number(&n, shape, false, 2), 0);
    assert_true(tp_chrome_names_number(&n, shape, true, 2) > first + 1);
    tp_chrome_names_fini(&n);
}

static void test_numbering_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int i = 0;; i++) {
        static struct tp_chrome_names n;
        struct tp_name name = name_of("gemm"), cat = name_of("kernel");
        struct tp_name key = {&"\"k\":"[1], 1, 0};
        int rc;

        memset(&n, 0, sizeof(n));
        tp_chrome_names_init(&n);
        fault_arm(i);
        rc = tp_chrome_names_name(&n, &name, NULL);
        if (rc == TP_OK)
            rc = tp_chrome_names_cat(&n, &cat, NULL);
        if (rc == TP_OK)
            rc = tp_chrome_names_key(&n, &n.shapes[0], 0, true, &key, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(key.iid, 1);
            tp_chrome_names_fini(&n);
            assert_int_equal(i, 9); /* three tables of slots, texts and bytes */
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        tp_chrome_names_fini(&n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_read_the_same_alone_and_behind_others),
        cmocka_unit_test(test_events_are_written_with_their_own_keys),
        cmocka_unit_test(test_a_counter_between_does_not_change_keys),
        cmocka_unit_test(test_equal_names_have_equal_numbers_and_long_ones_none),
        cmocka_unit_test(
            test_a_shape_has_a_number_while_its_keys_are_the_expected_ones),
        cmocka_unit_test(test_numbering_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
