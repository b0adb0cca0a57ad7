/*
 * record.h - recording: slices, instants, counters, flows and asynchronous events.
 *
 * Part of traceplane.h, which is what to include; the same rules for threads. Each
 * function first looks whether the type is being recorded and does nothing if not. What
 * it records goes to a ring of the calling thread: no lock, no system call, no
 * allocation but for the first event of a thread. Nothing here fails: what has no room
 * is dropped and counted, and the trace says so.
 */
#ifndef TP_PRODUCER_RECORD_H
#define TP_PRODUCER_RECORD_H

#include <stddef.h>
#include <stdint.h>

struct tp_client;

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Whether a type is being recorded: one relaxed load. type  0 to 255. */
static inline int tp_enabled(const struct tp_client *client, unsigned type)
{
    /* The bytes are the client's first member. */
#ifdef __cplusplus
    const unsigned char *enabled = reinterpret_cast<const unsigned char *>(client);
#else
    const unsigned char *enabled = (const unsigned char *)client;
#endif

    return __atomic_load_n(enabled + (type & 255), __ATOMIC_RELAXED);
}

/*
 * The number of a text, for names and keys: the same in all clients of the process, for
 * as long as it lives. Looks the text up under a lock, so keep the number.
 *
 * text  NUL-terminated UTF-8; copied. NULL is "". One of over 1023 bytes is cut: it
 * ends in "..." and 16 digits that are of the whole, so no two become one.
 *
 * Returns 0, which is written as "", when 1,048,575 texts or 64 MiB of them are there.
 */
uint32_t tp_intern(const char *text);

/* Nanoseconds on the clock that events are recorded with: about those since 1970, and
 * never stepping. It is the processor's counter, unless that is known to be no clock or
 * TRACEPLANE_CLOCK=monotonic is set; then recording costs some 20 ns more an event. */
uint64_t tp_now(void);

enum tp_field_kind {
    TP_FIELD_INT,    /* i */
    TP_FIELD_DOUBLE, /* d; NaN and infinities become text */
    TP_FIELD_BOOL,   /* i, 0 or not */
    TP_FIELD_TEXT,   /* s; the bytes must live and stay as they are until exit;
                         of more than 4095 the rest is left out */
    TP_FIELD_COPY    /* s; the bytes are copied, up to 1023; the rest is left out */
};

/* An argument of an event. Plain data. */
struct tp_field {
    uint32_t key;  /* of tp_intern() */
    uint32_t kind; /* enum tp_field_kind */
    union {
        int64_t i;
        double d;
        const char *s; /* NUL-terminated UTF-8; NULL is "" */
    } value;
};

#define TP_FIELDS_MAX 32 /* an event with more of them counts as dropped */

/* Some arguments; borrowed for the call. {NULL, 0}: none. */
struct tp_fields {
    const struct tp_field *items;
    size_t n; /* 0 to TP_FIELDS_MAX */
};

/* Begin a slice on the calling thread; it lasts until the matching tp_end(). Up to 128
 * are open at a time, in 16 KiB with their arguments; those above count as dropped
 * (event-too-large), and their ends are passed over. */
void tp_begin(struct tp_client *client, unsigned type, uint32_t name,
              struct tp_fields fields);

/* Add arguments to the innermost open slice of the thread if it is of that type. What
 * does not go in, since that is of another type or would be over 32 arguments or 2 KiB
 * with it, is left out and counted nowhere: the slice is recorded without it. */
void tp_add(struct tp_client *client, unsigned type, struct tp_fields fields);

/* End the innermost open slice of that type on the thread, and with it those above it,
 * whose ends were left out. Ignored when there is none: so a slice that began before
 * the trace did is not recorded. A slice counts as emitted when it ends. */
void tp_end(struct tp_client *client, unsigned type);

/* An instant on the calling thread. */
void tp_instant(struct tp_client *client, unsigned type, uint32_t name,
                struct tp_fields fields);

/* A value at this moment; counters with one name in a process are one series. NaN and
 * the infinities, which no viewer can draw, are recorded as an instant with that name
 * on the calling thread, whose argument `value` is their text ("NaN"). */
void tp_counter(struct tp_client *client, unsigned type, uint32_t name, double value);

/* As tp_counter() for whole numbers, which are kept exactly. */
void tp_counter_int(struct tp_client *client, unsigned type, uint32_t name,
                    int64_t value);

/* A row of its own for what a device does. */
#define TP_TRACK_THREAD 0u /* the row of the calling thread */

/*
 * The track of a stream (queue, engine) of a device: the same numbers give the same one
 * in all clients of the process. A download shows the device as a process of its own.
 *
 * Returns TP_TRACK_THREAD when 4095 such tracks are there.
 */
uint32_t tp_device_track(uint32_t device, uint32_t stream);

/* When and where a slice was. Plain data. */
struct tp_interval {
    uint64_t start_ns; /* on the clock of tp_now() */
    uint64_t duration_ns;
    uint32_t track; /* of tp_device_track(), or TP_TRACK_THREAD */
};

/*
 * Record a slice that is over, such as a kernel. It belongs to the trace if it began
 * between the trace's start and its stop; else it counts as emitted and as filtered.
 * While no stop is known, so does one whose start is still to come when the agent takes
 * it.
 *
 * A backend that hears of what its device did only later, in buffers, opens its client
 * with late_ms: for so long after a stop the types stay enabled, for what began before
 * it; what threads record meanwhile at times of their own is left out. So late_ms is to
 * be a little more than the buffers take to arrive (give the device a period to flush
 * them), or than a flush takes when tp_get_stats() tells that is_recording has ended.
 * Each trace ends that much later. To switch the device's own tracing on, look at
 * tp_enabled() where work is launched.
 */
void tp_complete(struct tp_client *client, unsigned type, uint32_t name,
                 const struct tp_interval *when, struct tp_fields fields);

/* Which part of a flow or of an asynchronous event an event is. */
enum tp_phase { TP_PHASE_START, TP_PHASE_STEP, TP_PHASE_END };

/* A point of a flow. Plain data. */
struct tp_flow_point {
    uint64_t id; /* joins the points of a flow, in this process; below 2^63 */
    enum tp_phase phase;
    uint32_t track;   /* whose slice at that moment the arrow touches */
    uint64_t time_ns; /* on the clock of tp_now(); 0 = now */
};

/* One end, or a station, of an arrow between slices. */
void tp_flow(struct tp_client *client, unsigned type, uint32_t name,
             const struct tp_flow_point *point);

/*
 * Part of an asynchronous event, which may begin and end on different threads.
 *
 * id  joins the parts; below 2^63.
 */
void tp_async(struct tp_client *client, unsigned type, uint32_t name,
              enum tp_phase phase, uint64_t id);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
