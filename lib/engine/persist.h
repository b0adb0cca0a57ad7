/*
 * persist.h - the objects of the model as rows of the store.
 *
 * Every function gives TP_OK or the code of the store, with the rows as they were,
 * unless it says otherwise. The caller holds the control lock.
 */
#ifndef TP_ENGINE_PERSIST_H
#define TP_ENGINE_PERSIST_H

#include "engine/model.h"

/* Begin a transaction; counts its failure. */
int tp_persist_begin(struct tp_engine *e, struct tp_err *err);

/* Commit it when rc is TP_OK, else roll it back. Returns rc, or why the commit failed.
 * */
int tp_persist_end(struct tp_engine *e, int rc, struct tp_err *err);

/* Write the job when it is not in the store; part of a transaction. The caller sets
 * is_stored after the commit. */
int tp_persist_job(struct tp_engine *e, struct tp_job *job, struct tp_err *err);

/* Write new types of a job, before they are in its registry; part of a transaction. */
int tp_persist_types(struct tp_engine *e, const struct tp_job *job,
                     const struct tp_registry_plan *plan, uint64_t wall_ns,
                     struct tp_err *err);

/* Note the deadline of the present state as wall time, for the row and for views. */
void tp_persist_deadline(struct tp_trace *t, struct tp_now now);

/* Write trace, new moves and changed members; part of a transaction.
 * tp_persist_trace_done() after the commit. */
int tp_persist_trace_rows(struct tp_engine *e, struct tp_trace *t, struct tp_now now,
                          struct tp_err *err);

/* Remember that all of it is in the store. */
void tp_persist_trace_done(struct tp_trace *t);

/* The same for a trace that has no rows yet: when its members are many, they are put as
 * a list, and get their rows with the next ticks. */
int tp_persist_new_trace_rows(struct tp_engine *e, struct tp_trace *t,
                              struct tp_now now, struct tp_err *err);

/* Likewise. */
void tp_persist_new_trace_done(struct tp_trace *t, struct tp_now now);

/* Write all of it in a transaction of its own. */
int tp_persist_trace(struct tp_engine *e, struct tp_trace *t, struct tp_now now,
                     struct tp_err *err);

/* Write the trace and its new moves, in a transaction of its own: members follow. */
int tp_persist_move(struct tp_engine *e, struct tp_trace *t, struct tp_now now,
                    struct tp_err *err);

#define TP_PERSIST_MEMBERS_MAX 256 /* what is written at once, holding the lock */

/* Write members that have changed, in a transaction of its own; t->has_member_news says
 * whether there are more. */
int tp_persist_members(struct tp_engine *e, struct tp_trace *t, struct tp_err *err);

/* Write one member. It counts as written: when that is undone, call
 * tp_member_changed(). */
int tp_persist_member(struct tp_engine *e, struct tp_member *m, struct tp_err *err);

/* Write a stream. */
int tp_persist_stream(struct tp_engine *e, struct tp_stream *s, struct tp_err *err);

/* Write a producer. */
int tp_persist_producer(struct tp_engine *e, const struct tp_producer *p,
                        struct tp_err *err);

/* The names of the states in rows and views. */
const char *tp_member_state_name(enum tp_member_state state);
/* Likewise. */
const char *tp_stream_state_name(enum tp_stream_state state);
/* The state of that name, or -1. */
int tp_member_state_find(struct tp_str name);
/* Likewise. */
int tp_stream_state_find(struct tp_str name);

#endif
