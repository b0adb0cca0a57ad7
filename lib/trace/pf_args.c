/*
 * pf_args.c - debug annotations as arguments; nested ones as JSON text.
 *
 * Our own annotations are a name and one scalar or JSON text. Those of others may hold
 * dictionaries and arrays, in either of two encodings (dict_entries and array_values,
 * or the older nested_value). These become JSON text, put together in r->text.
 */
#include <math.h>
#include <stdio.h>

#include "base/json_scan.h"
#include "base/json_write.h"
#include "base/utf8.h"
#include "trace/pf_fields.h"
#include "trace/pf_reader_state.h"

#define DEPTH_MAX 32
#define SCALAR_MAX 400 /* longest number that is taken for JSON; the rest is text */

/* An annotation as it is on the wire. */
struct annotation {
    struct tp_name name;
    bool has_name;
    uint32_t field; /* which value it has; 0: none */
    uint64_t value;
    struct tp_str text;
};

int tp_pf_reader_keep(struct tp_pf_reader *r, struct tp_str s, struct tp_str *out,
                      struct tp_err *err)
{
    if (s.len > r->packet_bytes - r->fixed_bytes)
        return tp_fail(err, TP_EQUOTA, "the texts of an event are over %zu bytes",
                       r->packet_bytes);
    r->fixed_bytes += s.len + 1;
    if (r->fixed_bytes > r->packet_bytes)
        r->fixed_bytes = r->packet_bytes;
    return tp_intern_copy(&r->fixed, s, out, err);
}

int tp_pf_reader_fix(struct tp_pf_reader *r, struct tp_str s, struct tp_str *out,
                     struct tp_err *err)
{
    struct tp_buf repaired = {0};
    int rc;

    *out = s;
    if (r->is_trusted || tp_utf8_is_valid(s.ptr, s.len))
        return TP_OK;
    rc = tp_utf8_repair(&repaired, s.ptr, s.len, NULL, err);
    if (rc == TP_OK)
        rc = tp_pf_reader_keep(r, (struct tp_str){repaired.data, repaired.len}, out,
                               err);
    if (rc == TP_OK)
        r->skipped.repaired++;
    tp_buf_fini(&repaired);
    return rc;
}

/* Whether text is one JSON value and nothing else. */
bool tp_pf_reader_is_json(struct tp_str text)
{
    char scalar[SCALAR_MAX + 1];
    unsigned oddities = 0;
    struct tp_json c;

    if (text.len == 0)
        return false;
    if (text.ptr[0] != '{' && text.ptr[0] != '[') {
        if (text.len > SCALAR_MAX)
            return false;
        memcpy(scalar, text.ptr, text.len);
        scalar[text.len] = ' '; /* a number ends where something else begins */
        c = (struct tp_json){scalar, scalar + text.len + 1, NULL};
        return tp_json_skip(&c, DEPTH_MAX, &oddities) == TP_OK &&
               (oddities & TP_JSON_UNSOUND) == 0 && c.p == scalar + text.len;
    }
    c = (struct tp_json){text.ptr, text.ptr + text.len, NULL};
    return tp_json_skip(&c, TP_JSON_DEPTH_MAX, &oddities) == TP_OK &&
           (oddities & TP_JSON_UNSOUND) == 0 && c.p == c.end;
}

/* The interned string of an iid; TP_ENOTFOUND without a message. */
static int interned(const struct tp_pf_sequence *q, enum tp_pf_index index,
                    uint64_t iid, struct tp_name *out)
{
    *out = tp_pf_sequence_text(q, index, iid);
    return out->ptr == NULL ? TP_ENOTFOUND : TP_OK;
}

/* The wire type that a field of an annotation should have. */
static enum tp_pb_wire wire_of(uint32_t field)
{
    switch (field) {
    case TP_PF_ARG_DOUBLE:
        return TP_PB_FIXED64;
    case TP_PF_ARG_STRING:
    case TP_PF_ARG_NESTED:
    case TP_PF_ARG_JSON:
    case TP_PF_ARG_NAME:
    case TP_PF_ARG_DICT:
    case TP_PF_ARG_ARRAY:
        return TP_PB_BYTES;
    default:
        return TP_PB_VARINT;
    }
}

/* Take in one field that is not the common (interned) name. As in pf_decode.c, one of
 * another wire type is skipped. */
