/*
 * kineto_log_file.h - puts a process's file where a client of dynolog's expects it.
 *
 * The path is the client's, so nothing is done that the process could not have done
 * itself: below a directory of the settings only, with the rights of its user, and
 * without a link on the way. It reads no file of the process but the one it is given.
 * Any thread.
 */
#ifndef TP_SERVER_KINETO_LOG_FILE_H
#define TP_SERVER_KINETO_LOG_FILE_H

#include <stddef.h>
#include <stdint.h>

struct tp_err;

#define TP_KINETO_GROUPS_MAX 64

/* Whose rights count. Plain data. */
struct tp_kineto_owner {
    uint32_t uid, gid;
    uint32_t groups[TP_KINETO_GROUPS_MAX]; /* further ones */
    size_t n_groups;
};

/*
 * Find out who a process runs as.
 *
 * pid       in our namespace; 0 = not visible: it has no further groups, as when it has
 *           ended or its pid belongs to another user.
 * uid, gid  as the kernel says of its socket.
 */
void tp_kineto_owner_read(int32_t pid, uint32_t uid, uint32_t gid,
                          struct tp_kineto_owner *out);

/*
 * Copy a file to its place. It has its name when it is complete, and then replaces what
 * had it, as libkineto does. A service that is not root writes as itself.
 *
 * dirs     n_dirs absolute directories.
 * path     below one of them; its directory has to be there.
 * from_fd  read from its beginning; its position stays.
 *
 * TP_EINVAL, TP_EDENIED  the path, or that user may not. TP_EIO, TP_ENOMEM. No part of
 * the file is left.
 */
int tp_kineto_log_file_put(char *const *dirs, size_t n_dirs, const char *path,
                           const struct tp_kineto_owner *owner, int from_fd,
                           struct tp_err *err);

#endif
