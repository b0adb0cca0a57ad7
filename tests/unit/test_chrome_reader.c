/*
 * test_chrome_reader.c - what goes in as Chrome JSON comes out as events.
 *
 * Every text is read in one piece, byte by byte, in pieces of 2, 3, 7 and 16 bytes and,
 * when it is short, cut in two at each place: the answers must be the same. Each piece
 * is a heap block of its own, so that a sanitizer sees a read past its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json_string.h"
#include "support/fault.h"
#include "trace/chrome_reader.h"

/* --- reading and showing ---------------------------------------------------------- */

struct reading {
    int rc;
    struct tp_err err;
    struct tp_chrome_stats stats;
    struct tp_buf text; /* a line for each event and member */
};

static void put(struct tp_buf *b, const char *s)
{
    assert_int_equal(tp_buf_append_str(b, s, NULL), TP_OK);
}

static void put_text(struct tp_buf *b, struct tp_str s)
{
    assert_int_equal(tp_buf_reserve(b, TP_JSON_WRITE_BYTES(s.len), NULL), TP_OK);
    b->len += tp_json_string_write(s, b->data + b->len);
}

static void put_name(struct tp_buf *b, const char *label, const struct tp_name *name)
{
    if (name->ptr == NULL)
        return;
    put(b, label);
    put_text(b, (struct tp_str){name->ptr, name->len});
}

static void put_id(struct tp_buf *b, const struct tp_id *id)
{
    if (id->kind == TP_ID_NUMBER)
        tp_buf_printf(b, NULL, "%lld", (long long)id->number);
    else if (id->kind == TP_ID_TEXT)
        put_text(b, id->text);
    else
        put(b, "-");
}

static void put_arg(struct tp_buf *b, const struct tp_arg *arg)
{
    put_text(b, (struct tp_str){arg->key.ptr, arg->key.len});
    switch (arg->kind) {
    case TP_ARG_INT:
        tp_buf_printf(b, NULL, "=i%lld", (long long)arg->i);
        break;
    case TP_ARG_UINT:
        tp_buf_printf(b, NULL, "=u%llu", (unsigned long long)arg->u);
        break;
    case TP_ARG_DOUBLE:
        tp_buf_printf(b, NULL, "=d%.17g", arg->d);
        break;
    case TP_ARG_BOOL:
        put(b, arg->b ? "=true" : "=false");
        break;
    case TP_ARG_STRING:
        put(b, "=s");
        put_text(b, arg->s);
        break;
    case TP_ARG_JSON:
        tp_buf_printf(b, NULL, "=j%.*s", (int)arg->s.len, arg->s.ptr);
        break;
    }
}

/* "X 12500+3000 1/2 name="k" cat="c" id=5 scope=g bp a=i1,b=s"x" extra=..." */
static int show_event(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    struct tp_buf *b = &((struct reading *)arg)->text;

    (void)err;
    tp_buf_printf(b, NULL, "%c%s %lld", ev->phase,
                  ev->kind == TP_EVENT_OTHER ? "?" : "", (long long)ev->ts_ns);
    if (ev->kind == TP_EVENT_SLICE)
        tp_buf_printf(b, NULL, "+%lld", (long long)ev->dur_ns);
    put(b, " ");
    put_id(b, &ev->track->pid);
    put(b, "/");
    put_id(b, &ev->track->tid);
    put_name(b, " name=", &ev->name);
    put_name(b, " cat=", &ev->cat);
    if (ev->id.kind != TP_ID_NONE) {
        put(b, " id=");
        put_id(b, &ev->id);
    }
    if (ev->scope != '\0')
        tp_buf_printf(b, NULL, " scope=%c", ev->scope);
    if (ev->binds_enclosing)
        put(b, " bp");
    for (uint32_t i = 0; i < ev->n_args; i++) {
        put(b, i == 0 ? " " : ",");
        put_arg(b, &ev->args[i]);
    }
    if (ev->extra.len > 0)
        tp_buf_printf(b, NULL, " extra=%.*s", (int)ev->extra.len, ev->extra.ptr);
    put(b, "\n");
    return TP_OK;
}

static int show_member(struct tp_str key, struct tp_str json, struct tp_err *err,
                       void *arg)
{
    struct tp_buf *b = &((struct reading *)arg)->text;

    (void)err;
    put(b, "# ");
    put_text(b, key);
    tp_buf_printf(b, NULL, ": %.*s\n", (int)json.len, json.ptr);
    return TP_OK;
}

/* Feed n bytes as a heap block of exactly that size. */
static int feed_copy(struct tp_chrome_reader *r, const char *p, size_t n,
                     struct tp_err *err)
{
    char *copy = malloc(n == 0 ? 1 : n);
    int rc;

    assert_non_null(copy);
    memcpy(copy, p, n);
    rc = tp_chrome_reader_feed(r, copy, n, err);
    free(copy);
    return rc;
}

/* Read the text, the first piece `first` bytes long, the others `piece` bytes. */
static struct reading read_pieces(const struct tp_chrome_reader_opts *opts,
                                  const char *p, size_t n, size_t first, size_t piece)
{
    struct tp_chrome_reader_opts o = *opts;
    struct reading reading = {0};
    struct tp_chrome_reader *r;
    size_t done = 0;

    o.on_event = show_event;
    o.on_member = show_member;
    o.arg = &reading;
    assert_int_equal(tp_chrome_reader_new(&o, &r, NULL), TP_OK);
    while (done < n && reading.rc == TP_OK) {
        const size_t want = done == 0 ? first : piece;
        const size_t take = want < n - done ? want : n - done;

        reading.rc = feed_copy(r, p + done, take, &reading.err);
        done += take;
    }
    if (reading.rc == TP_OK)
        reading.rc = tp_chrome_reader_finish(r, &reading.err);
    reading.stats = *tp_chrome_reader_stats(r);
    if (reading.rc != TP_OK) {
        struct tp_err again = {0};

        assert_int_equal(tp_chrome_reader_feed(r, "[]", 2, &again), reading.rc);
        assert_string_equal(again.message, reading.err.message);
    }
    tp_chrome_reader_free(r);
    put(&reading.text, "");
    assert_int_equal(tp_buf_append(&reading.text, "", 1, NULL), TP_OK);
    return reading;
}

static void check_same(const struct reading *a, const struct reading *b,
                       const char *input, size_t n, size_t first, size_t piece)
{
    if (a->rc == b->rc && strcmp(a->text.data, b->text.data) == 0 &&
        strcmp(a->err.message, b->err.message) == 0 &&
        memcmp(&a->stats, &b->stats, sizeof(a->stats)) == 0)
        return;
    fail_msg("%.*s\nin pieces of %zu, %zu bytes gives\n%s(%d %s)\nand not\n%s(%d %s)",
             (int)(n < 500 ? n : 500), input, first, piece, b->text.data, b->rc,
             b->err.message, a->text.data, a->rc, a->err.message);
}

