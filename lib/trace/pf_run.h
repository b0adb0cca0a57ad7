/*
 * pf_run.h - runs of slices as a linked producer writes them, without an event each.
 *
 * What is to be stored as it came has to be understood, but nobody needs its events:
 * when, how long and of which `cat` is all that is asked. A run is a way around
 * tp_pf_reader_next() for the slices of which nothing else can be said; it ends before
 * any other packet, which goes that way. It finds what that would find. Private to the
 * readers; one thread at a time.
 */
#ifndef TP_TRACE_PF_RUN_H
#define TP_TRACE_PF_RUN_H

#include <stddef.h>
#include <stdint.h>

struct tp_pf_cursor;
struct tp_pf_reader;

#define TP_PF_RUN_CATS 128u /* numbers of `cat` that a run can have */

/* What a run may have: set by who has seen such slices as events. */
struct tp_pf_run_opts {
    uint8_t takes[TP_PF_RUN_CATS]; /* by number of the `cat` of an event: not 0 = yes */
    uint64_t min_duration_ns;
};

/* A slice of a run. */
struct tp_pf_run_slice {
    int64_t ts_ns, end_ns; /* as it says; the end is not before the start */
    uint32_t cat;          /* its number in events */
};

/*
 * Take slices off the cursor, at most n.
 *
 * r    between two calls of tp_pf_reader_next(); its args are as they were.
 * out  n of them.
 *
 * Returns how many: 0 when the next packet is not for a run, or too few bytes follow.
 */
size_t tp_pf_reader_run(struct tp_pf_reader *r, struct tp_pf_cursor *c,
                        const struct tp_pf_run_opts *opts, struct tp_pf_run_slice *out,
                        size_t n);

#endif
