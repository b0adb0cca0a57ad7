/*
 * session.c - the table of moves, and deadlines so that nothing stays stuck.
 *
 * Where a deadline leads is part of the table too: a trace that never starts has
 * failed; a recording that has lasted long enough is stopped; a stop that takes long
 * is completed with what is there, and its outcome tells who was late. Whoever knows
 * better (a start time, an absent quorum) replaces it with tp_session_set_deadline().
 */
#include "core/session.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/fsm.h"
#include "base/utf8.h"

#define TO(state) (1u << TP_SESSION_##state)

/*
 *   prepared --> recording --> stopping --> complete
 *       \____________\____________\-------> failed | cancelled
 */
static const struct tp_fsm_state table[TP_SESSION_STATES] = {
    [TP_SESSION_PREPARED] = {"prepared", TO(RECORDING) | TO(FAILED) | TO(CANCELLED)},
    [TP_SESSION_RECORDING] = {"recording", TO(STOPPING) | TO(FAILED) | TO(CANCELLED)},
    [TP_SESSION_STOPPING] = {"stopping", TO(COMPLETE) | TO(FAILED) | TO(CANCELLED)},
    [TP_SESSION_COMPLETE] = {"complete", 0},
    [TP_SESSION_FAILED] = {"failed", 0},
    [TP_SESSION_CANCELLED] = {"cancelled", 0},
};

/* Where the deadline of a state leads when nobody says otherwise. */
static const struct {
    enum tp_session_state to;
    const char *cause;
} deadlines[TP_SESSION_STATES] = {
    [TP_SESSION_PREPARED] = {TP_SESSION_FAILED, "not started in time"},
    [TP_SESSION_RECORDING] = {TP_SESSION_STOPPING, "the duration limit was reached"},
    [TP_SESSION_STOPPING] = {TP_SESSION_COMPLETE, "the time to collect data was over"},
};

const char *tp_session_state_name(int state)
{
    return tp_fsm_name(table, TP_SESSION_STATES, state);
}

int tp_session_state_find(struct tp_str name)
{
    return tp_fsm_find(table, TP_SESSION_STATES, name.ptr, name.len);
}

bool tp_session_state_is_final(int state)
{
    return tp_fsm_is_final(table, TP_SESSION_STATES, state);
}

static void copy_cause(char *out, const char *cause)
{
    struct tp_str s = tp_utf8_cut(tp_str_of(cause), TP_SESSION_CAUSE_BYTES - 1);

    if (s.len != 0)
        memcpy(out, s.ptr, s.len);
    out[s.len] = '\0';
}

static uint64_t state_limit_ns(const struct tp_session *s)
{
    switch (s->state) {
    case TP_SESSION_PREPARED:
        return s->options.prepared_ns;
    case TP_SESSION_RECORDING:
        return s->options.recording_ns;
    case TP_SESSION_STOPPING:
        return s->options.stopping_ns;
    default:
        return 0;
    }
}

/* Start the deadline of the present state. */
static void start_deadline(struct tp_session *s, uint64_t now_ns)
{
    uint64_t limit_ns = state_limit_ns(s);

    s->deadline_ns = TP_SESSION_NO_DEADLINE;
    s->due = deadlines[s->state].to;
    s->due_cause[0] = '\0';
    if (limit_ns == 0)
        return;
    if (limit_ns < TP_SESSION_NO_DEADLINE - now_ns)
        s->deadline_ns = now_ns + limit_ns;
    copy_cause(s->due_cause, deadlines[s->state].cause);
}

static void note_move(struct tp_session *s, int64_t wall_ns, const char *cause)
{
    struct tp_session_move *move;

    assert(s->n_moves < TP_SESSION_MAX_MOVES);
    move = &s->moves[s->n_moves++];
    move->to = (enum tp_session_state)s->state;
    move->wall_ns = wall_ns;
    copy_cause(move->cause, cause);
}

void tp_session_init(struct tp_session *s, const struct tp_session_options *options,
                     struct tp_session_time now, const char *cause)
{
    memset(s, 0, sizeof(*s));
    s->state = TP_SESSION_PREPARED;
    if (options != NULL)
        s->options = *options;
    note_move(s, now.wall_ns, cause);
    start_deadline(s, now.mono_ns);
}

int tp_session_restore(struct tp_session *s, const struct tp_session_options *options,
                       const struct tp_session_move *moves, size_t n,
                       struct tp_session_time now, struct tp_err *err)
{
    struct tp_session fresh;

    if (n == 0 || n > TP_SESSION_MAX_MOVES || moves[0].to != TP_SESSION_PREPARED)
        return tp_fail(
            err, TP_EINVAL,
            "a history of %zu moves does not start with 'prepared' or is longer "
            "than any life",
            n);
    tp_session_init(&fresh, options, now, moves[0].cause);
    for (size_t i = 1; i < n; i++) {
        if (tp_fsm_move(table, TP_SESSION_STATES, &fresh.state, (int)moves[i].to,
                        err) != TP_OK) {
            tp_fail_prefix(err, "stored move %zu", i);
            return TP_EINVAL;
        }
    }
    memcpy(fresh.moves, moves, n * sizeof(*moves));
    fresh.n_moves = n;
    start_deadline(&fresh, now.mono_ns);
    *s = fresh;
    return TP_OK;
}

int tp_session_move(struct tp_session *s, enum tp_session_state to,
                    struct tp_session_time now, const char *cause, struct tp_err *err)
{
    int rc = tp_fsm_move(table, TP_SESSION_STATES, &s->state, (int)to, err);

    if (rc != TP_OK)
        return rc;
    note_move(s, now.wall_ns, cause);
    start_deadline(s, now.mono_ns);
    return TP_OK;
}

int tp_session_set_deadline(struct tp_session *s, uint64_t deadline_ns,
                            enum tp_session_state to, const char *cause,
                            struct tp_err *err)
{
    if (!tp_fsm_allows(table, TP_SESSION_STATES, s->state, (int)to))
        return tp_fail(err, TP_ESTATE, "no deadline can lead from '%s' to '%s'",
                       tp_session_state_name(s->state), tp_session_state_name((int)to));
    s->deadline_ns = deadline_ns;
    s->due = to;
    copy_cause(s->due_cause, cause);
    return TP_OK;
}

uint64_t tp_session_deadline_ns(const struct tp_session *s)
{
    return s->deadline_ns;
}

bool tp_session_due(const struct tp_session *s, uint64_t now_ns,
                    enum tp_session_state *to, const char **cause)
{
    if (s->deadline_ns == TP_SESSION_NO_DEADLINE || now_ns < s->deadline_ns)
        return false;
    if (to != NULL)
        *to = s->due;
    if (cause != NULL)
        *cause = s->due_cause;
    return true;
}

bool tp_session_tick(struct tp_session *s, struct tp_session_time now)
{
    enum tp_session_state to;
    const char *cause;
    int rc;

    if (!tp_session_due(s, now.mono_ns, &to, &cause))
        return false;
    rc = tp_session_move(s, to, now, cause, NULL);
    assert(rc == TP_OK); /* whoever set the deadline has checked the move */
    return rc == TP_OK;
}

const struct tp_session_move *tp_session_history(const struct tp_session *s, size_t *n)
{
    *n = s->n_moves;
    return s->moves;
}

bool tp_session_entered_at(const struct tp_session *s, enum tp_session_state state,
                           int64_t *wall_ns)
{
    for (size_t i = 0; i < s->n_moves; i++) {
        if (s->moves[i].to == state) {
            *wall_ns = s->moves[i].wall_ns;
            return true;
        }
    }
    return false;
}
