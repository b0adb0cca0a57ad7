/*
 * kineto_log_file.c - a thread that becomes the user, writes one file, and ends.
 *
 * In Linux each thread has a user and groups of its own that files are checked against.
 * So this one takes those of the process and never has to take ours back: it ends with
 * them. The C library's functions change all threads; the system calls do not.
 *
 *   dir --> each directory below it, no links --> .tp-PID-N, new --> copy --> rename
 */
#include "server/kineto_log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "kineto/log_file.h"

#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC)
#define NEW_FLAGS (O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)
#define MODE 0644 /* as a process with the usual umask makes it */
#define CHUNK_BYTES ((size_t)1 << 20)
#define STATUS_BYTES 8192 /* of /proc/PID/status */

#ifdef SYS_setgroups32
#define SET_GROUPS SYS_setgroups32
#else
#define SET_GROUPS SYS_setgroups
#endif

/* One file on its way. */
struct put {
    const char *dir;
    const struct tp_kineto_log_file *file;
    const struct tp_kineto_owner *owner;
    int from_fd;
    int code;
    struct tp_err *err;
};

static void read_groups(const char *line, struct tp_kineto_owner *out)
{
    char *end;

    while (out->n_groups < TP_KINETO_GROUPS_MAX) {
        unsigned long id = strtoul(line, &end, 10);

        if (end == line)
            return;
        out->groups[out->n_groups++] = (uint32_t)id;
        line = end;
        if (strchr(" \t", *line) == NULL || *line == '\0')
            return;
    }
}

void tp_kineto_owner_read(int32_t pid, uint32_t uid, uint32_t gid,
                          struct tp_kineto_owner *out)
{
    char path[64], text[STATUS_BYTES], owner[32];
    const char *groups;
    ssize_t n = -1;
    int fd = -1;

    memset(out, 0, sizeof(*out));
    out->uid = uid;
    out->gid = gid;
    if (pid <= 0)
        return;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, sizeof(text) - 1);
        close(fd);
    }
    if (n <= 0)
        return;
    text[n] = '\0';
    snprintf(owner, sizeof(owner), "\nUid:\t%u\t", uid);
    groups = strstr(text, "\nGroups:\t");
    if (strstr(text, owner) != NULL && groups != NULL)
        read_groups(groups + strlen("\nGroups:\t"), out);
}

/* For this thread only. */
static int become(const struct tp_kineto_owner *o, struct tp_err *err)
{
    if (geteuid() != 0 || o->uid == 0)
        return TP_OK;
    if (syscall(SET_GROUPS, o->n_groups, o->groups) != 0)
        return tp_fail(err, TP_EDENIED, "cannot take the groups of user %u: %m",
                       o->uid);
    setfsgid(o->gid);
    setfsuid(o->uid);
    /* They say nothing of failure; asked for what cannot be, they say what is. */
    if ((uint32_t)setfsgid((gid_t)-1) != o->gid ||
        (uint32_t)setfsuid((uid_t)-1) != o->uid)
        return tp_fail(err, TP_EDENIED, "cannot write as user %u", o->uid);
    return TP_OK;
}

static int fail(struct put *p, const char *what)
{
    bool is_denied = errno == EACCES || errno == EPERM || errno == ENOTDIR;

    return tp_fail(p->err, is_denied ? TP_EDENIED : TP_EIO, "cannot %s: %m", what);
}

/* Open the directory that the file goes to. *name is its name there. */
static int open_dir(struct put *p, int *out, const char **name)
{
    char step[TP_KINETO_LOG_FILE_BYTES];
    const char *slash;
    int fd = open(p->dir, DIR_FLAGS), rc;

    *name = p->file->below;
    if (fd < 0)
        return fail(p, "open its directory");
    while ((slash = strchr(*name, '/')) != NULL) {
        int next;

        snprintf(step, sizeof(step), "%.*s", (int)(slash - *name), *name);
        next = openat(fd, step, DIR_FLAGS | O_NOFOLLOW);
        if (next < 0) {
            rc = fail(p, "open its directory");
            close(fd);
            return rc;
        }
        close(fd);
        fd = next;
        *name = slash + 1;
    }
    *out = fd;
    return TP_OK;
}

static int copy(struct put *p, int to)
{
    off_t at = 0;
    ssize_t n;

    do
        n = sendfile(to, p->from_fd, &at, CHUNK_BYTES);
    while (n > 0 || (n < 0 && errno == EINTR));
    return n < 0 || fchmod(to, MODE) != 0 ? fail(p, "write it") : TP_OK;
}

static int write_file(struct put *p, int dir, const char *name)
{
    static _Atomic unsigned count;
    char temporary[48];
    int fd, rc;

    snprintf(temporary, sizeof(temporary), ".tp-%d-%u", (int)getpid(),
             atomic_fetch_add(&count, 1));
    fd = openat(dir, temporary, NEW_FLAGS, MODE);
    if (fd < 0)
        return fail(p, "make it");
    rc = copy(p, fd);
    if (close(fd) != 0 && rc == TP_OK)
        rc = fail(p, "write it");
    if (rc == TP_OK && renameat(dir, temporary, dir, name) != 0)
        rc = fail(p, "give it its name");
    if (rc != TP_OK)
        unlinkat(dir, temporary, 0);
    return rc;
}

static void *run(void *arg)
{
    struct put *p = arg;
    const char *name;
    int dir;

    p->code = become(p->owner, p->err);
    if (p->code == TP_OK)
        p->code = open_dir(p, &dir, &name);
    if (p->code != TP_OK)
        return NULL;
    p->code = write_file(p, dir, name);
    close(dir);
    return NULL;
}

int tp_kineto_log_file_put(char *const *dirs, size_t n_dirs, const char *path,
                           const struct tp_kineto_owner *owner, int from_fd,
                           struct tp_err *err)
{
    struct tp_kineto_log_file file;
    struct put p = {.file = &file, .owner = owner, .from_fd = from_fd, .err = err};
    pthread_t thread;
    int rc = tp_kineto_log_file_find(tp_str_of(path), dirs, n_dirs, &file, err);

    if (rc != TP_OK)
        return rc;
    p.dir = dirs[file.dir];
    if ((errno = pthread_create(&thread, NULL, run, &p)) != 0)
        return tp_fail(err, TP_EIO, "cannot start a thread for it: %m");
    pthread_join(thread, NULL);
    return p.code;
}
