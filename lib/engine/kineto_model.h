/*
 * kineto_model.h - what the engine keeps about Kineto processes, and who does what.
 *
 *   kineto.c          datagrams in; processes become producers
 *   kineto_arm.c      which can take part, when they start, what they are told
 *   kineto_follow.c   what becomes of those that were told
 *   kineto_resume.c   what a restart leaves of all that
 *   kineto_tasks.c    what needs files
 *
 * A link is a live process; it outlives neither the process nor the engine. Lock order:
 * the control lock, then `lock` of struct tp_kineto, which guards the table and
 * no_sockets. Everything else here is guarded by the control lock.
 */
#ifndef TP_ENGINE_KINETO_MODEL_H
#define TP_ENGINE_KINETO_MODEL_H

#include "base/err.h"
#include "engine/model.h"
#include "kineto/table.h"

#define TP_START_LEAD_NS UINT64_C(100000000) /* from the move to a planned start */
#define TP_KINETO_STRANGERS_MAX 64           /* so many of them are listed */
#define TP_KINETO_COLLECT_NS UINT64_C(600000000000) /* for files, after the stop */

struct tp_kineto {
    struct tp_kineto_opts opts;
    struct tp_lock lock; /* guards table and no_sockets */
    struct tp_kineto_table *table;
    struct tp_strmap links; /* 8 bytes of target id -> struct tp_kineto_link */
    bool has_tasks;         /* somebody may need one */
    char no_files[TP_ERR_MESSAGE_BYTES]; /* why nobody can have a file; "" = they can */
    char no_sockets[TP_ERR_MESSAGE_BYTES]; /* why some are not heard; "" = all are */
    size_t n_strangers; /* producers of users whose processes are not traced */
    uint64_t last_tidy_ns;
};

struct tp_kineto_link {
    struct tp_kineto_target seen; /* as of its last news */
    struct tp_producer *producer; /* NULL = not registered yet */
    bool needs_describe;          /* a task is to be given */
    bool is_described;            /* it was given */
};

/*
 * producers.c: register a producer, or renew it, with the control lock held; it joins
 * no trace. Errors as tp_engine_producer_register().
 */
int tp_producer_enroll(struct tp_engine *e, const struct tp_producer_request *request,
                       struct tp_now now, struct tp_producer **out, struct tp_err *err);

/* Whether a producer is a Kineto process. */
bool tp_kineto_is(const struct tp_producer *p);

/* Whether processes of that user may be traced. */
bool tp_kineto_is_allowed(const struct tp_kineto_opts *o, uint32_t uid);

/* Whether the process is known to have ended; one whose pid cannot be seen never is. */
bool tp_kineto_has_ended(const struct tp_engine *e, const struct tp_producer *p);

/* How many members are shown and count for nobody who requires all: processes of users
 * who may not be traced, and those that have ended. */
size_t tp_kineto_uncounted(const struct tp_trace *t);

/* The producer of a member when it is a live Kineto process in this trace, or NULL. */
struct tp_producer *tp_kineto_producer(const struct tp_member *m);

/* Make what tp_engine_new() needs; nothing when opts is NULL. TP_ENOMEM. */
int tp_kineto_open(struct tp_engine *e, const struct tp_kineto_opts *opts,
                   struct tp_err *err);

/* Release it. */
void tp_kineto_close(struct tp_engine *e);

/* Its producer is about to be released. */
void tp_kineto_unlink(struct tp_producer *p);

/*
 * Whether a Kineto process can take part in t now; true for other producers.
 *
 * reason  TP_MATCH_REASON_BYTES; when not: why.
 */
bool tp_kineto_can(const struct tp_trace *t, const struct tp_producer *p, char *reason);

/* Whether a member is a Kineto process. */
bool tp_kineto_is_member(const struct tp_member *m);

/* Whether a member is a Kineto process that waits for its order. */
bool tp_kineto_is_waiting(const struct tp_member *m);

/* The warm-up of a trace's processes; 0 when they start by iteration. */
uint64_t tp_kineto_warmup_ns(const struct tp_trace *t);

/* A monotonic time as wall time, in whole milliseconds, which is what libkineto takes,
 * and back: a wall time that has passed gives now. */
uint64_t tp_kineto_to_wall(uint64_t at_ns, struct tp_now now);
uint64_t tp_kineto_to_mono(uint64_t wall_ns, struct tp_now now);

/* Set when a member is to start and for how long, from the start of its trace. One that
 * begins when the common start is too near has one of its own. */
void tp_kineto_set_times(struct tp_member *m, struct tp_now now);

/* How many members are Kineto processes that wait for their order. */
size_t tp_kineto_waiting(const struct tp_trace *t);

/*
 * A start that all waiting members can keep, as early as can be.
 *
 * out  wall nanoseconds, whole milliseconds; 0 when there is none of them, or they
 *      start by iteration.
 *
 * TP_ENOMEM  *out is 0.
 */
int tp_kineto_plan(const struct tp_trace *t, struct tp_now now, uint64_t *out,
                   struct tp_err *err);

/* The trace knows its start: members without an order get one when their folder is
 * there. */
void tp_kineto_begin(struct tp_trace *t, struct tp_now now);

/* After a restart: what was waited for is waited for again, and a start that those who
 * wait can no longer be told of in time is moved. */
void tp_kineto_resume(struct tp_trace *t, struct tp_now now);

/* Lay an order down for a member, if it waits for one and its folder is there. */
void tp_kineto_arm(struct tp_member *m, struct tp_now now);

/* The trace is over, or the member is out of it: its order is taken back. */
void tp_kineto_disarm(struct tp_producer *p);

/* There is a file of its process: it was told, whoever told it. */
void tp_kineto_taken(struct tp_member *m);

/* The file of its process is complete: it could take another order. */
void tp_kineto_through(struct tp_member *m, struct tp_now now);

/* Whether the trace waits for files. */
bool tp_kineto_is_collecting(const struct tp_trace *t);

/* The trace stops: members that were not told yet are out of it. */
void tp_kineto_stop(struct tp_trace *t);

/* How often the process of a member asks goes into the member's row: after a restart it
 * takes two requests to be learnt again. */
void tp_kineto_note_interval(struct tp_member *m, const struct tp_kineto_target *seen);

/* A member that waits while its process lags says so, until it is in step again. */
void tp_kineto_note_step(struct tp_member *m, const struct tp_kineto_target *seen);

/* Bring the news of a process to the member that it is. */
void tp_kineto_news(struct tp_member *m, const struct tp_kineto_target *news,
                    struct tp_now now);

/* Let time pass for a trace. Returns when to look again. */
uint64_t tp_kineto_follow(struct tp_trace *t, struct tp_now now);

/* A member is out of it: state and reason, and its trace goes on as far as it can. */
void tp_kineto_settle(struct tp_member *m, enum tp_member_state state,
                      const char *reason);

/* Draw what nobody can guess of the name of a member's folder, unless it has it. */
void tp_kineto_draw_key(struct tp_member *m);

/* The name of a member's folder in trace_dir. out has 256 bytes. Of all that is told to
 * others only the order of its process has it. */
void tp_kineto_folder(const struct tp_member *m, char *out);

#endif
