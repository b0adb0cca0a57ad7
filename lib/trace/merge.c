/*
 * merge.c - collects the ids of all streams, sorted, and gives out new ones.
 *
 *   tracks, series, metadata --> pids, sorted, unique --> processes
 *   tracks                   --> sorted               --> threads (points to process)
 *   metadata                 --> names
 *
 * A number that nobody has yet stays. One that is taken becomes pid + k * 10^7 with the
 * stream's place k, which people can still read; when that is taken or too large, the
 * next free one above 10^9. All stay below 2^31, where every viewer can follow. Texts
 * get the stream's marker: "Spans (rank 3)". merge_ids.c gives the numbers out; this
 * file has the tables and the names.
 */
#include "trace/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_members.h"
#include "trace/merge_ids.h"
#include "trace/merge_join.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

#define BASE_STEP_NS (INT64_C(7889238) * 1000000000)
#define SMALL_TIME_NS (INT64_C(1) << 53)
#define NEAR_NS (INT64_C(1) << 54) /* half a year; a base is up to a quarter early */

int tp_merge_compare_ids(const struct tp_id *a, const struct tp_id *b)
{
    size_t shorter;
    int order;

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == TP_ID_NUMBER)
        return (a->number > b->number) - (a->number < b->number);
    if (a->kind == TP_ID_NONE)
        return 0;
    shorter = a->text.len < b->text.len ? a->text.len : b->text.len;
    order = shorter == 0 ? 0 : memcmp(a->text.ptr, b->text.ptr, shorter);
    if (order != 0)
        return order;
    return (a->text.len > b->text.len) - (a->text.len < b->text.len);
}

static int compare_processes(const void *a, const void *b)
{
    const struct tp_merge_process *x = a;
    const struct tp_merge_process *y = b;

    return tp_merge_compare_ids(&x->source, &y->source);
}

static int compare_threads(const void *a, const void *b)
{
    const struct tp_merge_thread *x = a;
    const struct tp_merge_thread *y = b;
    int order;

    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    order = tp_merge_compare_ids(&x->source, &y->source);
    if (order != 0)
        return order;
    return (x->lane > y->lane) - (x->lane < y->lane);
}

const struct tp_merge_process *tp_merge_process(const struct tp_merge *m, size_t stream,
                                                const struct tp_id *pid)
{
    const struct tp_merge_process key = {.source = *pid};
    size_t first = m->first_process[stream];

    return bsearch(&key, m->processes + first, m->first_process[stream + 1] - first,
                   sizeof(key), compare_processes);
}

const struct tp_merge_thread *tp_merge_thread(const struct tp_merge *m,
                                              const struct tp_merge_process *process,
                                              const struct tp_id *tid, uint32_t lane)
{
    const struct tp_merge_thread key = {.process = (uint32_t)(process - m->processes),
                                        .source = *tid,
                                        .lane = lane};

    return bsearch(&key, m->threads, m->n_threads, sizeof(key), compare_threads);
}

/* Put the pids of one stream behind the processes, sorted and each once. */
static void collect_processes(struct tp_merge *m, size_t stream)
{
    const struct tp_stream_index *ix = m->streams[stream].index;
    struct tp_merge_process *p = m->processes + m->n_processes;
    size_t n = 0;
    size_t kept = 0;

    for (size_t i = 0; i < ix->n_tracks; i++)
        p[n++] = (struct tp_merge_process){.source = ix->tracks[i].pid};
    for (size_t i = 0; i < ix->n_series; i++)
        p[n++] = (struct tp_merge_process){.source = ix->series[i].pid};
    for (size_t i = 0; i < ix->n_metas; i++)
        p[n++] = (struct tp_merge_process){.source = ix->metas[i].pid};
    qsort(p, n, sizeof(*p), compare_processes);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || compare_processes(&p[i], &p[kept - 1]) != 0) {
            p[kept] = p[i];
            p[kept].stream = (uint32_t)stream;
            kept++;
        }
    m->n_processes += kept;
}

/* How many ids the indexes name, each as often as it comes. */
static size_t count_ids(const struct tp_merge *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_streams; i++) {
        const struct tp_stream_index *ix = m->streams[i].index;

        n += ix->n_tracks + ix->n_series + ix->n_metas;
    }
    return n;
}

