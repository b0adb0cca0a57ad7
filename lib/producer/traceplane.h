/*
 * traceplane.h - the library that a profiling backend links: opening a client and
 * naming what it records.
 *
 * C11 and C++11; this header and the two that it includes need nothing else of ours.
 * record.h has what records, macros.h the short forms. A client registers with a
 * Traceplane service from a thread of its own and records when that service says so;
 * until then, and when there is no service, recording costs a load and a branch.
 *
 * Threads: every function may be called from any thread at any time, but nobody may use
 * a client during or after its tp_close(). An exit() meanwhile is fine: it sends what
 * is left, once. No function is safe in a signal handler. The library's own thread is
 * of SCHED_OTHER, on the processors of the one that opens: open before pinning that. No
 * function is a point at which pthread_cancel() ends a thread: one that is cancelled in
 * tp_flush() or tp_close() goes on until that returns, within its bound.
 * Fork: the child's clients record nothing and send nothing until it opens its own,
 * whatever the parent's threads are doing at that moment; the parent notices nothing.
 * Only its first tp_open() ought not to be under way: that sets libcurl up, which has
 * locks of its own, and a child's tp_open() may wait for them.
 * exec() needs no care: all descriptors close on it, but for libcurl's own in the
 * moment that a client is opened or a host's name is looked up. dlclose() neither: what
 * holds the library stays loaded from the first tp_open() on.
 * The library prints nothing (but see `log`), kills nothing and changes no signal; but
 * libcurl ignores SIGPIPE in the moment that a tp_close(), or a tp_open() that fails,
 * gives up its connections.
 */
#ifndef TP_PRODUCER_TRACEPLANE_H
#define TP_PRODUCER_TRACEPLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The same words are in the library's own base/err.h; whichever comes first counts. */
#ifndef TP_ERR_DEFINED
#define TP_ERR_DEFINED
/* What a function that can fail returns. Append only: the numbers are in the ABI. */
enum tp_code {
    TP_OK = 0,
    TP_EINVAL = -1,       /* the input is wrong; the message names the value */
    TP_ENOMEM = -2,       /* no memory; nothing changed */
    TP_ENOTFOUND = -3,    /* no such object */
    TP_EEXIST = -4,       /* an object with that key is there already */
    TP_ESTATE = -5,       /* not allowed in the object's present state */
    TP_EQUOTA = -6,       /* a configured limit is reached */
    TP_EIO = -7,          /* a disk, store or peer failed */
    TP_EAMBIGUOUS = -8,   /* the name fits several objects */
    TP_EDENIED = -9,      /* the caller may not do that */
    TP_EAGAIN = -10,      /* not now; the same call may succeed later */
    TP_EUNSUPPORTED = -11 /* known, but not handled here */
};

#define TP_ERR_MESSAGE_BYTES 512

/* Plain data. The zero value means "no error yet". */
struct tp_err {
    int code;                           /* enum tp_code of the last failure */
    char message[TP_ERR_MESSAGE_BYTES]; /* one English sentence, no full stop */
};
#endif

#define TP_TYPE_NONE 255u /* a type that is never recorded: what to start from */

/* A client. Its bytes are read by tp_enabled() and belong to the library. */
struct tp_client {
    unsigned char enabled[256]; /* by id of a type: not 0 = is being recorded */
};

/* A client that never records; for pointers before tp_open() and after tp_close(). */
extern struct tp_client tp_client_off;

/* What happens to an event when the ring of its thread is full. */
enum tp_when_full {
    TP_FULL_DROP, /* it is dropped and counted */
    TP_FULL_BLOCK /* the thread waits up to block_us, then drops and counts */
};

/* Where a client belongs and what it may use. Zero and NULL mean the default: first the
 * environment variable that is named, then what follows it. Strings are copied. */
struct tp_options {
    size_t options_bytes; /* sizeof(struct tp_options): fields that come later are 0;
                             when it is 0, all after `log` are not looked at */
    const char *url;   /* TRACEPLANE_URL; "http://127.0.0.1:8750"; or "unix:/a/socket";
                          reached directly, past proxies of the environment */
    const char *token; /* TRACEPLANE_TOKEN; none; sent as "Authorization: Bearer" */
    const char *job;   /* TRACEPLANE_JOB, TORCHELASTIC_RUN_ID, ...; "default" */
    const char *name;  /* TRACEPLANE_NAME; given by the service from the rank */
    bool has_rank;     /* false: TRACEPLANE_RANK, RANK, SLURM_PROCID, ...; none */
    uint32_t rank;     /* with has_rank */
    uint32_t world_size;    /* TRACEPLANE_WORLD_SIZE, WORLD_SIZE, ...; none */
    const char *backend;    /* TRACEPLANE_BACKEND; what is shown as the vendor's name */
    const char *device;     /* TRACEPLANE_DEVICE; such as "npu:3" */
    size_t ring_bytes;      /* TRACEPLANE_RING_BYTES; 1 MiB a thread; a power of two */
    size_t rings_bytes_max; /* TRACEPLANE_RINGS_BYTES_MAX; 256 MiB for the process */
    size_t backlog_bytes;   /* TRACEPLANE_BACKLOG_BYTES; 64 MiB of batches not taken */
    enum tp_when_full when_full; /* TRACEPLANE_WHEN_FULL=drop|block; drop */
    uint32_t block_us; /* TRACEPLANE_BLOCK_US; 1000; most microseconds of a wait */
    uint32_t flush_ms; /* TRACEPLANE_FLUSH_MS; 2000; most of tp_close() and of exit */
    bool is_off;       /* TRACEPLANE_OFF=1; the client never contacts anybody */
    bool log;          /* TRACEPLANE_LOG=1; stderr: troubles, and what it is told */
    uint32_t late_ms;  /* TRACEPLANE_LATE_MS; 0; see tp_complete() */
};

