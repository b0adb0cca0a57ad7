/*
 * idempotency.h - which trace an idempotency key has made.
 *
 * A key counts for a day, or as long as its trace is there. The caller holds the
 * control lock.
 */
#ifndef TP_ENGINE_IDEMPOTENCY_H
#define TP_ENGINE_IDEMPOTENCY_H

#include "engine/model.h"

#define TP_FINGERPRINT_BYTES 65 /* 64 hexadecimal digits and a NUL */

/* What a key has made. Plain data. */
struct tp_key {
    char *fingerprint;
    char trace_id[TP_TRACE_ID_BYTES];
    uint64_t created_ns;
};

/* What tells bodies apart: two 64-bit hashes and the length, as text. */
void tp_key_fingerprint(struct tp_str body, char *out);

/*
 * Look a key up.
 *
 * out  the trace that it made, or NULL when it is new.
 *
 * TP_EEXIST  it was used for another body (IDEMPOTENCY_MISMATCH).
 */
int tp_key_find(struct tp_engine *e, struct tp_str key, const char *fingerprint,
                struct tp_now now, struct tp_trace **out, struct tp_problem *problem,
                struct tp_err *err);

/* Whether there is room for one more. TP_EQUOTA (LIMIT_EXCEEDED). */
int tp_key_room(struct tp_engine *e, struct tp_problem *problem, struct tp_err *err);

/* Remember a key in memory. TP_ENOMEM. */
int tp_key_put(struct tp_engine *e, struct tp_str key, struct tp_str fingerprint,
               struct tp_str trace_id, uint64_t created_ns, struct tp_err *err);

/* Write the row of a key; part of a transaction. */
int tp_key_persist(struct tp_engine *e, struct tp_str key, const char *fingerprint,
                   const struct tp_trace *t, struct tp_err *err);

/* Forget a key that did not get into the store. */
void tp_key_drop(struct tp_engine *e, struct tp_str key);

/* Forget the keys of a trace that is deleted; the rows go with the trace's. */
void tp_key_drop_trace(struct tp_engine *e, const char *trace_id);

/* Forget old keys, here and in the store, at most once a minute. */
void tp_key_sweep(struct tp_engine *e, struct tp_now now);

#endif
