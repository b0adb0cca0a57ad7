/*
 * rest.c - matching, and the rules that hold for all routes.
 *
 * A body that is refused is still read to its end where that is cheap: an answer that
 * is sent while the client still writes is often lost, since the kernel resets the
 * connection when unread bytes are left at close. DRAIN_BYTES bounds that politeness.
 */
#include "api/rest.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/answer.h"
#include "api/problem.h"
#include "api/rest_downloads.h"
#include "api/rest_meta.h"
#include "api/rest_producers.h"
#include "api/rest_traces.h"
#include "api/rest_types.h"
#include "api/rest_uploads.h"
#include "api/rest_watch.h"
#include "api/service.h"
#include "base/names.h"
#include "core/limits.h"
#include "trace/gunzip.h"

#define DRAIN_BYTES (64u << 20)

#define PARAMS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define AUDITED .is_audited = true
#define SLOW .is_slow = true
#define CONTROL .body = TP_BODY_CONTROL

static const struct tp_route routes[] = {
    {TP_METHOD_GET, "/types", "listTypes", tp_rest_list_types,
     PARAMS("job", "scope", "limit", "cursor"), .body = TP_BODY_NONE},
    {TP_METHOD_POST, "/types", "registerTypes", tp_rest_register_types, NULL, CONTROL,
     AUDITED},
    {TP_METHOD_GET, "/types/{type}", "getType", tp_rest_get_type, PARAMS("job"),
     .body = TP_BODY_NONE},
    {TP_METHOD_GET, "/jobs", "listJobs", tp_rest_list_jobs, PARAMS("limit", "cursor"),
     .body = TP_BODY_NONE},
    {TP_METHOD_GET, "/traces", "listTraces", tp_rest_list_traces,
     PARAMS("job", "state", "limit", "cursor"), .body = TP_BODY_NONE},
    {TP_METHOD_POST, "/traces", "createTrace", tp_rest_create_trace, NULL, CONTROL,
     AUDITED},
    {TP_METHOD_GET, "/traces/{id}", "getTrace", tp_rest_get_trace, NULL,
     .body = TP_BODY_NONE},
    {TP_METHOD_DELETE, "/traces/{id}", "deleteTrace", tp_rest_delete_trace, NULL,
     AUDITED},
    {TP_METHOD_POST, "/traces/{id}/start", "startTrace", tp_rest_start_trace, NULL,
     CONTROL, AUDITED},
    {TP_METHOD_POST, "/traces/{id}/stop", "stopTrace", tp_rest_stop_trace, NULL,
     CONTROL, AUDITED},
    {TP_METHOD_POST, "/traces/{id}/cancel", "cancelTrace", tp_rest_cancel_trace, NULL,
     CONTROL, AUDITED},
    {TP_METHOD_GET, "/traces/{id}/watch", "watchTrace", tp_rest_watch_trace, NULL,
     .body = TP_BODY_NONE},
    {TP_METHOD_POST, "/traces/{id}/events", "postEvents", tp_rest_commit_upload,
     PARAMS("producer", "rank", "world_size", "host", "pid", "seq"),
     .body = TP_BODY_EVENTS},
    {TP_METHOD_POST, "/traces/{id}/files", "postFile", tp_rest_commit_upload,
     PARAMS("producer", "rank", "world_size", "host", "pid", "name", "seq"),
     .body = TP_BODY_FILE, AUDITED},
    {TP_METHOD_GET, "/traces/{id}/download", "downloadTrace", tp_rest_download_trace,
     PARAMS("format", "compress", "ranks", "types", "from", "to"), SLOW},
    {TP_METHOD_GET, "/traces/{id}/summary", "summarizeTrace", tp_rest_summarize_trace,
     NULL, SLOW},
    {TP_METHOD_GET, "/producers", "listProducers", tp_rest_list_producers,
     PARAMS("job", "limit", "cursor"), .body = TP_BODY_NONE},
    {TP_METHOD_POST, "/producers", "registerProducer", tp_rest_register_producer, NULL,
     CONTROL, AUDITED},
    {TP_METHOD_GET, "/producers/{id}", "getProducer", tp_rest_get_producer, NULL,
     .body = TP_BODY_NONE},
    {TP_METHOD_DELETE, "/producers/{id}", "deleteProducer", tp_rest_delete_producer,
     NULL, AUDITED},
    {TP_METHOD_POST, "/producers/{id}/sync", "syncProducer", tp_rest_sync_producer,
     NULL, CONTROL},
    {TP_METHOD_GET, "/healthz", "getHealth", tp_rest_health, NULL,
     .body = TP_BODY_NONE},
    {TP_METHOD_GET, "/readyz", "getReadiness", tp_rest_readiness, NULL,
     .body = TP_BODY_NONE},
    {TP_METHOD_GET, "/metrics", "getMetrics", tp_rest_metrics, NULL,
     .body = TP_BODY_NONE},
    {TP_METHOD_GET, "/version", "getVersion", tp_rest_version, NULL,
     .body = TP_BODY_NONE},
    {TP_METHOD_GET, "/openapi.yaml", "getOpenapi", tp_rest_openapi, NULL,
     .body = TP_BODY_NONE},
    {TP_METHOD_GET, "/", "getIndex", tp_rest_index, NULL, .body = TP_BODY_NONE},
};

