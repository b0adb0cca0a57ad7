#include "server/kineto_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/err.h"
#include "server/kineto_way.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define HOME_MODE 0711 /* others go through it, and neither list nor write */
#define OWN_MODE 0700  /* of a process of our user, or when we may give it away */
/* Of another user's: it makes files, and lists none, and nobody removes its files. */
#define OTHER_MODE 01733
#define COMPLETE ".json"
#define BEGUN ".tmp"
#define TIDY_ROUNDS 64 /* of TP_KINETO_FOLDER_NAMES_MAX names, at the start */

static int make_home(const char *path, struct tp_err *err)
{
    if (mkdir(path, HOME_MODE) == 0 || errno == EEXIST)
        return TP_OK;
    return tp_fail(err, TP_EIO, "cannot make a folder: %m: '%.300s'", path);
}

/* Ours, and nobody else's to write in. */
static int check_home(int fd, const char *path, struct tp_err *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return tp_fail(err, TP_EIO, "cannot look at its folder: %m: '%.300s'", path);
    if (st.st_uid != geteuid())
        return tp_fail(err, TP_EDENIED, "its folder belongs to user %u: '%.300s'",
                       (unsigned)st.st_uid, path);
    if ((st.st_mode & 07777) != HOME_MODE && fchmod(fd, HOME_MODE) != 0)
        return tp_fail(err, TP_EDENIED,
                       "its folder may be written to by others: '%.300s'", path);
    if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return tp_fail(err, TP_EDENIED, "cannot make folders in it: %m: '%.300s'",
                       path);
    return TP_OK;
}

