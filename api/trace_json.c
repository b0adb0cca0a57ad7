/*
 * trace_json.c - traces, their producers and their streams.
 *
 * Members that have not come yet are null where a client waits for them (times, the
 * outcome) and absent where they are extras (a label, a damage).
 */
#include "api/trace_json.h"

#include <stdio.h>

#include "core/counts.h"
#include "core/filter.h"
#include "engine/trace_views.h"

static void write_text_if(struct tp_json_out *o, const char *key, const char *text)
{
    tp_json_out_str_if(o, key, tp_str_of(text));
}

static void write_raw_if(struct tp_json_out *o, const char *key, const char *json)
{
    if (json != NULL && json[0] != '\0')
        tp_json_out_raw(o, key, tp_str_of(json));
}

static void write_or_null(struct tp_json_out *o, const char *key, const char *text)
{
    tp_json_out_text(o, key, text == NULL || text[0] == '\0' ? NULL : text);
}

void tp_trace_json_counts(struct tp_json_out *o, const char *key,
                          const struct tp_counts *counts)
{
    tp_json_out_object(o, key);
    tp_json_out_u64(o, "emitted", counts->emitted);
    tp_json_out_u64(o, "stored", counts->stored);
    tp_json_out_u64(o, "filtered", counts->filtered);
    tp_json_out_u64(o, "dropped", tp_counts_dropped(counts));
    tp_json_out_object(o, "dropped_by_cause");
    for (int i = 0; i < TP_DROP_CAUSES; i++)
        if (counts->dropped[i] > 0)
            tp_json_out_u64(o, tp_drop_cause_name((enum tp_drop_cause)i),
                            counts->dropped[i]);
    tp_json_out_close_object(o);
    tp_json_out_u64(o, "repaired", counts->repaired);
    tp_json_out_u64(o, "untyped", counts->untyped);
    tp_json_out_close_object(o);
}

static void write_waiting(struct tp_json_out *o, const struct tp_waiting_view *w)
{
    if (w->batches == 0)
        return;
    tp_json_out_object(o, "waiting");
    tp_json_out_u64(o, "batches", w->batches);
    tp_json_out_u64(o, "events", w->events);
    tp_json_out_text(o, "reason", w->reason);
    tp_json_out_close_object(o);
}

static void write_identity(struct tp_json_out *o, const struct tp_identity_view *who)
{
    write_text_if(o, "id", who->id);
    tp_json_out_text(o, "name", who->name);
    tp_json_out_text(o, "kind", who->kind);
    if (who->rank >= 0)
        tp_json_out_i64(o, "rank", who->rank);
    if (who->world_size > 0)
        tp_json_out_u64(o, "world_size", who->world_size);
    write_text_if(o, "host", who->host);
    if (who->pid >= 0)
        tp_json_out_i64(o, "pid", who->pid);
    write_text_if(o, "backend", who->backend);
    write_text_if(o, "device", who->device);
    write_text_if(o, "joined_with", who->joined_with);
    write_text_if(o, "join_note", who->join_note);
}

static void write_clock(struct tp_json_out *o, const struct tp_member_view *m)
{
    if (!m->has_clock)
        return;
    tp_json_out_object(o, "clock");
    tp_json_out_i64(o, "offset_ns", m->clock_offset_ns);
    tp_json_out_u64(o, "error_ns", m->clock_error_ns);
    tp_json_out_close_object(o);
}

static void write_type(struct tp_json_out *o, const struct tp_type_count *t)
{
    tp_json_out_object(o, NULL);
    tp_json_out_u64(o, "type", t->id);
    tp_json_out_u64(o, "emitted", t->emitted);
    tp_json_out_u64(o, "stored", t->stored);
    tp_json_out_u64(o, "filtered", t->filtered);
    tp_json_out_object(o, "dropped");
    for (int i = 0; i < TP_DROP_CAUSES; i++)
        if (t->dropped[i] > 0)
            tp_json_out_u64(o, tp_drop_cause_name((enum tp_drop_cause)i),
                            t->dropped[i]);
    tp_json_out_close_object(o);
    tp_json_out_close_object(o);
}

