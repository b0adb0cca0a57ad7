/*
 * pf_encode.h - the bytes of one event, once everything it refers to has a number.
 *
 * Private to pf_writer: it looks nothing up and cannot fail. Room is computed first,
 * then written to. One thread at a time on memory of its own.
 */
#ifndef TP_TRACE_PF_ENCODE_H
#define TP_TRACE_PF_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"
#include "trace/intern.h"

/* The three kinds of interned strings. */
enum tp_pf_string_kind {
    TP_PF_CATEGORY,
    TP_PF_NAME,
    TP_PF_ARG_KEY,
    TP_PF_STRING_KINDS
};

/* Which packet of an event is written. */
enum tp_pf_form {
    TP_PF_FORM_PUBLIC,  /* a track event */
    TP_PF_FORM_PRIVATE, /* a private event: everything, for us only */
    TP_PF_FORM_GHOST    /* a private event: only track and time */
};

/* What the event refers to, by number. Plain data. */
struct tp_pf_plan {
    enum tp_pf_form form;
    uint32_t sequence_id;
    uint32_t stream_no;
    uint32_t name_iid;        /* 0: inline or absent */
    uint32_t cat_iid;         /* likewise */
    const uint32_t *key_iids; /* one an argument */
    bool has_args;            /* false: the arguments are elsewhere (counters) */
    struct tp_str wire_args;  /* arguments that are in their final form already */
    uint64_t track_uuid;
    /* Of counter events: */
    uint32_t n_series;          /* packets in all; 0: not a counter event */
    uint64_t own_track;         /* uuid of the event's track; 0: that of the series */
    const struct tp_arg *value; /* of the packet at hand */
};

/* New interned strings that go along with a packet: of each kind those with numbers
 * from first to last. */
struct tp_pf_new_strings {
    const struct tp_intern *tables[TP_PF_STRING_KINDS];
    uint32_t first[TP_PF_STRING_KINDS];
    uint32_t last[TP_PF_STRING_KINDS];
};

/* The phases that Chrome's format has for each kind; others are kept as a field. */
extern const char tp_pf_usual_phase[TP_EVENT_KINDS];

/*
 * The id of an asynchronous event that has "id2" in place of an id: the text of that
 * member, which stays in the event's extra members.
 *
 * id2  borrowed from the event. is_local  whether it counts in the event's
 * process only. Both are set when it returns true.
 */
bool tp_pf_id2(const struct tp_event *ev, struct tp_str *id2, bool *is_local);

/* The most bytes that the strings take in a packet. */
size_t tp_pf_new_strings_room(const struct tp_pf_new_strings *s);

/* The most bytes of the packet that carries ev itself, without new strings. */
size_t tp_pf_event_room(const struct tp_event *ev);

#define TP_PF_MARK_ROOM 96 /* most bytes of an end or of a further counter packet */

/*
 * Write the packet of ev. Returns its end.
 *
 * room  what tp_pf_event_room() and tp_pf_new_strings_room() said together; below 2^28.
 * news  NULL: no new strings.
 */
char *tp_pf_put_event(char *p, size_t room, const struct tp_event *ev,
                      const struct tp_pf_plan *plan,
                      const struct tp_pf_new_strings *news);

/*
 * Write a packet that has nothing but strings. Returns its end.
 *
 * room  what tp_pf_new_strings_room() said; below 2^28. The packet takes up to
 *       TP_PF_MARK_ROOM more.
 */
char *tp_pf_put_names(char *p, size_t room, uint32_t sequence_id,
                      const struct tp_pf_new_strings *news);

/* Write the packet that ends a slice on a track. */
char *tp_pf_put_slice_end(char *p, uint32_t sequence_id, uint64_t track_uuid,
                          uint64_t ts_ns);

/* Write the packet of one more series of a counter event. */
char *tp_pf_put_series(char *p, uint32_t sequence_id, uint64_t series_uuid,
                       uint64_t ts_ns, const struct tp_arg *value);

#endif
