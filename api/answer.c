/*
 * answer.c - the frame around every good answer, and parameters.
 */
#include "api/answer.h"

#include <string.h>

#include "api/problem.h"
#include "api/service.h"
#include "base/timefmt.h"
#include "core/limits.h"
#include "engine/jobs.h"

#define LIST_DEFAULT_ITEMS 100

void tp_answer_open(struct tp_call *call, int status, struct tp_json_out *o)
{
    call->status = status;
    call->content_type = "application/json";
    call->out.len = 0;
    tp_json_out_init(o, &call->out);
    tp_json_out_object(o, NULL);
}

void tp_answer_close(struct tp_call *call, struct tp_json_out *o)
{
    struct tp_err err = {0};
    int rc;

    tp_json_out_close_object(o);
    rc = tp_json_out_end(o, &err);
    if (rc == TP_OK)
        rc = tp_buf_append(&call->out, "\n", 1, &err);
    if (rc != TP_OK)
        tp_problem_engine(call, rc, NULL, &err);
}

void tp_answer_empty(struct tp_call *call, int status)
{
    call->status = status;
    call->content_type = NULL;
    call->out.len = 0;
}

void tp_answer_fixed(struct tp_call *call, int status, const char *content_type,
                     struct tp_str body)
{
    call->status = status;
    call->content_type = content_type;
    call->fixed = body;
}

/* Decimal digits, all of s, within 64 bits. */
static bool parse_u64(struct tp_str s, uint64_t *out)
{
    uint64_t v = 0;

    if (s.len == 0 || s.len > 20)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.ptr[i] - '0'), &v))
            return false;
    }
    *out = v;
    return true;
}

bool tp_param_u64(struct tp_call *call, const char *key, uint64_t min, uint64_t max,
                  uint64_t absent, uint64_t *out)
{
    struct tp_str s = tp_call_param(call, key);
    uint64_t v = absent;

    if (s.ptr != NULL && (!parse_u64(s, &v) || v < min || v > max)) {
        tp_problem_parameter(call, key, "'%s' must be a number of %llu to %llu", key,
                             (unsigned long long)min, (unsigned long long)max);
        return false;
    }
    *out = v;
    return true;
}

bool tp_param_limit(struct tp_call *call, size_t *out)
{
    uint64_t most = call->service->limits->list_items;
    uint64_t v;

    if (!tp_param_u64(call, "limit", 1, most,
                      most < LIST_DEFAULT_ITEMS ? most : LIST_DEFAULT_ITEMS, &v))
        return false;
    *out = (size_t)v;
    return true;
}

bool tp_param_time(struct tp_call *call, const char *key, bool *has, int64_t *out)
{
    struct tp_str s = tp_call_param(call, key);
    struct tp_err err = {0};
    uint64_t ns;

    *has = s.ptr != NULL;
    if (!*has)
        return true;
    if (parse_u64(s, &ns) && ns <= INT64_MAX) {
        *out = (int64_t)ns;
        return true;
    }
    if (tp_timefmt_parse(s.ptr, s.len, out, &err) == TP_OK)
        return true;
    tp_problem_parameter(call, key, "'%s' must be a time (RFC 3339 or nanoseconds): %s",
                         key, err.message);
    return false;
}

bool tp_param_text(struct tp_call *call, const char *key, size_t max_bytes,
                   struct tp_str *out)
{
    struct tp_str s = tp_call_param(call, key);

    *out = (struct tp_str){"", 0};
    if (s.ptr == NULL)
        return true;
    if (s.len > max_bytes) {
        tp_problem_parameter(call, key, "'%s' has %zu bytes; %zu is the most", key,
                             s.len, max_bytes);
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f) {
            tp_problem_parameter(call, key, "'%s' holds a control character", key);
            return false;
        }
    }
    *out = s;
    return true;
}

bool tp_param_job(struct tp_call *call, struct tp_str *out)
{
    struct tp_str s = tp_call_param(call, "job");

    if (s.ptr != NULL && s.len == 0) {
        tp_problem_parameter(call, "job", "'job' is empty; leave it out instead");
        return false;
    }
    return tp_param_text(call, "job", TP_JOB_NAME_MAX_BYTES, out);
}
