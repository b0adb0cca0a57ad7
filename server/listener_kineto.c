/*
 * listener_kineto.c - epoll, recvmmsg, answer, again.
 *
 * A queue of a datagram socket holds ten on a usual kernel; a process whose datagram
 * does not fit waits 10 ms, then 20, 40, ... So the sockets are drained before anything
 * else is done, and nothing here can wait: sends do not block, and the engine's side is
 * a look-up under a lock that is held for look-ups only.
 *
 * Ten datagrams of one process come in less time than it takes to wake a thread up. So
 * when many come at once, of a flood or of a thousand processes, the thread does not go
 * to sleep before HOT_NS have passed without any: what is thrown away by the gate costs
 * less than it costs to send, and the queue stays open to others. A round takes ROUND
 * batches of one socket at most, so that it cannot keep the other sockets waiting.
 *
 * Whoever is told of news goes to work on them, on the same processors and with the
 * same lock as the answers. So news wait until it is quiet, though not for long: a
 * thousand that did not fit into the queue come again 10 ms later.
 *
 * A process that did not get its answer in time reads it at its next request, and then
 * each one a request late, for ever. On another processor it has read the old answer by
 * the time that its request is looked at here, so nothing is seen then. It is seen a
 * while after each request, when every window is over and the next one is far: what is
 * unread then is late. A look comes before the sockets are drained and counts after
 * that: one that had read the old answer by then had asked before, and its request is
 * there.
 */
#include "server/listener_kineto.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/engine.h"
#include "kineto/datagram.h"
#include "kineto/gate.h"
#include "server/clock.h"
#include "server/kineto_replies.h"
#include "server/kineto_socket.h"

#define BATCH 32
#define ROUND 16
#define HOT_BATCH 4             /* so many at once are many */
#define HOT_NS UINT64_C(200000) /* and then more are waited for so long */
#define WAKE_ID UINT32_MAX
#define QUIET_NS UINT64_C(15000000) /* after many, until news are told of */
#define NEWS_NS UINT64_C(100000000) /* and so long at most */
#define LOOKS 32                    /* between two looks at the sockets */
#define TIDY_NS UINT64_C(60000000000)
#define TIDY_STEP_NS UINT64_C(20000000)
#define TIDY_NAMES 64
#define MEND_NS UINT64_C(5000000000) /* as often as a process asks */
#define NICE (-10)
#define TURN_NS UINT64_C(100000) /* the shortest that there is */
#define PATH_OFFSET offsetof(struct sockaddr_un, sun_path)

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
    struct tp_kineto_calls calls;
    struct tp_kineto_socket sockets[TP_KINETO_SOCKETS_MAX];
    size_t n_sockets;
    int epoll_fd, wake_fd;
    pthread_t thread;
    bool has_thread;
    _Atomic bool is_stopping;
    struct tp_kineto_replies *replies;
    uint64_t hot_until_ns;
    uint64_t news_ns; /* of the first that nobody was told of; 0 = there are none */
    uint64_t tidy_ns; /* when to look for litter again */
    uint64_t mend_ns; /* when to look after the sockets again */
    struct tp_kineto_gate gate;
    struct batch batch;
};

/* Close the sockets of processes that ask no more, and remove their litter. */
static void tidy(struct tp_kineto_listener *l, uint64_t now_ns)
{
    bool has_more = false;

    if (now_ns < l->tidy_ns)
        return;
    tp_kineto_replies_tidy(l->replies, now_ns);
    for (size_t i = 0; i < l->n_sockets; i++)
        has_more = tp_kineto_socket_tidy(&l->sockets[i], TIDY_NAMES) || has_more;
    l->tidy_ns = now_ns + (has_more ? TIDY_STEP_NS : TIDY_NS);
}

static int watch(struct tp_kineto_listener *l, int fd, uint32_t id)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = id};

    return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

/* A socket whose path somebody has removed hears nobody. */
static void mend(struct tp_kineto_listener *l, uint64_t now_ns)
{
    if (now_ns < l->mend_ns)
        return;
    l->mend_ns = now_ns + MEND_NS;
    for (size_t i = 0; i < l->n_sockets; i++) {
        struct tp_kineto_socket *s = &l->sockets[i];
        struct tp_err err = {0};
        bool is_new;
        int rc = tp_kineto_socket_mend(s, &is_new, &err);

        if (is_new && watch(l, s->fd, (uint32_t)i) != 0) {
            rc = tp_fail(&err, TP_EIO, "cannot watch a Kineto socket: %m");
            tp_kineto_socket_close(s); /* and the next time again */
        }
        if (l->calls.on_socket != NULL && (is_new || rc != TP_OK))
            l->calls.on_socket(l->calls.arg, s->number,
                               rc == TP_OK ? NULL : err.message);
    }
}

/* Who sent it: the credentials that the kernel wrote, and the address if there is one.
 * Returns false when either is missing. */
