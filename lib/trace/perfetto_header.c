/*
 * perfetto_header.c - descriptors from the plan and the indexes.
 *
 *   process "rank 0: python (GPU 0)"           uuid of ours: KIND_PROCESS
 *     +-- thread "stream 7"                    uuid as in the stream
 *     |     +-- "stream 7 (lane 1)"            uuid as in the stream
 *     +-- counter "HBM read"                   uuid as in the stream
 *
 * Viewers know processes and threads by positive numbers, so the plan has a number for
 * each; pids and tids as the source had them travel in private fields. Viewers sort
 * processes by name, and the names start with the rank.
 */
#include "trace/perfetto_header.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/pb.h"
#include "core/type.h"
#include "trace/chrome_head.h"
#include "trace/merge.h"
#include "trace/pf_descriptor.h"
#include "trace/pf_fields.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

/* A sequence that no stream has: their numbers are below 65536. */
#define INFO_SEQUENCE 65536

/* A longer description is in the private packet only: viewers copy what they show. */
#define SHOWN_BYTES ((size_t)1 << 20)

/* chrome/chrome_trace_event.proto: ChromeEventBundle and ChromeMetadata */
enum {
    PACKET_CHROME_EVENTS = 5,
    CHROME_METADATA = 2,
    CHROME_METADATA_NAME = 1,
    CHROME_METADATA_STRING = 2,
    CHROME_METADATA_JSON = 5
};

/* builtin_clock.proto; and clocks that a trace may number as it likes: one a stream */
enum { CLOCK_REALTIME = 1, CLOCK_PRODUCERS = 128 };

/* What the source calls a process, or how it can be told from others. Empty when the
 * number that viewers show says it all. */
static int append_process(struct tp_buf *b, const struct tp_merge_process *p,
                          struct tp_err *err)
{
    if (p->name != NULL && p->labels != NULL)
        return tp_buf_printf(b, err, "%s (%s)", p->name, p->labels);
    if (p->name != NULL)
        return tp_buf_append_str(b, p->name, err);
    if (p->labels != NULL)
        return tp_buf_append_str(b, p->labels, err);
    if (p->source.kind == TP_ID_TEXT)
        return tp_buf_append(b, p->source.text.ptr, p->source.text.len, err);
    if (p->source.kind == TP_ID_NONE)
        return tp_buf_append_str(b, "no pid", err);
    if (p->source.number != p->number)
        return tp_buf_printf(b, err, "pid %lld", (long long)p->source.number);
    return TP_OK;
}

/* "rank 0: python (GPU 0)" */
static struct tp_str process_name(const struct tp_merge *m,
                                  const struct tp_merge_process *p, struct tp_buf *b,
                                  struct tp_err *err, int *rc)
{
    size_t labelled;

    b->len = 0;
    if (m->is_merged || m->streams[p->stream].producer->has_rank)
        *rc = tp_buf_printf(b, err, "%s: ", m->labels[p->stream]);
    labelled = b->len;
    if (*rc == TP_OK)
        *rc = append_process(b, p, err);
    if (*rc == TP_OK && labelled > 0 && b->len == labelled)
        b->len -= 2; /* nothing came behind the colon */
    return (struct tp_str){b->data, b->len};
}

static struct tp_str thread_name(const struct tp_merge_thread *t, struct tp_buf *b,
                                 struct tp_err *err, int *rc)
{
    b->len = 0;
    if (t->name != NULL)
        *rc = tp_buf_append_str(b, t->name, err);
    else if (t->source.kind == TP_ID_TEXT)
        *rc = tp_buf_append(b, t->source.text.ptr, t->source.text.len, err);
    else if (t->source.kind == TP_ID_NONE)
        *rc = tp_buf_append_str(b, "no tid", err);
    else if (t->source.number != t->number)
        *rc = tp_buf_printf(b, err, "tid %lld", (long long)t->source.number);
    return (struct tp_str){b->data, b->len};
}

/* Of a process that has its pid from that of another stream: the uuid of that one. Two
 * uuids with one pid would be a pid that was used again. */
static uint64_t process_uuid(const struct tp_merge *m, size_t process)
{
    size_t owner = m->processes[process].owner, stream = m->processes[owner].stream;

    return tp_pf_uuid(TP_PF_KIND_PROCESS, m->streams[stream].index->stream_no,
                      (uint32_t)(owner - m->first_process[stream]), 0);
}

