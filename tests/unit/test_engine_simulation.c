/*
 * A job of many producers on a virtual clock, with all that goes wrong at once: clocks
 * that are hours off and drift, answers that get lost, batches that are sent twice,
 * processes that are killed, come late or lie, and a service that is restarted while
 * they record. At the end every event must be accounted for, by producer and by type,
 * and the times must fit.
 */
#include "support/engine_test.h"

#include <stdio.h>

#include "base/err.h"
#include "core/activity.h"
#include "core/limits.h"
#include "core/type_counts.h"
#include "support/native_rig.h"

#define PRODUCERS 80
#define LATE 5   /* of them register while others record */
#define KILLED 4 /* of them fall silent */
#define LIARS 2  /* of them write the number of another stream */
#define TICK_NS (20 * RIG_MS)
#define TYPES 2

enum role { HONEST, LATE_COMER, VICTIM, LIAR };

static const struct {
    const char *cat;
    unsigned id;
} types[TYPES] = {{"kernel", TP_ACTIVITY_CONCURRENT_KERNEL}, {"cpu_op", 0}};

/* A simulated process with a linked library. */
struct sim {
    enum role role;
    char id[TP_TRACE_ID_BYTES];
    bool is_registered, is_dead;
    int64_t offset_ns, ppm; /* of its clock */
    struct tp_sync_reply reply;
    /* The exchange before. */
    uint64_t sent_ns, server_ns, received_ns;
    struct tp_native_clock best;
    bool has_best;
    /* The trace that it takes part in. */
    char trace[TP_TRACE_ID_BYTES];
    uint32_t stream_no;
    bool is_recording, has_stopped;
    uint64_t start_ns; /* by the service's clock */
    uint64_t seq;
    uint64_t emitted[TYPES], filtered[TYPES], dropped[TYPES], sent[TYPES];
    uint64_t first_true_ns, last_true_ns; /* of what was sent, by the service's clock */
};

struct world {
    struct rig *r;
    struct sim sims[PRODUCERS];
    uint32_t random;
};

static uint32_t any(struct world *w, uint32_t below)
{
    w->random = w->random * 1664525u + 1013904223u;
    return (w->random >> 8) % below;
}

/* What its clock shows when the service's shows `at`. */
static uint64_t own(const struct sim *s, uint64_t at)
{
    int64_t since = (int64_t)(at - RIG_START_NS);

    return at + (uint64_t)s->offset_ns + (uint64_t)(since / 1000000 * s->ppm);
}

static void make_world(struct world *w, struct rig *r)
{
    w->r = r;
    w->random = 11;
    for (int i = 0; i < PRODUCERS; i++) {
        struct sim *s = &w->sims[i];

        s->role = i < KILLED                  ? VICTIM
                  : i < KILLED + LIARS        ? LIAR
                  : i < KILLED + LIARS + LATE ? LATE_COMER
                                              : HONEST;
        s->offset_ns = ((int64_t)any(w, 7200) - 3600) * (int64_t)RIG_S;
        s->ppm = (int64_t)any(w, 201) - 100;
    }
}

static void join(struct world *w, int i)
{
    char name[16];

    snprintf(name, sizeof(name), "rank-%d", i);
    rig_producer(w->r, "j", name, i, w->sims[i].id);
    w->sims[i].is_registered = true;
}

/* Make a batch of what happened since and send it, perhaps twice. */
static void record(struct world *w, struct sim *s)
{
    struct native_rig batch = {0};
    uint64_t at = w->r->now.wall_ns;
    struct tp_upload_request request = {.form = TP_FORM_PERFETTO,
                                        .producer = rig_str(s->id),
                                        .rank = -1,
                                        .pid = -1,
                                        .has_seq = true,
                                        .seq = ++s->seq};

    native_rig_begin(&batch,
                     s->role == LIAR && s->seq % 2 == 0 ? s->stream_no % 3 + 7
                                                        : s->stream_no,
                     s->has_best ? &s->best : NULL);
    for (uint32_t i = 0, n = any(w, 6); i < n; i++) {
        int type = (int)any(w, TYPES);
        uint64_t start = at - (n - i) * RIG_MS;

        s->emitted[type]++;
        if (any(w, 10) == 0) {
            s->filtered[type]++;
        } else if (any(w, 10) == 0) {
            s->dropped[type]++;
        } else {
            native_rig_slice(&batch, types[type].cat, "op", i % 3,
                             (int64_t)own(s, start),
                             (int64_t)(own(s, start + RIG_MS / 2) - own(s, start)));
            s->sent[type]++;
            if (s->first_true_ns == 0 || start < s->first_true_ns)
                s->first_true_ns = start;
            if (start + RIG_MS / 2 > s->last_true_ns)
                s->last_true_ns = start + RIG_MS / 2;
        }
    }
    native_rig_end(&batch);
    for (uint32_t n = any(w, 8) == 0 ? 2 : 1; n > 0; n--) {
        struct tp_upload_reply reply;
        struct tp_upload *u = NULL;
        struct rig *r = w->r;
        int rc = tp_engine_upload_begin(r->engine, rig_str(s->trace), &request, r->now,
                                        &u, &r->problem, &r->err);

        if (rc == TP_OK)
            rc = tp_upload_feed(u, batch.bytes.data, batch.bytes.len, &r->problem,
                                &r->err);
        if (rc == TP_OK)
            rc = tp_upload_commit(u, r->now, &reply, &r->problem, &r->err);
        tp_upload_free(u);
        if (rc != TP_OK && s->role != LIAR)
            fail_msg("%s: %s", s->id, r->err.message);
    }
    native_rig_fini(&batch);
}

