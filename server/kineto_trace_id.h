/*
 * kineto_trace_id.h - whose file is it: the top-level member "trace_id" of a trace,
 * found while its bytes pass by.
 *
 * libkineto since November 2024 writes there what it was told as REQUEST_TRACE_ID, in
 * no fixed place. This is no reader of JSON: what is damaged is the matter of those who
 * read the events, and here it only hides the member or does not. Not thread-safe: one
 * thread owns a search.
 */
#ifndef TP_SERVER_KINETO_TRACE_ID_H
#define TP_SERVER_KINETO_TRACE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TP_KINETO_TEXT_BYTES 48

/* A search. The zero value with `wanted` is a valid one; it owns nothing. The fields
 * after is_wrong are private. */
struct tp_kineto_trace_id {
    const char *wanted; /* not owned; shorter than TP_KINETO_TEXT_BYTES */
    bool is_found;      /* there is one, and all that there are were the wanted one */
    bool is_wrong;      /* there is another one, which is in text */
    bool is_key;        /* a string that comes now would be a key */
    bool is_value;      /* a string that comes now would be the id */
    bool in_string, is_escaped;
    uint64_t depth;                  /* of objects and arrays */
    size_t n;                        /* bytes of the string so far */
    char text[TP_KINETO_TEXT_BYTES]; /* its first bytes; ended by a NUL */
};

/*
 * Look at the next bytes of a file, in any portions. A value that is no string is none.
 *
 * p, n  any bytes.
 *
 * Returns false when the id of another trace was found; then text has its beginning.
 */
bool tp_kineto_trace_id_feed(struct tp_kineto_trace_id *s, const char *p, size_t n);

#endif
