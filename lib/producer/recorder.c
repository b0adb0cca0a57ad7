/*
 * recorder.c - making, arming, starting and stopping; steps; counts; fork.
 *
 * What recording threads see of all this are the bytes of the enabled set and the
 * number of the session. A session is a number that no other trace of any recorder of
 * this process has had, so that a thread finds with one comparison that its ring is not
 * yet in it, and the agent that a record is not of it.
 */
#include "producer/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/registry.h"
#include "producer/batch.h"
#include "producer/device_tracks.h"
#include "producer/recorder_state.h"
#include "producer/texts.h"

#define RING_BYTES_DEFAULT ((size_t)1 << 20)
#define ALL_BYTES_DEFAULT ((size_t)256 << 20)
#define NEVER UINT64_MAX

struct tp_client tp_client_off;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* guards list */
static struct tp_recorder *list;
static _Atomic uint64_t last_number; /* of recorders and of sessions */

static uint64_t new_number(void)
{
    return atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
}

/* What is asked of the rings, with the defaults. */
static int read_sizes(const struct tp_recorder_opts *opts, struct tp_ring_owner *owner,
                      struct tp_err *err)
{
    size_t n = opts->ring_bytes != 0 ? opts->ring_bytes : RING_BYTES_DEFAULT;
    size_t all = opts->rings_bytes_max != 0 ? opts->rings_bytes_max : ALL_BYTES_DEFAULT;

    if (n < TP_RING_BYTES_MIN || n > TP_RING_BYTES_MAX || (n & (n - 1)) != 0)
        return tp_fail(err, TP_EINVAL,
                       "a ring of %zu bytes is not a power of two from %zu to %zu", n,
                       TP_RING_BYTES_MIN, TP_RING_BYTES_MAX);
    if (all < n)
        return tp_fail(err, TP_EINVAL,
                       "%zu bytes for all rings are less than the %zu of one", all, n);
    owner->ring_bytes = n;
    owner->all_bytes_max = all;
    return TP_OK;
}

static void enlist(struct tp_recorder *r)
{
    pthread_mutex_lock(&list_lock);
    r->next = list;
    list = r;
    pthread_mutex_unlock(&list_lock);
}

static void delist(struct tp_recorder *r)
{
    pthread_mutex_lock(&list_lock);
    for (struct tp_recorder **at = &list; *at != NULL; at = &(*at)->next) {
        if (*at == r) {
            *at = r->next;
            break;
        }
    }
    pthread_mutex_unlock(&list_lock);
}

/* Take in what is asked, and record nothing. */
static void begin_idle(struct tp_recorder *r, const struct tp_recorder_opts *opts)
{
    tp_lock_init(&r->control);
    r->block_ns = opts->block_ns;
    r->takes_late = opts->takes_late;
    r->wake = opts->wake;
    r->wake_arg = opts->wake_arg;
    r->alarm = NEVER;
    r->wake_step = NEVER;
    r->first_step = NEVER;
    r->end_step = NEVER;
    r->session = new_number();
    tp_ticks_init();
    r->line = *tp_ticks_line();
}

int tp_recorder_new(const struct tp_recorder_opts *opts, struct tp_recorder **out,
                    struct tp_err *err)
{
    static const struct tp_recorder_opts defaults;
    struct tp_ring_owner owner = {.recorder_id = new_number()};
    struct tp_recorder *r;
    int rc;

