/*
 * matching.h - which producers of a job take part in a trace, and why the others do
 * not.
 *
 * The caller holds the control lock.
 */
#ifndef TP_ENGINE_MATCHING_H
#define TP_ENGINE_MATCHING_H

#include "engine/model.h"

/* Room for a reason and its NUL. */
#define TP_MATCH_REASON_BYTES 128

/* Whether a producer takes commands, and so can go stale. */
bool tp_match_is_live_kind(const struct tp_producer *p);

/* For how long nothing was heard of it. 0 when it was heard of after now: calls take
 * the lock in another order than they took the time. */
uint64_t tp_match_silent_ns(const struct tp_producer *p, struct tp_now now);

/* When it counts as gone unless it is heard of, monotonic. */
uint64_t tp_match_gone_at_ns(const struct tp_producer *p);

/*
 * Whether the selection of spec, and its being alive, let a producer take part.
 *
 * reason  TP_MATCH_REASON_BYTES; when not: why ("stale 75 s", "not selected: rank 3").
 */
bool tp_match(const struct tp_spec *spec, const struct tp_producer *p,
              struct tp_now now, char *reason);

/*
 * Add every producer of the trace's job as a member, matched or not.
 *
 * n_matched  how many are.
 *
 * TP_ENOMEM  some were added.
 */
int tp_match_all(struct tp_trace *t, struct tp_now now, size_t *n_matched,
                 struct tp_err *err);

/* Let the producers of the matched members know which trace they are in. */
void tp_match_attach(struct tp_trace *t);

/*
 * Let one producer join an active trace of its job, or take its place in it again.
 * Nothing happens when there is none, or it is not selected, or stopping.
 *
 * TP_ENOMEM  it did not join.
 */
int tp_match_join(struct tp_producer *p, struct tp_now now, struct tp_err *err);

#endif
