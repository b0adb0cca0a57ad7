/*
 * log.h - lines on standard error in logfmt: time, level, event, then key=value.
 *
 * One write(2) a line, so lines of several threads do not mix. It keeps nothing back
 * and never blocks longer than standard error does. Any function from any thread.
 */
#ifndef TP_SERVER_LOG_H
#define TP_SERVER_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum tp_log_level { TP_LOG_ERROR, TP_LOG_WARNING, TP_LOG_INFO, TP_LOG_DEBUG };

/* Embed it. fd and level are set before threads start; the rest starts as zero. */
struct tp_log {
    int fd;
    enum tp_log_level level;    /* lines above it are left out */
    _Atomic uint64_t window_s;  /* private: of the rate limit */
    _Atomic uint64_t in_window; /* private: limited lines in this second */
    _Atomic uint64_t left_out;  /* private: of them, not written */
};

/* The level of that name, or -1. */
int tp_log_level_find(const char *name);

/*
 * Write a line.
 *
 * event  what happened: one or a few words with dashes.
 * ...    pairs of key and value, both const char *, ended by NULL. Values are quoted as
 *        needed; a NULL value leaves its pair out. A line that is too long is cut.
 */
void tp_log(struct tp_log *log, enum tp_log_level level, const char *event, ...)
    __attribute__((sentinel));

/* Whether one more line of a kind that clients can cause may be written: at most 20 a
 * second pass, and the next line after a silence tells how many did not. */
bool tp_log_may_repeat(struct tp_log *log);

#endif
