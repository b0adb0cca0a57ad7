/*
 * listen.c - parsing addresses and opening them.
 *
 * SO_REUSEPORT lets the threads of one process share a port, and would let a second
 * traceplaned share it as well: half of the connections would land in the other one. So
 * a socket without it is bound first; that fails when anybody listens there.
 */
#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"

#define DEFAULT_PORT 8750
#define BACKLOG 1024

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t length_of(const union address *a)
{
    return a->any.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

bool tp_listen_is_loopback(const struct sockaddr *addr)
{
    const union address *a = (const union address *)(const void *)addr;

    if (addr->sa_family == AF_INET)
        return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
    return addr->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

static void name_address(const union address *a, char *out, size_t n)
{
    char ip[INET6_ADDRSTRLEN] = "";

    if (a->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a->v4.sin_addr, ip, sizeof(ip));
        snprintf(out, n, "%s:%u", ip, ntohs(a->v4.sin_port));
    } else {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, ip, sizeof(ip));
        snprintf(out, n, "[%s]:%u", ip, ntohs(a->v6.sin6_port));
    }
}

/*
 * Within a machine nothing is congested, and an algorithm that paces what it sends by
 * timers, as bbr does, costs a sixth of the CPU of a download. Every kernel has reno,
 * and anybody may choose it; accepted sockets inherit it. Without it nothing is lost.
 */
static void send_unpaced(int fd)
{
    static const char algorithm[] = "reno";

    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm, sizeof(algorithm) - 1);
}