static int take_field(const struct tp_pf_sequence *q, const struct tp_pb_field *f,
                      struct annotation *a)
{
    struct tp_name text;

    if (f->wire != wire_of(f->number))
        return TP_OK;
    if (f->number == TP_PF_ARG_NAME) {
        a->name = (struct tp_name){f->bytes, (uint32_t)f->value, 0};
        a->has_name = true;
        return TP_OK;
    }
    if (f->number == TP_PF_ARG_STRING_IID) {
        int rc = interned(q, TP_PF_INDEX_ARG_STRING, f->value, &text);

        a->field = TP_PF_ARG_STRING;
        a->text = (struct tp_str){text.ptr, text.len};
        return rc;
    }
    if ((f->number < TP_PF_ARG_BOOL || f->number > TP_PF_ARG_JSON) &&
        f->number != TP_PF_ARG_DICT && f->number != TP_PF_ARG_ARRAY)
        return TP_OK;
    a->field = f->number;
    a->value = f->value;
    if (f->wire == TP_PB_BYTES)
        a->text = (struct tp_str){f->bytes, f->value};
    return TP_OK;
}

static inline int read_annotation(const struct tp_pf_sequence *q, struct tp_str bytes,
                                  struct annotation *a)
{
    const char *p = bytes.ptr;
    const char *end = bytes.ptr + bytes.len;
    struct tp_pb_field f;
    int rc = TP_OK;

    a->field = 0;
    a->has_name = false;
    a->name = (struct tp_name){"", 0, 0};
    while (p < end && rc == TP_OK) {
        p = tp_pb_next_field(p, end, &f);
        if (p == NULL)
            return TP_EINVAL;
        if (f.tag == TP_PB_TAG(TP_PF_ARG_NAME_IID, TP_PB_VARINT)) {
            rc = interned(q, TP_PF_INDEX_ARG_NAME, f.value, &a->name);
            a->has_name = true;
        } else {
            rc = take_field(q, &f, a);
        }
    }
    return rc;
}

static int json_number(struct tp_buf *b, uint32_t field, uint64_t value,
                       struct tp_err *err)
{
    char text[24];

    switch (field) {
    case TP_PF_ARG_BOOL:
        return tp_json_write_bool(b, value != 0, err);
    case TP_PF_ARG_INT:
        return tp_json_write_i64(b, (int64_t)value, err);
    case TP_PF_ARG_DOUBLE:
        return tp_json_write_double(b, tp_pb_double(value), err);
    case TP_PF_ARG_POINTER:
        snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
        return tp_json_write_cstr(b, text, err);
    default:
        return tp_json_write_u64(b, value, err);
    }
}

static int json_nested(struct tp_pf_reader *r, struct tp_str bytes, unsigned depth,
                       struct tp_err *err);

/* The scalar of a nested_value. */
static int json_leaf(struct tp_buf *b, const struct tp_pb_field *f, struct tp_err *err)
{
    if (f->number == TP_PF_NESTED_STRING && f->wire == TP_PB_BYTES)
        return tp_json_write_string(b, (struct tp_str){f->bytes, f->value}, err);
    if (f->number == TP_PF_NESTED_INT)
        return json_number(b, TP_PF_ARG_INT, f->value, err);
    if (f->number == TP_PF_NESTED_DOUBLE)
        return json_number(b, TP_PF_ARG_DOUBLE, f->value, err);
    if (f->number == TP_PF_NESTED_BOOL)
        return json_number(b, TP_PF_ARG_BOOL, f->value, err);
    return tp_buf_append_str(b, "null", err);
}

/* Move c to the next field with this number and take it. */
static bool next_of(struct tp_pb *c, uint32_t number, struct tp_pb_field *f)
{
    while (c->p < c->end && tp_pb_get_field(c, f)) {
        if (f->number == number && f->wire == TP_PB_BYTES)
            return true;
    }
    return false;
}

/* A dictionary of a nested_value: keys and values are two lists. */
static int json_nested_dict(struct tp_pf_reader *r, struct tp_str bytes, unsigned depth,
                            struct tp_err *err)
{
    struct tp_pb keys = {bytes.ptr, bytes.ptr + bytes.len};
    struct tp_pb values = keys;
    struct tp_pb_field key;
    struct tp_pb_field value;
    const char *separator = "{";
    int rc = TP_OK;

