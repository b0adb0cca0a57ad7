/*
 * test_process_key.c - who is who, from inside and from outside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process_key.h"

/* A child that writes its own key and ends when its input does. */
struct child {
    pid_t pid;
    int in, out;
    char key[TP_PROCESS_KEY_BYTES];
};

static void start(struct child *c)
{
    int in[2], out[2];
    ssize_t n;

    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    c->pid = fork();
    if (c->pid == 0) {
        close(in[1]);
        tp_process_key(0, c->key);
        if (write(out[1], c->key, sizeof(c->key)) != sizeof(c->key))
            _exit(1);
        _exit(read(in[0], c->key, 1) != 0);
    }
    close(in[0]);
    close(out[1]);
    n = read(out[0], c->key, sizeof(c->key));
    assert_int_equal(n, sizeof(c->key));
    c->in = in[1];
    c->out = out[0];
}

static void end(struct child *c)
{
    close(c->in);
    close(c->out);
    waitpid(c->pid, NULL, 0);
}

static void test_inside_and_outside_see_the_same_key(void **state)
{
    char own[TP_PROCESS_KEY_BYTES], key[TP_PROCESS_KEY_BYTES], pid[32];
    struct child c;

    (void)state;
    assert_true(tp_process_key(0, own));
    assert_true(tp_process_key(getpid(), key));
    assert_string_equal(own, key);
    snprintf(pid, sizeof(pid), "/%d/", (int)getpid());
    assert_non_null(strstr(own, pid));
    start(&c);
    assert_true(tp_process_key(c.pid, key));
    assert_string_equal(c.key, key);
    assert_string_not_equal(c.key, own);
    end(&c);
}

static void test_a_process_that_there_is_not_has_no_key(void **state)
{
    char key[TP_PROCESS_KEY_BYTES] = "before";
    struct child c;

    (void)state;
    start(&c);
    end(&c);
    assert_false(tp_process_key(c.pid, key));
    assert_string_equal(key, "");
    assert_false(tp_process_key(-1, key));
}

/* In a child that may have children in a namespace of their own: tell the pid of one,
 * as seen from here, and end it when the input ends. 0 = that is not allowed. */
static void keep_contained(int in, int out)
{
    pid_t pid = unshare(CLONE_NEWPID) == 0 ? fork() : 0;
    char byte;

    if (pid == 0 && getpid() == 1)
        _exit(read(in, &byte, 1) != 0);
    if (write(out, &pid, sizeof(pid)) == sizeof(pid) && pid > 0)
        waitpid(pid, NULL, 0);
    _exit(0);
}

/* Its /proc is ours, so it sees nothing of itself there; but from here its pid in its
 * namespace is told. */
static void test_a_pid_of_another_namespace_is_told_apart(void **state)
{
    char key[TP_PROCESS_KEY_BYTES], own[TP_PROCESS_KEY_BYTES];
    int in[2], out[2];
    pid_t pid = 0, helper;

    (void)state;
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    helper = fork();
    if (helper == 0) {
        close(in[1]);
        keep_contained(in[0], out[1]);
    }
    close(in[0]);
    close(out[1]);
    assert_int_equal(read(out[0], &pid, sizeof(pid)), sizeof(pid));
    if (pid > 0) {
        assert_true(tp_process_key(0, own));
        assert_true(tp_process_key(pid, key));
        assert_non_null(strstr(key, "/1/"));
        /* The boot is the same, the namespace is not. */
        assert_int_equal(strcspn(key, "/"), strcspn(own, "/"));
        assert_memory_equal(key, own, strcspn(own, "/"));
        assert_memory_not_equal(key, own, strcspn(own, "/") + 11);
    }
    close(in[1]);
    close(out[0]);
    waitpid(helper, NULL, 0);
    if (pid <= 0) {
        print_message("only root can make a pid namespace\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inside_and_outside_see_the_same_key),
        cmocka_unit_test(test_a_process_that_there_is_not_has_no_key),
        cmocka_unit_test(test_a_pid_of_another_namespace_is_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
