/*
 * Waiting connections, without connections: a waiter is three callbacks and a socket.
 */
#include "support/engine_test.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "engine/sync.h"
#include "server/clock.h"
#include "server/waiters.h"
#include "support/fault.h"

/* One that waits, and what was done to it. */
struct patient {
    int ends[2]; /* a socket pair: ours, the client's */
    _Atomic int n_suspended, n_resumed, n_stopped; /* by the waiters' thread, too */
    bool is_ready;
    _Atomic bool is_gone;
    sem_t resumed; /* posted with each resume */
};

static void on_suspend(void *arg)
{
    struct patient *p = arg;

    p->n_suspended++;
}

static void on_resume(void *arg)
{
    struct patient *p = arg;

    p->n_resumed++;
    sem_post(&p->resumed);
}

static bool is_ready(void *arg, struct tp_now now)
{
    struct patient *p = arg;

    (void)now;
    return p->is_ready;
}

static void on_gone(void *arg)
{
    struct patient *p = arg;

    p->is_gone = true;
}

static void on_stop(void *arg)
{
    struct patient *p = arg;

    p->n_stopped++;
}

static void open_patient(struct patient *p)
{
    *p = (struct patient){0};
    assert_int_equal(sem_init(&p->resumed, 0, 0), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p->ends), 0);
}

static void close_patient(struct patient *p)
{
    close(p->ends[0]);
    close(p->ends[1]);
}

static int add(struct tp_waiters *w, struct patient *p)
{
    const struct tp_waiter waiter = {.fd = p->ends[0],
                                     .deadline_ns = UINT64_MAX,
                                     .suspend = on_suspend,
                                     .resume = on_resume,
                                     .ready = is_ready,
                                     .on_gone = on_gone,
                                     .on_stop = on_stop,
                                     .arg = p};
    struct tp_err err = {0};

    return tp_waiters_add(w, &waiter, &err);
}

static struct tp_waiters *new_waiters(void)
{
    struct tp_waiters *w = NULL;
    struct tp_err err = {0};

    assert_int_equal(tp_waiters_new(NULL, &w, &err), TP_OK);
    return w;
}

static void test_who_is_ready_already_is_resumed_at_once(void **state)
{
    struct tp_waiters *w = new_waiters();
    struct patient p;

    (void)state;
    open_patient(&p);
    p.is_ready = true;
    assert_int_equal(add(w, &p), TP_OK);
    assert_int_equal(p.n_suspended, 1);
    assert_int_equal(p.n_resumed, 1);
    assert_int_equal(tp_waiters_count(w), 0);
    close_patient(&p);
    tp_waiters_free(w);
}

static void test_draining_resumes_all_and_keeps_nobody_later(void **state)
{
    struct tp_waiters *w = new_waiters();
    struct patient before[100];
    struct patient after;

    (void)state;
    for (int i = 0; i < 100; i++) {
        open_patient(&before[i]);
        assert_int_equal(add(w, &before[i]), TP_OK);
    }
    assert_int_equal(tp_waiters_count(w), 100);
    tp_waiters_drain(w);
    assert_int_equal(tp_waiters_count(w), 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(before[i].n_resumed, 1);
        assert_int_equal(before[i].n_stopped, 1);
        assert_false(before[i].is_gone);
        close_patient(&before[i]);
    }
    open_patient(&after);
    assert_int_equal(add(w, &after), TP_OK);
    assert_int_equal(after.n_stopped, 1);
    assert_int_equal(after.n_resumed, 1);
    close_patient(&after);
    tp_waiters_free(w);
}

static void test_without_memory_nobody_is_suspended(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_waiters *w = NULL;
        struct tp_err err = {0};
        struct patient p;
        int rc;

        open_patient(&p);
        fault_arm(n);
        rc = tp_waiters_new(NULL, &w, &err);
        if (rc == TP_OK)
            rc = add(w, &p);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_waiters_drain(w);
        } else {
            assert_int_equal(rc, TP_ENOMEM);
            assert_int_equal(p.n_suspended, 0);
        }
        close_patient(&p);
        tp_waiters_free(w);
        if (rc == TP_OK)
            break;
    }
}

