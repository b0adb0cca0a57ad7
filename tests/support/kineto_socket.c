/*
 * kineto_socket.c - as dynolog's Endpoint.h and FabricManager.h behave in libkineto.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/kineto_parts.h"

#define RETRIES 10
#define TRY_US 10000

static socklen_t address(const struct kineto_client *c, const char *name,
                         struct sockaddr_un *out)
{
    memset(out, 0, sizeof(*out));
    out->sun_family = AF_UNIX;
    if (c->o.socket_dir != NULL)
        snprintf(out->sun_path, sizeof(out->sun_path), "%s/%s", c->o.socket_dir, name);
    else
        snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) +
                       (c->o.socket_dir != NULL ? strlen(c->o.socket_dir) + 2 : 2));
}

bool kineto_socket_open(struct kineto_client *c)
{
    struct sockaddr_un a;
    uint32_t r[4] = {0};
    char name[64];
    socklen_t len;

    if (getrandom(r, sizeof(r), 0) != sizeof(r))
        return false;
    snprintf(name, sizeof(name), "dynoconfigclient%08x-%04x-4%03x-a%03x-%08x%04x", r[0],
             r[1] >> 16, r[1] & 0xfff, r[2] >> 20, r[3], r[2] & 0xffff);
    len = address(c, name, &a);
    c->fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (c->o.socket_dir != NULL)
        unlink(a.sun_path);
    if (c->fd < 0 || bind(c->fd, (const struct sockaddr *)&a, len) != 0) {
        perror("kineto_client: bind");
        return false;
    }
    if (c->o.socket_dir != NULL)
        chmod(a.sun_path, 0666);
    return true;
}

bool kineto_send(struct kineto_client *c, const void *p, size_t n)
{
    struct sockaddr_un a;
    socklen_t len = address(c, c->o.name, &a);
    unsigned sleep_us = TRY_US;
    int i = 0;

    while (sendto(c->fd, p, n, MSG_DONTWAIT, (const struct sockaddr *)&a, len) < 0) {
        if (errno != EAGAIN && errno != ECONNREFUSED)
            return false;
        if (i == RETRIES)
            break;
        i++;
        usleep(sleep_us);
        sleep_us *= 2;
    }
    /* A success at the last try counts as a failure: nobody reads the answer. */
    if (i > 0)
        kineto_say(c, "send-retries", i < RETRIES ? "" : ",\"failed\":true");
    return i < RETRIES;
}

/* Where libkineto ends the process. */
static void check_sender(const struct kineto_client *c, const struct sockaddr_un *from,
                         socklen_t len)
{
    size_t dir = c->o.socket_dir == NULL ? 0 : strlen(c->o.socket_dir);
    bool is_good;

    if (dir > 0)
        is_good = strncmp(c->o.socket_dir, from->sun_path, dir) == 0 &&
                  from->sun_path[dir] == '/';
    else /* the name is read as a string, so it must end in a NUL */
        is_good = len > offsetof(struct sockaddr_un, sun_path) + 1 &&
                  from->sun_path[0] == '\0' && ((const char *)from)[len - 1] == '\0';
    if (is_good)
        return;
    fprintf(stderr, "kineto_client: the answer came from the wrong kind of socket\n");
    abort();
}

/* One look at the socket. Returns the payload's bytes, -1 = nothing. */
static int try_receive(struct kineto_client *c, char *text, size_t size)
{
    struct {
        uint64_t size;
        char type[32];
    } header = {0};
    struct sockaddr_un from = {0};
    struct iovec iov[2] = {{&header, sizeof(header)}, {text, 0}};
    struct msghdr msg = {.msg_name = &from,
                         .msg_namelen = sizeof(from),
                         .msg_iov = iov,
                         .msg_iovlen = 1};
    ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_PEEK);

    if (n < 0 && errno != EAGAIN)
        abort();
    if (n <= 0)
        return -1;
    if (n < (ssize_t)sizeof(header) || header.size >= size) {
        fprintf(stderr, "kineto_client: an answer of %zd bytes announces %llu\n", n,
                (unsigned long long)header.size);
        abort();
    }
    check_sender(c, &from, msg.msg_namelen);
    iov[1].iov_len = size;
    msg.msg_iovlen = 2;
    msg.msg_namelen = sizeof(from);
    n = recvmsg(c->fd, &msg, MSG_DONTWAIT);
    if (n != (ssize_t)(sizeof(header) + header.size)) {
        fprintf(stderr, "kineto_client: an answer of %zd bytes announces %llu\n", n,
                (unsigned long long)header.size);
        abort();
    }
    text[header.size] = '\0';
    return (int)header.size;
}

bool kineto_has_answer(const struct kineto_client *c)
{
    char byte;

    return recv(c->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0;
}

int kineto_receive(struct kineto_client *c, char *text, size_t size)
{
    int tries = c->o.is_old ? 5 : 9;

    for (int i = 0; i < tries; i++) {
        int n = try_receive(c, text, size);

        if (n >= 0)
            return n;
        usleep(TRY_US);
    }
    return -1;
}
