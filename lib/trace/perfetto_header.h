/*
 * perfetto_header.h - what stands before the streams of a Perfetto download.
 *
 * Packets that introduce each stream's sequence, its processes, threads, lanes and
 * counters, and the download's description of itself: whole as a private packet, and
 * as metadata that Perfetto shows (table `metadata`, names "cr-traceplane..."). Behind
 * it the sealed streams follow as they are. docs/trace-format.md is for readers. No
 * I/O; safe from any thread on a buffer of its own.
 */
#ifndef TP_TRACE_PERFETTO_HEADER_H
#define TP_TRACE_PERFETTO_HEADER_H

#include <stddef.h>
#include <stdint.h>

struct tp_buf;
struct tp_err;
struct tp_merge;
struct tp_trace_info;
struct tp_trace_slice;

/*
 * Append the description of the download.
 *
 * slice    may be NULL.
 * base_ns  as tp_merge_base_ns().
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); out may hold a part.
 */
int tp_perfetto_header_info(const struct tp_merge *m, const struct tp_trace_info *info,
                            const struct tp_trace_slice *slice, int64_t base_ns,
                            struct tp_buf *out, struct tp_err *err);

/*
 * Append what introduces one stream of the plan. Errors as tp_perfetto_header_info().
 *
 * stream  place in the plan.
 * info    of whose types counters have their units.
 */
int tp_perfetto_header_stream(const struct tp_merge *m, size_t stream,
                              const struct tp_trace_info *info, struct tp_buf *out,
                              struct tp_err *err);

#endif
