/*
 * process_key.h - a name for a process that nobody else has, on any machine.
 *
 *   <boot id>/<pid namespace>/<pid in that namespace>/<start, in ticks since boot>
 *
 * Two who look at the same process, from inside and from outside of its container, get
 * the same text; a pid that is used again, or used on another machine or in another
 * container, gets another. It is read from /proc once and kept by the caller. No state;
 * any thread.
 */
#ifndef TP_BASE_PROCESS_KEY_H
#define TP_BASE_PROCESS_KEY_H

#include <stdbool.h>
#include <stdint.h>

#define TP_PROCESS_KEY_BYTES 128 /* with its NUL */

/*
 * Write the key of a process.
 *
 * pid  as this process sees it; 0 = this process.
 * out  TP_PROCESS_KEY_BYTES; "" when the key cannot be known.
 *
 * Returns whether it is known: not when there is no such process, or /proc does not
 * show it to us, or it is of a user whose namespace we may not read.
 */
bool tp_process_key(int32_t pid, char *out);

#endif
