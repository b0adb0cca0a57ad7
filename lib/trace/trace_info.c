/*
 * trace_info.c - the JSON of what a download says about itself.
 *
 * What is not known is left out, so that a reader can tell it from zero. "rank" is
 * written without a blank behind its colon everywhere but in distributedInfo: tools
 * that look for the first `"rank": N` of a file must find that one.
 */
#include "trace/trace_info.h"

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/json_write.h"
#include "base/timefmt.h"
#include "core/activity.h"
#include "core/type.h"
#include "core/type_counts.h"
#include "trace/stream_index.h"

static void member_text(struct tp_json_doc *d, const char *key, struct tp_str s)
{
    if (s.len > 0)
        tp_json_doc_member_str(d, key, s);
}

/* A text member on a line of its own. */
static void line_text(struct tp_json_doc *d, const char *key, struct tp_str s)
{
    if (s.len == 0)
        return;
    tp_json_doc_line(d, 2);
    tp_json_doc_member_str(d, key, s);
}

static void line_raw(struct tp_json_doc *d, const char *key, struct tp_str json)
{
    if (json.len == 0)
        return;
    tp_json_doc_line(d, 2);
    tp_json_doc_member_raw(d, key, json);
}

static void member_time(struct tp_json_doc *d, const char *key, int64_t wall_ns)
{
    char text[TP_TIMEFMT_BYTES];

    tp_json_doc_member_str(d, key, tp_str_of(tp_timefmt_write(wall_ns, text)));
}

static void line_time(struct tp_json_doc *d, const char *key, int64_t wall_ns)
{
    if (wall_ns == 0)
        return;
    tp_json_doc_line(d, 2);
    member_time(d, key, wall_ns);
}

static void write_notes(struct tp_json_doc *d, const struct tp_str *notes, size_t n)
{
    if (n == 0)
        return;
    tp_json_doc_key(d, "notes");
    tp_json_doc_array(d);
    for (size_t i = 0; i < n; i++)
        tp_json_doc_str(d, notes[i]);
    tp_json_doc_close(d);
}

static void write_counts(struct tp_json_doc *d, const struct tp_counts *c)
{
    tp_json_doc_object(d);
    tp_json_doc_member_u64(d, "emitted", c->emitted);
    tp_json_doc_member_u64(d, "stored", c->stored);
    tp_json_doc_member_u64(d, "filtered", c->filtered);
    tp_json_doc_member_u64(d, "dropped", tp_counts_dropped(c));
    tp_json_doc_key(d, "dropped_by_cause");
    tp_json_doc_object(d);
    for (int i = 0; i < TP_DROP_CAUSES; i++)
        if (c->dropped[i] > 0)
            tp_json_doc_member_u64(d, tp_drop_cause_name(i), c->dropped[i]);
    tp_json_doc_close(d);
    tp_json_doc_member_u64(d, "repaired", c->repaired);
    tp_json_doc_member_u64(d, "untyped", c->untyped);
    tp_json_doc_member_u64(d, "bytes", c->bytes);
    tp_json_doc_close(d);
}

int tp_trace_info_write_counts(const struct tp_counts *counts, struct tp_buf *out,
                               struct tp_err *err)
{
    struct tp_json_doc d;

    tp_json_doc_init(&d, out, err);
    write_counts(&d, counts);
    return tp_json_doc_end(&d);
}

/* Write "rank":N without the blank of other members; see the top. */
static void write_rank(struct tp_json_doc *d, uint32_t rank)
{
    char text[sizeof("\"rank\":") + TP_JSON_U64_BYTES] = "\"rank\":";
    char *end = tp_json_put_u64(text + sizeof("\"rank\":") - 1, rank);

    tp_json_doc_raw(d, (struct tp_str){text, (size_t)(end - text)});
}

static void write_who(struct tp_json_doc *d, const struct tp_producer_info *p)
{
    member_text(d, "id", p->id);
    member_text(d, "name", p->name);
    member_text(d, "kind", p->kind);
    if (p->has_rank)
        write_rank(d, p->rank);
    if (p->world_size > 0)
        tp_json_doc_member_u64(d, "world_size", p->world_size);
    member_text(d, "host", p->host);
    if (p->pid != 0)
        tp_json_doc_member_i64(d, "pid", p->pid);
    member_text(d, "backend", p->backend);
    member_text(d, "device", p->device);
    member_text(d, "joined_with", p->joined_with);
    member_text(d, "join_note", p->join_note);
}