    while (rc == TP_OK && next_of(&keys, TP_PF_NESTED_KEYS, &key) &&
           next_of(&values, TP_PF_NESTED_VALUES, &value)) {
        rc = tp_buf_append_str(&r->text, separator, err);
        if (rc == TP_OK)
            rc = tp_json_write_string(&r->text, (struct tp_str){key.bytes, key.value},
                                      err);
        if (rc == TP_OK)
            rc = tp_buf_append_str(&r->text, ":", err);
        if (rc == TP_OK)
            rc = json_nested(r, (struct tp_str){value.bytes, value.value}, depth + 1,
                             err);
        separator = ",";
    }
    if (rc != TP_OK)
        return rc;
    return tp_buf_append_str(&r->text, *separator == '{' ? "{}" : "}", err);
}

static int json_nested_array(struct tp_pf_reader *r, struct tp_str bytes,
                             unsigned depth, struct tp_err *err)
{
    struct tp_pb items = {bytes.ptr, bytes.ptr + bytes.len};
    struct tp_pb_field item;
    const char *separator = "[";
    int rc = TP_OK;

    while (rc == TP_OK && next_of(&items, TP_PF_NESTED_ITEMS, &item)) {
        rc = tp_buf_append_str(&r->text, separator, err);
        if (rc == TP_OK)
            rc =
                json_nested(r, (struct tp_str){item.bytes, item.value}, depth + 1, err);
        separator = ",";
    }
    if (rc != TP_OK)
        return rc;
    return tp_buf_append_str(&r->text, *separator == '[' ? "[]" : "]", err);
}

/* A nested_value, the older encoding. */
static int json_nested(struct tp_pf_reader *r, struct tp_str bytes, unsigned depth,
                       struct tp_err *err)
{
    struct tp_pb c = {bytes.ptr, bytes.ptr + bytes.len};
    struct tp_pb_field f = {0};
    struct tp_pb_field leaf = {0};
    uint64_t type = 0;

    if (depth > DEPTH_MAX)
        return tp_buf_append_str(&r->text, "null", err);
    while (c.p < c.end) {
        if (!tp_pb_get_field(&c, &f))
            return TP_EINVAL;
        if (f.number == TP_PF_NESTED_TYPE)
            type = f.value;
        else if (f.number >= TP_PF_NESTED_INT && f.number <= TP_PF_NESTED_STRING)
            leaf = f;
    }
    if (type == 1)
        return json_nested_dict(r, bytes, depth, err);
    if (type == 2)
        return json_nested_array(r, bytes, depth, err);
    return json_leaf(&r->text, &leaf, err);
}

static int json_value(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                      struct tp_str bytes, const struct annotation *a, unsigned depth,
                      struct tp_err *err);

/* The dict_entries or array_values of an annotation, the present encoding. */
static int json_children(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                         struct tp_str bytes, uint32_t field, unsigned depth,
                         struct tp_err *err)
{
    bool is_dict = field == TP_PF_ARG_DICT;
    struct tp_pb c = {bytes.ptr, bytes.ptr + bytes.len};
    struct tp_pb_field f;
    const char *separator = is_dict ? "{" : "[";
    int rc = TP_OK;

    while (rc == TP_OK && next_of(&c, field, &f)) {
        struct tp_str child = {f.bytes, f.value};
        struct annotation a;

        rc = read_annotation(q, child, &a);
        if (rc == TP_OK)
            rc = tp_buf_append_str(&r->text, separator, err);
        if (rc == TP_OK && is_dict)
            rc = tp_json_write_string(&r->text, (struct tp_str){a.name.ptr, a.name.len},
                                      err);
        if (rc == TP_OK && is_dict)
            rc = tp_buf_append_str(&r->text, ":", err);
        if (rc == TP_OK)
            rc = json_value(r, q, child, &a, depth + 1, err);
        separator = ",";
    }
    if (rc != TP_OK)
        return rc;
    return tp_buf_append_str(&r->text, is_dict ? "}" : "]", err);
}