static void write_types(struct tp_json_out *o, const struct tp_member_view *m)
{
    if (m->n_types == 0)
        return;
    tp_json_out_array(o, "types");
    for (size_t i = 0; i < m->n_types; i++)
        write_type(o, &m->types[i]);
    tp_json_out_close_array(o);
}

static void write_member(struct tp_json_out *o, const struct tp_member_view *m)
{
    tp_json_out_object(o, NULL);
    write_identity(o, &m->who);
    tp_json_out_text(o, "state", m->state);
    write_text_if(o, "reason", m->reason);
    if (m->is_matched) {
        if (m->stream_no > 0)
            tp_json_out_u64(o, "stream", m->stream_no);
        tp_json_out_u64(o, "step", m->step);
        tp_trace_json_counts(o, "reported", &m->reported);
        tp_trace_json_counts(o, "counts", &m->counts);
        write_waiting(o, &m->waiting);
        write_types(o, m);
        write_clock(o, m);
    }
    tp_json_out_close_object(o);
}

static void write_members(struct tp_json_out *o, const struct tp_trace_view *v)
{
    tp_json_out_array(o, "matched");
    for (size_t i = 0; i < v->n_members; i++)
        if (v->members[i].is_matched)
            write_member(o, &v->members[i]);
    tp_json_out_close_array(o);
    tp_json_out_array(o, "unmatched");
    for (size_t i = 0; i < v->n_members; i++)
        if (!v->members[i].is_matched)
            write_member(o, &v->members[i]);
    tp_json_out_close_array(o);
}

static void write_stream(struct tp_json_out *o, const struct tp_stream_view *s)
{
    tp_json_out_object(o, NULL);
    tp_json_out_u64(o, "stream", s->no);
    tp_json_out_object(o, "producer");
    write_identity(o, &s->who);
    tp_json_out_close_object(o);
    if (s->is_file)
        tp_json_out_text(o, "file", s->file_name);
    tp_json_out_text(o, "state", s->state);
    write_text_if(o, "reason", s->reason);
    tp_trace_json_counts(o, "counts", &s->counts);
    write_waiting(o, &s->waiting);
    tp_json_out_u64(o, "batches", s->batches);
    tp_json_out_u64(o, "duplicate_batches", s->duplicate_batches);
    tp_json_out_u64(o, "bytes", s->bytes);
    write_text_if(o, "damage", s->damage);
    if (s->has_times) {
        tp_json_out_i64(o, "first_ns", s->first_ns);
        tp_json_out_i64(o, "last_ns", s->last_ns);
    }
    tp_json_out_close_object(o);
}

static void write_filter_list(struct tp_json_out *o, const char *key,
                              const struct tp_filter *f, enum tp_filter_list which)
{
    size_t n = 0;
    const struct tp_str *items = tp_filter_items(f, which, &n);

    tp_json_out_array(o, key);
    for (size_t i = 0; i < n; i++)
        tp_json_out_str(o, NULL, items[i]);
    tp_json_out_close_array(o);
}

/* The filter as it was asked for, and what it came to. */
static void write_filter(struct tp_json_out *o, const struct tp_trace_view *v)
{
    if (v->filter != NULL) {
        tp_json_out_object(o, "filter");
        write_filter_list(o, "include", v->filter, TP_FILTER_INCLUDE);
        write_filter_list(o, "exclude", v->filter, TP_FILTER_EXCLUDE);
        tp_json_out_object(o, "names");
        write_filter_list(o, "include", v->filter, TP_FILTER_NAMES_INCLUDE);
        write_filter_list(o, "exclude", v->filter, TP_FILTER_NAMES_EXCLUDE);
        tp_json_out_close_object(o);
        tp_json_out_u64(o, "min_duration_ns", tp_filter_min_duration_ns(v->filter));
        tp_json_out_close_object(o);
    }
    tp_json_out_array(o, "types");
    for (size_t i = 0; i < v->n_types; i++) {
        tp_json_out_object(o, NULL);
        tp_json_out_u64(o, "id", v->types[i].id);
        tp_json_out_text(o, "name", v->types[i].name);
        tp_json_out_close_object(o);
    }
    tp_json_out_close_array(o);
}

