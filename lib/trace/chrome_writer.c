/*
 * chrome_writer.c - an event is fragments that are known already, and two times.
 *
 *   ,\n{"ph":"X", "cat":"kernel", "name":"gemm", "pid":0,"tid":7, "ts":1.500 ,"dur": ..
 *   `-- kind ---' `--- by iid --' `-- by iid --' `-- by track --'      computed
 *
 * Room for the whole event is reserved once, from an upper bound that is cheap to
 * compute; then everything is written behind a bare pointer.
 */
#include "trace/chrome_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_write.h"
#include "trace/chrome_cache.h"
#include "trace/id2.h"
#include "trace/merge.h"
#include "trace/stream_index.h"

#define FLOW_BITS 40
#define FLOW_STREAM_MAX 8191u /* (stream_no << 40) stays exact in a double */

/* Room for what an event has besides its strings: keys, times, ids, punctuation. */
#define EVENT_BYTES 512

struct tp_chrome_writer {
    int64_t base_ns;
    bool has_events;
    struct tp_chrome_cache cache;
    struct tp_buf extra; /* of an event whose id2 is told apart */
};

int tp_chrome_writer_new(const struct tp_merge *merge, int64_t base_ns,
                         struct tp_chrome_writer **out, struct tp_err *err)
{
    struct tp_chrome_writer *w = calloc(1, sizeof(*w));

    if (w == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a writer of Chrome JSON");
    w->base_ns = base_ns;
    w->cache.merge = merge;
    *out = w;
    return TP_OK;
}

void tp_chrome_writer_free(struct tp_chrome_writer *w)
{
    if (w == NULL)
        return;
    tp_chrome_cache_fini(&w->cache);
    tp_buf_fini(&w->extra);
    free(w);
}

void tp_chrome_writer_stream(struct tp_chrome_writer *w, size_t stream)
{
    tp_chrome_cache_stream(&w->cache, stream);
}

static inline char *put_text(char *p, const char *s, size_t n)
{
    memcpy(p, s, n);
    return p + n;
}

#define PUT(p, literal) put_text((p), (literal), sizeof(literal) - 1)

static inline size_t arg_room(const struct tp_arg *a)
{
    size_t room = tp_chrome_cache_room(&a->key) + TP_CHROME_BLOCK_BYTES;

    if (a->kind == TP_ARG_STRING)
        return room + TP_JSON_STRING_BYTES(a->s.len);
    if (a->kind == TP_ARG_JSON)
        return room + a->s.len;
    return room + TP_JSON_DOUBLE_BYTES;
}

/* Fill the cache for an event and compute the most bytes that it can take. */
static int prepare(struct tp_chrome_writer *w, const struct tp_event *ev,
                   struct tp_str *track, size_t *room, struct tp_err *err)
{
    struct tp_chrome_cache *c = &w->cache;
    size_t n = EVENT_BYTES + ev->extra.len + tp_chrome_cache_room(&ev->name) +
               tp_chrome_cache_room(&ev->cat);
    int rc = TP_OK;

