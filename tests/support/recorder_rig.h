/*
 * recorder_rig.h - a recorder for tests, and what it has recorded as text.
 *
 * What is drained goes the whole way that a service sends it: ingest, log, seal. Each
 * batch must be stored as it came. Failures fail the test. One thread drains.
 */
#ifndef TP_SUPPORT_RECORDER_RIG_H
#define TP_SUPPORT_RECORDER_RIG_H

#include <traceplane/traceplane.h>

#include "producer/drain.h"
#include "producer/recorder.h"
#include "support/stream_rig.h"

/* Embed it, zero. */
struct recorder_rig {
    struct tp_recorder *recorder;
    struct tp_client *client;
    unsigned kernel, copy; /* two types: "ascend.KERNEL" and "ascend.COPY" */
    struct stream_rig stream;
    struct tp_typemap *types;
    struct tp_drain_opts drain; /* stream_no is set; of the next drain */
    uint64_t n_drained;         /* events without metadata */
    uint64_t n_batches;
    uint64_t drained[256]; /* by type */
};

/* Make the recorder. opts  as for tp_recorder_new(). */
void recorder_rig_init(struct recorder_rig *rig, const struct tp_recorder_opts *opts);

/* Release it. */
void recorder_rig_fini(struct recorder_rig *rig);

/* Arm it for both types and start at once. */
void recorder_rig_start(struct recorder_rig *rig);

/* Drain until there is no more and store the batches. */
void recorder_rig_drain(struct recorder_rig *rig);

/*
 * Stop, drain what is left, seal, and compare with the lines of stream_rig_line(), in
 * order of time. In them all times are 0 and the pid and tid of this thread are "-":
 * "X ascend.KERNEL outer -/- 0+0 a=1\n".
 */
void recorder_rig_expect(struct recorder_rig *rig, const char *lines);

/* Stop, drain what is left, and check emitted = drained + filtered + dropped for each
 * type. dropped  set to the sum over causes and types, unless NULL. */
void recorder_rig_conserved(struct recorder_rig *rig, uint64_t *dropped);

#endif
