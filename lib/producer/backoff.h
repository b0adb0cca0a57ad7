/*
 * backoff.h - how long to wait after a failure: longer each time, and never the same
 * for two producers.
 *
 * Ten thousand producers lose a service at the same moment; without chance in it they
 * would all come back at the same moment, too. Plain data without a lock; the owner
 * says what random is. Pure functions.
 */
#ifndef TP_PRODUCER_BACKOFF_H
#define TP_PRODUCER_BACKOFF_H

#include <stdint.h>

#define TP_BACKOFF_FIRST_MS 50
#define TP_BACKOFF_BUSY_MS 5000  /* most of a wait while there is something to send */
#define TP_BACKOFF_IDLE_MS 60000 /* else: a program without a service sleeps */

/* Plain data; start with tp_backoff_init(). */
struct tp_backoff {
    uint64_t random;  /* state of the generator; never 0 */
    uint64_t next_ms; /* upper end of the next wait */
};

/* Start; different seeds give different waits. */
static inline void tp_backoff_init(struct tp_backoff *b, uint64_t seed)
{
    b->random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    b->next_ms = TP_BACKOFF_FIRST_MS;
}

/* Something succeeded: the next failure is the first one again. */
static inline void tp_backoff_reset(struct tp_backoff *b)
{
    b->next_ms = TP_BACKOFF_FIRST_MS;
}

/*
 * After a failure: for how long to wait, in milliseconds; between half of the present
 * bound and all of it. The bound doubles up to TP_BACKOFF_IDLE_MS, and no wait is over
 * most_ms: so one that is idle waits about as long as it has waited already, and one
 * that is not comes back soon.
 *
 * asked_ms  what the service asks for (Retry-After), 0 = nothing. A wait that would be
 *           shorter comes on top of it, so that those who were asked the same come back
 *           apart; of what it asks for, most_ms counts at most.
 */
static inline uint64_t tp_backoff_ms(struct tp_backoff *b, uint64_t most_ms,
                                     uint64_t asked_ms)
{
    uint64_t bound = b->next_ms < most_ms ? b->next_ms : most_ms;
    uint64_t asked = asked_ms < most_ms ? asked_ms : most_ms, wait;

    b->random ^= b->random << 13; /* xorshift64 */
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    b->next_ms = b->next_ms * 2 > TP_BACKOFF_IDLE_MS ? TP_BACKOFF_IDLE_MS
                                                     : b->next_ms * 2;
    wait = bound / 2 + b->random % (bound - bound / 2 + 1);
    return asked > wait ? asked + wait : wait;
}

#endif