static void write_texts(struct tp_json_out *o, const char *key,
                        const char *const *texts, size_t n)
{
    if (n == 0)
        return;
    tp_json_out_array(o, key);
    for (size_t i = 0; i < n; i++)
        tp_json_out_text(o, NULL, texts[i]);
    tp_json_out_close_array(o);
}

static void write_select(struct tp_json_out *o, const struct tp_trace_view *v)
{
    tp_json_out_object(o, "select");
    if (v->n_ranks > 0) {
        tp_json_out_array(o, "ranks");
        for (size_t i = 0; i < v->n_ranks; i++)
            tp_json_out_u64(o, NULL, v->ranks[i]);
        tp_json_out_close_array(o);
    }
    write_texts(o, "hosts", v->hosts, v->n_hosts);
    write_texts(o, "producers", v->producers, v->n_producers);
    tp_json_out_close_object(o);
}

static void write_start(struct tp_json_out *o, const struct tp_trace_view *v)
{
    tp_json_out_object(o, "start");
    switch (v->start) {
    case TP_START_MANUAL:
        tp_json_out_text(o, "when", "manual");
        break;
    case TP_START_AT:
        tp_json_out_time(o, "at", (int64_t)v->start_wall_ns);
        break;
    case TP_START_STEP:
        tp_json_out_u64(o, "step", v->start_step);
        break;
    case TP_START_NOW:
    default:
        tp_json_out_text(o, "when", "now");
        break;
    }
    tp_json_out_close_object(o);
}

static void write_stop(struct tp_json_out *o, const struct tp_trace_view *v)
{
    tp_json_out_object(o, "stop");
    tp_json_out_u64(o, "duration_ms", v->duration_ms);
    tp_json_out_bool(o, "duration_capped", v->duration_is_capped);
    tp_json_out_u64(o, "steps", v->steps);
    tp_json_out_u64(o, "max_bytes", v->max_bytes);
    tp_json_out_bool(o, "max_bytes_capped", v->max_bytes_is_capped);
    tp_json_out_close_object(o);
}

static void write_require(struct tp_json_out *o, const struct tp_trace_view *v)
{
    if (v->require == TP_REQUIRE_COUNT)
        tp_json_out_u64(o, "require", v->require_count);
    else
        tp_json_out_text(o, "require", v->require == TP_REQUIRE_ALL ? "all" : "any");
}

static void write_request(struct tp_json_out *o, const struct tp_trace_view *v)
{
    write_filter(o, v);
    write_select(o, v);
    write_start(o, v);
    write_stop(o, v);
    write_require(o, v);
    write_raw_if(o, "metadata", v->metadata_json);
    write_raw_if(o, "kineto", v->kineto_json);
}

static void write_times(struct tp_json_out *o, const struct tp_trace_view *v)
{
    tp_json_out_time(o, "created_at", (int64_t)v->created_wall_ns);
    tp_json_out_time(o, "started_at", (int64_t)v->started_wall_ns);
    tp_json_out_time(o, "stopped_at", (int64_t)v->stopped_wall_ns);
    tp_json_out_time(o, "finished_at", (int64_t)v->finished_wall_ns);
}

static void write_deadline(struct tp_json_out *o, const struct tp_trace_view *v)
{
    if (v->deadline_wall_ns == 0) {
        tp_json_out_null(o, "deadline");
        return;
    }
    tp_json_out_object(o, "deadline");
    tp_json_out_time(o, "at", (int64_t)v->deadline_wall_ns);
    tp_json_out_text(o, "what", v->deadline_what);
    tp_json_out_close_object(o);
}

