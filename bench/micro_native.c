/*
 * micro_native.c - CPU time from a batch of a linked producer to the payload of a
 * frame.
 *
 * Prints "micro_native.<case> <n> ns/event" lines: judging all of a batch that is 1 MiB
 * with the ends of its slices, which are added; of one that has them and is stored as
 * it came; and of one that goes the long way, with check sum, in memory, in pieces as a
 * socket gives them, on one core, best of several rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "core/typemap.h"
#include "support/native_form.h"
#include "trace/ingest.h"
#include "trace/native_batch.h"
#include "trace/pf_writer.h"

#define BATCH_BYTES ((1u << 20) - 256) /* about: what a producer sends at most */
#define PIECE_BYTES (32u << 10)
#define NAMES 300
#define THREADS 4
#define ROUNDS 40

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const struct tp_err *err)
{
    fprintf(stderr, "micro_native: %s\n", err->message);
    exit(1);
}

static void write_slice(struct tp_pf_writer *w, unsigned i, uint32_t n_args,
                        struct tp_buf *out)
{
    static struct tp_track tracks[THREADS];
    struct tp_arg args[2] = {
        {.key = {"bytes", 5, 1}, .kind = TP_ARG_INT, .i = 1048576},
        {.key = {"correlation", 11, 2}, .kind = TP_ARG_INT, .i = (int64_t)i}};
    char name[32];
    struct tp_track *track = &tracks[i % THREADS];
    struct tp_event ev = {.kind = TP_EVENT_SLICE,
                          .phase = 'X',
                          .ts_ns = 1795982590884123457LL + 1000LL * i,
                          .dur_ns = 500 + i % 1000,
                          .cat = {"cpu_op", 6, 1},
                          .track = track,
                          .args = args,
                          .n_args = n_args};
    struct tp_err err;

    *track = (struct tp_track){.index = i % THREADS,
                               .pid = {TP_ID_NUMBER, 4711, {NULL, 0}},
                               .tid = {TP_ID_NUMBER, 4711 + i % THREADS, {NULL, 0}}};
    snprintf(name, sizeof(name), "gemm_bf16_%03u", i % NAMES);
    ev.name = (struct tp_name){name, (uint32_t)strlen(name), 1 + i % NAMES};
    if (tp_pf_writer_event(w, &ev, out, &err) != TP_OK)
        die(&err);
}

/* A batch; returns how many events it has. */
static unsigned make_batch(struct tp_buf *out, uint32_t n_args, bool is_native,
                           bool has_ends)
{
    struct tp_pf_writer_opts opts = {.stream_no = 3};
    struct tp_native_head head = {.stream_no = 3};
    char bytes[TP_NATIVE_HEAD_BYTES] = {0};
    struct tp_pf_writer *w;
    struct tp_err err;
    unsigned n = 0;

    out->len = 0;
    if (tp_pf_writer_new(&opts, &w, &err) != TP_OK)
        die(&err);
    if (is_native && tp_buf_append(out, bytes, sizeof(bytes), &err) != TP_OK)
        die(&err);
    while (out->len < BATCH_BYTES)
        write_slice(w, n++, n_args, out);
    tp_pf_writer_free(w);
    head.n_events = n;
    if (is_native)
        tp_native_head_put(out->data, &head);
    if (!has_ends)
        native_form_leave_out_ends(out, 0);
    return n;
}

static void ingest(const struct tp_buf *body, const struct tp_ingest_opts *opts,
                   unsigned n)
{
    const struct tp_ingest_result *r = NULL;
    struct tp_ingest *g;
    struct tp_err err;
    int rc = tp_ingest_new(opts, &g, &err);

    for (size_t at = 0; rc == TP_OK && at < body->len; at += PIECE_BYTES)
        rc = tp_ingest_feed(g, body->data + at,
                            body->len - at < PIECE_BYTES ? body->len - at : PIECE_BYTES,
                            &err);
    if (rc == TP_OK)
        rc = tp_ingest_finish(g, &r, &err);
    if (rc != TP_OK)
        die(&err);
    if (r->counts.stored != n || r->counts.emitted != n) {
        fprintf(stderr, "micro_native: %u events became %llu\n", n,
                (unsigned long long)r->counts.stored);
        exit(1);
    }
    tp_ingest_free(g);
}

static void run(const char *what, uint32_t n_args, bool is_native, bool has_ends,
                const struct tp_ingest_opts *opts)
{
    struct tp_buf body = {0};
    unsigned n = make_batch(&body, n_args, is_native, has_ends);
    double best = 1e9;

    for (int i = 0; i < ROUNDS; i++) {
        double spent = cpu_s();

        for (int j = 0; j < 4; j++)
            ingest(&body, opts, n);
        spent = (cpu_s() - spent) / 4 / n * 1e9;
        best = spent < best ? spent : best;
    }
    printf("micro_native.%s_bytes %zu bytes/event\n", what, body.len / n);
    printf("micro_native.%s %.1f ns/event\n", what, best);
    tp_buf_fini(&body);
}

int main(void)
{
    struct tp_ingest_opts opts = {.form = TP_INGEST_PERFETTO,
                                  .encoding = TP_INGEST_IDENTITY,
                                  .stream_no = 3};
    struct tp_typemap *types = NULL;
    struct tp_err err = {0};

    if (tp_typemap_new(NULL, &types, &err) != TP_OK)
        die(&err);
    opts.types = types;
    run("bare", 0, true, false, &opts);
    run("two_args", 2, true, false, &opts);
    run("with_ends", 0, true, true, &opts);
    run("long_way", 0, false, false, &opts);
    tp_typemap_unref(types);
    return 0;
}
