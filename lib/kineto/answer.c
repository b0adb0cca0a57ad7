/*
 * answer.c - what a datagram is answered, and what it says about its process.
 */
#include <assert.h>

#include "base/err.h"
#include "kineto/datagram.h"
#include "kineto/entries.h"

/* A leaky bucket, kept as the moment at which it will be empty again. */
static bool is_flooding(uint64_t *bucket_ns, uint64_t each_ns, uint64_t burst,
                        uint64_t now_ns)
{
    if (*bucket_ns < now_ns)
        *bucket_ns = now_ns;
    if (*bucket_ns - now_ns > (burst - 1) * each_ns)
        return true;
    *bucket_ns += each_ns;
    return false;
}

static struct tp_kineto_reply answer(struct tp_kineto_table *t,
                                     enum tp_kineto_answer kind,
                                     const struct tp_kineto_entry *e,
                                     struct tp_str text)
{
    struct tp_kineto_reply reply = {.answer = kind, .target = e ? e->seen.id : 0};
    int rc;

    t->stats.answers[kind]++;
    t->out.len = 0;
    rc = tp_kineto_reply_config(text, &t->out, NULL);
    assert(rc == TP_OK); /* the room was reserved */
    (void)rc;
    reply.bytes = (struct tp_str){t->out.data, t->out.len};
    return reply;
}

static struct tp_kineto_reply no_answer(struct tp_kineto_table *t,
                                        enum tp_kineto_answer kind,
                                        const struct tp_kineto_entry *e)
{
    t->stats.answers[kind]++;
    return (struct tp_kineto_reply){.answer = kind, .target = e ? e->seen.id : 0};
}

/* How many are known with the job and gpu that e claims. */
static int32_t count_same(const struct tp_kineto_table *t,
                          const struct tp_kineto_entry *e)
{
    size_t cursor = 0;
    int32_t n = 0;
    void *found;

    while (tp_strmap_next(&t->by_key, &cursor, NULL, &found)) {
        const struct tp_kineto_target *other =
            &((const struct tp_kineto_entry *)found)->seen;

        n += other->gpu == e->seen.gpu && other->job == e->seen.job;
    }
    return n;
}

static struct tp_kineto_reply answer_context(struct tp_kineto_table *t,
                                             struct tp_kineto_entry *e,
                                             const struct tp_kineto_datagram *d)
{
    struct tp_kineto_reply reply = {.answer = TP_KINETO_ANSWER_COUNT,
                                    .target = e->seen.id};

    e->seen.gpu = d->gpu;
    e->seen.claimed_pid = d->pids[0];
    e->seen.job = d->job;
    t->stats.answers[TP_KINETO_ANSWER_COUNT]++;
    tp_kineto_reply_count(count_same(t, e), t->out.data);
    reply.bytes = (struct tp_str){t->out.data, TP_KINETO_COUNT_BYTES};
    return reply;
}

static void note_request(struct tp_kineto_table *t, struct tp_kineto_entry *e,
                         const struct tp_kineto_datagram *d, uint64_t now_ns)
{
    tp_kineto_rhythm_note(&e->seen.rhythm, now_ns);
    e->seen.polls++;
    e->seen.job = d->job;
    if (d->n_pids > 0)
        e->seen.claimed_pid = d->pids[0];
    if ((d->type & TP_KINETO_TYPE_EVENTS) != 0)
        e->seen.is_old = true;
    else
        e->seen.tells_busy = true;
    tp_kineto_entry_tell(t, e, TP_KINETO_NEWS_POLL);
}

/* What the type of a request says about where the process stands. An order that it has
 * not read yet is late, and was not dropped. */
static void follow_type(struct tp_kineto_table *t, struct tp_kineto_entry *e,
                        bool is_free, bool is_behind, uint64_t now_ns)
{
    bool is_armed = e->seen.state == TP_KINETO_ARMED;

    if (is_armed && !is_free)
        tp_kineto_entry_tell(t, e, TP_KINETO_NEWS_BEGAN);
    if (e->seen.is_busy && is_free)
        tp_kineto_entry_tell(t, e, TP_KINETO_NEWS_ENDED);
    e->seen.is_busy = !is_free;
    e->seen.tells_busy = e->seen.tells_busy || !is_free;
    if (!is_free) {
        tp_kineto_entry_move(e, TP_KINETO_BUSY);
    } else if (is_armed && now_ns > e->begin_until_ns &&
               !(is_behind && e->is_unconfirmed)) {
        tp_kineto_entry_tell(t, e, TP_KINETO_NEWS_NEVER);
        tp_kineto_entry_move(e, TP_KINETO_IDLE);
    } else if (!is_armed) {
        tp_kineto_entry_move(e, TP_KINETO_IDLE);
    }
    if (e->seen.state != TP_KINETO_ARMED && !e->seen.has_order)
        tp_kineto_entry_forget_order(e);
}

/* The process reads the answer to its request before, and with it an order that was in
 * there: one poll late. To answer again would keep it late for ever. It has caught up
 * by this, unless a later look shows that more answers were waiting. */
static struct tp_kineto_reply repair(struct tp_kineto_table *t,
                                     struct tp_kineto_entry *e, uint64_t now_ns)
{
    e->seen.repairs++;
    t->stats.repairs++;
    e->seen.rhythm.is_behind = false;
    if (e->is_unconfirmed && e->seen.state == TP_KINETO_ARMED) {
        e->seen.served_ns = now_ns;
        tp_kineto_entry_tell(t, e, TP_KINETO_NEWS_LATE);
    }
    if (e->seen.state != TP_KINETO_ARMED)
        tp_kineto_entry_move(e, TP_KINETO_LAGGING);
    return no_answer(t, TP_KINETO_ANSWER_NONE_SKIPPED, e);
}

