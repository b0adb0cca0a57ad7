/*
 * texts.h - the numbered texts of the process: names of events and of arguments.
 *
 * Behind tp_intern() of the public header, whose contract is there. Texts are never
 * forgotten, so that a number may be kept in a static variable. Private to the library;
 * safe from any thread.
 */
#ifndef TP_PRODUCER_TEXTS_H
#define TP_PRODUCER_TEXTS_H

#include <stdint.h>

#include "base/str.h"

#define TP_TEXTS_MAX ((1u << 20) - 1)
#define TP_TEXTS_BYTES_MAX ((size_t)64 << 20)
#define TP_TEXT_BYTES_MAX 1023u /* longer texts are cut, and marked */

/* The text of a number; "" for 0 and for numbers that were never given. It lives for
 * ever. */
struct tp_str tp_texts_get(uint32_t number);

/* How many there are: all numbers are up to this. */
uint32_t tp_texts_count(void);

/* For fork(): nobody may be adding a text meanwhile. */
void tp_texts_lock(void);
void tp_texts_unlock(void);

#endif
