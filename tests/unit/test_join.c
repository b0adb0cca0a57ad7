/*
 * test_join.c - who is one process with whom, and what they know of each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/strmap.h"
#include "engine/join.h"
#include "engine/model.h"
#include "engine/pool.h"
#include "engine/trace_views.h"
#include "support/fault.h"

#define MOST 6

/* A view of some members, with a pool of its own. */
struct scene {
    struct tp_member_view members[MOST];
    struct tp_stream_view streams[1];
    struct tp_trace_view view;
};

static void begin(struct scene *s)
{
    memset(s, 0, sizeof(*s));
    s->view.pool = tp_pool_new();
    s->view.members = s->members;
    s->view.streams = s->streams;
}

static void finish(struct scene *s)
{
    tp_pool_free(s->view.pool);
}

static struct tp_identity_view identity(const char *id, const char *kind,
                                        const char *key, int64_t pid, int64_t rank)
{
    return (struct tp_identity_view){.id = id,
                                     .name = id,
                                     .kind = kind,
                                     .host = "h",
                                     .backend = "",
                                     .device = "",
                                     .rank = rank,
                                     .pid = pid,
                                     .process = key,
                                     .joined_with = "",
                                     .join_note = ""};
}

static struct tp_identity_view *add(struct scene *s, const char *id, const char *kind,
                                    const char *key, int64_t pid, int64_t rank)
{
    struct tp_identity_view *who = &s->members[s->view.n_members++].who;

    *who = identity(id, kind, key, pid, rank);
    return who;
}

static void test_equal_keys_are_one_process_whatever_host_and_pid(void **state)
{
    struct scene s;
    struct tp_identity_view *native, *kineto;

    (void)state;
    begin(&s);
    native = add(&s, "n", "native", "b/1/7/9", 7, 3); /* 7 in its container */
    kineto = add(&s, "k", "kineto", "b/1/7/9", 4711, -1);
    native->host = "pod";
    native->world_size = 8;
    tp_join_view(&s.view);
    assert_string_equal(native->joined_with, "k");
    assert_string_equal(kineto->joined_with, "n");
    assert_int_not_equal(native->process_no, 0);
    assert_int_equal(native->process_no, kineto->process_no);
    assert_int_equal(kineto->process_pid, 7); /* the one in its events */
    assert_int_equal(kineto->rank, 3);
    assert_int_equal(kineto->world_size, 8);
    assert_string_equal(kineto->join_note, "");
    finish(&s);
}

static void test_a_stream_that_knows_its_rank_tells_all(void **state)
{
    struct scene s;
    struct tp_identity_view *native, *kineto;

    (void)state;
    begin(&s);
    native = add(&s, "n", "native", "b/1/7/9", 7, -1);
    kineto = add(&s, "k", "kineto", "b/1/7/9", 7, -1);
    s.view.n_streams = 1;
    s.streams[0].who = identity("k", "kineto", "b/1/7/9", 7, 2); /* by its file */
    tp_join_view(&s.view);
    assert_int_equal(native->rank, 2);
    assert_int_equal(kineto->rank, 2);
    finish(&s);
}

static void test_a_pid_that_was_used_again_is_another_process(void **state)
{
    static const char *const others[] = {"b/1/7/10", "b/2/7/9", "c/1/7/9"};

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct scene s;
        struct tp_identity_view *native, *kineto;

        begin(&s);
        native = add(&s, "n", "native", "b/1/7/9", 7, 3);
        kineto = add(&s, "k", "kineto", others[i], 7, -1);
        tp_join_view(&s.view);
        if (native->process_no != 0 || kineto->rank != -1)
            fail_msg("%s was joined", others[i]);
        assert_string_equal(native->joined_with, "");
        assert_non_null(strstr(native->join_note, "another process"));
        assert_non_null(strstr(kineto->join_note, "not joined with n"));
        finish(&s);
    }
}

static void test_without_a_key_host_and_pid_count(void **state)
{
    struct scene s;
    struct tp_identity_view *native, *kineto, *far, *other;

    (void)state;
    begin(&s);
    native = add(&s, "n", "native", "", 7, 3);
    kineto = add(&s, "k", "kineto", "b/1/7/9", 7, -1);
    far = add(&s, "far", "native", "", 7, 4); /* the same pid on another host */
    far->host = "g";
    other = add(&s, "other", "native", "", 8, 5);
    tp_join_view(&s.view);
    assert_int_equal(native->process_no, kineto->process_no);
    assert_int_equal(kineto->rank, 3);
    assert_int_equal(far->process_no, 0);
    assert_int_equal(other->process_no, 0);
    finish(&s);
}

