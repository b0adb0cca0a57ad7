/*
 * fuzz_http.c - any request line and headers: each gives a call or a refusal.
 *
 * The first line is the target; each line behind it is a header of ours, by name or, as
 * "=N:value", by number. Nothing is read beyond the bytes, what is decoded is UTF-8
 * without NUL, and a Host that is not ours is refused.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/download_request.h"
#include "api/http_fields.h"
#include "api/service.h"
#include "base/utf8.h"
#include "server/config.h"
#include "server/http_guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static struct tp_str take_line(struct tp_str *rest)
{
    const char *end = rest->len == 0 ? NULL : memchr(rest->ptr, '\n', rest->len);
    struct tp_str line = {rest->ptr,
                          end == NULL ? rest->len : (size_t)(end - rest->ptr)};
    size_t used = line.len + (end != NULL);

    rest->ptr += used;
    rest->len -= used;
    return line;
}

static void take_header(struct tp_call *call, struct tp_http_seen *seen,
                        struct tp_str line)
{
    const char *colon = line.len == 0 ? NULL : memchr(line.ptr, ':', line.len);
    size_t n = colon == NULL ? 0 : (size_t)(colon - line.ptr);
    int i = tp_header_find((struct tp_str){line.ptr, n});

    if (colon == NULL)
        return;
    if (i < 0 && n == 2 && line.ptr[0] == '=')
        i = (line.ptr[1] & 0x7f) % TP_HEADERS;
    if (i < 0)
        return;
    if (seen->count[i] < UINT8_MAX)
        seen->count[i]++;
    call->headers[i] = (struct tp_str){colon + 1, line.len - n - 1};
}

static void check_text(struct tp_str s)
{
    check(s.len == 0 ||
          (tp_utf8_is_valid(s.ptr, s.len) && memchr(s.ptr, '\0', s.len) == NULL));
}

static void try_fields(struct tp_call *call)
{
    static const struct tp_str tag = {"\"etag\"", 6};
    struct tp_str range = call->headers[TP_HEADER_RANGE];
    struct tp_download_params params = {0};
    uint64_t first = 0;
    uint64_t last = 0;

    if (tp_range_parse(range, 1000, &first, &last) == TP_RANGE_ONE)
        check(tp_range_is_single(range) && first <= last && last < 1000);
    (void)tp_etag_is_listed(call->headers[TP_HEADER_IF_NONE_MATCH], tag);
    (void)tp_etag_allows_range(call->headers[TP_HEADER_IF_RANGE], tag);
    (void)tp_accept_coding(call->headers[TP_HEADER_ACCEPT_ENCODING]);
    check(tp_download_params_read(call, &params) || call->status >= 400);
    tp_download_params_fini(&params);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tp_config config;
    struct tp_str rest = {(const char *)data, size};
    struct tp_http_seen seen = {.is_http_1_1 = true};
    struct tp_limits limits = tp_limits_default();
    struct tp_service service = {.limits = &limits};
    struct tp_call call;
    struct tp_str path;
    struct tp_str arg;

    tp_call_init(&call, &service);
    call.target = take_line(&rest);
    while (rest.len > 0)
        take_header(&call, &seen, take_line(&rest));
    if (tp_http_guard(&config, &seen, &call) &&
        tp_call_parse_target(&call, &path, NULL) == TP_OK) {
        check(seen.count[TP_HEADER_HOST] > 0 && path.len <= call.target.len + 1);
        for (size_t i = 0; i < call.n_params; i++) {
            check_text(call.params[i].key);
            check_text(call.params[i].value);
        }
        if (tp_call_decode(&call, path, false, &arg, NULL) == TP_OK)
            check_text(arg);
        try_fields(&call);
    }
    tp_call_fini(&call);
    return 0;
}
