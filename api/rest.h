/*
 * rest.h - the routes of the REST API, and the steps of a call.
 *
 * call.h tells in which order these are called. They never fail towards the server:
 * what goes wrong becomes the answer.
 */
#ifndef TP_API_REST_H
#define TP_API_REST_H

#include <stdbool.h>
#include <stddef.h>

#include "api/call.h"

/* What a route does with the body of a request. */
enum tp_route_body {
    TP_BODY_NONE,    /* refuses one */
    TP_BODY_CONTROL, /* JSON, read as a whole */
    TP_BODY_EVENTS,  /* goes into a trace as it comes */
    TP_BODY_FILE     /* likewise, as a file of its own */
};

/* Plain data: one route. */
struct tp_route {
    enum tp_method method;
    const char *pattern;                  /* "/traces/{id}/stop": without "/v1" */
    const char *operation;                /* as operationId of openapi.yaml */
    void (*handle)(struct tp_call *call); /* the body, if any, is complete */
    const char *const *params; /* known parameters, ended by NULL; NULL = none */
    enum tp_route_body body;
    bool is_slow;    /* may take long: run it where it blocks nobody else */
    bool is_audited; /* changes what is recorded: one audit line */
};

/* All routes; *n gets their number. Static. The index of a route may key arrays. */
const struct tp_route *tp_rest_routes(size_t *n);

/*
 * Look at the request line and the headers. Afterwards call->is_refused tells whether
 * the answer is there already; the body may still have to be read off the wire.
 */
void tp_rest_begin(struct tp_call *call);

/*
 * Say of a call that was answered without tp_rest_begin() what it wanted: its route and
 * subject are set where the target has them, the answer stays. Does nothing to a call
 * that was begun. It is for the audit line of what the server itself refuses.
 */
void tp_rest_identify(struct tp_call *call);

/*
 * Take n bytes of the body.
 *
 * Returns false when so much came beyond a limit that the connection should be cut
 * instead of being read to the end.
 */
bool tp_rest_feed(struct tp_call *call, const char *p, size_t n);

/* The request is complete: run the handler, unless the call was refused. */
void tp_rest_finish(struct tp_call *call);

/* Give the answer of a call that waited. */
void tp_rest_resume(struct tp_call *call);

#endif
