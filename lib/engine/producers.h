/*
 * producers.h - processes that can record: register, list, forget. What they say and
 * are told is in sync.h. Thread-safe.
 */
#ifndef TP_ENGINE_PRODUCERS_H
#define TP_ENGINE_PRODUCERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/counts.h"
#include "core/typeset.h"
#include "engine/now.h"
#include "engine/traces.h"

struct tp_engine;
struct tp_err;
struct tp_pool;
struct tp_problem;

/* Who registers. Strings are borrowed. */
struct tp_producer_request {
    struct tp_str id;    /* that it asks for; empty = none, and we find or make one */
    struct tp_str job;   /* empty = "default" */
    struct tp_str name;  /* 1 to 127 bytes of UTF-8; empty = "rank-N" or "default" */
    struct tp_str kind;  /* "http" (default), "native" */
    int64_t rank;        /* 0 to 2^31 - 1, or -1 */
    uint32_t world_size; /* 0 = not known */
    struct tp_str host;
    int64_t pid; /* or -1 */
    struct tp_str backend;
    struct tp_str device;
    struct tp_str capabilities_json; /* JSON text, kept; empty = none */
    struct tp_str process;           /* base/process_key.h; empty = not known */
};

/* A producer. Texts belong to the list; "" = absent. */
struct tp_producer_view {
    const char *id;
    const char *job;
    const char *name;
    const char *kind;
    const char *host;
    const char *backend;
    const char *device;
    const char *capabilities_json;
    const char
        *state; /* "idle", "waiting", "armed", "recording", "flushing", "stale" */
    const char *trace_id; /* the trace that it takes part in; "" */
    int64_t rank, pid;
    int64_t
        said_pid; /* of a live Kineto process: the pid that it says it has; else 0 */
    uint32_t world_size;
    bool is_stranger; /* a Kineto process of a user who may not be traced */
    bool is_new;      /* of a registration: 201, else 200 */
    uint64_t registered_wall_ns;
    uint64_t seen_wall_ns; /* its last sign of life */
    uint64_t step;
    bool has_clock;
    int64_t clock_offset_ns;
    uint64_t clock_error_ns;
};

/* A list that a call made; release with tp_producer_list_free(). */
struct tp_producer_list {
    struct tp_producer_view *items;
    size_t n;
    bool has_more;
    struct tp_pool *pool; /* private */
};

/* Release a list. NULL is allowed. */
void tp_producer_list_free(struct tp_producer_list *list);

/*
 * Register a producer; the same (job, name, rank, host, pid) again is the same
 * producer. It joins a trace that is active in its job and selects it.
 *
 * out  a list of one.
 *
 * TP_EINVAL  a field. TP_EQUOTA  too many producers or jobs. TP_EIO, TP_ENOMEM. Nothing
 * was registered.
 */
int tp_engine_producer_register(struct tp_engine *e,
                                const struct tp_producer_request *request,
                                struct tp_now now, struct tp_producer_list **out,
                                struct tp_problem *problem, struct tp_err *err);

/* Which producers to list: in order of id. */
struct tp_producer_query {
    struct tp_str job;   /* empty = all */
    struct tp_str after; /* the last id of the page before */
    size_t limit;        /* 0 = 100 */
};

/* List producers. TP_EINVAL, TP_ENOMEM. */
int tp_engine_producers_list(struct tp_engine *e, const struct tp_producer_query *query,
                             struct tp_now now, struct tp_producer_list **out,
                             struct tp_problem *problem, struct tp_err *err);

/* One producer, as a list of one. TP_ENOTFOUND, TP_ENOMEM. */
int tp_engine_producer_get(struct tp_engine *e, struct tp_str id, struct tp_now now,
                           struct tp_producer_list **out, struct tp_problem *problem,
                           struct tp_err *err);

/* Forget a producer; in an active trace it is "lost: it left". TP_ENOTFOUND, TP_EIO. */
int tp_engine_producer_delete(struct tp_engine *e, struct tp_str id, struct tp_now now,
                              struct tp_problem *problem, struct tp_err *err);

#endif
