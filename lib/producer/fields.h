/*
 * fields.h - the arguments of an event as words of its record, written by the thread
 * that records and read by the agent.
 *
 * The layout is in ring.h. What every event runs is inline; what is seldom is not.
 * Private to the library; pure functions on the caller's memory.
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

/* The thread's side. */

/* Whether a field takes one word: a whole number that is still itself without 28 of its
 * bits, under a key that there may be. One comparison, for it is nearly always so. */
static inline bool tp_fields_is_small(const struct tp_field *f)
{
    const uint64_t v = (uint64_t)f->value.i;
    const uint64_t lost = (uint64_t)TP_RECORD_SMALL_VALUE(v << 28) ^ v;

    return (f->key >> 20 | (f->kind ^ TP_FIELD_INT) | lost) == 0;
}

/* The word of one that is small. */
static inline uint64_t tp_fields_small(const struct tp_field *f)
{
    return TP_RECORD_FIELD(f->key, TP_RECORD_FIELD_SMALL, f->value.i);
}

/* The words of one that is neither small nor copied. A key that tp_intern() never gives
 * is as good as that of "", and a kind that there is not must not read as one that has
 * another length. */
static inline uint64_t tp_fields_first(const struct tp_field *f)
{
    return TP_RECORD_FIELD(f->key <= TP_RECORD_FIELD_KEY(UINT32_MAX) ? f->key : 0,
                           f->kind < TP_RECORD_FIELD_SMALL ? f->kind
                                                           : TP_RECORD_FIELD_NONE,
                           0);
}

static inline uint64_t tp_fields_second(const struct tp_field *f)
{
    uint64_t value;

    memcpy(&value, &f->value, sizeof(value));
    return value;
}

/* Store a word, with release if others may be reading what it follows. */
static inline void tp_fields_store(uint64_t *to, uint64_t v, bool with_release)
{
    if (with_release)
        __atomic_store_n(to, v, __ATOMIC_RELEASE);
    else
        *to = v;
}

/*
 * Write fields of which none is copied, in one walk: what nearly all events run.
 *
 * p             room for two words of each.
 * with_release  a constant: whether each word is stored so, as slices.c needs it.
 *
 * Returns their end, or NULL if a text is to be copied; then nothing is written yet
 * that anybody may read.
 */
static inline uint64_t *tp_fields_put_plain(uint64_t *p, struct tp_fields fields,
                                            bool with_release)
{
    for (size_t i = 0; i < fields.n; i++) {
        const struct tp_field *f = &fields.items[i];

        if (__builtin_expect(tp_fields_is_small(f), 1)) {
            tp_fields_store(p++, tp_fields_small(f), with_release);
            continue;
        }
        if (TP_RARE(f->kind == TP_FIELD_COPY))
            return NULL;
        tp_fields_store(p++, tp_fields_first(f), with_release);
        tp_fields_store(p++, tp_fields_second(f), with_release);
    }
    return p;
}

/* The words that fields of all kinds take, or TP_FIELDS_TOO_LARGE. */
unsigned tp_fields_words(struct tp_fields fields);

/* Write them to p, so many words. */
void tp_fields_put(uint64_t *p, struct tp_fields fields);

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
