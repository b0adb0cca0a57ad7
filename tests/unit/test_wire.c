/* What a producer says to the service and what it understands of the answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "producer/recorder.h"
#include "producer/settings.h"
#include "producer/wire.h"
#include "support/fault.h"

/* Blanks behind commas and colons do not matter. */
static void assert_text(struct tp_buf *b, const char *want)
{
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] != ' ' || n == 0 ||
            (b->data[n - 1] != ',' && b->data[n - 1] != ':'))
            b->data[n++] = b->data[i];
    b->len = n;
    assert_int_equal(tp_buf_append(b, "", 1, NULL), TP_OK);
    assert_string_equal(b->data, want);
    tp_buf_fini(b);
}

static void test_a_report_that_says_nothing_is_a_wait(void **state)
{
    struct tp_report r = {.wait_ms = 28000};
    struct tp_buf b = {0};

    (void)state;
    assert_int_equal(tp_wire_write_report(&r, &b, NULL), TP_OK);
    assert_text(&b, "{\"wait_ms\":28000}");
    r.takes_interim = true;
    assert_int_equal(tp_wire_write_report(&r, &b, NULL), TP_OK);
    assert_text(&b, "{\"wait_ms\":28000,\"interim\":true}");
    r.is_plain = true; /* an older service knows neither */
    r.seq = 1;
    assert_int_equal(tp_wire_write_report(&r, &b, NULL), TP_OK);
    assert_text(&b, "{\"wait_ms\":28000}");
}

static void test_a_report_says_acks_counts_step_and_times(void **state)
{
    struct tp_recorder_totals *t = calloc(1, sizeof(*t));
    struct tp_report r = {
        .acks = {{.kind = TP_ORDER_START, .trace_id = "t1", .started_at_ns = 1},
                 {.kind = TP_ORDER_PREPARE,
                  .trace_id = "t2",
                  .is_refused = true,
                  .reason = "say \"no\""}},
        .n_acks = 2,
        .trace_id = "t1",
        .totals = t,
        .has_step = true,
        .seq = 12,
        .step = 7,
        .clock = {.sent_ns = 1000000000,
                  .server_received_ns = 2,
                  .server_sent_ns = 3,
                  .received_ns = 4},
    };
    struct tp_buf b = {0};

    (void)state;
    assert_non_null(t);
    t->emitted[57] = 9;
    t->emitted[3] = 2;
    t->filtered[57] = 1;
    t->dropped[TP_DROP_RING_FULL][57] = 4;
    assert_int_equal(tp_wire_write_report(&r, &b, NULL), TP_OK);
    assert_text(
        &b, "{\"seq\":12,\"acks\":[{\"trace_id\":\"t1\",\"command\":\"start\","
            "\"started_at\":"
            "\"1970-01-01T00:00:00.000000001Z\"},{\"trace_id\":\"t2\",\"command\":"
            "\"prepare\",\"refused\":true,\"reason\":\"say \\\"no\\\"\"}],\"counts\":["
            "{\"trace_id\":\"t1\",\"emitted\":11,\"filtered\":1,\"dropped\":"
            "{\"producer-ring-full\":4},\"types\":[{\"type\":3,\"emitted\":2,"
            "\"filtered\":0,"
            "\"dropped\":{}},{\"type\":57,\"emitted\":9,\"filtered\":1,\"dropped\":"
            "{\"producer-ring-full\":4}}]}],\"step\":7,\"clock\":{\"sent_at\":"
            "\"1970-01-01T00:00:01.000000000Z\",\"server_received_at\":"
            "\"1970-01-01T00:00:00.000000002Z\",\"server_sent_at\":"
            "\"1970-01-01T00:00:00.000000003Z\",\"received_at\":"
            "\"1970-01-01T00:00:00.000000004Z\"},\"wait_ms\":0}");
    free(t);
}

