/*
 * peers.c - a map by name, and a rate limit without a counter.
 *
 * The limit is GCRA: `ready_ns` is the time up to which the peer has used its rate; a
 * request moves it by 1/rate and is refused when it is more than a second ahead. One
 * atomic word a peer, so requests take no lock.
 */
#include "server/peers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/strmap.h"

#define BURST_NS 1000000000u

struct tp_peers {
    uint64_t max_connections, max_per_peer, interval_ns;
    pthread_mutex_t lock; /* guards all below; a leaf */
    struct tp_strmap by_name;
    uint64_t n_connections;
};

int tp_peers_new(uint64_t max_connections, uint64_t max_per_peer,
                 uint64_t requests_per_s, struct tp_peers **out, struct tp_err *err)
{
    struct tp_peers *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the table of peers");
    pthread_mutex_init(&p->lock, NULL);
    p->max_connections = max_connections;
    p->max_per_peer = max_per_peer;
    if (requests_per_s > 0)
        p->interval_ns = 1000000000u / requests_per_s;
    *out = p;
    return TP_OK;
}

void tp_peers_free(struct tp_peers *peers)
{
    size_t cursor = 0;
    void *peer;

    if (peers == NULL)
        return;
    while (tp_strmap_next(&peers->by_name, &cursor, NULL, &peer))
        free(peer);
    tp_strmap_fini(&peers->by_name);
    pthread_mutex_destroy(&peers->lock);
    free(peers);
}

/* The peer of that name, new or not; the lock is held. */
static struct tp_peer *find_or_add(struct tp_peers *peers, const char *name)
{
    size_t n = strlen(name);
    struct tp_peer *peer = tp_strmap_get(&peers->by_name, name, n);

    if (peer != NULL)
        return peer;
    peer = calloc(1, sizeof(*peer));
    if (peer == NULL)
        return NULL;
    snprintf(peer->name, sizeof(peer->name), "%s", name);
    if (tp_strmap_put(&peers->by_name, name, n, peer, NULL) != TP_OK) {
        free(peer);
        return NULL;
    }
    return peer;
}

struct tp_peer *tp_peers_enter(struct tp_peers *peers, const char *name, bool *may_stay,
                               bool *is_peer_full)
{
    struct tp_peer *peer;

    pthread_mutex_lock(&peers->lock);
    peer = find_or_add(peers, name);
    *is_peer_full = peer != NULL && peer->n_connections >= peers->max_per_peer;
    *may_stay = peer != NULL && !*is_peer_full &&
                peers->n_connections < peers->max_connections;
    if (peer != NULL) {
        peers->n_connections++;
        peer->n_connections++;
    }
    pthread_mutex_unlock(&peers->lock);
    return peer;
}

void tp_peers_leave(struct tp_peers *peers, struct tp_peer *peer)
{
    if (peer == NULL)
        return;
    pthread_mutex_lock(&peers->lock);
    peers->n_connections--;
    /* A rate that was used up must not be forgotten by closing the connection; the few
     * local names stay. A remote peer that is gone is dropped. */
    if (--peer->n_connections == 0 && tp_strmap_len(&peers->by_name) > 1024) {
        tp_strmap_remove(&peers->by_name, peer->name, strlen(peer->name));
        free(peer);
    }
    pthread_mutex_unlock(&peers->lock);
}

bool tp_peers_request(struct tp_peers *peers, struct tp_peer *peer, uint64_t now_ns)
{
    uint64_t ready;
    uint64_t next;

    if (peers->interval_ns == 0 || peer == NULL)
        return true;
    ready = atomic_load(&peer->ready_ns);
    do {
        next = (ready > now_ns ? ready : now_ns) + peers->interval_ns;
        if (next > now_ns + BURST_NS)
            return false;
    } while (!atomic_compare_exchange_weak(&peer->ready_ns, &ready, next));
    return true;
}
