/*
 * pf_writer.c - numbers what an event refers to, then has its bytes written.
 *
 * An event is written in three steps, so that a failure leaves nothing half done:
 *
 *   1. number: strings, tracks and series get numbers. This may allocate and fail; what
 *      was numbered by then stays numbered and is "new" until a packet has said it.
 *   2. reserve: one upper bound for all packets of the event and all that is new.
 *   3. put: descriptors of new objects, then the packets. Nothing can fail here.
 *
 * The alternative that lost: remembering what to take back after a failure. New
 * strings are a range of numbers, so "not said yet" costs one number a kind.
 */
#include "trace/pf_writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/pb.h"
#include "trace/pf_encode.h"
#include "trace/pf_objects.h"

#define INTERN_MAX_DEFAULT 65536
#define INTERN_BYTES_DEFAULT ((size_t)8 << 20)
#define GUESSES 16 /* a power of two */
#define IID_MAP_MAX (1u << 20)
#define NAMES_BYTES (256u * 1024) /* about: of strings in a packet of nothing else */

static const struct tp_str no_args = {NULL, 0};

/* The strings of one kind. */
struct strings {
    struct tp_intern table;
    uint32_t n_said;         /* numbers up to here are in the output */
    uint32_t guess[GUESSES]; /* what was there last, by position */
    uint32_t *by_iid;        /* the reader's number -> ours; 0 = not known */
    uint32_t n_by_iid;
};

struct tp_pf_writer {
    uint32_t stream_no;
    bool is_sealed;
    bool has_one_reader;
    bool is_closed; /* no string gets a number any more */
    bool has_begun; /* the packet that clears the sequence is in the output */
    struct strings strings[TP_PF_STRING_KINDS];
    struct tp_pf_objects objects;
    uint32_t n_described; /* objects up to here are in the output */
    uint32_t *numbers;    /* of the event at hand: its keys, then its series */
    uint32_t shape;       /* the args_shape that numbers are for; 0 = none */
    size_t cap_numbers;
    struct tp_pf_series *series; /* room for all, filled by tp_pf_writer_series() */
    uint32_t cap_series;
};

int tp_pf_writer_new(const struct tp_pf_writer_opts *opts, struct tp_pf_writer **out,
                     struct tp_err *err)
{
    struct tp_pf_writer *w = calloc(1, sizeof(*w));

