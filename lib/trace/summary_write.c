/*
 * summary_write.c - a summary as JSON.
 */
#include "base/buf.h"
#include "base/json_doc.h"
#include "base/timefmt.h"
#include "trace/summary.h"

static void member_times(struct tp_json_doc *d, int64_t first_ns, int64_t last_ns)
{
    char text[TP_TIMEFMT_BYTES];

    tp_json_doc_member_str(d, "first", tp_str_of(tp_timefmt_write(first_ns, text)));
    tp_json_doc_member_str(d, "last", tp_str_of(tp_timefmt_write(last_ns, text)));
}

static void write_name(struct tp_json_doc *d, const struct tp_summary_name *n)
{
    tp_json_doc_object(d);
    tp_json_doc_member_str(d, "name", n->name);
    tp_json_doc_member_u64(d, "count", n->count);
    tp_json_doc_member_u64(d, "total_ns", n->total_ns);
    tp_json_doc_member_u64(d, "min_ns", n->min_ns);
    tp_json_doc_member_u64(d, "max_ns", n->max_ns);
    tp_json_doc_close(d);
}

static void write_type(struct tp_json_doc *d, const struct tp_summary_type *t)
{
    tp_json_doc_object(d);
    tp_json_doc_member_str(d, "type", t->cat);
    tp_json_doc_member_u64(d, "count", t->count);
    tp_json_doc_member_u64(d, "total_ns", t->total_ns);
    member_times(d, t->first_ns, t->last_ns);
    tp_json_doc_member_bool(d, "names_are_complete", t->names_are_complete);
    tp_json_doc_key(d, "names");
    tp_json_doc_array(d);
    for (size_t i = 0; i < t->n_names; i++)
        write_name(d, &t->names[i]);
    tp_json_doc_close(d);
    tp_json_doc_close(d);
}

static void write_rank(struct tp_json_doc *d, const struct tp_summary_rank *r)
{
    tp_json_doc_object(d);
    if (r->has_rank)
        tp_json_doc_member_u64(d, "rank", r->rank);
    tp_json_doc_member_str(d, "producer", r->producer);
    if (r->host.len > 0)
        tp_json_doc_member_str(d, "host", r->host);
    tp_json_doc_member_u64(d, "count", r->count);
    if (r->count > 0)
        member_times(d, r->first_ns, r->last_ns);
    tp_json_doc_key(d, "types");
    tp_json_doc_array(d);
    for (size_t i = 0; i < r->n_types; i++)
        write_type(d, &r->types[i]);
    tp_json_doc_close(d);
    tp_json_doc_close(d);
}

static void write_straggler(struct tp_json_doc *d, const struct tp_summary_straggler *s)
{
    tp_json_doc_object(d);
    tp_json_doc_member_u64(d, "rank", s->rank);
    tp_json_doc_member_str(d, "measure", tp_str_of(s->is_span ? "span" : "total"));
    if (!s->is_span)
        tp_json_doc_member_str(d, "type", s->cat);
    tp_json_doc_member_u64(d, "value_ns", s->value_ns);
    tp_json_doc_member_u64(d, "median_ns", s->median_ns);
    tp_json_doc_member_u64(d, "ranks_compared", s->n_ranks);
    tp_json_doc_close(d);
}

int tp_summary_write(const struct tp_summary *s, struct tp_buf *out, struct tp_err *err)
{
    struct tp_json_doc d;

    tp_json_doc_init(&d, out, err);
    tp_json_doc_object(&d);
    tp_json_doc_key(&d, "ranks");
    tp_json_doc_array(&d);
    for (size_t i = 0; i < s->n_ranks; i++)
        write_rank(&d, &s->ranks[i]);
    tp_json_doc_close(&d);
    tp_json_doc_key(&d, "stragglers");
    tp_json_doc_array(&d);
    for (size_t i = 0; i < s->n_stragglers; i++)
        write_straggler(&d, &s->stragglers[i]);
    tp_json_doc_close(&d);
    tp_json_doc_close(&d);
    return tp_json_doc_end(&d);
}
