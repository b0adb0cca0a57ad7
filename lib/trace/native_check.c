/*
 * native_check.c - reads what is to be stored, with the reader that will read it again.
 *
 * The seal trusts a log: it does not look at texts again. So a batch is good when the
 * reader that does look has found nothing to mend, and when nothing is in it that would
 * mean something to the log around it: a frame header, a ghost, another sequence, a
 * name that becomes a metadata event of its own.
 *
 * On the way it notes what the seal will find, so that a trace whose batches are all
 * plain need not wait for its seals (native_tally.h). Types are counted by the number
 * of the `cat` and looked up once for each.
 */
#include "trace/native_check.h"

#include <stdlib.h>

#include "base/err.h"
#include "core/typemap.h"
#include "trace/admit.h"
#include "trace/life_span.h"
#include "trace/notes.h"
#include "trace/pf_reader_state.h"
#include "trace/pf_run.h"

#define CATS_MAX 257  /* numbers of `cat` that are counted: a batch needs no more */
#define META_ROOM 512 /* of a metadata event in an index, beside its texts */
#define ARG_ROOM 40   /* of an argument of one, beside its texts */
#define ESCAPED 6     /* times as long as a byte of text can be in JSON */
#define RUN 64        /* slices that are taken at once */

/* The events of a `cat` of a batch. */
struct cat_count {
    uint64_t n;
    int type; /* its id, -1 = none */
    bool is_untyped;
};

struct tp_native_check {
    struct tp_native_check_opts opts;
    struct tp_pf_reader *reader;
    struct tp_admit *admit;
    size_t used; /* bytes of the batch that were judged */
    enum tp_native_verdict verdict;
    struct tp_native_found found;
    struct tp_life_span life;        /* by the clock of the head */
    struct cat_count cats[CATS_MAX]; /* by number; 0 is of those without one */
    bool has_runs;                   /* slices need not be judged one by one */
    bool may_run;                    /* the last event was one of a run */
    struct tp_pf_run_opts run;
};

int tp_native_check_new(const struct tp_native_check_opts *opts,
                        struct tp_native_check **out, struct tp_err *err)
{
    struct tp_pf_reader_opts reader = {.packet_bytes = TP_NATIVE_BYTES_MAX,
                                       .tracks_max = opts->tracks_max};
    struct tp_native_check *c = calloc(1, sizeof(*c));
    int rc;

