/*
 * trace_request.h - the body of POST /traces as a request of the engine.
 *
 * Reads only; it asks nobody whether names exist. One thread at a time.
 */
#ifndef TP_API_TRACE_REQUEST_H
#define TP_API_TRACE_REQUEST_H

#include "api/json_in.h"
#include "engine/traces.h"

struct tp_limits;

/* Plain data; the zero value is ready. request borrows from the rest and from in. */
struct tp_trace_request_body {
    struct tp_trace_request request;
    uint32_t *ranks;      /* owned */
    struct tp_str *texts; /* owned: what the lists of the request point into */
    size_t n_texts, cap_texts;
    char *metadata, *kineto; /* owned: their JSON on one line */
};

/*
 * Read a body that tp_json_in_parse() has parsed; in->code tells whether it is right.
 *
 * body  release with tp_trace_request_fini() in either case; in and the text must
 * outlive it.
 */
void tp_trace_request_read(struct tp_json_in *in, const struct tp_limits *limits,
                           struct tp_trace_request_body *body);

/* Release what reading allocated. All-zero is allowed. */
void tp_trace_request_fini(struct tp_trace_request_body *body);

#endif
