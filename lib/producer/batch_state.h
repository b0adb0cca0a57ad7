/*
 * batch_state.h - the fields of a batch writer, for the files that make it up, and how
 * they say what an event needs.
 *
 *     batch.c         life, the table of what was said, room for a record
 *     batch_tracks.c  processes, threads, devices, counter series
 *     batch_events.c  records
 *     batch_run.c     records, when all that they need was said
 *
 * What every event asks for is inline, and what a batch says once is not. Private to
 * batch; one thread at a time.
 */
#ifndef TP_PRODUCER_BATCH_STATE_H
#define TP_PRODUCER_BATCH_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/pb.h"
#include "base/str.h"
#include "core/activity.h"
#include "producer/batch.h"
#include "producer/device_tracks.h"
#include "producer/texts.h"
#include "producer/ticks.h"
#include "trace/pf_fields.h"

/* When a text was last said, as what, and under which number. */
struct tp_batch_said {
    uint32_t name_batch, name_iid;
    uint32_t key_batch, key_iid;
    uint32_t series_batch;
};

/* Up to eight bytes that are written as they are. */
struct tp_batch_snippet {
    uint64_t bytes;
    unsigned n;
};

/* A field with a text of up to so many bytes has a length of one byte. */
#define TP_BATCH_SHORT_TEXT_MAX 99u

/* What packets of one kind have in common while the upper bits of their times are the
 * same; see batch_run.c. */
struct tp_batch_opening {
    char bytes[24];
    unsigned n;
    unsigned at_event; /* its length is before it, two bytes */
};

struct tp_batch_writer {
    uint32_t number; /* of this batch; from 1 */
    uint32_t stream_no;
    uint32_t n_names, n_keys;                 /* numbers given so far */
    uint32_t n_metas;                         /* metadata events in the batch */
    uint32_t trace;                           /* counts the traces; from 1 */
    uint32_t thread_name, process_name, name; /* the texts that metadata needs */
    uint32_t value;                           /* that of a counter is an argument's */
    uint32_t last_own_text;                   /* the largest of them */
    const struct tp_registry *registry;
    struct tp_ticks_line line;
    uint64_t slice_ticks_max; /* their product with line.mult has 63 bits */
    int64_t pid;
    struct tp_batch_thread thread;
    bool is_thread_said;
    uint64_t thread_uuid;
    struct tp_batch_snippet thread_track; /* track_uuid of the thread in an event */
    struct tp_batch_snippet lead;         /* sequence id, flags and tag of the event */
    uint64_t opening_ns;                  /* the first time that the openings are for */
    struct tp_batch_opening openings[2];  /* of an instant, of a slice */
    struct tp_batch_said *said;           /* by number of the text; 0 to n_said - 1 */
    uint32_t n_said;
    uint32_t type_batch[256];
    uint32_t process_batch, process_trace; /* that it was described and named in */
    uint32_t device_trace[TP_DEVICE_TRACKS_MAX + 1]; /* of tracks */
    uint32_t device_process_trace[TP_DEVICE_TRACKS_MAX + 1];
    uint32_t device_batch[TP_DEVICE_TRACKS_MAX + 1];
    uint32_t device_process_batch[TP_DEVICE_TRACKS_MAX + 1];
};

/* Take up to eight bytes. */
struct tp_batch_snippet tp_batch_snippet_of(const char *from, const char *end);

/* The field of an event that names its track. */
struct tp_batch_snippet tp_batch_track(uint64_t uuid);

/* Write a snippet and return its end. Room: eight bytes at p. */
static inline char *tp_batch_put_snippet(char *p, const struct tp_batch_snippet *s)
{
    memcpy(p, &s->bytes, sizeof(s->bytes));
    return p + s->n;
}

/* Write a packet that gives a text a number. */
char *tp_batch_put_interned(const struct tp_batch_writer *b, char *p, uint32_t field,
                            uint32_t iid, struct tp_str text);

/* A text that the table knows: itself, or that of "". */
static inline uint32_t tp_batch_known(const struct tp_batch_writer *b, uint32_t text)
{
    return text < b->n_said ? text : 0;
}

/* Say the name if it was not said; its number in the batch. n_said is not 0. */
static inline uint32_t tp_batch_say_name(struct tp_batch_writer *b, char **p,
                                         uint32_t text)
{
    struct tp_batch_said *s = &b->said[tp_batch_known(b, text)];

    if (__builtin_expect(s->name_batch != b->number, 0)) {
        s->name_batch = b->number;
        s->name_iid = ++b->n_names;
        *p = tp_batch_put_interned(b, *p, TP_PF_INTERNED_NAMES, s->name_iid,
                                   tp_texts_get(tp_batch_known(b, text)));
    }
    return s->name_iid;
}

static inline uint32_t tp_batch_say_key(struct tp_batch_writer *b, char **p,
                                        uint32_t text)
{
    struct tp_batch_said *s = &b->said[tp_batch_known(b, text)];

    if (__builtin_expect(s->key_batch != b->number, 0)) {
        s->key_batch = b->number;
        s->key_iid = ++b->n_keys;
        *p = tp_batch_put_interned(b, *p, TP_PF_INTERNED_ARG_NAMES, s->key_iid,
                                   tp_texts_get(tp_batch_known(b, text)));
    }
    return s->key_iid;
}

/* Types have the same number in all batches: one more than their id. */
static inline uint32_t tp_batch_say_type(struct tp_batch_writer *b, char **p,
                                         unsigned type)
{
    char text[TP_ACTIVITY_STRING_BYTES];
    size_t n;

    if (__builtin_expect(b->type_batch[type] != b->number, 0)) {
        b->type_batch[type] = b->number;
        n = tp_activity_to_string(b->registry, type, text);
        *p = tp_batch_put_interned(b, *p, TP_PF_INTERNED_CATEGORIES, type + 1,
                                   (struct tp_str){text, n});
    }
    return type + 1;
}

/* Write the value of a field: up to TP_BATCH_TEXT_MAX bytes of text, and sixteen. */
char *tp_batch_put_value(char *p, const uint64_t *w);

/* Have the openings for the time ns. Returns false, and nothing has changed, when that
 * is before 1972 or after 2262. */
bool tp_batch_open_at(struct tp_batch_writer *b, uint64_t ns);

/* Describe the process of the thread at hand, and the thread. These write what was not
 * yet said in the batch, and return the end of it. */
char *tp_batch_say_thread(struct tp_batch_writer *b, char *p);

/* The track of a record that names one; that of its thread when it names none. *uuid is
 * set. */
char *tp_batch_say_track(struct tp_batch_writer *b, char *p, uint64_t number,
                         uint64_t *uuid);

/* The series of a counter; *uuid is set. n_said is not 0. */
char *tp_batch_say_series(struct tp_batch_writer *b, char *p, uint32_t text,
                          uint64_t *uuid);

#endif
