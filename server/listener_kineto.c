/*
 * listener_kineto.c - epoll, recvmmsg, answer, again.
 *
 * A queue of a datagram socket holds ten on a usual kernel; a process whose datagram
 * does not fit waits 10 ms, then 20, 40, ... So the sockets are drained before anything
 * else is done, and nothing here can wait: sends do not block, and the engine's side is
 * a look-up under a lock that is held for look-ups only.
 *
 * One process that floods finds its datagrams read and left without an answer, which
 * costs the fewest cycles; a round takes ROUND batches of one socket at most, so that
 * it cannot keep the other sockets waiting.
 */
#include "server/listener_kineto.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/strmap.h"
#include "engine/engine.h"
#include "kineto/datagram.h"
#include "server/clock.h"
#include "server/kineto_socket.h"

#define BATCH 32
#define ROUND 16
#define WAKE_ID UINT32_MAX
#define TIDY_NS UINT64_C(60000000000)
#define REPLIES_MAX TP_KINETO_TARGETS_MAX
#define PATH_OFFSET offsetof(struct sockaddr_un, sun_path)

/* The socket that answers one process. */
struct reply_socket {
    int fd;
    uint64_t used_ns;
};

/* Room for one batch. A byte more than any datagram, so that a longer one shows. */
struct batch {
    struct mmsghdr messages[BATCH];
    struct iovec iov[BATCH];
    struct sockaddr_un from[BATCH];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct ucred))]; /* no room for descriptors */
    } control[BATCH];
    char bytes[BATCH][TP_KINETO_DATAGRAM_MAX_BYTES + 1];
};

struct tp_kineto_listener {
    struct tp_engine *engine;
    void (*on_news)(void *arg);
    void *arg;
    struct tp_kineto_socket sockets[TP_KINETO_SOCKETS_MAX];
    size_t n_sockets;
    int epoll_fd, wake_fd;
    pthread_t thread;
    bool has_thread;
    _Atomic bool is_stopping;
    struct tp_strmap replies; /* listener and address -> struct reply_socket */
    uint64_t tidied_ns;
    struct batch batch;
};

static size_t make_key(const struct tp_kineto_peer *peer, char *key)
{
    memcpy(key, &peer->listener, sizeof(peer->listener));
    memcpy(key + 4, peer->address, peer->address_bytes);
    return 4 + (size_t)peer->address_bytes;
}

static void close_reply(struct tp_kineto_listener *l, const char *key, size_t n)
{
    struct reply_socket *r;
    uint32_t number;

    memcpy(&number, key, sizeof(number));
    r = tp_strmap_remove(&l->replies, key, n); /* the key may go with it */
    if (r == NULL)
        return;
    tp_kineto_reply_close(&l->sockets[number], r->fd);
    free(r);
}

/* The socket that answers this process; NULL when there can be none. */
static struct reply_socket *reply_of(struct tp_kineto_listener *l,
                                     const struct tp_kineto_peer *peer)
{
    char key[4 + TP_KINETO_ADDRESS_BYTES];
    size_t n = make_key(peer, key);
    struct reply_socket *r = tp_strmap_get(&l->replies, key, n);

    if (r != NULL || tp_strmap_len(&l->replies) >= REPLIES_MAX)
        return r;
    r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->fd = tp_kineto_reply_open(&l->sockets[peer->listener], peer);
    if (r->fd < 0 || tp_strmap_put(&l->replies, key, n, r, NULL) != TP_OK) {
        if (r->fd >= 0)
            tp_kineto_reply_close(&l->sockets[peer->listener], r->fd);
        free(r);
        return NULL;
    }
    return r;
}

/* Close the sockets of processes that ask no more, and remove their litter. */
static void tidy(struct tp_kineto_listener *l, uint64_t now_ns)
{
    struct tp_str key;
    size_t cursor = 0;
    void *found;

    if (now_ns - l->tidied_ns < TIDY_NS)
        return;
    l->tidied_ns = now_ns;
    while (tp_strmap_next(&l->replies, &cursor, &key, &found)) {
        if (now_ns - ((const struct reply_socket *)found)->used_ns >= TIDY_NS)
            close_reply(l, key.ptr, key.len);
    }
    for (size_t i = 0; i < l->n_sockets; i++)
        tp_kineto_socket_tidy(&l->sockets[i]);
}

