/*
 * ticks.c - calibration of the time stamp counter against CLOCK_MONOTONIC.
 *
 * The rate is the slope between a moment at the start and one now; both are read to
 * some tens of nanoseconds, so the error is that over the time between them: 100 ppm at
 * first, below 1 ppm after a second. A line is replaced only when the time has doubled;
 * there are thus fewer than 64 in the life of a process, each is written once, and
 * readers take no lock. What drift is left is seen by the exchanges of clocks with the
 * service.
 */
#include "producer/ticks.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define LINES_MAX 64
#define FIRST_NS 100000u /* what the first slope is measured over */
#define READINGS 8       /* of which the quickest counts */

/* One moment on both clocks. */
struct moment {
    uint64_t ticks;
    uint64_t mono_ns;
};

bool tp_ticks_are_tsc;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct tp_ticks_line lines[LINES_MAX];
static unsigned n_lines;
static struct moment origin;
static uint64_t measured_ns; /* what the last slope was measured over */
static const struct tp_ticks_line *current;

static uint64_t read_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t tp_ticks_monotonic(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* Leaf 0x80000007: EDX bit 8 is "invariant TSC". */
static bool is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;

    return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#else
    return false;
#endif
}

/* Whether the kernel has given the counter up, as it does when cores disagree. */
static bool is_given_up(void)
{
    static const char path[] =
        "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    static const char *const others[] = {"hpet", "acpi_pm", "jiffies",
                                         "refined-jiffies"};
    char name[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, name, sizeof(name) - 1);

    if (fd >= 0)
        close(fd);
    name[n > 0 ? strcspn(name, "\n") : 0] = '\0';
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        if (strcmp(name, others[i]) == 0)
            return true;
    }
    return false;
}

/* TRACEPLANE_CLOCK=monotonic is for machines on which both of them are wrong. */
static bool is_refused(void)
{
    const char *clock = getenv("TRACEPLANE_CLOCK");

    return clock != NULL && strcmp(clock, "monotonic") == 0;
}

/* Both clocks, with the reading of the counter in the middle of the shortest pair. */
static struct moment read_moment(void)
{
    struct moment best = {0, 0};
    uint64_t shortest = UINT64_MAX;

    for (int i = 0; i < READINGS; i++) {
        uint64_t before = tp_ticks_now();
        uint64_t mono_ns = tp_ticks_monotonic();
        uint64_t after = tp_ticks_now();

        if (after - before < shortest) {
            shortest = after - before;
            best = (struct moment){before + shortest / 2, mono_ns};
        }
    }
    return best;
}

/* Add a line from *start on the clock at ns, with the slope from the origin to now. */
static void add_line(const struct moment *now, uint64_t ns)
{
    struct tp_ticks_line *line = &lines[n_lines++];
    unsigned __int128 past_ns = now->mono_ns - origin.mono_ns;

    line->ticks = now->ticks;
    line->ns = ns;
    line->mult = tp_ticks_are_tsc
                     ? (uint64_t)((past_ns << 32) / (now->ticks - origin.ticks))
                     : 1ULL << 32;
    measured_ns = (uint64_t)past_ns;
    __atomic_store_n(&current, line, __ATOMIC_RELEASE);
}

static void init(void)
{
    struct moment now;

    tp_ticks_are_tsc = is_invariant() && !is_given_up() && !is_refused();
    origin = read_moment();
    do
        now = read_moment();
    while (now.mono_ns - origin.mono_ns < FIRST_NS);
    add_line(&now, read_clock(CLOCK_REALTIME));
}

void tp_ticks_init(void)
{
    pthread_once(&once, init);
}

void tp_ticks_calibrate(void)
{
    struct moment now;

    tp_ticks_init();
    pthread_mutex_lock(&lock);
    now = read_moment();
    if (n_lines < LINES_MAX && now.mono_ns - origin.mono_ns >= 2 * measured_ns)
        add_line(&now, tp_ticks_ns(current, now.ticks));
    pthread_mutex_unlock(&lock);
}

void tp_ticks_lock(void)
{
    pthread_mutex_lock(&lock);
}

void tp_ticks_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

const struct tp_ticks_line *tp_ticks_line(void)
{
    const struct tp_ticks_line *line = __atomic_load_n(&current, __ATOMIC_ACQUIRE);

    if (line != NULL)
        return line;
    tp_ticks_init();
    return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
}

uint64_t tp_ticks_at(const struct tp_ticks_line *line, uint64_t ns)
{
    __int128 past = (int64_t)(ns - line->ns);

    return line->ticks + (uint64_t)(past * ((__int128)1 << 32) / (__int128)line->mult);
}
