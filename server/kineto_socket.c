#include "server/kineto_socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "base/err.h"
#include "server/kineto_node.h"
#include "server/kineto_peer.h"

#define CLIENT_PREFIX "dynoconfigclient"
#define CLIENT_NAME_BYTES 53 /* that and a uuid, with the slash before */
#define REPLY_NAME_BYTES 30  /* "/" and "_reply_", and a number */

/* The address of a name. An abstract one has a NUL in front and one behind that counts;
 * without that it is another address, and nobody finds it. */
static socklen_t address(const char *dir, const char *name, struct sockaddr_un *out)
{
    size_t head = offsetof(struct sockaddr_un, sun_path);
    int n;

    memset(out, 0, sizeof(*out));
    out->sun_family = AF_UNIX;
    if (*dir != '\0')
        n = snprintf(out->sun_path, sizeof(out->sun_path), "%s/%s", dir, name);
    else
        n = 1 + snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "%s", name);
    return (socklen_t)(head + (size_t)n + 1);
}

static int make(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Whether a socket is at that path that nobody of this node has open any more. One that
 * cannot be connected to for another reason is somebody's. */
static bool is_dead(const struct sockaddr_un *a, socklen_t len, struct stat *st)
{
    int fd;
    bool dead;

    if (lstat(a->sun_path, st) != 0 || !S_ISSOCK(st->st_mode))
        return false;
    fd = make();
    dead = fd >= 0 && connect(fd, (const struct sockaddr *)a, len) != 0 &&
           errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return dead;
}

static int check(const char *name, const char *dir, struct tp_err *err)
{
    size_t n = strlen(name);

    if (n == 0 || n > TP_KINETO_NAME_MAX_BYTES ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                     "0123456789._-") != n)
        return tp_fail(err, TP_EINVAL,
                       "the Kineto socket '%.60s' is not 1 to %d of [A-Za-z0-9._-]",
                       name, TP_KINETO_NAME_MAX_BYTES);
    if (*dir != '\0' && (*dir != '/' || dir[1] == '\0' || dir[strlen(dir) - 1] == '/'))
        return tp_fail(err, TP_EINVAL,
                       "the Kineto directory '%.200s' must be an absolute path without "
                       "a slash at its end",
                       dir);
    /* The names of both sides must fit into a socket address behind it. */
    if (strlen(dir) + CLIENT_NAME_BYTES > TP_KINETO_ADDRESS_BYTES - 1 ||
        strlen(dir) + n + REPLY_NAME_BYTES > TP_KINETO_ADDRESS_BYTES - 1)
        return tp_fail(err, TP_EINVAL,
                       "the Kineto directory '%.200s' is too long: %d bytes fit with "
                       "this name of the socket",
                       dir,
                       TP_KINETO_ADDRESS_BYTES - 1 -
                           (n + REPLY_NAME_BYTES > CLIENT_NAME_BYTES
                                ? (int)n + REPLY_NAME_BYTES
                                : CLIENT_NAME_BYTES));
    return TP_OK;
}

static int fail_bind(const char *name, const char *dir, const struct sockaddr_un *a,
                     struct tp_err *err)
{
    struct stat st;
    int why = errno;

    if (why == EADDRINUSE && *dir != '\0' && lstat(a->sun_path, &st) == 0 &&
        !S_ISSOCK(st.st_mode))
        return tp_fail(err, TP_EEXIST,
                       "'%s/%s' is no socket: something else has the name", dir, name);
    if (why == EADDRINUSE && *dir != '\0' && tp_kineto_node_is_shared(dir))
        return tp_fail(err, TP_EEXIST,
                       "'%s/%s' is there, maybe of another node: the directory is on a "
                       "network file system and must be local to the node",
                       dir, name);
    errno = why;
    if (why == EADDRINUSE)
        return tp_fail(err, TP_EEXIST,
                       "the Kineto socket '%s%s%s' is taken: a dynolog or another "
                       "traceplaned runs",
                       dir, *dir == '\0' ? "" : "/", name);
    return tp_fail(err, TP_EIO, "cannot bind the Kineto socket '%s%s%s': %m", dir,
                   *dir == '\0' ? "" : "/", name);
}

