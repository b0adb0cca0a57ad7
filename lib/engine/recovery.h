/*
 * recovery.h - the engine as the store and the blobs tell it after a start.
 *
 * What a kill can leave, and what becomes of it:
 *
 *   a trace that was active        goes on; its deadlines are due by wall time
 *   a log with a torn tail         cut to its last whole frame
 *   a stream without any frame     was never acknowledged: its row goes
 *   a seal that was not finished   done again from the log
 *   a log whose seal is in a row   removed
 *   blobs that no row names        removed
 *   a seal that is gone or cut     its stream is damaged, its trace partial
 */
#ifndef TP_ENGINE_RECOVERY_H
#define TP_ENGINE_RECOVERY_H

#include "engine/model.h"

/*
 * Load all rows and repair. Called once, from tp_engine_new(), with nobody else around.
 *
 * Errors as tp_engine_new(); the engine is to be released then.
 */
int tp_recovery_run(struct tp_engine *e, struct tp_now now,
                    struct tp_engine_recovery *found, struct tp_err *err);

/* Look at the blobs of all traces: cut, adopt, remove, find what is gone. Part of
 * tp_recovery_run(). */
int tp_recovery_blobs(struct tp_engine *e, struct tp_now now,
                      struct tp_engine_recovery *found, struct tp_err *err);

#endif
