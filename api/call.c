/*
 * call.c - taking a request line apart.
 *
 * The library below us would decode the path before we see it, and a "%00" or "%2F" in
 * it could no longer be told from what it stands for; so the target comes here as it
 * was sent. All decoded text of a call lives in one buffer that is sized beforehand:
 * decoding never makes text longer.
 */
#include "api/call.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/service.h"
#include "base/utf8.h"
#include "engine/uploads.h"

static const char *const header_names[TP_HEADERS] = {
    [TP_HEADER_HOST] = "Host",
    [TP_HEADER_ORIGIN] = "Origin",
    [TP_HEADER_CONTENT_TYPE] = "Content-Type",
    [TP_HEADER_CONTENT_LENGTH] = "Content-Length",
    [TP_HEADER_CONTENT_ENCODING] = "Content-Encoding",
    [TP_HEADER_TRANSFER_ENCODING] = "Transfer-Encoding",
    [TP_HEADER_EXPECT] = "Expect",
    [TP_HEADER_ACCEPT_ENCODING] = "Accept-Encoding",
    [TP_HEADER_IF_NONE_MATCH] = "If-None-Match",
    [TP_HEADER_IF_RANGE] = "If-Range",
    [TP_HEADER_RANGE] = "Range",
    [TP_HEADER_IDEMPOTENCY_KEY] = "Idempotency-Key",
};

int tp_header_find(struct tp_str name)
{
    static const unsigned char lengths[TP_HEADERS] = {4, 6,  12, 14, 16, 17,
                                                      6, 15, 13, 8,  5,  15};

    for (int i = 0; i < TP_HEADERS; i++) {
        if (name.len == lengths[i] &&
            strncasecmp(name.ptr, header_names[i], name.len) == 0)
            return i;
    }
    return -1;
}

void tp_call_init(struct tp_call *call, struct tp_service *service)
{
    memset(call, 0, sizeof(*call));
    call->service = service;
}

