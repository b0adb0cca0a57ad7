/*
 * objects.h - make, find, link and release the objects of model.h.
 *
 * Nothing here writes the store or judges a request. The caller holds the control lock.
 */
#ifndef TP_ENGINE_OBJECTS_H
#define TP_ENGINE_OBJECTS_H

#include "engine/model.h"

/* Write a new id, greater than all before, at least TP_TRACE_ID_BYTES bytes. */
void tp_new_id(struct tp_engine *e, struct tp_now now, char *out);

/* Tell the newest id that was read from the store, so that new ones are greater. */
void tp_note_id(struct tp_engine *e, struct tp_str id);

/* The job of that name, or NULL. */
struct tp_job *tp_job_find(struct tp_engine *e, struct tp_str name);

/*
 * The job of that name, made when it is not there; then it is not in the store yet.
 *
 * TP_EQUOTA  too many (LIMIT_EXCEEDED). TP_ENOMEM. Nothing was made.
 */
int tp_job_get(struct tp_engine *e, struct tp_str name, uint64_t wall_ns,
               struct tp_job **out, struct tp_problem *problem, struct tp_err *err);

/* Take back a job that tp_job_get() has made and that did not get into the store. */
void tp_job_drop_new(struct tp_engine *e, struct tp_job *job);

/* Release a job. */
void tp_job_free(struct tp_job *job);

/* A trace in no state, not linked anywhere. TP_ENOMEM. */
int tp_trace_new(struct tp_engine *e, struct tp_job *job, struct tp_trace **out,
                 struct tp_err *err);

/* Put a trace into the engine's map and list. TP_ENOMEM: it is not there. */
int tp_trace_link(struct tp_trace *t, struct tp_err *err);

/* Take it out again; it is released when nothing refers to it. */
void tp_trace_unlink(struct tp_trace *t);

/* Release a trace that is not linked. NULL is allowed. */
void tp_trace_free(struct tp_trace *t);

/* Point to a trace, so that it outlives its deletion. */
void tp_trace_ref(struct tp_trace *t);

/* Stop pointing to it; the last one releases a deleted trace. */
void tp_trace_unref(struct tp_trace *t);

/* The trace of that id; TP_ENOTFOUND fills in problem. */
int tp_trace_find(struct tp_engine *e, struct tp_str id, struct tp_trace **out,
                  struct tp_problem *problem, struct tp_err *err);

/* Step through the active traces, one a job, in no order; cursor starts at 0. NULL at
 * the end. The present one may end meanwhile. */
struct tp_trace *tp_trace_next_active(struct tp_engine *e, size_t *cursor);

/* Whether it is not final. */
bool tp_trace_is_active(const struct tp_trace *t);

/* The name of its state. */
const char *tp_trace_state_name(const struct tp_trace *t);

/* Append a member; *out is owned by the trace. TP_ENOMEM. */
int tp_member_add(struct tp_trace *t, const struct tp_row_identity *who,
                  struct tp_member **out, struct tp_err *err);

/* The member of that producer, or NULL. */
struct tp_member *tp_member_find(const struct tp_trace *t, const char *producer_id);

/* A member differs from its row from now on: it is written about a second later. The
 * one way to say so, or it is never written. */
void tp_member_changed(struct tp_member *m);

/* The producer of a member, whether it takes part or not; NULL when it is gone, also
 * where one of another job has its id by now. */
struct tp_producer *tp_member_producer(const struct tp_member *m);

/* From now on the producer takes part as this member. */
void tp_member_attach(struct tp_member *m, struct tp_producer *p);

/* It does no longer, if it did. */
void tp_member_detach(struct tp_member *m);

/* The stream that a member writes to; NULL: it was not told one. */
struct tp_stream *tp_member_stream(const struct tp_member *m);

/* Whether batches of it were taken. */
bool tp_member_has_posted(const struct tp_member *m);

/* The member that writes the stream of that number, or NULL. */
struct tp_member *tp_member_of_stream(const struct tp_trace *t, uint32_t no);

/* A stream differs from its row from now on: it is written about a second later, while
 * its trace is active. */
void tp_stream_changed(struct tp_stream *s);

/* Append a stream with the next number, HIDDEN. TP_EQUOTA (LIMIT_EXCEEDED), TP_ENOMEM.
 * */
int tp_stream_add(struct tp_trace *t, const struct tp_row_identity *who, bool is_file,
                  struct tp_str file_name, struct tp_stream **out,
                  struct tp_problem *problem, struct tp_err *err);

/* The same for the events of a member, whose name it has. */
int tp_stream_add_member(const struct tp_member *m, struct tp_stream **out,
                         struct tp_problem *problem, struct tp_err *err);

/* Give a hidden stream another owner. TP_ENOMEM: as before. */
int tp_stream_rename(struct tp_stream *s, const struct tp_row_identity *who,
                     struct tp_str file_name, struct tp_err *err);

/* The stream of events of that name and rank, or NULL. */
struct tp_stream *tp_stream_find(const struct tp_trace *t, struct tp_str name,
                                 int64_t rank);

/* Let tp_stream_find() find it. TP_ENOMEM. */
int tp_stream_publish(struct tp_stream *s, struct tp_err *err);

/* Let it no longer find it. */
void tp_stream_unpublish(struct tp_stream *s);

/*
 * Append a producer to its job.
 *
 * is_sought  tp_producer_find_same() finds it; false when it has an id of its own.
 *
 * TP_ENOMEM.
 */
int tp_producer_add(struct tp_job *job, struct tp_engine *e,
                    const struct tp_row_identity *who, struct tp_str capabilities,
                    bool is_sought, struct tp_producer **out, struct tp_err *err);

/* Take a producer out and release it. */
void tp_producer_drop(struct tp_engine *e, struct tp_producer *p);

/* Release a producer that is not linked. */
void tp_producer_free(struct tp_producer *p);

/* The producer of that id, or NULL. */
struct tp_producer *tp_producer_find(struct tp_engine *e, struct tp_str id);

/* The producer of a job that is sought by rank, pid, host and name and has the same;
 * *out is NULL when there is none. TP_ENOMEM. */
int tp_producer_find_same(const struct tp_job *job, const struct tp_row_identity *who,
                          struct tp_producer **out, struct tp_err *err);

/* What a producer without a name is called: "rank-N", or "default". out has 32 bytes.
 * */
struct tp_str tp_default_producer_name(int64_t rank, char *out, size_t size);

/* Release a key. */
void tp_key_free(struct tp_key *key);

#endif
