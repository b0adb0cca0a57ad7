/*
 * buf.h - a byte buffer that grows up to a limit.
 *
 * The appenders of the event path are inline: reserve once, write, commit. Not
 * thread-safe; a buffer belongs to one caller at a time.
 */
#ifndef TP_BASE_BUF_H
#define TP_BASE_BUF_H

#include <stddef.h>
#include <string.h>

#include "base/err.h"

/*
 * Plain data; embed it. The zero value is a valid empty buffer without a limit.
 * data is NULL while cap is 0. Bytes 0..len-1 are the content; it is not
 * NUL-terminated.
 */
struct tp_buf {
    char *data;
    size_t len;
    size_t cap;
    size_t limit_bytes; /* most bytes that len may reach; 0 = no limit */
};

/* Release the memory of b and make it empty; its limit stays. All-zero is allowed. */
void tp_buf_fini(struct tp_buf *b);

/*
 * Make room for at least n more bytes after len; len does not change. The slow
 * path of tp_buf_reserve().
 *
 * TP_ENOMEM  no memory. TP_EQUOTA  len + n is over the limit. The content stays.
 */
int tp_buf_grow(struct tp_buf *b, size_t n, struct tp_err *err);

/*
 * Append n bytes from p.
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_grow(); nothing was appended.
 */
int tp_buf_append(struct tp_buf *b, const void *p, size_t n, struct tp_err *err);

/* Append the bytes of a C string without its NUL; errors as tp_buf_append(). */
int tp_buf_append_str(struct tp_buf *b, const char *s, struct tp_err *err);

/* Append formatted text; errors as tp_buf_append(). */
int tp_buf_printf(struct tp_buf *b, struct tp_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Drop the first n bytes and move the rest to the front.
 *
 * n  0 to b->len.
 */
void tp_buf_consume(struct tp_buf *b, size_t n);

/* As tp_buf_grow(), without a call when there is room already. */
static inline int tp_buf_reserve(struct tp_buf *b, size_t n, struct tp_err *err)
{
    if (__builtin_expect(b->cap - b->len >= n && b->limit_bytes == 0, 1))
        return TP_OK;
    return tp_buf_grow(b, n, err);
}

#endif
