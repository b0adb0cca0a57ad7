/*
 * part.c - orders, one function each; and the way of events from rings to backlog.
 *
 * The start is given to the recorder a little before its time, so that the moment is
 * met by the comparison of times and not by how soon this thread wakes up; it is
 * acknowledged only when that time has come.
 */
#include "producer/part.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "producer/recorder.h"

#define BATCH_BYTES (1u << 20)
#define BATCH_ROOM (64u << 10) /* a batch may be over its size by one event */
#define SOON_NS 500000000u     /* a start that is no further off is near */
#define EARLY_NS 2000000u      /* the recorder is told its start so long before */
#define NS_PER_MS UINT64_C(1000000)
#define DRIFT_DIVISOR 1000 /* clocks part by less than that, in any case */
#define DURATION_MOST_MS UINT64_C(315360000000) /* ten years: more is no limit */

void tp_part_init(struct tp_part *p, struct tp_recorder *recorder, size_t limit_bytes)
{
    memset(p, 0, sizeof(*p));
    p->recorder = recorder;
    p->backlog.limit_bytes = limit_bytes;
}

void tp_part_fini(struct tp_part *p)
{
    tp_backlog_clear(&p->backlog);
}

static bool is_same_trace(const struct tp_part *p, const struct tp_order *order)
{
    return p->state != TP_PART_IDLE && strcmp(p->trace_id, order->trace_id) == 0;
}

static struct tp_ack *add_ack(struct tp_part *p, enum tp_order_kind kind,
                              const char *trace_id)
{
    struct tp_ack *ack;

    for (size_t i = 0; i < p->n_acks; i++)
        if (p->acks[i].kind == kind && strcmp(p->acks[i].trace_id, trace_id) == 0)
            return &p->acks[i];
    if (p->n_acks == TP_WIRE_ACKS_MAX)
        tp_part_acked(p, 1); /* the service asks again for what it misses */
    ack = &p->acks[p->n_acks++];
    memset(ack, 0, sizeof(*ack));
    ack->kind = kind;
    snprintf(ack->trace_id, sizeof(ack->trace_id), "%s", trace_id);
    return ack;
}

static void refuse(struct tp_part *p, const struct tp_order *order, const char *reason)
{
    struct tp_ack *ack = add_ack(p, order->kind, order->trace_id);

    ack->is_refused = true;
    snprintf(ack->reason, sizeof(ack->reason), "%s", reason);
}

static uint64_t present_step(const struct tp_part *p)
{
    uint64_t at_ns;

    return tp_recorder_step(p->recorder, &at_ns);
}

static void set_duration(struct tp_part *p, const struct tp_order *order)
{
    p->duration_ns =
        order->duration_ms > DURATION_MOST_MS ? 0 : order->duration_ms * NS_PER_MS;
}

/* RECORDING: when it ends by itself, if nobody says stop before; UINT64_MAX = never. */
static uint64_t own_end_ns(const struct tp_part *p)
{
    if (p->duration_ns == 0)
        return UINT64_MAX;
    return p->start_at_ns + p->duration_ns + p->duration_ns / DRIFT_DIVISOR +
           TP_PART_GRACE_NS;
}

/* Have the agent woken when a step comes that matters. */
static void set_alarm(struct tp_part *p)
{
    uint64_t step = present_step(p), at = UINT64_MAX;

    if ((p->state == TP_PART_RECORDING || p->state == TP_PART_FLUSHING) && p->steps > 0)
        at = p->base_step + p->steps > step ? p->base_step + p->steps : step + 1;
    tp_recorder_set_alarm(p->recorder, at);
}

static void end_late(struct tp_part *p)
{
    tp_recorder_end_late(p->recorder);
    p->late_end_ns = 0;
}

/* Of a trace that takes no more: what is left of it counts as dropped, in the rings,
 * too. Without memory to read those, what is in them counts nowhere. */
static void charge_rest(struct tp_part *p)
{
    const struct tp_drain_opts opts = {.stream_no = p->stream_no,
                                       .max_bytes = BATCH_BYTES,
                                       .is_last = true};
    struct tp_batch *spare = NULL;
    bool has_more = tp_part_is_draining(p);

    tp_recorder_stop(p->recorder, 0);
    end_late(p);
    for (const struct tp_batch *b = p->backlog.first; b != NULL; b = b->next)
        tp_recorder_charge(p->recorder, TP_DROP_AFTER_STOP, b->events.by_type);
    if (!has_more ||
        tp_backlog_get(&p->backlog, BATCH_BYTES + BATCH_ROOM, &spare, NULL) != TP_OK)
        return;
    for (; has_more; has_more = spare->events.has_more) {
        spare->payload.len = 0;
        if (tp_recorder_drain(p->recorder, &opts, &spare->payload, &spare->events,
                              NULL) != TP_OK)
            break;
        tp_recorder_charge(p->recorder, TP_DROP_AFTER_STOP, spare->events.by_type);
    }
    tp_backlog_return(&p->backlog, spare);
}

