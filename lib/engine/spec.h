/*
 * spec.h - what a trace was asked to be: checked, capped, and kept.
 *
 * Made once from a request, stored as one JSON document, read back at a restart;
 * immutable otherwise except for its warnings. One thread at a time.
 */
#ifndef TP_ENGINE_SPEC_H
#define TP_ENGINE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/filter.h"
#include "engine/kineto_options.h"
#include "engine/traces.h"

struct tp_buf;
struct tp_err;
struct tp_limits;
struct tp_pool;
struct tp_problem;

#define TP_SPEC_WARNINGS_MAX 8

/* Embed it; all-zero is valid and empty. Everything is owned by pool. */
struct tp_spec {
    struct tp_pool *pool;
    const struct tp_str *lists[TP_FILTER_LISTS];
    size_t n_lists[TP_FILTER_LISTS];
    uint64_t min_duration_ns;
    const uint32_t *ranks;
    size_t n_ranks;
    const struct tp_str *hosts;
    size_t n_hosts;
    const struct tp_str *producers;
    size_t n_producers;
    enum tp_trace_start start;
    uint64_t start_wall_ns;
    uint64_t start_step;
    uint64_t duration_ms; /* in effect */
    uint64_t steps;
    uint64_t max_bytes; /* in effect */
    bool duration_is_capped;
    bool max_bytes_is_capped;
    enum tp_trace_require require;
    uint32_t require_count;
    const char *label;
    const char *metadata;
    const char *kineto;
    const char *log_file; /* where files of Kineto processes go, too; "" = nowhere */
    struct tp_kineto_options kineto_options; /* what `kineto` says */
    uint64_t kineto_duration_ms;             /* what Kineto processes record */
    const char *warnings[TP_SPEC_WARNINGS_MAX];
    size_t n_warnings;
};

/*
 * Check a request and copy it with the caps applied. The filter is checked by
 * tp_filter_new(), not here.
 *
 * TP_EINVAL (INVALID), TP_EQUOTA (LIMIT_EXCEEDED), TP_ENOMEM: *out is untouched.
 */
int tp_spec_init(struct tp_spec *out, const struct tp_trace_request *request,
                 const struct tp_limits *limits, struct tp_problem *problem,
                 struct tp_err *err);

/* Release it. All-zero is allowed. */
void tp_spec_fini(struct tp_spec *spec);

/* Add a warning; the ninth and later are left out. TP_ENOMEM. */
int tp_spec_warn(struct tp_spec *spec, struct tp_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Append it as JSON text. TP_ENOMEM, TP_EQUOTA. */
int tp_spec_encode(const struct tp_spec *spec, struct tp_buf *out, struct tp_err *err);

/* Read it back. TP_EINVAL: no such document. TP_ENOMEM. *out is untouched. */
int tp_spec_decode(struct tp_str json, struct tp_spec *out, struct tp_err *err);

/* The filter part, borrowed from spec. */
struct tp_filter_spec tp_spec_filter(const struct tp_spec *spec);

#endif
