/*
 * fault.h - makes one allocation of a test fail, at a chosen place.
 *
 * The test program is linked with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup, so that the code
 * under test needs no change and carries no test code. Only calls that were linked
 * into the program itself are counted: what a shared library allocates inside itself
 * (json-c, SQLite, and in libc asprintf, strndup, open_memstream) never fails here.
 *
 * The countdown belongs to the calling thread. A test arms and disarms in its own
 * thread, and other threads are not disturbed by it.
 */
#ifndef TP_SUPPORT_FAULT_H
#define TP_SUPPORT_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Let n allocations of this thread pass and fail the next one with NULL and ENOMEM.
 * Exactly one fails: those after it succeed again, so that the cleanup of the code
 * under test is seen as it would run.
 *
 * n  how many pass first; 0 fails the very next one. Must not be negative.
 *
 * A second call replaces the first countdown.
 */
void fault_arm(int n);

/*
 * Stop the countdown of this thread. Returns whether the failure was delivered; false
 * means that the code under test made at most n allocations, and ends the loop of the
 * caller. Without fault_arm() before it, returns false.
 */
bool fault_disarm(void);

/*
 * Have fn called, once, by the thread that next asks for a block of at least so many
 * bytes (malloc, realloc), before it has it: a place to stop at in the middle of
 * something, in whatever thread.
 *
 * arg  stays the caller's, who knows by it that the call was made.
 */
void fault_call_at(size_t bytes, void (*fn)(void *arg), void *arg);

#endif
