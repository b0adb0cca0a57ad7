/*
 * kineto_replies.c - a map from addresses to sockets, and a queue of those whose look
 * is still to come.
 *
 * All wait equally long, so the queue is in the order of time when one that has asked
 * goes to its end; it is a ring through the sockets themselves, so nothing is allocated
 * and a socket that is closed is in it no more. The time is rounded up to a step: the
 * thread wakes up once for all of a step, however many ask.
 *
 * When all sockets are taken, a user who has fewer than another by two or more takes
 * the one of the other's that was not used for longest. So one user may have all as
 * long as nobody else wants any, and no two users take one from each other in turns.
 * Who has none of his own is answered as a stranger.
 */
#include "server/kineto_replies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/strmap.h"
#include "kineto/table.h"
#include "server/kineto_socket.h"

#define KEY_BYTES (8 + TP_KINETO_ADDRESS_BYTES)
#define SILENCE_NS (TP_KINETO_SILENCE_S * TP_KINETO_SECOND_NS)

struct place { /* in the ring of looks; out of it both point to the place itself */
    struct place *before, *after;
};

struct reply_socket {
    struct place place; /* first, so that a place is a socket */
    int fd;
    uint64_t target;
    uint64_t used_ns;
    uint64_t look_ns;
    bool is_read; /* a look since the last request found nothing unread */
};

struct tp_kineto_replies {
    struct tp_kineto_socket *sockets;
    size_t most;
    struct tp_strmap map;    /* listener, user, address -> struct reply_socket */
    struct tp_strmap by_uid; /* user -> how many of these */
    struct place looks;      /* between the last and the first */
};

static void leave_ring(struct place *p)
{
    p->before->after = p->after;
    p->after->before = p->before;
    p->before = p->after = p;
}

/* Its look is the last of all. */
static void look_later(struct tp_kineto_replies *r, struct reply_socket *s,
                       uint64_t now_ns)
{
    uint64_t at_ns = now_ns + TP_KINETO_LOOK_NS + TP_KINETO_LOOK_STEP_NS - 1;

    leave_ring(&s->place);
    s->is_read = false;
    s->look_ns = at_ns - at_ns % TP_KINETO_LOOK_STEP_NS;
    s->place.before = r->looks.before;
    s->place.after = &r->looks;
    r->looks.before->after = &s->place;
    r->looks.before = &s->place;
}

int tp_kineto_replies_new(struct tp_kineto_socket *sockets, size_t most,
                          struct tp_kineto_replies **out, struct tp_err *err)
{
    struct tp_kineto_replies *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to answer Kineto processes");
    r->sockets = sockets;
    r->most = most;
    r->looks.before = r->looks.after = &r->looks;
    *out = r;
    return TP_OK;
}

static size_t make_key(const struct tp_kineto_peer *peer, char *key)
{
    memcpy(key, &peer->listener, sizeof(peer->listener));
    memcpy(key + 4, &peer->uid, sizeof(peer->uid));
    memcpy(key + 8, peer->address, peer->address_bytes);
    return 8 + (size_t)peer->address_bytes;
}

static uint64_t count_of(const struct tp_kineto_replies *r, uint32_t uid)
{
    uint64_t n = 0;

    tp_strmap_get_u64(&r->by_uid, (const char *)&uid, sizeof(uid), &n);
    return n;
}

/* One less of that user. */
static void count_down(struct tp_kineto_replies *r, uint32_t uid)
{
    uint64_t n = count_of(r, uid);
    const char *bytes = (const char *)&uid;

    if (n <= 1)
        tp_strmap_remove_u64(&r->by_uid, bytes, sizeof(uid));
    else /* it is there, so no memory is needed */
        tp_strmap_put_u64(&r->by_uid, bytes, sizeof(uid), n - 1, NULL);
}

static uint32_t uid_of(const char *key)
{
    uint32_t uid;

    memcpy(&uid, key + 4, sizeof(uid));
    return uid;
}

static void drop(struct tp_kineto_replies *r, const char *key, size_t n)
{
    struct reply_socket *s;
    uint32_t number, uid = uid_of(key);

    memcpy(&number, key, sizeof(number));
    s = tp_strmap_remove(&r->map, key, n); /* the key may go with it */
    count_down(r, uid);
    leave_ring(&s->place);
    tp_kineto_reply_close(&r->sockets[number], s->fd);
    free(s);
}

