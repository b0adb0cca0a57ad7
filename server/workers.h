/*
 * workers.h - threads for what takes long: sealing streams, opening downloads.
 *
 * One of the threads never seals, so that a slow call does not wait behind the seals of
 * a large trace. Any function from any thread, except start and stop.
 */
#ifndef TP_SERVER_WORKERS_H
#define TP_SERVER_WORKERS_H

#include <stddef.h>

struct tp_engine;
struct tp_err;
struct tp_workers;

/* A task; it must not block on other tasks. */
typedef void (*tp_task_fn)(void *arg);

/*
 * Start n_sealers threads that do both and one that only runs tasks.
 *
 * on_sealed  called after each seal, from a worker. May be NULL.
 * out        end with tp_workers_stop() and tp_workers_free().
 *
 * TP_ENOMEM, TP_EIO  no thread is left running.
 */
int tp_workers_start(struct tp_engine *engine, size_t n_sealers,
                     void (*on_sealed)(void *arg), void *arg, struct tp_workers **out,
                     struct tp_err *err);

/* Finish the running and the waiting tasks and end the threads; seals that have not
 * begun are left to the next start. Tasks that are posted later are refused. NULL is
 * allowed. */
void tp_workers_stop(struct tp_workers *w);

/* Release what is stopped. NULL is allowed. */
void tp_workers_free(struct tp_workers *w);

/*
 * Run a task on some thread.
 *
 * TP_ENOMEM, TP_ESTATE (stopped)  it will not run.
 */
int tp_workers_post(struct tp_workers *w, tp_task_fn fn, void *arg, struct tp_err *err);

/* Say that the engine has work. Cheap when the threads are busy. */
void tp_workers_poke(struct tp_workers *w);

#endif
