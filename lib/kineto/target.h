/*
 * target.h - one Kineto process as its requests show it: plain data and its life.
 *
 *   idle --> armed --> busy --> idle        idle, busy --> lagging --> idle, busy
 *                \----------> idle           any of them --> gone
 *
 * idle     it would take a configuration
 * armed    it was given one and has not begun: a second one would be thrown away
 * busy     its profiler runs, for us or for the application itself
 * lagging  it has not read its last answer in time, so it reads each one poll too late;
 *          it is left without an answer, and lags until it is seen to have caught up
 * gone     it has ended or is silent; it is forgotten when that was told
 *
 * Nothing here changes a process; table.h does. Pure functions; safe from any thread.
 */
#ifndef TP_KINETO_TARGET_H
#define TP_KINETO_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "kineto/schedule.h"

struct tp_err;

#define TP_KINETO_ADDRESS_BYTES 108

enum tp_kineto_state {
    TP_KINETO_IDLE,
    TP_KINETO_ARMED,
    TP_KINETO_BUSY,
    TP_KINETO_LAGGING,
    TP_KINETO_GONE,
    TP_KINETO_STATES
};

/* The name of a state ("idle"); "unknown" for a value that is none. */
const char *tp_kineto_state_name(int state);

/* Whether a process may go from one state to another. */
bool tp_kineto_state_allows(int from, int to);

/* Who sent a datagram, as the kernel says. Plain data. */
struct tp_kineto_peer {
    uint32_t listener; /* which of the owner's sockets it came to */
    uint8_t address_bytes;
    char address[TP_KINETO_ADDRESS_BYTES]; /* sun_path, NULs included */
    int32_t pid;                           /* in our pid namespace; 0 = not visible */
    uint32_t uid, gid;
};

/* What has happened to a process since its news were taken. */
enum tp_kineto_news {
    TP_KINETO_NEWS_POLL = 1u << 0,   /* it asked */
    TP_KINETO_NEWS_SERVED = 1u << 1, /* it was given its order */
    TP_KINETO_NEWS_LATE = 1u << 2,   /* it reads the order only now: served_ns moved */
    TP_KINETO_NEWS_BEGAN = 1u << 3,  /* armed, then busy */
    TP_KINETO_NEWS_ENDED = 1u << 4,  /* busy, then idle again */
    TP_KINETO_NEWS_MISSED = 1u << 5, /* it asked too late for its order, which is off */
    TP_KINETO_NEWS_NEVER = 1u << 6,  /* armed, and its time passed without being busy */
    TP_KINETO_NEWS_GONE = 1u << 7,
    TP_KINETO_NEWS_STEP = 1u << 8 /* it is behind its answers now, or is not any more */
};

/* A process, copied. Plain data. */
struct tp_kineto_target {
    uint64_t id; /* never used twice in a table */
    struct tp_kineto_peer peer;
    int state;
    uint32_t news;
    bool is_old;         /* polls with types 3 and 1: libkineto before 2026-07-24 */
    bool has_order;      /* waits to be served */
    bool is_busy;        /* its last request said so; it may be lagging besides */
    bool tells_busy;     /* it does say so; some ask with type 3 whatever they do */
    int64_t job;         /* as it claims; 0 = none */
    int32_t claimed_pid; /* its own pid in its own namespace, as it claims */
    int32_t gpu;         /* as it claims in a context; -1 = never said */
    struct tp_kineto_rhythm rhythm;
    uint64_t first_ns;
    uint64_t served_ns; /* 0 = never */
    uint64_t polls, repairs, floods;
};

/*
 * Move *state as the drawing allows.
 *
 * TP_ESTATE  it does not; nothing changed.
 */
int tp_kineto_state_move(int *state, int to, struct tp_err *err);

#endif
