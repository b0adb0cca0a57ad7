/*
 * model.h - the engine's own objects: jobs, producers, traces and what is in them.
 *
 * For the files of this room only. All of it is guarded by the engine's control lock,
 * except what says otherwise.
 *
 *   engine --> jobs --> producers
 *          --> traces --> streams, members (a member ties a producer to a trace)
 */
#ifndef TP_ENGINE_MODEL_H
#define TP_ENGINE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/lock.h"
#include "base/strmap.h"
#include "core/counts.h"
#include "core/limits.h"
#include "core/quota.h"
#include "core/session.h"
#include "core/type_counts.h"
#include "core/typemap.h"
#include "engine/bulk.h"
#include "engine/engine.h"
#include "engine/identity.h"
#include "engine/kineto.h"
#include "engine/member.h"
#include "engine/spare.h"
#include "engine/spec.h"
#include "engine/tell.h"

struct tp_key;
struct tp_kineto;
struct tp_kineto_link;
struct tp_native_tally;
struct tp_refusals;
struct tp_stream_log;

#define TP_NS_PER_MS UINT64_C(1000000)
#define TP_NEWS_NS UINT64_C(1000000000)  /* between two writings of members */
#define TP_RETRY_NS UINT64_C(1000000000) /* after a failure of store or disk */

struct tp_job {
    char name[TP_JOB_NAME_MAX_BYTES + 1];
    uint64_t created_ns;
    bool is_stored;
    struct tp_registry *registry; /* readers of it need no lock */
    struct tp_trace *active;      /* at most one */
    size_t n_producers;
    struct tp_strmap same;   /* producers, by what makes two registrations the same */
    struct tp_strmap ranked; /* the first with a rank, by the key of its process */
    size_t n_traces;
};

struct tp_producer {
    struct tp_identity who;
    struct tp_job *job;
    struct tp_buf same_key;          /* under which its job knows it in `same` */
    struct tp_producer *next_ranked; /* of its process; see `ranked` */
    char *capabilities;
    uint64_t registered_ns;
    uint64_t seen_wall_ns, seen_mono_ns;
    uint64_t silence_ns;          /* may last so long before it counts as gone */
    bool has_synced;              /* it takes commands */
    uint64_t restored_wall_ns;    /* until it has heard of us since a restart; else 0 */
    uint64_t heard_seq, told_seq; /* the highest of a sync, of an answer; see sync.h */
    uint64_t step;
    bool has_clock;
    int64_t clock_offset_ns;
    uint64_t clock_error_ns, clock_mono_ns; /* and when it was measured */
    struct tp_member *member; /* in the active trace of its job; NULL = in none */
    char cancel_id[TP_TRACE_ID_BYTES]; /* a trace that it must still be told to drop */
    bool cancel_was_sent;
    uint64_t given; /* bit set of commands of `member` that were sent at least once */
    struct tp_kineto_link *kineto; /* the live process; NULL = none, or not of Kineto */
    bool is_stranger; /* of a user whose processes are not traced: counts for nobody */
};

enum tp_stream_state {
    TP_STREAM_HIDDEN, /* its number is taken, but nothing was committed yet */
    TP_STREAM_OPEN,
    TP_STREAM_SEALING,
    TP_STREAM_SEALED,
    TP_STREAM_FAILED,
    TP_STREAM_STATES
};

struct tp_stream {
    struct tp_trace *trace;
    uint32_t no;
    struct tp_identity who;
    bool is_file;
    char *file_name; /* may be NULL */
    bool has_seq;    /* a file: sent with this number, by which a repeat is known; */
    uint64_t seq;    /* else the highest number of a batch */
    enum tp_stream_state state;
    size_t n_uploads;         /* open ones */
    struct tp_member *member; /* who was told to write to it; NULL = nobody */
    uint64_t found_bytes;     /* at the start: of its sealed blob and its index */
    char reason[160];
    char damage[160];
    struct tp_counts counts;
    uint64_t batches, duplicates;
    struct tp_refusals *refusals; /* batches that found no room; NULL = none */
    bool is_dirty;                /* differs from its row, which is written */
    bool has_times;
    int64_t first_ns, last_ns;
    struct tp_native_tally *tally; /* of its batches; NULL: not all are known */
    bool is_settled;               /* SEALING, which will change nothing that is told */
    bool is_working;               /* its seal runs */
    unsigned n_tries;              /* seals that failed */
    uint64_t retry_ns;             /* not before, monotonic */
    uint64_t log_bytes;            /* of its whole frames that are part of the trace */
    struct tp_lock lock;           /* guards log: append and snapshot */
    struct tp_stream_log *log;     /* NULL: not open */
};