static void send_reply(struct tp_kineto_listener *l, const struct tp_kineto_peer *peer,
                       const struct reply_socket *r,
                       const struct tp_kineto_reply *reply)
{
    char key[4 + TP_KINETO_ADDRESS_BYTES];
    long n;
    bool is_gone;

    if (reply->bytes.len == 0)
        return;
    if (r != NULL)
        n = send(r->fd, reply->bytes.ptr, reply->bytes.len,
                 MSG_DONTWAIT | MSG_NOSIGNAL);
    else
        n = tp_kineto_socket_send(&l->sockets[peer->listener], peer, reply->bytes.ptr,
                                  reply->bytes.len);
    if (n == (long)reply->bytes.len)
        return;
    is_gone = errno == ECONNREFUSED || errno == ECONNRESET || errno == ENOENT;
    tp_engine_kineto_unsent(l->engine, reply, is_gone);
    if (is_gone)
        close_reply(l, key, make_key(peer, key));
}

/* Who sent it: the address and the credentials that the kernel wrote. */
static bool read_peer(const struct msghdr *msg, uint32_t number,
                      struct tp_kineto_peer *out)
{
    const struct sockaddr_un *from = msg->msg_name;
    const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    struct ucred cred;

    if (msg->msg_namelen <= PATH_OFFSET || c == NULL || c->cmsg_level != SOL_SOCKET ||
        c->cmsg_type != SCM_CREDENTIALS || c->cmsg_len < CMSG_LEN(sizeof(cred)))
        return false;
    memcpy(&cred, CMSG_DATA(c), sizeof(cred));
    memset(out, 0, sizeof(*out));
    out->listener = number;
    out->address_bytes = (uint8_t)(msg->msg_namelen - PATH_OFFSET);
    memcpy(out->address, from->sun_path, out->address_bytes);
    out->pid = cred.pid;
    out->uid = cred.uid;
    out->gid = cred.gid;
    return true;
}

static void handle(struct tp_kineto_listener *l, const struct tp_kineto_socket *s,
                   const struct mmsghdr *m, struct tp_now now)
{
    struct tp_kineto_reply reply;
    struct reply_socket *r;
    struct tp_kineto_peer peer;
    size_t n = m->msg_len;

    if (!read_peer(&m->msg_hdr, s->number, &peer) || !tp_kineto_socket_fits(s, &peer))
        peer.address_bytes = 0; /* it is counted, and nobody is answered */
    r = peer.address_bytes == 0 || n < TP_KINETO_HEADER_BYTES /* not worth a socket */
            ? NULL
            : reply_of(l, &peer);
    if (r != NULL)
        r->used_ns = now.mono_ns;
    reply = tp_engine_kineto_receive(l->engine, &peer, m->msg_hdr.msg_iov->iov_base, n,
                                     r == NULL ? 0 : tp_kineto_unread_bytes(r->fd),
                                     now);
    send_reply(l, &peer, r, &reply);
}

static void prepare(struct batch *b)
{
    for (size_t i = 0; i < BATCH; i++) {
        b->iov[i] = (struct iovec){b->bytes[i], sizeof(b->bytes[i])};
        b->messages[i].msg_hdr = (struct msghdr){
            .msg_name = &b->from[i],
            .msg_namelen = sizeof(b->from[i]),
            .msg_iov = &b->iov[i],
            .msg_iovlen = 1,
            .msg_control = b->control[i].bytes,
            .msg_controllen = sizeof(b->control[i].bytes),
        };
    }
}

