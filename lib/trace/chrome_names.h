/*
 * chrome_names.h - numbers for the strings that events repeat: names, cats, keys.
 *
 * All later stages (filter, writer) then look at a string once for each number instead
 * of once for each event. Events of one cat mostly have the same keys in the same
 * order: a shape holds the args of the last such event as they were written, so that
 * one comparison reads a key with its quotes and its colon, or an array such as
 * `[[64,64],[]]`. The tables are small and bounded; beyond them a string has number 0,
 * "not known", and costs time only. One thread at a time.
 */
#ifndef TP_TRACE_CHROME_NAMES_H
#define TP_TRACE_CHROME_NAMES_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "trace/event.h"
#include "trace/intern.h"

#define TP_CHROME_TOKEN_BYTES 32 /* longest text that is expected */
#define TP_CHROME_SHAPES 8       /* a power of two */
#define TP_CHROME_SHAPE_ARGS 16  /* positions of a shape; a power of two */

/* Some bytes of text as they were written. */
struct tp_chrome_token {
    char text[TP_CHROME_TOKEN_BYTES];
    uint32_t bytes; /* 0 = none */
    uint32_t iid;   /* of the key, when it is one */
};

/* What was read last of such args, by position. */
struct tp_chrome_shape {
    struct tp_chrome_token keys[TP_CHROME_SHAPE_ARGS]; /* `"key":` */
    struct tp_chrome_token arrays[TP_CHROME_SHAPE_ARGS];
    uint32_t number; /* of the present keys and n_args; 0 = none yet */
    uint32_t n_args;
};

/* Embed it; start with tp_chrome_names_init(). All fields are private. */
struct tp_chrome_names {
    struct tp_intern names, cats, keys;
    uint32_t last_cat;
    uint32_t n_shapes; /* numbers that were given */
    struct tp_chrome_shape shapes[TP_CHROME_SHAPES];
};

/* Set the limits of all-zero tables; nothing is allocated. */
void tp_chrome_names_init(struct tp_chrome_names *n);

/* Release the tables. All-zero is allowed. */
void tp_chrome_names_fini(struct tp_chrome_names *n);

/* Forget all strings and keep the memory. */
void tp_chrome_names_reset(struct tp_chrome_names *n);

/* Give a name its number. TP_ENOMEM: it has none. */
int tp_chrome_names_name(struct tp_chrome_names *n, struct tp_name *name,
                         struct tp_err *err);

/* Give a cat its number. TP_ENOMEM: it has none. */
int tp_chrome_names_cat(struct tp_chrome_names *n, struct tp_name *cat,
                        struct tp_err *err);

/*
 * Give a key of args, which was not the expected one, its number.
 *
 * position    of the key in args, from 0.
 * is_written  key->ptr is borrowed from the text, where a quote is on either side and a
 *             colon behind: it is expected at this position from now on.
 *
 * TP_ENOMEM  it has none.
 */
int tp_chrome_names_key(struct tp_chrome_names *n, struct tp_chrome_shape *shape,
                        uint32_t position, bool is_written, struct tp_name *key,
                        struct tp_err *err);

/* Expect an array or object at a position. text is valid JSON as it was written. */
void tp_chrome_names_array(struct tp_chrome_shape *shape, uint32_t position,
                           struct tp_str text);

/* The shape for args of an event with this cat, as far as it is known. */
static inline struct tp_chrome_shape *tp_chrome_names_shape(struct tp_chrome_names *n,
                                                            struct tp_str cat)
{
    unsigned hash = 0;

    if (cat.len > 0)
        hash = (unsigned)cat.len + (unsigned char)cat.ptr[0] +
               (unsigned char)cat.ptr[cat.len - 1];
    return &n->shapes[hash % TP_CHROME_SHAPES];
}

/*
 * The number for an event whose args were read with a shape.
 *
 * is_expected  all its keys were the expected ones.
 * n_args       how many arguments it has.
 *
 * 0: no other event is known to have the same keys.
 */
static inline uint32_t tp_chrome_names_number(struct tp_chrome_names *n,
                                              struct tp_chrome_shape *shape,
                                              bool is_expected, uint32_t n_args)
{
    if (!is_expected) {
        shape->number = 0;
        return 0;
    }
    if (shape->number == 0 || shape->n_args != n_args) {
        shape->number = ++n->n_shapes;
        shape->n_args = n_args;
    }
    return shape->number;
}

/* The place behind the token when it is at p; NULL: something else is, or p is too near
 * the end. */
static inline const char *tp_chrome_token_match(const struct tp_chrome_token *t,
                                                const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i *have = (const __m128i *)(const void *)p;
    const __m128i *want = (const __m128i *)(const void *)t->text;
    uint64_t same;

    if (t->bytes == 0 || end - p < TP_CHROME_TOKEN_BYTES)
        return NULL;
    same = (unsigned)_mm_movemask_epi8(
        _mm_cmpeq_epi8(_mm_loadu_si128(have), _mm_loadu_si128(want)));
    same |= (uint64_t)(unsigned)_mm_movemask_epi8(
                _mm_cmpeq_epi8(_mm_loadu_si128(have + 1), _mm_loadu_si128(want + 1)))
            << 16;
    return (~same & ((UINT64_C(1) << t->bytes) - 1)) == 0 ? p + t->bytes : NULL;
#else
    if (t->bytes == 0 || (size_t)(end - p) < t->bytes ||
        memcmp(p, t->text, t->bytes) != 0)
        return NULL;
    return p + t->bytes;
#endif
}

/*
 * Read the expected key at p, its quotes and its colon.
 *
 * end  behind the text.
 * key  borrows from the text.
 *
 * Returns the place behind the colon; NULL: another key, and key is untouched.
 */
static inline const char *tp_chrome_names_expect(const struct tp_chrome_shape *shape,
                                                 uint32_t position, const char *p,
                                                 const char *end, struct tp_name *key)
{
    const struct tp_chrome_token *t = &shape->keys[position % TP_CHROME_SHAPE_ARGS];
    const char *behind = tp_chrome_token_match(t, p, end);

    if (behind != NULL)
        *key = (struct tp_name){p + 1, t->bytes - 3, t->iid};
    return behind;
}

#endif
