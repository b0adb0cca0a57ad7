/*
 * stream_log_recover.h - reads a log from front to back and makes it sound.
 *
 * Private to stream_log. It changes the blob only where it is damaged; done twice, it
 * finds nothing the second time. One thread at a time.
 */
#ifndef TP_TRACE_STREAM_LOG_RECOVER_H
#define TP_TRACE_STREAM_LOG_RECOVER_H

#include "trace/stream_log.h"

/* Takes each kept frame and its offset; a non-zero answer ends the recovery. */
typedef int (*tp_stream_log_frame_fn)(const struct tp_frame *frame, uint64_t offset,
                                      struct tp_err *err, void *arg);

/*
 * Recover a log.
 *
 * blob      open for appending.
 * on_frame  called for each frame that is kept.
 * report    filled in; on failure, in part.
 *
 * TP_EIO, TP_EQUOTA, TP_ENOMEM  see tp_stream_log_open(). Others: of on_frame.
 */
int tp_stream_log_recover(struct tp_blob *blob, tp_stream_log_frame_fn on_frame,
                          void *arg, struct tp_stream_log_report *report,
                          struct tp_err *err);

#endif
