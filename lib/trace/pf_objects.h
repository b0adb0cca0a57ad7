/*
 * pf_objects.h - what tp_pf_writer has met besides strings: tracks, counter series and,
 * in a log, processes.
 *
 * Private to pf_writer. Objects are numbered from 1 in order of first appearance, so
 * that "not described yet" is a range of numbers. One thread at a time.
 */
#ifndef TP_TRACE_PF_OBJECTS_H
#define TP_TRACE_PF_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "trace/event.h"
#include "trace/intern.h"
#include "trace/pf_descriptor.h"

struct tp_err;

/* One object; texts are in the table's arena. */
struct tp_pf_object {
    enum tp_pf_track_kind kind;
    uint64_t uuid;
    uint64_t parent_uuid;  /* of tracks and series in a log: the process */
    struct tp_track track; /* of a series: that of the event that it was met in */
    uint64_t track_uuid;   /* of a series: that of `track` */
    struct tp_str counter; /* of a series: the event's name, with its id */
    struct tp_str cat;     /* of a series: that of the event that it was met in */
    struct tp_str series;
    struct tp_str shown; /* of a series: what viewers see */
};

/* Embed it; set the first two fields. The others are private but for the reading of
 * items[number - 1], numbers.n and n_series. */
struct tp_pf_objects {
    uint32_t stream_no;
    bool is_sealed;
    struct tp_intern numbers; /* of keys that hold all that identifies an object */
    struct tp_intern uuids;   /* of a log: those given out, to resolve collisions */
    struct tp_pf_object *items;
    size_t cap;
    uint32_t n_series;
    struct tp_buf key;
    struct tp_arena arena;
    uint32_t *by_index; /* of a log: track->index -> number, lane 0 only; 0 = none */
    size_t n_by_index;
};

/* Release all memory. All-zero is allowed. */
void tp_pf_objects_fini(struct tp_pf_objects *o);

/* Forget all objects; memory is kept for reuse. */
void tp_pf_objects_reset(struct tp_pf_objects *o);

/*
 * The uuid of a track; in a log it is an object from then on.
 *
 * TP_EQUOTA  a limit of pf_writer.h. TP_ENOMEM. Nothing is lost that was there.
 */
int tp_pf_objects_track(struct tp_pf_objects *o, const struct tp_track *track,
                        uint64_t *uuid, struct tp_err *err);

/*
 * The object of the series `key` of a counter event.
 *
 * own_track  the uuid of ev->track.
 * number     its number, or 0: there is no room for one more series.
 *
 * TP_EQUOTA, TP_ENOMEM  as above.
 */
int tp_pf_objects_series(struct tp_pf_objects *o, const struct tp_event *ev,
                         uint64_t own_track, struct tp_str key, uint32_t *number,
                         struct tp_err *err);

/* What a log says of an object; borrows from the table. */
struct tp_pf_descriptor tp_pf_objects_describe(const struct tp_pf_object *object);

#endif
