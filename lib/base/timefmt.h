/*
 * timefmt.h - RFC 3339 UTC text with nanoseconds, to and from a count of them.
 *
 * Reads no clock and no time zone data; a time is nanoseconds since 1970-01-01T00:00Z
 * without leap seconds (CLOCK_REALTIME), which int64_t can hold from 1677-09-21 to
 * 2262-04-11. Pure functions; safe from any thread.
 */
#ifndef TP_BASE_TIMEFMT_H
#define TP_BASE_TIMEFMT_H

#include <stddef.h>
#include <stdint.h>

struct tp_err;

#define TP_TIMEFMT_BYTES 31 /* "2026-08-20T12:34:56.123456789Z" and a NUL */

/*
 * Write wall_ns as RFC 3339 with exactly nine fraction digits and Z.
 *
 * wall_ns  any value.
 * out      at least TP_TIMEFMT_BYTES bytes; NUL-terminated.
 *
 * Returns out.
 */
char *tp_timefmt_write(int64_t wall_ns, char *out);

/*
 * Parse RFC 3339 text, all of it: no blanks around, `T` and `Z` in either case, Z or
 * a numeric offset up to 23:59, none to nine fraction digits. Second 60 is taken only
 * where a leap second can be (23:59:60 UTC) and means the second after :59.
 *
 * p, n  any n bytes; need not be NUL-terminated.
 * out   nanoseconds since the epoch; set on success only.
 *
 * TP_EINVAL  not such a text, or out of the range of int64_t; the message tells the
 *            byte offset.
 */
int tp_timefmt_parse(const char *p, size_t n, int64_t *out, struct tp_err *err);

#endif
