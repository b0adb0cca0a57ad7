/*
 * check.h - the rules for texts that clients send.
 *
 * Those that return int fail with TP_EINVAL (INVALID with the field) or TP_EQUOTA
 * (LIMIT_EXCEEDED).
 * Pure functions; safe from any thread.
 */
#ifndef TP_ENGINE_CHECK_H
#define TP_ENGINE_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_err;
struct tp_problem;

#define TP_FILE_NAME_BYTES 255 /* longest name of a file that is uploaded */

/* A job name: 1 to 63 of [A-Za-z0-9._-], no dot in front. *job, when empty, becomes
 * "default". */
int tp_check_job(struct tp_str *job, struct tp_problem *problem, struct tp_err *err);

/* Text that people read: valid UTF-8 without control characters, at most max_bytes
 * (limit and its name). Empty is fine. */
int tp_check_text(const char *field, struct tp_str s, const char *limit,
                  uint64_t max_bytes, struct tp_problem *problem, struct tp_err *err);

/*
 * What is shown of a file's name: without the folders in front, without dots at its
 * start, and with '_' for characters that mean something to file systems, shells or
 * browsers.
 *
 * given  valid UTF-8.
 * out    room for given.len + 1 bytes.
 *
 * Returns the bytes written before the NUL; 0 is possible.
 */
size_t tp_check_file_name(struct tp_str given, char *out);

/* A rank: -1 or 0 to 2^31 - 1. */
int tp_check_rank(int64_t rank, struct tp_problem *problem, struct tp_err *err);

/* An idempotency key: printable ASCII, 1 to 255 bytes; empty is fine. */
int tp_check_key(struct tp_str key, struct tp_problem *problem, struct tp_err *err);

#endif
