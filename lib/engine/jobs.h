/*
 * jobs.h - the jobs that there are, and what each has.
 *
 * A job comes into being by its first use. Thread-safe.
 */
#ifndef TP_ENGINE_JOBS_H
#define TP_ENGINE_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_engine;
struct tp_err;

#define TP_JOB_NAME_MAX_BYTES 63
#define TP_JOB_DEFAULT "default"

/* Plain data. */
struct tp_job_view {
    char name[TP_JOB_NAME_MAX_BYTES + 1];
    uint64_t created_wall_ns;
    uint64_t n_types; /* custom ones */
    uint64_t n_producers;
    uint64_t n_traces;
    char active_trace[32]; /* "" when there is none */
};

/* A list that a call made; release with tp_job_list_free(). */
struct tp_job_list {
    size_t n;
    bool has_more;
    struct tp_job_view items[];
};

/* Release a list. NULL is allowed. */
void tp_job_list_free(struct tp_job_list *list);

/*
 * List jobs in order of name.
 *
 * after  list names behind this one; empty for all.
 * limit  most items; 0 = all.
 *
 * TP_ENOMEM.
 */
int tp_engine_jobs_list(struct tp_engine *e, struct tp_str after, size_t limit,
                        struct tp_job_list **out, struct tp_err *err);

#endif
