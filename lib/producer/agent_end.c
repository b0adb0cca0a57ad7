/*
 * agent_end.c - how a client ends: all is sent, then it leaves the service.
 *
 *   asked to --> recorder stopped --> rings --> backlog --> stop told --> DELETE
 *                                       |          |                        ^
 *                                       +----------+--- time to send over --+
 *
 * A thread asks for it at any moment of a turn, so it is looked at once a turn: were
 * the farewell decided by another look than the stop, it would go out in front of all
 * that the rings hold. As soon as the rings are empty the service is told what was
 * counted, and knows from then on what it misses, however this ends. The last part of
 * the bound is for the farewell, so that nobody waits for one who has gone with events
 * unsent.
 */
#include <stdio.h>
#include <traceplane/record.h>

#include "base/err.h"
#include "producer/agent_state.h"

#define FAREWELL_SHARE 4 /* of the bound, at most: */
#define FAREWELL_MOST_NS (500 * TP_AGENT_NS_PER_MS)

static bool is_flushing(const struct tp_agent *a)
{
    return a->part.state == TP_PART_FLUSHING;
}

/* There is no other time to try than now. */
static void try_at_once(struct tp_agent *a)
{
    for (int i = 0; i < TP_LINK_CHANNELS; i++) {
        tp_backoff_reset(&a->backoff[i]);
        a->retry_ns[i] = 0;
    }
    a->again_ns = a->calm_ns = 0;
}

/* Nothing is waited for that is late. */
static void end_late(struct tp_agent *a)
{
    tp_part_advance(&a->part, TP_AGENT_NEVER);
}

/* The rings are emptied all the same, for the counts: the recorder is stopped, so they
 * have an end. */
static void cut_off(struct tp_agent *a)
{
    struct tp_err err;

    a->is_cut_off = true;
    a->retry_ns[TP_LINK_REPORT] = 0;
    end_late(a);
    while (tp_part_is_draining(&a->part) &&
           tp_part_drain(&a->part, &a->offset, &err) == TP_OK && a->part.has_events)
        continue;
}

/* Look whether it is to end. Returns whether it was asked to since the last look. */
static bool look(struct tp_agent *a)
{
    bool is_new;

    pthread_mutex_lock(&a->lock);
    is_new = a->is_ending && !a->ends;
    a->ends = a->is_ending;
    pthread_mutex_unlock(&a->lock);
    return is_new;
}

/* Without an answer, the farewell goes by the id that was asked for. */
static void assume_known(struct tp_agent *a)
{
    if (a->id[0] == '\0' && a->may_be_known)
        snprintf(a->id, sizeof(a->id), "%s", a->own_id);
}

void tp_agent_see_end(struct tp_agent *a, uint64_t now_ns)
{
    if (look(a)) {
        try_at_once(a);
        /* The poll that has them may come in behind the farewell. */
        a->has_counts_due =
            a->has_counts_due ||
            (tp_link_is_busy(a->link, TP_LINK_POLL) && a->poll.has_counts_due);
    }
    if (!a->ends)
        return;
    tp_part_leave(&a->part, now_ns);
    if (is_flushing(a) && !a->takes_late)
        end_late(a);
    if (!is_flushing(a)) { /* it takes part in nothing any more */
        a->n_exchanges = 0;
        assume_known(a);
    }
    if (is_flushing(a) && !a->is_cut_off && now_ns >= a->cut_ns)
        cut_off(a);
    if (is_flushing(a) && a->part.is_drained && !a->is_counted)
        a->is_counted = a->has_counts_due = true;
}

/* Whether the service may make a producer of us, which has to be removed again. */
static bool is_registering(const struct tp_agent *a)
{
    return a->call == TP_CALL_PRODUCER && tp_link_has_sent(a->link, TP_LINK_REPORT);
}

void tp_agent_note_known(struct tp_agent *a, const struct tp_link_reply *reply)
{
    if (a->call == TP_CALL_PRODUCER)
        a->may_be_known = reply->status == 0 && a->own_id[0] != '\0' &&
                          a->wire_age == TP_WIRE_NOW;
}

bool tp_agent_is_sending(const struct tp_agent *a)
{
    return is_flushing(a) && !a->is_cut_off;
}

bool tp_agent_is_over(const struct tp_agent *a, uint64_t now_ns)
{
    if (!a->ends)
        return false;
    return a->is_leaving_told || now_ns >= a->end_ns ||
           (a->id[0] == '\0' && !tp_agent_is_sending(a) && !is_registering(a));
}

uint64_t tp_agent_end_due(const struct tp_agent *a)
{
    if (!a->ends)
        return TP_AGENT_NEVER;
    return tp_agent_is_sending(a) ? a->cut_ns : a->end_ns;
}

void tp_agent_left(struct tp_agent *a, const struct tp_link_reply *reply,
                   uint64_t now_ns)
{
    a->call = TP_CALL_NONE;
    if (reply->status == 429 || reply->status / 100 == 5)
        tp_agent_failed(a, TP_LINK_REPORT, reply, now_ns); /* once more */
    else
        a->is_leaving_told = true;
}

bool tp_agent_give_up_rest(struct tp_agent *a)
{
    bool is_all_sent;

    if (tp_agent_is_sending(a))
        cut_off(a);
    is_all_sent = !is_flushing(a);
    tp_agent_drop_post(a); /* its batch goes, too */
    for (int i = 0; i < TP_LINK_CHANNELS; i++)
        tp_link_drop(a->link, (enum tp_link_channel)i);
    if (a->part.backlog.n_events > 0)
        tp_agent_log(a, "%llu events of trace %s were not sent in time",
                     (unsigned long long)a->part.backlog.n_events, a->part.trace_id);
    tp_part_give_up(&a->part);
    tp_recorder_end_late(a->recorder);
    return is_all_sent;
}

static bool is_asked(struct tp_agent *a)
{
    bool is_ending;

    pthread_mutex_lock(&a->lock);
    is_ending = a->is_ending;
    pthread_mutex_unlock(&a->lock);
    return is_ending;
}

void tp_agent_ask_to_end(struct tp_agent *a, uint64_t bound_ms, bool takes_late)
{
    uint64_t bound_ns = bound_ms * TP_AGENT_NS_PER_MS,
             farewell_ns = bound_ns / FAREWELL_SHARE;

    if (!a->has_thread || is_asked(a))
        return;
    /* Now, and not when the thread looks: it may have a lot to drain, and all that came
     * on top of it would have to go within the bound, too. */
    tp_recorder_stop(a->recorder, 0);
    if (farewell_ns > FAREWELL_MOST_NS)
        farewell_ns = FAREWELL_MOST_NS;
    pthread_mutex_lock(&a->lock);
    a->is_ending = true;
    a->takes_late = takes_late;
    a->end_ns = tp_now() + bound_ns;
    a->cut_ns = a->end_ns - farewell_ns;
    pthread_mutex_unlock(&a->lock);
    tp_agent_wake(a);
}

void tp_agent_stop(struct tp_agent *a, uint64_t bound_ms)
{
    if (!a->has_thread)
        return;
    tp_agent_ask_to_end(a, bound_ms, true);
    pthread_join(a->thread, NULL);
    a->has_thread = false;
}
