/*
 * recorder.h - a small recorder over Traceplane's HTTP API, as a backend has one.
 *
 * It registers the program's activity types and the program itself as a producer, waits
 * for commands in a thread of its own, and posts what the program recorded while a
 * trace runs. When nothing is recorded, a slice costs one atomic load. A full buffer
 * drops and counts; a service that is away changes nothing for the program.
 *
 * recorder_start() and recorder_stop() are called once, by one thread; everything else
 * may be called from any thread in between.
 */
#ifndef TREEHASH_RECORDER_H
#define TREEHASH_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#define RECORDER_MAX_TYPES 8

/* An activity type of the program: index in recorder_opts.types. */
struct recorder_type {
    const char *type_name;   /* such as "HASH" */
    const char *description; /* one sentence */
    const char *kind;        /* "slice", "instant" or "counter" */
    const char *unit;        /* of a counter, or NULL */
};

/* All strings are borrowed until recorder_stop(). */
struct recorder_opts {
    const char *url;    /* of the service, such as "http://127.0.0.1:8750" */
    const char *job;    /* what the ranks have in common */
    const char *plugin; /* first half of the types' names */
    int rank;           /* 0 to world_size - 1 */
    int world_size;
    struct recorder_type types[RECORDER_MAX_TYPES];
    int n_types;
};

/* Register and start the threads. False: the service did not take it (said on stderr);
 * the program goes on and nothing is recorded. */
bool recorder_start(const struct recorder_opts *opts);

/* Post what is left, leave, and join the threads. */
void recorder_stop(void);

/* Whether a trace wants this type now. */
bool recorder_is_on(int type);

/* The recorder's clock: nanoseconds since 1970. */
uint64_t recorder_now_ns(void);

/* Name the calling thread's row in traces. */
void recorder_name_thread(const char *name);

/* Record what the calling thread did from start_ns until now. `name` may be any UTF-8;
 * bytes is shown as an argument. */
void recorder_slice(int type, const char *name, uint64_t start_ns, uint64_t bytes);

/* Record the value of a counter. */
void recorder_counter(int type, const char *name, uint64_t value);

/* An arrow from a slice of one thread to a slice of another: `id` is the same at both
 * ends; call it while, or right after, the slice is on. */
void recorder_flow(bool is_start, uint64_t id, uint64_t at_ns);

#endif
