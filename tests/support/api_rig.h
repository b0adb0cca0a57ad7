/*
 * api_rig.h - calls of the REST API without a socket, over an engine_rig.
 *
 * A call is made as the server makes it: begin, feed in pieces, finish, wait. The
 * answer stays here until the next call. A stream is read to its end. What is not
 * expected ends the test program. One thread.
 */
#ifndef TP_SUPPORT_API_RIG_H
#define TP_SUPPORT_API_RIG_H

#include <json-c/json_object.h>

#include "api/call.h"
#include "api/service.h"
#include "support/engine_rig.h"

#define API_HEADERS_MAX 8

/* Plain data: one request. Pointers are borrowed. */
struct api_request {
    const char *method; /* "GET"; NULL = GET, or POST when there is a body */
    const char *target; /* "/v1/types?job=j" */
    const char *body;   /* NULL: none */
    size_t body_bytes;  /* 0: up to the NUL */
    size_t piece_bytes; /* the body is fed in pieces of that size; 0 = at once */
    bool is_chunked;    /* no Content-Length is told */
    struct {
        enum tp_header name;
        const char *value; /* NULL ends the list */
    } headers[API_HEADERS_MAX];
};

struct api_rig {
    struct rig rig;
    struct tp_service service;
    struct tp_call call;      /* the last one */
    struct tp_buf body;       /* what it answered, a stream included; ended by a NUL */
    struct json_object *json; /* the body parsed; NULL when it is not JSON */
    int stream_code;          /* how the stream ended: TP_OK */
};

/* Setup and teardown of a cmocka test: *state is a struct api_rig with an engine. Every
 * blob that was opened must be closed again at the end. */
int api_setup(void **state);
int api_teardown(void **state);

/* Make a call up to its answer, or until it waits: then call.reply says so and nothing
 * was read. */
void api_call(struct api_rig *a, const struct api_request *request);

/* Take in the answer of a call that waited. */
void api_resume(struct api_rig *a);

/* Make a call with a target that is put together. Returns the status. */
int api_get(struct api_rig *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int api_delete(struct api_rig *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* body NULL: none. */
int api_post(struct api_rig *a, const char *body, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A header of the answer, or NULL. */
const char *api_header(const struct api_rig *a, const char *name);

/* A member of the answer by its path ("filter.include[0]"), or NULL. */
struct json_object *api_at(const struct api_rig *a, const char *path);

/* The same, of that type; missing or of another type ends the test. */
const char *api_str(const struct api_rig *a, const char *path);
int64_t api_int(const struct api_rig *a, const char *path);
size_t api_len(const struct api_rig *a, const char *path);

/* Fail the test unless the answer is that good status with application/json. */
void api_expect_json(const struct api_rig *a, int status);

/* Fail the test unless the answer is a problem of that type ("not-found") and status,
 * with all members that every problem has. */
void api_expect_problem(const struct api_rig *a, int status, const char *type);

/* Register a type, a native producer, or a trace over the API; the id goes to id,
 * which has TP_TRACE_ID_BYTES. */
void api_make_producer(struct api_rig *a, const char *job, const char *name, int rank,
                       char *id);
void api_make_trace(struct api_rig *a, const char *body, char *id);

/* A trace of job "j" that is complete: two slices of rank 0. */
void api_make_complete(struct api_rig *a, char *id);

#endif