static void write_link(struct tp_json_out *o, const char *key, const char *id,
                       const char *suffix)
{
    char text[96];

    snprintf(text, sizeof(text), "/v1/traces/%s%s", id, suffix);
    tp_json_out_text(o, key, text);
}

static void write_links(struct tp_json_out *o, const struct tp_trace_view *v)
{
    tp_json_out_object(o, "links");
    write_link(o, "self", v->id, "");
    write_link(o, "watch", v->id, "/watch");
    write_link(o, "events", v->id, "/events");
    write_link(o, "files", v->id, "/files");
    write_link(o, "download", v->id, "/download");
    write_link(o, "summary", v->id, "/summary");
    tp_json_out_close_object(o);
}

/* Who it is and where it stands. A dry run has neither id nor state of its own. */
static void write_head(struct tp_json_out *o, const struct tp_trace_view *v)
{
    if (v->is_dry_run)
        tp_json_out_bool(o, "dry_run", true);
    else
        tp_json_out_text(o, "id", v->id);
    tp_json_out_text(o, "job", v->job);
    write_text_if(o, "label", v->label);
    if (v->is_dry_run)
        return;
    tp_json_out_text(o, "state", v->state);
    write_or_null(o, "outcome", v->outcome);
    write_text_if(o, "reason", v->reason);
    tp_json_out_u64(o, "version", v->version);
    write_times(o, v);
}

static void write_totals(struct tp_json_out *o, const struct tp_trace_view *v)
{
    tp_trace_json_counts(o, "counts", &v->totals);
    write_waiting(o, &v->waiting);
    tp_json_out_u64(o, "bytes", v->bytes);
    tp_json_out_u64(o, "late_batches", v->late_batches);
    tp_json_out_u64(o, "late_events", v->late_events);
}

static void write_history(struct tp_json_out *o, const struct tp_trace_view *v)
{
    tp_json_out_array(o, "history");
    for (size_t i = 0; i < v->n_moves; i++) {
        tp_json_out_object(o, NULL);
        tp_json_out_text(o, "state", v->moves[i].state);
        tp_json_out_time(o, "at", (int64_t)v->moves[i].wall_ns);
        tp_json_out_text(o, "cause", v->moves[i].cause);
        tp_json_out_close_object(o);
    }
    tp_json_out_close_array(o);
}

static void write_warnings(struct tp_json_out *o, const struct tp_trace_view *v)
{
    tp_json_out_array(o, "warnings");
    for (size_t i = 0; i < v->n_warnings; i++)
        tp_json_out_text(o, NULL, v->warnings[i]);
    tp_json_out_close_array(o);
}

void tp_trace_json(struct tp_json_out *o, const struct tp_trace_view *v)
{
    write_head(o, v);
    write_request(o, v);
    write_members(o, v);
    write_warnings(o, v);
    if (v->is_dry_run)
        return;
    tp_json_out_time(o, "start_at", (int64_t)v->start_at_wall_ns);
    write_deadline(o, v);
    if (v->has_skew)
        tp_json_out_u64(o, "skew_ns", v->skew_ns);
    write_history(o, v);
    tp_json_out_array(o, "streams");
    for (size_t i = 0; i < v->n_streams; i++)
        write_stream(o, &v->streams[i]);
    tp_json_out_close_array(o);
    write_totals(o, v);
    write_links(o, v);
}

void tp_trace_json_item(struct tp_json_out *o, const struct tp_trace_view *v)
{
    write_head(o, v);
    write_totals(o, v);
    write_links(o, v);
}

void tp_trace_json_progress(struct tp_json_out *o, const struct tp_trace_view *v)
{
    write_head(o, v);
    write_deadline(o, v);
    write_totals(o, v);
}
