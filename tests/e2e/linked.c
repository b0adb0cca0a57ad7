/*
 * linked.c - a program that is linked with the library, for scenarios to drive.
 *
 *     linked [--threads N] [--pause-us U]
 *
 * It opens a client by the TRACEPLANE_ variables and registers the type e2e.WORK (and
 * e2e.NEW on demand). N threads record slices without end, one each U microseconds;
 * slice i of thread t has the arguments t and i, so that holes and doubles can be seen.
 * Lines on standard input are obeyed, each is answered by one line of JSON:
 *
 *     slices N     record N slices here, thread number 100, numbered on
 *     step N       begin N steps, a millisecond each
 *     wait MS      wait until a trace records, or for so long
 *     flush MS     tp_flush()
 *     stats        tp_get_stats()
 *     type NAME    register e2e.NAME
 *     done ID NS N record N slices of the type with that id, which took NS nanoseconds
 *     device N     record N slices of a device whose number is the pid of the process,
 *                  on a stream whose number is that of the thread
 *     fork N       a child opens a client of its own, records N slices when a trace
 *                  wants it, and exits
 *     orphan N     a child records N slices with the parent's client, and exits
 *     other open   open a second client by the same variables, as another library of
 *                  the process does
 *     other N      wait until it records, and record N slices with it, thread 200
 *     other close  close it
 *     exit         exit(0) without tp_close()
 *
 * The end of the input ends it like exit does.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <traceplane/traceplane.h>
#include <unistd.h>

#define LINE_BYTES 256
#define MAX_THREADS 64
#define MAIN_THREAD 100
#define OTHER_THREAD 200

static struct tp_client *client = &tp_client_off;
static struct tp_client *other = &tp_client_off;
static unsigned work = TP_TYPE_NONE;
static unsigned pause_us = 1000;
static atomic_bool is_ending;
static uint64_t n_here;

static void pause_for(unsigned us)
{
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};

    nanosleep(&t, NULL);
}

static void record(int thread, uint64_t i)
{
    TP_BEGIN(client, work, "slice", TP_INT("t", thread), TP_INT("i", i));
    TP_END(client, work);
}

static void *run(void *arg)
{
    const int thread = (int)(intptr_t)arg;

    for (uint64_t i = 0; !atomic_load(&is_ending); i++) {
        record(thread, i);
        if (pause_us > 0)
            pause_for(pause_us);
    }
    return NULL;
}

static bool is_recording(struct tp_client *which)
{
    struct tp_stats s;

    tp_get_stats(which, &s, sizeof(s));
    return s.is_recording && tp_enabled(which, work);
}

/* What is recorded a little before the common start does not count. */
static void wait_for_recording(struct tp_client *which, long ms)
{
    while (ms-- > 0 && !is_recording(which))
        pause_for(1000);
}

static void open_client(struct tp_client **out)
{
    struct tp_err err = {0};

    if (tp_open(NULL, out, &err) != TP_OK ||
        tp_register_type(*out, "e2e", "WORK", TP_KIND_SLICE, NULL, &work, &err) !=
            TP_OK) {
        fprintf(stderr, "linked: %s\n", err.message);
        exit(2);
    }
}

static void print_stats(void)
{
    struct tp_stats s;

    tp_get_stats(client, &s, sizeof(s));
    printf("{\"emitted\":%llu,\"sent\":%llu,\"waiting\":%llu,\"filtered\":%llu,"
           "\"ringFull\":%llu,\"backlog\":%llu,\"afterStop\":%llu,\"refused\":%llu,"
           "\"isRegistered\":%s,\"isRecording\":%s,"
           "\"isOn\":%s}\n",
           (unsigned long long)s.emitted, (unsigned long long)s.sent,
           (unsigned long long)s.waiting, (unsigned long long)s.filtered,
           (unsigned long long)s.dropped_ring_full,
           (unsigned long long)s.dropped_backlog,
           (unsigned long long)s.dropped_after_stop,
           (unsigned long long)s.dropped_refused, s.is_registered ? "true" : "false",
           s.is_recording ? "true" : "false",
           tp_enabled(client, work) ? "true" : "false");
}

/*
 * In a child, glibc gives the stacks of its parent's threads to new ones, and with them
 * their pthread_t; ThreadSanitizer, which holds those threads for alive, ends a process
 * in which one id comes up twice. Larger stacks than the parent's are new ones.
 */
static void take_new_stacks(void)
{
#ifdef __SANITIZE_THREAD__
    pthread_attr_t attr;
    size_t bytes = 0;

    if (pthread_getattr_default_np(&attr) != 0)
        return;
    pthread_attr_getstacksize(&attr, &bytes);
    pthread_attr_setstacksize(&attr, bytes * 2);
    pthread_setattr_default_np(&attr);
    pthread_attr_destroy(&attr);
#endif
}

