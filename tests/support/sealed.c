/*
 * sealed.c - the writer of the seal, without its sorting.
 */
#include "support/sealed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "support/blob_mem.h"
#include "trace/pf_writer.h"

static void must(int rc, const struct tp_err *err)
{
    if (rc == TP_OK)
        return;
    fprintf(stderr, "sealed: %s\n", err->message);
    abort();
}

void sealed_init(struct sealed *s, uint32_t stream_no)
{
    const struct tp_pf_writer_opts opts = {.stream_no = stream_no, .is_sealed = true};
    struct tp_err err;

    memset(s, 0, sizeof(*s));
    s->index.version = 1;
    s->index.stream_no = stream_no;
    s->max_end_ns = INT64_MIN;
    must(tp_pf_writer_new(&opts, &s->writer, &err), &err);
}

static struct tp_str copy(struct sealed *s, struct tp_str text)
{
    struct tp_str out = {NULL, 0};
    struct tp_err err;

    if (text.ptr != NULL)
        must(tp_stream_index_dup(&s->index, text, &out, &err), &err);
    return out;
}

static bool same_id(const struct tp_id *a, const struct tp_id *b)
{
    return a->kind == b->kind && a->number == b->number &&
           tp_str_equal(a->text, b->text);
}

static const struct tp_track *find_track(struct sealed *s, struct tp_id pid,
                                         struct tp_id tid, uint32_t lane)
{
    struct tp_index_track *t;
    struct tp_err err;
    uint32_t index = 0;
    size_t n = s->index.n_tracks;

    for (size_t i = 0; i < n; i++) {
        if (!same_id(&s->tracks[i].pid, &pid) || !same_id(&s->tracks[i].tid, &tid)) {
            if (s->tracks[i].lane == 0)
                index++;
            continue;
        }
        if (s->tracks[i].lane == lane)
            return &s->tracks[i];
        index = s->tracks[i].index;
        break;
    }
    if (n == SEALED_TRACKS_MAX)
        abort();
    pid.text = copy(s, pid.text);
    tid.text = copy(s, tid.text);
    s->tracks[n] =
        (struct tp_track){.index = index, .lane = lane, .pid = pid, .tid = tid};
    must(tp_stream_index_grow(&s->index.tracks, n, sizeof(*t), &err), &err);
    t = &s->index.tracks[n];
    *t = (struct tp_index_track){.uuid =
                                     tp_pf_track_uuid(s->index.stream_no, index, lane),
                                 .lane = lane,
                                 .pid = pid,
                                 .tid = tid};
    s->index.n_tracks++;
    return &s->tracks[n];
}

const struct tp_track *sealed_track(struct sealed *s, int64_t pid, int64_t tid,
                                    uint32_t lane)
{
    const struct tp_id p = {.kind = TP_ID_NUMBER, .number = pid};
    const struct tp_id t = {.kind = TP_ID_NUMBER, .number = tid};

    return find_track(s, p, t, lane);
}

const struct tp_track *sealed_track_text(struct sealed *s, const char *pid,
                                         const char *tid)
{
    const struct tp_id p = {.kind = TP_ID_TEXT, .text = tp_str_of(pid)};
    const struct tp_id t = {.kind = TP_ID_TEXT, .text = tp_str_of(tid)};

    return find_track(s, p, t, 0);
}

static void count(struct sealed *s, const struct tp_event *ev, int64_t end_ns)
{
    const struct tp_str cat = {ev->cat.ptr, ev->cat.len};
    struct tp_index_type *t = NULL;
    struct tp_err err;

    for (size_t i = 0; i < s->index.n_types; i++)
        if (tp_str_equal(s->index.types[i].cat, cat))
            t = &s->index.types[i];
    if (t == NULL) {
        must(tp_stream_index_grow(&s->index.types, s->index.n_types, sizeof(*t), &err),
             &err);
        t = &s->index.types[s->index.n_types++];
        *t = (struct tp_index_type){.cat = copy(s, cat),
                                    .first_ns = ev->ts_ns,
                                    .last_ns = end_ns};
    }
    t->count++;
    t->total_ns += (uint64_t)ev->dur_ns;
    if (end_ns > t->last_ns)
        t->last_ns = end_ns;
}

