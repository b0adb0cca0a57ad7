/*
 * recorder_state.h - the fields of a recorder, for the files that make it up.
 *
 * Which thread may touch what is said at each field. Nothing to call but the step from
 * a client to its recorder.
 */
#ifndef TP_PRODUCER_RECORDER_STATE_H
#define TP_PRODUCER_RECORDER_STATE_H

#include <traceplane/traceplane.h>

#include "base/lock.h"
#include "producer/recorder.h"
#include "producer/ring.h"
#include "producer/ticks.h"

struct tp_batch_writer;

/* What is being done; the control lock guards it. */
enum tp_recorder_phase {
    TP_RECORDER_IDLE,
    TP_RECORDER_ARMED,
    TP_RECORDER_RECORDING,
    TP_RECORDER_STOPPED
};

#define TP_RECORDER_LOSERS 16u /* shares of the threads that have no ring */

struct tp_recorder {
    struct tp_client client; /* first: users hold a pointer to it */

    /* Read by recording threads, mostly constant. */
    _Atomic uint64_t session; /* unique in the process; new with each arm */
    _Atomic uint64_t start_ticks, stop_ticks; /* events that are dropped between them
                                                 count as dropped */
    struct tp_ring_owner owner;
    uint64_t block_ns;
    bool takes_late;
    void (*wake)(void *arg);
    void *wake_arg;
    _Atomic uint32_t is_woken; /* not called again until the next drain */
    /* Dropped by threads without a ring, by type: each thread counts in one share. */
    _Atomic uint64_t lost[TP_RECORDER_LOSERS][256];

    /* Steps. */
    _Atomic uint64_t step, step_ns;
    _Atomic uint64_t alarm;                 /* the next step that needs care */
    uint64_t wake_step;                     /* under control: call wake() */
    uint64_t first_step, end_step, n_steps; /* under control: start and stop */
    uint64_t begin_step;                    /* likewise: on at the start */

    /* Guards phase, types, window, steps. A leaf but for wake and the registry's. */
    struct tp_lock control;
    enum tp_recorder_phase phase;
    struct tp_typeset types;

    /* Of the agent. The window is written under control too, by a step. */
    _Atomic uint64_t start_ns, stop_ns;
    struct tp_ticks_line line; /* constant in a session */
    uint64_t min_duration_ns;
    uint64_t first_ns;
    uint64_t emitted[256];
    uint64_t filtered[256];
    uint64_t charged[TP_DROP_CAUSES][256];
    struct tp_batch_writer *batch;
    struct tp_ring *interrupted; /* where the last batch ended for want of room */

    struct tp_registry *registry;
    struct tp_agent *agent;
    struct tp_recorder *next; /* of all: for fork(); the list's lock guards it */
};

/* Call wake() unless it was called since the last drain. Any thread. */
void tp_recorder_wake(struct tp_recorder *r);

/* Call wake() in any case: there is something besides full rings. Any thread. */
void tp_recorder_call_agent(struct tp_recorder *r);

#endif
