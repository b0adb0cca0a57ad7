/*
 * peers.h - who is connected, how often, and how many requests each may still make.
 *
 * A peer is an address or, on a unix socket, a user. Any function from any thread.
 */
#ifndef TP_SERVER_PEERS_H
#define TP_SERVER_PEERS_H

#include <stdbool.h>
#include <stdint.h>

struct tp_err;
struct tp_peers;

#define TP_PEER_NAME_BYTES 64

/* One peer that has connections. Fields are private but the name. */
struct tp_peer {
    char name[TP_PEER_NAME_BYTES]; /* "127.0.0.1", "uid 1000" */
    uint64_t n_connections;        /* guarded by the lock of struct tp_peers */
    _Atomic uint64_t ready_ns;     /* monotonic; of the rate limit */
};

/*
 * Create the set.
 *
 * max_connections, max_per_peer  open at once; requests_per_s  of one peer, 0 = no
 * limit.
 *
 * TP_ENOMEM.
 */
int tp_peers_new(uint64_t max_connections, uint64_t max_per_peer,
                 uint64_t requests_per_s, struct tp_peers **out, struct tp_err *err);

/* Release it; no connection may be left. NULL is allowed. */
void tp_peers_free(struct tp_peers *peers);

/*
 * Count a connection that was opened.
 *
 * may_stay      set to whether the limits allow it. It is counted in either case.
 * is_peer_full  set to whether it is the limit of the peer that does not.
 *
 * Returns the peer, for tp_peers_leave(); NULL without memory.
 */
struct tp_peer *tp_peers_enter(struct tp_peers *peers, const char *name, bool *may_stay,
                               bool *is_peer_full);

/* The connection is closed. peer may be NULL. */
void tp_peers_leave(struct tp_peers *peers, struct tp_peer *peer);

/* Take one request of a peer at the time now_ns (monotonic). False: too many. */
bool tp_peers_request(struct tp_peers *peers, struct tp_peer *peer, uint64_t now_ns);

#endif
