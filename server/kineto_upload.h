/*
 * kineto_upload.h - one file of a Kineto process into its trace.
 *
 * Any thread.
 */
#ifndef TP_SERVER_KINETO_UPLOAD_H
#define TP_SERVER_KINETO_UPLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_engine;
struct tp_err;

/* Plain data. */
struct tp_kineto_file {
    const char *trace_id;
    const char *producer_id;
    const char *name;
    int fd;
};

/*
 * Read a file to its end and put it into the trace as the data of its producer, without
 * the path that it says it is at. The same file again adds nothing.
 *
 * note  note_bytes; what is to be known about a file that was taken, for example that
 *       it has no trace_id, so that nobody can tell whose it is; "" = nothing.
 *
 * is_for_now  set on failure: it is none of the file's, such as a full disk or too few
 *   descriptors, so it may be tried again later.
 *
 * TP_EINVAL  it is not readable as a trace, or has, anywhere, the trace_id of another
 *   request; nothing of it is in the trace.
 * Others as tp_engine_upload_begin() and _commit().
 */
int tp_kineto_upload(struct tp_engine *engine, const struct tp_kineto_file *file,
                     char *note, size_t note_bytes, bool *is_for_now,
                     struct tp_err *err);

#endif
