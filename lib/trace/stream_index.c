/*
 * stream_index.c - the index document: built, written and released.
 *
 * One JSON object. Lists that may be long are arrays of arrays in the order of the
 * fields of the struct, so that names are not repeated a hundred thousand times:
 *
 *     {"version":1,"stream_no":3,...,"tracks":[[uuid,lane,pid,tid],...],...}
 *
 * A pid or tid is a number, a string, or null when there was none. JSON texts and
 * `extra` are strings, so that their bytes come back as they were. Reading is in
 * stream_index_read.c.
 */
#include "trace/stream_index.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "trace/intern.h"
#include "trace/stream_index_fields.h"

struct tp_index_arena {
    struct tp_arena bytes;
};

const struct tp_index_number tp_index_numbers[] = {
    {"stream_no", offsetof(struct tp_stream_index, stream_no), TP_INDEX_U32},
    {"size_bytes", offsetof(struct tp_stream_index, size_bytes), TP_INDEX_U64},
    {"names_bytes", offsetof(struct tp_stream_index, names_bytes), TP_INDEX_U64},
    {"has_crc32c", offsetof(struct tp_stream_index, has_crc32c), TP_INDEX_BOOL},
    {"crc32c", offsetof(struct tp_stream_index, crc32c), TP_INDEX_U32},
    {"n_events", offsetof(struct tp_stream_index, n_events), TP_INDEX_U64},
    {"first_ns", offsetof(struct tp_stream_index, first_ns), TP_INDEX_I64},
    {"last_ns", offsetof(struct tp_stream_index, last_ns), TP_INDEX_I64},
    {"has_base", offsetof(struct tp_stream_index, has_base), TP_INDEX_BOOL},
    {"base_ns", offsetof(struct tp_stream_index, base_ns), TP_INDEX_I64},
    {"unmatched_ends", offsetof(struct tp_stream_index, unmatched_ends), TP_INDEX_U64},
    {"unfinished", offsetof(struct tp_stream_index, unfinished), TP_INDEX_U64},
    {"filtered_pairs", offsetof(struct tp_stream_index, filtered_pairs), TP_INDEX_U64},
    {"lanes_added", offsetof(struct tp_stream_index, lanes_added), TP_INDEX_U64},
    {"overlaps", offsetof(struct tp_stream_index, overlaps), TP_INDEX_U64},
    {"unbound_flows", offsetof(struct tp_stream_index, unbound_flows), TP_INDEX_U64},
    {"crossings", offsetof(struct tp_stream_index, crossings), TP_INDEX_U64},
    {"clock_error_ns", offsetof(struct tp_stream_index, clock_error_ns), TP_INDEX_U64},
    {"clocks_left_out", offsetof(struct tp_stream_index, clocks_left_out),
     TP_INDEX_U64},
    {"clamped", offsetof(struct tp_stream_index, clamped), TP_INDEX_U64},
    {"metas_left_out", offsetof(struct tp_stream_index, metas_left_out), TP_INDEX_U64},
    {"members_left_out", offsetof(struct tp_stream_index, members_left_out),
     TP_INDEX_U64},
    {"is_truncated", offsetof(struct tp_stream_index, is_truncated), TP_INDEX_BOOL},
    {"damages", offsetof(struct tp_stream_index, damages), TP_INDEX_U64},
    {"names_are_complete", offsetof(struct tp_stream_index, names_are_complete),
     TP_INDEX_BOOL},
};
const size_t tp_index_n_numbers = sizeof(tp_index_numbers) / sizeof(*tp_index_numbers);

int tp_stream_index_dup(struct tp_stream_index *ix, struct tp_str s, struct tp_str *out,
                        struct tp_err *err)
{
    if (s.len == 0) {
        *out = (struct tp_str){NULL, 0};
        return TP_OK;
    }
    if (ix->arena == NULL) {
        ix->arena = calloc(1, sizeof(*ix->arena));
        if (ix->arena == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for an index");
    }
    return tp_intern_copy(&ix->arena->bytes, s, out, err);
}

int tp_stream_index_dup_id(struct tp_stream_index *ix, const struct tp_id *in,
                           struct tp_id *out, struct tp_err *err)
{
    struct tp_id id = *in;
    int rc = TP_OK;