    if (opts == NULL)
        opts = &defaults;
    rc = read_sizes(opts, &owner, err);
    if (rc != TP_OK)
        return rc;
    r = calloc(1, sizeof(*r));
    if (r == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a client");
    rc = tp_registry_new(NULL, &r->registry, err);
    if (rc == TP_OK)
        rc = tp_batch_new(&r->batch, err);
    if (rc != TP_OK)
        goto fail;
    r->owner = owner;
    begin_idle(r, opts);
    enlist(r);

    *out = r;
    return TP_OK;

fail:
    tp_batch_free(r->batch);
    tp_registry_free(r->registry);
    free(r);
    return rc;
}

void tp_recorder_free(struct tp_recorder *r)
{
    if (r == NULL)
        return;
    delist(r);
    tp_rings_release(&r->owner);
    tp_batch_free(r->batch);
    tp_registry_free(r->registry);
    tp_lock_fini(&r->control);
    free(r);
}

struct tp_client *tp_recorder_client(struct tp_recorder *r)
{
    return &r->client;
}

struct tp_recorder *tp_recorder_of(struct tp_client *client)
{
    return client == NULL || client == &tp_client_off ? NULL
                                                      : (struct tp_recorder *)client;
}

void tp_recorder_set_agent(struct tp_recorder *r, struct tp_agent *agent)
{
    r->agent = agent;
}

struct tp_agent *tp_recorder_agent(const struct tp_recorder *r)
{
    return r->agent;
}

struct tp_registry *tp_recorder_registry(struct tp_recorder *r)
{
    return r->registry;
}

void tp_recorder_wake(struct tp_recorder *r)
{
    if (r->wake != NULL &&
        atomic_exchange_explicit(&r->is_woken, 1, memory_order_relaxed) == 0)
        r->wake(r->wake_arg);
}

void tp_recorder_call_agent(struct tp_recorder *r)
{
    atomic_store_explicit(&r->is_woken, 0, memory_order_relaxed);
    tp_recorder_wake(r);
}

/* Write the bytes that tp_enabled() reads. */
static void enable(struct tp_recorder *r, bool is_on)
{
    for (unsigned type = 0; type < 256; type++)
        __atomic_store_n(&r->client.enabled[type],
                         is_on && type != TP_TYPE_NONE &&
                             tp_typeset_has(&r->types, type),
                         __ATOMIC_RELAXED);
}

/* The next step at which tp_step() has something to do. */
static void set_next_alarm(struct tp_recorder *r)
{
    uint64_t next = r->wake_step;

    if (r->phase == TP_RECORDER_ARMED && r->first_step < next)
        next = r->first_step;
    if (r->phase == TP_RECORDER_RECORDING && r->end_step < next)
        next = r->end_step;
    atomic_store_explicit(&r->alarm, next, memory_order_relaxed);
}

void tp_recorder_arm(struct tp_recorder *r, const struct tp_typeset *types,
                     uint64_t min_duration_ns)
{
    tp_lock_take(&r->control);
    enable(r, false);
    r->phase = TP_RECORDER_ARMED;
    r->types = *types;
    r->first_step = NEVER;
    r->end_step = NEVER;
    r->n_steps = 0;
    tp_ticks_calibrate();
    r->line = *tp_ticks_line();
    r->min_duration_ns = min_duration_ns;
    r->first_ns = 0;
    memset(r->emitted, 0, sizeof(r->emitted));
    memset(r->filtered, 0, sizeof(r->filtered));
    memset(r->charged, 0, sizeof(r->charged));
    for (unsigned i = 0; i < TP_RECORDER_LOSERS; i++) {
        for (int type = 0; type < 256; type++)
            atomic_store_explicit(&r->lost[i][type], 0, memory_order_relaxed);
    }
    atomic_store_explicit(&r->start_ns, NEVER, memory_order_relaxed);
    atomic_store_explicit(&r->stop_ns, NEVER, memory_order_relaxed);
    atomic_store_explicit(&r->stop_ticks, NEVER, memory_order_relaxed);
    atomic_store_explicit(&r->session, new_number(), memory_order_relaxed);
    atomic_store_explicit(&r->is_woken, 0, memory_order_relaxed);
    tp_batch_begin_trace(r->batch);
    set_next_alarm(r);
    tp_lock_give(&r->control);
}

/* Under control. */
static void remove_type(struct tp_recorder *r, unsigned type)
{
    tp_typeset_remove(&r->types, type);
    __atomic_store_n(&r->client.enabled[type], 0, __ATOMIC_RELAXED);
}

/* The agent hears of the type as soon as it is there, but adds it under control. */
int tp_recorder_register(struct tp_recorder *r, const struct tp_type_spec *spec,
                         struct tp_registration *out, struct tp_err *err)
{
    int rc;

