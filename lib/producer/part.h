/*
 * part.h - the part that a producer takes in a trace: what it was told, where it
 * stands, what it has to answer.
 *
 * It drives the recorder and fills the backlog; it sends nothing and reads no clock.
 * Orders may come twice, late, or again after a restart of the service: what is done
 * already is acknowledged again and not done again. Agent thread only.
 *
 *   IDLE --prepare--> ARMED --start--> STARTING --its time--> RECORDING
 *     ^                 |                  |                      | stop, or the steps
 *     |                 +------stop--------+----------------------+ are done
 *     +--prepare-- DONE <--all is sent and it was told to stop-- FLUSHING
 *
 * The service ends a recording when its duration is over. One whose service has gone
 * ends by itself: after the duration that came with the order, which the service gives
 * for all traces (an older one does not), and TP_PART_GRACE_NS on top, so that nothing
 * is cut that the service would have kept, however late its stop comes.
 *
 * A trace that starts at a step goes from ARMED to RECORDING when that step begins. In
 * FLUSHING, what is reported late is taken for late_ns, before the last drain.
 *
 * A cancel leads to DONE from everywhere, and what was recorded is gone: it counts as
 * dropped.
 */
#ifndef TP_PRODUCER_PART_H
#define TP_PRODUCER_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/counts.h"
#include "producer/backlog.h"
#include "producer/clock_offset.h"
#include "producer/wire.h"

struct tp_recorder;

#define TP_PART_GRACE_NS UINT64_C(10000000000) /* and what clocks drift apart */

enum tp_part_state {
    TP_PART_IDLE,
    TP_PART_ARMED,
    TP_PART_STARTING,
    TP_PART_RECORDING,
    TP_PART_FLUSHING, /* the recorder is stopped; what it holds is sent */
    TP_PART_DONE,
    TP_PART_STATES
};

/* Start with tp_part_init(); all but state, trace_id and acks is private. */
struct tp_part {
    enum tp_part_state state;
    char trace_id[TP_WIRE_ID_BYTES]; /* of the present trace, or the last; "" = none */
    struct tp_ack acks[TP_WIRE_ACKS_MAX]; /* to be sent, oldest first */
    size_t n_acks;
    struct tp_recorder *recorder;
    struct tp_backlog backlog;
    uint32_t stream_no;
    uint64_t start_at_ns; /* by our clock */
    uint64_t start_step;  /* ARMED: begin when it begins; 0 = when told */
    uint64_t steps;       /* end after so many; 0 = when told */
    uint64_t duration_ns; /* end so long after the start, and the grace; 0 = never */
    uint64_t base_step;   /* the step that was on at the start */
    uint64_t told_step;   /* the last that was reported */
    uint64_t late_ns;     /* the caller's to set, after tp_part_init() */
    uint64_t late_end_ns; /* FLUSHING: until when; 0 = no longer */
    bool is_stop_due;     /* the service waits for an ack of its stop */
    bool is_started;      /* the recorder was told its start */
    bool is_start_known;  /* to the service, which takes no events before */
    bool is_drained;      /* FLUSHING: the rings are empty */
    bool has_events;      /* since the last drain: there may be more in the rings */
};

/* Start, without a trace. limit_bytes is of the backlog. */
void tp_part_init(struct tp_part *p, struct tp_recorder *recorder, size_t limit_bytes);

/* Release the batches. */
void tp_part_fini(struct tp_part *p);

/* Whether an order is the first of a trace, or of another stream of it: obeying it
 * gives up what there is of the one before. */
bool tp_part_is_new(const struct tp_part *p, const struct tp_order *order);

/*
 * Do what the service says.
 *
 * types   for PREPARE: what to record, by ids of this process.
 * offset  how the service's clock stands.
 * now_ns  on the clock of tp_now().
 */
void tp_part_obey(struct tp_part *p, const struct tp_order *order,
                  const struct tp_typeset *types, const struct tp_clock_offset *offset,
                  uint64_t now_ns);

/* Do what time and steps have made due. Returns when to call again at the latest,
 * UINT64_MAX = not because of time. */
uint64_t tp_part_advance(struct tp_part *p, uint64_t now_ns);

/* Whether the rings are to be drained from time to time. */
bool tp_part_is_draining(const struct tp_part *p);

/* Whether it takes part in a trace that has started, until all is sent and it was told
 * to stop. */
bool tp_part_is_on(const struct tp_part *p);

/*
 * Take what is in the rings into the backlog; what has no room there is counted as
 * dropped (backlog-full).
 *
 * TP_ENOMEM  the rings keep it.
 */
int tp_part_drain(struct tp_part *p, const struct tp_clock_offset *offset,
                  struct tp_err *err);

/* The service has the oldest batch. */
void tp_part_sent(struct tp_part *p);

/* The service takes the oldest batch never; its events count as dropped. */
void tp_part_lose_batch(struct tp_part *p, enum tp_drop_cause cause);

/* The service takes no more events of this trace: stop, and count all that is left as
 * dropped (after-stop). */
void tp_part_give_up(struct tp_part *p);

/* The process wants to end: stop recording, as if the service had said so. */
void tp_part_leave(struct tp_part *p, uint64_t now_ns);

/*
 * The service, which has forgotten the producer, says nothing of the trace: it has
 * forgotten that, too, or takes no more of it. End as tp_part_leave() does; what there
 * is of it is offered to the service, whose answer says what becomes of it.
 */
void tp_part_disown(struct tp_part *p, uint64_t now_ns);

/* Whether it waits for a start that is near. What it has to say then goes with the news
 * that it has begun: thousands of producers that answer at once would only delay the
 * start of those who have not heard of it. */
bool tp_part_starts_soon(const struct tp_part *p, uint64_t now_ns);

/* Whether it is at work on an order. The service repeats the order in each answer until
 * it is acknowledged, so a poll would come back at once. */
bool tp_part_is_obeying(const struct tp_part *p);

/* Whether the step is something that the service waits for. */
bool tp_part_has_step_news(const struct tp_part *p);

/* The step was reported. */
void tp_part_told_step(struct tp_part *p, uint64_t step);

/* Whether the service takes events of it: it knows that the part has begun. */
bool tp_part_may_post(const struct tp_part *p);

/* Acks were delivered: drop the n oldest. */
void tp_part_acked(struct tp_part *p, size_t n);

#endif
