/*
 * drain.h - takes events out of the rings and makes batches of them.
 *
 * A batch is what docs/stream-format.md calls "what a linked producer posts": Perfetto
 * packets that stand for themselves and that a service stores as they are. It sends
 * nothing and keeps nothing. Private to the library; agent thread only.
 */
#ifndef TP_PRODUCER_DRAIN_H
#define TP_PRODUCER_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/native_batch.h"

struct tp_buf;
struct tp_err;
struct tp_recorder;

#define TP_DRAIN_BYTES_MIN ((size_t)256 << 10) /* the largest event fits */

/* Plain data. */
struct tp_drain_opts {
    uint32_t stream_no; /* 1 to 65535: of the command `prepare` */
    size_t max_bytes;   /* of the batch; from TP_DRAIN_BYTES_MIN to TP_NATIVE_BYTES_MAX;
                           0 = 1 MiB */
    bool is_last; /* after the stop: slices that are still open go out, unfinished */
    bool has_clock;
    struct tp_native_clock clock; /* with has_clock: the best exchange of late */
};

/* Plain data. */
struct tp_drain_result {
    uint64_t n_events;     /* in the batch; 0: nothing was appended */
    uint32_t by_type[256]; /* TP_TYPE_NONE: names of processes, threads and devices */
    bool has_more;         /* the batch was full; drain again */
};

/*
 * Append one batch with events of all rings, in the order of each thread.
 *
 * out     without a limit; only appended to.
 * result  set on success only.
 *
 * TP_ENOMEM  nothing was appended and no event was taken or lost; drain again later.
 */
int tp_recorder_drain(struct tp_recorder *r, const struct tp_drain_opts *opts,
                      struct tp_buf *out, struct tp_drain_result *result,
                      struct tp_err *err);

/* Discard what is in the rings, uncounted: after a cancel. Agent. */
void tp_recorder_discard(struct tp_recorder *r);

#endif
