/*
 * recorder.h - what a client records with: types, the enabled set, the rings of its
 * threads. Private to the library; the agent drives it.
 *
 * A recorder is the client that users hold (its first member is struct tp_client). It
 * knows no service: the agent arms, starts, stops and drains (drain.h) it. Those of the
 * functions here that say "agent" are for one thread at a time, the others for any.
 *
 *     arm --> start(at) --> stop(at) --> drains until has_more is false --> arm ...
 *
 * Conservation: tp_recorder_totals() counts events since arm, whose time is between
 * start and stop. What is in a ring and not yet drained is not yet counted.
 */
#ifndef TP_PRODUCER_RECORDER_H
#define TP_PRODUCER_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/counts.h"
#include "core/typeset.h"

struct tp_agent;
struct tp_client;
struct tp_err;
struct tp_recorder;
struct tp_registration;
struct tp_registry;
struct tp_type_spec;

/* Zero means the default, where one is named. */
struct tp_recorder_opts {
    size_t ring_bytes;      /* a power of two from 16 KiB to 1 GiB; default 1 MiB */
    size_t rings_bytes_max; /* of the process; default 256 MiB; the largest counts */
    uint64_t block_ns;      /* 0: drop when full; else wait that long, then drop */
    bool takes_late;        /* after a stop, what is reported late, until told to end */
    /* Called by a recording thread, at most once until the next drain or alarm, when a
     * ring is more than half full or the step of tp_recorder_set_alarm() is reached.
     * It must only wake the agent: no lock that is held while draining. May be NULL. */
    void (*wake)(void *arg);
    void *wake_arg;
};

/*
 * Create a recorder that records nothing. opts is copied; NULL: all defaults.
 *
 * out  set only on success; release it with tp_recorder_free().
 *
 * TP_EINVAL  a size. TP_ENOMEM. Nothing was created.
 */
int tp_recorder_new(const struct tp_recorder_opts *opts, struct tp_recorder **out,
                    struct tp_err *err);

/* Release it; no thread may be recording with it. Its rings go back to the process's
 * pool, those of living threads when they end. NULL is allowed. */
void tp_recorder_free(struct tp_recorder *r);

/* The client that it is, and back. NULL for tp_client_off and for NULL. */
struct tp_client *tp_recorder_client(struct tp_recorder *r);
struct tp_recorder *tp_recorder_of(struct tp_client *client);

/* A pointer that the recorder keeps for the agent and never looks at; NULL at first. */
void tp_recorder_set_agent(struct tp_recorder *r, struct tp_agent *agent);
struct tp_agent *tp_recorder_agent(const struct tp_recorder *r);

/* The types that were registered: thread-safe; tp_registry_len() says when there are
 * new ones, tp_registry_entries() gives them in order. Never frozen. */
struct tp_registry *tp_recorder_registry(struct tp_recorder *r);

/*
 * Agent: get ready for a trace, forget the one before: counts become 0, open slices and
 * undrained events of before are discarded when they are met. Nothing is recorded yet.
 *
 * types  what to record, by the ids of this process. min_duration_ns  0: all.
 */
void tp_recorder_arm(struct tp_recorder *r, const struct tp_typeset *types,
                     uint64_t min_duration_ns);

/*
 * Register a type, as tp_registry_register(). Where it is new, what was recorded under
 * its id by number is not any more: whose that is at the service is yet to be said.
 */
int tp_recorder_register(struct tp_recorder *r, const struct tp_type_spec *spec,
                         struct tp_registration *out, struct tp_err *err);

/* Agent: record that type, too, from now on, in the trace that it was armed for. */
void tp_recorder_add_type(struct tp_recorder *r, unsigned type);

/* Agent: likewise, record it no more. */
void tp_recorder_remove_type(struct tp_recorder *r, unsigned type);

/*
 * Agent: record what begins at at_ns (tp_now()'s clock) or later. May be called a
 * little before: events that begin before at_ns are discarded and counted nowhere, but
 * for those whose time the program says: they count as filtered. Ignored when not
 * armed.
 */
void tp_recorder_start(struct tp_recorder *r, uint64_t at_ns);

/* Record nothing that begins after at_ns, 0 = now; counted likewise. Slices that are
 * open now are drained as unfinished by a drain with is_last. With takes_late the types
 * stay enabled, so that what was before can still be reported. From any thread. */
void tp_recorder_stop(struct tp_recorder *r, uint64_t at_ns);

/* Agent: after a stop with takes_late: nothing is reported any more. */
void tp_recorder_end_late(struct tp_recorder *r);

/*
 * Whether it was started since it was armed, be it over again or not.
 *
 * start_ns, step  when, by tp_now(), and which step was on then; left alone otherwise.
 */
bool tp_recorder_has_begun(struct tp_recorder *r, uint64_t *start_ns, uint64_t *step);

/* Whether it was started and not stopped. */
bool tp_recorder_is_recording(const struct tp_recorder *r);

/* When the first event began that was drained since arm; 0 = none. Agent. */
uint64_t tp_recorder_first_ns(const struct tp_recorder *r);

/* Steps since the recorder was made, and the moment (tp_now()) that the last began. */
uint64_t tp_recorder_step(const struct tp_recorder *r, uint64_t *at_ns);

/* Agent: have wake() called as soon as the step is reached; UINT64_MAX = never. */
void tp_recorder_set_alarm(struct tp_recorder *r, uint64_t step);

/*
 * Agent: let steps start and stop the trace that it is armed for, in the thread that
 * calls tp_step() and at that moment; wake() is called at both. An arm forgets it.
 *
 * first  start when this step begins; 0: not by a step.
 * n      stop when so many steps have ended since the start, however that came about;
 *        0: not by a step.
 *
 * Returns the step that is on; n counts from it when recording has begun already.
 */
uint64_t tp_recorder_set_steps(struct tp_recorder *r, uint64_t first, uint64_t n);

/* Counts since arm, by type. Plain data. emitted - filtered - all dropped is what
 * tp_recorder_drain() gave out. Names of processes, threads and devices are events, too
 * (metadata): they count as of TP_TYPE_NONE. */
struct tp_recorder_totals {
    uint64_t emitted[256];
    uint64_t filtered[256];                /* shorter than min_duration_ns */
    uint64_t dropped[TP_DROP_CAUSES][256]; /* RING_FULL, EVENT_TOO_LARGE, charged */
};

/* Agent: fill *out. */
void tp_recorder_totals(struct tp_recorder *r, struct tp_recorder_totals *out);

/* Agent: count events that were drained as dropped, such as a batch that did not fit
 * into the backlog. by_type  256 numbers. */
void tp_recorder_charge(struct tp_recorder *r, enum tp_drop_cause cause,
                        const uint32_t *by_type);

/* For pthread_atfork(), for all recorders of the process: lock, unlock, and in the
 * child unlock and make every recorder silent and empty. The agents are the caller's
 * care. */
void tp_recorders_before_fork(void);
void tp_recorders_after_fork_parent(void);
void tp_recorders_after_fork_child(void);

#endif
