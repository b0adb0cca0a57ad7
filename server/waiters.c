/*
 * waiters.c - slots, an epoll set for hang-ups, and the ticker.
 *
 * A wake-up of the library costs time in proportion to all suspended connections, so
 * changes are gathered: after one look the next comes COALESCE_NS later at the
 * earliest. Without changes the thread sleeps until the engine's next deadline, at most
 * IDLE_NS.
 *
 * `lock` guards the slots. Connections are suspended and resumed under it, so that a
 * resume can never come before the suspend that it belongs to. It is taken before the
 * locks of the engine (ready callbacks), and no function of this file is called with
 * one of those held.
 */
#include "server/waiters.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/engine.h"
#include "server/clock.h"
#include "server/trim.h"
#include "server/workers.h"

#define MS_NS 1000000u
#define COALESCE_NS (5 * MS_NS)
#define LOOK_NS (50 * MS_NS)  /* for watches */
#define IDLE_NS (200 * MS_NS) /* at the latest, everybody is asked */
#define WAKE_ID UINT64_MAX
#define EVENTS 64

struct slot {
    struct tp_waiter waiter;
    uint32_t generation;
    bool is_used;
    uint32_t next_free; /* slot + 1; 0 = none */
};

struct tp_waiters {
    struct tp_engine *engine;
    struct tp_workers *workers;
    int epoll_fd;
    int wake_fd;
    pthread_t thread;
    bool has_thread;
    _Atomic bool is_stopping;
    _Atomic bool is_poked; /* a wake is on its way */

    pthread_mutex_t lock; /* guards what follows */
    struct slot *slots;
    uint32_t n_slots;
    uint32_t first_free; /* slot + 1; 0 = none */
    uint64_t n_waiting;
    uint64_t n_watches;
    uint64_t next_deadline_ns; /* of all waiters, or earlier */
    bool is_draining;
};

int tp_waiters_new(struct tp_engine *engine, struct tp_waiters **out,
                   struct tp_err *err)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = WAKE_ID};
    struct tp_waiters *w = calloc(1, sizeof(*w));

    if (w == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the table of waiters");
    pthread_mutex_init(&w->lock, NULL);
    w->engine = engine;
    w->next_deadline_ns = UINT64_MAX;
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->epoll_fd < 0 || w->wake_fd < 0 ||
        epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->wake_fd, &ev) != 0) {
        tp_waiters_free(w);
        return tp_fail(err, TP_EIO, "cannot make an epoll set: %m");
    }
    *out = w;
    return TP_OK;
}

void tp_waiters_free(struct tp_waiters *w)
{
    if (w == NULL)
        return;
    if (w->epoll_fd >= 0)
        close(w->epoll_fd);
    if (w->wake_fd >= 0)
        close(w->wake_fd);
    pthread_mutex_destroy(&w->lock);
    free(w->slots);
    free(w);
}

void tp_waiters_poke(struct tp_waiters *w)
{
    const uint64_t one = 1;

    if (atomic_exchange(&w->is_poked, true))
        return;
    if (write(w->wake_fd, &one, sizeof(one)) < 0)
        return; /* it is full, so the thread will wake up */
}

/* A free slot; the lock is held. */
static int take_slot(struct tp_waiters *w, uint32_t *out)
{
    if (w->first_free == 0) {
        uint32_t n = w->n_slots == 0 ? 64 : w->n_slots * 2;
        struct slot *slots = realloc(w->slots, n * sizeof(*slots));

        if (slots == NULL)
            return TP_ENOMEM;
        w->slots = slots;
        for (uint32_t i = n; i-- > w->n_slots;) {
            w->slots[i] = (struct slot){.next_free = w->first_free};
            w->first_free = i + 1;
        }
        w->n_slots = n;
    }
    *out = w->first_free - 1;
    w->first_free = w->slots[*out].next_free;
    return TP_OK;
}

/* Let a waiter go on; the lock is held. */
static void resume(struct tp_waiters *w, uint32_t i)
{
    struct slot *s = &w->slots[i];

    epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, s->waiter.fd, NULL);
    s->is_used = false;
    s->generation++;
    s->next_free = w->first_free;
    w->first_free = i + 1;
    w->n_waiting--;
    w->n_watches -= s->waiter.is_watch;
    s->waiter.resume(s->waiter.arg);
}

int tp_waiters_add(struct tp_waiters *w, const struct tp_waiter *waiter,
                   struct tp_err *err)
{
    struct epoll_event ev = {.events = EPOLLRDHUP};
    uint32_t i;
    int rc;

    pthread_mutex_lock(&w->lock);
    rc = take_slot(w, &i);
    if (rc != TP_OK) {
        pthread_mutex_unlock(&w->lock);
        return tp_fail(err, rc, "no memory for one more waiter");
    }
    w->slots[i].waiter = *waiter;
    w->slots[i].is_used = true;
    w->n_waiting++;
    w->n_watches += waiter->is_watch;
    if (waiter->deadline_ns < w->next_deadline_ns)
        w->next_deadline_ns = waiter->deadline_ns;
    waiter->suspend(waiter->arg);
    ev.data.u64 = (uint64_t)w->slots[i].generation << 32 | i;
    if (w->is_draining && waiter->on_stop != NULL)
        waiter->on_stop(waiter->arg);
    if (w->is_draining || epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, waiter->fd, &ev) != 0 ||
        waiter->ready(waiter->arg, tp_clock_now()))
        resume(w, i);
    pthread_mutex_unlock(&w->lock);
    return TP_OK;
}

