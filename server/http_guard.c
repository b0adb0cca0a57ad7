/*
 * http_guard.c - RFC 9112 section 6.3 and 3.2 by the letter, and the browser's two
 * traps.
 *
 * DNS rebinding: a page of evil.example whose name suddenly resolves to 127.0.0.1
 * reaches us with its own name in Host. Only loopback names and configured ones are
 * answered.
 *
 * CSRF: a page may send simple POSTs to any address. Browsers put the page's origin
 * into Origin on such requests; anything but our own or a configured one is refused, on
 * every method. Programs that are no browser send no Origin.
 */
#include "server/http_guard.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/problem.h"
#include "server/config.h"

static bool refuse(struct tp_call *call, enum tp_fault fault, const char *words)
{
    tp_problem_answer(call, fault, "%s", words);
    call->is_refused = true;
    call->must_close = true;
    return false;
}

/* What two readers of the same bytes could take for different messages. */
static const char *framing_mistake(const struct tp_http_seen *seen,
                                   const struct tp_call *call)
{
    struct tp_str length = call->headers[TP_HEADER_CONTENT_LENGTH];

    if (seen->has_odd_name || seen->has_odd_value)
        return "a header holds characters that are not allowed there";
    if (seen->count[TP_HEADER_CONTENT_LENGTH] > 1)
        return "Content-Length is given twice";
    if (seen->count[TP_HEADER_TRANSFER_ENCODING] > 1)
        return "Transfer-Encoding is given twice";
    if (seen->count[TP_HEADER_CONTENT_LENGTH] > 0 &&
        seen->count[TP_HEADER_TRANSFER_ENCODING] > 0)
        return "Content-Length and Transfer-Encoding exclude each other";
    if (seen->count[TP_HEADER_TRANSFER_ENCODING] > 0 && !seen->is_http_1_1)
        return "HTTP/1.0 has no Transfer-Encoding";
    if (seen->count[TP_HEADER_TRANSFER_ENCODING] > 0 &&
        !(call->headers[TP_HEADER_TRANSFER_ENCODING].len == 7 &&
          strncasecmp(call->headers[TP_HEADER_TRANSFER_ENCODING].ptr, "chunked", 7) ==
              0))
        return "the only Transfer-Encoding is chunked";
    for (size_t i = 0; i < length.len; i++)
        if (length.ptr[i] < '0' || length.ptr[i] > '9')
            return "Content-Length must be a number";
    if (seen->count[TP_HEADER_CONTENT_LENGTH] > 0 && length.len == 0)
        return "Content-Length must be a number";
    return NULL;
}

/* Where the address ends is a matter of opinion then (RFC 9112, 3). */
static bool has_blank(struct tp_str target)
{
    for (size_t i = 0; i < target.len; i++)
        if ((unsigned char)target.ptr[i] <= 0x20 || target.ptr[i] == 0x7f)
            return true;
    return false;
}

/* What is wrong with the address, or with the host that goes with it. */
static const char *address_mistake(const struct tp_http_seen *seen,
                                   const struct tp_call *call)
{
    if (has_blank(call->target))
        return "the address holds a space or a control character";
    if (seen->count[TP_HEADER_HOST] > 1)
        return "Host is given twice";
    if (seen->count[TP_HEADER_HOST] == 0 && seen->is_http_1_1)
        return "the Host header is missing";
    return NULL;
}

/* The name of a Host header without its port and brackets. False when it is broken. */
static bool host_name(struct tp_str host, struct tp_str *name)
{
    const char *end;
    size_t rest;

    if (host.len > 0 && host.ptr[0] == '[') {
        end = memchr(host.ptr, ']', host.len);
        if (end == NULL)
            return false;
        *name = (struct tp_str){host.ptr + 1, (size_t)(end - host.ptr) - 1};
        rest = (size_t)(end - host.ptr) + 1;
    } else {
        end = host.len == 0 ? NULL : memchr(host.ptr, ':', host.len);
        rest = end == NULL ? host.len : (size_t)(end - host.ptr);
        *name = (struct tp_str){host.ptr, rest};
    }
    if (rest < host.len && host.ptr[rest] != ':')
        return false;
    for (size_t i = rest + 1; i < host.len; i++)
        if (host.ptr[i] < '0' || host.ptr[i] > '9')
            return false;
    return true;
}

