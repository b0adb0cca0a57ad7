/*
 * rest_producers.h - handlers of producers, and the long poll that they repeat.
 *
 * Each reads the call, asks the engine and makes the answer. One thread at a time.
 */
#ifndef TP_API_REST_PRODUCERS_H
#define TP_API_REST_PRODUCERS_H

struct tp_call;

/* POST /producers. */
void tp_rest_register_producer(struct tp_call *call);

/* GET /producers: in order of id. */
void tp_rest_list_producers(struct tp_call *call);

/* GET /producers/{id}. */
void tp_rest_get_producer(struct tp_call *call);

/* DELETE /producers/{id}. */
void tp_rest_delete_producer(struct tp_call *call);

/* POST /producers/{id}/sync: waits up to `wait_ms` unless there is a command. */
void tp_rest_sync_producer(struct tp_call *call);

#endif
