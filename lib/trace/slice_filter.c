/*
 * slice_filter.c - time first, then type, then what belongs together.
 *
 * What is remembered is bounded: beyond TRACKS_MAX tracks a flow passes by its time
 * alone, and beyond OPEN_MAX open operations and flows their ends do.
 */
#include "trace/slice_filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/strmap.h"
#include "core/typemap.h"
#include "trace/pf_encode.h"
#include "trace/trace_info.h"

#define TRACKS_MAX 65536u
#define OPEN_MAX 65536u

/* Of the slices of a track that passed, and start before what comes. */
struct reach {
    int64_t end_ns;   /* the latest end */
    int64_t start_ns; /* of the last one that ended where it started */
    bool is_set, has_point;
};

struct tp_slice_filter {
    const struct tp_trace_slice *slice;
    const struct tp_typemap *types;
    struct reach *tracks; /* by track index */
    uint32_t n_tracks;
    struct tp_strmap open; /* asynchronous operations and flows whose begin passed */
    struct tp_buf key;     /* reused */
};

int tp_slice_filter_new(const struct tp_trace_slice *slice,
                        const struct tp_typemap *types, struct tp_slice_filter **out,
                        struct tp_err *err)
{
    struct tp_slice_filter *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a filter");
    f->slice = slice;
    f->types = types;
    *out = f;
    return TP_OK;
}

void tp_slice_filter_free(struct tp_slice_filter *f)
{
    if (f == NULL)
        return;
    free(f->tracks);
    tp_strmap_fini(&f->open);
    tp_buf_fini(&f->key);
    free(f);
}

bool tp_slice_filter_is_whole(const struct tp_trace_slice *slice)
{
    return slice == NULL ||
           (slice->types == NULL && !slice->has_from && !slice->has_to);
}

/* When an event ends: it has a duration, or no end, or is a moment. */
static int64_t end_of(const struct tp_event *ev)
{
    int64_t end_ns;

    if (ev->kind == TP_EVENT_BEGIN)
        return INT64_MAX;
    if (__builtin_add_overflow(ev->ts_ns, ev->dur_ns, &end_ns))
        return INT64_MAX;
    return end_ns;
}

/* Whether any moment of the event is in [from, to). */
static bool is_in_time(const struct tp_trace_slice *s, const struct tp_event *ev)
{
    if (s->has_to && ev->ts_ns >= s->to_ns)
        return false;
    return !s->has_from || ev->ts_ns >= s->from_ns || end_of(ev) > s->from_ns;
}

static bool is_of_type(const struct tp_slice_filter *f, const struct tp_event *ev)
{
    int id;

    if (f->slice->types == NULL)
        return true;
    if (ev->cat.ptr == NULL)
        return f->slice->has_untyped;
    id = tp_typemap_find(f->types, ev->cat.ptr, ev->cat.len);
    if (id < 0)
        return f->slice->has_untyped;
    return tp_typeset_has(f->slice->types, (unsigned)id);
}

static bool is_flow(const struct tp_event *ev)
{
    return ev->kind == TP_EVENT_FLOW_START || ev->kind == TP_EVENT_FLOW_STEP ||
           ev->kind == TP_EVENT_FLOW_END;
}

/* Note a slice that passed, for the flows that touch it. */
static int note_slice(struct tp_slice_filter *f, const struct tp_event *ev,
                      struct tp_err *err)
{
    int64_t end_ns = end_of(ev);
    struct reach *r;

