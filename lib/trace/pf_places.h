/*
 * pf_places.h - what the uuids of a Perfetto trace stand for: tracks and counters.
 *
 * Private to pf_reader. It owns the struct tp_track objects that events point to.
 * Bounded by a number of tracks and, for their texts, of bytes. One thread at a time.
 */
#ifndef TP_TRACE_PF_PLACES_H
#define TP_TRACE_PF_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"
#include "trace/intern.h"

struct tp_err;

/* One uuid. Texts are in the arena of the table. */
struct tp_pf_place {
    uint64_t uuid;
    const struct tp_track *track; /* NULL: to be found out at the first event */
    bool is_known;                /* there was a descriptor */
    bool is_ours;                 /* ... of our own writer */
    bool is_counter;
    bool has_pid, has_tid; /* of others: a process or thread track */
    bool is_incremental;   /* of a counter: values are steps */
    int64_t pid, tid;
    uint64_t parent_uuid;
    struct tp_name name; /* of others: the track's; of our series: the argument's */
    int64_t multiplier;  /* of a counter of others; 0 is 1 */
    double last;         /* of an incremental counter: the sum so far */
    uint64_t told;       /* hash of the name that a metadata event has told */
};

struct tp_pf_track_node;

/* Embed it; set the two limits. All fields are private. */
struct tp_pf_places {
    uint32_t tracks_max;
    size_t text_bytes_max;
    struct tp_pf_place *places; /* places[0] is not used */
    uint32_t n_places;
    uint32_t cap_places;
    uint32_t *slots; /* hash table of numbers of places; 0 = free */
    uint32_t n_slots;
    struct tp_intern ids; /* of (pid, tid); number - 1 is the track's index */
    struct tp_pf_track_node **tracks; /* by index: lists of lanes */
    size_t cap_tracks;
    uint32_t n_nodes;
    struct tp_arena arena;
    size_t text_bytes;
};

/* Release all memory, tracks included. All-zero is allowed. */
void tp_pf_places_fini(struct tp_pf_places *t);

/* The place of a uuid, or NULL. Lives until the next place is added. */
struct tp_pf_place *tp_pf_places_find(const struct tp_pf_places *t, uint64_t uuid);

/*
 * The place of a uuid, added when it is new.
 *
 * out  as tp_pf_places_find().
 *
 * TP_EQUOTA  over tracks_max. TP_ENOMEM. Nothing changed.
 */
int tp_pf_places_add(struct tp_pf_places *t, uint64_t uuid, struct tp_pf_place **out,
                     struct tp_err *err);

/*
 * The track of (pid, tid) and lane, made when it is new; it lives as long as t.
 *
 * TP_EQUOTA  a limit. TP_ENOMEM. Nothing changed.
 */
int tp_pf_places_track(struct tp_pf_places *t, const struct tp_id *pid,
                       const struct tp_id *tid, uint32_t lane,
                       const struct tp_track **out, struct tp_err *err);

/*
 * Copy a text for as long as t lives.
 *
 * TP_EQUOTA  over text_bytes_max. TP_ENOMEM. Nothing changed.
 */
int tp_pf_places_text(struct tp_pf_places *t, struct tp_str s, struct tp_str *out,
                      struct tp_err *err);

/*
 * The track that events with this uuid are on, in a trace of others: threads by their
 * numbers, named tracks as threads with that name in the process of their ancestors,
 * a uuid that was never described as the text "track <uuid>", 0 as no process at all.
 *
 * TP_EQUOTA, TP_ENOMEM  as above.
 */
int tp_pf_places_resolve(struct tp_pf_places *t, uint64_t uuid,
                         const struct tp_track **out, struct tp_err *err);

#endif
