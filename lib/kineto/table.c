/*
 * table.c - a hash map from (socket, address) to processes, and a queue of those that
 * have news.
 *
 * A process is its address: the kernel writes that into each datagram, and nobody else
 * can have it while the process lives. The pids in the payload are in another
 * namespace, or a lie. When the credentials behind an address change, the old process
 * is gone and this is a new one.
 *
 * The lost alternative is dynolog's key, the set of claimed pids: two containers with
 * the same pids are one process there.
 */
#include "kineto/table.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strmap.h"
#include "kineto/datagram.h"

#define KEY_BYTES (4 + TP_KINETO_ADDRESS_BYTES)
#define SILENCE_NS (TP_KINETO_SILENCE_S * TP_KINETO_SECOND_NS)

struct entry {
    struct tp_kineto_target seen;
    char key[KEY_BYTES];
    size_t key_bytes;
    char *text; /* of its order, waiting or served; NULL = none */
    size_t text_bytes;
    uint64_t serve_until_ns, begin_until_ns;
    uint64_t bucket_ns;  /* see is_flooding() */
    bool is_unconfirmed; /* served, and no request since showed that it was read */
    struct entry *next_news;
    bool is_queued;
};

struct tp_kineto_table {
    struct tp_strmap by_key; /* listener and address -> entry, not gone */
    struct tp_strmap by_id;  /* 8 bytes of id -> entry */
    struct tp_strmap by_pid; /* 4 bytes of pid -> number of entries in by_key */
    struct entry *first_news, **last_news;
    uint64_t last_id;
    uint64_t unknown_bucket_ns; /* of all that are answered and not known */
    struct tp_buf out;
    struct tp_kineto_stats stats;
};

int tp_kineto_table_new(struct tp_kineto_table **out, struct tp_err *err)
{
    struct tp_kineto_table *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a table of Kineto processes");
    t->last_news = &t->first_news;
    /* Room for any answer, so that answering allocates nothing. */
    if (tp_buf_reserve(&t->out, TP_KINETO_HEADER_BYTES + TP_KINETO_ORDER_MAX_BYTES,
                       err) != TP_OK) {
        free(t);
        return TP_ENOMEM;
    }
    *out = t;
    return TP_OK;
}

static void entry_free(struct entry *e)
{
    if (e != NULL)
        free(e->text);
    free(e);
}

void tp_kineto_table_free(struct tp_kineto_table *t)
{
    size_t cursor = 0;
    void *e;

    if (t == NULL)
        return;
    while (tp_strmap_next(&t->by_id, &cursor, NULL, &e))
        entry_free(e);
    tp_strmap_fini(&t->by_key);
    tp_strmap_fini(&t->by_id);
    tp_strmap_fini(&t->by_pid);
    tp_buf_fini(&t->out);
    free(t);
}

static void tell(struct tp_kineto_table *t, struct entry *e, uint32_t news)
{
    e->seen.news |= news;
    if (e->is_queued)
        return;
    e->is_queued = true;
    e->next_news = NULL;
    *t->last_news = e;
    t->last_news = &e->next_news;
}

static void move(struct entry *e, enum tp_kineto_state to)
{
    int rc = tp_kineto_state_move(&e->seen.state, to, NULL);

    assert(rc == TP_OK);
    (void)rc;
}

static size_t make_key(const struct tp_kineto_peer *peer, char *key)
{
    memcpy(key, &peer->listener, sizeof(peer->listener));
    memcpy(key + 4, peer->address, peer->address_bytes);
    return 4 + (size_t)peer->address_bytes;
}

static void forget_order(struct entry *e)
{
    free(e->text);
    e->text = NULL;
    e->text_bytes = 0;
    e->seen.has_order = false;
}

static const char *pid_key(const struct entry *e)
{
    return (const char *)&e->seen.peer.pid;
}

