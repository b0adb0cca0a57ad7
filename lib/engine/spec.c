#include "engine/spec.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/limits.h"
#include "engine/check.h"
#include "engine/pool.h"
#include "engine/problem.h"

static const struct tp_str *copy_texts(struct tp_pool *pool, const struct tp_str *items,
                                       size_t n)
{
    struct tp_str *out = tp_pool_array(pool, n, sizeof(*out));

    for (size_t i = 0; i < n && out != NULL; i++)
        out[i] = (struct tp_str){tp_pool_str(pool, items[i]), items[i].len};
    return out;
}

static int check_list(const char *field, const struct tp_str *items, size_t n,
                      const struct tp_limits *limits, struct tp_problem *problem,
                      struct tp_err *err)
{
    char name[48];
    int rc = TP_OK;

    if (n > limits->select_entries) {
        rc = tp_problem_limit(problem, "max-select-entries", "entries",
                              limits->select_entries, n, err);
        tp_fail_prefix(err, "%s", field);
    }
    for (size_t i = 0; i < n && rc == TP_OK; i++) {
        snprintf(name, sizeof(name), "%s[%zu]", field, i);
        if (items[i].len == 0)
            rc = tp_problem_invalid(problem, name,
                                    tp_fail(err, TP_EINVAL, "%s is empty", name));
        else
            rc = tp_check_text(name, items[i], "max-label-bytes", limits->label_bytes,
                               problem, err);
    }
    return rc;
}

/* What a filter may hold; what its words mean is checked against the registry. */
static int check_filter(const struct tp_filter_spec *filter,
                        const struct tp_limits *limits, struct tp_problem *problem,
                        struct tp_err *err)
{
    for (int l = 0; l < TP_FILTER_LISTS; l++) {
        if (filter->lists[l].n > limits->filter_entries)
            return tp_problem_limit(problem, "max-filter-entries", "entries",
                                    limits->filter_entries, filter->lists[l].n, err);
        for (size_t i = 0; i < filter->lists[l].n; i++) {
            size_t n = filter->lists[l].items[i].len;

            if (n > limits->filter_entry_bytes)
                return tp_problem_limit(problem, "max-filter-entry-bytes", "bytes",
                                        limits->filter_entry_bytes, n, err);
        }
    }
    return TP_OK;
}

static int check_start(const struct tp_trace_request *r, struct tp_problem *problem,
                       struct tp_err *err)
{
    if (r->start == TP_START_AT &&
        (r->start_wall_ns == 0 || r->start_wall_ns > INT64_MAX))
        return tp_problem_invalid(problem, "start.at",
                                  tp_fail(err, TP_EINVAL, "start.at is not a time"));
    if (r->start > TP_START_STEP)
        return tp_problem_invalid(problem, "start",
                                  tp_fail(err, TP_EINVAL, "start is not one of ours"));
    return TP_OK;
}

static int check_json(const char *field, struct tp_str json,
                      const struct tp_limits *limits, struct tp_problem *problem,
                      struct tp_err *err)
{
    int rc;

    if (json.len <= limits->metadata_bytes)
        return TP_OK;
    rc = tp_problem_limit(problem, "max-metadata-bytes", "bytes",
                          limits->metadata_bytes, json.len, err);
    tp_fail_prefix(err, "%s", field);
    return rc;
}

static int check(const struct tp_trace_request *r, const struct tp_limits *limits,
                 struct tp_problem *problem, struct tp_err *err)
{
    int rc;

    if (r->n_ranks > limits->select_entries)
        return tp_problem_limit(problem, "max-select-entries", "entries",
                                limits->select_entries, r->n_ranks, err);
    rc = check_filter(&r->filter, limits, problem, err);
    if (rc == TP_OK)
        rc = check_list("select.hosts", r->hosts, r->n_hosts, limits, problem, err);
    if (rc == TP_OK)
        rc = check_list("select.producers", r->producers, r->n_producers, limits,
                        problem, err);
    if (rc == TP_OK)
        rc = check_start(r, problem, err);
    if (rc == TP_OK)
        rc = tp_check_text("label", r->label, "max-label-bytes", limits->label_bytes,
                           problem, err);
    if (rc == TP_OK)
        rc = check_json("metadata", r->metadata_json, limits, problem, err);
    if (rc == TP_OK)
        rc = check_json("kineto", r->kineto_json, limits, problem, err);
    return rc;
}

