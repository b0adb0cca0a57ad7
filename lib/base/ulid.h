/*
 * ulid.h - ids in the ULID form: 48 bits of milliseconds since 1970 and 80 random bits
 * as 26 letters and digits of Crockford's base 32, in lower case. Their text order is
 * that of their times. Pure functions; safe from any thread.
 */
#ifndef TP_BASE_ULID_H
#define TP_BASE_ULID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define TP_ULID_BYTES 27     /* as text, with its NUL */
#define TP_ULID_BINARY 16    /* bytes of the id itself */
#define TP_ULID_TIME_BYTES 6 /* of these, those in front are the time, highest first */

/* Set the time of an id. */
void tp_ulid_set_ms(uint8_t *id, uint64_t ms);

/* Write an id as text of TP_ULID_BYTES. */
void tp_ulid_write(const uint8_t *id, char *out);

/* Read a text; false when it is no id in this form. id  written on success only. */
bool tp_ulid_read(struct tp_str text, uint8_t *id);

#endif