/* It has no address any more; whoever takes its news releases it. */
static void let_go(struct tp_kineto_table *t, struct entry *e)
{
    uint64_t n = 0;

    move(e, TP_KINETO_GONE);
    forget_order(e);
    tp_strmap_remove(&t->by_key, e->key, e->key_bytes);
    tp_strmap_get_u64(&t->by_pid, pid_key(e), 4, &n);
    if (n <= 1)
        tp_strmap_remove_u64(&t->by_pid, pid_key(e), 4);
    else
        tp_strmap_put_u64(&t->by_pid, pid_key(e), 4, n - 1, NULL);
    t->stats.n_targets--;
    t->stats.gone++;
    tell(t, e, TP_KINETO_NEWS_GONE);
}

/* Put a new entry into the three maps, or into none. */
static int link_entry(struct tp_kineto_table *t, struct entry *e)
{
    uint64_t n = 0;
    int rc;

    tp_strmap_get_u64(&t->by_pid, pid_key(e), 4, &n);
    rc = tp_strmap_put(&t->by_key, e->key, e->key_bytes, e, NULL);
    if (rc != TP_OK)
        return rc;
    rc = tp_strmap_put(&t->by_id, (const char *)&e->seen.id, 8, e, NULL);
    if (rc == TP_OK) {
        rc = tp_strmap_put_u64(&t->by_pid, pid_key(e), 4, n + 1, NULL);
        if (rc != TP_OK)
            tp_strmap_remove(&t->by_id, (const char *)&e->seen.id, 8);
    }
    if (rc != TP_OK)
        tp_strmap_remove(&t->by_key, e->key, e->key_bytes);
    return rc;
}

/* NULL when there are too many, or no memory: then it is answered and not known. */
static struct entry *add(struct tp_kineto_table *t, const struct tp_kineto_peer *peer,
                         uint64_t now_ns)
{
    struct entry *e;
    uint64_t n = 0;

    tp_strmap_get_u64(&t->by_pid, (const char *)&peer->pid, 4, &n);
    if (t->stats.n_targets >= TP_KINETO_TARGETS_MAX ||
        (peer->pid > 0 && n >= TP_KINETO_TARGETS_PER_PID))
        return NULL;
    e = calloc(1, sizeof(*e));
    if (e == NULL)
        return NULL;
    e->seen.id = t->last_id + 1;
    e->seen.peer = *peer;
    e->seen.gpu = -1;
    e->seen.first_ns = now_ns;
    e->seen.rhythm.last_ns = now_ns;
    e->seen.rhythm.interval_ns = TP_KINETO_POLL_NS;
    e->key_bytes = make_key(peer, e->key);
    if (link_entry(t, e) != TP_OK) {
        free(e);
        return NULL;
    }
    t->last_id++;
    t->stats.n_targets++;
    return e;
}

static struct entry *find(struct tp_kineto_table *t, const struct tp_kineto_peer *peer,
                          uint64_t now_ns)
{
    char key[KEY_BYTES];
    size_t n = make_key(peer, key);
    struct entry *e = tp_strmap_get(&t->by_key, key, n);

    if (e != NULL && (e->seen.peer.pid != peer->pid || e->seen.peer.uid != peer->uid)) {
        let_go(t, e);
        e = NULL;
    }
    return e != NULL ? e : add(t, peer, now_ns);
}

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
                                     enum tp_kineto_answer kind, const struct entry *e,
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
                                        const struct entry *e)
{
    t->stats.answers[kind]++;
    return (struct tp_kineto_reply){.answer = kind, .target = e ? e->seen.id : 0};
}

/* How many are known with the job and gpu that e claims. */
static int32_t count_same(const struct tp_kineto_table *t, const struct entry *e)
{
    size_t cursor = 0;
    int32_t n = 0;
    void *found;

    while (tp_strmap_next(&t->by_key, &cursor, NULL, &found)) {
        const struct tp_kineto_target *other = &((const struct entry *)found)->seen;

        n += other->gpu == e->seen.gpu && other->job == e->seen.job;
    }
    return n;
}

