/*
 * log_file.h - the file that a client of dynolog's expects, and whether it may have it.
 *
 * Paths as texts: no file is looked at here, so what lies on the way to one is for who
 * opens it to see. Pure; safe from any thread.
 */
#ifndef TP_KINETO_LOG_FILE_H
#define TP_KINETO_LOG_FILE_H

#include <stddef.h>

#include "base/str.h"

struct tp_err;

#define TP_KINETO_LOG_FILE_BYTES 1024 /* of a path, with its NUL */

/* A path below one of some directories. Plain data. */
struct tp_kineto_log_file {
    size_t dir;                           /* which of them */
    char below[TP_KINETO_LOG_FILE_BYTES]; /* from there: "a/b.json", without "." */
};

/*
 * Find the directory that a path is below.
 *
 * path     any bytes.
 * dirs     n of them, absolute; the first that fits counts.
 * out      written on success only.
 *
 * TP_EINVAL  it is no absolute path of a file, has "..", a control character or a name
 *            that is too long, or is too long itself: with a number, too, then.
 * TP_EDENIED  it is below none.
 */
int tp_kineto_log_file_find(struct tp_str path, char *const *dirs, size_t n,
                            struct tp_kineto_log_file *out, struct tp_err *err);

/*
 * What libkineto makes of a path for one process: "/a/x.json" is "/a/x_123.json",
 * "x.pt.trace.json" is "x_123.pt.trace.json". A name without ".json" gets its number at
 * the end, since it would be the same for all processes otherwise.
 *
 * producer  as it is called here: "kineto-123" has the number 123; any other name is a
 *           number as it is.
 * out       at least TP_KINETO_LOG_FILE_BYTES; written on success only.
 *
 * TP_EINVAL  the result, or the name in it, is too long, or the number is none.
 */
int tp_kineto_log_file_name(struct tp_str path, const char *producer, char *out,
                            struct tp_err *err);

#endif
