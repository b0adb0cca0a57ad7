/*
 * tell.h - how long before the common start producers have to be told of it.
 *
 * A start that all keep lies so far ahead that the last of them has heard of it by
 * then, and no further. How far that is depends on how many there are and on how fast
 * this service tells them, which is measured with each start. It decides nothing else.
 * The caller holds the control lock.
 */
#ifndef TP_ENGINE_TELL_H
#define TP_ENGINE_TELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/now.h"

struct tp_member;
struct tp_trace;

/* What earlier starts have shown, for each producer. Zero: nothing yet. */
struct tp_tell_speed {
    uint64_t first_ns; /* from the decision until the first is told */
    uint64_t next_ns;  /* from one to the next */
};

/* One start on its way. */
struct tp_telling {
    size_t n_due;        /* who has to be told */
    size_t n_told;       /* who has been */
    uint64_t decided_ns; /* monotonic: when the start was decided; 0 = by the first */
    uint64_t first_ns;   /* monotonic: when the first was told */
    uint64_t last_ns;    /* monotonic: when the last one so far was */
};

/* A start is decided now: how much later it may be, by the clocks of those who wait for
 * it and by how many they are. 0 when nobody does. In nanoseconds. */
uint64_t tp_tell_plan(struct tp_trace *t, struct tp_now now);

/* A member is being told of the start: it may have begun from now on. The first who is
 * told when it is too late for the others puts the start off. */
void tp_tell_start(struct tp_member *m, struct tp_now now);

/* Whether some of those who are to be told have not been, and it looks as if they were
 * about to be: it is before the start, and somebody else has been just now. */
bool tp_tell_is_going_on(const struct tp_trace *t, struct tp_now now);

#endif
