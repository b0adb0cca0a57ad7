/*
 * ticks.h - the clock that events are recorded with, and what its ticks are in
 * nanoseconds.
 *
 * A tick is one of the processor's time stamp counter where that is invariant (it runs
 * at one rate in all states and on all cores) and neither the kernel nor the variable
 * TRACEPLANE_CLOCK=monotonic says no, else a nanosecond of CLOCK_MONOTONIC. A
 * line says what a tick is on the producer's clock: the wall clock when the process
 * made its first recorder, and from then on what CLOCK_MONOTONIC has advanced. The
 * clock never steps. Private to the library; safe from any thread.
 */
#ifndef TP_PRODUCER_TICKS_H
#define TP_PRODUCER_TICKS_H

#include <stdbool.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* ns + (ticks - this->ticks) * mult / 2^32. Plain data. */
struct tp_ticks_line {
    uint64_t ticks;
    uint64_t ns; /* since 1970 */
    uint64_t mult;
};

/* Whether ticks are those of the counter. Set once, by tp_ticks_init(). */
extern bool tp_ticks_are_tsc;

/* CLOCK_MONOTONIC in nanoseconds. Not inline: its buffer would give each function that
 * records a frame, and a canary to look after. */
uint64_t tp_ticks_monotonic(void);

/* Whether tp_ticks_at_hand() may be called: the clock is read without a call. */
static inline bool tp_ticks_are_at_hand(void)
{
#if defined(__x86_64__)
    return __builtin_expect(tp_ticks_are_tsc, 1);
#else
    return false;
#endif
}

/* As tp_ticks_now() for a function that wants no frame. */
static inline uint64_t tp_ticks_at_hand(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
}

/* The present tick. Only after tp_ticks_init(). */
static inline uint64_t tp_ticks_now(void)
{
    return tp_ticks_are_at_hand() ? tp_ticks_at_hand() : tp_ticks_monotonic();
}

/* What a tick is in nanoseconds since 1970. */
static inline uint64_t tp_ticks_ns(const struct tp_ticks_line *line, uint64_t ticks)
{
    __int128 past = (int64_t)(ticks - line->ticks);

    return line->ns + (uint64_t)(past * line->mult >> 32);
}

/* A number of ticks in nanoseconds; below 2^64 of them. */
static inline uint64_t tp_ticks_span_ns(const struct tp_ticks_line *line,
                                        uint64_t ticks)
{
    return (uint64_t)((unsigned __int128)ticks * line->mult >> 32);
}

/* The tick of a time, the inverse of tp_ticks_ns(). */
uint64_t tp_ticks_at(const struct tp_ticks_line *line, uint64_t ns);

/* Look what there is and measure it for the first time: takes some 0.1 ms. Idempotent;
 * tp_now() may come before it. */
void tp_ticks_init(void);

/* Measure the rate again if that makes it much better known, which takes twice the time
 * that the last one was measured over; the clock goes on from where it is. Before each
 * trace, so that a line does not change while one is recorded. */
void tp_ticks_calibrate(void);

/* For fork(): nobody may be measuring meanwhile. */
void tp_ticks_lock(void);
void tp_ticks_unlock(void);

/* The line at present; it lives for ever. */
const struct tp_ticks_line *tp_ticks_line(void);

#endif
