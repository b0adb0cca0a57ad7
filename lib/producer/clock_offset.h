/*
 * clock_offset.h - how far the service's clock is ahead of ours, and how sure that is.
 *
 * From exchanges of four times, as NTP does it: the best one counts, and wears out as
 * clocks drift apart. It reads no clock. Plain data without a lock. Pure functions.
 */
#ifndef TP_PRODUCER_CLOCK_OFFSET_H
#define TP_PRODUCER_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

#include "producer/wire.h"

#define TP_CLOCK_DRIFT_DIVISOR 10000 /* clocks part by at most 100 ppm */

/* The zero value knows nothing. */
struct tp_clock_offset {
    bool is_known;
    int64_t offset_ns; /* the service's clock minus ours */
    uint64_t error_ns; /* right to plus or minus this at at_ns */
    int64_t at_ns;     /* by our clock: the middle of the exchange */
};

/*
 * Take an exchange in if it is better than what is known. One that cannot be (an answer
 * before its question) is ignored.
 *
 * Returns whether it was taken.
 */
bool tp_clock_offset_take(struct tp_clock_offset *o, const struct tp_exchange *x);

/* A time of the service by our clock; the same time when nothing is known. */
int64_t tp_clock_offset_local(const struct tp_clock_offset *o, int64_t server_ns);

#endif