    if (ev->id.kind == TP_ID_TEXT)
        n += TP_JSON_STRING_BYTES(ev->id.text.len);
    if (ev->name.ptr != NULL)
        rc = tp_chrome_cache_string(c, TP_CHROME_NAME, &ev->name, err);
    if (rc == TP_OK && ev->cat.ptr != NULL)
        rc = tp_chrome_cache_string(c, TP_CHROME_CAT, &ev->cat, err);
    for (uint32_t i = 0; rc == TP_OK && i < ev->n_args; i++) {
        n += arg_room(&ev->args[i]);
        rc = tp_chrome_cache_string(c, TP_CHROME_KEY, &ev->args[i].key, err);
    }
    if (rc == TP_OK) /* last, for it borrows from the pool */
        rc = tp_chrome_cache_track(c, ev->track, track, err);
    *room = n + track->len + TP_CHROME_BLOCK_BYTES;
    return rc;
}

/* Write an id of a flow or async event; in a merge, apart from those of others. */
static char *put_event_id(char *p, const struct tp_merge *m, size_t stream,
                          const struct tp_id *id)
{
    uint64_t stream_no = m->streams[stream].index->stream_no;
    char *end;

    p = PUT(p, ",\"id\":");
    if (!m->is_merged && id->kind == TP_ID_NUMBER)
        return tp_json_put_i64(p, id->number);
    if (!m->is_merged)
        return tp_json_put_string(p, id->text);
    if (id->kind == TP_ID_NUMBER && id->number >= 0 && id->number >> FLOW_BITS == 0 &&
        stream_no <= FLOW_STREAM_MAX)
        return tp_json_put_u64(p, stream_no << FLOW_BITS | (uint64_t)id->number);
    *p++ = '"';
    p = tp_json_put_u64(p, stream_no);
    *p = ':';
    if (id->kind == TP_ID_NUMBER)
        return PUT(tp_json_put_i64(p + 1, id->number), "\"");
    end = tp_json_put_string(p, id->text);
    *p = ':'; /* where the text's own opening quote is */
    return end;
}

/* Write `"ph":"X",`; a slice is X whatever it was made from. */
static inline char *put_phase(char *p, const struct tp_event *ev)
{
    static const char phases[TP_EVENT_KINDS] = {'X', 'B', 'E', 'i', 'C', 's', 't',
                                                'f', 'b', 'n', 'e', 'M', 0};
    char phase = ev->phase;

    if (ev->kind == TP_EVENT_SLICE || phase == 0)
        phase = phases[ev->kind];
    if (phase == 0)
        return p;
    if (phase >= 0x20 && phase != '"' && phase != '\\') {
        p = PUT(p, "\"ph\":\"");
        *p++ = phase;
        return PUT(p, "\",");
    }
    p = PUT(p, "\"ph\":");
    p = tp_json_put_string(p, (struct tp_str){&phase, 1});
    *p = ',';
    return p + 1;
}

static inline char *put_value(char *p, const struct tp_arg *a)
{
    switch (a->kind) {
    case TP_ARG_INT:
        return tp_json_put_i64(p, a->i);
    case TP_ARG_UINT:
        return tp_json_put_u64(p, a->u);
    case TP_ARG_DOUBLE:
        return tp_json_put_double(p, a->d);
    case TP_ARG_BOOL:
        return a->b ? PUT(p, "true") : PUT(p, "false");
    case TP_ARG_STRING:
        return tp_json_put_string(p, a->s);
    case TP_ARG_JSON:
        break;
    }
    return put_text(p, a->s.ptr, a->s.len);
}

static inline char *put_args(char *p, const struct tp_chrome_cache *c,
                             const struct tp_event *ev)
{
    if (ev->n_args == 0 && !ev->is_unfinished)
        return p;
    p = PUT(p, ",\"args\":{");
    for (uint32_t i = 0; i < ev->n_args; i++) {
        p = tp_chrome_cache_put(p, c, TP_CHROME_KEY, &ev->args[i].key);
        p = put_value(p, &ev->args[i]);
        *p++ = ',';
    }
    if (ev->is_unfinished)
        p = PUT(p, "\"unfinished\":true,");
    p[-1] = '}';
    return p;
}

/* Write the members that only some kinds have. */
static inline char *put_rare(char *p, const struct tp_chrome_cache *c,
                             const struct tp_event *ev)
{
    if (ev->scope != 0) {
        p = PUT(p, ",\"s\":");
        p = tp_json_put_string(p, (struct tp_str){&ev->scope, 1});
    }
    if (ev->id.kind != TP_ID_NONE)
        p = put_event_id(p, c->merge, c->stream, &ev->id);
    if (ev->binds_enclosing)
        p = PUT(p, ",\"bp\":\"e\"");
    return p;
}

/* Write `"ts":` and `,"dur":`. A time that int64_t cannot hold is the nearest one. */
static inline char *put_times(char *p, int64_t base_ns, const struct tp_event *ev)
{
    int64_t ts_ns;

    if (__builtin_sub_overflow(ev->ts_ns, base_ns, &ts_ns))
        ts_ns = ev->ts_ns < 0 ? INT64_MIN : INT64_MAX;
    p = PUT(p, "\"ts\":");
    p = tp_json_put_us(p, ts_ns);
    if (ev->kind != TP_EVENT_SLICE)
        return p;
    p = PUT(p, ",\"dur\":");
    return tp_json_put_us(p, ev->dur_ns);
}

static inline int write_event(struct tp_chrome_writer *w, const struct tp_event *ev,
                              bool has_ts, struct tp_buf *out, struct tp_err *err)
{
    const struct tp_chrome_cache *c = &w->cache;
    struct tp_str track = {0};
    size_t room;
    char *p;
    int rc;

    rc = prepare(w, ev, &track, &room, err);
    if (rc == TP_OK)
        rc = tp_buf_reserve(out, room, err);
    if (rc != TP_OK)
        return rc;
    p = out->data + out->len;
    if (w->has_events)
        *p++ = ',';
    p = PUT(p, "\n{");
    p = put_phase(p, ev);
    if (ev->cat.ptr != NULL)
        p = tp_chrome_cache_put(p, c, TP_CHROME_CAT, &ev->cat);
    if (ev->name.ptr != NULL)
        p = tp_chrome_cache_put(p, c, TP_CHROME_NAME, &ev->name);
    if (track.len > 0)
        p = tp_chrome_cache_copy(p, track.ptr, track.len);
    if (has_ts)
        p = put_times(p, w->base_ns, ev);
    else
        p--; /* the comma; there is a phase at least */
    p = put_rare(p, c, ev);
    p = put_args(p, c, ev);
    if (ev->extra.len > 0) {
        *p++ = ',';
        p = put_text(p, ev->extra.ptr, ev->extra.len);
    }
    *p++ = '}';
    out->len = (size_t)(p - out->data);
    w->has_events = true;
    return TP_OK;
}

/* Write an event of a merge that has members of its own, of which id2 is one. */
static int write_apart(struct tp_chrome_writer *w, const struct tp_event *ev,
                       struct tp_buf *out, struct tp_err *err)
{
    const struct tp_merge_stream *stream = &w->cache.merge->streams[w->cache.stream];
    struct tp_event apart = *ev;
    bool is_changed;
    int rc = tp_id2_separate(ev, stream->index->stream_no, &w->extra, &is_changed, err);

