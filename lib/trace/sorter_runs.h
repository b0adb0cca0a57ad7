/*
 * sorter_runs.h - sorted runs of event records in an anonymous blob, and their merge.
 *
 * The half of the sorter that does I/O; nobody else uses it. Runs are numbered in the
 * order of their making, and equal records come out by that number, so that a merge is
 * stable. One thread at a time.
 */
#ifndef TP_TRACE_SORTER_RUNS_H
#define TP_TRACE_SORTER_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/buf.h"
#include "trace/event_rec.h"

/* One run: where it is, and while it is read, what of it is in memory. */
struct tp_run {
    uint64_t offset, end; /* bytes of the blob not yet read */
    struct tp_buf buf;
    size_t at; /* in buf: the record at hand */
};

/* Embed it; set up by tp_runs_init(). All fields are private but the counters. */
struct tp_runs {
    const struct tp_blobs *blobs;
    struct tp_blob *blob;   /* holds all runs; NULL before the first */
    struct tp_blob *making; /* where a run is being written; blob or a fresh one */
    struct tp_run *runs;
    size_t n, cap;
    size_t fan_in;       /* most runs that are merged at once */
    size_t buffer_bytes; /* for reading each */
    struct tp_buf out;   /* of the run that is being written */
    uint64_t made_from;  /* offset where it starts */
    uint32_t *heap;      /* numbers of runs; the least record first */
    size_t n_heap;
    bool is_started;        /* the first record of the merge was handed out */
    uint64_t n_written;     /* runs */
    uint64_t bytes_written; /* to blobs */
};

/* Prepare; merging will use about memory_bytes. blobs may be NULL: then no run can be
 * made. */
void tp_runs_init(struct tp_runs *r, const struct tp_blobs *blobs, size_t memory_bytes);

/* Close the blob and release all memory. All-zero is allowed. */
void tp_runs_fini(struct tp_runs *r);

/* The order of two records but for when they came: negative, 0 or positive. */
int tp_runs_compare(const struct tp_rec_head *a, const struct tp_rec_head *b);

/*
 * Begin a run. If as many runs are there as can be merged at once, they are merged into
 * one before. TP_ENOMEM, TP_EIO, TP_EQUOTA: only tp_runs_fini() may follow; so it is
 * for all functions below.
 */
int tp_runs_begin(struct tp_runs *r, struct tp_err *err);

/* Append a record, not less than the one before. */
int tp_runs_add(struct tp_runs *r, const struct tp_rec_head *rec, struct tp_err *err);

/* End the run. */
int tp_runs_end(struct tp_runs *r, struct tp_err *err);

/* How many runs there are. */
static inline size_t tp_runs_count(const struct tp_runs *r)
{
    return r->n;
}

/* Begin to merge all runs. */
int tp_runs_merge(struct tp_runs *r, struct tp_err *err);

/* The next record of the merge, valid until the next call, or NULL at the end. */
int tp_runs_next(struct tp_runs *r, const struct tp_rec_head **rec, struct tp_err *err);

#endif
