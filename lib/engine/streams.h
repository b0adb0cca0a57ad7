/*
 * streams.h - which stream of a trace a producer writes to.
 *
 * The caller holds the control lock.
 */
#ifndef TP_ENGINE_STREAMS_H
#define TP_ENGINE_STREAMS_H

#include "engine/model.h"

/*
 * The stream that batches of a producer go to: one for each name and rank, made HIDDEN
 * when it is new.
 *
 * TP_EQUOTA  too many streams. TP_ENOMEM.
 */
int tp_streams_for_events(struct tp_trace *t, const struct tp_row_identity *who,
                          struct tp_stream **out, struct tp_problem *problem,
                          struct tp_err *err);

/*
 * Give a member the stream that it is to write to, unless it has one: that of its name
 * and rank, or a new one when another member writes there.
 *
 * TP_EQUOTA, TP_ENOMEM  as above; it has none.
 */
int tp_streams_for_member(struct tp_member *m, struct tp_problem *problem,
                          struct tp_err *err);

/* How many batches of a linked producer, whose numbers begin with 1, never came: of
 * those below the highest that did. 0 for all others, whose numbers mean nothing. */
uint64_t tp_stream_gaps(const struct tp_stream *s);

/* After a start: tie a member to the stream that its row names. TP_EQUOTA, TP_ENOMEM:
 * it is not, or its stream has no name yet. */
int tp_streams_restore(struct tp_member *m, struct tp_err *err);

/* A HIDDEN stream of its own for a file; the number of an abandoned one is used again.
 * Errors as above. */
int tp_streams_for_file(struct tp_trace *t, const struct tp_row_identity *who,
                        struct tp_str file_name, struct tp_stream **out,
                        struct tp_problem *problem, struct tp_err *err);

/*
 * The stream of a file that has come, or is on its way, from that producer and rank
 * under the same name and number; NULL when there is none. A rank that was not said may
 * have been read from the file since.
 */
struct tp_stream *tp_streams_find_file(const struct tp_trace *t,
                                       const struct tp_row_identity *who,
                                       struct tp_str file_name, uint64_t seq);

/*
 * Find out who a client means by name and rank: a registered producer of the job by
 * name or id, whose identity is then taken, or nobody.
 *
 * who  in: what the client said, with its name; out: completed; borrows.
 *
 * Returns the producer, or NULL.
 */
struct tp_producer *tp_streams_identify(struct tp_job *job, struct tp_engine *e,
                                        struct tp_row_identity *who);

/* After a stream's first commit: tie it to the member of its producer, if there is one.
 * */
void tp_streams_tie(struct tp_stream *s);

/* Make a HIDDEN stream known: its row is there when this returns. Errors as the
 * store; it is HIDDEN still. */
int tp_streams_reveal(struct tp_stream *s, struct tp_err *err);

/* Write the row of a stream, which makes it known; what the store refuses is written
 * later. */
void tp_streams_write(struct tp_stream *s);

/* Write what differs from its rows when that is due. Returns when it is due next,
 * UINT64_MAX = never. */
uint64_t tp_streams_write_news(struct tp_trace *t, struct tp_now now);

#endif