#define N_ROUTES (sizeof(routes) / sizeof(routes[0]))

const struct tp_route *tp_rest_routes(size_t *n)
{
    *n = N_ROUTES;
    return routes;
}

/* Take the first segment, with its slash, off s. */
static struct tp_str take_segment(struct tp_str *s)
{
    const char *end = s->len < 2 ? NULL : memchr(s->ptr + 1, '/', s->len - 1);
    struct tp_str segment = {s->ptr, end == NULL ? s->len : (size_t)(end - s->ptr)};

    s->ptr += segment.len;
    s->len -= segment.len;
    return segment;
}

/* Whether a path matches a pattern; what stands for {...} is left in arg, not decoded.
 * */
static bool matches(const char *pattern, struct tp_str path, struct tp_str *arg)
{
    struct tp_str rest = tp_str_of(pattern);

    while (rest.len > 0 && path.len > 0) {
        struct tp_str want = take_segment(&rest);
        struct tp_str have = take_segment(&path);

        if (want.len > 2 && want.ptr[1] == '{') {
            if (have.len < 2)
                return false;
            *arg = (struct tp_str){have.ptr + 1, have.len - 1};
        } else if (!tp_str_equal(want, have)) {
            return false;
        }
    }
    return rest.len == 0 && path.len == 0;
}

/* The bits of the methods that a path has; the route of ours, if any, in call->route.
 * */
static unsigned find_route(struct tp_call *call, struct tp_str path, struct tp_str *arg)
{
    enum tp_method wanted = call->method == TP_METHOD_HEAD ? TP_METHOD_GET
                                                           : call->method;
    unsigned methods = 0;

    for (size_t i = 0; i < N_ROUTES; i++) {
        if (!matches(routes[i].pattern, path, arg))
            continue;
        methods |= 1u << routes[i].method;
        if (routes[i].method == wanted) {
            call->route = &routes[i];
            break;
        }
    }
    return methods;
}

static const char *allow_text(unsigned methods, char *out, size_t n)
{
    snprintf(out, n, "%s%s%sOPTIONS",
             methods & 1u << TP_METHOD_GET ? "GET, HEAD, " : "",
             methods & 1u << TP_METHOD_POST ? "POST, " : "",
             methods & 1u << TP_METHOD_DELETE ? "DELETE, " : "");
    return out;
}

static void refuse_route(struct tp_call *call, struct tp_str path, unsigned methods)
{
    char allow[64];

    if (methods == 0) {
        tp_problem_answer(call, TP_FAULT_NOT_FOUND, "there is no '%.*s' here",
                          (int)(path.len < 200 ? path.len : 200), path.ptr);
        return;
    }
    allow_text(methods, allow, sizeof(allow));
    if (call->method == TP_METHOD_OPTIONS)
        tp_answer_empty(call, 204);
    else
        tp_problem_answer(call, TP_FAULT_METHOD_NOT_ALLOWED,
                          "this resource has the methods %s", allow);
    tp_call_header_printf(call, "Allow", "%s", allow);
}

