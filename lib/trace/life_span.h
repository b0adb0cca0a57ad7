/*
 * life_span.h - whether a time lies in the life of a trace, for loops over events.
 *
 * A window moved to the clock that the times are of, as one difference and one
 * comparison. It says nothing about what becomes of events; seal.h does. Plain data;
 * safe from any thread.
 */
#ifndef TP_TRACE_LIFE_SPAN_H
#define TP_TRACE_LIFE_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/seal.h"

/* All-zero: no time is in it. */
struct tp_life_span {
    uint64_t from_ns;
    uint64_t n_ns; /* that are in it, from from_ns on */
};

/* The span of a window, for times to which add_ns is to be added. */
static inline struct tp_life_span tp_life_span_of(const struct tp_seal_window *w,
                                                  int64_t add_ns)
{
    if (w->to_ns == 0)
        return (struct tp_life_span){0};
    return (struct tp_life_span){(uint64_t)w->from_ns - (uint64_t)add_ns,
                                 (uint64_t)w->to_ns - (uint64_t)w->from_ns + 1};
}

/* Whether a time is in it. */
static inline bool tp_life_span_has(const struct tp_life_span *life, int64_t ts_ns)
{
    return (uint64_t)ts_ns - life->from_ns < life->n_ns;
}

#endif
