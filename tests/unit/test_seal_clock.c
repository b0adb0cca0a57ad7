/*
 * Producers whose clocks are off and drift come out aligned, within the bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/fault.h"
#include "support/native_rig.h"
#include "support/stream_rig.h"

#define S INT64_C(1000000000)
#define NOW (INT64_C(1790000000) * S)
#define SECONDS 60

/* A clock that is off and drifts. */
struct clock {
    int64_t offset_ns;
    int64_t ppm;
};

static int64_t shows(const struct clock *c, int64_t at)
{
    return at + c->offset_ns + (at - NOW) / 1000000 * c->ppm;
}

static struct stream_rig new_stream(void)
{
    return (struct stream_rig){
        .opts = {.form = TP_INGEST_PERFETTO, .encoding = TP_INGEST_IDENTITY}};
}

/* Post a batch a second: a slice that begins with it and one within, with what the
 * exchange of that second has found. Every third batch has something odd. */
static void record(struct stream_rig *stream, const struct clock *c)
{
    struct native_rig batch = {0};
    struct tp_err err = {0};

    for (int i = 0; i < SECONDS; i++) {
        int64_t at = NOW + i * S;
        struct tp_native_clock reading = {
            .producer_ns = (uint64_t)shows(c, at - i % 5 * S),
            .server_ns = (uint64_t)(at - i % 5 * S + 30000 - i * 1000),
            .error_ns = 30000};
        int64_t end = shows(c, at + S / 2);

        native_rig_begin(&batch, 1, &reading);
        native_rig_slice(&batch, "kernel", i % 3 == 0 ? "out\xff" : "outer", 0,
                         shows(c, at), end - shows(c, at));
        native_rig_slice(&batch, "kernel", "inner", 0, shows(c, at + S / 4),
                         end - shows(c, at + S / 4));
        native_rig_end(&batch);
        if (stream_rig_post(stream, batch.bytes.data, batch.bytes.len, &err) != TP_OK)
            fail_msg("%s", err.message);
    }
    native_rig_fini(&batch);
    if (stream_rig_seal(stream, &err) != TP_OK)
        fail_msg("%s", err.message);
}

struct seen {
    int64_t worst_ns;
    int n, n_lanes;
};

static int look(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    struct seen *seen = arg;
    int64_t at = NOW + seen->n / 2 * S + (seen->n % 2) * (S / 4);
    int64_t off = ev->ts_ns - at,
            end_off = ev->ts_ns + ev->dur_ns - NOW - seen->n / 2 * S - S / 2;

    (void)err;
    seen->worst_ns = llabs(off) > seen->worst_ns ? llabs(off) : seen->worst_ns;
    seen->worst_ns = llabs(end_off) > seen->worst_ns ? llabs(end_off) : seen->worst_ns;
    seen->n_lanes += ev->track->lane != 0;
    seen->n++;
    return TP_OK;
}

static void test_clocks_an_hour_off_with_drift_come_out_within_the_bound(void **state)
{
    static const struct clock clocks[] = {
        {0, 0},           {3600 * S, 100},   {-3600 * S, 100},
        {3600 * S, -100}, {-3600 * S, -100}, {12345, 100}};

    (void)state;
    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
        struct stream_rig stream = new_stream();
        struct seen seen = {0};
        struct tp_err err = {0};

        record(&stream, &clocks[i]);
        assert_int_equal(stream_rig_each(&stream, look, &seen, &err), TP_OK);
        assert_int_equal(seen.n, 2 * SECONDS);
        assert_int_equal(seen.n_lanes, 0);
        assert_true(stream.sealed.index.n_clocks > 10);
        assert_true(stream.sealed.index.clock_error_ns < 100000);
        if ((uint64_t)seen.worst_ns > stream.sealed.index.clock_error_ns)
            fail_msg("clock %zu: %lld ns off, the bound is %llu", i,
                     (long long)seen.worst_ns,
                     (unsigned long long)stream.sealed.index.clock_error_ns);
        stream_rig_fini(&stream);
    }
}

/* What another sender posts to the same stream keeps its times. */
static void test_batches_of_others_are_not_moved(void **state)
{
    struct stream_rig stream = {0};
    struct tp_native_clock reading = {.producer_ns = 1000, .server_ns = 501000};
    const char *body = "[{\"ph\":\"X\",\"name\":\"json\",\"pid\":1,\"tid\":1,\"ts\":7,"
                       "\"dur\":1}]";
    struct native_rig batch = {0};
    struct tp_buf text = {0};
    struct tp_err err = {0};

    (void)state;
    native_rig_begin(&batch, 1, &reading);
    native_rig_slice(&batch, "kernel", "native", 0, 2000, 10);
    native_rig_end(&batch);
    assert_int_equal(stream_rig_post(&stream, body, strlen(body), &err), TP_OK);
    stream.opts.form = TP_INGEST_PERFETTO;
    assert_int_equal(stream_rig_post(&stream, batch.bytes.data, batch.bytes.len, &err),
                     TP_OK);
    assert_int_equal(stream_rig_seal(&stream, &err), TP_OK);
    assert_int_equal(stream_rig_text(&stream, &text, &err), TP_OK);
    assert_int_equal(tp_buf_append(&text, "", 1, &err), TP_OK);
    assert_string_equal(text.data, "X  json 1/1 7000+1000\n"
                                   "X kernel native 42/0 502000+10 n=5\n");
    tp_buf_fini(&text);
    native_rig_fini(&batch);
    stream_rig_fini(&stream);
}

static void test_index_keeps_the_readings(void **state)
{
    struct stream_rig stream = new_stream();
    struct clock c = {3600 * S, 100};
    struct tp_stream_index back = {0};
    struct tp_buf text = {0};
    struct tp_err err = {0};

    (void)state;
    record(&stream, &c);
    assert_int_equal(tp_stream_index_write(&stream.sealed.index, &text, &err), TP_OK);
    assert_int_equal(tp_stream_index_read(text.data, text.len, &back, &err), TP_OK);
    assert_int_equal(back.n_clocks, stream.sealed.index.n_clocks);
    assert_memory_equal(back.clocks, stream.sealed.index.clocks,
                        back.n_clocks * sizeof(*back.clocks));
    assert_int_equal(back.clock_error_ns, stream.sealed.index.clock_error_ns);
    tp_stream_index_fini(&back);
    tp_buf_fini(&text);
    stream_rig_fini(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clocks_an_hour_off_with_drift_come_out_within_the_bound),
        cmocka_unit_test(test_batches_of_others_are_not_moved),
        cmocka_unit_test(test_index_keeps_the_readings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
