/*
 * test_kineto_table.c - the lives of processes as their requests tell them: served when
 * they would take it, never twice, put back in step, counted, forgotten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "kineto/table.h"
#include "support/fault.h"
#include "support/kineto_bytes.h"

#define S TP_KINETO_SECOND_NS
#define IDLE 2
#define BUSY 0
#define OLD_IDLE 3
#define OLD_BUSY 1

struct world {
    struct tp_kineto_table *table;
    uint64_t now;
};

static struct tp_kineto_peer peer(unsigned n)
{
    struct tp_kineto_peer p = {.pid = (int32_t)(1000 + n), .uid = 7, .gid = 8};

    p.address_bytes =
        (uint8_t)(1 + snprintf(p.address + 1, sizeof(p.address) - 1, "client%u", n));
    return p;
}

static int set_up(void **state)
{
    struct world *w = test_calloc(1, sizeof(*w));

    w->now = 1000 * S;
    *state = w;
    return tp_kineto_table_new(&w->table, NULL);
}

static int tear_down(void **state)
{
    struct world *w = *state;

    tp_kineto_table_free(w->table);
    test_free(w);
    return 0;
}

static struct tp_kineto_reply ask_as(struct world *w, const struct tp_kineto_peer *p,
                                     int32_t type, uint64_t unread)
{
    const int32_t pids[] = {42, 1};
    char bytes[KINETO_BYTES_MAX];
    size_t n = kineto_request(bytes, type, 77, pids, 2);

    return tp_kineto_table_receive(w->table, p, bytes, n, unread, w->now);
}

/* Client 1 asks after `wait` seconds; the answer must be of that kind. */
static struct tp_kineto_reply poll(struct world *w, unsigned wait, int32_t type,
                                   uint64_t unread, enum tp_kineto_answer wanted)
{
    struct tp_kineto_peer p = peer(1);
    struct tp_kineto_reply r;

    w->now += wait * S;
    r = ask_as(w, &p, type, unread);
    if (r.answer != wanted)
        fail_msg("answer %d instead of %d at %llu s", r.answer, wanted,
                 (unsigned long long)(w->now / S));
    return r;
}

static int order(struct world *w, uint64_t id, const char *text, unsigned serve_s,
                 unsigned begin_s)
{
    const struct tp_kineto_order o = {.text = tp_str_of(text),
                                      .serve_until_ns = w->now + serve_s * S,
                                      .begin_until_ns = w->now + begin_s * S};

    return tp_kineto_table_order(w->table, id, &o, NULL);
}

/* The news must be of one process and exactly these. */
static struct tp_kineto_target news(struct world *w, uint32_t wanted)
{
    struct tp_kineto_target t, other;

    assert_true(tp_kineto_table_next_news(w->table, &t));
    if (t.news != wanted)
        fail_msg("news %x instead of %x", t.news, wanted);
    assert_false(tp_kineto_table_next_news(w->table, &other));
    return t;
}

#define NEWS(x) TP_KINETO_NEWS_##x

static void test_a_process_is_known_by_its_first_request(void **state)
{
    struct world *w = *state;
    struct tp_kineto_reply r = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    struct tp_kineto_target t;

    assert_int_equal(r.bytes.len, 40);
    t = news(w, NEWS(POLL));
    assert_int_equal(t.id, r.target);
    assert_int_equal(t.state, TP_KINETO_IDLE);
    assert_int_equal(t.peer.pid, 1001);
    assert_int_equal(t.claimed_pid, 42);
    assert_int_equal(t.job, 77);
    assert_false(t.is_old);
    assert_false(t.is_busy);
}

static void test_both_ages_tell_whether_they_are_busy(void **state)
{
    static const struct {
        int32_t idle, busy;
        bool is_old;
    } ages[] = {{IDLE, BUSY, false}, {OLD_IDLE, OLD_BUSY, true}};
    struct world *w = *state;

    for (unsigned i = 0; i < 2; i++) {
        struct tp_kineto_peer p = peer(i);
        uint64_t id = ask_as(w, &p, ages[i].idle, 0).target;
        struct tp_kineto_target t;

        ask_as(w, &p, ages[i].busy, 0);
        assert_true(tp_kineto_table_get(w->table, id, &t));
        if (t.state != TP_KINETO_BUSY || !t.is_busy || t.is_old != ages[i].is_old)
            fail_msg("age %u", i);
        ask_as(w, &p, ages[i].idle, 0);
        assert_true(tp_kineto_table_get(w->table, id, &t));
        assert_int_equal(t.state, TP_KINETO_IDLE);
    }
}

