/* Which rank of which job: variables of launchers, and of launchers inside others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "producer/launcher.h"

/* An environment of "NAME=value" texts that ends with NULL. */
static const char *variable(const char *name, void *arg)
{
    const size_t n = strlen(name);

    for (const char *const *entry = arg; *entry != NULL; entry++)
        if (strncmp(*entry, name, n) == 0 && (*entry)[n] == '=')
            return *entry + n + 1;
    return NULL;
}

struct row {
    const char *environment[6];
    const char *name;
    int64_t rank;
    uint32_t world_size;
    const char *job;
};

static void test_rank_and_job_come_from_the_launcher_that_knows_them(void **state)
{
    static struct row rows[] = {
        {{NULL}, NULL, -1, 0, ""},
        {{"RANK=3", "WORLD_SIZE=8", "TORCHELASTIC_RUN_ID=run-7"},
         "torchrun",
         3,
         8,
         "run-7"},
        {{"RANK=3", "WORLD_SIZE=8", "TORCHELASTIC_RUN_ID=none", "SLURM_JOB_ID=42"},
         "torchrun",
         3,
         8,
         "42"},
        {{"SLURM_PROCID=5", "SLURM_NTASKS=16", "SLURM_JOB_ID=42"},
         "slurm",
         5,
         16,
         "42"},
        {{"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_NTASKS=16"},
         "slurm",
         1,
         2,
         ""},
        {{"SLURM_PROCID=0", "SLURM_NTASKS=1", "OMPI_COMM_WORLD_RANK=9",
          "OMPI_COMM_WORLD_SIZE=12"},
         "mpi",
         9,
         12,
         ""},
        {{"SLURM_PROCID=0", "SLURM_NTASKS=2", "RANK=11", "WORLD_SIZE=16"},
         "torchrun",
         11,
         16,
         ""},
        {{"PMI_RANK=2", "PMI_SIZE=4"}, "mpi", 2, 4, ""},
        {{"MV2_COMM_WORLD_RANK=2", "MV2_COMM_WORLD_SIZE=4"}, "mpi", 2, 4, ""},
        {{"JOB_COMPLETION_INDEX=6", "JOB_NAME=train/a"}, "kubernetes", 6, 0, "train-a"},
        {{"JOB_NAME=folder/build"}, NULL, -1, 0, ""}, /* of Jenkins */
        {{"LWS_WORKER_INDEX=1", "LWS_GROUP_SIZE=4"}, "kubernetes", 1, 4, ""},
        {{"RANK=x", "PMI_RANK=1"}, "mpi", 1, 0, ""},
        {{"RANK=-1"}, NULL, -1, 0, ""},
        {{"RANK=2147483648"}, NULL, -1, 0, ""},
        {{"RANK=4", "WORLD_SIZE=4"}, "torchrun", 4, 0, ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct row *r = &rows[i];
        struct tp_launcher found;

        tp_launcher_find(variable, (void *)r->environment, &found);
        if (found.rank != r->rank || found.world_size != r->world_size ||
            strcmp(found.job, r->job) != 0 ||
            (found.name == NULL) != (r->name == NULL) ||
            (r->name != NULL && strcmp(found.name, r->name) != 0))
            fail_msg("row %zu (%s): %s %lld of %u in '%s'", i,
                     r->environment[0] == NULL ? "" : r->environment[0],
                     found.name == NULL ? "nobody" : found.name, (long long)found.rank,
                     found.world_size, found.job);
    }
}

static void test_a_job_name_is_what_the_service_takes(void **state)
{
    static const char *const rows[][2] = {
        {"llama-7b_v1.2", "llama-7b_v1.2"},
        {".hidden", "-hidden"},
        {"a b/c:d", "a-b-c-d"},
        {"\xc3\xa9", "--"},
        {"", ""},
    };
    char long_text[200], out[TP_LAUNCHER_JOB_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tp_launcher_job_name(rows[i][0], out);
        assert_string_equal(out, rows[i][1]);
    }
    memset(long_text, 'x', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    tp_launcher_job_name(long_text, out);
    assert_int_equal(strlen(out), TP_LAUNCHER_JOB_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_and_job_come_from_the_launcher_that_knows_them),
        cmocka_unit_test(test_a_job_name_is_what_the_service_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