static bool read_peer(const struct msghdr *msg, struct tp_kineto_peer *out)
{
    const struct sockaddr_un *from = msg->msg_name;
    const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    struct ucred cred;

    if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS ||
        c->cmsg_len < CMSG_LEN(sizeof(cred)))
        return false;
    memcpy(&cred, CMSG_DATA(c), sizeof(cred));
    out->pid = cred.pid;
    out->uid = cred.uid;
    out->gid = cred.gid;
    if (msg->msg_namelen <= PATH_OFFSET)
        return false;
    out->address_bytes = (uint8_t)(msg->msg_namelen - PATH_OFFSET);
    memcpy(out->address, from->sun_path, out->address_bytes);
    return true;
}

static void answer(struct tp_kineto_listener *l, const struct tp_kineto_peer *peer,
                   const struct mmsghdr *m, struct tp_now now)
{
    uint64_t unread = peer->address_bytes == 0
                          ? 0
                          : tp_kineto_replies_unread(l->replies, peer, now.mono_ns);
    struct tp_kineto_reply reply =
        tp_engine_kineto_receive(l->engine, peer, m->msg_hdr.msg_iov->iov_base,
                                 m->msg_len, unread, now);
    enum tp_kineto_sent sent;

    if (reply.bytes.len == 0) {
        if (reply.target != 0)
            tp_kineto_replies_skip(l->replies, peer, reply.target, now.mono_ns);
        return;
    }
    sent = tp_kineto_replies_send(l->replies, peer, reply.bytes, reply.target,
                                  now.mono_ns);
    if (sent != TP_KINETO_SENT)
        tp_engine_kineto_unsent(l->engine, &reply, sent == TP_KINETO_SENT_GONE);
}

/* Whether what it asked from is its own: looked at until there is a socket that answers
 * it, so not each time. */
static bool is_its_own(struct tp_kineto_listener *l, const struct tp_kineto_socket *s,
                       const struct tp_kineto_peer *peer)
{
    return tp_kineto_socket_fits(s, peer) &&
           (tp_kineto_replies_has(l->replies, peer) || tp_kineto_socket_is_of(s, peer));
}

/* Returns whether it was looked at, which one of a flood is not. */
static bool handle(struct tp_kineto_listener *l, const struct tp_kineto_socket *s,
                   const struct mmsghdr *m, struct tp_now now)
{
    struct tp_kineto_peer peer = {.listener = s->number};
    bool is_known = read_peer(&m->msg_hdr, &peer);

    if (!tp_kineto_gate_admits(&l->gate, &peer, now.mono_ns))
        return false;
    if (!is_known || !is_its_own(l, s, &peer))
        peer.address_bytes = 0; /* it is counted, and nobody is answered */
    answer(l, &peer, m, now);
    return true;
}