static struct tp_kineto_reply answer_context(struct tp_kineto_table *t, struct entry *e,
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

static void note_request(struct tp_kineto_table *t, struct entry *e,
                         const struct tp_kineto_datagram *d, uint64_t now_ns)
{
    tp_kineto_rhythm_note(&e->seen.rhythm, now_ns);
    e->seen.polls++;
    e->seen.job = d->job;
    if (d->n_pids > 0)
        e->seen.claimed_pid = d->pids[0];
    if ((d->type & TP_KINETO_TYPE_EVENTS) != 0)
        e->seen.is_old = true;
    tell(t, e, TP_KINETO_NEWS_POLL);
}

/* What the type of a request says about where the process stands. */
static void follow_type(struct tp_kineto_table *t, struct entry *e, bool is_free,
                        uint64_t now_ns)
{
    bool is_armed = e->seen.state == TP_KINETO_ARMED;

    if (is_armed && !is_free)
        tell(t, e, TP_KINETO_NEWS_BEGAN);
    if (e->seen.is_busy && is_free)
        tell(t, e, TP_KINETO_NEWS_ENDED);
    e->seen.is_busy = !is_free;
    if (!is_free) {
        move(e, TP_KINETO_BUSY);
    } else if (is_armed && now_ns > e->begin_until_ns) {
        tell(t, e, TP_KINETO_NEWS_NEVER);
        move(e, TP_KINETO_IDLE);
    } else if (!is_armed) {
        move(e, TP_KINETO_IDLE);
    }
    if (e->seen.state != TP_KINETO_ARMED && !e->seen.has_order)
        forget_order(e);
}

/* The process reads the answer to its request before, and with it an order that was in
 * there: one poll late. To answer again would keep it late for ever. */
static struct tp_kineto_reply repair(struct tp_kineto_table *t, struct entry *e,
                                     uint64_t now_ns)
{
    e->seen.repairs++;
    t->stats.repairs++;
    if (e->is_unconfirmed && e->seen.state == TP_KINETO_ARMED) {
        e->seen.served_ns = now_ns;
        tell(t, e, TP_KINETO_NEWS_LATE);
    }
    if (e->seen.state != TP_KINETO_ARMED)
        move(e, TP_KINETO_LAGGING);
    return no_answer(t, TP_KINETO_ANSWER_NONE_SKIPPED, e);
}

static struct tp_kineto_reply serve(struct tp_kineto_table *t, struct entry *e,
                                    uint64_t now_ns)
{
    e->seen.has_order = false;
    e->seen.served_ns = now_ns;
    if (e->seen.rhythm.tick_ns == 0)
        e->seen.rhythm.tick_ns = now_ns;
    e->is_unconfirmed = true;
    move(e, TP_KINETO_ARMED);
    tell(t, e, TP_KINETO_NEWS_SERVED);
    return answer(t, TP_KINETO_ANSWER_ORDER, e,
                  (struct tp_str){e->text, e->text_bytes});
}

static struct tp_kineto_reply answer_request(struct tp_kineto_table *t, struct entry *e,
                                             const struct tp_kineto_datagram *d,
                                             uint64_t unread_bytes, uint64_t now_ns)
{
    bool is_free = (d->type & TP_KINETO_TYPE_ACTIVITIES) != 0;

    note_request(t, e, d, now_ns);
    follow_type(t, e, is_free, now_ns);
    if (unread_bytes > 0)
        return repair(t, e, now_ns);
    e->is_unconfirmed = false;
    if (e->seen.has_order && now_ns > e->serve_until_ns) {
        forget_order(e);
        tell(t, e, TP_KINETO_NEWS_MISSED);
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
    struct entry *e;

    if (peer->address_bytes == 0 || peer->address_bytes > TP_KINETO_ADDRESS_BYTES ||
        tp_kineto_datagram_read(p, n, &d, NULL) != TP_OK)
        return no_answer(t, TP_KINETO_ANSWER_NONE_BAD, NULL);
    e = find(t, peer, now_ns);
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

static struct entry *by_id(const struct tp_kineto_table *t, uint64_t id)
{
    return tp_strmap_get(&t->by_id, (const char *)&id, 8);
}

void tp_kineto_table_unsent(struct tp_kineto_table *t,
                            const struct tp_kineto_reply *reply, bool is_gone)
{
    struct entry *e = by_id(t, reply->target);

    t->stats.unsent++;
    if (e == NULL || e->seen.state == TP_KINETO_GONE)
        return;
    if (is_gone) {
        let_go(t, e);
    } else if (reply->answer == TP_KINETO_ANSWER_ORDER &&
               e->seen.state == TP_KINETO_ARMED) {
        e->seen.has_order = true;
        e->seen.served_ns = 0;
        e->is_unconfirmed = false;
        e->seen.news &= ~(uint32_t)TP_KINETO_NEWS_SERVED;
        move(e, TP_KINETO_IDLE);
    }
}

int tp_kineto_table_order(struct tp_kineto_table *t, uint64_t target,
                          const struct tp_kineto_order *order, struct tp_err *err)
{
    struct entry *e = by_id(t, target);
    char *text;

    if (e == NULL || e->seen.state == TP_KINETO_GONE)
        return tp_fail(err, TP_ENOTFOUND, "there is no such Kineto process");
    if (e->seen.state == TP_KINETO_ARMED || e->seen.state == TP_KINETO_BUSY)
        return tp_fail(err, TP_ESTATE, "the Kineto process is %s",
                       tp_kineto_state_name(e->seen.state));
    if (order->text.len == 0 || order->text.len > TP_KINETO_ORDER_MAX_BYTES)
        return tp_fail(err, TP_EINVAL, "a configuration has 1 to %d bytes, not %zu",
                       TP_KINETO_ORDER_MAX_BYTES, order->text.len);
    text = malloc(order->text.len);
    if (text == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a configuration");
    memcpy(text, order->text.ptr, order->text.len);
    forget_order(e);
    e->text = text;
    e->text_bytes = order->text.len;
    e->serve_until_ns = order->serve_until_ns;
    e->begin_until_ns = order->begin_until_ns;
    e->seen.has_order = true;
    e->seen.served_ns = 0;
    return TP_OK;
}

bool tp_kineto_table_withdraw(struct tp_kineto_table *t, uint64_t target)
{
    struct entry *e = by_id(t, target);

    if (e == NULL || !e->seen.has_order)
        return false;
    forget_order(e);
    return true;
}

void tp_kineto_table_through(struct tp_kineto_table *t, uint64_t target,
                             uint64_t end_ns)
{
    struct entry *e = by_id(t, target);

    if (e == NULL)
        return;
    e->seen.rhythm.tick_ns = end_ns;
    if (e->seen.state != TP_KINETO_ARMED)
        return;
    move(e, TP_KINETO_IDLE);
    forget_order(e);
}

bool tp_kineto_table_get(const struct tp_kineto_table *t, uint64_t target,
                         struct tp_kineto_target *out)
{
    const struct entry *e = by_id(t, target);

    if (e != NULL)
        *out = e->seen;
    return e != NULL;
}

bool tp_kineto_table_next_news(struct tp_kineto_table *t, struct tp_kineto_target *out)
{
    struct entry *e = t->first_news;

    if (e == NULL)
        return false;
    t->first_news = e->next_news;
    if (t->first_news == NULL)
        t->last_news = &t->first_news;
    e->is_queued = false;
    *out = e->seen;
    e->seen.news = 0;
    if (e->seen.state == TP_KINETO_GONE) {
        tp_strmap_remove(&t->by_id, (const char *)&e->seen.id, 8);
        entry_free(e);
    }
    return true;
}

static uint64_t sweep_entry(struct tp_kineto_table *t, struct entry *e, uint64_t now_ns)
{
    uint64_t gone_ns = e->seen.rhythm.last_ns + SILENCE_NS;

    if (now_ns >= gone_ns) {
        let_go(t, e);
        return UINT64_MAX;
    }
    if (e->seen.has_order && now_ns > e->serve_until_ns) {
        forget_order(e);
        tell(t, e, TP_KINETO_NEWS_MISSED);
    }
    return e->seen.has_order && e->serve_until_ns < gone_ns ? e->serve_until_ns + 1
                                                            : gone_ns;
}

uint64_t tp_kineto_table_sweep(struct tp_kineto_table *t, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    size_t cursor = 0;
    void *e;

    while (tp_strmap_next(&t->by_key, &cursor, NULL, &e)) {
        uint64_t at_ns = sweep_entry(t, e, now_ns);

        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    return next_ns;
}

void tp_kineto_table_stats(const struct tp_kineto_table *t, struct tp_kineto_stats *out)
{
    *out = t->stats;
}
