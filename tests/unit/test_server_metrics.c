/*
 * The text of /metrics: what was counted is in it, once, under the right labels. That
 * the whole is what Prometheus reads is promtool's word, in tests/e2e.
 */
#include "server/metrics.h"

#include <stdio.h>

#include "api/rest.h"
#include "support/engine_test.h"
#include "support/fault.h"

#define MS UINT64_C(1000000)

static struct tp_metrics *new_metrics(void)
{
    struct tp_metrics *m = calloc(1, sizeof(*m));

    assert_non_null(m);
    return m;
}

/* The whole text, which the caller frees. */
static char *text_of(struct rig *r, struct tp_metrics *m)
{
    struct tp_buf out = {0};

    assert_int_equal(tp_metrics_write(m, r->engine, "1.2.3", &out, &r->err), TP_OK);
    assert_int_equal(tp_buf_append(&out, "", 1, &r->err), TP_OK);
    return out.data;
}

static const struct tp_route *route_of(const char *operation)
{
    size_t n;
    const struct tp_route *routes = tp_rest_routes(&n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(routes[i].operation, operation) == 0)
            return &routes[i];
    fail_msg("no operation %s", operation);
    return NULL;
}

static void expect_line(const char *text, const char *line)
{
    char whole[256];

    snprintf(whole, sizeof(whole), "\n%s\n", line);
    if (strstr(text, whole) == NULL)
        fail_msg("'%s' is missing", line);
}

static void test_requests_are_counted_by_operation_and_status(void **state)
{
    struct rig *r = *state;
    struct tp_metrics *m = new_metrics();
    char *text;

    tp_metrics_request(m, route_of("createTrace"), 201, MS, 100, 1000);
    tp_metrics_request(m, route_of("createTrace"), 201, MS, 20, 200);
    tp_metrics_request(m, route_of("createTrace"), 409, MS, 3, 30);
    tp_metrics_request(m, route_of("createTrace"), 299, MS, 0, 0);
    tp_metrics_request(m, NULL, 404, MS, 0, 4);
    text = text_of(r, m);
    expect_line(text, "traceplane_http_requests_total{operation=\"createTrace\","
                      "status=\"201\"} 2");
    expect_line(text, "traceplane_http_requests_total{operation=\"createTrace\","
                      "status=\"409\"} 1");
    expect_line(text, "traceplane_http_requests_total{operation=\"createTrace\","
                      "status=\"other\"} 1");
    expect_line(text, "traceplane_http_requests_total{operation=\"none\","
                      "status=\"404\"} 1");
    expect_line(text, "traceplane_http_received_bytes_total 123");
    expect_line(text, "traceplane_http_sent_bytes_total 1234");
    expect_line(text, "traceplane_build_info{version=\"1.2.3\"} 1");
    assert_null(strstr(text, "status=\"500\""));
    free(text);
    free(m);
}

static void test_each_duration_is_in_its_bucket_and_all_above(void **state)
{
    struct rig *r = *state;
    struct tp_metrics *m = new_metrics();
    const struct tp_route *route = route_of("listTypes");
    char *text;

    tp_metrics_request(m, route, 200, 0, 0, 0);
    tp_metrics_request(m, route, 200, 50000, 0, 0); /* a bound belongs to its bucket */
    tp_metrics_request(m, route, 200, 50001, 0, 0);
    tp_metrics_request(m, route, 200, 61000 * MS, 0, 0); /* beyond the last bound */
    text = text_of(r, m);
#define SERIES "traceplane_http_request_duration_seconds"
    expect_line(text, SERIES "_bucket{operation=\"listTypes\",le=\"5e-05\"} 2");
    expect_line(text, SERIES "_bucket{operation=\"listTypes\",le=\"0.0001\"} 3");
    expect_line(text, SERIES "_bucket{operation=\"listTypes\",le=\"60\"} 3");
    expect_line(text, SERIES "_bucket{operation=\"listTypes\",le=\"+Inf\"} 4");
    expect_line(text, SERIES "_sum{operation=\"listTypes\"} 61.000100001");
    expect_line(text, SERIES "_count{operation=\"listTypes\"} 4");
    assert_null(strstr(text, SERIES "_count{operation=\"none\"}"));
    free(text);
    free(m);
}

/* The last row of the arrays is for requests without a route. */
static void test_each_route_has_a_row_of_its_own(void **state)
{
    size_t n;

    (void)state;
    tp_rest_routes(&n);
    assert_true(n < TP_METRICS_ROUTES);
}

static void test_gauges_never_show_less_than_nothing(void **state)
{
    struct rig *r = *state;
    struct tp_metrics *m = new_metrics();
    char *text;

    m->connections = 7;
    m->waiting = -1; /* counted up and down by several threads: it may look so */
    m->watches = 2;
    m->refused = 3;
    m->broken_off = 4;
    text = text_of(r, m);
    expect_line(text, "traceplane_http_connections 7");
    expect_line(text, "traceplane_http_waiting 0");
    expect_line(text, "traceplane_http_watches 2");
    expect_line(text, "traceplane_http_connections_refused_total 3");
    expect_line(text, "traceplane_http_broken_off_total 4");
    free(text);
    free(m);
}

