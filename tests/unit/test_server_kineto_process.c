/*
 * test_server_kineto_process.c - rank, world size and job out of an environment, and
 * the id out of the head of a file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/kineto_process.h"

#define ENVIRONMENT(text) text, sizeof(text) /* with the NUL at its end */

static void expect(const char *text, size_t n, const char *job, int64_t rank,
                   uint32_t world)
{
    struct tp_kineto_process p;

    tp_kineto_process_parse(text, n, &p);
    if (strcmp(p.job, job) != 0 || p.rank != rank || p.world_size != world)
        fail_msg("%s: job '%s', rank %lld of %u", text, p.job, (long long)p.rank,
                 p.world_size);
}

static void test_the_nearest_launcher_is_believed(void **state)
{
    (void)state;
    expect(ENVIRONMENT("RANK=3\0WORLD_SIZE=8\0SLURM_PROCID=0\0SLURM_NTASKS=1"), "", 3,
           8);
    expect(ENVIRONMENT("SLURM_PROCID=1\0SLURM_NTASKS=4\0TRACEPLANE_JOB=j"), "j", 1, 4);
    expect(ENVIRONMENT("OMPI_COMM_WORLD_RANK=0"), "", 0, 0);
    expect(ENVIRONMENT("TRACEPLANE_RANK=7\0RANK=1"), "", 7, 0);
}

static void test_nonsense_is_not_known(void **state)
{
    (void)state;
    expect("", 0, "", -1, 0);
    expect(ENVIRONMENT("RANK=\0RANKS=1\0XRANK=1"), "", -1, 0);
    expect(ENVIRONMENT("RANK=-1"), "", -1, 0);
    expect(ENVIRONMENT("RANK=99999999999"), "", -1, 0);
    expect(ENVIRONMENT("RANK=8\0WORLD_SIZE=8"), "", 8, 0);
    expect("RANK=1", 6, "", -1, 0); /* it was cut: perhaps it is 12 */
    expect(ENVIRONMENT("TRACEPLANE_JOB=0123456789012345678901234567890123456789"
                       "012345678901234567890123"),
           "", -1, 0);
}

static void test_a_process_is_there_until_it_is_not(void **state)
{
    struct tp_kineto_process p;

    (void)state;
    assert_true(tp_kineto_process_is_there(getpid()));
    assert_true(tp_kineto_process_is_there(0)); /* not visible: nobody knows */
    assert_false(tp_kineto_process_is_there(INT32_MAX));
    tp_kineto_process_read(INT32_MAX, getuid(), &p);
    assert_int_equal(p.rank, -1);
    tp_kineto_process_read(getpid(), getuid() + 1, &p);
    assert_int_equal(p.rank, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_nearest_launcher_is_believed),
        cmocka_unit_test(test_nonsense_is_not_known),
        cmocka_unit_test(test_a_process_is_there_until_it_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
