#include "core/counts.h"

#include <inttypes.h>

#include "base/err.h"

static const char *const cause_names[TP_DROP_CAUSES] = {
    [TP_DROP_UNMATCHED_END] = "unmatched-end",
    [TP_DROP_OVER_LIMIT] = "over-limit",
    [TP_DROP_EVENT_TOO_LARGE] = "event-too-large",
    [TP_DROP_BEFORE_START] = "before-start",
    [TP_DROP_AFTER_STOP] = "after-stop",
    [TP_DROP_RING_FULL] = "producer-ring-full",
    [TP_DROP_BACKLOG_FULL] = "producer-backlog-full",
    [TP_DROP_NOT_REQUESTED] = "not-requested",
    [TP_DROP_MALFORMED] = "malformed",
    [TP_DROP_DAMAGED] = "damaged",
    [TP_DROP_LOST] = "producer-lost",
    [TP_DROP_STORAGE_FAILED] = "storage-failed",
};

const char *tp_drop_cause_name(enum tp_drop_cause cause)
{
    return (unsigned)cause < TP_DROP_CAUSES ? cause_names[cause] : "unknown";
}

int tp_drop_cause_find(struct tp_str name)
{
    for (int i = 0; i < TP_DROP_CAUSES; i++) {
        if (tp_str_is(name, cause_names[i]))
            return i;
    }
    return -1;
}

/* The sum, or UINT64_MAX: a lying producer must not make a sum look small. */
static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void tp_counts_add(struct tp_counts *a, const struct tp_counts *b)
{
    a->emitted = sum(a->emitted, b->emitted);
    a->stored = sum(a->stored, b->stored);
    a->filtered = sum(a->filtered, b->filtered);
    for (int i = 0; i < TP_DROP_CAUSES; i++)
        a->dropped[i] = sum(a->dropped[i], b->dropped[i]);
    a->repaired = sum(a->repaired, b->repaired);
    a->untyped = sum(a->untyped, b->untyped);
    a->bytes = sum(a->bytes, b->bytes);
}

uint64_t tp_counts_dropped(const struct tp_counts *c)
{
    uint64_t dropped = 0;

    for (int i = 0; i < TP_DROP_CAUSES; i++)
        dropped = sum(dropped, c->dropped[i]);
    return dropped;
}

int tp_counts_check(const struct tp_counts *c, struct tp_err *err)
{
    uint64_t dropped = tp_counts_dropped(c);

    if (c->emitted != sum(sum(c->stored, dropped), c->filtered))
        return tp_fail(err, TP_EINVAL,
                       "%" PRIu64 " events emitted, but %" PRIu64 " stored + %" PRIu64
                       " dropped + %" PRIu64 " filtered",
                       c->emitted, c->stored, dropped, c->filtered);
    if (c->repaired > c->stored || c->untyped > c->stored)
        return tp_fail(err, TP_EINVAL,
                       "%" PRIu64 " events stored, but %" PRIu64
                       " repaired and %" PRIu64 " untyped",
                       c->stored, c->repaired, c->untyped);
    return TP_OK;
}
