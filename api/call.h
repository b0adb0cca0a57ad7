/*
 * call.h - one request and its answer, without a socket.
 *
 * The server fills in the request and sends what the handlers leave here; tests do the
 * same with their own hands. A call has a life of its own: some are answered at once,
 * some take a body piece by piece, some wait, some answer with a stream.
 *
 *   tp_rest_begin(call)                finds the route, checks what headers tell
 *   tp_rest_feed(call, p, n) ...       the body, if it has one
 *   tp_rest_finish(call)               the body is complete; runs the handler
 *   while call->reply is TP_REPLY_WAIT: when ready, tp_rest_resume(call)
 *   send status, headers and body or stream; tp_call_fini(call)
 *
 * A call belongs to one thread at a time.
 */
#ifndef TP_API_CALL_H
#define TP_API_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/status.h"
#include "base/buf.h"
#include "base/str.h"
#include "engine/now.h"

struct tp_call;
struct tp_route;
struct tp_service;
struct tp_upload;

enum tp_method {
    TP_METHOD_GET,
    TP_METHOD_HEAD,
    TP_METHOD_POST,
    TP_METHOD_DELETE,
    TP_METHOD_OPTIONS,
    TP_METHOD_OTHER,
    TP_METHODS
};

/* The request headers that handlers and the server look at. */
enum tp_header {
    TP_HEADER_HOST,
    TP_HEADER_ORIGIN,
    TP_HEADER_CONTENT_TYPE,
    TP_HEADER_CONTENT_LENGTH,
    TP_HEADER_CONTENT_ENCODING,
    TP_HEADER_TRANSFER_ENCODING,
    TP_HEADER_EXPECT,
    TP_HEADER_ACCEPT_ENCODING,
    TP_HEADER_IF_NONE_MATCH,
    TP_HEADER_IF_RANGE,
    TP_HEADER_RANGE,
    TP_HEADER_IDEMPOTENCY_KEY,
    TP_HEADERS
};

/* The header of that name, compared without case, or -1. */
int tp_header_find(struct tp_str name);

#define TP_CALL_PARAMS_MAX 32
#define TP_CALL_HEADERS_MAX 8
#define TP_CALL_ARGS_MAX 1

/* One parameter of the query, decoded. */
struct tp_call_param {
    struct tp_str key, value;
};

/* One header of the answer. Both are NUL-terminated. */
struct tp_call_header {
    const char *name; /* static */
    const char *value;
};

enum tp_reply {
    TP_REPLY_BODY,   /* status, headers and out are the answer */
    TP_REPLY_STREAM, /* status, headers and stream are the answer */
    TP_REPLY_WAIT    /* no answer yet: see wait */
};

/* The body of an answer that is made while it is sent. */
struct tp_call_stream {
    void *arg;
    bool has_size;
    uint64_t size_bytes; /* exact, when has_size */
    /* Write up to n bytes to p. *got 0 is the end. TP_EAGAIN: nothing now, ask ready().
     * Any other failure: the connection must be broken off, never ended well. */
    int (*read)(void *arg, struct tp_now now, char *p, size_t n, size_t *got,
                struct tp_err *err);
    /* Whether read() would give something; cheap. NULL when it never says TP_EAGAIN. */
    bool (*ready)(void *arg, struct tp_now now);
    /* Say goodbye: the service stops, so that the stream should end with the next
     * read(). NULL when it ends by itself. */
    void (*stop)(void *arg);
    void (*close)(void *arg);
};

/* Why a call waits: until ready() or deadline_ns, monotonic. */
struct tp_call_wait {
    uint64_t deadline_ns;
    bool
        is_brief; /* something was done and is to be told: it is answered, even when its
                      client seems to be gone or there is no memory to wait */
    /* Append to out what the client should hear ahead of the answer, which is made
     * afterwards, by resume(): the value of one header; nothing when there is no memory
     * for it. Returns false when there is nothing to hear, so that it waits on. Cheap.
     * NULL: never. */
    bool (*ahead)(struct tp_call *call, struct tp_buf *out);
    bool (*ready)(struct tp_call *call);
    void (*resume)(struct tp_call *call); /* give the answer now */
};