void tp_kineto_replies_free(struct tp_kineto_replies *r)
{
    struct tp_str key;
    size_t cursor = 0;

    if (r == NULL)
        return;
    while (tp_strmap_next(&r->map, &cursor, &key, NULL))
        drop(r, key.ptr, key.len);
    tp_strmap_fini(&r->map);
    tp_strmap_fini(&r->by_uid);
    free(r);
}

bool tp_kineto_replies_has(const struct tp_kineto_replies *r,
                           const struct tp_kineto_peer *peer)
{
    char key[KEY_BYTES];

    return tp_strmap_get(&r->map, key, make_key(peer, key)) != NULL;
}

static struct reply_socket *find(const struct tp_kineto_replies *r,
                                 const struct tp_kineto_peer *peer, uint64_t now_ns)
{
    char key[KEY_BYTES];
    struct reply_socket *s = tp_strmap_get(&r->map, key, make_key(peer, key));

    if (s != NULL)
        s->used_ns = now_ns;
    return s;
}

uint64_t tp_kineto_replies_unread(struct tp_kineto_replies *r,
                                  const struct tp_kineto_peer *peer, uint64_t now_ns)
{
    const struct reply_socket *s = find(r, peer, now_ns);

    /* What has been read stays so, as nothing was sent since: the usual case, and the
     * kernel need not be asked while a process waits. */
    return s == NULL || s->is_read ? 0 : tp_kineto_unread_bytes(s->fd);
}

/* The user who has most. */
static uint32_t richest(const struct tp_kineto_replies *r, uint64_t *n)
{
    struct tp_str key;
    uint32_t uid = 0;
    size_t cursor = 0;
    uint64_t has;

    *n = 0;
    while (tp_strmap_next_u64(&r->by_uid, &cursor, &key, &has)) {
        if (has <= *n)
            continue;
        *n = has;
        memcpy(&uid, key.ptr, sizeof(uid));
    }
    return uid;
}

/* Close the one of a user that was not used for longest. */
static void drop_oldest(struct tp_kineto_replies *r, uint32_t uid)
{
    char oldest[KEY_BYTES];
    size_t oldest_bytes = 0, cursor = 0;
    uint64_t used_ns = UINT64_MAX;
    struct tp_str key;
    void *found;

    while (tp_strmap_next(&r->map, &cursor, &key, &found)) {
        const struct reply_socket *s = found;

        if (uid_of(key.ptr) != uid || s->used_ns >= used_ns)
            continue;
        used_ns = s->used_ns;
        oldest_bytes = key.len;
        memcpy(oldest, key.ptr, key.len);
    }
    if (oldest_bytes > 0)
        drop(r, oldest, oldest_bytes);
}

/* Whether there is room for one more of a user's, which another's may make. */
static bool make_room(struct tp_kineto_replies *r, uint32_t uid)
{
    uint64_t most;
    uint32_t other;

    if (tp_strmap_len(&r->map) < r->most)
        return true;
    other = richest(r, &most);
    if (most < count_of(r, uid) + 2)
        return false;
    drop_oldest(r, other);
    return true;
}

/* Keep fd as the socket of that process. Returns false when that cannot be. */
static bool keep(struct tp_kineto_replies *r, const struct tp_kineto_peer *peer, int fd,
                 uint64_t target, uint64_t now_ns)
{
    char key[KEY_BYTES];
    size_t n = make_key(peer, key);
    const char *uid = (const char *)&peer->uid;
    struct reply_socket *s;
    uint64_t mine;

    if (!make_room(r, peer->uid))
        return false;
    mine = count_of(r, peer->uid);
    s = calloc(1, sizeof(*s));
    if (s == NULL || tp_strmap_put(&r->map, key, n, s, NULL) != TP_OK) {
        free(s);
        return false;
    }
    if (tp_strmap_put_u64(&r->by_uid, uid, sizeof(peer->uid), mine + 1, NULL) !=
        TP_OK) {
        tp_strmap_remove(&r->map, key, n);
        free(s);
        return false;
    }
    *s = (struct reply_socket){
        .place = {&s->place, &s->place}, .fd = fd, .target = target, .used_ns = now_ns};
    look_later(r, s, now_ns);
    return true;
}