    if (rc == TP_OK && is_changed)
        apart.extra = (struct tp_str){w->extra.data, w->extra.len};
    return rc == TP_OK ? write_event(w, &apart, true, out, err) : rc;
}

int tp_chrome_writer_event(struct tp_chrome_writer *w, const struct tp_event *ev,
                           struct tp_buf *out, struct tp_err *err)
{
    if (ev->extra.len > 0 && w->cache.merge->is_merged)
        return write_apart(w, ev, out, err);
    return write_event(w, ev, true, out, err);
}

int tp_chrome_writer_meta(struct tp_chrome_writer *w, const struct tp_index_meta *meta,
                          uint32_t lane, struct tp_buf *out, struct tp_err *err)
{
    const struct tp_track track = {
        .index = UINT32_MAX, .lane = lane, .pid = meta->pid, .tid = meta->tid};
    struct tp_event ev = {.kind = TP_EVENT_META,
                          .ts_ns = meta->ts_ns,
                          .name = {meta->name.ptr, (uint32_t)meta->name.len, 0},
                          .track = &track,
                          .extra = meta->extra};
    struct tp_buf members = {0};
    int rc = TP_OK;

    if (meta->args_json.len > 0) {
        /* The args are a text already, so they travel with the other members. */
        rc = tp_buf_append_str(&members, "\"args\":", err);
        if (rc == TP_OK)
            rc = tp_buf_append(&members, meta->args_json.ptr, meta->args_json.len, err);
        if (rc == TP_OK && meta->extra.len > 0)
            rc = tp_buf_append(&members, ",", 1, err);
        if (rc == TP_OK)
            rc = tp_buf_append(&members, meta->extra.ptr, meta->extra.len, err);
        ev.extra = (struct tp_str){members.data, members.len};
    }
    if (rc == TP_OK)
        rc = write_event(w, &ev, meta->has_ts, out, err);
    tp_buf_fini(&members);
    return rc;
}
