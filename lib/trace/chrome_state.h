/*
 * chrome_state.h - what a Chrome reader remembers; private to chrome_*.c.
 *
 * The reader is three files over this state: chrome_doc.c is the grammar of a trace
 * document and the way back after damage, chrome_unit.c reads the values in it, whole
 * or in pieces, chrome_reader.c drives both. Not thread-safe.
 */
#ifndef TP_TRACE_CHROME_STATE_H
#define TP_TRACE_CHROME_STATE_H

#include "base/json_scan.h"
#include "trace/chrome_event.h"
#include "trace/chrome_reader.h"

/* Where in the document the reader is; drawn in chrome_doc.c. */
enum tp_chrome_place {
    TP_CHROME_START,       /* before the first value */
    TP_CHROME_EVENTS,      /* in the array: before an event */
    TP_CHROME_EVENTS_NEXT, /* in the array: behind an event */
    TP_CHROME_MEMBER,      /* in the object: before a key */
    TP_CHROME_COLON,
    TP_CHROME_VALUE,
    TP_CHROME_MEMBER_NEXT, /* in the object: behind a member */
    TP_CHROME_END,         /* behind the document */
    TP_CHROME_LINE,        /* NDJSON: before a line */
    TP_CHROME_LOST_EVENT,  /* damage: looking for the next event */
    TP_CHROME_LOST_MEMBER, /* damage: looking for the next key */
    TP_CHROME_PLACES
};

/* A run of text that is understood only as a whole. */
enum tp_chrome_unit {
    TP_CHROME_UNIT_NONE,
    TP_CHROME_UNIT_EVENT,   /* an object in the array */
    TP_CHROME_UNIT_ELEMENT, /* anything else in the array */
    TP_CHROME_UNIT_KEY,     /* of a top-level member */
    TP_CHROME_UNIT_VALUE,   /* of a top-level member */
    TP_CHROME_UNIT_SOLO,    /* a top-level object that may be one event */
    TP_CHROME_UNIT_LINE     /* of NDJSON, with its line feed */
};

/* Text at hand; offset is that of start in the whole input. */
struct tp_chrome_window {
    const char *start;
    const char *p; /* next byte */
    const char *end;
    uint64_t offset;
};

static inline uint64_t tp_chrome_offset(const struct tp_chrome_window *w, const char *p)
{
    return w->offset + (uint64_t)(p - w->start);
}

struct tp_chrome_reader {
    struct tp_chrome_reader_opts opts; /* with the defaults filled in */
    struct tp_chrome_stats stats;
    struct tp_chrome_members members;
    struct tp_chrome_tracks tracks;

    enum tp_chrome_place place;
    bool is_in_object;    /* the top-level value is an object */
    bool has_seen_events; /* the array of events was entered */
    bool is_sequence;     /* ... which is none: events without commas between them */
    bool has_handed_over; /* the first event is out: the base is decided */
    bool is_lost;         /* since damage, no member was whole again */
    int trail;            /* progress inside a LOST place or the byte order mark */
    uint64_t offset;      /* bytes taken in before the present window */
    uint64_t n_lines;     /* of NDJSON, behind us */

    enum tp_chrome_unit unit; /* one that is not whole yet */
    uint64_t unit_offset;     /* of its first byte */
    struct tp_json_edge edge;
    struct tp_buf carry;  /* what is there of it, from its first byte */
    bool is_padded;       /* its last byte is ours, so that a number has a delimiter */
    bool is_skipping;     /* over a limit: only its end matters */
    bool is_peeking;      /* SOLO whose first key is not known yet */
    struct tp_buf replay; /* text to be read once more, before new text */
    uint64_t replay_offset;

    struct tp_buf key; /* of the present top-level member, decoded */
    bool is_left_out;  /* ... over a limit */
    struct tp_buf json;
    size_t members_bytes;

    int failed; /* the final answer, once there is one */
    struct tp_err failure;
};

/* --- chrome_take.c --- */

#define TP_CHROME_KEEP_BYTES (256U << 10) /* larger buffers are released after use */

/* Count an event that is none, which starts at an offset. */
void tp_chrome_reject(struct tp_chrome_reader *r, uint64_t offset,
                      enum tp_chrome_reject cause, const char *why);

/* The unit at an offset is over a limit: count it and move on, as if it were over. */
void tp_chrome_leave_out(struct tp_chrome_reader *r, enum tp_chrome_unit unit,
                         uint64_t offset, enum tp_chrome_reject cause, const char *why);

/*
 * Act on a unit that was scanned and move on.
 *
 * text      all of it; EVENT and SOLO are in r->members instead.
 * oddities  what tp_json_skip() found in a VALUE.
 *
 * Errors are those of tp_chrome_reader_feed(), and final.
 */
int tp_chrome_take_unit(struct tp_chrome_reader *r, enum tp_chrome_unit unit,
                        struct tp_str text, uint64_t offset, unsigned oddities,
                        struct tp_err *err);

/* --- chrome_unit.c --- */

/*
 * Read the unit that starts at w->p: at once if it is all there, otherwise what is
 * there goes to r->carry and w is used up.
 *
 * Errors are those of tp_chrome_reader_feed(), and final.
 */
int tp_chrome_unit_begin(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                         enum tp_chrome_unit unit, struct tp_err *err);

/* Go on with r->unit, which is not NONE. Text to read once more may be in r->replay
 * afterwards. Errors as above. */
int tp_chrome_unit_resume(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                          struct tp_err *err);

/* The input ends inside r->unit, which is not NONE; as tp_chrome_unit_resume(). */
int tp_chrome_unit_finish(struct tp_chrome_reader *r, struct tp_err *err);

/* --- chrome_doc.c --- */

/* Move on by a unit or some punctuation; w is not empty and r->unit is NONE. Errors as
 * above. */
int tp_chrome_doc_step(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                       struct tp_err *err);

/* Check that the document may end here, where r->unit is NONE. Errors as above. */
int tp_chrome_doc_finish(struct tp_chrome_reader *r, struct tp_err *err);

/*
 * There is damage at an offset: fail, or when salvaging note it and choose the place
 * that looks for the way back.
 *
 * unit  what was being read; NONE: punctuation.
 */
int tp_chrome_doc_damage(struct tp_chrome_reader *r, enum tp_chrome_unit unit,
                         uint64_t offset, const char *why, struct tp_err *err);

/* The input ended inside a value that starts at an offset: fail or note it. */
int tp_chrome_doc_truncated(struct tp_chrome_reader *r, uint64_t offset,
                            struct tp_err *err);

/* Whether a top-level object that starts at p looks like an event by its first key. */
enum tp_chrome_guess { TP_CHROME_NO, TP_CHROME_YES, TP_CHROME_MORE };
enum tp_chrome_guess tp_chrome_doc_guess(const char *p, const char *end);

#define TP_CHROME_GUESS_BYTES \
    256 /* the first key ends within these, or it is no event */

#endif
