/*
 * dynolog.h - the calls of dynolog's RPC, so that its clients keep working.
 *
 * JSON in, JSON out, no socket; the framing is the server's. `setKinetOnDemandRequest`
 * makes a trace of the PyTorch processes that it names, like POST /traces. Any thread.
 */
#ifndef TP_API_DYNOLOG_H
#define TP_API_DYNOLOG_H

#include <stdbool.h>

#include "api/status.h"
#include "base/str.h"
#include "engine/now.h"
#include "engine/traces.h"

struct tp_buf;
struct tp_err;
struct tp_service;

#define TP_DYNOLOG_MESSAGE_MAX_BYTES 65536 /* of a request */
#define TP_DYNOLOG_DEPTH_MAX 8             /* of its JSON */
#define TP_DYNOLOG_PIDS_MAX 4096

/* What a call came to, for the log. Plain data. */
struct tp_dynolog_outcome {
    const char
        *action; /* the function when it changes something; NULL: no audit line */
    char trace_id[TP_TRACE_ID_BYTES]; /* of the trace that it made; "" = none */
    enum tp_fault fault;
};

/*
 * Answer one message.
 *
 * out  gets the answer; nothing when there is none to give, as for what is no JSON or
 *      calls a function that there is not: then the connection is to be closed.
 *
 * TP_ENOMEM, TP_EQUOTA  there is no answer; a trace may have been made.
 */
int tp_dynolog_answer(struct tp_service *service, struct tp_now now,
                      struct tp_str message, struct tp_buf *out,
                      struct tp_dynolog_outcome *outcome, struct tp_err *err);

#endif
