/*
 * stream_index_read.c - the index document, read.
 *
 * The document is ours, but it lies on a disk: every value is checked for its type and
 * range. Members that are unknown are passed over, so that a later writer may add some
 * without a new version.
 */
#include <json-c/json.h>

#include "trace/stream_index.h"
#include "trace/stream_index_fields.h"

/* One row of a list while it is read: the first failure stops all that follows. */
struct row {
    struct tp_stream_index *ix;
    struct json_object *items;
    size_t next;
    const char *list; /* its name, for messages */
    struct tp_err *err;
    int rc;
};

static void wrong(struct row *r)
{
    if (r->rc == TP_OK)
        r->rc = tp_fail(r->err, TP_EINVAL, "item %zu of a row of '%s' is wrong",
                        r->next - 1, r->list);
}

static struct json_object *take(struct row *r)
{
    return json_object_array_get_idx(r->items, r->next++);
}

static bool has_more(const struct row *r)
{
    return r->next < json_object_array_length(r->items);
}

/* Whether v is an integer of 64 bits without a sign; *out is set then. */
static bool as_u64(struct json_object *v, uint64_t *out)
{
    if (!json_object_is_type(v, json_type_int))
        return false;
    if (json_object_get_int64(v) < 0)
        return false;
    *out = json_object_get_uint64(v);
    return true;
}

/* Likewise with a sign: json-c clamps, so the bounds are looked at twice. */
static bool as_i64(struct json_object *v, int64_t *out)
{
    if (!json_object_is_type(v, json_type_int))
        return false;
    if (json_object_get_uint64(v) > INT64_MAX)
        return false;
    *out = json_object_get_int64(v);
    return true;
}

static uint64_t take_u64(struct row *r)
{
    uint64_t v = 0;

    if (!as_u64(take(r), &v))
        wrong(r);
    return v;
}

static int64_t take_i64(struct row *r)
{
    int64_t v = 0;

    if (!as_i64(take(r), &v))
        wrong(r);
    return v;
}

static bool take_bool(struct row *r)
{
    struct json_object *v = take(r);

    if (!json_object_is_type(v, json_type_boolean))
        wrong(r);
    return json_object_get_boolean(v);
}

static struct tp_str str_of(struct json_object *v)
{
    return (struct tp_str){json_object_get_string(v),
                           (size_t)json_object_get_string_len(v)};
}

static struct tp_str take_str(struct row *r)
{
    struct json_object *v = take(r);
    struct tp_str s = {NULL, 0};

    if (!json_object_is_type(v, json_type_string))
        wrong(r);
    else if (r->rc == TP_OK)
        r->rc = tp_stream_index_dup(r->ix, str_of(v), &s, r->err);
    return s;
}

static struct tp_id take_id(struct row *r)
{
    struct json_object *v = take(r);
    struct tp_id id = {.kind = TP_ID_NONE};

    if (v == NULL && r->next <= json_object_array_length(r->items))
        return id;
    if (json_object_is_type(v, json_type_string)) {
        r->next--;
        id.kind = TP_ID_TEXT;
        id.text = take_str(r);
    } else if (as_i64(v, &id.number)) {
        id.kind = TP_ID_NUMBER;
    } else {
        wrong(r);
    }
    return id;
}

/* The lists: how a row of each is read. */
static void read_track(struct row *r, void *item)
{
    struct tp_index_track *t = item;
    uint64_t lane;

    t->uuid = take_u64(r);
    lane = take_u64(r);
    if (lane > UINT32_MAX)
        wrong(r);
    t->lane = (uint32_t)lane;
    t->pid = take_id(r);
    t->tid = take_id(r);
}

static void read_series(struct row *r, void *item)
{
    struct tp_index_series *s = item;

    s->uuid = take_u64(r);
    s->pid = take_id(r);
    s->tid = take_id(r);
    s->counter = take_str(r);
    s->series = take_str(r);
    if (has_more(r)) /* an older index does not say it */
        s->cat = take_str(r);
}

static void read_meta(struct row *r, void *item)
{
    struct tp_index_meta *m = item;

    m->name = take_str(r);
    m->pid = take_id(r);
    m->tid = take_id(r);
    m->ts_ns = take_i64(r);
    m->has_ts = take_bool(r);
    m->args_json = take_str(r);
    m->extra = take_str(r);
}

static void read_member(struct row *r, void *item)
{
    struct tp_index_member *m = item;

    m->key = take_str(r);
    m->json = take_str(r);
}

static void read_type(struct row *r, void *item)
{
    struct tp_index_type *t = item;

    t->cat = take_str(r);
    t->count = take_u64(r);
    t->total_ns = take_u64(r);
    t->first_ns = take_i64(r);
    t->last_ns = take_i64(r);
}

static void read_name(struct row *r, void *item)
{
    struct tp_index_name *n = item;

    n->cat = take_str(r);
    n->name = take_str(r);
    n->count = take_u64(r);
    n->total_ns = take_u64(r);
    n->min_ns = take_u64(r);
    n->max_ns = take_u64(r);
}

static void read_block(struct row *r, void *item)
{
    struct tp_index_block *b = item;

    b->offset = take_u64(r);
    b->first_ns = take_i64(r);
    b->max_end_ns = take_i64(r);
}

static void read_index_clock(struct row *r, void *item)
{
    struct tp_index_clock *c = item;

    c->producer_ns = take_u64(r);
    c->server_ns = take_u64(r);
    c->error_ns = take_u64(r);
}

