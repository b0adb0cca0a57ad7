/*
 * gate.c - leaky buckets in a table of fixed size.
 *
 * A process has one of the four places of its set; a process that finds none of its own
 * takes that which is or will be empty first. So the buckets of those that flood stay,
 * and a place that is lost forgets what was sent, which only lets more through.
 */
#include "kineto/gate.h"

#include <stddef.h>

#define EACH_NS (TP_KINETO_SECOND_NS / TP_KINETO_GATE_PER_S)
#define MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t v)
{
    v ^= v >> 32;
    v *= MULTIPLIER;
    return v ^ v >> 29;
}

/* Pid and uid as they are, or a hash of the address with the highest bit set, which no
 * pid has. */
static uint64_t who_of(const struct tp_kineto_gate *g,
                       const struct tp_kineto_peer *peer)
{
    uint64_t hash = g->seed ^ peer->listener;

    if (peer->pid > 0)
        return (uint64_t)peer->pid << 32 | peer->uid;
    for (uint8_t i = 0; i < peer->address_bytes; i++)
        hash = mix((hash ^ (unsigned char)peer->address[i]) * MULTIPLIER);
    return hash | UINT64_C(1) << 63;
}

bool tp_kineto_gate_admits(struct tp_kineto_gate *g, const struct tp_kineto_peer *peer,
                           uint64_t now_ns)
{
    uint64_t who = who_of(g, peer);
    size_t set = mix(who ^ g->seed) % TP_KINETO_GATE_SETS, mine = 0;

    for (size_t i = 0; i < TP_KINETO_GATE_WAYS; i++) {
        if (g->places[set][i].who == who) {
            mine = i;
            break;
        }
        if (g->places[set][i].full_ns < g->places[set][mine].full_ns)
            mine = i;
    }
    if (g->places[set][mine].who != who || g->places[set][mine].full_ns < now_ns) {
        g->places[set][mine].who = who;
        g->places[set][mine].full_ns = now_ns;
    }
    if (g->places[set][mine].full_ns - now_ns >= TP_KINETO_GATE_BURST * EACH_NS)
        return false;
    g->places[set][mine].full_ns += EACH_NS;
    return true;
}
