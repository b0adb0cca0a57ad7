/*
 * chrome_track.h - the (pid, tid) pairs that a reader has met, each with a number.
 *
 * A hash table with a random key, since producers choose the ids, and in front of it
 * some tracks of recent events, one of which is the right one nearly always. Tracks
 * never move. Not thread-safe.
 */
#ifndef TP_TRACE_CHROME_TRACK_H
#define TP_TRACE_CHROME_TRACK_H

#include "base/err.h"
#include "trace/event.h"

#define TP_CHROME_TRACK_TEXT_BYTES (64U << 20) /* most bytes of ids that are text */
#define TP_CHROME_RECENT_TRACKS 16             /* a power of two */

/* Embed it; start with tp_chrome_tracks_init(). All fields are private. */
struct tp_chrome_tracks {
    struct tp_track **slots;  /* n_slots places, NULL = empty */
    struct tp_track **blocks; /* arrays of tracks, by index */
    const struct tp_track *recent[TP_CHROME_RECENT_TRACKS]; /* by tp_chrome_recent() */
    size_t n_slots;                                         /* 0 or a power of two */
    size_t n_blocks;
    size_t text_bytes;
    uint32_t n_tracks;
    uint32_t tracks_max;
    uint64_t key;
};

/* Make an empty table. tracks_max is the most tracks, at least 1. */
void tp_chrome_tracks_init(struct tp_chrome_tracks *t, uint32_t tracks_max);

/* Release all tracks. All-zero is allowed. */
void tp_chrome_tracks_fini(struct tp_chrome_tracks *t);

/* Forget all tracks, as if new. */
void tp_chrome_tracks_reset(struct tp_chrome_tracks *t);

/* The slow path of tp_chrome_tracks_get(). */
int tp_chrome_tracks_find(struct tp_chrome_tracks *t, const struct tp_id *pid,
                          const struct tp_id *tid, const struct tp_track **out,
                          struct tp_err *err);

/* Whether two ids are the same; the unused members of an id do not count. */
static inline bool tp_chrome_id_equal(const struct tp_id *a, const struct tp_id *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == TP_ID_NUMBER)
        return a->number == b->number;
    return a->kind == TP_ID_NONE || tp_str_equal(a->text, b->text);
}

/* The place in `recent` of a pair; those of text and without ids share one. */
static inline unsigned tp_chrome_recent(const struct tp_id *pid,
                                        const struct tp_id *tid)
{
    uint64_t h = 0;

    if (tid->kind == TP_ID_NUMBER)
        h = (uint64_t)tid->number;
    if (pid->kind == TP_ID_NUMBER)
        h += (uint64_t)pid->number * 5;
    return (unsigned)((h ^ h >> 4) % TP_CHROME_RECENT_TRACKS);
}

/*
 * The track of (pid, tid), made when it is new; texts are copied then.
 *
 * TP_EQUOTA  it is new and there are tracks_max already, or the texts are over
 *            TP_CHROME_TRACK_TEXT_BYTES. TP_ENOMEM. The table is as before.
 */
static inline int tp_chrome_tracks_get(struct tp_chrome_tracks *t,
                                       const struct tp_id *pid, const struct tp_id *tid,
                                       const struct tp_track **out, struct tp_err *err)
{
    const struct tp_track *recent = t->recent[tp_chrome_recent(pid, tid)];

    if (recent != NULL && tp_chrome_id_equal(&recent->tid, tid) &&
        tp_chrome_id_equal(&recent->pid, pid)) {
        *out = recent;
        return TP_OK;
    }
    return tp_chrome_tracks_find(t, pid, tid, out, err);
}

#endif
