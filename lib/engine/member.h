/*
 * member.h - what ties a producer to a trace: how far it is, and what it says.
 *
 * Part of model.h, for the files of this room only; guarded by the control lock.
 */
#ifndef TP_ENGINE_MEMBER_H
#define TP_ENGINE_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/counts.h"
#include "core/type_counts.h"
#include "engine/identity.h"

struct tp_producer;
struct tp_trace;

enum tp_member_state {
    TP_MEMBER_UNMATCHED,
    TP_MEMBER_WAITING,
    TP_MEMBER_ARMED,
    TP_MEMBER_RECORDING,
    TP_MEMBER_FLUSHING,
    TP_MEMBER_DONE,
    TP_MEMBER_REFUSED,
    TP_MEMBER_LOST,
    TP_MEMBER_STATES
};

#define TP_KINETO_FOLDER_KEY_BYTES 33 /* 128 random bits in hexadecimal digits */

/* How far a Kineto process is in a trace; see kineto_follow.c. */
enum tp_kineto_phase {
    TP_KINETO_PHASE_NONE,
    TP_KINETO_PHASE_FOLDER, /* its folder is being made */
    TP_KINETO_PHASE_READY,  /* it could be told */
    TP_KINETO_PHASE_ORDERED,
    TP_KINETO_PHASE_SERVED,
    TP_KINETO_PHASE_BEGUN, /* it has taken the order */
    TP_KINETO_PHASE_SETTLED
};

struct tp_kineto_part {
    enum tp_kineto_phase phase;
    bool needs_task;     /* a folder is to be made and watched */
    bool needs_find;     /* since a restart: there may be one already */
    bool has_begun_file; /* the process has opened its file */
    bool has_file;       /* it is complete and being read */
    bool is_lagging;     /* its reason says so */
    bool has_lagged;     /* while it waited */
    uint64_t start_wall_ns, duration_ms;
    uint64_t hold_until_ns;  /* monotonic: it is not told before; 0 = it may be */
    uint64_t serve_until_ns; /* monotonic; 0 = no order was made */
    uint64_t idle_ns;        /* since when it is through; 0 = it is not */
    uint64_t gone_ns;        /* since, or from, when it is gone; 0 = it is not */
};

struct tp_member {
    struct tp_trace *trace;
    struct tp_producer *producer; /* while it takes part: its member is this one */
    struct tp_producer *made_of; /* while its trace is being made, with the lock held */
    struct tp_identity who;
    enum tp_member_state state;
    char reason[128];
    uint32_t stream_no;
    uint64_t step, base_step;
    uint64_t step_mono_ns; /* when the step last changed; 0: not since a restart */
    uint64_t started_ns;   /* server's clock */
    bool has_begun;        /* it said so */
    bool may_have_begun;   /* it may have said so in the last moment before a restart */
    bool is_unsure; /* since a restart: it may have got further than its row says */
    uint64_t n_bad_batches; /* that could not be read, or were for another stream */
    struct tp_counts reported;
    struct tp_type_counts types; /* the same by type; stored: after its seal */
    bool has_clock;
    int64_t clock_offset_ns;
    uint64_t clock_error_ns;
    bool has_uid;                                /* uid is known: a Kineto process */
    uint32_t uid;                                /* who may have written its file */
    char folder_key[TP_KINETO_FOLDER_KEY_BYTES]; /* secret; "" = its folder has none */
    uint64_t interval_ns; /* how often its process asks; 0 = not known */
    bool is_dirty;        /* differs from its row */
    bool has_new_stream;  /* its row does not name it, so nobody may be told of it */
    bool is_only_listed;  /* has no row of its own yet: persist.h */
    struct tp_kineto_part kineto;
};

#endif
