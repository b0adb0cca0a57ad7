/*
 * summary.c - collect, sort, add up.
 *
 *   index types of all streams -> (rank, cat) items       -> sorted, equal ones added
 *   index names of all streams -> (rank, cat, name) items -> sorted, equal ones added
 *
 * Names of a type stay next to each other in one array, and so do the types of a rank,
 * so the structs of summary.h are windows on two arrays. The stragglers are found last,
 * from the types sorted by cat.
 */
#include "trace/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "trace/merge.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

/* One type of a rank, or one name of it: what is added up. */
struct item {
    uint32_t rank; /* place in the summary */
    struct tp_str cat, name;
    uint64_t count, total_ns, min_ns, max_ns;
    int64_t first_ns, last_ns;
    bool is_short; /* the index left names out */
};

struct items {
    struct item *at;
    size_t n;
};

/* What a summary points to. */
struct tp_summary_memory {
    struct tp_arena texts;
    struct tp_summary_rank *ranks;
    struct tp_summary_type *types;
    size_t n_types;
    struct tp_summary_name *names;
    struct tp_summary_straggler *stragglers;
};

static int compare_str(struct tp_str a, struct tp_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n == 0 ? 0 : memcmp(a.ptr, b.ptr, n);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* By rank, cat and name: equal ones come together. */
static int compare_keys(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;
    int order;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    order = compare_str(x->cat, y->cat);
    return order != 0 ? order : compare_str(x->name, y->name);
}

/* Most time first, then most events, then by name. */
static int compare_sizes(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return compare_keys(a, b);
}

/* As compare_sizes(), but inside of one cat. */
static int compare_names(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;
    int order = compare_str(x->cat, y->cat);

    if (x->rank != y->rank || order == 0)
        return compare_sizes(a, b);
    return order;
}

static void add_up(struct item *to, const struct item *from)
{
    to->count += from->count;
    to->total_ns += from->total_ns;
    to->min_ns = from->min_ns < to->min_ns ? from->min_ns : to->min_ns;
    to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
    to->first_ns = from->first_ns < to->first_ns ? from->first_ns : to->first_ns;
    to->last_ns = from->last_ns > to->last_ns ? from->last_ns : to->last_ns;
    to->is_short = to->is_short || from->is_short;
}

/* Sort and make one of equal ones. */
static void fold(struct items *items)
{
    size_t kept = 0;

    qsort(items->at, items->n, sizeof(*items->at), compare_keys);
    for (size_t i = 0; i < items->n; i++)
        if (kept > 0 && compare_keys(&items->at[i], &items->at[kept - 1]) == 0)
            add_up(&items->at[kept - 1], &items->at[i]);
        else
            items->at[kept++] = items->at[i];
    items->n = kept;
}

/* Whether stream i goes on with the rank of the stream before it. */
static bool continues(const struct tp_merge_stream *streams, size_t i)
{
    return i > 0 && streams[i].producer->has_rank &&
           streams[i - 1].producer->has_rank &&
           streams[i].producer->rank == streams[i - 1].producer->rank;
}

static int collect_types(const struct tp_merge_stream *streams, size_t n,
                         struct items *out, struct tp_err *err)
{
    size_t total = 0;
    uint32_t rank = 0;

    for (size_t i = 0; i < n; i++)
        total += streams[i].index->n_types;
    out->at = calloc(total + 1, sizeof(*out->at));
    if (out->at == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a summary of %zu types", total);
    for (size_t i = 0; i < n; i++) {
        const struct tp_stream_index *ix = streams[i].index;

        rank += i > 0 && !continues(streams, i);
        for (size_t k = 0; k < ix->n_types; k++)
            out->at[out->n++] = (struct item){.rank = rank,
                                              .cat = ix->types[k].cat,
                                              .count = ix->types[k].count,
                                              .total_ns = ix->types[k].total_ns,
                                              .first_ns = ix->types[k].first_ns,
                                              .last_ns = ix->types[k].last_ns,
                                              .is_short = !ix->names_are_complete};
    }
    fold(out);
    qsort(out->at, out->n, sizeof(*out->at), compare_sizes);
    return TP_OK;
}

static int collect_names(const struct tp_merge_stream *streams, size_t n,
                         struct items *out, struct tp_err *err)
{
    size_t total = 0;
    uint32_t rank = 0;

    for (size_t i = 0; i < n; i++)
        total += streams[i].index->n_names;
    out->at = calloc(total + 1, sizeof(*out->at));
    if (out->at == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a summary of %zu names", total);
    for (size_t i = 0; i < n; i++) {
        const struct tp_stream_index *ix = streams[i].index;

        rank += i > 0 && !continues(streams, i);
        for (size_t k = 0; k < ix->n_names; k++)
            out->at[out->n++] = (struct item){.rank = rank,
                                              .cat = ix->names[k].cat,
                                              .name = ix->names[k].name,
                                              .count = ix->names[k].count,
                                              .total_ns = ix->names[k].total_ns,
                                              .min_ns = ix->names[k].min_ns,
                                              .max_ns = ix->names[k].max_ns};
    }
    fold(out);
    qsort(out->at, out->n, sizeof(*out->at), compare_names);
    return TP_OK;
}

static int keep_text(struct tp_summary_memory *m, struct tp_str s, struct tp_str *out,
                     struct tp_err *err)
{
    char *p;
    int rc;

    *out = (struct tp_str){"", 0};
    if (s.len == 0)
        return TP_OK;
    rc = tp_arena_room(&m->texts, s.len, &p, err);
    if (rc != TP_OK)
        return rc;
    memcpy(p, s.ptr, s.len);
    tp_arena_take(&m->texts, s.len);
    *out = (struct tp_str){p, s.len};
    return TP_OK;
}

/* The first name of a type in the sorted names: those of a (rank, cat) are together. */
static size_t find_names(const struct items *names, const struct item *type)
{
    size_t low = 0;
    size_t high = names->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct item *x = &names->at[middle];

        if (x->rank < type->rank ||
            (x->rank == type->rank && compare_str(x->cat, type->cat) < 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Give a type its names, at most n_max of them. *next is the free place of names. */
static int make_names(struct tp_summary_memory *m, const struct items *names,
                      const struct item *type, size_t n_max, size_t *next,
                      struct tp_summary_type *out, struct tp_err *err)
{
    size_t i = find_names(names, type);

    out->names = m->names + *next;
    out->names_are_complete = !type->is_short;
    for (; i < names->n; i++) {
        const struct item *x = &names->at[i];
        struct tp_summary_name *name = &m->names[*next];
        int rc;

        if (x->rank != type->rank || compare_str(x->cat, type->cat) != 0)
            break;
        if (out->n_names == n_max) {
            out->names_are_complete = false;
            break;
        }
        rc = keep_text(m, x->name, &name->name, err);
        if (rc != TP_OK)
            return rc;
        name->count = x->count;
        name->total_ns = x->total_ns;
        name->min_ns = x->min_ns;
        name->max_ns = x->max_ns;
        out->n_names++;
        *next += 1;
    }
    return TP_OK;
}

static void add_to_rank(struct tp_summary_rank *rank, const struct tp_summary_type *t)
{
    if (rank->n_types == 0)
        rank->types = t;
    if (rank->count == 0 || t->first_ns < rank->first_ns)
        rank->first_ns = t->first_ns;
    if (rank->count == 0 || t->last_ns > rank->last_ns)
        rank->last_ns = t->last_ns;
    rank->count += t->count;
    rank->n_types++;
}

static int make_types(struct tp_summary_memory *m, const struct items *types,
                      const struct items *names, size_t n_max, struct tp_err *err)
{
    size_t next = 0;
    int rc = TP_OK;

    m->types = calloc(types->n + 1, sizeof(*m->types));
    m->names = calloc(names->n + 1, sizeof(*m->names));
    if (m->types == NULL || m->names == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a summary");
    for (size_t i = 0; rc == TP_OK && i < types->n; i++) {
        const struct item *x = &types->at[i];
        struct tp_summary_type *t = &m->types[i];

        t->count = x->count;
        t->total_ns = x->total_ns;
        t->first_ns = x->first_ns;
        t->last_ns = x->last_ns;
        rc = keep_text(m, x->cat, &t->cat, err);
        if (rc == TP_OK)
            rc = make_names(m, names, x, n_max, &next, t, err);
        add_to_rank(&m->ranks[x->rank], t);
    }
    m->n_types = types->n;
    return rc;
}

static int make_ranks(struct tp_summary_memory *m,
                      const struct tp_merge_stream *streams, size_t n, size_t *n_ranks,
                      struct tp_err *err)
{
    m->ranks = calloc(n + 1, sizeof(*m->ranks));
    if (m->ranks == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a summary of %zu ranks", n);
    *n_ranks = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tp_producer_info *p = streams[i].producer;
        struct tp_summary_rank *rank = &m->ranks[*n_ranks];
        int rc;

        if (continues(streams, i))
            continue;
        rank->has_rank = p->has_rank;
        rank->rank = p->rank;
        rc = keep_text(m, p->id.len > 0 ? p->id : p->name, &rank->producer, err);
        if (rc == TP_OK)
            rc = keep_text(m, p->host, &rank->host, err);
        if (rc != TP_OK)
            return rc;
        *n_ranks += 1;
    }
    return TP_OK;
}

/* A value of one rank, to be compared with those of the others. */
struct value {
    const struct tp_summary_rank *rank;
    struct tp_str cat;
    bool is_span;
    uint64_t ns;
};

/* Spans first, then by cat, then small ones first. */
static int compare_values(const void *a, const void *b)
{
    const struct value *x = a;
    const struct value *y = b;
    int order = compare_str(x->cat, y->cat);

    if (x->is_span != y->is_span)
        return x->is_span ? -1 : 1;
    if (order != 0)
        return order;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static bool same_measure(const struct value *x, const struct value *y)
{
    return x->is_span == y->is_span && compare_str(x->cat, y->cat) == 0;
}

static bool is_straggler(uint64_t ns, uint64_t median_ns)
{
    return ns > median_ns && ns - median_ns >= TP_SUMMARY_STRAGGLER_NS &&
           (ns - median_ns) / (double)(median_ns + 1) >
               TP_SUMMARY_STRAGGLER_PERCENT / 100.0;
}

static size_t collect_values(const struct tp_summary *s, struct value *out)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_ranks; i++) {
        const struct tp_summary_rank *rank = &s->ranks[i];

        if (!rank->has_rank || rank->count == 0)
            continue;
        out[n++] =
            (struct value){.rank = rank,
                           .is_span = true,
                           .ns = (uint64_t)rank->last_ns - (uint64_t)rank->first_ns};
        for (size_t k = 0; k < rank->n_types; k++)
            if (rank->types[k].cat.len > 0 && rank->types[k].total_ns > 0)
                out[n++] = (struct value){.rank = rank,
                                          .cat = rank->types[k].cat,
                                          .ns = rank->types[k].total_ns};
    }
    return n;
}

/* By how much over the median, relative to it, the largest first. */
static int compare_stragglers(const void *a, const void *b)
{
    const struct tp_summary_straggler *x = a;
    const struct tp_summary_straggler *y = b;
    double p = (double)x->value_ns / (double)(x->median_ns + 1);
    double q = (double)y->value_ns / (double)(y->median_ns + 1);

    if (p != q)
        return p > q ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return compare_str(x->cat, y->cat);
}

static int make_stragglers(struct tp_summary *s, struct tp_err *err)
{
    struct tp_summary_memory *m = s->memory;
    size_t most = s->n_ranks + m->n_types;
    struct value *values = calloc(most + 1, sizeof(*values));
    size_t n;

    m->stragglers = calloc(most + 1, sizeof(*m->stragglers));
    if (values == NULL || m->stragglers == NULL) {
        free(values);
        return tp_fail(err, TP_ENOMEM, "no memory to find stragglers");
    }
    n = collect_values(s, values);
    qsort(values, n, sizeof(*values), compare_values);
    for (size_t first = 0, end = 0; first < n; first = end) {
        uint64_t median_ns;

        while (end < n && same_measure(&values[end], &values[first]))
            end++;
        median_ns = values[first + (end - first - 1) / 2].ns;
        for (size_t i = first; i < end; i++)
            if (is_straggler(values[i].ns, median_ns))
                m->stragglers[s->n_stragglers++] =
                    (struct tp_summary_straggler){.rank = values[i].rank->rank,
                                                  .is_span = values[i].is_span,
                                                  .cat = values[i].cat,
                                                  .value_ns = values[i].ns,
                                                  .median_ns = median_ns,
                                                  .n_ranks = end - first};
    }
    free(values);
    s->stragglers = m->stragglers;
    qsort(m->stragglers, s->n_stragglers, sizeof(*m->stragglers), compare_stragglers);
    return TP_OK;
}

int tp_summary_new(const struct tp_merge_stream *streams, size_t n, size_t n_names,
                   struct tp_summary **out, struct tp_err *err)
{
    struct tp_summary *s = calloc(1, sizeof(*s));
    struct items types = {0};
    struct items names = {0};
    int rc = TP_OK;

    if (s != NULL)
        s->memory = calloc(1, sizeof(*s->memory));
    if (s == NULL || s->memory == NULL)
        rc = tp_fail(err, TP_ENOMEM, "no memory for a summary");
    if (rc == TP_OK)
        rc = make_ranks(s->memory, streams, n, &s->n_ranks, err);
    if (rc == TP_OK)
        rc = collect_types(streams, n, &types, err);
    if (rc == TP_OK)
        rc = collect_names(streams, n, &names, err);
    if (rc == TP_OK)
        rc = make_types(s->memory, &types, &names,
                        n_names == 0 ? TP_SUMMARY_NAMES_DEFAULT : n_names, err);
    if (rc == TP_OK) {
        s->ranks = s->memory->ranks;
        rc = make_stragglers(s, err);
    }
    free(types.at);
    free(names.at);
    if (rc == TP_OK)
        *out = s;
    else
        tp_summary_free(s);
    return rc;
}

void tp_summary_free(struct tp_summary *s)
{
    if (s == NULL)
        return;
    if (s->memory != NULL) {
        tp_arena_fini(&s->memory->texts);
        free(s->memory->ranks);
        free(s->memory->types);
        free(s->memory->names);
        free(s->memory->stragglers);
        free(s->memory);
    }
    free(s);
}
