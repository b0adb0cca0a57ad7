/*
 * micro_ingest.c - user time from a body of Kineto events to the payload of a frame.
 *
 * Prints "micro_ingest.<case> <n> ns/event" lines: the whole way of reading, filtering,
 * writing and check sum, in memory, on one core, best of several rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "core/filter.h"
#include "core/typemap.h"
#include "trace/ingest.h"

#define EVENTS 5000 /* of a body, near 1 MB */
#define ROUNDS 40

static double user_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec * 1e-6;
}

/* A body of kernels as Kineto writes them, 183 bytes each. */
static void make_body(struct tp_buf *b, struct tp_err *err)
{
    tp_buf_append_str(b, "{\"traceEvents\":[", err);
    for (int i = 0; i < EVENTS; i++)
        tp_buf_printf(
            b, err,
            "%s\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm_%02d_bf16\","
            "\"pid\":0,\"tid\":%d,\"ts\":%d.%03d,\"dur\":%d.250,\"args\":{"
            "\"device\":0,\"stream\":%d,\"correlation\":%d,\"External id\":"
            "%d,\"bytes\":1048576}}",
            i == 0 ? "" : ",", i % 64, i % 4 + 7, 4000000 + i * 5, i % 1000,
            100 + i % 900, i % 4 + 7, 100000 + i, 100017 + i);
    tp_buf_append_str(b, "]}", err);
}

/* Nothing is filtered here: all of a body must be kept. */
static void check(const struct tp_ingest_result *r)
{
    const struct tp_counts *c = &r->counts;

    if (c->emitted == EVENTS && c->stored == EVENTS)
        return;
    fprintf(stderr, "micro_ingest: %d events: %llu emitted, %llu stored\n", EVENTS,
            (unsigned long long)c->emitted, (unsigned long long)c->stored);
    exit(1);
}

static double run(const struct tp_buf *body, const struct tp_ingest_opts *opts)
{
    double best = 1e9;
    struct tp_err err;

    for (int i = 0; i < ROUNDS; i++) {
        double start = user_s();

        for (int j = 0; j < 4; j++) {
            const struct tp_ingest_result *r;
            struct tp_ingest *g;

            if (tp_ingest_new(opts, &g, &err) != TP_OK ||
                tp_ingest_feed(g, body->data, body->len, &err) != TP_OK ||
                tp_ingest_finish(g, &r, &err) != TP_OK) {
                fprintf(stderr, "micro_ingest: %s\n", err.message);
                exit(1);
            }
            check(r);
            tp_ingest_free(g);
        }
        start = (user_s() - start) / 4 / EVENTS * 1e9;
        best = start < best ? start : best;
    }
    return best;
}

int main(void)
{
    struct tp_ingest_opts opts = {.stream_no = 1, .spill_bytes = 64 << 20};
    struct tp_filter_spec spec = {.min_duration_ns = 1};
    struct tp_str items[] = {{"gemm_*", 6}};
    struct tp_filter *filter = NULL;
    struct tp_typemap *types = NULL;
    struct tp_buf body = {0};
    struct tp_err err = {0};

    make_body(&body, &err);
    printf("micro_ingest.bytes_per_event %zu bytes\n", body.len / EVENTS);
    printf("micro_ingest.plain %.0f ns/event\n", run(&body, &opts));
    spec.lists[TP_FILTER_NAMES_INCLUDE].items = items;
    spec.lists[TP_FILTER_NAMES_INCLUDE].n = 1;
    if (tp_typemap_new(NULL, &types, &err) != TP_OK ||
        tp_filter_new(&spec, NULL, NULL, &filter, NULL, &err) != TP_OK) {
        fprintf(stderr, "micro_ingest: %s\n", err.message);
        return 1;
    }
    opts.types = types;
    opts.filter = filter;
    printf("micro_ingest.filtered %.0f ns/event\n", run(&body, &opts));
    tp_filter_unref(filter);
    tp_typemap_unref(types);
    tp_buf_fini(&body);
    return 0;
}
