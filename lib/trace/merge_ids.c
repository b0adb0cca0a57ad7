/*
 * merge_ids.c - ids that are unique in a download; merge.c has the rules.
 */
#include "trace/merge_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/strmap.h"
#include "trace/merge.h"
#include "trace/merge_join.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

#define PID_STEP INT64_C(10000000)
#define SYNTHETIC_FROM 1000000000
#define JOINED_FROM 1500000000 /* of threads that share a process and have no number */
#define JOINED_MAX 500000000
#define LANE_STEP INT64_C(1000000)
#define SORT_STEP INT64_C(100000) /* most processes of a stream in their order */

/* Make *out a new string of a printf format. */
#define FORMAT(out, err, ...)                                             \
    (asprintf((out), __VA_ARGS__) < 0                                     \
         ? (*(out) = NULL,                                                \
            tp_fail((err), TP_ENOMEM, "no memory for the name of an id")) \
         : TP_OK)

/* Numbers that are in use. */
struct numbers {
    struct tp_strmap used;
    int64_t next; /* where the search for a free synthetic one goes on */
};

static bool is_used(const struct numbers *set, int64_t number)
{
    return tp_strmap_get_u64(&set->used, (const char *)&number, sizeof(number), NULL);
}

static int use(struct numbers *set, int64_t number, struct tp_err *err)
{
    return tp_strmap_put_u64(&set->used, (const char *)&number, sizeof(number), 1, err);
}

/* A number for `wanted` of the k-th stream that nobody has: see merge.c. */
static int64_t choose_number(struct numbers *set, int64_t wanted, size_t k)
{
    int64_t shifted = wanted + (int64_t)k * PID_STEP;

    if (!is_used(set, wanted))
        return wanted;
    if (wanted >= 0 && wanted < PID_STEP && shifted < SYNTHETIC_FROM &&
        !is_used(set, shifted))
        return shifted;
    while (is_used(set, set->next))
        set->next++;
    return set->next++;
}

static bool fits_perfetto(const struct tp_id *id)
{
    return id->kind == TP_ID_NUMBER && id->number > 0 && id->number <= INT32_MAX;
}

/* The pid in Chrome JSON of a process in a merge. */
static int give_pid(struct tp_merge *m, struct tp_merge_process *p, struct numbers *set,
                    struct tp_err *err)
{
    const struct tp_str text = p->source.text;
    int rc;

    if (p->source.kind == TP_ID_NUMBER) {
        p->pid = p->source;
        p->pid.number = choose_number(set, p->source.number, p->stream);
        return use(set, p->pid.number, err);
    }
    rc = FORMAT(&p->text, err, "%.*s%s(%s)",
                p->source.kind == TP_ID_TEXT ? (int)text.len : 0,
                p->source.kind == TP_ID_TEXT && text.len > 0 ? text.ptr : "",
                p->source.kind == TP_ID_TEXT && text.len > 0 ? " " : "",
                m->markers[p->stream]);
    if (rc == TP_OK)
        p->pid = (struct tp_id){.kind = TP_ID_TEXT, .text = tp_str_of(p->text)};
    return rc;
}

/* Pids for Chrome JSON; a single stream keeps its own. */
static int give_pids(struct tp_merge *m, struct tp_err *err)
{
    struct numbers set = {.next = SYNTHETIC_FROM};
    int rc = TP_OK;

    for (size_t i = 0; rc == TP_OK && i < m->n_processes; i++) {
        struct tp_merge_process *p = &m->processes[i];

        if (tp_merge_is_joined(m, i))
            continue;
        if (m->is_merged)
            rc = give_pid(m, p, &set, err);
        else
            p->pid = p->source;
    }
    tp_strmap_fini(&set.used);
    return rc;
}

/* What is one process with another has its ids. */
static void share_ids(struct tp_merge *m)
{
    for (size_t i = 0; i < m->n_processes; i++) {
        const struct tp_merge_process *owner = &m->processes[m->processes[i].owner];

        m->processes[i].pid = owner->pid;
        m->processes[i].number = owner->number;
    }
}

/* Pids for Perfetto: first those that can stay, so that a synthetic one takes none. */
static int give_numbers(struct tp_merge *m, struct tp_err *err)
{
    struct numbers set = {.next = SYNTHETIC_FROM};
    int rc = TP_OK;

    for (size_t i = 0; rc == TP_OK && i < m->n_processes; i++) {
        struct tp_merge_process *p = &m->processes[i];

        if (!fits_perfetto(&p->source) || is_used(&set, p->source.number) ||
            tp_merge_is_joined(m, i))
            continue;
        p->number = (int32_t)p->source.number;
        rc = use(&set, p->number, err);
    }
    for (size_t i = 0; rc == TP_OK && i < m->n_processes; i++) {
        struct tp_merge_process *p = &m->processes[i];
        int64_t wanted = p->source.kind == TP_ID_NUMBER ? p->source.number : -1;

        if (p->number != 0 || tp_merge_is_joined(m, i))
            continue;
        if (wanted <= 0 || wanted > INT32_MAX)
            wanted = set.next;
        p->number = (int32_t)choose_number(&set, wanted, p->stream);
        rc = use(&set, p->number, err);
    }
    tp_strmap_fini(&set.used);
    return rc;
}

