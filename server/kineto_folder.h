/*
 * kineto_folder.h - where processes leave their files: safe to write for them, safe to
 * read for us.
 *
 * A process writes into a folder of its own, which is in a folder of ours that nobody
 * else may write to, so that names cannot be taken or replaced by others. What is read
 * must be a plain file of the process's user with one name; links are not followed.
 * Any thread, for different folders.
 */
#ifndef TP_SERVER_KINETO_FOLDER_H
#define TP_SERVER_KINETO_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tp_err;

/* Plain data: what is in a folder. */
struct tp_kineto_found {
    bool has_begun; /* a file that is being written */
    char name[256]; /* of one that is complete; "" = none */
};

/*
 * Open our own folder, made if it is not there (and the one above it).
 *
 * path  absolute.
 * fd    set on success; the caller closes it.
 *
 * TP_EDENIED  it belongs to somebody else, is a link, or others may write to it.
 * TP_EIO.
 */
int tp_kineto_home_open(const char *path, int *fd, struct tp_err *err);

/*
 * Make the folder of one process, for its user.
 *
 * fd  set on success; the caller closes it. A folder that is there is used again.
 *
 * TP_EDENIED  it belongs to somebody else. TP_EIO.
 */
int tp_kineto_folder_make(int home_fd, const char *name, uint32_t uid, uint32_t gid,
                          int *fd, struct tp_err *err);

/* Look what is in it. TP_EIO. */
int tp_kineto_folder_look(int fd, struct tp_kineto_found *out, struct tp_err *err);

/*
 * Open a file in it for reading.
 *
 * file_fd, bytes  set on success; the caller closes it.
 *
 * TP_EDENIED  it is no plain file of that user, or has other names. TP_EINVAL  it is
 * empty. TP_EIO.
 */
int tp_kineto_file_open(int fd, const char *name, uint32_t uid, int *file_fd,
                        uint64_t *bytes, struct tp_err *err);

/* Remove it with what is in it, and close fd. */
void tp_kineto_folder_remove(int home_fd, const char *name, int fd);

/*
 * Remove the folders in our own for which wants() is false: what a crash left.
 */
void tp_kineto_home_tidy(int home_fd, bool (*wants)(void *arg, const char *name),
                         void *arg);

#endif
