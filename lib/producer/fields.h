/*
 * fields.h - the arguments of an event as words of its record, written by the thread
 * that records and read by the agent.
 *
 * The layout is in ring.h. What every event runs is inline; texts that are copied are
 * not. Private to the library; pure functions on the caller's memory.
 */
#ifndef TP_PRODUCER_FIELDS_H
#define TP_PRODUCER_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <traceplane/record.h>

#include "base/str.h"
#include "producer/ring.h"

#define TP_FIELDS_TOO_LARGE UINT32_MAX
#define TP_FIELDS_SMALL_MAX (UINT64_C(1) << (TP_RECORD_SMALL_BITS - 1))

/* The thread's side. */

/* Whether the text of a field is copied. */
static inline bool tp_fields_is_copied(const struct tp_field *f)
{
    return f->kind == TP_FIELD_COPY;
}

/* Whether a field is a whole number that takes one word. */
static inline unsigned tp_fields_is_small(const struct tp_field *f)
{
    return (unsigned)(f->kind == TP_FIELD_INT) &
           (unsigned)((uint64_t)f->value.i + TP_FIELDS_SMALL_MAX <
                      2 * TP_FIELDS_SMALL_MAX);
}

/* As tp_fields_words() for fields of which one is copied, or that are too many. */
TP_RARELY unsigned tp_fields_words_of_copies(struct tp_fields fields);

/*
 * The words that fields take, or TP_FIELDS_TOO_LARGE.
 *
 * has_copies  set: whether one of them is copied.
 */
static inline unsigned tp_fields_words(struct tp_fields fields, bool *has_copies)
{
    bool any = fields.n > TP_FIELDS_MAX;
    unsigned n = (unsigned)fields.n * 2;

    for (size_t i = 0; i < fields.n && !any; i++) {
        any = tp_fields_is_copied(&fields.items[i]);
        n -= tp_fields_is_small(&fields.items[i]);
    }
    *has_copies = any;
    return TP_RARE(any) ? tp_fields_words_of_copies(fields) : n;
}

/* A number that tp_intern() never gives is as good as that of "". */
static inline uint64_t tp_fields_key(const struct tp_field *f)
{
    return f->key <= TP_RECORD_FIELD_KEY(UINT32_MAX) ? f->key : 0;
}

/* The words of a field that is not copied: {key | kind << 32, value}, or one word. */
struct tp_field_words {
    uint64_t first, second;
    unsigned n;
};

static inline struct tp_field_words tp_fields_of(const struct tp_field *f)
{
    /* A kind that there is not must not read as one that has another length. */
    uint64_t kind = f->kind < TP_RECORD_FIELD_SMALL ? f->kind : TP_RECORD_FIELD_NONE;
    struct tp_field_words w = {.first = tp_fields_key(f) | kind << 32, .n = 2};

    memcpy(&w.second, &f->value, sizeof(w.second));
    if (tp_fields_is_small(f)) {
        w.first = TP_RECORD_SMALL(tp_fields_key(f), w.second);
        w.n = 1;
    }
    return w;
}

/* As tp_fields_put() for fields of which one is copied. */
TP_RARELY void tp_fields_put_copies(uint64_t *p, struct tp_fields fields);

/* Write all fields to p, where one word more may be written than they take. */
static inline void tp_fields_put(uint64_t *p, struct tp_fields fields, bool has_copies)
{
    if (TP_RARE(has_copies)) {
        tp_fields_put_copies(p, fields);
        return;
    }
    for (size_t i = 0; i < fields.n; i++) {
        const struct tp_field_words w = tp_fields_of(&fields.items[i]);

        /* Without a branch: what comes next may be written over the second word.
         * Behind the last field that is a word which tp_room_reserve() has left free,
         * or slack. */
        p[0] = w.first;
        p[1] = w.second;
        p += w.n;
    }
}

/* The agent's side. */

/* The words of a record before its fields; 0: its kind has none. */
static inline unsigned tp_fields_at(unsigned kind)
{
    return kind == TP_RECORD_COMPLETE                          ? 4
           : kind == TP_RECORD_SLICE || kind == TP_RECORD_OPEN ? 3
           : kind == TP_RECORD_INSTANT                         ? 2
                                                               : 0;
}

/* The field behind the one at w. */
static inline const uint64_t *tp_fields_next(const uint64_t *w)
{
    unsigned kind = TP_RECORD_FIELD_KIND(*w);

    if (__builtin_expect(kind == TP_FIELD_COPY, 0))
        return w + 1 + TP_RECORD_FIELD_WORDS(*w);
    return w + (kind == TP_RECORD_FIELD_SMALL ? 1 : 2);
}

/* Whether the field at w is a text. */
static inline bool tp_fields_is_text(const uint64_t *w)
{
    unsigned kind = TP_RECORD_FIELD_KIND(*w);

    return kind == TP_FIELD_TEXT || kind == TP_FIELD_COPY;
}

/* The text of a field that is one, up to max_bytes of it; it lives as long as the
 * record, or as the program promised. */
struct tp_str tp_fields_text(const uint64_t *w, size_t max_bytes);

#endif
