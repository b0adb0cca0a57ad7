/*
 * rest_types.h - handlers of activity types and jobs.
 *
 * Each reads the call, asks the engine and makes the answer. One thread at a time.
 */
#ifndef TP_API_REST_TYPES_H
#define TP_API_REST_TYPES_H

struct tp_call;

/* POST /types: one type, or several of one job, all or none. */
void tp_rest_register_types(struct tp_call *call);

/* GET /types: those of one job, in order of id. */
void tp_rest_list_types(struct tp_call *call);

/* GET /types/{type}: by id or name. */
void tp_rest_get_type(struct tp_call *call);

/* GET /jobs: in order of name. */
void tp_rest_list_jobs(struct tp_call *call);

#endif
