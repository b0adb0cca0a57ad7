/*
 * kineto_peer.h - the socket of a process, found by the address that it asked from.
 *
 * A path means something in one mount namespace, and a process may have another one
 * than we have, made by itself: there it binds any path, and here that leads to a
 * socket of somebody else, who would get what it asked for. So the socket at the path
 * must be of the user that the kernel says has asked. Nobody else can have the abstract
 * name of a socket that is there. No state; any thread.
 */
#ifndef TP_SERVER_KINETO_PEER_H
#define TP_SERVER_KINETO_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "kineto/target.h"

/* The socket address of a peer, ended by a NUL if there is room. Returns its length. */
socklen_t tp_kineto_peer_address(const struct tp_kineto_peer *peer,
                                 struct sockaddr_un *out);

/* The directory in the address of a process, as it writes it: what is before the last
 * slash. 0 when there is none, or nothing behind it. */
size_t tp_kineto_peer_dir(const struct tp_kineto_peer *peer);

/* Whether n bytes name that directory: several slashes are one, at the end none. */
bool tp_kineto_peer_is_dir(const char *dir, const char *p, size_t n);

/* Whether a socket of the peer's user is at its path; true for an abstract name. */
bool tp_kineto_peer_is_owner(const struct tp_kineto_peer *peer);

/*
 * Connect fd, a datagram socket, to the socket of a peer.
 *
 * Returns 0, or -1 with errno: nobody is there (ECONNREFUSED, ENOENT), or it is not the
 * socket that asked (EADDRNOTAVAIL): in a directory that others may write to, its path
 * can by now lead to somebody else's. Others as connect(2). fd may be connected all the
 * same, and is not to be used then.
 */
int tp_kineto_peer_connect(int fd, const struct tp_kineto_peer *peer);

#endif
