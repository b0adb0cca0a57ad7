/*
 * json_string.h - strings of JSON text: find the end, decode, write.
 *
 * Wild input is repaired, never refused: invalid UTF-8 and unpaired surrogates become
 * U+FFFD, a backslash that starts no escape stands for itself, control characters may
 * come unescaped. Only a string without its end is incomplete. Pure functions; safe
 * from any thread.
 */
#ifndef TP_BASE_JSON_STRING_H
#define TP_BASE_JSON_STRING_H

#include <stddef.h>
#include <stdint.h>

#include "base/json_cursor.h"
#include "base/str.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* What a string holds besides printable ASCII. */
enum tp_json_trait {
    TP_JSON_ESCAPED = 1,  /* a backslash */
    TP_JSON_CONTROL = 2,  /* a control character as it is */
    TP_JSON_NON_ASCII = 4 /* a byte above 0x7f */
};

/* A string as it is written; plain data, borrowed from the text. */
struct tp_json_string {
    const char *ptr; /* behind the opening quote */
    size_t len;      /* bytes up to the closing quote */
    unsigned traits; /* set of enum tp_json_trait */
};

/* Room that tp_json_string_decode() and tp_json_string_write() need for n bytes. */
#define TP_JSON_DECODE_BYTES(n) (3 * (n))
#define TP_JSON_WRITE_BYTES(n) (6 * (n) + 2)

/* The slow path of tp_json_string_scan(): from byte p of the string at c->p. */
int tp_json_string_rest(struct tp_json *c, const char *p, struct tp_json_string *out);

/*
 * Read the string of printable ASCII without escapes whose opening quote is at p. Takes
 * no cursor, so that the caller's can stay in registers.
 *
 * end  behind the text.
 *
 * Returns the place behind the closing quote; NULL when the string is, or may be,
 * another: then tp_json_string_scan() tells what, and out is untouched.
 */
static inline const char *tp_json_string_quick(const char *p, const char *end,
                                               struct tp_json_string *out)
{
#ifdef __SSE2__
    const char *start = p + 1;

    for (p = start; end - p >= 16; p += 16) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
        const __m128i stop = _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('"')),
                                          _mm_cmpeq_epi8(x, _mm_set1_epi8('\\')));
        /* Bytes below a blank when signed: control characters, and all above 0x7f. */
        const unsigned marks = (unsigned)_mm_movemask_epi8(
            _mm_or_si128(stop, _mm_cmplt_epi8(x, _mm_set1_epi8(' '))));

        if (marks == 0)
            continue;
        p += __builtin_ctz(marks);
        if (*p != '"')
            return NULL;
        out->ptr = start;
        out->len = (size_t)(p - start);
        out->traits = 0;
        return p + 1;
    }
#else
    (void)p;
    (void)end;
    (void)out;
#endif
    return NULL;
}

/*
 * Move over the string at the cursor, which is on its opening quote.
 *
 * TP_EAGAIN  the text ends before the string; the cursor is where it was.
 */
static inline int tp_json_string_scan(struct tp_json *c, struct tp_json_string *out)
{
    const char *p = tp_json_string_quick(c->p, c->end, out);

    if (p == NULL)
        return tp_json_string_rest(c, c->p + 1, out);
    c->p = p;
    return TP_OK;
}

/*
 * Whether the string is its own decoded form: no escapes, no unescaped control
 * characters, valid UTF-8. Then it can be borrowed.
 */
bool tp_json_string_is_plain(const struct tp_json_string *s);

/*
 * Whether the string is valid JSON as it is written: escapes are right, surrogates
 * are paired, control characters are escaped, UTF-8 is valid.
 */
bool tp_json_string_is_sound(const struct tp_json_string *s);

/*
 * Write what the string stands for, as valid UTF-8.
 *
 * out       room for TP_JSON_DECODE_BYTES(s->len) bytes.
 * repaired  set to true when it was not sound; never set to false.
 *
 * Returns the number of bytes written.
 */
size_t tp_json_string_decode(const struct tp_json_string *s, char *out, bool *repaired);

/*
 * Write text as a JSON string with its quotes: `"`, `\` and control characters are
 * escaped, all else stays.
 *
 * text  valid UTF-8.
 * out   room for TP_JSON_WRITE_BYTES(text.len) bytes.
 *
 * Returns the number of bytes written.
 */
size_t tp_json_string_write(struct tp_str text, char *out);

#endif