/* Where the directory is when links are followed. */
static void find_real(struct tp_kineto_socket *s)
{
    char *real = *s->dir == '\0' ? NULL : realpath(s->dir, NULL);

    if (real != NULL && strlen(real) < sizeof(s->real))
        memcpy(s->real, real, strlen(real) + 1);
    free(real);
}

/* Bind a socket that answers to a name of its own, which nobody can take before: a
 * service that was killed has left its names, and some users would like to. dir as the
 * process writes it. Returns false with errno. */
static bool bind_reply(struct tp_kineto_socket *s, int fd, const char *dir)
{
    uint64_t number = ++s->n_replies; /* without entropy, at an early boot */
    struct sockaddr_un own;
    char name[128];
    socklen_t len;

    (void)!getrandom(&number, sizeof(number), GRND_NONBLOCK);
    snprintf(name, sizeof(name), "%s_reply_%016llx", s->name,
             (unsigned long long)number);
    if (*dir != '\0' && strlen(dir) + 1 + strlen(name) >= sizeof(own.sun_path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    len = address(dir, name, &own);
    return bind(fd, (const struct sockaddr *)&own, len) == 0;
}

/* Those that there are not, for each way in which a process usually writes the
 * directory; as far as that goes. */
static void fill_spares(struct tp_kineto_socket *s)
{
    bool has_real = *s->real != '\0' && strcmp(s->real, s->dir) != 0;

    for (int i = 0; i < TP_KINETO_SPARES; i++) {
        char dir[sizeof(s->dir) + 1];

        if (s->spares[i] >= 0 || *s->dir == '\0' ||
            (i >= TP_KINETO_SPARES / 2 && !has_real))
            continue;
        snprintf(dir, sizeof(dir), "%s%s", i < TP_KINETO_SPARES / 2 ? s->dir : s->real,
                 i % 2 == 0 ? "" : "/");
        s->spares[i] = make();
        if (s->spares[i] >= 0 && !bind_reply(s, s->spares[i], dir)) {
            close(s->spares[i]);
            s->spares[i] = -1;
        }
    }
}

/*
 * Let all users send to the socket that was bound at path. Where others may write to
 * the directory the path may lead elsewhere by now, to another thing of ours. So what
 * is changed is what was looked at, a socket of ours without a second name. A mode that
 * was set before bind(2) would be masked, and the mask is all threads'.
 */
static int let_all_send(struct tp_kineto_socket *s, const char *path,
                        struct tp_err *err)
{
    int at = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = TP_OK;
    char via[32];
    struct stat st = {0};

    snprintf(via, sizeof(via), "/proc/self/fd/%d", at);
    if (at < 0 || fstat(at, &st) != 0)
        rc = tp_fail(err, TP_EIO, "cannot look at '%s': %m", path);
    else if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
        rc = tp_fail(err, TP_EIO, "'%s' was replaced by somebody", path);
    else if (chmod(via, 0666) != 0)
        rc = tp_fail(err, TP_EIO, "cannot set the mode of '%s': %m", path);
    if (at >= 0)
        close(at);
    s->device = st.st_dev;
    s->inode = st.st_ino;
    return rc;
}

static void init(struct tp_kineto_socket *s, const char *name, const char *dir,
                 uint32_t number)
{
    *s = (struct tp_kineto_socket){.fd = -1, .number = number};
    snprintf(s->name, sizeof(s->name), "%s", name);
    snprintf(s->dir, sizeof(s->dir), "%s", dir);
    for (int i = 0; i < TP_KINETO_SPARES; i++)
        s->spares[i] = -1;
}

int tp_kineto_socket_open(const char *name, const char *dir, uint32_t number,
                          struct tp_kineto_socket *out, struct tp_err *err)
{
    struct tp_kineto_socket s;
    struct sockaddr_un a;
    struct stat st;
    const int on = 1;
    socklen_t len;
    int rc = check(name, dir, err);

    if (rc != TP_OK)
        return rc;
    init(&s, name, dir, number);
    find_real(&s);
    len = address(dir, name, &a);
    s.fd = make();
    if (s.fd < 0)
        return tp_fail(err, TP_EIO, "cannot make a Kineto socket: %m");
    if (*dir != '\0' && !tp_kineto_node_is_shared(dir) && is_dead(&a, len, &st))
        unlink(a.sun_path); /* of one that was killed */
    if (bind(s.fd, (const struct sockaddr *)&a, len) != 0)
        rc = fail_bind(name, dir, &a, err);
    else if (setsockopt(s.fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0)
        rc = tp_fail(err, TP_EIO, "cannot set up the Kineto socket '%s': %m", name);
    else if (*dir != '\0')
        rc = let_all_send(&s, a.sun_path, err);
    if (rc != TP_OK) {
        close(s.fd);
        return rc;
    }
    fill_spares(&s);
    *out = s;
    return TP_OK;
}

void tp_kineto_socket_want(const char *name, const char *dir, uint32_t number,
                           struct tp_kineto_socket *out)
{
    init(out, name, dir, number);
}

/* Close all that answers in its place, and the look for litter. */
static void close_beside(struct tp_kineto_socket *s)
{
    for (int i = 0; i < TP_KINETO_SPARES; i++) {
        if (s->spares[i] >= 0)
            tp_kineto_reply_close(s, s->spares[i]);
        s->spares[i] = -1;
    }
    if (s->tidying != NULL)
        closedir(s->tidying);
    s->tidying = NULL;
}

/* Whether who uses the path gets there; true when that cannot be told. */
static bool is_at_its_path(const struct tp_kineto_socket *s)
{
    struct sockaddr_un a;
    struct stat st;

    if (*s->dir == '\0')
        return true;
    address(s->dir, s->name, &a);
    if (lstat(a.sun_path, &st) != 0)
        return errno != ENOENT && errno != ENOTDIR;
    return st.st_dev == s->device && st.st_ino == s->inode;
}

void tp_kineto_socket_close(struct tp_kineto_socket *s)
{
    if (s->fd < 0)
        return;
    if (is_at_its_path(s))
        tp_kineto_reply_close(s, s->fd);
    else
        close(s->fd); /* what is at its path is another's */
    s->fd = -1;
    close_beside(s);
}

int tp_kineto_socket_mend(struct tp_kineto_socket *s, bool *is_new, struct tp_err *err)
{
    struct tp_kineto_socket fresh;
    int rc;

    *is_new = false;
    if (s->fd >= 0 && is_at_its_path(s)) {
        fill_spares(s);
        return TP_OK;
    }
    if (s->fd >= 0) {
        close(s->fd); /* what is at its path is another's */
        s->fd = -1;
        close_beside(s);
    }
    rc = tp_kineto_socket_open(s->name, s->dir, s->number, &fresh, err);
    if (rc != TP_OK)
        return rc;
    fresh.misfit = s->misfit;
    *s = fresh;
    *is_new = true;
    return TP_OK;
}

/* Somebody who is not answered would be missed without a word. */
static bool refuse(const struct tp_kineto_socket *s, const char *why,
                   const struct tp_kineto_peer *peer)
{
    if (s->misfit != NULL && s->misfit->n_told < TP_KINETO_MISFITS_MAX) {
        s->misfit->n_told++;
        s->misfit->tell(s->misfit->arg, why, s->dir, peer);
    }
    return false;
}

bool tp_kineto_socket_fits(const struct tp_kineto_socket *s,
                           const struct tp_kineto_peer *peer)
{
    size_t n = tp_kineto_peer_dir(peer);

    if (peer->address_bytes < 2)
        return false;
    if (*s->dir == '\0')
        return peer->address[0] == '\0' ||
               refuse(s, "it asks an abstract socket from a path", peer);
    return tp_kineto_peer_is_dir(s->dir, peer->address, n) ||
           (*s->real != '\0' && tp_kineto_peer_is_dir(s->real, peer->address, n)) ||
           refuse(s, "its KINETO_IPC_SOCKET_DIR is another path than dir", peer);
}

bool tp_kineto_socket_is_of(const struct tp_kineto_socket *s,
                            const struct tp_kineto_peer *peer)
{
    return tp_kineto_peer_is_owner(peer) ||
           refuse(s, "no socket of its user is at its path in dir", peer);
}

int tp_kineto_reply_open(struct tp_kineto_socket *s, const struct tp_kineto_peer *peer)
{
    char dir[TP_KINETO_ADDRESS_BYTES + 1] = "";
    int fd = make();
    int saved;

    if (fd < 0)
        return -1;
    if (tp_kineto_peer_connect(fd, peer) == 0) {
        /* In the directory as the process writes it: libkineto compares the text. */
        if (*s->dir != '\0')
            snprintf(dir, sizeof(dir), "%.*s", (int)tp_kineto_peer_dir(peer),
                     peer->address);
        if (bind_reply(s, fd, dir))
            return fd;
    }
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

void tp_kineto_reply_close(const struct tp_kineto_socket *s, int fd)
{
    struct sockaddr_un own = {0};
    socklen_t len = sizeof(own);

    if (s->dir[0] != '\0' && getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
        own.sun_path[0] == '/')
        unlink(own.sun_path);
    close(fd);
}

/* The spare socket in the directory as the process writes it, or -1. */
static int spare_of(const struct tp_kineto_socket *s, const struct tp_kineto_peer *peer)
{
    size_t n = tp_kineto_peer_dir(peer);

    for (int i = 0; i < TP_KINETO_SPARES; i++) {
        struct sockaddr_un own = {0};
        socklen_t len = sizeof(own);
        const char *slash;

        if (s->spares[i] < 0 ||
            getsockname(s->spares[i], (struct sockaddr *)&own, &len) != 0)
            continue;
        slash = strrchr(own.sun_path, '/');
        if (slash != NULL && (size_t)(slash - own.sun_path) == n &&
            memcmp(own.sun_path, peer->address, n) == 0)
            return s->spares[i];
    }
    return -1;
}

long tp_kineto_socket_send(const struct tp_kineto_socket *s,
                           const struct tp_kineto_peer *peer, const void *p, size_t n)
{
    struct sockaddr_un to;
    socklen_t len = tp_kineto_peer_address(peer, &to);
    int fd = s->dir[0] == '\0' ? -1 : spare_of(s, peer);

    if (s->dir[0] == '\0')
        return sendto(s->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL,
                      (const struct sockaddr *)&to, len);
    if (fd < 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    return tp_kineto_peer_connect(fd, peer) != 0
               ? -1
               : send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

uint64_t tp_kineto_unread_bytes(int fd)
{
    int n = 0;

    return ioctl(fd, SIOCOUTQ, &n) == 0 && n > 0 ? (uint64_t)n : 0;
}

/* A socket of a client, or an answering one of a service that was killed. */
static bool is_litter_name(const struct tp_kineto_socket *s, const char *name)
{
    size_t n = strlen(s->name);

    return strncmp(name, CLIENT_PREFIX, sizeof(CLIENT_PREFIX) - 1) == 0 ||
           (strncmp(name, s->name, n) == 0 && strncmp(name + n, "_reply_", 7) == 0);
}

/* Unlink it if nobody has it open any more. */
static void tidy_one(const struct tp_kineto_socket *s, const struct dirent *entry)
{
    struct sockaddr_un a;
    struct stat st;
    socklen_t len;

    if (entry->d_type != DT_SOCK || !is_litter_name(s, entry->d_name) ||
        strlen(s->dir) + strlen(entry->d_name) + 2 > sizeof(a.sun_path))
        return;
    len = address(s->dir, entry->d_name, &a);
    if (is_dead(&a, len, &st) && time(NULL) - st.st_mtime >= TP_KINETO_LITTER_S)
        unlink(a.sun_path);
}

bool tp_kineto_socket_tidy(struct tp_kineto_socket *s, unsigned most)
{
    const struct dirent *entry = NULL;

    if (s->tidying == NULL && s->dir[0] != '\0' && !tp_kineto_node_is_shared(s->dir))
        s->tidying = opendir(s->dir);
    if (s->tidying == NULL)
        return false;
    for (unsigned i = 0; i < most; i++) {
        entry = readdir(s->tidying);
        if (entry == NULL)
            break;
        tidy_one(s, entry);
    }
    if (entry != NULL)
        return true;
    closedir(s->tidying);
    s->tidying = NULL;
    return false;
}
