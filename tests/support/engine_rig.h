/*
 * engine_rig.h - an engine on a virtual clock, with memory for disks, for narratives.
 *
 * The store is an SQLite database in memory behind store_faulty, the blobs are
 * blob_mem; both outlive the engine, so that rig_restart() is a kill and a new start.
 * Functions that say nothing else expect success and end the test program when there is
 * none. One thread, unless said otherwise.
 */
#ifndef TP_SUPPORT_ENGINE_RIG_H
#define TP_SUPPORT_ENGINE_RIG_H

#include "engine/engine.h"

#define RIG_START_NS UINT64_C(1790000000000000000) /* wall time at the beginning */
#define RIG_MS UINT64_C(1000000)
#define RIG_S UINT64_C(1000000000)

struct native_rig;
struct tp_producer_request;

struct rig {
    struct tp_limits *limits; /* change before rig_start() */
    struct tp_store *store;   /* a store_faulty */
    struct tp_blobs *blobs;   /* a blob_mem */
    struct tp_engine *engine;
    struct tp_engine_recovery recovery; /* of the last start */
    struct tp_now now;
    uint64_t random; /* state of the sequence of ids */
    enum tp_collision_policy on_collision;
    const struct tp_kineto_opts *kineto; /* NULL = off; set before rig_start() */
    struct tp_problem problem;           /* of the last call */
    struct tp_err err;
};

/* A rig without an engine. */
void rig_init(struct rig *r);
/* Release all of it. */
void rig_fini(struct rig *r);
/* Make the engine. Returns the code. */
int rig_start(struct rig *r);
/* Kill the engine (nothing is told to it) and make a new one. Returns the code. */
int rig_restart(struct rig *r);
/* Let time go on, with a tick. */
void rig_wait(struct rig *r, uint64_t ns);
/* Run all work that there is, with ticks, until there is none. */
void rig_work(struct rig *r);

/* A str of a literal or C string. */
struct tp_str rig_str(const char *s);

/* Register job.plugin.type_name. Returns the code; the id is set on success. */
int rig_type(struct rig *r, const char *job, const char *plugin, const char *name,
             unsigned *id);
/* Create a trace with defaults in a job, filter.include of one name or NULL. Returns
 * the code; id has TP_TRACE_ID_BYTES. */
int rig_create(struct rig *r, const char *job, const char *include, char *id);
/* Create a trace from a request. Returns the code. */
int rig_create_from(struct rig *r, const struct tp_trace_request *request, char *id);
/* Stop it. Returns the code. */
int rig_stop(struct rig *r, const char *id);
/* Post a JSON body. Returns the code. seq -1 = none. */
int rig_post(struct rig *r, const char *id, const char *producer, int64_t rank,
             int64_t seq, const char *body, struct tp_upload_reply *reply);
/* Post a native batch to a stream: n slices of "kernel", one a microsecond. Returns the
 * code. */
int rig_native(struct rig *r, const char *id, const char *producer, int64_t rank,
               int64_t seq, uint32_t stream_no, unsigned n);
/* Post a native batch that has ended. Returns the code. */
int rig_native_batch(struct rig *r, const char *id, const char *producer, int64_t rank,
                     int64_t seq, const struct native_rig *batch);
/* Send a JSON body as a file. Returns the code. */
int rig_file(struct rig *r, const char *id, const char *name, int64_t rank,
             const char *body, struct tp_upload_reply *reply);
/* The trace as it is; the caller frees it. */
struct tp_trace_view *rig_view(struct rig *r, const char *id);
/* Fail the test unless the trace is in that state. */
void rig_expect_state(struct rig *r, const char *id, const char *state);
/* Fail the test unless it is complete with that outcome and reason (NULL = any). */
void rig_expect_outcome(struct rig *r, const char *id, const char *outcome,
                        const char *reason);
/* A download as a string; the caller frees it. NULL, and r->err, when it was refused.
 * */
char *rig_download(struct rig *r, const char *id, const char *format);
/* Register a producer; id gets the id that it has. */
void rig_register(struct rig *r, const struct tp_producer_request *request, char *id);
/* Register a native producer. */
void rig_producer(struct rig *r, const char *job, const char *name, int64_t rank,
                  char *id);
/* Register a native producer that asks for an id, "" = none; got is the one that it
 * has. Its pid is 7. */
void rig_ask_for_id(struct rig *r, const char *job, const char *id, int64_t rank,
                    char *got);
/* A native producer of the job "j" that has synced once, so that it is waited for. No
 * trace runs in the job. */
void rig_join(struct rig *r, const char *name, int64_t rank, char *id);
/* Let a producer sync, acknowledging what it was told before: a willing one. Returns
 * the commands. */
struct tp_sync_reply rig_sync(struct rig *r, const char *producer,
                              const struct tp_sync_reply *before);

/* A body with n slices of that cat, one a microsecond, from ts_us on; the caller frees
 * it. */
char *rig_events(const char *cat, unsigned n, unsigned ts_us);

#endif