static int make_processes(struct tp_merge *m, struct tp_err *err)
{
    struct tp_merge_process *smaller;

    m->processes = calloc(count_ids(m) + 1, sizeof(*m->processes));
    m->first_process = calloc(m->n_streams + 1, sizeof(*m->first_process));
    if (m->processes == NULL || m->first_process == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the processes of a download");
    for (size_t i = 0; i < m->n_streams; i++) {
        m->first_process[i] = m->n_processes;
        collect_processes(m, i);
    }
    m->first_process[m->n_streams] = m->n_processes;
    /* Most ids were repetitions: give the room back. */
    smaller = realloc(m->processes, (m->n_processes + 1) * sizeof(*m->processes));
    if (smaller != NULL)
        m->processes = smaller;
    return TP_OK;
}

static int make_threads(struct tp_merge *m, struct tp_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_streams; i++)
        n += m->streams[i].index->n_tracks;
    m->threads = calloc(n + 1, sizeof(*m->threads));
    m->first_thread = calloc(m->n_streams + 1, sizeof(*m->first_thread));
    if (m->threads == NULL || m->first_thread == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the threads of a download");
    for (size_t i = 0; i < m->n_streams; i++) {
        const struct tp_stream_index *ix = m->streams[i].index;

        m->first_thread[i] = m->n_threads;
        for (size_t k = 0; k < ix->n_tracks; k++) {
            const struct tp_index_track *t = &ix->tracks[k];

            m->threads[m->n_threads++] = (struct tp_merge_thread){
                .process = (uint32_t)(tp_merge_process(m, i, &t->pid) - m->processes),
                .lane = t->lane,
                .source = t->tid,
                .uuid = t->uuid};
        }
    }
    m->first_thread[m->n_streams] = m->n_threads;
    /* Processes are in order of their streams, so each stream's stay together. */
    qsort(m->threads, m->n_threads, sizeof(*m->threads), compare_threads);
    return TP_OK;
}

/* Set *text, once released, to the text of a member of the args; "" is no name. */
static int take_text(const struct tp_index_meta *meta, const char *key, char **text,
                     struct tp_err *err)
{
    struct tp_buf b = {0};
    struct tp_str value;
    int rc;

    if (!tp_json_members_find(meta->args_json, key, &value))
        return TP_OK;
    rc = tp_json_members_text(value, &b, err);
    if (rc == TP_OK && b.len > 0)
        rc = tp_buf_append(&b, "", 1, err);
    if (rc != TP_OK || b.len == 0) {
        tp_buf_fini(&b);
        return rc;
    }
    free(*text); /* the last of several counts, as in viewers */
    *text = b.data;
    return TP_OK;
}

/* Take over what one metadata event says. */
static int read_meta(struct tp_merge *m, size_t stream,
                     const struct tp_index_meta *meta, struct tp_err *err)
{
    struct tp_merge_process *p =
        m->processes + (tp_merge_process(m, stream, &meta->pid) - m->processes);
    struct tp_merge_thread *t;
    struct tp_str value;

    p->has_metadata = true;
    if (tp_str_is(meta->name, "process_name"))
        return take_text(meta, "name", &p->name, err);
    if (tp_str_is(meta->name, "process_labels"))
        return take_text(meta, "labels", &p->labels, err);
    if (tp_str_is(meta->name, "process_sort_index") &&
        tp_json_members_find(meta->args_json, "sort_index", &value))
        p->has_sort = tp_json_members_int(value, &p->sort) || p->has_sort;
    if (!tp_str_is(meta->name, "thread_name"))
        return TP_OK;
    t = (struct tp_merge_thread *)(uintptr_t)tp_merge_thread(m, p, &meta->tid, 0);
    return t == NULL ? TP_OK : take_text(meta, "name", &t->name, err);
}

static int read_metas(struct tp_merge *m, struct tp_err *err)
{
    for (size_t i = 0; i < m->n_streams; i++) {
        const struct tp_stream_index *ix = m->streams[i].index;

        for (size_t k = 0; k < ix->n_metas; k++) {
            int rc = read_meta(m, i, &ix->metas[k], err);

            if (rc != TP_OK)
                return rc;
        }
    }
    return TP_OK;
}

int tp_merge_new(const struct tp_merge_stream *streams, size_t n, struct tp_merge **out,
                 struct tp_err *err)
{
    struct tp_merge *m = calloc(1, sizeof(*m));
    int rc;

    if (m == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the plan of a download");
    m->streams = streams;
    m->n_streams = n;
    m->is_merged = n > 1;
    if ((rc = make_processes(m, err)) != TP_OK ||
        (rc = make_threads(m, err)) != TP_OK || (rc = tp_merge_join(m, err)) != TP_OK ||
        (rc = read_metas(m, err)) != TP_OK) {
        tp_merge_free(m);
        return rc;
    }
    tp_merge_join_names(m);
    rc = tp_merge_ids_give(m, err);
    if (rc != TP_OK) {
        tp_merge_free(m);
        return rc;
    }
    *out = m;
    return TP_OK;
}

static void free_texts(char **texts, size_t n)
{
    for (size_t i = 0; texts != NULL && i < n; i++)
        free(texts[i]);
    free(texts);
}

void tp_merge_free(struct tp_merge *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->n_processes; i++) {
        free(m->processes[i].name);
        free(m->processes[i].labels);
        free(m->processes[i].text);
    }
    for (size_t i = 0; i < m->n_threads; i++) {
        free(m->threads[i].name);
        free(m->threads[i].text);
    }
    free(m->processes);
    free(m->threads);
    free(m->first_process);
    free(m->first_thread);
    free_texts(m->labels, m->n_streams);
    free_texts(m->markers, m->n_streams);
    free(m);
}

static int64_t own_base_ns(const struct tp_stream_index *ix)
{
    int64_t steps;

    if (ix->has_base)
        return ix->base_ns;
    if (ix->last_ns < SMALL_TIME_NS)
        return 0;
    steps = ix->first_ns / BASE_STEP_NS;
    return (ix->first_ns < 0 ? steps - 1 : steps) * BASE_STEP_NS;
}

/* Whether a double can hold the microseconds between two moments to some ns. */
static bool is_near(int64_t a_ns, int64_t b_ns)
{
    int64_t apart;

    return !__builtin_sub_overflow(a_ns, b_ns, &apart) && apart < NEAR_NS &&
           apart > -NEAR_NS;
}

int64_t tp_merge_base_ns(const struct tp_merge_stream *streams, size_t n,
                         int64_t about_ns)
{
    bool is_set = false, has_near = false;
    int64_t base_ns = 0;

    for (size_t i = 0; i < n; i++) {
        const struct tp_stream_index *ix = streams[i].index;
        bool nears;
        int64_t own;

        if (ix->n_events == 0 && !ix->has_base)
            continue; /* it has no times */
        own = own_base_ns(ix);
        nears = about_ns != 0 && is_near(own, about_ns);
        if (!is_set || (nears == has_near ? own < base_ns : nears))
            base_ns = own;
        has_near = has_near || nears;
        is_set = true;
    }
    return base_ns;
}
