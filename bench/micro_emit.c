/*
 * micro_emit.c - what recording costs the thread that records, and the agent.
 *
 *     micro_emit [EVENTS [THREADS]]     default 2000000 events of each kind, 1 thread
 *
 * Threads record bursts that fit into their rings; between bursts the rings are drained
 * into batches as the agent does it. Both are measured in CPU time of the thread, so
 * other work on the machine does not count. What that does to caches and clock rates
 * does, for tenths of a second at a time: so the kinds take turns in short rounds, and
 * each number is the median of the rounds. What an argument costs is the difference of
 * two kinds in the same round. Prints a line "name value unit" for each number, and
 * fails when an event is missing.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <traceplane/traceplane.h>

#include "base/buf.h"
#include "producer/drain.h"
#include "producer/recorder.h"

#define BURST 20000u /* events, of seven words at most: what a ring of 2 MiB holds */
#define RING_BYTES ((size_t)2 << 20)
#define ROUNDS 10u
#define WARM_UP 15u /* bursts that touch all of a ring for the first time, unmeasured */
#define WARM_UP_AGAIN 2u /* in later rounds */
#define THREADS_MAX 16

static struct tp_client *client;
static unsigned kernel = TP_TYPE_NONE;
static uint64_t n_emitted;

static double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void die(const struct tp_err *err)
{
    fprintf(stderr, "micro_emit: %s\n", err->message);
    exit(1);
}

/* The kinds: each records n events. The empty asm keeps the loops as they are. */
#define KIND(kind, body)                                   \
    static __attribute__((noinline)) void kind(uint32_t n) \
    {                                                      \
        for (uint32_t i = 0; i < n; i++) {                 \
            __asm__ volatile("" : : "r"(i) : "memory");    \
            body;                                          \
        }                                                  \
    }

KIND(empty, (void)0)
KIND(instant, TP_INSTANT(client, kernel, "mark"))
KIND(instant_1_int, TP_INSTANT(client, kernel, "mark", TP_INT("bytes", i)))
KIND(slice, TP_BEGIN(client, kernel, "matmul"); TP_END(client, kernel))
KIND(slice_1_int, TP_BEGIN(client, kernel, "matmul", TP_INT("rows", i));
     TP_END(client, kernel))
KIND(slice_2_ints,
     TP_BEGIN(client, kernel, "matmul", TP_INT("rows", i), TP_INT("n", 1));
     TP_END(client, kernel))
KIND(counter, TP_COUNTER(client, kernel, "bytes", 1.5))
KIND(read_clock, (void)tp_now())

struct kind {
    const char *name;
    void (*record)(uint32_t n);
    bool is_recorded;
};

static const struct kind kinds[] = {
    {"empty", empty, false},
    {"read_clock", read_clock, false},
    {"instant", instant, true},
    {"instant_1_int", instant_1_int, true},
    {"slice", slice, true},
    {"slice_1_int", slice_1_int, true},
    {"slice_2_ints", slice_2_ints, true},
    {"counter", counter, true},
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* What a kind costs in each round, for an event. */
struct costs {
    double thread_ns[ROUNDS], agent_ns[ROUNDS];
    double bytes;
};

/* Threads and the drain in turns. */
struct bench {
    pthread_barrier_t turn;
    void (*record)(uint32_t n);
    uint32_t n_bursts, n_warm_up;
    double spent_ns[THREADS_MAX];
};

struct worker {
    struct bench *bench;
    unsigned index;
    pthread_t thread;
};

static void *run_worker(void *arg)
{
    struct worker *w = arg;
    struct bench *b = w->bench;

    for (uint32_t i = 0; i < b->n_bursts; i++) {
        double begin;

        pthread_barrier_wait(&b->turn);
        begin = cpu_ns();
        b->record(BURST);
        if (i >= b->n_warm_up)
            b->spent_ns[w->index] += cpu_ns() - begin;
        pthread_barrier_wait(&b->turn);
    }
    return NULL;
}

/* Drain all rings; adds to the events and bytes that came out. Returns the time. */
static double drain(struct tp_recorder *r, struct tp_buf *out, uint64_t *n_events,
                    uint64_t *n_bytes)
{
    const struct tp_drain_opts opts = {.stream_no = 1};
    struct tp_drain_result result;
    struct tp_err err;
    double begin = cpu_ns();

    do {
        out->len = 0;
        if (tp_recorder_drain(r, &opts, out, &result, &err) != TP_OK)
            die(&err);
        *n_events += result.by_type[kernel];
        *n_bytes += out->len;
    } while (result.has_more);
    return cpu_ns() - begin;
}

static void check(struct tp_recorder *r, uint64_t n_expected, uint64_t n_events)
{
    static struct tp_recorder_totals totals;
    uint64_t n_dropped = 0;

    tp_recorder_totals(r, &totals);
    for (int i = 0; i < TP_DROP_CAUSES; i++)
        n_dropped += totals.dropped[i][kernel];
    if (n_events == n_expected && totals.emitted[kernel] == n_expected &&
        n_dropped == 0)
        return;
    fprintf(stderr,
            "micro_emit: %llu recorded, %llu emitted, %llu kept, %llu dropped\n",
            (unsigned long long)n_expected, (unsigned long long)totals.emitted[kernel],
            (unsigned long long)n_events, (unsigned long long)n_dropped);
    exit(1);
}

/* Nanoseconds an event of a kind, for the threads and for the agent. */
static void run(struct tp_recorder *r, const struct kind *kind, unsigned round,
                uint32_t n, unsigned n_threads, bool is_on, struct costs *costs)
{
    const uint32_t n_warm_up = round == 0 ? WARM_UP : WARM_UP_AGAIN;
    struct bench b = {.record = kind->record,
                      .n_bursts = n / BURST + n_warm_up,
                      .n_warm_up = n_warm_up};
    struct worker workers[THREADS_MAX];
    struct tp_typeset types = {0};
    struct tp_buf out = {0};
    uint64_t n_events = 0;
    uint64_t n_bytes = 0;
    double spent = 0;
    double drained = 0;

    tp_typeset_add(&types, kernel);
    tp_recorder_arm(r, &types, 0);
    if (is_on)
        tp_recorder_start(r, tp_now());
    pthread_barrier_init(&b.turn, NULL, n_threads + 1);
    for (unsigned i = 0; i < n_threads; i++) {
        workers[i] = (struct worker){.bench = &b, .index = i};
        pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]);
    }
    for (uint32_t i = 0; i < b.n_bursts; i++) {
        pthread_barrier_wait(&b.turn);
        pthread_barrier_wait(&b.turn);
        drained += drain(r, &out, &n_events, &n_bytes);
    }
    for (unsigned i = 0; i < n_threads; i++) {
        pthread_join(workers[i].thread, NULL);
        spent += b.spent_ns[i];
    }
    pthread_barrier_destroy(&b.turn);
    tp_recorder_stop(r, 0);
    n_emitted = (uint64_t)b.n_bursts * BURST * n_threads;
    check(r, is_on && kind->is_recorded ? n_emitted : 0, n_events);
    costs->thread_ns[round] = spent /
                              ((double)(b.n_bursts - n_warm_up) * BURST * n_threads);
    if (n_events > 0) {
        costs->agent_ns[round] = drained / (double)n_events;
        costs->bytes = (double)n_bytes / (double)n_events;
    }
    tp_buf_fini(&out);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double *of)
{
    double sorted[ROUNDS];

    memcpy(sorted, of, sizeof(sorted));
    qsort(sorted, ROUNDS, sizeof(sorted[0]), compare);
    return (sorted[(ROUNDS - 1) / 2] + sorted[ROUNDS / 2]) / 2;
}