static bool is_known_param(const struct tp_route *route, struct tp_str key)
{
    for (size_t i = 0; route->params != NULL && route->params[i] != NULL; i++)
        if (tp_str_is(key, route->params[i]))
            return true;
    return false;
}

static void refuse_param(struct tp_call *call, struct tp_str key)
{
    struct tp_names_nearest near;
    char detail[256];
    struct tp_json_out o;
    int n = (int)(key.len < 64 ? key.len : 64);

    tp_names_init(&near, key);
    for (size_t i = 0; call->route->params != NULL && call->route->params[i] != NULL;
         i++)
        tp_names_offer(&near, tp_str_of(call->route->params[i]));
    if (near.n > 0)
        snprintf(detail, sizeof(detail),
                 "there is no parameter '%.*s' here; did you mean '%.*s'", n, key.ptr,
                 (int)near.found[0].name.len, near.found[0].name.ptr);
    else
        snprintf(detail, sizeof(detail), "there is no parameter '%.*s' here", n,
                 key.ptr);
    tp_problem_open(call, TP_FAULT_UNKNOWN_PARAMETER, detail, &o);
    tp_json_out_str(&o, "parameter", (struct tp_str){key.ptr, (size_t)n});
    tp_problem_close(call, &o);
}

/* `types` and `ranks` may be repeated, as lists often are; nothing else may. */
static bool check_params(struct tp_call *call)
{
    for (size_t i = 0; i < call->n_params; i++) {
        struct tp_str key = call->params[i].key;

        if (!is_known_param(call->route, key)) {
            refuse_param(call, key);
            return false;
        }
        for (size_t k = 0; k < i; k++) {
            if (tp_str_equal(key, call->params[k].key) && !tp_str_is(key, "types") &&
                !tp_str_is(key, "ranks")) {
                char name[32];

                snprintf(name, sizeof(name), "%.*s", (int)key.len, key.ptr);
                tp_problem_parameter(call, name, "'%s' is given twice", name);
                return false;
            }
        }
    }
    return true;
}

static uint64_t body_limit(const struct tp_call *call)
{
    const struct tp_limits *limits = call->service->limits;

    switch (call->route->body) {
    case TP_BODY_EVENTS:
        return limits->events_body_bytes;
    case TP_BODY_FILE:
        return limits->file_bytes;
    default:
        return limits->body_bytes;
    }
}

static const char *limit_name(const struct tp_call *call)
{
    switch (call->route->body) {
    case TP_BODY_EVENTS:
        return "max-events-body-bytes";
    case TP_BODY_FILE:
        return "max-file-bytes";
    default:
        return "max-body-bytes";
    }
}

static void refuse_size(struct tp_call *call)
{
    tp_problem_limit_answer(call, TP_FAULT_BODY_TOO_LARGE, limit_name(call),
                            body_limit(call), "the body is longer than %llu bytes",
                            (unsigned long long)body_limit(call));
    call->is_refused = true;
    call->must_close = true;
}

/* The media type in front of any parameters. */
static struct tp_str media_type(struct tp_str header)
{
    size_t n = 0;

    while (n < header.len && header.ptr[n] != ';')
        n++;
    while (n > 0 && (header.ptr[n - 1] == ' ' || header.ptr[n - 1] == '\t'))
        n--;
    return (struct tp_str){header.ptr, n};
}

bool tp_rest_media_is(const struct tp_call *call, const char *type)
{
    struct tp_str have = media_type(call->headers[TP_HEADER_CONTENT_TYPE]);

    return have.len == strlen(type) && strncasecmp(have.ptr, type, have.len) == 0;
}

