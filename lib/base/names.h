/*
 * names.h - "did you mean": the names nearest to one that is unknown.
 *
 * Distances are of Damerau and Levenshtein (optimal string alignment) over bytes,
 * letters compared without case. Keeps borrowed pointers only; not thread-safe per
 * object.
 */
#ifndef TP_BASE_NAMES_H
#define TP_BASE_NAMES_H

#include <stddef.h>

#include "base/str.h"

#define TP_NAMES_NEAREST 3        /* most suggestions */
#define TP_NAMES_COMPARE_BYTES 64 /* longer names are compared by their first bytes */

/* Plain data; start with tp_names_init(). Nearest first, equal ones as offered. */
struct tp_names_nearest {
    struct tp_str wanted; /* borrowed */
    size_t n;             /* valid places of found */
    struct {
        struct tp_str name; /* borrowed from the caller of tp_names_offer() */
        unsigned distance;
    } found[TP_NAMES_NEAREST];
};

/* Start a search for names near `wanted`, which must outlive it. */
void tp_names_init(struct tp_names_nearest *near, struct tp_str wanted);

/*
 * Offer a known name. It is kept if it is near enough to be a slip (a distance of at
 * most a third of the longer name, at least 2) or holds `wanted` as its last part
 * behind a `.`, and among the nearest so far. The bytes must outlive the search.
 */
void tp_names_offer(struct tp_names_nearest *near, struct tp_str name);

/* The distance of two names, 0 when equal without case; at most the longer length. */
unsigned tp_names_distance(struct tp_str a, struct tp_str b);

#endif