static void write_types(struct tp_json_doc *d, const struct tp_producer_info *p)
{
    if (p->n_types == 0)
        return;
    tp_json_doc_key(d, "types");
    tp_json_doc_array(d);
    for (size_t i = 0; i < p->n_types; i++) {
        const struct tp_type_count *t = &p->types[i];

        tp_json_doc_object(d);
        tp_json_doc_member_u64(d, "type", t->id);
        tp_json_doc_member_u64(d, "emitted", t->emitted);
        tp_json_doc_member_u64(d, "stored", t->stored);
        tp_json_doc_member_u64(d, "filtered", t->filtered);
        tp_json_doc_key(d, "dropped");
        tp_json_doc_object(d);
        for (int k = 0; k < TP_DROP_CAUSES; k++)
            if (t->dropped[k] > 0)
                tp_json_doc_member_u64(d, tp_drop_cause_name(k), t->dropped[k]);
        tp_json_doc_close(d);
        tp_json_doc_close(d);
    }
    tp_json_doc_close(d);
}

/* Readings of its clock: its time, the service's, and how wrong that may be. */
static void write_readings(struct tp_json_doc *d, const struct tp_producer_info *p)
{
    if (p->n_clocks == 0)
        return;
    tp_json_doc_key(d, "readings");
    tp_json_doc_array(d);
    for (size_t i = 0; i < p->n_clocks; i++) {
        tp_json_doc_array(d);
        tp_json_doc_u64(d, p->clocks[i].producer_ns);
        tp_json_doc_u64(d, p->clocks[i].server_ns);
        tp_json_doc_u64(d, p->clocks[i].error_ns);
        tp_json_doc_close(d);
    }
    tp_json_doc_close(d);
}

static void write_producer(struct tp_json_doc *d, const struct tp_producer_info *p,
                           const struct tp_source_members *source)
{
    tp_json_doc_object(d);
    write_who(d, p);
    member_text(d, "state", p->state);
    member_text(d, "outcome", p->outcome);
    member_text(d, "reason", p->reason);
    tp_json_doc_key(d, "counts");
    write_counts(d, &p->counts);
    write_types(d, p);
    if (p->has_clock) {
        tp_json_doc_key(d, "clock");
        tp_json_doc_object(d);
        tp_json_doc_member_i64(d, "offset_ns", p->clock_offset_ns);
        tp_json_doc_member_u64(d, "error_ns", p->clock_error_ns);
        tp_json_doc_member_bool(d, "applied", p->n_clocks > 0);
        write_readings(d, p);
        tp_json_doc_close(d);
    }
    write_notes(d, p->notes, p->n_notes);
    if (source != NULL && source->json.len > 0)
        tp_json_doc_member_raw(d, "source", source->json);
    tp_json_doc_close(d);
}

static const struct tp_source_members *find_source(
    const struct tp_source_members *sources, size_t n, size_t producer)
{
    for (size_t i = 0; i < n; i++)
        if (sources[i].producer == producer)
            return &sources[i];
    return NULL;
}

static void write_producers(struct tp_json_doc *d, const struct tp_trace_info *info,
                            const struct tp_source_members *sources, size_t n)
{
    tp_json_doc_line(d, 2);
    tp_json_doc_key(d, "producers");
    tp_json_doc_array(d);
    for (size_t i = 0; i < info->n_producers; i++) {
        tp_json_doc_line(d, 4);
        write_producer(d, &info->producers[i], find_source(sources, n, i));
    }
    tp_json_doc_close(d);
}

/* Write the text of an activity id: its static or custom name, else its number. */
static void write_type_name(struct tp_json_doc *d, const struct tp_trace_info *info,
                            unsigned id)
{
    char number[TP_JSON_U64_BYTES];
    const char *cat = tp_activity_cat(id);

    if (cat != NULL) {
        tp_json_doc_str(d, tp_str_of(cat));
        return;
    }
    for (size_t i = 0; i < info->n_types; i++)
        if (info->types[i]->id == id) {
            tp_json_doc_str(d, tp_type_full_name(info->types[i]));
            return;
        }
    tp_json_doc_str(d, (struct tp_str){number,
                                       (size_t)(tp_json_put_u64(number, id) - number)});
}

static bool slice_is_whole(const struct tp_trace_slice *s)
{
    return s == NULL ||
           (s->types == NULL && !s->has_from && !s->has_to && s->n_ranks == 0);
}

static void write_slice(struct tp_json_doc *d, const struct tp_trace_info *info,
                        const struct tp_trace_slice *s)
{
    tp_json_doc_line(d, 2);
    tp_json_doc_key(d, "slice");
    tp_json_doc_object(d);
    if (s->n_ranks > 0) {
        tp_json_doc_key(d, "ranks");
        tp_json_doc_array(d);
        for (size_t i = 0; i < s->n_ranks; i++)
            tp_json_doc_u64(d, s->ranks[i]);
        tp_json_doc_close(d);
    }
    if (s->types != NULL) {
        tp_json_doc_key(d, "types");
        tp_json_doc_array(d);
        for (unsigned id = tp_typeset_next(s->types, 0); id < TP_ACTIVITY_IDS;
             id = tp_typeset_next(s->types, id + 1))
            write_type_name(d, info, id);
        if (s->has_untyped)
            tp_json_doc_str(d, tp_str_of("untyped"));
        tp_json_doc_close(d);
    }
    if (s->has_from)
        tp_json_doc_member_i64(d, "from_ns", s->from_ns);
    if (s->has_to)
        tp_json_doc_member_i64(d, "to_ns", s->to_ns);
    tp_json_doc_close(d);
}

