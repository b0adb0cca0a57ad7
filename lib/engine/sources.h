/*
 * sources.h - all that a download or a summary reads: a trace as it was at one moment,
 * with its streams open.
 *
 * Opened under no lock for longer than a copy takes; complete in itself from then on,
 * so a DELETE or the end of the trace does not disturb it. One thread at a time.
 */
#ifndef TP_ENGINE_SOURCES_H
#define TP_ENGINE_SOURCES_H

#include "engine/model.h"
#include "trace/download.h"
#include "trace/seal.h"
#include "trace/trace_info.h"

/* One stream. When it is not sealed, it is now, into an anonymous blob. */
struct tp_source {
    const struct tp_stream_view *view;
    uint64_t log_bytes;           /* of a stream that is not sealed */
    struct tp_seal_window window; /* likewise */
    bool is_sealed;
    struct tp_blob *blob;         /* of a sealed one */
    struct tp_stream_index ix;    /* likewise */
    struct tp_seal_result result; /* of a snapshot: has blob and index of its own */
};

/* Plain data for the files of this room; end it with tp_sources_fini(). */
struct tp_sources {
    struct tp_engine *e;
    struct tp_trace_view *view;
    const struct tp_type *types[TP_ACTIVITY_CUSTOM_COUNT]; /* they live as the engine */
    size_t n_types;
    struct tp_registry *registry; /* of the job; likewise */
    struct tp_source *items;      /* by rank, then number */
    size_t n_items;
    struct tp_producer_info *producers; /* of each item, then members without data */
    size_t n_producers;
    struct tp_trace_info info;
    char *filter_json;
    char *service;
};

/*
 * Open the sources of a trace.
 *
 * out  all-zero; to be ended also after a failure.
 *
 * Errors as tp_engine_download_open().
 */
int tp_sources_open(struct tp_engine *e, struct tp_str trace_id, struct tp_sources *out,
                    struct tp_problem *problem, struct tp_err *err);

/* Whether the same question may get another answer later. */
bool tp_sources_may_change(const struct tp_sources *s);

/* The blob and the index of one. */
struct tp_blob *tp_source_blob(const struct tp_source *s);
/* Likewise. */
const struct tp_stream_index *tp_source_index(const struct tp_source *s);

/* Close and release. All-zero is allowed. */
void tp_sources_fini(struct tp_sources *s);

/* Fill in info and producers from view and items (sources_info.c). TP_ENOMEM. */
int tp_sources_describe(struct tp_sources *s, struct tp_err *err);

#endif
