/*
 * rows.h - the rows of the store, as plain data.
 *
 * They hold what was decided and what happened, without judging it: states and outcomes
 * are texts here. Strings are borrowed: of the caller when it writes, of the store for
 * the time of the callback when it reads. Times are wall nanoseconds since 1970, 0 =
 * not yet. rank and pid are -1 when not known.
 */
#ifndef TP_STORE_ROWS_H
#define TP_STORE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "core/counts.h"

struct tp_row_job {
    struct tp_str name; /* key */
    uint64_t created_ns;
};

/* Read back in order of registration. */
struct tp_row_type {
    struct tp_str job;
    unsigned id; /* with job: key */
    struct tp_str plugin;
    struct tp_str type_name;
    struct tp_str description;
    struct tp_str unit;
    struct tp_str kind;
    uint64_t created_ns;
};

/* Who a producer is: part of three kinds of rows. */
struct tp_row_identity {
    struct tp_str producer_id; /* empty when it is not registered */
    struct tp_str name;
    struct tp_str kind;
    struct tp_str host;
    struct tp_str backend;
    struct tp_str device;
    int64_t rank;
    int64_t pid;
    uint32_t world_size;
    struct tp_str process; /* base/process_key.h; empty = not known */
};

struct tp_row_producer {
    struct tp_row_identity who; /* producer_id: key */
    struct tp_str job;
    struct tp_str capabilities; /* JSON text */
    uint64_t registered_ns;
    uint64_t seen_ns;
};

struct tp_row_trace {
    struct tp_str id; /* key */
    struct tp_str job;
    struct tp_str state;
    struct tp_str spec; /* what was asked for and resolved: JSON text of the engine */
    uint32_t n_types;   /* custom types that the job had when it was made */
    uint64_t version;
    uint64_t created_ns;
    uint64_t start_at_ns; /* the common start time */
    uint64_t deadline_ns; /* of the present state */
    struct tp_str outcome;
    struct tp_str reason;
    uint64_t late_batches;
    uint64_t late_events;
};

struct tp_row_move {
    struct tp_str trace;
    uint32_t no; /* with trace: key; from 0 */
    struct tp_str state;
    int64_t wall_ns;
    struct tp_str cause;
};

struct tp_row_member {
    struct tp_str trace;
    struct tp_row_identity who; /* trace, producer_id: key */
    bool is_matched;
    struct tp_str state;
    struct tp_str reason;
    uint32_t stream_no;
    uint64_t step;
    uint64_t started_ns; /* by its own clock, corrected; 0 = not said */
    struct tp_counts reported;
    struct tp_str type_counts; /* text of core/type_counts.h */
    bool has_clock;
    int64_t clock_offset_ns;
    uint64_t clock_error_ns;
    int64_t uid;              /* of its process, as the kernel said; -1 = not known */
    struct tp_str folder_key; /* of its folder, secret; "" = it has none */
    uint64_t interval_ns;     /* how often its process asks; 0 = not known */
};

struct tp_row_stream {
    struct tp_str trace;
    uint32_t no; /* with trace: key */
    struct tp_row_identity who;
    bool is_file;
    struct tp_str file_name;
    struct tp_str state;
    struct tp_str reason;
    struct tp_str damage;
    struct tp_counts counts;
    uint64_t batches;
    uint64_t duplicates;
    bool has_times;
    int64_t first_ns;
    int64_t last_ns;
    struct tp_str refusals; /* text of engine/refusals.h; empty = none */
};

/* An idempotency key and the trace that it made. */
struct tp_row_key {
    struct tp_str key; /* key */
    struct tp_str fingerprint;
    struct tp_str trace;
    uint64_t created_ns;
};

#endif
