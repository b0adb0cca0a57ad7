/*
 * problem.h - why an operation of the engine was refused, in fields that a program
 * can read.
 *
 * It stands beside struct tp_err: the code and the sentence are there, this has the
 * names and numbers that belong to it, so that nobody parses messages. Plain data
 * without pointers into the engine. Every function below may be called from any
 * thread with a struct of its own; all of them accept a NULL problem.
 */
#ifndef TP_ENGINE_PROBLEM_H
#define TP_ENGINE_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "core/registry.h"

struct tp_err;
struct tp_quota;

/* The comment names the fields that are filled in, and the code that comes with it. */
enum tp_problem_kind {
    TP_PROBLEM_NONE,                 /* nothing to add to the message */
    TP_PROBLEM_INVALID,              /* field; TP_EINVAL */
    TP_PROBLEM_NOT_FOUND,            /* subject, name; TP_ENOTFOUND */
    TP_PROBLEM_ID_COLLISION,         /* type, job; TP_EEXIST */
    TP_PROBLEM_REGISTRY_FROZEN,      /* type, job, trace_id; TP_ESTATE; type.id is 0 */
    TP_PROBLEM_AMBIGUOUS_NAME,       /* field, name, type.names; TP_EAMBIGUOUS/EINVAL */
    TP_PROBLEM_UNKNOWN_TYPE,         /* field, name, type.names = nearest; TP_EINVAL, or
                                       TP_ENOTFOUND for a lookup */
    TP_PROBLEM_TRACE_ACTIVE,         /* job, trace_id, state; TP_EEXIST */
    TP_PROBLEM_ILLEGAL_STATE,        /* trace_id, state; TP_ESTATE */
    TP_PROBLEM_NOT_ENOUGH_PRODUCERS, /* required, available; TP_ESTATE */
    TP_PROBLEM_LIMIT_EXCEEDED,       /* limit_*; TP_EQUOTA */
    TP_PROBLEM_IDEMPOTENCY_MISMATCH, /* name = the key, trace_id; TP_EEXIST */
    TP_PROBLEM_DAMAGED_BODY,         /* offset when has_offset; TP_EINVAL */
    TP_PROBLEM_UNSUPPORTED,          /* field, name; TP_EUNSUPPORTED */
    TP_PROBLEM_STORAGE, /* disk or store failed or is full; TP_EIO/EQUOTA */
    TP_PROBLEM_KINDS
};

#define TP_PROBLEM_TEXT_BYTES 256

/* Plain data; the zero value is TP_PROBLEM_NONE. Texts are NUL-terminated UTF-8. */
struct tp_problem {
    enum tp_problem_kind kind;
    char field[64];   /* "filter.include[2]", "types[3].plugin", "rank" */
    char subject[24]; /* "trace", "type", "job", "producer" */
    char name[TP_PROBLEM_TEXT_BYTES]; /* what was not found, unknown, ambiguous */
    char job[64 + 1];
    char trace_id[32];
    char state[24]; /* the present state of trace_id */
    uint32_t required;
    uint32_t available;
    char limit_name[48]; /* as in core/limits.h */
    char limit_unit[24];
    uint64_t limit_max;
    uint64_t limit_value; /* what was asked for or would have been reached */
    bool has_offset;
    uint64_t offset; /* of the body, in bytes, after decompression */
    struct tp_registry_detail type;
};

/* Make *p the zero value. */
void tp_problem_clear(struct tp_problem *p);

/* Fill in NOT_FOUND and fail with TP_ENOTFOUND ("there is no <subject> '<name>'"). */
int tp_problem_not_found(struct tp_problem *p, const char *subject, struct tp_str name,
                         struct tp_err *err);

/* Fill in INVALID for a field. Returns `code`, so that it can be the last word. */
int tp_problem_invalid(struct tp_problem *p, const char *field, int code);

/*
 * Fill in LIMIT_EXCEEDED and fail with TP_EQUOTA.
 *
 * name, unit  as in core/limits.h. value  what was asked for.
 */
int tp_problem_limit(struct tp_problem *p, const char *name, const char *unit,
                     uint64_t max, uint64_t value, struct tp_err *err);

/* Fill in ILLEGAL_STATE and fail with TP_ESTATE: `words` say what was refused. */
int tp_problem_state(struct tp_problem *p, const char *trace_id, const char *state,
                     const char *words, struct tp_err *err);

/* Fill in STORAGE when nothing is filled in and code is TP_EIO or TP_EQUOTA; returns
 * code. */
int tp_problem_storage(struct tp_problem *p, int code);

#endif
