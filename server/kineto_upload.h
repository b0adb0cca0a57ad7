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
 * Read a file to its end and put it into the trace as the data of its producer. The
 * same file again adds nothing.
 *
 * note  note_bytes; what is to be known about a file that was taken: "" = nothing.
 *
 * TP_EINVAL  it is not readable as a trace, or has the trace_id of another request.
 * Others as tp_engine_upload_begin() and _commit().
 */
int tp_kineto_upload(struct tp_engine *engine, const struct tp_kineto_file *file,
                     char *note, size_t note_bytes, struct tp_err *err);

/*
 * The value of the top-level member "trace_id" in the head of a file.
 *
 * Returns false when it has none before its events: files of 2024 do not.
 */
bool tp_kineto_find_trace_id(struct tp_str head, struct tp_str *out);

#endif