static int write_processes(const struct tp_merge *m, size_t stream, struct tp_buf *name,
                           struct tp_buf *out, struct tp_err *err)
{
    uint32_t sequence = m->streams[stream].index->stream_no;
    int rc = TP_OK;

    for (size_t i = m->first_process[stream];
         rc == TP_OK && i < m->first_process[stream + 1]; i++) {
        const struct tp_merge_process *p = &m->processes[i];
        struct tp_pf_descriptor d = {.kind = TP_PF_KIND_PROCESS,
                                     .uuid = process_uuid(m, i),
                                     .has_process = true,
                                     .shown_pid = p->number,
                                     .pid = &p->source};

        d.process_name = process_name(m, &m->processes[p->owner], name, err, &rc);
        /* What a single stream said stays as it was; several need ranks. */
        d.own_name = m->is_merged ? d.process_name : tp_str_of(p->name);
        if (rc == TP_OK)
            rc = tp_pf_write_descriptor(out, sequence, &d, err);
    }
    return rc;
}

/* The track of a thread, or of one of its extra lanes, which is a child of it. */
static int write_thread(const struct tp_merge *m, size_t stream,
                        const struct tp_merge_thread *t, struct tp_buf *name,
                        struct tp_buf *out, struct tp_err *err)
{
    const struct tp_merge_process *p = &m->processes[t->process];
    const struct tp_merge_thread *first = tp_merge_thread(m, p, &t->source, 0);
    struct tp_pf_descriptor d = {.kind = TP_PF_KIND_TRACK,
                                 .uuid = t->uuid,
                                 .parent_uuid = process_uuid(m, t->process),
                                 .pid = &p->source,
                                 .tid = &t->source,
                                 .lane = t->lane};
    int rc = TP_OK;

    if (t->lane == 0) {
        d.has_thread = true;
        d.shown_pid = p->number;
        d.shown_tid = t->number;
        d.thread_name = thread_name(t, name, err, &rc);
        d.own_name = tp_str_of(t->name);
    } else {
        d.name = thread_name(first != NULL ? first : t, name, err, &rc);
        if (first != NULL)
            d.parent_uuid = first->uuid;
        if (rc == TP_OK && name->len == 0)
            rc = tp_buf_printf(name, err, "tid %lld", (long long)t->source.number);
        if (rc == TP_OK)
            rc = tp_buf_printf(name, err, " (lane %u)", t->lane);
        d.name = (struct tp_str){name->data, name->len};
    }
    if (rc == TP_OK)
        rc = tp_pf_write_descriptor(out, m->streams[stream].index->stream_no, &d, err);
    return rc;
}

static int write_threads(const struct tp_merge *m, size_t stream, struct tp_buf *name,
                         struct tp_buf *out, struct tp_err *err)
{
    int rc = TP_OK;

    for (size_t i = m->first_thread[stream];
         rc == TP_OK && i < m->first_thread[stream + 1]; i++)
        rc = write_thread(m, stream, &m->threads[i], name, out, err);
    return rc;
}

/* The unit of a custom type, by the `cat` of its events; empty: none. */
static struct tp_str unit_of(const struct tp_trace_info *info, struct tp_str cat)
{
    for (size_t i = 0; i < info->n_types; i++)
        if (tp_str_equal(tp_type_full_name(info->types[i]), cat))
            return tp_str_of(info->types[i]->unit);
    return (struct tp_str){NULL, 0};
}

static int write_counters(const struct tp_merge *m, size_t stream,
                          const struct tp_trace_info *info, struct tp_buf *name,
                          struct tp_buf *out, struct tp_err *err)
{
    const struct tp_stream_index *ix = m->streams[stream].index;
    int rc = TP_OK;

