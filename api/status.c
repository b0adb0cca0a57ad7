/*
 * status.c - the table.
 *
 * 409 is for requests that are right in themselves and clash with the state of
 * something; 429 for limits that others may free again; 413 for bodies; 507 for a disk
 * that is full. A collision is 409 although the engine says "exists".
 */
#include "api/status.h"

#include "engine/problem.h"

static const struct {
    const char *name;
    const char *title;
    int http;
} table[TP_FAULTS] = {
    [TP_FAULT_NONE] = {"internal", "Internal error", 500},
    [TP_FAULT_INVALID_REQUEST] = {"invalid-request", "The request is not valid", 400},
    [TP_FAULT_INVALID_JSON] = {"invalid-json", "The body is not valid JSON", 400},
    [TP_FAULT_INVALID_FIELD] = {"invalid-field", "A field is not valid", 400},
    [TP_FAULT_UNKNOWN_FIELD] = {"unknown-field", "There is no such field", 400},
    [TP_FAULT_INVALID_PARAMETER] = {"invalid-parameter", "A parameter is not valid",
                                    400},
    [TP_FAULT_UNKNOWN_PARAMETER] = {"unknown-parameter", "There is no such parameter",
                                    400},
    [TP_FAULT_UNKNOWN_TYPE] = {"unknown-type", "There is no such activity type", 400},
    [TP_FAULT_AMBIGUOUS_NAME] = {"ambiguous-name", "The name fits several types", 409},
    [TP_FAULT_DAMAGED_BODY] = {"damaged-body", "The events cannot be read", 400},
    [TP_FAULT_NOT_FOUND] = {"not-found", "There is no such thing here", 404},
    [TP_FAULT_METHOD_NOT_ALLOWED] = {"method-not-allowed", "The method does not apply",
                                     405},
    [TP_FAULT_UNSUPPORTED_MEDIA_TYPE] = {"unsupported-media-type",
                                         "The content type is not taken here", 415},
    [TP_FAULT_UNSUPPORTED_ENCODING] = {"unsupported-encoding",
                                       "The content encoding is not taken here", 415},
    [TP_FAULT_NOT_ACCEPTABLE] = {"not-acceptable", "No acceptable encoding is left",
                                 406},
    [TP_FAULT_BODY_TOO_LARGE] = {"body-too-large", "The body is too large", 413},
    [TP_FAULT_HEADERS_TOO_LARGE] = {"headers-too-large", "The headers are too large",
                                    431},
    [TP_FAULT_RANGE_NOT_SATISFIABLE] = {"range-not-satisfiable",
                                        "The range is outside of the data", 416},
    [TP_FAULT_EXPECTATION_FAILED] = {"expectation-failed",
                                     "That cannot be expected here", 417},
    [TP_FAULT_UNTRUSTED_HOST] = {"untrusted-host", "This service has another name",
                                 421},
    [TP_FAULT_UNTRUSTED_ORIGIN] = {"untrusted-origin",
                                   "Other web sites may not call this service", 403},
    [TP_FAULT_ID_COLLISION] = {"id-collision", "Another type has that id", 409},
    [TP_FAULT_REGISTRY_FROZEN] = {"registry-frozen",
                                  "No new types while a trace is prepared or recorded",
                                  409},
    [TP_FAULT_ALREADY_EXISTS] = {"already-exists", "It is there already", 409},
    [TP_FAULT_TRACE_ACTIVE] = {"trace-active", "The job has an active trace", 409},
    [TP_FAULT_ILLEGAL_STATE] = {"illegal-state", "Not in the present state", 409},
    [TP_FAULT_NOT_ENOUGH_PRODUCERS] = {"not-enough-producers",
                                       "Fewer producers than required", 409},
    [TP_FAULT_IDEMPOTENCY_MISMATCH] = {"idempotency-mismatch",
                                       "The key was used for another request", 409},
    [TP_FAULT_LIMIT_EXCEEDED] = {"limit-exceeded", "A limit is reached", 429},
    [TP_FAULT_TOO_MANY_REQUESTS] = {"too-many-requests", "Too many requests", 429},
    [TP_FAULT_DENIED] = {"denied", "That is not allowed", 403},
    [TP_FAULT_UNSUPPORTED] = {"unsupported", "That is not supported", 422},
    [TP_FAULT_BUSY] = {"busy", "The service is busy", 503},
    [TP_FAULT_NOT_READY] = {"not-ready", "The service is not ready", 503},
    [TP_FAULT_STORAGE_FULL] = {"storage-full", "The storage is full", 507},
    [TP_FAULT_STORAGE_FAILED] = {"storage-failed", "The storage failed", 500},
    [TP_FAULT_OUT_OF_MEMORY] = {"out-of-memory", "The service is out of memory", 503},
    [TP_FAULT_INTERNAL] = {"internal", "Internal error", 500},
};

