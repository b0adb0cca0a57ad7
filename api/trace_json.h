/*
 * trace_json.h - a trace as JSON: the one place that knows how a view is written.
 *
 * openapi.yaml describes what comes out (Trace, TraceItem, TraceProgress). Pure
 * functions over a view; one thread at a time.
 */
#ifndef TP_API_TRACE_JSON_H
#define TP_API_TRACE_JSON_H

#include "api/json_out.h"

struct tp_counts;
struct tp_trace_view;

/* Write the members of a whole trace into an object that is open. */
void tp_trace_json(struct tp_json_out *o, const struct tp_trace_view *view);

/* Write the members that a list shows. */
void tp_trace_json_item(struct tp_json_out *o, const struct tp_trace_view *view);

/* Write the members of a progress message of a watch. */
void tp_trace_json_progress(struct tp_json_out *o, const struct tp_trace_view *view);

/* Write counts as one object. */
void tp_trace_json_counts(struct tp_json_out *o, const char *key,
                          const struct tp_counts *counts);

#endif
