/*
 * skewed.c - a program that is linked with the library and whose clocks are wrong.
 *
 *     skewed SHIFT_S DRIFT_PPM
 *
 * The wall clock that the library reads is SHIFT_S seconds ahead of the machine's, and
 * its clocks gain DRIFT_PPM microseconds a second; both may be negative. Every 5 ms a
 * slice e2e.MARK is recorded, and in its arguments the machine's own time of that
 * moment: n periods and past_ns since 1970, right to half_ns. So a merged trace of
 * several such programs shows by itself how well it is aligned. It runs until it is
 * killed.
 *
 * The clocks are bent by a clock_gettime() in front of that of libc, which only what is
 * linked into this program and libcurl see. Set TRACEPLANE_CLOCK=monotonic, since the
 * processor's counter cannot be bent.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <traceplane/traceplane.h>
#include <unistd.h>

#define NS_PER_S 1000000000
#define PERIOD_NS 5000000
#define NARROW_NS 5000 /* a mark that is known so well is good enough */
#define TRIES 50

static struct {
    int64_t shift_ns, drift_ppm;
    int64_t start_ns; /* by CLOCK_MONOTONIC: when the drift began */
} skew;

static int64_t true_ns(clockid_t id)
{
    struct timespec t = {0, 0};

    syscall(SYS_clock_gettime, id, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* In front of libc's. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id,
                                                         struct timespec *t)
{
    const int64_t past_ns = true_ns(CLOCK_MONOTONIC) - skew.start_ns;
    const int64_t ns = true_ns(id) + past_ns * skew.drift_ppm / 1000000 +
                       (id == CLOCK_REALTIME ? skew.shift_ns : 0);

    t->tv_sec = (time_t)(ns / NS_PER_S);
    t->tv_nsec = (long)(ns % NS_PER_S);
    return 0;
}

static void sleep_to_next_period(void)
{
    const int64_t rest_ns = PERIOD_NS - true_ns(CLOCK_REALTIME) % PERIOD_NS;
    const struct timespec t = {0, (long)rest_ns};

    nanosleep(&t, NULL);
}

/* Read the library's clock between two readings of the machine's, as close together as
 * a busy machine lets us, and record both. */
static void record_mark(struct tp_client *client, unsigned type)
{
    struct tp_interval when = {.duration_ns = 1000, .track = TP_TRACK_THREAD};
    int64_t at_ns = 0, width_ns = INT64_MAX;

    for (int i = 0; i < TRIES && width_ns > NARROW_NS; i++) {
        const int64_t before_ns = true_ns(CLOCK_REALTIME);
        const uint64_t here_ns = tp_now();
        const int64_t after_ns = true_ns(CLOCK_REALTIME);

        if (after_ns - before_ns >= width_ns)
            continue;
        width_ns = after_ns - before_ns;
        at_ns = before_ns + width_ns / 2;
        when.start_ns = here_ns;
    }
    TP_COMPLETE(client, type, "mark", &when, TP_INT("n", at_ns / PERIOD_NS),
                TP_INT("past_ns", at_ns % PERIOD_NS),
                TP_INT("half_ns", width_ns / 2 + 1));
}

int main(int argc, char **argv)
{
    struct tp_client *client = &tp_client_off;
    struct tp_err err = {0};
    unsigned mark = TP_TYPE_NONE;

    if (argc != 3) {
        fprintf(stderr, "usage: skewed SHIFT_S DRIFT_PPM\n");
        return 2;
    }
    skew.start_ns = true_ns(CLOCK_MONOTONIC);
    skew.shift_ns = strtol(argv[1], NULL, 10) * NS_PER_S;
    skew.drift_ppm = strtol(argv[2], NULL, 10);
    if (tp_open(NULL, &client, &err) != TP_OK ||
        tp_register_type(client, "e2e", "MARK", TP_KIND_SLICE, NULL, &mark, &err) !=
            TP_OK) {
        fprintf(stderr, "skewed: %s\n", err.message);
        return 1;
    }
    for (;;) {
        sleep_to_next_period();
        record_mark(client, mark);
    }
}
