/*
 * micro_seal.c - user time of sealing a log, in memory, on one core.
 *
 * Prints "micro_seal.<case> <n> ns/event" lines, best of several rounds: events of four
 * streams that come in order, the same shuffled, and with little memory for sorting.
 */
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "support/blob_mem.c"
#include "support/stream_rig.c"

#define EVENTS 5000
#define BODIES 20
#define ROUNDS 15

static double user_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec * 1e-6;
}

static void make_body(struct tp_buf *b, int first, int is_shuffled, struct tp_err *err)
{
    b->len = 0;
    tp_buf_append_str(b, "{\"traceEvents\":[", err);
    for (int n = 0; n < EVENTS; n++) {
        int i = first + (is_shuffled ? (int)((unsigned)n * 2654435761u % EVENTS) : n);

        tp_buf_printf(
            b, err,
            "%s\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm_%02d_bf16\","
            "\"pid\":0,\"tid\":%d,\"ts\":%d.%03d,\"dur\":4.250,\"args\":{"
            "\"device\":0,\"stream\":%d,\"correlation\":%d,\"External id\":"
            "%d,\"bytes\":1048576}}",
            n == 0 ? "" : ",", i % 64, i % 4 + 7, 4000000 + i * 5, i % 1000, i % 4 + 7,
            100000 + i, 100017 + i);
    }
    tp_buf_append_str(b, "]}", err);
}

static void fail(const struct tp_err *err)
{
    fprintf(stderr, "micro_seal: %s\n", err->message);
    exit(1);
}

/* Every event that was posted is in the sealed stream. */
static void check(const char *name, const struct tp_counts *c)
{
    const uint64_t n = (uint64_t)EVENTS * BODIES;

    if (c->emitted == n && c->stored == n)
        return;
    fprintf(stderr, "micro_seal: %s: %llu events: %llu emitted, %llu stored\n", name,
            (unsigned long long)n, (unsigned long long)c->emitted,
            (unsigned long long)c->stored);
    exit(1);
}

static void run(const char *name, int is_shuffled, size_t memory_bytes)
{
    struct stream_rig rig = {.seal_opts = {.memory_bytes = memory_bytes}};
    struct tp_buf body = {0};
    struct tp_err err = {0};
    double best = 1e9;

    for (int i = 0; i < BODIES; i++) {
        make_body(&body, i * EVENTS, is_shuffled, &err);
        if (stream_rig_post(&rig, body.data, body.len, &err) != TP_OK)
            fail(&err);
    }
    for (int i = 0; i < ROUNDS; i++) {
        double start = user_s();

        if (stream_rig_seal(&rig, &err) != TP_OK)
            fail(&err);
        start = (user_s() - start) / EVENTS / BODIES * 1e9;
        best = start < best ? start : best;
        check(name, &rig.counts);
        tp_seal_result_fini(&rig.sealed);
    }
    printf("micro_seal.%s %.0f ns/event\n", name, best);
    tp_buf_fini(&body);
    stream_rig_fini(&rig);
}

int main(void)
{
    /* Memory that is touched for the first time is dear on virtual machines, and a
     * service that runs for days does not: keep what was freed. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    run("in_order", 0, 64 << 20);
    run("shuffled", 1, 64 << 20);
    run("spilled", 1, 4 << 20);
    return 0;
}