/* Waiters whose thread runs, on the engine of a rig. */
static struct tp_waiters *start_waiters(struct rig *r)
{
    struct tp_waiters *w = NULL;
    struct tp_err err = {0};

    assert_int_equal(tp_waiters_new(r->engine, &w, &err), TP_OK);
    assert_int_equal(tp_waiters_start(w, NULL, &err), TP_OK);
    return w;
}

static void end_waiters(struct tp_waiters *w)
{
    tp_waiters_drain(w);
    tp_waiters_stop(w);
    tp_waiters_free(w);
}

static void expect_resumed(struct patient *p)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    assert_int_equal(sem_timedwait(&p->resumed, &until), 0);
}

/* Who waits for a start of a real trace, and what it said. */
struct speaker {
    struct patient patient;
    struct tp_engine *engine;
    const char *id;
    _Atomic int n_spoken;
    _Atomic int n_resumed_before; /* of all, when it spoke */
    _Atomic int *n_resumed;       /* of all */
};

static bool has_command(void *arg, struct tp_now now)
{
    const struct speaker *s = arg;

    (void)now;
    return tp_engine_sync_ready(s->engine, tp_str_of(s->id));
}

static bool on_speak(void *arg, struct tp_now now, struct tp_buf *out)
{
    struct speaker *s = arg;

    if (!has_command(arg, now))
        return false;
    s->n_spoken += out->len == 0;
    s->n_resumed_before = *s->n_resumed;
    return true;
}

static void on_speaker_resume(void *arg)
{
    struct speaker *s = arg;

    ++*s->n_resumed;
    on_resume(&s->patient);
}

static void on_speaker_suspend(void *arg)
{
    struct speaker *s = arg;

    on_suspend(&s->patient);
}

#define AUDIENCE 20

/* Producers who wait for a start. */
struct audience {
    struct speaker speakers[AUDIENCE];
    char p[AUDIENCE][TP_TRACE_ID_BYTES];
    _Atomic int n_resumed;
};

static void gather(struct audience *a, struct rig *r, struct tp_waiters *w)
{
    r->now = tp_clock_now(); /* that of the waiters' thread */
    a->n_resumed = 0;
    for (int i = 0; i < AUDIENCE; i++) {
        struct speaker *s = &a->speakers[i];
        const struct tp_waiter waiter = {.deadline_ns = UINT64_MAX,
                                         .suspend = on_speaker_suspend,
                                         .resume = on_speaker_resume,
                                         .ready = has_command,
                                         .speak = on_speak,
                                         .arg = s};
        struct tp_waiter one = waiter;

        rig_join(r, "p", i, a->p[i]);
        open_patient(&s->patient);
        s->engine = r->engine;
        s->id = a->p[i];
        s->n_spoken = s->n_resumed_before = 0;
        s->n_resumed = &a->n_resumed;
        one.fd = s->patient.ends[0];
        assert_int_equal(tp_waiters_add(w, &one, NULL), TP_OK);
    }
}

static void expect_all_spoke_first(struct audience *a)
{
    for (int i = 0; i < AUDIENCE; i++)
        expect_resumed(&a->speakers[i].patient);
    for (int i = 0; i < AUDIENCE; i++) {
        assert_int_equal(a->speakers[i].n_spoken, 1);
        assert_int_equal(a->speakers[i].n_resumed_before, 0);
        close_patient(&a->speakers[i].patient);
    }
}

static void test_all_hear_of_a_start_before_the_first_is_resumed(void **state)
{
    struct rig *r = *state;
    struct tp_waiters *w = start_waiters(r);
    struct audience a;
    char id[TP_TRACE_ID_BYTES];

    gather(&a, r, w);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    tp_waiters_poke(w);
    expect_all_spoke_first(&a);
    end_waiters(w);
}