/* What is left of a trace that the service has given up is of no use. */
static void forget_trace(struct tp_part *p)
{
    tp_recorder_stop(p->recorder, 0);
    end_late(p);
    tp_recorder_discard(p->recorder);
    tp_recorder_set_alarm(p->recorder, UINT64_MAX);
    tp_backlog_clear(&p->backlog);
    p->is_stop_due = false;
}

/* Another stream of the same trace: we are somebody else to the service now, and what
 * we had was the other's. */
bool tp_part_is_new(const struct tp_part *p, const struct tp_order *order)
{
    return order->kind == TP_ORDER_PREPARE &&
           (!is_same_trace(p, order) ||
            (order->stream_no != 0 && order->stream_no != p->stream_no));
}

static void prepare(struct tp_part *p, const struct tp_order *order,
                    const struct tp_typeset *types)
{
    if (!tp_part_is_new(p, order)) {
        if (p->state == TP_PART_DONE)
            refuse(p, order, "it has recorded its part of this trace already");
        else
            add_ack(p, TP_ORDER_PREPARE, order->trace_id);
        return;
    }
    if (order->stream_no == 0) {
        refuse(p, order, "the command names no stream");
        return;
    }
    forget_trace(p);
    snprintf(p->trace_id, sizeof(p->trace_id), "%s", order->trace_id);
    p->state = TP_PART_ARMED;
    p->stream_no = order->stream_no;
    p->start_step = order->start_step;
    p->steps = order->start_step != 0 ? order->steps : 0;
    set_duration(p, order);
    p->told_step = 0;
    p->is_started = p->is_drained = p->is_start_known = false;
    tp_recorder_arm(p->recorder, types, order->min_duration_ns);
    if (p->start_step != 0)
        tp_recorder_set_steps(p->recorder, p->start_step, p->steps);
    add_ack(p, TP_ORDER_PREPARE, order->trace_id);
    set_alarm(p);
}

static void ack_start(struct tp_part *p)
{
    struct tp_ack *ack = add_ack(p, TP_ORDER_START, p->trace_id);

    ack->started_at_ns = (int64_t)p->start_at_ns;
    ack->step = p->base_step;
}

/* Whether it has begun already, by a step in the thread that took it. */
static void see_start(struct tp_part *p)
{
    if (p->state != TP_PART_ARMED || p->start_step == 0 ||
        !tp_recorder_has_begun(p->recorder, &p->start_at_ns, &p->base_step))
        return;
    p->is_started = true;
    p->state = TP_PART_RECORDING;
    ack_start(p);
    set_alarm(p);
}

/*
 * A trace that starts at a step starts elsewhere when that step begins there; here it
 * waits for the step, so that all processes record the same ones. One that counts no
 * steps has nothing to wait for.
 */
static void start(struct tp_part *p, const struct tp_order *order,
                  const struct tp_clock_offset *offset, uint64_t now_ns)
{
    int64_t at_ns = (int64_t)now_ns;

    if (!is_same_trace(p, order))
        return; /* a prepare for it comes first */
    p->is_start_known = true;
    set_duration(p, order);
    if (p->is_started &&
        (p->state == TP_PART_RECORDING || p->state == TP_PART_FLUSHING))
        ack_start(p);
    if (p->state != TP_PART_ARMED || (p->start_step != 0 && present_step(p) > 0))
        return;
    if (order->start_at_ns != 0)
        at_ns = tp_clock_offset_local(offset, order->start_at_ns);
    p->start_at_ns = at_ns > (int64_t)now_ns ? (uint64_t)at_ns : now_ns;
    p->steps = order->steps;
    p->state = TP_PART_STARTING;
    tp_recorder_set_steps(p->recorder, 0, 0);
}

/* Stop the recorder; what it holds goes out from now on. */
static void stop_recorder(struct tp_part *p, uint64_t at_ns)
{
    tp_recorder_stop(p->recorder, at_ns);
    p->state = TP_PART_FLUSHING;
    set_alarm(p);
    p->is_drained = !p->is_started;
    p->late_end_ns = p->is_started && p->late_ns > 0 ? at_ns + p->late_ns : 0;
    if (p->late_end_ns == 0)
        end_late(p);
}

