#include "engine/downloads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "core/filter.h"
#include "engine/problem.h"
#include "engine/sources.h"
#include "engine/type_problem.h"
#include "trace/download.h"

struct tp_engine_download {
    struct tp_sources sources;
    struct tp_download_opts opts;
    struct tp_download_stream *streams;
    struct tp_typeset types;
    struct tp_typemap *typemap;
    uint32_t *ranks;
    struct tp_download *download;
    struct tp_engine_download_info info;
    char file_name[160];
    char etag[80];
};

static const struct {
    const char *name;
    const char *ending;
    const char *content_type;
} formats[TP_DOWNLOAD_FORMATS] = {
    [TP_DOWNLOAD_CHROME] = {"chrome", "json", "application/json"},
    [TP_DOWNLOAD_PERFETTO] = {"perfetto", "pftrace", "application/x-perfetto-trace"},
};

static int unsupported(const char *field, struct tp_str value,
                       struct tp_problem *problem, struct tp_err *err)
{
    int n = (int)(value.len > 64 ? 64 : value.len);

    return tp_problem_invalid(problem, field,
                              tp_fail(err, TP_EINVAL, "%s '%.*s' is not one of ours",
                                      field, n, value.ptr));
}

static int read_format(const struct tp_engine_download_request *r,
                       struct tp_download_opts *opts, struct tp_problem *problem,
                       struct tp_err *err)
{
    bool is_known = r->format.len == 0;

    for (int i = 0; i < TP_DOWNLOAD_FORMATS && !is_known; i++) {
        is_known = tp_str_is(r->format, formats[i].name);
        opts->format = (enum tp_download_format)i;
    }
    if (!is_known)
        return unsupported("format", r->format, problem, err);
    if (r->compress.len == 0 || tp_str_is(r->compress, "identity"))
        opts->compress = TP_COMPRESS_IDENTITY;
    else if (tp_str_is(r->compress, "gzip"))
        opts->compress = TP_COMPRESS_GZIP;
    else if (tp_str_is(r->compress, "zstd"))
        opts->compress = TP_COMPRESS_ZSTD;
    else
        return unsupported("compress", r->compress, problem, err);
    if (r->has_from && r->has_to && r->from_ns > r->to_ns)
        return tp_problem_invalid(problem, "from",
                                  tp_fail(err, TP_EINVAL, "from is after to"));
    return TP_OK;
}

static int read_types(struct tp_engine_download *d,
                      const struct tp_engine_download_request *r,
                      struct tp_problem *problem, struct tp_err *err)
{
    int rc = TP_OK;

    if (r->n_types == 0)
        return TP_OK;
    for (size_t i = 0; i < r->n_types && rc == TP_OK; i++) {
        struct tp_registry_detail detail = {0};
        unsigned id;

        if (tp_str_is(r->types[i], "untyped")) {
            d->opts.slice.has_untyped = true;
            continue;
        }
        rc = tp_activity_from_string(d->sources.registry, r->types[i], &id, &detail,
                                     err);
        if (rc == TP_OK)
            tp_typeset_add(&d->types, id);
        else if (rc != TP_ENOMEM) {
            tp_problem_from_registry(problem, &detail, d->sources.view->job, false,
                                     r->types[i], rc);
            if (problem != NULL)
                snprintf(problem->field, sizeof(problem->field), "types");
            rc = TP_EINVAL;
            if (err != NULL)
                err->code = rc;
        }
    }
    d->opts.slice.types = &d->types;
    return rc == TP_OK ? tp_typemap_new(d->sources.registry, &d->typemap, err) : rc;
}

static bool is_asked_for(const struct tp_engine_download_request *r, int64_t rank)
{
    for (size_t i = 0; i < r->n_ranks; i++) {
        if ((int64_t)r->ranks[i] == rank)
            return true;
    }
    return r->n_ranks == 0;
}

static int check_ranks(const struct tp_engine_download *d,
                       const struct tp_engine_download_request *r,
                       struct tp_problem *problem, struct tp_err *err)
{
    const struct tp_sources *s = &d->sources;

    for (size_t i = 0; i < r->n_ranks; i++) {
        bool is_there = false;

        for (size_t k = 0; k < s->n_items && !is_there; k++)
            is_there = s->items[k].view->who.rank == (int64_t)r->ranks[i];
        if (!is_there)
            return tp_problem_invalid(problem, "ranks",
                                      tp_fail(err, TP_EINVAL,
                                              "trace %s has no data of rank %u",
                                              s->view->id, r->ranks[i]));
    }
    return TP_OK;
}

/* Before anything is sent: a blob that was cut since it was sealed is no download. */
static int check_size(const struct tp_source *s, const char *trace_id,
                      const struct tp_blobs *blobs, struct tp_problem *problem,
                      struct tp_err *err)
{
    uint64_t size = blobs->size(tp_source_blob(s));
    uint64_t due = tp_source_index(s)->size_bytes;

    if (size == due)
        return TP_OK;
    return tp_problem_storage(
        problem, tp_fail(err, TP_EIO,
                         "stream %u of trace %s is damaged: of its %" PRIu64
                         " bytes, %" PRIu64 " are there",
                         s->view->no, trace_id, due, size));
}

static int choose_streams(struct tp_engine_download *d,
                          const struct tp_engine_download_request *r,
                          struct tp_problem *problem, struct tp_err *err)
{
    struct tp_sources *s = &d->sources;
    int rc = check_ranks(d, r, problem, err);

