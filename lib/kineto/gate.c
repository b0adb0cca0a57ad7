/*
 * gate.c - leaky buckets in a table of fixed size.
 *
 * A process has one of the four places of its set; a process that finds none of its own
 * takes that which is or will be empty first. So the buckets of those that flood stay,
 * and a place that is lost forgets what was sent, which only lets more through.
 */
#include "kineto/gate.h"

#include <stddef.h>

#define MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t v)
{
    v ^= v >> 32;
    v *= MULTIPLIER;
    return v ^ v >> 29;
}

/* A hash of the socket, with the highest bit set, which no pid has. */
static uint64_t socket_of(const struct tp_kineto_gate *g,
                          const struct tp_kineto_peer *peer)
{
    uint64_t hash = g->seed ^ peer->listener;

    for (uint8_t i = 0; i < peer->address_bytes; i++)
        hash = mix((hash ^ (unsigned char)peer->address[i]) * MULTIPLIER);
    return hash | UINT64_C(1) << 63;
}

/* Whether there is room for one more in the bucket of somebody, which is in `set`. */
static bool passes(struct tp_kineto_gate_place *set, uint64_t who, uint64_t burst,
                   uint64_t per_s, uint64_t now_ns)
{
    uint64_t each_ns = TP_KINETO_SECOND_NS / per_s;
    struct tp_kineto_gate_place *mine = set;

    for (size_t i = 0; i < TP_KINETO_GATE_WAYS; i++) {
        if (set[i].who == who) {
            mine = &set[i];
            break;
        }
        if (set[i].full_ns < mine->full_ns)
            mine = &set[i];
    }
    if (mine->who != who || mine->full_ns < now_ns) {
        mine->who = who;
        mine->full_ns = now_ns;
    }
    if (mine->full_ns - now_ns >= burst * each_ns)
        return false;
    mine->full_ns += each_ns;
    return true;
}

bool tp_kineto_gate_admits(struct tp_kineto_gate *g, const struct tp_kineto_peer *peer,
                           uint64_t now_ns)
{
    bool is_seen = peer->pid > 0;
    uint64_t who = is_seen ? (uint64_t)peer->pid << 32 | peer->uid : socket_of(g, peer);
    /* Nobody is zero, which an empty place has. */
    uint64_t user = UINT64_C(1) << 63 | peer->uid;

    /* In this order: one socket that floods takes nothing from the others. */
    return passes(g->places[mix(who ^ g->seed) % TP_KINETO_GATE_SETS], who,
                  TP_KINETO_GATE_BURST, TP_KINETO_GATE_PER_S, now_ns) &&
           (is_seen ||
            passes(g->users[mix(user ^ g->seed) % TP_KINETO_GATE_USER_SETS], user,
                   TP_KINETO_GATE_UNSEEN_BURST, TP_KINETO_GATE_UNSEEN_PER_S, now_ns));
}