    for (size_t i = 0; rc == TP_OK && i < ix->n_series; i++) {
        const struct tp_index_series *s = &ix->series[i];
        const struct tp_merge_process *p = tp_merge_process(m, stream, &s->pid);
        struct tp_pf_descriptor d = {
            .kind = TP_PF_KIND_SERIES,
            .uuid = s->uuid,
            .parent_uuid = process_uuid(m, (size_t)(p - m->processes)),
            .pid = &s->pid,
            .tid = &s->tid,
            .unit = unit_of(info, s->cat),
            .series = {s->series.ptr == NULL ? "" : s->series.ptr, s->series.len}};

        name->len = 0;
        rc = tp_pf_series_name(name, s->counter, s->series, err);
        d.name = (struct tp_str){name->data, name->len};
        if (rc == TP_OK)
            rc = tp_pf_write_descriptor(out, ix->stream_no, &d, err);
    }
    return rc;
}

/* Add one clock's reading to the body of a ClockSnapshot. */
static int add_clock(struct tp_buf *b, uint64_t clock, int64_t time_ns,
                     struct tp_err *err)
{
    char text[2 * (TP_PB_TAG_MAX + TP_PB_VARINT_MAX) + TP_PB_SLACK];
    char *end = tp_pb_put_u64(text, TP_PF_CLOCK_ID, clock);
    int rc;

    end = tp_pb_put_u64(end, TP_PF_CLOCK_TIMESTAMP, (uint64_t)time_ns);
    rc = tp_buf_reserve(b, tp_pb_bytes_room(sizeof(text)) + TP_PB_SLACK, err);
    if (rc == TP_OK)
        b->len = (size_t)(tp_pb_put_bytes(b->data + b->len, TP_PF_SNAPSHOT_CLOCKS, text,
                                          (size_t)(end - text)) -
                          b->data);
    return rc;
}

/* Append one packet of the trace, whose body is given in two parts. */
static int write_packet(struct tp_str start, struct tp_str rest, struct tp_buf *out,
                        struct tp_err *err)
{
    size_t n = start.len + rest.len;
    char head[TP_PB_TAG_MAX + TP_PB_VARINT_MAX + TP_PB_SLACK];
    char *p = tp_pb_put_tag(head, TP_PF_TRACE_PACKET, TP_PB_BYTES);
    int rc;

    p = tp_pb_put_varint(p, n);
    rc = tp_buf_append(out, head, (size_t)(p - head), err);
    if (rc == TP_OK)
        rc = tp_buf_append(out, start.ptr, start.len, err);
    if (rc == TP_OK)
        rc = tp_buf_append(out, rest.ptr, rest.len, err);
    return rc;
}

/* Tell a reader of ours that pids are to be taken as this header has them, and that ids
 * of the streams are not each other's. */
static int write_merged(uint32_t sequence_id, struct tp_buf *out, struct tp_err *err)
{
    char head[2 * (TP_PB_TAG_MAX + TP_PB_VARINT_MAX) + TP_PB_SLACK];
    char *p = tp_pb_put_u64(head, TP_PF_PACKET_SEQUENCE_ID, sequence_id);

    p = tp_pb_put_u64(p, TP_PF_X_PACKET_MERGED, 1);
    return write_packet((struct tp_str){head, (size_t)(p - head)},
                        (struct tp_str){"", 0}, out, err);
}

int tp_perfetto_header_stream(const struct tp_merge *m, size_t stream,
                              const struct tp_trace_info *info, struct tp_buf *out,
                              struct tp_err *err)
{
    struct tp_buf name = {0};
    int rc = tp_pf_write_clear(out, m->streams[stream].index->stream_no, err);

    if (rc == TP_OK && m->is_merged)
        rc = write_merged(m->streams[stream].index->stream_no, out, err);
    if (rc == TP_OK)
        rc = write_processes(m, stream, &name, out, err);
    if (rc == TP_OK)
        rc = write_threads(m, stream, &name, out, err);
    if (rc == TP_OK)
        rc = write_counters(m, stream, info, &name, out, err);
    tp_buf_fini(&name);
    return rc;
}

/* Add one named text to the bundle that Perfetto shows as metadata. */
static int add_metadata(struct tp_buf *b, const char *name, uint32_t field,
                        struct tp_str value, struct tp_err *err)
{
    size_t n = strlen(name);
    char head[128];
    char *p = head;
    int rc;

