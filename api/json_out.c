/*
 * json_out.c - a writer for control answers: small, without a tree in between.
 *
 * json-c would build the answer as objects first; for a body of 300 bytes that costs
 * more than the rest of the request.
 */
#include "api/json_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timefmt.h"
#include "base/utf8.h"

void tp_json_out_init(struct tp_json_out *o, struct tp_buf *buf)
{
    o->buf = buf;
    o->needs_comma = false;
    o->code = TP_OK;
}

int tp_json_out_end(struct tp_json_out *o, struct tp_err *err)
{
    if (o->code == TP_EQUOTA)
        return tp_fail(err, TP_EQUOTA, "the answer is longer than an answer may be");
    if (o->code != TP_OK)
        return tp_fail(err, o->code, "no memory for the answer");
    return TP_OK;
}

static void put(struct tp_json_out *o, const char *p, size_t n)
{
    if (o->code == TP_OK)
        o->code = tp_buf_append(o->buf, p, n, NULL);
}

/* What comes before a value: the comma and the key. */
static void lead(struct tp_json_out *o, const char *key)
{
    if (o->needs_comma)
        put(o, ",", 1);
    o->needs_comma = true;
    if (key == NULL)
        return;
    put(o, "\"", 1);
    put(o, key, strlen(key));
    put(o, "\":", 2);
}

void tp_json_out_object(struct tp_json_out *o, const char *key)
{
    lead(o, key);
    put(o, "{", 1);
    o->needs_comma = false;
}

void tp_json_out_close_object(struct tp_json_out *o)
{
    put(o, "}", 1);
    o->needs_comma = true;
}

void tp_json_out_array(struct tp_json_out *o, const char *key)
{
    lead(o, key);
    put(o, "[", 1);
    o->needs_comma = false;
}

void tp_json_out_close_array(struct tp_json_out *o)
{
    put(o, "]", 1);
    o->needs_comma = true;
}

static void put_escape(struct tp_json_out *o, unsigned char c)
{
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    char text[8];

    for (size_t i = 0; i + 1 < sizeof(shorts); i += 2) {
        if ((unsigned char)shorts[i] == c) {
            text[0] = '\\';
            text[1] = shorts[i + 1];
            put(o, text, 2);
            return;
        }
    }
    snprintf(text, sizeof(text), "\\u%04x", c);
    put(o, text, 6);
}

static bool needs_escape(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\' || c == 0x7f;
}

/* Valid UTF-8 with what JSON wants escaped, without the quotes. */
static void put_escaped(struct tp_json_out *o, const char *p, size_t n)
{
    size_t from = 0;

    for (size_t i = 0; i < n; i++) {
        if (!needs_escape((unsigned char)p[i]))
            continue;
        put(o, p + from, i - from);
        put_escape(o, (unsigned char)p[i]);
        from = i + 1;
    }
    put(o, p + from, n - from);
}

static void put_quoted(struct tp_json_out *o, struct tp_str s)
{
    struct tp_buf repaired = {0};

    put(o, "\"", 1);
    if (s.len > 0 && !tp_utf8_is_valid(s.ptr, s.len)) {
        if (o->code == TP_OK)
            o->code = tp_utf8_repair(&repaired, s.ptr, s.len, NULL, NULL);
        s = (struct tp_str){repaired.data, repaired.len};
    }
    if (s.len > 0)
        put_escaped(o, s.ptr, s.len);
    put(o, "\"", 1);
    tp_buf_fini(&repaired);
}

void tp_json_out_str(struct tp_json_out *o, const char *key, struct tp_str s)
{
    lead(o, key);
    put_quoted(o, s);
}

void tp_json_out_text(struct tp_json_out *o, const char *key, const char *s)
{
    if (s == NULL)
        tp_json_out_null(o, key);
    else
        tp_json_out_str(o, key, tp_str_of(s));
}

void tp_json_out_str_if(struct tp_json_out *o, const char *key, struct tp_str s)
{
    if (s.len > 0)
        tp_json_out_str(o, key, s);
}

static size_t format_u64(char *end, uint64_t v)
{
    char *p = end;

    do {
        *--p = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    return (size_t)(end - p);
}

void tp_json_out_u64(struct tp_json_out *o, const char *key, uint64_t v)
{
    char text[24];
    size_t n = format_u64(text + sizeof(text), v);

    lead(o, key);
    put(o, text + sizeof(text) - n, n);
}

void tp_json_out_i64(struct tp_json_out *o, const char *key, int64_t v)
{
    char text[24];
    size_t n;

    if (v >= 0) {
        tp_json_out_u64(o, key, (uint64_t)v);
        return;
    }
    n = format_u64(text + sizeof(text), 0 - (uint64_t)v) + 1;
    text[sizeof(text) - n] = '-';
    lead(o, key);
    put(o, text + sizeof(text) - n, n);
}

void tp_json_out_double(struct tp_json_out *o, const char *key, double v)
{
    char text[40];
    int n = 0;

    if (!isfinite(v)) {
        tp_json_out_null(o, key);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        n = snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    lead(o, key);
    put(o, text, (size_t)n);
}

void tp_json_out_bool(struct tp_json_out *o, const char *key, bool v)
{
    lead(o, key);
    put(o, v ? "true" : "false", v ? 4 : 5);
}

void tp_json_out_null(struct tp_json_out *o, const char *key)
{
    lead(o, key);
    put(o, "null", 4);
}

void tp_json_out_time(struct tp_json_out *o, const char *key, int64_t wall_ns)
{
    char text[TP_TIMEFMT_BYTES];

    if (wall_ns == 0)
        tp_json_out_null(o, key);
    else
        tp_json_out_text(o, key, tp_timefmt_write(wall_ns, text));
}

void tp_json_out_raw(struct tp_json_out *o, const char *key, struct tp_str json)
{
    lead(o, key);
    put(o, json.ptr, json.len);
}

void tp_json_out_key(struct tp_json_out *o, struct tp_str key)
{
    if (o->needs_comma)
        put(o, ",", 1);
    put_quoted(o, key);
    put(o, ":", 1);
    o->needs_comma = false;
}
