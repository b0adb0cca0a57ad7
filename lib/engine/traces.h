/*
 * traces.h - create, start, stop, cancel, delete and list traces.
 *
 * Each move is in the store before it is acknowledged. trace_views.h has what comes
 * back. Thread-safe.
 */
#ifndef TP_ENGINE_TRACES_H
#define TP_ENGINE_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/filter.h"
#include "engine/now.h"

struct tp_engine;
struct tp_err;
struct tp_problem;
struct tp_trace_list;
struct tp_trace_view;

#define TP_TRACE_ID_BYTES \
    27 /* 26 characters of [0-9a-z] that sort by time, and a NUL */
#define TP_TRACE_LABEL_MAX_BYTES 256
#define TP_IDEMPOTENCY_KEY_MAX_BYTES 255

enum tp_trace_start {
    TP_START_NOW,
    TP_START_MANUAL,
    TP_START_AT,  /* start_wall_ns */
    TP_START_STEP /* start_step: when the first producer reports that step */
};

enum tp_trace_require { TP_REQUIRE_ANY, TP_REQUIRE_ALL, TP_REQUIRE_COUNT };

/* What a client asks for. The zero value is `POST /traces` with `{}`. Strings and
 * arrays are borrowed for the call. */
struct tp_trace_request {
    struct tp_str job; /* empty = "default" */
    struct tp_filter_spec filter;
    const uint32_t *ranks; /* select.ranks; none = every rank */
    size_t n_ranks;
    const struct tp_str *hosts; /* select.hosts; exact names */
    size_t n_hosts;
    const struct tp_str *producers; /* select.producers; names or ids */
    size_t n_producers;
    enum tp_trace_start start;
    uint64_t start_wall_ns;
    uint64_t start_step;
    uint64_t stop_duration_ms; /* 0 = not said: the server's cap applies */
    uint64_t stop_steps;       /* 0 = not said */
    uint64_t stop_max_bytes;   /* 0 = not said: the server's cap applies */
    enum tp_trace_require require;
    uint32_t require_count;      /* for TP_REQUIRE_COUNT; 0 is any */
    struct tp_str label;         /* up to 256 bytes of UTF-8 */
    struct tp_str metadata_json; /* JSON text, valid; kept as it is; empty = none */
    struct tp_str kineto_json;   /* likewise */
    struct tp_str log_file;      /* a path: each Kineto process has its file there, too,
                                      under a name of its own; empty = nowhere */
    bool dry_run;                /* resolve and match only; nothing is made */
    bool is_brief; /* out is without history, producers and streams, which take their
                      time when they are many: producers hear of the start before */
    struct tp_str idempotency_key; /* empty = none; 1 to 255 printable ASCII bytes */
    struct tp_str body; /* what tells two requests with one key apart: the body
                                      as received */
};

/*
 * Create a trace, and start it unless it is to wait.
 *
 * out      what came of it; release with tp_trace_view_free(). is_replay is true when
 * the
 *          idempotency key had made it before: then the view is the first answer again.
 *          is_dry_run: nothing was made, id is "".
 *
 * TP_EINVAL  a field is wrong (INVALID, UNKNOWN_TYPE, AMBIGUOUS_NAME). TP_EEXIST  the
 * job has an active trace (TRACE_ACTIVE), or the key was used for another body
 * (IDEMPOTENCY_MISMATCH). TP_ESTATE  NOT_ENOUGH_PRODUCERS. TP_EQUOTA  a limit. TP_EIO.
 * TP_ENOMEM. Nothing was made.
 */
int tp_engine_trace_create(struct tp_engine *e, const struct tp_trace_request *request,
                           struct tp_now now, struct tp_trace_view **out,
                           struct tp_problem *problem, struct tp_err *err);

/*
 * Whether all producers who take commands and take part in a trace have been given its
 * start; true as well when they are few, or there is no such trace, or it is over. One
 * that is away keeps it false. Cheap; it waits for who makes a trace.
 */
bool tp_engine_trace_is_told(struct tp_engine *e, struct tp_str id);

/*
 * Start a prepared trace now, whatever it was waiting for. Starting one that is
 * recording changes nothing and is fine.
 *
 * cause  who asked, for the history; empty for "request".
 * out    may be NULL; else the trace as it is then.
 *
 * TP_ENOTFOUND. TP_ESTATE  it is stopping or has ended. TP_EIO, TP_ENOMEM.
 */
int tp_engine_trace_start(struct tp_engine *e, struct tp_str id, struct tp_str cause,
                          struct tp_now now, struct tp_trace_view **out,
                          struct tp_problem *problem, struct tp_err *err);

/*
 * Stop a trace. Stopping one that is stopping or complete changes nothing and is fine:
 * the caller wanted it stopped, and it is.
 *
 * TP_ENOTFOUND. TP_ESTATE  it is prepared (nothing can be stopped yet: cancel it), has
 * failed or was cancelled. TP_EIO, TP_ENOMEM.
 */
int tp_engine_trace_stop(struct tp_engine *e, struct tp_str id, struct tp_str cause,
                         struct tp_now now, struct tp_trace_view **out,
                         struct tp_problem *problem, struct tp_err *err);

/*
 * Cancel a trace and throw its data away. Cancelling a cancelled one is fine.
 *
 * TP_ENOTFOUND. TP_ESTATE  it has completed or failed. TP_EIO, TP_ENOMEM.
 */
int tp_engine_trace_cancel(struct tp_engine *e, struct tp_str id, struct tp_str cause,
                           struct tp_now now, struct tp_trace_view **out,
                           struct tp_problem *problem, struct tp_err *err);

/*
 * Remove a finished trace, its rows and its data. Downloads that are open go on.
 *
 * TP_ENOTFOUND. TP_ESTATE  it is active. TP_EIO  it is still there, and may be deleted
 * again.
 */
int tp_engine_trace_delete(struct tp_engine *e, struct tp_str id, struct tp_now now,
                           struct tp_problem *problem, struct tp_err *err);

/* The trace as it is now. TP_ENOTFOUND, TP_ENOMEM. */
int tp_engine_trace_get(struct tp_engine *e, struct tp_str id, struct tp_now now,
                        struct tp_trace_view **out, struct tp_problem *problem,
                        struct tp_err *err);

/* A number that grows with each visible change of the trace: cheap, for watchers.
 * TP_ENOTFOUND. */
int tp_engine_trace_version(struct tp_engine *e, struct tp_str id, uint64_t *out,
                            struct tp_problem *problem, struct tp_err *err);

/* Which traces to list. */
struct tp_trace_query {
    struct tp_str job;   /* empty = all jobs */
    struct tp_str state; /* a state's name, "active", or empty for all */
    struct tp_str after; /* the last id of the page before; empty for the first */
    size_t limit;        /* most items; 0 = 100 */
};

/*
 * List traces, newest first; the views have no streams, members and history.
 *
 * TP_EINVAL  no such state, or a cursor that is no id. TP_ENOMEM.
 */
int tp_engine_traces_list(struct tp_engine *e, const struct tp_trace_query *query,
                          struct tp_now now, struct tp_trace_list **out,
                          struct tp_problem *problem, struct tp_err *err);

#endif