static void test_an_order_lives_from_served_to_ended(void **state)
{
    struct world *w = *state;
    struct tp_kineto_reply r = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY);

    news(w, NEWS(POLL));
    assert_int_equal(order(w, r.target, "A=1\n", 20, 30), TP_OK);
    r = poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
    assert_int_equal(r.bytes.len, 44);
    assert_memory_equal(r.bytes.ptr + 40, "A=1\n", 4);
    assert_int_equal(news(w, NEWS(POLL) | NEWS(SERVED)).served_ns, w->now);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY); /* it is pending */
    assert_int_equal(news(w, NEWS(POLL)).state, TP_KINETO_ARMED);
    poll(w, 5, BUSY, 0, TP_KINETO_ANSWER_EMPTY);
    assert_int_equal(news(w, NEWS(POLL) | NEWS(BEGAN)).state, TP_KINETO_BUSY);
    poll(w, 5, BUSY, 0, TP_KINETO_ANSWER_EMPTY);
    news(w, NEWS(POLL));
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    assert_int_equal(news(w, NEWS(POLL) | NEWS(ENDED)).state, TP_KINETO_IDLE);
}

static void test_a_second_order_is_not_thrown_away_on_an_armed_process(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;

    assert_int_equal(order(w, id, "A=1\n", 20, 30), TP_OK);
    assert_int_equal(order(w, id, "B=2\n", 20, 30), TP_OK); /* replaced */
    assert_memory_equal(poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER).bytes.ptr + 40,
                        "B=2\n", 4);
    assert_int_equal(order(w, id, "C=3\n", 20, 30), TP_ESTATE);
    poll(w, 5, BUSY, 0, TP_KINETO_ANSWER_EMPTY);
    assert_int_equal(order(w, id, "C=3\n", 20, 30), TP_ESTATE);
}

static void test_a_busy_process_gets_its_order_when_it_is_free_again(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;

    assert_int_equal(order(w, id, "A=1\n", 20, 30), TP_OK);
    poll(w, 5, BUSY, 0, TP_KINETO_ANSWER_EMPTY);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
}

static void test_an_order_is_not_served_too_late(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;

    news(w, NEWS(POLL));
    assert_int_equal(order(w, id, "A=1\n", 4, 30), TP_OK);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    news(w, NEWS(POLL) | NEWS(MISSED));
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    news(w, NEWS(POLL));
}

static void test_a_sweep_takes_back_what_nobody_asked_for_in_time(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;

    news(w, NEWS(POLL));
    assert_int_equal(order(w, id, "A=1\n", 4, 30), TP_OK);
    assert_int_equal(tp_kineto_table_sweep(w->table, w->now), w->now + 4 * S + 1);
    tp_kineto_table_sweep(w->table, w->now + 4 * S + 1);
    news(w, NEWS(MISSED));
}

static void test_one_that_never_begins_is_told(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;

    assert_int_equal(order(w, id, "A=1\n", 20, 30), TP_OK);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
    for (int i = 0; i < 5; i++)
        poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    news(w, NEWS(POLL) | NEWS(SERVED));
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    assert_int_equal(news(w, NEWS(POLL) | NEWS(NEVER)).state, TP_KINETO_IDLE);
}

static void test_one_whose_file_is_there_is_idle_before_it_asks_again(void **state)
{
    struct world *w = *state;
    struct tp_kineto_target t;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;

    assert_int_equal(order(w, id, "A=1\n", 20, 30), TP_OK);
    tp_kineto_table_through(w->table, id, w->now); /* it is not served yet */
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
    tp_kineto_table_through(w->table, id, w->now);
    tp_kineto_table_through(w->table, id + 1, w->now);
    assert_int_equal(order(w, id, "B=2\n", 20, 30), TP_OK);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);

    /* Also when it has asked while it recorded. */
    poll(w, 5, BUSY, 0, TP_KINETO_ANSWER_EMPTY);
    assert_int_equal(order(w, id, "C=3\n", 20, 30), TP_ESTATE);
    tp_kineto_table_through(w->table, id, w->now);
    assert_true(tp_kineto_table_get(w->table, id, &t));
    assert_false(t.is_busy);
    assert_int_equal(order(w, id, "C=3\n", 20, 30), TP_OK);
    poll(w, 5, BUSY, 0, TP_KINETO_ANSWER_EMPTY); /* with something else by now */
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
}

