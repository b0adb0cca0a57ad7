/*
 * The stored form of a spec. Written by us and read by us, so reading is tolerant of
 * what is missing (an older version did not know it) and strict only about being JSON.
 */
#include <stdint.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_doc.h"
#include "engine/pool.h"
#include "engine/spec.h"

static const char *const list_keys[TP_FILTER_LISTS] = {
    [TP_FILTER_INCLUDE] = "include",
    [TP_FILTER_EXCLUDE] = "exclude",
    [TP_FILTER_NAMES_INCLUDE] = "names_include",
    [TP_FILTER_NAMES_EXCLUDE] = "names_exclude",
};

static void write_texts(struct tp_json_doc *d, const char *key,
                        const struct tp_str *items, size_t n)
{
    tp_json_doc_key(d, key);
    tp_json_doc_array(d);
    for (size_t i = 0; i < n; i++)
        tp_json_doc_str(d, items[i]);
    tp_json_doc_close(d);
}

static void write_selection(struct tp_json_doc *d, const struct tp_spec *s)
{
    tp_json_doc_key(d, "ranks");
    tp_json_doc_array(d);
    for (size_t i = 0; i < s->n_ranks; i++)
        tp_json_doc_u64(d, s->ranks[i]);
    tp_json_doc_close(d);
    write_texts(d, "hosts", s->hosts, s->n_hosts);
    write_texts(d, "producers", s->producers, s->n_producers);
}

int tp_spec_encode(const struct tp_spec *s, struct tp_buf *out, struct tp_err *err)
{
    struct tp_json_doc d;

    tp_json_doc_init(&d, out, err);
    tp_json_doc_object(&d);
    for (int i = 0; i < TP_FILTER_LISTS; i++)
        write_texts(&d, list_keys[i], s->lists[i], s->n_lists[i]);
    tp_json_doc_member_u64(&d, "min_duration_ns", s->min_duration_ns);
    write_selection(&d, s);
    tp_json_doc_member_u64(&d, "start", s->start);
    tp_json_doc_member_u64(&d, "start_wall_ns", s->start_wall_ns);
    tp_json_doc_member_u64(&d, "start_step", s->start_step);
    tp_json_doc_member_u64(&d, "duration_ms", s->duration_ms);
    tp_json_doc_member_u64(&d, "kineto_duration_ms", s->kineto_duration_ms);
    tp_json_doc_member_u64(&d, "steps", s->steps);
    tp_json_doc_member_u64(&d, "max_bytes", s->max_bytes);
    tp_json_doc_member_bool(&d, "duration_is_capped", s->duration_is_capped);
    tp_json_doc_member_bool(&d, "max_bytes_is_capped", s->max_bytes_is_capped);
    tp_json_doc_member_u64(&d, "require", s->require);
    tp_json_doc_member_u64(&d, "require_count", s->require_count);
    tp_json_doc_member_str(&d, "label", tp_str_of(s->label));
    tp_json_doc_member_str(&d, "metadata", tp_str_of(s->metadata));
    tp_json_doc_member_str(&d, "kineto", tp_str_of(s->kineto));
    tp_json_doc_member_str(&d, "log_file", tp_str_of(s->log_file));
    tp_json_doc_key(&d, "warnings");
    tp_json_doc_array(&d);
    for (size_t i = 0; i < s->n_warnings; i++)
        tp_json_doc_str(&d, tp_str_of(s->warnings[i]));
    tp_json_doc_close(&d);
    tp_json_doc_close(&d);
    return tp_json_doc_end(&d);
}

static uint64_t read_u64(struct json_object *o, const char *key)
{
    struct json_object *v;

    return json_object_object_get_ex(o, key, &v) ? json_object_get_uint64(v) : 0;
}

static struct tp_str text_of(struct json_object *v)
{
    const char *p = json_object_get_string(v);

    return (struct tp_str){p, p == NULL ? 0 : (size_t)json_object_get_string_len(v)};
}

static const char *read_text(struct json_object *o, const char *key,
                             struct tp_pool *pool)
{
    struct json_object *v;

    return json_object_object_get_ex(o, key, &v) ? tp_pool_str(pool, text_of(v)) : "";
}

static const struct tp_str *read_texts(struct json_object *o, const char *key,
                                       struct tp_pool *pool, size_t *n)
{
    struct json_object *list;
    struct tp_str *out = NULL;

