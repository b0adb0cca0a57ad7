/*
 * json_out.c - a writer for control answers: small, without a tree in between.
 *
 * json-c would build the answer as objects first; for a body of 300 bytes that costs
 * more than the rest of the request. Against base/json_doc.h it spares the caller a
 * call for each key, and knows times and members that are left out or null.
 */
#include "api/json_out.h"

#include <string.h>

#include "base/json_write.h"
#include "base/timefmt.h"

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

static void put_quoted(struct tp_json_out *o, struct tp_str s)
{
    if (o->code == TP_OK)
        o->code = tp_json_write_string(o->buf, s, NULL);
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

void tp_json_out_u64(struct tp_json_out *o, const char *key, uint64_t v)
{
    lead(o, key);
    if (o->code == TP_OK)
        o->code = tp_json_write_u64(o->buf, v, NULL);
}

void tp_json_out_i64(struct tp_json_out *o, const char *key, int64_t v)
{
    lead(o, key);
    if (o->code == TP_OK)
        o->code = tp_json_write_i64(o->buf, v, NULL);
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