static void test_an_order_can_be_withdrawn_before_it_is_served(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;

    assert_false(tp_kineto_table_withdraw(w->table, id));
    assert_int_equal(order(w, id, "A=1\n", 20, 30), TP_OK);
    assert_true(tp_kineto_table_withdraw(w->table, id));
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    assert_int_equal(order(w, id, "A=1\n", 20, 30), TP_OK);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
    assert_false(tp_kineto_table_withdraw(w->table, id));
}

static void test_one_that_lags_is_left_without_exactly_one_answer(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;
    struct tp_kineto_target t;
    struct tp_kineto_reply r;

    assert_int_equal(order(w, id, "A=1\n", 30, 40), TP_OK);
    r = poll(w, 5, IDLE, 768, TP_KINETO_ANSWER_NONE_SKIPPED);
    assert_int_equal(r.bytes.len, 0);
    tp_kineto_table_get(w->table, id, &t);
    assert_int_equal(t.state, TP_KINETO_LAGGING);
    assert_int_equal(t.repairs, 1);
    /* It has read the old answer and is in step: now it may be served. */
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
}

static void test_an_order_that_was_read_late_is_dated_anew(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;
    struct tp_kineto_target t;

    assert_int_equal(order(w, id, "A=1\n", 30, 60), TP_OK);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
    news(w, NEWS(POLL) | NEWS(SERVED));
    poll(w, 5, IDLE, 768, TP_KINETO_ANSWER_NONE_SKIPPED);
    t = news(w, NEWS(POLL) | NEWS(LATE));
    assert_int_equal(t.served_ns, w->now);
    assert_int_equal(t.state, TP_KINETO_ARMED);
    /* A later empty answer that is not read in time says nothing about the order. */
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    poll(w, 5, IDLE, 768, TP_KINETO_ANSWER_NONE_SKIPPED);
    news(w, NEWS(POLL));
}

/* Client 1 is looked at `ms` after its last request. Returns whether there are news. */
static bool look(struct world *w, uint64_t id, uint64_t ms, uint64_t unread)
{
    return tp_kineto_table_unread(w->table, id, unread, w->now + ms * (S / 1000));
}

/* On another processor it has read the old answer before this side looks. */
static void test_an_answer_that_was_unread_later_is_followed_by_none(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;
    struct tp_kineto_target t;

    news(w, NEWS(POLL));
    assert_true(look(w, id, 300, 768));
    t = news(w, NEWS(STEP));
    assert_int_equal(t.state, TP_KINETO_LAGGING);
    assert_true(t.rhythm.is_behind);
    assert_false(look(w, id, 600, 768)); /* that is no news */
    assert_int_equal(order(w, id, "A=1\n", 30, 40), TP_OK);
    assert_int_equal(poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_NONE_SKIPPED).bytes.len, 0);
    t = news(w, NEWS(POLL));
    assert_int_equal(t.state, TP_KINETO_LAGGING);
    assert_int_equal(t.repairs, 1);
    assert_false(t.rhythm.is_behind); /* so it will read the next answer */
    assert_true(look(w, id, 300, 0));
    assert_int_equal(news(w, NEWS(STEP)).state, TP_KINETO_IDLE);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
}

static void test_one_that_is_two_behind_is_left_without_two(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;

    look(w, id, 300, 1536);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_NONE_SKIPPED);
    assert_true(look(w, id, 300, 768));
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_NONE_SKIPPED);
    look(w, id, 300, 0);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
}

/* It did not get the processor for a while, and was in its window all the same. */
static void test_one_that_reads_late_by_itself_is_answered(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, BUSY, 0, TP_KINETO_ANSWER_EMPTY).target;

    news(w, NEWS(POLL));
    look(w, id, 300, 768);
    assert_int_equal(news(w, NEWS(STEP)).state, TP_KINETO_LAGGING);
    assert_true(look(w, id, 600, 0));
    assert_int_equal(news(w, NEWS(STEP)).state, TP_KINETO_BUSY);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
}

