#include "engine/tell.h"

#include "engine/life.h"
#include "engine/objects.h"

#define BASE_NS UINT64_C(4000000) /* to be woken, and to wake up over there */
#define FIRST_NS UINT64_C(8000)   /* as long as nothing is measured: see speed */
#define NEXT_NS UINT64_C(14000)
#define EACH_MOST_NS UINT64_C(200000)
#define PAUSE_EACH_NS UINT64_C(12000) /* the more there are, the likelier is a pause */
#define PAUSE_MOST_NS UINT64_C(12000000)
#define OVERDUE_NS UINT64_C(1000000000)  /* who is told later was not waited for */
#define CLOCK_MOST_NS UINT64_C(50000000) /* nor who knows the time worse */
#define MEASURED_MIN 50                  /* a few say nothing about many */
#define HOLD_EACH_NS UINT64_C(1000)      /* nobody was told for so long, times all: */
#define HOLD_MOST_NS UINT64_C(5000000)   /* who is missing does not come soon */

static uint64_t known_or(uint64_t measured_ns, uint64_t otherwise_ns)
{
    return measured_ns == 0 ? otherwise_ns : measured_ns;
}

/* From the first to the last; with something to spare, and a pause of the machine. */
static uint64_t spread_ns(const struct tp_trace *t)
{
    uint64_t n = t->telling.n_due;
    uint64_t pause_ns = n * PAUSE_EACH_NS;

    return BASE_NS + n * known_or(t->engine->speed.next_ns, NEXT_NS) * 9 / 8 +
           (pause_ns < PAUSE_MOST_NS ? pause_ns : PAUSE_MOST_NS);
}

static bool waits(const struct tp_member *m)
{
    const struct tp_producer *p;

    if (m->state == TP_MEMBER_ARMED)
        return true;
    p = m->state == TP_MEMBER_WAITING ? tp_member_producer(m) : NULL;
    return p != NULL && p->has_synced;
}

uint64_t tp_tell_plan(struct tp_trace *t, struct tp_now now)
{
    struct tp_telling *telling = &t->telling;
    uint64_t off_ns = 0;

    memset(telling, 0, sizeof(*telling));
    telling->decided_ns = now.mono_ns;
    for (size_t i = 0; i < t->n_members; i++) {
        const struct tp_member *m = t->members[i];

        if (!waits(m))
            continue;
        telling->n_due++;
        off_ns = off_ns < m->clock_error_ns ? m->clock_error_ns : off_ns;
    }
    if (telling->n_due == 0)
        return 0;
    t->engine->telling_until_ns = now.mono_ns + OVERDUE_NS;
    off_ns = off_ns < CLOCK_MOST_NS ? off_ns : CLOCK_MOST_NS;
    return telling->n_due * known_or(t->engine->speed.first_ns, FIRST_NS) +
           spread_ns(t) + 2 * off_ns;
}

/* Clocks are read before the lock is taken: who is later may have read earlier. */
static uint64_t passed_ns(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* A slower telling counts at once, though none for more than twice what was known: once
 * the machine was busy with something else. A faster one counts for a quarter: whoever
 * is told too late begins apart from the others. */
static void learn(uint64_t *measured_ns, uint64_t otherwise_ns, uint64_t took_ns,
                  size_t n)
{
    uint64_t known = known_or(*measured_ns, otherwise_ns);
    uint64_t each = took_ns / n + 1;

    each = each < 2 * known ? each : 2 * known;
    each = each > known ? each : known - (known - each) / 4;
    *measured_ns = each < EACH_MOST_NS ? each : EACH_MOST_NS;
}

/* Whom the speed is measured with: the last few may be busy with something else, for
 * seconds or for ever. */
static size_t most_of(size_t n)
{
    return n - n / 10;
}

static void tell_first(struct tp_trace *t, struct tp_now now)
{
    uint64_t most_ns = now.wall_ns + spread_ns(t);

    t->telling.first_ns = now.mono_ns;
    if (t->telling.n_due >= MEASURED_MIN)
        learn(&t->engine->speed.first_ns, FIRST_NS,
              passed_ns(t->telling.decided_ns, now.mono_ns), t->telling.n_due);
    if (!t->is_planned && t->start_at_ns < most_ns)
        tp_life_postpone(t, most_ns, now);
}

void tp_tell_start(struct tp_member *m, struct tp_now now)
{
    struct tp_trace *t = m->trace;
    struct tp_telling *telling = &t->telling;

    m->is_unsure = m->is_unsure || m->state == TP_MEMBER_WAITING;
    if (telling->n_told >= telling->n_due)
        return; /* it came later, or is told again */
    if (telling->n_told == 0 &&
        passed_ns(telling->decided_ns, now.mono_ns) > OVERDUE_NS) {
        telling->n_due = 0; /* nobody of then is there any more; the start stays */
        return;
    }
    if (telling->n_told++ == 0)
        tell_first(t, now);
    telling->last_ns = now.mono_ns;
    if (telling->n_due >= MEASURED_MIN && telling->n_told == most_of(telling->n_due))
        learn(&t->engine->speed.next_ns, NEXT_NS,
              passed_ns(telling->first_ns, now.mono_ns), telling->n_told);
}

bool tp_tell_is_going_on(const struct tp_trace *t, struct tp_now now)
{
    const struct tp_telling *telling = &t->telling;
    uint64_t hold_ns = telling->n_due * HOLD_EACH_NS;

    hold_ns = hold_ns < HOLD_MOST_NS ? hold_ns : HOLD_MOST_NS;
    return telling->n_told > 0 && telling->n_told < telling->n_due &&
           now.wall_ns < t->start_at_ns && now.mono_ns < telling->last_ns + hold_ns;
}
