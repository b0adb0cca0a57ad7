/*
 * glob.h - shell patterns over UTF-8, matched in bounded time.
 *
 * `*` any run (`/` and `.` are ordinary), `?` one character, `[a-z]` and `[!a-z]` sets,
 * `\` takes the next character as it is. As fnmatch(3) without flags, but not
 * dependent on a locale, without its exponential cases, and for text with a length.
 * Pure functions; safe from any thread.
 */
#ifndef TP_BASE_GLOB_H
#define TP_BASE_GLOB_H

#include <stdbool.h>

#include "base/str.h"

struct tp_err;

/* Whether the pattern holds a character that means more than itself. */
bool tp_glob_is_pattern(struct tp_str pattern);

/*
 * Check a pattern before it is stored.
 *
 * TP_EINVAL  an unclosed `[`, an empty or reversed range, or a `\` at the end.
 */
int tp_glob_check(struct tp_str pattern, struct tp_err *err);

/*
 * Whether all of text matches. Any bytes are allowed; an invalid UTF-8 sequence
 * counts as one character U+FFFD. A pattern that tp_glob_check() refuses matches
 * nothing or something, but safely. At most pattern.len * text.len steps.
 */
bool tp_glob_matches(struct tp_str pattern, struct tp_str text);

#endif