static void test_an_order_that_is_unread_later_is_dated_anew(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;
    struct tp_kineto_target t;

    assert_int_equal(order(w, id, "A=1\n", 30, 60), TP_OK);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
    news(w, NEWS(POLL) | NEWS(SERVED));
    assert_true(look(w, id, 300, 768));
    assert_int_equal(news(w, NEWS(STEP)).state, TP_KINETO_ARMED);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_NONE_SKIPPED);
    t = news(w, NEWS(POLL) | NEWS(LATE));
    assert_int_equal(t.served_ns, w->now);
    assert_int_equal(t.state, TP_KINETO_ARMED);
    assert_false(look(w, id, 300, 0));
    /* One that was seen to have read it is not late with it, whatever it leaves. */
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    look(w, id, 300, 768);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_NONE_SKIPPED);
    news(w, NEWS(POLL) | NEWS(STEP));
}

/* It did not drop it: it has not even read it. */
static void test_an_order_that_was_read_after_its_time_is_late_and_not_dropped(
    void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;

    assert_int_equal(order(w, id, "A=1\n", 6, 9), TP_OK);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
    look(w, id, 300, 768);
    news(w, NEWS(POLL) | NEWS(SERVED) | NEWS(STEP));
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_NONE_SKIPPED);
    news(w, NEWS(POLL) | NEWS(LATE));
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    news(w, NEWS(POLL) | NEWS(NEVER));
}

/* In its window it may still read it; and a look before its last request says nothing
 * about the answer to that. */
static void test_a_look_too_early_or_at_nobody_says_nothing(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;

    assert_false(look(w, id, 149, 768));
    w->now += 5 * S;
    poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    assert_false(tp_kineto_table_unread(w->table, id, 768, w->now - 1));
    assert_false(look(w, id + 1, 300, 768));
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    tp_kineto_table_sweep(w->table, w->now + TP_KINETO_SILENCE_S * S);
    assert_false(look(w, id, (TP_KINETO_SILENCE_S + 1) * 1000, 768));
    news(w, NEWS(POLL) | NEWS(GONE));
}

static void test_the_end_of_a_recording_is_not_lost_to_a_lag(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;

    assert_int_equal(order(w, id, "A=1\n", 30, 60), TP_OK);
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
    poll(w, 5, BUSY, 0, TP_KINETO_ANSWER_EMPTY);
    news(w, NEWS(POLL) | NEWS(SERVED) | NEWS(BEGAN));
    poll(w, 5, BUSY, 768, TP_KINETO_ANSWER_NONE_SKIPPED);
    news(w, NEWS(POLL));
    poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_EMPTY);
    news(w, NEWS(POLL) | NEWS(ENDED));
}

static void test_an_answer_that_was_not_sent_leaves_the_order_waiting(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;
    struct tp_kineto_reply r;

    assert_int_equal(order(w, id, "A=1\n", 30, 60), TP_OK);
    r = poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
    tp_kineto_table_unsent(w->table, &r, false);
    news(w, NEWS(POLL));
    r = poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER);
    news(w, NEWS(POLL) | NEWS(SERVED));
    tp_kineto_table_unsent(w->table, &r, true);
    assert_int_equal(news(w, NEWS(GONE)).state, TP_KINETO_GONE);
    assert_false(tp_kineto_table_get(w->table, id, &(struct tp_kineto_target){0}));
}

static void test_silence_is_the_end(void **state)
{
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target, next;

    news(w, NEWS(POLL));
    next = tp_kineto_table_sweep(w->table, w->now);
    assert_int_equal(next, w->now + TP_KINETO_SILENCE_S * S);
    assert_int_equal(tp_kineto_table_sweep(w->table, next), UINT64_MAX);
    assert_int_equal(news(w, NEWS(GONE)).id, id);
    assert_int_equal(order(w, id, "A=1\n", 1, 1), TP_ENOTFOUND);
    /* The same address again is another life. */
    w->now = next;
    assert_true(poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target > id);
}

