/*
 * json_in.c - json-c behind checks.
 *
 * json_object_array_length() on something that is no array asserts, and getters of the
 * wrong type convert silently ("12" becomes 12); so the type is
 * looked at first, always.
 * Integers beyond 64 bits are clamped by json-c: the extreme values are refused.
 */
#include "api/json_in.h"

#include <json-c/json_tokener.h>
#include <json-c/linkhash.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/json_check.h"
#include "base/names.h"
#include "base/timefmt.h"
#include "base/utf8.h"

int tp_json_in_fail(struct tp_json_in *in, enum tp_fault kind, const char *path,
                    const char *name, const char *format, ...)
{
    char text[TP_ERR_MESSAGE_BYTES];
    struct tp_str cut;
    va_list args;

    if (in->code != TP_OK)
        return in->code;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    in->kind = kind;
    in->code = tp_fail(&in->err, TP_EINVAL, "%s", text);
    snprintf(in->field, sizeof(in->field), "%s%s", path, name);
    cut = tp_utf8_cut(tp_str_of(in->field), sizeof(in->field) - 1);
    in->field[cut.len] = '\0';
    return in->code;
}

/* The index of the first byte that is not blank; the length when there is none. */
static size_t first_byte(struct tp_str s)
{
    size_t i = 0;

    while (i < s.len && memchr(" \t\r\n", s.ptr[i], 4) != NULL)
        i++;
    return i;
}

static int parse_checked(struct tp_json_in *in, struct tp_str body, uint32_t depth_max)
{
    struct json_tokener *tok;

    if (body.len > INT_MAX)
        return tp_fail(&in->err, TP_EQUOTA, "the body is too long");
    tok = json_tokener_new_ex((int)depth_max + 1);
    if (tok == NULL)
        return tp_fail(&in->err, TP_ENOMEM, "no memory for the body");
    in->root = json_tokener_parse_ex(tok, body.ptr, (int)body.len);
    json_tokener_free(tok);
    /* The text was checked, so an object that is not read is for want of memory. */
    if (in->root == NULL && body.ptr[first_byte(body)] == '{')
        return tp_fail(&in->err, TP_ENOMEM, "no memory for the body");
    if (in->root == NULL || !json_object_is_type(in->root, json_type_object))
        return tp_fail(&in->err, TP_EINVAL, "the body must be a JSON object");
    return TP_OK;
}

int tp_json_in_parse(struct tp_json_in *in, struct tp_str body, uint32_t depth_max)
{
    if (first_byte(body) == body.len) {
        in->root = json_object_new_object();
        if (in->root == NULL) {
            in->code = tp_fail(&in->err, TP_ENOMEM, "no memory for the body");
            in->kind = TP_FAULT_OUT_OF_MEMORY;
        }
        return in->code;
    }
    in->kind = TP_FAULT_INVALID_JSON;
    in->text = body;
    in->code = tp_json_check(body.ptr, body.len, depth_max, &in->err);
    if (in->code == TP_OK)
        in->code = parse_checked(in, body, depth_max);
    if (in->code == TP_EQUOTA) /* too deep is a mistake in the request, not load */
        in->code = TP_EINVAL;
    else if (in->code == TP_ENOMEM)
        in->kind = TP_FAULT_OUT_OF_MEMORY;
    return in->code;
}

void tp_json_in_fini(struct tp_json_in *in)
{
    json_object_put(in->root);
    in->root = NULL;
}

static void fail_unknown(struct tp_json_in *in, const char *path, const char *key,
                         const char *const *names)
{
    struct tp_names_nearest near;

    tp_names_init(&near, tp_str_of(key));
    for (; *names != NULL; names++)
        tp_names_offer(&near, tp_str_of(*names));
    if (near.n > 0)
        tp_json_in_fail(in, TP_FAULT_UNKNOWN_FIELD, path, key,
                        "there is no field '%s%.100s'; did you mean '%.*s'", path, key,
                        (int)near.found[0].name.len, near.found[0].name.ptr);
    else
        tp_json_in_fail(in, TP_FAULT_UNKNOWN_FIELD, path, key,
                        "there is no field '%s%.100s'", path, key);
}

void tp_json_in_known(struct tp_json_in *in, struct json_object *obj, const char *path,
                      const char *const *names)
{
    if (in->code != TP_OK || obj == NULL)
        return;
    json_object_object_foreach(obj, key, value)
    {
        size_t i = 0;

        (void)value;
        while (names[i] != NULL && strcmp(names[i], key) != 0)
            i++;
        if (names[i] == NULL) {
            fail_unknown(in, path, key, names);
            return;
        }
    }
}

bool tp_json_in_has(struct json_object *obj, const char *name)
{
    return obj != NULL && json_object_object_get_ex(obj, name, NULL);
}

static const char *type_words(struct json_object *v)
{
    switch (json_object_get_type(v)) {
    case json_type_boolean:
        return "a boolean";
    case json_type_double:
        return "a number with a fraction";
    case json_type_int:
        return "a number";
    case json_type_object:
        return "an object";
    case json_type_array:
        return "an array";
    case json_type_string:
        return "a string";
    case json_type_null:
    default:
        return "null";
    }
}

