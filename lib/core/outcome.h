/*
 * outcome.h - how good a finished trace is, computed from its numbers alone.
 *
 * One pure function, so that the API, the download and the stored row cannot disagree.
 * It does not look at the life cycle: a failed trace has an outcome too, of what it
 * holds. Safe from any thread.
 */
#ifndef TP_CORE_OUTCOME_H
#define TP_CORE_OUTCOME_H

#include <stdint.h>

#include "base/str.h"
#include "core/counts.h"

/* From good to bad. Stored by name. */
enum tp_outcome {
    TP_OUTCOME_COMPLETE, /* every producer, every event */
    TP_OUTCOME_LOSSY,    /* every producer, but events were dropped */
    TP_OUTCOME_PARTIAL,  /* a producer is missing, or its data came too late */
    TP_OUTCOME_EMPTY,    /* nothing is stored */
    TP_OUTCOMES
};

/* Bits that say why; several can be true. */
enum tp_outcome_reason {
    TP_REASON_DROPPED = 1, /* events were dropped: see the causes */
    TP_REASON_MISSING = 2, /* a matched producer sent nothing and never said why */
    TP_REASON_LATE = 4,    /* a producer was not done when the deadline passed */
    TP_REASON_DAMAGED = 8, /* stored or collected data is damaged */
    TP_REASON_NO_PRODUCERS = 16,   /* nobody was asked or posted */
    TP_REASON_FILTERED = 32,       /* nothing is left of what came: filtered, or dropped
                                      if that is set, too */
    TP_REASON_NOTHING_EMITTED = 64 /* producers took part and recorded nothing */
};

/* Plain data: what the engine knows when a trace ends. */
struct tp_outcome_facts {
    struct tp_counts counts; /* of all streams together */
    uint64_t n_participants; /* producers that were matched, or posted */
    uint64_t n_missing;      /* of them: gave no data and no account */
    uint64_t n_late;         /* of them: gave some, but were not done in time */
    uint64_t n_damaged;      /* of them: data damaged beyond what was counted */
};

/*
 * Judge a trace. Nothing stored is EMPTY, whatever else; then missing, late or damaged
 * producers make it PARTIAL; then drops make it LOSSY.
 *
 * reasons  set to a bit set of enum tp_outcome_reason; may be NULL.
 */
enum tp_outcome tp_outcome_judge(const struct tp_outcome_facts *facts,
                                 unsigned *reasons);

/* The stable name: "complete", "lossy", "partial", "empty"; "unknown" otherwise. */
const char *tp_outcome_name(enum tp_outcome outcome);

/* The outcome of that name, or -1. */
int tp_outcome_find(struct tp_str name);

/* The stable name of one reason bit ("dropped", "missing", ...), else "unknown". */
const char *tp_outcome_reason_name(unsigned reason);

#endif