/* Make the first n ready to be read into. */
static void prepare(struct batch *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
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

/* One batch. Returns how many came, and adds those that were looked at. */
static int read_batch(struct tp_kineto_listener *l, const struct tp_kineto_socket *s,
                      size_t *n_handled)
{
    int n = recvmmsg(s->fd, l->batch.messages, BATCH, MSG_DONTWAIT, NULL);
    size_t n_flood = 0;
    struct tp_now now;

    if (n <= 0)
        return 0;
    now = tp_clock_now();
    if (n >= HOT_BATCH || now.mono_ns < l->hot_until_ns)
        l->hot_until_ns = now.mono_ns + HOT_NS;
    for (int i = 0; i < n; i++)
        n_flood += !handle(l, s, &l->batch.messages[i], now);
    prepare(&l->batch, (size_t)n);
    if (n_flood > 0)
        tp_engine_kineto_flooded(l->engine, n_flood);
    *n_handled += (size_t)n - n_flood;
    return n;
}

/* Read what is there. Returns how many were looked at. */
static size_t drain(struct tp_kineto_listener *l, const struct tp_kineto_socket *s)
{
    size_t n_handled = 0;

    for (int round = 0; round < ROUND && read_batch(l, s, &n_handled) > 0; round++)
        continue;
    return n_handled;
}

/* What was seen at a moment. */
struct looks {
    struct tp_kineto_look seen[LOOKS];
    size_t n;
    struct tp_now at;
};

static void look(struct tp_kineto_listener *l, struct tp_now now, struct looks *out)
{
    out->n = 0;
    out->at = now;
    while (out->n < LOOKS &&
           tp_kineto_replies_look(l->replies, out->at.mono_ns, &out->seen[out->n]))
        out->n++;
}

/* Returns how many have news. */
static size_t tell_looks(struct tp_kineto_listener *l, const struct looks *looks)
{
    size_t n_news = 0;

    for (size_t i = 0; i < looks->n; i++)
        n_news += tp_engine_kineto_unread(l->engine, looks->seen[i].target,
                                          looks->seen[i].unread_bytes, looks->at);
    return n_news;
}

/* Look, then drain the sockets that have something, or after a look all. Returns how
 * many processes may have news. */
static size_t look_and_drain(struct tp_kineto_listener *l,
                             const struct epoll_event *events, int n, struct tp_now now)
{
    struct looks looks;
    size_t n_news = 0;

    look(l, now, &looks);
    for (int i = 0; i < n && looks.n == 0; i++) {
        if (events[i].data.u32 != WAKE_ID)
            n_news += drain(l, &l->sockets[events[i].data.u32]);
    }
    for (size_t i = 0; i < l->n_sockets && looks.n > 0; i++)
        n_news += drain(l, &l->sockets[i]);
    return n_news + tell_looks(l, &looks);
}

/* When news are to be told of: at once, but after many have come when it is quiet. */
static uint64_t news_due(const struct tp_kineto_listener *l)
{
    uint64_t quiet_ns = l->hot_until_ns + QUIET_NS, most_ns = l->news_ns + NEWS_NS;

    if (l->news_ns == 0)
        return UINT64_MAX;
    return l->is_stopping ? 0 : quiet_ns < most_ns ? quiet_ns : most_ns;
}

/* n more may have news. */
static void tell_news(struct tp_kineto_listener *l, size_t n, uint64_t now_ns)
{
    if (n > 0 && l->news_ns == 0)
        l->news_ns = now_ns;
    if (now_ns < news_due(l))
        return;
    l->news_ns = 0;
    if (l->calls.on_news != NULL)
        l->calls.on_news(l->calls.arg);
}

/* Milliseconds to wait for datagrams. */
static int patience(const struct tp_kineto_listener *l, uint64_t now_ns)
{
    uint64_t until_ns = news_due(l) < l->tidy_ns ? news_due(l) : l->tidy_ns;
    uint64_t look_ns = tp_kineto_replies_look_ns(l->replies);

    until_ns = look_ns < until_ns ? look_ns : until_ns;
    until_ns = l->mend_ns < until_ns ? l->mend_ns : until_ns;
    if (now_ns < l->hot_until_ns || now_ns >= until_ns)
        return 0;
    return (int)((until_ns - now_ns) / 1000000) + 1;
}

/* What sched_setattr() takes first; <linux/sched/types.h> is at odds with <sched.h>. */
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

/*
 * The kernel wakes a reader on the processor of the sender, behind it; a reader that is
 * more important runs at once. Whoever may not have that asks for short turns, which
 * anybody may: since Linux 6.12 one that wakes up for a short turn does not wait for
 * the end of another's long one. Where neither is to be had, answers come later when
 * processors are scarce.
 */
static void be_prompt(void)
{
    struct scheduling s = {.size = sizeof(s), .runtime_ns = TURN_NS};

    if (setpriority(PRIO_PROCESS, 0, NICE) != 0) /* of this thread only */
        s.nice = getpriority(PRIO_PROCESS, 0);
    else
        s.nice = NICE;
    if (syscall(SYS_sched_setattr, 0, &s, 0) != 0)
        return;
}

static void *run(void *arg)
{
    struct tp_kineto_listener *l = arg;
    struct epoll_event events[TP_KINETO_SOCKETS_MAX + 1];
    struct tp_now now = tp_clock_now();

    be_prompt();
    prepare(&l->batch, BATCH);
    while (!l->is_stopping) {
        int wait_ms = patience(l, now.mono_ns);
        int n = epoll_wait(l->epoll_fd, events, TP_KINETO_SOCKETS_MAX + 1, wait_ms);
        size_t n_news;

        if (wait_ms > 0)
            now = tp_clock_now();
        n_news = look_and_drain(l, events, n, now);
        now = tp_clock_now();
        tidy(l, now.mono_ns);
        mend(l, now.mono_ns);
        tell_news(l, n_news, now.mono_ns);
    }
    tell_news(l, 0, now.mono_ns); /* nobody is left to wait for */
    return NULL;
}

/* A quarter of the descriptors that this process may have: HTTP needs some, too. */
static size_t most_replies(void)
{
    struct rlimit limit;
    size_t most = TP_KINETO_TARGETS_MAX;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < most)
        most = (size_t)limit.rlim_cur / 4;
    return most;
}

static int start(struct tp_kineto_listener *l, struct tp_err *err)
{
    int rc = tp_kineto_replies_new(l->sockets, most_replies(), &l->replies, err);

    if (rc != TP_OK)
        return rc;
    if (getrandom(&l->gate.seed, sizeof(l->gate.seed), 0) != sizeof(l->gate.seed))
        return tp_fail(err, TP_EIO, "no random bytes: %m");
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->epoll_fd < 0 || l->wake_fd < 0 || watch(l, l->wake_fd, WAKE_ID) != 0)
        return tp_fail(err, TP_EIO, "cannot make an epoll set: %m");
    for (size_t i = 0; i < l->n_sockets; i++) {
        if (l->sockets[i].fd >= 0 && watch(l, l->sockets[i].fd, (uint32_t)i) != 0)
            return tp_fail(err, TP_EIO, "cannot watch a Kineto socket: %m");
    }
    if (pthread_create(&l->thread, NULL, run, l) != 0)
        return tp_fail(err, TP_EIO, "cannot start the thread for Kineto processes");
    pthread_setname_np(l->thread, "kineto-listen");
    l->has_thread = true;
    return TP_OK;
}

int tp_kineto_listener_start(struct tp_engine *engine, struct tp_kineto_socket *sockets,
                             size_t n, const struct tp_kineto_calls *calls,
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
    l->calls = *calls;
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
    tp_kineto_replies_free(l->replies);
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