/* The client of a waiter has gone. */
static void client_gone(struct tp_waiters *w, uint64_t id)
{
    uint32_t i = (uint32_t)id;

    pthread_mutex_lock(&w->lock);
    if (i < w->n_slots && w->slots[i].is_used &&
        w->slots[i].generation == (uint32_t)(id >> 32)) {
        w->slots[i].waiter.on_gone(w->slots[i].waiter.arg);
        resume(w, i);
    }
    pthread_mutex_unlock(&w->lock);
}

/* Ask the waiters. all = false asks only watches and looks at deadlines. */
static void look(struct tp_waiters *w, struct tp_now now, bool all)
{
    uint64_t next = UINT64_MAX;

    pthread_mutex_lock(&w->lock);
    for (uint32_t i = 0; i < w->n_slots && w->n_waiting > 0; i++) {
        const struct tp_waiter *one = &w->slots[i].waiter;

        if (!w->slots[i].is_used)
            continue;
        if (now.mono_ns >= one->deadline_ns ||
            ((all || one->is_watch) && one->ready(one->arg, now)))
            resume(w, i);
        else if (one->deadline_ns < next)
            next = one->deadline_ns;
    }
    w->next_deadline_ns = next;
    pthread_mutex_unlock(&w->lock);
}

void tp_waiters_drain(struct tp_waiters *w)
{
    pthread_mutex_lock(&w->lock);
    w->is_draining = true;
    for (uint32_t i = 0; i < w->n_slots; i++) {
        if (!w->slots[i].is_used)
            continue;
        if (w->slots[i].waiter.on_stop != NULL)
            w->slots[i].waiter.on_stop(w->slots[i].waiter.arg);
        resume(w, i);
    }
    pthread_mutex_unlock(&w->lock);
}

uint64_t tp_waiters_count(struct tp_waiters *w)
{
    uint64_t n;

    pthread_mutex_lock(&w->lock);
    n = w->n_waiting;
    pthread_mutex_unlock(&w->lock);
    return n;
}

/* When the thread has to wake up if nothing comes. */
static uint64_t next_wake(struct tp_waiters *w, uint64_t now_ns, uint64_t tick_ns)
{
    uint64_t at = now_ns + IDLE_NS;

    pthread_mutex_lock(&w->lock);
    if (w->n_watches > 0 && at > now_ns + LOOK_NS)
        at = now_ns + LOOK_NS;
    if (at > w->next_deadline_ns)
        at = w->next_deadline_ns;
    pthread_mutex_unlock(&w->lock);
    return at < tick_ns ? at : tick_ns;
}

static int timeout_ms(uint64_t now_ns, uint64_t at_ns)
{
    if (at_ns <= now_ns)
        return 0;
    return (int)((at_ns - now_ns + MS_NS - 1) / MS_NS);
}

/* Wait for hang-ups and pokes. */
static void wait_events(struct tp_waiters *w, int ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(w->epoll_fd, events, EVENTS, ms);

    for (int i = 0; i < n; i++) {
        uint64_t ignored;

        if (events[i].data.u64 != WAKE_ID)
            client_gone(w, events[i].data.u64);
        else if (read(w->wake_fd, &ignored, sizeof(ignored)) < 0)
            continue;
    }
}

static void *run(void *arg)
{
    struct tp_waiters *w = arg;
    uint64_t looked_ns = 0;
    uint64_t all_ns = 0;
    uint64_t tick_ns = 0;
    struct tp_trim trim = {0};

    while (!w->is_stopping) {
        struct tp_now now = tp_clock_now();
        bool was_due = now.mono_ns >= tick_ns;
        bool has_changed = false;

        if (w->is_poked && now.mono_ns - looked_ns < COALESCE_NS) {
            wait_events(w, timeout_ms(now.mono_ns, looked_ns + COALESCE_NS));
            continue;
        }
        has_changed = atomic_exchange(&w->is_poked, false) || was_due ||
                      now.mono_ns - all_ns >= IDLE_NS;
        if (has_changed) {
            all_ns = now.mono_ns;
            tick_ns = tp_engine_tick(w->engine, now);
            tp_trim_look(&trim, w->engine, now.mono_ns);
        }
        looked_ns = now.mono_ns;
        if (w->workers != NULL && tp_engine_has_work(w->engine))
            tp_workers_poke(w->workers);
        look(w, now, has_changed);
        if (tick_ns <= now.mono_ns) /* it is late or wants to be asked again */
            tick_ns = now.mono_ns + MS_NS;
        now = tp_clock_now();
        wait_events(w, timeout_ms(now.mono_ns, next_wake(w, now.mono_ns, tick_ns)));
    }
    return NULL;
}

int tp_waiters_start(struct tp_waiters *w, struct tp_workers *workers,
                     struct tp_err *err)
{
    w->workers = workers;
    if (pthread_create(&w->thread, NULL, run, w) != 0)
        return tp_fail(err, TP_EIO, "cannot start the ticker thread");
    w->has_thread = true;
    return TP_OK;
}

void tp_waiters_stop(struct tp_waiters *w)
{
    if (w == NULL || !w->has_thread)
        return;
    atomic_store(&w->is_stopping, true);
    atomic_store(&w->is_poked, false);
    tp_waiters_poke(w);
    pthread_join(w->thread, NULL);
    w->has_thread = false;
}
