/*
 * http_fields.h - header fields of downloads: ranges, entity tags, codings (RFC 9110).
 *
 * Total: any bytes give an answer. Pure functions; safe from any thread.
 */
#ifndef TP_API_HTTP_FIELDS_H
#define TP_API_HTTP_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* What to do with a Range header. */
enum tp_range_kind {
    TP_RANGE_NONE,         /* absent, several ranges, or not understood: send all */
    TP_RANGE_ONE,          /* first to last, both included */
    TP_RANGE_UNSATISFIABLE /* nothing of it is there: 416 */
};

/* Whether a Range header asks for one range of bytes, so that the size is needed. */
bool tp_range_is_single(struct tp_str header);

/*
 * Read a Range header against a size.
 *
 * first, last  set for TP_RANGE_ONE; first <= last < size_bytes.
 */
enum tp_range_kind tp_range_parse(struct tp_str header, uint64_t size_bytes,
                                  uint64_t *first, uint64_t *last);

/* Whether an If-None-Match header names the tag (with its quotes), or is "*"; weak
 * comparison. */
bool tp_etag_is_listed(struct tp_str header, struct tp_str etag);

/* Whether an If-Range header lets a range through: it is absent or the very tag. */
bool tp_etag_allows_range(struct tp_str header, struct tp_str etag);

/* A coding of an answer; the order is that of preference when a client does not care.
 * */
enum tp_accept {
    TP_ACCEPT_GZIP,
    TP_ACCEPT_ZSTD,
    TP_ACCEPT_IDENTITY,
    TP_ACCEPT_NOTHING
};

/*
 * Choose a coding by an Accept-Encoding header with its q values. Without the header it
 * is identity; NOTHING when the header forbids all of ours.
 */
enum tp_accept tp_accept_coding(struct tp_str header);

#endif