static void test_an_address_with_other_credentials_is_another_process(void **state)
{
    struct world *w = *state;
    struct tp_kineto_peer p = peer(1);
    uint64_t first = ask_as(w, &p, IDLE, 0).target, second;
    struct tp_kineto_target t;

    assert_int_equal(order(w, first, "SECRET=1\n", 30, 60), TP_OK);
    p.uid = 99;
    assert_int_equal(ask_as(w, &p, IDLE, 0).answer, TP_KINETO_ANSWER_EMPTY);
    second = ask_as(w, &p, IDLE, 0).target;
    assert_true(second > first);
    assert_true(tp_kineto_table_next_news(w->table, &t));
    assert_int_equal(t.id, first);
    assert_true((t.news & NEWS(GONE)) != 0);
    /* And the same name on another socket is another one, too. */
    p.listener = 1;
    assert_true(ask_as(w, &p, IDLE, 0).target > second);
}

static void test_a_context_is_answered_with_how_many_there_are(void **state)
{
    struct world *w = *state;
    char bytes[KINETO_BYTES_MAX];

    for (unsigned i = 0; i < 3; i++) {
        struct tp_kineto_peer p = peer(i);
        size_t n = kineto_context(bytes, i == 2 ? 1 : 0, 42, 77);
        struct tp_kineto_reply r =
            tp_kineto_table_receive(w->table, &p, bytes, n, 0, w->now);
        int32_t count;

        assert_int_equal(r.answer, TP_KINETO_ANSWER_COUNT);
        assert_int_equal(r.bytes.len, 44);
        memcpy(&count, r.bytes.ptr + 40, 4);
        assert_int_equal(count, i == 2 ? 1 : i + 1);
    }
}

static void test_what_is_not_of_the_protocol_makes_nobody_known(void **state)
{
    struct world *w = *state;
    struct tp_kineto_peer p = peer(1);
    struct tp_kineto_stats stats;
    struct tp_kineto_reply r;

    r = tp_kineto_table_receive(w->table, &p, "x", 1, 0, w->now);
    assert_int_equal(r.answer, TP_KINETO_ANSWER_NONE_BAD);
    assert_int_equal(r.bytes.len, 0);
    p.address_bytes = 0; /* nobody to answer to */
    assert_int_equal(ask_as(w, &p, IDLE, 0).answer, TP_KINETO_ANSWER_NONE_BAD);
    tp_kineto_table_stats(w->table, &stats);
    assert_int_equal(stats.n_targets, 0);
    assert_int_equal(stats.answers[TP_KINETO_ANSWER_NONE_BAD], 2);
}

static void test_a_flood_is_not_answered_and_others_are(void **state)
{
    struct world *w = *state;
    struct tp_kineto_peer bad = peer(1), good = peer(2);
    struct tp_kineto_target t;
    uint64_t id = 0;

    for (int i = 0; i < 100000; i++) {
        struct tp_kineto_reply r = ask_as(w, &bad, IDLE, 0);
        bool is_in = i < TP_KINETO_BURST;

        id = r.target;
        if ((r.answer == TP_KINETO_ANSWER_EMPTY) != is_in ||
            (r.bytes.len != 0) != is_in)
            fail_msg("datagram %d: answer %d", i, r.answer);
    }
    tp_kineto_table_get(w->table, id, &t);
    assert_int_equal(t.floods, 100000 - TP_KINETO_BURST);
    assert_int_equal(ask_as(w, &good, IDLE, 0).answer, TP_KINETO_ANSWER_EMPTY);
    w->now += 5 * S;
    assert_int_equal(ask_as(w, &bad, IDLE, 0).answer, TP_KINETO_ANSWER_EMPTY);
}

static void test_one_process_cannot_fill_the_table(void **state)
{
    struct world *w = *state;
    struct tp_kineto_stats stats;

    for (unsigned i = 0; i < 100; i++) {
        struct tp_kineto_peer p = peer(i);
        struct tp_kineto_reply r;

        p.pid = 4;
        r = ask_as(w, &p, IDLE, 0);
        if (r.bytes.len != 40 ||
            (r.answer == TP_KINETO_ANSWER_EMPTY) != (i < TP_KINETO_TARGETS_PER_PID))
            fail_msg("socket %u: answer %d", i, r.answer);
    }
    tp_kineto_table_stats(w->table, &stats);
    assert_int_equal(stats.n_targets, TP_KINETO_TARGETS_PER_PID);
}

