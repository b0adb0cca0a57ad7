/*
 * chrome_reader.c - the public face: options, feeding, the final answer.
 *
 * Text arrives in windows. A unit that an earlier window left unfinished goes on first;
 * then the document moves on step by step. Damage in a carried unit gives back the text
 * behind it, which is read before the rest of the window.
 */
#include "trace/chrome_reader.h"

#include <assert.h>
#include <stdlib.h>

#include "trace/chrome_state.h"

#define DEPTH_MAX 64U
#define ARGS_MAX 256U
#define NAME_BYTES 65536U
#define EVENT_BYTES (1U << 20)
#define MEMBER_BYTES (4U << 20)
#define MEMBERS_BYTES (8U << 20)
#define TRACKS_MAX 1048576U
#define EVENT_BYTES_HIGHEST (256U << 20) /* so that lengths of names fit 32 bits */

static size_t or_default(size_t value, size_t preset)
{
    return value == 0 ? preset : value;
}

static void fill_in(struct tp_chrome_reader_opts *o)
{
    o->depth_max = (uint32_t)or_default(o->depth_max, DEPTH_MAX);
    if (o->depth_max > TP_JSON_DEPTH_MAX)
        o->depth_max = TP_JSON_DEPTH_MAX;
    o->args_max = (uint32_t)or_default(o->args_max, ARGS_MAX);
    o->name_bytes = or_default(o->name_bytes, NAME_BYTES);
    o->event_bytes = or_default(o->event_bytes, EVENT_BYTES);
    if (o->event_bytes > EVENT_BYTES_HIGHEST)
        o->event_bytes = EVENT_BYTES_HIGHEST;
    if (o->name_bytes > o->event_bytes)
        o->name_bytes = o->event_bytes;
    o->member_bytes = or_default(o->member_bytes, MEMBER_BYTES);
    o->members_bytes = or_default(o->members_bytes, MEMBERS_BYTES);
    o->tracks_max = (uint32_t)or_default(o->tracks_max, TRACKS_MAX);
}

int tp_chrome_reader_new(const struct tp_chrome_reader_opts *opts,
                         struct tp_chrome_reader **out, struct tp_err *err)
{
    struct tp_chrome_reader *r;

    assert(opts->on_event != NULL);
    r = calloc(1, sizeof(*r));
    if (r == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a reader of traces");
    r->opts = *opts;
    fill_in(&r->opts);
    tp_chrome_names_init(&r->members.names);
    r->members.depth_max = r->opts.depth_max;
    r->members.args_max = r->opts.args_max;
    r->members.name_bytes = r->opts.name_bytes;
    tp_chrome_tracks_init(&r->tracks, r->opts.tracks_max);
    *out = r;
    return TP_OK;
}

void tp_chrome_reader_free(struct tp_chrome_reader *r)
{
    if (r == NULL)
        return;
    tp_chrome_members_fini(&r->members);
    tp_chrome_tracks_fini(&r->tracks);
    tp_buf_fini(&r->carry);
    tp_buf_fini(&r->replay);
    tp_buf_fini(&r->key);
    tp_buf_fini(&r->json);
    free(r);
}

/* Empty a buffer; a large one gives its memory back. */
static void empty_buf(struct tp_buf *b)
{
    if (b->cap > TP_CHROME_KEEP_BYTES)
        tp_buf_fini(b);
    b->len = 0;
}

void tp_chrome_reader_reset(struct tp_chrome_reader *r)
{
    struct tp_chrome_reader fresh = {.opts = r->opts};

    tp_chrome_tracks_reset(&r->tracks);
    empty_buf(&r->carry);
    empty_buf(&r->replay);
    empty_buf(&r->key);
    empty_buf(&r->json);
    tp_chrome_names_reset(&r->members.names);
    fresh.members = r->members;
    fresh.tracks = r->tracks;
    fresh.carry = r->carry;
    fresh.replay = r->replay;
    fresh.key = r->key;
    fresh.json = r->json;
    *r = fresh;
}

/* Keep the final answer. */
static int fail(struct tp_chrome_reader *r, int rc, const struct tp_err *why,
                struct tp_err *err)
{
    if (r->failed == TP_OK) {
        r->failed = rc;
        r->failure = *why;
        r->failure.code = rc;
    }
    if (err != NULL)
        *err = r->failure;
    return r->failed;
}

/* Read the text that damage gave back. A unit that it leaves unfinished goes on in the
 * window behind it. */
static int read_replay(struct tp_chrome_reader *r, struct tp_err *err)
{
    struct tp_buf text = r->replay;
    struct tp_chrome_window w = {
        .start = text.data,
        .p = text.data,
        .end = text.data + text.len,
        .offset = r->replay_offset,
    };
    int rc = TP_OK;

    r->replay = (struct tp_buf){0};
    while (rc == TP_OK && w.p < w.end)
        rc = tp_chrome_doc_step(r, &w, err);
    assert(r->replay.len == 0 && r->replay.data == NULL);
    r->replay = text;
    empty_buf(&r->replay);
    return rc;
}

static int read_window(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                       struct tp_err *err)
{
    int rc = TP_OK;

    while (rc == TP_OK && w->p < w->end) {
        rc = r->unit != TP_CHROME_UNIT_NONE ? tp_chrome_unit_resume(r, w, err)
                                            : tp_chrome_doc_step(r, w, err);
        if (rc == TP_OK && r->replay.len > 0)
            rc = read_replay(r, err);
    }
    return rc;
}

int tp_chrome_reader_feed(struct tp_chrome_reader *r, const char *p, size_t n,
                          struct tp_err *err)
{
    struct tp_chrome_window w = {.start = p, .p = p, .end = p + n, .offset = r->offset};
    struct tp_err why = {0};
    int rc;

    if (r->failed != TP_OK)
        return fail(r, r->failed, &r->failure, err);
    if (n == 0)
        return TP_OK;
    rc = read_window(r, &w, &why);
    r->offset += n;
    return rc == TP_OK ? TP_OK : fail(r, rc, &why, err);
}

/* End what is unfinished; ending it may give back text that starts something else. */
static int finish(struct tp_chrome_reader *r, struct tp_err *err)
{
    int rc = TP_OK;

    while (rc == TP_OK && r->unit != TP_CHROME_UNIT_NONE) {
        rc = tp_chrome_unit_finish(r, err);
        if (rc == TP_OK && r->replay.len > 0)
            rc = read_replay(r, err);
    }
    if (rc == TP_OK && !r->stats.is_truncated)
        rc = tp_chrome_doc_finish(r, err);
    return rc;
}

int tp_chrome_reader_finish(struct tp_chrome_reader *r, struct tp_err *err)
{
    struct tp_err why = {0};
    int rc;

    if (r->failed != TP_OK)
        return fail(r, r->failed, &r->failure, err);
    rc = finish(r, &why);
    return rc == TP_OK ? TP_OK : fail(r, rc, &why, err);
}

const struct tp_chrome_stats *tp_chrome_reader_stats(const struct tp_chrome_reader *r)
{
    return &r->stats;
}
