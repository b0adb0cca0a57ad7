/*
 * agent.c - the thread and its loop: take answers, do what is due, sleep.
 *
 * It sleeps in poll() until the service answers, somebody wakes it, or something is
 * due; while no trace is on, nothing is due but the poll itself. Signals are blocked in
 * it, so that none of the program's handlers ever runs here.
 */
#include "producer/agent.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <traceplane/traceplane.h>
#include <unistd.h>

#include "base/err.h"
#include "producer/agent_state.h"
#include "producer/no_cancel.h"

#define LINE_BYTES 1024

void tp_agent_log(const struct tp_agent *a, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    int n, prefix;

    if (!a->settings.has_log)
        return;
    prefix =
        snprintf(line, sizeof(line), "traceplane[%lld]: ", (long long)a->settings.pid);
    va_start(args, format);
    n = vsnprintf(line + prefix, sizeof(line) - (size_t)prefix - 1, format, args);
    va_end(args);
    if (n < 0)
        return;
    n = (int)strlen(line);
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* there is nobody to tell */
}

/* Two clients of one process differ in this alone, and they may be of two libraries
 * that know nothing of each other. Without random numbers the service makes one. */
static void draw_id(char *out)
{
    uint8_t id[TP_ULID_BINARY];
    const size_t n = sizeof(id) - TP_ULID_TIME_BYTES;

    tp_ulid_set_ms(id, tp_now() / TP_AGENT_NS_PER_MS);
    if (getrandom(id + TP_ULID_TIME_BYTES, n, GRND_NONBLOCK) == (ssize_t)n)
        tp_ulid_write(id, out);
}

/* Of the i-th backoff: another one in each process. */
static uint64_t seed_of(const struct tp_agent *a, int i)
{
    return tp_now() ^ (uint64_t)a->settings.pid << 20 ^ (uint64_t)i << 60;
}

int tp_agent_new(struct tp_settings *settings, struct tp_agent **out,
                 struct tp_err *err)
{
    struct tp_link_opts opts = {.url = settings->url,
                                .socket_path = settings->socket_path,
                                .token = settings->token};
    struct tp_agent *a = calloc(1, sizeof(*a));
    pthread_condattr_t monotonic;
    int rc;