static void test_a_full_table_still_answers_within_bounds(void **state)
{
    struct world *w = *state;
    struct tp_kineto_stats stats;
    unsigned n_unknown = 0;

    for (unsigned i = 0; i < TP_KINETO_TARGETS_MAX + 3000; i++) {
        struct tp_kineto_peer p = peer(i);

        p.uid = i % 3;
        n_unknown += ask_as(w, &p, IDLE, 0).answer == TP_KINETO_ANSWER_EMPTY_UNKNOWN;
    }
    tp_kineto_table_stats(w->table, &stats);
    assert_int_equal(stats.n_targets, TP_KINETO_TARGETS_MAX);
    assert_int_equal(n_unknown, TP_KINETO_UNKNOWN_PER_S);
    /* When they are gone there is room again. */
    w->now += (TP_KINETO_SILENCE_S + 1) * S;
    tp_kineto_table_sweep(w->table, w->now);
    assert_int_equal(poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).bytes.len, 40);
}

static void test_one_user_cannot_fill_the_table(void **state)
{
    struct world *w = *state;
    struct tp_kineto_peer other = peer(2 * TP_KINETO_TARGETS_PER_UID);
    struct tp_kineto_stats stats;

    for (unsigned i = 0; i < TP_KINETO_TARGETS_PER_UID + 10; i++) {
        struct tp_kineto_peer p = peer(i);
        bool is_known = ask_as(w, &p, IDLE, 0).answer == TP_KINETO_ANSWER_EMPTY;

        if (is_known != (i < TP_KINETO_TARGETS_PER_UID))
            fail_msg("process %u", i);
    }
    other.uid = 9;
    assert_int_equal(ask_as(w, &other, IDLE, 0).answer, TP_KINETO_ANSWER_EMPTY);
    tp_kineto_table_stats(w->table, &stats);
    assert_int_equal(stats.n_targets, TP_KINETO_TARGETS_PER_UID + 1);
}

/* Nothing tells which of them one is, so they share. */
static void test_processes_that_are_not_visible_cannot_fill_the_table(void **state)
{
    struct world *w = *state;
    struct tp_kineto_peer other = peer(2 * TP_KINETO_UNSEEN_PER_UID);
    struct tp_kineto_stats stats;

    for (unsigned i = 0; i < TP_KINETO_UNSEEN_PER_UID + 10; i++) {
        struct tp_kineto_peer p = peer(i);
        bool is_known;

        p.pid = 0;
        is_known = ask_as(w, &p, IDLE, 0).answer == TP_KINETO_ANSWER_EMPTY;
        if (is_known != (i < TP_KINETO_UNSEEN_PER_UID))
            fail_msg("process %u", i);
    }
    assert_int_equal(ask_as(w, &other, IDLE, 0).answer, TP_KINETO_ANSWER_EMPTY);
    other = peer(2 * TP_KINETO_UNSEEN_PER_UID + 1);
    other.pid = 0;
    other.uid = 9;
    assert_int_equal(ask_as(w, &other, IDLE, 0).answer, TP_KINETO_ANSWER_EMPTY);
    tp_kineto_table_stats(w->table, &stats);
    assert_int_equal(stats.n_targets, TP_KINETO_UNSEEN_PER_UID + 2);
    /* When they are gone there is room again. */
    w->now += (TP_KINETO_SILENCE_S + 1) * S;
    tp_kineto_table_sweep(w->table, w->now);
    assert_int_equal(ask_as(w, &other, IDLE, 0).answer, TP_KINETO_ANSWER_EMPTY);
}

static void test_what_the_gate_threw_away_is_counted(void **state)
{
    struct world *w = *state;
    struct tp_kineto_stats stats;

    tp_kineto_table_flooded(w->table, 17);
    tp_kineto_table_stats(w->table, &stats);
    assert_int_equal(stats.answers[TP_KINETO_ANSWER_NONE_FLOOD], 17);
    assert_int_equal(stats.n_targets, 0);
}

