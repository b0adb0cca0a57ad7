/*
 * pf_clock.c - from the clocks of packets to one time line.
 *
 * A snapshot says what several clocks showed at one moment. A time of clock C becomes
 * one of the trace's clock P by adding P - C of the last snapshot that had both: drift
 * between snapshots is not modelled. Without any snapshot all times are taken as they
 * are. Sequence clocks (64 to 127) may count in units and in steps.
 */
#include <stdlib.h>

#include "trace/pf_fields.h"
#include "trace/pf_reader_state.h"

/* One clock of a snapshot. */
struct reading {
    uint32_t id;
    bool is_incremental;
    uint64_t ts;
    uint64_t multiplier;
};

static bool read_clock(struct tp_str bytes, struct reading *out)
{
    struct tp_pb c = {bytes.ptr, bytes.ptr + bytes.len};
    struct tp_pb_field f;

    *out = (struct reading){.multiplier = 1};
    while (c.p < c.end) {
        if (!tp_pb_get_field(&c, &f))
            return false;
        if (f.number == TP_PF_CLOCK_ID)
            out->id = (uint32_t)f.value;
        else if (f.number == TP_PF_CLOCK_TIMESTAMP)
            out->ts = f.value;
        else if (f.number == TP_PF_CLOCK_INCREMENTAL)
            out->is_incremental = f.value != 0;
        else if (f.number == TP_PF_CLOCK_MULTIPLIER_NS && f.value != 0)
            out->multiplier = f.value;
    }
    out->ts *= out->multiplier;
    return true;
}

static bool is_sequence_clock(uint32_t id)
{
    return id >= TP_PF_CLOCK_SEQUENCE_MIN && id <= TP_PF_CLOCK_SEQUENCE_MAX;
}

static struct tp_pf_trace_clock *find_trace_clock(struct tp_pf_reader *r, uint32_t id)
{
    for (uint32_t i = 0; i < r->n_clocks; i++) {
        if (r->clocks[i].id == id)
            return &r->clocks[i];
    }
    return NULL;
}

static struct tp_pf_clock *find_sequence_clock(const struct tp_pf_sequence *q,
                                               uint32_t id)
{
    for (uint32_t i = 0; i < q->n_clocks; i++) {
        if (q->clocks[i].id == id)
            return &q->clocks[i];
    }
    return NULL;
}

static void set_trace_clock(struct tp_pf_reader *r, const struct reading *reading)
{
    struct tp_pf_trace_clock *clock = find_trace_clock(r, reading->id);

    if (clock == NULL) {
        if (r->n_clocks == TP_PF_CLOCKS)
            return;
        clock = &r->clocks[r->n_clocks++];
    }
    *clock = (struct tp_pf_trace_clock){reading->id, reading->ts};
}

/* Remember a clock of a sequence; `now` is what the trace's clock showed. */
static int set_sequence_clock(struct tp_pf_sequence *q, const struct reading *reading,
                              uint64_t now, struct tp_err *err)
{
    struct tp_pf_clock *clock = find_sequence_clock(q, reading->id);

    if (clock == NULL) {
        struct tp_pf_clock *clocks =
            realloc(q->clocks, (q->n_clocks + 1) * sizeof(*clocks));

        if (clocks == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for a clock");
        q->clocks = clocks;
        clock = &clocks[q->n_clocks++];
    }
    *clock = (struct tp_pf_clock){
        .id = reading->id,
        .is_incremental = reading->is_incremental,
        .multiplier = reading->multiplier,
        .last = reading->ts,
        .shift = now - reading->ts,
    };
    return TP_OK;
}

/* Time `ts` of a clock of the whole trace on its primary one. */
static bool to_primary(struct tp_pf_reader *r, uint32_t id, uint64_t ts, uint64_t *out)
{
    const struct tp_pf_trace_clock *from = find_trace_clock(r, id);
    const struct tp_pf_trace_clock *to = find_trace_clock(r, r->primary_clock);

    if (id == r->primary_clock || r->n_clocks == 0) {
        *out = ts;
        return true;
    }
    if (from == NULL || to == NULL)
        return false;
    *out = ts - from->ts + to->ts;
    return true;
}

/* First pass over a snapshot: clocks of the whole trace, and a moment on the primary
 * clock that the clocks of the sequence are at. */
static bool read_trace_clocks(struct tp_pf_reader *r, struct tp_str bytes,
                              uint64_t *now, bool *has_now)
{
    struct tp_pb c = {bytes.ptr, bytes.ptr + bytes.len};
    struct tp_pb_field f;
    struct reading reading;
    struct reading any = {0};

    *has_now = false;
    while (c.p < c.end) {
        if (!tp_pb_get_field(&c, &f))
            return false;
        if (f.number == TP_PF_SNAPSHOT_PRIMARY && f.value != 0)
            r->primary_clock = (uint32_t)f.value;
        if (f.number != TP_PF_SNAPSHOT_CLOCKS || f.wire != TP_PB_BYTES)
            continue;
        if (!read_clock((struct tp_str){f.bytes, f.value}, &reading))
            return false;
        if (!is_sequence_clock(reading.id)) {
            set_trace_clock(r, &reading);
            if (any.id == 0 || reading.id == r->primary_clock)
                any = reading;
        }
    }
    if (any.id != 0)
        *has_now = to_primary(r, any.id, any.ts, now);
    return true;
}

int tp_pf_reader_snapshot(struct tp_pf_reader *r, struct tp_pf_sequence *q,
                          struct tp_str bytes, struct tp_err *err)
{
    struct tp_pb c = {bytes.ptr, bytes.ptr + bytes.len};
    struct tp_pb_field f;
    struct reading reading;
    uint64_t now = 0;
    bool has_now;

    if (!read_trace_clocks(r, bytes, &now, &has_now))
        return tp_fail(err, TP_EINVAL, "a clock snapshot is damaged");
    while (c.p < c.end && tp_pb_get_field(&c, &f)) {
        if (f.number != TP_PF_SNAPSHOT_CLOCKS || f.wire != TP_PB_BYTES)
            continue;
        if (!read_clock((struct tp_str){f.bytes, f.value}, &reading))
            break;
        if (is_sequence_clock(reading.id)) {
            /* Alone in a snapshot, a clock shows the trace's time itself. */
            int rc = set_sequence_clock(q, &reading, has_now ? now : reading.ts, err);

            if (rc != TP_OK)
                return rc;
        }
    }
    return TP_OK;
}

bool tp_pf_reader_time(struct tp_pf_reader *r, struct tp_pf_sequence *q,
                       const struct tp_pf_packet *packet, int64_t *ts_ns)
{
    uint32_t id = packet->clock_id != 0 ? packet->clock_id : q->default_clock;
    uint64_t ts = packet->ts;
    struct tp_pf_clock *clock;

    if (id == 0)
        id = TP_PF_CLOCK_BOOTTIME;
    if (q->is_ours || id == r->primary_clock) {
        *ts_ns = (int64_t)ts;
        return true;
    }
    if (!is_sequence_clock(id)) {
        if (!to_primary(r, id, ts, &ts))
            return false;
        *ts_ns = (int64_t)ts;
        return true;
    }
    clock = find_sequence_clock(q, id);
    if (clock == NULL)
        return false;
    ts *= clock->multiplier;
    if (clock->is_incremental) {
        ts += clock->last;
        clock->last = ts;
    }
    *ts_ns = (int64_t)(ts + clock->shift);
    return true;
}
