/*
 * steps.h - when the steps of its producers start a trace, and when they end it.
 *
 * Steps are what producers say: one that lies, goes back or stands still must not start
 * a trace that others are far from, nor keep it from its end. The caller holds the
 * control lock. Internal to this room.
 */
#ifndef TP_ENGINE_STEPS_H
#define TP_ENGINE_STEPS_H

#include <stdbool.h>

#include "engine/model.h"

/* Take the step that a producer is at. It may start or stop the trace that it is in. */
void tp_steps_take(struct tp_producer *p, uint64_t step, struct tp_now now);

/* The producer of m has begun to record with this step, and says so. It may start the
 * trace. */
void tp_steps_begin(struct tp_member *m, uint64_t step, struct tp_now now);

/* Stop a trace whose steps are done as far as they go on. Returns when it wants to be
 * asked again, UINT64_MAX = not before the next word of a producer. */
uint64_t tp_steps_tick(struct tp_trace *t, struct tp_now now);

#endif
