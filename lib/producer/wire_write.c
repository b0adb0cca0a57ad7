/*
 * wire_write.c - reports and registrations as JSON.
 */
#include "base/buf.h"
#include "base/json_doc.h"
#include "base/timefmt.h"
#include "producer/recorder.h"
#include "producer/settings.h"
#include "producer/wire.h"

#define ALL_TYPES 256

const char *tp_order_name(enum tp_order_kind kind)
{
    static const char *const names[TP_ORDERS] = {
        [TP_ORDER_PREPARE] = "prepare",
        [TP_ORDER_START] = "start",
        [TP_ORDER_STOP] = "stop",
        [TP_ORDER_CANCEL] = "cancel",
    };

    return (unsigned)kind < TP_ORDERS ? names[kind] : "unknown";
}

static void put_text(struct tp_json_doc *d, const char *key, const char *value)
{
    if (value != NULL && value[0] != '\0')
        tp_json_doc_member_str(d, key, tp_str_of(value));
}

static void put_str(struct tp_json_doc *d, const char *key, struct tp_str value)
{
    if (value.len > 0)
        tp_json_doc_member_str(d, key, value);
}

static void put_time(struct tp_json_doc *d, const char *key, int64_t wall_ns)
{
    char text[TP_TIMEFMT_BYTES];

    tp_json_doc_member_str(d, key, tp_str_of(tp_timefmt_write(wall_ns, text)));
}

static void put_ack(struct tp_json_doc *d, const struct tp_ack *ack, bool is_plain)
{
    tp_json_doc_object(d);
    put_text(d, "trace_id", ack->trace_id);
    put_text(d, "command", tp_order_name(ack->kind));
    if (ack->is_refused) {
        tp_json_doc_member_bool(d, "refused", true);
        put_text(d, "reason", ack->reason);
    }
    if (ack->started_at_ns != 0)
        put_time(d, "started_at", ack->started_at_ns);
    if (ack->step != 0 && !is_plain)
        tp_json_doc_member_u64(d, "step", ack->step);
    tp_json_doc_close(d);
}

static void put_acks(struct tp_json_doc *d, const struct tp_report *r)
{
    if (r->n_acks == 0)
        return;
    tp_json_doc_key(d, "acks");
    tp_json_doc_array(d);
    for (size_t i = 0; i < r->n_acks; i++)
        put_ack(d, &r->acks[i], r->is_plain);
    tp_json_doc_close(d);
}

/* Of one type, or of all when type is ALL_TYPES. */
static uint64_t sum_of(const uint64_t by_type[256], unsigned type)
{
    uint64_t sum = 0;

    if (type < ALL_TYPES)
        return by_type[type];
    for (unsigned i = 0; i < ALL_TYPES; i++)
        sum += by_type[i];
    return sum;
}

static void put_totals(struct tp_json_doc *d, const struct tp_recorder_totals *t,
                       unsigned type)
{
    tp_json_doc_member_u64(d, "emitted", sum_of(t->emitted, type));
    tp_json_doc_member_u64(d, "filtered", sum_of(t->filtered, type));
    tp_json_doc_key(d, "dropped");
    tp_json_doc_object(d);
    for (int i = 0; i < TP_DROP_CAUSES; i++) {
        uint64_t n = sum_of(t->dropped[i], type);

        if (n > 0)
            tp_json_doc_member_u64(d, tp_drop_cause_name((enum tp_drop_cause)i), n);
    }
    tp_json_doc_close(d);
}

static void put_types(struct tp_json_doc *d, const struct tp_recorder_totals *t)
{
    tp_json_doc_key(d, "types");
    tp_json_doc_array(d);
    for (unsigned type = 0; type < ALL_TYPES; type++) {
        if (t->emitted[type] == 0)
            continue;
        tp_json_doc_object(d);
        tp_json_doc_member_u64(d, "type", type);
        put_totals(d, t, type);
        tp_json_doc_close(d);
    }
    tp_json_doc_close(d);
}

