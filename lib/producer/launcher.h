/*
 * launcher.h - which rank of which job this process is, as its launcher said in
 * variables of the environment.
 *
 * It looks at variables only; it asks no launcher and reads no file. Pure but for the
 * function that it is given; safe from any thread that may read the environment.
 */
#ifndef TP_PRODUCER_LAUNCHER_H
#define TP_PRODUCER_LAUNCHER_H

#include <stdint.h>

/* Gives the value of a variable, or NULL; as getenv(). */
typedef const char *(*tp_variable_fn)(const char *name, void *arg);

#define TP_LAUNCHER_JOB_BYTES 64 /* with its NUL: the longest name of a job */

/* Plain data. */
struct tp_launcher {
    const char *name;    /* who said the rank: "torchrun", "mpi", ...; NULL = nobody */
    int64_t rank;        /* 0 to 2^31 - 1; -1 = not known */
    uint32_t world_size; /* 0 = not known */
    char
        job[TP_LAUNCHER_JOB_BYTES]; /* "" = not known; what the service takes as name */
};

/*
 * Find out. The first launcher whose rank variable holds a number is believed, in this
 * order: torchrun, Open MPI, MVAPICH, PMI (MPICH, Intel MPI), Slurm, Kubernetes. A
 * launcher inside another one comes first: torchrun and mpirun under Slurm see the
 * batch step's SLURM_PROCID, which is 0 in all of them. The job is found likewise, but
 * on its own: the first variable that names one, whoever said the rank.
 */
void tp_launcher_find(tp_variable_fn variable, void *arg, struct tp_launcher *out);

/*
 * Make a name that the service takes for a job: characters other than [A-Za-z0-9._-]
 * become '-', so does a dot in front, and what is too long is cut.
 *
 * out  TP_LAUNCHER_JOB_BYTES bytes.
 */
void tp_launcher_job_name(const char *text, char *out);

#endif