    if (value.len == 0)
        return TP_OK;
    /* All tags here take one byte; the name is one of ours, and short. */
    p = tp_pb_put_tag(p, CHROME_METADATA, TP_PB_BYTES);
    p = tp_pb_put_varint(p, 2 + n + 1 + tp_pb_varint_bytes(value.len) + value.len);
    p = tp_pb_put_bytes(p, CHROME_METADATA_NAME, name, n);
    p = tp_pb_put_tag(p, field, TP_PB_BYTES);
    p = tp_pb_put_varint(p, value.len);
    rc = tp_buf_append(b, head, (size_t)(p - head), err);
    return rc == TP_OK ? tp_buf_append(b, value.ptr, value.len, err) : rc;
}

/* The earliest event: a packet without a time would start a viewer's axis at 0. */
static int64_t first_ns(const struct tp_merge *m)
{
    int64_t first = 0;
    bool is_set = false;

    for (size_t i = 0; i < m->n_streams; i++) {
        const struct tp_stream_index *ix = m->streams[i].index;

        if (ix->n_events == 0 || (is_set && ix->first_ns >= first))
            continue;
        first = ix->first_ns;
        is_set = true;
    }
    return first < 0 ? 0 : first;
}

static int write_metadata(const struct tp_trace_info *info, struct tp_str json,
                          int64_t at_ns, struct tp_buf *out, struct tp_err *err)
{
    const struct {
        const char *name;
        struct tp_str value;
    } texts[] = {{"traceplane-service", info->service},
                 {"traceplane-trace", info->trace_id},
                 {"traceplane-job", info->job},
                 {"traceplane-label", info->label},
                 {"traceplane-outcome", info->outcome}};
    struct tp_buf bundle = {0};
    char head[64];
    char *p;
    int rc = TP_OK;

    if (json.len <= SHOWN_BYTES)
        rc = add_metadata(&bundle, "traceplane", CHROME_METADATA_JSON, json, err);
    for (size_t i = 0; rc == TP_OK && i < sizeof(texts) / sizeof(*texts); i++)
        rc = add_metadata(&bundle, texts[i].name, CHROME_METADATA_STRING,
                          texts[i].value, err);
    p = tp_pb_put_u64(head, TP_PF_PACKET_TIMESTAMP, (uint64_t)at_ns);
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_ID, INFO_SEQUENCE);
    /* Chrome's packets count in another clock unless they say so. */
    p = tp_pb_put_u64(p, TP_PF_PACKET_TIMESTAMP_CLOCK_ID, TP_PF_CLOCK_BOOTTIME);
    p = tp_pb_put_tag(p, PACKET_CHROME_EVENTS, TP_PB_BYTES);
    p = tp_pb_put_varint(p, bundle.len);
    if (rc == TP_OK)
        rc = write_packet((struct tp_str){head, (size_t)(p - head)},
                          (struct tp_str){bundle.data, bundle.len}, out, err);
    tp_buf_fini(&bundle);
    return rc;
}

static int write_private(struct tp_str json, struct tp_buf *out, struct tp_err *err)
{
    char head[64];
    char *p = tp_pb_put_u64(head, TP_PF_PACKET_SEQUENCE_ID, INFO_SEQUENCE);

    p = tp_pb_put_tag(p, TP_PF_X_PACKET_INFO, TP_PB_BYTES);
    p = tp_pb_put_varint(p, json.len);
    return write_packet((struct tp_str){head, (size_t)(p - head)}, json, out, err);
}

/*
 * Append a snapshot of all clocks whose offset is known: at one moment of the service's
 * clock, what each producer's clock shows. Perfetto wants the trace's own clock among
 * them; which one it stands for does not matter, since no event is converted: the seal
 * has moved them already.
 */
static int write_clocks(const struct tp_merge *m, int64_t at_ns, struct tp_buf *out,
                        struct tp_err *err)
{
    struct tp_buf clocks = {0};
    char head[64];
    char *p = tp_pb_put_u64(head, TP_PF_PACKET_SEQUENCE_ID, INFO_SEQUENCE);
    size_t n_known = 0;
    int rc = add_clock(&clocks, TP_PF_CLOCK_BOOTTIME, at_ns, err);

