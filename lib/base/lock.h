/*
 * lock.h - a mutex for rooms that share state between threads and start none, and a
 * way to wait under it for what another thread does.
 *
 * Plain wrappers that assert: a lock that cannot be taken or given back is our own
 * mistake. Not recursive. Safe from any thread; init and fini from one.
 */
#ifndef TP_BASE_LOCK_H
#define TP_BASE_LOCK_H

#include <assert.h>
#include <pthread.h>

/* Embed it; start with tp_lock_init(). The field is private. */
struct tp_lock {
    pthread_mutex_t mutex;
};

/* Start with nobody in it. */
static inline void tp_lock_init(struct tp_lock *l)
{
    int rc = pthread_mutex_init(&l->mutex, NULL);

    assert(rc == 0);
    (void)rc;
}

/* End it; nobody may be in it. */
static inline void tp_lock_fini(struct tp_lock *l)
{
    pthread_mutex_destroy(&l->mutex);
}

/* Wait until nobody else is in it, and enter. */
static inline void tp_lock_take(struct tp_lock *l)
{
    int rc = pthread_mutex_lock(&l->mutex);

    assert(rc == 0);
    (void)rc;
}

/* Leave it. */
static inline void tp_lock_give(struct tp_lock *l)
{
    int rc = pthread_mutex_unlock(&l->mutex);

    assert(rc == 0);
    (void)rc;
}

/* Something that threads wait for, with a lock held. The field is private. */
struct tp_lock_event {
    pthread_cond_t cond;
};

/* Start with nobody who waits. */
static inline void tp_lock_event_init(struct tp_lock_event *event)
{
    int rc = pthread_cond_init(&event->cond, NULL);

    assert(rc == 0);
    (void)rc;
}

/* End it; nobody may wait. */
static inline void tp_lock_event_fini(struct tp_lock_event *event)
{
    pthread_cond_destroy(&event->cond);
}

/* Leave the lock, which is held, until the event is told of, and enter again. It may
 * return without reason: look whether what was waited for is so. */
static inline void tp_lock_wait(struct tp_lock *l, struct tp_lock_event *event)
{
    int rc = pthread_cond_wait(&event->cond, &l->mutex);

    assert(rc == 0);
    (void)rc;
}

/* Wake all that wait for the event. */
static inline void tp_lock_tell(struct tp_lock_event *event)
{
    pthread_cond_broadcast(&event->cond);
}

#endif