/* Read what is there. Returns whether there was anything. */
static bool drain(struct tp_kineto_listener *l, const struct tp_kineto_socket *s)
{
    bool has_any = false;

    for (int round = 0; round < ROUND; round++) {
        struct tp_now now;
        int n;

        prepare(&l->batch);
        n = recvmmsg(s->fd, l->batch.messages, BATCH, MSG_DONTWAIT, NULL);
        if (n <= 0)
            break;
        now = tp_clock_now();
        for (int i = 0; i < n; i++)
            handle(l, s, &l->batch.messages[i], now);
        has_any = true;
    }
    return has_any;
}

static void *run(void *arg)
{
    struct tp_kineto_listener *l = arg;
    struct epoll_event events[TP_KINETO_SOCKETS_MAX + 1];

    while (!l->is_stopping) {
        int n = epoll_wait(l->epoll_fd, events, TP_KINETO_SOCKETS_MAX + 1,
                           (int)(TIDY_NS / 1000000));
        bool has_any = false;

        for (int i = 0; i < n; i++) {
            if (events[i].data.u32 != WAKE_ID)
                has_any = drain(l, &l->sockets[events[i].data.u32]) || has_any;
        }
        tidy(l, tp_clock_now().mono_ns);
        if (has_any && l->on_news != NULL)
            l->on_news(l->arg);
    }
    return NULL;
}

static int watch(struct tp_kineto_listener *l, int fd, uint32_t id)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = id};

    return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

static int start(struct tp_kineto_listener *l, struct tp_err *err)
{
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->epoll_fd < 0 || l->wake_fd < 0 || watch(l, l->wake_fd, WAKE_ID) != 0)
        return tp_fail(err, TP_EIO, "cannot make an epoll set: %m");
    for (size_t i = 0; i < l->n_sockets; i++) {
        tp_kineto_socket_tidy(&l->sockets[i]);
        if (watch(l, l->sockets[i].fd, (uint32_t)i) != 0)
            return tp_fail(err, TP_EIO, "cannot watch a Kineto socket: %m");
    }
    l->tidied_ns = tp_clock_now().mono_ns;
    if (pthread_create(&l->thread, NULL, run, l) != 0)
        return tp_fail(err, TP_EIO, "cannot start the thread for Kineto processes");
    pthread_setname_np(l->thread, "kineto-listen");
    l->has_thread = true;
    return TP_OK;
}

int tp_kineto_listener_start(struct tp_engine *engine, struct tp_kineto_socket *sockets,
                             size_t n, void (*on_news)(void *arg), void *arg,
                             struct tp_kineto_listener **out, struct tp_err *err)
{
    struct tp_kineto_listener *l = calloc(1, sizeof(*l));
    int rc;

    if (l == NULL) {
        for (size_t i = 0; i < n; i++)
            tp_kineto_socket_close(&sockets[i]);
        return tp_fail(err, TP_ENOMEM, "no memory for the Kineto listener");
    }
    l->engine = engine;
    l->on_news = on_news;
    l->arg = arg;
    l->epoll_fd = l->wake_fd = -1;
    memcpy(l->sockets, sockets, n * sizeof(*sockets));
    l->n_sockets = n;
    rc = start(l, err);
    if (rc != TP_OK) {
        tp_kineto_listener_stop(l);
        return rc;
    }
    *out = l;
    return TP_OK;
}

static void close_all(struct tp_kineto_listener *l)
{
    struct tp_str key;
    size_t cursor = 0;

    while (tp_strmap_next(&l->replies, &cursor, &key, NULL))
        close_reply(l, key.ptr, key.len);
    tp_strmap_fini(&l->replies);
    for (size_t i = 0; i < l->n_sockets; i++)
        tp_kineto_socket_close(&l->sockets[i]);
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
}

void tp_kineto_listener_stop(struct tp_kineto_listener *l)
{
    const uint64_t one = 1;

    if (l == NULL)
        return;
    atomic_store(&l->is_stopping, true);
    if (l->has_thread) {
        while (write(l->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
            continue;
        pthread_join(l->thread, NULL);
    }
    close_all(l);
    free(l);
}
