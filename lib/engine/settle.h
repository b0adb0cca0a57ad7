/*
 * settle.h - streams whose end is known before they are sealed.
 *
 * What linked producers post is judged as it comes. When a stream has nothing else, its
 * seal will change nothing that is told of it, and the trace is complete without
 * waiting for it: the stream is settled. It is sealed later, or by the first download.
 *
 *   SEALING, not settled   the trace is stopping until it is sealed
 *   SEALING, settled       the trace may be complete; it is in a list of such until
 *                          all its streams are sealed
 *
 * The caller holds the control lock.
 */
#ifndef TP_ENGINE_SETTLE_H
#define TP_ENGINE_SETTLE_H

#include <stdint.h>

#include "engine/model.h"

struct tp_ingest_result;

/* Note a batch that was appended to the log of a stream, before it is counted there. */
void tp_settle_add(struct tp_stream *s, const struct tp_ingest_result *batch);

/*
 * No more data is taken: settle the streams of a trace that can be, and write their
 * rows. Where the store refuses, none is settled.
 */
void tp_settle_streams(struct tp_trace *t, struct tp_now now);

/* Whether a stream of the trace is not sealed and has not failed. */
bool tp_settle_is_unsealed(const struct tp_trace *t);

/* A trace is complete: seal later what is left of it. */
void tp_settle_later(struct tp_trace *t);

/* There is nothing to seal any more, or the trace goes. Nothing when it is in no list.
 * */
void tp_settle_forget(struct tp_trace *t);

/*
 * What the producer of a stream reports by type gets what is stored of it: of each
 * type, and of none, as are the names of its process and threads.
 *
 * by_type  TP_ACTIVITY_IDS numbers of events.
 */
void tp_settle_types(const struct tp_stream *s, const uint64_t *by_type);

#endif
