#include "kineto/schedule.h"

#define SLACK_NS (TP_KINETO_SECOND_NS / 5)
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

uint64_t tp_kineto_safe_start(uint64_t served_ns, uint64_t warmup_ns)
{
    return served_ns + warmup_ns + TP_KINETO_MARGIN_NS;
}

uint64_t tp_kineto_common_start(const struct tp_kineto_rhythm *rhythms, size_t n,
                                uint64_t from_ns, uint64_t warmup_ns)
{
    uint64_t latest_ns = from_ns;

    for (size_t i = 0; i < n; i++) {
        uint64_t poll_ns = tp_kineto_next_poll(&rhythms[i], from_ns);

        latest_ns = poll_ns > latest_ns ? poll_ns : latest_ns;
    }
    return tp_kineto_safe_start(latest_ns, warmup_ns);
}

uint64_t tp_kineto_serve_until(uint64_t start_ns, uint64_t warmup_ns)
{
    uint64_t before_ns = warmup_ns + TP_KINETO_TICK_NS + SLACK_NS;

    return start_ns > before_ns ? start_ns - before_ns : 0;
}

void tp_kineto_rhythm_note(struct tp_kineto_rhythm *rhythm, uint64_t now_ns)
{
    uint64_t distance_ns = now_ns - rhythm->last_ns;
    uint64_t off_ns = distance_ns > rhythm->interval_ns
                          ? distance_ns - rhythm->interval_ns
                          : rhythm->interval_ns - distance_ns;

    rhythm->last_ns = now_ns;
    if (distance_ns < INTERVAL_MIN_NS || distance_ns > INTERVAL_MAX_NS)
        return;
    if (off_ns > rhythm->interval_ns / 10)
        rhythm->interval_ns = distance_ns;
}
