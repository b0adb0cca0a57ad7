/*
 * kineto_replies.h - the sockets that answer: one for each process that is known.
 *
 * Each is connected to its process, so that the kernel tells how much of what was sent
 * to it is still unread. A process that is not known is answered from one that is
 * closed again, so that a stranger costs no descriptor.
 *
 * Whether a process takes its answers in time shows some time after it has asked: then
 * its socket is due for a look. Each socket waits for one look at most.
 *
 * Not thread-safe: the listener's thread owns all of it.
 */
#ifndef TP_SERVER_KINETO_REPLIES_H
#define TP_SERVER_KINETO_REPLIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "kineto/target.h"

struct tp_err;
struct tp_kineto_replies;
struct tp_kineto_socket;

#define TP_KINETO_REPLY_IDLE_NS UINT64_C(60000000000) /* unused, it is closed */
#define TP_KINETO_LOOK_NS UINT64_C(250000000) /* from a request to the look, at least */
#define TP_KINETO_LOOK_STEP_NS UINT64_C(50000000) /* those of so long are due at once */

enum tp_kineto_sent {
    TP_KINETO_SENT,
    TP_KINETO_SENT_NOT_NOW, /* its queue is full, or there is no socket to send from */
    TP_KINETO_SENT_GONE     /* nobody is at the address any more */
};

/*
 * Make an empty set.
 *
 * sockets  those that a peer's `listener` counts; borrowed, and outlive the set.
 * most     sockets of its own at once; more processes are answered as unknown ones, and
 *          those of the user who has most, when others have none.
 * out      set only on success; release with tp_kineto_replies_free().
 *
 * TP_ENOMEM.
 */
int tp_kineto_replies_new(struct tp_kineto_socket *sockets, size_t most,
                          struct tp_kineto_replies **out, struct tp_err *err);

/* Close all. NULL is allowed. */
void tp_kineto_replies_free(struct tp_kineto_replies *r);

/* Whether there is a socket that answers that address for that user: then it was seen
 * to be the user's. */
bool tp_kineto_replies_has(const struct tp_kineto_replies *r,
                           const struct tp_kineto_peer *peer);

/* Bytes that a process has been sent and has not read; 0 when that is not known. */
uint64_t tp_kineto_replies_unread(struct tp_kineto_replies *r,
                                  const struct tp_kineto_peer *peer, uint64_t now_ns);

/*
 * Answer a request. Never waits.
 *
 * target  the id of the process, which gets a socket of its own if it has none; 0 = it
 *         is not known.
 */
enum tp_kineto_sent tp_kineto_replies_send(struct tp_kineto_replies *r,
                                           const struct tp_kineto_peer *peer,
                                           struct tp_str bytes, uint64_t target,
                                           uint64_t now_ns);

/* A request is not answered; whether the process has read what was sent before shows
 * later all the same. target as above. */
void tp_kineto_replies_skip(struct tp_kineto_replies *r,
                            const struct tp_kineto_peer *peer, uint64_t target,
                            uint64_t now_ns);

/* What a look has found. Plain data. */
struct tp_kineto_look {
    uint64_t target;
    uint64_t unread_bytes; /* of what it was sent */
};

/*
 * Look at the socket that is due first. One with anything unread is due again after
 * TP_KINETO_LOOK_NS, until its process has asked again or been silent for
 * TP_KINETO_SILENCE_S.
 *
 * Returns false when none is due.
 */
bool tp_kineto_replies_look(struct tp_kineto_replies *r, uint64_t now_ns,
                            struct tp_kineto_look *out);

/* When the next look is due; UINT64_MAX = nobody has asked lately. */
uint64_t tp_kineto_replies_look_ns(const struct tp_kineto_replies *r);

/* Close those that were not used for TP_KINETO_REPLY_IDLE_NS. */
void tp_kineto_replies_tidy(struct tp_kineto_replies *r, uint64_t now_ns);

/* How many there are. */
size_t tp_kineto_replies_count(const struct tp_kineto_replies *r);

#endif