/* Read the text in all manners and check that they agree. */
static struct reading read_text(const struct tp_chrome_reader_opts *opts, const char *p,
                                size_t n)
{
    static const size_t pieces[] = {1, 2, 3, 7, 16};
    struct reading whole = read_pieces(opts, p, n, n == 0 ? 1 : n, 1);

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct reading other = read_pieces(opts, p, n, pieces[i], pieces[i]);

        check_same(&whole, &other, p, n, pieces[i], pieces[i]);
        tp_buf_fini(&other.text);
    }
    for (size_t first = 1; first < n && n < 400; first++) {
        struct reading other = read_pieces(opts, p, n, first, n);

        check_same(&whole, &other, p, n, first, n);
        tp_buf_fini(&other.text);
    }
    return whole;
}

static struct reading expect_with(const struct tp_chrome_reader_opts *opts,
                                  const char *p, size_t n, const char *expected)
{
    struct reading got = read_text(opts, p, n);

    if (got.rc != TP_OK)
        fail_msg("%s\nis refused: %s", p, got.err.message);
    if (strcmp(got.text.data, expected) != 0)
        fail_msg("%s\ngives\n%s\nand not\n%s", p, got.text.data, expected);
    tp_buf_fini(&got.text);
    return got;
}

/* The text is accepted and gives these lines. */
static struct reading expect(const char *text, const char *expected)
{
    const struct tp_chrome_reader_opts opts = {0};

    return expect_with(&opts, text, strlen(text), expected);
}

static struct reading expect_salvaged(const char *text, const char *expected)
{
    const struct tp_chrome_reader_opts opts = {.salvage = true};

    return expect_with(&opts, text, strlen(text), expected);
}

static struct reading expect_lines(const char *text, const char *expected)
{
    const struct tp_chrome_reader_opts opts = {.form = TP_CHROME_NDJSON};

    return expect_with(&opts, text, strlen(text), expected);
}

static void refuse_with(const struct tp_chrome_reader_opts *opts, const char *text,
                        const char *message, const char *before)
{
    struct reading got = read_text(opts, text, strlen(text));

    if (got.rc != TP_EINVAL || strcmp(got.err.message, message) != 0)
        fail_msg("%s\nends with %d (%s) and not with: %s", text, got.rc,
                 got.err.message, message);
    assert_string_equal(got.text.data, before);
    tp_buf_fini(&got.text);
}

/* The text is refused with this message, after these lines. */
static void refuse(const char *text, const char *message, const char *before)
{
    const struct tp_chrome_reader_opts opts = {0};

    refuse_with(&opts, text, message, before);
}

/* One event of an array that is rejected for this reason. */
static void reject(const char *event, const char *why)
{
    const struct tp_chrome_reader_opts opts = {0};
    char text[1024];
    struct reading got;

    snprintf(text, sizeof(text), "[%s]", event);
    got = read_text(&opts, text, strlen(text));
    assert_int_equal(got.rc, TP_OK);
    assert_string_equal(got.text.data, "");
    if (strcmp(got.stats.last_rejection, why) != 0)
        fail_msg("%s is rejected because '%s'", event, got.stats.last_rejection);
    assert_int_equal(got.stats.events, 1);
    assert_int_equal(got.stats.rejected, 1);
    tp_buf_fini(&got.text);
}

/* --- documents -------------------------------------------------------------------- */

#define A "{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":1,\"dur\":2}"
#define B "{\"ph\":\"X\",\"name\":\"b\",\"pid\":1,\"tid\":2,\"ts\":4,\"dur\":2}"
#define A_OUT "X 1000+2000 1/2 name=\"a\"\n"
#define B_OUT "X 4000+2000 1/2 name=\"b\"\n"

static void test_object_and_array_give_their_events(void **state)
{
    (void)state;
    expect("{\"traceEvents\":[" A "," B "]}", A_OUT B_OUT);
    expect("[" A "," B "]", A_OUT B_OUT);
    expect(" \r\n\t[ " A " ,\n" B "\t] \n", A_OUT B_OUT);
    expect("[]", "");
    expect("{}", "");
    expect("{\"traceEvents\":[]}", "");
    expect("{\"traceEvents\":null}", "");
}

static void test_sloppy_arrays_are_taken(void **state)
{
    (void)state;
    expect("[" A "," B ",", A_OUT B_OUT);
    expect("[" A "," B, A_OUT B_OUT);
    expect("[", "");
    expect("[" A ",]", A_OUT);
    expect("[," A ",," B "]", A_OUT B_OUT);
    expect("{,\"traceEvents\":[" A ",],}", A_OUT);
    expect("\xef\xbb\xbf[" A "]", A_OUT);
    expect("\xef\xbb\xbf {\"traceEvents\":[" A "]}", A_OUT);
}

static void test_members_around_the_events_are_handed_over(void **state)
{
    (void)state;
    expect("{\"schemaVersion\":1,\"d\":{\"rank\": 0},\"traceEvents\":[" A "],"
           "\"s\":\"x\\n\",\"t\":true,\"z\":null,\"f\":1.50,\"traceName\":\"q\"}",
           "# \"schemaVersion\": 1\n# \"d\": {\"rank\": 0}\n" A_OUT
           "# \"s\": \"x\\n\"\n# \"t\": true\n# \"z\": null\n# \"f\": 1.50\n"
           "# \"traceName\": \"q\"\n");
    expect("{\"a\\u0062\\n\":[\n1,\t{\"k\" : [ ] }\n,NaN,]}",
           "# \"ab\\n\": [1,{\"k\":[]},\"NaN\"]\n");
    expect("{\"x\":-Infinity,\"y\":\"\xff\",\"w\":nan }",
           "# \"x\": \"-Infinity\"\n# \"y\": \"\xef\xbf\xbd\"\n# \"w\": \"NaN\"\n");
}

static void test_events_are_only_those_of_the_top_level(void **state)
{
    (void)state;
    expect("{\"metadata\":{\"traceEvents\":[" A "]},\"traceEvents\":[" B "]}",
           "# \"metadata\": {\"traceEvents\":[" A "]}\n" B_OUT);
    expect("{\"traceEvent\\u0073\":[" A "]}", A_OUT);
}

static void test_a_lone_event_object_is_one_event(void **state)
{
    (void)state;
    expect(A, A_OUT);
    expect(" { \"name\":\"a\" , \"tid\":2,\"pid\":1,\"dur\":2,\"ts\":1,\"ph\":\"X\"}\n",
           A_OUT);
    /* A trace whose metadata starts like an event is a trace. */
    expect("{\"name\":\"n\",\"traceEvents\":[" A "]}", "# \"name\": \"n\"\n" A_OUT);
    expect("{\"name\":\"n\",\"id\":7}", "# \"name\": \"n\"\n# \"id\": 7\n");
    expect("{\"args\":{\"k\":[1,2]},\"x\":1}",
           "# \"args\": {\"k\":[1,2]}\n# \"x\": 1\n");
    refuse("{\"name\":\"n\",\"ph\":\"X\"",
           "byte 20: the input ends inside a value that "
           "starts at byte 20",
           "# \"name\": \"n\"\n# \"ph\": \"X\"\n");
}

static void test_large_lone_object_is_a_trace(void **state)
{
    const struct tp_chrome_reader_opts opts = {.event_bytes = 200};

    (void)state;
    expect_with(&opts, "{\"name\":\"n\",\"traceEvents\":[" A "," A "," A "," A "]}",
                strlen("{\"name\":\"n\",\"traceEvents\":[" A "," A "," A "," A "]}"),
                "# \"name\": \"n\"\n" A_OUT A_OUT A_OUT A_OUT);
}

