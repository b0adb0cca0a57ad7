/*
 * clock_line.h - from a producer's clock to the service's, by what was measured.
 *
 * Moments that both clocks were read at make a broken line; times between two of them
 * are on it, times outside go on with its mean slope. It grows, and so keeps order and
 * nesting. It reads no clock. One thread at a time; docs/stream-format.md, "Clocks".
 */
#ifndef TP_TRACE_CLOCK_LINE_H
#define TP_TRACE_CLOCK_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "trace/native_batch.h"

struct tp_err;

#define TP_CLOCK_POINTS_MAX 4096 /* of a line; measurements in between are left out */

/* Embed it; the zero value is a line without points. */
struct tp_clock_line {
    struct tp_native_clock *points; /* after tp_clock_line_finish(): by producer_ns */
    size_t n, cap;
    uint64_t n_left_out; /* measurements that cannot be true beside the others */
    double slope;        /* of the whole line, less 1 */
    size_t last;         /* the piece that was used last */
};

/* Release the points. All-zero is allowed. */
void tp_clock_line_fini(struct tp_clock_line *line);

/* Add a measurement; in any order, also again and again. TP_ENOMEM: it is not there. */
int tp_clock_line_add(struct tp_clock_line *line, const struct tp_native_clock *clock,
                      struct tp_err *err);

/* All measurements are there: sort them, leave out what contradicts or adds nothing. */
void tp_clock_line_finish(struct tp_clock_line *line);

/* The service's time of a moment. n > 0. Saturates at the ends of int64_t. */
int64_t tp_clock_line_map(struct tp_clock_line *line, int64_t producer_ns);

/* By how much tp_clock_line_map() may be wrong at most, between two moments of the
 * producer's clock. n > 0. */
uint64_t tp_clock_line_error(const struct tp_clock_line *line, int64_t from_ns,
                             int64_t to_ns);

#endif