/* Control bodies are JSON; what curl -d says without being told is JSON, too. */
static bool check_control_type(struct tp_call *call)
{
    if (call->headers[TP_HEADER_CONTENT_TYPE].len == 0 ||
        tp_rest_media_is(call, "application/json") ||
        tp_rest_media_is(call, "application/x-www-form-urlencoded"))
        return true;
    tp_problem_answer(call, TP_FAULT_UNSUPPORTED_MEDIA_TYPE,
                      "the body must be application/json");
    return false;
}

enum tp_coding tp_rest_coding(const struct tp_call *call)
{
    struct tp_str have = call->headers[TP_HEADER_CONTENT_ENCODING];

    if (have.len == 0 || (have.len == 8 && strncasecmp(have.ptr, "identity", 8) == 0))
        return TP_CODING_IDENTITY;
    if ((have.len == 4 && strncasecmp(have.ptr, "gzip", 4) == 0) ||
        (have.len == 6 && strncasecmp(have.ptr, "x-gzip", 6) == 0))
        return TP_CODING_GZIP;
    return TP_CODING_OTHER;
}

/* All text is UTF-8: a content type that says something else is mistaken. */
static bool check_charset(struct tp_call *call)
{
    static const char *const names[] = {"utf-8", "\"utf-8\"", "utf8", "us-ascii"};
    struct tp_str type = call->headers[TP_HEADER_CONTENT_TYPE];
    const char *end = type.ptr + type.len;
    const char *p = type.len == 0 ? NULL : memchr(type.ptr, ';', type.len);

    while (p != NULL) {
        const char *next;
        size_t n;

        while (p < end && (*p == ';' || *p == ' ' || *p == '\t'))
            p++;
        next = memchr(p, ';', (size_t)(end - p));
        n = next == NULL ? (size_t)(end - p) : (size_t)(next - p);
        if (n >= 8 && strncasecmp(p, "charset=", 8) == 0) {
            for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (n - 8 == strlen(names[i]) &&
                    strncasecmp(p + 8, names[i], n - 8) == 0)
                    return true;
            tp_problem_answer(call, TP_FAULT_UNSUPPORTED_MEDIA_TYPE,
                              "the charset must be utf-8");
            return false;
        }
        p = next;
    }
    return true;
}

static bool check_body_headers(struct tp_call *call)
{
    if (call->route->body == TP_BODY_NONE) {
        if (!call->has_body)
            return true;
        tp_problem_answer(call, TP_FAULT_INVALID_REQUEST, "this request takes no body");
        return false;
    }
    if (call->has_content_length && call->content_length > body_limit(call)) {
        refuse_size(call);
        return false;
    }
    if (tp_rest_coding(call) == TP_CODING_OTHER) {
        tp_problem_answer(call, TP_FAULT_UNSUPPORTED_ENCODING,
                          "the content encoding must be gzip or identity");
        tp_call_header(call, "Accept-Encoding", "gzip, identity");
        return false;
    }
    if (!check_charset(call))
        return false;
    if (call->route->body == TP_BODY_CONTROL)
        return !call->has_body || check_control_type(call);
    return tp_rest_begin_upload(call);
}

/* Find the route; *arg becomes what stands in the path for {...}, not decoded. */
static int locate(struct tp_call *call, struct tp_str *path, struct tp_str *arg,
                  unsigned *methods, struct tp_err *err)
{
    int rc = tp_call_parse_target(call, path, err);

    if (rc != TP_OK)
        return rc;
    if (path->len == 0)
        *path = (struct tp_str){"/", 1};
    *methods = find_route(call, *path, arg);
    return TP_OK;
}

/* Decode what stands for {...}: it is what the call is about. */
static int take_subject(struct tp_call *call, struct tp_str arg, struct tp_err *err)
{
    int rc = arg.ptr == NULL ? TP_OK
                             : tp_call_decode(call, arg, false, &call->args[0], err);

    if (rc == TP_OK)
        snprintf(call->subject, sizeof(call->subject), "%.*s",
                 (int)(call->args[0].len < 60 ? call->args[0].len : 60),
                 call->args[0].ptr == NULL ? "" : call->args[0].ptr);
    return rc;
}