/*
 * Open a client: one a process is usual, more are possible. It does not wait for the
 * service; registering, and registering again, go on in the background.
 *
 * options  NULL: all defaults.
 * out      set only on success; release it with tp_close(). Point it at
 *          tp_client_off before: then all else works when this fails.
 * err      may be NULL.
 *
 * TP_EINVAL  an option or a variable; the message names it. TP_ENOMEM. TP_EIO  no
 * thread could be started. TP_ESTATE  the process is exiting. Nothing is open.
 */
int tp_open(const struct tp_options *options, struct tp_client **out,
            struct tp_err *err);

/* Send what is recorded, leave the service, and release the client, in flush_ms at
 * most; what does not get there counts as dropped. NULL and tp_client_off are allowed.
 * Exit of the process does the same for all clients, but for the release; a tp_close()
 * that it meets ends with it. */
void tp_close(struct tp_client *client);

/* Wait until all that was recorded before is with the service, or dropped and counted.
 * TP_EAGAIN  not within timeout_ms; it is tried on. TP_ESTATE  off, or has ended. */
int tp_flush(struct tp_client *client, uint32_t timeout_ms, struct tp_err *err);

/* What an event of a type is, for those who show it. */
enum tp_kind { TP_KIND_SLICE = 1, TP_KIND_INSTANT = 2, TP_KIND_COUNTER = 3 };

/*
 * Register an activity type, or find it as it is: the id is that of the RFC's function,
 * the same everywhere. One that is new in a trace is not enabled before its end, one
 * that the service refuses (another has the id there) never; `log` names both.
 *
 * plugin, type_name  1 to 63 of [A-Za-z0-9_-]; 1 to 127 of printable ASCII, no comma.
 * unit  of a counter, such as "GB/s"; NULL: none.
 * type  set only on success; start from TP_TYPE_NONE, which is never recorded.
 *
 * TP_EINVAL  a name, the kind or the unit. TP_EEXIST  another type has the id.
 * TP_ESTATE  it is tp_client_off. TP_EQUOTA, TP_ENOMEM. Nothing was registered.
 */
int tp_register_type(struct tp_client *client, const char *plugin,
                     const char *type_name, enum tp_kind kind, const char *unit,
                     unsigned *type, struct tp_err *err);

/*
 * The id of a type by name: "plugin.type_name", a bare name that one plugin has, or one
 * of Kineto's ("kernel", "cpu_op", "gpu_memcpy").
 *
 * TP_ENOTFOUND, TP_EAMBIGUOUS  type is as before.
 */
int tp_find_type(struct tp_client *client, const char *name, unsigned *type,
                 struct tp_err *err);

/* Say that one more step (iteration) of the workload begins; traces may start at a
 * step and last for some. Returns its number, from 1; 0 of tp_client_off. */
uint64_t tp_step(struct tp_client *client);

/* The library's version, such as "0.1.0". */
const char *tp_version(void);

/* What became of the events of the trace at hand, or of the last one. Plain data:
 * emitted = sent + waiting + filtered + all dropped. The counts are as of when the
 * agent looked last; whether it is recording is as of now. */
struct tp_stats {
    uint64_t emitted;           /* recorded by now; the names of threads count, too */
    uint64_t sent;              /* taken by the service, or counted there as dropped */
    uint64_t waiting;           /* in the backlog */
    uint64_t filtered;          /* too short, or of another time that you gave */
    uint64_t dropped_ring_full; /* no room in the ring of the thread */
    uint64_t dropped_backlog;   /* no room among what waits for the service */
    uint64_t dropped_too_large; /* one event over 2 KiB, or slices nested too deep */
    bool is_registered;         /* the service knows this client */
    bool is_recording;
    uint64_t dropped_after_stop; /* unsent when trace or client ended, or cancelled */
    uint64_t dropped_refused;    /* the service could not read their batch */
    uint32_t types_refused; /* of those registered: the service did not take them */
};

/* Fill *stats, of which the caller gives the size: later fields are left alone, and
 * what they would have of dropped events is in dropped_backlog. */
void tp_get_stats(struct tp_client *client, struct tp_stats *stats, size_t stats_bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#include <traceplane/record.h>

#include <traceplane/macros.h>

#endif