static unsigned row(enum tp_fault fault)
{
    return (unsigned)fault < TP_FAULTS ? (unsigned)fault : TP_FAULT_INTERNAL;
}

int tp_status_http(enum tp_fault fault)
{
    return table[row(fault)].http;
}

const char *tp_status_name(enum tp_fault fault)
{
    return table[row(fault)].name;
}

const char *tp_status_title(enum tp_fault fault)
{
    return table[row(fault)].title;
}

/* What the code alone says; the index is the negated code. */
static enum tp_fault fault_of_code(int code)
{
    static const enum tp_fault faults[] = {
        [-TP_EINVAL] = TP_FAULT_INVALID_REQUEST,
        [-TP_ENOMEM] = TP_FAULT_OUT_OF_MEMORY,
        [-TP_ENOTFOUND] = TP_FAULT_NOT_FOUND,
        [-TP_EEXIST] = TP_FAULT_ALREADY_EXISTS,
        [-TP_ESTATE] = TP_FAULT_ILLEGAL_STATE,
        [-TP_EQUOTA] = TP_FAULT_LIMIT_EXCEEDED,
        [-TP_EIO] = TP_FAULT_STORAGE_FAILED,
        [-TP_EAMBIGUOUS] = TP_FAULT_AMBIGUOUS_NAME,
        [-TP_EDENIED] = TP_FAULT_DENIED,
        [-TP_EAGAIN] = TP_FAULT_BUSY,
        [-TP_EUNSUPPORTED] = TP_FAULT_UNSUPPORTED,
    };

    if (code >= 0 || code <= -(int)(sizeof(faults) / sizeof(faults[0])))
        return TP_FAULT_INTERNAL;
    return faults[-code];
}

/* A body or a file over its limit is 413, anything else that is full 429. */
static enum tp_fault fault_of_limit(const struct tp_problem *problem)
{
    static const char *const bodies[] = {"max-body-bytes", "max-events-body-bytes",
                                         "max-file-bytes", "max-file-inflated-bytes",
                                         "max-inflate-ratio"};

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        if (tp_str_is(tp_str_of(problem->limit_name), bodies[i]))
            return TP_FAULT_BODY_TOO_LARGE;
    return TP_FAULT_LIMIT_EXCEEDED;
}

enum tp_fault tp_status_fault(int code, const struct tp_problem *problem)
{
    static const enum tp_fault faults[TP_PROBLEM_KINDS] = {
        [TP_PROBLEM_INVALID] = TP_FAULT_INVALID_FIELD,
        [TP_PROBLEM_NOT_FOUND] = TP_FAULT_NOT_FOUND,
        [TP_PROBLEM_ID_COLLISION] = TP_FAULT_ID_COLLISION,
        [TP_PROBLEM_REGISTRY_FROZEN] = TP_FAULT_REGISTRY_FROZEN,
        [TP_PROBLEM_AMBIGUOUS_NAME] = TP_FAULT_AMBIGUOUS_NAME,
        [TP_PROBLEM_UNKNOWN_TYPE] = TP_FAULT_UNKNOWN_TYPE,
        [TP_PROBLEM_TRACE_ACTIVE] = TP_FAULT_TRACE_ACTIVE,
        [TP_PROBLEM_ILLEGAL_STATE] = TP_FAULT_ILLEGAL_STATE,
        [TP_PROBLEM_NOT_ENOUGH_PRODUCERS] = TP_FAULT_NOT_ENOUGH_PRODUCERS,
        [TP_PROBLEM_IDEMPOTENCY_MISMATCH] = TP_FAULT_IDEMPOTENCY_MISMATCH,
        [TP_PROBLEM_DAMAGED_BODY] = TP_FAULT_DAMAGED_BODY,
        [TP_PROBLEM_UNSUPPORTED] = TP_FAULT_UNSUPPORTED,
    };

    if (problem == NULL || problem->kind == TP_PROBLEM_NONE ||
        (unsigned)problem->kind >= TP_PROBLEM_KINDS || code == TP_ENOMEM)
        return fault_of_code(code);
    if (problem->kind == TP_PROBLEM_LIMIT_EXCEEDED)
        return fault_of_limit(problem);
    if (problem->kind == TP_PROBLEM_STORAGE)
        return code == TP_EQUOTA ? TP_FAULT_STORAGE_FULL : TP_FAULT_STORAGE_FAILED;
    if (problem->kind == TP_PROBLEM_UNKNOWN_TYPE && code == TP_ENOTFOUND)
        return TP_FAULT_NOT_FOUND;
    return faults[problem->kind];
}