/* Makes a trace when a look comes to it. */
struct maker {
    struct patient patient;
    struct rig *rig;
    _Atomic bool is_wanted;
};

static bool make_trace(void *arg, struct tp_now now)
{
    struct maker *m = arg;
    char id[TP_TRACE_ID_BYTES];

    (void)now;
    if (atomic_exchange(&m->is_wanted, false))
        assert_int_equal(rig_create(m->rig, "j", NULL, id), TP_OK);
    return false;
}

/* The look has let all speak by then. */
static void test_a_start_in_the_middle_of_a_look_is_heard_first_too(void **state)
{
    struct rig *r = *state;
    struct tp_waiters *w = start_waiters(r);
    struct maker maker = {.rig = r};
    struct audience a;
    struct tp_waiter waiter = {.deadline_ns = UINT64_MAX,
                               .suspend = on_suspend,
                               .resume = on_resume,
                               .ready = make_trace,
                               .arg = &maker};

    open_patient(&maker.patient); /* its descriptor is looked at before the others */
    waiter.fd = maker.patient.ends[0];
    assert_int_equal(tp_waiters_add(w, &waiter, NULL), TP_OK);
    gather(&a, r, w);
    assert_true(waiter.fd < a.speakers[0].patient.ends[0]);
    maker.is_wanted = true;
    tp_waiters_poke(w);
    expect_all_spoke_first(&a);
    end_waiters(w);
    close_patient(&maker.patient);
}

/* Tell a producer in the way of a call that is held, and say so. */
static bool on_hear(void *arg, struct tp_now now, struct tp_buf *out)
{
    struct speaker *s = arg;
    struct tp_sync_reply reply = {0};

    (void)out;
    if (tp_engine_sync_ahead(s->engine, tp_str_of(s->id), now, &reply, NULL) != TP_OK ||
        reply.n_commands == 0)
        return false;
    s->n_spoken++;
    return true;
}

#define SPEAKERS 20
#define OTHERS 3000 /* for 3 ms after one has heard the next may be about to */

/* Those who wait for a start, and others of the same trace who do not. */
struct hearing {
    struct speaker speakers[SPEAKERS];
    char p[SPEAKERS][TP_TRACE_ID_BYTES], others[OTHERS][TP_TRACE_ID_BYTES];
    _Atomic int n_resumed;
};

static void let_wait(struct tp_waiters *w, struct rig *r, struct hearing *h)
{
    h->n_resumed = 0;
    for (int i = 0; i < SPEAKERS; i++) { /* an earlier trace was cancelled */
        struct tp_sync_reply reply = rig_sync(r, h->p[i], NULL);

        rig_sync(r, h->p[i], &reply);
    }
    for (int i = 0; i < SPEAKERS; i++) {
        struct speaker *s = &h->speakers[i];
        const struct tp_waiter one = {.fd = s->patient.ends[0],
                                      .deadline_ns = UINT64_MAX,
                                      .suspend = on_speaker_suspend,
                                      .resume = on_speaker_resume,
                                      .ready = has_command,
                                      .speak = on_hear,
                                      .arg = s};

        s->engine = r->engine;
        s->id = h->p[i];
        s->n_spoken = 0;
        s->n_resumed = &h->n_resumed;
        assert_int_equal(tp_waiters_add(w, &one, NULL), TP_OK);
    }
}

enum kept { KEPT, LET_GO, UNCLEAR };

/* Make a trace whose start lies far ahead, and tell those of it who do not wait, one by
 * one. Returns whether those who wait were kept meanwhile; that is unclear when this
 * thread itself was kept from telling anybody for long. */
static enum kept keep_while_others_hear(struct tp_waiters *w, struct rig *r,
                                        struct hearing *h)
{
    char id[TP_TRACE_ID_BYTES];
    enum kept kept = KEPT;
    uint64_t told_ns, gap_ns = 0;

