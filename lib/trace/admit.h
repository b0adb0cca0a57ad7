/*
 * admit.h - which events of a request a trace's filter lets in.
 *
 * Applies a tp_filter to events: it knows which kinds of events have a type, a name or
 * a duration to be judged, and remembers the answer for each name that the reader has
 * numbered. It stores nothing and counts nothing. One thread at a time.
 */
#ifndef TP_TRACE_ADMIT_H
#define TP_TRACE_ADMIT_H

#include <stdbool.h>

#include "base/err.h"
#include "trace/event.h"

struct tp_admit;
struct tp_filter;
struct tp_typemap;

/* What becomes of an event. */
enum tp_admission {
    TP_ADMIT_STORE,
    TP_ADMIT_GHOST, /* a BEGIN that is refused: its END has to go as well */
    TP_ADMIT_REFUSE
};

/*
 * Create one for the events of one reader.
 *
 * filter  may be NULL: all is let in. Borrowed, as types is, until the free.
 * types   may be NULL: no `cat` is a known type.
 * out     set only on success; release it with tp_admit_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_admit_new(const struct tp_filter *filter, const struct tp_typemap *types,
                 struct tp_admit **out, struct tp_err *err);

/* Release it. NULL is allowed. */
void tp_admit_free(struct tp_admit *a);

/*
 * Judge an event.
 *
 * - Metadata and flows have no type and are always let in; an END follows its BEGIN.
 * - All else is judged by its type. A `cat` that is no known type, or absent, is let in
 *   unless the filter includes certain types.
 * - Then by its name, and a SLICE by its duration.
 *
 * ev          a `cat` that is the number of a registered type is replaced by the type's
 *             name, which lives as long as the typemap.
 * is_untyped  whether the event has a type to be known by, and it is not known.
 *
 * TP_ENOMEM  nothing is known about the event.
 */
int tp_admit_judge(struct tp_admit *a, struct tp_event *ev, enum tp_admission *out,
                   bool *is_untyped, struct tp_err *err);

/*
 * Whether a slice that was let in says that all of its `cat` are, as far as they last
 * as long as *min_duration_ns.
 */
bool tp_admit_is_by_cat(const struct tp_admit *a, uint64_t *min_duration_ns);

#endif
