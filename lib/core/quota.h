/*
 * quota.h - one limit and how much of it is used.
 *
 * What a client causes to be allocated is charged here before it is allocated, and
 * released with its owner. A quota allocates nothing and frees nothing itself. Charge
 * and release may be called from any thread at once.
 */
#ifndef TP_CORE_QUOTA_H
#define TP_CORE_QUOTA_H

#include <stdatomic.h>
#include <stdint.h>

struct tp_err;

/* Embed it; start with tp_quota_init(). Fields are private except for reading. */
struct tp_quota {
    const char *name; /* as in limits.h, such as "max-types-per-job" */
    const char *unit; /* "bytes", "traces"; goes into messages */
    uint64_t limit;
    _Atomic uint64_t used;
};

/*
 * Start with nothing used.
 *
 * name, unit  borrowed; must outlive q (string constants).
 * limit       in that unit; 0 = everything is refused.
 */
void tp_quota_init(struct tp_quota *q, const char *name, const char *unit,
                   uint64_t limit);

/*
 * Take n units.
 *
 * TP_EQUOTA  used + n is over the limit; the message names limit, value and unit;
 *            nothing was taken.
 */
int tp_quota_charge(struct tp_quota *q, uint64_t n, struct tp_err *err);

/* Give n units back; more than are used is the caller's bug (assert). */
void tp_quota_release(struct tp_quota *q, uint64_t n);

/* Units in use at this moment. */
uint64_t tp_quota_used(const struct tp_quota *q);

#endif
