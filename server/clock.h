/*
 * clock.h - the one place where the service reads its clocks.
 *
 * Header only; safe from any thread.
 */
#ifndef TP_SERVER_CLOCK_H
#define TP_SERVER_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "engine/now.h"

/* Nanoseconds of a clock. */
static inline uint64_t tp_clock_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Both clocks, as the engine wants them. */
static inline struct tp_now tp_clock_now(void)
{
    return (struct tp_now){.wall_ns = tp_clock_ns(CLOCK_REALTIME),
                           .mono_ns = tp_clock_ns(CLOCK_MONOTONIC)};
}

#endif
