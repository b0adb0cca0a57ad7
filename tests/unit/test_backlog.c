/* Batches that wait for the service, and how long to wait after a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "producer/backlog.h"
#include "producer/backoff.h"
#include "support/fault.h"

#define STRUCT_BYTES sizeof(struct tp_batch)

/* A batch of n_bytes in a buffer of room bytes, as the newest. */
static struct tp_batch *push_in(struct tp_backlog *b, size_t room, size_t n_bytes,
                                uint64_t n_events)
{
    struct tp_batch *batch = NULL;

    assert_int_equal(tp_backlog_get(b, room, &batch, NULL), TP_OK);
    assert_int_equal(batch->payload.len, 0);
    assert_true(batch->payload.cap >= room);
    memset(batch->payload.data, (int)n_events, n_bytes);
    batch->payload.len = n_bytes;
    batch->events.n_events = n_events;
    tp_backlog_push(b, batch);
    return b->last;
}

static struct tp_batch *push(struct tp_backlog *b, size_t n_bytes, uint64_t n_events)
{
    return push_in(b, n_bytes, n_bytes, n_events);
}

static void test_batches_leave_in_order_and_keep_their_numbers(void **state)
{
    struct tp_backlog b = {.limit_bytes = 10000};

    (void)state;
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(push(&b, 100, 10 * i)->seq, i);
    assert_int_equal(b.bytes, 3 * (STRUCT_BYTES + 100));
    assert_int_equal(b.n_events, 60);
    tp_backlog_pop(&b);
    assert_int_equal(b.first->seq, 2);
    assert_int_equal(push(&b, 100, 1)->seq, 4);
    tp_backlog_pop(&b);
    tp_backlog_pop(&b);
    tp_backlog_pop(&b);
    assert_null(b.first);
    assert_null(b.last);
    assert_int_equal(b.bytes, 0);
    assert_int_equal(b.n_events, 0);
    tp_backlog_clear(&b);
    assert_int_equal(push(&b, 1, 1)->seq, 1);
    tp_backlog_clear(&b);
}

static void test_there_is_no_room_over_the_limit_but_for_a_first_batch(void **state)
{
    struct tp_backlog b = {.limit_bytes = 2 * STRUCT_BYTES + 1000};

    (void)state;
    assert_true(tp_backlog_has_room(&b, 50000));
    push(&b, 600, 1);
    assert_true(tp_backlog_has_room(&b, 400));
    assert_false(tp_backlog_has_room(&b, 401));
    tp_backlog_clear(&b);
}

/* Else a service whose answers take longer than a batch takes to come about would get
 * further behind for as long as a trace records. */
static void test_the_more_batches_wait_the_fewer_are_made(void **state)
{
    static const unsigned wanted[] = {1, 1, 2, 4, 8, 16, 16, 16};
    struct tp_backlog b = {.limit_bytes = 1000};

    (void)state;
    for (size_t n = 0; n < sizeof(wanted) / sizeof(wanted[0]); n++) {
        if (tp_backlog_slowdown(&b) != wanted[n])
            fail_msg("%zu wait: %u", n, tp_backlog_slowdown(&b));
        push(&b, 100, 1);
    }
    while (b.first != b.last)
        tp_backlog_pop(&b);
    assert_int_equal(tp_backlog_slowdown(&b), 1);
    tp_backlog_clear(&b);
    assert_int_equal(tp_backlog_slowdown(&b), 1);
}

static void test_memory_of_a_sent_batch_serves_the_next(void **state)
{
    struct tp_backlog b = {.limit_bytes = 1000};
    struct tp_batch *first, *again = NULL;

    (void)state;
    first = push(&b, 100, 1);
    tp_backlog_pop(&b);
    assert_int_equal(tp_backlog_get(&b, 1, &again, NULL), TP_OK);
    assert_ptr_equal(again, first);
    tp_backlog_return(&b, again);
    fault_arm(0);
    assert_int_equal(tp_backlog_get(&b, 1, &again, NULL), TP_OK);
    assert_int_equal(tp_backlog_get(&b, 1, &first, NULL), TP_ENOMEM);
    assert_true(fault_disarm());
    tp_backlog_return(&b, again);
    tp_backlog_clear(&b);
}

/* What b has allocated. */
static size_t held_by(const struct tp_backlog *b)
{
    const struct tp_batch *const lists[] = {b->first, b->spares};
    size_t n = 0;

    for (size_t i = 0; i < 2; i++)
        for (const struct tp_batch *batch = lists[i]; batch != NULL;
             batch = batch->next)
            n += STRUCT_BYTES + batch->payload.cap;
    return n;
}

