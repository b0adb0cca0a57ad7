/*
 * listen.h - addresses to listen on, and their sockets.
 *
 * Knows TCP and unix sockets, and that nothing but loopback is allowed as long as there
 * are no tokens. It accepts nothing itself. Not thread-safe.
 */
#ifndef TP_SERVER_LISTEN_H
#define TP_SERVER_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct tp_err;

#define TP_LISTEN_TEXT_BYTES 160

/* Plain data: one address that is being listened on. */
struct tp_listener {
    char text[TP_LISTEN_TEXT_BYTES]; /* "127.0.0.1:8750", "unix:/run/x"; real port */
    bool is_unix;
    int *fds;     /* listening sockets; owned */
    size_t n_fds; /* TCP: as many as asked for, on one port; unix: one */
};

/* Plain data: all of them. The zero value is empty. */
struct tp_listeners {
    struct tp_listener *items; /* owned */
    size_t n;
};

/*
 * Open one address of the configuration.
 *
 * text   "ADDR:PORT" (a loopback address, or "localhost" for both families),
 *        "[V6]:PORT" or "unix:PATH". Port 0 picks one.
 * n_fds  how many sockets a TCP address gets, 1 to 256; they share the port with
 *        SO_REUSEPORT, which spreads connections over the threads that own them.
 * set    what was opened is added.
 *
 * TP_EINVAL   not such a text. TP_EDENIED  the address is not loopback. TP_EEXIST
 * somebody else listens there. TP_EIO, TP_ENOMEM. What set held stays open.
 */
int tp_listen_add(struct tp_listeners *set, const char *text, size_t n_fds,
                  struct tp_err *err);

/*
 * Open the default: port 8750 of 127.0.0.1 and, where there is IPv6, of ::1.
 * Errors as tp_listen_add().
 */
int tp_listen_add_default(struct tp_listeners *set, size_t n_fds, struct tp_err *err);

/* Close what is still open, and remove unix sockets. */
void tp_listen_close(struct tp_listeners *set);

/* Whether an address is loopback; false for other families. */
bool tp_listen_is_loopback(const struct sockaddr *addr);

#endif
