/*
 * emit_post.c - a linked process that records half a million slices a second while a
 * trace runs, for bench/emit.py: what its agent costs, from the rings to the answer.
 *
 *     emit_post SLICES [THREADS]     the service is that of TRACEPLANE_URL
 *
 * Prints "ready" when the service knows it, waits for a trace, records SLICES slices on
 * each thread, flushes, and prints lines "name value unit". The first quarter is not
 * measured: it touches memory for the first time. Threads wait when their ring is full,
 * so that nothing is dropped however slow the machine is.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <traceplane/traceplane.h>

#define THREADS_MAX 16
#define BLOCK_US 1000000u
#define FLUSH_MS 60000u
#define TURN 5000u /* slices between two pauses */
#define TURN_NS 10000000

static struct tp_client *client = &tp_client_off;
static unsigned kernel = TP_TYPE_NONE;
static uint32_t n_slices;

static double cpu_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void die(const char *what, const struct tp_err *err)
{
    fprintf(stderr, "emit_post: %s: %s\n", what, err->message);
    exit(1);
}

static void *record(void *arg)
{
    const struct timespec pause = {0, TURN_NS};
    double *spent = arg;
    double begin = cpu_ns(CLOCK_THREAD_CPUTIME_ID);

    for (uint32_t i = 0; i < n_slices; i++) {
        TP_BEGIN(client, kernel, "matmul", TP_INT("rows", i));
        TP_END(client, kernel);
        if (i % TURN == TURN - 1)
            nanosleep(&pause, NULL);
    }
    *spent = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    return NULL;
}

/* Wait until something is so, looking every millisecond. */
static void wait_until(bool (*is_so)(void))
{
    const struct timespec pause = {0, 1000000};

    while (!is_so())
        nanosleep(&pause, NULL);
}

static bool is_registered(void)
{
    struct tp_stats stats;

    tp_get_stats(client, &stats, sizeof(stats));
    return stats.is_registered;
}

static bool is_recording(void)
{
    return tp_enabled(client, kernel) != 0;
}

/* All threads record n slices and all is sent. Returns the CPU time that the rest of
 * the process took. */
static double run(uint32_t n, unsigned n_threads)
{
    pthread_t threads[THREADS_MAX];
    double spent[THREADS_MAX];
    double used = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    struct tp_err err;

    n_slices = n;
    for (unsigned i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, record, &spent[i]);
    for (unsigned i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    if (tp_flush(client, FLUSH_MS, &err) != TP_OK)
        die("tp_flush", &err);
    used = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
    for (unsigned i = 0; i < n_threads; i++)
        used -= spent[i];
    return used;
}

int main(int argc, char **argv)
{
    unsigned n_threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .when_full = TP_FULL_BLOCK,
                                 .block_us = BLOCK_US,
                                 .backlog_bytes = (size_t)1 << 30};
    struct tp_stats stats;
    struct tp_err err;
    uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    double used;

    if (n == 0 || n_threads < 1 || n_threads > THREADS_MAX) {
        fprintf(stderr, "usage: emit_post SLICES [THREADS]\n");
        return 2;
    }
    if (tp_open(&options, &client, &err) != TP_OK)
        die("tp_open", &err);
    if (tp_register_type(client, "bench", "KERNEL", TP_KIND_SLICE, NULL, &kernel,
                         &err) != TP_OK)
        die("tp_register_type", &err);
    wait_until(is_registered);
    printf("ready\n");
    fflush(stdout);
    wait_until(is_recording);
    run(n / 4, n_threads);
    used = run(n, n_threads);
    tp_get_stats(client, &stats, sizeof(stats));
    printf("agent %.2f ns\n", used / n / n_threads);
    printf("sent %llu events\ndropped %llu events\n", (unsigned long long)stats.sent,
           (unsigned long long)(stats.dropped_ring_full + stats.dropped_backlog +
                                stats.dropped_after_stop + stats.dropped_refused +
                                stats.dropped_too_large));
    tp_close(client);
    return 0;
}