    if (ev->track->index >= TRACKS_MAX)
        return TP_OK;
    if (ev->track->index >= f->n_tracks) {
        uint32_t want = (ev->track->index | 255) + 1;
        struct reach *bigger = realloc(f->tracks, want * sizeof(*bigger));

        if (bigger == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory to follow %u tracks", want);
        memset(bigger + f->n_tracks, 0, (want - f->n_tracks) * sizeof(*bigger));
        f->tracks = bigger;
        f->n_tracks = want;
    }
    r = &f->tracks[ev->track->index];
    if (end_ns == ev->ts_ns) {
        r->start_ns = ev->ts_ns;
        r->has_point = true;
    }
    if (!r->is_set || end_ns > r->end_ns)
        r->end_ns = end_ns;
    r->is_set = true;
    return TP_OK;
}

/* Whether a slice that passed is around the flow. */
static bool flow_touches(const struct tp_slice_filter *f, const struct tp_event *ev)
{
    const struct reach *r;

    if (ev->track->index >= TRACKS_MAX)
        return true;
    if (ev->track->index >= f->n_tracks)
        return false;
    r = &f->tracks[ev->track->index];
    return r->is_set &&
           (r->end_ns > ev->ts_ns || (r->has_point && r->start_ns == ev->ts_ns));
}

/* Make the key of an asynchronous operation or flow: which it is, its cat and id. */
static int open_key(struct tp_slice_filter *f, const struct tp_event *ev,
                    struct tp_err *err)
{
    const struct tp_id *id = &ev->id;
    struct tp_str id2;
    bool is_local = false;
    int rc;

    f->key.len = 0;
    rc =
        tp_buf_append(&f->key, ev->cat.ptr, ev->cat.ptr == NULL ? 0 : ev->cat.len, err);
    if (rc == TP_OK)
        rc = tp_buf_append(&f->key, is_flow(ev) ? "\1" : "", 1, err);
    if (rc == TP_OK && tp_pf_id2(ev, &id2, &is_local))
        rc = tp_buf_append(&f->key, id2.ptr, id2.len, err);
    if (is_local)
        id = &ev->track->pid;
    if (rc == TP_OK && id->kind == TP_ID_NUMBER)
        rc = tp_buf_append(&f->key, &id->number, sizeof(id->number), err);
    if (rc == TP_OK && id->kind == TP_ID_TEXT)
        rc = tp_buf_append(&f->key, id->text.ptr, id->text.len, err);
    return rc;
}

/* A part of an operation or flow passes if its begin did; one whose begin is before the
 * range would hang in the air. */
static int decide_part(struct tp_slice_filter *f, const struct tp_event *ev,
                       bool *passes, struct tp_err *err)
{
    bool is_end = ev->kind == TP_EVENT_ASYNC_END || ev->kind == TP_EVENT_FLOW_END;
    uint64_t n = 0;
    int rc;

    if (!f->slice->has_from || !*passes)
        return TP_OK;
    rc = open_key(f, ev, err);
    if (rc != TP_OK)
        return rc;
    tp_strmap_get_u64(&f->open, f->key.data, f->key.len, &n);
    if (ev->kind == TP_EVENT_ASYNC_BEGIN || ev->kind == TP_EVENT_FLOW_START) {
        if (n > 0 || tp_strmap_len(&f->open) < OPEN_MAX)
            rc = tp_strmap_put_u64(&f->open, f->key.data, f->key.len, n + 1, err);
        return rc;
    }
    *passes = n > 0 || tp_strmap_len(&f->open) >= OPEN_MAX;
    if (is_end && n == 1)
        tp_strmap_remove_u64(&f->open, f->key.data, f->key.len);
    else if (is_end && n > 1)
        rc = tp_strmap_put_u64(&f->open, f->key.data, f->key.len, n - 1, err);
    return rc;
}

int tp_slice_filter_event(struct tp_slice_filter *f, const struct tp_event *ev,
                          bool *passes, struct tp_err *err)
{
    bool is_in = is_in_time(f->slice, ev);
    int rc = TP_OK;

    if (ev->kind == TP_EVENT_META) {
        *passes = true;
        return TP_OK;
    }
    if (is_flow(ev)) {
        is_in = is_in && (f->slice->types == NULL || flow_touches(f, ev));
        rc = decide_part(f, ev, &is_in, err);
        if (rc == TP_OK)
            *passes = is_in;
        return rc;
    }
    is_in = is_in && is_of_type(f, ev);
    if (ev->kind == TP_EVENT_ASYNC_BEGIN || ev->kind == TP_EVENT_ASYNC_INSTANT ||
        ev->kind == TP_EVENT_ASYNC_END)
        rc = decide_part(f, ev, &is_in, err);
    else if (is_in && f->slice->types != NULL &&
             (ev->kind == TP_EVENT_SLICE || ev->kind == TP_EVENT_BEGIN))
        rc = note_slice(f, ev, err);
    if (rc == TP_OK)
        *passes = is_in;
    return rc;
}
