#include "core/quota.h"

#include <assert.h>
#include <inttypes.h>

#include "base/err.h"

void tp_quota_init(struct tp_quota *q, const char *name, const char *unit,
                   uint64_t limit)
{
    q->name = name;
    q->unit = unit;
    q->limit = limit;
    atomic_init(&q->used, 0);
}

int tp_quota_charge(struct tp_quota *q, uint64_t n, struct tp_err *err)
{
    /* Relaxed: the count guards no other memory. The loop makes check and charge one
     * step, so that threads together never get over the limit. */
    uint64_t used = atomic_load_explicit(&q->used, memory_order_relaxed);

    do {
        if (used > q->limit || n > q->limit - used)
            return tp_fail(err, TP_EQUOTA,
                           "%s is %" PRIu64 " %s, and %" PRIu64
                           " are in use, so there is no room for %" PRIu64 " more",
                           q->name, q->limit, q->unit, used, n);
    } while (!atomic_compare_exchange_weak_explicit(
        &q->used, &used, used + n, memory_order_relaxed, memory_order_relaxed));
    return TP_OK;
}

void tp_quota_release(struct tp_quota *q, uint64_t n)
{
    uint64_t used = atomic_fetch_sub_explicit(&q->used, n, memory_order_relaxed);

    assert(used >= n);
    (void)used;
}

uint64_t tp_quota_used(const struct tp_quota *q)
{
    return atomic_load_explicit(&q->used, memory_order_relaxed);
}
