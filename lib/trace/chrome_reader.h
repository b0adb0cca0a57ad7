/*
 * chrome_reader.h - Chrome trace JSON (object, array or NDJSON) as events.
 *
 * Push style: bytes go in as they arrive, in pieces of any size, events come out
 * through a callback. Memory does not grow with the input: at most one event
 * and one metadata value are held. Total: any bytes give events or TP_EINVAL with
 * the byte offset. It repairs what the wild gets wrong and counts each repair.
 * One thread at a time.
 */
#ifndef TP_TRACE_CHROME_READER_H
#define TP_TRACE_CHROME_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "trace/event.h"

struct tp_chrome_reader;

/* Takes one event; a non-zero answer stops the reader and is returned by it. */
typedef int (*tp_event_fn)(const struct tp_event *ev, struct tp_err *err, void *arg);

/* Takes one top-level member besides traceEvents: its key (unescaped, UTF-8) and its
 * value as valid JSON text. Same answer rule. */
typedef int (*tp_member_fn)(struct tp_str key, struct tp_str json, struct tp_err *err,
                            void *arg);

enum tp_chrome_form {
    TP_CHROME_JSON,  /* an object with traceEvents, an array of events, or one event */
    TP_CHROME_NDJSON /* an event a line */
};

/* Zero means the default, where one is named. */
struct tp_chrome_reader_opts {
    enum tp_chrome_form form;
    bool salvage;        /* false: damage ends the reading with TP_EINVAL; true: skip to
                             the next event and record the damage (whole files) */
    uint32_t depth_max;  /* nesting of JSON; default 64 */
    uint32_t args_max;   /* members of args; default 256; more -> event rejected */
    size_t name_bytes;   /* longest name, cat, id or key; default 65536 (kernel
                             names of templates pass 4096); longer ->
                             event rejected */
    size_t event_bytes;  /* longest event as text; default 1 MiB; longer -> rejected */
    size_t member_bytes; /* longest top-level value; default 4 MiB; longer -> left out
                             and counted */
    size_t members_bytes;   /* all top-level values together; default 8 MiB */
    uint32_t tracks_max;    /* most (pid, tid) pairs; default 1048576 */
    tp_event_fn on_event;   /* not NULL */
    tp_member_fn on_member; /* NULL: members are ignored */
    void *arg;              /* passed to both */
};

#define TP_CHROME_DAMAGES_MAX 16

/* Why a value of traceEvents is no event. */
enum tp_chrome_reject {
    TP_CHROME_MALFORMED,   /* not an object, or without a usable ph, ts or dur */
    TP_CHROME_TOO_LARGE,   /* over event_bytes, name_bytes, args_max or depth_max */
    TP_CHROME_OVER_TRACKS, /* on a new track when there are tracks_max */
    TP_CHROME_REJECTS
};

/* What was found; plain data. Every complete value in traceEvents is an event. */
struct tp_chrome_stats {
    uint64_t events;   /* seen: handed over or rejected */
    uint64_t rejected; /* of all causes together; see last_rejection */
    uint64_t rejected_by[TP_CHROME_REJECTS];
    uint64_t repaired; /* events in which something was repaired (bad UTF-8, negative
                           dur, NaN, Infinity, unpaired surrogates, escapes that
                           are none, control characters that are not escaped) */
    uint64_t members_left_out;                     /* top-level values over a limit */
    uint64_t damages;                              /* places that salvage skipped */
    uint64_t damage_offset[TP_CHROME_DAMAGES_MAX]; /* the first of them, bytes */
    bool is_truncated;   /* the input ended inside a value (salvage) */
    bool lacks_events;   /* it is an object without traceEvents that is no event */
    bool has_base;       /* baseTimeNanoseconds was there */
    bool base_was_added; /* ... before the events, so that ts_ns are absolute */
    int64_t base_ns;
    char last_rejection[128]; /* why, for the first rejected event; "" when none */
};

/*
 * Create a reader; opts is copied.
 *
 * out  set only on success; release it with tp_chrome_reader_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_chrome_reader_new(const struct tp_chrome_reader_opts *opts,
                         struct tp_chrome_reader **out, struct tp_err *err);

/* Release a reader and all that its events pointed to. NULL is allowed. */
void tp_chrome_reader_free(struct tp_chrome_reader *r);

/* Start over with the same options, keeping memory for reuse. All tracks are forgotten:
 * their pointers are invalid, and index starts at 0 again. */
void tp_chrome_reader_reset(struct tp_chrome_reader *r);

/*
 * Read n more bytes.
 *
 * TP_EINVAL  damaged JSON: the message has the byte offset from the start; events
 *            before it were handed over. Further calls give the same answer.
 * TP_ENOMEM  likewise final.
 * other      what a callback answered; likewise final.
 */
int tp_chrome_reader_feed(struct tp_chrome_reader *r, const char *p, size_t n,
                          struct tp_err *err);

/*
 * Say that the input is complete. An array without its `]` is fine; an input
 * that ends inside a value is TP_EINVAL (damage when salvaging). Empty input is
 * TP_EINVAL. Errors as tp_chrome_reader_feed().
 */
int tp_chrome_reader_finish(struct tp_chrome_reader *r, struct tp_err *err);

/* What was found so far; points into the reader. */
const struct tp_chrome_stats *tp_chrome_reader_stats(const struct tp_chrome_reader *r);

#endif
