/*
 * blob_folder.c - walking a tree of folders without following links.
 */
#include "server/blob_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

#define FOLDER_DEPTH_MAX 16

int tp_blob_fail_errno(struct tp_err *err, const char *what, const char *name)
{
    int e = errno;
    int code = TP_EIO;
    char text[128];

    if (e == ENOSPC || e == EDQUOT || e == EFBIG)
        code = TP_EQUOTA;
    else if (e == ENOMEM || e == EMFILE || e == ENFILE)
        code = TP_ENOMEM;
    else if (e == ENOENT)
        code = TP_ENOTFOUND;
    return tp_fail(err, code, "cannot %s '%s': %s", what, name,
                   strerror_r(e, text, sizeof(text)));
}

/* Called for each entry of a folder; name is its path below the home. */
typedef int (*entry_fn)(int home_fd, const char *name, bool is_folder, int depth,
                        void *arg, struct tp_err *err);

/* Call fn for each entry of a folder, which has no trailing '/'. An absent one is
 * empty. */
static int each_entry(int home_fd, const char *folder, int depth, entry_fn fn,
                      void *arg, struct tp_err *err)
{
    int fd = openat(home_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    int rc = TP_OK;

    if (dir == NULL) {
        bool is_absent = fd < 0 && errno == ENOENT;

        if (!is_absent)
            rc = tp_blob_fail_errno(err, "list", folder);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (rc == TP_OK && (e = readdir(dir)) != NULL) {
        char name[PATH_MAX];
        struct stat st;

        if (e->d_name[0] == '.')
            continue;
        if (strcmp(folder, ".") == 0)
            snprintf(name, sizeof(name), "%s", e->d_name);
        else if (snprintf(name, sizeof(name), "%s/%s", folder, e->d_name) >= PATH_MAX)
            continue;
        if (fstatat(home_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue; /* it went away meanwhile */
        rc = fn(home_fd, name, S_ISDIR(st.st_mode), depth, arg, err);
    }
    closedir(dir);
    return rc;
}

static int remove_entry(int home_fd, const char *name, bool is_folder, int depth,
                        void *arg, struct tp_err *err)
{
    int rc = TP_OK;

    if (is_folder && depth < FOLDER_DEPTH_MAX)
        rc = each_entry(home_fd, name, depth + 1, remove_entry, arg, err);
    if (rc != TP_OK)
        return rc;
    if (unlinkat(home_fd, name, is_folder ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT)
        return tp_blob_fail_errno(err, "remove", name);
    return TP_OK;
}

int tp_blob_folder_remove(int home_fd, const char *name, bool is_folder,
                          struct tp_err *err)
{
    return remove_entry(home_fd, name, is_folder, 0, NULL, err);
}

struct listing {
    tp_blob_name_fn fn;
    void *arg;
};

static int list_entry(int home_fd, const char *name, bool is_folder, int depth,
                      void *arg, struct tp_err *err)
{
    const struct listing *listing = arg;
    struct stat st;

    if (is_folder) {
        if (depth >= FOLDER_DEPTH_MAX)
            return TP_OK;
        return each_entry(home_fd, name, depth + 1, list_entry, arg, err);
    }
    if (fstatat(home_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return TP_OK; /* it went away meanwhile */
    return listing->fn(name, (uint64_t)st.st_size, listing->arg);
}

int tp_blob_folder_list(int home_fd, const char *folder, tp_blob_name_fn fn, void *arg,
                        struct tp_err *err)
{
    struct listing listing = {fn, arg};

    return each_entry(home_fd, folder, 0, list_entry, &listing, err);
}

int tp_blob_folder_make(const char *dir, struct tp_err *err)
{
    char path[PATH_MAX];
    struct stat st;

    if (*dir == '\0' || snprintf(path, sizeof(path), "%s", dir) >= PATH_MAX)
        return tp_fail(err, TP_EIO, "'%.64s' cannot be the path of a directory", dir);
    for (char *p = path + 1; *p != '\0'; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return tp_fail(err, TP_EIO, "cannot make directory '%s': %m", path);
        *p = '/';
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return tp_fail(err, TP_EIO, "cannot make directory '%s': %m", path);
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return tp_fail(err, TP_EIO, "'%s' is not a directory", path);
    return TP_OK;
}
