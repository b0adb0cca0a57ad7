/*
 * sorter.h - puts event records into the order of a sealed stream, in bounded memory.
 *
 * Records (event_rec.h) go in as they come; they come out by time, then rank, then
 * longest first, then as they came. What does not fit in memory is sorted in runs, kept
 * in anonymous blobs and merged. One thread at a time.
 */
#ifndef TP_TRACE_SORTER_H
#define TP_TRACE_SORTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/buf.h"
#include "trace/event_rec.h"

struct tp_sorter;

/* Plain data: what a sort took. */
struct tp_sorter_stats {
    uint64_t records;
    uint64_t runs;        /* written to blobs, those of repeated merges included */
    uint64_t spill_bytes; /* written to blobs */
    bool was_sorted;      /* they came in order: nothing was sorted */
};

/*
 * Create a sorter.
 *
 * blobs         where runs go; NULL: nothing spills, and memory is the limit.
 * memory_bytes  for records and their order together; 64 KiB at least.
 * out           set only on success; release it with tp_sorter_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_sorter_new(const struct tp_blobs *blobs, size_t memory_bytes,
                  struct tp_sorter **out, struct tp_err *err);

/* Release a sorter and its blobs. NULL is allowed. */
void tp_sorter_free(struct tp_sorter *s);

/*
 * The buffer that the next record is to be appended to, exactly one record each time,
 * and then tp_sorter_commit() be called. This saves a copy.
 */
struct tp_buf *tp_sorter_room(struct tp_sorter *s);

/*
 * Take what was appended to the room since the last commit as one record.
 *
 * rank  of the order at equal times, set in the record's head.
 *
 * TP_ENOMEM, TP_EQUOTA (no blobs and no memory left), TP_EIO: the sort is lost; only
 * tp_sorter_free() may follow.
 */
int tp_sorter_commit(struct tp_sorter *s, uint32_t rank, struct tp_err *err);

/* Say that all records are in; errors as tp_sorter_commit(). */
int tp_sorter_finish(struct tp_sorter *s, struct tp_err *err);

/*
 * The next record in order, or NULL at the end. It is valid until the next call.
 * Errors as tp_sorter_commit().
 */
int tp_sorter_next(struct tp_sorter *s, const struct tp_rec_head **rec,
                   struct tp_err *err);

/* What the sort has taken so far. */
struct tp_sorter_stats tp_sorter_stats(const struct tp_sorter *s);

#endif
