/*
 * kineto_options.h - the member `kineto` of a request for a trace.
 *
 * Pure functions; safe from any thread.
 */
#ifndef TP_ENGINE_KINETO_OPTIONS_H
#define TP_ENGINE_KINETO_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct tp_err;
struct tp_problem;

#define TP_KINETO_WARMUP_MS 5000 /* Kineto's own default */
#define TP_KINETO_DURATION_MS 500

/* Plain data, copied. */
struct tp_kineto_options {
    bool record_shapes, with_stack, with_flops, with_modules, profile_memory;
    uint64_t warmup_ms; /* whole seconds */
    uint64_t iterations;
    uint64_t iteration_roundup;
};

/*
 * Read the member.
 *
 * json  an object as JSON text; empty gives the defaults.
 * out   written on success only.
 *
 * TP_EINVAL  (INVALID, with the field as "kineto.x") a member that is unknown, of
 * another kind, or out of its range. TP_ENOMEM.
 */
int tp_kineto_options_read(struct tp_str json, struct tp_kineto_options *out,
                           struct tp_problem *problem, struct tp_err *err);

#endif