    if (rc != TP_OK)
        return rc;
    d->streams = calloc(s->n_items + 1, sizeof(*d->streams));
    d->ranks = calloc(r->n_ranks + 1, sizeof(*d->ranks));
    if (d->streams == NULL || d->ranks == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a download");
    for (size_t i = 0; i < s->n_items; i++) {
        if (!is_asked_for(r, s->items[i].view->who.rank))
            continue;
        rc = check_size(&s->items[i], s->view->id, s->e->opts.blobs, problem, err);
        if (rc != TP_OK)
            return rc;
        d->streams[d->opts.n_streams++] = (struct tp_download_stream){
            .blob = tp_source_blob(&s->items[i]),
            .index = tp_source_index(&s->items[i]),
            .producer = &s->producers[i],
        };
    }
    if (r->n_ranks > 0)
        memcpy(d->ranks, r->ranks, r->n_ranks * sizeof(*d->ranks));
    d->opts.streams = d->streams;
    d->opts.slice.ranks = d->ranks;
    d->opts.slice.n_ranks = r->n_ranks;
    return TP_OK;
}

static uint64_t mix(uint64_t h, const void *p, size_t n)
{
    const unsigned char *b = p;

    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* All that the bytes depend on beside the trace, which does not change any more. */
static uint64_t hash_of(const struct tp_engine_download *d)
{
    const struct tp_download_opts *o = &d->opts;
    const int64_t numbers[] = {
        o->format,
        o->compress,
        (o->slice.types != NULL) + 2 * o->slice.has_untyped,
        o->slice.has_from,
        o->slice.has_to,
        o->slice.from_ns,
        o->slice.to_ns,
        (int64_t)o->slice.n_ranks,
    };
    uint64_t h = mix(UINT64_C(0xcbf29ce484222325), numbers, sizeof(numbers));

    h = mix(h, &d->types, sizeof(d->types));
    h = mix(h, d->ranks, o->slice.n_ranks * sizeof(*d->ranks));
    h = mix(h, &d->sources.view->finished_wall_ns, sizeof(uint64_t));
    return mix(h, d->sources.service, strlen(d->sources.service));
}

static void fill_info(struct tp_engine_download *d)
{
    static const char *const encodings[] = {[TP_COMPRESS_IDENTITY] = "",
                                            [TP_COMPRESS_GZIP] = "gzip",
                                            [TP_COMPRESS_ZSTD] = "zstd"};
    const struct tp_trace_view *v = d->sources.view;
    char rank[24] = "";

    if (d->opts.slice.n_ranks == 1)
        snprintf(rank, sizeof(rank), "-rank%u", d->ranks[0]);
    snprintf(d->file_name, sizeof(d->file_name), "%s-%s%s.%s", v->job, v->id, rank,
             formats[d->opts.format].ending);
    if (!tp_sources_may_change(&d->sources))
        snprintf(d->etag, sizeof(d->etag), "\"%s-%016" PRIx64 "\"", v->id, hash_of(d));
    d->info.file_name = d->file_name;
    d->info.content_type = formats[d->opts.format].content_type;
    d->info.content_encoding = encodings[d->opts.compress];
    d->info.etag = d->etag;
    d->info.is_final = !tp_sources_may_change(&d->sources);
    d->info.has_size = tp_download_size(d->download, &d->info.size_bytes);
}

static void count_open(struct tp_engine *e, int change)
{
    tp_lock_take(&e->lock);
    e->stats.downloads_open += (uint64_t)(int64_t)change;
    tp_lock_give(&e->lock);
}

int tp_engine_download_open(struct tp_engine *e, struct tp_str trace_id,
                            const struct tp_engine_download_request *r,
                            struct tp_now now, struct tp_engine_download **out,
                            struct tp_problem *problem, struct tp_err *err)
{
    struct tp_engine_download *d = calloc(1, sizeof(*d));
    int rc;

    (void)now;
    tp_problem_clear(problem);
    if (d == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a download");
    count_open(e, 1);
    d->sources.e = e;
    d->opts.slice.has_from = r->has_from;
    d->opts.slice.has_to = r->has_to;
    d->opts.slice.from_ns = r->from_ns;
    d->opts.slice.to_ns = r->to_ns;
    rc = read_format(r, &d->opts, problem, err);
    if (rc == TP_OK)
        rc = tp_sources_open(e, trace_id, &d->sources, problem, err);
    if (rc == TP_OK)
        rc = read_types(d, r, problem, err);
    if (rc == TP_OK)
        rc = choose_streams(d, r, problem, err);
    if (rc == TP_OK) {
        d->opts.types = d->typemap;
        d->opts.info = &d->sources.info;
        rc = tp_download_open(&d->opts, &d->download, err);
    }
    if (rc != TP_OK) {
        d->sources.e = e;
        tp_engine_download_close(d);
        return rc;
    }
    fill_info(d);
    *out = d;
    return TP_OK;
}

const struct tp_engine_download_info *tp_engine_download_info(
    const struct tp_engine_download *d)
{
    return &d->info;
}

struct tp_download *tp_engine_download_data(struct tp_engine_download *d)
{
    return d->download;
}

void tp_engine_download_close(struct tp_engine_download *d)
{
    if (d == NULL)
        return;
    count_open(d->sources.e, -1);
    tp_download_free(d->download);
    tp_typemap_unref(d->typemap);
    tp_sources_fini(&d->sources);
    free(d->streams);
    free(d->ranks);
    free(d);
}
