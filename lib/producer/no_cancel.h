/*
 * no_cancel.h - a stretch of code in which pthread_cancel() does not end its thread.
 *
 * What waits or writes is where a thread is cancelled, and it would leave locks taken,
 * threads counted that are not there, and wakeups announced that nobody sends. Public
 * functions that do so are cancelled when they have returned. Any thread; stretches
 * nest.
 */
#ifndef TP_PRODUCER_NO_CANCEL_H
#define TP_PRODUCER_NO_CANCEL_H

#include <pthread.h>

/* Begin a stretch. Returns what tp_no_cancel_end() wants to know. */
static inline int tp_no_cancel_begin(void)
{
    int before = PTHREAD_CANCEL_ENABLE;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

/* End the stretch that returned `before`, in the same thread. */
static inline void tp_no_cancel_end(int before)
{
    pthread_setcancelstate(before, NULL);
}

#endif