static void test_two_that_could_be_it_are_not_guessed_from(void **state)
{
    struct scene s;
    struct tp_identity_view *kineto, *a;

    (void)state;
    begin(&s);
    a = add(&s, "a", "native", "", 7, 3);
    add(&s, "b", "native", "", 7, 4);
    kineto = add(&s, "k", "kineto", "b/1/7/9", 7, -1);
    tp_join_view(&s.view);
    assert_int_equal(kineto->process_no, 0);
    assert_int_equal(kineto->rank, -1);
    assert_non_null(strstr(kineto->join_note, "others have the same host and pid"));
    assert_non_null(strstr(a->join_note, "others have the same host and pid"));
    finish(&s);
}

/* In any order: one that has host and pid of a process, but not its key. */
static void test_a_liar_is_told_from_the_process_that_it_names(void **state)
{
    static const char *const ids[][3] = {
        {"a", "b", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}};

    (void)state;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        for (int has_key = 0; has_key < 2; has_key++) {
            struct tp_identity_view *native, *kineto, *liar;
            struct scene s;

            begin(&s);
            native = add(&s, ids[i][0], "native", "b/1/7/9", 7, 3);
            kineto = add(&s, ids[i][1], "kineto", "b/1/7/9", 7, -1);
            liar = add(&s, ids[i][2], "native", has_key ? "b/1/8/9" : "", 7, 4);
            tp_join_view(&s.view);
            if (liar->process_no != 0 || kineto->rank != 3 ||
                native->process_no != kineto->process_no || native->process_no == 0 ||
                strstr(liar->join_note, "not joined with") == NULL)
                fail_msg("order %zu, key %d: %s", i, has_key, liar->join_note);
            finish(&s);
        }
    }
}

static void test_hosts_and_pids_that_are_not_known_say_nothing(void **state)
{
    struct scene s;
    struct tp_identity_view *native, *kineto;

    (void)state;
    begin(&s);
    native = add(&s, "n", "native", "", -1, 3);
    kineto = add(&s, "k", "kineto", "", -1, -1); /* not visible to the kernel */
    tp_join_view(&s.view);
    assert_int_equal(kineto->process_no, 0);
    assert_string_equal(kineto->join_note, "");
    native->pid = kineto->pid = 7;
    native->host = kineto->host = "";
    tp_join_view(&s.view);
    assert_int_equal(kineto->process_no, 0);
    finish(&s);
}

static void test_who_disagrees_keeps_its_own_and_says_so(void **state)
{
    struct scene s;
    struct tp_identity_view *native, *kineto;

    (void)state;
    begin(&s);
    native = add(&s, "n", "native", "b/1/7/9", 7, 3);
    kineto = add(&s, "k", "kineto", "b/1/7/9", 7, 5);
    native->world_size = 8;
    kineto->world_size = 4;
    tp_join_view(&s.view);
    assert_int_equal(native->process_no, kineto->process_no);
    assert_int_not_equal(native->process_no, 0);
    assert_int_equal(native->rank, 3);
    assert_int_equal(kineto->rank, 5);
    assert_string_equal(native->join_note,
                        "rank 3 here, 5 as k says; world size 8 here, 4 as k says");
    assert_string_equal(kineto->join_note,
                        "rank 5 here, 3 as n says; world size 4 here, 8 as n says");
    finish(&s);
}

/* Two libraries in one process, and who has no part in it. */
static void test_native_producers_of_one_key_are_one_process(void **state)
{
    struct scene s;
    struct tp_identity_view *a, *b, *http, *apart, *keyless;

    (void)state;
    for (int with_kineto = 0; with_kineto < 2; with_kineto++) {
        begin(&s);
        a = add(&s, "a", "native", "b/1/7/9", 7, 3);
        b = add(&s, "b", "native", "b/1/7/9", 7, -1);
        http = add(&s, "http", "http", "b/1/7/9", 7, -1);
        apart = add(&s, "apart", "native", "b/1/7/10", 7, -1);
        keyless = add(&s, "keyless", "native", "", 7, -1);
        if (with_kineto)
            add(&s, "k", "kineto", "b/1/7/9", 7, -1);
        tp_join_view(&s.view);
        assert_int_not_equal(a->process_no, 0);
        assert_int_equal(a->process_no, b->process_no);
        assert_int_equal(b->process_pid, 7);
        assert_int_equal(b->rank, 3);
        assert_string_equal(b->joined_with, "a");
        assert_int_equal(http->process_no + apart->process_no + keyless->process_no, 0);
        finish(&s);
    }
}

static void test_ranks_of_one_process_stay_apart(void **state)
{
    struct scene s;
    struct tp_identity_view *a, *b;

    (void)state;
    begin(&s);
    a = add(&s, "a", "native", "b/1/7/9", 7, 0);
    b = add(&s, "b", "native", "b/1/7/9", 7, 1);
    tp_join_view(&s.view);
    assert_int_equal(a->process_no + b->process_no, 0);
    assert_int_equal(a->rank, 0);
    assert_int_equal(b->rank, 1);
    finish(&s);
}

