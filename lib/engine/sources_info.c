/*
 * What a download says about itself, from the view of the trace.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_doc.h"
#include "core/filter.h"
#include "engine/sources.h"

static void write_list(struct tp_json_doc *d, const struct tp_filter *f,
                       enum tp_filter_list which, const char *key)
{
    size_t n;
    const struct tp_str *items = tp_filter_items(f, which, &n);

    if (n == 0)
        return;
    tp_json_doc_key(d, key);
    tp_json_doc_array(d);
    for (size_t i = 0; i < n; i++)
        tp_json_doc_str(d, items[i]);
    tp_json_doc_close(d);
}

/* As written, and the types that it came to. */
static void write_filter(struct tp_json_doc *d, const struct tp_trace_view *v)
{
    tp_json_doc_object(d);
    write_list(d, v->filter, TP_FILTER_INCLUDE, "include");
    write_list(d, v->filter, TP_FILTER_EXCLUDE, "exclude");
    if (tp_filter_has_names(v->filter)) {
        tp_json_doc_key(d, "names");
        tp_json_doc_object(d);
        write_list(d, v->filter, TP_FILTER_NAMES_INCLUDE, "include");
        write_list(d, v->filter, TP_FILTER_NAMES_EXCLUDE, "exclude");
        tp_json_doc_close(d);
    }
    if (tp_filter_min_duration_ns(v->filter) != 0)
        tp_json_doc_member_u64(d, "min_duration_ns",
                               tp_filter_min_duration_ns(v->filter));
    tp_json_doc_key(d, "types");
    tp_json_doc_array(d);
    for (size_t i = 0; i < v->n_types; i++)
        tp_json_doc_str(d, tp_str_of(v->types[i].name));
    tp_json_doc_close(d);
    tp_json_doc_close(d);
}

static int make_filter_json(struct tp_sources *s, struct tp_err *err)
{
    struct tp_buf text = {0};
    struct tp_json_doc d;
    int rc;

    if (tp_filter_is_open(s->view->filter))
        return TP_OK;
    tp_json_doc_init(&d, &text, err);
    write_filter(&d, s->view);
    rc = tp_json_doc_end(&d);
    if (rc != TP_OK) {
        tp_buf_fini(&text);
        return rc;
    }
    s->filter_json = text.data;
    s->info.filter_json = (struct tp_str){text.data, text.len};
    return TP_OK;
}

static void take_identity(const struct tp_identity_view *who,
                          struct tp_producer_info *out)
{
    out->id = tp_str_of(who->id);
    out->name = tp_str_of(who->name);
    out->kind = tp_str_of(who->kind);
    out->has_rank = who->rank >= 0;
    out->rank = who->rank >= 0 ? (uint32_t)who->rank : 0;
    out->world_size = who->world_size;
    out->host = tp_str_of(who->host);
    out->pid = who->pid < 0 ? 0 : who->pid;
    out->backend = tp_str_of(who->backend);
    out->device = tp_str_of(who->device);
    out->process_no = who->process_no;
    out->process_pid = who->process_pid;
    out->joined_with = tp_str_of(who->joined_with);
    out->join_note = tp_str_of(who->join_note);
}

static const struct tp_member_view *member_of(const struct tp_trace_view *v,
                                              const struct tp_stream_view *s)
{
    for (size_t i = 0; i < v->n_members; i++) {
        if (s->who.id[0] != '\0' && strcmp(v->members[i].who.id, s->who.id) == 0)
            return &v->members[i];
    }
    return NULL;
}

static void take_clock(const struct tp_member_view *m, struct tp_producer_info *out)
{
    out->has_clock = m->has_clock;
    out->clock_offset_ns = m->clock_offset_ns;
    out->clock_error_ns = m->clock_error_ns;
}

/* What the producer says that it did not send is no part of its stream. */
static void add_unsent(const struct tp_member_view *m, const struct tp_stream_view *s,
                       struct tp_counts *out)
{
    struct tp_counts more = {.emitted = m->counts.emitted - s->counts.emitted,
                             .filtered = m->counts.filtered - s->counts.filtered};

    for (int i = 0; i < TP_DROP_CAUSES; i++)
        more.dropped[i] = m->counts.dropped[i] - s->counts.dropped[i];
    tp_counts_add(out, &more);
}

