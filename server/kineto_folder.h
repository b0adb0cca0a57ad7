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

#define TP_KINETO_FOLDER_NAMES_MAX 256 /* a process needs two */
#define TP_KINETO_ROOM_BYTES 1048576   /* less is no room for a file */

/* What a name in a folder says. */
enum tp_kineto_file_kind {
    TP_KINETO_FILE_IS_OTHER,
    TP_KINETO_FILE_IS_BEGUN,   /* it is being written */
    TP_KINETO_FILE_IS_COMPLETE /* it has its last name */
};

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
 * TP_EDENIED  it belongs to somebody else, is a link, others may write to it, or we may
 * not; or somebody else could change the way to it (kineto_way.h). TP_EIO.
 */
int tp_kineto_home_open(const char *path, int *fd, struct tp_err *err);

/* Whether path still leads to what was opened, and folders can be made in it: somebody
 * who tidies up may have removed it. False for fd -1. */
bool tp_kineto_home_is_there(int fd, const char *path);

/*
 * Whether there is room for files in it: TP_KINETO_ROOM_BYTES, and a name.
 *
 * TP_EQUOTA  there is not. A file system that tells no sizes has room.
 */
int tp_kineto_home_has_room(int fd, const char *path, struct tp_err *err);

/*
 * Make the folder of one process, for its user.
 *
 * fd  set on success; the caller closes it. A folder that is there is used again.
 *
 * TP_EDENIED  it belongs to somebody else. TP_EIO.
 */
int tp_kineto_folder_make(int home_fd, const char *name, uint32_t uid, uint32_t gid,
                          int *fd, struct tp_err *err);

/*
 * Find out for whom a folder was made that may be there from before.
 *
 * made_for  the user, if that was written down; NULL = it was not. One that we, not
 *           being root, have made for another user tells it by nothing else.
 * uid, gid  set when it is known.
 *
 * Returns whether it is; not when there is none.
 */
bool tp_kineto_folder_owner(int home_fd, const char *name, const uint32_t *made_for,
                            uint32_t *uid, uint32_t *gid);

/* Whether the name still leads to the folder that was made. */
bool tp_kineto_folder_is_there(int home_fd, const char *name, int fd);

/* Whether a name in it is of that user, or ours. The folder of a service that is not
 * root takes files of all users: what somebody else puts there is nobody's file. */
bool tp_kineto_file_is_of(int fd, const char *name, uint32_t uid);

/*
 * Look what is in it of that user.
 *
 * TP_EQUOTA  more than TP_KINETO_FOLDER_NAMES_MAX names: no libkineto makes so many,
 * and looking takes the time of others. TP_EIO.
 */
int tp_kineto_folder_look(int fd, uint32_t uid, struct tp_kineto_found *out,
                          struct tp_err *err);

/* What a name in a folder says about its file. */
enum tp_kineto_file_kind tp_kineto_file_kind(const char *name);

/*
 * Open a file in it for reading.
 *
 * file_fd, bytes  set on success; the caller closes it.
 *
 * TP_EDENIED  it is no plain file of that user, or has other names. TP_EINVAL  it is
 * empty. TP_ENOTFOUND. TP_EIO  it cannot be opened at the moment, for example for want
 * of descriptors.
 */
int tp_kineto_file_open(int fd, const char *name, uint32_t uid, int *file_fd,
                        uint64_t *bytes, struct tp_err *err);

/*
 * Remove what is in it, folders and links included, about TP_KINETO_FOLDER_NAMES_MAX
 * names at a time.
 *
 * Returns whether another call could remove more: false = it is empty, or what is left
 * does not go.
 */
bool tp_kineto_folder_empty(int fd);

/* Remove one that is empty, or the link that somebody put in its place. */
void tp_kineto_folder_remove(int home_fd, const char *name);

/*
 * Remove the folders in our own for which wants() is false, with all that is in them:
 * what a crash left.
 */
void tp_kineto_home_tidy(int home_fd, bool (*wants)(void *arg, const char *name),
                         void *arg);

#endif