/* How many lines begin with that; labelled samples count like others. */
static size_t count_lines(const char *text, const char *begin)
{
    size_t n = 0;

    for (const char *p = text; p != NULL && *p != '\0';) {
        if (strncmp(p, begin, strlen(begin)) == 0)
            n++;
        p = strchr(p, '\n');
        p = p == NULL ? NULL : p + 1;
    }
    return n;
}

static void test_each_number_of_the_engine_is_shown(void **state)
{
    struct rig *r = *state;
    struct tp_metrics *m = new_metrics();
    char *text = text_of(r, m);
    size_t of_server = count_lines(text, "traceplane_http_") +
                       count_lines(text, "traceplane_kineto_") +
                       count_lines(text, "traceplane_build_info");

    assert_int_equal(count_lines(text, "traceplane_") - of_server,
                     sizeof(struct tp_engine_stats) / sizeof(uint64_t));
    free(text);
    free(m);
}

/* A gauge that is 0 because nobody wants Kineto processes would be an alarm. */
static void test_whether_kineto_files_are_usable_is_said_when_they_are_wanted(
    void **state)
{
    const struct tp_kineto_opts opts = {.trace_dir = "/tmp/tp", .root_dir = "/tmp"};
    struct rig *r = *state;
    struct tp_metrics *m = new_metrics();
    char *text = text_of(r, m);

    assert_int_equal(count_lines(text, "traceplane_kineto_files_usable"), 0);
    free(text);
    r->kineto = &opts;
    assert_int_equal(rig_restart(r), TP_OK);
    text = text_of(r, m);
    expect_line(text, "traceplane_kineto_files_usable 1");
    expect_line(text, "traceplane_kineto_sockets_usable 1");
    free(text);
    tp_engine_kineto_set_files(r->engine, "its folder is gone");
    tp_engine_kineto_set_sockets(r->engine, "the name is taken");
    text = text_of(r, m);
    expect_line(text, "traceplane_kineto_sockets_usable 0");
    expect_line(text, "traceplane_kineto_files_usable 0");
    free(text);
    free(m);
}

static void test_the_engine_is_asked_when_somebody_reads(void **state)
{
    struct rig *r = *state;
    struct tp_metrics *m = new_metrics();
    char id[TP_TRACE_ID_BYTES];
    char *text = text_of(r, m);

    expect_line(text, "traceplane_active_traces 0");
    free(text);
    assert_int_equal(rig_create(r, "job", NULL, id), TP_OK);
    text = text_of(r, m);
    expect_line(text, "traceplane_active_traces 1");
    expect_line(text, "traceplane_traces_created_total 1");
    free(text);
    free(m);
}

/* Prometheus refuses a name whose samples do not follow each other. */
static void test_each_name_is_introduced_once(void **state)
{
    struct rig *r = *state;
    struct tp_metrics *m = new_metrics();
    char *text = text_of(r, m);
    size_t n_names = 0;

    for (char *p = strstr(text, "# TYPE "); p != NULL; p = strstr(p + 1, "# TYPE ")) {
        char head[160];
        size_t len = strcspn(p + 7, " ");

        snprintf(head, sizeof(head), "# TYPE %.*s ", (int)len, p + 7);
        if (count_lines(text, head) != 1)
            fail_msg("'%s' is there more than once", head);
        n_names++;
    }
    assert_true(n_names > 20);
    assert_int_equal(count_lines(text, "# HELP "), n_names);
    free(text);
    free(m);
}

static void test_a_limit_and_want_of_memory_are_told(void **state)
{
    struct rig *r = *state;
    struct tp_metrics *m = new_metrics();
    struct tp_buf small = {.limit_bytes = 1000};

    assert_int_equal(tp_metrics_write(m, r->engine, "1", &small, &r->err), TP_EQUOTA);
    tp_buf_fini(&small);
    for (int n = 0;; n++) {
        struct tp_buf out = {0};
        int rc;

        fault_arm(n);
        rc = tp_metrics_write(m, r->engine, "1", &out, &r->err);
        tp_buf_fini(&out);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            break;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_requests_are_counted_by_operation_and_status),
        engine_test(test_each_duration_is_in_its_bucket_and_all_above),
        cmocka_unit_test(test_each_route_has_a_row_of_its_own),
        engine_test(test_gauges_never_show_less_than_nothing),
        engine_test(test_each_number_of_the_engine_is_shown),
        engine_test(test_whether_kineto_files_are_usable_is_said_when_they_are_wanted),
        engine_test(test_the_engine_is_asked_when_somebody_reads),
        engine_test(test_each_name_is_introduced_once),
        engine_test(test_a_limit_and_want_of_memory_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