static bool equals(struct tp_str a, const char *b)
{
    return a.len == strlen(b) && strncasecmp(a.ptr, b, a.len) == 0;
}

static bool is_loopback_name(struct tp_str name)
{
    struct in_addr v4;
    struct in6_addr v6;
    char text[64];

    if (equals(name, "localhost"))
        return true;
    if (name.len >= sizeof(text) || name.len == 0)
        return false;
    snprintf(text, sizeof(text), "%.*s", (int)name.len, name.ptr);
    if (inet_pton(AF_INET, text, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static bool host_is_ours(const struct tp_config *config, struct tp_str host)
{
    struct tp_str name;

    if (!host_name(host, &name))
        return false;
    if (is_loopback_name(name))
        return true;
    for (size_t i = 0; i < config->allow_host.n; i++)
        if (equals(name, config->allow_host.items[i]) ||
            equals(host, config->allow_host.items[i]))
            return true;
    return false;
}

bool tp_http_origin_is_allowed(const struct tp_config *config, struct tp_str origin)
{
    for (size_t i = 0; i < config->allow_origin.n; i++)
        if (equals(origin, config->allow_origin.items[i]))
            return true;
    return false;
}

static bool is_same_origin(struct tp_str origin, struct tp_str host)
{
    static const char scheme[] = "http://";
    size_t n = sizeof(scheme) - 1;

    return host.len > 0 && origin.len == n + host.len &&
           strncasecmp(origin.ptr, scheme, n) == 0 &&
           strncasecmp(origin.ptr + n, host.ptr, host.len) == 0;
}

/*
 * A target that holds the whole address says itself which host is meant, and the Host
 * header is ignored (RFC 9112, 3.2.2). It must be there nevertheless.
 */
static void take_host_of_target(const struct tp_http_seen *seen, struct tp_call *call)
{
    static const char scheme[] = "http://";
    const size_t n = sizeof(scheme) - 1;
    struct tp_str target = call->target;
    size_t end = n;

    if (target.len < n || strncasecmp(target.ptr, scheme, n) != 0 ||
        seen->count[TP_HEADER_HOST] == 0)
        return;
    while (end < target.len && target.ptr[end] != '/' && target.ptr[end] != '?')
        end++;
    call->headers[TP_HEADER_HOST] = (struct tp_str){target.ptr + n, end - n};
}

/* What a client expects besides the word that the library gives it (RFC 9110, 10.1.1).
 */
static bool expects_too_much(const struct tp_http_seen *seen,
                             const struct tp_call *call)
{
    return seen->count[TP_HEADER_EXPECT] > 0 && seen->is_http_1_1 &&
           !equals(call->headers[TP_HEADER_EXPECT], "100-continue");
}

bool tp_http_guard(const struct tp_config *config, const struct tp_http_seen *seen,
                   struct tp_call *call)
{
    const char *mistake = framing_mistake(seen, call);
    struct tp_str origin = call->headers[TP_HEADER_ORIGIN];
    struct tp_str host;

    if (mistake == NULL)
        mistake = address_mistake(seen, call);
    if (mistake != NULL)
        return refuse(call, TP_FAULT_INVALID_REQUEST, mistake);
    if (expects_too_much(seen, call))
        return refuse(call, TP_FAULT_EXPECTATION_FAILED,
                      "the only expectation that is met is 100-continue");
    take_host_of_target(seen, call);
    host = call->headers[TP_HEADER_HOST];
    if (!seen->is_unix && seen->count[TP_HEADER_HOST] > 0 &&
        !host_is_ours(config, host))
        return refuse(
            call, TP_FAULT_UNTRUSTED_HOST,
            "the Host header names another service; --allow-host adds a name");
    if (seen->count[TP_HEADER_ORIGIN] > 0 && !is_same_origin(origin, host) &&
        !tp_http_origin_is_allowed(config, origin))
        return refuse(
            call, TP_FAULT_UNTRUSTED_ORIGIN,
            "pages of other origins may not call this service; --allow-origin "
            "adds one");
    return true;
}
