/*
 * agent.h - the thread that talks to the service for one recorder.
 *
 * It registers types and producer, obeys the service's commands, drains the rings and
 * posts what they held. It touches rings only through recorder.h and drain.h. client.c
 * ties the two together: tp_open(), tp_close(), tp_flush(), tp_get_stats(), and what
 * happens at fork and exit. A new type or step needs no more than tp_agent_wake().
 * Functions from any thread unless they say otherwise.
 *
 *     tp_agent_new --> tp_agent_start --> ... --> tp_agent_stop --> tp_agent_free
 */
#ifndef TP_PRODUCER_AGENT_H
#define TP_PRODUCER_AGENT_H

#include <stdbool.h>
#include <stdint.h>

struct tp_agent;
struct tp_err;
struct tp_recorder;
struct tp_settings;
struct tp_stats;

/*
 * Create an agent that has no thread yet.
 *
 * settings  are taken over on success: the agent releases them.
 * out       release with tp_agent_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_agent_new(struct tp_settings *settings, struct tp_agent **out,
                 struct tp_err *err);

/* Its settings, which never change. */
const struct tp_settings *tp_agent_settings(const struct tp_agent *a);

/*
 * Start its thread, with all signals blocked and as SCHED_OTHER where that may be, for
 * a recorder that outlives it. Once.
 *
 * TP_EIO  no thread; the agent is as before.
 */
int tp_agent_start(struct tp_agent *a, struct tp_recorder *r, struct tp_err *err);

/* Have it look around now: a ring fills, a step is reached, a type is new. Cheap: one
 * write to a pipe. NULL is allowed. */
void tp_agent_wake(void *agent);

/*
 * Wait until what was recorded before is with the service.
 *
 * TP_EAGAIN  not within timeout_ms. TP_ESTATE  its thread has ended before.
 */
int tp_agent_flush(struct tp_agent *a, uint64_t timeout_ms, struct tp_err *err);

/*
 * Begin what tp_agent_stop() does, and return: so several end side by side. Its bound
 * is from now on; asked again, nothing changes. By one thread, before it stops it.
 *
 * takes_late  whether somebody may report still what is late (late_ms); else the trace
 *             does not wait for it.
 */
void tp_agent_ask_to_end(struct tp_agent *a, uint64_t bound_ms, bool takes_late);

/* End it: stop recording, send what is left, leave the service; in the last quarter of
 * bound_ms (500 ms at most) it leaves with what is not sent, and counts it as dropped.
 * Returns when its thread has ended. Once, by one thread, which is not cancelled. */
void tp_agent_stop(struct tp_agent *a, uint64_t bound_ms);

/* Release an agent whose thread has ended or never was. NULL is allowed. */
void tp_agent_free(struct tp_agent *a);

/* In the child of a fork, where the thread is not: close what its connections left
 * open. From then on only tp_agent_wake() may be called, and does nothing. */
void tp_agent_forget_thread(struct tp_agent *a);

/* Fill in all of *stats. */
void tp_agent_stats(struct tp_agent *a, struct tp_stats *stats);

#endif
