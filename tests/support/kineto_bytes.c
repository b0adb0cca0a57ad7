#include "support/kineto_bytes.h"

#include <string.h>

static size_t put(char *out, size_t at, const void *p, size_t n)
{
    memcpy(out + at, p, n);
    return at + n;
}

size_t kineto_header(char *out, uint64_t size, const char *type)
{
    memset(out, 0, 40);
    memcpy(out, &size, sizeof(size));
    memcpy(out + 8, type, strlen(type) > 32 ? 32 : strlen(type));
    return 40;
}

size_t kineto_request(char *out, int32_t type, int64_t job, const int32_t *pids,
                      int32_t n)
{
    size_t at = kineto_header(out, 16 + 4 * (uint64_t)n, "req");

    at = put(out, at, &type, 4);
    at = put(out, at, &n, 4);
    at = put(out, at, &job, 8);
    return put(out, at, pids, 4 * (size_t)n);
}

size_t kineto_context(char *out, int32_t gpu, int32_t pid, int64_t job)
{
    size_t at = kineto_header(out, 16, "ctxt");

    at = put(out, at, &gpu, 4);
    at = put(out, at, &pid, 4);
    return put(out, at, &job, 8);
}
