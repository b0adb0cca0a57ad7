/*
 * json_cursor.h - where a scan of JSON text stands, and its whitespace.
 *
 * The functions of json_*.h take a cursor, move it over one token or value and say
 * TP_OK; or TP_EAGAIN when the text ends inside it; or TP_EINVAL with the cursor on
 * the byte at fault and `why` set. They format no message, for they run once a token:
 * the caller knows the offset of the text and words the error. What they accept
 * depends on the bytes up to where they stop and on nothing behind.
 * Not shared between threads.
 */
#ifndef TP_BASE_JSON_CURSOR_H
#define TP_BASE_JSON_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Plain data. */
struct tp_json {
    const char *p;   /* next byte */
    const char *end; /* behind the last one */
    const char *why; /* of the last TP_EINVAL or TP_EQUOTA: static text */
};

/* Record what is wrong at the cursor. Returns TP_EINVAL. */
static inline int tp_json_bad(struct tp_json *c, const char *why)
{
    c->why = why;
    return TP_EINVAL;
}

/* Whether a byte is JSON whitespace. */
static inline bool tp_json_is_space(char ch)
{
    /* One comparison for nearly all others; then a bit for each of the four. */
    return (unsigned char)ch <= ' ' && (UINT64_C(0x100002600) >> ch & 1) != 0;
}

/*
 * Move to the next byte that is no whitespace. TP_EAGAIN when there is none.
 */
static inline int tp_json_space(struct tp_json *c)
{
    const char *p = c->p;

    while (p < c->end && tp_json_is_space(*p))
        p++;
    c->p = p;
    return p < c->end ? TP_OK : TP_EAGAIN;
}

#endif
