/*
 * service.h - what the handlers of every protocol work on: the engine, its limits, and
 * what only the process around them knows.
 *
 * Plain data, filled by the server before the first call and constant from then on; so
 * any thread may read it. The callbacks may be called from any thread. The room holds
 * no state of its own.
 */
#ifndef TP_API_SERVICE_H
#define TP_API_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct tp_buf;
struct tp_engine;
struct tp_limits;

struct tp_service {
    struct tp_engine *engine;       /* not NULL */
    const struct tp_limits *limits; /* not NULL */
    const char *version;            /* "0.1.0" */
    const char *build;              /* compiler and date-free facts, for /version */
    int64_t started_wall_ns;
    struct tp_str openapi; /* the document; empty when it is not built in */
    char *const *log_dirs; /* below which dynolog's clients may have files */
    size_t n_log_dirs;

    void *arg; /* of the callbacks below; each of them may be NULL */
    /* Append the metrics in the text format of Prometheus. TP_ENOMEM. */
    int (*metrics)(void *arg, struct tp_buf *out, struct tp_err *err);
    /* TP_EAGAIN with a reason while the process starts or stops. */
    int (*ready)(void *arg, struct tp_err *err);
    /* Sizes of generated downloads that were counted before, by ETag. */
    bool (*size_get)(void *arg, const char *etag, uint64_t *size_bytes);
    void (*size_put)(void *arg, const char *etag, uint64_t size_bytes);
    /* Count one more (+1) or one less (-1) open watch; false: there are too many. */
    bool (*watch_count)(void *arg, int change);
    /* Something has changed that calls may wait for: ask those that do. Cheap. */
    void (*changed)(void *arg);
};

#endif
