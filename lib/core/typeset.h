/*
 * typeset.h - a set of activity ids, one bit for each of the 256.
 *
 * Plain data, passed by value or pointer; header only, since the event path asks it
 * for every event. Pure functions; a set that nobody writes may be read by any thread.
 */
#ifndef TP_CORE_TYPESET_H
#define TP_CORE_TYPESET_H

#include <stdbool.h>
#include <stdint.h>

/* The zero value is the empty set. Bit i of bits[i / 64] is id i. */
struct tp_typeset {
    uint64_t bits[4];
};

/* Whether id, 0 to 255, is in the set; false above. */
static inline bool tp_typeset_has(const struct tp_typeset *s, unsigned id)
{
    return id < 256 && (s->bits[id >> 6] >> (id & 63) & 1) != 0;
}

/* Put id, 0 to 255, into the set; ignored above. */
static inline void tp_typeset_add(struct tp_typeset *s, unsigned id)
{
    if (id < 256)
        s->bits[id >> 6] |= UINT64_C(1) << (id & 63);
}

/* Take id out of the set; ignored when it is not there. */
static inline void tp_typeset_remove(struct tp_typeset *s, unsigned id)
{
    if (id < 256)
        s->bits[id >> 6] &= ~(UINT64_C(1) << (id & 63));
}

/* Put every id of other into the set. */
static inline void tp_typeset_add_all(struct tp_typeset *s,
                                      const struct tp_typeset *other)
{
    for (int i = 0; i < 4; i++)
        s->bits[i] |= other->bits[i];
}

/* Take every id of other out of the set. */
static inline void tp_typeset_remove_all(struct tp_typeset *s,
                                         const struct tp_typeset *other)
{
    for (int i = 0; i < 4; i++)
        s->bits[i] &= ~other->bits[i];
}

/* The set of all 256 ids. */
static inline struct tp_typeset tp_typeset_full(void)
{
    return (struct tp_typeset){{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
}

/* Whether no id is in the set. */
static inline bool tp_typeset_is_empty(const struct tp_typeset *s)
{
    return (s->bits[0] | s->bits[1] | s->bits[2] | s->bits[3]) == 0;
}

/* Whether both hold the same ids. */
static inline bool tp_typeset_equal(const struct tp_typeset *a,
                                    const struct tp_typeset *b)
{
    return a->bits[0] == b->bits[0] && a->bits[1] == b->bits[1] &&
           a->bits[2] == b->bits[2] && a->bits[3] == b->bits[3];
}

/* The number of ids in the set, 0 to 256. */
static inline unsigned tp_typeset_count(const struct tp_typeset *s)
{
    unsigned n = 0;

    for (int i = 0; i < 4; i++)
        n += (unsigned)__builtin_popcountll(s->bits[i]);
    return n;
}

/* The smallest id of the set that is >= from, or 256: for loops over a set. */
static inline unsigned tp_typeset_next(const struct tp_typeset *s, unsigned from)
{
    for (unsigned id = from; id < 256; id = (id | 63) + 1) {
        uint64_t rest = s->bits[id >> 6] >> (id & 63);

        if (rest != 0)
            return id + (unsigned)__builtin_ctzll(rest);
    }
    return 256;
}

#endif
