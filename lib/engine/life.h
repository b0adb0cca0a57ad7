/*
 * life.h - the life of a trace: its moves, what each brings with it, and its end.
 *
 * Every move is in the store before anything follows from it; when the store refuses,
 * nothing has changed. The caller holds the control lock.
 */
#ifndef TP_ENGINE_LIFE_H
#define TP_ENGINE_LIFE_H

#include "engine/model.h"

/* The cause of a start that is part of the creation. */
#define TP_CAUSE_AT_ONCE "started at once"

/* Begin the life of a new trace, before it is in the store: PREPARED, and its deadline.
 * */
void tp_life_init(struct tp_trace *t, struct tp_now now);

/*
 * Make the first move of a new trace to RECORDING when nothing is to be waited for; in
 * memory only, before it is in the store.
 */
int tp_life_start_new(struct tp_trace *t, struct tp_now now, struct tp_err *err);

/* Nobody has been told to start yet: a trace that records starts later than was
 * planned, at start_at_ns on the server's clock, and its duration ends later. */
void tp_life_postpone(struct tp_trace *t, uint64_t start_at_ns, struct tp_now now);

/*
 * The trace is to start at start_at_ns on the server's clock, since Kineto processes
 * are told so beforehand: PREPARED, it moves shortly before; RECORDING, its duration
 * counts from there.
 *
 * TP_ESTATE  it does neither; nothing changed.
 */
int tp_life_plan(struct tp_trace *t, uint64_t start_at_ns, struct tp_now now,
                 struct tp_err *err);

/* After the rows of a new or loaded active trace are in the store: it holds its job and
 * registry. */
void tp_life_hold(struct tp_trace *t);

/* PREPARED to RECORDING. TP_ESTATE, or as the store. */
int tp_life_start(struct tp_trace *t, const char *cause, struct tp_now now,
                  struct tp_err *err);

/* RECORDING to STOPPING, and on from there as far as it goes. */
int tp_life_stop(struct tp_trace *t, const char *cause, struct tp_now now,
                 struct tp_err *err);

/* Any active state to FAILED or CANCELLED. */
int tp_life_end(struct tp_trace *t, enum tp_session_state to, const char *cause,
                struct tp_now now, struct tp_err *err);

/*
 * Go on where something changed: start when all are armed, seal when all is in,
 * complete when all is sealed or settled, remove the data of a cancelled one. What the
 * store
 * refuses is tried again by the next tick.
 */
void tp_life_advance(struct tp_trace *t, struct tp_now now);

/* Run what is due. Returns when it wants to be called again, UINT64_MAX = never. */
uint64_t tp_life_tick(struct tp_trace *t, struct tp_now now);

/* What became of all that a producer emitted: of its stream, and of what it did not
 * send. */
void tp_life_member_counts(const struct tp_member *m, struct tp_counts *out);

/* Why it is dropped what a producer that is done has emitted and never sent. */
enum tp_drop_cause tp_life_lost_cause(const struct tp_member *m);

/* The sum over all streams and of what producers report beside them. */
void tp_life_totals(const struct tp_trace *t, struct tp_counts *out);

/* How good the trace is: fills in outcome and reason of t (outcome_text.c). */
void tp_life_judge(struct tp_trace *t);

/* A trace that has ended lost data of s since: it is partial at best, and its reason
 * begins with the damage of s. */
void tp_life_worsen(struct tp_trace *t, const struct tp_stream *s);

/* Whether a member is done without having taken part: it never began, counted nothing
 * and sent nothing. */
bool tp_life_has_missed(const struct tp_member *m);

/* Whether a producer that takes commands has not said that it is done. */
bool tp_life_is_awaited(const struct tp_member *m);

/* One visible change: wakes watchers. */
void tp_life_touch(struct tp_trace *t);

/* A moment as session.h wants it. */
struct tp_session_time tp_session_now(struct tp_now now);

#endif
