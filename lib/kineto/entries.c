/*
 * entries.c - a hash map from (socket, address) to processes, and a queue of those that
 * have news.
 *
 * A process is its address: the kernel writes that into each datagram, and nobody else
 * can have it while the process lives. The pids in the payload are in another
 * namespace, or a lie. When the credentials behind an address change, the old process
 * is gone and this is a new one. Nobody can fill the table for others: a process has
 * few places in it, and a user half of them; a process whose pid the kernel does not
 * show (it is in another pid namespace) shares an eighth with the others of its user,
 * since nothing tells which of them it is.
 *
 * The lost alternative is dynolog's key, the set of claimed pids: two containers with
 * the same pids are one process there.
 */
#include "kineto/entries.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"

void tp_kineto_entry_free(struct tp_kineto_entry *e)
{
    if (e != NULL)
        free(e->text);
    free(e);
}

void tp_kineto_entry_tell(struct tp_kineto_table *t, struct tp_kineto_entry *e,
                          uint32_t news)
{
    e->seen.news |= news;
    if (e->is_queued)
        return;
    e->is_queued = true;
    e->next_news = NULL;
    *t->last_news = e;
    t->last_news = &e->next_news;
}

void tp_kineto_entry_move(struct tp_kineto_entry *e, enum tp_kineto_state to)
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

void tp_kineto_entry_forget_order(struct tp_kineto_entry *e)
{
    free(e->text);
    e->text = NULL;
    e->text_bytes = 0;
    e->seen.has_order = false;
}

/* A process, as far as the kernel shows it. */
static uint64_t process_of(const struct tp_kineto_peer *peer)
{
    return peer->pid > 0 ? (uint64_t)peer->pid : (uint64_t)peer->uid << 32;
}

static uint64_t count_of(const struct tp_strmap *counts, uint64_t key)
{
    uint64_t n = 0;

    tp_strmap_get_u64(counts, (const char *)&key, sizeof(key), &n);
    return n;
}

/* One entry less with that key. */
static void count_down(struct tp_strmap *counts, uint64_t key)
{
    uint64_t n = count_of(counts, key);
    const char *bytes = (const char *)&key;

    if (n <= 1)
        tp_strmap_remove_u64(counts, bytes, sizeof(key));
    else /* it is there, so no memory is needed */
        tp_strmap_put_u64(counts, bytes, sizeof(key), n - 1, NULL);
}

static int count_up(struct tp_strmap *counts, uint64_t key)
{
    return tp_strmap_put_u64(counts, (const char *)&key, sizeof(key),
                             count_of(counts, key) + 1, NULL);
}

void tp_kineto_entry_let_go(struct tp_kineto_table *t, struct tp_kineto_entry *e)
{
    tp_kineto_entry_move(e, TP_KINETO_GONE);
    tp_kineto_entry_forget_order(e);
    tp_strmap_remove(&t->by_key, e->key, e->key_bytes);
    count_down(&t->by_pid, process_of(&e->seen.peer));
    count_down(&t->by_uid, e->seen.peer.uid);
    t->stats.n_targets--;
    t->stats.gone++;
    tp_kineto_entry_tell(t, e, TP_KINETO_NEWS_GONE);
}

void tp_kineto_entry_sweep_by(struct tp_kineto_table *t, uint64_t at_ns)
{
    if (at_ns < t->sweep_ns)
        t->sweep_ns = at_ns;
}

/* Put a new entry into all maps, or into none. */
static int link_entry(struct tp_kineto_table *t, struct tp_kineto_entry *e)
{
    const char *id = (const char *)&e->seen.id;
    bool has_key, has_id, has_pid, has_uid;

    has_key = tp_strmap_put(&t->by_key, e->key, e->key_bytes, e, NULL) == TP_OK;
    has_id = has_key && tp_strmap_put(&t->by_id, id, 8, e, NULL) == TP_OK;
    has_pid = has_id && count_up(&t->by_pid, process_of(&e->seen.peer)) == TP_OK;
    has_uid = has_pid && count_up(&t->by_uid, e->seen.peer.uid) == TP_OK;
    if (has_uid)
        return TP_OK;
    if (has_pid)
        count_down(&t->by_pid, process_of(&e->seen.peer));
    if (has_id)
        tp_strmap_remove(&t->by_id, id, 8);
    if (has_key)
        tp_strmap_remove(&t->by_key, e->key, e->key_bytes);
    return TP_ENOMEM;
}

static bool has_room(const struct tp_kineto_table *t, const struct tp_kineto_peer *peer)
{
    uint64_t most = peer->pid > 0 ? TP_KINETO_TARGETS_PER_PID
                                  : TP_KINETO_UNSEEN_PER_UID;

    return t->stats.n_targets < TP_KINETO_TARGETS_MAX &&
           count_of(&t->by_uid, peer->uid) < TP_KINETO_TARGETS_PER_UID &&
           count_of(&t->by_pid, process_of(peer)) < most;
}

/* NULL when there are too many, or no memory: then it is answered and not known. */
static struct tp_kineto_entry *add(struct tp_kineto_table *t,
                                   const struct tp_kineto_peer *peer, uint64_t now_ns)
{
    struct tp_kineto_entry *e = has_room(t, peer) ? calloc(1, sizeof(*e)) : NULL;

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
    tp_kineto_entry_sweep_by(t, now_ns + TP_KINETO_SILENCE_NS);
    return e;
}

struct tp_kineto_entry *tp_kineto_entry_find(struct tp_kineto_table *t,
                                             const struct tp_kineto_peer *peer,
                                             uint64_t now_ns)
{
    char key[TP_KINETO_KEY_BYTES];
    size_t n = make_key(peer, key);
    struct tp_kineto_entry *e = tp_strmap_get(&t->by_key, key, n);

    if (e != NULL && (e->seen.peer.pid != peer->pid || e->seen.peer.uid != peer->uid)) {
        tp_kineto_entry_let_go(t, e);
        e = NULL;
    }
    return e != NULL ? e : add(t, peer, now_ns);
}

struct tp_kineto_entry *tp_kineto_entry_by_id(const struct tp_kineto_table *t,
                                              uint64_t id)
{
    return tp_strmap_get(&t->by_id, (const char *)&id, 8);
}
