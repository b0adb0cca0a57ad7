/*
 * sync.h - the one call that a producer repeats.
 *
 * It is pure state here: it answers at once. Holding a long poll is the server's job;
 * tp_engine_sync_ready() tells when there is something to say. Thread-safe.
 */
#ifndef TP_ENGINE_SYNC_H
#define TP_ENGINE_SYNC_H

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
struct tp_problem;
struct tp_type_counts;

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
    /* Counts the producer's syncs, from 1 on; 0 = not said. What one says with a lower
     * number than was heard is out of date: it was overtaken on its way. Acks and times
     * are taken all the same, for they hold whenever they come. A registration begins
     * anew. */
    uint64_t seq;
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
    uint64_t duration_ms;     /* likewise: for how long from the start; 0 = no limit */
};

#define TP_SYNC_COMMANDS_MAX 4

/* What comes back. The server adds its two times when it sends. */
struct tp_sync_reply {
    struct tp_command commands[TP_SYNC_COMMANDS_MAX];
    size_t n_commands;
    uint64_t seq;   /* ascends with what the producer is told, also across a restart */
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

/* Whether producers may have to hear of a start that they do not know yet; cheap. It
 * waits for who makes a trace. */
bool tp_engine_is_telling(struct tp_engine *e, struct tp_now now);

/* Whether some who were there when a start was decided have not heard of it, and are
 * about to: see tp_tell_is_going_on(). */
bool tp_engine_is_still_telling(struct tp_engine *e, struct tp_now now);

/*
 * Give the commands of a producer whose sync is held, if a start that it does not know
 * is among them, ahead of its answer, which gives them again.
 *
 * reply  no commands: there is nothing that cannot wait for the answer.
 *
 * TP_ENOTFOUND  not registered. TP_ENOMEM, TP_EIO  the answer will say it.
 */
int tp_engine_sync_ahead(struct tp_engine *e, struct tp_str id, struct tp_now now,
                         struct tp_sync_reply *reply, struct tp_err *err);

/* Whether a sync would give this producer a command that it was not given yet, or it is
 * gone; cheap. */
bool tp_engine_sync_ready(struct tp_engine *e, struct tp_str id);

#endif
