/*
 * waiters.c - slots, an epoll set for hang-ups, and the ticker.
 *
 * A look costs time in proportion to all that wait, and so does a wake-up of the
 * library, so changes are gathered: after one look the next comes COALESCE_NS later at
 * the earliest, and the later the more there are. Without changes the thread sleeps
 * until the engine's next deadline, at most IDLE_NS.
 *
 * A connection that waits once will wait again: it stays in the epoll set until it is
 * forgotten, and its hang-up, which is told once, is remembered when nobody waits.
 *
 * `lock` guards the slots. Connections are suspended and resumed under it, so that a
 * resume can never come before the suspend that it belongs to. It is taken before the
 * locks of the engine (ready callbacks), and no function of this file is called with
 * one of those held. A look at thousands takes a tenth of a second, in which they are
 * told to start, so it lets others in between: of those who want to wait, some may be
 * asking for the same news, and all of their thread's connections wait with them.
 */
#include "server/waiters.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "engine/engine.h"
#include "engine/spare.h"
#include "engine/sync.h"
#include "server/clock.h"
#include "server/trim.h"
#include "server/workers.h"

#define MS_NS 1000000u
#define COALESCE_NS (MS_NS / 2)
#define COALESCE_EACH_NS 1000 /* and so much for each that waits, */
#define COALESCE_MOST_NS (5 * MS_NS)
#define TRIM_NS (100 * MS_NS) /* between two looks at what is used */
#define LOOK_NS (50 * MS_NS)  /* for watches */
#define IDLE_NS (200 * MS_NS) /* at the latest, everybody is asked */
#define WAKE_ID UINT64_MAX
#define EVENTS 64
#define LET_IN_EACH 64 /* slots; a few who come make no look much longer */

/* One for each descriptor that ever waited; its place is the descriptor. */
struct slot {
    struct tp_waiter waiter;
    uint32_t generation; /* how many connections had this descriptor before */
    bool is_used;        /* waits */
    bool is_due;         /* has spoken */
    bool is_known;       /* is in the epoll set */
    bool is_gone;        /* its client went away, perhaps while nobody waited */
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
    struct tp_trim trim;   /* of the thread alone, like the next */
    uint64_t trim_ns;      /* when memory is looked at again */
    struct tp_buf speech;  /* room for what is said at the moment */

    _Atomic uint32_t n_at_door; /* threads that want the lock while a look has it */
    pthread_cond_t passed;      /* one of them has got it */
    pthread_mutex_t lock;       /* guards what follows */
    struct slot *slots;
    uint32_t n_slots;
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
    pthread_cond_init(&w->passed, NULL);
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
    pthread_cond_destroy(&w->passed);
    pthread_mutex_destroy(&w->lock);
    free(w->slots);
    tp_buf_fini(&w->speech);
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

/* Take the lock, at the next let_in() if a look has it. */
static void enter(struct tp_waiters *w)
{
    atomic_fetch_add(&w->n_at_door, 1);
    pthread_mutex_lock(&w->lock);
    atomic_fetch_sub(&w->n_at_door, 1);
    pthread_cond_signal(&w->passed);
}

/* In a look, now and then: slots may have moved afterwards. */
static void let_in(struct tp_waiters *w, uint32_t i)
{
    if (i % LET_IN_EACH == 0 && atomic_load(&w->n_at_door) > 0)
        pthread_cond_wait(&w->passed, &w->lock);
}

/* Make a slot for a descriptor; the lock is held. */
static int make_slot(struct tp_waiters *w, uint32_t fd)
{
    uint32_t n = w->n_slots == 0 ? 64 : w->n_slots;
    struct slot *slots;

    if (fd < w->n_slots)
        return TP_OK;
    while (n <= fd)
        n *= 2;
    slots = realloc(w->slots, n * sizeof(*slots));
    if (slots == NULL)
        return TP_ENOMEM;
    memset(slots + w->n_slots, 0, (n - w->n_slots) * sizeof(*slots));
    w->slots = slots;
    w->n_slots = n;
    return TP_OK;
}

/* Let a waiter go on; the lock is held. */
static void resume(struct tp_waiters *w, struct slot *s)
{
    s->is_used = s->is_due = false;
    w->n_waiting--;
    w->n_watches -= s->waiter.is_watch;
    s->waiter.resume(s->waiter.arg);
}

/* Have the hang-up of a descriptor told from now on; the lock is held. */
static bool know(struct tp_waiters *w, struct slot *s)
{
    uint64_t fd = (uint64_t)s->waiter.fd;
    struct epoll_event ev = {.events = EPOLLRDHUP | EPOLLET,
                             .data.u64 = (uint64_t)s->generation << 32 | fd};

    if (!s->is_known)
        s->is_known = epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, s->waiter.fd, &ev) == 0;
    return s->is_known;
}

int tp_waiters_add(struct tp_waiters *w, const struct tp_waiter *waiter,
                   struct tp_err *err)
{
    struct slot *s;
    bool is_gone;
    int rc;

    enter(w);
    rc = make_slot(w, (uint32_t)waiter->fd);
    if (rc != TP_OK) {
        pthread_mutex_unlock(&w->lock);
        return tp_fail(err, rc, "no memory for one more waiter");
    }
    s = &w->slots[waiter->fd];
    s->waiter = *waiter;
    s->is_used = true;
    w->n_waiting++;
    w->n_watches += waiter->is_watch;
    if (waiter->deadline_ns < w->next_deadline_ns)
        w->next_deadline_ns = waiter->deadline_ns;
    waiter->suspend(waiter->arg);
    if (w->is_draining && waiter->on_stop != NULL)
        waiter->on_stop(waiter->arg);
    is_gone = s->is_gone && !waiter->is_brief;
    if (is_gone)
        waiter->on_gone(waiter->arg);
    if (w->is_draining || is_gone || !know(w, s) ||
        waiter->ready(waiter->arg, tp_clock_now()))
        resume(w, s);
    pthread_mutex_unlock(&w->lock);
    return TP_OK;
}

