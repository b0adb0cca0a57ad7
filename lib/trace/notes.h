/*
 * notes.h - what a stream's log says about its source besides events.
 *
 * Top-level members of a source file, its time base and its damage travel in the log as
 * metadata events with names of ours, so that they are as durable as the events, and
 * leave it for the index when the stream is sealed. They are not counted as events.
 * Nobody gains by forging one: it only spoils the forger's own stream. Pure functions.
 */
#ifndef TP_TRACE_NOTES_H
#define TP_TRACE_NOTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "trace/event.h"

enum tp_note_kind { TP_NOTE_NONE, TP_NOTE_MEMBER, TP_NOTE_BASE, TP_NOTE_DAMAGE };

#define TP_NOTE_OFFSETS_MAX 16

/* A note; plain data. Texts are borrowed from the event it was read from. */
struct tp_note {
    enum tp_note_kind kind;
    struct tp_str key, json; /* of MEMBER: its name and value as JSON text */
    int64_t base_ns;         /* of BASE */
    uint64_t damages;        /* of DAMAGE: places */
    bool is_truncated;
    uint64_t members_left_out;
    uint64_t offsets[TP_NOTE_OFFSETS_MAX]; /* the first of the places, in bytes */
    uint32_t n_offsets;
};

#define TP_NOTE_ARGS_MAX 4

/* Room for the event of a note; zero it once, release `text` at the end. */
struct tp_note_event {
    struct tp_event ev;
    struct tp_arg args[TP_NOTE_ARGS_MAX];
    struct tp_buf text;
};

/*
 * Make the metadata event that carries a note.
 *
 * note   not of kind NONE; its texts must outlive the event.
 * track  whatever track; it means nothing.
 * out    out->ev is the event, valid until the next call.
 *
 * TP_ENOMEM  the event is not to be used.
 */
int tp_note_write(const struct tp_note *note, const struct tp_track *track,
                  struct tp_note_event *out, struct tp_err *err);

/* Read an event as a note. Returns false, and out untouched, when it is none. One that
 * has a name of ours but not the form gives kind NONE. */
bool tp_note_read(const struct tp_event *ev, struct tp_note *out);

#endif
