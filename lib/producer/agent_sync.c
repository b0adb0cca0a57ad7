/*
 * agent_sync.c - polls and reports.
 *
 * Whatever is to be said goes with the next poll. When a poll is held already, it goes
 * with a report, which the service answers at once; a report is also what keeps the
 * clock measured, and the counts and the sign of life fresh, while a trace is recorded.
 */
#include <stdio.h>
#include <string.h>
#include <traceplane/traceplane.h>

#include "base/err.h"
#include "core/registry.h"
#include "producer/agent_state.h"

#define WAIT_MS 28000           /* for how long the service may hold a poll */
#define POLL_MS 45000           /* then it is dead */
#define REPORT_MS 10000         /* likewise for what it answers at once */
#define REPORT_NS 2000000000u   /* from one report to the next while recording */
#define HEARTBEAT_MS 10000      /* it is dead when so many reports are missing */
#define IDLE_HEARTBEAT_MS 70000 /* likewise two polls */

/* Polls that bring nothing although they were not held: on average one in IDLE_GAP_NS,
 * IDLE_BURST of them at once. */
#define IDLE_GAP_NS UINT64_C(200000000)
#define IDLE_BURST 8

/* Whether there are counts that the service may not know. */
static bool has_counts(const struct tp_agent *a)
{
    return tp_part_is_on(&a->part) ||
           (a->part.state == TP_PART_DONE && (a->part.n_acks > 0 || a->has_counts_due));
}

/* What goes into a sync: all that is new. */
static void fill_report(struct tp_agent *a, struct tp_report *r, uint64_t wait_ms)
{
    const struct tp_part *p = &a->part;
    uint64_t step_ns;

    memset(r, 0, sizeof(*r));
    r->seq = ++a->said_seq;
    /* By its answer we learn whether the trace is known; told that we record in it, a
     * service that has it would have nothing more to say. */
    r->n_acks = a->is_anew ? 0 : p->n_acks;
    memcpy(r->acks, p->acks, r->n_acks * sizeof(r->acks[0]));
    if (has_counts(a)) {
        memcpy(r->trace_id, p->trace_id, sizeof(r->trace_id));
        tp_recorder_totals(a->recorder, &a->totals);
        r->totals = &a->totals;
    }
    r->step = tp_recorder_step(a->recorder, &step_ns);
    r->has_step = r->step > 0;
    r->clock = a->exchange;
    r->wait_ms = wait_ms;
    r->takes_interim = wait_ms > 0;
    r->heartbeat_ms = has_counts(a) ? HEARTBEAT_MS : IDLE_HEARTBEAT_MS;
    r->is_plain = a->is_plain_service;
}

static bool send_sync(struct tp_agent *a, enum tp_link_channel channel,
                      struct tp_agent_sync *sync, uint64_t wait_ms, uint64_t timeout_ms)
{
    struct tp_link_request request = {.method = "POST", .timeout_ms = timeout_ms};
    struct tp_report report;
    char path[64 + TP_WIRE_ID_BYTES];

    fill_report(a, &report, wait_ms);
    sync->body.len = 0;
    if (tp_wire_write_report(&report, &sync->body, NULL) != TP_OK)
        return false;
    snprintf(path, sizeof(path), "/v1/producers/%s/sync", a->id);
    request.path = path;
    request.body = (struct tp_str){sync->body.data, sync->body.len};
    sync->n_acks = report.n_acks;
    sync->has_ahead = sync->has_news = false;
    sync->n_forgotten = a->n_forgotten;
    sync->sent_ns = (int64_t)tp_now();
    if (tp_link_begin(a->link, channel, &request, NULL) != TP_OK)
        return false;
    tp_part_told_step(&a->part, report.step);
    sync->has_counts_due = a->has_counts_due;
    a->has_counts_due = false;
    a->exchange.sent_ns = 0;
    return true;
}