static void put_counts(struct tp_json_doc *d, const struct tp_report *r)
{
    if (r->trace_id[0] == '\0')
        return;
    tp_json_doc_key(d, "counts");
    tp_json_doc_array(d);
    tp_json_doc_object(d);
    put_text(d, "trace_id", r->trace_id);
    put_totals(d, r->totals, ALL_TYPES);
    if (!r->is_plain)
        put_types(d, r->totals);
    tp_json_doc_close(d);
    tp_json_doc_close(d);
}

static void put_clock(struct tp_json_doc *d, const struct tp_exchange *x)
{
    if (x->sent_ns == 0)
        return;
    tp_json_doc_key(d, "clock");
    tp_json_doc_object(d);
    put_time(d, "sent_at", x->sent_ns);
    put_time(d, "server_received_at", x->server_received_ns);
    put_time(d, "server_sent_at", x->server_sent_ns);
    put_time(d, "received_at", x->received_ns);
    tp_json_doc_close(d);
}

int tp_wire_write_report(const struct tp_report *report, struct tp_buf *out,
                         struct tp_err *err)
{
    struct tp_json_doc d;

    tp_json_doc_init(&d, out, err);
    tp_json_doc_object(&d);
    if (report->seq != 0 && !report->is_plain)
        tp_json_doc_member_u64(&d, "seq", report->seq);
    put_acks(&d, report);
    put_counts(&d, report);
    if (report->has_step)
        tp_json_doc_member_u64(&d, "step", report->step);
    put_clock(&d, &report->clock);
    if (report->heartbeat_ms != 0 && !report->is_plain)
        tp_json_doc_member_u64(&d, "heartbeat_ms", report->heartbeat_ms);
    tp_json_doc_member_u64(&d, "wait_ms", report->wait_ms);
    if (report->takes_interim && !report->is_plain)
        tp_json_doc_member_bool(&d, "interim", true);
    tp_json_doc_close(&d);
    return tp_json_doc_end(&d);
}

int tp_wire_write_producer(const struct tp_settings *s, const char *id,
                           enum tp_wire_age age, struct tp_buf *out, struct tp_err *err)
{
    struct tp_json_doc d;

    tp_json_doc_init(&d, out, err);
    tp_json_doc_object(&d);
    if (age == TP_WIRE_NOW)
        put_text(&d, "id", id);
    put_text(&d, "job", s->job);
    put_text(&d, "name", s->name);
    put_text(&d, "kind", "native");
    if (s->rank >= 0)
        tp_json_doc_member_i64(&d, "rank", s->rank);
    if (s->world_size > 0)
        tp_json_doc_member_u64(&d, "world_size", s->world_size);
    put_text(&d, "host", s->host);
    tp_json_doc_member_i64(&d, "pid", s->pid);
    put_text(&d, "backend", s->backend);
    put_text(&d, "device", s->device);
    if (age != TP_WIRE_NO_PROCESS_KEYS)
        put_text(&d, "process", s->process);
    tp_json_doc_close(&d);
    return tp_json_doc_end(&d);
}

static void put_type(struct tp_json_doc *d, const struct tp_type_spec *t)
{
    tp_json_doc_object(d);
    put_str(d, "plugin", t->plugin);
    put_str(d, "type_name", t->type_name);
    put_str(d, "description", t->description);
    put_str(d, "unit", t->unit);
    if (t->kind != TP_TYPE_KIND_UNSET)
        put_text(d, "kind", tp_type_kind_name(t->kind));
    tp_json_doc_close(d);
}

int tp_wire_write_types(const char *job, const struct tp_type_spec *types, size_t n,
                        struct tp_buf *out, struct tp_err *err)
{
    struct tp_json_doc d;

    tp_json_doc_init(&d, out, err);
    tp_json_doc_object(&d);
    put_text(&d, "job", job);
    tp_json_doc_key(&d, "types");
    tp_json_doc_array(&d);
    for (size_t i = 0; i < n; i++)
        put_type(&d, &types[i]);
    tp_json_doc_close(&d);
    tp_json_doc_close(&d);
    return tp_json_doc_end(&d);
}
