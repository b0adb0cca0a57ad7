/*
 * workers.c - one queue, one condition variable.
 *
 * `lock` guards everything of struct tp_workers that changes after start. It is a leaf:
 * no task runs and no engine function is called under it.
 */
#include "server/workers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "engine/engine.h"
#include "server/clock.h"

struct task {
    tp_task_fn fn;
    void *arg;
    struct task *next;
};

struct tp_workers {
    struct tp_engine *engine;
    void (*on_sealed)(void *arg);
    void *arg;
    pthread_t *threads;
    size_t n_threads;
    size_t next_index; /* of a thread that starts; guarded by lock */

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct task *first;
    struct task **last;
    unsigned long pokes; /* grows with each poke, so that none is missed */
    bool is_stopping;
};

static struct task *pop(struct tp_workers *w)
{
    struct task *t = w->first;

    if (t == NULL)
        return NULL;
    w->first = t->next;
    if (w->first == NULL)
        w->last = &w->first;
    return t;
}

/* Seal one stream. Returns whether there was one. */
static bool seal_one(struct tp_workers *w)
{
    struct tp_work *work = tp_engine_next_work(w->engine, tp_clock_now());

    if (work == NULL)
        return false;
    tp_work_run(work);
    tp_engine_work_done(w->engine, work, tp_clock_now());
    if (w->on_sealed != NULL)
        w->on_sealed(w->arg);
    return true;
}

static void *run(void *arg)
{
    struct tp_workers *w = arg;
    unsigned long seen = 0;
    bool may_seal;

    pthread_mutex_lock(&w->lock);
    may_seal = w->next_index++ > 0;
    for (;;) {
        struct task *t = pop(w);

        if (t != NULL) {
            pthread_mutex_unlock(&w->lock);
            t->fn(t->arg);
            free(t);
            pthread_mutex_lock(&w->lock);
        } else if (w->is_stopping) {
            break;
        } else if (may_seal && seen != w->pokes) {
            unsigned long pokes = w->pokes;

            pthread_mutex_unlock(&w->lock);
            if (!seal_one(w))
                seen = pokes;
            pthread_mutex_lock(&w->lock);
        } else {
            pthread_cond_wait(&w->wake, &w->lock);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int tp_workers_start(struct tp_engine *engine, size_t n_sealers,
                     void (*on_sealed)(void *arg), void *arg, struct tp_workers **out,
                     struct tp_err *err)
{
    struct tp_workers *w = calloc(1, sizeof(*w));
    size_t n = n_sealers + 1;

    if (w == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the worker threads");
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    w->engine = engine;
    w->on_sealed = on_sealed;
    w->arg = arg;
    w->last = &w->first;
    w->pokes = 1; /* what a restart left is work from the beginning */
    w->threads = calloc(n, sizeof(*w->threads));
    if (w->threads == NULL) {
        tp_workers_free(w);
        return tp_fail(err, TP_ENOMEM, "no memory for %zu worker threads", n);
    }
    for (; w->n_threads < n; w->n_threads++)
        if (pthread_create(&w->threads[w->n_threads], NULL, run, w) != 0)
            break;
    if (w->n_threads < n) {
        tp_workers_stop(w);
        tp_workers_free(w);
        return tp_fail(err, TP_EIO, "cannot start %zu worker threads", n);
    }
    *out = w;
    return TP_OK;
}

void tp_workers_stop(struct tp_workers *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_stopping = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < w->n_threads; i++)
        pthread_join(w->threads[i], NULL);
    w->n_threads = 0;
}

void tp_workers_free(struct tp_workers *w)
{
    if (w == NULL)
        return;
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w->threads);
    free(w);
}

int tp_workers_post(struct tp_workers *w, tp_task_fn fn, void *arg, struct tp_err *err)
{
    struct task *t = calloc(1, sizeof(*t));
    bool is_stopping;

    if (t == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a task");
    t->fn = fn;
    t->arg = arg;
    pthread_mutex_lock(&w->lock);
    is_stopping = w->is_stopping;
    if (!is_stopping) {
        *w->last = t;
        w->last = &t->next;
        pthread_cond_broadcast(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
    if (!is_stopping)
        return TP_OK;
    free(t);
    return tp_fail(err, TP_ESTATE, "the service stops");
}

void tp_workers_poke(struct tp_workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->pokes++;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
}
