/*
 * test_chrome_track.c - each pair of pid and tid has one track that never moves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/chrome_track.h"

static struct tp_id number(int64_t n)
{
    return (struct tp_id){.kind = TP_ID_NUMBER, .number = n};
}

static struct tp_id text(const char *s)
{
    return (struct tp_id){.kind = TP_ID_TEXT, .text = tp_str_of(s)};
}

static const struct tp_track *get(struct tp_chrome_tracks *t, struct tp_id pid,
                                  struct tp_id tid)
{
    const struct tp_track *track = NULL;

    assert_int_equal(tp_chrome_tracks_get(t, &pid, &tid, &track, NULL), TP_OK);
    return track;
}

static void test_equal_pairs_have_one_track_and_others_do_not(void **state)
{
    const struct tp_id ids[] = {
        number(1),  number(-1), number(INT64_MIN),     text("1"),
        text("-1"), text(""),   text("a longer text"), {.kind = TP_ID_NONE}};
    const size_t n = sizeof(ids) / sizeof(ids[0]);
    const struct tp_track *tracks[64];
    struct tp_chrome_tracks t;

    (void)state;
    tp_chrome_tracks_init(&t, 100);
    for (size_t i = 0; i < n * n; i++) {
        tracks[i] = get(&t, ids[i / n], ids[i % n]);
        assert_int_equal(tracks[i]->index, i);
        assert_int_equal(tracks[i]->lane, 0);
    }
    for (size_t i = 0; i < n * n; i++) {
        assert_ptr_equal(get(&t, ids[i / n], ids[i % n]), tracks[i]);
        assert_true(tp_chrome_id_equal(&tracks[i]->pid, &ids[i / n]));
        assert_true(tp_chrome_id_equal(&tracks[i]->tid, &ids[i % n]));
    }
    tp_chrome_tracks_fini(&t);
    tp_chrome_tracks_fini(&t);
    tp_chrome_tracks_fini(NULL);
}

static void test_texts_are_copied(void **state)
{
    struct tp_chrome_tracks t;
    const struct tp_track *track;
    char id[] = "Spans";

    (void)state;
    tp_chrome_tracks_init(&t, 100);
    track = get(&t, text(id), number(1));
    id[0] = 'X';
    assert_true(tp_str_is(track->pid.text, "Spans"));
    assert_ptr_equal(get(&t, text("Spans"), number(1)), track);
    tp_chrome_tracks_fini(&t);
}

static void test_many_tracks_stay_where_they_are(void **state)
{
    enum { N = 20000 };
    const struct tp_track **tracks = calloc(N, sizeof(struct tp_track *));
    struct tp_chrome_tracks t;

    (void)state;
    assert_non_null(tracks);
    tp_chrome_tracks_init(&t, N);
    for (int i = 0; i < N; i++)
        tracks[i] = get(&t, number(i % 7), number(i));
    for (int i = N - 1; i >= 0; i--) {
        assert_ptr_equal(get(&t, number(i % 7), number(i)), tracks[i]);
        assert_int_equal(tracks[i]->index, i);
    }
    tp_chrome_tracks_fini(&t);
    free(tracks);
}

static void test_limits_refuse_new_tracks_only(void **state)
{
    struct tp_chrome_tracks t;
    const struct tp_id pid = number(1);
    const struct tp_id tid = number(2);
    const struct tp_track *track = NULL;
    struct tp_err err;
    struct tp_id big = text("");
    char *bytes = calloc(1, TP_CHROME_TRACK_TEXT_BYTES);

    (void)state;
    assert_non_null(bytes);
    tp_chrome_tracks_init(&t, 1);
    get(&t, pid, pid);
    assert_int_equal(tp_chrome_tracks_get(&t, &pid, &tid, &track, &err), TP_EQUOTA);
    assert_string_equal(err.message, "more than 1 pairs of pid and tid");
    assert_null(track);
    assert_int_equal(get(&t, pid, pid)->index, 0);
    tp_chrome_tracks_reset(&t);
    assert_int_equal(get(&t, pid, tid)->index, 0);
    tp_chrome_tracks_fini(&t);

    tp_chrome_tracks_init(&t, 100);
    big.text = (struct tp_str){bytes, TP_CHROME_TRACK_TEXT_BYTES};
    get(&t, big, tid);
    assert_int_equal(get(&t, number(3), text(""))->index, 1);
    big = text("x");
    assert_int_equal(tp_chrome_tracks_get(&t, &big, &tid, &track, &err), TP_EQUOTA);
    tp_chrome_tracks_fini(&t);
    free(bytes);
}

static void test_get_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        const struct tp_id pid = text("pid");
        const struct tp_id tid = text("tid");
        const struct tp_track *track = NULL;
        struct tp_chrome_tracks t;
        int rc;

        tp_chrome_tracks_init(&t, 10);
        fault_arm(n);
        rc = tp_chrome_tracks_get(&t, &pid, &tid, &track, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(n, 5); /* slots, list, block, two texts */
            tp_chrome_tracks_fini(&t);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(track);
        assert_int_equal(get(&t, pid, tid)->index, 0);
        tp_chrome_tracks_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_pairs_have_one_track_and_others_do_not),
        cmocka_unit_test(test_texts_are_copied),
        cmocka_unit_test(test_many_tracks_stay_where_they_are),
        cmocka_unit_test(test_limits_refuse_new_tracks_only),
        cmocka_unit_test(test_get_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
