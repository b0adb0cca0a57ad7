/*
 * trace_views.h - a trace as it was at one moment, for callers to read and format.
 *
 * A view is a copy: it takes no lock, points into nothing of the engine, and stays as
 * it is. It belongs to one thread at a time. All texts are NUL-terminated UTF-8; ""
 * means absent unless said otherwise.
 */
#ifndef TP_ENGINE_TRACE_VIEWS_H
#define TP_ENGINE_TRACE_VIEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/counts.h"
#include "core/type_counts.h"
#include "core/typeset.h"
#include "engine/traces.h"

struct tp_pool;
struct tp_filter;

/* A move of the life cycle. */
struct tp_move_view {
    const char *state; /* "prepared", ... */
    uint64_t wall_ns;
    const char *cause; /* "created", "request", "duration reached", ... */
};

/* Who a producer is. rank and pid are -1, world_size 0 when not known. */
struct tp_identity_view {
    const char *id; /* "" when it is not registered */
    const char *name;
    const char *kind; /* "native", "kineto", "http" */
    const char *host;
    const char *backend;
    const char *device;
    int64_t rank; /* its own, or that of who it is one process with */
    int64_t pid;
    uint32_t world_size; /* likewise */
    const char *process; /* base/process_key.h; "" = not known */
    /* What join.h found out; 0 and "" where it was not asked or there is nothing. */
    uint32_t process_no;     /* equal for all that are one process; from 1 */
    int64_t process_pid;     /* the pid that this process has in its events; 0 */
    const char *joined_with; /* the id of another producer of this process */
    const char *join_note;   /* where they disagree, or why they were not joined */
};

/* Batches that the storage has refused and that are to come again: they are in no
 * counts. */
struct tp_waiting_view {
    uint64_t batches, events;
    const char *reason; /* what was said of the last of them; set when batches > 0 */
};

/* A registered producer and this trace. */
struct tp_member_view {
    struct tp_identity_view who;
    bool is_matched;
    const char *state; /* matched: "waiting", "armed", "recording", "flushing", "done",
                           "refused", "lost"; else "unmatched" */
    const char
        *reason; /* unmatched: why ("stale 75 s", "not selected: rank"); refused or
                    lost: why; else how many batches of it were refused, or "" */
    uint32_t stream_no;        /* of its stream; 0 = none yet */
    uint64_t step;             /* the last that it reported */
    struct tp_counts reported; /* what it says that it emitted, filtered and dropped */
    struct tp_counts counts;   /* what became of all that it emitted: of its stream, and
                                  of what it did not send */
    const struct tp_type_count *types; /* the same by type, as far as it says so */
    size_t n_types;
    struct tp_waiting_view waiting;
    bool has_clock;
    int64_t clock_offset_ns; /* server time = producer time + offset */
    uint64_t clock_error_ns; /* plus or minus */
};

/* What one producer recorded: a stream. */
struct tp_stream_view {
    uint32_t no; /* 1 to 65535 */
    struct tp_identity_view who;
    bool is_file;            /* a whole file, else batches of events */
    const char *file_name;   /* as the client called it, safe characters only */
    const char *state;       /* "open", "sealing", "sealed", "failed" */
    const char *reason;      /* failed: why; else what there is to know, such as a batch
                                that was torn by a kill before it was acknowledged */
    struct tp_counts counts; /* emitted is what was posted */
    struct tp_waiting_view waiting;
    uint64_t batches;
    uint64_t duplicate_batches;
    uint64_t bytes;     /* on disk */
    const char *damage; /* "2 places skipped, the first at byte 1034"; "" = none */
    bool has_times;
    int64_t first_ns; /* earliest start and latest end of its events */
    int64_t last_ns;
};

/* A type of the filter as resolved. */
struct tp_filter_type_view {
    unsigned id;
    const char *name;
};

/* A trace. Times are 0 while they have not come. */
struct tp_trace_view {
    char id[TP_TRACE_ID_BYTES];
    bool is_dry_run;
    bool is_replay;
    bool is_active;
    uint64_t version; /* as tp_engine_trace_version() */
    const char *job;
    const char *label;
    const char *metadata_json; /* as given; "" = none */
    const char *kineto_json;   /* likewise */
    const char *state;
    const char *outcome; /* "complete", "lossy", "partial", "empty"; "" before */
    const char *reason;  /* of outcome, failure or cancellation; may be "" */

    uint64_t created_wall_ns, started_wall_ns, stopped_wall_ns, finished_wall_ns;
    uint64_t start_at_wall_ns; /* when producers were told to start */
    uint64_t deadline_wall_ns; /* when the next thing happens by itself; 0 = never */
    const char *deadline_what; /* "start", "stop", "flush", "arm"; "" */
    uint64_t skew_ns;          /* latest less earliest start of the producers */
    bool has_skew;

    const struct tp_filter *filter; /* held by the view; its lists as written */
    struct tp_typeset requested;    /* what producers record */
    struct tp_typeset accepted;     /* what ingest lets through */
    const struct tp_filter_type_view *types; /* the requested ones, by id */
    size_t n_types;

    const uint32_t *ranks; /* select, as asked */
    size_t n_ranks;
    const char *const *hosts;
    size_t n_hosts;
    const char *const *producers;
    size_t n_producers;

    enum tp_trace_start start;
    uint64_t start_wall_ns;
    uint64_t start_step;
    uint64_t duration_ms;    /* in effect: the server's cap applied */
    uint64_t steps;          /* 0 = no limit */
    uint64_t max_bytes;      /* in effect */
    bool duration_is_capped; /* asked for more than the cap, or for nothing */
    bool max_bytes_is_capped;
    enum tp_trace_require require;
    uint32_t require_count;

    const char *const *warnings;
    size_t n_warnings;
    const struct tp_move_view *moves; /* oldest first */
    size_t n_moves;
    const struct tp_member_view *members; /* matched and unmatched, in order of name */
    size_t n_members;
    size_t n_matched;
    const struct tp_stream_view *streams; /* in order of number */
    size_t n_streams;

    struct tp_counts totals;        /* of all streams */
    struct tp_waiting_view waiting; /* likewise */
    uint64_t bytes;                 /* on disk */
    uint64_t late_batches;          /* posted when it took no more data: refused */
    uint64_t late_events;           /* in those of them that were read */
    struct tp_pool *pool;           /* private: what all of it lives in */
};

/* Release a view. NULL is allowed. */
void tp_trace_view_free(struct tp_trace_view *view);

/* A page of traces; release with tp_trace_list_free(). */
struct tp_trace_list {
    struct tp_trace_view **items; /* n of them, owned by the list */
    size_t n;
    bool has_more; /* go on with after = items[n - 1]->id */
};

/* Release a list and its views. NULL is allowed. */
void tp_trace_list_free(struct tp_trace_list *list);

#endif
