/*
 * limits.h - every limit of the service: name, unit, default and range, in one place.
 *
 * The values are read by whoever enforces them; this file enforces none and knows no
 * config file. Plain data: fill it before threads start, then only read it. Limits
 * that are part of a format (name lengths of activity types: registry.h) are constants
 * and not here.
 */
#ifndef TP_CORE_LIMITS_H
#define TP_CORE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_err;

/*
 * Plain data; start with tp_limits_default(). A field's flag is its name with "max-"
 * before it and dashes for underscores: body_bytes is --max-body-bytes.
 */
struct tp_limits {
    /* Requests */
    uint64_t body_bytes;           /* a control request's body */
    uint64_t header_bytes;         /* request line and headers together */
    uint64_t events_body_bytes;    /* one POST of events, as sent */
    uint64_t file_bytes;           /* an uploaded or collected file, as sent */
    uint64_t file_inflated_bytes;  /* the same, decompressed */
    uint64_t inflate_ratio;        /* decompressed bytes per compressed byte */
    uint64_t connections;          /* open at once, all listeners */
    uint64_t connections_per_peer; /* open at once from one address or uid */
    uint64_t requests_per_s;       /* from one peer or token; 0 = no limit */
    uint64_t list_items;           /* items of one page of a list */
    /* Text */
    uint64_t json_depth;     /* nested arrays and objects */
    uint64_t name_bytes;     /* an event's name or category, an argument's key */
    uint64_t label_bytes;    /* a trace's label, a job, host or backend name */
    uint64_t metadata_bytes; /* `metadata` of one trace, as JSON text */
    /* Events */
    uint64_t event_bytes;    /* one event with everything in it */
    uint64_t args_per_event; /* members of `args` */
    /* Streams */
    uint64_t stream_metadata_bytes;  /* top-level members of one source file */
    uint64_t stream_metadata_events; /* M events of one stream */
    uint64_t stream_tracks;          /* pairs of pid and tid of one stream */
    uint64_t stream_names;           /* interned names of one stream */
    uint64_t stream_names_bytes;     /* their bytes */
    uint64_t open_slices;            /* begins waiting for their end, of one stream */
    uint64_t spill_bytes; /* memory for sorting one stream before it spills */
    /* Traces and jobs */
    uint64_t trace_bytes;         /* stored data of one trace */
    uint64_t trace_duration_ms;   /* recording */
    uint64_t trace_prepared_ms;   /* waiting for a start */
    uint64_t trace_arming_ms;     /* waiting for producers to arm, when starting now */
    uint64_t trace_stopping_ms;   /* collecting what producers have */
    uint64_t streams_per_trace;   /* producers with data in one trace */
    uint64_t active_traces;       /* not yet final, all jobs */
    uint64_t stored_traces;       /* rows kept, final ones included */
    uint64_t jobs;                /* known at once */
    uint64_t types_per_job;       /* custom activity types */
    uint64_t types_per_request;   /* of one POST /types */
    uint64_t producers_per_job;   /* attached at once */
    uint64_t producer_silence_ms; /* then a producer counts as gone */
    uint64_t filter_entries;      /* of each list of a filter */
    uint64_t filter_entry_bytes;  /* one entry */
    uint64_t select_entries;      /* of each list of a selection */
    uint64_t watchers;            /* open event streams of /watch */
    uint64_t live_downloads;      /* of active traces, being prepared at once */
    uint64_t idempotency_keys;    /* remembered answers */
    uint64_t idempotency_ms;      /* for so long */
};

/* Plain data: one row of the table. */
struct tp_limit_info {
    const char *name; /* the flag without dashes in front: "max-body-bytes" */
    const char *unit; /* "bytes", "ms", "levels", ... */
    const char *help; /* one sentence */
    uint64_t default_value;
    uint64_t min;  /* the setter refuses less */
    uint64_t max;  /* and more */
    size_t offset; /* of the field in struct tp_limits */
};

/* The defaults. */
struct tp_limits tp_limits_default(void);

/* The table in a fixed order, for usage texts and docs; *n gets its length. Static. */
const struct tp_limit_info *tp_limits_table(size_t *n);

/* The row of that name ("max-body-bytes", or without "max-"), or NULL. */
const struct tp_limit_info *tp_limits_find(struct tp_str name);

/* The value of a row's field. */
uint64_t tp_limits_get(const struct tp_limits *limits,
                       const struct tp_limit_info *info);

/*
 * Set a limit from text.
 *
 * name  as tp_limits_find().
 * text  a decimal number, for bytes also with K, M, G or T (powers of 1024, an `iB` or
 *       `B` may follow), for ms also with ms, s, m or h.
 *
 * TP_ENOTFOUND  no such limit. TP_EINVAL  no number, or out of the row's range. The
 * old value stays.
 */
int tp_limits_set(struct tp_limits *limits, struct tp_str name, struct tp_str text,
                  struct tp_err *err);

#endif
