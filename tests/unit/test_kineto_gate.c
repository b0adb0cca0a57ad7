/*
 * test_kineto_gate.c - who floods is stopped at the gate, and nobody else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kineto/gate.h"

#define S TP_KINETO_SECOND_NS

static int set_up(void **state)
{
    struct tp_kineto_gate *g = test_calloc(1, sizeof(*g));

    g->seed = 4711;
    *state = g;
    return 0;
}

static int tear_down(void **state)
{
    test_free(*state);
    return 0;
}

static struct tp_kineto_peer process(int32_t pid, const char *name)
{
    struct tp_kineto_peer p = {.pid = pid, .uid = 7};

    p.address_bytes = (uint8_t)strlen(name);
    memcpy(p.address, name, p.address_bytes);
    return p;
}

static unsigned admitted(struct tp_kineto_gate *g, const struct tp_kineto_peer *p,
                         unsigned n, uint64_t now_ns)
{
    unsigned in = 0;

    for (unsigned i = 0; i < n; i++)
        in += tp_kineto_gate_admits(g, p, now_ns);
    return in;
}

static void test_a_flood_stops_at_the_gate_and_others_go_through(void **state)
{
    struct tp_kineto_peer bad = process(1, "bad"), good = process(2, "good");

    assert_int_equal(admitted(*state, &bad, 100000, S), TP_KINETO_GATE_BURST);
    assert_int_equal(admitted(*state, &good, 20, S), 20);
    assert_int_equal(admitted(*state, &bad, 100000, 2 * S), TP_KINETO_GATE_PER_S);
    assert_int_equal(admitted(*state, &bad, 100000, 60 * S), TP_KINETO_GATE_BURST);
}

static void test_all_sockets_of_a_process_have_one_bucket(void **state)
{
    struct tp_kineto_peer a = process(1, "a"), b = process(1, "b");

    b.listener = 3;
    admitted(*state, &a, TP_KINETO_GATE_BURST, S);
    assert_int_equal(admitted(*state, &b, 1, S), 0);
    b.uid = 8; /* the pid was used again */
    assert_int_equal(admitted(*state, &b, 1, S), 1);
}

static void test_processes_without_a_visible_pid_are_told_by_their_sockets(void **state)
{
    struct tp_kineto_peer a = process(0, "a"), b = process(0, "b"), c = process(0, "a");

    c.listener = 1;
    admitted(*state, &a, 1000, S);
    assert_int_equal(admitted(*state, &a, 1, S), 0);
    assert_int_equal(admitted(*state, &b, 1, S), 1);
    assert_int_equal(admitted(*state, &c, 1, S), 1);
}

/* Each socket far below what one may send; other users, and those with a pid, pass. */
static void test_sockets_without_a_visible_pid_count_for_their_user(void **state)
{
    struct tp_kineto_peer other = process(0, "other"), seen = process(5, "seen");
    unsigned in[2] = {0};

    other.uid = 8;
    for (uint64_t second = 0; second < 2; second++) {
        for (unsigned i = 0; i < 50000; i++) {
            char name[16];
            struct tp_kineto_peer p;

            snprintf(name, sizeof(name), "s%u", i % 5000);
            p = process(0, name);
            in[second] += admitted(*state, &p, 1, (1 + second) * S);
        }
        assert_int_equal(admitted(*state, &other, 20, (1 + second) * S), 20);
        assert_int_equal(admitted(*state, &seen, 20, (1 + second) * S), 20);
    }
    assert_int_equal(in[0], TP_KINETO_GATE_UNSEEN_BURST);
    assert_in_range(in[1], TP_KINETO_GATE_UNSEEN_PER_S,
                    TP_KINETO_GATE_UNSEEN_PER_S + 1); /* rounded */
}

static void test_one_socket_that_floods_leaves_room_for_its_user(void **state)
{
    struct tp_kineto_peer bad = process(0, "bad"), good = process(0, "good");

    assert_int_equal(admitted(*state, &bad, 100000, S), TP_KINETO_GATE_BURST);
    assert_int_equal(admitted(*state, &good, 20, S), 20);
}

/* A thousand processes that ask as often as they may, and one that floods: the table is
 * small, and what it forgets only lets more through. */
static void test_nobody_pays_for_a_place_that_is_taken(void **state)
{
    struct tp_kineto_peer bad = process(99999, "");
    unsigned in = 0, bad_in = 0;

    for (unsigned round = 0; round < 100; round++) {
        uint64_t now_ns = (1000 + round) * (S / 10);

        for (int32_t pid = 1; pid <= 20000; pid++) {
            struct tp_kineto_peer p = process(pid, "");

            in += admitted(*state, &p, 1, now_ns);
        }
        bad_in += admitted(*state, &bad, 1000, now_ns);
    }
    assert_int_equal(in, 100 * 20000);
    assert_true(bad_in < 10000); /* of 100,000 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        TEST(test_a_flood_stops_at_the_gate_and_others_go_through),
        TEST(test_all_sockets_of_a_process_have_one_bucket),
        TEST(test_processes_without_a_visible_pid_are_told_by_their_sockets),
        TEST(test_sockets_without_a_visible_pid_count_for_their_user),
        TEST(test_one_socket_that_floods_leaves_room_for_its_user),
        TEST(test_nobody_pays_for_a_place_that_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
