/*
 * http_reply.c - answers as responses of libmicrohttpd.
 *
 * Every answer carries the headers that a JSON API needs against browsers: no sniffing,
 * no framing or loading of anything, no caching of control answers. Downloads say
 * themselves how they may be cached.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "api/rest.h"
#include "server/app.h"
#include "server/clock.h"
#include "server/http_conn.h"
#include "server/waiters.h"

#define STREAM_BLOCK_BYTES (256u << 10)
#define KEEP_BYTES 4096

static bool has_header(const struct tp_call *call, const char *name)
{
    for (size_t i = 0; i < call->n_out_headers; i++)
        if (strcmp(call->out_headers[i].name, name) == 0)
            return true;
    return false;
}

static void add(struct MHD_Response *r, const char *name, const char *value)
{
    /* It fails only without memory, or for a value that no client may influence. */
    if (MHD_add_response_header(r, name, value) != MHD_YES)
        return;
}

static void add_cors(struct tp_conn *c, struct MHD_Response *r)
{
    struct tp_str origin = c->call.headers[TP_HEADER_ORIGIN];
    char text[256];

    if (origin.ptr == NULL || origin.len >= sizeof(text) ||
        !tp_http_origin_is_allowed(c->app->config, origin))
        return;
    snprintf(text, sizeof(text), "%.*s", (int)origin.len, origin.ptr);
    add(r, "Access-Control-Allow-Origin", text);
    add(r, "Access-Control-Expose-Headers",
        "Content-Disposition, ETag, Location, Idempotency-Replayed, Retry-After");
    if (!has_header(&c->call, "Vary"))
        add(r, "Vary", "Origin");
    if (c->call.method == TP_METHOD_OPTIONS) {
        add(r, "Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE, OPTIONS");
        add(r, "Access-Control-Allow-Headers",
            "Content-Type, Content-Encoding, Idempotency-Key, Range, If-Range, "
            "If-None-Match");
        add(r, "Access-Control-Max-Age", "600");
    }
}

