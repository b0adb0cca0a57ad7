/*
 * events.h - random events, and the comparison of events, for tests of trace formats.
 *
 * A generator is seeded, so that a failure can be had again. Its events point into its
 * own memory and live until the next one; tracks live as long as the generator.
 */
#ifndef TP_SUPPORT_EVENTS_H
#define TP_SUPPORT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"

#define EVENTS_TRACKS 24
#define EVENTS_ARGS_MAX 12
#define EVENTS_TEXT_BYTES 65536

/* Plain data; the seed and the tracks are set by events_init(). */
struct events {
    uint64_t random;
    struct tp_track tracks[EVENTS_TRACKS];
    struct tp_arg args[EVENTS_ARGS_MAX];
    char text[EVENTS_TEXT_BYTES];
    uint32_t used;
};

/* Start a generator. */
void events_init(struct events *g, uint64_t seed);

/* A number below n, n > 0. */
uint64_t events_random(struct events *g, uint64_t n);

/* Make *ev a random event of a random kind with any field present or absent. */
void events_next(struct events *g, struct tp_event *ev);

/*
 * Whether two events say the same: all but iid and track index. Otherwise *why names
 * the field that differs.
 */
bool events_equal(const struct tp_event *a, const struct tp_event *b, const char **why);

#endif