void tp_call_fini(struct tp_call *call)
{
    if (call->stream.close != NULL)
        call->stream.close(call->stream.arg);
    call->stream.close = NULL;
    if (call->wait_free != NULL)
        call->wait_free(call->wait_arg);
    call->wait_free = NULL;
    tp_upload_free(call->upload);
    call->upload = NULL;
    tp_buf_fini(&call->decoded);
    tp_buf_fini(&call->body);
    tp_buf_fini(&call->header_text);
    tp_buf_fini(&call->out);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int tp_call_decode(struct tp_call *call, struct tp_str s, bool plus_is_blank,
                   struct tp_str *out, struct tp_err *err)
{
    char *to = call->decoded.data + call->decoded.len;
    char *p = to;

    assert(call->decoded.cap - call->decoded.len >= s.len);
    for (size_t i = 0; i < s.len; i++) {
        int high;
        int low;

        if (s.ptr[i] != '%') {
            *p++ = plus_is_blank && s.ptr[i] == '+' ? ' ' : s.ptr[i];
            continue;
        }
        high = i + 2 < s.len ? hex_digit(s.ptr[i + 1]) : -1;
        low = i + 2 < s.len ? hex_digit(s.ptr[i + 2]) : -1;
        if (high < 0 || low < 0)
            return tp_fail(err, TP_EINVAL, "the address has a '%%' without two digits");
        *p++ = (char)(high << 4 | low);
        i += 2;
    }
    *out = (struct tp_str){to, (size_t)(p - to)};
    if (memchr(to, '\0', out->len) != NULL)
        return tp_fail(err, TP_EINVAL, "the address holds a NUL");
    if (!tp_utf8_is_valid(to, out->len))
        return tp_fail(err, TP_EINVAL, "the address is not valid UTF-8");
    call->decoded.len += out->len;
    return TP_OK;
}

static int parse_param(struct tp_call *call, struct tp_str text, struct tp_err *err)
{
    const char *eq = memchr(text.ptr, '=', text.len);
    size_t key_len = eq == NULL ? text.len : (size_t)(eq - text.ptr);
    size_t value_at = eq == NULL ? text.len : key_len + 1;
    struct tp_call_param *param;
    int rc;

    if (call->n_params == TP_CALL_PARAMS_MAX)
        return tp_fail(err, TP_EINVAL, "more than %d parameters", TP_CALL_PARAMS_MAX);
    param = &call->params[call->n_params];
    rc = tp_call_decode(call, (struct tp_str){text.ptr, key_len}, true, &param->key,
                        err);
    if (rc == TP_OK)
        rc = tp_call_decode(call,
                            (struct tp_str){text.ptr + value_at, text.len - value_at},
                            true, &param->value, err);
    if (rc == TP_OK)
        call->n_params++;
    return rc;
}

static int parse_query(struct tp_call *call, struct tp_str query, struct tp_err *err)
{
    while (query.len > 0) {
        const char *amp = memchr(query.ptr, '&', query.len);
        size_t n = amp == NULL ? query.len : (size_t)(amp - query.ptr);
        size_t step = amp == NULL ? n : n + 1;
        int rc;

        if (n > 0) {
            rc = parse_param(call, (struct tp_str){query.ptr, n}, err);
            if (rc != TP_OK)
                return rc;
        }
        query.ptr += step;
        query.len -= step;
    }
    return TP_OK;
}

/* "http://host/path" is "/path" of that host (RFC 9112, 3.2.2), which must be the one
 * that the Host header names: that one was checked. */
static struct tp_str origin_form(const struct tp_call *call)
{
    static const char scheme[] = "http://";
    const size_t n = sizeof(scheme) - 1;
    const struct tp_str host = call->headers[TP_HEADER_HOST];
    struct tp_str target = call->target;

    if (target.len < n + host.len || strncasecmp(target.ptr, scheme, n) != 0 ||
        host.len == 0 || strncasecmp(target.ptr + n, host.ptr, host.len) != 0)
        return target;
    target.ptr += n + host.len;
    target.len -= n + host.len;
    return target;
}

static bool is_unreserved(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~", c) != NULL);
}

/* "%74ypes" is "types" (RFC 3986, 6.2.2.2). Other escapes stay: a "%2F" is no slash. */
static struct tp_str unescape_unreserved(struct tp_call *call, struct tp_str path)
{
    char *to = call->decoded.data + call->decoded.len;
    size_t n = 0;

    if (path.len == 0 || memchr(path.ptr, '%', path.len) == NULL)
        return path;
    for (size_t i = 0; i < path.len; i++) {
        int high = path.ptr[i] == '%' && i + 2 < path.len ? hex_digit(path.ptr[i + 1])
                                                          : -1;
        int low = high < 0 ? -1 : hex_digit(path.ptr[i + 2]);
        bool is_plain = low >= 0 && is_unreserved(high << 4 | low);

        to[n++] = is_plain ? (char)(high << 4 | low) : path.ptr[i];
        i += is_plain ? 2 : 0;
    }
    call->decoded.len += n;
    return (struct tp_str){to, n};
}

int tp_call_parse_target(struct tp_call *call, struct tp_str *path, struct tp_err *err)
{
    struct tp_str target = origin_form(call);
    bool is_whole = target.len < call->target.len; /* "http://host" is "http://host/" */
    const char *mark = target.len == 0 ? NULL : memchr(target.ptr, '?', target.len);
    struct tp_str before = {target.ptr,
                            mark == NULL ? target.len : (size_t)(mark - target.ptr)};
    /* Room for the path twice: without needless escapes, and its argument decoded. */
    int rc = tp_buf_reserve(&call->decoded, 2 * target.len + 1, err);

    if (rc != TP_OK)
        return rc;
    if (is_whole && before.len == 0)
        before = (struct tp_str){"/", 1};
    if (before.len == 0 || before.ptr[0] != '/')
        return tp_fail(err, TP_EINVAL, "the address must start with '/'");
    if (mark != NULL) {
        struct tp_str query = {mark + 1, (size_t)(target.ptr + target.len - mark) - 1};

        rc = parse_query(call, query, err);
        if (rc != TP_OK)
            return rc;
    }
    before = unescape_unreserved(call, before);
    if (before.len >= 3 && memcmp(before.ptr, "/v1", 3) == 0 &&
        (before.len == 3 || before.ptr[3] == '/')) {
        before.ptr += 3;
        before.len -= 3;
    }
    *path = before;
    return TP_OK;
}

struct tp_str tp_call_param(const struct tp_call *call, const char *key)
{
    for (size_t i = 0; i < call->n_params; i++)
        if (tp_str_is(call->params[i].key, key))
            return call->params[i].value;
    return (struct tp_str){NULL, 0};
}

void tp_call_changed(struct tp_call *call)
{
    call->has_changed = true;
    if (call->service->changed != NULL)
        call->service->changed(call->service->arg);
}

void tp_call_header(struct tp_call *call, const char *name, const char *value)
{
    assert(call->n_out_headers < TP_CALL_HEADERS_MAX);
    call->out_headers[call->n_out_headers++] = (struct tp_call_header){name, value};
}

void tp_call_header_printf(struct tp_call *call, const char *name, const char *format,
                           ...)
{
    va_list args;
    char text[512];
    int n;

    va_start(args, format);
    n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(text))
        return;
    /* The buffer must never move: values that were given out point into it. */
    if (call->header_text.cap == 0 &&
        tp_buf_reserve(&call->header_text, 2048, NULL) != TP_OK)
        return;
    if (call->header_text.cap - call->header_text.len < (size_t)n + 1)
        return;
    tp_call_header(call, name, call->header_text.data + call->header_text.len);
    tp_buf_append(&call->header_text, text, (size_t)n + 1, NULL);
}
