/*
 * chrome_head.c - members in an order that every reader copes with.
 *
 * One member a line, since HTA looks for the rank line by line and takes the first
 * that has `"rank": N`. So distributedInfo is written before anything of the client's
 * that could have such a line: its metadata, the other members of its file. The
 * members of a single source come back under their own names; those of several stand
 * in "traceplane" at the producer that they belong to.
 */
#include "trace/chrome_head.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/json_members.h"
#include "core/activity.h"
#include "trace/merge.h"
#include "trace/merge_join.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

/* What the functions here have in common. */
struct head {
    const struct tp_merge *m;
    const struct tp_trace_info *info;
    struct tp_json_doc doc;
    struct tp_buf text; /* reused */
};

/* Members that are written by us, not copied. */
static bool is_reserved(struct tp_str key)
{
    static const char *const names[] = {"schemaVersion",      "deviceProperties",
                                        "distributedInfo",    "displayTimeUnit",
                                        "traceEvents",        "baseTimeNanoseconds",
                                        "traceplane",         "activityTypes",
                                        "customActivityTypes"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (tp_str_is(key, names[i]))
            return true;
    return false;
}

/* Our own members in a file that was a download of ours before. */
static bool is_ours(struct tp_str key)
{
    return tp_str_is(key, "traceplane") || tp_str_is(key, "activityTypes") ||
           tp_str_is(key, "customActivityTypes");
}

/* The only source of the download, or NULL. Streams of one process are one source. */
static const struct tp_stream_index *single_source(const struct head *h)
{
    size_t only = tp_merge_only_source(h->m);

    return only == SIZE_MAX ? NULL : h->m->streams[only].index;
}

/* The member of a single source with this name, or an empty text. */
static struct tp_str source_member(const struct head *h, const char *key)
{
    const struct tp_stream_index *ix = single_source(h);

    for (size_t i = 0; ix != NULL && i < ix->n_members; i++)
        if (tp_str_is(ix->members[i].key, key))
            return ix->members[i].json;
    return (struct tp_str){NULL, 0};
}

static void line_member(struct head *h, struct tp_str key, struct tp_str json)
{
    tp_json_doc_line(&h->doc, 1);
    tp_json_doc_key_str(&h->doc, key);
    tp_json_doc_raw(&h->doc, json);
}

/* A member that the source may have; else with this value; else none. */
static void line_source_member(struct head *h, const char *key, const char *otherwise)
{
    struct tp_str json = source_member(h, key);

    if (json.len == 0)
        json = tp_str_of(otherwise);
    if (json.len > 0)
        line_member(h, tp_str_of(key), json);
}

/* The producer that speaks for the download: the first one with a rank. */
static const struct tp_producer_info *speaker(const struct head *h)
{
    for (size_t i = 0; i < h->m->n_streams; i++)
        if (h->m->streams[i].producer->has_rank)
            return h->m->streams[i].producer;
    return NULL;
}

/* Whether the download is of one process whose producers know two ranks for it: then
 * the "rank" would be a guess. */
static bool is_disputed(const struct head *h)
{
    const struct tp_producer_info *first = speaker(h);

    if (first == NULL || tp_merge_only_source(h->m) == SIZE_MAX)
        return false;
    for (size_t i = 0; i < h->m->n_streams; i++) {
        const struct tp_producer_info *p = h->m->streams[i].producer;

        if (p->has_rank && p->rank != first->rank)
            return true;
    }
    return false;
}

/* The world size that the speaker knows, or all others that know one; 0 = none. */
static uint32_t world_size(const struct head *h)
{
    const struct tp_producer_info *first = speaker(h);
    uint32_t found = first == NULL ? 0 : first->world_size;

    for (size_t i = 0; first != NULL && first->world_size == 0 && i < h->m->n_streams;
         i++) {
        uint32_t other = h->m->streams[i].producer->world_size;

        if (found != 0 && other != 0 && other != found)
            return 0;
        found = other == 0 ? found : other;
    }
    return found;
}

static void line_number(struct head *h, const char *key, uint64_t v)
{
    tp_json_doc_line(&h->doc, 2);
    tp_json_doc_member_u64(&h->doc, key, v);
}

/* The ranks that are merged, each once; streams are in order of their ranks. */
static void line_ranks(struct head *h)
{
    const struct tp_producer_info *last = NULL;

    tp_json_doc_line(&h->doc, 2);
    tp_json_doc_key(&h->doc, "ranks");
    tp_json_doc_array(&h->doc);
    for (size_t i = 0; i < h->m->n_streams; i++) {
        const struct tp_producer_info *p = h->m->streams[i].producer;

        if (!p->has_rank || (last != NULL && last->rank == p->rank))
            continue;
        tp_json_doc_u64(&h->doc, p->rank);
        last = p;
    }
    tp_json_doc_close(&h->doc);
}

/* What we know better than the source: rank, world size, backend. */
static void write_distributed(struct head *h, struct tp_str source)
{
    const struct tp_producer_info *p = speaker(h);
    struct tp_str json;

    if (p != NULL && !is_disputed(h))
        line_number(h, "rank", p->rank);
    else if (p == NULL && tp_json_members_find(source, "rank", &json)) {
        tp_json_doc_line(&h->doc, 2);
        tp_json_doc_member_raw(&h->doc, "rank", json);
    }
    if (h->m->is_merged && p != NULL)
        line_ranks(h);
    if (world_size(h) > 0)
        line_number(h, "world_size", world_size(h));
    else if (tp_json_members_find(source, "world_size", &json)) {
        tp_json_doc_line(&h->doc, 2);
        tp_json_doc_member_raw(&h->doc, "world_size", json);
    }
    if (tp_json_members_find(source, "backend", &json)) {
        tp_json_doc_line(&h->doc, 2);
        tp_json_doc_member_raw(&h->doc, "backend", json);
    } else if (p != NULL && p->backend.len > 0 && !tp_str_is(p->kind, "kineto")) {
        tp_json_doc_line(&h->doc, 2);
        tp_json_doc_member_str(&h->doc, "backend", p->backend);
    }
}

/* Copy the members of the source's distributedInfo that we did not write. */
static void copy_distributed(struct head *h, struct tp_str source)
{
    struct tp_json c;
    struct tp_str key;
    struct tp_str json;

    tp_json_members_open(source, &c);
    while (tp_json_members_next(&c, &key, &json)) {
        const struct tp_str quoted = {key.ptr - 1, key.len + 2};

        if (tp_str_is(key, "rank") || tp_str_is(key, "world_size") ||
            tp_str_is(key, "backend"))
            continue;
        h->text.len = 0;
        if (h->doc.rc == TP_OK)
            h->doc.rc = tp_json_members_text(quoted, &h->text, h->doc.err);
        tp_json_doc_line(&h->doc, 2);
        tp_json_doc_key_str(&h->doc, (struct tp_str){h->text.data, h->text.len});
        tp_json_doc_raw(&h->doc, json);
    }
}

static void line_distributed(struct head *h)
{
    struct tp_str source = source_member(h, "distributedInfo");
    struct tp_json c;

    if (!tp_json_members_open(source, &c) && speaker(h) == NULL)
        return;
    tp_json_doc_line(&h->doc, 1);
    tp_json_doc_key(&h->doc, "distributedInfo");
    tp_json_doc_object(&h->doc);
    write_distributed(h, source);
    copy_distributed(h, source);
    tp_json_doc_line(&h->doc, 1);
    tp_json_doc_close(&h->doc);
}

static void line_source_members(struct head *h)
{
    const struct tp_stream_index *ix = single_source(h);

    for (size_t i = 0; ix != NULL && i < ix->n_members; i++)
        if (!is_reserved(ix->members[i].key))
            line_member(h, ix->members[i].key, ix->members[i].json);
}

/* Where a producer stands among those of the trace; SIZE_MAX when it does not. */
static size_t place_of(const struct tp_trace_info *info,
                       const struct tp_producer_info *p)
{
    for (size_t i = 0; i < info->n_producers; i++)
        if (&info->producers[i] == p ||
            (p->id.len > 0 && tp_str_equal(info->producers[i].id, p->id)))
            return i;
    return SIZE_MAX;
}

/* Collect the members of one source that the head does not show elsewhere. *left is
 * what may still be taken. */
static int collect_source(const struct head *h, const struct tp_stream_index *ix,
                          size_t *left, struct tp_buf *out, struct tp_err *err)
{
    struct tp_json_doc d;
    bool is_shown = ix == single_source(h);
    bool is_short = false;
    bool is_empty = true;
    size_t start = out->len;

    tp_json_doc_init(&d, out, err);
    tp_json_doc_object(&d);
    for (size_t i = 0; i < ix->n_members; i++) {
        const struct tp_index_member *x = &ix->members[i];
        size_t bytes = x->key.len + x->json.len;

        if (is_shown && !is_ours(x->key))
            continue;
        if (!is_shown && bytes > *left) {
            is_short = true;
            continue;
        }
        *left -= is_shown ? 0 : bytes;
        tp_json_doc_key_str(&d, x->key);
        tp_json_doc_raw(&d, x->json);
        is_empty = false;
    }
    if (is_short)
        tp_json_doc_member_bool(&d, "is_shortened", true);
    tp_json_doc_close(&d);
    if (is_empty && !is_short)
        out->len = start;
    return tp_json_doc_end(&d);
}

/* Append "traceplane", with the sources' members where they are not shown elsewhere. */
static int write_info(struct head *h, const struct tp_trace_slice *slice)
{
    size_t n = h->m->n_streams;
    struct tp_source_members *sources = calloc(n + 1, sizeof(*sources));
    size_t *offsets = calloc(n + 1, sizeof(*offsets));
    struct tp_buf text = {0};
    size_t left = TP_CHROME_HEAD_SOURCES_BYTES;
    int rc = TP_OK;

    if (sources == NULL || offsets == NULL)
        rc =
            tp_fail(h->doc.err, TP_ENOMEM, "no memory for the members of %zu files", n);
    for (size_t i = 0; rc == TP_OK && i < n; i++) {
        rc = collect_source(h, h->m->streams[i].index, &left, &text, h->doc.err);
        offsets[i + 1] = text.len;
    }
    for (size_t i = 0; rc == TP_OK && i < n; i++) {
        sources[i].producer = place_of(h->info, h->m->streams[i].producer);
        sources[i].json =
            (struct tp_str){text.data + offsets[i], offsets[i + 1] - offsets[i]};
    }
    if (rc == TP_OK)
        rc = tp_trace_info_write(h->info, slice, sources, n, h->doc.out, h->doc.err);
    tp_buf_fini(&text);
    free(sources);
    free(offsets);
    return rc;
}

static struct tp_typeset static_types(const struct tp_merge *m)
{
    struct tp_typeset used = {{0}};

    for (size_t i = 0; i < m->n_streams; i++) {
        const struct tp_stream_index *ix = m->streams[i].index;

        for (size_t k = 0; k < ix->n_types; k++) {
            int id = tp_activity_find_cat(ix->types[k].cat);

            if (id >= 0)
                tp_typeset_add(&used, (unsigned)id);
        }
    }
    return used;
}

/* Begin a member that another function appends the value of. */
static bool open_member(struct head *h, const char *key)
{
    tp_json_doc_line(&h->doc, 1);
    tp_json_doc_key(&h->doc, key);
    h->doc.needs_comma = true;
    return h->doc.rc == TP_OK;
}

static void write_ours(struct head *h, const struct tp_trace_slice *slice)
{
    const struct tp_typeset used = static_types(h->m);

    if (open_member(h, "traceplane"))
        h->doc.rc = write_info(h, slice);
    if (open_member(h, "customActivityTypes"))
        h->doc.rc = tp_trace_info_write_custom(h->info, h->doc.out, h->doc.err);
    if (open_member(h, "activityTypes"))
        h->doc.rc = tp_trace_info_write_static(&used, h->doc.out, h->doc.err);
}

/* All members but traceEvents, in an object that is left open. */
static void write_members(struct head *h, const struct tp_trace_slice *slice,
                          int64_t base_ns)
{
    tp_json_doc_object(&h->doc);
    line_source_member(h, "schemaVersion", "1");
    line_source_member(h, "deviceProperties", NULL);
    line_distributed(h);
    line_source_members(h);
    line_source_member(h, "displayTimeUnit", "\"ms\"");
    tp_json_doc_line(&h->doc, 1);
    tp_json_doc_member_i64(&h->doc, "baseTimeNanoseconds", base_ns);
    write_ours(h, slice);
}

int tp_chrome_head_write(const struct tp_merge *m, const struct tp_trace_info *info,
                         const struct tp_trace_slice *slice, int64_t base_ns,
                         struct tp_buf *out, struct tp_err *err)
{
    struct head h = {.m = m, .info = info};

    tp_json_doc_init(&h.doc, out, err);
    write_members(&h, slice, base_ns);
    tp_json_doc_line(&h.doc, 1);
    tp_json_doc_key(&h.doc, "traceEvents");
    tp_json_doc_array(&h.doc);
    tp_buf_fini(&h.text);
    return h.doc.rc; /* the two brackets are closed by tp_chrome_head_write_end() */
}

int tp_chrome_head_write_end(struct tp_buf *out, struct tp_err *err)
{
    return tp_buf_append_str(out, "\n]\n}\n", err);
}

int tp_chrome_head_write_object(const struct tp_merge *m,
                                const struct tp_trace_info *info,
                                const struct tp_trace_slice *slice, int64_t base_ns,
                                struct tp_buf *out, struct tp_err *err)
{
    struct head h = {.m = m, .info = info};

    tp_json_doc_init(&h.doc, out, err);
    write_members(&h, slice, base_ns);
    tp_json_doc_line(&h.doc, 0);
    tp_json_doc_close(&h.doc);
    tp_buf_fini(&h.text);
    return tp_json_doc_end(&h.doc);
}
