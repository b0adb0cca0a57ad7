/*
 * launcher.c - the variables that launchers set, as a table.
 */
#include "producer/launcher.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *name, *rank, *world_size;
};

/* SLURM_STEP_NUM_TASKS is of the step that srun started, SLURM_NTASKS of the job. */
static const struct row ranks[] = {
    {"torchrun", "RANK", "WORLD_SIZE"},
    {"mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpi", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"mpi", "PMIX_RANK", "PMIX_SIZE"},
    {"mpi", "PMI_RANK", "PMI_SIZE"},
    {"slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS"},
    {"kubernetes", "LWS_WORKER_INDEX", "LWS_GROUP_SIZE"},
    {"kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"},
};

/* torchrun says "none" when nobody gave the run an id. A pod's job is in no variable by
 * itself; these are the names that Kubernetes' own operators use. Others set JOB_NAME,
 * too (Jenkins does), so it counts only beside the index of a pod. */
static const struct {
    const char *name;
    const char *beside; /* NULL: by itself */
} jobs[] = {
    {"TORCHELASTIC_RUN_ID", NULL},
    {"SLURM_JOB_ID", NULL},
    {"PBS_JOBID", NULL},
    {"LSB_JOBID", NULL},
    {"PMIX_NAMESPACE", NULL},
    {"JOBSET_NAME", NULL},
    {"LWS_NAME", NULL},
    {"JOB_NAME", "JOB_COMPLETION_INDEX"},
};

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static int64_t number(const char *text)
{
    char *end = NULL;
    long long n;

    if (text == NULL || !isdigit((unsigned char)text[0]))
        return -1;
    errno = 0;
    n = strtoll(text, &end, 10);
    return *end != '\0' || errno != 0 || n > INT32_MAX ? -1 : n;
}

static void find_rank(tp_variable_fn variable, void *arg, struct tp_launcher *out)
{
    for (size_t i = 0; i < N_OF(ranks); i++) {
        int64_t rank = number(variable(ranks[i].rank, arg));
        int64_t size = number(variable(ranks[i].world_size, arg));

        if (rank < 0)
            continue;
        /* The next row may know the size when this one does not. */
        if (size <= rank && i + 1 < N_OF(ranks) &&
            strcmp(ranks[i].rank, ranks[i + 1].rank) == 0)
            continue;
        out->name = ranks[i].name;
        out->rank = rank;
        out->world_size = size > rank ? (uint32_t)size : 0;
        return;
    }
}

void tp_launcher_find(tp_variable_fn variable, void *arg, struct tp_launcher *out)
{
    *out = (struct tp_launcher){.rank = -1};
    find_rank(variable, arg, out);
    for (size_t i = 0; i < N_OF(jobs); i++) {
        const char *job = variable(jobs[i].name, arg);

        if (jobs[i].beside != NULL && variable(jobs[i].beside, arg) == NULL)
            continue;
        if (job == NULL || job[0] == '\0' || strcmp(job, "none") == 0)
            continue;
        tp_launcher_job_name(job, out->job);
        return;
    }
}

void tp_launcher_job_name(const char *text, char *out)
{
    size_t n = 0;

    for (; text[n] != '\0' && n + 1 < TP_LAUNCHER_JOB_BYTES; n++) {
        char c = text[n];
        bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                       (c == '.' && n > 0);

        out[n] = is_good ? c : '-';
    }
    out[n] = '\0';
}