static void end_if_flushed(struct tp_part *p)
{
    if (p->state != TP_PART_FLUSHING || !p->is_drained || !p->is_stop_due ||
        p->backlog.first != NULL)
        return;
    p->state = TP_PART_DONE;
    p->is_stop_due = false;
    tp_backlog_trim(&p->backlog);
    add_ack(p, TP_ORDER_STOP, p->trace_id);
}

static void stop(struct tp_part *p, const struct tp_order *order, uint64_t now_ns)
{
    if (!is_same_trace(p, order)) {
        add_ack(p, TP_ORDER_STOP, order->trace_id); /* it has nothing of it */
        return;
    }
    if (p->state == TP_PART_DONE) {
        add_ack(p, TP_ORDER_STOP, p->trace_id);
        return;
    }
    if (p->state != TP_PART_FLUSHING)
        stop_recorder(p, now_ns);
    p->is_start_known = true;
    p->is_stop_due = true;
    end_if_flushed(p);
}

void tp_part_obey(struct tp_part *p, const struct tp_order *order,
                  const struct tp_typeset *types, const struct tp_clock_offset *offset,
                  uint64_t now_ns)
{
    see_start(p);
    switch (order->kind) {
    case TP_ORDER_PREPARE:
        prepare(p, order, types);
        break;
    case TP_ORDER_START:
        start(p, order, offset, now_ns);
        break;
    case TP_ORDER_STOP:
        stop(p, order, now_ns);
        break;
    case TP_ORDER_CANCEL:
        if (is_same_trace(p, order)) {
            charge_rest(p);
            forget_trace(p);
            p->state = TP_PART_DONE;
        }
        add_ack(p, TP_ORDER_CANCEL, order->trace_id);
        break;
    case TP_ORDERS:
        break;
    }
}

/* The start is near or has come. */
static uint64_t advance_start(struct tp_part *p, uint64_t now_ns)
{
    if (!p->is_started && now_ns + EARLY_NS < p->start_at_ns)
        return p->start_at_ns - EARLY_NS;
    if (!p->is_started) {
        tp_recorder_start(p->recorder, p->start_at_ns);
        p->is_started = true;
    }
    if (now_ns < p->start_at_ns)
        return p->start_at_ns;
    p->state = TP_PART_RECORDING;
    p->base_step = tp_recorder_set_steps(p->recorder, 0, p->steps);
    ack_start(p);
    set_alarm(p);
    return own_end_ns(p);
}

/* RECORDING: its steps are done, or its time is over and no stop has come. */
static void end_if_due(struct tp_part *p, uint64_t now_ns)
{
    uint64_t end_ns = own_end_ns(p), at_ns = 0;

    if (p->steps > 0 &&
        tp_recorder_step(p->recorder, &at_ns) - p->base_step >= p->steps)
        stop_recorder(p, at_ns); /* which a step has done already, at its moment */
    else if (now_ns >= end_ns)
        stop_recorder(p, end_ns);
}

/* The time for what is late is over, or will be. */
static uint64_t advance_late(struct tp_part *p, uint64_t now_ns)
{
    if (now_ns < p->late_end_ns)
        return p->late_end_ns;
    end_late(p);
    return UINT64_MAX;
}

uint64_t tp_part_advance(struct tp_part *p, uint64_t now_ns)
{
    if (p->state == TP_PART_STARTING)
        return advance_start(p, now_ns);
    see_start(p);
    if (p->late_end_ns != 0)
        return advance_late(p, now_ns);
    if (p->state == TP_PART_RECORDING)
        end_if_due(p, now_ns);
    if (p->state == TP_PART_RECORDING)
        return own_end_ns(p);
    return p->late_end_ns != 0 ? p->late_end_ns : UINT64_MAX;
}

bool tp_part_is_on(const struct tp_part *p)
{
    return p->state == TP_PART_STARTING || p->state == TP_PART_RECORDING ||
           p->state == TP_PART_FLUSHING;
}

bool tp_part_is_draining(const struct tp_part *p)
{
    return p->is_started &&
           (p->state == TP_PART_STARTING || p->state == TP_PART_RECORDING ||
            (p->state == TP_PART_FLUSHING && !p->is_drained));
}

/* Whether nothing comes into the rings any more. */
static bool is_last_drain(const struct tp_part *p)
{
    return p->state == TP_PART_FLUSHING && p->late_end_ns == 0;
}