    if (c == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for judging a batch");
    c->opts = *opts;
    c->found.is_plain = true;
    rc = tp_pf_reader_new(&reader, &c->reader, err);
    if (rc == TP_OK)
        rc = tp_admit_new(opts->filter, opts->types, &c->admit, err);
    if (rc != TP_OK) {
        tp_native_check_free(c);
        return rc;
    }
    c->has_runs = tp_admit_is_by_cat(c->admit, &c->run.min_duration_ns);
    *out = c;
    return TP_OK;
}

void tp_native_check_free(struct tp_native_check *c)
{
    if (c == NULL)
        return;
    tp_pf_reader_free(c->reader);
    tp_admit_free(c->admit);
    free(c);
}

const struct tp_native_found *tp_native_check_found(const struct tp_native_check *c)
{
    return &c->found;
}

/* Look at the head, which tells whether the batch is native at all. */
static int judge_head(struct tp_native_check *c, const char *batch, size_t n,
                      struct tp_err *err)
{
    if (n < TP_NATIVE_HEAD_BYTES)
        return TP_OK;
    if (!tp_native_head_get(batch, n, &c->found.head)) {
        c->verdict = TP_NATIVE_FOREIGN;
        return TP_OK;
    }
    if (c->found.head.stream_no != c->opts.stream_no)
        return tp_fail(err, TP_EINVAL,
                       "the batch is for stream %u, but its producer writes stream %u",
                       c->found.head.stream_no, c->opts.stream_no);
    c->verdict = TP_NATIVE_GOOD;
    c->life = tp_life_span_of(&c->opts.life, tp_native_head_offset(&c->found.head));
    return TP_OK;
}

/* Names of the reader's making have no number: they come from descriptors. */
static inline bool is_told_name(const struct tp_event *ev)
{
    return ev->kind == TP_EVENT_META && ev->name.iid == 0;
}

/* Count an event by its type. */
static inline void count_cat(struct tp_native_check *c, const struct tp_name *cat)
{
    struct cat_count *count;

    if (__builtin_expect(cat->iid >= CATS_MAX || (cat->iid == 0 && cat->ptr != NULL),
                         0)) {
        c->found.is_plain = false;
        return;
    }
    count = &c->cats[cat->iid];
    if (count->n++ > 0)
        return;
    count->type = cat->ptr == NULL || c->opts.types == NULL
                      ? -1
                      : tp_typemap_find(c->opts.types, cat->ptr, cat->len);
}

static uint64_t id_bytes(const struct tp_id *id)
{
    return id->kind == TP_ID_TEXT ? id->text.len : 0;
}

/* The most that a metadata event can take in an index. */
static uint64_t meta_bytes(const struct tp_event *ev)
{
    uint64_t texts = (uint64_t)ev->name.len + ev->cat.len + ev->extra.len +
                     id_bytes(&ev->id) + id_bytes(&ev->track->pid) +
                     id_bytes(&ev->track->tid);

    for (uint32_t i = 0; i < ev->n_args; i++) {
        const struct tp_arg *a = &ev->args[i];

        texts += a->key.len + ARG_ROOM;
        if (a->kind == TP_ARG_STRING || a->kind == TP_ARG_JSON)
            texts += a->s.len;
    }
    return META_ROOM + ESCAPED * texts;
}

static void note_meta(struct tp_native_check *c, const struct tp_event *ev)
{
    struct tp_native_found *found = &c->found;
    struct tp_note note;

    if (ev->ts_ns != 0 || tp_note_read(ev, &note))
        found->is_plain = false;
    found->n_metas++;
    found->meta_bytes += meta_bytes(ev);
}

static inline void note_times(struct tp_native_check *c, int64_t ts_ns, int64_t end_ns)
{
    struct tp_native_found *found = &c->found;

    found->is_in_life |= tp_life_span_has(&c->life, ts_ns);
    if (!found->has_times) {
        found->has_times = true;
        found->first_ns = ts_ns;
        found->last_ns = end_ns;
    }
    found->first_ns = ts_ns < found->first_ns ? ts_ns : found->first_ns;
    found->last_ns = end_ns > found->last_ns ? end_ns : found->last_ns;
}

/* Note what the seal will make of an event that is stored as it is. */
static inline void note_event(struct tp_native_check *c, const struct tp_event *ev)
{
    struct tp_native_found *found = &c->found;
    int64_t end;

    if (ev->kind == TP_EVENT_META) {
        note_meta(c, ev);
        return;
    }
    if ((ev->kind == TP_EVENT_BEGIN && !ev->is_unfinished) ||
        ev->kind == TP_EVENT_END || ev->kind == TP_EVENT_OTHER ||
        __builtin_add_overflow(ev->ts_ns, ev->dur_ns, &end)) {
        found->is_plain = false;
        return;
    }
    note_times(c, ev->ts_ns, end);
    count_cat(c, &ev->cat);
}

/* Slices of a `cat` of which one was as it is to be are taken in runs from now on. */
static inline void note_run(struct tp_native_check *c, const struct tp_event *ev,
                            bool is_untyped)
{
    c->may_run = c->has_runs && ev->kind == TP_EVENT_SLICE && ev->cat.iid != 0 &&
                 ev->cat.iid < TP_PF_RUN_CATS && c->verdict == TP_NATIVE_GOOD;
    if (!c->may_run)
        return;
    c->cats[ev->cat.iid].is_untyped = is_untyped;
    c->run.takes[ev->cat.iid] = 1;
}

static inline int judge_event(struct tp_native_check *c, struct tp_event *ev,
                              struct tp_err *err)
{
    enum tp_admission admission;
    bool is_untyped;
    const char *cat = ev->cat.ptr;
    int rc = tp_admit_judge(c->admit, ev, &admission, &is_untyped, err);

