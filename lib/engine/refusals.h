/*
 * refusals.h - the batches of a stream that came and could not be stored.
 *
 *   the disk or the store refuses --> waiting --> it comes again: stored
 *                                        |
 *                                        +------> its sender or its trace is done:
 *                                                 dropped (storage-failed)
 *
 * Whoever sent a batch has it until it is answered with success, and is told to send it
 * again: while it waits none of it is lost, and none of it is in the counts of the
 * stream. A batch without a number cannot be told from another one, so it is dropped at
 * once; and so is one for which the trace has no room, since that ends the trace
 * (over-limit). When one that was dropped under its number is stored all the same, its
 * drop is taken back.
 *
 * It writes no row: tp_stream_changed() is called where one is due. The caller holds
 * the control lock.
 */
#ifndef TP_ENGINE_REFUSALS_H
#define TP_ENGINE_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "core/counts.h"

struct tp_buf;
struct tp_err;
struct tp_refusals;
struct tp_stream;
struct tp_trace;

/* A batch as it was refused. Plain data. */
struct tp_refusal {
    bool has_seq;
    uint64_t seq;
    uint64_t n_events;        /* that could be read of it */
    enum tp_drop_cause cause; /* TP_DROP_STORAGE_FAILED or TP_DROP_OVER_LIMIT */
};

/* What waits; sums of several streams can be made. The zero value is nothing. */
struct tp_waiting {
    uint64_t batches, events;
    const char *why; /* the last that was said of one of them; NULL = nothing waits */
};

/*
 * Note a batch that was refused. Said again of the same number, it is no news, but that
 * more of it may have been read. Without memory, and beyond 4096 numbers in a stream,
 * it is dropped for good.
 *
 * why  the failure in one sentence; copied, cut behind 127 bytes.
 */
void tp_refusals_add(struct tp_stream *s, const struct tp_refusal *refusal,
                     const char *why);

/* The batch of that number has been judged otherwise since: stored, or found to be
 * none. Returns whether it had been refused. */
bool tp_refusals_take_back(struct tp_stream *s, uint64_t seq);

/* Nobody sends again what waits: it is dropped, and the stream's reason says so. */
void tp_refusals_give_up(struct tp_stream *s);

/* The same for all streams of a trace. */
void tp_refusals_give_up_trace(struct tp_trace *t);

/* Whether the storage has refused a batch that has not come since; what is to come
 * behind it has not come for that reason either. */
bool tp_refusals_are_of_storage(const struct tp_stream *s);

/* How many numbers are known of batches that were refused. */
uint64_t tp_refusals_len(const struct tp_stream *s);

/* Add what waits in a stream. `why` lives until the stream's refusals change. */
void tp_refusals_sum(const struct tp_stream *s, struct tp_waiting *sum);

/* Append all of it as text for the row of the stream; nothing when there is nothing.
 * TP_ENOMEM. */
int tp_refusals_write(const struct tp_stream *s, struct tp_buf *out,
                      struct tp_err *err);

/*
 * Read such text into a stream that has no refusals; its counts stay as they are. What
 * cannot be read is left out.
 *
 * TP_ENOMEM.
 */
int tp_refusals_read(struct tp_stream *s, struct tp_str text, struct tp_err *err);

/* After a start the counts of a stream are those of its log: add what was refused, but
 * for batches that its log, which is open, has. */
void tp_refusals_restore(struct tp_stream *s);

/* Release them. */
void tp_refusals_free(struct tp_stream *s);

#endif
