/*
 * slice_filter.h - which events of a stream a download shows.
 *
 * By type and by time; ranks are streams, which the caller chooses. It sees the events
 * of one stream in their order and remembers a little: a flow goes with the slice that
 * it touches, and the parts of an asynchronous operation or flow go with its begin. One
 * thread at a time.
 */
#ifndef TP_TRACE_SLICE_FILTER_H
#define TP_TRACE_SLICE_FILTER_H

#include <stdbool.h>

#include "trace/event.h"

struct tp_err;
struct tp_slice_filter;
struct tp_trace_slice;
struct tp_typemap;

/*
 * Create a filter for one stream.
 *
 * slice  borrowed.
 * types  maps a cat to its id; borrowed; may be NULL if slice->types is.
 * out    set only on success; release it with tp_slice_filter_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_slice_filter_new(const struct tp_trace_slice *slice,
                        const struct tp_typemap *types, struct tp_slice_filter **out,
                        struct tp_err *err);

/* Release a filter. NULL is allowed. */
void tp_slice_filter_free(struct tp_slice_filter *f);

/*
 * Whether the slice leaves out nothing, so that no filter is needed. NULL is whole.
 * Ranks do not count: they are chosen before.
 */
bool tp_slice_filter_is_whole(const struct tp_trace_slice *slice);

/*
 * Decide about the next event of the stream.
 *
 * passes  set on success.
 *
 * TP_ENOMEM  the event was not noted; the filter must not be used further.
 */
int tp_slice_filter_event(struct tp_slice_filter *f, const struct tp_event *ev,
                          bool *passes, struct tp_err *err);

#endif