/* The cap, when nothing was asked for or more than it. */
static uint64_t cap(uint64_t asked, uint64_t most, bool *is_capped)
{
    *is_capped = asked == 0 || asked > most;
    return *is_capped ? most : asked;
}

int tp_spec_init(struct tp_spec *out, const struct tp_trace_request *r,
                 const struct tp_limits *limits, struct tp_problem *problem,
                 struct tp_err *err)
{
    struct tp_spec s = {0};
    uint32_t *ranks;
    int rc = check(r, limits, problem, err);

    if (rc == TP_OK)
        rc = tp_kineto_options_read(r->kineto_json, &s.kineto_options, problem, err);
    if (rc != TP_OK)
        return rc;
    s.pool = tp_pool_new();
    for (int i = 0; i < TP_FILTER_LISTS; i++) {
        s.n_lists[i] = r->filter.lists[i].n;
        s.lists[i] = copy_texts(s.pool, r->filter.lists[i].items, s.n_lists[i]);
    }
    s.min_duration_ns = r->filter.min_duration_ns;
    ranks = tp_pool_array(s.pool, r->n_ranks, sizeof(*ranks));
    if (ranks != NULL)
        memcpy(ranks, r->ranks, r->n_ranks * sizeof(*ranks));
    s.ranks = ranks;
    s.n_ranks = r->n_ranks;
    s.hosts = copy_texts(s.pool, r->hosts, r->n_hosts);
    s.n_hosts = r->n_hosts;
    s.producers = copy_texts(s.pool, r->producers, r->n_producers);
    s.n_producers = r->n_producers;
    s.start = r->start;
    s.start_wall_ns = r->start == TP_START_AT ? r->start_wall_ns : 0;
    s.start_step = r->start == TP_START_STEP ? r->start_step : 0;
    s.duration_ms =
        cap(r->stop_duration_ms, limits->trace_duration_ms, &s.duration_is_capped);
    s.kineto_duration_ms = r->stop_duration_ms == 0 ? TP_KINETO_DURATION_MS
                                                    : s.duration_ms;
    s.steps = r->stop_steps;
    s.max_bytes = cap(r->stop_max_bytes, limits->trace_bytes, &s.max_bytes_is_capped);
    s.require = r->require;
    s.require_count = r->require_count;
    s.label = tp_pool_str(s.pool, r->label);
    s.metadata = tp_pool_str(s.pool, r->metadata_json);
    s.kineto = tp_pool_str(s.pool, r->kineto_json);
    s.log_file = tp_pool_str(s.pool, r->log_file);
    if (tp_pool_has_failed(s.pool)) {
        tp_spec_fini(&s);
        return tp_fail(err, TP_ENOMEM, "no memory for a trace");
    }
    *out = s;
    return TP_OK;
}

void tp_spec_fini(struct tp_spec *spec)
{
    if (spec == NULL)
        return;
    tp_pool_free(spec->pool);
    memset(spec, 0, sizeof(*spec));
}

int tp_spec_warn(struct tp_spec *spec, struct tp_err *err, const char *format, ...)
{
    char text[512];
    va_list args;

    if (spec->n_warnings == TP_SPEC_WARNINGS_MAX)
        return TP_OK;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    spec->warnings[spec->n_warnings] = tp_pool_text(spec->pool, text);
    if (tp_pool_has_failed(spec->pool))
        return tp_fail(err, TP_ENOMEM, "no memory for a trace");
    spec->n_warnings++;
    return TP_OK;
}

struct tp_filter_spec tp_spec_filter(const struct tp_spec *spec)
{
    struct tp_filter_spec f = {.min_duration_ns = spec->min_duration_ns};

    for (int i = 0; i < TP_FILTER_LISTS; i++) {
        f.lists[i].items = spec->lists[i];
        f.lists[i].n = spec->n_lists[i];
    }
    return f;
}
