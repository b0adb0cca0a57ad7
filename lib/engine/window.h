/*
 * window.h - the times that the events of a trace can have.
 *
 * A trace whose producers count time as the service does has a life, and what is told
 * to be days before or after it is no part of it. Traces that count from 0, and files,
 * which may be of any day, have no window. The caller holds the control lock. Internal
 * to this room.
 */
#ifndef TP_ENGINE_WINDOW_H
#define TP_ENGINE_WINDOW_H

#include "engine/model.h"
#include "trace/seal.h"

struct tp_ingest_result;

/* The life that the next batch of a stream is to be held against, for its ingest; now
 * is when it begins. All-zero: nothing is to be found out. */
struct tp_seal_window tp_window_asked(const struct tp_stream *s, struct tp_now now);

/* A batch was added to a stream: it may show that producers count time as the service
 * does. */
void tp_window_note(struct tp_stream *s, const struct tp_ingest_result *batch);

/* After a restart, what was noted before is told from the clocks of the members. */
void tp_window_restore(struct tp_trace *t);

/* The window of a stream that is being sealed, or read while it grows. All-zero: it has
 * none. */
struct tp_seal_window tp_window_of(const struct tp_stream *s, struct tp_now now);

/* Whether a seal would leave out nothing of a stream with these times. */
bool tp_window_has(const struct tp_stream *s, int64_t first_ns, int64_t last_ns,
                   struct tp_now now);

#endif
