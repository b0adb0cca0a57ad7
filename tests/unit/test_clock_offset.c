/* The service's clock against ours: the best exchange counts, and wears out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "producer/clock_offset.h"

#define HOUR INT64_C(3600000000000)
#define NOW INT64_C(1700000000000000000)

/* An exchange with a service that is `ahead` ns, with these ways there and back. */
static struct tp_exchange exchange(int64_t at, int64_t ahead, int64_t there,
                                   int64_t held, int64_t back)
{
    return (struct tp_exchange){.sent_ns = at,
                                .server_received_ns = at + there + ahead,
                                .server_sent_ns = at + there + held + ahead,
                                .received_ns = at + there + held + back};
}

static void test_offset_is_right_within_its_error(void **state)
{
    static const int64_t aheads[] = {0, 1, -1, HOUR, -HOUR, 12345};

    (void)state;
    for (size_t i = 0; i < sizeof(aheads) / sizeof(aheads[0]); i++) {
        struct tp_exchange x = exchange(NOW, aheads[i], 70000, 25000000000, 30000);
        struct tp_clock_offset o = {0};
        int64_t wrong;

        assert_true(tp_clock_offset_take(&o, &x));
        wrong = o.offset_ns - aheads[i];
        assert_true(wrong <= (int64_t)o.error_ns && -wrong <= (int64_t)o.error_ns);
        assert_int_equal(o.error_ns, 50001 + 25000000000 / 10000 / 2);
        wrong = tp_clock_offset_local(&o, NOW + aheads[i]) - NOW;
        assert_true(wrong <= (int64_t)o.error_ns && -wrong <= (int64_t)o.error_ns);
    }
}

/* Our clock runs fast or slow, and the answer is held for long: what the clocks part
 * meanwhile looks like a longer or a shorter way. */
static void test_the_error_holds_while_the_clocks_part(void **state)
{
    static const int64_t ppms[] = {-100, -50, 0, 50, 100};
    static const int64_t helds[] = {0, 1000000000, 4000000000, 25000000000};
    static const int64_t ways[][2] = {{1000, 700000}, {700000, 1000}, {90000, 90000}};

    (void)state;
    for (size_t i = 0; i < 5 * 4 * 3; i++) {
        int64_t ppm = ppms[i % 5], held = helds[i / 5 % 4];
        int64_t there = ways[i / 20][0], back = ways[i / 20][1], wrong;
        int64_t all = there + held + back; /* by the service's clock */
        struct tp_exchange x = {.sent_ns = NOW,
                                .server_received_ns = NOW + there,
                                .server_sent_ns = NOW + there + held,
                                .received_ns = NOW + all + all / 1000000 * ppm};
        struct tp_clock_offset o = {0};

        assert_true(tp_clock_offset_take(&o, &x));
        wrong = o.offset_ns + (o.at_ns - NOW) / 1000000 * ppm; /* ahead by less */
        if (wrong > (int64_t)o.error_ns + 1000 || -wrong > (int64_t)o.error_ns + 1000)
            fail_msg(
                "%lld ppm, held %lld ms, ways %lld and %lld: wrong by %lld, not %llu",
                (long long)ppm, (long long)held / 1000000, (long long)there,
                (long long)back, (long long)wrong, (unsigned long long)o.error_ns);
    }
}

static void test_a_worse_exchange_counts_only_when_the_better_one_is_old(void **state)
{
    struct tp_exchange good = exchange(NOW, 5, 1000, 0, 1000);
    struct tp_exchange soon = exchange(NOW + 1000000, 5, 100000, 0, 100000);
    struct tp_exchange late = exchange(NOW + 2000000000, 5, 100000, 0, 100000);
    struct tp_clock_offset o = {0};

    (void)state;
    assert_true(tp_clock_offset_take(&o, &good));
    assert_false(tp_clock_offset_take(&o, &soon));
    assert_int_equal(o.error_ns, 1001);
    assert_true(tp_clock_offset_take(&o, &late));
    assert_int_equal(o.error_ns, 100001);
}

static void test_an_exchange_that_cannot_be_changes_nothing(void **state)
{
    struct tp_exchange bad[] = {
        {0},
        exchange(NOW, 0, 10, -20, 10),            /* sent before received */
        {NOW, NOW, NOW + 100, NOW + 50},          /* held longer than it took */
        {NOW, NOW, NOW, NOW - 1},                 /* answered before asked */
        {.sent_ns = NOW, .received_ns = NOW + 1}, /* no times of the service */
    };
    struct tp_clock_offset o = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (tp_clock_offset_take(&o, &bad[i]) || o.is_known)
            fail_msg("exchange %zu was taken", i);
    assert_int_equal(tp_clock_offset_local(&o, 42), 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offset_is_right_within_its_error),
        cmocka_unit_test(test_the_error_holds_while_the_clocks_part),
        cmocka_unit_test(test_a_worse_exchange_counts_only_when_the_better_one_is_old),
        cmocka_unit_test(test_an_exchange_that_cannot_be_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
