/*
 * datagram.c - the layout, byte by byte:
 *
 *   0   size of the payload, 8 bytes
 *   8   type, 32 bytes, filled up with NUL
 *   40  "ctxt": gpu 4, pid 4, job 8
 *       "req":  type 4, n 4, job 8, n pids of 4 each
 *
 * The sizes are compared with each other before anything behind the header is looked
 * at: dynolog believes the sender and reads past the end of what came.
 */
#include "kineto/datagram.h"

#include "base/buf.h"
#include "base/err.h"

#define TYPE_OFFSET 8
#define TYPE_BYTES 32
#define CONTEXT_BYTES 16
#define REQUEST_BYTES 16 /* without the pids */

static int32_t read_i32(const char *p)
{
    int32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static int64_t read_i64(const char *p)
{
    int64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static int read_context(const char *p, size_t n, struct tp_kineto_datagram *out,
                        struct tp_err *err)
{
    if (n != CONTEXT_BYTES)
        return tp_fail(err, TP_EINVAL, "byte 40: a context has %d bytes, not %zu",
                       CONTEXT_BYTES, n);
    out->message = TP_KINETO_CONTEXT;
    out->gpu = read_i32(p);
    out->n_pids = 1;
    out->pids[0] = read_i32(p + 4);
    out->job = read_i64(p + 8);
    return TP_OK;
}

static int read_request(const char *p, size_t n, struct tp_kineto_datagram *out,
                        struct tp_err *err)
{
    int32_t n_pids;

    if (n < REQUEST_BYTES)
        return tp_fail(err, TP_EINVAL, "byte 40: a request has at least %d bytes",
                       REQUEST_BYTES);
    n_pids = read_i32(p + 4);
    if (n_pids < 0 || n_pids > TP_KINETO_PIDS_MAX)
        return tp_fail(err, TP_EINVAL, "byte 44: %d pids are not 0 to %d", (int)n_pids,
                       TP_KINETO_PIDS_MAX);
    if (n != REQUEST_BYTES + 4 * (size_t)n_pids)
        return tp_fail(err, TP_EINVAL, "byte 44: %d pids do not fill %zu bytes",
                       (int)n_pids, n - REQUEST_BYTES);
    out->message = TP_KINETO_REQUEST;
    out->type = (uint32_t)read_i32(p);
    out->n_pids = (size_t)n_pids;
    out->job = read_i64(p + 8);
    for (size_t i = 0; i < out->n_pids; i++)
        out->pids[i] = read_i32(p + REQUEST_BYTES + 4 * i);
    return TP_OK;
}

int tp_kineto_datagram_read(const void *p, size_t n, struct tp_kineto_datagram *out,
                            struct tp_err *err)
{
    const char *bytes = p;
    struct tp_kineto_datagram d = {0};
    struct tp_str type;
    uint64_t size;
    int rc;

    if (n < TP_KINETO_HEADER_BYTES || n > TP_KINETO_DATAGRAM_MAX_BYTES)
        return tp_fail(err, TP_EINVAL, "byte 0: %zu bytes are not %d to %d", n,
                       TP_KINETO_HEADER_BYTES, TP_KINETO_DATAGRAM_MAX_BYTES);
    memcpy(&size, bytes, sizeof(size));
    n -= TP_KINETO_HEADER_BYTES;
    if (size != n)
        return tp_fail(err, TP_EINVAL, "byte 0: %llu bytes are announced, %zu came",
                       (unsigned long long)size, n);
    type =
        (struct tp_str){bytes + TYPE_OFFSET, strnlen(bytes + TYPE_OFFSET, TYPE_BYTES)};
    bytes += TP_KINETO_HEADER_BYTES;
    if (tp_str_is(type, "req"))
        rc = read_request(bytes, n, &d, err);
    else if (tp_str_is(type, "ctxt"))
        rc = read_context(bytes, n, &d, err);
    else
        rc = tp_fail(err, TP_EINVAL, "byte 8: the type is neither ctxt nor req");
    if (rc == TP_OK)
        *out = d;
    return rc;
}

static void write_header(const char *type, size_t payload_bytes, char *out)
{
    uint64_t size = payload_bytes;

    memset(out, 0, TP_KINETO_HEADER_BYTES);
    memcpy(out, &size, sizeof(size));
    memcpy(out + TYPE_OFFSET, type, strlen(type));
}

int tp_kineto_reply_config(struct tp_str text, struct tp_buf *out, struct tp_err *err)
{
    char header[TP_KINETO_HEADER_BYTES];
    int rc = tp_buf_reserve(out, sizeof(header) + text.len, err);

    if (rc != TP_OK)
        return rc;
    write_header("req", text.len, header);
    rc = tp_buf_append(out, header, sizeof(header), err);
    if (rc == TP_OK && text.len > 0)
        rc = tp_buf_append(out, text.ptr, text.len, err);
    return rc;
}

void tp_kineto_reply_count(int32_t count, char *out)
{
    write_header("ctxt", sizeof(count), out);
    memcpy(out + TP_KINETO_HEADER_BYTES, &count, sizeof(count));
}