static enum tp_kineto_sent outcome(long sent, size_t wanted)
{
    if (sent == (long)wanted)
        return TP_KINETO_SENT;
    return errno == ECONNREFUSED || errno == ECONNRESET || errno == ENOENT
               ? TP_KINETO_SENT_GONE
               : TP_KINETO_SENT_NOT_NOW;
}

static enum tp_kineto_sent send_on(int fd, struct tp_str bytes)
{
    return outcome(send(fd, bytes.ptr, bytes.len, MSG_DONTWAIT | MSG_NOSIGNAL),
                   bytes.len);
}

/* Whether the process is there and only a socket for it could not be made. */
static bool can_be_spared(int why)
{
    return why != ECONNREFUSED && why != ENOENT && why != EADDRNOTAVAIL;
}

/* From a socket that is made for it, and kept if the process is known. A stranger has
 * one, too, for the moment: those who do not read would fill a shared one for all. */
static enum tp_kineto_sent send_anew(struct tp_kineto_replies *r,
                                     const struct tp_kineto_peer *peer,
                                     struct tp_str bytes, uint64_t target,
                                     uint64_t now_ns)
{
    struct tp_kineto_socket *listener = &r->sockets[peer->listener];
    int fd = tp_kineto_reply_open(listener, peer);
    enum tp_kineto_sent sent;

    if (fd < 0 && can_be_spared(errno))
        return outcome(tp_kineto_socket_send(listener, peer, bytes.ptr, bytes.len),
                       bytes.len);
    if (fd < 0)
        return outcome(-1, bytes.len);
    sent = send_on(fd, bytes);
    if (target == 0 || sent == TP_KINETO_SENT_GONE ||
        !keep(r, peer, fd, target, now_ns))
        tp_kineto_reply_close(listener, fd);
    return sent;
}

enum tp_kineto_sent tp_kineto_replies_send(struct tp_kineto_replies *r,
                                           const struct tp_kineto_peer *peer,
                                           struct tp_str bytes, uint64_t target,
                                           uint64_t now_ns)
{
    struct reply_socket *s = find(r, peer, now_ns);
    char key[KEY_BYTES];

    if (s != NULL) {
        enum tp_kineto_sent sent = send_on(s->fd, bytes);

        s->target = target;
        look_later(r, s, now_ns);
        if (sent != TP_KINETO_SENT_GONE)
            return sent;
        drop(r, key, make_key(peer, key)); /* another one may have the address now */
    }
    return send_anew(r, peer, bytes, target, now_ns);
}

void tp_kineto_replies_skip(struct tp_kineto_replies *r,
                            const struct tp_kineto_peer *peer, uint64_t target,
                            uint64_t now_ns)
{
    struct reply_socket *s = find(r, peer, now_ns);

    if (s == NULL)
        return;
    s->target = target;
    look_later(r, s, now_ns);
}

uint64_t tp_kineto_replies_look_ns(const struct tp_kineto_replies *r)
{
    const struct place *first = r->looks.after;

    return first == &r->looks ? UINT64_MAX
                              : ((const struct reply_socket *)first)->look_ns;
}

bool tp_kineto_replies_look(struct tp_kineto_replies *r, uint64_t now_ns,
                            struct tp_kineto_look *out)
{
    struct reply_socket *s = (struct reply_socket *)r->looks.after;

    if (now_ns < tp_kineto_replies_look_ns(r))
        return false;
    leave_ring(&s->place);
    *out = (struct tp_kineto_look){s->target, tp_kineto_unread_bytes(s->fd)};
    s->is_read = out->unread_bytes == 0;
    if (!s->is_read && now_ns < s->used_ns + SILENCE_NS)
        look_later(r, s, now_ns);
    return true;
}

void tp_kineto_replies_tidy(struct tp_kineto_replies *r, uint64_t now_ns)
{
    struct tp_str key;
    size_t cursor = 0;
    void *found;

    while (tp_strmap_next(&r->map, &cursor, &key, &found)) {
        if (now_ns - ((const struct reply_socket *)found)->used_ns >=
            TP_KINETO_REPLY_IDLE_NS)
            drop(r, key.ptr, key.len);
    }
}

size_t tp_kineto_replies_count(const struct tp_kineto_replies *r)
{
    return tp_strmap_len(&r->map);
}
