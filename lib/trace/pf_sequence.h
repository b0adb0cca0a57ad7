/*
 * pf_sequence.h - what a reader remembers of each writer sequence of a Perfetto trace:
 * interned strings, defaults and clocks.
 *
 * Private to pf_reader. Interned strings are numbered by their writer anew in each
 * sequence and after each "state cleared"; here each distinct string gets one number
 * for the life of the reader, as far as there is room. One thread at a time.
 */
#ifndef TP_TRACE_PF_SEQUENCE_H
#define TP_TRACE_PF_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"
#include "trace/intern.h"

struct tp_err;

/* The indexes that interned strings come in. */
enum tp_pf_index {
    TP_PF_INDEX_CATEGORY,
    TP_PF_INDEX_NAME,
    TP_PF_INDEX_ARG_NAME,
    TP_PF_INDEX_ARG_STRING,
    TP_PF_INDEXES
};

/* A clock of one sequence (ids 64 to 127), in nanoseconds. */
struct tp_pf_clock {
    uint32_t id;
    bool is_incremental;
    uint64_t multiplier;
    uint64_t last;  /* of an incremental one */
    uint64_t shift; /* what to add for the trace clock, modulo 2^64 */
};

struct tp_pf_sequence {
    uint32_t id;
    bool is_ours;   /* its events follow our private fields */
    bool is_merged; /* of a download of several streams, which it numbers by its id */
    bool has_default_track;
    uint64_t default_track;
    uint32_t default_clock;               /* 0: the trace's */
    struct tp_name *texts[TP_PF_INDEXES]; /* by the writer's iid - 1; ptr NULL = none */
    uint32_t n_texts[TP_PF_INDEXES];
    uint32_t cap_texts[TP_PF_INDEXES];
    struct tp_arena arena; /* strings that found no place in the common table */
    size_t arena_bytes;
    struct tp_pf_clock *clocks;
    uint32_t n_clocks;
};

/* All sequences of a reader. Embed it; set the limits. Fields are private. */
struct tp_pf_sequences {
    uint32_t sequences_max;
    size_t bytes_max; /* of strings and their tables, all together */
    size_t used_bytes;
    struct tp_intern texts; /* the common table */
    struct tp_pf_sequence **items;
    uint32_t n_items, cap_items;
    uint32_t *slots;
    uint32_t n_slots;
    struct tp_pf_sequence *last; /* found last */
};

/* Release all memory. All-zero is allowed. */
void tp_pf_sequences_fini(struct tp_pf_sequences *s);

/*
 * The sequence with an id, made when it is new; it lives as long as s.
 *
 * TP_EQUOTA  over sequences_max. TP_ENOMEM. Nothing changed.
 */
int tp_pf_sequences_get(struct tp_pf_sequences *s, uint32_t id,
                        struct tp_pf_sequence **out, struct tp_err *err);

/* Forget what "incremental state cleared" ends: strings and defaults. */
void tp_pf_sequence_clear(struct tp_pf_sequences *s, struct tp_pf_sequence *q);

/*
 * Add an interned string; one of the same iid is replaced.
 *
 * iid   from 1; one that is far beyond those before it is left out.
 * text  valid UTF-8; copied.
 *
 * TP_EQUOTA  over bytes_max. TP_ENOMEM. Nothing changed.
 */
int tp_pf_sequence_intern(struct tp_pf_sequences *s, struct tp_pf_sequence *q,
                          enum tp_pf_index index, uint64_t iid, struct tp_str text,
                          struct tp_err *err);

/* The interned string of an iid; its ptr is NULL when there is none. */
static inline struct tp_name tp_pf_sequence_text(const struct tp_pf_sequence *q,
                                                 enum tp_pf_index index, uint64_t iid)
{
    if (iid - 1 < q->n_texts[index])
        return q->texts[index][iid - 1];
    return (struct tp_name){NULL, 0, 0};
}

/*
 * The number of a string in the common table, for names that are not in a sequence.
 *
 * out  the copy with its iid, or the text itself with iid 0 when there is no room.
 *
 * TP_ENOMEM  nothing changed.
 */
int tp_pf_sequences_name(struct tp_pf_sequences *s, struct tp_str text,
                         struct tp_name *out, struct tp_err *err);

#endif