static void test_orders_that_cannot_be_are_refused(void **state)
{
    static char text[TP_KINETO_ORDER_MAX_BYTES + 2];
    struct world *w = *state;
    uint64_t id = poll(w, 0, IDLE, 0, TP_KINETO_ANSWER_EMPTY).target;

    memset(text, 'x', sizeof(text) - 1);
    assert_int_equal(order(w, id, text, 9, 9), TP_EINVAL);
    assert_int_equal(order(w, id, "", 9, 9), TP_EINVAL);
    assert_int_equal(order(w, id + 1, "A=1\n", 9, 9), TP_ENOTFOUND);
    text[sizeof(text) - 2] = '\0';
    assert_int_equal(order(w, id, text, 9, 9), TP_OK);
    assert_int_equal(poll(w, 5, IDLE, 0, TP_KINETO_ANSWER_ORDER).bytes.len,
                     40 + TP_KINETO_ORDER_MAX_BYTES);
}

static void test_it_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct world w = {.now = 1000 * S};
        struct tp_kineto_peer p = peer(1);
        struct tp_kineto_reply r = {0};
        int rc, placed = TP_OK;

        fault_arm(n);
        rc = tp_kineto_table_new(&w.table, NULL);
        if (rc == TP_OK)
            r = ask_as(&w, &p, IDLE, 0);
        if (rc == TP_OK && r.target != 0)
            placed = order(&w, r.target, "A=1\n", 9, 9);
        if (!fault_disarm()) {
            assert_int_equal(r.answer, TP_KINETO_ANSWER_EMPTY);
            assert_int_equal(placed, TP_OK);
            tp_kineto_table_free(w.table);
            return;
        }
        /* No memory: it is answered all the same, and known the next time. */
        if (rc == TP_OK) {
            assert_int_equal(r.bytes.len, 40);
            assert_true(r.target == 0 || placed == TP_ENOMEM);
            assert_int_equal(ask_as(&w, &p, IDLE, 0).answer, TP_KINETO_ANSWER_EMPTY);
        } else {
            assert_int_equal(rc, TP_ENOMEM);
        }
        tp_kineto_table_free(w.table);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_process_is_known_by_its_first_request),
        TEST(test_both_ages_tell_whether_they_are_busy),
        TEST(test_an_order_lives_from_served_to_ended),
        TEST(test_a_second_order_is_not_thrown_away_on_an_armed_process),
        TEST(test_a_busy_process_gets_its_order_when_it_is_free_again),
        TEST(test_an_order_is_not_served_too_late),
        TEST(test_a_sweep_takes_back_what_nobody_asked_for_in_time),
        TEST(test_one_that_never_begins_is_told),
        TEST(test_one_whose_file_is_there_is_idle_before_it_asks_again),
        TEST(test_an_order_can_be_withdrawn_before_it_is_served),
        TEST(test_one_that_lags_is_left_without_exactly_one_answer),
        TEST(test_an_order_that_was_read_late_is_dated_anew),
        TEST(test_an_answer_that_was_unread_later_is_followed_by_none),
        TEST(test_one_that_is_two_behind_is_left_without_two),
        TEST(test_one_that_reads_late_by_itself_is_answered),
        TEST(test_an_order_that_is_unread_later_is_dated_anew),
        TEST(test_an_order_that_was_read_after_its_time_is_late_and_not_dropped),
        TEST(test_a_look_too_early_or_at_nobody_says_nothing),
        TEST(test_the_end_of_a_recording_is_not_lost_to_a_lag),
        TEST(test_an_answer_that_was_not_sent_leaves_the_order_waiting),
        TEST(test_silence_is_the_end),
        TEST(test_an_address_with_other_credentials_is_another_process),
        TEST(test_a_context_is_answered_with_how_many_there_are),
        TEST(test_what_is_not_of_the_protocol_makes_nobody_known),
        TEST(test_a_flood_is_not_answered_and_others_are),
        TEST(test_one_process_cannot_fill_the_table),
        TEST(test_one_user_cannot_fill_the_table),
        TEST(test_processes_that_are_not_visible_cannot_fill_the_table),
        TEST(test_a_full_table_still_answers_within_bounds),
        TEST(test_what_the_gate_threw_away_is_counted),
        TEST(test_orders_that_cannot_be_are_refused),
        cmocka_unit_test(test_it_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
