/*
 * native_tally.h - what the seal will find in a stream of native batches, beforehand.
 *
 * Sums up, batch by batch, what is known of those that were stored as they came. When
 * that is all that a stream has, its events are counted, typed and placed in time
 * before anybody has sorted them. It is only a sum: one batch that it cannot speak for
 * spoils it, and then nothing is known before the seal. One thread at a time.
 */
#ifndef TP_TRACE_NATIVE_TALLY_H
#define TP_TRACE_NATIVE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/activity.h"

struct tp_err;
struct tp_ingest_result;
struct tp_limits;
struct tp_native_tally;

/* What the seal will say. Plain data. */
struct tp_native_sum {
    bool has_times;   /* there are events beside metadata, and these are their times: */
    int64_t first_ns; /* the first begin, by the service's clock */
    int64_t last_ns;  /* and the last end */
    const uint64_t *by_type; /* TP_ACTIVITY_IDS numbers of events; of the tally */
};

/*
 * Create a tally of a stream that has no batch yet.
 *
 * limits  those that the seal will have; copied what is needed.
 * out     set only on success; release it with tp_native_tally_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_native_tally_new(const struct tp_limits *limits, struct tp_native_tally **out,
                        struct tp_err *err);

/* Release it. NULL is allowed. */
void tp_native_tally_free(struct tp_native_tally *t);

/*
 * Add a batch that was appended to the log, in that order.
 *
 * Returns whether the tally still speaks for the stream. Without memory, and with a
 * batch that the seal may change, it does not any more.
 */
bool tp_native_tally_add(struct tp_native_tally *t,
                         const struct tp_ingest_result *batch);

/*
 * All batches are in; only this function and the free may follow.
 *
 * n_batches  that the log has.
 * out        set when all of them are known and the seal will keep every event.
 *
 * Returns whether that is so.
 */
bool tp_native_tally_finish(struct tp_native_tally *t, uint64_t n_batches,
                            struct tp_native_sum *out);

#endif