    if (rc != TP_OK)
        return rc;
    if (admission != TP_ADMIT_STORE || ev->cat.ptr != cat || is_told_name(ev))
        c->verdict = TP_NATIVE_ODD;
    c->found.n_events++;
    c->found.n_untyped += is_untyped;
    note_event(c, ev);
    note_run(c, ev, is_untyped);
    return TP_OK;
}

/* Take the slices that come next and are like others before. */
static void judge_runs(struct tp_native_check *c, struct tp_pf_cursor *cursor)
{
    struct tp_pf_run_slice slices[RUN];
    size_t n = RUN;

    while (n == RUN && c->may_run) {
        n = tp_pf_reader_run(c->reader, cursor, &c->run, slices, RUN);
        c->found.n_events += n;
        for (size_t i = 0; i < n; i++) {
            struct cat_count *cat = &c->cats[slices[i].cat];

            cat->n++;
            c->found.n_untyped += cat->is_untyped;
            note_times(c, slices[i].ts_ns, slices[i].end_ns);
        }
    }
}

/* Whether the reader had to make something up, or met another sequence. */
static void judge_reader(struct tp_native_check *c)
{
    struct tp_pf_skipped s = tp_pf_reader_skipped(c->reader);

    if (s.events > 0 || s.repaired > 0 || s.mended > 0 ||
        !tp_pf_reader_is_of(c->reader, c->opts.stream_no))
        c->verdict = TP_NATIVE_ODD;
}

int tp_native_check_feed(struct tp_native_check *c, const char *batch, size_t n,
                         enum tp_native_verdict *verdict, struct tp_err *err)
{
    struct tp_pf_cursor cursor = {batch + c->used, batch + n};
    int rc = TP_OK;

    if (c->verdict == TP_NATIVE_UNKNOWN)
        rc = judge_head(c, batch, n, err);
    while (rc == TP_OK && c->verdict == TP_NATIVE_GOOD) {
        enum tp_pf_item item;
        struct tp_event ev;

        judge_runs(c, &cursor);
        rc = tp_pf_reader_next(c->reader, &cursor, &item, &ev, err);
        if (rc == TP_OK && item == TP_PF_EVENT)
            rc = judge_event(c, &ev, err);
        else if (rc == TP_OK || rc == TP_EQUOTA)
            c->verdict = TP_NATIVE_ODD;
    }
    c->used = (size_t)(cursor.ptr - batch);
    if (rc != TP_OK && rc != TP_EAGAIN && rc != TP_EQUOTA)
        return rc;
    if (c->verdict == TP_NATIVE_GOOD)
        judge_reader(c);
    *verdict = c->verdict;
    return TP_OK;
}

/* The counts by `cat` as counts by type. */
static void sum_types(struct tp_native_check *c)
{
    for (size_t i = 0; i < CATS_MAX; i++) {
        const struct cat_count *count = &c->cats[i];

        if (count->n > 0 && count->type >= 0)
            c->found.by_type[count->type] += count->n;
    }
}

uint32_t tp_native_check_tracks(const struct tp_native_check *c)
{
    return c->reader->places.n_places;
}

uint64_t tp_native_check_track(const struct tp_native_check *c, uint32_t i)
{
    return c->reader->places.places[i + 1].uuid;
}

int tp_native_check_finish(struct tp_native_check *c, size_t n,
                           enum tp_native_verdict *verdict, struct tp_err *err)
{
    if (c->verdict == TP_NATIVE_UNKNOWN)
        c->verdict = TP_NATIVE_FOREIGN;
    *verdict = c->verdict;
    if (c->verdict != TP_NATIVE_GOOD)
        return TP_OK;
    if (c->used != n)
        return tp_fail(err, TP_EINVAL, "the input ends inside a packet at byte %zu",
                       c->used);
    sum_types(c);
    return tp_native_check_count(&c->found.head, c->found.n_events, err);
}

int tp_native_check_count(const struct tp_native_head *head, uint64_t n_events,
                          struct tp_err *err)
{
    if (head->n_events == n_events)
        return TP_OK;
    return tp_fail(err, TP_EINVAL, "the batch has %llu events, and its head says %llu",
                   (unsigned long long)n_events, (unsigned long long)head->n_events);
}
