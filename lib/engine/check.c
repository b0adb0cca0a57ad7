#include "engine/check.h"

#include <string.h>

#include "base/err.h"
#include "base/utf8.h"
#include "engine/jobs.h"
#include "engine/problem.h"
#include "engine/traces.h"

static bool is_job_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '.' || c == '_' || c == '-';
}

int tp_check_job(struct tp_str *job, struct tp_problem *problem, struct tp_err *err)
{
    bool is_good = job->len <= TP_JOB_NAME_MAX_BYTES;

    if (job->len == 0) {
        *job = tp_str_of(TP_JOB_DEFAULT);
        return TP_OK;
    }
    for (size_t i = 0; i < job->len && is_good; i++)
        is_good = is_job_char(job->ptr[i]);
    if (is_good && job->ptr[0] != '.')
        return TP_OK;
    return tp_problem_invalid(
        problem, "job",
        tp_fail(err, TP_EINVAL,
                "a job name is 1 to %d of [A-Za-z0-9._-] without a dot in front",
                TP_JOB_NAME_MAX_BYTES));
}

int tp_check_text(const char *field, struct tp_str s, const char *limit,
                  uint64_t max_bytes, struct tp_problem *problem, struct tp_err *err)
{
    int rc = TP_OK;

    if (s.len > max_bytes) {
        rc = tp_problem_limit(problem, limit, "bytes", max_bytes, s.len, err);
        tp_fail_prefix(err, "%s", field);
        return rc;
    }
    if (!tp_utf8_is_valid(s.ptr, s.len))
        rc = tp_fail(err, TP_EINVAL, "%s is not valid UTF-8", field);
    for (size_t i = 0; i < s.len && rc == TP_OK; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if (c < 0x20 || c == 0x7f)
            rc = tp_fail(err, TP_EINVAL, "%s has a control character at byte %zu",
                         field, i);
    }
    return rc == TP_OK ? TP_OK : tp_problem_invalid(problem, field, rc);
}

/* What a file system or a shell may take for something else than a letter. */
static bool is_safe_in_name(unsigned char c)
{
    return c >= 0x20 && c != 0x7f && strchr("\"$&'*:;<>?`|", c) == NULL;
}

size_t tp_check_file_name(struct tp_str given, char *out)
{
    size_t start = given.len, n = 0;

    while (start > 0 && given.ptr[start - 1] != '/' && given.ptr[start - 1] != '\\')
        start--;
    for (size_t i = start; i < given.len; i++)
        out[n++] = is_safe_in_name((unsigned char)given.ptr[i]) ? given.ptr[i] : '_';
    for (size_t i = 0; i < n && out[i] == '.'; i++)
        out[i] = '_';
    out[n] = '\0';
    return n;
}

int tp_check_rank(int64_t rank, struct tp_problem *problem, struct tp_err *err)
{
    if (rank >= -1 && rank <= INT32_MAX)
        return TP_OK;
    return tp_problem_invalid(problem, "rank",
                              tp_fail(err, TP_EINVAL, "rank %lld is not in 0 to %d",
                                      (long long)rank, INT32_MAX));
}

int tp_check_key(struct tp_str key, struct tp_problem *problem, struct tp_err *err)
{
    bool is_good = key.len <= TP_IDEMPOTENCY_KEY_MAX_BYTES;

    for (size_t i = 0; i < key.len && is_good; i++)
        is_good = key.ptr[i] > 0x20 && key.ptr[i] < 0x7f;
    if (is_good)
        return TP_OK;
    return tp_problem_invalid(
        problem, "Idempotency-Key",
        tp_fail(err, TP_EINVAL, "an idempotency key is 1 to %d printable characters",
                TP_IDEMPOTENCY_KEY_MAX_BYTES));
}