/* What a child does; it never returns. */
static void run_child(bool has_own_client, long n)
{
    if (has_own_client) {
        take_new_stacks();
        open_client(&client);
        wait_for_recording(client, 20000);
    }
    for (long i = 0; i < n; i++)
        record(MAIN_THREAD + 1, (uint64_t)i);
    exit(0);
}

static void fork_child(bool has_own_client, long n)
{
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0)
        run_child(has_own_client, n);
    waitpid(child, &status, 0);
    printf("{\"pid\":%d,\"status\":%d}\n", (int)child, status);
}

static void use_other(const char *what)
{
    const long n = strtol(what, NULL, 10);

    if (strcmp(what, "open") == 0) {
        open_client(&other);
    } else if (strcmp(what, "close") == 0) {
        tp_close(other);
        other = &tp_client_off;
    } else {
        wait_for_recording(other, 20000);
        for (long i = 0; i < n; i++) {
            TP_BEGIN(other, work, "slice", TP_INT("t", OTHER_THREAD), TP_INT("i", i));
            TP_END(other, work);
        }
    }
    printf("{\"n\":%ld}\n", n);
}

/* Slices that are over: of a type, and as long as told. */
static void record_done(const char *words)
{
    char *end;
    const unsigned type = (unsigned)strtoul(words, &end, 10);
    struct tp_interval when = {.duration_ns = strtoull(end, &end, 10)};
    const long n = strtol(end, NULL, 10);

    for (long i = 0; i < n; i++) {
        when.start_ns = tp_now();
        TP_COMPLETE(client, type, "done", &when, TP_INT("i", i));
    }
    printf("{\"n\":%ld,\"isOn\":%s}\n", n, tp_enabled(client, type) ? "true" : "false");
}

/* As a kernel that runs while the host waits for it. */
static void record_of_device(long n)
{
    struct tp_interval when = {.duration_ns = 1000,
                               .track = tp_device_track((uint32_t)getpid(),
                                                        (uint32_t)gettid())};

    for (long i = 0; i < n; i++) {
        TP_BEGIN(client, work, "host");
        when.start_ns = tp_now();
        TP_COMPLETE(client, work, "kernel", &when);
        TP_END(client, work);
    }
    printf("{\"n\":%ld}\n", n);
}

static void register_type(const char *name)
{
    struct tp_err err = {0};
    unsigned type = TP_TYPE_NONE;
    int rc = tp_register_type(client, "e2e", name, TP_KIND_INSTANT, NULL, &type, &err);

    printf("{\"rc\":%d,\"id\":%u}\n", rc, type);
}

/* Returns false when the program is to end. */
static bool obey(const char *word, const char *rest)
{
    const long n = strtol(rest, NULL, 10);

    if (strcmp(word, "slices") == 0) {
        for (long i = 0; i < n; i++)
            record(MAIN_THREAD, n_here++);
        printf("{\"n\":%llu}\n", (unsigned long long)n_here);
    } else if (strcmp(word, "step") == 0) {
        uint64_t step = 0;

        for (long i = 0; i < n; i++) {
            step = tp_step(client);
            record(MAIN_THREAD, step);
            pause_for(1000);
        }
        printf("{\"step\":%llu}\n", (unsigned long long)step);
    } else if (strcmp(word, "wait") == 0) {
        wait_for_recording(client, n);
        print_stats();
    } else if (strcmp(word, "flush") == 0) {
        printf("{\"rc\":%d}\n", tp_flush(client, (uint32_t)n, NULL));
    } else if (strcmp(word, "stats") == 0) {
        print_stats();
    } else if (strcmp(word, "done") == 0) {
        record_done(rest);
    } else if (strcmp(word, "device") == 0) {
        record_of_device(n);
    } else if (strcmp(word, "other") == 0) {
        use_other(rest);
    } else if (strcmp(word, "type") == 0) {
        register_type(rest);
    } else if (strcmp(word, "fork") == 0 || strcmp(word, "orphan") == 0) {
        fork_child(strcmp(word, "fork") == 0, n);
    } else {
        return false;
    }
    fflush(stdout);
    return true;
}

int main(int argc, char **argv)
{
    pthread_t threads[MAX_THREADS];
    char line[LINE_BYTES];
    int n = 0;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            n = (int)strtol(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--pause-us") == 0)
            pause_us = (unsigned)strtoul(argv[i + 1], NULL, 10);
    }
    open_client(&client);
    for (int i = 0; i < n && i < MAX_THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i) != 0)
            return 2;
    while (fgets(line, sizeof(line), stdin) != NULL) {
        char *end = line + strcspn(line, "\n"), *space = line + strcspn(line, " \n");

        *end = '\0';
        if (space != end)
            *space++ = '\0';
        if (!obey(line, space))
            break;
    }
    /* Threads record on while the library flushes: exit is not told to them. */
    exit(0);
}
