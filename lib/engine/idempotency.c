#include "engine/idempotency.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/fnv.h"
#include "engine/objects.h"
#include "engine/problem.h"
#include "store/store.h"

#define SWEEP_NS UINT64_C(60000000000)

/* From two different starts. It guards against mistakes, not against a client that
 * wants to fool itself. */
void tp_key_fingerprint(struct tp_str body, char *out)
{
    snprintf(out, TP_FINGERPRINT_BYTES, "%016" PRIx64 "%016" PRIx64 "-%zu",
             tp_fnv(body.ptr, body.len, TP_FNV_START),
             tp_fnv(body.ptr, body.len, UINT64_C(0x9ae16a3b2f90404f)), body.len);
}

/* How long a key counts. */
static uint64_t life_ns(const struct tp_engine *e)
{
    return e->limits.idempotency_ms * TP_NS_PER_MS;
}

static bool is_old(const struct tp_engine *e, const struct tp_key *key,
                   struct tp_now now)
{
    return now.wall_ns > key->created_ns && now.wall_ns - key->created_ns >= life_ns(e);
}

int tp_key_find(struct tp_engine *e, struct tp_str key, const char *fingerprint,
                struct tp_now now, struct tp_trace **out, struct tp_problem *problem,
                struct tp_err *err)
{
    struct tp_key *found = key.len == 0 ? NULL
                                        : tp_strmap_get(&e->keys, key.ptr, key.len);

    *out = NULL;
    if (found == NULL || is_old(e, found, now))
        return TP_OK;
    if (strcmp(found->fingerprint, fingerprint) == 0) {
        *out = tp_strmap_get(&e->traces, found->trace_id, strlen(found->trace_id));
        return TP_OK;
    }
    if (problem != NULL) {
        tp_problem_clear(problem);
        problem->kind = TP_PROBLEM_IDEMPOTENCY_MISMATCH;
        memcpy(problem->name, key.ptr, key.len);
        memcpy(problem->trace_id, found->trace_id, TP_TRACE_ID_BYTES);
    }
    return tp_fail(
        err, TP_EEXIST,
        "the idempotency key '%.*s' was used with another body, for trace %s",
        (int)key.len, key.ptr, found->trace_id);
}

int tp_key_room(struct tp_engine *e, struct tp_problem *problem, struct tp_err *err)
{
    size_t n = tp_strmap_len(&e->keys);

    if (n < e->limits.idempotency_keys)
        return TP_OK;
    return tp_problem_limit(problem, "max-idempotency-keys", "keys",
                            e->limits.idempotency_keys, n + 1, err);
}

int tp_key_put(struct tp_engine *e, struct tp_str key, struct tp_str fingerprint,
               struct tp_str trace_id, uint64_t created_ns, struct tp_err *err)
{
    struct tp_key *k = calloc(1, sizeof(*k));
    int rc;

    if (k == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for an idempotency key");
    k->fingerprint = malloc(fingerprint.len + 1);
    if (k->fingerprint == NULL) {
        free(k);
        return tp_fail(err, TP_ENOMEM, "no memory for an idempotency key");
    }
    memcpy(k->fingerprint, fingerprint.ptr, fingerprint.len);
    k->fingerprint[fingerprint.len] = '\0';
    if (trace_id.len < sizeof(k->trace_id))
        memcpy(k->trace_id, trace_id.ptr, trace_id.len);
    k->created_ns = created_ns;
    tp_key_drop(e, key);
    rc = tp_strmap_put(&e->keys, key.ptr, key.len, k, err);
    if (rc != TP_OK)
        tp_key_free(k);
    return rc;
}

int tp_key_persist(struct tp_engine *e, struct tp_str key, const char *fingerprint,
                   const struct tp_trace *t, struct tp_err *err)
{
    struct tp_row_key row = {
        .key = key,
        .fingerprint = tp_str_of(fingerprint),
        .trace = tp_str_of(t->id),
        .created_ns = t->created_ns,
    };

    return e->opts.store->ops->put_key(e->opts.store, &row, err);
}

void tp_key_drop(struct tp_engine *e, struct tp_str key)
{
    tp_key_free(tp_strmap_remove(&e->keys, key.ptr, key.len));
}

void tp_key_drop_trace(struct tp_engine *e, const char *trace_id)
{
    size_t cursor = 0;
    struct tp_str name;
    void *key;

    while (tp_strmap_next(&e->keys, &cursor, &name, &key)) {
        if (strcmp(((struct tp_key *)key)->trace_id, trace_id) == 0)
            tp_key_drop(e, name);
    }
}

void tp_key_sweep(struct tp_engine *e, struct tp_now now)
{
    struct tp_store *store = e->opts.store;
    size_t cursor = 0;
    struct tp_err ignored;
    struct tp_str name;
    void *key;

    if (now.mono_ns - e->last_key_sweep_ns < SWEEP_NS || now.wall_ns < life_ns(e) ||
        tp_strmap_len(&e->keys) == 0)
        return;
    e->last_key_sweep_ns = now.mono_ns;
    /* A failure leaves old rows, which are judged old when they are read again. */
    if (store->ops->remove_keys(store, now.wall_ns - life_ns(e), &ignored) != TP_OK)
        e->stats.store_failures++;
    while (tp_strmap_next(&e->keys, &cursor, &name, &key)) {
        if (is_old(e, key, now))
            tp_key_drop(e, name);
    }
}
