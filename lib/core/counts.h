/*
 * counts.h - what became of the events of one stream: emitted = stored + dropped +
 * filtered.
 *
 * Plain data without a lock: whoever owns the struct guards it. It counts; it decides
 * nothing.
 */
#ifndef TP_CORE_COUNTS_H
#define TP_CORE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct tp_err;

/* Why an event is not in the trace although no filter asked for that. Append only:
 * the numbers are stored in streams. */
enum tp_drop_cause {
    TP_DROP_UNMATCHED_END,   /* an end whose begin was never seen */
    TP_DROP_OVER_LIMIT,      /* the trace, stream or job has reached a limit */
    TP_DROP_EVENT_TOO_LARGE, /* one event over the limits of names, args or bytes */
    TP_DROP_BEFORE_START,    /* recorded before the trace began */
    TP_DROP_AFTER_STOP,      /* came when the trace had ended */
    TP_DROP_RING_FULL,       /* the producer's ring had no room */
    TP_DROP_BACKLOG_FULL,    /* the producer could not reach the service for too long */
    TP_DROP_NOT_REQUESTED,   /* a type that the producer was told not to send */
    TP_DROP_MALFORMED,       /* not readable as an event */
    TP_DROP_DAMAGED,         /* was stored and can no longer be read */
    TP_DROP_LOST,            /* the producer counted it and ended before sending it */
    TP_DROP_STORAGE_FAILED,  /* the service's disk or store took none of it in time */
    TP_DROP_CAUSES
};

/* Numbers of events, except bytes. The zero value is the empty count. */
struct tp_counts {
    uint64_t emitted;                 /* recorded by the producer, or posted */
    uint64_t stored;                  /* in the stream */
    uint64_t filtered;                /* left out because the filter says so */
    uint64_t dropped[TP_DROP_CAUSES]; /* left out for another cause */
    uint64_t repaired;                /* of the stored: changed to be valid */
    uint64_t untyped;                 /* of the stored: `cat` is no known type */
    uint64_t bytes;                   /* as stored, in bytes */
};

/* The stable name of a cause ("unmatched-end"); "unknown" for a value that is none. */
const char *tp_drop_cause_name(enum tp_drop_cause cause);

/* The cause of that name, or -1. */
int tp_drop_cause_find(struct tp_str name);

/* Add every number of b to a; sums stop at UINT64_MAX. */
void tp_counts_add(struct tp_counts *a, const struct tp_counts *b);

/* The sum of all causes. */
uint64_t tp_counts_dropped(const struct tp_counts *c);

/*
 * Check emitted = stored + dropped + filtered, and that repaired and untyped are
 * within stored.
 *
 * TP_EINVAL  it does not hold; the message has the numbers.
 */
int tp_counts_check(const struct tp_counts *c, struct tp_err *err);

#endif
