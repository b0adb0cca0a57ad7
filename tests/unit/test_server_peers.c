/*
 * Who may connect, and how often who may ask: the two limits of connections and the
 * rate, on a clock of our own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"
#include "server/peers.h"
#include "support/fault.h"

#define SECOND_NS UINT64_C(1000000000)
#define START_NS (1000 * SECOND_NS)

static struct tp_peers *new_peers(uint64_t all, uint64_t each, uint64_t rate)
{
    struct tp_peers *peers = NULL;
    struct tp_err err = {0};

    assert_int_equal(tp_peers_new(all, each, rate, &peers, &err), TP_OK);
    return peers;
}

/* Enter, and fail the test unless the answer is as expected. */
static struct tp_peer *enter(struct tp_peers *peers, const char *name, bool stays,
                             bool is_full)
{
    bool may_stay = !stays;
    bool is_peer_full = !is_full;
    struct tp_peer *peer = tp_peers_enter(peers, name, &may_stay, &is_peer_full);

    assert_non_null(peer);
    assert_string_equal(peer->name, name);
    if (may_stay != stays || is_peer_full != is_full)
        fail_msg("%s: may stay %d, peer full %d", name, may_stay, is_peer_full);
    return peer;
}

static void test_a_peer_is_refused_beyond_its_own_limit_only(void **state)
{
    struct tp_peers *peers = new_peers(100, 2, 0);
    struct tp_peer *a = enter(peers, "127.0.0.1", true, false);
    struct tp_peer *b;

    (void)state;
    assert_ptr_equal(enter(peers, "127.0.0.1", true, false), a);
    assert_ptr_equal(enter(peers, "127.0.0.1", false, true), a);
    b = enter(peers, "uid 1000", true, false);
    assert_ptr_not_equal(a, b);
    tp_peers_leave(peers, a);
    enter(peers, "127.0.0.1", false, true); /* the refused one counts until it leaves */
    tp_peers_leave(peers, a);
    tp_peers_leave(peers, a);
    enter(peers, "127.0.0.1", true, false);
    for (int i = 0; i < 2; i++)
        tp_peers_leave(peers, a);
    tp_peers_leave(peers, b);
    tp_peers_free(peers);
}

static void test_all_peers_together_are_limited_too(void **state)
{
    struct tp_peers *peers = new_peers(2, 10, 0);
    struct tp_peer *a = enter(peers, "a", true, false);
    struct tp_peer *b = enter(peers, "b", true, false);
    struct tp_peer *c = enter(peers, "c", false, false);

    (void)state;
    tp_peers_leave(peers, c);
    tp_peers_leave(peers, a);
    tp_peers_leave(peers, enter(peers, "c", true, false));
    tp_peers_leave(peers, b);
    tp_peers_free(peers);
}

static void test_a_rate_allows_its_burst_and_then_its_pace(void **state)
{
    static const uint64_t rates[] = {1, 2, 10, 1000, 10000000};

    (void)state;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        uint64_t rate = rates[i];
        struct tp_peers *peers = new_peers(10, 10, rate);
        struct tp_peer *peer = enter(peers, "a", true, false);
        uint64_t burst = rate > 1000 ? 1000 : rate;
        uint64_t now = START_NS;

        for (uint64_t k = 0; k < burst; k++)
            if (!tp_peers_request(peers, peer, now))
                fail_msg("rate %llu: request %llu is refused", (unsigned long long)rate,
                         (unsigned long long)k);
        if (rate <= 1000) {
            if (tp_peers_request(peers, peer, now))
                fail_msg("rate %llu: one too many", (unsigned long long)rate);
            now += SECOND_NS / rate;
            if (!tp_peers_request(peers, peer, now) ||
                tp_peers_request(peers, peer, now))
                fail_msg("rate %llu: not one more after its pace",
                         (unsigned long long)rate);
        }
        tp_peers_leave(peers, peer);
        tp_peers_free(peers);
    }
}

static void test_a_rate_is_of_one_peer_and_outlives_its_connection(void **state)
{
    struct tp_peers *peers = new_peers(10, 10, 1);
    struct tp_peer *a = enter(peers, "a", true, false);
    struct tp_peer *b = enter(peers, "b", true, false);

    (void)state;
    assert_true(tp_peers_request(peers, a, START_NS));
    assert_false(tp_peers_request(peers, a, START_NS));
    assert_true(tp_peers_request(peers, b, START_NS));
    tp_peers_leave(peers, a);
    a = enter(peers, "a", true, false);
    assert_false(tp_peers_request(peers, a, START_NS));
    tp_peers_leave(peers, a);
    tp_peers_leave(peers, b);
    tp_peers_free(peers);
}

static void test_no_rate_refuses_nobody(void **state)
{
    struct tp_peers *peers = new_peers(10, 10, 0);
    struct tp_peer *peer = enter(peers, "a", true, false);

    (void)state;
    for (int i = 0; i < 100000; i++)
        assert_true(tp_peers_request(peers, peer, START_NS));
    tp_peers_leave(peers, peer);
    tp_peers_free(peers);
}

/* A client with a whole network behind it must not fill our memory with its names. */
static void test_names_that_are_gone_do_not_pile_up(void **state)
{
    struct tp_peers *peers = new_peers(10, 10, 1);
    struct tp_peer *last = NULL;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        char name[TP_PEER_NAME_BYTES];

        snprintf(name, sizeof(name), "peer %d", i);
        last = enter(peers, name, true, false);
        assert_true(tp_peers_request(peers, last, START_NS));
        tp_peers_leave(peers, last);
    }
    /* The last one was forgotten, and with it what it had used. */
    last = enter(peers, "peer 4999", true, false);
    assert_true(tp_peers_request(peers, last, START_NS));
    tp_peers_leave(peers, last);
    tp_peers_free(peers);
}

static void test_without_memory_a_peer_may_not_stay(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_peers *peers = NULL;
        struct tp_peer *peer = NULL;
        struct tp_err err = {0};
        bool may_stay = true;
        bool is_full = true;
        int rc;

        fault_arm(n);
        rc = tp_peers_new(10, 10, 0, &peers, &err);
        if (rc == TP_OK)
            peer = tp_peers_enter(peers, "127.0.0.1", &may_stay, &is_full);
        if (!fault_disarm()) {
            assert_non_null(peer);
            tp_peers_leave(peers, peer);
            tp_peers_free(peers);
            return;
        }
        assert_null(peer);
        if (rc == TP_OK) {
            assert_false(may_stay);
            assert_false(is_full);
            tp_peers_leave(peers, NULL);
            tp_peers_leave(peers, enter(peers, "127.0.0.1", true, false));
        } else {
            assert_int_equal(rc, TP_ENOMEM);
        }
        tp_peers_free(peers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_peer_is_refused_beyond_its_own_limit_only),
        cmocka_unit_test(test_all_peers_together_are_limited_too),
        cmocka_unit_test(test_a_rate_allows_its_burst_and_then_its_pace),
        cmocka_unit_test(test_a_rate_is_of_one_peer_and_outlives_its_connection),
        cmocka_unit_test(test_no_rate_refuses_nobody),
        cmocka_unit_test(test_names_that_are_gone_do_not_pile_up),
        cmocka_unit_test(test_without_memory_a_peer_may_not_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
