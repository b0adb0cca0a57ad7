/*
 * json_members.c - a value's end is found by counting brackets outside of strings.
 */
#include "base/json_members.h"

#include "base/buf.h"
#include "base/json_number.h"
#include "base/json_string.h"

/* Move over blanks to the byte `want` and over it. */
static bool pass(struct tp_json *c, char want)
{
    if (tp_json_space(c) != TP_OK || *c->p != want)
        return false;
    c->p++;
    return true;
}

static bool is_scalar_end(char ch)
{
    return ch == ',' || ch == ']' || ch == '}' || tp_json_is_space(ch);
}

/* Move over one value. */
static bool skip_value(struct tp_json *c)
{
    struct tp_json_string s;
    size_t depth = 0;

    do {
        if (tp_json_space(c) != TP_OK)
            return false;
        if (*c->p == '"') {
            if (tp_json_string_scan(c, &s) != TP_OK)
                return false;
        } else if (*c->p == '{' || *c->p == '[') {
            depth++;
            c->p++;
        } else if (*c->p == '}' || *c->p == ']') {
            if (depth == 0)
                return false;
            depth--;
            c->p++;
        } else if (depth > 0 && (*c->p == ',' || *c->p == ':')) {
            c->p++;
        } else {
            while (c->p < c->end && !is_scalar_end(*c->p))
                c->p++;
            if (c->p < c->end && *c->p == ',' && depth == 0)
                return true;
        }
    } while (depth > 0);
    return true;
}

bool tp_json_members_open(struct tp_str text, struct tp_json *c)
{
    *c = (struct tp_json){.p = text.ptr, .end = text.ptr + text.len};
    if (text.len > 0 && pass(c, '{'))
        return true;
    c->p = c->end;
    return false;
}

bool tp_json_members_next(struct tp_json *c, struct tp_str *key, struct tp_str *value)
{
    struct tp_json_string name;
    const char *start;

    if (tp_json_space(c) != TP_OK)
        return false;
    if (*c->p == ',')
        c->p++;
    if (tp_json_space(c) != TP_OK || *c->p != '"' ||
        tp_json_string_scan(c, &name) != TP_OK || !pass(c, ':') ||
        tp_json_space(c) != TP_OK)
        return false;
    start = c->p;
    if (!skip_value(c) || c->p == start)
        return false;
    if (key != NULL)
        *key = (struct tp_str){name.ptr, name.len};
    if (value != NULL)
        *value = (struct tp_str){start, (size_t)(c->p - start)};
    return true;
}

bool tp_json_members_find(struct tp_str text, const char *key, struct tp_str *value)
{
    struct tp_json c;
    struct tp_str name;
    struct tp_str found;
    bool is_there = false;

    tp_json_members_open(text, &c);
    while (tp_json_members_next(&c, &name, &found))
        if (tp_str_is(name, key)) {
            *value = found;
            is_there = true;
        }
    return is_there;
}

int tp_json_members_text(struct tp_str value, struct tp_buf *out, struct tp_err *err)
{
    struct tp_json c = {.p = value.ptr, .end = value.ptr + value.len};
    struct tp_json_string s;
    bool was_repaired = false;
    int rc;

    if (value.len == 0 || *value.ptr != '"' || tp_json_string_scan(&c, &s) != TP_OK)
        return tp_buf_append(out, value.ptr, value.len, err);
    rc = tp_buf_reserve(out, TP_JSON_DECODE_BYTES(s.len), err);
    if (rc != TP_OK)
        return rc;
    if (s.len > 0)
        out->len += tp_json_string_decode(&s, out->data + out->len, &was_repaired);
    return TP_OK;
}

bool tp_json_members_int(struct tp_str value, int64_t *out)
{
    struct tp_json_number n;

    return tp_json_number_parse(value, &n) && tp_json_number_int64(&n, out);
}