static bool has_tid(const struct tp_merge *m, const struct tp_merge_process *p,
                    int64_t number)
{
    const struct tp_id tid = {.kind = TP_ID_NUMBER, .number = number};

    return tp_merge_thread(m, p, &tid, 0) != NULL;
}

/* Tids for Perfetto, which must be unique in their process only. */
static void give_thread_numbers(struct tp_merge *m)
{
    int64_t next = SYNTHETIC_FROM;

    for (size_t i = 0; i < m->n_threads; i++) {
        struct tp_merge_thread *t = &m->threads[i];

        if (i > 0 && t->process != t[-1].process)
            next = SYNTHETIC_FROM;
        if (tp_merge_is_joined(m, t->process)) {
            t->number = fits_perfetto(&t->tid)
                            ? (int32_t)t->tid.number
                            : JOINED_FROM + (int32_t)(i % JOINED_MAX);
            continue;
        }
        if (fits_perfetto(&t->source)) {
            t->number = (int32_t)t->source.number;
            continue;
        }
        while (has_tid(m, &m->processes[t->process], next))
            next++;
        t->number = (int32_t)next++;
    }
}

/* The lanes of one process, which are given numbers; *step is where the search of
 * its thread stands, in steps of LANE_STEP. */
static int give_lane_number(struct tp_merge *m, struct tp_merge_thread *t,
                            struct numbers *set, int64_t *step, struct tp_err *err)
{
    const struct tp_merge_process *p = &m->processes[t->process];
    int64_t number;

    do {
        if (__builtin_add_overflow(t->source.number, ++*step * LANE_STEP, &number))
            number = set->next++;
    } while (has_tid(m, p, number) || is_used(set, number));
    t->tid = (struct tp_id){.kind = TP_ID_NUMBER, .number = number};
    return use(set, number, err);
}

static int give_lane(struct tp_merge *m, struct tp_merge_thread *t, struct numbers *set,
                     int64_t *step, struct tp_err *err)
{
    const struct tp_str text = t->source.text;
    int rc;

    if (t->source.kind == TP_ID_NUMBER)
        return give_lane_number(m, t, set, step, err);
    rc = FORMAT(&t->text, err, "%.*s%s(lane %u)",
                t->source.kind == TP_ID_TEXT ? (int)text.len : 0,
                t->source.kind == TP_ID_TEXT && text.len > 0 ? text.ptr : "",
                t->source.kind == TP_ID_TEXT && text.len > 0 ? " " : "", t->lane);
    if (rc == TP_OK)
        t->tid = (struct tp_id){.kind = TP_ID_TEXT, .text = tp_str_of(t->text)};
    return rc;
}

/* The tid of a thread, of any lane, of a process that it shares with another stream. A
 * number that the other one has is moved as those of lanes are. */
static int give_joined(struct tp_merge *m, struct tp_merge_thread *t,
                       struct numbers *set, int64_t *step, struct tp_err *err)
{
    const struct tp_str text = t->source.text;
    int rc;

    if (t->lane > 0)
        return give_lane(m, t, set, step, err);
    if (t->source.kind == TP_ID_NUMBER && is_used(set, t->source.number))
        return give_lane_number(m, t, set, step, err);
    if (t->source.kind != TP_ID_TEXT) {
        t->tid = t->source;
        return t->source.kind == TP_ID_NONE ? TP_OK : use(set, t->tid.number, err);
    }
    rc = FORMAT(&t->text, err, "%.*s (%s)", (int)text.len, text.len > 0 ? text.ptr : "",
                m->markers[m->processes[t->process].stream]);
    if (rc == TP_OK)
        t->tid = (struct tp_id){.kind = TP_ID_TEXT, .text = tp_str_of(t->text)};
    return rc;
}

/* The numbers that other streams of the same process have given to their threads. */
static int use_shared(const struct tp_merge *m, size_t process, struct numbers *set,
                      struct tp_err *err)
{
    size_t owner = m->processes[process].owner;
    int rc = TP_OK;

    for (size_t p = 0; p < m->n_processes; p++) {
        size_t stream = m->processes[p].stream;

        if (p == process || m->processes[p].owner != owner)
            continue;
        for (size_t i = m->first_thread[stream];
             rc == TP_OK && i < m->first_thread[stream + 1]; i++) {
            const struct tp_merge_thread *t = &m->threads[i];

            if (t->process == p && t->tid.kind == TP_ID_NUMBER)
                rc = use(set, t->tid.number, err);
        }
    }
    return rc;
}

/* Tids for Chrome JSON: lane 0 has that of the source. Those of processes that share
 * their pid come behind those of the owners. */