static void tell(const struct kind *kind, const char *prefix, const struct costs *c)
{
    printf("%s%s %.2f ns\n", prefix, kind->name, median(c->thread_ns));
    if (c->bytes == 0)
        return;
    printf("%s%s_agent %.2f ns\n", prefix, kind->name, median(c->agent_ns));
    printf("%s%s_size %.1f bytes\n", prefix, kind->name, c->bytes);
}

/* What an argument of a slice costs: of those of two, and of none. */
static void tell_argument(const struct costs *all)
{
    const struct costs *none = NULL, *two = NULL;
    double ns[ROUNDS];

    for (size_t i = 0; i < KINDS; i++) {
        none = kinds[i].record == slice ? &all[i] : none;
        two = kinds[i].record == slice_2_ints ? &all[i] : two;
    }
    if (none == NULL || two == NULL)
        return;
    for (unsigned i = 0; i < ROUNDS; i++)
        ns[i] = (two->thread_ns[i] - none->thread_ns[i]) / 2;
    printf("argument %.2f ns\n", median(ns));
}

/* All kinds, on or off. */
static void run_all(struct tp_recorder *r, const char *prefix, uint32_t n,
                    unsigned n_threads, bool is_on)
{
    static struct costs costs[KINDS];

    memset(costs, 0, sizeof(costs));
    for (unsigned round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < KINDS; i++)
            if (is_on || kinds[i].is_recorded || kinds[i].record == empty)
                run(r, &kinds[i], round, n / ROUNDS, n_threads, is_on, &costs[i]);
    for (size_t i = 0; i < KINDS; i++)
        if (is_on || kinds[i].is_recorded || kinds[i].record == empty)
            tell(&kinds[i], prefix, &costs[i]);
    if (is_on)
        tell_argument(costs);
}

int main(int argc, char **argv)
{
    uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 2000000;
    unsigned n_threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    struct tp_recorder_opts opts = {.ring_bytes = RING_BYTES};
    struct tp_recorder *r = NULL;
    struct tp_err err;

    if (n < BURST * ROUNDS || n_threads < 1 || n_threads > THREADS_MAX) {
        fprintf(stderr, "usage: micro_emit [EVENTS [THREADS]]\n");
        return 2;
    }
    if (tp_recorder_new(&opts, &r, &err) != TP_OK)
        die(&err);
    client = tp_recorder_client(r);
    if (tp_register_type(client, "bench", "KERNEL", TP_KIND_SLICE, NULL, &kernel,
                         &err) != TP_OK)
        die(&err);
    run_all(r, "off_", n, n_threads, false);
    run_all(r, "", n, n_threads, true);
    tp_recorder_free(r);
    return 0;
}
