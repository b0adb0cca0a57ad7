/*
 * trace_info.h - all that a download says about itself besides its events.
 *
 * Plain structs that the engine fills in, and the one JSON form of them that every
 * format carries: as members of a Chrome file, as a packet of a Perfetto one
 * (docs/trace-format.md). It knows no format and reads no stream. Nothing here owns
 * memory: texts and arrays are borrowed and must outlive their use. Pure functions;
 * safe from any thread.
 */
#ifndef TP_TRACE_TRACE_INFO_H
#define TP_TRACE_TRACE_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/counts.h"
#include "core/typeset.h"

struct tp_buf;
struct tp_err;
struct tp_index_clock;
struct tp_type;
struct tp_type_count;

/* Of the "traceplane" member. Grows when a reader must know. */
#define TP_TRACE_INFO_SCHEMA 1

/* One producer of the trace. Empty texts, false and 0 mean "not known" where no other
 * meaning is given. */
struct tp_producer_info {
    struct tp_str id;   /* the service's own, unique in the job */
    struct tp_str name; /* for people */
    struct tp_str kind; /* "native", "kineto", "http" */
    bool has_rank;
    uint32_t rank;
    uint32_t world_size;
    struct tp_str host;
    int64_t pid;           /* as the producer sees itself */
    struct tp_str backend; /* of the distributed job: "nccl" */
    struct tp_str device;
    uint32_t process_no; /* equal for producers that are one process; 0 = by itself */
    int64_t process_pid; /* the pid of that process in its events; 0 = not known */
    struct tp_str joined_with; /* the id of another producer of this process */
    struct tp_str join_note;   /* where they disagree, or why they were not joined */
    struct tp_counts counts;
    const struct tp_type_count *types; /* the same by type, as far as known */
    size_t n_types;
    bool has_clock;          /* the two below are measured */
    int64_t clock_offset_ns; /* to be added to its times to get the service's */
    uint64_t clock_error_ns; /* the offset is right within this */
    const struct tp_index_clock *clocks; /* what its times were moved by onto the
                                            service's clock; NULL: they are as its own
                                            clock had them */
    size_t n_clocks;
    struct tp_str state, outcome, reason;
    const struct tp_str *notes; /* sentences: damage, repairs, what was left out */
    size_t n_notes;
};

/* The trace. */
struct tp_trace_info {
    struct tp_str service; /* name and version of what wrote it */
    struct tp_str trace_id, job, label;
    struct tp_str metadata_json; /* the client's object as JSON text; empty: none */
    struct tp_str state, outcome, reason;
    struct tp_str filter_json;                   /* as resolved; empty: no filter */
    int64_t prepared_ns, started_ns, stopped_ns; /* wall clock; 0 = did not happen */
    bool has_skew;
    uint64_t skew_ns;        /* from the first producer's start to the last one's */
    struct tp_counts counts; /* of all producers */
    const struct tp_producer_info *producers; /* all that matched, also without data */
    size_t n_producers;
    const struct tp_type *const *types; /* the custom types of the job, by id */
    size_t n_types;
    const struct tp_str *notes;
    size_t n_notes;
};

/* What this download leaves out of the trace. The zero value leaves out nothing. */
struct tp_trace_slice {
    const struct tp_typeset *types; /* NULL: all, also events of no known type */
    bool has_untyped;               /* beside types: events of no known type too */
    bool has_from, has_to;          /* only what touches [from_ns, to_ns) */
    int64_t from_ns, to_ns;         /* absolute */
    const uint32_t *ranks;          /* only these; for the record: the caller chooses */
    size_t n_ranks;
};

/* The top-level members of one source file: JSON text of an object, for the producer
 * with that place in info->producers. */
struct tp_source_members {
    size_t producer; /* SIZE_MAX: belongs to none; left out */
    struct tp_str json;
};

/*
 * Append the object "traceplane": what the trace is, who recorded it, how good it is.
 *
 * slice      may be NULL.
 * sources    n of them; shown as "source" of their producer.
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); out has a useless beginning of it.
 */
int tp_trace_info_write(const struct tp_trace_info *info,
                        const struct tp_trace_slice *slice,
                        const struct tp_source_members *sources, size_t n_sources,
                        struct tp_buf *out, struct tp_err *err);

/*
 * Append the array "customActivityTypes": an object a line for each custom type.
 * Errors as tp_trace_info_write().
 */
int tp_trace_info_write_custom(const struct tp_trace_info *info, struct tp_buf *out,
                               struct tp_err *err);

/*
 * Append the array "activityTypes": an object for each static type of the set.
 * Errors as tp_trace_info_write().
 */
int tp_trace_info_write_static(const struct tp_typeset *used, struct tp_buf *out,
                               struct tp_err *err);

/* Append the object of counts by cause, as it is in "traceplane" and in summaries. */
int tp_trace_info_write_counts(const struct tp_counts *counts, struct tp_buf *out,
                               struct tp_err *err);

#endif