    assert(opts->stream_no >= 1 && opts->stream_no <= 65535);
    if (w == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a stream writer");
    w->stream_no = opts->stream_no;
    w->is_sealed = opts->is_sealed;
    w->has_one_reader = opts->has_one_reader;
    for (int i = 0; i < TP_PF_STRING_KINDS; i++) {
        struct tp_intern *t = &w->strings[i].table;

        t->n_max = opts->intern_max != 0 ? opts->intern_max : INTERN_MAX_DEFAULT;
        t->bytes_max = opts->intern_bytes != 0 ? opts->intern_bytes
                                               : INTERN_BYTES_DEFAULT;
    }
    w->objects.stream_no = opts->stream_no;
    w->objects.is_sealed = opts->is_sealed;
    *out = w;
    return TP_OK;
}

void tp_pf_writer_free(struct tp_pf_writer *w)
{
    if (w == NULL)
        return;
    for (int i = 0; i < TP_PF_STRING_KINDS; i++) {
        tp_intern_fini(&w->strings[i].table);
        free(w->strings[i].by_iid);
    }
    tp_pf_objects_fini(&w->objects);
    free(w->numbers);
    free(w->series);
    free(w);
}

void tp_pf_writer_reset(struct tp_pf_writer *w)
{
    for (int i = 0; i < TP_PF_STRING_KINDS; i++) {
        struct strings *s = &w->strings[i];

        tp_intern_reset(&s->table);
        s->n_said = 0;
        memset(s->guess, 0, sizeof(s->guess));
        if (s->n_by_iid > 0)
            memset(s->by_iid, 0, s->n_by_iid * sizeof(*s->by_iid));
    }
    tp_pf_objects_reset(&w->objects);
    w->n_described = 0;
    w->shape = 0;
    w->is_closed = false;
    w->has_begun = false;
}

/* Remember the number of a string of the reader. Failing to costs only time. */
static void learn_iid(struct strings *s, uint32_t iid, uint32_t number)
{
    if (iid >= s->n_by_iid) {
        uint32_t n = s->n_by_iid == 0 ? 256 : s->n_by_iid;
        uint32_t *by_iid;

        if (iid >= IID_MAP_MAX)
            return;
        while (n <= iid)
            n *= 2;
        by_iid = realloc(s->by_iid, n * sizeof(*by_iid));
        if (by_iid == NULL)
            return;
        memset(by_iid + s->n_by_iid, 0, (n - s->n_by_iid) * sizeof(*by_iid));
        s->by_iid = by_iid;
        s->n_by_iid = n;
    }
    s->by_iid[iid] = number;
}

/* The number of a string; 0 when it is absent or to be written inline. */
static inline int number_string(struct tp_pf_writer *w, enum tp_pf_string_kind kind,
                                const struct tp_name *name, uint32_t position,
                                uint32_t *number, struct tp_err *err)
{
    struct strings *s = &w->strings[kind];
    struct tp_str text = {name->ptr, name->len};
    uint32_t *guess = &s->guess[position % GUESSES];
    bool trusts_iid = w->has_one_reader && name->iid != 0;
    int rc;

    if (trusts_iid && name->iid < s->n_by_iid && s->by_iid[name->iid] != 0) {
        *number = s->by_iid[name->iid];
        return TP_OK;
    }
    *number = 0;
    if (name->ptr == NULL || name->len > TP_PF_INLINE_BYTES)
        return TP_OK;
    if (tp_intern_is(&s->table, *guess, text)) {
        *number = *guess;
        return TP_OK;
    }
    rc = TP_OK;
    if (w->is_closed)
        *number = tp_intern_find(&s->table, text);
    else
        rc = tp_intern_add(&s->table, text, number, err);
    if (rc != TP_OK)
        return rc;
    *guess = *number;
    if (trusts_iid && *number != 0)
        learn_iid(s, name->iid, *number);
    return TP_OK;
}

/* Make room in w->numbers for n. */
static int reserve_numbers(struct tp_pf_writer *w, size_t n, struct tp_err *err)
{
    uint32_t *numbers;

    if (n <= w->cap_numbers)
        return TP_OK;
    n = n < 64 ? 64 : n * 2;
    numbers = realloc(w->numbers, n * sizeof(*numbers));
    if (numbers == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for an event of %zu arguments", n);
    w->numbers = numbers;
    w->cap_numbers = n;
    return TP_OK;
}

/* The keys of the arguments; the numbers of the event before are used again when it has
 * the same. */
static int number_keys(struct tp_pf_writer *w, const struct tp_event *ev,
                       struct tp_err *err)
{
    int rc = TP_OK;

    w->shape = 0;
    for (uint32_t i = 0; rc == TP_OK && i < ev->n_args; i++)
        rc = number_string(w, TP_PF_ARG_KEY, &ev->args[i].key, i, &w->numbers[i], err);
    if (rc == TP_OK && w->has_one_reader)
        w->shape = ev->args_shape;
    return rc;
}

/* Step 1 for strings. */
static inline int number_strings(struct tp_pf_writer *w, const struct tp_event *ev,
                                 struct tp_pf_plan *plan, struct tp_err *err)
{
    int rc = reserve_numbers(w, 2 * (size_t)ev->n_args, err);

    if (rc == TP_OK)
        rc = number_string(w, TP_PF_NAME, &ev->name, 0, &plan->name_iid, err);
    if (rc == TP_OK)
        rc = number_string(w, TP_PF_CATEGORY, &ev->cat, 0, &plan->cat_iid, err);
    if (rc == TP_OK && plan->has_args &&
        (ev->args_shape == 0 || ev->args_shape != w->shape))
        rc = number_keys(w, ev, err);
    plan->key_iids = w->numbers;
    return rc;
}

/* The most bytes of put_preamble(). */
static size_t preamble_room(const struct tp_pf_writer *w)
{
    size_t room = TP_PF_CLEAR_MAX;

    for (uint32_t i = w->n_described; i < w->objects.numbers.n; i++) {
        struct tp_pf_descriptor d = tp_pf_objects_describe(&w->objects.items[i]);

        room += tp_pf_descriptor_room(&d);
    }
    return room;
}

/* The packets that come before the event: only in a log. */
static char *put_preamble(struct tp_pf_writer *w, char *p)
{
    if (w->is_sealed)
        return p;
    if (!w->has_begun)
        p = tp_pf_put_clear(p, w->stream_no);
    w->has_begun = true;
    for (; w->n_described < w->objects.numbers.n; w->n_described++) {
        struct tp_pf_descriptor d =
            tp_pf_objects_describe(&w->objects.items[w->n_described]);

        p = tp_pf_put_descriptor(p, w->stream_no, &d);
    }
    return p;
}

/* Further packets of a counter event: a series each, after the first. */
static char *put_more_series(const struct tp_pf_writer *w, char *p,
                             const struct tp_event *ev, const uint32_t *series,
                             uint32_t first)
{
    for (uint32_t i = first + 1; i < ev->n_args; i++) {
        if (series[i] != 0)
            p = tp_pf_put_series(p, w->stream_no, w->objects.items[series[i] - 1].uuid,
                                 (uint64_t)ev->ts_ns, &ev->args[i]);
    }
    return p;
}

/* Whether there are strings that the output does not have yet; *news names them. It is
 * filled in only then: for most events there are none. */
static inline bool new_strings(const struct tp_pf_writer *w,
                               struct tp_pf_new_strings *news)
{
    bool has_news = false;

    for (int i = 0; i < TP_PF_STRING_KINDS; i++)
        has_news |= w->strings[i].n_said < w->strings[i].table.n;
    for (int i = 0; has_news && i < TP_PF_STRING_KINDS; i++) {
        news->tables[i] = &w->strings[i].table;
        news->first[i] = w->strings[i].n_said + 1;
        news->last[i] = w->strings[i].table.n;
    }
    return has_news;
}

/* What else belongs to an event besides its first packet. */
struct rest {
    bool has_end;           /* the synthetic end of a slice */
    const uint32_t *series; /* NULL, or a number (or 0) for each argument */
    uint32_t first;         /* the argument that is in the first packet */
};

/* Steps 2 and 3. */
static inline int write_packets(struct tp_pf_writer *w, const struct tp_event *ev,
                                const struct tp_pf_plan *plan, const struct rest *rest,
                                struct tp_buf *out, struct tp_err *err)
{
    struct tp_pf_new_strings news;
    bool has_news = new_strings(w, &news);
    size_t room = tp_pf_event_room(ev) + plan->wire_args.len +
                  (has_news ? tp_pf_new_strings_room(&news) : 0);
    size_t around = TP_PF_MARK_ROOM;
    char *p;
    int rc;

    if (room > TP_PF_EVENT_MAX)
        return tp_fail(err, TP_EQUOTA, "an event of %zu bytes is over the limit of %u",
                       room, TP_PF_EVENT_MAX);
    if (!w->is_sealed && (!w->has_begun || w->n_described < w->objects.numbers.n))
        around += preamble_room(w);
    if (rest->series != NULL)
        around += (size_t)ev->n_args * TP_PF_MARK_ROOM;
    rc = tp_buf_reserve(out, room + around, err);
    if (rc != TP_OK)
        return rc;
    p = put_preamble(w, out->data + out->len);
    p = tp_pf_put_event(p, room, ev, plan, has_news ? &news : NULL);
    if (rest->has_end)
        p = tp_pf_put_slice_end(p, w->stream_no, plan->track_uuid,
                                (uint64_t)ev->ts_ns + (uint64_t)ev->dur_ns);
    if (rest->series != NULL)
        p = put_more_series(w, p, ev, rest->series, rest->first);
    out->len = (size_t)(p - out->data);
    for (int i = 0; has_news && i < TP_PF_STRING_KINDS; i++)
        w->strings[i].n_said = w->strings[i].table.n;
    return TP_OK;
}

/* All steps for an event on its track, whose packet has the given form. */
static inline int write_event(struct tp_pf_writer *w, const struct tp_event *ev,
                              struct tp_str wire_args, enum tp_pf_form form,
                              bool has_end, struct tp_buf *out, struct tp_err *err)
{
    struct tp_pf_plan plan = {
        .form = form,
        .sequence_id = w->stream_no,
        .stream_no = w->stream_no,
        .has_args = form != TP_PF_FORM_GHOST,
        .wire_args = wire_args,
    };
    struct rest rest = {.has_end = has_end};
    int rc = tp_pf_objects_track(&w->objects, ev->track, &plan.track_uuid, err);

    if (rc == TP_OK && form != TP_PF_FORM_GHOST)
        rc = number_strings(w, ev, &plan, err);
    return rc == TP_OK ? write_packets(w, ev, &plan, &rest, out, err) : rc;
}

/* Whether an argument can be drawn as a counter. */
static bool is_drawable(const struct tp_arg *a)
{
    return a->kind == TP_ARG_INT || a->kind == TP_ARG_UINT || a->kind == TP_ARG_DOUBLE;
}

/* Make room in w->series for all that there are. */
static int reserve_series(struct tp_pf_writer *w, struct tp_err *err)
{
    uint32_t n = w->objects.n_series;
    struct tp_pf_series *series;

    if (n <= w->cap_series)
        return TP_OK;
    n = n < 16 ? 16 : n * 2;
    series = realloc(w->series, n * sizeof(*series));
    if (series == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %u counter series", n);
    w->series = series;
    w->cap_series = n;
    return TP_OK;
}

/* Number the series of a counter event into w->numbers behind the keys. has_all:
 * whether the series packets alone give the arguments back. */
static int number_series(struct tp_pf_writer *w, const struct tp_event *ev,
                         uint64_t own_track, struct tp_pf_plan *plan, bool *has_all,
                         struct tp_err *err)
{
    int rc = reserve_numbers(w, 2 * (size_t)ev->n_args, err);

    *has_all = true;
    w->shape = 0; /* the series may lie where its keys were */
    for (uint32_t i = 0; rc == TP_OK && i < ev->n_args; i++) {
        const struct tp_arg *a = &ev->args[i];
        uint32_t *number = &w->numbers[ev->n_args + i];
        struct tp_str key = {a->key.ptr, a->key.len};

        *number = 0;
        if (is_drawable(a))
            rc = tp_pf_objects_series(&w->objects, ev, own_track, key, number, err);
        plan->n_series += *number != 0;
        *has_all = *has_all && *number != 0 && a->kind != TP_ARG_UINT;
    }
    return rc == TP_OK ? reserve_series(w, err) : rc;
}

/* A counter event: the first packet, on the track of its first series, carries what is
 * not a value. Arguments that are no numbers make it carry all of them once more. */
static int write_counter(struct tp_pf_writer *w, const struct tp_event *ev,
                         struct tp_buf *out, struct tp_err *err)
{
    struct tp_pf_plan plan = {.sequence_id = w->stream_no, .stream_no = w->stream_no};
    struct rest rest = {0};
    const struct tp_pf_object *series;
    uint64_t own_track;
    bool has_all;
    int rc = tp_pf_objects_track(&w->objects, ev->track, &own_track, err);

    if (rc == TP_OK)
        rc = number_series(w, ev, own_track, &plan, &has_all, err);
    if (rc != TP_OK)
        return rc;
    if (plan.n_series == 0)
        return write_event(w, ev, no_args, TP_PF_FORM_PRIVATE, false, out, err);
    plan.has_args = !has_all;
    rc = number_strings(w, ev, &plan, err);
    if (rc != TP_OK)
        return rc;
    rest.series = w->numbers + ev->n_args;
    while (rest.series[rest.first] == 0)
        rest.first++;
    series = &w->objects.items[rest.series[rest.first] - 1];
    plan.track_uuid = series->uuid;
    plan.value = &ev->args[rest.first];
    plan.own_track =
        own_track == series->track_uuid && ev->track->lane == 0 ? 0 : own_track;
    return write_packets(w, ev, &plan, &rest, out, err);
}

/* Whether viewers have a place for the event at all. */
static bool is_public(const struct tp_event *ev)
{
    struct tp_str id2;
    bool is_local;

    switch (ev->kind) {
    case TP_EVENT_FLOW_START:
    case TP_EVENT_FLOW_STEP:
    case TP_EVENT_FLOW_END:
        return ev->id.kind != TP_ID_NONE; /* nothing to join them by */
    case TP_EVENT_ASYNC_BEGIN:
    case TP_EVENT_ASYNC_INSTANT:
    case TP_EVENT_ASYNC_END:
        return ev->id.kind != TP_ID_NONE || tp_pf_id2(ev, &id2, &is_local);
    case TP_EVENT_META:
    case TP_EVENT_OTHER:
        return false;
    default:
        return true;
    }
}

int tp_pf_writer_event(struct tp_pf_writer *w, const struct tp_event *ev,
                       struct tp_buf *out, struct tp_err *err)
{
    if (ev->kind == TP_EVENT_SLICE)
        return write_event(w, ev, no_args, TP_PF_FORM_PUBLIC, true, out, err);
    if (!is_public(ev))
        return write_event(w, ev, no_args, TP_PF_FORM_PRIVATE, false, out, err);
    if (ev->kind == TP_EVENT_COUNTER)
        return write_counter(w, ev, out, err);
    return write_event(w, ev, no_args, TP_PF_FORM_PUBLIC, false, out, err);
}

int tp_pf_writer_slice_begin(struct tp_pf_writer *w, const struct tp_event *ev,
                             struct tp_str wire_args, struct tp_buf *out,
                             struct tp_err *err)
{
    assert(ev->kind == TP_EVENT_SLICE);
    return write_event(w, ev, wire_args, TP_PF_FORM_PUBLIC, false, out, err);
}

int tp_pf_writer_slice(struct tp_pf_writer *w, const struct tp_event *ev,
                       struct tp_str wire_args, struct tp_buf *out, struct tp_err *err)
{
    assert(ev->kind == TP_EVENT_SLICE);
    return write_event(w, ev, wire_args, TP_PF_FORM_PUBLIC, true, out, err);
}

int tp_pf_writer_number(struct tp_pf_writer *w, const struct tp_event *ev,
                        struct tp_err *err)
{
    struct tp_pf_plan plan = {.has_args = true};

    return number_strings(w, ev, &plan, err);
}

/* Append a packet with some of the strings of a kind that the output does not have. */
static int write_names(struct tp_pf_writer *w, int kind, struct tp_buf *out,
                       struct tp_err *err)
{
    struct strings *s = &w->strings[kind];
    struct tp_pf_new_strings news;
    uint32_t last = s->n_said;
    size_t bytes = 0;
    size_t room;
    char *p;
    int rc;

    while (last < s->table.n && bytes < NAMES_BYTES)
        bytes += tp_intern_text(&s->table, ++last).len;
    for (int i = 0; i < TP_PF_STRING_KINDS; i++) {
        news.tables[i] = &w->strings[i].table;
        news.first[i] = i == kind ? s->n_said + 1 : 1;
        news.last[i] = i == kind ? last : 0;
    }
    room = tp_pf_new_strings_room(&news);
    rc = tp_buf_reserve(out, room + TP_PF_MARK_ROOM, err);
    if (rc != TP_OK)
        return rc;
    p = tp_pf_put_names(out->data + out->len, room, w->stream_no, &news);
    out->len = (size_t)(p - out->data);
    s->n_said = last;
    return TP_OK;
}

int tp_pf_writer_names(struct tp_pf_writer *w, struct tp_buf *out, struct tp_err *err)
{
    int rc = TP_OK;

    for (int kind = 0; kind < TP_PF_STRING_KINDS; kind++) {
        while (rc == TP_OK && w->strings[kind].n_said < w->strings[kind].table.n)
            rc = write_names(w, kind, out, err);
    }
    w->is_closed = rc == TP_OK;
    return rc;
}

int tp_pf_writer_key(struct tp_pf_writer *w, const struct tp_name *key,
                     uint32_t *number, struct tp_err *err)
{
    return number_string(w, TP_PF_ARG_KEY, key, 0, number, err);
}

int tp_pf_writer_slice_end(struct tp_pf_writer *w, const struct tp_event *ev,
                           struct tp_buf *out, struct tp_err *err)
{
    uint64_t uuid;
    int rc = tp_pf_objects_track(&w->objects, ev->track, &uuid, err);
    char *p;

    if (rc == TP_OK)
        rc = tp_buf_reserve(out, TP_PF_MARK_ROOM, err);
    if (rc != TP_OK)
        return rc;
    p = tp_pf_put_slice_end(out->data + out->len, w->stream_no, uuid,
                            (uint64_t)ev->ts_ns + (uint64_t)ev->dur_ns);
    out->len = (size_t)(p - out->data);
    return TP_OK;
}

int tp_pf_writer_private(struct tp_pf_writer *w, const struct tp_event *ev,
                         struct tp_buf *out, struct tp_err *err)
{
    return write_event(w, ev, no_args, TP_PF_FORM_PRIVATE, false, out, err);
}

int tp_pf_writer_ghost(struct tp_pf_writer *w, const struct tp_event *ev,
                       struct tp_buf *out, struct tp_err *err)
{
    return write_event(w, ev, no_args, TP_PF_FORM_GHOST, false, out, err);
}

uint64_t tp_pf_track_uuid(uint32_t stream_no, uint32_t index, uint32_t lane)
{
    return tp_pf_uuid(TP_PF_KIND_TRACK, stream_no, index, lane);
}

const struct tp_pf_series *tp_pf_writer_series(const struct tp_pf_writer *w, size_t *n)
{
    const struct tp_pf_objects *o = &w->objects;

    *n = 0;
    for (uint32_t i = 0; i < o->numbers.n && *n < w->cap_series; i++) {
        const struct tp_pf_object *object = &o->items[i];

        if (object->kind == TP_PF_KIND_SERIES)
            w->series[(*n)++] = (struct tp_pf_series){object->uuid, &object->track,
                                                      object->counter, object->cat,
                                                      object->series};
    }
    return *n == 0 ? NULL : w->series;
}
