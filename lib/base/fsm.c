#include "base/fsm.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"

static bool is_state(size_t n_states, int state)
{
    return state >= 0 && (size_t)state < n_states;
}

bool tp_fsm_allows(const struct tp_fsm_state *table, size_t n_states, int from, int to)
{
    assert(n_states <= 32);
    return is_state(n_states, from) && is_state(n_states, to) &&
           (table[from].allowed >> to & 1) != 0;
}

int tp_fsm_move(const struct tp_fsm_state *table, size_t n_states, int *state, int to,
                struct tp_err *err)
{
    assert(is_state(n_states, *state));
    if (!is_state(n_states, to))
        return tp_fail(err, TP_EINVAL, "%d is not a state", to);
    if (!tp_fsm_allows(table, n_states, *state, to))
        return tp_fail(err, TP_ESTATE, "no move leads from '%s' to '%s'",
                       table[*state].name, table[to].name);
    *state = to;
    return TP_OK;
}

bool tp_fsm_is_final(const struct tp_fsm_state *table, size_t n_states, int state)
{
    return is_state(n_states, state) && table[state].allowed == 0;
}

const char *tp_fsm_name(const struct tp_fsm_state *table, size_t n_states, int state)
{
    return is_state(n_states, state) ? table[state].name : "unknown";
}

int tp_fsm_find(const struct tp_fsm_state *table, size_t n_states, const char *p,
                size_t n)
{
    for (size_t i = 0; i < n_states; i++) {
        if (strlen(table[i].name) == n && memcmp(table[i].name, p, n) == 0)
            return (int)i;
    }
    return -1;
}
