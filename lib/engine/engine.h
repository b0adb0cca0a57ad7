/*
 * engine.h - the product without a wire: its life cycle, its clock, its health.
 *
 * Every operation of the service is a call of this room; its parts have headers of
 * their own, all included below. The engine starts no thread, reads no clock, opens no
 * socket and no file: time comes as an argument, rows go through store/store.h, event
 * data through base/blob.h, and whoever drives it calls tp_engine_tick() and runs the
 * work of seal_work.h.
 *
 * Any function may be called from any thread, except tp_engine_new() and
 * tp_engine_free(). Objects that are handed out (views, uploads, downloads, work)
 * belong to one thread at a time. Lock order: a stream's lock, then the engine's
 * control lock, then the locks of registries and the store; nothing calls back under
 * any of them, and no event data is written under the control lock.
 */
#ifndef TP_ENGINE_ENGINE_H
#define TP_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/err.h"
#include "core/registry.h"
#include "engine/downloads.h"
#include "engine/jobs.h"
#include "engine/kineto.h"
#include "engine/now.h"
#include "engine/problem.h"
#include "engine/producers.h"
#include "engine/seal_work.h"
#include "engine/sync.h"
#include "engine/trace_views.h"
#include "engine/traces.h"
#include "engine/types.h"
#include "engine/uploads.h"

struct tp_engine;
struct tp_limits;
struct tp_store;

/* Fill p with n random bytes, good enough for ids that nobody may guess. Called from
 * any thread, under the control lock, so it must not call back. */
typedef void (*tp_random_fn)(void *p, size_t n, void *arg);

/* What an engine is made of. All pointers outlive the engine. */
struct tp_engine_opts {
    const struct tp_limits *limits; /* NULL for the defaults; copied */
    struct tp_store *store;         /* not NULL; stays the caller's */
    const struct tp_blobs *blobs;   /* not NULL; stays the caller's */
    enum tp_collision_policy on_collision;
    bool sync_events;    /* true: an event batch is acknowledged only when the blob was
                              synced (--durability=disk) */
    tp_random_fn random; /* not NULL */
    void *random_arg;
    const char *version; /* of the service, for trace metadata; NULL = "unknown" */
    const char *host;    /* of the service, likewise; NULL = "" */
    const struct tp_kineto_opts *kineto; /* NULL = no Kineto processes; copied */
};

/* What tp_engine_new() found and did, for one log line. Plain data. */
struct tp_engine_recovery {
    uint64_t jobs, types, traces, producers; /* loaded */
    uint64_t resumed;      /* traces that go on: prepared, recording or stopping */
    uint64_t failed;       /* traces that could not go on */
    uint64_t cut_bytes;    /* torn tails of logs that were cut */
    uint64_t orphan_blobs; /* removed */
};

/*
 * Load everything from the store, repair what a crash left, and go on.
 *
 * out       set only on success; release with tp_engine_free().
 * recovery  filled in on success; may be NULL.
 *
 * TP_EINVAL  the store holds what this version does not understand. TP_EIO  store or
 * blobs failed. TP_ENOMEM. Nothing was created; repairs that were made stay.
 */
int tp_engine_new(const struct tp_engine_opts *opts, struct tp_now now,
                  struct tp_engine **out, struct tp_engine_recovery *recovery,
                  struct tp_err *err);

/* Release an engine; active traces stay as they are in the store and are resumed by the
 * next engine. No other call may be running and nothing handed out may be left. NULL is
 * allowed. */
void tp_engine_free(struct tp_engine *e);

/*
 * Let deadlines run: starts and stops by time, flushes that take too long, producers
 * that went stale, old idempotency keys.
 *
 * Returns the monotonic time when it wants to be called next at the latest,
 * UINT64_MAX when nothing is due. Calling it late or often is harmless. A failure of
 * the store is kept for tp_engine_ready() and tried again at the next tick.
 */
uint64_t tp_engine_tick(struct tp_engine *e, struct tp_now now);

/* Plain data: numbers for /metrics. Totals since the engine was made, unless said. */
struct tp_engine_stats {
    uint64_t jobs, types, producers, traces, active_traces, streams;   /* at present */
    uint64_t producers_stale;                                          /* at present */
    uint64_t uploads_open, downloads_open, work_waiting, work_running; /* at present */
    uint64_t stored_bytes;   /* of all traces at present */
    uint64_t events_waiting; /* at present: refused by the storage, to come again */
    uint64_t traces_created, traces_complete, traces_lossy, traces_partial,
        traces_empty, traces_failed, traces_cancelled, traces_deleted;
    uint64_t types_registered, types_refused_collision, types_refused_frozen;
    uint64_t batches, duplicate_batches, refused_batches, files, refused_files;
    uint64_t events_posted, events_stored, events_filtered, events_dropped,
        events_repaired, events_untyped;
    uint64_t uploaded_bytes; /* as received, before decompression */
    uint64_t log_bytes;      /* appended to logs */
    uint64_t seals, seal_failures, sealed_events;
    uint64_t syncs, commands_sent;
    uint64_t store_failures, blob_failures;
};

/* Copy the numbers. */
void tp_engine_stats(struct tp_engine *e, struct tp_engine_stats *out);

/*
 * Whether the service can do its work: a row and a blob can be written, and seals keep
 * up.
 *
 * TP_EIO, TP_EQUOTA  no; the message says which. TP_EAGAIN  seals are behind.
 */
int tp_engine_ready(struct tp_engine *e, struct tp_now now, struct tp_err *err);

#endif
