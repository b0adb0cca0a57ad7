/*
 * kineto.h - stock PyTorch processes as producers, driven from outside.
 *
 * Two drivers use it. One owns the sockets: it gives each datagram to
 * tp_engine_kineto_receive() and sends what comes back; that takes a lock of its own
 * only and waits for nothing. The other owns the folders: it calls
 * tp_engine_kineto_run() at least as often as that asks, does the tasks, and reports.
 * Here no file is opened and no socket is known.
 *
 * Everything is off, and every function does nothing, when struct tp_engine_opts has no
 * kineto. Thread-safe, except that tp_engine_kineto_receive(), _unread() and _unsent()
 * belong to one thread.
 */
#ifndef TP_ENGINE_KINETO_H
#define TP_ENGINE_KINETO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process_key.h"
#include "base/str.h"
#include "engine/now.h"
#include "engine/traces.h"
#include "kineto/log_file.h"
#include "kineto/table.h"

struct tp_engine;
struct tp_err;

#define TP_KINETO_UIDS_MAX 64

/* How it is set up. Texts are borrowed and outlive the engine. */
struct tp_kineto_opts {
    const char *trace_dir; /* where processes write: a folder of ours */
    const char *root_dir;  /* what trace_dir must lie in for libkineto: "/tmp" */
    bool any_uid;          /* processes of every user may be traced */
    uint32_t uids[TP_KINETO_UIDS_MAX]; /* of these users; ours belongs in here */
    size_t n_uids;
    /* Whether there is a process of that pid; true for 0. Called with locks held: it
     * must not wait. NULL = nobody knows, and silence has to tell. */
    bool (*is_there)(int32_t pid);
};

/* See tp_kineto_table_receive(). The bytes of the answer are valid until the next call
 * of this function. */
struct tp_kineto_reply tp_engine_kineto_receive(struct tp_engine *e,
                                                const struct tp_kineto_peer *peer,
                                                const void *p, size_t n,
                                                uint64_t unread_bytes,
                                                struct tp_now now);

/* See tp_kineto_table_unread(). */
bool tp_engine_kineto_unread(struct tp_engine *e, uint64_t target,
                             uint64_t unread_bytes, struct tp_now looked);

/* See tp_kineto_table_unsent(). */
void tp_engine_kineto_unsent(struct tp_engine *e, const struct tp_kineto_reply *reply,
                             bool is_gone);

/* See tp_kineto_table_flooded(). */
void tp_engine_kineto_flooded(struct tp_engine *e, uint64_t n);

/* The numbers of the table; all zero when there is none. */
void tp_engine_kineto_stats(struct tp_engine *e, struct tp_kineto_stats *out);

/*
 * Bring what processes said into producers and traces, and what traces want to the
 * processes.
 *
 * Returns when it wants to be called next, monotonic; sooner does no harm.
 */
uint64_t tp_engine_kineto_run(struct tp_engine *e, struct tp_now now);

enum tp_kineto_task_kind {
    TP_KINETO_TASK_DESCRIBE, /* find out who target is: pid, uid */
    TP_KINETO_TASK_FOLDER,   /* make folder for uid and gid, and watch it */
    TP_KINETO_TASK_FIND /* watch folder, if a service before this one has made it */
};

/* Something that needs files. Plain data. */
struct tp_kineto_task {
    enum tp_kineto_task_kind kind;
    uint64_t target; /* DESCRIBE */
    int32_t pid;     /* in our namespace; 0 = not visible */
    uint32_t uid, gid;
    bool has_uid; /* of FIND, whose folder may have an owner; gid is not known */
    /* Of the two others: */
    char trace_id[TP_TRACE_ID_BYTES];
    char producer_id[TP_TRACE_ID_BYTES];
    char folder[256];                        /* its name in trace_dir */
    char log_file[TP_KINETO_LOG_FILE_BYTES]; /* where its file goes, too */
    char process[TP_PROCESS_KEY_BYTES];      /* FIND: whose pid that was; or "" */
};

/* Take the next task. Returns false when there is none. Each is given once; after a
 * restart those that matter are given again. */
bool tp_engine_kineto_next_task(struct tp_engine *e, struct tp_kineto_task *out);

/* What was found out about a process. Zero, -1 and empty mean "not known". */
struct tp_kineto_description {
    struct tp_str job; /* a name that is no job name is not used */
    int64_t rank;
    uint32_t world_size;
    struct tp_str process; /* base/process_key.h */
};

/*
 * Answer a DESCRIBE task: the process becomes a producer now.
 *
 * TP_ENOTFOUND  it is gone. TP_EQUOTA, TP_EIO, TP_ENOMEM  it is not registered, and is
 * asked about again with its next request.
 */
int tp_engine_kineto_describe(struct tp_engine *e, uint64_t target,
                              const struct tp_kineto_description *description,
                              struct tp_now now, struct tp_err *err);

enum tp_kineto_event {
    TP_KINETO_FOLDER_READY,  /* of FIND, too, if it is there; else nothing is said */
    TP_KINETO_FOLDER_FAILED, /* text says why */
    TP_KINETO_FILE_BEGUN,    /* the process has opened its file: it took the order */
    TP_KINETO_FILE_FOUND,    /* it is complete and being read */
    TP_KINETO_FILE_WAITS,    /* it cannot be read now: text says why; later, perhaps */
    TP_KINETO_FILE_TAKEN,    /* it is in the trace */
    TP_KINETO_FILE_REFUSED,  /* text says why */
    TP_KINETO_PROCESS_ENDED  /* its pid is gone; what it has written is there */
};

/* Report about a FOLDER task. What is no longer of interest is ignored.
 *
 * text  one sentence without full stop; may be NULL when the event says enough. */
void tp_engine_kineto_report(struct tp_engine *e, const char *trace_id,
                             const char *producer_id, enum tp_kineto_event event,
                             const char *text, struct tp_now now);

/*
 * Files cannot be had at all, so that no process is matched; or again.
 *
 * why  one sentence without full stop, "" = they can; copied, cut behind
 *      TP_ERR_MESSAGE_BYTES. Reasons of members have room for its beginning only.
 */
void tp_engine_kineto_set_files(struct tp_engine *e, const char *why);

/*
 * Why files cannot be had, as it was set.
 *
 * why  size bytes, cut; "" = they can be had, or there is no Kineto side.
 *
 * Returns whether there is a Kineto side.
 */
bool tp_engine_kineto_files(struct tp_engine *e, char *why, size_t size);

/*
 * Processes that ask at one of the sockets are not heard; or all are again.
 *
 * why  one sentence without full stop, "" = they are; copied, cut behind
 *      TP_ERR_MESSAGE_BYTES.
 */
void tp_engine_kineto_set_sockets(struct tp_engine *e, const char *why);

/* Why some are not heard, as it was set, and as tp_engine_kineto_files(). */
bool tp_engine_kineto_sockets(struct tp_engine *e, char *why, size_t size);

/* Whether its trace takes files now. One that comes before it records, by a clock that
 * is ahead, stays where it is until then. */
bool tp_engine_kineto_takes_files(struct tp_engine *e, const char *trace_id);

/* Whether a file of that producer is still waited for; if not, its folder can go. */
bool tp_engine_kineto_is_wanted(struct tp_engine *e, const char *trace_id,
                                const char *producer_id);

/* Likewise, by the name of its folder, which must be exactly that; true for a name that
 * is not in the form of one. */
bool tp_engine_kineto_wants_folder(struct tp_engine *e, const char *name);

#endif
