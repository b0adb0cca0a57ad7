/*
 * now.h - the time of a call, as its caller read it from its clocks.
 *
 * Plain data. Deadlines run by the monotonic clock, so a step of the wall clock moves
 * none of them; what is stored and shown is wall time.
 */
#ifndef TP_ENGINE_NOW_H
#define TP_ENGINE_NOW_H

#include <stdint.h>

struct tp_now {
    uint64_t wall_ns; /* CLOCK_REALTIME: nanoseconds since 1970 */
    uint64_t mono_ns; /* CLOCK_MONOTONIC; any start, but one that does not go back */
};

#endif
