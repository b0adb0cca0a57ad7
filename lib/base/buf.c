/*
 * buf.c - growth by doubling: appending n bytes one at a time copies at most 2n.
 */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_CAP_BYTES 64

void tp_buf_fini(struct tp_buf *b)
{
    if (b == NULL)
        return;
    free(b->data);
    b->data = NULL;
    b->len = 0;
    b->cap = 0;
}

/* The capacity to have for need bytes: doubled, but not past the limit. */
static size_t next_cap(const struct tp_buf *b, size_t need)
{
    size_t cap = b->cap < FIRST_CAP_BYTES ? FIRST_CAP_BYTES : b->cap;

    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    if (b->limit_bytes != 0 && cap > b->limit_bytes)
        cap = b->limit_bytes; /* need itself is within the limit: checked before */
    return cap;
}

int tp_buf_grow(struct tp_buf *b, size_t n, struct tp_err *err)
{
    size_t cap;
    char *data;

    assert(b->len <= b->cap);
    if (n > SIZE_MAX - b->len)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu more bytes", n);
    if (b->limit_bytes != 0 && (b->len > b->limit_bytes || n > b->limit_bytes - b->len))
        return tp_fail(err, TP_EQUOTA,
                       "%zu bytes are over the buffer's limit of %zu bytes", b->len + n,
                       b->limit_bytes);
    if (n <= b->cap - b->len)
        return TP_OK;
    cap = next_cap(b, b->len + n);
    data = realloc(b->data, cap);
    if (data == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a buffer of %zu bytes", cap);
    b->data = data;
    b->cap = cap;
    return TP_OK;
}

int tp_buf_append(struct tp_buf *b, const void *p, size_t n, struct tp_err *err)
{
    int rc;

    if (n == 0)
        return TP_OK;
    rc = tp_buf_reserve(b, n, err);
    if (rc != TP_OK)
        return rc;
    memcpy(b->data + b->len, p, n);
    b->len += n;
    return TP_OK;
}

int tp_buf_append_str(struct tp_buf *b, const char *s, struct tp_err *err)
{
    return tp_buf_append(b, s, strlen(s), err);
}

int tp_buf_printf(struct tp_buf *b, struct tp_err *err, const char *format, ...)
{
    char small[256];
    char *text = small;
    va_list args;
    int n;
    int rc;

    va_start(args, format);
    n = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    if (n < 0)
        return tp_fail(err, TP_EINVAL, "text cannot be formatted");
    if ((size_t)n >= sizeof(small)) {
        /* The limit is about the content; vsnprintf's NUL needs a place of its own. */
        text = malloc((size_t)n + 1);
        if (text == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for %d bytes of text", n);
        va_start(args, format);
        vsnprintf(text, (size_t)n + 1, format, args);
        va_end(args);
    }
    rc = tp_buf_append(b, text, (size_t)n, err);
    if (text != small)
        free(text);
    return rc;
}

void tp_buf_consume(struct tp_buf *b, size_t n)
{
    assert(n <= b->len);
    if (n == 0)
        return;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}