static struct tp_kineto_reply serve(struct tp_kineto_table *t,
                                    struct tp_kineto_entry *e, uint64_t now_ns)
{
    e->seen.has_order = false;
    e->seen.served_ns = now_ns;
    if (e->seen.rhythm.tick_ns == 0)
        e->seen.rhythm.tick_ns = now_ns;
    e->is_unconfirmed = true;
    tp_kineto_entry_move(e, TP_KINETO_ARMED);
    tp_kineto_entry_tell(t, e, TP_KINETO_NEWS_SERVED);
    return answer(t, TP_KINETO_ANSWER_ORDER, e,
                  (struct tp_str){e->text, e->text_bytes});
}

static struct tp_kineto_reply answer_request(struct tp_kineto_table *t,
                                             struct tp_kineto_entry *e,
                                             const struct tp_kineto_datagram *d,
                                             uint64_t unread_bytes, uint64_t now_ns)
{
    bool is_free = (d->type & TP_KINETO_TYPE_ACTIVITIES) != 0;
    /* It may have read the old answer before this side looks, so nothing unread now
     * does not mean that it was in step. */
    bool is_behind = unread_bytes > 0 || e->seen.rhythm.is_behind;

    note_request(t, e, d, now_ns);
    follow_type(t, e, is_free, is_behind, now_ns);
    if (is_behind)
        return repair(t, e, now_ns);
    e->is_unconfirmed = false;
    if (e->seen.has_order && now_ns > e->serve_until_ns) {
        tp_kineto_entry_forget_order(e);
        tp_kineto_entry_tell(t, e, TP_KINETO_NEWS_MISSED);
    }
    if (e->seen.has_order && e->seen.state == TP_KINETO_IDLE)
        return serve(t, e, now_ns);
    return answer(t, TP_KINETO_ANSWER_EMPTY, e, (struct tp_str){0});
}

struct tp_kineto_reply tp_kineto_table_receive(struct tp_kineto_table *t,
                                               const struct tp_kineto_peer *peer,
                                               const void *p, size_t n,
                                               uint64_t unread_bytes, uint64_t now_ns)
{
    struct tp_kineto_datagram d;
    struct tp_kineto_entry *e;

    if (peer->address_bytes == 0 || peer->address_bytes > TP_KINETO_ADDRESS_BYTES ||
        tp_kineto_datagram_read(p, n, &d, NULL) != TP_OK)
        return no_answer(t, TP_KINETO_ANSWER_NONE_BAD, NULL);
    e = tp_kineto_entry_find(t, peer, now_ns);
    if (e == NULL && is_flooding(&t->unknown_bucket_ns,
                                 TP_KINETO_SECOND_NS / TP_KINETO_UNKNOWN_PER_S,
                                 TP_KINETO_UNKNOWN_PER_S, now_ns))
        return no_answer(t, TP_KINETO_ANSWER_NONE_FLOOD, NULL);
    if (e == NULL)
        return answer(t, TP_KINETO_ANSWER_EMPTY_UNKNOWN, NULL, (struct tp_str){0});
    if (is_flooding(&e->bucket_ns, TP_KINETO_SECOND_NS / TP_KINETO_PER_S,
                    TP_KINETO_BURST, now_ns)) {
        e->seen.floods++;
        return no_answer(t, TP_KINETO_ANSWER_NONE_FLOOD, e);
    }
    if (d.message == TP_KINETO_CONTEXT)
        return answer_context(t, e, &d);
    return answer_request(t, e, &d, unread_bytes, now_ns);
}

bool tp_kineto_table_unread(struct tp_kineto_table *t, uint64_t target,
                            uint64_t unread_bytes, uint64_t looked_ns)
{
    struct tp_kineto_entry *e = tp_kineto_entry_by_id(t, target);
    bool is_behind = unread_bytes > 0;
    int before;

    if (e == NULL || e->seen.state == TP_KINETO_GONE ||
        looked_ns < e->seen.rhythm.last_ns + TP_KINETO_WINDOW_NS)
        return false;
    before = e->seen.state;
    if (is_behind && before != TP_KINETO_ARMED)
        tp_kineto_entry_move(e, TP_KINETO_LAGGING);
    else if (!is_behind && before == TP_KINETO_LAGGING)
        tp_kineto_entry_move(e, e->seen.is_busy ? TP_KINETO_BUSY : TP_KINETO_IDLE);
    if (!is_behind)
        e->is_unconfirmed = false;
    if (e->seen.rhythm.is_behind == is_behind && e->seen.state == before)
        return false;
    e->seen.rhythm.is_behind = is_behind;
    tp_kineto_entry_tell(t, e, TP_KINETO_NEWS_STEP);
    return true;
}

void tp_kineto_table_unsent(struct tp_kineto_table *t,
                            const struct tp_kineto_reply *reply, bool is_gone)
{
    struct tp_kineto_entry *e = tp_kineto_entry_by_id(t, reply->target);

    t->stats.unsent++;
    if (e == NULL || e->seen.state == TP_KINETO_GONE)
        return;
    if (is_gone) {
        tp_kineto_entry_let_go(t, e);
    } else if (reply->answer == TP_KINETO_ANSWER_ORDER &&
               e->seen.state == TP_KINETO_ARMED) {
        e->seen.has_order = true;
        e->seen.served_ns = 0;
        e->is_unconfirmed = false;
        e->seen.news &= ~(uint32_t)TP_KINETO_NEWS_SERVED;
        tp_kineto_entry_move(e, TP_KINETO_IDLE);
    }
}

void tp_kineto_table_flooded(struct tp_kineto_table *t, uint64_t n)
{
    t->stats.answers[TP_KINETO_ANSWER_NONE_FLOOD] += n;
}