/* Append the value of annotation a, whose bytes are given too, to r->text. */
static int json_value(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                      struct tp_str bytes, const struct annotation *a, unsigned depth,
                      struct tp_err *err)
{
    if (depth > DEPTH_MAX)
        return tp_buf_append_str(&r->text, "null", err);
    switch (a->field) {
    case 0:
        return tp_buf_append_str(&r->text, "null", err);
    case TP_PF_ARG_STRING:
        return tp_json_write_string(&r->text, a->text, err);
    case TP_PF_ARG_JSON:
        if (!tp_pf_reader_is_json(a->text))
            return tp_json_write_string(&r->text, a->text, err);
        return tp_buf_append(&r->text, a->text.ptr, a->text.len, err);
    case TP_PF_ARG_NESTED:
        return json_nested(r, a->text, depth, err);
    case TP_PF_ARG_DICT:
    case TP_PF_ARG_ARRAY:
        return json_children(r, q, bytes, a->field, depth, err);
    default:
        return json_number(&r->text, a->field, a->value, err);
    }
}

/* A value that is not in the input as an event says it: make its text. */
static int made_arg(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                    struct tp_str bytes, const struct annotation *a, struct tp_arg *arg,
                    struct tp_err *err)
{
    int rc;

    r->text.len = 0;
    r->text.limit_bytes = r->packet_bytes;
    rc = json_value(r, q, bytes, a, 0, err);
    if (rc != TP_OK)
        return rc;
    arg->kind = TP_ARG_JSON;
    return tp_pf_reader_keep(r, (struct tp_str){r->text.data, r->text.len}, &arg->s,
                             err);
}

static int text_arg(struct tp_pf_reader *r, const struct annotation *a,
                    struct tp_arg *arg, struct tp_err *err)
{
    arg->kind = TP_ARG_STRING;
    if (a->field == TP_PF_ARG_JSON &&
        (r->is_trusted || tp_pf_reader_is_json(a->text))) {
        arg->kind = TP_ARG_JSON;
        arg->s = a->text;
        return TP_OK;
    }
    r->skipped.mended += a->field == TP_PF_ARG_JSON;
    return tp_pf_reader_fix(r, a->text, &arg->s, err);
}

/* A double, or the word for one that JSON has not. */
static void double_arg(struct tp_pf_reader *r, uint64_t bits, struct tp_arg *arg)
{
    double d = tp_pb_double(bits);

    if (isfinite(d)) {
        arg->kind = TP_ARG_DOUBLE;
        arg->d = d;
        return;
    }
    arg->kind = TP_ARG_STRING;
    arg->s = tp_str_of(isnan(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity");
    r->skipped.repaired++;
}

/* A pointer is text, as in Chrome's format: 64 bits are too many for a number there. */
static int pointer_arg(struct tp_pf_reader *r, uint64_t value, struct tp_arg *arg,
                       struct tp_err *err)
{
    char text[24];

    snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
    arg->kind = TP_ARG_STRING;
    return tp_pf_reader_keep(r, tp_str_of(text), &arg->s, err);
}

static void unsigned_arg(uint64_t value, struct tp_arg *arg)
{
    if (value <= INT64_MAX) {
        arg->kind = TP_ARG_INT;
        arg->i = (int64_t)value;
    } else {
        arg->kind = TP_ARG_UINT;
        arg->u = value;
    }
}

int tp_pf_reader_arg(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                     struct tp_str bytes, struct tp_arg *arg, struct tp_err *err)
{
    struct annotation a;
    struct tp_str name;
    int rc = read_annotation(q, bytes, &a);

    if (rc != TP_OK)
        return rc;
    arg->key = a.name;
    if (a.name.iid == 0 && !r->is_trusted) {
        rc = tp_pf_reader_fix(r, (struct tp_str){a.name.ptr, a.name.len}, &name, err);
        if (rc != TP_OK)
            return rc;
        arg->key = (struct tp_name){name.ptr, (uint32_t)name.len, 0};
    }
    switch (a.field) {
    case TP_PF_ARG_INT:
        arg->kind = TP_ARG_INT;
        arg->i = (int64_t)a.value;
        return TP_OK;
    case TP_PF_ARG_UINT:
        unsigned_arg(a.value, arg);
        return TP_OK;
    case TP_PF_ARG_DOUBLE:
        double_arg(r, a.value, arg);
        return TP_OK;
    case TP_PF_ARG_BOOL:
        arg->kind = TP_ARG_BOOL;
        arg->b = a.value != 0;
        return TP_OK;
    case TP_PF_ARG_POINTER:
        return pointer_arg(r, a.value, arg, err);
    case TP_PF_ARG_STRING:
    case TP_PF_ARG_JSON:
        return text_arg(r, &a, arg, err);
    default:
        return made_arg(r, q, bytes, &a, arg, err);
    }
}
