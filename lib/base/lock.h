/*
 * lock.h - a mutex for rooms that share state between threads and start none.
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

#endif
