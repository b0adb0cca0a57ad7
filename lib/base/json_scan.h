/*
 * json_scan.h - whole values of JSON text: check, skip, copy repaired; find the end.
 *
 * Accepts what the wild sends beside RFC 8259: NaN and infinities (they become
 * strings), trailing commas (they go), and all that json_string.h repairs. Nothing
 * recurses. Pure functions; safe from any thread.
 */
#ifndef TP_BASE_JSON_SCAN_H
#define TP_BASE_JSON_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/json_cursor.h"
#include "base/str.h"

#define TP_JSON_DEPTH_MAX 512 /* highest depth_max that the functions here take */

/* What a value holds that keeps its text from being handed on as it is. */
enum tp_json_oddity {
    TP_JSON_SPREAD = 1, /* line breaks or tabs between tokens */
    TP_JSON_UNSOUND = 2 /* something to repair */
};

/*
 * Move over `true`, `false`, `null`, or a word for a number that JSON does not have
 * (nan, inf, infinity; any case; with or without a minus).
 *
 * text  the JSON for it: itself, or "NaN", "Infinity", "-Infinity" in quotes; static.
 *
 * Returns TP_OK, TP_EAGAIN when the text ends inside or right behind such a word, or
 * TP_EINVAL; the cursor moves on TP_OK only.
 */
int tp_json_literal(struct tp_json *c, struct tp_str *text);

/*
 * Move over one value of any kind.
 *
 * depth_max  most arrays and objects inside each other, at most TP_JSON_DEPTH_MAX.
 * oddities   a set of enum tp_json_oddity is added to it.
 *
 * TP_EAGAIN  the text ends before the value, or right behind a number or a word.
 * TP_EINVAL  the cursor is on the byte at fault.
 * TP_EQUOTA  it is deeper than depth_max; the cursor is on the bracket.
 */
int tp_json_skip(struct tp_json *c, unsigned depth_max, unsigned *oddities);

/* Room that tp_json_copy() needs for n bytes. */
#define TP_JSON_COPY_BYTES(n) (6 * (n) + 2)

/*
 * Write a value as valid JSON on one line without whitespace between tokens. Numbers
 * and sound strings stay byte for byte.
 *
 * text      a value that tp_json_skip() accepted, all of it.
 * out       room for TP_JSON_COPY_BYTES(text.len) bytes.
 * repaired  set to true when something was repaired; never set to false. A trailing
 *           comma does not count.
 *
 * Returns the number of bytes written.
 */
size_t tp_json_copy(struct tp_str text, char *out, bool *repaired);

/*
 * Looks for the end of a value in text that comes in pieces, each byte once. It counts
 * brackets and knows strings, and checks nothing else. Where tp_json_skip() accepts a
 * value, both agree on its end. Plain data; the zero value starts a value.
 */
struct tp_json_edge {
    uint64_t depth;
    bool is_started;
    bool is_in_string;
    bool is_escaped; /* the last byte was a backslash inside a string */
    bool is_scalar;  /* a number or word: ends before the next delimiter */
};

/*
 * Go on with n more bytes.
 *
 * used  how many of them belong to the value: n unless it ended.
 *
 * Returns whether the value has ended.
 */
bool tp_json_edge_feed(struct tp_json_edge *e, const char *p, size_t n, size_t *used);

#endif
