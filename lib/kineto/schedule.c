#include "kineto/schedule.h"

#define SLACK_NS (TP_KINETO_SECOND_NS / 5)
#define STEP_NS (TP_KINETO_SECOND_NS / 20) /* between the starts that are looked at */
#define INTERVAL_MIN_NS (TP_KINETO_SECOND_NS / 2)
#define INTERVAL_MAX_NS (60 * TP_KINETO_SECOND_NS)

uint64_t tp_kineto_next_poll(const struct tp_kineto_rhythm *rhythm, uint64_t from_ns)
{
    uint64_t n;

    if (from_ns <= rhythm->last_ns)
        return rhythm->last_ns + rhythm->interval_ns;
    n = (from_ns - rhythm->last_ns + rhythm->interval_ns - 1) / rhythm->interval_ns;
    return rhythm->last_ns + n * rhythm->interval_ns;
}

uint64_t tp_kineto_next_answer(const struct tp_kineto_rhythm *rhythm, uint64_t from_ns)
{
    uint64_t poll_ns = tp_kineto_next_poll(rhythm, from_ns);
    uint64_t second_ns = rhythm->last_ns + 2 * rhythm->interval_ns;

    return rhythm->is_behind && poll_ns < second_ns ? second_ns : poll_ns;
}

uint64_t tp_kineto_safe_start(uint64_t served_ns, uint64_t warmup_ns)
{
    return served_ns + warmup_ns + TP_KINETO_MARGIN_NS;
}

/* How far a tick of the process is from at_ns, at most half a second. */
static uint64_t tick_distance(const struct tp_kineto_rhythm *r, uint64_t from_ns,
                              uint64_t at_ns)
{
    uint64_t tick_ns = r->tick_ns != 0 ? r->tick_ns : tp_kineto_next_answer(r, from_ns);
    uint64_t apart_ns = at_ns > tick_ns ? at_ns - tick_ns : tick_ns - at_ns;

    apart_ns %= TP_KINETO_TICK_NS;
    return apart_ns < TP_KINETO_TICK_NS / 2 ? apart_ns : TP_KINETO_TICK_NS - apart_ns;
}

static uint64_t least_distance(const struct tp_kineto_rhythm *rhythms, size_t n,
                               uint64_t from_ns, uint64_t at_ns)
{
    uint64_t least_ns = TP_KINETO_TICK_NS;

    for (size_t i = 0; i < n; i++) {
        uint64_t ns = tick_distance(&rhythms[i], from_ns, at_ns);

        least_ns = ns < least_ns ? ns : least_ns;
    }
    return least_ns;
}

uint64_t tp_kineto_common_start(const struct tp_kineto_rhythm *rhythms, size_t n,
                                uint64_t from_ns, uint64_t warmup_ns)
{
    uint64_t latest_ns = from_ns, best_ns, farthest_ns = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t answer_ns = tp_kineto_next_answer(&rhythms[i], from_ns);

        latest_ns = answer_ns > latest_ns ? answer_ns : latest_ns;
    }
    best_ns = tp_kineto_safe_start(latest_ns, 0);
    for (uint64_t back_ns = 0; back_ns <= TP_KINETO_CHOICE_NS && n > 0;
         back_ns += STEP_NS) {
        uint64_t at_ns = tp_kineto_safe_start(latest_ns, 0) - back_ns;
        uint64_t ns = least_distance(rhythms, n, from_ns, at_ns);

        if (ns > farthest_ns) {
            farthest_ns = ns;
            best_ns = at_ns;
        }
    }
    return best_ns + warmup_ns;
}

uint64_t tp_kineto_serve_until(uint64_t start_ns, uint64_t warmup_ns)
{
    uint64_t before_ns = warmup_ns + TP_KINETO_TICK_NS + SLACK_NS;

    return start_ns > before_ns ? start_ns - before_ns : 0;
}

bool tp_kineto_can_keep(const struct tp_kineto_rhythm *rhythm, uint64_t from_ns,
                        uint64_t start_ns, uint64_t warmup_ns)
{
    return tp_kineto_next_answer(rhythm, from_ns) + SLACK_NS <=
           tp_kineto_serve_until(start_ns, warmup_ns);
}

uint64_t tp_kineto_sooner(const struct tp_kineto_rhythm *rhythm, uint64_t from_ns,
                          uint64_t start_ns, uint64_t warmup_ns)
{
    uint64_t best_ns = 0, farthest_ns = 0;

    for (uint64_t ns = 0; ns <= TP_KINETO_CHOICE_NS && ns < start_ns; ns += STEP_NS) {
        uint64_t far_ns = tick_distance(rhythm, from_ns, start_ns - ns);

        if (!tp_kineto_can_keep(rhythm, from_ns, start_ns - ns, warmup_ns))
            break;
        if (far_ns > farthest_ns) {
            farthest_ns = far_ns;
            best_ns = ns;
        }
        if (far_ns >= TP_KINETO_CHOICE_NS / 2)
            break;
    }
    return best_ns;
}

uint64_t tp_kineto_hold_until(const struct tp_kineto_rhythm *rhythm, uint64_t start_ns,
                              uint64_t warmup_ns)
{
    uint64_t n_intervals = rhythm->is_behind ? 3 : 2;
    uint64_t before_ns =
        tp_kineto_safe_start(n_intervals * rhythm->interval_ns, warmup_ns);

    return start_ns > before_ns ? start_ns - before_ns : 0;
}

/* Whether two distances differ by no more than a tenth. */
static bool is_about(uint64_t a_ns, uint64_t b_ns)
{
    uint64_t off_ns = a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns;

    return off_ns <= b_ns / 10;
}

void tp_kineto_rhythm_note(struct tp_kineto_rhythm *rhythm, uint64_t now_ns)
{
    uint64_t distance_ns = now_ns - rhythm->last_ns;
    uint64_t before_ns = rhythm->odd_ns;

    rhythm->last_ns = now_ns;
    if (distance_ns < INTERVAL_MIN_NS || distance_ns > INTERVAL_MAX_NS)
        return;
    rhythm->odd_ns = 0;
    if (is_about(distance_ns, rhythm->interval_ns))
        return;
    if (is_about(distance_ns, before_ns))
        rhythm->interval_ns = distance_ns;
    else
        rhythm->odd_ns = distance_ns;
}