/* Producers of two processes and of none, in two jobs; which of them are told. */
#define PRODUCERS 12

struct ranked {
    struct tp_job jobs[2];
    struct tp_producer all[PRODUCERS];
    bool is_told[PRODUCERS];
};

static int64_t rank_as_by_looking_at_all(const struct ranked *s,
                                         const struct tp_producer *p)
{
    int64_t rank = -1;

    if (p->who.rank >= 0)
        return p->who.rank;
    for (size_t i = 0; i < PRODUCERS && p->who.process[0] != '\0'; i++) {
        const struct tp_producer *q = &s->all[i];

        if (!s->is_told[i] || q->job != p->job || q->who.rank < 0 ||
            strcmp(q->who.process, p->who.process) != 0)
            continue;
        if (rank >= 0 && rank != q->who.rank)
            return -1;
        rank = q->who.rank;
    }
    return rank;
}

static void set_again(struct ranked *s, size_t i, uint32_t random)
{
    static const char *const keys[] = {"", "b/1/7/9", "b/1/8/9"};
    struct tp_producer *p = &s->all[i];

    p->job = &s->jobs[i % 2]; /* it has one for life */
    p->who.process = keys[random % 3];
    p->who.rank = (int64_t)(random / 3 % 3) - 1;
}

static void test_a_rank_is_lent_by_those_who_are_there(void **state)
{
    struct ranked s = {0};
    uint32_t random = 1;

    (void)state;
    for (size_t i = 0; i < PRODUCERS; i++)
        set_again(&s, i, 0);
    for (int n = 0; n < 20000; n++) {
        size_t i = (random = random * 1664525 + 1013904223) >> 16 & 0xffff;

        i %= PRODUCERS;
        tp_join_untell_rank(&s.all[i]);
        s.is_told[i] = false;
        random = random * 1664525 + 1013904223;
        set_again(&s, i, random >> 16);
        if (random >> 28 < 12) {
            tp_join_tell_rank(&s.all[i]);
            s.is_told[i] = true;
        }
        for (size_t k = 0; k < PRODUCERS; k++)
            if (tp_join_rank(&s.all[k]) != rank_as_by_looking_at_all(&s, &s.all[k]))
                fail_msg("step %d, producer %zu: rank %lld", n, k,
                         (long long)tp_join_rank(&s.all[k]));
    }
    for (size_t i = 0; i < PRODUCERS; i++)
        tp_join_untell_rank(&s.all[i]);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(tp_strmap_len(&s.jobs[i].ranked), 0);
        tp_strmap_fini(&s.jobs[i].ranked);
    }
}

static void test_without_memory_a_rank_is_not_lent(void **state)
{
    struct tp_job job = {0};
    struct tp_producer one = {.job = &job, .who = {.process = "b/1/7/9", .rank = 5}};
    struct tp_producer other = {.job = &job, .who = {.process = "b/1/7/9", .rank = -1}};

    (void)state;
    fault_arm(0);
    tp_join_tell_rank(&one);
    assert_true(fault_disarm());
    assert_int_equal(tp_join_rank(&other), -1);
    tp_join_untell_rank(&one);
    tp_join_tell_rank(&one);
    assert_int_equal(tp_join_rank(&other), 5);
    tp_join_untell_rank(&one);
    tp_strmap_fini(&job.ranked);
}

static void test_no_memory_is_told_by_the_pool(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct scene s;
        bool has_failed;

        begin(&s);
        add(&s, "n", "native", "b/1/7/9", 7, 3);
        add(&s, "k", "kineto", "b/1/7/9", 7, 5);
        fault_arm(n);
        tp_join_view(&s.view);
        has_failed = fault_disarm();
        assert_int_equal(tp_pool_has_failed(s.view.pool), has_failed);
        finish(&s);
        if (!has_failed)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_keys_are_one_process_whatever_host_and_pid),
        cmocka_unit_test(test_a_stream_that_knows_its_rank_tells_all),
        cmocka_unit_test(test_a_pid_that_was_used_again_is_another_process),
        cmocka_unit_test(test_without_a_key_host_and_pid_count),
        cmocka_unit_test(test_two_that_could_be_it_are_not_guessed_from),
        cmocka_unit_test(test_a_liar_is_told_from_the_process_that_it_names),
        cmocka_unit_test(test_hosts_and_pids_that_are_not_known_say_nothing),
        cmocka_unit_test(test_who_disagrees_keeps_its_own_and_says_so),
        cmocka_unit_test(test_native_producers_of_one_key_are_one_process),
        cmocka_unit_test(test_ranks_of_one_process_stay_apart),
        cmocka_unit_test(test_a_rank_is_lent_by_those_who_are_there),
        cmocka_unit_test(test_without_memory_a_rank_is_not_lent),
        cmocka_unit_test(test_no_memory_is_told_by_the_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
