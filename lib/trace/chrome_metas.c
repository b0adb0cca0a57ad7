/*
 * chrome_metas.c - labels "rank N", order by rank, and names of lanes.
 */
#include "trace/chrome_metas.h"

#include "base/buf.h"
#include "base/json_write.h"
#include "trace/chrome_writer.h"
#include "trace/merge.h"
#include "trace/merge_join.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

/* What the functions here have in common. */
struct metas {
    const struct tp_merge *m;
    struct tp_chrome_writer *w;
    struct tp_buf *out;
    struct tp_err *err;
    struct tp_buf args; /* reused */
};

/* Append one event whose args are in s->args. */
static int write_one(struct metas *s, const char *name, const struct tp_id *pid,
                     const struct tp_id *tid, uint32_t lane)
{
    const struct tp_index_meta meta = {.name = tp_str_of(name),
                                       .pid = *pid,
                                       .tid = *tid,
                                       .args_json = {s->args.data, s->args.len}};

    return tp_chrome_writer_meta(s->w, &meta, lane, s->out, s->err);
}

/* Metadata of a process is put on tid 0, as Kineto does. */
static const struct tp_id tid_zero = {.kind = TP_ID_NUMBER};

static int write_label(struct metas *s, const struct tp_merge_process *p)
{
    int rc;

    s->args.len = 0;
    rc = tp_buf_append_str(&s->args, "{\"labels\":", s->err);
    if (rc == TP_OK)
        rc = tp_json_write_cstr(&s->args, s->m->labels[p->stream], s->err);
    if (rc == TP_OK)
        rc = tp_buf_append(&s->args, "}", 1, s->err);
    return rc == TP_OK ? write_one(s, "process_labels", &p->source, &tid_zero, 0) : rc;
}

static int write_sort_index(struct metas *s, const struct tp_merge_process *p)
{
    int rc;

    s->args.len = 0;
    rc = tp_buf_append_str(&s->args, "{\"sort_index\":", s->err);
    if (rc == TP_OK)
        rc = tp_json_write_i64(&s->args, p->sort_index, s->err);
    if (rc == TP_OK)
        rc = tp_buf_append(&s->args, "}", 1, s->err);
    return rc == TP_OK ? write_one(s, "process_sort_index", &p->source, &tid_zero, 0)
                       : rc;
}

/* The name of a thread for people: what the source called it, else its tid. */
static int append_thread_name(struct tp_buf *b, const struct tp_merge *m,
                              const struct tp_merge_thread *lane, struct tp_err *err)
{
    const struct tp_merge_thread *t =
        tp_merge_thread(m, &m->processes[lane->process], &lane->source, 0);

    if (t != NULL && t->name != NULL)
        return tp_buf_append_str(b, t->name, err);
    if (lane->source.kind == TP_ID_TEXT)
        return tp_buf_append(b, lane->source.text.ptr, lane->source.text.len, err);
    if (lane->source.kind == TP_ID_NONE)
        return tp_buf_append_str(b, "thread", err);
    return tp_buf_printf(b, err, "thread %lld", (long long)lane->source.number);
}

static int write_lane(struct metas *s, const struct tp_merge_thread *t)
{
    struct tp_buf name = {0};
    int rc = append_thread_name(&name, s->m, t, s->err);

    s->args.len = 0;
    if (rc == TP_OK)
        rc = tp_buf_printf(&name, s->err, " (lane %u)", t->lane);
    if (rc == TP_OK)
        rc = tp_buf_append_str(&s->args, "{\"name\":", s->err);
    if (rc == TP_OK)
        rc = tp_json_write_string(&s->args, (struct tp_str){name.data, name.len},
                                  s->err);
    if (rc == TP_OK)
        rc = tp_buf_append(&s->args, "}", 1, s->err);
    tp_buf_fini(&name);
    if (rc != TP_OK)
        return rc;
    return write_one(s, "thread_name", &s->m->processes[t->process].source, &t->source,
                     t->lane);
}

static int write_processes(struct metas *s, size_t stream)
{
    const struct tp_merge *m = s->m;
    const struct tp_stream_index *ix = m->streams[stream].index;
    bool wants_label = m->is_merged ||
                       (m->streams[stream].producer->has_rank && ix->n_metas == 0);
    int rc = TP_OK;

    for (size_t i = m->first_process[stream];
         rc == TP_OK && i < m->first_process[stream + 1]; i++) {
        if (tp_merge_is_joined(m, i))
            continue; /* its owner has them */
        if (wants_label)
            rc = write_label(s, &m->processes[i]);
        if (rc == TP_OK && m->is_merged)
            rc = write_sort_index(s, &m->processes[i]);
    }
    return rc;
}

static int write_lanes(struct metas *s, size_t stream)
{
    const struct tp_merge *m = s->m;
    int rc = TP_OK;

    for (size_t i = m->first_thread[stream];
         rc == TP_OK && i < m->first_thread[stream + 1]; i++)
        if (m->threads[i].lane > 0)
            rc = write_lane(s, &m->threads[i]);
    return rc;
}

int tp_chrome_metas_write(const struct tp_merge *m, size_t stream,
                          struct tp_chrome_writer *w, struct tp_buf *out,
                          struct tp_err *err)
{
    struct metas s = {.m = m, .w = w, .out = out, .err = err};
    int rc = write_processes(&s, stream);

    if (rc == TP_OK)
        rc = write_lanes(&s, stream);
    tp_buf_fini(&s.args);
    return rc;
}
