/*
 * chrome_head.h - what stands around the events of a Chrome trace file.
 *
 * The top-level members in Kineto's order, the source file's own ones and ours. The
 * same members, as one object, are the self-description inside a Perfetto file.
 * docs/trace-format.md is for readers. No I/O; safe from any thread on a buffer of its
 * own.
 */
#ifndef TP_TRACE_CHROME_HEAD_H
#define TP_TRACE_CHROME_HEAD_H

#include <stddef.h>
#include <stdint.h>

struct tp_buf;
struct tp_err;
struct tp_merge;
struct tp_trace_info;
struct tp_trace_slice;

/* In a merge, the sources' members together; what is over it is left out and said so.
 */
#define TP_CHROME_HEAD_SOURCES_BYTES ((size_t)4 << 20)

/*
 * Append `{`, all members, and `"traceEvents": [`.
 *
 * slice    may be NULL.
 * base_ns  as tp_merge_base_ns().
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); out has a useless beginning.
 */
int tp_chrome_head_write(const struct tp_merge *m, const struct tp_trace_info *info,
                         const struct tp_trace_slice *slice, int64_t base_ns,
                         struct tp_buf *out, struct tp_err *err);

/* Append what ends the file; errors as tp_buf_append(). */
int tp_chrome_head_write_end(struct tp_buf *out, struct tp_err *err);

/* Append the members as one object on their own; as tp_chrome_head_write(). */
int tp_chrome_head_write_object(const struct tp_merge *m,
                                const struct tp_trace_info *info,
                                const struct tp_trace_slice *slice, int64_t base_ns,
                                struct tp_buf *out, struct tp_err *err);

#endif