/* Plain data. Start with all-zero and tp_call_init(). Request strings are borrowed. */
struct tp_call {
    struct tp_service *service;
    struct tp_now now; /* of the present step; set before each step */

    /* The request. */
    enum tp_method method;
    struct tp_str target; /* as in the request line: path?query, not decoded */
    struct tp_str headers[TP_HEADERS]; /* absent: ptr NULL */
    struct tp_str peer; /* who calls, for logs: "127.0.0.1", "uid 1000" */
    int32_t peer_pid;   /* of a unix socket, as the kernel says; 0 = not known */
    bool has_body;      /* Content-Length above 0, or chunked */
    bool has_content_length;
    uint64_t content_length;

    /* Found out by tp_rest_begin(). */
    const struct tp_route *route;         /* NULL: none, then the answer is a problem */
    struct tp_str args[TP_CALL_ARGS_MAX]; /* of the path, decoded */
    struct tp_call_param params[TP_CALL_PARAMS_MAX];
    size_t n_params;
    struct tp_buf decoded; /* what args and params point into */

    /* The body on its way. */
    struct tp_buf body;  /* of a control call */
    uint64_t body_bytes; /* as received */
    struct tp_upload *upload;
    bool is_refused; /* the answer is known; the rest of the body only has to be read */

    /* The answer. */
    enum tp_reply reply;
    int status;
    enum tp_fault fault;      /* TP_FAULT_NONE for good answers */
    const char *content_type; /* static; NULL when there is no body */
    struct tp_call_header out_headers[TP_CALL_HEADERS_MAX];
    size_t n_out_headers;
    struct tp_buf header_text; /* what values of headers that are made up point into */
    struct tp_str fixed;       /* a body that is static: used instead of out */
    struct tp_buf out;
    bool must_close; /* the connection cannot go on after this answer */
    struct tp_call_stream stream;
    struct tp_call_wait wait;
    void *wait_arg;               /* of the handler that waits; see wait_free */
    void (*wait_free)(void *arg); /* NULL: nothing to free */
    char subject[64];             /* what it was about, for the audit line: an id */
    bool has_changed;             /* tp_call_changed() was called */
    bool is_repeat;               /* what was asked for is so already: no audit line */
};

/* Start a call over a service; everything else of it is zero. */
void tp_call_init(struct tp_call *call, struct tp_service *service);

/* Release what a call holds, whatever it was doing. All-zero is allowed. */
void tp_call_fini(struct tp_call *call);

/*
 * Parse call->target into path segments and parameters.
 *
 * path  set to the path, without the query and without a leading "/v1"; of its escapes
 *       those are gone that say no more than the character itself.
 *
 * TP_EINVAL  a broken percent escape, a NUL, invalid UTF-8, too many parameters, or one
 * that is given twice although it may not. TP_ENOMEM.
 */
int tp_call_parse_target(struct tp_call *call, struct tp_str *path, struct tp_err *err);

/* Decode percent escapes of s into call->decoded. TP_EINVAL, TP_ENOMEM as above. */
int tp_call_decode(struct tp_call *call, struct tp_str s, bool plus_is_blank,
                   struct tp_str *out, struct tp_err *err);

/* The value of a parameter, ptr NULL when it is absent. */
struct tp_str tp_call_param(const struct tp_call *call, const char *key);

/* Something has changed that others may wait for: say so at once, as making the answer
 * may take long. */
void tp_call_changed(struct tp_call *call);

/* Add a header with a static value. More than TP_CALL_HEADERS_MAX is our mistake. */
void tp_call_header(struct tp_call *call, const char *name, const char *value);

/* Add a header with a value that is made up; left out when there is no memory. */
void tp_call_header_printf(struct tp_call *call, const char *name, const char *format,
                           ...) __attribute__((format(printf, 3, 4)));

#endif
