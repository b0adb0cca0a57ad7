/*
 * config_read.h - what a client of dynolog's wants, from the configuration it sends.
 *
 * The text that dynolog passes on to processes unread: lines "KEY=VALUE". Here it is
 * read, and no byte of it goes to a process; config_text.h writes what does. A key that
 * is not known is refused, since to leave it out would not be what was asked for. Pure;
 * safe from any thread.
 */
#ifndef TP_KINETO_CONFIG_READ_H
#define TP_KINETO_CONFIG_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct tp_err;

/* Plain data; texts point into what was read. Zero means "not said". */
struct tp_kineto_wish {
    struct tp_str log_file; /* where the client expects the file, before its suffix */
    struct tp_str types;    /* a list with commas, as written */
    uint64_t start_wall_ms; /* since the epoch */
    uint64_t duration_ms;
    uint64_t iterations, iteration_roundup;
    bool has_warmup;
    uint64_t warmup_s;
    bool record_shapes, profile_memory, with_stack, with_flops, with_modules;
    bool wants_snapshot; /* a snapshot of memory, which we never ask a process for */
};

/*
 * Read a text; any bytes give a result.
 *
 * TP_EINVAL  a line, key or value; the message names it and the line. *out is as it
 *            was.
 */
int tp_kineto_config_read(struct tp_str text, struct tp_kineto_wish *out,
                          struct tp_err *err);

#endif
