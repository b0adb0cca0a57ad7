/*
 * summary.h - a trace in numbers: per rank and type, the top names, the stragglers.
 *
 * Made from the indexes of sealed streams alone; no event is read. Streams of one rank
 * are added up; a stream without a rank stands for itself. A summary owns all its
 * texts. Immutable once made, so any thread may read it.
 */
#ifndef TP_TRACE_SUMMARY_H
#define TP_TRACE_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_buf;
struct tp_err;
struct tp_merge_stream;
struct tp_summary_memory; /* summary.c */

#define TP_SUMMARY_NAMES_DEFAULT 10

/*
 * Who is slow. A rank is a straggler in a type when the time of all its events of that
 * type together is more than this over the median of all ranks that have the type (the
 * lower one of two middle ranks), and by at least this much time. The same is
 * asked of the span from the first to the last event of each rank, with no type. A rank
 * that others wait for shows up with *less* time in collectives than they have.
 */
#define TP_SUMMARY_STRAGGLER_PERCENT 20
#define TP_SUMMARY_STRAGGLER_NS 1000000

/* All events of one name in a type. Durations in ns; of slices only. */
struct tp_summary_name {
    struct tp_str name;
    uint64_t count, total_ns, min_ns, max_ns;
};

/* All events of one type in a rank. Times are absolute, in ns. */
struct tp_summary_type {
    struct tp_str cat; /* empty: events without one */
    uint64_t count, total_ns;
    int64_t first_ns, last_ns;           /* earliest start, latest end */
    const struct tp_summary_name *names; /* most time first, then most events */
    size_t n_names;
    bool names_are_complete;
};

/* A rank, or a stream without one. */
struct tp_summary_rank {
    bool has_rank;
    uint32_t rank;
    struct tp_str producer, host; /* of its first stream */
    uint64_t count;
    int64_t first_ns, last_ns;           /* 0, 0 when there are no events */
    const struct tp_summary_type *types; /* most time first, then most events */
    size_t n_types;
};

struct tp_summary_straggler {
    uint32_t rank;
    bool is_span; /* of the whole rank; then cat is empty */
    struct tp_str cat;
    uint64_t value_ns, median_ns;
    size_t n_ranks; /* that the median is of */
};

/* Plain data; release it with tp_summary_free(). */
struct tp_summary {
    const struct tp_summary_rank *ranks; /* in the order of the streams */
    size_t n_ranks;
    const struct tp_summary_straggler *stragglers; /* furthest over the median first */
    size_t n_stragglers;
    struct tp_summary_memory *memory; /* private */
};

/*
 * Make a summary.
 *
 * streams  n of them, by rank; borrowed for the call only.
 * n_names  most names of a type; 0 = TP_SUMMARY_NAMES_DEFAULT.
 * out      set only on success.
 *
 * TP_ENOMEM  nothing was made.
 */
int tp_summary_new(const struct tp_merge_stream *streams, size_t n, size_t n_names,
                   struct tp_summary **out, struct tp_err *err);

/* Release a summary. NULL is allowed. */
void tp_summary_free(struct tp_summary *s);

/*
 * Append a summary as a JSON object with the members "ranks" and "stragglers".
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); out has a useless beginning.
 */
int tp_summary_write(const struct tp_summary *s, struct tp_buf *out,
                     struct tp_err *err);

#endif