    if (rc == TP_OK)
        rc = add_clock(&clocks, CLOCK_REALTIME, at_ns, err);
    for (size_t i = 0; rc == TP_OK && i < m->n_streams; i++) {
        const struct tp_producer_info *producer = m->streams[i].producer;
        int64_t there_ns;

        if (!producer->has_clock ||
            __builtin_sub_overflow(at_ns, producer->clock_offset_ns, &there_ns) ||
            there_ns < 0)
            continue;
        n_known++;
        rc = add_clock(&clocks, CLOCK_PRODUCERS + m->streams[i].index->stream_no,
                       there_ns, err);
    }
    p = tp_pb_put_tag(p, TP_PF_PACKET_CLOCK_SNAPSHOT, TP_PB_BYTES);
    p = tp_pb_put_varint(p, clocks.len);
    if (rc == TP_OK && n_known > 0)
        rc = write_packet((struct tp_str){head, (size_t)(p - head)},
                          (struct tp_str){clocks.data, clocks.len}, out, err);
    tp_buf_fini(&clocks);
    return rc;
}

/* A reading of the clock of a stream, on its way into the header. */
struct reading {
    uint32_t stream_no;
    const struct tp_index_clock *clock;
};

static int by_server_time(const void *a, const void *b)
{
    const struct reading *x = a, *y = b;

    if (x->clock->server_ns != y->clock->server_ns)
        return x->clock->server_ns < y->clock->server_ns ? -1 : 1;
    return (int)x->stream_no - (int)y->stream_no;
}

static int write_reading(const struct reading *r, struct tp_buf *clocks,
                         struct tp_buf *out, struct tp_err *err)
{
    char head[64];
    char *p = tp_pb_put_u64(head, TP_PF_PACKET_SEQUENCE_ID, INFO_SEQUENCE);
    int rc;

    clocks->len = 0;
    rc = add_clock(clocks, TP_PF_CLOCK_BOOTTIME, (int64_t)r->clock->server_ns, err);
    if (rc == TP_OK)
        rc = add_clock(clocks, CLOCK_PRODUCERS + r->stream_no,
                       (int64_t)r->clock->producer_ns, err);
    p = tp_pb_put_tag(p, TP_PF_PACKET_CLOCK_SNAPSHOT, TP_PB_BYTES);
    p = tp_pb_put_varint(p, clocks->len);
    if (rc == TP_OK)
        rc = write_packet((struct tp_str){head, (size_t)(p - head)},
                          (struct tp_str){clocks->data, clocks->len}, out, err);
    return rc;
}

/*
 * All readings that the times of streams were moved by, so that whoever knows better
 * can move them anew. Readers want the trace's clock to go forward: by time, over all
 * streams, from the snapshot of all clocks on.
 */
static int write_readings(const struct tp_merge *m, int64_t from_ns, struct tp_buf *out,
                          struct tp_err *err)
{
    struct tp_buf clocks = {0};
    struct reading *all;
    size_t n = 0;
    int rc = TP_OK;

    for (size_t i = 0; i < m->n_streams; i++)
        n += m->streams[i].index->n_clocks;
    all = calloc(n + 1, sizeof(*all));
    if (all == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu readings of clocks", n);
    n = 0;
    for (size_t i = 0; i < m->n_streams; i++) {
        const struct tp_stream_index *ix = m->streams[i].index;

        for (size_t k = 0; k < ix->n_clocks; k++) {
            if ((int64_t)ix->clocks[k].server_ns > from_ns)
                all[n++] = (struct reading){ix->stream_no, &ix->clocks[k]};
        }
    }
    qsort(all, n, sizeof(*all), by_server_time);
    for (size_t i = 0; i < n && rc == TP_OK; i++)
        rc = write_reading(&all[i], &clocks, out, err);
    tp_buf_fini(&clocks);
    free(all);
    return rc;
}

int tp_perfetto_header_info(const struct tp_merge *m, const struct tp_trace_info *info,
                            const struct tp_trace_slice *slice, int64_t base_ns,
                            struct tp_buf *out, struct tp_err *err)
{
    struct tp_buf json = {0};
    struct tp_str text;
    int rc = tp_chrome_head_write_object(m, info, slice, base_ns, &json, err);

    text = (struct tp_str){json.data, json.len};
    if (rc == TP_OK)
        rc = write_private(text, out, err);
    if (rc == TP_OK)
        rc = write_metadata(info, text, first_ns(m), out, err);
    if (rc == TP_OK)
        rc = write_clocks(m, first_ns(m), out, err);
    if (rc == TP_OK)
        rc = write_readings(m, first_ns(m), out, err);
    tp_buf_fini(&json);
    return rc;
}