    if (a == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a client");
    a->stats = calloc(1, sizeof(*a->stats));
    rc = a->stats == NULL ? tp_fail(err, TP_ENOMEM, "no memory for a client")
                          : tp_link_new(&opts, &a->link, err);
    if (rc != TP_OK) {
        free(a->stats);
        free(a);
        return rc;
    }
    draw_id(a->own_id);
    a->settings = *settings;
    memset(settings, 0, sizeof(*settings));
    for (int i = 0; i < TP_LINK_CHANNELS; i++)
        tp_backoff_init(&a->backoff[i], seed_of(a, i));
    tp_backoff_init(&a->forgotten, seed_of(a, TP_LINK_CHANNELS));
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&a->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = a;
    return TP_OK;
}

const struct tp_settings *tp_agent_settings(const struct tp_agent *a)
{
    return &a->settings;
}

void tp_agent_free(struct tp_agent *a)
{
    if (a == NULL)
        return;
    tp_link_free(a->link);
    tp_part_fini(&a->part);
    tp_buf_fini(&a->call_body);
    tp_buf_fini(&a->poll.body);
    tp_buf_fini(&a->report.body);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    tp_settings_fini(&a->settings);
    free(a->stats);
    free(a);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Whether there is something that waits for the service. */
static bool is_in_trace(const struct tp_agent *a)
{
    return a->part.state != TP_PART_IDLE &&
           (a->part.state != TP_PART_DONE || a->part.n_acks > 0);
}

/* Where the service ought to be, for people: of a unix socket, its path. */
static const char *scheme_of(const struct tp_settings *s)
{
    return s->socket_path[0] != '\0' ? "unix:" : "";
}

static const char *place_of(const struct tp_settings *s)
{
    return s->socket_path[0] != '\0' ? s->socket_path : s->url;
}

uint64_t tp_agent_wait_ns(const struct tp_agent *a, struct tp_backoff *b,
                          uint64_t asked_ms)
{
    uint64_t most_ms = is_in_trace(a) ? TP_BACKOFF_BUSY_MS : TP_BACKOFF_IDLE_MS;

    return tp_backoff_ms(b, most_ms, asked_ms) * TP_AGENT_NS_PER_MS;
}

void tp_agent_failed(struct tp_agent *a, enum tp_link_channel channel,
                     const struct tp_link_reply *reply, uint64_t now_ns)
{
    a->retry_ns[channel] =
        now_ns + tp_agent_wait_ns(a, &a->backoff[channel], reply->retry_after_ms);
    if (a->is_trouble_told)
        return;
    a->is_trouble_told = true;
    if (reply->status == 0)
        tp_agent_log(a, "no answer from %s%s: %s", scheme_of(&a->settings),
                     place_of(&a->settings), reply->why);
    else
        tp_agent_log(a, "%s%s answers %ld: %.*s", scheme_of(&a->settings),
                     place_of(&a->settings), reply->status,
                     (int)(reply->body.len > 300 ? 300 : reply->body.len),
                     reply->body.len == 0 ? "" : reply->body.ptr);
}

void tp_agent_succeeded(struct tp_agent *a)
{
    for (int i = 0; i < TP_LINK_CHANNELS; i++) {
        tp_backoff_reset(&a->backoff[i]);
        a->retry_ns[i] = 0;
    }
    a->is_trouble_told = false;
}

static void take_answers(struct tp_agent *a)
{
    bool is_sent = tp_link_has_sent(a->link, TP_LINK_REPORT);
    struct tp_link_reply reply;
    struct tp_str ahead;

    if (tp_link_take_ahead(a->link, TP_LINK_POLL, &ahead))
        tp_agent_heard_ahead(a, ahead, tp_now());
    if (tp_link_take(a->link, TP_LINK_POST, &reply))
        tp_agent_posted(a, &reply, tp_now());
    if (tp_link_take(a->link, TP_LINK_POLL, &reply))
        tp_agent_synced(a, TP_LINK_POLL, &reply, tp_now());
    if (!tp_link_take(a->link, TP_LINK_REPORT, &reply))
        return;
    if (a->call == TP_CALL_SYNC) {
        tp_agent_synced(a, TP_LINK_REPORT, &reply, tp_now());
    } else if (a->call == TP_CALL_LEAVE) {
        tp_agent_left(a, &reply, tp_now());
    } else {
        if (is_sent)
            tp_agent_note_known(a, &reply);
        tp_agent_registered(a, &reply, tp_now());
    }
}

static uint64_t sum(const uint64_t by_type[256])
{
    uint64_t n = 0;

    for (int i = 0; i < 256; i++)
        n += by_type[i];
    return n;
}

static void publish(struct tp_agent *a)
{
    struct tp_recorder_totals *t = &a->totals;
    struct tp_stats s = {.sent = a->n_sent, .waiting = a->part.backlog.n_events};

    tp_recorder_totals(a->recorder, t);
    s.emitted = sum(t->emitted);
    s.filtered = sum(t->filtered);
    s.dropped_ring_full = sum(t->dropped[TP_DROP_RING_FULL]);
    s.dropped_too_large = sum(t->dropped[TP_DROP_EVENT_TOO_LARGE]);
    s.dropped_backlog = sum(t->dropped[TP_DROP_BACKLOG_FULL]);
    s.dropped_after_stop = sum(t->dropped[TP_DROP_AFTER_STOP]);
    s.dropped_refused = sum(t->dropped[TP_DROP_MALFORMED]);
    s.is_registered = a->id[0] != '\0';
    s.is_recording = a->part.state == TP_PART_RECORDING;
    s.types_refused = a->n_types_refused;
    a->has_news = false;
    pthread_mutex_lock(&a->lock);
    *a->stats = s;
    pthread_mutex_unlock(&a->lock);
}

/* The flushes that were asked for by now: what is recorded before is in the rings. */
static void see_flushes(struct tp_agent *a)
{
    pthread_mutex_lock(&a->lock);
    a->flush_seen = a->n_flushes_wanted;
    pthread_mutex_unlock(&a->lock);
}

/* A flush is done when all batches are sent up to the one that was the newest when the
 * rings were empty. */
static void serve_flushes(struct tp_agent *a)
{
    const struct tp_backlog *b = &a->part.backlog;

    if (a->flush_taken < a->flush_seen && !a->part.has_events) {
        a->flush_taken = a->flush_seen;
        a->flush_seq = b->last_seq;
    }
    if (b->first != NULL && b->first->seq <= a->flush_seq)
        return;
    pthread_mutex_lock(&a->lock);
    if (a->n_flushes_done < a->flush_taken) {
        a->n_flushes_done = a->flush_taken;
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->lock);
}

/* The thread ends: nobody is to wait for it any more. */
static void end_flushes(struct tp_agent *a, bool is_all_sent)
{
    pthread_mutex_lock(&a->lock);
    if (is_all_sent)
        a->n_flushes_done = a->n_flushes_wanted;
    a->is_over = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

static bool is_waiting(const struct tp_agent *a, enum tp_link_channel channel,
                       uint64_t now_ns)
{
    return !tp_link_is_busy(a->link, channel) && a->retry_ns[channel] > now_ns;
}

/* When a report is due because of time. */
static uint64_t report_due(const struct tp_agent *a, uint64_t now_ns)
{
    uint64_t due = tp_agent_acks_due(a, now_ns);

    if (a->id[0] == '\0' || tp_link_is_busy(a->link, TP_LINK_REPORT) ||
        is_waiting(a, TP_LINK_REPORT, now_ns))
        return TP_AGENT_NEVER;
    if (tp_part_is_on(&a->part) &&
        (tp_link_is_busy(a->link, TP_LINK_POLL) || !tp_agent_may_poll(a)))
        due = least(due, a->report_ns);
    return !a->ends && due < a->calm_ns ? a->calm_ns : due;
}

/* When something is due that no answer and no wake brings. */
static uint64_t next_due(const struct tp_agent *a, uint64_t now_ns)
{
    uint64_t due = TP_AGENT_NEVER;

    for (int i = 0; i < TP_LINK_CHANNELS; i++)
        if (is_waiting(a, (enum tp_link_channel)i, now_ns))
            due = least(due, a->retry_ns[i]);
    due = least(due, report_due(a, now_ns));
    if (a->types_retry_ns > now_ns)
        due = least(due, a->types_retry_ns);
    if (a->again_ns > now_ns)
        due = least(due, a->again_ns);
    if (a->calm_ns > now_ns)
        due = least(due, a->calm_ns);
    return due;
}

static void wait_until(struct tp_agent *a, uint64_t due_ns)
{
    uint64_t now_ns = tp_now(), ms = UINT64_MAX;

    if (due_ns != TP_AGENT_NEVER)
        ms = due_ns <= now_ns
                 ? 0
                 : (due_ns - now_ns + TP_AGENT_NS_PER_MS - 1) / TP_AGENT_NS_PER_MS;
    tp_link_wait(a->link, ms);
}

/* Do what time and steps have made due in the trace. */
static uint64_t advance_part(struct tp_agent *a, uint64_t now_ns)
{
    enum tp_part_state before = a->part.state;
    uint64_t due = tp_part_advance(&a->part, now_ns);

    a->has_news = a->has_news || a->part.state != before;
    return due;
}

static void *run(void *arg)
{
    struct tp_agent *a = arg;
    bool is_all_sent;

    for (;;) {
        uint64_t now_ns = tp_now(), due;

        tp_agent_see_end(a, now_ns);
        if (tp_agent_is_over(a, now_ns))
            break;
        see_flushes(a);
        due = advance_part(a, now_ns);
        due = least(due, tp_agent_move_events(a, now_ns));
        tp_agent_sync(a, now_ns);
        if (a->has_news)
            publish(a);
        serve_flushes(a);
        due = least(least(due, tp_agent_end_due(a)), next_due(a, now_ns));
        wait_until(a, due);
        take_answers(a);
    }
    is_all_sent = tp_agent_give_up_rest(a);
    publish(a);
    end_flushes(a, is_all_sent);
    return NULL;
}

/*
 * As an ordinary thread, whatever the one is that opens the client: with a real-time
 * policy it would hold up the program's own threads, or starve when one of them spins.
 * Where that is refused (who is SCHED_IDLE may not leave it, a sandbox forbids the
 * call), it becomes what its opener is. Returns 0 or an errno.
 */
static int start_thread(struct tp_agent *a)
{
    const struct sched_param none = {.sched_priority = 0};
    pthread_attr_t ordinary;
    int rc = pthread_attr_init(&ordinary);

    if (rc != 0)
        return rc;
    pthread_attr_setinheritsched(&ordinary, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&ordinary, SCHED_OTHER);
    pthread_attr_setschedparam(&ordinary, &none);
    rc = pthread_create(&a->thread, &ordinary, run, a);
    pthread_attr_destroy(&ordinary);
    if (rc != 0 && rc != EAGAIN)
        rc = pthread_create(&a->thread, NULL, run, a);
    return rc;
}

int tp_agent_start(struct tp_agent *a, struct tp_recorder *r, struct tp_err *err)
{
    sigset_t all, before;
    int rc;

    a->recorder = r;
    tp_part_init(&a->part, r, a->settings.backlog_bytes);
    a->part.late_ns = a->settings.late_ms * TP_AGENT_NS_PER_MS;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = start_thread(a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return tp_fail(err, TP_EIO, "no thread for a client: %s", strerrorname_np(rc));
    pthread_setname_np(a->thread, "traceplane");
    a->has_thread = true;
    return TP_OK;
}

void tp_agent_wake(void *agent)
{
    struct tp_agent *a = agent;
    int before;

    if (a == NULL || atomic_load_explicit(&a->is_forgotten, memory_order_relaxed) ||
        atomic_exchange_explicit(&a->is_woken, true, memory_order_release))
        return;
    /* Nobody else wakes the thread before it has seen that it is woken. */
    before = tp_no_cancel_begin();
    tp_link_wake(a->link);
    tp_no_cancel_end(before);
}

static struct timespec monotonic_in(uint64_t ms)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000 * TP_AGENT_NS_PER_MS);
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

void tp_agent_forget_thread(struct tp_agent *a)
{
    atomic_store_explicit(&a->is_forgotten, true, memory_order_relaxed);
    tp_link_forget(a->link);
}

int tp_agent_flush(struct tp_agent *a, uint64_t timeout_ms, struct tp_err *err)
{
    struct timespec end = monotonic_in(timeout_ms);
    bool is_done, is_over;
    uint64_t mine;
    int rc = 0;

    pthread_mutex_lock(&a->lock);
    mine = ++a->n_flushes_wanted;
    pthread_mutex_unlock(&a->lock);
    tp_agent_wake(a);
    pthread_mutex_lock(&a->lock);
    while (a->n_flushes_done < mine && !a->is_over && rc == 0)
        rc = pthread_cond_timedwait(&a->changed, &a->lock, &end);
    is_done = a->n_flushes_done >= mine;
    is_over = a->is_over;
    pthread_mutex_unlock(&a->lock);
    if (is_done)
        return TP_OK;
    if (is_over)
        return tp_fail(err, TP_ESTATE,
                       "the client has ended: nothing is sent any more");
    return tp_fail(err, TP_EAGAIN, "not all is with the service after %llu ms",
                   (unsigned long long)timeout_ms);
}

void tp_agent_stats(struct tp_agent *a, struct tp_stats *stats)
{
    pthread_mutex_lock(&a->lock);
    *stats = *a->stats;
    pthread_mutex_unlock(&a->lock);
    /* A stop holds at once, and is published when the rings were looked at. */
    stats->is_recording = stats->is_recording && tp_recorder_is_recording(a->recorder);
}
