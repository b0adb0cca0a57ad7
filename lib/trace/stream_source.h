/*
 * stream_source.h - a sealed stream in a blob, event by event.
 *
 * Reads the blob in pieces with pread and hands them to a pf_reader that knows the
 * tracks of the index. With a time range it starts at the last block before which
 * nothing reaches into the range, and the first event behind the range is the last one
 * that it gives: slice_filter.h is what decides. Memory is bounded by the
 * longest packet. One thread at a time; the blob may be read by others too.
 */
#ifndef TP_TRACE_STREAM_SOURCE_H
#define TP_TRACE_STREAM_SOURCE_H

#include <stdbool.h>

#include "base/str.h"
#include "trace/event.h"

struct tp_blob;
struct tp_err;
struct tp_stream_index;
struct tp_stream_source;
struct tp_trace_slice;

/*
 * Open a source at its first event.
 *
 * blob, index, slice  borrowed until tp_stream_source_close(); slice may be NULL.
 * out                 set only on success.
 *
 * TP_ENOMEM, TP_EQUOTA  nothing was opened: no memory, or more tracks than a reader
 *                       takes.
 */
int tp_stream_source_open(struct tp_blob *blob, const struct tp_stream_index *index,
                          const struct tp_trace_slice *slice,
                          struct tp_stream_source **out, struct tp_err *err);

/* Close a source. NULL is allowed. */
void tp_stream_source_close(struct tp_stream_source *s);

/*
 * Go to the next event.
 *
 * has_event  false at the end; then *ev is not set.
 * packets    the whole packets that were passed since the last call, those of the event
 *            included; may be NULL. Lives, as the event does, until the next call.
 *
 * TP_EAGAIN  no event yet, but packets to take before more is read; call again.
 *            Only when packets is not NULL.
 * TP_EIO     the blob could not be read, is shorter than its index says, or is damaged:
 *            what was read so far is not all or not right, and must not be taken for
 *            all. When the whole stream is read, any damage is noticed, at the end at
 *            the latest; when a part is, only what is no event is.
 * TP_ENOMEM  likewise final.
 */
int tp_stream_source_next(struct tp_stream_source *s, struct tp_event *ev,
                          bool *has_event, struct tp_str *packets, struct tp_err *err);

#endif