void tp_rest_begin(struct tp_call *call)
{
    struct tp_str path = {"", 0};
    struct tp_str arg = {NULL, 0};
    struct tp_err err = {0};
    unsigned methods = 0;

    call->is_refused = true;
    if (locate(call, &path, &arg, &methods, &err) != TP_OK) {
        tp_problem_engine(call, err.code, NULL, &err);
        return;
    }
    if (call->route == NULL) {
        refuse_route(call, path, methods);
        return;
    }
    if (take_subject(call, arg, &err) != TP_OK) {
        tp_problem_engine(call, err.code, NULL, &err);
        return;
    }
    call->is_refused = !check_params(call) || !check_body_headers(call);
}

void tp_rest_identify(struct tp_call *call)
{
    struct tp_str path = {"", 0};
    struct tp_str arg = {NULL, 0};
    unsigned methods = 0;

    if (call->decoded.data != NULL) /* tp_rest_begin() has read the target */
        return;
    if (locate(call, &path, &arg, &methods, NULL) == TP_OK)
        (void)take_subject(call, arg, NULL);
}

/* One more piece of a control body. */
static void feed_control(struct tp_call *call, const char *p, size_t n)
{
    struct tp_err err = {0};
    int rc = tp_buf_append(&call->body, p, n, &err);

    if (rc != TP_OK) {
        tp_problem_engine(call, rc, NULL, &err);
        call->is_refused = true;
    }
}

bool tp_rest_feed(struct tp_call *call, const char *p, size_t n)
{
    uint64_t limit = call->route == NULL ? call->service->limits->body_bytes
                                         : body_limit(call);

    call->body_bytes += n;
    if (!call->is_refused && call->body_bytes > limit)
        refuse_size(call);
    if (call->is_refused) {
        /* A body that says its length was let in on purpose; see the file comment. */
        uint64_t most = call->has_content_length && call->content_length > limit
                            ? call->content_length
                            : limit;

        return call->body_bytes <= most + DRAIN_BYTES;
    }
    if (call->upload != NULL)
        tp_rest_feed_upload(call, p, n);
    else
        feed_control(call, p, n);
    return true;
}

static int take_plain(const char *p, size_t n, struct tp_err *err, void *arg)
{
    return tp_buf_append(arg, p, n, err);
}

/* Inflate all of a body that is in memory. */
static int inflate(const struct tp_buf *body, struct tp_buf *plain, struct tp_err *err)
{
    struct tp_gunzip_opts opts = {.on_bytes = take_plain, .arg = plain};
    struct tp_gunzip *g = NULL;
    int rc = tp_gunzip_new(&opts, &g, err);

    if (rc == TP_OK)
        rc = tp_gunzip_feed(g, body->data, body->len, err);
    if (rc == TP_OK)
        rc = tp_gunzip_finish(g, err);
    tp_gunzip_free(g);
    return rc;
}

/* Replace a gzipped control body by its content. Returns false with the answer made. */
static bool inflate_control(struct tp_call *call)
{
    struct tp_buf plain = {.limit_bytes = call->service->limits->body_bytes};
    struct tp_err err = {0};
    int rc;

    if (tp_rest_coding(call) != TP_CODING_GZIP)
        return true;
    rc = inflate(&call->body, &plain, &err);
    tp_buf_fini(&call->body);
    call->body = plain;
    if (rc == TP_EQUOTA) {
        refuse_size(call);
        call->must_close = false; /* it was read to its end */
    } else if (rc != TP_OK) {
        tp_problem_answer(call, TP_FAULT_INVALID_REQUEST, "%s", err.message);
    }
    return rc == TP_OK;
}

void tp_rest_finish(struct tp_call *call)
{
    if (call->is_refused)
        return;
    if (call->route->body == TP_BODY_CONTROL && call->has_body &&
        !inflate_control(call))
        return;
    call->route->handle(call);
}

void tp_rest_resume(struct tp_call *call)
{
    call->reply = TP_REPLY_BODY;
    call->wait.resume(call);
}
