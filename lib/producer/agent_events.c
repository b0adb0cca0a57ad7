/*
 * agent_events.c - from the rings to the service.
 *
 * Draining goes on while a batch is on its way and while the service is away. Batches
 * go out one after the other, so the service gets the events of each thread in order.
 */
#include <stdio.h>

#include "base/err.h"
#include "producer/agent_state.h"

#define POST_MS 30000
#define DRAIN_NS UINT64_C(250000000) /* while recording, when no ring calls for it */
#define DRAIN_RETRY_NS 50000000u
#define BATCHES_MAX 16 /* at once, before answers are looked at again */
#define MEDIA "application/x-perfetto-trace"

static void drain(struct tp_agent *a, uint64_t now_ns)
{
    struct tp_err err;

    a->has_news = true;
    for (int i = 0; i < BATCHES_MAX; i++) {
        if (tp_part_drain(&a->part, &a->offset, &err) != TP_OK) {
            tp_agent_log(a, "%s", err.message);
            a->drain_ns = now_ns + DRAIN_RETRY_NS;
            return;
        }
        if (!a->part.has_events)
            break;
    }
    /* One batch goes out in each round trip: where that takes longer than a batch takes
     * to come about, more would come than go, however small they are. */
    a->drain_ns = a->part.has_events
                      ? now_ns
                      : now_ns + DRAIN_NS * tp_backlog_slowdown(&a->part.backlog);
}

static void post(struct tp_agent *a)
{
    const struct tp_batch *batch = a->part.backlog.first;
    struct tp_link_request request = {.method = "POST",
                                      .content_type = MEDIA,
                                      .body = {batch->payload.data, batch->payload.len},
                                      .timeout_ms = POST_MS};
    char path[128 + 2 * TP_WIRE_ID_BYTES];

    snprintf(path, sizeof(path), "/v1/traces/%s/events?producer=%s&seq=%llu",
             a->part.trace_id, a->id, (unsigned long long)batch->seq);
    request.path = path;
    a->is_posting = tp_link_begin(a->link, TP_LINK_POST, &request, NULL) == TP_OK;
}

/* Whether the service takes events of us now. */
static bool may_post(const struct tp_agent *a, uint64_t now_ns)
{
    return !a->is_posting && a->id[0] != '\0' && a->call != TP_CALL_LEAVE &&
           !a->is_leaving_told && tp_part_may_post(&a->part) &&
           now_ns >= a->retry_ns[TP_LINK_POST];
}

uint64_t tp_agent_move_events(struct tp_agent *a, uint64_t now_ns)
{
    bool is_woken = atomic_exchange_explicit(&a->is_woken, false, memory_order_acquire);

    is_woken = is_woken || a->flush_seen > a->flush_taken ||
               a->part.state == TP_PART_FLUSHING;
    if (tp_part_is_draining(&a->part) && (is_woken || now_ns >= a->drain_ns))
        drain(a, now_ns);
    if (a->part.backlog.first != NULL && may_post(a, now_ns))
        post(a);
    if (tp_part_is_draining(&a->part))
        return a->drain_ns;
    return TP_AGENT_NEVER;
}

void tp_agent_drop_post(struct tp_agent *a)
{
    if (a->is_posting)
        tp_link_drop(a->link, TP_LINK_POST);
    a->is_posting = false;
}

/* The trace is over, for us at least. */
static void give_up(struct tp_agent *a, const struct tp_link_reply *reply)
{
    tp_agent_log(a, "trace %s takes no more events (%ld)", a->part.trace_id,
                 reply->status);
    tp_part_give_up(&a->part);
    a->has_counts_due = true;
}

/* A batch has gone: the next one need not wait for as long any more. */
static void quicken(struct tp_agent *a, uint64_t now_ns)
{
    uint64_t next_ns = now_ns + DRAIN_NS * tp_backlog_slowdown(&a->part.backlog);

    if (a->drain_ns > next_ns)
        a->drain_ns = next_ns;
}

void tp_agent_posted(struct tp_agent *a, const struct tp_link_reply *reply,
                     uint64_t now_ns)
{
    uint64_t n = a->part.backlog.first->events.n_events;
    bool is_over = reply->status == 404 || reply->status == 409;
    /* A limit of the trace: the service has counted the batch as dropped itself. */
    bool is_full = reply->status == 429 &&
                   tp_str_is(tp_wire_problem(reply->body), "limit-exceeded");

    a->is_posting = false;
    a->has_news = true;
    if (reply->status / 100 == 2 || is_full) {
        a->n_sent += n;
        tp_part_sent(&a->part);
        tp_agent_succeeded(a);
        quicken(a, now_ns);
    } else if (is_over) {
        give_up(a, reply);
    } else if (reply->status == 400 || reply->status == 413 || reply->status == 415 ||
               reply->status == 422) {
        tp_agent_log(a, "a batch of %llu events was refused: %ld %.*s",
                     (unsigned long long)n, reply->status,
                     (int)(reply->body.len > 300 ? 300 : reply->body.len),
                     reply->body.len == 0 ? "" : reply->body.ptr);
        tp_part_lose_batch(&a->part, TP_DROP_MALFORMED);
        a->has_counts_due = true;
    } else {
        tp_agent_failed(a, TP_LINK_POST, reply, now_ns);
    }
}
