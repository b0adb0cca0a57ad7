/*
 * loopback.h - HTTP/1.1 as the load generators speak it: blocking, over one connection,
 * to a service on this machine.
 *
 * Only for programs of bench/, whose load must cost next to nothing beside the work of
 * the service; all else uses libcurl. Any thread; a connection belongs to one.
 */
#ifndef TP_BENCH_LOOPBACK_H
#define TP_BENCH_LOOPBACK_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection to a port of this machine, or -1. */
static inline int loopback_connect(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    /* As the service does on loopback, so that no algorithm of the machine that paces
     * its sending is measured. */
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Send n bytes; false: the other end is gone. */
static inline bool loopback_send(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* Read one reply with a Content-Length into the cap bytes of buf, NUL-terminated;
 * false: it did not come, or has no room. */
static inline bool loopback_receive(int fd, char *buf, size_t cap)
{
    size_t n = 0;

    while (n < cap - 1) {
        ssize_t got = recv(fd, buf + n, cap - 1 - n, 0);
        char *body, *length;

        if (got <= 0)
            return false;
        n += (size_t)got;
        buf[n] = '\0';
        body = strstr(buf, "\r\n\r\n");
        length = strcasestr(buf, "\r\ncontent-length:");
        if (body != NULL && length != NULL &&
            n >= (size_t)(body + 4 - buf) + strtoul(length + 17, NULL, 10))
            return true;
    }
    return false;
}

/* The number that follows a key such as "\"accepted\"" in a reply; 0 = it is not
 * there. */
static inline uint64_t loopback_number(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at == NULL
               ? 0
               : strtoull(at + strlen(key) + strspn(at + strlen(key), ": "), NULL, 10);
}

#endif