static int give_some_tids(struct tp_merge *m, bool is_joined, struct tp_err *err)
{
    struct numbers set = {.next = SYNTHETIC_FROM};
    int64_t step = 0;
    int rc = TP_OK;

    for (size_t i = 0; rc == TP_OK && i < m->n_threads; i++) {
        struct tp_merge_thread *t = &m->threads[i];
        bool is_same_process = i > 0 && t->process == t[-1].process;

        if (tp_merge_is_joined(m, t->process) != is_joined)
            continue;
        if (!is_same_process) {
            tp_strmap_fini(&set.used);
            set.used = (struct tp_strmap){0};
            rc = is_joined ? use_shared(m, t->process, &set, err) : TP_OK;
        }
        if (!is_same_process || tp_merge_compare_ids(&t->source, &t[-1].source) != 0)
            step = 0;
        if (rc != TP_OK)
            break;
        if (is_joined)
            rc = give_joined(m, t, &set, &step, err);
        else if (t->lane == 0)
            t->tid = t->source;
        else
            rc = give_lane(m, t, &set, &step, err);
    }
    tp_strmap_fini(&set.used);
    return rc;
}

static int give_tids(struct tp_merge *m, struct tp_err *err)
{
    int rc = give_some_tids(m, false, err);

    return rc == TP_OK ? give_some_tids(m, true, err) : rc;
}

static int make_label(const struct tp_merge_stream *s, char **out, struct tp_err *err)
{
    const struct tp_producer_info *p = s->producer;

    if (p->has_rank)
        return FORMAT(out, err, "rank %u", p->rank);
    if (p->name.len > 0)
        return FORMAT(out, err, "%.*s", (int)p->name.len, p->name.ptr);
    return FORMAT(out, err, "stream %u", s->index->stream_no);
}

static int make_marker(struct tp_merge *m, size_t i, const struct tp_strmap *count,
                       struct tp_err *err)
{
    uint64_t n = 0;

    tp_strmap_get_u64(count, m->labels[i], strlen(m->labels[i]), &n);
    if (n < 2)
        return FORMAT(&m->markers[i], err, "%s", m->labels[i]);
    return FORMAT(&m->markers[i], err, "%s, stream %u", m->labels[i],
                  m->streams[i].index->stream_no);
}

static int make_labels(struct tp_merge *m, struct tp_err *err)
{
    struct tp_strmap count = {0};
    int rc = TP_OK;

    m->labels = calloc(m->n_streams + 1, sizeof(*m->labels));
    m->markers = calloc(m->n_streams + 1, sizeof(*m->markers));
    if (m->labels == NULL || m->markers == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the labels of a download");
    for (size_t i = 0; rc == TP_OK && i < m->n_streams; i++) {
        uint64_t n = 0;

        rc = make_label(&m->streams[i], &m->labels[i], err);
        if (rc != TP_OK)
            break;
        tp_strmap_get_u64(&count, m->labels[i], strlen(m->labels[i]), &n);
        rc = tp_strmap_put_u64(&count, m->labels[i], strlen(m->labels[i]), n + 1, err);
    }
    for (size_t i = 0; rc == TP_OK && i < m->n_streams; i++)
        rc = make_marker(m, i, &count, err);
    tp_strmap_fini(&count);
    return rc;
}

/* By what the source said, else by pid, else as they come. */
static int compare_sort(const void *a, const void *b)
{
    const struct tp_merge_process *x = *(struct tp_merge_process *const *)a;
    const struct tp_merge_process *y = *(struct tp_merge_process *const *)b;
    int64_t p = x->has_sort ? x->sort : x->source.number;
    int64_t q = y->has_sort ? y->sort : y->source.number;

    if (p != q)
        return p < q ? -1 : 1;
    return (x > y) - (x < y);
}

/* Streams in order of the plan, which the caller has by rank; processes inside. */
static int give_sort_indexes(struct tp_merge *m, struct tp_err *err)
{
    struct tp_merge_process **order = calloc(m->n_processes + 1, sizeof(*order));

    if (order == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to sort the processes of a download");
    for (size_t i = 0; i < m->n_processes; i++)
        order[i] = &m->processes[i];
    for (size_t s = 0; s < m->n_streams; s++) {
        size_t first = m->first_process[s];
        size_t n = m->first_process[s + 1] - first;

        qsort(order + first, n, sizeof(struct tp_merge_process *), compare_sort);
        for (size_t i = 0; i < n; i++)
            order[first + i]->sort_index =
                (int64_t)s * SORT_STEP +
                (i < (size_t)SORT_STEP ? (int64_t)i : SORT_STEP - 1);
    }
    free(order);
    return TP_OK;
}

int tp_merge_ids_give(struct tp_merge *m, struct tp_err *err)
{
    int rc;

    if ((rc = make_labels(m, err)) != TP_OK || (rc = give_pids(m, err)) != TP_OK ||
        (rc = give_numbers(m, err)) != TP_OK || (rc = give_tids(m, err)) != TP_OK ||
        (rc = give_sort_indexes(m, err)) != TP_OK)
        return rc;
    share_ids(m);
    give_thread_numbers(m);
    return TP_OK;
}