static void obey(struct world *w, struct sim *s, const struct tp_command *c)
{
    switch (c->kind) {
    case TP_COMMAND_PREPARE:
        if (s->stream_no != 0)
            assert_int_equal(c->stream_no, s->stream_no);
        memcpy(s->trace, c->trace_id, sizeof(s->trace));
        s->stream_no = c->stream_no;
        break;
    case TP_COMMAND_START:
        s->start_ns = c->start_wall_ns;
        s->is_recording = true;
        break;
    case TP_COMMAND_STOP:
        if (s->is_recording && s->role != VICTIM)
            record(w, s);
        s->is_recording = false;
        s->has_stopped = true;
        break;
    default:
        break;
    }
}

/* Keep the best exchange, as the library does. */
static void take_exchange(struct sim *s)
{
    uint64_t round = s->received_ns - s->sent_ns;
    struct tp_native_clock now = {.producer_ns = s->sent_ns + round / 2,
                                  .server_ns = s->server_ns,
                                  .error_ns = round / 2 + 1};

    if (s->sent_ns == 0 ||
        (s->has_best &&
         now.error_ns >
             s->best.error_ns + (now.producer_ns - s->best.producer_ns) / 10000))
        return;
    s->best = now;
    s->has_best = true;
}

static void sync(struct world *w, struct sim *s)
{
    struct tp_sync_ack acks[TP_SYNC_COMMANDS_MAX] = {0};
    struct tp_type_counts by_type = {0};
    struct tp_sync_counts counts = {.trace_id = rig_str(s->trace), .types = &by_type};
    struct tp_sync_request request = {.acks = acks,
                                      .counts = &counts,
                                      .n_counts = s->trace[0] != '\0'};
    struct rig *r = w->r;
    uint64_t way = 20000 + any(w, 200000), back = 20000 + any(w, 200000);

    for (size_t i = 0; i < s->reply.n_commands; i++) {
        const struct tp_command *c = &s->reply.commands[i];

        acks[request.n_acks++] = (struct tp_sync_ack){
            .trace_id = rig_str(c->trace_id),
            .command = c->kind,
            .start_wall_ns = c->kind == TP_COMMAND_START ? own(s, s->start_ns) : 0};
    }
    for (int i = 0; i < TYPES; i++) {
        struct tp_type_count *t;

        assert_int_equal(tp_type_counts_get(&by_type, types[i].id, &t, NULL), TP_OK);
        counts.emitted += t->emitted = s->emitted[i];
        counts.filtered += t->filtered = s->filtered[i];
        counts.dropped[TP_DROP_RING_FULL] += t->dropped[TP_DROP_RING_FULL] =
            s->dropped[i];
    }
    if (s->sent_ns != 0) {
        request.t_sent_ns = s->sent_ns;
        request.t_server_received_ns = request.t_server_sent_ns = s->server_ns;
        request.t_received_ns = s->received_ns;
    }
    assert_int_equal(tp_engine_sync(r->engine, rig_str(s->id), &request, r->now,
                                    &s->reply, &r->problem, &r->err),
                     TP_OK);
    tp_type_counts_fini(&by_type);
    s->sent_ns = own(s, r->now.wall_ns - way);
    s->server_ns = r->now.wall_ns;
    s->received_ns = own(s, r->now.wall_ns + back);
    take_exchange(s);
    if (any(w, 20) == 0)
        s->reply.n_commands = 0; /* the answer was lost */
    for (size_t i = 0; i < s->reply.n_commands; i++)
        obey(w, s, &s->reply.commands[i]);
}

/* One moment of the world. */
static void turn(struct world *w)
{
    for (int i = 0; i < PRODUCERS; i++) {
        struct sim *s = &w->sims[(i * 7 + (int)any(w, PRODUCERS)) % PRODUCERS];

        if (!s->is_registered || s->is_dead)
            continue;
        if (s->is_recording && w->r->now.wall_ns > s->start_ns + 10 * RIG_MS)
            record(w, s);
        sync(w, s);
    }
    rig_wait(w->r, TICK_NS);
}

