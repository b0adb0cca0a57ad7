/*
 * listener_kineto.h - the thread that Kineto processes talk to.
 *
 * It owns the sockets, drains them at once, and answers from what the engine has ready;
 * it never waits for anything but datagrams. What it says to the engine is worked on by
 * kineto_collector.h, which it pokes. Start and stop belong to one thread.
 */
#ifndef TP_SERVER_LISTENER_KINETO_H
#define TP_SERVER_LISTENER_KINETO_H

#include <stddef.h>
#include <stdint.h>

struct tp_engine;
struct tp_err;
struct tp_kineto_listener;
struct tp_kineto_socket;

#define TP_KINETO_SOCKETS_MAX 17

/* What the thread calls; NULL = nothing. Nothing of it may block. */
struct tp_kineto_calls {
    /* After datagrams, up to 0.1 s later when many come. */
    void (*on_news)(void *arg);
    /* A socket was bound (why is NULL), or cannot be had, for that reason: once each
     * time that it is tried. */
    void (*on_socket)(void *arg, uint32_t number, const char *why);
    void *arg;
};

/*
 * Start the thread.
 *
 * sockets  n of them, 1 to TP_KINETO_SOCKETS_MAX, number i at place i, bound or not;
 *          taken, also on failure. Each is looked after (tp_kineto_socket_mend()).
 * calls    copied.
 * out      end with tp_kineto_listener_stop().
 *
 * TP_ENOMEM, TP_EIO  the sockets are closed.
 */
int tp_kineto_listener_start(struct tp_engine *engine, struct tp_kineto_socket *sockets,
                             size_t n, const struct tp_kineto_calls *calls,
                             struct tp_kineto_listener **out, struct tp_err *err);

/* End the thread, close all sockets, release it. NULL is allowed. */
void tp_kineto_listener_stop(struct tp_kineto_listener *l);

#endif