static void add_headers(struct tp_conn *c, struct MHD_Response *r)
{
    struct tp_call *call = &c->call;

    if (call->content_type != NULL)
        add(r, MHD_HTTP_HEADER_CONTENT_TYPE, call->content_type);
    for (size_t i = 0; i < call->n_out_headers; i++)
        add(r, call->out_headers[i].name, call->out_headers[i].value);
    add(r, "X-Content-Type-Options", "nosniff");
    add(r, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    if (!has_header(call, "Cache-Control"))
        add(r, "Cache-Control", "no-store");
    if (call->headers[TP_HEADER_ORIGIN].ptr != NULL)
        add_cors(c, r);
    if (call->must_close)
        add(r, MHD_HTTP_HEADER_CONNECTION, "close");
}

static enum MHD_Result queue(struct tp_conn *c, struct MHD_Response *r)
{
    c->step = TP_CONN_ANSWERED;
    return MHD_queue_response(c->mhd, (unsigned)c->call.status, r);
}

void tp_conn_forget_reply(struct tp_conn *c)
{
    if (c->kept != NULL)
        MHD_destroy_response(c->kept);
    c->kept = NULL;
    tp_buf_fini(&c->kept_body);
}

/* An answer that depends on nothing but status, type and body. */
static bool is_plain(const struct tp_call *call)
{
    return call->fixed.ptr == NULL && call->n_out_headers == 0 && !call->must_close &&
           call->headers[TP_HEADER_ORIGIN].ptr == NULL && call->out.len > 0 &&
           call->out.len <= KEEP_BYTES;
}

static bool is_kept(const struct tp_conn *c)
{
    return c->kept != NULL && c->kept_status == c->call.status &&
           c->kept_type == c->call.content_type &&
           c->kept_body.len == c->call.out.len &&
           memcmp(c->kept_body.data, c->call.out.data, c->call.out.len) == 0;
}

/* Make a response for a plain answer and keep it with its body. */
static enum MHD_Result queue_kept(struct tp_conn *c)
{
    struct tp_call *call = &c->call;

    if (is_kept(c))
        return queue(c, c->kept);
    tp_conn_forget_reply(c);
    c->kept_body = call->out;
    memset(&call->out, 0, sizeof(call->out));
    c->kept_status = call->status;
    c->kept_type = call->content_type;
    c->kept = MHD_create_response_from_buffer(c->kept_body.len, c->kept_body.data,
                                              MHD_RESPMEM_PERSISTENT);
    if (c->kept == NULL)
        return MHD_NO;
    add_headers(c, c->kept);
    return queue(c, c->kept);
}

static enum MHD_Result reply_body(struct tp_conn *c)
{
    struct tp_call *call = &c->call;
    struct tp_str body = call->fixed.ptr != NULL
                             ? call->fixed
                             : (struct tp_str){call->out.data, call->out.len};
    struct MHD_Response *r;
    enum MHD_Result rc;

    c->sent_bytes = body.len;
    if (is_plain(call))
        return queue_kept(c);
    /* The call outlives the response, so nothing is copied. */
    r = MHD_create_response_from_buffer(body.len, (void *)(uintptr_t)body.ptr,
                                        MHD_RESPMEM_PERSISTENT);
    if (r == NULL)
        return MHD_NO;
    add_headers(c, r);
    rc = queue(c, r);
    MHD_destroy_response(r);
    return rc;
}

static bool stream_is_ready(void *arg, struct tp_now now)
{
    struct tp_conn *c = arg;

    return c->call.stream.ready(c->call.stream.arg, now);
}

static void stream_is_gone(void *arg)
{
    struct tp_conn *c = arg;

    c->is_gone = true;
}

static void stream_stop(void *arg)
{
    struct tp_conn *c = arg;

    if (c->call.stream.stop != NULL)
        c->call.stream.stop(c->call.stream.arg);
}

/*
 * End the connection from within a reader. The library's own ways, an error or an end
 * of stream from the reader, leave the connection in its lists until the timeout when
 * no event can come for it any more, as after a suspension; a write that fails does
 * not. So the socket is shut, and a byte is given that can no longer be sent.
 */
static ssize_t hang_up(struct tp_conn *c, char *buf)
{
    shutdown(c->fd, SHUT_RDWR);
    buf[0] = '\n';
    return 1;
}

/* End an answer so that nobody takes it for a whole one. */
static ssize_t break_off(struct tp_conn *c, char *buf)
{
    c->is_broken_off = true;
    return hang_up(c, buf);
}

/* The answer is whole. Before HTTP/1.1 it is the end of the connection that says so. */
static ssize_t end_stream(struct tp_conn *c, char *buf)
{
    const struct tp_call_stream *stream = &c->call.stream;

    if (stream->has_size)
        return c->sent_bytes == stream->size_bytes ? MHD_CONTENT_READER_END_OF_STREAM
                                                   : break_off(c, buf);
    if (c->seen.is_http_1_1)
        return MHD_CONTENT_READER_END_OF_STREAM;
    c->is_whole = true;
    return hang_up(c, buf);
}

/* There is nothing to send now: sleep until there is. */
static ssize_t wait_for_more(struct tp_conn *c, char *buf)
{
    struct tp_waiter waiter = {.fd = c->fd,
                               .deadline_ns = UINT64_MAX,
                               .is_watch = true,
                               .suspend = tp_conn_suspend,
                               .resume = tp_conn_resume,
                               .ready = stream_is_ready,
                               .on_gone = stream_is_gone,
                               .on_stop = stream_stop,
                               .arg = c};

    return tp_waiters_add(c->app->waiters, &waiter, NULL) == TP_OK ? 0
                                                                   : break_off(c, buf);
}

static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct tp_conn *c = cls;
    struct tp_err err = {0};
    size_t got = 0;
    int rc;

    (void)pos;
    if (c->is_gone)
        return break_off(c, buf);
    rc = c->call.stream.read(c->call.stream.arg, tp_clock_now(), buf, max, &got, &err);
    if (rc == TP_EAGAIN && c->call.stream.ready != NULL)
        return wait_for_more(c, buf);
    if (rc != TP_OK) {
        if (tp_log_may_repeat(&c->app->log))
            tp_log(&c->app->log, TP_LOG_ERROR, "answer-broken-off", "action",
                   c->call.route->operation, "subject", c->call.subject, "error",
                   err.message, NULL);
        return break_off(c, buf);
    }
    c->sent_bytes += got;
    return got == 0 ? end_stream(c, buf) : (ssize_t)got;
}

static enum MHD_Result reply_stream(struct tp_conn *c)
{
    struct tp_call *call = &c->call;
    uint64_t size = call->stream.has_size ? call->stream.size_bytes : MHD_SIZE_UNKNOWN;
    struct MHD_Response *r = MHD_create_response_from_callback(
        size, call->stream.ready == NULL ? STREAM_BLOCK_BYTES : KEEP_BYTES, read_stream,
        c, NULL);
    enum MHD_Result rc;

    if (r == NULL)
        return MHD_NO;
    add_headers(c, r);
    rc = queue(c, r);
    MHD_destroy_response(r);
    return rc;
}

enum MHD_Result tp_conn_reply(struct tp_conn *c)
{
    if (c->call.reply == TP_REPLY_STREAM)
        return reply_stream(c);
    return reply_body(c);
}
