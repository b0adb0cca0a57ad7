#include "producer/clock_offset.h"

bool tp_clock_offset_take(struct tp_clock_offset *o, const struct tp_exchange *x)
{
    int64_t there, back, round, parted;
    uint64_t age, worn, error;

    if (x->sent_ns <= 0 || x->received_ns < x->sent_ns || x->server_received_ns <= 0 ||
        x->server_sent_ns < x->server_received_ns)
        return false;
    there = x->server_received_ns - x->sent_ns;
    back = x->server_sent_ns - x->received_ns;
    /* On the way, both ways together: what is missing of it is what the clocks have
     * parted while the service held the answer, which is not known. */
    parted = (x->server_sent_ns - x->server_received_ns) / TP_CLOCK_DRIFT_DIVISOR;
    round = there - back + parted;
    if (round < 0)
        return false;
    error = (uint64_t)round / 2 + 1;
    age = x->received_ns > o->at_ns ? (uint64_t)(x->received_ns - o->at_ns) : 0;
    worn = o->error_ns + age / TP_CLOCK_DRIFT_DIVISOR;
    if (o->is_known && error > worn)
        return false;
    o->is_known = true;
    o->offset_ns = there / 2 + back / 2;
    o->error_ns = error;
    o->at_ns = x->sent_ns + (x->received_ns - x->sent_ns) / 2;
    return true;
}

int64_t tp_clock_offset_local(const struct tp_clock_offset *o, int64_t server_ns)
{
    return o->is_known ? server_ns - o->offset_ns : server_ns;
}
