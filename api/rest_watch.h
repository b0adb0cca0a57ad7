/*
 * rest_watch.h - GET /traces/{id}/watch as server-sent events.
 *
 *   event: state      the whole trace, at once and with each move of its life cycle
 *   event: progress   counts and bytes, at most twice a second while they change
 *   event: gone       the trace was deleted
 *   : keep-alive      a comment every 15 s
 *
 * The stream ends after a final state. One thread at a time.
 */
#ifndef TP_API_REST_WATCH_H
#define TP_API_REST_WATCH_H

struct tp_call;

/* The handler: answers with a stream. */
void tp_rest_watch_trace(struct tp_call *call);

#endif