    tp_lock_take(&r->control);
    rc = tp_registry_register(r->registry, spec, out, NULL, err);
    if (rc == TP_OK && out->is_new)
        remove_type(r, out->id);
    tp_lock_give(&r->control);
    return rc;
}

void tp_recorder_remove_type(struct tp_recorder *r, unsigned type)
{
    tp_lock_take(&r->control);
    remove_type(r, type);
    tp_lock_give(&r->control);
}

void tp_recorder_add_type(struct tp_recorder *r, unsigned type)
{
    tp_lock_take(&r->control);
    tp_typeset_add(&r->types, type);
    if (r->phase == TP_RECORDER_RECORDING)
        enable(r, true);
    tp_lock_give(&r->control);
}

/* Under control. */
static void start(struct tp_recorder *r, uint64_t at_ns)
{
    if (r->phase != TP_RECORDER_ARMED)
        return;
    r->phase = TP_RECORDER_RECORDING;
    r->begin_step = atomic_load_explicit(&r->step, memory_order_relaxed);
    if (r->n_steps != 0)
        r->end_step = r->begin_step + r->n_steps;
    atomic_store_explicit(&r->start_ticks, tp_ticks_at(&r->line, at_ns),
                          memory_order_relaxed);
    atomic_store_explicit(&r->start_ns, at_ns, memory_order_relaxed);
    enable(r, true);
    set_next_alarm(r);
}

/* Under control. */
static void stop(struct tp_recorder *r, uint64_t at_ns)
{
    if (r->phase == TP_RECORDER_RECORDING) {
        atomic_store_explicit(&r->stop_ns, at_ns, memory_order_relaxed);
        atomic_store_explicit(&r->stop_ticks, tp_ticks_at(&r->line, at_ns),
                              memory_order_relaxed);
    }
    r->phase = TP_RECORDER_STOPPED;
    if (!r->takes_late)
        enable(r, false);
    set_next_alarm(r);
}

void tp_recorder_end_late(struct tp_recorder *r)
{
    tp_lock_take(&r->control);
    if (r->phase == TP_RECORDER_STOPPED)
        enable(r, false);
    tp_lock_give(&r->control);
}

void tp_recorder_start(struct tp_recorder *r, uint64_t at_ns)
{
    tp_lock_take(&r->control);
    start(r, at_ns);
    tp_lock_give(&r->control);
}

void tp_recorder_stop(struct tp_recorder *r, uint64_t at_ns)
{
    tp_lock_take(&r->control);
    stop(r, at_ns != 0 ? at_ns : tp_now());
    tp_lock_give(&r->control);
}

bool tp_recorder_has_begun(struct tp_recorder *r, uint64_t *start_ns, uint64_t *step)
{
    bool has_begun;

    tp_lock_take(&r->control);
    has_begun = atomic_load_explicit(&r->start_ns, memory_order_relaxed) != NEVER;
    if (has_begun) {
        *start_ns = atomic_load_explicit(&r->start_ns, memory_order_relaxed);
        *step = r->begin_step;
    }
    tp_lock_give(&r->control);
    return has_begun;
}

bool tp_recorder_is_recording(const struct tp_recorder *r)
{
    struct tp_recorder *mutable = (struct tp_recorder *)r;
    bool is_recording;

    tp_lock_take(&mutable->control);
    is_recording = r->phase == TP_RECORDER_RECORDING;
    tp_lock_give(&mutable->control);
    return is_recording;
}

uint64_t tp_recorder_first_ns(const struct tp_recorder *r)
{
    return r->first_ns;
}

uint64_t tp_recorder_step(const struct tp_recorder *r, uint64_t *at_ns)
{
    *at_ns = atomic_load_explicit(&r->step_ns, memory_order_relaxed);
    return atomic_load_explicit(&r->step, memory_order_relaxed);
}

void tp_recorder_set_alarm(struct tp_recorder *r, uint64_t step)
{
    tp_lock_take(&r->control);
    r->wake_step = step;
    set_next_alarm(r);
    tp_lock_give(&r->control);
}

uint64_t tp_recorder_set_steps(struct tp_recorder *r, uint64_t first, uint64_t n)
{
    uint64_t step;

    tp_lock_take(&r->control);
    step = atomic_load_explicit(&r->step, memory_order_relaxed);
    r->first_step = first != 0 ? first : NEVER;
    r->n_steps = n;
    if (r->phase == TP_RECORDER_RECORDING)
        r->end_step = n == 0 ? NEVER : step + n;
    set_next_alarm(r);
    tp_lock_give(&r->control);
    return step;
}

/* A step that something was waiting for. */
static void reach_step(struct tp_recorder *r, uint64_t step, uint64_t now_ns)
{
    tp_lock_take(&r->control);
    if (step >= r->first_step && r->phase == TP_RECORDER_ARMED)
        start(r, now_ns);
    else if (step >= r->end_step && r->phase == TP_RECORDER_RECORDING)
        stop(r, now_ns);
    if (step >= r->wake_step)
        r->wake_step = NEVER;
    set_next_alarm(r);
    tp_lock_give(&r->control);
    tp_recorder_call_agent(r);
}

uint64_t tp_step(struct tp_client *client)
{
    struct tp_recorder *r = tp_recorder_of(client);
    uint64_t now_ns;
    uint64_t step;

    if (r == NULL)
        return 0;
    now_ns = tp_now();
    step = atomic_fetch_add_explicit(&r->step, 1, memory_order_relaxed) + 1;
    atomic_store_explicit(&r->step_ns, now_ns, memory_order_relaxed);
    if (step >= atomic_load_explicit(&r->alarm, memory_order_relaxed))
        reach_step(r, step, now_ns);
    return step;
}

/* Add what the ring of a thread has dropped in the session. */
static void add_dropped(const struct tp_ring *g, uint64_t session,
                        struct tp_recorder_totals *out)
{
    static const enum tp_drop_cause causes[TP_RING_DROPS] = {
        [TP_RING_DROP_FULL] = TP_DROP_RING_FULL,
        [TP_RING_DROP_TOO_LARGE] = TP_DROP_EVENT_TOO_LARGE};

