/*
 * kineto_node.h - what a node guarantees for the folders that Kineto processes share.
 *
 * Whether other nodes see a directory, too, and whether the kernel keeps a process from
 * what other users have put there. Looks and changes nothing. No state; any thread.
 */
#ifndef TP_SERVER_KINETO_NODE_H
#define TP_SERVER_KINETO_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TP_KINETO_NODE_SETTINGS "/proc/sys/fs"

/*
 * Whether a file system of that type (f_type of statfs(2)) may be on several nodes. A
 * socket there is a name for all of them, and open on one: the others are refused as if
 * nobody had it. FUSE may be either and counts as local: containers have it, too, and
 * their killed services leave sockets that the next must remove.
 */
bool tp_kineto_node_is_network(uint64_t type);

/* Whether dir is in such a file system; false when that cannot be told. */
bool tp_kineto_node_is_shared(const char *dir);

/*
 * Which settings of the kernel let a process that makes a file write into what another
 * user has put at its name instead (a link to a file of its own user, or a file or a
 * pipe that the other reads), in a sticky directory that both may write to.
 *
 * dir  with the settings: TP_KINETO_NODE_SETTINGS.
 * out  what to give sysctl(8), such as "fs.protected_symlinks=1"; "" = all are as they
 *      should be, or cannot be read. Cut off at bytes.
 */
void tp_kineto_node_gaps(const char *dir, char *out, size_t bytes);

#endif
