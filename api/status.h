/*
 * status.h - the one table of faults: their URN, HTTP status and title.
 *
 * Codes of the engine become statuses here and nowhere else. Pure functions over a
 * const table; safe from any thread.
 */
#ifndef TP_API_STATUS_H
#define TP_API_STATUS_H

#include "base/err.h"

struct tp_problem; /* engine/problem.h */

/* What can be wrong with a request, as clients see it. The names are in status.c and
 * are part of the API: append only. */
enum tp_fault {
    TP_FAULT_NONE,
    TP_FAULT_INVALID_REQUEST,
    TP_FAULT_INVALID_JSON,
    TP_FAULT_INVALID_FIELD,
    TP_FAULT_UNKNOWN_FIELD,
    TP_FAULT_INVALID_PARAMETER,
    TP_FAULT_UNKNOWN_PARAMETER,
    TP_FAULT_UNKNOWN_TYPE,
    TP_FAULT_AMBIGUOUS_NAME,
    TP_FAULT_DAMAGED_BODY,
    TP_FAULT_NOT_FOUND,
    TP_FAULT_METHOD_NOT_ALLOWED,
    TP_FAULT_UNSUPPORTED_MEDIA_TYPE,
    TP_FAULT_UNSUPPORTED_ENCODING,
    TP_FAULT_NOT_ACCEPTABLE,
    TP_FAULT_BODY_TOO_LARGE,
    TP_FAULT_HEADERS_TOO_LARGE,
    TP_FAULT_RANGE_NOT_SATISFIABLE,
    TP_FAULT_EXPECTATION_FAILED,
    TP_FAULT_UNTRUSTED_HOST,
    TP_FAULT_UNTRUSTED_ORIGIN,
    TP_FAULT_ID_COLLISION,
    TP_FAULT_REGISTRY_FROZEN,
    TP_FAULT_ALREADY_EXISTS,
    TP_FAULT_TRACE_ACTIVE,
    TP_FAULT_ILLEGAL_STATE,
    TP_FAULT_NOT_ENOUGH_PRODUCERS,
    TP_FAULT_IDEMPOTENCY_MISMATCH,
    TP_FAULT_LIMIT_EXCEEDED,
    TP_FAULT_TOO_MANY_REQUESTS,
    TP_FAULT_DENIED,
    TP_FAULT_UNSUPPORTED,
    TP_FAULT_BUSY,
    TP_FAULT_NOT_READY,
    TP_FAULT_STORAGE_FULL,
    TP_FAULT_STORAGE_FAILED,
    TP_FAULT_OUT_OF_MEMORY,
    TP_FAULT_INTERNAL,
    TP_FAULTS
};

/* The HTTP status of a fault, 400 to 599; 500 for a value that is none. */
int tp_status_http(enum tp_fault fault);

/* The last part of its URN ("id-collision"); "internal" for a value that is none. */
const char *tp_status_name(enum tp_fault fault);

/* Its title: a short English sentence without a full stop. */
const char *tp_status_title(enum tp_fault fault);

/*
 * The fault that an engine's failure is.
 *
 * code     a negative enum tp_code; others give TP_FAULT_INTERNAL.
 * problem  may be NULL: then the code alone decides.
 */
enum tp_fault tp_status_fault(int code, const struct tp_problem *problem);

#endif
