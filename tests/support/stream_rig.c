/*
 * stream_rig.c - see stream_rig.h.
 */
#include "support/stream_rig.h"

#include <stdlib.h>
#include <string.h>

#include "support/blob_mem.h"
#include "support/native_form.h"
#include "trace/frame.h"
#include "trace/pf_descriptor.h"
#include "trace/pf_reader.h"

void stream_rig_fini(struct stream_rig *rig)
{
    tp_seal_result_fini(&rig->sealed);
    blob_mem_free(rig->blobs);
    *rig = (struct stream_rig){0};
}

static int feed_all(struct tp_ingest *g, const char *p, size_t n, size_t piece,
                    struct tp_err *err)
{
    int rc = TP_OK;

    piece = piece == 0 ? n : piece;
    for (size_t at = 0; rc == TP_OK && at < n; at += piece)
        rc = tp_ingest_feed(g, p + at, n - at < piece ? n - at : piece, err);
    return rc;
}

/* Append the result of an ingest to the log, as the engine does. */
static int append_frame(struct tp_blobs *blobs, const struct tp_ingest_result *r,
                        struct tp_err *err)
{
    struct tp_frame frame = {.payload_bytes = r->payload_bytes,
                             .crc32c = r->crc32c,
                             .has_base = r->has_clock,
                             .base_ns = r->add_ns,
                             .is_native = r->is_native,
                             .counts = r->counts};
    char head[TP_FRAME_BYTES];
    struct tp_blob *log = NULL;
    int rc = blobs->open_append(blobs->ctx, "log", &log, err);

    tp_frame_encode(&frame, head);
    if (rc == TP_OK)
        rc = blobs->append(log, head, sizeof(head), err);
    if (rc == TP_OK && r->spill != NULL)
        rc = blobs->append_blob(log, r->spill, r->payload_bytes, err);
    else if (rc == TP_OK)
        rc = blobs->append(log, r->payload, r->payload_bytes, err);
    blobs->close(blobs->ctx, log);
    return rc;
}

int stream_rig_post(struct stream_rig *rig, const void *p, size_t n, struct tp_err *err)
{
    struct tp_ingest_opts opts = rig->opts;
    const struct tp_ingest_result *result;
    struct tp_ingest *g = NULL;
    bool is_as_it_came;
    int rc;

    if (rig->blobs == NULL)
        rig->blobs = blob_mem_new();
    opts.stream_no = opts.stream_no == 0 ? 1 : opts.stream_no;
    opts.blobs = rig->blobs;
    rc = tp_ingest_new(&opts, &g, err);
    if (rc == TP_OK)
        rc = feed_all(g, p, n, rig->piece_bytes, err);
    if (rc == TP_OK)
        rc = tp_ingest_finish(g, &result, err);
    if (rc == TP_OK)
        rc = tp_counts_check(&result->counts, err);
    /* Before the append: a test may post what is in the log. */
    is_as_it_came = rc == TP_OK && result->payload != NULL &&
                    native_form_is_same(result->payload, result->payload_bytes, p, n);
    if (rc == TP_OK)
        rc = append_frame(rig->blobs, result, err);
    if (rc == TP_OK && rig->tally != NULL)
        rig->is_tallied = tp_native_tally_add(rig->tally, result);
    if (rc == TP_OK) {
        tp_counts_add(&rig->counts, &result->counts);
        rig->damages = result->damages;
        rig->is_truncated = result->is_truncated;
        rig->is_native = result->is_native;
        rig->is_as_it_came = is_as_it_came;
    }
    tp_ingest_free(g);
    return rc;
}

int stream_rig_seal(struct stream_rig *rig, struct tp_err *err)
{
    struct tp_seal_opts opts = rig->seal_opts;
    int rc;

    opts.blobs = rig->blobs;
    opts.log_name = "log";
    opts.stream_no = rig->opts.stream_no == 0 ? 1 : rig->opts.stream_no;
    rc = tp_seal_run(&opts, &rig->sealed, err);
    if (rc != TP_OK)
        return rc;
    tp_seal_adjust(&rig->counts, &rig->sealed);
    return tp_counts_check(&rig->counts, err);
}

/* Tell a reader what a download's header would. */
static int introduce(const struct stream_rig *rig, struct tp_pf_reader *r,
                     struct tp_buf *bytes, struct tp_err *err)
{
    const struct tp_stream_index *ix = &rig->sealed.index;
    int rc = tp_pf_write_clear(bytes, ix->stream_no, err);

    for (size_t i = 0; rc == TP_OK && i < ix->n_tracks; i++)
        rc = tp_pf_reader_add_track(r, ix->tracks[i].uuid, ix->tracks[i].lane,
                                    &ix->tracks[i].pid, &ix->tracks[i].tid, err);
    for (size_t i = 0; rc == TP_OK && i < ix->n_series; i++)
        rc = tp_pf_reader_add_series(r, ix->series[i].uuid, &ix->series[i].pid,
                                     &ix->series[i].tid, ix->series[i].counter,
                                     ix->series[i].series, err);
    return rc;
}

static int load(const struct stream_rig *rig, struct tp_buf *bytes, struct tp_err *err)
{
    const struct tp_seal_result *s = &rig->sealed;
    uint64_t size = s->blobs->size(s->blob);
    size_t got;
    int rc = tp_buf_reserve(bytes, size, err);

    if (rc == TP_OK)
        rc = s->blobs->pread(s->blob, 0, bytes->data + bytes->len, size, &got, err);
    if (rc == TP_OK)
        bytes->len += got;
    return rc;
}