/* Bind one socket; returns -1 with errno. */
static int bind_tcp(const union address *a, bool shares_port)
{
    const int on = 1;
    int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (tp_listen_is_loopback(&a->any))
        send_unpaced(fd);
    if (a->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if ((shares_port &&
         setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0) ||
        bind(fd, &a->any, length_of(a)) != 0) {
        int saved = errno;

        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

static int fail_bind(const union address *a, struct tp_err *err)
{
    char text[TP_LISTEN_TEXT_BYTES];
    int e = errno;

    name_address(a, text, sizeof(text));
    errno = e;
    if (e == EADDRINUSE)
        return tp_fail(err, TP_EEXIST, "%s is in use by another program", text);
    return tp_fail(err, TP_EIO, "cannot listen on %s: %m", text);
}

/* Find out that the port is free, and which one it is when it was 0. */
static int probe(union address *a, struct tp_err *err)
{
    socklen_t n = length_of(a);
    int fd = bind_tcp(a, false);

    if (fd < 0 || getsockname(fd, &a->any, &n) != 0 || listen(fd, 1) != 0) {
        int rc = fail_bind(a, err);

        if (fd >= 0)
            close(fd);
        return rc;
    }
    close(fd);
    return TP_OK;
}

static void close_fds(struct tp_listener *l)
{
    for (size_t i = 0; i < l->n_fds; i++)
        if (l->fds[i] >= 0)
            close(l->fds[i]);
    free(l->fds);
    l->fds = NULL;
    l->n_fds = 0;
}

static int append_listener(struct tp_listeners *set, struct tp_listener *l,
                           struct tp_err *err)
{
    struct tp_listener *items = realloc(set->items, (set->n + 1) * sizeof(*items));

    if (items == NULL) {
        close_fds(l);
        return tp_fail(err, TP_ENOMEM, "no memory for %s", l->text);
    }
    set->items = items;
    set->items[set->n++] = *l;
    return TP_OK;
}

static int add_tcp(struct tp_listeners *set, union address *a, size_t n_fds,
                   struct tp_err *err)
{
    struct tp_listener l = {.is_unix = false};
    int rc = probe(a, err);

    if (rc != TP_OK)
        return rc;
    name_address(a, l.text, sizeof(l.text));
    l.fds = calloc(n_fds, sizeof(*l.fds));
    if (l.fds == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %s", l.text);
    for (; l.n_fds < n_fds; l.n_fds++) {
        int fd = bind_tcp(a, true);

        if (fd < 0 || listen(fd, BACKLOG) != 0) {
            rc = fail_bind(a, err);
            if (fd >= 0)
                close(fd);
            close_fds(&l);
            return rc;
        }
        l.fds[l.n_fds] = fd;
    }
    return append_listener(set, &l, err);
}

/*
 * Remove a socket file that no process has open any more. Only a connection that is
 * refused says so: a datagram socket, or one of another user, gives other errors.
 */
static int clear_stale(const struct sockaddr_un *sun, struct tp_err *err)
{
    struct stat st;
    bool is_stale;
    int fd;

    if (lstat(sun->sun_path, &st) != 0)
        return TP_OK;
    if (!S_ISSOCK(st.st_mode))
        return tp_fail(err, TP_EEXIST, "'%s' is there and is no socket", sun->sun_path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return tp_fail(err, TP_EIO, "cannot make a socket: %m");
    is_stale = connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) != 0 &&
               errno == ECONNREFUSED;
    close(fd);
    if (!is_stale)
        return tp_fail(err, TP_EEXIST, "'%s' is in use by another program",
                       sun->sun_path);
    unlink(sun->sun_path);
    return TP_OK;
}

/* Bind and listen; *out is the socket. */
static int open_unix(const struct sockaddr_un *sun, int *out, struct tp_err *err)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask;
    int rc;

    if (fd < 0)
        return tp_fail(err, TP_EIO, "cannot make a socket: %m");
    /* Whoever may connect may do everything: only the same user. */
    mask = umask(0177);
    rc = bind(fd, (const struct sockaddr *)sun, sizeof(*sun));
    umask(mask);
    if (rc != 0 || listen(fd, BACKLOG) != 0) {
        tp_fail(err, TP_EIO, "cannot listen on unix:%s: %m", sun->sun_path);
        close(fd);
        if (rc == 0)
            unlink(sun->sun_path);
        return TP_EIO;
    }
    *out = fd;
    return TP_OK;
}

static int add_unix(struct tp_listeners *set, const char *path, struct tp_err *err)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    struct tp_listener l = {.is_unix = true};
    int rc;

    if (*path == '\0' || strlen(path) >= sizeof(sun.sun_path))
        return tp_fail(err, TP_EINVAL,
                       "the path of a unix socket must have 1 to %zu bytes",
                       sizeof(sun.sun_path) - 1);
    snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
    snprintf(l.text, sizeof(l.text), "unix:%s", path);
    rc = clear_stale(&sun, err);
    if (rc != TP_OK)
        return rc;
    l.fds = calloc(1, sizeof(*l.fds));
    if (l.fds == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %s", l.text);
    rc = open_unix(&sun, l.fds, err);
    if (rc != TP_OK) {
        free(l.fds);
        return rc;
    }
    l.n_fds = 1;
    rc = append_listener(set, &l, err);
    if (rc != TP_OK)
        unlink(path);
    return rc;
}

static bool parse_port(const char *s, uint16_t *out)
{
    char *end;
    unsigned long v = strtoul(s, &end, 10);

    if (*s < '0' || *s > '9' || *end != '\0' || v > UINT16_MAX)
        return false;
    *out = (uint16_t)v;
    return true;
}

/* "HOST:PORT" or "[HOST]:PORT" into its parts. */
static bool split(const char *text, char *host, size_t n, uint16_t *port)
{
    const char *colon = strrchr(text, ':');
    size_t len;

    if (colon == NULL || !parse_port(colon + 1, port))
        return false;
    len = (size_t)(colon - text);
    if (len >= 2 && text[0] == '[' && colon[-1] == ']') {
        text++;
        len -= 2;
    } else if (memchr(text, ':', len) != NULL) {
        return false;
    }
    return len > 0 && snprintf(host, n, "%.*s", (int)len, text) < (int)n;
}

static int fail_text(const char *text, struct tp_err *err)
{
    return tp_fail(err, TP_EINVAL,
                   "'%.100s' is no address to listen on: use ADDR:PORT, [V6]:PORT, "
                   "localhost:PORT or unix:PATH",
                   text);
}

static int add_localhost(struct tp_listeners *set, uint16_t port, size_t n_fds,
                         struct tp_err *err)
{
    union address v4 = {.v4 = {.sin_family = AF_INET, .sin_port = htons(port)}};
    union address v6 = {.v6 = {.sin6_family = AF_INET6}};
    struct tp_err of_v6 = {0};
    int rc;

    v4.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    rc = add_tcp(set, &v4, n_fds, err);
    if (rc != TP_OK)
        return rc;
    /* The same port for both, also when it was picked; without IPv6 v4 is enough. */
    v6.v6.sin6_port = v4.v4.sin_port;
    v6.v6.sin6_addr = in6addr_loopback;
    rc = add_tcp(set, &v6, n_fds, &of_v6);
    if (rc == TP_OK || rc == TP_EIO || (rc == TP_EEXIST && port == 0))
        return TP_OK;
    close_fds(&set->items[--set->n]);
    return tp_fail(err, rc, "%s", of_v6.message);
}

int tp_listen_add(struct tp_listeners *set, const char *text, size_t n_fds,
                  struct tp_err *err)
{
    union address a = {.any = {.sa_family = AF_UNSPEC}};
    char host[64];
    uint16_t port;

    if (strncmp(text, "unix:", 5) == 0)
        return add_unix(set, text + 5, err);
    if (!split(text, host, sizeof(host), &port))
        return fail_text(text, err);
    if (strcmp(host, "localhost") == 0)
        return add_localhost(set, port, n_fds, err);
    if (inet_pton(AF_INET, host, &a.v4.sin_addr) == 1) {
        a.v4.sin_family = AF_INET;
        a.v4.sin_port = htons(port);
    } else if (inet_pton(AF_INET6, host, &a.v6.sin6_addr) == 1) {
        a.v6.sin6_family = AF_INET6;
        a.v6.sin6_port = htons(port);
    } else {
        return fail_text(text, err);
    }
    if (!tp_listen_is_loopback(&a.any))
        return tp_fail(err, TP_EDENIED,
                       "refusing to listen on %s: it is not a loopback address, and "
                       "anybody who can reach it could control traces",
                       text);
    return add_tcp(set, &a, n_fds, err);
}

int tp_listen_add_default(struct tp_listeners *set, size_t n_fds, struct tp_err *err)
{
    return add_localhost(set, DEFAULT_PORT, n_fds, err);
}

void tp_listen_close(struct tp_listeners *set)
{
    for (size_t i = 0; i < set->n; i++) {
        if (set->items[i].is_unix)
            unlink(set->items[i].text + 5);
        close_fds(&set->items[i]);
    }
    free(set->items);
    set->items = NULL;
    set->n = 0;
}
