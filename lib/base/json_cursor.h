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
#include <string.h>

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

/* The first byte from p on that is no whitespace, or end. */
static inline const char *tp_json_behind_space(const char *p, const char *end)
{
    while (p < end && tp_json_is_space(*p)) {
        p++;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        /* The indentation of a line in steps of eight blanks. */
        while (end - p >= 8) {
            uint64_t others;

            memcpy(&others, p, sizeof(others));
            others ^= UINT64_C(0x2020202020202020);
            if (others != 0) {
                p += __builtin_ctzll(others) / 8;
                break;
            }
            p += 8;
        }
#endif
    }
    return p;
}

/*
 * Move to the next byte that is no whitespace. TP_EAGAIN when there is none.
 */
static inline int tp_json_space(struct tp_json *c)
{
    c->p = tp_json_behind_space(c->p, c->end);
    return c->p < c->end ? TP_OK : TP_EAGAIN;
}

#endif
