/*
 * test_server_kineto_node.c - file systems that other nodes see, and settings of the
 * kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "server/kineto_node.h"
#include "support/tmpdir.h"

static void test_file_systems_of_a_network_are_known_by_number(void **state)
{
    static const uint64_t shared[] = {0x6969,     0x517B,     0xFF534D42, 0xFE534D42,
                                      0x0BD00BD0, 0x47504653, 0x00C36400, 0x01021997,
                                      0x5346414F, 0x6B414653, 0x7461636F};
    /* ext4, XFS, Btrfs, tmpfs, overlay, ZFS, FUSE */
    static const uint64_t local[] = {0xEF53,     0x58465342, 0x9123683E, 0x01021994,
                                     0x794C7630, 0x2FC12FC1, 0x65735546};

    (void)state;
    for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
        if (!tp_kineto_node_is_network(shared[i]))
            fail_msg("%#llx", (unsigned long long)shared[i]);
    }
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
        if (tp_kineto_node_is_network(local[i]))
            fail_msg("%#llx", (unsigned long long)local[i]);
    }
    /* A word of 32 bits that was signed. */
    assert_true(tp_kineto_node_is_network((uint64_t)(int64_t)(int32_t)0xFF534D42));
}

static void test_a_directory_of_this_node_is_not_shared(void **state)
{
    (void)state;
    assert_false(tp_kineto_node_is_shared("/proc"));
    assert_false(tp_kineto_node_is_shared("/is/not/there"));
}

static void test_settings_that_are_off_are_named(void **state)
{
    static const struct {
        const char *symlinks, *hardlinks, *fifos, *wanted;
    } cases[] = {
        {"1\n", "1\n", "2\n", ""},
        {"0\n", "1\n", "1\n", "fs.protected_symlinks=1"},
        {"1\n", "0\n", "1\n", "fs.protected_hardlinks=1"},
        {"0\n", "0\n", "0\n",
         "fs.protected_symlinks=1 fs.protected_hardlinks=1 fs.protected_fifos=1"},
        {"", "", "", ""},
    };
    char *dir = tmpdir_new();
    char text[128] = "x";

    (void)state;
    tp_kineto_node_gaps(dir, text, sizeof(text));
    assert_string_equal(text, ""); /* they are not there */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tmpdir_write(dir, "protected_symlinks", cases[i].symlinks,
                     strlen(cases[i].symlinks));
        tmpdir_write(dir, "protected_hardlinks", cases[i].hardlinks,
                     strlen(cases[i].hardlinks));
        tmpdir_write(dir, "protected_fifos", cases[i].fifos, strlen(cases[i].fifos));
        tp_kineto_node_gaps(dir, text, sizeof(text));
        assert_string_equal(text, cases[i].wanted);
    }
    tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_systems_of_a_network_are_known_by_number),
        cmocka_unit_test(test_a_directory_of_this_node_is_not_shared),
        cmocka_unit_test(test_settings_that_are_off_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