static void test_registrations_leave_out_what_is_not_known(void **state)
{
    char job[] = "j", name[] = "", host[] = "h", none[] = "";
    struct tp_settings s = {.job = job,
                            .name = name,
                            .host = host,
                            .backend = none,
                            .device = none,
                            .rank = 0,
                            .pid = 12,
                            .process = "boot/ns/12/5"};
    struct tp_type_spec types[] = {
        {.plugin = tp_str_of("p"), .type_name = tp_str_of("A")},
        {.plugin = tp_str_of("p"),
         .type_name = tp_str_of("B"),
         .unit = tp_str_of("GB/s"),
         .kind = TP_TYPE_COUNTER},
    };
    struct tp_buf b = {0};

    (void)state;
    assert_int_equal(tp_wire_write_producer(&s, "0a", TP_WIRE_NOW, &b, NULL), TP_OK);
    assert_text(&b, "{\"id\":\"0a\",\"job\":\"j\",\"kind\":\"native\",\"rank\":0,"
                    "\"host\":\"h\",\"pid\":12,\"process\":\"boot/ns/12/5\"}");
    assert_int_equal(
        tp_wire_write_producer(&s, "0a", TP_WIRE_NO_PROCESS_KEYS, &b, NULL), TP_OK);
    assert_text(&b, "{\"job\":\"j\",\"kind\":\"native\",\"rank\":0,\"host\":\"h\","
                    "\"pid\":12}");
    assert_int_equal(tp_wire_write_producer(&s, "0a", TP_WIRE_NO_IDS, &b, NULL), TP_OK);
    assert_text(&b, "{\"job\":\"j\",\"kind\":\"native\",\"rank\":0,\"host\":\"h\","
                    "\"pid\":12,\"process\":\"boot/ns/12/5\"}");
    assert_int_equal(tp_wire_write_types("j", types, 2, &b, NULL), TP_OK);
    assert_text(&b, "{\"job\":\"j\",\"types\":[{\"plugin\":\"p\",\"type_name\":\"A\"},"
                    "{\"plugin\":\"p\",\"type_name\":\"B\",\"unit\":\"GB/s\",\"kind\":"
                    "\"counter\"}]}");
}

static void test_orders_are_read_and_unknown_ones_passed_over(void **state)
{
    static const char body[] =
        "{\"commands\": [{\"command\":\"dance\",\"trace_id\":\"t\"},"
        "{\"command\":\"prepare\",\"trace_id\":\"t-1_x\",\"stream\":3,\"types\":[0, 57,"
        "255],\"min_duration_ns\":20,\"start_step\":9,\"duration_ms\":7000,\"news\":{"
        "\"a\":[1]}},"
        "{\"command\":\"start\",\"trace_id\":\"t\",\"start_at\":"
        "\"1970-01-01T00:00:01Z\",\"steps\":4},"
        "{\"command\":\"stop\",\"trace_id\":\"t\"}],\"seq\":31,"
        "\"server_received_at\":\"1970-01-01T00:00:00.5Z\",\"server_sent_at\":"
        "\"1970-01-01T00:00:00.6Z\"}";
    struct tp_orders o;

    (void)state;
    assert_int_equal(tp_wire_read_orders(tp_str_of(body), &o, NULL), TP_OK);
    assert_int_equal(o.n, 3);
    assert_int_equal(o.seq, 31);
    assert_int_equal(o.items[0].kind, TP_ORDER_PREPARE);
    assert_string_equal(o.items[0].trace_id, "t-1_x");
    assert_int_equal(o.items[0].stream_no, 3);
    assert_int_equal(tp_typeset_count(&o.items[0].types), 3);
    assert_true(tp_typeset_has(&o.items[0].types, 57));
    assert_int_equal(o.items[0].min_duration_ns, 20);
    assert_int_equal(o.items[0].start_step, 9);
    assert_int_equal(o.items[0].duration_ms, 7000);
    assert_int_equal(o.items[1].start_at_ns, 1000000000);
    assert_int_equal(o.items[1].steps, 4);
    assert_int_equal(o.items[2].kind, TP_ORDER_STOP);
    assert_int_equal(o.server_received_ns, 500000000);
    assert_int_equal(o.server_sent_ns, 600000000);
}