/* One batch from rings to backlog. */
static int drain_batch(struct tp_part *p, const struct tp_clock_offset *offset,
                       bool *has_more, struct tp_err *err)
{
    struct tp_drain_opts opts = {
        .stream_no = p->stream_no,
        .max_bytes = BATCH_BYTES,
        .is_last = is_last_drain(p),
        .has_clock = offset->is_known,
        .clock = {.producer_ns = (uint64_t)offset->at_ns,
                  .server_ns = (uint64_t)(offset->at_ns + offset->offset_ns),
                  .error_ns = offset->error_ns},
    };
    struct tp_batch *batch = NULL;
    int rc = tp_backlog_get(&p->backlog, BATCH_BYTES + BATCH_ROOM, &batch, err);

    if (rc != TP_OK)
        return rc;
    rc = tp_recorder_drain(p->recorder, &opts, &batch->payload, &batch->events, err);
    if (rc != TP_OK) {
        tp_backlog_return(&p->backlog, batch);
        return rc;
    }
    *has_more = batch->events.has_more;
    if (batch->events.n_events == 0) {
        tp_backlog_return(&p->backlog, batch);
    } else if (!tp_backlog_has_room(&p->backlog, batch->payload.len)) {
        tp_recorder_charge(p->recorder, TP_DROP_BACKLOG_FULL, batch->events.by_type);
        tp_backlog_return(&p->backlog, batch);
    } else {
        tp_backlog_push(&p->backlog, batch);
    }
    return TP_OK;
}

int tp_part_drain(struct tp_part *p, const struct tp_clock_offset *offset,
                  struct tp_err *err)
{
    bool has_more = false;
    int rc = drain_batch(p, offset, &has_more, err);

    p->has_events = rc != TP_OK || has_more;
    if (rc == TP_OK && is_last_drain(p) && !has_more) {
        p->is_drained = true;
        end_if_flushed(p);
    }
    return rc;
}

void tp_part_sent(struct tp_part *p)
{
    tp_backlog_pop(&p->backlog);
    end_if_flushed(p);
}

void tp_part_lose_batch(struct tp_part *p, enum tp_drop_cause cause)
{
    tp_recorder_charge(p->recorder, cause, p->backlog.first->events.by_type);
    tp_part_sent(p);
}

void tp_part_give_up(struct tp_part *p)
{
    if (p->state == TP_PART_IDLE || p->state == TP_PART_DONE)
        return;
    charge_rest(p);
    forget_trace(p);
    p->state = TP_PART_DONE;
}

void tp_part_leave(struct tp_part *p, uint64_t now_ns)
{
    see_start(p);
    if (p->state != TP_PART_STARTING && p->state != TP_PART_RECORDING &&
        p->state != TP_PART_FLUSHING)
        return;
    if (p->state != TP_PART_FLUSHING)
        stop_recorder(p, now_ns);
    p->is_stop_due = true;
    end_if_flushed(p);
}

void tp_part_disown(struct tp_part *p, uint64_t now_ns)
{
    tp_part_leave(p, now_ns);
    if (p->state != TP_PART_ARMED)
        return;
    forget_trace(p); /* it would begin with its step */
    p->state = TP_PART_DONE;
}

bool tp_part_starts_soon(const struct tp_part *p, uint64_t now_ns)
{
    return p->state == TP_PART_STARTING && p->start_at_ns < now_ns + SOON_NS;
}

bool tp_part_is_obeying(const struct tp_part *p)
{
    return p->state == TP_PART_STARTING || p->is_stop_due;
}

bool tp_part_has_step_news(const struct tp_part *p)
{
    uint64_t step = present_step(p);

    return step != p->told_step && p->steps > 0 &&
           (p->state == TP_PART_RECORDING || p->state == TP_PART_FLUSHING);
}

void tp_part_told_step(struct tp_part *p, uint64_t step)
{
    p->told_step = step;
    set_alarm(p);
}

bool tp_part_may_post(const struct tp_part *p)
{
    return p->is_start_known;
}

void tp_part_acked(struct tp_part *p, size_t n)
{
    for (size_t i = 0; i < n && i < p->n_acks; i++)
        if (p->acks[i].kind == TP_ORDER_START &&
            strcmp(p->acks[i].trace_id, p->trace_id) == 0)
            p->is_start_known = true;
    p->n_acks -= n;
    memmove(p->acks, p->acks + n, p->n_acks * sizeof(p->acks[0]));
}
