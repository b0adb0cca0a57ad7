/*
 * gate.h - the first look at a datagram: does its process send too many?
 *
 * The queue of a datagram socket holds ten on a usual kernel, so one process that
 * floods keeps it full, unless its datagrams are thrown away faster than it sends them.
 * So this look costs a few nanoseconds, takes no lock and knows nothing of the content;
 * what it lets through is counted again, process by process, in table.h. It errs on the
 * side of letting through. Not thread-safe: the thread that reads the sockets owns it.
 */
#ifndef TP_KINETO_GATE_H
#define TP_KINETO_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "kineto/table.h"

/* What all sockets of one process may send: as much as the table would answer. */
#define TP_KINETO_GATE_BURST (TP_KINETO_TARGETS_PER_PID * TP_KINETO_BURST)
#define TP_KINETO_GATE_PER_S (TP_KINETO_TARGETS_PER_PID * TP_KINETO_PER_S)
/* What all processes of a user may send whose pids are not visible: as many as the
 * table knows of them, twice a second each. */
#define TP_KINETO_GATE_UNSEEN_BURST (4 * TP_KINETO_UNSEEN_PER_UID)
#define TP_KINETO_GATE_UNSEEN_PER_S (2 * TP_KINETO_UNSEEN_PER_UID)
#define TP_KINETO_GATE_SETS 1024
#define TP_KINETO_GATE_USER_SETS 64
#define TP_KINETO_GATE_WAYS 4

/* A bucket. */
struct tp_kineto_gate_place {
    uint64_t who;
    uint64_t full_ns; /* when it will be empty again */
};

/* Embed it; the zero value with a seed is a valid one. All fields are private. */
struct tp_kineto_gate {
    uint64_t
        seed; /* any secret number, so that nobody can aim at the place of another */
    struct tp_kineto_gate_place places[TP_KINETO_GATE_SETS][TP_KINETO_GATE_WAYS];
    /* Of those whose pid is not visible; apart, so that no socket takes a place. */
    struct tp_kineto_gate_place users[TP_KINETO_GATE_USER_SETS][TP_KINETO_GATE_WAYS];
};

/*
 * Whether a datagram is looked at any further.
 *
 * peer    who sent it, as the kernel says; one whose pid is visible is told by pid and
 *         uid. Another one is told by its socket, and then by its user, since it can
 *         have any number of sockets.
 * now_ns  monotonic; not before that of the call before.
 */
bool tp_kineto_gate_admits(struct tp_kineto_gate *g, const struct tp_kineto_peer *peer,
                           uint64_t now_ns);

#endif
