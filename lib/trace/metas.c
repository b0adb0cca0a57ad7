/*
 * metas.c - metadata events and notes into an index.
 */
#include "trace/metas.h"

#include "base/json_write.h"
#include "trace/notes.h"

void tp_metas_fini(struct tp_metas *m)
{
    tp_strmap_fini(&m->last_metas);
    tp_strmap_fini(&m->members);
    tp_buf_fini(&m->text);
}

static int write_value(struct tp_buf *out, const struct tp_arg *a, struct tp_err *err)
{
    switch (a->kind) {
    case TP_ARG_INT:
        return tp_json_write_i64(out, a->i, err);
    case TP_ARG_UINT:
        return tp_json_write_u64(out, a->u, err);
    case TP_ARG_DOUBLE:
        return tp_json_write_double(out, a->d, err);
    case TP_ARG_BOOL:
        return tp_json_write_bool(out, a->b, err);
    case TP_ARG_STRING:
        return tp_json_write_string(out, a->s, err);
    case TP_ARG_JSON:
        return tp_buf_append(out, a->s.ptr, a->s.len, err);
    }
    return TP_OK;
}

/* The arguments as the text of an object; nothing when there are none. */
static int write_args(struct tp_buf *out, const struct tp_event *ev, struct tp_err *err)
{
    int rc = TP_OK;

    out->len = 0;
    for (uint32_t i = 0; rc == TP_OK && i < ev->n_args; i++) {
        const struct tp_arg *a = &ev->args[i];

        rc = tp_buf_append(out, i == 0 ? "{" : ",", 1, err);
        if (rc == TP_OK)
            rc =
                tp_json_write_string(out, (struct tp_str){a->key.ptr, a->key.len}, err);
        if (rc == TP_OK)
            rc = tp_buf_append(out, ":", 1, err);
        if (rc == TP_OK)
            rc = write_value(out, a, err);
    }
    return rc == TP_OK && ev->n_args > 0 ? tp_buf_append(out, "}", 1, err) : rc;
}

static int append_id(struct tp_buf *out, const struct tp_id *id, struct tp_err *err)
{
    if (id->kind == TP_ID_TEXT)
        return tp_json_write_string(out, id->text, err);
    return id->kind == TP_ID_NUMBER ? tp_json_write_i64(out, id->number, err)
                                    : tp_buf_append(out, "-", 1, err);
}

/* What tells which metadata replaces which, as text: name, pid and tid. */
static int write_key(struct tp_buf *out, const struct tp_event *ev, struct tp_err *err)
{
    int rc;

    out->len = 0;
    rc = tp_json_write_string(out, (struct tp_str){ev->name.ptr, ev->name.len}, err);
    if (rc == TP_OK)
        rc = append_id(out, &ev->track->pid, err);
    if (rc == TP_OK)
        rc = tp_buf_append(out, " ", 1, err);
    return rc == TP_OK ? append_id(out, &ev->track->tid, err) : rc;
}

/* Begin a member behind those that are there. */
static int begin_member(struct tp_buf *out, const char *key, struct tp_err *err)
{
    int rc = out->len == 0 ? TP_OK : tp_buf_append(out, ",", 1, err);

    return rc == TP_OK ? tp_buf_append_str(out, key, err) : rc;
}

/* All that an index has no field for, as members: cat, id, what only some kinds have,
 * and those that no kind has. */
static int write_extra(struct tp_buf *out, const struct tp_event *ev,
                       struct tp_err *err)
{
    const struct tp_str cat = {ev->cat.ptr, ev->cat.len};
    int rc = TP_OK;

    out->len = 0;
    if (cat.ptr != NULL)
        rc = begin_member(out, "\"cat\":", err);
    if (rc == TP_OK && cat.ptr != NULL)
        rc = tp_json_write_string(out, cat, err);
    if (rc == TP_OK && ev->id.kind != TP_ID_NONE)
        rc = begin_member(out, "\"id\":", err);
    if (rc == TP_OK && ev->id.kind != TP_ID_NONE)
        rc = append_id(out, &ev->id, err);
    if (rc == TP_OK && ev->scope != 0)
        rc = begin_member(out, "\"s\":", err);
    if (rc == TP_OK && ev->scope != 0)
        rc = tp_json_write_string(out, (struct tp_str){&ev->scope, 1}, err);
    if (rc == TP_OK && ev->binds_enclosing)
        rc = begin_member(out, "\"bp\":\"e\"", err);
    if (rc != TP_OK || ev->extra.len == 0)
        return rc;
    rc = begin_member(out, "", err);
    return rc == TP_OK ? tp_buf_append(out, ev->extra.ptr, ev->extra.len, err) : rc;
}

/* Fill a place of index->metas. */
static int fill(struct tp_metas *m, const struct tp_event *ev,
                struct tp_index_meta *out, struct tp_err *err)
{
    struct tp_index_meta meta = {.ts_ns = out->ts_ns, .has_ts = out->has_ts};
    int rc = write_args(&m->text, ev, err);