    if (atomic_load_explicit(&g->counted_session, memory_order_acquire) != session)
        return;
    for (int i = 0; i < TP_RING_DROPS; i++) {
        for (int type = 0; type < 256; type++) {
            uint64_t n =
                atomic_load_explicit(&g->dropped[i][type], memory_order_relaxed);

            out->dropped[causes[i]][type] += n;
            out->emitted[type] += n;
        }
    }
}

void tp_recorder_totals(struct tp_recorder *r, struct tp_recorder_totals *out)
{
    uint64_t session = atomic_load_explicit(&r->session, memory_order_relaxed);

    memcpy(out->emitted, r->emitted, sizeof(out->emitted));
    memcpy(out->filtered, r->filtered, sizeof(out->filtered));
    memcpy(out->dropped, r->charged, sizeof(out->dropped));
    for (int type = 0; type < 256; type++) {
        uint64_t n = 0;

        for (unsigned i = 0; i < TP_RECORDER_LOSERS; i++)
            n += atomic_load_explicit(&r->lost[i][type], memory_order_relaxed);
        out->dropped[TP_DROP_RING_FULL][type] += n;
        out->emitted[type] += n;
    }
    for (struct tp_ring *g =
             atomic_load_explicit(&r->owner.rings, memory_order_acquire);
         g != NULL;
         g = atomic_load_explicit(&g->next_of_recorder, memory_order_relaxed))
        add_dropped(g, session, out);
}

void tp_recorder_charge(struct tp_recorder *r, enum tp_drop_cause cause,
                        const uint32_t *by_type)
{
    for (int type = 0; type < 256; type++)
        r->charged[cause][type] += by_type[type];
}

void tp_recorders_before_fork(void)
{
    pthread_mutex_lock(&list_lock);
    for (struct tp_recorder *r = list; r != NULL; r = r->next)
        tp_lock_take(&r->control);
    for (struct tp_recorder *r = list; r != NULL; r = r->next)
        tp_registry_hold(r->registry);
    tp_rings_lock();
    tp_texts_lock();
    tp_device_tracks_lock();
    tp_ticks_lock();
}

static void after_fork(void)
{
    tp_ticks_unlock();
    tp_device_tracks_unlock();
    tp_texts_unlock();
    tp_rings_unlock();
    for (struct tp_recorder *r = list; r != NULL; r = r->next) {
        tp_registry_let_go(r->registry);
        tp_lock_give(&r->control);
    }
    pthread_mutex_unlock(&list_lock);
}

void tp_recorders_after_fork_parent(void)
{
    after_fork();
}

void tp_recorders_after_fork_child(void)
{
    tp_rings_forked();
    for (struct tp_recorder *r = list; r != NULL; r = r->next) {
        enable(r, false);
        r->phase = TP_RECORDER_IDLE;
        atomic_store_explicit(&r->session, new_number(), memory_order_relaxed);
        r->wake_step = NEVER;
        r->first_step = NEVER;
        set_next_alarm(r);
    }
    after_fork();
}
