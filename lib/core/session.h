/*
 * session.h - the life cycle of a trace: where it stands, since when, and what is due.
 *
 * A session is pure state. It owns no thread, reads no clock, and knows neither
 * producers nor streams: callers pass times in and act on the state that comes back.
 * Not thread-safe; the engine's lock guards it.
 */
#ifndef TP_CORE_SESSION_H
#define TP_CORE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_err;

/*
 *   prepared --> recording --> stopping --> complete
 *       \____________\____________\-------> failed | cancelled
 *
 * Append only: stored rows hold the names, never the numbers. The table of moves is in
 * session.c.
 */
enum tp_session_state {
    TP_SESSION_PREPARED,  /* filter resolved, registry frozen, producers being armed */
    TP_SESSION_RECORDING, /* producers record */
    TP_SESSION_STOPPING, /* registry free again, producers flush, files are collected */
    TP_SESSION_COMPLETE, /* final; the outcome says how good it is */
    TP_SESSION_FAILED,   /* final; the last move's cause says why */
    TP_SESSION_CANCELLED, /* final; somebody wanted so */
    TP_SESSION_STATES
};

#define TP_SESSION_CAUSE_BYTES 160
#define TP_SESSION_NO_DEADLINE UINT64_MAX

/* The longest history: the table has no circle, so a state is entered at most once. */
#define TP_SESSION_MAX_MOVES 4

/* One instant on both clocks, both in nanoseconds. */
struct tp_session_time {
    uint64_t mono_ns; /* CLOCK_MONOTONIC: deadlines */
    int64_t wall_ns;  /* since the epoch: history */
};

/* Plain data: one entry of the history. */
struct tp_session_move {
    enum tp_session_state to;
    int64_t wall_ns;                    /* when */
    char cause[TP_SESSION_CAUSE_BYTES]; /* one sentence, NUL-terminated UTF-8 */
};

/* How long each transient state may last, in nanoseconds; 0 = no deadline. */
struct tp_session_options {
    uint64_t prepared_ns;
    uint64_t recording_ns;
    uint64_t stopping_ns;
};

/* Plain data; embed it. Read it through the functions below. */
struct tp_session {
    int state; /* enum tp_session_state */
    struct tp_session_options options;
    uint64_t deadline_ns;      /* of the present state; TP_SESSION_NO_DEADLINE = none */
    enum tp_session_state due; /* where the deadline leads */
    char due_cause[TP_SESSION_CAUSE_BYTES];
    size_t n_moves; /* 1 to TP_SESSION_MAX_MOVES */
    struct tp_session_move moves[TP_SESSION_MAX_MOVES];
};

/* The name of a state ("recording"); "unknown" for a value that is none. */
const char *tp_session_state_name(int state);

/* The state of that name, or -1. */
int tp_session_state_find(struct tp_str name);

/* Whether nothing follows a state. */
bool tp_session_state_is_final(int state);

/*
 * Start a session in PREPARED, with its creation as the first entry of the history.
 *
 * options  how long states may last; NULL = no deadlines.
 * cause    one sentence ("requested by ci"); cut at TP_SESSION_CAUSE_BYTES - 1.
 */
void tp_session_init(struct tp_session *s, const struct tp_session_options *options,
                     struct tp_session_time now, const char *cause);

/*
 * Bring a session back from its stored history; the deadline of its state starts anew
 * at `now`.
 *
 * moves  n entries, the first PREPARED, each allowed after the one before.
 *
 * TP_EINVAL  no such life is possible; s is as before.
 */
int tp_session_restore(struct tp_session *s, const struct tp_session_options *options,
                       const struct tp_session_move *moves, size_t n,
                       struct tp_session_time now, struct tp_err *err);

/*
 * Move to another state, note it in the history, and start that state's deadline.
 *
 * cause  as of tp_session_init().
 *
 * TP_ESTATE  not allowed from the present state, which the message names; nothing
 *            changed.
 */
int tp_session_move(struct tp_session *s, enum tp_session_state to,
                    struct tp_session_time now, const char *cause, struct tp_err *err);

/*
 * Replace the deadline of the present state.
 *
 * deadline_ns  monotonic; TP_SESSION_NO_DEADLINE = none.
 * to           where it leads; must be allowed from the present state.
 * cause        as of tp_session_init().
 *
 * TP_ESTATE  the state is final, or `to` is not allowed; nothing changed.
 */
int tp_session_set_deadline(struct tp_session *s, uint64_t deadline_ns,
                            enum tp_session_state to, const char *cause,
                            struct tp_err *err);

/* When tp_session_due() becomes true, monotonic; TP_SESSION_NO_DEADLINE = never. */
uint64_t tp_session_deadline_ns(const struct tp_session *s);

/*
 * Whether the deadline of the present state has passed at now_ns. Changes nothing.
 *
 * to     set to the move that is due; may be NULL.
 * cause  set to its cause, valid until the next move; may be NULL.
 */
bool tp_session_due(const struct tp_session *s, uint64_t now_ns,
                    enum tp_session_state *to, const char **cause);

/*
 * Make the move that is due, if one is.
 *
 * Returns whether the state has changed; then s->state is the new one. One call makes
 * one move: call again, since the next state may have a deadline of 0.
 */
bool tp_session_tick(struct tp_session *s, struct tp_session_time now);

/* The history, oldest first; *n gets its length, from 1. Valid until the next move. */
const struct tp_session_move *tp_session_history(const struct tp_session *s, size_t *n);

/* When the state was entered, in wall nanoseconds; false if it never was. */
bool tp_session_entered_at(const struct tp_session *s, enum tp_session_state state,
                           int64_t *wall_ns);

#endif
