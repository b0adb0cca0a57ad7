/*
 * config_text.h - the text of a Kineto configuration, built from checked parts.
 *
 * libkineto drops a text that it does not like without telling anybody, and older
 * releases end the process over it. So no text of a client goes through: the lines are
 * written from numbers, flags, known types and two names of a narrow alphabet. It never
 * writes PROFILE_MEMORY, after which a thread of the process spins for ever. Pure;
 * safe from any thread.
 */
#ifndef TP_KINETO_CONFIG_TEXT_H
#define TP_KINETO_CONFIG_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "core/typeset.h"

struct tp_buf;
struct tp_err;

#define TP_KINETO_SUFFIX ".pt.trace.json"
#define TP_KINETO_PATH_MAX_BYTES 1024
#define TP_KINETO_TRACE_ID_MAX_BYTES 128
#define TP_KINETO_NUMBER_MAX INT32_MAX /* libkineto reads no larger integer */

/* Plain data. The zero value lacks a path, an end and an id. */
struct tp_kineto_config {
    struct tp_str folder; /* what log_file must lie in: "/tmp", or what the process was
                             told by KINETO_ONDEMAND_TRACE_DIR */
    struct tp_str
        log_file; /* absolute, of [A-Za-z0-9._/-], ends in TP_KINETO_SUFFIX and
                               has no ".json" before; the process puts "_<pid>" before
                               the suffix */
    uint64_t start_wall_ms;     /* since the epoch; 0 with iterations: the next one */
    uint64_t duration_ms;       /* 1 to TP_KINETO_NUMBER_MAX; 0 with iterations */
    uint64_t warmup_s;          /* up to TP_KINETO_WARMUP_MAX_S */
    uint64_t iterations;        /* 0 = by duration; up to TP_KINETO_NUMBER_MAX */
    uint64_t iteration_roundup; /* start at a multiple of it; 0 = at any */
    bool has_types;             /* false: Kineto's defaults */
    struct tp_typeset types;    /* static ids that the process knows */
    bool record_shapes, profile_memory, with_stack, with_flops, with_modules;
    struct tp_str trace_id; /* 1 to TP_KINETO_TRACE_ID_MAX_BYTES of [A-Za-z0-9_-] */
};

/*
 * Append the text.
 *
 * TP_EINVAL  a part is one that libkineto would drop or misread; the message names it.
 * TP_ENOMEM, TP_EQUOTA. Nothing was appended.
 */
int tp_kineto_config_write(const struct tp_kineto_config *config, struct tp_buf *out,
                           struct tp_err *err);

/*
 * The static types that every release of libkineto of an age knows by name; one that it
 * does not know spoils the whole text.
 *
 * is_old  it polls with types 3 and 1, so it is from before 2026-07-24.
 */
struct tp_typeset tp_kineto_known_types(bool is_old);

#endif