bool tp_kineto_home_is_there(int fd, const char *path)
{
    struct stat ours, there;

    return fd >= 0 && fstat(fd, &ours) == 0 && lstat(path, &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino &&
           faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0;
}

int tp_kineto_home_has_room(int fd, const char *path, struct tp_err *err)
{
    struct statvfs fs;

    if (fstatvfs(fd, &fs) != 0)
        return TP_OK;
    if (fs.f_blocks != 0 && fs.f_bavail < TP_KINETO_ROOM_BYTES / fs.f_frsize + 1)
        return tp_fail(err, TP_EQUOTA, "less than %d MiB is free in '%.300s'",
                       TP_KINETO_ROOM_BYTES / 1048576, path);
    if (fs.f_files != 0 && fs.f_favail == 0)
        return tp_fail(err, TP_EQUOTA,
                       "no file can be made, since it is full: '%.300s'", path);
    return TP_OK;
}

int tp_kineto_home_open(const char *path, int *fd, struct tp_err *err)
{
    char above[1024];
    const char *slash = strrchr(path, '/');
    int home, rc = TP_OK;

    if (*path != '/' || strlen(path) >= sizeof(above))
        return tp_fail(err, TP_EIO, "its folder has no absolute path: '%.300s'", path);
    snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
    if (above[0] != '\0' && access(above, F_OK) != 0)
        rc = make_home(above, err);
    if (rc == TP_OK)
        rc = tp_kineto_way_check(above[0] == '\0' ? "/" : above, err);
    if (rc == TP_OK)
        rc = make_home(path, err);
    if (rc != TP_OK)
        return rc;
    home = open(path, DIR_FLAGS);
    if (home < 0)
        return tp_fail(err, errno == ELOOP || errno == ENOTDIR ? TP_EDENIED : TP_EIO,
                       "cannot open its folder: %m: '%.300s'", path);
    rc = check_home(home, path, err);
    if (rc != TP_OK) {
        close(home);
        return rc;
    }
    *fd = home;
    return TP_OK;
}

static int give_away(int fd, uint32_t uid, uint32_t gid)
{
    if (uid == geteuid())
        return fchmod(fd, OWN_MODE);
    if (geteuid() != 0)
        return fchmod(fd, OTHER_MODE);
    if (fchmod(fd, OWN_MODE) != 0)
        return -1;
    return fchown(fd, uid, gid);
}

int tp_kineto_folder_make(int home_fd, const char *name, uint32_t uid, uint32_t gid,
                          int *fd, struct tp_err *err)
{
    struct stat st;
    int folder;

    if (mkdirat(home_fd, name, OWN_MODE) != 0 && errno != EEXIST)
        return tp_fail(err, TP_EIO, "cannot make a folder for it: %m");
    folder = openat(home_fd, name, DIR_FLAGS);
    if (folder < 0 || fstat(folder, &st) != 0) {
        tp_fail(err, TP_EIO, "cannot open the folder for it: %m");
        goto fail;
    }
    if (st.st_uid != geteuid() && st.st_uid != uid) {
        tp_fail(err, TP_EDENIED, "the folder for it belongs to user %u",
                (unsigned)st.st_uid);
        goto fail;
    }
    if (st.st_uid == geteuid() && give_away(folder, uid, gid) != 0) {
        tp_fail(err, TP_EIO, "cannot give user %u a folder: %m", uid);
        goto fail;
    }
    *fd = folder;
    return TP_OK;

fail:
    if (folder >= 0)
        close(folder);
    return err == NULL ? TP_EIO : err->code;
}

bool tp_kineto_folder_owner(int home_fd, const char *name, const uint32_t *made_for,
                            uint32_t *uid, uint32_t *gid)
{
    struct stat st;
    bool is_open; /* to everybody, so that it does not tell for whom it was made */

    if (fstatat(home_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode))
        return false;
    is_open = (st.st_mode & S_IWOTH) != 0;
    if (is_open && (made_for == NULL || st.st_uid != geteuid()))
        return false;
    *uid = is_open ? *made_for : st.st_uid;
    *gid = st.st_gid;
    return true;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n > m && strcmp(name + n - m, end) == 0;
}

enum tp_kineto_file_kind tp_kineto_file_kind(const char *name)
{
    if (ends_with(name, BEGUN))
        return TP_KINETO_FILE_IS_BEGUN;
    return ends_with(name, COMPLETE) ? TP_KINETO_FILE_IS_COMPLETE
                                     : TP_KINETO_FILE_IS_OTHER;
}

bool tp_kineto_folder_is_there(int home_fd, const char *name, int fd)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 &&
           fstatat(home_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* A stream of the entries of fd, which stays open. */
static DIR *list(int fd)
{
    int copy = openat(fd, ".", DIR_FLAGS);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);

    if (dir == NULL && copy >= 0)
        close(copy);
    return dir;
}

bool tp_kineto_file_is_of(int fd, const char *name, uint32_t uid)
{
    struct stat st;

    return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (st.st_uid == uid || st.st_uid == geteuid());
}

int tp_kineto_folder_look(int fd, uint32_t uid, struct tp_kineto_found *out,
                          struct tp_err *err)
{
    DIR *dir = list(fd);
    const struct dirent *entry;
    unsigned n = 0;

    if (dir == NULL)
        return tp_fail(err, TP_EIO, "cannot list the folder of a process: %m");
    memset(out, 0, sizeof(*out));
    while ((entry = readdir(dir)) != NULL && n++ < TP_KINETO_FOLDER_NAMES_MAX) {
        enum tp_kineto_file_kind kind = tp_kineto_file_kind(entry->d_name);

        if (kind == TP_KINETO_FILE_IS_OTHER ||
            !tp_kineto_file_is_of(fd, entry->d_name, uid))
            continue;
        if (kind == TP_KINETO_FILE_IS_BEGUN)
            out->has_begun = true;
        else if (kind == TP_KINETO_FILE_IS_COMPLETE)
            snprintf(out->name, sizeof(out->name), "%s", entry->d_name);
    }
    closedir(dir);
    if (entry != NULL)
        return tp_fail(err, TP_EQUOTA, "its folder holds more than %d names",
                       TP_KINETO_FOLDER_NAMES_MAX);
    return TP_OK;
}

int tp_kineto_file_open(int fd, const char *name, uint32_t uid, int *file_fd,
                        uint64_t *bytes, struct tp_err *err)
{
    int file = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    int rc = TP_OK;

    if (file < 0 && errno == ELOOP)
        return tp_fail(err, TP_EDENIED, "the file is a link");
    if (file < 0 && errno == ENOENT)
        return tp_fail(err, TP_ENOTFOUND, "the file has been removed");
    if (file < 0 || fstat(file, &st) != 0)
        rc = tp_fail(err, TP_EIO, "the file cannot be opened: %m");
    else if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        rc = tp_fail(err, TP_EDENIED, "the file is no plain file with one name");
    else if (st.st_uid != uid)
        rc = tp_fail(err, TP_EDENIED, "the file belongs to user %u",
                     (unsigned)st.st_uid);
    else if (st.st_size == 0)
        rc = tp_fail(err, TP_EINVAL, "the file is empty");
    if (rc != TP_OK) {
        if (file >= 0)
            close(file);
        return rc;
    }
    *file_fd = file;
    *bytes = (uint64_t)st.st_size;
    return TP_OK;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/*
 * Empty a folder in the folder fd as far as that goes without going further down: what
 * is a folder with something in it is moved up into fd, where it is found again. So the
 * depth of what a process has made costs no stack. Returns how many names are gone.
 */
static unsigned flatten(int fd, const char *name, unsigned *n_left)
{
    int below = openat(fd, name, DIR_FLAGS);
    DIR *dir = below < 0 ? NULL : list(below);
    const struct dirent *entry;
    unsigned n_gone = 0;

    while (dir != NULL && *n_left > 0 && (entry = readdir(dir)) != NULL) {
        char moved[48];

        if (is_dots(entry->d_name))
            continue;
        snprintf(moved, sizeof(moved), "litter-%u-%llx", *n_left,
                 (unsigned long long)entry->d_ino);
        (*n_left)--;
        n_gone += unlinkat(below, entry->d_name, 0) == 0 ||
                  unlinkat(below, entry->d_name, AT_REMOVEDIR) == 0 ||
                  renameat(below, entry->d_name, fd, moved) == 0;
    }
    if (dir != NULL)
        closedir(dir);
    if (below >= 0)
        close(below);
    return n_gone;
}

/* Whatever it is. Returns whether something is gone. */
static bool remove_name(int fd, const char *name, unsigned *n_left)
{
    unsigned n_gone;

    if (unlinkat(fd, name, 0) == 0 || unlinkat(fd, name, AT_REMOVEDIR) == 0)
        return true;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return false;
    n_gone = flatten(fd, name, n_left);
    return unlinkat(fd, name, AT_REMOVEDIR) == 0 || n_gone > 0;
}

bool tp_kineto_folder_empty(int fd)
{
    DIR *dir = list(fd);
    const struct dirent *entry;
    unsigned n_left = TP_KINETO_FOLDER_NAMES_MAX, n_gone = 0;

    while (dir != NULL && n_left > 0 && (entry = readdir(dir)) != NULL) {
        if (is_dots(entry->d_name))
            continue;
        n_left--;
        n_gone += remove_name(fd, entry->d_name, &n_left);
    }
    if (dir != NULL)
        closedir(dir);
    return n_gone > 0; /* what does not go is not tried for ever */
}

void tp_kineto_folder_remove(int home_fd, const char *name)
{
    if (unlinkat(home_fd, name, AT_REMOVEDIR) != 0 && errno == ENOTDIR)
        unlinkat(home_fd, name, 0); /* a link in its place */
}

/* One of them, with all that is in it. */
static void sweep(int home_fd, const char *name)
{
    int fd = openat(home_fd, name, DIR_FLAGS);

    for (int i = 0; fd >= 0 && i < TIDY_ROUNDS && tp_kineto_folder_empty(fd); i++)
        continue;
    tp_kineto_folder_remove(home_fd, name);
    if (fd >= 0)
        close(fd);
}

void tp_kineto_home_tidy(int home_fd, bool (*wants)(void *arg, const char *name),
                         void *arg)
{
    DIR *dir = list(home_fd);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.' && !wants(arg, entry->d_name))
            sweep(home_fd, entry->d_name);
    }
    if (dir != NULL)
        closedir(dir);
}