/* Say that we go. The service forgets us at once and waits for nothing more. */
static void send_farewell(struct tp_agent *a)
{
    struct tp_link_request request = {.method = "DELETE", .timeout_ms = REPORT_MS};
    char path[64 + TP_WIRE_ID_BYTES];

    snprintf(path, sizeof(path), "/v1/producers/%s", a->id);
    request.path = path;
    if (tp_link_begin(a->link, TP_LINK_REPORT, &request, NULL) == TP_OK)
        a->call = TP_CALL_LEAVE;
    else
        a->is_leaving_told = true;
}

/* Whether a poll is under way whose acks the service has, as far as is known. */
static bool is_held(const struct tp_agent *a)
{
    return !a->ends && tp_link_is_busy(a->link, TP_LINK_POLL);
}

uint64_t tp_agent_acks_due(const struct tp_agent *a, uint64_t now_ns)
{
    if (!is_held(a) || a->poll.n_acks == 0 || a->part.n_acks == 0 ||
        tp_part_starts_soon(&a->part, now_ns))
        return TP_AGENT_NEVER;
    return (uint64_t)a->poll.sent_ns + REPORT_NS;
}

/*
 * Acks that no request carries now. A held poll has given up its acks to the service
 * long since, but only its answer proves it, and a poll that is lost on the way without
 * a word looks the same: so they go with a report, too, when that takes long. Where the
 * answer is on its way, the next poll takes those that are new. At the end there is no
 * next poll, and what the last one carries might come in behind the farewell.
 */
static bool has_acks(const struct tp_agent *a, uint64_t now_ns)
{
    bool is_carried = is_held(a) && now_ns < tp_agent_acks_due(a, now_ns);

    return a->part.n_acks > (is_carried ? a->poll.n_acks : 0) &&
           !(is_carried && a->poll.has_ahead);
}

bool tp_agent_may_poll(const struct tp_agent *a)
{
    return a->id[0] != '\0' && a->n_exchanges == 0 && !tp_part_is_obeying(&a->part);
}

static bool is_report_due(const struct tp_agent *a, uint64_t now_ns)
{
    return a->n_exchanges > 0 || a->has_counts_due ||
           (has_acks(a, now_ns) && !tp_part_starts_soon(&a->part, now_ns)) ||
           tp_part_has_step_news(&a->part) ||
           (tp_part_is_on(&a->part) && now_ns >= a->report_ns);
}

static bool is_idle(const struct tp_agent *a, enum tp_link_channel channel,
                    uint64_t now_ns)
{
    return !tp_link_is_busy(a->link, channel) && now_ns >= a->retry_ns[channel];
}

/* One that leaves registers only where it has to, so that the rest is taken. */
static bool may_register(const struct tp_agent *a)
{
    return !a->ends || (a->id[0] == '\0' && tp_agent_is_sending(a));
}

/* The channel REPORT has time: registrations first. */
static void use_report(struct tp_agent *a, uint64_t now_ns)
{
    if (a->id[0] == '\0' && now_ns < a->again_ns)
        return;
    if (may_register(a) && tp_agent_register(a, now_ns))
        return;
    if (a->id[0] == '\0')
        return;
    if (is_report_due(a, now_ns) && (a->ends || now_ns >= a->calm_ns) &&
        (a->ends || !tp_agent_may_poll(a) || tp_link_is_busy(a->link, TP_LINK_POLL))) {
        if (send_sync(a, TP_LINK_REPORT, &a->report, 0, REPORT_MS)) {
            a->call = TP_CALL_SYNC;
            a->report_ns = now_ns + REPORT_NS;
            a->n_exchanges -= a->n_exchanges > 0;
        }
        return;
    }
    if (a->ends && !tp_agent_is_sending(a) && !has_acks(a, now_ns) &&
        !a->is_leaving_told)
        send_farewell(a);
}

void tp_agent_sync(struct tp_agent *a, uint64_t now_ns)
{
    if (is_idle(a, TP_LINK_REPORT, now_ns))
        use_report(a, now_ns);
    if (!a->ends && tp_agent_may_poll(a) && is_idle(a, TP_LINK_POLL, now_ns) &&
        now_ns >= a->calm_ns && send_sync(a, TP_LINK_POLL, &a->poll, WAIT_MS, POLL_MS))
        a->report_ns = now_ns + REPORT_NS;
}