/* The member if it is there with that type; otherwise NULL, and a failure when it is
 * there with another one. */
static struct json_object *member(struct tp_json_in *in, struct json_object *obj,
                                  const char *path, const char *name,
                                  enum json_type type, const char *wanted)
{
    struct json_object *v = NULL;

    if (in->code != TP_OK || obj == NULL || !json_object_object_get_ex(obj, name, &v))
        return NULL;
    if (json_object_is_type(v, type))
        return v;
    tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, name, "'%s%s' must be %s, not %s",
                    path, name, wanted, type_words(v));
    return NULL;
}

static struct tp_str str_of(struct tp_json_in *in, struct json_object *v,
                            const char *path, const char *name)
{
    struct tp_str s = {json_object_get_string(v),
                       (size_t)json_object_get_string_len(v)};

    if (memchr(s.ptr, '\0', s.len) != NULL) {
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, name,
                        "'%s%s' holds a NUL character", path, name);
        return (struct tp_str){"", 0};
    }
    return s;
}

struct tp_str tp_json_in_str(struct tp_json_in *in, struct json_object *obj,
                             const char *path, const char *name)
{
    struct json_object *v = member(in, obj, path, name, json_type_string, "a string");

    return v == NULL ? (struct tp_str){"", 0} : str_of(in, v, path, name);
}

struct tp_str tp_json_in_job(struct tp_json_in *in, struct json_object *obj,
                             const char *path)
{
    struct tp_str job = tp_json_in_str(in, obj, path, "job");

    if (in->code == TP_OK && job.len == 0 && tp_json_in_has(obj, "job"))
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, "job",
                        "'%sjob' is empty; leave it out instead", path);
    return job;
}

uint64_t tp_json_in_u64(struct tp_json_in *in, struct json_object *obj,
                        const char *path, const char *name, uint64_t min, uint64_t max,
                        uint64_t absent)
{
    struct json_object *v =
        member(in, obj, path, name, json_type_int, "a whole number");
    uint64_t n;

    if (v == NULL)
        return absent;
    n = json_object_get_uint64(v);
    if (json_object_get_int64(v) < 0 || n < min || n > max || n == UINT64_MAX) {
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, name,
                        "'%s%s' must be %llu to %llu, not %.40s", path, name,
                        (unsigned long long)min, (unsigned long long)max,
                        json_object_to_json_string(v));
        return absent;
    }
    return n;
}

int64_t tp_json_in_i64(struct tp_json_in *in, struct json_object *obj, const char *path,
                       const char *name, int64_t absent)
{
    struct json_object *v =
        member(in, obj, path, name, json_type_int, "a whole number");
    int64_t n;

    if (v == NULL)
        return absent;
    n = json_object_get_int64(v);
    if (n == INT64_MAX || n == INT64_MIN) {
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, name,
                        "'%s%s' does not fit 64 bits", path, name);
        return absent;
    }
    return n;
}

bool tp_json_in_bool(struct tp_json_in *in, struct json_object *obj, const char *path,
                     const char *name, bool absent)
{
    struct json_object *v =
        member(in, obj, path, name, json_type_boolean, "true or false");

    return v == NULL ? absent : json_object_get_boolean(v);
}

struct json_object *tp_json_in_object(struct tp_json_in *in, struct json_object *obj,
                                      const char *path, const char *name)
{
    return member(in, obj, path, name, json_type_object, "an object");
}

void tp_json_in_limit(struct tp_json_in *in, const char *name, uint64_t max)
{
    if (!in->is_limit || in->limit != NULL)
        return;
    in->limit = name;
    in->max = max;
}

struct json_object *tp_json_in_array(struct tp_json_in *in, struct json_object *obj,
                                     const char *path, const char *name, size_t max,
                                     size_t *n)
{
    struct json_object *v = member(in, obj, path, name, json_type_array, "an array");

    *n = v == NULL ? 0 : json_object_array_length(v);
    if (*n > max) {
        in->is_limit = in->code == TP_OK;
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, name,
                        "'%s%s' has %zu entries; %zu is the most", path, name, *n, max);
        *n = 0;
        return NULL;
    }
    return v;
}

struct tp_str tp_json_in_item_str(struct tp_json_in *in, struct json_object *array,
                                  size_t i, const char *path, const char *name)
{
    struct json_object *v = json_object_array_get_idx(array, i);
    char item[TP_JSON_FIELD_BYTES];

    snprintf(item, sizeof(item), "%s[%zu]", name, i);
    if (json_object_is_type(v, json_type_string))
        return str_of(in, v, path, item);
    tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, item,
                    "'%s%s' must be a string, not %s", path, item, type_words(v));
    return (struct tp_str){"", 0};
}

int64_t tp_json_in_time(struct tp_json_in *in, struct json_object *obj,
                        const char *path, const char *name)
{
    struct tp_str s = tp_json_in_str(in, obj, path, name);
    struct tp_err err = {0};
    int64_t at = 0;

    if (in->code != TP_OK || !tp_json_in_has(obj, name))
        return 0;
    if (tp_timefmt_parse(s.ptr, s.len, &at, &err) != TP_OK)
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, name, "'%s%s': %s", path,
                        name, err.message);
    return at;
}