static void test_base_before_the_events_is_added(void **state)
{
    struct reading got;

    (void)state;
    got = expect("{\"baseTimeNanoseconds\":1790857026000000000,\"traceEvents\":[{"
                 "\"ph\":\"i\",\"ts\":5125564901937.794},{\"ph\":\"M\"}]}",
                 "# \"baseTimeNanoseconds\": 1790857026000000000\n"
                 "i 1795982590901937794 -/-\nM 0 -/-\n");
    assert_true(got.stats.has_base && got.stats.base_was_added);
    assert_int_equal(got.stats.base_ns, 1790857026000000000);
    got = expect("{\"baseTimeNanoseconds\":\"17e1\",\"traceEvents\":[{\"ph\":\"i\","
                 "\"ts\":-1}]}",
                 "# \"baseTimeNanoseconds\": \"17e1\"\ni -830 -/-\n");
    assert_int_equal(got.stats.base_ns, 170);
}

static void test_base_behind_events_is_only_reported(void **state)
{
    struct reading got;

    (void)state;
    got =
        expect("{\"traceEvents\":[{\"ph\":\"i\",\"ts\":1}],\"baseTimeNanoseconds\":7}",
               "i 1000 -/-\n# \"baseTimeNanoseconds\": 7\n");
    assert_true(got.stats.has_base);
    assert_false(got.stats.base_was_added);
    assert_int_equal(got.stats.base_ns, 7);
    /* Also when more events follow: one input is on one clock. */
    got = expect("{\"traceEvents\":[{\"ph\":\"i\",\"ts\":1}],\"baseTimeNanoseconds\":7,"
                 "\"traceEvents\":[{\"ph\":\"i\",\"ts\":2}]}",
                 "i 1000 -/-\n# \"baseTimeNanoseconds\": 7\ni 2000 -/-\n");
    assert_false(got.stats.base_was_added);
}

static void test_base_that_is_no_number_is_none(void **state)
{
    struct reading got;

    (void)state;
    got = expect("{\"baseTimeNanoseconds\":\"soon\",\"traceEvents\":[]}",
                 "# \"baseTimeNanoseconds\": \"soon\"\n");
    assert_false(got.stats.has_base);
    got = expect("{\"baseTimeNanoseconds\":1e30,\"traceEvents\":[]}",
                 "# \"baseTimeNanoseconds\": 1e30\n");
    assert_false(got.stats.has_base);
}

static void test_base_that_does_not_fit_rejects_the_event(void **state)
{
    struct reading got;

    (void)state;
    got = expect("{\"baseTimeNanoseconds\":9223372036854775807,\"traceEvents\":[{"
                 "\"ph\":\"i\",\"ts\":1},{\"ph\":\"i\",\"ts\":0}]}",
                 "# \"baseTimeNanoseconds\": 9223372036854775807\n"
                 "i 9223372036854775807 -/-\n");
    assert_int_equal(got.stats.rejected, 1);
    assert_string_equal(
        got.stats.last_rejection,
        "byte 58: ts and baseTimeNanoseconds together do not fit 64 bits "
        "of nanoseconds");
}

static void test_what_is_no_trace_is_refused(void **state)
{
    (void)state;
    refuse("", "the input is empty", "");
    refuse(" \n", "the input is empty", "");
    refuse("12", "byte 0: a JSON object or array was expected", "");
    refuse("\xef\xbb[]", "byte 2: a JSON object or array was expected", "");
    refuse("[" A "] [" A "]", "byte 55: nothing was expected behind the trace", A_OUT);
    refuse("{}x", "byte 2: nothing was expected behind the trace", "");
    refuse("[" A B "]", "byte 53: ',' or ']' was expected", A_OUT);
    refuse("{\"traceEvents\":{}}", "byte 15: traceEvents is not an array", "");
    refuse("{\"traceEvents\":[" A "]",
           "byte 69: the input ends inside a value that "
           "starts at byte 69",
           A_OUT);
    refuse("{\"traceEvents\":[" A ",",
           "byte 69: the input ends inside a value that "
           "starts at byte 69",
           A_OUT);
    refuse("{\"k\" 1}", "byte 5: ':' was expected", "");
    refuse("{k:1}", "byte 1: a key in quotes was expected", "");
    refuse("{\"k\":1 \"l\":2}", "byte 7: ',' or '}' was expected", "# \"k\": 1\n");
    refuse("{\"k\":\"quo\"te\"}", "byte 10: ',' or '}' was expected",
           "# \"k\": \"quo\"\n");
}

static void test_damaged_events_are_refused_with_the_offset(void **state)
{
    (void)state;
    refuse("[" A ",{\"ph\":\"X\",\"ts\":01}]",
           "byte 70: a number must not start with 0", A_OUT);
    refuse("[{\"ph\":1.}]", "byte 9: a digit must follow the point", "");
    refuse("[{\"ph\":1e}]", "byte 9: a digit must follow the exponent sign", "");
    refuse("[{\"ph\":-}]", "byte 7: a value was expected", "");
    refuse("[{\"ph\":tru}]", "byte 7: a value was expected", "");
    refuse("[{\"ph\" \"X\"}]", "byte 7: ':' was expected", "");
    refuse("[{\"ph\":\"X\";}]", "byte 10: ',' or '}' was expected", "");
    refuse("[{ph:1}]", "byte 2: a key in quotes was expected", "");
    refuse("[{\"args\":{\"k\":[1}}]", "byte 16: ',' or ']' was expected", "");
    refuse("[{\"args\":{\"k\":{1}}}]", "byte 15: a key in quotes was expected", "");
    refuse("[{\"args\":{\"k\":1]}]", "byte 15: ',' or '}' was expected", "");
    refuse("[nul]", "byte 1: a value was expected", "");
    refuse("[{\"ph\":\"X",
           "byte 9: the input ends inside a value that starts at byte 1", "");
}

/* --- members of events ------------------------------------------------------------ */

