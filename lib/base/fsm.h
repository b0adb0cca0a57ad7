/*
 * fsm.h - state machines as declared tables, moved by one function.
 *
 * A life cycle is an array of struct tp_fsm_state indexed by its enum. This file
 * knows nothing about time, causes or owners; it only refuses what the table does
 * not allow. Stateless: safe from any thread as long as the caller guards `state`.
 */
#ifndef TP_BASE_FSM_H
#define TP_BASE_FSM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tp_err;

/* Plain data; one row of a table. A table has 1 to 32 rows. */
struct tp_fsm_state {
    const char *name; /* lower case, as users see it; static */
    uint32_t
        allowed; /* bit set (1 << state) of the states that may follow; 0 = final */
};

/*
 * Move *state to another state of the table.
 *
 * table     n_states rows, each with a name.
 * state     present state, 0 to n_states - 1; changed on success only.
 * to        the wanted state; any int.
 *
 * TP_ESTATE  the row of *state does not allow it; the message names both; nothing
 *            changed. A move to the same state needs its bit like any other.
 * TP_EINVAL  `to` is not a state of the table; nothing changed.
 */
int tp_fsm_move(const struct tp_fsm_state *table, size_t n_states, int *state, int to,
                struct tp_err *err);

/* Whether the table allows the move; false too for a value that is no state. */
bool tp_fsm_allows(const struct tp_fsm_state *table, size_t n_states, int from, int to);

/* Whether nothing may follow `state`; false for a value that is no state. */
bool tp_fsm_is_final(const struct tp_fsm_state *table, size_t n_states, int state);

/* The name of `state`, "unknown" for a value that is no state; never NULL. */
const char *tp_fsm_name(const struct tp_fsm_state *table, size_t n_states, int state);

/* The state with exactly these n bytes as its name, or -1. */
int tp_fsm_find(const struct tp_fsm_state *table, size_t n_states, const char *p,
                size_t n);

#endif