/* The stream knows better how its clock was while it was recorded. */
static void take_readings(const struct tp_stream_index *ix,
                          struct tp_producer_info *out)
{
    const struct tp_index_clock *c = ix->clocks;

    if (ix->n_clocks == 0)
        return;
    out->has_clock = true;
    out->clock_offset_ns = (int64_t)(c[0].server_ns - c[0].producer_ns);
    out->clock_error_ns = ix->clock_error_ns;
    out->clocks = c;
    out->n_clocks = ix->n_clocks;
}

static void describe_stream(const struct tp_trace_view *v, const struct tp_source *item,
                            struct tp_producer_info *out)
{
    const struct tp_stream_view *s = item->view;
    const struct tp_member_view *m = member_of(v, s);

    take_identity(&s->who, out);
    out->counts = s->counts;
    /* A snapshot knows what the seal found, which the trace's counts do not yet. */
    if (!item->is_sealed)
        tp_seal_adjust(&out->counts, &item->result);
    out->state = tp_str_of(s->state);
    out->reason = tp_str_of(s->reason);
    if (m != NULL && s->reason[0] == '\0')
        out->reason = tp_str_of(m->reason);
    if (m != NULL) {
        add_unsent(m, s, &out->counts);
        take_clock(m, out);
        out->types = m->types;
        out->n_types = m->n_types;
    }
    take_readings(tp_source_index(item), out);
}

static bool has_item(const struct tp_sources *s, const struct tp_member_view *m)
{
    for (size_t i = 0; i < s->n_items; i++) {
        if (strcmp(s->items[i].view->who.id, m->who.id) == 0)
            return true;
    }
    return false;
}

static void describe_member(const struct tp_member_view *m,
                            struct tp_producer_info *out)
{
    take_identity(&m->who, out);
    out->counts = m->counts;
    out->types = m->types;
    out->n_types = m->n_types;
    out->state = tp_str_of(m->state);
    out->reason = tp_str_of(m->reason);
    take_clock(m, out);
}

static void describe_trace(struct tp_sources *s)
{
    const struct tp_trace_view *v = s->view;
    struct tp_trace_info *info = &s->info;

    info->service = tp_str_of(s->service);
    info->trace_id = tp_str_of(v->id);
    info->job = tp_str_of(v->job);
    info->label = tp_str_of(v->label);
    info->metadata_json = tp_str_of(v->metadata_json);
    info->state = tp_str_of(v->state);
    info->outcome = tp_str_of(v->outcome);
    info->reason = tp_str_of(v->reason);
    info->prepared_ns = (int64_t)v->created_wall_ns;
    info->started_ns = (int64_t)v->started_wall_ns;
    info->stopped_ns = (int64_t)v->stopped_wall_ns;
    info->has_skew = v->has_skew;
    info->skew_ns = v->skew_ns;
    info->counts = v->totals;
    info->producers = s->producers;
    info->n_producers = s->n_producers;
    info->types = s->types;
    info->n_types = s->n_types;
}

static int by_id(const void *a, const void *b)
{
    const struct tp_type *x = *(const struct tp_type *const *)a;
    const struct tp_type *y = *(const struct tp_type *const *)b;

    return (int)x->id - (int)y->id;
}

int tp_sources_describe(struct tp_sources *s, struct tp_err *err)
{
    const struct tp_trace_view *v = s->view;
    size_t n = s->n_items + v->n_members;

    s->producers = calloc(n + 1, sizeof(*s->producers));
    s->service = malloc(strlen(s->e->version) + sizeof("traceplane "));
    if (s->producers == NULL || s->service == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to describe trace %s", v->id);
    snprintf(s->service, strlen(s->e->version) + sizeof("traceplane "), "traceplane %s",
             s->e->version);
    for (size_t i = 0; i < s->n_items; i++)
        describe_stream(v, &s->items[i], &s->producers[s->n_producers++]);
    for (size_t i = 0; i < v->n_members; i++) {
        if (v->members[i].is_matched && !has_item(s, &v->members[i]))
            describe_member(&v->members[i], &s->producers[s->n_producers++]);
    }
    qsort(s->types, s->n_types, sizeof(s->types[0]), by_id);
    describe_trace(s);
    return make_filter_json(s, err);
}