static void test_times_are_exact_nanoseconds(void **state)
{
    static const struct {
        const char *ts;
        const char *ns;
    } cases[] = {
        {"0", "0"},
        {"-0", "0"},
        {"1795982590884123.457", "1795982590884123457"},
        {"9223372036854775.807", "9223372036854775807"},
        {"-9223372036854775.808", "-9223372036854775808"},
        {"0.0004", "0"},
        {"0.0005", "1"},
        {"-0.0005", "-1"},
        {"-0.00049999999999999999999999", "0"},
        {"1.2345678901234567890123456789", "1235"},
        {"12.5e3", "12500000"},
        {"12.5E+3", "12500000"},
        {"125e-1", "12500"},
        {"5e-4", "1"},
        {"4e-4", "0"},
        {"1e-999999999", "0"},
        {"0e999999999", "0"},
        {"0.000000000000000000000001e24", "1000"},
        {"123456789012345678901234567890e-18", "123456789012346"},
        {"\"12.5\"", "12500"},
        {"\" 7 \"", "7000"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[200];
        char out[200];

        snprintf(text, sizeof(text), "[{\"ph\":\"i\",\"ts\":%s}]", cases[i].ts);
        snprintf(out, sizeof(out), "i %s -/-\n", cases[i].ns);
        expect(text, out);
    }
}

static void test_unusable_times_reject_the_event(void **state)
{
    (void)state;
    reject("{\"ph\":\"X\"}", "byte 1: ts is missing");
    reject("{\"ph\":\"X\",\"ts\":null}", "byte 1: ts is missing");
    reject("{\"ph\":\"X\",\"ts\":true}", "byte 1: ts is not a number");
    reject("{\"ph\":\"X\",\"ts\":NaN}", "byte 1: ts is not a number");
    reject("{\"ph\":\"X\",\"ts\":[1]}", "byte 1: ts is not a number");
    reject("{\"ph\":\"X\",\"ts\":\"1.\"}", "byte 1: ts is not a number");
    reject("{\"ph\":\"X\",\"ts\":\"\"}", "byte 1: ts is not a number");
    reject("{\"ph\":\"X\",\"ts\":1e16}",
           "byte 1: ts does not fit 64 bits of nanoseconds");
    reject("{\"ph\":\"X\",\"ts\":9223372036854775.808}",
           "byte 1: ts does not fit 64 bits of nanoseconds");
    reject("{\"ph\":\"X\",\"ts\":99999999999999999999999}",
           "byte 1: ts does not fit 64 bits of nanoseconds");
    reject("{\"ph\":\"X\",\"ts\":1,\"dur\":1e16}",
           "byte 1: dur does not fit 64 bits of nanoseconds");
    reject("{\"ph\":\"X\",\"ts\":9223372036854775,\"dur\":1}",
           "byte 1: ts and dur together do not fit 64 bits of nanoseconds");
}

static void test_durations_that_are_none_become_zero(void **state)
{
    struct reading got;

    (void)state;
    got = expect("[{\"ph\":\"X\",\"ts\":1,\"dur\":-5},{\"ph\":\"X\",\"ts\":1},"
                 "{\"ph\":\"X\",\"ts\":1,\"dur\":null},{\"ph\":\"X\",\"ts\":1,"
                 "\"dur\":NaN},{\"ph\":\"X\",\"ts\":1,\"dur\":\"-1e99\"}]",
                 "X 1000+0 -/-\nX 1000+0 -/-\nX 1000+0 -/-\nX 1000+0 -/-\n"
                 "X 1000+0 -/-\n");
    assert_int_equal(got.stats.repaired, 5);
    got = expect("[{\"ph\":\"X\",\"ts\":1,\"dur\":-0.0},{\"ph\":\"X\",\"ts\":1,"
                 "\"dur\":\"3\"}]",
                 "X 1000+0 -/-\nX 1000+3000 -/-\n");
    assert_int_equal(got.stats.repaired, 0);
}

static void test_phases_have_their_kinds(void **state)
{
    (void)state;
    expect("[{\"ph\":\"B\",\"ts\":1},{\"ph\":\"E\",\"ts\":1},{\"ph\":\"I\",\"ts\":1},"
           "{\"ph\":\"C\",\"ts\":1},{\"ph\":\"\\u0050\",\"ts\":1},{\"ph\":\"(\","
           "\"ts\":1}]",
           "B 1000 -/-\nE 1000 -/-\nI 1000 -/-\nC 1000 -/-\nP? 1000 -/-\n"
           "(? 1000 -/-\n");
    reject("{\"ts\":1}", "byte 1: ph is missing");
    reject("{}", "byte 1: ph is missing");
    reject("{\"ph\":\"XX\",\"ts\":1}", "byte 1: ph is not one character");
    reject("{\"ph\":\"\",\"ts\":1}", "byte 1: ph is not one character");
    reject("{\"ph\":88,\"ts\":1}", "byte 1: ph is not one character");
    reject("{\"ph\":\"\\u0007\",\"ts\":1}", "byte 1: ph is not one character");
    reject("{\"ph\":\"\xc3\xa9\",\"ts\":1}", "byte 1: ph is not one character");
}

static void test_values_that_are_no_objects_are_rejected(void **state)
{
    (void)state;
    reject("1", "byte 1: not an object");
    reject("\"x\"", "byte 1: not an object");
    reject("null", "byte 1: not an object");
    reject("[" A "]", "byte 1: not an object");
    reject("-1.5e3", "byte 1: not an object");
}

static void test_ids_come_in_all_forms(void **state)
{
    (void)state;
    expect(
        "[{\"ph\":\"i\",\"ts\":0,\"pid\":\"Spans\",\"tid\":\"PyTorch \\\"P\\\"\"},"
        "{\"ph\":\"i\",\"ts\":0,\"pid\":-1,\"tid\":12.0},"
        "{\"ph\":\"i\",\"ts\":0,\"pid\":12.5,\"tid\":18446744073709551615},"
        "{\"ph\":\"i\",\"ts\":0,\"pid\":null,\"tid\":true},"
        "{\"ph\":\"i\",\"ts\":0,\"pid\":\"\",\"tid\":[1, 2]},"
        "{\"ph\":\"i\",\"ts\":0,\"pid\":-9223372036854775808,\"tid\":NaN},"
        "{\"ph\":\"i\",\"ts\":0,\"pid\":1e3,\"tid\":1e300}]",
        "i 0 \"Spans\"/\"PyTorch \\\"P\\\"\"\ni 0 -1/12\n"
        "i 0 \"12.5\"/\"18446744073709551615\"\ni 0 -/\"true\"\ni 0 \"\"/\"[1, 2]\"\n"
        "i 0 -9223372036854775808/\"NaN\"\ni 0 1000/\"1e300\"\n");
}

static void test_names_that_are_no_strings_become_text(void **state)
{
    (void)state;
    expect("[{\"ph\":\"i\",\"ts\":0,\"name\":5,\"cat\":1.50},{\"ph\":\"i\",\"ts\":0,"
           "\"name\":null,\"cat\":\"\"},{\"ph\":\"i\",\"ts\":0,\"name\":true,"
           "\"cat\":[\"a\",1]}]",
           "i 0 -/- name=\"5\" cat=\"1.50\"\ni 0 -/- cat=\"\"\n"
           "i 0 -/- name=\"true\" cat=\"[\\\"a\\\",1]\"\n");
}

static void test_strings_come_back_byte_for_byte(void **state)
{
    struct reading got;

    (void)state;
    got =
        expect("[{\"ph\":\"i\",\"ts\":0,\"name\":\"\\u0000a\\u001b[0m\\\"\\\\\\/\\b\\f"
               "\\n\\r\\t\\ud83d\\ude80\\u00e9\\u20AC\"}]",
               "i 0 -/- name=\"\\u0000a\\u001b[0m\\\"\\\\/\\b\\f\\n\\r\\t"
               "\xf0\x9f\x9a\x80\xc3\xa9\xe2\x82\xac\"\n");
    assert_int_equal(got.stats.repaired, 0);
    got = expect("[{\"ph\":\"i\",\"ts\":0,\"name\":\"\xe6\x98\x87\xe8\x85\xbe \xf0\x9f"
                 "\x9a\x80\",\"\\u0070id\":3}]",
                 "i 0 3/- name=\"\xe6\x98\x87\xe8\x85\xbe \xf0\x9f\x9a\x80\"\n");
    assert_int_equal(got.stats.repaired, 0);
}

static void test_bad_strings_are_repaired_and_counted(void **state)
{
    struct reading got;

    (void)state;
    got = expect("[{\"ph\":\"i\",\"ts\":0,\"name\":\"bad\xff\xfe name\"},"
                 "{\"ph\":\"i\",\"ts\":0,\"name\":\"\\ud83d.\\ude80\\ud800\\ud800\"},"
                 "{\"ph\":\"i\",\"ts\":0,\"name\":\"C:\\q \\u12G4\"},"
                 "{\"ph\":\"i\",\"ts\":0,\"name\":\"a\tb\nc\x01\"}]",
                 "i 0 -/- name=\"bad\xef\xbf\xbd\xef\xbf\xbd name\"\n"
                 "i 0 -/- name=\"\xef\xbf\xbd.\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n"
                 "i 0 -/- name=\"C:\\\\q \\\\u12G4\"\n"
                 "i 0 -/- name=\"a\\tb\\nc\\u0001\"\n");
    assert_int_equal(got.stats.repaired, 4);
}

static void test_args_keep_value_and_type(void **state)
{
    (void)state;
    expect("[{\"ph\":\"C\",\"ts\":0,\"args\":{\"i\":9007199254740993,\"n\":-1,"
           "\"min\":-9223372036854775808,\"u\":18446744073709551615,"
           "\"big\":18446744073709551616,\"f\":1.5e-07,\"one\":1.0,\"huge\":1e999,"
           "\"t\":true,\"no\":false,\"z\":null,\"s\":\"x\",\"\":\"\","
           "\"a\":[[64, 64], []],\"o\":{\"k\":\n{\"k\":1}}}}]",
           "C 0 -/- \"i\"=i9007199254740993,\"n\"=i-1,\"min\"=i-9223372036854775808,"
           "\"u\"=u18446744073709551615,\"big\"=j18446744073709551616,"
           "\"f\"=d1.4999999999999999e-07,\"one\"=d1,\"huge\"=j1e999,\"t\"=true,"
           "\"no\"=false,\"z\"=jnull,\"s\"=s\"x\",\"\"=s\"\",\"a\"=j[[64, 64], []],"
           "\"o\"=j{\"k\":{\"k\":1}}\n");
}

static void test_numbers_that_json_lacks_become_strings(void **state)
{
    struct reading got;

    (void)state;
    got = expect("[{\"ph\":\"C\",\"ts\":0,\"args\":{\"a\":NaN,\"b\":Infinity,"
                 "\"c\":-Infinity,\"d\":-nan,\"e\":inf,\"f\":-inf,\"g\":[nan,{\"h\":"
                 "Infinity}]}}]",
                 "C 0 -/- \"a\"=s\"NaN\",\"b\"=s\"Infinity\",\"c\"=s\"-Infinity\","
                 "\"d\"=s\"NaN\",\"e\"=s\"Infinity\",\"f\"=s\"-Infinity\","
                 "\"g\"=j[\"NaN\",{\"h\":\"Infinity\"}]\n");
    assert_int_equal(got.stats.repaired, 1);
}

static void test_nested_values_are_repaired(void **state)
{
    struct reading got;

    (void)state;
    got =
        expect("[{\"ph\":\"C\",\"ts\":0,\"args\":{\"g\":[\"\xff\",{\"\\ud800\":"
               "\"a\\u00e9\x01\"},]}}]",
               "C 0 -/- \"g\"=j[\"\xef\xbf\xbd\",{\"\xef\xbf\xbd\":\"a\xc3\xa9\\u0001\""
               "}]\n");
    assert_int_equal(got.stats.repaired, 1);
}

static void test_of_equal_keys_the_last_one_counts(void **state)
{
    (void)state;
    expect(
        "[{\"ph\":\"B\",\"ph\":\"i\",\"ts\":5,\"ts\":1,\"name\":\"a\",\"name\":\"b\","
        "\"args\":{\"x\":1},\"args\":{\"k\":1,\"l\":2,\"k\":\"three\"}}]",
        "i 1000 -/- name=\"b\" \"k\"=s\"three\",\"l\"=i2\n");
    expect("[{\"ph\":\"i\",\"ts\":1,\"u\":1,\"v\":2,\"\\u0075\":3,\"w\":4,\"w\":[5]}]",
           "i 1000 -/- extra=\"v\":2,\"u\":3,\"w\":[5]\n");
    expect("[{\"ph\":\"i\",\"ts\":1,\"args\":[1],\"args\":{\"k\":1}},"
           "{\"ph\":\"i\",\"ts\":1,\"args\":{\"k\":1},\"args\":[1]}]",
           "i 1000 -/- \"k\"=i1\ni 1000 -/- extra=\"args\":[1]\n");
}

static void test_further_members_are_kept(void **state)
{
    (void)state;
    expect("[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"tts\":5,\"cname\":\"go\\u006fd\","
           "\"stack\":[\n1],\"v\":null,\"k\\n\":-1.50,\"w\":NaN}]",
           "X 1000+1000 -/- extra=\"tts\":5,\"cname\":\"go\\u006fd\",\"stack\":[1],"
           "\"v\":null,\"k\\n\":-1.50,\"w\":\"NaN\"\n");
    expect("[{\"ph\":\"i\",\"ts\":1,\"args\":\"text\"},{\"ph\":\"i\",\"ts\":1,"
           "\"args\":null},{\"ph\":\"i\",\"ts\":1,\"args\":{}}]",
           "i 1000 -/- extra=\"args\":\"text\"\ni 1000 -/- extra=\"args\":null\n"
           "i 1000 -/-\n");
}

static void test_members_of_other_kinds_are_kept_as_they_are(void **state)
{
    (void)state;
    expect(
        "[{\"ph\":\"i\",\"ts\":1,\"s\":\"g\"},{\"ph\":\"i\",\"ts\":1,\"s\":\"gp\"},"
        "{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"s\":\"g\",\"id\":4},{\"ph\":\"i\",\"ts\":1,"
        "\"dur\":5},{\"ph\":\"f\",\"ts\":1,\"id\":42,\"bp\":\"e\"},{\"ph\":\"f\","
        "\"ts\":1,\"id\":\"0x1f\",\"bp\":\"x\"},{\"ph\":\"b\",\"ts\":1,\"id\":1.0},"
        "{\"ph\":\"s\",\"ts\":1,\"bp\":\"e\",\"id\":18446744073709551615}]",
        "i 1000 -/- scope=g\ni 1000 -/- extra=\"s\":\"gp\"\n"
        "X 1000+1000 -/- extra=\"id\":4,\"s\":\"g\"\ni 1000 -/- extra=\"dur\":5\n"
        "f 1000 -/- id=42 bp\nf 1000 -/- id=\"0x1f\" extra=\"bp\":\"x\"\n"
        "b 1000 -/- id=1\ns 1000 -/- id=\"18446744073709551615\" extra=\"bp\":\"e\"\n");
}

/* --- NDJSON ----------------------------------------------------------------------- */

static void test_lines_are_events(void **state)
{
    struct reading got;

    (void)state;
    expect_lines(A "\n" B "\n", A_OUT B_OUT);
    expect_lines(A "\r\n\r\n \t\n" B, A_OUT B_OUT);
    expect_lines("\xef\xbb\xbf" A "\n", A_OUT);
    expect_lines("\n\n", "");
    got = expect_lines("12\n" A "\n[1]\n", A_OUT);
    assert_int_equal(got.stats.events, 3);
    assert_int_equal(got.stats.rejected, 2);
    assert_string_equal(got.stats.last_rejection, "byte 0: not an object");
}

static void test_bad_lines_are_named(void **state)
{
    const struct tp_chrome_reader_opts opts = {.form = TP_CHROME_NDJSON};

    (void)state;
    refuse_with(&opts, "\n" A "\n{\"ph\":}\n" B "\n",
                "line 3, byte 60: a value was expected", A_OUT);
    refuse_with(&opts, A "\n" A A "\n",
                "line 2, byte 105: more than one value in a line", A_OUT);
    refuse_with(&opts, A "\n{\"ph\":\"X\",\n\"ts\":1}\n",
                "line 2, byte 64: the line ends inside a value", A_OUT);
    refuse_with(&opts, A "\n{\"ph\":\"X",
                "line 2, byte 59: the line ends inside a value", A_OUT);
    refuse_with(&opts, "", "the input is empty", "");
}

static void test_salvaged_lines_lose_only_the_bad_ones(void **state)
{
    const struct tp_chrome_reader_opts opts = {.form = TP_CHROME_NDJSON,
                                               .salvage = true};
    static const char text[] = "INFO log\n" A "\n{\"ph\":\n" B "\n{\"ph";
    struct reading got = expect_with(&opts, text, strlen(text), A_OUT B_OUT);

    (void)state;
    assert_int_equal(got.stats.damages, 3);
    assert_int_equal(got.stats.damage_offset[0], 0);
}

/* --- salvage ---------------------------------------------------------------------- */

static void test_log_lines_between_events_are_skipped(void **state)
{
    struct reading got;

    (void)state;
    got = expect_salvaged("{\"v\":1,\"traceEvents\":[\n" A ",\nINFO: 12:00 P.cpp:12] "
                          "flushing {x} \"y\n" B "\n],\n\"rank\":1}\n",
                          "# \"v\": 1\n" A_OUT B_OUT "# \"rank\": 1\n");
    assert_int_equal(got.stats.damages, 1);
    assert_int_equal(got.stats.damage_offset[0], 77);
    assert_false(got.stats.is_truncated);
    expect_salvaged("{\"traceEvents\":[" A ",\nINFO: x] y\n],\n\"rank\":1}\n",
                    A_OUT "# \"rank\": 1\n");
    expect_salvaged("{\"traceEvents\":[" A ",\nINFO: x] y\n]\n}\n", A_OUT);
}

static void test_log_lines_inside_an_event_cost_that_event(void **state)
{
    struct reading got;

    (void)state;
    got = expect_salvaged("[" A
                          ",{\"ph\":\"X\",INFO: log\n\"ts\":1,\"args\":{\"k\":{}}},\n" B
                          "]",
                          A_OUT B_OUT);
    assert_int_equal(got.stats.damages, 1);
    /* Inside a string the text goes on to some later quote: that of the next event. */
    got = expect_salvaged("[" A ",{\"ph\":\"X\",\"name\":\"cut\nINFO: log\n" B ",\n" A
                          "]",
                          A_OUT B_OUT A_OUT);
    assert_int_equal(got.stats.damages, 1);
}

static void test_damage_in_metadata_keeps_the_rest(void **state)
{
    struct reading got;

    (void)state;
    got =
        expect_salvaged("{\"v\":1,\n\"id\": \"quo\"te\",\n\"baseTimeNanoseconds\":5,\n"
                        "\"traceEvents\":[" A "],\"z\":2}",
                        "# \"v\": 1\n# \"id\": \"quo\"\n# \"baseTimeNanoseconds\": 5\n"
                        "X 1005+2000 1/2 name=\"a\"\n# \"z\": 2\n");
    assert_int_equal(got.stats.damages, 1);
    got = expect_salvaged("{\"d\":[{\"n\":\"a\"b\"},\n{\"n\":2}],\n\"base\":5,"
                          "\"traceEvents\":[" A "]}",
                          "# \"base\": 5\n" A_OUT);
    assert_int_equal(got.stats.damages, 1);
}

static void test_text_in_front_of_the_trace_is_skipped(void **state)
{
    const struct tp_chrome_reader_opts opts = {.salvage = true};
    struct reading got;

    (void)state;
    got = expect_salvaged("INFO: starting\n{\"traceEvents\":[" A "]}", A_OUT);
    assert_int_equal(got.stats.damages, 1);
    refuse_with(&opts, "no trace\nat all\n", "byte 0: no JSON object or array is in it",
                "");
    refuse_with(&opts, "", "the input is empty", "");
}

static void test_truncated_input_keeps_what_is_whole(void **state)
{
    static const char text[] = "{\"v\":1,\"traceEvents\":[" A
                               ",{\"ph\":\"X\",\"name\":\"c";
    struct reading got = expect_salvaged(text, "# \"v\": 1\n" A_OUT);

    (void)state;
    assert_true(got.stats.is_truncated);
    assert_int_equal(got.stats.damages, 1);
    assert_int_equal(got.stats.damage_offset[0], 75);
    got = expect_salvaged("{\"name\":\"n\",\"traceEvents\":[" A,
                          "# \"name\": \"n\"\n" A_OUT);
    assert_true(got.stats.is_truncated);
}

static void test_more_damage_than_places_is_counted(void **state)
{
    struct reading got;

    (void)state;
    got = expect_salvaged("[x" A "x" A "x" A "x" A "x" A "x" A "x" A "x" A "x" A "x" A
                          "x" A "x" A "x" A "x" A "x" A "x" A "x" A "x" A "]",
                          A_OUT A_OUT A_OUT A_OUT A_OUT A_OUT A_OUT A_OUT A_OUT A_OUT
                              A_OUT A_OUT A_OUT A_OUT A_OUT A_OUT A_OUT A_OUT);
    assert_int_equal(got.stats.damages, 18);
}

/* --- limits ----------------------------------------------------------------------- */

static struct reading limited(struct tp_chrome_reader_opts opts, const char *text,
                              const char *expected)
{
    return expect_with(&opts, text, strlen(text), expected);
}

static void test_each_limit_costs_one_event(void **state)
{
    static const struct {
        struct tp_chrome_reader_opts opts;
        const char *event; /* over the limit */
        const char *why;
    } cases[] = {
        {{.depth_max = 3},
         "{\"ph\":\"i\",\"ts\":1,\"args\":{\"k\":[[1]]}}",
         "byte 1: more than 3 arrays and objects inside each other"},
        {{.depth_max = 1},
         "{\"ph\":\"i\",\"ts\":1,\"args\":{}}",
         "byte 1: args are deeper than 1"},
        {{.args_max = 2},
         "{\"ph\":\"i\",\"ts\":1,\"args\":{\"k\":1,\"l\":2,\"m\":3}}",
         "byte 1: more than 2 arguments"},
        {{.args_max = 2},
         "{\"ph\":\"i\",\"ts\":1,\"k\":1,\"l\":2,\"m\":3}",
         "byte 1: more than 2 further members"},
        {{.name_bytes = 4},
         "{\"ph\":\"i\",\"ts\":1,\"name\":\"abcde\"}",
         "byte 1: name is longer than 4 bytes"},
        {{.name_bytes = 4},
         "{\"ph\":\"i\",\"ts\":1,\"cat\":\"abcde\"}",
         "byte 1: cat is longer than 4 bytes"},
        {{.name_bytes = 4},
         "{\"ph\":\"i\",\"ts\":1,\"pid\":\"abcde\"}",
         "byte 1: pid is longer than 4 bytes"},
        {{.name_bytes = 4},
         "{\"ph\":\"s\",\"ts\":1,\"id\":\"abcde\"}",
         "byte 1: id is longer than 4 bytes"},
        {{.name_bytes = 4},
         "{\"ph\":\"i\",\"ts\":1,\"args\":{\"abcde\":1}}",
         "byte 1: a key is longer than 4 bytes"},
        {{.event_bytes = 60},
         "{\"ph\":\"i\",\"ts\":1,\"args\":{\"k\":\"0123456789012345678901234567\"}}",
         "byte 1: longer than 60 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        struct reading got;

        snprintf(text, sizeof(text), "[%s,{\"ph\":\"i\",\"ts\":2}]", cases[i].event);
        got = limited(cases[i].opts, text, "i 2000 -/-\n");
        assert_string_equal(got.stats.last_rejection, cases[i].why);
        assert_int_equal(got.stats.rejected, 1);
        assert_int_equal(got.stats.events, 2);
    }
}

static void test_limits_hold_for_lines(void **state)
{
    const struct tp_chrome_reader_opts opts = {.form = TP_CHROME_NDJSON,
                                               .event_bytes = 40,
                                               .depth_max = 3};
    struct reading got;

    (void)state;
    got = limited(opts,
                  "{\"ph\":\"i\",\"ts\":1,\"name\":\"0123456789012345\"}\n"
                  "{\"ph\":\"i\",\"ts\":1,\"args\":{\"k\":[[1]]}}\n"
                  "{\"ph\":\"i\",\"ts\":2}\n",
                  "i 2000 -/-\n");
    assert_int_equal(got.stats.rejected, 2);
    assert_string_equal(got.stats.last_rejection, "byte 0: longer than 40 bytes");
}

static void test_tracks_are_limited(void **state)
{
    const struct tp_chrome_reader_opts opts = {.tracks_max = 2};
    struct reading got;

    (void)state;
    got =
        limited(opts,
                "[{\"ph\":\"i\",\"ts\":1,\"tid\":1},{\"ph\":\"i\",\"ts\":1,\"tid\":2},"
                "{\"ph\":\"i\",\"ts\":1,\"tid\":3},{\"ph\":\"i\",\"ts\":1,\"tid\":1}]",
                "i 1000 -/1\ni 1000 -/2\ni 1000 -/1\n");
    assert_int_equal(got.stats.rejected, 1);
    assert_string_equal(got.stats.last_rejection,
                        "byte 53: more than 2 pairs of pid and tid");
}

static void test_members_over_a_limit_are_left_out(void **state)
{
    struct reading got;

    (void)state;
    got =
        limited((struct tp_chrome_reader_opts){.member_bytes = 10},
                "{\"a\":\"0123456789\",\"b\":1,\"c\":[1,2,3,4,5,6],\"traceEvents\":[" A
                "]}",
                "# \"b\": 1\n" A_OUT);
    assert_int_equal(got.stats.members_left_out, 2);
    got = limited((struct tp_chrome_reader_opts){.members_bytes = 10},
                  "{\"a\":\"012\",\"b\":\"012345\",\"c\":12}",
                  "# \"a\": \"012\"\n# \"c\": 12\n");
    assert_int_equal(got.stats.members_left_out, 1);
    got = limited((struct tp_chrome_reader_opts){.name_bytes = 4},
                  "{\"abcde\":1,\"abcdefghijklmnopqrstuvwxyz0123456789\":2,\"c\":3}",
                  "# \"c\": 3\n");
    assert_int_equal(got.stats.members_left_out, 2);
    got = limited((struct tp_chrome_reader_opts){.depth_max = 2},
                  "{\"a\":[[1]],\"b\":[[[1]]],\"c\":3}",
                  "# \"a\": [[1]]\n# \"c\": 3\n");
    assert_int_equal(got.stats.members_left_out, 1);
}

static void test_damage_before_a_limit_is_found(void **state)
{
    const struct tp_chrome_reader_opts opts = {.event_bytes = 30};

    (void)state;
    refuse_with(&opts, "[{\"ph\":\"i\";\"ts\":1,\"name\":\"0123456789\"}]",
                "byte 10: ',' or '}' was expected", "");
}

static void test_deep_nesting_costs_no_stack(void **state)
{
    const struct tp_chrome_reader_opts opts = {0};
    const size_t n = 1000000;
    char *text = malloc(n + 20);
    struct reading got;

    (void)state;
    assert_non_null(text);
    memcpy(text, "[{\"a\":", 6);
    memset(text + 6, '[', n);
    got = read_pieces(&opts, text, n + 6, n + 6, 1);
    assert_int_equal(got.rc, TP_EINVAL);
    assert_string_equal(got.err.message,
                        "byte 1000006: the input ends inside a value that "
                        "starts at byte 1");
    assert_int_equal(got.stats.rejected, 1);
    tp_buf_fini(&got.text);
    free(text);
}

/* An event of nearly a megabyte that comes a byte at a time: each byte is looked at a
 * bounded number of times. If the start were read again for each piece, this would take
 * hours. */
static void test_tiny_pieces_of_a_large_event_are_linear(void **state)
{
    const struct tp_chrome_reader_opts opts = {0};
    const size_t n = (1U << 20) - 100;
    char *text = malloc(n + 100);
    struct reading got;
    size_t len;

    (void)state;
    assert_non_null(text);
    len = (size_t)snprintf(text, 100, "[{\"ph\":\"i\",\"ts\":1,\"args\":{\"k\":\"");
    memset(text + len, 'x', n);
    memcpy(text + len + n, "\"}}]", 4);
    got = read_pieces(&opts, text, len + n + 4, 1, 1);
    assert_int_equal(got.rc, TP_OK);
    assert_int_equal(got.stats.events, 1);
    assert_int_equal(got.stats.rejected, 0);
    tp_buf_fini(&got.text);
    free(text);
}

/* --- callbacks, memory, reuse ----------------------------------------------------- */

static int stop_event(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    (void)ev;
    (void)arg;
    return tp_fail(err, TP_EAGAIN, "enough");
}

static int stop_member(struct tp_str key, struct tp_str json, struct tp_err *err,
                       void *arg)
{
    (void)key;
    (void)json;
    (void)arg;
    return tp_fail(err, TP_EQUOTA, "too much");
}

static void test_a_callback_stops_the_reader_for_good(void **state)
{
    const struct tp_chrome_reader_opts opts = {.on_event = stop_event,
                                               .on_member = stop_member};
    static const char *const texts[] = {"[" A "," B "]", "{\"k\":1}"};
    static const int codes[] = {TP_EAGAIN, TP_EQUOTA};

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (size_t piece = 1; piece < 100; piece += 98) {
            struct tp_chrome_reader *r;
            struct tp_err err = {0};
            int rc = TP_OK;

            assert_int_equal(tp_chrome_reader_new(&opts, &r, &err), TP_OK);
            for (size_t k = 0; k < strlen(texts[i]) && rc == TP_OK; k += piece)
                rc = feed_copy(r, texts[i] + k,
                               piece < strlen(texts[i]) - k ? piece
                                                            : strlen(texts[i]) - k,
                               &err);
            assert_int_equal(rc, codes[i]);
            assert_string_equal(err.message, i == 0 ? "enough" : "too much");
            assert_int_equal(tp_chrome_reader_finish(r, &err), codes[i]);
            tp_chrome_reader_free(r);
        }
}

static void test_reset_starts_over(void **state)
{
    struct reading reading = {0};
    const struct tp_chrome_reader_opts opts = {.on_event = show_event,
                                               .arg = &reading,
                                               .tracks_max = 1};
    struct tp_chrome_reader *r;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_chrome_reader_new(&opts, &r, &err), TP_OK);
    assert_int_equal(tp_chrome_reader_feed(r, "[" A ",{\"ph\"", 59, &err), TP_OK);
    tp_chrome_reader_reset(r);
    assert_int_equal(tp_chrome_reader_stats(r)->events, 0);
    assert_int_equal(tp_chrome_reader_feed(r, "]", 1, &err), TP_EINVAL);
    tp_chrome_reader_reset(r);
    /* The one track that is allowed is free again as well. */
    assert_int_equal(tp_chrome_reader_feed(r, "[{\"ph\":\"i\",\"ts\":1,\"tid\":9}]", 27,
                                           &err),
                     TP_OK);
    assert_int_equal(tp_chrome_reader_finish(r, &err), TP_OK);
    assert_int_equal(tp_chrome_reader_stats(r)->rejected, 0);
    tp_chrome_reader_free(r);
    tp_buf_fini(&reading.text);
    tp_chrome_reader_free(NULL);
}

static int count_event(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    (void)ev;
    (void)err;
    ++*(int *)arg;
    return TP_OK;
}

/* Reads something that makes every part of the reader allocate. */
static int read_all_parts(size_t piece, int *n_events, struct tp_err *err)
{
    static const char text[] =
        "{\"m\\n\":[\n1,NaN],\"b\":2,\"traceEvents\":[" A
        ",{\"ph\":\"i\",\"ts\":1,\"pid\":\"text\",\"tid\":\"\",\"name\":\"\\u0041\","
        "\"args\":{\"k\":[\n1],\"s\":\"\\n\"},\"x\":{\"\xff\":1}},junk," B "]}";
    const struct tp_chrome_reader_opts opts = {.on_event = count_event,
                                               .arg = n_events,
                                               .salvage = true};
    struct tp_chrome_reader *r = NULL;
    int rc = tp_chrome_reader_new(&opts, &r, err);

    for (size_t i = 0; i < strlen(text) && rc == TP_OK; i += piece)
        rc = tp_chrome_reader_feed(r, text + i,
                                   piece < strlen(text) - i ? piece : strlen(text) - i,
                                   err);
    if (rc == TP_OK)
        rc = tp_chrome_reader_finish(r, err);
    tp_chrome_reader_free(r);
    return rc;
}

static void test_reader_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= 1001; piece += 50)
        for (int n = 0;; n++) {
            struct tp_err err = {0};
            int n_events = 0;
            int rc;

            fault_arm(n);
            rc = read_all_parts(piece, &n_events, &err);
            if (!fault_disarm()) {
                assert_int_equal(rc, TP_OK);
                assert_int_equal(n_events, 3);
                break;
            }
            if (rc != TP_ENOMEM)
                fail_msg("pieces of %zu, failure %d: %d %s", piece, n, rc, err.message);
            assert_true(err.message[0] != '\0');
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object_and_array_give_their_events),
        cmocka_unit_test(test_sloppy_arrays_are_taken),
        cmocka_unit_test(test_members_around_the_events_are_handed_over),
        cmocka_unit_test(test_events_are_only_those_of_the_top_level),
        cmocka_unit_test(test_a_lone_event_object_is_one_event),
        cmocka_unit_test(test_large_lone_object_is_a_trace),
        cmocka_unit_test(test_base_before_the_events_is_added),
        cmocka_unit_test(test_base_behind_events_is_only_reported),
        cmocka_unit_test(test_base_that_is_no_number_is_none),
        cmocka_unit_test(test_base_that_does_not_fit_rejects_the_event),
        cmocka_unit_test(test_what_is_no_trace_is_refused),
        cmocka_unit_test(test_damaged_events_are_refused_with_the_offset),
        cmocka_unit_test(test_times_are_exact_nanoseconds),
        cmocka_unit_test(test_unusable_times_reject_the_event),
        cmocka_unit_test(test_durations_that_are_none_become_zero),
        cmocka_unit_test(test_phases_have_their_kinds),
        cmocka_unit_test(test_values_that_are_no_objects_are_rejected),
        cmocka_unit_test(test_ids_come_in_all_forms),
        cmocka_unit_test(test_names_that_are_no_strings_become_text),
        cmocka_unit_test(test_strings_come_back_byte_for_byte),
        cmocka_unit_test(test_bad_strings_are_repaired_and_counted),
        cmocka_unit_test(test_args_keep_value_and_type),
        cmocka_unit_test(test_numbers_that_json_lacks_become_strings),
        cmocka_unit_test(test_nested_values_are_repaired),
        cmocka_unit_test(test_of_equal_keys_the_last_one_counts),
        cmocka_unit_test(test_further_members_are_kept),
        cmocka_unit_test(test_members_of_other_kinds_are_kept_as_they_are),
        cmocka_unit_test(test_lines_are_events),
        cmocka_unit_test(test_bad_lines_are_named),
        cmocka_unit_test(test_salvaged_lines_lose_only_the_bad_ones),
        cmocka_unit_test(test_log_lines_between_events_are_skipped),
        cmocka_unit_test(test_log_lines_inside_an_event_cost_that_event),
        cmocka_unit_test(test_damage_in_metadata_keeps_the_rest),
        cmocka_unit_test(test_text_in_front_of_the_trace_is_skipped),
        cmocka_unit_test(test_truncated_input_keeps_what_is_whole),
        cmocka_unit_test(test_more_damage_than_places_is_counted),
        cmocka_unit_test(test_each_limit_costs_one_event),
        cmocka_unit_test(test_limits_hold_for_lines),
        cmocka_unit_test(test_tracks_are_limited),
        cmocka_unit_test(test_members_over_a_limit_are_left_out),
        cmocka_unit_test(test_damage_before_a_limit_is_found),
        cmocka_unit_test(test_deep_nesting_costs_no_stack),
        cmocka_unit_test(test_tiny_pieces_of_a_large_event_are_linear),
        cmocka_unit_test(test_a_callback_stops_the_reader_for_good),
        cmocka_unit_test(test_reset_starts_over),
        cmocka_unit_test(test_reader_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