/* Ours for an id of the service, or TP_TYPE_NONE. What none of our types has may be
 * recorded by number, as by one who registered it with another client. */
static unsigned local_type(const struct tp_agent *a, unsigned id)
{
    const struct tp_registry *registry = tp_recorder_registry(a->recorder);

    if (id < TP_ACTIVITY_CUSTOM_BASE || a->local_ids[id] != 0)
        return id < TP_ACTIVITY_CUSTOM_BASE ? id : a->local_ids[id];
    return tp_registry_at(registry, id) == NULL ? id : TP_TYPE_NONE;
}

/* The ids of the service as ours. */
static struct tp_typeset local_types(const struct tp_agent *a,
                                     const struct tp_typeset *types)
{
    struct tp_typeset local = {0};

    for (unsigned id = tp_typeset_next(types, 0); id < 256;
         id = tp_typeset_next(types, id + 1))
        if (local_type(a, id) != TP_TYPE_NONE)
            tp_typeset_add(&local, local_type(a, id));
    return local;
}

static void obey(struct tp_agent *a, const struct tp_order *order, uint64_t now_ns)
{
    struct tp_typeset types = local_types(a, &order->types);
    bool is_new = tp_part_is_new(&a->part, order);

    if (is_new) {
        a->n_sent = 0;
        a->asked = order->types;
    }
    /* Both may take the batch away that is on its way. */
    if (is_new || order->kind == TP_ORDER_CANCEL)
        tp_agent_drop_post(a);
    if (order->kind == TP_ORDER_STOP || order->kind == TP_ORDER_CANCEL)
        a->types_retry_ns = a->types_wait_ns = 0; /* its registry is free again */
    tp_part_obey(&a->part, order, &types, &a->offset, now_ns);
    tp_agent_log(a, "%s of trace %s", tp_order_name(order->kind), order->trace_id);
}

static void take_exchange(struct tp_agent *a, const struct tp_agent_sync *sync,
                          const struct tp_orders *orders, uint64_t now_ns)
{
    struct tp_exchange x = {.sent_ns = sync->sent_ns,
                            .server_received_ns = orders->server_received_ns,
                            .server_sent_ns = orders->server_sent_ns,
                            .received_ns = (int64_t)now_ns};

    if (x.server_received_ns == 0 || x.server_sent_ns == 0)
        return;
    a->exchange = x;
    tp_clock_offset_take(&a->offset, &x);
}

/* The n oldest acks were delivered. What is on its way carries a run of the oldest,
 * too, which gets shorter. */
static void drop_acks(struct tp_agent *a, size_t n)
{
    n = n < a->part.n_acks ? n : a->part.n_acks;
    tp_part_acked(&a->part, n);
    a->poll.n_acks -= n < a->poll.n_acks ? n : a->poll.n_acks;
    a->report.n_acks -= n < a->report.n_acks ? n : a->report.n_acks;
}

/*
 * Note the number of an answer. Returns whether it is news: the answers to the poll and
 * to a report are on two connections, and the service may have said something newer
 * meanwhile. What it wanted then may be over, and what it still wants it says again.
 * Only of two that were under way at once: one that has started anew counts anew.
 */
static bool note_seq(struct tp_agent *a, const struct tp_agent_sync *sync,
                     const struct tp_orders *orders, uint64_t now_ns)
{
    if (orders->seq == 0)
        return true;
    if (orders->seq < a->heard_seq && sync->sent_ns < a->heard_ns)
        return false;
    a->heard_seq = orders->seq;
    a->heard_ns = (int64_t)now_ns;
    return true;
}