void tp_waiters_forget(struct tp_waiters *w, int fd)
{
    struct slot *s;

    enter(w);
    s = fd >= 0 && (uint32_t)fd < w->n_slots ? &w->slots[fd] : NULL;
    if (s != NULL && s->is_known) {
        epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        s->is_known = s->is_gone = false;
        s->generation++;
    }
    pthread_mutex_unlock(&w->lock);
}

/* The client of a connection has gone. */
static void client_gone(struct tp_waiters *w, uint64_t id)
{
    struct slot *s;

    pthread_mutex_lock(&w->lock);
    s = &w->slots[(uint32_t)id];
    if (s->is_known && s->generation == (uint32_t)(id >> 32)) {
        s->is_gone = true;
        if (s->is_used && !s->waiter.is_brief) {
            s->waiter.on_gone(s->waiter.arg);
            resume(w, s);
        }
    }
    pthread_mutex_unlock(&w->lock);
}

/* Let one speak if it can and has something to say; the lock is held. The time is read
 * for each: whoever changes things may have been waited for. */
static bool has_spoken(struct tp_waiters *w, struct slot *s)
{
    if (s->waiter.speak == NULL)
        return false;
    w->speech.len = 0;
    s->is_due = s->waiter.speak(s->waiter.arg, tp_clock_now(), &w->speech);
    return s->is_due;
}

/* Let all speak; the lock is held. */
static void let_all_speak(struct tp_waiters *w)
{
    for (uint32_t i = 0; i < w->n_slots && w->n_waiting > 0; i++) {
        struct slot *s;

        let_in(w, i);
        s = &w->slots[i];
        if (s->is_used && !s->is_due)
            has_spoken(w, s);
    }
}

/* Whether one that waits is to be resumed. Who has spoken has heard it, and can wait
 * until others have, who were about to wait: the answers would be in their way. What
 * began only after all were let speak is said now, and the next look sees to the rest.
 */
static bool is_over(struct tp_waiters *w, struct slot *s, struct tp_now now, bool all,
                    bool others_first)
{
    const struct tp_waiter *one = &s->waiter;

    if (now.mono_ns >= one->deadline_ns)
        return true;
    if (s->is_due)
        return !others_first;
    return (all || one->is_watch) && one->ready(one->arg, now) && !has_spoken(w, s);
}

/* Ask the waiters. all = false asks only watches and looks at deadlines. Returns
 * whether to ask all again soon, though nothing has changed. */
static bool look(struct tp_waiters *w, struct tp_now now, bool all)
{
    bool others_first = false, is_again = false;

    pthread_mutex_lock(&w->lock);
    w->next_deadline_ns = UINT64_MAX;
    if (all && w->engine != NULL && tp_engine_is_telling(w->engine, now)) {
        let_all_speak(w);
        others_first = tp_engine_is_still_telling(w->engine, tp_clock_now());
    }
    for (uint32_t i = 0; i < w->n_slots && w->n_waiting > 0; i++) {
        struct slot *s;

        let_in(w, i);
        s = &w->slots[i];
        if (!s->is_used)
            continue;
        if (is_over(w, s, now, all, others_first)) {
            resume(w, s);
            continue;
        }
        is_again = is_again || s->is_due;
        if (s->waiter.deadline_ns < w->next_deadline_ns)
            w->next_deadline_ns = s->waiter.deadline_ns;
    }
    pthread_mutex_unlock(&w->lock);
    return is_again;
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
        resume(w, &w->slots[i]);
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

/* How long changes are gathered after a look. */
static uint64_t coalesce_ns(struct tp_waiters *w)
{
    uint64_t ns = COALESCE_NS + COALESCE_EACH_NS * tp_waiters_count(w);

    return ns < COALESCE_MOST_NS ? ns : COALESCE_MOST_NS;
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

/* Give memory back now and then, or have it before it is needed. */
static void tend_memory(struct tp_waiters *w, struct tp_now now)
{
    if (now.mono_ns < w->trim_ns)
        return;
    w->trim_ns = now.mono_ns + TRIM_NS;
    tp_trim_look(&w->trim, w->engine, now.mono_ns);
    tp_engine_make_ready(w->engine, now);
}

static void *run(void *arg)
{
    struct tp_waiters *w = arg;
    uint64_t open_ns = 0; /* until then changes are gathered */
    uint64_t all_ns = 0;
    uint64_t tick_ns = 0;
    bool is_again = false;

    while (!w->is_stopping) {
        struct tp_now now = tp_clock_now();
        bool was_due = now.mono_ns >= tick_ns;
        bool has_changed = false;

        if ((w->is_poked || is_again) && now.mono_ns < open_ns) {
            wait_events(w, timeout_ms(now.mono_ns, open_ns));
            continue;
        }
        has_changed = atomic_exchange(&w->is_poked, false) || was_due || is_again ||
                      now.mono_ns - all_ns >= IDLE_NS;
        if (has_changed) {
            all_ns = now.mono_ns;
            tick_ns = tp_engine_tick(w->engine, now);
            tend_memory(w, now);
        }
        if (w->workers != NULL && tp_engine_has_work(w->engine))
            tp_workers_poke(w->workers);
        is_again = look(w, now, has_changed);
        if (tick_ns <= now.mono_ns) /* it is late or wants to be asked again */
            tick_ns = now.mono_ns + MS_NS;
        now = tp_clock_now();
        open_ns = now.mono_ns + coalesce_ns(w);
        if (is_again)
            continue;
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
