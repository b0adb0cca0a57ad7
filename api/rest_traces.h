/*
 * rest_traces.h - handlers of traces: create, move, list, get, delete.
 *
 * Each reads the call, asks the engine and makes the answer. One thread at a time.
 */
#ifndef TP_API_REST_TRACES_H
#define TP_API_REST_TRACES_H

struct tp_call;

/* POST /traces. The header Idempotency-Key makes repeats harmless. */
void tp_rest_create_trace(struct tp_call *call);

/* GET /traces: newest first. */
void tp_rest_list_traces(struct tp_call *call);

/* GET /traces/{id}. */
void tp_rest_get_trace(struct tp_call *call);

/* DELETE /traces/{id}: of a trace that has ended. */
void tp_rest_delete_trace(struct tp_call *call);

/* POST /traces/{id}/start: of a prepared trace. */
void tp_rest_start_trace(struct tp_call *call);

/* POST /traces/{id}/stop. */
void tp_rest_stop_trace(struct tp_call *call);

/* POST /traces/{id}/cancel: its data is thrown away. */
void tp_rest_cancel_trace(struct tp_call *call);

#endif