#define LIST(field, read)                                          \
    {                                                              \
#field, offsetof(struct tp_stream_index, field),           \
            offsetof(struct tp_stream_index, n_##field),           \
            sizeof(*((struct tp_stream_index *)NULL)->field), read \
    }

static const struct list {
    const char *name;
    size_t array, n; /* offsets of the two fields */
    size_t item_bytes;
    void (*read)(struct row *r, void *item);
} lists[] = {
    LIST(tracks, read_track),   LIST(series, read_series),      LIST(metas, read_meta),
    LIST(members, read_member), LIST(types, read_type),         LIST(names, read_name),
    LIST(blocks, read_block),   LIST(clocks, read_index_clock),
};

static int read_list(const struct list *list, struct json_object *rows,
                     struct tp_stream_index *ix, struct tp_err *err)
{
    char *array_at = (char *)ix + list->array;
    size_t *n = (void *)((char *)ix + list->n);

    if (!json_object_is_type(rows, json_type_array))
        return tp_fail(err, TP_EINVAL, "'%s' of an index is not an array", list->name);
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        struct row r = {.ix = ix,
                        .items = json_object_array_get_idx(rows, i),
                        .list = list->name,
                        .err = err};
        char *items;
        int rc;

        if (!json_object_is_type(r.items, json_type_array))
            return tp_fail(err, TP_EINVAL, "row %zu of '%s' is not an array", i,
                           list->name);
        rc = tp_stream_index_grow(array_at, *n, list->item_bytes, err);
        if (rc != TP_OK)
            return rc;
        memcpy(&items, array_at, sizeof(items));
        list->read(&r, memset(items + *n * list->item_bytes, 0, list->item_bytes));
        if (r.rc != TP_OK)
            return r.rc;
        (*n)++;
    }
    return TP_OK;
}

static int read_damage_offsets(struct json_object *items, struct tp_stream_index *ix,
                               struct tp_err *err)
{
    if (!json_object_is_type(items, json_type_array))
        return tp_fail(err, TP_EINVAL, "'damage_offsets' of an index is not an array");
    for (size_t i = 0; i < json_object_array_length(items); i++) {
        int rc = tp_stream_index_grow(&ix->damage_offsets, ix->n_damage_offsets,
                                      sizeof(*ix->damage_offsets), err);

        if (rc != TP_OK)
            return rc;
        if (!as_u64(json_object_array_get_idx(items, i), &ix->damage_offsets[i]))
            return tp_fail(err, TP_EINVAL, "item %zu of 'damage_offsets' is wrong", i);
        ix->n_damage_offsets++;
    }
    return TP_OK;
}

static bool read_number(const struct tp_index_number *f, struct json_object *v,
                        struct tp_stream_index *ix)
{
    char *at = (char *)ix + f->offset;
    uint64_t u;

    switch (f->form) {
    case TP_INDEX_U32:
        if (!as_u64(v, &u) || u > UINT32_MAX)
            return false;
        *(uint32_t *)(void *)at = (uint32_t)u;
        return true;
    case TP_INDEX_U64:
        return as_u64(v, (void *)at);
    case TP_INDEX_I64:
        return as_i64(v, (void *)at);
    case TP_INDEX_BOOL:
        *(bool *)(void *)at = json_object_get_boolean(v);
        return json_object_is_type(v, json_type_boolean);
    }
    return false;
}

static int read_all(struct json_object *doc, struct tp_stream_index *ix,
                    struct tp_err *err)
{
    struct json_object *v = NULL;
    int rc = TP_OK;
    uint64_t version;

    if (!json_object_is_type(doc, json_type_object))
        return tp_fail(err, TP_EINVAL, "an index is not a JSON object");
    if (!json_object_object_get_ex(doc, "version", &v) || !as_u64(v, &version) ||
        version != TP_INDEX_VERSION)
        return tp_fail(err, TP_EINVAL, "an index has version %s, not %d",
                       v == NULL ? "none" : json_object_get_string(v),
                       TP_INDEX_VERSION);
    ix->version = TP_INDEX_VERSION;
    for (size_t i = 0; i < tp_index_n_numbers; i++) {
        const struct tp_index_number *f = &tp_index_numbers[i];

        if (json_object_object_get_ex(doc, f->name, &v) && !read_number(f, v, ix))
            return tp_fail(err, TP_EINVAL, "'%s' of an index is wrong", f->name);
    }
    for (size_t i = 0; rc == TP_OK && i < sizeof(lists) / sizeof(*lists); i++)
        if (json_object_object_get_ex(doc, lists[i].name, &v))
            rc = read_list(&lists[i], v, ix, err);
    if (rc == TP_OK && json_object_object_get_ex(doc, "damage_offsets", &v))
        rc = read_damage_offsets(v, ix, err);
    return rc;
}

int tp_stream_index_read(const char *p, size_t n, struct tp_stream_index *out,
                         struct tp_err *err)
{
    struct json_tokener *tok = NULL;
    struct json_object *doc = NULL;
    struct tp_stream_index ix = {0};
    int rc = TP_OK;

    if (n > INT32_MAX)
        return tp_fail(err, TP_EINVAL, "an index of %zu bytes is too long", n);
    tok = json_tokener_new();
    if (tok == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for reading an index");
    json_tokener_set_flags(tok,
                           JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
    doc = json_tokener_parse_ex(tok, p, (int)n);
    if (json_tokener_get_error(tok) != json_tokener_success)
        rc = tp_fail(err, TP_EINVAL, "an index is not valid JSON: %s",
                     json_tokener_error_desc(json_tokener_get_error(tok)));
    else
        rc = read_all(doc, &ix, err);
    json_object_put(doc);
    json_tokener_free(tok);
    if (rc != TP_OK) {
        tp_stream_index_fini(&ix);
        return rc;
    }
    *out = ix;
    return TP_OK;
}
