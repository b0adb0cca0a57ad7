/*
 * kineto_peer.c - whose is a socket, and connected to that one and no other.
 *
 * What is looked at is what is connected to: the path is opened once, without following
 * a link at its end, and connected to by that descriptor's name in /proc. SO_PEERCRED
 * says nothing about datagram sockets, and the kernel's list of sockets shows those of
 * our own network namespace only; so the owner of the path's inode, which bind(2) made
 * for the user of the process, has to tell.
 */
#include "server/kineto_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD offsetof(struct sockaddr_un, sun_path)

socklen_t tp_kineto_peer_address(const struct tp_kineto_peer *peer,
                                 struct sockaddr_un *out)
{
    memset(out, 0, sizeof(*out));
    out->sun_family = AF_UNIX;
    memcpy(out->sun_path, peer->address, peer->address_bytes);
    return (socklen_t)(HEAD + peer->address_bytes);
}

size_t tp_kineto_peer_dir(const struct tp_kineto_peer *peer)
{
    const char *end = memchr(peer->address, '\0', peer->address_bytes);
    const char *slash =
        end == NULL ? NULL : memrchr(peer->address, '/', (size_t)(end - peer->address));

    return slash == NULL || slash + 1 == end ? 0 : (size_t)(slash - peer->address);
}

bool tp_kineto_peer_is_dir(const char *dir, const char *p, size_t n)
{
    size_t i = 0;

    while (n > 1 && p[n - 1] == '/')
        n--;
    for (; *dir != '\0'; dir++) {
        if (i == n || p[i] != *dir)
            return false;
        i++;
        while (*dir == '/' && i < n && p[i] == '/')
            i++;
    }
    return n > 0 && i == n;
}

static bool is_abstract(const struct tp_kineto_peer *peer)
{
    return peer->address_bytes > 0 && peer->address[0] == '\0';
}

static void write_path(const struct tp_kineto_peer *peer, char *out)
{
    snprintf(out, TP_KINETO_ADDRESS_BYTES + 1, "%.*s", (int)peer->address_bytes,
             peer->address);
}

static bool is_of(const struct stat *st, const struct tp_kineto_peer *peer)
{
    return S_ISSOCK(st->st_mode) && st->st_uid == peer->uid;
}

bool tp_kineto_peer_is_owner(const struct tp_kineto_peer *peer)
{
    char path[TP_KINETO_ADDRESS_BYTES + 1];
    struct stat st;

    if (is_abstract(peer))
        return true;
    write_path(peer, path);
    return lstat(path, &st) == 0 && is_of(&st, peer);
}

/* Whether fd is connected to one that is bound to that very address. */
static bool is_connected_to(int fd, const struct sockaddr_un *wanted, socklen_t len)
{
    struct sockaddr_un got = {0};
    socklen_t got_len = sizeof(got);

    return getpeername(fd, (struct sockaddr *)&got, &got_len) == 0 && got_len == len &&
           memcmp(&got, wanted, len) == 0;
}

/* Connect to what `at` was opened as. */
static int connect_opened(int fd, int at, const struct tp_kineto_peer *peer)
{
    struct sockaddr_un via = {.sun_family = AF_UNIX};
    struct stat st;

    if (fstat(at, &st) != 0)
        return -1;
    if (!is_of(&st, peer)) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    snprintf(via.sun_path, sizeof(via.sun_path), "/proc/self/fd/%d", at);
    return connect(fd, (const struct sockaddr *)&via, sizeof(via));
}

/* Without a descriptor to look with: then the path is looked at twice. */
static int connect_path(int fd, const struct tp_kineto_peer *peer,
                        const struct sockaddr_un *theirs, socklen_t len)
{
    if (tp_kineto_peer_is_owner(peer))
        return connect(fd, (const struct sockaddr *)theirs, len);
    errno = EADDRNOTAVAIL;
    return -1;
}

static int connect_owned(int fd, const struct tp_kineto_peer *peer,
                         const struct sockaddr_un *theirs, socklen_t len)
{
    char path[TP_KINETO_ADDRESS_BYTES + 1];
    int at, rc, saved;

    if (is_abstract(peer))
        return connect(fd, (const struct sockaddr *)theirs, len);
    write_path(peer, path);
    at = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (at < 0)
        return errno == EMFILE || errno == ENFILE ? connect_path(fd, peer, theirs, len)
                                                  : -1;
    rc = connect_opened(fd, at, peer);
    saved = errno;
    close(at);
    errno = saved;
    return rc;
}

int tp_kineto_peer_connect(int fd, const struct tp_kineto_peer *peer)
{
    struct sockaddr_un theirs;
    socklen_t len = tp_kineto_peer_address(peer, &theirs);

    if (connect_owned(fd, peer, &theirs, len) != 0)
        return -1;
    if (is_connected_to(fd, &theirs, len))
        return 0;
    errno = EADDRNOTAVAIL;
    return -1;
}