/* However little comes at a time: each batch is made in a buffer for a full one. */
static void test_batches_that_wait_hold_no_more_than_the_limit(void **state)
{
    static const size_t sizes[] = {1, 700, 20000, 49000, 70000, 75000, 100000};
    const size_t limit = 1 << 20, room = 100000;

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct tp_backlog b = {.limit_bytes = limit};
        size_t most = 0;

        for (int k = 0; k < 20; k++) /* leave spares that are as large as can be */
            push_in(&b, room, room, 1);
        while (b.first != NULL)
            tp_backlog_pop(&b);
        while (tp_backlog_has_room(&b, sizes[i])) {
            push_in(&b, room, sizes[i], b.last_seq % 100);
            if (most < held_by(&b))
                most = held_by(&b);
        }
        assert_true(b.bytes > limit - 2 * (STRUCT_BYTES + room));
        if (most > limit * 4 / 3 + 2 * (STRUCT_BYTES + room))
            fail_msg("batches of %zu bytes hold %zu", sizes[i], most);
        for (; b.first != NULL; tp_backlog_pop(&b)) {
            const struct tp_buf *p = &b.first->payload;

            assert_int_equal(p->len, sizes[i]);
            assert_int_equal(p->data[0], b.first->events.n_events);
            assert_int_equal(p->data[p->len - 1], b.first->events.n_events);
        }
        assert_int_equal(b.bytes, 0);
        tp_backlog_clear(&b);
        assert_int_equal(held_by(&b), 0);
        assert_int_equal(b.spare_bytes, 0);
    }
}

static void test_without_memory_a_batch_waits_in_the_buffer_it_has(void **state)
{
    struct tp_backlog b = {.limit_bytes = 1 << 20};

    (void)state;
    push(&b, 100, 1);
    fault_arm(2); /* the buffer, which a spare does not have, and its batch */
    push_in(&b, 10000, 10, 2);
    assert_true(fault_disarm());
    assert_int_equal(b.last->payload.cap, 10000);
    assert_int_equal(b.last->seq, 2);
    tp_backlog_clear(&b);
}

static void check_waits(uint64_t most_ms)
{
    struct tp_backoff a, b;
    bool differ = false;

    tp_backoff_init(&a, 1);
    tp_backoff_init(&b, 2);
    for (uint64_t i = 0, bound = TP_BACKOFF_FIRST_MS; i < 20; i++) {
        uint64_t ms = tp_backoff_ms(&a, most_ms, 0);

        assert_in_range(ms, bound / 2, bound);
        differ = differ || ms != tp_backoff_ms(&b, most_ms, 0);
        bound = bound * 2 > most_ms ? most_ms : bound * 2;
    }
    assert_true(differ);
    tp_backoff_reset(&a);
    assert_in_range(tp_backoff_ms(&a, most_ms, 0), 0, TP_BACKOFF_FIRST_MS);
}

static void test_waits_grow_to_a_bound_and_differ_between_producers(void **state)
{
    (void)state;
    check_waits(TP_BACKOFF_BUSY_MS);
    check_waits(TP_BACKOFF_IDLE_MS);
}

/* What the service asks for is the least, within the bound, and no two producers that
 * it has asked come back at the same moment. */
static void test_a_wait_that_the_service_asks_for_is_kept_within_bounds(void **state)
{
    struct tp_backoff a, b;
    bool differ = false;

    (void)state;
    tp_backoff_init(&a, 1);
    tp_backoff_init(&b, 2);
    for (int i = 0; i < 5; i++) {
        uint64_t ms = tp_backoff_ms(&a, TP_BACKOFF_IDLE_MS, 30000);

        assert_in_range(ms, 30000, 60000);
        differ = differ || ms != tp_backoff_ms(&b, TP_BACKOFF_IDLE_MS, 30000);
    }
    assert_true(differ);
    assert_in_range(tp_backoff_ms(&a, TP_BACKOFF_BUSY_MS, 30000), 2500,
                    2 * TP_BACKOFF_BUSY_MS);
    for (int i = 0; i < 20; i++)
        tp_backoff_ms(&a, TP_BACKOFF_IDLE_MS, 0);
    assert_in_range(tp_backoff_ms(&a, TP_BACKOFF_IDLE_MS, 7000), TP_BACKOFF_IDLE_MS / 2,
                    TP_BACKOFF_IDLE_MS);
}

/* Without a service there is no more than a wakeup in 25 s, in the long run. */
static void test_one_that_is_idle_comes_to_sleep_for_long(void **state)
{
    struct tp_backoff b;

    (void)state;
    tp_backoff_init(&b, 1);
    for (uint64_t waited = 0; waited < 120000;)
        waited += tp_backoff_ms(&b, TP_BACKOFF_IDLE_MS, 0);
    for (int i = 0; i < 100; i++)
        assert_true(tp_backoff_ms(&b, TP_BACKOFF_IDLE_MS, 0) >= 25000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_leave_in_order_and_keep_their_numbers),
        cmocka_unit_test(test_there_is_no_room_over_the_limit_but_for_a_first_batch),
        cmocka_unit_test(test_the_more_batches_wait_the_fewer_are_made),
        cmocka_unit_test(test_memory_of_a_sent_batch_serves_the_next),
        cmocka_unit_test(test_batches_that_wait_hold_no_more_than_the_limit),
        cmocka_unit_test(test_without_memory_a_batch_waits_in_the_buffer_it_has),
        cmocka_unit_test(test_waits_grow_to_a_bound_and_differ_between_producers),
        cmocka_unit_test(test_a_wait_that_the_service_asks_for_is_kept_within_bounds),
        cmocka_unit_test(test_one_that_is_idle_comes_to_sleep_for_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
