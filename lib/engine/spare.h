/*
 * spare.h - memory for the objects of the next trace, made ready while nobody waits.
 *
 * Fresh pages have to be cleared, which takes longer than all that is done with them
 * when a trace of thousands of producers is made. So what the largest job needs is
 * taken beforehand, a piece at a time. It is never needed: without it a trace takes
 * memory of its own.
 */
#ifndef TP_ENGINE_SPARE_H
#define TP_ENGINE_SPARE_H

#include <stddef.h>

#include "engine/bulk.h"
#include "engine/now.h"

struct tp_engine;
struct tp_job;

#define TP_SPARE_MANY 64 /* producers whose objects are allocated in one piece */

/* Embed it; all-zero is a valid empty one. */
struct tp_spare {
    struct tp_bulk bulk;
    size_t ready_bytes; /* of it, whose pages are there */
};

/* Bytes for the members and streams of a trace of all producers of a job; 0 when they
 * are few. The caller holds the control lock. */
size_t tp_spare_wanted(const struct tp_job *job);

/* Hand it to a trace that needs n bytes, if it is large enough and not too large, as
 * the trace keeps all of it. Else *out stays as it is. The caller holds the control
 * lock. */
void tp_spare_take(struct tp_engine *e, size_t n, struct tp_bulk *out);

/* Release it. */
void tp_spare_fini(struct tp_spare *spare);

/*
 * Make a piece of it ready, or give it back when no job is large any more; nothing
 * while producers are told to start. Takes some milliseconds at the most, few of them
 * under the lock. For one thread, now and then.
 */
void tp_engine_make_ready(struct tp_engine *e, struct tp_now now);

#endif
