/*
 * track_pages.h - copies of a reader's tracks, found by their number.
 *
 * The copies never move, so that events and writers may point to them. They borrow the
 * texts of the reader, which outlives them. One thread at a time.
 */
#ifndef TP_TRACE_TRACK_PAGES_H
#define TP_TRACE_TRACK_PAGES_H

#include <stddef.h>

#include "base/err.h"
#include "trace/event.h"

#define TP_TRACK_PAGE 256 /* tracks of one page */

/* Embed it; the zero value is valid and empty. Fields are private but n_max. */
struct tp_track_pages {
    struct tp_track **pages; /* of TP_TRACK_PAGE tracks each, or NULL */
    size_t n_pages;
    uint32_t n_max; /* one past the highest number seen of a reader */
};

/* Release the copies. All-zero is allowed. */
void tp_track_pages_fini(struct tp_track_pages *t);

/* The slow path of tp_track_pages_get(): make the copy. */
int tp_track_pages_add(struct tp_track_pages *t, const struct tp_track *track,
                       uint32_t shift, const struct tp_track **out, struct tp_err *err);

/* The copy of the reader's track with this number, or NULL. */
static inline struct tp_track *tp_track_pages_find(const struct tp_track_pages *t,
                                                   uint32_t number)
{
    struct tp_track *page;

    if (number >= t->n_max)
        return NULL;
    page = t->pages[number / TP_TRACK_PAGE];
    if (page == NULL || page[number % TP_TRACK_PAGE].lane == UINT32_MAX)
        return NULL;
    return &page[number % TP_TRACK_PAGE];
}

/*
 * The copy of a track, made when it is new: its index is that of the reader plus shift,
 * its lane is 0.
 *
 * shift  the same in all calls.
 *
 * TP_ENOMEM  nothing changed.
 */
static inline int tp_track_pages_get(struct tp_track_pages *t,
                                     const struct tp_track *track, uint32_t shift,
                                     const struct tp_track **out, struct tp_err *err)
{
    const struct tp_track *found = tp_track_pages_find(t, track->index);

    if (found == NULL)
        return tp_track_pages_add(t, track, shift, out, err);
    *out = found;
    return TP_OK;
}

#endif
