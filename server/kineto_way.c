/*
 * kineto_way.c - a path, name by name, links resolved as the kernel does.
 *
 * Each name is looked at when all before it is known to be good, so nobody can change
 * it afterwards but those who are trusted anyway. realpath(3) would show where links
 * lead to, and not what they lead through.
 */
#include "server/kineto_way.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

struct way {
    char done[PATH_MAX]; /* without links, "" = the root */
    char todo[PATH_MAX]; /* what is left */
    unsigned n_links;
    uid_t root_uid; /* of "/": in a user namespace that lacks root, a stand-in */
};

static const char *shown(const char *path)
{
    return *path == '\0' ? "/" : path;
}

static int check_owner(const struct way *w, const char *path, const struct stat *st,
                       struct tp_err *err)
{
    if (st->st_uid == geteuid() || st->st_uid == 0 || st->st_uid == w->root_uid)
        return TP_OK;
    return tp_fail(err, TP_EDENIED, "a folder on its way belongs to user %u: '%.300s'",
                   (unsigned)st->st_uid, shown(path));
}

static int check_dir(const struct way *w, const char *path, const struct stat *st,
                     struct tp_err *err)
{
    int rc;

    if (!S_ISDIR(st->st_mode))
        return tp_fail(err, TP_EDENIED, "what is there is no directory: '%.300s'",
                       shown(path));
    rc = check_owner(w, path, st, err);
    if (rc != TP_OK)
        return rc;
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0 && (st->st_mode & S_ISVTX) == 0)
        return tp_fail(err, TP_EDENIED,
                       "a folder may be written to by others (chmod g-w,o-w it, or "
                       "+t): '%.300s'",
                       shown(path));
    return TP_OK;
}

/* Take the next name off what is left. Returns false when there is none. */
static bool next_name(struct way *w, char *name)
{
    size_t at = strspn(w->todo, "/"), n = strcspn(w->todo + at, "/");

    memcpy(name, w->todo + at, n);
    name[n] = '\0';
    memmove(w->todo, w->todo + at + n, strlen(w->todo + at + n) + 1);
    return n > 0;
}

/* Go on with what a link says, and then with what is left. */
static int follow(struct way *w, const char *path, struct tp_err *err)
{
    char target[PATH_MAX], left[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof(target) - 1);

    if (n < 0)
        return tp_fail(err, TP_EIO, "cannot read a link: %m: '%.300s'", path);
    target[n] = '\0';
    memcpy(left, w->todo, sizeof(left));
    if (++w->n_links > TP_KINETO_WAY_LINKS_MAX ||
        (size_t)snprintf(w->todo, sizeof(w->todo), "%s/%s", target, left) >=
            sizeof(w->todo))
        return tp_fail(err, TP_EDENIED, "it leads through too many links: '%.300s'",
                       path);
    if (target[0] == '/')
        w->done[0] = '\0';
    return TP_OK;
}

static int take_name(struct way *w, const char *name, struct tp_err *err)
{
    char path[PATH_MAX + NAME_MAX + 2];
    struct stat st;
    int rc;

    if (strcmp(name, ".") == 0)
        return TP_OK;
    if (strcmp(name, "..") == 0) {
        char *slash = strrchr(w->done, '/');

        if (slash != NULL)
            *slash = '\0';
        return TP_OK;
    }
    snprintf(path, sizeof(path), "%s/%.*s", w->done, NAME_MAX, name);
    if (strlen(path) >= sizeof(w->done))
        return tp_fail(err, TP_EIO, "a path is too long: '%.300s'", path);
    if (lstat(path, &st) != 0)
        return tp_fail(err, TP_EIO, "cannot look at a folder: %m: '%.300s'", path);
    if (S_ISLNK(st.st_mode)) {
        rc = check_owner(w, path, &st, err);
        return rc == TP_OK ? follow(w, path, err) : rc;
    }
    memcpy(w->done, path, strlen(path) + 1);
    return check_dir(w, path, &st, err);
}

int tp_kineto_way_check(const char *path, struct tp_err *err)
{
    struct way w = {.n_links = 0};
    char name[PATH_MAX];
    struct stat st;
    int rc;

    if (*path != '/' || strlen(path) >= sizeof(w.todo))
        return tp_fail(err, TP_EIO, "a folder has no absolute path: '%.300s'", path);
    memcpy(w.todo, path, strlen(path) + 1);
    if (lstat("/", &st) != 0)
        return tp_fail(err, TP_EIO, "cannot look at '/': %m");
    w.root_uid = st.st_uid;
    rc = check_dir(&w, "", &st, err);
    while (rc == TP_OK && next_name(&w, name))
        rc = take_name(&w, name, err);
    return rc;
}
