/*
 * schedule.h - when a Kineto process can start at the earliest, in numbers.
 *
 * A process asks every few seconds, and what it is told takes effect at a tick of its
 * own, once a second, if the warm-up still fits before the start; else it drops the
 * request without a word. Kineto's source and experiments give: safe is a start that is
 * the warm-up and two seconds after the answer. Reads no clock. All times are
 * nanoseconds of CLOCK_MONOTONIC. Pure functions; safe from any thread.
 */
#ifndef TP_KINETO_SCHEDULE_H
#define TP_KINETO_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TP_KINETO_SECOND_NS UINT64_C(1000000000)
#define TP_KINETO_POLL_NS (5 * TP_KINETO_SECOND_NS) /* how often a process asks */
#define TP_KINETO_MARGIN_NS (2 * TP_KINETO_SECOND_NS)
#define TP_KINETO_TICK_NS TP_KINETO_SECOND_NS
#define TP_KINETO_CHOICE_NS (TP_KINETO_SECOND_NS * 2 / 5)
#define TP_KINETO_WARMUP_MAX_S 600u

/* Plain data: how a process asks. */
struct tp_kineto_rhythm {
    uint64_t last_ns;     /* its last request */
    uint64_t interval_ns; /* between two of them; not 0 */
    uint64_t tick_ns;     /* one of its ticks; 0 = they begin with its first answer */
    uint64_t odd_ns;      /* the last distance, when it was another and not believed */
    bool is_behind; /* it reads an old answer at its next request, and no new one */
};

/*
 * The first request that is expected at `from_ns` or later. One that is overdue by up
 * to an interval is expected an interval after the time it should have come.
 */
uint64_t tp_kineto_next_poll(const struct tp_kineto_rhythm *rhythm, uint64_t from_ns);

/* Likewise the first request whose answer it reads at once: of one that is behind, the
 * second at the earliest. */
uint64_t tp_kineto_next_answer(const struct tp_kineto_rhythm *rhythm, uint64_t from_ns);

/* The earliest start of a process that is answered at served_ns. */
uint64_t tp_kineto_safe_start(uint64_t served_ns, uint64_t warmup_ns);

/*
 * A start that all of n processes can keep: at most tp_kineto_safe_start() of the one
 * that is answered last, and up to TP_KINETO_CHOICE_NS before.
 *
 * A tick a moment before "start less warm-up less one second" finds it too soon to
 * begin, and the next one, if it is a moment late, too late: the request is dropped.
 * So of the starts that are possible, that is taken which is farthest from such ticks.
 *
 * rhythms  n of them; none gives the start of one that is answered at from_ns.
 * from_ns  no answer can be given before.
 */
uint64_t tp_kineto_common_start(const struct tp_kineto_rhythm *rhythms, size_t n,
                                uint64_t from_ns, uint64_t warmup_ns);

/*
 * Whether a process can be told of a start at the next request whose answer it reads at
 * once, also when that comes a fifth of a second after it is expected.
 *
 * from_ns  no answer can be given before.
 */
bool tp_kineto_can_keep(const struct tp_kineto_rhythm *rhythm, uint64_t from_ns,
                        uint64_t start_ns, uint64_t warmup_ns);

/*
 * How much sooner a process should begin than at start_ns, which somebody has chosen,
 * to be away from such ticks: 0 to TP_KINETO_CHOICE_NS. It is never so much that it
 * could not be kept; then it is as far from a tick as can be.
 *
 * from_ns  no answer can be given before.
 */
uint64_t tp_kineto_sooner(const struct tp_kineto_rhythm *rhythm, uint64_t from_ns,
                          uint64_t start_ns, uint64_t warmup_ns);

/*
 * The latest moment to answer a process that is to start at start_ns: the warm-up, one
 * tick, and a fifth of a second for the tick to be late. 0 when there is none.
 */
uint64_t tp_kineto_serve_until(uint64_t start_ns, uint64_t warmup_ns);

/*
 * The moment from which on a process that is to start at start_ns may be told so: the
 * safe time and two of its intervals before, so that one request may be missed, and one
 * more if it is behind. What it was told nobody can take back, and it takes nothing
 * else meanwhile.
 */
uint64_t tp_kineto_hold_until(const struct tp_kineto_rhythm *rhythm, uint64_t start_ns,
                              uint64_t warmup_ns);

/*
 * Learn the interval from one more request.
 *
 * now_ns  of the request, not before rhythm->last_ns.
 *
 * Distances below half a second (a repeated request) or above a minute (one that was
 * away) teach nothing; others are believed when they differ by more than a tenth. One
 * that is longer is believed when it comes twice: a process that once missed a request
 * goes on as before, and a start is not planned beyond that.
 */
void tp_kineto_rhythm_note(struct tp_kineto_rhythm *rhythm, uint64_t now_ns);

#endif
