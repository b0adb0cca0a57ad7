/*
 * name_counts.h - how often and how long: by type, and by type and name.
 *
 * Counts the events of one stream for its summary, in bounded memory: when the table of
 * names is full, the half that took the least time is forgotten, and it is remembered
 * that this happened. Types are few and are all kept up to a limit. One thread at a
 * time.
 */
#ifndef TP_TRACE_NAME_COUNTS_H
#define TP_TRACE_NAME_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/event.h"
#include "trace/stream_index.h"

struct tp_name_counts;

/* Zero means the default, where one is named. */
struct tp_name_counts_opts {
    uint32_t names_max; /* pairs of type and name kept; default 65536 */
    uint32_t types_max; /* default 4096; events of more types are not counted */
    size_t bytes_max;   /* of types and names; default 8 MiB */
};

/*
 * Create an empty count; opts may be NULL.
 *
 * out  set only on success; release it with tp_name_counts_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_name_counts_new(const struct tp_name_counts_opts *opts,
                       struct tp_name_counts **out, struct tp_err *err);

/* Release it. NULL is allowed. */
void tp_name_counts_free(struct tp_name_counts *c);

/*
 * Count an event: its type by ev->cat, and its name too unless it is a flow.
 *
 * ev  ts_ns and dur_ns not negative. Names with the same iid must be the same bytes for
 *     all calls, those of cat and of name apart.
 *
 * TP_ENOMEM  it is not counted, or only its type is.
 */
int tp_name_counts_add(struct tp_name_counts *c, const struct tp_event *ev,
                       struct tp_err *err);

/* The counts by type, in the order of first sight; *n gets their number. They and their
 * texts live until the next call but this and the next two. */
const struct tp_index_type *tp_name_counts_types(const struct tp_name_counts *c,
                                                 size_t *n);

/*
 * Sort the names: most time first, then most often, then by bytes.
 *
 * n  gets their number.
 */
const struct tp_index_name *tp_name_counts_top(struct tp_name_counts *c, size_t *n);

/* Whether every name and type that came is still there. */
bool tp_name_counts_is_complete(const struct tp_name_counts *c);

#endif