    if (id.kind == TP_ID_TEXT)
        rc = tp_stream_index_dup(ix, in->text, &id.text, err);
    if (rc == TP_OK)
        *out = id;
    return rc;
}

int tp_stream_index_grow(void *array, size_t n, size_t item_bytes, struct tp_err *err)
{
    void *items;

    /* Places for 8, 16, 32, ... items: more are needed exactly at these counts. */
    if (n != 0 && (n < 8 || (n & (n - 1)) != 0))
        return TP_OK;
    memcpy(&items, array, sizeof(items));
    items = realloc(items, (n == 0 ? 8 : n * 2) * item_bytes);
    if (items == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu items of an index", n + 1);
    memcpy(array, &items, sizeof(items));
    return TP_OK;
}

void tp_stream_index_fini(struct tp_stream_index *ix)
{
    if (ix->arena != NULL)
        tp_arena_fini(&ix->arena->bytes);
    free(ix->arena);
    free(ix->tracks);
    free(ix->series);
    free(ix->metas);
    free(ix->members);
    free(ix->types);
    free(ix->names);
    free(ix->blocks);
    free(ix->clocks);
    free(ix->damage_offsets);
    *ix = (struct tp_stream_index){0};
}

/* A growing document: the first failure stops all that follows. */
struct doc {
    struct tp_buf *out;
    struct tp_err *err;
    int rc;
    bool needs_comma;
};

static void raw(struct doc *d, const char *s)
{
    if (d->rc == TP_OK)
        d->rc = tp_buf_append_str(d->out, s, d->err);
}

static void comma(struct doc *d)
{
    if (d->needs_comma)
        raw(d, ",");
    d->needs_comma = true;
}

static void open_with(struct doc *d, const char *bracket)
{
    comma(d);
    raw(d, bracket);
    d->needs_comma = false;
}

static void close_with(struct doc *d, const char *bracket)
{
    raw(d, bracket);
    d->needs_comma = true;
}

static void key(struct doc *d, const char *name)
{
    comma(d);
    if (d->rc == TP_OK)
        d->rc = tp_json_write_cstr(d->out, name, d->err);
    raw(d, ":");
    d->needs_comma = false;
}

static void put_u64(struct doc *d, uint64_t v)
{
    comma(d);
    if (d->rc == TP_OK)
        d->rc = tp_json_write_u64(d->out, v, d->err);
}

static void put_i64(struct doc *d, int64_t v)
{
    comma(d);
    if (d->rc == TP_OK)
        d->rc = tp_json_write_i64(d->out, v, d->err);
}

static void put_bool(struct doc *d, bool v)
{
    comma(d);
    raw(d, v ? "true" : "false");
}

static void put_str(struct doc *d, struct tp_str s)
{
    comma(d);
    if (d->rc == TP_OK)
        d->rc = tp_json_write_string(d->out, s, d->err);
}

static void put_id(struct doc *d, const struct tp_id *id)
{
    if (id->kind == TP_ID_NUMBER) {
        put_i64(d, id->number);
    } else if (id->kind == TP_ID_TEXT) {
        put_str(d, id->text);
    } else {
        comma(d);
        raw(d, "null");
    }
}

static void put_numbers(struct doc *d, const struct tp_stream_index *ix)
{
    for (size_t i = 0; i < tp_index_n_numbers; i++) {
        const char *at = (const char *)ix + tp_index_numbers[i].offset;

        key(d, tp_index_numbers[i].name);
        switch (tp_index_numbers[i].form) {
        case TP_INDEX_U32:
            put_u64(d, *(const uint32_t *)(const void *)at);
            break;
        case TP_INDEX_U64:
            put_u64(d, *(const uint64_t *)(const void *)at);
            break;
        case TP_INDEX_I64:
            put_i64(d, *(const int64_t *)(const void *)at);
            break;
        case TP_INDEX_BOOL:
            put_bool(d, *(const bool *)(const void *)at);
            break;
        }
    }
}

static void put_tracks(struct doc *d, const struct tp_stream_index *ix)
{
    key(d, "tracks");
    open_with(d, "[");
    for (size_t i = 0; d->rc == TP_OK && i < ix->n_tracks; i++) {
        const struct tp_index_track *t = &ix->tracks[i];

        open_with(d, "[");
        put_u64(d, t->uuid);
        put_u64(d, t->lane);
        put_id(d, &t->pid);
        put_id(d, &t->tid);
        close_with(d, "]");
    }
    close_with(d, "]");
    key(d, "series");
    open_with(d, "[");
    for (size_t i = 0; d->rc == TP_OK && i < ix->n_series; i++) {
        const struct tp_index_series *s = &ix->series[i];

        open_with(d, "[");
        put_u64(d, s->uuid);
        put_id(d, &s->pid);
        put_id(d, &s->tid);
        put_str(d, s->counter);
        put_str(d, s->series);
        put_str(d, s->cat);
        close_with(d, "]");
    }
    close_with(d, "]");
}

static void put_metas(struct doc *d, const struct tp_stream_index *ix)
{
    key(d, "metas");
    open_with(d, "[");
    for (size_t i = 0; d->rc == TP_OK && i < ix->n_metas; i++) {
        const struct tp_index_meta *m = &ix->metas[i];

        open_with(d, "[");
        put_str(d, m->name);
        put_id(d, &m->pid);
        put_id(d, &m->tid);
        put_i64(d, m->ts_ns);
        put_bool(d, m->has_ts);
        put_str(d, m->args_json);
        put_str(d, m->extra);
        close_with(d, "]");
    }
    close_with(d, "]");
    key(d, "members");
    open_with(d, "[");
    for (size_t i = 0; d->rc == TP_OK && i < ix->n_members; i++) {
        open_with(d, "[");
        put_str(d, ix->members[i].key);
        put_str(d, ix->members[i].json);
        close_with(d, "]");
    }
    close_with(d, "]");
}

static void put_summary(struct doc *d, const struct tp_stream_index *ix)
{
    key(d, "types");
    open_with(d, "[");
    for (size_t i = 0; d->rc == TP_OK && i < ix->n_types; i++) {
        const struct tp_index_type *t = &ix->types[i];

        open_with(d, "[");
        put_str(d, t->cat);
        put_u64(d, t->count);
        put_u64(d, t->total_ns);
        put_i64(d, t->first_ns);
        put_i64(d, t->last_ns);
        close_with(d, "]");
    }
    close_with(d, "]");
    key(d, "names");
    open_with(d, "[");
    for (size_t i = 0; d->rc == TP_OK && i < ix->n_names; i++) {
        const struct tp_index_name *n = &ix->names[i];

        open_with(d, "[");
        put_str(d, n->cat);
        put_str(d, n->name);
        put_u64(d, n->count);
        put_u64(d, n->total_ns);
        put_u64(d, n->min_ns);
        put_u64(d, n->max_ns);
        close_with(d, "]");
    }
    close_with(d, "]");
}

static void put_places(struct doc *d, const struct tp_stream_index *ix)
{
    key(d, "blocks");
    open_with(d, "[");
    for (size_t i = 0; d->rc == TP_OK && i < ix->n_blocks; i++) {
        open_with(d, "[");
        put_u64(d, ix->blocks[i].offset);
        put_i64(d, ix->blocks[i].first_ns);
        put_i64(d, ix->blocks[i].max_end_ns);
        close_with(d, "]");
    }
    close_with(d, "]");
    key(d, "clocks");
    open_with(d, "[");
    for (size_t i = 0; d->rc == TP_OK && i < ix->n_clocks; i++) {
        open_with(d, "[");
        put_u64(d, ix->clocks[i].producer_ns);
        put_u64(d, ix->clocks[i].server_ns);
        put_u64(d, ix->clocks[i].error_ns);
        close_with(d, "]");
    }
    close_with(d, "]");
    key(d, "damage_offsets");
    open_with(d, "[");
    for (size_t i = 0; i < ix->n_damage_offsets; i++)
        put_u64(d, ix->damage_offsets[i]);
    close_with(d, "]");
}

int tp_stream_index_write(const struct tp_stream_index *ix, struct tp_buf *out,
                          struct tp_err *err)
{
    struct doc d = {.out = out, .err = err};
    size_t start = out->len;

    raw(&d, "{");
    key(&d, "version");
    put_u64(&d, TP_INDEX_VERSION);
    put_numbers(&d, ix);
    put_tracks(&d, ix);
    put_metas(&d, ix);
    put_summary(&d, ix);
    put_places(&d, ix);
    raw(&d, "}\n");
    if (d.rc != TP_OK)
        out->len = start;
    return d.rc;
}
