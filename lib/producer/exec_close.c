/*
 * exec_close.c - finds a pair of sockets by what a wakeup does to it.
 *
 * libcurl before 8.9 makes the pair without SOCK_CLOEXEC and has no call that names it.
 * Comparing the open descriptors before and after would catch those that other threads
 * open in between, and changing these would break programs. So each unix socket that
 * stays open on exec is watched: a wakeup leaves one byte to read at one end and one
 * byte unread at the other, and a poll takes it away. Only the pair itself does so
 * twice in a row, in step with our calls. A host without the flag loses nothing but
 * two descriptors to each program that it starts.
 */
#include "producer/exec_close.h"

#include <curl/curl.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define WATCHED_MAX 256
#define ROUNDS 2

struct watched {
    int fds[WATCHED_MAX];
    size_t n;
};

/* What an end of the pair has to show. */
struct sight {
    int n_unread; /* bytes that can be read here */
    int n_sent;   /* bytes that the other end has not read; in the kernel's measure */
};

static struct sight look_at(int fd)
{
    struct sight s = {-1, -1};

    if (ioctl(fd, SIOCINQ, &s.n_unread) != 0 || ioctl(fd, SIOCOUTQ, &s.n_sent) != 0)
        return (struct sight){-1, -1};
    return s;
}

static bool is_quiet(int fd)
{
    const struct sight s = look_at(fd);

    return s.n_unread == 0 && s.n_sent == 0;
}

/* Either end after one wakeup. */
static bool is_woken(int fd)
{
    const struct sight s = look_at(fd);

    return (s.n_unread > 0 && s.n_sent == 0) || (s.n_unread == 0 && s.n_sent > 0);
}

static bool is_candidate(int fd)
{
    int domain = 0, flags = fcntl(fd, F_GETFD);
    socklen_t n = sizeof(domain);

    return flags >= 0 && (flags & FD_CLOEXEC) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX;
}

/* Returns whether all candidates have room in w. */
static bool list_candidates(struct watched *w)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;
    bool has_room = dir != NULL;

    while (has_room && (entry = readdir(dir)) != NULL) {
        const int fd = (int)strtol(entry->d_name, NULL, 10);

        if (entry->d_name[0] == '.' || !is_candidate(fd))
            continue;
        has_room = w->n < WATCHED_MAX;
        if (has_room)
            w->fds[w->n++] = fd;
    }
    if (dir != NULL)
        closedir(dir);
    return has_room;
}

static void keep(struct watched *w, bool (*is_so)(int fd))
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        if (is_so(w->fds[i]))
            w->fds[n++] = w->fds[i];
    w->n = n;
}

void tp_exec_close_wakeup(void *multi)
{
    struct watched w = {.n = 0};

    curl_multi_poll(multi, NULL, 0, 0, NULL);
    if (!list_candidates(&w))
        return;
    for (int i = 0; i < ROUNDS && w.n > 0; i++) {
        keep(&w, is_quiet);
        curl_multi_wakeup(multi);
        keep(&w, is_woken);
        curl_multi_poll(multi, NULL, 0, 0, NULL);
        keep(&w, is_quiet);
    }
    if (w.n != 2)
        return;
    for (size_t i = 0; i < w.n; i++)
        fcntl(w.fds[i], F_SETFD, FD_CLOEXEC);
}