static bool has_ended(struct world *w, const char *id)
{
    struct tp_trace_view *view = rig_view(w->r, id);
    bool is_over = !view->is_active;

    tp_trace_view_free(view);
    return is_over;
}

/* What one producer did, against what the trace says of it. */
static void check_producer(const struct sim *s, const struct tp_member_view *m,
                           const struct tp_trace_view *v)
{
    uint64_t emitted = 0, sent = 0;

    for (int i = 0; i < TYPES; i++) {
        emitted += s->emitted[i];
        sent += s->sent[i];
        if (s->is_dead)
            continue;
        for (size_t k = 0; k < m->n_types; k++) {
            const struct tp_type_count *t = &m->types[k];
            uint64_t dropped = 0;

            for (int c = 0; c < TP_DROP_CAUSES; c++)
                dropped += t->dropped[c];
            assert_int_equal(t->emitted, t->stored + t->filtered + dropped);
            if (t->id != types[i].id || s->role == LIAR)
                continue;
            assert_int_equal(t->emitted, s->emitted[i]);
            assert_int_equal(t->stored, s->sent[i]);
            assert_int_equal(t->filtered, s->filtered[i]);
            assert_int_equal(t->dropped[TP_DROP_RING_FULL], s->dropped[i]);
            assert_int_equal(t->dropped[TP_DROP_LOST], 0);
        }
    }
    assert_int_equal(m->counts.emitted, m->counts.stored + m->counts.filtered +
                                            tp_counts_dropped(&m->counts));
    if (s->role == LIAR) {
        assert_int_equal(m->counts.emitted, emitted);
        assert_true(m->counts.dropped[TP_DROP_LOST] > 0);
        assert_non_null(strstr(m->reason, "refused: the batch is for stream"));
        return;
    }
    if (s->is_dead) {
        assert_string_equal(m->state, "lost");
        assert_int_equal(m->counts.stored, sent);
        return;
    }
    assert_string_equal(m->state, "done");
    assert_int_equal(m->counts.emitted, emitted);
    assert_int_equal(m->counts.stored, sent);
    for (size_t i = 0; i < v->n_streams; i++) {
        const struct tp_stream_view *stream = &v->streams[i];

        if (stream->no != m->stream_no || sent == 0)
            continue;
        /* Exchanges take half a millisecond at most, and a bound is half of that. */
        assert_in_range(stream->first_ns - (int64_t)s->first_true_ns + 250000, 0,
                        500000);
        assert_in_range(stream->last_ns - (int64_t)s->last_true_ns + 250000, 0, 500000);
    }
}

static void test_every_event_of_a_stormy_trace_is_accounted_for(void **state)
{
    struct rig *r = *state;
    struct world *w = calloc(1, sizeof(*w));
    char id[TP_TRACE_ID_BYTES];
    struct tp_trace_view *view;
    int turns;

    assert_non_null(w);
    make_world(w, r);
    for (int i = 0; i < PRODUCERS; i++)
        if (w->sims[i].role != LATE_COMER)
            join(w, i);
    for (int i = 0; i < 5; i++)
        turn(w);
    assert_int_equal(rig_create(r, "j", NULL, id), TP_OK);
    for (int i = 0; i < 60; i++) {
        turn(w);
        if (i == 15)
            for (int k = 0; k < PRODUCERS; k++)
                if (w->sims[k].role == LATE_COMER)
                    join(w, k);
        if (i == 25 || i == 26 || i == 40)
            assert_int_equal(rig_restart(r), TP_OK);
        if (i == 35)
            for (int k = 0; k < KILLED; k++)
                w->sims[k].is_dead = true;
    }
    rig_expect_state(r, id, "recording");
    assert_int_equal(rig_stop(r, id), TP_OK);
    for (turns = 0; !has_ended(w, id) && turns < 10000; turns++) {
        turn(w);
        rig_work(r);
    }
    view = rig_view(r, id);
    assert_string_equal(view->state, "complete");
    assert_string_equal(view->outcome, "partial");
    assert_int_equal(tp_counts_check(&view->totals, &r->err), TP_OK);
    assert_true(view->has_skew);
    assert_in_range(view->skew_ns, 0, RIG_MS);
    assert_int_equal(view->n_members, PRODUCERS);
    for (int i = 0; i < PRODUCERS; i++) {
        bool is_found = false;

        for (size_t k = 0; k < view->n_members; k++) {
            if (strcmp(view->members[k].who.id, w->sims[i].id) != 0)
                continue;
            check_producer(&w->sims[i], &view->members[k], view);
            is_found = true;
        }
        assert_true(is_found);
    }
    tp_trace_view_free(view);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        engine_test(test_every_event_of_a_stormy_trace_is_accounted_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