    let_wait(w, r, h);
    r->now = tp_clock_now();
    r->now.wall_ns += 60 * RIG_S;
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    told_ns = tp_clock_now().mono_ns; /* from here on those who wait may hear of it */
    tp_waiters_poke(w);
    for (int i = 0, n = 0; n < 400 && kept == KEPT; i++) {
        int n_spoken = 0;

        r->now.mono_ns = tp_clock_now().mono_ns;
        rig_sync(r, h->others[i], NULL);
        for (int k = 0; k < SPEAKERS; k++)
            n_spoken += h->speakers[k].n_spoken;
        n += n_spoken == SPEAKERS;
        if (r->now.mono_ns - told_ns > gap_ns)
            gap_ns = r->now.mono_ns - told_ns;
        told_ns = r->now.mono_ns;
        if (h->n_resumed > 0)
            kept = gap_ns < 2 * RIG_MS && tp_clock_now().mono_ns - told_ns < 2 * RIG_MS
                       ? LET_GO
                       : UNCLEAR;
        else if (i == OTHERS - 2)
            kept = UNCLEAR;
    }
    for (int i = 0; i < SPEAKERS; i++) /* nobody else is told, so they go on */
        expect_resumed(&h->speakers[i].patient);
    assert_int_equal(tp_engine_trace_cancel(r->engine, rig_str(id), (struct tp_str){0},
                                            r->now, NULL, NULL, NULL),
                     TP_OK);
    return kept;
}

static void test_who_has_heard_waits_while_others_hear(void **state)
{
    struct rig *r = *state;
    struct tp_waiters *w = start_waiters(r);
    static struct hearing h;
    enum kept kept = UNCLEAR;

    r->now = tp_clock_now();
    for (int i = 0; i < SPEAKERS; i++) {
        rig_join(r, "p", i, h.p[i]);
        open_patient(&h.speakers[i].patient);
    }
    for (int i = 0; i < OTHERS; i++)
        rig_join(r, "other", i, h.others[i]);
    for (int n = 0; n < 100 && kept == UNCLEAR; n++)
        kept = keep_while_others_hear(w, r, &h);
    assert_int_not_equal(kept, LET_GO);
    end_waiters(w);
    for (int i = 0; i < SPEAKERS; i++)
        close_patient(&h.speakers[i].patient);
    if (kept == UNCLEAR) {
        print_message("this machine lets nobody run for 20 ms on end\n");
        skip();
    }
}

#define MANY 300 /* slots; a look lets others in now and then */

/* A look at many that wait, each of which takes time. */
struct crowd {
    struct patient patient; /* first: is_ready() is told of it */
    int fds[MANY];
    _Atomic bool is_looking; /* from the first to the last */
    _Atomic bool is_seen;    /* somebody came in between */
};

struct onlooker {
    struct crowd *crowd;
    int place;
};

static bool on_look(void *arg, struct tp_now now)
{
    const struct onlooker *o = arg;

    (void)now;
    usleep(100);
    o->crowd->is_looking = o->place < MANY - 1;
    return false;
}

static void on_come(void *arg)
{
    struct crowd *c = arg;

    c->is_seen = c->is_seen || c->is_looking;
}

static void do_nothing(void *arg)
{
    (void)arg;
}