int stream_rig_each(struct stream_rig *rig,
                    int (*fn)(const struct tp_event *ev, struct tp_err *err, void *arg),
                    void *arg, struct tp_err *err)
{
    struct tp_pf_reader_opts opts = {0};
    struct tp_pf_reader *r = NULL;
    struct tp_buf bytes = {0};
    struct tp_pf_cursor c;
    int rc = tp_pf_reader_new(&opts, &r, err);

    if (rc == TP_OK)
        rc = introduce(rig, r, &bytes, err);
    if (rc == TP_OK)
        rc = load(rig, &bytes, err);
    c = (struct tp_pf_cursor){bytes.data, bytes.data + bytes.len};
    while (rc == TP_OK) {
        struct tp_event ev;
        enum tp_pf_item item;

        rc = tp_pf_reader_next(r, &c, &item, &ev, err);
        if (rc == TP_OK)
            rc = fn(&ev, err, arg);
    }
    if (rc == TP_EAGAIN)
        rc = c.ptr == c.end ? TP_OK : tp_fail(err, TP_EINVAL, "half a packet is left");
    tp_pf_reader_free(r);
    tp_buf_fini(&bytes);
    return rc;
}

static int put_id(struct tp_buf *out, const struct tp_id *id, struct tp_err *err)
{
    if (id->kind == TP_ID_NUMBER)
        return tp_buf_printf(out, err, "%lld", (long long)id->number);
    if (id->kind == TP_ID_TEXT)
        return tp_buf_printf(out, err, "\"%.*s\"", (int)id->text.len, id->text.ptr);
    return tp_buf_printf(out, err, "-");
}

static int put_arg(struct tp_buf *out, const struct tp_arg *a, struct tp_err *err)
{
    int rc = tp_buf_printf(out, err, " %.*s=", (int)a->key.len, a->key.ptr);

    if (rc != TP_OK)
        return rc;
    switch (a->kind) {
    case TP_ARG_INT:
        return tp_buf_printf(out, err, "%lld", (long long)a->i);
    case TP_ARG_UINT:
        return tp_buf_printf(out, err, "%lluu", (unsigned long long)a->u);
    case TP_ARG_DOUBLE:
        return tp_buf_printf(out, err, "%.17gd", a->d);
    case TP_ARG_BOOL:
        return tp_buf_printf(out, err, "%s", a->b ? "true" : "false");
    case TP_ARG_STRING:
        return tp_buf_printf(out, err, "\"%.*s\"", (int)a->s.len, a->s.ptr);
    case TP_ARG_JSON:
        return tp_buf_printf(out, err, "%.*s", (int)a->s.len, a->s.ptr);
    }
    return TP_OK;
}

static int put_head(const struct tp_event *ev, struct tp_buf *out, struct tp_err *err)
{
    int rc = tp_buf_printf(out, err, "%c%s %.*s %.*s ",
                           ev->kind == TP_EVENT_OTHER ? ev->phase
                                                      : "XBEiCstfbneM?"[ev->kind],
                           ev -> is_unfinished ? "?" : "", (int)ev->cat.len,
                           ev->cat.ptr == NULL ? "" : ev->cat.ptr, (int)ev->name.len,
                           ev->name.ptr == NULL ? "" : ev->name.ptr);

    if (rc == TP_OK)
        rc = put_id(out, &ev->track->pid, err);
    if (rc == TP_OK)
        rc = tp_buf_append(out, "/", 1, err);
    if (rc == TP_OK)
        rc = put_id(out, &ev->track->tid, err);
    if (rc == TP_OK && ev->track->lane != 0)
        rc = tp_buf_printf(out, err, "@%u", ev->track->lane);
    if (rc == TP_OK)
        rc = tp_buf_printf(out, err, " %lld", (long long)ev->ts_ns);
    return rc;
}

int stream_rig_line(const struct tp_event *ev, struct tp_buf *out, struct tp_err *err)
{
    int rc = put_head(ev, out, err);

    if (rc == TP_OK && ev->kind == TP_EVENT_SLICE)
        rc = tp_buf_printf(out, err, "+%lld", (long long)ev->dur_ns);
    if (rc == TP_OK && ev->id.kind != TP_ID_NONE) {
        rc = tp_buf_append_str(out, " id=", err);
        if (rc == TP_OK)
            rc = put_id(out, &ev->id, err);
    }
    if (rc == TP_OK && ev->binds_enclosing)
        rc = tp_buf_append_str(out, " bp", err);
    if (rc == TP_OK && ev->kind == TP_EVENT_INSTANT && ev->scope != '\0')
        rc = tp_buf_printf(out, err, " scope=%c", ev->scope);
    for (uint32_t i = 0; rc == TP_OK && i < ev->n_args; i++)
        rc = put_arg(out, &ev->args[i], err);
    if (rc == TP_OK && ev->extra.len > 0)
        rc = tp_buf_printf(out, err, " {%.*s}", (int)ev->extra.len, ev->extra.ptr);
    return rc == TP_OK ? tp_buf_append(out, "\n", 1, err) : rc;
}

static int add_line(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    return stream_rig_line(ev, arg, err);
}

int stream_rig_text(struct stream_rig *rig, struct tp_buf *out, struct tp_err *err)
{
    return stream_rig_each(rig, add_line, out, err);
}