    *n = 0;
    if (!json_object_object_get_ex(o, key, &list) ||
        !json_object_is_type(list, json_type_array))
        return NULL;
    out = tp_pool_array(pool, json_object_array_length(list), sizeof(*out));
    if (out == NULL)
        return NULL;
    *n = json_object_array_length(list);
    for (size_t i = 0; i < *n; i++) {
        struct tp_str s = text_of(json_object_array_get_idx(list, i));

        out[i] = (struct tp_str){tp_pool_str(pool, s), s.len};
    }
    return out;
}

static void read_ranks(struct json_object *o, struct tp_spec *s)
{
    struct json_object *list;
    uint32_t *ranks;

    if (!json_object_object_get_ex(o, "ranks", &list) ||
        !json_object_is_type(list, json_type_array))
        return;
    ranks = tp_pool_array(s->pool, json_object_array_length(list), sizeof(*ranks));
    if (ranks == NULL)
        return;
    s->ranks = ranks;
    s->n_ranks = json_object_array_length(list);
    for (size_t i = 0; i < s->n_ranks; i++)
        ranks[i] = (uint32_t)json_object_get_uint64(json_object_array_get_idx(list, i));
}

static void read_warnings(struct json_object *o, struct tp_spec *s)
{
    size_t n;
    const struct tp_str *texts = read_texts(o, "warnings", s->pool, &n);

    for (size_t i = 0; i < n && i < TP_SPEC_WARNINGS_MAX; i++)
        s->warnings[s->n_warnings++] = texts[i].ptr;
}

static void read_spec(struct json_object *o, struct tp_spec *s)
{
    for (int i = 0; i < TP_FILTER_LISTS; i++)
        s->lists[i] = read_texts(o, list_keys[i], s->pool, &s->n_lists[i]);
    s->min_duration_ns = read_u64(o, "min_duration_ns");
    read_ranks(o, s);
    s->hosts = read_texts(o, "hosts", s->pool, &s->n_hosts);
    s->producers = read_texts(o, "producers", s->pool, &s->n_producers);
    s->start = (enum tp_trace_start)read_u64(o, "start");
    s->start_wall_ns = read_u64(o, "start_wall_ns");
    s->start_step = read_u64(o, "start_step");
    s->duration_ms = read_u64(o, "duration_ms");
    s->steps = read_u64(o, "steps");
    s->max_bytes = read_u64(o, "max_bytes");
    s->duration_is_capped = read_u64(o, "duration_is_capped") != 0;
    s->max_bytes_is_capped = read_u64(o, "max_bytes_is_capped") != 0;
    s->require = (enum tp_trace_require)read_u64(o, "require");
    s->require_count = (uint32_t)read_u64(o, "require_count");
    s->label = read_text(o, "label", s->pool);
    s->metadata = read_text(o, "metadata", s->pool);
    s->kineto = read_text(o, "kineto", s->pool);
    s->log_file = read_text(o, "log_file", s->pool);
    /* What was written was checked; an older version's may hold what is ignored. */
    if (s->kineto == NULL ||
        tp_kineto_options_read(tp_str_of(s->kineto), &s->kineto_options, NULL, NULL) !=
            TP_OK)
        tp_kineto_options_read((struct tp_str){0}, &s->kineto_options, NULL, NULL);
    s->kineto_duration_ms = read_u64(o, "kineto_duration_ms");
    if (s->kineto_duration_ms == 0)
        s->kineto_duration_ms = TP_KINETO_DURATION_MS;
    read_warnings(o, s);
}

int tp_spec_decode(struct tp_str json, struct tp_spec *out, struct tp_err *err)
{
    struct json_tokener *tokener = json_tokener_new();
    struct json_object *o = NULL;
    struct tp_spec s = {0};
    int rc = TP_OK;

    if (tokener == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to read a trace");
    if (json.len <= INT32_MAX)
        o = json_tokener_parse_ex(tokener, json.ptr, (int)json.len);
    if (o == NULL || !json_object_is_type(o, json_type_object)) {
        rc = tp_fail(err, TP_EINVAL, "a stored trace has no readable description");
        goto out;
    }
    s.pool = tp_pool_new();
    read_spec(o, &s);
    if (tp_pool_has_failed(s.pool)) {
        tp_spec_fini(&s);
        rc = tp_fail(err, TP_ENOMEM, "no memory to read a trace");
        goto out;
    }
    *out = s;

out:
    json_object_put(o);
    json_tokener_free(tokener);
    return rc;
}