void sealed_add(struct sealed *s, const struct tp_event *ev)
{
    struct tp_err err;
    int64_t end_ns = ev->ts_ns + ev->dur_ns;

    must(tp_pf_writer_event(s->writer, ev, &s->bytes, &err), &err);
    if (s->index.n_events == 0 || ev->ts_ns < s->index.first_ns)
        s->index.first_ns = ev->ts_ns;
    if (s->index.n_events == 0 || end_ns > s->index.last_ns)
        s->index.last_ns = end_ns;
    s->index.n_events++;
    if (end_ns > s->max_end_ns)
        s->max_end_ns = end_ns;
    s->has_endless = s->has_endless || ev->kind == TP_EVENT_BEGIN;
    count(s, ev, end_ns);
}

void sealed_block(struct sealed *s, int64_t first_ns)
{
    struct tp_err err;
    size_t n = s->index.n_blocks;

    must(tp_stream_index_grow(&s->index.blocks, n, sizeof(*s->index.blocks), &err),
         &err);
    s->index.blocks[n] = (struct tp_index_block){.offset = s->bytes.len,
                                                 .first_ns = first_ns,
                                                 .max_end_ns = s->has_endless
                                                                   ? INT64_MAX
                                                                   : s->max_end_ns};
    s->index.n_blocks++;
}

void sealed_meta(struct sealed *s, const char *name, const struct tp_track *track,
                 const char *args_json)
{
    struct tp_err err;
    size_t n = s->index.n_metas;

    must(tp_stream_index_grow(&s->index.metas, n, sizeof(*s->index.metas), &err), &err);
    s->index.metas[n] =
        (struct tp_index_meta){.name = copy(s, tp_str_of(name)),
                               .pid = track->pid,
                               .tid = track->tid,
                               .args_json = copy(s, tp_str_of(args_json))};
    s->index.n_metas++;
}

void sealed_member(struct sealed *s, const char *key, const char *json)
{
    struct tp_err err;
    size_t n = s->index.n_members;

    must(tp_stream_index_grow(&s->index.members, n, sizeof(*s->index.members), &err),
         &err);
    s->index.members[n] =
        (struct tp_index_member){copy(s, tp_str_of(key)), copy(s, tp_str_of(json))};
    s->index.n_members++;
}

static void copy_series(struct sealed *s)
{
    const struct tp_pf_series *series;
    struct tp_err err;
    size_t n;

    series = tp_pf_writer_series(s->writer, &n);
    for (size_t i = 0; i < n; i++) {
        must(tp_stream_index_grow(&s->index.series, i, sizeof(*s->index.series), &err),
             &err);
        s->index.series[i] =
            (struct tp_index_series){.uuid = series[i].uuid,
                                     .pid = series[i].track->pid,
                                     .tid = series[i].track->tid,
                                     .counter = copy(s, series[i].counter),
                                     .series = copy(s, series[i].series)};
        s->index.n_series++;
    }
}

void sealed_close_writer(struct sealed *s, struct tp_blobs *blobs, const char *name)
{
    struct tp_err err;

    copy_series(s);
    s->blobs = blobs;
    s->index.size_bytes = s->bytes.len;
    blob_mem_put(blobs, name, s->bytes.data == NULL ? "" : s->bytes.data, s->bytes.len);
    must(blobs->open_read(blobs->ctx, name, &s->blob, &err), &err);
}

void sealed_fini(struct sealed *s)
{
    if (s->blob != NULL)
        s->blobs->close(s->blobs->ctx, s->blob);
    tp_pf_writer_free(s->writer);
    tp_buf_fini(&s->bytes);
    tp_stream_index_fini(&s->index);
}
