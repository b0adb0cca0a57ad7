/*
 * kineto_collector.h - the thread that does for Kineto traces what needs files.
 *
 * It lets the engine work on what processes said, makes their folders, waits for their
 * files (inotify, and a look once a second), and has the workers read them into the
 * trace. Start and stop belong to one thread; poke is for any.
 */
#ifndef TP_SERVER_KINETO_COLLECTOR_H
#define TP_SERVER_KINETO_COLLECTOR_H

#include <stddef.h>

struct tp_engine;
struct tp_err;
struct tp_kineto_collector;
struct tp_workers;

/* What it needs. Everything outlives it. */
struct tp_kineto_collector_opts {
    struct tp_engine *engine;
    struct tp_workers *workers;
    const char *trace_dir; /* as the engine knows it */
    char *const *log_dirs; /* below which files are put that a trace names */
    size_t n_log_dirs;
    void (*on_change)(void *arg); /* traces may have moved; may be NULL */
    /* trace_dir cannot be used for that reason, or again (NULL); may be NULL. From the
     * thread, and from tp_kineto_collector_start(). */
    void (*on_files)(void *arg, const char *why);
    void *arg;
};

/*
 * Start the thread. A trace_dir that cannot be used is no failure: on_files and traces
 * say so, and it is tried again once a second.
 *
 * out  end with tp_kineto_collector_stop().
 *
 * TP_ENOMEM, TP_EIO.
 */
int tp_kineto_collector_start(const struct tp_kineto_collector_opts *opts,
                              struct tp_kineto_collector **out, struct tp_err *err);

/* There are news. Cheap. */
void tp_kineto_collector_poke(struct tp_kineto_collector *c);

/* End the thread. What the workers still read stays theirs. NULL is allowed. */
void tp_kineto_collector_stop(struct tp_kineto_collector *c);

/* Release what is stopped, when the workers are, too. NULL is allowed. */
void tp_kineto_collector_free(struct tp_kineto_collector *c);

#endif
