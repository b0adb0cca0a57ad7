/*
 * kineto_process.h - what /proc tells about a process that asked.
 *
 * Reads what the process was started with; what it says about itself is as good as the
 * process. No state; any thread.
 */
#ifndef TP_SERVER_KINETO_PROCESS_H
#define TP_SERVER_KINETO_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Plain data. */
struct tp_kineto_process {
    char job[64];        /* TRACEPLANE_JOB; "" = not said */
    int64_t rank;        /* of torchrun, Slurm, MPI; -1 = not known */
    uint32_t world_size; /* 0 = not known */
};

/*
 * Read the environment of pid. What cannot be read is not known.
 *
 * uid  who the process must belong to, so that a pid that was used again tells nothing.
 */
void tp_kineto_process_read(int32_t pid, uint32_t uid, struct tp_kineto_process *out);

/*
 * Find the above in an environment.
 *
 * text, n  "NAME=value" entries that end in NUL; any bytes.
 */
void tp_kineto_process_parse(const char *text, size_t n, struct tp_kineto_process *out);

/* Whether there is a process of that pid; true when it cannot be told. */
bool tp_kineto_process_is_there(int32_t pid);

#endif