    if (rc == TP_OK)
        rc = tp_stream_index_dup(m->index, (struct tp_str){m->text.data, m->text.len},
                                 &meta.args_json, err);
    if (rc == TP_OK)
        rc = tp_stream_index_dup(m->index, (struct tp_str){ev->name.ptr, ev->name.len},
                                 &meta.name, err);
    if (rc == TP_OK)
        rc = tp_stream_index_dup_id(m->index, &ev->track->pid, &meta.pid, err);
    if (rc == TP_OK)
        rc = tp_stream_index_dup_id(m->index, &ev->track->tid, &meta.tid, err);
    if (rc == TP_OK)
        rc = write_extra(&m->text, ev, err);
    if (rc == TP_OK)
        rc = tp_stream_index_dup(m->index, (struct tp_str){m->text.data, m->text.len},
                                 &meta.extra, err);
    if (rc != TP_OK)
        return rc;
    m->meta_bytes += sizeof(meta) + meta.args_json.len + meta.name.len +
                     meta.extra.len + meta.pid.text.len + meta.tid.text.len;
    *out = meta;
    return TP_OK;
}

static int add_meta(struct tp_metas *m, const struct tp_event *ev, int64_t ts_ns,
                    bool has_ts, bool *is_kept, struct tp_err *err)
{
    struct tp_stream_index *ix = m->index;
    struct tp_index_meta meta = {.ts_ns = has_ts ? ts_ns : 0, .has_ts = has_ts};
    bool is_full = ix->n_metas >= m->metas_max;
    uint64_t place;
    int rc = write_key(&m->text, ev, err);

    if (rc != TP_OK)
        return rc;
    *is_kept = !is_full && m->meta_bytes < m->bytes_max;
    if (*is_kept) {
        place = ix->n_metas;
        rc = tp_stream_index_grow(&ix->metas, ix->n_metas, sizeof(*ix->metas), err);
        if (rc == TP_OK)
            rc = tp_strmap_put_u64(&m->last_metas, m->text.data, m->text.len, place,
                                   err);
    } else {
        ix->metas_left_out++;
        if (m->meta_bytes >= m->bytes_max ||
            !tp_strmap_get_u64(&m->last_metas, m->text.data, m->text.len, &place))
            return TP_OK;
    }
    if (rc == TP_OK)
        rc = fill(m, ev, &meta, err);
    if (rc != TP_OK)
        return rc;
    ix->metas[place] = meta;
    ix->n_metas += *is_kept;
    return TP_OK;
}

static int add_member(struct tp_metas *m, const struct tp_note *note,
                      struct tp_err *err)
{
    struct tp_stream_index *ix = m->index;
    struct tp_index_member member;
    uint64_t place = ix->n_members;
    bool is_there =
        tp_strmap_get_u64(&m->members, note->key.ptr, note->key.len, &place);
    int rc = TP_OK;

    if (is_there && tp_str_equal(ix->members[place].json, note->json))
        return TP_OK;
    if (note->json.len + note->key.len > m->bytes_max - m->member_bytes) {
        ix->members_left_out++;
        return TP_OK;
    }
    if (!is_there)
        rc = tp_stream_index_grow(&ix->members, place, sizeof(*ix->members), err);
    if (rc == TP_OK)
        rc = tp_stream_index_dup(ix, note->key, &member.key, err);
    if (rc == TP_OK)
        rc = tp_stream_index_dup(ix, note->json, &member.json, err);
    if (rc == TP_OK && !is_there)
        rc = tp_strmap_put_u64(&m->members, note->key.ptr, note->key.len, place, err);
    if (rc != TP_OK)
        return rc;
    m->member_bytes += note->json.len + note->key.len;
    ix->members[place] = member;
    ix->n_members += !is_there;
    return TP_OK;
}

static int add_damage(struct tp_metas *m, const struct tp_note *note,
                      struct tp_err *err)
{
    struct tp_stream_index *ix = m->index;

    ix->damages += note->damages;
    ix->is_truncated = ix->is_truncated || note->is_truncated;
    ix->members_left_out += note->members_left_out;
    for (uint32_t i = 0; i < note->n_offsets; i++) {
        int rc;

        if (ix->n_damage_offsets == TP_NOTE_OFFSETS_MAX)
            break;
        rc = tp_stream_index_grow(&ix->damage_offsets, ix->n_damage_offsets,
                                  sizeof(*ix->damage_offsets), err);
        if (rc != TP_OK)
            return rc;
        ix->damage_offsets[ix->n_damage_offsets++] = note->offsets[i];
    }
    return TP_OK;
}

int tp_metas_add(struct tp_metas *m, const struct tp_event *ev, int64_t ts_ns,
                 bool has_ts, bool *is_note, bool *is_kept, struct tp_err *err)
{
    struct tp_note note;

    *is_kept = true;
    *is_note = tp_note_read(ev, &note);
    if (!*is_note)
        return add_meta(m, ev, ts_ns, has_ts, is_kept, err);
    switch (note.kind) {
    case TP_NOTE_MEMBER:
        return add_member(m, &note, err);
    case TP_NOTE_DAMAGE:
        return add_damage(m, &note, err);
    case TP_NOTE_BASE:
        m->index->has_base = true;
        m->index->base_ns = note.base_ns;
        return TP_OK;
    case TP_NOTE_NONE:
        break;
    }
    return TP_OK;
}
