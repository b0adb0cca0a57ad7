/*
 * kineto_socket.h - the sockets that Kineto processes know, and those that answer them.
 *
 * A socket is an abstract name or a path in a directory; what answers must be bound and
 * of the same kind, or libkineto ends the process that it answers. Each process gets an
 * answering socket of its own, connected to it, since the kernel tells for each socket
 * how much of what was sent is still unread. Knows no datagram's content. Not
 * thread-safe: the listener's thread owns all of it.
 */
#ifndef TP_SERVER_KINETO_SOCKET_H
#define TP_SERVER_KINETO_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kineto/target.h"

struct tp_err;

#define TP_KINETO_LITTER_S 10
#define TP_KINETO_NAME_MAX_BYTES 48 /* room is needed for "_reply_" and a number */

/* Somebody who asks from where it cannot be answered: told a few times. */
struct tp_kineto_misfit {
    void (*tell)(void *arg, const char *why, const char *dir,
                 const struct tp_kineto_peer *peer);
    void *arg;
    unsigned n_told; /* TP_KINETO_MISFITS_MAX are */
};

#define TP_KINETO_MISFITS_MAX 8
#define TP_KINETO_SPARES \
    4 /* its directory and the real one, with a slash behind or not */

/* Plain data: one listening socket. */
struct tp_kineto_socket {
    int fd;
    uint32_t number;        /* of the listener; part of every peer */
    char name[64];          /* "dynolog" */
    char dir[64];           /* where it is; "" = abstract */
    char real[64];          /* likewise without links; "" when that is too long */
    uint64_t device, inode; /* of its path, in a directory */
    struct tp_kineto_misfit *misfit; /* borrowed; NULL = nobody is told */
    uint64_t n_replies;              /* names given to answering sockets */
    int spares[TP_KINETO_SPARES];    /* bound, in a directory; -1 = none */
    void *tidying; /* where tp_kineto_socket_tidy() is; NULL = nowhere */
};

/*
 * Open and bind.
 *
 * name  1 to TP_KINETO_NAME_MAX_BYTES of [A-Za-z0-9._-].
 * dir   an absolute path that leaves room for the names; "" = abstract.
 * out   written on success; close it with tp_kineto_socket_close().
 *
 * A socket that nobody has open any more is replaced, and nothing else; and none where
 * other nodes may have it open (kineto_node.h).
 *
 * TP_EINVAL  name or dir cannot be. TP_EEXIST  somebody (a dynolog) has the name, or
 * something that is no socket. TP_EIO.
 */
int tp_kineto_socket_open(const char *name, const char *dir, uint32_t number,
                          struct tp_kineto_socket *out, struct tp_err *err);

/* One that is not bound, for tp_kineto_socket_mend(). name and dir as above. */
void tp_kineto_socket_want(const char *name, const char *dir, uint32_t number,
                           struct tp_kineto_socket *out);

/*
 * Bind it again when it is not bound, or when its path was removed or replaced; and
 * make the shared sockets that answer, as far as they could not be made so far.
 *
 * is_new  whether it was bound now: fd is another one.
 *
 * Errors as tp_kineto_socket_open(): it is not bound.
 */
int tp_kineto_socket_mend(struct tp_kineto_socket *s, bool *is_new, struct tp_err *err);

/* Close it, and remove its path, unless that is another's by now. All-zero with fd -1
 * is allowed. */
void tp_kineto_socket_close(struct tp_kineto_socket *s);

/* Whether answers from s may go to that peer at all: it must be of the same kind, and
 * in the same directory, however many slashes it writes, by the name that s has or by
 * the real one. If not, s->misfit is told. */
bool tp_kineto_socket_fits(const struct tp_kineto_socket *s,
                           const struct tp_kineto_peer *peer);

/* Whether the address of a peer that fits is that of a socket of its user: see
 * kineto_peer.h. If not, s->misfit is told, and nothing may be done for it: what is
 * known of that address is of somebody else. */
bool tp_kineto_socket_is_of(const struct tp_kineto_socket *s,
                            const struct tp_kineto_peer *peer);

/*
 * A socket that answers one process.
 *
 * Returns its descriptor, or -1 with errno: as tp_kineto_peer_connect(), or there are
 * no descriptors left.
 */
int tp_kineto_reply_open(struct tp_kineto_socket *s, const struct tp_kineto_peer *peer);

/* Close it, and remove its path. */
void tp_kineto_reply_close(const struct tp_kineto_socket *s, int fd);

/*
 * Send from a socket that is there from the beginning, when no other can be had: there
 * are no descriptors left, or no room in the directory. It is shared, and those who do
 * not read fill it. A process that writes the directory in an odd way has none.
 *
 * Returns as send(2).
 */
long tp_kineto_socket_send(const struct tp_kineto_socket *s,
                           const struct tp_kineto_peer *peer, const void *p, size_t n);

/* Bytes that were sent from fd and not read yet; 0 when that is not known. */
uint64_t tp_kineto_unread_bytes(int fd);

/*
 * Remove the sockets that ended processes have left in the directory: libkineto never
 * removes its own. Nothing for an abstract one, nothing where other nodes may have
 * sockets (kineto_node.h), and none that is younger than TP_KINETO_LITTER_S: the kernel
 * makes the name before the socket can be found by it.
 *
 * most  so many names are looked at; anybody may have put millions there.
 *
 * Returns whether there are more, which the next call goes on with.
 */
bool tp_kineto_socket_tidy(struct tp_kineto_socket *s, unsigned most);

#endif