static void test_answers_that_are_none_are_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "[]",
        "{}",
        "null",
        "{\"commands\":{}}",
        "{\"commands\":[{}]}",
        "{\"commands\":[{\"command\":\"stop\"}]}",
        "{\"commands\":[{\"command\":\"stop\",\"trace_id\":\"../x\"}]}",
        "{\"commands\":[{\"command\":\"prepare\",\"trace_id\":\"t\"}]}",
        "{\"commands\":[{\"command\":\"prepare\",\"trace_id\":\"t\",\"types\":[256]}]}",
        "{\"commands\":[{\"command\":\"prepare\",\"trace_id\":\"t\",\"types\":[{}]}]}",
    };
    unsigned ids[2];
    char id[TP_WIRE_ID_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tp_orders o;
        struct tp_err err = {0};

        if (tp_wire_read_orders(tp_str_of(rows[i]), &o, &err) != TP_EINVAL ||
            err.message[0] == '\0')
            fail_msg("%s was read", rows[i]);
    }
    assert_int_equal(tp_wire_read_id(tp_str_of("{\"id\":7}"), id, NULL), TP_EINVAL);
    assert_int_equal(tp_wire_read_id(tp_str_of("{\"id\":\"a/b\"}"), id, NULL),
                     TP_EINVAL);
    assert_int_equal(tp_wire_read_id(tp_str_of("{\"id\":\"ab-1\"}"), id, NULL), TP_OK);
    assert_string_equal(id, "ab-1");
    assert_int_equal(tp_wire_read_types(tp_str_of(
                                            "{\"types\":[{\"id\":57},{\"id\":60}]}"),
                                        2, ids, NULL),
                     TP_OK);
    assert_int_equal(ids[1], 60);
    assert_int_equal(tp_wire_read_types(tp_str_of("{\"types\":[{\"id\":57}]}"), 2, ids,
                                        NULL),
                     TP_EINVAL);
}

/* Every beginning of a good answer is read or refused, and never read beyond. */
static void test_cut_answers_are_never_read_beyond(void **state)
{
    static const char body[] =
        "{\"commands\":[{\"command\":\"prepare\",\"trace_id\":\"t\",\"types\":[1,2]}]}";

    (void)state;
    for (size_t n = 0; n < sizeof(body) - 1; n++) {
        char *copy = malloc(n + 1);
        struct tp_orders o;

        assert_non_null(copy);
        memcpy(copy, body, n);
        tp_wire_read_orders((struct tp_str){copy, n}, &o, NULL);
        free(copy);
    }
}

static void test_a_problem_is_known_by_its_name(void **state)
{
    struct tp_str p = tp_wire_problem(
        tp_str_of("{\"type\":\"urn:traceplane:problem:registry-frozen\",\"id\":0}"));

    (void)state;
    assert_true(tp_str_is(p, "registry-frozen"));
    assert_int_equal(tp_wire_problem(tp_str_of("<html>")).len, 0);
}

static void test_writing_survives_every_allocation_failure(void **state)
{
    struct tp_report r = {.wait_ms = 1, .has_step = true};

    (void)state;
    for (int n = 0;; n++) {
        struct tp_buf b = {0};
        int rc;

        fault_arm(n);
        rc = tp_wire_write_report(&r, &b, NULL);
        tp_buf_fini(&b);
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
        cmocka_unit_test(test_a_report_that_says_nothing_is_a_wait),
        cmocka_unit_test(test_a_report_says_acks_counts_step_and_times),
        cmocka_unit_test(test_registrations_leave_out_what_is_not_known),
        cmocka_unit_test(test_orders_are_read_and_unknown_ones_passed_over),
        cmocka_unit_test(test_answers_that_are_none_are_refused),
        cmocka_unit_test(test_cut_answers_are_never_read_beyond),
        cmocka_unit_test(test_a_problem_is_known_by_its_name),
        cmocka_unit_test(test_writing_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
