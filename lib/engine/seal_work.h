/*
 * seal_work.h - the heavy work that a stopped trace needs, for the driver's threads.
 *
 *   next_work --> tp_work_run (any thread, no lock held) --> work_done
 *
 * A piece of work is the seal of one stream. Any number may run at once. First come the
 * traces that wait for it to be complete, then those that are (settle.h). The engine
 * works without a driver too, it only never finishes a trace then.
 */
#ifndef TP_ENGINE_SEAL_WORK_H
#define TP_ENGINE_SEAL_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/now.h"

struct tp_engine;
struct tp_work;

/* Take the next piece, or NULL when there is nothing to do. Each one that is taken must
 * be given back with tp_engine_work_done(). */
struct tp_work *tp_engine_next_work(struct tp_engine *e, struct tp_now now);

/* Do it: reads and writes blobs, takes no lock. Its failure is kept in the work. */
void tp_work_run(struct tp_work *work);

/* Give it back, run or not (not run: it is handed out again); takes `work`. */
void tp_engine_work_done(struct tp_engine *e, struct tp_work *work, struct tp_now now);

/*
 * Seal what is left of a complete trace, or wait until others have. Returns when all of
 * it is sealed, has failed, or has to be tried later; at once when there is nothing to
 * do or no such trace. No lock is held.
 */
void tp_work_finish_trace(struct tp_engine *e, const char *trace_id);

/* Whether tp_engine_next_work() would give one at the time of the last tick; cheap. */
bool tp_engine_has_work(struct tp_engine *e);

#endif