struct tp_trace {
    char id[TP_TRACE_ID_BYTES];
    struct tp_engine *engine;
    struct tp_job *job;
    struct tp_trace *newer, *older; /* in order of id */
    size_t refs;                    /* uploads and work that point here */
    bool is_deleted;                /* no longer in the engine: the last ref frees it */
    struct tp_spec spec;
    struct tp_filter *filter;
    struct tp_typemap *types; /* NULL when final */
    uint32_t n_types;         /* of the registry when it was made */
    struct tp_session session;
    size_t n_moves_stored;
    uint64_t version;
    uint64_t created_ns;
    uint64_t start_at_ns;      /* wall; 0 = not yet known */
    struct tp_telling telling; /* of the start to producers */
    bool is_planned;           /* start_at_ns is when Kineto processes can start */
    bool has_kineto_news;      /* something to go on with */
    uint64_t deadline_wall_ns; /* of the present state, for show; 0 = none */
    uint64_t retry_ns; /* a due move failed in the store: not before, monotonic */
    bool has_frozen;   /* holds a freeze of the registry */
    bool is_sealing;   /* stopping, and takes no more data */
    bool is_broken;    /* was loaded and cannot go on: `reason` says why */
    bool is_purging;   /* its blobs go as soon as nobody writes them */
    char outcome[16];
    char reason[TP_SESSION_CAUSE_BYTES * 2];
    size_t n_uploads;    /* open */
    size_t n_committing; /* appending at this moment */
    size_t n_working;    /* seals that run */
    bool is_timed;       /* its producers count time as the service does: window.h */
    bool is_unsealed;    /* COMPLETE, and some of its streams are SEALING */
    struct tp_trace *next_unsealed;
    struct tp_quota quota; /* bytes */
    struct tp_member **members;
    size_t n_members;
    struct tp_bulk objects;       /* members and streams, when they are many */
    struct tp_strmap by_producer; /* members, by the producer's id */
    size_t waits_for;     /* a member that was waited for last: where to look first */
    bool has_abandoned;   /* a hidden stream may be free to be used again */
    bool has_member_news; /* members differ from their rows, which are written */
    bool is_listed;       /* members are in the store as a list, too: persist.h */
    uint64_t news_ns;     /* not before, monotonic */
    bool has_stream_news; /* streams differ from their rows, which are written */
    uint64_t stream_news_ns;    /* not before, monotonic */
    struct tp_stream **streams; /* by number - 1 */
    size_t n_streams;
    size_t seals_from;       /* where the last stream was that wanted its seal */
    struct tp_strmap by_key; /* event streams: see tp_stream_key() */
    uint64_t late_batches, late_events;
    bool has_late_news; /* that its row does not have yet */
};

struct tp_engine {
    struct tp_lock lock; /* the control lock: all below but opts */
    struct tp_engine_opts opts;
    struct tp_limits limits;
    char *version, *host;
    struct tp_strmap jobs;      /* name -> tp_job */
    struct tp_strmap traces;    /* id -> tp_trace */
    struct tp_strmap producers; /* id -> tp_producer */
    struct tp_strmap keys;      /* idempotency key -> tp_key */
    struct tp_trace *newest;
    uint8_t last_id[16]; /* the newest id in binary, so that ids only grow */
    uint64_t n_active;
    struct tp_trace *unsealed;   /* complete traces whose streams are to be sealed */
    struct tp_lock_event sealed; /* a piece of work was given back */
    bool has_purges;             /* a cancelled trace may still have blobs */
    bool has_late_news;          /* a trace may have some */
    struct tp_kineto *kineto;    /* NULL = off */
    struct tp_now seen;          /* of the last tick */
    uint64_t last_key_sweep_ns;
    struct tp_tell_speed speed; /* of telling producers to start */
    uint64_t telling_until_ns;  /* monotonic: later nobody waits to be told */
    struct tp_spare spare;      /* for the objects of the next trace */
    uint64_t n_snapshots;       /* downloads of active traces that are open */
    struct tp_engine_stats stats;
};

#endif