static void write_trace(struct tp_json_doc *d, const struct tp_trace_info *info)
{
    tp_json_doc_line(d, 2);
    tp_json_doc_member_u64(d, "schema", TP_TRACE_INFO_SCHEMA);
    line_text(d, "service", info->service);
    line_text(d, "trace", info->trace_id);
    line_text(d, "job", info->job);
    line_text(d, "label", info->label);
    line_raw(d, "metadata", info->metadata_json);
    line_text(d, "state", info->state);
    line_text(d, "outcome", info->outcome);
    line_text(d, "reason", info->reason);
    line_time(d, "prepared", info->prepared_ns);
    line_time(d, "started", info->started_ns);
    line_time(d, "stopped", info->stopped_ns);
    if (info->has_skew) {
        tp_json_doc_line(d, 2);
        tp_json_doc_member_u64(d, "start_skew_ns", info->skew_ns);
    }
    line_raw(d, "filter", info->filter_json);
}

int tp_trace_info_write(const struct tp_trace_info *info,
                        const struct tp_trace_slice *slice,
                        const struct tp_source_members *sources, size_t n_sources,
                        struct tp_buf *out, struct tp_err *err)
{
    struct tp_json_doc d;

    tp_json_doc_init(&d, out, err);
    tp_json_doc_object(&d);
    write_trace(&d, info);
    if (!slice_is_whole(slice))
        write_slice(&d, info, slice);
    tp_json_doc_line(&d, 2);
    tp_json_doc_key(&d, "counts");
    write_counts(&d, &info->counts);
    write_producers(&d, info, sources, n_sources);
    if (info->n_notes > 0)
        tp_json_doc_line(&d, 2);
    write_notes(&d, info->notes, info->n_notes);
    tp_json_doc_close(&d);
    return tp_json_doc_end(&d);
}

static void write_custom(struct tp_json_doc *d, const struct tp_type *t)
{
    tp_json_doc_object(d);
    tp_json_doc_member_u64(d, "id", t->id);
    tp_json_doc_member_str(d, "plugin", tp_str_of(t->plugin));
    tp_json_doc_member_str(d, "type_name", tp_type_bare_name(t));
    tp_json_doc_member_str(d, "name", tp_type_full_name(t));
    tp_json_doc_member_str(d, "cat", tp_type_full_name(t));
    tp_json_doc_member_u64(d, "hash", t->hash);
    if (t->is_resolved)
        tp_json_doc_member_bool(d, "resolved", true);
    tp_json_doc_member_str(d, "description", tp_str_of(t->description));
    tp_json_doc_member_str(d, "unit", tp_str_of(t->unit));
    tp_json_doc_member_str(d, "kind", tp_str_of(tp_type_kind_name(t->kind)));
    tp_json_doc_member_str(d, "device_type",
                           tp_str_of(
                               tp_device_type_name(tp_activity_device_type(t->id))));
    tp_json_doc_close(d);
}

int tp_trace_info_write_custom(const struct tp_trace_info *info, struct tp_buf *out,
                               struct tp_err *err)
{
    struct tp_json_doc d;

    tp_json_doc_init(&d, out, err);
    tp_json_doc_array(&d);
    for (size_t i = 0; i < info->n_types; i++) {
        tp_json_doc_line(&d, 2);
        write_custom(&d, info->types[i]);
    }
    tp_json_doc_close(&d);
    return tp_json_doc_end(&d);
}

int tp_trace_info_write_static(const struct tp_typeset *used, struct tp_buf *out,
                               struct tp_err *err)
{
    struct tp_json_doc d;

    tp_json_doc_init(&d, out, err);
    tp_json_doc_array(&d);
    for (unsigned id = tp_typeset_next(used, 0); id < TP_ACTIVITY_STATIC_COUNT;
         id = tp_typeset_next(used, id + 1)) {
        tp_json_doc_line(&d, 2);
        tp_json_doc_object(&d);
        tp_json_doc_member_str(&d, "name", tp_str_of(tp_activity_cat(id)));
        tp_json_doc_member_str(&d, "cat", tp_str_of(tp_activity_cat(id)));
        tp_json_doc_member_str(&d, "enum_name", tp_str_of(tp_activity_enum_name(id)));
        tp_json_doc_member_str(&d, "device_type",
                               tp_str_of(
                                   tp_device_type_name(tp_activity_device_type(id))));
        tp_json_doc_close(&d);
    }
    tp_json_doc_close(&d);
    return tp_json_doc_end(&d);
}