/* Obey all orders of an answer. Returns whether there was news in them. */
static bool obey_all(struct tp_agent *a, const struct tp_orders *orders,
                     uint64_t now_ns)
{
    bool has_news = false;

    for (size_t i = 0; i < orders->n; i++) {
        enum tp_part_state before = a->part.state;
        bool is_new = tp_part_is_new(&a->part, &orders->items[i]);

        obey(a, &orders->items[i], now_ns);
        has_news = has_news || is_new || a->part.state != before;
    }
    return has_news;
}

void tp_agent_heard_ahead(struct tp_agent *a, struct tp_str body, uint64_t now_ns)
{
    struct tp_orders orders;

    if (a->call == TP_CALL_LEAVE || a->is_leaving_told ||
        tp_wire_read_orders(body, &orders, NULL) != TP_OK ||
        !note_seq(a, &a->poll, &orders, now_ns))
        return; /* the answer says the same */
    a->poll.has_ahead = a->has_news = true;
    a->poll.has_news = obey_all(a, &orders, now_ns);
}

/*
 * The first answer of a service that has forgotten us and knows us again. One that has
 * our trace repeats what we are to do in it; from one that has not, or not any more, no
 * stop would ever come.
 */
static void see_whether_known(struct tp_agent *a, const struct tp_orders *orders,
                              uint64_t now_ns)
{
    a->is_anew = false;
    for (size_t i = 0; i < orders->n; i++)
        if (strcmp(orders->items[i].trace_id, a->part.trace_id) == 0)
            return;
    tp_part_disown(&a->part, now_ns);
}

/*
 * An answer came that says nothing new, whether there were no orders in it, some of a
 * kind that we do not know, or the same as before: were the next poll always sent at
 * once, a service that does not hold polls would be asked as fast as it can answer.
 */
static void calm_down(struct tp_agent *a, uint64_t now_ns)
{
    a->paced_ns = (a->paced_ns > now_ns ? a->paced_ns : now_ns) + IDLE_GAP_NS;
    if (a->paced_ns > now_ns + IDLE_BURST * IDLE_GAP_NS)
        a->calm_ns = a->paced_ns - IDLE_BURST * IDLE_GAP_NS;
}

void tp_agent_synced(struct tp_agent *a, enum tp_link_channel channel,
                     const struct tp_link_reply *reply, uint64_t now_ns)
{
    struct tp_agent_sync *sync = channel == TP_LINK_POLL ? &a->poll : &a->report;
    struct tp_orders orders;
    struct tp_err err;

    sync->has_ahead = false;
    if (channel == TP_LINK_REPORT)
        a->call = TP_CALL_NONE;
    if (a->call == TP_CALL_LEAVE || a->is_leaving_told)
        return; /* the poll that was held is answered since we go */
    if (reply->status == 404) {
        a->has_counts_due = a->has_counts_due || sync->has_counts_due;
        if (sync->n_forgotten != a->n_forgotten)
            return; /* we know, and have registered anew since, or are about to */
        tp_agent_log(a, "the service does not know us any more");
        tp_agent_forget(a, now_ns);
        return;
    }
    if (reply->status != 200) {
        /* An older service knows counts in all only. */
        a->is_plain_service = a->is_plain_service ||
                              tp_str_is(tp_wire_problem(reply->body), "unknown-field");
        a->has_counts_due = a->has_counts_due || sync->has_counts_due;
        tp_agent_failed(a, channel, reply, now_ns);
        return;
    }
    if (tp_wire_read_orders(reply->body, &orders, &err) != TP_OK) {
        struct tp_link_reply strange = {.why = err.message};

        tp_agent_failed(a, channel, &strange, now_ns);
        return;
    }
    tp_agent_succeeded(a);
    a->has_news = true;
    take_exchange(a, sync, &orders, now_ns);
    drop_acks(a, sync->n_acks);
    if (!note_seq(a, sync, &orders, now_ns))
        return;
    sync->has_news = obey_all(a, &orders, now_ns) || sync->has_news;
    if (a->is_anew && sync->n_forgotten == a->n_forgotten)
        see_whether_known(a, &orders, now_ns);
    if (!sync->has_news && (channel == TP_LINK_POLL || orders.n > 0))
        calm_down(a, now_ns);
}
