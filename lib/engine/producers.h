/*
 * producers.h - processes that can record: register, list, and the one call that they
 * repeat.
 *
 * sync is pure state here: it answers at once. Holding a long poll is the server's job;
 * tp_engine_sync_ready() tells when there is something to say. Thread-safe.
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
struct tp_type_counts;

/* Who registers. Strings are borrowed. */
struct tp_producer_request {
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

enum tp_command_kind {
    TP_COMMAND_PREPARE,
    TP_COMMAND_START,
    TP_COMMAND_STOP,
    TP_COMMAND_CANCEL,
    TP_COMMANDS
};

/* "prepare", "start", "stop", "cancel". */
const char *tp_command_name(enum tp_command_kind kind);

/* The answer to one command. */
struct tp_sync_ack {
    struct tp_str trace_id;
    enum tp_command_kind command; /* for STOP: all its events are posted */
    bool is_refused;
    struct tp_str reason; /* when refused */
    /* For START: when it began, by its own clock; 0 = not said. */
    uint64_t start_wall_ns;
    bool has_step; /* for START: it says which step was on then */
    uint64_t step;
};

/* What the producer says about one trace. */
struct tp_sync_counts {
    struct tp_str trace_id;
    uint64_t emitted, filtered;
    uint64_t dropped[TP_DROP_CAUSES];
    const struct tp_type_counts *types; /* the same by type; NULL or empty: not said */
};

struct tp_sync_request {
    const struct tp_sync_ack *acks;
    size_t n_acks;
    const struct tp_sync_counts *counts;
    size_t n_counts;
    bool has_step;
    uint64_t step;
    uint64_t heartbeat_ms; /* counts as gone when silent for so long; 0 = as before */
    /* The exchange before this one: sent and answer received by the producer's clock,
     * and the two server times that the answer carried. 0 = none. */
    uint64_t t_sent_ns, t_server_received_ns, t_server_sent_ns, t_received_ns;
};

struct tp_command {
    enum tp_command_kind kind;
    char trace_id[TP_TRACE_ID_BYTES];
    uint32_t stream_no;
    struct tp_typeset types;  /* for PREPARE: what to record */
    uint64_t min_duration_ns; /* for PREPARE */
    uint64_t start_wall_ns;   /* for START: when, by the server's clock */
    uint64_t start_step;      /* for PREPARE: begin with this step; 0 = when told */
    uint64_t steps;           /* for PREPARE, START: how many; 0 = until stopped */
};

#define TP_SYNC_COMMANDS_MAX 4

/* What comes back. The server adds its two times when it sends. */
struct tp_sync_reply {
    struct tp_command commands[TP_SYNC_COMMANDS_MAX];
    size_t n_commands;
    bool has_moved; /* its trace went on, which others may wait for */
};

/*
 * Take in what a producer says and give what it is to do. A command is repeated until
 * it is acknowledged.
 *
 * TP_ENOTFOUND  not registered: it should register again. TP_EINVAL  an ack for a trace
 * that there is not is ignored, a count that does not add up is not. TP_EIO, TP_ENOMEM.
 */
int tp_engine_sync(struct tp_engine *e, struct tp_str id,
                   const struct tp_sync_request *request, struct tp_now now,
                   struct tp_sync_reply *reply, struct tp_problem *problem,
                   struct tp_err *err);

/* Whether a sync would give this producer a command that it was not given yet, or it is
 * gone; cheap. */
bool tp_engine_sync_ready(struct tp_engine *e, struct tp_str id);

#endif
