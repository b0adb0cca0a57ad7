/*
 * listener_dynolog.h - the port of dynolog's RPC, for scripts that use its clients.
 *
 * Off unless `dynolog-listen` says where; loopback only. One thread reads a message of
 * each connection, lets api/dynolog.h answer, and closes; a client that is slow, silent
 * or wrong costs a place for some seconds and nothing else. Start and stop belong to
 * one thread.
 */
#ifndef TP_SERVER_LISTENER_DYNOLOG_H
#define TP_SERVER_LISTENER_DYNOLOG_H

struct tp_app;
struct tp_dynolog;
struct tp_err;

#define TP_DYNOLOG_CONNECTIONS_MAX 64
#define TP_DYNOLOG_SECONDS 5 /* for a request to come, and for its answer to go */

/*
 * Listen where the settings say, and start the thread.
 *
 * app  its engine and log are used until tp_dynolog_stop().
 * out  NULL when the settings want none; else end it with tp_dynolog_stop().
 *
 * TP_EINVAL, TP_EDENIED (not loopback), TP_EEXIST (taken), TP_EIO, TP_ENOMEM  nothing
 * runs.
 */
int tp_dynolog_start(struct tp_app *app, struct tp_dynolog **out, struct tp_err *err);

/* End the thread, close everything, release it. NULL is allowed. */
void tp_dynolog_stop(struct tp_dynolog *d);

#endif
