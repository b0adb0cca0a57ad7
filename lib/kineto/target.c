#include "kineto/target.h"

#include "base/fsm.h"

#define TO(state) (1u << TP_KINETO_##state)

static const struct tp_fsm_state states[TP_KINETO_STATES] = {
    [TP_KINETO_IDLE] = {"idle",
                        TO(IDLE) | TO(ARMED) | TO(BUSY) | TO(LAGGING) | TO(GONE)},
    [TP_KINETO_ARMED] = {"armed", TO(IDLE) | TO(BUSY) | TO(GONE)},
    [TP_KINETO_BUSY] = {"busy", TO(BUSY) | TO(IDLE) | TO(LAGGING) | TO(GONE)},
    [TP_KINETO_LAGGING] = {"lagging", TO(LAGGING) | TO(IDLE) | TO(BUSY) | TO(GONE)},
    [TP_KINETO_GONE] = {"gone", 0},
};

const char *tp_kineto_state_name(int state)
{
    return tp_fsm_name(states, TP_KINETO_STATES, state);
}

bool tp_kineto_state_allows(int from, int to)
{
    return tp_fsm_allows(states, TP_KINETO_STATES, from, to);
}

int tp_kineto_state_move(int *state, int to, struct tp_err *err)
{
    return tp_fsm_move(states, TP_KINETO_STATES, state, to, err);
}