static void test_who_comes_does_not_wait_for_a_whole_look(void **state)
{
    struct tp_waiters *w = start_waiters(*state);
    static struct onlooker onlookers[MANY];
    struct crowd c = {.is_seen = false};
    struct patient one;

    open_patient(&c.patient);
    open_patient(&one);
    for (int i = 0; i < MANY; i++) {
        struct tp_waiter waiter = {.deadline_ns = UINT64_MAX,
                                   .suspend = do_nothing,
                                   .resume = do_nothing,
                                   .ready = on_look,
                                   .on_gone = do_nothing,
                                   .arg = &onlookers[i]};

        onlookers[i] = (struct onlooker){&c, i};
        c.fds[i] = waiter.fd = dup(c.patient.ends[0]);
        assert_true(waiter.fd >= 0);
        assert_int_equal(tp_waiters_add(w, &waiter, NULL), TP_OK);
    }
    for (int n = 0; !c.is_seen; n++) {
        const struct tp_waiter waiter = {.fd = one.ends[0],
                                         .deadline_ns = UINT64_MAX,
                                         .suspend = on_come,
                                         .resume = do_nothing,
                                         .ready = is_ready,
                                         .arg = &c};

        if (n == 1000)
            fail_msg("nobody came in during a look");
        c.patient.is_ready = true; /* what is_ready() looks at: it goes on at once */
        tp_waiters_poke(w);
        usleep(5000);
        assert_int_equal(tp_waiters_add(w, &waiter, NULL), TP_OK);
    }
    end_waiters(w);
    for (int i = 0; i < MANY; i++)
        close(c.fds[i]);
    close_patient(&c.patient);
    close_patient(&one);
}

static void test_who_leaves_while_it_waits_is_gone(void **state)
{
    struct tp_waiters *w = start_waiters(*state);
    struct patient p;

    open_patient(&p);
    assert_int_equal(add(w, &p), TP_OK);
    shutdown(p.ends[1], SHUT_WR);
    expect_resumed(&p);
    assert_true(p.is_gone);
    close_patient(&p);
    end_waiters(w);
}

/* The hang-up is told once, perhaps before anybody waits. */
static void test_who_left_between_two_waits_is_gone_at_the_next(void **state)
{
    struct tp_waiters *w = start_waiters(*state);
    struct patient p, witness;

    open_patient(&p);
    p.is_ready = true;
    assert_int_equal(add(w, &p), TP_OK);
    expect_resumed(&p);
    shutdown(p.ends[1], SHUT_WR);
    open_patient(&witness); /* the events come in order: it is told after the other */
    assert_int_equal(add(w, &witness), TP_OK);
    shutdown(witness.ends[1], SHUT_WR);
    expect_resumed(&witness);
    p.is_ready = false;
    assert_false(p.is_gone);
    assert_int_equal(add(w, &p), TP_OK);
    expect_resumed(&p);
    assert_true(p.is_gone);
    close_patient(&p);
    close_patient(&witness);
    end_waiters(w);
}

static void test_a_descriptor_that_was_forgotten_is_that_of_somebody_else(void **state)
{
    struct tp_waiters *w = start_waiters(*state);
    struct patient before, after;

    open_patient(&before);
    assert_int_equal(add(w, &before), TP_OK);
    shutdown(before.ends[1], SHUT_WR);
    expect_resumed(&before);
    open_patient(&after);
    tp_waiters_forget(w, before.ends[0]);
    assert_int_equal(dup2(after.ends[0], before.ends[0]), before.ends[0]);
    close(after.ends[0]);
    after.ends[0] = before.ends[0];
    assert_int_equal(add(w, &after), TP_OK);
    assert_int_equal(after.n_resumed, 0);
    shutdown(after.ends[1], SHUT_WR);
    expect_resumed(&after);
    assert_true(after.is_gone);
    close_patient(&after);
    close(before.ends[1]);
    tp_waiters_forget(w, 1000000); /* never waited */
    end_waiters(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_ready_already_is_resumed_at_once),
        cmocka_unit_test(test_draining_resumes_all_and_keeps_nobody_later),
        cmocka_unit_test(test_without_memory_nobody_is_suspended),
        engine_test(test_all_hear_of_a_start_before_the_first_is_resumed),
        engine_test(test_a_start_in_the_middle_of_a_look_is_heard_first_too),
        engine_test(test_who_has_heard_waits_while_others_hear),
        engine_test(test_who_comes_does_not_wait_for_a_whole_look),
        engine_test(test_who_leaves_while_it_waits_is_gone),
        engine_test(test_who_left_between_two_waits_is_gone_at_the_next),
        engine_test(test_a_descriptor_that_was_forgotten_is_that_of_somebody_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
