/*
 * ranks.c - several processes that compute together and meet at a barrier in each step,
 * as the ranks of a training job do.
 *
 * ranks [--ranks N] [--seconds S] [--slow RANK]
 *
 * Each process is a rank with a client of its own, and an imagined device whose kernels
 * have a track beside the threads. Rank 0 decides when to end. In the merged trace
 * all waits of a step end at the same moment, and the slow rank is the one that does
 * not wait:
 *
 *     curl -d '{"job": "ranks", "stop": {"duration_ms": 1000}}' localhost:8750/traces
 *     curl -O localhost:8750/traces/ID/download
 */
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <traceplane/traceplane.h>
#include <unistd.h>

#define MAX_RANKS 64
#define COMPUTE_US 3000
#define SLOW_FACTOR 3
#define NS_PER_S 1000000000u
#define DEVICE_STREAM 7

/* What the processes share. */
struct shared {
    pthread_barrier_t barrier;
    bool is_ending; /* written by rank 0 between barriers */
};

static struct {
    int ranks, seconds, slow;
} run = {.ranks = 4, .seconds = 10, .slow = 1};

/* What one rank records with. */
struct rank {
    int number;
    struct shared *shared;
    struct tp_client *client;
    unsigned compute, barrier, kernel; /* types */
    uint32_t track;                    /* of the imagined device */
};

static void pause_us(unsigned us)
{
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};

    nanosleep(&t, NULL);
}

/* A kernel that was launched at launched_ns: its end is known afterwards, as a device
 * tells it. An arrow leads to it from the slice that is open here. */
static void record_kernel(const struct rank *r, uint64_t launched_ns, uint64_t step)
{
    struct tp_interval when = {.start_ns = launched_ns + 20000,
                               .duration_ns = tp_now() - launched_ns - 20000,
                               .track = r->track};
    uint64_t id = (uint64_t)r->number << 32 | step;
    struct tp_flow_point from = {.id = id,
                                 .phase = TP_PHASE_START,
                                 .time_ns = launched_ns};
    struct tp_flow_point to = {
        .id = id, .phase = TP_PHASE_END, .track = r->track, .time_ns = when.start_ns};

    TP_COMPLETE(r->client, r->kernel, "matmul", &when, TP_INT("step", step));
    if (TP_IS_ON(r->client, r->kernel)) {
        tp_flow(r->client, r->kernel, TP_NAME("launch"), &from);
        tp_flow(r->client, r->kernel, TP_NAME("launch"), &to);
    }
}

static void compute(const struct rank *r, uint64_t step)
{
    unsigned us = COMPUTE_US + (unsigned)(step * 7919 % 1000);
    uint64_t launched_ns;

    TP_BEGIN(r->client, r->compute, "compute", TP_INT("step", step));
    launched_ns = tp_now();
    pause_us(r->number == run.slow ? SLOW_FACTOR * us : us);
    record_kernel(r, launched_ns, step);
    TP_END(r->client, r->compute);
}

/* One step; false when it was the last. */
static bool do_step(const struct rank *r, uint64_t end_ns)
{
    uint64_t step = tp_step(r->client);
    bool is_last;

    compute(r, step);
    if (r->number == 0)
        r->shared->is_ending = tp_now() > end_ns;
    TP_BEGIN(r->client, r->barrier, "barrier", TP_INT("step", step));
    pthread_barrier_wait(&r->shared->barrier);
    TP_END(r->client, r->barrier);
    is_last = r->shared->is_ending;
    /* Rank 0 must not write before all have read. */
    pthread_barrier_wait(&r->shared->barrier);
    return !is_last;
}

static void register_types(struct rank *r)
{
    struct {
        const char *name;
        unsigned *type;
    } wanted[] = {{"COMPUTE", &r->compute},
                  {"BARRIER", &r->barrier},
                  {"KERNEL", &r->kernel}};
    struct tp_err err = {0};

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        *wanted[i].type = TP_TYPE_NONE;
        if (tp_register_type(r->client, "ranks", wanted[i].name, TP_KIND_SLICE, NULL,
                             wanted[i].type, &err) != TP_OK)
            fprintf(stderr, "rank %d: %s\n", r->number, err.message);
    }
}

static int run_rank(int number, struct shared *shared)
{
    struct rank r = {.number = number, .shared = shared, .client = &tp_client_off};
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .job = "ranks",
                                 .has_rank = true,
                                 .rank = (uint32_t)number,
                                 .world_size = (uint32_t)run.ranks,
                                 .backend = "ranks"};
    uint64_t end_ns = tp_now() + (uint64_t)run.seconds * NS_PER_S;
    struct tp_err err = {0};

    if (tp_open(&options, &r.client, &err) != TP_OK)
        fprintf(stderr, "rank %d: not traceable: %s\n", number, err.message);
    register_types(&r);
    r.track = tp_device_track((uint32_t)number, DEVICE_STREAM);
    while (do_step(&r, end_ns))
        ;
    tp_close(r.client);
    return 0;
}

static struct shared *share(void)
{
    struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t attr;

    if (s == MAP_FAILED || pthread_barrierattr_init(&attr) != 0)
        return NULL;
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    if (pthread_barrier_init(&s->barrier, &attr, (unsigned)run.ranks) != 0)
        return NULL;
    pthread_barrierattr_destroy(&attr);
    return s;
}

static bool parse(int argc, char **argv)
{
    static const struct option options[] = {{"ranks", 1, NULL, 'r'},
                                            {"seconds", 1, NULL, 's'},
                                            {"slow", 1, NULL, 'l'},
                                            {0}};
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        int *value = c == 'r'   ? &run.ranks
                     : c == 's' ? &run.seconds
                     : c == 'l' ? &run.slow
                                : NULL;

        if (value == NULL)
            return false;
        *value = (int)strtol(optarg, NULL, 10);
    }
    return optind == argc && run.ranks >= 1 && run.ranks <= MAX_RANKS;
}

int main(int argc, char **argv)
{
    struct shared *shared;
    int status, worst = 0;

    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: ranks [--ranks N] [--seconds S] [--slow RANK]\n");
        return 2;
    }
    shared = share();
    if (shared == NULL) {
        fprintf(stderr, "ranks: no shared memory\n");
        return 1;
    }
    for (int i = 0; i < run.ranks; i++) {
        pid_t child = fork();

        if (child == 0)
            exit(run_rank(i, shared));
        if (child < 0)
            return 1;
    }
    while (wait(&status) > 0)
        worst = status != 0 ? 1 : worst;
    return worst;
}
